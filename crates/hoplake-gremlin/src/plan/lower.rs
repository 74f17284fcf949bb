//! From calls by name to typed steps. The only place that knows the names of steps, and what arguments they take.
//!
//! **Whatever is not supported is refused here, by name, before anything is read.**

use std::sync::Arc;

use hoplake_format::PreparedQueries;

use super::{
    By, Case, Choice, Collects, Conversion, Formula, Given, ListStep, Name, NewKey, NewProperty, Paths, Plan,
    Predicate, Quantifier, Reaches, Reduction, Repeat, Settings, Step, StepKind, Steps, TextStep, TokensWanted, Until,
    arguments::Arguments,
    modulators::{Modulators, as_label, is_modulator},
    strategies::Restrictions,
};
use crate::{
    error::GremlinError,
    literal::{Literal, Number},
    script::{Argument, Call, Test, Traversal},
    tokens::{Direction, Operator, Pick, Pop, Scope, T, Token},
    value::Value,
};

pub(super) type Lowered<T> = Result<T, GremlinError>;

/// The values of names in a query.
#[derive(Debug, Clone, Copy, Default)]
pub struct Names<'a>(pub &'a [(Box<str>, Value)]);

impl Names<'_> {
    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(other, _)| **other == *name).map(|(_, value)| value)
    }
}

/// Makes a plan of a traversal.
///
/// # Errors
/// [`GremlinError::Unsupported`] and [`GremlinError::Invalid`], with the name of the step.
pub fn lower(traversal: &Traversal, names: Names<'_>) -> Result<Plan, GremlinError> {
    lower_on(traversal, names, &PreparedQueries::default())
}

/// As [`lower`], on a graph that has prepared queries.
///
/// # Errors
/// As [`lower`]; what is wrong with a call.
pub fn lower_on(traversal: &Traversal, names: Names<'_>, queries: &PreparedQueries) -> Result<Plan, GremlinError> {
    let mut lowering = Lowering {
        names,
        settings: Settings { varies: traversal.varies(), ..Settings::default() },
        refuses_unlabelled: false,
        reserved: Vec::new(),
        restrictions: None,
        seen: Vec::new(),
    };
    traversal.source.iter().try_for_each(|call| lowering.configure(call))?;
    if let Some(first) = traversal.steps.first().filter(|call| !is_start(call) && !begins(call)) {
        return Err(GremlinError::invalid(format!(
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
        let text = super::explain::explain(steps, &lowering.settings);
        return Ok(Plan { steps: only(StepKind::Inject(vec![text.as_str().into()])), settings: Settings::default() });
    }
    let steps = super::rules::apply(steps, &lowering.settings);
    lowering.settings.profile = end == Some("profile");
    // Its result is times.
    lowering.settings.varies |= lowering.settings.profile;
    Ok(Plan { steps, settings: lowering.settings })
}

/// What is known while a traversal is lowered.
pub(super) struct Lowering<'a> {
    pub(super) names: Names<'a>,
    pub(super) settings: Settings,
    /// Whether hops have to name labels.
    pub(super) refuses_unlabelled: bool,
    /// Names that no new property may have.
    pub(super) reserved: Vec<Value>,
    /// What strategies let the traversal see.
    pub(super) restrictions: Option<Restrictions>,
    /// Labels of the steps so far.
    pub(super) seen: Vec<Name>,
}

impl Lowering<'_> {
    /// Notes that a step looks at what was met under labels.
    pub(super) fn needs_labels(&mut self) {
        self.settings.paths = self.settings.paths.max(Paths::Labelled);
    }

    /// Whether a step before has a label.
    pub(super) fn has_label(&self, label: &str) -> bool {
        self.seen.iter().any(|seen| **seen == *label)
    }

    pub(super) fn needs_paths(&mut self) {
        self.settings.paths = Paths::Whole;
    }

    /// The steps of a traversal, or of one within another.
    pub(super) fn steps(&mut self, calls: &[Call]) -> Lowered<Steps> {
        crate::deep::with_stack(|| self.connected(calls))
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
                _ => only(StepKind::And(all)),
            });
        }
        let mut steps = self.row(before)?.to_vec();
        match parts.len() {
            1 => steps.extend(parts.swap_remove(0).iter().cloned()),
            _ => steps.extend(only(StepKind::Or(parts)).iter().cloned()),
        }
        Ok(steps.into())
    }

    fn row(&mut self, calls: &[Call]) -> Lowered<Steps> {
        let mut steps: Vec<Arc<Step>> = Vec::with_capacity(calls.len());
        let mut at = 0;
        while at < calls.len() {
            let mut modulators = Modulators::default();
            // Those of a loop may stand before it.
            while let Some(call) = calls.get(at).filter(|call| matches!(&*call.name, "until" | "emit" | "times")) {
                modulators.add(call, true);
                at += 1;
            }
            let begins_with_label = at == 0 && &*calls[0].name == "as";
            let Some(call) = calls.get(at) else {
                return Err(no_repeat());
            };
            if !begins_with_label {
                if is_modulator(call) {
                    return Err(GremlinError::invalid(format!("`{}` has no step that it could follow", call.name)));
                }
                at += 1;
            }
            while let Some(next) = calls.get(at).filter(|next| self.belongs(call, next)) {
                match &*next.name {
                    "property" => modulators.properties.push(next),
                    _ => modulators.add(next, false),
                }
                at += 1;
            }
            if begins_with_label {
                let labels = self.labels(&modulators.labels)?;
                modulators.refuse_others("as", &[])?;
                self.seen.extend(labels.iter().cloned());
                steps.push(Arc::new(Step::new(StepKind::Identity, labels)));
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
        let of_loop = matches!(&*next.name, "times" | "until" | "emit");
        is_modulator(next) && (!of_loop || &*first.name == "repeat")
            || adds && &*next.name == "property" && !is_meta(next)
    }

    fn step(
        &mut self,
        call: &Call,
        modulators: &Modulators<'_>,
        labels: Vec<Name>,
        steps: &mut Vec<Arc<Step>>,
    ) -> Lowered<()> {
        let name = &*call.name;
        let mut arguments = Arguments::new(call);
        let (kinds, takes) = self.kinds(call, &mut arguments, modulators)?;
        arguments.end()?;
        modulators.refuse_others(name, takes)?;
        kinds.iter().try_for_each(|kind| self.check(kind))?;
        let kinds = self.restricted(kinds)?;
        self.seen.extend(labels.iter().cloned());
        let last = kinds.len().saturating_sub(1);
        for (number, kind) in kinds.into_iter().enumerate() {
            let labels = if number == last { labels.clone() } else { Vec::new() };
            steps.push(Arc::new(Step::new(kind, labels)));
        }
        Ok(())
    }

    /// What the strategies of the source do not allow; and which side effects there will be.
    fn check(&mut self, kind: &StepKind) -> Lowered<()> {
        match kind {
            StepKind::Hop(_, labels, _) if labels.is_empty() && self.refuses_unlabelled => Err(GremlinError::invalid(
                "The provided traversal contains a vertex step without any specified edge label: name the labels",
            )),
            StepKind::Aggregate(_, name, _) => self.collects(name, Collects::Values),
            StepKind::Group(Some(name), ..) | StepKind::GroupCount(Some(name), _) => self.collects(name, Collects::Map),
            StepKind::Tree(Some(name), _) => self.collects(name, Collects::Tree),
            StepKind::AddVertex(_, properties) | StepKind::AddEdge(_, _, _, properties) => {
                properties.iter().try_for_each(|property| self.check_key(property))
            }
            StepKind::Property(property) => self.check_key(property),
            _ => Ok(()),
        }
    }

    fn collects(&mut self, name: &Name, what: Collects) -> Lowered<()> {
        if !self.settings.collected.iter().any(|(other, _)| other == name) {
            self.settings.collected.push((name.clone(), what));
        }
        Ok(())
    }

    fn check_key(&self, property: &NewProperty) -> Lowered<()> {
        let reserved = |name: &Name| self.reserved.iter().any(|key| matches!(key, Value::Text(key) if **key == **name));
        match &property.key {
            NewKey::Name(name) if reserved(name) => Err(GremlinError::invalid(format!(
                "The provided traversal is setting a property key to a reserved word: {name}"
            ))),
            _ => Ok(()),
        }
    }

    /// What a call does, and the modulators that it takes.
    fn kinds(
        &mut self,
        call: &Call,
        arguments: &mut Arguments<'_>,
        modulators: &Modulators<'_>,
    ) -> Lowered<(Vec<StepKind>, &'static [&'static str])> {
        let names = self.names;
        let one = |kind: StepKind| (vec![kind], &[] as &'static [&'static str]);
        Ok(match &*call.name {
            "V" => one(StepKind::Vertices(ids(arguments, &names)?)),
            "E" => one(StepKind::Edges(ids(arguments, &names)?)),
            "inject" => {
                let values = arguments.rest().iter().map(|it| names.value(it)).collect::<Lowered<_>>()?;
                one(StepKind::Inject(values))
            }
            "out" => one(hop(Direction::Out, Reaches::Vertices, arguments, &names)?),
            "in" => one(hop(Direction::In, Reaches::Vertices, arguments, &names)?),
            "both" => one(hop(Direction::Both, Reaches::Vertices, arguments, &names)?),
            "outE" => one(hop(Direction::Out, Reaches::Edges, arguments, &names)?),
            "inE" => one(hop(Direction::In, Reaches::Edges, arguments, &names)?),
            "bothE" => one(hop(Direction::Both, Reaches::Edges, arguments, &names)?),
            "to" => one(hop(direction(arguments)?, Reaches::Vertices, arguments, &names)?),
            "toE" => one(hop(direction(arguments)?, Reaches::Edges, arguments, &names)?),
            "toV" => one(StepKind::Ends(direction(arguments)?)),
            "outV" => one(StepKind::Ends(Direction::Out)),
            "inV" => one(StepKind::Ends(Direction::In)),
            "bothV" => one(StepKind::Ends(Direction::Both)),
            // An edge of a query always knows from which end it was reached.
            "otherV" => one(StepKind::OtherEnd),
            "element" => one(StepKind::Element),

            "has" => one(self.has(arguments)?),
            "hasLabel" => one(StepKind::Has(By::Token(T::Label), one_of(arguments, &names)?)),
            "hasId" => one(StepKind::Has(By::Token(T::Id), one_of(arguments, &names)?)),
            "hasKey" => one(StepKind::HasKey(one_of(arguments, &names)?)),
            "hasValue" => one(StepKind::HasValue(one_of(arguments, &names)?)),
            "hasNot" => one(StepKind::HasNot(arguments.text(&names, "the name of a property")?)),
            "is" => one(StepKind::Is(names.predicate(arguments.need("a value or a predicate")?)?)),
            "where" => (vec![self.where_(arguments, modulators)?], &["by"]),
            "filter" => match arguments.need("a traversal")? {
                predicate @ Argument::Predicate(_) => one(StepKind::Is(names.predicate(predicate)?)),
                argument => one(StepKind::Where(self.steps_of(arguments, argument)?)),
            },
            "not" => {
                let argument = arguments.need("a traversal")?;
                one(StepKind::Not(self.steps_of(arguments, argument)?))
            }
            "and" => one(StepKind::And(self.all_steps(arguments)?)),
            "or" => one(StepKind::Or(self.all_steps(arguments)?)),
            "all" => one(StepKind::Quantified(Quantifier::All, names.predicate(arguments.need("a predicate")?)?)),
            "any" => one(StepKind::Quantified(Quantifier::Any, names.predicate(arguments.need("a predicate")?)?)),
            "none" => one(StepKind::Quantified(Quantifier::None, names.predicate(arguments.need("a predicate")?)?)),
            "simplePath" | "cyclicPath" => {
                self.needs_paths();
                let part = self.path_part(modulators)?;
                (vec![StepKind::SimplePath(&*call.name == "simplePath", part)], &["by", "from", "to"])
            }
            "coin" => match names.value(arguments.need("a probability")?)? {
                Value::Number(number) => one(StepKind::Coin(crate::value::to_f64(&number))),
                _ => return Err(arguments.wrong("takes a number")),
            },
            "discard" => one(StepKind::Discard),

            "limit" | "range" | "skip" => one(range(&call.name, arguments, &names)?),
            "tail" => {
                let scope = arguments.scope();
                let count = if arguments.len() == 0 { 1 } else { arguments.integer(&names, "a number")? };
                one(StepKind::Tail(scope, u64::try_from(count).unwrap_or(0)))
            }
            "dedup" => {
                let scope = arguments.scope();
                let labels = arguments.texts(&names, "a label")?;
                if !labels.is_empty() {
                    self.needs_labels();
                }
                let by = match labels.is_empty() {
                    true => vec![self.by(&modulators.by, "Dedup")?],
                    false => self.bys(&modulators.by)?,
                };
                (vec![StepKind::Dedup(scope, labels, by)], &["by"])
            }
            "order" => {
                let scope = arguments.scope();
                let mut by = modulators.by.iter().map(|by| self.sorting(by)).collect::<Lowered<Vec<_>>>()?;
                if by.is_empty() {
                    by.push((By::Identity, crate::tokens::Order::Asc));
                }
                (vec![StepKind::Order(scope, by)], &["by"])
            }
            "sample" => {
                let scope = arguments.scope();
                let count = arguments.integer(&names, "a number")?;
                let by = self.by(&modulators.by, "Sample")?;
                (vec![StepKind::Sample(scope, u64::try_from(count).unwrap_or(0), by)], &["by"])
            }
            "barrier" => match arguments.take() {
                Some(Argument::Token(_)) => {
                    return Err(GremlinError::unsupported("`barrier(normSack)` is not supported"));
                }
                _ => one(StepKind::Barrier),
            },

            "values" => one(StepKind::Values(arguments.properties(&names)?)),
            "properties" => one(StepKind::Properties(arguments.properties(&names)?)),
            "propertyMap" => one(StepKind::PropertyMap(arguments.properties(&names)?)),
            "elementMap" => one(StepKind::ElementMap(arguments.properties(&names)?)),
            "valueMap" => (vec![self.value_map(arguments, modulators)?], &["by", "with"]),
            "id" => one(StepKind::Token(T::Id)),
            "label" => one(StepKind::Token(T::Label)),
            "key" => one(StepKind::Token(T::Key)),
            "value" => one(StepKind::Token(T::Value)),
            "constant" => one(StepKind::Constant(names.value(arguments.need("a value")?)?)),
            "identity" => one(StepKind::Identity),
            "loops" => {
                let name = match arguments.len() {
                    0 => None,
                    _ => Some(arguments.text(&names, "the name of a loop")?),
                };
                one(StepKind::Loops(name))
            }
            "path" => {
                self.needs_paths();
                (vec![StepKind::Path(self.path_part(modulators)?)], &["by", "from", "to"])
            }
            "select" => (vec![self.select(arguments, modulators)?], &["by"]),
            "project" => {
                let keys = arguments.texts(&names, "a name")?;
                if let Some(twice) = keys.iter().enumerate().find(|(at, key)| keys[..*at].contains(key)) {
                    return Err(arguments.wrong(&format!("has {:?} twice", twice.1)));
                }
                (vec![StepKind::Project(keys, self.bys(&modulators.by)?)], &["by"])
            }
            "map" => {
                let argument = arguments.need("a traversal")?;
                one(StepKind::Map(self.steps_of(arguments, argument)?))
            }
            "flatMap" => {
                let argument = arguments.need("a traversal")?;
                one(StepKind::FlatMap(self.steps_of(arguments, argument)?))
            }
            "local" => {
                let argument = arguments.need("a traversal")?;
                one(StepKind::Local(self.steps_of(arguments, argument)?))
            }
            "unfold" => one(StepKind::Unfold),
            "index" => (vec![self.index(modulators)?], &["with"]),
            "fold" => match arguments.take() {
                None => one(StepKind::Fold(None)),
                Some(seed) => {
                    let seed = names.value(seed)?;
                    let operator = operator(arguments)?;
                    one(StepKind::Fold(Some((seed, operator))))
                }
            },
            "count" => one(StepKind::Reduce(Reduction::Count, arguments.scope())),
            "sum" => one(StepKind::Reduce(Reduction::Sum, arguments.scope())),
            "min" => one(StepKind::Reduce(Reduction::Min, arguments.scope())),
            "max" => one(StepKind::Reduce(Reduction::Max, arguments.scope())),
            "mean" => one(StepKind::Reduce(Reduction::Mean, arguments.scope())),
            "group" => {
                let name = side_effect(arguments, &names)?;
                let mut by = self.bys(&modulators.by)?;
                if by.len() > 2 {
                    return Err(arguments.wrong("takes two `by` at most"));
                }
                let value = if by.len() == 2 { by.pop().unwrap_or(By::Identity) } else { By::Identity };
                let key = by.pop().unwrap_or(By::Identity);
                (vec![StepKind::Group(name, key, value)], &["by"])
            }
            "groupCount" => {
                let name = side_effect(arguments, &names)?;
                (vec![StepKind::GroupCount(name, self.by(&modulators.by, "GroupCount")?)], &["by"])
            }
            "tree" => {
                self.needs_paths();
                let name = side_effect(arguments, &names)?;
                (vec![StepKind::Tree(name, self.bys(&modulators.by)?)], &["by"])
            }
            "sack" => match arguments.len() {
                0 => one(StepKind::Sack),
                _ => {
                    let operator = operator(arguments)?;
                    (vec![StepKind::SackWith(operator, self.by(&modulators.by, "Sack")?)], &["by"])
                }
            },

            "match" => one(self.matching(arguments.rest())?),
            "repeat" => (vec![self.repeat(arguments, modulators)?], &["times", "until", "emit"]),
            "union" => one(StepKind::Union(self.all_steps(arguments)?)),
            "coalesce" => one(StepKind::Coalesce(self.all_steps(arguments)?)),
            "optional" => {
                let argument = arguments.need("a traversal")?;
                one(StepKind::Optional(self.steps_of(arguments, argument)?))
            }
            "choose" => (vec![self.choose(arguments, modulators)?], &["option"]),
            "branch" => {
                let argument = arguments.need("a traversal")?;
                let by = self.by_of(arguments, argument)?;
                let cases = modulators.options.iter().map(|call| self.case(call)).collect::<Lowered<_>>()?;
                (vec![StepKind::Choose(Choice::By(by), cases, true)], &["option"])
            }

            "aggregate" => {
                let scope = arguments.scope();
                let name = arguments.text(&names, "the name of a side effect")?;
                (vec![StepKind::Aggregate(scope, name, self.by(&modulators.by, "Aggregate")?)], &["by"])
            }
            "store" => {
                let name = arguments.text(&names, "the name of a side effect")?;
                (vec![StepKind::Aggregate(Scope::Local, name, self.by(&modulators.by, "Aggregate")?)], &["by"])
            }
            "cap" => {
                let keys = arguments.texts(&names, "the name of a side effect")?;
                if keys.is_empty() {
                    return Err(arguments.wrong("needs the name of a side effect"));
                }
                one(StepKind::Cap(keys))
            }
            "sideEffect" => {
                let argument = arguments.need("a traversal")?;
                one(StepKind::SideEffect(self.steps_of(arguments, argument)?))
            }
            "fail" => {
                let message = match arguments.len() {
                    0 => None,
                    _ => arguments.text_or_null(&names, "a message")?,
                };
                one(StepKind::Fail(message))
            }

            "addV" | "addE" | "property" | "drop" | "mergeV" | "mergeE" => {
                self.settings.writes = true;
                if let Some(why) = &self.settings.read_only {
                    return Err(GremlinError::ReadOnly(format!(
                        "The provided traversal has a mutating step and thus is not read only: `{}` writes, and {why}",
                        call.name
                    )));
                }
                self.change(call, arguments, modulators)?
            }
            "concat" | "format" | "split" | "trim" | "lTrim" | "rTrim" | "toUpper" | "toLower" | "reverse"
            | "replace" | "substring" | "length" => (vec![self.text_step(call, arguments, modulators)?], &["by"]),
            "combine" => one(StepKind::List(ListStep::Combine, self.list(arguments)?)),
            "merge" => one(StepKind::List(ListStep::Merge, self.list(arguments)?)),
            "difference" => one(StepKind::List(ListStep::Difference, self.list(arguments)?)),
            "disjunct" => one(StepKind::List(ListStep::Disjunct, self.list(arguments)?)),
            "intersect" => one(StepKind::List(ListStep::Intersect, self.list(arguments)?)),
            "product" => one(StepKind::List(ListStep::Product, self.list(arguments)?)),
            "conjoin" => match arguments.text_or_null(&names, "a delimiter")? {
                Some(delimiter) => one(StepKind::Conjoin(delimiter)),
                None => return Err(arguments.wrong("takes a text as delimiter")),
            },
            "asString" => one(StepKind::As(arguments.scope(), Conversion::String)),
            "asNumber" => match arguments.take() {
                None => one(StepKind::As(Scope::Global, Conversion::Number(None))),
                Some(Argument::Token(Token::GType(kind))) => {
                    one(StepKind::As(Scope::Global, Conversion::Number(Some(*kind))))
                }
                Some(_) => return Err(arguments.wrong("takes a type such as GType.INT")),
            },
            "asDate" => one(StepKind::As(Scope::Global, Conversion::Date)),
            "math" => {
                self.needs_labels();
                let formula = Box::new(Formula::parse(&arguments.text(&names, "a formula")?)?);
                (vec![StepKind::Math(formula, self.bys(&modulators.by)?)], &["by"])
            }
            "asBool" => one(StepKind::As(Scope::Global, Conversion::Boolean)),
            "dateAdd" => match arguments.need("a unit of time")? {
                Argument::Token(Token::Dt(unit)) => {
                    one(StepKind::DateAdd(*unit, arguments.integer(&names, "a number")?))
                }
                _ => return Err(arguments.wrong("takes a unit of time such as DT.day")),
            },
            "dateDiff" => {
                let other = arguments.need("a point in time")?;
                one(StepKind::DateDiff(self.given(other)?))
            }
            name => return Err(unknown(name)),
        })
    }

    fn has(&mut self, arguments: &mut Arguments<'_>) -> Lowered<StepKind> {
        let names = self.names;
        let first = arguments.need("the name of a property")?;
        // No property has no name.
        if matches!(first, Argument::Literal(Literal::Null)) && arguments.len() < 2 {
            arguments.rest();
            return Ok(StepKind::Discard);
        }
        if arguments.len() == 2 {
            // has(label, key, value)
            let label = names.predicate(first)?;
            let key = arguments.need("the name of a property")?;
            let value = arguments.need("a value")?;
            let key = self.by_of(arguments, key)?;
            let has = StepKind::Has(key, names.predicate(value)?);
            let steps = [StepKind::Has(By::Token(T::Label), label), has];
            let steps: Vec<_> = steps.into_iter().map(|kind| Arc::new(Step::plain(kind))).collect();
            return Ok(StepKind::Where(steps.into()));
        }
        let key = self.by_of(arguments, first)?;
        Ok(match (key, arguments.take()) {
            (By::Property(name), None) => StepKind::HasProperty(name),
            (By::Property(name), Some(argument @ Argument::Traversal(_))) => {
                StepKind::HasSteps(name, self.steps_of(arguments, argument)?)
            }
            (By::Token(token), Some(argument @ Argument::Traversal(_))) => {
                let steps = self.steps_of(arguments, argument)?;
                let token = Arc::new(Step::plain(StepKind::Token(token)));
                StepKind::Where(std::iter::once(token).chain(steps.iter().cloned()).collect())
            }
            (key @ (By::Property(_) | By::Token(_)), Some(value)) => StepKind::Has(key, names.predicate(value)?),
            _ => return Err(arguments.wrong("takes the name of a property, or a token such as T.label, and a value")),
        })
    }

    /// `where(…)`: of a predicate on labels, or of a traversal whose ends may be labels.
    fn where_(&mut self, arguments: &mut Arguments<'_>, modulators: &Modulators<'_>) -> Lowered<StepKind> {
        let names = self.names;
        let first = arguments.need("a traversal or a predicate")?;
        match first {
            Argument::Traversal(_) if !modulators.by.is_empty() => {
                Err(arguments.wrong("takes no `by` if it has a traversal"))
            }
            Argument::Traversal(calls) => Ok(StepKind::Where(self.where_steps(calls)?)),
            Argument::Predicate(_) => {
                self.needs_labels();
                Ok(StepKind::WherePredicate(None, names.predicate(first)?, self.bys(&modulators.by)?))
            }
            label => {
                self.needs_labels();
                let Value::Text(label) = names.value(label)? else {
                    return Err(arguments.wrong("takes a traversal, a predicate, or a label and a predicate"));
                };
                let predicate = names.predicate(arguments.need("a predicate")?)?;
                Ok(StepKind::WherePredicate(Some(label.into()), predicate, self.bys(&modulators.by)?))
            }
        }
    }

    /// The traversal of a `where`, whose first and last labels are no new ones: they name what was met before.
    pub(super) fn where_steps(&mut self, calls: &[Call]) -> Lowered<Steps> {
        if let [call] = calls
            && matches!(&*call.name, "and" | "or" | "not")
            && !call.arguments.is_empty()
        {
            let parts = call.arguments.iter().map(|argument| match argument {
                Argument::Traversal(calls) => self.where_steps(calls),
                _ => Err(GremlinError::invalid(format!("`{}` takes traversals", call.name))),
            });
            let mut parts = parts.collect::<Lowered<Vec<_>>>()?;
            return Ok(only(match (&*call.name, parts.len()) {
                ("and", _) => StepKind::And(parts),
                ("or", _) => StepKind::Or(parts),
                (_, 1) => StepKind::Not(parts.swap_remove(0)),
                _ => return Err(GremlinError::invalid("`not` takes one traversal")),
            }));
        }
        let start = calls.first().and_then(as_label);
        let rest = if start.is_some() { &calls[1..] } else { calls };
        let end = rest.last().filter(|_| rest.len() > 1).and_then(as_label);
        let within = if end.is_some() { &rest[..rest.len() - 1] } else { rest };
        let mut steps = Vec::new();
        let step = |kind| Arc::new(Step::plain(kind));
        if let Some(label) = start {
            self.needs_labels();
            steps.push(step(StepKind::StartAt(label.into())));
        }
        steps.extend(self.steps(within)?.iter().cloned());
        if let Some(label) = end {
            self.needs_labels();
            steps.push(step(StepKind::EndAt(label.into())));
        }
        Ok(steps.into())
    }

    fn value_map(&mut self, arguments: &mut Arguments<'_>, modulators: &Modulators<'_>) -> Lowered<StepKind> {
        let names = self.names;
        let mut tokens = TokensWanted::default();
        if let Some(Argument::Literal(Literal::Boolean(all))) = arguments.first() {
            arguments.take();
            tokens = TokensWanted { id: *all, label: *all, keys: *all, values: *all };
        }
        let keys = arguments.properties(&names)?;
        if modulators.by.len() > 1 {
            return Err(GremlinError::invalid("ValueMap step can only have one by modulator"));
        }
        for (option, value) in self.options(&modulators.with)? {
            if &*option != "~tinkerpop.valueMap.tokens" {
                return Err(GremlinError::unsupported(format!("`valueMap` has no option {option:?}")));
            }
            let flags = match value {
                Given::Value(Value::Boolean(true)) => 15,
                Given::Value(Value::Number(Number::Int(flags))) => flags,
                _ => return Err(arguments.wrong("takes WithOptions.ids, labels, keys, values, all or none")),
            };
            let has = |flag: i32| flags & flag != 0;
            tokens = TokensWanted { id: has(1), label: has(2), keys: has(4), values: has(8) };
        }
        Ok(StepKind::ValueMap(keys, tokens, self.bys(&modulators.by)?))
    }

    fn index(&mut self, modulators: &Modulators<'_>) -> Lowered<StepKind> {
        let mut map = false;
        for (option, value) in self.options(&modulators.with)? {
            match (&*option, value) {
                ("~tinkerpop.index.indexer", Given::Value(Value::Number(Number::Int(kind)))) => map = kind == 1,
                _ => return Err(GremlinError::unsupported(format!("`index` has no option {option:?}"))),
            }
        }
        Ok(StepKind::Index(map))
    }

    fn select(&mut self, arguments: &mut Arguments<'_>, modulators: &Modulators<'_>) -> Lowered<StepKind> {
        let names = self.names;
        if let Some(Argument::Token(Token::Column(column))) = arguments.first() {
            arguments.take();
            if !modulators.by.is_empty() {
                return Err(arguments.wrong("takes no `by` if it has `keys` or `values`"));
            }
            return Ok(StepKind::SelectColumn(*column));
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
            return Ok(StepKind::SelectSteps(pop, steps, self.bys(&modulators.by)?));
        }
        let mut labels: Vec<Name> = Vec::new();
        let several = arguments.len() > 1;
        for label in arguments.texts(&names, "a label")? {
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
        if labels.is_empty() {
            return Err(arguments.wrong("needs a label"));
        }
        Ok(StepKind::Select(pop, labels, self.bys(&modulators.by)?, several))
    }

    fn repeat(&mut self, arguments: &mut Arguments<'_>, modulators: &Modulators<'_>) -> Lowered<StepKind> {
        let name = match arguments.len() {
            2 => Some(arguments.text(&self.names, "the name of the loop")?),
            _ => None,
        };
        let argument = arguments.need("a traversal")?;
        let body = self.steps_of(arguments, argument)?;
        if body.iter().any(|step| matches!(step.kind, StepKind::Inject(_))) {
            return Err(GremlinError::invalid("The parent of inject()-step can not be repeat()-step"));
        }
        let mut condition = |call: Option<(&Call, bool)>| -> Lowered<Option<(Until, bool)>> {
            let Some((call, before)) = call else { return Ok(None) };
            Ok(Some((self.until(call)?, before)))
        };
        let (until, emit) = (condition(modulators.until)?, condition(modulators.emit)?);
        Ok(StepKind::Repeat(Repeat { body, name, until, emit }))
    }

    fn choose(&mut self, arguments: &mut Arguments<'_>, modulators: &Modulators<'_>) -> Lowered<StepKind> {
        let first = arguments.need("a traversal or a predicate")?;
        if arguments.len() == 0 {
            let choice = match first {
                Argument::Predicate(_) => Choice::Test(self.names.predicate(first)?),
                argument => Choice::By(self.by_of(arguments, argument)?),
            };
            let cases = modulators.options.iter().map(|call| self.case(call)).collect::<Lowered<Vec<_>>>()?;
            if cases.iter().any(|(case, _)| matches!(case, Case::Steps(_))) {
                return Err(GremlinError::invalid(
                    "Traversal is not allowed as a Pick token for `choose`: write a value or a predicate",
                ));
            }
            if cases.iter().any(|(case, _)| matches!(case, Case::Pick(Pick::Any))) {
                return Err(GremlinError::invalid("`choose` takes one option for a traverser: name what each is for"));
            }
            return Ok(StepKind::Choose(choice, cases, false));
        }
        let choice = match first {
            Argument::Predicate(_) => Choice::Test(self.names.predicate(first)?),
            argument => Choice::Productive(self.steps_of(arguments, argument)?),
        };
        let mut cases = Vec::new();
        for (case, argument) in [Case::Equal(true.into()), Case::Pick(Pick::None)].into_iter().zip(arguments.rest()) {
            cases.push((case, self.steps_of(arguments, argument)?));
        }
        Ok(StepKind::Choose(choice, cases, false))
    }

    fn text_step(
        &mut self,
        call: &Call,
        arguments: &mut Arguments<'_>,
        modulators: &Modulators<'_>,
    ) -> Lowered<StepKind> {
        let names = self.names;
        let scope = arguments.scope();
        let step = match &*call.name {
            "concat" => {
                let given = arguments.rest().iter().map(|argument| self.given(argument)).collect::<Lowered<_>>()?;
                TextStep::Concat(given)
            }
            "format" => {
                self.needs_labels();
                let format = arguments.text(&names, "a format")?;
                TextStep::Format(format, self.bys(&modulators.by)?)
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
        if !modulators.by.is_empty() && &*call.name != "format" {
            return Err(arguments.wrong("takes no `by`"));
        }
        Ok(StepKind::Text(scope, step))
    }

    fn list(&mut self, arguments: &mut Arguments<'_>) -> Lowered<Given> {
        let argument = arguments.need("a list or a traversal")?;
        self.given(argument)
    }
}

/// A traversal of one step.
pub(super) fn only(kind: StepKind) -> Steps {
    [Arc::new(Step::plain(kind))].into()
}

fn is_start(call: &Call) -> bool {
    matches!(&*call.name, "V" | "E" | "addV" | "addE" | "inject" | "mergeV" | "mergeE")
}

/// Whether a traversal can begin with a call that is not a start within one; those that are not supported are refused by name later.
fn begins(call: &Call) -> bool {
    matches!(&*call.name, "union" | "call" | "io")
}

/// Whether a `property` has properties of its own.
fn is_meta(call: &Call) -> bool {
    let cardinality = matches!(call.arguments.first(), Some(Argument::Token(Token::Cardinality(_))));
    call.arguments.len() > 2 + usize::from(cardinality)
}

fn ids(arguments: &mut Arguments<'_>, names: &Names<'_>) -> Lowered<Option<Vec<Value>>> {
    match arguments.len() {
        0 => Ok(None),
        _ => arguments.flat_values(names).map(Some),
    }
}

fn hop(direction: Direction, reaches: Reaches, arguments: &mut Arguments<'_>, names: &Names<'_>) -> Lowered<StepKind> {
    Ok(StepKind::Hop(direction, arguments.texts(names, "the label of edges")?, reaches))
}

fn direction(arguments: &mut Arguments<'_>) -> Lowered<Direction> {
    match arguments.need("a direction")? {
        Argument::Token(Token::Direction(direction)) => Ok(*direction),
        _ => Err(arguments.wrong("takes a direction such as Direction.OUT")),
    }
}

/// One of some values, or a predicate.
fn one_of(arguments: &mut Arguments<'_>, names: &Names<'_>) -> Lowered<Predicate> {
    match arguments.rest() {
        [] => Err(arguments.wrong("needs a value or a predicate")),
        [predicate @ Argument::Predicate(_)] => names.predicate(predicate),
        values => {
            let mut all = Vec::new();
            for value in values {
                match names.value(value)? {
                    Value::List(items) | Value::Set(items) => all.extend(items),
                    value => all.push(value),
                }
            }
            Ok(Predicate::Test(Test::Within, all))
        }
    }
}

fn range(name: &str, arguments: &mut Arguments<'_>, names: &Names<'_>) -> Lowered<StepKind> {
    let scope = arguments.scope();
    let positive = |number: i64| u64::try_from(number).ok();
    let (low, high) = match name {
        "limit" => (0, arguments.integer(names, "a number")?),
        "skip" => (arguments.integer(names, "a number")?, -1),
        _ => (arguments.integer(names, "a number")?, arguments.integer(names, "a number")?),
    };
    let low_number = positive(low).unwrap_or(0);
    if positive(high).is_some_and(|high| high < low_number) {
        return Err(GremlinError::invalid(format!("Not a legal range: [{low}, {high}]")));
    }
    Ok(StepKind::Range(scope, low_number, positive(high)))
}

fn operator(arguments: &mut Arguments<'_>) -> Lowered<Operator> {
    match arguments.need("an operator")? {
        Argument::Token(Token::Operator(operator)) => Ok(*operator),
        _ => Err(arguments.wrong("takes an operator such as `sum`")),
    }
}

fn side_effect(arguments: &mut Arguments<'_>, names: &Names<'_>) -> Lowered<Option<Name>> {
    match arguments.len() {
        0 => Ok(None),
        _ => arguments.text(names, "the name of a side effect").map(Some),
    }
}

fn no_repeat() -> GremlinError {
    GremlinError::invalid("The repeat()-traversal was not defined")
}

fn unknown(name: &str) -> GremlinError {
    let why = match name {
        "call" => "`call` begins a traversal, and a prepared query cannot call another".to_owned(),
        "io" | "read" | "write" | "program" | "connectedComponent" | "pageRank" | "peerPressure" | "shortestPath"
        | "subgraph" => {
            format!("the step `{name}` is not supported")
        }
        "profile" | "explain" => format!("`{name}` is the last step of a query, and takes nothing"),
        _ => format!("`{name}` is not a step of Gremlin"),
    };
    GremlinError::unsupported(why)
}
