//! Values as people read them, as Java's console shows them: `v[1]`, `e[7][1-knows->2]`, `[a, b]`, `{name=[marko]}`.

use std::fmt::{self, Display, Formatter};

use super::{TraversalMetrics, Tree, Unread, Value};
use crate::literal::Number;

/// What a value is, for messages.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Boolean(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::Text(_) => "a text",
        Value::Char(_) => "a character",
        Value::DateTime(..) => "a point in time",
        Value::Duration(_) => "a duration",
        Value::Uuid(_) => "a UUID",
        Value::Bytes(_) => "bytes",
        Value::List(_) => "a list",
        Value::Set(_) | Value::BulkSet(_) => "a set",
        Value::Map(_) => "a map",
        Value::Entry(_) => "an entry of a map",
        Value::Vertex(_) => "a vertex",
        Value::Edge(_) => "an edge",
        Value::VertexProperty(_) | Value::Property(_) => "a property",
        Value::Path(_) => "a path",
        Value::Tree(_) => "a tree",
        Value::Graph(_) => "a graph",
        Value::Token(_) => "a token",
        Value::Traverser(_) => "a traverser",
        Value::Metrics(_) => "metrics",
        Value::Unread(element) => match **element {
            Unread::Vertex(_) => "a vertex",
            Unread::Edge(_) => "an edge",
            Unread::VertexProperty(_) | Unread::Property(_) => "a property",
        },
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Boolean(boolean) => boolean.fmt(f),
            Self::Number(Number::Double(number)) => {
                float(f, *number, format_args!("{number:?}"), format_args!("{number:E}"))
            }
            Self::Number(Number::Float(number)) => {
                float(f, f64::from(*number), format_args!("{number:?}"), format_args!("{number:E}"))
            }
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::Char(character) => character.fmt(f),
            Self::DateTime(moment) => moment.fmt(f),
            Self::Duration(duration) => duration.fmt(f),
            Self::Uuid(uuid) => uuid.fmt(f),
            Self::Bytes(bytes) => write!(f, "{bytes:?}"),
            Self::List(items) | Self::Set(items) => {
                f.write_str("[")?;
                row(f, items.iter(), |f, item| item.fmt(f))?;
                f.write_str("]")
            }
            Self::BulkSet(items) => {
                f.write_str("[")?;
                // An item may be in it billions of times.
                row(f, items.iter(), |f, (item, bulk)| match bulk {
                    1 => item.fmt(f),
                    bulk => write!(f, "{item} ×{bulk}"),
                })?;
                f.write_str("]")
            }
            Self::Map(entries) => {
                f.write_str("{")?;
                row(f, entries.iter(), |f, (key, value)| write!(f, "{key}={value}"))?;
                f.write_str("}")
            }
            Self::Entry(entry) => write!(f, "{}={}", entry.0, entry.1),
            Self::Vertex(vertex) => write!(f, "v[{}]", vertex.id),
            Self::Edge(edge) => {
                write!(f, "e[{}][{}-{}->{}]", edge.id, edge.out_vertex.0, edge.label, edge.in_vertex.0)
            }
            Self::VertexProperty(property) => write!(f, "vp[{}->{}]", property.key, property.value),
            Self::Property(property) => write!(f, "p[{}->{}]", property.key, property.value),
            Self::Path(path) => {
                f.write_str("path[")?;
                row(f, path.steps.iter(), |f, (item, _)| item.fmt(f))?;
                f.write_str("]")
            }
            Self::Tree(tree) => tree.fmt(f),
            Self::Graph(graph) => {
                write!(f, "graph[vertices:{} edges:{}]", graph.vertices.len(), graph.edges.len())
            }
            Self::Token(token) => f.write_str(token.name()),
            Self::Traverser(traverser) => traverser.value.fmt(f),
            Self::Metrics(metrics) => metrics.fmt(f),
            Self::Unread(element) => match &**element {
                Unread::Vertex(vertex) => write!(f, "v[{vertex}]"),
                Unread::Edge(edge) => write!(f, "e[{}]", edge.id()),
                Unread::VertexProperty(property) => write!(f, "vp[{}->{}]", property.key, property.value),
                Unread::Property(property) => write!(f, "p[{}->{}]", property.key, property.value),
            },
        }
    }
}

/// As `Double.toString` and `Float.toString` of Java: with an exponent below a thousandth and from ten millions on.
fn float(f: &mut Formatter<'_>, number: f64, plain: fmt::Arguments<'_>, scientific: fmt::Arguments<'_>) -> fmt::Result {
    match number.abs() {
        f64::INFINITY => f.write_str(if number < 0.0 { "-Infinity" } else { "Infinity" }),
        size if size != 0.0 && !(1e-3..1e7).contains(&size) && !number.is_nan() => {
            let text = scientific.to_string();
            let (digits, exponent) = text.split_once('E').unwrap_or((&text, "0"));
            write!(f, "{digits}{}E{exponent}", if digits.contains('.') { "" } else { ".0" })
        }
        _ => f.write_fmt(plain),
    }
}

impl Display for Tree {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        row(f, self.branches.iter(), |f, (item, below)| write!(f, "{item}={below}"))?;
        f.write_str("}")
    }
}

impl Display for TraversalMetrics {
    /// A step a line: its time, its traversers, and what else is known of it.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let width = self.steps.iter().map(|step| step.name.chars().count()).max().unwrap_or(0);
        for (number, step) in self.steps.iter().enumerate() {
            f.write_str(if number == 0 { "" } else { "\n" })?;
            write!(f, "{:width$}  {:>10.3} ms", step.name, step.duration_nanos as f64 / 1e6)?;
            step.counts.iter().try_for_each(|(name, count)| write!(f, "  {name}={count}"))?;
            let known = step.annotations.iter().filter(|(name, _)| **name != *"percentDur");
            known.into_iter().try_for_each(|(name, value)| write!(f, "  {name}={value}"))?;
        }
        Ok(())
    }
}

/// Items with commas between them.
fn row<T>(
    f: &mut Formatter<'_>,
    items: impl Iterator<Item = T>,
    write: impl Fn(&mut Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (number, item) in items.enumerate() {
        if number > 0 {
            f.write_str(", ")?;
        }
        write(f, item)?;
    }
    Ok(())
}
