//! Which kernel computes an algorithm, and how its result becomes values.

use hoplake_analytics::{
    Adjacency, Csr, Topology,
    kernels::{
        ShortestPathSettings, UNREACHED, betweenness, breadth_first_levels, closeness, connected_components,
        core_numbers, degrees, local_clustering, page_rank, personalised_page_rank, sample_vertices,
        shortest_path_lengths, similar_vertices, strongly_connected_components,
    },
};
use hoplake_engine::{EngineError, Held};
use hoplake_storage::QueryContext;

use super::{Algorithm, Sample, computed::Values};

/// How many iterations it took, if it took any, and the values.
pub(super) type Found = (Option<usize>, Held<Values>);

/// Computes an algorithm from lists in memory; `starts` are the ids of the vertices that it names. `weighted` are the same lists, if
/// they have weights.
pub(super) fn run<A: Adjacency>(
    algorithm: &Algorithm,
    topology: &Topology<A>,
    weighted: Option<&Csr>,
    starts: &[u32],
    context: &QueryContext,
) -> Result<Found, EngineError> {
    let Topology { out, deleted, .. } = topology;
    let against = topology.against.as_ref().unwrap_or(out);
    let mut iterations = None;
    let values = match algorithm {
        Algorithm::PageRank(settings) => {
            let found = page_rank(out, against, deleted, settings, context)?;
            iterations = Some(found.iterations);
            found.map(|found| Values::Floats(found.ranks))
        }
        Algorithm::PersonalisedPageRank { settings, .. } => {
            let found = personalised_page_rank(out, against, deleted, starts, settings, context)?;
            iterations = Some(found.iterations);
            found.map(|found| Values::Floats(found.ranks))
        }
        Algorithm::Levels { .. } => breadth_first_levels(out, Some(against), starts[0], context)?.map(Values::Integers),
        Algorithm::ShortestPaths { weight: None, .. } => {
            let found = breadth_first_levels(out, Some(against), starts[0], context)?;
            let length = |level: &u32| if *level == UNREACHED { f64::INFINITY } else { (*level).into() };
            let memory = context.hold(out.len() as u64 * 8)?;
            Held::new(Values::Lengths(found.iter().map(length).collect()), memory)
        }
        Algorithm::ShortestPaths { weight: Some(_), .. } => {
            let settings = ShortestPathSettings::default();
            let out = weighted.ok_or_else(|| EngineError::Internal("lists have no weights".into()))?;
            shortest_path_lengths(out, out.weights(), starts[0], &settings, context)?.map(Values::Lengths)
        }
        Algorithm::Components => connected_components(out, Some(against), context)?.map(Values::Integers),
        Algorithm::StrongComponents => strongly_connected_components(out, against, context)?.map(Values::Integers),
        Algorithm::Degrees => degrees(out, None, context)?.map(Values::Counts),
        Algorithm::Clustering => local_clustering(out, topology.against.as_ref(), context)?.map(Values::Floats),
        Algorithm::CoreNumbers => {
            let found = core_numbers(out, context)?;
            let memory = context.hold(out.len() as u64 * 8)?;
            Held::new(Values::Counts(found.iter().map(|number| u64::from(*number)).collect()), memory)
        }
        Algorithm::Closeness { sample } => {
            let starts = drawn(*sample, starts, topology, context)?;
            // Distances to a vertex, as networkx has them.
            let found = closeness(against, &starts, deleted.len(), context)?;
            scattered(out.len(), starts.iter().copied().zip(found.iter().copied()), context)?
        }
        Algorithm::Betweenness { sample } => {
            let starts = drawn(*sample, starts, topology, context)?;
            let part = (out.len() - deleted.len()) as f64 / starts.len().max(1) as f64;
            // Followed both ways, a pair of ends is found from either.
            let times = if topology.against.is_none() { part / 2.0 } else { part };
            let found = betweenness(out, &starts, context)?;
            found.map(|mut found| {
                found.iter_mut().for_each(|value| *value *= times);
                Values::Floats(found)
            })
        }
        Algorithm::Similarity { .. } => {
            let found = similar_vertices(out, against, starts, out.len(), context)?;
            scattered(out.len(), found.iter().flatten().map(|similar| (similar.vertex, similar.similarity)), context)?
        }
        Algorithm::Communities { .. } => {
            return Err(EngineError::Internal("communities have only a program".into()));
        }
    };
    Ok((iterations, values))
}

/// The vertices of a sample, which is in `starts` unless it is all of them.
fn drawn<A: Adjacency>(
    sample: Option<Sample>,
    starts: &[u32],
    topology: &Topology<A>,
    context: &QueryContext,
) -> Result<Held<Vec<u32>>, EngineError> {
    if sample.is_some_and(|sample| sample.count == 0) || !starts.is_empty() {
        return Ok(Held::counted(starts.to_vec(), starts.len() as u64 * 4, context)?);
    }
    Ok(sample_vertices(topology.out.len() as u32, &topology.deleted, usize::MAX, 0, context)?)
}

/// The values of some vertices; others have none.
fn scattered(
    vertices: usize,
    found: impl Iterator<Item = (u32, f64)>,
    context: &QueryContext,
) -> Result<Held<Values>, EngineError> {
    let memory = context.hold(vertices as u64 * 8)?;
    let mut values = vec![f64::NAN; vertices];
    found.for_each(|(vertex, value)| values[vertex as usize] = value);
    Ok(Held::new(Values::Floats(values), memory))
}
