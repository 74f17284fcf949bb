//! What a query took, as it is told to clients. The one place that reads the engine's account.

use std::ops::AddAssign;

use hoplake::{Cost, PriceList, Query, StepCost};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::v1;

/// What was taken from the store and from memory.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = Cost)]
pub struct Spent {
    /// Dependent round trips to the store; parallel requests count once.
    pub waves: u64,
    /// Requests to the store.
    pub requests: u64,
    /// Bytes from the store.
    pub bytes: u64,
    /// Blocks found in memory.
    pub cache_hits: u64,
    /// Bytes found in memory.
    pub cache_bytes: u64,
    /// US dollars for requests and bytes.
    pub usd: f64,
}

/// What a step took.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Step {
    /// From the store and from memory.
    pub cost: Spent,
    /// In microseconds.
    pub time_us: u64,
}

impl Spent {
    /// The engine's account at these prices.
    pub(crate) fn of(cost: &Cost, prices: &PriceList) -> Self {
        Self {
            waves: cost.waves,
            requests: cost.requests,
            bytes: cost.store_bytes,
            cache_hits: cost.cache_hits,
            cache_bytes: cost.cache_bytes,
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
            ("requests", self.requests),
            ("bytes", self.bytes),
            ("cache_hits", self.cache_hits),
            ("cache_bytes", self.cache_bytes),
        ];
        let mut pairs: Vec<_> = counts.into_iter().map(|(name, value)| (name, value.to_string())).collect();
        pairs.push(("usd", self.usd.to_string()));
        pairs
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, more: Self) {
        self.waves += more.waves;
        self.requests += more.requests;
        self.bytes += more.bytes;
        self.cache_hits += more.cache_hits;
        self.cache_bytes += more.cache_bytes;
        self.usd += more.usd;
    }
}

impl Step {
    pub(crate) fn of(step: &StepCost, prices: &PriceList) -> Self {
        Self { cost: Spent::of(&step.cost, prices), time_us: step.time_us }
    }
}

impl From<Spent> for v1::Cost {
    fn from(spent: Spent) -> Self {
        let Spent { waves, requests, bytes, cache_hits, cache_bytes, usd } = spent;
        Self { waves, requests, bytes, cache_hits, cache_bytes, usd }
    }
}

impl From<Step> for v1::Step {
    fn from(step: Step) -> Self {
        Self { cost: Some(step.cost.into()), time_us: step.time_us }
    }
}
