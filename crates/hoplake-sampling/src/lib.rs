//! Random samples of neighbourhoods, on which graph neural networks are trained in batches.
//!
//! ```text
//! seeds ─▶ Sampler ── hop by hop ─▶ Sample: vertices by label, and edges by type as positions of their ends
//!             │ lists
//!             ▼
//!   in memory (Csr), or in the bucket (one wave a hop)
//! ```
//! What is chosen of a list depends on the sampler's seed, the number of the batch, the hop and the vertex, and on nothing else. So a
//! sample is the same from memory and from the bucket, with any number of threads, and when a killed run goes on with batch *n*.
//!
//! RFC 0016 has the design.

mod ahead;
mod choose;
mod compact;
mod features;
mod links;
mod lists;
mod numbering;
mod random;
mod sample;
mod sampler;
mod settings;
mod times;
mod vertices;

pub use ahead::Ahead;
pub use features::{Feature, FeatureOf, FeatureSettings, Features, Numbers};
pub use links::{Negatives, NegativesFrom};
pub use sample::{Sample, SampledEdges, SampledVertices};
pub use sampler::Sampler;
pub use settings::{FanOut, SamplerSettings, TimeSettings};
pub use vertices::existing;
