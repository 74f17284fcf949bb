//! Properties of edges, as columns that have a value or a null for each edge.
//!
//! The engine returns properties by edge type and run, with the positions of their edges; a result has edges in order, of all types. A
//! column has one type in all batches of a result, also where no edge has the property: it is that of the schema.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, new_null_array};
use arrow_schema::{ArrowError, DataType};
use arrow_select::interleave::interleave;
use hoplake::{EdgeRows, Edges, Graph, Held, Hop, MemoryBudget, Query};

use crate::failure::{Failure, Reason};

/// What an edge takes while a column is made, besides the values that were read: the place of its value, and a null or a position.
const EDGE_BYTES: usize = 16 + 9;

/// Selected properties of edges, and their types.
#[derive(Debug, Clone, Default)]
pub(super) struct EdgeFields(Vec<(String, DataType)>);

/// A value or a null for each edge, by property.
pub(crate) type EdgeColumns = Vec<(Arc<str>, ArrayRef)>;

impl EdgeFields {
    /// The properties of these names, of the edges that a hop may follow.
    ///
    /// # Errors
    /// [`Reason::NotFound`] if no edge has one, [`Reason::Invalid`] if it has several types.
    pub(super) fn of(graph: &Graph, hop: &Hop, names: &[String]) -> Result<Self, Failure> {
        names.iter().map(|name| Ok((name.clone(), Self::kind(graph, hop, name)?))).collect::<Result<_, _>>().map(Self)
    }

    fn kind(graph: &Graph, hop: &Hop, name: &str) -> Result<DataType, Failure> {
        let types =
            graph.schema().edge_types.iter().filter(|edge| hop.labels.is_empty() || hop.labels.contains(&edge.label));
        let mut kinds = types.flat_map(|edge| &edge.properties).filter(|property| property.name == name);
        let Some(first) = kinds.next() else {
            return Err(Failure::new(Reason::NotFound, format!("no edge of the hop has a property {name:?}")));
        };
        if kinds.any(|other| other.kind != first.kind) {
            let message =
                format!("property {name:?} has different types for different edges; ask for one edge label at a time");
            return Err(Failure::invalid(message));
        }
        Ok(first.kind.arrow())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads them. One wave.
    pub(super) async fn read(&self, query: &mut Query, edges: &Edges) -> Result<Held<EdgeColumns>, Failure> {
        let names: Vec<_> = self.0.iter().map(|(name, _)| name.clone()).collect();
        let rows = query.edge_properties(edges, &names).await?;
        self.columns(&rows, edges.len(), query.memory()).await
    }

    /// A column of each, held before it is made.
    async fn columns(
        &self,
        rows: &[EdgeRows],
        edges: usize,
        memory: &MemoryBudget,
    ) -> Result<Held<EdgeColumns>, Failure> {
        let failed = |error: ArrowError| Failure::new(Reason::Internal, error.to_string());
        let mut columns = EdgeColumns::new();
        let mut hold = memory.hold(0)?;
        for (name, kind) in &self.0 {
            let before = hold.bytes();
            let values = rows.iter().filter_map(|rows| rows.batch.column_by_name(name));
            let values: usize = values.map(|values| values.get_array_memory_size()).sum();
            hold.resize(before + (values + edges * EDGE_BYTES) as u64)?;
            let made = column(rows, name, kind, edges).map_err(failed)?;
            hold.resize(before + made.get_array_memory_size() as u64)?;
            columns.push((name.as_str().into(), made));
            // A column is milliseconds of work: others have their turn, and the deadline takes effect.
            tokio::task::yield_now().await;
        }
        Ok(Held::new(columns, hold))
    }
}

/// The values of one property in the order of edges.
fn column(rows: &[EdgeRows], name: &str, kind: &DataType, edges: usize) -> Result<ArrayRef, ArrowError> {
    let null = new_null_array(kind, 1);
    let mut sources: Vec<&dyn Array> = vec![&*null];
    let mut positions = vec![(0, 0); edges];
    for rows in rows {
        let Some(values) = rows.batch.column_by_name(name) else { continue };
        for (row, edge) in rows.positions.iter().enumerate() {
            positions[*edge] = (sources.len(), row);
        }
        sources.push(&**values);
    }
    interleave(&sources, &positions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn columns_are_held_before_they_are_made() {
        let fields = EdgeFields(["since", "until"].map(|name| (name.to_owned(), DataType::Int64)).to_vec());
        // One is made in 25 bytes an edge, and then takes nine.
        let budget = MemoryBudget::new("the query", 30_000);
        assert_eq!(fields.columns(&[], 1_000, &budget).await.unwrap_err().reason, Reason::Limit);
        assert_eq!((budget.used(), budget.peak()), (0, 25_000));
        let budget = MemoryBudget::new("the query", 40_000);
        let columns = fields.columns(&[], 1_000, &budget).await.unwrap();
        let made: usize = columns.iter().map(|(_, column)| column.get_array_memory_size()).sum();
        assert_eq!(budget.used(), made as u64);
    }
}
