//! A chain of steps, each of which pulls batches from the one before.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

use futures::future::BoxFuture;

use super::{
    Done, Run,
    batch::{Batch, Items, Row},
    branch::{Choosing, Repeating, Uniting},
    expand::{Expansion, Scan},
    paths::{Labels, NO_PATH},
    reduce::{OwnedKey, Reduced},
};
use crate::{
    plan::{By, Found, Name, Reduction, Step, StepKind, Steps},
    tokens::Scope,
    value::Value,
};

/// A chain of steps.
#[derive(Debug)]
pub(super) enum Pipe {
    /// Where it begins.
    Input(VecDeque<Batch>),
    /// A step, and those before it.
    Step(Box<StepPipe>),
}

#[derive(Debug)]
pub(super) struct StepPipe {
    before: Pipe,
    step: Arc<Step>,
    labels: Labels,
    state: State,
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
    },
    /// It takes all before it gives anything.
    Barrier {
        armed: Option<Frames>,
        ready: VecDeque<Batch>,
    },
    /// What it has so far, by frame.
    Reducing {
        armed: Option<Frames>,
    },
    /// How many came, by frame.
    Range(HashMap<u32, u64>),
    /// What came, by frame.
    Dedup(HashSet<(u32, OwnedKey)>),
    /// Values that are given once, after those that come if `last`.
    Injecting {
        armed: Option<Frames>,
        last: bool,
    },
    Uniting(Uniting),
    Choosing(Box<Choosing>),
    Repeating(Box<Repeating>),
}

impl Pipe {
    /// The pipe of some steps.
    pub(super) fn new(steps: &Steps) -> Self {
        let mut pipe = Self::Input(VecDeque::new());
        for step in steps.iter() {
            let labels: Labels = step.labels.clone().into();
            let mut state = State::of(step);
            // At the beginning of a traversal within another, the traverser is there before the values.
            if let (State::Injecting { last, .. }, Self::Input(_)) = (&mut state, &pipe) {
                *last = true;
            }
            pipe = Self::Step(Box::new(StepPipe { before: pipe, step: step.clone(), labels, state }));
        }
        pipe
    }

    /// Gives it a batch, and has barriers begin anew.
    pub(super) fn feed(&mut self, batch: Batch) {
        let mut frames: Vec<u32> = batch.rows.iter().map(|row| row.frame).collect();
        frames.sort_unstable();
        frames.dedup();
        self.feed_frames(batch, &frames.into());
    }

    fn feed_frames(&mut self, batch: Batch, frames: &Frames) {
        match self {
            Self::Input(batches) => batches.push_back(batch),
            Self::Step(step) => {
                match &mut step.state {
                    State::Barrier { armed, .. } | State::Reducing { armed } | State::Injecting { armed, .. } => {
                        *armed = Some(frames.clone());
                    }
                    // A loop has each of its rounds begin to count anew.
                    State::Range(counts) => counts.clear(),
                    _ => {}
                }
                step.before.feed_frames(batch, frames);
            }
        }
    }

    /// The next batch, which is not empty; `None` at the end.
    pub(super) fn next<'a>(&'a mut self, run: &'a mut Run) -> BoxFuture<'a, Done<Option<Batch>>> {
        Box::pin(async move {
            match self {
                Self::Input(batches) => {
                    while let Some(batch) = batches.pop_front() {
                        if !batch.is_empty() {
                            return Ok(Some(batch));
                        }
                    }
                    Ok(None)
                }
                Self::Step(step) => step.next(run).await,
            }
        })
    }

    /// All that is left, as one batch.
    pub(super) async fn all(&mut self, run: &mut Run) -> Done<Batch> {
        run.drain(self).await
    }
}

impl State {
    fn of(step: &Step) -> Self {
        match &step.kind {
            StepKind::Vertices(_) | StepKind::Find(_) | StepKind::Edges(_) | StepKind::Hop(..) => {
                Self::Expanding { expansion: None, scan: None }
            }
            StepKind::Reduce(_, Scope::Global) => Self::Reducing { armed: None },
            StepKind::Range(Scope::Global, ..) => Self::Range(HashMap::new()),
            StepKind::Dedup(Scope::Global, ..) => Self::Dedup(HashSet::new()),
            StepKind::Inject(_) => Self::Injecting { armed: None, last: false },
            StepKind::Union(branches) => Self::Uniting(Uniting::new(branches)),
            StepKind::Choose(choice, cases, all) => Self::Choosing(Box::new(Choosing::new(choice, cases, *all))),
            StepKind::Repeat(repeat) => Self::Repeating(Box::new(Repeating::new(repeat))),
            _ if is_barrier(step) => Self::Barrier { armed: None, ready: VecDeque::new() },
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
        // Under a name, too: whoever reads it behind the step sees all of it.
        StepKind::Group(..) | StepKind::GroupCount(..) | StepKind::Tree(..) => true,
        StepKind::Barrier | StepKind::Fold(_) | StepKind::Cap(_) => true,
        _ => false,
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
    async fn next(&mut self, run: &mut Run) -> Done<Option<Batch>> {
        let Self { before, step, labels, state } = self;
        loop {
            let batch = match state {
                State::Each => match before.next(run).await? {
                    Some(batch) => run.each(&step.kind, labels, batch).await?,
                    None => return Ok(None),
                },
                State::Expanding { expansion, scan } => {
                    match expand(before, run, &step.kind, labels, expansion, scan).await? {
                        Some(batch) => batch,
                        None => return Ok(None),
                    }
                }
                State::Barrier { armed, ready } => {
                    if let Some(frames) = armed.take() {
                        let all = before.all(run).await?;
                        let done = run.barrier(&step.kind, labels, all, &frames).await?;
                        ready.extend(done.parts());
                    }
                    match ready.pop_front() {
                        Some(batch) => batch,
                        None => return Ok(None),
                    }
                }
                State::Reducing { armed } => {
                    let Some(frames) = armed.take() else { return Ok(None) };
                    let StepKind::Reduce(reduction, _) = &step.kind else { return Ok(None) };
                    let mut reduced: Vec<Reduced> = Vec::new();
                    reduced.resize_with(slots(&frames), Reduced::default);
                    while let Some(batch) = before.next(run).await? {
                        for (at, row) in batch.rows.iter().enumerate() {
                            let of_frame = &mut reduced[row.frame as usize];
                            match reduction {
                                Reduction::Count => of_frame.add(*reduction, &Value::Null, row.bulk)?,
                                _ => of_frame.add(*reduction, &batch.items.value(at), row.bulk)?,
                            }
                        }
                    }
                    let values = reduced.into_iter().map(|it| it.finish(*reduction)).collect::<Done<Vec<_>>>()?;
                    let values = of_frames(values, &frames).filter_map(|(frame, value)| Some((frame, value?)));
                    run.begun(values.collect(), labels)?
                }
                State::Range(counts) => {
                    let StepKind::Range(_, low, high) = step.kind else { return Ok(None) };
                    // Nothing is pulled that no frame wants.
                    let full = |frame: u32| high.is_some_and(|high| counts.get(&frame).copied().unwrap_or(0) >= high);
                    if high == Some(0) || counts.len() == 1 && counts.keys().all(|frame| *frame == 0 && full(0)) {
                        return Ok(None);
                    }
                    match before.next(run).await? {
                        Some(batch) => run.relabelled(within(batch, counts, low, high), labels)?,
                        None => return Ok(None),
                    }
                }
                State::Dedup(seen) => {
                    let StepKind::Dedup(_, names, by) = &step.kind else { return Ok(None) };
                    match before.next(run).await? {
                        Some(batch) => {
                            let kept = dedup(run, batch, seen, names, by).await?;
                            run.relabelled(kept, labels)?
                        }
                        None => return Ok(None),
                    }
                }
                State::Injecting { armed, last } => {
                    let StepKind::Inject(values) = &step.kind else { return Ok(None) };
                    if !*last && let Some(frames) = armed.take() {
                        run.injected(values, &frames, labels).await?
                    } else {
                        match (before.next(run).await?, armed.take_if(|_| *last)) {
                            // Before the first step there is nobody who could go on.
                            (Some(batch), frames) if !matches!(batch.items, Items::Nowhere(_)) => {
                                *armed = frames;
                                run.relabelled(batch, labels)?
                            }
                            (_, Some(frames)) => run.injected(values, &frames, labels).await?,
                            (_, None) => return Ok(None),
                        }
                    }
                }
                State::Uniting(uniting) => match uniting.next(before, run, labels).await? {
                    Some(batch) => batch,
                    None => return Ok(None),
                },
                State::Choosing(choosing) => match choosing.next(before, run, labels).await? {
                    Some(batch) => batch,
                    None => return Ok(None),
                },
                State::Repeating(repeating) => match repeating.next(before, run, labels).await? {
                    Some(batch) => batch,
                    None => return Ok(None),
                },
            };
            if !batch.is_empty() {
                let mut batch = batch;
                run.held(&mut batch)?;
                return Ok(Some(batch));
            }
        }
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

/// The next part of what a step makes of the batches before it.
async fn expand(
    before: &mut Pipe,
    run: &mut Run,
    kind: &StepKind,
    labels: &Labels,
    expansion: &mut Option<Box<Expansion>>,
    scan: &mut Option<Box<Scan>>,
) -> Done<Option<Batch>> {
    loop {
        if let Some(some) = scan {
            match some.next(run, labels).await? {
                Some(batch) => return Ok(Some(batch)),
                None => *scan = None,
            }
        }
        if let Some(some) = expansion {
            match some.next(run, labels)? {
                Some(batch) => return Ok(Some(batch)),
                None => *expansion = None,
            }
        }
        let Some(batch) = before.next(run).await? else { return Ok(None) };
        match kind {
            StepKind::Hop(direction, edge_labels, reaches) => {
                *expansion = run.hop(batch, *direction, edge_labels, *reaches).await?.map(Box::new);
            }
            StepKind::Vertices(None) => *scan = Some(Box::new(Scan::new(run, batch, Found::default(), false))),
            StepKind::Find(found) => *scan = Some(Box::new(Scan::new(run, batch, found.clone(), false))),
            StepKind::Edges(None) => *scan = Some(Box::new(Scan::new(run, batch, Found::default(), true))),
            StepKind::Vertices(Some(ids)) => return run.vertices_by_id(batch, ids, labels).await.map(Some),
            StepKind::Edges(Some(ids)) => return run.edges_by_id(batch, ids, labels).await.map(Some),
            _ => return Ok(None),
        }
    }
}

/// The rows from a number on, up to before another, each in its frame.
fn within(mut batch: Batch, counts: &mut HashMap<u32, u64>, low: u64, high: Option<u64>) -> Batch {
    let mut places = Vec::new();
    for (at, row) in batch.rows.iter_mut().enumerate() {
        let count = counts.entry(row.frame).or_insert(0);
        let (begin, end) = (*count, count.saturating_add(row.bulk));
        let kept = end.min(high.unwrap_or(u64::MAX)).saturating_sub(begin.max(low));
        *count = end;
        if kept > 0 {
            row.bulk = kept;
            places.push(at as u32);
        }
    }
    if places.len() == batch.len() { batch } else { batch.take(&places) }
}

async fn dedup(
    run: &mut Run,
    mut batch: Batch,
    seen: &mut HashSet<(u32, OwnedKey)>,
    names: &[Name],
    by: &[By],
) -> Done<Batch> {
    let identity = By::Identity;
    let keys: Vec<Option<Value>> = if names.is_empty() {
        run.by(by.first().unwrap_or(&identity), &batch).await?
    } else {
        let mut columns = Vec::with_capacity(names.len());
        for (number, name) in names.iter().enumerate() {
            let met = run.met(name, crate::tokens::Pop::Last, &batch).await?;
            let by = if by.is_empty() { &identity } else { &by[number % by.len()] };
            columns.push(run.by_of(by, &batch, met).await?);
        }
        let row = |at: usize| columns.iter().map(|column| column[at].clone()).collect::<Option<Vec<_>>>();
        (0..batch.len()).map(|at| row(at).map(Value::List)).collect()
    };
    let mut places = Vec::new();
    for (at, key) in keys.into_iter().enumerate() {
        let row: &mut Row = &mut batch.rows[at];
        if let Some(key) = key
            && seen.insert((row.frame, OwnedKey(key)))
        {
            row.bulk = 1;
            places.push(at as u32);
        }
    }
    Ok(batch.take(&places))
}

impl Run {
    /// Traversers that begin here, each in its frame.
    pub(super) fn begun(&mut self, values: Vec<(u32, Value)>, labels: &Labels) -> Done<Batch> {
        let rows = values.iter().map(|(frame, _)| Row { bulk: 1, frame: *frame, path: NO_PATH }).collect::<Vec<_>>();
        let sacks = self.settings.sack.as_ref().map(|sack| vec![sack.clone(); rows.len()]);
        let batch = Batch { items: Items::default(), rows, sacks, hold: None };
        self.mapped(batch, Items::of_values(values.into_iter().map(|(_, value)| value).collect()), labels)
    }
}
