//! One hop, and how it is written: `out:knows,likes[creationDate>=2011-01-01]`.
//!
//! A leaf: plans, conditions, traversals and expected rows all name hops and the edges that they follow, so this knows
//! the schema, and no snapshot.

use std::{collections::BTreeSet, fmt, str::FromStr};

use hoplake_format::{Direction, EdgeTypeId, LabelId, Schema};

use crate::{Condition, EngineError, quoting};

/// In the place of labels, any.
const ANY: &str = "*";

/// Along edges, against them, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HopDirection {
    /// From source to target.
    #[default]
    Out,
    /// From target to source.
    In,
    /// Both ways; a self-loop counts twice.
    Both,
}

impl HopDirection {
    /// The directions that it follows.
    pub(crate) fn each(self) -> &'static [Direction] {
        match self {
            Self::Out => &[Direction::Out],
            Self::In => &[Direction::In],
            Self::Both => &Direction::ALL,
        }
    }
}

/// The edges of a type in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgesOf {
    /// The edge type.
    pub edge_type: EdgeTypeId,
    /// The direction in which its edges are followed.
    pub direction: Direction,
    /// The label that a hop leaves.
    pub near: LabelId,
    /// The label that it reaches.
    pub far: LabelId,
}

impl EdgesOf {
    /// The edges of a type, in a direction; `None` if the schema has no such type.
    pub(crate) fn new(schema: &Schema, edge_type: EdgeTypeId, direction: Direction) -> Option<Self> {
        let edge = schema.edge_type(edge_type)?;
        Some(Self { edge_type, direction, near: edge.near(direction), far: edge.far(direction) })
    }
}

/// One hop of a traversal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hop {
    /// The edge labels that it follows; none means any.
    pub labels: Vec<String>,
    /// In which direction.
    pub direction: HopDirection,
    /// Which edges it follows, by properties of the edge and of the vertex that it reaches; without, all.
    pub condition: Option<Condition>,
}

impl Hop {
    /// A hop along one edge label.
    pub fn along(direction: HopDirection, label: &str) -> Self {
        Self { labels: vec![label.to_owned()], direction, condition: None }
    }

    /// The same hop, along edges that match this condition, too.
    #[must_use]
    pub fn such_that(mut self, condition: Condition) -> Self {
        self.condition = Some(match self.condition {
            Some(before) => before.and(condition),
            None => condition,
        });
        self
    }

    /// The same hop from the other end.
    pub fn reversed(&self) -> Self {
        let direction = match self.direction {
            HopDirection::Out => HopDirection::In,
            HopDirection::In => HopDirection::Out,
            HopDirection::Both => HopDirection::Both,
        };
        Self { direction, ..self.clone() }
    }

    /// Whether it follows edges of this label.
    pub(crate) fn follows(&self, label: &str) -> bool {
        self.labels.is_empty() || self.labels.iter().any(|followed| followed == label)
    }

    /// The edges that it follows from vertices of a label: along them first, then against them, each in the order of
    /// edge types.
    pub(crate) fn edges_from<'a>(&'a self, schema: &'a Schema, near: LabelId) -> impl Iterator<Item = EdgesOf> + 'a {
        self.edges(schema).filter(move |of| of.near == near)
    }

    /// The labels that it can reach from vertices of these labels.
    pub fn labels_reached(&self, schema: &Schema, near: &[LabelId]) -> Vec<LabelId> {
        let mut reached = BTreeSet::new();
        for label in near {
            reached.extend(self.edges_from(schema, *label).map(|of| of.far));
        }
        reached.into_iter().collect()
    }

    /// The edge types and directions that it follows from vertices of these labels and that have properties.
    pub fn edge_tables(&self, schema: &Schema, near: &[LabelId]) -> Vec<(EdgeTypeId, Direction)> {
        let followed = near.iter().flat_map(|label| self.edges_from(schema, *label));
        let edge_type = |of: &EdgesOf| schema.edge_type(of.edge_type);
        let kept = followed.filter(|of| edge_type(of).is_some_and(|edge| !edge.properties.is_empty()));
        kept.map(|of| (of.edge_type, of.direction)).collect()
    }

    /// The edge types and directions that it follows from vertices of these labels.
    pub fn edges_followed(&self, schema: &Schema, near: &[LabelId]) -> Vec<(EdgeTypeId, Direction)> {
        let followed = near.iter().flat_map(|label| self.edges_from(schema, *label));
        followed.map(|of| (of.edge_type, of.direction)).collect()
    }

    /// The edges that it follows, from wherever.
    pub(crate) fn edges<'a>(&'a self, schema: &'a Schema) -> impl Iterator<Item = EdgesOf> + 'a {
        self.direction.each().iter().flat_map(move |direction| {
            let followed = schema.edge_types().filter(|(_, edge)| self.follows(&edge.label));
            followed.filter_map(|(id, _)| EdgesOf::new(schema, id, *direction))
        })
    }
}

impl FromStr for Hop {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self, EngineError> {
        let wrong = |why: &str| {
            EngineError::Invalid(format!(
                "{text:?} is not a valid hop: it {why}; write out, in or both, then labels and a condition: \
                 out:knows,likes[since >= 2011-01-01]"
            ))
        };
        let head_end = text.find([':', '[']).unwrap_or(text.len());
        let (direction, mut rest) = text.split_at(head_end);
        let direction = match direction.trim() {
            "out" => HopDirection::Out,
            "in" => HopDirection::In,
            "both" => HopDirection::Both,
            _ => return Err(wrong("does not begin with a direction")),
        };
        let mut hop = Self { direction, ..Self::default() };
        if let Some(labels) = rest.strip_prefix(':') {
            rest = hop.read_labels(labels).map_err(|why| wrong(&why))?;
        }
        hop.condition = Condition::in_brackets(rest).map_err(|why| wrong(&why))?;
        Ok(hop)
    }
}

impl Hop {
    /// Reads labels up to the first condition, and returns what is left.
    fn read_labels<'a>(&mut self, mut text: &'a str) -> Result<&'a str, String> {
        loop {
            let quoted = text.trim_start().starts_with(['"', '\'']);
            let (label, rest) = quoting::take(text, |rest| rest.starts_with([',', '[']))?;
            // In quotes, `*` is the name of a label.
            if quoted || !(label.is_empty() || label == ANY) {
                self.labels.push(label.into_owned());
            }
            match rest.strip_prefix(',') {
                Some(rest) => text = rest,
                None => return Ok(rest),
            }
        }
    }
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.direction {
            HopDirection::Out => "out",
            HopDirection::In => "in",
            HopDirection::Both => "both",
        })?;
        for (at, label) in self.labels.iter().enumerate() {
            f.write_str(if at == 0 { ":" } else { "," })?;
            match label.is_empty() || label == ANY {
                true => quoting::write_quoted(label, f)?,
                false => quoting::write(label, &[',', '['], f)?,
            }
        }
        self.condition.iter().try_for_each(|condition| write!(f, "[{condition}]"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Comparison;

    #[test]
    fn hops_are_read_and_written_alike() {
        for text in ["out:knows", "in", "both:a,b", "out:knows[since >= 2011-01-01 and name = x]"] {
            assert_eq!(text.parse::<Hop>().unwrap().to_string(), text);
        }
        for text in ["out:*[a=1,b<2]", "out[a=1][b<2]", "out:[ a=1 AND b<2 ]"] {
            let hop: Hop = text.parse().unwrap();
            assert_eq!(hop.to_string(), "out[a = 1 and b < 2]", "{text}");
        }
        for (text, why) in [
            ("", "does not begin with a direction"),
            ("knows", "does not begin with a direction"),
            ("up:knows", "does not begin with a direction"),
            ("out:knows[a=1", "[ that is not closed"),
            ("out:knows[a]", "has \"]\" where a comparison"),
            ("out:knows[]", "has \"]\" where a property"),
            ("out:knows[a=1]x", "\"x\" at its end"),
            ("out:knows[a=1)]", "has \")]\" behind a complete test"),
            ("out:\"knows", "\" that is not closed"),
            ("out:knows[a=\"b]", "\" that is not closed"),
            ("out:knows[a=\"b\"c]", "after a closing \""),
        ] {
            let error = text.parse::<Hop>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn quotes_protect_what_would_mean_something() {
        let hop: Hop = "out:\"a:b\",'x,y[z',\"*\"[name=\"a,b]\"][\"p=q\"!='it''s', n=5'11\"]".parse().unwrap();
        assert_eq!(hop.labels, ["a:b", "x,y[z", "*"]);
        let [name, pq] = [("name", Comparison::Equal, "a,b]"), ("p=q", Comparison::NotEqual, "it's")]
            .map(|(property, comparison, value)| Condition::compare(property, comparison, value));
        let n = Condition::compare("n", Comparison::Equal, "5'11\"");
        assert_eq!(hop.condition, Some(name.and(pq).and(n)));
    }

    proptest::proptest! {
        #[test]
        fn a_hop_that_is_written_is_read(
            labels in proptest::collection::vec("[ab:,*\\[\"' \\]=]{0,4}", 0..3),
            condition in proptest::option::of(crate::read::condition::tests::conditions()),
        ) {
            let hop = Hop { labels, direction: HopDirection::Both, condition };
            proptest::prop_assert_eq!(hop.to_string().parse::<Hop>().unwrap(), hop);
        }
    }
}
