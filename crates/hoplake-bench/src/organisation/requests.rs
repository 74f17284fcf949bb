//! What is asked: six prepared queries, and texts.

use anyhow::Result;
use hoplake::{QueryEdition, gremlin};
use hoplake_testkit::generate::SplitMix64;
use serde_json::json;

use super::people::PLACES;

/// The name of the graph.
pub(super) const GRAPH: &str = "organisation";

/// Names, parameters and texts.
const PREPARED: [(&str, &[&str], &str); 6] = [
    ("managers", &["who:string"], "g.V(who).repeat(__.out('reports_to')).emit().values('name')"),
    ("team", &["who:string"], "g.V(who).in('reports_to').project('name', 'title').by('name').by('title')"),
    ("size", &["who:string"], "g.V(who).repeat(__.in('reports_to')).emit().count()"),
    ("titles", &["who:string"], "g.V(who).repeat(__.in('reports_to')).emit().groupCount().by('title')"),
    ("card", &["who:string"], "g.V(who).elementMap()"),
    (
        "colleagues",
        &["who:string", "place:string", "most:int64=10"],
        "g.V(who).out('member_of').in('member_of').has('place', place).limit(most).values('name')",
    ),
];

/// The queries to save.
pub(super) fn prepared() -> Result<Vec<(&'static str, QueryEdition)>> {
    let query = |(name, parameters, text): (&'static str, &[&str], &str)| {
        let parameters = parameters.iter().map(|parameter| gremlin::parameter(parameter)).collect::<Result<_, _>>()?;
        Ok((name, QueryEdition { text: text.into(), parameters, ..QueryEdition::default() }))
    };
    PREPARED.into_iter().map(query).collect()
}

/// A request: its path and its body.
pub(super) struct Request {
    pub(super) path: String,
    pub(super) body: String,
}

/// A call of a query that takes a person alone.
pub(super) fn call(query: &str, person: u64) -> Request {
    let body = json!({"parameters": {"who": format!("person:{person}")}});
    Request { path: format!("/v1/graphs/{GRAPH}/queries/{query}"), body: body.to_string() }
}

/// The mix of requests, and whom they are about.
pub(super) struct Mix {
    prepared: u64,
    /// People in the order of how much they are asked about, which has nothing to do with their place in the tree.
    people: Vec<u64>,
    /// At each rank, the share of all requests up to it.
    shares: Vec<f64>,
}

impl Mix {
    pub(super) fn new(people: u64, prepared: u64, skew: f64, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let mut order: Vec<u64> = (1..=people).collect();
        for place in (1..order.len()).rev() {
            order.swap(place, random.below(place as u64 + 1) as usize);
        }
        let mut sum = 0.0;
        let weights = (1..=people).map(|rank| {
            sum += (rank as f64).powf(-skew);
            sum
        });
        let sums: Vec<f64> = weights.collect();
        let shares = sums.iter().map(|part| part / sum).collect();
        Self { prepared, people: order, shares }
    }

    pub(super) fn draw(&self, random: &mut SplitMix64) -> Request {
        let share = random.below(1 << 53) as f64 / (1_u64 << 53) as f64;
        let rank = self.shares.partition_point(|part| *part < share).min(self.people.len() - 1);
        let person = self.people[rank];
        if random.below(100) >= self.prepared {
            let most = 1 + random.below(20);
            let text = match random.below(2) {
                0 => format!("g.V('person:{person}').out('reports_to').in('reports_to').limit({most}).values('name')"),
                _ => format!(
                    "g.V('person:{person}').out('member_of').in('member_of').limit({most}).values('title').dedup()"
                ),
            };
            let body = json!({"gremlin": text}).to_string();
            return Request { path: format!("/v1/graphs/{GRAPH}/gremlin"), body };
        }
        match random.below(PREPARED.len() as u64) as usize {
            5 => {
                let place = format!("place {}", random.below(PLACES / 6));
                let body = json!({"parameters": {"who": format!("person:{person}"), "place": place}});
                Request { path: format!("/v1/graphs/{GRAPH}/queries/colleagues"), body: body.to_string() }
            }
            query => call(PREPARED[query].0, person),
        }
    }
}
