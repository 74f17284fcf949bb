//! Prepared queries: texts that a graph keeps under names, with the types of what they are called with.
//!
//! They are in the manifest, so that a reader has them with the version, and a call needs no request for them. The manifest is
//! read by every open, which is why they are bounded: all of them together are smaller than its list of segments may be.
//!
//! The format does not know the language of a text. It is checked where it is saved.

use std::collections::{BTreeMap, HashSet};

use crate::{FormatError, PropertyType, ScalarType};

/// The longest text, in bytes.
pub const QUERY_BYTES_MAX: usize = 16 << 10;

/// All prepared queries of a graph together, in bytes.
pub const QUERIES_BYTES_MAX: usize = 64 << 10;

/// The longest name of a query or a parameter, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// What an edition or a parameter takes besides its texts, in bytes: so that empty ones are bounded, too.
const ENTRY_BYTES: usize = 16;

/// The prepared queries of a graph, by their names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PreparedQueries(pub BTreeMap<String, PreparedQuery>);

/// The texts that a name has had and that were not deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PreparedQuery {
    /// The number that was given last. It is not given again while the name exists.
    pub last: u32,
    /// At least one, by ascending number. The name alone means the last of them.
    pub editions: Vec<QueryEdition>,
}

/// A text, as it was saved under a name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueryEdition {
    /// Its number, from 1.
    pub number: u32,
    /// The query.
    pub text: String,
    /// What it is called with.
    pub parameters: Vec<QueryParameter>,
    /// What it is for, in the words of who saved it.
    pub description: String,
    /// When it was saved, in milliseconds since 1970.
    pub saved_unix_ms: u64,
}

/// A name in a text that a call gives a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryParameter {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub kind: PropertyType,
    /// Its value if a call gives none, as JSON.
    pub default: Option<String>,
}

impl PreparedQueries {
    /// The edition that a call means: `NAME` or `NAME@NUMBER`.
    pub fn find(&self, call: &str) -> Option<(&str, &QueryEdition)> {
        let (name, number) = match call.split_once('@') {
            Some((name, number)) => (name, Some(number.parse::<u32>().ok()?)),
            None => (call, None),
        };
        let (name, query) = self.0.get_key_value(name)?;
        let edition = match number {
            Some(number) => query.editions.iter().find(|edition| edition.number == number),
            None => query.editions.last(),
        };
        Some((name, edition?))
    }

    /// Saves a text under a name, and returns the number that it gets. The number that it brings does not count.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if a name or a type cannot be, or the texts are too long.
    pub fn save(&mut self, name: &str, edition: QueryEdition) -> Result<u32, FormatError> {
        let query = self.0.entry(name.to_owned()).or_default();
        let number = query.last.checked_add(1).ok_or_else(|| invalid(format!("query {name:?} has no number left")))?;
        query.last = number;
        query.editions.push(QueryEdition { number, ..edition });
        self.check()?;
        Ok(number)
    }

    /// Deletes what a call means: `NAME` all editions of it, `NAME@NUMBER` one. Returns whether there was something.
    pub fn delete(&mut self, call: &str) -> bool {
        let Some((name, number)) = call.split_once('@') else { return self.0.remove(call).is_some() };
        let (Ok(number), Some(query)) = (number.parse::<u32>(), self.0.get_mut(name)) else { return false };
        let before = query.editions.len();
        query.editions.retain(|edition| edition.number != number);
        let is_less = query.editions.len() < before;
        if query.editions.is_empty() {
            self.0.remove(name);
        }
        is_less
    }

    /// Checks names, numbers, types and sizes.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] with the query at fault.
    pub fn check(&self) -> Result<(), FormatError> {
        let mut bytes = 0;
        for (name, query) in &self.0 {
            check_name(name)?;
            bytes += name.len() + ENTRY_BYTES;
            let numbers = query.editions.iter().map(|edition| edition.number);
            if !numbers.clone().is_sorted_by(|a, b| a < b)
                || numbers.clone().next().is_none_or(|first| first == 0)
                || numbers.clone().next_back().is_none_or(|last| last > query.last)
            {
                let last = query.last;
                return Err(invalid(format!("the numbers of query {name:?} do not ascend from 1 up to {last}")));
            }
            for edition in &query.editions {
                edition.check(name)?;
                bytes += edition.bytes();
            }
        }
        if bytes > QUERIES_BYTES_MAX {
            return Err(invalid(format!(
                "the prepared queries of a graph have {QUERIES_BYTES_MAX} bytes at most, and these have {bytes}: delete old ones"
            )));
        }
        Ok(())
    }
}

impl QueryEdition {
    fn bytes(&self) -> usize {
        let of_parameter = |parameter: &QueryParameter| {
            parameter.name.len() + parameter.default.as_ref().map_or(0, String::len) + ENTRY_BYTES
        };
        let parameters: usize = self.parameters.iter().map(of_parameter).sum();
        self.text.len() + self.description.len() + parameters + ENTRY_BYTES
    }

    fn check(&self, name: &str) -> Result<(), FormatError> {
        if self.text.len() > QUERY_BYTES_MAX {
            let bytes = self.text.len();
            return Err(invalid(format!(
                "the text of query {name:?} has {bytes} bytes; {QUERY_BYTES_MAX} is the most"
            )));
        }
        if self.description.contains(char::is_control) {
            return Err(invalid(format!("the description of query {name:?} is not one line of text")));
        }
        let mut names = HashSet::new();
        for parameter in &self.parameters {
            let of = |why: &str| invalid(format!("parameter {:?} of query {name:?} {why}", parameter.name));
            if !is_identifier(&parameter.name) {
                return Err(of("cannot be a name in a query: it has letters, digits and _, and begins with no digit"));
            }
            if !names.insert(&parameter.name) {
                return Err(of("is there twice"));
            }
            if let PropertyType::List(item) = parameter.kind
                && !matches!(item, ScalarType::String | ScalarType::Int64)
            {
                return Err(of("is a list of something else than string or int64"));
            }
        }
        Ok(())
    }
}

/// A name is one line of text that is not taken for a number, and has no `@`, which stands before the number of an edition.
fn check_name(name: &str) -> Result<(), FormatError> {
    let is_bad = name.trim().is_empty()
        || name.len() > NAME_BYTES_MAX
        || name.parse::<u64>().is_ok()
        || name.contains(|letter: char| letter.is_control() || letter == '@');
    match is_bad {
        true => Err(invalid(format!(
            "{name:?} cannot be the name of a query: that is one line of 1 to {NAME_BYTES_MAX} bytes without @, and not a number"
        ))),
        false => Ok(()),
    }
}

fn is_identifier(name: &str) -> bool {
    name.len() <= NAME_BYTES_MAX
        && name.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
        && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
}

fn invalid(why: String) -> FormatError {
    FormatError::Invalid(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edition(text: &str) -> QueryEdition {
        QueryEdition { text: text.into(), ..QueryEdition::default() }
    }

    #[test]
    fn numbers_are_not_given_again() {
        let mut queries = PreparedQueries::default();
        assert_eq!([queries.save("team", edition("a")), queries.save("team", edition("b"))], [Ok(1), Ok(2)]);
        assert_eq!(queries.find("team").map(|(name, found)| (name, &*found.text)), Some(("team", "b")));
        assert_eq!(queries.find("team@1").map(|(_, found)| &*found.text), Some("a"));
        assert!(["team@3", "team@x", "other", "team@"].iter().all(|call| queries.find(call).is_none()));
        assert!(queries.delete("team@2") && !queries.delete("team@2") && !queries.delete("other"));
        assert_eq!(queries.find("team").map(|(_, found)| found.number), Some(1));
        assert_eq!(queries.save("team", edition("c")), Ok(3));
        assert!(queries.delete("team@1") && queries.delete("team@3"));
        assert_eq!(queries, PreparedQueries::default());
        assert_eq!(queries.save("team", edition("d")), Ok(1));
    }

    #[test]
    fn what_cannot_be_saved_is_rejected() {
        let rejected =
            |name: &str, edition: QueryEdition| PreparedQueries::default().save(name, edition).unwrap_err().to_string();
        for name in ["", " ", "7", "a@1", "a\nb", &"a".repeat(256)] {
            assert!(rejected(name, edition("g.V()")).contains("cannot be the name of a query"), "{name:?}");
        }
        assert!(rejected("a", edition(&"x".repeat(QUERY_BYTES_MAX + 1))).contains("16385 bytes"));
        let with = |parameters: &[(&str, PropertyType)]| {
            let parameter = |(name, kind): &(&str, PropertyType)| QueryParameter {
                name: (*name).into(),
                kind: *kind,
                default: None,
            };
            QueryEdition { parameters: parameters.iter().map(parameter).collect(), ..QueryEdition::default() }
        };
        let text = PropertyType::Scalar(ScalarType::String);
        for name in ["", "1a", "a b", "a-b"] {
            assert!(rejected("a", with(&[(name, text)])).contains("cannot be a name in a query"), "{name:?}");
        }
        assert!(rejected("a", with(&[("x", text), ("x", text)])).contains("is there twice"));
        assert!(rejected("a", with(&[("x", PropertyType::List(ScalarType::Bool))])).contains("is a list of"));
        let mut queries = PreparedQueries::default();
        let all = (0..5).map(|_| queries.save("a", edition(&"x".repeat(QUERY_BYTES_MAX)))).collect::<Vec<_>>();
        assert!(all[2].is_ok() && all[4].as_ref().unwrap_err().to_string().contains("65536 bytes at most"));
    }
}
