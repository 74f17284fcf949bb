//! What stands before the first step: `withSack(…)`, `with(…)`, `withStrategies(…)`.

use std::collections::HashSet;

use hoplake_query::{
    error::QueryError,
    plan::{Name, SideEffect},
    tokens::Token,
    value::Value,
};

use super::{
    arguments::Arguments,
    lowering::{Lowered, Lowering},
};
use crate::script::{Argument, Call};

impl Lowering<'_> {
    /// `with…` before the first step.
    pub(super) fn configure(&mut self, call: &Call) -> Lowered<()> {
        let names = self.names;
        let mut arguments = Arguments::new(call);
        match &*call.name {
            "withSack" => {
                let initial = names.value(arguments.need("a value")?)?;
                self.settings.sack_merge = match arguments.take() {
                    None => None,
                    Some(Argument::Token(Token::BinaryOperator(operator))) => Some(*operator),
                    Some(_) => {
                        return Err(
                            arguments.wrong("takes a value, and an operator such as `sum` that merges two sacks")
                        );
                    }
                };
                self.settings.sack = Some(initial);
            }
            "withSideEffect" => {
                let name = arguments.text(&names, "a name")?;
                let initial = names.value(arguments.need("a value")?)?;
                let reduce = match arguments.take() {
                    None => None,
                    Some(Argument::Token(Token::BinaryOperator(operator))) => Some(*operator),
                    Some(_) => return Err(arguments.wrong("takes an operator such as `addAll`")),
                };
                self.settings.side_effects.push(SideEffect { name, initial, reduce });
            }
            "withPath" => self.needs_paths(),
            "withBulk" => match names.value(arguments.need("true or false")?)? {
                Value::Boolean(bulk) => self.settings.without_bulk = !bulk,
                _ => return Err(arguments.wrong("takes true or false")),
            },
            "with" => {
                let name = arguments.text(&names, "the name of an option")?;
                let value = match arguments.take() {
                    Some(value) => names.value(value)?,
                    None => true.into(),
                };
                self.option(&name, value)?;
            }
            "withoutStrategies" => {
                arguments.rest();
            }
            "withStrategies" => {
                let strategies = arguments.rest();
                let has = |name: &str| strategies.iter().any(|argument| strategy_of(argument) == Some(name));
                if has("VertexProgramRestrictionStrategy") && has("VertexProgramStrategy") {
                    return Err(QueryError::invalid(
                        "The TraversalSource does not allow the use of a GraphComputer: it has VertexProgramRestrictionStrategy",
                    ));
                }
                for argument in strategies {
                    self.strategy(argument)?;
                }
            }
            name => return Err(QueryError::unsupported(format!("`{name}` is not supported before a traversal"))),
        }
        arguments.end()
    }

    fn option(&mut self, name: &str, value: Value) -> Lowered<()> {
        // TinkerPop keeps options that nothing asks for.
        if let ("evaluationTimeout" | "scriptEvaluationTimeout" | "timeoutMillis", Value::Number(number)) =
            (name, value)
        {
            self.settings.timeout_ms = u64::try_from(hoplake_query::value::to_i64(&number)).ok();
        }
        Ok(())
    }

    fn strategy(&mut self, argument: &Argument) -> Lowered<()> {
        let (name, options) = match argument {
            Argument::Strategy(strategy) => (&strategy.name, &strategy.options[..]),
            Argument::Name(name) => (name, &[][..]),
            _ => return Err(QueryError::invalid("`withStrategies` takes strategies")),
        };
        let value = |option: &str| -> Lowered<Option<Value>> {
            let found = options.iter().find(|(name, _)| &**name == option);
            found.map(|(_, argument)| self.names.value(argument)).transpose()
        };
        match &**name {
            "ReadOnlyStrategy" => self.settings.read_only = Some("the traversal has ReadOnlyStrategy".into()),
            "SeedStrategy" => match value("seed")? {
                Some(Value::Number(number)) => self.settings.seed = Some(hoplake_query::value::to_i64(&number)),
                _ => return Err(QueryError::invalid("SeedStrategy needs a number `seed`")),
            },
            "OptionsStrategy" => {
                for (name, argument) in options {
                    let value = self.names.value(argument)?;
                    self.option(name, value)?;
                }
            }
            "SubgraphStrategy" => return self.subgraph(options),
            "PartitionStrategy" => return self.partition(options),
            "ProductiveByStrategy" => {
                let keys = match value("productiveKeys")? {
                    Some(Value::List(keys) | Value::Set(keys)) => keys,
                    _ => Vec::new(),
                };
                self.settings.productive = Some(texts_of(keys));
            }
            "EdgeLabelVerificationStrategy" => {
                self.rejects_unlabelled = value("throwException")? == Some(true.into());
            }
            "ReservedKeysVerificationStrategy" => {
                if value("throwException")? == Some(true.into()) {
                    self.reserved = match value("keys")? {
                        Some(Value::List(keys) | Value::Set(keys)) => texts_of(keys),
                        _ => ["id".into(), "label".into()].into(),
                    };
                }
            }
            name if is_optimization(name) => {}
            name => return Err(QueryError::unsupported(format!("{name} is not supported"))),
        }
        Ok(())
    }
}

/// The texts among some values, as names.
fn texts_of(values: Vec<Value>) -> HashSet<Name> {
    let text = |value| match value {
        Value::Text(text) => Some(text.into()),
        _ => None,
    };
    values.into_iter().filter_map(text).collect()
}

/// The name of a strategy.
fn strategy_of(argument: &Argument) -> Option<&str> {
    match argument {
        Argument::Strategy(strategy) => Some(&strategy.name),
        Argument::Name(name) => Some(name),
        _ => None,
    }
}

/// Strategies that change how TinkerPop runs a traversal, and not what it gives.
fn is_optimization(name: &str) -> bool {
    matches!(
        name,
        "AdjacentToIncidentStrategy"
            | "ByModulatorOptimizationStrategy"
            | "CountStrategy"
            | "SideEffectStrategy"
            | "ProfileStrategy"
            | "GraphFilterStrategy"
            | "ComputerFinalizationStrategy"
            | "ElementIdStrategy"
            | "ConnectiveStrategy"
            | "EarlyLimitStrategy"
            | "FilterRankingStrategy"
            | "IdentityRemovalStrategy"
            | "IncidentToAdjacentStrategy"
            | "InlineFilterStrategy"
            | "LazyBarrierStrategy"
            | "MatchPredicateStrategy"
            | "MatchAlgorithmStrategy"
            | "OrderLimitStrategy"
            | "PathProcessorStrategy"
            | "PathRetractionStrategy"
            | "RepeatUnrollStrategy"
            | "StandardVerificationStrategy"
            | "ComputerVerificationStrategy"
            | "GValueReductionStrategy"
            | "HaltedTraverserStrategy"
            | "ReferenceElementStrategy"
            | "LambdaRestrictionStrategy"
            | "MessagePassingReductionStrategy"
            // It forbids what there is none of.
            | "VertexProgramRestrictionStrategy"
    )
}
