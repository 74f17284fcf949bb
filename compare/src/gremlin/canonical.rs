//! Answers in a form in which those of both servers can be compared.
//!
//! | value | its form |
//! | --- | --- |
//! | number | its value and its type; a fraction of a double has twelve digits, because sums depend on their order |
//! | point in time | as its text, with the offset that it has |
//! | vertex, edge | the name of it that the property `uid` has: ids of edges differ |
//! | text that is the id of an edge | the name of the edge |
//! | property | its name and value |
//! | set, map, tree, bulk set | its items in the order of their forms |
//! | list | its items in their order, or in that of their forms if the traversal does not say which |
//! | path | its items and their labels |

use std::collections::HashMap;

use hoplake::gremlin::{
    literal::Number,
    value::{Property, Tree, Value},
};

/// Ids that the reference gives are not below it.
pub const EDGE_ID_MIN: i64 = 1_000;

/// The names of the elements of a graph on one server.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// By the text of a vertex's id.
    pub vertices: HashMap<String, String>,
    /// By the text of an edge's id.
    pub edges: HashMap<String, String>,
}

/// What of an answer has an order.
#[derive(Debug, Clone, Copy, Default)]
pub struct Orders {
    /// The results.
    pub results: bool,
    /// Lists in them.
    pub lists: bool,
    /// Maps in them.
    pub maps: bool,
}

/// The forms of results, sorted if they have no order.
pub fn forms(results: &[Value], names: &Names, orders: Orders) -> Vec<String> {
    let form = Canonicalizer { names, orders };
    let mut forms: Vec<String> = results.iter().map(|result| form.of(result)).collect();
    if !orders.results {
        forms.sort();
    }
    forms
}

/// Writes results as text that is equal for equal results of both sides.
struct Canonicalizer<'a> {
    names: &'a Names,
    orders: Orders,
}

impl Canonicalizer<'_> {
    fn of(&self, value: &Value) -> String {
        match value {
            Value::Number(number) => match self.names.edges.get(&number.to_string()) {
                // What the reference gives a new edge, a long that few computed ones reach.
                Some(name) if matches!(number, Number::Long(EDGE_ID_MIN..)) => format!("id of {name}"),
                _ => number_form(number),
            },
            Value::Text(text) => match self.names.edges.get(&**text) {
                Some(name) => format!("id of {name}"),
                None => format!("{text:?}"),
            },
            Value::DateTime(moment) => moment.to_string(),
            Value::List(items) => format!("[{}]", self.row(items.iter().map(|item| self.of(item)), self.orders.lists)),
            Value::Set(items) => format!("set[{}]", self.row(items.iter().map(|item| self.of(item)), false)),
            Value::BulkSet(items) => {
                let all = items.iter().flat_map(|(item, bulk)| std::iter::repeat_n(self.of(item), *bulk as usize));
                format!("bulk[{}]", self.row(all, false))
            }
            Value::Map(entries) => self.map(entries),
            Value::Entry(entry) => self.map(std::slice::from_ref(entry)),
            Value::Vertex(vertex) => name(&self.names.vertices, "v", &vertex.id),
            Value::Edge(edge) => name(&self.names.edges, "e", &edge.id),
            Value::VertexProperty(property) => format!("vp[{}->{}]", property.key, self.of(&property.value)),
            Value::Property(property) => self.property(property),
            Value::Path(path) => {
                let items = path.steps.iter().map(|(item, labels)| {
                    let mut labels = labels.clone();
                    labels.sort();
                    format!("{}{}", self.of(item), labels.iter().map(|label| format!("@{label}")).collect::<String>())
                });
                format!("path[{}]", self.row(items, true))
            }
            Value::Tree(tree) => self.tree(tree),
            Value::Traverser(traverser) => self.of(&traverser.value),
            other => other.to_string(),
        }
    }

    fn row(&self, items: impl Iterator<Item = String>, in_order: bool) -> String {
        let mut items: Vec<String> = items.collect();
        if !in_order {
            items.sort();
        }
        items.join(", ")
    }

    fn map(&self, entries: &[(Value, Value)]) -> String {
        let entries = entries.iter().map(|(key, value)| format!("{}: {}", self.of(key), self.of(value)));
        format!("{{{}}}", self.row(entries, self.orders.maps))
    }

    fn property(&self, property: &Property) -> String {
        format!("p[{}->{}]", property.key, self.of(&property.value))
    }

    fn tree(&self, tree: &Tree) -> String {
        let branches = tree.branches.iter().map(|(item, below)| format!("{}: {}", self.of(item), self.tree(below)));
        format!("tree{{{}}}", self.row(branches, false))
    }
}

fn name(names: &HashMap<String, String>, kind: &str, id: &Value) -> String {
    let id = id.to_string();
    format!("{kind}[{}]", names.get(&id).unwrap_or(&id))
}

/// The graphs of the differential have longs and doubles alone, which both servers store as they are: so every number of an answer has
/// the type that a traversal gave it, by a literal or by computing.
fn number_form(number: &Number) -> String {
    let (value, of) = match number {
        Number::Byte(number) => (number.to_string(), "byte"),
        Number::Short(number) => (number.to_string(), "short"),
        Number::Int(number) => (number.to_string(), "int"),
        Number::Long(number) => (number.to_string(), "long"),
        Number::BigInteger(number) => (number.to_string(), "bigint"),
        Number::Float(number) => (double_form(f64::from(*number)), "float"),
        Number::Double(number) => (double_form(*number), "double"),
        Number::BigDecimal(number) => (number.to_plain_string(), "bigdecimal"),
    };
    format!("{value}{TYPE}{of}")
}

/// The form of the double -0.0.
pub const NEGATIVE_ZERO: &str = "-0.00000000000e0#double";

/// Separates a number from its type; no text of a graph has it.
const TYPE: char = '#';

/// A form without the types of its numbers.
pub fn without_types(form: &str) -> String {
    let mut parts = form.split(TYPE);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.trim_start_matches(|it: char| it.is_ascii_lowercase()))
}

/// Whether two forms are equal but for fractions in them that differ by some part of them at most.
pub fn are_near(left: &str, right: &str, near: f64) -> bool {
    let left = with_split_numbers(left);
    let right = with_split_numbers(right);
    let pair_is_near = |(left, right): (&&str, &&str)| match (left.parse::<f64>(), right.parse::<f64>()) {
        (Ok(left_number), Ok(right_number)) if left.contains('.') && right.contains('.') => {
            (left_number - right_number).abs() <= left_number.abs() * near
        }
        _ => left == right,
    };
    left.len() == right.len() && left.iter().zip(&right).all(pair_is_near)
}

/// A form in parts, each either a number or what is between two.
fn with_split_numbers(form: &str) -> Vec<&str> {
    let belongs = |it: char| it.is_ascii_digit() || matches!(it, '.' | 'e' | 'E' | '-' | '+');
    form.split_inclusive(|it| !belongs(it))
        .flat_map(|part| {
            let end = part.trim_end_matches(|it| !belongs(it)).len();
            [&part[..end], &part[end..]]
        })
        .collect()
}

fn double_form(number: f64) -> String {
    // Beyond it not every integer is a double.
    let is_whole = number.fract() == 0.0 && number.abs() < 9e15;
    match is_whole && !(number == 0.0 && number.is_sign_negative()) {
        true => format!("{}", number as i64),
        false => format!("{number:.11e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_by_value_and_name() {
        let names = Names {
            vertices: HashMap::from([("p:1".to_owned(), "ann".to_owned())]),
            edges: HashMap::from([("0/1".to_owned(), "e1".to_owned())]),
        };
        let list = Value::List(vec![2.0.into(), 1_i64.into(), 0.5.into(), "0/1".into(), "x".into()]);
        let of = |lists| forms(&[list.clone(), 7.into()], &names, Orders { lists, ..Orders::default() });
        assert_eq!(of(true), ["7#int", "[2#double, 1#long, 5.00000000000e-1#double, id of e1, \"x\"]"]);
        assert_eq!(of(false), ["7#int", "[\"x\", 1#long, 2#double, 5.00000000000e-1#double, id of e1]"]);
        assert_eq!(forms(&[(-0.0).into()], &names, Orders::default()), [NEGATIVE_ZERO]);
        assert_eq!(without_types(&of(true)[1]), "[2, 1, 5.00000000000e-1, id of e1, \"x\"]");
        assert!(are_near("\"a 0.3620142105867359, -2.5E-3\"", "\"a 0.3620142105867352, -2.5E-3\"", 1e-11));
        assert!(!are_near("\"a 0.36201421058\"", "\"a 0.36201421059\"", 1e-11));
        assert!(!are_near("\"9007199254740993\"", "\"9007199254740992\"", 1e-11));
        assert!(!are_near("\"a 0.5\"", "\"b 0.5\"", 1e-11));
        let map = |entries: &[(&str, i32)]| {
            Value::Map(entries.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect())
        };
        let forms_of = |value: Value| forms(&[value], &names, Orders::default());
        assert_eq!(forms_of(map(&[("a", 1), ("b", 2)])), forms_of(map(&[("b", 2), ("a", 1)])));
        assert_ne!(forms_of(map(&[("a", 1), ("b", 2)])), forms_of(map(&[("a", 2), ("b", 1)])));
    }
}
