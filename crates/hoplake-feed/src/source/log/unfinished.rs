//! A transaction of a log of which not all has come, and when it is complete.
//!
//! # Runs of a producer
//! A *run* is what a producer writes between a start and its next start. Within a transaction it numbers changes from 1, and the END record has
//! their count. A producer that is killed within a transaction writes BEGIN again, continues with this or an earlier change, and numbers from 1
//! again; the records of the first run stay in the log. Changes of two runs share numbers, so counting numbers across runs could complete a
//! transaction before all of its changes are read.
//!
//! A transaction is of one run while one BEGIN was read and no change has two numbers. Then there are at least as many different changes as
//! numbers, and all numbers count. Otherwise only those count that were written between the last BEGIN and its END, with a tolerance of
//! [`SAME_RUN_MS`]. Changes of earlier runs have been read by then, because parts are read in the order of time ([`LogConsumer::next`]).
//!
//! [`LogConsumer::next`]: super::transport::LogConsumer::next

use std::collections::{BTreeMap, HashMap};

use super::{
    event::{Named, Order},
    place::Mark,
};
use crate::{Change, FeedError, Images, RowChange, error::COPY_ANEW};

/// Where a transaction has several runs, a change of the last one may have been written this much before its BEGIN or after its END: a broker may
/// record arrival times, and clocks are corrected. A restart of a producer must take longer.
pub(super) const SAME_RUN_MS: i64 = 1_000;

/// Where a restarted reader resumes each part of a log: the number of the record, and the offset before it.
pub(super) type ResumePoints = BTreeMap<String, (u64, String)>;

/// A transaction of which not all has come.
#[derive(Default)]
pub(super) struct LoggedTransaction {
    /// By their places in the database's log; of two at one place the deletion first.
    pub(super) changes: BTreeMap<(u64, u64, bool, usize), Kept>,
    pub(super) end: Option<End>,
    /// The parts of the last BEGIN and the last END. If they are the same, their order in it decides, not their times.
    pub(super) begin_part: String,
    pub(super) end_part: String,
    /// The numbers of its changes, each with the time of its last record; of several runs, only those since the last BEGIN.
    pub(super) numbers: HashMap<u64, i64>,
    /// How many of them are of the run that has ended.
    pub(super) counted: u64,
    /// When the last run began, less [`SAME_RUN_MS`].
    pub(super) run_ms: Option<i64>,
    /// Whether several BEGIN records were read, or a change has two numbers.
    pub(super) has_several_runs: bool,
    /// Of changes that are numbered from 0 on, those of tables that are not followed among them: how many have come.
    pub(super) numbered: u64,
    pub(super) mark: Option<Mark>,
    pub(super) committed_unix_ms: i64,
    pub(super) held: ResumePoints,
}

/// When a transaction is complete.
#[derive(Clone, Copy)]
pub(super) enum End {
    /// Now.
    Now,
    /// When `all` changes of the same run have been read; the END record was written at `written_ms`.
    Numbers { all: u64, written_ms: i64 },
}

pub(super) struct Kept {
    pub(super) change: Change,
    /// See [`Named::at`].
    pub(super) at: (u64, u64),
    /// Its number in its transaction, where changes are counted.
    pub(super) number: Option<u64>,
    pub(super) bytes: usize,
}

impl LoggedTransaction {
    /// Whether a record of this time belongs to a run before the last one.
    fn is_of_earlier_run(&self, written_ms: i64) -> bool {
        self.has_several_runs && self.run_ms.is_some_and(|run_ms| written_ms < run_ms)
    }

    /// Whether a record of this time belongs to the run that has ended, or to an earlier one.
    fn is_of_ended_run(&self, written_ms: i64) -> bool {
        let is_in_time = |end_ms: i64| written_ms <= end_ms.saturating_add(SAME_RUN_MS);
        matches!(self.end, Some(End::Numbers { written_ms, .. }) if !self.has_several_runs || is_in_time(written_ms))
    }

    pub(super) fn count_again(&mut self) {
        self.counted = self.numbers.values().filter(|written_ms| self.is_of_ended_run(**written_ms)).count() as u64;
    }

    /// Whether an END record belongs to a run before the last BEGIN.
    pub(super) fn is_before_beginning(&self, part: &str, written_ms: i64) -> bool {
        self.begin_part != part && self.is_of_earlier_run(written_ms)
    }

    /// Begins it, perhaps again, and returns how many numbers are no longer kept.
    pub(super) fn begin(&mut self, part: &str, written_ms: i64, is_split: bool) -> usize {
        let known = self.numbers.len();
        if !is_split {
            self.numbers.clear();
            self.end = None;
        } else {
            let run_ms = written_ms.saturating_sub(SAME_RUN_MS);
            let is_ended = |end: &End| matches!(end, End::Numbers { written_ms, .. } if *written_ms >= run_ms);
            self.end = self.end.filter(|end| self.end_part != part && is_ended(end));
            self.has_several_runs |= self.run_ms.replace(run_ms).is_some();
            self.begin_part = part.to_owned();
            self.forget_earlier_runs();
        }
        self.count_again();
        known - self.numbers.len()
    }

    fn forget_earlier_runs(&mut self) {
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.retain(|_, written_ms| !self.is_of_earlier_run(*written_ms));
        self.numbers = numbers;
    }

    /// Counts a change, and rejects one before which others are missing, as their numbers say.
    pub(super) fn count(&mut self, named: &Named, written_ms: i64) -> Result<(), FeedError> {
        match named.order {
            Order::Counted(_) if self.is_of_earlier_run(written_ms) => {}
            Order::Counted(number) => {
                let last_ms = self.numbers.get(&number).copied();
                if last_ms.is_none_or(|last_ms| last_ms < written_ms) {
                    self.numbers.insert(number, written_ms);
                    self.counted -= u64::from(last_ms.is_some_and(|last_ms| self.is_of_ended_run(last_ms)));
                    self.counted += u64::from(self.is_of_ended_run(written_ms));
                }
            }
            Order::UntilLast(Some(number)) if number > self.numbered => {
                let why = format!("the log does not have change {} of transaction {}", self.numbered, named.name);
                return Err(FeedError::invalid(why).hint(begin_again()));
            }
            Order::UntilLast(number) if number.is_none_or(|number| number == self.numbered) => self.numbered += 1,
            _ => {}
        }
        Ok(())
    }

    /// Keeps a change, unless it is there already: a producer that was killed writes changes again.
    pub(super) fn insert(&mut self, kept: Kept) -> bool {
        let (first, second) = kept.at;
        let place = (first, second, false, 0)..=(first, second, true, usize::MAX);
        let same = self.changes.range(place).map(|(_, other)| other).find(|other| other.change == kept.change);
        if let Some(same) = same {
            if same.number != kept.number {
                self.has_several_runs = true;
                self.forget_earlier_runs();
                self.count_again();
            }
            return false;
        }
        let is_insert = matches!(&kept.change, Change::Row(RowChange { images: Images::Insert(_), .. }));
        self.changes.insert((first, second, is_insert, self.changes.len()), kept);
        true
    }
}

/// What to do about a log that does not have all changes.
pub(super) fn begin_again() -> String {
    format!("let the producer begin with a new log, and {COPY_ANEW}")
}
