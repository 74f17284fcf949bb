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
use hoplake_engine::{Held, traversal::Hop};
use hoplake_format::VertexId;
pub use hoplake_sampling::{FanOut, Sample, SampledEdges, SampledVertices, Sampler, SamplerSettings};

use crate::{Error, Query};

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

    /// Samples the neighbourhoods of seeds: one wave a hop, and one more for weights; none from memory. A batch of the same number and seeds
    /// is always the same.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if a seed is not a vertex of the version; [`Invalid`](crate::ErrorKind::Invalid) if a
    /// weight cannot be one; [`Limit`](crate::ErrorKind::Limit) at a limit of the query; the store's.
    pub async fn sample(&mut self, sampler: &Sampler, seeds: &[VertexId], batch: u64) -> Result<Held<Sample>, Error> {
        Ok(sampler.sample(seeds, batch, &mut self.branch).await?)
    }
}
