//! Many blocks in one wave, from the nearest tier that has them.

pub(crate) mod ahead;
mod batch;
mod block;
pub mod cache;
mod disk;
mod fetch;
mod hedge;
mod in_flight;
mod mapped;
mod plan;
mod pool;
mod reader;
mod settings;
mod source;
mod tier;
mod unpublished;

pub use block::{BlockRequest, Check, Object};
pub use disk::{Disk, DiskFile};
pub use pool::ReadPool;
pub use reader::Reader;
pub use settings::{DiskSettings, HedgeSettings, ReadSettings, RetrySettings};
pub use source::{Fetched, FetchedObject, ObjectSource, Wanted};
pub use tier::Tier;
