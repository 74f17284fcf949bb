//! The graphs that are measured, as adjacency in memory.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use hoplake_testkit::generate::{kronecker, log_normal};

/// An edge between two numbered vertices.
pub type Edge = (u32, u32);

/// The lists of one edge type in one direction, each sorted.
pub struct Section {
    /// What it is called in the tables.
    pub name: String,
    /// Where each list starts, and the end.
    pub offsets: Vec<usize>,
    /// The targets of all lists.
    pub targets: Vec<u64>,
}

impl Section {
    /// The lists of `vertices` sources, by counting sort. O(V + E), then a sort of each list.
    pub fn new(name: impl Into<String>, vertices: usize, edges: impl Iterator<Item = Edge> + Clone) -> Self {
        let mut offsets = vec![0; vertices + 1];
        edges.clone().for_each(|(source, _)| offsets[source as usize + 1] += 1);
        (0..vertices).for_each(|vertex| offsets[vertex + 1] += offsets[vertex]);
        let mut next = offsets.clone();
        let mut targets = vec![0; offsets[vertices]];
        for (source, target) in edges {
            targets[next[source as usize]] = u64::from(target);
            next[source as usize] += 1;
        }
        offsets.windows(2).for_each(|pair| targets[pair[0]..pair[1]].sort_unstable());
        Self { name: name.into(), offsets, targets }
    }

    /// The list of `source`.
    pub fn list(&self, source: usize) -> &[u64] {
        &self.targets[self.offsets[source]..self.offsets[source + 1]]
    }

    /// The number of sources.
    pub fn sources(&self) -> usize {
        self.offsets.len() - 1
    }
}

/// An edge type with its edges, both ends numbered within their label.
pub struct EdgeType {
    /// `person knows person` and the like.
    pub name: String,
    /// The label of the sources.
    pub source: usize,
    /// The label of the targets.
    pub target: usize,
    /// The edges.
    pub edges: Vec<Edge>,
}

/// A graph with labels.
pub struct Graph {
    /// The number of vertices of each label.
    pub labels: Vec<usize>,
    /// The edge types.
    pub types: Vec<EdgeType>,
}

impl Graph {
    /// The number of the first vertex of each label in one space of all vertices, and their total.
    pub fn bases(&self) -> (Vec<u32>, usize) {
        let mut total = 0;
        let base = |&count: &usize| {
            total += count;
            (total - count) as u32
        };
        (self.labels.iter().map(base).collect(), total)
    }

    /// All edges in the space of all vertices.
    pub fn edges(&self) -> impl Iterator<Item = Edge> + Clone {
        let (bases, _) = self.bases();
        self.types.iter().flat_map(move |kind| {
            let source = bases[kind.source];
            let target = bases[kind.target];
            kind.edges.iter().map(move |&(from, to)| (source + from, target + to))
        })
    }

    /// Numbers the vertices of each label by their `positions` in the space of all vertices.
    pub fn reordered(&self, positions: &[u32]) -> Self {
        let (bases, _) = self.bases();
        let ranks: Vec<Vec<u32>> = (self.labels.iter().zip(&bases))
            .map(|(&count, &base)| ranks(&positions[base as usize..base as usize + count]))
            .collect();
        let reorder = |kind: &EdgeType| {
            let sources = &ranks[kind.source];
            let targets = &ranks[kind.target];
            let edges = kind.edges.iter().map(|&(from, to)| (sources[from as usize], targets[to as usize])).collect();
            EdgeType { name: kind.name.clone(), edges, ..*kind }
        };
        Self { labels: self.labels.clone(), types: self.types.iter().map(reorder).collect() }
    }

    /// Both directions of an edge type.
    pub fn sections(&self, kind: &EdgeType) -> [Section; 2] {
        let edges = kind.edges.iter().copied();
        let reversed = edges.clone().map(|(source, target)| (target, source));
        [
            Section::new(format!("{}, out", kind.name), self.labels[kind.source], edges),
            Section::new(format!("{}, in", kind.name), self.labels[kind.target], reversed),
        ]
    }
}

/// The rank of each position among all.
fn ranks(positions: &[u32]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..positions.len() as u32).collect();
    order.sort_unstable_by_key(|&vertex| positions[vertex as usize]);
    let mut ranks = vec![0; positions.len()];
    (0u32..).zip(&order).for_each(|(rank, &vertex)| ranks[vertex as usize] = rank);
    ranks
}

fn of_one_type(name: &str, vertices: u64, edges: impl Iterator<Item = (u64, u64)>) -> Graph {
    let edges = edges.map(|(source, target)| (source as u32, target as u32)).collect();
    let kind = EdgeType { name: name.into(), source: 0, target: 0, edges };
    Graph { labels: vec![vertices as usize], types: vec![kind] }
}

/// The Kronecker graph of Graph500 with 16 edges per vertex.
pub fn kronecker_graph(scale: u32, seed: u64) -> Graph {
    let graph = kronecker(scale, 16, seed);
    of_one_type(&format!("Kronecker, scale {scale}"), graph.vertices(), graph)
}

/// The log-normal graph with μ 4 and σ 1.3.
pub fn log_normal_graph(vertices: u64, seed: u64) -> Graph {
    of_one_type(&format!("log-normal, {vertices} vertices"), vertices, log_normal(vertices, 4.0, 1.3, seed))
}

const SNB_LABELS: [&str; 4] = ["person", "forum", "post", "comment"];

const SNB_TYPES: [(usize, &str, usize); 10] = [
    (0, "knows", 0),
    (1, "hasMember", 0),
    (0, "likes", 2),
    (0, "likes", 3),
    (2, "hasCreator", 0),
    (3, "hasCreator", 0),
    (1, "containerOf", 2),
    (1, "hasModerator", 0),
    (3, "replyOf", 2),
    (3, "replyOf", 3),
];

/// A social network as written by the LDBC SNB data generator (CsvBasic): persons, forums,
/// posts, comments and the edges between them, numbered by the rank of their id in their label.
pub fn snb_graph(directory: &Path) -> Result<Graph> {
    let dynamic = directory.join("social_network").join("dynamic");
    let read = |name: String| {
        let path = dynamic.join(format!("{name}_0_0.csv"));
        fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))
    };
    let mut ranks: Vec<HashMap<u64, u32>> = Vec::new();
    for label in SNB_LABELS {
        let mut ids =
            read(label.into())?.lines().skip(1).map(first_two).map(|ids| Ok(ids?.0)).collect::<Result<Vec<_>>>()?;
        ids.sort_unstable();
        ranks.push(ids.into_iter().zip(0..).collect());
    }
    let mut types = Vec::new();
    for (source, label, target) in SNB_TYPES {
        let name = format!("{} {label} {}", SNB_LABELS[source], SNB_LABELS[target]);
        let mut edges = Vec::new();
        for line in read(name.replace(' ', "_"))?.lines().skip(1) {
            let (from, to) = first_two(line)?;
            let to = to.with_context(|| format!("a line of {name} has one column"))?;
            let ends = ranks[source].get(&from).zip(ranks[target].get(&to));
            ensure!(ends.is_some(), "an edge of {name} names a vertex that is not there: {line}");
            edges.extend(ends.map(|(&from, &to)| (from, to)));
        }
        types.push(EdgeType { name, source, target, edges });
    }
    Ok(Graph { labels: ranks.iter().map(HashMap::len).collect(), types })
}

/// The first number of a line, and the second if it is one.
fn first_two(line: &str) -> Result<(u64, Option<u64>)> {
    let mut columns = line.split('|');
    let first = columns.next().unwrap_or_default().parse().with_context(|| format!("no id in {line:?}"))?;
    Ok((first, columns.next().and_then(|column| column.parse().ok())))
}
