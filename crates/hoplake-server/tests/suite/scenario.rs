//! One scenario: runs its steps in their order against a world, up to the first that is not as it says.

use std::fmt::Write;

use hoplake::gremlin::value::{Tree, Value};

use crate::{
    compare::{any_of, items, ordered, same, unordered},
    elements::Elements,
    expected::{names_elements, value},
    graphs::GraphName,
    literals::{literal, quoted, substitute},
    show::{show, show_all},
    steps::{Matching, Message, Step},
    world::World,
};

/// A world, and its elements if they have been asked for.
pub struct Shared {
    world: Box<dyn World>,
    /// Those of a graph that no scenario changes.
    elements: Option<Elements>,
    changes: bool,
}

impl Shared {
    pub fn new(name: GraphName, world: Box<dyn World>) -> Self {
        Self { world, elements: None, changes: name == GraphName::Empty }
    }

    /// The elements, if a text names some. A graph that scenarios change is asked each time.
    async fn elements(&mut self, text: &str) -> Result<Elements, String> {
        if !names_elements(text) {
            return Ok(Elements::default());
        }
        if self.changes || self.elements.is_none() {
            self.elements = Some(Elements::of(&mut *self.world).await?);
        }
        Ok(self.elements.clone().unwrap_or_default())
    }

    async fn value(&mut self, text: &str) -> Result<Value, String> {
        let elements = self.elements(text).await?;
        value(text, &elements)
    }

    async fn values(&mut self, texts: &[String]) -> Result<Vec<Value>, String> {
        let elements = self.elements(&texts.join(" ")).await?;
        texts.iter().map(|text| value(text, &elements)).collect()
    }
}

/// What the traversal of a scenario gave.
enum Outcome {
    /// It has not run.
    None,
    /// All its results.
    All(Vec<Value>),
    /// The first one.
    First(Value),
    /// The message of its error.
    Error(String),
}

/// The state of a scenario.
struct Run<'a> {
    shared: &'a mut Shared,
    parameters: Parameters,
    /// By the names that they have in the text.
    bindings: Vec<(String, Value)>,
    /// What follows `g` in the text: the language lets no name stand in it.
    side_effects: String,
    traversal: String,
    outcome: Outcome,
}

/// How the values of parameters come to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameters {
    /// As bindings.
    Bound,
    /// In the text, in the places of their names, but for those that text has no form for.
    InText,
}

/// Runs a scenario.
///
/// # Errors
/// What the first step that fails expected, and what there was.
pub async fn run(steps: &[Step], shared: &mut Shared, parameters: Parameters) -> Result<(), String> {
    let mut run = Run {
        shared,
        parameters,
        bindings: Vec::new(),
        side_effects: String::new(),
        traversal: String::new(),
        outcome: Outcome::None,
    };
    for step in steps {
        run.step(step).await?;
    }
    Ok(())
}

/// The text of a scenario, and what its names are.
pub fn query(steps: &[Step]) -> String {
    let mut query = String::new();
    for step in steps {
        let _ = match step {
            Step::Initializer(text) => writeln!(query, "initializer: {text}"),
            Step::Parameter(name, text) => writeln!(query, "{name} = {text}"),
            Step::SideEffect(name, text) => writeln!(query, "side effect {name} = {text}"),
            Step::Traversal(text) => writeln!(query, "{text}"),
            Step::Next => writeln!(query, "(the first result)"),
            _ => Ok(()),
        };
    }
    query.trim_end().to_owned()
}

impl Run<'_> {
    async fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Graph(_) | Step::Unsupported => Ok(()),
            Step::Initializer(text) => {
                self.shared.world.submit(text, &[]).await.map_err(|error| format!("initializer: {error}"))?;
                Ok(())
            }
            Step::Parameter(name, text) => {
                let value = self.shared.value(text).await.map_err(|error| format!("parameter {name}: {error}"))?;
                self.bindings.push((name.clone(), value));
                Ok(())
            }
            Step::SideEffect(name, text) => {
                let value = self.shared.value(text).await.map_err(|error| format!("side effect {name}: {error}"))?;
                let value =
                    literal(&value).ok_or_else(|| format!("side effect {name}: {} has no text", show(&value)))?;
                let _ = write!(self.side_effects, ".withSideEffect({}, {value})", quoted(name));
                Ok(())
            }
            Step::Traversal(text) => {
                self.traversal = self.with_side_effects(text);
                Ok(())
            }
            Step::All => self.iterate(false).await,
            Step::Next => self.iterate(true).await,
            Step::Results(matching, rows) => self.results_are(*matching, rows).await,
            Step::NoResults => unordered(&self.results()?, &[], self.shared.world.types()),
            Step::Count(count) => self.results_count(*count),
            Step::CountOf(count, text) => self.graph_counts(*count, text).await,
            Step::Error(message) => self.error_is(message.as_ref()),
            Step::Tree(lines) => self.tree_is(lines).await,
            Step::Subgraph(column, rows) => self.subgraph_is(column, rows).await,
        }
    }

    /// `g.V()` as `g.withSideEffect("a", {}).V()`.
    fn with_side_effects(&self, text: &str) -> String {
        match text.split_once('.') {
            Some((source, steps)) => format!("{source}{}.{steps}", self.side_effects),
            None => text.to_owned(),
        }
    }

    /// Runs a text with the parameters.
    async fn submit(&mut self, text: &str) -> Result<Vec<Value>, String> {
        let mut text = text.to_owned();
        let mut bound = Vec::new();
        for (name, value) in &self.bindings {
            match literal(value).filter(|_| self.parameters == Parameters::InText) {
                Some(literal) => text = substitute(&text, name, &literal),
                None => bound.push((name.clone(), value.clone())),
            }
        }
        self.shared.world.submit(&text, &bound).await.map(single)
    }

    /// Runs the traversal. Its error is a result that a later step may expect.
    async fn iterate(&mut self, first: bool) -> Result<(), String> {
        self.outcome = match self.submit(&self.traversal.clone()).await {
            Err(error) => Outcome::Error(error),
            Ok(results) if !first => Outcome::All(results),
            Ok(results) if results.is_empty() => Outcome::Error("there is no result".to_owned()),
            Ok(mut results) => Outcome::First(results.swap_remove(0)),
        };
        Ok(())
    }

    /// All results, or the items of the first.
    fn results(&self) -> Result<Vec<Value>, String> {
        match &self.outcome {
            Outcome::None => Err("the traversal has not run".to_owned()),
            Outcome::All(results) => Ok(results.clone()),
            Outcome::First(result) => Ok(items(result)),
            Outcome::Error(error) => Err(format!("the traversal failed: {error}")),
        }
    }

    async fn results_are(&mut self, matching: Matching, rows: &[String]) -> Result<(), String> {
        let results = self.results()?;
        let expected = self.shared.values(rows).await?;
        let types = self.shared.world.types();
        match matching {
            Matching::Ordered => ordered(&results, &expected, types),
            Matching::Unordered => unordered(&results, &expected, types),
            Matching::Of => any_of(&results, &expected, types),
        }
    }

    fn results_count(&self, count: usize) -> Result<(), String> {
        let results = self.results()?;
        if results.len() == count {
            return Ok(());
        }
        Err(format!("expected {count} results, and there are {}:\n  {}", results.len(), show_all(&results)))
    }

    async fn graph_counts(&mut self, count: u64, text: &str) -> Result<(), String> {
        if let Outcome::Error(error) = &self.outcome {
            return Err(format!("the traversal failed: {error}"));
        }
        let text = format!("{text}.count()");
        let results =
            self.shared.world.submit(&text, &self.bindings).await.map_err(|error| format!("{text}: {error}"))?;
        let expected = Value::from(i64::try_from(count).map_err(|error| error.to_string())?);
        match results.as_slice() {
            [result] if same(result, &expected, self.shared.world.types()) => Ok(()),
            results => Err(format!("{text} should be {count}, and is {}", show_all(results))),
        }
    }

    /// An error that is expected is spent: what follows looks at the graph.
    fn error_is(&mut self, message: Option<&Message>) -> Result<(), String> {
        let error = match &self.outcome {
            Outcome::Error(error) => error,
            _ => return Err(format!("expected an error, and the results are:\n  {}", show_all(&self.results()?))),
        };
        if let Some(message) = message.filter(|message| !message.is(error)) {
            return Err(format!("it failed, but with another message than {message:?}: {error}"));
        }
        self.outcome = Outcome::None;
        Ok(())
    }

    async fn tree_is(&mut self, lines: &str) -> Result<(), String> {
        let elements = self.shared.elements(lines).await?;
        let expected = Value::Tree(tree(lines, &elements)?);
        let types = self.shared.world.types();
        match &self.outcome {
            Outcome::First(result) if same(result, &expected, types) => Ok(()),
            Outcome::First(result) => Err(format!("expected the tree {}, and it is {}", show(&expected), show(result))),
            _ => Err(format!("expected a tree, and the results are {}", show_all(&self.results()?))),
        }
    }

    async fn subgraph_is(&mut self, column: &str, rows: &[String]) -> Result<(), String> {
        let Outcome::First(result) = &self.outcome else {
            return Err(format!("expected a subgraph, and the results are {}", show_all(&self.results()?)));
        };
        let of_column = match result {
            Value::Graph(graph) if column == "vertices" => Some(&graph.vertices),
            Value::Graph(graph) if column == "edges" => Some(&graph.edges),
            _ => None,
        };
        let Some(elements) = of_column else {
            return Err(format!("expected a subgraph, and the result is {}", show(result)));
        };
        unordered(elements, &self.shared.values(rows).await?, self.shared.world.types())
    }
}

/// Results with each as often as it is one.
fn single(results: Vec<Value>) -> Vec<Value> {
    let mut all = Vec::new();
    for result in results {
        match result {
            Value::Traverser(traverser) => {
                all.extend((0..traverser.bulk).map(|_| traverser.value.clone()));
            }
            other => all.push(other),
        }
    }
    all
}

/// A tree from lines such as `   |--v[josh]`, whose depth is a third of the spaces before it.
fn tree(lines: &str, elements: &Elements) -> Result<Tree, String> {
    let mut nodes = Vec::new();
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        let depth = (line.len() - line.trim_start().len()) / 3;
        let text = line.trim().strip_prefix("|--").ok_or_else(|| format!("`{line}` is no node of a tree"))?;
        nodes.push((depth, value(text, elements)?));
    }
    Ok(branches(&mut nodes.into_iter().peekable(), 0))
}

fn branches(nodes: &mut std::iter::Peekable<std::vec::IntoIter<(usize, Value)>>, depth: usize) -> Tree {
    let mut tree = Tree::default();
    while let Some((_, value)) = nodes.next_if(|(other, _)| *other >= depth) {
        let below = branches(nodes, depth + 1);
        tree.branches.push((value, below));
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{compare::Types, world::Answer};

    /// Answers each text with its results, and fails for any other.
    struct Fixed(Vec<(&'static str, Vec<Value>)>);

    impl World for Fixed {
        fn submit<'a>(&'a mut self, text: &'a str, _: &'a [(String, Value)]) -> Answer<'a> {
            let found = self.0.iter().find(|(known, _)| *known == text).map(|(_, results)| results.clone());
            Box::pin(async move { found.ok_or_else(|| format!("unknown text {text}")) })
        }

        fn types(&self) -> Types {
            Types::Count
        }
    }

    fn outcome(steps: &[Step]) -> Result<(), String> {
        let world = Fixed(vec![
            ("g.V()", vec!["a".into(), "b".into()]),
            ("g.V().count()", vec![2_i64.into()]),
            ("g.withSideEffect(\"x\", {}).V()", vec![]),
            ("g.cap()", vec![Value::BulkSet(vec![("a".into(), 2)])]),
        ]);
        let mut shared = Shared::new(GraphName::Modern, Box::new(world));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(run(steps, &mut shared, Parameters::Bound))
    }

    fn traversal(text: &str) -> Step {
        Step::Traversal(text.to_owned())
    }

    #[test]
    fn results_are_compared() {
        let rows = |rows: &[&str]| rows.iter().map(|row| (*row).to_owned()).collect::<Vec<_>>();
        let results = |matching, expected: &[&str]| Step::Results(matching, rows(expected));
        assert_eq!(outcome(&[traversal("g.V()"), Step::All, results(Matching::Unordered, &["b", "a"])]), Ok(()));
        assert!(outcome(&[traversal("g.V()"), Step::All, results(Matching::Ordered, &["b", "a"])]).is_err());
        assert_eq!(outcome(&[traversal("g.V()"), Step::All, results(Matching::Of, &["b", "a", "c"])]), Ok(()));
        assert_eq!(outcome(&[traversal("g.V()"), Step::All, Step::Count(2)]), Ok(()));
        assert!(outcome(&[traversal("g.V()"), Step::All, Step::NoResults]).is_err());
        assert_eq!(outcome(&[traversal("g.cap()"), Step::Next, results(Matching::Ordered, &["a", "a"])]), Ok(()));
        assert_eq!(outcome(&[traversal("g.cap()"), Step::Next, Step::CountOf(2, "g.V()".to_owned())]), Ok(()));
    }

    #[test]
    fn errors_are_outcomes() {
        assert_eq!(outcome(&[traversal("g.X()"), Step::All, Step::Error(None)]), Ok(()));
        let message = |text: &str| Step::Error(Some(Message::Containing(text.to_owned())));
        assert_eq!(outcome(&[traversal("g.X()"), Step::All, message("UNKNOWN")]), Ok(()));
        let reason = outcome(&[traversal("g.X()"), Step::All, message("null")]).unwrap_err();
        assert!(reason.starts_with("it failed, but with another message"), "{reason}");
        assert!(outcome(&[traversal("g.V()"), Step::All, Step::Error(None)]).is_err());
        assert!(outcome(&[traversal("g.X()"), Step::All, Step::NoResults]).is_err());
        assert!(outcome(&[Step::Error(None)]).is_err());
    }

    #[test]
    fn side_effects_come_before_the_traversal() {
        let side_effect = Step::SideEffect("x".to_owned(), "s[]".to_owned());
        assert_eq!(outcome(&[side_effect, traversal("g.V()"), Step::All, Step::NoResults]), Ok(()));
    }

    #[test]
    fn trees_are_read_by_their_indentation() {
        let read = tree("|--a\n   |--d[1].i\n      |--b\n|--c", &Elements::default()).unwrap();
        assert_eq!(show(&Value::Tree(read)), "(a(d[1].i(b)) c)");
        assert_eq!(tree("", &Elements::default()), Ok(Tree::default()));
    }
}
