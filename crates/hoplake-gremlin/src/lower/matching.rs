//! `match`: patterns between variables, as steps in an order in which each begins at a variable that is known.
//!
//! ```text
//! match(as("a").out("knows").as("b"), as("b").out("created").as("c"))
//!     ──▶ as("a") ── from a: out("knows"), as("b") ── from b: out("created"), as("c") ── select("a", "b", "c")
//! ```

use std::{collections::HashSet, sync::Arc};

use hoplake_query::{
    error::QueryError,
    operators::{Operator, branches, conditions, maps, traverser},
    plan::{Name, PlanStep, Steps},
    tokens::Pop,
};

use super::{
    arguments::reject_many,
    lowering::{Lowered, Lowering, Op, only, op},
    modulators::as_label,
};
use crate::script::{Argument, Call};

/// Patterns of a `match`, at most: those that are left are looked through for each that comes next.
const PATTERNS_MAX: usize = 256;

/// A pattern: its steps, and the variables at its ends.
struct Pattern<'a> {
    start: Option<&'a str>,
    within: &'a [Call],
    end: Option<&'a str>,
    /// Variables that have to be known, if it is a condition on them.
    needs: Vec<&'a str>,
}

impl<'a> Pattern<'a> {
    fn of(calls: &'a [Call]) -> Self {
        let start = calls.first().and_then(as_label);
        if start.is_none() {
            let mut needs = Vec::new();
            calls.iter().for_each(|call| variables(call, &mut needs));
            return Self { start: None, within: calls, end: None, needs };
        }
        let rest = &calls[1..];
        let end = rest.last().filter(|_| !rest.is_empty()).and_then(as_label);
        let within = if end.is_some() { &rest[..rest.len() - 1] } else { rest };
        Self { start, within, end, needs: Vec::new() }
    }
}

/// The variables that a condition is about.
fn variables<'a>(call: &'a Call, found: &mut Vec<&'a str>) {
    for (number, argument) in call.arguments.iter().enumerate() {
        match argument {
            Argument::Traversal(calls) => {
                found.extend(calls.first().and_then(as_label));
                found.extend(calls.last().and_then(as_label));
                calls.iter().filter(|call| matches!(&*call.name, "and" | "or" | "not" | "where")).for_each(|call| {
                    variables(call, found);
                });
            }
            Argument::Predicate(predicate) if &*call.name == "where" => labels(predicate, found),
            argument if number == 0 && &*call.name == "where" => {
                found.extend(super::arguments::literal_text(argument));
            }
            _ => {}
        }
    }
}

fn labels<'a>(predicate: &'a crate::script::Predicate, found: &mut Vec<&'a str>) {
    use crate::script::Predicate;
    match predicate {
        Predicate::And(all) | Predicate::Or(all) => all.iter().for_each(|predicate| labels(predicate, found)),
        Predicate::Not(predicate) => labels(predicate, found),
        Predicate::Test(_, values) => found.extend(values.iter().filter_map(super::arguments::literal_text)),
    }
}

/// All patterns, those within `and` one by one.
fn patterns<'a>(arguments: &'a [Argument], all: &mut Vec<Pattern<'a>>) -> Lowered<()> {
    for argument in arguments {
        let Argument::Traversal(calls) = argument else {
            return Err(QueryError::invalid("`match` takes traversals"));
        };
        match &calls[..] {
            [call] if &*call.name == "and" && !call.arguments.is_empty() => patterns(&call.arguments, all)?,
            calls => all.push(Pattern::of(calls)),
        }
    }
    Ok(())
}

fn step(operator: impl Operator, labels: Vec<Name>) -> Arc<PlanStep> {
    Arc::new(PlanStep::new(operator, labels))
}

impl Lowering<'_> {
    /// The steps of a `match`.
    pub(super) fn matching(&mut self, arguments: &[Argument]) -> Lowered<Op> {
        self.needs_labels();
        let mut left = Vec::new();
        patterns(arguments, &mut left)?;
        if left.len() > PATTERNS_MAX {
            return Err(QueryError::invalid(format!(
                "`match` has {} patterns, and {PATTERNS_MAX} is the most: split them among several `match`, one after the other",
                left.len()
            )));
        }
        let mut known: HashSet<&str> = HashSet::new();
        let mut all: Vec<&str> = Vec::new();
        let mut seen: HashSet<&str> = HashSet::new();
        for name in left.iter().flat_map(|pattern| pattern.start.into_iter().chain(pattern.end)) {
            if seen.insert(name) {
                all.push(name);
            }
            if self.has_label(name) {
                known.insert(name);
            }
        }
        // Of variables in conditions, those that were met before count.
        for name in left.iter().flat_map(|pattern| pattern.needs.iter().copied()) {
            if self.has_label(name) && seen.insert(name) {
                all.push(name);
                known.insert(name);
            }
        }
        reject_many("match", all.len(), "variables")?;
        for pattern in &mut left {
            // What is only a condition on a variable binds none. What is known already is not waited for.
            pattern.needs.retain(|name| seen.contains(name) && !known.contains(name));
            pattern.needs.sort_unstable();
            pattern.needs.dedup();
        }
        let mut steps: Vec<Arc<PlanStep>> = Vec::new();
        // Where no pattern can begin yet, it begins with a variable to which none leads.
        let begins = left.iter().any(|pattern| pattern.start.is_some_and(|start| known.contains(start)));
        let mut starts = left.iter().filter_map(|pattern| pattern.start);
        let is_end = |name: &&str| left.iter().any(|pattern| pattern.end == Some(*name));
        match starts.clone().find(|name| !is_end(name)).or_else(|| starts.next()) {
            Some(first) if !begins => {
                known.insert(first);
                steps.push(step(traverser::Identity, vec![first.into()]));
            }
            None if known.is_empty() => {
                return Err(QueryError::invalid("`match` needs a pattern that begins with `as`"));
            }
            _ => {}
        }
        while !left.is_empty() {
            let is_ready = |pattern: &Pattern<'_>| match pattern.start {
                Some(start) => known.contains(start),
                None => pattern.needs.iter().all(|name| known.contains(name)),
            };
            // Those that only test come first: fewer are left for the others.
            let tests = |pattern: &Pattern<'_>| pattern.end.is_none_or(|end| known.contains(end));
            let next = left.iter().position(|pattern| is_ready(pattern) && tests(pattern));
            let Some(next) = next.or_else(|| left.iter().position(is_ready)) else {
                return Err(QueryError::invalid(
                    "the patterns of `match` are not connected: each begins at a variable to which another one leads",
                ));
            };
            let pattern = left.remove(next);
            let Some(start) = pattern.start else {
                steps.extend(self.condition(pattern.within)?.iter().cloned());
                continue;
            };
            let mut within = vec![step(traverser::StartAt { name: start.into() }, Vec::new())];
            within.extend(self.steps(pattern.within)?.iter().cloned());
            match pattern.end {
                Some(end) if !known.contains(end) => {
                    known.insert(end);
                    // Within a traversal of its own: if it reduces, it does for each traverser.
                    steps.push(step(branches::FlatMap { steps: within.into() }, vec![end.into()]));
                }
                end => {
                    let mut condition = vec![step(branches::FlatMap { steps: within.into() }, Vec::new())];
                    condition.extend(end.map(|end| step(traverser::EndAt { name: end.into() }, Vec::new())));
                    steps.push(step(conditions::Where { steps: condition.into() }, Vec::new()));
                }
            }
        }
        let names = all.into_iter().map(Name::from).collect();
        steps.push(step(maps::Select { pop: Pop::Last, names, by: Vec::new(), as_map: true }, Vec::new()));
        Ok(op(branches::Local { steps: steps.into() }))
    }

    /// A condition on variables: `where`, `not` and `or`, whose traversals begin and end at variables.
    fn condition(&mut self, calls: &[Call]) -> Lowered<Steps> {
        match calls {
            [call] if matches!(&*call.name, "not" | "or") => {
                Ok(only(conditions::Where { steps: self.where_steps(calls)? }))
            }
            calls => self.steps(calls),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PATTERNS_MAX;
    use crate::{
        lower::{Names, lower},
        script::Statement,
        text,
    };

    fn planned(query: &str) -> Result<(), String> {
        let script = text::parse(query).unwrap();
        let Statement::Traversal(traversal, _) = &script.statements[0] else { panic!("{query}") };
        lower(traversal, Names::default()).map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn patterns_and_variables_have_bounds() {
        // The last one is ready first: each time all that are left are looked through.
        let query = |count: usize| {
            let pattern = |n: usize| format!("__.as('v{}').out().as('v{n}')", n + 1);
            format!("g.V().match({})", (0..count).map(pattern).collect::<Vec<_>>().join(", "))
        };
        planned(&query(PATTERNS_MAX)).unwrap();
        assert_eq!(
            planned(&query(PATTERNS_MAX + 1)).unwrap_err(),
            "`match` has 257 patterns, and 256 is the most: split them among several `match`, one after the other"
        );
        // Of the variables of a condition those count that steps before have named.
        let names = |from: usize, to: usize| (from..to).map(|n| format!("'n{n}'")).collect::<Vec<_>>().join(", ");
        let named = |count: usize| {
            let first = names(0, 6_000);
            let second = names(6_000, count);
            let condition = format!("__.where('n0', within({first}, {second}))");
            format!("g.V().as({first}).as('n0').out().as({second}).match(__.as('n0').out().as('n1'), {condition})")
        };
        planned(&named(10_000)).unwrap();
        assert!(planned(&named(10_001)).unwrap_err().contains("`match` has 10001 variables"));
    }
}
