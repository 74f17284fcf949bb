//! How fast a scan of all lists comes from the simulated bucket: the network alone, in virtual time, as if decoding took none.
//!
//! A computation that streams its lists reads both directions side by side, as here, and decodes and computes meanwhile. It is as fast as
//! the slower of the two; `computations` has how fast that is.

use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use clap::Args;
use futures::TryStreamExt;
use hoplake_engine::{ListRange, OpenSettings, Snapshot};
use hoplake_format::{Direction, EdgeTypeId};
use hoplake_storage::{QueryContext, ReadPool, ReadSettings, Reader, StoreProfile};
use hoplake_testkit::{SimStore, clock::in_virtual_time};
use object_store::{ObjectStore, ObjectStoreExt, local::LocalFileSystem, memory::InMemory};

/// What to measure.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// The folder of a graph with one edge type, such as `local` makes.
    #[arg(long)]
    folder: PathBuf,
    /// Bytes that are read ahead, in MiB; as many as fill the network card without it.
    #[arg(long)]
    ahead: Option<u64>,
    /// The seed of latencies.
    #[arg(long, default_value_t = 42)]
    seed: u64,
}

/// What a computation asks for at once.
const REQUEST_BYTES: u64 = 4 << 20;

/// Measures and prints a table.
pub fn run(arguments: &Arguments) -> Result<()> {
    println!("| store, simulated | ahead, MiB | requests | MiB | s | MB/s | of the card |\n|{}", " --- |".repeat(7));
    for profile in [StoreProfile::s3_standard(), StoreProfile::s3_express()] {
        let ahead = arguments.ahead.map_or(profile.bytes_in_flight(REQUEST_BYTES), |mib| mib << 20);
        let (requests, bytes, seconds) = in_virtual_time(async {
            let objects = Arc::new(InMemory::new());
            let from = LocalFileSystem::new_with_prefix(&arguments.folder)?;
            let mut names = from.list(None);
            while let Some(object) = names.try_next().await? {
                let bytes = from.get(&object.location).await?.bytes().await?;
                objects.put(&object.location, bytes.into()).await?;
            }
            let (sim, store) = SimStore::before(objects, profile.clone(), arguments.seed, "s3://bench");
            let reader = Reader::new(store, ReadPool::new(ReadSettings::default())?);
            let snapshot = Arc::new(Snapshot::open(reader, &OpenSettings::default()).await?);
            let mut branch = QueryContext::new().branch();
            let before = sim.counts();
            let began = tokio::time::Instant::now();
            let scan = |direction| snapshot.scan_lists(&ListRange::all(EdgeTypeId(0), direction), ahead / 2);
            let mut scans = [Direction::Out, Direction::In].map(scan);
            for scan in &mut scans {
                scan.ask(&mut branch).await?;
            }
            let mut goes_on = true;
            while goes_on {
                goes_on = false;
                for scan in &mut scans {
                    goes_on |= scan.next_block(&mut branch).await?.is_some();
                }
            }
            let counts = sim.counts();
            let requests = counts.requests.get - before.requests.get;
            anyhow::Ok((requests, counts.bytes_read - before.bytes_read, began.elapsed().as_secs_f64()))
        })?;
        let rate = bytes as f64 / seconds;
        println!(
            "| {} | {} | {requests} | {} | {seconds:.2} | {:.0} | {:.0} % |",
            profile.name,
            ahead >> 20,
            bytes >> 20,
            rate / 1e6,
            rate / profile.network_bytes_per_second as f64 * 100.0
        );
    }
    Ok(())
}
