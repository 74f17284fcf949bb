//! Which ranges to read as one request.
//!
//! Joining two blocks saves a request, with its price and its chance of being the wave's slowest, and
//! pays with the bytes between them. Cutting a long run lets its parts travel in parallel. What is best
//! depends on the store and on the wave: a gap of 200 KiB is cheaper than a request on S3 Standard, where
//! bytes are free, and dearer on Express, where they are not.
//!
//! So a wave is planned by trying a few pairs of (longest gap, longest request) and taking the one that
//! is cheapest by a model with the store's own figures: dollars of requests and bytes, and the wave's time,
//! weighed by the price of an hour of waiting. The time of a wave of n requests is the n/(n + 1)
//! quantile of the first byte (about the median of the slowest of n), the transfer of the longest, and
//! the processor's time for each.

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

use crate::{BlockRequest, Object, ReadSettings, StoreProfile};

/// Gaps and lengths that are tried, in bytes.
const GAPS: [u64; 7] = [0, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
const LENGTHS: [u64; 6] = [128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20];

/// The estimate of the slowest of n parallel requests is capped at this n.
const PARALLEL_MAX: u32 = 256;

/// A request and the blocks it serves, by their position among the blocks asked.
#[derive(Debug)]
pub(crate) struct Fetch<'a> {
    pub(crate) object: &'a Object,
    pub(crate) range: Range<u64>,
    pub(crate) blocks: Vec<usize>,
}

/// The cost of a plan.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    requests: u64,
    bytes: u64,
    longest: u64,
}

impl Sum {
    fn add(&mut self, length: u64) {
        self.requests += 1;
        self.bytes += length;
        self.longest = self.longest.max(length);
    }
}

/// Plans waves for one kind of store.
#[derive(Debug)]
pub(crate) struct Planner {
    profile: Arc<StoreProfile>,
    /// For n requests at once, about the median of the slowest one's first byte, in seconds. Each takes
    /// microseconds to compute, and a plan asks for dozens.
    slowest: OnceLock<Vec<f64>>,
}

impl Planner {
    pub(crate) fn new(profile: Arc<StoreProfile>) -> Self {
        Self { profile, slowest: OnceLock::new() }
    }

    /// Plans the reading of the blocks `wanted` of `requests` in one wave. What is asked twice is read
    /// once.
    pub(crate) fn plan<'a>(
        &self,
        requests: &[BlockRequest<'a>],
        mut wanted: Vec<usize>,
        settings: &ReadSettings,
    ) -> Vec<Fetch<'a>> {
        // Blocks of one object in their order: only neighbours in this order can share a request.
        wanted.sort_unstable_by_key(|index| (requests[*index].object.number, requests[*index].range.start));
        let mut gap = 0;
        let mut length = 0;
        // A gap and a length of 0 join nothing: one block needs no plan, and a limit of 0 forbids joining.
        if wanted.len() > 1 && settings.request_bytes_max > 0 {
            (gap, length) = self.cheapest(requests, &wanted, settings);
        }
        let mut fetches: Vec<Fetch<'a>> = Vec::new();
        for index in wanted {
            let BlockRequest { object, range, .. } = &requests[index];
            // Only the last request can take the block, since positions ascend.
            let last = fetches.last_mut().filter(|last| last.object.number == object.number);
            match last.filter(|last| joins(&last.range, range, gap, length)) {
                Some(last) => {
                    last.range.end = last.range.end.max(range.end);
                    last.blocks.push(index);
                }
                None => fetches.push(Fetch { object, range: range.clone(), blocks: vec![index] }),
            }
        }
        fetches
    }

    /// The gap and the length with which the blocks, in order, are read most cheaply.
    fn cheapest(&self, requests: &[BlockRequest<'_>], sorted: &[usize], settings: &ReadSettings) -> (u64, u64) {
        let mut best = (f64::INFINITY, (0, 0));
        let mut lengths = LENGTHS.map(|length| length.min(settings.request_bytes_max)).to_vec();
        // A limit below some lengths makes them equal; each is tried once.
        lengths.dedup();
        for length in lengths {
            // A gap as long as the request never joins anything: both blocks would have to be empty.
            for gap in GAPS.into_iter().filter(|gap| *gap < length) {
                let usd = self.usd(&sum(requests, sorted, gap, length), settings);
                if usd < best.0 {
                    best = (usd, (gap, length));
                }
            }
        }
        best.1
    }

    /// The cost of a plan in US dollars, with its waiting time priced.
    fn usd(&self, sum: &Sum, settings: &ReadSettings) -> f64 {
        let profile = &self.profile;
        let parallel = settings.parallel_requests_max as u64;
        // Requests beyond the limit wait for one before them, so each round pays the first byte again.
        let rounds = sum.requests.div_ceil(parallel) as f64;
        let first_byte = self.slowest_of(sum.requests.min(parallel));
        let transfer = profile.transfer(sum.longest).as_secs_f64();
        let network = sum.bytes as f64 / profile.network_bytes_per_second as f64;
        let processor = (sum.requests * profile.request_processor_us) as f64 / 1e6;
        // Streams share the network card: a wave is never faster than its bytes through the card.
        let seconds = (rounds * (first_byte + transfer)).max(network) + processor;
        profile.prices.reads_usd(sum.requests, sum.bytes) + seconds * settings.waiting_usd_per_hour / 3600.0
    }

    fn slowest_of(&self, requests: u64) -> f64 {
        let quantile = |n: u32| self.profile.get.quantile(f64::from(n) / f64::from(n + 1)).as_secs_f64();
        // The profile never changes, so that the table is computed once, by the first plan.
        let slowest = self.slowest.get_or_init(|| (1..=PARALLEL_MAX).map(quantile).collect());
        slowest[requests.clamp(1, PARALLEL_MAX.into()) as usize - 1]
    }
}

/// Whether a block becomes part of the request before it.
fn joins(last: &Range<u64>, block: &Range<u64>, gap: u64, length: u64) -> bool {
    // A block that was asked for twice, or within one that is read anyway, joins whatever the longest request is.
    let inside = block.end <= last.end;
    // Blocks come by ascending start, so `block.end` is not below `last.start`.
    inside || block.start <= last.end.saturating_add(gap) && block.end - last.start <= length
}

fn sum(requests: &[BlockRequest<'_>], sorted: &[usize], gap: u64, length: u64) -> Sum {
    // The same joins as in `plan`, without their lists of blocks: it runs for each of up to 42 pairs of gap and length.
    let mut sum = Sum::default();
    let mut run: Option<(u32, Range<u64>)> = None;
    for index in sorted {
        let BlockRequest { object, range, .. } = &requests[*index];
        match &mut run {
            Some((number, last)) if *number == object.number && joins(last, range, gap, length) => {
                last.end = last.end.max(range.end);
            }
            _ => {
                if let Some((_, last)) = run.replace((object.number, range.clone())) {
                    sum.add(last.end - last.start);
                }
            }
        }
    }
    if let Some((_, last)) = run {
        sum.add(last.end - last.start);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Check, Profiles};

    fn planned(profile: &str, settings: &ReadSettings, ranges: &[Range<u64>]) -> Vec<(Range<u64>, usize)> {
        let object = Object::new("s3://bucket", "data/a", 0);
        let request = |range: &Range<u64>| BlockRequest { object: &object, range: range.clone(), check: Check::Sealed };
        let requests: Vec<_> = ranges.iter().map(request).collect();
        let planner = Planner::new(Profiles::shipped().get(profile).unwrap());
        let fetches = planner.plan(&requests, (0..requests.len()).collect(), settings);
        fetches.into_iter().map(|fetch| (fetch.range, fetch.blocks.len())).collect()
    }

    fn every(bytes: u64, count: u64) -> Vec<Range<u64>> {
        (0..count).map(|block| block * bytes..block * bytes + (16 << 10)).collect()
    }

    #[test]
    fn the_gap_that_pays_depends_on_the_store() {
        let settings = ReadSettings::default();
        // Bytes are free on Standard and 25 ms are long; Express charges for bytes and answers in 5 ms.
        let two = [0..16 << 10, 150 << 10..166 << 10];
        assert_eq!(planned("s3-standard", &settings, &two), [(0..166 << 10, 2)]);
        assert_eq!(planned("s3-express", &settings, &two).len(), 2);
        let far = [0..16 << 10, 3 << 20..(3 << 20) + (16 << 10)];
        assert_eq!(planned("s3-standard", &settings, &far).len(), 2);
        let near = [0..16 << 10, 20 << 10..36 << 10];
        assert_eq!(planned("s3-express", &settings, &near), [(0..36 << 10, 2)]);
    }

    #[test]
    fn a_long_run_travels_in_parts_and_nothing_is_lost() {
        let settings = ReadSettings::default();
        let parts = planned("s3-standard", &settings, &every(16 << 10, 2048));
        assert!((8..=64).contains(&parts.len()), "{} parts of 32 MiB", parts.len());
        assert_eq!(parts.iter().map(|(_, blocks)| blocks).sum::<usize>(), 2048);
        assert!(parts.windows(2).all(|pair| pair[0].0.end == pair[1].0.start));
    }

    #[test]
    fn nothing_is_joined_if_so_set_but_twins_are_one() {
        let settings = ReadSettings { request_bytes_max: 0, ..Default::default() };
        assert_eq!(planned("s3-standard", &settings, &[0..10, 10..20, 0..10]), [(0..10, 2), (10..20, 1)]);
    }
}
