//! How long the first byte takes.
//!
//! The body of the distribution is a shifted log-normal: no answer is faster than the network and the
//! store's own work, and above that, delays multiply. In addition, a small share of stragglers is uniform in
//! a far range, because a log-normal that fits the 99th percentile has too thin a tail.

use std::{f64::consts::SQRT_2, time::Duration};

use serde::Deserialize;

/// The default σ: that of a GET from S3 Standard.
const SIGMA_DEFAULT: f64 = 0.75;
/// The 99th percentile of the standard normal distribution.
const NORMAL_P99: f64 = 2.326_347_874_040_841;

/// The distribution of a latency: `floor_ms` + `scale_ms` · LogNormal(0, `sigma`), with stragglers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Settings")]
pub struct Latency {
    /// The minimum of every answer, in milliseconds.
    pub floor_ms: f64,
    /// The median beyond the floor, in milliseconds, without stragglers.
    pub scale_ms: f64,
    /// The spread of the logarithm.
    pub sigma: f64,
    /// The share of stragglers, from 0 to 1.
    pub straggler_share: f64,
    /// Stragglers are uniform between these, in milliseconds.
    pub straggler_ms: [f64; 2],
}

/// The form in a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    floor_ms: Option<f64>,
    scale_ms: Option<f64>,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    #[serde(default = "sigma_default")]
    sigma: f64,
    #[serde(default)]
    straggler_share: f64,
    #[serde(default)]
    straggler_ms: [f64; 2],
}

fn sigma_default() -> f64 {
    SIGMA_DEFAULT
}

impl TryFrom<Settings> for Latency {
    type Error = String;

    fn try_from(settings: Settings) -> Result<Self, String> {
        let Settings { floor_ms, scale_ms, p50_ms, p99_ms, sigma, straggler_share, straggler_ms } = settings;
        if !(sigma.is_finite() && sigma > 0.0) {
            return Err("sigma must be above 0".into());
        }
        let body = match (floor_ms, scale_ms, p50_ms, p99_ms) {
            (Some(floor_ms), Some(scale_ms), None, None) => {
                Self { floor_ms, scale_ms, sigma, straggler_share: 0.0, straggler_ms: [0.0; 2] }
            }
            (None, None, Some(p50_ms), Some(p99_ms)) if p50_ms <= p99_ms => Self::fitted(p50_ms, p99_ms, sigma),
            (None, None, Some(_), Some(_)) => return Err("p99_ms must be above p50_ms".into()),
            _ => return Err("a latency has floor_ms and scale_ms, or p50_ms and p99_ms".into()),
        };
        if !(body.floor_ms.is_finite() && body.scale_ms.is_finite() && body.floor_ms >= 0.0 && body.scale_ms >= 0.0) {
            return Err("no latency is below 0: with this sigma, p50_ms is too far below p99_ms".into());
        }
        let [from, to] = straggler_ms;
        // Written so that a NaN is rejected, too.
        if !((0.0..=1.0).contains(&straggler_share) && from >= 0.0 && from <= to && to.is_finite()) {
            return Err("straggler_share is from 0 to 1, and straggler_ms two numbers in order".into());
        }
        Ok(Self { straggler_share, straggler_ms, ..body })
    }
}

impl Latency {
    /// The distribution without stragglers that has this median and 99th percentile, in milliseconds.
    ///
    /// Two numbers cannot fix three parameters: σ says how the tail bends. For S3 it is that of the
    /// published fit to Standard, 0.75.
    pub fn fitted(p50_ms: f64, p99_ms: f64, sigma: f64) -> Self {
        let scale_ms = (p99_ms - p50_ms) / ((sigma * NORMAL_P99).exp() - 1.0);
        Self { floor_ms: p50_ms - scale_ms, scale_ms, sigma, straggler_share: 0.0, straggler_ms: [0.0; 2] }
    }

    /// The time within which a share of `q` of all requests is answered, stragglers among them.
    pub fn quantile(&self, q: f64) -> Duration {
        // The log-normal has no end, so that its last quantile would be infinite.
        let q = q.clamp(0.0, 1.0 - 1e-9);
        let mut below = 0.0;
        let mut above = self.body_ms(1.0 - 1e-9).max(self.straggler_ms[1]);
        // The distribution of a mixture has no inverse in closed form. 60 halvings of an hour are 3 ns.
        for _ in 0..60 {
            let middle = (below + above) / 2.0;
            if self.share_within(middle) < q { below = middle } else { above = middle }
        }
        milliseconds(above)
    }

    /// The latency of a request for which chance gave `unit`, a number that is uniform in [0, 1).
    ///
    /// The highest `straggler_share` of the numbers are the stragglers, the others the body, so that one
    /// number is enough. This is not a quantile: the two ranges overlap.
    pub fn draw(&self, unit: f64) -> Duration {
        let body_share = 1.0 - self.straggler_share;
        milliseconds(if unit < body_share {
            self.body_ms(unit / body_share)
        } else {
            let [from, to] = self.straggler_ms;
            from + (to - from) * (unit - body_share) / self.straggler_share
        })
    }

    /// The quantile of the body.
    fn body_ms(&self, q: f64) -> f64 {
        self.floor_ms + self.scale_ms * (self.sigma * normal_quantile(q.clamp(1e-12, 1.0 - 1e-12))).exp()
    }

    fn share_within(&self, ms: f64) -> f64 {
        let body = match self.scale_ms {
            0.0 => f64::from(ms >= self.floor_ms),
            scale_ms => normal_share(((ms - self.floor_ms).max(0.0) / scale_ms).ln() / self.sigma),
        };
        let [from, to] = self.straggler_ms;
        let straggler = if ms < from { 0.0 } else { ((ms - from) / (to - from).max(1e-9)).min(1.0) };
        (1.0 - self.straggler_share) * body + self.straggler_share * straggler
    }
}

/// The share of the standard normal distribution below `x`, which may be infinite.
fn normal_share(x: f64) -> f64 {
    libm::erfc(-x / SQRT_2) / 2.0
}

/// The inverse of [`normal_share`], by halving: a library of statistics for this alone is not worth its packages, and a simulated
/// request has the 2 µs.
fn normal_quantile(q: f64) -> f64 {
    // Shares of 1e-12 are 7.03 deviations away.
    let mut below = -8.0;
    let mut above = 8.0;
    for _ in 0..56 {
        let middle = (below + above) / 2.0;
        if normal_share(middle) < q { below = middle } else { above = middle }
    }
    above
}

fn milliseconds(ms: f64) -> Duration {
    Duration::from_secs_f64(ms.max(0.0) / 1e3)
}

#[cfg(test)]
mod tests {
    use crate::StoreProfile;

    use super::*;

    fn ms(latency: &Latency, q: f64) -> f64 {
        latency.quantile(q).as_secs_f64() * 1e3
    }

    fn near(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance, "{found} is not {expected} ± {tolerance}");
    }

    #[test]
    fn the_shipped_quantiles_are_the_published_ones() {
        let standard = StoreProfile::s3_standard();
        for (q, expected) in [(0.5, 25.0), (0.9, 41.0), (0.99, 75.0)] {
            near(ms(&standard.get, q), expected, 0.5);
        }
        // 0.15 % are stragglers: the last of a thousand takes hundreds of milliseconds.
        assert!(ms(&standard.get, 0.9995) > 400.0, "{}", ms(&standard.get, 0.9995));
        let express = StoreProfile::s3_express();
        for (latency, p50, p99) in
            [(&standard.put, 28.0, 80.0), (&standard.list, 25.0, 60.0), (&express.get, 5.0, 15.0)]
        {
            near(ms(latency, 0.5), p50, 1e-3);
            near(ms(latency, 0.99), p99, 1e-3);
        }
    }

    #[test]
    fn quantiles_of_the_normal_distribution_are_those_of_tables() {
        for (q, expected) in
            [(0.5, 0.0), (0.975, 1.959_963_984_540_054), (0.99, NORMAL_P99), (1e-12, -7.034_483_825_301_131)]
        {
            near(normal_quantile(q), expected, 1e-11);
        }
    }

    #[test]
    fn draws_follow_the_quantiles() {
        let latency = &StoreProfile::s3_standard().get;
        let count = 100_000;
        let mut drawn: Vec<_> =
            (0..count).map(|draw| latency.draw((f64::from(draw) + 0.5) / f64::from(count))).collect();
        drawn.sort_unstable();
        for q in [0.001, 0.1, 0.5, 0.9, 0.99, 0.998, 0.9995] {
            let at = drawn[(q * f64::from(count)) as usize].as_secs_f64() * 1e3;
            near(at, ms(latency, q), at / 200.0);
        }
    }

    #[test]
    fn a_constant_is_a_latency() {
        let latency = Latency::fitted(7.0, 7.0, 0.75);
        near(ms(&latency, 0.01), 7.0, 1e-6);
        near(ms(&latency, 0.99), 7.0, 1e-6);
        assert_eq!(latency.draw(0.3), Duration::from_millis(7));
    }
}
