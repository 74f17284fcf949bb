//! Reads everything in a graph, by every kind of read.

use std::collections::{BTreeMap, BTreeSet};

use hoplake::{
    Comparison, Condition, Error, Graph, Hop, HopDirection, Key, Name, Neighbour, Properties, PropertyIndex,
    PropertyType, Query, ScanRequest, Strategy, Traversal, Value, VertexId, VertexRef,
};
use hoplake_format::ScalarType;

use crate::{
    batches::Vocabulary,
    model::{Model, Pair, widened},
};

/// Why a graph could not be read, or contradicts itself.
#[derive(Debug)]
pub enum ReadFailure {
    /// The engine's error.
    Error(Error),
    /// Two of its answers do not go together.
    Contradiction(String),
}

impl From<Error> for ReadFailure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// The vertices of a graph: ids by key, and keys by id.
struct VertexIndex {
    ids: BTreeMap<VertexRef, VertexId>,
    by_id: BTreeMap<VertexId, VertexRef>,
}

/// The content of a graph, for all possible vertices: their keys, rows, what property indexes find of these, edges in both directions with their
/// properties, and traversals of two hops from `starts` of them, by every strategy.
///
/// # Errors
/// [`ReadFailure`].
pub async fn read(graph: &Graph, vocabulary: &Vocabulary, starts: usize) -> Result<Model, ReadFailure> {
    let mut query = graph.query();
    let mut model = Model::default();
    let schema = graph.schema();
    let labels = vocabulary.labels();
    let known = schema.vertex_labels.iter().map(|label| &label.name).filter(|name| labels.contains(name.as_str()));
    model.labels = known.map(Name::new).collect();
    let name = |label| schema.label(label).map(|label| Name::new(&label.name)).unwrap_or_default();
    for it in schema.edge_types.iter().filter(|it| vocabulary.edge_labels.iter().any(|label| *label == it.label)) {
        let properties = it.properties.iter().map(|property| Name::new(&property.name)).collect();
        model.edge_types.insert((Name::new(&it.label), name(it.source), name(it.target)), properties);
    }
    let found = find(&mut query, vocabulary, &model).await?;
    read_rows(graph, &mut query, &found, &mut model).await?;
    // Also what is being built: no query may use it, and the rows answer.
    for index in &graph.manifest().indexes {
        ask_index(graph, &mut query, &found, &model, index).await?;
    }
    for label in &vocabulary.edge_labels {
        if model.edge_types.keys().any(|(of, ..)| of == label) {
            let out = read_edges(graph, &mut query, &found, label, HopDirection::Out).await?;
            let back = read_edges(graph, &mut query, &found, label, HopDirection::In).await?;
            // Each direction is a section of its own, so that one may be wrong without the other.
            if out != back {
                return Err(ReadFailure::Contradiction(format!("edges {label} out are {out:?}, in are {back:?}")));
            }
            model.edges.extend(out);
            traverse(&mut query, &found, label, &model, starts).await?;
        }
    }
    Ok(model)
}

async fn find(query: &mut Query, vocabulary: &Vocabulary, model: &Model) -> Result<VertexIndex, ReadFailure> {
    let ends: Vec<&VertexRef> = vocabulary.vertices.iter().filter(|end| model.labels.contains(&end.label)).collect();
    let keys: Vec<(&str, Key)> = ends.iter().map(|end| (end.label.as_str(), end.key.clone())).collect();
    let looked_up = query.vertices(&keys).await?;
    let ids: BTreeMap<VertexRef, VertexId> =
        ends.into_iter().zip(looked_up).filter_map(|(end, id)| Some((end.clone(), id?))).collect();
    let vertices: Vec<_> = ids.values().copied().collect();
    let keys = query.keys_of(&vertices).await?;
    if !keys.iter().eq(ids.keys().map(|end| &end.key)) {
        let expected: Vec<_> = ids.keys().collect();
        return Err(ReadFailure::Contradiction(format!(
            "the keys of vertices are {keys:?}, looked up as {expected:?}"
        )));
    }
    let by_id = ids.iter().map(|(end, id)| (*id, end.clone())).collect();
    Ok(VertexIndex { ids, by_id })
}

async fn read_rows(
    graph: &Graph,
    query: &mut Query,
    found: &VertexIndex,
    model: &mut Model,
) -> Result<(), ReadFailure> {
    let mut by_label: BTreeMap<&str, Vec<(&VertexRef, VertexId)>> = BTreeMap::new();
    for (end, id) in &found.ids {
        by_label.entry(&end.label).or_default().push((end, *id));
    }
    for (label, mut vertices) in by_label {
        let described = graph.schema().vertex_labels.iter().find(|it| it.name == label);
        let names = described.into_iter().flat_map(|it| &it.properties).map(|it| it.name.clone());
        let names: Vec<String> = names.collect();
        // Rows come back in the order of ordinals.
        vertices.sort_by_key(|(_, id)| *id);
        let rows = query.properties(&vertices.iter().map(|(_, id)| *id).collect(), &names).await?;
        for (end, _) in &vertices {
            model.vertices.insert((*end).clone(), Properties::new());
        }
        for rows in rows {
            for (row, (end, _)) in vertices.iter().enumerate() {
                let fields = rows.batch.schema();
                let cells = fields.fields().iter().zip(rows.batch.columns());
                let cells = cells.filter(|(field, _)| field.name() != "~key");
                let cells = cells.map(|(field, column)| (field.name().clone(), widened(Value::at(column, row))));
                let row = cells.filter(|(_, value)| *value != Value::Null);
                model.vertices.insert((*end).clone(), row.collect());
            }
        }
    }
    Ok(())
}

/// Whether an index finds the vertices whose rows have some values. All values that batches write are asked for, in parts: an entry
/// that was left behind is found by its old value, which no row may have any more.
async fn ask_index(
    graph: &Graph,
    query: &mut Query,
    found: &VertexIndex,
    model: &Model,
    index: &PropertyIndex,
) -> Result<(), ReadFailure> {
    let Some(label) = graph.schema().label(index.label) else { return Ok(()) };
    let kind = label.properties.iter().find(|property| property.name == index.property).map(|property| property.kind);
    let has = |end: &VertexRef| {
        let row = model.vertices.get(end).filter(|_| end.label == label.name)?;
        row.get(&index.property).map(written)
    };
    let mut values: BTreeSet<String> = found.ids.keys().filter_map(has).collect();
    values.extend((0..100).flat_map(|number| match kind {
        Some(PropertyType::Scalar(ScalarType::String)) => vec![format!("n{number}")],
        Some(PropertyType::Scalar(ScalarType::Float64)) => vec![number.to_string(), format!("{number}.5")],
        _ => vec![number.to_string()],
    }));
    let mut asked: Vec<(Condition, BTreeSet<String>)> = Vec::new();
    for part in 0..3 {
        let of_part: BTreeSet<String> = values.iter().skip(part).step_by(3).cloned().collect();
        asked.push((Condition::one_of(index.property.as_str(), of_part.iter().cloned()), of_part));
    }
    // Texts ascend as the set has them; numbers do not.
    if let (Some(PropertyType::Scalar(ScalarType::String)), Some(middle)) = (kind, values.iter().nth(values.len() / 2))
    {
        let condition = Condition::compare(index.property.as_str(), Comparison::GreaterOrEqual, middle.clone());
        asked.push((condition, values.range(middle.clone()..).cloned().collect()));
    }
    for (condition, of_part) in asked {
        let request = ScanRequest {
            labels: vec![label.name.clone()],
            condition: Some(condition.clone()),
            ..ScanRequest::default()
        };
        let answer = query.find(&request).await?;
        let answer: BTreeSet<VertexId> = answer.vertices().collect();
        let due = found.ids.iter().filter(|(end, _)| has(end).is_some_and(|value| of_part.contains(&value)));
        let due: BTreeSet<VertexId> = due.map(|(_, id)| *id).collect();
        if answer != due {
            let why = format!("{condition} on {} finds {answer:?}, where rows have it in {due:?}", label.name);
            return Err(ReadFailure::Contradiction(why));
        }
    }
    Ok(())
}

/// A value as conditions have it.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Float64(number) if number.fract() == 0.0 && number.abs() < 1e15 => (*number as i64).to_string(),
        value => value.to_string(),
    }
}

async fn read_edges(
    graph: &Graph,
    query: &mut Query,
    found: &VertexIndex,
    label: &str,
    direction: HopDirection,
) -> Result<BTreeMap<Pair, Vec<Properties>>, ReadFailure> {
    let vertices: Vec<_> = found.ids.values().copied().collect();
    let edges = query.neighbors(&vertices, &Hop::along(direction, label)).await?;
    let types = graph.schema().edge_types.iter().filter(|it| it.label == label);
    let names: BTreeSet<String> = types.flat_map(|it| &it.properties).map(|it| it.name.clone()).collect();
    let names: Vec<_> = names.into_iter().collect();
    let mut rows = vec![Properties::new(); edges.len()];
    for of in query.edge_properties(&edges, &names).await? {
        for (row, at) in of.positions.iter().enumerate() {
            for (field, column) in of.batch.schema().fields().iter().zip(of.batch.columns()) {
                rows[*at].insert(field.name(), widened(Value::at(column, row)));
            }
        }
    }
    let mut groups: BTreeMap<Pair, Vec<Properties>> = BTreeMap::new();
    for (edge, mut row) in edges.iter().zip(rows) {
        row.retain(|_, value| *value != Value::Null);
        let near = end_of(found, &edge, edge.from)?;
        let far = end_of(found, &edge, edge.to)?;
        let (source, target) = if direction == HopDirection::Out { (near, far) } else { (far, near) };
        groups.entry((label.into(), source, target)).or_default().push(row);
    }
    // Parallel edges have no order of their own.
    groups.values_mut().for_each(|rows| rows.sort_by_key(|row| format!("{row:?}")));
    Ok(groups)
}

fn end_of(found: &VertexIndex, edge: &Neighbour, id: VertexId) -> Result<VertexRef, ReadFailure> {
    let gone = || ReadFailure::Contradiction(format!("{edge:?} has an end that no key leads to"));
    found.by_id.get(&id).cloned().ok_or_else(gone)
}

async fn traverse(
    query: &mut Query,
    found: &VertexIndex,
    label: &str,
    model: &Model,
    starts: usize,
) -> Result<(), ReadFailure> {
    let step = (found.ids.len() / starts.max(1)).max(1);
    for (number, (end, id)) in found.ids.iter().step_by(step).enumerate() {
        // In turn: every strategy must reach the same vertices, each from some of the starts.
        let strategy = [Strategy::Bfs, Strategy::BfsPipelined, Strategy::Dfs][number % 3];
        let hops = vec![Hop::along(HopDirection::Out, label); 2];
        let reached = query.traverse(Traversal { starts: vec![*id], hops, strategy, ..Traversal::default() }).await?;
        let reached: BTreeSet<Option<&VertexRef>> = reached.last().vertices().map(|id| found.by_id.get(&id)).collect();
        let first = model.neighbours(label, end, true);
        let second: BTreeSet<VertexRef> =
            first.iter().flat_map(|middle| model.neighbours(label, middle, true)).collect();
        if reached != second.iter().map(Some).collect() {
            let why =
                format!("two hops {label} from {end} reach {reached:?} by {strategy:?}, where {second:?} are due");
            return Err(ReadFailure::Contradiction(why));
        }
    }
    Ok(())
}
