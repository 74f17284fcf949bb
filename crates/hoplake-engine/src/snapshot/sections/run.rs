//! Sorted runs: the sections of a kind, each of which may go on over several segments.

use std::{cmp::Reverse, collections::HashMap, ops::Range, sync::Arc};

use hoplake_format::{First, FormatError, Key, Manifest, VersionRange, segment::SectionKind};

/// Where a section is, or a piece of one: which segment, and which of its sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SectionLocation {
    pub(crate) segment: usize,
    pub(crate) section: usize,
}

/// What some versions changed of a kind, in the order of its sources or keys.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) versions: VersionRange,
    pieces: Arc<[SectionPiece]>,
}

/// One of the sections that a run is cut into.
#[derive(Debug, Clone)]
struct SectionPiece {
    location: SectionLocation,
    /// What it begins with, but for the first.
    first: Option<First>,
}

impl SectionPiece {
    /// What its items begin with; the first piece begins before everything.
    fn text(&self) -> &[u8] {
        match &self.first {
            Some(First::Text(first)) => first.as_bytes(),
            _ => &[],
        }
    }
}

impl Run {
    /// Its pieces, in order.
    pub(crate) fn locations(&self) -> impl ExactSizeIterator<Item = SectionLocation> + Clone + '_ {
        self.pieces.iter().map(|piece| piece.location)
    }

    /// A piece, by its number.
    pub(crate) fn location(&self, number: usize) -> Option<SectionLocation> {
        self.pieces.get(number).map(|piece| piece.location)
    }

    /// The piece that may hold a key.
    pub(crate) fn location_of_key(&self, key: &Key) -> Option<SectionLocation> {
        if let [only] = &self.pieces[..] {
            return Some(only.location);
        }
        let first = match key {
            Key::Int64(key) => First::Number(hoplake_format::segment::index_block::ordered(*key)),
            Key::String(key) => First::Text(key.clone()),
        };
        // The first piece has no first item in the manifest: it begins before everything.
        let through = self.pieces.partition_point(|piece| piece.first.as_ref().is_none_or(|it| *it <= first));
        self.location(through.checked_sub(1)?)
    }

    /// The pieces that may have the list of a source, as numbers: the last that begins with less, and those that begin
    /// with it.
    pub(crate) fn pieces_of_source(&self, source: u64) -> Range<usize> {
        if self.pieces.len() == 1 {
            return 0..1;
        }
        let first = First::Number(source);
        let begins = |is_before: fn(&First, &First) -> bool| {
            self.pieces.partition_point(|piece| piece.first.as_ref().is_none_or(|it| is_before(it, &first)))
        };
        begins(|it, first| it < first).saturating_sub(1)..begins(|it, first| it <= first)
    }

    /// The pieces that may have items of a range, as numbers.
    pub(crate) fn pieces_of_items(&self, items: &Range<Vec<u8>>) -> Range<usize> {
        within(self.pieces.len(), |piece| self.pieces[piece].text(), items)
    }

    /// What the items of a piece begin with, and what those of the next do.
    pub(crate) fn items_of_piece(&self, number: usize) -> (&[u8], Option<&[u8]>) {
        (self.pieces.get(number).map_or(&[], SectionPiece::text), self.pieces.get(number + 1).map(SectionPiece::text))
    }

    /// The source that a piece begins with.
    pub(crate) fn first_source(&self, piece: usize) -> Option<u64> {
        match self.pieces.get(piece)?.first {
            Some(First::Number(first)) => Some(first),
            _ => None,
        }
    }
}

/// Which of `count` consecutive stretches of items, given by what each begins with, may have items of a range: the last that begins
/// with no more than its start, and those that begin before its end.
pub(crate) fn within<'a>(count: usize, first: impl Fn(usize) -> &'a [u8], items: &Range<Vec<u8>>) -> Range<usize> {
    let point = |is_before: &dyn Fn(&[u8]) -> bool| {
        let mut low = 0;
        let mut high = count;
        while low < high {
            let middle = low + (high - low) / 2;
            if is_before(first(middle)) { low = middle + 1 } else { high = middle }
        }
        low
    };
    let end = point(&|first| first < items.end.as_slice());
    point(&|first| first <= items.start.as_slice()).saturating_sub(1).min(end)..end
}

/// The runs of each kind, the newest first.
pub(crate) fn runs(manifest: &Manifest) -> Result<HashMap<SectionKind, Vec<Run>>, FormatError> {
    let mut pieces: HashMap<(SectionKind, VersionRange), Vec<SectionPiece>> = HashMap::new();
    for (segment, reference) in manifest.segments.iter().enumerate() {
        for (section, named) in reference.sections.iter().enumerate() {
            let Some(versions) = named.versions else { continue };
            let piece = SectionPiece { location: SectionLocation { segment, section }, first: named.continues.clone() };
            // The manifest lists pieces in the order of their items, so they need no sorting.
            pieces.entry((named.kind, versions)).or_default().push(piece);
        }
    }
    let mut runs: HashMap<SectionKind, Vec<Run>> = HashMap::new();
    for ((kind, versions), pieces) in pieces {
        runs.entry(kind).or_default().push(Run { versions, pieces: pieces.into() });
    }
    for (kind, of_kind) in &mut runs {
        of_kind.sort_unstable_by_key(|run| Reverse(run.versions.until));
        // Runs that overlap have no newest one: which entry decides would depend on the order of the manifest.
        if let Some(pair) = of_kind.windows(2).find(|pair| pair[1].versions.until >= pair[0].versions.since) {
            let why = format!("{kind:?} occurs twice, of {:?} and {:?}", pair[1].versions, pair[0].versions);
            return Err(FormatError::corrupt("manifest", why));
        }
    }
    Ok(runs)
}
