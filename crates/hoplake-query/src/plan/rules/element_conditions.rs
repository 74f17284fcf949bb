//! Steps that are conditions on elements: `has`, `hasLabel`, `hasId`, `hasNot`, and `and`, `or`, `not` and `where` of them.

use std::{collections::HashSet, sync::Arc};

use hoplake_engine::Formula;

use super::place::is_plain;
use crate::{
    operators::{
        conditions::{And, Has, HasNot, HasProperty, Is, Not, Or, Where},
        maps::{Properties, Token, Values},
    },
    plan::{By, ElementCondition, ElementTest, Name, PlanStep, Predicate, Steps, Test, work::Work},
    tokens::T,
    value::Value,
};

/// Conditions of a hop or a scan, at most: the engine has a verdict of each for every row.
pub(super) const TAKEN_MAX: usize = 64;

/// Conditions within conditions, at most. Each level is looked at once for each level around it.
const DEPTH_MAX: usize = 16;

/// Tests of a condition, at most: a condition of more stays a step.
const TESTS_MAX: usize = 200;

/// Steps that are looked at for the conditions of one source or hop, at most: a strategy may put the same condition of 40,000 steps behind
/// each of 40,000 sources.
const LOOKED_MAX: usize = 1_000;

type Tests = Formula<ElementTest>;

/// A condition that leads a list of steps.
#[derive(Debug)]
pub(super) struct LeadingCondition {
    pub(super) condition: ElementCondition,
    /// Which of the steps it is a part of.
    pub(super) step: usize,
}

/// The conditions that some steps begin with, in their order. Parts of an `and` are conditions of their own.
#[derive(Debug)]
pub(super) struct Leading(Vec<LeadingCondition>);

/// A look-up of ids, in place of steps that are conditions.
#[derive(Debug)]
pub(super) struct LookUp {
    pub(super) ids: Vec<Value>,
    /// The other conditions of these steps.
    pub(super) others: Vec<ElementCondition>,
    /// How many steps these are.
    pub(super) count: usize,
}

impl Leading {
    pub(super) fn of(steps: &[Arc<PlanStep>], work: &mut Work) -> Self {
        let mut left = LOOKED_MAX;
        let mut found = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            let Some(parts) = parts(step, DEPTH_MAX, &mut left) else { break };
            if found.len() + parts.len() > TAKEN_MAX {
                break;
            }
            found.extend(parts.into_iter().map(|condition| LeadingCondition { condition, step: number }));
        }
        let tests: usize = found.iter().map(|found| found.condition.formula.tests().len()).sum();
        Self(if work.finds(LOOKED_MAX - left, tests) { found } else { Vec::new() })
    }

    /// Those that the engine may test: the ones before an id.
    pub(super) fn conditions(mut self) -> Vec<LeadingCondition> {
        if let Some(at) = self.0.iter().position(|found| found.condition.has_id()) {
            let step = self.0[at].step;
            self.0.retain(|found| found.step < step);
        }
        self.0
    }

    /// The first ids that are asked for, if any are, and the conditions around them: conditions may be tested in any order.
    pub(super) fn look_up(&self, work: &mut Work) -> Option<LookUp> {
        let (at, ids) = self.0.iter().enumerate().find_map(|(at, found)| Some((at, ids(&found.condition)?)))?;
        if !work.repeats(ids) {
            return None;
        }
        let count = self.0[at].step + 1;
        let others = self.0.iter().enumerate().filter(|(other, found)| *other != at && found.step < count);
        let others = others.map(|(_, found)| found.condition.clone()).collect();
        Some(LookUp { ids: ids.to_vec(), others, count })
    }
}

/// The ids that a condition asks for, if it does nothing else. In the reference, a list that an id shall equal is its items for a source.
fn ids(condition: &ElementCondition) -> Option<&[Value]> {
    let ElementTest::Id(predicate) = condition.formula.as_test()? else { return None };
    match &**predicate {
        Predicate::Test(Test::Eq, ids) => match &ids[..] {
            [Value::List(items) | Value::Set(items)] => Some(items),
            _ => Some(ids),
        },
        Predicate::Test(Test::Within, ids) => Some(ids),
        _ => None,
    }
}

/// How many steps some of the leading conditions are, the last of which may be there in part.
pub(super) fn step_count(found: &[LeadingCondition]) -> usize {
    found.last().map_or(0, |last| last.step + 1)
}

/// The labels of some steps, each once. They may stand at the first of these if the others are conditions on elements: a row that fails
/// one of them goes, and its labels with it.
pub(super) fn labels_of(steps: &[Arc<PlanStep>]) -> Vec<Name> {
    let mut seen = HashSet::new();
    steps.iter().flat_map(|step| &step.labels).filter(|label| seen.insert(*label)).cloned().collect()
}

/// The conditions that a step is made of; `None` if it is another step, or if no more steps may be looked at.
fn parts(step: &Arc<PlanStep>, depth: usize, left: &mut usize) -> Option<Vec<ElementCondition>> {
    let depth = depth.checked_sub(1)?;
    let joined = if let Some(And { all }) = step.get() {
        &all[..]
    } else if let Some(Where { steps }) = step.get() {
        std::slice::from_ref(steps)
    } else {
        &[]
    };
    if let Some(all) = parts_of_all(joined, depth, left) {
        return Some(all);
    }
    let formula = of_step(step, depth, left).filter(|formula| formula.tests().len() <= TESTS_MAX)?;
    Some(vec![ElementCondition { formula, step: without_labels(step) }])
}

/// The conditions that some traversals are made of, all of which have to give something.
fn parts_of_all(joined: &[Steps], depth: usize, left: &mut usize) -> Option<Vec<ElementCondition>> {
    let mut all = Vec::new();
    for steps in joined {
        if steps.is_empty() {
            return None;
        }
        for step in steps.iter() {
            all.extend(if is_plain(step) { parts(step, depth, left)? } else { return None });
            if all.len() > TAKEN_MAX {
                return None;
            }
        }
    }
    (!all.is_empty()).then_some(all)
}

/// A step that gives no labels.
fn without_labels(step: &Arc<PlanStep>) -> Arc<PlanStep> {
    if is_plain(step) { step.clone() } else { Arc::new(PlanStep::of(step.operator.clone(), Vec::new())) }
}

fn of_step(step: &PlanStep, depth: usize, left: &mut usize) -> Option<Tests> {
    let depth = depth.checked_sub(1)?;
    *left = left.checked_sub(1)?;
    let mut each = |all: &[Steps]| match all.len() {
        ..=TESTS_MAX => all.iter().map(|steps| of_steps(steps, depth, left)).collect::<Option<Vec<_>>>(),
        _ => None,
    };
    if let Some(Has { by, predicate }) = step.get() {
        return Some(Formula::test(match by {
            By::Property(name) => ElementTest::Property(name.clone(), predicate.clone()),
            By::Token(T::Label) => ElementTest::Label(predicate.clone()),
            By::Token(T::Id) => ElementTest::Id(predicate.clone()),
            _ => return None,
        }));
    }
    if let Some(HasProperty { name }) = step.get() {
        Some(Formula::test(ElementTest::HasProperty(name.clone())))
    } else if let Some(HasNot { name }) = step.get() {
        Some(Formula::test(ElementTest::HasProperty(name.clone())).negated())
    } else if let Some(Where { steps }) = step.get() {
        of_steps(steps, depth, left)
    } else if let Some(Not { steps }) = step.get() {
        of_steps(steps, depth, left).map(Formula::negated)
    } else if let Some(And { all }) = step.get() {
        Formula::all(each(all)?)
    } else if let Some(Or { any }) = step.get() {
        Formula::any(each(any)?)
    } else {
        None
    }
}

/// That some steps give something: conditions, perhaps followed by a value and a condition on it.
fn of_steps(steps: &Steps, depth: usize, left: &mut usize) -> Option<Tests> {
    let (value, count) = of_value(steps).map_or((None, 0), |(test, count)| (Some(Formula::test(test)), count));
    let (conditions, of_value) = steps.split_at(steps.len() - count);
    if conditions.len() > TESTS_MAX || !of_value.iter().all(|step| is_plain(step)) {
        return None;
    }
    let conditions = conditions.iter().map(|step| if is_plain(step) { of_step(step, depth, left) } else { None });
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
