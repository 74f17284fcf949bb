//! Budgets of memory: the memory of queries and answers counts against one before it is allocated.
//!
//! A [`MemoryBudget`] is a number of bytes that many share; a budget *within* another also counts against that one, as
//! a query's does against its server's. Code that is about to build something takes a [`MemoryHold`] of its size, which
//! gives the bytes back when it is dropped: a hold lives in the same value as the memory it stands for.
//!
//! Counting is by estimate, of what grows with the data: elements times their size, the capacity of a vector, the
//! buffers of a column. An allocator that counts would be exact, but it can only abort, not reject; and it cannot
//! distinguish one query from another.
//!
//! The allocator may keep freed memory for the thread that freed it, while another thread allocates as much again; the process then exceeds the
//! budget. So a program can register a function that returns free memory to the system ([`MemoryBudget::reclaim_with`]).

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// A number of bytes that many share. Clones are the same budget.
#[derive(Debug, Clone)]
pub struct MemoryBudget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Whose it is, for the message: `the query`.
    owner: &'static str,
    bytes_max: AtomicU64,
    used: AtomicU64,
    peak: AtomicU64,
    within: Option<MemoryBudget>,
    is_shared: bool,
    reclaim: Option<Reclaim>,
}

/// A function that returns free memory to the system.
#[derive(Debug)]
struct Reclaim {
    call: fn(),
    /// Called when usage falls by this many bytes from its highest since the last call.
    bytes: u64,
    /// The most bytes held since the last call.
    high: AtomicU64,
}

impl Reclaim {
    /// Calls the function if usage is about to fall far enough. Returns whether it did.
    fn before(&self, used: u64) -> bool {
        let high = self.high.load(Relaxed);
        // Only one of several threads that give back at the same time calls it.
        let is_due =
            high.saturating_sub(used) >= self.bytes && self.high.compare_exchange(high, used, Relaxed, Relaxed).is_ok();
        if is_due {
            (self.call)();
        }
        is_due
    }
}

/// A budget that cannot give what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryFull {
    /// Whose budget it is.
    pub owner: &'static str,
    /// Its size in bytes.
    pub bytes_max: u64,
    /// Whether others hold what is missing, so that the same may fit later.
    pub is_shared: bool,
}

/// Bytes taken from a budget, and given back when this is dropped.
#[derive(Debug)]
pub struct MemoryHold {
    budget: MemoryBudget,
    bytes: u64,
}

impl MemoryBudget {
    /// A budget of its own. `owner` completes *the limit of … bytes of memory for*: `"the query"`.
    pub fn new(owner: &'static str, bytes_max: u64) -> Self {
        Self::of(owner, bytes_max, None, false)
    }

    /// A budget that many share. A single one must not ask for more than all of it: [`MemoryFull`] says that others hold what is missing.
    pub fn shared(owner: &'static str, bytes_max: u64) -> Self {
        Self::of(owner, bytes_max, None, true)
    }

    /// A budget without a bound, which still counts.
    pub fn unlimited(owner: &'static str) -> Self {
        Self::new(owner, u64::MAX)
    }

    /// A budget that counts against this one as well.
    pub fn within(&self, owner: &'static str, bytes_max: u64) -> Self {
        Self::of(owner, bytes_max, Some(self.clone()), false)
    }

    fn of(owner: &'static str, bytes_max: u64, within: Option<Self>, is_shared: bool) -> Self {
        let zero = || AtomicU64::new(0);
        Self(Arc::new(Inner {
            owner,
            bytes_max: AtomicU64::new(bytes_max),
            used: zero(),
            peak: zero(),
            within,
            is_shared,
            reclaim: None,
        }))
    }

    /// Registers a function that returns free memory to the system. The thread that gives bytes back calls it when usage falls by at least
    /// `bytes` from its highest since the last call. At that moment the memory is freed already, as values drop their parts before their
    /// hold, and the budget does not offer it to others yet.
    ///
    /// # Panics
    /// If the budget has been cloned or has inner budgets.
    #[must_use]
    pub fn reclaim_with(mut self, bytes: u64, call: fn()) -> Self {
        let inner = Arc::get_mut(&mut self.0).expect("a budget that is not shared yet");
        inner.reclaim = Some(Reclaim { call, bytes, high: AtomicU64::new(0) });
        self
    }

    /// Sets its size from now on. What is held stays held.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        self.0.bytes_max.store(bytes_max, Relaxed);
    }

    /// How many bytes may still be taken from it, and from those that it is within; `u64::MAX` if there is no bound.
    pub fn left(&self) -> u64 {
        let bytes_max = self.0.bytes_max.load(Relaxed);
        let own = if bytes_max == u64::MAX { u64::MAX } else { bytes_max.saturating_sub(self.used()) };
        self.0.within.as_ref().map_or(own, |outer| own.min(outer.left()))
    }

    /// Bytes held now.
    pub fn used(&self) -> u64 {
        self.0.used.load(Relaxed)
    }

    /// The most bytes that were held at a time.
    pub fn peak(&self) -> u64 {
        self.0.peak.load(Relaxed)
    }

    /// Takes bytes.
    ///
    /// # Errors
    /// [`MemoryFull`] if this budget, or one that it is within, has less left; nothing is taken then.
    pub fn hold(&self, bytes: u64) -> Result<MemoryHold, MemoryFull> {
        self.take(bytes)?;
        Ok(MemoryHold { budget: self.clone(), bytes })
    }

    fn take(&self, bytes: u64) -> Result<(), MemoryFull> {
        let Inner { owner, bytes_max, used, peak, within, is_shared, reclaim } = &*self.0;
        let bytes_max = bytes_max.load(Relaxed);
        // Check and count are one step: two threads cannot both take the last bytes.
        let fits = |used: u64| used.checked_add(bytes).filter(|total| *total <= bytes_max);
        let before = used.fetch_update(Relaxed, Relaxed, fits).map_err(|_| MemoryFull {
            owner,
            bytes_max,
            is_shared: *is_shared,
        })?;
        if let Some(outer) = within
            && let Err(full) = outer.take(bytes)
        {
            // The inner budget had room and the outer one has not: a rejection holds nothing.
            used.fetch_sub(bytes, Relaxed);
            return Err(full);
        }
        // `before` is from the same step that took the bytes, so that no moment in which both were held is missed.
        peak.fetch_max(before + bytes, Relaxed);
        if let Some(reclaim) = reclaim {
            reclaim.high.fetch_max(before + bytes, Relaxed);
        }
        Ok(())
    }

    fn give_back(&self, bytes: u64) {
        let Inner { used, within, reclaim, .. } = &*self.0;
        let called = reclaim.as_ref().filter(|it| it.before(self.used().saturating_sub(bytes)));
        used.fetch_sub(bytes, Relaxed);
        if let Some(reclaim) = called {
            // Holds that were taken during the call raised it by the bytes that are given back here.
            reclaim.high.store(self.used(), Relaxed);
        }
        if let Some(outer) = within {
            outer.give_back(bytes);
        }
    }
}

impl MemoryHold {
    /// How many bytes it holds.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes more, or gives some back, so that it holds `bytes`.
    ///
    /// # Errors
    /// As [`MemoryBudget::hold`]; the hold is then unchanged.
    pub fn resize(&mut self, bytes: u64) -> Result<(), MemoryFull> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.budget.take(more)?,
            // Less can always be had, so `resize` fails only when it grows, and the hold is then as before.
            None => self.budget.give_back(self.bytes - bytes),
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Takes over what another hold of the same budget has.
    pub fn join(&mut self, mut other: Self) {
        debug_assert!(Arc::ptr_eq(&self.budget.0, &other.budget.0), "holds of one budget");
        // With 0 bytes left, dropping the other gives nothing back twice.
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for MemoryHold {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.give_back(self.bytes);
        }
    }
}

impl fmt::Display for MemoryFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of memory for {}", self.bytes_max, self.owner)
    }
}

impl std::error::Error for MemoryFull {}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use super::*;

    #[test]
    fn holds_count_in_every_budget_until_they_are_dropped() {
        let server = MemoryBudget::shared("all queries", 100);
        let one = server.within("the query", 80);
        let two = server.within("the query", 80);
        let mut hold = one.hold(60).unwrap();
        assert_eq!((server.used(), one.used(), two.used()), (60, 60, 0));
        assert_eq!(one.hold(21).unwrap_err(), MemoryFull { owner: "the query", bytes_max: 80, is_shared: false });
        let full = two.hold(41).unwrap_err();
        assert!(full.is_shared, "{full:?}");
        assert_eq!(full.to_string(), "100 bytes of memory for all queries");
        assert_eq!((server.used(), two.used()), (60, 0), "what was refused is not held");
        hold.resize(80).unwrap();
        assert!(hold.resize(81).is_err());
        hold.resize(10).unwrap();
        hold.join(one.hold(5).unwrap());
        assert_eq!((hold.bytes(), server.used(), server.peak()), (15, 15, 80));
        drop(hold);
        assert_eq!((server.used(), one.used(), one.peak()), (0, 0, 80));
    }

    #[test]
    fn memory_is_reclaimed_when_much_was_given_back_and_before_others_have_it() {
        static SERVER: OnceLock<MemoryBudget> = OnceLock::new();
        static CALLS: AtomicU64 = AtomicU64::new(0);
        static LEFT: AtomicU64 = AtomicU64::new(0);
        let calls = || CALLS.load(Relaxed);
        let server = SERVER.get_or_init(|| {
            MemoryBudget::shared("all queries", 100).reclaim_with(30, || {
                CALLS.fetch_add(1, Relaxed);
                // Another query takes some while memory returns to the system.
                LEFT.store(SERVER.get().map_or(0, |server| server.left()), Relaxed);
                drop(SERVER.get().map(|server| server.hold(5)));
            })
        });
        let query = server.within("the query", 80);
        for _ in 0..100 {
            drop(query.hold(29).unwrap());
        }
        assert_eq!(calls(), 0, "a query that has a little at a time");
        let mut hold = query.hold(70).unwrap();
        hold.resize(41).unwrap();
        assert_eq!(calls(), 0);
        hold.resize(40).unwrap();
        assert_eq!((calls(), LEFT.load(Relaxed), server.left()), (1, 59, 60));
        hold.resize(11).unwrap();
        assert_eq!(calls(), 1);
        drop(hold);
        assert_eq!(calls(), 2);
    }

    #[test]
    fn a_hold_too_large_for_a_number_is_rejected() {
        let budget = MemoryBudget::unlimited("the query");
        let _held = budget.hold(1).unwrap();
        assert!(budget.hold(u64::MAX).is_err());
    }
}
