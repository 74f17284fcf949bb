//! What the handlers of a server share.

use std::sync::Arc;

use hoplake_doors::Connections;

use crate::{calls::Service, telemetry::counters_text::CountersText, websocket::WebSockets};

/// What the handlers of a server share.
#[derive(Clone)]
pub(super) struct HttpState {
    pub(super) service: Arc<Service>,
    pub(super) websockets: Arc<WebSockets>,
    /// Of all ports.
    pub(super) connections: Arc<Connections>,
    /// The counters as a text, for all that ask at the same time.
    pub(super) counters: Arc<CountersText>,
}

impl HttpState {
    pub(super) fn new(service: &Arc<Service>, connections: &Arc<Connections>) -> Self {
        Self {
            service: service.clone(),
            websockets: WebSockets::new(&service.settings.gremlin),
            connections: connections.clone(),
            counters: Arc::default(),
        }
    }
}
