//! Sixteen numbers of one width, packed.
//!
//! Sixteen numbers of `w` bits fill exactly 2·`w` bytes, so a chunk always starts at a byte, and
//! no number spans more than eight bytes. Each width has its own unrolled kernel: offsets and
//! shifts are constants, and what is left is a load, a shift, a mask and a store per number.

/// How many numbers share a width.
pub(super) const CHUNK: usize = 16;

/// The widest number, which is the width of an ordinal.
pub(super) const WIDTH_MAX: usize = 48;

/// How many bytes past the end of a chunk a kernel may load, and ignore.
pub(super) const SLACK: usize = 8;

type Kernel = fn(&[u8], &mut [u64; CHUNK]);

/// How many bits `value` needs.
pub(super) fn width_of(value: u64) -> u8 {
    (u64::BITS - value.leading_zeros()) as u8
}

/// How many bytes `count` numbers of `width` bits take.
pub(super) fn packed_len(count: usize, width: u8) -> usize {
    (count * usize::from(width)).div_ceil(8)
}

/// Appends `values`, each below 2^`width`, lowest bits first.
pub(super) fn pack(values: impl IntoIterator<Item = u64>, width: u8, out: &mut Vec<u8>) {
    // At most 7 bits wait while 48 come.
    let (mut waiting, mut bits) = (0u64, 0u32);
    for value in values {
        waiting |= value << bits;
        bits += u32::from(width);
        while bits >= 8 {
            out.push(waiting as u8);
            waiting >>= 8;
            bits -= 8;
        }
    }
    if bits > 0 {
        out.push(waiting as u8);
    }
}

/// Unpacks the chunk of `width` bits that starts at byte `position` of `data`; past the end of
/// `data` are zeros, so that a chunk may have fewer than 16 numbers. `None` if there is no such
/// width or the chunk starts after the end. O(1).
#[inline]
pub(super) fn unpack(data: &[u8], position: usize, width: u8, out: &mut [u64; CHUNK]) -> Option<()> {
    let kernel = KERNELS.get(usize::from(width))?;
    match data.get(position..position + 2 * usize::from(width) + SLACK) {
        Some(chunk) => kernel(chunk, out),
        None => unpack_last(data.get(position..)?, kernel, out),
    }
    Some(())
}

#[cold]
fn unpack_last(data: &[u8], kernel: &Kernel, out: &mut [u64; CHUNK]) {
    let mut padded = [0; 2 * WIDTH_MAX + SLACK];
    let len = data.len().min(padded.len());
    padded[..len].copy_from_slice(&data[..len]);
    kernel(&padded, out);
}

/// The kernel of width `W` (the layout is that of Lemire and Boytsov: Decoding billions of
/// integers per second through vectorization, 2015, without the lanes).
#[inline]
fn unpack_width<const W: usize>(data: &[u8], out: &mut [u64; CHUNK]) {
    let data = &data[..2 * W + SLACK];
    for (index, value) in out.iter_mut().enumerate() {
        let byte = index * W / 8;
        let word: [u8; 8] = data[byte..byte + 8].try_into().expect("the slice has 8 bytes");
        *value = (u64::from_le_bytes(word) >> (index * W % 8)) & ((1 << W) - 1);
    }
}

macro_rules! kernels {
    ($($width:literal)*) => { [$(unpack_width::<$width>),*] };
}

/// The kernels by width.
static KERNELS: [Kernel; WIDTH_MAX + 1] = kernels!(
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24
    25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48
);

#[cfg(test)]
mod tests {
    use super::{CHUNK, SLACK, WIDTH_MAX, pack, packed_len, unpack, width_of};

    #[test]
    fn every_width_comes_back() {
        for width in 0..=WIDTH_MAX as u8 {
            let mask = (1u64 << width) - 1;
            let values: Vec<u64> = (1..=CHUNK as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask).collect();
            let mut bytes = Vec::new();
            pack(values.iter().copied(), width, &mut bytes);
            assert_eq!(bytes.len(), packed_len(CHUNK, width));
            let len = bytes.len();
            let mut back = [0; CHUNK];
            for follows in [0, 1, SLACK] {
                bytes.resize(len + follows, 0xff);
                unpack(&bytes, 0, width, &mut back).unwrap();
                assert_eq!(back.as_slice(), values);
            }
            assert_eq!(unpack(&bytes, len + SLACK + 1, width, &mut back), None);
            assert_eq!(unpack(&bytes, 0, 49, &mut back), None);
        }
    }

    #[test]
    fn widths_are_those_of_the_values() {
        assert_eq!([0, 1, 2, 255, 256].map(width_of), [0, 1, 2, 8, 9]);
    }
}
