//! Planted bugs: mistakes that a simulation must find, to show that it would find others.
//!
//! Without the feature `planted-bugs`, which only the simulation turns on, [`planted`] is a constant and the
//! mistakes are not even compiled. With it nothing is wrong either until [`plant`] says which, for one thread.

/// A mistake that somebody could make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bug {
    /// A writer who finds its version taken believes that it was it who took it, without looking at whose it is.
    TakenForOwn,
    /// A batch that is built anew on another writer's version keeps the ordinals it had.
    OrdinalsKept,
    /// The check for conflicts looks only behind the version after the base.
    ConflictSkipsSuccessor,
    /// Batches that change the same items go into one level.
    GroupOverlaps,
    /// The source positions of a batch are published with the next one's changes.
    PositionsLate,
    /// Deleting a vertex forgets the edges that reach it.
    IncomingForgotten,
    /// A partial change loses the properties that it does not name.
    PartialLoses,
    /// The answer to a lost create is not asked for: it counts as a failure.
    LostIsFailure,
    /// The manifest is created before its objects are there.
    ManifestFirst,
    /// A commit is acknowledged before its manifest is there.
    EarlyAnswer,
    /// A level's pairs without edges are ignored by readers.
    RemovedIgnored,
    /// Filters are asked with another hash than they were built with.
    FilterLies,
    /// Where several parts have a row, the oldest decides.
    OldestRowWins,
    /// Where several parts have a key, the oldest decides.
    OldestKeyWins,
    /// A hint is believed to be the newest version.
    HintBelieved,
    /// Blocks are not checked.
    Unchecked,
    /// A snapshot that moves on takes the segment in the same place for the same.
    IndexReused,
    /// A block in flight is taken from whichever request is under way for its object.
    OtherFlight,
    /// Requests are repeated for ever.
    Unbounded,
    /// Of an answer that is longer than the range asked, the beginning is taken.
    LongAnswer,
    /// What was missing of a short answer is filled with its beginning.
    ShortTwice,
    /// A vacuum removes manifests of the past, though their slots stop stalled writers.
    SlotFreed,
    /// A vacuum takes the objects of the newest version's writers for leftovers.
    FenceForgotten,
    /// A vacuum looks at the newest version only.
    PastForgotten,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 24] = [
        Self::TakenForOwn,
        Self::OrdinalsKept,
        Self::ConflictSkipsSuccessor,
        Self::GroupOverlaps,
        Self::PositionsLate,
        Self::IncomingForgotten,
        Self::PartialLoses,
        Self::LostIsFailure,
        Self::ManifestFirst,
        Self::EarlyAnswer,
        Self::RemovedIgnored,
        Self::FilterLies,
        Self::OldestRowWins,
        Self::OldestKeyWins,
        Self::HintBelieved,
        Self::Unchecked,
        Self::IndexReused,
        Self::OtherFlight,
        Self::Unbounded,
        Self::LongAnswer,
        Self::ShortTwice,
        Self::SlotFreed,
        Self::FenceForgotten,
        Self::PastForgotten,
    ];
}

#[cfg(feature = "planted-bugs")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Whether a mistake is made, on this thread.
#[cfg(feature = "planted-bugs")]
pub fn planted(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

/// Whether a mistake is made: never.
#[cfg(not(feature = "planted-bugs"))]
#[inline]
pub const fn planted(_: Bug) -> bool {
    false
}

/// Makes a mistake from now on, or none, on this thread.
#[cfg(feature = "planted-bugs")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}
