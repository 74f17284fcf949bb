//! A run of an operator.

use std::{fmt::Debug, sync::Arc};

use futures::future::BoxFuture;

use crate::{
    error::Done,
    growth::Growth,
    run::{Batch, Run},
};

/// The frames that rows were given for, ascending: for each of them a reducing step gives something, even if none of its rows is left.
pub(crate) type Frames = Arc<[u32]>;

/// How many slots a vector by frame needs.
pub(crate) fn slots(frames: &Frames) -> usize {
    frames.last().map_or(0, |last| *last as usize + 1)
}

/// What a vector by frame has for some frames.
pub(crate) fn of_frames<T>(all: Vec<T>, frames: &Frames) -> impl Iterator<Item = (u32, T)> + '_
where
    T: 'static,
{
    (0u32..).zip(all).filter(|(frame, _)| frames.binary_search(frame).is_ok())
}

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
