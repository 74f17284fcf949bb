//! What a query built, with the memory that it takes.
//!
//! A [`Held`] value counts against the budget of its query for as long as it lives, also after the query ended: an
//! answer that waits for its client is memory, too. A [`HeldVec`] grows only as far as the budget allows.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use hoplake_storage::{MemoryHold, QueryContext, StorageError};

/// A value, and the memory that counts for it until its last clone is dropped.
#[derive(Clone, Default)]
pub struct Held<T> {
    value: T,
    memory: Vec<Arc<MemoryHold>>,
}

impl<T> Held<T> {
    /// A value, and the memory that was taken for it.
    pub fn new(value: T, memory: MemoryHold) -> Self {
        Self { value, memory: vec![Arc::new(memory)] }
    }

    /// A value of `bytes` that a query is about to hand out.
    ///
    /// # Errors
    /// [`StorageError::Limit`] if the query's budget has no room for it.
    pub fn counted(value: T, bytes: u64, context: &QueryContext) -> Result<Self, StorageError> {
        Ok(Self::new(value, context.hold(bytes)?))
    }

    /// The value alone, which is not counted any more.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// What `change` makes of the value, which counts as before.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Held<U> {
        Held { value: change(self.value), memory: self.memory }
    }

    /// The value, and apart from it the memory that counts for it.
    pub fn into_parts(self) -> (T, Held<()>) {
        (self.value, Held { value: (), memory: self.memory })
    }

    /// Lets the memory of another value count for this one, which took it in.
    pub fn absorb<U>(&mut self, other: Held<U>) -> U {
        self.hold_also(other.memory);
        other.value
    }

    fn hold_also(&mut self, more: Vec<Arc<MemoryHold>>) {
        for hold in more {
            // Holds are added up while no clone shares them; a shared one has to stay as it is until its last clone is dropped.
            match (self.memory.first_mut().and_then(Arc::get_mut), Arc::try_unwrap(hold)) {
                (Some(own), Ok(hold)) => own.join(hold),
                (_, Ok(hold)) => self.memory.push(Arc::new(hold)),
                (_, Err(shared)) => self.memory.push(shared),
            }
        }
    }
}

impl<T> Held<Vec<T>> {
    /// The items one by one; the memory of all counts until the last of them is dropped.
    pub fn split(self) -> impl Iterator<Item = Held<T>> {
        let memory = self.memory;
        self.value.into_iter().map(move |value| Held { value, memory: memory.clone() })
    }
}

impl<T> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Held<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// Shows the value.
impl<T: fmt::Debug> fmt::Debug for Held<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

/// Compares the value.
impl<T: PartialEq<U>, U> PartialEq<U> for Held<T> {
    fn eq(&self, other: &U) -> bool {
        self.value == *other
    }
}

/// The items of a [`Held`] collection, which counts until the last was taken.
#[derive(Debug)]
pub struct HeldIter<I> {
    items: I,
    _memory: Vec<Arc<MemoryHold>>,
}

impl<T: IntoIterator> IntoIterator for Held<T> {
    type Item = T::Item;
    type IntoIter = HeldIter<T::IntoIter>;

    fn into_iter(self) -> Self::IntoIter {
        HeldIter { items: self.value.into_iter(), _memory: self.memory }
    }
}

impl<I: Iterator> Iterator for HeldIter<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        self.items.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.items.size_hint()
    }
}

/// A vector whose capacity counts before it is allocated.
#[derive(Debug)]
pub(crate) struct HeldVec<T> {
    items: Vec<T>,
    memory: MemoryHold,
    context: QueryContext,
}

impl<T> HeldVec<T> {
    pub(crate) fn new(context: &QueryContext) -> Result<Self, StorageError> {
        Ok(Self { items: Vec::new(), memory: context.hold(0)?, context: context.clone() })
    }

    /// Makes room for more items, at least doubling what there is.
    pub(crate) fn reserve(&mut self, more: usize) -> Result<(), StorageError> {
        let length = self.items.len();
        let before = self.items.capacity();
        if length + more <= before {
            return Ok(());
        }
        let after = (length + more).max(before * 2);
        // While items move, both are there.
        self.context.resize(&mut self.memory, bytes_of::<T>(before + after))?;
        self.items.reserve_exact(after - length);
        self.context.resize(&mut self.memory, bytes_of::<T>(self.items.capacity()))
    }

    pub(crate) fn push(&mut self, item: T) -> Result<(), StorageError> {
        self.reserve(1)?;
        self.items.push(item);
        Ok(())
    }

    pub(crate) fn items(&mut self) -> &mut Vec<T> {
        &mut self.items
    }

    pub(crate) fn finish(self) -> Held<Vec<T>> {
        Held::new(self.items, self.memory)
    }
}

impl<T> Deref for HeldVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

/// The bytes of `count` values side by side.
pub(crate) fn bytes_of<T>(count: usize) -> u64 {
    (count as u64).saturating_mul(size_of::<T>() as u64)
}

#[cfg(test)]
mod tests {
    use hoplake_storage::ReadLimits;

    use super::*;

    #[test]
    fn a_vector_grows_as_far_as_the_budget() {
        let context = QueryContext::new();
        context.limit(ReadLimits { memory_bytes_max: Some(4096), ..ReadLimits::default() });
        let mut numbers = HeldVec::<u64>::new(&context).unwrap();
        let rejected = (0..1000).find_map(|number| numbers.push(number).err()).unwrap();
        assert!(rejected.to_string().contains("4096 bytes of memory for the query"), "{rejected}");
        // 256 items and 128 items, but not 512 and 256, fit while they move.
        assert_eq!((numbers.len(), context.memory().used()), (256, 256 * 8));
        let held = numbers.finish();
        let clone = held.clone();
        drop(held);
        assert_eq!(context.memory().used(), 256 * 8, "the clone counts still");
        drop(clone);
        assert_eq!(context.memory().used(), 0);
    }
}
