//! Codecs that were measured and not chosen, all on the same numbers.
//!
//! The numbers are a section's *slots*: of each list the first target, then the gaps. Degrees,
//! directories and the sums that turn gaps into targets are left out, to the baselines' advantage.
//! Slots are coded in pieces of 8,192, about a block's worth.

mod chunked;
mod streams;

use std::hint::black_box;

use hoplake_testkit::generate::SplitMix64;

use crate::graphs::Section;
use crate::timing::best_of;

const PIECE: usize = 8_192;
const LIST: usize = 50;

/// What a codec does on a section.
pub struct Measured {
    /// The codec.
    pub name: String,
    /// Bits per slot.
    pub bits: f64,
    /// Sequential decoding, per slot.
    pub decode_ns: f64,
    /// Decoding 50 slots from a random position.
    pub list_ns: f64,
}

/// A piece, encoded.
#[derive(Default)]
pub struct Encoded {
    bytes: Vec<u8>,
    /// Bit streams are made of words.
    words: Vec<u32>,
    /// Where each chunk or slot starts, in bytes or bits. Not counted in the size.
    marks: Vec<u32>,
    /// The parameter of the piece.
    parameter: usize,
}

/// A codec of slots.
pub trait BaselineOrder {
    /// What it is called.
    fn name(&self) -> String;
    /// Encodes a piece.
    fn encode(&self, slots: &[u64]) -> Encoded;
    /// Decodes the slots from `start` on into `out`, which is as long as there are to be.
    fn decode(&self, encoded: &Encoded, start: usize, out: &mut [u64]);
}

/// Measures all codecs on the slots of `section`.
pub fn measure(section: &Section) -> Vec<Measured> {
    let slots = slots(section);
    let pieces: Vec<&[u64]> = slots.chunks(PIECE).collect();
    let baselines = chunked::baselines().into_iter().chain(streams::baselines());
    baselines.map(|baseline| measure_one(baseline.as_ref(), &pieces)).collect()
}

/// Bits per slot if every `len` slots are packed at the width of the largest, after a byte of width.
pub fn packed_bits(section: &Section, len: usize) -> f64 {
    let slots = slots(section);
    let chunk_bits = |chunk: &[u64]| {
        let all = chunk.iter().fold(0, |all, slot| all | slot);
        8 + chunk.len() as u64 * u64::from(u64::BITS - all.leading_zeros())
    };
    slots.chunks(len).map(chunk_bits).sum::<u64>() as f64 / slots.len() as f64
}

fn slots(section: &Section) -> Vec<u64> {
    let mut slots = Vec::with_capacity(section.targets.len());
    for source in 0..section.sources() {
        let list = section.list(source);
        slots.extend(list.first());
        slots.extend(list.windows(2).map(|pair| pair[1] - pair[0]));
    }
    slots
}

fn measure_one(baseline: &dyn BaselineOrder, pieces: &[&[u64]]) -> Measured {
    let encoded: Vec<Encoded> = pieces.iter().map(|slots| baseline.encode(slots)).collect();
    let count: usize = pieces.iter().map(|slots| slots.len()).sum();
    let mut out = vec![0; PIECE];
    for (encoded, slots) in encoded.iter().zip(pieces) {
        baseline.decode(encoded, 0, &mut out[..slots.len()]);
        assert_eq!(&out[..slots.len()], *slots, "{} loses slots", baseline.name());
    }
    let decode = best_of(3, || {
        for (encoded, slots) in encoded.iter().zip(pieces) {
            baseline.decode(encoded, 0, black_box(&mut out[..slots.len()]));
        }
    });
    let mut random = SplitMix64::new(3);
    let mut pick = || {
        let piece = random.below(pieces.len().min(64) as u64) as usize;
        let starts = pieces[piece].len().saturating_sub(LIST).max(1);
        (piece, random.below(starts as u64) as usize)
    };
    let picks: Vec<(usize, usize)> = (0..4_096).map(|_| pick()).collect();
    let list = best_of(3, || {
        for &(piece, start) in &picks {
            let count = LIST.min(pieces[piece].len() - start);
            baseline.decode(&encoded[piece], start, black_box(&mut out[..count]));
        }
    });
    let bytes: usize = encoded.iter().map(|encoded| encoded.bytes.len() + 4 * encoded.words.len()).sum();
    Measured {
        name: baseline.name(),
        bits: 8.0 * bytes as f64 / count as f64,
        decode_ns: decode * 1e9 / count as f64,
        list_ns: list * 1e9 / picks.len() as f64,
    }
}
