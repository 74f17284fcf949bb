//! Properties of vertices, as Arrow columns.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::{Field, Schema as ArrowSchema};
use futures::future::BoxFuture;
use hoplake_format::{Direction, EdgeTypeId, LabelId, TableOwner, VertexId, constants::KEY_COLUMN};
use hoplake_storage::Branch;

use crate::{
    Edges, EngineError, Frontier, Snapshot,
    memory::bytes_of,
    read::{
        edges::{Piece, Stored},
        hop::{EdgesOf, Hop},
        tables::RowsOf,
    },
};

/// Which of the edges asked for have their rows in a batch, and the batch.
pub type RowsOfEdges = (Vec<usize>, RecordBatch);

impl Snapshot {
    /// The keys (column `~key`) and properties called `names` of vertices of one label, in the order
    /// of `ordinals`. A property that the label does not have is a column of nulls if another label has
    /// it. One wave, and one before it if the label's tables were not read before.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if no label has a property of that name; the store's.
    pub fn vertex_properties<'a>(
        &'a self,
        label: LabelId,
        ordinals: &'a [u64],
        names: &'a [String],
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<RecordBatch, EngineError>> {
        Box::pin(async move {
            let fields = self.property_fields(names)?;
            let mut columns = vec![KEY_COLUMN.to_owned()];
            columns.extend_from_slice(names);
            let batch = self.vertex_rows(label, ordinals, &columns, branch).await?;
            let key = batch.column_by_name(KEY_COLUMN).cloned();
            let key_field =
                self.schema().label(label).map(|label| Field::new(KEY_COLUMN, label.key_type.arrow(), false));
            let mut out_fields: Vec<_> = key_field.into_iter().collect();
            let mut out_columns: Vec<ArrayRef> = key.into_iter().collect();
            for field in fields {
                let found = batch.column_by_name(field.name()).cloned();
                let column = found.unwrap_or_else(|| new_null_array(field.data_type(), ordinals.len()));
                // Labels may have properties of one name and of different types: a batch has the type of its own label.
                out_fields.push(Field::new(field.name(), column.data_type().clone(), true));
                out_columns.push(column);
            }
            let options = RecordBatchOptions::new().with_row_count(Some(ordinals.len()));
            let schema = Arc::new(ArrowSchema::new(out_fields));
            Ok(RecordBatch::try_new_with_options(schema, out_columns, &options)?)
        })
    }

    /// The fields of these properties, as the first label that has them declares them.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if no label has a property of that name.
    pub fn property_fields(&self, names: &[String]) -> Result<Vec<Field>, EngineError> {
        let find = |name: &String| {
            let mut all = self.schema().vertex_labels.iter().flat_map(|label| &label.properties);
            all.find(|property| property.name == *name)
                .map(|property| property.arrow())
                .ok_or_else(|| EngineError::NotFound(format!("no vertex label has a property {name:?}")))
        };
        names.iter().map(find).collect()
    }

    /// Starts to read what a later look at the properties of these labels needs to know, so that it
    /// takes one wave then.
    ///
    /// # Errors
    /// The store's.
    pub fn load_property_metadata<'a>(
        &'a self,
        labels: &'a [LabelId],
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(async move {
            let loads = branch.each(labels, |label, mut line| async move {
                self.load_vertex_metadata(*label, &mut line).await?;
                Ok::<_, EngineError>(((), line))
            });
            loads.await.map(drop)
        })
    }

    /// The labels that a hop can reach from vertices of these labels.
    pub fn labels_reached(&self, near: &[LabelId], hop: &Hop) -> Vec<LabelId> {
        let mut reached = BTreeSet::new();
        for label in near {
            reached.extend(hop.edges_from(self.schema(), *label).map(|of| of.far));
        }
        reached.into_iter().collect()
    }

    /// The edge types and directions that a hop follows from vertices of these labels and that have properties.
    pub fn edge_tables(&self, near: &[LabelId], hop: &Hop) -> Vec<(EdgeTypeId, Direction)> {
        let followed = near.iter().flat_map(|label| hop.edges_from(self.schema(), *label));
        let edge_type = |of: &EdgesOf| self.schema().edge_type(of.edge_type);
        let kept = followed.filter(|of| edge_type(of).is_some_and(|edge| !edge.properties.is_empty()));
        kept.map(|of| (of.edge_type, of.direction)).collect()
    }

    /// The edge types and directions that a hop follows from vertices of these labels.
    pub fn edges_followed(&self, near: &[LabelId], hop: &Hop) -> Vec<(EdgeTypeId, Direction)> {
        let followed = near.iter().flat_map(|label| hop.edges_from(self.schema(), *label));
        followed.map(|of| (of.edge_type, of.direction)).collect()
    }

    /// As [`Self::load_property_metadata`], of edges.
    ///
    /// # Errors
    /// The store's.
    pub fn load_edge_property_metadata<'a>(
        &'a self,
        tables: &'a [(EdgeTypeId, Direction)],
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(async move {
            let loads = branch.each(tables, |(edge_type, direction), mut line| async move {
                self.tables().load_table_metadata(TableOwner::Edges(*edge_type, *direction), &mut line).await?;
                Ok::<_, EngineError>(((), line))
            });
            loads.await.map(drop)
        })
    }

    /// The properties of a set, one batch for each label, in the order of the set.
    ///
    /// # Errors
    /// As [`Self::vertex_properties`].
    pub fn frontier_properties<'a>(
        &'a self,
        frontier: &'a Frontier,
        names: &'a [String],
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Vec<(LabelId, RecordBatch)>, EngineError>> {
        Box::pin(async move {
            let reads = branch.each(frontier.by_label(), |(label, ordinals), mut line| async move {
                let (ordinals, _memory) = ordinals.to_list(line.context()).await?;
                let batch = self.vertex_properties(label, &ordinals, names, &mut line).await?;
                Ok::<_, EngineError>(((label, batch), line))
            });
            reads.await
        })
    }

    /// Properties called `names` of edges: one batch for each edge type, direction and run, with the positions
    /// of its rows among `edges`. Columns are those of `names` that the edge type has. One wave, and one
    /// before it if the tables were not read before.
    ///
    /// # Errors
    /// The store's.
    pub fn edge_properties<'a>(
        &'a self,
        edges: &'a Edges,
        names: &'a [String],
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Vec<RowsOfEdges>, EngineError>> {
        Box::pin(async move {
            let context = branch.context().clone();
            // Its position and its row, twice as vectors grow.
            let _memory = context.hold(bytes_of::<[u64; 4]>(edges.len()))?;
            let mut groups: BTreeMap<RowsOf, (Vec<usize>, Vec<u64>)> = BTreeMap::new();
            let mut pace = context.pace();
            for Piece { stored, position, targets, range, .. } in edges.pieces() {
                let Stored { edge_type, direction, run } = stored;
                if self.schema().edge_type(edge_type).is_some_and(|edge| !edge.properties.is_empty()) {
                    let group = groups.entry(RowsOf::Edges(edge_type, direction, run)).or_default();
                    group.0.extend(range);
                    group.1.extend((position..).take(targets.len()));
                }
                pace.rest(8 + targets.len() as u64).await?;
            }
            let reads = branch.each(&groups, |(of, (_, rows)), mut line| async move {
                Ok::<_, EngineError>((self.rows(*of, rows, names, &mut line).await?, line))
            });
            let batches = reads.await?;
            let positions = groups.into_values().map(|(positions, _)| positions);
            Ok(positions.zip(batches).collect())
        })
    }

    /// Whether a vertex exists, or did before it was deleted.
    pub fn has_vertex(&self, vertex: VertexId) -> bool {
        vertex.ordinal() < self.ordinal_count(vertex.label())
    }
}
