//! Small random graphs that have what breaks an engine: several labels, properties that are missing, that have another type under
//! another label or several values, parallel edges, self-loops, vertices without edges.

use std::fmt::Write;

use hoplake_testkit::generate::SplitMix64;

/// The type of a property's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Text.
    Text,
    /// Long.
    Long,
    /// Double, of quarters: sums of them are exact.
    Double,
    /// Boolean.
    Boolean,
    /// A date and time.
    Date,
    /// Several texts.
    Texts,
}

/// Labels of vertices, and their properties. All have `uid`, which no two elements share.
pub const VERTICES: [(&str, &[(&str, Type)]); 3] = [
    (
        "person",
        &[("name", Type::Text), ("age", Type::Long), ("since", Type::Date), ("x", Type::Long), ("tags", Type::Texts)],
    ),
    ("place", &[("name", Type::Text), ("weight", Type::Double), ("x", Type::Text)]),
    ("thing", &[("weight", Type::Double), ("age", Type::Long), ("ok", Type::Boolean), ("x", Type::Double)]),
];

/// Labels of edges, and their properties.
pub const EDGES: [(&str, &[(&str, Type)]); 3] = [
    ("knows", &[("weight", Type::Double), ("n", Type::Long)]),
    ("in", &[("n", Type::Long), ("kind", Type::Text)]),
    ("has", &[]),
];

/// Texts of properties as literals write them: few, so that many are equal. Some have characters of two UTF-16 units, a space that
/// Unicode alone calls one, or a control character that Java takes for white space.
pub const TEXTS: [&str; 13] = [
    "ann",
    "bo",
    "Cy",
    "ann b",
    "",
    "7",
    "3.5",
    "äö",
    "a😀n",
    "\\uD83D\\uDE00",
    "\\u00A0bo\\u00A0",
    "\\u001Fn\\u001F",
    " \\tCy ",
];

/// Far dates: the first and the last that a graph stores, and some of years below 1000, with parts of a second.
const FAR_DATES: [&str; 8] = [
    "-9999-01-01T00:00:00Z",
    "-0044-03-15T12:00:00Z",
    "0000-02-29T00:00:00Z",
    "0999-12-31T23:59:59.999999Z",
    "1582-10-10T00:00:00Z",
    "1969-12-31T23:59:59.999Z",
    "9999-12-27T06:30:00Z",
    "9999-12-31T23:59:59.999999Z",
];

/// A vertex or an edge with the literals of its properties.
#[derive(Debug, Clone)]
pub struct Element {
    /// Its `uid`, and the key of a vertex.
    pub uid: String,
    /// Its label.
    pub label: &'static str,
    /// Names and literals, in their order.
    pub properties: Vec<(&'static str, String)>,
}

/// A graph.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// Its vertices: at least one of each label.
    pub vertices: Vec<Element>,
    /// Its edges, with the places of their vertices.
    pub edges: Vec<(Element, usize, usize)>,
}

/// A literal of a type.
pub fn literal(of: Type, random: &mut SplitMix64) -> String {
    match of {
        Type::Text | Type::Texts => format!("'{}'", TEXTS[random.below(TEXTS.len() as u64) as usize]),
        Type::Long => format!("{}l", random.below(12) as i64 - 2),
        Type::Double => format!("{:?}d", (random.below(16) as f64 - 4.0) / 4.0),
        Type::Boolean => (random.below(2) == 0).to_string(),
        Type::Date if random.below(4) == 0 => {
            format!("datetime('{}')", FAR_DATES[random.below(FAR_DATES.len() as u64) as usize])
        }
        Type::Date => format!("datetime('2020-01-0{}T0{}:00:00Z')", random.below(4) + 1, random.below(3)),
    }
}

impl World {
    /// A graph of a seed.
    pub fn new(seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let mut world = Self::default();
        for (label, properties) in VERTICES {
            for number in 0..=random.below(6) {
                let uid = format!("{}{number}", &label[..2]);
                world.vertices.push(Element { uid, label, properties: draw(properties, &mut random) });
            }
        }
        let count = world.vertices.len() as u64;
        for number in 0..random.below(3 * count) {
            let (label, properties) = EDGES[random.below(3) as usize];
            let element = Element { uid: format!("e{number}"), label, properties: draw(properties, &mut random) };
            let (from, to) = match world.edges.last() {
                // Parallel to the one before, or a loop.
                Some((_, from, to)) if random.below(6) == 0 => (*from, *to),
                _ => (random.below(count) as usize, random.below(count) as usize),
            };
            let to = if random.below(10) == 0 { from } else { to };
            world.edges.push((element, from, to));
        }
        world
    }

    /// A traversal that makes it, with the ids that `vertex_id` and `edge_id` give; no id if they give none.
    pub fn script(&self, vertex_id: impl Fn(usize) -> String, edge_id: impl Fn(usize) -> Option<String>) -> String {
        let mut text = String::from("g");
        for (place, vertex) in self.vertices.iter().enumerate() {
            let _ = write!(text, ".addV('{}').property(T.id, '{}')", vertex.label, vertex_id(place));
            write_properties(&mut text, vertex, true);
            let _ = write!(text, ".as('v{place}')");
        }
        for (place, (edge, from, to)) in self.edges.iter().enumerate() {
            let _ = write!(text, ".addE('{}').from('v{from}').to('v{to}')", edge.label);
            if let Some(id) = edge_id(place) {
                let _ = write!(text, ".property(T.id, '{id}')");
            }
            write_properties(&mut text, edge, false);
        }
        text + ".count()"
    }
}

fn write_properties(text: &mut String, element: &Element, is_vertex: bool) {
    let _ = write!(text, ".property('uid', '{}')", element.uid);
    for (name, value) in &element.properties {
        let cardinality = if is_vertex && *name == "tags" { "list, " } else { "" };
        let _ = write!(text, ".property({cardinality}'{name}', {value})");
    }
}

fn draw(properties: &[(&'static str, Type)], random: &mut SplitMix64) -> Vec<(&'static str, String)> {
    let mut drawn = Vec::new();
    for (name, of) in properties {
        let count = if *of == Type::Texts { random.below(4) } else { u64::from(random.below(4) > 0) };
        for _ in 0..count {
            drawn.push((*name, literal(*of, random)));
        }
    }
    drawn
}
