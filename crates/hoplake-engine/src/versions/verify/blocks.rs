//! What a block says, held against its section, the schema and the blocks before it.

use hoplake_format::{
    FormatError, Key, KeyType,
    adjacency::{Block, Lists},
    keys::decode_key_block,
    property_index::ordinal_of,
    segment::SectionKind,
};

/// What the blocks of a section may hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowed {
    pub(super) kind: SectionKind,
    /// The type of the keys, if it has keys.
    pub(super) key_type: KeyType,
    /// How many ordinals there are of the label whose vertices its entries name.
    pub(super) ordinals: u64,
}

/// Checks the blocks of a section, or of a piece of one, in their order.
#[derive(Debug)]
pub(super) struct BlockChecker {
    allowed: Allowed,
    /// The edges of the section in pieces before this one; unknown before the first block of one that goes on.
    edges_before: Option<u64>,
    /// Items before the next block; behind a damaged one, nobody knows how many there were.
    items: Option<u64>,
    lists: Lists,
}

impl BlockChecker {
    pub(super) fn new(allowed: Allowed, goes_on: bool) -> Self {
        Self { allowed, edges_before: (!goes_on).then_some(0), items: Some(0), lists: Lists::default() }
    }

    /// How many items the blocks have, if all were whole.
    pub(super) fn items(&self) -> Option<u64> {
        self.items
    }

    /// Takes the next block, which the index says begins with `first`, if its payload is whole.
    pub(super) fn check(&mut self, first: u64, payload: Result<&[u8], FormatError>) -> Result<(), FormatError> {
        let count = payload.and_then(|payload| match self.allowed.kind {
            SectionKind::Keys(_) | SectionKind::Tombstones(_) => self.check_keys(payload),
            SectionKind::Rows(_) => self.check_rows(payload),
            SectionKind::Values(_) | SectionKind::RemovedValues(_) => self.check_items(payload),
            SectionKind::Adjacency(..) | SectionKind::Removed(..) => self.check_lists(first, payload),
        });
        self.items = self.items.zip(count.as_ref().ok()).map(|(items, count)| items + count);
        count.map(drop)
    }

    fn check_keys(&self, payload: &[u8]) -> Result<u64, FormatError> {
        let entries = decode_key_block(payload, self.allowed.key_type)?;
        let count = self.allowed.ordinals;
        match entries.iter().find(|(_, ordinal)| *ordinal >= count) {
            Some((key, ordinal)) => wrong(format!("key {key} stands for vertex {ordinal} of {count}")),
            None => Ok(entries.len() as u64),
        }
    }

    fn check_rows(&self, payload: &[u8]) -> Result<u64, FormatError> {
        let entries = decode_key_block(payload, KeyType::Int64)?;
        let count = self.allowed.ordinals;
        let outside = |key: &Key| !matches!(key, Key::Int64(ordinal) if (0..count as i64).contains(ordinal));
        match entries.iter().find(|(key, _)| outside(key)) {
            Some((key, row)) => wrong(format!("row {row} is of vertex {key} of {count}")),
            None => Ok(entries.len() as u64),
        }
    }

    fn check_items(&self, payload: &[u8]) -> Result<u64, FormatError> {
        let entries = decode_key_block(payload, KeyType::String)?;
        let count = self.allowed.ordinals;
        for (item, _) in &entries {
            let Key::String(item) = item else { continue };
            match ordinal_of(item)? {
                ordinal if ordinal >= count => {
                    return wrong(format!("item {item:?} is of vertex {ordinal} of {count}"));
                }
                _ => {}
            }
        }
        Ok(entries.len() as u64)
    }

    fn check_lists(&mut self, first_source: u64, payload: &[u8]) -> Result<u64, FormatError> {
        let block = Block::parse(payload)?;
        // Blocks count edges from the beginning of the section. A piece that goes on does not know how many were before it, so
        // its first block says it.
        let edges_before = *self.edges_before.get_or_insert(block.first_edge());
        let first_edge = self.items.map_or(block.first_edge(), |items| edges_before + items);
        if (block.first_source(), block.first_edge()) != (first_source, first_edge) {
            return wrong(format!("it begins at source {}, edge {}", block.first_source(), block.first_edge()));
        }
        block.decode_all(&mut self.lists)?;
        let count = self.allowed.ordinals;
        match self.lists.targets.iter().find(|target| **target >= count) {
            Some(target) => wrong(format!("it leads to vertex {target} of {count}")),
            None => Ok(block.edges_len() as u64),
        }
    }
}

fn wrong<T>(why: String) -> Result<T, FormatError> {
    Err(FormatError::corrupt("block", why))
}

#[cfg(test)]
mod tests {
    use hoplake_format::{
        Direction, EdgeTypeId, LabelId,
        adjacency::{BlockEncoder, EncodedBlock},
        keys::encode_key_block,
    };

    use super::*;

    const LISTS: SectionKind = SectionKind::Adjacency(EdgeTypeId(0), Direction::Out);

    fn checker(kind: SectionKind, ordinals: u64, goes_on: bool) -> BlockChecker {
        BlockChecker::new(Allowed { kind, key_type: KeyType::Int64, ordinals }, goes_on)
    }

    /// Three blocks of lists to the vertices 0 to 9, and one whose last list leads to vertex 99.
    fn blocks() -> Vec<EncodedBlock> {
        let mut encoder = BlockEncoder::new(64).unwrap();
        let mut finished = Vec::new();
        for source in 0.. {
            let last = if finished.len() == 3 { 99 } else { 9 };
            encoder.push(source, &[source * 7 % 10, last], &mut finished).unwrap();
            if last == 99 {
                finished.extend(encoder.finish());
                break;
            }
        }
        assert_eq!(finished.len(), 4);
        finished
    }

    fn check(checker: &mut BlockChecker, block: &EncodedBlock) -> Result<(), FormatError> {
        checker.check(block.entry.first_source, Ok(&block.bytes))
    }

    fn told(outcome: Result<(), FormatError>) -> String {
        outcome.unwrap_err().to_string()
    }

    #[test]
    fn a_block_of_lists_goes_on_where_the_one_before_ended() {
        let blocks = blocks();
        let [first, second, third, last] = &blocks[..] else { panic!() };
        let mut whole = checker(LISTS, 10, false);
        [first, second, third].iter().for_each(|block| check(&mut whole, block).unwrap());
        assert_eq!(whole.items(), Some(last.entry.first_edge));
        assert!(told(check(&mut whole, last)).contains("it leads to vertex 99 of 10"));
        // One is left out.
        let mut lacking = checker(LISTS, 10, false);
        check(&mut lacking, first).unwrap();
        let begins = format!("it begins at source {}, edge {}", third.entry.first_source, third.entry.first_edge);
        assert!(told(check(&mut lacking, third)).contains(&begins));
        // The index names another source.
        let other = checker(LISTS, 10, false).check(1, Ok(&first.bytes));
        assert!(told(other).contains("it begins at source 0, edge 0"));
        // A piece that goes on begins wherever the piece before ended.
        let mut later = checker(LISTS, 10, true);
        [second, third].iter().for_each(|block| check(&mut later, block).unwrap());
        assert_eq!(later.items(), Some(last.entry.first_edge - second.entry.first_edge));
    }

    #[test]
    fn blocks_behind_a_damaged_one_are_checked_still() {
        let blocks = blocks();
        let mut checker = checker(LISTS, 10, false);
        checker.check(0, Err(FormatError::corrupt("block", "flipped"))).unwrap_err();
        check(&mut checker, &blocks[1]).unwrap();
        assert_eq!(checker.items(), None, "how many items the damaged one had is unknown");
        assert!(told(check(&mut checker, &blocks[3])).contains("it leads to vertex 99 of 10"));
    }

    #[test]
    fn keys_and_rows_are_of_vertices_that_there_are() {
        let block = encode_key_block(&[(Key::Int64(2), 0), (Key::Int64(5), 7)]).unwrap();
        let mut keys = checker(SectionKind::Keys(LabelId(0)), 8, false);
        keys.check(0, Ok(&block)).unwrap();
        assert_eq!(keys.items(), Some(2));
        let mut keys = checker(SectionKind::Tombstones(LabelId(0)), 7, false);
        assert!(told(keys.check(0, Ok(&block))).contains("key 5 stands for vertex 7 of 7"));
        // The key of a row is an ordinal, and its number a row of a table.
        checker(SectionKind::Rows(LabelId(0)), 6, false).check(0, Ok(&block)).unwrap();
        assert!(
            told(checker(SectionKind::Rows(LabelId(0)), 5, false).check(0, Ok(&block)))
                .contains("row 7 is of vertex 5 of 5")
        );
    }
}
