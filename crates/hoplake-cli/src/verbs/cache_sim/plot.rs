//! Hit-ratio curves: one panel by objects and one by bytes, a line for each contender.

use std::path::Path;

use anyhow::anyhow;
use hoplake_cache_sim::{Contender, Outcome};
use plotters::{coord::Shift, prelude::*};

use super::name;
use crate::{failure::Failure, output::numbers};

/// Of the entire picture, in pixels.
const PICTURE: (u32, u32) = (1_280, 560);

/// A contender's name, colour and outcomes by size.
struct Curve<'a> {
    name: String,
    colour: RGBColor,
    outcomes: &'a [Outcome],
}

/// Draws both panels into a file.
pub fn draw(path: &Path, outcomes: &[Outcome]) -> anyhow::Result<()> {
    let curves = curves(outcomes);
    let mut svg = String::new();
    let whole = SVGBackend::with_string(&mut svg, PICTURE).into_drawing_area();
    let drawn = (|| {
        whole.fill(&WHITE).map_err(|error| anyhow!("{error}"))?;
        let panels = whole.split_evenly((1, 2));
        panel(&panels[0], "Object hit ratio", &curves, Outcome::object_hit_ratio)?;
        panel(&panels[1], "Byte hit ratio", &curves, Outcome::byte_hit_ratio)?;
        whole.present().map_err(|error| anyhow!("{error}"))
    })();
    drop(whole);
    drawn.map_err(|error| error.context(format!("could not draw {}", path.display())))?;
    Ok(std::fs::write(path, svg).map_err(|error| Failure::file(format!("write {}", path.display()), &error))?)
}

fn curves(outcomes: &[Outcome]) -> Vec<Curve<'_>> {
    let of_one = |a: &Outcome, b: &Outcome| (a.contender, a.read_ahead_blocks) == (b.contender, b.read_ahead_blocks);
    let mut colours = 0;
    let curve = |outcomes: &'_ [Outcome]| {
        let colour = match outcomes[0].contender {
            Contender::Belady => BLACK,
            Contender::Bound => RGBColor(150, 150, 150),
            Contender::Policy { .. } => {
                let (r, g, b) = Palette99::pick(colours).rgb();
                colours += 1;
                RGBColor(r, g, b)
            }
        };
        (name(&outcomes[0]), colour)
    };
    let mut curve = curve;
    outcomes
        .chunk_by(of_one)
        .map(|outcomes| {
            let (name, colour) = curve(outcomes);
            Curve { name, colour, outcomes }
        })
        .collect()
}

fn panel<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    title: &str,
    curves: &[Curve<'_>],
    ratio: impl Fn(&Outcome) -> f64,
) -> anyhow::Result<()> {
    let failed = |error: DrawingAreaErrorKind<DB::ErrorType>| anyhow!("{error}");
    let sizes = curves.iter().flat_map(|curve| curve.outcomes).map(|outcome| outcome.cache_bytes_max.max(1));
    let (least, most) = sizes.fold((u64::MAX, 2), |(least, most), size| (least.min(size), most.max(size)));
    // One size alone still needs an axis.
    let least = least.min(most / 2);
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(52)
        .build_cartesian_2d((least as f64..most as f64).log_scale(), 0.0..1.0)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .x_desc("size of the cache")
        .x_label_formatter(&|size| numbers::bytes(*size as u64))
        .y_label_formatter(&|ratio| format!("{:.0} %", ratio * 100.0))
        .light_line_style(WHITE)
        .draw()
        .map_err(failed)?;
    for Curve { name, colour, outcomes } in curves {
        let points: Vec<_> =
            outcomes.iter().map(|outcome| (outcome.cache_bytes_max.max(1) as f64, ratio(outcome))).collect();
        let style = colour.stroke_width(2);
        chart
            .draw_series(LineSeries::new(points, style).point_size(3))
            .map_err(failed)?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    let mut labels = chart.configure_series_labels();
    labels.position(SeriesLabelPosition::LowerRight).background_style(WHITE.mix(0.8)).border_style(BLACK.mix(0.3));
    labels.draw().map_err(failed)
}
