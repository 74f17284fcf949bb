//! Items of property indexes: the value of a property of a vertex, and its ordinal, as one text.
//!
//! ```text
//! number   digits of 6 bits, without zeros at the end │ "!"        │ ordinal, 8 digits
//! text     the text, NUL as NUL 1                      │ NUL NUL    │ ordinal, 8 digits
//! text of more than 128 characters: the first 128      │ NUL 2      │ ordinal, 8 digits
//! ```
//! Items compare byte by byte as values do, and those of one value by ordinal. So an index is a section of text keys like any
//! other: sorted runs, front coding, separators and merges are those of keys, and a value that a million vertices have spans blocks
//! by itself, for some three bytes each.
//!
//! **Numbers** of all types have one form: the float64 that is not greater, its bits in an order that compares as unsigned numbers
//! do, and what an integer has beyond it. An integer that a float64 holds has the same item in both types, so that an index
//! outlives the widening of its property. −0.0 is 0.0, and any NaN is the greatest number.
//!
//! **Long texts** are cut, at a number of characters and not of bytes: texts then compare as their items do, except those that begin
//! with the same 128 characters. Whoever asks for such a text tests the row.

use std::fmt;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};

use crate::{FormatError, LabelId, PropertyType, Schema, VertexId};

/// Characters of a text that its item has.
pub const TEXT_CHARACTERS_MAX: usize = 128;

/// Digits of an ordinal: 48 bits.
const ORDINAL_DIGITS: usize = 8;
/// Digits of a number: 64 bits of the float64, and 14 for the rest of an integer, which is less than 2¹⁰.
const NUMBER_DIGITS: usize = 13;
const REST_BITS: u32 = 14;
/// A digit is one of 64 characters in the order of ASCII, from `0` to `o`.
const ZERO: u8 = b'0';
/// Behind the digits of a number; less than any of them.
const NUMBER_END: char = '!';
/// Behind a text, a text that was cut, and within one for a NUL: no text that goes on is less than one that ends.
const TEXT_END: &str = "\0\0";
const TEXT_CUT: &str = "\0\u{2}";
const TEXT_NUL: &str = "\0\u{1}";

/// The number of a property index. It is given once, until a load replaces the graph and begins again at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexId(pub u16);

/// A property index, as a manifest lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PropertyIndex {
    /// Its number.
    pub id: IndexId,
    /// The label whose vertices it finds.
    pub label: LabelId,
    /// The name of the property, which is not a list.
    pub property: String,
    /// The ULID of the writer that is building it; commits keep such an index, and no query uses it.
    pub writer: Option<String>,
}

impl PropertyIndex {
    /// Whether queries may use it.
    pub fn is_ready(&self) -> bool {
        self.writer.is_none()
    }

    /// The label and the property of `label.property`, which can have an index.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if there is no such property, or it is a list.
    pub fn named(schema: &Schema, name: &str) -> Result<(LabelId, String), FormatError> {
        // Names may have dots, so each is tried; the first label that has the rest as a property is meant.
        let splits = name.match_indices('.').filter_map(|(at, _)| {
            let label = schema.label_id(&name[..at])?;
            Some((label, &name[at + 1..]))
        });
        let splits: Vec<_> = splits.collect();
        let has = |(label, property): &&(LabelId, &str)| {
            schema.label(*label).is_some_and(|of| of.properties.iter().any(|it| it.name == *property))
        };
        let Some((label, property)) = splits.iter().find(has).or(splits.first()) else {
            let known: Vec<_> = schema.vertex_labels.iter().map(|label| label.name.as_str()).collect();
            let why = format!(
                "an index is written as label.property, such as airport.code, and {name:?} begins with no label of {}",
                known.join(", ")
            );
            return Err(FormatError::Invalid(why));
        };
        Self::check(schema, *label, property)?;
        Ok((*label, (*property).to_owned()))
    }

    /// The items of some rows, each of a vertex with an ordinal. A row without the value has none, and neither have rows without the
    /// column.
    ///
    /// # Errors
    /// [`FormatError::Corrupt`] if the column is of a type that has no index.
    pub fn items<'a>(
        &self,
        rows: &'a RecordBatch,
        ordinals: impl Iterator<Item = u64> + 'a,
    ) -> Result<impl Iterator<Item = String> + 'a, FormatError> {
        let of = |column: &'a ArrayRef| {
            let why = || format!("{:?} is {}, which has no index", self.property, column.data_type());
            ValueColumn::of(column.as_ref()).ok_or_else(|| FormatError::corrupt("table", why()))
        };
        let values = rows.column_by_name(&self.property).map(of).transpose()?;
        let numbered = ordinals.enumerate();
        Ok(numbered.filter_map(move |(row, ordinal)| Some(values.as_ref()?.value(row)?.item(ordinal))))
    }

    /// Whether a property can have an index.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if the label does not have it, or it is a list.
    pub fn check(schema: &Schema, label: LabelId, property: &str) -> Result<(), FormatError> {
        let unknown = || FormatError::Invalid("an index needs a vertex label that exists".into());
        let of = schema.label(label).ok_or_else(unknown)?;
        let Some(found) = of.properties.iter().find(|it| it.name == property) else {
            return Err(FormatError::Invalid(format!("vertices of {} have no property {property:?}", of.name)));
        };
        match found.kind {
            PropertyType::Scalar(_) => Ok(()),
            PropertyType::List(_) => {
                let why = format!("{}.{property} is a {}, and lists have no index", of.name, found.kind);
                Err(FormatError::Invalid(why))
            }
        }
    }
}

/// The value of a property as items have it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValueText {
    text: String,
    cut: bool,
}

impl ValueText {
    /// Of an integer.
    pub fn of_integer(value: i64) -> Self {
        let mut float = value as f64;
        if float as i128 > i128::from(value) {
            float = float.next_down();
        }
        // At most 2^10 − 1: 64 bits less the 53 of a float64, and one.
        let rest = (i128::from(value) - float as i128) as u128;
        Self::of_number(float, rest)
    }

    /// Of a floating-point number.
    pub fn of_float(value: f64) -> Self {
        Self::of_number(value, 0)
    }

    /// Of text.
    pub fn of_text(value: &str) -> Self {
        let (mut text, cut) = escaped(value);
        text.push_str(if cut { TEXT_CUT } else { TEXT_END });
        Self { text, cut }
    }

    /// What the items of all texts begin with that begin with `start`.
    pub fn of_start(start: &str) -> Self {
        match escaped(start) {
            (text, false) => Self { text, cut: false },
            (_, true) => Self::of_text(start),
        }
    }

    fn of_number(float: f64, rest: u128) -> Self {
        let bits = match float {
            value if value.is_nan() => 0x7ff8_0000_0000_0000,
            0.0 => 0,
            value => value.to_bits(),
        };
        // Negative numbers ascend as their bits descend, and come before the others.
        let ordered = if bits >> 63 == 0 { bits ^ 1 << 63 } else { !bits };
        let number = u128::from(ordered) << REST_BITS | rest;
        let mut text = digits(number, NUMBER_DIGITS);
        text.truncate(text.trim_end_matches(char::from(ZERO)).len());
        text.push(NUMBER_END);
        Self { text, cut: false }
    }

    /// As the items of the value begin.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether other values begin their items alike, so that a row has to be tested.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// The item of a vertex that has the value.
    pub fn item(&self, ordinal: u64) -> String {
        let mut item = String::with_capacity(self.text.len() + ORDINAL_DIGITS);
        item.push_str(&self.text);
        item.push_str(&digits(u128::from(ordinal), ORDINAL_DIGITS));
        item
    }
}

/// The ordinal in an item.
///
/// # Errors
/// [`FormatError::Corrupt`] if it has none.
pub fn ordinal_of(item: &str) -> Result<u64, FormatError> {
    let digits = item.as_bytes().last_chunk::<ORDINAL_DIGITS>().filter(|_| item.len() > ORDINAL_DIGITS);
    let ordinal = digits.and_then(|digits| {
        digits.iter().try_fold(0, |ordinal, digit| {
            let digit = digit.checked_sub(ZERO).filter(|digit| *digit < 64)?;
            Some(ordinal << 6 | u64::from(digit))
        })
    });
    ordinal.filter(|ordinal| *ordinal <= VertexId::ORDINAL_MAX).ok_or_else(|| {
        FormatError::corrupt("property index", format!("{item:?} does not end with the ordinal of a vertex"))
    })
}

/// The last digits of a number.
fn digits(number: u128, count: usize) -> String {
    (0..count).rev().map(|digit| char::from(ZERO + (number >> (6 * digit) & 63) as u8)).collect()
}

/// The first characters of a text, and whether it has more.
fn escaped(value: &str) -> (String, bool) {
    let mut text = String::with_capacity(value.len().min(4 * TEXT_CHARACTERS_MAX) + TEXT_END.len());
    let mut characters = value.chars();
    for character in characters.by_ref().take(TEXT_CHARACTERS_MAX) {
        match character {
            '\0' => text.push_str(TEXT_NUL),
            other => text.push(other),
        }
    }
    (text, characters.next().is_some())
}

/// A column whose values become items.
#[derive(Debug, Clone, Copy)]
pub enum ValueColumn<'a> {
    /// Of `bool`; false before true.
    Bools(&'a BooleanArray),
    /// Of `int64`.
    Integers(&'a Int64Array),
    /// Of `float64`.
    Floats(&'a Float64Array),
    /// Of `string`.
    Texts(&'a StringArray),
    /// Of `date`.
    Dates(&'a Date32Array),
    /// Of `timestamp`.
    Timestamps(&'a TimestampMicrosecondArray),
}

impl<'a> ValueColumn<'a> {
    /// The column of a property that can have an index; `None` of other columns.
    pub fn of(column: &'a dyn Array) -> Option<Self> {
        let any = column.as_any();
        any.downcast_ref()
            .map(Self::Bools)
            .or_else(|| any.downcast_ref().map(Self::Integers))
            .or_else(|| any.downcast_ref().map(Self::Floats))
            .or_else(|| any.downcast_ref().map(Self::Texts))
            .or_else(|| any.downcast_ref().map(Self::Dates))
            .or_else(|| any.downcast_ref().map(Self::Timestamps))
    }

    /// The value of a row; `None` if it is absent, and so in no index.
    pub fn value(&self, row: usize) -> Option<ValueText> {
        match self {
            Self::Bools(column) => column.is_valid(row).then(|| ValueText::of_integer(column.value(row).into())),
            Self::Integers(column) => column.is_valid(row).then(|| ValueText::of_integer(column.value(row))),
            Self::Floats(column) => column.is_valid(row).then(|| ValueText::of_float(column.value(row))),
            Self::Texts(column) => column.is_valid(row).then(|| ValueText::of_text(column.value(row))),
            Self::Dates(column) => column.is_valid(row).then(|| ValueText::of_integer(column.value(row).into())),
            Self::Timestamps(column) => column.is_valid(row).then(|| ValueText::of_integer(column.value(row))),
        }
    }
}

impl fmt::Display for IndexId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::*;

    fn order(a: &ValueText, b: &ValueText) -> Ordering {
        // Whatever the ordinals, items of a lesser value are less.
        let of = [a.item(VertexId::ORDINAL_MAX).cmp(&b.item(0)), a.item(0).cmp(&b.item(VertexId::ORDINAL_MAX))];
        assert!(a == b || of[0] == of[1], "{a:?} {b:?}");
        if a == b { Ordering::Equal } else { of[0] }
    }

    fn of_floats(a: f64, b: f64) -> Ordering {
        a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
    }

    #[test]
    fn items_never_change() {
        assert_eq!(ValueText::of_integer(5).item(1), "`1@!00000001");
        assert_eq!(ValueText::of_integer(0).item(70), "P!00000016");
        assert_eq!(ValueText::of_float(-1.5).item(0), "@0Ooooooool!00000000");
        assert_eq!(ValueText::of_text("a\0b").item(VertexId::ORDINAL_MAX), "a\0\u{1}b\0\0oooooooo");
        assert_eq!(ValueText::of_integer(i64::MAX).as_str().len(), 14);
    }

    #[test]
    fn the_greatest_integers_are_in_order() {
        for near in [1 << 53, 1 << 60, i64::MAX - 3_000, -(1 << 53), -(1 << 60), i64::MIN + 3_000] {
            for value in near - 2_500..near + 2_500_i64 {
                assert_eq!(order(&ValueText::of_integer(value), &ValueText::of_integer(value + 1)), Ordering::Less);
            }
        }
    }

    #[test]
    fn texts_that_begin_alike_for_long_are_marked() {
        let long = "é".repeat(TEXT_CHARACTERS_MAX);
        let whole = ValueText::of_text(&long);
        let [longer, other] = ["x", "\u{10ffff}"].map(|end| ValueText::of_text(&format!("{long}{end}")));
        assert!(!whole.is_cut() && longer.is_cut() && longer == other);
        assert_eq!(order(&whole, &longer), Ordering::Less);
        assert!(whole.as_str().starts_with(ValueText::of_start(&long[..64]).as_str()));
        assert!(longer.as_str().starts_with(ValueText::of_start(&long).as_str()));
        assert_eq!(ValueText::of_start(&format!("{long}x")), longer);
    }

    #[test]
    fn what_is_no_item_is_rejected() {
        for text in ["", "00000001", "x!0000000p", "é0000000", "x!ooooooo\u{7f}"] {
            assert!(ordinal_of(text).is_err(), "{text}");
        }
        assert_eq!(ordinal_of("x00000010").unwrap(), 64);
    }

    fn float() -> impl Strategy<Value = f64> {
        prop_oneof![any::<u64>().prop_map(f64::from_bits), (-50i64..50).prop_map(|it| it as f64 / 4.0), Just(-0.0)]
    }

    proptest! {
        #[test]
        fn items_of_numbers_compare_as_numbers(a in any::<i64>(), b in any::<i64>(), x in float(), y in float()) {
            prop_assert_eq!(order(&ValueText::of_integer(a), &ValueText::of_integer(b)), a.cmp(&b));
            prop_assert_eq!(order(&ValueText::of_float(x), &ValueText::of_float(y)), of_floats(x, y));
        }

        #[test]
        fn an_integer_that_a_float_holds_has_one_item(value in -(1i64 << 53)..=1 << 53) {
            prop_assert_eq!(ValueText::of_integer(value), ValueText::of_float(value as f64));
        }

        #[test]
        fn items_of_texts_compare_as_texts(a in "[\0\u{1}\u{2}ab\u{10ffff}]{0,4}", b in "[\0\u{1}\u{2}ab\u{10ffff}]{0,4}") {
            prop_assert_eq!(order(&ValueText::of_text(&a), &ValueText::of_text(&b)), a.cmp(&b));
            let starts = ValueText::of_text(&a).as_str().starts_with(ValueText::of_start(&b).as_str());
            prop_assert_eq!(starts, a.starts_with(&b));
        }

        #[test]
        fn items_have_their_ordinals(value in any::<i64>(), text in ".*", ordinal in 0..=VertexId::ORDINAL_MAX) {
            for value in [ValueText::of_integer(value), ValueText::of_text(&text)] {
                let item = value.item(ordinal);
                prop_assert_eq!(ordinal_of(&item).unwrap(), ordinal);
                prop_assert_eq!(item.strip_prefix(value.as_str()).map(str::len), Some(ORDINAL_DIGITS));
            }
        }
    }
}
