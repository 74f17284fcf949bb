//! Traversals that change the graph.

use super::{At, Generated, Generator, TraverserKind};
use crate::gremlin::{
    canonical::Orders,
    tree::{Argument, StepCall, bare, step},
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

    fn a_vertex(&mut self) -> StepCall {
        let id = self.pick(self.ids.0);
        step("V", [format!("'{id}'")])
    }

    /// Some vertices or edges.
    fn some_elements(&mut self) -> At {
        let kind = self.pick(&[TraverserKind::Vertex, TraverserKind::Vertex, TraverserKind::Edge]);
        let mut at = At::new(kind.clone());
        match kind {
            TraverserKind::Vertex if self.one_in(2) => at.push(self.a_vertex()),
            TraverserKind::Vertex => at.push(bare("V")),
            _ => at.push(bare("E")),
        };
        for _ in 0..self.random.below(3) {
            match self.random.below(3) {
                0 => self.has(&mut at),
                1 => self.filter(&mut at),
                _ if at.kind == TraverserKind::Vertex => {
                    let hop = self.hop_step();
                    at.becomes(if hop.name.ends_with('E') { TraverserKind::Edge } else { TraverserKind::Vertex });
                    at.push(hop);
                }
                _ => {}
            }
        }
        at
    }

    fn add_vertex(&mut self, number: u64, vertex_id: &impl Fn(&str, &str) -> String) -> Vec<StepCall> {
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

    fn add_edge(&mut self, number: u64) -> Vec<StepCall> {
        let (label, properties) = self.pick(&EDGES);
        let mut at = self.some_elements();
        let target = vec![self.a_vertex()];
        let ends = self.pick(&["to", "from"]);
        // TinkerPop adds while it still looks for where, and once for several equal traversers.
        at.push(bare("dedup")).push(bare("order")).push(step("by", ["'uid'"]));
        if at.kind == TraverserKind::Edge {
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

    fn set_property(&mut self) -> Vec<StepCall> {
        let mut at = self.some_elements();
        let (name, of) =
            self.pick(&[("name", Type::Text), ("age", Type::Long), ("weight", Type::Double), ("n", Type::Long)]);
        let value = literal(of, &mut self.random);
        let quoted = format!("'{name}'");
        match self.random.below(4) {
            0 if at.kind == TraverserKind::Vertex => {
                at.push(step("property", ["single".to_owned(), quoted, value]));
            }
            1 if at.kind == TraverserKind::Vertex => {
                let cardinality = self.pick(&["list", "set"]);
                let text = self.pick(&TEXTS);
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

    fn remove(&mut self) -> Vec<StepCall> {
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

    fn merge_vertex(&mut self, number: u64, vertex_id: &impl Fn(&str, &str) -> String) -> Vec<StepCall> {
        let (label, key) = match self.one_in(2) {
            true => {
                let known = self.pick(&self.world.vertices);
                (known.label, known.uid)
            }
            false => (self.pick(&VERTICES).0, format!("n{number}")),
        };
        let mut sought = Entries { ids: None, others: format!("'uid': '{key}'") };
        let mut created = Entries::default();
        let has_label = !self.one_in(6);
        let of_label = if has_label { &mut sought } else { &mut created };
        of_label.add(format!("(T.label): '{label}'"));
        let has_id = !self.one_in(6);
        let of_id = if has_id { &mut sought } else { &mut created };
        of_id.ids = Some([vertex_id(label, &key), key.clone()]);
        let mut steps = vec![step("mergeV", [sought.map()])];
        if self.one_in(3) {
            // Of what is sought, again or in contradiction.
            match self.random.below(7) {
                0 => created.add(format!("'uid': '{key}'")),
                1 => created.add("'uid': 'another'".to_owned()),
                2 => created.add("'age': null".to_owned()),
                3 if has_label => created.add(format!("(T.label): '{label}'")),
                4 if has_label => created.add(format!("(T.label): '{}'", self.pick(&VERTICES).0)),
                5 if has_id => created.ids = Some([vertex_id(label, &key), key.clone()]),
                _ if has_id => created.ids = Some([vertex_id(label, "another"), "another".to_owned()]),
                _ => {}
            }
        }
        let name = literal(Type::Text, &mut self.random);
        if label != "thing" && self.one_in(2) {
            created.add(format!("'name': {name}"));
        }
        if created != Entries::default() {
            steps.push(step("option", [Argument::from("Merge.onCreate"), created.map()]));
        }
        if label != "thing" && self.one_in(2) {
            steps.push(step("option", ["Merge.onMatch".to_owned(), format!("['name': {name}]")]));
        } else if self.one_in(4) {
            let map = self.pick(&["[(T.label): 'person']", "[(T.id): 'another']", "[:]", "['age': null]"]);
            steps.push(step("option", ["Merge.onMatch", map]));
        }
        steps
    }

    fn merge_edge(&mut self, number: u64) -> Vec<StepCall> {
        let from = self.pick(self.ids.0);
        let to = self.pick(self.ids.0);
        let (from, to, label) = match (self.one_in(2), &self.world.edges[..]) {
            (true, [_, ..]) => {
                let (edge, from, to) = self.pick(&self.world.edges);
                (self.ids.0[from].clone(), self.ids.0[to].clone(), edge.label)
            }
            _ => (from, to, self.pick(&EDGES).0),
        };
        let mut sought = format!("(T.label): '{label}', (Direction.OUT): '{from}', (Direction.IN): '{to}'");
        let mut created = format!("'uid': 'n{number}'");
        if label != "has" && self.one_in(4) {
            sought += &format!(", 'n': {}", literal(Type::Long, &mut self.random));
            if self.one_in(2) {
                created += &format!(", 'n': {}", literal(Type::Long, &mut self.random));
            }
        }
        if self.one_in(3) {
            // Of what is sought, again or in contradiction.
            let other = self.pick(self.ids.0);
            created += &match self.random.below(6) {
                0 => format!(", (T.label): '{label}'"),
                1 => format!(", (T.label): '{}'", self.pick(&EDGES).0),
                2 => format!(", (Direction.OUT): '{from}'"),
                3 => format!(", (Direction.OUT): '{other}'"),
                4 => format!(", (Direction.IN): '{other}'"),
                _ => format!(", (Direction.OUT): '{from}', (Direction.IN): '{to}', (T.label): '{label}'"),
            };
        }
        let on_create = step("option", ["Merge.onCreate".to_owned(), format!("[{created}]")]);
        let mut steps = vec![step("mergeE", [format!("[{sought}]")]), on_create];
        if label != "has" && self.one_in(2) {
            let value = literal(Type::Long, &mut self.random);
            steps.push(step("option", ["Merge.onMatch".to_owned(), format!("['n': {value}]")]));
        }
        steps
    }
}

/// Entries of a map for `mergeV`, and the id that is one of them on either side.
#[derive(Debug, Default, PartialEq)]
struct Entries {
    ids: Option<[String; 2]>,
    others: String,
}

impl Entries {
    fn add(&mut self, entry: String) {
        let separator = if self.others.is_empty() { "" } else { ", " };
        self.others += separator;
        self.others += &entry;
    }

    fn map(&self) -> Argument {
        let with = |id: &String| match self.others.as_str() {
            "" => format!("[(T.id): '{id}']"),
            others => format!("[(T.id): '{id}', {others}]"),
        };
        match &self.ids {
            Some([reference, hoplake]) => Argument::Sided(with(reference), with(hoplake)),
            None => Argument::Text(format!("[{}]", self.others)),
        }
    }
}
