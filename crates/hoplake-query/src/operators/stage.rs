//! A run of an operator.

use std::{fmt::Debug, future::Future, sync::Arc};

use futures::future::BoxFuture;

use super::Operator;
use crate::run::{Batch, Done, Frames, Growth, Run};

/// What comes out of an operator, and what becomes of the paths of its rows. The pipeline extends them, and binds the step's names.
#[derive(Debug)]
pub(crate) enum Output {
    /// Each row went on: it is a new step of its path.
    Next(Batch),
    /// Rows that stay where they are.
    Same(Batch),
}

impl Output {
    /// In parts of limited size.
    pub(crate) fn parts(self, growth: &Growth) -> Done<Vec<Self>> {
        let (of, batch): (fn(Batch) -> Self, Batch) = match self {
            Self::Next(batch) => (Self::Next, batch),
            Self::Same(batch) => (Self::Same, batch),
        };
        Ok(batch.parts(growth)?.into_iter().map(of).collect())
    }
}

/// How many of the rows before it a stage asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Demand {
    /// As many as the stages behind it: it takes row by row.
    AsBehind,
    /// The first ones.
    First,
    /// All.
    All,
}

/// A run of an operator: it has what the operator keeps between batches.
pub(crate) trait Stage: Debug + Send {
    /// It stands at the beginning of its pipeline.
    fn stands_first(&mut self) {}

    /// Input of some frames begins.
    fn begin(&mut self, _frames: &Frames) {}

    /// Whether its input is put together, and comes as one batch when all is there.
    fn is_collecting(&self) -> bool {
        false
    }

    /// Takes a batch.
    fn input<'a>(&'a mut self, run: &'a mut Run, batch: Batch, out: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>>;

    /// All input has come; if it is [collecting](Self::is_collecting), it comes now.
    fn finish<'a>(&'a mut self, _run: &'a mut Run, _all: Batch, _out: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Gives more of what is under way, if something is.
    fn poll<'a>(&'a mut self, _run: &'a mut Run, _out: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Whether it gives nothing any more, whatever would come. If the query is silent, nobody sees what the steps before it do besides
    /// their results.
    fn is_done(&self, _is_silent: bool) -> bool {
        false
    }

    /// How many rows it asks for.
    fn demand(&self) -> Demand {
        Demand::All
    }

    /// A stage behind it takes the first rows alone: it gives few rows first, where it can.
    fn gives_few(&mut self) {}
}

/// A run of an operator.
#[derive(Debug)]
pub struct Running(pub(crate) Box<dyn Stage>);

impl Running {
    pub(crate) fn new(stage: impl Stage + 'static) -> Self {
        Self(Box::new(stage))
    }
}

/// An operator that makes an output of each batch, whatever came before.
pub(crate) trait Each: Operator {
    /// The output of a batch.
    fn each(&self, run: &mut Run, batch: Batch) -> impl Future<Output = Done<Output>> + Send;
}

/// The run of an operator that keeps nothing between batches.
#[derive(Debug)]
pub(crate) struct PerBatch<O> {
    operator: Arc<O>,
    demand: Demand,
}

impl<O: Each> PerBatch<O> {
    pub(crate) fn running(operator: Arc<O>) -> Running {
        Running::new(Self { operator, demand: Demand::AsBehind })
    }

    /// Of an operator that gives many rows for one: the steps before it gain nothing by few rows.
    pub(crate) fn source(operator: Arc<O>) -> Running {
        Running::new(Self { operator, demand: Demand::All })
    }
}

impl<O: Each> Stage for PerBatch<O> {
    fn input<'a>(&'a mut self, run: &'a mut Run, batch: Batch, out: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(async move {
            out.push(self.operator.each(run, batch).await?);
            Ok(())
        })
    }

    fn demand(&self) -> Demand {
        self.demand
    }
}

/// An operator that makes an output of all its input.
pub(crate) trait All: Operator {
    /// The output of all input, whose rows are of some frames: for each of these it may give something, even if no row of it is left.
    fn all(&self, run: &mut Run, all: Batch, frames: &Frames) -> impl Future<Output = Done<Output>> + Send;
}

/// The run of an operator that needs all its input.
#[derive(Debug)]
pub(crate) struct Barrier<O> {
    operator: Arc<O>,
    /// The frames of the input; `None` once it has given something for them.
    frames: Option<Frames>,
}

impl<O: All> Barrier<O> {
    pub(crate) fn running(operator: Arc<O>) -> Running {
        Running::new(Self { operator, frames: None })
    }
}

impl<O: All> Stage for Barrier<O> {
    fn begin(&mut self, frames: &Frames) {
        self.frames = Some(frames.clone());
    }

    fn is_collecting(&self) -> bool {
        true
    }

    fn input<'a>(&'a mut self, _: &'a mut Run, _: Batch, _: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn finish<'a>(&'a mut self, run: &'a mut Run, all: Batch, out: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(async move {
            if let Some(frames) = self.frames.take() {
                let output = self.operator.all(run, all, &frames).await?;
                out.extend(output.parts(&run.growth)?);
            }
            Ok(())
        })
    }

    fn is_done(&self, _: bool) -> bool {
        self.frames.is_none()
    }
}
