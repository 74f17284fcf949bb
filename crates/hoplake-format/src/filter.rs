//! Filters over keys: "absent" without I/O.
//!
//! A binary fuse filter (Graf and Lemire 2022, crate `xorf`) of 8-bit fingerprints: 9 bits a key and a
//! false positive in 256. One filter covers a run of key blocks of at most [`FILTER_KEYS_MAX`] keys, so
//! that building one needs bounded memory.

use xorf::{BinaryFuse8, BinaryFuse8Ref, DmaSerializable, Filter, FilterRef};

use crate::FormatError;

/// The most keys that one filter covers.
pub const FILTER_KEYS_MAX: usize = 1 << 18;

const DESCRIPTOR_BYTES: usize = <BinaryFuse8 as DmaSerializable>::DESCRIPTOR_LEN;

/// Writes a filter over distinct key hashes.
///
/// # Errors
/// [`FormatError::Invalid`] if two hashes are equal and the construction fails.
pub fn encode_filter(hashes: &[u64]) -> Result<Vec<u8>, FormatError> {
    let filter = BinaryFuse8::try_from(hashes)
        .map_err(|error| FormatError::Invalid(format!("a filter of {} keys failed: {error}", hashes.len())))?;
    let mut out = vec![0; DESCRIPTOR_BYTES];
    filter.dma_copy_descriptor_to(&mut out);
    out.extend_from_slice(filter.dma_fingerprints());
    Ok(out)
}

/// A filter that was read.
#[derive(Debug, Clone)]
pub struct KeyFilter(Vec<u8>);

impl KeyFilter {
    /// Takes the bytes of [`encode_filter`], whose checksum the caller has checked.
    ///
    /// # Errors
    /// [`FormatError::Corrupt`] if they are too few.
    pub fn decode(payload: &[u8]) -> Result<Self, FormatError> {
        let corrupt = |why: String| Err(FormatError::corrupt("key filter", why));
        // Descriptor: seed u64, segment length u32, its mask u32, length of all but two segments u32.
        let Some((descriptor, fingerprints)) = payload.split_at_checked(DESCRIPTOR_BYTES) else {
            return corrupt(format!("{} bytes are too few", payload.len()));
        };
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| descriptor[at + byte]));
        let segment = word(8);
        let mask = word(12);
        let body = word(16);
        // A key's fingerprints are in a segment of the body and in the two after it: without a body they would be after
        // the end.
        if !segment.is_power_of_two() || mask != segment - 1 || body == 0 || body % segment != 0 {
            return corrupt(format!("its segments of {segment} (mask {mask:x}) do not make up {body}"));
        }
        if u64::from(body) + 2 * u64::from(segment) != fingerprints.len() as u64 {
            return corrupt(format!("{} fingerprints are not {body} + 2 × {segment}", fingerprints.len()));
        }
        Ok(Self(payload.to_vec()))
    }

    /// Whether the key with this hash may be there; `false` is certain.
    pub fn may_contain(&self, hash: u64) -> bool {
        let (descriptor, fingerprints) = self.0.split_at(DESCRIPTOR_BYTES);
        BinaryFuse8Ref::from_dma(descriptor, fingerprints).contains(&hash)
    }

    /// Resident bytes.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Key;

    #[test]
    fn no_false_negative_and_few_false_positives() {
        let hashes: Vec<_> = (0..10_000).map(|key| Key::Int64(key).hash()).collect();
        let filter = KeyFilter::decode(&encode_filter(&hashes).unwrap()).unwrap();
        assert!(hashes.iter().all(|hash| filter.may_contain(*hash)));
        let wrong = (10_000..20_000).filter(|key| filter.may_contain(Key::Int64(*key).hash())).count();
        assert!(wrong < 120, "{wrong} of 10,000 absent keys pass; 39 are expected");
    }

    #[test]
    fn small_filters_work() {
        for count in 1..20 {
            let hashes: Vec<_> = (0..count).map(|key| Key::Int64(key).hash()).collect();
            let filter = KeyFilter::decode(&encode_filter(&hashes).unwrap()).unwrap();
            assert!(hashes.iter().all(|hash| filter.may_contain(*hash)));
        }
        assert!(KeyFilter::decode(&[0; 3]).is_err());
    }

    /// The segment lengths of a descriptor decide where look-ups read, so every value must keep them within the body.
    #[test]
    fn descriptors_of_no_filter_are_rejected() {
        let filter = |segment: u32, mask: u32, body: u32, fingerprints: usize| {
            let mut bytes = vec![7; 8];
            for word in [segment, mask, body] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.resize(DESCRIPTOR_BYTES + fingerprints, 0);
            KeyFilter::decode(&bytes)
        };
        for (segment, mask, body, fingerprints) in [
            (32, 31, 0, 64),
            (0, u32::MAX, 0, 0),
            (32, 30, 32, 96),
            (24, 23, 24, 72),
            (32, 31, 33, 97),
            (32, 31, 32, 95),
        ] {
            filter(segment, mask, body, fingerprints).unwrap_err();
        }
        for body in [32, 64, 224] {
            let filter = filter(32, 31, body, body as usize + 64).unwrap();
            for key in 0..10_000 {
                filter.may_contain(Key::Int64(key).hash());
            }
        }
    }
}
