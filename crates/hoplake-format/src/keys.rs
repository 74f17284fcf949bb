//! Key blocks: sorted keys of one vertex label and the ordinals they stand for.
//!
//! ```text
//! varint  number of keys, at least 1
//! varint  first ordinal + 1 if ordinals are consecutive, 0 if each key has its own
//! keys    int64: zigzag varint of the first, then varints of the differences
//!         string: front coded: varint shared prefix, varint suffix length, suffix
//! varint* ordinals, one a key, unless consecutive
//! ```
//! In key order ordinals are consecutive and cost nothing. A block is small (4 KiB), so that a look-up
//! reads little and decodes it from the front.

use prost::encoding::{decode_varint, encode_varint};
use xxhash_rust::xxh3::xxh3_64;

use crate::{FormatError, KeyType, VertexId};

/// The bytes that the keys of a block may expand to, beyond twice their encoding. Front coding expands few bytes to
/// many, and a forged block would make gigabytes of them: a hundred thousand keys that share all but a byte of a long
/// one. A writer closes a block at 4 KiB of keys in full, whatever they share, and its last key is no longer than the
/// block.
const KEY_BYTES_FREE: usize = 64 << 10;

/// The user-given name of a vertex within its label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// An integer.
    Int64(i64),
    /// Text.
    String(String),
}

impl Key {
    /// Its type.
    pub fn key_type(&self) -> KeyType {
        match self {
            Self::Int64(_) => KeyType::Int64,
            Self::String(_) => KeyType::String,
        }
    }

    /// Reads `text` as a key of this type; `None` if it is not one.
    pub fn parse(text: &str, key_type: KeyType) -> Option<Self> {
        match key_type {
            KeyType::Int64 => text.parse().ok().map(Self::Int64),
            KeyType::String => Some(Self::String(text.to_owned())),
        }
    }

    /// The hash under which it stands in a filter: XXH3 of its little-endian bytes or its UTF-8.
    pub fn hash(&self) -> u64 {
        match self {
            Self::Int64(key) => xxh3_64(&key.to_le_bytes()),
            Self::String(key) => xxh3_64(key.as_bytes()),
        }
    }

    /// An estimate of its bytes in a block.
    pub fn encoded_bytes(&self) -> usize {
        match self {
            Self::Int64(_) => 3,
            Self::String(key) => key.len() + 2,
        }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int64(key) => write!(f, "{key}"),
            Self::String(key) => write!(f, "{key}"),
        }
    }
}

impl From<i64> for Key {
    fn from(key: i64) -> Self {
        Self::Int64(key)
    }
}

impl From<String> for Key {
    fn from(key: String) -> Self {
        Self::String(key)
    }
}

impl From<&str> for Key {
    fn from(key: &str) -> Self {
        Self::String(key.to_owned())
    }
}

/// Writes a block of at least one key; keys strictly ascend and are of one type.
///
/// # Errors
/// [`FormatError::Invalid`] if they do not.
pub fn encode_key_block(entries: &[(Key, u64)]) -> Result<Vec<u8>, FormatError> {
    let Some((_, first_ordinal)) = entries.first() else {
        return Err(FormatError::Invalid("a key block holds at least one key".into()));
    };
    // Vertices that were loaded in key order have ordinals that count up: one number stands for all of them, at 0 bytes a key.
    let consecutive = entries.iter().zip(*first_ordinal..).all(|((_, ordinal), expected)| *ordinal == expected);
    let mut out = Vec::new();
    encode_varint(entries.len() as u64, &mut out);
    encode_varint(if consecutive { first_ordinal + 1 } else { 0 }, &mut out);
    let mut previous: Option<&Key> = None;
    for (key, _) in entries {
        encode_key(previous, key, &mut out)?;
        previous = Some(key);
    }
    if !consecutive {
        entries.iter().for_each(|(_, ordinal)| encode_varint(*ordinal, &mut out));
    }
    Ok(out)
}

fn encode_key(previous: Option<&Key>, key: &Key, out: &mut Vec<u8>) -> Result<(), FormatError> {
    match (previous, key) {
        (None, Key::Int64(key)) => encode_varint(zigzag(*key), out),
        (Some(Key::Int64(before)), Key::Int64(key)) if before < key => encode_varint(key.abs_diff(*before), out),
        (None, Key::String(key)) => encode_suffix(0, key.as_bytes(), out),
        (Some(Key::String(before)), Key::String(key)) if before < key => {
            let shared = shared_prefix(before.as_bytes(), key.as_bytes());
            encode_suffix(shared, &key.as_bytes()[shared..], out);
        }
        (Some(before), key) => {
            return Err(FormatError::Invalid(format!("key {key} does not follow key {before} in a key block")));
        }
    }
    Ok(())
}

fn encode_suffix(shared: usize, suffix: &[u8], out: &mut Vec<u8>) {
    encode_varint(shared as u64, out);
    encode_varint(suffix.len() as u64, out);
    out.extend_from_slice(suffix);
}

fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Decodes all keys of a block, in key order.
///
/// # Errors
/// [`FormatError::Corrupt`] on bytes that [`encode_key_block`] does not write.
pub fn decode_key_block(payload: &[u8], key_type: KeyType) -> Result<Vec<(Key, u64)>, FormatError> {
    let mut entries = Vec::new();
    let mut rest = payload;
    let (count, first_ordinal) = decode_header(&mut rest)?;
    let mut key = None;
    let mut own_bytes = 0;
    let mut bytes = 0;
    for _ in 0..count {
        let next = decode_key(key.as_ref(), key_type, &mut own_bytes, &mut rest)?;
        bytes += if let Key::String(text) = &next { text.len() } else { 0 };
        // A prefix of a megabyte could be repeated by every key of a block: memory grows with the bytes that the block really has.
        if bytes > KEY_BYTES_FREE + 2 * own_bytes {
            return Err(corrupt(format!("its keys take more than {bytes} bytes, and it has {own_bytes} of them")));
        }
        entries.push((next.clone(), 0));
        key = Some(next);
    }
    for (index, entry) in entries.iter_mut().enumerate() {
        entry.1 = decode_ordinal(first_ordinal, index as u64, &mut rest)?;
    }
    if !rest.is_empty() {
        return Err(corrupt(format!("{} bytes follow its last ordinal", rest.len())));
    }
    Ok(entries)
}

/// Which of some keys, of one type and ascending, a block has: by their places among them, with their ordinals. Reads no further than
/// it needs, and builds no key.
///
/// # Errors
/// [`FormatError::Corrupt`] if the bytes are not from [`encode_key_block`].
pub fn find_in_key_block<'k>(
    payload: &[u8],
    keys: impl IntoIterator<Item = &'k Key>,
) -> Result<Vec<(usize, u64)>, FormatError> {
    let mut keys = keys.into_iter().enumerate().peekable();
    let mut rest = payload;
    let (count, first_ordinal) = decode_header(&mut rest)?;
    // Separate ordinals follow the last key.
    let to_end = first_ordinal.is_none();
    let mut found = match keys.peek() {
        None => return Ok(Vec::new()),
        Some((_, Key::Int64(_))) => {
            let numbers =
                keys.filter_map(|(place, key)| if let Key::Int64(key) = key { Some((place, *key)) } else { None });
            find_numbers(numbers, count, to_end, &mut rest)?
        }
        Some((_, Key::String(_))) => {
            let texts =
                keys.filter_map(|(place, key)| if let Key::String(key) = key { Some((place, key)) } else { None });
            find_texts(texts, count, to_end, &mut rest)?
        }
    };
    let mut next = 0;
    let mut ordinal = 0;
    for (_, number) in &mut found {
        let index = *number;
        // A key that is sought twice is found once.
        if index >= next {
            if to_end {
                skip_numbers(index - next, &mut rest)?;
            }
            ordinal = decode_ordinal(first_ordinal, index, &mut rest)?;
            next = index + 1;
        }
        *number = ordinal;
    }
    Ok(found)
}

/// Differences that are read in one step.
const STEP: usize = 32;

/// The indices of integers among `count` keys, each with its place among those sought; if there are any and `to_end`, `rest` then
/// follows the last key.
fn find_numbers(
    keys: impl Iterator<Item = (usize, i64)>,
    count: u64,
    to_end: bool,
    rest: &mut &[u8],
) -> Result<Vec<(usize, u64)>, FormatError> {
    let mut current = unzigzag(decode_number(rest)?);
    let mut index = 0;
    let mut found = Vec::new();
    for (place, key) in keys {
        while current < key && index + 1 < count {
            // Mostly keys are dense and a difference is one byte: 32 of them are added at once, as long as the sum does not pass the key.
            if let Some((step, after)) = rest.split_first_chunk::<STEP>()
                && count - index > STEP as u64
                && let Some(sum) = sum_of_bytes(step)
                && let Some(next) = current.checked_add_unsigned(sum)
                && next <= key
            {
                current = next;
                index += STEP as u64;
                *rest = after;
                continue;
            }
            current = add(current, decode_number(rest)?)?;
            index += 1;
        }
        if current == key {
            found.push((place, index));
        }
    }
    if to_end && !found.is_empty() {
        skip_numbers(count - index - 1, rest)?;
    }
    Ok(found)
}

/// Skips numbers. A step is taken whole while more numbers than it ends are to be skipped: what it begins is one of
/// them.
fn skip_numbers(count: u64, rest: &mut &[u8]) -> Result<(), FormatError> {
    let mut left = count;
    while let Some((step, after)) = rest.split_first_chunk::<STEP>() {
        let ends = step.iter().filter(|byte| **byte < 0x80).count() as u64;
        // The last step is read number by number, since it may end within.
        if ends >= left {
            break;
        }
        left -= ends;
        *rest = after;
    }
    (0..left).try_for_each(|_| decode_number(rest).map(drop))
}

/// The sum of differences, if each is one byte: in dense keys all are, and a look-up takes a tenth of the time. The
/// folds are without branches, for the compiler to make vectors of them.
fn sum_of_bytes(step: &[u8; STEP]) -> Option<u64> {
    let all = step.iter().fold(0, |bits, byte| bits | byte);
    let least = step.iter().fold(u8::MAX, |least, byte| least.min(*byte));
    // No byte continues a number, and no difference is 0. The sum is at most 32 · 127 and fits 16 bits.
    (all < 0x80 && least > 0).then(|| u64::from(step.iter().fold(0, |sum, byte| sum + u16::from(*byte))))
}

/// As [`find_numbers`], of texts.
fn find_texts<'k>(
    keys: impl Iterator<Item = (usize, &'k String)>,
    count: u64,
    to_end: bool,
    rest: &mut &[u8],
) -> Result<Vec<(usize, u64)>, FormatError> {
    let mut current = Vec::new();
    decode_text(&mut current, true, rest)?;
    let mut index = 0;
    let mut found = Vec::new();
    for (place, key) in keys {
        while current.as_slice() < key.as_bytes() && index + 1 < count {
            decode_text(&mut current, false, rest)?;
            index += 1;
        }
        if current == key.as_bytes() {
            found.push((place, index));
        }
    }
    if to_end && !found.is_empty() {
        (index + 1..count).try_for_each(|_| decode_text(&mut current, false, rest).map(drop))?;
    }
    Ok(found)
}

fn decode_header(rest: &mut &[u8]) -> Result<(u64, Option<u64>), FormatError> {
    let count = decode_number(rest)?;
    let first_ordinal = decode_number(rest)?.checked_sub(1);
    // Every key takes at least a byte, so that a count cannot ask for more than the block could hold.
    if count == 0 || count > rest.len() as u64 {
        return Err(corrupt(format!("{count} keys do not fit its {} bytes", rest.len())));
    }
    Ok((count, first_ordinal))
}

/// Decodes the next key, and adds what the block has of it to `own_bytes`.
fn decode_key(
    previous: Option<&Key>,
    key_type: KeyType,
    own_bytes: &mut usize,
    rest: &mut &[u8],
) -> Result<Key, FormatError> {
    match (key_type, previous) {
        (KeyType::Int64, None) => Ok(Key::Int64(unzigzag(decode_number(rest)?))),
        (KeyType::Int64, Some(Key::Int64(before))) => add(*before, decode_number(rest)?).map(Key::Int64),
        (KeyType::String, previous) => {
            let mut text = match previous {
                Some(Key::String(before)) => before.as_bytes().to_vec(),
                _ => Vec::new(),
            };
            *own_bytes += decode_text(&mut text, previous.is_none(), rest)?;
            String::from_utf8(text).map(Key::String).map_err(|_| corrupt("a key is not UTF-8".into()))
        }
        (KeyType::Int64, Some(Key::String(_))) => Err(corrupt("its keys are of two types".into())),
    }
}

fn add(before: i64, difference: u64) -> Result<i64, FormatError> {
    let key = before.checked_add_unsigned(difference).filter(|_| difference > 0);
    key.ok_or_else(|| corrupt(format!("key {before} is followed by {difference} more")))
}

/// Makes the next key of the one before; returns how many bytes of it the block has.
fn decode_text(key: &mut Vec<u8>, first: bool, rest: &mut &[u8]) -> Result<usize, FormatError> {
    let shared = decode_number(rest)?;
    let suffix = decode_number(rest)?;
    if shared > key.len() as u64 || suffix > rest.len() as u64 {
        return Err(corrupt(format!("a key of {shared} + {suffix} bytes reaches past its neighbours")));
    }
    let (suffix, tail) = rest.split_at(suffix as usize);
    *rest = tail;
    // Behind the shared bytes, the order of the suffixes is that of the keys.
    if !first && suffix <= &key[shared as usize..] {
        return Err(corrupt("its keys do not ascend".into()));
    }
    key.truncate(shared as usize);
    key.extend_from_slice(suffix);
    Ok(suffix.len())
}

fn decode_ordinal(first: Option<u64>, index: u64, rest: &mut &[u8]) -> Result<u64, FormatError> {
    let ordinal = match first {
        // Saturated, a forged ordinal fails the check below instead of wrapping to a small one.
        Some(first) => first.saturating_add(index),
        None => decode_number(rest)?,
    };
    if ordinal > VertexId::ORDINAL_MAX {
        return Err(corrupt(format!("ordinal {ordinal} needs more than 48 bits")));
    }
    Ok(ordinal)
}

fn decode_number(rest: &mut &[u8]) -> Result<u64, FormatError> {
    decode_varint(rest).map_err(|error| corrupt(error.to_string()))
}

fn corrupt(why: String) -> FormatError {
    FormatError::corrupt("key block", why)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn keys() -> impl Strategy<Value = Vec<Key>> {
        // Scattered, and dense with gaps, which are read in steps.
        let scattered = prop::collection::btree_set(any::<i64>(), 1..80);
        let dense = prop::collection::btree_set(-300i64..300, 1..500);
        let int = prop_oneof![scattered, dense].prop_map(|keys| keys.into_iter().map(Key::Int64).collect());
        let text = prop::collection::btree_set("[a-cé]{0,6}", 1..80)
            .prop_map(|keys| keys.into_iter().map(Key::String).collect());
        prop_oneof![int, text]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            keys in keys(), others in keys(), kept in prop::collection::vec(any::<bool>(), 1..40),
            dense in any::<bool>(), start in 0u64..1 << 47,
        ) {
            let entries: Vec<_> = keys.into_iter().zip(start..)
                .map(|(key, n)| (key, if dense { n } else { n ^ 5 })).collect();
            let block = encode_key_block(&entries).unwrap();
            let key_type = entries[0].0.key_type();
            prop_assert_eq!(decode_key_block(&block, key_type).unwrap(), entries.clone());
            let present: BTreeMap<_, _> = entries.into_iter().collect();
            for (key, ordinal) in &present {
                prop_assert_eq!(find_in_key_block(&block, [key]).unwrap(), [(0, *ordinal)]);
            }
            // All at once, some of them, and some twice; between them keys that the block has not.
            let near = others.into_iter().filter(|key| key.key_type() == key_type);
            let mut sought: Vec<_> = present.keys().cloned().chain(near).enumerate()
                .filter(|(at, _)| kept[at % kept.len()]).map(|(_, key)| key).collect();
            sought.extend(sought.last().cloned());
            sought.sort_unstable();
            let expected: Vec<_> = sought.iter().enumerate()
                .filter_map(|(at, key)| Some((at, *present.get(key)?))).collect();
            prop_assert_eq!(find_in_key_block(&block, &sought).unwrap(), expected);
        }

        #[test]
        fn any_bytes_are_an_answer_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode_key_block(&bytes, KeyType::Int64);
            let _ = decode_key_block(&bytes, KeyType::String);
            let _ = find_in_key_block(&bytes, &[1, 2, 70].map(Key::Int64));
            let _ = find_in_key_block(&bytes, &["a", "b"].map(Key::from));
        }
    }

    #[test]
    fn keys_that_share_too_much_are_rejected() {
        // Each adds a byte to all of the one before: 2 KiB of block, 220 KiB of keys.
        let mut block = Vec::new();
        encode_varint(200, &mut block);
        encode_varint(1, &mut block);
        encode_suffix(0, &[b'a'; 1000], &mut block);
        (1000..1199).for_each(|shared| encode_suffix(shared, b"a", &mut block));
        let rejected = decode_key_block(&block, KeyType::String).unwrap_err().to_string();
        assert!(rejected.contains("its keys take more than"), "{rejected}");
        // A block may have a long key, also after 4 KiB of others with which it shares most bytes.
        let long = "x".repeat(1 << 20);
        let entries = [("x".repeat(4000), 3), (long, 4)].map(|(key, ordinal)| (Key::String(key), ordinal));
        let block = encode_key_block(&entries).unwrap();
        assert_eq!(decode_key_block(&block, KeyType::String).unwrap(), entries);
    }

    #[test]
    fn unsorted_keys_are_rejected() {
        let entries = [(Key::Int64(2), 0), (Key::Int64(2), 1)];
        assert!(matches!(encode_key_block(&entries), Err(FormatError::Invalid(_))));
        assert!(matches!(encode_key_block(&[]), Err(FormatError::Invalid(_))));
    }
}
