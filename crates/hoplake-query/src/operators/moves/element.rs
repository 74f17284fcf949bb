//! To the element of a property.

use crate::{operators::prelude::*, value::Unread};

/// From a property to the element that has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Element;

impl Operator for Element {
    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Element {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let not_a_property = || QueryError::wrong_type("`element` is of a property");
        let element = |value: &Value| match value {
            Value::Unread(unread) => match &**unread {
                Unread::VertexProperty(property) => Ok(Some(property.element.into())),
                Unread::Property(property) => Ok(Some(property.element.into())),
                _ => Err(not_a_property()),
            },
            _ => Err(not_a_property()),
        };
        run.each_value(batch, element).await
    }
}
