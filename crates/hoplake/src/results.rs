//! Keys and properties of what a query found, in one wave whatever is asked.
//!
//! Steps that do not depend on each other begin after the same wave. What they need to know of tables is read with an
//! earlier step, if the query expects them before it: see [`Query::expect_rows`].

use arrow_array::UInt32Array;
use arrow_select::take::take_record_batch;
use futures::future::try_join3;
use hoplake_engine::{Edges, EngineError, Frontier, Held, traversal::Hop};
use hoplake_format::{Key, LabelId};

use crate::{EdgeRows, Error, Query, Rows, query::key_bytes};

/// Edges and the vertices that they lead to, as far as read.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    /// The key of the vertex that each edge leads to.
    pub keys: Vec<Key>,
    /// Properties of the edges.
    pub edges: Vec<EdgeRows>,
    /// Keys and properties of the vertices, each once.
    pub vertices: Vec<Rows>,
}

impl Described {
    fn bytes(&self) -> u64 {
        let of_edges = |rows: &EdgeRows| (rows.positions.len() * 8 + rows.batch.get_array_memory_size()) as u64;
        let of_vertices = |rows: &Rows| rows.batch.get_array_memory_size() as u64;
        let keys: u64 = self.keys.iter().map(key_bytes).sum();
        keys + self.edges.iter().map(of_edges).sum::<u64>() + self.vertices.iter().map(of_vertices).sum::<u64>()
    }
}

impl Query {
    /// Announces that keys or properties of vertices of these labels will be requested. Their metadata is read in
    /// parallel with the next step, such as the look-up of a start vertex, and then takes no wave of its own.
    pub fn expect_rows(&mut self, labels: impl IntoIterator<Item = LabelId>) {
        self.expected.vertices.extend(labels);
    }

    /// As [`Self::expect_rows`], of the vertices that the last of these hops leads to from vertices of these labels.
    pub fn expect_rows_at_end(&mut self, starts: &[LabelId], hops: &[Hop]) {
        self.expect_rows(self.labels_at_end(starts, hops));
    }

    /// The labels of the vertices that the last of these hops may lead to from vertices of these labels.
    pub fn labels_at_end(&self, starts: &[LabelId], hops: &[Hop]) -> Vec<LabelId> {
        hops.iter().fold(starts.to_vec(), |near, hop| hop.labels_reached(self.snapshot.schema(), &near))
    }

    /// As [`Self::expect_rows`], of the vertices that each of these hops leads to, and of those where the first begins.
    pub fn expect_rows_on_the_way(&mut self, starts: &[LabelId], hops: &[Hop]) {
        self.expect_walks(starts, hops, &[]);
    }

    /// As [`Self::expect_rows`], of the edges that a hop follows from vertices of these labels.
    pub fn expect_edge_rows(&mut self, starts: &[LabelId], hop: &Hop) {
        self.expected.edges.extend(hop.edge_tables(self.snapshot.schema(), starts));
    }

    /// The labels of vertices as a user names them, as far as the graph has them.
    pub fn label_ids<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Vec<LabelId> {
        names.into_iter().filter_map(|name| self.snapshot.schema().label_id(name)).collect()
    }

    /// The keys of the vertices that edges lead to, properties called `of_edges` of the edges, and properties called
    /// `of_vertices` of the vertices. One wave.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if no label has a property of a name; the store's.
    pub async fn describe(
        &mut self,
        edges: &Edges,
        of_edges: &[String],
        of_vertices: &[String],
    ) -> Result<Held<Described>, Error> {
        let ends = edges.targets();
        // Properties of a vertex that many edges reach are read and returned once; keys are returned for each edge.
        let each_once: Frontier =
            if of_vertices.is_empty() { Frontier::default() } else { ends.iter().copied().collect() };
        let mut lines = [self.branch.clone(), self.branch.clone(), self.branch.clone()];
        let [for_keys, for_rows, for_edges] = &mut lines;
        let keys = self.snapshot.keys().of(ends, for_keys);
        let rows = self.snapshot.properties().of_frontier(&each_once, of_vertices, for_rows);
        let edge_rows = async {
            match of_edges.is_empty() {
                true => Ok::<_, EngineError>(Vec::new()),
                false => self.snapshot.properties().of_edges(edges, of_edges, for_edges).await,
            }
        };
        let (keys, rows, edge_rows) = try_join3(keys, rows, edge_rows).await?;
        self.branch.join(&lines);
        let vertices = rows.into_iter().map(|(label, batch)| Rows { label: self.label_name(label), batch });
        let edges = edge_rows.into_iter().map(|(positions, batch)| EdgeRows { positions, batch });
        let described = Described { keys, edges: edges.collect(), vertices: vertices.collect() };
        let bytes = described.bytes();
        Ok(Held::counted(described, bytes, self.branch.context())?)
    }

    /// Keys and properties of several sets, as [`Self::properties`] has them of one. One wave for all of them.
    ///
    /// # Errors
    /// As [`Self::properties`].
    pub async fn properties_of_each(
        &mut self,
        sets: &[Frontier],
        names: &[String],
    ) -> Result<Held<Vec<Vec<Rows>>>, Error> {
        let mut all = Frontier::default();
        for set in sets {
            all.unite(set, &mut self.branch.context().pace()).await?;
        }
        let rows = self.properties(&all, names).await?;
        let of_set = |set: &Frontier| -> Result<Vec<Rows>, Error> {
            let mut parts = Vec::new();
            // `rows` has a batch for each label of `all`, in this order, and a row for each of its ordinals.
            for (rows, (label, known)) in rows.iter().zip(all.by_label()) {
                let wanted = set.ordinals(label);
                if wanted.is_empty() {
                    continue;
                }
                let rows_of_set = (0u32..).zip(known.iter()).filter(|(_, ordinal)| wanted.contains(*ordinal));
                let indices: UInt32Array = rows_of_set.map(|(row, _)| row).collect();
                let batch = take_record_batch(&rows.batch, &indices).map_err(EngineError::from)?;
                parts.push(Rows { label: rows.label.clone(), batch });
            }
            Ok(parts)
        };
        let each = sets.iter().map(of_set).collect::<Result<Vec<_>, _>>()?;
        let bytes = each.iter().flatten().map(|rows| rows.batch.get_array_memory_size() as u64).sum();
        Ok(Held::counted(each, bytes, self.branch.context())?)
    }
}
