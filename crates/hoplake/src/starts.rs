//! Vertices as a user names them: by key, or by a condition.
//!
//! Look-ups of keys and searches by conditions do not depend on each other, so all starts of a query take the waves of the longest of
//! them. A condition may find any number of vertices; where a query is about a single one, more than one is an error.

use std::{collections::HashMap, sync::Arc};

use futures::{StreamExt, TryStreamExt, future::try_join, stream};
use hoplake_engine::{
    Condition, Expected, Frontier, Held, label_text, split_label,
    traversal::{Limits, Traversal},
    vertex_text,
};
use hoplake_format::{Key, LabelId, VertexId};

use crate::{Error, ErrorKind, Query, ScanRequest};

/// Searches at a time: each holds what it reads ahead.
const SEARCHES: usize = 16;

/// Searches of a query, at most: each may read a column of all vertices of its label.
const SEARCHES_MAX: usize = 256;

/// Vertices as a user names them: one by label and key, or all of a label that match a condition.
///
/// ```
/// use hoplake::{Condition, StartKey};
///
/// assert_eq!("Person:933".parse::<StartKey>()?, StartKey::key("Person", "933"));
/// let found = StartKey::such_that("airport", "code = AUS".parse()?);
/// assert_eq!("airport[code = AUS]".parse::<StartKey>()?, found);
/// # Ok::<(), hoplake::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartKey {
    /// The vertex with a key.
    Key {
        /// The label.
        label: String,
        /// The key, as text: its type is that of the label, which only the graph knows.
        key: String,
    },
    /// The vertices that match a condition.
    SuchThat {
        /// The label.
        label: String,
        /// The condition.
        condition: Condition,
    },
}

impl StartKey {
    /// The vertex with a key.
    pub fn key(label: impl Into<String>, key: impl Into<String>) -> Self {
        Self::Key { label: label.into(), key: key.into() }
    }

    /// The vertices that match a condition.
    pub fn such_that(label: impl Into<String>, condition: Condition) -> Self {
        Self::SuchThat { label: label.into(), condition }
    }

    /// The label.
    pub fn label(&self) -> &str {
        match self {
            Self::Key { label, .. } | Self::SuchThat { label, .. } => label,
        }
    }
}

impl std::str::FromStr for StartKey {
    type Err = Error;

    /// Reads `Person:933` or `airport[code = AUS]`; a label with a colon or bracket stands in quotes: `"a:b":933`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| {
            let shown = if text.len() > 200 { "the text".to_owned() } else { format!("{text:?}") };
            Error::new(ErrorKind::Invalid, format!("{shown} {why}"))
        };
        let (label, rest) = split_label(text).map_err(|why| wrong(&why))?;
        if let Some(key) = rest.strip_prefix(':').filter(|_| !label.is_empty()) {
            return Ok(Self::key(label, key));
        }
        match Condition::in_brackets(rest).map_err(|why| wrong(&why))?.filter(|_| !label.is_empty()) {
            Some(condition) => Ok(Self::such_that(label, condition)),
            None => Err(wrong("does not name a vertex; write LABEL:KEY, as in Person:933, or LABEL[CONDITION]")),
        }
    }
}

impl std::fmt::Display for StartKey {
    /// As it is read.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Key { label, key } => f.write_str(&vertex_text(label, key)),
            Self::SuchThat { label, condition } => write!(f, "{}[{condition}]", label_text(label)),
        }
    }
}

/// What a start stands for; at least one vertex.
pub(crate) enum Started {
    One(VertexId),
    All(Arc<Held<Frontier>>),
}

impl Started {
    pub(crate) fn vertices(&self) -> Box<dyn Iterator<Item = VertexId> + '_> {
        match self {
            Self::One(vertex) => Box::new(std::iter::once(*vertex)),
            Self::All(found) => Box::new(found.vertices()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::All(found) => found.len(),
        }
    }
}

impl Query {
    /// The vertex that each start stands for. One wave, and those of [`Self::find`] for conditions.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) that names the first that finds nothing; [`Invalid`](ErrorKind::Invalid) if a condition
    /// finds more than one vertex; as [`Self::vertex`] and [`Self::find`].
    pub async fn named(&mut self, starts: &[StartKey]) -> Result<Vec<VertexId>, Error> {
        let found = self.resolve(starts).await?;
        let single = |(start, found): (&StartKey, &Started)| match (found.len(), found.vertices().next()) {
            (1, Some(vertex)) => Ok(vertex),
            (count, _) => {
                let message = format!("{start} finds {count} vertices where one is needed; narrow the condition");
                Err(Error::new(ErrorKind::Invalid, message))
            }
        };
        starts.iter().zip(&found).map(single).collect()
    }

    /// All vertices that starts stand for, in the order of the starts. Takes the waves of [`Self::named`].
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) that names the first that finds nothing; as [`Self::vertex`] and [`Self::find`].
    pub async fn start_vertices(&mut self, starts: &[StartKey]) -> Result<Held<Vec<VertexId>>, Error> {
        let found = self.resolve(starts).await?;
        let count: usize = found.iter().map(Started::len).sum();
        let memory = self.context().hold((count * size_of::<VertexId>()) as u64)?;
        Ok(Held::new(found.iter().flat_map(Started::vertices).collect(), memory))
    }

    /// A traversal that also begins at all that starts stand for. Of its limits it keeps that on vertices: the others are those of the
    /// query, and the look-up has consumed its share of them.
    pub(crate) async fn started(
        &mut self,
        traversal: &Traversal,
        starts: &[StartKey],
    ) -> Result<Held<Traversal>, Error> {
        let found = self.start_vertices(starts).await?;
        let bytes = (traversal.starts.len() + found.len()) * size_of::<VertexId>();
        let memory = self.context().hold(bytes as u64)?;
        let starts = [&traversal.starts[..], &found[..]].concat();
        let limits = Limits { vertices_max: traversal.limits.vertices_max, ..Limits::default() };
        let traversal = Traversal { starts, hops: traversal.hops.clone(), limits, ..*traversal };
        Ok(Held::new(traversal, memory))
    }

    /// What each start stands for.
    pub(crate) async fn resolve(&mut self, starts: &[StartKey]) -> Result<Vec<Started>, Error> {
        let keys = self.parse_keys(starts)?;
        // Equal ones are one search.
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let mut searches = Vec::new();
        let mut search_of = Vec::new();
        for start in starts {
            let StartKey::SuchThat { label, condition } = start else { continue };
            let number = *numbers.entry(start.to_string()).or_insert_with(|| {
                let labels = vec![label.clone()];
                let condition = Some(condition.clone());
                searches.push(ScanRequest { labels, condition, ..ScanRequest::default() });
                searches.len() - 1
            });
            search_of.push(number);
        }
        if searches.len() > SEARCHES_MAX {
            let message = format!(
                "{} different conditions are starts, and a query may have {SEARCHES_MAX}; write one with \"or\" or \"in\"",
                searches.len()
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        // Each is a line of its own: searches do not depend on each other, nor on the look-up.
        let snapshot = self.snapshot.clone();
        let branch = self.branch.clone();
        let search = |request: ScanRequest| {
            let snapshot = snapshot.clone();
            let branch = branch.clone();
            let mut line = Query { snapshot, branch, expected: Expected::default(), vertices_max: None };
            async move { Ok::<_, Error>((line.find(&request).await?, line.branch)) }
        };
        // Collected first: a closure over the starts would not be general enough for a future that moves between threads.
        let searches: Vec<_> = searches.into_iter().map(search).collect();
        let searches = stream::iter(searches).buffered(SEARCHES).try_collect::<Vec<_>>();
        let (looked_up, found) = try_join(self.look_up(&keys), searches).await?;
        self.branch.join(found.iter().map(|(_, line)| line));
        let mut looked_up = looked_up.into_iter();
        let found: Vec<_> = found.into_iter().map(|(found, _)| Arc::new(found)).collect();
        let mut search_of = search_of.into_iter();
        let each = starts.iter().map(|start| {
            let started = match start {
                StartKey::Key { .. } => looked_up.next().flatten().map(Started::One),
                StartKey::SuchThat { .. } => search_of.next().map(|number| Started::All(found[number].clone())),
            };
            started.filter(|started| started.len() > 0).ok_or_else(|| {
                let message = format!("there is no vertex {start}");
                Error::new(ErrorKind::NotFound, message)
            })
        });
        each.collect()
    }

    /// Reads keys that are given as text, each as its label's type.
    fn parse_keys(&self, starts: &[StartKey]) -> Result<Vec<(LabelId, Key)>, Error> {
        let parse = |start: &StartKey| {
            let id = match self.label_id(start.label()) {
                Ok(id) => id,
                Err(error) => return Some(Err(error)),
            };
            let StartKey::Key { label, key: text } = start else { return None };
            let key_type = self.snapshot.schema().label(id).map(|label| label.key_type);
            let key = key_type.and_then(|key_type| Key::parse(text, key_type));
            // Every text is a valid string key, so only an int64 can be wrong.
            let wrong = || {
                let message = format!("{text:?} is not a valid key of {label}, whose keys are int64");
                Error::new(ErrorKind::Invalid, message)
            };
            Some(key.map(|key| (id, key)).ok_or_else(wrong))
        };
        starts.iter().filter_map(parse).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn starts_are_read_and_written_alike() {
        for (text, written) in [
            ("Person:933", "Person:933"),
            ("Person:a[b = 1]", "Person:a[b = 1]"),
            ("airport[code=\"AUS\"]", "airport[code = AUS]"),
            ("airport[a=1][b<2]", "airport[a = 1 and b < 2]"),
            (" airport [ a=1 or b is null ] ", "airport[a = 1 or b is null]"),
            ("'a[b':7", "\"a[b\":7"),
            ("\"a:b\"[~key = 3]", "\"a:b\"[~key = 3]"),
        ] {
            assert_eq!(text.parse::<StartKey>().unwrap().to_string(), written, "{text}");
        }
        for (text, why) in [
            ("Person", "write LABEL:KEY"),
            ("", "write LABEL:KEY"),
            ("[a = 1]", "write LABEL:KEY"),
            ("airport[]", "where a property is needed"),
            ("airport[a=1", "[ that is not closed"),
            ("airport[a=1]:7", "\":7\" at its end"),
        ] {
            let error = text.parse::<StartKey>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains(why), "{text}: {error}");
        }
        let deep = format!("a[{}b = 1{}]", "(".repeat(100), ")".repeat(100));
        assert!(deep.parse::<StartKey>().unwrap_err().to_string().contains("64 parentheses"));
        let many = format!("a{}", format!("[b = 1{}]", " or b = 1".repeat(600)).repeat(2));
        assert!(many.parse::<StartKey>().unwrap_err().to_string().contains("1000 tests"));
    }

    proptest! {
        #[test]
        fn a_start_that_is_written_is_read(label in "[ab:\\[\"' ,]{1,6}", key in "[ab:\\[\\]\"' ]{0,6}", value in ".{0,8}") {
            let condition = Condition::compare("a", crate::Comparison::Equal, value);
            for start in [StartKey::key(&label, &key), StartKey::such_that(&label, condition.clone())] {
                let text = start.to_string();
                prop_assert_eq!(text.parse::<StartKey>().map_err(|error| error.to_string()), Ok(start), "{}", text);
            }
        }
    }
}
