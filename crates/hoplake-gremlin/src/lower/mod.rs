//! From calls by name to operators. `names` lists the steps; `kinds` has what each does, and `compound`, `changes`, `computation` and
//! `matching` those whose arguments have forms of their own.
//!
//! **Whatever is not supported is rejected here, by name, before anything is read.**

mod arguments;
mod calls;
mod changes;
mod compound;
mod computation;
mod kinds;
mod lowering;
mod matching;
mod modulators;
mod names;
mod source;
mod strategies;
#[cfg(test)]
mod tests;

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use hoplake_format::PreparedQueries;
use hoplake_query::{
    error::QueryError,
    literal::Literal,
    operators::{Operator, conditions, moves, sources, traverser, writes},
    plan::{Collects, Name, NewKey, NewProperty, Paths, Plan, PlanStep, Settings, Steps, Work, apply_rules},
    tokens::Token,
    value::{Value, value_bytes},
};
use hoplake_storage::QueryContext;

pub use self::{
    arguments::parameters,
    lowering::{Named, Names},
    names::STEPS,
};
use self::{
    arguments::{Arguments, Bindings},
    lowering::{Lowered, Lowering, only, op},
    modulators::{Modulators, is_modulator, is_of_loop},
};
use crate::script::{Argument, Call, Traversal};

/// Names that values are passed for, at most: each use of a name looks through them. TinkerPop's server has 16 by default.
const NAMES_MAX: usize = 1_000;

/// Makes a plan of a traversal.
///
/// # Errors
/// [`QueryError::Unsupported`] and [`QueryError::Invalid`], with the name of the step.
pub fn lower(traversal: &Traversal, names: Names<'_>) -> Result<Plan, QueryError> {
    lower_on(traversal, names, &PreparedQueries::default())
}

/// As [`lower`], on a graph that has prepared queries.
///
/// # Errors
/// As [`lower`]; what is wrong with a call.
pub fn lower_on(traversal: &Traversal, names: Names<'_>, queries: &PreparedQueries) -> Result<Plan, QueryError> {
    lower_within(traversal, names, queries, &QueryContext::new())
}

/// As [`lower_on`], as a part of a query's work: it ends at its deadline, which the traversal's own may bring forward, and where the
/// plan does not fit its memory.
///
/// # Errors
/// As [`lower_on`], and the query's limits.
pub fn lower_within(
    traversal: &Traversal,
    names: Names<'_>,
    queries: &PreparedQueries,
    context: &QueryContext,
) -> Result<Plan, QueryError> {
    let work = RefCell::new(Work::new(context)?);
    let mut lowering = Lowering {
        names: Bindings::new(names, &work),
        settings: Settings { varies: traversal.varies(), ..Settings::default() },
        rejects_unlabelled: false,
        reserved: HashSet::new(),
        restrictions: None,
        seen: HashSet::new(),
        collecting: HashSet::new(),
        work: &work,
    };
    work.borrow_mut().copies(bytes_of_values(traversal, names)?)?;
    traversal.source.iter().try_for_each(|call| lowering.configure(call))?;
    work.borrow_mut().give_time(lowering.settings.timeout_ms.unwrap_or(0));
    if let Some(first) = traversal.steps.first().filter(|call| !is_start(call) && !begins(call)) {
        return Err(QueryError::invalid(format!(
            "`{}` cannot begin a traversal: one begins with V, E, inject, union, addV, addE, mergeV or mergeE",
            first.name
        )));
    }
    let (calls, end) = match traversal.steps.split_last() {
        Some((last, calls)) if matches!(&*last.name, "explain" | "profile") && last.arguments.is_empty() => {
            (calls, Some(&*last.name))
        }
        _ => (&traversal.steps[..], None),
    };
    let steps = lowering.steps_on(calls, queries)?;
    if end == Some("explain") {
        let text = hoplake_query::plan::explain(steps, &lowering.settings, &mut work.borrow_mut())?;
        let settings = Settings { plan_bytes: work.borrow().bytes(), ..Settings::default() };
        return Ok(Plan { steps: only(sources::Inject { values: vec![text.as_str().into()] }), settings });
    }
    let steps = apply_rules(steps, &lowering.settings, &mut work.borrow_mut())?;
    lowering.settings.plan_bytes = work.borrow().bytes();
    lowering.settings.profile = end == Some("profile");
    // Its result is times.
    lowering.settings.varies |= lowering.settings.profile;
    Ok(Plan { steps, settings: lowering.settings })
}

impl Lowering<'_> {
    /// Notes that a step looks at what was met under labels.
    fn needs_labels(&mut self) {
        self.settings.paths = self.settings.paths.max(Paths::Labelled);
    }

    /// Whether a step before has a label.
    fn has_label(&self, label: &str) -> bool {
        self.seen.contains(label)
    }

    fn needs_paths(&mut self) {
        self.settings.paths = Paths::Whole;
    }

    /// The steps of a traversal, or of one within another.
    fn steps(&mut self, calls: &[Call]) -> Lowered<Steps> {
        hoplake_query::with_stack(|| self.connected(calls))
    }

    /// Steps around `and()` and `or()` that stand between them: `out().or().in()`.
    fn connected(&mut self, calls: &[Call]) -> Lowered<Steps> {
        let is_connective = |call: &Call, name: &str| &*call.name == name && call.arguments.is_empty();
        if !calls.iter().any(|call| is_connective(call, "and") || is_connective(call, "or")) {
            return self.row(calls);
        }
        let starts = calls.iter().take_while(|call| is_start(call)).count();
        let (before, rest) = calls.split_at(starts);
        let mut parts = Vec::new();
        for part in rest.split(|call| is_connective(call, "or")) {
            let all = part.split(|call| is_connective(call, "and")).map(|calls| self.steps(calls));
            let mut all = all.collect::<Lowered<Vec<_>>>()?;
            parts.push(match all.len() {
                1 => all.swap_remove(0),
                _ => only(conditions::And { all }),
            });
        }
        let mut steps = self.row(before)?.to_vec();
        match parts.len() {
            1 => steps.extend(parts.swap_remove(0).iter().cloned()),
            _ => steps.extend(only(conditions::Or { any: parts }).iter().cloned()),
        }
        Ok(steps.into())
    }

    fn row(&mut self, calls: &[Call]) -> Lowered<Steps> {
        let mut steps: Vec<Arc<PlanStep>> = Vec::with_capacity(calls.len());
        let mut at = 0;
        while at < calls.len() {
            let mut modulators = Modulators::default();
            // Those of a loop may stand before it, and labels behind one of them. A second of its kind begins another loop.
            while let Some(call) = calls.get(at).filter(|call| modulators.may_precede_loop(call)) {
                if !modulators.has_room(call) {
                    return Err(no_repeat());
                }
                modulators.add(call, true);
                at += 1;
            }
            let begins_with_label = at == 0 && &*calls[0].name == "as";
            let Some(call) = calls.get(at) else {
                return Err(no_repeat());
            };
            if !begins_with_label {
                if is_modulator(call) {
                    return Err(QueryError::invalid(format!("`{}` has no step that it could follow", call.name)));
                }
                at += 1;
            }
            while let Some(next) = calls.get(at).filter(|next| self.belongs(call, next) && modulators.has_room(next)) {
                match &*next.name {
                    "property" => modulators.properties.push(next),
                    _ => modulators.add(next, false),
                }
                at += 1;
            }
            modulators.reject_many(&call.name)?;
            if begins_with_label {
                let labels = self.labels(&modulators.labels)?;
                modulators.reject_others("as", &[])?;
                self.seen.extend(labels.iter().cloned());
                steps.push(Arc::new(PlanStep::new(traverser::Identity, labels)));
                continue;
            }
            if &*call.name != "repeat" && (modulators.until.is_some() || modulators.emit.is_some()) {
                return Err(no_repeat());
            }
            let labels = self.labels(&modulators.labels)?;
            self.step(call, &modulators, labels, &mut steps)?;
        }
        Ok(steps.into())
    }

    /// Whether a call is a part of the step that another one begins.
    fn belongs(&self, first: &Call, next: &Call) -> bool {
        let adds = matches!(&*first.name, "addV" | "addE");
        is_modulator(next) && (!is_of_loop(next) || &*first.name == "repeat")
            || adds && &*next.name == "property" && !is_meta(next)
    }

    fn step(
        &mut self,
        call: &Call,
        modulators: &Modulators<'_>,
        labels: Vec<Name>,
        steps: &mut Vec<Arc<PlanStep>>,
    ) -> Lowered<()> {
        let name = &*call.name;
        let mut arguments = Arguments::new(call);
        // What it takes is at least what its text has.
        self.makes(1)?;
        let (mut operators, takes) = self.kinds(call, &mut arguments, modulators)?;
        arguments.end()?;
        modulators.reject_others(name, takes)?;
        operators.iter().try_for_each(|operator| self.check(&**operator))?;
        if let [only] = &mut operators[..]
            && let Some(compute) = only.get::<moves::Compute>()
        {
            // `V()` says where it goes on afterwards. Any other steps say where it begins.
            let says_where = |step: &Arc<PlanStep>| step.is::<sources::Vertices>() || step.is::<moves::Compute>();
            let from_traversers = !steps.iter().all(says_where);
            *only = op(moves::Compute { from_traversers, ..compute.clone() });
        }
        self.makes(operators.len() - operators.len().min(1))?;
        let operators = self.restricted(operators)?;
        self.seen.extend(labels.iter().cloned());
        let last = operators.len().saturating_sub(1);
        for (number, operator) in operators.into_iter().enumerate() {
            let labels = if number == last { labels.clone() } else { Vec::new() };
            steps.push(Arc::new(PlanStep::of(operator, labels)));
        }
        Ok(())
    }

    fn makes(&self, steps: usize) -> Lowered<()> {
        let mut work = self.work.borrow_mut();
        work.makes(steps);
        work.check()
    }

    /// What the strategies of the source do not allow; and which side effects there will be.
    fn check(&mut self, operator: &dyn Operator) -> Lowered<()> {
        if let Some(moves::Hop { labels, .. }) = operator.get()
            && labels.is_empty()
            && self.rejects_unlabelled
        {
            return Err(QueryError::invalid(
                "The provided traversal contains a vertex step without any specified edge label: name the labels",
            ));
        }
        if let Some((name, what)) = operator.collects() {
            self.collects(name, what);
        }
        if let Some(writes::AddVertex { properties, .. }) = operator.get() {
            properties.iter().try_for_each(|property| self.check_key(property))?;
        }
        if let Some(writes::AddEdge { properties, .. }) = operator.get() {
            properties.iter().try_for_each(|property| self.check_key(property))?;
        }
        if let Some(writes::Property { property }) = operator.get() {
            self.check_key(property)?;
        }
        Ok(())
    }

    fn collects(&mut self, name: &Name, what: Collects) {
        if self.collecting.insert(name.clone()) {
            self.settings.collected.push((name.clone(), what));
        }
    }

    fn check_key(&self, property: &NewProperty) -> Lowered<()> {
        match &property.key {
            NewKey::Name(name) if self.reserved.contains(name) => Err(QueryError::invalid(format!(
                "The provided traversal is setting a property key to a reserved word: {name}"
            ))),
            _ => Ok(()),
        }
    }
}

fn is_start(call: &Call) -> bool {
    matches!(&*call.name, "V" | "E" | "addV" | "addE" | "inject" | "mergeV" | "mergeE")
}

/// Whether a traversal can begin with a call that is not a start within one; those that are not supported are rejected by name later.
fn begins(call: &Call) -> bool {
    matches!(&*call.name, "union" | "call" | "io")
}

/// Whether a `property` has properties of its own.
fn is_meta(call: &Call) -> bool {
    let cardinality = matches!(call.arguments.first(), Some(Argument::Token(Token::Cardinality(_))));
    call.arguments.len() > 2 + usize::from(cardinality)
}

fn no_repeat() -> QueryError {
    QueryError::invalid("The repeat()-traversal was not defined")
}

/// The bytes of the values that a plan has from a traversal. A name has a copy of its value wherever it is used: a megabyte that is used by
/// a name of one letter would be a million megabytes.
///
/// # Errors
/// There are too many names.
fn bytes_of_values(traversal: &Traversal, names: Names<'_>) -> Lowered<usize> {
    let count = names.0.len();
    if count > NAMES_MAX {
        return Err(QueryError::invalid(format!(
            "the query comes with values for {count} names, and {NAMES_MAX} is the most: pass a list or a map as one value"
        )));
    }
    let mut of_names: HashMap<&str, usize> = HashMap::with_capacity(count);
    for (name, value) in names.0 {
        of_names.entry(name).or_insert_with(|| value_bytes(value));
    }
    let mut bytes = 0_usize;
    traversal.visit_arguments(&mut |argument| {
        let one = match argument {
            Argument::Name(name) => of_names.get(&**name).copied().unwrap_or(0),
            Argument::Literal(Literal::Text(text)) => size_of::<Value>() + text.len(),
            _ => size_of::<Value>(),
        };
        bytes = bytes.saturating_add(one);
    });
    Ok(bytes)
}
