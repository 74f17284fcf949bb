//! The manifest: one object that names everything of a snapshot.
//!
//! ```text
//! magic 8 | length u32 | CRC-32C u32 | payload (protocol buffer) | magic 8
//! ```
//! It is published once, by creating an object that must not exist. It names every object with its
//! length, checksum and the positions from which it is opened, so that opening probes nothing.

use prost::Message;

use crate::{
    Direction, EdgeType, EdgeTypeId, FormatError, KeyType, LabelId, Property, PropertyType, ScalarType, Schema,
    VertexId, VertexLabel,
    constants::{FORMAT_VERSION, MANIFEST_MAGIC},
    segment::{SectionKind, SegmentEnd},
};

/// A snapshot: its schema, its objects and its numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// Its version, from 1.
    pub version: u64,
    /// When it was made, in milliseconds since 1970.
    pub created_unix_ms: u64,
    /// Who made it: the writer's ULID.
    pub writer: String,
    /// Why, in the writer's words.
    pub message: String,
    /// Labels, edge types and properties.
    pub schema: Schema,
    /// Vertices of each label, by [`LabelId`]; also the next ordinal.
    pub vertex_counts: Vec<u64>,
    /// Edges of each edge type, by [`EdgeTypeId`].
    pub edge_counts: Vec<u64>,
    /// Degrees of each edge type, out and in.
    pub degrees: Vec<[DegreeSummary; 2]>,
    /// Sections: keys and adjacency.
    pub segments: Vec<SegmentRef>,
    /// Tables: properties.
    pub tables: Vec<TableRef>,
}

/// The degrees of an edge type in one direction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DegreeSummary {
    /// The largest degree.
    pub max: u64,
    /// How many vertices have a degree of 1, of 2 to 3, of 4 to 7, and so on.
    pub histogram: Vec<u64>,
}

impl DegreeSummary {
    /// Counts a vertex of this degree; a degree of 0 counts nowhere.
    pub fn add(&mut self, degree: u64) {
        let Some(bucket) = degree.checked_ilog2() else { return };
        let bucket = bucket as usize;
        if self.histogram.len() <= bucket {
            self.histogram.resize(bucket + 1, 0);
        }
        self.histogram[bucket] += 1;
        self.max = self.max.max(degree);
    }

    /// How many vertices have at least one edge.
    pub fn vertices(&self) -> u64 {
        self.histogram.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// A segment, as a manifest names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentRef {
    /// Its name below the graph's prefix.
    pub name: String,
    /// Its length and the positions of its filters and index.
    pub end: SegmentEnd,
    /// What its sections hold, in their order.
    pub sections: Vec<SectionKind>,
    /// CRC-32C of the whole object.
    pub checksum: u32,
}

/// What the rows of a table belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TableOwner {
    /// Vertices of a label, by ordinal.
    Vertices(LabelId),
    /// Edges of a type, by their position in the adjacency of one direction.
    Edges(EdgeTypeId, Direction),
}

/// A table of properties: a Parquet file whose rows are consecutive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRef {
    /// Its name below the graph's prefix.
    pub name: String,
    /// What its rows belong to.
    pub owner: TableOwner,
    /// The ordinal or edge position of its first row.
    pub first_row: u64,
    /// How many rows it has.
    pub rows: u64,
    /// Bytes of the object.
    pub length: u64,
    /// Where its page index and footer begin.
    pub tail_position: u64,
    /// CRC-32C of the bytes from there.
    pub tail_checksum: u32,
    /// CRC-32C of the whole object.
    pub checksum: u32,
}

impl Manifest {
    /// Its bytes as an object.
    pub fn encode(&self) -> Vec<u8> {
        let payload = ManifestMessage::from(self).encode_to_vec();
        let mut out = MANIFEST_MAGIC.to_vec();
        out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        out.extend_from_slice(&crc32c::crc32c(&payload).to_le_bytes());
        out.extend_from_slice(&payload);
        out.extend_from_slice(&MANIFEST_MAGIC);
        out
    }

    /// Reads an object.
    ///
    /// # Errors
    /// [`FormatError::Corrupt`] if its checks fail, [`FormatError::Unsupported`] if a newer build wrote it.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let too_short = || corrupt(format!("{} bytes are too few", bytes.len()));
        let (magic, rest) = bytes.split_first_chunk::<8>().ok_or_else(too_short)?;
        let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(too_short)?;
        let (checksum, rest) = rest.split_first_chunk::<4>().ok_or_else(too_short)?;
        let (payload, end_magic) = rest.split_last_chunk::<8>().ok_or_else(too_short)?;
        if *magic != MANIFEST_MAGIC || *end_magic != MANIFEST_MAGIC {
            return Err(corrupt("it does not begin and end as a manifest does".into()));
        }
        let length = u32::from_le_bytes(*length);
        if length as usize != payload.len() {
            return Err(corrupt(format!("it is {} bytes and says {length}", payload.len())));
        }
        if crc32c::crc32c(payload) != u32::from_le_bytes(*checksum) {
            return Err(corrupt("it fails its checksum".into()));
        }
        ManifestMessage::decode(payload).map_err(|error| corrupt(error.to_string()))?.try_into()
    }
}

#[derive(Clone, PartialEq, Message)]
struct ManifestMessage {
    #[prost(uint32, tag = "1")]
    format_version: u32,
    #[prost(uint64, tag = "2")]
    version: u64,
    #[prost(uint64, tag = "3")]
    created_unix_ms: u64,
    #[prost(string, tag = "4")]
    writer: String,
    #[prost(string, tag = "5")]
    message: String,
    #[prost(message, repeated, tag = "6")]
    labels: Vec<LabelMessage>,
    #[prost(message, repeated, tag = "7")]
    edge_types: Vec<EdgeTypeMessage>,
    #[prost(message, repeated, tag = "8")]
    segments: Vec<SegmentMessage>,
    #[prost(message, repeated, tag = "9")]
    tables: Vec<TableMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct PropertyMessage {
    #[prost(string, tag = "1")]
    name: String,
    /// 1 bool, 2 int64, 3 float64, 4 string, 5 date, 6 timestamp; plus 16 for a list.
    #[prost(uint32, tag = "2")]
    kind: u32,
}

#[derive(Clone, PartialEq, Message)]
struct LabelMessage {
    #[prost(string, tag = "1")]
    name: String,
    /// 1 int64, 2 string.
    #[prost(uint32, tag = "2")]
    key_type: u32,
    #[prost(message, repeated, tag = "3")]
    properties: Vec<PropertyMessage>,
    #[prost(uint64, tag = "4")]
    count: u64,
}

#[derive(Clone, PartialEq, Message)]
struct DegreeMessage {
    #[prost(uint64, tag = "1")]
    max: u64,
    #[prost(uint64, repeated, tag = "2")]
    histogram: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct EdgeTypeMessage {
    #[prost(string, tag = "1")]
    label: String,
    #[prost(uint32, tag = "2")]
    source: u32,
    #[prost(uint32, tag = "3")]
    target: u32,
    #[prost(message, repeated, tag = "4")]
    properties: Vec<PropertyMessage>,
    #[prost(uint64, tag = "5")]
    count: u64,
    #[prost(message, optional, tag = "6")]
    degrees_out: Option<DegreeMessage>,
    #[prost(message, optional, tag = "7")]
    degrees_in: Option<DegreeMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct SegmentMessage {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(uint64, tag = "2")]
    length: u64,
    #[prost(uint64, tag = "3")]
    filters_position: u64,
    #[prost(uint64, tag = "4")]
    index_position: u64,
    #[prost(fixed32, tag = "5")]
    checksum: u32,
    /// The kind of each section (as in a segment's index) times 65,536, plus its owner.
    #[prost(uint32, repeated, tag = "6")]
    sections: Vec<u32>,
}

#[derive(Clone, PartialEq, Message)]
struct TableMessage {
    #[prost(string, tag = "1")]
    name: String,
    /// 1 vertices, 2 edges out, 3 edges in.
    #[prost(uint32, tag = "2")]
    kind: u32,
    #[prost(uint32, tag = "3")]
    owner: u32,
    #[prost(uint64, tag = "4")]
    first_row: u64,
    #[prost(uint64, tag = "5")]
    rows: u64,
    #[prost(uint64, tag = "6")]
    length: u64,
    #[prost(uint64, tag = "7")]
    tail_position: u64,
    #[prost(fixed32, tag = "8")]
    tail_checksum: u32,
    #[prost(fixed32, tag = "9")]
    checksum: u32,
}

const LIST: u32 = 16;

impl From<&Property> for PropertyMessage {
    fn from(property: &Property) -> Self {
        let number = |scalar| match scalar {
            ScalarType::Bool => 1,
            ScalarType::Int64 => 2,
            ScalarType::Float64 => 3,
            ScalarType::String => 4,
            ScalarType::Date => 5,
            ScalarType::Timestamp => 6,
        };
        let kind = match property.kind {
            PropertyType::Scalar(scalar) => number(scalar),
            PropertyType::List(scalar) => number(scalar) + LIST,
        };
        Self { name: property.name.clone(), kind }
    }
}

impl TryFrom<PropertyMessage> for Property {
    type Error = FormatError;

    fn try_from(message: PropertyMessage) -> Result<Self, FormatError> {
        let scalar = match message.kind % LIST {
            1 => ScalarType::Bool,
            2 => ScalarType::Int64,
            3 => ScalarType::Float64,
            4 => ScalarType::String,
            5 => ScalarType::Date,
            6 => ScalarType::Timestamp,
            _ => return Err(unsupported(format!("a property of type {}", message.kind))),
        };
        let kind = match message.kind / LIST {
            0 => PropertyType::Scalar(scalar),
            1 => PropertyType::List(scalar),
            _ => return Err(unsupported(format!("a property of type {}", message.kind))),
        };
        Ok(Self { name: message.name, kind })
    }
}

impl From<&DegreeSummary> for DegreeMessage {
    fn from(degrees: &DegreeSummary) -> Self {
        Self { max: degrees.max, histogram: degrees.histogram.clone() }
    }
}

impl From<DegreeMessage> for DegreeSummary {
    fn from(message: DegreeMessage) -> Self {
        Self { max: message.max, histogram: message.histogram }
    }
}

fn properties_message(properties: &[Property]) -> Vec<PropertyMessage> {
    properties.iter().map(PropertyMessage::from).collect()
}

impl From<&Manifest> for ManifestMessage {
    fn from(manifest: &Manifest) -> Self {
        let labels = manifest.schema.vertex_labels.iter().zip(&manifest.vertex_counts);
        let labels = labels.map(|(label, count)| LabelMessage {
            name: label.name.clone(),
            key_type: if label.key_type == KeyType::Int64 { 1 } else { 2 },
            properties: properties_message(&label.properties),
            count: *count,
        });
        let edge_types = manifest.schema.edge_types.iter().zip(&manifest.edge_counts).zip(&manifest.degrees);
        let edge_types = edge_types.map(|((edge, count), [out, into])| EdgeTypeMessage {
            label: edge.label.clone(),
            source: edge.source.0.into(),
            target: edge.target.0.into(),
            properties: properties_message(&edge.properties),
            count: *count,
            degrees_out: Some(out.into()),
            degrees_in: Some(into.into()),
        });
        Self {
            format_version: FORMAT_VERSION,
            version: manifest.version,
            created_unix_ms: manifest.created_unix_ms,
            writer: manifest.writer.clone(),
            message: manifest.message.clone(),
            labels: labels.collect(),
            edge_types: edge_types.collect(),
            segments: manifest.segments.iter().map(SegmentMessage::from).collect(),
            tables: manifest.tables.iter().map(TableMessage::from).collect(),
        }
    }
}

impl From<&SegmentRef> for SegmentMessage {
    fn from(segment: &SegmentRef) -> Self {
        Self {
            name: segment.name.clone(),
            length: segment.end.length,
            filters_position: segment.end.filters_position,
            index_position: segment.end.index_position,
            checksum: segment.checksum,
            sections: segment.sections.iter().map(|kind| kind.to_number()).collect(),
        }
    }
}

impl From<&TableRef> for TableMessage {
    fn from(table: &TableRef) -> Self {
        let (kind, owner) = match table.owner {
            TableOwner::Vertices(label) => (1, label.0),
            TableOwner::Edges(edge_type, Direction::Out) => (2, edge_type.0),
            TableOwner::Edges(edge_type, Direction::In) => (3, edge_type.0),
        };
        Self {
            name: table.name.clone(),
            kind,
            owner: owner.into(),
            first_row: table.first_row,
            rows: table.rows,
            length: table.length,
            tail_position: table.tail_position,
            tail_checksum: table.tail_checksum,
            checksum: table.checksum,
        }
    }
}

impl TryFrom<ManifestMessage> for Manifest {
    type Error = FormatError;

    fn try_from(message: ManifestMessage) -> Result<Self, FormatError> {
        if message.format_version != FORMAT_VERSION {
            return Err(unsupported(format!("format version {}", message.format_version)));
        }
        // The version after it must be a version too.
        if message.version == 0 || message.version == u64::MAX {
            return Err(corrupt(format!("it says that it is version {}", message.version)));
        }
        let mut schema = Schema::default();
        let (mut vertex_counts, mut edge_counts, mut degrees) = (Vec::new(), Vec::new(), Vec::new());
        for label in message.labels {
            if label.count > VertexId::ORDINAL_MAX {
                return Err(corrupt(format!("label {} has {} vertices", label.name, label.count)));
            }
            vertex_counts.push(label.count);
            schema.vertex_labels.push(label.try_into()?);
        }
        for edge in message.edge_types {
            edge_counts.push(edge.count);
            let summaries = [edge.degrees_out.clone(), edge.degrees_in.clone()];
            degrees.push(summaries.map(|degrees| degrees.unwrap_or_default().into()));
            schema.edge_types.push(edge.try_into()?);
        }
        schema.validate().map_err(|error| corrupt(error.to_string()))?;
        let segments = message.segments.into_iter().map(SegmentRef::try_from).collect::<Result<Vec<_>, _>>()?;
        for kind in segments.iter().flat_map(|segment: &SegmentRef| &segment.sections) {
            let known = match kind {
                SectionKind::Keys(label) => schema.label(*label).is_some(),
                SectionKind::Adjacency(edge_type, _) => schema.edge_type(*edge_type).is_some(),
            };
            if !known {
                return Err(corrupt(format!("section {kind:?} belongs to nothing in the schema")));
            }
        }
        let tables = message.tables.into_iter().map(TableRef::try_from).collect::<Result<Vec<_>, _>>()?;
        for table in &tables {
            let known = match table.owner {
                TableOwner::Vertices(label) => schema.label(label).is_some(),
                TableOwner::Edges(edge_type, _) => schema.edge_type(edge_type).is_some(),
            };
            if !known {
                return Err(corrupt(format!("table {} belongs to nothing in the schema", table.name)));
            }
        }
        Ok(Self {
            version: message.version,
            created_unix_ms: message.created_unix_ms,
            writer: message.writer,
            message: message.message,
            schema,
            vertex_counts,
            edge_counts,
            degrees,
            segments,
            tables,
        })
    }
}

fn properties(messages: Vec<PropertyMessage>) -> Result<Vec<Property>, FormatError> {
    messages.into_iter().map(Property::try_from).collect()
}

fn id(number: u32) -> Result<u16, FormatError> {
    u16::try_from(number).map_err(|_| corrupt(format!("{number} is too large for the number of a label")))
}

impl TryFrom<LabelMessage> for VertexLabel {
    type Error = FormatError;

    fn try_from(message: LabelMessage) -> Result<Self, FormatError> {
        let key_type = match message.key_type {
            1 => KeyType::Int64,
            2 => KeyType::String,
            other => return Err(unsupported(format!("a key of type {other}"))),
        };
        Ok(Self { name: message.name, key_type, properties: properties(message.properties)? })
    }
}

impl TryFrom<EdgeTypeMessage> for EdgeType {
    type Error = FormatError;

    fn try_from(message: EdgeTypeMessage) -> Result<Self, FormatError> {
        Ok(Self {
            label: message.label,
            source: LabelId(id(message.source)?),
            target: LabelId(id(message.target)?),
            properties: properties(message.properties)?,
        })
    }
}

impl TryFrom<SegmentMessage> for SegmentRef {
    type Error = FormatError;

    fn try_from(message: SegmentMessage) -> Result<Self, FormatError> {
        let SegmentMessage { name, length, filters_position, index_position, checksum, sections } = message;
        if filters_position > index_position || index_position > length {
            return Err(corrupt(format!("segment {name} has its index at {index_position} of {length} bytes")));
        }
        let kind = |number| SectionKind::from_number(number).ok_or_else(|| unsupported(format!("section {number:x}")));
        let sections = sections.into_iter().map(kind).collect::<Result<_, _>>()?;
        Ok(Self { name, end: SegmentEnd { length, filters_position, index_position }, sections, checksum })
    }
}

impl TryFrom<TableMessage> for TableRef {
    type Error = FormatError;

    fn try_from(message: TableMessage) -> Result<Self, FormatError> {
        let number = id(message.owner)?;
        let owner = match message.kind {
            1 => TableOwner::Vertices(LabelId(number)),
            2 => TableOwner::Edges(EdgeTypeId(number), Direction::Out),
            3 => TableOwner::Edges(EdgeTypeId(number), Direction::In),
            other => return Err(unsupported(format!("a table of kind {other}"))),
        };
        if message.tail_position > message.length || message.first_row.checked_add(message.rows).is_none() {
            return Err(corrupt(format!("table {} contradicts itself", message.name)));
        }
        Ok(Self {
            name: message.name,
            owner,
            first_row: message.first_row,
            rows: message.rows,
            length: message.length,
            tail_position: message.tail_position,
            tail_checksum: message.tail_checksum,
            checksum: message.checksum,
        })
    }
}

fn corrupt(why: String) -> FormatError {
    FormatError::corrupt("manifest", why)
}

fn unsupported(found: String) -> FormatError {
    FormatError::Unsupported { what: "manifest", found, supported: format!("format version {FORMAT_VERSION}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Manifest {
        let property = |name: &str, kind| Property { name: name.into(), kind };
        let mut degrees = [DegreeSummary::default(), DegreeSummary::default()];
        [0, 1, 2, 3, 900].into_iter().for_each(|degree| degrees[0].add(degree));
        Manifest {
            version: 3,
            created_unix_ms: 1_700_000_000_000,
            writer: "01JDX".into(),
            message: "load".into(),
            schema: Schema {
                vertex_labels: vec![VertexLabel {
                    name: "Person".into(),
                    key_type: KeyType::Int64,
                    properties: vec![property("email", PropertyType::List(ScalarType::String))],
                }],
                edge_types: vec![EdgeType {
                    label: "knows".into(),
                    source: LabelId(0),
                    target: LabelId(0),
                    properties: vec![property("since", PropertyType::Scalar(ScalarType::Timestamp))],
                }],
            },
            vertex_counts: vec![5],
            edge_counts: vec![906],
            degrees: vec![degrees],
            segments: vec![SegmentRef {
                name: "data/a.hls".into(),
                end: SegmentEnd { length: 90, filters_position: 50, index_position: 60 },
                sections: vec![
                    SectionKind::Keys(LabelId(0)),
                    SectionKind::Adjacency(EdgeTypeId(0), Direction::Out),
                    SectionKind::Adjacency(EdgeTypeId(0), Direction::In),
                ],
                checksum: 7,
            }],
            tables: vec![TableRef {
                name: "data/b.parquet".into(),
                owner: TableOwner::Edges(EdgeTypeId(0), Direction::In),
                first_row: 0,
                rows: 906,
                length: 1000,
                tail_position: 800,
                tail_checksum: 8,
                checksum: 9,
            }],
        }
    }

    #[test]
    fn a_manifest_is_read_as_written() {
        let manifest = sample();
        assert_eq!(Manifest::decode(&manifest.encode()).unwrap(), manifest);
        assert_eq!(manifest.degrees[0][0].histogram, [1, 2, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!((manifest.degrees[0][0].vertices(), manifest.degrees[0][0].max), (4, 900));
    }

    #[test]
    fn every_flipped_bit_and_cut_is_found() {
        let mut bytes = sample().encode();
        for cut in 0..bytes.len() {
            assert!(Manifest::decode(&bytes[..cut]).is_err());
        }
        for byte in 0..bytes.len() {
            for bit in 0..8 {
                bytes[byte] ^= 1 << bit;
                assert!(Manifest::decode(&bytes).is_err(), "byte {byte} bit {bit}");
                bytes[byte] ^= 1 << bit;
            }
        }
    }

    #[test]
    fn a_newer_version_is_refused_by_name() {
        let message = ManifestMessage { format_version: 9, ..ManifestMessage::from(&sample()) };
        let error = Manifest::try_from(message).unwrap_err();
        assert!(error.to_string().contains("format version 9"), "{error}");
    }
}
