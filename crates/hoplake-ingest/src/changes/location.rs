//! The place of a change in its file.

use std::{fmt, sync::Arc};

/// Where a change is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    file: Arc<str>,
    unit: &'static str,
    number: u64,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} {}", self.file, self.unit, self.number)
    }
}

impl SourceLocation {
    /// A line of a text, from 1.
    pub(super) fn line(file: &Arc<str>, number: u64) -> Self {
        Self { file: file.clone(), unit: "line", number }
    }

    /// A row of any other file, from 1.
    pub(super) fn row(file: &Arc<str>, number: u64) -> Self {
        Self { file: file.clone(), unit: "row", number }
    }

    /// The line of a text file, the row of any other; from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// What is counted: `line` or `row`.
    pub fn unit(&self) -> &'static str {
        self.unit
    }

    /// The location `rows` further on.
    #[must_use]
    pub fn further(&self, rows: usize) -> Self {
        Self { number: self.number + rows as u64, ..self.clone() }
    }
}
