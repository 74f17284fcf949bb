//! Conditions on properties: `since >= 2011-01-01 and (name starts with "A" or age is null)`.
//!
//! One language for hops, scans and paths, on the command line, in requests and in Rust. A condition is a tree of *tests*; each test
//! compares one property with values that are still text, because a property of one name may have another type on each label.
//! `docs/querying.md` describes it for users.
//!
//! ```text
//! text ── parse ──▶ Condition ── typed, for each owner of a property ──▶ TypedTest ── columns ──▶ Verdicts
//! ```
//! **Absent values.** As in SQL a test of an absent value is neither true nor false but *unknown*, but for `is null`; `not` leaves
//! unknown as it is, and what is not true is not fulfilled. So `not (age = 3)` does not match a vertex without an age.

mod indexed;
mod parse;
mod possible;
mod test;
mod text;
mod verdicts;

use crate::EngineError;

pub(crate) use indexed::ItemRanges;
use parse::TESTS_MAX;
pub(crate) use possible::Bounds;
pub(crate) use test::TypedTest;
pub use test::{Comparison, PropertyName, PropertyOf, Requirement, Test};
pub(crate) use verdicts::{Verdicts, VerdictsBuilder};

/// A condition on properties.
///
/// ```
/// use hoplake_engine::{Comparison, Condition};
///
/// let read: Condition = "since >= 2011 and not (name = 'Ann' or name is null)".parse().unwrap();
/// let unnamed = Condition::compare("name", Comparison::Equal, "Ann").or(Condition::is_null("name"));
/// assert_eq!(read, Condition::compare("since", Comparison::GreaterOrEqual, "2011").and(unnamed.negated()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition(Node);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    /// Two or more; none of them is an `All`.
    All(Vec<Node>),
    /// Two or more; none of them is an `Any`.
    Any(Vec<Node>),
    Not(Box<Node>),
    Test(Test),
}

impl Condition {
    /// A single test.
    pub fn test(property: impl Into<PropertyName>, requirement: Requirement) -> Self {
        Self(Node::Test(Test { property: property.into(), requirement }))
    }

    /// `property = value` and its like. The value is text that the property's type can read.
    pub fn compare(property: impl Into<PropertyName>, comparison: Comparison, value: impl Into<String>) -> Self {
        Self::test(property, Requirement::Compare(comparison, value.into()))
    }

    /// `property in (values)`.
    pub fn one_of<V: Into<String>>(property: impl Into<PropertyName>, values: impl IntoIterator<Item = V>) -> Self {
        Self::test(property, Requirement::OneOf(values.into_iter().map(Into::into).collect()))
    }

    /// `property is null`.
    pub fn is_null(property: impl Into<PropertyName>) -> Self {
        Self::test(property, Requirement::IsNull)
    }

    /// Both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(Node::all(vec![self.0, other.0]))
    }

    /// Either or both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(Node::any(vec![self.0, other.0]))
    }

    /// What this one is false for; not what it is unknown for.
    #[must_use]
    pub fn negated(self) -> Self {
        Self(Node::Not(Box::new(self.0)))
    }

    /// Its tests, in their order in the text.
    pub fn tests(&self) -> Vec<&Test> {
        let mut tests = Vec::new();
        self.0.collect(&mut tests);
        tests
    }

    /// The verdicts of the condition on some rows, from those of its tests in the order of [`Self::tests`].
    pub(crate) fn combine(&self, tests: Vec<Verdicts>) -> Verdicts {
        self.0.combine(&mut tests.into_iter())
    }

    /// Refuses a condition of more tests than are allowed: each has a verdict on every row.
    pub(crate) fn check_size(&self) -> Result<(), EngineError> {
        let tests = self.tests().len();
        match tests > TESTS_MAX {
            true => {
                Err(EngineError::Invalid(format!("a condition has {tests} tests; at most {TESTS_MAX} are allowed")))
            }
            false => Ok(()),
        }
    }
}

impl Node {
    /// All of at least one; nested ones become one.
    fn all(parts: Vec<Self>) -> Self {
        let flat = parts.into_iter().flat_map(|part| match part {
            Self::All(inner) => inner,
            other => vec![other],
        });
        let mut flat: Vec<_> = flat.collect();
        if flat.len() == 1 { flat.swap_remove(0) } else { Self::All(flat) }
    }

    /// Any of at least one.
    fn any(parts: Vec<Self>) -> Self {
        let flat = parts.into_iter().flat_map(|part| match part {
            Self::Any(inner) => inner,
            other => vec![other],
        });
        let mut flat: Vec<_> = flat.collect();
        if flat.len() == 1 { flat.swap_remove(0) } else { Self::Any(flat) }
    }

    fn collect<'a>(&'a self, tests: &mut Vec<&'a Test>) {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.collect(tests)),
            Self::Not(inner) => inner.collect(tests),
            Self::Test(test) => tests.push(test),
        }
    }

    fn combine(&self, tests: &mut impl Iterator<Item = Verdicts>) -> Verdicts {
        let mut fold = |parts: &[Self], join: fn(Verdicts, Verdicts) -> Verdicts| {
            let mut parts = parts.iter().map(|part| part.combine(tests));
            let first = parts.next().expect("a condition has at least two parts where it joins some");
            parts.fold(first, join)
        };
        match self {
            Self::All(parts) => fold(parts, Verdicts::and),
            Self::Any(parts) => fold(parts, Verdicts::or),
            Self::Not(inner) => inner.combine(tests).negated(),
            Self::Test(_) => tests.next().expect("each test has its verdicts"),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use arrow_array::{
        Array, ArrayRef, Float64Array, Int64Array, StringArray,
        builder::{ListBuilder, StringBuilder},
    };
    use hoplake_format::{PropertyType, ScalarType};
    use proptest::prelude::*;

    use super::*;

    /// Conditions of every shape, with names and values that need quotes.
    pub(crate) fn conditions() -> impl Strategy<Value = Condition> {
        let word = || prop_oneof!["[ab=<>!,\\]\\[()\"'. ]{0,4}", "not|and|null|edge.a|7"];
        let name = (word(), 0..3usize).prop_map(|(name, of)| PropertyName {
            name,
            of: [PropertyOf::Either, PropertyOf::Edge, PropertyOf::Vertex][of],
        });
        let requirement = prop_oneof![
            (0..6usize, word()).prop_map(|(at, value)| Requirement::Compare(Comparison::ALL[at], value)),
            prop::collection::vec(word(), 0..4).prop_map(Requirement::OneOf),
            (word(), word()).prop_map(|(least, greatest)| Requirement::Between(least, greatest)),
            word().prop_map(Requirement::StartsWith),
            word().prop_map(Requirement::Contains),
            Just(Requirement::IsNull),
        ];
        let test = (name, requirement).prop_map(|(name, requirement)| Condition::test(name, requirement));
        test.prop_recursive(4, 20, 3, |inner| {
            prop_oneof![
                (inner.clone(), inner.clone()).prop_map(|(a, b)| a.and(b)),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| a.or(b)),
                inner.prop_map(Condition::negated),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_condition_that_is_written_is_read(condition in conditions()) {
            let text = condition.to_string();
            prop_assert_eq!(text.parse::<Condition>().map_err(|error| error.to_string()), Ok(condition), "{}", text);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "([ab=<>!,()\"' ]|and|or|not|in|is|null|between){0,30}") {
            let _ = text.parse::<Condition>();
        }
    }

    #[test]
    fn words_bind_as_in_sql_and_a_comma_weakest() {
        for (text, written) in [
            ("a=1 or b=2 and c=3", "a = 1 or (b = 2 and c = 3)"),
            ("(a=1 or b=2) and c=3", "(a = 1 or b = 2) and c = 3"),
            ("a=1, b=2 or c=3", "a = 1 and (b = 2 or c = 3)"),
            ("a=1 and (b=2 and c=3)", "a = 1 and b = 2 and c = 3"),
            ("NOT a=1 AND b IS NOT NULL", "not (a = 1) and b is not null"),
            ("a between 1 and 2 and b not in (3,'4 5' , and)", "a between 1 and 2 and b not in (3, \"4 5\", \"and\")"),
            ("a starts with 'x' and b contains y", "a starts with x and b contains y"),
            ("state=or or state='and'", "state = \"or\" or state = \"and\""),
            ("url=http://a/?b=c", "url = http://a/?b=c"),
            (
                "edge.since>=2011-01-01 and vertex.'the name'=Ann",
                "edge.since >= 2011-01-01 and vertex.\"the name\" = Ann",
            ),
            ("'edge.since'=1", "\"edge.since\" = 1"),
            ("a in ()", "a in ()"),
            ("not(a=1)", "not (a = 1)"),
            ("a not between 1 and 2 or b not starts with x", "a not between 1 and 2 or b not starts with x"),
            ("not (b contains y) and not not b contains y", "b not contains y and not (b not contains y)"),
        ] {
            assert_eq!(text.parse::<Condition>().unwrap().to_string(), written, "{text}");
        }
    }

    #[test]
    fn mistakes_are_explained() {
        for (text, why) in [
            ("", "ends where a property is needed"),
            ("=3", "has \"=3\" where a property is needed"),
            ("name", "ends where a comparison"),
            ("name BOS", "has \"BOS\" where a comparison"),
            ("code=", "ends where a value is needed"),
            ("code==BOS", "has \"=BOS\" behind a comparison"),
            ("code=>BOS", "has \">BOS\" behind a comparison"),
            ("code<>BOS", "has \">BOS\" behind a comparison"),
            ("code= =BOS", "has \"=BOS\" behind a comparison"),
            ("name=New York", "has \"York\" behind a complete test"),
            ("code=BOS and", "ends where a property is needed"),
            ("code=BOS and dist", "ends where a comparison"),
            ("code=BOS and and dist>3", "has \"and dist>3\" where a property"),
            ("(code=BOS", "ends where `)`"),
            ("code=BOS)", "has \")\" behind a complete test"),
            ("code in BOS", "where `(` is needed"),
            ("code in (BOS", "ends where `,` or `)`"),
            ("code in (BOS,)", "has \")\" where a value"),
            ("dist between 3", "ends where `and` and the greatest value"),
            ("code is BOS", "where `null` or `not null` is needed"),
            ("code=null", "write `is null`"),
            ("code='BOS", "has a ' that is not closed"),
            ("code='BOS'x", "has \"x\" after a closing '"),
            ("code starts BOS", "where `with` is needed"),
            ("code not 3", "where in, between, starts with or contains is needed"),
        ] {
            let error = text.parse::<Condition>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn hostile_conditions_are_refused_before_they_are_built() {
        let nested = format!("{}a=1{}", "(".repeat(100_000), ")".repeat(100_000));
        let negated = format!("{}a=1", "not ".repeat(100_000));
        let long = format!("a='{}'", "x".repeat(2 << 20));
        let many = vec!["a=1"; 1_001].join(" or ");
        let within = format!("{}a=1{}", "(".repeat(64), ")".repeat(64));
        within.parse::<Condition>().unwrap();
        for (text, why) in [
            (nested, "nests more than 64"),
            (negated, "nests more than 64"),
            (long, "a condition has at most 1048576"),
            (many, "more than 1000 tests"),
        ] {
            let error = text.parse::<Condition>().unwrap_err().to_string();
            assert!(error.contains(why) && error.len() < 500, "{error}");
        }
    }

    /// What a condition on `x` says of each value of a column: true, false or unknown.
    fn verdicts(text: &str, kind: PropertyType, column: &ArrayRef) -> Vec<Option<bool>> {
        let condition: Condition = text.parse().unwrap();
        let of = |condition: &Condition| {
            let tests = condition.tests();
            let each = tests.iter().map(|test| test.typed(kind).unwrap().evaluate(column).unwrap());
            condition.combine(each.collect()).fulfilled()
        };
        let [yes, no] = [of(&condition), of(&condition.clone().negated())];
        let verdict = |(yes, no)| match (yes, no) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        };
        yes.iter().zip(no.iter()).map(verdict).collect()
    }

    const TRUE: Option<bool> = Some(true);
    const FALSE: Option<bool> = Some(false);

    #[test]
    fn absent_values_are_unknown() {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
        let of = |text| verdicts(text, PropertyType::Scalar(ScalarType::Int64), &column);
        for (text, expected) in [
            ("x=1", [TRUE, None, FALSE]),
            ("x!=1", [FALSE, None, TRUE]),
            ("not x=1", [FALSE, None, TRUE]),
            ("x is null", [FALSE, TRUE, FALSE]),
            ("x is not null", [TRUE, FALSE, TRUE]),
            ("x=1 or x is null", [TRUE, TRUE, FALSE]),
            ("x=1 and x is null", [FALSE, None, FALSE]),
            ("x in (3, 1, 3)", [TRUE, None, TRUE]),
            ("x not in (3)", [TRUE, None, FALSE]),
            ("x in ()", [FALSE, None, FALSE]),
            ("x between 2 and 3", [FALSE, None, TRUE]),
            ("x between 3 and 2", [FALSE, None, FALSE]),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }

    #[test]
    fn zeros_are_equal_and_nan_is_the_greatest() {
        let column: ArrayRef = Arc::new(Float64Array::from(vec![-0.0, 0.0, 1.0, f64::INFINITY, f64::NAN, -f64::NAN]));
        for (text, expected) in [
            ("x=0", [true, true, false, false, false, false]),
            ("x=-0.0", [true, true, false, false, false, false]),
            ("x<0", [false; 6]),
            ("x>=0", [true; 6]),
            ("x=NaN", [false, false, false, false, true, true]),
            ("x>1e308", [false, false, false, true, true, true]),
            ("x<NaN", [true, true, true, true, false, false]),
            ("x=Infinity", [false, false, false, true, false, false]),
            ("x<=-Infinity", [false; 6]),
            ("x in (NaN, 0)", [true, true, false, false, true, true]),
            ("x between -0.0 and 1", [true, true, true, false, false, false]),
        ] {
            let found = verdicts(text, PropertyType::Scalar(ScalarType::Float64), &column);
            assert_eq!(found, expected.map(Some), "{text}");
        }
    }

    #[test]
    fn text_and_lists_are_searched() {
        let column: ArrayRef = Arc::new(StringArray::from(vec![Some("Annabel"), Some("Joanna"), None]));
        for (text, expected) in [
            ("x starts with Ann", [TRUE, FALSE, None]),
            ("x contains anna", [FALSE, TRUE, None]),
            ("x contains ''", [TRUE, TRUE, None]),
        ] {
            assert_eq!(verdicts(text, PropertyType::Scalar(ScalarType::String), &column), expected, "{text}");
        }
        let mut lists = ListBuilder::new(StringBuilder::new());
        for items in [Some(vec![Some("en"), None]), Some(vec![]), None, Some(vec![None])] {
            match items {
                Some(items) => lists.append_value(items),
                None => lists.append_null(),
            }
        }
        let column: ArrayRef = Arc::new(lists.finish());
        let kind = PropertyType::List(ScalarType::String);
        assert_eq!(verdicts("x contains en", kind, &column), [TRUE, FALSE, None, FALSE]);
        assert_eq!(verdicts("x is null", kind, &column), [FALSE, FALSE, TRUE, FALSE]);
        // The list before a slice counts no longer.
        assert_eq!(verdicts("x contains en", kind, &column.slice(1, 3)), [FALSE, None, FALSE]);
    }

    #[test]
    fn values_and_requirements_have_to_fit_the_type() {
        use ScalarType::{Bool, Date, Float64, Int64, String, Timestamp};
        let typed = |text: &str, kind| {
            let condition: Condition = text.parse().unwrap();
            condition.tests()[0].typed(kind).map(|_| ()).map_err(|error| error.to_string())
        };
        for kind in [Timestamp, Date] {
            typed("x<2011-01-01", PropertyType::Scalar(kind)).unwrap();
        }
        for (text, kind, why) in [
            ("x<2011-01-01", PropertyType::Scalar(Int64), "x is compared as int64, and \"2011-01-01\" is not an int64"),
            ("x in (1,2,z)", PropertyType::Scalar(Float64), "\"z\" is not a float64"),
            ("x<1970-01-02T23:59:59Z", PropertyType::Scalar(Date), "has an offset, and a date has none"),
            ("x<1970-01-02T23:59:59", PropertyType::Scalar(Date), "has a time of day, and a date has none"),
            ("x=1970-1-2", PropertyType::Scalar(Date), "is not a date such as"),
            ("x<1970-01-02T00:00:00.0000001Z", PropertyType::Scalar(Timestamp), "is finer than the microseconds"),
            ("x<1e400", PropertyType::Scalar(Float64), "is too large for a float64"),
            ("x=yes", PropertyType::Scalar(Bool), "is not true or false"),
            ("x starts with 1", PropertyType::Scalar(Int64), "only strings"),
            ("x contains 1", PropertyType::Scalar(Bool), "only strings and lists"),
            ("x=1", PropertyType::List(Int64), "test it with `contains`"),
            ("x contains z", PropertyType::List(Int64), "\"z\" is not an int64"),
            ("x between a and b", PropertyType::List(String), "test it with `contains`"),
        ] {
            let error = typed(text, kind).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
