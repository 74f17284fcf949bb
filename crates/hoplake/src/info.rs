//! The description of a graph.

use std::sync::Arc;

use hoplake_engine::Snapshot;
use hoplake_format::{TableOwner, VersionRange, VertexCount, segment::SectionKind};
use hoplake_storage::Branch;

use crate::Error;

/// The size of one section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionSize {
    /// What it holds.
    pub kind: SectionKind,
    /// The versions whose changes it holds.
    pub versions: VersionRange,
    /// Keys or edges.
    pub items: u64,
    /// Blocks.
    pub blocks: u64,
    /// Bytes of its blocks, with checksums.
    pub bytes: u64,
}

/// Counts, sizes and degrees of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphInfo {
    /// The version.
    pub version: u64,
    /// Vertices of all labels.
    pub vertices: u64,
    /// Edges of all types: exact or an upper bound.
    pub edges: u64,
    /// Whether the number of edges is exact ([`Graph::is_edge_count_exact`](crate::Graph::is_edge_count_exact)).
    pub edges_exact: bool,
    /// Sections of keys and adjacency.
    pub sections: Vec<SectionSize>,
    /// Tables of properties: what they belong to and their bytes.
    pub tables: Vec<(TableOwner, u64)>,
    /// Indexes, filters and footers of segments.
    pub index_bytes: u64,
    /// Everything that the version names.
    pub total_bytes: u64,
}

impl GraphInfo {
    pub(crate) async fn of(snapshot: &Arc<Snapshot>, branch: &mut Branch) -> Result<Self, Error> {
        let manifest = snapshot.manifest();
        let mut sections: Vec<_> = snapshot
            .section_roots(branch)
            .await?
            .into_iter()
            .map(|(versions, section)| SectionSize {
                kind: section.kind,
                versions,
                items: section.items,
                blocks: section.block_count,
                bytes: section.blocks().end - section.blocks().start,
            })
            .collect();
        sections.sort_unstable_by_key(|section| (section.kind, section.versions));
        let ends = manifest.segments.iter().map(|segment| &segment.end);
        let tables = manifest.tables.iter().map(|table| (table.owner, table.length));
        Ok(Self {
            version: manifest.version,
            vertices: manifest.vertex_counts.iter().map(VertexCount::live).sum(),
            edges: manifest.edge_counts.iter().sum(),
            edges_exact: snapshot.schema().edge_types().all(|(id, _)| snapshot.is_edge_count_exact(id)),
            sections,
            index_bytes: ends.map(|end| end.length - end.filters_position).sum(),
            total_bytes: manifest.objects().values().sum(),
            tables: tables.collect(),
        })
    }

    /// Bytes of adjacency blocks for each stored directed edge; every edge is stored in both directions.
    pub fn bytes_per_directed_edge(&self) -> f64 {
        let adjacency = self.sections.iter().filter(|section| matches!(section.kind, SectionKind::Adjacency(..)));
        let (bytes, edges) = adjacency.fold((0, 0), |sum, section| (sum.0 + section.bytes, sum.1 + section.items));
        if edges == 0 { 0.0 } else { bytes as f64 / edges as f64 }
    }
}
