//! A GraphML document: nodes, then edges, whose data refer to keys that are declared before them.
//!
//! XML has no character below U+0020 but tab and line ends, nor U+FFFE and U+FFFF: in data these become U+FFFD. In ids and names, which
//! have to stay different, they become `\uFFFF`, and a backslash two. Lists are arrays of JSON, dates and moments text. Numbers are
//! those of XML Schema, so that infinity is `INF`.
//!
//! **Names.** A reader keeps an attribute under its name, and one name under one type. A property that has two types in different labels
//! is an attribute for each: `age` and `age (string)`.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use arrow_array::RecordBatch;
use hoplake_format::{PropertyType, ScalarType};
use quick_xml::{
    Writer,
    events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event},
};

use crate::{
    cells::Cells,
    encoder::Encoder,
    tables::{Tables, prefix},
};

const INFINITY: &str = "INF";
const NAMESPACE: &str = "http://graphml.graphdrawing.org/xmlns";

/// A key: for nodes or edges, the name of the attribute, and its type.
type AttributeKey = (&'static str, String, &'static str);

/// Writes the document.
pub(crate) struct GraphMlEncoder {
    writer: Writer<Vec<u8>>,
    tables: Vec<XmlTable>,
    keys: Vec<AttributeKey>,
    begun: bool,
}

struct XmlTable {
    label: String,
    /// Of edges, what the ids of their ends begin with.
    ends: Option<[String; 2]>,
    /// The ids of the keys of label, key of the vertex, and properties.
    of_label: String,
    of_key: String,
    of_properties: Vec<String>,
}

impl GraphMlEncoder {
    pub(crate) fn new(tables: &Tables) -> Self {
        let mut ids = HashMap::new();
        let mut keys = Vec::new();
        let mut names = HashSet::new();
        let mut id_of = |key: AttributeKey| -> String {
            let next = ids.len();
            ids.entry(key.clone())
                .or_insert_with(|| {
                    let (of, property, kind) = key;
                    let mut name = distinct(&property).into_owned();
                    if names.contains(&(of, name.clone())) {
                        name = format!("{name} ({kind})");
                    }
                    // A property may be called like that by itself.
                    while !names.insert((of, name.clone())) {
                        name.push('_');
                    }
                    keys.push((of, name, kind));
                    format!("d{next}")
                })
                .clone()
        };
        let mut all = Vec::new();
        let of_vertices = tables.vertices.iter().map(|it| (&it.label, &it.ends, &it.properties));
        let of_edges = tables.edges.iter().map(|it| (&it.label, &it.ends, &it.properties));
        for (label, ends, properties) in of_vertices.chain(of_edges) {
            let of = if ends.is_some() { "edge" } else { "node" };
            all.push(XmlTable {
                label: label.clone(),
                ends: ends.as_ref().map(|ends| ends.each_ref().map(|end| prefix(end))),
                of_label: id_of((of, "~label".into(), "string")),
                of_key: id_of(("node", "~key".into(), "string")),
                of_properties: properties.iter().map(|it| id_of((of, it.name.clone(), type_name(it.kind)))).collect(),
            });
        }
        Self { writer: Writer::new(Vec::new()), tables: all, keys, begun: false }
    }

    fn event(&mut self, event: Event<'_>) -> Result<(), String> {
        self.writer.write_event(event).map_err(|error| error.to_string())
    }

    fn begin(&mut self) -> Result<(), String> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        self.event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
        self.line()?;
        self.event(Event::Start(BytesStart::new("graphml").with_attributes([("xmlns", NAMESPACE)])))?;
        self.line()?;
        for (number, (of, name, kind)) in std::mem::take(&mut self.keys).into_iter().enumerate() {
            let id = format!("d{number}");
            let attributes =
                [("id", id), ("for", of.into()), ("attr.name", attribute(&name)), ("attr.type", kind.into())];
            let attributes = attributes.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            self.event(Event::Empty(BytesStart::new("key").with_attributes(attributes)))?;
            self.line()?;
        }
        let attributes = [("id", "G"), ("edgedefault", "directed")];
        self.event(Event::Start(BytesStart::new("graph").with_attributes(attributes)))?;
        self.line()
    }

    fn line(&mut self) -> Result<(), String> {
        self.event(Event::Text(BytesText::from_escaped("\n")))
    }

    fn data(&mut self, key: &str, text: &str) -> Result<(), String> {
        self.event(Event::Start(BytesStart::new("data").with_attributes([("key", key)])))?;
        // A reader makes a line feed of a carriage return that is not a reference.
        let text = quick_xml::escape::escape(valid(text)).replace('\r', "&#13;");
        self.event(Event::Text(BytesText::from_escaped(text)))?;
        self.event(Event::End(BytesEnd::new("data")))
    }
}

impl Encoder for GraphMlEncoder {
    fn write(&mut self, table: usize, batch: &RecordBatch) -> Result<(), String> {
        self.begin()?;
        let cells: Vec<Cells<'_>> =
            batch.columns().iter().map(|column| Cells::new(column.as_ref())).collect::<Result<_, _>>()?;
        let text = |column: usize, row: usize, before: &str| {
            let mut text = before.to_owned();
            cells[column].append(row, INFINITY, &mut text);
            text
        };
        let tables = std::mem::take(&mut self.tables);
        let XmlTable { label, ends, of_label, of_key, of_properties } = &tables[table];
        for row in 0..batch.num_rows() {
            let (name, attributes, first) = match ends {
                None => ("node", vec![("id", text(0, row, &prefix(label)))], 1),
                Some([source, target]) => {
                    ("edge", vec![("source", text(0, row, source)), ("target", text(1, row, target))], 2)
                }
            };
            let attributes: Vec<_> =
                attributes.into_iter().map(|(name, id)| (name, attribute(&distinct(&id)))).collect();
            let attributes = attributes.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            self.event(Event::Start(BytesStart::new(name).with_attributes(attributes)))?;
            self.data(of_label, label)?;
            if ends.is_none() {
                self.data(of_key, &text(0, row, ""))?;
            }
            for (number, key) in of_properties.iter().enumerate() {
                if !cells[first + number].is_null(row) {
                    self.data(key, &text(first + number, row, ""))?;
                }
            }
            self.event(Event::End(BytesEnd::new(name)))?;
            self.line()?;
        }
        self.tables = tables;
        Ok(())
    }

    fn take(&mut self) -> Result<Vec<u8>, String> {
        Ok(std::mem::take(self.writer.get_mut()))
    }

    fn end(&mut self) -> Result<(), String> {
        self.begin()?;
        self.event(Event::End(BytesEnd::new("graph")))?;
        self.line()?;
        self.event(Event::End(BytesEnd::new("graphml")))?;
        self.line()
    }

    fn kept_bytes(&self) -> u64 {
        0
    }
}

/// The value of an attribute of valid characters, escaped; a reader would make spaces of white space that is not a reference.
fn attribute(value: &str) -> String {
    let escaped = quick_xml::escape::escape(value);
    escaped.replace('\t', "&#9;").replace('\n', "&#10;").replace('\r', "&#13;")
}

/// Whether XML has a character.
fn is_valid(it: char) -> bool {
    it >= ' ' && !matches!(it, '\u{fffe}' | '\u{ffff}') || matches!(it, '\t' | '\n' | '\r')
}

/// The text with what XML does not have replaced.
fn valid(text: &str) -> String {
    text.chars().map(|it| if is_valid(it) { it } else { char::REPLACEMENT_CHARACTER }).collect()
}

/// The text with what XML does not have escaped, so that no other text becomes the same.
fn distinct(text: &str) -> Cow<'_, str> {
    if text.chars().all(|it| is_valid(it) && it != '\\') {
        return text.into();
    }
    let mut distinct = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\\' => distinct.push_str("\\\\"),
            it if is_valid(it) => distinct.push(it),
            it => distinct.push_str(&format!("\\u{:04X}", u32::from(it))),
        }
    }
    distinct.into()
}

fn type_name(kind: PropertyType) -> &'static str {
    match kind {
        PropertyType::Scalar(ScalarType::Bool) => "boolean",
        PropertyType::Scalar(ScalarType::Int64) => "long",
        PropertyType::Scalar(ScalarType::Float64) => "double",
        _ => "string",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_differ_stay_different() {
        assert_eq!(distinct("a b"), "a b");
        let ids = ["a\u{1}", "a\u{2}", "a\u{fffe}", "a\u{ffff}", "a\u{fffd}", "a\\u0001", "a\\", "a\\\\", "a\t", "a\n"];
        let written: HashSet<_> = ids.iter().map(|id| distinct(id)).collect();
        assert_eq!(written.len(), ids.len());
        assert!(written.iter().all(|id| id.chars().all(is_valid)));
    }
}
