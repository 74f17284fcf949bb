//! Maps of names to what is computed.

use super::{names_bytes, nth};
use crate::operators::prelude::*;

/// A map of names to what is computed.
#[derive(Debug, Clone, PartialEq)]
pub struct Project {
    /// The names.
    pub names: Vec<Name>,
    /// What is computed, in turn.
    pub by: Vec<By>,
}

impl Operator for Project {
    nested!(by);

    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut numbered = self.names.iter().enumerate();
        numbered.try_for_each(|(number, name)| write!(f, " {name}: {}", nth(&self.by, number)))
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        let mut after = Elements::default();
        self.by.iter().for_each(|by| after.join(reach.by(by, input.clone())));
        after
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Project {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let all: Vec<&By> = (0..self.names.len()).map(|number| nth(&self.by, number)).collect();
        let mut columns = run.by_all(&all, &batch).await?;
        let mut maps = run.growth.column(batch.len())?;
        for at in 0..batch.len() {
            run.growth.take(names_bytes(&self.names))?;
            let entries = self.names.iter().zip(&mut columns);
            let entries = entries.filter_map(|(name, column)| Some(((&**name).into(), column[at].take()?)));
            maps.push(Value::Map(entries.collect()));
        }
        Ok(Output::Next(batch.on(Items::Values(maps))))
    }
}
