//! What a row is in the graph.

use std::sync::Arc;

use hoplake::{EdgeKey, Key, Name, Properties, PropertyType, ScalarType, Value, VertexRef};

use super::{EdgeMap, Entry, Item, KeyMap, PropertyMap, VertexMap};
use crate::{Cell, Columns, FeedError, Row, Verdict, value};

/// What a row is.
#[derive(Debug, Clone, PartialEq)]
pub enum Image {
    /// Nothing: it does not match the condition, or names no vertex. What it would be, by its key alone, if it says.
    Nothing(Option<Box<Image>>),
    /// A vertex.
    Vertex(VertexImage),
    /// An edge.
    Edge(EdgeImage),
}

/// A vertex, as far as the row says.
#[derive(Debug, Clone, PartialEq)]
pub struct VertexImage {
    /// Which one.
    pub vertex: VertexRef,
    /// The properties that the row has, null ones as null.
    pub properties: Properties,
    /// Where its foreign keys point, in the order of the mapping, with the properties of their edges.
    pub targets: Vec<(Target, Properties)>,
    /// Whether the row says that it matches the condition.
    pub is_sure: bool,
}

/// Where a foreign key points.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// The row does not say.
    Unsaid,
    /// Nowhere: it is null.
    None,
    /// To this vertex.
    Vertex(VertexRef),
}

/// An edge, as far as the row says.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeImage {
    /// The vertex that it leaves.
    pub source: VertexRef,
    /// The vertex that it reaches.
    pub target: VertexRef,
    /// What distinguishes it from others between the two.
    pub key: Option<EdgeKey>,
    /// The properties that the row has.
    pub properties: Properties,
    /// Whether the row says that it matches the condition.
    pub is_sure: bool,
}

/// A row that cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// Why, as a sentence that names the column.
    pub why: String,
}

/// Where the columns of an entry are in one version of its table.
#[derive(Debug, Clone)]
pub struct Plan {
    condition: Vec<usize>,
    properties: Vec<Placed>,
    /// The key of a vertex, or of the ends of an edge.
    keys: Vec<Vec<usize>>,
    /// Of a vertex: for each foreign key its columns, and the properties of its edge.
    foreign_keys: Vec<(Vec<usize>, Vec<Placed>)>,
    edge_key: Vec<usize>,
}

/// A property, and where its column is.
#[derive(Debug, Clone)]
struct Placed {
    position: usize,
    property: Name,
    kind: PropertyType,
    /// Whether its values have this type already.
    as_is: bool,
}

impl Plan {
    /// Finds the columns of an entry.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) if the table no longer has one.
    pub fn new(entry: &Entry, columns: &Arc<Columns>) -> Result<Self, FeedError> {
        let at = |name: &Name| {
            columns.position(name).ok_or_else(|| {
                FeedError::invalid(format!(
                    "table {} no longer has column {name}, which the mapping names",
                    columns.table
                ))
            })
        };
        let all = |names: &[Name]| names.iter().map(at).collect::<Result<Vec<_>, _>>();
        // A row of a time when the table did not have the column says nothing of it.
        let placed = |map: &PropertyMap| {
            let position = columns.position(&map.column)?;
            let as_is = columns.kinds[position] == Some(map.kind);
            Some(Placed { position, property: map.property.clone(), kind: map.kind, as_is })
        };
        let (keys, foreign_keys, edge_key) = match &entry.item {
            Item::Vertex(vertex) => {
                let edges = vertex.edges.iter().map(|edge| {
                    let properties = edge.properties.iter().filter_map(placed).collect();
                    Ok((all(&edge.key.columns)?, properties))
                });
                (vec![all(&vertex.key.columns)?], edges.collect::<Result<Vec<_>, FeedError>>()?, Vec::new())
            }
            Item::Edge(edge) => {
                let ends = edge.ends.iter().map(|end| all(&end.key.columns)).collect::<Result<Vec<_>, _>>()?;
                (ends, Vec::new(), edge.key.as_ref().map_or(Ok(Vec::new()), |key| all(&key.columns))?)
            }
        };
        let condition = entry.condition.as_ref().map_or(Ok(Vec::new()), |condition| all(condition.columns()))?;
        let mut properties: Vec<_> = entry.properties.iter().filter_map(placed).collect();
        // Columns that came later become properties, too.
        for (position, name) in columns.names.iter().enumerate() {
            let is_known = entry.properties.iter().any(|property| property.column == *name);
            if let Some(kind) = columns.kinds[position].filter(|_| !is_known && entry.takes(name)) {
                properties.push(Placed { position, property: name.clone(), kind, as_is: true });
            }
        }
        Ok(Self { condition, properties, keys, foreign_keys, edge_key })
    }

    /// What a row is.
    ///
    /// # Errors
    /// Why it cannot be applied.
    pub fn image(&self, entry: &Entry, columns: &Columns, row: &Row) -> Result<Image, BadRow> {
        let bad = |position: usize, why: &str| BadRow { why: format!("column {}: {why}", columns.names[position]) };
        let is_sure = match &entry.condition {
            None => true,
            Some(condition) => match condition.verdict(|column| &row[self.condition[column]]) {
                Ok(Verdict::No) => return Ok(Image::Nothing(self.identity(entry, row, &bad).map(Box::new))),
                Ok(verdict) => verdict == Verdict::Yes,
                Err(why) => return Err(BadRow { why }),
            },
        };
        let properties = properties(&self.properties, row, &bad)?;
        match &entry.item {
            Item::Vertex(vertex) => self.vertex(vertex, row, properties, is_sure, &bad).map(Image::Vertex),
            Item::Edge(edge) => self.edge(edge, row, properties, is_sure, &bad),
        }
    }

    /// What a row was, by its key alone if the rest of it cannot be read: what it was does not matter then.
    ///
    /// # Errors
    /// Why not even its key can be read.
    pub fn image_before(&self, entry: &Entry, columns: &Columns, row: &Row) -> Result<Image, BadRow> {
        let bad = |position: usize, why: &str| BadRow { why: format!("column {}: {why}", columns.names[position]) };
        self.image(entry, columns, row).or_else(|error| self.identity(entry, row, &bad).ok_or(error))
    }

    /// The name of what a row is or would be, if it has one: changes of one name have to stay in order.
    pub fn name(&self, entry: &Entry, columns: &Columns, row: &Row) -> Option<String> {
        let bad = |position: usize, why: &str| BadRow { why: format!("column {}: {why}", columns.names[position]) };
        match self.identity(entry, row, &bad)? {
            Image::Vertex(it) => Some(it.vertex.to_string()),
            Image::Edge(it) => {
                let key = it.key.map_or_else(String::new, |key| format!(" with {key}"));
                Some(format!("{} -{}-> {}{key}", it.source, entry.label(), it.target))
            }
            Image::Nothing(_) => None,
        }
    }

    /// What a row would be, by its key alone.
    fn identity(&self, entry: &Entry, row: &Row, bad: &dyn Fn(usize, &str) -> BadRow) -> Option<Image> {
        match &entry.item {
            Item::Vertex(vertex) => {
                let key = key_of(&vertex.key, &self.keys[0], row, bad).ok().flatten()?;
                let vertex = VertexRef { label: vertex.label.clone(), key };
                Some(Image::Vertex(VertexImage {
                    vertex,
                    properties: Properties::new(),
                    targets: Vec::new(),
                    is_sure: false,
                }))
            }
            Item::Edge(edge) => self.edge(edge, row, Properties::new(), false, bad).ok(),
        }
    }

    fn vertex(
        &self,
        vertex: &VertexMap,
        row: &Row,
        properties: Properties,
        is_sure: bool,
        bad: &dyn Fn(usize, &str) -> BadRow,
    ) -> Result<VertexImage, BadRow> {
        let key =
            key_of(&vertex.key, &self.keys[0], row, bad)?.ok_or_else(|| bad(self.keys[0][0], "the key is null"))?;
        let mut targets = Vec::with_capacity(self.foreign_keys.len());
        for (edge, (positions, of_edge)) in vertex.edges.iter().zip(&self.foreign_keys) {
            let is_unsaid = positions.iter().any(|position| row[*position] == Cell::Absent);
            let target = match is_unsaid {
                true => Target::Unsaid,
                false => key_of(&edge.key, positions, row, bad)?
                    .map_or(Target::None, |key| Target::Vertex(VertexRef { label: edge.other.clone(), key })),
            };
            targets.push((target, self::properties(of_edge, row, bad)?));
        }
        Ok(VertexImage { vertex: VertexRef { label: vertex.label.clone(), key }, properties, targets, is_sure })
    }

    fn edge(
        &self,
        edge: &EdgeMap,
        row: &Row,
        mut properties: Properties,
        is_sure: bool,
        bad: &dyn Fn(usize, &str) -> BadRow,
    ) -> Result<Image, BadRow> {
        let end = |number: usize| {
            let key = key_of(&edge.ends[number].key, &self.keys[number], row, bad)?;
            Ok(key.map(|key| VertexRef { label: edge.ends[number].label.clone(), key }))
        };
        let (Some(source), Some(target)) = (end(0)?, end(1)?) else { return Ok(Image::Nothing(None)) };
        let key = match &edge.key {
            None => None,
            Some(map) => {
                let parts = values(&self.edge_key, row, bad)?;
                let first = self.edge_key[0];
                let value = match &parts[..] {
                    [one] => value::converted(one, map.kind).map_err(|why| bad(first, &why))?,
                    several => Value::String(value::joined(several).map_err(|why| bad(first, &why))?),
                };
                if value == Value::Null {
                    return Err(bad(first, "the key is null"));
                }
                properties.insert(map.property.clone(), value.clone());
                Some(EdgeKey { property: map.property.clone(), value })
            }
        };
        Ok(Image::Edge(EdgeImage { source, target, key, properties, is_sure }))
    }
}

/// The properties that a row has.
fn properties(placed: &[Placed], row: &Row, bad: &dyn Fn(usize, &str) -> BadRow) -> Result<Properties, BadRow> {
    let mut named = Vec::with_capacity(placed.len());
    for Placed { position, property, kind, as_is } in placed {
        let value = match &row[*position] {
            Cell::Absent => continue,
            Cell::Bad(why) => return Err(bad(*position, why)),
            Cell::Digits(digits) if *kind == PropertyType::Scalar(ScalarType::String) => {
                Value::String(digits.to_string())
            }
            Cell::Digits(_) => return Err(bad(*position, BEYOND)),
            Cell::Value(value) if *as_is => value.clone(),
            Cell::Value(value) => value::converted(value, *kind).map_err(|why| bad(*position, &why))?,
        };
        named.push((property.clone(), value));
    }
    Ok(named.into_iter().collect())
}

/// The key that columns have; `None` if one of them is null.
fn key_of(
    map: &KeyMap,
    positions: &[usize],
    row: &Row,
    bad: &dyn Fn(usize, &str) -> BadRow,
) -> Result<Option<Key>, BadRow> {
    let parts = values(positions, row, bad)?;
    if parts.contains(&Value::Null) {
        return Ok(None);
    }
    value::key(&parts, map.key_type).map(Some).map_err(|why| bad(positions[0], &why))
}

const BEYOND: &str = "it is beyond the integers of 64 bits; give the column the type string";

fn values(positions: &[usize], row: &Row, bad: &dyn Fn(usize, &str) -> BadRow) -> Result<Vec<Value>, BadRow> {
    let value = |position: &usize| match &row[*position] {
        Cell::Value(value) => Ok(value.clone()),
        Cell::Bad(why) => Err(bad(*position, why)),
        Cell::Digits(digits) => Ok(Value::String(digits.to_string())),
        Cell::Absent => Err(bad(*position, "the log does not have it, and it identifies the row")),
    };
    positions.iter().map(value).collect()
}
