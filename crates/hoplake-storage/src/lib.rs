//! Object store access for Hoplake: one interface to every store, reads in waves, caches, cost meters.
//!
//! Floor 1 of the house: it knows objects and blocks, not graphs.
//!
//! * [`Store`]: a prefix in an object store, by URL.
//!   Of a folder of this machine, every write is flushed (`folder`), one [`Files`] operation at a time.
//! * [`StoreProfile`]: prices, latencies and limits of a kind of store.
//! * [`Reader`]: many blocks in one wave. A wave asks tier after tier: the memory cache, the
//!   cache on the local disk (`disk`), requests that are in flight for others (`in_flight`), and at last an
//!   [`ObjectSource`], in requests that are planned (`plan`), hedged (`hedge`), and repeated until an
//!   answer passes its check (`fetch`).
//! * [`ReadPool`]: what all readers of a process share.
//! * [`QueryContext`]: the cost of a query, in waves, requests, bytes and dollars, and its limits.
//! * [`MemoryBudget`]: what queries may hold in memory; [`Pace`]: their processor work, in pieces.
//! * [`cache`]: the memory cache and its eviction policies.
//! * [`trace`]: records of accesses, which `hoplake-cache-sim` replays through those policies.

mod ahead;
mod batch;
mod block;
mod branch;
mod budget;
pub mod cache;
mod clients;
mod clock;
mod context;
mod create;
mod disk;
mod error;
mod fault;
mod fetch;
mod folder;
mod hedge;
mod in_flight;
mod location;
mod mapped;
mod meter;
mod pace;
mod plan;
mod pool;
mod prices;
mod profile;
mod proof;
mod reader;
mod settings;
mod source;
mod store;
mod tier;
pub mod trace;
mod unpublished;
mod upload;

use disk::DiskCache;

pub use block::{BlockRequest, Check, Object};
pub use branch::Branch;
pub use budget::{MemoryBudget, MemoryFull, MemoryHold};
pub use clock::{Clock, SystemClock};
pub use context::{CancelOnDrop, QueryContext, ReadLimits};
pub use disk::{Disk, DiskFile};
pub use error::{NodeFault, StorageError};
pub use fault::{StoreFault, system_text};
pub use folder::{Files, FoundFile};
pub use hoplake_mapping::Access;
pub use meter::{Background, Cost, Served, Wave};
pub use pace::{PIECE_UNITS, Pace};
pub use pool::ReadPool;
pub use prices::PriceList;
pub use profile::{Latency, ProfileError, Profiles, StoreProfile};
pub use reader::Reader;
pub use settings::{DiskSettings, HedgeSettings, ReadSettings, RetrySettings};
pub use source::{Fetched, Found, ObjectSource, Wanted};
pub use store::{ObjectInfo, Store};
pub use tier::Tier;
pub use upload::Upload;
