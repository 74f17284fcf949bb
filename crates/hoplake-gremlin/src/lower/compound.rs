//! Calls whose arguments have forms of their own: conditions, loops, choices, maps, text.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use hoplake_query::{
    error::QueryError,
    literal::{Literal, Number},
    operators::{
        branches, conditions, maps,
        scalars::{self, TextStep},
        sources, traverser, within,
    },
    plan::{By, Case, Choice, Given, PlanStep, Steps, TokensWanted, Until},
    tokens::{Pick, Pop, T, Token},
    value::Value,
};

use super::{
    arguments::{Arguments, literal_text},
    lowering::{Lowered, Lowering, Op, only, op},
    modulators::Modulators,
};
use crate::script::{Argument, Call};

impl Lowering<'_> {
    pub(super) fn has(&mut self, arguments: &mut Arguments<'_>) -> Lowered<Op> {
        let names = self.names;
        let first = arguments.need("the name of a property")?;
        // No property has no name.
        if matches!(first, Argument::Literal(Literal::Null)) && arguments.len() < 2 {
            arguments.rest();
            return Ok(op(conditions::Discard));
        }
        if arguments.len() == 2 {
            // has(label, key, value)
            let label = names.predicate(first)?;
            let key = arguments.need("the name of a property")?;
            let value = arguments.need("a value")?;
            let key = self.by_of(arguments, key)?;
            let has = conditions::Has { by: key, predicate: names.predicate(value)?.into() };
            let steps = [conditions::Has { by: By::Token(T::Label), predicate: label.into() }, has];
            let steps: Vec<_> = steps.into_iter().map(|kind| Arc::new(PlanStep::plain(kind))).collect();
            return Ok(op(conditions::Where { steps: steps.into() }));
        }
        let key = self.by_of(arguments, first)?;
        Ok(match (key, arguments.take()) {
            (By::Property(name), None) => op(conditions::HasProperty { name }),
            (By::Property(name), Some(argument @ Argument::Traversal(_))) => {
                op(conditions::HasSteps { name, steps: self.steps_of(arguments, argument)? })
            }
            (By::Token(token), Some(argument @ Argument::Traversal(_))) => {
                let steps = self.steps_of(arguments, argument)?;
                let token = Arc::new(PlanStep::plain(maps::Token { token }));
                op(conditions::Where { steps: std::iter::once(token).chain(steps.iter().cloned()).collect() })
            }
            (key @ (By::Property(_) | By::Token(_)), Some(value)) => {
                op(conditions::Has { by: key, predicate: names.predicate(value)?.into() })
            }
            _ => return Err(arguments.wrong("takes the name of a property, or a token such as T.label, and a value")),
        })
    }

    /// `where(…)`: of a predicate on labels, or of a traversal whose ends may be labels.
    pub(super) fn where_(&mut self, arguments: &mut Arguments<'_>, modulators: &Modulators<'_>) -> Lowered<Op> {
        let names = self.names;
        let first = arguments.need("a traversal or a predicate")?;
        match first {
            Argument::Traversal(_) if !modulators.by.is_empty() => {
                Err(arguments.wrong("takes no `by` if it has a traversal"))
            }
            Argument::Traversal(calls) => Ok(op(conditions::Where { steps: self.where_steps(calls)? })),
            Argument::Predicate(_) => {
                self.needs_labels();
                Ok(op(conditions::WherePredicate {
                    start: None,
                    predicate: names.predicate(first)?,
                    by: self.bys(&modulators.by)?,
                }))
            }
            label => {
                self.needs_labels();
                let Value::Text(label) = names.value(label)? else {
                    return Err(arguments.wrong("takes a traversal, a predicate, or a label and a predicate"));
                };
                let predicate = names.predicate(arguments.need("a predicate")?)?;
                Ok(op(conditions::WherePredicate {
                    start: Some(label.into()),
                    predicate,
                    by: self.bys(&modulators.by)?,
                }))
            }
        }
    }

    /// The traversal of a `where`, whose first and last label are no new ones: they name what was met before. Several at the beginning are
    /// new ones, in one `as` or in several, as in TinkerPop; several at the end are an error.
    pub(super) fn where_steps(&mut self, calls: &[Call]) -> Lowered<Steps> {
        if let [call] = calls
            && matches!(&*call.name, "and" | "or" | "not")
            && !call.arguments.is_empty()
        {
            let parts = call.arguments.iter().map(|argument| match argument {
                Argument::Traversal(calls) => self.where_steps(calls),
                _ => Err(QueryError::invalid(format!("`{}` takes traversals", call.name))),
            });
            let mut parts = parts.collect::<Lowered<Vec<_>>>()?;
            return match (&*call.name, parts.len()) {
                ("and", _) => Ok(only(conditions::And { all: parts })),
                ("or", _) => Ok(only(conditions::Or { any: parts })),
                (_, 1) => Ok(only(conditions::Not { steps: parts.swap_remove(0) })),
                _ => Err(QueryError::invalid("`not` takes one traversal")),
            };
        }
        let is_label = |call: &&Call| &*call.name == "as";
        let leading = calls.iter().take_while(is_label).count();
        let trailing = calls[leading..].iter().rev().take_while(is_label).count();
        let starts = labels(&calls[..leading]);
        let ends = labels(&calls[calls.len() - trailing..]);
        if ends.len() > 1 || leading == calls.len() && starts.len() > 1 {
            return Err(QueryError::invalid("the traversal of a `where` may end with one label"));
        }
        let start = starts.first().filter(|_| starts.len() == 1).copied();
        let end = ends.first().copied();
        let begin = if start.is_some() { leading } else { 0 };
        let within = &calls[begin..calls.len() - if end.is_some() { trailing } else { 0 }];
        let mut steps = Vec::new();
        if let Some(label) = start {
            self.needs_labels();
            steps.push(Arc::new(PlanStep::plain(traverser::StartAt { name: label.into() })));
        }
        steps.extend(self.steps(within)?.iter().cloned());
        if let Some(label) = end {
            self.needs_labels();
            steps.push(Arc::new(PlanStep::plain(traverser::EndAt { name: label.into() })));
        }
        Ok(steps.into())
    }

    pub(super) fn value_map(&mut self, arguments: &mut Arguments<'_>, modulators: &Modulators<'_>) -> Lowered<Op> {
        let names = self.names;
        let mut tokens = TokensWanted::default();
        if let Some(Argument::Literal(Literal::Boolean(all))) = arguments.first() {
            arguments.take();
            tokens = TokensWanted { id: *all, label: *all, keys: *all, values: *all };
        }
        let keys = arguments.properties(&names)?;
        if modulators.by.len() > 1 {
            return Err(QueryError::invalid("ValueMap step can only have one by modulator"));
        }
        for (option, value) in self.options(&modulators.with)? {
            if &*option != "~tinkerpop.valueMap.tokens" {
                return Err(QueryError::unsupported(format!("`valueMap` has no option {option:?}")));
            }
            let flags = match value {
                Given::Value(Value::Boolean(true)) => 15,
                Given::Value(Value::Number(Number::Int(flags))) => flags,
                _ => return Err(arguments.wrong("takes WithOptions.ids, labels, keys, values, all or none")),
            };
            let has = |flag: i32| flags & flag != 0;
            tokens = TokensWanted { id: has(1), label: has(2), keys: has(4), values: has(8) };
        }
        Ok(op(maps::ValueMap { names: keys, tokens, by: self.bys(&modulators.by)? }))
    }

    pub(super) fn index(&mut self, modulators: &Modulators<'_>) -> Lowered<Op> {
        let mut map = false;
        for (option, value) in self.options(&modulators.with)? {
            match (&*option, value) {
                ("~tinkerpop.index.indexer", Given::Value(Value::Number(Number::Int(kind)))) => map = kind == 1,
                _ => return Err(QueryError::unsupported(format!("`index` has no option {option:?}"))),
            }
        }
        Ok(op(within::Index { as_map: map }))
    }

    pub(super) fn select(&mut self, arguments: &mut Arguments<'_>, modulators: &Modulators<'_>) -> Lowered<Op> {
        let names = self.names;
        if let Some(Argument::Token(Token::Column(column))) = arguments.first() {
            arguments.take();
            if !modulators.by.is_empty() {
                return Err(arguments.wrong("takes no `by` if it has `keys` or `values`"));
            }
            return Ok(op(maps::SelectColumn { column: *column }));
        }
        self.needs_labels();
        let pop = match arguments.first() {
            Some(Argument::Token(Token::Pop(pop))) => {
                arguments.take();
                *pop
            }
            _ => Pop::Last,
        };
        if let Some(argument @ Argument::Traversal(_)) = arguments.first() {
            arguments.take();
            let steps = self.steps_of(arguments, argument)?;
            return Ok(op(maps::SelectSteps { pop, steps, by: self.last_by(&modulators.by)? }));
        }
        let several = arguments.len() > 1;
        let mut known = HashSet::new();
        let mut labels = arguments.texts(&names, "a label")?;
        labels.retain(|label| known.insert(label.clone()));
        if labels.is_empty() {
            return Err(arguments.wrong("needs a label"));
        }
        let by = if several { self.bys(&modulators.by)? } else { self.last_by(&modulators.by)? };
        Ok(op(maps::Select { pop, names: labels, by, as_map: several }))
    }

    /// Of the only label a later `by` replaces one before it.
    fn last_by(&mut self, calls: &[&Call]) -> Lowered<Vec<By>> {
        let mut by = self.bys(calls)?;
        by.drain(..by.len().saturating_sub(1));
        Ok(by)
    }

    pub(super) fn repeat(&mut self, arguments: &mut Arguments<'_>, modulators: &Modulators<'_>) -> Lowered<Op> {
        let name = match arguments.len() {
            2 => Some(arguments.text(&self.names, "the name of the loop")?),
            _ => None,
        };
        let argument = arguments.need("a traversal")?;
        let body = self.steps_of(arguments, argument)?;
        if body.iter().any(|step| step.is::<sources::Inject>()) {
            return Err(QueryError::invalid("The parent of inject()-step can not be repeat()-step"));
        }
        let mut condition = |call: Option<(&Call, bool)>| -> Lowered<Option<(Until, bool)>> {
            let Some((call, before)) = call else { return Ok(None) };
            Ok(Some((self.until(call)?, before)))
        };
        let until = condition(modulators.until)?;
        let emit = condition(modulators.emit)?;
        Ok(op(branches::Repeat { body, name, until, emit }))
    }

    pub(super) fn choose(&mut self, arguments: &mut Arguments<'_>, modulators: &Modulators<'_>) -> Lowered<Op> {
        let first = arguments.need("a traversal or a predicate")?;
        if arguments.len() == 0 {
            let choice = match first {
                Argument::Predicate(_) => Choice::Test(self.names.predicate(first)?),
                argument => Choice::By(self.by_of(arguments, argument)?),
            };
            let cases = modulators.options.iter().map(|call| self.case(call)).collect::<Lowered<Vec<_>>>()?;
            if cases.iter().any(|(case, _)| matches!(case, Case::Steps(_))) {
                return Err(QueryError::invalid(
                    "Traversal is not allowed as a Pick token for `choose`: write a value or a predicate",
                ));
            }
            if cases.iter().any(|(case, _)| matches!(case, Case::Pick(Pick::Any))) {
                return Err(QueryError::invalid("`choose` takes one option for a traverser: name what each is for"));
            }
            return Ok(op(branches::Choose { choice, cases, all: false }));
        }
        let choice = match first {
            Argument::Predicate(_) => Choice::Test(self.names.predicate(first)?),
            argument => Choice::Productive(self.steps_of(arguments, argument)?),
        };
        let mut cases = Vec::new();
        for (case, argument) in [Case::Equal(true.into()), Case::Pick(Pick::None)].into_iter().zip(arguments.rest()) {
            cases.push((case, self.steps_of(arguments, argument)?));
        }
        Ok(op(branches::Choose { choice, cases, all: false }))
    }

    pub(super) fn text_step(
        &mut self,
        call: &Call,
        arguments: &mut Arguments<'_>,
        modulators: &Modulators<'_>,
    ) -> Lowered<Op> {
        let names = self.names;
        let scope = arguments.scope();
        if !modulators.by.is_empty() && &*call.name != "format" {
            return Err(arguments.wrong("takes no `by`"));
        }
        let step = match &*call.name {
            "concat" => {
                let given = arguments.rest().iter().map(|argument| self.given(argument)).collect::<Lowered<_>>()?;
                return Ok(op(scalars::Concat { given }));
            }
            "format" => {
                self.needs_labels();
                let format = arguments.text(&names, "a format")?;
                return Ok(op(scalars::Format { format, by: self.bys(&modulators.by)? }));
            }
            "split" => TextStep::Split(arguments.text_or_null(&names, "a separator")?),
            "trim" => TextStep::Trim,
            "lTrim" => TextStep::LTrim,
            "rTrim" => TextStep::RTrim,
            "toUpper" => TextStep::ToUpper,
            "toLower" => TextStep::ToLower,
            "reverse" => TextStep::Reverse,
            "length" => TextStep::Length,
            "replace" => {
                let old = arguments.text_or_null(&names, "a text to replace")?;
                TextStep::Replace(old, arguments.text_or_null(&names, "a text instead")?)
            }
            _ => {
                let start = arguments.integer(&names, "a start")?;
                let end = if arguments.len() == 0 { None } else { Some(arguments.integer(&names, "an end")?) };
                TextStep::Substring(start, end)
            }
        };
        Ok(op(scalars::Text { scope, step }))
    }

    pub(super) fn list(&mut self, arguments: &mut Arguments<'_>) -> Lowered<Given> {
        let argument = arguments.need("a list or a traversal")?;
        self.given(argument)
    }
}

/// The different labels of some calls of `as`.
fn labels(calls: &[Call]) -> BTreeSet<&str> {
    calls.iter().flat_map(|call| &call.arguments).filter_map(literal_text).collect()
}
