//! Topologies that are loaded from stored graphs, kernels over real data, and programs.

#![allow(clippy::unwrap_used)]

mod graphalytics;
mod loading;
mod programs;

use std::sync::Arc;

use hoplake::{LoadOptions, OpenSettings, Store};
use hoplake_engine::Snapshot;
use hoplake_storage::{ReadPool, ReadSettings, Reader};

/// Loads what lies in a folder, as a graph in memory.
async fn load(name: &str, folder: &std::path::Path) -> String {
    let url = format!("memory://analytics/{name}");
    hoplake::load(&url, LoadOptions::from_paths([folder])).await.unwrap();
    url
}

/// The newest version of a graph.
async fn open(url: &str) -> Arc<Snapshot> {
    let reader = Reader::new(Store::open(url).unwrap(), ReadPool::new(ReadSettings::default()).unwrap());
    Arc::new(Snapshot::open(reader, &OpenSettings::default()).await.unwrap())
}
