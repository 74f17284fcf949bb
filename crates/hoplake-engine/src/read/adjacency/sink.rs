//! Takes the lists of a hop as they come.

use hoplake_format::adjacency::Lists;

use crate::read::{frontier::SinkError, hop::EdgesOf};

/// What becomes of the lists that are found.
pub(crate) trait Sink: Send {
    /// Takes lists of one run, which is named by its newest version. A source may have several.
    fn take(&mut self, of: EdgesOf, run: u64, lists: &Lists) -> Result<(), SinkError>;
}
