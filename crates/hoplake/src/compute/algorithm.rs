//! An algorithm of the registry with its options and the vertices that it names.

use arrow_schema::DataType;
use hoplake_analytics::registry::{
    self, AlgorithmSpec, FROM_OPTION, Neighbours, OptionError, OptionKind, OptionValue, Options, ValueType,
    WEIGHT_OPTION,
};
use hoplake_engine::traversal::HopDirection;

use super::ComputeOptions;
use crate::{Error, ErrorKind, Hop, StartKey};

/// An algorithm, its options and the vertices at which it begins. [`registry::ALGORITHMS`] lists algorithms and options.
///
/// ```
/// use hoplake::compute::Algorithm;
///
/// let ranks = Algorithm::named("pagerank")?.with("damping", 0.9)?.with("iterations", 20)?;
/// let lengths = Algorithm::from_start("paths", "Town:933".parse()?)?.with("weight", "km")?;
/// assert_eq!([ranks.spec().name, lengths.spec().name], ["pagerank", "paths"]);
/// # Ok::<(), hoplake::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Algorithm {
    options: Options,
    starts: Vec<StartKey>,
}

impl Algorithm {
    /// An algorithm with checked options, which begins at these vertices.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if the options say that there are other vertices.
    pub fn new(options: Options, starts: Vec<StartKey>) -> Result<Self, Error> {
        let name = options.spec().name;
        let counted = match options.value(FROM_OPTION) {
            Some(OptionValue::Vertices(count)) => *count,
            _ => 0,
        };
        if counted != starts.len() {
            let message = format!("{name} has {} vertices to begin at, and its options say {counted}", starts.len());
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        Ok(Self { options, starts })
    }

    /// An algorithm that names no vertex, with the defaults of its options.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if there is none of this name, or if it begins at a vertex.
    pub fn named(name: &str) -> Result<Self, Error> {
        Self::from_starts(name, Vec::new())
    }

    /// An algorithm that begins at a vertex.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if there is none of this name, or if it does not begin at a vertex.
    pub fn from_start(name: &str, start: StartKey) -> Result<Self, Error> {
        Self::from_starts(name, vec![start])
    }

    /// An algorithm that begins at some vertices.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if there is none of this name, or if it does not begin at so many vertices.
    pub fn from_starts(name: &str, starts: Vec<StartKey>) -> Result<Self, Error> {
        let unknown = || {
            let names: Vec<&str> = registry::ALGORITHMS.iter().map(|algorithm| algorithm.name).collect();
            Error::new(ErrorKind::Invalid, format!("unknown algorithm {name:?}; there are {}", names.join(", ")))
        };
        let spec = registry::find(name).ok_or_else(unknown)?;
        let given = (!starts.is_empty()).then_some((FROM_OPTION, OptionValue::Vertices(starts.len())));
        let options = spec.options(given).map_err(|error| rejected(spec, &error))?;
        Ok(Self { options, starts })
    }

    /// The same with another value of an option.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if it has no such option, or not with this value.
    pub fn with(self, option: &str, value: impl Into<OptionValue>) -> Result<Self, Error> {
        let spec = self.spec();
        let options = self.options.with(option, value.into()).map_err(|error| rejected(spec, &error))?;
        Ok(Self { options, ..self })
    }

    /// What the registry says about it.
    pub fn spec(&self) -> &'static AlgorithmSpec {
        self.options.spec()
    }

    /// What its values are called.
    pub fn name(&self) -> &'static str {
        self.spec().value_name()
    }

    /// The type of its values.
    pub fn value_type(&self) -> DataType {
        match self.spec().value_type {
            ValueType::Integer => DataType::Int64,
            ValueType::Float => DataType::Float64,
        }
    }

    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    /// The vertices that it names.
    pub(super) fn starts(&self) -> &[StartKey] {
        &self.starts
    }

    /// Whether it begins at exactly one vertex.
    pub(super) fn has_one_start(&self) -> bool {
        self.spec().option(FROM_OPTION).is_some_and(|option| option.kind == OptionKind::Vertex)
    }

    /// The options of its computation: it decides on weights, and may decide on directions.
    pub(super) fn applied_to(&self, options: &ComputeOptions) -> ComputeOptions {
        let mut options = options.clone();
        let selection = &mut options.selection;
        selection.weight = self.options.text(WEIGHT_OPTION).map(str::to_owned);
        selection.reversed = false;
        selection.condition_direction.get_or_insert(selection.hop.direction);
        match self.spec().neighbours {
            Neighbours::Out => {}
            Neighbours::In => selection.hop = selection.hop.reversed(),
            Neighbours::OutAndIn => selection.reversed = selection.hop.direction != HopDirection::Both,
            Neighbours::Undirected => selection.hop.direction = HopDirection::Both,
        }
        options
    }
}

fn rejected(spec: &AlgorithmSpec, error: &OptionError) -> Error {
    let name = spec.name;
    let message = match error {
        OptionError::NoEffect(option) => format!("{name} has no option {option:?}"),
        OptionError::Requires { option, required } => format!("{option} has no effect on {name} without {required}"),
        OptionError::Excludes { option, excluded } => format!("{name} takes {option} or {excluded}, and not both"),
        OptionError::OneVertex(count) => format!("{name} begins at one vertex, and has {count}"),
        OptionError::Range { option, value, write } => format!("{option} is {value}; write {write}"),
    };
    Error::new(ErrorKind::Invalid, message)
}

/// The edges along which an algorithm computes unless others are selected: all, in its usual direction.
pub fn usual_hop(spec: &AlgorithmSpec) -> Hop {
    Hop { direction: spec.direction, ..Hop::default() }
}
