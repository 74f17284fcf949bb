//! Mean and quantiles of degrees, from a histogram by powers of two.

use hoplake::DegreeSummary;

/// The mean over vertices that have an edge.
pub fn mean(summary: &DegreeSummary, edges: u64) -> f64 {
    match summary.vertices() {
        0 => 0.0,
        vertices => edges as f64 / vertices as f64,
    }
}

/// About the degree that a share of the vertices with an edge do not exceed: degrees are taken as spread
/// evenly within their power of two.
pub fn quantile(summary: &DegreeSummary, share: f64) -> u64 {
    let rank = summary.vertices() as f64 * share;
    let mut below = 0.0;
    for (power, count) in summary.histogram.iter().enumerate().filter(|(_, count)| **count > 0) {
        let count = *count as f64;
        if below + count >= rank {
            let smallest = 2f64.powi(power as i32);
            let degree = (smallest + (rank - below) / count * (smallest - 1.0)).round() as u64;
            return degree.min(summary.max);
        }
        below += count;
    }
    summary.max
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_in_their_power_of_two() {
        let mut summary = DegreeSummary::default();
        (1..=1000).for_each(|degree| summary.add(degree));
        assert!((500..=511).contains(&quantile(&summary, 0.5)) || quantile(&summary, 0.5).abs_diff(500) < 15);
        assert!(quantile(&summary, 0.99).abs_diff(990) < 15);
        assert_eq!((quantile(&summary, 1.0), quantile(&DegreeSummary::default(), 0.5)), (1000, 0));
        assert_eq!(mean(&summary, 500_500), 500.5);
        let ones = DegreeSummary { max: 1, histogram: vec![7] };
        assert_eq!([quantile(&ones, 0.5), quantile(&ones, 0.99)], [1, 1]);
    }
}
