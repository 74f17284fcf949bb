//! Every layout, from files on disk to the rows of its tables.

#![allow(clippy::unwrap_used)]

mod bad;
mod edge_lists;
mod edges_of_formats;
mod forged;
mod ldbc;
mod lies;
mod mapped;
mod property_graphs;
mod real;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{Array, ArrayRef, cast::AsArray, types::TimestampMicrosecondType};
use arrow_cast::display::array_value_to_string;
use hoplake_ingest::{
    BadRows, Dataset, Feed, IngestError, Phase,
    source::{SourceOptions, open},
};

/// The rows of each table as `line: value|value`, under the names that [`name`] gives.
type Rows = BTreeMap<String, Vec<String>>;

/// Writes files (path, content) into a folder of their own.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

fn opened(folder: &Path) -> Dataset {
    open(&[folder.to_owned()], &SourceOptions::default()).unwrap()
}

fn mapped(folder: &Path) -> Result<Dataset, IngestError> {
    open(&[folder.to_owned()], &SourceOptions { mapping: Some(folder.join("map.toml")), ..SourceOptions::default() })
}

fn rejected(from: &[PathBuf]) -> String {
    open(from, &SourceOptions::default()).map(|_| ()).unwrap_err().to_string()
}

/// `Person`, `Person.speaks` or `knows`; edges of one label with several ends are `Comment-replyOf->Post`.
fn name(dataset: &Dataset, feed: Feed) -> String {
    match feed {
        Feed::Vertices { table } => dataset.vertex_tables[table].label.clone(),
        Feed::ListValues { table, property } => {
            let table = &dataset.vertex_tables[table];
            format!("{}.{}", table.label, table.properties[property].name)
        }
        Feed::Edges { table } => {
            let table = &dataset.edge_tables[table];
            let end = |label: &Option<String>| label.clone().unwrap_or_default();
            format!("{}-{}->{}", end(&table.source.label), table.label, end(&table.target.label))
        }
    }
}

/// A value as text. Arrow shows moments only in zones given as an offset.
fn show(column: &ArrayRef, row: usize) -> String {
    if let Some(moments) = column.as_primitive_opt::<TimestampMicrosecondType>() {
        assert_eq!(column.data_type(), &hoplake_format::ScalarType::Timestamp.arrow());
        return array_value_to_string(&moments.clone().with_timezone("+00:00"), row).unwrap();
    }
    array_value_to_string(column, row).unwrap()
}

/// Scans all inputs in both phases.
fn scan(dataset: &Dataset, bad_rows: &Arc<BadRows>) -> Result<Rows, IngestError> {
    let mut rows = Rows::new();
    for phase in [Phase::Vertices, Phase::Edges] {
        for input in &dataset.inputs {
            for chunk in input.scan(phase, Arc::clone(bad_rows))? {
                let chunk = chunk?;
                assert!(input.feeds().contains(&chunk.feed));
                let list = rows.entry(name(dataset, chunk.feed)).or_default();
                for row in 0..chunk.batch.num_rows() {
                    let values = chunk.batch.columns().iter().map(|column| show(column, row));
                    list.push(format!("{}: {}", chunk.lines.line(row), values.collect::<Vec<_>>().join("|")));
                }
            }
        }
    }
    Ok(rows)
}

fn rows(dataset: &Dataset) -> Rows {
    scan(dataset, &Arc::new(BadRows::stop())).unwrap()
}

/// All rows that are good, and of the rejects line, column, value and reason.
fn skipping(dataset: &Dataset) -> (Rows, Vec<String>) {
    let (rows, rejects) = rejecting(dataset);
    (rows, rejects.into_iter().map(|[why, _]| why).collect())
}

/// As [`skipping`], and of each reject the row as it stands in its file.
fn rejecting(dataset: &Dataset) -> (Rows, Vec<[String; 2]>) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let bad_rows = Arc::new(BadRows::skip(file.path()).unwrap());
    let rows = scan(dataset, &bad_rows).unwrap();
    bad_rows.flush().unwrap();
    let mut reader = csv::Reader::from_path(file.path()).unwrap();
    let reject = |record: csv::StringRecord| {
        let fields: Vec<&str> = record.iter().collect();
        [fields[1..5].join(","), fields[5].to_owned()]
    };
    let rejects: Vec<_> = reader.records().map(|record| reject(record.unwrap())).collect();
    assert_eq!(bad_rows.skipped(), rejects.len() as u64);
    (rows, rejects)
}

/// `Person[int64]: name string, age int64`.
fn vertex_types(dataset: &Dataset) -> Vec<String> {
    let types = |properties: &[hoplake_format::Property]| {
        properties.iter().map(|property| format!("{} {}", property.name, property.kind)).collect::<Vec<_>>().join(", ")
    };
    let tables = dataset.vertex_tables.iter();
    tables.map(|table| format!("{}[{}]: {}", table.label, table.key_type, types(&table.properties))).collect()
}

/// `knows: since date`.
fn edge_types(dataset: &Dataset) -> Vec<String> {
    let tables = dataset.edge_tables.iter();
    tables
        .map(|table| {
            let properties = table.properties.iter().map(|property| format!("{} {}", property.name, property.kind));
            format!("{}: {}", table.label, properties.collect::<Vec<_>>().join(", "))
        })
        .collect()
}
