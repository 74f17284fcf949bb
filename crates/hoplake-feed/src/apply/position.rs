//! Up to where a source was read, as the graph keeps it.
//!
//! The text of a position is that of the source, such as `0-1-18`, and then what else belongs to the same commit: `+01J…` names
//! the object that has the edges which wait, `~1764118088000` is when the source committed the last transaction before it, in
//! milliseconds since 1970, `@1f2e3d4c` the process that wrote it. `copying` says that a first copy has been loaded, and
//! its end is not there yet.

use std::fmt;

use crate::FeedError;

/// Up to where a source was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Position {
    /// The source's own position.
    pub of_source: String,
    /// Whether the first copy is not complete.
    pub is_copying: bool,
    /// The object with what waits, if something does.
    pub state: Option<String>,
    /// When the source committed the last transaction before it, in milliseconds since 1970; of a first copy, when that began.
    pub committed_unix_ms: Option<i64>,
    /// Which process wrote it: of two feeds that read the same, each knows its own commits.
    pub writer: String,
}

const COPYING: &str = "copying";

/// A name for a process, for the positions that it writes.
pub fn writer() -> String {
    format!("{:08x}", fastrand::u32(..))
}

impl Position {
    /// A position of the source, and nothing else.
    pub fn new(of_source: impl Into<String>) -> Self {
        Self { of_source: of_source.into(), ..Self::default() }
    }

    /// Whether another position differs in its writer at most.
    pub(crate) fn is_but_for_writer(&self, other: &Self) -> bool {
        Self { writer: other.writer.clone(), ..self.clone() } == *other
    }

    /// Reads what [`Display`](fmt::Display) writes.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) if something else wrote it.
    pub fn parse(text: &str) -> Result<Self, FeedError> {
        let mut words = text.split(' ');
        let mut position = Self::new(words.next().unwrap_or_default());
        for word in words {
            if let Some(state) = word.strip_prefix('+') {
                position.state = Some(state.to_owned());
            } else if let Some(ms) = word.strip_prefix('~').and_then(|ms| ms.parse().ok()) {
                position.committed_unix_ms = Some(ms);
            } else if let Some(writer) = word.strip_prefix('@') {
                writer.clone_into(&mut position.writer);
            } else if word == COPYING {
                position.is_copying = true;
            } else {
                let why = format!("the graph's position {text:?} was not written by a feed, or by a newer one");
                return Err(FeedError::invalid(why));
            }
        }
        Ok(position)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.of_source)?;
        if self.is_copying {
            write!(f, " {COPYING}")?;
        }
        if let Some(state) = &self.state {
            write!(f, " +{state}")?;
        }
        if let Some(ms) = self.committed_unix_ms {
            write!(f, " ~{ms}")?;
        }
        if !self.writer.is_empty() {
            write!(f, " @{}", self.writer)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_are_written() {
        for text in [
            "0-1-18 ~1764118088000 @1f2e3d4c",
            "0-1-18",
            "0-1-18 copying",
            "0/16B3748 +01JABC ~-1",
            "0-1-18 copying +01JABC",
        ] {
            assert_eq!(Position::parse(text).unwrap().to_string(), text);
        }
        assert!(Position::parse("0-1-18 else").is_err());
        assert!(Position::parse("0-1-18 ~else").is_err());
    }
}
