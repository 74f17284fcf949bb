//! Algorithms by name and options, as a command line or a request has them.

use hoplake_analytics::{
    kernels::PageRankSettings,
    registry::{AlgorithmSpec, Options},
};

use super::{Algorithm, Sample};
use crate::{Error, ErrorKind, Hop, StartKey};

/// What is computed.
#[derive(Debug, Clone, PartialEq)]
pub enum Computation {
    /// A value for each vertex, by [`Query::compute`](crate::Query::compute).
    Values(Algorithm),
    /// The number of triangles, by [`Query::count_triangles`](crate::Query::count_triangles).
    Triangles,
}

impl Computation {
    /// The computation that options describe, from these vertices.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if the algorithm needs a vertex, and there is none.
    pub fn new(options: &Options, starts: Vec<StartKey>) -> Result<Self, Error> {
        let name = options.spec().name;
        let invalid = |message: String| Error::new(ErrorKind::Invalid, message);
        let mut starts = starts;
        let mut start = || starts.pop().ok_or_else(|| invalid(format!("{name} needs a vertex to begin at")));
        let iterations = options.count("iterations").unwrap_or_default();
        let sample =
            options.count("sample").map(|count| Sample { count, seed: options.seed("seed").unwrap_or_default() });
        Ok(Self::Values(match name {
            "pagerank" => {
                let settings = PageRankSettings {
                    damping: options.float("damping").unwrap_or_default(),
                    iterations_max: iterations,
                    tolerance: options.float("tolerance").unwrap_or_default(),
                };
                match starts.is_empty() {
                    true => Algorithm::PageRank(settings),
                    false => Algorithm::PersonalisedPageRank { settings, sources: starts },
                }
            }
            "components" => Algorithm::Components,
            "strong-components" => Algorithm::StrongComponents,
            "levels" => Algorithm::Levels { start: start()? },
            "paths" => {
                let weight = options.text("weight").map(str::to_owned);
                Algorithm::ShortestPaths { start: start()?, weight }
            }
            "communities" => Algorithm::Communities { iterations },
            "degrees" => Algorithm::Degrees,
            "clustering" => Algorithm::Clustering,
            "cores" => Algorithm::CoreNumbers,
            "closeness" => Algorithm::Closeness { sample },
            "betweenness" => Algorithm::Betweenness { sample },
            "similarity" => Algorithm::Similarity { start: start()? },
            "triangles" => return Ok(Self::Triangles),
            unknown => return Err(invalid(format!("{unknown} is not computed here"))),
        }))
    }
}

/// The edges along which an algorithm computes unless others are selected: all, in its usual direction.
pub fn usual_hop(spec: &AlgorithmSpec) -> Hop {
    Hop { direction: spec.direction, ..Hop::default() }
}

#[cfg(test)]
mod tests {
    use hoplake_analytics::registry::{ALGORITHMS, OptionKind, OptionValue};

    use super::*;

    #[test]
    fn every_algorithm_of_the_registry_is_computed() {
        for spec in ALGORITHMS {
            let starts: Vec<StartKey> = match spec.option("from").map(|option| option.kind) {
                Some(OptionKind::Vertex) => vec![StartKey::key("Person", "1")],
                _ => Vec::new(),
            };
            let given = spec.option("from").map(|_| ("from", OptionValue::Vertices(starts.len())));
            let options = spec.options(given).unwrap();
            let computation = Computation::new(&options, starts).unwrap();
            match computation {
                Computation::Values(algorithm) => assert_eq!(algorithm.spec(), spec),
                Computation::Triangles => assert_eq!(spec.value, None),
            }
        }
    }

    #[test]
    fn usual_settings_are_those_of_the_registry() {
        let spec = hoplake_analytics::registry::find("pagerank").unwrap();
        let computation = Computation::new(&spec.options([]).unwrap(), Vec::new()).unwrap();
        assert_eq!(computation, Computation::Values(Algorithm::PageRank(PageRankSettings::default())));
    }
}
