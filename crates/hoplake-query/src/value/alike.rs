//! Finding the values that are [equal](super::equals) to one by a table, without comparing it with each.
//!
//! Equality is not transitive, so no hash of one value agrees with it: 2^53 and 2^53 + 1 as longs are both equal to 2^53 as a double,
//! and 0.1 as a float to 0.1 as a decimal, whose doubles differ. But **two numbers of up to 64 bits, neither of them a float, are equal
//! only if their doubles are**, and any other two only if their doubles nearly are. So a value is *filed* under some forms and *sought*
//! under some: if two values are equal, a form is in both lists. The reverse does not hold; the caller compares what it finds.

use std::hash::{BuildHasher, Hash};

use super::{Value, to_f64};
use crate::literal::Number;

/// A key of a hash table, under which values are filed and looked up by equality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum EqualityKey {
    /// The bits of a precise number.
    Precise(u64),
    /// A precise number, roughly: for those that are not.
    Roughly(u64),
    /// A number that is not precise, roughly.
    Vague(u64),
    /// The hash of a value of another type, or of the length of a collection.
    Other(u64),
}

/// By how much the doubles of two equal numbers differ at most, in proportion. Floats are rounded to 2^-24 of them, and big decimals become
/// doubles with an error of some 2^-50. [`rough`] has steps of twice this.
const NEARLY: f64 = 1.0 / (1_u64 << 22) as f64;

/// Where doubles are in proportion to the numbers, whether these are floats or decimals.
const IN_PROPORTION: std::ops::Range<f64> = 1e-36..1e300;

/// What a value is filed under: one or two forms.
pub(crate) fn filed(value: &Value, hasher: &impl BuildHasher) -> impl Iterator<Item = EqualityKey> {
    let (first, second) = match value {
        Value::Number(number) if is_precise(number) => {
            let double = to_f64(number);
            (precise(double), Some(EqualityKey::Roughly(rough(double))))
        }
        Value::Number(number) => (EqualityKey::Vague(rough(to_f64(number))), None),
        other => (EqualityKey::Other(hash(other, hasher)), None),
    };
    std::iter::once(first).chain(second)
}

/// What equal values may be filed under: each form once.
pub(crate) fn sought(value: &Value, hasher: &impl BuildHasher) -> Vec<EqualityKey> {
    let Value::Number(number) = value else { return vec![EqualityKey::Other(hash(value, hasher))] };
    let double = to_f64(number);
    let mut near = [1.0 - NEARLY, 1.0, 1.0 + NEARLY].map(|factor| rough(double * factor)).to_vec();
    near.dedup();
    let vague = near.iter().copied().map(EqualityKey::Vague);
    match is_precise(number) {
        true => std::iter::once(precise(double)).chain(vague).collect(),
        false => vague.chain(near.iter().copied().map(EqualityKey::Roughly)).collect(),
    }
}

/// Whether a number compares with others like it by its double, or by more than that.
fn is_precise(number: &Number) -> bool {
    !matches!(number, Number::Float(_) | Number::BigInteger(_) | Number::BigDecimal(_))
}

/// The two zeros are equal.
fn precise(double: f64) -> EqualityKey {
    EqualityKey::Precise((double + 0.0).to_bits())
}

/// The first 20 bits after the point, and one form for all numbers out of proportion.
fn rough(double: f64) -> u64 {
    if IN_PROPORTION.contains(&double.abs()) { double.to_bits() >> 32 } else { 0 }
}

fn hash(value: &Value, hasher: &impl BuildHasher) -> u64 {
    match value {
        Value::Boolean(boolean) => hasher.hash_one((1, boolean)),
        Value::Text(text) => hasher.hash_one((2, text)),
        Value::Char(character) => hasher.hash_one((3, character)),
        Value::DateTime(moment) => hasher.hash_one((4, moment.utc())),
        Value::Duration(duration) => hasher.hash_one((5, duration)),
        Value::Uuid(uuid) => hasher.hash_one((6, uuid)),
        Value::Bytes(bytes) => hasher.hash_one((7, bytes)),
        Value::List(items) => hasher.hash_one((8, items.len())),
        Value::Map(entries) => hasher.hash_one((9, entries.len())),
        // A bulk set may be equal to a set.
        Value::Set(_) | Value::BulkSet(_) => hasher.hash_one(10),
        other => hasher.hash_one((11, std::mem::discriminant(other))),
    }
}

/// Values that were compared by this thread: tests count them, and measure no time.
#[cfg(feature = "testing")]
pub(crate) mod compared {
    use std::cell::Cell;

    thread_local! { static COUNT: Cell<u64> = const { Cell::new(0) } }

    pub(crate) fn note() {
        COUNT.set(COUNT.get() + 1);
    }

    /// How many.
    pub fn count() -> u64 {
        COUNT.get()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashSet, hash_map::RandomState};

    use proptest::prelude::*;

    use super::*;
    use crate::value::equals;

    fn assert_found(left: &Value, right: &Value, hasher: &RandomState) {
        let filed: HashSet<EqualityKey> = filed(left, hasher).collect();
        let is_found = sought(right, hasher).iter().any(|form| filed.contains(form));
        assert!(is_found || !equals(left, right), "{left:?} and {right:?}");
    }

    /// A number as each type that may be equal to it.
    fn forms_of(double: f64) -> Vec<Value> {
        let exact = |number: Number| crate::value::number::to_big_decimal(&number);
        let float = double as f32;
        let mut all = vec![
            Number::Double(double),
            Number::Double(f64::from(float)),
            Number::Float(float),
            Number::Byte(double as i8),
            Number::Short(double as i16),
            Number::Int(double as i32),
            Number::Long(double as i64),
            Number::Long((double as i64).saturating_add(1)),
            Number::Int((double as i32).saturating_add(1)),
        ];
        let decimals = [exact(Number::Double(double)), exact(Number::Float(float))];
        all.extend(
            decimals.iter().map(|decimal| Number::BigInteger(decimal.with_scale(0).into_bigint_and_exponent().0)),
        );
        all.extend(decimals.iter().cloned().map(Number::BigDecimal));
        all.extend(decimals.into_iter().map(|decimal| Number::BigDecimal(decimal.with_scale(400))));
        all.into_iter().map(Value::Number).collect()
    }

    fn assert_all_found(values: &[Value], hasher: &RandomState) {
        for left in values {
            values.iter().for_each(|right| assert_found(left, right, hasher));
        }
    }

    #[test]
    fn equal_values_have_a_form_in_common() {
        let hasher = RandomState::new();
        let tiny = f64::from(f32::from_bits(1));
        let edges =
            [0.0, -0.0, 0.1, 1.0, -1.0, 1e-36, 1e-45, tiny, 5e-324, 1e23, 1e300, f64::MAX, f64::INFINITY, f64::NAN];
        let powers = [24, 31, 53, 62].map(|power| (1_u64 << power) as f64);
        let numbers: Vec<Value> = edges.into_iter().chain(powers).flat_map(forms_of).collect();
        assert_all_found(&numbers, &hasher);
        let one: Value = 1.into();
        let set = Value::Set(vec![one.clone()]);
        let others = [
            Value::Null,
            true.into(),
            "a".into(),
            Value::Char('a'),
            Value::List(vec![one.clone()]),
            Value::List(vec![1.0.into()]),
            Value::Map(vec![("a".into(), one.clone())]),
            Value::Map(vec![("a".into(), 1.0.into())]),
            set.clone(),
            Value::BulkSet(vec![(1.0.into(), 1)]),
        ];
        assert_all_found(&others, &hasher);
        assert!(equals(&set, &others[9]) && equals(&others[4], &others[5]) && equals(&others[6], &others[7]));
    }

    #[test]
    fn few_numbers_have_the_same_forms() {
        let hasher = RandomState::new();
        // Milliseconds of a day, whose floats are one.
        let of = |number: i64| sought(&number.into(), &hasher);
        let mut seen = HashSet::new();
        assert!((0..10_000).all(|number| seen.insert(of(1_700_000_000_000 + number)[0])));
    }

    proptest! {
        #[test]
        fn equal_numbers_have_a_form_in_common(bits in any::<u64>(), small in -1e9..1e9, single in any::<f32>()) {
            let hasher = RandomState::new();
            for double in [f64::from_bits(bits), small, small / 1e9, f64::from(single), bits as f64] {
                assert_all_found(&forms_of(double), &hasher);
            }
        }
    }
}
