//! Text in the charsets of a server.
//!
//! A query's answer is UTF-8: the server converts it. The binlog has the bytes of the column's own charset. Both have to be the same
//! property, so the log is read with the server's own tables: what a character of a charset is, the server is asked once, when the first
//! table with such a column is read. No library has the same tables: Microsoft's, the web's and the server's `sjis`, `big5`, `greek` or
//! `tis620` differ in some hundred characters, and of `hp8`, `keybcs2`, `geostd8` and others there is no library at all.
//!
//! A charset that cannot be read is rejected by name before the first copy ([`is_readable`]).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use mysql_async::{Conn, prelude::Queryable};

use super::failed;
use crate::FeedError;

/// How text is encoded in the binlog.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Charset {
    Utf8,
    /// Two bytes for each character, the higher first.
    Ucs2,
    /// The same with surrogates; whether the lower byte is first.
    Utf16 {
        is_little: bool,
    },
    /// Four bytes for each character, the highest first.
    Utf32,
    Table(Arc<CharacterTable>),
    /// Bytes that are no text.
    Binary,
    /// It has no table, and this name.
    Unknown(String),
}

/// The characters of a charset whose first byte says how many bytes a character has.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CharacterTable {
    /// By their bytes as one number, the first byte highest. Codes of several bytes begin with one that is not a character alone.
    characters: HashMap<u32, char, foldhash::fast::FixedState>,
    /// Bytes of the longest character.
    longest: usize,
}

/// What a server says of its charsets, kept while the feed runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Charsets {
    known: Arc<Mutex<CharsetCache>>,
}

/// The charsets and collations that were read from the server.
#[derive(Debug, Default)]
struct CharsetCache {
    /// The charset of each collation, by its number. A server never changes them.
    names: HashMap<u64, String>,
    tables: HashMap<String, Arc<CharacterTable>>,
}

/// Whether text in a charset can be read, by its name and the bytes of its longest character.
pub(super) fn is_readable(name: &str, longest: u64) -> bool {
    of_unicode(name).is_some() || longest <= 2 || is_euc(name)
}

fn of_unicode(name: &str) -> Option<Charset> {
    Some(match name {
        "utf8" | "utf8mb3" | "utf8mb4" => Charset::Utf8,
        "ucs2" => Charset::Ucs2,
        "utf16" => Charset::Utf16 { is_little: false },
        "utf16le" => Charset::Utf16 { is_little: true },
        "utf32" => Charset::Utf32,
        "binary" => Charset::Binary,
        _ => return None,
    })
}

/// Charsets with characters of three bytes, which begin with 0x8F.
fn is_euc(name: &str) -> bool {
    matches!(name, "ujis" | "eucjpms")
}

impl Charsets {
    /// The charset of a collation by its number, as a table map has it.
    pub(super) async fn of_collation(&self, conn: &mut Conn, number: u64) -> Result<Charset, FeedError> {
        let known = self.name(number);
        let name = match known {
            Some(name) => name,
            None => {
                let names = names(conn).await?;
                if let Ok(mut known) = self.known.lock() {
                    known.names.extend(names);
                }
                match self.name(number) {
                    Some(name) => name,
                    None => return Ok(Charset::Unknown(format!("number {number}"))),
                }
            }
        };
        if let Some(charset) = of_unicode(&name) {
            return Ok(charset);
        }
        let known = self.known.lock().ok().and_then(|known| known.tables.get(&name).cloned());
        if let Some(table) = known {
            return Ok(Charset::Table(table));
        }
        let Some(table) = CharacterTable::read(conn, &name).await? else { return Ok(Charset::Unknown(name)) };
        let table = Arc::new(table);
        if let Ok(mut known) = self.known.lock() {
            known.tables.insert(name, table.clone());
        }
        Ok(Charset::Table(table))
    }

    fn name(&self, number: u64) -> Option<String> {
        self.known.lock().ok()?.names.get(&number).cloned()
    }
}

/// The charset of each collation.
async fn names(conn: &mut Conn) -> Result<Vec<(u64, String)>, FeedError> {
    // Collations that fit several charsets have a number for each, which only MariaDB's second table has.
    let both = "SELECT id, character_set_name FROM information_schema.collation_character_set_applicability";
    if let Ok(names) = conn.query(both).await {
        return Ok(names);
    }
    let statement = "SELECT id, character_set_name FROM information_schema.collations WHERE id IS NOT NULL";
    conn.query(statement).await.map_err(|error| failed("read the collations", &error))
}

/// The numbers below 256, in a query.
const BYTES: &str = "bytes AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM bytes WHERE n < 255)";

impl CharacterTable {
    /// Asks the server for the characters of a charset; `None` if their bytes are ambiguous.
    async fn read(conn: &mut Conn, charset: &str) -> Result<Option<Self>, FeedError> {
        let statement = "SELECT maxlen FROM information_schema.character_sets WHERE character_set_name = ?";
        let asking = |error: mysql_async::Error| failed(&format!("read the characters of {charset}"), &error);
        let longest: Option<u64> = conn.exec_first(statement, (charset,)).await.map_err(asking)?;
        let Some(longest) = longest.filter(|longest| is_readable(charset, *longest)) else { return Ok(None) };
        let mut table = Self { longest: longest as usize, ..Self::default() };
        let of_one = "SELECT CHAR(n) AS code FROM bytes";
        let of_two = "SELECT CONCAT(CHAR(a.n), CHAR(b.n)) AS code FROM bytes a, bytes b WHERE a.n > 127";
        let of_three = "SELECT CONCAT(CHAR(143), CHAR(a.n), CHAR(b.n)) AS code FROM bytes a, bytes b WHERE a.n > 127 AND b.n > 127";
        for codes in [of_one, of_two, of_three].into_iter().take(table.longest) {
            // What is not a character becomes question marks, and is not itself any more.
            let statement = format!(
                "WITH RECURSIVE {BYTES}, codes AS ({codes}) \
                 SELECT code, CAST(CONVERT(CONVERT(code USING {charset}) USING utf32) AS BINARY) FROM codes \
                 WHERE CAST(CONVERT(code USING {charset}) AS BINARY) = code \
                 AND CHAR_LENGTH(CONVERT(code USING {charset})) = 1"
            );
            let found: Vec<(Vec<u8>, Vec<u8>)> = conn.query(statement).await.map_err(asking)?;
            for (code, character) in found {
                let character = character.try_into().ok().and_then(|four| char::from_u32(u32::from_be_bytes(four)));
                table.characters.insert(number(&code), character.unwrap_or('?'));
            }
        }
        Ok(Some(table))
    }

    fn decode(&self, mut bytes: &[u8]) -> Option<String> {
        let mut text = String::with_capacity(bytes.len());
        while !bytes.is_empty() {
            let of_length = |length: usize| Some((length, *self.characters.get(&number(bytes.get(..length)?))?));
            let (length, character) = (1..=self.longest).find_map(of_length)?;
            text.push(character);
            bytes = &bytes[length..];
        }
        Some(text)
    }
}

/// Bytes as one number, the first highest.
fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

impl Charset {
    /// Whether values are bytes.
    pub(super) fn is_binary(&self) -> bool {
        *self == Self::Binary
    }

    /// The text of bytes in this charset.
    ///
    /// # Errors
    /// Why they are none, as a sentence.
    pub(super) fn decode(&self, bytes: &[u8]) -> Result<String, String> {
        let pairs = |is_little: bool| {
            bytes.chunks(2).map(move |pair| match (pair, is_little) {
                ([a, b], false) => u16::from_be_bytes([*a, *b]),
                ([a, b], true) => u16::from_le_bytes([*a, *b]),
                // Half a surrogate is no character either.
                _ => 0xD800,
            })
        };
        let decoded = match self {
            Self::Utf8 | Self::Binary => std::str::from_utf8(bytes).ok().map(str::to_owned),
            // Half of a surrogate pair is a character here, which is none in UTF-8: a query has a question mark for it.
            Self::Ucs2 if bytes.len().is_multiple_of(2) => {
                Some(pairs(false).map(|pair| char::from_u32(u32::from(pair)).unwrap_or('?')).collect())
            }
            Self::Ucs2 => None,
            Self::Utf16 { is_little } => char::decode_utf16(pairs(*is_little)).collect::<Result<_, _>>().ok(),
            Self::Utf32 => {
                let four = |four: &[u8]| char::from_u32(u32::from_be_bytes(four.try_into().ok()?));
                bytes.chunks(4).map(four).collect()
            }
            Self::Table(table) => table.decode(bytes),
            Self::Unknown(name) => return Err(format!("its charset ({name}) cannot be read")),
        };
        decoded.ok_or_else(|| "its bytes are not text in the column's charset".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_several_bytes_is_read_from_its_first_byte_on() {
        let characters = [(0x41, 'A'), (0x5C, '¥'), (0xB1, 'ｱ'), (0x815C, '―'), (0x8FA2B1, '¸')];
        let table = CharacterTable { characters: characters.into_iter().collect(), longest: 3 };
        let charset = Charset::Table(Arc::new(table));
        assert_eq!(charset.decode(b"A\x81\x5C\x5C\xB1\x8F\xA2\xB1A").unwrap(), "A―¥ｱ¸A");
        for unread in [&b"A\x81"[..], b"\x81A", b"\x8F\xA2", b"\xFF"] {
            assert!(charset.decode(unread).is_err(), "{unread:?}");
        }
        assert_eq!(Charset::Ucs2.decode(&[0, 65, 0xD8, 0]).unwrap(), "A?");
        assert!(Charset::Ucs2.decode(&[0]).is_err() && Charset::Utf32.decode(&[0, 0, 65]).is_err());
        assert!(Charset::Utf16 { is_little: true }.decode(&[65, 0, 0]).is_err());
        assert_eq!(Charset::Utf16 { is_little: true }.decode(&[65, 0, 0x3D, 0xD8, 0, 0xDE]).unwrap(), "A😀");
    }
}
