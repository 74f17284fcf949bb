//! A hop becomes a plan: which blocks hold the lists of which sources, answered by indexes and filters.
//!
//! Where an edge type has one sorted run, a block's lists are whole. Where it has several, each source is looked for in
//! all of them: one that only one run may have is as simple as that, and the others are kept together to be
//! merged ([`super::merge`]).

use std::{ops::Range, sync::Arc};

use hoplake_storage::{BlockRequest, MemoryHold, QueryContext, StorageError};

use crate::{memory::bytes_of, read::hop::EdgesOf, snapshot::sections::SectionLocation};

/// The lists of some sources in one block.
#[derive(Debug, Clone)]
pub(crate) struct ListTask {
    pub(crate) of: EdgesOf,
    pub(crate) location: SectionLocation,
    /// The newest version of its run.
    pub(crate) until: u64,
    /// Whether the lists name pairs that have no edge any more.
    pub(crate) removed: bool,
    /// Where the block is.
    pub(crate) block: Range<u64>,
    /// Between which ordinals are those of the frontier, or of the sources of its [`Merge`], whose lists the block may have.
    pub(crate) sources: Range<u64>,
}

/// Sources that several runs of an edge type may have entries for, and all blocks that may hold their lists.
#[derive(Debug, Clone)]
pub(crate) struct Merge {
    pub(crate) sources: Vec<u64>,
    pub(crate) tasks: Vec<ListTask>,
}

/// What one hop reads.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) tasks: Vec<ListTask>,
    pub(crate) merges: Vec<Merge>,
    /// What it and its requests take, until the last of its parts is read.
    pub(super) memory: Option<Arc<MemoryHold>>,
}

impl Plan {
    /// Counts its memory, and that of its requests.
    pub(super) fn count(&mut self, context: &QueryContext) -> Result<(), StorageError> {
        let sources = self.merges.iter().map(|merge| merge.sources.len()).sum();
        // Each task has a request and a reference in `run_part` as well.
        let tasks = bytes_of::<(ListTask, BlockRequest<'_>, &ListTask)>(self.all_tasks().count());
        let hold = context.hold(tasks + bytes_of::<u64>(sources) + bytes_of::<Merge>(self.merges.len()))?;
        self.memory = Some(Arc::new(hold));
        Ok(())
    }

    /// All blocks that it reads: those of single tasks, then those of merges.
    pub(crate) fn all_tasks(&self) -> impl Iterator<Item = &ListTask> {
        self.tasks.iter().chain(self.merges.iter().flat_map(|merge| &merge.tasks))
    }

    /// Its parts that can be read one without the other.
    pub(crate) fn pieces(self) -> impl Iterator<Item = Self> {
        let Self { tasks, merges, memory } = self;
        // Every part keeps the hold of the entire plan, which the last of them gives back.
        let part = move |tasks, merges| Self { tasks, merges, memory: memory.clone() };
        let single = part.clone();
        let tasks = tasks.into_iter().map(move |task| single(vec![task], Vec::new()));
        tasks.chain(merges.into_iter().map(move |merge| part(Vec::new(), vec![merge])))
    }

    /// Takes in another part of the same plan.
    pub(super) fn join(&mut self, other: Self) {
        self.tasks.extend(other.tasks);
        self.merges.extend(other.merges);
        self.memory = other.memory;
    }

    /// Cuts it into `parts` plans of like size.
    pub(crate) fn cut(self, parts: usize) -> Vec<Self> {
        let size = |whole: usize| whole.div_ceil(parts).max(1);
        let tasks = size(self.tasks.len());
        let merges = size(self.merges.len());
        let mut cuts = vec![Self { tasks: Vec::new(), merges: Vec::new(), memory: self.memory }; parts];
        // Consecutive tasks stay together: their blocks are neighbours, and a part can coalesce only its own requests.
        for (number, task) in self.tasks.into_iter().enumerate() {
            cuts[number / tasks].tasks.push(task);
        }
        for (number, merge) in self.merges.into_iter().enumerate() {
            cuts[number / merges].merges.push(merge);
        }
        cuts
    }
}
