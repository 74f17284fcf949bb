//! Vertices as tables.

use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use hoplake_engine::{EngineError, Frontier, traversal::Reached};
use hoplake_format::{Schema, VertexLabel};

use super::{with_column, with_label};
use crate::{Error, Query, Rows};

impl Query {
    /// Vertices as tables, one for each label: these properties or, if none are named, all that each label has. The wave is that of
    /// [`Self::properties`].
    ///
    /// # Errors
    /// As [`Self::properties`].
    pub async fn vertex_tables(
        &mut self,
        vertices: &Frontier,
        select: Option<&[String]>,
    ) -> Result<Vec<RecordBatch>, Error> {
        let schema = self.snapshot.schema();
        let labels: Vec<_> = vertices.by_label().filter_map(|(label, _)| schema.label(label)).collect();
        let names = select.map_or_else(|| all_properties(&labels), <[String]>::to_vec);
        let rows = self.properties(vertices, &names).await?;
        let schema = self.snapshot.schema();
        let table = |rows: &Rows| match select {
            Some(_) => with_label(rows),
            None => with_label(&own_properties(schema, rows)?),
        };
        rows.iter().map(table).collect()
    }

    /// The vertices within some hops as tables, nearest first, `limit` at most, with their distance in the column `distance`. One wave.
    ///
    /// # Errors
    /// As [`Self::properties`].
    pub async fn distance_tables(
        &mut self,
        reached: &Reached,
        select: &[String],
        limit: Option<usize>,
    ) -> Result<Vec<RecordBatch>, Error> {
        let mut left = limit.unwrap_or(usize::MAX);
        let cut = |depth: &Frontier| {
            let wanted: Frontier = depth.vertices().take(left).collect();
            left -= wanted.len();
            wanted
        };
        let wanted: Vec<_> = reached.depths.iter().skip(1).map(cut).collect();
        let mut tables = Vec::new();
        for (distance, rows) in (1u64..).zip(self.properties_of_each(&wanted, select).await?.iter()) {
            for labelled in rows {
                tables.push(with_distance(&with_label(labelled)?, distance)?);
            }
        }
        Ok(tables)
    }
}

/// A table with the column `distance` before all others.
///
/// # Errors
/// [`Internal`](crate::ErrorKind::Internal) if Arrow rejects the columns.
pub fn with_distance(batch: &RecordBatch, distance: u64) -> Result<RecordBatch, Error> {
    let distances: ArrayRef = std::sync::Arc::new(UInt64Array::from(vec![distance; batch.num_rows()]));
    with_column(batch, 0, "distance", "khop", distances)
}

/// The properties of these labels, each once, in the order of the labels.
pub fn all_properties(labels: &[&VertexLabel]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for property in labels.iter().flat_map(|label| &label.properties) {
        if !names.contains(&property.name) {
            names.push(property.name.clone());
        }
    }
    names
}

/// Drops the columns that only other labels have.
fn own_properties(schema: &Schema, rows: &Rows) -> Result<Rows, Error> {
    let label = schema.vertex_labels.iter().find(|label| label.name == rows.label);
    let own = |name: &str| label.is_some_and(|label| label.properties.iter().any(|property| property.name == name));
    let fields = rows.batch.schema();
    let columns = fields.fields().iter().enumerate();
    // The key is first.
    let kept = columns.filter(|(column, field)| *column == 0 || own(field.name())).map(|(column, _)| column);
    let batch = rows.batch.project(&kept.collect::<Vec<_>>()).map_err(EngineError::from)?;
    Ok(Rows { batch, label: rows.label.clone() })
}
