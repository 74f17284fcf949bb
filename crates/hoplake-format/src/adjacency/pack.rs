//! Sixteen numbers of one width, packed.
//!
//! Sixteen numbers of `w` bits fill exactly 2·`w` bytes, so a chunk always starts at a byte, and
//! no number spans more than eight bytes: unpacking is a load, a shift and a mask per number, or
//! per two of them. One loop serves every width. A kernel per width has its shifts as constants,
//! but the jump to it is mispredicted for every second chunk, which costs more (RFC 0002).

/// How many numbers share a width.
pub(super) const CHUNK: usize = 16;

/// The widest number, which is the width of an ordinal.
pub(super) const WIDTH_MAX: u8 = 48;

/// The bytes that unpacking a chunk may load: all of it at any width, and a word from its last byte on.
const WINDOW: usize = 128;

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
    // At most 7 bits wait when 48 are added.
    let mut waiting = 0u64;
    let mut bits = 0u32;
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
    let data = data.get(position..).filter(|_| width <= WIDTH_MAX)?;
    match data.first_chunk() {
        Some(window) => unpack_window(window, width, out),
        None => unpack_last(data, width, out),
    }
    Some(())
}

/// Near the end of a block a window would pass it.
#[cold]
fn unpack_last(data: &[u8], width: u8, out: &mut [u64; CHUNK]) {
    let mut window = [0; WINDOW];
    window[..data.len()].copy_from_slice(data);
    unpack_window(&window, width, out);
}

/// The layout is that of Lemire and Boytsov (Decoding billions of integers per second through
/// vectorization, 2015), without the lanes.
#[inline(always)]
fn unpack_window(window: &[u8; WINDOW], width: u8, out: &mut [u64; CHUNK]) {
    // Never more than 48; the mask shows the compiler, which then omits the bounds check.
    let width = usize::from(width) & 63;
    let mask = (1 << width) - 1;
    let word_at = |bit: usize| {
        let bytes: [u8; 8] = window[bit / 8..bit / 8 + 8].try_into().expect("the slice has 8 bytes");
        u64::from_le_bytes(bytes) >> (bit % 8)
    };
    // Two numbers and the 7 bits before them fit in a word.
    if width <= 28 {
        for pair in 0..CHUNK / 2 {
            let word = word_at(2 * pair * width);
            out[2 * pair] = word & mask;
            out[2 * pair + 1] = (word >> width) & mask;
        }
    } else {
        for (index, value) in out.iter_mut().enumerate() {
            *value = word_at(index * width) & mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, WIDTH_MAX, WINDOW, pack, packed_len, unpack, width_of};

    #[test]
    fn every_width_comes_back() {
        for width in 0..=WIDTH_MAX {
            let mask = (1u64 << width) - 1;
            let values: Vec<u64> = (1..=CHUNK as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask).collect();
            let mut bytes = Vec::new();
            pack(values.iter().copied(), width, &mut bytes);
            assert_eq!(bytes.len(), packed_len(CHUNK, width));
            let len = bytes.len();
            let mut back = [0; CHUNK];
            for follows in [0, 1, WINDOW] {
                bytes.resize(len + follows, 0xff);
                unpack(&bytes, 0, width, &mut back).unwrap();
                assert_eq!(back.as_slice(), values);
            }
            assert_eq!(unpack(&bytes, len + WINDOW + 1, width, &mut back), None);
            assert_eq!(unpack(&bytes, 0, 49, &mut back), None);
        }
    }

    #[test]
    fn widths_are_those_of_the_values() {
        assert_eq!([0, 1, 2, 255, 256].map(width_of), [0, 1, 2, 8, 9]);
    }
}
