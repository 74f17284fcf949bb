//! A chain of stages, each of which pulls batches from the one before.

use std::{collections::VecDeque, sync::Arc};

use futures::future::BoxFuture;

use super::{
    Batch, Run,
    paths::Labels,
    profile::{Begun, Taken},
};
use crate::{
    deep::Deep,
    error::Done,
    operators::{Demand, Frames, Output, Stage},
    plan::PlanStep,
};

/// Units of work that a turn of a step takes besides those of its rows.
const TURN_UNITS: u64 = 16;

/// A chain of stages: a run of some steps.
///
/// It is run by a loop and not by stages that call each other: a query may have thousands of them, and a thread's stack has room for
/// some hundred calls.
#[derive(Debug)]
pub(crate) struct Pipe {
    input: VecDeque<Batch>,
    steps: Vec<StepPipe>,
}

#[derive(Debug)]
struct StepPipe {
    step: Arc<PlanStep>,
    labels: Labels,
    stage: Box<dyn Stage>,
    /// What came, if the stage is given all of it at once.
    collected: Batch,
    /// What came out of the stage just now.
    outputs: Vec<Output>,
    /// What goes to the next step.
    ready: VecDeque<Batch>,
    /// What it took, if that is asked for.
    taken: Option<Box<Taken>>,
}

/// What comes to a step.
enum Input {
    /// Nothing yet: it is asked for a batch.
    Nothing,
    Batch(Batch),
    /// There is no more.
    End,
}

/// What a step answers.
enum Answer {
    Batch(Batch),
    /// It needs what comes next.
    Pending,
    End,
}

impl Pipe {
    /// The pipe of some steps.
    pub(crate) fn new(steps: &[Arc<PlanStep>]) -> Self {
        let start = |step: &Arc<PlanStep>| StepPipe {
            step: step.clone(),
            labels: step.labels.clone().into(),
            stage: step.operator.clone().start().0,
            collected: Batch::default(),
            outputs: Vec::new(),
            ready: VecDeque::new(),
            taken: None,
        };
        let mut steps: Vec<StepPipe> = steps.iter().map(start).collect();
        if let Some(first) = steps.first_mut() {
            first.stage.stands_first();
        }
        Self { input: VecDeque::new(), steps }
    }

    /// Prepares it for being pulled: a loop whose results go through each step one by one, up to one that takes the first of them, does
    /// not build whole levels.
    pub(crate) fn go_in_portions(&mut self) {
        // From the end, so that each step knows the next one behind it that does not go row by row: a query may have 100,000 steps.
        let mut limited = false;
        for step in self.steps.iter_mut().rev() {
            if limited {
                step.stage.gives_few();
            }
            match step.stage.demand() {
                Demand::AsBehind => {}
                demand => limited = demand == Demand::First,
            }
        }
    }

    /// Gives it a batch, and has barriers begin anew.
    pub(crate) fn feed(&mut self, batch: Batch) {
        let mut frames: Vec<u32> = batch.rows.iter().map(|row| row.frame).collect();
        frames.sort_unstable();
        frames.dedup();
        let frames: Frames = frames.into();
        self.steps.iter_mut().for_each(|step| step.stage.begin(&frames));
        self.input.push_back(batch);
    }

    /// The next batch, which is not empty; `None` at the end.
    pub(crate) async fn next(&mut self, run: &mut Run) -> Done<Option<Batch>> {
        let Some(last) = self.steps.len().checked_sub(1) else { return Ok(self.next_input()) };
        let mut at = last;
        let mut input = Input::Nothing;
        loop {
            let begun = self.steps[at].taken.is_some().then(|| Begun::now(&run.branch));
            let answer = self.steps[at].turn(run, input).await?;
            if let (Some(begun), Some(taken)) = (begun, &mut self.steps[at].taken) {
                taken.add(begun, &run.branch, if let Answer::Batch(batch) = &answer { Some(batch) } else { None });
            }
            input = match answer {
                Answer::Batch(batch) if at == last => return Ok(Some(batch)),
                Answer::End if at == last => return Ok(None),
                Answer::Batch(batch) => {
                    run.branch.context().check_time()?;
                    run.pace.rest(TURN_UNITS + batch.len() as u64).await?;
                    at += 1;
                    Input::Batch(batch)
                }
                Answer::End => {
                    at += 1;
                    Input::End
                }
                Answer::Pending if at > 0 => {
                    run.pace.rest(1).await?;
                    at -= 1;
                    Input::Nothing
                }
                Answer::Pending => self.next_input().map_or(Input::End, Input::Batch),
            };
        }
    }

    /// Has each step note what it takes.
    pub(crate) fn note(&mut self) {
        self.steps.iter_mut().for_each(|step| step.taken = Some(Box::default()));
    }

    /// The steps, and what each has taken.
    pub(crate) fn taken(&self) -> impl Iterator<Item = (&PlanStep, &Taken)> {
        self.steps.iter().filter_map(|step| Some((&*step.step, step.taken.as_deref()?)))
    }

    fn next_input(&mut self) -> Option<Batch> {
        std::iter::from_fn(|| self.input.pop_front()).find(|batch| !batch.is_empty())
    }
}

impl StepPipe {
    fn turn<'a>(&'a mut self, run: &'a mut Run, input: Input) -> Deep<BoxFuture<'a, Done<Answer>>> {
        // Every traversal within another has turns of its own, so that each level passes here.
        let turn = async move {
            let ended = matches!(input, Input::End);
            let growth = run.growth.clone();
            let mut mark = growth.begin();
            // Somebody may want to know what the steps before have collected or written, if nothing else of them.
            let is_silent = !run.settings.writes && run.settings.collected.is_empty();
            match input {
                Input::Nothing if self.is_done(is_silent) => {
                    growth.end(&mark)?;
                    return Ok(Answer::End);
                }
                Input::Nothing => {}
                // The hold of the batch is joined.
                Input::Batch(batch) if self.stage.is_collecting() => self.collected.append(batch, &growth)?,
                Input::Batch(batch) => {
                    run.prepare(&batch, &self.step.together).await?;
                    self.stage.input(run, batch, &mut self.outputs).await?;
                }
                Input::End => {
                    let all = std::mem::take(&mut self.collected);
                    // Branches that collect read for themselves: each of them may need a few of the rows alone.
                    if self.step.operator.is_barrier() {
                        run.prepare(&all, &self.step.together).await?;
                    }
                    self.stage.finish(run, all, &mut self.outputs).await?;
                }
            }
            loop {
                self.place(run)?;
                if self.ready.is_empty() {
                    self.stage.poll(run, &mut self.outputs).await?;
                    self.place(run)?;
                }
                match self.ready.pop_front() {
                    // What came to nothing keeps no memory: a scan may have many such parts before one that has something.
                    Some(batch) if batch.is_empty() => {
                        growth.end(&mark)?;
                        mark = growth.begin();
                    }
                    Some(batch) => {
                        growth.end(&mark)?;
                        return Ok(Answer::Batch(batch));
                    }
                    None => {
                        growth.end(&mark)?;
                        return Ok(if ended || self.is_done(is_silent) { Answer::End } else { Answer::Pending });
                    }
                }
            }
        };
        Deep(Box::pin(turn))
    }

    /// Extends the paths of what came out, and counts its memory.
    fn place(&mut self, run: &mut Run) -> Done<()> {
        for output in self.outputs.drain(..) {
            let mut batch = run.placed(output, &self.labels)?;
            run.held(&mut batch)?;
            self.ready.push_back(batch);
        }
        Ok(())
    }

    fn is_done(&self, is_silent: bool) -> bool {
        self.stage.is_done(is_silent) && self.ready.is_empty()
    }
}
