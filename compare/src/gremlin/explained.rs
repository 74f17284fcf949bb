//! Differences that have a known reason.

use super::{
    pair::Answers,
    tree::{Argument, Step},
};

/// A reason why answers may differ, and whether it is that of a traversal and its answers.
type Reason = (&'static str, fn(&[Step], &Answers) -> bool);

/// All of them. Each is as narrow as it can be said.
const REASONS: [Reason; 19] = [
    ("predicates on texts are false for what is not a text; TinkerPop's fail", |steps, answers| {
        (casts(answers, &["java.lang.String"]) || reference_fails(answers, "\"this.text\" is null"))
            && has_argument(steps, "TextP.")
    }),
    (
        "the property of an edge has a label, its name, and TinkerPop's server takes it for an element",
        |steps, answers| reference_fails(answers, "TinkerProperty cannot be cast") && has_step(steps, &["label"]),
    ),
    ("TinkerPop makes one range of two in a row, and refuses what comes of some", |steps, answers| {
        reference_fails(answers, "Not a legal range") && has_step(steps, &RANGES)
    }),
    ("the first entries of a map are those of a hash table", |steps, answers| {
        let is_local = |step: &Step| {
            RANGES.contains(&step.name.as_str())
                && step.arguments.iter().any(|it| matches!(it, Argument::Text(text) if text == "Scope.local"))
        };
        both_answer(answers) && has_step(steps, &MAPS) && any(steps, &|step, _| is_local(step))
    }),
    ("the order of a map's entries is that of a hash table", |steps, answers| {
        answers.differ_in_order() && has_step(steps, &MAPS)
    }),
    (
        "a label is within no values that are not texts, and TinkerPop's server fails to compare them",
        |steps, answers| {
            reference_fails(answers, "597: java.") && has_argument(steps, "P.within(") && has_argument(steps, "T.label")
        },
    ),
    (
        "a loop without an end ends in TinkerPop's server when the number of equal traversers overflows to 0",
        |steps, answers| {
            let is_late = answers.hoplake.as_ref().is_err_and(|error| error.starts_with("598"));
            is_late && answers.reference.as_ref().is_ok_and(Vec::is_empty) && has_step(steps, &["repeat"])
        },
    ),
    ("`dedup` by a value keeps the first of some, and `V` and `E` have no order", |steps, answers| {
        both_answer(answers) && follows(steps, "dedup", "by")
    }),
    (
        "TinkerPop's barriers make one traverser of equal ones, whose results come one after the other",
        |steps, answers| answers.differ_in_order() && has_step(steps, &["order", "barrier", "aggregate"]),
    ),
    (
        "`order`, `min` and `max` have an order of everything; TinkerPop's fail for what Java has no order of",
        |steps, answers| {
            let classes = [
                "java.lang.Comparable",
                "java.lang.Integer",
                "java.lang.Long",
                "java.lang.String",
                "java.lang.Double",
                "java.time.OffsetDateTime",
            ];
            casts(answers, &classes) && has_step(steps, &["order", "min", "max"])
        },
    ),
    ("TinkerPop divides by zero in `substring` of an empty text", |steps, answers| {
        reference_fails(answers, "/ by zero") && has_step(steps, &["substring"])
    }),
    (
        "TinkerPop counts before `is(…)` only as far as its strategy takes to be needed, and fails for some types of numbers",
        |steps, _| follows(steps, "count", "is") || follows(steps, "count", "order") && has_step(steps, &["is"]),
    ),
    ("the order of a map as text is that of a hash table", |steps, _| {
        has_step(steps, &["asString"]) && has_step(steps, &MAPS)
    }),
    ("the text of an edge has its id, and that of a new edge is the server's", |steps, answers| {
        let both = [&answers.reference, &answers.hoplake];
        let has_edge = |answer: &&Result<Vec<String>, String>| {
            answer.as_ref().is_ok_and(|forms| forms.iter().any(|form| form.contains("\"e[")))
        };
        has_step(steps, &["asString", "conjoin", "concat", "format"]) && both.iter().all(has_edge)
    }),
    ("nothing before `limit(0)` runs", |steps, answers| {
        let is_none = |step: &Step| {
            let texts: Vec<_> = step
                .arguments
                .iter()
                .filter_map(|it| if let Argument::Text(text) = it { Some(text.as_str()) } else { None })
                .collect();
            match (step.name.as_str(), &texts[..]) {
                ("limit" | "tail", ["0"]) => true,
                ("range", [low, high]) => low == high,
                _ => false,
            }
        };
        answers.hoplake.is_ok() && answers.reference.is_err() && any(steps, &|step, _| is_none(step))
    }),
    (
        "TinkerPop's `optional`, `local` and `flatMap` have a result without a traverser if a step in them reduces",
        |steps, _| {
            let reduces = |step: &Step| REDUCING.contains(&step.name.as_str());
            any(steps, &|step, _| {
                ["optional", "local", "flatMap"].contains(&step.name.as_str())
                    && step.arguments.iter().any(|it| matches!(it, Argument::Child(child) if child.iter().any(reduces)))
            })
        },
    ),
    (
        "TinkerPop's barriers make one traverser of equal ones, which `dedup` or `limit` in another traversal takes together",
        |steps, answers| {
            let takes = |step: &Step| step.name == "dedup" || RANGES.contains(&step.name.as_str());
            both_answer(answers)
                && any(steps, &|step, _| {
                    ["optional", "local", "flatMap", "union", "choose", "coalesce"].contains(&step.name.as_str())
                        && step
                            .arguments
                            .iter()
                            .any(|it| matches!(it, Argument::Child(child) if child.iter().any(takes)))
                })
        },
    ),
    ("TinkerPop tests cheap conditions before others, which then do not fail, or do", |steps, answers| {
        let hoplake =
            answers.hoplake.as_ref().is_err_and(|error| error.starts_with("500")) && answers.reference.is_ok();
        let reference = answers.hoplake.is_ok() && answers.reference.is_err();
        (hoplake || reference) && moves_conditions(steps)
    }),
    ("TinkerPop asks a traversal in a condition for one result alone, and so may miss what fails", |steps, answers| {
        let wrong_type =
            answers.hoplake.as_ref().is_err_and(|error| error.starts_with("500")) && answers.reference.is_ok();
        let goes_on =
            |step: &Step| ["union", "coalesce", "optional", "unfold", "bothV", "values"].contains(&step.name.as_str());
        wrong_type
            && any(steps, &|step, _| {
                ["where", "filter", "and", "or", "not", "choose", "until", "emit"].contains(&step.name.as_str())
                    && step.arguments.iter().any(|it| matches!(it, Argument::Child(child) if child.iter().any(goes_on)))
            })
    }),
];

/// Steps that have a result where nothing came.
const REDUCING: [&str; 9] = ["count", "sum", "min", "max", "mean", "fold", "group", "groupCount", "tree"];

/// Steps that let some through by their number.
const RANGES: [&str; 4] = ["limit", "skip", "tail", "range"];

/// Steps that make maps in the order of a hash table.
const MAPS: [&str; 6] = ["tree", "group", "groupCount", "valueMap", "propertyMap", "elementMap"];

/// Why these answers differ, if it is known.
pub fn reason(steps: &[Step], answers: &Answers) -> Option<&'static str> {
    REASONS.iter().find(|(_, applies)| applies(steps, answers)).map(|(reason, _)| *reason)
}

fn both_answer(answers: &Answers) -> bool {
    answers.fails() == [false, false]
}

fn reference_fails(answers: &Answers, with: &str) -> bool {
    answers.hoplake.is_ok() && answers.reference.as_ref().is_err_and(|error| error.contains(with))
}

/// Whether the reference alone fails, to take a value for one of a class. Java leaves the class out after some such failures.
fn casts(answers: &Answers, to: &[&str]) -> bool {
    let class = to.iter().any(|class| reference_fails(answers, &format!("cannot be cast to class {class}")));
    class || reference_fails(answers, "java.lang.ClassCastException")
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
    let later =
        ["where", "filter", "and", "or", "not", "order", "dedup", "by", "is", "has", "hasNot", "hasLabel", "hasId"];
    let earlier = [
        "is",
        "has",
        "hasLabel",
        "hasNot",
        "hasId",
        "hasKey",
        "hasValue",
        "where",
        "filter",
        "and",
        "or",
        "not",
        "dedup",
        "simplePath",
        "cyclicPath",
    ];
    any(steps, &|step, next| {
        later.contains(&step.name.as_str()) && next.is_some_and(|next| earlier.contains(&next.name.as_str()))
    })
}
