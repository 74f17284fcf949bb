//! What the scenarios run against: the one place where the suite meets an engine.
//!
//! [`open`] makes a world for a data graph, and the harness asks it nothing but texts with bindings. The five data graphs are opened
//! once each and shared, because no scenario changes one of them; each scenario of the empty graph opens its own.

use std::{future::Future, pin::Pin};

use hoplake_gremlin::value::Value;

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
/// An engine that loads in bulk may take the vertices and edges of `graph` as they are; the texts of [`Graph::scripts`] make
/// the same graph with `addV` and `addE`.
pub async fn open(graph: &Graph) -> Result<Box<dyn World>, String> {
    let mut world = NotYet;
    for script in graph.scripts() {
        world.submit(&script, &[]).await?;
    }
    Ok(Box::new(world))
}

/// Stands for the engine until there is one.
struct NotYet;

impl World for NotYet {
    fn submit<'a>(&'a mut self, _: &'a str, _: &'a [(String, Value)]) -> Answer<'a> {
        Box::pin(async { Err("not yet".to_owned()) })
    }
}
