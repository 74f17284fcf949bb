//! The values of a column as text.

use arrow_array::{
    Array, BooleanArray, Date32Array, Float64Array, Int64Array, ListArray, StringArray, TimestampMicrosecondArray,
    cast::AsArray,
    types::{Date32Type, Float64Type, Int64Type, TimestampMicrosecondType},
};
use arrow_schema::DataType;
use hoplake_engine::{
    change::{date_text, timestamp_text},
    float,
};

/// A column whose type is known.
pub(crate) enum Cells<'a> {
    Bool(&'a BooleanArray),
    Int64(&'a Int64Array),
    Float64(&'a Float64Array),
    Text(&'a StringArray),
    Date(&'a Date32Array),
    Timestamp(&'a TimestampMicrosecondArray),
    List(&'a ListArray, Box<Cells<'a>>),
}

impl<'a> Cells<'a> {
    /// The cells of a column.
    ///
    /// # Errors
    /// That no property has its type.
    pub(crate) fn new(column: &'a dyn Array) -> Result<Self, String> {
        Ok(match column.data_type() {
            DataType::Boolean => Self::Bool(column.as_boolean()),
            DataType::Int64 => Self::Int64(column.as_primitive::<Int64Type>()),
            DataType::Float64 => Self::Float64(column.as_primitive::<Float64Type>()),
            DataType::Utf8 => Self::Text(column.as_string::<i32>()),
            DataType::Date32 => Self::Date(column.as_primitive::<Date32Type>()),
            DataType::Timestamp(..) => Self::Timestamp(column.as_primitive::<TimestampMicrosecondType>()),
            DataType::List(_) => {
                let lists = column.as_list::<i32>();
                Self::List(lists, Box::new(Self::new(lists.values().as_ref())?))
            }
            other => return Err(format!("no property is of the type {other}")),
        })
    }

    fn array(&self) -> &dyn Array {
        match self {
            Self::Bool(array) => array,
            Self::Int64(array) => array,
            Self::Float64(array) => array,
            Self::Text(array) => array,
            Self::Date(array) => array,
            Self::Timestamp(array) => array,
            Self::List(array, _) => array,
        }
    }

    /// Whether a row has no value.
    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.array().is_null(row)
    }

    /// Whether the values are text or lists, which may have any character.
    pub(crate) fn is_free_text(&self) -> bool {
        matches!(self, Self::Text(_) | Self::List(..))
    }

    /// Appends a value as plain text; a list as an array of JSON. `infinity` is what the greatest float is called.
    pub(crate) fn append(&self, row: usize, infinity: &str, out: &mut String) {
        match self {
            Self::Bool(array) => out.push_str(if array.value(row) { "true" } else { "false" }),
            Self::Int64(array) => out.push_str(&array.value(row).to_string()),
            Self::Float64(array) => append_float(array.value(row), infinity, out),
            Self::Text(array) => out.push_str(array.value(row)),
            Self::Date(array) => out.push_str(&date_text(array.value(row))),
            Self::Timestamp(array) => out.push_str(&timestamp_text(array.value(row))),
            Self::List(array, items) => {
                let offsets = array.value_offsets();
                out.push('[');
                for item in offsets[row]..offsets[row + 1] {
                    if item > offsets[row] {
                        out.push(',');
                    }
                    items.append_json(item as usize, infinity, out);
                }
                out.push(']');
            }
        }
    }

    fn append_json(&self, row: usize, infinity: &str, out: &mut String) {
        let is_bare = match self {
            Self::Bool(_) | Self::Int64(_) | Self::List(..) => true,
            // JSON has no such numbers.
            Self::Float64(array) => array.value(row).is_finite(),
            Self::Text(_) | Self::Date(_) | Self::Timestamp(_) => false,
        };
        if self.is_null(row) {
            return out.push_str("null");
        }
        if is_bare {
            return self.append(row, infinity, out);
        }
        let mut text = String::new();
        self.append(row, infinity, &mut text);
        out.push_str(&serde_json::Value::String(text).to_string());
    }

    /// Appends a list as its items with a separator between them.
    ///
    /// # Errors
    /// Why the list cannot be written so that the same list is read.
    pub(crate) fn append_items(
        &self,
        row: usize,
        infinity: &str,
        form: ItemForm,
        out: &mut String,
    ) -> Result<(), &'static str> {
        let Self::List(array, items) = self else { return Ok(()) };
        let from = array.value_offsets()[row];
        let to = array.value_offsets()[row + 1];
        let before = out.len();
        for item in from..to {
            if items.is_null(item as usize) {
                return Err("a list has an item without a value, which this format cannot have");
            }
            let begin = out.len();
            items.append(item as usize, infinity, out);
            form.finish_item(begin, item + 1 == to, out)?;
        }
        match out.len() == before && to > from {
            true => {
                Err("a list has nothing but an empty text, which this format cannot tell from a list without items")
            }
            false => Ok(()),
        }
    }
}

/// How the items of a list are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ItemForm {
    pub(crate) separator: char,
    /// Whether an item may have the separator, with a backslash before it.
    pub(crate) is_escaped: bool,
}

impl ItemForm {
    /// Ends an item that begins at a byte of the text.
    fn finish_item(self, begin: usize, is_last: bool, out: &mut String) -> Result<(), &'static str> {
        if out[begin..].contains(self.separator) {
            if !self.is_escaped {
                return Err("an item of a list has the character U+001F, which is between items in this format");
            }
            let escaped = out[begin..].replace(self.separator, &format!("\\{}", self.separator));
            out.truncate(begin);
            out.push_str(&escaped);
        }
        if is_last {
            return Ok(());
        }
        if self.is_escaped && out[begin..].ends_with('\\') {
            return Err(
                "an item of a list ends with a backslash, which would make the separator after it a part of it",
            );
        }
        out.push(self.separator);
        Ok(())
    }
}

fn append_float(number: f64, infinity: &str, out: &mut String) {
    match number {
        f64::INFINITY => out.push_str(infinity),
        f64::NEG_INFINITY => {
            out.push('-');
            out.push_str(infinity);
        }
        number => out.push_str(&float::text(number)),
    }
}
