//! The algorithms that come with Hoplake, as users see them: names, options and what they compute. The command line, both protocols of
//! the service and the documentation read them here.
//!
//! Each algorithm is described by a constant in the file of its kernel. To add one, write its file and its line in [`ALGORITHMS`], and how it
//! runs in the facade (`compute/named.rs`, `compute/mod.rs`).

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter, Write as _},
};

use hoplake_engine::traversal::HopDirection;

use crate::kernels;

/// An algorithm.
#[derive(Debug, PartialEq)]
pub struct AlgorithmSpec {
    /// As users write it.
    pub name: &'static str,
    /// The name of its values; `None` if its result is one number for the whole graph.
    pub value: Option<&'static str>,
    /// The type of its values.
    pub value_type: ValueType,
    /// What it computes, as Markdown in a line.
    pub help: &'static str,
    /// The direction in which edges are followed unless the user selects edges.
    pub direction: HopDirection,
    /// Options of its own.
    pub options: &'static [OptionSpec],
    /// Bytes of states and signals for a vertex, if it has a vertex program, which can stream its lists.
    pub streamed_bytes: Option<u64>,
    /// Why its program cannot run asynchronously; `None` if it can, or if there is no program.
    pub synchronous: Option<&'static str>,
}

/// The type of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    /// int64.
    Integer,
    /// float64.
    Float,
}

/// An option of an algorithm.
#[derive(Debug, PartialEq)]
pub struct OptionSpec {
    /// As users write it, without dashes.
    pub name: &'static str,
    /// What its value may be.
    pub kind: OptionKind,
    /// Its value unless the user gives one; `None` if there is none.
    pub default: Option<f64>,
    /// Another option without which it has no effect.
    pub requires: Option<&'static str>,
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
    Sum,
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

/// Options that an algorithm has, with values in their ranges.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    spec: &'static AlgorithmSpec,
    given: BTreeMap<&'static str, OptionValue>,
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

/// All algorithms, in the order in which they are listed.
pub static ALGORITHMS: [&AlgorithmSpec; 13] = [
    &kernels::PAGE_RANK,
    &kernels::COMPONENTS,
    &kernels::STRONG_COMPONENTS,
    &kernels::LEVELS,
    &kernels::PATHS,
    &kernels::COMMUNITIES,
    &kernels::DEGREES,
    &kernels::CLUSTERING,
    &kernels::CORES,
    &kernels::CLOSENESS,
    &kernels::BETWEENNESS,
    &kernels::SIMILARITY,
    &kernels::TRIANGLES,
];

/// The start that searches need.
pub(crate) const FROM: OptionSpec =
    OptionSpec { name: "from", kind: OptionKind::Vertex, default: None, requires: None };
/// The number of vertices drawn.
pub(crate) const SAMPLE: OptionSpec =
    OptionSpec { name: "sample", kind: OptionKind::Count, default: None, requires: None };
/// The seed by which they are drawn.
pub(crate) const SEED: OptionSpec =
    OptionSpec { name: "seed", kind: OptionKind::Seed, default: Some(0.0), requires: Some("sample") };

impl AlgorithmSpec {
    /// What most algorithms have: float64 values along edges, without options, and no program.
    pub(crate) const USUAL: Self = Self {
        name: "",
        value: None,
        value_type: ValueType::Float,
        help: "",
        direction: HopDirection::Out,
        options: &[],
        streamed_bytes: None,
        synchronous: None,
    };

    /// Checks options that a user gave.
    ///
    /// # Errors
    /// The first that has no effect; or else the first whose value is wrong.
    pub fn options<'a>(
        &'static self,
        given: impl IntoIterator<Item = (&'a str, OptionValue)>,
    ) -> Result<Options, OptionError> {
        let mut options = Options { spec: self, given: BTreeMap::new() };
        for (name, value) in given {
            let Some(option) = self.option(name) else { return Err(OptionError::NoEffect(name.into())) };
            options.given.insert(option.name, value);
        }
        self.options.iter().try_for_each(|option| option.check(&options.given))?;
        Ok(options)
    }

    /// An option by its name.
    pub fn option(&self, name: &str) -> Option<&'static OptionSpec> {
        self.options.iter().find(|option| option.name == name)
    }

    /// Whether it has a vertex program, which runs in supersteps and has checkpoints.
    pub fn has_program(&self) -> bool {
        self.streamed_bytes.is_some()
    }
}

impl OptionSpec {
    fn check(&self, given: &BTreeMap<&'static str, OptionValue>) -> Result<(), OptionError> {
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
            (Self::Property, OptionValue::Text(_)) => true,
            (Self::Count, OptionValue::Integer(count)) => *count > 0,
            (Self::Seed, OptionValue::Integer(_)) => true,
            (Self::Part, OptionValue::Float(part)) => (0.0..=1.0).contains(part),
            (Self::Sum, OptionValue::Float(sum)) => sum.is_finite() && *sum >= 0.0,
            _ => false,
        }
    }

    /// The values that it contains.
    pub fn range(self) -> &'static str {
        match self {
            Self::Vertex => "one vertex",
            Self::Vertices => "vertices",
            Self::Property => "the name of a property",
            Self::Count => "1 or more",
            Self::Seed => "a whole number, 0 or more",
            Self::Part => "a number from 0 to 1",
            Self::Sum => "a number, 0 or more",
        }
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

impl Options {
    /// The algorithm.
    pub fn spec(&self) -> &'static AlgorithmSpec {
        self.spec
    }

    /// A whole number: as given, or else the default. One beyond the address space is as good as no bound.
    pub fn count(&self, name: &str) -> Option<usize> {
        let value = match self.given.get(name) {
            Some(OptionValue::Integer(value)) => *value,
            _ => self.spec.option(name)?.default? as u64,
        };
        Some(usize::try_from(value).unwrap_or(usize::MAX))
    }

    /// A seed, of which all bits count: as given, or else the default.
    pub fn seed(&self, name: &str) -> Option<u64> {
        match self.given.get(name) {
            Some(OptionValue::Integer(value)) => Some(*value),
            _ => self.spec.option(name)?.default.map(|value| value as u64),
        }
    }

    /// A number: as given, or else the default.
    pub fn float(&self, name: &str) -> Option<f64> {
        match self.given.get(name) {
            Some(OptionValue::Float(value)) => Some(*value),
            _ => self.spec.option(name)?.default,
        }
    }

    /// A text, if it was given.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.given.get(name) {
            Some(OptionValue::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// An algorithm by its name.
pub fn find(name: &str) -> Option<&'static AlgorithmSpec> {
    ALGORITHMS.iter().copied().find(|algorithm| algorithm.name == name)
}

/// All algorithms as a table in Markdown, as the documentation has it.
pub fn table() -> String {
    let mut table = String::from("| algorithm | value | options |\n| --- | --- | --- |\n");
    for AlgorithmSpec { name, value, help, options, .. } in ALGORITHMS {
        let value = value.map(|value| format!("`{value}`: ")).unwrap_or_default();
        let options: Vec<String> = options.iter().map(|option| format!("`--{}`", option.name)).collect();
        let options = options.join(", ");
        let space = if options.is_empty() { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = writeln!(table, "| `{name}` | {value}{help} | {options}{space}|");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(name: &str, given: &[(&str, OptionValue)]) -> Result<Options, OptionError> {
        find(name).unwrap().options(given.iter().cloned())
    }

    #[test]
    fn the_documentation_has_the_table_of_the_registry() {
        let documentation = include_str!("../../../docs/analytics.md");
        let table = table();
        assert!(documentation.contains(&table), "docs/analytics.md needs this table:\n{table}");
    }

    #[test]
    fn names_are_unique() {
        for algorithm in ALGORITHMS {
            assert_eq!(find(algorithm.name), Some(algorithm));
        }
    }

    #[test]
    fn defaults_are_in_the_ranges_of_their_options() {
        for option in ALGORITHMS.iter().flat_map(|algorithm| algorithm.options) {
            let Some(default) = option.default else { continue };
            let value = match option.kind {
                OptionKind::Count | OptionKind::Seed => OptionValue::Integer(default as u64),
                _ => OptionValue::Float(default),
            };
            assert!(option.kind.contains(&value), "{} {value}", option.name);
        }
    }

    #[test]
    fn options_have_defaults_of_their_algorithm() {
        assert_eq!(options("pagerank", &[]).unwrap().count("iterations"), Some(100));
        assert_eq!(options("communities", &[]).unwrap().count("iterations"), Some(10));
        let given = options("pagerank", &[("iterations", OptionValue::Integer(3))]).unwrap();
        assert_eq!(given.count("iterations"), Some(3));
        assert_eq!(given.float("damping"), Some(0.85));
        let given = [("sample", OptionValue::Integer(4)), ("seed", OptionValue::Integer(u64::MAX))];
        assert_eq!(options("closeness", &given).unwrap().seed("seed"), Some(u64::MAX));
    }

    #[test]
    fn wrong_options_are_rejected() {
        let no_effect = options("pagerank", &[("weight", OptionValue::Text("km".into()))]);
        assert_eq!(no_effect, Err(OptionError::NoEffect("weight".into())));
        assert_eq!(options("levels", &[]), Err(OptionError::OneVertex(0)));
        assert_eq!(options("levels", &[("from", OptionValue::Vertices(2))]), Err(OptionError::OneVertex(2)));
        assert!(options("pagerank", &[("from", OptionValue::Vertices(2))]).is_ok());
        let alone = options("closeness", &[("seed", OptionValue::Integer(3))]);
        assert_eq!(alone, Err(OptionError::Requires { option: "seed", required: "sample" }));
        for (option, value) in [
            ("damping", OptionValue::Float(1.5)),
            ("damping", OptionValue::Float(f64::NAN)),
            ("tolerance", OptionValue::Float(f64::INFINITY)),
            ("tolerance", OptionValue::Float(-1.0)),
            ("iterations", OptionValue::Integer(0)),
        ] {
            let found = options("pagerank", &[(option, value.clone())]);
            assert!(matches!(found, Err(OptionError::Range { .. })), "{option} {value}: {found:?}");
        }
    }
}
