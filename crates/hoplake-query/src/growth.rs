//! What a step builds: its memory is acquired before it is allocated, and its work is counted.
//!
//! A step may make gigabytes of kilobytes: a text in which each letter becomes a text, all pairs of two lists, a constant for each of
//! a million rows. So **whatever grows in [`run`](crate::run) and [`operators`](crate::operators) grows through a [`Growth`]**: it takes bytes from the query's
//! budget, and after each piece of work it looks at the deadline.
//!
//! ```text
//! begin ── take, take, take … ──▶ batches ── hand over ──▶ each batch has a hold of its size ── end ──▶ the rest is given back
//! ```
//! Between the two ends of a turn a growth only adds up: columns and intermediate values count until the turn ends, and not until each of
//! them is dropped. That needs no hold for each column, and errs on the side of too much. Turns nest, as traversals do.
//!
//! What is small and bounded, such as an integer or the entry of a map, may be built before it is counted; a text, a collection or a column
//! may not.

use std::{
    fmt::{self, Write},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use hoplake_storage::{MemoryHold, PIECE_UNITS, QueryContext};

use crate::{
    error::{Done, QueryError},
    value::{ALLOCATION_BYTES, Value, value_bytes},
};

/// Bytes that are acquired ahead, at most, so that not every value asks the budget.
const AHEAD_BYTES: u64 = 256 << 10;

/// Bytes that are copied or compared in the time of a unit of work.
const UNIT_BYTES: usize = 32;

/// The work of copying or comparing bytes.
pub(crate) fn units_of(bytes: usize) -> u64 {
    1 + (bytes / UNIT_BYTES) as u64
}

/// More than any budget has: sums of such sizes do not overflow.
const ENDLESS: u64 = 1 << 56;

/// The memory and the work of the steps of a query. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Growth(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    context: QueryContext,
    hold: Mutex<MemoryHold>,
    /// What the hold has, which is at least what was taken.
    held: AtomicU64,
    taken: AtomicU64,
    /// What was taken before the turn that is under way.
    floor: AtomicU64,
    /// Units since the deadline was last looked at.
    worked: AtomicU64,
    /// Units in all.
    done: AtomicU64,
}

/// The beginning of a turn.
#[derive(Debug)]
#[must_use = "a turn that does not end keeps its memory"]
pub(crate) struct Mark {
    floor: u64,
    taken: u64,
}

impl Growth {
    pub(crate) fn new(context: &QueryContext) -> Done<Self> {
        let zero = || AtomicU64::new(0);
        let hold = Mutex::new(context.hold(0)?);
        let context = context.clone();
        Ok(Self(Arc::new(Inner {
            context,
            hold,
            held: zero(),
            taken: zero(),
            floor: zero(),
            worked: zero(),
            done: zero(),
        })))
    }

    /// Acquires memory for what is about to be built.
    ///
    /// # Errors
    /// A limit, if the query's memory or time is used up.
    pub(crate) fn take(&self, bytes: usize) -> Done<()> {
        let bytes = (bytes as u64).min(ENDLESS);
        let taken = self.0.taken.fetch_add(bytes, Relaxed).saturating_add(bytes);
        if taken > self.0.held.load(Relaxed) {
            let mut hold = self.0.hold.lock().unwrap_or_else(PoisonError::into_inner);
            let ahead = (taken / 8).min(AHEAD_BYTES);
            if hold.resize(taken.saturating_add(ahead)).is_err() {
                self.0.context.resize(&mut hold, taken)?;
            }
            self.0.held.store(hold.bytes(), Relaxed);
        }
        self.work(bytes / UNIT_BYTES as u64)
    }

    /// Notes work, and looks at the deadline after each piece of it.
    ///
    /// # Errors
    /// A limit, if the query's time is over.
    pub(crate) fn work(&self, units: u64) -> Done<()> {
        self.0.done.fetch_add(units, Relaxed);
        let worked = self.0.worked.fetch_add(units, Relaxed).saturating_add(units);
        if worked >= PIECE_UNITS {
            self.0.worked.store(0, Relaxed);
            self.0.context.check_time()?;
        }
        Ok(())
    }

    /// All work so far.
    pub(crate) fn done(&self) -> u64 {
        self.0.done.load(Relaxed)
    }

    /// What was taken so far, for [`Self::at_least`].
    pub(crate) fn taken(&self) -> u64 {
        self.0.taken.load(Relaxed)
    }

    /// Counts what was built since, as far as it was not taken as it was built.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub(crate) fn at_least(&self, before: u64, bytes: usize) -> Done<()> {
        let counted = self.taken().saturating_sub(before);
        self.take(bytes.saturating_sub(usize::try_from(counted).unwrap_or(usize::MAX)))
    }

    /// Begins a turn.
    pub(crate) fn begin(&self) -> Mark {
        let taken = self.0.taken.load(Relaxed);
        Mark { floor: self.0.floor.swap(taken, Relaxed), taken }
    }

    /// Ends a turn: what it took and did not hand over is given back.
    pub(crate) fn end(&self, mark: &Mark) -> Done<()> {
        self.0.floor.store(mark.floor, Relaxed);
        self.0.taken.store(mark.taken, Relaxed);
        if self.0.held.load(Relaxed) > mark.taken.saturating_add(AHEAD_BYTES) {
            let mut hold = self.0.hold.lock().unwrap_or_else(PoisonError::into_inner);
            self.0.context.resize(&mut hold, mark.taken)?;
            self.0.held.store(mark.taken, Relaxed);
        }
        Ok(())
    }

    /// Has a hold be as large as something that the turn has built: out of what the turn took for it, as far as that goes.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub(crate) fn hand_over(&self, to: &mut Option<MemoryHold>, bytes: u64) -> Done<()> {
        let context = &self.0.context;
        let before = to.as_ref().map_or(0, MemoryHold::bytes);
        let own = self.0.taken.load(Relaxed).saturating_sub(self.0.floor.load(Relaxed));
        let moved = bytes.saturating_sub(before).min(own);
        if moved > 0 {
            let mut hold = self.0.hold.lock().unwrap_or_else(PoisonError::into_inner);
            let left = hold.bytes().saturating_sub(moved);
            context.resize(&mut hold, left)?;
            self.0.held.store(left, Relaxed);
            self.0.taken.fetch_sub(moved, Relaxed);
        }
        match to.as_mut() {
            Some(hold) => context.resize(hold, bytes)?,
            None => *to = Some(context.hold(bytes)?),
        }
        Ok(())
    }

    /// Takes over the memory of what goes on as a part of something else.
    pub(crate) fn absorb(&self, hold: Option<MemoryHold>) {
        if let Some(more) = hold {
            let mut hold = self.0.hold.lock().unwrap_or_else(PoisonError::into_inner);
            self.0.taken.fetch_add(more.bytes(), Relaxed);
            hold.join(more);
            self.0.held.store(hold.bytes(), Relaxed);
        }
    }

    /// A copy of a value.
    ///
    /// # Errors
    /// As [`Self::take`]; nothing is copied then.
    pub(crate) fn copy(&self, value: &Value) -> Done<Value> {
        self.take(value_bytes(value))?;
        Ok(value.clone())
    }

    /// Copies of some values.
    ///
    /// # Errors
    /// As [`Self::copy`].
    pub(crate) fn copy_all<'a>(&self, values: impl IntoIterator<Item = &'a Value>) -> Done<Vec<Value>> {
        values.into_iter().map(|value| self.copy(value)).collect()
    }

    /// A value that was built, if it is small, or of parts that were counted.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub(crate) fn built(&self, value: Value) -> Done<Value> {
        self.take(value_bytes(&value))?;
        Ok(value)
    }

    /// So many copies of a value.
    ///
    /// # Errors
    /// As [`Self::copy`].
    pub(crate) fn copies<T: Clone>(&self, one: &T, bytes: usize, count: usize) -> Done<Vec<T>> {
        self.take(bytes.max(size_of::<T>()).saturating_mul(count))?;
        // In pieces: a large value is copied for seconds.
        let mut copies = Vec::with_capacity(count);
        for _ in 0..count {
            self.work(units_of(bytes))?;
            copies.push(one.clone());
        }
        Ok(copies)
    }

    /// Room for a column of so many rows.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub(crate) fn column<T>(&self, rows: usize) -> Done<Vec<T>> {
        self.take(rows.saturating_mul(size_of::<T>()))?;
        Ok(Vec::with_capacity(rows))
    }

    /// A text that is put together.
    pub(crate) fn text(&self) -> TextBuilder<'_> {
        TextBuilder { growth: self, text: String::new(), failure: None }
    }
}

/// A text that grows within the memory of its query.
#[derive(Debug)]
pub(crate) struct TextBuilder<'a> {
    growth: &'a Growth,
    text: String,
    /// Why no more was written: what formats values cannot say it.
    failure: Option<QueryError>,
}

impl TextBuilder<'_> {
    /// Makes room for so many bytes more.
    ///
    /// # Errors
    /// As [`Growth::take`].
    pub(crate) fn reserve(&mut self, bytes: usize) -> Done<()> {
        let length = self.text.len().saturating_add(bytes);
        if length > self.text.capacity() {
            let capacity = length.max(self.text.capacity() * 2);
            // For the old text as well, which there is until the new one has its bytes.
            self.growth.take(capacity.saturating_add(ALLOCATION_BYTES))?;
            self.text.reserve_exact(capacity - self.text.len());
        }
        Ok(())
    }

    /// Adds a text.
    ///
    /// # Errors
    /// As [`Growth::take`].
    pub(crate) fn push(&mut self, more: &str) -> Done<()> {
        self.reserve(more.len())?;
        self.growth.work(units_of(more.len()))?;
        self.text.push_str(more);
        Ok(())
    }

    /// Adds a value as text.
    ///
    /// # Errors
    /// As [`Growth::take`].
    pub(crate) fn push_value(&mut self, value: &Value) -> Done<()> {
        // The only error of the writer is its own.
        let _ = write!(self, "{value}");
        self.failure.take().map_or(Ok(()), Err)
    }

    /// As a value.
    pub(crate) fn finish(self) -> Value {
        Value::Text(self.text.into())
    }
}

impl Write for TextBuilder<'_> {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        self.push(more).map_err(|failure| {
            self.failure = Some(failure);
            fmt::Error
        })
    }
}

#[cfg(test)]
mod tests {
    use hoplake_storage::MemoryBudget;

    use super::*;

    fn growth(bytes: u64) -> (MemoryBudget, Growth) {
        let budget = MemoryBudget::new("all queries", bytes);
        let growth = Growth::new(&QueryContext::within(&budget)).unwrap();
        (budget, growth)
    }

    #[test]
    fn nothing_is_built_that_does_not_fit() {
        let (budget, growth) = growth(1 << 20);
        let text = Value::from("x".repeat(1 << 19).as_str());
        growth.copy(&text).unwrap();
        assert!(growth.copy(&text).is_err());
        assert!(growth.copies(&text, value_bytes(&text), 1_000_000_000).is_err());
        assert!(growth.column::<Value>(usize::MAX).is_err());
        assert!(budget.peak() <= 1 << 20);
    }

    #[test]
    fn a_text_ends_where_the_memory_does() {
        let (_, growth) = growth(1 << 20);
        let mut text = growth.text();
        let value = Value::List(vec!["x".repeat(1 << 10).as_str().into(); 10]);
        let failed = (0..1_000).find_map(|_| text.push_value(&value).err());
        assert!(failed.unwrap().to_string().contains("bytes of memory"));
        assert!(text.text.len() < 1 << 20);
    }

    #[test]
    fn turns_give_back_what_they_did_not_hand_over() {
        let (budget, growth) = growth(1 << 30);
        let outer = growth.begin();
        growth.take(10 << 20).unwrap();
        let inner = growth.begin();
        growth.take(100 << 20).unwrap();
        let mut hold = None;
        growth.hand_over(&mut hold, 30 << 20).unwrap();
        growth.end(&inner).unwrap();
        let held = budget.used();
        assert!((40 << 20..42 << 20).contains(&held), "{held}");
        growth.absorb(hold.take());
        growth.hand_over(&mut hold, 20 << 20).unwrap();
        growth.end(&outer).unwrap();
        let held = budget.used();
        assert!((20 << 20..22 << 20).contains(&held), "{held}");
        drop(hold);
        assert!(budget.used() < 2 << 20);
    }
}
