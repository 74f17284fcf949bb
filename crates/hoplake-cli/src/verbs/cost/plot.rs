//! Dollars an hour against accesses a second, as SVG.

use std::{error::Error, path::Path};

use anyhow::anyhow;
use hoplake_costs::{CostModel, Offer, Workload};
use plotters::prelude::*;

use super::{Comparison, size};
use crate::{failure::Failure, output::numbers};

/// The number of rates in a curve: enough that steps look like steps.
const POINTS: u32 = 600;
const SIZE: (u32, u32) = (900, 560);
const TEXT: (&str, u32) = ("sans-serif", 17);
/// Colours that differ in lightness too, for readers who do not see red, and for print in grey (Okabe and Ito, 2008).
const STORE: RGBColor = RGBColor(213, 94, 0);
const CACHED: RGBColor = RGBColor(0, 114, 178);
const DISKS: RGBColor = RGBColor(0, 0, 0);

struct Curve {
    name: String,
    colour: RGBColor,
    /// Accesses a second, dollars an hour.
    points: Vec<(f64, f64)>,
    /// Where disks become cheaper.
    break_even: Option<(f64, f64)>,
}

impl Curve {
    /// Its name, and the meaning of its symbol: next to the symbol, the labels of two curves would overlap.
    fn label(&self) -> String {
        let mark =
            self.break_even.map(|(rate, _)| format!("; disks cheaper from {}/s", numbers::count(rate.ceil() as u64)));
        format!("{}{}", self.name, mark.unwrap_or_default())
    }
}

/// Draws all plans of a comparison into a file.
pub fn draw(comparison: &Comparison, file: &Path) -> anyhow::Result<()> {
    let curves = curves(comparison);
    let mut svg = String::new();
    draw_svg(&curves, comparison, &mut svg).map_err(|error| anyhow!("could not draw {}: {error}", file.display()))?;
    Ok(std::fs::write(file, svg).map_err(|error| Failure::file(format!("write {}", file.display()), &error))?)
}

/// Rates from 1 to 100,000, or up to ten times the requested one.
fn rate_max(comparison: &Comparison) -> f64 {
    (10.0 * comparison.plain.accesses_per_second).max(1e5)
}

fn curves(comparison: &Comparison) -> Vec<Curve> {
    let Comparison { model, plain, improved } = comparison;
    let rate_max = rate_max(comparison);
    let rates: Vec<_> = (0..=POINTS).map(|point| rate_max.powf(f64::from(point) / f64::from(POINTS))).collect();
    let stored = |name: &str, colour, workload: &Workload| {
        let at = |rate| usd(model.object_storage(&workload.at(rate)));
        let points = rates.iter().filter_map(|rate| Some((*rate, at(*rate)?))).collect();
        let rate = model.break_even(workload).filter(|rate| (1.0..rate_max).contains(rate));
        let break_even = rate.and_then(|rate| Some((rate, at(rate)?)));
        Curve { name: name.into(), colour, points, break_even }
    };
    let mut curves = vec![stored("object storage", STORE, plain)];
    if let Some(workload) = improved {
        let name = format!(
            "object storage, {} % served by a cache, {} accesses a request",
            (100.0 * workload.hit_ratio).round(),
            workload.accesses_per_request
        );
        curves.push(stored(&name, CACHED, workload));
    }
    curves.push(disks(model, plain, &rates));
    curves.retain(|curve| !curve.points.is_empty());
    curves
}

fn disks(model: &CostModel, workload: &Workload, rates: &[f64]) -> Curve {
    let at = |rate: &f64| Some((*rate, usd(model.local_disks(&workload.at(*rate)))?));
    let name = "instances with local disks".into();
    Curve { name, colour: DISKS, points: rates.iter().filter_map(at).collect(), break_even: None }
}

fn usd(offer: Option<Offer<'_>>) -> Option<f64> {
    offer.map(|offer| offer.usd_per_hour())
}

fn draw_svg(curves: &[Curve], comparison: &Comparison, svg: &mut String) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let values = || curves.iter().flat_map(|curve| &curve.points).map(|(_, usd)| *usd);
    let least = values().fold(f64::MAX, f64::min);
    let most = values().fold(f64::MIN_POSITIVE, f64::max);
    let title = format!("A graph of {}", size(comparison));
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 24))
        .margin(16)
        .margin_right(40)
        .x_label_area_size(44)
        .y_label_area_size(64)
        // Room for the legend above the curves.
        .build_cartesian_2d(
            (1.0..rate_max(comparison)).log_scale(),
            (least.max(1e-4) / 1.5..most.max(1e-3) * 8.0).log_scale(),
        )?;
    chart
        .configure_mesh()
        .x_desc("accesses a second")
        .y_desc("US dollars an hour")
        .x_label_formatter(&|rate| numbers::count(rate.round() as u64))
        .y_label_formatter(&|usd| format!("{usd}"))
        .light_line_style(WHITE)
        .label_style(TEXT)
        .axis_desc_style(TEXT)
        .draw()?;
    for curve in curves {
        let style = curve.colour.stroke_width(2);
        let points = curve.points.iter().copied();
        let line = chart.draw_series(LineSeries::new(points, style))?;
        line.label(curve.label()).legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
        chart.draw_series(curve.break_even.map(|at| Circle::new(at, 5, curve.colour.filled())))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.9))
        .border_style(BLACK.mix(0.3))
        .label_font(TEXT)
        .draw()?;
    area.present()?;
    drop(chart);
    Ok(())
}
