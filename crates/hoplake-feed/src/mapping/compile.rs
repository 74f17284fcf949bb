//! Entries of the settings, checked against the catalog.

use std::collections::{BTreeMap, HashMap};

use hoplake::{KeyType, Name, PropertyType, ScalarType};

use super::{
    EdgeKeyMap, EdgeMap, EndMap, Entry, ForeignKeyMap, Item, KeyMap, Mapping, PropertyMap, Rules, VertexMap, cascades,
};
use crate::{
    BeforeImages, Catalog, Column, FeedError, ForeignKey, Missing, OnError, OneOrMore, RowCondition, Settings, Table,
    TableEntry, TableName, VertexEntry,
    mapping::followed::{FollowedTable, MappedEntry},
};

/// The property of an edge key of several columns.
const EDGE_KEY: &str = "key";

impl Mapping {
    /// Checks settings against a catalog. A table without a schema is one of `default_schema`.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) with the table, the column and what to do.
    pub fn new(settings: &Settings, catalog: &Catalog, default_schema: &str) -> Result<Self, FeedError> {
        Self::after(&BTreeMap::new(), settings, catalog, default_schema)
    }

    /// [`Self::new`] for a graph that has followed these tables. A column that they ignored may have been dropped: `ignore`
    /// may still name it, and its values in older rows of the log stay ignored.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn after(
        was: &BTreeMap<TableName, FollowedTable>,
        settings: &Settings,
        catalog: &Catalog,
        default_schema: &str,
    ) -> Result<Self, FeedError> {
        if settings.tables.is_empty() {
            let hint = "write [[table]] entries, or let hoplake feed infer write them";
            return Err(FeedError::invalid("the mapping has no tables").hint(hint));
        }
        let compile = Compile { was, settings, catalog, default_schema };
        let entries = settings.tables.iter().map(|entry| compile.entry(entry)).collect::<Result<Vec<_>, _>>()?;
        let mut by_table: HashMap<TableName, Vec<usize>> = HashMap::new();
        let mut by_target: HashMap<Name, Vec<(usize, usize)>> = HashMap::new();
        for (number, entry) in entries.iter().enumerate() {
            by_table.entry(entry.table.clone()).or_default().push(number);
            if let Item::Vertex(vertex) = &entry.item {
                for (key, edge) in vertex.edges.iter().enumerate() {
                    by_target.entry(edge.other.clone()).or_default().push((number, key));
                }
            }
        }
        let mapping = Self { entries, by_table, by_target, logs_cascades: catalog.logs_cascades };
        compile.labels_are_clear(&mapping)?;
        if !catalog.logs_cascades {
            cascades::check(settings, &mapping, catalog, &|name| compile.table_name(name))?;
        }
        Ok(mapping)
    }
}

/// Whether `ignore` names a column that a table does not have.
pub(crate) fn ignores_unknown(settings: &Settings, catalog: &Catalog, default_schema: &str) -> bool {
    settings.tables.iter().any(|entry| {
        let table = catalog.table(&TableName::parse(&entry.name, default_schema));
        table.is_some_and(|table| entry.ignore.iter().any(|column| table.column(column).is_none()))
    })
}

struct Compile<'a> {
    was: &'a BTreeMap<TableName, FollowedTable>,
    settings: &'a Settings,
    catalog: &'a Catalog,
    default_schema: &'a str,
}

/// An entry and its table.
#[derive(Clone, Copy)]
struct Of<'a> {
    entry: &'a TableEntry,
    table: &'a Table,
}

impl Of<'_> {
    fn invalid(&self, why: impl std::fmt::Display) -> FeedError {
        FeedError::invalid(format!("table {}: {why}", self.table.name))
    }

    fn column(&self, name: &str) -> Result<&Column, FeedError> {
        self.table.column(name).ok_or_else(|| {
            let known: Vec<_> = self.table.columns.iter().map(|column| column.name.as_str()).collect();
            self.invalid(format!("there is no column {name}; it has {}", known.join(", ")))
        })
    }

    /// The type that a column has as a property, with what the entry says of it.
    fn kind(&self, column: &Column) -> Result<PropertyType, FeedError> {
        match self.entry.types.get(column.name.as_str()) {
            Some(named) => PropertyType::from_name(named)
                .ok_or_else(|| self.invalid(format!("types.{} = {named:?} is not a type", column.name))),
            None => column.kind.ok_or_else(|| {
                let hint =
                    format!("add it to ignore, or give it a type in types, such as {} = \"string\"", column.name);
                self.invalid(format!("column {} of type {} is not supported", column.name, column.declared)).hint(hint)
            }),
        }
    }

    fn key_map(&self, columns: &[String]) -> Result<KeyMap, FeedError> {
        let columns: Vec<_> = columns.iter().map(|name| self.column(name)).collect::<Result<_, _>>()?;
        let key_type = match columns[..] {
            [one] if self.kind(one)? == PropertyType::Scalar(ScalarType::Int64) => KeyType::Int64,
            _ => KeyType::String,
        };
        Ok(KeyMap { columns: columns.iter().map(|column| column.name.clone()).collect(), key_type })
    }

    fn property(&self, column: &Column) -> Result<PropertyMap, FeedError> {
        let renamed = self.entry.rename.get(column.name.as_str());
        let property = renamed.map_or_else(|| column.name.clone(), Name::from);
        if property.is_empty() || property.starts_with('~') {
            return Err(self.invalid(format!("column {} would be the property {property:?}; rename it", column.name)));
        }
        Ok(PropertyMap { column: column.name.clone(), property, kind: self.kind(column)? })
    }
}

impl Compile<'_> {
    fn table_name(&self, name: &str) -> TableName {
        TableName::parse(name, self.default_schema)
    }

    fn of<'a>(&'a self, entry: &'a TableEntry) -> Result<Of<'a>, FeedError> {
        let name = self.table_name(&entry.name);
        let table = self.catalog.table(&name).ok_or_else(|| {
            let hint = "check its name, and that the feed's user may read it";
            FeedError::invalid(format!("the database has no table {name}")).hint(hint)
        })?;
        Ok(Of { entry, table })
    }

    fn entry(&self, entry: &TableEntry) -> Result<Entry, FeedError> {
        let of = self.of(entry)?;
        for column in entry.keep.iter().chain(entry.rename.keys()).chain(entry.types.keys()) {
            of.column(column)?;
        }
        let condition = self.condition(of)?;
        let (item, is_key): (Item, Vec<Name>) = match (&entry.vertex, &entry.edge) {
            (Some(vertex), _) => self.vertex(of, vertex)?,
            (_, Some(_)) => self.edge(of)?,
            // The settings were validated.
            (None, None) => return Err(of.invalid("it is neither a vertex nor an edge")),
        };
        let was = self.was.get(&of.table.name);
        let before = was.and_then(|was| was.entries.iter().find(|it| it.is_of(&item)));
        // The log may still have rows with it.
        let is_dropped = |name: &str| of.table.column(name).is_none() && before.is_some_and(|it| it.ignores(name));
        for column in entry.ignore.iter().filter(|column| !is_dropped(column)) {
            of.column(column)?;
        }
        let mut properties = Vec::new();
        let mut not_carried = Vec::new();
        for column in &of.table.columns {
            let is_in = |names: &[String]| names.iter().any(|name| *name == column.name);
            if is_in(&entry.ignore) {
                not_carried.push((column.name.clone(), "it is ignored".to_owned()));
            } else if !is_key.contains(&column.name) || is_in(&entry.keep) {
                properties.push(of.property(column)?);
            }
        }
        for (number, property) in properties.iter().enumerate() {
            if properties[..number].iter().any(|before| before.property == property.property) {
                return Err(of.invalid(format!("two columns become the property {}; rename one", property.property)));
            }
        }
        // If the log has dropped it, too, there are no more rows with it, and a column of its name is another.
        let is_left = |name: &Name| is_dropped(name) && was.is_some_and(|was| was.shape.has(name));
        let is_named = |name: &Name| entry.ignore.iter().any(|column| *name == **column);
        let before = before.into_iter().flat_map(MappedEntry::ignored);
        let gone: Vec<_> = before.filter(|name| is_left(name) && !is_named(name)).cloned().collect();
        let ignored = entry.ignore.iter().map(Name::from).chain(gone.iter().cloned());
        let left_out = is_key.into_iter().chain(ignored).collect();
        let on_error = of.entry.on_error;
        let entry =
            Entry { table: of.table.name.clone(), condition, on_error, item, properties, left_out, gone, not_carried };
        self.log_suffices(of, &entry)?;
        Ok(entry)
    }

    fn condition(&self, of: Of<'_>) -> Result<Option<RowCondition>, FeedError> {
        let Some(text) = &of.entry.condition else { return Ok(None) };
        let condition = RowCondition::parse(text).map_err(|why| of.invalid(format!("where = {text:?}: {why}")))?;
        for column in condition.columns() {
            of.column(column)?;
        }
        Ok(Some(condition))
    }

    /// A vertex, and the columns that are keys in it.
    fn vertex(&self, of: Of<'_>, vertex: &VertexEntry) -> Result<(Item, Vec<Name>), FeedError> {
        let key = self.vertex_key(of, vertex)?;
        let mut is_key = Vec::new();
        // A composite key is one text, from which its columns cannot be selected: they are properties, too.
        if key.columns.len() == 1 {
            is_key.extend(key.columns.iter().cloned());
        }
        let mut edges = Vec::new();
        for edge in &of.entry.edges {
            let label = edge.to.as_ref().or(edge.from.as_ref());
            let label = label.ok_or_else(|| of.invalid(format!("edges {} lack to or from", edge.label)))?;
            let end = self.end(of, label, &edge.columns, edge.missing)?;
            is_key.extend(end.key.columns.iter().cloned());
            let properties = edge.properties.iter().map(|name| of.property(of.column(name)?));
            edges.push(ForeignKeyMap {
                label: edge.label.as_str().into(),
                key: end.key,
                other: end.label,
                is_outgoing: edge.to.is_some(),
                missing: end.missing,
                compared_by: end.compared_by,
                properties: properties.collect::<Result<_, _>>()?,
                rules: end.rules,
            });
        }
        Ok((Item::Vertex(VertexMap { label: vertex.label.as_str().into(), key, edges }), is_key))
    }

    fn vertex_key(&self, of: Of<'_>, vertex: &VertexEntry) -> Result<KeyMap, FeedError> {
        let primary: Vec<_> = of.table.primary_key.iter().map(ToString::to_string).collect();
        let columns = vertex.key.as_ref().map_or(primary.as_slice(), OneOrMore::all);
        if columns.is_empty() {
            let hint = "name the columns that identify a row, such as key = \"id\"";
            return Err(of.invalid("it has no primary key").hint(hint));
        }
        of.key_map(columns)
    }

    /// The vertex that columns name.
    fn end(&self, of: Of<'_>, label: &str, columns: &OneOrMore, missing: Option<Missing>) -> Result<EndMap, FeedError> {
        let targets =
            || self.settings.tables.iter().filter(|entry| entry.vertex.as_ref().is_some_and(|it| it.label == label));
        let Some(target) = targets().next() else {
            return Err(of.invalid(format!("no table becomes vertices {label}, which its columns are to name")));
        };
        let target_of = self.of(target)?;
        let target_vertex = target.vertex.as_ref().ok_or_else(|| of.invalid("its target is not a vertex"))?;
        let target_key = self.vertex_key(target_of, target_vertex)?;
        let mut key = of.key_map(columns.all())?;
        if key.columns.len() != target_key.columns.len() {
            let here = key.columns.join(", ");
            let there = target_key.columns.join(", ");
            return Err(of.invalid(format!("{here} cannot name vertices {label}, whose key is {there}")));
        }
        key.key_type = target_key.key_type;
        let declared = of.table.foreign_key(&key.columns).filter(|key| key.target == target_of.table.name);
        if let Some(declared) = declared.filter(|declared| declared.target_columns != target_key.columns) {
            let names = declared.target_columns.join(", ");
            let there = target_key.columns.join(", ");
            let why = format!(
                "the foreign key {} names {names} of {}, and the key of {label} is {there}",
                key.columns.join(", "),
                declared.target
            );
            return Err(of.invalid(why).hint(format!("give {label} the key {names}, in this order")));
        }
        // The database guarantees a row; it is a vertex if all rows are.
        let are_all = target.condition.is_none() && target.on_error == OnError::Stop;
        let is_sure = declared.is_some() && are_all && targets().count() == 1;
        let rules = declared.map(|key| Rules { on_delete: key.on_delete, on_update: key.on_update });
        let rules = rules.filter(|_| !self.catalog.logs_cascades && of.entry.cascades == crate::Cascades::Follow);
        let missing = missing.or((!is_sure).then(Missing::default));
        let compared = |declared: &ForeignKey| {
            let mut columns = declared.columns.iter().filter_map(|name| of.table.column(name));
            columns.find_map(|column| column.compared_by.clone())
        };
        let compared_by = declared.filter(|_| missing.is_none()).and_then(compared);
        Ok(EndMap { label: label.into(), key, missing, rules, compared_by })
    }

    /// An edge, and the columns that are keys in it.
    fn edge(&self, of: Of<'_>) -> Result<(Item, Vec<Name>), FeedError> {
        let edge = of.entry.edge.as_ref().ok_or_else(|| of.invalid("it is not an edge"))?;
        let source = self.end(of, &edge.source.label, &edge.source.columns, edge.missing)?;
        let target = self.end(of, &edge.target.label, &edge.target.columns, edge.missing)?;
        let is_key: Vec<Name> = source.key.columns.iter().chain(&target.key.columns).cloned().collect();
        let rest = of.table.primary_key.iter().filter(|name| !is_key.contains(name)).map(ToString::to_string);
        let columns: Vec<String> = edge.key.as_ref().map_or_else(|| rest.collect(), |key| key.all().to_vec());
        if of.table.primary_key.is_empty() && edge.key.is_none() {
            let hint = "if no two rows name the same two vertices, write key = []";
            return Err(of
                .invalid("it has no primary key, so that nothing says whether edges may be parallel")
                .hint(hint));
        }
        let key = match &columns[..] {
            [] => None,
            [one] => {
                let PropertyMap { property, kind, .. } = of.property(of.column(one)?)?;
                Some(EdgeKeyMap { property, columns: vec![one.as_str().into()], kind })
            }
            several => {
                let columns = several.iter().map(|name| Ok(of.column(name)?.name.clone()));
                let kind = PropertyType::Scalar(ScalarType::String);
                Some(EdgeKeyMap {
                    property: EDGE_KEY.into(),
                    columns: columns.collect::<Result<_, FeedError>>()?,
                    kind,
                })
            }
        };
        Ok((Item::Edge(EdgeMap { label: edge.label.as_str().into(), ends: [source, target], key }), is_key))
    }

    /// Whether the log has what the entry needs to know of a row before it changes.
    fn log_suffices(&self, of: Of<'_>, entry: &Entry) -> Result<(), FeedError> {
        let needed = entry.key_columns();
        let missing = match of.table.before_images {
            BeforeImages::Complete => return Ok(()),
            BeforeImages::Keys => needed.into_iter().find(|column| !of.table.primary_key.contains(column)),
            BeforeImages::Nothing => needed.into_iter().next(),
        };
        // A long value that has not changed is not in the log: of a row that matches its condition again it would be lost.
        let is_long = |name: &&Name| of.table.column(name).is_some_and(|it| !is_short(it));
        let carried = entry.properties.iter().map(|property| &property.column);
        let of_condition =
            entry.condition.iter().flat_map(|condition| condition.columns().iter().chain(carried.clone()));
        let missing = missing.or_else(|| of_condition.into_iter().find(is_long));
        let Some(column) = missing else { return Ok(()) };
        let why =
            format!("the log does not have column {column} of rows before they change, which identifies what they are");
        Err(of.invalid(why).hint(format!("run: ALTER TABLE {} REPLICA IDENTITY FULL", of.table.name.quoted('"'))))
    }

    /// Nothing would say which of two tables a vertex is of, or which of two foreign keys an edge.
    fn labels_are_clear(&self, mapping: &Mapping) -> Result<(), FeedError> {
        let mut vertices: HashMap<&Name, &TableName> = HashMap::new();
        let mut edges: HashMap<(&Name, &Name, &Name), &TableName> = HashMap::new();
        for entry in &mapping.entries {
            let both = |other: &TableName, what: String| {
                let why = format!("tables {other} and {} both become {what}", entry.table);
                Err(FeedError::invalid(why).hint("give each its own label"))
            };
            if let Item::Vertex(vertex) = &entry.item
                && let Some(other) = vertices.insert(&vertex.label, &entry.table)
            {
                return both(other, format!("vertices {}", vertex.label));
            }
            for (label, source, target) in edge_types(&entry.item) {
                if let Some(other) = edges.insert((label, source, target), &entry.table) {
                    return both(other, format!("edges {source} -{label}-> {target}"));
                }
            }
        }
        Ok(())
    }
}

/// Whether values of a column are always in the log.
fn is_short(column: &Column) -> bool {
    !matches!(column.kind, None | Some(PropertyType::List(_) | PropertyType::Scalar(ScalarType::String)))
}

/// The edges that rows become: label, and the labels of source and target.
fn edge_types(item: &Item) -> Vec<(&Name, &Name, &Name)> {
    match item {
        Item::Edge(edge) => vec![(&edge.label, &edge.ends[0].label, &edge.ends[1].label)],
        Item::Vertex(vertex) => vertex
            .edges
            .iter()
            .map(|edge| match edge.is_outgoing {
                true => (&edge.label, &vertex.label, &edge.other),
                false => (&edge.label, &edge.other, &vertex.label),
            })
            .collect(),
    }
}
