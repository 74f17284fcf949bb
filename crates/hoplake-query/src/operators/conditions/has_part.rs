//! Properties whose name or value matches a predicate.

use crate::{
    operators::prelude::*,
    tokens::T,
    value::{Unread, UnreadProperty},
};

/// Properties whose name matches a predicate.
#[derive(Debug, Clone, PartialEq)]
pub struct HasKey {
    /// The predicate.
    pub predicate: Predicate,
}

/// Properties whose value matches a predicate.
#[derive(Debug, Clone, PartialEq)]
pub struct HasValue {
    /// The predicate.
    pub predicate: Predicate,
}

impl Operator for HasKey {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.predicate)
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for HasKey {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        run.keep_parts(batch, T::Key, &self.predicate).await
    }
}

impl Operator for HasValue {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.predicate)
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for HasValue {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        run.keep_parts(batch, T::Value, &self.predicate).await
    }
}

impl Run {
    /// The properties whose name, or value, matches a predicate.
    async fn keep_parts(&mut self, batch: Batch, part: T, predicate: &Predicate) -> Done<Output> {
        let test = |value: &Value, growth: &Growth| match property_part(value, part) {
            Some(part) => predicate.test(&part, growth),
            None => Ok(false),
        };
        self.keep_values(batch, test).await
    }
}

/// The name or the value of a property.
fn property_part(value: &Value, part: T) -> Option<Value> {
    fn of<E>(property: &UnreadProperty<E>, part: T) -> Value {
        if part == T::Key { (&*property.key).into() } else { property.value.clone() }
    }
    let Value::Unread(element) = value else { return None };
    match &**element {
        Unread::VertexProperty(property) => Some(of(property, part)),
        Unread::Property(property) => Some(of(property, part)),
        _ => None,
    }
}
