//! The signals of all vertices, which some threads look up while others replace them.
//!
//! A signal of up to 8 bytes is one atomic, so that a look finds what was signalled once and never halves of two signals. A wider
//! one is behind a lock that it shares with its neighbours. Whether there is a signal is a bit of its own: a value is written before
//! its bit, and read after it, so that the bit never stands for a value that was not written yet.

use std::sync::{
    RwLock,
    atomic::{
        AtomicU32, AtomicU64,
        Ordering::{AcqRel, Acquire, Release},
    },
};

use crate::Value;

/// Signals that share a lock.
const LOCKED: usize = 64;

/// What each vertex signals now.
pub(crate) struct Column<S> {
    values: Values<S>,
    is_sent: Vec<AtomicU64>,
}

enum Values<S> {
    Narrow(Vec<AtomicU32>),
    Wide(Vec<AtomicU64>),
    Locked(Vec<RwLock<Box<[S]>>>),
}

impl<S: Value> Column<S> {
    /// The bytes of a column of this many signals.
    pub(crate) fn bytes(vertices: u32) -> u64 {
        let value = match S::WIDTH {
            0..=4 => 4,
            5..=8 => 8,
            // A lock and where its signals are.
            _ => size_of::<S>() as u64 + 1,
        };
        u64::from(vertices) * value + u64::from(vertices).div_ceil(64) * 8
    }

    /// A column without signals.
    pub(crate) fn new(vertices: u32) -> Self {
        let vertices = vertices as usize;
        let values = match S::WIDTH {
            0..=4 => Values::Narrow((0..vertices).map(|_| AtomicU32::new(0)).collect()),
            5..=8 => Values::Wide((0..vertices).map(|_| AtomicU64::new(0)).collect()),
            _ => {
                let length = |first: usize| (vertices - first).min(LOCKED);
                let locked = |first| RwLock::new(vec![S::default(); length(first)].into_boxed_slice());
                Values::Locked((0..vertices).step_by(LOCKED).map(locked).collect())
            }
        };
        Self { values, is_sent: (0..vertices.div_ceil(64)).map(|_| AtomicU64::new(0)).collect() }
    }

    /// What a vertex signals.
    #[inline]
    pub(crate) fn get(&self, vertex: u32) -> Option<S> {
        let at = vertex as usize;
        if self.is_sent[at / 64].load(Acquire) >> (at % 64) & 1 == 0 {
            return None;
        }
        Some(match &self.values {
            Values::Narrow(values) => {
                let mut bytes = [0; 8];
                bytes[..4].copy_from_slice(&values[at].load(Acquire).to_le_bytes());
                S::read(&bytes)
            }
            Values::Wide(values) => S::read(&values[at].load(Acquire).to_le_bytes()),
            Values::Locked(values) => {
                let values = values[at / LOCKED].read().unwrap_or_else(std::sync::PoisonError::into_inner);
                values[at % LOCKED]
            }
        })
    }

    /// Replaces what a vertex signals. One thread does so at a time for a vertex; others may look it up.
    pub(crate) fn set(&self, vertex: u32, signal: Option<S>) {
        let at = vertex as usize;
        let word = &self.is_sent[at / 64];
        let bit = 1 << (at % 64);
        let Some(signal) = signal else {
            word.fetch_and(!bit, AcqRel);
            return;
        };
        let mut bytes = [0; 8];
        match &self.values {
            Values::Narrow(values) => {
                signal.write(&mut bytes);
                values[at].store(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]), Release);
            }
            Values::Wide(values) => {
                signal.write(&mut bytes);
                values[at].store(u64::from_le_bytes(bytes), Release);
            }
            Values::Locked(values) => {
                let mut values = values[at / LOCKED].write().unwrap_or_else(std::sync::PoisonError::into_inner);
                values[at % LOCKED] = signal;
            }
        }
        if word.load(Acquire) & bit == 0 {
            word.fetch_or(bit, AcqRel);
        }
    }

    /// The signals that some vertices send now, each with its place among them.
    pub(crate) fn sent<'a>(&'a self, vertices: &'a [u32]) -> impl Iterator<Item = (S, usize)> + 'a {
        vertices.iter().enumerate().filter_map(|(at, vertex)| Some((self.get(*vertex)?, at)))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;

    fn keeps<S: Value + Debug>(one: S, other: S) {
        let column = Column::<S>::new(130);
        assert_eq!(column.get(129), None);
        column.set(129, Some(one));
        column.set(64, Some(other));
        assert_eq!((column.get(129), column.get(64), column.get(128)), (Some(one), Some(other), None));
        let found: Vec<_> = column.sent(&[1, 64, 129, 129]).collect();
        assert_eq!(found, [(other, 1), (one, 2), (one, 3)]);
        column.set(64, None);
        assert_eq!((column.get(129), column.get(64)), (Some(one), None));
    }

    #[test]
    fn signals_of_any_width_are_what_was_set() {
        keeps(7u8, 8);
        keeps(u32::MAX, 1);
        keeps(0.5f64, f64::INFINITY);
        keeps((1u8, 7u32), (2, u32::MAX));
        keeps((0.5f64, 7u32), (f64::MAX, u32::MAX));
    }

    /// Two halves that are always the same, written by one thread while others look.
    fn are_whole<S: Value>(signal: impl Fn(u32) -> S + Sync, is_whole: impl Fn(S) -> bool + Sync) {
        let column = Column::<S>::new(70);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..200_000 {
                        assert!(column.get(69).is_none_or(&is_whole));
                    }
                });
            }
            for number in 1..100_000 {
                column.set(69, (number % 5 != 0).then(|| signal(number)));
            }
        });
    }

    #[test]
    fn no_look_finds_halves_of_two_signals() {
        // Neither is 0: a bit that came before its value would show the default.
        are_whole(|number| (number, number), |(a, b)| a == b && a != 0);
        are_whole(|number| (u64::from(number), number), |(a, b)| a == u64::from(b) && b != 0);
        are_whole(|number| number, |number| number != 0);
    }
}
