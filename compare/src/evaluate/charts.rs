//! Plots as SVG.

use std::{error::Error, path::Path};

use anyhow::{Result, anyhow};
use plotters::prelude::*;

const SIZE: (u32, u32) = (900, 520);
const TEXT: (&str, u32) = ("sans-serif", 17);

/// Colours that differ in lightness too, for who sees no red or prints in grey (Okabe and Ito, 2008).
const COLOURS: [RGBColor; 8] = [
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(0, 0, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(120, 120, 120),
];

/// A line.
pub struct Line {
    /// What it is.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// Lines over two logarithmic axes.
pub struct Chart<'a> {
    /// What is shown.
    pub title: &'a str,
    /// The horizontal axis.
    pub x: &'a str,
    /// The vertical axis.
    pub y: &'a str,
    /// The lines.
    pub lines: Vec<Line>,
}

impl Chart<'_> {
    /// Draws into a file.
    pub fn draw(&self, file: &Path) -> Result<()> {
        let mut svg = String::new();
        self.draw_svg(&mut svg).map_err(|error| anyhow!("could not draw {}: {error}", file.display()))?;
        Ok(std::fs::write(file, svg)?)
    }

    /// The least and the largest of one coordinate.
    fn span(&self, of: fn(&(f64, f64)) -> f64) -> (f64, f64) {
        let all = || self.lines.iter().flat_map(|line| &line.points).map(of).filter(|value| *value > 0.0);
        (all().fold(f64::MAX, f64::min), all().fold(f64::MIN_POSITIVE, f64::max))
    }

    fn draw_svg(&self, svg: &mut String) -> Result<(), Box<dyn Error>> {
        let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let ((left, right), (low, high)) = (self.span(|point| point.0), self.span(|point| point.1));
        // Room for the legend above the lines.
        let head = 1.6 * 1.25f64.powi(self.lines.len() as i32);
        let mut chart = ChartBuilder::on(&area)
            .caption(self.title, ("sans-serif", 22))
            .margin(16)
            .margin_right(40)
            .x_label_area_size(44)
            .y_label_area_size(70)
            .build_cartesian_2d((left..right * 1.0001).log_scale(), (low / 1.4..high * head).log_scale())?;
        chart
            .configure_mesh()
            .x_desc(self.x)
            .y_desc(self.y)
            .x_label_formatter(&|value| short(*value))
            .y_label_formatter(&|value| short(*value))
            .light_line_style(WHITE)
            .label_style(TEXT)
            .axis_desc_style(TEXT)
            .draw()?;
        for (line, colour) in self.lines.iter().zip(COLOURS.iter().cycle()) {
            let style = colour.stroke_width(2);
            let drawn = chart.draw_series(LineSeries::new(line.points.iter().copied(), style))?;
            drawn.label(&line.name).legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
            chart.draw_series(line.points.iter().map(|point| Circle::new(*point, 3, colour.filled())))?;
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
}

/// A number without digits that say nothing.
fn short(value: f64) -> String {
    if value >= 10_000.0 { format!("{value:.0e}") } else { format!("{}", (value * 1e4).round() / 1e4) }
}
