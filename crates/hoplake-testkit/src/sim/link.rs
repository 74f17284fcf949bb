//! One direction of a network card that all streams share.
//!
//! A stream gets its own rate, or an equal share of the card's if that is less. All streams are alike, so
//! that it is enough to add up what *any* stream has got so far: a stream of n bytes that began when this
//! sum was s has all of them when it is s + n, whatever came and went in between. This is processor sharing
//! in virtual time, as in fair queueing (Demers, Keshav, Shenker, SIGCOMM 1989). Streams that wait are
//! woken only when the rate changes, and it does so only while the card is full.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::{HALF_TICK, sleep_until_nearest};

/// One direction of a network card.
#[derive(Debug)]
pub(super) struct Link {
    state: Mutex<State>,
    rate_changed: Notify,
}

#[derive(Debug)]
struct State {
    stream_rate: f64,
    card_rate: f64,
    streams: usize,
    /// Bytes that a stream has got that was there from the beginning, at the time `at`.
    served: f64,
    at: Instant,
}

impl State {
    /// Bytes per second of each stream.
    fn rate(&self) -> f64 {
        self.stream_rate.min(self.card_rate / self.streams.max(1) as f64)
    }

    fn advance(&mut self) {
        let now = Instant::now();
        self.served += self.rate() * (now - self.at).as_secs_f64();
        self.at = now;
    }
}

impl Link {
    /// Rates are in bytes per second.
    pub(super) fn new(stream_rate: f64, card_rate: f64) -> Self {
        let state = State { stream_rate, card_rate, streams: 0, served: 0.0, at: Instant::now() };
        Self { state: Mutex::new(state), rate_changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics while it holds the link")
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        state.advance();
        let before = state.rate();
        change(&mut state);
        if state.rate() != before {
            self.rate_changed.notify_waiters();
        }
    }

    /// Sets the rate of each stream, also of those that are under way.
    pub(super) fn set_stream_rate(&self, stream_rate: f64) {
        self.change(|state| state.stream_rate = stream_rate);
    }

    /// Begins a stream of `bytes` at a moment that lies at most half a tick from now.
    pub(super) fn begin(self: &Arc<Self>, since: Instant, bytes: u64) -> Stream {
        let mut first = 0.0;
        self.change(|state| {
            state.streams += 1;
            let ago = state.at.saturating_duration_since(since).as_secs_f64()
                - since.saturating_duration_since(state.at).as_secs_f64();
            first = state.served - state.rate() * ago;
        });
        Stream { link: self.clone(), first, bytes }
    }
}

/// A stream under way. Ends when it is dropped.
#[derive(Debug)]
pub(super) struct Stream {
    link: Arc<Link>,
    first: f64,
    bytes: u64,
}

impl Stream {
    /// Returns when this many of its bytes have arrived.
    pub(super) async fn have(&self, bytes: u64) {
        loop {
            let rate_changed = self.link.rate_changed.notified();
            let wait = {
                let mut state = self.link.lock();
                state.advance();
                (self.first + bytes as f64 - state.served) / state.rate()
            };
            if wait <= HALF_TICK.as_secs_f64() {
                return;
            }
            let deadline = Instant::now() + Duration::from_secs_f64(wait);
            tokio::select! {
                biased;
                () = rate_changed => {}
                () = sleep_until_nearest(deadline) => {}
            }
        }
    }

    /// The number of its bytes that have arrived.
    pub(super) fn arrived(&self) -> u64 {
        let mut state = self.link.lock();
        state.advance();
        (state.served - self.first).clamp(0.0, self.bytes as f64) as u64
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.link.change(|state| state.streams -= 1);
    }
}
