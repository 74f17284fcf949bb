//! Hit-ratio curves: one chart by objects and one by bytes, a line for each contender.

use std::path::Path;

use hoplake_cache_sim::{Contender, Outcome};
use hoplake_charts::{Axis, COLOURS, Chart, Colour, Series, write_svg};

use super::name;
use crate::{failure::Failure, output::numbers};

/// Draws both charts into a file.
pub fn draw(path: &Path, outcomes: &[Outcome]) -> anyhow::Result<()> {
    let objects = chart("Object hit ratio", outcomes, Outcome::object_hit_ratio);
    let bytes = chart("Byte hit ratio", outcomes, Outcome::byte_hit_ratio);
    let written = write_svg(path, &[objects, bytes]);
    Ok(written.map_err(|error| Failure::file(format!("write {}", path.display()), &error))?)
}

fn chart(title: &str, outcomes: &[Outcome], ratio: fn(&Outcome) -> f64) -> Chart {
    let of_one = |a: &Outcome, b: &Outcome| (a.contender, a.read_ahead_blocks) == (b.contender, b.read_ahead_blocks);
    let [_, _, black, .., grey] = COLOURS;
    let mut colours = (0..).map(Colour::of_many);
    let line = |outcomes: &[Outcome]| {
        let colour = match outcomes[0].contender {
            Contender::Belady => Some(black),
            Contender::Bound => Some(grey),
            Contender::Policy { .. } => colours.next(),
        };
        let point = |outcome: &Outcome| (outcome.cache_bytes_max.max(1) as f64, ratio(outcome));
        let points: Vec<_> = outcomes.iter().map(point).collect();
        Series { colour, markers: points.clone(), ..Series::line(name(&outcomes[0]), points) }
    };
    let lines = outcomes.chunk_by(of_one).map(line).collect();
    let mut x = Axis::logarithmic("size of the cache");
    x.label = Box::new(|size| numbers::bytes(size as u64));
    let mut y = Axis::linear("", 0.0..1.0);
    y.label = Box::new(|ratio| format!("{:.0} %", ratio * 100.0));
    let mut chart = Chart::lines(title, [x, y], lines);
    chart.size = (640, 560);
    // There may be twenty contenders with long names.
    chart.text = 12;
    chart
}
