//! Writes adjacency sections from sorted edges.

use hoplake_format::{
    DegreeSummary, Direction, EdgeTypeId,
    segment::{ListWriter, SectionKind},
};

use super::objects::SegmentUpload;
use crate::IngestError;

/// A section that is being written: edges arrive sorted by source, then target.
pub(crate) struct AdjacencyWriter<'a, 'b> {
    segments: &'a mut SegmentUpload<'b>,
    lists: ListWriter,
    source: u64,
    targets: Vec<u64>,
    degrees: DegreeSummary,
    edges: u64,
}

impl<'a, 'b> AdjacencyWriter<'a, 'b> {
    /// Begins a section, or goes on with one of which another writer wrote the edges before `first`.
    pub(crate) fn new(
        segments: &'a mut SegmentUpload<'b>,
        edge_type: EdgeTypeId,
        direction: Direction,
        first: u64,
    ) -> Result<Self, IngestError> {
        let kind = SectionKind::Adjacency(edge_type, direction);
        // A load has lists of most vertices: a filter would exclude nothing.
        let lists = if first > 0 {
            ListWriter::resumed(kind, false, first, &mut segments.writer)?
        } else {
            ListWriter::new(kind, false, &segments.writer)?
        };
        Ok(Self { segments, lists, source: 0, targets: Vec::new(), degrees: DegreeSummary::default(), edges: 0 })
    }

    /// Takes the next edge, whose source was [named](Self::ends_span).
    #[inline]
    pub(crate) fn push(&mut self, target: u64) {
        self.targets.push(target);
    }

    /// Names the source of the next edge. Returns whether another span [begins](Self::begin_span) before it, once the properties of edges so far are
    /// written.
    #[inline]
    pub(crate) fn ends_span(&mut self, source: u64) -> Result<bool, IngestError> {
        if source != self.source {
            self.end_list()?;
            self.source = source;
        }
        Ok(self.targets.is_empty() && self.segments.is_span_over())
    }

    /// Begins another span.
    pub(crate) fn begin_span(&mut self) -> Result<(), IngestError> {
        self.lists.flush(&mut self.segments.writer)?;
        self.segments.begin_span()
    }

    /// Writes the list under way.
    pub(crate) fn end_list(&mut self) -> Result<(), IngestError> {
        let edges = self.targets.len() as u64;
        self.degrees.add(edges);
        self.edges += edges;
        self.lists.push(self.source, &self.targets, &mut self.segments.writer)?;
        self.segments.count(edges);
        self.targets.clear();
        self.segments.send()
    }

    /// Ends the section and returns its number of edges and their degrees.
    pub(crate) fn finish(mut self) -> Result<(u64, DegreeSummary), IngestError> {
        self.end_list()?;
        self.lists.finish(&mut self.segments.writer)?;
        Ok((self.edges, self.degrees))
    }
}
