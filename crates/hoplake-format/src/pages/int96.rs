//! Moments as Parquet wrote them before it had a type for them: nanoseconds of a day, and the number of the day.
//!
//! Such a value can be millions of years from 1970. Parquet's decoder multiplies the day by the microseconds of one in 64 bits, which
//! wraps around, so that a far day becomes another one nearby. Writers also differ: before 1970 some count nanoseconds backwards from
//! the next midnight, and microseconds of these would be rounded up. So each value is brought into one form before it is decoded:
//! nanoseconds from the midnight before, and a day that microseconds can hold. A day beyond those stays outside of the range of
//! timestamps, where the reader of its column finds that it does not fit.

use bytes::Bytes;

const VALUE_BYTES: usize = 12;
const NANOS_PER_DAY: i64 = 86_400_000_000_000;
/// The number of 1970-01-01.
const EPOCH_DAY: i64 = 2_440_588;
/// Days from 1970 that microseconds in 64 bits hold with room to spare; timestamps need 4.4 million.
const DAYS_MAX: i64 = 50_000_000;

/// A page of plain values from byte `from` on, with each in its one form. Pages that have it already are not copied.
pub(super) fn bounded(page: Bytes, from: usize) -> Bytes {
    let values = page.get(from..).unwrap_or_default();
    if values.chunks_exact(VALUE_BYTES).all(|value| bounded_value(value).is_none()) {
        return page;
    }
    let mut copy = page.to_vec();
    for value in copy[from..].chunks_exact_mut(VALUE_BYTES) {
        if let Some(bounded) = bounded_value(value) {
            value.copy_from_slice(&bounded);
        }
    }
    copy.into()
}

/// The value in its one form, if it is not.
fn bounded_value(value: &[u8]) -> Option<[u8; VALUE_BYTES]> {
    let (nanos, day) = value.split_first_chunk::<8>()?;
    let nanos = i64::from_le_bytes(*nanos);
    let day = i32::from_le_bytes(day.try_into().ok()?);
    let range = EPOCH_DAY - DAYS_MAX..=EPOCH_DAY + DAYS_MAX;
    if (0..NANOS_PER_DAY).contains(&nanos) && range.contains(&day.into()) {
        return None;
    }
    // Neither sum nor day overflows: 64 bits of nanoseconds are 106,752 days.
    let day = (i64::from(day) + nanos.div_euclid(NANOS_PER_DAY)).clamp(*range.start(), *range.end());
    let mut bounded = [0; VALUE_BYTES];
    bounded[..8].copy_from_slice(&nanos.rem_euclid(NANOS_PER_DAY).to_le_bytes());
    bounded[8..].copy_from_slice(&(day as i32).to_le_bytes());
    Some(bounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(nanos: i64, day: i32) -> Vec<u8> {
        [&nanos.to_le_bytes()[..], &day.to_le_bytes()].concat()
    }

    #[test]
    fn each_moment_has_one_form_and_none_wraps_around() {
        let page = Bytes::from([value(0, 2_440_588), value(NANOS_PER_DAY - 1, 0)].concat());
        assert_eq!(bounded(page.clone(), 0).as_ptr(), page.as_ptr(), "nothing is copied");
        let page = [value(-1_000, 2_440_588), value(NANOS_PER_DAY, 7), value(5, i32::MAX), value(5, i32::MIN)].concat();
        let page = [&b"levels"[..], &page].concat();
        let expected = [
            value(NANOS_PER_DAY - 1_000, 2_440_587),
            value(0, 8),
            value(5, (EPOCH_DAY + DAYS_MAX) as i32),
            value(5, (EPOCH_DAY - DAYS_MAX) as i32),
        ];
        assert_eq!(bounded(page.into(), 6)[..], [&b"levels"[..], &expected.concat()].concat());
        // What is cut off is left to the decoder.
        assert_eq!(bounded(Bytes::from_static(b"short"), 0), "short");
        assert_eq!(bounded(Bytes::from_static(b"short"), 9), "short");
    }
}
