//! The newest version, on request.

use super::Call;
use crate::failure::Failure;

/// Moves the server on to the newest version of a graph, and returns it: what was published before the call is in it.
pub(crate) async fn refresh(call: &mut Call, graph: &str) -> Result<u64, Failure> {
    call.about(graph);
    // With a permit, although it runs no query: a look sends requests, and a flood of refreshes must wait like queries.
    call.enter().await?;
    let catalog = call.service.catalog.clone();
    let open = call.bounded(catalog.refresh(graph)).await?;
    Ok(open.graph.version())
}
