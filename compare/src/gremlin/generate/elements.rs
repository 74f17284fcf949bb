//! Steps on vertices, edges and properties.

use super::{At, Generator, TraverserKind};
use crate::gremlin::{
    tree::{StepCall, bare, step},
    world::{EDGES, VERTICES},
};

impl Generator<'_> {
    pub(super) fn vertex(&mut self, at: &mut At) {
        match self.random.below(14) {
            0..=4 => self.hop(at),
            5 => {
                self.has(at);
            }
            6 => {
                let labels = self.vertex_labels();
                at.push(step("hasLabel", labels));
            }
            7 => {
                let ids = self.distinct(self.ids.0).iter().map(|id| format!("'{id}'")).collect::<Vec<_>>();
                at.push(step("hasId", ids));
            }
            8 if self.hops >= 2 => self.loops(at),
            _ => self.contents(at),
        }
    }

    fn hop(&mut self, at: &mut At) {
        if self.hops == 0 {
            return self.contents(at);
        }
        self.hops -= 1;
        let step = self.hop_step();
        let kind = if step.name.ends_with('E') { TraverserKind::Edge } else { TraverserKind::Vertex };
        at.push(step).becomes(kind);
        at.is_ordered = false;
        if at.kind == TraverserKind::Edge && self.one_in(4) {
            at.push(bare("otherV")).becomes(TraverserKind::Vertex);
        }
    }

    pub(super) fn hop_step(&mut self) -> StepCall {
        let name = self.pick(&["out", "in", "both", "out", "in", "outE", "inE", "bothE"]);
        let labels = self.edge_labels();
        step(name, labels)
    }

    pub(super) fn vertex_labels(&mut self) -> Vec<String> {
        let labels: Vec<&str> = VERTICES.iter().map(|(label, _)| *label).chain(["none"]).collect();
        self.distinct(&labels).iter().map(|label| format!("'{label}'")).collect()
    }

    fn edge_labels(&mut self) -> Vec<String> {
        if self.one_in(2) {
            return Vec::new();
        }
        let labels: Vec<&str> = EDGES.iter().map(|(label, _)| *label).collect();
        self.distinct(&labels).iter().map(|label| format!("'{label}'")).collect()
    }

    pub(super) fn edge(&mut self, at: &mut At) {
        match self.random.below(12) {
            0..=3 => {
                let name = self.pick(&["outV", "inV", "bothV", "inV"]);
                at.push(bare(name)).becomes(TraverserKind::Vertex);
                at.is_ordered = false;
            }
            4 | 5 => {
                self.has(at);
            }
            6 => {
                let labels = self.edge_labels();
                if !labels.is_empty() {
                    at.push(step("hasLabel", labels));
                }
            }
            7 => {
                let ids = self.distinct(self.ids.1).iter().map(|id| format!("'{id}'")).collect::<Vec<_>>();
                if !ids.is_empty() {
                    at.push(step("hasId", ids));
                }
            }
            _ => self.contents(at),
        }
    }

    /// A condition on a property.
    pub(super) fn has(&mut self, at: &mut At) {
        let key = self.key(&at.kind.clone());
        let kind = self.kind_of(&key);
        let test = self.test(&kind);
        let quoted = format!("'{key}'");
        at.push(match self.random.below(8) {
            0 => step("has", [quoted]),
            1 => step("hasNot", [quoted]),
            2 if at.kind == TraverserKind::Vertex => {
                let label = self.vertex_labels().remove(0);
                step("has", [label, quoted, test])
            }
            4 => {
                let predicate = self.predicate(&TraverserKind::Text);
                step("has", ["T.label".to_owned(), predicate])
            }
            _ => step("has", [quoted, test]),
        });
    }

    /// What an element has: properties, label, id.
    fn contents(&mut self, at: &mut At) {
        let kind = at.kind.clone();
        let mut keys: Vec<String> = (0..self.random.below(3)).map(|_| self.key(&kind)).collect();
        keys.dedup();
        let quoted: Vec<String> = keys.iter().map(|key| format!("'{key}'")).collect();
        match self.random.below(9) {
            0..=3 => {
                let of = if let [key] = &keys[..] { self.kind_of(key) } else { TraverserKind::Mixed };
                at.push(step("values", quoted)).becomes(of);
                // TinkerPop's barriers bring equal values together.
                at.is_ordered = false;
            }
            4 => {
                at.push(step("properties", quoted)).becomes(TraverserKind::Property);
                at.is_ordered = false;
            }
            5 => {
                at.push(step("valueMap", quoted)).becomes(TraverserKind::Map(true, Box::new(TraverserKind::Mixed)));
                at.is_ordered = false;
                if self.one_in(3) {
                    at.push(step("by", [vec![bare("unfold")]]));
                }
            }
            6 => {
                let name = self.pick(&["elementMap", "propertyMap"]);
                at.push(step(name, quoted)).becomes(TraverserKind::Map(false, Box::new(TraverserKind::Mixed)));
                at.is_ordered = false;
            }
            7 => {
                at.push(bare("label")).becomes(TraverserKind::Text);
                at.is_ordered = false;
            }
            _ if kind == TraverserKind::Edge && self.is_changed => {}
            _ => {
                at.push(bare("id")).becomes(TraverserKind::Mixed);
            }
        }
    }

    pub(super) fn property(&mut self, at: &mut At) {
        match self.random.below(6) {
            0 => {
                at.push(bare("key")).becomes(TraverserKind::Text);
            }
            1 | 2 => {
                at.push(bare("value")).becomes(TraverserKind::Mixed);
            }
            3 => {
                at.push(bare("element")).becomes(TraverserKind::Mixed);
            }
            4 => {
                let key = self.key(&TraverserKind::Vertex);
                at.push(step("hasKey", [format!("'{key}'")]));
            }
            _ => {
                let test = self.test(&TraverserKind::Mixed);
                at.push(step("hasValue", [test]));
            }
        }
    }
}
