//! Cursors, traversals that a client steers: open, next neighbours, close.
//!
//! One pins the version of its graph, and has one cost meter and one set of limits over all its steps. Steps of one
//! cursor run one after another. An idle cursor is closed after a while.

use std::{
    sync::{Arc, Mutex},
    time::Instant,
};

use hoplake::{Hop, Limits};

use super::{
    Call, GraphRef, RequestedLimits, ResultSink, Service, VertexName,
    cursors::{Cursor, Steps, unknown},
    edge_columns::EdgeFields,
    neighbors::{check_vertices, edges_of, put_edges},
};
use crate::{
    cost::PricedCost,
    failure::{Failure, Reason},
};

/// The size of an idle cursor, in bytes: its query, its entry in the list, its meter.
const OPEN_BYTES: u64 = 16 << 10;

/// A traversal that was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) id: String,
    pub(crate) version: u64,
    pub(crate) idle_ms: u64,
}

/// A step.
#[derive(Debug, Clone)]
pub(crate) struct NextNeighborsRequest {
    pub(crate) id: String,
    pub(crate) vertices: Vec<VertexName>,
    pub(crate) hop: Hop,
    pub(crate) keys: bool,
}

/// The total cost of a closed cursor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Closed {
    pub(crate) cost: PricedCost,
    pub(crate) vertices: u64,
}

/// Opens a traversal.
pub(crate) async fn open(call: &mut Call, graph: &GraphRef, limits: &RequestedLimits) -> Result<Opened, Failure> {
    let open = call.graph(graph).await?;
    let settings = &call.service.settings;
    let id = ulid::Ulid::generate().to_string();
    // Its memory is its own from call to call, and within that of all.
    let memory = &call.service.memory;
    let steps = Steps { query: open.graph.query_within(memory), vertices: 0 };
    let version = open.graph.version();
    let cursor = Cursor {
        _hold: memory.hold(OPEN_BYTES)?,
        limits: limits.within(&settings.limits),
        time_ms: limits.time_ms,
        steps: steps.into(),
        used: Mutex::new(Instant::now()),
        open,
    };
    // Locked from the check to the insertion, or calls that open at the same time would exceed the maximum together.
    let mut all = call.service.cursors.all();
    if all.len() >= settings.traversals_max {
        let message = format!("{} traversals are open; close one, or try again later", all.len());
        return Err(Failure::new(Reason::Busy, message));
    }
    all.insert(id.clone(), Arc::new(cursor));
    Ok(Opened { id, version, idle_ms: settings.traversal_idle_ms })
}

/// The edges of a hop from the vertices that the client names; returns their version.
pub(crate) async fn next_neighbors(
    call: &mut Call,
    request: &NextNeighborsRequest,
    sink: &mut dyn ResultSink,
) -> Result<u64, Failure> {
    // Before the look-up: without a token, a client must not find out which ids are open.
    call.check_token()?;
    let cursor = call.service.cursors.get(&request.id)?;
    call.about(&cursor.open.name);
    // Each step has the whole time: a cursor lives as long as its client needs between steps.
    call.limit_time(cursor.time_ms);
    call.enter().await?;
    let graph = &cursor.open.graph;
    let mut steps = call.bounded(async { Ok(cursor.steps.lock().await) }).await?;
    // At both ends: a step that takes longer than the idle time must not end with an expired cursor.
    cursor.touch();
    let before = steps.query.cost();
    steps.query.limit(&Limits { timeout: call.bounds.left(), ..cursor.limits });
    let outcome = call.bounded(step(&call.service, &cursor, &mut steps, request, sink)).await;
    let outcome = call.unless_removed(graph, outcome).await;
    cursor.touch();
    let cost = PricedCost::since(&steps.query, &before, graph.prices());
    call.settle_cost(cost, outcome)?;
    Ok(graph.version())
}

async fn step(
    service: &Service,
    cursor: &Cursor,
    steps: &mut Steps,
    request: &NextNeighborsRequest,
    sink: &mut dyn ResultSink,
) -> Result<(), Failure> {
    let graph = &cursor.open.graph;
    // Counted before the step reads: one that fails halfway may have read as much as one that succeeds.
    steps.vertices += request.vertices.len() as u64;
    // The meter is the cursor's: a step that would begin beyond a limit fails.
    check_vertices(steps.vertices as usize, &cursor.limits)?;
    // A single hop counts the edges that it reaches. Here the limit is on vertices that steps go on from, checked above.
    let unbounded = Limits { vertices_max: None, ..cursor.limits };
    let edges =
        edges_of(service, graph, &mut steps.query, &request.vertices, &request.hop, request.keys, &unbounded).await?;
    put_edges(graph, &mut steps.query, &edges, request.keys, &EdgeFields::default(), sink).await
}

/// Closes a traversal.
pub(crate) async fn close(call: &mut Call, id: &str) -> Result<Closed, Failure> {
    call.check_token()?;
    // Without a permit, so that a client can free its cursor while the queue is full. Removed before the wait for the
    // running step, so that no later request finds it.
    let cursor = call.service.cursors.all().remove(id).ok_or_else(|| unknown(id))?;
    call.about(&cursor.open.name);
    let steps = call.bounded(async { Ok(cursor.steps.lock().await) }).await?;
    Ok(Closed { cost: PricedCost::of(&steps.query.cost(), cursor.open.graph.prices()), vertices: steps.vertices })
}
