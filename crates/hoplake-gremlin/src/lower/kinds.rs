//! What each call does: its name, its arguments and its modulators become a step.

use std::collections::HashSet;

use hoplake_query::{
    error::QueryError,
    plan::{
        By, Choice, Conversion, Formula, ListStep, Name, Predicate, Quantifier, Reaches, Reduction, StepKind, Test,
    },
    tokens::{Direction, Operator, Scope, T, Token},
    value::Value,
};

use super::{
    Lowered, Lowering,
    arguments::{Arguments, Bindings, refuse_many},
    modulators::Modulators,
};
use crate::script::{Argument, Call};

impl Lowering<'_> {
    /// What a call does, and the modulators that it takes.
    pub(super) fn kinds(
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
            // Drivers before 3.8 end `iterate()` with it.
            "none" if arguments.len() == 0 => one(StepKind::Discard),
            "none" => one(StepKind::Quantified(Quantifier::None, names.predicate(arguments.need("a predicate")?)?)),
            "simplePath" | "cyclicPath" => {
                self.needs_paths();
                let part = self.path_part(modulators)?;
                (vec![StepKind::SimplePath(&*call.name == "simplePath", part)], &["by", "from", "to"])
            }
            "coin" => match names.value(arguments.need("a probability")?)? {
                Value::Number(number) => one(StepKind::Coin(hoplake_query::value::to_f64(&number))),
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
                    by.push((By::Identity, hoplake_query::tokens::Order::Asc));
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
                Some(Argument::Token(Token::Barrier(_))) => one(StepKind::NormSack),
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
                let mut known = HashSet::new();
                if let Some(twice) = keys.iter().find(|key| !known.insert(*key)) {
                    return Err(arguments.wrong(&format!("has {twice:?} twice")));
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
            "subgraph" => one(StepKind::Subgraph(arguments.text(&names, "a name")?)),
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
            "pageRank" | "peerPressure" | "connectedComponent" => {
                (vec![self.computation(call, arguments, modulators)?], &["with"])
            }
            "shortestPath" => (vec![self.shortest_paths(modulators)?], &["with"]),
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
                    return Err(QueryError::ReadOnly(format!(
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
                refuse_many(&call.name, formula.variables().len(), "variables")?;
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
}

fn ids(arguments: &mut Arguments<'_>, names: &Bindings<'_>) -> Lowered<Option<Vec<Value>>> {
    match arguments.len() {
        0 => Ok(None),
        _ => arguments.flat_values(names).map(Some),
    }
}

fn hop(
    direction: Direction,
    reaches: Reaches,
    arguments: &mut Arguments<'_>,
    names: &Bindings<'_>,
) -> Lowered<StepKind> {
    Ok(StepKind::Hop(direction, arguments.texts(names, "the label of edges")?, reaches))
}

fn direction(arguments: &mut Arguments<'_>) -> Lowered<Direction> {
    match arguments.need("a direction")? {
        Argument::Token(Token::Direction(direction)) => Ok(*direction),
        _ => Err(arguments.wrong("takes a direction such as Direction.OUT")),
    }
}

/// One of some values, or a predicate.
fn one_of(arguments: &mut Arguments<'_>, names: &Bindings<'_>) -> Lowered<Predicate> {
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

fn range(name: &str, arguments: &mut Arguments<'_>, names: &Bindings<'_>) -> Lowered<StepKind> {
    let scope = arguments.scope();
    let positive = |number: i64| u64::try_from(number).ok();
    let (low, high) = match name {
        "limit" => (0, arguments.integer(names, "a number")?),
        "skip" => (arguments.integer(names, "a number")?, -1),
        _ => (arguments.integer(names, "a number")?, arguments.integer(names, "a number")?),
    };
    let low_number = positive(low).unwrap_or(0);
    if positive(high).is_some_and(|high| high < low_number) {
        return Err(QueryError::invalid(format!("Not a legal range: [{low}, {high}]")));
    }
    Ok(StepKind::Range(scope, low_number, positive(high)))
}

fn operator(arguments: &mut Arguments<'_>) -> Lowered<Operator> {
    match arguments.need("an operator")? {
        Argument::Token(Token::Operator(operator)) => Ok(*operator),
        _ => Err(arguments.wrong("takes an operator such as `sum`")),
    }
}

fn side_effect(arguments: &mut Arguments<'_>, names: &Bindings<'_>) -> Lowered<Option<Name>> {
    match arguments.len() {
        0 => Ok(None),
        _ => arguments.text(names, "the name of a side effect").map(Some),
    }
}

fn unknown(name: &str) -> QueryError {
    let why = match name {
        "call" => "`call` begins a traversal, and a prepared query cannot call another".to_owned(),
        "io" | "read" | "write" | "program" => format!("the step `{name}` is not supported"),
        "profile" | "explain" => format!("`{name}` is the last step of a query, and takes nothing"),
        _ => format!("`{name}` is not a step of Gremlin"),
    };
    QueryError::unsupported(why)
}
