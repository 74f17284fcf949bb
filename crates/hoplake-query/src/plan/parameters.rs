//! Parameters of operators, with traversals within some of them.

use std::collections::HashMap;

use super::{By, Name, Predicate, Steps};
use crate::{
    error::QueryError,
    tokens::{Cardinality, Order, Pick, T, Token},
    value::{Key, Value},
};

/// What is sorted by, and in which order.
pub type Sorting = (By, Order);

/// A value that is known before the query runs, or that a traversal gives for each traverser.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    /// A value.
    Value(Value),
    /// What a traversal gives first.
    Steps(Steps),
}

/// A property that is to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct NewProperty {
    /// How many values of this name there may be.
    pub cardinality: Option<Cardinality>,
    /// Its name, or which part of the element it is.
    pub key: NewKey,
    /// Its value.
    pub value: Given,
}

/// What is written of an element.
#[derive(Debug, Clone, PartialEq)]
pub enum NewKey {
    /// A property.
    Name(Name),
    /// Its id or label, when it is added.
    Token(T),
    /// The property whose name a traversal gives.
    Steps(Steps),
    /// All entries of a map, whose keys are names and tokens.
    Entries,
}

/// An end of an edge that is added.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// The traverser's own vertex.
    Here,
    /// What was met under a label.
    Labelled(Name),
    /// What a traversal gives first.
    Steps(Steps),
    /// A vertex by its id.
    Vertex(Value),
}

/// When a traversal of [`Choose`](crate::operators::branches::Choose) is taken.
#[derive(Debug, Clone, PartialEq)]
pub enum Case {
    /// If the choice equals a value.
    Equal(Value),
    /// If the choice matches a predicate.
    Test(Predicate),
    /// If a traversal gives something for the choice.
    Steps(Steps),
    /// As a token says.
    Pick(Pick),
}

/// What decides which branches are taken.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    /// Whether a traversal gives something.
    Productive(Steps),
    /// A predicate on the traverser.
    Test(Predicate),
    /// What is computed of the traverser.
    By(By),
}

/// Which part of a path a step is about, and what of each of its items.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PathPart {
    /// From the step with this label on.
    pub from: Option<Name>,
    /// Up to the step with this label.
    pub to: Option<Name>,
    /// In turn.
    pub by: Vec<By>,
}

/// What a merge takes a map from.
#[derive(Debug, Clone, PartialEq)]
pub struct Merging {
    /// What is sought.
    pub sought: Given,
    /// What is added where nothing was found.
    pub on_create: Option<MergeMap>,
    /// What is changed where something was found; a traversal gives it from there.
    pub on_match: Option<MergeMap>,
    /// The source of the edge.
    pub out_vertex: Option<Given>,
    /// The target of the edge.
    pub in_vertex: Option<Given>,
}

/// A map of properties, and their cardinalities.
#[derive(Debug, Clone, PartialEq)]
pub struct MergeMap {
    /// The map.
    pub map: Given,
    /// Of some properties.
    pub cardinalities: HashMap<Name, Cardinality>,
    /// Of all others.
    pub otherwise: Option<Cardinality>,
}

impl MergeMap {
    /// How many values of a name there may be.
    pub fn cardinality(&self, name: &str) -> Option<Cardinality> {
        self.cardinalities.get(name).copied().or(self.otherwise)
    }

    /// Rejects entries of an `onCreate` that have other values than the map that is sought: what is added would not be found, and be
    /// added again by each merge.
    ///
    /// Directions are left out. Their vertices have several forms, and are compared once they are known.
    ///
    /// # Errors
    /// [`QueryError::Type`].
    pub fn reject_overrides(&self, sought: &[(Value, Value)], create: &[(Value, Value)]) -> Result<(), QueryError> {
        if create.is_empty() {
            return Ok(());
        }
        let sought: HashMap<Key<'_>, &Value> = sought.iter().map(|(key, value)| (Key(key), value)).collect();
        for (key, value) in create {
            let name = match key {
                Value::Token(Token::Direction(_)) => continue,
                Value::Text(name) => Some(name),
                _ => None,
            };
            let Some(other) = sought.get(&Key(key)) else { continue };
            // One of a cardinality is no single value any more.
            let is_several = name.is_some_and(|name| self.cardinality(name).is_some());
            if is_several || Key(value) != Key(other) {
                return Err(QueryError::wrong_type(format!(
                    "option(onCreate) cannot override values from merge() argument: ({key}, {value})"
                )));
            }
        }
        Ok(())
    }
}

/// A condition of a loop.
#[derive(Debug, Clone, PartialEq)]
pub enum Until {
    /// Always.
    Always,
    /// After some rounds.
    Times(u64),
    /// If a traversal gives something.
    Steps(Steps),
    /// If a predicate holds.
    Test(Predicate),
}
