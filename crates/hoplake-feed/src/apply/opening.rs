//! The graph of a feed, where the feed left it.
//!
//! Whatever changes a fed graph begins here: the feed itself, and what an operator runs next to it. A stop, or a mapping other than the one that
//! the graph was made with, is rejected unless the operator accepts it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use hoplake::{ErrorKind, Graph, OpenSettings, ReadSettings, Store};

use super::{
    applier::{Applier, remembered},
    ends::Ends,
    position::{self, Position},
    state::FeedState,
};
use crate::{
    Catalog, FeedError, Settings, TableName,
    error::StopNote,
    mapping::{
        Mapping,
        followed::{FollowedTable, remapped, tables_of},
    },
    source::Source,
};

/// Memory of the graph's cache: what a fold looks up is of recent changes.
const CACHE_BYTES: u64 = 32 << 20;

/// A graph at its position, to be changed without a stream, where a feed would go on: a stop or another mapping is rejected likewise.
pub(crate) async fn checked_applier(ends: &Ends, settings: &Settings) -> Result<(Arc<dyn Source>, Applier), FeedError> {
    let (mut graph, _) = complete_graph(&ends.store, settings).await?;
    let (position, mut state) = remembered(&mut graph, &settings.source.name).await?;
    let accepted = Accepted::default();
    accepted.on_stop(&state)?;
    let source = ends.source.clone();
    let catalog = catalog_on(&*source, settings).await?;
    let mapping = Mapping::after(&state.tables, settings, &catalog, source.default_schema())?;
    let mapping = Arc::new(mapping.typed_as(graph.schema()));
    let shapes = source.shapes(&catalog, &mapping.tables()).await?;
    accepted.on_tables(&position, &state, &mut tables_of(settings, &mapping, shapes))?;
    carry_no_ignored(&mut state.tables, &mapping);
    source.prepare(&mapping.tables()).await?;
    Ok((source, Applier::new(graph, settings, mapping, position, state, position::writer())))
}

/// Removes columns that the mapping ignores from those that are carried: they were dropped and added again.
pub(crate) fn carry_no_ignored(tables: &mut BTreeMap<TableName, FollowedTable>, mapping: &Mapping) {
    for (table, columns) in mapping.ignored() {
        if let Some(table) = tables.get_mut(&table) {
            table.carried.retain(|column| !columns.contains(column));
        }
    }
}

/// The position of a stop, or of a change of the mapping, over which an operator lets the feed go on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Accepted<'a>(pub(crate) Option<&'a str>);

impl Accepted<'_> {
    pub(crate) fn is(self, position: &str) -> bool {
        self.0 == Some(position)
    }

    /// Refuses to go on over a stop.
    pub(crate) fn on_stop(self, state: &FeedState) -> Result<(), FeedError> {
        match &state.stop {
            Some(stop) if !self.is(&stop.position) => Err(stop.clone().error()),
            _ => Ok(()),
        }
    }

    /// Rejects tables that the mapping makes something else of than is in the graph, and completes them with what is remembered.
    pub(crate) fn on_tables(
        self,
        position: &Position,
        state: &FeedState,
        tables: &mut BTreeMap<TableName, FollowedTable>,
    ) -> Result<(), FeedError> {
        let accepts = self.is(&position.of_source) || state.stop.as_ref().is_some_and(|stop| self.is(&stop.position));
        // A feed of before tables were remembered begins with them as they are.
        if !accepts && !state.tables.is_empty() {
            if let Some(why) = remapped(&state.tables, tables) {
                return Err(StopNote::new(&position.of_source, why).error());
            }
            for (name, table) in tables.iter() {
                let was = state.tables.get(name).and_then(|was| was.shape.id);
                if was.is_some() && was != table.shape.id {
                    let why = format!(
                        "table {name} is another table than the one that was followed, which had its name before"
                    );
                    return Err(StopNote::new(&position.of_source, why).error());
                }
            }
        }
        for (name, was) in &state.tables {
            if let Some(table) = tables.get_mut(name) {
                table.shape.clone_from(&was.shape);
                table.carried.extend(was.carried.iter().cloned());
            }
        }
        Ok(())
    }
}

/// Opens the graph of a store; `None` if there is none.
pub(crate) async fn open_graph(store: &Store) -> Result<Option<Graph>, FeedError> {
    let mut read = ReadSettings { cache_bytes_max: CACHE_BYTES, ..ReadSettings::default() };
    // As all that is random in a feed: a simulation repeats it.
    read.retry.seed = Some(fastrand::u64(..));
    match Graph::open_with(store.clone(), &OpenSettings { read, ..OpenSettings::default() }).await {
        Ok(graph) => Ok(Some(graph)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The tables of all schemas that settings name.
pub(crate) async fn catalog_on(source: &dyn Source, settings: &Settings) -> Result<Catalog, FeedError> {
    let default_schema = source.default_schema();
    let named = settings.tables.iter().map(|entry| TableName::parse(&entry.name, default_schema).schema.to_string());
    let schemas: BTreeSet<String> = named.chain([default_schema.to_owned()]).collect();
    source.catalog(&schemas).await
}

/// A graph at its position, to be changed without a stream.
pub(crate) async fn applier(store: &Store, settings: &Settings, mapping: Arc<Mapping>) -> Result<Applier, FeedError> {
    let mut applier = applier_without_state(store, settings, mapping).await?;
    (applier.position, applier.state) = remembered(&mut applier.graph, &applier.name).await?;
    Ok(applier)
}

/// The same, without what is remembered: for a feed that begins again.
pub(crate) async fn applier_without_state(
    store: &Store,
    settings: &Settings,
    mapping: Arc<Mapping>,
) -> Result<Applier, FeedError> {
    let (graph, position) = complete_graph(store, settings).await?;
    Ok(Applier::new(graph, settings, mapping, position, FeedState::default(), position::writer()))
}

/// The graph of a feed whose first copy is made, and its position.
async fn complete_graph(store: &Store, settings: &Settings) -> Result<(Graph, Position), FeedError> {
    let name = &settings.source.name;
    let absent = || FeedError::invalid(format!("the graph at {} is not fed by {name}", settings.graph));
    let graph = open_graph(store).await?.ok_or_else(absent)?;
    let position = Position::parse(graph.source_position(name).ok_or_else(absent)?)?;
    if position.is_copying {
        let why = format!("the graph at {} is not complete: its first copy was cut off", settings.graph);
        return Err(FeedError::invalid(why).hint("hoplake feed run makes it again"));
    }
    Ok((graph, position))
}
