//! The signals that all vertices send in a superstep.

use crate::{
    Value,
    value::{decode, encode},
};

/// What each vertex signals: a column that any vertex may be looked up in.
#[derive(Debug)]
pub(crate) struct Signals<S> {
    values: Vec<S>,
    /// Of each vertex, whether it sends one. A bit, so that most looks find it in the processor's caches: a look for a value that is
    /// not there waits for memory as long as one for a value that is.
    is_sent: Bits,
    /// How many vertices send none though they have edges.
    silent: usize,
}

impl<S: Value> Signals<S> {
    /// What a signal takes.
    pub(crate) const BYTES: u64 = size_of::<S>() as u64 + 1;

    pub(crate) fn with_capacity(vertices: usize) -> Self {
        Self { values: Vec::with_capacity(vertices), is_sent: Bits::with_capacity(vertices), silent: 0 }
    }

    /// Makes it the signals of no vertices, which keep their memory.
    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.is_sent.words.clear();
        (self.is_sent.len, self.silent) = (0, 0);
    }

    /// Makes room for the signals of some more vertices.
    pub(crate) fn reserve(&mut self, vertices: usize) {
        self.values.reserve_exact(vertices);
        self.is_sent.words.reserve_exact(vertices.div_ceil(64));
    }

    /// Adds the signals of the next vertices.
    pub(crate) fn append(&mut self, next: &Self) {
        self.values.extend_from_slice(&next.values);
        self.is_sent.append(&next.is_sent);
        self.silent += next.silent;
    }

    /// The signals as bytes: a bit for each vertex that says whether it sends one, in words of 64, how many are silent though they have edges, and the
    /// signals that are sent.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.is_sent.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend((self.silent as u64).to_le_bytes());
        let sent = self.values.iter().enumerate().filter(|(at, _)| self.is_sent.get(*at)).map(|(_, value)| *value);
        bytes.extend(encode(&sent.collect::<Vec<_>>()));
        bytes
    }

    /// The signals of some vertices from their bytes; `None` if they are not those of as many.
    pub(crate) fn from_bytes(vertices: usize, bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.split_at_checked(vertices.div_ceil(64) * 8)?;
        let (silent, values) = rest.split_first_chunk::<8>()?;
        let words: Vec<u64> = words.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let is_sent = Bits { words, len: vertices };
        if !vertices.is_multiple_of(64) && is_sent.words.last().is_some_and(|last| last >> (vertices % 64) != 0) {
            return None;
        }
        let count = (0..vertices).filter(|at| is_sent.get(*at)).count();
        let silent = u64::from_le_bytes(*silent) as usize;
        if values.len() != count * S::WIDTH || silent > vertices - count {
            return None;
        }
        let mut sent = decode(values).into_iter();
        let value = |at| if is_sent.get(at) { sent.next() } else { None }.unwrap_or_default();
        Some(Self { values: (0..vertices).map(value).collect(), is_sent, silent })
    }

    /// Whether each vertex with edges sends a signal: then those of [`Self::all`] need not be asked whether they were sent.
    pub(crate) fn are_all_sent(&self) -> bool {
        self.silent == 0
    }

    /// The signals of some vertices that all send one.
    pub(crate) fn all<'a>(&'a self, vertices: &'a [u32]) -> impl Iterator<Item = S> + 'a {
        vertices.iter().map(|vertex| self.values[*vertex as usize])
    }

    /// The signals that some vertices send, each with its place among them.
    pub(crate) fn sent<'a>(&'a self, vertices: &'a [u32]) -> impl Iterator<Item = (S, usize)> + 'a {
        let sent = vertices.iter().enumerate().filter(|(_, vertex)| self.is_sent.get(**vertex as usize));
        sent.map(|(at, vertex)| (self.values[*vertex as usize], at))
    }
}

/// From the signals of all vertices, each with whether it has edges: whether one without edges is silent makes no difference.
impl<S: Value> FromIterator<(Option<S>, bool)> for Signals<S> {
    fn from_iter<I: IntoIterator<Item = (Option<S>, bool)>>(signals: I) -> Self {
        let mut words = Vec::new();
        let mut word = 0;
        let mut len = 0;
        let mut silent = 0;
        let value = |(signal, has_edges): (Option<S>, bool)| {
            silent += usize::from(signal.is_none() && has_edges);
            word |= u64::from(signal.is_some()) << (len % 64);
            len += 1;
            if len % 64 == 0 {
                words.push(std::mem::take(&mut word));
            }
            signal.unwrap_or_default()
        };
        let values = signals.into_iter().map(value).collect();
        if len % 64 != 0 {
            words.push(word);
        }
        Self { values, is_sent: Bits { words, len }, silent }
    }
}

/// Bits, one after the other, in words; those behind the last are 0.
#[derive(Debug)]
struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    fn with_capacity(bits: usize) -> Self {
        Self { words: Vec::with_capacity(bits.div_ceil(64)), len: 0 }
    }

    #[inline]
    fn get(&self, at: usize) -> bool {
        self.words[at / 64] >> (at % 64) & 1 == 1
    }

    fn append(&mut self, next: &Self) {
        let shift = self.len % 64;
        if shift == 0 {
            self.words.extend_from_slice(&next.words);
        } else {
            for word in &next.words {
                if let Some(last) = self.words.last_mut() {
                    *last |= word << shift;
                }
                self.words.push(word >> (64 - shift));
            }
        }
        self.len += next.len;
        self.words.truncate(self.len.div_ceil(64));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bits_of_no_vertex_are_rejected() {
        let signals = Signals::from_iter([(Some(7u32), true)]);
        let mut bytes = signals.to_bytes();
        assert!(Signals::<u32>::from_bytes(1, &bytes).is_some());
        bytes[0] = 0b11;
        assert!(Signals::<u32>::from_bytes(1, &bytes).is_none(), "it would be that of the next vertex");
    }

    proptest! {
        #[test]
        fn signals_are_what_was_pushed_and_appended(
            pieces in prop::collection::vec(prop::collection::vec(prop::option::of(any::<u32>()), 0..200), 0..6)
        ) {
            let mut all = Signals::with_capacity(0);
            for piece in &pieces {
                all.append(&piece.iter().map(|signal| (*signal, true)).collect());
            }
            let pushed = pieces.concat();
            let vertices: Vec<u32> = (0..pushed.len() as u32).collect();
            let silent = pushed.iter().filter(|signal| signal.is_none()).count();
            let received = Signals::from_bytes(pushed.len(), &all.to_bytes()).unwrap();
            for signals in [all, received] {
                let found: Vec<(u32, usize)> = signals.sent(&vertices).collect();
                let sent = pushed.iter().enumerate().filter_map(|(at, signal)| signal.map(|signal| (signal, at)));
                prop_assert_eq!(found, sent.collect::<Vec<_>>());
                prop_assert_eq!(signals.are_all_sent(), silent == 0);
            }
        }
    }
}
