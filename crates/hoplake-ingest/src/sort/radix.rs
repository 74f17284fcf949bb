//! Sorting numbers that fit the cache: least significant digit first, over the bits that differ.
//!
//! A radix sort of an entire large buffer loses to a quicksort, because its 256 write positions miss
//! the cache and the page table. Up to some 128 Ki records it takes 4–5 ns a record where the
//! quicksort of the standard library takes 13–19, so the sorters only ever sort pieces of this size.

mod sealed {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for u128 {}
}

/// A number that [`PackedSorter`](super::PackedSorter) sorts: `u64`, or `u128` where the bits of both
/// ends do not fit 64.
pub trait Record: sealed::Sealed + Copy + Ord + Default + Send + Sync + std::fmt::Debug + 'static {
    /// Its size in bytes.
    const BYTES: usize;
    /// The bits in which two records differ.
    #[doc(hidden)]
    fn differing(self, other: Self, so_far: Self) -> Self;
    /// The lowest and one past the highest set bit; `None` for zero.
    #[doc(hidden)]
    fn bit_span(self) -> Option<(u32, u32)>;
    /// The eight bits from `shift` up.
    #[doc(hidden)]
    fn digit(self, shift: u32) -> usize;
    /// This less `earlier`, which is not greater.
    #[doc(hidden)]
    fn minus(self, earlier: Self) -> Self;
    /// The inverse of [`minus`](Self::minus).
    #[doc(hidden)]
    fn plus(self, delta: Self) -> Self;
    /// The bytes it takes without its leading zeros.
    #[doc(hidden)]
    fn width(self) -> usize;
    /// Writes it, little-endian, to the first `BYTES` of `bytes`.
    #[doc(hidden)]
    fn put(self, bytes: &mut [u8]);
    /// Reads it from the first `BYTES` of `bytes`, keeping the lowest `width` bytes.
    #[doc(hidden)]
    fn get(bytes: &[u8], width: usize) -> Self;
}

macro_rules! record {
    ($type:ty) => {
        impl Record for $type {
            const BYTES: usize = size_of::<$type>();

            #[inline]
            fn differing(self, other: Self, so_far: Self) -> Self {
                so_far | (self ^ other)
            }

            #[inline]
            fn bit_span(self) -> Option<(u32, u32)> {
                (self != 0).then(|| (self.trailing_zeros(), Self::BITS - self.leading_zeros()))
            }

            #[inline]
            fn digit(self, shift: u32) -> usize {
                usize::from((self >> shift) as u8)
            }

            #[inline]
            fn minus(self, earlier: Self) -> Self {
                self.wrapping_sub(earlier)
            }

            #[inline]
            fn plus(self, delta: Self) -> Self {
                self.wrapping_add(delta)
            }

            #[inline]
            fn width(self) -> usize {
                (Self::BITS - self.leading_zeros()).div_ceil(8) as usize
            }

            #[inline]
            fn put(self, bytes: &mut [u8]) {
                // All bytes, whatever the width: the next number overwrites the zeros.
                bytes[..Self::BYTES].copy_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn get(bytes: &[u8], width: usize) -> Self {
                let value = Self::from_le_bytes(bytes[..Self::BYTES].try_into().expect("the slice has this length"));
                // A shift by all bits would overflow. Reading the full width and masking spares a copy of variable length.
                if width == Self::BYTES { value } else { value & ((1 << (8 * width)) - 1) }
            }
        }
    };
}

record!(u64);
record!(u128);

/// Below this a quicksort is done before a radix sort has cleared its counters.
const RADIX_LEN_MIN: usize = 768;
/// Above this many digits a quicksort takes fewer passes.
const DIGITS_MAX: usize = 9;

/// Sorts `records`, with `scratch` as the second buffer (it grows to the same length).
pub(crate) fn radix_sort<T: Record>(records: &mut [T], scratch: &mut Vec<T>) {
    if records.is_sorted() {
        return;
    }
    // A bit in which any two differ is one in which one of them differs from the first, so one pass suffices.
    let first = records[0];
    let differing = records.iter().fold(T::default(), |so_far, record| record.differing(first, so_far));
    let (low, high) = differing.bit_span().expect("records out of order differ");
    // Edges of one piece often share their upper bits: these cost no pass.
    let digits = (high - low).div_ceil(8) as usize;
    if records.len() < RADIX_LEN_MIN || digits > DIGITS_MAX {
        records.sort_unstable();
        return;
    }
    if scratch.len() < records.len() {
        scratch.resize(records.len(), T::default());
    }
    let scratch = &mut scratch[..records.len()];
    let mut counts = count_digits(records, low, digits);
    let mut in_scratch = false;
    for (position, counts) in counts[..digits].iter_mut().enumerate() {
        let shift = low + 8 * position as u32;
        if in_scratch {
            scatter(scratch, records, shift, counts);
        } else {
            scatter(records, scratch, shift, counts);
        }
        in_scratch = !in_scratch;
    }
    // An odd number of passes ends in the other buffer.
    if in_scratch {
        records.copy_from_slice(scratch);
    }
}

/// How often each value of each digit occurs; all digits in one pass over the records.
fn count_digits<T: Record>(records: &[T], low: u32, digits: usize) -> [[u32; 256]; DIGITS_MAX] {
    let mut counts = [[0; 256]; DIGITS_MAX];
    for record in records {
        for (position, counts) in counts[..digits].iter_mut().enumerate() {
            counts[record.digit(low + 8 * position as u32)] += 1;
        }
    }
    counts
}

/// One pass: moves `from` to `to` by one digit, stably. `counts` become write positions.
fn scatter<T: Record>(from: &[T], to: &mut [T], shift: u32, counts: &mut [u32; 256]) {
    let mut start = 0;
    for count in counts.iter_mut() {
        start += std::mem::replace(count, start);
    }
    // In order, so that records with equal digits keep the order of the digits before.
    for &record in from {
        let position = &mut counts[record.digit(shift)];
        to[*position as usize] = record;
        *position += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sorts_as_the_standard_library(
            mut records in proptest::collection::vec(any::<u64>(), 0..3000), shift in 0u32..64, left in 0u32..20,
        ) {
            for record in &mut records {
                *record = (*record >> shift) << left.min(shift);
            }
            let mut expected = records.clone();
            expected.sort_unstable();
            radix_sort(&mut records, &mut Vec::new());
            prop_assert_eq!(records, expected);
        }

        #[test]
        fn sorts_wide_records(mut records in proptest::collection::vec(any::<u128>(), 0..2000), shift in 0u32..128) {
            for record in &mut records {
                *record >>= shift;
            }
            let mut expected = records.clone();
            expected.sort_unstable();
            radix_sort(&mut records, &mut Vec::new());
            prop_assert_eq!(records, expected);
        }
    }
}
