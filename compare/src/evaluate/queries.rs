//! The workload: the study's seven queries, from 20 sources each.

use anyhow::{Context, Result, ensure};
use hoplake::{Direction, Graph, Hop, Schema, StartKey, Strategy, Traversal, TraversalRequest, VertexId};
use hoplake_testkit::{generate::SplitMix64, snb};

use super::subject::{SMALL_DATA, Size, Subject};

/// Sources of each query.
pub const SOURCES: usize = 20;

/// Name, label of the sources, hops.
const QUERIES: [(&str, &str, &[&str]); 7] = [
    ("Q1", "forum", &["out:hasMember"]),
    ("Q2", "post", &["in:containerOf"]),
    ("Q3", "person", &["both:knows", "both:knows"]),
    ("Q4", "person", &["out:workAt", "out:isLocatedIn"]),
    ("Q5", "person", &["both:knows", "out:hasInterest", "out:hasType"]),
    ("Q6", "post", &["in:containerOf", "out:hasTag", "out:hasType"]),
    ("Q7", "comment", &["out:hasCreator", "out:hasInterest", "out:hasType", "out:isSubclassOf"]),
];

/// A query from a source.
#[derive(Debug, Clone)]
pub struct Case {
    /// `Q1` to `Q7`.
    pub query: &'static str,
    /// Where it starts, as a user names it.
    pub start: StartKey,
    /// The same vertex.
    pub vertex: VertexId,
    /// Its hops.
    pub hops: Vec<Hop>,
    /// The checksum of the keys it must find, where it is known.
    pub sha256: Option<String>,
}

impl Case {
    /// The whole query, from the key to the set at the last hop.
    pub fn request(&self, strategy: Strategy) -> TraversalRequest {
        let traversal = Traversal { hops: self.hops.clone(), strategy, parallelism: 1, ..Traversal::default() };
        TraversalRequest { starts: vec![self.start.clone()], traversal, select: None, limit: None }
    }
}

/// The labels of the graph differ in case from generator to generator.
fn label_of<'a>(schema: &'a Schema, name: &str) -> Result<&'a str> {
    let found = schema.vertex_labels.iter().find(|label| label.name.eq_ignore_ascii_case(name));
    Ok(&found.with_context(|| format!("the graph has no label {name}"))?.name)
}

fn hop_of(schema: &Schema, text: &str) -> Result<Hop> {
    let mut hop: Hop = text.parse()?;
    for label in &mut hop.labels {
        let found = schema.edge_types.iter().find(|edge| edge.label.eq_ignore_ascii_case(label));
        *label = found.with_context(|| format!("the graph has no edge label {label}"))?.label.clone();
    }
    Ok(hop)
}

/// All cases, query by query: for the real graph from the sources whose answers are published with it, for the
/// generated one from sources that are drawn evenly among the vertices of the label.
pub async fn workload(subject: &Subject, graph: &Graph, seed: u64) -> Result<Vec<Case>> {
    let truth = (subject.facts.size == Size::Small).then(|| snb::truth(SMALL_DATA));
    cases_from(graph, truth.as_ref(), seed).await
}

/// The same from sources that are drawn, whichever the graph.
pub async fn drawn_workload(graph: &Graph, seed: u64) -> Result<Vec<Case>> {
    cases_from(graph, None, seed).await
}

async fn cases_from(graph: &Graph, truth: Option<&snb::Truth>, seed: u64) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (query, label, hops) in QUERIES {
        let label = label_of(graph.schema(), label)?;
        let hops = hops.iter().map(|hop| hop_of(graph.schema(), hop)).collect::<Result<Vec<_>>>()?;
        let mut random = SplitMix64::new(seed << 8 | u64::from(query.as_bytes()[1]));
        let sources: Vec<(String, Option<String>)> = match truth {
            Some(truth) => {
                let known = truth.queries[query].cases.iter().filter(|case| case.kind == "random");
                known.map(|case| (case.source.to_string(), Some(case.set_sha256.clone()))).collect()
            }
            None => drawn(graph, label, SOURCES, &mut random).await?.into_iter().map(|key| (key, None)).collect(),
        };
        ensure!(sources.len() == SOURCES, "{query} has {} sources", sources.len());
        for (key, sha256) in sources {
            let start = StartKey::key(label, key);
            let vertex = graph.query().named(std::slice::from_ref(&start)).await?[0];
            cases.push(Case { query, start, vertex, hops: hops.clone(), sha256 });
        }
    }
    Ok(cases)
}

/// Keys of vertices of a label, drawn evenly.
async fn drawn(graph: &Graph, label: &str, count: usize, random: &mut SplitMix64) -> Result<Vec<String>> {
    let id = graph.schema().label_id(label).context("the label was just found")?;
    let vertices = graph.manifest().vertex_counts[usize::from(id.0)].ordinals;
    ensure!(vertices > 0, "the graph has no {label}");
    let vertex = |_| VertexId::new(id, random.below(vertices)).context("ordinals fit");
    let vertices = (0..count).map(vertex).collect::<Result<Vec<_>>>()?;
    Ok(graph.query().keys_of(&vertices).await?.iter().map(ToString::to_string).collect())
}

/// A walk's hops, as the study's traversals have them: one edge label and direction a hop, drawn evenly among those
/// that leave the label reached.
pub fn drawn_hops(schema: &Schema, start: VertexId, hops: usize, random: &mut SplitMix64) -> Vec<Hop> {
    let mut label = start.label();
    let mut drawn = Vec::with_capacity(hops);
    while drawn.len() < hops {
        let ways: Vec<_> = (schema.edge_types.iter())
            .flat_map(|edge| Direction::ALL.map(|direction| (edge, direction)))
            .filter(|(edge, direction)| edge.near(*direction) == label)
            .collect();
        let Some((edge, direction)) = ways.get(random.below(ways.len().max(1) as u64) as usize) else { break };
        let way = if *direction == Direction::Out { "out" } else { "in" };
        drawn.push(format!("{way}:{}", edge.label).parse().expect("labels of edges have no brackets"));
        label = edge.far(*direction);
    }
    drawn
}
