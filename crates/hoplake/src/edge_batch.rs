//! Edges as an Arrow record batch.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use hoplake_engine::{EdgeList, EdgeSlice, EngineError, Neighbour};
use hoplake_format::{Schema, VertexId};

use crate::{Error, Graph};

impl Graph {
    /// Edges as a record batch, one row an edge, with the text columns `id`, `from`, `label`, `direction`, `to` and `to_label`: the
    /// edge's id, the vertex left, the edge's label, `out` or `in`, and the vertex reached with its label. Ids have the
    /// text forms that look-ups read.
    ///
    /// # Errors
    /// [`Internal`](crate::ErrorKind::Internal) if Arrow rejects the columns.
    pub fn edge_batch(&self, edges: EdgeSlice<'_>) -> Result<RecordBatch, Error> {
        edge_batch(self.schema(), edges)
    }
}

/// As [`Graph::edge_batch`], of a graph of this schema.
pub(crate) fn edge_batch(schema: &Schema, edges: EdgeSlice<'_>) -> Result<RecordBatch, Error> {
    let of_lists = |text: &dyn Fn(&EdgeList<'_>) -> String| -> ArrayRef {
        let lists = edges.into_lists().flat_map(|list| std::iter::repeat_n(text(&list), list.targets.len()));
        Arc::new(StringArray::from_iter_values(lists))
    };
    let of_targets = |text: &dyn Fn(&VertexId) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(edges.targets().iter().map(text)))
    };
    let ids: StringArray = edges.into_iter().map(|edge: Neighbour| Some(edge.id().to_string())).collect();
    let label = |list: &EdgeList<'_>| {
        schema.edge_type(list.edge_type).map_or_else(String::new, |edge_type| edge_type.label.clone())
    };
    let to_label = |to: &VertexId| schema.label(to.label()).map_or_else(String::new, |label| label.name.clone());
    let columns: [(&str, ArrayRef); 6] = [
        ("id", Arc::new(ids)),
        ("from", of_lists(&|list| list.from.to_string())),
        ("label", of_lists(&label)),
        ("direction", of_lists(&|list| list.direction.to_string())),
        ("to", of_targets(&VertexId::to_string)),
        ("to_label", of_targets(&to_label)),
    ];
    Ok(RecordBatch::try_from_iter(columns).map_err(EngineError::from)?)
}
