//! Comparisons with what was met under names.

use super::keep;
use crate::{operators::prelude::*, plan::Test, run::reduce::items_of, value::kind_of};

/// Rows whose item, or what they met under a name, matches a predicate whose values are names.
#[derive(Debug, Clone, PartialEq)]
pub struct WherePredicate {
    /// What is compared; the item without.
    pub start: Option<Name>,
    /// What it is compared with, by name.
    pub predicate: Predicate,
    /// What of each is compared, in turn.
    pub by: Vec<By>,
}

impl Operator for WherePredicate {
    nested!(by);

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        let mut met = input.clone().others();
        self.predicate.values(&mut |value| {
            if let Value::Text(name) = value {
                met.join(reach.met(name));
            }
        });
        reach.each_by(&self.by, &met);
        input
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for WherePredicate {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let matching = run.where_predicate(&batch, self.start.as_ref(), &self.predicate, &self.by).await?;
        Ok(keep(batch, |at| matching[at]))
    }
}

impl Run {
    async fn where_predicate(
        &mut self,
        batch: &Batch,
        start: Option<&Name>,
        predicate: &Predicate,
        by: &[By],
    ) -> Done<Vec<bool>> {
        let identity = By::Identity;
        let nth = |number: usize| if by.is_empty() { &identity } else { &by[number % by.len()] };
        let own: Vec<Option<Value>> = match start {
            Some(label) => self.needed(label, "where", batch).await?.into_iter().map(Some).collect(),
            None => self.own_values(batch)?,
        };
        let own = self.by_of(nth(0), batch, own).await?;
        // Each label of the predicate, in its order.
        let mut labels: Vec<Name> = Vec::new();
        let mut wrong = false;
        predicate.values(&mut |value| match value {
            Value::Text(label) => labels.push((&**label).into()),
            _ => wrong = true,
        });
        if wrong {
            return Err(QueryError::wrong_type("the values of a predicate in `where` are labels"));
        }
        let mut columns = Vec::with_capacity(labels.len());
        for (number, label) in labels.iter().enumerate() {
            let met = self.needed(label, "where", batch).await?.into_iter().map(Some).collect();
            columns.push(self.by_of(nth(number + 1), batch, met).await?);
        }
        let growth = self.growth.clone();
        let mut matching = growth.column(batch.len())?;
        for (at, own) in own.iter().enumerate() {
            let Some(own) = own else {
                matching.push(false);
                continue;
            };
            let mut number = 0;
            let mut next = |_: &Value| {
                number += 1;
                columns[number - 1][at].take().ok_or(())
            };
            let before = growth.done();
            matching.push(match predicate.map(&mut next) {
                Ok(predicate) => spread(predicate, &growth)?.test(own, &growth)?,
                Err(()) => false,
            });
            self.rest_since(before).await?;
        }
        Ok(matching)
    }
}

/// A predicate in which a collection that was met under a label stands for its items.
fn spread(predicate: Predicate, growth: &Growth) -> Done<Predicate> {
    let all =
        |predicates: Vec<Predicate>| predicates.into_iter().map(|it| spread(it, growth)).collect::<Done<Vec<_>>>();
    Ok(match predicate {
        Predicate::Test(test @ (Test::Within | Test::Without), values) => {
            let mut items = Vec::new();
            for value in values {
                items.extend(items_in(value, growth)?);
            }
            Predicate::Test(test, items)
        }
        Predicate::And(predicates) => Predicate::And(all(predicates)?),
        Predicate::Or(predicates) => Predicate::Or(all(predicates)?),
        Predicate::Not(predicate) => Predicate::Not(Box::new(spread(*predicate, growth)?)),
        other => other,
    })
}

fn items_in(collection: Value, growth: &Growth) -> Done<Vec<Value>> {
    let kind = kind_of(&collection);
    items_of(collection, growth).map_err(|error| match error {
        QueryError::Engine(_) => error,
        _ => QueryError::wrong_type(format!(
            "`within` and `without` in `where` are of a collection that was met under a label, and this is {kind}: compare one value \
             with `eq` or `neq`"
        )),
    })
}
