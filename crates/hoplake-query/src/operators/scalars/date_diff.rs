//! How long between two points in time.

use crate::{operators::prelude::*, value::kind_of};

/// Milliseconds from another point in time.
#[derive(Debug, Clone, PartialEq)]
pub struct DateDiff {
    /// The other one.
    pub other: Given,
}

impl Operator for DateDiff {
    nested!(other);

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for DateDiff {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let others = run.given(&self.other, &batch).await?;
        let mut values = Vec::with_capacity(batch.len());
        for (at, other) in others.into_iter().enumerate() {
            values.push(Some(match (&*batch.items.get(at), other) {
                (Value::DateTime(moment), Some(Value::DateTime(other))) => {
                    let between = moment.duration_since_epoch() - other.duration_since_epoch();
                    i64::try_from(between.as_millis()).unwrap_or(i64::MAX).into()
                }
                (Value::DateTime(moment), Some(Value::Null)) => moment.millis().into(),
                (value, _) => {
                    return Err(QueryError::wrong_type(format!(
                        "`dateDiff` is between two points in time, and this is {}",
                        kind_of(value)
                    )));
                }
            }));
        }
        run.mapped_if(&batch, values)
    }
}
