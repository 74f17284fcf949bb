//! LDBC SNB as the Spark generator writes it for the BI workload (composite-merged-fk): folders
//! `initial_snapshot/{static,dynamic}/<Name>/part-*.csv`, `|` between fields, edges to one target kept as
//! foreign keys in the vertex's row, lists in one field separated by `;`.
//!
//! Foreign keys become the edges that CsvBasic has in files of their own, without properties; an empty
//! one is not an edge. Of a folder that holds `initial_snapshot`, only that is read: inserts and deletes are
//! commits.

use std::path::Path;

use hoplake_format::{KeyType, PropertyType, ScalarType};

use super::{
    column::Parse,
    files::SourceFile,
    ldbc,
    plan::{FeedPlan, FieldCount, FileColumn, Tables, TextPlan, end_of, occurs_twice, reject_twice},
    records::{TextFormat, header},
    text::TextInput,
};
use crate::{Dataset, IngestError, Input};

/// A foreign key: the vertex that has it, its column, the edge label and the vertex it names.
type ForeignKey = (&'static str, &'static str, &'static str, &'static str);

const FOREIGN_KEYS: [ForeignKey; 14] = [
    ("Comment", "CreatorPersonId", "hasCreator", "Person"),
    ("Comment", "LocationCountryId", "isLocatedIn", "Place"),
    ("Comment", "ParentPostId", "replyOf", "Post"),
    ("Comment", "ParentCommentId", "replyOf", "Comment"),
    ("Forum", "ModeratorPersonId", "hasModerator", "Person"),
    ("Person", "LocationCityId", "isLocatedIn", "Place"),
    ("Post", "CreatorPersonId", "hasCreator", "Person"),
    ("Post", CONTAINER, "containerOf", "Forum"),
    ("Post", "LocationCountryId", "isLocatedIn", "Place"),
    ("Organisation", "LocationPlaceId", "isLocatedIn", "Place"),
    ("Place", "PartOfPlaceId", "isPartOf", "Place"),
    ("Tag", "TypeTagClassId", "hasType", "TagClass"),
    ("TagClass", "SubclassOfTagClassId", "isSubclassOf", "TagClass"),
    ("Person", "LocationPlaceId", "isLocatedIn", "Place"),
];
/// The one foreign key whose edge runs towards the row that has it.
const CONTAINER: &str = "ContainerForumId";

#[derive(Debug, Clone, Copy)]
enum Content {
    Vertices(&'static str),
    Edges(&'static str, &'static str, &'static str),
}

/// Whether a file's folder and name belong to this layout.
pub(crate) fn recognises(file: &SourceFile) -> bool {
    content(file).is_some()
}

fn content(file: &SourceFile) -> Option<Content> {
    let folder = file.path.parent().and_then(Path::file_name)?.to_str()?;
    if file.extension() != "csv" || !file.name().starts_with("part-") {
        return None;
    }
    let vertices = ldbc::LABELS.into_iter().find(|&label| label == folder).map(Content::Vertices);
    vertices.or_else(|| ldbc::edge(folder).map(|(source, edge, target)| Content::Edges(source, edge, target)))
}

fn in_snapshot(file: &SourceFile) -> bool {
    file.path.components().any(|part| part.as_os_str() == "initial_snapshot")
}

/// A part file of an LDBC SNB BI table, with its header.
struct PartFile {
    file: SourceFile,
    content: Content,
    header: Vec<String>,
}

/// Reads the headers and plans the scans.
pub(crate) fn open(files: &[SourceFile]) -> Result<Dataset, IngestError> {
    // With a snapshot, the files outside of it are inserts and deletes; a folder that was given below it has none.
    let whole = files.iter().any(in_snapshot);
    let mut parts = Vec::new();
    for file in files.iter().filter(|file| !whole || in_snapshot(file)) {
        let Some(content) = content(file) else {
            if file.extension() == "csv" {
                return Err(file.layout("is among files of LDBC SNB BI, but is not one: <Name>/part-….csv is expected"));
            }
            continue;
        };
        let header = header(file, TextFormat::ldbc())?.unwrap_or_default();
        parts.push(PartFile { file: file.clone(), content, header });
    }
    let mut tables = Tables::default();
    // First all labels, in the order of `LABELS`, and then edges: an edge table refers to the id spaces of both ends.
    name_labels(&mut tables, &parts);
    for part in &parts {
        // All properties before any feed: the schema of a feed is that of its table.
        part.name_tables(&mut tables)?;
    }
    let mut inputs: Vec<Box<dyn Input>> = Vec::new();
    for part in parts.iter().filter(|part| !part.header.is_empty()) {
        let feeds = part.feeds(&mut tables)?;
        let fields = FieldCount::Exactly(part.header.len());
        let plan = TextPlan { format: TextFormat::ldbc(), header: true, fields, feeds, by_label: None };
        inputs.push(Box::new(TextInput::new(&part.file, plan)));
    }
    Ok(Dataset { vertex_tables: tables.vertices, edge_tables: tables.edges, inputs })
}

/// Makes the tables of all labels that rows or edges name; those without rows are implied by edges.
fn name_labels(tables: &mut Tables, parts: &[PartFile]) {
    for label in ldbc::LABELS {
        let has_rows = parts.iter().any(|part| matches!(part.content, Content::Vertices(vertex) if vertex == label));
        let named =
            parts.iter().any(|part| part.ends().iter().any(|(source, target)| *source == label || *target == label));
        if has_rows || named {
            let table = tables.vertex(label, label, KeyType::Int64);
            tables.vertices[table].implied = !has_rows;
        }
    }
}

impl PartFile {
    /// The labels that edges in this file lead from and to.
    fn ends(&self) -> Vec<(&'static str, &'static str)> {
        match self.content {
            Content::Vertices(label) => self.foreign_keys(label).map(|(_, (from, _, _, to))| (from, to)).collect(),
            Content::Edges(source, _, target) => vec![(source, target)],
        }
    }

    fn foreign_keys(&self, label: &str) -> impl Iterator<Item = (usize, ForeignKey)> {
        self.header.iter().enumerate().filter_map(move |(position, name)| {
            FOREIGN_KEYS.into_iter().find(|key| key.0 == label && key.1 == name).map(|key| (position, key))
        })
    }

    fn name_tables(&self, tables: &mut Tables) -> Result<(), IngestError> {
        if let Content::Vertices(label) = self.content {
            // A foreign key that occurs twice would make two edges of one.
            let keys: Vec<&String> = self.foreign_keys(label).map(|(position, _)| &self.header[position]).collect();
            if let Some(twice) = (1..keys.len()).find(|at| keys[..*at].contains(&keys[*at])) {
                return Err(self.file.layout(occurs_twice(keys[twice])));
            }
        }
        match self.content {
            Content::Vertices(label) => {
                let table = tables.vertex(label, label, KeyType::Int64);
                for column in self.properties()? {
                    tables.vertex_property(table, &self.file, &column)?;
                }
                for (_, key) in self.foreign_keys(label) {
                    edge_of(tables, key);
                }
            }
            Content::Edges(source, edge, target) => {
                let table = tables.edge(edge, end_of(source), end_of(target));
                for column in self.properties()? {
                    tables.edge_property(table, &self.file, &column)?;
                }
            }
        }
        Ok(())
    }

    /// The columns that are neither keys nor foreign keys.
    fn properties(&self) -> Result<Vec<FileColumn>, IngestError> {
        let keys: Vec<usize> = match self.content {
            Content::Vertices(label) => {
                let id = self.header.iter().position(|name| name == "id");
                self.foreign_keys(label).map(|(position, _)| position).chain(id).collect()
            }
            Content::Edges(..) => self.edge_keys().collect(),
        };
        let person = matches!(self.content, Content::Vertices("Person"));
        let mut columns = Vec::new();
        for (position, name) in self.header.iter().enumerate().filter(|(position, _)| !keys.contains(position)) {
            let list = ldbc::PERSON_LISTS.into_iter().find(|list| person && list.0 == name);
            columns.push(match list {
                Some((_, property)) => FileColumn {
                    property: property.to_owned(),
                    ..FileColumn::new(position, name, Parse::new(PropertyType::List(ScalarType::String)))
                },
                None => FileColumn::new(position, name, ldbc::parse(name)),
            });
        }
        reject_twice(&self.file, &columns)?;
        Ok(columns)
    }

    /// The first two columns whose name ends with `Id`.
    fn edge_keys(&self) -> impl Iterator<Item = usize> {
        let ids = self.header.iter().enumerate().filter(|(_, name)| name.ends_with("Id") || name.ends_with(".id"));
        ids.map(|(position, _)| position).take(2)
    }

    fn key(&self, position: usize) -> FileColumn {
        FileColumn::new(position, &self.header[position], Parse::key(KeyType::Int64))
    }

    fn feeds(&self, tables: &mut Tables) -> Result<Vec<FeedPlan>, IngestError> {
        let mut feeds = Vec::new();
        match self.content {
            Content::Vertices(label) => {
                let id = self.key(ldbc::position_of(&self.file, &self.header, "id")?);
                let table = tables.vertex(label, label, KeyType::Int64);
                feeds.push(tables.vertex_feed(table, &id, &self.properties()?));
                for (position, key) in self.foreign_keys(label) {
                    let table = edge_of(tables, key);
                    let other = self.key(position);
                    // The forum contains the post, but the post's row has the key.
                    let (source, target) = if key.1 == CONTAINER { (&other, &id) } else { (&id, &other) };
                    let mut feed = tables.edge_feed(table, source, target, &[]);
                    // A comment replies to a post or to a comment: one of both foreign keys is empty.
                    feed.only_filled = vec![position];
                    feeds.push(feed);
                    // Only the vertex at the other end: the row itself is the vertex at this one.
                    feeds.extend(implied(tables, key.3, &other).map(FeedPlan::optional));
                }
            }
            Content::Edges(source, edge, target) => {
                let mut keys = self.edge_keys().map(|position| self.key(position));
                let (Some(from), Some(to)) = (keys.next(), keys.next()) else {
                    return Err(self.file.layout(format!(
                        "lacks two columns ending in Id in its first line ({}); generate with a header",
                        self.header.join("|")
                    )));
                };
                let table = tables.edge(edge, end_of(source), end_of(target));
                feeds.push(tables.edge_feed(table, &from, &to, &self.properties()?));
                feeds.extend(implied(tables, source, &from));
                feeds.extend(implied(tables, target, &to));
            }
        }
        Ok(feeds)
    }
}

fn implied(tables: &Tables, label: &str, key: &FileColumn) -> Option<FeedPlan> {
    let table = tables.vertex_named(label).filter(|&table| tables.vertices[table].implied)?;
    Some(tables.vertex_feed(table, key, &[]))
}

fn edge_of(tables: &mut Tables, (from, column, edge, to): ForeignKey) -> usize {
    let (source, target) = if column == CONTAINER { (to, from) } else { (from, to) };
    tables.edge(edge, end_of(source), end_of(target))
}
