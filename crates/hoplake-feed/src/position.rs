//! Up to where a source was read, as the graph keeps it.
//!
//! The text of a position is that of the source, such as `0-1-18`, and then what else belongs to the same commit: `+ 01J…` names
//! the object that has the edges which wait. `copying` says that a first copy has been loaded, and its end is not there yet.

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
}

const COPYING: &str = "copying";

impl Position {
    /// A position of the source, and nothing else.
    pub fn new(of_source: impl Into<String>) -> Self {
        Self { of_source: of_source.into(), ..Self::default() }
    }

    /// Reads what [`Display`](fmt::Display) writes.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) if something else wrote it.
    pub fn parse(text: &str) -> Result<Self, FeedError> {
        let mut words = text.split(' ');
        let mut position = Self::new(words.next().unwrap_or_default());
        for word in words {
            match word.strip_prefix('+') {
                Some(state) => position.state = Some(state.to_owned()),
                None if word == COPYING => position.is_copying = true,
                None => {
                    let why = format!("the graph's position {text:?} was not written by a feed, or by a newer one");
                    return Err(FeedError::invalid(why));
                }
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
        self.state.as_ref().map_or(Ok(()), |state| write!(f, " +{state}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_are_written() {
        for text in ["0-1-18", "0-1-18 copying", "0/16B3748 +01JABC", "0-1-18 copying +01JABC"] {
            assert_eq!(Position::parse(text).unwrap().to_string(), text);
        }
        assert!(Position::parse("0-1-18 else").is_err());
    }
}
