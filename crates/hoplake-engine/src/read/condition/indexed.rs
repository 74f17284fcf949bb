//! What a property index knows of a condition: the items of the vertices that may match it.
//!
//! Items are compared byte by byte ([`hoplake_format::property_index`]), so ranges of them end with bytes that are no text: behind all
//! that begin with a value comes the value and a byte that no UTF-8 has.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, Datum, Scalar};
use hoplake_format::property_index::{ValueColumn, ValueText};

use super::{Comparison, Condition, Node, Test, TypedTest};
use crate::memory::bytes_of;

/// No byte of UTF-8 is as great.
const BEHIND_ALL: u8 = 0xff;

/// Ranges of items, which ascend and do not overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ItemRanges {
    pub(crate) ranges: Vec<Range<Vec<u8>>>,
    /// Whether all vertices with these items match the test.
    pub(crate) exact: bool,
}

impl ItemRanges {
    fn of(mut ranges: Vec<Range<Vec<u8>>>, exact: bool) -> Self {
        ranges.retain(|range| range.start < range.end);
        Self { ranges, exact }
    }

    /// The items that are in both.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let mut both = Vec::new();
        let mut a = self.ranges.iter().peekable();
        let mut b = other.ranges.iter().peekable();
        while let (Some(left), Some(right)) = (a.peek(), b.peek()) {
            both.push(left.start.clone().max(right.start.clone())..left.end.clone().min(right.end.clone()));
            // What ends first has nothing in common with what follows.
            if left.end <= right.end {
                a.next()
            } else {
                b.next()
            };
        }
        Self::of(both, self.exact && other.exact)
    }

    /// Those that may have items of a stretch, which begins with no less than `from` and ends before `until`.
    pub(crate) fn within(&self, from: &[u8], until: Option<&[u8]>) -> &[Range<Vec<u8>>] {
        let first = self.ranges.partition_point(|range| range.end.as_slice() <= from);
        let behind = |until: &[u8]| self.ranges.partition_point(|range| range.start.as_slice() < until);
        &self.ranges[first..until.map_or(self.ranges.len(), behind).max(first)]
    }

    /// The memory that they take.
    pub(crate) fn bytes(&self) -> u64 {
        let texts: usize = self.ranges.iter().map(|range| range.start.capacity() + range.end.capacity()).sum();
        texts as u64 + bytes_of::<Range<Vec<u8>>>(self.ranges.capacity())
    }

    /// Whether an item is in one of them.
    pub(crate) fn has(&self, item: &str) -> bool {
        let at = self.ranges.partition_point(|range| range.end.as_slice() <= item.as_bytes());
        self.ranges.get(at).is_some_and(|range| range.start.as_slice() <= item.as_bytes())
    }
}

impl Condition {
    /// The tests that all rows match which match the condition, and whether these are all of it.
    pub(crate) fn required(&self) -> (Vec<&Test>, bool) {
        match &self.0.0 {
            Node::Test(test) => (vec![test], true),
            Node::All(parts) => {
                let of = |part: &'_ Node<Test>| matches!(part, Node::Test(_));
                let tests = parts.iter().filter_map(|part| if let Node::Test(test) = part { Some(test) } else { None });
                (tests.collect(), parts.iter().all(of))
            }
            Node::Any(_) | Node::Not(_) => (Vec::new(), false),
        }
    }
}

impl TypedTest {
    /// The items of the values that may match it; `None` if an index does not help.
    pub(crate) fn item_ranges(&self) -> Option<ItemRanges> {
        match self {
            Self::Compare(comparison, value) => compared(*comparison, &value_of(value)?),
            Self::Between(least, greatest) => {
                let from = compared(Comparison::GreaterOrEqual, &value_of(least)?)?;
                Some(from.and(&compared(Comparison::LessOrEqual, &value_of(greatest)?)?))
            }
            Self::OneOf(values) => {
                let column = ValueColumn::of(values)?;
                let mut values: Vec<_> = (0..values.len()).filter_map(|row| column.value(row)).collect();
                // Those that begin alike for long, and equal ones, are one range.
                values.sort_unstable();
                values.dedup();
                let exact = !values.iter().any(ValueText::is_cut);
                Some(ItemRanges::of(values.iter().map(|value| before(value)..behind(value)).collect(), exact))
            }
            Self::StartsWith(start) => {
                let start = ValueText::of_start(start);
                Some(ItemRanges::of(vec![before(&start)..behind(&start)], !start.is_cut()))
            }
            Self::EndsWith(_) | Self::ContainsText(_) | Self::ContainsItem(_) | Self::IsNull => None,
        }
    }
}

fn compared(comparison: Comparison, value: &ValueText) -> Option<ItemRanges> {
    let all = || Vec::new()..vec![BEHIND_ALL];
    let range = match comparison {
        Comparison::Equal => before(value)..behind(value),
        Comparison::NotEqual => return None,
        // Values that begin like this one for long may be on either side of it.
        Comparison::Less if value.is_cut() => all().start..behind(value),
        Comparison::Less => all().start..before(value),
        Comparison::LessOrEqual => all().start..behind(value),
        Comparison::Greater if value.is_cut() => before(value)..all().end,
        Comparison::Greater => behind(value)..all().end,
        Comparison::GreaterOrEqual => before(value)..all().end,
    };
    Some(ItemRanges::of(vec![range], !value.is_cut()))
}

fn value_of(value: &Scalar<ArrayRef>) -> Option<ValueText> {
    ValueColumn::of(value.get().0)?.value(0)
}

fn before(value: &ValueText) -> Vec<u8> {
    value.as_str().as_bytes().to_vec()
}

fn behind(value: &ValueText) -> Vec<u8> {
    [value.as_str().as_bytes(), &[BEHIND_ALL]].concat()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Float64Array, Int64Array, StringArray};
    use hoplake_format::{PropertyType, ScalarType, property_index::TEXT_CHARACTERS_MAX};

    use super::{super::tests::typed, *};

    /// Every range has the items of all values that match the test, and unless it says so of no others.
    fn check(text: &str, kind: ScalarType, column: &ArrayRef) {
        let condition: Condition = text.parse().unwrap();
        let (tests, whole) = condition.required();
        assert!(whole, "{text}");
        let tests: Vec<_> = tests.iter().map(|test| typed(test, PropertyType::Scalar(kind)).unwrap()).collect();
        let ranges = tests.iter().map(|test| test.item_ranges().unwrap());
        let ranges = ranges.reduce(|a, b| a.and(&b)).unwrap();
        let verdicts = condition.combine(tests.iter().map(|test| test.evaluate(column).unwrap()).collect()).matching();
        let values = ValueColumn::of(column).unwrap();
        for row in 0..column.len() {
            let Some(value) = values.value(row) else {
                assert!(!verdicts.value(row));
                continue;
            };
            for ordinal in [0, 77, (1 << 48) - 1] {
                let has = ranges.has(&value.item(ordinal));
                let expected = verdicts.value(row);
                assert!(has == expected || has && !ranges.exact, "{text} of row {row}");
            }
        }
    }

    #[test]
    fn ranges_have_the_items_of_what_matches_a_test() {
        let long = "x".repeat(TEXT_CHARACTERS_MAX);
        let texts = ["", "A", "AUS", "AUSTIN", "B", "a\0", "a", "a\u{10ffff}", &long];
        let texts = texts.iter().map(|it| (*it).to_owned()).chain([format!("{long}a"), format!("{long}b")]);
        let texts: Vec<_> = texts.collect();
        let column: ArrayRef = Arc::new(texts.iter().map(Some).chain([None]).collect::<StringArray>());
        for value in texts.iter().chain(&["AU".to_owned(), "zz".to_owned(), format!("{long}aa")]) {
            for sign in Comparison::ALL.iter().filter(|it| **it != Comparison::NotEqual) {
                check(&format!("x {} '{value}'", sign.sign()), ScalarType::String, &column);
            }
            check(&format!("x starts with '{value}'"), ScalarType::String, &column);
            check(&format!("x in ('{value}', AUS, '')"), ScalarType::String, &column);
            check(&format!("x between A and '{value}'"), ScalarType::String, &column);
            check(
                &format!("x > A and x <= '{value}' and x != B and x >= ''").replace(" and x != B", ""),
                ScalarType::String,
                &column,
            );
        }
        let floats = [-0.0, 0.0, 1.5, -1.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN, 1e300];
        let column: ArrayRef = Arc::new(Float64Array::from(floats.to_vec()));
        for value in ["0", "-0.0", "1.5", "NaN", "Infinity", "-Infinity", "7"] {
            for sign in Comparison::ALL.iter().filter(|it| **it != Comparison::NotEqual) {
                check(&format!("x {} {value}", sign.sign()), ScalarType::Float64, &column);
            }
            check(&format!("x in ({value}, NaN) and x < 8"), ScalarType::Float64, &column);
        }
        let column: ArrayRef = Arc::new(Int64Array::from(vec![Some(i64::MAX), Some(i64::MAX - 1), None, Some(-7)]));
        for value in [i64::MAX, i64::MAX - 1, i64::MAX - 2, 0, -7] {
            check(&format!("x >= {value}"), ScalarType::Int64, &column);
            check(&format!("x in ({value}, {value}, 3)"), ScalarType::Int64, &column);
        }
    }

    #[test]
    fn ranges_of_a_stretch_are_those_that_have_items_in_it() {
        let ranges: Vec<_> = [("b", "d"), ("d", "dd"), ("k", "m")].map(|(a, b)| a.into()..b.into()).to_vec();
        let ranges = ItemRanges { ranges, exact: true };
        let of = |from: &str, until: Option<&str>| {
            let found = ranges.within(from.as_bytes(), until.map(str::as_bytes));
            found.iter().map(|range| range.start.clone()).collect::<Vec<_>>().concat()
        };
        for (from, until, expected) in [
            ("", None, "bdk"),
            ("", Some("b"), ""),
            ("", Some("ba"), "b"),
            ("c", Some("d"), "b"),
            ("d", Some("k"), "d"),
            ("dd", Some("ka"), "k"),
            ("e", Some("f"), ""),
            ("m", None, ""),
        ] {
            assert_eq!(String::from_utf8(of(from, until)).unwrap(), expected, "{from} {until:?}");
        }
    }

    #[test]
    fn what_an_index_cannot_answer_has_no_ranges() {
        let of = |text: &str| {
            let condition: Condition = text.parse().unwrap();
            let (tests, whole) = condition.required();
            let kind = PropertyType::Scalar(ScalarType::String);
            let ranges = tests.iter().filter_map(|test| typed(test, kind).unwrap().item_ranges());
            (ranges.count(), whole)
        };
        assert_eq!(of("x = a or x = b"), (0, false));
        assert_eq!(of("not x = a"), (0, false));
        assert_eq!(of("x != a"), (0, true));
        assert_eq!(of("x is null and x contains a"), (0, true));
        assert_eq!(of("x = a and (x = b or x = c)"), (1, false));
        let none: Condition = "x between b and a".parse().unwrap();
        let typed = typed(none.tests()[0], PropertyType::Scalar(ScalarType::String)).unwrap();
        assert_eq!(typed.item_ranges().unwrap().ranges, []);
    }
}
