//! Eviction policies and λ on the accesses of the workload.
//!
//! The workload runs once with no cache at all, so that the store is asked for every block that every wave needs; that
//! trace is replayed through the policies of the memory cache, and for comparison through Belady's and a bound
//! that no policy passes.

use std::path::Path;

use anyhow::Result;
use hoplake::{Strategy, Traversal};
use hoplake_cache_sim::{Contender, Plan, Workload};
use hoplake_storage::{
    Tier,
    cache::Policy,
    trace::{Access, Recording, Trace},
};
use serde::{Deserialize, Serialize};

use super::{
    queries::{self, Case},
    subject::{Opened, Setup, Subject},
};

/// Rounds of the workload in the trace, each from other sources.
const ROUNDS: u64 = 10;

/// A policy under a budget.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// The policy.
    pub policy: String,
    /// The budget, in bytes.
    pub cache_bytes_max: u64,
    /// Accesses served, of all.
    pub hit_ratio: f64,
    /// The same by bytes.
    pub byte_hit_ratio: f64,
    /// Requests that the rest would take; none is known for the bound.
    pub requests: Option<u64>,
}

/// What the part measures.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Figures {
    /// Accesses in the trace.
    pub accesses: u64,
    /// Distinct blocks of the trace, in bytes.
    pub distinct_bytes: u64,
    /// Every policy and budget.
    pub outcomes: Vec<Outcome>,
    /// LRFU from frequency (0) to recency (1).
    pub lambda: Vec<Outcome>,
}

/// Records and replays.
pub async fn measure(subject: &Subject, folder: &Path) -> Result<Figures> {
    let file = folder.join(format!("workload-{}.csv.zst", subject.facts.size.name()));
    record(subject, &file).await?;
    let recording = Recording::read(&file)?;
    let workload = Workload::new(&recording);
    let summary = workload.summary();
    let sizes: Vec<u64> = (1..=5).map(|halvings| (summary.cache_bytes >> halvings).max(1 << 18)).rev().collect();
    let plan = Plan { sizes: sizes.clone(), ..Plan::default() };
    let outcomes = plan.run(&workload, 1).iter().map(outcome).collect();
    let lambdas = [0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 1.0];
    let contenders =
        lambdas.map(|lambda| Contender::Policy { policy: Policy::Lrfu { lambda }, fetch_cost: None }).to_vec();
    let plan = Plan { sizes: vec![sizes[2]], contenders, ..Plan::default() };
    let lambda = plan.run(&workload, 1).iter().map(outcome).collect();
    Ok(Figures { accesses: summary.accesses, distinct_bytes: summary.cache_bytes, outcomes, lambda })
}

fn outcome(outcome: &hoplake_cache_sim::Outcome) -> Outcome {
    Outcome {
        policy: outcome.contender.to_string(),
        cache_bytes_max: outcome.cache_bytes_max,
        hit_ratio: outcome.object_hit_ratio(),
        byte_hit_ratio: outcome.byte_hit_ratio(),
        requests: outcome.fetched.map(|fetched| fetched.requests),
    }
}

async fn record(subject: &Subject, file: &Path) -> Result<()> {
    let opened = subject.open(&Setup::standard(0)).await?;
    opened.recorder.keep();
    opened.recorder.take();
    let trace = Trace::create(file)?;
    let local = subject.open_local().await?;
    for round in 0..ROUNDS {
        for case in queries::drawn_workload(&local, round).await? {
            record_case(&opened, &case, &trace).await?;
        }
    }
    trace.finish()?;
    Ok(())
}

async fn record_case(opened: &Opened, case: &Case, trace: &Trace) -> Result<()> {
    let number = trace.next_query();
    let mut query = opened.graph.query();
    let note = |wave: u32| {
        for sent in opened.recorder.take() {
            for block in sent.blocks {
                let bytes = block.end - block.start;
                let object = &*sent.object;
                let position = block.start;
                trace.record(&Access { query: number, wave, object, position, bytes, served: Tier::Store });
            }
        }
    };
    let mut starts = query.named(std::slice::from_ref(&case.start)).await?;
    note(0);
    for (wave, hop) in (1..).zip(&case.hops) {
        let traversal = Traversal { starts, hops: vec![hop.clone()], strategy: Strategy::Bfs, ..Traversal::default() };
        starts = query.traverse(traversal).await?.last().vertices().collect();
        note(wave);
    }
    Ok(())
}
