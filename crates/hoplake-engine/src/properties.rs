//! Properties of vertices, as Arrow columns.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::{Field, Schema as ArrowSchema};
use futures::future::try_join_all;
use hoplake_format::{Direction, EdgeTypeId, LabelId, TableOwner, VertexId, constants::KEY_COLUMN};
use hoplake_storage::{QueryContext, Wave};

use crate::{EngineError, Frontier, Neighbour, Snapshot, rows::RowsOf, traversal::Hop};

impl Snapshot {
    /// The keys (column `~key`) and properties called `names` of vertices of one label, in the order
    /// of `ordinals`. A property that the label does not have is a column of nulls if another label has
    /// it. One wave, and one before it if the label's tables were not read before.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if no label has a property of that name; the store's.
    pub async fn vertex_properties(
        &self,
        label: LabelId,
        ordinals: &[u64],
        names: &[String],
        after: Wave,
        context: &QueryContext,
    ) -> Result<(RecordBatch, Wave), EngineError> {
        let fields = self.property_fields(names)?;
        let mut columns = vec![KEY_COLUMN.to_owned()];
        columns.extend_from_slice(names);
        let (batch, wave) = self.vertex_rows(label, ordinals, &columns, after, context).await?;
        let key = batch.column_by_name(KEY_COLUMN).cloned();
        let key_field = self.schema().label(label).map(|label| Field::new(KEY_COLUMN, label.key_type.arrow(), false));
        let mut out_fields: Vec<_> = key_field.into_iter().collect();
        let mut out_columns: Vec<ArrayRef> = key.into_iter().collect();
        for field in fields {
            let found = batch.column_by_name(field.name()).cloned();
            let column = found.unwrap_or_else(|| new_null_array(field.data_type(), ordinals.len()));
            out_fields.push(Field::new(field.name(), column.data_type().clone(), true));
            out_columns.push(column);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(ordinals.len()));
        let schema = Arc::new(ArrowSchema::new(out_fields));
        Ok((RecordBatch::try_new_with_options(schema, out_columns, &options)?, wave))
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
    pub async fn touch_properties(
        &self,
        labels: &[LabelId],
        after: Wave,
        context: &QueryContext,
    ) -> Result<Wave, EngineError> {
        let touches = labels.iter().map(|label| self.touch_vertices(*label, after, context));
        let waves = try_join_all(touches).await?;
        Ok(waves.into_iter().max().unwrap_or(after))
    }

    /// The edge types and directions that a hop follows from vertices of these labels and that have properties.
    pub fn edge_tables(&self, near: &[LabelId], hop: &Hop) -> Vec<(EdgeTypeId, Direction)> {
        let mut tables = Vec::new();
        for (label, direction) in near.iter().flat_map(|label| hop.direction.each().iter().map(move |it| (label, *it)))
        {
            let followed = self.edge_types_from(*label, &hop.labels, direction).map(|(id, _)| id);
            let kept = |id: &EdgeTypeId| self.schema().edge_type(*id).is_some_and(|edge| !edge.properties.is_empty());
            tables.extend(followed.filter(kept).map(|id| (id, direction)));
        }
        tables
    }

    /// As [`Self::touch_properties`], of edges.
    ///
    /// # Errors
    /// The store's.
    pub async fn touch_edge_properties(
        &self,
        tables: &[(EdgeTypeId, Direction)],
        after: Wave,
        context: &QueryContext,
    ) -> Result<Wave, EngineError> {
        let owner = |(edge_type, direction): &(EdgeTypeId, Direction)| TableOwner::Edges(*edge_type, *direction);
        let touches = tables.iter().map(|table| self.touch_tables(owner(table), after, context));
        Ok(try_join_all(touches).await?.into_iter().max().unwrap_or(after))
    }

    /// The properties of a set, one batch for each label, in the order of the set.
    ///
    /// # Errors
    /// As [`Self::vertex_properties`].
    pub async fn frontier_properties(
        &self,
        frontier: &Frontier,
        names: &[String],
        after: Wave,
        context: &QueryContext,
    ) -> Result<(Vec<(LabelId, RecordBatch)>, Wave), EngineError> {
        let reads = frontier.by_label().map(|(label, ordinals)| async move {
            let (batch, wave) = self.vertex_properties(label, ordinals, names, after, context).await?;
            Ok::<_, EngineError>(((label, batch), wave))
        });
        let (batches, waves): (Vec<_>, Vec<_>) = try_join_all(reads).await?.into_iter().unzip();
        Ok((batches, waves.into_iter().max().unwrap_or(after)))
    }

    /// Properties called `names` of edges: one batch for each edge type, direction and part, with the positions
    /// of its rows among `edges`. Columns are those of `names` that the edge type has. One wave, and one
    /// before it if the tables were not read before.
    ///
    /// # Errors
    /// The store's.
    pub async fn edge_properties(
        &self,
        edges: &[Neighbour],
        names: &[String],
        after: Wave,
        context: &QueryContext,
    ) -> Result<(Vec<(Vec<usize>, RecordBatch)>, Wave), EngineError> {
        let mut groups: BTreeMap<RowsOf, (Vec<usize>, Vec<u64>)> = BTreeMap::new();
        for (index, edge) in edges.iter().enumerate() {
            let known = self.schema().edge_type(edge.edge_type).is_some_and(|edge| !edge.properties.is_empty());
            if known {
                let group = groups.entry(RowsOf::Edges(edge.edge_type, edge.direction, edge.part)).or_default();
                group.0.push(index);
                group.1.push(edge.position);
            }
        }
        let reads = groups.iter().map(|(of, (_, rows))| self.rows(*of, rows, names, after, context));
        let (batches, waves): (Vec<_>, Vec<_>) = try_join_all(reads).await?.into_iter().unzip();
        let positions = groups.into_values().map(|(positions, _)| positions);
        Ok((positions.zip(batches).collect(), waves.into_iter().max().unwrap_or(after)))
    }

    /// Whether a vertex exists, or did before it was deleted.
    pub fn has_vertex(&self, vertex: VertexId) -> bool {
        vertex.ordinal() < self.ordinal_count(vertex.label())
    }
}
