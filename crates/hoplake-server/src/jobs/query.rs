//! What a job is asked to compute, as both protocols understand it.

use hoplake::{
    Hop, HopDirection, StartKey,
    compute::{Algorithm, ComputeOptions, PageRankSettings, Placement, Sample, Selection, Workers},
};

use crate::{calls::Asked, calls::VertexName, failure::Failure};

/// What to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AlgorithmName {
    PageRank,
    Components,
    StrongComponents,
    Levels,
    Paths,
    Communities,
    Degrees,
    Clustering,
    Cores,
    Closeness,
    Betweenness,
    Similarity,
    Triangles,
}

impl AlgorithmName {
    /// As on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PageRank => "pagerank",
            Self::Components => "components",
            Self::StrongComponents => "strong-components",
            Self::Levels => "levels",
            Self::Paths => "paths",
            Self::Communities => "communities",
            Self::Degrees => "degrees",
            Self::Clustering => "clustering",
            Self::Cores => "cores",
            Self::Closeness => "closeness",
            Self::Betweenness => "betweenness",
            Self::Similarity => "similarity",
            Self::Triangles => "triangles",
        }
    }

    /// What its values are called; triangles are one number.
    pub(crate) fn value(self) -> Option<&'static str> {
        Some(match self {
            Self::PageRank => "rank",
            Self::Components | Self::StrongComponents => "component",
            Self::Levels => "level",
            Self::Paths => "length",
            Self::Communities => "community",
            Self::Degrees => "degree",
            Self::Clustering => "clustering",
            Self::Cores => "core",
            Self::Closeness => "closeness",
            Self::Betweenness => "betweenness",
            Self::Similarity => "similarity",
            Self::Triangles => return None,
        })
    }
}

/// A computation over a whole graph.
#[derive(Debug, Clone)]
pub(crate) struct JobQuery {
    pub(crate) algorithm: AlgorithmName,
    /// The edges that take part; the algorithm's usual direction along all without it.
    pub(crate) edges: Option<Hop>,
    pub(crate) labels: Vec<String>,
    pub(crate) from: Vec<VertexName>,
    pub(crate) weight: Option<String>,
    pub(crate) iterations: Option<u64>,
    pub(crate) damping: Option<f64>,
    pub(crate) tolerance: Option<f64>,
    pub(crate) sample: Option<u64>,
    pub(crate) seed: Option<u64>,
    pub(crate) lists: Placement,
    pub(crate) limits: Asked,
}

/// What runs.
#[derive(Debug)]
pub(crate) enum Computation {
    Values(Algorithm),
    Triangles,
}

impl JobQuery {
    /// Rejects what cannot be computed, and options without an effect. Both protocols come here: JSON has no NaN, but gRPC does.
    ///
    /// # Errors
    /// [`Reason::Invalid`](crate::Reason::Invalid) with what to write.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        use AlgorithmName::{Betweenness, Closeness, Communities, Levels, PageRank, Paths, Similarity};
        let is = |names: &[AlgorithmName]| names.contains(&self.algorithm);
        let name = self.algorithm.name();
        let given = [
            ("from", !self.from.is_empty(), is(&[Levels, Paths, Similarity, PageRank])),
            ("weight", self.weight.is_some(), is(&[Paths])),
            ("iterations", self.iterations.is_some(), is(&[PageRank, Communities])),
            ("damping", self.damping.is_some(), is(&[PageRank])),
            ("tolerance", self.tolerance.is_some(), is(&[PageRank])),
            ("sample", self.sample.is_some(), is(&[Closeness, Betweenness])),
            ("seed", self.seed.is_some(), self.sample.is_some()),
            ("limits.vertices_max", self.limits.vertices_max > 0, false),
        ];
        let wrong = |message: String| Err(Failure::invalid(message));
        if let Some((option, ..)) = given.into_iter().find(|(_, is_given, is_used)| *is_given && !is_used) {
            let more = if option == "seed" { " without sample" } else { "" };
            return wrong(format!("{option} has no effect on {name}{more}; leave it out"));
        }
        if is(&[Levels, Paths, Similarity]) && self.from.len() != 1 {
            return wrong(format!("{name} needs one vertex in from, and has {}", self.from.len()));
        }
        if let Some(damping) = self.damping.filter(|damping| !(0.0..=1.0).contains(damping)) {
            return wrong(format!("damping is {damping}; write a number from 0 to 1"));
        }
        if let Some(tolerance) = self.tolerance.filter(|tolerance| !tolerance.is_finite() || *tolerance < 0.0) {
            return wrong(format!("tolerance is {tolerance}; write a number, 0 or more"));
        }
        for (option, count) in [("iterations", self.iterations), ("sample", self.sample)] {
            if count == Some(0) {
                return wrong(format!("{option} is 0; write 1 or more"));
            }
        }
        Ok(())
    }

    /// The computation, from the vertices that it names.
    pub(crate) fn computation(&self, mut starts: Vec<StartKey>) -> Result<Computation, Failure> {
        // What does not fit is as good as no bound: the deadline comes first.
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let usual = PageRankSettings::default();
        let settings = PageRankSettings {
            damping: self.damping.unwrap_or(usual.damping),
            iterations_max: self.iterations.map_or(usual.iterations_max, count),
            tolerance: self.tolerance.unwrap_or(usual.tolerance),
        };
        let sample = self.sample.map(|drawn| Sample { count: count(drawn), seed: self.seed.unwrap_or(0) });
        let none = || Failure::invalid(format!("{} needs one vertex in from", self.algorithm.name()));
        let mut start = || starts.pop().ok_or_else(none);
        Ok(Computation::Values(match self.algorithm {
            AlgorithmName::PageRank if self.from.is_empty() => Algorithm::PageRank(settings),
            AlgorithmName::PageRank => Algorithm::PersonalisedPageRank { settings, sources: starts },
            AlgorithmName::Components => Algorithm::Components,
            AlgorithmName::StrongComponents => Algorithm::StrongComponents,
            AlgorithmName::Levels => Algorithm::Levels { start: start()? },
            AlgorithmName::Paths => Algorithm::ShortestPaths { start: start()?, weight: self.weight.clone() },
            AlgorithmName::Communities => Algorithm::Communities { iterations: self.iterations.map_or(10, count) },
            AlgorithmName::Degrees => Algorithm::Degrees,
            AlgorithmName::Clustering => Algorithm::Clustering,
            AlgorithmName::Cores => Algorithm::CoreNumbers,
            AlgorithmName::Closeness => Algorithm::Closeness { sample },
            AlgorithmName::Betweenness => Algorithm::Betweenness { sample },
            AlgorithmName::Similarity => Algorithm::Similarity { start: start()? },
            AlgorithmName::Triangles => return Ok(Computation::Triangles),
        }))
    }

    /// Where and how it is computed.
    pub(crate) fn options(&self, workers: &Workers) -> ComputeOptions {
        let hop = self.edges.clone().unwrap_or_else(|| match self.algorithm {
            AlgorithmName::Communities | AlgorithmName::Cores | AlgorithmName::Triangles => {
                Hop { direction: HopDirection::Both, ..Hop::default() }
            }
            _ => Hop::default(),
        });
        ComputeOptions {
            selection: Selection { hop, labels: self.labels.clone(), ..Selection::default() },
            placement: self.lists,
            workers: workers.clone(),
            ..ComputeOptions::default()
        }
    }
}
