//! Later or earlier.

use jiff::SignedDuration;

use crate::{operators::prelude::*, tokens::Dt, value::kind_of};

/// A point in time that is later or earlier.
#[derive(Debug, Clone, PartialEq)]
pub struct DateAdd {
    /// In which unit.
    pub unit: Dt,
    /// How many of them; below zero is earlier.
    pub count: i64,
}

impl Operator for DateAdd {
    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for DateAdd {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        run.each_value(batch, |value| later(value, self.unit, self.count).map(Some)).await
    }
}

fn later(value: &Value, unit: Dt, count: i64) -> Done<Value> {
    let Value::DateTime(moment) = value else {
        return Err(QueryError::wrong_type(format!("`dateAdd` is of a point in time, and this is {}", kind_of(value))));
    };
    let seconds = match unit {
        Dt::Second => 1,
        Dt::Minute => 60,
        Dt::Hour => 3_600,
        Dt::Day => 86_400,
    };
    let added = count.checked_mul(seconds).map(SignedDuration::from_secs).and_then(|it| moment.checked_add(it));
    let added = added.ok_or_else(|| QueryError::wrong_type("`dateAdd` goes beyond the years that there are"))?;
    Ok(Value::DateTime(added))
}
