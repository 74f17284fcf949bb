//! Planning as the work of a query: it counts against the query's memory, and ends at its deadline.
//!
//! A text of a megabyte has a hundred thousand steps. A rule that looks at a traversal within another for each step that has it, or
//! copies it, does the square of that.

use hoplake_storage::{MemoryHold, PIECE_UNITS, Pace, QueryContext};

use super::pattern::{self, Failure, Pattern};
use crate::{
    deep::block_in_place_if,
    error::QueryError,
    value::{Value, value_bytes},
};

/// What a step takes: its call, itself, and what runs it.
pub const STEP_BYTES: u64 = 1 << 10;

/// What a test of a condition takes, with its part of the formula.
const TEST_BYTES: u64 = 128;

/// How many times a value is there while its step is made: those of sets and maps are in a table, too, which finds equal ones.
const VALUE_COPIES: u64 = 2;

/// What the program of a regular expression may take: that of `\w{100}` takes 1.8 MB.
const PROGRAM_BYTES: [usize; 3] = [64 << 10, 1 << 20, 10 << 20];

/// Small regular expressions of a plan that are compiled without giving up the thread. One takes up to a few milliseconds.
const PATTERNS_IN_PLACE: usize = 2;

/// Units of work that a step is.
const STEP_UNITS: u64 = 16;

/// Units of work that an argument is.
const ARGUMENT_UNITS: u64 = 8;

/// The work of a plan.
#[derive(Debug)]
pub struct Work {
    context: QueryContext,
    hold: MemoryHold,
    pace: Pace,
    /// Steps that were looked at.
    looked: u64,
    /// Regular expressions that were compiled.
    patterns: usize,
    /// Why there is no more of it.
    failure: Option<QueryError>,
}

impl Work {
    /// The work of a query.
    ///
    /// # Errors
    /// The query has no memory left.
    pub fn new(context: &QueryContext) -> Result<Self, QueryError> {
        let hold = context.hold(0)?;
        let pace = context.pace();
        Ok(Self { context: context.clone(), hold, pace, looked: 0, patterns: 0, failure: None })
    }

    /// Brings the deadline forward.
    pub fn give_time(&self, timeout_ms: u64) {
        // 0 means unlimited, as in the reference.
        if timeout_ms > 0 {
            self.context.give_time_at_most(timeout_ms);
        }
    }

    /// Notes steps that are looked at. After a failure there is nothing more to do.
    pub fn looks_at(&mut self, steps: usize) -> bool {
        self.looked += steps as u64;
        if self.failure.is_none() {
            self.failure = self.pace.check(1 + steps as u64 * STEP_UNITS).err().map(Into::into);
        }
        self.failure.is_none()
    }

    /// Notes steps that are looked at, and tests that were found in them. After a failure there is nothing more to do.
    pub(super) fn finds(&mut self, steps: usize, tests: usize) -> bool {
        self.looks_at(steps) && self.grows(tests as u64 * TEST_BYTES)
    }

    /// Notes values that are copied within a plan, before they are. After a failure there is nothing more to do.
    pub(super) fn repeats(&mut self, values: &[Value]) -> bool {
        let bytes: usize = values.iter().map(value_bytes).sum();
        self.looks_at(values.len()) && self.grows(bytes as u64)
    }

    fn grows(&mut self, bytes: u64) -> bool {
        let bytes = self.hold.bytes().saturating_add(bytes);
        self.failure = self.context.resize(&mut self.hold, bytes).err().map(Into::into);
        self.failure.is_none()
    }

    /// Notes arguments that become values.
    ///
    /// # Errors
    /// A limit, if the query's time is used up.
    pub fn converts(&mut self, arguments: usize) -> Result<(), QueryError> {
        Ok(self.pace.check(arguments as u64 * ARGUMENT_UNITS)?)
    }

    /// Compiles a regular expression. What it takes counts before it is there: its program as the smallest of some sizes that is enough,
    /// since how large one will be cannot be asked.
    ///
    /// # Errors
    /// A limit; that it is not a regular expression.
    pub fn compiles(&mut self, text: &str) -> Result<Pattern, QueryError> {
        let length = text.len();
        if length > pattern::LENGTH_MAX {
            return Err(QueryError::invalid(format!(
                "a regular expression of {length} bytes: {} is the most. Write several, joined with `or`",
                pattern::LENGTH_MAX
            )));
        }
        self.patterns += 1;
        let has_many = self.patterns > PATTERNS_IN_PLACE;
        let before = self.hold.bytes();
        let wrong =
            |why: &str| QueryError::invalid(format!("{text:?} is not a regular expression that is supported: {why}"));
        for bytes in PROGRAM_BYTES {
            // Twice: while it is made it is there in two forms.
            self.context.resize(&mut self.hold, before + (length * pattern::PARSED_BYTES + 2 * bytes) as u64)?;
            self.pace.check(PIECE_UNITS)?;
            let hold = |taken: usize| Ok(self.context.resize(&mut self.hold, before + taken as u64)?);
            let compile = || Pattern::compile(text, bytes, hold);
            match block_in_place_if(has_many || bytes > PROGRAM_BYTES[0], compile)? {
                Ok(pattern) => return Ok(pattern),
                Err(Failure::Wrong(why)) => return Err(wrong(&why)),
                Err(Failure::TooLarge) => {}
            }
        }
        Err(wrong(&format!("its program takes more than {} bytes", PROGRAM_BYTES[PROGRAM_BYTES.len() - 1])))
    }

    /// Notes steps that are made, before they are. After a failure there is nothing more to do.
    pub fn makes(&mut self, steps: usize) -> bool {
        self.looks_at(steps) && self.grows(steps as u64 * STEP_BYTES)
    }

    /// Notes bytes that a plan takes, before it does.
    ///
    /// # Errors
    /// A limit, if they do not fit the query's memory.
    pub fn takes(&mut self, bytes: usize) -> Result<(), QueryError> {
        let bytes = self.hold.bytes().saturating_add(bytes as u64);
        Ok(self.context.resize(&mut self.hold, bytes)?)
    }

    /// Notes bytes of values that a plan has, before they are copied into it.
    ///
    /// # Errors
    /// A limit, if they do not fit the query's memory.
    pub fn copies(&mut self, bytes: usize) -> Result<(), QueryError> {
        let bytes = VALUE_COPIES.saturating_mul(bytes as u64).saturating_add(self.hold.bytes());
        Ok(self.context.resize(&mut self.hold, bytes)?)
    }

    /// What has failed.
    ///
    /// # Errors
    /// A limit, if the query's memory or time is used up.
    pub fn check(&mut self) -> Result<(), QueryError> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// How many steps were looked at, each as often as it was.
    pub fn looked(&self) -> u64 {
        self.looked
    }

    /// What the plan takes.
    pub fn bytes(&self) -> u64 {
        self.hold.bytes()
    }
}
