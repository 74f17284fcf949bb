//! The rows of a copy as Parquet, and the mapping by which they are loaded.
//!
//! Names of properties may be anything, so the columns of files are numbered: `k` is the key of a vertex, `p0` its first property, `t1`
//! where its second foreign key points and `t1p0` the first property of that edge; `s` and `t` are the ends of an edge. Edges whose ends
//! may not be there are in files of their own: only of those rows may be rejected.

use std::{
    collections::BTreeMap,
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{ArrayRef, RecordBatch};
use hoplake::{KeyType, Name, Properties, PropertyType, VertexRef};
use parquet::{arrow::ArrowWriter, basic::Compression, file::properties::WriterProperties};
use toml::{Table, Value as Toml};

use super::columns::ColumnBuilder;
use crate::{
    Columns, FeedError, FeedErrorKind, Images, Missing, OnError, Row, RowChange,
    apply::{
        fold::{Owner, Plans},
        letters::Letter,
    },
    mapping::{
        BadRow, Entry, ForeignKeyMap, Image, Item, Mapping, Plan, PropertyMap, Target, VertexMap, showing::shown_row,
    },
};

/// Rows of a file that are encoded at a time.
const ROWS: usize = 16_384;
/// Rows of a row group: what is in memory of a file that is being written.
const GROUP_ROWS: usize = 65_536;

/// Rows that a copy sets aside, at most: they are in memory, and with more of them the mapping is wrong.
pub(crate) const SET_ASIDE_MAX: usize = 10_000;

/// The files of a copy.
pub(super) struct CopyFiles {
    mapping: Arc<Mapping>,
    plans: Plans,
    /// By entry: the file of its rows, and those of foreign keys that may name nothing.
    of_entries: Vec<EntryFiles>,
    mapping_file: PathBuf,
    /// Rows that were set aside: the entry, the row and why.
    set_aside: Vec<(usize, RowChange, String)>,
    show_rows: bool,
}

struct EntryFiles {
    /// Of vertices, with the foreign keys that surely name one; or of edges.
    rows: FileWriter,
    /// By the number of the foreign key.
    unsure: BTreeMap<usize, FileWriter>,
}

/// What the edges of a file are, if they may name vertices that are not there.
#[derive(Debug, Clone)]
pub(super) struct UnsureEdges {
    pub(super) path: PathBuf,
    pub(super) label: Name,
    /// The labels of source and target, and the types of their keys.
    pub(super) ends: [(Name, KeyType); 2],
    /// What to do where one lacks.
    pub(super) missing: [Option<Missing>; 2],
    pub(super) owner: Owner,
    /// Names of properties, in the order of columns.
    pub(super) properties: Vec<Name>,
    /// The property that is the edge key.
    pub(super) key: Option<Name>,
}

struct FileWriter {
    path: PathBuf,
    names: Vec<String>,
    columns: Vec<ColumnBuilder>,
    rows: usize,
    writer: Option<ArrowWriter<File>>,
}

impl CopyFiles {
    /// Begins the files of all entries in a folder.
    pub(super) fn new(mapping: Arc<Mapping>, show_rows: bool, folder: &Path) -> Result<Self, FeedError> {
        let of_entries =
            mapping.entries.iter().enumerate().map(|(number, entry)| EntryFiles::new(number, entry, folder));
        let of_entries = of_entries.collect::<Result<Vec<_>, _>>()?;
        let mapping_file = folder.join("mapping.toml");
        let text = toml::to_string(&load_mapping(&mapping)).map_err(|error| FeedError::invalid(error.to_string()))?;
        std::fs::write(&mapping_file, text).map_err(|error| not_written(&mapping_file, &error))?;
        Ok(Self { mapping, plans: Plans::default(), of_entries, mapping_file, set_aside: Vec::new(), show_rows })
    }

    /// The mapping by which they are loaded.
    pub(super) fn mapping_file(&self) -> &Path {
        &self.mapping_file
    }

    /// Rows that were set aside, as letters of a position.
    pub(super) fn letters(&self, position: &str) -> Vec<Letter> {
        let letter = |(entry, change, why): &(usize, RowChange, String)| {
            let entry = &self.mapping.entries[*entry];
            let row = if let Images::Insert(row) = &change.images { Some(row) } else { None };
            let plan = Plan::new(entry, &change.columns).ok();
            let name = plan.zip(row).and_then(|(plan, row)| plan.name(entry, &change.columns, row));
            Letter {
                position: position.to_owned(),
                committed_unix_ms: 0,
                table: entry.table.clone(),
                label: entry.label().clone(),
                names: name.into_iter().collect(),
                why: Some(why.clone()),
                attempts: 1,
                change: change.clone(),
            }
        };
        self.set_aside.iter().map(letter).collect()
    }

    /// The entry whose rows are in a file that a text names.
    pub(super) fn named_in(&self, text: &str) -> Option<(&Entry, &Path)> {
        let mut entries = self.mapping.entries.iter().zip(&self.of_entries);
        entries.find_map(|(entry, files)| {
            let mut all = std::iter::once(&files.rows).chain(files.unsure.values());
            all.find(|file| text.contains(&*file.path.to_string_lossy())).map(|file| (entry, file.path.as_path()))
        })
    }

    /// Whether an edge may name a vertex that is not there, or a row may be set aside: then a commit follows the load.
    pub(super) fn may_miss(&self) -> bool {
        self.mapping.entries.iter().any(|entry| entry.on_error == OnError::DeadLetter)
            || self.mapping.entries.iter().any(|entry| match &entry.item {
                Item::Vertex(vertex) => vertex.edges.iter().any(|edge| edge.missing.is_some()),
                Item::Edge(edge) => edge.ends.iter().any(|end| end.missing.is_some()),
            })
    }

    /// The edges that may.
    pub(super) fn unsure(&self) -> Vec<UnsureEdges> {
        let all = self.mapping.entries.iter().zip(&self.of_entries);
        all.flat_map(|(entry, files)| unsure_edges(entry, files)).collect()
    }

    /// Writes rows of a table.
    pub(super) fn write(&mut self, columns: &Arc<Columns>, rows: &[Row]) -> Result<(), FeedError> {
        for (number, plan) in self.plans.of(&self.mapping, columns)? {
            let entry = &self.mapping.entries[*number];
            let files = &mut self.of_entries[*number];
            for row in rows {
                match plan.image(entry, columns, row) {
                    Ok(Image::Nothing(_)) => {}
                    Ok(image) => files.write(entry, image)?,
                    Err(BadRow { why })
                        if entry.on_error == OnError::DeadLetter && self.set_aside.len() < SET_ASIDE_MAX =>
                    {
                        let change = RowChange::new(columns.clone(), Images::Insert(row.clone()));
                        self.set_aside.push((*number, change, why));
                    }
                    Err(BadRow { why }) => {
                        let row = shown_row(entry, columns, row, self.show_rows);
                        let message = format!("table {}, row {row}: {why}", columns.table);
                        let hint = "correct the row, or give the column another type, or ignore it";
                        return Err(FeedError::new(FeedErrorKind::Row, message).hint(hint));
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes what is left, and the ends of the files.
    pub(super) fn finish(&mut self) -> Result<(), FeedError> {
        self.of_entries
            .iter_mut()
            .flat_map(|files| std::iter::once(&mut files.rows).chain(files.unsure.values_mut()))
            .try_for_each(FileWriter::finish)
    }
}

impl EntryFiles {
    fn new(number: usize, entry: &Entry, folder: &Path) -> Result<Self, FeedError> {
        let mut unsure = BTreeMap::new();
        let mut columns: Vec<(String, ColumnBuilder)> = Vec::new();
        match &entry.item {
            Item::Vertex(vertex) => {
                columns.push(("k".into(), ColumnBuilder::of_key(vertex.key.key_type)));
                columns.extend(property_columns("p", &entry.properties));
                for (key, edge) in vertex.edges.iter().enumerate() {
                    let target = (format!("t{key}"), ColumnBuilder::of_key(edge.key.key_type));
                    let of_edge = property_columns(&format!("t{key}p"), &edge.properties);
                    match edge.missing {
                        None => columns.extend(std::iter::once(target).chain(of_edge)),
                        Some(_) => {
                            let source = ("k".to_owned(), ColumnBuilder::of_key(vertex.key.key_type));
                            let all = [source, target].into_iter().chain(of_edge).collect();
                            unsure.insert(key, FileWriter::new(folder.join(format!("{number}-{key}.parquet")), all)?);
                        }
                    }
                }
            }
            Item::Edge(edge) => {
                columns.push(("s".into(), ColumnBuilder::of_key(edge.ends[0].key.key_type)));
                columns.push(("t".into(), ColumnBuilder::of_key(edge.ends[1].key.key_type)));
                columns.extend(
                    edge_properties(entry)
                        .into_iter()
                        .enumerate()
                        .map(|(at, (_, kind))| (format!("p{at}"), ColumnBuilder::new(kind))),
                );
            }
        }
        Ok(Self { rows: FileWriter::new(folder.join(format!("{number}.parquet")), columns)?, unsure })
    }

    fn write(&mut self, entry: &Entry, image: Image) -> Result<(), FeedError> {
        match (&entry.item, image) {
            (Item::Vertex(map), Image::Vertex(vertex)) => {
                self.write_vertex(entry, map, &vertex.vertex, &vertex.properties, &vertex.targets)
            }
            (Item::Edge(_), Image::Edge(edge)) => {
                let columns = &mut self.rows.columns;
                columns[0].push_key(Some(&edge.source.key));
                columns[1].push_key(Some(&edge.target.key));
                for (at, (name, _)) in edge_properties(entry).iter().enumerate() {
                    columns[2 + at].push(edge.properties.get(name));
                }
                self.rows.end_row()
            }
            _ => Ok(()),
        }
    }

    fn write_vertex(
        &mut self,
        entry: &Entry,
        map: &VertexMap,
        vertex: &VertexRef,
        properties: &Properties,
        targets: &[(Target, Properties)],
    ) -> Result<(), FeedError> {
        let mut at = 0;
        let columns = &mut self.rows.columns;
        let mut next = || {
            at += 1;
            at - 1
        };
        columns[next()].push_key(Some(&vertex.key));
        for property in &entry.properties {
            columns[next()].push(properties.get(&property.property));
        }
        for (number, (edge, (target, of_edge))) in map.edges.iter().zip(targets).enumerate() {
            let to = if let Target::Vertex(to) = target { Some(&to.key) } else { None };
            match self.unsure.get_mut(&number) {
                None => {
                    columns[next()].push_key(to);
                    for property in &edge.properties {
                        columns[next()].push(of_edge.get(&property.property));
                    }
                }
                Some(file) if to.is_some() => {
                    file.columns[0].push_key(Some(&vertex.key));
                    file.columns[1].push_key(to);
                    for (at, property) in edge.properties.iter().enumerate() {
                        file.columns[2 + at].push(of_edge.get(&property.property));
                    }
                    file.end_row()?;
                }
                Some(_) => {}
            }
        }
        self.rows.end_row()
    }
}

fn property_columns(prefix: &str, properties: &[PropertyMap]) -> Vec<(String, ColumnBuilder)> {
    let column = |(at, property): (usize, &PropertyMap)| (format!("{prefix}{at}"), ColumnBuilder::new(property.kind));
    properties.iter().enumerate().map(column).collect()
}

/// The properties of an edge: those of its columns, and its key of several columns.
fn edge_properties(entry: &Entry) -> Vec<(Name, PropertyType)> {
    let mut all: Vec<_> = entry.properties.iter().map(|property| (property.property.clone(), property.kind)).collect();
    if let Item::Edge(edge) = &entry.item
        && let Some(key) = &edge.key
        && !all.iter().any(|(name, _)| *name == key.property)
    {
        all.push((key.property.clone(), key.kind));
    }
    all
}

impl FileWriter {
    fn new(path: PathBuf, columns: Vec<(String, ColumnBuilder)>) -> Result<Self, FeedError> {
        let (names, columns) = columns.into_iter().unzip();
        let mut file = Self { path, names, columns, rows: 0, writer: None };
        let empty = file.batch()?;
        let settings = WriterProperties::builder()
            .set_compression(Compression::UNCOMPRESSED)
            .set_dictionary_enabled(false)
            .set_statistics_enabled(parquet::file::properties::EnabledStatistics::None)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .build();
        let handle = File::create(&file.path).map_err(|error| not_written(&file.path, &error))?;
        let writer = ArrowWriter::try_new(handle, empty.schema(), Some(settings));
        file.writer = Some(writer.map_err(|error| not_encoded(&file.path, &error))?);
        Ok(file)
    }

    fn batch(&mut self) -> Result<RecordBatch, FeedError> {
        let arrays = self.names.iter().zip(&mut self.columns).map(|(name, column)| (name, column.finish(), true));
        let batch =
            RecordBatch::try_from_iter_with_nullable::<_, &String>(arrays.collect::<Vec<(&String, ArrayRef, bool)>>());
        batch.map_err(|error| FeedError::invalid(format!("could not put rows together: {error}")))
    }

    fn end_row(&mut self) -> Result<(), FeedError> {
        self.rows += 1;
        if self.rows < ROWS {
            return Ok(());
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), FeedError> {
        let batch = self.batch()?;
        self.rows = 0;
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.write(&batch).map_err(|error| not_encoded(&self.path, &error))
    }

    fn finish(&mut self) -> Result<(), FeedError> {
        self.flush()?;
        let Some(writer) = self.writer.take() else { return Ok(()) };
        writer.close().map(drop).map_err(|error| not_encoded(&self.path, &error))
    }
}

fn not_written(path: &Path, error: &std::io::Error) -> FeedError {
    FeedError::unavailable(format!("could not write {}: {}", path.display(), hoplake::system_text(error)))
}

fn not_encoded(path: &Path, error: &parquet::errors::ParquetError) -> FeedError {
    FeedError::unavailable(format!("could not write {}: {error}", path.display()))
}

/// How the files are loaded.
fn load_mapping(mapping: &Mapping) -> Table {
    let text = |text: &str| Toml::String(text.to_owned());
    let mut vertices = Vec::new();
    let mut edges = Vec::new();
    let of_edge =
        |file: String, label: &str, [source, target]: [(&str, &str); 2], properties: Table, is_optional: bool| {
            Toml::Table(Table::from_iter([
                ("file".to_owned(), text(&file)),
                ("label".to_owned(), text(label)),
                ("source".to_owned(), text(source.0)),
                ("source_label".to_owned(), text(source.1)),
                ("target".to_owned(), text(target.0)),
                ("target_label".to_owned(), text(target.1)),
                ("optional".to_owned(), Toml::Boolean(is_optional)),
                ("ignore_others".to_owned(), Toml::Boolean(true)),
                ("properties".to_owned(), Toml::Table(properties)),
            ]))
        };
    for (number, entry) in mapping.entries.iter().enumerate() {
        match &entry.item {
            Item::Vertex(vertex) => {
                let properties = entry.properties.iter().map(|property| (&property.property, property.kind));
                vertices.push(Toml::Table(Table::from_iter([
                    ("file".to_owned(), text(&format!("{number}.parquet"))),
                    ("label".to_owned(), text(&vertex.label)),
                    ("key".to_owned(), text("k")),
                    ("ignore_others".to_owned(), Toml::Boolean(true)),
                    ("properties".to_owned(), Toml::Table(typed("p", properties))),
                ])));
                for (key, edge) in vertex.edges.iter().enumerate() {
                    let here = ("k", vertex.label.as_str());
                    let there = (format!("t{key}"), edge.other.as_str());
                    let there = (there.0.as_str(), there.1);
                    let ends = if edge.is_outgoing { [here, there] } else { [there, here] };
                    let properties =
                        typed(&format!("t{key}p"), edge.properties.iter().map(|it| (&it.property, it.kind)));
                    let (file, is_optional) = match edge.missing {
                        None => (format!("{number}.parquet"), true),
                        Some(_) => (format!("{number}-{key}.parquet"), false),
                    };
                    edges.push(of_edge(file, &edge.label, ends, properties, is_optional));
                }
            }
            Item::Edge(edge) => {
                let ends = [("s", edge.ends[0].label.as_str()), ("t", edge.ends[1].label.as_str())];
                let properties = edge_properties(entry);
                let properties = typed("p", properties.iter().map(|(name, kind)| (name, *kind)));
                edges.push(of_edge(format!("{number}.parquet"), &edge.label, ends, properties, false));
            }
        }
    }
    Table::from_iter([("vertices".to_owned(), Toml::Array(vertices)), ("edges".to_owned(), Toml::Array(edges))])
}

/// Properties by their numbered columns.
fn typed<'a>(prefix: &str, properties: impl Iterator<Item = (&'a Name, PropertyType)>) -> Table {
    let property = |(at, (name, kind)): (usize, (&Name, PropertyType))| {
        let column = Toml::String(format!("{prefix}{at}"));
        let value =
            Table::from_iter([("column".to_owned(), column), ("type".to_owned(), Toml::String(kind.to_string()))]);
        (name.to_string(), Toml::Table(value))
    };
    properties.enumerate().map(property).collect()
}

/// The edges of an entry that may name vertices that are not there.
fn unsure_edges(entry: &Entry, files: &EntryFiles) -> Vec<UnsureEdges> {
    match &entry.item {
        Item::Vertex(vertex) => {
            let of = |(key, edge): (usize, &ForeignKeyMap)| {
                let file = files.unsure.get(&key)?;
                let (here, there) =
                    ((vertex.label.clone(), vertex.key.key_type), (edge.other.clone(), edge.key.key_type));
                Some(UnsureEdges {
                    path: file.path.clone(),
                    label: edge.label.clone(),
                    ends: if edge.is_outgoing { [here, there] } else { [there, here] },
                    missing: if edge.is_outgoing { [None, edge.missing] } else { [edge.missing, None] },
                    owner: if edge.is_outgoing { Owner::Source } else { Owner::Target },
                    properties: edge.properties.iter().map(|property| property.property.clone()).collect(),
                    key: None,
                })
            };
            vertex.edges.iter().enumerate().filter_map(of).collect()
        }
        Item::Edge(edge) if edge.ends.iter().any(|end| end.missing.is_some()) => {
            let end = |at: usize| (edge.ends[at].label.clone(), edge.ends[at].key.key_type);
            vec![UnsureEdges {
                path: files.rows.path.clone(),
                label: edge.label.clone(),
                ends: [end(0), end(1)],
                missing: [edge.ends[0].missing, edge.ends[1].missing],
                owner: Owner::Row,
                properties: edge_properties(entry).into_iter().map(|(name, _)| name).collect(),
                key: edge.key.as_ref().map(|key| key.property.clone()),
            }]
        }
        Item::Edge(_) => Vec::new(),
    }
}
