//! The prices, latencies and limits of a kind of store.
//!
//! **What it is.** A [`StoreProfile`] is what a plan of reads, a cost in dollars and a simulated store
//! must agree on. Those that are shipped are in one file of settings, `profiles.toml`, which is part of
//! the binary; a user with other prices or another network gives a file of the same shape.
//!
//! **Why one published model.** Latency against a real bucket cannot be had in a test, and a figure that
//! depends on the day cannot be compared. The model names the source of its numbers next to them.

mod latency;

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, LazyLock},
    time::Duration,
};

use serde::Deserialize;
use thiserror::Error;

use crate::PriceList;
pub use latency::Latency;

/// The file of settings that is shipped.
static SHIPPED: LazyLock<Profiles> =
    LazyLock::new(|| Profiles::parse(include_str!("../../../profiles.toml")).expect("the shipped profiles are valid"));

/// Prices, latencies and limits of one kind of store.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreProfile {
    /// Its name, such as `s3-standard`.
    #[serde(skip)]
    pub name: String,
    /// When latencies and limits were measured or published.
    pub as_of: String,
    /// Its prices.
    pub prices: PriceList,
    /// The first byte of a GET or HEAD.
    pub get: Latency,
    /// The answer to a PUT or DELETE, without the time that its bytes take.
    pub put: Latency,
    /// One page of a listing.
    pub list: Latency,
    /// Bytes per second of one stream, after the first byte.
    pub stream_bytes_per_second: u64,
    /// Bytes per second of all streams of one client together, in each direction.
    pub network_bytes_per_second: u64,
    /// The client's processor time per request, in microseconds.
    pub request_processor_us: u64,
    /// Whether it pays to send a slow request a second time.
    pub hedges: bool,
    /// GET, HEAD and LIST requests per second under one prefix; what exceeds them is answered with 503.
    pub gets_per_second: u32,
    /// PUT and DELETE requests per second under one prefix; what exceeds them is answered with 503.
    pub puts_per_second: u32,
}

impl StoreProfile {
    /// How long `bytes` take in one stream, after the first byte.
    pub fn transfer(&self, bytes: u64) -> Duration {
        Duration::from_secs_f64(bytes as f64 / self.stream_bytes_per_second as f64)
    }

    /// The bytes that one stream transfers in the median time to a first byte: a request for fewer waits more than it reads.
    pub fn bytes_per_first_byte(&self) -> u64 {
        (self.get.quantile(0.5).as_secs_f64() * self.stream_bytes_per_second as f64) as u64
    }

    /// The bytes that have to be on their way for all streams together to fill the network card, if each request is for `bytes`.
    pub fn bytes_in_flight(&self, bytes: u64) -> u64 {
        let request = self.get.quantile(0.5) + self.transfer(bytes);
        (request.as_secs_f64() * self.network_bytes_per_second as f64) as u64
    }

    /// Amazon S3 Standard, us-east-1.
    pub fn s3_standard() -> Arc<Self> {
        Self::shipped("s3-standard")
    }

    /// Amazon S3 Express One Zone, us-east-1.
    pub fn s3_express() -> Arc<Self> {
        Self::shipped("s3-express")
    }

    /// Google Cloud Storage, Standard class.
    pub fn gcs_standard() -> Arc<Self> {
        Self::shipped("gcs-standard")
    }

    /// Azure Blob Storage, hot tier.
    pub fn azure_hot() -> Arc<Self> {
        Self::shipped("azure-hot")
    }

    /// Local files and memory, which charge nothing.
    pub fn local() -> Arc<Self> {
        Self::shipped("local")
    }

    fn shipped(name: &str) -> Arc<Self> {
        SHIPPED.get(name).expect("the shipped profiles have these names")
    }

    /// The shipped profile for a store's URL: `file` and `memory` are local, `gs` is Google Cloud Storage and `az`
    /// Azure Blob Storage, a bucket of S3 whose name ends with `--x-s3` is Express One Zone, and all others are taken
    /// for S3 Standard. Which class or tier a bucket has is not in its URL: the commonest is assumed.
    pub fn of_url(url: &str) -> Arc<Self> {
        let (scheme, rest) = url.split_once("://").unwrap_or((url.split(':').next().unwrap_or_default(), ""));
        let bucket = rest.split('/').next().unwrap_or_default();
        match scheme {
            "file" | "memory" => Self::local(),
            "s3" | "s3a" if bucket.ends_with("--x-s3") => Self::s3_express(),
            "gs" => Self::gcs_standard(),
            "az" | "azure" | "abfs" | "abfss" => Self::azure_hot(),
            _ => Self::s3_standard(),
        }
    }

    fn check(&self) -> Result<(), String> {
        if !self.prices.is_valid() {
            return Err("a price is below 0 or no number".into());
        }
        let rates = [self.stream_bytes_per_second, self.network_bytes_per_second];
        // Planner and simulated store divide by these rates.
        if rates.contains(&0) || self.gets_per_second == 0 || self.puts_per_second == 0 {
            return Err("each …_per_second must be above 0".into());
        }
        Ok(())
    }
}

/// The profiles of one file of settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Profiles(BTreeMap<String, Arc<StoreProfile>>);

/// Why a file of settings was not taken.
#[derive(Debug, Error)]
pub enum ProfileError {
    /// It could not be read.
    #[error("could not read {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// It is not of the shape of the shipped one.
    #[error("line {line}: {message}")]
    Shape {
        /// Where, from 1.
        line: usize,
        /// The mistake.
        message: String,
    },
    /// A value cannot be.
    #[error("profile {name}: {why}")]
    Value {
        /// The profile it is in.
        name: String,
        /// The mistake.
        why: String,
    },
}

impl Profiles {
    /// Those that are shipped: `azure-hot`, `gcs-standard`, `local`, `s3-express` and `s3-standard`.
    pub fn shipped() -> &'static Self {
        &SHIPPED
    }

    /// Those of a file.
    ///
    /// # Errors
    /// [`ProfileError`] if it cannot be read, or as [`Profiles::parse`].
    pub fn read(file: &Path) -> Result<Self, ProfileError> {
        let text = std::fs::read_to_string(file)
            .map_err(|source| ProfileError::Read { file: file.display().to_string(), source })?;
        Self::parse(&text)
    }

    /// Those of a text in TOML, of the shape of the shipped `profiles.toml`.
    ///
    /// # Errors
    /// [`ProfileError`] if the text has another shape, or a value cannot be.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let parsed: BTreeMap<String, StoreProfile> = toml::from_str(text).map_err(|error| misshapen(text, &error))?;
        let mut profiles = BTreeMap::new();
        for (name, mut profile) in parsed {
            profile.check().map_err(|why| ProfileError::Value { name: name.clone(), why })?;
            // The name is the table's, and is not repeated in it: both names skip deserialization.
            profile.name.clone_from(&name);
            profile.prices.name.clone_from(&name);
            profiles.insert(name, Arc::new(profile));
        }
        Ok(Self(profiles))
    }

    /// The profile of this name.
    pub fn get(&self, name: &str) -> Option<Arc<StoreProfile>> {
        self.0.get(name).cloned()
    }

    /// The names of all, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// The parser's error as one sentence: its own text draws the position on several lines.
fn misshapen(text: &str, error: &toml::de::Error) -> ProfileError {
    // Without a span the first line is named: the error concerns the file as a whole.
    let until = error.span().map_or(0, |span| span.start);
    let line = 1 + text.bytes().take(until).filter(|byte| *byte == b'\n').count();
    ProfileError::Shape { line, message: error.message().replace('\n', " ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_names_the_profile() {
        for (url, name) in [
            ("file:///tmp/graph", "local"),
            ("memory://x/graph", "local"),
            ("s3://bucket/graph", "s3-standard"),
            ("s3://graphs--use1-az4--x-s3/graph", "s3-express"),
            ("s3://bucket/graphs--use1-az4--x-s3", "s3-standard"),
            ("gs://bucket--x-s3/graph", "gcs-standard"),
            ("az://container/graph", "azure-hot"),
            ("abfss://container@account.dfs.core.windows.net/graph", "azure-hot"),
        ] {
            assert_eq!(StoreProfile::of_url(url).name, name, "{url}");
        }
    }

    #[test]
    fn the_shipped_prices_are_those_of_the_design() {
        assert_eq!(
            Profiles::shipped().names().collect::<Vec<_>>(),
            ["azure-hot", "gcs-standard", "local", "s3-express", "s3-standard"]
        );
        for (other, storage) in [(StoreProfile::gcs_standard(), 0.020), (StoreProfile::azure_hot(), 0.018)] {
            let PriceList { get_usd_per_1000, put_usd_per_1000, storage_usd_per_gb_month, .. } = other.prices;
            assert_eq!((get_usd_per_1000, put_usd_per_1000, storage_usd_per_gb_month), (0.0004, 0.005, storage));
        }
        let standard = &StoreProfile::s3_standard().prices;
        assert_eq!((standard.get_usd_per_1000, standard.put_usd_per_1000), (0.0004, 0.005));
        assert_eq!((standard.storage_usd_per_gb_month, standard.reads_usd(0, 1 << 40)), (0.023, 0.0));
        let express = &StoreProfile::s3_express().prices;
        assert_eq!((express.get_usd_per_1000, express.put_usd_per_1000), (0.00003, 0.00113));
        assert_eq!((express.read_usd_per_gb, express.written_usd_per_gb), (0.0006, 0.0032));
        assert_eq!((express.storage_usd_per_gb_month, &*express.name), (0.11, "s3-express"));
        let local = &StoreProfile::local().prices;
        assert_eq!((local.reads_usd(1_000, 1 << 40), local.writes_usd(1_000, 1 << 40)), (0.0, 0.0));
        assert_eq!(express.writes_usd(1_000, 1_000_000_000), 0.00113 + 0.0032);
    }

    #[test]
    fn what_cannot_be_is_rejected_with_its_place() {
        let shipped = include_str!("../../../profiles.toml");
        for (from, to, words) in [
            ("gets_per_second = 5_500", "gets_per_second = 0", "above 0"),
            ("get_usd_per_1000 = 0.0004", "get_usd_per_1000 = -1.0", "a price is below 0"),
            ("get_usd_per_1000 = 0.0004", "gets_usd = 1.0", "line 29: unknown field `gets_usd`"),
            ("put = { p50_ms = 28.0, p99_ms = 80.0 }", "put = { p50_ms = 28.0 }", "p99_ms"),
            ("put = { p50_ms = 28.0, p99_ms = 80.0 }", "put = { p50_ms = 28.0, p99_ms = 8.0 }", "above p50_ms"),
            ("straggler_share = 0.0015", "straggler_share = 2.0", "straggler_share"),
        ] {
            let text = shipped.replacen(from, to, 1);
            let error = Profiles::parse(&text).unwrap_err().to_string();
            assert!(error.contains(words), "{to}: {error}");
        }
        let missing = Profiles::read(Path::new("/no/such/file")).unwrap_err();
        assert!(missing.to_string().contains("/no/such/file"), "{missing}");
    }
}
