//! Answers as one Arrow stream, in the schema of its first part.
//!
//! Ids are text as in JSON. So are keys: one stream has one schema, and labels may have keys of different types.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, RecordBatch, StringArray, UInt32Array,
    builder::{ListBuilder, StringBuilder},
};
use arrow_cast::cast;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use hoplake::{KEY_COLUMN, Key, VertexId};
use serde_json::json;

use super::{chunk_buffer::unwritable, rows::properties_of};
use crate::{
    calls::{EdgeColumns, LabelRows, NamedPath, ResultBatch, ValueRows},
    failure::{Failure, Reason},
};

/// Writes parts to a stream.
#[derive(Default)]
pub(super) struct ArrowRows(Option<(SchemaRef, StreamWriter<Vec<u8>>)>);

impl ArrowRows {
    /// Appends a part to what is to be sent.
    pub(super) fn write(&mut self, part: ResultBatch<'_>, to: &mut Vec<u8>) -> Result<(), Failure> {
        let batch = batch(part)?;
        to.append(self.write_batch(&batch)?.get_mut());
        Ok(())
    }

    /// Appends the end, by which a reader knows that it has all.
    pub(super) fn finish(&mut self, to: &mut Vec<u8>) -> Result<(), Failure> {
        if self.0.is_none() {
            // Nothing was found: the columns that any answer of rows has.
            // A stream without a schema could not be read.
            let none = rows(&LabelRows { label: String::new(), depth: 0, ids: Vec::new(), batch: no_columns() });
            self.write_batch(&none.map_err(unwritable)?)?;
        }
        if let Some((_, mut writer)) = self.0.take() {
            writer.finish().map_err(unwritable)?;
            to.append(writer.get_mut());
        }
        Ok(())
    }

    fn write_batch(&mut self, batch: &RecordBatch) -> Result<&mut StreamWriter<Vec<u8>>, Failure> {
        let (schema, writer) = match &mut self.0 {
            Some(begun) => begun,
            none => {
                let schema = batch.schema();
                let writer = StreamWriter::try_new(Vec::new(), &schema).map_err(unwritable)?;
                none.insert((schema, writer))
            }
        };
        // The writer does not check: a reader would take the bytes of one type for those of another.
        if schema.fields() != batch.schema().fields() {
            let message = "a property has different types for different labels, which one Arrow stream cannot have; ask \
                           for them apart, or for JSON";
            return Err(Failure::invalid(message));
        }
        writer.write(batch).map_err(unwritable)?;
        Ok(writer)
    }
}

fn no_columns() -> RecordBatch {
    RecordBatch::new_empty(Arc::new(Schema::empty()))
}

fn text<'a>(values: impl IntoIterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

fn ids<'a>(vertices: impl IntoIterator<Item = &'a VertexId>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(vertices.into_iter().map(VertexId::to_string)))
}

fn batch(part: ResultBatch<'_>) -> Result<RecordBatch, Failure> {
    let batch = match part {
        ResultBatch::Edges { graph, edges, keys, columns } => edges_with(&graph.edge_batch(edges)?, keys, columns),
        ResultBatch::Rows(all) => rows(all),
        ResultBatch::Scanned(all) => found(all),
        ResultBatch::Values(all) => values(all),
        ResultBatch::Paths(all) => return paths(all),
        ResultBatch::Results(_) => return Err(Failure::new(Reason::Internal, "results of Gremlin are not rows")),
        ResultBatch::Vertices { depth, vertices } => {
            let depths: ArrayRef = Arc::new(UInt32Array::from_value(depth, vertices.len()));
            RecordBatch::try_from_iter([("depth", depths), ("id", ids(vertices))])
        }
    };
    batch.map_err(unwritable)
}

/// Edges, with the keys of the vertices reached and properties of the edges if requested.
fn edges_with(edges: &RecordBatch, keys: Option<&[Key]>, columns: &EdgeColumns) -> Result<RecordBatch, ArrowError> {
    let schema = edges.schema();
    // Whether a part has nulls must not show in the schema: every edge has what is its own, and every vertex a key.
    let own = schema
        .fields()
        .iter()
        .zip(edges.columns())
        .map(|(field, values)| (field.name().as_str(), values.clone(), false));
    let keys = keys.map(|keys| {
        let keys: ArrayRef = Arc::new(StringArray::from_iter_values(keys.iter().map(ToString::to_string)));
        ("to_key", keys, false)
    });
    // A property may be called as a column of the edge, which a record batch with names that occur twice would hide.
    let names: Vec<_> = columns.iter().map(|(name, _)| property_name(name)).collect();
    let properties = names.iter().zip(columns).map(|(name, (_, values))| (name.as_str(), values.clone(), true));
    RecordBatch::try_from_iter_with_nullable(own.chain(keys).chain(properties))
}

/// The name of a property's column: with a dot before it if the edge itself has a column of that name.
fn property_name(name: &str) -> String {
    let taken = ["id", "from", "label", "direction", "to", "to_label", "to_key"].contains(&name);
    if taken || name.starts_with('.') { format!(".{name}") } else { name.to_owned() }
}

fn rows(all: &LabelRows) -> Result<RecordBatch, ArrowError> {
    let depths: ArrayRef = Arc::new(UInt32Array::from_value(all.depth, all.len()));
    rows_with(all, ("depth", depths, false))
}

/// Rows that a scan found, which have no ids.
fn found(all: &LabelRows) -> Result<RecordBatch, ArrowError> {
    let (keys, properties) = keys_and_properties(all)?;
    let labels = text(std::iter::repeat_n(all.label.as_str(), all.len()));
    let own =
        [("label", labels, false), ("key", keys, false)].map(|(name, values, null)| (name.to_owned(), values, null));
    RecordBatch::try_from_iter_with_nullable(own.into_iter().chain(properties))
}

/// Rows with the values that a job computed.
fn values(all: &ValueRows) -> Result<RecordBatch, ArrowError> {
    rows_with(&all.rows, ("value", all.values.clone(), true))
}

/// Rows with a column between the key and the properties: its name, its values, and whether it can have nulls.
fn rows_with(all: &LabelRows, own: (&str, ArrayRef, bool)) -> Result<RecordBatch, ArrowError> {
    let (keys, properties) = keys_and_properties(all)?;
    let labels = text(std::iter::repeat_n(all.label.as_str(), all.len()));
    let named = [("id", ids(&all.ids), false), ("label", labels, false), ("key", keys, false), own];
    let named = named.map(|(name, values, null)| (name.to_owned(), values, null));
    RecordBatch::try_from_iter_with_nullable(named.into_iter().chain(properties))
}

/// A column that may have nulls or not, as Arrow takes them.
type NullableColumn = (String, ArrayRef, bool);

/// The keys as text, and the other columns.
fn keys_and_properties(all: &LabelRows) -> Result<(ArrayRef, Vec<NullableColumn>), ArrowError> {
    let mut keys = text([]);
    let mut properties = Vec::new();
    let schema = all.batch.schema();
    for (field, column) in schema.fields().iter().zip(all.batch.columns()) {
        if field.name() == KEY_COLUMN {
            // Number or text by label, and one stream has one schema.
            keys = cast(column, &DataType::Utf8)?;
        } else {
            // Always nullable: whether a part has nulls must not show in the schema.
            properties.push((field.name().clone(), column.clone(), true));
        }
    }
    Ok((keys, properties))
}

/// Lists of text, empty where nothing was requested; properties are objects of JSON, since one column cannot have those of all labels.
fn paths(all: &[NamedPath]) -> Result<RecordBatch, Failure> {
    let list = |of: &dyn Fn(&NamedPath) -> Vec<String>| -> ArrayRef {
        let mut lists = ListBuilder::new(StringBuilder::new());
        all.iter().for_each(|path| lists.append_value(of(path).into_iter().map(Some)));
        Arc::new(lists.finish())
    };
    let of_vertices = objects(all, |path| path.names.iter().map(|name| name.properties.as_ref()).collect())?;
    let of_edges = objects(all, |path| path.edges.iter().map(|edge| edge.properties.as_ref()).collect())?;
    let columns = [
        ("ids", list(&|path| path.vertices.iter().map(VertexId::to_string).collect())),
        ("labels", list(&|path| path.names.iter().map(|name| name.label.clone()).collect())),
        ("keys", list(&|path| path.names.iter().map(|name| name.key.to_string()).collect())),
        ("properties", of_vertices),
        ("edge_ids", list(&|path| path.edges.iter().map(|edge| edge.id.to_string()).collect())),
        ("edge_labels", list(&|path| path.edges.iter().map(|edge| edge.label.clone()).collect())),
        ("edge_directions", list(&|path| path.edges.iter().map(|edge| edge.direction.to_string()).collect())),
        ("edge_properties", of_edges),
    ];
    RecordBatch::try_from_iter(columns).map_err(unwritable)
}

/// Properties of each path as objects of JSON.
fn objects<'a>(
    all: &'a [NamedPath],
    of: impl Fn(&'a NamedPath) -> Vec<Option<&'a RecordBatch>>,
) -> Result<ArrayRef, Failure> {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for path in all {
        for properties in of(path).into_iter().flatten() {
            lists.values().append_value(json!(properties_of(properties)?).to_string());
        }
        lists.append(true);
    }
    Ok(Arc::new(lists.finish()))
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;
    use arrow_ipc::reader::StreamReader;
    use hoplake::LabelId;

    use super::*;

    fn part(label: &str, keys: ArrayRef, ages: ArrayRef) -> LabelRows {
        let ids = (0..keys.len()).map(|row| VertexId::new(LabelId(1), row as u64).unwrap()).collect();
        let batch = RecordBatch::try_from_iter([(KEY_COLUMN, keys), ("age", ages)]).unwrap();
        LabelRows { label: label.into(), depth: 2, ids, batch }
    }

    #[test]
    fn labels_with_other_keys_share_a_schema_and_other_properties_do_not() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![7, 8]));
        let names: ArrayRef = Arc::new(StringArray::from(vec!["x", "y"]));
        let mut rows = ArrowRows::default();
        let mut bytes = Vec::new();
        rows.write(ResultBatch::Rows(&part("P", numbers.clone(), numbers.clone())), &mut bytes).unwrap();
        rows.write(ResultBatch::Rows(&part("Q", names.clone(), numbers.clone())), &mut bytes).unwrap();
        let wrong = rows.write(ResultBatch::Rows(&part("R", names.clone(), names)), &mut bytes).unwrap_err();
        assert_eq!(wrong.reason, Reason::Invalid);
        rows.finish(&mut bytes).unwrap();
        let read: Vec<_> = StreamReader::try_new(&bytes[..], None).unwrap().map(Result::unwrap).collect();
        assert_eq!(read.iter().map(RecordBatch::num_rows).sum::<usize>(), 4);
        let names: Vec<_> = read[0].schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, ["id", "label", "key", "depth", "age"]);
    }

    #[test]
    fn nothing_is_a_stream_too() {
        let mut bytes = Vec::new();
        ArrowRows::default().finish(&mut bytes).unwrap();
        let read: Vec<_> = StreamReader::try_new(&bytes[..], None).unwrap().map(Result::unwrap).collect();
        assert_eq!(read.iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
    }
}
