//! Short timings on a machine that others use too: the best of several runs.

use std::hint::black_box;
use std::time::Instant;

/// The least seconds that `work` took in `runs` runs.
pub fn best_of<T>(runs: usize, mut work: impl FnMut() -> T) -> f64 {
    let one = |_| {
        let start = Instant::now();
        black_box(work());
        start.elapsed().as_secs_f64()
    };
    (0..runs).map(one).fold(f64::INFINITY, f64::min)
}
