//! CRC-32C over a block and its location.
//!
//! The checksum of a block covers its bytes, its position and the name of its object: a block that
//! is read from the wrong location fails like a flipped one. CRC-32C finds every error burst of up
//! to 32 bits, and processors compute it at memory speed.

use crate::{
    FormatError,
    constants::{CHECKSUM_BYTES, own_name},
};

/// The number that stands for an object's name in the checksums of its blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectSeed(u32);

impl ObjectSeed {
    /// The seed of the object called `name`, relative to the prefix of the graph that it was written for.
    pub fn of(name: &str) -> Self {
        Self(crc32c::crc32c(own_name(name).as_bytes()))
    }
}

/// The checksum of `payload` at byte `position` of an object.
pub fn block_checksum(seed: ObjectSeed, position: u64, payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(seed.0, &position.to_le_bytes()), payload)
}

/// Appends `payload` and its checksum to `out`; `position` is where the payload begins in its object.
pub fn seal_block(seed: ObjectSeed, position: u64, payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(payload);
    out.extend_from_slice(&block_checksum(seed, position, payload).to_le_bytes());
}

/// Checks a sealed block and returns its payload.
///
/// # Errors
/// [`FormatError::Corrupt`] if it is too short or its checksum differs.
pub fn open_block(seed: ObjectSeed, position: u64, sealed: &[u8]) -> Result<&[u8], FormatError> {
    let Some((payload, checksum)) = sealed.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Err(FormatError::corrupt("block", format!("{} bytes are too few for a checksum", sealed.len())));
    };
    let found = block_checksum(seed, position, payload);
    let expected = u32::from_le_bytes(*checksum);
    if found != expected {
        return Err(FormatError::corrupt(
            "block",
            format!("fails its checksum (expected {expected:08x}, found {found:08x})"),
        ));
    }
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flip_cut_and_move_is_found() {
        let seed = ObjectSeed::of("data/a");
        let mut sealed = Vec::new();
        seal_block(seed, 8, b"neighbours", &mut sealed);
        assert_eq!(open_block(seed, 8, &sealed).unwrap(), b"neighbours");
        assert!(open_block(seed, 9, &sealed).is_err());
        assert!(open_block(ObjectSeed::of("data/b"), 8, &sealed).is_err());
        for cut in 0..sealed.len() {
            assert!(open_block(seed, 8, &sealed[..cut]).is_err());
        }
        for byte in 0..sealed.len() {
            for bit in 0..8 {
                sealed[byte] ^= 1 << bit;
                assert!(open_block(seed, 8, &sealed).is_err());
                sealed[byte] ^= 1 << bit;
            }
        }
    }
}
