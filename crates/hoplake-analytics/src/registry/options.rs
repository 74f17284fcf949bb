//! Options of algorithms: what they may be, what they default to, and whether those that a user gave have an effect.

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
};

/// An option of an algorithm.
#[derive(Debug, PartialEq)]
pub struct OptionSpec {
    /// As users write it, without dashes. Options of the same name have the same kind.
    pub name: &'static str,
    /// What its value may be.
    pub kind: OptionKind,
    /// What it does, as a sentence without its full stop.
    pub help: &'static str,
    /// Its value unless the user gives one; `None` if there is none.
    pub default: Option<f64>,
    /// Another option without which it has no effect.
    pub requires: Option<&'static str>,
    /// Another option that cannot be given, too.
    pub excludes: Option<&'static str>,
}

/// What the value of an option may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    /// Exactly one vertex.
    Vertex,
    /// Any number of vertices.
    Vertices,
    /// The name of a property.
    Property,
    /// A whole number, 1 or more.
    Count,
    /// Any whole number that is not negative.
    Seed,
    /// A number from 0 to 1.
    Part,
    /// A number, 0 or more.
    NotNegative,
}

/// The value of an option, as a user gave it.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionValue {
    /// This many vertices, which the caller keeps.
    Vertices(usize),
    /// A whole number.
    Integer(u64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
}

/// What is wrong with options. The caller names options as its users write them.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionError {
    /// The algorithm has no such option.
    NoEffect(String),
    /// An option has no effect without another.
    Requires {
        /// The option.
        option: &'static str,
        /// The other one.
        required: &'static str,
    },
    /// Two options of which one can be given.
    Excludes {
        /// The option.
        option: &'static str,
        /// The other one.
        excluded: &'static str,
    },
    /// The algorithm starts at one vertex, and there is another number of them.
    OneVertex(usize),
    /// A value out of the range of its option.
    Range {
        /// The option.
        option: &'static str,
        /// The value.
        value: String,
        /// What to write instead.
        write: &'static str,
    },
}

/// Vertices at which an algorithm begins. An algorithm has at most one such option.
pub const FROM_OPTION: &str = "from";
/// The property of edges that is their weight. An algorithm has at most one such option.
pub const WEIGHT_OPTION: &str = "weight";
/// The number of vertices drawn, at which a kernel begins.
pub const SAMPLE_OPTION: &str = "sample";
/// The seed of the sample.
pub const SEED_OPTION: &str = "seed";

/// Where a search begins.
pub(crate) const FROM: OptionSpec = OptionSpec {
    name: FROM_OPTION,
    kind: OptionKind::Vertex,
    help: "The start vertex, or the vertex with which the others are compared",
    ..OptionSpec::USUAL
};
/// The size of the sample.
pub(crate) const SAMPLE: OptionSpec = OptionSpec {
    name: SAMPLE_OPTION,
    kind: OptionKind::Count,
    help: "Search from a random sample of this many vertices instead of from all",
    ..OptionSpec::USUAL
};
/// The seed of the sample.
pub(crate) const SEED: OptionSpec = OptionSpec {
    name: SEED_OPTION,
    kind: OptionKind::Seed,
    help: "The seed of the sample: the same seed draws the same vertices",
    default: Some(0.0),
    requires: Some(SAMPLE_OPTION),
    ..OptionSpec::USUAL
};

impl OptionSpec {
    /// A name and a kind, and neither a default nor another option.
    pub(crate) const USUAL: Self =
        Self { name: "", kind: OptionKind::NotNegative, help: "", default: None, requires: None, excludes: None };

    /// The maximum number of iterations of an algorithm that ends when it converges.
    pub(crate) const fn iterations(default: usize) -> Self {
        let help = "The maximum number of iterations";
        Self { name: "iterations", kind: OptionKind::Count, help, default: Some(default as f64), ..Self::USUAL }
    }

    /// The sum of changes at which iterations end.
    pub(crate) const fn tolerance(default: f64) -> Self {
        let help = "End when the sum of all changes in an iteration is at most this";
        Self { name: "tolerance", help, default: Some(default), ..Self::USUAL }
    }

    /// The property that is the weight of edges.
    pub(crate) const fn weight(help: &'static str) -> Self {
        Self { name: WEIGHT_OPTION, kind: OptionKind::Property, help, ..Self::USUAL }
    }

    pub(super) fn check(&self, given: &BTreeMap<&'static str, OptionValue>) -> Result<(), OptionError> {
        let value = given.get(self.name);
        if self.kind == OptionKind::Vertex {
            return match value {
                Some(OptionValue::Vertices(1)) => Ok(()),
                Some(OptionValue::Vertices(count)) => Err(OptionError::OneVertex(*count)),
                _ => Err(OptionError::OneVertex(0)),
            };
        }
        let Some(value) = value else { return Ok(()) };
        if let Some(required) = self.requires.filter(|required| !given.contains_key(required)) {
            return Err(OptionError::Requires { option: self.name, required });
        }
        if let Some(excluded) = self.excludes.filter(|excluded| given.contains_key(excluded)) {
            return Err(OptionError::Excludes { option: self.name, excluded });
        }
        if self.kind.contains(value) {
            return Ok(());
        }
        Err(OptionError::Range { option: self.name, value: value.to_string(), write: self.kind.range() })
    }
}

impl OptionKind {
    /// Whether an option of this kind may have a value.
    pub fn contains(self, value: &OptionValue) -> bool {
        match (self, value) {
            (Self::Vertex, OptionValue::Vertices(count)) => *count == 1,
            (Self::Vertices, OptionValue::Vertices(_)) => true,
            (Self::Property, OptionValue::Text(name)) => !name.is_empty(),
            (Self::Count, OptionValue::Integer(count)) => *count > 0,
            (Self::Seed, OptionValue::Integer(_)) => true,
            (Self::Part, OptionValue::Float(part)) => (0.0..=1.0).contains(part),
            (Self::NotNegative, OptionValue::Float(number)) => number.is_finite() && *number >= 0.0,
            _ => false,
        }
    }

    /// The values that it contains.
    pub fn range(self) -> &'static str {
        match self {
            Self::Vertex => "one vertex",
            Self::Vertices => "vertices",
            Self::Property => "the name of a property",
            Self::Count => "a whole number, 1 or more",
            Self::Seed => "a whole number, 0 or more",
            Self::Part => "a number from 0 to 1",
            Self::NotNegative => "a number, 0 or more",
        }
    }

    /// Whether its values are vertices, which the caller keeps.
    pub fn is_vertices(self) -> bool {
        matches!(self, Self::Vertex | Self::Vertices)
    }

    /// A value from text, as on a command line; `None` if an option of this kind may not have it. Vertices are not text here.
    pub fn parse(self, text: &str) -> Option<OptionValue> {
        let value = match self {
            Self::Vertex | Self::Vertices => return None,
            Self::Property => OptionValue::Text(text.to_owned()),
            Self::Count | Self::Seed => OptionValue::Integer(text.parse().ok()?),
            Self::Part | Self::NotNegative => OptionValue::Float(text.parse().ok()?),
        };
        self.contains(&value).then_some(value)
    }
}

impl Display for OptionValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vertices(count) => write!(f, "{count} vertices"),
            Self::Integer(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

impl From<u64> for OptionValue {
    fn from(value: u64) -> Self {
        Self::Integer(value)
    }
}

impl From<f64> for OptionValue {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for OptionValue {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}
