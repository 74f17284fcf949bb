//! Blocks for algorithm nodes: what an access node is request.

use bytes::Bytes;
use hoplake::access::{ObjectInfo, QueryContext, StorageError, Wanted};

use super::Call;
use crate::{
    access::{ServedGraph, check_folder, check_object},
    cost::PricedCost,
    failure::Failure,
};

/// The name of the profile of a graph's store.
pub(crate) async fn describe(call: &mut Call, graph: &str) -> Result<String, Failure> {
    read(call, graph, async |served, _| Ok(served.reader.store().profile().name.clone())).await
}

/// A complete object; `None` if it does not exist.
pub(crate) async fn get(call: &mut Call, graph: &str, name: &str) -> Result<Option<Bytes>, Failure> {
    // Before the call is admitted: an invalid name must not wait in the queue or reach a store.
    check_object(name)?;
    read(call, graph, async |served, context| Ok(served.reader.read_object(name, &mut context.branch(), Ok).await?))
        .await
}

/// Blocks of an object as they are stored.
pub(crate) async fn fetch(
    call: &mut Call,
    graph: &str,
    object: &str,
    wanted: &[Wanted],
) -> Result<Vec<Bytes>, Failure> {
    check_object(object)?;
    // Until the last of them is sent; a node that asks for more than there is room for asks another.
    let bytes = wanted.iter().map(|block| block.range.end.saturating_sub(block.range.start)).sum();
    let hold = call.service.memory.hold(bytes).map_err(|full| Failure::no_memory(full, bytes))?;
    call.exchange.hold_response(hold);
    read(call, graph, async |served, context| served.reader.read_stored(&served.object(object), wanted, context).await)
        .await
}

/// The objects in a folder.
pub(crate) async fn list(call: &mut Call, graph: &str, folder: &str) -> Result<Vec<ObjectInfo>, Failure> {
    check_folder(folder)?;
    read(call, graph, async |served, context| Ok(served.reader.list(folder, &mut context.branch()).await?)).await
}

/// Admits the call and reads, within its bounds; a client that disconnects drops the read.
async fn read<T>(
    call: &mut Call,
    graph: &str,
    work: impl AsyncFnOnce(&ServedGraph, &QueryContext) -> Result<T, StorageError>,
) -> Result<T, Failure> {
    call.about(graph);
    call.enter_for_blocks().await?;
    let service = call.service.clone();
    let served = call.bounded(service.served.get(graph)).await?;
    // A meter of its own: the answer reports this cost, and the algorithm node adds it to that of its query.
    let context = QueryContext::new();
    let work = async { work(&served, &context).await.map_err(|error| hoplake::Error::from(error).into()) };
    let outcome = call.bounded(work).await;
    let cost = PricedCost::of(&context.cost(), served.reader.store().prices());
    call.settle_cost(cost, outcome)
}
