//! How many rows of each key.

use crate::operators::{of_frames, prelude::*, slots};

/// How many rows of each key; under a name as a side effect.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupCount {
    /// The name of the side effect.
    pub name: Option<Name>,
    /// The key.
    pub by: By,
}

impl Operator for GroupCount {
    nested!(by);

    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.name.iter().try_for_each(|name| write!(f, " as {name}"))?;
        write!(f, " {}", self.by)
    }

    fn is_barrier(&self) -> bool {
        true
    }

    fn collects(&self) -> Option<(&Name, Collects)> {
        self.name.as_ref().map(|name| (name, Collects::Map))
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        let after = reach.by(&self.by, input.clone());
        if self.name.is_some() { input } else { after }
    }

    fn start(self: Arc<Self>) -> Running {
        AllInput::running(self)
    }
}

impl All for GroupCount {
    async fn all(&self, run: &mut Run, all: Batch, frames: &Frames) -> Done<Output> {
        let Some(name) = &self.name else {
            let maps = run.counts_by_frame(all, slots(frames), &self.by).await?;
            return run.begun(of_frames(maps, frames).collect());
        };
        let keys = run.by(&self.by, &all).await?;
        let bulks: Vec<u64> = all.rows.iter().map(|row| row.bulk).collect();
        let keys: Vec<_> = keys.into_iter().zip(bulks).filter_map(|(key, bulk)| Some((key?, bulk))).collect();
        run.count_under(name, keys.into_iter())?;
        Ok(Output::Same(all))
    }
}
