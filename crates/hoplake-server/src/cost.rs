//! The cost of a call, as the server reports it. Only this module reads the engine's counters by name: every protocol
//! gets them as the message [`v1::Cost`], also as JSON, as text and in the OpenAPI document.

use std::{borrow::Cow, ops::AddAssign};

use hoplake::{Cost, PriceList, Query, StepCost};
use serde::Serialize;
use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, schema::Schema},
};

use crate::v1;

/// The counters of a call, and their price.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(into = "v1::Cost")]
pub struct PricedCost {
    /// The engine's counters.
    pub counters: Cost,
    /// US dollars for requests and bytes, those in the background included.
    pub usd: f64,
}

/// The cost of a step of a query.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, ToSchema)]
#[schema(as = Step)]
pub struct PricedStep {
    /// From the store and from memory.
    pub cost: PricedCost,
    /// In microseconds.
    pub time_us: u64,
}

impl PricedCost {
    /// These counters at these prices.
    pub(crate) fn of(cost: &Cost, prices: &PriceList) -> Self {
        Self { counters: *cost, usd: cost.usd(prices) }
    }

    /// The cost of a query since its meter stood at `before`.
    pub(crate) fn since(query: &Query, before: &Cost, prices: &PriceList) -> Self {
        Self::of(&query.cost().since(before), prices)
    }

    /// Names and values, for protocols that take only text.
    pub(crate) fn pairs(self) -> Vec<(String, String)> {
        // Through serde, so that a new counter reaches gRPC's error details without a second list of names.
        let Ok(Value::Object(fields)) = serde_json::to_value(self) else { return Vec::new() };
        fields.into_iter().map(|(name, value)| (name, text(&value))).collect()
    }
}

/// A number as Rust writes it: JSON would write small dollars with an exponent.
fn text(value: &Value) -> String {
    match value.as_u64() {
        Some(count) => count.to_string(),
        None => value.as_f64().unwrap_or_default().to_string(),
    }
}

impl AddAssign for PricedCost {
    fn add_assign(&mut self, more: Self) {
        self.counters = self.counters + more.counters;
        self.usd += more.usd;
    }
}

impl PricedStep {
    pub(crate) fn of(step: &StepCost, prices: &PriceList) -> Self {
        Self { cost: PricedCost::of(&step.cost, prices), time_us: step.time_us }
    }
}

impl From<PricedCost> for v1::Cost {
    fn from(PricedCost { counters, usd }: PricedCost) -> Self {
        Self {
            waves: counters.waves,
            waits: counters.waits,
            requests: counters.requests,
            hedges: counters.hedges,
            retries: counters.retries,
            prefetches: counters.prefetches,
            bytes: counters.store_bytes,
            background_requests: counters.background.requests,
            background_bytes: counters.background.bytes,
            cache_hits: counters.memory.blocks,
            cache_bytes: counters.memory.bytes,
            prefetched_hits: counters.prefetched.blocks,
            disk_hits: counters.disk.blocks,
            disk_bytes: counters.disk.bytes,
            shared_hits: counters.shared.blocks,
            usd,
        }
    }
}

impl PartialSchema for PricedCost {
    // The message's schema, since `into = "v1::Cost"` above makes it what JSON has.
    fn schema() -> RefOr<Schema> {
        v1::Cost::schema()
    }
}

impl ToSchema for PricedCost {
    fn name() -> Cow<'static, str> {
        v1::Cost::name()
    }
}

impl From<PricedStep> for v1::Step {
    fn from(step: PricedStep) -> Self {
        Self { cost: Some(step.cost.into()), time_us: step.time_us }
    }
}
