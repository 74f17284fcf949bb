//! What a chart shows, and its colours.

use plotters::prelude::*;

/// The colour of a series.
#[derive(Debug, Clone, Copy)]
pub struct Colour(pub(crate) RGBColor);

/// Vermilion, blue, black, green, purple, sky blue, orange, grey. They differ in lightness too, for readers who do not see red, and for
/// print in grey (Okabe and Ito, 2008).
pub const COLOURS: [Colour; 8] = [
    Colour(RGBColor(213, 94, 0)),
    Colour(RGBColor(0, 114, 178)),
    Colour(BLACK),
    Colour(RGBColor(0, 158, 115)),
    Colour(RGBColor(204, 121, 167)),
    Colour(RGBColor(86, 180, 233)),
    Colour(RGBColor(230, 159, 0)),
    Colour(RGBColor(140, 140, 140)),
];

impl Colour {
    /// One of 20, without black and grey: for charts with more series than [`COLOURS`]. They are harder to tell apart.
    pub fn of_many(position: usize) -> Self {
        let (red, green, blue) = Palette99::pick(position).rgb();
        Self(RGBColor(red, green, blue))
    }
}

/// Points with a name, drawn as a line or as bars.
#[derive(Debug, Clone, Default)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Horizontal and vertical positions, in the order in which a line connects them.
    pub points: Vec<(f64, f64)>,
    /// Positions of markers.
    pub markers: Vec<(f64, f64)>,
    /// By default the one at its position among [`COLOURS`], again from the first after the last.
    pub colour: Option<Colour>,
    /// The width of bars to the right of the points; a line has none.
    pub bar_width: Option<f64>,
}

impl Series {
    /// A line without markers.
    pub fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, ..Self::default() }
    }
}
