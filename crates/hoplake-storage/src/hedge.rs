//! When to send a request a second time.
//!
//! A few requests in a thousand take ten times as long as the rest, and a wave is as slow as its
//! slowest. So a request that is slower than nearly all recent ones were is sent again, and the first
//! answer counts (Dean and Barroso, *The Tail at Scale*, 2013). Two guards keep that from making a slow
//! store slower:
//!
//! * the bound of "slow" follows what is observed, so that a store that is slow as a whole is not asked
//!   twice for everything once that is known;
//! * a token bucket, filled by a share of a token with each request, pays for hedges. When all is slow at
//!   once, the hedges of the time until that is known are what the bucket holds.

use std::{sync::Mutex, time::Duration};

use crate::{HedgeSettings, StoreProfile};

/// Observations that are kept, and after how many the bound is taken anew.
const WINDOW: usize = 1024;
const REFRESH: usize = 64;

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
    /// The bound, once enough was observed.
    slow: Option<Duration>,
}

impl Hedge {
    pub(crate) fn new(settings: HedgeSettings) -> Self {
        let state = State { tokens: settings.burst_max, window: Vec::with_capacity(WINDOW), observed: 0, slow: None };
        Self { settings, state: Mutex::new(state) }
    }

    /// Notes that a request was sent, and says after which time to send it again; `None` is never.
    pub(crate) fn sent(&self, bytes: u64, profile: &StoreProfile) -> Option<Duration> {
        if self.settings.share_max == 0.0 || !profile.hedges {
            return None;
        }
        let mut state = self.state.lock().expect("no thread panics with the state");
        state.tokens = (state.tokens + self.settings.share_max).min(self.settings.burst_max);
        let slow = *state.slow.get_or_insert_with(|| profile.get.quantile(self.settings.quantile));
        Some(slow + profile.transfer(bytes))
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
        let first_byte = took.saturating_sub(profile.transfer(bytes)).as_micros().min(u32::MAX.into()) as u32;
        let mut state = self.state.lock().expect("no thread panics with the state");
        let at = state.observed % WINDOW;
        state.observed += 1;
        match state.window.get_mut(at) {
            Some(oldest) => *oldest = first_byte,
            None => state.window.push(first_byte),
        }
        if state.observed.is_multiple_of(REFRESH) {
            let mut sorted = state.window.clone();
            let rank = ((sorted.len() - 1) as f64 * self.settings.quantile) as usize;
            let (_, slow, _) = sorted.select_nth_unstable(rank);
            state.slow = Some(Duration::from_micros((*slow).into()));
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
        let (hedge, profile) = (Hedge::new(HedgeSettings::default()), standard());
        let mut hedges = 0;
        for _ in 0..10_000 {
            assert!(hedge.sent(16_384, &profile).is_some());
            hedges += usize::from(hedge.pay());
        }
        assert!((200..=208).contains(&hedges), "{hedges}");
    }

    #[test]
    fn the_bound_follows_what_is_observed() {
        let (hedge, profile) = (Hedge::new(HedgeSettings::default()), standard());
        let before = hedge.sent(0, &profile).unwrap();
        assert!((65..75).contains(&before.as_millis()), "{before:?}");
        for request in 0..2_000u64 {
            hedge.observed(Duration::from_millis(2_000 + request % 100), 0, &profile);
        }
        let after = hedge.sent(0, &profile).unwrap();
        assert_eq!(after, Duration::from_millis(2_098));
        // A longer answer may take longer.
        assert_eq!(hedge.sent(55 << 20, &profile).unwrap(), after + Duration::from_secs(1));
        let off = Hedge::new(HedgeSettings { share_max: 0.0, ..Default::default() });
        assert_eq!(off.sent(0, &profile), None);
    }
}
