//! What a query means: typed steps, without the names and shapes of Gremlin's syntax.
//!
//! A language is lowered to it, and refuses what is not supported.

mod explain;
mod formula;
mod nested;
mod pattern;
mod predicate;
mod rules;
mod work;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use crate::{
    error::QueryError,
    tokens::{Cardinality, Column, Direction, Dt, GType, Operator, Order, Pick, Pop, Scope, T, Token},
    value::{Key, Value},
};

pub(crate) use self::predicate::every;
pub use self::{
    explain::explain,
    formula::Formula,
    pattern::Pattern,
    predicate::{Predicate, Test, units},
    rules::{TOGETHER_NAMES_MAX, apply as apply_rules},
    work::{STEP_BYTES, Work},
};

/// A name that is shared by all that use it.
pub type Name = Arc<str>;

/// Steps, one after another.
pub type Steps = Arc<[Arc<Step>]>;

/// A traversal that can be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Its steps.
    pub steps: Steps,
    /// How all of them run.
    pub settings: Settings,
}

/// What a traversal's source says of all of its steps.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// Which part of a traverser's path is kept.
    pub paths: Paths,
    /// What each traverser carries at the beginning.
    pub sack: Option<Value>,
    /// What becomes of two sacks when a barrier makes one traverser of two.
    pub sack_merge: Option<Operator>,
    /// Whether equal traversers count as one once a barrier has merged them.
    pub without_bulk: bool,
    /// Side effects that are there from the beginning.
    pub side_effects: Vec<SideEffect>,
    /// Why steps that write are refused, if they are.
    pub read_only: Option<Name>,
    /// Side effects that steps collect: they are empty before the first value.
    pub collected: Vec<(Name, Collects)>,
    /// Whether a `by` without a value has `null`, but for properties of some names.
    pub productive: Option<HashSet<Name>>,
    /// What random steps begin with.
    pub seed: Option<i64>,
    /// Milliseconds.
    pub timeout_ms: Option<u64>,
    /// Bytes that the plan takes, and what runs it.
    pub plan_bytes: u64,
    /// Whether a step writes.
    pub writes: bool,
    /// Whether what each step took is the result, and not its results.
    pub profile: bool,
    /// Whether it may have another answer on the same version: random steps, the time.
    pub varies: bool,
}

/// Which part of a traverser's path is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Paths {
    /// None.
    #[default]
    Unused,
    /// The steps that have labels.
    Labelled,
    /// All of it.
    Whole,
}

/// What steps collect under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collects {
    /// Values.
    Values,
    /// Groups or counts.
    Map,
    /// A tree.
    Tree,
    /// A graph.
    Graph,
}

/// A side effect that is there from the beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct SideEffect {
    /// Its name.
    pub name: Name,
    /// Its value.
    pub initial: Value,
    /// What is done with it and a value that a step adds.
    pub reduce: Option<Operator>,
}

/// A step, and the labels of what it gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What it does.
    pub kind: StepKind,
    /// Its labels.
    pub labels: Vec<Name>,
    /// What is read before it.
    pub together: Together,
}

/// What a step and those behind it need of the same elements, and is read in one wave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Together {
    /// Properties.
    pub names: Vec<Name>,
    /// Whether all properties are.
    pub all: bool,
    /// Whether the elements are results of the query: their ids are read, and their properties if the caller wants them.
    pub results: bool,
}

impl Step {
    /// A step of some labels.
    pub fn new(kind: StepKind, labels: Vec<Name>) -> Self {
        Self { kind, labels, together: Together::default() }
    }

    /// A step without labels.
    pub fn plain(kind: StepKind) -> Self {
        Self::new(kind, Vec::new())
    }
}

/// What a hop leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaches {
    /// The vertices at the other ends.
    Vertices,
    /// The edges themselves.
    Edges,
}

/// What a step computes for each of its results.
#[derive(Debug, Clone, PartialEq)]
pub enum By {
    /// The result itself.
    Identity,
    /// A property of it, or an entry if it is a map.
    Property(Name),
    /// Its id, label, key or value.
    Token(T),
    /// The keys or values of a map.
    Column(Column),
    /// What a traversal gives first.
    Steps(Steps),
}

/// What is sorted by, and in which order.
pub type Sorting = (By, Order);

/// A value that is known before the query runs, or that a traversal gives for each traverser.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    /// A value.
    Value(Value),
    /// What a traversal gives first.
    Steps(Steps),
}

/// A property that is to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct NewProperty {
    /// How many values of this name there may be.
    pub cardinality: Option<Cardinality>,
    /// Its name, or which part of the element it is.
    pub key: NewKey,
    /// Its value.
    pub value: Given,
}

/// What is written of an element.
#[derive(Debug, Clone, PartialEq)]
pub enum NewKey {
    /// A property.
    Name(Name),
    /// Its id or label, when it is added.
    Token(T),
    /// The property whose name a traversal gives.
    Steps(Steps),
    /// All entries of a map, whose keys are names and tokens.
    Entries,
}

/// An end of an edge that is added.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// The traverser's own vertex.
    Here,
    /// What was met under a label.
    Labelled(Name),
    /// What a traversal gives first.
    Steps(Steps),
    /// A vertex by its id.
    Vertex(Value),
}

/// When a branch of [`StepKind::Choose`] is taken.
#[derive(Debug, Clone, PartialEq)]
pub enum Case {
    /// If the choice equals a value.
    Equal(Value),
    /// If the choice fulfils a predicate.
    Test(Predicate),
    /// If a traversal gives something for the choice.
    Steps(Steps),
    /// As a token says.
    Pick(Pick),
}

/// What decides which branches are taken.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    /// Whether a traversal gives something.
    Productive(Steps),
    /// A predicate on the traverser.
    Test(Predicate),
    /// What is computed of the traverser.
    By(By),
}

/// Which part of a path a step is about, and what of each of its items.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PathPart {
    /// From the step with this label on.
    pub from: Option<Name>,
    /// Up to the step with this label.
    pub to: Option<Name>,
    /// In turn.
    pub by: Vec<By>,
}

/// Which parts of an element a map has besides its properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokensWanted {
    /// Its id.
    pub id: bool,
    /// Its label.
    pub label: bool,
    /// The names of properties of properties.
    pub keys: bool,
    /// The values of properties of properties.
    pub values: bool,
}

/// Numbers that the graph's statistics have.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// Of edges, and not of vertices.
    pub edges: bool,
    /// What their labels fulfil.
    pub labels: Vec<Arc<Predicate>>,
    /// A map of labels to numbers, and not their sum.
    pub by_label: bool,
    /// The steps that count them where the statistics are not exact.
    pub otherwise: Steps,
}

/// What a reducing step computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is what it is called")]
pub enum Reduction {
    Count,
    Sum,
    Min,
    Max,
    Mean,
}

/// What is done with text.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each is the step that it is called after")]
pub enum TextStep {
    Concat(Vec<Given>),
    Format(Name, Vec<By>),
    Split(Option<Box<str>>),
    Trim,
    LTrim,
    RTrim,
    ToUpper,
    ToLower,
    Reverse,
    Replace(Option<Box<str>>, Option<Box<str>>),
    Substring(i64, Option<i64>),
    Length,
}

/// What is done with two lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the step that it is called after")]
pub enum ListStep {
    Combine,
    Merge,
    Difference,
    Disjunct,
    Intersect,
    Product,
}

/// What a value becomes.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each is the step that it is called after")]
pub enum Conversion {
    String,
    Number(Option<GType>),
    Date,
    Boolean,
}

/// What a collection's items have to fulfil.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is what it is called")]
pub enum Quantifier {
    All,
    Any,
    None,
}

/// What a merge takes a map from.
#[derive(Debug, Clone, PartialEq)]
pub struct Merging {
    /// What is sought.
    pub sought: Given,
    /// What is added where nothing was found.
    pub on_create: Option<MergeMap>,
    /// What is changed where something was found; a traversal gives it from there.
    pub on_match: Option<MergeMap>,
    /// The source of the edge.
    pub out_vertex: Option<Given>,
    /// The target of the edge.
    pub in_vertex: Option<Given>,
}

/// Conditions on the vertices that are sought. All of them have to hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// On the label.
    pub labels: Vec<Arc<Predicate>>,
    /// On properties.
    pub properties: Vec<(Name, Arc<Predicate>)>,
}

/// A hop whose elements fulfil conditions. All of them have to hold.
#[derive(Debug, Clone, PartialEq)]
pub struct HopWhere {
    /// Which way edges are followed.
    pub direction: Direction,
    /// The labels of edges; none means all.
    pub labels: Vec<Name>,
    /// What it leads to.
    pub reaches: Reaches,
    /// Conditions on properties.
    pub conditions: Vec<(Name, Arc<Predicate>)>,
    /// The steps that do the same one after the other, where the engine cannot test the conditions.
    pub otherwise: Steps,
}

/// A map of properties, and their cardinalities.
#[derive(Debug, Clone, PartialEq)]
pub struct MergeMap {
    /// The map.
    pub map: Given,
    /// Of some properties.
    pub cardinalities: HashMap<Name, Cardinality>,
    /// Of all others.
    pub otherwise: Option<Cardinality>,
}

impl MergeMap {
    /// How many values of a name there may be.
    pub fn cardinality(&self, name: &str) -> Option<Cardinality> {
        self.cardinalities.get(name).copied().or(self.otherwise)
    }

    /// Refuses entries of an `onCreate` that have other values than the map that is sought: what is added would not be found, and be
    /// added again by each merge.
    ///
    /// Directions are left out. Their vertices have several forms, and are compared once they are known.
    ///
    /// # Errors
    /// [`QueryError::Type`].
    pub fn refuse_overrides(&self, sought: &[(Value, Value)], create: &[(Value, Value)]) -> Result<(), QueryError> {
        if create.is_empty() {
            return Ok(());
        }
        let sought: HashMap<Key<'_>, &Value> = sought.iter().map(|(key, value)| (Key(key), value)).collect();
        for (key, value) in create {
            let name = match key {
                Value::Token(Token::Direction(_)) => continue,
                Value::Text(name) => Some(name),
                _ => None,
            };
            let Some(other) = sought.get(&Key(key)) else { continue };
            // One of a cardinality is no single value any more.
            let is_several = name.is_some_and(|name| self.cardinality(name).is_some());
            if is_several || Key(value) != Key(other) {
                return Err(QueryError::wrong_type(format!(
                    "option(onCreate) cannot override values from merge() argument: ({key}, {value})"
                )));
            }
        }
        Ok(())
    }
}

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub enum StepKind {
    // Where traversers come from.
    /// Vertices, all or by id.
    Vertices(Option<Vec<Value>>),
    /// Vertices that fulfil conditions.
    Find(Found),
    /// Edges, all or by id.
    Edges(Option<Vec<Value>>),
    /// Edges whose labels fulfil predicates.
    FindEdges(Vec<Arc<Predicate>>),
    /// Values, before those that come.
    Inject(Vec<Value>),

    // From element to element.
    /// Along edges.
    Hop(Direction, Vec<Name>, Reaches),
    /// Along edges, hop after hop, to each vertex once: how often it is reached does not matter.
    Walk(Vec<(Direction, Vec<Name>)>),
    /// Along edges, to elements that fulfil conditions.
    HopWhere(Box<HopWhere>),
    /// How many edges there are, all in all.
    CountEdges(Direction, Vec<Name>),
    /// How many vertices or edges the graph has.
    Counted(Counted),
    /// To the ends of an edge.
    Ends(Direction),
    /// To the end of an edge that the traverser did not come from.
    OtherEnd,
    /// To the element of a property.
    Element,

    // Conditions.
    /// A property, or the id or label, fulfils a predicate.
    Has(By, Predicate),
    /// What a traversal gives for a property, or the property itself, exists.
    HasSteps(Name, Steps),
    /// There is a property of this name.
    HasProperty(Name),
    /// There is none.
    HasNot(Name),
    /// The name of a property fulfils a predicate.
    HasKey(Predicate),
    /// The value of a property fulfils a predicate.
    HasValue(Predicate),
    /// The traverser itself fulfils a predicate.
    Is(Predicate),
    /// What was met under a label, or the traverser, fulfils a predicate whose values are labels.
    WherePredicate(Option<Name>, Predicate, Vec<By>),
    /// A traversal gives something; its ends may be what was met under labels.
    Where(Steps),
    /// A traversal gives nothing.
    Not(Steps),
    /// All of some traversals give something.
    And(Vec<Steps>),
    /// One of some traversals gives something.
    Or(Vec<Steps>),
    /// What was met under a label, at the beginning of a traversal in `where`.
    StartAt(Name),
    /// What was met under a label is what the traverser is, at its end.
    EndAt(Name),
    /// Items of a collection fulfil a predicate.
    Quantified(Quantifier, Predicate),
    /// Whether no item of the path comes twice, or one does.
    SimplePath(bool, PathPart),
    /// Each with a probability.
    Coin(f64),
    /// None.
    Discard,

    // How many, and in which order.
    /// From a number on, up to before another; `None` is the last.
    Range(Scope, u64, Option<u64>),
    /// The last ones.
    Tail(Scope, u64),
    /// Each once, by what was met under labels and what is computed.
    Dedup(Scope, Vec<Name>, Vec<By>),
    /// Sorted.
    Order(Scope, Vec<Sorting>),
    /// Some at random, by weight.
    Sample(Scope, u64, By),
    /// All before the first goes on.
    Barrier,
    /// All before the first goes on, with their sacks divided by the sum of them.
    NormSack,

    // From one value to another.
    /// The values of properties.
    Values(Vec<Name>),
    /// Properties.
    Properties(Vec<Name>),
    /// A map of properties to their values.
    ValueMap(Vec<Name>, TokensWanted, Vec<By>),
    /// A map of properties to themselves.
    PropertyMap(Vec<Name>),
    /// A map of all that an element has.
    ElementMap(Vec<Name>),
    /// The id, label, key or value.
    Token(T),
    /// The same for all.
    Constant(Value),
    /// Itself.
    Identity,
    /// How many times the loop of a name, or the innermost, has run.
    Loops(Option<Name>),
    /// Where the traverser has been.
    Path(PathPart),
    /// What was met under labels; `true` if that is a map.
    Select(Pop, Vec<Name>, Vec<By>, bool),
    /// What was met under the label that a traversal gives.
    SelectSteps(Pop, Steps, Vec<By>),
    /// The keys or values of a map.
    SelectColumn(Column),
    /// A map of names to what is computed.
    Project(Vec<Name>, Vec<By>),
    /// The first that a traversal gives.
    Map(Steps),
    /// All that a traversal gives.
    FlatMap(Steps),
    /// All that a traversal gives, with the paths of it.
    Local(Steps),
    /// The items of a collection.
    Unfold,
    /// Each item with its number.
    Index(bool),
    /// All, in a list or joined.
    Fold(Option<(Value, Operator)>),
    /// One value of all, or of a collection.
    Reduce(Reduction, Scope),
    /// All by key; under a name as a side effect.
    Group(Option<Name>, By, By),
    /// How many of each.
    GroupCount(Option<Name>, By),
    /// A tree of paths; under a name as a side effect.
    Tree(Option<Name>, Vec<By>),
    /// What the traverser carries.
    Sack,
    /// What the traverser carries, changed.
    SackWith(Operator, By),
    /// With text.
    Text(Scope, TextStep),
    /// With two lists.
    List(ListStep, Given),
    /// The items of a list as text.
    Conjoin(Box<str>),
    /// Another type.
    As(Scope, Conversion),
    /// A formula.
    Math(Box<Formula>, Vec<By>),
    /// Later or earlier.
    DateAdd(Dt, i64),
    /// Seconds from another point in time.
    DateDiff(Given),

    // Branches.
    /// Again and again.
    Repeat(Repeat),
    /// All of some traversals.
    Union(Vec<Steps>),
    /// The first of some traversals that gives something.
    Coalesce(Vec<Steps>),
    /// The traversals of the options that a choice fulfils; `true` if all of them are, not the first alone.
    Choose(Choice, Vec<(Case, Steps)>, bool),
    /// What a traversal gives, or the traverser itself.
    Optional(Steps),

    // Side effects.
    /// Collects what is computed under a name, before the first goes on or as each passes.
    Aggregate(Scope, Name, By),
    /// Collects edges with their vertices, as each passes.
    Subgraph(Name),
    /// The side effects of names.
    Cap(Vec<Name>),
    /// A traversal whose results are dropped.
    SideEffect(Steps),
    /// An error.
    Fail(Option<Box<str>>),

    // Over the whole graph.
    /// A property of each vertex, for the steps behind.
    Compute(Computation),
    /// The shortest paths from the vertices that come.
    ShortestPaths(Box<ShortestPaths>),

    // Changes.
    /// A new vertex.
    AddVertex(Given, Vec<NewProperty>),
    /// A new edge.
    AddEdge(Given, End, End, Vec<NewProperty>),
    /// A property.
    Property(NewProperty),
    /// Deletes.
    Drop,
    /// A vertex that is found or added.
    MergeVertex(Merging),
    /// An edge that is found or added.
    MergeEdge(Merging),
}

impl StepKind {
    /// Whether it changes the graph.
    pub fn writes(&self) -> bool {
        matches!(
            self,
            Self::AddVertex(..)
                | Self::AddEdge(..)
                | Self::Property(_)
                | Self::Drop
                | Self::MergeVertex(_)
                | Self::MergeEdge(_)
        )
    }
}

/// A computation over the whole graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Computation {
    /// Which one.
    pub program: Program,
    /// The property that vertices have of it.
    pub property: Name,
    /// The edges that it goes along: in which direction, and of which labels.
    pub edges: (Direction, Vec<Name>),
    /// Whether it begins with the traversers that come, and not with all vertices alike.
    pub from_traversers: bool,
}

/// What is computed, as TinkerPop's vertex programs do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Program {
    /// PageRank with this damping factor, for this many rounds at most.
    PageRank(f64, usize),
    /// Clusters by peer pressure, for this many rounds at most.
    PeerPressure(usize),
    /// Connected components.
    ConnectedComponent,
}

impl Program {
    /// The step that computes it.
    pub fn step(self) -> &'static str {
        match self {
            Self::PageRank(..) => "pageRank",
            Self::PeerPressure(_) => "peerPressure",
            Self::ConnectedComponent => "connectedComponent",
        }
    }
}

/// A search for shortest paths.
#[derive(Debug, Clone, PartialEq)]
pub struct ShortestPaths {
    /// What a vertex has to fulfil at which a path ends.
    pub target: Option<Steps>,
    /// The edges of a vertex that paths take.
    pub edges: Steps,
    /// How long an edge is; 1 without it.
    pub distance: Option<By>,
    /// How long a path may be.
    pub distance_max: Option<f64>,
    /// Whether paths have their edges, and not their vertices alone.
    pub with_edges: bool,
}

/// A loop.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeat {
    /// What is repeated.
    pub body: Steps,
    /// Its name.
    pub name: Option<Name>,
    /// When it ends, and whether that is looked at before the first time.
    pub until: Option<(Until, bool)>,
    /// What goes on after it in each round, and whether also before the first.
    pub emit: Option<(Until, bool)>,
}

/// A condition of a loop.
#[derive(Debug, Clone, PartialEq)]
pub enum Until {
    /// Always.
    Always,
    /// After some rounds.
    Times(u64),
    /// If a traversal gives something.
    Steps(Steps),
    /// If a predicate holds.
    Test(Predicate),
}

impl Plan {
    /// Whether it writes.
    pub fn writes(&self) -> bool {
        self.settings.writes
    }
}
