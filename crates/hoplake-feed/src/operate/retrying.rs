//! Dead letters are applied after all, or discarded.
//!
//! The changes of one row are applied as one: from the row before the first of them to the row after the last. So a row that could not be
//! applied and was corrected since is applied as it is now. Rows that had one name after the other are a group: each is applied when its
//! new name is free, and none of them if one fails.

use std::{collections::BTreeSet, sync::Arc};

use hoplake::Name;

use crate::{
    Cell, Change, Columns, Ends, FeedError, Images, Position, Row, RowChange, Settings, Transaction,
    apply::{
        applier::{Applier, Outcome},
        fold::{Aside, Origin, render},
        letters::Letter,
        opening,
    },
    backoff::Backoff,
};

/// Which letters are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All of them.
    All,
    /// Those of some names, with all of their names.
    Names(Vec<String>),
}

/// What became of letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retried {
    /// Letters that are no more.
    pub done: u64,
    /// Letters that were to be applied, and cannot be.
    pub failed: u64,
    /// Letters that stay, those among them.
    pub left: u64,
    /// The version that has what they changed.
    pub version: u64,
}

/// Applies letters. Those that fail again stay, with the reason of now.
///
/// # Errors
/// [`Invalid`](crate::FeedErrorKind::Invalid) if a name has no letter; those of [`Feed::open`](crate::Feed::open), also where it would not
/// go on: the graph would have rows of two mappings.
pub async fn retry(settings: &Settings, selection: &Selection) -> Result<Retried, FeedError> {
    retry_on(&Ends::open(settings)?, settings, selection).await
}

/// [`retry`] on other ends than those that the settings name.
///
/// # Errors
/// As [`retry`].
pub async fn retry_on(ends: &Ends, settings: &Settings, selection: &Selection) -> Result<Retried, FeedError> {
    let (_, mut applier) = opening::checked_applier(ends, settings).await?;
    loop {
        let (groups, rest) = groups(applier.letters().await?, selection)?;
        let mut changes = Vec::new();
        let mut group_of = Vec::new();
        for (number, group) in groups.iter().enumerate() {
            let of_group = changes_of(group);
            group_of.extend(of_group.iter().map(|_| number));
            changes.extend(of_group);
        }
        let transaction = Transaction {
            tables: Vec::new(),
            position: applier.position.of_source.clone(),
            committed_unix_ms: 0,
            changes: changes.into_iter().map(Change::Row).collect(),
            bytes: 0,
        };
        let mut aside =
            Aside { held: rest.iter().flat_map(|letter| letter.names.iter().cloned()).collect(), ..Aside::default() };
        // A letter is for one of the entries that may be about its table.
        for (number, group) in group_of.iter().enumerate() {
            let first = &groups[*group][0];
            let entries = applier.mapping.entries_of(&first.table);
            let others = entries.filter(|(_, entry)| *entry.label() != first.label);
            aside.passed_over.extend(others.map(|(entry, _)| Origin { transaction: 0, change: number, entry }));
        }
        let transactions = [transaction];
        let folded = loop {
            let folded = applier.folded(&transactions, &aside, &mut 0).await?;
            if folded.failures.is_empty() {
                break folded;
            }
            for failure in &folded.failures {
                let along = (0..group_of.len()).filter(|number| group_of[*number] == group_of[failure.origin.change]);
                aside.failing.extend(along.map(|change| (Origin { change, ..failure.origin }, failure.why.clone())));
            }
        };
        let failed: BTreeSet<usize> = folded.set_aside.iter().map(|it| group_of[it.origin.change]).collect();
        let mut left = rest;
        let mut done = 0;
        let mut failures = 0;
        for (number, mut group) in groups.into_iter().enumerate() {
            if !failed.contains(&number) {
                done += group.len() as u64;
                continue;
            }
            let why =
                folded.set_aside.iter().find(|it| group_of[it.origin.change] == number).and_then(|it| it.why.clone());
            failures += group.len() as u64;
            group[0].attempts += 1;
            group[0].why = why.or_else(|| group[0].why.clone());
            left.extend(group);
        }
        let mut state = applier.state.clone();
        state.waiting.apply(&folded.waiting);
        let operations = render(folded.overlay, applier.graph.schema()).operations;
        if let Some(version) = commit(&mut applier, operations, state, &left).await? {
            return Ok(Retried { done, failed: failures, left: left.len() as u64, version });
        }
    }
}

/// Removes letters; what they would have changed stays as it is.
///
/// # Errors
/// [`Invalid`](crate::FeedErrorKind::Invalid) if a name has no letter; the graph's.
pub async fn discard(settings: &Settings, selection: &Selection) -> Result<Retried, FeedError> {
    discard_on(&Ends::open(settings)?, settings, selection).await
}

/// [`discard`] on other ends than those that the settings name.
///
/// # Errors
/// As [`discard`].
pub async fn discard_on(ends: &Ends, settings: &Settings, selection: &Selection) -> Result<Retried, FeedError> {
    let mut discarding = Discarding::open(ends, settings).await?;
    loop {
        let (groups, rest) = groups(discarding.letters().await?, selection)?;
        let done = groups.iter().map(|group| group.len() as u64).sum();
        if let Some(version) = discarding.commit(&rest).await? {
            return Ok(Retried { done, failed: 0, left: rest.len() as u64, version });
        }
    }
}

/// A graph of which letters are given up. That needs no mapping, and may be done where the feed has stopped; nothing is folded without one.
struct Discarding(Applier);

impl Discarding {
    async fn open(ends: &Ends, settings: &Settings) -> Result<Self, FeedError> {
        opening::applier(&ends.store, settings, Arc::default()).await.map(Self)
    }

    async fn letters(&self) -> Result<Vec<Letter>, FeedError> {
        self.0.letters().await
    }

    /// Commits with these letters in the place of all; `None` if the feed has changed what it remembers meanwhile.
    async fn commit(&mut self, left: &[Letter]) -> Result<Option<u64>, FeedError> {
        let state = self.0.state.clone();
        commit(&mut self.0, Vec::new(), state, left).await
    }
}

/// Commits with these letters in the place of all; `None` if the feed has changed what it remembers meanwhile.
async fn commit(
    applier: &mut Applier,
    operations: Vec<hoplake::Operation>,
    mut state: crate::apply::state::FeedState,
    left: &[Letter],
) -> Result<Option<u64>, FeedError> {
    applier.replace_letters(&mut state, left).await?;
    let mut pauses = Backoff::new();
    let Position { of_source, committed_unix_ms, .. } = applier.position.clone();
    let position = applier.position_with(of_source, committed_unix_ms, &mut state, &mut pauses).await?;
    match applier.commit(operations, &position, &mut pauses, &mut 0).await? {
        Outcome::Committed(version) => {
            applier.settle(position, state).await;
            Ok(Some(version))
        }
        Outcome::Remembers => Ok(None),
        Outcome::Rejected(error, _) => Err(error.into()),
    }
}

/// The selected letters, those that share names together, and the others.
fn groups(letters: Vec<Letter>, selection: &Selection) -> Result<(Vec<Vec<Letter>>, Vec<Letter>), FeedError> {
    let mut groups: Vec<(BTreeSet<String>, Vec<Letter>)> = Vec::new();
    for letter in letters {
        let names: BTreeSet<String> = letter.names.iter().cloned().collect();
        let shares = |(known, others): &(BTreeSet<String>, Vec<Letter>)| {
            // A row without a name is by itself.
            others[0].label == letter.label && !known.is_disjoint(&names)
        };
        let (same, mut others): (Vec<_>, Vec<_>) = groups.into_iter().partition(shares);
        let mut merged = (names, Vec::new());
        for (names, letters) in same {
            merged.0.extend(names);
            merged.1.extend(letters);
        }
        merged.1.push(letter);
        others.push(merged);
        groups = others;
    }
    if let Selection::Names(wanted) = selection {
        let missing = wanted.iter().find(|name| !groups.iter().any(|(names, _)| names.contains(*name)));
        if let Some(missing) = missing {
            return Err(FeedError::invalid(format!("no dead letter for {missing}"))
                .hint("hoplake feed dead-letters list shows what there is"));
        }
    }
    let is_meant = |(names, _): &(BTreeSet<String>, Vec<Letter>)| match selection {
        Selection::All => true,
        Selection::Names(wanted) => wanted.iter().any(|name| names.contains(name)),
    };
    let (meant, rest): (Vec<_>, Vec<_>) = groups.into_iter().partition(is_meant);
    let letters = |groups: Vec<(BTreeSet<String>, Vec<Letter>)>| groups.into_iter().map(|(_, letters)| letters);
    Ok((letters(meant).collect(), letters(rest).flatten().collect()))
}

/// The changes of one row, and its names before the first and after the last.
struct Chain<'a> {
    from: Option<&'a str>,
    to: Option<&'a str>,
    letters: Vec<&'a Letter>,
}

/// The changes of a group, one for each row, in an order in which the new name of each is free.
fn changes_of(group: &[Letter]) -> Vec<RowChange> {
    let mut chains = chains(group);
    let mut changes = Vec::new();
    let mut last = Vec::new();
    while !chains.is_empty() {
        let is_free = |number: usize| {
            let mut others = chains.iter().enumerate().filter(|(other, _)| *other != number);
            let to = chains[number].to;
            to.is_none() || others.all(|(_, other)| other.from != to)
        };
        match (0..chains.len()).find(|number| is_free(*number)) {
            Some(number) => changes.extend(net(&chains.remove(number))),
            // They have swapped their names: one goes first, and comes back at the end.
            None => {
                let chain = chains.remove(0);
                match net(&chain) {
                    Some(RowChange {
                        columns,
                        images: Images::Update { before: Some(before), after },
                        checks_keys,
                    }) => {
                        changes.push(RowChange {
                            columns: columns.clone(),
                            images: Images::Delete(before),
                            checks_keys,
                        });
                        last.push(RowChange { columns, images: Images::Insert(after), checks_keys });
                    }
                    other => changes.extend(other),
                }
            }
        }
    }
    changes.extend(last);
    changes
}

/// The letters of each row, in their order.
fn chains(group: &[Letter]) -> Vec<Chain<'_>> {
    let mut chains: Vec<Chain<'_>> = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for letter in group {
        let first = letter.names.first().map(String::as_str);
        let last = letter.names.last().map(String::as_str);
        let (before, after) = match &letter.change.images {
            Images::Insert(_) => (None, last),
            Images::Delete(_) => (first, None),
            Images::Update { .. } => (first, last),
        };
        match chains.iter_mut().find(|chain| before.is_some() && chain.to == before) {
            Some(chain) => {
                chain.letters.push(letter);
                chain.to = after;
            }
            // What a resnapshot has set aside may be there as it was before.
            None => {
                let from = before.or_else(|| after.filter(|name| !seen.contains(name)));
                chains.push(Chain { from, to: after, letters: vec![letter] });
            }
        }
        seen.extend(letter.names.iter().map(String::as_str));
    }
    chains
}

/// The changes of one row as one; nothing of a row that came and went.
fn net(chain: &Chain<'_>) -> Option<RowChange> {
    let Chain { from, to, letters } = chain;
    let first = &letters[0].change;
    let last = &letters[letters.len() - 1].change;
    let moves = from != to;
    // With other columns than the first had, the first says nothing that could be compared, but for what the graph has it under.
    let is_same = first.columns == last.columns;
    let is_insert = matches!(first.images, Images::Insert(_));
    let before = match &first.images {
        Images::Insert(row) | Images::Delete(row) => Some(row.clone()),
        // Its key is that of the row after.
        Images::Update { before, after } => before.clone().or_else(|| moves.then(|| after.clone())),
    };
    let last_name = letters[letters.len() - 1].names.first().map(String::as_str);
    let mut columns = last.columns.clone();
    let images = match &last.images {
        Images::Delete(_) if from.is_none() => return None,
        Images::Delete(row) => Images::Delete(match before {
            Some(before) if is_same || *from != last_name => {
                columns = first.columns.clone();
                before
            }
            _ => row.clone(),
        }),
        Images::Insert(after) | Images::Update { after, .. } => {
            let after = if is_same { filled(letters, after) } else { after.clone() };
            match is_insert {
                true if from.is_none() => Images::Insert(after),
                // The graph may have it from before the resnapshot, with other values.
                true if !moves => Images::Update { before: None, after },
                _ if is_same => Images::Update { before, after },
                _ if moves => Images::Update { before: before.map(|row| in_columns(&row, first, &columns)), after },
                _ => Images::Update { before: None, after },
            }
        }
    };
    // If one of them did without, what it left undone has not been done.
    let checks_keys = letters.iter().all(|letter| letter.change.checks_keys);
    Some(RowChange { columns, images, checks_keys })
}

/// A row of a change as one of other columns of its table, by their names.
fn in_columns(row: &Row, change: &RowChange, columns: &Columns) -> Row {
    let place = |name: &Name| change.columns.names.iter().position(|other| other == name);
    columns.names.iter().map(|name| place(name).map_or(Cell::Absent, |place| row[place].clone())).collect()
}

/// A row in which cells that the log did not repeat are those of the change before.
fn filled(letters: &[&Letter], last: &Row) -> Row {
    let mut row = last.clone();
    for letter in letters.iter().rev() {
        let (Images::Insert(after) | Images::Update { after, .. }) = &letter.change.images else { continue };
        for (cell, before) in row.iter_mut().zip(after.iter()).filter(|(cell, _)| **cell == Cell::Absent) {
            cell.clone_from(before);
        }
    }
    row
}

#[cfg(test)]
mod tests {
    use hoplake::Value;

    use super::*;
    use crate::TableName;

    fn row((id, name): (i64, &str)) -> Row {
        [Value::Int64(id), name.into()].map(Cell::Value).into()
    }

    /// The change of a person with an id and a name, by the ids before and after.
    fn letter(before: Option<(i64, &str)>, after: Option<(i64, &str)>) -> Letter {
        let mut names: Vec<_> = [before, after].into_iter().flatten().map(|(id, _)| format!("Person:{id}")).collect();
        names.dedup();
        let images = match (before.map(row), after.map(row)) {
            (None, Some(after)) => Images::Insert(after),
            (Some(before), None) => Images::Delete(before),
            (before, after) => Images::Update { before, after: after.unwrap() },
        };
        let table = TableName::new("s", "person");
        let names_of_columns = ["id", "name"].map(Into::into).to_vec();
        let columns = Arc::new(Columns { table: table.clone(), names: names_of_columns, kinds: vec![None, None] });
        let position = "1".to_owned();
        let why = None;
        let change = RowChange::new(columns, images);
        Letter { position, committed_unix_ms: 0, table, label: "Person".into(), names, why, attempts: 1, change }
    }

    fn images(letters: &[Letter]) -> Vec<Images> {
        changes_of(letters).into_iter().map(|change| change.images).collect()
    }

    fn of(before: Option<(i64, &str)>, after: Option<(i64, &str)>) -> Images {
        letter(before, after).change.images
    }

    #[test]
    fn a_row_that_got_a_key_which_another_had_is_not_taken_for_it() {
        let ann = (5, "Ann");
        let bob = (5, "Bob");
        // Ann has gone from 5 to 6, and then Bob came to 5; Ann was corrected after that.
        let moved = [letter(Some(ann), Some((5, "?"))), letter(Some((5, "?")), Some((6, "?")))];
        let mut letters = moved.to_vec();
        letters.push(letter(None, Some(bob)));
        letters.push(letter(Some((6, "?")), Some((6, "Ann"))));
        assert_eq!(images(&letters), [of(Some(ann), Some((6, "Ann"))), of(None, Some(bob))]);
        // She goes after all: Bob stays.
        letters.push(letter(Some((6, "Ann")), None));
        assert_eq!(images(&letters), [of(Some(ann), None), of(None, Some(bob))]);
        // One who came and went again leaves nothing.
        let passing = [letter(Some(ann), None), letter(None, Some(bob)), letter(Some(bob), None)];
        assert_eq!(images(&passing), [of(Some(ann), None)]);
    }

    /// A resnapshot sets aside a row that the graph has from before, which matches the condition of the mapping no more when it is
    /// corrected: it has to go.
    #[test]
    fn a_row_that_is_read_again_may_be_there_already() {
        let unread = (5, "?");
        let corrected = (5, "Ann");
        let update = Images::Update { before: None, after: row(corrected) };
        assert_eq!(images(&[letter(None, Some(unread)), letter(Some(unread), Some(corrected))]), [update]);
        assert_eq!(images(&[letter(None, Some(unread)), letter(Some(unread), None)]), [of(Some(unread), None)]);
        let moved = Images::Update { before: Some(row(unread)), after: row((6, "Ann")) };
        assert_eq!(images(&[letter(None, Some(unread)), letter(Some(unread), Some((6, "Ann")))]), [moved]);
    }

    /// A column was added meanwhile. What the graph has is under the first name.
    #[test]
    fn a_row_that_moved_before_its_table_changed_is_the_one_of_before() {
        let wider = |letter: Letter| {
            let names = ["id", "name", "more"].map(Into::into).to_vec();
            let columns = Columns { table: letter.table.clone(), names, kinds: vec![None; 3] };
            let more = |row: &Row| -> Row { row.iter().cloned().chain([Cell::Value("new".into())]).collect() };
            let images = match &letter.change.images {
                Images::Insert(row) => Images::Insert(more(row)),
                Images::Delete(row) => Images::Delete(more(row)),
                Images::Update { before, after } => {
                    Images::Update { before: before.as_ref().map(more), after: more(after) }
                }
            };
            Letter { change: RowChange::new(Arc::new(columns), images), ..letter }
        };
        let moved = letter(Some((5, "Ann")), Some((6, "?")));
        let deleted = changes_of(&[moved.clone(), wider(letter(Some((6, "?")), None))]);
        assert_eq!(deleted, [RowChange::new(moved.change.columns.clone(), Images::Delete(row((5, "Ann"))))]);
        let corrected = wider(letter(Some((6, "?")), Some((6, "Ann"))));
        let Images::Update { after, .. } = &corrected.change.images else { unreachable!() };
        let before: Row = [5_i64.into(), "Ann".into()].map(Cell::Value).into_iter().chain([Cell::Absent]).collect();
        let images = Images::Update { before: Some(before), after: after.clone() };
        assert_eq!(changes_of(&[moved, corrected.clone()]), [RowChange::new(corrected.change.columns.clone(), images)]);
    }

    #[test]
    fn rows_wait_until_their_new_keys_are_free() {
        let letters = [
            letter(Some((5, "Ann")), Some((5, "?"))),
            letter(Some((6, "Bob")), Some((6, "?"))),
            letter(Some((6, "?")), Some((7, "Bob"))),
            letter(Some((5, "?")), Some((6, "Ann"))),
        ];
        let expected = [of(Some((6, "Bob")), Some((7, "Bob"))), of(Some((5, "Ann")), Some((6, "Ann")))];
        assert_eq!(images(&letters), expected);
        let swapped = [&letters[..], &[letter(Some((7, "Bob")), Some((5, "Bob")))]].concat();
        let expected = [of(Some((5, "Ann")), None), of(Some((6, "Bob")), Some((5, "Bob"))), of(None, Some((6, "Ann")))];
        assert_eq!(images(&swapped), expected);
    }
}
