//! Differences that have a known reason.

use super::{
    canonical::NEGATIVE_ZERO,
    generate::MALFORMED,
    pair::Answers,
    tree::{Argument, StepCall},
};

/// A reason why answers may differ, and whether it is that of a traversal and its answers.
type Reason = (&'static str, fn(&[StepCall], &Answers) -> bool);

/// All of them. Each is as narrow as it can be said.
const REASONS: &[Reason] = &[
    ("a text of several items has them in the order of a hash table, or of `V` and `E`", |steps, answers| {
        both_answer(answers)
            && has_step(steps, &["conjoin", "asString", "concat", "format"])
            && has_step(steps, &["tree", "group", "groupCount", "fold", "V", "E"])
            && (!has_step(steps, &["order"])
                || follows(steps, "asString", "order")
                || has_step(steps, &["values", "properties"]))
            && characters(&answers.reference) == characters(&answers.hoplake)
    }),
    ("TinkerPop cannot remove `identity()` from a `by` of `math`", |steps, answers| {
        reference_fails(answers, "does not support the replacement of local traversals") && has_step(steps, &["math"])
    }),
    ("the two zeros are equal; TinkerPop's server tells them apart", |steps, answers| {
        let both = [&answers.reference, &answers.hoplake];
        let has_zero = |answer: &&Result<Vec<String>, String>| {
            answer.as_ref().is_ok_and(|forms| forms.iter().any(|form| form.contains(NEGATIVE_ZERO)))
        };
        both_answer(answers)
            && (both.iter().any(has_zero) || has_argument(steps, "-0.0"))
            && has_step(
                steps,
                &["is", "has", "hasValue", "order", "min", "max", "where", "all", "any", "none", "choose"],
            )
    }),
    ("`min` and `max` of an infinity and a big number are one of them; TinkerPop's fail", |steps, answers| {
        reference_fails(answers, "Character I is neither a decimal digit") && has_step(steps, &["min", "max"])
    }),
    (
        "`substring` would cut a character of two UTF-16 units; drivers get half of it from TinkerPop as `?`",
        |steps, answers| hoplake_fails(answers, "cut a character in half") && has_step(steps, &["substring"]),
    ),
    ("TinkerPop splits a character of two UTF-16 units into halves, which drivers get as `?`", |steps, answers| {
        let has_half = |answer: &Result<Vec<String>, String>| {
            answer.as_ref().is_ok_and(|forms| forms.iter().any(|form| form.contains('?')))
        };
        let has_pair = has_argument(steps, "😀") && has_step(steps, &["length"]);
        let is_half = has_half(&answers.reference) || reference_fails(answers, "unreadable") || has_pair;
        is_half && answers.hoplake.is_ok() && !has_half(&answers.hoplake) && has_step(steps, &["split"])
    }),
    ("TinkerPop's `sum` and `mean` may take NaN for 0", |steps, answers| {
        let is_nan = answers.hoplake.as_ref().is_ok_and(|forms| forms.iter().any(|form| form.contains("NaN")));
        let has_nan = has_argument(steps, "NaN") || has_step(steps, &["math"]);
        both_answer(answers) && is_nan && has_nan && has_step(steps, &["sum", "mean"])
    }),
    ("a `sum` of small integers that a barrier has merged is a long in TinkerPop", |steps, answers| {
        let has_long = answers.reference.as_ref().is_ok_and(|forms| forms.iter().any(|form| form.contains("#long")));
        let merges = has_step(steps, &["barrier", "order", "aggregate", "sample", "repeat"]);
        let overflows = merges && has_small_integer(steps) || has_equal_values(steps);
        answers.differ_in_types() && overflows && has_long && has_step(steps, &["sum"])
    }),
    ("TinkerPop does not read the formula of `math` before a traverser arrives", |steps, answers| {
        let is_malformed = MALFORMED.iter().any(|formula| has_argument(steps, &format!("'{formula}'")));
        hoplake_fails(answers, "`math` cannot compute") && is_malformed && has_step(steps, &["math"])
    }),
    ("a date beyond the years -9999 to 9999", |steps, answers| {
        hoplake_fails(answers, "beyond the years") && has_step(steps, &["dateAdd"])
    }),
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
        let takes_some = |step: &StepCall| RANGES.contains(&step.name.as_str()) && is_local(step);
        both_answer(answers) && has_step(steps, &MAPS) && any(steps, &|step, _| takes_some(step))
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
                "java.lang.Byte",
                "java.lang.Short",
                "java.lang.Integer",
                "java.lang.Long",
                "java.lang.Float",
                "java.lang.String",
                "java.lang.Double",
                "java.lang.Boolean",
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
    (
        "the last digits of a fraction are those of another library's functions, which a text has, too",
        |steps, answers| {
            answers.differ_in_digits(DOUBLES_NEAR)
                && has_step(steps, &["math", "mean", "sum"])
                && has_step(steps, &["asString", "conjoin", "concat", "format"])
        },
    ),
    ("TinkerPop lets through by number before it maps, and so may miss what fails", |steps, answers| {
        let wrong_type =
            answers.hoplake.as_ref().is_err_and(|error| error.starts_with("500")) && answers.reference.is_ok();
        wrong_type
            && any(steps, &|step, next| {
                MAPS_OF_ONE.contains(&step.name.as_str())
                    && next.is_some_and(|next| RANGES.contains(&next.name.as_str()))
            })
    }),
    ("`dedup` of equal properties keeps the first of some, and `V` and `E` have no order", |steps, answers| {
        both_answer(answers) && has_step(steps, &["properties"]) && follows(steps, "dedup", "element")
    }),
    ("items of a map's values that are equal in order stay in that of a hash table", |steps, answers| {
        both_answer(answers)
            && has_step(steps, &MAPS)
            && has_step(steps, &["order"])
            && characters(&answers.reference) == characters(&answers.hoplake)
    }),
    (
        "TinkerPop multiplies by the number of equal traversers before it adds: a long overflows, and a float becomes a double",
        |steps, answers| {
            let differs = reference_fails(answers, "long overflow")
                || both_answer(answers) && has_argument(steps, "f") && has_equal_values(steps);
            differs && has_step(steps, &["sum"])
        },
    ),
    ("the first items of a set are those of a hash table", |steps, answers| {
        let takes_some = |step: &StepCall| RANGES.contains(&step.name.as_str()) && is_local(step);
        both_answer(answers)
            && has_step(steps, &["merge", "difference", "disjunct", "intersect", "dedup"])
            && any(steps, &|step, _| takes_some(step))
    }),
    ("a property as text has all of its value; TinkerPop's has 20 characters at most", |steps, answers| {
        let is_short = answers.reference.as_ref().is_ok_and(|forms| forms.iter().any(|it| it.contains("...]")));
        both_answer(answers)
            && is_short
            && has_step(steps, &["properties", "propertyMap"])
            && has_step(steps, &["asString", "conjoin", "concat", "format"])
    }),
    ("the order of a map within a map is that of a hash table", |steps, answers| {
        both_answer(answers)
            && has_step(steps, &MAPS)
            && has_step(steps, &["project", "group"])
            && characters(&answers.reference) == characters(&answers.hoplake)
    }),
    ("TinkerPop's `unfold` of null may fail", |steps, answers| {
        reference_fails(answers, "because \"s\" is null") && has_step(steps, &["unfold"])
    }),
    ("TinkerPop drops properties before it tests others that come later, which may have had them", |steps, answers| {
        both_answer(answers)
            && has_step(steps, &["drop"])
            && has_step(steps, &["has", "hasNot", "where", "filter", "not"])
    }),
    ("`dedup` keeps the path of the first of some, and `V` and `E` have no order", |steps, answers| {
        both_answer(answers)
            && has_step(steps, &["dedup"])
            && has_step(steps, &["path", "simplePath", "cyclicPath", "tree"])
    }),
    (
        "parts of a predicate may be fulfilled by several values of a property; in TinkerPop only in conditions that `V` takes in",
        |steps, answers| {
            both_answer(answers)
                && has_argument(steps, "'tags'")
                && has_argument(steps, "P.")
                && has_step(steps, &["has"])
        },
    ),
    ("TinkerPop takes the greatest long for the integer of a float beyond it", |steps, answers| {
        let is_greatest = answers
            .reference
            .as_ref()
            .is_ok_and(|forms| forms.iter().any(|it| it.contains("9223372036854775807#bigint")));
        both_answer(answers) && is_greatest && has_argument(steps, "GType.BIGINT")
    }),
    ("TinkerPop refuses a `where` in a `where` that has no label of its own", |steps, answers| {
        reference_fails(answers, "must have at least a start or end label") && has_step(steps, &["where"])
    }),
    ("a double of 2^63 does not fit a long; TinkerPop takes the greatest", |steps, answers| {
        let is_greatest =
            answers.reference.as_ref().is_ok_and(|forms| forms.iter().any(|it| it.contains(GREATEST_LONG)));
        is_greatest && hoplake_fails(answers, "due to overflow") && has_step(steps, &["asNumber"])
    }),
    ("a tree is not equal to the map of its entries; in TinkerPop it is", |steps, answers| {
        both_answer(answers)
            && has_step(steps, &["tree"])
            && has_step(steps, &["order", "limit", "range", "tail"])
            && has_step(steps, &["simplePath", "cyclicPath", "dedup", "is", "where"])
    }),
    ("Java before version 19 writes some floats with more digits than they need", |steps, answers| {
        answers.differ_in_digits(FLOATS_NEAR)
            && (has_argument(steps, "GType.FLOAT") || has_argument(steps, "f"))
            && has_step(steps, &["asString", "conjoin", "concat", "format"])
    }),
    ("TinkerPop removes all of a traversal of identities, and `or` of nothing keeps nothing", |steps, answers| {
        let is_identity = |child: &[StepCall]| child.iter().all(|step| step.name == "identity");
        answers.reference.is_ok()
            && any(steps, &|step, _| {
                step.name == "or"
                    && step.arguments.iter().any(|it| matches!(it, Argument::Child(child) if is_identity(child)))
            })
    }),
    ("nothing before `limit(0)` runs", |steps, answers| {
        let is_none = |step: &StepCall| {
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
            let reduces = |step: &StepCall| REDUCING.contains(&step.name.as_str());
            any(steps, &|step, _| {
                ["optional", "local", "flatMap"].contains(&step.name.as_str())
                    && step.arguments.iter().any(|it| matches!(it, Argument::Child(child) if child.iter().any(reduces)))
            })
        },
    ),
    (
        "TinkerPop's barriers make one traverser of equal ones, which `dedup` or `limit` in another traversal takes together",
        |steps, answers| {
            let takes = |step: &StepCall| step.name == "dedup" || RANGES.contains(&step.name.as_str());
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
    (
        "TinkerPop asks a traversal in a condition or a `by` for one result alone, and so may miss what fails",
        |steps, answers| {
            let wrong_type =
                answers.hoplake.as_ref().is_err_and(|error| error.starts_with("500")) && answers.reference.is_ok();
            let goes_on = |step: &StepCall| {
                ["union", "coalesce", "optional", "unfold", "bothV", "values"].contains(&step.name.as_str())
            };
            wrong_type
                && any(steps, &|step, _| {
                    ["where", "filter", "and", "or", "not", "choose", "until", "emit", "by"]
                        .contains(&step.name.as_str())
                        && step
                            .arguments
                            .iter()
                            .any(|it| matches!(it, Argument::Child(child) if child.iter().any(goes_on)))
                })
        },
    ),
];

/// How much two doubles that stand for one number differ at most, of which one has twelve digits.
const DOUBLES_NEAR: f64 = 1e-11;

/// The same of two floats.
const FLOATS_NEAR: f64 = 1e-7;

/// The form of the greatest long.
const GREATEST_LONG: &str = "9223372036854775807#long";

/// Steps that have a result where nothing came.
const REDUCING: [&str; 9] = ["count", "sum", "min", "max", "mean", "fold", "group", "groupCount", "tree"];

/// Steps that have one result for each traverser, or fail.
const MAPS_OF_ONE: [&str; 20] = [
    "math",
    "asNumber",
    "asBool",
    "asDate",
    "dateAdd",
    "dateDiff",
    "length",
    "toUpper",
    "toLower",
    "trim",
    "lTrim",
    "rTrim",
    "reverse",
    "replace",
    "split",
    "substring",
    "concat",
    "conjoin",
    "project",
    "by",
];

/// Steps that let some through by their number.
const RANGES: [&str; 4] = ["limit", "skip", "tail", "range"];

/// Steps that make maps in the order of a hash table.
const MAPS: [&str; 6] = ["tree", "group", "groupCount", "valueMap", "propertyMap", "elementMap"];

/// Why these answers differ, if it is known.
pub fn reason(steps: &[StepCall], answers: &Answers) -> Option<&'static str> {
    REASONS.iter().find(|(_, applies)| applies(steps, answers)).map(|(reason, _)| *reason)
}

fn both_answer(answers: &Answers) -> bool {
    answers.fails() == [false, false]
}

fn reference_fails(answers: &Answers, with: &str) -> bool {
    answers.hoplake.is_ok() && answers.reference.as_ref().is_err_and(|error| error.contains(with))
}

fn hoplake_fails(answers: &Answers, with: &str) -> bool {
    answers.reference.is_ok() && answers.hoplake.as_ref().is_err_and(|error| error.contains(with))
}

/// All characters of some results, sorted.
fn characters(answer: &Result<Vec<String>, String>) -> Option<Vec<char>> {
    let mut all: Vec<char> = answer.as_ref().ok()?.iter().flat_map(|form| form.chars()).collect();
    all.sort_unstable();
    Some(all)
}

fn is_local(step: &StepCall) -> bool {
    step.arguments.iter().any(|it| matches!(it, Argument::Text(text) if text == "Scope.local"))
}

/// Whether a query begins with some values, two of which are equal.
fn has_equal_values(steps: &[StepCall]) -> bool {
    let Some(first) = steps.first().filter(|step| step.name == "inject") else { return false };
    first.arguments.iter().enumerate().any(|(at, one)| first.arguments[..at].contains(one))
}

/// Whether a literal is a byte or a short, as in `[1b, 2s]`.
fn has_small_integer(steps: &[StepCall]) -> bool {
    let is_small = |literal: &str| {
        let literal = literal.trim_matches(|it: char| "[]- ".contains(it));
        let digits = literal.strip_suffix(['b', 's']);
        digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit()))
    };
    let has_small = |argument: &Argument| matches!(argument, Argument::Text(text) if text.split(',').any(is_small));
    any(steps, &|step, _| step.arguments.iter().any(has_small))
}

/// Whether the reference alone fails, to take a value for one of a class. Java leaves the class out after some such failures.
fn casts(answers: &Answers, to: &[&str]) -> bool {
    let class = to.iter().any(|class| reference_fails(answers, &format!("cannot be cast to class {class}")));
    class || reference_fails(answers, "java.lang.ClassCastException")
}

/// Whether a step matches something, with the one after it.
fn any(steps: &[StepCall], test: &impl Fn(&StepCall, Option<&StepCall>) -> bool) -> bool {
    steps.iter().enumerate().any(|(place, step)| {
        let within = |argument: &Argument| matches!(argument, Argument::Child(steps) if any(steps, test));
        test(step, steps.get(place + 1)) || step.arguments.iter().any(within)
    })
}

fn has_step(steps: &[StepCall], names: &[&str]) -> bool {
    any(steps, &|step, _| names.contains(&step.name.as_str()))
}

fn has_argument(steps: &[StepCall], begin: &str) -> bool {
    let begins = |argument: &Argument| matches!(argument, Argument::Text(text) if text.contains(begin));
    any(steps, &|step, _| step.arguments.iter().any(begins))
}

fn follows(steps: &[StepCall], first: &str, second: &str) -> bool {
    any(steps, &|step, next| step.name == first && next.is_some_and(|next| next.name == second))
}

/// Whether a condition follows a step that TinkerPop moves it before: another condition, an order, a `dedup`.
fn moves_conditions(steps: &[StepCall]) -> bool {
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
