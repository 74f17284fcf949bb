//! The values of tests: as a text has them, or typed.

use std::borrow::Cow;

use hoplake_format::{PropertyType, ScalarType, text};

use crate::value::Value;

/// A value that a test compares with.
///
/// A property of one name may have another type on each label, so a value is read or converted as late as that type is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operand {
    /// Text that the type of the property reads: `2011-01-01` is a date to a date, and these ten characters to a string.
    Written(String),
    /// A value of this type, or of one that holds it exactly.
    Value(Value),
}

impl Operand {
    /// Itself as a value of a type. A value that the type lacks is rejected: rounded, it would be another one.
    ///
    /// # Errors
    /// Why it is not one, as the end of a sentence.
    pub(super) fn of_type(&self, kind: ScalarType) -> Result<Cow<'_, Value>, Cow<'static, str>> {
        let written = match self {
            Self::Value(value) if value.property_type() == Some(PropertyType::Scalar(kind)) => {
                return Ok(Cow::Borrowed(value));
            }
            Self::Value(Value::Null) => return Err("equals nothing; test it with `is null`".into()),
            Self::Value(value) => {
                let converted = value.clone().conform(PropertyType::Scalar(kind));
                return converted.map(Cow::Owned).ok_or_else(|| format!("is not a value of {kind}").into());
            }
            Self::Written(written) => written,
        };
        let bytes = written.as_bytes();
        let value = match kind {
            ScalarType::Bool => text::boolean(bytes).map(Value::Bool),
            ScalarType::Int64 => text::int64(bytes).map(Value::Int64),
            ScalarType::Float64 => text::exact_float64(bytes).map(Value::Float64),
            ScalarType::Date => text::date(bytes).map(Value::Date),
            ScalarType::Timestamp => text::exact_timestamp(bytes).map(Value::Timestamp),
            ScalarType::String => Ok(Value::String(written.clone())),
        };
        Ok(Cow::Owned(value?))
    }

    /// As a message shows it.
    pub(super) fn quoted(&self) -> String {
        match self {
            Self::Written(text) => format!("{text:?}"),
            Self::Value(value) => value.to_string(),
        }
    }
}

impl From<&str> for Operand {
    fn from(text: &str) -> Self {
        Self::Written(text.to_owned())
    }
}

impl From<String> for Operand {
    fn from(text: String) -> Self {
        Self::Written(text)
    }
}

impl From<Value> for Operand {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}
