//! Codecs of chunks: bit packing, patched packing, StreamVByte, split Rice and Elias-Fano.

use bitpacking::{BitPacker, BitPacker1x, BitPacker4x};
use stream_vbyte::{decode, encode};

use super::{BaselineOrder, Encoded};

const CHUNK_MAX: usize = 128;

/// A codec of chunks of a fixed number of slots, the last one filled up with zeros.
struct Chunked {
    name: &'static str,
    len: usize,
    encode: fn(&[u64], &mut Vec<u8>),
    decode: fn(&[u8], &mut [u64]),
}

/// The codecs of chunks.
pub fn baselines() -> Vec<Box<dyn BaselineOrder>> {
    let chunked = |name, len, encode, decode| Box::new(Chunked { name, len, encode, decode }) as Box<dyn BaselineOrder>;
    vec![
        chunked("bit packing by 128 (bitpacking, SSE)", 128, pack::<BitPacker4x>, unpack::<BitPacker4x>),
        chunked("bit packing by 32 (bitpacking, scalar)", 32, pack::<BitPacker1x>, unpack::<BitPacker1x>),
        chunked("patched packing by 128", 128, patch::<BitPacker4x>, unpatch::<BitPacker4x>),
        chunked("patched packing by 32", 32, patch::<BitPacker1x>, unpatch::<BitPacker1x>),
        chunked("StreamVByte by 128 (stream-vbyte, scalar)", 128, stream_vbyte_encode, stream_vbyte_decode),
        chunked("split Rice by 32", 32, rice_encode::<false>, rice_decode::<false>),
        chunked("split Rice by 64", 64, rice_encode::<false>, rice_decode::<false>),
        chunked("Elias-Fano by 64", 64, rice_encode::<true>, rice_decode::<true>),
    ]
}

impl BaselineOrder for Chunked {
    fn name(&self) -> String {
        self.name.into()
    }

    fn encode(&self, slots: &[u64]) -> Encoded {
        let mut encoded = Encoded::default();
        for slots in slots.chunks(self.len) {
            let mut chunk = [0; CHUNK_MAX];
            chunk[..slots.len()].copy_from_slice(slots);
            encoded.marks.push(encoded.bytes.len() as u32);
            (self.encode)(&chunk[..self.len], &mut encoded.bytes);
        }
        encoded
    }

    fn decode(&self, encoded: &Encoded, start: usize, out: &mut [u64]) {
        let mut chunk = [0; CHUNK_MAX];
        let mut skipped = start % self.len;
        let mut done = 0;
        for &mark in &encoded.marks[start / self.len..(start + out.len()).div_ceil(self.len)] {
            let bytes = &encoded.bytes[mark as usize..];
            let here = (self.len - skipped).min(out.len() - done);
            if here == self.len {
                (self.decode)(bytes, &mut out[done..done + here]);
            } else {
                (self.decode)(bytes, &mut chunk[..self.len]);
                out[done..done + here].copy_from_slice(&chunk[skipped..skipped + here]);
            }
            done += here;
            skipped = 0;
        }
    }
}

fn width_of(value: u64) -> u8 {
    (u64::BITS - value.leading_zeros()) as u8
}

fn narrow(slots: &[u64]) -> [u32; CHUNK_MAX] {
    let mut narrow = [0; CHUNK_MAX];
    narrow.iter_mut().zip(slots).for_each(|(narrow, &slot)| *narrow = slot as u32);
    narrow
}

fn pack<P: BitPacker>(slots: &[u64], out: &mut Vec<u8>) {
    let packer = P::new();
    let narrow = narrow(slots);
    let width = packer.num_bits(&narrow[..slots.len()]);
    let mut bytes = [0; 4 * CHUNK_MAX];
    let len = packer.compress(&narrow[..slots.len()], &mut bytes, width);
    out.push(width);
    out.extend(&bytes[..len]);
}

fn unpack<P: BitPacker>(bytes: &[u8], out: &mut [u64]) {
    let mut narrow = [0; CHUNK_MAX];
    P::new().decompress(&bytes[1..], &mut narrow[..out.len()], bytes[0]);
    out.iter_mut().zip(narrow).for_each(|(slot, narrow)| *slot = u64::from(narrow));
}

/// Zukowski, Héman, Nes, Boncz: Super-scalar RAM-CPU cache compression, 2006; the width is the
/// best, as in OptPFD (Yan, Ding, Suel, 2009). An exception is its position and its high bits.
fn patch<P: BitPacker>(slots: &[u64], out: &mut Vec<u8>) {
    let widest = slots.iter().map(|&slot| width_of(slot)).max().unwrap_or(0);
    let exceptions = |width: u8| slots.iter().filter(|&&slot| width_of(slot) > width).count();
    let high_bytes = |width: u8| usize::from(widest - width).div_ceil(8);
    let cost = |width: &u8| slots.len() * usize::from(*width) + 8 * exceptions(*width) * (1 + high_bytes(*width));
    let width = (0..=widest).min_by_key(cost).unwrap_or(0);
    out.extend([width, exceptions(width) as u8, high_bytes(width) as u8]);
    let mask = (1u64 << width) - 1;
    let low: Vec<u32> = slots.iter().map(|slot| (slot & mask) as u32).collect();
    let mut bytes = [0; 4 * CHUNK_MAX];
    let len = P::new().compress(&low, &mut bytes, width);
    out.extend(&bytes[..len]);
    for (position, slot) in slots.iter().enumerate().filter(|(_, slot)| width_of(**slot) > width) {
        out.push(position as u8);
        out.extend(&(slot >> width).to_le_bytes()[..high_bytes(width)]);
    }
}

fn unpatch<P: BitPacker>(bytes: &[u8], out: &mut [u64]) {
    let width = bytes[0];
    let exceptions = usize::from(bytes[1]);
    let high_bytes = usize::from(bytes[2]);
    let mut narrow = [0; CHUNK_MAX];
    let len = P::new().decompress(&bytes[3..], &mut narrow[..out.len()], width);
    out.iter_mut().zip(narrow).for_each(|(slot, narrow)| *slot = u64::from(narrow));
    for exception in bytes[3 + len..].chunks_exact(1 + high_bytes).take(exceptions) {
        let high = exception[1..].iter().rev().fold(0, |high, &byte| high << 8 | u64::from(byte));
        out[usize::from(exception[0])] |= high << width;
    }
}

/// Lemire, Kurz, Rupp: Stream VByte, 2018.
fn stream_vbyte_encode(slots: &[u64], out: &mut Vec<u8>) {
    let mut bytes = [0; 5 * CHUNK_MAX];
    let len = encode::encode::<stream_vbyte::scalar::Scalar>(&narrow(slots)[..slots.len()], &mut bytes);
    out.extend(&bytes[..len]);
}

fn stream_vbyte_decode(bytes: &[u8], out: &mut [u64]) {
    let mut narrow = [0; CHUNK_MAX];
    decode::decode::<stream_vbyte::scalar::Scalar>(bytes, out.len(), &mut narrow);
    out.iter_mut().zip(narrow).for_each(|(slot, narrow)| *slot = u64::from(narrow));
}

/// The best number of low bits; what comes above them is unary. Elias-Fano splits the sums of the
/// slots, Rice the slots themselves, which saves half a bit.
fn rice_width<const SUMS: bool>(slots: &[u64]) -> u8 {
    let high_bits = |width: u8| -> u64 {
        let highs =
            if SUMS { slots.iter().sum::<u64>() >> width } else { slots.iter().map(|slot| slot >> width).sum() };
        highs + slots.len() as u64
    };
    (0..48).min_by_key(|&width| slots.len() as u64 * u64::from(width) + high_bits(width)).unwrap_or(0)
}

/// A byte of width, the low bits as two streams of whole bytes would be, then the high bits.
fn rice_encode<const SUMS: bool>(slots: &[u64], out: &mut Vec<u8>) {
    let width = rice_width::<SUMS>(slots);
    let mask = (1u64 << width) - 1;
    let values: Vec<u64> = if SUMS {
        let sum = |sum: &mut u64, slot: &u64| {
            *sum += slot;
            Some(*sum)
        };
        slots.iter().scan(0, sum).collect()
    } else {
        slots.to_vec()
    };
    out.push(width);
    let mut waiting = 0u64;
    let mut bits = 0;
    for value in &values {
        waiting |= (value & mask) << bits;
        bits += width;
        while bits >= 8 {
            out.push(waiting as u8);
            waiting >>= 8;
            bits -= 8;
        }
    }
    let mut unary = vec![];
    let mut previous = 0;
    for value in values {
        let high = value >> width;
        unary.extend(std::iter::repeat_n(0u8, (high - previous) as usize));
        unary.push(1);
        previous = if SUMS { high } else { 0 };
    }
    out.extend(unary.chunks(8).map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit)));
}

fn word_at(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..at + 8) {
        Some(word) => u64::from_le_bytes(word.try_into().expect("the slice has 8 bytes")),
        None => bytes.get(at..).unwrap_or(&[]).iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

fn rice_decode<const SUMS: bool>(bytes: &[u8], out: &mut [u64]) {
    let width = usize::from(bytes[0]);
    let mask = (1u64 << width) - 1;
    let lows = &bytes[1..];
    let unary = &lows[out.len() * width / 8..];
    let mut at = 0;
    let mut word = word_at(unary, 0);
    let mut word_start = 0;
    let mut previous = 0;
    let mut sum = 0;
    for (index, slot) in out.iter_mut().enumerate() {
        while word == 0 {
            at += 8;
            word_start += 64;
            word = word_at(unary, at);
        }
        let position = word_start + u64::from(word.trailing_zeros());
        word &= word - 1;
        let low = (word_at(lows, index * width / 8) >> (index * width % 8)) & mask;
        if SUMS {
            let value = (position - index as u64) << width | low;
            *slot = value - sum;
            sum = value;
        } else {
            *slot = (position - previous) << width | low;
            previous = position + 1;
        }
    }
}
