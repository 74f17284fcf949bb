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

mod clock;
mod cost;
mod error;
mod read;
mod store;
pub mod trace;
mod write;

pub use clock::{Clock, SystemClock};
pub use cost::{
    Background, Branch, CancelOnDrop, Cost, Latency, MemoryBudget, MemoryFull, MemoryHold, PIECE_UNITS, Pace,
    PriceList, ProfileError, Profiles, QueryContext, ReadLimits, Served, StoreProfile, Wave,
};
pub use error::{NodeFault, StorageError};
pub use hoplake_mapping::Access;
pub use read::{
    BlockRequest, Check, Disk, DiskFile, DiskSettings, Fetched, Found, HedgeSettings, Object, ObjectSource, ReadPool,
    ReadSettings, Reader, RetrySettings, Tier, Wanted, cache,
};
pub use store::{Files, FoundFile, ObjectInfo, Store, StoreFault, system_text};
pub use write::Upload;
