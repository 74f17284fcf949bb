//! The request of a job, whatever the protocol.

use hoplake::{
    Hop, StartKey,
    compute::{
        Algorithm, ComputeOptions, Placement, Selection, Workers,
        registry::{AlgorithmSpec, FROM_OPTION, OptionError, OptionValue, Options},
        usual_hop,
    },
};

use crate::{failure::Failure, limits::RequestedLimits, vertex_name::VertexName};

/// A computation over a whole graph.
#[derive(Debug, Clone)]
pub(crate) struct JobRequest {
    pub(crate) algorithm: &'static AlgorithmSpec,
    /// The edges that take part; the algorithm's usual direction along all without it.
    pub(crate) edges: Option<Hop>,
    pub(crate) labels: Vec<String>,
    pub(crate) from: Vec<VertexName>,
    /// Other options that were given.
    pub(crate) given: Vec<(&'static str, OptionValue)>,
    pub(crate) lists: Placement,
    pub(crate) limits: RequestedLimits,
}

impl JobRequest {
    /// Rejects what cannot be computed, and options without an effect. Both protocols come here: JSON has no NaN, but gRPC does.
    ///
    /// # Errors
    /// [`Reason::Invalid`](crate::Reason::Invalid) with what to write.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let checked = self.checked().map(drop);
        let no_effect = matches!(checked, Err(OptionError::NoEffect(_)));
        let checked = match self.limits.vertices_max > 0 && !no_effect {
            true => Err(OptionError::NoEffect("limits.vertices_max".into())),
            false => checked,
        };
        checked.map_err(|error| self.rejected(&error))
    }

    /// The options of the algorithm.
    fn checked(&self) -> Result<Options, OptionError> {
        let from = (!self.from.is_empty()).then_some((FROM_OPTION, OptionValue::Vertices(self.from.len())));
        self.algorithm.options(from.into_iter().chain(self.given.iter().cloned()))
    }

    fn rejected(&self, error: &OptionError) -> Failure {
        let name = self.algorithm.name;
        Failure::invalid(match error {
            OptionError::NoEffect(option) => format!("{option} has no effect on {name}; leave it out"),
            OptionError::Requires { option, required } => {
                format!("{option} has no effect on {name} without {required}; leave it out")
            }
            OptionError::Excludes { option, excluded } => format!("{name} takes {option} or {excluded}; leave one out"),
            OptionError::OneVertex(count) => format!("{name} needs one vertex in from, and has {count}"),
            OptionError::Range { option, value, write } => format!("{option} is {value}; write {write}"),
        })
    }

    /// The computation, from the vertices that it names.
    pub(crate) fn computation(&self, starts: Vec<StartKey>) -> Result<Algorithm, Failure> {
        let options = self.checked().map_err(|error| self.rejected(&error))?;
        Ok(Algorithm::new(options, starts)?)
    }

    /// Where and how it is computed.
    pub(crate) fn options(&self, workers: &Workers) -> ComputeOptions {
        let hop = self.edges.clone().unwrap_or_else(|| usual_hop(self.algorithm));
        ComputeOptions {
            selection: Selection { hop, labels: self.labels.clone(), ..Selection::default() },
            placement: self.lists,
            workers: workers.clone(),
            ..ComputeOptions::default()
        }
    }
}
