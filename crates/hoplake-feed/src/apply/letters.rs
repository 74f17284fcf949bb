//! Dead letters: changes that could not be applied, in the bucket of the graph.
//!
//! A change is set aside with its position, the reason and the row as it was logged. Later changes of the same name (the vertex or edge
//! that the row is) are set aside after it, so that they can be applied in their order once the reason is gone. Each commit that sets
//! something aside writes one object, `dead-letters/<source>/<id>.parquet`, before it is published; the state that its position names
//! lists the objects and the names. So an object of a commit that failed is of no use to anyone, and no letter is there twice.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray, cast::AsArray, types::Int64Type};
use hoplake::{
    Name, PropertyType, Store, Value,
    changes::{value_from_json, value_to_json},
};
use parquet::arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder};
use serde_json::{Map, Value as Json, json};

use crate::{Cell, Columns, FeedError, Images, Row, RowChange, TableName, apply::objects::Folder};

/// A change that was set aside.
#[derive(Debug, Clone, PartialEq)]
pub struct Letter {
    /// The position of its transaction.
    pub position: String,
    /// When that was committed, in milliseconds since 1970.
    pub committed_unix_ms: i64,
    /// The table.
    pub table: TableName,
    /// The label of what the row becomes.
    pub label: Name,
    /// The names of what the row was and is.
    pub names: Vec<String>,
    /// Why it was set aside; nothing of one that comes after another of its name.
    pub why: Option<String>,
    /// How often it was tried.
    pub attempts: i64,
    /// The change.
    pub change: RowChange,
}

/// The folder of all sources' letters.
pub(crate) const FOLDER: &str = "dead-letters";

/// Where those of a source are.
fn folder(source: &str) -> Folder<'_> {
    Folder { kind: FOLDER, source, ending: ".parquet" }
}

/// The name of an object with letters.
pub(crate) fn object_name(source: &str, id: &str) -> String {
    folder(source).name(id)
}

/// Writes letters, and returns the name of their object.
///
/// # Errors
/// The store's.
pub async fn write(store: &Store, source: &str, letters: &[Letter]) -> Result<String, FeedError> {
    let texts =
        |of: &dyn Fn(&Letter) -> Option<String>| Arc::new(letters.iter().map(of).collect::<StringArray>()) as ArrayRef;
    let numbers = |of: &dyn Fn(&Letter) -> i64| {
        Arc::new(letters.iter().map(|it| Some(of(it))).collect::<Int64Array>()) as ArrayRef
    };
    let columns = [
        ("position", texts(&|it| Some(it.position.clone()))),
        ("committed_unix_ms", numbers(&|it| it.committed_unix_ms)),
        ("schema", texts(&|it| Some(it.table.schema.to_string()))),
        ("table", texts(&|it| Some(it.table.name.to_string()))),
        ("label", texts(&|it| Some(it.label.to_string()))),
        ("names", texts(&|it| Some(json!(it.names).to_string()))),
        ("reason", texts(&|it| it.why.clone())),
        ("attempts", numbers(&|it| it.attempts)),
        ("change", texts(&|it| Some(change_to_json(&it.change).to_string()))),
    ];
    let failed =
        |error: &dyn std::fmt::Display| FeedError::unavailable(format!("could not write dead letters: {error}"));
    let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)));
    let batch = batch.map_err(|error| failed(&error))?;
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).map_err(|error| failed(&error))?;
    writer.write(&batch).map_err(|error| failed(&error))?;
    writer.close().map_err(|error| failed(&error))?;
    folder(source).write(store, bytes.into()).await
}

/// Reads the letters of an object, in their order.
///
/// # Errors
/// [`Invalid`](crate::FeedErrorKind::Invalid) if it is gone or damaged; the store's.
pub async fn read(store: &Store, source: &str, id: &str) -> Result<Vec<Letter>, FeedError> {
    let folder = folder(source);
    let damaged = |why: &dyn std::fmt::Display| folder.damaged(id, why);
    let bytes = folder.read(store, id).await?.ok_or_else(|| damaged(&"is not there"))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).and_then(ParquetRecordBatchReaderBuilder::build);
    let mut letters = Vec::new();
    for batch in reader.map_err(|error| damaged(&error))? {
        let batch = batch.map_err(|error| damaged(&error))?;
        for row in 0..batch.num_rows() {
            letters.push(letter(&batch, row).ok_or_else(|| damaged(&"is damaged"))?);
        }
    }
    Ok(letters)
}

/// Removes objects that no position names any more.
pub async fn remove(store: &Store, source: &str, ids: &[String]) {
    folder(source).remove(store, ids).await;
}

fn letter(batch: &RecordBatch, row: usize) -> Option<Letter> {
    let text = |name: &str| {
        let column = batch.column_by_name(name)?.as_string_opt::<i32>()?;
        column.is_valid(row).then(|| column.value(row).to_owned())
    };
    let number = |name: &str| Some(batch.column_by_name(name)?.as_primitive_opt::<Int64Type>()?.value(row));
    let table = TableName::new(text("schema")?, text("table")?);
    Some(Letter {
        position: text("position")?,
        committed_unix_ms: number("committed_unix_ms")?,
        label: text("label")?.into(),
        names: serde_json::from_str(&text("names")?).ok()?,
        why: text("reason"),
        attempts: number("attempts")?,
        change: change_from_json(&table, &serde_json::from_str(&text("change")?).ok()?)?,
        table,
    })
}

/// A change as JSON: `{"op": "update", "types": {…}, "before": {…}, "after": {…}}`. A cell that the log does not have is left out.
pub fn change_to_json(change: &RowChange) -> Json {
    let columns = &change.columns;
    let cell = |cell: &Cell| match cell {
        Cell::Absent => None,
        Cell::Value(value) => Some(value_to_json(value)),
        Cell::Digits(digits) => Some(json!({"digits": **digits})),
        Cell::Bad(why) => Some(json!({"bad": **why})),
    };
    let object = |row: &Row| -> Json {
        let cells = columns.names.iter().zip(row.iter());
        cells.filter_map(|(name, it)| Some((name.to_string(), cell(it)?))).collect::<Map<_, _>>().into()
    };
    let types: Map<_, _> = columns
        .names
        .iter()
        .zip(&columns.kinds)
        .map(|(name, kind)| (name.to_string(), kind.map_or(Json::Null, |kind| json!(kind.to_string()))))
        .collect();
    // The order of columns is that of the table; an object of JSON need not keep it.
    let order: Vec<_> = columns.names.iter().map(ToString::to_string).collect();
    let mut json = match &change.images {
        Images::Insert(row) => json!({"op": "insert", "columns": order, "types": types, "after": object(row)}),
        Images::Delete(row) => json!({"op": "delete", "columns": order, "types": types, "before": object(row)}),
        Images::Update { before, after } => {
            let before = before.as_ref().map(&object);
            json!({"op": "update", "columns": order, "types": types, "before": before, "after": object(after)})
        }
    };
    if !change.checks_keys {
        json["checks_keys"] = json!(false);
    }
    json
}

fn change_from_json(table: &TableName, json: &Json) -> Option<RowChange> {
    let names: Vec<Name> =
        json["columns"].as_array()?.iter().map(|name| Some(name.as_str()?.into())).collect::<Option<_>>()?;
    let kind = |name: &Name| json["types"][name.as_str()].as_str().and_then(PropertyType::from_name);
    let kinds = names.iter().map(kind).collect();
    let row =
        |json: &Json| -> Option<Row> { names.iter().map(|name| cell_from_json(json.get(name.as_str()))).collect() };
    let images = match json["op"].as_str()? {
        "insert" => Images::Insert(row(&json["after"])?),
        "delete" => Images::Delete(row(&json["before"])?),
        "update" => {
            let before = if json["before"].is_null() { None } else { Some(row(&json["before"])?) };
            Images::Update { before, after: row(&json["after"])? }
        }
        _ => return None,
    };
    let checks_keys = json["checks_keys"].as_bool().unwrap_or(true);
    Some(RowChange { columns: Arc::new(Columns { table: table.clone(), names, kinds }), images, checks_keys })
}

fn cell_from_json(json: Option<&Json>) -> Option<Cell> {
    let Some(json) = json else { return Some(Cell::Absent) };
    if json.is_null() {
        return Some(Cell::Value(Value::Null));
    }
    let text = |name: &str| json.get(name).and_then(Json::as_str);
    if let Some(digits) = text("digits") {
        return Some(Cell::Digits(digits.into()));
    }
    if let Some(why) = text("bad") {
        return Some(Cell::Bad(why.into()));
    }
    value_from_json(&json.to_string()).ok().map(Cell::Value)
}

#[cfg(test)]
mod tests {
    use hoplake::{PropertyType, ScalarType};

    use super::*;

    #[test]
    fn changes_are_read_as_they_are_written() {
        let kinds =
            vec![Some(PropertyType::Scalar(ScalarType::Int64)), Some(PropertyType::List(ScalarType::String)), None];
        let names = ["z", "a", "b"].map(Name::from).to_vec();
        let table = TableName::new("s", "t");
        let columns = Arc::new(Columns { table: table.clone(), names, kinds });
        let row = |cells: [Cell; 3]| -> Row { cells.into() };
        let one =
            row([Cell::Value(Value::Int64(7)), Cell::Value(Value::List(vec!["x".into(), Value::Null])), Cell::Absent]);
        let other =
            row([Cell::Digits("99999999999999999999".into()), Cell::Value(Value::Null), Cell::Bad("no".into())]);
        for images in [
            Images::Insert(one.clone()),
            Images::Delete(other.clone()),
            Images::Update { before: None, after: other.clone() },
            Images::Update { before: Some(other), after: one },
        ] {
            for checks_keys in [true, false] {
                let change = RowChange { columns: columns.clone(), images: images.clone(), checks_keys };
                assert_eq!(change_from_json(&table, &change_to_json(&change)), Some(change));
            }
        }
    }
}
