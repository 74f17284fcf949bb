//! Formulas.

use crate::{
    operators::prelude::*,
    plan::Formula,
    value::{kind_of, to_f64},
};

/// The value of a formula.
#[derive(Debug, Clone, PartialEq)]
pub struct Math {
    /// The formula: `_` stands for the item, other names for what was met under them.
    pub formula: Box<Formula>,
    /// What of each variable, in turn.
    pub by: Vec<By>,
}

impl Operator for Math {
    nested!(by);

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        reach.each_by(&self.by, &input);
        Elements::default()
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Math {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let Self { formula, by } = self;
        let mut columns = Vec::with_capacity(formula.variables().len());
        for (number, name) in formula.variables().iter().enumerate() {
            let identity = By::Identity;
            let by = if by.is_empty() { &identity } else { &by[number % by.len()] };
            columns.push(match &**name {
                "_" => run.by(by, &batch).await?,
                _ => {
                    let met = run.needed(name, "math", &batch).await?.into_iter().map(Some).collect();
                    run.by_of(by, &batch, met).await?
                }
            });
        }
        let computed = |at: usize| -> Done<Option<Value>> {
            let mut values = Vec::with_capacity(columns.len());
            for (column, name) in columns.iter().zip(formula.variables()) {
                match &column[at] {
                    Some(Value::Number(number)) => values.push(to_f64(number)),
                    None => return Ok(None),
                    Some(other) => {
                        return Err(QueryError::wrong_type(format!(
                            "The variable {name} for math() step must resolve to a Number - it is instead {}",
                            kind_of(other)
                        )));
                    }
                }
            }
            formula.value(&values).map(|value| Some(value.into()))
        };
        let values = (0..batch.len()).map(computed).collect::<Done<Vec<_>>>()?;
        run.mapped_if(&batch, values)
    }
}
