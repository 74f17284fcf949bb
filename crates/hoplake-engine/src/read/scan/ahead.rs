//! How far a scan reads ahead, and the tasks that do it.

use hoplake_storage::QueryContext;
use tokio::task::JoinHandle;

use crate::{EngineError, Snapshot, read::tables::EXTENT_BYTES};

/// The least, where many scans share a budget: three times the price of its bytes' time.
const EXTENT_BYTES_MIN: u64 = 64 << 10;

/// Extents of one scan that are on their way at once, at most: as many as fill a network card of 10 Gbit, and some more.
const EXTENTS_MAX: u64 = 32;

/// Two short requests: the fewest bytes that are read ahead.
const AHEAD_BYTES_MIN: u64 = 1 << 20;

impl Snapshot {
    /// The bytes that a scan should read ahead: as many as fill the network card, 120 MB before S3 and 9 MB before a local disk, and a
    /// quarter of the memory that a query has left where that is less.
    pub fn ahead_bytes(&self, context: &QueryContext) -> u64 {
        let filling = self.reader().store().profile().bytes_in_flight(EXTENT_BYTES);
        (context.memory().left() / 4).min(filling).max(AHEAD_BYTES_MIN)
    }
}

/// How far a scan reads ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ahead {
    extent_bytes: u64,
    /// Extents that are on their way while one is decoded.
    extents: u64,
}

impl Ahead {
    /// The share of a budget that each of some scans has which go side by side.
    pub(crate) fn of(budget_bytes: u64, scans: usize) -> Self {
        let share = budget_bytes / scans.max(1) as u64;
        // Two extents at least: one on its way while the other is decoded.
        let extent_bytes = (share / 2).clamp(EXTENT_BYTES_MIN, EXTENT_BYTES);
        Self { extent_bytes, extents: (share / extent_bytes).saturating_sub(1).clamp(1, EXTENTS_MAX) }
    }

    pub(crate) fn extent_bytes(self) -> u64 {
        self.extent_bytes
    }

    /// Extents that are asked for before one is taken: those that are then on their way, and the one that is taken.
    pub(crate) fn extents_at_once(self) -> usize {
        self.extents as usize + 1
    }
}

/// Something that is being read while its reader does other things. Dropping it ends the request.
#[derive(Debug)]
pub(crate) struct OnItsWay<T>(JoinHandle<Result<T, EngineError>>);

impl<T: Send + 'static> OnItsWay<T> {
    /// Begins to read. A task of its own goes on while blocks are decoded, which takes no wait.
    pub(crate) fn begin(read: impl Future<Output = Result<T, EngineError>> + Send + 'static) -> Self {
        Self(tokio::spawn(read))
    }

    /// Waits for it.
    pub(crate) async fn arrived(mut self) -> Result<T, EngineError> {
        (&mut self.0).await.map_err(|error| EngineError::Internal(format!("a scan stopped: {error}")))?
    }
}

impl<T> Drop for OnItsWay<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn scans_share_a_budget() {
        let of = |budget, scans| {
            let ahead = Ahead::of(budget, scans);
            (ahead.extent_bytes(), ahead.extents_at_once())
        };
        assert_eq!(of(16 * MIB, 1), (4 * MIB, 4));
        assert_eq!(of(32 * MIB, 4), (4 * MIB, 2), "one decoded while another comes");
        assert_eq!(of(32 * MIB, 32), (MIB / 2, 2));
        assert_eq!(of(1 << 40, 1), (4 * MIB, 33), "no more requests than pay");
        assert_eq!(of(0, 0), (MIB / 16, 2), "never so little that requests are all it pays for");
        for (budget, scans) in [(16 * MIB, 1), (32 * MIB, 4), (32 * MIB, 7), (32 * MIB, 100), (100 * MIB, 3)] {
            let (bytes, extents) = of(budget, scans);
            assert!(bytes * extents as u64 * scans as u64 <= budget, "{scans} scans of {budget}");
        }
    }

    #[tokio::test]
    async fn what_nobody_waits_for_any_more_ends() {
        let held = Arc::new(());
        let inside = held.clone();
        let forever = OnItsWay::begin(async move {
            std::future::pending::<()>().await;
            drop(inside);
            Ok(())
        });
        drop(forever);
        tokio::task::yield_now().await;
        assert_eq!(Arc::strong_count(&held), 1);
        assert_eq!(OnItsWay::begin(async { Ok(7) }).arrived().await.unwrap(), 7);
    }
}
