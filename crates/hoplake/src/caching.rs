//! What memory is worth: policies of the memory cache, traces of accesses, and the simulator that holds one
//! against the other.
//!
//! ```
//! use hoplake::caching::{Access, Contender, Plan, Recording, Tier, Trace, Workload};
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
//! let workload = Workload::new(&Recording::read(&path)?);
//! let contenders = vec!["lru".parse()?, Contender::Belady];
//! // Room for three of the four.
//! let plan = Plan { sizes: vec![workload.summary().cache_bytes * 3 / 4], contenders, ..Plan::default() };
//! let hits: Vec<_> = plan.run(&workload, 1).iter().map(|outcome| outcome.hits).collect();
//! assert_eq!(hits, [0, 27]);
//! # Ok(())
//! # }
//! ```

pub use hoplake_storage::{
    Tier,
    cache::{
        CacheCounts, CacheSettings, FetchCost, Policy, PolicyError,
        simulate::{Contender, Fetched, Outcome, Plan, Summary, Workload},
    },
    trace::{Access, ReadAccess, Recording, Trace, TraceError},
};
