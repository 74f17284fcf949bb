//! Calls that change the step before them: `by`, `as`, `with`, `from`, `to`, `option`, `times`, `until`, `emit`.

use std::collections::HashSet;

use hoplake_query::{
    error::QueryError,
    plan::{By, Case, End, Given, Name, PathPart, Sorting, Steps, Until},
    tokens::{Order, Pick, Token},
    value::Value,
};

use super::{
    arguments::{Arguments, literal_text, reject_many},
    lowering::{Lowered, Lowering},
};
use crate::script::{Argument, Call};

/// The modulators of a step.
#[derive(Debug, Default)]
pub(super) struct Modulators<'a> {
    pub(super) by: Vec<&'a Call>,
    pub(super) with: Vec<&'a Call>,
    pub(super) from: Option<&'a Call>,
    pub(super) to: Option<&'a Call>,
    pub(super) options: Vec<&'a Call>,
    pub(super) properties: Vec<&'a Call>,
    /// Of a loop, each with whether it stands before `repeat`.
    pub(super) until: Option<(&'a Call, bool)>,
    pub(super) emit: Option<(&'a Call, bool)>,
    pub(super) labels: Vec<&'a Call>,
}

/// Whether a call says when a loop ends, or what it lets out.
pub(super) fn is_of_loop(call: &Call) -> bool {
    matches!(&*call.name, "times" | "until" | "emit")
}

/// Whether a call changes the step before it.
pub(super) fn is_modulator(call: &Call) -> bool {
    match &*call.name {
        "by" | "as" | "with" | "option" | "times" | "until" | "emit" => true,
        "from" | "to" => !matches!(call.arguments.first(), Some(Argument::Token(Token::Direction(_)))),
        _ => false,
    }
}

impl<'a> Modulators<'a> {
    /// Takes one.
    pub(super) fn add(&mut self, call: &'a Call, before: bool) {
        match &*call.name {
            "by" => self.by.push(call),
            "as" => self.labels.push(call),
            "with" => self.with.push(call),
            "option" => self.options.push(call),
            "from" => self.from = Some(call),
            "to" => self.to = Some(call),
            "times" | "until" => self.until = Some((call, before)),
            "emit" => self.emit = Some((call, before)),
            _ => {}
        }
    }

    /// Whether a call may come before `repeat`, after these.
    pub(super) fn may_precede_loop(&self, call: &Call) -> bool {
        let begun = self.until.is_some() || self.emit.is_some();
        is_of_loop(call) || begun && &*call.name == "as"
    }

    /// Whether a loop does not have one of this kind yet.
    pub(super) fn has_room(&self, call: &Call) -> bool {
        match &*call.name {
            "times" | "until" => self.until.is_none(),
            "emit" => self.emit.is_none(),
            _ => true,
        }
    }

    /// Rejects more of them than a step may look at for each traverser.
    pub(super) fn reject_many(&self, name: &str) -> Lowered<()> {
        reject_many(name, self.by.len(), "modulators `by`")?;
        reject_many(name, self.with.len(), "modulators `with`")
    }

    /// Rejects those that a step does not take.
    pub(super) fn reject_others(&self, name: &str, taken: &[&str]) -> Lowered<()> {
        let first = |calls: &[&Call]| calls.first().map(|call| call.name.to_string());
        let loops = [self.until, self.emit].into_iter().flatten().next().map(|(call, _)| call.name.to_string());
        let ends = [self.from, self.to].into_iter().flatten().next().map(|call| call.name.to_string());
        let all = [first(&self.by), first(&self.with), first(&self.options), loops, ends];
        match all.into_iter().flatten().find(|modulator| !taken.contains(&&**modulator)) {
            Some(modulator) => Err(QueryError::invalid(format!("`{modulator}` cannot follow `{name}`"))),
            None => Ok(()),
        }
    }
}

impl Lowering<'_> {
    /// What each `by` computes.
    pub(super) fn bys(&mut self, calls: &[&Call]) -> Lowered<Vec<By>> {
        calls.iter().map(|call| self.sorting(call).map(|(by, _)| by)).collect()
    }

    /// What the only `by` computes.
    pub(super) fn by(&mut self, calls: &[&Call], step: &str) -> Lowered<By> {
        match calls {
            [] => Ok(By::Identity),
            [one] => self.sorting(one).map(|(by, _)| by),
            _ => Err(QueryError::invalid(format!("{step} step can only have one by modulator"))),
        }
    }

    /// What a `by` computes, and the order that it names.
    pub(super) fn sorting(&mut self, call: &Call) -> Lowered<Sorting> {
        let mut arguments = Arguments::new(call);
        let by = match arguments.first() {
            None => By::Identity,
            Some(Argument::Token(Token::Order(_))) => By::Identity,
            Some(argument) => {
                arguments.take();
                self.by_of(&arguments, argument)?
            }
        };
        let order = match arguments.take() {
            None => Order::Asc,
            Some(Argument::Token(Token::Order(order))) => *order,
            Some(_) => return Err(arguments.wrong("takes an order such as `asc` here")),
        };
        arguments.end()?;
        Ok((by, order))
    }

    pub(super) fn by_of(&mut self, arguments: &Arguments<'_>, argument: &Argument) -> Lowered<By> {
        Ok(match argument {
            Argument::Token(Token::T(token)) => By::Token(*token),
            Argument::Token(Token::Column(column)) => By::Column(*column),
            // So it is for `group`, too, which collects all that come then and not one.
            Argument::Traversal(calls) if matches!(&calls[..], [only] if &*only.name == "identity" && only.arguments.is_empty()) => {
                By::Identity
            }
            Argument::Traversal(calls) => By::Steps(self.steps(calls)?),
            argument => match self.names.value(argument)? {
                Value::Text(name) => By::Property(name.into()),
                Value::Token(Token::T(token)) => By::Token(token),
                _ => return Err(arguments.wrong("takes the name of a property, a token or a traversal")),
            },
        })
    }

    /// `from("a").to("b").by("name")` of a path.
    pub(super) fn path_part(&mut self, modulators: &Modulators<'_>) -> Lowered<PathPart> {
        let label = |call: Option<&Call>| -> Lowered<Option<Name>> {
            let Some(call) = call else { return Ok(None) };
            Arguments::new(call).text(&self.names, "a label").map(Some)
        };
        let from = label(modulators.from)?;
        let to = label(modulators.to)?;
        Ok(PathPart { from, to, by: self.bys(&modulators.by)? })
    }

    /// An end of an edge that is added.
    pub(super) fn end(&mut self, call: Option<&Call>) -> Lowered<End> {
        let Some(call) = call else { return Ok(End::Here) };
        let mut arguments = Arguments::new(call);
        let argument = arguments.need("a vertex")?;
        arguments.end()?;
        Ok(match argument {
            Argument::Traversal(calls) => End::Steps(self.steps(calls)?),
            argument => match self.names.value(argument)? {
                Value::Text(label) => {
                    self.needs_labels();
                    End::Labelled(label.into())
                }
                value => End::Vertex(value),
            },
        })
    }

    /// `option(1, out())`
    pub(super) fn case(&mut self, call: &Call) -> Lowered<(Case, Steps)> {
        let mut arguments = Arguments::new(call);
        let first = arguments.need("a traversal")?;
        let Some(second) = arguments.take() else {
            return Ok((Case::Pick(Pick::Any), self.steps_of(&arguments, first)?));
        };
        arguments.end()?;
        let case = match first {
            Argument::Token(Token::Pick(pick)) => Case::Pick(*pick),
            Argument::Predicate(_) => Case::Test(self.names.predicate(first)?),
            Argument::Traversal(calls) => Case::Steps(self.steps(calls)?),
            value => Case::Equal(self.names.value(value)?),
        };
        Ok((case, self.steps_of(&arguments, second)?))
    }

    /// When a loop ends, or what it lets out.
    pub(super) fn until(&mut self, call: &Call) -> Lowered<Until> {
        let mut arguments = Arguments::new(call);
        if &*call.name == "times" {
            let times = arguments.integer(&self.names, "a number")?;
            arguments.end()?;
            return Ok(Until::Times(u64::try_from(times).unwrap_or(0)));
        }
        let until = match arguments.take() {
            None if &*call.name == "emit" => Until::Always,
            None => return Err(arguments.wrong("needs a traversal or a predicate")),
            Some(argument @ Argument::Predicate(_)) => Until::Test(self.names.predicate(argument)?),
            Some(argument) => Until::Steps(self.steps_of(&arguments, argument)?),
        };
        arguments.end()?;
        Ok(until)
    }

    /// The labels of `as`.
    pub(super) fn labels(&mut self, calls: &[&Call]) -> Lowered<Vec<Name>> {
        let mut labels = Vec::new();
        let mut known = HashSet::new();
        for call in calls {
            let mut arguments = Arguments::new(call);
            if arguments.len() == 0 {
                return Err(arguments.wrong("needs a label"));
            }
            let all = arguments.texts(&self.names, "a label")?;
            labels.extend(all.into_iter().filter(|label| known.insert(label.clone())));
        }
        reject_many("as", labels.len(), "labels")?;
        Ok(labels)
    }

    /// Options of `with`, by their names.
    pub(super) fn options(&mut self, calls: &[&Call]) -> Lowered<Vec<(Name, Given)>> {
        let mut options = Vec::new();
        for call in calls {
            let mut arguments = Arguments::new(call);
            let name = arguments.text(&self.names, "the name of an option")?;
            let value = match arguments.take() {
                Some(value) => self.given(value)?,
                None => Given::Value(true.into()),
            };
            arguments.end()?;
            options.push((name, value));
        }
        Ok(options)
    }
}

/// The only label of `as`, if that is what a call is.
pub(super) fn as_label(call: &Call) -> Option<&str> {
    match &call.arguments[..] {
        [label] if &*call.name == "as" => literal_text(label),
        _ => None,
    }
}
