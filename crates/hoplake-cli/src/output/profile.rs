//! What a query took, step by step: a table or one JSON object, on standard error.

use std::time::{Duration, Instant};

use clap::ValueEnum;
use hoplake::{Cost, DepthProfile, Hop, PriceList, Query, Served, StepCost};
use serde_json::{Value, json};

use super::{numbers, tables::table};

/// How a profile is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProfileFormat {
    /// A table
    Text,
    /// One JSON object
    Json,
}

/// The steps of a query.
#[derive(Debug)]
pub struct Profile {
    prices: PriceList,
    open: StepCost,
    look_up: StepCost,
    hops: Vec<(String, DepthProfile)>,
    properties: StepCost,
}

impl Profile {
    /// The profile of a query on a graph that was opened at this cost.
    pub fn new(prices: PriceList, open: StepCost) -> Self {
        Self { prices, open, look_up: StepCost::default(), hops: Vec::new(), properties: StepCost::default() }
    }

    /// Adds what finding the start vertices took.
    pub fn look_up(mut self, cost: StepCost) -> Self {
        self.look_up = cost;
        self
    }

    /// Adds the hops.
    pub fn hops<'a>(mut self, hops: impl IntoIterator<Item = &'a Hop>, depths: &[DepthProfile]) -> Self {
        self.hops = hops.into_iter().map(ToString::to_string).zip(depths.iter().copied()).collect();
        self
    }

    /// Adds what the rows of the result took.
    pub fn properties(mut self, cost: StepCost) -> Self {
        self.properties = cost;
        self
    }

    /// All steps together.
    pub fn total(&self) -> StepCost {
        let hops = self.hops.iter().map(|(_, depth)| StepCost { cost: depth.cost, time_us: depth.time_us });
        hops.chain([self.open, self.look_up, self.properties]).fold(StepCost::default(), |sum, step| StepCost {
            cost: sum.cost + step.cost,
            time_us: sum.time_us + step.time_us,
        })
    }

    /// Writes it to standard error.
    pub fn print(&self, format: ProfileFormat) {
        match format {
            ProfileFormat::Text => eprintln!("{}", self.text()),
            ProfileFormat::Json => eprintln!("{}", self.json()),
        }
    }

    /// It as a table.
    pub fn text(&self) -> String {
        let header =
            ["step", "edges", "vertices", "waves", "requests", "bytes", "memory", "disk", "shared", "time", "dollars"];
        let mut text = table(&header, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let mut add = |name: String, sets: Option<(u64, u64)>, cost: &Cost, time_us: u64| {
            let sets = sets.map_or_else(Default::default, |(edges, vertices)| [edges, vertices].map(numbers::count));
            let numbers = [cost.waves, cost.requests].map(numbers::count);
            let bytes = numbers::bytes(cost.store_bytes);
            let tiers = [cost.memory, cost.disk, cost.shared].map(|served| numbers::count(served.blocks));
            let time = numbers::time(Duration::from_micros(time_us));
            let dollars = numbers::dollars(cost.usd(&self.prices));
            text.add_row(
                [name].into_iter().chain(sets).chain(numbers).chain([bytes]).chain(tiers).chain([time, dollars]),
            );
        };
        add("open".into(), None, &self.open.cost, self.open.time_us);
        add("look-up".into(), None, &self.look_up.cost, self.look_up.time_us);
        for (number, (hop, depth)) in self.hops.iter().enumerate() {
            let sets = Some((depth.edges, depth.vertices));
            add(format!("{} {hop}", number + 1), sets, &depth.cost, depth.time_us);
        }
        add("properties".into(), None, &self.properties.cost, self.properties.time_us);
        let total = self.total();
        add("total".into(), None, &total.cost, total.time_us);
        let Cost { hedges, retries, .. } = total.cost;
        let again = if hedges + retries == 0 {
            String::new()
        } else {
            format!("\nof the requests, {hedges} were hedges of slow ones and {retries} repeated failed ones")
        };
        let Self { prices, .. } = self;
        format!(
            "{text}\nblocks found in memory, on disk, and on their way already{again}\nprices: {}, as of {}",
            prices.name, prices.as_of
        )
    }

    fn json(&self) -> Value {
        let step = |step: &StepCost| cost_json(&step.cost, step.time_us, &self.prices);
        let hops = self.hops.iter().enumerate().map(|(number, (hop, depth))| {
            let mut object = json!({"depth": number + 1, "hop": hop, "edges": depth.edges, "vertices": depth.vertices});
            let cost = cost_json(&depth.cost, depth.time_us, &self.prices);
            if let (Value::Object(object), Value::Object(cost)) = (&mut object, cost) {
                object.extend(cost);
            }
            object
        });
        json!({
            "open": step(&self.open),
            "look_up": step(&self.look_up),
            "hops": hops.collect::<Vec<_>>(),
            "properties": step(&self.properties),
            "total": step(&self.total()),
            "prices": {"name": self.prices.name, "as_of": self.prices.as_of},
        })
    }
}

fn served(served: Served) -> Value {
    json!({"blocks": served.blocks, "bytes": served.bytes})
}

fn cost_json(cost: &Cost, time_us: u64, prices: &PriceList) -> Value {
    json!({
        "waves": cost.waves,
        "requests": cost.requests,
        "bytes": cost.store_bytes,
        "hedges": cost.hedges,
        "retries": cost.retries,
        "memory": served(cost.memory),
        "disk": served(cost.disk),
        "shared": served(cost.shared),
        "time_us": time_us,
        "usd": cost.usd(prices),
    })
}

/// Measures one step of a query.
#[derive(Debug)]
pub struct Stopwatch {
    begun: Instant,
    before: Cost,
}

impl Stopwatch {
    /// Starts at what the query took so far.
    pub fn start(query: &Query) -> Self {
        Self { begun: Instant::now(), before: query.cost() }
    }

    /// What it took since.
    pub fn stop(&self, query: &Query) -> StepCost {
        StepCost { cost: query.cost().since(&self.before), time_us: self.begun.elapsed().as_micros() as u64 }
    }
}
