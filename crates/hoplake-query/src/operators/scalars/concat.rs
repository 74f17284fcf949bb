//! Texts, one after another.

use crate::{growth::TextBuilder, operators::prelude::*};

/// Texts, one after another.
#[derive(Debug, Clone, PartialEq)]
pub struct Concat {
    /// What comes behind the item.
    pub given: Vec<Given>,
}

impl Operator for Concat {
    nested!(given);

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        for given in &self.given {
            if let Given::Steps(steps) = given {
                reach.steps(steps, input.clone());
            }
        }
        Elements::default()
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Concat {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        run.concat(batch, &self.given).await
    }
}

impl Run {
    async fn concat(&mut self, batch: Batch, given: &[Given]) -> Done<Output> {
        let growth = self.growth.clone();
        let mut columns: Vec<Vec<Option<Value>>> = vec![self.own_values(&batch)?];
        for given in given {
            columns.push(self.given(given, &batch).await?);
        }
        let joined = |at: usize| -> Done<Value> {
            let mut text = None;
            for column in &columns {
                match &column[at] {
                    Some(Value::Text(more)) => text.get_or_insert_with(|| growth.text()).push(more)?,
                    Some(Value::Null) => {}
                    None => {
                        return Err(QueryError::wrong_type("a traversal of concat() has no result for a traverser"));
                    }
                    Some(_) => {
                        return Err(QueryError::wrong_type("String concat() can only take string as argument"));
                    }
                }
            }
            Ok(text.map_or(Value::Null, TextBuilder::finish))
        };
        let values = (0..batch.len()).map(joined).collect::<Done<Vec<_>>>()?;
        Ok(Output::Next(batch.on(Items::Values(values))))
    }
}
