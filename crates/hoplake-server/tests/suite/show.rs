//! Values as scenarios write them, for the reasons of failures. Elements have their ids, because their names are not at hand.

use hoplake::gremlin::{
    literal::Number,
    value::{Tree, Value},
};

/// A value.
pub fn show(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Boolean(boolean) => boolean.to_string(),
        Value::Number(number) => show_number(number),
        Value::Text(text) => text.to_string(),
        Value::DateTime(moment) => format!("dt[{}Z]", moment.utc()),
        Value::Uuid(uuid) => format!("uuid[{uuid}]"),
        Value::List(items) => format!("l[{}]", joined(items)),
        Value::Set(items) => format!("s[{}]", joined(items)),
        Value::BulkSet(items) => {
            let items: Vec<String> = items.iter().map(|(item, bulk)| format!("{} × {bulk}", show(item))).collect();
            format!("bulk set[{}]", items.join(", "))
        }
        Value::Map(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|(key, value)| format!("{}: {}", show(key), show(value))).collect();
            format!("m[{}]", entries.join(", "))
        }
        Value::Vertex(vertex) => format!("v[{}]", show(&vertex.id)),
        Value::Edge(edge) => {
            format!("e[{}: {}-{}->{}]", show(&edge.id), show(&edge.out_vertex.0), edge.label, show(&edge.in_vertex.0))
        }
        Value::VertexProperty(property) => {
            format!("vp[{}: {}->{}]", show(&property.id), property.key, show(&property.value))
        }
        Value::Property(property) => format!("property[{}->{}]", property.key, show(&property.value)),
        Value::Path(path) => {
            let objects: Vec<String> = path.steps.iter().map(|(object, _)| show(object)).collect();
            format!("p[{}]", objects.join(","))
        }
        Value::Tree(tree) => show_tree(tree),
        Value::Token(token) => format!("{}.{}", token.enumeration(), token.name()),
        other => format!("{other:?}"),
    }
}

/// Values, one a line.
pub fn show_all<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    let lines: Vec<String> = values.into_iter().map(show).collect();
    if lines.is_empty() { "nothing".to_owned() } else { lines.join("\n  ") }
}

fn show_number(number: &Number) -> String {
    let kind = match number {
        Number::Byte(_) => "b",
        Number::Short(_) => "s",
        Number::Int(_) => "i",
        Number::Long(_) => "l",
        Number::BigInteger(_) => "n",
        Number::Float(_) => "f",
        Number::Double(_) => "d",
        Number::BigDecimal(_) => "m",
    };
    format!("d[{number}].{kind}")
}

fn show_tree(tree: &Tree) -> String {
    let branches: Vec<String> =
        tree.branches.iter().map(|(value, below)| format!("{}{}", show(value), show_tree(below))).collect();
    if branches.is_empty() { String::new() } else { format!("({})", branches.join(" ")) }
}

fn joined(values: &[Value]) -> String {
    values.iter().map(show).collect::<Vec<_>>().join(",")
}
