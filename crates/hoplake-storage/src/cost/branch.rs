//! A line of work within a query.
//!
//! A query has one cost meter and one set of limits, its [`QueryContext`], whatever its work branches into: blocks of
//! many sections that are read side by side, expansions of many vertices, steps that an optimiser runs at once. Each
//! such line is a [`Branch`]: the meter, and the number of dependent round trips so far. A function that reads takes
//! `&mut Branch` and advances it when it waits for the store, so that a read after another is automatically in a later
//! wave, and two reads can only be in the same wave if their branches were forked.

use futures::future::try_join_all;

use crate::{QueryContext, Wave};

/// A line of work within a query: its meter, and the wave that it has reached.
#[derive(Debug, Clone)]
pub struct Branch {
    context: QueryContext,
    wave: Wave,
}

impl Branch {
    /// A line of work that has waited for nothing.
    pub fn new(context: &QueryContext) -> Self {
        Self { context: context.clone(), wave: Wave::default() }
    }

    /// The meter and the limits.
    pub fn context(&self) -> &QueryContext {
        &self.context
    }

    /// The number of dependent round trips so far.
    pub fn wave(&self) -> Wave {
        self.wave
    }

    /// Works on some items side by side, each on a line that goes on from here, and waits for all of them. `work`
    /// returns its line with what it found.
    ///
    /// # Errors
    /// The first error of `work`, which ends the others.
    pub async fn each<I, T, E, F: Future<Output = Result<(T, Self), E>>>(
        &mut self,
        items: impl IntoIterator<Item = I>,
        work: impl Fn(I, Self) -> F,
    ) -> Result<Vec<T>, E> {
        // Each gets a copy of this branch: items do not depend on each other, so all of them begin in the same wave.
        let done = try_join_all(items.into_iter().map(|item| work(item, self.clone()))).await?;
        let joined = |(found, line): (T, Self)| {
            self.reached(line.wave);
            found
        };
        Ok(done.into_iter().map(joined).collect())
    }

    /// A line of the same query that continues from an answer of another wave.
    pub fn at(&self, wave: Wave) -> Self {
        Self { context: self.context.clone(), wave }
    }

    /// Waits for other lines: what follows depends on them, too.
    pub fn join<'a>(&mut self, others: impl IntoIterator<Item = &'a Self>) {
        others.into_iter().for_each(|other| self.reached(other.wave));
    }

    /// Notes round trips that it waited for and that no reader noted: writes, and requests that failed.
    pub fn then(&mut self, rounds: u32) {
        self.wave = self.wave.later(rounds);
        self.context.meter().reached(self.wave);
    }

    /// Notes that it waited for an answer of a wave.
    pub fn reached(&mut self, wave: Wave) {
        self.wave = self.wave.max(wave);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_follows_lines_side_by_side_depends_on_the_longest() {
        let mut trunk = QueryContext::new().branch();
        trunk.then(2);
        let waited = trunk.each([3, 1, 0], |rounds, mut line| async move {
            line.then(rounds);
            Ok::<_, ()>((line.wave(), line))
        });
        assert_eq!(waited.await, Ok(vec![Wave(5), Wave(3), Wave(2)]));
        assert_eq!((trunk.wave(), trunk.context().cost().waves), (Wave(5), 5));
        let mut other = trunk.clone();
        other.then(1);
        trunk.join([&other]);
        trunk.reached(Wave(1));
        assert_eq!(trunk.wave(), Wave(6), "nothing takes a wait back");
    }
}
