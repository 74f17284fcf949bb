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
    pub(crate) fn new(
        segments: &'a mut SegmentUpload<'b>,
        edge_type: EdgeTypeId,
        direction: Direction,
    ) -> Result<Self, IngestError> {
        // A load has lists of most vertices: a filter would exclude nothing.
        let lists = ListWriter::new(SectionKind::Adjacency(edge_type, direction), false, &segments.writer)?;
        Ok(Self { segments, lists, source: 0, targets: Vec::new(), degrees: DegreeSummary::default(), edges: 0 })
    }

    /// Takes the next edge.
    #[inline]
    pub(crate) fn push(&mut self, source: u64, target: u64) -> Result<(), IngestError> {
        if source != self.source {
            self.end_list()?;
            self.source = source;
        }
        self.targets.push(target);
        Ok(())
    }

    fn end_list(&mut self) -> Result<(), IngestError> {
        self.degrees.add(self.targets.len() as u64);
        self.edges += self.targets.len() as u64;
        self.lists.push(self.source, &self.targets, &mut self.segments.writer)?;
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
