//! A run as a plan sees it: those of its pieces and index blocks that may have a source.

use crate::{
    Snapshot,
    snapshot::sections::{IndexLocation, Run, Section, SectionLocation},
};

/// A run that may have lists of an edge type. The roots of those of its pieces are in memory that may have a source of the plan.
pub(super) struct Layer<'a> {
    snapshot: &'a Snapshot,
    pub(super) run: &'a Run,
    pub(super) removed: bool,
}

/// An index block of a layer, and in which of its pieces it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexOfLayer {
    piece: usize,
    pub(super) location: IndexLocation,
}

impl<'a> Layer<'a> {
    /// A run of a version, and whether its entries are tombstones.
    pub(super) fn new(snapshot: &'a Snapshot, run: &'a Run, removed: bool) -> Self {
        Self { snapshot, run, removed }
    }

    fn section(&self, piece: usize) -> Option<(SectionLocation, Section<'a>)> {
        let location = self.run.location(piece)?;
        Some((location, self.snapshot.sections().section(location).ok()?))
    }

    /// Whether it may have a list of a source; `false` is certain.
    pub(super) fn may_have_source(&self, source: u64) -> bool {
        let mut sections = self.run.pieces_of_source(source).map(|piece| self.section(piece));
        // A root that is not in memory excludes nothing.
        sections.any(|section| section.is_none_or(|(_, section)| section.may_have_source(source)))
    }

    /// The index blocks that may name the list of a source. Usually one.
    pub(super) fn index_of_source(&self, source: u64) -> impl Iterator<Item = (IndexOfLayer, Section<'a>)> {
        let pieces = self.run.pieces_of_source(source);
        let known = pieces.filter_map(|piece| Some((piece, self.section(piece)?)));
        known.flat_map(move |(piece, (location, section))| {
            let numbers = section.root().index_of_source(source);
            numbers.map(move |number| {
                (IndexOfLayer { piece, location: IndexLocation { section: location, number } }, section)
            })
        })
    }

    /// The first source of all.
    pub(super) fn begins(&self) -> u64 {
        // Only a source below everything in the first piece has no index block, and the plan has loaded the root of that piece for it:
        // every other piece begins with a source that the manifest names.
        self.section(0).and_then(|(_, section)| section.root().first_source(0)).unwrap_or(u64::MAX)
    }

    /// The source that the index block after one begins with, in its piece or the next.
    pub(super) fn begins_after(&self, index: IndexOfLayer, section: &Section<'_>) -> u64 {
        let in_piece = section.root().first_source(index.location.number + 1);
        // The manifest has the first source of the next piece, whose root may not be in memory.
        in_piece.or_else(|| self.run.first_source(index.piece + 1)).unwrap_or(u64::MAX)
    }
}
