//! Values of a computation as tables, and as a property of the graph.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, UInt64Array};
use arrow_schema::DataType;
use arrow_select::filter::filter;
use hoplake_engine::{
    EngineError, Frontier,
    change::{Batch, Committed, Operation, Value, VertexRef},
};
use hoplake_format::{Key, KeyType, Schema, VertexId};

use super::{empty_of, with_column, with_label};
use crate::{
    Error, Graph, Query,
    changes::{plain_text, property_column},
    compute::{Algorithm, ComputeOptions, Computed, Figure},
};

/// Rows that are read and written at a time.
const CHUNK_ROWS: usize = 1 << 16;

/// Values of a computation that became a property.
#[derive(Debug, Clone)]
pub struct Written {
    /// The version that has it.
    pub committed: Committed,
    /// How many vertices have a value.
    pub vertices: u64,
}

impl Computed {
    /// The figures of a computation as a table of one row.
    ///
    /// # Errors
    /// [`Internal`](crate::ErrorKind::Internal) if Arrow rejects the columns.
    pub fn figure_table(&self) -> Result<RecordBatch, Error> {
        let columns = self.figures.iter().map(|(name, figure)| {
            let column: ArrayRef = match figure {
                Figure::Count(count) => Arc::new(UInt64Array::from(vec![*count])),
                Figure::Number(number) => Arc::new(Float64Array::from(vec![*number])),
            };
            (*name, column)
        });
        Ok(RecordBatch::try_from_iter(columns).map_err(EngineError::from)?)
    }
}

impl Computed {
    /// The columns of the tables of its values, without rows.
    ///
    /// # Errors
    /// [`Internal`](crate::ErrorKind::Internal) if Arrow rejects the columns.
    pub fn empty_table(&self, schema: &Schema, select: &[String]) -> Result<RecordBatch, Error> {
        self.with_values(&empty_of(schema, &self.labels(), Some(select)), &[])
    }

    /// A table of vertices with their values, behind label and key.
    fn with_values(&self, table: &RecordBatch, vertices: &[VertexId]) -> Result<RecordBatch, Error> {
        let mut table = with_column(table, 2, self.name(), "run", self.column(vertices))?;
        for (at, (name, values)) in (3..).zip(self.other_columns(vertices)) {
            table = with_column(&table, at, name, "run", values)?;
        }
        Ok(table)
    }
}

impl Query {
    /// The values of some vertices as tables, by label and as they are stored: `label`, `key`, the value under the
    /// [name](Computed::name) of the computation, and the properties that are named. One wave for many thousand vertices.
    ///
    /// # Errors
    /// As [`Self::properties`].
    pub async fn value_tables(
        &mut self,
        computed: &Computed,
        vertices: &[VertexId],
        select: &[String],
    ) -> Result<Vec<RecordBatch>, Error> {
        let mut tables = Vec::new();
        for chunk in vertices.chunks(CHUNK_ROWS) {
            tables.extend(self.chunk_tables(computed, chunk, select).await?.into_iter().map(|(_, table)| table));
        }
        Ok(tables)
    }

    /// The keys of some vertices with columns of theirs, which have a row for each: tables as of [`Self::value_tables`]. Vertices ascend.
    ///
    /// # Errors
    /// As [`Self::properties`].
    pub async fn column_tables(
        &mut self,
        vertices: &[VertexId],
        columns: &[(String, ArrayRef)],
    ) -> Result<Vec<RecordBatch>, Error> {
        let mut tables = Vec::new();
        let mut done = 0;
        for chunk in vertices.chunks(CHUNK_ROWS) {
            let frontier: Frontier = chunk.iter().copied().collect();
            for labelled in self.properties(&frontier, &[]).await?.iter() {
                let mut table = with_label(labelled)?;
                for (at, (name, values)) in (2..).zip(columns) {
                    let rows = table.num_rows().min(values.len() - done);
                    table = with_column(&table, at, name, "run", values.slice(done, rows))?;
                }
                done += table.num_rows();
                tables.push(table);
            }
        }
        Ok(tables)
    }

    /// As [`Self::value_tables`] of those with the [first values](Self::top), `most` of them, in the order of values.
    ///
    /// # Errors
    /// As [`Self::properties`].
    pub async fn top_tables(
        &mut self,
        computed: &Arc<Computed>,
        most: usize,
        select: &[String],
    ) -> Result<Vec<RecordBatch>, Error> {
        let top = self.top(computed, most).await?;
        let mut read = Vec::new();
        for chunk in top.chunks(CHUNK_ROWS) {
            read.extend(self.chunk_tables(computed, chunk, select).await?);
        }
        // Properties are read label by label, in the order of ordinals; rows are returned in the order of values.
        let places = read.iter().flat_map(|(vertices, batch)| vertices.iter().zip((0..).map(move |row| (batch, row))));
        let places: HashMap<_, _> = places.collect();
        Ok(top.iter().filter_map(|vertex| places.get(vertex).map(|(batch, row)| batch.slice(*row, 1))).collect())
    }

    /// A table for each label of some vertices, and which vertices it has.
    async fn chunk_tables(
        &mut self,
        computed: &Computed,
        vertices: &[VertexId],
        select: &[String],
    ) -> Result<Vec<(Vec<VertexId>, RecordBatch)>, Error> {
        let frontier: Frontier = vertices.iter().copied().collect();
        let mut of_labels = frontier.by_label();
        let mut tables = Vec::new();
        for labelled in self.properties(&frontier, select).await?.iter() {
            let Some((label, ordinals)) = of_labels.next() else { break };
            let vertices: Vec<_> = ordinals.iter().filter_map(|ordinal| VertexId::new(label, ordinal)).collect();
            let table = computed.with_values(&with_label(labelled)?, &vertices)?;
            tables.push((vertices, table));
        }
        Ok(tables)
    }

    /// Writes all values of a computation on this query's version as a property, in one commit on that version: it replaces what the
    /// property was.
    ///
    /// # Errors
    /// As [`Graph::apply`] and [`Self::properties`].
    pub async fn write_values(&mut self, graph: &Graph, computed: &Computed, property: &str) -> Result<Written, Error> {
        let vertices: Vec<VertexId> = computed.vertices().collect();
        let mut commit = graph.begin();
        let mut written = 0;
        for chunk in vertices.chunks(CHUNK_ROWS) {
            for (of_label, batch) in self.chunk_tables(computed, chunk, &[]).await? {
                let Some(vertex) = of_label.first() else { continue };
                let label = self.label_of(*vertex);
                let [keys, values] = [batch.column(1), batch.column(2)];
                let there: BooleanArray = (0..values.len()).map(|row| Some(values.is_valid(row))).collect();
                let there_of = |column| filter(column, &there).map_err(EngineError::from);
                let columns = [("key", there_of(keys)?), (&*property_column(property), there_of(values)?)];
                commit.upsert_vertices(&label, &RecordBatch::try_from_iter(columns).map_err(EngineError::from)?)?;
                written += there.true_count() as u64;
                // In columns a null changes nothing, but what an earlier run wrote has to go.
                let schema = graph.schema().vertex_labels.iter().find(|known| known.name == label);
                if schema.is_some_and(|label| label.properties.iter().any(|known| known.name == property)) {
                    for row in (0..batch.num_rows()).filter(|row| values.is_null(*row)) {
                        let key = match Value::at(keys, row) {
                            Value::Int64(key) => Key::from(key),
                            key => Key::from(plain_text(&key).unwrap_or_default()),
                        };
                        commit.upsert_vertex(&label, key, [(property, Value::Null)]);
                    }
                }
            }
        }
        let message = write_message(property, computed.name(), written, vertices.len() as u64);
        let committed = commit.message(message).commit().await?;
        Ok(Written { committed, vertices: written })
    }

    /// Rejects a property that [`Self::write_values`] could not write, before the computation: by what a commit of a value for each
    /// label would say.
    ///
    /// # Errors
    /// As [`Graph::check`].
    pub async fn check_write_values(
        &self,
        graph: &Graph,
        algorithm: &Algorithm,
        options: &ComputeOptions,
        property: &str,
    ) -> Result<(), Error> {
        let all = u64::MAX;
        let mut batch = Batch { message: write_message(property, algorithm.name(), all, all), ..Batch::default() };
        for label in self.computed_labels(algorithm, options)? {
            let Some(label) = graph.schema().label(label) else { continue };
            let key = match label.key_type {
                KeyType::Int64 => Key::from(0i64),
                KeyType::String => Key::from("key"),
            };
            // A value that no integer is equal to, if it is a float.
            let value = if algorithm.value_type() == DataType::Int64 { Value::Int64(1) } else { Value::Float64(0.5) };
            batch.operations.push(Operation::UpsertVertex {
                vertex: VertexRef::new(&label.name, key),
                properties: [(property, value)].into_iter().collect(),
                replace: false,
            });
        }
        graph.check(batch).await.map(drop)
    }
}

/// The message of a version that has a property of so many of all vertices.
fn write_message(property: &str, name: &str, written: u64, all: u64) -> String {
    format!("{property}: {name} of {written} of {all} vertices")
}
