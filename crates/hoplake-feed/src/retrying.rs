//! Dead letters are applied after all, or discarded.
//!
//! The changes of one name are applied as one: from the row before the first of them to the row after the last. So a row that could not be
//! applied and was corrected since is applied as it is now.

use std::collections::BTreeSet;

use crate::{
    Cell, Change, FeedError, Images, Position, Row, RowChange, Settings, Transaction,
    applying::{Applying, Outcome},
    feed,
    fold::{Aside, render},
    letters::Letter,
    reading::Pauses,
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
    /// Letters that stay.
    pub left: u64,
    /// The version that has what they changed.
    pub version: u64,
}

/// Applies letters. Those that fail again stay, with the reason of now.
///
/// # Errors
/// [`Invalid`](crate::FeedErrorKind::Invalid) if a name has no letter; those of [`Feed::open`](crate::Feed::open).
pub async fn retry(settings: &Settings, selection: &Selection) -> Result<Retried, FeedError> {
    let checked = feed::check(settings).await?;
    let mut applying = feed::applying(settings, checked.mapping).await?;
    loop {
        let (groups, rest) = groups(applying.letters().await?, selection)?;
        let changes: Vec<RowChange> = groups.iter().map(|group| net(group)).collect();
        let transaction = Transaction {
            position: applying.position.of_source.clone(),
            committed_unix_ms: 0,
            changes: changes.into_iter().map(Change::Row).collect(),
            bytes: 0,
        };
        let mut aside =
            Aside { held: rest.iter().flat_map(|letter| letter.names.iter().cloned()).collect(), ..Aside::default() };
        // A letter is for one of the entries that may be about its table.
        for (number, group) in groups.iter().enumerate() {
            let entries = applying.mapping.entries_of(&group[0].table);
            let others = entries.filter(|(_, entry)| *entry.label() != group[0].label);
            aside.passed_over.extend(others.map(|(entry, _)| (0, number, entry)));
        }
        let transactions = [transaction];
        let folded = loop {
            let folded = applying.folded(&transactions, &aside, &mut 0).await?;
            let new: Vec<_> =
                folded.failures.iter().map(|it| ((it.transaction, it.change, it.entry), it.why.clone())).collect();
            if new.is_empty() {
                break folded;
            }
            aside.failing.extend(new);
        };
        let failed: BTreeSet<usize> = folded.set_aside.iter().map(|it| it.change).collect();
        let mut left = rest;
        let mut done = 0;
        for (number, mut group) in groups.into_iter().enumerate() {
            if !failed.contains(&number) {
                done += group.len() as u64;
                continue;
            }
            let why = folded.set_aside.iter().find(|it| it.change == number).and_then(|it| it.why.clone());
            group[0].attempts += 1;
            group[0].why = why.or_else(|| group[0].why.clone());
            left.extend(group);
        }
        let mut state = applying.state.clone();
        state.waiting.apply(&folded.waiting);
        let operations = render(folded.overlay, applying.graph.schema());
        if let Some(version) = commit(&mut applying, operations, state, &left).await? {
            return Ok(Retried { done, left: left.len() as u64, version });
        }
    }
}

/// Removes letters; what they would have changed stays as it is.
///
/// # Errors
/// [`Invalid`](crate::FeedErrorKind::Invalid) if a name has no letter; the graph's.
pub async fn discard(settings: &Settings, selection: &Selection) -> Result<Retried, FeedError> {
    let checked = feed::check(settings).await?;
    let mut applying = feed::applying(settings, checked.mapping).await?;
    loop {
        let (groups, rest) = groups(applying.letters().await?, selection)?;
        let done = groups.iter().map(|group| group.len() as u64).sum();
        let state = applying.state.clone();
        if let Some(version) = commit(&mut applying, Vec::new(), state, &rest).await? {
            return Ok(Retried { done, left: rest.len() as u64, version });
        }
    }
}

/// Commits with these letters in the place of all; `None` if the feed has changed what it remembers meanwhile.
async fn commit(
    applying: &mut Applying,
    operations: Vec<hoplake::Operation>,
    mut state: crate::state::State,
    left: &[Letter],
) -> Result<Option<u64>, FeedError> {
    applying.replace_letters(&mut state, left).await?;
    let mut pauses = Pauses::new();
    let Position { of_source, committed_unix_ms, .. } = applying.position.clone();
    let position = applying.position_with(of_source, committed_unix_ms, &mut state, &mut pauses).await?;
    match applying.commit(operations, &position, &mut pauses, &mut 0).await? {
        Outcome::Committed(version) => {
            applying.settle(position, state).await;
            Ok(Some(version))
        }
        Outcome::Remembers => Ok(None),
        Outcome::Refused(error, _) => Err(error.into()),
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

/// The changes of one name as one.
fn net(letters: &[Letter]) -> RowChange {
    let first = &letters[0].change;
    let last = &letters[letters.len() - 1].change;
    // With other columns than the first had, the first says nothing that could be compared.
    let is_same = first.columns == last.columns;
    let before = match &first.images {
        Images::Insert(_) => None,
        Images::Delete(row) => Some(row.clone()),
        Images::Update { before, .. } => before.clone(),
    };
    let is_new = matches!(first.images, Images::Insert(_));
    let images = match &last.images {
        Images::Delete(row) => Images::Delete(before.filter(|_| is_same).unwrap_or_else(|| row.clone())),
        Images::Insert(after) | Images::Update { after, .. } => {
            let after = if is_same { filled(letters, after) } else { after.clone() };
            match is_new {
                true => Images::Insert(after),
                false => Images::Update { before: before.filter(|_| is_same), after },
            }
        }
    };
    RowChange { columns: last.columns.clone(), images }
}

/// A row in which cells that the log did not repeat are those of the change before.
fn filled(letters: &[Letter], last: &Row) -> Row {
    let mut row = last.clone();
    for letter in letters.iter().rev() {
        let (Images::Insert(after) | Images::Update { after, .. }) = &letter.change.images else { continue };
        for (cell, before) in row.iter_mut().zip(after.iter()).filter(|(cell, _)| **cell == Cell::Absent) {
            cell.clone_from(before);
        }
    }
    row
}
