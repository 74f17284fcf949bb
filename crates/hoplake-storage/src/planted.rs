//! Planted bugs: mistakes that a simulation must find, to show that it would find others.
//!
//! Without the feature `planted-bugs`, which only the simulation turns on, [`planted`] is a constant and the
//! mistakes are not even compiled. With it nothing is wrong either until [`plant`] says which, for one thread.

/// A mistake that somebody could make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bug {
    /// A writer who finds its version taken after a lost answer believes that it was it who took it.
    TakenForOwn,
    /// A batch that is built anew on another writer's version is not resolved anew.
    ResolvedKept,
    /// A batch that is built anew on another writer's version gives out the ordinals that it gave out before.
    OrdinalsKept,
    /// The check for conflicts overlooks the version after the base.
    ConflictSkipsSuccessor,
    /// Batches that change the same items go into one level.
    GroupOverlaps,
    /// Changes are published without the positions of their sources.
    PositionsForgotten,
    /// Deleting a vertex forgets the edges that reach it.
    IncomingForgotten,
    /// A partial change loses the properties that it does not name.
    PartialLoses,
    /// A create without an answer counts as one that failed.
    LostIsFailure,
    /// A create of which nothing is known counts as one that succeeded.
    UnknownIsSuccess,
    /// A batch of which it is not known whether it was published goes into the next level, too.
    UnknownTriedAgain,
    /// The objects of a level of which it is not known whether it was published are removed.
    UnknownCleared,
    /// The manifest is created before its objects are there.
    ManifestFirst,
    /// A version is as old as the clock of its writer says.
    TimeGoesBack,
    /// Readers overlook which pairs a level removed.
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
    /// A snapshot that moves on takes a segment of as many sections for the same.
    IndexReused,
    /// Who joins a request in flight gets the first of its blocks.
    OtherFlight,
    /// Requests are repeated for ever.
    Unbounded,
    /// Of an answer that is longer than the range asked the beginning is taken, unchecked.
    LongAnswer,
    /// A short answer is appended to itself until it is long enough, unchecked.
    ShortTwice,
    /// A vacuum takes the objects of those who write the next version for leftovers.
    FenceForgotten,
    /// A vacuum empties the slots of versions that go, and with them those that stop stalled writers.
    SlotFreed,
    /// A vacuum keeps the objects of the newest version only.
    PastForgotten,
    /// A vacuum lets tagged versions go.
    TagsForgotten,
    /// A vacuum removes versions without publishing that they go.
    Undecided,
    /// A compaction forgets what its parts removed, though older parts have it.
    GoneForgotten,
    /// A compaction publishes over parts that another has merged meanwhile.
    MergedTwice,
    /// A vacuum takes the objects of writers that announced themselves for leftovers.
    IntentIgnored,
    /// A writer that a vacuum took for dead publishes all the same.
    AbortIgnored,
    /// A compaction takes the rows of edges from the oldest of its parts.
    RowsSwapped,
    /// Blocks from the local disk are not checked.
    DiskUnchecked,
    /// Blocks on the local disk are told apart by their position alone, and believed.
    DiskPlaceAlone,
    /// A block that the local disk has lost is asked of nobody.
    DiskLossKept,
    /// An upload in parts counts as done without its last answer.
    CompletedUnheard,
    /// A clone has no tag in the graph that it began as.
    CloneUntagged,
    /// The bytes of a file are not flushed before it gets its name.
    FileUnflushed,
    /// A folder is not flushed before what it holds is acknowledged.
    FolderUnflushed,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 42] = [
        Self::TakenForOwn,
        Self::ResolvedKept,
        Self::OrdinalsKept,
        Self::ConflictSkipsSuccessor,
        Self::GroupOverlaps,
        Self::PositionsForgotten,
        Self::IncomingForgotten,
        Self::PartialLoses,
        Self::LostIsFailure,
        Self::UnknownIsSuccess,
        Self::UnknownTriedAgain,
        Self::UnknownCleared,
        Self::ManifestFirst,
        Self::TimeGoesBack,
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
        Self::FenceForgotten,
        Self::SlotFreed,
        Self::PastForgotten,
        Self::TagsForgotten,
        Self::Undecided,
        Self::GoneForgotten,
        Self::MergedTwice,
        Self::IntentIgnored,
        Self::AbortIgnored,
        Self::RowsSwapped,
        Self::DiskUnchecked,
        Self::DiskPlaceAlone,
        Self::DiskLossKept,
        Self::CompletedUnheard,
        Self::CloneUntagged,
        Self::FileUnflushed,
        Self::FolderUnflushed,
    ];
}

#[cfg(feature = "planted-bugs")]
thread_local! {
    static PLANTED: std::cell::Cell<(Option<Bug>, Option<u64>)> = const { std::cell::Cell::new((None, None)) };
}

/// Whether a mistake is made, on this thread.
#[cfg(feature = "planted-bugs")]
pub fn planted(bug: Bug) -> bool {
    PLANTED.get().0 == Some(bug)
}

/// Whether a mistake is made: never.
#[cfg(not(feature = "planted-bugs"))]
#[inline]
pub const fn planted(_: Bug) -> bool {
    false
}

/// What this thread draws from where nobody says what to draw from.
#[cfg(feature = "planted-bugs")]
pub(crate) fn seed() -> Option<u64> {
    PLANTED.get().1
}

/// What this thread draws from where nobody says what to draw from: nothing that repeats.
#[cfg(not(feature = "planted-bugs"))]
pub(crate) const fn seed() -> Option<u64> {
    None
}

/// Makes a mistake from now on, or none, on this thread, which draws from `seed`.
#[cfg(feature = "planted-bugs")]
pub fn plant(bug: Option<Bug>, seed: u64) {
    PLANTED.set((bug, Some(seed)));
}
