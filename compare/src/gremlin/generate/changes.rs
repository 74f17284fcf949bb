//! Traversals that change the graph.

use super::{At, Generated, Generator, Kind};
use crate::gremlin::{
    canonical::Orders,
    tree::{Argument, Step, bare, step},
    world::{EDGES, TEXTS, Type, VERTICES, literal},
};

impl Generator<'_> {
    /// A traversal that changes the graph. `number` names what is new; `vertex_id` is the id of a new vertex of a label and key.
    pub fn change(mut self, number: u64, vertex_id: impl Fn(&str, &str) -> String) -> Generated {
        let steps = match self.random.below(10) {
            0 => self.add_vertex(number, &vertex_id),
            1 | 2 => self.add_edge(number),
            3..=5 => self.set_property(),
            6 | 7 => self.remove(),
            8 => self.merge_vertex(number, &vertex_id),
            _ => self.merge_edge(number),
        };
        Generated { steps, orders: Orders::default(), is_change: true }
    }

    fn a_vertex(&mut self) -> Step {
        let id = self.pick(self.ids.0);
        step("V", [format!("'{id}'")])
    }

    /// Some vertices or edges.
    fn some_elements(&mut self) -> At {
        let kind = self.pick(&[Kind::Vertex, Kind::Vertex, Kind::Edge]);
        let mut at = At::new(kind.clone());
        match kind {
            Kind::Vertex if self.one_in(2) => at.push(self.a_vertex()),
            Kind::Vertex => at.push(bare("V")),
            _ => at.push(bare("E")),
        };
        for _ in 0..self.random.below(3) {
            match self.random.below(3) {
                0 => self.has(&mut at),
                1 => self.filter(&mut at),
                _ if at.kind == Kind::Vertex => {
                    let hop = self.hop_step();
                    at.becomes(if hop.name.ends_with('E') { Kind::Edge } else { Kind::Vertex });
                    at.push(hop);
                }
                _ => {}
            }
        }
        at
    }

    fn add_vertex(&mut self, number: u64, vertex_id: &impl Fn(&str, &str) -> String) -> Vec<Step> {
        let (label, properties) = self.pick(&VERTICES);
        let key = format!("n{number}");
        let id = Argument::Sided(format!("'{}'", vertex_id(label, &key)), format!("'{key}'"));
        let mut steps = vec![
            step("addV", [format!("'{label}'")]),
            step("property", [Argument::from("T.id"), id]),
            step("property", ["'uid'".to_owned(), format!("'{key}'")]),
        ];
        for (name, of) in properties {
            if self.one_in(2) {
                steps.push(step("property", [format!("'{name}'"), literal(*of, &mut self.random)]));
            }
        }
        steps
    }

    fn add_edge(&mut self, number: u64) -> Vec<Step> {
        let (label, properties) = self.pick(&EDGES);
        let mut at = self.some_elements();
        let target = vec![self.a_vertex()];
        let ends = self.pick(&["to", "from"]);
        // TinkerPop adds while it still looks for where, and once for several equal traversers.
        at.push(bare("dedup")).push(bare("order")).push(step("by", ["'uid'"]));
        if at.kind == Kind::Edge {
            at.push(bare("outV")).push(bare("dedup")).push(bare("barrier"));
        }
        at.push(step("addE", [format!("'{label}'")])).push(step(ends, [target]));
        at.push(step("property", ["'uid'".to_owned(), format!("'n{number}'")]));
        for (name, of) in properties {
            if self.one_in(2) {
                at.push(step("property", [format!("'{name}'"), literal(*of, &mut self.random)]));
            }
        }
        at.steps
    }

    fn set_property(&mut self) -> Vec<Step> {
        let mut at = self.some_elements();
        let (name, of) =
            self.pick(&[("name", Type::Text), ("age", Type::Long), ("weight", Type::Double), ("n", Type::Long)]);
        let value = literal(of, &mut self.random);
        let quoted = format!("'{name}'");
        match self.random.below(4) {
            0 if at.kind == Kind::Vertex => {
                at.push(step("property", ["single".to_owned(), quoted, value]));
            }
            1 if at.kind == Kind::Vertex => {
                let (cardinality, text) = (self.pick(&["list", "set"]), self.pick(&TEXTS));
                // TinkerPop adds once for several equal traversers.
                at.push(step("hasLabel", ["'person'"])).push(bare("dedup"));
                at.push(step("property", [cardinality.to_owned(), "'tags'".to_owned(), format!("'{text}'")]));
            }
            _ => {
                at.push(step("property", [quoted, value]));
            }
        }
        at.steps
    }

    fn remove(&mut self) -> Vec<Step> {
        let mut at = self.some_elements();
        match self.random.below(3) {
            0 => {
                at.push(step("properties", [self.pick(&["'name'", "'age'", "'weight'", "'n'", "'tags'"])]));
            }
            // Fewer than all.
            _ => {
                at.push(bare("order")).push(step("by", ["'uid'"])).push(step("limit", ["2"]));
            }
        }
        at.push(bare("drop"));
        at.steps
    }

    fn merge_vertex(&mut self, number: u64, vertex_id: &impl Fn(&str, &str) -> String) -> Vec<Step> {
        let (label, key) = match self.one_in(2) {
            true => {
                let known = self.pick(&self.world.vertices);
                (known.label, known.uid)
            }
            false => (self.pick(&VERTICES).0, format!("n{number}")),
        };
        let id = Argument::Sided(
            format!("[(T.label): '{label}', (T.id): '{}', 'uid': '{key}']", vertex_id(label, &key)),
            format!("[(T.label): '{label}', (T.id): '{key}', 'uid': '{key}']"),
        );
        let mut steps = vec![step("mergeV", [id])];
        let name = literal(Type::Text, &mut self.random);
        if label != "thing" && self.one_in(2) {
            steps.push(step("option", ["Merge.onCreate".to_owned(), format!("['name': {name}]")]));
        }
        if label != "thing" && self.one_in(2) {
            steps.push(step("option", ["Merge.onMatch".to_owned(), format!("['name': {name}]")]));
        }
        steps
    }

    fn merge_edge(&mut self, number: u64) -> Vec<Step> {
        let (from, to) = (self.pick(self.ids.0), self.pick(self.ids.0));
        let (from, to, label) = match (self.one_in(2), &self.world.edges[..]) {
            (true, [_, ..]) => {
                let (edge, from, to) = self.pick(&self.world.edges);
                (self.ids.0[from].clone(), self.ids.0[to].clone(), edge.label)
            }
            _ => (from, to, self.pick(&EDGES).0),
        };
        let map = format!("[(T.label): '{label}', (Direction.OUT): '{from}', (Direction.IN): '{to}']");
        let uid = step("option", ["Merge.onCreate".to_owned(), format!("['uid': 'n{number}']")]);
        let mut steps = vec![step("mergeE", [map]), uid];
        if label != "has" && self.one_in(2) {
            let value = literal(Type::Long, &mut self.random);
            steps.push(step("option", ["Merge.onMatch".to_owned(), format!("['n': {value}]")]));
        }
        steps
    }
}
