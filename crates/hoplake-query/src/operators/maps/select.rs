//! What was met under names.

use super::{names_bytes, nth};
use crate::{operators::prelude::*, tokens::Pop};

/// What was met under names.
#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    /// Which of several values of a name.
    pub pop: Pop,
    /// The names.
    pub names: Vec<Name>,
    /// What of each, in turn.
    pub by: Vec<By>,
    /// Whether it is a map of the names, and not the value of the only one.
    pub as_map: bool,
}

impl Operator for Select {
    nested!(by);

    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.names.join(", "))
    }

    fn reads_names(&self) -> &[Name] {
        &self.names
    }

    fn reach(&self, reach: &mut Reach<'_>, _: Elements) -> Elements {
        let mut after = Elements::default();
        reach.looks_at(self.names.len());
        for (number, name) in self.names.iter().enumerate() {
            let met = reach.met(name);
            after.join(match self.by.get(number % self.by.len().max(1)) {
                Some(by) => reach.by(by, met),
                None => met,
            });
        }
        after
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Select {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let Self { pop, names, by, as_map } = self;
        let mut met = Vec::with_capacity(names.len());
        for name in names {
            met.push(run.met(name, *pop, &batch).await?);
        }
        run.keep_ready_of(&met, by).await?;
        let mut columns = Vec::with_capacity(names.len());
        for (number, met) in met.into_iter().enumerate() {
            columns.push(run.by_of(nth(by, number), &batch, met).await?);
        }
        if !as_map {
            let only = columns.pop().unwrap_or_default();
            return run.mapped_if(&batch, only);
        }
        let mut maps = run.growth.column(batch.len())?;
        for at in 0..batch.len() {
            run.growth.take(names_bytes(names))?;
            let entries =
                names.iter().zip(&mut columns).map(|(name, column)| Some(((&**name).into(), column[at].take()?)));
            maps.push(entries.collect::<Option<Vec<_>>>().map(Value::Map));
        }
        run.mapped_if(&batch, maps)
    }
}
