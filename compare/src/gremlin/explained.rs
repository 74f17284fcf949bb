//! Differences that have a known reason.

use super::{
    pair::Answers,
    tree::{Argument, Step},
};

/// A reason why answers may differ, and whether it is that of a traversal and its answers.
type Reason = (&'static str, fn(&[Step], &Answers) -> bool);

/// All of them. Each is as narrow as it can be said.
const REASONS: [Reason; 6] = [
    ("predicates on texts are false for what is not a text; TinkerPop's fail", |steps, answers| {
        reference_fails(answers, "cannot be cast to class java.lang.String") && has_argument(steps, "TextP.")
    }),
    ("`order`, `min` and `max` have an order of everything; TinkerPop's fail for what Java has no order of", |steps, answers| {
        let casts = ["java.lang.Comparable", "java.lang.Integer", "java.lang.Long", "java.lang.String", "java.lang.Double"];
        let fails = casts.iter().any(|class| reference_fails(answers, &format!("cannot be cast to class {class}")));
        fails && has_step(steps, &["order", "min", "max"])
    }),
    ("TinkerPop divides by zero in `substring` of an empty text", |steps, answers| {
        reference_fails(answers, "/ by zero") && has_step(steps, &["substring"])
    }),
    ("TinkerPop's strategy for `count().is(…)` fails for some types of numbers", |steps, answers| {
        let casts = ["cannot be cast to class java.math", "java.lang.ClassCastException", "cannot be cast to class java.lang"];
        casts.iter().any(|cast| reference_fails(answers, cast)) && follows(steps, "count", "is")
    }),
    ("TinkerPop's `optional`, `local` and `flatMap` have a result without a traverser if a step in them reduces", |steps, _| {
        let reduces = |step: &Step| REDUCING.contains(&step.name.as_str());
        any(steps, &|step, _| {
            ["optional", "local", "flatMap"].contains(&step.name.as_str())
                && step.arguments.iter().any(|it| matches!(it, Argument::Child(child) if child.iter().any(reduces)))
        })
    }),
    ("TinkerPop tests cheap conditions before those that fail", |steps, answers| {
        let wrong_type = answers.hoplake.as_ref().is_err_and(|error| error.starts_with("500"));
        wrong_type && answers.reference.is_ok() && moves_conditions(steps)
    }),
];

/// Steps that have a result where nothing came.
const REDUCING: [&str; 9] = ["count", "sum", "min", "max", "mean", "fold", "group", "groupCount", "tree"];

/// Why these answers differ, if it is known.
pub fn reason(steps: &[Step], answers: &Answers) -> Option<&'static str> {
    REASONS.iter().find(|(_, applies)| applies(steps, answers)).map(|(reason, _)| *reason)
}

fn reference_fails(answers: &Answers, with: &str) -> bool {
    answers.hoplake.is_ok() && answers.reference.as_ref().is_err_and(|error| error.contains(with))
}

/// Whether a step fulfils something, with the one after it.
fn any(steps: &[Step], test: &impl Fn(&Step, Option<&Step>) -> bool) -> bool {
    steps.iter().enumerate().any(|(place, step)| {
        let within = |argument: &Argument| matches!(argument, Argument::Child(steps) if any(steps, test));
        test(step, steps.get(place + 1)) || step.arguments.iter().any(within)
    })
}

fn has_step(steps: &[Step], names: &[&str]) -> bool {
    any(steps, &|step, _| names.contains(&step.name.as_str()))
}

fn has_argument(steps: &[Step], begin: &str) -> bool {
    let begins = |argument: &Argument| matches!(argument, Argument::Text(text) if text.contains(begin));
    any(steps, &|step, _| step.arguments.iter().any(begins))
}

fn follows(steps: &[Step], first: &str, second: &str) -> bool {
    any(steps, &|step, next| step.name == first && next.is_some_and(|next| next.name == second))
}

/// Whether a condition follows a step that TinkerPop moves it before: another condition, an order, a `dedup`.
fn moves_conditions(steps: &[Step]) -> bool {
    let later = ["where", "filter", "and", "or", "not", "order", "dedup", "by", "is", "has", "hasNot"];
    let earlier = ["is", "has", "hasLabel", "hasNot", "hasId", "where", "filter", "and", "or", "not", "dedup", "simplePath", "cyclicPath"];
    any(steps, &|step, next| {
        later.contains(&step.name.as_str()) && next.is_some_and(|next| earlier.contains(&next.name.as_str()))
    })
}
