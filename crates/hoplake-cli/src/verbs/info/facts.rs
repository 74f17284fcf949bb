//! The facts of a graph, which are printed as tables or as JSON.

use hoplake::{Graph, GraphInfo, IndexId};

use super::upkeep::Upkeep;

/// Collected before anything is printed.
pub struct Facts<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// Its counts and sizes.
    pub info: GraphInfo,
    /// What commits have left.
    pub upkeep: Upkeep,
    /// Its versions, oldest first.
    pub versions: Vec<u64>,
    /// Where it is.
    pub url: &'a str,
}

impl Facts<'_> {
    /// An index as it was created, such as `airport.code`.
    pub fn index_name(&self, id: IndexId) -> String {
        let manifest = self.graph.manifest();
        let Some(index) = manifest.index(id) else { return "?".into() };
        let label = manifest.schema.label(index.label).map_or("?", |label| &label.name);
        format!("{label}.{}", index.property)
    }
}
