//! Values row by row become columns.

use std::sync::Arc;

use arrow_array::{
    ArrayRef,
    builder::{
        ArrayBuilder, BooleanBuilder, Date32Builder, Float64Builder, Int64Builder, ListBuilder, StringBuilder,
        TimestampMicrosecondBuilder,
    },
};
use hoplake::{Key, KeyType, PropertyType, ScalarType, Value};

/// A column that grows.
pub(super) enum ColumnBuilder {
    Scalar(ScalarBuilder),
    List(Box<ListBuilder<Box<dyn ArrayBuilder>>>, ScalarType),
}

/// A column of one value in each row.
pub(super) enum ScalarBuilder {
    Bool(BooleanBuilder),
    Int64(Int64Builder),
    Float64(Float64Builder),
    String(StringBuilder),
    Date(Date32Builder),
    Timestamp(TimestampMicrosecondBuilder),
}

impl ColumnBuilder {
    pub(super) fn new(kind: PropertyType) -> Self {
        match kind {
            PropertyType::Scalar(scalar) => Self::Scalar(ScalarBuilder::new(scalar)),
            PropertyType::List(scalar) => {
                let items: Box<dyn ArrayBuilder> = match scalar {
                    ScalarType::Bool => Box::new(BooleanBuilder::new()),
                    ScalarType::Int64 => Box::new(Int64Builder::new()),
                    ScalarType::Float64 => Box::new(Float64Builder::new()),
                    ScalarType::String => Box::new(StringBuilder::new()),
                    ScalarType::Date => Box::new(Date32Builder::new()),
                    ScalarType::Timestamp => Box::new(timestamps()),
                };
                Self::List(Box::new(ListBuilder::new(items)), scalar)
            }
        }
    }

    pub(super) fn of_key(key_type: KeyType) -> Self {
        Self::new(PropertyType::Scalar(match key_type {
            KeyType::Int64 => ScalarType::Int64,
            KeyType::String => ScalarType::String,
        }))
    }

    pub(super) fn push_key(&mut self, key: Option<&Key>) {
        match (self, key) {
            (Self::Scalar(ScalarBuilder::Int64(builder)), Some(Key::Int64(key))) => builder.append_value(*key),
            (Self::Scalar(ScalarBuilder::String(builder)), Some(Key::String(key))) => builder.append_value(key),
            (column, _) => column.push(None),
        }
    }

    /// A value of the column's type, or null.
    pub(super) fn push(&mut self, value: Option<&Value>) {
        match self {
            Self::Scalar(builder) => builder.push(value),
            Self::List(builder, scalar) => {
                let Some(Value::List(items)) = value else { return builder.append(false) };
                items.iter().for_each(|item| push_item(builder.values(), *scalar, item));
                builder.append(true);
            }
        }
    }

    pub(super) fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Scalar(ScalarBuilder::Bool(builder)) => Arc::new(builder.finish()),
            Self::Scalar(ScalarBuilder::Int64(builder)) => Arc::new(builder.finish()),
            Self::Scalar(ScalarBuilder::Float64(builder)) => Arc::new(builder.finish()),
            Self::Scalar(ScalarBuilder::String(builder)) => Arc::new(builder.finish()),
            Self::Scalar(ScalarBuilder::Date(builder)) => Arc::new(builder.finish()),
            Self::Scalar(ScalarBuilder::Timestamp(builder)) => Arc::new(builder.finish()),
            Self::List(builder, _) => Arc::new(builder.finish()),
        }
    }
}

impl ScalarBuilder {
    fn new(scalar: ScalarType) -> Self {
        match scalar {
            ScalarType::Bool => Self::Bool(BooleanBuilder::new()),
            ScalarType::Int64 => Self::Int64(Int64Builder::new()),
            ScalarType::Float64 => Self::Float64(Float64Builder::new()),
            ScalarType::String => Self::String(StringBuilder::new()),
            ScalarType::Date => Self::Date(Date32Builder::new()),
            ScalarType::Timestamp => Self::Timestamp(timestamps()),
        }
    }

    fn push(&mut self, value: Option<&Value>) {
        match (self, value) {
            (Self::Bool(builder), value) => {
                builder.append_option(if let Some(Value::Bool(it)) = value { Some(*it) } else { None })
            }
            (Self::Int64(builder), value) => {
                builder.append_option(if let Some(Value::Int64(it)) = value { Some(*it) } else { None })
            }
            (Self::Float64(builder), value) => {
                builder.append_option(if let Some(Value::Float64(it)) = value { Some(*it) } else { None });
            }
            (Self::String(builder), value) => {
                builder.append_option(if let Some(Value::String(it)) = value { Some(it.as_str()) } else { None });
            }
            (Self::Date(builder), value) => {
                builder.append_option(if let Some(Value::Date(it)) = value { Some(*it) } else { None })
            }
            (Self::Timestamp(builder), value) => {
                builder.append_option(if let Some(Value::Timestamp(it)) = value { Some(*it) } else { None });
            }
        }
    }
}

fn timestamps() -> TimestampMicrosecondBuilder {
    TimestampMicrosecondBuilder::new().with_timezone("UTC")
}

fn push_item(items: &mut Box<dyn ArrayBuilder>, scalar: ScalarType, item: &Value) {
    macro_rules! push {
        ($builder:ident, $variant:ident, $value:expr) => {
            if let Some(builder) = items.as_any_mut().downcast_mut::<$builder>() {
                builder.append_option(if let Value::$variant(it) = item { Some($value(it)) } else { None });
            }
        };
    }
    match scalar {
        ScalarType::Bool => push!(BooleanBuilder, Bool, |it: &bool| *it),
        ScalarType::Int64 => push!(Int64Builder, Int64, |it: &i64| *it),
        ScalarType::Float64 => push!(Float64Builder, Float64, |it: &f64| *it),
        ScalarType::String => push!(StringBuilder, String, String::as_str),
        ScalarType::Date => push!(Date32Builder, Date, |it: &i32| *it),
        ScalarType::Timestamp => push!(TimestampMicrosecondBuilder, Timestamp, |it: &i64| *it),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_what_was_pushed() {
        let values = [
            (PropertyType::Scalar(ScalarType::Bool), Value::Bool(true)),
            (PropertyType::Scalar(ScalarType::Timestamp), Value::Timestamp(7)),
            (PropertyType::Scalar(ScalarType::Date), Value::Date(7)),
            (PropertyType::List(ScalarType::String), Value::List(vec!["a".into(), "b".into()])),
            (PropertyType::List(ScalarType::Int64), Value::List(vec![])),
        ];
        for (kind, value) in values {
            let mut column = ColumnBuilder::new(kind);
            column.push(Some(&value));
            column.push(None);
            column.push(Some(&Value::Null));
            let column = column.finish();
            let found: Vec<_> = (0..3).map(|row| Value::at(&column, row)).collect();
            assert_eq!(found, [value, Value::Null, Value::Null]);
        }
    }
}
