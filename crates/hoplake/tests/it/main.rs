//! The facade on real data, on real stores, against other systems' answers and a naive oracle.
#![allow(clippy::unwrap_used)]

mod batches;
mod blocking;
mod bounds;
mod columns;
mod commits;
mod compaction;
mod computing;
mod costs;
mod damage;
mod deadlines;
mod diffs;
mod duckdb;
mod durable;
mod edge_keys;
mod full;
mod golden;
mod graphs;
mod indexes;
mod loads;
mod mapped;
mod mirrors;
mod oracle;
mod overtaken;
mod past;
mod removed_below;
mod scans;
mod simulated;
mod snb;
mod social_network;
mod stores;
mod vast;
mod verification;
mod waves;
mod write_costs;
