//! The graphs that are open, are being opened, or are known to be absent.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::{BoxFuture, Shared};
use hoplake::Graph;

use crate::failure::Failure;

/// How long an absent name is remembered: short, since a graph may appear at any time.
const ABSENT_FOR: Duration = Duration::from_secs(5);
/// The maximum number of absent names that are remembered.
const ABSENT_MAX: usize = 1_024;

/// A graph that stays open for as long as this is held.
#[derive(Debug)]
pub(crate) struct OpenGraph {
    /// The name in the request.
    pub(crate) name: String,
    /// The graph, at one version.
    pub(crate) graph: Graph,
}

/// A look for a newer version that is under way.
pub(super) type Look = Shared<BoxFuture<'static, Result<(), Failure>>>;

/// An opening that is under way.
pub(super) type Opening = Shared<BoxFuture<'static, Result<Arc<OpenGraph>, Failure>>>;

/// A name and a version; 0 is the newest.
pub(super) type SlotKey = (String, u64);

/// A graph that is open.
pub(super) struct Slot {
    pub(super) graph: Arc<OpenGraph>,
    pub(super) used: Instant,
    pub(super) looked: Instant,
    pub(super) look: Option<Look>,
    /// Looks that began since the last thorough one.
    pub(super) looks: u32,
    /// When the open version was last known to be there.
    pub(super) seen: Instant,
    /// Whether the open version is known to be removed.
    pub(super) removed: bool,
}

impl Slot {
    pub(super) fn new(graph: Arc<OpenGraph>) -> Self {
        let now = Instant::now();
        Self { graph, used: now, looked: now, look: None, looks: 0, seen: now, removed: false }
    }

    /// Whether the open version is this one.
    pub(super) fn has_version(&self, version: u64) -> bool {
        self.graph.graph.version() == version
    }

    /// Whether it is held outside of the slot.
    pub(super) fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.graph) > 1
    }
}

/// The state of a requested graph.
pub(super) enum SlotState {
    Open(Arc<OpenGraph>),
    Opening(Opening),
    /// It is open, but older than it should be: the look is to be waited for.
    Old(Arc<OpenGraph>, SlotKey, Look),
}

/// The state of a graph that is about to be refreshed.
pub(super) enum RefreshState {
    /// It is open, and nothing is under way.
    Nothing,
    /// A look that began earlier.
    Look(Look),
    /// An opening that began earlier.
    Opening(Opening),
    /// An opening that begins now, and so finds what was published before.
    Begun(Opening),
}

/// The graphs of a catalog.
#[derive(Default)]
pub(super) struct Slots {
    /// Those that are open.
    pub(super) open: HashMap<SlotKey, Slot>,
    /// Those that are looked for.
    pub(super) openings: HashMap<SlotKey, Opening>,
    /// Names that were not found, and when.
    pub(super) absent: HashMap<SlotKey, Instant>,
}

impl Slots {
    /// Whether the name is known to be absent.
    pub(super) fn is_absent(&self, key: &SlotKey) -> bool {
        self.absent.get(key).is_some_and(|since| since.elapsed() < ABSENT_FOR)
    }

    /// Remembers an absent name, and forgets the others if there are too many.
    pub(super) fn note_absent(&mut self, key: SlotKey) {
        // Random names must not fill the memory: first those go that mean nothing any more, and then all, which costs one
        // look each.
        if self.absent.len() >= ABSENT_MAX {
            self.absent.retain(|_, since| since.elapsed() < ABSENT_FOR);
        }
        if self.absent.len() >= ABSENT_MAX {
            self.absent.clear();
        }
        self.absent.insert(key, Instant::now());
    }
}
