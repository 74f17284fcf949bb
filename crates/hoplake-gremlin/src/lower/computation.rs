//! Steps over the whole graph: `pageRank`, `peerPressure`, `connectedComponent`, `shortestPath`, and what `with` says of them.

use std::sync::Arc;

use hoplake_query::{
    error::QueryError,
    operators::moves::{Compute, Hop, Program, ShortestPaths},
    plan::{By, Given, Name, PlanStep, Reaches},
    tokens::{Direction, Token},
    value::{Value, to_f64, to_i64},
};

use super::{
    arguments::Arguments,
    lowering::{Lowered, Lowering, Op, op},
    modulators::Modulators,
};
use crate::script::Call;

/// What TinkerPop's programs take by default.
const DAMPING: f64 = 0.85;
const PAGE_RANK_TIMES: usize = 20;
const PEER_PRESSURE_TIMES: usize = 30;

impl Lowering<'_> {
    /// A computation whose result is a property.
    pub(super) fn computation(
        &mut self,
        call: &Call,
        arguments: &mut Arguments<'_>,
        modulators: &Modulators<'_>,
    ) -> Lowered<Op> {
        let step = &*call.name;
        if self.restrictions.is_some() {
            return Err(QueryError::unsupported(format!(
                "`{step}` is over the whole graph, and a strategy of the traversal shows it a part"
            )));
        }
        let (mut program, property, direction) = match step {
            "pageRank" => {
                let damping = match arguments.take() {
                    Some(argument) => fraction(&self.names.value(argument)?).ok_or_else(|| {
                        arguments.wrong("takes a number from 0 to 1: the part of its rank that a vertex passes on")
                    })?,
                    None => DAMPING,
                };
                (Program::PageRank(damping, PAGE_RANK_TIMES), "gremlin.pageRankVertexProgram.pageRank", Direction::Out)
            }
            "peerPressure" => {
                let program = Program::PeerPressure(PEER_PRESSURE_TIMES);
                (program, "gremlin.peerPressureVertexProgram.cluster", Direction::Out)
            }
            _ => {
                let property = "gremlin.connectedComponentVertexProgram.component";
                (Program::ConnectedComponent, property, Direction::Both)
            }
        };
        let mut property = Name::from(property);
        let mut edges = (direction, Vec::new());
        for (option, value) in self.options(&modulators.with)? {
            match (option_of(step, &option), value) {
                (Some("propertyName"), Given::Value(Value::Text(name))) => property = name.into(),
                (Some("edges"), value) => edges = along(step, value)?,
                (Some("times"), Given::Value(value)) => match &mut program {
                    Program::PageRank(_, times) | Program::PeerPressure(times) => *times = number_of_times(&value)?,
                    Program::ConnectedComponent => return Err(no_option(step, &option)),
                },
                _ => return Err(no_option(step, &option)),
            }
        }
        Ok(op(Compute { program, property, edges, from_traversers: false }))
    }

    pub(super) fn shortest_paths(&mut self, modulators: &Modulators<'_>) -> Lowered<Op> {
        let step = "shortestPath";
        let mut target = None;
        let mut distance = None;
        let mut distance_max = None;
        let mut with_edges = false;
        let mut edges = None;
        for (option, value) in self.options(&modulators.with)? {
            match (option_of(step, &option), value) {
                (Some("target"), Given::Steps(steps)) => target = Some(steps),
                (Some("edges"), Given::Steps(steps)) => edges = Some(steps),
                (Some("edges"), Given::Value(Value::Token(Token::Direction(direction)))) => {
                    edges = Some(self.edges(direction)?);
                }
                (Some("distance"), Given::Steps(steps)) => distance = Some(By::Steps(steps)),
                (Some("distance"), Given::Value(Value::Text(name))) => distance = Some(By::Property(name.into())),
                (Some("maxDistance"), Given::Value(Value::Number(number))) => distance_max = Some(to_f64(&number)),
                (Some("includeEdges"), Given::Value(Value::Boolean(include))) => with_edges = include,
                _ => return Err(no_option(step, &option)),
            }
        }
        let edges = match edges {
            Some(edges) => edges,
            None => self.edges(Direction::Both)?,
        };
        Ok(op(ShortestPaths { target, edges, distance, distance_max, with_edges }))
    }

    /// All edges in a direction that the traversal may see.
    fn edges(&self, direction: Direction) -> Lowered<super::Steps> {
        let hop = Hop { direction, labels: Vec::new(), reaches: Reaches::Edges };
        let operators = self.restricted(vec![op(hop)])?;
        Ok(operators.into_iter().map(|operator| Arc::new(PlanStep::of(operator, Vec::new()))).collect())
    }
}

/// The name of an option after that of its step.
fn option_of<'a>(step: &str, option: &'a str) -> Option<&'a str> {
    option.strip_prefix("~tinkerpop.")?.strip_prefix(step)?.strip_prefix('.')
}

fn no_option(step: &str, option: &str) -> QueryError {
    QueryError::invalid(format!("`{step}` has no option {option:?} of that value"))
}

/// The edges that a computation goes along.
fn along(step: &str, value: Given) -> Lowered<(Direction, Vec<Name>)> {
    if let Given::Steps(steps) = value
        && let [only] = &steps[..]
        && let Some(Hop { direction, labels, reaches: Reaches::Edges }) = only.get()
    {
        return Ok((*direction, labels.clone()));
    }
    Err(QueryError::unsupported(format!(
        "`{step}` goes along `outE`, `inE` or `bothE` of some labels, and along no other edges"
    )))
}

fn fraction(value: &Value) -> Option<f64> {
    let Value::Number(number) = value else { return None };
    Some(to_f64(number)).filter(|fraction| (0.0..=1.0).contains(fraction))
}

fn number_of_times(value: &Value) -> Lowered<usize> {
    let times = match value {
        Value::Number(number) => usize::try_from(to_i64(number)).ok(),
        _ => None,
    };
    times.ok_or_else(|| QueryError::invalid("`times` takes a number from 0 on"))
}

#[cfg(test)]
mod tests {
    use hoplake_query::plan::Plan;

    use super::*;
    use crate::lower::{Names, lower};

    fn plan(query: &str) -> Result<Plan, QueryError> {
        let script = crate::text::parse(query).unwrap();
        let crate::script::Statement::Traversal(traversal, _) = &script.statements[0] else { panic!("{query}") };
        lower(traversal, Names::default())
    }

    fn computations(query: &str) -> Vec<Compute> {
        plan(query).unwrap().steps.iter().filter_map(|step| step.get::<Compute>().cloned()).collect()
    }

    #[test]
    fn options_are_read() {
        let query = "g.V().pageRank(0.5).with(PageRank.times, 3).with(PageRank.propertyName, 'r').with(PageRank.edges, inE('a'))";
        let [computation] = &computations(query)[..] else { panic!("{query}") };
        assert_eq!(computation.program, Program::PageRank(0.5, 3));
        assert_eq!(&*computation.property, "r");
        assert_eq!(computation.edges, (Direction::In, vec!["a".into()]));
    }

    #[test]
    fn what_stands_before_says_where_it_begins() {
        let from_traversers = |query| computations(query).iter().map(|it| it.from_traversers).collect::<Vec<_>>();
        assert_eq!(from_traversers("g.V().pageRank().peerPressure()"), [false, false]);
        assert_eq!(from_traversers("g.V(1).connectedComponent()"), [false]);
        assert_eq!(from_traversers("g.V().hasLabel('a').pageRank()"), [true]);
    }

    #[test]
    fn other_options_are_rejected() {
        let rejected = |query: &str| plan(query).unwrap_err().to_string();
        assert!(rejected("g.V().pageRank(2)").contains("from 0 to 1"));
        assert!(rejected("g.V().pageRank().with(PageRank.times, -1)").contains("from 0 on"));
        assert!(rejected("g.V().pageRank().with(PageRank.edges, outE().has('a'))").contains("no other edges"));
        assert!(rejected("g.V().connectedComponent().with(PageRank.times, 1)").contains("has no option"));
        assert!(rejected("g.V().shortestPath().with(ShortestPath.maxDistance, 'a')").contains("has no option"));
        let within = "g.withStrategies(new SubgraphStrategy(vertices: hasLabel('a'))).V().pageRank()";
        assert!(rejected(within).contains("a part"));
    }
}
