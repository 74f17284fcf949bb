//! What a scenario writes for a value: `d[29].i`, `v[marko]`, `m[{"a":"l[v[josh],v[peter]]"}]`.
//!
//! | form | value |
//! | --- | --- |
//! | `d[1].i` | a number; `b s i l n f d m` is its type; `d[NaN]`, `d[Infinity]` and `d[-Infinity]` have none |
//! | `v[marko]`, `v[marko].id`, `v[marko].sid` | a vertex by its name, its id, its id as text |
//! | `e[marko-knows->josh]`, with `.id` and `.sid`, too | an edge |
//! | `vp[marko-age->d[29].i]` | a property of a vertex |
//! | `l[…]`, `s[…]`, `p[…]` | a list, a set, a path: items in any of these forms, separated by commas |
//! | `m[{…}]` | a map in JSON, whose keys and texts are in any of these forms |
//! | `t[id]`, `D[OUT]`, `M[outV]` | tokens of `T`, `Direction` and `Merge` |
//! | `dt[2023-08-08T00:00:00Z]`, `uuid[…]` | a point in time, a UUID |
//! | `str[…]` | the text within, whatever it looks like |
//! | `null`, `true`, `false` | these |
//! | anything else | a text |

use std::str::FromStr;

use hoplake::gremlin::{
    literal::Number,
    script::{Argument, Statement},
    text,
    tokens::Token,
    value::{Path, Value},
};
use serde_json::Value as Json;

use crate::elements::Elements;

/// Whether a text has a form that takes [`Elements`] to be read.
pub fn names_elements(text: &str) -> bool {
    ["v[", "e[", "vp["].iter().any(|form| {
        text.match_indices(form).any(|(place, _)| !text[..place].ends_with(|before: char| before.is_alphanumeric()))
    })
}

/// The value that a text stands for.
pub fn value(text: &str, elements: &Elements) -> Result<Value, String> {
    let text = text.trim();
    match text {
        "null" => return Ok(Value::Null),
        "true" => return Ok(true.into()),
        "false" => return Ok(false.into()),
        _ => {}
    }
    if let Some(value) = collection(text, elements)? {
        return Ok(value);
    }
    if let Some(value) = element(text, elements)? {
        return Ok(value);
    }
    scalar(text)
}

/// What is within `form[…]suffix`.
fn within<'a>(text: &'a str, form: &str, suffix: &str) -> Option<&'a str> {
    text.strip_prefix(form)?.strip_prefix('[')?.strip_suffix(suffix)?.strip_suffix(']')
}

fn collection(text: &str, elements: &Elements) -> Result<Option<Value>, String> {
    let values = |inner: &str| -> Result<Vec<Value>, String> {
        items(inner).into_iter().map(|item| value(item, elements)).collect()
    };
    if let Some(inner) = within(text, "l", "") {
        return values(inner).map(Value::List).map(Some);
    }
    if let Some(inner) = within(text, "s", "") {
        return values(inner).map(Value::Set).map(Some);
    }
    if let Some(inner) = within(text, "p", "") {
        let steps = values(inner)?.into_iter().map(|value| (value, Vec::new())).collect();
        return Ok(Some(Value::Path(Box::new(Path { steps }))));
    }
    if let Some(inner) = within(text, "m", "") {
        let parsed = serde_json::from_str(inner).map_err(|error| format!("`{text}` is not JSON: {error}"))?;
        return json(parsed, elements).map(Some);
    }
    Ok(None)
}

/// Items separated by commas that are within no brackets.
fn items(text: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let mut depth = 0_usize;
    let mut begin = 0;
    for (place, character) in text.char_indices() {
        match character {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                items.push(text[begin..place].trim());
                begin = place + 1;
            }
            _ => {}
        }
    }
    if begin < text.len() {
        items.push(text[begin..].trim());
    }
    items
}

fn json(parsed: Json, elements: &Elements) -> Result<Value, String> {
    Ok(match parsed {
        Json::Null => Value::Null,
        Json::Bool(boolean) => boolean.into(),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => i32::try_from(integer).map_or(integer.into(), Value::from),
            (None, Some(float)) => float.into(),
            (None, None) => return Err(format!("{number} is no number of 64 bits")),
        },
        Json::String(text) => value(&text, elements)?,
        Json::Array(items) => {
            Value::List(items.into_iter().map(|item| json(item, elements)).collect::<Result<_, _>>()?)
        }
        Json::Object(entries) => {
            let entry = |(key, item): (String, Json)| Ok((value(&key, elements)?, json(item, elements)?));
            Value::Map(entries.into_iter().map(entry).collect::<Result<_, String>>()?)
        }
    })
}

fn element(text: &str, elements: &Elements) -> Result<Option<Value>, String> {
    if let Some(triplet) = within(text, "vp", "") {
        let property = elements.vertex_property(triplet, |inner| value(inner, elements))?;
        return Ok(Some(Value::VertexProperty(Box::new(property.clone()))));
    }
    for suffix in [".id", ".sid", ""] {
        let id = if let Some(name) = within(text, "v", suffix) {
            let vertex = elements.vertex(name)?;
            if suffix.is_empty() {
                return Ok(Some(Value::Vertex(Box::new(vertex.clone()))));
            }
            &vertex.id
        } else if let Some(triplet) = within(text, "e", suffix) {
            let edge = elements.edge(triplet)?;
            if suffix.is_empty() {
                return Ok(Some(Value::Edge(Box::new(edge.clone()))));
            }
            &edge.id
        } else {
            continue;
        };
        return if suffix == ".id" { Ok(Some(id.clone())) } else { text_of_id(id).map(Some) };
    }
    Ok(None)
}

fn text_of_id(id: &Value) -> Result<Value, String> {
    match id {
        Value::Text(_) => Ok(id.clone()),
        Value::Number(number) => Ok(number.to_string().as_str().into()),
        Value::Uuid(uuid) => Ok(uuid.to_string().as_str().into()),
        other => Err(format!("an id {other:?} has no text")),
    }
}

fn scalar(text: &str) -> Result<Value, String> {
    if let Some(inner) = within(text, "str", "") {
        return Ok(inner.into());
    }
    if let Some(inner) = within(text, "uuid", "") {
        return inner.parse().map(Value::Uuid).map_err(|error| format!("`{text}`: {error}"));
    }
    if let Some(inner) = within(text, "dt", "") {
        return date_time(inner);
    }
    for (form, enumeration) in [("t", "T"), ("D", "Direction"), ("M", "Merge")] {
        if let Some(name) = within(text, form, "") {
            let token = Token::qualified(enumeration, name);
            return token.map(Value::Token).ok_or_else(|| format!("{enumeration} has no `{name}`"));
        }
    }
    number(text).map(|number| number.map_or_else(|| text.into(), Value::Number))
}

fn number(text: &str) -> Result<Option<Number>, String> {
    fn parsed<T: FromStr>(digits: &str, number: fn(T) -> Number) -> Result<Option<Number>, String> {
        digits.parse().map(number).map(Some).map_err(|_| format!("`{digits}` is not a number of its type"))
    }

    match text {
        "d[NaN]" => return Ok(Some(Number::Double(f64::NAN))),
        "d[Infinity]" => return Ok(Some(Number::Double(f64::INFINITY))),
        "d[-Infinity]" => return Ok(Some(Number::Double(f64::NEG_INFINITY))),
        _ => {}
    }
    let Some((digits, kind)) = text.strip_prefix("d[").and_then(|rest| rest.rsplit_once("].")) else { return Ok(None) };
    match kind {
        "b" => parsed(digits, Number::Byte),
        "s" => parsed(digits, Number::Short),
        "i" => parsed(digits, Number::Int),
        "l" => parsed(digits, Number::Long),
        "n" => parsed(digits, Number::BigInteger),
        "f" => parsed(digits, Number::Float),
        "d" => parsed(digits, Number::Double),
        "m" => parsed(digits, Number::BigDecimal),
        _ => Ok(None),
    }
}

/// As the language itself reads it.
fn date_time(text: &str) -> Result<Value, String> {
    let script = text::parse(&format!("g.inject(datetime('{text}'))")).map_err(|error| error.to_string())?;
    match script.statements.into_iter().next() {
        Some(Statement::Traversal(traversal, _)) => match traversal.steps.into_iter().next() {
            Some(call) => match call.arguments.into_iter().next() {
                Some(Argument::Literal(literal)) => Ok(literal.into()),
                other => Err(format!("`{text}` is {other:?}")),
            },
            None => Err(format!("`{text}` is not a time")),
        },
        other => Err(format!("`{text}` is {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use hoplake::gremlin::{
        moment::Moment,
        tokens::{Direction, Merge, T},
        value::{Edge, Vertex, VertexProperty},
    };

    use super::*;

    fn named(id: i32, name: &str) -> Vertex {
        let name = VertexProperty { id: (id + 100).into(), key: "name".into(), value: name.into(), properties: None };
        Vertex { id: id.into(), label: "person".into(), properties: Some(vec![name]) }
    }

    fn elements() -> Elements {
        let edge = Edge {
            id: 7.into(),
            label: "knows".into(),
            out_vertex: (1.into(), "person".into()),
            in_vertex: (2.into(), "person".into()),
            properties: None,
        };
        Elements::new(vec![named(1, "marko"), named(2, "jean-luc")], vec![edge])
    }

    fn read(text: &str) -> Value {
        value(text, &elements()).unwrap()
    }

    #[test]
    fn numbers_have_the_type_of_their_suffix() {
        assert_eq!(read("d[29].i"), 29.into());
        assert_eq!(read("d[-3].l"), (-3_i64).into());
        assert_eq!(read("d[1].b"), Number::Byte(1).into());
        assert_eq!(read("d[1].s"), Number::Short(1).into());
        assert_eq!(read("d[0.5].f"), Number::Float(0.5).into());
        assert_eq!(read("d[0.5].d"), 0.5.into());
        assert_eq!(
            read("d[123456789012345678901].n"),
            Number::BigInteger("123456789012345678901".parse().unwrap()).into()
        );
        assert_eq!(read("d[1.50].m"), Number::BigDecimal("1.50".parse().unwrap()).into());
        assert_eq!(read("d[-Infinity]"), f64::NEG_INFINITY.into());
        assert!(matches!(read("d[NaN]"), Value::Number(Number::Double(nan)) if nan.is_nan()));
        assert!(value("d[300].b", &elements()).is_err());
    }

    #[test]
    fn elements_are_found_by_their_names() {
        assert_eq!(read("v[marko]"), Value::Vertex(Box::new(named(1, "marko"))));
        assert_eq!(read("v[jean-luc].id"), 2.into());
        assert_eq!(read("v[marko].sid"), "1".into());
        assert_eq!(read("e[marko-knows->jean-luc].id"), 7.into());
        assert!(matches!(read("e[marko-knows->jean-luc]"), Value::Edge(edge) if edge.id == 7.into()));
        assert!(matches!(read("vp[marko-name->marko]"), Value::VertexProperty(found) if found.id == 101.into()));
        assert_eq!(value("v[lop]", &elements()), Err("no vertex has the name `lop`".to_owned()));
        assert!(value("e[marko-knows->marko]", &elements()).is_err());
    }

    #[test]
    fn collections_nest() {
        assert_eq!(read("l[]"), Value::List(vec![]));
        assert_eq!(
            read("l[a, l[d[1].i,null],str[x,y]]"),
            Value::List(vec!["a".into(), Value::List(vec![1.into(), Value::Null]), "x,y".into()])
        );
        assert_eq!(read("s[true,false]"), Value::Set(vec![true.into(), false.into()]));
        let Value::Path(path) = read("p[d[1].i,v[marko].id]") else { panic!("not a path") };
        assert_eq!(path.steps, [(1.into(), vec![]), (1.into(), vec![])]);
    }

    #[test]
    fn maps_have_keys_and_values_in_any_form() {
        let map =
            read(r#"m[{"t[id]": "v[marko].id", "d[2].l": ["x", 0.5, null], "D[OUT]": "m[{\"a\": 3000000000}]"}]"#);
        let Value::Map(entries) = map else { panic!("not a map") };
        let value_of = |key: Value| entries.iter().find(|(other, _)| *other == key).map(|(_, value)| value.clone());
        assert_eq!(value_of(Value::Token(Token::T(T::Id))), Some(1.into()));
        assert_eq!(value_of(2_i64.into()), Some(Value::List(vec!["x".into(), 0.5.into(), Value::Null])));
        let inner = Value::Map(vec![("a".into(), 3_000_000_000_i64.into())]);
        assert_eq!(value_of(Value::Token(Token::Direction(Direction::Out))), Some(inner));
    }

    #[test]
    fn other_forms_are_scalars() {
        assert_eq!(read("M[outV]"), Value::Token(Token::Merge(Merge::OutV)));
        assert_eq!(read("D[from]"), Value::Token(Token::Direction(Direction::Out)));
        assert_eq!(read("str[v[1]]"), "v[1]".into());
        assert_eq!(read("str[null]"), "null".into());
        assert_eq!(read("marko"), "marko".into());
        assert_eq!(read("d[1]"), "d[1]".into());
        let moment = Moment::parse("2023-08-08T00:00:00Z").unwrap();
        assert_eq!(read("dt[2023-08-08T00:00:00Z]"), Value::DateTime(moment));
        let uuid = "f47af10b-58cc-4372-a567-0f02b2f3d479";
        assert_eq!(read(&format!("uuid[{uuid}]")), Value::Uuid(uuid.parse().unwrap()));
    }

    #[test]
    fn only_elements_are_asked_for() {
        assert!(names_elements("v[marko].id"));
        assert!(names_elements("m[{\"a\":\"e[marko-knows->josh]\"}]"));
        assert!(names_elements("p[d[1].i,v[marko]]"));
        assert!(names_elements("vp[marko-name->marko]"));
        assert!(!names_elements("l[d[1].i]"));
        assert!(!names_elements("love[1]"));
    }
}
