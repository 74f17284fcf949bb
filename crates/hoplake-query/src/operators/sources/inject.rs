//! Values, before the rows that come.

use crate::{operators::prelude::*, plan::write_values};

/// Values, and the rows that come.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Inject {
    /// The values.
    pub values: Vec<Value>,
}

impl Operator for Inject {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_values(f, &self.values)
    }

    fn is_stateful(&self) -> bool {
        true
    }

    fn start(self: Arc<Self>) -> Running {
        Running::new(Injecting { operator: self, frames: None, is_first: false })
    }
}

#[derive(Debug)]
struct Injecting {
    operator: Arc<Inject>,
    /// The frames that the values are given in; `None` once they were.
    frames: Option<Frames>,
    /// At the beginning of a traversal within another, the traverser is there before the values.
    is_first: bool,
}

impl Injecting {
    async fn give(&mut self, run: &mut Run, out: &mut Vec<Output>) -> Done<()> {
        if let Some(frames) = self.frames.take() {
            out.push(run.injected(&self.operator.values, &frames).await?);
        }
        Ok(())
    }
}

impl Stage for Injecting {
    fn stands_first(&mut self) {
        self.is_first = true;
    }

    fn begin(&mut self, frames: &Frames) {
        self.frames = Some(frames.clone());
    }

    fn input<'a>(&'a mut self, _: &'a mut Run, batch: Batch, out: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        // Before the first step there are no traversers to pass on.
        if !matches!(batch.items, Items::Nowhere(_)) {
            out.push(Output::Same(batch));
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn finish<'a>(&'a mut self, run: &'a mut Run, _: Batch, out: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(async move { if self.is_first { self.give(run, out).await } else { Ok(()) } })
    }

    fn poll<'a>(&'a mut self, run: &'a mut Run, out: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(async move { if self.is_first { Ok(()) } else { self.give(run, out).await } })
    }
}

impl Run {
    /// Values that a query gives, in each of some frames.
    pub(crate) async fn injected(&mut self, values: &[Value], frames: &Frames) -> Done<Output> {
        let growth = self.growth.clone();
        let values = growth.copy_all(values)?;
        let values = self.with_elements(values).await?;
        let mut all = growth.column(frames.len().saturating_mul(values.len()))?;
        for frame in frames.iter() {
            for value in &values {
                all.push((*frame, growth.copy(value)?));
            }
        }
        self.begun(all)
    }
}
