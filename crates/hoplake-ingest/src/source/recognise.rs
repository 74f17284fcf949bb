//! Telling the layout of files.

use std::{fmt, path::PathBuf};

use super::{
    Layout, SourceOptions, edge_list,
    files::{self, SourceFile},
    ldbc_basic, ldbc_bi, mapping, neo4j, neptune,
    records::{TextFormat, head},
};
use crate::{Dataset, IngestError};

const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Opens the files at or under `from`: recognises their layout, reads their headers (and, where the
/// layout has no types, looks at all rows once), and returns tables and inputs. The inputs are
/// sorted by path.
///
/// ```
/// use hoplake_ingest::{Phase, BadRows, source::{SourceOptions, open}};
///
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("friends.txt");
/// std::fs::write(&file, "# who knows whom\n1 2\n2 3\n")?;
/// let dataset = open(&[file], &SourceOptions::default())?;
/// assert_eq!(dataset.edge_tables[0].label, "edge");
/// let mut edges = 0;
/// for chunk in dataset.inputs[0].scan(Phase::Edges, BadRows::stop().into())? {
///     edges += chunk?.batch.num_rows();
/// }
/// assert_eq!(edges, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`IngestError::Invalid`] if no layout is recognised, [`IngestError::Layout`] if a file does not keep
/// to its layout, [`IngestError::Read`] if a file cannot be read.
pub fn open(from: &[PathBuf], options: &SourceOptions) -> Result<Dataset, IngestError> {
    if let Some(mapping) = &options.mapping {
        return mapping::open(mapping, from, options);
    }
    let files = files::find(from, &options.copies, options.limits)?;
    if files.is_empty() {
        return Err(IngestError::Invalid(format!("there are no files in {}", Paths(from))));
    }
    let is = |layout: Layout, found: bool| options.layout.map_or(found, |wanted| wanted == layout);
    // From the sure to the vague: LDBC by names, labelled CSV by headers, and at last edge lists, which two columns make.
    if is(Layout::LdbcBi, files.iter().any(ldbc_bi::recognises)) {
        return ldbc_bi::open(&files).and_then(|dataset| or_unrecognised(dataset, from, options));
    }
    if is(Layout::LdbcBasic, files.iter().any(ldbc_basic::recognises)) {
        return ldbc_basic::open(&files).and_then(|dataset| or_unrecognised(dataset, from, options));
    }
    let wanted = |layout: Layout| options.layout.is_none_or(|wanted| wanted == layout);
    if wanted(Layout::Neptune) {
        let found = with_headers(&files, neptune::recognises)?;
        if !found.is_empty() {
            return neptune::open(found);
        }
    }
    if wanted(Layout::Neo4j) {
        let found = with_headers(&files, neo4j::recognises)?;
        if !found.is_empty() {
            return neo4j::open(found);
        }
    }
    let edges = if wanted(Layout::EdgeList) { edge_lists(&files, options)? } else { Vec::new() };
    if edges.is_empty() { Err(unrecognised(from, options)) } else { edge_list::open(edges, options) }
}

fn or_unrecognised(dataset: Dataset, from: &[PathBuf], options: &SourceOptions) -> Result<Dataset, IngestError> {
    let empty = dataset.vertex_tables.is_empty() && dataset.edge_tables.is_empty();
    if empty { Err(unrecognised(from, options)) } else { Ok(dataset) }
}

/// The CSV files whose header is one of a layout, with the delimiter that makes it so. If one is, all
/// others that are not empty must be: a file is not left out in silence.
fn with_headers(
    files: &[SourceFile],
    recognises: fn(&[String]) -> bool,
) -> Result<Vec<(SourceFile, TextFormat, Vec<String>)>, IngestError> {
    let mut found = Vec::new();
    let mut others = Vec::new();
    for file in files.iter().filter(|file| matches!(file.extension(), "csv" | "tsv" | "txt")) {
        let mut empty = false;
        let mut matching = None;
        for format in DELIMITERS.map(TextFormat::quoted) {
            let head = head(file, format, 1)?;
            let header = head.records.into_iter().next();
            // Without a record under one delimiter there is none under the others.
            empty |= header.is_none() && head.fault.is_none();
            matching = header.filter(|header| recognises(header)).map(|header| (format, header));
            // A fault under a delimiter that is not the file's own means nothing.
            if let (Some(_), Some(fault)) = (&matching, head.fault) {
                return Err(fault);
            }
            if empty || matching.is_some() {
                break;
            }
        }
        match matching {
            Some((format, header)) => found.push((file.clone(), format, header)),
            None if empty || file.extension() == "txt" => {}
            None => others.push(file),
        }
    }
    match others.first() {
        Some(other) if !found.is_empty() => Err(other.layout(format!(
            "has no header like that of {} next to it; leave it out, or write a mapping for all files",
            found[0].0.path.display()
        ))),
        _ => Ok(found),
    }
}

fn edge_lists(files: &[SourceFile], options: &SourceOptions) -> Result<Vec<edge_list::EdgeFile>, IngestError> {
    let insists = options.layout == Some(Layout::EdgeList);
    let mut found = Vec::new();
    let mut others = Vec::new();
    let mut has_edges = false;
    for file in files {
        match edge_list::recognise(file, insists)? {
            Some(edges) => {
                // An empty file alone does not make the folder an edge list.
                has_edges |= edges.shows_edges();
                found.push(edges);
            }
            None if matches!(file.extension(), "csv" | "tsv" | "parquet") => others.push(file),
            None => {}
        }
    }
    match others.first() {
        Some(other) if has_edges => Err(other
            .layout("is not an edge list like the files next to it; leave it out, or write a mapping for all files")),
        _ if has_edges => Ok(found),
        _ => Ok(Vec::new()),
    }
}

fn unrecognised(from: &[PathBuf], options: &SourceOptions) -> IngestError {
    let wanted = options.layout.map_or_else(
        || {
            "the layout of the files was not recognised. Looked for: LDBC SNB CsvBasic (person_0_0.csv), LDBC SNB BI \
             (initial_snapshot/dynamic/Person/part-….csv), Gremlin CSV (columns ~id, ~label, ~from, ~to), neo4j-admin \
             CSV (columns :ID, :LABEL, :START_ID, :END_ID, :TYPE), and edge lists (two columns of ids in .txt, .el, \
             .e, .edges, .tsv, .csv or .parquet)"
                .to_owned()
        },
        |layout| format!("no file has the layout {layout:?}"),
    );
    IngestError::Invalid(format!(
        "{}: {wanted}. Any other CSV or Parquet can be loaded with a mapping, a TOML file that begins like this:\n\n{}",
        Paths(from),
        mapping::EXAMPLE
    ))
}

struct Paths<'a>(&'a [PathBuf]);

impl fmt::Display for Paths<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, path) in self.0.iter().enumerate() {
            write!(f, "{}{}", if position > 0 { ", " } else { "" }, path.display())?;
        }
        Ok(())
    }
}
