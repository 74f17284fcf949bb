//! What was asked, before it means anything: calls by name, with their arguments.
//!
//! Text and bytecode both become it, so that nothing after it knows which of them a driver sent. It is not known yet whether
//! a step of that name exists, or takes such arguments.

use std::collections::HashSet;

use hoplake_query::{
    literal::Literal,
    plan::Test,
    tokens::{Cardinality, Order, Token},
    value::Value,
};

/// How many arguments are as much work as a call.
const CALL_WEIGHT: usize = 8;

/// All statements of a text; a driver gets the results of the last one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Script {
    /// In their order.
    pub statements: Vec<Statement>,
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    /// `g.V()…`, and how its results are wanted.
    Traversal(Traversal, Terminal),
    /// `g.tx().commit()`
    Transaction(Transaction),
    /// A source of traversals alone, such as `g`, or an empty text: it has no results.
    Nothing,
}

/// A traversal from its source on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Traversal {
    /// What configures it: `withSack(…)`, `withStrategies(…)`.
    pub source: Vec<Call>,
    /// Its steps and their modulators.
    pub steps: Vec<Call>,
}

impl Script {
    /// Whether a statement calls a prepared query, so that it can be planned on a graph alone.
    pub fn calls(&self) -> bool {
        self.statements
            .iter()
            .any(|statement| matches!(statement, Statement::Traversal(traversal, _) if traversal.calls()))
    }

    /// About how long it takes to plan, as a number of arguments.
    pub fn weight(&self) -> usize {
        let count = |statement: &Statement| match statement {
            Statement::Traversal(traversal, _) => traversal.weight(),
            _ => 0,
        };
        self.statements.iter().map(count).sum()
    }
}

impl Traversal {
    pub(crate) fn calls(&self) -> bool {
        self.steps.first().is_some_and(|step| &*step.name == "call")
    }

    /// About how long it takes to plan, as a number of arguments.
    pub fn weight(&self) -> usize {
        let mut count = 0;
        let mut add = |part| count += if matches!(part, ScriptNode::Call(_)) { CALL_WEIGHT } else { 1 };
        visit(&self.source, &mut add);
        visit(&self.steps, &mut add);
        count
    }

    /// Whether two runs on one version of a graph may have different answers. The texts of calls are not looked at.
    pub(crate) fn varies(&self) -> bool {
        let mut varies = false;
        visit(&self.source, &mut |part| varies |= part.varies());
        visit(&self.steps, &mut |part| varies |= part.varies());
        varies
    }

    /// The names in it whose values come from elsewhere.
    pub(crate) fn names(&self) -> HashSet<&str> {
        let mut names = HashSet::new();
        self.visit_arguments(&mut |argument| {
            if let Argument::Name(name) = argument {
                names.insert(&**name);
            }
        });
        names
    }

    /// Visits all arguments, and those in them.
    pub(crate) fn visit_arguments<'a>(&'a self, to: &mut dyn FnMut(&'a Argument)) {
        let mut note = |part| {
            if let ScriptNode::Argument(argument) = part {
                to(argument);
            }
        };
        visit(&self.source, &mut note);
        visit(&self.steps, &mut note);
    }
}

/// A node of a script's syntax tree.
#[derive(Debug, Clone, Copy)]
enum ScriptNode<'a> {
    Call(&'a Call),
    Argument(&'a Argument),
}

impl ScriptNode<'_> {
    fn varies(self) -> bool {
        match self {
            Self::Call(call) => matches!(&*call.name, "coin" | "sample"),
            Self::Argument(argument) => {
                matches!(argument, Argument::Now | Argument::RandomUuid | Argument::Token(Token::Order(Order::Shuffle)))
            }
        }
    }
}

/// Visits calls and all that is in them. What nests is bounded where it is read.
fn visit<'a>(calls: &'a [Call], to: &mut dyn FnMut(ScriptNode<'a>)) {
    for call in calls {
        to(ScriptNode::Call(call));
        call.arguments.iter().for_each(|argument| visit_argument(argument, to));
    }
}

fn visit_argument<'a>(argument: &'a Argument, to: &mut dyn FnMut(ScriptNode<'a>)) {
    to(ScriptNode::Argument(argument));
    match argument {
        Argument::List(items) | Argument::Set(items) => items.iter().for_each(|item| visit_argument(item, to)),
        Argument::Map(entries) => {
            for (key, value) in entries {
                visit_argument(key, to);
                visit_argument(value, to);
            }
        }
        Argument::Traversal(calls) => visit(calls, to),
        Argument::Predicate(predicate) => visit_predicate(predicate, to),
        Argument::Cardinality(_, value) => visit_argument(value, to),
        Argument::Vertex(id, label) => {
            visit_argument(id, to);
            visit_argument(label, to);
        }
        Argument::Strategy(strategy) => strategy.options.iter().for_each(|(_, value)| visit_argument(value, to)),
        Argument::Literal(_)
        | Argument::Now
        | Argument::RandomUuid
        | Argument::Token(_)
        | Argument::Value(_)
        | Argument::Name(_) => {}
    }
}

fn visit_predicate<'a>(predicate: &'a Predicate, to: &mut dyn FnMut(ScriptNode<'a>)) {
    match predicate {
        Predicate::Test(_, arguments) => arguments.iter().for_each(|argument| visit_argument(argument, to)),
        Predicate::And(all) | Predicate::Or(all) => all.iter().for_each(|one| visit_predicate(one, to)),
        Predicate::Not(one) => visit_predicate(one, to),
    }
}

/// A step or a modulator: a name and its arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Its name.
    pub name: Box<str>,
    /// Its arguments.
    pub arguments: Vec<Argument>,
}

/// An argument of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// A scalar.
    Literal(Literal),
    /// `datetime()`: the time at which the query runs.
    Now,
    /// `UUID()`: a new one.
    RandomUuid,
    /// `[1, 2]`
    List(Vec<Argument>),
    /// `{1, 2}`
    Set(Vec<Argument>),
    /// `[a: 1, (T.id): 2]`
    Map(Vec<(Argument, Argument)>),
    /// `__.out()`, or the same without `__.`
    Traversal(Vec<Call>),
    /// `gt(1)`
    Predicate(Predicate),
    /// `desc`, `T.id`
    Token(Token),
    /// `set("a")`: a value with its cardinality
    Cardinality(Cardinality, Box<Argument>),
    /// `new Vertex(1, "person")`: its id and label
    Vertex(Box<Argument>, Box<Argument>),
    /// A value that only a driver can send: an edge, a path, a tree.
    Value(Box<Value>),
    /// `new SubgraphStrategy(vertices: __.has("age"))`
    Strategy(Strategy),
    /// A name whose value comes with the query, or that of a strategy.
    Name(Box<str>),
}

/// A strategy and what configures it.
#[derive(Debug, Clone, PartialEq)]
pub struct Strategy {
    /// Its name.
    pub name: Box<str>,
    /// Names and values.
    pub options: Vec<(Box<str>, Argument)>,
}

/// A test of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Predicate {
    /// `gt(1)`, `startingWith("a")`: a name and its arguments.
    Test(Test, Vec<Argument>),
    /// All of them.
    And(Vec<Predicate>),
    /// One of them.
    Or(Vec<Predicate>),
    /// Not it.
    Not(Box<Predicate>),
}

/// How the results of a traversal are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Terminal {
    /// All, one after another.
    #[default]
    All,
    /// The next one, or as many.
    Next(Option<u64>),
    /// The next one, if there is one.
    TryNext,
    /// Whether there is one.
    HasNext,
    /// As a list.
    List,
    /// Each once.
    Set,
    /// With their numbers.
    BulkSet,
    /// None: what counts is what it does.
    Iterate,
}

/// What is done with a session's transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is what it is called")]
pub enum Transaction {
    Begin,
    Commit,
    Rollback,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    #[test]
    fn what_is_drawn_or_timed_varies() {
        let varies = |query: &str| {
            let script = text::parse(query).unwrap();
            let Statement::Traversal(traversal, _) = &script.statements[0] else { panic!("{query}") };
            traversal.varies()
        };
        for query in [
            "g.V().coin(0.5)",
            "g.V().where(__.out().sample(1))",
            "g.V().order().by('name', shuffle)",
            "g.inject(datetime())",
            "g.V().has('at', lt(datetime()))",
            "g.V().has('at', within([1, datetime()]))",
            "g.V().choose(__.has('at', gt(datetime())), __.out())",
            "g.withStrategies(SubgraphStrategy(vertices: __.coin(0.5))).V()",
        ] {
            assert!(varies(query), "{query}");
        }
        assert!(!varies("g.V('coin').order().by('sample', desc).has('at', lt(datetime('2024-01-01T00:00:00Z')))"));
    }
}
