//! The graph that orders are computed on.

/// An undirected graph in memory, as compressed sparse rows: 8 bytes per vertex and 8 per edge
/// (4 for each end). An edge between two vertices is a neighbour of each, a self-loop of none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undirected {
    offsets: Vec<u64>,
    neighbours: Vec<u32>,
}

impl Undirected {
    /// The graph of `vertices` vertices and the edges that `edges` yields, each time it is called
    /// the same: it is called twice. Every end must be below `vertices`.
    pub fn new<E: Iterator<Item = (u32, u32)>>(vertices: u32, edges: impl Fn() -> E) -> Self {
        let vertices = vertices as usize;
        let mut offsets = vec![0u64; vertices + 1];
        for (one, other) in edges().filter(|(one, other)| one != other) {
            offsets[one as usize] += 1;
            offsets[other as usize] += 1;
        }
        // From counts to ends; filling a row from its end leaves the offset at its start.
        let mut end = 0;
        for offset in &mut offsets {
            end += *offset;
            *offset = end;
        }
        let mut neighbours = vec![0; end as usize];
        let mut add = |vertex: u32, neighbour| {
            let offset = &mut offsets[vertex as usize];
            *offset -= 1;
            neighbours[*offset as usize] = neighbour;
        };
        for (one, other) in edges().filter(|(one, other)| one != other) {
            add(one, other);
            add(other, one);
        }
        Self { offsets, neighbours }
    }

    /// The number of vertices.
    pub fn vertices(&self) -> u32 {
        (self.offsets.len() - 1) as u32
    }

    /// The neighbours of a vertex, in no order, repeated if edges are parallel.
    pub fn neighbours(&self, vertex: u32) -> &[u32] {
        let vertex = vertex as usize;
        &self.neighbours[self.offsets[vertex] as usize..self.offsets[vertex + 1] as usize]
    }

    /// The number of neighbours of a vertex.
    pub fn degree(&self, vertex: u32) -> u64 {
        self.offsets[vertex as usize + 1] - self.offsets[vertex as usize]
    }
}
