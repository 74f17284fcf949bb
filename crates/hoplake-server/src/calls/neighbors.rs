//! Keys to vertices, and vertices to their edges.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use hoplake::{Graph, Held, Hop, Limits, Query, VertexId};
use tokio::sync::OwnedSemaphorePermit;

use super::{
    Bounds, Call, GraphRef, NeighborsRequest, RequestedLimits, ResultBatch, ResultSink, Service, VertexName,
    edge_columns::EdgeFields,
    vertices::{find, find_all, labels_of, resolve},
};
use crate::{
    cost::PricedCost,
    failure::{Failure, Reason},
};

/// Edges whose keys are read at a time: enough that most answers take one wave, few enough to be in memory at once.
const KEYS_MAX: usize = 64 << 10;
/// The estimated memory of a key while it is read and encoded.
pub(super) const KEY_BYTES: usize = 96;
/// Edges of a part, which is encoded in one go.
const EDGES_MAX: usize = 8 << 10;

/// Edges that were read, the memory they take, and the permit of a query of a stream.
pub(crate) struct Edges {
    pub(crate) all: Held<hoplake::Edges>,
    _permit: Option<OwnedSemaphorePermit>,
}

/// The vertices with these names; `None` where there is none.
pub(crate) async fn look_up(
    call: &mut Call,
    graph: &GraphRef,
    names: &[VertexName],
) -> Result<(Vec<Option<VertexId>>, u64), Failure> {
    let open = call.graph(graph).await?;
    call.service.check_batch(names)?;
    call.service.check_results(names.len())?;
    let named = resolve(&open.graph, names)?;
    let mut query = call.query(&open.graph, &call.limits(&RequestedLimits::default()));
    let found = call.bounded(find(&mut query, &named)).await;
    let found = call.settle(&query, &open.graph, found).await?;
    Ok((found, open.graph.version()))
}

/// The result of a hop, apart from its edges.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Neighbors {
    pub(crate) version: u64,
    /// The number of edges, if only that was wanted.
    pub(crate) count: Option<u64>,
}

/// The edges of a hop from some vertices, in the order of vertex left, type, direction and position, or their number.
pub(crate) async fn neighbors(
    call: &mut Call,
    graph: &GraphRef,
    request: &NeighborsRequest,
    sink: &mut dyn ResultSink,
) -> Result<Neighbors, Failure> {
    call.limit_time(request.limits.time_ms);
    let open = call.graph(graph).await?;
    let limits = call.limits(&request.limits);
    let mut query = call.query(&open.graph, &limits);
    let work = async {
        if request.count {
            call.service.check_batch(&request.vertices)?;
            let vertices = find_all(&mut query, &resolve(&open.graph, &request.vertices)?).await?;
            let degrees = query.degrees(&vertices, &request.hop).await?;
            return Ok(Some(degrees.iter().map(|degree| degree.edges).sum()));
        }
        let fields = EdgeFields::of(&open.graph, &request.hop, &request.select_edges)?;
        if !fields.is_empty() {
            // As the metadata of keys, it is read with the look-up.
            let labels = labels_of(&query, &resolve(&open.graph, &request.vertices)?);
            query.expect_edge_rows(&labels, &request.hop);
        }
        let edges =
            edges_of(&call.service, &open.graph, &mut query, &request.vertices, &request.hop, request.keys, &limits)
                .await?;
        put_edges(&open.graph, &mut query, &edges, request.keys, &fields, sink).await?;
        Ok(None)
    };
    let outcome = call.bounded(work).await;
    let count = call.settle(&query, &open.graph, outcome).await?;
    Ok(Neighbors { version: open.graph.version(), count })
}

/// One of many queries on a stream. It waits its turn like any other, and has the server's limits.
pub(crate) async fn stream_neighbors(
    service: &Arc<Service>,
    graph: &GraphRef,
    names: &[VertexName],
    hop: &Hop,
) -> Result<(Edges, PricedCost), Failure> {
    service.metrics.stream_query();
    let mut bounds = Bounds::begin(&service.lifecycle);
    bounds.shorten_ms(service.settings.limits.time_ms);
    let limits = Limits { timeout: bounds.left(), ..RequestedLimits::default().within(&service.settings.limits) };
    let work = async {
        // Each query of a stream is admitted on its own, so a stream that is open and idle takes no permit.
        let permit = service.admission.admit().await?;
        let open = service.catalog.acquire(&graph.name, graph.version).await?;
        let mut query = open.graph.query_within(&service.memory);
        query.limit(&limits);
        let edges = edges_of(service, &open.graph, &mut query, names, hop, false, &limits).await;
        let edges = service.catalog.unless_removed(&open.name, &open.graph, edges).await?;
        // The edges keep the permit until they are sent, as the exchange does for other calls: a stream is one exchange
        // of many queries.
        Ok((Edges { _permit: Some(permit), ..edges }, PricedCost::of(&query.cost(), open.graph.prices())))
    };
    bounds.bounded(work).await
}

/// The edges of a hop from vertices that are named.
pub(super) async fn edges_of(
    service: &Service,
    graph: &Graph,
    query: &mut Query,
    names: &[VertexName],
    hop: &Hop,
    keys: bool,
    limits: &Limits,
) -> Result<Edges, Failure> {
    service.check_batch(names)?;
    let named = resolve(graph, names)?;
    if keys {
        // The metadata for the keys is read with the look-up.
        query.expect_rows_at_end(&labels_of(query, &named), std::slice::from_ref(hop));
    }
    let vertices = find_all(query, &named).await?;
    let all = query.neighbors(&vertices, hop).await?;
    // Both limits fail and do not truncate: a client that requests all edges could overlook a flag (RFC 0004).
    check_vertices(all.len(), limits)?;
    service.check_results(all.len())?;
    Ok(Edges { all, _permit: None })
}

/// Puts edges part by part, with the keys of the vertices reached and properties of the edges if they are wanted.
pub(super) async fn put_edges(
    graph: &Graph,
    query: &mut Query,
    edges: &Edges,
    with_keys: bool,
    fields: &EdgeFields,
    sink: &mut dyn ResultSink,
) -> Result<(), Failure> {
    let all = match fields.is_empty() {
        true => Held::default(),
        false => fields.read(query, &edges.all).await?,
    };
    if edges.all.is_empty() {
        // The columns of a result are those of its first batch.
        let keys = with_keys.then_some(&[][..]);
        return sink.put(ResultBatch::Edges { graph, edges: edges.all.all(), keys, columns: &all }).await;
    }
    let mut before = 0;
    // Two sizes: large pieces save waves of keys, and small parts bound what is encoded before others have their turn.
    for edges in edges.all.all().chunks(KEYS_MAX) {
        let mut keys = None;
        let mut _hold = None;
        if with_keys {
            _hold = Some(query.memory().hold((edges.len() * KEY_BYTES) as u64)?);
            keys = Some(query.keys_of(edges.targets()).await?);
        }
        for (position, edges) in edges.chunks(EDGES_MAX).enumerate() {
            let from = position * EDGES_MAX;
            let keys = keys.as_ref().and_then(|keys| keys.get(from..from + edges.len()));
            let of_part = |(name, values): &(Arc<str>, ArrayRef)| (name.clone(), values.slice(before, edges.len()));
            let columns = all.iter().map(of_part).collect();
            before += edges.len();
            sink.put(ResultBatch::Edges { graph, edges, keys, columns: &columns }).await?;
        }
    }
    Ok(())
}

/// Rejects a result of more vertices than the limits allow. A single hop cannot be ended earlier.
pub(super) fn check_vertices(vertices: usize, limits: &Limits) -> Result<(), Failure> {
    let reached = limits.vertices_max.filter(|limit| vertices as u64 > *limit);
    let ended = |limit| Failure::new(Reason::Limit, format!("the query was ended at its limit of {limit} vertices"));
    reached.map_or(Ok(()), |limit| Err(ended(limit)))
}

impl Service {
    /// Rejects a result of too many items, if the request has no limit that could truncate it.
    pub(super) fn check_results(&self, results: usize) -> Result<(), Failure> {
        let most = self.settings.limits.results_max;
        if results > most {
            let message = format!(
                "the answer would have {results} items, more than the {most} of this server; name fewer vertices at a time"
            );
            return Err(Failure::new(Reason::Limit, message));
        }
        Ok(())
    }
}
