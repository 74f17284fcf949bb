//! Rules that make a plan read less, or wait less often, and give the same.
//!
//! | rule | from | to |
//! | --- | --- | --- |
//! | [`starts`] | `V().hasLabel(l).hasId(x)`, `V().has(label, key, value)` | a look-up of the keys of a label; a scan with the conditions, which an index may answer |
//! | [`counts`] | `V().hasLabel(x).count()`, `out().count()` | the statistics of the graph; lengths of lists |
//! | [`edges`] | `E().hasId(x)`, `E().hasLabel(x)` | a look-up of ids; a scan of the edges that match conditions |
//! | [`walks`] | `out().out().dedup()` | a traversal of the engine, which keeps sets and not traversers |
//! | [`conditions`] | `outE().has("km", lt(9)).inV().hasNot("age").count()` | a hop with conditions, which the engine tests on columns |
//! | [`together`] | `has("age", gt(30)).values("name")` | one read of both properties |

mod conditions;
mod counts;
mod edges;
mod element_conditions;
mod place;
mod reads;
mod replaced;
mod starts;
mod taken;
mod together;
mod walks;

use std::{collections::HashMap, sync::Arc};

use self::place::Place;
pub use self::together::TOGETHER_NAMES_MAX;
pub(crate) use self::together::read_together;
use super::{Paths, PlanStep, Settings, Steps, work::Work};
use crate::{error::QueryError, operators::Operator};

/// A rule.
pub(super) struct Rule {
    /// What it is called.
    pub(super) name: &'static str,
    apply: fn(&Steps, Place, &mut Work) -> Option<Steps>,
}

/// All rules, in their order: each sees what those before it made.
pub(super) const ALL: [Rule; 6] = [
    Rule { name: "starts", apply: starts::apply },
    Rule { name: "counts", apply: counts::apply },
    Rule { name: "edges", apply: edges::apply },
    Rule { name: "walks", apply: walks::apply },
    Rule { name: "conditions", apply: conditions::apply },
    Rule { name: "together", apply: together::apply },
];

impl Rule {
    /// The query after the rule; `None` if it changes nothing.
    pub(super) fn of_query(&self, steps: &Steps, settings: &Settings, work: &mut Work) -> Option<Steps> {
        let carries = settings.paths != Paths::Unused || settings.sack.is_some();
        Applied { rule: self, work, known: HashMap::new() }.within(steps, Place { is_root: true, carries })
    }
}

/// A rule that is being applied to a query.
struct Applied<'a> {
    rule: &'a Rule,
    work: &'a mut Work,
    /// Traversals within others, by their address, and what became of them. Those of a strategy stand at every step that it restricts:
    /// they stay one, with all values in them.
    known: HashMap<*const Arc<PlanStep>, (Steps, Option<Steps>)>,
}

impl Applied<'_> {
    /// Traversals within the steps first.
    fn within(&mut self, steps: &Steps, place: Place) -> Option<Steps> {
        if !self.work.looks_at(steps.len()) {
            return None;
        }
        let mut changed: Option<Vec<Arc<PlanStep>>> = None;
        for (at, step) in steps.iter().enumerate() {
            if let Some(operator) = self.in_operator(&*step.operator, Place { is_root: false, ..place }) {
                let steps = changed.get_or_insert_with(|| steps.to_vec());
                steps[at] = Arc::new(PlanStep { operator, ..PlanStep::clone(step) });
            }
        }
        let changed: Option<Steps> = changed.map(Into::into);
        let changed = (self.rule.apply)(changed.as_ref().unwrap_or(steps), place, self.work).or(changed)?;
        // Of the query itself they take the place of those before.
        (place.is_root || self.work.makes(changed.len())).then_some(changed)
    }

    fn in_operator(&mut self, operator: &dyn Operator, place: Place) -> Option<Arc<dyn Operator>> {
        operator.with_nested(|steps| self.nested(steps, place))
    }

    fn nested(&mut self, steps: &Steps, place: Place) -> Option<Steps> {
        if let Some((_, changed)) = self.known.get(&steps.as_ptr()) {
            self.work.looks_at(0);
            return changed.clone();
        }
        let changed = crate::deep::with_stack(|| self.within(steps, place));
        // With the traversal itself: its address is that of no other one while it is there.
        self.known.insert(steps.as_ptr(), (steps.clone(), changed.clone()));
        changed
    }
}

/// Applies all rules to the steps of a query.
pub fn apply(mut steps: Steps, settings: &Settings, work: &mut Work) -> Result<Steps, QueryError> {
    for rule in &ALL {
        if let Some(changed) = rule.of_query(&steps, settings, work) {
            steps = changed;
        }
        work.check()?;
    }
    Ok(steps)
}
