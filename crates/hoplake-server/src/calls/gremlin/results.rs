//! Results on their way to the client.
//!
//! One stream for all protocols counts results, holds memory for what is made of them, and collects those that the cache is to keep.
//! Results that the cache has are shared with it: only what a message needs of them is copied.

use std::{collections::HashSet, ops::Range, vec};

use futures::future::BoxFuture;
use hoplake::{
    MemoryBudget, MemoryHold,
    gremlin::{
        Results,
        script::Terminal,
        value::{Key, Value},
        value_bytes,
    },
};

use super::request::{GremlinOptions, GremlinRequest};
use crate::{
    calls::call::Call,
    failure::{Failure, Reason},
    results::{Filling, KeptResults},
};

/// Results that are dropped at a time.
const DROPPED: usize = 1_000;
/// How many times a result is there while a message is made of it: as JSON, as text, and in the message.
const MESSAGE_COPIES: u64 = 3;
/// The memory of a result that is kept to recognize it again.
const KNOWN_BYTES: u64 = 256;

/// Results, each with how many times it occurs. Iterating moves them out, or copies those that are shared, one by one.
#[derive(Debug)]
pub(crate) enum ResultValues {
    Own(vec::IntoIter<(Value, u64)>),
    Shared { all: KeptResults, range: Range<usize> },
}

impl ResultValues {
    pub(crate) fn as_slice(&self) -> &[(Value, u64)] {
        match self {
            Self::Own(values) => values.as_slice(),
            Self::Shared { all, range } => &all[range.clone()],
        }
    }

    /// Bytes of values that are not the cache's.
    pub(crate) fn own_bytes(&self) -> u64 {
        match self {
            Self::Own(values) => bytes_of(values.as_slice()),
            Self::Shared { .. } => 0,
        }
    }
}

impl Iterator for ResultValues {
    type Item = (Value, u64);

    fn next(&mut self) -> Option<(Value, u64)> {
        match self {
            Self::Own(values) => values.next(),
            Self::Shared { all, range } => range.next().map(|position| all[position].clone()),
        }
    }
}

fn bytes_of(values: &[(Value, u64)]) -> u64 {
    values.iter().map(|(value, _)| value_bytes(value) as u64).sum()
}

/// The consumer of results, in a protocol.
pub(crate) trait GremlinSink: Send {
    /// Encodes results, and waits until there is room for more.
    fn put(&mut self, results: ResultValues) -> BoxFuture<'_, Result<(), Failure>>;

    /// No more follow, and what they changed is about to be committed: what can fail of the rest fails now.
    fn prepare(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// The results of a request.
pub(super) struct ResultStream<'a> {
    sink: &'a mut dyn GremlinSink,
    options: GremlinOptions,
    memory: MemoryBudget,
    /// How many more there may be, of the server's maximum.
    left: u64,
    max: u64,
    collected: Option<Collected<'a>>,
}

/// Results that the cache is to keep. They are complete before they are sent: requests that wait for them do not wait for a client.
struct Collected<'a> {
    filling: Filling<'a>,
    values: Vec<(Value, u64)>,
    bytes: u64,
    hold: MemoryHold,
}

impl<'a> ResultStream<'a> {
    pub(super) fn new(call: &Call, request: &GremlinRequest, sink: &'a mut dyn GremlinSink) -> Self {
        let max = call.service.settings.limits.results_max as u64;
        Self { sink, options: request.options, memory: call.memory.clone(), left: max, max, collected: None }
    }

    /// Collects what follows for the cache. What turns out to be too large for it is sent as it comes.
    pub(super) fn collect_for(&mut self, filling: Filling<'a>) -> Result<(), Failure> {
        let hold = self.memory.hold(0)?;
        self.collected = Some(Collected { filling, values: Vec::new(), bytes: 0, hold });
        Ok(())
    }

    /// No more follow: keeps what was collected, and sends it.
    pub(super) async fn keep(&mut self) -> Result<(), Failure> {
        let Some(Collected { filling, values, bytes, hold: _hold }) = self.collected.take() else { return Ok(()) };
        let kept: KeptResults = values.into();
        filling.keep(kept.clone(), bytes);
        self.send_shared(&kept, kept.len()).await
    }

    /// Sends results that the cache has.
    pub(super) async fn put_cached(&mut self, kept: &KeptResults) -> Result<(), Failure> {
        let excess = self.excess(kept);
        let whole = excess.map_or(kept.len(), |(position, _)| position);
        self.send_shared(kept, whole).await?;
        if let Some((position, rest @ 1..)) = excess {
            let last = vec![(kept[position].0.clone(), rest)];
            self.send(ResultValues::Own(last.into_iter())).await?;
        }
        self.within_max(excess)
    }

    /// No more follow, and what they changed is about to be committed.
    pub(super) fn prepare(&mut self) -> Result<(), Failure> {
        self.sink.prepare()
    }

    /// Takes the results of a statement.
    pub(super) async fn take(&mut self, results: &mut Results, terminal: Terminal) -> Result<(), Failure> {
        match terminal {
            Terminal::All | Terminal::List | Terminal::BulkSet => loop {
                let next = results.next(self.options.batch).await?;
                if next.is_empty() {
                    return Ok(());
                }
                self.put(next).await?;
            },
            Terminal::Set => self.take_distinct(results).await,
            Terminal::Next(None) => match self.take_some(results, 1).await? {
                0 => {
                    let failure = Failure::invalid("`next()` found no result; `tryNext()` may find none");
                    Err(Failure { cause: Some(hoplake::Reason::Query), ..failure })
                }
                _ => Ok(()),
            },
            Terminal::TryNext => self.take_some(results, 1).await.map(drop),
            Terminal::Next(Some(most)) => self.take_some(results, most).await.map(drop),
            Terminal::HasNext => {
                let has_next = !results.next(1).await?.is_empty();
                self.put(vec![(has_next.into(), 1)]).await
            }
            Terminal::Iterate => {
                while !results.next(DROPPED).await?.is_empty() {}
                Ok(())
            }
        }
    }

    /// The first results, and how many there are of `most`.
    async fn take_some(&mut self, results: &mut Results, most: u64) -> Result<u64, Failure> {
        let batch = self.options.batch;
        let mut taken = 0;
        while taken < most {
            let at_a_time = usize::try_from(most - taken).map_or(batch, |left| left.min(batch));
            let mut next = results.next(at_a_time).await?;
            if next.is_empty() {
                break;
            }
            for (_, bulk) in &mut next {
                *bulk = (*bulk).min(most - taken);
                taken += *bulk;
            }
            next.retain(|(_, bulk)| *bulk > 0);
            self.put(next).await?;
        }
        Ok(taken)
    }

    /// Each result once.
    async fn take_distinct(&mut self, results: &mut Results) -> Result<(), Failure> {
        let mut seen: HashSet<EquivalentValue> = HashSet::new();
        let mut kept = 0;
        let mut hold = self.memory.hold(0)?;
        let bytes = |values: &[(Value, u64)]| bytes_of(values) + values.len() as u64 * KNOWN_BYTES;
        loop {
            let next = results.next(self.options.batch).await?;
            if next.is_empty() {
                return Ok(());
            }
            hold.resize(kept + bytes(&next))?;
            let new = next.into_iter().filter(|(value, _)| seen.insert(EquivalentValue(value.clone())));
            let new: Vec<_> = new.map(|(value, _)| (value, 1)).collect();
            kept += bytes(&new);
            hold.resize(kept)?;
            self.put(new).await?;
        }
    }

    /// Sends results, or collects them for the cache, up to the maximum.
    async fn put(&mut self, mut results: Vec<(Value, u64)>) -> Result<(), Failure> {
        let excess = self.excess(&results);
        if let Some((position, rest)) = excess {
            results.truncate(position + 1);
            results[position].1 = rest;
            results.retain(|(_, bulk)| *bulk > 0);
        }
        let Some(mut collected) = self.collected.take() else {
            self.send(ResultValues::Own(results.into_iter())).await?;
            return self.within_max(excess);
        };
        collected.bytes += bytes_of(&results) + (results.len() * size_of::<u64>()) as u64;
        collected.hold.resize(collected.bytes)?;
        collected.values.extend(results);
        let is_too_large = collected.bytes > collected.filling.bytes_max();
        if excess.is_none() && !is_too_large {
            self.collected = Some(collected);
            return Ok(());
        }
        let Collected { filling, values, hold: _hold, .. } = collected;
        if is_too_large {
            filling.give_up();
        }
        let mut values = values.into_iter();
        while !values.as_slice().is_empty() {
            let batch: Vec<_> = values.by_ref().take(self.options.batch).collect();
            self.send(ResultValues::Own(batch.into_iter())).await?;
        }
        self.within_max(excess)
    }

    /// Counts results. The position of the one that exceeds the maximum, and how many times it may still be sent.
    fn excess(&mut self, results: &[(Value, u64)]) -> Option<(usize, u64)> {
        for (position, (_, bulk)) in results.iter().enumerate() {
            let times = if self.options.is_bulked { 1 } else { *bulk };
            match self.left.checked_sub(times) {
                Some(left) => self.left = left,
                None => return Some((position, std::mem::take(&mut self.left))),
            }
        }
        None
    }

    fn within_max(&self, excess: Option<(usize, u64)>) -> Result<(), Failure> {
        if excess.is_none() {
            return Ok(());
        }
        let message = format!("there are more than {} results; narrow the query", self.max);
        Err(Failure::new(Reason::Limit, message))
    }

    /// Sends the first results that the cache has.
    async fn send_shared(&mut self, kept: &KeptResults, count: usize) -> Result<(), Failure> {
        for from in (0..count).step_by(self.options.batch) {
            let range = from..count.min(from + self.options.batch);
            self.send(ResultValues::Shared { all: kept.clone(), range }).await?;
        }
        Ok(())
    }

    /// Sends results, with memory for them and for what messages are made of them.
    async fn send(&mut self, results: ResultValues) -> Result<(), Failure> {
        let copies = |bulk: u64| 1 + bulk.min(self.options.batch as u64);
        let bytes = results.as_slice().iter().map(|(value, bulk)| (value_bytes(value) as u64, copies(*bulk)));
        let sum = bytes.clone().fold(0, |sum: u64, (bytes, copies)| sum.saturating_add(bytes.saturating_mul(copies)));
        let largest = bytes.map(|(bytes, _)| bytes).max().unwrap_or(0);
        let _hold = self.memory.hold(sum.saturating_add(largest * MESSAGE_COPIES))?;
        self.sink.put(results).await
    }
}

/// A value that is compared and hashed by Gremlin's equivalence.
struct EquivalentValue(Value);

impl PartialEq for EquivalentValue {
    fn eq(&self, other: &Self) -> bool {
        Key(&self.0) == Key(&other.0)
    }
}

impl Eq for EquivalentValue {}

impl std::hash::Hash for EquivalentValue {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Key(&self.0).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_results_are_copied_one_by_one() {
        let all: KeptResults = [(Value::from("a"), 3), (Value::from("b"), 1), (Value::from("c"), 1)].into();
        let mut shared = ResultValues::Shared { all: all.clone(), range: 1..3 };
        assert_eq!((shared.as_slice(), shared.own_bytes()), (&all[1..], 0));
        // The same allocation, and none of its own.
        assert!(std::ptr::eq(&raw const shared.as_slice()[0], &raw const all[1]));
        assert_eq!(shared.next(), Some(("b".into(), 1)));
        assert_eq!(shared.as_slice(), &all[2..]);
        let copied: Vec<_> = all.iter().cloned().collect();
        let mut own = ResultValues::Own(copied.into_iter());
        assert_eq!((own.next(), own.as_slice()), (Some(("a".into(), 3)), &all[1..]));
        assert!(own.own_bytes() > 0);
    }
}
