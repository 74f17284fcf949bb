//! Properties, and their values.

use super::{property, wanted};
use crate::{
    operators::prelude::*,
    run::{
        Element,
        elements::{elements, has_properties},
    },
};

/// The values of properties.
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
    /// The properties; all without.
    pub names: Vec<Name>,
}

/// Properties.
#[derive(Debug, Clone, PartialEq)]
pub struct Properties {
    /// The properties; all without.
    pub names: Vec<Name>,
}

impl Operator for Values {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.names.join(", "))
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        reach.names(&self.names, &input);
        Elements::default()
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Values {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        run.properties(batch, &self.names, |_, _, value, _| value).await
    }
}

impl Operator for Properties {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.names.join(", "))
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        reach.names(&self.names, &input);
        // A property leads back to its element.
        input.others()
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Properties {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        run.properties(batch, &self.names, property).await
    }
}

impl Run {
    /// What is made of each value of some properties.
    async fn properties(
        &mut self,
        batch: Batch,
        names: &[Name],
        item: impl Fn(Element, &str, Value, u32) -> Value,
    ) -> Done<Output> {
        let wanted = wanted(names);
        let read = self.read(elements(&batch), wanted).await?;
        let places = wanted.places();
        let mut parents = Vec::new();
        let mut items = Vec::new();
        for at in 0..batch.len() {
            let Some(element) = has_properties(&batch, at)? else { continue };
            for (key, values) in read.all(element, &places) {
                for (value, number) in values.into_iter().zip(0u32..) {
                    parents.push(at as u32);
                    items.push(self.growth.built(item(element, key, value, number))?);
                }
            }
            self.pace.rest(1).await?;
        }
        Ok(Output::Next(self.derived(&batch, &parents, Items::of_values(items))?))
    }
}
