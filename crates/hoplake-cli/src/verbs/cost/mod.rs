//! `hoplake cost`: what a graph costs an hour in an object store, and on instances with local disks.

#[cfg(feature = "plots")]
mod plot;
mod report;

use std::path::PathBuf;

use bytesize::ByteSize;
use hoplake::{PriceList, Profiles};
use hoplake_costs::{CostModel, InstanceTable, Workload};

#[cfg(feature = "plots")]
use crate::output::check_writable;
use crate::{arguments, failure::Failure};

/// Print what a graph costs in an object store, and on instances whose disks hold it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
An access is a look-up of one vertex's neighbours. Prices are list prices with their dates; hardware that is
reserved or negotiated, and the cost of operators, are not included.

With --prices study the instances are those of the study whose model this is (A. Chandla, TU Eindhoven, 2024),
at its rounded prices; its 5 TB are 5TiB.

Examples:
  hoplake cost --size 5TB --accesses-per-second 1000
  hoplake cost --size 5TB --accesses-per-second 1000 --hit-ratio 0.9 --accesses-per-request 4 --plot cost.svg
  hoplake cost --size 5TiB --accesses-per-second 100000 --prices study")]
pub struct Args {
    /// The size of the graph, as in 5TB or 800GiB
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    size: ByteSize,
    /// Look-ups of a vertex's neighbours, a second
    #[arg(long, value_name = "N", value_parser = from_0)]
    accesses_per_second: f64,
    /// The share of accesses that a cache serves, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    hit_ratio: f64,
    /// How many of the others share a request
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = from_1)]
    accesses_per_request: f64,
    /// The bytes of a request; counts where reads are priced by the byte
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = arguments::size)]
    bytes_per_request: ByteSize,
    /// Accesses a second that one instance serves from the object store, if you measured it
    #[arg(long, value_name = "N", value_parser = from_1)]
    accesses_per_instance: Option<f64>,
    /// The number of instances whose disks hold a copy of the graph; a lost instance loses its disks
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    copies: u64,
    /// Which store: s3-standard, s3-express, gcs-standard, azure-hot, or one of --profiles
    #[arg(long, value_name = "NAME", default_value = "s3-standard")]
    profile: String,
    /// A file of stores and their prices, instead of the built-in one
    #[arg(long, value_name = "FILE")]
    profiles: Option<PathBuf>,
    /// A file of instances and their prices, instead of the built-in one; or study
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Draw dollars an hour against accesses a second
    #[cfg(feature = "plots")]
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

/// The alternatives to compare.
struct Comparison {
    model: CostModel,
    /// Without caching and joining.
    plain: Workload,
    /// With both, if any was requested.
    improved: Option<Workload>,
}

/// The size in GB of 10⁹ bytes, or TB, as stores charge for it.
fn size(comparison: &Comparison) -> String {
    ByteSize(comparison.plain.size_bytes).display().si().to_string()
}

/// Runs the verb.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut table = instances(args)?;
    if let Some(rate) = args.accesses_per_instance {
        table = table.with_object_accesses_per_second(rate);
    }
    #[cfg(feature = "plots")]
    args.plot.as_deref().map_or(Ok(()), check_writable)?;
    let plain = Workload {
        bytes_per_request: args.bytes_per_request.as_u64() as f64,
        copies: args.copies,
        ..Workload::new(args.size.as_u64(), args.accesses_per_second)
    };
    let hit_ratio = args.hit_ratio;
    let accesses_per_request = args.accesses_per_request;
    let improves = hit_ratio > 0.0 || accesses_per_request > 1.0;
    let improved = improves.then_some(Workload { hit_ratio, accesses_per_request, ..plain });
    let comparison = Comparison { model: CostModel::new(store_prices(args)?, table), plain, improved };
    #[cfg(feature = "plots")]
    if let Some(file) = &args.plot {
        plot::draw(&comparison, file)?;
    }
    if args.json { report::json(&comparison) } else { report::text(&comparison) }
}

fn store_prices(args: &Args) -> anyhow::Result<PriceList> {
    let read = args.profiles.as_deref().map(|file| {
        Profiles::read(file).map_err(|error| {
            let message = format!("--profiles {} is not a file of stores: {error}", file.display());
            Failure::usage(message, "it has the shape of crates/hoplake-storage/profiles.toml in the sources")
        })
    });
    let read = read.transpose()?;
    let profiles = read.as_ref().unwrap_or(Profiles::shipped());
    let profile = profiles.get(&args.profile).ok_or_else(|| {
        let known: Vec<_> = profiles.names().collect();
        Failure::usage(format!("there is no profile {:?}", args.profile), format!("choose {}", known.join(", ")))
    })?;
    Ok(profile.prices.clone())
}

fn instances(args: &Args) -> anyhow::Result<InstanceTable> {
    let Some(file) = &args.prices else { return Ok(InstanceTable::shipped()) };
    if file.as_os_str() == "study" {
        return Ok(InstanceTable::study());
    }
    InstanceTable::read(file).map_err(|error| {
        let message = format!("--prices {} is not a price table: {error}", file.display());
        Failure::usage(message, "it has the shape of crates/hoplake-costs/instances.toml in the sources").into()
    })
}

fn share(text: &str) -> Result<f64, String> {
    number(text, 0.0..=1.0, "from 0 to 1")
}

fn from_0(text: &str) -> Result<f64, String> {
    number(text, 0.0..=f64::MAX, "from 0 up")
}

fn from_1(text: &str) -> Result<f64, String> {
    number(text, 1.0..=f64::MAX, "from 1 up")
}

fn number(text: &str, range: std::ops::RangeInclusive<f64>, words: &str) -> Result<f64, String> {
    let parsed = text.parse().ok().filter(|number| range.contains(number));
    parsed.ok_or_else(|| format!("{text:?} is not a number {words}"))
}
