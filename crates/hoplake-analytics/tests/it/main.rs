//! Topologies that are loaded from stored graphs, kernels over real data, and programs.

#![allow(clippy::unwrap_used)]

mod asynchronous;
mod graphalytics;
mod loading;
mod packed;
mod parts;
mod programs;
mod ranges;

use std::sync::Arc;

use hoplake::{LoadOptions, OpenSettings, Store};
use hoplake_analytics::Topology;
use hoplake_engine::Snapshot;
use hoplake_storage::{QueryContext, ReadPool, ReadSettings, Reader};

/// Loads what lies in a folder, as a graph in memory.
async fn load(name: &str, folder: &std::path::Path) -> String {
    let url = format!("memory://analytics/{name}");
    load_at(&url, folder).await;
    url
}

async fn load_at(url: &str, folder: &std::path::Path) {
    hoplake::load(url, LoadOptions::from_paths([folder])).await.unwrap();
}

/// The newest version of a graph.
async fn open(url: &str) -> Arc<Snapshot> {
    let reader = Reader::new(Store::open(url).unwrap(), ReadPool::new(ReadSettings::default()).unwrap());
    Arc::new(Snapshot::open(reader, &OpenSettings::default()).await.unwrap())
}

/// The key of each dense id, in a graph whose keys are integers; 0 where there is no vertex any more.
async fn keys(snapshot: &Arc<Snapshot>, topology: &Topology) -> Vec<i64> {
    let mut keys = vec![0; topology.ids.len() as usize];
    for (label, own) in topology.ids.by_label() {
        let mut scan = snapshot.scan_keys(label, 1 << 20);
        let mut found = Vec::new();
        while scan.next(&mut found, &mut QueryContext::new().branch()).await.unwrap() {
            for (key, ordinal) in &found {
                keys[(own.start + ordinal) as usize] = key.to_string().parse().unwrap();
            }
        }
    }
    keys
}
