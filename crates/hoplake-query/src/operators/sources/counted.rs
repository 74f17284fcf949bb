//! Numbers that the graph's statistics have.

use crate::{
    operators::prelude::*,
    run::{Pipe, conditions::matches},
};

/// How many vertices or edges the graph has.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// Of edges, and not of vertices.
    pub edges: bool,
    /// What their labels match.
    pub labels: Vec<Arc<Predicate>>,
    /// A map of labels to numbers, and not their sum.
    pub by_label: bool,
    /// The steps that count them where the statistics are not exact.
    pub otherwise: Steps,
}

impl Operator for Counted {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.edges { " edges" } else { " vertices" })?;
        self.labels.iter().try_for_each(|predicate| write!(f, " label {predicate}"))?;
        f.write_str(if self.by_label { " by label" } else { "" })
    }

    fn reach(&self, _: &mut Reach<'_>, _: Elements) -> Elements {
        Elements::default()
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::source(self)
    }
}

impl Each for Counted {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        if let Some(value) = run.counted(self)? {
            return run.begun(vec![(0, value)]);
        }
        let mut pipe = Pipe::new(&self.otherwise);
        pipe.feed(batch);
        Ok(Output::Same(run.drain_boxed(&mut pipe).await?))
    }
}

impl Run {
    /// Numbers that the statistics have; `None` if they are not exact.
    pub(crate) fn counted(&self, counted: &Counted) -> Done<Option<Value>> {
        let matches = |label: &str| matches(label, counted.labels.iter().map(|it| &**it), &self.growth);
        let manifest = self.snapshot.manifest();
        let mut counts: Vec<(&str, u64)> = Vec::new();
        let mut add = |label, count| match counts.iter_mut().find(|(other, _)| *other == label) {
            Some((_, sum)) => *sum += count,
            None => counts.push((label, count)),
        };
        if counted.edges {
            for ((number, edge), count) in manifest.schema.edge_types().zip(&manifest.edge_counts) {
                if matches(&edge.label)? {
                    if !self.snapshot.is_edge_count_exact(number) {
                        return Ok(None);
                    }
                    add(edge.label.as_str(), *count);
                }
            }
        } else {
            for (label, count) in manifest.schema.vertex_labels.iter().zip(&manifest.vertex_counts) {
                if matches(&label.name)? {
                    add(label.name.as_str(), count.live());
                }
            }
        }
        let number = |count: u64| Value::from(i64::try_from(count).unwrap_or(i64::MAX));
        Ok(Some(match counted.by_label {
            false => number(counts.iter().map(|(_, count)| count).sum()),
            true => {
                let some = counts.into_iter().filter(|(_, count)| *count > 0);
                Value::Map(some.map(|(label, count)| (label.into(), number(count))).collect())
            }
        }))
    }
}
