//! Properties of elements.

use crate::{
    operators::prelude::*,
    plan::NewProperty,
    run::{
        Element,
        change::{NewValues, not_an_element},
    },
};

/// A property of the elements that come.
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    /// The property.
    pub property: NewProperty,
}

impl Operator for Property {
    nested!(property);

    fn is_write(&self) -> bool {
        true
    }

    fn start(self: Arc<Self>) -> Running {
        AllInput::running(self)
    }
}

impl All for Property {
    async fn all(&self, run: &mut Run, all: Batch, _: &Frames) -> Done<Output> {
        if all.is_empty() {
            return Ok(Output::Same(all));
        }
        run.set_property(all, &self.property).await
    }
}

impl Run {
    async fn set_property(&mut self, batch: Batch, property: &NewProperty) -> Done<Output> {
        let new = self.new_values(std::slice::from_ref(property), &batch).await?;
        if new.iter().any(|new| new.id.is_some() || new.label.is_some()) {
            return Err(QueryError::wrong_type(
                "the id and the label of an element are set when it is added, and stay",
            ));
        }
        self.growth.take(batch.len() * (size_of::<Element>() + size_of::<(Element, NewValues)>()))?;
        let elements: Vec<Element> = (0..batch.len())
            .map(|at| batch.items.element(at).ok_or_else(|| not_an_element(&batch.items.get(at))))
            .collect::<Done<_>>()?;
        self.set_values(elements.into_iter().zip(new.into_iter().map(|new| new.values)).collect()).await?;
        Ok(Output::Same(batch))
    }
}
