//! LDBC SNB as the Hadoop generator writes it (CsvBasic): a file for each vertex label, each edge type
//! and each list property, `|` between fields, no quoting, in `static/` and `dynamic/` or side by side.
//!
//! A label without a file is implied by its edges: by the file of its creators if there is one, because
//! every message has exactly one creator, else by all edges that end in it. Update streams are left out.

use hoplake_format::{KeyType, PropertyType, ScalarType};

use super::{
    column::Parse,
    files::SourceFile,
    ldbc,
    plan::{FieldCount, FileColumn, Tables, TextPlan, end_of, reject_twice},
    records::{TextFormat, header},
    text::TextInput,
};
use crate::{Dataset, IngestError, Input};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Vertices(&'static str),
    Edges(&'static str, &'static str, &'static str),
    List(&'static str),
}

/// Whether a file's name belongs to this layout.
pub(crate) fn recognises(file: &SourceFile) -> bool {
    content(file).is_some()
}

/// The content of a file of this name.
fn content(file: &SourceFile) -> Option<Content> {
    if !matches!(file.extension(), "csv") {
        return None;
    }
    let (rest, part) = file.stem().rsplit_once('_')?;
    let (name, segment) = rest.rsplit_once('_')?;
    // `person_0_0.csv`: the generator numbers the files of its workers.
    if !part.parse::<u32>().is_ok_and(|_| segment.parse::<u32>().is_ok()) {
        return None;
    }
    match name {
        "person_email_emailaddress" => Some(Content::List("email")),
        "person_speaks_language" => Some(Content::List("speaks")),
        _ => ldbc::label(name)
            .map(Content::Vertices)
            .or_else(|| ldbc::edge(name).map(|(source, edge, target)| Content::Edges(source, edge, target))),
    }
}

struct Table {
    file: SourceFile,
    content: Content,
    header: Vec<String>,
    table: usize,
}

/// Reads the headers and plans the scans.
pub(crate) fn open(files: &[SourceFile]) -> Result<Dataset, IngestError> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.extension() == "csv" && !file.name().starts_with("updateStream")) {
        let content = content(file).ok_or_else(|| {
            file.layout("is among files of LDBC SNB CsvBasic, but is not one: <vertex>_0_0.csv or <source>_<edge>_<target>_0_0.csv is expected")
        })?;
        // A file without a single line still shows that its label exists.
        let header = header(file, TextFormat::ldbc())?.unwrap_or_default();
        found.push(Table { file: file.clone(), content, header, table: 0 });
    }
    let mut tables = Tables::default();
    name_labels(&mut tables, &found);
    for part in &mut found {
        part.name_table(&mut tables)?;
    }
    let mut inputs: Vec<Box<dyn Input>> = Vec::new();
    for part in found.iter().filter(|part| !part.header.is_empty()) {
        inputs.push(Box::new(TextInput::new(&part.file, part.plan(&tables, &found)?)));
    }
    Ok(Dataset { vertex_tables: tables.vertices, edge_tables: tables.edges, inputs })
}

fn name_labels(tables: &mut Tables, found: &[Table]) {
    for label in ldbc::LABELS {
        let named = |content: Content| match content {
            Content::Vertices(vertex) => vertex == label,
            Content::Edges(source, _, target) => source == label || target == label,
            Content::List(_) => label == "Person",
        };
        if found.iter().any(|part| named(part.content)) {
            let table = tables.vertex(label, label, KeyType::Int64);
            // The order of `LABELS` numbers the labels, not the order of the files.
            tables.vertices[table].implied = !found.iter().any(|part| part.content == Content::Vertices(label));
        }
    }
}

/// Whether the ids of an implied label are taken from these edges.
fn implies(found: &[Table], label: &str, content: Content) -> bool {
    // Each message is in that file exactly once; likes and replies would name it many times, or never.
    let creators = |content: Content| matches!(content, Content::Edges(source, "hasCreator", _) if source == label);
    creators(content) || !found.iter().any(|part| creators(part.content))
}

impl Table {
    /// Finds or makes the table this file belongs to, with its properties.
    fn name_table(&mut self, tables: &mut Tables) -> Result<(), IngestError> {
        match self.content {
            Content::Vertices(label) => {
                self.table = tables.vertex(label, label, KeyType::Int64);
                for column in self.properties()? {
                    tables.vertex_property(self.table, &self.file, &column)?;
                }
            }
            Content::Edges(source, edge, target) => {
                self.table = tables.edge(edge, end_of(source), end_of(target));
                for column in self.properties()? {
                    tables.edge_property(self.table, &self.file, &column)?;
                }
            }
            Content::List(property) => {
                self.table = tables.vertex("Person", "Person", KeyType::Int64);
                let list = Parse::new(PropertyType::List(ScalarType::String));
                tables.vertex_property(self.table, &self.file, &FileColumn::new(1, property, list))?;
            }
        }
        Ok(())
    }

    /// The columns that are not keys.
    fn properties(&self) -> Result<Vec<FileColumn>, IngestError> {
        let is_key = |position: usize, name: &str| match self.content {
            Content::Vertices(_) => name == "id",
            // By position: both ends of `person_knows_person` have the same name.
            Content::Edges(..) | Content::List(_) => position < 2,
        };
        let columns = self.header.iter().enumerate().filter(|(position, name)| !is_key(*position, name));
        let columns: Vec<_> =
            columns.map(|(position, name)| FileColumn::new(position, name, ldbc::parse(name))).collect();
        reject_twice(&self.file, &columns)?;
        Ok(columns)
    }

    fn key(&self, position: usize) -> Result<FileColumn, IngestError> {
        let header = self.header.get(position).ok_or_else(|| {
            self.file.layout(format!("has {} columns in its first line; two keys are needed", self.header.len()))
        })?;
        Ok(FileColumn::new(position, header, Parse::key(KeyType::Int64)))
    }

    fn plan(&self, tables: &Tables, found: &[Table]) -> Result<TextPlan, IngestError> {
        let mut feeds = Vec::new();
        match self.content {
            Content::Vertices(_) => {
                let key = self.key(ldbc::position_of(&self.file, &self.header, "id")?)?;
                feeds.push(tables.vertex_feed(self.table, &key, &self.properties()?));
            }
            Content::Edges(source, _, target) => {
                let ends = [(source, self.key(0)?), (target, self.key(1)?)];
                feeds.push(tables.edge_feed(self.table, &ends[0].1, &ends[1].1, &self.properties()?));
                for (label, key) in &ends {
                    let table = tables.vertex_named(label).filter(|&table| tables.vertices[table].implied);
                    if let Some(table) = table.filter(|_| implies(found, label, self.content)) {
                        feeds.push(tables.vertex_feed(table, key, &[]));
                    }
                }
            }
            Content::List(property) => {
                let properties = &tables.vertices[self.table].properties;
                let position = properties.iter().position(|known| known.name == property);
                let position = position.expect("the property was added with the table");
                let value = FileColumn::new(1, property, Parse::new(PropertyType::Scalar(ScalarType::String)));
                feeds.push(tables.list_feed(self.table, position, &self.key(0)?, &value));
            }
        }
        let fields = FieldCount::Exactly(self.header.len());
        Ok(TextPlan { format: TextFormat::ldbc(), header: true, fields, feeds, by_label: None })
    }
}
