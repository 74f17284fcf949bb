//! Whole-graph computation: topologies in memory, and kernels over them.
//!
//! ```text
//! lists, block by block ──▶ Topology ──▶ kernel ──▶ a column, by dense id
//! ```
//! Floor 3 of the house, next to the query languages. It reads through the engine's scan and knows no transport.
//!
//! * [`Topology`]: who is adjacent to whom, with a 32-bit number for each vertex, loaded from a snapshot within a budget of memory.
//! * [`kernels`]: functions over a topology, each in a file next to the paper that it follows. They use rayon's current thread pool,
//!   look at the query's deadline, and say in their documentation which conventions they follow.
//!
//! RFC 0007 has the design, and what is to come: packed lists, vertex programs and the stores of their states.

mod adjacency;
mod batches;
mod csr;
pub mod kernels;
mod program;
pub mod programs;
mod run;
mod signals;
pub mod stores;
mod topology;
mod value;
mod workers;

pub use adjacency::{Adjacency, Cursor};
pub use csr::Csr;
pub use program::{Edge, Step, Vertex, VertexProgram};
pub use run::{Lists, Progress, RunError, RunSettings, run};
pub use topology::{Selection, Topology};
pub use value::Value;
pub use workers::Workers;
