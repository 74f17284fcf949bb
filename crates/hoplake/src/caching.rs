//! The memory cache: its settings, its eviction policies, and traces of accesses.
//!
//! The crate `hoplake-cache-sim` replays a trace through the policies at other sizes (`hoplake cache-sim`).
//!
//! ```
//! use hoplake::caching::{Access, Recording, Tier, Trace};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("trace.csv.zst");
//! let trace = Trace::create(&path)?;
//! for position in [0, 1, 2, 3].repeat(10) {
//!     let query = trace.next_query();
//!     trace.record(&Access { query, wave: 0, object: "a", position, bytes: 1, served: Tier::Store });
//! }
//! trace.finish()?;
//!
//! let recording = Recording::read(&path)?;
//! assert_eq!((recording.accesses.len(), &recording.objects[..]), (40, &["a".to_string()][..]));
//! # Ok(())
//! # }
//! ```

pub use hoplake_storage::{
    Tier,
    cache::{CacheCounts, CacheSettings, FetchCost, Policy, PolicyError},
    trace::{Access, ReadAccess, Recording, Trace, TraceError},
};
