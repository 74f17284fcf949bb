//! Files that a target writes for each input: in memory where the system has such a folder, so that no disk is waited for.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use hoplake_ingest::{BadRows, Dataset, Feed, IngestError, Phase};
use tempfile::TempDir;

/// A folder of its own, which goes with the process.
pub fn new() -> TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    folder.expect("a folder can be made")
}

/// Writes a file, and says where it is.
pub fn write(folder: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("a file can be written");
    path
}

/// Reads all rows of a dataset, and says how many there are. Keys are never null, and columns have the types of their tables.
///
/// # Errors
/// The first of the readers.
pub fn scan(dataset: &Dataset, bad_rows: &Arc<BadRows>, rows_max: usize) -> Result<usize, IngestError> {
    let mut rows = 0;
    for phase in [Phase::Vertices, Phase::Edges] {
        for input in &dataset.inputs {
            for chunk in input.scan(phase, Arc::clone(bad_rows))? {
                let chunk = chunk?;
                let (keys, properties) = columns(dataset, chunk.feed);
                assert_eq!(chunk.batch.num_columns(), keys + properties.len(), "{:?}", chunk.feed);
                for (at, column) in chunk.batch.columns().iter().enumerate() {
                    match at.checked_sub(keys) {
                        None => assert_eq!(column.null_count(), 0, "a key of {:?} is null", chunk.feed),
                        Some(at) => assert_eq!(*column.data_type(), properties[at], "{:?}", chunk.feed),
                    }
                }
                rows += chunk.batch.num_rows();
                if rows > rows_max {
                    return Ok(rows);
                }
            }
        }
    }
    Ok(rows)
}

/// How many columns of keys a feed has, and the types of the others.
fn columns(dataset: &Dataset, feed: Feed) -> (usize, Vec<arrow_schema::DataType>) {
    match feed {
        Feed::Vertices { table } => {
            (1, dataset.vertex_tables[table].properties.iter().map(|it| it.kind.arrow()).collect())
        }
        Feed::ListValues { table, property } => {
            let kind = match dataset.vertex_tables[table].properties[property].kind {
                hoplake_format::PropertyType::List(scalar) | hoplake_format::PropertyType::Scalar(scalar) => scalar,
            };
            (1, vec![kind.arrow()])
        }
        Feed::Edges { table } => (2, dataset.edge_tables[table].properties.iter().map(|it| it.kind.arrow()).collect()),
    }
}
