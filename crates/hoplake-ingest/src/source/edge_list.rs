//! Edge lists: two columns of ids, perhaps a weight, as text (SNAP, Graphalytics) or Parquet.
//!
//! Text has its columns separated by white space or commas; lines that begin with `#` or `%` are
//! comments. A third column of numbers becomes the property `weight`; what follows is left out. There is
//! one vertex label, `vertex`, one edge label, `edge`, and one id space. The vertices are implied by the
//! edges unless a file `.v` lists them (its first column counts). Keys are int64 if all ids are integers
//! in their canonical form, which a first look at all rows finds out, else strings.

use arrow_schema::DataType;
use hoplake_format::{KeyType, PropertyType, ScalarType};

use super::{
    SourceOptions,
    column::{Parse, is_canonical_int64},
    files::SourceFile,
    first_look,
    parquet::{self, ParquetFile},
    plan::{FeedPlan, FieldCount, FileColumn, Tables, TextPlan, end_of},
    records::{Records, TextFormat, head},
    text::TextInput,
};
use crate::{Dataset, IngestError, Input};

const VERTEX: &str = "vertex";
const ENDS: [(&str, &str); 3] = [("source", "target"), ("src", "dst"), ("from", "to")];
const WHITE_SPACE: TextFormat = TextFormat { delimiter: b' ', quoting: false, comments: true, trim: true };
const COMMAS: TextFormat = TextFormat { delimiter: b',', quoting: true, comments: true, trim: true };
/// So many records show what a file is.
const SAMPLE_RECORDS: usize = 32;

/// A file of edges or vertices, understood.
pub(crate) enum EdgeFile {
    /// Edges as text.
    Text {
        file: SourceFile,
        format: TextFormat,
        header: bool,
        ends: (usize, usize),
        weight: Option<usize>,
        sampled: usize,
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
    let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
    let ends = named_ends(&names).unwrap_or((0, 1));
    let is_key = |position: usize| {
        columns.get(position).is_some_and(|(_, kind)| parquet::key_type(kind) == Some(KeyType::Int64))
    };
    if !is_key(ends.0) || !is_key(ends.1) {
        return Ok(None);
    }
    let is_number = |kind: &DataType| kind.is_numeric();
    let weight = columns.iter().position(|(name, kind)| name.eq_ignore_ascii_case("weight") && is_number(kind));
    let third = columns.get(2).filter(|(_, kind)| ends == (0, 1) && is_number(kind)).map(|_| 2);
    Ok(Some(EdgeFile::Parquet { parquet, ends, weight: weight.or(third), names }))
}

fn named_ends(names: &[String]) -> Option<(usize, usize)> {
    let find = |wanted: &str| names.iter().position(|name| name.eq_ignore_ascii_case(wanted));
    ENDS.into_iter().find_map(|(source, target)| Some((find(source)?, find(target)?)))
}

fn recognise_text(file: &SourceFile, text_ids: bool) -> Result<Option<EdgeFile>, IngestError> {
    let mut format = COMMAS;
    let mut sample = head(file, format, SAMPLE_RECORDS)?;
    if sample.iter().any(|record| record.len() < 2) {
        format = WHITE_SPACE;
        sample = head(file, format, SAMPLE_RECORDS)?;
    }
    let width = sample.last().map_or(2, Vec::len);
    if width < 2 || sample.iter().any(|record| record.len() != width) {
        return Ok(None);
    }
    let numbers = |record: &Vec<String>| record[..2].iter().all(|field| is_canonical_int64(field.as_bytes()));
    let named = sample.first().and_then(|first| named_ends(first));
    let header =
        named.is_some() || (width <= 3 && sample.len() > 1 && !numbers(&sample[0]) && sample[1..].iter().all(numbers));
    let rows = &sample[usize::from(header)..];
    let has_text = rows.iter().any(|record| !numbers(record));
    if has_text && named.is_none() && (!text_ids || width > 3) {
        return Ok(None);
    }
    let ends = named.unwrap_or((0, 1));
    let is_weight = |position: usize| {
        let number = |record: &Vec<String>| record[position].parse::<f64>().is_ok();
        position < width && !rows.is_empty() && rows.iter().all(number)
    };
    let weight = Some(2).filter(|&third| ends == (0, 1) && is_weight(third));
    let by_name = sample.first().filter(|_| header).and_then(|names| names.iter().position(|name| name == "weight"));
    let (file, weight, sampled) = (file.clone(), by_name.or(weight), sample.len());
    Ok(Some(EdgeFile::Text { file, format, header, ends, weight, sampled }))
}

/// Looks at the ids and plans the scans.
pub(crate) fn open(files: Vec<EdgeFile>, options: &SourceOptions) -> Result<Dataset, IngestError> {
    let key_type = match options.key_type {
        Some(key_type) => key_type,
        None => find_key_type(&files)?,
    };
    let mut tables = Tables::default();
    let vertices = tables.vertex(VERTEX, VERTEX, key_type);
    tables.vertices[vertices].implied = !files.iter().any(|file| matches!(file, EdgeFile::Vertices { .. }));
    let edges = tables.edge("edge", end_of(VERTEX), end_of(VERTEX));
    for file in &files {
        if let EdgeFile::Text { file, weight: Some(position), .. } = file {
            tables.edge_property(edges, file, &weight(*position))?;
        } else if let EdgeFile::Parquet { parquet, weight: Some(position), .. } = file {
            tables.edge_property(edges, parquet.file(), &weight(*position))?;
        }
    }
    let mut inputs: Vec<Box<dyn Input>> = Vec::new();
    for file in &files {
        inputs.extend(file.inputs(&tables));
    }
    Ok(Dataset { vertex_tables: tables.vertices, edge_tables: tables.edges, inputs })
}

fn weight(position: usize) -> FileColumn {
    FileColumn::new(position, "weight", Parse::new(PropertyType::Scalar(ScalarType::Float64)))
}

fn find_key_type(files: &[EdgeFile]) -> Result<KeyType, IngestError> {
    let has_text = first_look::at_all(files, |file| match file {
        EdgeFile::Text { file, format, header, ends, .. } => has_text_ids(file, *format, *header, &[ends.0, ends.1]),
        EdgeFile::Vertices { file } => has_text_ids(file, WHITE_SPACE, false, &[0]),
        EdgeFile::Parquet { .. } => Ok(false),
    })?;
    Ok(if has_text.contains(&true) { KeyType::String } else { KeyType::Int64 })
}

fn has_text_ids(file: &SourceFile, format: TextFormat, header: bool, ids: &[usize]) -> Result<bool, IngestError> {
    let mut records = Records::open(file, format, Default::default())?;
    if header {
        records.advance()?;
    }
    while records.advance()? {
        // An id that is missing is a bad row, whatever the type.
        let mut fields = ids.iter().filter_map(|&id| records.field(id)).filter(|field| !field.is_empty());
        if fields.any(|field| !is_canonical_int64(field)) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl EdgeFile {
    /// Whether it is sure to be edges: an empty file could be anything, unless its name says so.
    pub(crate) fn shows_edges(&self) -> bool {
        match self {
            Self::Text { file, sampled, .. } => *sampled > 0 || matches!(file.extension(), "e" | "el" | "edges"),
            Self::Parquet { .. } => true,
            Self::Vertices { .. } => false,
        }
    }

    fn inputs(&self, tables: &Tables) -> Vec<Box<dyn Input>> {
        match self {
            Self::Text { file, format, header, ends, weight: third, .. } => {
                let feeds = feeds(tables, &key(ends.0, "source"), &key(ends.1, "target"), *third);
                let fields = FieldCount::AtLeast(ends.0.max(ends.1) + 1);
                let plan = TextPlan { format: *format, header: *header, fields, feeds, by_label: None };
                vec![Box::new(TextInput::new(file, plan))]
            }
            Self::Parquet { parquet, ends, weight: third, names } => {
                let (source, target) = (key(ends.0, &names[ends.0]), key(ends.1, &names[ends.1]));
                parquet.inputs(feeds(tables, &source, &target, *third))
            }
            Self::Vertices { file } => {
                let feeds = vec![tables.vertex_feed(0, &key(0, "vertex"), &[])];
                let fields = FieldCount::AtLeast(1);
                let plan = TextPlan { format: WHITE_SPACE, header: false, fields, feeds, by_label: None };
                vec![Box::new(TextInput::new(file, plan))]
            }
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
