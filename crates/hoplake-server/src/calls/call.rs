//! One request, from its headers to its line in the log.
//!
//! A call holds its permit to run until its response is sent, through its [`Exchange`]. If the client disconnects, or does not read,
//! the call is dropped before it is finished, and is logged as CANCELLED.

use std::{future::Future, sync::Arc};

use hoplake::{Background, Cost, Graph, Limits, MemoryBudget, Query};
use hoplake_doors::Exchange;
use tracing::{Level, Span};

use super::{GraphRef, RequestContext, RequestedLimits, Service, bounds::Bounds};
use crate::{
    admission::Admission,
    catalog::OpenGraph,
    cost::PricedCost,
    failure::{Failure, Reason},
    telemetry,
};

/// One request.
pub(crate) struct Call {
    pub(crate) service: Arc<Service>,
    /// Names it in the log, and to the client.
    pub(crate) id: String,
    /// The parent of spans within the call.
    pub(crate) span: Span,
    /// Its cost so far.
    pub(crate) cost: PricedCost,
    /// Whether its result was kept from another request.
    pub(crate) cached: bool,
    protocol: &'static str,
    name: &'static str,
    graph: String,
    pub(crate) bounds: Bounds,
    is_authenticated: bool,
    for_node: bool,
    /// The request and its response, at the port.
    pub(crate) exchange: Arc<Exchange>,
    /// The memory of the call, a part of the shared budget.
    pub(crate) memory: MemoryBudget,
    finished: bool,
}

impl Call {
    /// Begins the call of a request; nothing is checked yet.
    pub(crate) fn begin(service: &Arc<Service>, context: RequestContext) -> Self {
        let RequestContext { protocol, call: name, id, span, is_authenticated, timeout, exchange } = context;
        // The time runs from the headers on, so that a body that arrives slowly and the wait in the queue count, too.
        let mut bounds = Bounds::begin(&service.lifecycle);
        if let Some(timeout) = timeout {
            bounds.shorten(timeout);
        }
        Self {
            id,
            span,
            cost: PricedCost::default(),
            cached: false,
            protocol,
            name,
            graph: String::new(),
            bounds,
            is_authenticated,
            for_node: false,
            exchange,
            memory: service.memory.within("the query", service.settings.query_memory()),
            finished: false,
            service: service.clone(),
        }
    }

    /// Sets its deadline this many milliseconds after its start, unless it has an earlier one; 0 changes nothing.
    pub(crate) fn limit_time(&mut self, time_ms: u64) {
        self.bounds.shorten_ms(time_ms);
    }

    /// Admits it: with the right token, when a permit is free.
    ///
    /// # Errors
    /// [`Reason::Unauthenticated`], [`Reason::Busy`], [`Reason::Time`].
    pub(crate) async fn enter(&mut self) -> Result<(), Failure> {
        self.enter_through(|service| &service.admission).await
    }

    /// Admits it with a permit of the fetches, not of the queries: the other node has admitted the query.
    ///
    /// # Errors
    /// As [`Self::enter`].
    pub(crate) async fn enter_for_blocks(&mut self) -> Result<(), Failure> {
        self.enter_through(|service| &service.fetches).await
    }

    /// Admits it with a permit of changes, not of queries.
    ///
    /// # Errors
    /// As [`Self::enter`].
    pub(crate) async fn enter_to_change(&mut self) -> Result<(), Failure> {
        self.enter_through(|service| &service.changes).await
    }

    /// As [`Self::graph`], for a batch of changes.
    ///
    /// # Errors
    /// As [`Self::graph`].
    pub(crate) async fn graph_to_change(&mut self, graph: &GraphRef) -> Result<Arc<OpenGraph>, Failure> {
        self.graph.clone_from(&graph.name);
        self.enter_to_change().await?;
        let catalog = self.service.catalog.clone();
        let found = async {
            let open = catalog.acquire(&graph.name, graph.version).await?;
            catalog.seen(open).await
        };
        self.bounded(found).await
    }

    async fn enter_through(&mut self, gate: impl Fn(&Service) -> &Admission) -> Result<(), Failure> {
        // Before the queue: a client without the token takes no place in it.
        self.check_token()?;
        let service = self.service.clone();
        self.limit_time(service.settings.limits.time_ms);
        // An immediate permit does not wait, so that `bounded` would not look at the deadline.
        self.bounds.check()?;
        // The wait is bounded by the deadline: a permit that comes later would be of no use to the client.
        let permit = self.bounded(gate(&service).admit()).await?;
        // Kept by the exchange, not by the call: a query runs until its response is sent.
        self.exchange.hold_permit(permit);
        Ok(())
    }

    /// Marks it as a part of a request to another node, which logs that request.
    pub(crate) fn mark_for_node(&mut self) {
        self.for_node = true;
    }

    /// Rejects it without the right token.
    ///
    /// # Errors
    /// [`Reason::Unauthenticated`].
    pub(crate) fn check_token(&self) -> Result<(), Failure> {
        let rejection = || {
            let message = "this server wants a token: send the header authorization: Bearer TOKEN";
            Failure::new(Reason::Unauthenticated, message)
        };
        self.is_authenticated.then_some(()).ok_or_else(rejection)
    }

    /// Admits it and opens its graph.
    ///
    /// # Errors
    /// As [`Self::enter`]; that the graph does not exist; the store's error.
    pub(crate) async fn graph(&mut self, graph: &GraphRef) -> Result<Arc<OpenGraph>, Failure> {
        // Before it is admitted, so that the log line of a rejected call has the graph.
        self.graph.clone_from(&graph.name);
        self.enter().await?;
        let catalog = self.service.catalog.clone();
        self.bounded(catalog.acquire(&graph.name, graph.version)).await
    }

    /// Names its graph, for the log.
    pub(crate) fn about(&mut self, graph: &str) {
        graph.clone_into(&mut self.graph);
    }

    /// Waits for `work` until the deadline, or until the server ends. Dropping the work ends it.
    pub(crate) async fn bounded<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        self.bounds.bounded(work).await
    }

    /// The limits of the engine: the server's, or less if the client asks for less. Those on memory hold from now on.
    pub(crate) fn limits(&self, requested: &RequestedLimits) -> Limits {
        let limits = requested.within(&self.service.settings.limits);
        // The call's own budget, from which edges, rows and the unsent response are taken; the shared one stays as it is.
        self.bound_memory(limits.memory_bytes_max);
        Limits { timeout: self.bounds.left(), ..limits }
    }

    /// Bounds its memory to what the request allows, and to what would be left next to the request if no other had any: what exceeds
    /// that can never be granted, so the client must not be told to retry.
    pub(crate) fn bound_memory(&self, requested: Option<u64>) {
        let settings = &self.service.settings;
        let alone = settings.memory_bytes_max.saturating_sub(self.exchange.request_bytes());
        let own = settings.query_memory().min(alone);
        self.memory.set_bytes_max(requested.map_or(own, |requested| requested.min(own)));
    }

    /// Begins a query within these limits, and within the call's memory.
    pub(crate) fn query(&self, graph: &Graph, limits: &Limits) -> Query {
        let mut query = graph.query_within(&self.memory);
        query.limit(limits);
        query
    }

    /// Notes the cost of a query, also in its failure.
    pub(crate) async fn settle<T>(
        &mut self,
        query: &Query,
        graph: &Graph,
        outcome: Result<T, Failure>,
    ) -> Result<T, Failure> {
        // A vacuum may have removed the version that was read; that is a conflict for the client and no damage.
        let outcome = self.unless_removed(graph, outcome).await;
        let cost = PricedCost::of(&query.cost(), graph.prices());
        self.settle_cost(cost, outcome)
    }

    /// The outcome of a query, or that its version was removed: then nothing is damaged.
    pub(crate) async fn unless_removed<T>(&self, graph: &Graph, outcome: Result<T, Failure>) -> Result<T, Failure> {
        self.bounded(self.service.catalog.unless_removed(&self.graph, graph, outcome)).await
    }

    /// As [`Self::settle`], for a part of a query.
    pub(crate) fn settle_cost<T>(&mut self, cost: PricedCost, outcome: Result<T, Failure>) -> Result<T, Failure> {
        self.cost = cost;
        // A query that was ended has cost as much as it read until then; both protocols report that with the failure.
        outcome.map_err(|failure| Failure { cost: Some(Box::new(cost)), ..failure })
    }

    /// Writes its line.
    pub(crate) fn finish<T>(&mut self, outcome: &Result<T, Failure>) {
        match outcome {
            Ok(_) => self.log("OK", None),
            Err(failure) => self.log(failure.reason.name(), Some(failure)),
        }
    }

    fn log(&mut self, status: &'static str, failure: Option<&Failure>) {
        // First, so that the drop of this call writes no second line.
        self.finished = true;
        let time = self.bounds.begun.elapsed();
        let protocol = self.protocol;
        self.service.metrics.request(protocol, self.name, status, time, &self.cost);
        telemetry::traces::end(&self.span, status, failure, &self.cost);
        let id = &self.id;
        let graph = &self.graph;
        let call = self.name;
        let cached = self.cached;
        let PricedCost { counters, usd } = self.cost;
        let Cost { waves, waits, requests, store_bytes: bytes, .. } = counters;
        let Background { requests: background_requests, bytes: background_bytes } = counters.background;
        let cache_hits = counters.memory.blocks;
        let time_us = time.as_micros() as u64;
        let error = failure.map(|failure| failure.message.as_str());
        macro_rules! line {
            ($level:expr) => {
                tracing::event!(target: "hoplake::requests", parent: None, $level, id, graph, protocol, call, status,
                    time_us, waves, waits, requests, bytes, background_requests, background_bytes, cache_hits, cached, usd, error)
            };
        }
        match failure.map(|failure| failure.reason) {
            // Levels are for the operator, who has to act on damage and on a store that fails. A client's mistake, or a limit that
            // it reached, is no more than a request.
            Some(Reason::Corrupt | Reason::Internal) => line!(Level::ERROR),
            Some(Reason::Unavailable) => line!(Level::WARN),
            _ if self.for_node => line!(Level::DEBUG),
            _ => line!(Level::INFO),
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.finished {
            // The future was dropped, which is how hyper and the door report a client that has disconnected.
            self.log("CANCELLED", None);
        }
    }
}
