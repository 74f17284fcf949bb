//! What verification has found so far: what is whole, and what is damaged.

use std::collections::{HashMap, HashSet};

use crate::EngineError;

/// Damages to keep for the report.
const DAMAGES_MAX: usize = 1_000;

/// Of one object, this many damaged blocks are named.
pub(super) const BLOCKS_MAX: u64 = 16;

/// What was read and found intact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verified {
    /// Objects.
    pub objects: u64,
    /// Bytes.
    pub bytes: u64,
    /// Blocks of keys and adjacency.
    pub blocks: u64,
}

/// Something that is damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The newest version that has it; `None` if it is the hint.
    pub version: Option<u64>,
    /// Where it is, and what is wrong with it.
    pub what: String,
}

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) verified: Verified,
    pub(super) damages: Vec<(Option<u64>, EngineError)>,
    version: Option<u64>,
    /// Objects, and tables within objects, that were read, and whether they are whole.
    read: HashMap<(String, u64), bool>,
    objects: HashSet<String>,
}

impl Findings {
    /// What comes is of this version.
    pub(super) fn of_version(&mut self, version: Option<u64>) {
        self.version = version;
    }

    /// Notes damage, and goes on; whatever else went wrong ends the verification.
    pub(super) fn note<T>(&mut self, outcome: Result<T, EngineError>) -> Result<Option<T>, EngineError> {
        match outcome {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_damage() => {
                // Verification of a store that lost everything must not run out of memory over its messages.
                if self.damages.len() < DAMAGES_MAX {
                    self.damages.push((self.version, error));
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether something is whole, if it was read for another version.
    pub(super) fn known(&self, name: &str, position: u64) -> Option<bool> {
        self.read.get(&(name.to_owned(), position)).copied()
    }

    pub(super) fn learn(&mut self, name: &str, position: u64, intact: bool) {
        self.read.insert((name.to_owned(), position), intact);
    }

    /// Counts objects of a version, each once.
    pub(super) fn objects<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        self.objects.extend(names.map(str::to_owned));
        self.verified.objects = self.objects.len() as u64;
    }

    pub(super) fn told(&self) -> Vec<Damage> {
        let tell =
            |(version, error): &(Option<u64>, EngineError)| Damage { version: *version, what: error.to_string() };
        self.damages.iter().map(tell).collect()
    }
}

#[cfg(test)]
mod tests {
    use hoplake_format::FormatError;

    use super::*;

    fn damage() -> Result<(), EngineError> {
        Err(EngineError::format("data/a")(FormatError::corrupt("block", "it is damaged")))
    }

    #[test]
    fn verification_goes_on_after_damage_and_ends_with_other_errors() {
        let mut found = Findings::default();
        found.of_version(Some(3));
        assert_eq!(found.note(Ok(7)).unwrap(), Some(7));
        assert_eq!(found.note(damage()).unwrap(), None);
        found.note::<()>(Err(EngineError::Internal("the store is off".into()))).unwrap_err();
        let told = found.told();
        assert_eq!((told.len(), told[0].version), (1, Some(3)));
        assert!(told[0].what.contains("data/a"), "{told:?}");
    }

    #[test]
    fn very_much_damage_takes_little_memory() {
        let mut found = Findings::default();
        (0..DAMAGES_MAX * 2).for_each(|_| assert_eq!(found.note(damage()).unwrap(), None));
        assert_eq!(found.told().len(), DAMAGES_MAX);
    }

    #[test]
    fn what_was_read_for_one_version_is_known_for_the_next() {
        let mut found = Findings::default();
        found.learn("data/a", 0, false);
        found.learn("data/a", 900, true);
        assert_eq!([0, 900, 5].map(|position| found.known("data/a", position)), [Some(false), Some(true), None]);
        found.objects(["data/a", "data/b"].into_iter());
        found.objects(["data/b", "data/c"].into_iter());
        assert_eq!(found.verified.objects, 3, "each once");
    }
}
