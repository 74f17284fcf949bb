//! The index of a version, as far as it is in memory: which block of which segment may hold a key or a list.
//!
//! ```text
//! manifest ── runs of a kind, newest first ──▶ pieces ──▶ root of a segment ──▶ index block, filter ──▶ block
//!             always there                               from its first use on   with the root, or a cache
//! ```
//! The ends of small segments come with the open, roots, index blocks and filters at once, and then everything here is a look
//! into memory. Of a large segment the root is read when it is first used, and stays; its index blocks are blocks like others,
//! and come through the caches ([`Snapshot::each_index_block`]).

mod absent;
mod filters;
mod full_reads;
mod lazy_filter;
mod run;
mod segment;
mod tail;

pub(crate) use run::{Run, SectionLocation, runs, within};
pub(crate) use segment::{Section, Segment, SegmentIndex};
pub(crate) use tail::{Tails, at_first_use, begins_of_tails, read_roots, read_tails};

/// Which index block of which section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IndexLocation {
    pub(crate) section: SectionLocation,
    pub(crate) number: usize,
}
