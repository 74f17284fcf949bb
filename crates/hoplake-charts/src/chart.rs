//! Charts, and how they are written.

use std::{fs, io, ops::Range, path::Path};

use plotters::{
    coord::{
        Shift,
        ranged1d::{AsRangedCoord, ValueFormatter},
    },
    prelude::*,
};

use crate::{Axis, COLOURS, Colour, Series};

/// Of the width of a group of bars, the share that is free on either side.
const GROUP_MARGIN: f64 = 0.07;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<io::Error>>;

/// A title, two axes, a legend, and series.
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// Width and height, in pixels.
    pub size: (u32, u32),
    /// The height of text, in pixels; that of the title is larger.
    pub text: u32,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis. If it fits the series, the legend is above them, otherwise in the lower right corner.
    pub y: Axis,
    /// From back to front.
    pub series: Vec<Series>,
    /// How many groups of bars there are; lines have none.
    groups: Option<usize>,
}

impl Chart {
    /// Lines over a horizontal and a vertical axis.
    pub fn lines(title: impl Into<String>, [x, y]: [Axis; 2], series: Vec<Series>) -> Self {
        Self { title: title.into(), size: (900, 540), text: 17, x, y, series, groups: None }
    }

    /// Bars over a vertical axis, in groups of bars with the same names. A group is its name and the heights of its bars.
    pub fn bars(title: impl Into<String>, y: Axis, names: &[&str], groups: &[(String, Vec<f64>)]) -> Self {
        let width = (1.0 - 2.0 * GROUP_MARGIN) / names.len() as f64;
        let bars = |(at, name): (usize, &&str)| {
            let left = GROUP_MARGIN + at as f64 * width;
            let heights = groups.iter().map(|(_, heights)| heights.get(at).copied().unwrap_or(0.0));
            let points = (0..groups.len()).map(|group| group as f64 + left).zip(heights).collect();
            Series { bar_width: Some(0.9 * width), ..Series::line(*name, points) }
        };
        let series = names.iter().enumerate().map(bars).collect();
        let groups: Vec<_> = groups.iter().map(|(name, _)| name.clone()).collect();
        let x = Axis::linear("", 0.0..groups.len() as f64);
        let count = groups.len();
        // A group's name is below its middle.
        let label = move |at: f64| groups.get(at as usize).filter(|_| at.fract() == 0.5).cloned().unwrap_or_default();
        let chart = Self::lines(title, [Axis { label: Box::new(label), ..x }, y], series);
        Self { size: (1100, 520), text: 15, groups: Some(count), ..chart }
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        let x = self.x.range_over(self.values(|point| point.0));
        let y = self.heights();
        match (self.x.is_logarithmic, self.y.is_logarithmic) {
            (false, false) => self.draw_over(area, x, y),
            (false, true) => self.draw_over(area, x, y.log_scale()),
            (true, false) => self.draw_over(area, x.log_scale(), y),
            (true, true) => self.draw_over(area, x.log_scale(), y.log_scale()),
        }
    }

    fn draw_over<X, Y>(&self, area: &Area<'_>, x: X, y: Y) -> Drawn
    where
        X: AsRangedCoord<Value = f64, CoordDescType: ValueFormatter<f64>>,
        Y: AsRangedCoord<Value = f64, CoordDescType: ValueFormatter<f64>>,
    {
        let text = ("sans-serif", self.text);
        let mut builder = ChartBuilder::on(area);
        // The last number of the horizontal axis reaches over its end.
        builder.caption(&self.title, ("sans-serif", self.text + 5)).margin(16).margin_right(40);
        let mut chart = builder.x_label_area_size(44).y_label_area_size(70).build_cartesian_2d(x, y)?;
        let floor = chart.y_range().start;
        let x_label = |value: &f64| (self.x.label)(*value);
        let y_label = |value: &f64| (self.y.label)(*value);
        let mut mesh = chart.configure_mesh();
        if let Some(groups) = self.groups {
            mesh.disable_x_mesh().x_labels(2 * groups + 1);
        }
        mesh.x_desc(&self.x.description).x_label_formatter(&x_label).y_desc(&self.y.description);
        mesh.y_label_formatter(&y_label).light_line_style(WHITE).label_style(text).axis_desc_style(text).draw()?;
        let is_drawn = |(x, y): &(f64, f64)| self.x.has(*x) && self.y.has(*y);
        for (series, by_position) in self.series.iter().zip(COLOURS.iter().cycle()) {
            let Colour(colour) = series.colour.unwrap_or(*by_position);
            let points = series.points.iter().copied();
            if let Some(width) = series.bar_width {
                let bar = |(left, height): (f64, f64)| [(left, floor), (left + width, height.max(floor))];
                let bars = chart.draw_series(points.map(|at| Rectangle::new(bar(at), colour.filled())))?;
                bars.legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 18, y + 5)], colour.filled()))
            } else {
                let style = colour.stroke_width(2);
                let line = chart.draw_series(LineSeries::new(points.filter(is_drawn), style))?;
                line.legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style))
            }
            .label(&series.name);
            let markers = series.markers.iter().copied().filter(is_drawn);
            chart.draw_series(markers.map(|at| Circle::new(at, 4, colour.filled())))?;
        }
        let is_above = self.y.range.is_none();
        let corner = if is_above { SeriesLabelPosition::UpperLeft } else { SeriesLabelPosition::LowerRight };
        let mut legend = chart.configure_series_labels();
        legend.position(corner).background_style(WHITE.mix(0.9)).border_style(BLACK.mix(0.3)).label_font(text).draw()
    }

    fn values(&self, coordinate: fn(&(f64, f64)) -> f64) -> impl Iterator<Item = f64> {
        self.series.iter().flat_map(|series| &series.points).map(coordinate)
    }

    /// The range of the vertical axis. One that fits the series has margins, and room for the legend above them.
    fn heights(&self) -> Range<f64> {
        let range = self.y.range_over(self.values(|point| point.1));
        if self.y.range.is_some() {
            return range;
        }
        // Rows of 1.25 times their text, and margins; the title and the horizontal axis take a fifth of the picture.
        let legend = f64::from(self.text) * (1.25 * self.series.len() as f64 + 2.0) / (0.8 * f64::from(self.size.1));
        let free = legend.min(0.5);
        let low = range.start / 1.5;
        let high = range.end * 1.5;
        low..high * (high / low).powf(free / (1.0 - free))
    }
}

/// Writes charts into a file, from left to right.
///
/// # Errors
/// If a chart has no room for its axes, or if the file cannot be written.
pub fn write_svg(file: &Path, charts: &[Chart]) -> io::Result<()> {
    let mut svg = String::new();
    draw(charts, &mut svg).map_err(io::Error::other)?;
    fs::write(file, svg)
}

fn draw(charts: &[Chart], svg: &mut String) -> Drawn {
    let width = charts.iter().map(|chart| chart.size.0).sum();
    let height = charts.iter().map(|chart| chart.size.1).max().unwrap_or(0);
    let mut rest = SVGBackend::with_string(svg, (width, height)).into_drawing_area();
    rest.fill(&WHITE)?;
    for chart in charts {
        let (area, others) = rest.split_horizontally(chart.size.0);
        chart.draw(&area)?;
        rest = others;
    }
    rest.present()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_bars_have_names_numbers_and_markers() {
        let share = Axis { label: Box::new(|share| format!("{share:.1} of 1")), ..Axis::linear("share", 0.0..1.0) };
        let points = vec![(0.0, 0.1), (1.0, 0.2), (1e5, 0.3)];
        // What is not positive is not on a logarithmic axis.
        let line = Series { markers: points.clone(), ..Series::line("low", points) };
        let lines = Chart::lines("Lines", [Axis::logarithmic("rate"), share], vec![line]);
        let groups = [("one".to_owned(), vec![1.0, 10.0]), ("two".to_owned(), vec![5.0])];
        let bars = Chart::bars("Bars", Axis::logarithmic("s"), &["old", "new"], &groups);
        let mut svg = String::new();
        draw(&[lines, bars], &mut svg).unwrap();
        for words in ["Lines", "low", "rate", "share", "0.5 of 1", "1e5", "Bars", "one", "two", "old", "new", "</svg>"]
        {
            assert!(svg.contains(words), "{words}: {svg}");
        }
        // The line, its two markers, two bars, and an entry of either legend; two bars and an entry.
        let counts = ["<circle", "#D55E00", "#0072B2"].map(|of| svg.matches(of).count());
        assert_eq!(counts, [2, 7, 3], "{svg}");
        // The line and its entry of the legend lead from one point to another.
        let polylines = svg.lines().filter(|it| it.contains("<polyline") && it.contains("#D55E00"));
        let corners: Vec<_> = polylines.map(|it| it.split_once("points=\"").unwrap().1.matches(',').count()).collect();
        assert_eq!(corners, [2, 2], "{svg}");
    }
}
