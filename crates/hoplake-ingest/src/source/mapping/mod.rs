//! Any CSV or Parquet file, by a TOML file that assigns their columns.
//!
//! ```toml
//! # Vertex labels that edges name and no [[vertices]] entry declares are an error, unless:
//! # imply_labels = true
//!
//! # How CSV files are written (these are the defaults). An entry may have a [vertices.csv] or
//! # [edges.csv] of its own.
//! [csv]
//! delimiter = ","          # "\t", "|", ";", or " " for any white space
//! quote = true             # fields may stand in double quotes
//! header = true            # the first line names the columns; else:
//! # columns = ["id", "name"]
//! lists = ";"              # between the values of a list
//! # list_escape = "\\"     # before a separator that is part of a value
//! comments = false         # whether lines that begin with # or % are left out
//! empty_text = false       # whether "" is empty text, and only a field without quotes may be absent
//!
//! [[vertices]]
//! file = "people.csv"      # relative to this file, or to a folder of the command line; .gz and .zst too
//! label = "Person"
//! key = "person_id"        # the column of the key
//! key_type = "int64"       # or "string", the default for CSV; Parquet has types
//! # key_prefix = "p:"      # in text files, of p:933 the key is 933; source_prefix and target_prefix of edges
//! ignore = ["internal"]    # columns that do not become properties (ignore_others = true: all others)
//!
//! # All other columns are properties: with their type in Parquet, as text in CSV unless typed here.
//! [vertices.properties]
//! age = "int64"            # bool, int64, float64, string, date, timestamp,
//! joined = "timestamp_ms"  # timestamp_s, timestamp_ms, timestamp_us: numbers since 1970
//! nicknames = { column = "nicks", type = "list<string>" }
//!
//! [[vertices]]             # without a file: implied by the edges that name it
//! label = "City"
//! key_type = "string"
//!
//! [[edges]]
//! file = "knows.parquet"
//! label = "knows"
//! source = "from"          # the column of the key where the edge starts, and the label of that vertex
//! source_label = "Person"
//! target = "to"
//! target_label = "Person"
//! [edges.properties]
//! since = "date"
//!
//! [[edges]]                # a foreign key: the same file as the vertices
//! file = "people.csv"
//! label = "livesIn"
//! source = "person_id"
//! source_label = "Person"
//! target = "city"
//! target_label = "City"
//! optional = true          # a row with an empty end is not an edge
//! ```

mod spec;

use std::{
    fs,
    path::{Path, PathBuf},
};

use hoplake_format::{KeyType, PropertyType, ScalarType};

pub use self::spec::{ColumnSpec, CsvSpec, EdgeSpec, KeySpec, Mapping, PropertySpec, TypeSpec, VertexSpec};
use super::{
    SourceOptions,
    column::{ListForm, Parse},
    files::SourceFile,
    footprint::{self, Footprint},
    foreign,
    limits::ReadLimits,
    parquet::{self, ParquetColumn, ParquetFile},
    plan::{FeedPlan, FieldCount, FileColumn, Tables, TextPlan, occurs_twice, reject_twice},
    records::{TextFormat, header},
    text::TextInput,
};
use crate::{Dataset, Endpoint, IngestError, Input};

/// How a mapping begins, for the message that one is needed.
pub(crate) const EXAMPLE: &str = r#"[[vertices]]
file = "people.csv"
label = "Person"
key = "id"

[[edges]]
file = "knows.csv"
label = "knows"
source = "from"
source_label = "Person"
target = "to"
target_label = "Person"
"#;

/// A file that the mapping names, with its entries.
struct Mapped<'a> {
    file: SourceFile,
    csv: CsvSpec,
    parquet: Option<ParquetFile>,
    /// The columns, with their types as properties; in CSV, all are text.
    columns: Vec<(String, Option<PropertyType>)>,
    key_types: Vec<Option<KeyType>>,
    /// The columns with their types, in Parquet.
    typed: Vec<ParquetColumn>,
    vertices: Vec<&'a VertexSpec>,
    edges: Vec<&'a EdgeSpec>,
}

/// Reads the mapping and the headers of its files.
pub(crate) fn open(path: &Path, from: &[PathBuf], options: &SourceOptions) -> Result<Dataset, IngestError> {
    let failed = |why: String| IngestError::Layout { path: path.to_owned(), why };
    let (path, place) = options.copies.get(path).unwrap_or((path, path));
    let mapping = read(path, place, &options.limits)?;
    if mapping.vertices.is_empty() && mapping.edges.is_empty() {
        return Err(failed(format!("has no [[vertices]] and no [[edges]]; a mapping begins like this:\n\n{EXAMPLE}")));
    }
    let files = mapped_files(&mapping, path, from, options)?;
    let mut footprint = Footprint::default();
    files.iter().for_each(|file| file.count(&mut footprint));
    footprint.check(&options.limits)?;
    let mut tables = Tables::default();
    for spec in &mapping.vertices {
        // Before the edges: the table of an edge refers to the id spaces of both labels.
        name_vertices(spec, &files, &mut tables).map_err(failed)?;
    }
    let undeclared: Vec<_> =
        files.iter().flat_map(Mapped::labels_of_ends).filter(|it| tables.vertex_named(it).is_none()).collect();
    if !mapping.imply_labels && !undeclared.is_empty() {
        return Err(failed(undeclared_labels(undeclared)));
    }
    for file in &files {
        file.imply_labels(&mut tables);
    }
    for file in &files {
        file.name_properties(&mut tables)?;
    }
    let mut inputs: Vec<Box<dyn Input>> = Vec::new();
    for file in files {
        inputs.extend(file.inputs(&mut tables)?);
    }
    // As for other layouts: the order of inputs decides which of several rows with one key is kept.
    inputs.sort_by(|one, two| one.path().cmp(two.path()));
    Ok(Dataset { vertex_tables: tables.vertices, edge_tables: tables.edges, inputs })
}

/// Reads the mapping that is called `path`, at a place.
fn read(path: &Path, place: &Path, limits: &ReadLimits) -> Result<Mapping, IngestError> {
    let bytes = fs::metadata(place).map_err(|source| IngestError::Read { path: path.to_owned(), source })?.len();
    footprint::check_mapping(bytes, limits)?;
    let text = fs::read_to_string(place).map_err(|source| IngestError::Read { path: path.to_owned(), source })?;
    toml::from_str(&text).map_err(|error| IngestError::Layout { path: path.to_owned(), why: error.to_string() })
}

/// The files that a mapping names, as it names them. It is called `path`, and is at `place`.
///
/// # Errors
/// [`IngestError::Read`] if there is none, [`IngestError::Layout`] if it is not a mapping; that the limits have no memory for it.
pub fn files(path: &Path, place: &Path, limits: &ReadLimits) -> Result<Vec<PathBuf>, IngestError> {
    let mapping = read(path, place, limits)?;
    let of_vertices = mapping.vertices.into_iter().filter_map(|entry| entry.file);
    Ok(of_vertices.chain(mapping.edges.into_iter().map(|entry| entry.file)).collect())
}

fn undeclared_labels(mut labels: Vec<&String>) -> String {
    labels.sort_unstable();
    labels.dedup();
    let labels: Vec<_> = labels.into_iter().map(|label| format!("{label:?}")).collect();
    format!(
        "has edges of vertices {}, which no [[vertices]] entry declares; add an entry with label and key_type alone for vertices \
         that only edges name, or set imply_labels = true at the top",
        labels.join(", ")
    )
}

/// The file at a path of the mapping.
fn find(named: &Path, mapping: &Path, from: &[PathBuf], options: &SourceOptions) -> Result<SourceFile, IngestError> {
    let SourceOptions { copies, limits, .. } = options;
    if let Some((name, copy)) = copies.get(named) {
        return SourceFile::copied(name, copy, *limits);
    }
    let beside = mapping.parent().unwrap_or(Path::new(""));
    let folders = std::iter::once(beside).chain(from.iter().map(PathBuf::as_path));
    let given = from.iter().filter(|path| path.ends_with(named)).cloned();
    let mut candidates = folders.map(|folder| folder.join(named)).chain(given);
    let found = candidates.find(|path| copies.get(path).is_some() || path.is_file());
    let path = found.ok_or_else(|| IngestError::Layout {
        path: mapping.to_owned(),
        why: format!(
            "names the file {}, which is neither next to the mapping nor in the given folders",
            named.display()
        ),
    })?;
    match copies.get(&path) {
        Some((name, copy)) => SourceFile::copied(name, copy, *limits),
        None => SourceFile::at(path, *limits),
    }
}

fn mapped_files<'a>(
    mapping: &'a Mapping,
    path: &Path,
    from: &[PathBuf],
    options: &SourceOptions,
) -> Result<Vec<Mapped<'a>>, IngestError> {
    let mut files: Vec<Mapped<'a>> = Vec::new();
    let at = |named: &Path, csv: Option<&CsvSpec>, files: &mut Vec<Mapped<'a>>| -> Result<usize, IngestError> {
        let file = find(named, path, from, options)?;
        if let Some(position) = files.iter().position(|other| other.file == file) {
            // A file of several entries is one input, so that a row is good or bad for all of them; it is read in one way.
            if csv.is_some_and(|csv| *csv != files[position].csv) {
                return Err(file.layout("has two entries in the mapping that differ in how its CSV is written"));
            }
            return Ok(position);
        }
        files.push(Mapped::open(file, csv.unwrap_or(&mapping.csv).clone())?);
        Ok(files.len() - 1)
    };
    for spec in &mapping.vertices {
        if let Some(named) = &spec.file {
            let position = at(named, spec.csv.as_ref(), &mut files)?;
            files[position].vertices.push(spec);
        }
    }
    for spec in &mapping.edges {
        let position = at(&spec.file, spec.csv.as_ref(), &mut files)?;
        files[position].edges.push(spec);
    }
    Ok(files)
}

/// Makes the table of a vertex entry.
fn name_vertices(spec: &VertexSpec, files: &[Mapped<'_>], tables: &mut Tables) -> Result<(), String> {
    // By identity: two entries of one label, for two files, may have the same content otherwise.
    let file = files.iter().find(|file| file.vertices.iter().any(|other| std::ptr::eq(*other, spec)));
    let of_column = match (file, &spec.key) {
        (Some(file), Some(key)) => file.key_type(key).map_err(|error| error.to_string())?,
        (Some(_), None) => return Err(format!("vertices {:?} have a file and no key", spec.label)),
        (None, _) => files.iter().find_map(|file| file.key_type_of_ends(&spec.label)),
    };
    let key_type = spec.key_type.map(KeyType::from).or(of_column).unwrap_or(KeyType::String);
    let space = spec.id_space.as_deref().unwrap_or(&spec.label);
    let made = tables.vertex_named(&spec.label).is_none();
    let table = tables.vertex(&spec.label, space, key_type);
    let table = &mut tables.vertices[table];
    if (table.id_space.as_str(), table.key_type) != (space, key_type) {
        return Err(format!("vertices {:?} have two entries that differ in key_type or id_space", spec.label));
    }
    // A label with a file in any of its entries is listed: an entry without one then only repeats the label.
    table.implied = file.is_none() && (made || table.implied);
    // A key table has keys of one type, whichever labels share it.
    if tables.vertices.iter().any(|table| table.id_space == space && table.key_type != key_type) {
        return Err(format!("the labels of id space {space:?} have keys of two types; give them one key_type"));
    }
    Ok(())
}

impl Mapped<'_> {
    fn open(file: SourceFile, csv: CsvSpec) -> Result<Self, IngestError> {
        let mut mapped = Self {
            file,
            csv,
            parquet: None,
            columns: vec![],
            key_types: vec![],
            typed: vec![],
            vertices: vec![],
            edges: vec![],
        };
        if mapped.file.extension() == "parquet" {
            let parquet = ParquetFile::open(&mapped.file)?;
            for column in parquet.columns() {
                mapped.columns.push((column.name.clone(), column.property));
                mapped.key_types.push(column.key);
                mapped.typed.push(column);
            }
            mapped.parquet = Some(parquet);
            return Ok(mapped);
        }
        if mapped.csv.comments {
            foreign::reject(&mapped.file)?;
        }
        let names = match &mapped.csv.columns {
            Some(names) => names.clone(),
            None if mapped.csv.header => {
                let first = header(&mapped.file, mapped.format()?)?;
                first.ok_or_else(|| mapped.file.layout("is empty where a header is expected"))?
            }
            None => return Err(mapped.file.layout("has no header; name its columns: columns = [\"…\", …]")),
        };
        let text = Some(PropertyType::Scalar(ScalarType::String));
        mapped.columns = names.into_iter().map(|name| (name, text)).collect();
        mapped.key_types = vec![None; mapped.columns.len()];
        Ok(mapped)
    }

    /// Adds the tables of this file, with the columns that may become theirs.
    fn count(&self, footprint: &mut Footprint) {
        let columns = |typed: usize, only_typed: bool| if only_typed { typed } else { self.columns.len() };
        for spec in &self.vertices {
            footprint.add(1 + columns(spec.properties.len(), spec.ignore_others));
        }
        for spec in &self.edges {
            let ignores = spec.ignore_others.unwrap_or(!self.vertices.is_empty());
            footprint.add(2 + columns(spec.properties.len(), ignores));
        }
    }

    fn format(&self) -> Result<TextFormat, IngestError> {
        let delimiter = self.byte(self.csv.delimiter, "delimiter")?;
        // A space stands for any white space, so there is none to keep around a field.
        let trim = delimiter == b' ';
        let CsvSpec { quote: quoting, comments, empty_text, .. } = self.csv;
        Ok(TextFormat { delimiter, quoting, comments, trim, empty_text })
    }

    fn list_form(&self) -> Result<ListForm, IngestError> {
        let plain = ListForm::separated(self.byte(self.csv.lists, "separator of lists")?);
        let escape = self.csv.list_escape.map(|escape| self.byte(escape, "list_escape")).transpose()?;
        // An array of JSON says by itself which items are empty.
        let json = plain.json && escape.is_none();
        Ok(ListForm { escape, json, empty_items: self.csv.empty_text && !json, ..plain })
    }

    fn byte(&self, character: char, what: &str) -> Result<u8, IngestError> {
        u8::try_from(character)
            .ok()
            .filter(u8::is_ascii)
            .ok_or_else(|| self.file.layout(format!("has {character:?} as its {what}; it must be an ASCII character")))
    }

    /// The columns of a name: there is one, or the file has it twice.
    fn positions(&self, name: &str) -> Result<Vec<usize>, IngestError> {
        let named = |position: &usize| self.columns[*position].0 == name;
        let positions: Vec<usize> = (0..self.columns.len()).filter(named).collect();
        if positions.is_empty() {
            let names: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
            let has = names.join(", ");
            return Err(self.file.layout(format!("has no column {name:?}, which the mapping names; it has {has}")));
        }
        Ok(positions)
    }

    /// The one column of a name.
    fn position(&self, name: &str) -> Result<usize, IngestError> {
        match self.positions(name)?[..] {
            [position] => Ok(position),
            _ => Err(self.file.layout(occurs_twice(name))),
        }
    }

    /// The type of a key column; `None` for text, where it is open.
    fn key_type(&self, column: &str) -> Result<Option<KeyType>, IngestError> {
        let position = self.position(column)?;
        match self.key_types[position] {
            None if self.parquet.is_some() => {
                let column = self.typed[position].shown();
                Err(self.file.layout(format!("column {column} cannot be a key, which is an integer, text or a UUID")))
            }
            key_type => Ok(key_type),
        }
    }

    /// The type of the keys by which edges of this file name a label.
    fn key_type_of_ends(&self, label: &str) -> Option<KeyType> {
        let ends =
            self.edges.iter().flat_map(|edge| [(&edge.source_label, &edge.source), (&edge.target_label, &edge.target)]);
        ends.filter(|(of, _)| *of == label).find_map(|(_, column)| self.key_type(column).ok().flatten())
    }

    /// The labels that edges of this file name.
    fn labels_of_ends(&self) -> impl Iterator<Item = &String> {
        self.edges.iter().flat_map(|edge| [&edge.source_label, &edge.target_label])
    }

    /// Labels that only edges name are implied by them.
    fn imply_labels(&self, tables: &mut Tables) {
        for label in self.labels_of_ends() {
            if tables.vertex_named(label).is_none() {
                let key_type = self.key_type_of_ends(label).unwrap_or(KeyType::String);
                let table = tables.vertex(label, label, key_type);
                tables.vertices[table].implied = true;
            }
        }
    }

    fn name_properties(&self, tables: &mut Tables) -> Result<(), IngestError> {
        for spec in &self.vertices {
            let table = tables.vertex_named(&spec.label).expect("all vertex entries have their tables");
            for column in self.vertex_columns(spec)? {
                tables.vertex_property(table, &self.file, &column)?;
            }
        }
        for spec in &self.edges {
            let table = edge_table(spec, tables);
            for column in self.edge_columns(spec)? {
                tables.edge_property(table, &self.file, &column)?;
            }
        }
        Ok(())
    }

    fn vertex_columns(&self, spec: &VertexSpec) -> Result<Vec<FileColumn>, IngestError> {
        let keys: Vec<&String> = spec.key.iter().collect();
        self.properties(&spec.properties, &keys, &spec.ignore, spec.ignore_others)
    }

    fn edge_columns(&self, spec: &EdgeSpec) -> Result<Vec<FileColumn>, IngestError> {
        // In a file of vertices the other columns belong to the vertex; an edge by foreign key would repeat them.
        let ignore_others = spec.ignore_others.unwrap_or(!self.vertices.is_empty());
        self.properties(&spec.properties, &[&spec.source, &spec.target], &spec.ignore, ignore_others)
    }

    fn properties(
        &self,
        typed: &std::collections::BTreeMap<String, PropertySpec>,
        keys: &[&String],
        ignore: &[String],
        ignore_others: bool,
    ) -> Result<Vec<FileColumn>, IngestError> {
        let list = self.list_form()?;
        let mut columns = Vec::new();
        for (property, spec) in typed {
            let (name, kind) = match spec {
                PropertySpec::Type(kind) => (property, Some(kind)),
                PropertySpec::Column(column) => (&column.column, column.kind.as_ref()),
            };
            let position = self.position(name)?;
            let parse = kind.map_or_else(|| self.parse_of(position), |kind| kind.0);
            columns.push(FileColumn { property: property.clone(), ..FileColumn::new(position, name, parse) });
        }
        for name in ignore {
            // A misspelled name is an error: otherwise the column that was meant would become a property.
            self.positions(name)?;
        }
        let named: Vec<usize> = columns.iter().map(|column| column.position).collect();
        for (position, (name, _)) in self.columns.iter().enumerate().filter(|_| !ignore_others) {
            if !named.contains(&position) && !keys.contains(&name) && !ignore.contains(name) {
                columns.push(FileColumn::new(position, name, self.parse_of(position)));
            }
        }
        // Typed columns came by name, the others by position. Properties are numbered in the order of the file.
        columns.sort_by_key(|column| column.position);
        self.reject_types(&columns)?;
        columns.iter_mut().for_each(|column| column.parse.list = list);
        reject_twice(&self.file, &columns)?;
        Ok(columns)
    }

    fn parse_of(&self, position: usize) -> Parse {
        Parse::new(self.columns[position].1.unwrap_or(PropertyType::Scalar(ScalarType::String)))
    }

    /// Rejects columns of Parquet that cannot be cast to their types, all at once.
    fn reject_types(&self, columns: &[FileColumn]) -> Result<(), IngestError> {
        let typed = || columns.iter().filter_map(|column| Some((self.typed.get(column.position)?, column.parse)));
        if let Some(why) = parquet::rejected(typed().map(|(column, _)| column)) {
            return Err(self.file.layout(format!("{why}; name them under ignore")));
        }
        let other: Vec<_> = typed().filter(|(column, parse)| !column.can_be(*parse)).collect();
        if other.is_empty() {
            return Ok(());
        }
        let told: Vec<_> =
            other.iter().map(|(column, parse)| format!("{} as {}", column.shown(), parse.kind)).collect();
        Err(self.file.layout(format!("columns cannot have the types of the mapping: {}", told.join(", "))))
    }

    fn key(&self, column: &str, prefix: Option<&String>) -> Result<FileColumn, IngestError> {
        // For its error only: the feed gives keys the type of their id space.
        self.key_type(column)?;
        if prefix.is_some() && self.parquet.is_some() {
            return Err(self.file.layout("has a prefix of keys in the mapping; only text files may"));
        }
        let key = FileColumn::new(self.position(column)?, column, Parse::key(KeyType::String));
        Ok(FileColumn { prefix: prefix.map(|prefix| prefix.as_str().into()), ..key })
    }

    fn inputs(self, tables: &mut Tables) -> Result<Vec<Box<dyn Input>>, IngestError> {
        let mut feeds: Vec<FeedPlan> = Vec::new();
        for spec in &self.vertices {
            let table = tables.vertex_named(&spec.label).expect("all vertex entries have their tables");
            let key = self.key(spec.key.as_deref().unwrap_or_default(), spec.key_prefix.as_ref())?;
            feeds.push(tables.vertex_feed(table, &key, &self.vertex_columns(spec)?));
        }
        for spec in &self.edges {
            let table = edge_table(spec, tables);
            let source = self.key(&spec.source, spec.source_prefix.as_ref())?;
            let target = self.key(&spec.target, spec.target_prefix.as_ref())?;
            let edges = tables.edge_feed(table, &source, &target, &self.edge_columns(spec)?);
            feeds.push(if spec.optional { edges.optional() } else { edges });
            for (label, key) in [(&spec.source_label, &source), (&spec.target_label, &target)] {
                let table = tables.vertex_named(label).filter(|&table| tables.vertices[table].implied);
                let implied = table.map(|table| tables.vertex_feed(table, key, &[]));
                feeds.extend(implied.map(|feed| if spec.optional { feed.optional() } else { feed }));
            }
        }
        if let Some(parquet) = &self.parquet {
            return Ok(parquet.inputs(feeds));
        }
        let format = self.format()?;
        let fields = FieldCount::Exactly(self.columns.len());
        let plan = TextPlan { format, header: self.csv.header, fields, feeds, by_label: None };
        Ok(vec![Box::new(TextInput::new(&self.file, plan))])
    }
}

fn edge_table(spec: &EdgeSpec, tables: &mut Tables) -> usize {
    let end = |label: &str| {
        let table = tables.vertex_named(label);
        let space = table.map_or(label, |table| tables.vertices[table].id_space.as_str());
        Endpoint { id_space: space.to_owned(), label: Some(label.to_owned()) }
    };
    let source = end(&spec.source_label);
    let target = end(&spec.target_label);
    tables.edge(&spec.label, source, target)
}
