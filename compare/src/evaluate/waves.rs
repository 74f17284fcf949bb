//! A wave of 64 ranges, hedged or not, from a store that turns slow; waves of the workload; and an hour of nothing.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use hoplake::{HedgeSettings, ReadPool, ReadSettings, Reader, Store, StoreProfile, Strategy};
use hoplake_storage::{BlockRequest, Check, QueryContext};
use hoplake_testkit::{Sim, SimStore, clock::Quantiles};
use object_store::{ObjectStoreExt, memory::InMemory, path::Path};
use serde::{Deserialize, Serialize};

use super::{
    queries,
    subject::{Setup, Subject},
};

const RANGES: u64 = 64;
const RANGE_BYTES: u64 = 16 << 10;

/// Many waves under one condition.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Repeated {
    /// What is special.
    pub name: String,
    /// How many.
    pub waves: usize,
    /// Milliseconds of store time of each.
    pub store_ms: Quantiles,
    /// Requests beyond 64 a wave, as a share of these.
    pub extra_share: f64,
    /// Of these, repetitions of requests that took longer than one may.
    pub retries_share: f64,
}

/// Waves of a query of the workload.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct QueryWaves {
    /// `Q1` to `Q7`.
    pub query: String,
    /// Its hops.
    pub hops: usize,
    /// The most waves on an open graph, over its sources.
    pub open: u64,
    /// The most from an empty process.
    pub empty: u64,
    /// The median of its requests, on an open graph.
    pub requests: Quantiles,
}

/// What the part measures.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Figures {
    /// The 64 ranges.
    pub repeated: Vec<Repeated>,
    /// The workload.
    pub queries: Vec<QueryWaves>,
    /// Requests in an hour after the workload.
    pub idle_requests: u64,
}

/// Measures all of it.
pub async fn measure(subject: &Subject, waves: usize) -> Result<Figures> {
    let mut repeated = Vec::new();
    for (name, hedge) in [
        ("hedged", HedgeSettings::default()),
        ("not hedged", HedgeSettings { share_max: 0.0, ..HedgeSettings::default() }),
    ] {
        let (sim, reader) = reader(hedge).await?;
        repeated.push(repeat(name, &reader, waves).await?);
        sim.slow_by(100.0);
        repeated.push(
            repeat(&format!("{name}, from the moment the store is 100 times slower"), &reader, waves / 20).await?,
        );
    }
    let (queries, idle_requests) = workload(subject).await?;
    Ok(Figures { repeated, queries, idle_requests })
}

/// A reader of one object that joins nothing.
async fn reader(hedge: HedgeSettings) -> Result<(Sim, Reader)> {
    let objects = Arc::new(InMemory::new());
    let content = vec![7; (RANGES * RANGE_BYTES) as usize];
    objects.put(&Path::from("ranges"), content.into()).await?;
    let (sim, store): (Sim, Store) = SimStore::before(objects, StoreProfile::s3_standard(), 5, "s3://evaluation");
    let mut read = ReadSettings { request_bytes_max: 0, hedge, ..ReadSettings::default() };
    read.retry.seed = Some(1);
    Ok((sim, Reader::new(store, ReadPool::new(read)?)))
}

async fn repeat(name: &str, reader: &Reader, waves: usize) -> Result<Repeated> {
    let object = reader.object("ranges");
    let range = |number| number * RANGE_BYTES..(number + 1) * RANGE_BYTES;
    // Not cached: `Check::Later` leaves the check to the caller.
    let requests: Vec<_> =
        (0..RANGES).map(|number| BlockRequest { object: &object, range: range(number), check: Check::Later }).collect();
    let mut took = Vec::with_capacity(waves);
    let mut sent = 0;
    let mut retries = 0;
    for _ in 0..waves {
        let context = QueryContext::new();
        let begun = tokio::time::Instant::now();
        reader.read(&requests, &mut context.branch()).await?;
        took.push(begun.elapsed().as_secs_f64() * 1e3);
        sent += context.cost().requests;
        retries += context.cost().retries;
    }
    let least = RANGES * waves as u64;
    Ok(Repeated {
        name: name.to_owned(),
        waves,
        store_ms: Quantiles::of(took),
        extra_share: (sent - least) as f64 / least as f64,
        retries_share: retries as f64 / least as f64,
    })
}

async fn workload(subject: &Subject) -> Result<(Vec<QueryWaves>, u64)> {
    let cases = queries::workload(subject, &subject.open_local().await?, 1).await?;
    let mut figures: Vec<QueryWaves> = Vec::new();
    let mut idle_requests = 0;
    for cases in cases.chunks(queries::SOURCES) {
        let mut open = 0;
        let mut empty = 0;
        let mut requests = Vec::new();
        for case in cases {
            let opened = subject.open(&Setup::standard(256 << 20)).await?;
            let mut query = opened.graph.query();
            query.run(&case.request(Strategy::Bfs)).await?;
            open = query.cost().waves.max(open);
            empty = (opened.graph.open_cost().waves + query.cost().waves).max(empty);
            requests.push(query.cost().requests as f64);
            opened.grow_cold().await;
            opened.sim.reset_counts();
            tokio::time::sleep(Duration::from_secs(3600)).await;
            idle_requests += opened.sim.counts().requests.total();
        }
        let hops = cases[0].hops.len();
        let requests = Quantiles::of(requests);
        figures.push(QueryWaves { query: cases[0].query.into(), hops, open, empty, requests });
    }
    Ok((figures, idle_requests))
}
