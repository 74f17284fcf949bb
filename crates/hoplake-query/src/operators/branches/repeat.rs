//! Loops.

use std::collections::VecDeque;

use crate::{
    operators::{Nested, prelude::*},
    plan::{Until, is_stateful},
    run::{Pipe, ROWS_MAX},
};

/// A loop.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeat {
    /// What is repeated.
    pub body: Steps,
    /// Its name.
    pub name: Option<Name>,
    /// When it ends, and whether that is looked at before the first time.
    pub until: Option<(Until, bool)>,
    /// What goes on after it in each round, and whether also before the first.
    pub emit: Option<(Until, bool)>,
}

/// Rounds of a loop that are followed to find the tables that it reads.
const ROUNDS: usize = 3;

impl Operator for Repeat {
    fn nested<'a>(&'a self, found: &mut Vec<&'a Steps>) {
        found.push(&self.body);
        [&self.until, &self.emit].into_iter().flatten().for_each(|(until, _)| Nested::nested(until, found));
    }

    fn nested_mut<'a>(&'a mut self, found: &mut Vec<&'a mut Steps>) {
        found.push(&mut self.body);
        let conditions = [&mut self.until, &mut self.emit].into_iter().flatten();
        conditions.for_each(|(until, _)| Nested::nested_mut(until, found));
    }

    fn is_stateful(&self) -> bool {
        is_stateful(&self.body)
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        let mut all = input.others();
        for _ in 0..ROUNDS {
            let next = reach.steps(&self.body, all.clone());
            let before = all.clone();
            all.join(next);
            if all == before {
                break;
            }
        }
        for (until, _) in [&self.until, &self.emit].into_iter().flatten() {
            if let Until::Steps(steps) = until {
                reach.steps(steps, all.clone());
            }
        }
        all
    }

    fn start(self: Arc<Self>) -> Running {
        Running::new(Repeating::new(self))
    }
}

/// Levels of collections in collections, at most: a loop could build them without bound.
const DEPTH_MAX: usize = 256;

/// A loop that is under way.
#[derive(Debug)]
struct Repeating {
    repeat: Arc<Repeat>,
    body: Pipe,
    is_collecting: bool,
    ready: VecDeque<Batch>,
    /// What goes around again, and how many times it has: level after level, so that what comes out first went around least often.
    under_way: VecDeque<(Batch, u64)>,
    /// Rows that go around at a time, if what comes out may soon be enough.
    portion: Option<usize>,
    /// Rows that come out at a time then.
    out: usize,
}

/// Rows of the first portion: with a hundred edges each, some hundred come out.
const PORTION: usize = 8;

/// How many times as many rows each portion has as the one before it, so that a loop of a million rows waits for the store 17 times more.
const PORTION_GROWS: usize = 2;

/// Rows that come out first, for the steps behind the loop: more than most limits.
const OUT: usize = 64;

/// How many times as many rows come out each time.
const OUT_GROWS: usize = 4;

impl Repeating {
    fn new(repeat: Arc<Repeat>) -> Self {
        let body = Pipe::new(&repeat.body);
        Self {
            is_collecting: repeat.is_stateful(),
            repeat,
            body,
            ready: VecDeque::new(),
            under_way: VecDeque::new(),
            portion: None,
            out: OUT,
        }
    }

    /// Begins with some traversers.
    async fn take(&mut self, run: &mut Run, batch: Batch) -> Done<()> {
        run.loops.push((self.repeat.name.clone(), 0));
        let begun = self.at_begin(run, batch).await;
        run.loops.pop();
        self.under_way.extend(begun?.map(|batch| (batch, 0)));
        Ok(())
    }

    /// What goes out next; `None` if nothing is under way any more.
    async fn next(&mut self, run: &mut Run) -> Done<Option<Batch>> {
        loop {
            if let Some(mut batch) = self.ready.pop_front() {
                if self.portion.is_some() && self.out < batch.len() {
                    let places: Vec<u32> = (0..batch.len() as u32).collect();
                    let (now, later) = places.split_at(self.out);
                    let mut rest = batch.take(later, &run.growth)?;
                    run.held(&mut rest)?;
                    self.ready.push_front(rest);
                    batch = batch.take(now, &run.growth)?;
                    self.out = (self.out * OUT_GROWS).min(ROWS_MAX);
                }
                return Ok(Some(batch));
            }
            let Some((mut batch, rounds)) = self.under_way.pop_front() else { return Ok(None) };
            if let Some(portion) = self.portion.filter(|portion| *portion < batch.len()) {
                let places: Vec<u32> = (0..batch.len() as u32).collect();
                let (now, later) = places.split_at(portion);
                let mut rest = batch.take(later, &run.growth)?;
                run.held(&mut rest)?;
                self.under_way.push_front((rest, rounds));
                batch = batch.take(now, &run.growth)?;
                self.portion = Some((portion * PORTION_GROWS).min(ROWS_MAX));
            }
            run.loops.push((self.repeat.name.clone(), rounds));
            let round = self.round(run, batch).await;
            run.loops.pop();
            let Some(mut batch) = round? else { continue };
            run.held(&mut batch)?;
            match self.under_way.back_mut() {
                Some((level, of)) if *of == rounds + 1 => {
                    level.append(batch, &run.growth)?;
                }
                _ => self.under_way.push_back((batch, rounds + 1)),
            }
        }
    }

    /// Before a round: what ends here, and what goes out as well.
    async fn at_begin(&mut self, run: &mut Run, batch: Batch) -> Done<Option<Batch>> {
        let batch = self.look(run, batch, true).await?;
        Ok(batch)
    }

    async fn round(&mut self, run: &mut Run, batch: Batch) -> Done<Option<Batch>> {
        run.branch.context().check_time()?;
        self.body.feed(batch);
        let mut found = run.drain(&mut self.body).await?;
        if let Some((_, rounds)) = run.loops.last_mut() {
            *rounds += 1;
        }
        if let Items::Values(values) = &found.items
            && values.iter().any(|value| is_deeper(value, DEPTH_MAX))
        {
            return Err(QueryError::wrong_type(format!(
                "the loop has built collections more than {DEPTH_MAX} levels deep"
            )));
        }
        // A shared task may have other work.
        tokio::task::yield_now().await;
        found = found.merged(&run.growth)?;
        let Some(found) = self.look(run, found, false).await? else { return Ok(None) };
        let looks_at_begin = self.repeat.until.as_ref().is_some_and(|(_, first)| *first)
            || self.repeat.emit.as_ref().is_some_and(|(_, first)| *first);
        if looks_at_begin { self.at_begin(run, found).await } else { Ok(Some(found)) }
    }

    /// Lets out what ends, and what goes out as well as around.
    async fn look(&mut self, run: &mut Run, batch: Batch, first: bool) -> Done<Option<Batch>> {
        if batch.is_empty() {
            return Ok(None);
        }
        let repeat = self.repeat.clone();
        let mut left = batch;
        if let Some((until, _)) = repeat.until.as_ref().filter(|(_, at_begin)| *at_begin == first) {
            let ends = run.until(until, &left).await?;
            let [ended, others]: [Vec<u32>; 2] =
                [true, false].map(|which| (0..left.len() as u32).filter(|at| ends[*at as usize] == which).collect());
            if !ended.is_empty() {
                let mut ended = left.take(&ended, &run.growth)?;
                run.held(&mut ended)?;
                self.ready.push_back(ended);
                left = left.take(&others, &run.growth)?;
            }
        }
        if let Some((emit, _)) = repeat.emit.as_ref().filter(|(_, at_begin)| *at_begin == first)
            && !left.is_empty()
        {
            let emitted = run.until(emit, &left).await?;
            let places: Vec<u32> = (0..left.len() as u32).filter(|at| emitted[*at as usize]).collect();
            if !places.is_empty() {
                let mut emitted = left.take(&places, &run.growth)?;
                run.held(&mut emitted)?;
                self.ready.push_back(emitted);
            }
        }
        Ok((!left.is_empty()).then_some(left))
    }
}

impl Stage for Repeating {
    fn is_collecting(&self) -> bool {
        self.is_collecting
    }

    fn input<'a>(&'a mut self, run: &'a mut Run, batch: Batch, _: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(self.take(run, batch))
    }

    fn finish<'a>(&'a mut self, run: &'a mut Run, all: Batch, _: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(async move { if all.is_empty() { Ok(()) } else { self.take(run, all).await } })
    }

    fn poll<'a>(&'a mut self, run: &'a mut Run, out: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(async move {
            out.extend(self.next(run).await?.map(Output::Same));
            Ok(())
        })
    }

    /// Goes around with some rows of a level at a time: a step behind the loop takes the first that come out.
    fn gives_few(&mut self) {
        // Otherwise a round depends on all of its rows.
        self.portion = (!self.is_collecting).then_some(PORTION);
    }
}

impl Run {
    /// For which rows the condition of a loop holds.
    async fn until(&mut self, until: &Until, batch: &Batch) -> Done<Vec<bool>> {
        let rounds = self.loops.last().map_or(0, |(_, rounds)| *rounds);
        Ok(match until {
            Until::Always => vec![true; batch.len()],
            Until::Times(times) => vec![rounds >= *times; batch.len()],
            Until::Test(predicate) => {
                self.tested(batch.len(), |at, growth| predicate.test(&batch.items.get(at), growth)).await?
            }
            Until::Steps(steps) => self.exists(steps, batch).await?,
        })
    }
}

/// Whether a value has more levels than some.
fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else { return true };
    match value {
        Value::List(items) | Value::Set(items) => items.iter().any(|item| is_deeper(item, below)),
        Value::BulkSet(items) => items.iter().any(|(item, _)| is_deeper(item, below)),
        Value::Map(entries) => entries.iter().any(|(key, value)| is_deeper(key, below) || is_deeper(value, below)),
        Value::Entry(entry) => is_deeper(&entry.0, below) || is_deeper(&entry.1, below),
        Value::Path(path) => path.steps.iter().any(|(item, _)| is_deeper(item, below)),
        _ => false,
    }
}
