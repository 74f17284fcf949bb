//! The tables of an export: what their files and columns are called, and the mapping that reads them back.

use std::{collections::HashSet, sync::Arc};

use arrow_schema::{Field, Schema as ArrowSchema, SchemaRef};
use hoplake_format::{
    EdgeType, EdgeTypeId, LabelId, Property, PropertyType, ScalarType, Schema, VertexLabel, constants::KEY_COLUMN,
};
use hoplake_ingest::source::mapping::{ColumnSpec, CsvSpec, EdgeSpec, Mapping, PropertySpec, TypeSpec, VertexSpec};

use crate::{
    cells::ItemForm,
    options::{ExportFormat, ExportOptions, FileNames},
    text::{Content, Style, TextColumn},
};

/// What is between the items of a list for neo4j-admin, which knows no escapes: text hardly ever has it.
const UNIT_SEPARATOR: char = '\u{1f}';

/// The longest name of a file, without its ending and what tells it from others.
const STEM_CHARS: usize = 80;

/// All tables.
pub(crate) struct Tables {
    pub(crate) vertices: Vec<Table<LabelId>>,
    pub(crate) edges: Vec<Table<EdgeTypeId>>,
    vertex_specs: Vec<VertexSpec>,
    edge_specs: Vec<EdgeSpec>,
    format: ExportFormat,
}

/// A label or an edge type as a table.
pub(crate) struct Table<I> {
    pub(crate) of: I,
    /// The names of its files, without their ending.
    pub(crate) stem: String,
    /// The label.
    pub(crate) label: String,
    /// Of edges, the labels of their ends.
    pub(crate) ends: Option<[String; 2]>,
    pub(crate) properties: Vec<Property>,
    form: TableEncoding,
}

/// How the rows of a table are encoded.
pub(crate) enum TableEncoding {
    Parquet(SchemaRef),
    Text(Arc<[TextColumn]>, Style),
}

impl Tables {
    /// The tables of the labels that are asked for. The error is about one that does not exist.
    pub(crate) fn new(schema: &Schema, options: &ExportOptions) -> Result<Self, String> {
        let known: Vec<_> = schema.vertex_labels.iter().map(|label| label.name.as_str()).collect();
        if let Some(missing) = options.labels.iter().find(|label| !known.contains(&label.as_str())) {
            return Err(format!("the graph has no vertex label {missing:?}; it has {}", known.join(", ")));
        }
        let is_wanted = |label: Option<&VertexLabel>| {
            label.is_some_and(|it| options.labels.is_empty() || options.labels.contains(&it.name))
        };
        let mut stems = HashSet::new();
        let format = options.format;
        let mut tables = Self { vertices: vec![], edges: vec![], vertex_specs: vec![], edge_specs: vec![], format };
        let labels: Vec<_> =
            (0u16..).map(LabelId).zip(&schema.vertex_labels).filter(|(_, label)| is_wanted(Some(label))).collect();
        // Labels that share a space of ids need something that tells their keys apart.
        let prefixes = labels.len() > 1;
        for (id, label) in &labels {
            let (form, spec) = vertex_form(label, *id, options.format, prefixes);
            let of = *id;
            let stem = stem("vertices", &[&label.name], &mut stems);
            let properties = label.properties.clone();
            tables.vertices.push(Table { of, stem, label: label.name.clone(), ends: None, properties, form });
            tables.vertex_specs.push(spec);
        }
        for (id, edge) in schema.edge_types() {
            let ends = [schema.label(edge.source), schema.label(edge.target)];
            let ([Some(source), Some(target)], true) = (ends, ends.into_iter().all(is_wanted)) else { continue };
            let (form, spec) = edge_form(edge, id, [source, target], options.format, prefixes);
            let stem = stem("edges", &[&source.name, &edge.label, &target.name], &mut stems);
            let ends = Some([source.name.clone(), target.name.clone()]);
            let properties = edge.properties.clone();
            tables.edges.push(Table { of: id, stem, label: edge.label.clone(), ends, properties, form });
            tables.edge_specs.push(spec);
        }
        Ok(tables)
    }

    /// How the rows of a table are written; vertices come first.
    pub(crate) fn form(&self, table: usize) -> &TableEncoding {
        match table.checked_sub(self.vertices.len()) {
            None => &self.vertices[table].form,
            Some(edges) => &self.edges[edges].form,
        }
    }

    /// A mapping without entries.
    pub(crate) fn mapping(&self) -> Mapping {
        let is_text = self.vertices.iter().any(|table| matches!(table.form, TableEncoding::Text(..)));
        let mut csv = CsvSpec { empty_text: is_text, ..CsvSpec::default() };
        match self.format {
            ExportFormat::Neo4j => csv.lists = UNIT_SEPARATOR,
            ExportFormat::Gremlin => csv.list_escape = Some('\\'),
            _ => {}
        }
        Mapping { csv, ..Mapping::default() }
    }

    /// Adds an entry for each file.
    pub(crate) fn add_files(&self, names: &[FileNames], mapping: &mut Mapping) {
        let (of_vertices, of_edges) = names.split_at(self.vertices.len().min(names.len()));
        for (spec, names) in self.vertex_specs.iter().zip(of_vertices) {
            mapping.vertices.extend(names.iter().map(|name| VertexSpec { file: Some(name.clone()), ..spec.clone() }));
        }
        for (spec, names) in self.edge_specs.iter().zip(of_edges) {
            mapping.edges.extend(names.iter().map(|name| EdgeSpec { file: name.clone(), ..spec.clone() }));
        }
    }
}

impl<I> Table<I> {
    /// The columns that are scanned in addition to the keys of edges.
    pub(crate) fn scanned(&self) -> Vec<String> {
        let key = self.ends.is_none().then(|| KEY_COLUMN.to_owned());
        key.into_iter().chain(self.properties.iter().map(|property| property.name.clone())).collect()
    }
}

/// A name for the files of a table that every file system takes, and that no other table has, on any of them.
fn stem(folder: &str, parts: &[&str], taken: &mut HashSet<String>) -> String {
    let safe = |part: &&str| -> String {
        part.chars().map(|it| if it.is_ascii_alphanumeric() || it == '_' { it } else { '_' }).collect()
    };
    let mut name = parts.iter().map(safe).collect::<Vec<_>>().join("-");
    name.truncate(STEM_CHARS);
    let mut stem = format!("{folder}/{name}");
    let mut number = 2;
    // Some file systems do not tell capital letters from others.
    while !taken.insert(stem.to_lowercase()) {
        stem = format!("{folder}/{name}-{number}");
        number += 1;
    }
    stem
}

/// Names of columns, each of which no other has, and which a header gives back as they are.
#[derive(Default)]
struct Headers(HashSet<String>);

impl Headers {
    /// The name `wanted`, or one like it.
    fn take(&mut self, wanted: &str, number: usize) -> String {
        let mut header = wanted.to_owned();
        // Other readers of headers leave out white space around them.
        if wanted.trim() != wanted || wanted.is_empty() {
            header = format!("column_{number}");
        }
        while !self.0.insert(header.clone()) {
            header.push('_');
        }
        header
    }
}

/// The columns of properties, as their headers and as the mapping reads them.
fn property_columns(
    properties: &[Property],
    before: usize,
    headers: &mut Headers,
    header: impl Fn(&Property) -> String,
) -> Vec<(String, PropertySpec)> {
    let column = |(number, property): (usize, &Property)| {
        let column = headers.take(&header(property), before + number);
        let kind = TypeSpec::from(property.kind);
        let spec = match column == property.name {
            true => PropertySpec::Type(kind),
            false => PropertySpec::Column(ColumnSpec { column: column.clone(), kind: Some(kind) }),
        };
        (column, spec)
    };
    properties.iter().enumerate().map(column).collect()
}

fn vertex_form(label: &VertexLabel, id: LabelId, format: ExportFormat, prefixes: bool) -> (TableEncoding, VertexSpec) {
    let mut headers = Headers::default();
    // Properties have the right to their names.
    let reserve = |wanted: &str| free_name(wanted, &label.properties);
    let key = match format {
        ExportFormat::Gremlin => "~id".to_owned(),
        ExportFormat::Neo4j => format!("{}:ID({})", reserve("key"), id_space(&label.name, id)),
        _ => reserve("key"),
    };
    let key = headers.take(&key, 0);
    let own_label = match format {
        ExportFormat::Neo4j => Some(headers.take(":LABEL", 0)),
        ExportFormat::Gremlin => Some(headers.take("~label", 0)),
        _ => None,
    };
    let properties = property_columns(&label.properties, 1, &mut headers, |property| header(property, format));
    let key_prefix = (format == ExportFormat::Gremlin && prefixes).then(|| prefix(&label.name));
    let form = match format {
        ExportFormat::Parquet => parquet_form([(key.clone(), label.key_type.arrow())], &properties, &label.properties),
        _ => {
            let first = TextColumn { header: key.clone(), content: Content::key(0, key_prefix.clone()) };
            let constant =
                own_label.clone().map(|header| TextColumn { header, content: Content::Constant(label.name.clone()) });
            text_form([first], constant, properties.iter().map(|(header, _)| header), format)
        }
    };
    let spec = VertexSpec {
        file: None,
        label: label.name.clone(),
        key: Some(key),
        key_prefix,
        key_type: Some(label.key_type.into()),
        id_space: None,
        properties: specs(&label.properties, properties),
        ignore: own_label.into_iter().collect(),
        ignore_others: false,
        csv: None,
    };
    (form, spec)
}

fn edge_form(
    edge: &EdgeType,
    id: EdgeTypeId,
    ends: [&VertexLabel; 2],
    format: ExportFormat,
    prefixes: bool,
) -> (TableEncoding, EdgeSpec) {
    let mut headers = Headers::default();
    let names = ends.map(|end| end.name.as_str());
    let wanted = match format {
        ExportFormat::Gremlin => ["~from".to_owned(), "~to".to_owned()],
        ExportFormat::Neo4j => {
            let source = (names[0], edge.source);
            let target = (names[1], edge.target);
            [
                format!(":START_ID({})", id_space(source.0, source.1)),
                format!(":END_ID({})", id_space(target.0, target.1)),
            ]
        }
        _ => ["source", "target"].map(|wanted| free_name(wanted, &edge.properties)),
    };
    let [source, target] = wanted.map(|wanted| headers.take(&wanted, 0));
    let own_label = match format {
        ExportFormat::Neo4j => Some(headers.take(":TYPE", 0)),
        ExportFormat::Gremlin => Some(headers.take("~label", 0)),
        _ => None,
    };
    let own_id = (format == ExportFormat::Gremlin).then(|| headers.take("~id", 0));
    let properties = property_columns(&edge.properties, 2, &mut headers, |property| header(property, format));
    let [source_prefix, target_prefix] =
        names.map(|name| (format == ExportFormat::Gremlin && prefixes).then(|| prefix(name)));
    let form = match format {
        ExportFormat::Parquet => {
            let keys = [(source.clone(), ends[0].key_type.arrow()), (target.clone(), ends[1].key_type.arrow())];
            parquet_form(keys, &properties, &edge.properties)
        }
        _ => {
            let key = |(column, header, prefix): (usize, &String, &Option<String>)| TextColumn {
                header: header.clone(),
                content: Content::key(column, prefix.clone()),
            };
            let keys = [(0, &source, &source_prefix), (1, &target, &target_prefix)].map(key);
            let number =
                own_id.clone().map(|header| TextColumn { header, content: Content::RowNumber(format!("e{}-", id.0)) });
            let constant =
                own_label.clone().map(|header| TextColumn { header, content: Content::Constant(edge.label.clone()) });
            let more = number.into_iter().chain(constant);
            text_form(keys, more, properties.iter().map(|(header, _)| header), format)
        }
    };
    let spec = EdgeSpec {
        file: Default::default(),
        label: edge.label.clone(),
        source,
        source_prefix,
        source_label: ends[0].name.clone(),
        target,
        target_prefix,
        target_label: ends[1].name.clone(),
        optional: false,
        properties: specs(&edge.properties, properties),
        ignore: own_id.into_iter().chain(own_label).collect(),
        ignore_others: None,
        csv: None,
    };
    (form, spec)
}

fn specs(
    properties: &[Property],
    columns: Vec<(String, PropertySpec)>,
) -> std::collections::BTreeMap<String, PropertySpec> {
    properties.iter().map(|property| property.name.clone()).zip(columns.into_iter().map(|(_, spec)| spec)).collect()
}

fn parquet_form(
    keys: impl IntoIterator<Item = (String, arrow_schema::DataType)>,
    columns: &[(String, PropertySpec)],
    properties: &[Property],
) -> TableEncoding {
    let keys = keys.into_iter().map(|(name, kind)| Field::new(name, kind, false));
    let of_properties =
        columns.iter().zip(properties).map(|((name, _), property)| Field::new(name, property.kind.arrow(), true));
    TableEncoding::Parquet(Arc::new(ArrowSchema::new(keys.chain(of_properties).collect::<Vec<_>>())))
}

fn text_form<'a>(
    keys: impl IntoIterator<Item = TextColumn>,
    more: impl IntoIterator<Item = TextColumn>,
    properties: impl Iterator<Item = &'a String>,
    format: ExportFormat,
) -> TableEncoding {
    let mut columns: Vec<TextColumn> = keys.into_iter().collect();
    let first = columns.len();
    columns.extend(more);
    let property = |(number, header): (usize, &String)| TextColumn {
        header: header.clone(),
        content: Content::Column(first + number),
    };
    columns.extend(properties.enumerate().map(property));
    let style = match format {
        ExportFormat::Gremlin => Style { items: Some(ItemForm { separator: ';', is_escaped: true }), infinity: "INF" },
        ExportFormat::Neo4j => {
            Style { items: Some(ItemForm { separator: UNIT_SEPARATOR, is_escaped: false }), infinity: "Infinity" }
        }
        _ => Style { items: None, infinity: "Infinity" },
    };
    TableEncoding::Text(columns.into(), style)
}

/// The name of a column of keys that no property has.
fn free_name(wanted: &str, properties: &[Property]) -> String {
    let mut name = wanted.to_owned();
    while properties.iter().any(|property| property.name == name) {
        name.push('_');
    }
    name
}

/// What ids of a label begin with where labels share a space of ids. A colon of the label is not the one that ends it: else the key `b:c`
/// of label `a` and the key `c` of label `a:b` would be one id.
pub(crate) fn prefix(label: &str) -> String {
    format!("{}:", label.replace('\\', "\\\\").replace(':', "\\:"))
}

/// The id space of a label, in which a header may have parentheses, braces and colons of its own. What is replaced ends with the number of the
/// label, which no name that stays as it is does, so that two labels never share a space.
fn id_space(label: &str, number: LabelId) -> String {
    let is_plain = |it: char| it.is_alphanumeric() || matches!(it, '_' | ' ' | '.');
    match label.chars().all(is_plain) && !label.is_empty() {
        true => label.to_owned(),
        false => format!("{}-{}", label.replace(|it| !is_plain(it), "_"), number.0),
    }
}

/// What a property is called in the header of a format.
fn header(property: &Property, format: ExportFormat) -> String {
    let (scalar, list) = match property.kind {
        PropertyType::Scalar(scalar) => (scalar, ""),
        PropertyType::List(scalar) => (scalar, "[]"),
    };
    match format {
        ExportFormat::Neo4j => {
            let kind = match scalar {
                ScalarType::Bool => "boolean",
                ScalarType::Int64 => "long",
                ScalarType::Float64 => "double",
                ScalarType::String => "string",
                ScalarType::Date => "date",
                ScalarType::Timestamp => "datetime",
            };
            format!("{}:{kind}{list}", property.name)
        }
        ExportFormat::Gremlin => {
            let kind = match scalar {
                ScalarType::Bool => "Bool",
                ScalarType::Int64 => "Long",
                ScalarType::Float64 => "Double",
                ScalarType::String => "String",
                ScalarType::Date | ScalarType::Timestamp => "Date",
            };
            // A colon of a name is not that before a type.
            format!("{}:{kind}{list}", property.name.replace(':', "\\:"))
        }
        _ => property.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_names_of_their_own_on_every_file_system() {
        let mut taken = HashSet::new();
        let mut of = |label: &str| stem("vertices", &[label], &mut taken);
        assert_eq!(of("Person"), "vertices/Person");
        assert_eq!(of("person"), "vertices/person-2");
        assert_eq!(of("../a b"), "vertices/___a_b");
        assert_eq!(of("é"), "vertices/_");
        assert_eq!(of("ü"), "vertices/_-2");
        assert!(of(&"x".repeat(4000)).len() < 100);
    }

    #[test]
    fn headers_are_read_back_as_they_are() {
        let mut headers = Headers::default();
        assert_eq!(headers.take("age", 1), "age");
        assert_eq!(headers.take(" age", 2), "column_2");
        assert_eq!(headers.take("column_2", 3), "column_2_");
        assert_eq!(headers.take("age", 4), "age_");
    }
}
