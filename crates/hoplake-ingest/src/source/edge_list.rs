//! Edge lists: two columns of ids, perhaps a weight, as text (SNAP, Graphalytics) or Parquet.
//!
//! Text has its columns separated by white space or commas; lines that begin with `#` or `%` are comments. A third
//! column of numbers becomes the property `weight`; one that is not numbers is rejected; what follows is left out. There
//! is one vertex label, `vertex`, one edge label, `edge`, and one id space. The vertices are implied by the edges
//! unless a file `.v` lists them (its first column counts).
//!
//! The first records only show that a file is an edge list. Its columns are those of most of its rows, which a look at
//! all of them finds out: how many columns there are, whether the first line is a header, whether there are weights.
//! Rows that differ are bad, wherever they stand. Keys are int64 if all ids are integers in their canonical form, else
//! strings.

use std::collections::BTreeMap;

use hoplake_format::{KeyType, PropertyType, ScalarType};

use super::{
    SourceOptions,
    column::Parse,
    files::SourceFile,
    first_look, foreign,
    parquet::ParquetFile,
    plan::{FeedPlan, FieldCount, FileColumn, Tables, TextPlan, end_of, occurs_twice},
    records::{Records, TextFormat, head},
    text::TextInput,
    values::is_canonical_int64,
};
use crate::{Dataset, IngestError, Input};

const VERTEX: &str = "vertex";
const ENDS: [(&str, &str); 3] = [("source", "target"), ("src", "dst"), ("from", "to")];
const WHITE_SPACE: TextFormat =
    TextFormat { delimiter: b' ', quoting: false, comments: true, trim: true, empty_text: false };
const COMMAS: TextFormat = TextFormat { delimiter: b',', quoting: true, comments: true, trim: true, empty_text: false };
/// The number of records that decide what a file is.
const SAMPLE_RECORDS: usize = 32;

/// A file of edges or vertices that was recognised.
pub(crate) enum EdgeFile {
    /// Edges as text.
    Text {
        file: SourceFile,
        format: TextFormat,
        /// Whether the file begins with a record.
        sampled: bool,
    },
    /// Edges as Parquet.
    Parquet { parquet: ParquetFile, ends: (usize, usize), weight: Option<usize>, names: Vec<String> },
    /// Vertices as text.
    Vertices { file: SourceFile },
}

/// Looks whether a file is an edge list. Text ids in a `.csv` could be any table, so that they are taken
/// for edges only if the header names the ends or the caller `insists`.
pub(crate) fn recognise(file: &SourceFile, insists: bool) -> Result<Option<EdgeFile>, IngestError> {
    match file.extension() {
        "v" => Ok(Some(EdgeFile::Vertices { file: file.clone() })),
        "parquet" => recognise_parquet(file),
        "e" | "el" | "edges" | "txt" | "tsv" => recognise_text(file, true),
        "csv" => recognise_text(file, insists),
        _ if insists => recognise_text(file, true),
        _ => Ok(None),
    }
}

fn recognise_parquet(file: &SourceFile) -> Result<Option<EdgeFile>, IngestError> {
    let parquet = ParquetFile::open(file)?;
    let columns = parquet.columns();
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    reject_ends_twice(file, &names)?;
    let ends = named_ends(&names).unwrap_or((0, 1));
    let is_key = |position: usize| columns.get(position).is_some_and(|column| column.key == Some(KeyType::Int64));
    if !is_key(ends.0) || !is_key(ends.1) {
        return Ok(None);
    }
    let weight = weight_column(file, &names, ends, names.len())?;
    if let Some(column) = weight.map(|position| &columns[position]).filter(|column| !column.is_number) {
        return Err(file.layout(format!("has column {:?} of type {}, {NO_WEIGHT}", column.name, column.type_name)));
    }
    Ok(Some(EdgeFile::Parquet { parquet, ends, weight, names }))
}

/// The hint for a column that may be meant as a weight, but is not one.
const NO_WEIGHT: &str = "which is not a weight (a number); remove the column, or write a mapping that defines it";

/// Rejects a header that names an end or the weight twice: which one is meant?
fn reject_ends_twice(file: &SourceFile, names: &[String]) -> Result<(), IngestError> {
    let reserved = ENDS.iter().flat_map(|(source, target)| [*source, *target]).chain(["weight"]);
    for wanted in reserved {
        if names.iter().filter(|name| name.eq_ignore_ascii_case(wanted)).count() > 1 {
            return Err(file.layout(occurs_twice(wanted)));
        }
    }
    Ok(())
}

fn named_ends(names: &[String]) -> Option<(usize, usize)> {
    let find = |wanted: &str| names.iter().position(|name| name.eq_ignore_ascii_case(wanted));
    ENDS.into_iter().find_map(|(source, target)| Some((find(source)?, find(target)?)))
}

/// The column of weights: the one of that name, or the third if unnamed.
fn weight_column(
    file: &SourceFile,
    names: &[String],
    ends: (usize, usize),
    width: usize,
) -> Result<Option<usize>, IngestError> {
    let named = names.iter().position(|name| name.eq_ignore_ascii_case("weight"));
    if named.is_some() || width <= 2 {
        return Ok(named);
    }
    if names.len() <= 2 {
        return Ok(Some(2));
    }
    let others: Vec<_> =
        (0..names.len()).filter(|at| *at != ends.0 && *at != ends.1).map(|at| &names[at][..]).collect();
    Err(file.layout(format!(
        "has columns {}, but none is named weight; remove them, or write a mapping that defines them",
        others.join(", ")
    )))
}

fn are_integers(record: &[String]) -> bool {
    record.len() >= 2 && record[..2].iter().all(is_canonical_int64)
}

/// Whether most of the first records look like edges. Which rows then are none, a look at all of them finds out.
fn recognise_text(file: &SourceFile, text_ids: bool) -> Result<Option<EdgeFile>, IngestError> {
    foreign::reject(file)?;
    let mut format = COMMAS;
    let mut sample = head(file, format, SAMPLE_RECORDS)?;
    let wide = |record: &&Vec<String>| record.len() >= 2;
    // Few records with a comma: the separator is white space.
    if sample.records.iter().filter(wide).count() * 2 <= sample.records.len() {
        format = WHITE_SPACE;
        sample = head(file, format, SAMPLE_RECORDS)?;
    }
    // A file that is one faulty record, such as lines that end with \r alone, may be anything.
    if let ([_], Some(fault)) = (&sample.records[..], sample.fault) {
        return if text_ids { Err(fault) } else { Ok(None) };
    }
    let records = &sample.records;
    let found = Some(EdgeFile::Text { file: file.clone(), format, sampled: !records.is_empty() });
    // The first record may be a header, which is text in any case.
    let behind_header = &records[records.len().min(1)..];
    let integers = behind_header.iter().filter(|record| are_integers(record)).count();
    let first_integers = records.first().is_some_and(|first| are_integers(first));
    let named = records.first().is_some_and(|first| named_ends(first).is_some());
    if records.is_empty() || named || integers * 2 > behind_header.len() || (first_integers && behind_header.is_empty())
    {
        return Ok(found);
    }
    let alike = |width: usize| records.iter().filter(|record| record.len() == width).count() * 4 > records.len() * 3;
    Ok(found.filter(|_| text_ids && [2, 3].into_iter().any(alike)))
}

/// The profile of a text file, from a pass over all of its rows. No row counts for more than another, so that a row's fate does not
/// depend on its place.
#[derive(Default)]
struct TextProfile {
    first: Vec<String>,
    /// The rows after the first, and their fields.
    rows: u64,
    fields: u64,
    /// The number of rows by their number of fields.
    widths: BTreeMap<usize, u64>,
    /// By column: in how many rows after the first it is an integer, another number, and text.
    columns: Vec<[u64; 3]>,
}

impl TextProfile {
    fn look(file: &SourceFile, format: TextFormat) -> Result<Self, IngestError> {
        let mut seen = Self::default();
        let mut records = Records::open(file, format, Default::default())?;
        while records.advance()? {
            // Such rows are reported by the scan.
            if records.fault().is_some() {
                continue;
            }
            if seen.widths.is_empty() {
                seen.first = records.texts();
            } else {
                seen.count(&records);
            }
            *seen.widths.entry(records.len()).or_default() += 1;
        }
        Ok(seen)
    }

    fn count(&mut self, records: &Records) {
        self.rows += 1;
        self.fields += records.len() as u64;
        // A row of thousands of fields must not make the counts of the file grow with it.
        let width = records.len().min(COLUMNS_MAX);
        self.columns.resize(self.columns.len().max(width), [0; 3]);
        for (at, counts) in self.columns.iter_mut().enumerate().take(width) {
            let field = records.field(at).unwrap_or_default();
            if !field.is_empty() {
                counts[kind_of(field)] += 1;
            }
        }
    }

    /// In how many rows after the first a column is an integer, another number, and text.
    fn kinds(&self, column: usize) -> [u64; 3] {
        self.columns.get(column).copied().unwrap_or_default()
    }

    /// Whether a file of vertices has a key that is not an integer.
    fn has_text_keys(&self) -> bool {
        let [_, numbers, texts] = self.kinds(0);
        numbers + texts > 0 || self.first.first().is_some_and(|key| kind_of(key.as_bytes()) != INTEGER)
    }
}

/// The columns that may matter: ends and weight stand among these.
const COLUMNS_MAX: usize = 64;

const INTEGER: usize = 0;
const NUMBER: usize = 1;
const TEXT: usize = 2;

fn kind_of(field: &[u8]) -> usize {
    if is_canonical_int64(field) {
        return INTEGER;
    }
    let number = std::str::from_utf8(field).is_ok_and(|text| text.trim().parse::<f64>().is_ok());
    if number { NUMBER } else { TEXT }
}

/// A text file of edges, understood.
struct TextEdges {
    file: SourceFile,
    format: TextFormat,
    header: bool,
    ends: (usize, usize),
    weight: Option<usize>,
    width: usize,
    has_text_ids: bool,
}

impl TextEdges {
    fn understand(file: &SourceFile, format: TextFormat) -> Result<Self, IngestError> {
        let seen = TextProfile::look(file, format)?;
        foreign::reject_adjacency(file, &seen.first, seen.rows, seen.fields)?;
        let named = named_ends(&seen.first);
        let ends = named.unwrap_or((0, 1));
        let [integers, others] =
            [ends.0, ends.1].map(|end| seen.kinds(end)).iter().fold([0, 0], |[integers, others], kinds| {
                [integers + kinds[INTEGER], others + kinds[NUMBER] + kinds[TEXT]]
            });
        let kind = |at: usize| seen.first.get(at).map(|field| kind_of(field.as_bytes()));
        // With ids that are text, a first row of text is an edge like the others; only above integers it is a header.
        let like_names = (0..seen.first.len().min(3)).all(|at| kind(at) == Some(TEXT)) && seen.first.len() >= 2;
        let header = named.is_some() || (like_names && integers > others);
        let first_has_text =
            !header && [kind(ends.0), kind(ends.1)].iter().any(|kind| kind.is_some_and(|it| it != INTEGER));
        // Of two equally frequent widths, the larger: the other would drop a column.
        let width = seen.widths.iter().max_by_key(|(_, rows)| **rows).map_or(2, |(width, _)| *width);
        // A header may name an end beyond the most frequent width: then the narrower rows are the bad ones.
        let width = width.max(ends.0.max(ends.1) + 1);
        let names: &[String] = if header { &seen.first } else { &[] };
        reject_ends_twice(file, names)?;
        let weight = weight_column(file, names, ends, width)?;
        let has_text_ids = others > 0 || first_has_text;
        let mut edges = Self { file: file.clone(), format, header, ends, weight, width, has_text_ids };
        edges.check_weight(&seen)?;
        Ok(edges)
    }

    /// Keeps a column of weights if most of its values are numbers; the others are bad rows. One without values is
    /// none.
    fn check_weight(&mut self, seen: &TextProfile) -> Result<(), IngestError> {
        let Some(column) = self.weight else { return Ok(()) };
        let [integers, numbers, texts] = seen.kinds(column);
        let first = seen.first.get(column).filter(|field| !self.header && !field.is_empty());
        let first_is_text = first.is_some_and(|field| kind_of(field.as_bytes()) == TEXT);
        let numbers = integers + numbers + u64::from(first.is_some() && !first_is_text);
        let texts = texts + u64::from(first_is_text);
        if texts > numbers {
            // A header may be shorter than the rows below it.
            let named = seen.first.get(column).filter(|_| self.header);
            let named = named.map_or_else(|| "a third column".into(), |name| format!("column {name:?}"));
            let rows = numbers + texts;
            return Err(self
                .file
                .layout(format!("has {named} that is a number in {numbers} of {rows} rows, {NO_WEIGHT}")));
        }
        self.weight = Some(column).filter(|_| numbers > 0);
        Ok(())
    }

    fn input(&self, tables: &Tables) -> Box<dyn Input> {
        let feeds = feeds(tables, &key(self.ends.0, "source"), &key(self.ends.1, "target"), self.weight);
        let fields = FieldCount::Exactly(self.width);
        let plan = TextPlan { format: self.format, header: self.header, fields, feeds, by_label: None };
        Box::new(TextInput::new(&self.file, plan))
    }
}

/// Looks at all rows and plans the scans.
pub(crate) fn open(files: Vec<EdgeFile>, options: &SourceOptions) -> Result<Dataset, IngestError> {
    let looked = first_look::at_all(&files, |file| {
        Ok(match file {
            EdgeFile::Text { file, format, .. } => {
                let edges = TextEdges::understand(file, *format)?;
                (edges.has_text_ids, Some(edges))
            }
            EdgeFile::Vertices { file } => (TextProfile::look(file, WHITE_SPACE)?.has_text_keys(), None),
            EdgeFile::Parquet { .. } => (false, None),
        })
    })?;
    let has_text = looked.iter().any(|(has_text, _)| *has_text);
    // One type for all files, as they share one id space: key `7` of one file is key `7` of the others.
    let key_type = options.key_type.unwrap_or(if has_text { KeyType::String } else { KeyType::Int64 });
    let mut tables = Tables::default();
    let vertices = tables.vertex(VERTEX, VERTEX, key_type);
    tables.vertices[vertices].implied = !files.iter().any(|file| matches!(file, EdgeFile::Vertices { .. }));
    let edges = tables.edge("edge", end_of(VERTEX), end_of(VERTEX));
    for (file, (_, text)) in files.iter().zip(&looked) {
        let weighted = match (file, text) {
            (EdgeFile::Parquet { parquet, weight, .. }, _) => weight.map(|position| (parquet.file(), position)),
            (_, Some(text)) => text.weight.map(|position| (&text.file, position)),
            _ => None,
        };
        if let Some((file, position)) = weighted {
            tables.edge_property(edges, file, &weight(position))?;
        }
    }
    let mut inputs: Vec<Box<dyn Input>> = Vec::new();
    for (file, (_, text)) in files.iter().zip(&looked) {
        match (file, text) {
            (_, Some(text)) => inputs.push(text.input(&tables)),
            (EdgeFile::Parquet { parquet, ends, weight: third, names }, _) => {
                let source = key(ends.0, &names[ends.0]);
                let target = key(ends.1, &names[ends.1]);
                inputs.extend(parquet.inputs(feeds(&tables, &source, &target, *third)));
            }
            (EdgeFile::Vertices { file } | EdgeFile::Text { file, .. }, None) => {
                let feeds = vec![tables.vertex_feed(0, &key(0, "vertex"), &[])];
                // Files of vertices may have values after the key, which are left out.
                let fields = FieldCount::AtLeast(1);
                let plan = TextPlan { format: WHITE_SPACE, header: false, fields, feeds, by_label: None };
                inputs.push(Box::new(TextInput::new(file, plan)));
            }
        }
    }
    Ok(Dataset { vertex_tables: tables.vertices, edge_tables: tables.edges, inputs })
}

fn weight(position: usize) -> FileColumn {
    FileColumn::new(position, "weight", Parse::new(PropertyType::Scalar(ScalarType::Float64)))
}

impl EdgeFile {
    /// Whether it is sure to be edges: an empty file could be anything, unless its name says so.
    pub(crate) fn shows_edges(&self) -> bool {
        match self {
            Self::Text { file, sampled, .. } => *sampled || matches!(file.extension(), "e" | "el" | "edges"),
            Self::Parquet { .. } => true,
            Self::Vertices { .. } => false,
        }
    }
}

fn key(position: usize, name: &str) -> FileColumn {
    FileColumn::new(position, name, Parse::key(KeyType::String))
}

fn feeds(tables: &Tables, source: &FileColumn, target: &FileColumn, third: Option<usize>) -> Vec<FeedPlan> {
    let properties: Vec<FileColumn> = third.map(weight).into_iter().collect();
    let mut feeds = vec![tables.edge_feed(0, source, target, &properties)];
    if tables.vertices[0].implied {
        feeds.extend([source, target].map(|end| tables.vertex_feed(0, end, &[])));
    }
    feeds
}
