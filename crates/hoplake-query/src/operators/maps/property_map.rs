//! Maps of properties to themselves.

use super::{property, wanted};
use crate::{
    operators::prelude::*,
    run::{
        Element,
        elements::{elements, has_properties},
    },
};

/// A map of properties to themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct PropertyMap {
    /// The properties; all without.
    pub names: Vec<Name>,
}

impl Operator for PropertyMap {
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

impl Each for PropertyMap {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let wanted = wanted(&self.names);
        let read = run.read(elements(&batch), wanted).await?;
        let places = wanted.places();
        let map = |at: usize| -> Done<Value> {
            let Some(element) = has_properties(&batch, at)? else { return Ok(Value::Map(Vec::new())) };
            let entries = read.all(element, &places).into_iter().map(|(key, values)| {
                let each = values.into_iter().zip(0u32..);
                let mut all: Vec<_> = each.map(|(value, number)| property(element, key, value, number)).collect();
                match element {
                    Element::Vertex(_) => (key.into(), Value::List(all)),
                    Element::Edge(_) => (key.into(), all.pop().unwrap_or_default()),
                }
            });
            run.growth.built(Value::Map(entries.collect()))
        };
        let maps = (0..batch.len()).map(map).collect::<Done<Vec<_>>>()?;
        Ok(Output::Next(batch.on(Items::Values(maps))))
    }
}
