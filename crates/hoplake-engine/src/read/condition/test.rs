//! A single test of a property, and the same with values of the property's type.

use std::{cmp::Ordering, collections::BTreeSet, sync::Arc};

use arrow_array::{Array, ArrayRef, BooleanArray, Scalar, StringArray, cast::AsArray, types::GenericStringType};
use arrow_ord::{cmp, ord::make_comparator, sort::sort};
use arrow_schema::SortOptions;
use hoplake_format::{PropertyType, ScalarType, VertexId};
use hoplake_storage::Pace;
use memchr::memmem::Finder;

use super::{Operand, ThreeValued, Verdicts, VerdictsBuilder};
use crate::{EngineError, float::canonical, value};

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

    /// Itself with the sides exchanged: `a < b` is `b > a`.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            Self::Equal | Self::NotEqual => self,
        }
    }

    /// Whether it holds of two values in this order.
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
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

/// What a test requires of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirement {
    /// `= value` and its like.
    Compare(Comparison, Operand),
    /// `in (value, …)`.
    OneOf(Vec<Operand>),
    /// `between least and greatest`, both included.
    Between(Operand, Operand),
    /// `starts with text`; of strings.
    StartsWith(String),
    /// `ends with text`; of strings.
    EndsWith(String),
    /// `contains value`: a string has it within, byte by byte, or a list has it as an item.
    Contains(Operand),
    /// `is null`.
    IsNull,
}

/// A test of an edge, or of a vertex.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// Of a property.
    Property(PropertyName, Requirement),
    /// Of the label of the vertex, a string.
    VertexLabel(Requirement),
    /// Of the label of the edge, a string.
    EdgeLabel(Requirement),
    /// The vertex is one of these.
    Vertex(BTreeSet<VertexId>),
}

/// A requirement whose values have the type of the property.
#[derive(Debug)]
pub(crate) enum TypedTest {
    Compare(Comparison, Scalar<ArrayRef>),
    /// The values, ascending.
    OneOf(ArrayRef),
    Between(Scalar<ArrayRef>, Scalar<ArrayRef>),
    StartsWith(String),
    EndsWith(String),
    ContainsText(Box<Finder<'static>>),
    /// An item, as the only value of an array.
    ContainsItem(ArrayRef),
    IsNull,
}

impl Test {
    /// What it requires of a property or a label; `None` of a test of vertices.
    pub fn requirement(&self) -> Option<&Requirement> {
        match self {
            Self::Property(_, requirement) | Self::VertexLabel(requirement) | Self::EdgeLabel(requirement) => {
                Some(requirement)
            }
            Self::Vertex(_) => None,
        }
    }
}

impl Requirement {
    /// The verdict where there is no value to test: the property is absent, or no edge was followed.
    pub(crate) fn of_absent(&self) -> Option<bool> {
        matches!(self, Self::IsNull).then_some(true)
    }

    /// Itself with values of the type of a property, whose name is for messages.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] if a value is not one of the type, or the type cannot be tested like this.
    pub(crate) fn typed(&self, name: &str, kind: PropertyType) -> Result<TypedTest, EngineError> {
        let unfit = |why: String| EngineError::Invalid(format!("{name} {why}"));
        let scalar = || match kind {
            PropertyType::Scalar(scalar) => Ok(scalar),
            PropertyType::List(_) => Err(unfit(format!("is a {kind}; test it with `contains` or `is null`"))),
        };
        let text = |text: &String, test: &str| match kind {
            PropertyType::Scalar(ScalarType::String) => Ok(text.clone()),
            _ => Err(unfit(format!("is a {kind}; only strings can be tested with `{test}`"))),
        };
        let one = |value, of| values(name, std::slice::from_ref(value), of);
        Ok(match self {
            Self::Compare(comparison, value) => TypedTest::Compare(*comparison, Scalar::new(one(value, scalar()?)?)),
            Self::OneOf(all) => TypedTest::OneOf(sort(&values(name, all, scalar()?)?, None)?),
            Self::Between(least, greatest) => {
                TypedTest::Between(Scalar::new(one(least, scalar()?)?), Scalar::new(one(greatest, scalar()?)?))
            }
            Self::StartsWith(start) => TypedTest::StartsWith(text(start, "starts with")?),
            Self::EndsWith(end) => TypedTest::EndsWith(text(end, "ends with")?),
            Self::Contains(value) => match kind {
                PropertyType::Scalar(ScalarType::String) => {
                    let texts = one(value, ScalarType::String)?;
                    let text = texts.as_bytes::<GenericStringType<i32>>().value(0);
                    TypedTest::ContainsText(Box::new(Finder::new(text).into_owned()))
                }
                PropertyType::List(of) => TypedTest::ContainsItem(one(value, of)?),
                PropertyType::Scalar(_) => {
                    return Err(unfit(format!("is a {kind}; only strings and lists can be tested with `contains`")));
                }
            },
            Self::IsNull => TypedTest::IsNull,
        })
    }

    /// The verdict on a label.
    ///
    /// # Errors
    /// As [`Self::typed`].
    pub(crate) fn of_label(&self, label: &str) -> Result<Option<bool>, EngineError> {
        let column: ArrayRef = Arc::new(StringArray::from(vec![label]));
        let verdicts = self.typed("~label", PropertyType::Scalar(ScalarType::String))?.evaluate(&column)?;
        Ok(verdicts.get(0))
    }
}

/// The values of a test as a column of a type.
fn values(name: &str, operands: &[Operand], of: ScalarType) -> Result<ArrayRef, EngineError> {
    let unfit = |operand: &Operand, why| {
        EngineError::Invalid(format!("{name} is compared as {of}, and {} {why}", operand.quoted()))
    };
    let values = operands.iter().map(|operand| operand.of_type(of).map_err(|why| unfit(operand, why)));
    let values = values.collect::<Result<Vec<_>, _>>()?;
    Ok(canonical(&value::column(values.iter().map(|value| &**value), PropertyType::Scalar(of))?))
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
                let above = cmp::gt_eq(&values, least)?;
                let below = cmp::lt_eq(&values, greatest)?;
                return Ok(Verdicts::of(&above).and(Verdicts::of(&below)));
            }
            Self::OneOf(sorted) => {
                let compare = make_comparator(&values, sorted, SortOptions::default())?;
                let is_in = |row: usize| search(sorted.len(), |at| compare(row, at)).is_ok();
                BooleanArray::new((0..values.len()).map(is_in).collect(), values.nulls().cloned())
            }
            Self::StartsWith(start) => each_text(&values, |text| text.starts_with(start.as_str())),
            Self::EndsWith(end) => each_text(&values, |text| text.ends_with(end.as_str())),
            Self::ContainsText(finder) => each_text(&values, |text| finder.find(text.as_bytes()).is_some()),
            Self::ContainsItem(item) => {
                let lists = values.as_list::<i32>();
                let offsets = lists.value_offsets();
                // The items of these lists alone: they may be a slice of many.
                let from = offsets[0] as usize;
                let until = offsets[lists.len()] as usize;
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
    let mut low = 0;
    let mut high = values;
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

fn each_text(values: &ArrayRef, matches: impl Fn(&str) -> bool) -> BooleanArray {
    let texts = values.as_bytes::<GenericStringType<i32>>();
    BooleanArray::new((0..texts.len()).map(|row| matches(texts.value(row))).collect(), texts.nulls().cloned())
}
