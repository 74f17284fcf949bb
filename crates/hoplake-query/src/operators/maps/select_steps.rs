//! What was met under names that a traversal gives.

use std::collections::BTreeMap;

use crate::{operators::prelude::*, tokens::Pop, value::Key};

/// What was met under the name that a traversal gives, or the entry of a map with this key.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectSteps {
    /// Which of several values of a name.
    pub pop: Pop,
    /// The traversal.
    pub steps: Steps,
    /// What of it.
    pub by: Vec<By>,
}

impl Operator for SelectSteps {
    nested!(steps, by);

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for SelectSteps {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let keys = run.firsts(&self.steps, &batch).await?;
        let mut values = run.growth.column(batch.len())?;
        values.resize_with(batch.len(), || None);
        // Each row is asked for its own name: there may be as many of them as rows.
        let mut rows_of: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, key) in keys.iter().enumerate() {
            if let Some(Value::Text(name)) = key {
                rows_of.entry(name).or_default().push(at);
            }
        }
        for (name, rows) in rows_of {
            let name = Name::from(name);
            let effect = run.side_effect(&name).await?;
            for at in rows {
                values[at] = run.met_at(at, &name, effect.as_ref(), self.pop, &batch)?;
            }
        }
        // Any value can be the key of a map.
        for (at, key) in keys.iter().enumerate() {
            if let (None, Some(key), Value::Map(entries)) = (&values[at], key, &*batch.items.get(at)) {
                run.growth.work(entries.len() as u64)?;
                let found = entries.iter().find(|(other, _)| Key(other) == Key(key));
                values[at] = found.map(|(_, value)| run.growth.copy(value)).transpose()?;
            }
        }
        let values = match self.by.first() {
            Some(by) => run.by_of(by, &batch, values).await?,
            None => values,
        };
        run.mapped_if(&batch, values)
    }
}
