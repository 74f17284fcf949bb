//! Values that match a predicate.

use std::borrow::Cow;

use crate::operators::prelude::*;

/// Rows whose item matches a predicate.
#[derive(Debug, Clone, PartialEq)]
pub struct Is {
    /// The predicate.
    pub predicate: Arc<Predicate>,
}

impl Operator for Is {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.predicate)
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Is {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let predicate = run.predicate_with_elements(&self.predicate).await?;
        run.keep_values(batch, |value, growth| predicate.test(value, growth)).await
    }
}

impl Run {
    /// A predicate whose values are elements of the graph where they came with the query.
    pub(crate) async fn predicate_with_elements<'a>(&mut self, predicate: &'a Predicate) -> Done<Cow<'a, Predicate>> {
        let mut values = Vec::new();
        predicate.values(&mut |value| values.push(value));
        if !values.iter().any(|value| matches!(value, Value::Vertex(_) | Value::Edge(_))) {
            return Ok(Cow::Borrowed(predicate));
        }
        let values = self.growth.copy_all(values)?;
        let mut values = self.with_elements(values).await?.into_iter();
        let with_elements: Done<Predicate> =
            predicate.map(&mut |value| Ok(values.next().unwrap_or_else(|| value.clone())));
        Ok(Cow::Owned(with_elements?))
    }
}
