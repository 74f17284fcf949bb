//! Looks up in the graph what a fold has to know.
//!
//! All needs of a fold are answered from one version. Keys take a wave; then the edges of all vertices, a hop for each edge label and
//! direction, in parallel; then the keys of the vertices that they lead to, with their properties.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::try_join_all;
use hoplake::{
    Direction, EdgeKey, EdgeRows, Edges, Graph, Held, Hop, HopDirection, KEY_COLUMN, Key, KeyType, Name, Properties,
    Query, ScanRequest, Schema, Value, VertexId, VertexRef, arrow::array::RecordBatch,
};

use crate::{
    FeedError,
    apply::fold::{EdgeId, EdgeTypeName, EdgesOf, KnownEdge, KnownVertex, LookupResults, Need},
    mapping::{Item, Mapping},
    value::as_key,
};

/// Answers needs from the open version of a graph, adds the answers to what is known, and returns how many waves that took.
///
/// # Errors
/// The graph's.
pub async fn look_up(
    graph: &Graph,
    mapping: &Mapping,
    needs: &BTreeSet<Need>,
    known: &mut LookupResults,
) -> Result<u64, FeedError> {
    let (ids, mut waves) = vertex_ids(graph, needs).await?;
    let mut groups: BTreeMap<(Name, bool, Name), Vec<&EdgesOf>> = BTreeMap::new();
    for need in needs {
        match need {
            Need::Exists(vertex) => drop(known.exists.insert(vertex.clone(), ids.contains_key(vertex))),
            Need::Edges(of) => groups.entry((of.label.clone(), of.is_outgoing, of.other.clone())).or_default().push(of),
            Need::Whole(_) | Need::Vertices(_) | Need::EdgeType(_) => {}
        }
    }
    let keys = EdgeKeys::of(mapping);
    let along = groups.into_values().map(|group| edges_along(graph, &keys, group, &ids));
    let along = try_join_all(along).await?;
    waves += along.iter().map(|(_, waves)| *waves).max().unwrap_or(0);
    known.edges.extend(along.into_iter().flat_map(|(edges, _)| edges));
    let wanted: Vec<_> =
        needs.iter().filter_map(|need| if let Need::Whole(vertex) = need { Some(vertex) } else { None }).collect();
    let mut query = graph.query();
    known.whole.extend(whole(graph, &mut query, &keys, &wanted, &ids).await?);
    waves += query.cost().waves;
    for need in needs {
        match need {
            Need::Vertices(label) => {
                let mut query = graph.query();
                known.vertices.insert(label.clone(), vertices(graph, &mut query, label).await?);
                waves += query.cost().waves;
            }
            Need::EdgeType(name) => {
                let mut query = graph.query();
                known.edge_types.insert(name.clone(), edges(graph, &mut query, &keys, name).await?);
                waves += query.cost().waves;
            }
            _ => {}
        }
    }
    Ok(waves)
}

type VertexIds = BTreeMap<VertexRef, VertexId>;

/// The vertices that needs name, as far as they are there, and the waves that it took.
async fn vertex_ids(graph: &Graph, needs: &BTreeSet<Need>) -> Result<(VertexIds, u64), FeedError> {
    let vertices: BTreeSet<&VertexRef> = needs
        .iter()
        .filter_map(|need| match need {
            Need::Exists(vertex) | Need::Whole(vertex) => Some(vertex),
            Need::Edges(of) => Some(&of.vertex),
            Need::Vertices(_) | Need::EdgeType(_) => None,
        })
        .filter(|vertex| can_be(graph.schema(), vertex))
        .collect();
    let keys: Vec<_> = vertices.iter().map(|vertex| (vertex.label.as_str(), vertex.key.clone())).collect();
    let mut query = graph.query();
    let ids = if keys.is_empty() { Vec::new() } else { query.vertices(&keys).await? };
    let ids = vertices.into_iter().zip(ids).filter_map(|(vertex, id)| Some((vertex.clone(), id?))).collect();
    Ok((ids, query.cost().waves))
}

/// Whether a graph may have a vertex of this label and type of key.
fn can_be(schema: &Schema, vertex: &VertexRef) -> bool {
    let label = schema.label_id(&vertex.label).and_then(|label| schema.label(label));
    label.is_some_and(|label| {
        matches!((label.key_type, &vertex.key), (KeyType::Int64, Key::Int64(_)) | (KeyType::String, Key::String(_)))
    })
}

/// The property that distinguishes parallel edges, by edge type.
pub(crate) struct EdgeKeys(BTreeMap<EdgeTypeName, Name>);

impl EdgeKeys {
    pub(crate) fn of(mapping: &Mapping) -> Self {
        let keys = mapping.entries.iter().filter_map(|entry| match &entry.item {
            Item::Edge(edge) => {
                let source = &edge.ends[0].label;
                let target = &edge.ends[1].label;
                let name = EdgeTypeName { label: edge.label.clone(), source: source.clone(), target: target.clone() };
                Some((name, edge.key.as_ref()?.property.clone()))
            }
            Item::Vertex(_) => None,
        });
        Self(keys.collect())
    }

    /// The name of an edge with these properties.
    pub(crate) fn name(&self, label: &Name, source: VertexRef, target: VertexRef, properties: &Properties) -> EdgeId {
        let of = EdgeTypeName { label: label.clone(), source: source.label.clone(), target: target.label.clone() };
        let value = self.0.get(&of).and_then(|property| Some((property, properties.get(property)?)));
        let key = value.filter(|(_, value)| **value != Value::Null);
        let key = key.map(|(property, value)| EdgeKey { property: property.clone(), value: value.clone() }.into());
        EdgeId { label: label.clone(), source, target, key }
    }
}

/// The edges of some vertices along one label, to vertices of one other label, and the waves that it took.
async fn edges_along(
    graph: &Graph,
    keys: &EdgeKeys,
    group: Vec<&EdgesOf>,
    ids: &VertexIds,
) -> Result<(Vec<(EdgesOf, Vec<KnownEdge>)>, u64), FeedError> {
    let of = group[0];
    let direction = if of.is_outgoing { HopDirection::Out } else { HopDirection::In };
    let starts: Vec<_> = group.iter().filter_map(|of| Some((*ids.get(&of.vertex)?, &of.vertex))).collect();
    let is_there = graph.schema().edge_types.iter().any(|it| of.label == it.label);
    let mut found: BTreeMap<&VertexRef, Vec<KnownEdge>> = BTreeMap::new();
    let mut query = graph.query();
    if is_there && !starts.is_empty() {
        let all = hop(graph, &mut query, keys, &starts, &Hop::along(direction, &of.label)).await?;
        for (vertex, edge) in all.into_iter().filter(|(vertex, edge)| edge.id.other_end(vertex).label == of.other) {
            found.entry(vertex).or_default().push(edge);
        }
    }
    let edges = group.into_iter().map(|of| (of.clone(), found.remove(&of.vertex).unwrap_or_default())).collect();
    Ok((edges, query.cost().waves))
}

/// The edges of a hop, each with the vertex that it was followed from.
async fn hop<'a>(
    graph: &Graph,
    query: &mut Query,
    keys: &EdgeKeys,
    starts: &[(VertexId, &'a VertexRef)],
    hop: &Hop,
) -> Result<Vec<(&'a VertexRef, KnownEdge)>, FeedError> {
    let ids: Vec<_> = starts.iter().map(|(id, _)| *id).collect();
    let edges: Held<Edges> = query.neighbors(&ids, hop).await?;
    let names: BTreeSet<String> = {
        let types: BTreeSet<_> = edges.iter().map(|edge| edge.edge_type).collect();
        let properties = types.into_iter().filter_map(|id| graph.schema().edge_type(id)).flat_map(|it| &it.properties);
        properties.map(|property| property.name.clone()).collect()
    };
    let described = query.describe(&edges, &names.into_iter().collect::<Vec<_>>(), &[]).await?;
    let mut properties = vec![Properties::new(); edges.len()];
    for EdgeRows { positions, batch } in &described.edges {
        for (row, position) in positions.iter().enumerate() {
            properties[*position] = row_of(batch, row);
        }
    }
    let by_id: BTreeMap<VertexId, &VertexRef> = starts.iter().copied().collect();
    let label_name =
        |id: VertexId| graph.schema().label(id.label()).map(|label| Name::from(&label.name)).unwrap_or_default();
    let all = edges.iter().zip(&described.keys).zip(properties).filter_map(|((edge, key), properties)| {
        let near = *by_id.get(&edge.from)?;
        let far = VertexRef { label: label_name(edge.to), key: key.clone() };
        let label = Name::from(&graph.schema().edge_type(edge.edge_type)?.label);
        let (source, target) = if edge.direction == Direction::Out { (near.clone(), far) } else { (far, near.clone()) };
        let id = keys.name(&label, source, target, &properties);
        Some((near, KnownEdge { id, properties }))
    });
    Ok(all.collect())
}

/// Whole vertices: properties, and edges in both directions.
async fn whole(
    graph: &Graph,
    query: &mut Query,
    keys: &EdgeKeys,
    wanted: &[&VertexRef],
    ids: &VertexIds,
) -> Result<BTreeMap<VertexRef, Option<KnownVertex>>, FeedError> {
    let mut all: BTreeMap<VertexRef, Option<KnownVertex>> =
        wanted.iter().map(|vertex| ((*vertex).clone(), None)).collect();
    let starts: Vec<_> = wanted.iter().filter_map(|vertex| Some((*ids.get(*vertex)?, *vertex))).collect();
    if starts.is_empty() {
        return Ok(all);
    }
    let vertices: Vec<_> = starts.iter().map(|(id, _)| *id).collect();
    let set = query.set_of(&vertices).await?;
    let labels: BTreeSet<_> = vertices.iter().map(|vertex| vertex.label()).collect();
    let of_labels =
        labels.into_iter().filter_map(|label| graph.schema().label(label)).flat_map(|label| &label.properties);
    let names: BTreeSet<String> = of_labels.map(|property| property.name.clone()).collect();
    for rows in query.properties(&set, &names.into_iter().collect::<Vec<_>>()).await?.iter() {
        let Some(column) = rows.batch.column_by_name(KEY_COLUMN) else { continue };
        for row in 0..rows.batch.num_rows() {
            let Some(key) = as_key(Value::at(column, row)) else { continue };
            let vertex = VertexRef { label: Name::from(&rows.label), key };
            all.insert(vertex, Some(KnownVertex { properties: row_of(&rows.batch, row), edges: Vec::new() }));
        }
    }
    let both = Hop { direction: HopDirection::Both, ..Hop::default() };
    for (vertex, edge) in hop(graph, query, keys, &starts, &both).await? {
        let Some(Some(known)) = all.get_mut(vertex) else { continue };
        // A self-loop is followed both ways.
        if edge.id.source != edge.id.target || !known.edges.contains(&edge) {
            known.edges.push(edge);
        }
    }
    Ok(all)
}

/// All vertices of a label.
async fn vertices(graph: &Graph, query: &mut Query, label: &Name) -> Result<Vec<VertexRef>, FeedError> {
    let mut all = Vec::new();
    if graph.schema().label_id(label).is_none() {
        return Ok(all);
    }
    let mut scan = query.scan(&ScanRequest { labels: vec![label.to_string()], ..ScanRequest::default() })?;
    while let Some(rows) = query.next_rows(&mut scan).await? {
        let Some(column) = rows.batch.column_by_name(KEY_COLUMN) else { continue };
        let keys = (0..rows.batch.num_rows()).filter_map(|row| as_key(Value::at(column, row)));
        all.extend(keys.map(|key| VertexRef { label: label.clone(), key }));
    }
    Ok(all)
}

/// All edges of a type.
async fn edges(
    graph: &Graph,
    query: &mut Query,
    keys: &EdgeKeys,
    name: &EdgeTypeName,
) -> Result<Vec<EdgeId>, FeedError> {
    let schema = graph.schema();
    let mut all = Vec::new();
    let ends = schema.label_id(&name.source).zip(schema.label_id(&name.target));
    let Some(edge_type) =
        schema.edge_types.iter().find(|it| name.label == it.label && ends == Some((it.source, it.target)))
    else {
        return Ok(all);
    };
    let columns: Vec<_> = edge_type.properties.iter().map(|property| property.name.clone()).collect();
    let mut scan = query.scan_edges(&name.label, (&name.source, &name.target), &columns).await?;
    while let Some(batch) = query.next_edges(&mut scan).await? {
        for row in 0..batch.num_rows() {
            let end = |column: usize, label: &Name| {
                as_key(Value::at(batch.column(column), row)).map(|key| VertexRef { label: label.clone(), key })
            };
            if let (Some(source), Some(target)) = (end(0, &name.source), end(1, &name.target)) {
                all.push(keys.name(&name.label, source, target, &row_of(&batch, row)));
            }
        }
    }
    Ok(all)
}

/// The properties of a row that are not null.
pub(crate) fn row_of(batch: &RecordBatch, row: usize) -> Properties {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns()).filter(|(field, _)| !field.name().starts_with('~'));
    let values = columns.map(|(field, column)| (Name::from(field.name().as_str()), Value::at(column, row)));
    values.filter(|(_, value)| *value != Value::Null).collect()
}
