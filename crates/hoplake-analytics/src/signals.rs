//! The signals that all vertices send in a superstep.

use crate::{
    Value,
    value::{decode, encode},
};

/// What each vertex signals: a column that any vertex may be looked up in.
#[derive(Debug)]
pub(crate) struct Signals<S> {
    values: Vec<S>,
    is_sent: Vec<bool>,
    /// How many vertices send none though they have edges.
    silent: usize,
}

impl<S: Value> Signals<S> {
    /// What a signal takes.
    pub(crate) const BYTES: u64 = size_of::<S>() as u64 + 1;

    pub(crate) fn with_capacity(vertices: usize) -> Self {
        Self { values: Vec::with_capacity(vertices), is_sent: Vec::with_capacity(vertices), silent: 0 }
    }

    /// Adds the signals of the next vertices.
    pub(crate) fn append(&mut self, next: &Self) {
        self.values.extend_from_slice(&next.values);
        self.is_sent.extend_from_slice(&next.is_sent);
        self.silent += next.silent;
    }

    /// Adds the signal of the next vertex. Whether one without edges is silent makes no difference.
    pub(crate) fn push(&mut self, signal: Option<S>, has_edges: bool) {
        self.silent += usize::from(signal.is_none() && has_edges);
        self.is_sent.push(signal.is_some());
        self.values.push(signal.unwrap_or_default());
    }

    /// The signals as bytes: a bit for each vertex that says whether it sends one, how many are silent though they have edges, and the
    /// signals that are sent.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.is_sent.len().div_ceil(8)];
        let sent = || self.is_sent.iter().enumerate().filter(|(_, is_sent)| **is_sent).map(|(at, _)| at);
        sent().for_each(|at| bytes[at / 8] |= 1 << (at % 8));
        bytes.extend((self.silent as u64).to_le_bytes());
        bytes.extend(encode(&sent().map(|at| self.values[at]).collect::<Vec<_>>()));
        bytes
    }

    /// The signals of some vertices from their bytes; `None` if they are not those of as many.
    pub(crate) fn from_bytes(vertices: usize, bytes: &[u8]) -> Option<Self> {
        let (bits, rest) = bytes.split_at_checked(vertices.div_ceil(8))?;
        let (silent, values) = rest.split_first_chunk::<8>()?;
        let is_sent: Vec<bool> = (0..vertices).map(|at| bits[at / 8] >> (at % 8) & 1 == 1).collect();
        let count = is_sent.iter().filter(|is_sent| **is_sent).count();
        let silent = u64::from_le_bytes(*silent) as usize;
        if values.len() != count * S::WIDTH || silent > vertices - count {
            return None;
        }
        let mut sent = decode(values).into_iter();
        let values = is_sent.iter().map(|is_sent| if *is_sent { sent.next() } else { None }.unwrap_or_default());
        Some(Self { values: values.collect(), is_sent, silent })
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
        let sent = vertices.iter().enumerate().filter(|(_, vertex)| self.is_sent[**vertex as usize]);
        sent.map(|(at, vertex)| (self.values[*vertex as usize], at))
    }
}
