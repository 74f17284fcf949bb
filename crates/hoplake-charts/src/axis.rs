//! Axes: from numbers to positions in a chart.

use std::ops::Range;

/// What is shown in one direction, and how.
pub struct Axis {
    /// What its numbers are.
    pub description: String,
    /// Numbers that are not positive are then not drawn.
    pub(crate) is_logarithmic: bool,
    /// From where to where. A logarithmic axis without a range fits the series.
    pub range: Option<Range<f64>>,
    /// A number as text.
    pub label: Box<dyn Fn(f64) -> String>,
}

impl Axis {
    /// A logarithmic axis. Numbers are written without digits that say nothing.
    pub fn logarithmic(description: impl Into<String>) -> Self {
        Self { description: description.into(), is_logarithmic: true, range: None, label: Box::new(short) }
    }

    /// A linear axis.
    pub fn linear(description: impl Into<String>, range: Range<f64>) -> Self {
        Self { is_logarithmic: false, range: Some(range), ..Self::logarithmic(description) }
    }

    pub(crate) fn has(&self, value: f64) -> bool {
        value > 0.0 || !self.is_logarithmic
    }

    /// From the least value to the largest, if the axis has no range.
    pub(crate) fn range_over(&self, values: impl Iterator<Item = f64>) -> Range<f64> {
        self.range.clone().unwrap_or_else(|| {
            let spans = values.filter(|value| self.has(*value)).map(|value| (value, value));
            let (low, high) = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((1.0, 1.0));
            // A single value still needs an axis, and an axis does not reach its end.
            low.min(high / 2.0)..high * 1.0001
        })
    }
}

fn short(value: f64) -> String {
    if value >= 10_000.0 { format!("{value:.0e}") } else { format!("{}", (value * 1e4).round() / 1e4) }
}
