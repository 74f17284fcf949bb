//! How a graph is built.

use std::path::PathBuf;

use hoplake_format::segment::SegmentSettings;

/// The order in which vertices get their ordinals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VertexOrder {
    /// By key. Key blocks need no ordinals, and loading is fastest.
    #[default]
    Keys,
    /// So that neighbours are close together: smaller adjacency, fewer blocks for a hop. Reads the
    /// edges twice, and takes 12 bytes of memory for each vertex.
    Locality,
}

/// How a graph is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildSettings {
    /// Budget of memory, in bytes.
    pub memory_bytes: u64,
    /// Where temporary files go; the system's folder by default.
    pub temp_dir: Option<PathBuf>,
    /// Threads.
    pub threads: usize,
    /// The order of ordinals.
    pub order: VertexOrder,
    /// How segments are written.
    pub segments: SegmentSettings,
    /// Properties that get an index, as `label.property`.
    pub indexes: Vec<String>,
    /// The version that the load starts from; part of its objects' names.
    pub base_version: u64,
    /// The writer's ULID; part of its objects' names.
    pub writer: String,
}

/// The least budget: below it, buffers that cannot be smaller would not fit.
pub const MEMORY_BYTES_MIN: u64 = 32 << 20;
