//! A run as a plan sees it: those of its pieces and index blocks that may have a source.

use crate::{
    Snapshot,
    index::{IndexPlace, Run, Section, SectionPlace},
};

/// A run that may have lists of an edge type, and those of its pieces whose roots are in memory: all that have a source of the
/// plan.
pub(super) struct Layer<'a> {
    pub(super) run: &'a Run,
    pub(super) removed: bool,
    sections: Vec<Option<Section<'a>>>,
}

/// An index block of a layer, and in which of its pieces it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexOfLayer {
    piece: usize,
    pub(super) place: IndexPlace,
}

impl<'a> Layer<'a> {
    /// A run of a version, and whether the pairs it mentions are removed.
    pub(super) fn new(snapshot: &'a Snapshot, run: &'a Run, removed: bool) -> Self {
        Self { run, removed, sections: run.places().map(|place| snapshot.section(place).ok()).collect() }
    }

    /// Whether it may have a list of a source; `false` is certain.
    pub(super) fn may_have_source(&self, source: u64) -> bool {
        let mut sections = self.run.pieces_of_source(source).map(|piece| self.sections[piece]);
        sections.any(|section| section.is_none_or(|section| section.may_have_source(source)))
    }

    /// The index blocks that may name the list of a source. Usually one.
    pub(super) fn index_of_source(&self, source: u64) -> Vec<(IndexOfLayer, Section<'a>)> {
        let pieces = self.run.pieces_of_source(source);
        let known = pieces.filter_map(|piece| Some((piece, self.run.place(piece)?, self.sections[piece]?)));
        let of_piece = |(piece, place, section): (usize, SectionPlace, Section<'a>)| {
            let numbers = section.root().index_of_source(source);
            numbers.map(move |number| (IndexOfLayer { piece, place: IndexPlace { section: place, number } }, section))
        };
        known.flat_map(of_piece).collect()
    }

    /// The first source of all.
    pub(super) fn begins(&self) -> u64 {
        let first = self.sections.first().copied().flatten();
        first.and_then(|section| section.root().first_source(0)).unwrap_or(u64::MAX)
    }

    /// The source that the index block after one begins with, in its piece or the next.
    pub(super) fn begins_after(&self, index: IndexOfLayer) -> u64 {
        let section = self.sections[index.piece];
        let in_piece = section.and_then(|section| section.root().first_source(index.place.number + 1));
        in_piece.or_else(|| self.run.first_source(index.piece + 1)).unwrap_or(u64::MAX)
    }
}
