//! The cost of a query, step by step: a table or one JSON object, on standard error.

use std::time::{Duration, Instant};

use clap::ValueEnum;
use hoplake::{Background, Cost, DepthProfile, Hop, PriceList, Query, Served, StepCost};
use serde_json::{Value, json};

use super::{numbers, tables::table};
use crate::opening::Opened;

/// How a profile is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProfileFormat {
    /// A table
    Text,
    /// One JSON object
    Json,
}

/// Whether and how to print the cost of a query.
#[derive(Debug, clap::Args)]
pub struct ProfileArgs {
    /// Print the cost of each step on standard error
    #[arg(long, value_enum, value_name = "FORMAT", num_args = 0..=1, default_missing_value = "text")]
    profile: Option<ProfileFormat>,
}

impl ProfileArgs {
    /// Ends a query: waits for its background reads, so that the profile includes them, and writes the profile if
    /// requested.
    pub async fn end(&self, opened: &Opened, query: &Query, profile: Profile) {
        // Also without a profile: what is read ahead for the disk cache would otherwise be lost with the process.
        opened.settle().await;
        let profile = Profile { background: query.cost().background, ..profile }.open(opened.cost);
        self.print(profile, opened.graph.prices());
    }

    /// Writes a profile if requested.
    pub fn print(&self, profile: Profile, prices: &PriceList) {
        match self.profile {
            Some(ProfileFormat::Text) => eprintln!("{}", profile.text(prices)),
            Some(ProfileFormat::Json) => eprintln!("{}", profile.json(prices)),
            None => {}
        }
    }
}

/// The steps of a query.
#[derive(Debug, Default)]
pub struct Profile {
    open: StepCost,
    look_up: StepCost,
    hops: Vec<(String, DepthProfile)>,
    /// A step of another kind, and its name.
    other: Option<(&'static str, StepCost)>,
    properties: StepCost,
    background: Background,
}

impl Profile {
    /// Adds the cost of opening the graph.
    pub fn open(mut self, cost: StepCost) -> Self {
        self.open = cost;
        self
    }

    /// Adds the cost of the look-up of the start vertices.
    pub fn look_up(mut self, cost: StepCost) -> Self {
        self.look_up = cost;
        self
    }

    /// Adds the hops.
    pub fn hops<'a>(mut self, hops: impl IntoIterator<Item = &'a Hop>, depths: &[DepthProfile]) -> Self {
        self.hops = hops.into_iter().map(ToString::to_string).zip(depths.iter().copied()).collect();
        self
    }

    /// Adds a hop that is one step.
    pub fn hop(mut self, hop: &Hop, depth: DepthProfile) -> Self {
        self.hops.push((hop.to_string(), depth));
        self
    }

    /// Adds the cost of a step of another kind, such as a search from both ends.
    pub fn step(mut self, name: &'static str, cost: StepCost) -> Self {
        self.other = Some((name, cost));
        self
    }

    /// Adds the cost of the rows of the result.
    pub fn properties(mut self, cost: StepCost) -> Self {
        self.properties = cost;
        self
    }

    /// The sum of all steps, background reads included.
    pub fn total(&self) -> StepCost {
        let hops = self.hops.iter().map(|(_, depth)| StepCost { cost: depth.cost, time_us: depth.time_us });
        let steps = hops.chain(self.other.map(|(_, cost)| cost)).chain([self.open, self.look_up, self.properties]);
        let mut total = steps.fold(StepCost::default(), |sum, step| StepCost {
            // Background reads are a line of their own: a step during which one ended did not cause it.
            cost: sum.cost + step.cost.foreground(),
            time_us: sum.time_us + step.time_us,
        });
        total.cost.requests += self.background.requests;
        total.cost.store_bytes += self.background.bytes;
        total
    }

    /// It as a table.
    pub fn text(&self, prices: &PriceList) -> String {
        let header = [
            "step", "edges", "vertices", "waves", "waits", "requests", "bytes", "memory", "disk", "shared", "time",
            "dollars",
        ];
        let mut text = table(&header, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        let mut add = |name: String, sets: Option<(u64, u64)>, cost: &Cost, time_us: u64| {
            let sets = sets.map_or_else(Default::default, |(edges, vertices)| [edges, vertices].map(numbers::count));
            let numbers = [cost.waves, cost.waits, cost.requests].map(numbers::count);
            let bytes = numbers::bytes(cost.store_bytes);
            let tiers = [cost.memory, cost.disk, cost.shared].map(|served| numbers::count(served.blocks));
            let time = numbers::time(Duration::from_micros(time_us));
            let dollars = numbers::dollars(cost.foreground().usd(prices));
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
        if let Some((name, other)) = &self.other {
            add((*name).into(), None, &other.cost, other.time_us);
        }
        add("properties".into(), None, &self.properties.cost, self.properties.time_us);
        let Background { requests, bytes: store_bytes } = self.background;
        if requests > 0 {
            add("background".into(), None, &Cost { requests, store_bytes, ..Cost::default() }, 0);
        }
        let total = self.total();
        add("total".into(), None, &total.cost, total.time_us);
        let Cost { hedges, retries, .. } = total.cost;
        let again = if hedges + retries == 0 {
            String::new()
        } else {
            format!("\nof the requests, {hedges} were hedges of slow ones and {retries} repeated failed ones")
        };
        format!(
            "{text}\nblocks found in memory, on disk, and on their way already{again}\nprices: {}, as of {}",
            prices.name, prices.as_of
        )
    }

    fn json(&self, prices: &PriceList) -> Value {
        let step = |step: &StepCost| cost_json(&step.cost, step.time_us, prices);
        let hops = self.hops.iter().enumerate().map(|(number, (hop, depth))| {
            let mut object = json!({"depth": number + 1, "hop": hop, "edges": depth.edges, "vertices": depth.vertices});
            let cost = cost_json(&depth.cost, depth.time_us, prices);
            if let (Value::Object(object), Value::Object(cost)) = (&mut object, cost) {
                object.extend(cost);
            }
            object
        });
        let mut object = json!({
            "open": step(&self.open),
            "look_up": step(&self.look_up),
            "hops": hops.collect::<Vec<_>>(),
            "properties": step(&self.properties),
            "background": {
                "requests": self.background.requests,
                "bytes": self.background.bytes,
                "usd": self.background.usd(prices),
            },
            "total": step(&self.total()),
            "prices": {"name": prices.name, "as_of": prices.as_of},
        });
        if let Some((name, other)) = &self.other {
            object[*name] = step(other);
        }
        object
    }
}

fn served(served: Served) -> Value {
    json!({"blocks": served.blocks, "bytes": served.bytes})
}

fn cost_json(cost: &Cost, time_us: u64, prices: &PriceList) -> Value {
    json!({
        "waves": cost.waves,
        "waits": cost.waits,
        "requests": cost.requests,
        "bytes": cost.store_bytes,
        "hedges": cost.hedges,
        "retries": cost.retries,
        "memory": served(cost.memory),
        "disk": served(cost.disk),
        "shared": served(cost.shared),
        "time_us": time_us,
        "usd": cost.foreground().usd(prices),
    })
}

/// Measures one step of a query.
#[derive(Debug)]
pub struct Stopwatch {
    begun: Instant,
    before: Cost,
}

impl Stopwatch {
    /// Starts at the query's cost so far.
    pub fn start(query: &Query) -> Self {
        Self { begun: Instant::now(), before: query.cost() }
    }

    /// The cost since then.
    pub fn stop(&self, query: &Query) -> StepCost {
        StepCost { cost: query.cost().since(&self.before), time_us: self.begun.elapsed().as_micros() as u64 }
    }
}
