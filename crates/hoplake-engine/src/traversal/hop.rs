//! One hop, and how it is written: `out:knows,likes[creationDate>=2011-01-01]`.

use std::{fmt, str::FromStr};

use crate::{EngineError, Predicate};

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

/// One hop of a traversal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hop {
    /// The edge labels that it follows; none means any.
    pub labels: Vec<String>,
    /// In which direction.
    pub direction: HopDirection,
    /// Conditions on the edge or the vertex reached; all must be fulfilled.
    pub predicates: Vec<Predicate>,
}

impl Hop {
    /// A hop along one edge label.
    pub fn along(direction: HopDirection, label: &str) -> Self {
        Self { labels: vec![label.to_owned()], direction, predicates: Vec::new() }
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
}

impl FromStr for Hop {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self, EngineError> {
        let wrong = || {
            EngineError::Invalid(format!(
                "{text:?} is no hop; write out, in or both, then labels and conditions: out:knows,likes[since>=2011-01-01]"
            ))
        };
        let (head, conditions) = match text.split_once('[') {
            Some((head, rest)) => (head, Some(rest.strip_suffix(']').ok_or_else(wrong)?)),
            None => (text, None),
        };
        let (direction, labels) = head.split_once(':').unwrap_or((head, ""));
        let direction = match direction.trim() {
            "out" => HopDirection::Out,
            "in" => HopDirection::In,
            "both" => HopDirection::Both,
            _ => return Err(wrong()),
        };
        let labels = labels.split(',').map(str::trim).filter(|label| !label.is_empty() && *label != "*");
        let conditions = conditions.into_iter().flat_map(|conditions| conditions.split("]["));
        let predicates = conditions.flat_map(|conditions| conditions.split(',')).map(str::parse);
        Ok(Self {
            labels: labels.map(str::to_owned).collect(),
            direction,
            predicates: predicates.collect::<Result<_, _>>()?,
        })
    }
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.direction {
            HopDirection::Out => "out",
            HopDirection::In => "in",
            HopDirection::Both => "both",
        })?;
        if !self.labels.is_empty() {
            write!(f, ":{}", self.labels.join(","))?;
        }
        self.predicates.iter().try_for_each(|predicate| write!(f, "[{predicate}]"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_are_read_and_written_alike() {
        for text in ["out:knows", "in", "both:a,b", "out:knows[since>=2011-01-01][name=x]"] {
            assert_eq!(text.parse::<Hop>().unwrap().to_string(), text);
        }
        let hop: Hop = "out:*[a=1,b<2]".parse().unwrap();
        assert_eq!((hop.labels.len(), hop.predicates.len()), (0, 2));
        for text in ["", "knows", "up:knows", "out:knows[a=1", "out:knows[a]"] {
            assert!(text.parse::<Hop>().is_err(), "{text}");
        }
    }
}
