//! The plan that layouts write and readers execute: the tables of a data set, and for each file which
//! field becomes which column of which table.

use std::{collections::HashMap, sync::Arc};

use arrow_schema::{Field, Schema, SchemaRef};
use hoplake_format::{KeyType, Property, PropertyType};

use super::{column::Parse, files::SourceFile, records::TextFormat};
use crate::{EdgeTable, Endpoint, Feed, IngestError, Phase, VertexTable};

/// A column of a file that goes into a table.
#[derive(Debug, Clone)]
pub(crate) struct FileColumn {
    /// Its position in the file.
    pub(crate) position: usize,
    /// Its name in the file, for messages.
    pub(crate) header: String,
    /// How its values are read.
    pub(crate) parse: Parse,
    /// What its fields begin with before the value, in text.
    pub(crate) prefix: Option<Arc<str>>,
    /// The property it becomes (for keys, unused).
    pub(crate) property: String,
}

impl FileColumn {
    /// A column that becomes the property of its own name.
    pub(crate) fn new(position: usize, header: &str, parse: Parse) -> Self {
        Self { position, header: header.to_owned(), parse, prefix: None, property: header.to_owned() }
    }
}

/// A column of a feed.
#[derive(Debug, Clone)]
pub(crate) struct ColumnPlan {
    /// The column of the file; `None` if the file does not have it.
    pub(crate) position: Option<usize>,
    /// Its name in the file.
    pub(crate) header: String,
    /// How its values are read.
    pub(crate) parse: Parse,
    /// What its fields begin with before the value, in text.
    pub(crate) prefix: Option<Arc<str>>,
    /// Whether an empty value is an error: it is a key.
    pub(crate) required: bool,
}

/// How the rows of a feed are made.
#[derive(Debug, Clone)]
pub(crate) struct FeedPlan {
    /// Whose rows they are.
    pub(crate) feed: Feed,
    /// The schema of its batches.
    pub(crate) schema: SchemaRef,
    /// Its columns.
    pub(crate) columns: Vec<ColumnPlan>,
    /// If set, a row of the file in which one of these columns is empty has no row here.
    pub(crate) only_filled: Vec<usize>,
}

impl FeedPlan {
    /// The phase in which it is yielded.
    pub(crate) fn phase(&self) -> Phase {
        match self.feed {
            Feed::Vertices { .. } | Feed::ListValues { .. } => Phase::Vertices,
            Feed::Edges { .. } => Phase::Edges,
        }
    }

    /// Leaves out rows whose key columns are empty.
    pub(crate) fn optional(mut self) -> Self {
        // Only keys are required. A row without the key at one end has no edge, and implies no vertex at that end.
        self.only_filled = self.columns.iter().filter(|column| column.required).filter_map(|c| c.position).collect();
        self
    }
}

/// How a text file is read.
pub(crate) struct TextPlan {
    /// How it is divided.
    pub(crate) format: TextFormat,
    /// Whether the first record is a header.
    pub(crate) header: bool,
    /// How many fields a record has.
    pub(crate) fields: FieldCount,
    /// Its output.
    pub(crate) feeds: Vec<FeedPlan>,
    /// If set, the label in a row picks one of the first feeds.
    pub(crate) by_label: Option<ByLabel>,
}

/// How many fields a record must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldCount {
    /// As many as the header.
    Exactly(usize),
    /// As many or more; absent ones are empty.
    AtLeast(usize),
}

/// The label in the row decides which feed takes it.
pub(crate) struct ByLabel {
    /// The column of the label; of several labels, the first counts.
    pub(crate) position: usize,
    /// Its name.
    pub(crate) header: String,
    /// The feed of each label.
    pub(crate) feeds: HashMap<Vec<u8>, usize>,
    /// A row picks one of this many feeds by its label; those after them take every row.
    pub(crate) among: usize,
    /// The feed of rows without a label.
    pub(crate) unlabelled: Option<usize>,
}

/// The tables of a data set as they are found.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) vertices: Vec<VertexTable>,
    pub(crate) edges: Vec<EdgeTable>,
}

impl Tables {
    /// The vertex table of this label, made if there is none.
    pub(crate) fn vertex(&mut self, label: &str, id_space: &str, key_type: KeyType) -> usize {
        self.vertex_named(label).unwrap_or_else(|| {
            self.vertices.push(VertexTable {
                label: label.to_owned(),
                id_space: id_space.to_owned(),
                key_type,
                properties: Vec::new(),
                implied: false,
            });
            self.vertices.len() - 1
        })
    }

    /// The vertex table of this label.
    pub(crate) fn vertex_named(&self, label: &str) -> Option<usize> {
        self.vertices.iter().position(|table| table.label == label)
    }

    /// The edge table of this label and these ends, made if there is none.
    pub(crate) fn edge(&mut self, label: &str, source: Endpoint, target: Endpoint) -> usize {
        let same =
            // One label between other ends is another edge type, with properties of its own.
            |table: &EdgeTable| (table.label.as_str(), &table.source, &table.target) == (label, &source, &target);
        self.edges.iter().position(same).unwrap_or_else(|| {
            self.edges.push(EdgeTable { label: label.to_owned(), source, target, properties: Vec::new() });
            self.edges.len() - 1
        })
    }

    /// Adds a property to a vertex table; it may be there already, with the same type.
    pub(crate) fn vertex_property(
        &mut self,
        table: usize,
        file: &SourceFile,
        column: &FileColumn,
    ) -> Result<usize, IngestError> {
        let table = &mut self.vertices[table];
        add_property(&table.label, &mut table.properties, file, column)
    }

    /// Adds a property to an edge table; it may be there already, with the same type.
    pub(crate) fn edge_property(
        &mut self,
        table: usize,
        file: &SourceFile,
        column: &FileColumn,
    ) -> Result<usize, IngestError> {
        let table = &mut self.edges[table];
        add_property(&table.label, &mut table.properties, file, column)
    }

    /// The rows of a vertex table from a file. All properties must have been added before.
    pub(crate) fn vertex_feed(&self, table: usize, key: &FileColumn, properties: &[FileColumn]) -> FeedPlan {
        let owner = &self.vertices[table];
        let keys = [("~key", key, owner.key_type)];
        feed(Feed::Vertices { table }, &keys, &owner.properties, properties)
    }

    /// The values of a list property from a file of their own.
    pub(crate) fn list_feed(&self, table: usize, property: usize, key: &FileColumn, value: &FileColumn) -> FeedPlan {
        let owner = &self.vertices[table];
        let mut scalar = owner.properties[property].clone();
        // A row has one value; the values of a key become its list when vertices are joined with them.
        if let PropertyType::List(item) = scalar.kind {
            scalar.kind = PropertyType::Scalar(item);
        }
        let keys = [("~key", key, owner.key_type)];
        feed(Feed::ListValues { table, property }, &keys, &[scalar], std::slice::from_ref(value))
    }

    /// The rows of an edge table from a file. All properties must have been added before.
    pub(crate) fn edge_feed(
        &self,
        table: usize,
        source: &FileColumn,
        target: &FileColumn,
        properties: &[FileColumn],
    ) -> FeedPlan {
        let owner = &self.edges[table];
        let keys =
            [("~source", source, self.key_type(&owner.source)), ("~target", target, self.key_type(&owner.target))];
        feed(Feed::Edges { table }, &keys, &owner.properties, properties)
    }

    /// The type of the keys at an end of edges.
    pub(crate) fn key_type(&self, end: &Endpoint) -> KeyType {
        let of_space = self.vertices.iter().find(|table| table.id_space == end.id_space);
        // All labels of a space have keys of one type, so the first answers for them.
        of_space.map_or(KeyType::String, |table| table.key_type)
    }
}

/// The end of an edge whose label has an id space of its own.
pub(crate) fn end_of(label: &str) -> Endpoint {
    Endpoint { id_space: label.to_owned(), label: Some(label.to_owned()) }
}

fn add_property(
    owner: &str,
    properties: &mut Vec<Property>,
    file: &SourceFile,
    column: &FileColumn,
) -> Result<usize, IngestError> {
    let name = &column.property;
    let kind = column.parse.kind;
    // Names with ~ are those of the key and origin columns, which the build puts next to the properties.
    if name.is_empty() || name.starts_with('~') {
        return Err(file.layout(format!(
            "column {} would be a property named {name:?}; a name is not empty and does not start with ~",
            column.position + 1
        )));
    }
    match properties.iter().position(|property| &property.name == name) {
        Some(position) if properties[position].kind == kind => Ok(position),
        Some(position) => Err(file.layout(format!(
            "property {name:?} of {owner:?} is {kind} here and {} before; give it one type in all files",
            properties[position].kind
        ))),
        None => {
            properties.push(Property::new(name.clone(), kind));
            Ok(properties.len() - 1)
        }
    }
}

fn feed(
    feed: Feed,
    keys: &[(&str, &FileColumn, KeyType)],
    properties: &[Property],
    columns: &[FileColumn],
) -> FeedPlan {
    let mut fields = Vec::new();
    let mut plans = Vec::new();
    for &(name, column, key_type) in keys {
        fields.push(Field::new(name, key_type.arrow(), false));
        let position = Some(column.position);
        let header = column.header.clone();
        let prefix = column.prefix.clone();
        plans.push(ColumnPlan { position, header, parse: Parse::key(key_type), prefix, required: true });
    }
    for property in properties {
        fields.push(property.arrow());
        // A table has one schema for all its files: a property that this file lacks is null in its rows.
        let column = columns.iter().find(|column| column.property == property.name);
        plans.push(ColumnPlan {
            position: column.map(|column| column.position),
            header: column.map_or_else(String::new, |column| column.header.clone()),
            parse: column.map_or(Parse::new(property.kind), |column| Parse { kind: property.kind, ..column.parse }),
            prefix: None,
            required: false,
        });
    }
    FeedPlan { feed, schema: Arc::new(Schema::new(fields)), columns: plans, only_filled: Vec::new() }
}

/// Why a file with two columns of one name cannot be read, as the end of a sentence.
pub(crate) fn occurs_twice(name: &str) -> String {
    format!("column {name:?} occurs twice; rename one of them")
}

/// Rejects a file that names a column twice: the name would be ambiguous.
pub(crate) fn reject_twice(file: &SourceFile, columns: &[FileColumn]) -> Result<(), IngestError> {
    for (position, column) in columns.iter().enumerate() {
        if columns[..position].iter().any(|other| other.property == column.property) {
            return Err(file.layout(occurs_twice(&column.property)));
        }
    }
    Ok(())
}
