//! Conditions on properties: `creationDate>=2011-01-01`.

use std::{fmt, str::FromStr};

use arrow_array::{Array, ArrayRef, BooleanArray, Scalar, StringArray};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_ord::cmp;
use hoplake_format::PropertyType;

use crate::EngineError;

/// How two values compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// A condition on a property. An absent value fulfils none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Predicate {
    /// The property: of the edge if its type has it, else of the vertex reached.
    pub property: String,
    /// How it compares.
    pub comparison: Comparison,
    /// With what, as text that the property's type can read.
    pub value: String,
}

/// Longer operators first, so that `>=` is not read as `>`.
const OPERATORS: [(&str, Comparison); 6] = [
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("=", Comparison::Equal),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

impl FromStr for Predicate {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self, EngineError> {
        let found = OPERATORS.iter().filter_map(|(sign, comparison)| Some((text.find(sign)?, sign, *comparison)));
        // The leftmost operator ends the name; of two at one place the list has the longer first.
        let first = found.min_by_key(|(at, ..)| *at).filter(|(at, ..)| !text[..*at].trim().is_empty());
        let (at, sign, comparison) = first.ok_or_else(|| {
            EngineError::Invalid(format!("{text:?} is no condition; write for instance creationDate>=2011-01-01"))
        })?;
        let value = text[at + sign.len()..].trim().trim_matches(|quote| quote == '"' || quote == '\'');
        Ok(Self { property: text[..at].trim().to_owned(), comparison, value: value.to_owned() })
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign =
            OPERATORS.iter().find(|(_, comparison)| *comparison == self.comparison).map_or("?", |(sign, _)| sign);
        write!(f, "{}{sign}{}", self.property, self.value)
    }
}

impl Predicate {
    /// Reads the value as one of the property's type.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] if it is none, or the property is a list.
    pub(crate) fn literal(&self, kind: PropertyType) -> Result<Scalar<ArrayRef>, EngineError> {
        if matches!(kind, PropertyType::List(_)) {
            return Err(EngineError::Invalid(format!(
                "{} is a {kind}; only single values can be compared",
                self.property
            )));
        }
        let text = StringArray::from(vec![self.value.as_str()]);
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let value = cast_with_options(&text, &kind.arrow(), &options);
        value.map(Scalar::new).map_err(|_| {
            EngineError::Invalid(format!("{:?} is no {kind}, which {} is compared as", self.value, self.property))
        })
    }

    /// Which values fulfil the condition.
    ///
    /// # Errors
    /// [`EngineError::Arrow`] if the types differ.
    pub(crate) fn evaluate(&self, values: &ArrayRef, literal: &Scalar<ArrayRef>) -> Result<Vec<bool>, EngineError> {
        let compare = match self.comparison {
            Comparison::Equal => cmp::eq,
            Comparison::NotEqual => cmp::neq,
            Comparison::Less => cmp::lt,
            Comparison::LessOrEqual => cmp::lt_eq,
            Comparison::Greater => cmp::gt,
            Comparison::GreaterOrEqual => cmp::gt_eq,
        };
        let mask: BooleanArray = compare(values, literal)?;
        Ok((0..mask.len()).map(|row| mask.is_valid(row) && mask.value(row)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::Int64Array;
    use hoplake_format::ScalarType;

    use super::*;

    #[test]
    fn conditions_are_read_with_their_longest_operator() {
        for (text, property, comparison, value) in [
            ("creationDate>=2011-01-01", "creationDate", Comparison::GreaterOrEqual, "2011-01-01"),
            ("name = 'a=b'", "name", Comparison::Equal, "a=b"),
            ("age!=3", "age", Comparison::NotEqual, "3"),
        ] {
            let expected = Predicate { property: property.into(), comparison, value: value.into() };
            assert_eq!(text.parse::<Predicate>().unwrap(), expected);
        }
        assert!("=3".parse::<Predicate>().is_err());
        assert!("name".parse::<Predicate>().is_err());
    }

    #[test]
    fn values_compare_and_nulls_fail() {
        let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
        let predicate: Predicate = "age!=3".parse().unwrap();
        let literal = predicate.literal(PropertyType::Scalar(ScalarType::Int64)).unwrap();
        assert_eq!(predicate.evaluate(&values, &literal).unwrap(), [true, false, false]);
        let date: Predicate = "since<2011-01-01".parse().unwrap();
        assert!(date.literal(PropertyType::Scalar(ScalarType::Timestamp)).is_ok());
        assert!(date.literal(PropertyType::Scalar(ScalarType::Date)).is_ok());
        let error = date.literal(PropertyType::Scalar(ScalarType::Int64)).unwrap_err().to_string();
        assert_eq!(error, "\"2011-01-01\" is no int64, which since is compared as");
    }
}
