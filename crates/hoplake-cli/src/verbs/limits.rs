//! Limits of a query, and how its threads are chosen.

use std::time::Duration;

use bytesize::ByteSize;
use hoplake::{Limits, compute::COMPUTE_MEMORY_BYTES};

use crate::arguments;

/// Limits that end a query early.
#[derive(Debug, clap::Args)]
pub struct LimitArgs {
    /// End the query after this time, as in 500ms or 2m
    #[arg(long, help_heading = "Limits", value_name = "TIME", value_parser = humantime::parse_duration)]
    timeout: Option<Duration>,
    /// End the query when it has sent more requests to the store
    #[arg(long, help_heading = "Limits", value_name = "N", value_parser = arguments::count::<u64>, allow_negative_numbers = true)]
    max_requests: Option<u64>,
    /// End the query when it has read more bytes from the store, as in 64MiB
    #[arg(long, help_heading = "Limits", value_name = "SIZE", value_parser = arguments::size)]
    max_bytes: Option<ByteSize>,
    /// End the query when it has cost more US dollars
    #[arg(long, help_heading = "Limits", value_name = "USD", value_parser = arguments::dollars, allow_negative_numbers = true)]
    max_usd: Option<f64>,
    /// End the query when it holds more memory for sets, edges, paths, rows and values, as in 256MiB; caches do not count. Without
    /// it, the limit of `query`, `queries call`, `console` and `run` is 2GiB
    #[arg(long, help_heading = "Limits", value_name = "SIZE", value_parser = arguments::size)]
    max_memory: Option<ByteSize>,
}

impl LimitArgs {
    /// As [`Self::limits`], with a limit of memory if none was given: for queries whose text decides what they build.
    pub fn limits_with_memory(&self) -> Limits {
        let limits = self.limits();
        Limits { memory_bytes_max: Some(limits.memory_bytes_max.unwrap_or(COMPUTE_MEMORY_BYTES)), ..limits }
    }

    /// As the engine takes them.
    pub fn limits(&self) -> Limits {
        Limits {
            timeout: self.timeout,
            vertices_max: None,
            requests_max: self.max_requests,
            bytes_max: self.max_bytes.map(|size| size.as_u64()),
            usd_max: self.max_usd,
            memory_bytes_max: self.max_memory.map(|size| size.as_u64()),
        }
    }
}

/// The limit of queries that visit vertices one after another, in addition to [`LimitArgs`].
#[derive(Debug, clap::Args)]
pub struct VertexLimitArgs {
    /// End the query when it has visited more vertices, over all depths, or a scan has found more
    #[arg(long, help_heading = "Limits", value_name = "N", value_parser = arguments::count::<u64>, allow_negative_numbers = true)]
    max_vertices: Option<u64>,
}

impl VertexLimitArgs {
    /// As the engine takes it; the other limits are the query's.
    pub fn limits(&self) -> Limits {
        Limits { vertices_max: self.max_vertices, ..Limits::default() }
    }
}

/// As many threads as there are processors.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
