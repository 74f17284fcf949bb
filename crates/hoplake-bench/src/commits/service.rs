//! Commits through the service next to the same commits embedded: 64 callers before one simulated store, in real time.
//!
//! The two take turns on the machine, and a rate is the median of its turns. The service is in this process, as are its clients, which
//! speak gRPC over loopback: what it adds is the wire, its bounds, and reading the changes from JSON Lines.

use std::{net::SocketAddr, sync::Arc, time::Instant};

use anyhow::{Context, Result};
use futures::future::try_join_all;
use hoplake::{Batch, Store, StoreProfile};
use hoplake_server::{
    ServerBuilder, Settings,
    v1::{self, graphs_client::GraphsClient},
};
use hoplake_testkit::{SimStore, clock::median, generate::SplitMix64};
use serde_json::json;
use tokio::{sync::oneshot, task::JoinHandle};
use tonic::transport::{Channel, Endpoint};

use super::{Arguments, Base, URL};

const CALLERS: usize = 64;
const CONNECTIONS: usize = 4;
/// Turns of each way.
const TURNS: usize = 3;
/// Batches of a caller in a turn, at least: enough that the first and the last version weigh little.
const BATCHES_MIN: usize = 20;

/// Prints a row for each size of batches.
pub(super) async fn run(arguments: &Arguments, base: Base) -> Result<()> {
    println!("\n| edges a batch | callers | embedded, commits/s | service, commits/s | service / embedded |");
    println!("| --- | --- | --- | --- | --- |");
    let base = Arc::new(base);
    for edges in [1, 100] {
        let mut embedded = Vec::new();
        let mut service = Vec::new();
        for turn in 0..TURNS {
            let seed = arguments.seed ^ (turn as u64) << 48;
            embedded.push(by_library(arguments, &base, edges, seed).await?);
            service.push(by_service(arguments, &base, edges, seed).await?);
        }
        let [embedded, service] = [embedded, service].map(|rates| median(rates).unwrap_or(f64::NAN));
        println!("| {edges} | {CALLERS} | {embedded:.0} | {service:.0} | {:.2} |", service / embedded);
    }
    Ok(())
}

/// Batches of a caller in a turn.
fn batches(arguments: &Arguments) -> usize {
    arguments.commits.div_ceil(CALLERS).max(BATCHES_MIN)
}

async fn by_library(arguments: &Arguments, base: &Arc<Base>, edges: usize, seed: u64) -> Result<f64> {
    let (_, graph) = base.open(StoreProfile::s3_standard(), seed).await?;
    let prepare = |caller: usize| {
        let mut random = SplitMix64::new(seed ^ (caller as u64) << 32);
        (0..batches(arguments)).map(|_| base.batch(&mut random, edges)).collect::<Vec<Batch>>()
    };
    let prepared: Vec<_> = (0..CALLERS).map(prepare).collect();
    let callers = prepared.into_iter().map(|batches| {
        let graph = graph.clone();
        tokio::spawn(async move {
            for batch in batches {
                graph.apply(batch).await?;
            }
            anyhow::Ok(())
        })
    });
    rate(arguments, callers).await
}

async fn by_service(arguments: &Arguments, base: &Arc<Base>, edges: usize, seed: u64) -> Result<f64> {
    let (_, store) = SimStore::before(base.objects.clone(), StoreProfile::s3_standard(), seed, URL);
    let (stop, stopped) = oneshot::channel::<()>();
    let (channels, server) = serve(store, stopped).await?;
    let prepare = |caller: usize| {
        let mut random = SplitMix64::new(seed ^ (caller as u64) << 32);
        (0..batches(arguments)).map(|_| request(base, &mut random, edges)).collect::<Vec<_>>()
    };
    let prepared: Vec<_> = (0..CALLERS).map(prepare).collect();
    // It opens the graph, which the other way has done before its clock starts, too.
    let graph = Some(v1::GraphRef { name: "g".into(), version: 0 });
    GraphsClient::new(channels[0].clone()).get_graph(v1::GetGraphRequest { graph }).await?;
    let callers = prepared.into_iter().enumerate().map(|(caller, requests)| {
        let mut client = GraphsClient::new(channels[caller % CONNECTIONS].clone());
        tokio::spawn(async move {
            for request in requests {
                client.apply(request).await?;
            }
            anyhow::Ok(())
        })
    });
    let rate = rate(arguments, callers).await?;
    drop(channels);
    let _ = stop.send(());
    server.await??;
    Ok(rate)
}

/// A server of the graph in a store, and connections to it.
async fn serve(
    store: Store,
    stopped: oneshot::Receiver<()>,
) -> Result<(Vec<Channel>, JoinHandle<Result<(), hoplake_server::ServerError>>)> {
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let settings = Settings {
        grpc: local,
        http: local,
        graphs: vec![format!("g={URL}")],
        writable: true,
        notice_ms: 0,
        ..Settings::default()
    };
    let server = ServerBuilder::new(settings).open_stores_with(Arc::new(move |_| Ok(store.clone()))).bind().await?;
    let address = format!("http://{}", server.grpc());
    let server = tokio::spawn(server.run(async { drop(stopped.await) }));
    let connect = (0..CONNECTIONS).map(|_| async { Endpoint::new(address.clone())?.connect().await });
    Ok((try_join_all(connect).await?, server))
}

/// The batch that [`Base::batch`] makes, as JSON Lines.
fn request(base: &Base, random: &mut SplitMix64, edges: usize) -> v1::ApplyRequest {
    let line = |((source, target), since): ((i64, i64), i64)| {
        let line = json!({
            "op": "upsert_edge", "label": "follows", "source": ["vertex", source], "target": ["vertex", target],
            "properties": {"since": since}, "replace": true
        });
        line.to_string() + "\n"
    };
    let changes: String = base.pairs(random, edges).into_iter().map(line).collect();
    let format = v1::ChangesFormat::JsonLines.into();
    v1::ApplyRequest { graph: "g".into(), format, changes: changes.into(), ..Default::default() }
}

/// Commits per second of callers that begin together.
async fn rate(arguments: &Arguments, callers: impl Iterator<Item = JoinHandle<Result<()>>>) -> Result<f64> {
    let begun = Instant::now();
    for caller in callers.collect::<Vec<_>>() {
        caller.await.context("a caller stopped")??;
    }
    Ok((CALLERS * batches(arguments)) as f64 / begun.elapsed().as_secs_f64())
}
