//! Processor work in pieces, so that it ends with its query and lets others run.
//!
//! A future can only be dropped where it awaits, and a deadline takes effect only where code checks it. A query that
//! works through millions of edges therefore notes its work on a [`Pace`], in units of some nanoseconds (an edge
//! decoded, compared or copied). After each piece, about a millisecond, the pace looks at the deadline and gives way to
//! other tasks. Synchronous work, such as parsing, looks at the deadline alone.
//!
//! Pieces are counted, not timed: a clock would make the order of tasks differ from run to run, and a simulation could
//! not repeat what it found.

use crate::{QueryContext, StorageError};

/// Units of work in a piece. At 1 to 40 ns a unit (a decoded edge, a moved one, one that misses the processor's caches)
/// a piece takes 0.03 to 1.3 ms.
pub const PIECE_UNITS: u64 = 1 << 15;

/// The pace of one task of a query.
#[derive(Debug)]
pub struct Pace {
    context: QueryContext,
    /// Since the last rest.
    worked: u64,
}

impl Pace {
    pub(crate) fn new(context: &QueryContext) -> Self {
        Self { context: context.clone(), worked: 0 }
    }

    /// Notes work that was done; at the end of a piece, looks at the deadline and lets other tasks run.
    ///
    /// # Errors
    /// [`StorageError::Limit`] if the query's time is over.
    pub async fn rest(&mut self, units: u64) -> Result<(), StorageError> {
        if self.ends_piece(units) {
            self.context.check_time()?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// The same for synchronous work: it looks at the deadline, and does not give way to other tasks.
    ///
    /// # Errors
    /// As [`Self::rest`].
    pub fn check(&mut self, units: u64) -> Result<(), StorageError> {
        if self.ends_piece(units) { self.context.check_time() } else { Ok(()) }
    }

    fn ends_piece(&mut self, units: u64) -> bool {
        self.worked += units;
        let ends = self.worked >= PIECE_UNITS;
        if ends {
            self.worked = 0;
        }
        ends
    }
}
