//! Bars as SVG.

use std::{error::Error, path::Path};

use anyhow::{Result, anyhow};
use plotters::prelude::*;

const SIZE: (u32, u32) = (1100, 520);
const TEXT: (&str, u32) = ("sans-serif", 15);

/// Colours that differ in lightness too, for who sees no red or prints in grey (Okabe and Ito, 2008).
const COLOURS: [RGBColor; 5] =
    [RGBColor(213, 94, 0), RGBColor(0, 114, 178), RGBColor(0, 158, 115), RGBColor(0, 0, 0), RGBColor(170, 170, 170)];

/// Groups of bars over a logarithmic axis.
pub struct Bars<'a> {
    /// What is shown.
    pub title: &'a str,
    /// The vertical axis.
    pub unit: &'a str,
    /// What the bars of a group are.
    pub names: &'a [&'a str],
    /// Each group's name and its bars.
    pub groups: &'a [(String, Vec<f64>)],
}

impl Bars<'_> {
    /// Draws into a file.
    pub fn draw(&self, file: &Path) -> Result<()> {
        let mut svg = String::new();
        self.draw_svg(&mut svg).map_err(|error| anyhow!("could not draw {}: {error}", file.display()))?;
        Ok(std::fs::write(file, svg)?)
    }

    fn draw_svg(&self, svg: &mut String) -> Result<(), Box<dyn Error>> {
        let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let values = || self.groups.iter().flat_map(|(_, bars)| bars).copied().filter(|value| *value > 0.0);
        let low = values().fold(f64::MAX, f64::min);
        let high = values().fold(f64::MIN_POSITIVE, f64::max);
        let groups = self.groups.len();
        let floor = low / 2.0;
        // Room for the legend above the bars.
        let top = high * 1.6f64.powi(self.names.len() as i32);
        let mut chart = ChartBuilder::on(&area)
            .caption(self.title, ("sans-serif", 20))
            .margin(16)
            .x_label_area_size(34)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..groups as f64, (floor..top).log_scale())?;
        // A name stands below the middle of its group.
        let name = |at: &f64| match at.fract() {
            0.5 => self.groups.get(*at as usize).map_or(String::new(), |(name, _)| name.clone()),
            _ => String::new(),
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(2 * groups + 1)
            .x_label_formatter(&name)
            .y_desc(self.unit)
            .light_line_style(WHITE)
            .label_style(TEXT)
            .axis_desc_style(TEXT)
            .draw()?;
        let width = 0.86 / self.names.len() as f64;
        for (at, (name, colour)) in self.names.iter().zip(COLOURS.iter().cycle()).enumerate() {
            let bar = |(group, (_, bars)): (usize, &(String, Vec<f64>))| {
                let left = group as f64 + 0.07 + at as f64 * width;
                let height = bars.get(at).copied().unwrap_or(0.0).max(floor);
                Rectangle::new([(left, floor), (left + width * 0.9, height)], colour.filled())
            };
            let drawn = chart.draw_series(self.groups.iter().enumerate().map(bar))?;
            let style = colour.filled();
            drawn.label(*name).legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 18, y + 5)], style));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.9))
            .border_style(BLACK.mix(0.3))
            .label_font(TEXT)
            .draw()?;
        area.present()?;
        drop(chart);
        Ok(())
    }
}
