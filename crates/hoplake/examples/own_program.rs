//! A custom vertex program: how much of each company's supply is at risk, directly or through other companies.
//!
//! Run it with `cargo run --example own_program`.

use std::{error::Error, sync::Arc};

use hoplake::{
    Graph, LoadOptions,
    compute::{ComputeOptions, Edge, Selection, Step, Vertex, VertexProgram},
};

/// Who supplies whom with which part of what they need.
const SUPPLIES: &str = "\
~from,~to,~label,part:Double
mine,smelter,supplies,0.9
smelter,cables,supplies,0.5
smelter,motors,supplies,0.2
cables,motors,supplies,0.4
motors,cars,supplies,0.8
glass,cars,supplies,0.1
";

/// The greatest risk that reaches a company: at risk is one vertex, and a risk shrinks along an edge to the part that it supplies.
struct Risk {
    origin: u32,
}

impl VertexProgram for Risk {
    type State = f64;
    type Signal = f64;
    type Aggregate = ();

    fn initial(&self, vertex: &Vertex) -> f64 {
        if vertex.id == self.origin { 1.0 } else { 0.0 }
    }

    fn signal(&self, _: &Vertex, risk: &f64) -> Option<f64> {
        (*risk > 0.0).then_some(*risk)
    }

    fn along(&self, risk: f64, edge: &Edge) -> f64 {
        risk * edge.weight
    }

    fn collect(&self, _: &Vertex, risk: &mut f64, signals: impl Iterator<Item = f64>, _: &Step<()>) -> bool {
        let before = *risk;
        *risk = signals.fold(before, f64::max);
        *risk > before
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let companies = ["mine", "smelter", "cables", "motors", "cars", "glass"].map(|key| format!("{key},Company\n"));
    std::fs::write(folder.path().join("companies.csv"), format!("~id,~label\n{}", companies.concat()))?;
    std::fs::write(folder.path().join("supplies.csv"), SUPPLIES)?;
    hoplake::load("memory://examples/supplies", LoadOptions::from_paths([folder.path()])).await?;

    let mut query = Graph::open("memory://examples/supplies").await?.query();
    let mine = query.vertex("Company", "mine").await?.ok_or("there is no mine")?;
    let selection = Selection { weight: Some("part".into()), ..Selection::default() };
    // One label takes part, so a vertex's dense id is its ordinal.
    let program = Arc::new(Risk { origin: mine.ordinal() as u32 });
    let found = query.run_program(&program, &ComputeOptions { selection, ..Default::default() }, None, |_| ()).await?;
    let vertices: Vec<_> = (0..found.ids.len()).filter_map(|id| found.ids.vertex(id)).collect();
    let keys = query.keys_of(&vertices).await?;
    for (company, risk) in keys.iter().zip(found.states.take(0..vertices.len() as u32)?) {
        println!("{company}: {risk}");
    }
    Ok(())
}
