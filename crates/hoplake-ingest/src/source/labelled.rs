//! Property-graph CSV whose rows have their labels (Neptune, neo4j): what both have in common.
//!
//! One file has many labels and a column for every property of any of them. A first look at all rows
//! finds the labels, the columns that each label uses (a property that is empty in every row of a label
//! is not a property of it) and whether all ids are integers: keys are int64 if every id of their id
//! space is one in its canonical form, else strings.
//!
//! A vertex has one label: of several (`a;b`), the first.

use std::{
    collections::{BTreeMap, HashMap},
    mem::discriminant,
};

use hoplake_format::{KeyType, PropertyType, ScalarType};

use super::{
    column::Parse,
    files::SourceFile,
    first_look,
    footprint::Footprint,
    plan::{ByLabel, FeedPlan, FieldCount, FileColumn, Tables, TextPlan, occurs_twice, reject_twice},
    records::{Records, TextFormat},
    text::{TextInput, first_label},
    values::is_canonical_int64,
};
use crate::{BadRow, Dataset, Endpoint, IngestError, Input};

/// Labels have numbers of 16 bits.
const LABELS_MAX: usize = 65_535;

/// The role of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// The key of a vertex, or the id of an edge; also a property if it has a name.
    Id { space: String, property: Option<String> },
    /// The label.
    Label,
    /// Where an edge starts.
    From { space: String },
    /// Where an edge ends.
    To { space: String },
    /// A property.
    Property { name: String, parse: Parse },
    /// Nothing.
    Ignored,
}

/// A file whose header has been understood.
pub(crate) struct LabelledFile {
    pub(crate) file: SourceFile,
    pub(crate) format: TextFormat,
    pub(crate) header: Vec<String>,
    pub(crate) roles: Vec<Role>,
    /// The label of rows without one.
    pub(crate) default_label: Option<String>,
}

/// The profile of a file, from the first pass over its rows.
#[derive(Default)]
struct LabelledProfile {
    /// The labels with the columns they use, in the order of their first row.
    labels: Vec<(String, Vec<bool>)>,
    /// For each column of ids, whether one is not an int64.
    has_text: Vec<bool>,
}

/// The type of the keys of each id space; of the ids of edges under `None`.
type KeyTypes = BTreeMap<Option<String>, KeyType>;

/// Looks at all rows and plans the scans.
pub(crate) fn open(files: Vec<LabelledFile>) -> Result<Dataset, IngestError> {
    files.iter().try_for_each(LabelledFile::reject_roles_twice)?;
    let limits = files.first().map(|file| file.file.limits).unwrap_or_default();
    let seen = first_look::at_all(&files, LabelledFile::look)?;
    LabelledFile::count(&files, &seen).check(&limits)?;
    let key_types = key_types(&files, &seen);
    let mut tables = Tables::default();
    for (file, seen) in files.iter().zip(&seen) {
        file.name_tables(seen, &key_types, &mut tables)?;
    }
    imply_vertices(&files, &key_types, &mut tables);
    let mut inputs: Vec<Box<dyn Input>> = Vec::new();
    for (file, seen) in files.iter().zip(&seen) {
        inputs.push(Box::new(TextInput::new(&file.file, file.plan(seen, &key_types, &tables)?)));
    }
    Ok(Dataset { vertex_tables: tables.vertices, edge_tables: tables.edges, inputs })
}

fn key_types(files: &[LabelledFile], seen: &[LabelledProfile]) -> KeyTypes {
    let mut key_types = KeyTypes::new();
    for (file, seen) in files.iter().zip(seen) {
        for (role, &has_text) in file.roles.iter().zip(&seen.has_text) {
            let space = match role {
                Role::Id { .. } if file.is_edges() => None,
                Role::Id { space, .. } | Role::From { space } | Role::To { space } => Some(space.clone()),
                _ => continue,
            };
            // One id that is text makes all keys of the space text: both ends of a look-up have one type.
            let key_type = key_types.entry(space).or_insert(KeyType::Int64);
            if has_text {
                *key_type = KeyType::String;
            }
        }
    }
    key_types
}

/// Id spaces that only edges name get a label of their own.
fn imply_vertices(files: &[LabelledFile], key_types: &KeyTypes, tables: &mut Tables) {
    let has_file = |space: &String| {
        let names = |role: &Role| matches!(role, Role::Id { space: of, .. } if of == space);
        files.iter().any(|file| !file.is_edges() && file.roles.iter().any(names))
    };
    for space in key_types.keys().flatten().filter(|space| !has_file(space)) {
        let label = if space.is_empty() { "vertex" } else { space };
        let table = tables.vertex(label, space, key_types[&Some(space.clone())]);
        tables.vertices[table].implied = true;
    }
}

impl LabelledFile {
    /// Rejects a file with two columns of labels, ids or ends, whatever they are called.
    fn reject_roles_twice(&self) -> Result<(), IngestError> {
        let reserved = |role: &Role| !matches!(role, Role::Property { .. } | Role::Ignored);
        for (position, role) in self.roles.iter().enumerate().filter(|(_, role)| reserved(role)) {
            let same = |other: &Role| discriminant(other) == discriminant(role);
            if let Some(other) = self.roles[..position].iter().position(same) {
                let one = &self.header[other];
                let two = &self.header[position];
                return Err(self.file.layout(match one == two {
                    true => occurs_twice(one),
                    false => format!("columns {one:?} and {two:?} mean the same; remove one of them"),
                }));
            }
        }
        Ok(())
    }

    /// Whether its rows are edges.
    pub(crate) fn is_edges(&self) -> bool {
        self.roles.iter().any(|role| matches!(role, Role::From { .. } | Role::To { .. }))
    }

    /// The tables of all files, with the columns that they use.
    fn count(files: &[Self], seen: &[LabelledProfile]) -> Footprint {
        let mut footprint = Footprint::default();
        for (file, seen) in files.iter().zip(seen) {
            for (_, used) in &seen.labels {
                let keys = file.roles.iter().filter(|role| !matches!(role, Role::Property { .. } | Role::Ignored));
                footprint.add(used.iter().filter(|used| **used).count() + keys.count());
            }
        }
        footprint
    }

    fn position(&self, wanted: impl Fn(&Role) -> bool) -> Option<usize> {
        self.roles.iter().position(wanted)
    }

    fn look(&self) -> Result<LabelledProfile, IngestError> {
        let mut seen = LabelledProfile { labels: Vec::new(), has_text: vec![false; self.roles.len()] };
        let mut by_label: HashMap<Vec<u8>, usize> = HashMap::new();
        let label_at = self.position(|role| *role == Role::Label);
        let mut records = Records::open(&self.file, self.format, Default::default())?;
        records.advance()?;
        let mut first_bad: Option<(u64, String)> = None;
        while records.advance()? {
            // Such rows are reported by the scan.
            if let Some(why) = self.why_unreadable(&records) {
                first_bad.get_or_insert_with(|| (records.first_line(), why));
                continue;
            }
            // The same rule as that of the scan, which otherwise would meet labels without a feed.
            let label = first_label(label_at.and_then(|at| records.field(at)).unwrap_or_default());
            let label = if label.is_empty() { self.default_label.as_deref().unwrap_or("").as_bytes() } else { label };
            if label.is_empty() {
                first_bad.get_or_insert_with(|| (records.first_line(), "has no label".into()));
                continue;
            }
            let known = by_label.get(label).copied();
            if known.is_none() && seen.labels.len() == LABELS_MAX {
                let why =
                    format!("has more than {LABELS_MAX} labels; is {:?} the column of labels?", self.label_header());
                return Err(self.file.layout(why));
            }
            let known = known.unwrap_or_else(|| {
                by_label.insert(label.to_vec(), seen.labels.len());
                seen.labels.push((String::from_utf8_lossy(label).into_owned(), vec![false; self.roles.len()]));
                seen.labels.len() - 1
            });
            for (position, role) in self.roles.iter().enumerate() {
                let field = records.field(position).unwrap_or_default();
                match role {
                    Role::Property { .. } => seen.labels[known].1[position] |= !field.is_empty(),
                    Role::Id { .. } | Role::From { .. } | Role::To { .. } if !field.is_empty() => {
                        seen.labels[known].1[position] = true;
                        seen.has_text[position] |= !seen.has_text[position] && !is_canonical_int64(field);
                    }
                    _ => {}
                }
            }
        }
        // Without a label no scan would read them, and no one would report them.
        match first_bad.filter(|_| seen.labels.is_empty()) {
            Some((line, why)) => {
                let why = format!("{why}, and no other row of the file can be loaded");
                Err(IngestError::BadRow(BadRow { file: self.file.path.clone(), line, column: None, value: None, why }))
            }
            None => Ok(seen),
        }
    }

    fn label_header(&self) -> &str {
        self.position(|role| *role == Role::Label).map_or("", |position| &self.header[position])
    }

    /// The mistake in a record, if any.
    fn why_unreadable(&self, records: &Records) -> Option<String> {
        let found = records.len();
        let expected = self.roles.len();
        let width = || (found != expected).then(|| format!("has {found} fields where the header has {expected}"));
        records.fault().map(str::to_owned).or_else(width)
    }

    /// The columns that are properties of a label that uses these columns.
    fn properties(&self, used: &[bool], key_types: &KeyTypes) -> Result<Vec<FileColumn>, IngestError> {
        let named = |name: &str| {
            self.position(|role| matches!(role, Role::Property { name: other, .. } if other == name)).is_some()
        };
        let mut columns = Vec::new();
        for (position, role) in self.roles.iter().enumerate().filter(|(position, _)| used[*position]) {
            let (name, parse) = match role {
                Role::Property { name, parse } => (name, *parse),
                // A property of that name goes before the id.
                Role::Id { space, property: Some(name) } if !named(name) => {
                    let space = (!self.is_edges()).then(|| space.clone());
                    (name, Parse::key(key_types.get(&space).copied().unwrap_or(KeyType::String)))
                }
                _ => continue,
            };
            let column = FileColumn::new(position, &self.header[position], parse);
            columns.push(FileColumn { property: name.clone(), ..column });
        }
        reject_twice(&self.file, &columns)?;
        Ok(columns)
    }

    fn end(&self, wanted: impl Fn(&Role) -> bool) -> Result<(Endpoint, usize), IngestError> {
        let position = self.position(wanted).ok_or_else(|| {
            self.file.layout("has only one end of its edges in its first line; both the start and the end are needed")
        })?;
        let (Role::Id { space, .. } | Role::From { space } | Role::To { space }) = &self.roles[position] else {
            return Err(self.file.layout("has no column of ids"));
        };
        // A row of edges has the ids of its ends, but not their labels; these are found with the keys.
        Ok((Endpoint { id_space: space.clone(), label: None }, position))
    }

    fn source(&self) -> Result<(Endpoint, usize), IngestError> {
        self.end(|role| matches!(role, Role::From { .. }))
    }

    fn target(&self) -> Result<(Endpoint, usize), IngestError> {
        self.end(|role| matches!(role, Role::To { .. }))
    }

    fn id(&self) -> Result<(Endpoint, usize), IngestError> {
        self.end(|role| matches!(role, Role::Id { .. }))
    }

    fn name_tables(
        &self,
        seen: &LabelledProfile,
        key_types: &KeyTypes,
        tables: &mut Tables,
    ) -> Result<(), IngestError> {
        for (label, used) in &seen.labels {
            if self.is_edges() {
                let table = tables.edge(label, self.source()?.0, self.target()?.0);
                for column in self.properties(used, key_types)? {
                    tables.edge_property(table, &self.file, &column)?;
                }
                continue;
            }
            let space = self.id()?.0.id_space;
            let key_type = key_types.get(&Some(space.clone())).copied().unwrap_or(KeyType::String);
            let table = tables.vertex(label, &space, key_type);
            if tables.vertices[table].id_space != space {
                return Err(self.file.layout(format!(
                    "label {label:?} has ids in space {space:?} here and in {:?} elsewhere; a label has one id space",
                    tables.vertices[table].id_space
                )));
            }
            for column in self.properties(used, key_types)? {
                tables.vertex_property(table, &self.file, &column)?;
            }
        }
        Ok(())
    }

    fn key(&self, position: usize) -> FileColumn {
        // The feed replaces the type by that of the id space.
        FileColumn::new(position, &self.header[position], Parse::new(PropertyType::Scalar(ScalarType::String)))
    }

    fn plan(&self, seen: &LabelledProfile, key_types: &KeyTypes, tables: &Tables) -> Result<TextPlan, IngestError> {
        let mut feeds: Vec<FeedPlan> = Vec::new();
        for (label, used) in &seen.labels {
            let properties = self.properties(used, key_types)?;
            if self.is_edges() {
                let ((source, from), (target, to)) = (self.source()?, self.target()?);
                let named = |table: &crate::EdgeTable| {
                    (&table.label, &table.source, &table.target) == (label, &source, &target)
                };
                let table = tables.edges.iter().position(named).expect("all labels have their tables");
                feeds.push(tables.edge_feed(table, &self.key(from), &self.key(to), &properties));
            } else {
                let table = tables.vertex_named(label).expect("all labels have their tables");
                feeds.push(tables.vertex_feed(table, &self.key(self.id()?.1), &properties));
            }
        }
        // Feeds of implied vertices come after those of labels: they take the ends of every edge, whatever its label.
        let among = feeds.len();
        if self.is_edges() && among > 0 {
            for (end, position) in [self.source()?, self.target()?] {
                let implied = |table: &crate::VertexTable| table.implied && table.id_space == end.id_space;
                let table = tables.vertices.iter().position(implied);
                feeds.extend(table.map(|table| tables.vertex_feed(table, &self.key(position), &[])));
            }
        }
        let by_label = self.position(|role| *role == Role::Label).map(|position| ByLabel {
            position,
            header: self.header[position].clone(),
            feeds: seen
                .labels
                .iter()
                .enumerate()
                .map(|(feed, (label, _))| (label.clone().into_bytes(), feed))
                .collect(),
            among,
            unlabelled: self
                .default_label
                .as_ref()
                .and_then(|default| seen.labels.iter().position(|(l, _)| l == default)),
        });
        let fields = FieldCount::Exactly(self.roles.len());
        Ok(TextPlan { format: self.format, header: true, fields, feeds, by_label })
    }
}
