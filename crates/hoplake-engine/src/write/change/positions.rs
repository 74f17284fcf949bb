//! Conditions on positions of sources: a feed goes on from where the graph has it, or not at all.

use std::collections::{BTreeMap, BTreeSet};

use super::Batch;
use crate::EngineError;

/// The positions of a version, and of the batches that go into the next one.
pub(super) struct Positions<'a> {
    positions: BTreeMap<&'a str, &'a str>,
    /// Sources that batches move which wait for a later version.
    waiting: BTreeSet<&'a str>,
}

/// The outcome of a batch's condition.
#[derive(Debug)]
pub(super) enum Condition {
    Holds,
    /// It depends on a batch that waits.
    Waits,
    Fails(EngineError),
}

impl<'a> Positions<'a> {
    pub(super) fn of(positions: &'a BTreeMap<String, String>) -> Self {
        let positions = positions.iter().map(|(source, position)| (source.as_str(), position.as_str())).collect();
        Self { positions, waiting: BTreeSet::new() }
    }

    /// Whether a batch goes on from these positions.
    pub(super) fn check(&self, batch: &Batch) -> Condition {
        // What the waiting batch leaves is known only in the next version, so this one can be neither accepted nor rejected now.
        if batch.if_positions.keys().any(|source| self.waiting.contains(source.as_str())) {
            return Condition::Waits;
        }
        for (source, expected) in &batch.if_positions {
            let found = self.positions.get(source.as_str()).copied();
            if let Err(error) = expect("batch", source, found, expected.as_deref()) {
                return Condition::Fails(error);
            }
        }
        Condition::Holds
    }

    /// Moves on with a batch that goes into the version.
    pub(super) fn advance(&mut self, batch: &'a Batch) {
        self.positions.extend(batch.source_positions.iter().map(|(source, to)| (source.as_str(), to.as_str())));
    }

    /// Takes note of one that waits.
    pub(super) fn wait_for(&mut self, batch: &'a Batch) {
        self.waiting.extend(batch.source_positions.keys().map(String::as_str));
    }
}

/// Fails if a source has been read up to another position than a batch or a load goes on from.
pub(crate) fn expect(
    writing: &str,
    source: &str,
    found: Option<&str>,
    expected: Option<&str>,
) -> Result<(), EngineError> {
    if found == expected {
        return Ok(());
    }
    let text = |position: Option<&str>| position.map_or("nothing".into(), |it| format!("{it:?}"));
    let found = text(found);
    let expected = text(expected);
    Err(EngineError::Conflict(format!(
        "of source {source} the graph has {found}, and the {writing} goes on from {expected}: another writer has applied it, or a part of it"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(from: Option<&str>, to: &str) -> Batch {
        Batch {
            if_positions: [("crm".to_owned(), from.map(str::to_owned))].into(),
            source_positions: [("crm".to_owned(), to.to_owned())].into(),
            ..Batch::default()
        }
    }

    #[test]
    fn each_batch_goes_on_from_the_one_before() {
        let first = batch(None, "1");
        let again = batch(None, "1");
        let second = batch(Some("1"), "2");
        let none = BTreeMap::new();
        let other = batch(Some("7"), "8");
        let mut positions = Positions::of(&none);
        assert!(matches!(positions.check(&first), Condition::Holds));
        assert!(matches!(positions.check(&second), Condition::Fails(_)));
        positions.advance(&first);
        let Condition::Fails(error) = positions.check(&again) else { panic!() };
        let said = "of source crm the graph has \"1\", and the batch goes on from nothing";
        assert!(error.to_string().starts_with(said), "{error}");
        assert!(matches!(positions.check(&second), Condition::Holds));
        positions.wait_for(&second);
        assert!(matches!(positions.check(&other), Condition::Waits));
    }
}
