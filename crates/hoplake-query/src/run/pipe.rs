//! A chain of steps, each of which pulls batches from the one before.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use futures::future::BoxFuture;
use hoplake_storage::MemoryHold;

use super::{
    Done, Run,
    batch::{Batch, Items, Row, value_bytes},
    branch::{Choosing, Repeating, Uniting},
    dedup::Seen,
    expand::{Expansion, OfHop, Scan},
    paths::{Labels, NO_PATH},
    profile::{Begun, Taken},
    reduce::Reduced,
};
use crate::{
    deep::Deep,
    plan::{Found, Reduction, Step, StepKind, Steps},
    tokens::Scope,
    value::Value,
};

/// Units of work that a turn of a step takes besides those of its rows.
const TURN_UNITS: u64 = 16;

/// A chain of steps.
///
/// It is run by a loop and not by steps that call each other: a query may have thousands of them, and a thread's stack has room for
/// some hundred calls.
#[derive(Debug)]
pub(super) struct Pipe {
    input: VecDeque<Batch>,
    steps: Vec<StepPipe>,
}

#[derive(Debug)]
struct StepPipe {
    step: Arc<Step>,
    labels: Labels,
    state: State,
    /// What came, if the step waits for all of it.
    collected: Batch,
    /// What it gives next.
    ready: VecDeque<Batch>,
    /// How many of these have a hold of their size.
    settled: usize,
    /// The memory of what it keeps between batches.
    hold: Option<MemoryHold>,
    /// What it took, if that is asked for.
    taken: Option<Box<Taken>>,
}

/// The frames that rows were given for, ascending: for each of them a reducing step gives something, even if none of its rows is left.
pub(super) type Frames = Arc<[u32]>;

/// What a step keeps between batches.
#[derive(Debug)]
enum State {
    /// Nothing: each batch becomes another.
    Each,
    /// Batches that are on their way, one after another, from a batch or a scan.
    Expanding {
        expansion: Option<Box<Expansion>>,
        scan: Option<Box<Scan>>,
        /// Other steps that do the same.
        steps: Option<Box<Pipe>>,
    },
    /// It takes all before it gives anything; `None` if it has given that.
    Barrier(Option<Frames>),
    /// What it has so far, by frame.
    Reducing(Option<Frames>, Vec<Reduced>),
    /// How many came, by frame.
    Range(HashMap<u32, u64>),
    /// What came, by frame.
    Dedup(Seen),
    /// Values that are given once, after those that come if `last`.
    Injecting {
        armed: Option<Frames>,
        last: bool,
    },
    Uniting(Uniting),
    Choosing(Box<Choosing>),
    Repeating(Box<Repeating>),
}

/// What comes to a step.
enum Came {
    /// Nothing yet: it is asked for a batch.
    Nothing,
    Batch(Batch),
    /// There is no more.
    End,
}

/// What a step does then.
enum Turn {
    Gives(Batch),
    /// It needs what comes next.
    Asks,
    Ends,
}

impl Pipe {
    /// The pipe of some steps.
    pub(super) fn new(steps: &[Arc<Step>]) -> Self {
        let pipe = |(number, step): (usize, &Arc<Step>)| {
            let mut state = State::of(step);
            // At the beginning of a traversal within another, the traverser is there before the values.
            if let State::Injecting { last, .. } = &mut state {
                *last = number == 0;
            }
            let labels = step.labels.clone().into();
            StepPipe {
                step: step.clone(),
                labels,
                state,
                collected: Batch::default(),
                ready: VecDeque::new(),
                settled: 0,
                hold: None,
                taken: None,
            }
        };
        Self { input: VecDeque::new(), steps: steps.iter().enumerate().map(pipe).collect() }
    }

    /// Prepares it for being pulled: a loop whose results go through each step one by one, up to one that takes the first of them, does
    /// not build whole levels.
    pub(super) fn go_in_portions(&mut self) {
        let is_limit = |step: &StepPipe| matches!(step.step.kind, StepKind::Range(Scope::Global, _, Some(_)));
        // From the end, so that each step knows the next one behind it that does not go row by row: a query may have 100,000 steps.
        let mut limited = false;
        for step in self.steps.iter_mut().rev() {
            if let State::Repeating(repeating) = &mut step.state
                && limited
            {
                repeating.go_in_portions();
            }
            if !matches!(step.state, State::Each) {
                limited = is_limit(step);
            }
        }
    }

    /// Gives it a batch, and has barriers begin anew.
    pub(super) fn feed(&mut self, batch: Batch) {
        let mut frames: Vec<u32> = batch.rows.iter().map(|row| row.frame).collect();
        frames.sort_unstable();
        frames.dedup();
        let frames: Frames = frames.into();
        for step in &mut self.steps {
            match &mut step.state {
                State::Barrier(armed) | State::Reducing(armed, _) | State::Injecting { armed, .. } => {
                    *armed = Some(frames.clone());
                }
                // Each round of a loop counts from 0.
                State::Range(counts) => counts.clear(),
                _ => {}
            }
        }
        self.input.push_back(batch);
    }

    /// The next batch, which is not empty; `None` at the end.
    pub(super) async fn next(&mut self, run: &mut Run) -> Done<Option<Batch>> {
        let Some(last) = self.steps.len().checked_sub(1) else { return Ok(self.next_input()) };
        let mut at = last;
        let mut came = Came::Nothing;
        loop {
            let begun = self.steps[at].taken.is_some().then(|| Begun::now(&run.branch));
            let turn = self.steps[at].turn(run, came).await?;
            if let (Some(begun), Some(taken)) = (begun, &mut self.steps[at].taken) {
                taken.add(begun, &run.branch, if let Turn::Gives(batch) = &turn { Some(batch) } else { None });
            }
            came = match turn {
                Turn::Gives(batch) if at == last => return Ok(Some(batch)),
                Turn::Ends if at == last => return Ok(None),
                Turn::Gives(batch) => {
                    run.branch.context().check_time()?;
                    run.pace.rest(TURN_UNITS + batch.len() as u64).await?;
                    at += 1;
                    Came::Batch(batch)
                }
                Turn::Ends => {
                    at += 1;
                    Came::End
                }
                Turn::Asks if at > 0 => {
                    run.pace.rest(1).await?;
                    at -= 1;
                    Came::Nothing
                }
                Turn::Asks => self.next_input().map_or(Came::End, Came::Batch),
            };
        }
    }

    /// Has each step note what it takes.
    pub(super) fn note(&mut self) {
        self.steps.iter_mut().for_each(|step| step.taken = Some(Box::default()));
    }

    /// The steps, and what each has taken.
    pub(super) fn taken(&self) -> impl Iterator<Item = (&Step, &Taken)> {
        self.steps.iter().filter_map(|step| Some((&*step.step, step.taken.as_deref()?)))
    }

    fn next_input(&mut self) -> Option<Batch> {
        std::iter::from_fn(|| self.input.pop_front()).find(|batch| !batch.is_empty())
    }
}

impl State {
    fn of(step: &Step) -> Self {
        match &step.kind {
            StepKind::Vertices(_)
            | StepKind::Find(_)
            | StepKind::Edges(_)
            | StepKind::FindEdges(_)
            | StepKind::Hop(..)
            | StepKind::HopWhere(_)
            | StepKind::Walk(_)
            | StepKind::Counted(_) => Self::Expanding { expansion: None, scan: None, steps: None },
            StepKind::Reduce(_, Scope::Global) | StepKind::CountEdges(..) => Self::Reducing(None, Vec::new()),
            StepKind::Range(Scope::Global, ..) => Self::Range(HashMap::new()),
            StepKind::Dedup(Scope::Global, ..) => Self::Dedup(Seen::default()),
            StepKind::Inject(_) => Self::Injecting { armed: None, last: false },
            StepKind::Union(branches) => Self::Uniting(Uniting::new(branches)),
            StepKind::Choose(choice, cases, all) => Self::Choosing(Box::new(Choosing::new(choice, cases, *all))),
            StepKind::Repeat(repeat) => Self::Repeating(Box::new(Repeating::new(repeat))),
            _ if is_barrier(step) => Self::Barrier(None),
            _ => Self::Each,
        }
    }
}

/// Whether a step takes all before it gives anything.
pub(super) fn is_barrier(step: &Step) -> bool {
    match &step.kind {
        StepKind::Order(scope, _)
        | StepKind::Tail(scope, _)
        | StepKind::Sample(scope, ..)
        | StepKind::Aggregate(scope, ..)
        | StepKind::Reduce(_, scope) => *scope == Scope::Global,
        StepKind::CountEdges(..) => true,
        // Under a name, too: whoever reads it behind the step sees all of it.
        StepKind::Group(..) | StepKind::GroupCount(..) | StepKind::Tree(..) => true,
        StepKind::Barrier | StepKind::NormSack | StepKind::Fold(_) | StepKind::Cap(_) => true,
        StepKind::Compute(_) | StepKind::ShortestPaths(_) => true,
        // What a step writes is not seen by those before it: how far they came would decide the answer.
        kind => kind.writes(),
    }
}

/// Whether what a traversal gives for a traverser depends on others that came.
pub(super) fn is_stateful(steps: &Steps) -> bool {
    steps.iter().any(|step| match &step.kind {
        StepKind::Range(Scope::Global, ..) | StepKind::Dedup(Scope::Global, ..) | StepKind::Inject(_) => true,
        StepKind::Union(branches) => branches.iter().any(is_stateful),
        StepKind::Choose(_, cases, _) => cases.iter().any(|(_, steps)| is_stateful(steps)),
        StepKind::Repeat(repeat) => is_stateful(&repeat.body),
        _ => is_barrier(step),
    })
}

impl StepPipe {
    fn turn<'a>(&'a mut self, run: &'a mut Run, came: Came) -> Deep<BoxFuture<'a, Done<Turn>>> {
        // Every traversal within another has turns of its own, so that each level passes here.
        let turn = async move {
            let ended = matches!(came, Came::End);
            let growth = run.growth.clone();
            let mark = growth.begin();
            // Somebody may want to know what the steps before have collected or written, if nothing else of them.
            let is_silent = !run.settings.writes && run.settings.collected.is_empty();
            match came {
                Came::Nothing if self.is_done(is_silent) => {
                    growth.end(&mark)?;
                    return Ok(Turn::Ends);
                }
                Came::Nothing => {}
                Came::Batch(batch) => self.take(run, batch).await?,
                Came::End => self.end(run).await?,
            }
            loop {
                self.produce(run).await?;
                for batch in self.ready.iter_mut().skip(self.settled) {
                    run.held(batch)?;
                }
                let next = self.ready.pop_front();
                self.settled = self.ready.len();
                match next {
                    Some(batch) if batch.is_empty() => {}
                    Some(batch) => {
                        growth.end(&mark)?;
                        return Ok(Turn::Gives(batch));
                    }
                    None => {
                        growth.end(&mark)?;
                        return Ok(if ended || self.is_done(is_silent) { Turn::Ends } else { Turn::Asks });
                    }
                }
            }
        };
        Deep(Box::pin(turn))
    }

    /// Whether it gives nothing any more, whatever would come. If the query is silent, its results are all there is of it.
    fn is_done(&self, is_silent: bool) -> bool {
        let done = match (&self.state, &self.step.kind) {
            (State::Barrier(armed) | State::Reducing(armed, _), _) => armed.is_none(),
            (State::Range(_), StepKind::Range(_, _, Some(0))) if is_silent => true,
            // Outside of other traversals there is one frame, and nothing is asked for that it does not want.
            (State::Range(counts), StepKind::Range(_, _, Some(high))) => {
                counts.len() == 1 && counts.get(&0).is_some_and(|count| count >= high)
            }
            _ => false,
        };
        done && self.ready.is_empty()
    }

    fn waits(&self) -> bool {
        match &self.state {
            State::Barrier(_) => true,
            State::Uniting(uniting) => uniting.waits(),
            State::Choosing(choosing) => choosing.waits(),
            State::Repeating(repeating) => repeating.waits(),
            _ => false,
        }
    }

    /// Takes what came from the step before.
    async fn take(&mut self, run: &mut Run, batch: Batch) -> Done<()> {
        if self.waits() {
            // Its hold is joined.
            return self.collected.append(batch, &run.growth);
        }
        let Self { step, labels, state, ready, hold, .. } = self;
        run.prepare(&batch, &step.together).await?;
        match state {
            State::Each => ready.push_back(run.each(&step.kind, labels, batch).await?),
            State::Expanding { expansion, scan, steps } => match &step.kind {
                StepKind::Hop(direction, edge_labels, reaches) => {
                    *expansion = run.hop(batch, *direction, edge_labels, *reaches, None).await?.map(Box::new);
                }
                StepKind::HopWhere(hop) => match run.hop_conditions(hop)? {
                    OfHop::Never => {}
                    OfHop::Tested(condition, bytes) => {
                        let _hold = run.branch.context().hold(bytes)?;
                        let found = run.hop(batch, hop.direction, &hop.labels, hop.reaches, Some(condition)).await?;
                        *expansion = found.map(Box::new);
                    }
                    OfHop::Untested => {
                        let pipe = steps.get_or_insert_with(|| Box::new(Pipe::new(&hop.otherwise)));
                        pipe.feed(batch);
                    }
                },
                StepKind::Vertices(None) => *scan = Some(Box::new(Scan::of_vertices(run, batch, Found::default()))),
                StepKind::Find(found) => *scan = Some(Box::new(Scan::of_vertices(run, batch, found.clone()))),
                StepKind::Edges(None) => *scan = Some(Box::new(Scan::of_edges(run, batch, &[])?)),
                StepKind::FindEdges(labels) => *scan = Some(Box::new(Scan::of_edges(run, batch, labels)?)),
                StepKind::Walk(hops) => ready.extend(run.walk(batch, hops, labels).await?),
                StepKind::Counted(counted) => match run.counted(counted)? {
                    Some(value) => ready.push_back(run.begun(vec![(0, value)], labels)?),
                    None => {
                        let mut pipe = Pipe::new(&counted.otherwise);
                        pipe.feed(batch);
                        let found = Box::pin(run.drain(&mut pipe)).await?;
                        ready.push_back(run.relabelled(found, labels)?);
                    }
                },
                StepKind::Vertices(Some(ids)) => ready.push_back(run.vertices_by_id(batch, ids, labels).await?),
                StepKind::Edges(Some(ids)) => ready.push_back(run.edges_by_id(batch, ids, labels).await?),
                _ => {}
            },
            State::Reducing(armed, reduced) => {
                let Some(frames) = armed else { return Ok(()) };
                reduced.resize_with(slots(frames), Reduced::default);
                if let StepKind::CountEdges(direction, edge_labels) = &step.kind {
                    let degrees = run.degrees(&batch, *direction, edge_labels).await?;
                    for (row, degree) in batch.rows.iter().zip(degrees) {
                        let count = row.bulk.saturating_mul(degree);
                        reduced[row.frame as usize].add(Reduction::Count, &Value::Null, count)?;
                    }
                    return Ok(());
                }
                let StepKind::Reduce(reduction, _) = &step.kind else { return Ok(()) };
                let mut bytes = hold.as_ref().map_or(0, MemoryHold::bytes);
                for (at, row) in batch.rows.iter().enumerate() {
                    let of_frame = &mut reduced[row.frame as usize];
                    match reduction {
                        Reduction::Count => of_frame.add(*reduction, &Value::Null, row.bulk)?,
                        _ => {
                            bytes = bytes.saturating_sub(of_frame.bytes());
                            let value = batch.items.get(at);
                            // The least and the greatest are kept.
                            if !matches!(*value, Value::Number(_)) {
                                run.growth.take(value_bytes(&value))?;
                            }
                            of_frame.add(*reduction, &value, row.bulk)?;
                            bytes += of_frame.bytes();
                        }
                    }
                }
                run.growth.hand_over(hold, bytes)?;
            }
            State::Range(counts) => {
                let StepKind::Range(_, low, high) = step.kind else { return Ok(()) };
                ready.push_back(run.relabelled(within(batch, counts, low, high), labels)?);
            }
            State::Dedup(seen) => {
                let StepKind::Dedup(_, names, by) = &step.kind else { return Ok(()) };
                let kept = run.dedup(batch, seen, names, by).await?;
                ready.push_back(run.relabelled(kept, labels)?);
            }
            // Before the first step there is nobody who could go on.
            State::Injecting { .. } if matches!(batch.items, Items::Nowhere(_)) => {}
            State::Injecting { .. } => ready.push_back(run.relabelled(batch, labels)?),
            State::Uniting(uniting) => ready.extend(uniting.take(run, batch, labels).await?),
            State::Choosing(choosing) => ready.extend(choosing.take(run, batch, labels).await?),
            State::Repeating(repeating) => repeating.take(run, batch).await?,
            State::Barrier(_) => {}
        }
        Ok(())
    }

    /// All has come.
    async fn end(&mut self, run: &mut Run) -> Done<()> {
        let Self { step, labels, state, ready, collected, hold, .. } = self;
        let all = std::mem::take(collected);
        match state {
            State::Barrier(armed) => {
                if let Some(frames) = armed.take() {
                    run.prepare(&all, &step.together).await?;
                    ready.extend(run.barrier(&step.kind, labels, all, &frames).await?.parts(&run.growth)?);
                }
            }
            State::Reducing(armed, reduced) => {
                let Some(frames) = armed.take() else { return Ok(()) };
                let reduction = match &step.kind {
                    StepKind::Reduce(reduction, _) => *reduction,
                    _ => Reduction::Count,
                };
                reduced.resize_with(slots(&frames), Reduced::default);
                let values = reduced.drain(..).map(|it| it.finish(reduction)).collect::<Done<Vec<_>>>()?;
                run.growth.absorb(hold.take());
                let values = of_frames(values, &frames).filter_map(|(frame, value)| Some((frame, value?)));
                ready.push_back(run.begun(values.collect(), labels)?);
            }
            State::Injecting { armed, last: true } => {
                if let (Some(frames), StepKind::Inject(values)) = (armed.take(), &step.kind) {
                    ready.push_back(run.injected(values, &frames, labels).await?);
                }
            }
            State::Uniting(uniting) if !all.is_empty() => ready.extend(uniting.take(run, all, labels).await?),
            State::Choosing(choosing) if !all.is_empty() => ready.extend(choosing.take(run, all, labels).await?),
            State::Repeating(repeating) if !all.is_empty() => repeating.take(run, all).await?,
            _ => {}
        }
        Ok(())
    }

    /// Makes the next batch of what is under way, if none is ready.
    async fn produce(&mut self, run: &mut Run) -> Done<()> {
        let Self { step, labels, state, ready, .. } = self;
        if !ready.is_empty() {
            return Ok(());
        }
        match state {
            State::Expanding { expansion, scan, steps } => {
                if let Some(pipe) = steps
                    && let Some(batch) = Box::pin(pipe.next(run)).await?
                {
                    ready.push_back(run.relabelled(batch, labels)?);
                }
                if let Some(some) = scan {
                    match some.next(run, labels).await? {
                        Some(batch) => ready.push_back(batch),
                        None => *scan = None,
                    }
                }
                if let Some(some) = expansion {
                    match some.next(run, labels)? {
                        Some(batch) => ready.push_back(batch),
                        None => *expansion = None,
                    }
                }
            }
            State::Injecting { armed, last: false } => {
                if let (Some(frames), StepKind::Inject(values)) = (armed.take(), &step.kind) {
                    ready.push_back(run.injected(values, &frames, labels).await?);
                }
            }
            State::Repeating(repeating) => ready.extend(repeating.next(run, labels).await?),
            _ => {}
        }
        Ok(())
    }
}

/// How many slots a vector by frame needs.
pub(super) fn slots(frames: &Frames) -> usize {
    frames.last().map_or(0, |last| *last as usize + 1)
}

/// What a vector by frame has for some frames.
pub(super) fn of_frames<T>(all: Vec<T>, frames: &Frames) -> impl Iterator<Item = (u32, T)> + '_
where
    T: 'static,
{
    (0u32..).zip(all).filter(|(frame, _)| frames.binary_search(frame).is_ok())
}

/// The rows from a number on, up to before another, each in its frame.
fn within(mut batch: Batch, counts: &mut HashMap<u32, u64>, low: u64, high: Option<u64>) -> Batch {
    let mut is_kept = vec![false; batch.len()];
    for (at, row) in batch.rows.iter_mut().enumerate() {
        let count = counts.entry(row.frame).or_insert(0);
        let (begin, end) = (*count, count.saturating_add(row.bulk));
        let kept = end.min(high.unwrap_or(u64::MAX)).saturating_sub(begin.max(low));
        *count = end;
        if kept > 0 {
            row.bulk = kept;
            is_kept[at] = true;
        }
    }
    batch.keep(|at| is_kept[at])
}

impl Run {
    /// Traversers that begin here, each in its frame.
    pub(super) fn begun(&mut self, values: Vec<(u32, Value)>, labels: &Labels) -> Done<Batch> {
        let rows = values.iter().map(|(frame, _)| Row { bulk: 1, frame: *frame, path: NO_PATH }).collect::<Vec<_>>();
        let sacks = match &self.settings.sack {
            Some(sack) => Some(self.growth.copies(sack, value_bytes(sack), rows.len())?),
            None => None,
        };
        let batch = Batch { items: Items::default(), rows, sacks, hold: None };
        self.mapped(batch, Items::of_values(values.into_iter().map(|(_, value)| value).collect()), labels)
    }
}
