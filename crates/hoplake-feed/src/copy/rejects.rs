//! Edges that a load rejected, because a vertex that they name is not there.

use std::{collections::BTreeMap, fs::File, path::Path};

use arrow_array::RecordBatch;
use hoplake::{EdgeKey, Operation, Properties, Value, VertexRef};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReaderBuilder, RowSelection, RowSelector};

use super::files::{CopyFiles, UnsureEdges};
use crate::{
    FeedError, FeedErrorKind, Missing,
    apply::fold::{EdgeId, Owner, WaitingChanges, WaitingEdge},
    error::SAME_TEXT,
    mapping::Item,
    value::as_key,
};

/// Reads the rejects of a load: edges that wait, and operations that make edges with stubs.
pub(super) fn read(files: &CopyFiles, rejects: &Path) -> Result<(WaitingChanges, Vec<Operation>), FeedError> {
    let mut waiting = WaitingChanges::new();
    let mut stubs = Vec::new();
    let unsure = files.unsure();
    for (path, (rows, reason)) in rejected(rejects)? {
        let edges = unsure.iter().find(|edges| edges.path.as_os_str() == path.as_str());
        let Some(edges) = edges else {
            let why = format!("a row that was copied cannot be loaded: {reason}");
            return Err(FeedError::new(FeedErrorKind::Row, why).hint("check that the columns of a key identify a row"));
        };
        for batch in rows_of(&edges.path, &rows)? {
            for row in 0..batch.num_rows() {
                let Some((id, properties)) = edge(edges, &batch, row) else { continue };
                decide(edges, id, properties, &mut waiting, &mut stubs)?;
            }
        }
    }
    Ok((waiting, stubs))
}

/// The error of a load that found a row which names a vertex that is not there, in the words of the database.
pub(super) fn explained(files: &CopyFiles, error: hoplake::Error) -> FeedError {
    let message = error.to_string();
    let Some((entry, path)) = files.named_in(&message) else { return error.into() };
    let after = |mark: &str| message.split_once(mark).map(|(_, rest)| rest);
    let number = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<usize>().ok();
    let Some(row) = after(", line ").and_then(number) else { return error.into() };
    let batches = rows_of(path, &[row]).unwrap_or_default();
    let value = |name: &str| {
        let batch = batches.first().filter(|batch| batch.num_rows() > 0)?;
        batch.column_by_name(name).map(|column| Value::at(column, 0).to_string())
    };
    // The load reports a value without a vertex, and its label; the columns of the file are numbered.
    let is_named =
        |column: &str| value(column).is_some_and(|value| message.contains(&format!("{:?}", value.trim_matches('"'))));
    let end = match &entry.item {
        Item::Vertex(vertex) => vertex.edges.iter().enumerate().find_map(|(number, key)| {
            let column = format!("t{number}");
            let is_meant = key.missing.is_none() && message.contains(key.other.as_str()) && is_named(&column);
            is_meant.then_some((column, &key.key, &key.other, &key.compared_by))
        }),
        Item::Edge(edge) => {
            let number = usize::from(message.contains(", column target"));
            let end = &edge.ends[number];
            Some((["s", "t"][number].to_owned(), &end.key, &end.label, &end.compared_by))
        }
    };
    let Some((column, key, label, compared_by)) = end else {
        return FeedError::new(FeedErrorKind::Row, format!("table {}: a row cannot be loaded: {message}", entry.table));
    };
    let of_row = match &entry.item {
        Item::Vertex(vertex) => format!("{}={}", vertex.key.columns.join(":"), value("k").unwrap_or_default()),
        Item::Edge(_) => format!("{} to {}", value("s").unwrap_or_default(), value("t").unwrap_or_default()),
    };
    let names = value(&column).unwrap_or_default();
    let why = format!(
        "table {}, row {of_row}: {} is {names}, and no vertex {label} has this key",
        entry.table,
        key.columns.join(":")
    );
    match compared_by {
        Some(collation) => {
            let why = format!("{why}; the database finds the row by {collation}, also where the text is another");
            FeedError::new(FeedErrorKind::Row, why).hint(SAME_TEXT)
        }
        None => FeedError::new(FeedErrorKind::Row, why).hint(
            "was it written without checks of foreign keys? correct the row; or give the edge missing = \"wait\" in feed.toml, and it is \
             there as soon as the vertex is",
        ),
    }
}

/// The numbers of rejected rows, ascending, and the first reason, by file.
fn rejected(rejects: &Path) -> Result<BTreeMap<String, (Vec<usize>, String)>, FeedError> {
    let unreadable =
        |error: csv::Error| FeedError::unavailable(format!("could not read {}: {error}", rejects.display()));
    let mut reader = csv::Reader::from_path(rejects).map_err(unreadable)?;
    let mut by_file: BTreeMap<String, (Vec<usize>, String)> = BTreeMap::new();
    for record in reader.records() {
        let record = record.map_err(unreadable)?;
        let row = record.get(1).and_then(|row| row.parse().ok());
        if let (Some(file), Some(row)) = (record.get(0), row) {
            let reason = || format!("{} {}", record.get(3).unwrap_or_default(), record.get(4).unwrap_or_default());
            by_file.entry(file.to_owned()).or_insert_with(|| (Vec::new(), reason())).0.push(row);
        }
    }
    by_file.values_mut().for_each(|(rows, _)| rows.sort_unstable());
    Ok(by_file)
}

/// Rows of a file by their numbers, which begin with 1.
fn rows_of(path: &Path, rows: &[usize]) -> Result<Vec<RecordBatch>, FeedError> {
    let unreadable = |error: String| FeedError::unavailable(format!("could not read {}: {error}", path.display()));
    let file = File::open(path).map_err(|error| unreadable(hoplake::system_text(&error)))?;
    let mut selectors = Vec::new();
    let mut next = 1;
    for row in rows {
        if *row > next {
            selectors.push(RowSelector::skip(row - next));
        }
        selectors.push(RowSelector::select(1));
        next = row + 1;
    }
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| unreadable(error.to_string()))?;
    let reader = builder
        .with_row_selection(RowSelection::from(selectors))
        .build()
        .map_err(|error| unreadable(error.to_string()))?;
    reader.map(|batch| batch.map_err(|error| unreadable(error.to_string()))).collect()
}

/// The edge of a row.
fn edge(edges: &UnsureEdges, batch: &RecordBatch, row: usize) -> Option<(EdgeId, Properties)> {
    let key = |column: usize| as_key(Value::at(batch.column(column), row));
    // A foreign key's file has the vertex first that the row is.
    let (source, target) = if edges.owner == Owner::Target { (1, 0) } else { (0, 1) };
    let end = |column: usize, at: usize| Some(VertexRef { label: edges.ends[at].0.clone(), key: key(column)? });
    let source = end(source, 0)?;
    let target = end(target, 1)?;
    let named =
        edges.properties.iter().enumerate().map(|(at, name)| (name.clone(), Value::at(batch.column(2 + at), row)));
    let properties: Properties = named.filter(|(_, value)| *value != Value::Null).collect();
    let key = edges.key.as_ref().and_then(|name| {
        let value = properties.get(name)?.clone();
        Some(EdgeKey { property: name.clone(), value }.into())
    });
    Some((EdgeId { label: edges.label.clone(), source, target, key }, properties))
}

/// What becomes of an edge. Which of its ends lacks is not said, so that the strictest rule of the two holds.
fn decide(
    edges: &UnsureEdges,
    id: EdgeId,
    properties: Properties,
    waiting: &mut WaitingChanges,
    stubs: &mut Vec<Operation>,
) -> Result<(), FeedError> {
    let policies: Vec<_> = edges.missing.iter().flatten().copied().collect();
    if policies.contains(&Missing::Error) {
        let why = format!("edge {} -{}-> {}: one of the two vertices is not there", id.source, id.label, id.target);
        return Err(FeedError::new(FeedErrorKind::Row, why));
    }
    if policies.contains(&Missing::Wait) {
        waiting.insert(id, Some(WaitingEdge { properties, owner: edges.owner }));
        return Ok(());
    }
    let key = id.key.as_ref().map(EdgeKey::from);
    let EdgeId { label, source, target, .. } = id;
    stubs.push(Operation::UpsertEdge { label, source, target, key, properties, replace: false });
    Ok(())
}
