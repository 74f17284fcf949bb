//! What waiting is worth: the planner weighs time against dollars, and one setting says how.

use anyhow::Result;
use hoplake::Strategy;
use serde::{Deserialize, Serialize};

use hoplake_testkit::clock::Quantiles;

use super::{
    hindsight::{self, Account},
    latency, queries,
    subject::{Setup, Subject},
};

/// One price of an hour of waiting.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Point {
    /// Milliseconds of store time of cold two-hop queries along `knows`.
    pub store_ms: Quantiles,
    /// Their requests.
    pub requests: Quantiles,
    /// Dollars of the workload, next to those of hindsight.
    pub account: Account,
}

/// What the part measures.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Figures {
    /// By what an hour is worth, ascending.
    pub points: Vec<Point>,
}

/// Measures worths from nothing to 16 $ an hour, on S3 Standard.
pub async fn measure(subject: &Subject, queries: usize) -> Result<Figures> {
    let warm = subject.open_local().await?;
    let cases = queries::workload(subject, &warm, 1).await?;
    let persons = latency::persons(&warm, queries).await?;
    let mut points = Vec::new();
    for waiting_usd_per_hour in [0.0, 0.25, 0.5, 1.0, 4.0, 16.0] {
        let mut setup = Setup::standard(256 << 20);
        setup.read.waiting_usd_per_hour = waiting_usd_per_hour;
        let cold = latency::kind(subject, &setup, "knows", Strategy::Bfs, 2, &persons).await?;
        setup.read.full_read_bytes_max = 0;
        let account = hindsight::account(subject, &setup, &cases).await?;
        points.push(Point { store_ms: cold.store_ms, requests: cold.requests, account });
    }
    Ok(Figures { points })
}
