//! Charts as SVG: lines over two axes, groups of bars, and several charts side by side.
//!
//! A program says what to draw, and this crate what it looks like. It depends on no other crate of Hoplake, and no other crate uses
//! `plotters`.
//!
//! | word | meaning |
//! | --- | --- |
//! | chart | a title, two axes, a legend, and series |
//! | series | a name, a colour and points, drawn as a line or as bars |
//! | marker | a dot on a line |

mod axis;
mod chart;
mod series;

pub use axis::Axis;
pub use chart::{Chart, write_svg};
pub use series::{COLOURS, Colour, Series};
