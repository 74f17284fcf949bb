//! What a query took, as it is told to clients. The one place that reads the engine's account.

use std::ops::AddAssign;

use hoplake::{Cost, PriceList, Query, StepCost};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::v1;

/// What was taken from the store and from memory.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = Cost)]
pub struct PricedCost {
    /// Dependent round trips to the store; parallel requests count once.
    pub waves: u64,
    /// Round trips that were waited for one after the other: the waves, and what bounds on requests in flight and an order of
    /// expansions, as depth-first, added to them.
    pub waits: u64,
    /// Requests to the store, with hedges, retries and those that read ahead; without those in the background.
    pub requests: u64,
    /// Of these, second requests for what a first one was slow to bring.
    pub hedges: u64,
    /// Of these, requests that repeat a failed one.
    pub retries: u64,
    /// Of these, requests that read ahead.
    pub prefetches: u64,
    /// Bytes from the store; without those in the background.
    pub bytes: u64,
    /// Requests that the query led to in the background, for queries to come: the rest of small segments.
    pub background_requests: u64,
    /// Bytes that these bring.
    pub background_bytes: u64,
    /// Blocks found in memory.
    pub cache_hits: u64,
    /// Bytes found in memory.
    pub cache_bytes: u64,
    /// Blocks that had been read ahead.
    pub prefetched_hits: u64,
    /// Blocks found on the local disk.
    pub disk_hits: u64,
    /// Bytes found on the local disk.
    pub disk_bytes: u64,
    /// Blocks that came with a request of another query.
    pub shared_hits: u64,
    /// US dollars for requests and bytes, those in the background included.
    pub usd: f64,
}

/// What a step took.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Step {
    /// From the store and from memory.
    pub cost: PricedCost,
    /// In microseconds.
    pub time_us: u64,
}

impl PricedCost {
    /// The engine's account at these prices.
    pub(crate) fn of(cost: &Cost, prices: &PriceList) -> Self {
        Self {
            waves: cost.waves,
            waits: cost.waits,
            requests: cost.requests,
            hedges: cost.hedges,
            retries: cost.retries,
            prefetches: cost.prefetches,
            bytes: cost.store_bytes,
            background_requests: cost.background.requests,
            background_bytes: cost.background.bytes,
            cache_hits: cost.memory.blocks,
            cache_bytes: cost.memory.bytes,
            prefetched_hits: cost.prefetched.blocks,
            disk_hits: cost.disk.blocks,
            disk_bytes: cost.disk.bytes,
            shared_hits: cost.shared.blocks,
            usd: cost.usd(prices),
        }
    }

    /// What a query took since its account stood at `before`.
    pub(crate) fn since(query: &Query, before: &Cost, prices: &PriceList) -> Self {
        Self::of(&query.cost().since(before), prices)
    }

    /// Names and values, for places that take only text.
    pub(crate) fn pairs(&self) -> Vec<(&'static str, String)> {
        let counts = [
            ("waves", self.waves),
            ("waits", self.waits),
            ("requests", self.requests),
            ("hedges", self.hedges),
            ("retries", self.retries),
            ("prefetches", self.prefetches),
            ("bytes", self.bytes),
            ("background_requests", self.background_requests),
            ("background_bytes", self.background_bytes),
            ("cache_hits", self.cache_hits),
            ("cache_bytes", self.cache_bytes),
            ("prefetched_hits", self.prefetched_hits),
            ("disk_hits", self.disk_hits),
            ("disk_bytes", self.disk_bytes),
            ("shared_hits", self.shared_hits),
        ];
        let mut pairs: Vec<_> = counts.into_iter().map(|(name, value)| (name, value.to_string())).collect();
        pairs.push(("usd", self.usd.to_string()));
        pairs
    }
}

impl AddAssign for PricedCost {
    fn add_assign(&mut self, more: Self) {
        self.waves += more.waves;
        self.waits += more.waits;
        self.requests += more.requests;
        self.hedges += more.hedges;
        self.retries += more.retries;
        self.prefetches += more.prefetches;
        self.bytes += more.bytes;
        self.background_requests += more.background_requests;
        self.background_bytes += more.background_bytes;
        self.cache_hits += more.cache_hits;
        self.cache_bytes += more.cache_bytes;
        self.prefetched_hits += more.prefetched_hits;
        self.disk_hits += more.disk_hits;
        self.disk_bytes += more.disk_bytes;
        self.shared_hits += more.shared_hits;
        self.usd += more.usd;
    }
}

impl Step {
    pub(crate) fn of(step: &StepCost, prices: &PriceList) -> Self {
        Self { cost: PricedCost::of(&step.cost, prices), time_us: step.time_us }
    }
}

impl From<PricedCost> for v1::Cost {
    fn from(cost: PricedCost) -> Self {
        Self {
            waves: cost.waves,
            waits: cost.waits,
            requests: cost.requests,
            hedges: cost.hedges,
            retries: cost.retries,
            prefetches: cost.prefetches,
            bytes: cost.bytes,
            background_requests: cost.background_requests,
            background_bytes: cost.background_bytes,
            cache_hits: cost.cache_hits,
            cache_bytes: cost.cache_bytes,
            prefetched_hits: cost.prefetched_hits,
            disk_hits: cost.disk_hits,
            disk_bytes: cost.disk_bytes,
            shared_hits: cost.shared_hits,
            usd: cost.usd,
        }
    }
}

impl From<Step> for v1::Step {
    fn from(step: Step) -> Self {
        Self { cost: Some(step.cost.into()), time_us: step.time_us }
    }
}
