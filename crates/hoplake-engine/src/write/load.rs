//! How a load becomes a version: announced first, then published as a replacement of the content.
//!
//! `hoplake-ingest` builds the objects. Here, a load begins, its objects are written under its name, and it is
//! published or abandoned. Others may commit meanwhile. Their versions stay readable, but a graph that another writer
//! changed is not replaced: the load fails with [`EngineError::Overtaken`].

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use hoplake_format::{
    BuiltGraph, Change, ChangeKind, Manifest, Schema, VersionRange, VertexCount, constants::DATA_FOLDER,
};
use hoplake_storage::{Branch, Reader, StorageError, Store};

use crate::{
    EngineError, versions,
    write::{
        change::positions,
        lease,
        publish::{self, Published},
    },
};

/// How long a load that failed or was stopped may take to take its name out.
const GIVE_UP_TIMEOUT_MS: u64 = 30_000;

/// A load under way.
pub struct Load {
    reader: Reader,
    writer: String,
    /// The version that it began from, or a newer one: where publishing begins to look for the newest.
    known: Manifest,
    base: Base,
    /// See [`LoadConditions::if_positions`].
    if_positions: BTreeMap<String, Option<String>>,
}

/// The version that a load began from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Base {
    /// Its number; 0 if there was no graph.
    pub version: u64,
    /// The version whose content replaced that of all before it.
    pub reset: u64,
}

impl From<&Manifest> for Base {
    fn from(manifest: &Manifest) -> Self {
        Self { version: manifest.version, reset: manifest.reset }
    }
}

/// What has to be true of a graph that a load replaces.
#[derive(Debug, Clone, Default)]
pub struct LoadConditions {
    /// Whether there may be a graph.
    pub replace: bool,
    /// Up to where sources have been read, until the load is published; `None` if nothing of a source has been.
    pub if_positions: BTreeMap<String, Option<String>>,
}

/// What a version says of the load that made it.
#[derive(Debug, Clone, Copy)]
pub struct LoadDescription<'a> {
    /// Why.
    pub message: &'a str,
    /// Up to where sources had been read whose content it is.
    pub source_positions: &'a BTreeMap<String, String>,
}

/// An object that remains from a trial of the store.
pub struct Trial(Option<BoxFuture<'static, ()>>);

impl Trial {
    /// Removes that object, once there are others. Not before: a server that keeps objects as files removes a folder
    /// that becomes empty, and a load that is about to write there fails.
    pub async fn end(self, branch: &mut Branch) {
        if let Some(removal) = self.0 {
            removal.await;
            branch.then(1);
        }
    }
}

impl Load {
    /// Looks what is in the way, and gives the load a name.
    ///
    /// # Errors
    /// [`EngineError::Exists`] if there is a graph and it may not be replaced; [`EngineError::Conflict`] if a source was read on; the
    /// store's.
    pub async fn new(reader: &Reader, conditions: &LoadConditions, branch: &mut Branch) -> Result<Self, EngineError> {
        let current = versions::newest(reader, branch).await?;
        // An empty version is how a vacuum ends a load that was never finished.
        let is_graph = |it: &&Manifest| it.schema != Schema::default();
        if let Some(current) = current.as_ref().filter(is_graph).filter(|_| !conditions.replace) {
            return Err(EngineError::Exists(format!(
                "there is a graph at {} already, in version {}, which stays readable if it is replaced",
                reader.store().url(),
                current.version
            )));
        }
        let writer = reader.store().clock().ulid();
        let if_positions = conditions.if_positions.clone();
        let known = current.unwrap_or_default();
        let load = Self { reader: reader.clone(), writer, base: Base::from(&known), known, if_positions };
        load.check_positions(&load.known)?;
        Ok(load)
    }

    /// Goes on with a load that began by this name on this version, perhaps in another process. That version may be gone meanwhile.
    ///
    /// # Errors
    /// The store's.
    pub async fn resumed(reader: &Reader, writer: &str, base: Base, branch: &mut Branch) -> Result<Self, EngineError> {
        let known = versions::newest(reader, branch).await?.unwrap_or_default();
        Ok(Self { reader: reader.clone(), writer: writer.to_owned(), base, known, if_positions: BTreeMap::new() })
    }

    /// The version that it became, if it was published.
    ///
    /// # Errors
    /// The store's.
    pub async fn published(&self, branch: &mut Branch) -> Result<Option<u64>, EngineError> {
        let newest = versions::newest(&self.reader, branch).await?.map_or(0, |newest| newest.version);
        for version in self.base.version + 1..=newest {
            if versions::writer_of(&self.reader, version, branch).await?.is_some_and(|writer| writer == self.writer) {
                return Ok(Some(version));
            }
        }
        Ok(None)
    }

    /// Announces the load, so that vacuums know whose objects these are, and tries the store: one that would lose the
    /// load is rejected before hours of loading. A caller that stops [gives up](Self::give_up).
    ///
    /// # Errors
    /// [`StorageError::Unfit`]; the store's.
    pub async fn begin(&mut self, branch: &mut Branch) -> Result<Trial, EngineError> {
        if self.base.version > 0 {
            let known = Some(self.known.clone());
            self.known = lease::announce(&self.reader, ChangeKind::Load, &self.writer, known, branch).await?;
            self.base = Base::from(&self.known);
            publish::hint(self.reader.store(), &self.known).await;
            if let Err(error) = self.check_positions(&self.known) {
                self.give_up(branch).await;
                return Err(error);
            }
        }
        let trial = match publish::prove(self.reader.store(), self.base.version).await {
            Ok(trial) => trial,
            Err(error) => {
                self.give_up(branch).await;
                return Err(error.into());
            }
        };
        if trial.is_some() {
            branch.then(1);
        }
        Ok(Trial(trial))
    }

    /// The name under which it writes.
    pub fn writer(&self) -> &str {
        &self.writer
    }

    /// The version that it began from; 0 if there was none.
    pub fn base_version(&self) -> u64 {
        self.base.version
    }

    /// The same, as [another process](Self::resumed) goes on with it.
    pub fn base(&self) -> Base {
        self.base
    }

    /// Publishes the load as a replacement of the version that it began from, if no other writer has changed the graph
    /// since. Gives up if that fails.
    ///
    /// # Errors
    /// [`EngineError::Overtaken`]; [`EngineError::Unknown`] if it is unknown whether the version was created;
    /// [`StorageError::TimedOut`] if it does not answer within `timeout_ms`; the store's.
    pub async fn publish(
        &self,
        graph: &BuiltGraph,
        description: &LoadDescription<'_>,
        timeout_ms: u64,
        branch: &mut Branch,
    ) -> Result<Manifest, EngineError> {
        branch.context().give_time(Some(timeout_ms));
        let published = self.make_visible(graph, description, branch).await;
        branch.context().give_time(None);
        let error = match published {
            // An error of the deadline means that the create was not sent.
            Err(EngineError::Limit { .. }) => {
                let object = self.store().url().to_owned();
                EngineError::Storage(StorageError::TimedOut { object, timeout_ms })
            }
            // The version may yet be visible.
            Err(error @ EngineError::Unknown { .. }) => return Err(error),
            Err(error) => error,
            Ok(manifest) => return Ok(manifest),
        };
        self.give_up(branch).await;
        Err(error)
    }

    /// Withdraws the lease and deletes the load's objects, unless it was published. Objects that it cannot delete, the next load or a vacuum
    /// will.
    pub async fn give_up(&self, branch: &mut Branch) {
        // The store may be what failed.
        branch.context().give_time(Some(GIVE_UP_TIMEOUT_MS));
        let _ = lease::withdraw(&self.reader, &self.writer, branch).await;
        // Another process may have published it, or this one, and the answer was lost.
        if !matches!(self.published(branch).await, Ok(None)) {
            return;
        }
        let Ok(listed) = self.store().list(DATA_FOLDER).await else { return };
        let mine = listed.into_iter().map(|object| object.name).filter(|name| name.contains(&self.writer));
        let _ = self.store().delete(&mine.collect::<Vec<_>>()).await;
    }

    fn store(&self) -> &Store {
        self.reader.store()
    }

    fn check_positions(&self, version: &Manifest) -> Result<(), EngineError> {
        for (source, expected) in &self.if_positions {
            let found = version.source_positions.get(source).map(String::as_str);
            positions::expect("load", source, found, expected.as_deref())?;
        }
        Ok(())
    }

    async fn make_visible(
        &self,
        graph: &BuiltGraph,
        description: &LoadDescription<'_>,
        branch: &mut Branch,
    ) -> Result<Manifest, EngineError> {
        let mut newest = self.known.clone();
        loop {
            if self.base.version > 0 {
                lease::check(&newest, &self.writer)?;
            }
            let base = self.base;
            if newest.content_runs().any(|run| run.until > base.version) || newest.reset > base.reset {
                return Err(self.overtaken(newest.version));
            }
            // A position may move without content.
            self.check_positions(&newest)?;
            let manifest = self.next(&newest, graph, description);
            if let Err(error) = publish::check_objects(self.store(), &manifest).await {
                // Of two first loads, the one that finishes deletes the objects of the other, which can no longer
                // publish.
                return Err(match versions::newest(&self.reader, branch).await? {
                    Some(newest) if newest.version > base.version => self.overtaken(newest.version),
                    _ => error,
                });
            }
            if let Published::Visible = publish::publish(&self.reader, &manifest, branch).await? {
                publish::hint(self.store(), &manifest).await;
                return Ok(manifest);
            }
            let next = versions::newest(&self.reader, branch).await?;
            newest = next.ok_or_else(|| self.overtaken(newest.version + 1))?;
        }
    }

    fn overtaken(&self, version: u64) -> EngineError {
        let url = self.store().url();
        let message = format!("another writer changed {url} first, in version {version}; nothing of this is visible");
        EngineError::Overtaken(message)
    }

    /// The version after `newest`, with what was loaded and nothing else.
    fn next(&self, newest: &Manifest, graph: &BuiltGraph, description: &LoadDescription<'_>) -> Manifest {
        let writer = self.writer.clone();
        let now_unix_ms = self.store().clock().unix_ms();
        let change =
            Change { kind: ChangeKind::Load, writer, message: description.message.to_owned(), ..Change::default() };
        let mut next = match newest.version {
            0 => Manifest { version: 1, created_unix_ms: now_unix_ms, change, ..Manifest::default() },
            _ => newest.next(change, now_unix_ms),
        };
        next.leases.retain(|lease| lease.writer != self.writer);
        let versions = VersionRange::of(next.version);
        let mut segments = graph.segments.clone();
        let sections = segments.iter_mut().flat_map(|segment| &mut segment.sections);
        sections.for_each(|section| section.versions = Some(versions));
        let mut tables = graph.tables.clone();
        tables.iter_mut().for_each(|table| table.versions = versions);
        Manifest {
            reset: next.version,
            // Of earlier sources and batches nothing is left.
            source_positions: description.source_positions.clone(),
            applied: Vec::new(),
            schema: graph.schema.clone(),
            unique_keys: graph.unique_keys,
            indexes: graph.indexes.clone(),
            next_index: graph.indexes.len() as u16,
            vertex_counts: graph.vertex_counts.iter().map(|&ordinals| VertexCount { ordinals, gone: 0 }).collect(),
            edge_counts: graph.edge_counts.clone(),
            degrees: graph.degrees.clone(),
            segments,
            tables,
            ..next
        }
    }
}
