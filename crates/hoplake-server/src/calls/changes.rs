//! Batches of changes, and graphs that begin empty.
//!
//! All batches for a graph go to the one handle that the catalog has open, whose commits put those that wait together into one version.
//! From then on a batch has a task of its own: it is applied whether its client still waits or not, and its memory counts until then.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::{Buf, Bytes};
use hoplake::{
    Batch, ChangeCounts, Committed, MemoryHold, Operation, Schema,
    changes::{ChangeReader, Changes, ReadChange, SourceLocation},
};

use super::{Call, GraphRef, Service};
use crate::{
    Role,
    catalog::OpenGraph,
    cost::PricedCost,
    failure::{Failure, Place, Reason},
};

/// The name of a batch in messages, where a file would have its own.
const BODY: &str = "body";
/// Changes that are read between two looks at the deadline, and at others who wait for the thread.
const CHANGES_AT_A_TIME: usize = 256;
/// The memory of a batch while a version is made of it, as a multiple of what was read: with what it changes, and encoded.
const COMMIT_FACTOR: u64 = 3;
/// The longest idempotency key, in bytes.
const KEY_BYTES_MAX: usize = 255;

/// How changes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangesFormat {
    /// JSON Lines.
    Lines,
    /// CSV with a header.
    Csv,
    /// A stream of Arrow's IPC format.
    Arrow,
}

/// A batch, as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct ChangesRequest {
    pub(crate) graph: String,
    pub(crate) format: ChangesFormat,
    pub(crate) changes: Bytes,
    pub(crate) options: ChangesOptions,
    pub(crate) time_ms: u64,
}

/// What a batch says besides its changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChangesOptions {
    pub(crate) base: Option<u64>,
    pub(crate) message: String,
    pub(crate) source_positions: BTreeMap<String, String>,
    pub(crate) if_positions: BTreeMap<String, Option<String>>,
    pub(crate) create_missing: bool,
    pub(crate) strict: bool,
    pub(crate) idempotency_key: Option<String>,
}

/// A batch that a version has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AppliedChanges {
    pub(crate) version: u64,
    /// Of the version, as is the cost.
    pub(crate) counts: ChangeCounts,
    /// Changes of this batch.
    pub(crate) changes: u64,
    pub(crate) batches: u64,
    pub(crate) repeated: bool,
    pub(crate) cost: PricedCost,
}

/// A graph that is there and has no content.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EmptyGraph {
    pub(crate) version: u64,
    pub(crate) created: bool,
}

/// A batch that was read, and where each of its operations is written.
struct ReadBatch {
    batch: Batch,
    locations: Vec<SourceLocation>,
    hold: MemoryHold,
}

impl Service {
    /// Rejects a change if this server does not write.
    pub(crate) fn check_writable(&self) -> Result<(), Failure> {
        let why = match (self.settings.writable, self.settings.role) {
            (_, Role::Algorithm) => {
                "this server reads through access nodes and has no store to write to; ask a server that has the graph's store"
            }
            (false, _) => "this server does not write; start it with --writable, or ask one that was",
            (true, _) => return Ok(()),
        };
        Err(Failure::new(Reason::ReadOnly, why))
    }
}

/// Applies a batch, all of it or nothing. The time includes the wait for the version that is under way.
pub(crate) async fn apply(call: &mut Call, request: ChangesRequest) -> Result<AppliedChanges, Failure> {
    let outcome = apply_on_newest(call, request).await;
    if let Err(failure) = &outcome {
        call.service.metrics.changes(failure.reason.name());
    }
    outcome
}

async fn apply_on_newest(call: &mut Call, request: ChangesRequest) -> Result<AppliedChanges, Failure> {
    call.limit_time(request.time_ms);
    call.about(&request.graph);
    call.check_token()?;
    call.service.check_writable()?;
    check_key(request.options.idempotency_key.as_deref())?;
    let mut open = call.graph_to_change(&GraphRef { name: request.graph.clone(), version: 0 }).await?;
    match apply_on(call, &open, &request).await {
        // Read by the schema of an old version, changes can be rejected that the newest accepts.
        Err(failure) if failure.reason == Reason::Invalid => {
            let catalog = call.service.catalog.clone();
            let newest = call.bounded(catalog.refresh(&request.graph)).await?;
            if newest.graph.schema() == open.graph.schema() {
                return Err(failure);
            }
            open = newest;
            apply_on(call, &open, &request).await
        }
        outcome => outcome,
    }
}

/// Rejects a key that could not be written in every protocol.
fn check_key(key: Option<&str>) -> Result<(), Failure> {
    let good =
        |key: &str| (1..=KEY_BYTES_MAX).contains(&key.len()) && key.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if key.is_none_or(good) {
        return Ok(());
    }
    Err(Failure::invalid(format!("an idempotency key has 1 to {KEY_BYTES_MAX} characters of ASCII, such as a UUID")))
}

async fn apply_on(call: &mut Call, open: &Arc<OpenGraph>, request: &ChangesRequest) -> Result<AppliedChanges, Failure> {
    call.bound_memory(None);
    let ReadBatch { batch, locations, mut hold } = call.bounded(read(call, open.graph.schema(), request)).await?;
    // Before anything is begun: a batch without memory for its commit is rejected whole.
    hold.resize(hold.bytes().saturating_mul(COMMIT_FACTOR))?;
    let changes = batch.changes() as u64;
    let time_ms = call.service.settings.limits.time_ms;
    if time_ms > 0 {
        // The bound of the server and not of this call: a version is made of the batches of many.
        open.graph.set_commit_timeout(Duration::from_millis(time_ms));
    }
    let commit = tokio::spawn(commit(call.service.clone(), open.clone(), batch, hold));
    let broken = |error| Failure::broken_off("the commit", &error);
    let outcome = call.bounded(async { commit.await.map_err(broken) }).await;
    match outcome {
        Ok(Ok(committed)) => {
            let cost = PricedCost::of(&committed.cost, open.graph.prices());
            // Once for a version, or the sums of the counters would have it once for each batch.
            if committed.place == 0 {
                call.cost = cost;
            }
            let Committed { version, counts, batches, repeated, .. } = committed;
            Ok(AppliedChanges { version, counts, changes, batches: batches as u64, repeated, cost })
        }
        Ok(Err(error)) => Err(with_way_out(rejected(&error, &locations), request)),
        Err(failure) => Err(with_way_out(unknown_if_ended(failure, "the batch was applied"), request)),
    }
}

/// Reads the changes, in the types of a version's schema.
async fn read(call: &Call, schema: &Schema, request: &ChangesRequest) -> Result<ReadBatch, Failure> {
    let most = call.service.settings.limits.batch_max;
    let mut hold = call.memory.hold(0)?;
    if request.format == ChangesFormat::Arrow {
        // Copied, for columns that stay in it.
        hold.resize(request.changes.len() as u64)?;
    }
    let mut bytes = hold.bytes();
    let mut operations: Vec<Operation> = Vec::new();
    let mut locations = Vec::new();
    let mut changes = 0;
    let mut reader = ChangeReader::new(schema);
    for (number, change) in changes_of(&mut reader, request)?.enumerate() {
        let ReadChange { operation, location } = change.map_err(|error| rejected(&error, &[]))?;
        changes += operation.changes();
        if changes > most {
            let message =
                format!("{location}: with it there are {changes} changes, and a batch may have {most}; send several");
            return Err(Failure { place: Some(Box::new(place(&location, None))), ..Failure::invalid(message) });
        }
        bytes += (operation.memory_bytes() + size_of::<SourceLocation>()) as u64;
        hold.resize(bytes)?;
        operations.push(operation);
        locations.push(location);
        if number % CHANGES_AT_A_TIME == 0 {
            tokio::task::yield_now().await;
        }
    }
    let ChangesOptions { base, message, source_positions, if_positions, create_missing, strict, idempotency_key } =
        request.options.clone();
    let batch = Batch {
        operations,
        message,
        source_positions,
        if_positions,
        base,
        create_missing,
        strict,
        idempotency_key,
        ..Batch::default()
    };
    // A version of nothing would be a mistake of its sender, who may have meant a file.
    if changes == 0 && batch.source_positions.is_empty() && batch.if_positions.is_empty() {
        return Err(Failure::invalid("the body has no changes"));
    }
    Ok(ReadBatch { batch, locations, hold })
}

fn changes_of<'a>(reader: &'a mut ChangeReader, request: &ChangesRequest) -> Result<Changes<'a>, Failure> {
    let text = request.changes.clone().reader();
    Ok(match request.format {
        ChangesFormat::Lines => reader.lines(BODY, text),
        ChangesFormat::Csv => reader.csv(BODY, text)?,
        ChangesFormat::Arrow => reader.arrow(BODY, request.changes.to_vec())?,
    })
}

/// Commits a batch, and moves the catalog to its version before the batch is acknowledged.
async fn commit(
    service: Arc<Service>,
    open: Arc<OpenGraph>,
    batch: Batch,
    _hold: MemoryHold,
) -> Result<Committed, hoplake::Error> {
    let begun = Instant::now();
    let changes = batch.changes() as u64;
    let committed = open.graph.apply(batch).await?;
    let Committed { version, place, batches, repeated, .. } = committed;
    if !service.catalog.advance(&open, version)
        && let Err(failure) = service.catalog.refresh(&open.name).await
    {
        // It is published; only readers of this server find it later.
        tracing::warn!(graph = open.name, version, %failure, "could not move on to a version that was committed");
    }
    if repeated {
        service.metrics.changes("REPEATED");
    } else {
        service.metrics.committed(changes, place == 0);
        if place == 0 {
            let time_ms = begun.elapsed().as_millis() as u64;
            tracing::debug!(graph = open.name, version, batches, time_ms, "committed");
        }
    }
    Ok(committed)
}

/// The place of a change, with its text if it is known.
fn place(location: &SourceLocation, item: Option<&str>) -> Place {
    Place { unit: location.unit(), number: location.number(), item: item.map(str::to_owned) }
}

/// The failure of a batch, with the place of the change that is to blame.
fn rejected(error: &hoplake::Error, locations: &[SourceLocation]) -> Failure {
    let reason = Failure::reason_of(error);
    // A mistake that was found when it was read has its place in its sentence.
    if let Some(location) = error.location() {
        return Failure { place: Some(Box::new(place(location, None))), ..Failure::new(reason, error.to_string()) };
    }
    let said = error.to_string();
    let location = error.operation().and_then(|number| locations.get(number));
    let Some(location) = location else { return Failure::new(reason, said) };
    // The error counts the rows of its columns, and a client those of what it sent.
    let said = error.row().and_then(|row| said.strip_prefix(&format!("row {row}, "))).unwrap_or(&said);
    let location = location.further(error.row().unwrap_or(0));
    let place = Some(Box::new(place(&location, error.item())));
    Failure { place, ..Failure::new(reason, format!("{location}: {said}")) }
}

/// A commit may be published after its call has stopped waiting, and one whose task panicked may have been published.
pub(super) fn unknown_if_ended(failure: Failure, done: &str) -> Failure {
    match failure.reason {
        Reason::Time | Reason::ShuttingDown | Reason::Internal => {
            let message = format!("it is not known whether {done}: {}", failure.message);
            Failure { message, reason: Reason::Unknown, ..failure }
        }
        _ => failure,
    }
}

/// How to find out what is not known.
fn with_way_out(failure: Failure, request: &ChangesRequest) -> Failure {
    if failure.reason != Reason::Unknown {
        return failure;
    }
    let way = match request.options.idempotency_key {
        Some(_) => "send it again with the same idempotency key: it is applied once",
        None => "look at the log of the graph before you send it again, and give an idempotency key next time",
    };
    Failure { message: format!("{}; {way}", failure.message), ..failure }
}

/// Makes an empty graph, unless there is one.
pub(crate) async fn create(call: &mut Call, name: &str) -> Result<EmptyGraph, Failure> {
    call.about(name);
    call.check_token()?;
    call.service.check_writable()?;
    call.enter_to_change().await?;
    let catalog = call.service.catalog.clone();
    // Not by what is remembered: one that appeared since, in another folder, would be hidden by the one that is made.
    let (open, created) = match call.bounded(catalog.refresh(name)).await {
        Ok(open) => (open, false),
        Err(failure) if failure.reason == Reason::NotFound => {
            let created = call.bounded(catalog.create(name)).await;
            let created =
                created.map_err(|failure| unknown_if_ended(failure, "the graph was made; ask for it again"))?;
            (call.bounded(catalog.refresh(name)).await?, created)
        }
        Err(failure) => return Err(failure),
    };
    if *open.graph.schema() != Schema::default() {
        let message = format!("there is a graph {name:?} already, in version {}", open.graph.version());
        return Err(Failure::new(Reason::Conflict, message));
    }
    Ok(EmptyGraph { version: open.graph.version(), created })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_before_its_outcome_is_unknown() {
        let ended = |reason| unknown_if_ended(Failure::new(reason, "it broke off"), "the batch was applied");
        for reason in [Reason::Time, Reason::ShuttingDown, Reason::Internal] {
            let failure = ended(reason);
            assert_eq!(failure.reason, Reason::Unknown);
            assert_eq!(failure.message, "it is not known whether the batch was applied: it broke off");
        }
        assert_eq!(ended(Reason::Conflict).reason, Reason::Conflict);
    }
}
