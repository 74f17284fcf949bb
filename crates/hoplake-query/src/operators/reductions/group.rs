//! Rows by key.

use crate::operators::{of_frames, prelude::*, slots};

/// All rows by key; under a name as a side effect.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The name of the side effect.
    pub name: Option<Name>,
    /// The key.
    pub key: By,
    /// What there is of each key.
    pub value: By,
}

impl Operator for Group {
    nested!(key, value);

    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.name.iter().try_for_each(|name| write!(f, " as {name}"))?;
        write!(f, " {}: {}", self.key, self.value)
    }

    // Under a name, too: whoever reads it behind the step sees all of it.
    fn is_barrier(&self) -> bool {
        true
    }

    fn collects(&self) -> Option<(&Name, Collects)> {
        self.name.as_ref().map(|name| (name, Collects::Map))
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        let mut after = reach.by(&self.key, input.clone());
        after.join(reach.by(&self.value, input.clone().others()));
        if self.name.is_some() { input } else { after }
    }

    fn start(self: Arc<Self>) -> Running {
        AllInput::running(self)
    }
}

impl All for Group {
    async fn all(&self, run: &mut Run, all: Batch, frames: &Frames) -> Done<Output> {
        let Some(name) = &self.name else {
            let maps = run.group_by_frame(all, slots(frames), &self.key, &self.value).await?;
            return run.begun(of_frames(maps, frames).collect());
        };
        let keys = run.by(&self.key, &all).await?;
        run.group_under(name, keys, &all, Arc::new(self.value.clone()))?;
        Ok(Output::Same(all))
    }
}
