//! Prices of object stores, with the date of their price lists.

use serde::Deserialize;

/// Prices of one class of storage, in US dollars. Those that are shipped are in `profiles.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceList {
    /// The class of storage; that of the profile it is in.
    #[serde(skip)]
    pub name: String,
    /// The day on which the prices were read, as year-month-day.
    pub as_of: String,
    /// For 1,000 GET requests.
    pub get_usd_per_1000: f64,
    /// For 1,000 PUT or LIST requests.
    pub put_usd_per_1000: f64,
    /// For a GB (10⁹ bytes) read.
    pub read_usd_per_gb: f64,
    /// For a GB (10⁹ bytes) written.
    pub written_usd_per_gb: f64,
    /// For a GB (10⁹ bytes) kept for a month.
    pub storage_usd_per_gb_month: f64,
}

impl PriceList {
    /// Dollars of `gets` requests that brought `bytes`.
    pub fn reads_usd(&self, gets: u64, bytes: u64) -> f64 {
        gets as f64 / 1e3 * self.get_usd_per_1000 + bytes as f64 / 1e9 * self.read_usd_per_gb
    }

    /// Dollars of `puts` requests (PUT or LIST) that brought `bytes` there.
    pub fn writes_usd(&self, puts: u64, bytes: u64) -> f64 {
        puts as f64 / 1e3 * self.put_usd_per_1000 + bytes as f64 / 1e9 * self.written_usd_per_gb
    }

    /// Whether every price is a number from 0.
    pub(crate) fn is_valid(&self) -> bool {
        let requests = [self.get_usd_per_1000, self.put_usd_per_1000];
        let bytes = [self.read_usd_per_gb, self.written_usd_per_gb, self.storage_usd_per_gb_month];
        requests.iter().chain(&bytes).all(|price| price.is_finite() && *price >= 0.0)
    }
}
