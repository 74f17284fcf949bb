//! Codes of single numbers in a stream of bits, as in WebGraph, and general compressors.

use std::convert::Infallible;

use dsi_bitstream::prelude::*;

use super::{BaselineOrder, Encoded};

type Writer = BufBitWriter<LE, MemWordWriterVec<u32, Vec<u32>>>;
type Reader<'a> = BufBitReader<LE, MemWordReader<u32, &'a [u32], true>>;

/// The instantaneous codes of dsi-bitstream. The parameter is chosen for each piece.
struct Code {
    name: &'static str,
    parameter: fn(&[u64]) -> usize,
    len: fn(u64, usize) -> usize,
    write: fn(&mut Writer, u64, usize) -> Result<usize, Infallible>,
    read: fn(&mut Reader<'_>, usize) -> u64,
}

/// A general compressor of the slots in bytes of 7 bits (LEB128).
struct General {
    name: &'static str,
    compress: fn(&[u8]) -> Vec<u8>,
    decompress: fn(&[u8], usize) -> Vec<u8>,
}

/// The codecs without chunks.
pub fn baselines() -> Vec<Box<dyn BaselineOrder>> {
    vec![
        Box::new(Code {
            name: "gamma (dsi-bitstream)",
            parameter: |_| 0,
            len: |slot, _| len_gamma(slot),
            write: |writer, slot, _| writer.write_gamma(slot),
            read: |reader, _| sure(reader.read_gamma()),
        }),
        Box::new(Code {
            name: "delta (dsi-bitstream)",
            parameter: |_| 0,
            len: |slot, _| len_delta(slot),
            write: |writer, slot, _| writer.write_delta(slot),
            read: |reader, _| sure(reader.read_delta()),
        }),
        Box::new(Code {
            name: "zeta, best k of a piece (dsi-bitstream)",
            parameter: |slots| best(2..16, |k| slots.iter().map(|&slot| len_zeta(slot, k)).sum()),
            len: len_zeta,
            write: |writer, slot, k| writer.write_zeta(slot, k),
            read: |reader, k| sure(reader.read_zeta(k)),
        }),
        Box::new(Code {
            name: "Rice, best k of a piece (dsi-bitstream)",
            parameter: |slots| best(0..40, |k| slots.iter().map(|&slot| len_rice(slot, k)).sum()),
            len: len_rice,
            write: |writer, slot, k| writer.write_rice(slot, k),
            read: |reader, k| sure(reader.read_rice(k)),
        }),
        Box::new(General {
            name: "zstd 3 over varints",
            compress: |bytes| zstd::bulk::compress(bytes, 3).expect("memory takes any bytes"),
            decompress: |bytes, len| zstd::bulk::decompress(bytes, len).expect("it was just compressed"),
        }),
        Box::new(General {
            name: "lz4 over varints (lz4_flex)",
            compress: lz4_flex::compress,
            decompress: |bytes, len| lz4_flex::decompress(bytes, len).expect("it was just compressed"),
        }),
    ]
}

fn sure(read: Result<u64, Infallible>) -> u64 {
    read.unwrap_or_else(|never| match never {})
}

fn best(parameters: std::ops::Range<usize>, cost: impl Fn(usize) -> usize) -> usize {
    parameters.min_by_key(|&parameter| cost(parameter)).unwrap_or(0)
}

impl BaselineOrder for Code {
    fn name(&self) -> String {
        self.name.into()
    }

    fn encode(&self, slots: &[u64]) -> Encoded {
        let parameter = (self.parameter)(slots);
        let mut writer = Writer::new(MemWordWriterVec::new(Vec::new()));
        let mut marks = Vec::new();
        let mut bits = 0;
        for &slot in slots {
            marks.push(bits as u32);
            bits += (self.len)(slot, parameter);
            (self.write)(&mut writer, slot, parameter).expect("memory takes any word");
        }
        let words = writer.into_inner().expect("memory takes any word").into_inner();
        Encoded { words, marks, parameter, ..Encoded::default() }
    }

    fn decode(&self, encoded: &Encoded, start: usize, out: &mut [u64]) {
        let mut reader = Reader::new(MemWordReader::new_inf(encoded.words.as_slice()));
        if start > 0 {
            reader.set_bit_pos(u64::from(encoded.marks[start])).expect("the mark is in the stream");
        }
        out.iter_mut().for_each(|slot| *slot = (self.read)(&mut reader, encoded.parameter));
    }
}

impl BaselineOrder for General {
    fn name(&self) -> String {
        self.name.into()
    }

    fn encode(&self, slots: &[u64]) -> Encoded {
        let mut bytes = Vec::new();
        for &slot in slots {
            let mut left = slot;
            while left >= 128 {
                bytes.push(left as u8 | 128);
                left >>= 7;
            }
            bytes.push(left as u8);
        }
        Encoded { bytes: (self.compress)(&bytes), parameter: bytes.len(), ..Encoded::default() }
    }

    fn decode(&self, encoded: &Encoded, start: usize, out: &mut [u64]) {
        let bytes = (self.decompress)(&encoded.bytes, encoded.parameter);
        let mut bytes = bytes.iter();
        let mut next = || {
            let mut slot = 0;
            for (shift, &byte) in (0..).step_by(7).zip(bytes.by_ref()) {
                slot |= u64::from(byte & 127) << shift;
                if byte < 128 {
                    break;
                }
            }
            slot
        };
        (0..start).for_each(|_| {
            next();
        });
        out.iter_mut().for_each(|slot| *slot = next());
    }
}
