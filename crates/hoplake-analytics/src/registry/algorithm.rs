//! What an algorithm is, for all who list it, and its options as a user gave them.

use std::collections::BTreeMap;

use hoplake_engine::traversal::HopDirection;

use super::{
    options::{OptionError, OptionSpec, OptionValue},
    programs::ProgramSpec,
    results::Kernel,
};

/// An algorithm. Two with the same name are the same.
#[derive(Debug)]
pub struct AlgorithmSpec {
    /// As users write it.
    pub name: &'static str,
    /// The name of its values; `None` if its result is a figure for the whole graph.
    pub value: Option<&'static str>,
    /// The type of its values.
    pub value_type: ValueType,
    /// What it computes, as Markdown in a line.
    pub help: &'static str,
    /// The direction in which edges are followed unless the user selects edges.
    pub direction: HopDirection,
    /// The lists of neighbours that it reads.
    pub neighbours: Neighbours,
    /// Options of its own.
    pub options: &'static [OptionSpec],
    /// What it does with the order of vertices by label and key.
    pub key_order: KeyOrder,
    /// Computes it from lists in memory; `None` if its program does that, too.
    pub kernel: Option<Kernel>,
    /// Its vertex program, if it has one, which can stream its lists, has checkpoints and may run asynchronously.
    pub program: Option<ProgramSpec>,
}

/// Which lists of neighbours an algorithm reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbours {
    /// Those in the direction of the selection.
    Out,
    /// Those against the direction of the selection.
    In,
    /// Those in the direction of the selection, and those against it.
    OutAndIn,
    /// Those of edges without direction: each edge is in the lists of both its ends, whatever the direction of the selection.
    Undirected,
}

/// What an algorithm does with the order of vertices by label and key, which makes its result independent of how a graph was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOrder {
    /// It needs no order.
    Unused,
    /// It gets the place of each vertex, and its values are places: all vertices of a group have the same.
    Read,
    /// Its values are ids of vertices, one for all vertices of a group. They become the place of the group's first vertex.
    Named,
}

/// The type of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    /// int64.
    Integer,
    /// float64.
    Float,
}

/// Options that an algorithm has, with values in their ranges.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    spec: &'static AlgorithmSpec,
    given: BTreeMap<&'static str, OptionValue>,
}

impl PartialEq for AlgorithmSpec {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl AlgorithmSpec {
    /// What most algorithms have: float64 values from lists of both ends, without options, and neither a kernel nor a program.
    pub(crate) const USUAL: Self = Self {
        name: "",
        value: None,
        value_type: ValueType::Float,
        help: "",
        direction: HopDirection::Out,
        neighbours: Neighbours::OutAndIn,
        options: &[],
        key_order: KeyOrder::Unused,
        kernel: None,
        program: None,
    };

    /// Checks options that a user gave.
    ///
    /// # Errors
    /// The first that has no effect; or else the first whose value is wrong.
    pub fn options<'a>(
        &'static self,
        given: impl IntoIterator<Item = (&'a str, OptionValue)>,
    ) -> Result<Options, OptionError> {
        Options::checked(self, given)
    }

    /// An option by its name.
    pub fn option(&self, name: &str) -> Option<&'static OptionSpec> {
        self.options.iter().find(|option| option.name == name)
    }

    /// What its values are called, or the algorithm itself if it has none.
    pub fn value_name(&self) -> &'static str {
        self.value.unwrap_or(self.name)
    }

    /// Whether vertices with the same value are a group.
    pub fn has_groups(&self) -> bool {
        self.key_order != KeyOrder::Unused
    }

    /// Whether it has a vertex program, which runs in supersteps and has checkpoints.
    pub fn has_program(&self) -> bool {
        self.program.is_some()
    }

    /// Why it does not run asynchronously; `None` if it does.
    pub fn synchronous(&self) -> Option<&'static str> {
        match &self.program {
            Some(program) => program.synchronous,
            None => Some("it has no vertex program"),
        }
    }
}

impl Options {
    /// Checks options that a user gave.
    fn checked<'a>(
        spec: &'static AlgorithmSpec,
        given: impl IntoIterator<Item = (&'a str, OptionValue)>,
    ) -> Result<Self, OptionError> {
        let mut options = Self { spec, given: BTreeMap::new() };
        for (name, value) in given {
            let Some(option) = spec.option(name) else { return Err(OptionError::NoEffect(name.into())) };
            options.given.insert(option.name, value);
        }
        spec.options.iter().try_for_each(|option| option.check(&options.given))?;
        Ok(options)
    }

    /// The same options with another value of one.
    ///
    /// # Errors
    /// As [`AlgorithmSpec::options`].
    pub fn with(self, option: &str, value: OptionValue) -> Result<Self, OptionError> {
        Self::checked(self.spec, self.given.into_iter().chain([(option, value)]))
    }

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

    /// A value, if the user gave it.
    pub fn value(&self, name: &str) -> Option<&OptionValue> {
        self.given.get(name)
    }
}
