//! stand-in until the profiles land
use crate::PriceList;
use std::time::Duration;
/// Latency.
#[derive(Debug, Clone, PartialEq)]
pub struct Latency {
    pub(crate) base_ms: f64,
    pub(crate) scale_ms: f64,
    pub(crate) sigma: f64,
}
impl Latency {
    /// q
    pub fn quantile(&self, p: f64) -> Duration {
        // Acklam-free: bisection on erf is not here; logistic stand-in
        let p = p.clamp(1e-6, 1.0 - 1e-6);
        let z = (p / (1.0 - p)).ln() / 1.702;
        Duration::from_secs_f64((self.base_ms + self.scale_ms * (self.sigma * z).exp()) / 1e3)
    }
}
/// Profile.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreProfile {
    /// prices
    pub prices: PriceList,
    /// get
    pub get: Latency,
    /// bytes
    pub stream_bytes_per_second: f64,
    /// network
    pub network_bytes_per_second: f64,
    /// cpu
    pub request_cpu_us: f64,
    /// hedges
    pub hedges: bool,
}
impl StoreProfile {
    /// named
    pub fn named(name: &str) -> Option<Self> {
        let (prices, base_ms, scale_ms) = match name {
            "s3-standard" => (PriceList::S3_STANDARD, 15.0, 10.0),
            "s3-express" => (PriceList::S3_EXPRESS, 2.5, 2.5),
            _ => (PriceList::FREE, 0.02, 0.02),
        };
        let local = !name.starts_with("s3");
        let stream = if local { 2e9 } else { 55.0 * 1048576.0 };
        Some(Self {
            prices,
            get: Latency { base_ms, scale_ms, sigma: 0.75 },
            stream_bytes_per_second: stream,
            network_bytes_per_second: 1.25e9,
            request_cpu_us: if local { 10.0 } else { 50.0 },
            hedges: !local,
        })
    }
    /// of url
    pub fn of_url(url: &str) -> Self {
        let local = url.starts_with("file:") || url.starts_with("memory:");
        Self::named(if local { "local" } else { "s3-standard" }).expect("both are there")
    }
    /// transfer
    pub fn transfer(&self, bytes: u64) -> Duration {
        Duration::from_secs_f64(bytes as f64 / self.stream_bytes_per_second)
    }
}
