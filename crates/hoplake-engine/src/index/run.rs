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
    pieces: Arc<[Piece]>,
}

#[derive(Debug, Clone)]
struct Piece {
    location: SectionLocation,
    /// What it begins with, but for the first.
    first: Option<First>,
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

    /// The source that a piece begins with.
    pub(crate) fn first_source(&self, piece: usize) -> Option<u64> {
        match self.pieces.get(piece)?.first {
            Some(First::Number(first)) => Some(first),
            _ => None,
        }
    }
}

/// The runs of each kind, the newest first.
pub(crate) fn runs(manifest: &Manifest) -> Result<HashMap<SectionKind, Vec<Run>>, FormatError> {
    let mut pieces: HashMap<(SectionKind, VersionRange), Vec<Piece>> = HashMap::new();
    for (segment, reference) in manifest.segments.iter().enumerate() {
        for (section, named) in reference.sections.iter().enumerate() {
            let Some(versions) = named.versions else { continue };
            let piece = Piece { location: SectionLocation { segment, section }, first: named.continues.clone() };
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
