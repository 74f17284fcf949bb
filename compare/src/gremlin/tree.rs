//! A traversal as a tree of calls, so that it can be made smaller and still be a traversal.

use std::fmt::Write;

/// Which server a text is for: they name some elements differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// TinkerPop's.
    Reference,
    /// Hoplake's.
    Hoplake,
}

/// The call of a step with its arguments; `by` and its kind are steps of their own.
#[derive(Debug, Clone, PartialEq)]
pub struct StepCall {
    /// Its name.
    pub name: String,
    /// What it is called with.
    pub arguments: Vec<Argument>,
}

/// An argument of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// As it is written.
    Text(String),
    /// As it is written for the reference and for Hoplake.
    Sided(String, String),
    /// A traversal within.
    Child(Vec<StepCall>),
}

impl From<&str> for Argument {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Argument {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<StepCall>> for Argument {
    fn from(steps: Vec<StepCall>) -> Self {
        Self::Child(steps)
    }
}

/// A step of a name.
pub fn step<A: Into<Argument>>(name: &str, arguments: impl IntoIterator<Item = A>) -> StepCall {
    StepCall { name: name.to_owned(), arguments: arguments.into_iter().map(Into::into).collect() }
}

/// A step without arguments.
pub fn bare(name: &str) -> StepCall {
    StepCall { name: name.to_owned(), arguments: Vec::new() }
}

/// The text of a traversal for a server.
pub fn text(steps: &[StepCall], side: Side) -> String {
    let mut text = String::from("g");
    write(steps, side, &mut text);
    text
}

fn write(steps: &[StepCall], side: Side, text: &mut String) {
    for step in steps {
        let _ = write!(text, ".{}(", step.name);
        for (number, argument) in step.arguments.iter().enumerate() {
            text.push_str(if number > 0 { ", " } else { "" });
            match argument {
                Argument::Text(argument) => text.push_str(argument),
                Argument::Sided(reference, hoplake) => {
                    text.push_str(if side == Side::Reference { reference } else { hoplake });
                }
                Argument::Child(steps) => {
                    text.push_str("__");
                    write(steps, side, text);
                }
            }
        }
        text.push(')');
    }
}

/// Steps without which a later one depends on the order in which a server happens to find things, and those that set up names.
const KEPT: [&str; 7] = ["order", "by", "V", "E", "repeat", "until", "times"];

/// A loop and its modulators. Without the one that ends it, a query ends at its limit of time, so that they go together.
const LOOP: [&str; 4] = ["repeat", "until", "times", "emit"];

fn is_start(step: &StepCall) -> bool {
    ["inject", "addV", "mergeV", "mergeE"].contains(&step.name.as_str())
}

/// Traversals with one step less, one argument less, or a child in the place of its step.
pub fn smaller(steps: &[StepCall]) -> Vec<Vec<StepCall>> {
    let mut all = Vec::new();
    for (place, step) in steps.iter().enumerate().rev() {
        let with = |middle: Vec<StepCall>| [&steps[..place], &middle, &steps[place + 1..]].concat();
        let is_of_order = step.name == "by"
            && steps[..place].iter().rfind(|step| step.name != "by").is_some_and(|step| step.name == "order");
        let is_kept = KEPT.contains(&step.name.as_str()) && (step.name != "by" || is_of_order);
        if !is_kept && steps.len() > 1 && (place > 0 || !is_start(step)) {
            all.push(with(Vec::new()));
        }
        let is_of_loop = |step: &StepCall| LOOP.contains(&step.name.as_str());
        if step.name == "repeat" {
            let begin = steps[..place].iter().rposition(|step| !is_of_loop(step)).map_or(0, |before| before + 1);
            let end =
                steps[place..].iter().position(|step| !is_of_loop(step)).map_or(steps.len(), |after| place + after);
            if end - begin < steps.len() {
                all.push([&steps[..begin], &steps[end..]].concat());
            }
        }
        if step.name == "until" {
            continue;
        }
        for (number, argument) in step.arguments.iter().enumerate() {
            // Without its scope a step is another one.
            let is_scope = matches!(argument, Argument::Text(text) if text == "Scope.local");
            if step.arguments.len() > 1 && step.name != "option" && !is_scope {
                let mut less = step.clone();
                less.arguments.remove(number);
                all.push(with(vec![less]));
            }
            if let Argument::Child(child) = argument {
                if !is_kept && step.name != "by" {
                    all.push(with(child.clone()));
                }
                for child in smaller(child) {
                    let mut less = step.clone();
                    less.arguments[number] = Argument::Child(child);
                    all.push(with(vec![less]));
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traversals_are_written_for_each_side_and_made_smaller() {
        let id = Argument::Sided("'a:1'".into(), "'1'".into());
        let steps = vec![step("V", [id]), step("where", [vec![bare("out"), bare("in")]]), bare("count")];
        assert_eq!(text(&steps, Side::Reference), "g.V('a:1').where(__.out().in()).count()");
        let smaller: Vec<String> = smaller(&steps).iter().map(|steps| text(steps, Side::Hoplake)).collect();
        let expected = [
            "g.V('1').where(__.out().in())",
            "g.V('1').count()",
            "g.V('1').out().in().count()",
            "g.V('1').where(__.out()).count()",
            "g.V('1').where(__.in()).count()",
        ];
        assert_eq!(smaller, expected);
        let until = step("until", [vec![bare("loops")]]);
        let steps =
            vec![bare("V"), bare("emit"), step("repeat", [vec![bare("out"), bare("in")]]), until, bare("count")];
        let smaller: Vec<String> = super::smaller(&steps).iter().map(|steps| text(steps, Side::Hoplake)).collect();
        let expected = [
            "g.V().emit().repeat(__.out().in()).until(__.loops())",
            "g.V().count()",
            "g.V().emit().repeat(__.out()).until(__.loops()).count()",
            "g.V().emit().repeat(__.in()).until(__.loops()).count()",
            "g.V().repeat(__.out().in()).until(__.loops()).count()",
        ];
        assert_eq!(smaller, expected);
    }
}
