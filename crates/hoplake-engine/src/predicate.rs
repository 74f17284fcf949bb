//! Conditions on properties: `creationDate>=2011-01-01`.

use std::{cmp::Ordering, fmt, str::FromStr};

use arrow_array::{Array, ArrayRef, BooleanArray, Datum, Scalar, StringArray, cast::AsArray, types::Float64Type};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_ord::cmp;
use hoplake_format::PropertyType;

use crate::{EngineError, float, quoting};

/// How two values compare; floating-point numbers as [`float`](crate::float) orders them.
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

impl Comparison {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Equal, Self::NotEqual, Self::Less, Self::LessOrEqual, Self::Greater, Self::GreaterOrEqual];

    /// Whether two values that compare like this fulfil it.
    fn accepts(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }
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
        let read = Self::take(text, |_| false).map_err(|why| format!("{text:?} is not a condition: it {why}"));
        Ok(read.map_err(EngineError::Invalid)?.0)
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign =
            OPERATORS.iter().find(|(_, comparison)| *comparison == self.comparison).map_or("?", |(sign, _)| sign);
        match self.property.is_empty() {
            true => quoting::write_quoted(&self.property, f)?,
            false => quoting::write(&self.property, &['=', '<', '>', '!', ',', ']'], f)?,
        }
        f.write_str(sign)?;
        match looks_like_more(&self.value) {
            true => quoting::write_quoted(&self.value, f),
            false => quoting::write(&self.value, &[',', ']'], f),
        }
    }
}

/// Whether a value without quotes may be an operator that there is not, as in `code==BOS`, or a second condition, as in
/// `code=BOS and dist>5`.
fn looks_like_more(value: &str) -> bool {
    let signs = ['=', '<', '>'];
    value.starts_with(signs) || value.contains(signs) && value.contains(char::is_whitespace)
}

impl Predicate {
    /// Reads a condition from the beginning of a text, and returns what is left; a value without quotes ends where `ends` says.
    ///
    /// # Errors
    /// As the end of a sentence.
    pub(crate) fn take(text: &str, ends: impl Fn(&str) -> bool) -> Result<(Self, &str), String> {
        let sign_of = |rest: &str| OPERATORS.iter().find(|(sign, _)| rest.starts_with(sign)).copied();
        let (property, rest) = quoting::take(text, |rest| sign_of(rest).is_some() || ends(rest))?;
        let named = !property.is_empty() || text.trim_start().starts_with(['"', '\'']);
        let Some((sign, comparison)) = sign_of(rest).filter(|_| named) else {
            let shown = &text[..text.len() - rest.len()];
            return Err(format!(
                "has a condition without a property and a comparison: {shown:?} is not a condition such as since>=2011-01-01"
            ));
        };
        let behind = rest[sign.len()..].trim_start();
        let (value, rest) = quoting::take(behind, ends)?;
        if !behind.starts_with(['"', '\'']) && looks_like_more(&value) {
            return Err(format!(
                "has a value that looks like more than one: {value:?}; write it in quotes if it is meant so, and one condition \
                 with =, !=, <, <=, > or >= behind another with a comma"
            ));
        }
        Ok((Self { property: property.into_owned(), comparison, value: value.into_owned() }, rest))
    }

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
        // A safe cast would turn text that is not a value into null, and the condition would silently fail on every row.
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let value = cast_with_options(&text, &kind.arrow(), &options);
        value.map(Scalar::new).map_err(|_| {
            EngineError::Invalid(format!(
                "{:?} is not a valid {kind}, which {} is compared as",
                self.value, self.property
            ))
        })
    }

    /// Which values fulfil the condition.
    ///
    /// # Errors
    /// [`EngineError::Arrow`] if the types differ.
    pub(crate) fn evaluate(&self, values: &ArrayRef, literal: &Scalar<ArrayRef>) -> Result<Vec<bool>, EngineError> {
        if let (Some(values), (literal, _)) = (values.as_primitive_opt::<Float64Type>(), literal.get()) {
            // Arrow would compare bits: −0.0 below 0.0, and NaN by its sign.
            let literal = literal.as_primitive::<Float64Type>().value(0);
            let fulfils =
                |value: Option<f64>| value.is_some_and(|value| self.comparison.accepts(float::compare(value, literal)));
            return Ok(values.iter().map(fulfils).collect());
        }
        let compare = match self.comparison {
            Comparison::Equal => cmp::eq,
            Comparison::NotEqual => cmp::neq,
            Comparison::Less => cmp::lt,
            Comparison::LessOrEqual => cmp::lt_eq,
            Comparison::Greater => cmp::gt,
            Comparison::GreaterOrEqual => cmp::gt_eq,
        };
        let mask: BooleanArray = compare(values, literal)?;
        // An absent value fulfils no condition, not even `!=`.
        Ok((0..mask.len()).map(|row| mask.is_valid(row) && mask.value(row)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Float64Array, Int64Array};
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
        for text in ["code==BOS", "code=>BOS", "code<>BOS", "code= =BOS", "code=BOS and dist>5", "code=BOS or code=AUS"]
        {
            let why = text.parse::<Predicate>().unwrap_err().to_string();
            assert!(why.contains("looks like more than one"), "{why}");
        }
        for (text, value) in
            [("url=http://a/?b=c", "http://a/?b=c"), ("code='=BOS'", "=BOS"), ("name=a and b", "a and b")]
        {
            assert_eq!(text.parse::<Predicate>().unwrap().value, value);
        }
        assert!("=3".parse::<Predicate>().is_err());
        assert!("name".parse::<Predicate>().is_err());
    }

    #[test]
    fn zeros_are_equal_and_nan_is_the_greatest() {
        let values: ArrayRef = Arc::new(Float64Array::from(vec![-0.0, 0.0, 1.0, f64::INFINITY, f64::NAN, -f64::NAN]));
        for (text, fulfil) in [
            ("x=0", [true, true, false, false, false, false]),
            ("x=-0.0", [true, true, false, false, false, false]),
            ("x<0", [false; 6]),
            ("x>=0", [true; 6]),
            ("x=NaN", [false, false, false, false, true, true]),
            ("x>1e308", [false, false, false, true, true, true]),
            ("x<NaN", [true, true, true, true, false, false]),
            ("x=Infinity", [false, false, false, true, false, false]),
            ("x<=-Infinity", [false; 6]),
        ] {
            let predicate: Predicate = text.parse().unwrap();
            let literal = predicate.literal(PropertyType::Scalar(ScalarType::Float64)).unwrap();
            assert_eq!(predicate.evaluate(&values, &literal).unwrap(), fulfil, "{text}");
        }
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
        assert_eq!(error, "\"2011-01-01\" is not a valid int64, which since is compared as");
    }
}
