//! Times in as few bytes as they need.

use crate::times::ALWAYS;

/// Times of one stretch of edges or vertices: as multiples of the largest unit that all of them are, such as a day, from the first of them
/// on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Compact {
    first: i64,
    unit: u64,
    multiples: Multiples,
}

/// One more than the multiple, so that 0 is a time that every seed sees.
#[derive(Debug, PartialEq, Eq)]
enum Multiples {
    /// All of them are 0.
    None,
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
}

impl Compact {
    pub(crate) fn new(times: &[i64]) -> Self {
        let seen_late = || times.iter().copied().filter(|time| *time != ALWAYS);
        let (Some(first), Some(last)) = (seen_late().min(), seen_late().max()) else {
            return Self { first: 0, unit: 1, multiples: Multiples::None };
        };
        let unit = seen_late().map(|time| time.abs_diff(first)).fold(0, gcd).max(1);
        let multiple = |time: &i64| if *time == ALWAYS { 0 } else { 1 + time.abs_diff(first) / unit };
        // The first is above `ALWAYS`, so this has 64 bits.
        let most = 1 + last.abs_diff(first) / unit;
        let multiples = match most {
            0..=0xff => Multiples::U8(times.iter().map(|time| multiple(time) as u8).collect()),
            0x100..=0xffff => Multiples::U16(times.iter().map(|time| multiple(time) as u16).collect()),
            0x1_0000..=0xffff_ffff => Multiples::U32(times.iter().map(|time| multiple(time) as u32).collect()),
            _ => Multiples::U64(times.iter().map(multiple).collect()),
        };
        Self { first, unit, multiples }
    }

    /// The time at a place.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> i64 {
        let multiple = match &self.multiples {
            Multiples::None => 0,
            Multiples::U8(all) => all[at].into(),
            Multiples::U16(all) => all[at].into(),
            Multiples::U32(all) => all[at].into(),
            Multiples::U64(all) => all[at],
        };
        match multiple {
            0 => ALWAYS,
            _ => self.first.wrapping_add_unsigned((multiple - 1).wrapping_mul(self.unit)),
        }
    }

    /// What it takes.
    pub(crate) fn bytes(&self) -> u64 {
        let multiples = match &self.multiples {
            Multiples::None => 0,
            Multiples::U8(all) => all.capacity(),
            Multiples::U16(all) => 2 * all.capacity(),
            Multiples::U32(all) => 4 * all.capacity(),
            Multiples::U64(all) => 8 * all.capacity(),
        };
        (multiples + size_of::<Self>()) as u64
    }
}

fn gcd(one: u64, other: u64) -> u64 {
    let (mut one, mut other) = (one, other);
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_kept_in_as_few_bytes_as_they_need() {
        const DAY: i64 = 86_400_000_000;
        for (times, width) in [
            (vec![], 0),
            (vec![ALWAYS; 9], 0),
            (vec![5; 9], 1),
            (vec![ALWAYS, 7, 8, 7 + 254], 1),
            (vec![ALWAYS, 7, 8, 7 + 255], 2),
            (vec![ALWAYS, 7, 7 + 255], 1),
            ((-100..100).map(|day| day * DAY).collect(), 1),
            ((0..60_000).map(|day| (day - 30_000) * DAY).collect(), 2),
            (vec![-DAY, 1, 100], 8),
            (vec![i64::MIN + 1, i64::MAX, ALWAYS, 5], 8),
            (vec![i64::MIN + 1, i64::MAX, ALWAYS, 0], 1),
            (vec![i64::MIN + 1, i64::MAX], 1),
            (vec![3, 3 + u32::MAX as i64 - 1, 4], 4),
            (vec![3, 3 + u32::MAX as i64, 4], 8),
            (vec![3, 3 + (1 << 40), 4], 8),
        ] {
            let compact = Compact::new(&times);
            let found: Vec<i64> = (0..times.len()).map(|at| compact.get(at)).collect();
            assert_eq!(found, times);
            assert_eq!(compact.bytes(), (times.len() * width + size_of::<Compact>()) as u64, "{compact:?}");
        }
    }
}
