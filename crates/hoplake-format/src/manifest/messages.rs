//! The protocol-buffer messages of a manifest, field by field as `docs/format.md` has them. A tag is never used again.
//!
//! Nothing here is checked: [`wire`](super::wire) turns messages into a manifest, or says why it cannot.

use std::collections::BTreeMap;

use prost::Message;

/// The fields of a manifest in every version of the format.
#[derive(Clone, PartialEq, Message)]
pub(super) struct VersionMessage {
    #[prost(uint32, tag = "1")]
    pub(super) format_version: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ManifestMessage {
    #[prost(uint32, tag = "1")]
    pub(super) format_version: u32,
    #[prost(uint64, tag = "2")]
    pub(super) version: u64,
    #[prost(uint64, tag = "3")]
    pub(super) created_unix_ms: u64,
    #[prost(string, tag = "4")]
    pub(super) writer: String,
    #[prost(string, tag = "5")]
    pub(super) message: String,
    #[prost(message, repeated, tag = "6")]
    pub(super) labels: Vec<LabelMessage>,
    #[prost(message, repeated, tag = "7")]
    pub(super) edge_types: Vec<EdgeTypeMessage>,
    #[prost(message, repeated, tag = "8")]
    pub(super) segments: Vec<SegmentMessage>,
    #[prost(message, repeated, tag = "9")]
    pub(super) tables: Vec<TableMessage>,
    /// 1 load, 2 commit, 3 compaction, 4 fence, 5 restore, 6 tag, 7 index, 8 query.
    #[prost(uint32, tag = "10")]
    pub(super) change: u32,
    #[prost(message, optional, tag = "11")]
    pub(super) counts: Option<CountsMessage>,
    #[prost(btree_map = "string, string", tag = "12")]
    pub(super) source_positions: BTreeMap<String, String>,
    #[prost(message, repeated, tag = "13")]
    pub(super) leases: Vec<WriterLeaseMessage>,
    /// First and last version of each range.
    #[prost(uint64, repeated, tag = "14")]
    pub(super) history: Vec<u64>,
    #[prost(btree_map = "string, uint64", tag = "15")]
    pub(super) tags: BTreeMap<String, u64>,
    #[prost(uint64, tag = "16")]
    pub(super) reset: u64,
    #[prost(message, repeated, tag = "17")]
    pub(super) applied: Vec<AppliedMessage>,
    #[prost(message, repeated, tag = "18")]
    pub(super) indexes: Vec<IndexMessage>,
    #[prost(uint32, tag = "19")]
    pub(super) next_index: u32,
    #[prost(bool, tag = "20")]
    pub(super) unique_keys: bool,
    #[prost(message, repeated, tag = "21")]
    pub(super) queries: Vec<QueryMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct QueryMessage {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(uint32, tag = "2")]
    pub(super) last: u32,
    #[prost(message, repeated, tag = "3")]
    pub(super) editions: Vec<EditionMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct EditionMessage {
    #[prost(uint32, tag = "1")]
    pub(super) number: u32,
    #[prost(string, tag = "2")]
    pub(super) text: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) parameters: Vec<ParameterMessage>,
    #[prost(string, tag = "4")]
    pub(super) description: String,
    #[prost(uint64, tag = "5")]
    pub(super) saved_unix_ms: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ParameterMessage {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    /// As of a property.
    #[prost(uint32, tag = "2")]
    pub(super) kind: u32,
    /// JSON.
    #[prost(string, optional, tag = "3")]
    pub(super) default: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AppliedMessage {
    #[prost(uint64, tag = "1")]
    pub(super) version: u64,
    #[prost(message, optional, tag = "2")]
    pub(super) counts: Option<CountsMessage>,
    /// 16 bytes each.
    #[prost(bytes = "vec", tag = "3")]
    pub(super) requests: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct IndexMessage {
    #[prost(uint32, tag = "1")]
    pub(super) number: u32,
    #[prost(uint32, tag = "2")]
    pub(super) label: u32,
    #[prost(string, tag = "3")]
    pub(super) property: String,
    /// Empty, unless it is being built.
    #[prost(string, tag = "4")]
    pub(super) writer: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CountsMessage {
    #[prost(uint64, tag = "1")]
    pub(super) vertices_added: u64,
    #[prost(uint64, tag = "2")]
    pub(super) vertices_changed: u64,
    #[prost(uint64, tag = "3")]
    pub(super) vertices_removed: u64,
    #[prost(uint64, tag = "4")]
    pub(super) edges_written: u64,
    #[prost(uint64, tag = "5")]
    pub(super) pairs_removed: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WriterLeaseMessage {
    #[prost(string, tag = "1")]
    pub(super) writer: String,
    #[prost(uint32, tag = "2")]
    pub(super) kind: u32,
    #[prost(uint64, tag = "3")]
    pub(super) since: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PropertyMessage {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    /// 1 bool, 2 int64, 3 float64, 4 string, 5 date, 6 timestamp; plus 16 for a list.
    #[prost(uint32, tag = "2")]
    pub(super) kind: u32,
    /// 0 nothing, 1 int8, 2 int16, 3 int32, 4 float32, 5 UUID; plus 16 for a list as one value, 32 for a set.
    #[prost(uint32, tag = "3")]
    pub(super) logical: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LabelMessage {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    /// 1 int64, 2 string.
    #[prost(uint32, tag = "2")]
    pub(super) key_type: u32,
    #[prost(message, repeated, tag = "3")]
    pub(super) properties: Vec<PropertyMessage>,
    /// Ordinals given out.
    #[prost(uint64, tag = "4")]
    pub(super) count: u64,
    #[prost(uint64, tag = "5")]
    pub(super) gone: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DegreeMessage {
    #[prost(uint64, tag = "1")]
    pub(super) max: u64,
    #[prost(uint64, repeated, tag = "2")]
    pub(super) histogram: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct EdgeTypeMessage {
    #[prost(string, tag = "1")]
    pub(super) label: String,
    #[prost(uint32, tag = "2")]
    pub(super) source: u32,
    #[prost(uint32, tag = "3")]
    pub(super) target: u32,
    #[prost(message, repeated, tag = "4")]
    pub(super) properties: Vec<PropertyMessage>,
    #[prost(uint64, tag = "5")]
    pub(super) count: u64,
    #[prost(message, optional, tag = "6")]
    pub(super) degrees_out: Option<DegreeMessage>,
    #[prost(message, optional, tag = "7")]
    pub(super) degrees_in: Option<DegreeMessage>,
}

/// What a process that writes a span tells the one that publishes it. Never stored in a graph.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SpanMessage {
    #[prost(message, repeated, tag = "1")]
    pub(super) segments: Vec<SegmentMessage>,
    #[prost(message, repeated, tag = "2")]
    pub(super) tables: Vec<TableMessage>,
    #[prost(message, repeated, tag = "3")]
    pub(super) edges: Vec<SpanEdgesMessage>,
    #[prost(uint64, tag = "4")]
    pub(super) adjacency_bytes: u64,
}

/// Edges of a type in the direction of a span.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SpanEdgesMessage {
    #[prost(uint32, tag = "1")]
    pub(super) edge_type: u32,
    #[prost(uint64, tag = "2")]
    pub(super) edges: u64,
    #[prost(message, optional, tag = "3")]
    pub(super) degrees: Option<DegreeMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SegmentMessage {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(uint64, tag = "2")]
    pub(super) length: u64,
    #[prost(uint64, tag = "3")]
    pub(super) filters_position: u64,
    #[prost(uint64, tag = "4")]
    pub(super) index_position: u64,
    #[prost(fixed32, tag = "5")]
    pub(super) checksum: u32,
    #[prost(uint64, tag = "6")]
    pub(super) root_position: u64,
    #[prost(message, repeated, tag = "7")]
    pub(super) sections: Vec<SectionMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SectionMessage {
    /// As in a segment's root: kind times 65,536, plus owner.
    #[prost(uint32, tag = "1")]
    pub(super) kind: u32,
    /// The first and the last version whose changes it holds, both 0 if this version does not have it.
    #[prost(uint64, tag = "2")]
    pub(super) since: u64,
    #[prost(uint64, tag = "3")]
    pub(super) until: u64,
    /// Its first item, if it continues a section of another segment: one of the two.
    #[prost(uint64, optional, tag = "4")]
    pub(super) first_number: Option<u64>,
    #[prost(string, optional, tag = "5")]
    pub(super) first_text: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TableMessage {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    /// 1 vertices, 2 edges out, 3 edges in, 4 changed vertices.
    #[prost(uint32, tag = "2")]
    pub(super) kind: u32,
    #[prost(uint32, tag = "3")]
    pub(super) owner: u32,
    #[prost(uint64, tag = "4")]
    pub(super) first_row: u64,
    #[prost(uint64, tag = "5")]
    pub(super) rows: u64,
    #[prost(uint64, tag = "6")]
    pub(super) length: u64,
    #[prost(uint64, tag = "7")]
    pub(super) tail_position: u64,
    #[prost(fixed32, tag = "8")]
    pub(super) tail_checksum: u32,
    #[prost(fixed32, tag = "9")]
    pub(super) checksum: u32,
    #[prost(uint64, tag = "10")]
    pub(super) position: u64,
    #[prost(uint64, tag = "11")]
    pub(super) since: u64,
    #[prost(uint64, tag = "12")]
    pub(super) until: u64,
}
