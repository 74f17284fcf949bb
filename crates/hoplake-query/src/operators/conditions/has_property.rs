//! Elements that have a property, or lack it.

use super::keep;
use crate::{
    operators::prelude::*,
    run::{
        elements::{elements, has_properties},
        properties::Wanted,
    },
};

/// Elements that have a property.
#[derive(Debug, Clone, PartialEq)]
pub struct HasProperty {
    /// Its name.
    pub name: Name,
}

/// Elements that lack a property.
#[derive(Debug, Clone, PartialEq)]
pub struct HasNot {
    /// Its name.
    pub name: Name,
}

impl Operator for HasProperty {
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

impl Each for HasProperty {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let has = run.has_property(&batch, &self.name).await?;
        Ok(keep(batch, |at| has[at]))
    }
}

impl Operator for HasNot {
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

impl Each for HasNot {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let has = run.has_property(&batch, &self.name).await?;
        Ok(keep(batch, |at| !has[at]))
    }
}

impl Run {
    async fn has_property(&mut self, batch: &Batch, name: &Name) -> Done<Vec<bool>> {
        let read = self.read(elements(batch), Wanted::Named(std::slice::from_ref(name))).await?;
        let has = |at: usize| {
            let element = has_properties(batch, at)?;
            Ok(element.is_some_and(|element| !read.values(element, name).is_empty()))
        };
        (0..batch.len()).map(has).collect()
    }
}
