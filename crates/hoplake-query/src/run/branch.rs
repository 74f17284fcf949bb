//! Branches and loops. Their traversals are not run anew for each traverser: what they count, they count over all that come.

use std::collections::VecDeque;

use super::{
    Done, Pipe, Run,
    batch::{Batch, Items, ROWS_MAX},
    growth::Growth,
    paths::Labels,
    pipe::is_stateful,
};
use crate::{
    error::QueryError,
    plan::{Case, Choice, Repeat, Steps, Until, units},
    tokens::Pick,
    value::{Value, equals},
};

/// Levels of collections in collections, at most: a loop could build them without bound.
const DEPTH_MAX: usize = 256;

/// Several traversals from the same traversers.
#[derive(Debug)]
pub(super) struct Uniting {
    branches: Vec<Branch>,
    /// Whether all has to be there before a branch is run.
    waits: bool,
}

/// One of them.
#[derive(Debug)]
struct Branch {
    steps: Steps,
    pipe: Pipe,
}

impl Branch {
    fn new(steps: &Steps) -> Self {
        Self { steps: steps.clone(), pipe: Pipe::new(steps) }
    }
}

impl Uniting {
    pub(super) fn new(branches: &[Steps]) -> Self {
        Self { branches: branches.iter().map(Branch::new).collect(), waits: branches.iter().any(is_stateful) }
    }

    pub(super) fn waits(&self) -> bool {
        self.waits
    }

    pub(super) async fn take(&mut self, run: &mut Run, batch: Batch, labels: &Labels) -> Done<Vec<Batch>> {
        let all: Vec<u32> = (0..batch.len() as u32).collect();
        let parts = run.growth.copies(&all, size_of_val(&all[..]), self.branches.len())?;
        let united = run.branches(&mut self.branches, &batch, parts, self.waits).await?;
        run.relabelled(united, labels)?.parts(&run.growth)
    }
}

/// Traversals that are chosen by what traversers are.
#[derive(Debug)]
pub(super) struct Choosing {
    choice: Choice,
    cases: Vec<Case>,
    branches: Vec<Branch>,
    /// Whether all cases count that are fulfilled, and not the first alone.
    all: bool,
    waits: bool,
}

impl Choosing {
    pub(super) fn new(choice: &Choice, cases: &[(Case, Steps)], all: bool) -> Self {
        Self {
            choice: choice.clone(),
            cases: cases.iter().map(|(case, _)| case.clone()).collect(),
            branches: cases.iter().map(|(_, steps)| Branch::new(steps)).collect(),
            all,
            waits: cases.iter().any(|(_, steps)| is_stateful(steps)),
        }
    }

    pub(super) fn waits(&self) -> bool {
        self.waits
    }

    pub(super) async fn take(&mut self, run: &mut Run, batch: Batch, labels: &Labels) -> Done<Vec<Batch>> {
        let (parts, unmoved) = self.parts(run, &batch).await?;
        let chosen = run.branches_with(&mut self.branches, &batch, parts, self.waits, unmoved).await?;
        run.relabelled(chosen, labels)?.parts(&run.growth)
    }

    /// The rows of each branch, and those that go on as they are.
    async fn parts(&self, run: &mut Run, batch: &Batch) -> Done<(Vec<Vec<u32>>, Vec<u32>)> {
        let choices: Vec<Option<Value>> = match &self.choice {
            Choice::Productive(steps) => {
                run.exists(steps, batch).await?.into_iter().map(|it| Some(it.into())).collect()
            }
            Choice::Test(predicate) => {
                let test = |at: usize, growth: &Growth| predicate.test(&batch.items.get(at), growth);
                let fulfilled = run.tested(batch.len(), test).await?;
                fulfilled.into_iter().map(|it| Some(it.into())).collect()
            }
            Choice::By(by) => run.by(by, batch).await?,
        };
        let mut parts: Vec<Vec<u32>> = vec![Vec::new(); self.cases.len()];
        let mut taken = vec![false; batch.len()];
        let growth = run.growth.clone();
        let mut chosen = batch.take_rows(&(0..batch.len() as u32).collect::<Vec<_>>(), &growth)?;
        let values = choices.iter().map(|choice| growth.copy(choice.as_ref().unwrap_or(&Value::Null)));
        chosen.items = Items::of_values(values.collect::<Done<_>>()?);
        for (number, case) in self.cases.iter().enumerate() {
            // There may be tens of thousands of them.
            run.pace.rest(1 + batch.len() as u64).await?;
            let fulfilled: Vec<bool> = match case {
                Case::Equal(value) => {
                    let equals = |at: usize, growth: &Growth| match &choices[at] {
                        Some(choice) => growth.work(units(choice, value)).map(|()| equals(choice, value)),
                        None => Ok(false),
                    };
                    run.tested(choices.len(), equals).await?
                }
                Case::Test(predicate) => {
                    let test = |at: usize, growth: &Growth| match &choices[at] {
                        Some(choice) => predicate.test(choice, growth),
                        None => Ok(false),
                    };
                    run.tested(choices.len(), test).await?
                }
                Case::Steps(steps) => {
                    let exists = run.exists(steps, &chosen).await?;
                    exists.into_iter().zip(&choices).map(|(exists, choice)| exists && choice.is_some()).collect()
                }
                Case::Pick(Pick::Any) if self.all => vec![true; batch.len()],
                Case::Pick(_) => continue,
            };
            for at in 0..batch.len() {
                if fulfilled[at] && (self.all || !taken[at]) {
                    parts[number].push(at as u32);
                    // `any` is taken besides others, and does not keep `none` from being taken.
                    taken[at] |= !matches!(case, Case::Pick(_));
                }
            }
        }
        let position = |pick: Pick| self.cases.iter().position(|case| *case == Case::Pick(pick));
        let (unproductive, none) = (position(Pick::Unproductive), position(Pick::None));
        let mut unmoved = Vec::new();
        for at in 0..batch.len() {
            if taken[at] {
                continue;
            }
            match if choices[at].is_none() { unproductive } else { none } {
                Some(branch) => parts[branch].push(at as u32),
                None if self.all => {}
                None => unmoved.push(at as u32),
            }
        }
        Ok((parts, unmoved))
    }
}

impl Run {
    async fn branches(
        &mut self,
        branches: &mut [Branch],
        batch: &Batch,
        parts: Vec<Vec<u32>>,
        waits: bool,
    ) -> Done<Batch> {
        self.branches_with(branches, batch, parts, waits, Vec::new()).await
    }

    /// Runs each branch on its rows. If no branch depends on other rows than the one that it began with, results come in the order of
    /// the rows.
    async fn branches_with(
        &mut self,
        branches: &mut [Branch],
        batch: &Batch,
        parts: Vec<Vec<u32>>,
        waits: bool,
        unmoved: Vec<u32>,
    ) -> Done<Batch> {
        let mut all = Batch::default();
        // The row of the batch that each result comes from.
        let mut origins: Vec<u32> = Vec::new();
        let taken = branches.iter_mut().zip(parts).filter(|(_, places)| !places.is_empty());
        let growth = self.growth.clone();
        let taken = taken.map(|(branch, places)| Ok((branch, batch.take(&places, &growth)?, places)));
        let mut taken = taken.collect::<Done<Vec<_>>>()?;
        if waits {
            let pipes = taken.iter_mut().map(|(branch, rows, _)| {
                branch.pipe.feed(std::mem::take(rows));
                &mut branch.pipe
            });
            let pipes = pipes.collect();
            for found in self.drain_all(pipes).await? {
                all.append(found, &growth)?;
            }
        } else {
            let asked: Vec<_> = taken.iter().map(|(branch, rows, _)| (&branch.steps, rows)).collect();
            let found = self.children(&asked).await?;
            for (found, (_, rows, places)) in found.into_iter().zip(&taken) {
                let (found, parents) = restored(found, rows);
                origins.extend(parents.into_iter().map(|parent| places[parent as usize]));
                all.append(found, &growth)?;
            }
        }
        origins.extend(&unmoved);
        if !unmoved.is_empty() {
            all.append(batch.take(&unmoved, &growth)?, &growth)?;
        }
        if waits {
            return Ok(all);
        }
        let mut order: Vec<u32> = (0..all.len() as u32).collect();
        order.sort_by_key(|at| origins[*at as usize]);
        // In that order already, where there is one branch.
        if order.is_sorted() {
            return Ok(all);
        }
        growth.absorb(all.hold.take());
        all.take(&order, &growth)
    }
}

/// What a traversal within another gave, in the frames of the rows that it began with, and which row that was.
pub(super) fn restored(mut found: Batch, rows: &Batch) -> (Batch, Vec<u32>) {
    let mut parents = Vec::with_capacity(found.len());
    for row in &mut found.rows {
        let parent = &rows.rows[row.frame as usize];
        parents.push(row.frame);
        row.bulk = row.bulk.saturating_mul(parent.bulk);
        row.frame = parent.frame;
    }
    (found, parents)
}

/// A loop.
#[derive(Debug)]
pub(super) struct Repeating {
    repeat: Repeat,
    body: Pipe,
    waits: bool,
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
    pub(super) fn new(repeat: &Repeat) -> Self {
        let body = Pipe::new(&repeat.body);
        Self {
            repeat: repeat.clone(),
            body,
            waits: is_stateful(&repeat.body),
            ready: VecDeque::new(),
            under_way: VecDeque::new(),
            portion: None,
            out: OUT,
        }
    }

    /// Goes around with some rows of a level at a time: a step behind the loop takes the first that come out.
    pub(super) fn go_in_portions(&mut self) {
        // Otherwise a round depends on all of its rows.
        self.portion = (!self.waits).then_some(PORTION);
    }

    pub(super) fn waits(&self) -> bool {
        self.waits
    }

    /// Begins with some traversers.
    pub(super) async fn take(&mut self, run: &mut Run, batch: Batch) -> Done<()> {
        run.loops.push((self.repeat.name.clone(), 0));
        let begun = self.at_begin(run, batch).await;
        run.loops.pop();
        self.under_way.extend(begun?.map(|batch| (batch, 0)));
        Ok(())
    }

    /// What goes out next; `None` if nothing is under way any more.
    pub(super) async fn next(&mut self, run: &mut Run, labels: &Labels) -> Done<Option<Batch>> {
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
                return run.relabelled(batch, labels).map(Some);
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
        let mut left = batch;
        if let Some((until, _)) = self.repeat.until.clone().filter(|(_, at_begin)| *at_begin == first) {
            let ends = run.until(&until, &left).await?;
            let [ended, others]: [Vec<u32>; 2] =
                [true, false].map(|which| (0..left.len() as u32).filter(|at| ends[*at as usize] == which).collect());
            if !ended.is_empty() {
                let mut ended = left.take(&ended, &run.growth)?;
                run.held(&mut ended)?;
                self.ready.push_back(ended);
                left = left.take(&others, &run.growth)?;
            }
        }
        if let Some((emit, _)) = self.repeat.emit.clone().filter(|(_, at_begin)| *at_begin == first)
            && !left.is_empty()
        {
            let emitted = run.until(&emit, &left).await?;
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
