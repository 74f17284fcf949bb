//! Opening a graph, as all verbs that read one do.

use std::time::Instant;

use hoplake::{ErrorKind, Graph, Hop, OpenSettings, Schema, StepCost, Store};

use crate::failure::Failure;

/// Which graph.
#[derive(Debug, clap::Args)]
pub struct GraphArgs {
    /// Where the graph is: a folder, or s3://bucket/prefix, gs://, az://, file://
    pub url: String,
    /// Open this version instead of the newest
    #[arg(long, value_name = "N")]
    pub version: Option<u64>,
}

/// An open graph and what opening it took.
pub struct Opened {
    /// The graph.
    pub graph: Graph,
    /// What it took.
    pub cost: StepCost,
}

impl GraphArgs {
    /// Opens the graph.
    pub async fn open(&self) -> anyhow::Result<Opened> {
        let begun = Instant::now();
        let settings = OpenSettings { version: self.version, ..OpenSettings::default() };
        let store = self.store()?;
        let graph = Graph::open_with(store, &settings).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound => anyhow::Error::from(Failure::of(&error, self.how_to_get_one())),
            _ => error.into(),
        })?;
        let cost = StepCost { cost: graph.open_cost(), time_us: begun.elapsed().as_micros() as u64 };
        Ok(Opened { graph, cost })
    }

    /// The store the graph is in.
    pub fn store(&self) -> anyhow::Result<Store> {
        open_store(&self.url)
    }

    fn how_to_get_one(&self) -> String {
        match self.version {
            Some(_) => format!("hoplake info {} lists the versions there are", self.url),
            None => format!("check the address, or make one with hoplake load {} --from PATH", self.url),
        }
    }
}

/// The store at a URL.
pub fn open_store(url: &str) -> anyhow::Result<Store> {
    Store::open(url).map_err(|error| {
        let error = hoplake::Error::from(error);
        Failure::of(&error, "write a folder, or s3://bucket/prefix, gs://bucket/prefix, az://container/prefix").into()
    })
}

/// Refuses a hop along an edge label that the graph does not have.
pub fn check_hop(schema: &Schema, hop: &Hop) -> Result<(), Failure> {
    let mut known: Vec<_> = schema.edge_types.iter().map(|edge| edge.label.as_str()).collect();
    known.sort_unstable();
    known.dedup();
    let Some(missing) = hop.labels.iter().find(|label| !known.contains(&label.as_str())) else { return Ok(()) };
    let message = format!("the graph has no edge label {missing:?}");
    Err(Failure::new(ErrorKind::NotFound, message, format!("its edge labels are {}", known.join(", "))))
}
