//! A graph as files that other systems read, and that load back as an equal graph.
//!
//! ```text
//! scans of the engine ── batches ──▶ an encoder, on a thread ── bytes ──▶ an upload, one object at a time
//! ```
//! A label or an edge type is a table: its columns, what they are called in the format, and the entry of the mapping by
//! which a load reads them back. Encoders (`text`, `parquet`, `graphml`) are plain functions over batches; `files` drives them and
//! uploads what they wrote. Layouts of the loader (`hoplake-ingest/src/source`) are the mirror of this crate, and the mapping is
//! written from the loader's own types, so that the two cannot differ in what a key of it means.
//!
//! **Complete or not.** An object appears when all of it is written. `mapping.toml` is the last one, and the first that a later export
//! to the same place removes: where it is, everything it names is there.
//!
//! **Memory.** A scan's parts, an encoder's buffer and one part of an upload count against the budget of the context.

mod cells;
mod encoder;
mod files;
mod graphml;
mod options;
mod parquet;
mod tables;
mod text;

use std::sync::Arc;

use futures::future::BoxFuture;
use hoplake_engine::{EdgeQuery, Snapshot, VertexQuery};
use hoplake_format::{EdgeTypeId, LabelId};
use hoplake_ingest::source::mapping::Mapping;
use hoplake_storage::{Branch, QueryContext, Store};

use files::{ExportTotals, Files};
use options::FileNames;
pub use options::{ExportError, ExportFormat, ExportOptions, GRAPHML_NAME};
use tables::{Table, Tables};

/// The object that says how to load the others, and that all of them are there.
pub const MAPPING_NAME: &str = "mapping.toml";

/// How the mapping of an export begins: others are not removed.
const MAPPING_HEAD: &str = "# Load the graph back: hoplake load URL --mapping THIS_FILE\n\n";

/// The folders of tables.
const FOLDERS: [&str; 2] = ["vertices/", "edges/"];

/// What was exported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exported {
    /// Vertices.
    pub vertices: u64,
    /// Edges.
    pub edges: u64,
    /// Files, without the mapping.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whether there is a `mapping.toml` to load them with.
    pub has_mapping: bool,
}

/// Writes a version of a graph as files to `target`. `progress` is called with the number of vertices and edges that were just written.
///
/// # Errors
/// [`ExportError::Exists`] if there is something at the destination; [`ExportError::NotFound`] for an unknown label; the stores'; that a
/// limit of the context was reached. Then there are files without a `mapping.toml`.
pub fn export<'a>(
    snapshot: &'a Arc<Snapshot>,
    target: &'a Store,
    options: &'a ExportOptions,
    context: &'a QueryContext,
    progress: &'a (dyn Fn(u64) + Sync),
) -> BoxFuture<'a, Result<Exported, ExportError>> {
    Box::pin(async move {
        let tables = Tables::new(snapshot.schema(), options).map_err(ExportError::NotFound)?;
        make_room(target, options).await?;
        let mut files = Files::new(target, &tables, options, context);
        let written = write_tables(snapshot, &tables, &mut files, context, progress).await;
        let (mut exported, names) = match written {
            Ok(written) => written,
            Err(error) => {
                files.give_up().await;
                return Err(error);
            }
        };
        if options.format != ExportFormat::GraphMl {
            let mut mapping = tables.mapping();
            tables.add_files(&names, &mut mapping);
            write_mapping(target, &mapping).await?;
            exported.has_mapping = true;
        }
        Ok(exported)
    })
}

/// Writes all files but the mapping, and returns the names of those of each table.
async fn write_tables(
    snapshot: &Arc<Snapshot>,
    tables: &Tables,
    files: &mut Files<'_>,
    context: &QueryContext,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<(Exported, Vec<FileNames>), ExportError> {
    let mut branch = context.branch();
    let mut exported = Exported::default();
    let mut names = Vec::new();
    for (number, table) in tables.vertices.iter().enumerate() {
        exported.vertices += write_vertices(snapshot, number, table, files, &mut branch, progress).await?;
        names.push(files.end_table().await?);
    }
    for (at, table) in tables.edges.iter().enumerate() {
        let number = tables.vertices.len() + at;
        exported.edges += write_edges(snapshot, number, table, files, &mut branch, progress).await?;
        names.push(files.end_table().await?);
    }
    let ExportTotals { files, bytes } = files.finish().await?;
    (exported.files, exported.bytes) = (files, bytes);
    Ok((exported, names))
}

async fn write_vertices(
    snapshot: &Arc<Snapshot>,
    number: usize,
    table: &Table<LabelId>,
    files: &mut Files<'_>,
    branch: &mut Branch,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<u64, ExportError> {
    files.begin_table(number, &table.stem).await?;
    let columns = table.scanned();
    let query = VertexQuery { label: table.of, condition: None, columns, wanted: None };
    let mut scan = snapshot.scan_vertices(query, branch).await?;
    let mut rows = 0;
    while let Some(found) = scan.next(branch).await? {
        files.write(&found.batch).await?;
        rows += found.batch.num_rows() as u64;
        progress(found.batch.num_rows() as u64);
    }
    Ok(rows)
}

async fn write_edges(
    snapshot: &Arc<Snapshot>,
    number: usize,
    table: &Table<EdgeTypeId>,
    files: &mut Files<'_>,
    branch: &mut Branch,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<u64, ExportError> {
    files.begin_table(number, &table.stem).await?;
    let query = EdgeQuery { edge_type: table.of, columns: table.scanned() };
    let mut scan = snapshot.scan_edges(query, branch).await?;
    let mut rows = 0;
    while let Some(batch) = scan.next(branch).await? {
        files.write(&batch).await?;
        rows += batch.num_rows() as u64;
        progress(batch.num_rows() as u64);
    }
    Ok(rows)
}

/// Rejects a destination that has something, or removes the files of an earlier export from it: its mapping first, so that what is left of it
/// never looks complete.
async fn make_room(target: &Store, options: &ExportOptions) -> Result<(), ExportError> {
    let there = target.list("").await?;
    let Some(one) = there.first() else { return Ok(()) };
    if there.iter().any(|object| object.name.starts_with("manifest/")) {
        return Err(ExportError::Exists(format!("{} has a graph; export to another place", target.url())));
    }
    if !options.overwrite {
        let message = format!("{} is not empty: it has {}, for example", target.url(), one.name);
        return Err(ExportError::Exists(message));
    }
    let Some(bytes) = target.get(MAPPING_NAME).await? else { return Ok(()) };
    let text = std::str::from_utf8(&bytes).ok().filter(|text| text.starts_with(MAPPING_HEAD));
    let Some(text) = text else {
        let message =
            format!("{} has a {MAPPING_NAME} that no export wrote; move it, or export to another place", target.url());
        return Err(ExportError::Exists(message));
    };
    target.delete(&[MAPPING_NAME.to_owned()]).await?;
    let old: Option<Mapping> = toml::from_str(text).ok();
    let named = old.iter().flat_map(|old| {
        let vertices = old.vertices.iter().filter_map(|entry| entry.file.as_ref());
        vertices.chain(old.edges.iter().map(|entry| &entry.file))
    });
    let mut named: Vec<String> = named.filter_map(|file| Some(file.to_str()?.to_owned())).collect();
    // What an export writes, and nothing that a mapping of somebody else may name.
    named.retain(|name| {
        FOLDERS.iter().any(|folder| name.starts_with(folder)) && there.iter().any(|object| object.name == *name)
    });
    Ok(target.delete(&named).await?)
}

async fn write_mapping(target: &Store, mapping: &Mapping) -> Result<(), ExportError> {
    let failed = |error: toml::ser::Error| ExportError::Encode { file: MAPPING_NAME.into(), why: error.to_string() };
    let text = toml::to_string(mapping).map_err(failed)?;
    Ok(target.put(MAPPING_NAME, format!("{MAPPING_HEAD}{text}").into_bytes().into()).await?)
}
