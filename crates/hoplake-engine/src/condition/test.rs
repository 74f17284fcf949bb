//! A single test of a property, and the same with values of the property's type.

use std::{cmp::Ordering, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, Scalar, StringArray,
    TimestampMicrosecondArray, cast::AsArray, types::GenericStringType,
};
use arrow_ord::{cmp, ord::make_comparator, sort::sort};
use arrow_schema::SortOptions;
use hoplake_format::{PropertyType, ScalarType, TIMESTAMP_ZONE, text};
use hoplake_storage::Pace;
use memchr::memmem::Finder;

use super::{Verdicts, VerdictsBuilder};
use crate::{EngineError, float::canonical};

/// Rows on which a test is evaluated between two looks at the time.
const ROWS_AT_ONCE: usize = 1 << 16;

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

    /// As it is written.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

/// Whose property a test names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum PropertyOf {
    /// The edge's if its type has it, else the vertex's.
    #[default]
    Either,
    /// The edge's: `edge.since`.
    Edge,
    /// The vertex's: `vertex.name`.
    Vertex,
}

/// A property as a test names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PropertyName {
    /// Whose it is.
    pub of: PropertyOf,
    /// Its name; `~key` is the key of the vertex.
    pub name: String,
}

impl From<&str> for PropertyName {
    /// The name as it stands, of the edge or else of the vertex.
    fn from(name: &str) -> Self {
        Self { of: PropertyOf::Either, name: name.to_owned() }
    }
}

impl From<String> for PropertyName {
    fn from(name: String) -> Self {
        Self { of: PropertyOf::Either, name }
    }
}

/// What a test requires of a value. Values are text that the property's type can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirement {
    /// `= value` and its like.
    Compare(Comparison, String),
    /// `in (value, …)`.
    OneOf(Vec<String>),
    /// `between least and greatest`, both included.
    Between(String, String),
    /// `starts with text`; of strings.
    StartsWith(String),
    /// `contains text`: a string has it within, byte by byte, or a list has it as an item.
    Contains(String),
    /// `is null`.
    IsNull,
}

/// A test of one property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// The property.
    pub property: PropertyName,
    /// What it requires.
    pub requirement: Requirement,
}

/// A requirement whose values have the type of the property.
#[derive(Debug)]
pub(crate) enum TypedTest {
    Compare(Comparison, Scalar<ArrayRef>),
    /// The values, ascending.
    OneOf(ArrayRef),
    Between(Scalar<ArrayRef>, Scalar<ArrayRef>),
    StartsWith(String),
    ContainsText(Box<Finder<'static>>),
    /// An item, as the only value of an array.
    ContainsItem(ArrayRef),
    IsNull,
}

impl Test {
    /// Reads its values as those of a property's type.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] if one is not, or the type cannot be tested like this.
    pub(crate) fn typed(&self, kind: PropertyType) -> Result<TypedTest, EngineError> {
        let scalar = || match kind {
            PropertyType::Scalar(scalar) => Ok(scalar),
            PropertyType::List(_) => Err(self.unfit(format!("is a {kind}; test it with `contains` or `is null`"))),
        };
        let one = |value: &String, of: ScalarType| self.values(std::slice::from_ref(value), of);
        Ok(match &self.requirement {
            Requirement::Compare(comparison, value) => {
                TypedTest::Compare(*comparison, Scalar::new(one(value, scalar()?)?))
            }
            Requirement::OneOf(values) => TypedTest::OneOf(sort(&self.values(values, scalar()?)?, None)?),
            Requirement::Between(least, greatest) => {
                TypedTest::Between(Scalar::new(one(least, scalar()?)?), Scalar::new(one(greatest, scalar()?)?))
            }
            Requirement::StartsWith(text) => match kind {
                PropertyType::Scalar(ScalarType::String) => TypedTest::StartsWith(text.clone()),
                _ => return Err(self.unfit(format!("is a {kind}; only strings can be tested with `starts with`"))),
            },
            Requirement::Contains(text) => match kind {
                PropertyType::Scalar(ScalarType::String) => {
                    TypedTest::ContainsText(Box::new(Finder::new(text).into_owned()))
                }
                PropertyType::List(of) => TypedTest::ContainsItem(one(text, of)?),
                PropertyType::Scalar(_) => {
                    return Err(
                        self.unfit(format!("is a {kind}; only strings and lists can be tested with `contains`"))
                    );
                }
            },
            Requirement::IsNull => TypedTest::IsNull,
        })
    }

    fn unfit(&self, why: String) -> EngineError {
        EngineError::Invalid(format!("{} {why}", self.property.name))
    }

    /// Text as values of a type. A value that the type lacks is refused: rounded, it would be another one.
    fn values(&self, texts: &[String], of: ScalarType) -> Result<ArrayRef, EngineError> {
        let array: ArrayRef = match of {
            ScalarType::Bool => Arc::new(BooleanArray::from(self.each(texts, of, text::boolean)?)),
            ScalarType::Int64 => Arc::new(Int64Array::from(self.each(texts, of, text::int64)?)),
            ScalarType::Float64 => Arc::new(Float64Array::from(self.each(texts, of, text::exact_float64)?)),
            ScalarType::Date => Arc::new(Date32Array::from(self.each(texts, of, text::date)?)),
            ScalarType::Timestamp => {
                let micros = TimestampMicrosecondArray::from(self.each(texts, of, text::exact_timestamp)?);
                Arc::new(micros.with_timezone(TIMESTAMP_ZONE))
            }
            ScalarType::String => Arc::new(StringArray::from_iter_values(texts)),
        };
        Ok(canonical(&array))
    }

    fn each<T>(
        &self,
        texts: &[String],
        of: ScalarType,
        read: fn(&[u8]) -> Result<T, &'static str>,
    ) -> Result<Vec<T>, EngineError> {
        let wrong = |text: &str, why| self.unfit(format!("is compared as {of}, and {text:?} {why}"));
        texts.iter().map(|text| read(text.as_bytes()).map_err(|why| wrong(text, why))).collect()
    }

    /// The verdict on an absent value.
    pub(crate) fn of_absent(&self) -> Option<bool> {
        matches!(self.requirement, Requirement::IsNull).then_some(true)
    }
}

impl TypedTest {
    /// The verdict on each value of a column of the property's type.
    ///
    /// # Errors
    /// [`EngineError::Arrow`] if the types differ; that a limit of the query was reached.
    pub(crate) async fn of_column(&self, column: &ArrayRef, pace: &mut Pace) -> Result<Verdicts, EngineError> {
        let mut verdicts = VerdictsBuilder::new(column.len());
        for from in (0..column.len()).step_by(ROWS_AT_ONCE) {
            let slice = column.slice(from, ROWS_AT_ONCE.min(column.len() - from));
            verdicts.append(&self.evaluate(&slice)?, 0, slice.len());
            pace.rest(slice.len() as u64 * 4).await?;
        }
        Ok(verdicts.finish())
    }

    pub(super) fn evaluate(&self, column: &ArrayRef) -> Result<Verdicts, EngineError> {
        let values = canonical(column);
        let mask = match self {
            Self::Compare(comparison, literal) => {
                let compare = match comparison {
                    Comparison::Equal => cmp::eq,
                    Comparison::NotEqual => cmp::neq,
                    Comparison::Less => cmp::lt,
                    Comparison::LessOrEqual => cmp::lt_eq,
                    Comparison::Greater => cmp::gt,
                    Comparison::GreaterOrEqual => cmp::gt_eq,
                };
                compare(&values, literal)?
            }
            Self::Between(least, greatest) => {
                let [above, below] = [cmp::gt_eq(&values, least)?, cmp::lt_eq(&values, greatest)?];
                return Ok(Verdicts::of(&above).and(Verdicts::of(&below)));
            }
            Self::OneOf(sorted) => {
                let compare = make_comparator(&values, sorted, SortOptions::default())?;
                let is_in = |row: usize| search(sorted.len(), |at| compare(row, at)).is_ok();
                BooleanArray::new((0..values.len()).map(is_in).collect(), values.nulls().cloned())
            }
            Self::StartsWith(start) => each_text(&values, |text| text.starts_with(start.as_str())),
            Self::ContainsText(finder) => each_text(&values, |text| finder.find(text.as_bytes()).is_some()),
            Self::ContainsItem(item) => {
                let lists = values.as_list::<i32>();
                let offsets = lists.value_offsets();
                // The items of these lists alone: they may be a slice of many.
                let (from, until) = (offsets[0] as usize, offsets[lists.len()] as usize);
                let items = canonical(&lists.values().slice(from, until - from));
                let compare = make_comparator(&items, item, SortOptions::default())?;
                // An absent item equals no value.
                let is = |at: usize| items.is_valid(at) && compare(at, 0).is_eq();
                let has = |row: usize| (offsets[row] as usize - from..offsets[row + 1] as usize - from).any(is);
                BooleanArray::new((0..lists.len()).map(has).collect(), lists.nulls().cloned())
            }
            Self::IsNull => {
                let nulls =
                    values.nulls().map_or_else(|| (0..values.len()).map(|_| false).collect(), |nulls| !nulls.inner());
                BooleanArray::new(nulls, None)
            }
        };
        Ok(Verdicts::of(&mask))
    }
}

/// Which of some ascending values is equal to one, by binary search; if none is, which is the first that is greater.
/// `compare` says how the one compares with a value.
pub(super) fn search(values: usize, compare: impl Fn(usize) -> Ordering) -> Result<usize, usize> {
    let (mut low, mut high) = (0, values);
    while low < high {
        let middle = low + (high - low) / 2;
        match compare(middle) {
            Ordering::Equal => return Ok(middle),
            Ordering::Greater => low = middle + 1,
            Ordering::Less => high = middle,
        }
    }
    Err(low)
}

fn each_text(values: &ArrayRef, fulfils: impl Fn(&str) -> bool) -> BooleanArray {
    let texts = values.as_bytes::<GenericStringType<i32>>();
    BooleanArray::new((0..texts.len()).map(|row| fulfils(texts.value(row))).collect(), texts.nulls().cloned())
}
