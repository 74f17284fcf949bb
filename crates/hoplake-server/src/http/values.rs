//! Columns as values of JSON: whole numbers as numbers; dates and moments (ISO 8601), NaN and infinities as text.

use arrow_array::{Array, ArrayRef, RecordBatch, cast::AsArray, types::Int64Type};
use arrow_schema::DataType;
use hoplake::changes::plain_json;
use serde_json::Value;

use crate::failure::Failure;

/// Names and values of all columns.
pub(super) fn columns(batch: &RecordBatch) -> Result<Vec<(String, Vec<Value>)>, Failure> {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    columns.map(|(field, column)| Ok((field.name().clone(), values(column)?))).collect()
}

/// The values of a column.
pub(super) fn values(array: &ArrayRef) -> Result<Vec<Value>, Failure> {
    let of = |value: &dyn Fn(usize) -> Value| -> Vec<Value> {
        (0..array.len()).map(|row| if array.is_null(row) { Value::Null } else { value(row) }).collect()
    };
    Ok(match array.data_type() {
        DataType::Boolean => of(&|row| array.as_boolean().value(row).into()),
        DataType::Int64 => of(&|row| array.as_primitive::<Int64Type>().value(row).into()),
        DataType::Utf8 => of(&|row| array.as_string::<i32>().value(row).into()),
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            let list =
                |row| if lists.is_null(row) { Ok(Value::Null) } else { values(&lists.value(row)).map(Value::from) };
            (0..lists.len()).map(list).collect::<Result<_, _>>()?
        }
        // JSON has neither NaN nor infinities (RFC 8259, 6), and no dates.
        // In the form of the command line, which changes also read.
        _ => of(&|row| plain_json(&hoplake::Value::at(array, row))),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Date32Array, Float64Array, TimestampMicrosecondArray};
    use serde_json::json;

    use super::*;

    #[test]
    fn days_and_moments_are_text() {
        let days: ArrayRef = Arc::new(Date32Array::from(vec![Some(0), None]));
        assert_eq!(values(&days).unwrap(), [json!("1970-01-01"), Value::Null]);
        let moments: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![1_500_000]).with_timezone("+00:00"));
        assert_eq!(values(&moments).unwrap(), [json!("1970-01-01T00:00:01.5Z")]);
        let numbers: ArrayRef = Arc::new(Float64Array::from(vec![0.5, f64::NAN, f64::NEG_INFINITY]));
        assert_eq!(values(&numbers).unwrap(), [json!(0.5), json!("NaN"), json!("-Infinity")]);
    }
}
