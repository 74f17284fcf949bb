//! What was asked, before it means anything: calls by name, with their arguments.
//!
//! Text and bytecode both become it, so that nothing after it knows which of them a driver sent. It is not known yet whether
//! a step of that name exists, or takes such arguments.

use crate::{
    literal::Literal,
    tokens::{Cardinality, Token},
    value::Value,
};

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

/// What a predicate tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is what it is called")]
pub enum Test {
    Eq,
    Neq,
    Lt,
    Lte,
    Gt,
    Gte,
    Inside,
    Outside,
    Between,
    Within,
    Without,
    StartingWith,
    NotStartingWith,
    EndingWith,
    NotEndingWith,
    Containing,
    NotContaining,
    Regex,
    NotRegex,
    TypeOf,
}

impl Test {
    /// The test of a name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "eq" => Self::Eq,
            "neq" => Self::Neq,
            "lt" => Self::Lt,
            "lte" => Self::Lte,
            "gt" => Self::Gt,
            "gte" => Self::Gte,
            "inside" => Self::Inside,
            "outside" => Self::Outside,
            "between" => Self::Between,
            "within" => Self::Within,
            "without" => Self::Without,
            "startingWith" => Self::StartingWith,
            "notStartingWith" => Self::NotStartingWith,
            "endingWith" => Self::EndingWith,
            "notEndingWith" => Self::NotEndingWith,
            "containing" => Self::Containing,
            "notContaining" => Self::NotContaining,
            "regex" => Self::Regex,
            "notRegex" => Self::NotRegex,
            "typeOf" => Self::TypeOf,
            _ => return None,
        })
    }
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
