//! Operators that make a value of a value: text, numbers, dates, lists.

mod concat;
mod conjoin;
mod convert;
mod date_add;
mod date_diff;
mod format;
mod lists;
mod math;
mod text;

pub use self::{
    concat::Concat,
    conjoin::Conjoin,
    convert::{Conversion, Convert},
    date_add::DateAdd,
    date_diff::DateDiff,
    format::Format,
    lists::{ListStep, Lists},
    math::Math,
    text::{Text, TextStep},
};
use crate::{
    error::{Done, QueryError},
    growth::Growth,
    run::reduce::items_of,
    tokens::Scope,
    value::{Value, kind_of, value_bytes},
};

/// A change of a value, or of each item of it.
fn scoped(
    scope: Scope,
    value: &Value,
    growth: &Growth,
    change: impl Fn(&Value) -> Done<Option<Value>>,
) -> Done<Option<Value>> {
    match (scope, value) {
        (Scope::Local, Value::List(items) | Value::Set(items)) => {
            let mut changed = growth.column(items.len())?;
            for item in items {
                let before = growth.taken();
                let value = change(item)?.unwrap_or_default();
                growth.at_least(before, value_bytes(&value))?;
                changed.push(value);
            }
            Ok(Some(Value::List(changed)))
        }
        (Scope::Local, Value::BulkSet(_)) => {
            let items = items_of(growth.copy(value)?, growth)?;
            scoped(scope, &Value::List(items), growth, change)
        }
        _ => change(value),
    }
}

fn collection(step: &str, value: Value, growth: &Growth) -> Done<Vec<Value>> {
    match value {
        Value::Path(path) => Ok(path.steps.into_iter().map(|(item, _)| item).collect()),
        Value::List(_) | Value::Set(_) | Value::BulkSet(_) => items_of(value, growth),
        Value::Null => Err(QueryError::wrong_type(format!("Incoming traverser for {step} step can't be null"))),
        other => Err(QueryError::wrong_type(format!(
            "{step} step can only take an array or an Iterable type for incoming traversers, encountered {}",
            kind_of(&other)
        ))),
    }
}
