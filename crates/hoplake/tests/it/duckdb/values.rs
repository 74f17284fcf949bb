//! Values of all types. They follow their place in the label, so that row groups differ in their bounds, and in every other eighth
//! of it there are odd ones among them.

use hoplake::{PropertyType, Value};
use hoplake_format::ScalarType as Scalar;
use hoplake_testkit::generate::SplitMix64;

/// The first and the last day of the years 1 and 9999, since 1970.
const DAYS: [i32; 2] = [-719_162, 2_932_896];
const MICROS_PER_DAY: i64 = 86_400_000_000;

/// A value of a vertex that is at a share of the label.
pub(super) fn of(kind: PropertyType, at: f64, random: &mut SplitMix64) -> Value {
    match kind {
        PropertyType::Scalar(of) => scalar(of, at, random),
        PropertyType::List(of) => {
            let item = |_| if random.below(5) == 0 { Value::Null } else { scalar(of, at, random) };
            let items: Vec<Value> = (0..4).map(item).collect();
            Value::List(items[..random.below(5) as usize].to_vec())
        }
    }
}

/// A small integer, with a fraction if the type has them.
pub(super) fn widened(kind: PropertyType, at: f64, random: &mut SplitMix64) -> Value {
    let integer = (at * 20.0) as i64 - 10 + random.below(3) as i64;
    match kind {
        PropertyType::Scalar(Scalar::Int64) => Value::Int64(integer),
        _ => Value::Float64(integer as f64 + random.below(4) as f64 / 4.0),
    }
}

/// A text of some KiB, by which there are several row groups; it does not compress.
pub(super) fn long(at: f64, random: &mut SplitMix64) -> Value {
    let letters = (0..1_200).map(|_| char::from_u32(0x4e00 + random.below(20_000) as u32).unwrap());
    Value::String(format!("{:03}", (at * 100.0) as u32) + &letters.collect::<String>())
}

fn scalar(of: Scalar, at: f64, random: &mut SplitMix64) -> Value {
    if (at * 8.0) as u64 % 2 == 1 && random.below(3) == 0 {
        return odd(of, random);
    }
    match of {
        Scalar::Bool => Value::Bool(random.below(2) == 0),
        Scalar::Int64 => Value::Int64((at * 400.0) as i64 - 200 + random.below(20) as i64),
        Scalar::Float64 => Value::Float64((at * 100.0).floor() - 50.0 + random.below(16) as f64 / 4.0),
        Scalar::String => {
            let letter = |share: f64| char::from(b'a' + (share * 25.0) as u8);
            Value::String(format!(
                "{}{}",
                letter(at),
                letter(random.unit()).to_string().repeat(random.below(4) as usize)
            ))
        }
        Scalar::Date => Value::Date((at * 3_000.0) as i32 + random.below(60) as i32),
        Scalar::Timestamp => {
            Value::Timestamp(((at * 3_000.0) as i64 - 1_500) * MICROS_PER_DAY + random.below(1_000_000) as i64)
        }
    }
}

/// A value that is at the edge of something.
pub(super) fn odd(of: Scalar, random: &mut SplitMix64) -> Value {
    let mut pick = |count: usize| random.below(count as u64) as usize;
    match of {
        Scalar::Bool => Value::Bool(pick(2) == 0),
        Scalar::Int64 => {
            const ODD: [i64; 8] = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX, (1 << 53) + 1, -(1 << 53) - 1];
            Value::Int64(ODD[pick(ODD.len())])
        }
        Scalar::Float64 => {
            const ODD: [f64; 13] = [
                f64::NAN,
                -f64::NAN,
                0.0,
                -0.0,
                f64::INFINITY,
                f64::NEG_INFINITY,
                5e-324,
                -5e-324,
                f64::MAX,
                f64::MIN,
                1e-300,
                0.1,
                9_007_199_254_740_993.0,
            ];
            Value::Float64(ODD[pick(ODD.len())])
        }
        Scalar::String => Value::String(odd_text(pick(20))),
        Scalar::Date => Value::Date([DAYS[0], DAYS[1], -1, 0, 1, 19_782, -25_567][pick(7)]),
        Scalar::Timestamp => {
            let [first, last] = DAYS.map(|day| i64::from(day) * MICROS_PER_DAY);
            Value::Timestamp([first, first + 1, last + MICROS_PER_DAY - 1, -1, 0, 1, -1_000_001, 999_999][pick(8)])
        }
    }
}

/// Statistics keep the first 64 bytes of a text: several of these agree in so many, or cannot be cut there and made greater.
fn odd_text(number: usize) -> String {
    const SHORT: [&str; 14] = [
        "",
        "A",
        "a",
        "z",
        "é",
        "e\u{301}",
        "\u{10ffff}",
        "\u{7f}",
        "null",
        "and",
        "it's",
        "a\"b, (c]\n\td",
        "שלום",
        "👩‍👩‍👧",
    ];
    match number {
        14 => "x".repeat(70),
        15 => "x".repeat(63) + "é",
        16 => "x".repeat(64) + "y",
        17 => "\u{10ffff}".repeat(20),
        18 => "a\0b".to_owned(),
        19 => "é".repeat(40) + "z",
        short => SHORT[short].to_owned(),
    }
}
