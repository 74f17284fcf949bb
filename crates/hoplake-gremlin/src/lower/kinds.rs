//! What each call does: its name, its arguments and its modulators become a step.

use std::collections::HashSet;

use hoplake_query::{
    error::QueryError,
    operators::{
        Operator, branches, conditions, maps, moves, reductions,
        scalars::{self, Conversion, ListStep},
        side_effects, sources, traverser, within,
    },
    plan::{By, Choice, Formula, Name, Predicate, Quantifier, Reaches, Reduction, Test},
    tokens::{BinaryOperator, Direction, Scope, T, Token},
    value::Value,
};

use super::{
    arguments::{Arguments, Bindings, reject_many},
    lowering::{Lowered, Lowering, Op, op},
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
    ) -> Lowered<(Vec<Op>, &'static [&'static str])> {
        let names = self.names;
        Ok(match &*call.name {
            "V" => one(sources::Vertices { ids: ids(arguments, &names)?, labels: Vec::new() }),
            "E" => one(sources::Edges { ids: ids(arguments, &names)? }),
            "inject" => {
                let values = arguments.rest().iter().map(|it| names.value(it)).collect::<Lowered<_>>()?;
                one(sources::Inject { values })
            }
            "out" => one(hop(Direction::Out, Reaches::Vertices, arguments, &names)?),
            "in" => one(hop(Direction::In, Reaches::Vertices, arguments, &names)?),
            "both" => one(hop(Direction::Both, Reaches::Vertices, arguments, &names)?),
            "outE" => one(hop(Direction::Out, Reaches::Edges, arguments, &names)?),
            "inE" => one(hop(Direction::In, Reaches::Edges, arguments, &names)?),
            "bothE" => one(hop(Direction::Both, Reaches::Edges, arguments, &names)?),
            "to" => one(hop(direction(arguments)?, Reaches::Vertices, arguments, &names)?),
            "toE" => one(hop(direction(arguments)?, Reaches::Edges, arguments, &names)?),
            "toV" => one(moves::Ends { direction: direction(arguments)? }),
            "outV" => one(moves::Ends { direction: Direction::Out }),
            "inV" => one(moves::Ends { direction: Direction::In }),
            "bothV" => one(moves::Ends { direction: Direction::Both }),
            // An edge of a query always knows from which end it was reached.
            "otherV" => one(moves::OtherEnd),
            "element" => one(moves::Element),

            "has" => (vec![self.has(arguments)?], &[]),
            "hasLabel" => {
                one(conditions::Has { by: By::Token(T::Label), predicate: one_of(arguments, &names)?.into() })
            }
            "hasId" => one(conditions::Has { by: By::Token(T::Id), predicate: one_of(arguments, &names)?.into() }),
            "hasKey" => one(conditions::HasKey { predicate: one_of(arguments, &names)? }),
            "hasValue" => one(conditions::HasValue { predicate: one_of(arguments, &names)? }),
            "hasNot" => one(conditions::HasNot { name: arguments.text(&names, "the name of a property")? }),
            "is" => {
                let predicate = names.predicate(arguments.need("a value or a predicate")?)?;
                one(conditions::Is { predicate: predicate.into() })
            }
            "where" => (vec![self.where_(arguments, modulators)?], &["by"]),
            "filter" => match arguments.need("a traversal")? {
                predicate @ Argument::Predicate(_) => {
                    one(conditions::Is { predicate: names.predicate(predicate)?.into() })
                }
                argument => one(conditions::Where { steps: self.steps_of(arguments, argument)? }),
            },
            "not" => {
                let argument = arguments.need("a traversal")?;
                one(conditions::Not { steps: self.steps_of(arguments, argument)? })
            }
            "and" => one(conditions::And { all: self.all_steps(arguments)? }),
            "or" => one(conditions::Or { any: self.all_steps(arguments)? }),
            "all" => one(conditions::Quantified {
                quantifier: Quantifier::All,
                predicate: names.predicate(arguments.need("a predicate")?)?,
            }),
            "any" => one(conditions::Quantified {
                quantifier: Quantifier::Any,
                predicate: names.predicate(arguments.need("a predicate")?)?,
            }),
            // Drivers before 3.8 end `iterate()` with it.
            "none" if arguments.len() == 0 => one(conditions::Discard),
            "none" => one(conditions::Quantified {
                quantifier: Quantifier::None,
                predicate: names.predicate(arguments.need("a predicate")?)?,
            }),
            "simplePath" | "cyclicPath" => {
                self.needs_paths();
                let part = self.path_part(modulators)?;
                (vec![op(traverser::SimplePath { simple: &*call.name == "simplePath", part })], &["by", "from", "to"])
            }
            "coin" => match names.value(arguments.need("a probability")?)? {
                Value::Number(number) => one(conditions::Coin { probability: hoplake_query::value::to_f64(&number) }),
                _ => return Err(arguments.wrong("takes a number")),
            },
            "discard" => one(conditions::Discard),

            "limit" | "range" | "skip" => (vec![range(&call.name, arguments, &names)?], &[]),
            "tail" => {
                let scope = arguments.scope();
                let count = if arguments.len() == 0 { 1 } else { arguments.integer(&names, "a number")? };
                let count = u64::try_from(count).unwrap_or(0);
                (
                    vec![match scope {
                        Scope::Global => op(reductions::Tail { count }),
                        Scope::Local => op(within::TailWithin { count }),
                    }],
                    &[],
                )
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
                (
                    vec![match scope {
                        Scope::Global => op(reductions::Dedup { names: labels, by }),
                        Scope::Local => op(within::DedupWithin { by }),
                    }],
                    &["by"],
                )
            }
            "order" => {
                let scope = arguments.scope();
                let mut by = modulators.by.iter().map(|by| self.sorting(by)).collect::<Lowered<Vec<_>>>()?;
                if by.is_empty() {
                    by.push((By::Identity, hoplake_query::tokens::Order::Asc));
                }
                (
                    vec![match scope {
                        Scope::Global => op(reductions::Order { sortings: by }),
                        Scope::Local => op(within::OrderWithin { sortings: by }),
                    }],
                    &["by"],
                )
            }
            "sample" => {
                let scope = arguments.scope();
                let count = arguments.integer(&names, "a number")?;
                let by = self.by(&modulators.by, "Sample")?;
                let count = u64::try_from(count).unwrap_or(0);
                (
                    vec![match scope {
                        Scope::Global => op(reductions::Sample { count, by }),
                        Scope::Local => op(within::SampleWithin { count, by }),
                    }],
                    &["by"],
                )
            }
            "barrier" => match arguments.take() {
                Some(Argument::Token(Token::Barrier(_))) => one(traverser::NormSack),
                _ => one(reductions::Barrier),
            },

            "values" => one(maps::Values { names: arguments.properties(&names)? }),
            "properties" => one(maps::Properties { names: arguments.properties(&names)? }),
            "propertyMap" => one(maps::PropertyMap { names: arguments.properties(&names)? }),
            "elementMap" => one(maps::ElementMap { names: arguments.properties(&names)? }),
            "valueMap" => (vec![self.value_map(arguments, modulators)?], &["by", "with"]),
            "id" => one(maps::Token { token: T::Id }),
            "label" => one(maps::Token { token: T::Label }),
            "key" => one(maps::Token { token: T::Key }),
            "value" => one(maps::Token { token: T::Value }),
            "constant" => one(maps::Constant { value: names.value(arguments.need("a value")?)? }),
            "identity" => one(traverser::Identity),
            "loops" => {
                let name = match arguments.len() {
                    0 => None,
                    _ => Some(arguments.text(&names, "the name of a loop")?),
                };
                one(traverser::Loops { name })
            }
            "path" => {
                self.needs_paths();
                (vec![op(traverser::Path { part: self.path_part(modulators)? })], &["by", "from", "to"])
            }
            "select" => (vec![self.select(arguments, modulators)?], &["by"]),
            "project" => {
                let keys = arguments.texts(&names, "a name")?;
                let mut known = HashSet::new();
                if let Some(twice) = keys.iter().find(|key| !known.insert(*key)) {
                    return Err(arguments.wrong(&format!("has {twice:?} twice")));
                }
                (vec![op(maps::Project { names: keys, by: self.bys(&modulators.by)? })], &["by"])
            }
            "map" => {
                let argument = arguments.need("a traversal")?;
                one(branches::Map { steps: self.steps_of(arguments, argument)? })
            }
            "flatMap" => {
                let argument = arguments.need("a traversal")?;
                one(branches::FlatMap { steps: self.steps_of(arguments, argument)? })
            }
            "local" => {
                let argument = arguments.need("a traversal")?;
                one(branches::Local { steps: self.steps_of(arguments, argument)? })
            }
            "unfold" => one(maps::Unfold),
            "index" => (vec![self.index(modulators)?], &["with"]),
            "fold" => match arguments.take() {
                None => one(reductions::Fold { join: None }),
                Some(seed) => {
                    let seed = names.value(seed)?;
                    let operator = operator(arguments)?;
                    one(reductions::Fold { join: Some((seed, operator)) })
                }
            },
            "count" => (vec![reduce(Reduction::Count, arguments)], &[]),
            "sum" => (vec![reduce(Reduction::Sum, arguments)], &[]),
            "min" => (vec![reduce(Reduction::Min, arguments)], &[]),
            "max" => (vec![reduce(Reduction::Max, arguments)], &[]),
            "mean" => (vec![reduce(Reduction::Mean, arguments)], &[]),
            "group" => {
                let name = side_effect(arguments, &names)?;
                let mut by = self.bys(&modulators.by)?;
                if by.len() > 2 {
                    return Err(arguments.wrong("takes two `by` at most"));
                }
                let value = if by.len() == 2 { by.pop().unwrap_or(By::Identity) } else { By::Identity };
                let key = by.pop().unwrap_or(By::Identity);
                (vec![op(reductions::Group { name, key, value })], &["by"])
            }
            "groupCount" => {
                let name = side_effect(arguments, &names)?;
                (vec![op(reductions::GroupCount { name, by: self.by(&modulators.by, "GroupCount")? })], &["by"])
            }
            "tree" => {
                self.needs_paths();
                let name = side_effect(arguments, &names)?;
                (vec![op(reductions::Tree { name, by: self.bys(&modulators.by)? })], &["by"])
            }
            "subgraph" => one(side_effects::Subgraph { name: arguments.text(&names, "a name")? }),
            "sack" => match arguments.len() {
                0 => one(traverser::Sack),
                _ => {
                    let operator = operator(arguments)?;
                    (vec![op(traverser::SackWith { operator, by: self.by(&modulators.by, "Sack")? })], &["by"])
                }
            },

            "match" => (vec![self.matching(arguments.rest())?], &[]),
            "repeat" => (vec![self.repeat(arguments, modulators)?], &["times", "until", "emit"]),
            "union" => one(branches::Union { branches: self.all_steps(arguments)? }),
            "coalesce" => one(branches::Coalesce { branches: self.all_steps(arguments)? }),
            "optional" => {
                let argument = arguments.need("a traversal")?;
                one(branches::Optional { steps: self.steps_of(arguments, argument)? })
            }
            "choose" => (vec![self.choose(arguments, modulators)?], &["option"]),
            "branch" => {
                let argument = arguments.need("a traversal")?;
                let by = self.by_of(arguments, argument)?;
                let cases = modulators.options.iter().map(|call| self.case(call)).collect::<Lowered<_>>()?;
                (vec![op(branches::Choose { choice: Choice::By(by), cases, all: true })], &["option"])
            }

            "aggregate" => {
                let scope = arguments.scope();
                let name = arguments.text(&names, "the name of a side effect")?;
                let by = self.by(&modulators.by, "Aggregate")?;
                (
                    vec![match scope {
                        Scope::Global => op(side_effects::Aggregate { name, by }),
                        Scope::Local => op(side_effects::AggregateEach { name, by }),
                    }],
                    &["by"],
                )
            }
            "store" => {
                let name = arguments.text(&names, "the name of a side effect")?;
                let by = self.by(&modulators.by, "Aggregate")?;
                (vec![op(side_effects::AggregateEach { name, by })], &["by"])
            }
            "cap" => {
                let keys = arguments.texts(&names, "the name of a side effect")?;
                if keys.is_empty() {
                    return Err(arguments.wrong("needs the name of a side effect"));
                }
                one(side_effects::Cap { names: keys })
            }
            "sideEffect" => {
                let argument = arguments.need("a traversal")?;
                one(side_effects::SideEffect { steps: self.steps_of(arguments, argument)? })
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
                one(side_effects::Fail { message })
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
            "combine" => one(scalars::Lists { step: ListStep::Combine, other: self.list(arguments)? }),
            "merge" => one(scalars::Lists { step: ListStep::Merge, other: self.list(arguments)? }),
            "difference" => one(scalars::Lists { step: ListStep::Difference, other: self.list(arguments)? }),
            "disjunct" => one(scalars::Lists { step: ListStep::Disjunct, other: self.list(arguments)? }),
            "intersect" => one(scalars::Lists { step: ListStep::Intersect, other: self.list(arguments)? }),
            "product" => one(scalars::Lists { step: ListStep::Product, other: self.list(arguments)? }),
            "conjoin" => match arguments.text_or_null(&names, "a delimiter")? {
                Some(delimiter) => one(scalars::Conjoin { delimiter }),
                None => return Err(arguments.wrong("takes a text as delimiter")),
            },
            "asString" => one(scalars::Convert { scope: arguments.scope(), conversion: Conversion::String }),
            "asNumber" => match arguments.take() {
                None => one(scalars::Convert { scope: Scope::Global, conversion: Conversion::Number(None) }),
                Some(Argument::Token(Token::GType(kind))) => {
                    one(scalars::Convert { scope: Scope::Global, conversion: Conversion::Number(Some(*kind)) })
                }
                Some(_) => return Err(arguments.wrong("takes a type such as GType.INT")),
            },
            "asDate" => one(scalars::Convert { scope: Scope::Global, conversion: Conversion::Date }),
            "math" => {
                self.needs_labels();
                let formula = Box::new(Formula::parse(&arguments.text(&names, "a formula")?)?);
                reject_many(&call.name, formula.variables().len(), "variables")?;
                (vec![op(scalars::Math { formula, by: self.bys(&modulators.by)? })], &["by"])
            }
            "asBool" => one(scalars::Convert { scope: Scope::Global, conversion: Conversion::Boolean }),
            "dateAdd" => match arguments.need("a unit of time")? {
                Argument::Token(Token::Dt(unit)) => {
                    one(scalars::DateAdd { unit: *unit, count: arguments.integer(&names, "a number")? })
                }
                _ => return Err(arguments.wrong("takes a unit of time such as DT.day")),
            },
            "dateDiff" => {
                let other = arguments.need("a point in time")?;
                one(scalars::DateDiff { other: self.given(other)? })
            }
            name => return Err(unknown(name)),
        })
    }
}

/// A step of one operator, which takes no modulators.
fn one(operator: impl Operator) -> (Vec<Op>, &'static [&'static str]) {
    (vec![op(operator)], &[])
}

fn reduce(reduction: Reduction, arguments: &mut Arguments<'_>) -> Op {
    match arguments.scope() {
        Scope::Global => op(reductions::Reduce { reduction }),
        Scope::Local => op(within::ReduceWithin { reduction }),
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
) -> Lowered<moves::Hop> {
    Ok(moves::Hop { direction, labels: arguments.texts(names, "the label of edges")?, reaches })
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

fn range(name: &str, arguments: &mut Arguments<'_>, names: &Bindings<'_>) -> Lowered<Op> {
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
    let low = low_number;
    let high = positive(high);
    Ok(match scope {
        Scope::Global => op(reductions::Range { low, high }),
        Scope::Local => op(within::RangeWithin { low, high }),
    })
}

fn operator(arguments: &mut Arguments<'_>) -> Lowered<BinaryOperator> {
    match arguments.need("an operator")? {
        Argument::Token(Token::BinaryOperator(operator)) => Ok(*operator),
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
