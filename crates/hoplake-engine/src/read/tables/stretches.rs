//! Ascending ranges of rows, cut to bounds such as those of a page.

use std::ops::Range;

/// What some ascending stretches have within bounds.
pub(super) fn clipped(stretches: &[Range<u64>], bounds: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let from = stretches.partition_point(|rows| rows.end <= bounds.start);
    let bounds = bounds.clone();
    let within = stretches[from..].iter().take_while({
        let end = bounds.end;
        move |rows| rows.start < end
    });
    within.map(move |rows| rows.start.max(bounds.start)..rows.end.min(bounds.end))
}
