//! Decides the outcome of requests: the simulated service, for any protocol.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use hoplake_storage::StoreProfile;
use tokio::time::Instant;

use super::bucket::Buckets;
use super::chance::Chance;
use super::counts::SimCounts;
use super::fault::{Fault, FaultKind};
use super::link::Link;
use super::request::Request;
use crate::{RequestCounts, RequestKind};

/// A simulated service: its settings, which can change while it runs, and what was asked of it.
///
/// Clones share everything.
#[derive(Debug, Clone)]
pub struct Sim(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    down: Arc<Link>,
    up: Arc<Link>,
}

#[derive(Debug)]
struct State {
    profile: StoreProfile,
    slower: f64,
    faults: Vec<Fault>,
    chance: Chance,
    buckets: Buckets,
    counts: SimCounts,
    gets: HashMap<String, u64>,
    in_flight: u64,
    /// Distinguishes these counts from those before a reset, whose requests may still be in flight.
    resets: u64,
}

impl Sim {
    /// A service of this kind; an equal seed and equal requests give equal latencies.
    pub fn new(profile: impl Into<Arc<StoreProfile>>, seed: u64) -> Self {
        let profile = Arc::unwrap_or_clone(profile.into());
        let link = || {
            let stream = profile.stream_bytes_per_second;
            let card = profile.network_bytes_per_second;
            Arc::new(Link::new(stream as f64, card as f64))
        };
        let down = link();
        let up = link();
        let state = State {
            profile,
            slower: 1.0,
            faults: Vec::new(),
            chance: Chance::new(seed),
            buckets: Buckets::default(),
            counts: SimCounts::default(),
            gets: HashMap::new(),
            in_flight: 0,
            resets: 0,
        };
        Self(Arc::new(Shared { state: Mutex::new(state), down, up }))
    }

    /// From now on first bytes take `factor` times as long, and streams, also those under way, bring their
    /// bytes `factor` times as slowly. 1 is the profile's own speed.
    pub fn slow_by(&self, factor: f64) {
        let mut state = self.lock();
        state.slower = factor;
        let rate = state.profile.stream_bytes_per_second as f64 / factor;
        self.0.down.set_stream_rate(rate);
        self.0.up.set_stream_rate(rate);
    }

    /// From now on this share of the gets are stragglers.
    pub fn set_straggler_share(&self, share: f64) {
        self.lock().profile.get.straggler_share = share;
    }

    /// From now on these rules hold, and no others; of several that fit a request, the first.
    pub fn set_faults(&self, faults: impl IntoIterator<Item = Fault>) {
        self.lock().faults = faults.into_iter().collect();
    }

    /// The requests since the last reset.
    pub fn counts(&self) -> SimCounts {
        self.lock().counts
    }

    /// How many gets each object was sent since the last reset.
    pub fn gets_by_object(&self) -> BTreeMap<String, u64> {
        self.lock().gets.clone().into_iter().collect()
    }

    /// The cost by the prices of the profile, in US dollars.
    pub fn usd(&self) -> f64 {
        let state = self.lock();
        state.counts.usd(&state.profile.prices)
    }

    /// Forgets what was asked, also by requests in flight. Latencies are drawn on as if nothing had happened.
    pub fn reset_counts(&self) {
        let mut state = self.lock();
        state.counts = SimCounts::default();
        state.gets.clear();
        state.in_flight = 0;
        state.resets += 1;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("no test panics while it holds the state")
    }

    pub(super) fn down(&self) -> &Arc<Link> {
        &self.0.down
    }

    pub(super) fn up(&self) -> &Arc<Link> {
        &self.0.up
    }

    /// A request that is sent now. `detail` distinguishes requests of one kind on one object.
    pub(super) fn send(&self, kind: RequestKind, path: &str, detail: &str) -> Request {
        let state = &mut *self.lock();
        let (mut random, attempt) = state.chance.of(kind, path, detail);
        let latency = match kind {
            RequestKind::Get | RequestKind::Head => &state.profile.get,
            RequestKind::Put | RequestKind::Delete => &state.profile.put,
            RequestKind::List => &state.profile.list,
        };
        let latency = latency.draw(1.0 - random.unit()).mul_f64(state.slower);
        let faults = state.faults.iter().map(|fault| fault.of(kind, path, attempt, &mut random));
        // All rules draw, so that what is drawn later does not depend on which of them fit.
        let fault = faults.fold(None, |first, fault| first.or(fault));
        let admitted = state.buckets.take(kind, path, state.profile.gets_per_second, state.profile.puts_per_second);
        let fault = if admitted { fault } else { Some(FaultKind::Reject) };
        *of_kind(&mut state.counts.requests, kind) += 1;
        if fault == Some(FaultKind::Reject) {
            *of_kind(&mut state.counts.rejected, kind) += 1;
        }
        if kind == RequestKind::Get {
            *state.gets.entry(path.to_owned()).or_default() += 1;
        }
        state.in_flight += 1;
        state.counts.in_flight_peak = state.counts.in_flight_peak.max(state.in_flight);
        Request::new(self.clone(), kind, path, Instant::now(), latency, fault, random, state.resets)
    }

    /// Notes the end of a request that was sent after this many `resets`.
    pub(super) fn ended(&self, resets: u64, note: impl FnOnce(&mut SimCounts)) {
        let mut state = self.lock();
        if state.resets == resets {
            state.in_flight -= 1;
            note(&mut state.counts);
        }
    }
}

fn of_kind(counts: &mut RequestCounts, kind: RequestKind) -> &mut u64 {
    match kind {
        RequestKind::Get => &mut counts.get,
        RequestKind::Head => &mut counts.head,
        RequestKind::Put => &mut counts.put,
        RequestKind::List => &mut counts.list,
        RequestKind::Delete => &mut counts.delete,
    }
}
