//! What the scenarios run against: the one place where the suite meets an engine.
//!
//! [`open`] makes a world for a data graph, and the harness asks it nothing but texts with bindings. The five data graphs are opened
//! once each and shared, because no scenario changes one of them; each scenario of the empty graph opens its own.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use hoplake_engine::{OpenSettings, Snapshot, change::Committer, create};
use hoplake_gremlin::{
    plan::{Names, lower},
    run::{self, Results, Transaction, Wanted},
    script::Statement,
    text,
    value::Value,
};
use hoplake_storage::{QueryContext, ReadPool, ReadSettings, Reader, Store};

use crate::graphs::Graph;

/// The results of a text, or the message of its error.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Result<Vec<Value>, String>> + 'a>>;

/// A graph that answers Gremlin.
pub trait World {
    /// Runs a text whose names have the values of `bindings`. Vertices and edges among the results have their properties: the harness
    /// finds `v[marko]` in the results of `g.V()` by the property `name`, and `e[marko-knows->josh]` in those of `g.E()`.
    fn submit<'a>(&'a mut self, text: &'a str, bindings: &'a [(String, Value)]) -> Answer<'a>;
}

/// Opens a world with the data of `graph`.
///
/// The texts of [`Graph::scripts`] make it with `addV` and `addE`.
pub async fn open(graph: &Graph) -> Result<Box<dyn World>, String> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let url = format!("memory://suite-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let mut world = Embedded::open(&url).await?;
    for script in graph.scripts() {
        world.submit(&script, &[]).await?;
    }
    Ok(Box::new(world))
}

/// A graph in memory.
struct Embedded {
    committer: Arc<Committer>,
}

fn text_of(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Embedded {
    async fn open(url: &str) -> Result<Self, String> {
        let pool = ReadPool::new(ReadSettings::default()).map_err(text_of)?;
        let reader = Reader::new(Store::open(url).map_err(text_of)?, pool);
        create::create(&reader, &mut QueryContext::new().branch()).await.map_err(text_of)?;
        let snapshot = Arc::new(Snapshot::open(reader, &OpenSettings::default()).await.map_err(text_of)?);
        Ok(Self { committer: Arc::new(Committer::new(snapshot)) })
    }
}

impl World for Embedded {
    fn submit<'a>(&'a mut self, text: &'a str, bindings: &'a [(String, Value)]) -> Answer<'a> {
        Box::pin(async move {
            let script = text::parse(text).map_err(text_of)?;
            let names: Vec<(Box<str>, Value)> =
                bindings.iter().map(|(name, value)| (name.as_str().into(), value.clone())).collect();
            let graph = run::Graph { snapshot: self.committer.newest(), committer: Some(self.committer.clone()) };
            let mut transaction = Transaction::new(&graph);
            let mut values = Vec::new();
            for statement in script.statements {
                let Statement::Traversal(traversal, _) = statement else { continue };
                let plan = lower(&traversal, Names(&names)).map_err(text_of)?;
                let branch = QueryContext::new().branch();
                let mut results =
                    Results::begin(&plan, transaction, Wanted { properties: true }, branch).map_err(text_of)?;
                values.clear();
                loop {
                    let next = results.next(1_000).await.map_err(text_of)?;
                    if next.is_empty() {
                        break;
                    }
                    let repeated = next.into_iter().flat_map(|(value, bulk)| std::iter::repeat_n(value, bulk as usize));
                    values.extend(repeated);
                }
                transaction = results.into_transaction();
            }
            transaction.commit().await.map_err(text_of)?;
            Ok(values)
        })
    }
}
