//! A load whose steps run in many processes: see [`LoadSteps`].
//!
//! One process [begins](begin_load) it. All read blocks of tables, divide their rows by ranges of keys, sort and write; and one [publishes](publish_load)
//! what they wrote as one version.

use std::collections::BTreeMap;

use hoplake_engine::load::{Load, LoadConditions, LoadDescription};
use hoplake_format::BuiltGraph;
use hoplake_storage::{Branch, QueryContext, ReadPool, ReadSettings, Reader, Store};

pub use hoplake_engine::load::Base;
pub use hoplake_format::WrittenSpan;
pub use hoplake_ingest::{
    Feed, IngestError, Phase,
    build::{
        BuildSettings,
        steps::{
            Bounds, EdgeEnd, EdgeRange, EdgeRows, FeedRows, LoadSteps, OrderedEdges, OrderedVertices, RangeKeys,
            Tables, TypeKey, VertexRange, VertexRows,
        },
    },
};

use crate::Error;

/// A load that has begun: the name under which its objects are written, and the version that it began from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BegunLoad {
    /// The name.
    pub writer: String,
    /// The version.
    pub base: Base,
}

/// Begins a load, and tries the store.
///
/// # Errors
/// [`Conflict`](crate::ErrorKind::Conflict) if there is a graph and `replace` is not set; the store's.
pub async fn begin_load(store: Store, replace: bool) -> Result<BegunLoad, Error> {
    let (reader, mut branch) = reader(store)?;
    let conditions = LoadConditions { replace, if_positions: BTreeMap::new() };
    let mut load = Load::new(&reader, &conditions, &mut branch).await?;
    let trial = load.begin(&mut branch).await?;
    trial.end(&mut branch).await;
    Ok(BegunLoad { writer: load.writer().to_owned(), base: load.base() })
}

/// Publishes what was written, and returns the version: or the one that it became before.
///
/// # Errors
/// [`Conflict`](crate::ErrorKind::Conflict) if another writer has changed the graph; the store's.
pub async fn publish_load(
    store: Store,
    begun: &BegunLoad,
    graph: &BuiltGraph,
    message: &str,
    timeout_ms: u64,
) -> Result<u64, Error> {
    let (reader, mut branch) = reader(store)?;
    let load = Load::resumed(&reader, &begun.writer, begun.base, &mut branch).await?;
    if let Some(version) = load.published(&mut branch).await? {
        return Ok(version);
    }
    let description = LoadDescription { message, source_positions: &BTreeMap::new() };
    Ok(load.publish(graph, &description, timeout_ms, &mut branch).await?.version)
}

/// Takes a load that failed out of the graph, and deletes its objects, unless it was published.
///
/// # Errors
/// The store's.
pub async fn give_up_load(store: Store, begun: &BegunLoad) -> Result<(), Error> {
    let (reader, mut branch) = reader(store)?;
    let load = Load::resumed(&reader, &begun.writer, begun.base, &mut branch).await?;
    load.give_up(&mut branch).await;
    Ok(())
}

fn reader(store: Store) -> Result<(Reader, Branch), Error> {
    let context = QueryContext::new();
    let reader = Reader::new(store.metered_by(&context), ReadPool::new(ReadSettings::default())?);
    Ok((reader, context.branch()))
}
