//! What the scenarios run against: the one place where the suite meets Hoplake.
//!
//! [`Place::open`] makes a world for a data graph, and the harness asks it nothing but texts with bindings. The five data graphs are opened
//! once each and shared, because no scenario changes one of them; each scenario of the empty graph opens its own.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use hoplake::{
    Graph, QueryContext, Store,
    gremlin::{self, Names, Wanted, script::Statement, value::Value},
};

use crate::{
    compare::Types,
    graphs::{self, GraphName},
    served::{Served, Server},
};

/// The results of a text, or the message of its error.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Result<Vec<Value>, String>> + 'a>>;

/// A graph that answers Gremlin.
pub trait World {
    /// Runs a text whose names have the values of `bindings`. Vertices and edges among the results have their properties: the harness
    /// finds `v[marko]` in the results of `g.V()` by the property `name`, and `e[marko-knows->josh]` in those of `g.E()`.
    fn submit<'a>(&'a mut self, text: &'a str, bindings: &'a [(String, Value)]) -> Answer<'a>;

    /// Whether numbers come with the types that the engine gave them.
    fn types(&self) -> Types;
}

/// Where the graphs are.
pub enum Place {
    /// In this process.
    Embedded,
    /// On a server that a driver asks.
    Served(Arc<Server>),
}

impl Place {
    /// Opens a world with the data of a graph.
    pub async fn open(&self, data: &graphs::Graph) -> Result<Box<dyn World>, String> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("g{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let folder = match self {
            Self::Embedded => "memory://suite",
            Self::Served(server) => &server.folder,
        };
        let url = format!("{folder}/{name}");
        Graph::create(&Store::open(&url).map_err(text_of)?).await.map_err(text_of)?;
        let mut embedded = Embedded { graph: Graph::open(&url).await.map_err(text_of)? };
        // The texts make it with `addV` and `addE`.
        for script in data.scripts() {
            embedded.submit(&script, &[]).await?;
        }
        Ok(match self {
            Self::Embedded => Box::new(embedded),
            Self::Served(server) => Box::new(Served::new(server, name, data.name != GraphName::Empty)),
        })
    }
}

/// A graph in memory.
struct Embedded {
    graph: Graph,
}

fn text_of(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl World for Embedded {
    fn submit<'a>(&'a mut self, text: &'a str, bindings: &'a [(String, Value)]) -> Answer<'a> {
        Box::pin(async move {
            let script = gremlin::parse(text).map_err(text_of)?;
            let names: Vec<(Box<str>, Value)> =
                bindings.iter().map(|(name, value)| (name.as_str().into(), value.clone())).collect();
            let mut transaction = self.graph.gremlin();
            let mut values = Vec::new();
            for statement in script.statements {
                let Statement::Traversal(traversal, _) = statement else { continue };
                let plan = gremlin::plan(&traversal, Names(&names)).map_err(text_of)?;
                let wanted = Wanted { properties: true };
                let mut results = transaction.run(&plan, wanted, &QueryContext::new()).map_err(text_of)?;
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
            if transaction.commit().await.map_err(text_of)?.is_some() {
                self.graph.refresh().await.map_err(text_of)?;
            }
            Ok(values)
        })
    }

    fn types(&self) -> Types {
        Types::Count
    }
}
