//! What processes said that they did, and what became of each attempt at a batch.

use std::collections::BTreeMap;

use super::{roles::Role, script::Attempt};

/// What is known of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It began; the process was killed before it said more.
    Began,
    /// It is in this version and all later ones.
    Acknowledged(u64),
    /// The writer was told that nobody knows.
    Unknown,
    /// It is in no version, and never will be.
    Refused,
}

/// All that was said.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger {
    pub(super) attempts: BTreeMap<Attempt, Outcome>,
    pub(super) compactions: u64,
    pub(super) merges: u64,
    pub(super) parts: u64,
    pub(super) vacuums: u64,
    pub(super) versions_removed: u64,
    pub(super) objects_removed: u64,
    pub(super) aborted: u64,
    /// Steps that failed, by what they were and why.
    pub(super) failed: BTreeMap<String, u64>,
    /// The first thing that must not be.
    pub(super) wrong: Option<String>,
}

impl Ledger {
    /// Notes a line.
    pub(super) fn note(&mut self, role: Role, line: &str) {
        if self.noted(role, line).is_none() {
            self.wrong.get_or_insert(format!("{role:?} says {line:?}"));
        }
    }

    /// `None` if it is no line that a process says when all is well.
    fn noted(&mut self, role: Role, line: &str) -> Option<()> {
        let (verb, rest) = line.split_once(' ')?;
        let mut numbers = rest.split(' ').map(|word| word.parse::<u64>().ok());
        match verb {
            "began" | "unknown" | "refused" | "acknowledged" => {
                let Role::Writer(writer) = role else { return None };
                let mut words = rest.split(' ');
                let attempt = Attempt { writer, batch: words.next()?.parse().ok()?, name: words.next()?.to_owned() };
                let outcome = match verb {
                    "began" => Outcome::Began,
                    "unknown" => Outcome::Unknown,
                    "refused" => Outcome::Refused,
                    _ => Outcome::Acknowledged(words.next()?.parse().ok()?),
                };
                self.attempts.insert(attempt, outcome);
            }
            "compacted" => {
                self.compactions += 1;
                self.merges += numbers.next()??;
                self.parts += numbers.next()??;
            }
            "vacuumed" => {
                self.vacuums += 1;
                self.versions_removed += numbers.next()??;
                self.objects_removed += numbers.next()??;
                self.aborted += numbers.next()??;
            }
            "failed" | "expired" => {
                let what = rest.split(' ').next()?;
                *self.failed.entry(format!("{what} {verb}")).or_default() += 1;
            }
            _ => return None,
        }
        Some(())
    }

    /// How many attempts had such an outcome.
    pub(super) fn count(&self, of: impl Fn(&Attempt, Outcome) -> bool) -> usize {
        self.attempts.iter().filter(|(attempt, outcome)| of(attempt, **outcome)).count()
    }
}
