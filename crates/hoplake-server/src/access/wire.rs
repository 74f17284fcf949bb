//! Between the messages of `Blocks` and the library's types. Only this module validates data from the network.

use bytes::Bytes;
use hoplake::access::{Check, ObjectInfo, Wanted, is_elsewhere, own_name};

use crate::{
    failure::Failure,
    v1::{self, block_range::Check as WireCheck},
};

/// Folders whose objects are served.
const FOLDERS: [&str; 2] = ["manifest", "data"];

/// Most bytes that one fetch brings: beyond the longest joined request, since an index is one block.
const FETCH_BYTES_MAX: u64 = 256 << 20;

/// The largest message that an algorithm node takes. Blocks arrive in parts, manifests in one message.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// A message of blocks is sent when it has this many bytes, the maximum of a part.
const PART_BYTES: usize = 1 << 20;

/// Rejects names that are not those of objects of a graph.
///
/// # Errors
/// [`Reason::Invalid`](crate::Reason::Invalid), with what a name may be.
pub(crate) fn check_object(name: &str) -> Result<&str, Failure> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let in_folder = |(folder, file): (&str, &str)| {
        FOLDERS.contains(&folder) && !file.is_empty() && file.bytes().all(good) && !file.contains("..")
    };
    // A clone names data of the graph that it began as from the root of the store.
    let own = own_name(name);
    let from_root = is_elsewhere(name) && name.len() <= 1024 && own.starts_with("data/") && !name.contains("..");
    if name == "hint" || (own == name || from_root) && own.len() <= 128 && own.split_once('/').is_some_and(in_folder) {
        return Ok(name);
    }
    Err(Failure::invalid(format!("{name:?} is not an object of a graph: hint, manifest/NAME or data/NAME")))
}

/// Rejects folders that a graph does not have.
///
/// # Errors
/// [`Reason::Invalid`](crate::Reason::Invalid), with the names.
pub(crate) fn check_folder(folder: &str) -> Result<&str, Failure> {
    let wrong = || Failure::invalid(format!("{folder:?} is not a folder of a graph: manifest or data"));
    FOLDERS.contains(&folder).then_some(folder).ok_or_else(wrong)
}

/// The blocks of a request, if they can be read.
///
/// # Errors
/// [`Reason::Invalid`](crate::Reason::Invalid), with the first that cannot be.
pub(crate) fn wanted(blocks: Vec<v1::BlockRange>) -> Result<Vec<Wanted>, Failure> {
    let wanted = blocks.into_iter().map(Wanted::try_from).collect::<Result<Vec<_>, _>>()?;
    // Checked, since the lengths are the sender's claims and may add up to more than 64 bits.
    let bytes = wanted.iter().try_fold(0, |sum: u64, block| sum.checked_add(block.range.end - block.range.start));
    if wanted.is_empty() || bytes.is_none_or(|bytes| bytes > FETCH_BYTES_MAX) {
        let message = format!("a fetch is of 1 block at least and of {FETCH_BYTES_MAX} bytes at most; ask for less");
        return Err(Failure::invalid(message));
    }
    Ok(wanted)
}

impl TryFrom<v1::BlockRange> for Wanted {
    type Error = Failure;

    fn try_from(block: v1::BlockRange) -> Result<Self, Failure> {
        let v1::BlockRange { start, end, check } = block;
        let check = match check {
            Some(WireCheck::Sealed(_)) => Check::Sealed,
            Some(WireCheck::Crc32c(crc)) => Check::Known(crc),
            Some(WireCheck::Later(_)) => Check::Later,
            // In proto3 a kind of check that this version does not know arrives as none. It must not pass unchecked.
            None => return Err(Failure::invalid(format!("the block at {start} has no check"))),
        };
        if start >= end {
            return Err(Failure::invalid(format!("the block from {start} to {end} has no bytes")));
        }
        Ok(Self { range: start..end, check })
    }
}

impl From<&Wanted> for v1::BlockRange {
    fn from(block: &Wanted) -> Self {
        let check = match block.check {
            Check::Sealed => WireCheck::Sealed(v1::block_range::Sealed {}),
            Check::Known(crc) => WireCheck::Crc32c(crc),
            Check::Later => WireCheck::Later(v1::block_range::Later {}),
        };
        Self { start: block.range.start, end: block.range.end, check: Some(check) }
    }
}

/// Blocks as messages; the last has the cost.
pub(crate) fn parts(blocks: Vec<Bytes>, cost: v1::StoreCost) -> Vec<v1::FetchResponse> {
    let mut messages = vec![v1::FetchResponse::default()];
    let mut bytes = 0;
    for mut block in blocks {
        while !block.is_empty() {
            // Small blocks share a message, and a large one is split: the index of a segment, whole in one message, would be in
            // memory three times.
            if bytes >= PART_BYTES {
                messages.push(v1::FetchResponse::default());
                bytes = 0;
            }
            // Shares the bytes of the block and copies nothing. A part never spans two blocks, which `Assembly` relies on.
            let part = block.split_to(block.len().min(PART_BYTES));
            bytes += part.len();
            messages.last_mut().expect("there is one from the start").parts.push(part);
        }
    }
    messages.last_mut().expect("there is one from the start").cost = Some(cost);
    messages
}

/// Puts the blocks of an answer together again. Copies them, or each would keep its message in memory.
pub(super) struct Assembly {
    due: std::vec::IntoIter<usize>,
    blocks: Vec<Vec<u8>>,
    /// The missing bytes of the last block.
    missing: usize,
}

impl Assembly {
    pub(super) fn of(wanted: &[&Wanted]) -> Self {
        let lengths: Vec<_> = wanted.iter().map(|block| (block.range.end - block.range.start) as usize).collect();
        Self { due: lengths.into_iter(), blocks: Vec::with_capacity(wanted.len()), missing: 0 }
    }

    /// Takes the next part; `None` if it was not due.
    pub(super) fn take(&mut self, part: &[u8]) -> Option<()> {
        if self.missing == 0 {
            self.missing = self.due.next()?;
            // Reserves only for bytes that have arrived: claimed lengths must not cost memory.
            self.blocks.push(Vec::with_capacity(self.missing.min(part.len().max(PART_BYTES))));
        }
        // A part that is longer than its block is wrong, even if the next block would take the rest.
        self.missing = self.missing.checked_sub(part.len())?;
        self.blocks.last_mut()?.extend_from_slice(part);
        Some(())
    }

    /// The blocks; `None` if bytes are missing.
    pub(super) fn finish(self) -> Option<Vec<Bytes>> {
        let whole = self.missing == 0 && self.due.len() == 0;
        whole.then(|| self.blocks.into_iter().map(Bytes::from).collect())
    }
}

/// A listing as a message.
pub(crate) fn listed(objects: Vec<ObjectInfo>) -> v1::ListResponse {
    let each = |object: ObjectInfo| {
        let ObjectInfo { name, bytes, modified_unix_ms } = object;
        v1::ListedObject { name, bytes, modified_unix_ms }
    };
    v1::ListResponse { objects: objects.into_iter().map(each).collect() }
}

impl From<v1::ListedObject> for ObjectInfo {
    fn from(object: v1::ListedObject) -> Self {
        let v1::ListedObject { name, bytes, modified_unix_ms } = object;
        Self { name, bytes, modified_unix_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: u64, end: u64) -> v1::BlockRange {
        (&Wanted { range: start..end, check: Check::Sealed }).into()
    }

    #[test]
    fn only_objects_of_a_graph_have_names() {
        for name in [
            "hint",
            "manifest/00000000000000000007.hlm",
            "data/00000000000000000003-01JDX-000012.hls",
            "/a b/social/data/x.hls",
        ] {
            assert_eq!(check_object(name).unwrap(), name);
        }
        for name in [
            "",
            "hint/",
            "hint2",
            "manifest",
            "data/",
            "data/a/b",
            "data/..",
            "data/../hint",
            "../x/hint",
            "other/x",
            "data//x",
            "/hint",
            "/x/manifest/y",
            "/x/data/",
            "/../data/x",
            "/x/data/y/z",
            "data/%2e%2e",
            "data\\x",
        ] {
            assert!(check_object(name).is_err(), "{name}");
        }
        assert!(check_folder("data").is_ok() && check_folder("").is_err() && check_folder("../g").is_err());
    }

    #[test]
    fn ranges_that_cannot_be_are_rejected() {
        assert_eq!(wanted(vec![block(5, 9), block(9, 20)]).unwrap().len(), 2);
        let unchecked = v1::BlockRange { start: 0, end: 9, check: None };
        let endless = vec![block(0, u64::MAX), block(0, u64::MAX)];
        for blocks in [
            vec![],
            vec![block(9, 9)],
            vec![block(9, 5)],
            vec![unchecked],
            endless,
            vec![block(0, FETCH_BYTES_MAX), block(0, 1)],
        ] {
            assert!(wanted(blocks.clone()).is_err(), "{blocks:?}");
        }
    }

    #[test]
    fn blocks_arrive_as_they_left() {
        let lengths = [10, PART_BYTES * 5 / 2, 1, PART_BYTES];
        let asked: Vec<_> = lengths.map(|bytes| Wanted { range: 7..7 + bytes as u64, check: Check::Later }).into();
        let asked: Vec<_> = asked.iter().collect();
        let blocks: Vec<_> = (0..4).map(|index| Bytes::from(vec![index as u8; lengths[index]])).collect();
        let messages = parts(blocks.clone(), v1::StoreCost { requests: 3, bytes: 4 });
        let sizes = messages.iter().map(|message| message.parts.iter().map(Bytes::len).sum::<usize>());
        assert!(messages.len() > 2 && sizes.into_iter().all(|bytes| bytes < 2 * PART_BYTES));
        assert_eq!(messages.iter().filter(|message| message.cost.is_some()).count(), 1);
        let all: Vec<_> = messages.iter().flat_map(|message| &message.parts).collect();
        let assemble = |parts: &[&Bytes]| {
            let mut assembly = Assembly::of(&asked);
            parts.iter().try_for_each(|part| assembly.take(part))?;
            assembly.finish()
        };
        assert_eq!(assemble(&all), Some(blocks));
        assert_eq!(assemble(&all[..all.len() - 1]), None);
        assert_eq!(assemble(&[&all[..], &[&Bytes::from_static(b"x")]].concat()), None);
        assert_eq!(assemble(&all[1..]), None);
    }
}
