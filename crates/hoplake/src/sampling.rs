//! Random samples of neighbourhoods, for graph learning.
//!
//! ```no_run
//! # async fn example() -> Result<(), hoplake::Error> {
//! use hoplake::{Graph, sampling::SamplerSettings};
//!
//! let graph = Graph::open("s3://my-bucket/social").await?;
//! let mut query = graph.query();
//! let fan_outs = query.fan_outs(&"both:knows".parse()?, &[Some(15), Some(10)])?;
//! let sampler = query.sampler(SamplerSettings { fan_outs, seed: 7, ..SamplerSettings::default() })?;
//! let seeds: Vec<_> = query.vertex("Person", 933).await?.into_iter().collect();
//! let sample = query.sample(&sampler, &seeds, 0).await?;
//! println!("{} edges", sample.edges.iter().map(|edges| edges.near.len()).sum::<usize>());
//! # Ok(())
//! # }
//! ```

use hoplake_analytics::Workers;
pub use hoplake_engine::EdgesOf;
use hoplake_engine::{Held, traversal::Hop};
use hoplake_format::{LabelId, VertexId};
pub use hoplake_sampling::{
    Ahead, FanOut, Feature, FeatureOf, FeatureSettings, Features, Negatives, NegativesFrom, Numbers, Sample,
    SampledEdges, SampledVertices, Sampler, SamplerSettings, TimeSettings,
};

use hoplake_storage::MemoryBudget;
use tokio::runtime::Handle;

use crate::{Error, ErrorKind, Query, Reason};

/// Batches that are made while the caller uses those before them, on the threads of a runtime. The memory of each counts against a budget
/// before it begins, and those that there is no room for wait. `make` makes a batch within a budget of its own
/// ([`Graph::query_within`](crate::Graph::query_within)), and may be called twice for one.
///
/// ```no_run
/// # async fn example() -> Result<(), hoplake::Error> {
/// use hoplake::{Graph, MemoryBudget, VertexId, sampling::{Sampler, SamplerSettings, ahead}};
///
/// let graph = Graph::open("s3://my-bucket/social").await?;
/// let fan_outs = graph.query().fan_outs(&"both:knows".parse()?, &[Some(15), Some(10)])?;
/// let sampler = graph.query().sampler(SamplerSettings { fan_outs, ..SamplerSettings::default() })?;
/// let budget = MemoryBudget::new("training", 4 << 30);
/// let batches = ahead(&tokio::runtime::Handle::current(), budget, move |(number, seeds): (u64, Vec<VertexId>), budget| {
///     let (graph, sampler) = (graph.clone(), sampler.clone());
///     async move { graph.query_within(&budget).sample(&sampler, &seeds, number).await }
/// });
/// # let seeds_of = |_: u64| Vec::new();
/// (0..3).for_each(|number| batches.push((number, seeds_of(number))));
/// while let Some(sample) = batches.next().await {
///     println!("{} seeds", sample?.seeds.len());
/// }
/// # Ok(())
/// # }
/// ```
pub fn ahead<J, T, M>(
    runtime: &Handle,
    budget: MemoryBudget,
    make: impl Fn(J, MemoryBudget) -> M + Send + Sync + 'static,
) -> Ahead<J, T, Error>
where
    J: Clone + Send + 'static,
    T: Send + 'static,
    M: Future<Output = Result<T, Error>> + Send + 'static,
{
    Ahead::new(runtime, budget, make, |error| error.reason() == Some(Reason::MemoryInUse))
}

impl Query {
    /// Fan-outs for the edges that a hop follows: how many neighbours of each vertex, hop by hop; `None` takes all. Where the hop follows
    /// several types of edges, each has these counts.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if the graph has no edge label of that name.
    pub fn fan_outs(&self, hop: &Hop, counts: &[Option<u32>]) -> Result<Vec<FanOut>, Error> {
        Ok(FanOut::of_hop(&self.snapshot, hop, counts)?)
    }

    /// A sampler of the query's version that reads lists from the bucket, through the caches. Reads nothing.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for settings without a fan-out, with two for the same edges, or with too many hops.
    pub fn sampler(&self, settings: SamplerSettings) -> Result<Sampler, Error> {
        Ok(Sampler::on_bucket(&self.snapshot, settings, Workers::default())?)
    }

    /// A sampler whose lists are loaded into memory, once: 8 bytes a vertex and 4 an edge, 12 with a weight. Its samples are those of
    /// [`Self::sampler`].
    ///
    /// # Errors
    /// As [`Self::sampler`]; [`Limit`](crate::ErrorKind::Limit) if the query's memory has no room for it, before anything is read; the
    /// store's.
    pub async fn sampler_in_memory(&mut self, settings: SamplerSettings, workers: Workers) -> Result<Sampler, Error> {
        Ok(Sampler::in_memory(&self.snapshot, settings, workers, &mut self.branch).await?)
    }

    /// Samples the neighbourhoods of seeds: one wave a hop, and one more for weights; none from memory. A batch of the same number and
    /// seeds is always the same.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if a seed is not a vertex of the version; [`Invalid`](crate::ErrorKind::Invalid) if a
    /// weight cannot be one; [`Limit`](crate::ErrorKind::Limit) at a limit of the query; the store's.
    pub async fn sample(&mut self, sampler: &Sampler, seeds: &[VertexId], batch: u64) -> Result<Held<Sample>, Error> {
        Ok(sampler.sample(seeds, batch, &mut self.branch).await?)
    }
    /// Fan-outs as [`Self::fan_outs`], of the edges that lead from vertices of a label to those of another; `None` stands for all labels.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if there are no such edges.
    pub fn fan_outs_between(
        &self,
        near: Option<&str>,
        hop: &Hop,
        far: Option<&str>,
        counts: &[Option<u32>],
    ) -> Result<Vec<FanOut>, Error> {
        let near_id = near.map(|label| self.label_id(label)).transpose()?;
        let far_id = far.map(|label| self.label_id(label)).transpose()?;
        let mut found = self.fan_outs(hop, counts)?;
        found.retain(|it| near_id.is_none_or(|id| id == it.edges.near) && far_id.is_none_or(|id| id == it.edges.far));
        if found.is_empty() {
            let [near, far] = [near, far].map(|label| label.unwrap_or("any label"));
            let message = format!("no edges of {hop} lead from {near} to {far}");
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        Ok(found)
    }

    /// The vertices of a label with these ordinals.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if there is none with an ordinal.
    pub fn vertices_at(&self, label: LabelId, ordinals: &[i64]) -> Result<Vec<VertexId>, Error> {
        let count = self.snapshot.ordinal_count(label);
        let vertex = |ordinal: &i64| {
            let known = u64::try_from(*ordinal).ok().filter(|ordinal| *ordinal < count);
            let unknown = || {
                let message =
                    format!("{ordinal} is not the ordinal of a {}; there are {count}", self.label_name(label));
                Error::new(ErrorKind::NotFound, message)
            };
            known.and_then(|ordinal| VertexId::new(label, ordinal)).ok_or_else(unknown)
        };
        ordinals.iter().map(vertex).collect()
    }

    /// The ordinals of the vertices of a label that exist. Reads nothing unless some were deleted; otherwise all keys of the label.
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit) at a limit of the query; the store's.
    pub async fn ordinals(&mut self, label: LabelId) -> Result<Held<Vec<i64>>, Error> {
        Ok(hoplake_sampling::existing(&self.snapshot, label, &mut self.branch).await?)
    }

    /// As [`Self::sample`], of seeds with times: nothing in the sample is later than its seed.
    ///
    /// # Errors
    /// As [`Self::sample`]; [`Invalid`](crate::ErrorKind::Invalid) if there is not one time for each seed, or if the sampler has no time.
    pub async fn sample_at(
        &mut self,
        sampler: &Sampler,
        seeds: &[VertexId],
        times: &[i64],
        batch: u64,
    ) -> Result<Held<Sample>, Error> {
        Ok(sampler.sample_at(seeds, times, batch, &mut self.branch).await?)
    }

    /// Random pairs of vertices that are not edges of a type, for a model that learns to tell edges. One wave, which reads the lists of the
    /// vertices where they begin; none if these are in memory.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if a vertex does not exist; [`Invalid`](crate::ErrorKind::Invalid) if a label has no
    /// vertices; [`Limit`](crate::ErrorKind::Limit) at a limit of the query; the store's.
    pub async fn negatives(
        &mut self,
        sampler: &Sampler,
        edges: EdgesOf,
        from: NegativesFrom<'_>,
        batch: u64,
    ) -> Result<Held<Negatives>, Error> {
        Ok(sampler.negatives(edges, from, batch, &mut self.branch).await?)
    }

    /// Features of vertices and edges: properties as columns and matrices of numbers. Reads nothing, or one wave to find out how long lists
    /// are.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if a label or type of edges does not have a property;
    /// [`Invalid`](crate::ErrorKind::Invalid) if one is text, if no vertex has a list to count, or if one of edges is a list; the store's.
    pub async fn features(&mut self, settings: Vec<FeatureSettings>, workers: Workers) -> Result<Features, Error> {
        Ok(Features::open(&self.snapshot, settings, workers, &mut self.branch).await?)
    }

    /// The features of the vertices and edges of a sample, in their order. One wave, and one before it if tables of a label were not read
    /// before; features of edges take one more, for their lists.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) if a vertex or edge does not have a value, if a vertex has a list of another length, or if
    /// the sampler does not keep [places](SamplerSettings::places) of edges; [`Limit`](crate::ErrorKind::Limit) at a limit of the query;
    /// the store's.
    pub async fn features_of(&mut self, features: &Features, sample: &Sample) -> Result<Held<Vec<Feature>>, Error> {
        Ok(features.of_sample(sample, &mut self.branch).await?)
    }

    /// One feature of some vertices of a label, by ordinal, in their order.
    ///
    /// # Errors
    /// As [`Self::features_of`]; [`NotFound`](crate::ErrorKind::NotFound) if the label has no feature of this name, or if a vertex does not
    /// exist.
    pub async fn feature_of_vertices(
        &mut self,
        features: &Features,
        label: LabelId,
        name: &str,
        ordinals: &[i64],
    ) -> Result<Held<Feature>, Error> {
        Ok(features.of_vertices(label, name, ordinals, &mut self.branch).await?)
    }
}
