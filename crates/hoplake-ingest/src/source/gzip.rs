//! Gzip as `gzip` reads it: members one after another, and zeros after the last.
//!
//! Tapes and block devices pad files with zeros, which `gzip` leaves out. Anything else after a member has to be the next one: what follows
//! zeros and is not, is not left out in silence.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// The decompressed bytes of all members.
pub(super) struct Gzip<R> {
    /// The decoder of the member under way; `None` between members, where `rest` is.
    member: Option<GzDecoder<R>>,
    rest: Option<R>,
    /// Whether there was a member: a file of zeros alone has none.
    begun: bool,
}

impl<R: BufRead> Gzip<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { member: None, rest: Some(reader), begun: false }
    }

    /// Begins the next member; false at the end.
    fn begin(&mut self) -> io::Result<bool> {
        let Some(rest) = &mut self.rest else { return Ok(false) };
        let mut padded = false;
        loop {
            let at_hand = match rest.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                filled => filled?,
            };
            if at_hand.is_empty() {
                return match self.begun {
                    true => Ok(false),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
            let zeros = at_hand.iter().take_while(|byte| **byte == 0).count();
            if zeros == 0 || !self.begun {
                break;
            }
            padded = true;
            rest.consume(zeros);
        }
        if padded {
            let why = "there is something after the zeros at the end of its gzip stream";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        self.member = self.rest.take().map(GzDecoder::new);
        self.begun = true;
        Ok(true)
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while self.member.is_some() || self.begin()? {
            let Some(member) = &mut self.member else { break };
            let read = member.read(buffer)?;
            if read > 0 {
                return Ok(read);
            }
            self.rest = self.member.take().map(GzDecoder::into_inner);
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::{BufReader, Write};

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn member(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        // A small buffer, so that members and zeros go over its end.
        Gzip::new(BufReader::with_capacity(7, bytes)).read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn members_follow_each_other_and_zeros_end_them() {
        let two = [member("one "), member(""), member("two")].concat();
        assert_eq!(read(&two).unwrap(), "one two");
        for zeros in [1, 7, 512] {
            assert_eq!(read(&[&two[..], &vec![0; zeros]].concat()).unwrap(), "one two");
            let error = read(&[&two[..], &vec![0; zeros], &member("three")].concat()).unwrap_err();
            assert!(error.to_string().contains("after the zeros"), "{error}");
        }
        for bad in [vec![], vec![0; 9], two[..two.len() - 1].to_vec(), [&two[..], b"text"].concat()] {
            assert!(read(&bad).is_err(), "{bad:?}");
        }
    }
}
