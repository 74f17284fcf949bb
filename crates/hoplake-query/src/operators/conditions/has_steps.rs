//! Elements for one of whose values of a property a traversal gives something.

use super::keep;
use crate::{
    operators::prelude::*,
    run::{elements::elements, properties::Wanted},
    value::value_bytes,
};

/// Elements for one of whose values of a property a traversal gives something.
#[derive(Debug, Clone, PartialEq)]
pub struct HasSteps {
    /// The name of the property.
    pub name: Name,
    /// The traversal, which begins at the value.
    pub steps: Steps,
}

impl Operator for HasSteps {
    nested!(steps);

    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.name)
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        reach.name(&self.name, &input);
        input
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for HasSteps {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let values = run.by_property_values(&batch, &self.name).await?;
        let firsts = run.child_of_values(&self.steps, &batch, values).await?;
        Ok(keep(batch, |at| firsts[at]))
    }
}

impl Run {
    async fn by_property_values(&mut self, batch: &Batch, name: &Name) -> Done<Vec<Vec<Value>>> {
        let read = self.read(elements(batch), Wanted::Named(std::slice::from_ref(name))).await?;
        let mut all = self.growth.column(batch.len())?;
        for at in 0..batch.len() {
            let values = batch.items.element(at).map_or_else(Vec::new, |element| read.values(element, name));
            self.growth.take(values.iter().map(value_bytes).sum())?;
            all.push(values);
        }
        Ok(all)
    }

    /// For which rows a traversal gives something from one of some values.
    async fn child_of_values(&mut self, steps: &Steps, batch: &Batch, values: Vec<Vec<Value>>) -> Done<Vec<bool>> {
        let count = values.iter().map(Vec::len).sum();
        let mut parents = self.growth.column(count)?;
        let mut items = self.growth.column(count)?;
        for (at, values) in values.into_iter().enumerate() {
            parents.extend(values.iter().map(|_| at as u32));
            items.extend(values);
        }
        let mut rows = batch.take_rows(&parents, &self.growth)?;
        rows.items = Items::of_values(items);
        let exists = self.exists(steps, &rows).await?;
        let mut any = vec![false; batch.len()];
        parents.into_iter().zip(exists).for_each(|(parent, exists)| any[parent as usize] |= exists);
        Ok(any)
    }
}
