//! Commits what a transaction changed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use hoplake::Committed;
use tokio::sync::OwnedSemaphorePermit;

use super::transaction::GremlinWork;
use crate::{
    calls::{call::Call, changes::unknown_if_ended, service::Service},
    cost::PricedCost,
    failure::{Failure, Reason},
};

/// Commits what a transaction changed, if it changed something.
pub(super) async fn commit(call: &mut Call, work: Option<GremlinWork>) -> Result<(), Failure> {
    let Some(work) = work.filter(|work| work.transaction.has_changes()) else { return Ok(()) };
    call.about(&work.open.name);
    call.service.check_writable()?;
    let service = call.service.clone();
    let changes = work.transaction.changes();
    let most = service.settings.limits.batch_max;
    if changes > most {
        return Err(Failure::invalid(format!("the transaction has {changes} changes, and one may have {most}")));
    }
    let permit = call.bounded(service.changes.admit()).await?;
    let name = work.open.name.clone();
    let time_ms = service.settings.limits.time_ms;
    if time_ms > 0 {
        // The bound of the server and not of this call: a version is made of the batches of many.
        work.open.graph.set_commit_timeout(Duration::from_millis(time_ms));
    }
    let task = tokio::spawn(publish(service.clone(), work, permit));
    let broken = |error| Failure::broken_off("the commit", &error);
    let outcome = call.bounded(async { task.await.map_err(broken) }).await;
    let failure = match outcome {
        Ok(Ok(cost)) => {
            call.cost += cost;
            return Ok(());
        }
        Ok(Err(failure)) => failure,
        Err(failure) => unknown_if_ended(failure, "the changes were committed"),
    };
    service.metrics.changes(failure.reason.name());
    if failure.reason == Reason::Conflict {
        // So that the client's next attempt begins on the version that was in its way.
        let _ = call.bounded(service.catalog.refresh(&name)).await;
    }
    Err(failure)
}

/// Commits, and moves the catalog to the version before the call ends. Returns the cost.
async fn publish(
    service: Arc<Service>,
    work: GremlinWork,
    _permit: OwnedSemaphorePermit,
) -> Result<PricedCost, Failure> {
    let begun = Instant::now();
    let GremlinWork { open, transaction } = work;
    let changes = transaction.changes() as u64;
    let Some(committed) = transaction.commit().await? else { return Ok(PricedCost::default()) };
    let Committed { version, place, batches, .. } = committed;
    if !service.catalog.advance(&open, version)
        && let Err(failure) = service.catalog.refresh(&open.name).await
    {
        // It is published; only readers of this server find it later.
        tracing::warn!(graph = open.name, version, %failure, "could not move on to a version that was committed");
    }
    service.metrics.committed(changes, place == 0);
    if place > 0 {
        // Once for a version, or the sums of the counters would have it once for each transaction.
        return Ok(PricedCost::default());
    }
    let time_ms = begun.elapsed().as_millis() as u64;
    tracing::debug!(graph = open.name, version, batches, time_ms, "committed");
    Ok(PricedCost::of(&committed.cost, open.graph.prices()))
}
