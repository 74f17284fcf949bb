//! A deterministic simulation of graphs that change. Development only.
//!
//! One seed decides everything: what actors do, how long each request takes, which faults happen, and the time of each
//! clock. Processes with several callers each commit and read, a vacuum removes leftovers, and an oracle that learns
//! from published manifests knows what each version must be. `docs/simulation.md` describes its coverage and its
//! findings. `mutations` has mistakes that it must find, as patches of the sources.
//!
//! - [`run_seed`]: one seed from beginning to end.
//! - [`faults`]: what may go wrong; [`client`], [`machine`], [`clock`], [`disk`], [`medium`] and [`power`]: how it reaches
//!   Hoplake; [`bucket`]: the objects.
//! - [`location`]: the graphs of the bucket; `clones`: creates more of them; `upkeep`: vacuums, compactions, indexes.
//! - [`history`]: the oracle; [`model`]: the content that a version must have; [`reading`]: the content that it has.
//! - [`beginning`]: what there is at first; [`batches`]: random changes, also by [`columns`].
//! - [`feeds`]: a graph that follows the tables of a database.
//! - [`chaos`]: the real thing: processes that are killed, a real server, a network that breaks.

pub mod batches;
pub mod beginning;
pub mod bucket;
pub mod chaos;
pub mod client;
pub mod clock;
mod clones;
pub mod columns;
pub mod disk;
mod drawing;
pub mod faults;
pub mod feeds;
pub mod history;
pub mod location;
pub mod machine;
pub mod medium;
pub mod model;
pub mod power;
mod process;
pub mod reading;
mod run;
mod upkeep;
pub mod world;

pub use run::{Outcome, run_seed};
pub use world::Scenario;
