//! Whether a source, its mapping and the graph fit.

use std::{collections::BTreeMap, sync::Arc};

use hoplake::{Graph, Store};

use crate::{
    Catalog, FeedError, FeedErrorKind, Position, Settings, TableName,
    apply::{
        applier::remembered,
        opening::{catalog_on, open_graph},
    },
    error::{COPY_ANEW, SAME_TEXT},
    mapping::{Item, Mapping, PropertyMap, followed::FollowedTable, ignores_unknown},
    source::{self, Source, UnequalKey},
};

/// A source, what its tables become, and whether the two fit.
pub struct Checked {
    /// The source.
    pub source: Arc<dyn Source>,
    /// Its tables.
    pub catalog: Catalog,
    /// What they become.
    pub mapping: Arc<Mapping>,
}

/// Connects to the source, and compares its tables with the mapping.
///
/// # Errors
/// The source's; [`Invalid`](FeedErrorKind::Invalid) if something does not fit.
pub async fn check(settings: &Settings) -> Result<Checked, FeedError> {
    let source = source::open(settings)?;
    let catalog = catalog_on(&*source, settings).await?;
    // Only the graph knows whether a column was there that is ignored.
    let was = match ignores_unknown(settings, &catalog, source.default_schema()) {
        true => followed_by(settings).await?,
        false => BTreeMap::new(),
    };
    let mapping = Arc::new(Mapping::after(&was, settings, &catalog, source.default_schema())?);
    let checked = Checked { source, catalog, mapping };
    checked.source.prepare(&checked.mapping.tables()).await?;
    check_keys(&*checked.source, &checked.mapping).await?;
    Ok(checked)
}

/// What the graph knows of the tables, if there is one.
async fn followed_by(settings: &Settings) -> Result<BTreeMap<TableName, FollowedTable>, FeedError> {
    let store = Store::open(&settings.graph).map_err(hoplake::Error::from)?;
    let Some(mut graph) = open_graph(&store).await? else { return Ok(BTreeMap::new()) };
    remembered_tables(&mut graph, &settings.source.name).await
}

/// What the graph knows of the tables; empty if the state is damaged: a resnapshot writes a new one.
pub(super) async fn remembered_tables(
    graph: &mut Graph,
    name: &str,
) -> Result<BTreeMap<TableName, FollowedTable>, FeedError> {
    if graph.source_position(name).is_none() {
        return Ok(BTreeMap::new());
    }
    match remembered(graph, name).await {
        Ok((_, state)) => Ok(state.tables),
        Err(error) if error.is_transient() => Err(error),
        Err(_) => Ok(BTreeMap::new()),
    }
}

/// Rejects rows that name another by a text which only the database takes as equal: the graph would not find it.
pub(super) async fn check_keys(source: &dyn Source, mapping: &Mapping) -> Result<(), FeedError> {
    for key in mapping.compared_keys() {
        if let Some(UnequalKey { row, names, target }) = source.unequal(&key).await? {
            let columns = key.columns.join(", ");
            let compared_by = &key.compared_by;
            let why = format!(
                "table {}, row {row}: {columns} is {names:?}, and names the row {target:?} of {}, which is equal only by {compared_by}",
                key.table, key.target
            );
            return Err(FeedError::new(FeedErrorKind::Row, why).hint(SAME_TEXT));
        }
    }
    Ok(())
}

/// Rejects columns that the graph does not have yet, if their rows have values that no change shows.
pub(super) async fn check_new_columns(
    source: &dyn Source,
    mapping: &Mapping,
    graph: &Graph,
    position: &Position,
) -> Result<(), FeedError> {
    for entry in &mapping.entries {
        let schema = graph.schema();
        let known = match &entry.item {
            Item::Vertex(vertex) => {
                schema.label_id(&vertex.label).and_then(|label| schema.label(label)).map(|label| &label.properties)
            }
            Item::Edge(edge) => {
                let ends = schema.label_id(&edge.ends[0].label).zip(schema.label_id(&edge.ends[1].label));
                let mut types = schema.edge_types.iter();
                types.find(|it| edge.label == it.label && ends == Some((it.source, it.target))).map(|it| &it.properties)
            }
        };
        let Some(known) = known else { continue };
        let is_new = |property: &&PropertyMap| !known.iter().any(|it| property.property == it.name);
        let new: Vec<_> = entry.properties.iter().filter(is_new).map(|property| property.column.clone()).collect();
        if new.is_empty() {
            continue;
        }
        if let Some(column) = source.filled(&entry.table, &new).await? {
            let why = format!("table {} was given column {column}, in which each row has a value", entry.table);
            let hint = format!(
                "{COPY_ANEW}; or, if you know that the graph is right without it, run the feed with --accept-ddl {}",
                position.of_source
            );
            return Err(FeedError::invalid(why).hint(hint));
        }
    }
    Ok(())
}
