//! Vertices and edges that are not what the tables say are put right, with what depends on them.

use hoplake::Properties;

use super::{
    Asking, EdgeId, Failure, Fold, Folded, LookupResults, Origin, Overlay, Owner, WaitingEdges, WaitingOverlay,
};
use crate::{
    Element, Missing,
    mapping::{Item, Mapping},
};

/// What is put right.
#[derive(Debug, Clone, PartialEq)]
pub enum Correction {
    /// It is to be there with these properties, null ones as null; with `replaces`, in the place of all that have its name.
    Put {
        /// The vertex or edge.
        element: Element,
        /// Its properties.
        properties: Properties,
        /// Whether what is there goes first.
        replaces: bool,
    },
    /// It is not to be there.
    Drop(Element),
}

/// Applies corrections. Those that cannot be are failures, by their number (`origin.change`).
pub(crate) fn correct(
    mapping: &Mapping,
    corrections: &[Correction],
    known: &LookupResults,
    waiting: &WaitingEdges,
) -> Folded {
    let asking = Asking::new(known);
    let waiting = WaitingOverlay::new(waiting);
    // That a foreign key names a row is what the database says, and not what the graph has: what is put may lack an end.
    let mut fold = Fold { mapping, overlay: Overlay::default(), asking, waiting, checks_keys: false };
    let mut failures = Vec::new();
    for (number, correction) in corrections.iter().enumerate() {
        match correction {
            Correction::Put { element: Element::Vertex(vertex), properties, .. } => {
                fold.overlay.upsert_vertex(vertex, properties.clone());
                fold.release(vertex);
            }
            Correction::Put { element: Element::Edge(id), properties, replaces } => {
                if *replaces {
                    fold.drop_edge(id.clone());
                }
                let (missing, owner) = mapping.of_edge(id);
                if let Err(bad) = fold.put_edge(id.clone(), properties.clone(), missing, owner) {
                    failures
                        .push(Failure { origin: Origin { transaction: 0, change: number, entry: 0 }, why: bad.why });
                }
            }
            // Edges that rows still say wait for it, as for one whose row is hidden.
            Correction::Drop(Element::Vertex(vertex)) => fold.hide_vertex(vertex),
            Correction::Drop(Element::Edge(id)) => fold.drop_edge(id.clone()),
        }
    }
    let Fold { overlay, asking, waiting, .. } = fold;
    let needs = asking.into_needs();
    let waiting = waiting.into_changes();
    Folded { needs, overlay, waiting, failures, ..Folded::default() }
}

impl Mapping {
    /// What to do where an end of an edge lacks, and whose row says that there is the edge.
    pub(crate) fn of_edge(&self, id: &EdgeId) -> ([Option<Missing>; 2], Owner) {
        for entry in &self.entries {
            match &entry.item {
                Item::Edge(map) => {
                    let ends = (&map.ends[0].label, &map.ends[1].label);
                    if id.label == map.label && (&id.source.label, &id.target.label) == ends {
                        return ([map.ends[0].missing, map.ends[1].missing], Owner::Row);
                    }
                }
                Item::Vertex(map) => {
                    for key in map.edges.iter().filter(|key| key.label == id.label) {
                        let (near, far) =
                            if key.is_outgoing { (&id.source, &id.target) } else { (&id.target, &id.source) };
                        if near.label == map.label && far.label == key.other {
                            let mut missing = [None, None];
                            missing[usize::from(key.is_outgoing)] = key.missing;
                            return (missing, if key.is_outgoing { Owner::Source } else { Owner::Target });
                        }
                    }
                }
            }
        }
        ([None, None], Owner::Row)
    }
}
