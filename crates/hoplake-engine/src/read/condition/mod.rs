//! Conditions on properties: `since >= 2011-01-01 and (name starts with "A" or age is null)`.
//!
//! One language for hops, scans and paths, on the command line, in requests and in Rust. A condition is a [`Formula`] over *tests*; a
//! test compares a property, a label or a vertex with values. `docs/querying.md` describes the text form for users.
//!
//! ```text
//! text ── parse ──▶ Condition ── typed, for each owner of a property ──▶ TypedTest ── columns ──▶ Verdicts
//! typed values ──────▶
//! ```
//! The values of a parsed condition stay text until the type of the property is known, because a property of one name may have another
//! type on each label. Typed values are converted then, if that is exact, and are never written as text ([`Operand`]).
//!
//! **Absent values.** As in SQL a test of an absent value is neither true nor false but *unknown*, but for `is null`; `not` leaves
//! unknown as it is, and what is not true does not match. So `not (age = 3)` does not match a vertex without an age.

mod indexed;
mod logic;
mod operand;
mod parse;
mod possible;
mod test;
mod text;
mod verdicts;

use std::{collections::BTreeSet, convert::Infallible};

use hoplake_format::VertexId;

use crate::EngineError;

pub(crate) use indexed::ItemRanges;
use logic::Node;
pub use logic::{Formula, ShownTest, ThreeValued, Truth};
pub use operand::Operand;
use parse::TESTS_MAX;
pub(crate) use possible::Bounds;
pub(crate) use test::TypedTest;
pub use test::{Comparison, PropertyName, PropertyOf, Requirement, Test};
pub(crate) use verdicts::{Verdicts, VerdictsBuilder};

/// A condition on properties, labels and vertices.
///
/// ```
/// use hoplake_engine::{Comparison, Condition, change::Value};
///
/// let read: Condition = "since >= 2011 and not (name = 'Ann' or name is null)".parse().unwrap();
/// let unnamed = Condition::compare("name", Comparison::Equal, "Ann").or(Condition::is_null("name"));
/// assert_eq!(read, Condition::compare("since", Comparison::GreaterOrEqual, "2011").and(unnamed.negated()));
///
/// // The same of values that are not text. Only an integer compares with it: "2011" may also be a string.
/// let typed = Condition::compare("since", Comparison::GreaterOrEqual, Value::Int64(2011));
/// assert_eq!(typed.to_string(), "since >= 2011");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition(Formula<Test>);

impl Condition {
    /// A single test of a property.
    pub fn test(property: impl Into<PropertyName>, requirement: Requirement) -> Self {
        Self(Formula::test(Test::Property(property.into(), requirement)))
    }

    /// `property = value` and its like. Text is a value that the property's type reads.
    pub fn compare(property: impl Into<PropertyName>, comparison: Comparison, value: impl Into<Operand>) -> Self {
        Self::test(property, Requirement::Compare(comparison, value.into()))
    }

    /// `property in (values)`.
    pub fn one_of<V: Into<Operand>>(property: impl Into<PropertyName>, values: impl IntoIterator<Item = V>) -> Self {
        Self::test(property, Requirement::OneOf(values.into_iter().map(Into::into).collect()))
    }

    /// `property is null`.
    pub fn is_null(property: impl Into<PropertyName>) -> Self {
        Self::test(property, Requirement::IsNull)
    }

    /// A test of the label of the vertex, which is a string. The text form does not have it.
    pub fn vertex_label(requirement: Requirement) -> Self {
        Self(Formula::test(Test::VertexLabel(requirement)))
    }

    /// A test of the label of the edge, which is a string; unknown where no edge was followed. The text form does not have it.
    pub fn edge_label(requirement: Requirement) -> Self {
        Self(Formula::test(Test::EdgeLabel(requirement)))
    }

    /// Whether the vertex is one of these. The text form does not have it.
    pub fn vertex_in(vertices: impl IntoIterator<Item = VertexId>) -> Self {
        Self(Formula::test(Test::Vertex(vertices.into_iter().collect::<BTreeSet<_>>())))
    }

    /// Both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0.and(other.0))
    }

    /// Either or both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(self.0.or(other.0))
    }

    /// What this one is false for; not what it is unknown for.
    #[must_use]
    pub fn negated(self) -> Self {
        Self(self.0.negated())
    }

    /// Its tests, in their order in the text.
    pub fn tests(&self) -> Vec<&Test> {
        self.0.tests()
    }

    /// Its verdict, from those of its tests: see [`Formula::evaluate`].
    ///
    /// # Errors
    /// The first error of a test.
    pub fn evaluate<V: ThreeValued, E>(&self, of_test: impl FnMut(&Test) -> Result<V, E>) -> Result<V, E> {
        self.0.evaluate(of_test)
    }

    /// The verdicts of the condition on some rows, from those of its tests in the order of [`Self::tests`].
    pub(crate) fn combine(&self, tests: Vec<Verdicts>) -> Verdicts {
        let mut tests = tests.into_iter();
        let verdicts = self.evaluate(|_| Ok::<_, Infallible>(tests.next().expect("each test has its verdicts")));
        verdicts.unwrap_or_else(|never| match never {})
    }

    /// Rejects a condition of more tests than are allowed: each has a verdict on every row.
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
    use crate::value::Value;

    pub(super) fn typed(test: &Test, kind: PropertyType) -> Result<TypedTest, EngineError> {
        let Test::Property(property, requirement) = test else { panic!("the text form tests properties") };
        requirement.typed(&property.name, kind)
    }

    /// Conditions of every shape, with names and values that need quotes.
    pub(crate) fn conditions() -> impl Strategy<Value = Condition> {
        let word = || prop_oneof!["[ab=<>!,\\]\\[()\"'. ]{0,4}", "not|and|null|edge.a|7"];
        let name = (word(), 0..3usize).prop_map(|(name, of)| PropertyName {
            name,
            of: [PropertyOf::Either, PropertyOf::Edge, PropertyOf::Vertex][of],
        });
        let requirement = prop_oneof![
            (0..6usize, word()).prop_map(|(at, value)| Requirement::Compare(Comparison::ALL[at], value.into())),
            prop::collection::vec(word().prop_map(Operand::from), 0..4).prop_map(Requirement::OneOf),
            (word(), word()).prop_map(|(least, greatest)| Requirement::Between(least.into(), greatest.into())),
            word().prop_map(Requirement::StartsWith),
            word().prop_map(Requirement::EndsWith),
            word().prop_map(|value| Requirement::Contains(value.into())),
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
        fn any_text_is_read_or_rejected(text in "([ab=<>!,()\"' ]|and|or|not|in|is|null|between){0,30}") {
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
            // A property may have the name of a word that only stands behind one.
            ("ends ends with ends and ends=1", "ends ends with ends and ends = 1"),
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
            ("code ends", "ends where `with` is needed"),
            ("code not 3", "where in, between, starts with, ends with or contains is needed"),
        ] {
            let error = text.parse::<Condition>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn hostile_conditions_are_rejected_before_they_are_built() {
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
            let each = tests.iter().map(|test| typed(test, kind).unwrap().evaluate(column).unwrap());
            condition.combine(each.collect()).matching()
        };
        let yes = of(&condition);
        let no = of(&condition.clone().negated());
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
            ("x ends with na", [FALSE, TRUE, None]),
            ("x not ends with na", [TRUE, FALSE, None]),
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
            typed(condition.tests()[0], kind).map(|_| ()).map_err(|error| error.to_string())
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
            ("x ends with 1", PropertyType::Scalar(Int64), "only strings"),
            ("x contains 1", PropertyType::Scalar(Bool), "only strings and lists"),
            ("x=1", PropertyType::List(Int64), "test it with `contains`"),
            ("x contains z", PropertyType::List(Int64), "\"z\" is not an int64"),
            ("x between a and b", PropertyType::List(String), "test it with `contains`"),
        ] {
            let error = typed(text, kind).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn typed_values_are_those_of_the_text() {
        use PropertyType::Scalar;
        let compare = |value: Value| Condition::compare("x", Comparison::LessOrEqual, value);
        for (kind, value, text) in [
            (ScalarType::Bool, Value::Bool(false), "x <= false"),
            (ScalarType::Int64, Value::Int64(i64::MIN), "x <= -9223372036854775808"),
            (ScalarType::Float64, Value::Float64(0.1), "x <= 0.1"),
            (ScalarType::Float64, Value::Float64(f64::NAN), "x <= NaN"),
            (ScalarType::Float64, Value::Int64(3), "x <= 3"),
            (ScalarType::String, Value::from("it's \"and\""), "x <= \"it's \"\"and\"\"\""),
            (ScalarType::Date, Value::Date(20_513), "x <= 2026-03-01"),
            (ScalarType::Timestamp, Value::Timestamp(1_266_161_530_447_001), "x <= 2010-02-14T15:32:10.447001Z"),
        ] {
            let condition = compare(value);
            assert_eq!(condition.to_string(), text);
            let read: Condition = text.parse().unwrap();
            let [a, b] = [&condition, &read].map(|it| match typed(it.tests()[0], Scalar(kind)).unwrap() {
                TypedTest::Compare(Comparison::LessOrEqual, value) => value.into_inner(),
                other => panic!("{other:?}"),
            });
            assert_eq!(&a, &b, "{text}");
        }
        for (kind, value, why) in [
            (Scalar(ScalarType::Int64), Value::from("3"), "x is compared as int64, and \"3\" is not a value of int64"),
            (Scalar(ScalarType::Int64), Value::Float64(3.0), "3.0 is not a value of int64"),
            (Scalar(ScalarType::Float64), Value::Int64(i64::MAX), "9223372036854775807 is not a value of float64"),
            (Scalar(ScalarType::String), Value::Int64(3), "3 is not a value of string"),
            (Scalar(ScalarType::Timestamp), Value::Date(1), "1970-01-02 is not a value of timestamp"),
            (Scalar(ScalarType::Int64), Value::Null, "null equals nothing; test it with `is null`"),
            (PropertyType::List(ScalarType::Int64), Value::Int64(3), "test it with `contains`"),
        ] {
            let error = typed(compare(value).tests()[0], kind).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn labels_are_compared_as_strings() {
        let one_of = Requirement::OneOf(vec!["city".into(), Value::from("town").into()]);
        assert_eq!(one_of.of_label("town").unwrap(), Some(true));
        assert_eq!(one_of.of_label("road").unwrap(), Some(false));
        let number = Requirement::Compare(Comparison::Equal, Value::Int64(3).into());
        let error = number.of_label("3").unwrap_err().to_string();
        assert!(error.contains("~label is compared as string, and 3 is not a value of string"), "{error}");
        let vertices = [2, 1].map(|ordinal| VertexId::new(hoplake_format::LabelId(0), ordinal).unwrap());
        let condition = Condition::vertex_label(one_of).and(Condition::vertex_in(vertices).negated());
        assert_eq!(condition.to_string(), "vertex.~label in (city, town) and vertex.~id not in (0:1, 0:2)");
    }
}
