//! Dollars an hour against accesses a second, as SVG.

use std::path::Path;

use hoplake_charts::{Axis, COLOURS, Chart, Series, write_svg};
use hoplake_costs::{Offer, Workload};

use super::{Comparison, size};
use crate::{failure::Failure, output::numbers};

/// The number of rates in a curve: enough that steps look like steps.
const POINTS: u32 = 600;

/// Draws all plans of a comparison into a file.
pub fn draw(comparison: &Comparison, file: &Path) -> anyhow::Result<()> {
    // Rates from 1 to 100,000, or up to ten times the requested one.
    let rate_max = (10.0 * comparison.plain.accesses_per_second).max(1e5);
    let mut x = Axis::logarithmic("accesses a second");
    x.range = Some(1.0..rate_max);
    x.label = Box::new(|rate| numbers::count(rate.round() as u64));
    let mut y = Axis::logarithmic("US dollars an hour");
    y.label = Box::new(|usd| usd.to_string());
    let chart = Chart::lines(format!("A graph of {}", size(comparison)), [x, y], curves(comparison, rate_max));
    Ok(write_svg(file, &[chart]).map_err(|error| Failure::file(format!("write {}", file.display()), &error))?)
}

fn curves(comparison: &Comparison, rate_max: f64) -> Vec<Series> {
    let Comparison { model, plain, improved } = comparison;
    let [store, cached, disks, ..] = COLOURS.map(Some);
    let points = |usd: &dyn Fn(f64) -> Option<f64>| {
        let rates = (0..=POINTS).map(|point| rate_max.powf(f64::from(point) / f64::from(POINTS)));
        rates.filter_map(|rate| Some((rate, usd(rate)?))).collect()
    };
    // With a marker where disks become cheaper. The legend explains it: next to markers, the labels of two curves would overlap.
    let stored = |mut name: String, colour, workload: &Workload| {
        let usd = |rate| usd(model.object_storage(&workload.at(rate)));
        let rate = model.break_even(workload).filter(|rate| (1.0..rate_max).contains(rate));
        let marker = rate.and_then(|rate| Some((rate, usd(rate)?)));
        if let Some((rate, _)) = marker {
            name += &format!("; disks cheaper from {}/s", numbers::count(rate.ceil() as u64));
        }
        Series { colour, markers: marker.into_iter().collect(), ..Series::line(name, points(&usd)) }
    };
    let mut curves = vec![stored("object storage".into(), store, plain)];
    if let Some(workload) = improved {
        let name = format!(
            "object storage, {} % served by a cache, {} accesses a request",
            (100.0 * workload.hit_ratio).round(),
            workload.accesses_per_request
        );
        curves.push(stored(name, cached, workload));
    }
    let on_disks = points(&|rate| usd(model.local_disks(&plain.at(rate))));
    curves.push(Series { colour: disks, ..Series::line("instances with local disks", on_disks) });
    curves.retain(|curve| !curve.points.is_empty());
    curves
}

fn usd(offer: Option<Offer<'_>>) -> Option<f64> {
    offer.map(|offer| offer.usd_per_hour())
}
