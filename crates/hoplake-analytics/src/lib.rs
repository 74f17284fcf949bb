//! Whole-graph computation: kernels over topologies in memory, and vertex programs over lists that may stay in the bucket.
//!
//! ```text
//!                          ┌─▶ Topology ──▶ kernel ──▶ a column, by dense id
//! lists, batch by batch ───┤
//!                          └─▶ program, superstep by superstep ◀──▶ a store of states
//! ```
//! Floor 3 of the house, next to the query languages. It reads through the engine's scan and knows no transport.
//!
//! * [`Topology`]: who is adjacent to whom, with a 32-bit number for each vertex, loaded from a snapshot within a budget of memory.
//! * [`kernels`]: functions over a topology, each in a file next to the paper that it follows. They use rayon's current thread pool,
//!   look at the query's deadline, and say in their documentation which conventions they follow.
//! * [`VertexProgram`]: a computation that is written for one vertex, and [`run()`] for all, over a topology or over lists that are
//!   streamed in each superstep. [`run_asynchronously`] has those vertices collect that have reason to. [`programs`] come with the
//!   crate.
//! * [`columns`]: supersteps of a program that the caller writes over whole columns, as Python does.
//! * [`parts`]: the same by parts of the vertices, which may be on many machines.
//! * [`registry`]: all algorithms with their options, from which help, checks of requests and documentation are derived.
//! * [`stores`]: where the states of a program are kept. A [`Checkpoint`] has them after a superstep, for a run that was killed.
//!
//! RFC 0007 has the design, and what is to come.

mod adjacency;
mod advisor;
mod asynchronous;
mod batch;
mod batches;
mod checkpoint;
pub mod columns;
mod conditional;
mod csr;
pub mod kernels;
mod lists;
mod packed;
pub mod parts;
mod program;
mod program_run;
pub mod programs;
pub mod registry;
mod run;
mod selection;
mod signals;
pub mod stores;
mod topology;
mod value;
mod workers;

pub use adjacency::{Adjacency, Cursor};
pub use advisor::{Advised, Advisor, AdvisorSettings, Passing, Visiting};
pub use asynchronous::{AsyncSettings, run_asynchronously};
pub use checkpoint::Checkpoint;
pub use csr::Csr;
pub use lists::Lists;
pub use packed::{Packed, PackedCursor};
pub use program::{Edge, Step, Vertex, VertexProgram};
pub use program_run::{Asynchronous, ProgramRun, ProgramSettings, run_program};
pub use run::{Progress, RangeResult, RangeRun, RunError, RunSettings, Waiting, run};
pub use selection::Selection;
pub use topology::Topology;
pub use value::Value;
pub use workers::Workers;
