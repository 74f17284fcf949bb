//! The signals that all vertices send in a superstep.

use crate::Value;

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
