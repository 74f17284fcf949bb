//! Values and calls in the forms of `driver.py`: lists with the name of a type, and what makes a value of it.

use base64::{Engine, engine::general_purpose::STANDARD};
use hoplake::gremlin::{
    literal::{Literal, Number},
    moment::Moment,
    script::{Argument, Call, Predicate},
    tokens::Token,
    value::{Edge, Path, Property, Value, Vertex, VertexProperty},
};
use serde_json::{Value as Json, json};

type Form = Result<Json, String>;

fn all<T>(items: &[T], form: impl Fn(&T) -> Form) -> Form {
    items.iter().map(form).collect::<Result<Vec<_>, _>>().map(Json::from)
}

fn token(token: Token) -> Json {
    json!(["token", token.enumeration(), token.name()])
}

fn number(number: &Number) -> Json {
    let kind = match number {
        Number::Byte(_) => "byte",
        Number::Short(_) => "short",
        Number::Int(_) => "int",
        Number::Long(_) => "long",
        Number::BigInteger(_) => "bigint",
        // The driver has no floats of 32 bits.
        Number::Float(float) => return json!(["double", f64::from(*float).to_string()]),
        Number::Double(_) => "double",
        Number::BigDecimal(_) => "decimal",
    };
    json!([kind, number.to_string()])
}

/// A value that a driver sends.
pub fn of_value(value: &Value) -> Form {
    Ok(match value {
        Value::Null => json!(["null"]),
        Value::Boolean(boolean) => json!(["bool", boolean]),
        Value::Number(it) => number(it),
        Value::Text(text) => json!(["text", text]),
        Value::Char(it) => json!(["char", it]),
        Value::DateTime(moment) => json!(["datetime", format!("{}Z", moment.utc())]),
        Value::Duration(duration) => json!(["duration", duration.as_secs_f64()]),
        Value::Uuid(uuid) => json!(["uuid", uuid.to_string()]),
        Value::Bytes(bytes) => json!(["bytes", STANDARD.encode(bytes)]),
        Value::List(items) => json!(["list", all(items, of_value)?]),
        Value::Set(items) => json!(["set", all(items, of_value)?]),
        Value::Map(entries) => {
            json!(["map", all(entries, |(key, value)| Ok(json!([of_value(key)?, of_value(value)?])))?])
        }
        Value::Vertex(vertex) => json!(["vertex", of_value(&vertex.id)?, vertex.label]),
        Value::Edge(edge) => {
            let end = |(id, label): &(Value, Box<str>)| Ok::<_, String>(json!([of_value(id)?, ["text", label]]));
            json!(["edge", of_value(&edge.id)?, edge.label, end(&edge.out_vertex)?, end(&edge.in_vertex)?])
        }
        Value::Token(it) => token(*it),
        other => return Err(format!("gremlinpython sends no such value: {other}")),
    })
}

/// Calls, with the values of their names.
pub fn of_calls(calls: &[Call], bindings: &[(String, Value)]) -> Form {
    all(calls, |call| Ok(json!([call.name, all(&call.arguments, |it| of_argument(it, bindings))?])))
}

fn of_argument(argument: &Argument, bindings: &[(String, Value)]) -> Form {
    let many = |items: &[Argument]| all(items, |it| of_argument(it, bindings));
    Ok(match argument {
        Argument::Literal(literal) => of_literal(literal)?,
        Argument::Now => json!(["now"]),
        Argument::RandomUuid => json!(["random_uuid"]),
        Argument::List(items) => json!(["list", many(items)?]),
        Argument::Set(items) => json!(["set", many(items)?]),
        Argument::Map(entries) => {
            let entry = |(key, value): &(Argument, Argument)| {
                Ok(json!([of_argument(key, bindings)?, of_argument(value, bindings)?]))
            };
            json!(["map", all(entries, entry)?])
        }
        Argument::Traversal(calls) => json!(["traversal", of_calls(calls, bindings)?]),
        Argument::Predicate(predicate) => of_predicate(predicate, bindings)?,
        Argument::Token(it) => token(*it),
        Argument::Cardinality(cardinality, value) => {
            json!(["cardinality", cardinality.name(), of_argument(value, bindings)?])
        }
        Argument::Vertex(id, label) => {
            let label = of_argument(label, bindings)?;
            json!(["vertex", of_argument(id, bindings)?, label[1]])
        }
        Argument::Value(value) => of_value(value)?,
        Argument::Strategy(strategy) => {
            let option = |(name, value): &(Box<str>, Argument)| Ok(json!([name, of_argument(value, bindings)?]));
            json!(["strategy", strategy.name, all(&strategy.options, option)?])
        }
        Argument::Name(name) => match bindings.iter().find(|(other, _)| **other == **name) {
            Some((_, value)) => of_value(value)?,
            None => json!(["strategies", name]),
        },
    })
}

fn of_literal(literal: &Literal) -> Form {
    Ok(match literal {
        Literal::Null => json!(["null"]),
        Literal::Boolean(boolean) => json!(["bool", boolean]),
        Literal::Number(it) => number(it),
        Literal::Text(text) => json!(["text", text]),
        Literal::DateTime(moment) => json!(["datetime", format!("{}Z", moment.utc())]),
        Literal::Uuid(uuid) => json!(["uuid", uuid.to_string()]),
        other => return Err(format!("text has no form for {other:?}")),
    })
}

fn of_predicate(predicate: &Predicate, bindings: &[(String, Value)]) -> Form {
    let many = |all_of: &[Predicate]| all(all_of, |it| of_predicate(it, bindings));
    Ok(match predicate {
        Predicate::Test(test, arguments) => {
            json!(["test", format!("{test:?}"), all(arguments, |it| of_argument(it, bindings))?])
        }
        Predicate::And(all_of) => json!(["and", many(all_of)?]),
        Predicate::Or(all_of) => json!(["or", many(all_of)?]),
        Predicate::Not(one) => json!(["not", of_predicate(one, bindings)?]),
    })
}

/// A value that the driver gave.
pub fn value(form: &Json) -> Result<Value, String> {
    read(form).ok_or_else(|| format!("no value has the form {form}"))
}

fn read(form: &Json) -> Option<Value> {
    let form = form.as_array()?;
    let text = || form.get(1)?.as_str();
    let values = |at: usize| form.get(at)?.as_array()?.iter().map(read).collect::<Option<Vec<_>>>();
    Some(match form.first()?.as_str()? {
        "null" => Value::Null,
        "bool" => Value::Boolean(form.get(1)?.as_bool()?),
        "number" => Value::Number(match text()?.parse() {
            Ok(long) => Number::Long(long),
            Err(_) => Number::BigInteger(text()?.parse().ok()?),
        }),
        "double" => Value::Number(Number::Double(text()?.parse().ok()?)),
        "decimal" => Value::Number(Number::BigDecimal(text()?.parse().ok()?)),
        "text" => text()?.into(),
        "char" => Value::Char(text()?.chars().next()?),
        "datetime" => Value::DateTime(Moment::parse(text()?)?),
        "duration" => Value::Duration(jiff::SignedDuration::try_from_secs_f64(form.get(1)?.as_f64()?).ok()?),
        "uuid" => Value::Uuid(text()?.parse().ok()?),
        "bytes" => Value::Bytes(STANDARD.decode(text()?).ok()?.into()),
        "list" => Value::List(values(1)?),
        "set" => Value::Set(values(1)?),
        "map" => {
            let entry = |entry: &Json| Some((read(&entry[0])?, read(&entry[1])?));
            Value::Map(form.get(1)?.as_array()?.iter().map(entry).collect::<Option<_>>()?)
        }
        "path" => {
            let labels = form.get(2)?.as_array()?.iter().map(|labels| {
                labels.as_array()?.iter().map(|label| Some(label.as_str()?.into())).collect::<Option<Vec<Box<str>>>>()
            });
            let labels = labels.collect::<Option<Vec<_>>>()?;
            Value::Path(Box::new(Path { steps: values(1)?.into_iter().zip(labels).collect() }))
        }
        "vertex" => Value::Vertex(Box::new(Vertex {
            id: read(&form[1])?,
            label: form.get(2)?.as_str()?.into(),
            properties: Some(
                values(3)?
                    .into_iter()
                    .map(|value| match value {
                        Value::VertexProperty(property) => Some(*property),
                        _ => None,
                    })
                    .collect::<Option<_>>()?,
            ),
        })),
        "edge" => {
            let end = |end: &Json| Some((read(&end[0])?, Box::from(end[1].as_str()?)));
            Value::Edge(Box::new(Edge {
                id: read(&form[1])?,
                label: form.get(2)?.as_str()?.into(),
                out_vertex: end(&form[3][0])?,
                in_vertex: end(&form[3][1])?,
                properties: Some(
                    values(4)?
                        .into_iter()
                        .map(|value| match value {
                            Value::Property(property) => Some(*property),
                            _ => None,
                        })
                        .collect::<Option<_>>()?,
                ),
            }))
        }
        "vertex_property" => Value::VertexProperty(Box::new(VertexProperty {
            id: read(&form[1])?,
            key: form.get(2)?.as_str()?.into(),
            value: read(&form[3])?,
            properties: Some(Vec::new()),
        })),
        "property" => Value::Property(Box::new(Property { key: text()?.into(), value: read(&form[2])? })),
        "token" => Value::Token(Token::qualified(text()?, form.get(2)?.as_str()?)?),
        _ => return None,
    })
}
