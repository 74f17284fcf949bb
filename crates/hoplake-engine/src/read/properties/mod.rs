//! Properties of vertices and edges, as Arrow columns.

mod expected;
mod rows;

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::{Field, Schema as ArrowSchema};
use futures::future::BoxFuture;
use hoplake_format::{Direction, EdgeTypeId, LabelId, TableOwner, constants::KEY_COLUMN};
use hoplake_storage::Branch;

use crate::{
    Edges, EngineError, Frontier, Snapshot,
    memory::bytes_of,
    read::edges::{EdgeStretch, Stored},
};

pub use expected::Expected;
pub(crate) use rows::{Changed, Rows, RowsOf, nulls};

/// Which of the edges asked for have their rows in a batch, and the batch.
pub type RowsOfEdges = (Vec<usize>, RecordBatch);

/// The properties of a version.
#[derive(Debug, Clone, Copy)]
pub struct Properties<'a> {
    snapshot: &'a Snapshot,
}

impl<'a> Properties<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot) -> Self {
        Self { snapshot }
    }

    /// The keys (column `~key`) and properties called `names` of vertices of one label, in the order
    /// of `ordinals`. A property that the label does not have is a column of nulls if another label has
    /// it. One wave, and one before it if the label's tables were not read before.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if no label has a property of that name; the store's.
    pub fn of_vertices(
        self,
        label: LabelId,
        ordinals: &'a [u64],
        names: &'a [String],
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<RecordBatch, EngineError>> {
        Box::pin(async move {
            let fields = self.fields(names)?;
            let mut columns = vec![KEY_COLUMN.to_owned()];
            columns.extend_from_slice(names);
            let batch = self.snapshot.rows().of_vertices(label, ordinals, &columns, branch).await?;
            let key = batch.column_by_name(KEY_COLUMN).cloned();
            let key_field =
                self.snapshot.schema().label(label).map(|label| Field::new(KEY_COLUMN, label.key_type.arrow(), false));
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

    /// Properties called `names` of vertices of one label, without their keys, in the order of `ordinals`, which may repeat. Columns are those
    /// of `names` that the label has. Waves are those of [`Self::of_vertices`].
    ///
    /// # Errors
    /// The store's.
    pub fn without_keys(
        self,
        label: LabelId,
        ordinals: &'a [u64],
        names: &'a [String],
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<RecordBatch, EngineError>> {
        Box::pin(async move { self.snapshot.rows().of_vertices(label, ordinals, names, branch).await })
    }

    /// The fields of these properties, as the first label that has them declares them.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if no label has a property of that name.
    pub fn fields(self, names: &[String]) -> Result<Vec<Field>, EngineError> {
        let find = |name: &String| {
            let mut all = self.snapshot.schema().vertex_labels.iter().flat_map(|label| &label.properties);
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
    pub fn load_vertex_metadata(
        self,
        labels: &'a [LabelId],
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(async move { self.snapshot.tables().load_metadata_of_labels(labels, branch).await })
    }

    /// As [`Self::load_vertex_metadata`], of edges.
    ///
    /// # Errors
    /// The store's.
    pub fn load_edge_metadata(
        self,
        tables: &'a [(EdgeTypeId, Direction)],
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(async move {
            let loads = branch.each(tables, |(edge_type, direction), mut line| async move {
                self.snapshot
                    .tables()
                    .load_table_metadata(TableOwner::Edges(*edge_type, *direction), &mut line)
                    .await?;
                Ok::<_, EngineError>(((), line))
            });
            loads.await.map(drop)
        })
    }

    /// The properties of a set, one batch for each label, in the order of the set.
    ///
    /// # Errors
    /// As [`Self::of_vertices`].
    pub fn of_frontier(
        self,
        frontier: &'a Frontier,
        names: &'a [String],
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Vec<(LabelId, RecordBatch)>, EngineError>> {
        Box::pin(async move {
            let reads = branch.each(frontier.by_label(), |(label, ordinals), mut line| async move {
                let (ordinals, _memory) = ordinals.to_list(line.context()).await?;
                let batch = self.of_vertices(label, &ordinals, names, &mut line).await?;
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
    pub fn of_edges(
        self,
        edges: &'a Edges,
        names: &'a [String],
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Vec<RowsOfEdges>, EngineError>> {
        self.of_edges_among(edges, None, names, branch)
    }

    /// As [`Self::of_edges`], of the edges at some positions, ascending, each once. Nothing is read of the others.
    ///
    /// # Errors
    /// The store's.
    pub fn of_edges_at(
        self,
        edges: &'a Edges,
        positions: &'a [usize],
        names: &'a [String],
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Vec<RowsOfEdges>, EngineError>> {
        self.of_edges_among(edges, Some(positions), names, branch)
    }

    fn of_edges_among(
        self,
        edges: &'a Edges,
        among: Option<&'a [usize]>,
        names: &'a [String],
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Vec<RowsOfEdges>, EngineError>> {
        Box::pin(async move {
            let context = branch.context().clone();
            // Its position and its row, twice as vectors grow.
            let _memory = context.hold(bytes_of::<[u64; 4]>(among.map_or(edges.len(), <[usize]>::len)))?;
            let mut groups: BTreeMap<RowsOf, (Vec<usize>, Vec<u64>)> = BTreeMap::new();
            let mut pace = context.pace();
            let mut rest = among.unwrap_or_default();
            for EdgeStretch { stored, position, targets, range, .. } in edges.pieces() {
                let Stored { edge_type, direction, run } = stored;
                let (chosen, others) = rest.split_at(rest.partition_point(|at| *at < range.end));
                rest = others;
                if among.is_some() && chosen.is_empty() {
                    pace.rest(8).await?;
                    continue;
                }
                if self.snapshot.schema().edge_type(edge_type).is_some_and(|edge| !edge.properties.is_empty()) {
                    let group = groups.entry(RowsOf::Edges(edge_type, direction, run)).or_default();
                    match among {
                        Some(_) => {
                            group.1.extend(chosen.iter().map(|at| position + (at - range.start) as u64));
                            group.0.extend(chosen);
                        }
                        None => {
                            group.1.extend((position..).take(targets.len()));
                            group.0.extend(range);
                        }
                    }
                }
                pace.rest(8 + targets.len() as u64).await?;
            }
            let reads = branch.each(&groups, |(of, (_, rows)), mut line| async move {
                Ok::<_, EngineError>((self.snapshot.rows().of(*of, rows, names, &mut line).await?, line))
            });
            let batches = reads.await?;
            let positions = groups.into_values().map(|(positions, _)| positions);
            Ok(positions.zip(batches).collect())
        })
    }
}
