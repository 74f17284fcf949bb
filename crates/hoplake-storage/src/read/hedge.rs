//! When to send a request a second time.
//!
//! A few requests in a thousand take ten times as long as the rest, and a wave is as slow as its
//! slowest. So a request that is slower than nearly all recent ones were is sent again, and the first
//! answer counts (Dean and Barroso, *The Tail at Scale*, 2013). Three guards keep that from making a slow
//! store slower:
//!
//! * the bound of "slow" follows what is observed, and nothing is hedged before the first answer: a store that
//!   is always slower than its profile does not get two requests for everything from each new process;
//! * the bound is some medians at least: where all answers take about as long, a second request could not
//!   overtake the first;
//! * a token bucket, filled by a share of a token with each request, pays for hedges. It starts with one. When a
//!   store slows down altogether, the bucket bounds the hedges until the observations show it.

use std::{sync::Mutex, time::Duration};

use crate::{HedgeSettings, StoreProfile};

/// Observations that are kept, and after how many the bound is recomputed.
const WINDOW: usize = 1024;
const REFRESH: usize = 64;

/// With fewer observations, a quantile is unreliable: then the profile's counts as well, and the bound is
/// further away from the median.
const LEARNT: usize = 16;
const MEDIANS_UNLEARNT: u32 = 4;
/// A hedge takes about a median itself, so below this it would mostly be too late.
const MEDIANS: u32 = 2;

/// Decides on second requests, for all readers of a process.
#[derive(Debug)]
pub(crate) struct Hedge {
    settings: HedgeSettings,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    tokens: f64,
    /// The latest times to the first byte, in microseconds, in no order once it is full.
    window: Vec<u32>,
    observed: usize,
    /// The bound, once something was observed.
    slow: Option<Duration>,
}

impl State {
    /// The bound that follows from what was observed; there is at least one observation.
    fn bound(&self, quantile: f64, profile: &StoreProfile) -> Duration {
        let mut window = self.window.clone();
        let mut at = |share: f64| {
            // Selection instead of a sort: O(n), under the lock that all requests take.
            let rank = ((window.len() - 1) as f64 * share) as usize;
            Duration::from_micros((*window.select_nth_unstable(rank).1).into())
        };
        let median = at(0.5);
        let slow = at(quantile);
        match self.observed < LEARNT {
            // The larger of profile and observations: a store slower than its profile is not hedged by the profile's figures.
            true => profile.get.quantile(quantile).max(median * MEDIANS_UNLEARNT),
            false => slow.max(median * MEDIANS),
        }
    }
}

impl Hedge {
    pub(crate) fn new(settings: HedgeSettings) -> Self {
        // One token: the first slow request of a short-lived process can be hedged, although few requests have paid in.
        let tokens = settings.burst_max.min(1.0);
        let state = State { tokens, window: Vec::with_capacity(WINDOW), observed: 0, slow: None };
        Self { settings, state: Mutex::new(state) }
    }

    /// Notes that a request was sent, and returns the delay before its hedge; `None` means no hedge.
    pub(crate) fn sent(&self, bytes: u64, profile: &StoreProfile) -> Option<Duration> {
        if self.settings.share_max == 0.0 || !profile.hedges {
            return None;
        }
        let mut state = self.state.lock().expect("no thread panics with the state");
        // Requests pay in even before there is a bound. The cap keeps savings of a good hour from paying for a storm of hedges.
        state.tokens = (state.tokens + self.settings.share_max).min(self.settings.burst_max);
        // The bound is for the first byte; a long answer is not slow because of its length.
        state.slow.map(|slow| slow + profile.transfer(bytes))
    }

    /// Whether a hedge may be sent now; it is paid for if so.
    pub(crate) fn pay(&self) -> bool {
        let mut state = self.state.lock().expect("no thread panics with the state");
        let paid = state.tokens >= 1.0;
        if paid {
            state.tokens -= 1.0;
        }
        paid
    }

    /// Notes how long a request of `bytes` took, or for how long one that lost had been waited for: to
    /// leave those out would make the bound fall with each hedge.
    pub(crate) fn observed(&self, took: Duration, bytes: u64, profile: &StoreProfile) {
        // Less the transfer, so that long and short answers are in one distribution.
        let first_byte = took.saturating_sub(profile.transfer(bytes)).as_micros().min(u32::MAX.into()) as u32;
        let mut state = self.state.lock().expect("no thread panics with the state");
        // A ring: the newest takes the place of the oldest, and the bound forgets a slow hour after 1,024 answers.
        let at = state.observed % WINDOW;
        state.observed += 1;
        match state.window.get_mut(at) {
            Some(oldest) => *oldest = first_byte,
            None => state.window.push(first_byte),
        }
        // Each of the first few moves the bound a lot. Later, 64 of 1,024 change it little, and most answers skip the selection.
        if state.observed <= LEARNT || state.observed.is_multiple_of(REFRESH) {
            state.slow = Some(state.bound(self.settings.quantile, profile));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn standard() -> Arc<StoreProfile> {
        StoreProfile::s3_standard()
    }

    #[test]
    fn hedges_are_a_share_of_requests_even_when_all_are_slow() {
        let hedge = Hedge::new(HedgeSettings::default());
        let profile = standard();
        let mut hedges = 0;
        hedge.observed(Duration::from_millis(20), 0, &profile);
        for _ in 0..10_000 {
            assert!(hedge.sent(16_384, &profile).is_some());
            hedges += usize::from(hedge.pay());
        }
        assert!((200..=201).contains(&hedges), "{hedges}");
    }

    #[test]
    fn the_bound_follows_what_is_observed() {
        let hedge = Hedge::new(HedgeSettings::default());
        let profile = standard();
        // The first requests have no estimate of what is slow.
        assert_eq!(hedge.sent(0, &profile), None);
        hedge.observed(Duration::from_millis(10), 0, &profile);
        let before = hedge.sent(0, &profile).unwrap();
        assert!((65..75).contains(&before.as_millis()), "{before:?}");
        for request in 0..2_000u64 {
            hedge.observed(Duration::from_millis(2_000 + request % 100), 0, &profile);
        }
        // If all answers take about as long, none counts as slow: twice the median of 2,050 ms.
        let after = hedge.sent(0, &profile).unwrap();
        assert!((4_090..4_110).contains(&after.as_millis()), "{after:?}");
        // A longer answer may take longer.
        assert_eq!(hedge.sent(55 << 20, &profile).unwrap(), after + Duration::from_secs(1));
        let off = Hedge::new(HedgeSettings { share_max: 0.0, ..Default::default() });
        off.observed(Duration::from_millis(10), 0, &profile);
        assert_eq!(off.sent(0, &profile), None);
    }

    #[test]
    fn a_spread_as_published_is_hedged_at_its_quantile() {
        let hedge = Hedge::new(HedgeSettings::default());
        let profile = standard();
        for number in 0..2_048u32 {
            let latency = profile.get.quantile((f64::from(number * 997 % 2_048) + 0.5) / 2_048.0);
            hedge.observed(latency, 0, &profile);
        }
        let bound = hedge.sent(0, &profile).unwrap();
        assert!((65..75).contains(&bound.as_millis()), "{bound:?}");
    }
}
