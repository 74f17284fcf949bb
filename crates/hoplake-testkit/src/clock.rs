//! Two clocks: the simulated store's in virtual time, and the processor's in real time.
//!
//! Under tokio's paused clock a wait for the store passes at once and work does not move the clock. What a
//! query takes on a machine of its own is therefore the sum of both, and both are kept. Processor time is that of
//! the thread: others on the machine do not stretch it, though they do compete for its caches. The simulator's own
//! work is in it.

use std::{cmp::Ordering, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// Runs `work` on this thread, with a tokio clock that is virtual.
pub fn in_virtual_time<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime without threads of its own").block_on(work)
}

/// A measured duration.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Took {
    /// Waiting for the store, in milliseconds of virtual time.
    pub store_ms: f64,
    /// The processor, in milliseconds.
    pub processor_ms: f64,
}

impl Took {
    /// Both, in milliseconds: on one core.
    pub fn total_ms(&self) -> f64 {
        self.store_ms + self.processor_ms
    }
}

/// Measures both clocks from its start on.
pub struct Stopwatch {
    begun: Instant,
    processor: Duration,
}

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Self {
        Self { begun: Instant::now(), processor: processor_time() }
    }

    /// The duration since the start.
    pub fn took(&self) -> Took {
        let processor = processor_time().saturating_sub(self.processor);
        Took { store_ms: self.begun.elapsed().as_secs_f64() * 1e3, processor_ms: processor.as_secs_f64() * 1e3 }
    }
}

/// The processor time of this thread.
pub fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// The processor time of all threads of this process.
pub fn processor_time_of_all() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// Quantiles of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Quantiles {
    /// The median.
    pub p50: f64,
    /// 90 of 100 are not above.
    pub p90: f64,
    /// 99 of 100 are not above.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

impl Quantiles {
    /// Those of a sample; zeros of an empty one. By nearest rank.
    pub fn of(sample: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = sample.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let rank = (share * sorted.len() as f64).ceil() as usize;
            sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
        };
        Self { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1.0) }
    }
}

/// The median, of an even number of figures the greater of the two in the middle; `None` of none.
pub fn median<T: Copy + PartialOrd>(figures: impl IntoIterator<Item = T>) -> Option<T> {
    let mut sorted: Vec<T> = figures.into_iter().collect();
    sorted.sort_by(|one, other| one.partial_cmp(other).unwrap_or(Ordering::Equal));
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let quantiles = Quantiles::of((1..=100).rev().map(f64::from));
        assert_eq!((quantiles.p50, quantiles.p90, quantiles.p99, quantiles.max), (50.0, 90.0, 99.0, 100.0));
        assert_eq!(Quantiles::of([7.0]).p99, 7.0);
        assert_eq!(Quantiles::of([]), Quantiles::default());
    }

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4, 3, 1, 2]), Some(3));
        assert_eq!(median([Duration::ZERO; 0]), None);
    }
}
