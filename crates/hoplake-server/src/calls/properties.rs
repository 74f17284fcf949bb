//! Keys and properties of vertices.

use arrow_array::RecordBatch;
use hoplake::{Frontier, Graph, Rows, VertexId};

use super::{
    Call, GraphRef, PropertiesQuery,
    neighbors::check_limits,
    vertices::{find_all, labels_of, resolve},
};
use crate::failure::Failure;

/// Vertices of one label: their ids, and a batch with their keys (column `~key`) and properties.
#[derive(Debug, Clone)]
pub(crate) struct LabelRows {
    pub(crate) label: String,
    /// The distance in hops.
    pub(crate) depth: u32,
    pub(crate) ids: Vec<VertexId>,
    pub(crate) batch: RecordBatch,
}

impl LabelRows {
    /// Rows of the facade, which come by label and ordinal, as the vertices of a set do.
    pub(super) fn of(graph: &Graph, depth: u32, rows: Vec<Rows>, vertices: &Frontier) -> Vec<Self> {
        let one = |rows: Rows| {
            let label = graph.schema().label_id(&rows.label);
            let ordinals = label.map_or(&[][..], |label| vertices.ordinals(label));
            let ids =
                label.into_iter().flat_map(|label| ordinals.iter().filter_map(move |it| VertexId::new(label, *it)));
            Self { label: rows.label, depth, ids: ids.collect(), batch: rows.batch }
        };
        rows.into_iter().map(one).collect()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Parts of at most `most` rows.
    pub(crate) fn chunks(&self, most: usize) -> impl Iterator<Item = Self> + '_ {
        (0..self.len()).step_by(most.max(1)).map(move |start| {
            let length = most.min(self.len() - start);
            let ids = self.ids[start..start + length].to_vec();
            Self { label: self.label.clone(), depth: self.depth, ids, batch: self.batch.slice(start, length) }
        })
    }
}

/// Keys and properties of some vertices, and the version they are of.
pub(crate) async fn properties(
    call: &mut Call,
    graph: &GraphRef,
    asked: &PropertiesQuery,
) -> Result<(Vec<LabelRows>, u64), Failure> {
    call.limit_time(asked.limits.time_ms);
    let open = call.graph(graph).await?;
    call.service.check_batch(&asked.vertices)?;
    let limits = call.limits(&asked.limits);
    let mut query = open.graph.query();
    let work = async {
        let named = resolve(&open.graph, &asked.vertices)?;
        query.expect_rows(labels_of(&query, &named));
        let vertices: Frontier = find_all(&mut query, &named).await?.into_iter().collect();
        let rows = query.properties(&vertices, &asked.select).await?;
        check_limits(&open.graph, &query, vertices.len(), &limits)?;
        Ok(LabelRows::of(&open.graph, 0, rows, &vertices))
    };
    let outcome = call.bounded(work).await;
    let rows = call.settle(&query, &open.graph, outcome)?;
    Ok((rows, open.graph.version()))
}
