//! Runs of most operators: those that make an output of each batch, and those that make one of all input.

use std::{future::Future, sync::Arc};

use futures::future::BoxFuture;

use super::{
    Operator,
    stage::{Demand, Frames, Output, Running, Stage},
};
use crate::{
    error::Done,
    run::{Batch, Run},
};

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
