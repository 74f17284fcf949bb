//! Object store access for Hoplake: one interface to every store, reads in waves, caches, cost meters.
//!
//! Floor 1 of the house: it knows objects and blocks, not graphs.
//!
//! * [`Store`]: a prefix in an object store, by URL.
//!   Of a folder of this machine, every write is flushed (`store::folder`), one [`Files`] operation at a time.
//! * [`StoreProfile`]: prices, latencies and limits of a kind of store.
//! * [`Reader`]: many blocks in one wave. A wave asks tier after tier: the memory cache, the
//!   cache on the local disk (`read::disk`), requests that are in flight for others (`read::in_flight`), and at last an
//!   [`ObjectSource`], in requests that are planned (`read::plan`), hedged (`read::hedge`), and repeated until an
//!   answer passes its check (`read::fetch`).
//! * [`ReadPool`]: what all readers of a process share.
//! * [`QueryContext`]: the cost of a query, in waves, requests, bytes and dollars, and its limits.
//! * [`MemoryBudget`]: what queries may hold in memory; [`Pace`]: their processor work, in pieces.
//! * [`cache`]: the memory cache and its eviction policies.
//! * [`trace`]: records of accesses, which `hoplake-cache-sim` replays through those policies.
//!
//! | word | meaning |
//! | --- | --- |
//! | object, block | what a store keeps by name; the part of one that is read, checked and cached as a unit |
//! | access, access pattern | one use of a block, as a trace records it; the order in which a mapped file is read |
//! | tier | where a block may come from: memory, the local disk, a request in flight, the store |
//! | wave | requests that are sent at once, and depend on the answers of the wave before |
//! | branch | a line of work within a query, and its number of waves so far |
//! | cost meter, cost | counts the requests, bytes and waves of a query; a reading of it |
//! | hold | bytes of a memory budget, until it is dropped |
//! | hedge | a second copy of a slow request |

mod clock;
mod cost;
mod error;
mod per_process;
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
pub use hoplake_mapping::AccessPattern;
pub use per_process::PerProcess;
pub use read::{
    BlockRequest, Check, Disk, DiskFile, DiskSettings, Fetched, FetchedObject, HedgeSettings, Object, ObjectSource,
    ReadPool, ReadSettings, Reader, RetrySettings, Tier, Wanted, cache,
};
pub use store::{Files, FoundFile, ObjectInfo, Store, StoreFault, system_text};
pub use write::Upload;
