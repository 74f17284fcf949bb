//! Counts of requests to a simulated store.

use hoplake_storage::PriceList;

use crate::RequestCounts;

/// Counts of requests to a simulated store since the last reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SimCounts {
    /// Requests sent, those among them that were rejected or cancelled.
    pub requests: RequestCounts,
    /// Those that were answered with 503.
    pub rejected: RequestCounts,
    /// Those that were dropped before their last byte.
    pub cancelled: u64,
    /// Bytes of content that reached the client; of a cancelled request those that were there by then.
    pub bytes_read: u64,
    /// Bytes of content that reached the store, likewise.
    pub bytes_written: u64,
    /// The most requests that were in flight at once.
    pub in_flight_peak: u64,
}

impl SimCounts {
    /// The cost: requests that were not rejected, and bytes. A deletion is free.
    pub fn usd(&self, prices: &PriceList) -> f64 {
        let all = &self.requests;
        let rejected = &self.rejected;
        let gets = all.get + all.head - rejected.get - rejected.head;
        let puts = all.put + all.list - rejected.put - rejected.list;
        prices.reads_usd(gets, self.bytes_read) + prices.writes_usd(puts, self.bytes_written)
    }
}
