//! Writes adjacency sections from sorted edges.

use hoplake_format::{
    DegreeSummary, Direction, EdgeTypeId,
    adjacency::{BlockEncoder, EncodedBlock},
    segment::SectionKind,
};

use super::objects::SegmentWriter;
use crate::IngestError;

/// A section that is being written: edges arrive sorted by source, then target.
pub(crate) struct AdjacencyWriter<'a> {
    segment: &'a mut SegmentWriter,
    encoder: BlockEncoder,
    finished: Vec<EncodedBlock>,
    source: u64,
    targets: Vec<u64>,
    degrees: DegreeSummary,
    edges: u64,
}

impl<'a> AdjacencyWriter<'a> {
    pub(crate) fn new(
        segment: &'a mut SegmentWriter,
        edge_type: EdgeTypeId,
        direction: Direction,
        block_bytes: usize,
    ) -> Result<Self, IngestError> {
        segment.builder.begin_lists(SectionKind::Adjacency(edge_type, direction))?;
        Ok(Self {
            segment,
            encoder: BlockEncoder::new(block_bytes)?,
            finished: Vec::new(),
            source: 0,
            targets: Vec::new(),
            degrees: DegreeSummary::default(),
            edges: 0,
        })
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
        self.encoder.push(self.source, &self.targets, &mut self.finished)?;
        self.targets.clear();
        for block in self.finished.drain(..) {
            write_block(self.segment, &block);
            self.segment.send()?;
        }
        Ok(())
    }

    /// Ends the section and returns its number of edges and their degrees.
    pub(crate) fn finish(mut self) -> Result<(u64, DegreeSummary), IngestError> {
        self.end_list()?;
        if let Some(block) = self.encoder.finish() {
            write_block(self.segment, &block);
        }
        Ok((self.edges, self.degrees))
    }
}

fn write_block(segment: &mut SegmentWriter, block: &EncodedBlock) {
    segment.builder.adjacency_block(block.entry.first_source, block.entry.edges.into(), &block.bytes);
}
