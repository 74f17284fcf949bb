//! Strategies that restrict what a traversal sees: SubgraphStrategy and PartitionStrategy. They add conditions to every step that
//! leads to an element.

use std::sync::Arc;

use hoplake_query::{
    error::QueryError,
    plan::{By, Given, Name, NewKey, NewProperty, Predicate, Reaches, Step, StepKind, Steps, Test},
    run::value_bytes,
    tokens::{Direction, T},
    value::Value,
};

use super::{Lowering, only};
use crate::script::Argument;

type Lowered<T> = Result<T, QueryError>;

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
        let (mut key, mut write, mut read) = (None, None, Vec::new());
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
        let in_partition = only(StepKind::Has(By::Property(key.clone()), Predicate::Test(Test::Within, read)));
        restrictions.vertices.push(in_partition.clone());
        restrictions.edges.push(in_partition);
        // Unlike a subgraph, a partition has edges whose vertices are in another.
        restrictions.loose_edges |= restrictions.vertices.len() == 1;
        restrictions.partition = write.map(|partition| (key, partition));
        self.restrictions = Some(restrictions);
        Ok(())
    }

    /// Steps with the conditions of the strategies.
    pub(super) fn restricted(&self, kinds: Vec<StepKind>) -> Lowered<Vec<StepKind>> {
        let Some(restrictions) = &self.restrictions else { return Ok(kinds) };
        let mut all = Vec::with_capacity(kinds.len());
        for kind in kinds {
            self.makes(restrictions.conditions(&kind))?;
            self.work.borrow_mut().takes(restrictions.written_bytes(&kind))?;
            restrictions.add(kind, &mut all)?;
        }
        Ok(all)
    }
}

impl Restrictions {
    /// How many steps a step gets.
    fn conditions(&self, kind: &StepKind) -> usize {
        match kind {
            StepKind::Vertices(_) | StepKind::Ends(_) | StepKind::OtherEnd => self.vertices.len(),
            // An edge has two ends.
            StepKind::Hop(..) | StepKind::Edges(_) => 2 + self.edges.len() + 2 * self.vertices.len(),
            StepKind::Properties(_) | StepKind::Values(_) => 1 + self.properties.len(),
            _ => 0,
        }
    }

    /// The bytes of the value that a step gets to write.
    fn written_bytes(&self, kind: &StepKind) -> usize {
        match (&self.partition, kind) {
            (
                Some((_, value)),
                StepKind::AddVertex(..) | StepKind::AddEdge(..) | StepKind::MergeVertex(_) | StepKind::MergeEdge(_),
            ) => size_of::<NewProperty>() + value_bytes(value),
            _ => 0,
        }
    }

    fn add(&self, mut kind: StepKind, all: &mut Vec<StepKind>) -> Lowered<()> {
        match &mut kind {
            StepKind::Vertices(_) | StepKind::Ends(_) | StepKind::OtherEnd => {
                all.push(kind);
                self.vertices(all);
            }
            StepKind::Hop(direction, labels, Reaches::Vertices) if !self.edges.is_empty() => {
                all.push(StepKind::Hop(*direction, std::mem::take(labels), Reaches::Edges));
                all.extend(self.edges.iter().cloned().map(StepKind::Where));
                all.push(StepKind::OtherEnd);
                self.vertices(all);
            }
            StepKind::Hop(_, _, Reaches::Vertices) => {
                all.push(kind);
                self.vertices(all);
            }
            StepKind::Hop(..) | StepKind::Edges(_) => {
                all.push(kind);
                all.extend(self.edges.iter().cloned().map(StepKind::Where));
                if !self.loose_edges && !self.vertices.is_empty() {
                    for end in [Direction::Out, Direction::In] {
                        let mut steps = vec![StepKind::Ends(end)];
                        self.vertices(&mut steps);
                        all.push(StepKind::Where(row(steps)));
                    }
                }
            }
            StepKind::Properties(_) => {
                all.push(kind);
                all.extend(self.properties.iter().cloned().map(StepKind::Where));
            }
            StepKind::Values(names) if !self.properties.is_empty() => {
                all.push(StepKind::Properties(std::mem::take(names)));
                all.extend(self.properties.iter().cloned().map(StepKind::Where));
                all.push(StepKind::Token(T::Value));
            }
            StepKind::AddVertex(_, properties) | StepKind::AddEdge(_, _, _, properties) => {
                properties.extend(self.partition.iter().map(|(key, partition)| NewProperty {
                    cardinality: None,
                    key: NewKey::Name(key.clone()),
                    value: Given::Value(partition.clone()),
                }));
                all.push(kind);
            }
            StepKind::MergeVertex(merging) | StepKind::MergeEdge(merging) => {
                if let Some((key, partition)) = &self.partition {
                    let Given::Value(Value::Map(entries)) = &mut merging.sought else {
                        return Err(QueryError::unsupported("a merge within a partition takes a map, not a traversal"));
                    };
                    entries.push(((&**key).into(), partition.clone()));
                }
                all.push(kind);
            }
            _ => all.push(kind),
        }
        Ok(())
    }

    fn vertices(&self, all: &mut Vec<StepKind>) {
        all.extend(self.vertices.iter().cloned().map(StepKind::Where));
    }
}

fn row(kinds: Vec<StepKind>) -> Steps {
    kinds.into_iter().map(|kind| Arc::new(Step::plain(kind))).collect()
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
    use hoplake_query::plan::Plan;

    fn planned(query: &str, bytes: u64) -> Result<Plan, String> {
        let names: [Named; 1] = [("x".into(), Value::from("x".repeat(100_000).as_str()))];
        let script = text::parse(query).unwrap();
        let crate::script::Statement::Traversal(traversal, _) = &script.statements[0] else { panic!("{query}") };
        let context = QueryContext::within(&MemoryBudget::new("the query", bytes));
        let plan = lower_within(traversal, Names(&names), &PreparedQueries::default(), &context);
        plan.map_err(|error| error.to_string())
    }

    /// A rule changes the conditions of each of them: it reads both properties together.
    #[test]
    fn values_of_conditions_are_there_once() {
        let vertices = "__.has('a', within(x)).has('b', 1)";
        let query = format!(
            "g.withStrategies(SubgraphStrategy(vertices: {vertices})).V('1'){}.outE()",
            ".out().map(__.in())".repeat(50)
        );
        fn conditions(steps: &Steps, found: &mut Vec<Steps>) {
            for step in steps.iter() {
                let mut kind = step.kind.clone();
                if let StepKind::Where(steps) = &kind
                    && let StepKind::Has(..) = &steps[0].kind
                {
                    found.push(steps.clone());
                }
                kind.for_each_nested(&mut |steps| conditions(steps, found));
            }
        }
        let mut found = Vec::new();
        conditions(&planned(&query, 8 << 20).unwrap().steps, &mut found);
        // Of two of the last step the conditions are at its ends.
        assert_eq!(found.len(), 1 + 2 * 50 + 2);
        assert_eq!(found[0][0].together.names.len(), 2);
        assert!(found.iter().all(|steps| Arc::ptr_eq(steps, &found[0])));
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
