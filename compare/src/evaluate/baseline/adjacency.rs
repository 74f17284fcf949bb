//! The lists of all vertices, as the baseline numbers them.

use anyhow::{Context, Result};
use hoplake::{Direction, Graph, Hop, HopDirection, LabelId, VertexId};

/// Vertices that are read from the graph at once.
const BATCH: u64 = 8192;

/// Where an edge's label begins in its 64 bits: below is the number of the vertex it leads to.
const LABEL_SHIFT: u32 = 48;

/// An edge as it is stored: the label's number in the upper 16 bits, the vertex's in the lower 48.
pub type Edge = u64;

/// The label's number.
pub fn label(edge: Edge) -> u16 {
    (edge >> LABEL_SHIFT) as u16
}

/// The number of the vertex that an edge leads to.
pub fn target(edge: Edge) -> u64 {
    edge & ((1 << LABEL_SHIFT) - 1)
}

/// All lists. Vertices are numbered label by label, in the order of their ordinals.
pub struct Adjacency {
    /// The number of the first vertex of each label, and that of all.
    bases: Vec<u64>,
    /// The names of edge labels, by number.
    labels: Vec<String>,
    /// For each vertex where its incoming edges begin and where its outgoing ones do, and the end of all.
    pub(super) offsets: Vec<u64>,
    /// The edges.
    pub(super) edges: Vec<Edge>,
}

impl Adjacency {
    /// Reads all lists of a graph, both directions of each vertex.
    pub async fn of(graph: &Graph) -> Result<Self> {
        let mut bases = vec![0];
        for count in graph.manifest().vertex_counts.iter().map(|count| count.ordinals) {
            bases.push(bases.last().copied().unwrap_or_default() + count);
        }
        let mut labels: Vec<String> = graph.schema().edge_types.iter().map(|edge| edge.label.clone()).collect();
        labels.sort_unstable();
        labels.dedup();
        let edges = graph.manifest().edge_counts.iter().sum::<u64>() as usize * 2;
        let offsets = Vec::with_capacity(bases.last().copied().unwrap_or_default() as usize * 2 + 1);
        let mut all = Self { bases, labels, offsets, edges: Vec::with_capacity(edges) };
        for (number, count) in graph.manifest().vertex_counts.iter().map(|count| count.ordinals).enumerate() {
            let id = LabelId(u16::try_from(number)?);
            for first in (0..count).step_by(BATCH as usize) {
                all.add(graph, id, first, (first + BATCH).min(count)).await?;
            }
        }
        all.offsets.push(all.edges.len() as u64);
        Ok(all)
    }

    /// Adds the lists of the vertices from `first` to before `end` of a label.
    async fn add(&mut self, graph: &Graph, id: LabelId, first: u64, end: u64) -> Result<()> {
        let vertex = |ordinal| VertexId::new(id, ordinal).context("the ordinal is one of the graph's");
        let vertices = (first..end).map(vertex).collect::<Result<Vec<_>>>()?;
        let any = Hop { direction: HopDirection::Both, ..Hop::default() };
        let neighbours: Vec<_> = graph.query().neighbors(&vertices, &any).await?.iter().collect();
        let numbers: Vec<u16> = (graph.schema().edge_types.iter())
            .map(|edge| self.labels.binary_search(&edge.label).map(|number| number as u16))
            .collect::<Result<_, _>>()
            .map_err(|_| anyhow::anyhow!("every edge label was numbered"))?;
        let mut rest = &neighbours[..];
        for vertex in vertices {
            let (own, others) = rest.split_at(rest.iter().take_while(|edge| edge.from == vertex).count());
            rest = others;
            for direction in [Direction::In, Direction::Out] {
                self.offsets.push(self.edges.len() as u64);
                let edges = own.iter().filter(|edge| edge.direction == direction);
                let edges = edges.map(|edge| {
                    u64::from(numbers[usize::from(edge.edge_type.0)]) << LABEL_SHIFT | number(&self.bases, edge.to)
                });
                self.edges.extend(edges);
            }
        }
        Ok(())
    }

    /// The number of a vertex.
    pub fn number(&self, vertex: VertexId) -> u64 {
        number(&self.bases, vertex)
    }

    /// The vertex of a number.
    pub fn vertex(&self, number: u64) -> Option<VertexId> {
        let label = self.bases.partition_point(|base| *base <= number).checked_sub(1)?;
        VertexId::new(LabelId(label as u16), number - self.bases[label])
    }

    /// The numbers of a hop's edge labels, and its direction.
    pub fn hop(&self, hop: &Hop) -> (Vec<u16>, HopDirection) {
        let number = |label: &String| self.labels.binary_search(label).ok().map(|number| number as u16);
        (hop.labels.iter().filter_map(number).collect(), hop.direction)
    }

    /// How many vertices there are.
    pub fn vertices(&self) -> u64 {
        self.offsets.len() as u64 / 2
    }
}

fn number(bases: &[u64], vertex: VertexId) -> u64 {
    bases[usize::from(vertex.label().0)] + vertex.ordinal()
}

#[cfg(test)]
impl Adjacency {
    /// Vertices of one label, edges of two labels 0 and 1.
    pub fn of_edges(vertices: u64, edges: &[(u64, u16, u64)]) -> Self {
        let mut all =
            Self { bases: vec![0, vertices], labels: vec!["a".into(), "b".into()], offsets: vec![], edges: vec![] };
        for vertex in 0..vertices {
            all.offsets.push(all.edges.len() as u64);
            let into = edges.iter().filter(|edge| edge.2 == vertex);
            all.edges.extend(into.map(|edge| u64::from(edge.1) << LABEL_SHIFT | edge.0));
            all.offsets.push(all.edges.len() as u64);
            let out = edges.iter().filter(|edge| edge.0 == vertex);
            all.edges.extend(out.map(|edge| u64::from(edge.1) << LABEL_SHIFT | edge.2));
        }
        all.offsets.push(all.edges.len() as u64);
        all
    }
}
