//! What object stores charge, with the day on which it was read.

/// Prices of one class of storage, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PriceList {
    /// The class of storage.
    pub name: &'static str,
    /// The day on which the prices were read, as year-month-day.
    pub as_of: &'static str,
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
    /// Nothing costs anything: local files and memory.
    pub const FREE: Self = Self {
        name: "local",
        as_of: "always",
        get_usd_per_1000: 0.0,
        put_usd_per_1000: 0.0,
        read_usd_per_gb: 0.0,
        written_usd_per_gb: 0.0,
        storage_usd_per_gb_month: 0.0,
    };

    /// Amazon S3 Standard, us-east-1.
    pub const S3_STANDARD: Self = Self {
        name: "s3-standard",
        as_of: "2026-11-01",
        get_usd_per_1000: 0.0004,
        put_usd_per_1000: 0.005,
        read_usd_per_gb: 0.0,
        written_usd_per_gb: 0.0,
        storage_usd_per_gb_month: 0.023,
    };

    /// Amazon S3 Express One Zone, us-east-1.
    pub const S3_EXPRESS: Self = Self {
        name: "s3-express",
        as_of: "2026-11-01",
        get_usd_per_1000: 0.00003,
        put_usd_per_1000: 0.00113,
        read_usd_per_gb: 0.0006,
        written_usd_per_gb: 0.0032,
        storage_usd_per_gb_month: 0.11,
    };

    /// The list for a store's URL scheme: local stores are free, all others are counted as S3 Standard.
    pub fn of_scheme(scheme: &str) -> Self {
        match scheme {
            "file" | "memory" => Self::FREE,
            _ => Self::S3_STANDARD,
        }
    }

    /// Dollars of `gets` requests that brought `bytes`.
    pub fn reads_usd(&self, gets: u64, bytes: u64) -> f64 {
        gets as f64 / 1e3 * self.get_usd_per_1000 + bytes as f64 / 1e9 * self.read_usd_per_gb
    }
}
