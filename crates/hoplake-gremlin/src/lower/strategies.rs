//! Strategies that restrict what a traversal sees: SubgraphStrategy and PartitionStrategy. They add conditions to every step that
//! leads to an element.

use std::sync::Arc;

use hoplake_query::{
    error::QueryError,
    operators::{Operator, conditions, maps, moves, sources, writes},
    plan::{By, Given, Merging, Name, NewKey, NewProperty, PlanStep, Predicate, Reaches, Steps, Test},
    tokens::{Direction, T},
    value::{Value, value_bytes},
};

use super::lowering::{Lowered, Lowering, Op, only, op};
use crate::script::Argument;

/// What a traversal sees.
#[derive(Debug, Clone, Default)]
pub(super) struct Restrictions {
    vertices: Vec<Steps>,
    edges: Vec<Steps>,
    properties: Vec<Steps>,
    /// Whether an edge is seen without both of its vertices.
    loose_edges: bool,
    /// The property that tells in which partition what is added is.
    partition: Option<(Name, Value)>,
}

impl Lowering<'_> {
    pub(super) fn subgraph(&mut self, options: &[(Box<str>, Argument)]) -> Lowered<()> {
        let mut restrictions = self.restrictions.take().unwrap_or_default();
        for (name, argument) in options {
            let into = match &**name {
                "vertices" => &mut restrictions.vertices,
                "edges" => &mut restrictions.edges,
                "vertexProperties" => &mut restrictions.properties,
                "checkAdjacentVertices" => {
                    restrictions.loose_edges = self.names.value(argument)? == Value::Boolean(false);
                    continue;
                }
                other => return Err(QueryError::unsupported(format!("SubgraphStrategy has no option {other:?}"))),
            };
            let Argument::Traversal(calls) = argument else {
                return Err(QueryError::invalid(format!("{name:?} of SubgraphStrategy is a traversal")));
            };
            into.push(self.steps(calls)?);
        }
        self.restrictions = Some(restrictions);
        Ok(())
    }

    pub(super) fn partition(&mut self, options: &[(Box<str>, Argument)]) -> Lowered<()> {
        let mut restrictions = self.restrictions.take().unwrap_or_default();
        let mut key = None;
        let mut write = None;
        let mut read = Vec::new();
        for (name, argument) in options {
            let value = self.names.value(argument)?;
            match (&**name, value) {
                ("partitionKey", Value::Text(text)) => key = Some(Name::from(text)),
                ("writePartition", value) => write = Some(value),
                ("readPartitions", Value::List(items) | Value::Set(items)) => read = items,
                ("includeMetaProperties", Value::Boolean(false)) => {}
                (other, _) => {
                    return Err(QueryError::unsupported(format!(
                        "PartitionStrategy has no option {other:?} of that value"
                    )));
                }
            }
        }
        let key = key.ok_or_else(|| QueryError::invalid("PartitionStrategy needs `partitionKey`"))?;
        let in_partition = only(conditions::Has {
            by: By::Property(key.clone()),
            predicate: Predicate::Test(Test::Within, read).into(),
        });
        restrictions.vertices.push(in_partition.clone());
        restrictions.edges.push(in_partition);
        // Unlike a subgraph, a partition has edges whose vertices are in another.
        restrictions.loose_edges |= restrictions.vertices.len() == 1;
        restrictions.partition = write.map(|partition| (key, partition));
        self.restrictions = Some(restrictions);
        Ok(())
    }

    /// Operators with the conditions of the strategies.
    pub(super) fn restricted(&self, operators: Vec<Op>) -> Lowered<Vec<Op>> {
        let Some(restrictions) = &self.restrictions else { return Ok(operators) };
        let mut all = Vec::with_capacity(operators.len());
        for operator in operators {
            self.makes(restrictions.conditions(&*operator))?;
            self.work.borrow_mut().takes(restrictions.written_bytes(&*operator))?;
            restrictions.add(operator, &mut all)?;
        }
        Ok(all)
    }
}

/// Whether an operator leads to vertices.
fn gives_vertices(operator: &dyn Operator) -> bool {
    operator.is::<sources::Vertices>()
        || operator.is::<moves::Ends>()
        || operator.is::<moves::OtherEnd>()
        || matches!(operator.get(), Some(moves::Hop { reaches: Reaches::Vertices, .. }))
}

/// Whether an operator leads to edges.
fn gives_edges(operator: &dyn Operator) -> bool {
    operator.is::<sources::Edges>() || matches!(operator.get(), Some(moves::Hop { reaches: Reaches::Edges, .. }))
}

impl Restrictions {
    /// How many steps an operator gets.
    fn conditions(&self, operator: &dyn Operator) -> usize {
        if operator.is::<moves::Hop>() || gives_edges(operator) {
            // An edge has two ends.
            2 + self.edges.len() + 2 * self.vertices.len()
        } else if gives_vertices(operator) {
            self.vertices.len()
        } else if operator.is::<maps::Properties>() || operator.is::<maps::Values>() {
            1 + self.properties.len()
        } else {
            0
        }
    }

    /// The bytes of the value that an operator gets to write.
    fn written_bytes(&self, operator: &dyn Operator) -> usize {
        let adds = operator.is::<writes::AddVertex>()
            || operator.is::<writes::AddEdge>()
            || operator.is::<writes::MergeVertex>()
            || operator.is::<writes::MergeEdge>();
        match &self.partition {
            Some((_, value)) if adds => size_of::<NewProperty>() + value_bytes(value),
            _ => 0,
        }
    }

    fn add(&self, operator: Op, all: &mut Vec<Op>) -> Lowered<()> {
        let through_edges = !self.edges.is_empty();
        if let Some(hop @ moves::Hop { reaches: Reaches::Vertices, .. }) = operator.get()
            && through_edges
        {
            all.push(op(moves::Hop { reaches: Reaches::Edges, ..hop.clone() }));
            all.extend(conditions_of(&self.edges));
            all.push(op(moves::OtherEnd));
            all.extend(conditions_of(&self.vertices));
        } else if gives_vertices(&*operator) {
            all.push(operator);
            all.extend(conditions_of(&self.vertices));
        } else if gives_edges(&*operator) {
            all.push(operator);
            all.extend(conditions_of(&self.edges));
            if !self.loose_edges && !self.vertices.is_empty() {
                for direction in [Direction::Out, Direction::In] {
                    let end = std::iter::once(op(moves::Ends { direction }));
                    let steps = end
                        .chain(conditions_of(&self.vertices))
                        .map(|operator| Arc::new(PlanStep::of(operator, Vec::new())));
                    all.push(op(conditions::Where { steps: steps.collect() }));
                }
            }
        } else if operator.is::<maps::Properties>() {
            all.push(operator);
            all.extend(conditions_of(&self.properties));
        } else if let Some(maps::Values { names }) = operator.get()
            && !self.properties.is_empty()
        {
            all.push(op(maps::Properties { names: names.clone() }));
            all.extend(conditions_of(&self.properties));
            all.push(op(maps::Token { token: T::Value }));
        } else if let Some(partition) = &self.partition {
            all.push(within_partition(operator, partition)?);
        } else {
            all.push(operator);
        }
        Ok(())
    }
}

/// An operator that writes into a partition. Values are not copied more often than they were counted.
fn within_partition(mut operator: Op, partition: &(Name, Value)) -> Lowered<Op> {
    let (key, value) = partition;
    let property =
        || NewProperty { cardinality: None, key: NewKey::Name(key.clone()), value: Given::Value(value.clone()) };
    // As a rule no one else has it yet, and nothing is copied.
    if Arc::get_mut(&mut operator).is_none() {
        operator = operator.copy().into();
    }
    let Some(written) = Arc::get_mut(&mut operator) else { return Ok(operator) };
    if let Some(add) = written.get_mut::<writes::AddVertex>() {
        add.properties.push(property());
    } else if let Some(add) = written.get_mut::<writes::AddEdge>() {
        add.properties.push(property());
    } else if let Some(merge) = written.get_mut::<writes::MergeVertex>() {
        seek_within(&mut merge.merging, partition)?;
    } else if let Some(merge) = written.get_mut::<writes::MergeEdge>() {
        seek_within(&mut merge.merging, partition)?;
    }
    Ok(operator)
}

fn seek_within(merging: &mut Merging, (key, value): &(Name, Value)) -> Lowered<()> {
    let Given::Value(Value::Map(entries)) = &mut merging.sought else {
        return Err(QueryError::unsupported("a merge within a partition takes a map, not a traversal"));
    };
    entries.push(((&**key).into(), value.clone()));
    Ok(())
}

fn conditions_of(all: &[Steps]) -> impl Iterator<Item = Op> + '_ {
    all.iter().map(|steps| op(conditions::Where { steps: steps.clone() }))
}

#[cfg(test)]
mod tests {
    use hoplake_format::PreparedQueries;
    use hoplake_storage::{MemoryBudget, QueryContext};

    use super::*;
    use crate::{
        lower::{Names, lower_within},
        prepared::Named,
        text,
    };
    use hoplake_query::plan::{ElementTest, Plan};

    fn planned(query: &str, bytes: u64) -> Result<Plan, String> {
        let names: [Named; 1] = [("x".into(), Value::from("x".repeat(100_000).as_str()))];
        let script = text::parse(query).unwrap();
        let crate::script::Statement::Traversal(traversal, _) = &script.statements[0] else { panic!("{query}") };
        let context = QueryContext::within(&MemoryBudget::new("the query", bytes));
        let plan = lower_within(traversal, Names(&names), &PreparedQueries::default(), &context);
        plan.map_err(|error| error.to_string())
    }

    /// A rule changes the conditions of each of them: they are a part of the hop, or read both properties together.
    #[test]
    fn values_of_conditions_are_there_once() {
        let vertices = "__.has('a', within(x)).has('b', 1)";
        let query = format!(
            "g.withStrategies(SubgraphStrategy(vertices: {vertices})).V('1'){}.outE()",
            ".out().map(__.in())".repeat(50)
        );
        fn seen(steps: &Steps, found: &mut Vec<Arc<Predicate>>) {
            for step in steps.iter() {
                if let Some(conditions::Has { by: By::Property(name), predicate }) = step.get() {
                    found.extend(Some(predicate.clone()).filter(|_| **name == *"a"));
                }
                if let Some(moves::HopWhere { conditions, .. }) = step.get() {
                    let tests = conditions.on_vertices.iter().flat_map(|condition| condition.formula.tests());
                    found.extend(tests.filter_map(|test| match test {
                        ElementTest::Property(name, predicate) if **name == *"a" => Some(predicate.clone()),
                        _ => None,
                    }));
                }
                step.operator.nested_steps().into_iter().for_each(|steps| seen(steps, found));
            }
        }
        let steps = planned(&query, 8 << 20).unwrap().steps;
        let mut found = Vec::new();
        seen(&steps, &mut found);
        // Of two of the last step the conditions are at its ends.
        assert_eq!(found.len(), 1 + 2 * 50 + 2);
        assert!(found.iter().all(|predicate| Arc::ptr_eq(predicate, &found[0])));
        assert!(steps[1].get().is_some_and(|conditions::Where { steps }| steps[0].together.names.len() == 2));
    }

    #[test]
    fn what_is_written_counts_for_each_step() {
        let partition = "PartitionStrategy(partitionKey: 'p', writePartition: x, readPartitions: ['a'])";
        for step in [".addV('a')", ".addE('a')", ".mergeV([a: 1])", ".mergeE([a: 1])"] {
            let query = format!("g.withStrategies({partition}).V('1'){}", step.repeat(300));
            assert!(planned(&query, 8 << 20).expect_err(step).contains("bytes of memory"), "{step}");
            planned(&query, 64 << 20).expect(step);
        }
        let query = format!("g.withStrategies({partition}).V('1'){}", ".property('a', 1)".repeat(300));
        planned(&query, 8 << 20).unwrap();
    }

    #[test]
    fn conditions_of_many_strategies_count_before_they_are_made() {
        // No rule changes these conditions, and counts them then.
        let strategies = "SubgraphStrategy(vertices: __.out()), ".repeat(200);
        for step in [".outE()", ".out()", ".both()", ".outV()", ".bothE()"] {
            let query = format!("g.withStrategies({strategies} ReadOnlyStrategy).V('1'){}", step.repeat(200));
            assert!(planned(&query, 32 << 20).expect_err(step).contains("bytes of memory"), "{step}");
            planned(&query, 512 << 20).expect(step);
        }
    }
}
