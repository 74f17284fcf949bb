//! From a manifest to its messages and back, and what must hold before one is believed.

use std::collections::BTreeMap;

use prost::Message;

use super::{
    Applied, Change, ChangeCounts, ChangeKind, DegreeSummary, First, Manifest, RequestDigest, SectionRef, SegmentRef,
    TableOwner, TableRef, VersionRange, VertexCount, WriterLease, WrittenSpan, corrupt,
    messages::{
        AppliedMessage, CountsMessage, DegreeMessage, EdgeTypeMessage, IndexMessage, LabelMessage, ManifestMessage,
        PropertyMessage, SectionMessage, SegmentMessage, SpanEdgesMessage, SpanMessage, TableMessage, VersionMessage,
        WriterLeaseMessage,
    },
    queries, unsupported,
};
use crate::{
    CollectionType, Direction, EdgeType, EdgeTypeId, FormatError, IndexId, ItemType, KeyType, LabelId, LogicalType,
    Property, PropertyIndex, PropertyType, ScalarType, Schema, VertexId, VertexLabel,
    constants::FORMAT_VERSION,
    segment::{SectionKind, SegmentEnd},
};

/// Reads the message of a manifest, if it is of this version of the format: in others, fields may be something else.
pub(super) fn decode(payload: &[u8]) -> Result<ManifestMessage, FormatError> {
    let damaged = |error: prost::DecodeError| corrupt(error.to_string());
    let VersionMessage { format_version } = VersionMessage::decode(payload).map_err(damaged)?;
    if format_version != FORMAT_VERSION {
        return Err(unsupported(format!("format version {format_version}")));
    }
    ManifestMessage::decode(payload).map_err(damaged)
}

/// The number of a kind of change.
fn change_number(kind: ChangeKind) -> u32 {
    match kind {
        ChangeKind::Load => 1,
        ChangeKind::Commit => 2,
        ChangeKind::Compaction => 3,
        ChangeKind::Fence => 4,
        ChangeKind::Restore => 5,
        ChangeKind::Tag => 6,
        ChangeKind::Index => 7,
        ChangeKind::Query => 8,
    }
}

fn change_kind(number: u32) -> Result<ChangeKind, FormatError> {
    match number {
        1 => Ok(ChangeKind::Load),
        2 => Ok(ChangeKind::Commit),
        3 => Ok(ChangeKind::Compaction),
        4 => Ok(ChangeKind::Fence),
        5 => Ok(ChangeKind::Restore),
        6 => Ok(ChangeKind::Tag),
        7 => Ok(ChangeKind::Index),
        8 => Ok(ChangeKind::Query),
        other => Err(unsupported(format!("a change of kind {other}"))),
    }
}

/// The version range of two numbers, in a manifest of this version.
fn version_range(since: u64, until: u64, version: u64) -> Result<VersionRange, FormatError> {
    if since == 0 || since > until || until > version {
        return Err(corrupt(format!("version {version} has a part of versions {since} to {until}")));
    }
    Ok(VersionRange { since, until })
}

const LIST: u32 = 16;

/// The number of a type of values.
pub(super) fn kind_number(kind: PropertyType) -> u32 {
    let number = |scalar| match scalar {
        ScalarType::Bool => 1,
        ScalarType::Int64 => 2,
        ScalarType::Float64 => 3,
        ScalarType::String => 4,
        ScalarType::Date => 5,
        ScalarType::Timestamp => 6,
    };
    match kind {
        PropertyType::Scalar(scalar) => number(scalar),
        PropertyType::List(scalar) => number(scalar) + LIST,
    }
}

/// The type of values with a number.
pub(super) fn property_type(number: u32) -> Result<PropertyType, FormatError> {
    let scalar = match number % LIST {
        1 => ScalarType::Bool,
        2 => ScalarType::Int64,
        3 => ScalarType::Float64,
        4 => ScalarType::String,
        5 => ScalarType::Date,
        6 => ScalarType::Timestamp,
        _ => return Err(unsupported(format!("a property of type {number}"))),
    };
    match number / LIST {
        0 => Ok(PropertyType::Scalar(scalar)),
        1 => Ok(PropertyType::List(scalar)),
        _ => Err(unsupported(format!("a property of type {number}"))),
    }
}

/// The number of a logical type.
fn logical_number(logical: LogicalType) -> u32 {
    let item = logical.item.map_or(0, |item| match item {
        ItemType::Int8 => 1,
        ItemType::Int16 => 2,
        ItemType::Int32 => 3,
        ItemType::Float32 => 4,
        ItemType::Uuid => 5,
    });
    let collection = logical.collection.map_or(0, |collection| match collection {
        CollectionType::List => 1,
        CollectionType::Set => 2,
    });
    item + LIST * collection
}

/// The logical type with a number.
fn logical_type(number: u32) -> Result<LogicalType, FormatError> {
    let unknown = || Err(unsupported(format!("a property of logical type {number}")));
    let item = match number % LIST {
        0 => None,
        1 => Some(ItemType::Int8),
        2 => Some(ItemType::Int16),
        3 => Some(ItemType::Int32),
        4 => Some(ItemType::Float32),
        5 => Some(ItemType::Uuid),
        _ => return unknown(),
    };
    let collection = match number / LIST {
        0 => None,
        1 => Some(CollectionType::List),
        2 => Some(CollectionType::Set),
        _ => return unknown(),
    };
    Ok(LogicalType { item, collection })
}

impl From<&Property> for PropertyMessage {
    fn from(property: &Property) -> Self {
        Self {
            name: property.name.clone(),
            kind: kind_number(property.kind),
            logical: logical_number(property.logical),
        }
    }
}

impl TryFrom<PropertyMessage> for Property {
    type Error = FormatError;

    fn try_from(message: PropertyMessage) -> Result<Self, FormatError> {
        let kind = property_type(message.kind)?;
        let logical = logical_type(message.logical)?;
        if !logical.suits(kind) {
            return Err(corrupt(format!("property {:?} is {kind} of logical type {}", message.name, message.logical)));
        }
        Ok(Self { name: message.name, kind, logical })
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
            count: count.ordinals,
            gone: count.gone,
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
            writer: manifest.change.writer.clone(),
            message: manifest.change.message.clone(),
            labels: labels.collect(),
            edge_types: edge_types.collect(),
            segments: manifest.segments.iter().map(SegmentMessage::from).collect(),
            tables: manifest.tables.iter().map(TableMessage::from).collect(),
            change: change_number(manifest.change.kind),
            counts: Some(manifest.change.counts.into()),
            source_positions: manifest.source_positions.clone(),
            leases: manifest.leases.iter().map(WriterLeaseMessage::from).collect(),
            history: manifest.history.iter().flat_map(|range| [range.since, range.until]).collect(),
            tags: manifest.tags.clone(),
            reset: manifest.reset,
            applied: manifest.applied.iter().map(AppliedMessage::from).collect(),
            indexes: manifest.indexes.iter().map(IndexMessage::from).collect(),
            next_index: manifest.next_index.into(),
            unique_keys: manifest.unique_keys,
            queries: queries::messages(&manifest.queries),
        }
    }
}

impl From<&Applied> for AppliedMessage {
    fn from(applied: &Applied) -> Self {
        let requests = applied.requests.iter().flat_map(|request| request.0.to_le_bytes()).collect();
        Self { version: applied.version, counts: Some(applied.counts.into()), requests }
    }
}

/// What versions up to this one applied, in their order.
fn applied(messages: Vec<AppliedMessage>, version: u64) -> Result<Vec<Applied>, FormatError> {
    if let Some([before, after]) = messages.array_windows().find(|[before, after]| before.version >= after.version) {
        let why = format!("what version {} applied comes before what version {} did", before.version, after.version);
        return Err(corrupt(why));
    }
    let one = |message: AppliedMessage| {
        let (requests, []) = message.requests.as_chunks::<16>() else {
            return Err(corrupt(format!(
                "requests of version {} have {} bytes",
                message.version,
                message.requests.len()
            )));
        };
        if message.version > version {
            return Err(corrupt(format!("version {version} has what version {} applied", message.version)));
        }
        let requests = requests.iter().map(|digest| RequestDigest(u128::from_le_bytes(*digest))).collect();
        Ok(Applied { version: message.version, counts: message.counts.unwrap_or_default().into(), requests })
    };
    messages.into_iter().map(one).collect()
}

impl From<ChangeCounts> for CountsMessage {
    fn from(counts: ChangeCounts) -> Self {
        let ChangeCounts { vertices_added, vertices_changed, vertices_removed, edges_written, pairs_removed } = counts;
        Self { vertices_added, vertices_changed, vertices_removed, edges_written, pairs_removed }
    }
}

impl From<CountsMessage> for ChangeCounts {
    fn from(message: CountsMessage) -> Self {
        let CountsMessage { vertices_added, vertices_changed, vertices_removed, edges_written, pairs_removed } =
            message;
        Self { vertices_added, vertices_changed, vertices_removed, edges_written, pairs_removed }
    }
}

impl From<&WriterLease> for WriterLeaseMessage {
    fn from(lease: &WriterLease) -> Self {
        Self { writer: lease.writer.clone(), kind: change_number(lease.kind), since: lease.since }
    }
}

impl TryFrom<WriterLeaseMessage> for WriterLease {
    type Error = FormatError;

    fn try_from(message: WriterLeaseMessage) -> Result<Self, FormatError> {
        Ok(Self { writer: message.writer, kind: change_kind(message.kind)?, since: message.since })
    }
}

impl From<&PropertyIndex> for IndexMessage {
    fn from(index: &PropertyIndex) -> Self {
        let PropertyIndex { id, label, property, writer } = index;
        let writer = writer.clone().unwrap_or_default();
        Self { number: id.0.into(), label: label.0.into(), property: property.clone(), writer }
    }
}

impl From<&SegmentRef> for SegmentMessage {
    fn from(segment: &SegmentRef) -> Self {
        Self {
            name: segment.name.clone(),
            length: segment.end.length,
            filters_position: segment.end.filters_position,
            index_position: segment.end.index_position,
            root_position: segment.end.root_position,
            checksum: segment.checksum,
            sections: segment.sections.iter().map(SectionMessage::from).collect(),
        }
    }
}

impl From<&SectionRef> for SectionMessage {
    fn from(section: &SectionRef) -> Self {
        let (first_number, first_text) = match &section.continues {
            None => (None, None),
            Some(First::Number(first)) => (Some(*first), None),
            Some(First::Text(first)) => (None, Some(first.clone())),
        };
        let (since, until) = section.versions.map_or((0, 0), |of| (of.since, of.until));
        Self { kind: section.kind.to_number(), since, until, first_number, first_text }
    }
}

impl From<&TableRef> for TableMessage {
    fn from(table: &TableRef) -> Self {
        let (kind, owner) = match table.owner {
            TableOwner::Vertices(label) => (1, label.0),
            TableOwner::Edges(edge_type, Direction::Out) => (2, edge_type.0),
            TableOwner::Edges(edge_type, Direction::In) => (3, edge_type.0),
            TableOwner::Changed(label) => (4, label.0),
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
            position: table.position,
            since: table.versions.since,
            until: table.versions.until,
        }
    }
}

impl TryFrom<ManifestMessage> for Manifest {
    type Error = FormatError;

    fn try_from(message: ManifestMessage) -> Result<Self, FormatError> {
        // The version after it must be a version too.
        if message.version == 0 || message.version == u64::MAX {
            return Err(corrupt(format!("it claims to be version {}", message.version)));
        }
        let version = message.version;
        // Version 1 builds on nothing, so that every graph has such a version.
        if message.reset == 0 || message.reset > version {
            return Err(corrupt(format!(
                "version {version} claims that version {} was a new beginning",
                message.reset
            )));
        }
        let mut schema = Schema::default();
        let mut vertex_counts = Vec::new();
        let mut edge_counts = Vec::new();
        let mut degrees = Vec::new();
        for label in message.labels {
            // Ordinals are dense, so a count beyond 48 bits would give vertices without a `VertexId`.
            if label.count > VertexId::ORDINAL_MAX || label.gone > label.count {
                return Err(corrupt(format!(
                    "{} of {} vertices of {} are deleted",
                    label.gone, label.count, label.name
                )));
            }
            vertex_counts.push(VertexCount { ordinals: label.count, gone: label.gone });
            schema.vertex_labels.push(label.try_into()?);
        }
        for edge in message.edge_types {
            edge_counts.push(edge.count);
            let summaries = [edge.degrees_out.clone(), edge.degrees_in.clone()];
            degrees.push(summaries.map(|degrees| degrees.unwrap_or_default().into()));
            schema.edge_types.push(edge.try_into()?);
        }
        schema.validate().map_err(|error| corrupt(error.to_string()))?;
        let segment = |message| segment_ref(message, version);
        let segments = message.segments.into_iter().map(segment).collect::<Result<Vec<_>, _>>()?;
        let table = |message| table_ref(message, version);
        let tables = message.tables.into_iter().map(table).collect::<Result<Vec<_>, _>>()?;
        // From here on, look-ups by label, edge type and piece cannot miss.
        let next_index = id(message.next_index)?;
        let indexes = indexes(message.indexes, next_index, &schema)?;
        check_owners(&schema, &indexes, &segments, &tables)?;
        check_pieces(&segments)?;
        let history = history(&message.history, version)?;
        if let Some((name, tagged)) =
            message.tags.iter().find(|(_, tagged)| !history.iter().any(|range| range.contains(**tagged)))
        {
            return Err(corrupt(format!("tag {name} is of version {tagged}, which was removed")));
        }
        Ok(Self {
            version,
            created_unix_ms: message.created_unix_ms,
            change: Change {
                kind: change_kind(message.change)?,
                writer: message.writer,
                message: message.message,
                counts: message.counts.unwrap_or_default().into(),
            },
            source_positions: message.source_positions,
            leases: message.leases.into_iter().map(WriterLease::try_from).collect::<Result<_, _>>()?,
            history,
            tags: message.tags,
            queries: queries::read(message.queries)?,
            reset: message.reset,
            applied: applied(message.applied, version)?,
            schema,
            unique_keys: message.unique_keys,
            indexes,
            next_index,
            vertex_counts,
            edge_counts,
            degrees,
            segments,
            tables,
        })
    }
}

/// Ranges of versions before this one, in their order.
fn history(bounds: &[u64], version: u64) -> Result<Vec<VersionRange>, FormatError> {
    let (ranges, []) = bounds.as_chunks::<2>() else {
        return Err(corrupt("its history has a range without an end".into()));
    };
    let mut before = 0;
    let mut history = Vec::with_capacity(ranges.len());
    for &[since, until] in ranges {
        if since <= before || until < since || until >= version {
            return Err(corrupt(format!("version {version} follows versions {since} to {until}")));
        }
        before = until;
        history.push(VersionRange { since, until });
    }
    Ok(history)
}

/// Property indexes by their numbers, each of a property that can have one.
fn indexes(messages: Vec<IndexMessage>, next: u16, schema: &Schema) -> Result<Vec<PropertyIndex>, FormatError> {
    let index = |message: IndexMessage| {
        let IndexMessage { number, label, property, writer } = message;
        let number = id(number)?;
        let label = LabelId(id(label)?);
        PropertyIndex::check(schema, label, &property).map_err(|error| corrupt(error.to_string()))?;
        let writer = (!writer.is_empty()).then_some(writer);
        Ok(PropertyIndex { id: IndexId(number), label, property, writer })
    };
    let indexes = messages.into_iter().map(index).collect::<Result<Vec<_>, FormatError>>()?;
    // A number that is given twice would make items of one property those of another.
    if !indexes.is_sorted_by(|a, b| a.id < b.id) || indexes.last().is_some_and(|last| last.id.0 >= next) {
        return Err(corrupt("the numbers of its property indexes do not ascend, or are not below the next".into()));
    }
    Ok(indexes)
}

/// Every sorted run of this version belongs to a label, an edge type or an index of its schema. A section outside this version
/// need not: its object was written for a version with another schema, and this version restores an older one.
fn check_owners(
    schema: &Schema,
    indexes: &[PropertyIndex],
    segments: &[SegmentRef],
    tables: &[TableRef],
) -> Result<(), FormatError> {
    for section in segments.iter().flat_map(|segment| &segment.sections).filter(|section| section.versions.is_some()) {
        let known = match section.kind {
            SectionKind::Keys(label) | SectionKind::Tombstones(label) | SectionKind::Rows(label) => {
                schema.label(label).is_some()
            }
            SectionKind::Adjacency(edge_type, _) | SectionKind::Removed(edge_type, _) => {
                schema.edge_type(edge_type).is_some()
            }
            SectionKind::Values(index) | SectionKind::RemovedValues(index) => indexes.iter().any(|it| it.id == index),
        };
        if !known {
            return Err(corrupt(format!("section {:?} belongs to nothing in the schema", section.kind)));
        }
    }
    for table in tables {
        let known = match table.owner {
            TableOwner::Vertices(label) | TableOwner::Changed(label) => schema.label(label).is_some(),
            TableOwner::Edges(edge_type, _) => schema.edge_type(edge_type).is_some(),
        };
        if !known {
            return Err(corrupt(format!("table {} belongs to nothing in the schema", table.name)));
        }
    }
    Ok(())
}

/// Pieces of a section are in the order of what they begin with; the first of them begins the section.
fn check_pieces(segments: &[SegmentRef]) -> Result<(), FormatError> {
    let mut before: BTreeMap<(SectionKind, VersionRange), Option<&First>> = BTreeMap::new();
    for section in segments.iter().flat_map(|segment| &segment.sections) {
        let Some(versions) = section.versions else { continue };
        let first = section.continues.as_ref();
        let follows = match (before.insert((section.kind, versions), first), first) {
            (None, None) => true,
            (Some(None), Some(_)) => true,
            // A long list may begin in one piece and fill the next.
            (Some(Some(First::Number(before))), Some(First::Number(first))) => before <= first,
            (Some(Some(First::Text(before))), Some(First::Text(first))) => before < first,
            _ => false,
        };
        if !follows {
            return Err(corrupt(format!("a piece of {:?} of {versions:?} begins with {first:?}", section.kind)));
        }
    }
    Ok(())
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

impl WrittenSpan {
    /// As bytes, for the process that publishes it.
    pub fn encode(&self) -> Vec<u8> {
        let edges = self.edges.iter().map(|(edge_type, edges, degrees)| SpanEdgesMessage {
            edge_type: edge_type.0.into(),
            edges: *edges,
            degrees: Some(degrees.into()),
        });
        let message = SpanMessage {
            segments: self.segments.iter().map(SegmentMessage::from).collect(),
            tables: self.tables.iter().map(TableMessage::from).collect(),
            edges: edges.collect(),
            adjacency_bytes: self.adjacency_bytes,
        };
        message.encode_to_vec()
    }

    /// Reads what [`Self::encode`] wrote of a span of this version.
    ///
    /// # Errors
    /// [`FormatError::Corrupt`] if it is not that.
    pub fn decode(bytes: &[u8], version: u64) -> Result<Self, FormatError> {
        let message = SpanMessage::decode(bytes).map_err(|error| corrupt(error.to_string()))?;
        let segments = message.segments.into_iter().map(|segment| segment_ref(segment, version));
        let tables = message.tables.into_iter().map(|table| table_ref(table, version));
        let edges = message.edges.into_iter().map(|edges| {
            let degrees = edges.degrees.unwrap_or_default().into();
            Ok((EdgeTypeId(id(edges.edge_type)?), edges.edges, degrees))
        });
        Ok(Self {
            segments: segments.collect::<Result<_, _>>()?,
            tables: tables.collect::<Result<_, _>>()?,
            edges: edges.collect::<Result<_, FormatError>>()?,
            adjacency_bytes: message.adjacency_bytes,
        })
    }
}

fn segment_ref(message: SegmentMessage, version: u64) -> Result<SegmentRef, FormatError> {
    let SegmentMessage { name, length, filters_position, index_position, root_position, checksum, sections } = message;
    let end = SegmentEnd { length, filters_position, index_position, root_position };
    if ![filters_position, index_position, root_position, length].is_sorted() {
        return Err(corrupt(format!("segment {name} of {length} bytes has its end at {end:?}")));
    }
    let sections = sections.into_iter().map(|section| section_ref(section, version)).collect::<Result<_, _>>()?;
    Ok(SegmentRef { name, end, sections, checksum })
}

fn section_ref(message: SectionMessage, version: u64) -> Result<SectionRef, FormatError> {
    let SectionMessage { kind, since, until, first_number, first_text } = message;
    let kind = SectionKind::from_number(kind).ok_or_else(|| unsupported(format!("section {kind:x}")))?;
    let gone = since == 0 && until == 0;
    let versions = if gone { None } else { Some(version_range(since, until, version)?) };
    let continues = match (first_number, first_text) {
        (None, None) => None,
        (Some(first), None) => Some(First::Number(first)),
        (None, Some(first)) if kind.has_keys() => Some(First::Text(first)),
        // Both kinds at once, or text in a section of lists.
        (_, Some(first)) => return Err(corrupt(format!("a piece of {kind:?} begins with {first:?}"))),
    };
    Ok(SectionRef { kind, versions, continues })
}

fn table_ref(message: TableMessage, version: u64) -> Result<TableRef, FormatError> {
    let number = id(message.owner)?;
    let owner = match message.kind {
        1 => TableOwner::Vertices(LabelId(number)),
        2 => TableOwner::Edges(EdgeTypeId(number), Direction::Out),
        3 => TableOwner::Edges(EdgeTypeId(number), Direction::In),
        4 => TableOwner::Changed(LabelId(number)),
        other => return Err(unsupported(format!("a table of kind {other}"))),
    };
    // Ends are computed from these sums without further checks.
    let fits =
        message.position.checked_add(message.length).is_some() && message.first_row.checked_add(message.rows).is_some();
    if message.tail_position > message.length || !fits {
        return Err(corrupt(format!("table {} contradicts itself", message.name)));
    }
    Ok(TableRef {
        name: message.name,
        position: message.position,
        owner,
        versions: version_range(message.since, message.until, version)?,
        first_row: message.first_row,
        rows: message.rows,
        length: message.length,
        tail_position: message.tail_position,
        tail_checksum: message.tail_checksum,
        checksum: message.checksum,
    })
}
