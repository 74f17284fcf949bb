//! Random traversals that are mostly valid: each step fits the kind of what comes to it.
//!
//! What a server is free to choose is avoided, so that every difference means something: before a step that depends on the order there
//! is an `order()` that leaves no choice, what takes a first result gets a traversal with one, and labels and paths are not used after a
//! step that keeps one of several equal traversers.

mod branches;
mod changes;
mod elements;
mod general;
mod predicates;
mod values;

use hoplake_testkit::generate::SplitMix64;

pub use self::values::MALFORMED;
use super::{
    canonical::Orders,
    tree::{StepCall, bare, step},
    world::{EDGES, VERTICES, World},
};

/// How deep traversals nest.
const DEPTH_MAX: usize = 3;

/// Hops of a traversal with those of its children: results stay few.
const HOPS_MAX: usize = 4;

/// The kind of element or value that a traverser is at.
#[derive(Debug, Clone, PartialEq)]
pub enum TraverserKind {
    /// A vertex.
    Vertex,
    /// An edge.
    Edge,
    /// A property of a vertex or an edge.
    Property,
    /// A number of any type.
    Number,
    /// A text.
    Text,
    /// A boolean.
    Boolean,
    /// A date and time.
    Date,
    /// A list or set, whether its order is the same on both sides, and what its items are.
    List(bool, Box<TraverserKind>),
    /// A map with texts as keys, or with others, and what its values are.
    Map(bool, Box<TraverserKind>),
    /// A path.
    Path,
    /// One of several of these.
    Mixed,
}

/// A traversal to be asked.
#[derive(Debug, Clone)]
pub struct Generated {
    /// Its steps.
    pub steps: Vec<StepCall>,
    /// What of its results has an order.
    pub orders: Orders,
    /// Whether it changes the graph.
    pub is_change: bool,
}

/// A traversal that grows.
#[derive(Debug, Clone)]
struct At {
    steps: Vec<StepCall>,
    kind: TraverserKind,
    /// Whether the order of the traversers is the same on both sides.
    is_ordered: bool,
    /// Whether equal traversers may differ in how they came here.
    is_tangled: bool,
    /// Whether maps are in an order that a step gave them.
    has_ordered_maps: bool,
}

impl At {
    fn new(kind: TraverserKind) -> Self {
        Self { steps: Vec::new(), kind, is_ordered: false, is_tangled: false, has_ordered_maps: false }
    }

    fn push(&mut self, step: StepCall) -> &mut Self {
        self.steps.push(step);
        self
    }

    fn becomes(&mut self, kind: TraverserKind) {
        self.kind = kind;
        self.has_ordered_maps = false;
    }
}

/// Draws traversals over a graph.
pub struct Generator<'a> {
    random: SplitMix64,
    world: &'a World,
    /// Ids of its vertices and edges, as texts.
    ids: (&'a [String], &'a [String]),
    /// Labels of steps that can be selected, and what is under them.
    scope: Vec<(String, TraverserKind)>,
    /// Whether `aggregate` has filled a side effect.
    has_side_effect: bool,
    hops: usize,
    depth: usize,
    lists_are_ordered: bool,
    /// How many labels there have been.
    named: usize,
    is_changed: bool,
}

impl<'a> Generator<'a> {
    /// Traversals of a seed. `is_changed` if there are elements that were not there when the graph was made: their edges have
    /// other ids on the other server.
    pub fn new(seed: u64, world: &'a World, ids: (&'a [String], &'a [String]), is_changed: bool) -> Self {
        let random = SplitMix64::new(seed);
        Self {
            random,
            world,
            ids,
            scope: Vec::new(),
            has_side_effect: false,
            hops: HOPS_MAX,
            depth: 0,
            lists_are_ordered: true,
            named: 0,
            is_changed,
        }
    }

    /// A traversal that reads.
    pub fn read(mut self) -> Generated {
        let mut at = self.start();
        let steps = 1 + self.random.below(7);
        self.grow(&mut at, steps);
        if self.has_side_effect && self.one_in(2) {
            at.push(step("cap", ["'s'"])).becomes(TraverserKind::Mixed);
            at.is_ordered = false;
        }
        let orders = Orders { results: at.is_ordered, lists: self.lists_are_ordered, maps: at.has_ordered_maps };
        Generated { steps: at.steps, orders, is_change: false }
    }

    fn start(&mut self) -> At {
        match self.random.below(14) {
            0..=5 => {
                let mut at = At::new(TraverserKind::Vertex);
                at.push(bare("V"));
                at
            }
            6 | 7 => {
                let mut at = At::new(TraverserKind::Vertex);
                let ids = self.distinct(self.ids.0).iter().map(|id| format!("'{id}'")).collect::<Vec<_>>();
                at.push(step("V", ids));
                at
            }
            8 | 9 => {
                let mut at = At::new(TraverserKind::Edge);
                at.push(bare("E"));
                at
            }
            10 => self.reduced_numbers(),
            _ => {
                let kind =
                    self.pick(&[TraverserKind::Number, TraverserKind::Text, TraverserKind::Date, TraverserKind::Mixed]);
                let values: Vec<String> = (0..1 + self.random.below(4)).map(|_| self.literal(&kind)).collect();
                let mut at = At::new(kind);
                at.push(step("inject", values));
                at
            }
        }
    }

    fn grow(&mut self, at: &mut At, steps: u64) {
        for _ in 0..steps {
            if self.one_in(40) {
                // As if it were something else: often an error on both sides.
                let kind = at.kind.clone();
                at.kind = self.pick(&[
                    TraverserKind::Vertex,
                    TraverserKind::Edge,
                    TraverserKind::Number,
                    TraverserKind::Text,
                    TraverserKind::Date,
                    TraverserKind::Path,
                ]);
                self.next(at);
                if at.kind == kind {
                    at.kind = TraverserKind::Mixed;
                }
            } else {
                self.next(at);
            }
        }
    }

    /// One more step, or a few that belong together.
    fn next(&mut self, at: &mut At) {
        let is_general = self.one_in(3);
        match at.kind.clone() {
            _ if is_general => self.general(at),
            TraverserKind::Vertex => self.vertex(at),
            TraverserKind::Edge => self.edge(at),
            TraverserKind::Property => self.property(at),
            TraverserKind::Number => self.number(at),
            TraverserKind::Text => self.text(at),
            TraverserKind::Date => self.date(at),
            TraverserKind::List(is_ordered, items) => self.list(at, is_ordered, *items),
            TraverserKind::Map(has_names, values) => self.map(at, has_names, *values),
            TraverserKind::Path => self.path(at),
            TraverserKind::Boolean | TraverserKind::Mixed => self.mixed(at),
        }
    }

    /// A traversal within another, and what it gives.
    fn child(&mut self, kind: &TraverserKind) -> (Vec<StepCall>, TraverserKind) {
        let mut at = At::new(kind.clone());
        self.depth += 1;
        let steps = 1 + self.random.below(3);
        if self.depth <= DEPTH_MAX {
            self.grow(&mut at, steps);
        }
        self.depth -= 1;
        if at.steps.is_empty() {
            at.push(bare("identity"));
        }
        (at.steps, at.kind)
    }

    /// A traversal with one result at most.
    fn scalar(&mut self, kind: &TraverserKind) -> (Vec<StepCall>, TraverserKind) {
        let is_element = matches!(kind, TraverserKind::Vertex | TraverserKind::Edge);
        match self.random.below(6) {
            0 | 1 if is_element => {
                let key = self.single_key(kind);
                (vec![step("values", [format!("'{key}'")])], self.kind_of(&key))
            }
            2 if is_element => (vec![bare("label")], TraverserKind::Text),
            3 => (vec![bare("identity")], kind.clone()),
            _ => {
                let (mut steps, of) = self.child(kind);
                match of {
                    TraverserKind::Number if self.one_in(2) => {
                        steps.push(bare(self.pick(&["sum", "max", "min", "mean"])));
                        (steps, TraverserKind::Number)
                    }
                    TraverserKind::Number | TraverserKind::Text if self.one_in(2) => {
                        steps.extend([bare("order"), bare("fold")]);
                        (steps, TraverserKind::List(true, Box::new(of)))
                    }
                    _ => {
                        steps.push(bare("count"));
                        (steps, TraverserKind::Number)
                    }
                }
            }
        }
    }

    /// A `by` with one value.
    fn by(&mut self, kind: &TraverserKind) -> StepCall {
        match kind {
            TraverserKind::Vertex | TraverserKind::Edge if self.one_in(2) => {
                let key = self.single_key(kind);
                step("by", [format!("'{key}'")])
            }
            TraverserKind::Vertex | TraverserKind::Edge if self.one_in(3) => step("by", ["T.label"]),
            _ => step("by", [self.scalar(kind).0]),
        }
    }

    /// The name of a property, perhaps of one that no element has.
    fn key(&mut self, kind: &TraverserKind) -> String {
        if self.one_in(20) {
            return "none".to_owned();
        }
        let labels: &[(&str, &[(&str, _)])] = if *kind == TraverserKind::Edge { &EDGES } else { &VERTICES };
        let (_, properties) = labels[self.random.below(labels.len() as u64) as usize];
        match properties.len() as u64 {
            0 => "uid".to_owned(),
            count => match self.random.below(count + 1) {
                0 => "uid".to_owned(),
                number => properties[number as usize - 1].0.to_owned(),
            },
        }
    }

    /// The name of a property with one value at most.
    fn single_key(&mut self, kind: &TraverserKind) -> String {
        Some(self.key(kind)).filter(|key| key != "tags").unwrap_or_else(|| "name".to_owned())
    }

    fn kind_of(&self, key: &str) -> TraverserKind {
        match key {
            "age" | "weight" | "n" => TraverserKind::Number,
            "name" | "uid" | "tags" | "kind" => TraverserKind::Text,
            "since" => TraverserKind::Date,
            "ok" => TraverserKind::Boolean,
            _ => TraverserKind::Mixed,
        }
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.random.below(count) == 0
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.random.below(from.len() as u64) as usize].clone()
    }

    /// One or two of these, each once: TinkerGraph follows a label, and finds an id, as often as it is named.
    fn distinct<T: Clone + PartialEq>(&mut self, from: &[T]) -> Vec<T> {
        let mut some = self.some(from, 2);
        some.dedup();
        some
    }

    /// Some of these, at least one unless there are none.
    fn some<T: Clone>(&mut self, from: &[T], most: u64) -> Vec<T> {
        let count = if from.is_empty() { 0 } else { 1 + self.random.below(most) };
        (0..count).map(|_| self.pick(from)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gremlin::tree::{Side, text};

    /// What once was wrong and could not be drawn.
    #[test]
    fn rare_forms_are_drawn() {
        let world = World::new(1);
        let names = |count: usize| (0..count).map(|number| number.to_string()).collect::<Vec<_>>();
        let vertices = names(world.vertices.len());
        let edges = names(world.edges.len());
        let mut all = Vec::new();
        for seed in 0..4_000 {
            let generator = Generator::new(seed, &world, (&vertices, &edges), false);
            let generated = match seed % 4 {
                0 => generator.change(seed, |_, key| key.to_owned()),
                _ => generator.read(),
            };
            all.push(text(&generated.steps, Side::Hoplake));
        }
        // Parts of one traversal in their order.
        let forms: [&[&str]; 31] = [
            &["math('", "^", "^"],
            &["math('", "-_ ^"],
            &["math('", "%"],
            &["math('", "/ 0"],
            &["math('", "1e3"],
            &["math('", "+ none"],
            &["datetime('-9999"],
            &["datetime('9999"],
            &["datetime('0000"],
            &[".times(1).emit().repeat("],
            &[".times(1).until(", ".repeat("],
            &[".times(1).times("],
            &[".repeat(", ".repeat("],
            &["mergeV([", "Merge.onCreate, [", "'uid': 'another'"],
            &["mergeV([", "(T.label)", "Merge.onCreate, [", "(T.label)"],
            &["mergeV([(T.id)", "Merge.onCreate, [(T.id)"],
            &["mergeE([", "Merge.onCreate, [", "(T.label)"],
            &["mergeE([", "Merge.onCreate, [", "(Direction.OUT)"],
            &["mergeE([", "'n': ", "Merge.onCreate, [", "'n': "],
            &[".path().from('none')"],
            &[".cap('none')"],
            &[".select('none')"],
            &[".where(__.as('none')"],
            &[".where(__.as('a')"],
            &["😀", ".substring("],
            &["u00A0", ".trim("],
            &["u001F", ".length("],
            &[".replace(", ", '')"],
            &["inject(", "b, ", ".sum("],
            &["inject(", "s, ", ".mean("],
            &["inject(", "f, ", ".max("],
        ];
        for form in forms {
            let has_form = |line: &str| {
                let rest = form.iter().try_fold(line, |rest, part| rest.split_once(part).map(|(_, behind)| behind));
                rest.is_some()
            };
            assert!(all.iter().any(|line| has_form(line)), "{form:?} is not drawn");
        }
    }
}
