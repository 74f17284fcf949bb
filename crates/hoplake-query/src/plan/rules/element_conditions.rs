//! Steps that are conditions on elements: `has`, `hasLabel`, `hasNot`, and `and`, `or`, `not` and `where` of them.

use std::sync::Arc;

use hoplake_engine::Formula;

use super::{place::is_plain, replaced::Replaced};
use crate::{
    operators::{
        Operator,
        conditions::{And, Has, HasNot, HasProperty, Is, Not, Or, Where},
        maps::{Properties, Token, Values},
    },
    plan::{By, ElementCondition, ElementTest, Name, PlanStep, Predicate, Steps, Test},
    tokens::T,
    value::Value,
};

/// Conditions of a hop or a scan, at most: the engine has a verdict of each for every row.
pub(super) const TAKEN_MAX: usize = 64;

/// Conditions within conditions, at most. Each level is looked at once for each level around it.
const DEPTH_MAX: usize = 16;

/// Tests of a condition, at most: a condition of more stays a step.
const TESTS_MAX: usize = 200;

type Tests = Formula<ElementTest>;

/// A condition that leads a list of steps.
#[derive(Debug)]
pub(super) struct LeadingCondition {
    pub(super) condition: ElementCondition,
    /// Which of the steps it is a part of.
    pub(super) step: usize,
}

/// The conditions that some steps begin with, in their order. Parts of an `and` are conditions of their own. The last step may have
/// labels: nothing after it is looked at, because what it names has not passed what follows.
pub(super) fn leading(steps: &[Arc<PlanStep>]) -> Vec<LeadingCondition> {
    let mut found = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let Some(parts) = parts(step, DEPTH_MAX) else { break };
        if found.len() + parts.len() > TAKEN_MAX {
            break;
        }
        found.extend(parts.into_iter().map(|condition| LeadingCondition { condition, step: number }));
        if !is_plain(step) {
            break;
        }
    }
    found
}

/// A source of the elements of some ids in place of one of all elements, if `steps`, which follow it, have ids among the conditions that
/// they begin with. Conditions may be tested in any order, and those before the ids have no labels.
pub(super) fn looked_up(
    steps: &[Arc<PlanStep>],
    source: impl FnOnce(Vec<Value>) -> Arc<dyn Operator>,
) -> Option<Replaced> {
    let is_condition = |step: &Arc<PlanStep>| is_plain(step) && parts(step, DEPTH_MAX).is_some();
    let at = steps.iter().take_while(|step| is_condition(step)).count();
    let (before, rest) = steps.split_at(at);
    let by_id = rest.first()?;
    let Some(Has { by: By::Token(T::Id), predicate }) = by_id.get() else { return None };
    let Predicate::Test(Test::Eq | Test::Within, ids) = &**predicate else { return None };
    let source = Arc::new(PlanStep::of(source(ids.clone()), by_id.labels.clone()));
    // The source before them, and the condition itself.
    Some(Replaced { steps: std::iter::once(source).chain(before.iter().cloned()).collect(), count: at + 2 })
}

/// How many steps some of the leading conditions are, the last of which may be there in part.
pub(super) fn step_count(found: &[LeadingCondition]) -> usize {
    found.last().map_or(0, |last| last.step + 1)
}

/// The conditions that a step is made of; `None` if it is another step.
fn parts(step: &Arc<PlanStep>, depth: usize) -> Option<Vec<ElementCondition>> {
    let depth = depth.checked_sub(1)?;
    let joined: Vec<&Steps> = if let Some(And { all }) = step.get() {
        all.iter().collect()
    } else if let Some(Where { steps }) = step.get() {
        vec![steps]
    } else {
        Vec::new()
    };
    if !joined.is_empty() && joined.iter().all(|steps| !steps.is_empty()) {
        let steps = joined.iter().flat_map(|steps| steps.iter());
        let each: Option<Vec<_>> = steps.map(|step| if is_plain(step) { parts(step, depth) } else { None }).collect();
        if let Some(each) = each {
            return Some(each.into_iter().flatten().collect());
        }
    }
    let formula = of_step(step, depth).filter(|formula| formula.tests().len() <= TESTS_MAX)?;
    Some(vec![ElementCondition { formula, step: without_labels(step) }])
}

/// A step that gives no labels.
fn without_labels(step: &Arc<PlanStep>) -> Arc<PlanStep> {
    if is_plain(step) { step.clone() } else { Arc::new(PlanStep::of(step.operator.clone(), Vec::new())) }
}

fn of_step(step: &PlanStep, depth: usize) -> Option<Tests> {
    let depth = depth.checked_sub(1)?;
    let each = |all: &[Steps]| all.iter().map(|steps| of_steps(steps, depth)).collect::<Option<Vec<_>>>();
    if let Some(Has { by, predicate }) = step.get() {
        return Some(Formula::test(match by {
            By::Property(name) => ElementTest::Property(name.clone(), predicate.clone()),
            By::Token(T::Label) => ElementTest::Label(predicate.clone()),
            _ => return None,
        }));
    }
    if let Some(HasProperty { name }) = step.get() {
        Some(Formula::test(ElementTest::HasProperty(name.clone())))
    } else if let Some(HasNot { name }) = step.get() {
        Some(Formula::test(ElementTest::HasProperty(name.clone())).negated())
    } else if let Some(Where { steps }) = step.get() {
        of_steps(steps, depth)
    } else if let Some(Not { steps }) = step.get() {
        of_steps(steps, depth).map(Formula::negated)
    } else if let Some(And { all }) = step.get() {
        Formula::all(each(all)?)
    } else if let Some(Or { any }) = step.get() {
        Formula::any(each(any)?)
    } else {
        None
    }
}

/// That some steps give something: conditions, perhaps followed by a value and a condition on it.
fn of_steps(steps: &Steps, depth: usize) -> Option<Tests> {
    if !steps.iter().all(|step| is_plain(step)) {
        return None;
    }
    let (value, count) = of_value(steps).map_or((None, 0), |(test, count)| (Some(Formula::test(test)), count));
    let conditions = steps[..steps.len() - count].iter().map(|step| of_step(step, depth));
    let conditions: Vec<Tests> = conditions.collect::<Option<_>>()?;
    Formula::all(conditions.into_iter().chain(value))
}

/// The test that is made of the last steps, and how many these are: `values('age').is(gt(3))`, `values('age')`, `label().is('a')`.
fn of_value(steps: &Steps) -> Option<(ElementTest, usize)> {
    let (last, before) = steps.split_last()?;
    let Some(Is { predicate }) = last.get() else { return Some((ElementTest::HasProperty(only_name(last)?), 1)) };
    let value = before.last()?;
    let test = match value.get() {
        Some(Token { token: T::Label }) => ElementTest::Label(predicate.clone()),
        // A property is not its value.
        _ if value.is::<Values>() => ElementTest::Property(only_name(value)?, predicate.clone()),
        _ => return None,
    };
    Some((test, 2))
}

/// The only name of the properties that a step gives.
fn only_name(step: &PlanStep) -> Option<Name> {
    let values = step.get().map(|Values { names }| names);
    let names = values.or_else(|| step.get().map(|Properties { names }| names))?;
    if let [name] = &names[..] { Some(name.clone()) } else { None }
}
