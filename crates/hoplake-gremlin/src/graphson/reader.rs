//! From JSON to requests, responses and values.

use base64::{Engine, engine::general_purpose::STANDARD};
use hoplake_query::{
    literal::{CHARACTERS_MAX, Literal, Number},
    moment::Moment,
    tokens::Token,
    value::{Edge, Path, Property, Traverser, Tree, Value, Vertex, VertexProperty},
};
use jiff::SignedDuration;
use num_bigint::BigInt;

use super::{json::Json, version::DecodeError};
use crate::{
    bytecode::{self, Bytecode},
    message::{Query, Request, Response},
    script::{Argument, Call},
};

type Read<T> = Result<T, DecodeError>;

pub fn request(json: Json) -> Read<Request> {
    let mut fields = Fields::of(json, "request")?;
    let id = match value(fields.take("requestId")?)? {
        Value::Uuid(id) => id,
        Value::Text(id) => id.parse().map_err(|_| wrong("requestId", "it is not a UUID"))?,
        _ => return Err(wrong("requestId", "it is not a UUID")),
    };
    let op = fields.text("op")?;
    let processor = fields.text("processor")?;
    let mut query = None;
    let mut arguments = Vec::new();
    for (name, json) in object(fields.take("args")?, "args")? {
        match (&*name, json) {
            ("gremlin", Json::Text(text)) => query = Some(Query::Text(text)),
            ("gremlin", Json::Typed(kind, json)) if &*kind == "g:Bytecode" => {
                let script = instructions(*json)?.into_script().map_err(|why| wrong("g:Bytecode", why))?;
                query = Some(Query::Script(script));
            }
            ("gremlin", _) => return Err(wrong("args", "`gremlin` is neither text nor bytecode")),
            (_, json) => arguments.push((name, value(json)?)),
        }
    }
    Ok(Request { id, op, processor, query, arguments })
}

pub fn response(json: Json) -> Read<Response> {
    let mut fields = Fields::of(json, "response")?;
    let request_id = match fields.take("requestId")? {
        Json::Null => None,
        Json::Text(id) => Some(id.parse().map_err(|_| wrong("requestId", "it is not a UUID"))?),
        _ => return Err(wrong("requestId", "it is not a UUID")),
    };
    let mut status = Fields::of(fields.take("status")?, "status")?;
    let mut result = Fields::of(fields.take("result")?, "result")?;
    let Json::Integer(code) = status.take("code")? else { return Err(wrong("status", "`code` is not a number")) };
    Ok(Response {
        request_id,
        status: i32::try_from(code).map_err(|_| wrong("status", "`code` is not a status"))?,
        message: Some(status.text("message")?),
        attributes: entries(status.take("attributes")?)?,
        data: value(result.take("data")?)?,
        meta: entries(result.take("meta")?)?,
    })
}

pub fn value(json: Json) -> Read<Value> {
    argument(json, false)?.try_into().map_err(|error: bytecode::NotAValue| wrong("value", error.to_string()))
}

fn entries(json: Json) -> Read<Vec<(Value, Value)>> {
    match value(json)? {
        Value::Map(entries) => Ok(entries),
        _ => Err(wrong("value", "a map is missing")),
    }
}

/// A value, or what else may be an argument of a step, where a vertex is a reference.
fn argument(json: Json, in_bytecode: bool) -> Read<Argument> {
    Ok(Argument::Literal(match json {
        Json::Null => Literal::Null,
        Json::Boolean(boolean) => Literal::Boolean(boolean),
        Json::Integer(number) => Literal::Number(i32::try_from(number).map_or(Number::Long(number), Number::Int)),
        Json::Float(number) => Literal::Number(Number::Double(number)),
        Json::Digits(digits) => Literal::Number(Number::BigInteger(big_integer(&digits, "number")?)),
        Json::Text(text) => Literal::Text(text),
        Json::List(items) => return Ok(Argument::List(arguments(items, in_bytecode)?)),
        Json::Object(entries) => {
            let entries = entries
                .into_iter()
                .map(|(key, json)| Ok((Argument::Literal(Literal::Text(key)), argument(json, in_bytecode)?)));
            return Ok(Argument::Map(entries.collect::<Read<_>>()?));
        }
        Json::Typed(kind, json) => {
            return typed(&kind, *json, in_bytecode).map_err(|error| match error.place == *kind {
                true => error,
                false => DecodeError { place: format!("{kind}, {}", error.place), message: error.message },
            });
        }
    }))
}

fn arguments(items: Vec<Json>, in_bytecode: bool) -> Read<Vec<Argument>> {
    items.into_iter().map(|item| argument(item, in_bytecode)).collect()
}

fn typed(kind: &str, json: Json, in_bytecode: bool) -> Read<Argument> {
    if json == Json::Null {
        return Ok(Argument::Literal(Literal::Null));
    }
    if let Some(literal) = scalar(kind, &json)? {
        return Ok(Argument::Literal(literal));
    }
    let text = |json: &Json| match json {
        Json::Text(text) => Ok(text.clone()),
        _ => Err(wrong(kind, "its value is not text")),
    };
    let short = kind.strip_prefix("g:").unwrap_or(kind);
    Ok(match short {
        "List" => Argument::List(arguments(list(json, kind)?, in_bytecode)?),
        "Set" => Argument::Set(arguments(list(json, kind)?, in_bytecode)?),
        "Map" => map(json, kind, in_bytecode)?,
        "Class" => bytecode::class(&text(&json)?),
        "Binding" => argument(Fields::of(json, kind)?.take("value")?, in_bytecode)?,
        "Bytecode" => instructions(json)?.into_argument().map_err(|why| wrong(kind, why))?,
        "P" | "TextP" => predicate(json, kind)?,
        "Lambda" => return Err(wrong(kind, "lambdas are refused: they are code")),
        "Vertex" if in_bytecode => value(Json::Typed(kind.into(), Box::new(json)))?.into(),
        _ if short.ends_with("Strategy") => strategy(short, json)?,
        _ => match &json {
            Json::Text(name) if Token::qualified(short, name).is_some() => {
                Token::qualified(short, name).map(Argument::Token).ok_or_else(|| wrong(kind, "no such value"))?
            }
            _ => Argument::Value(Box::new(result(kind, json)?)),
        },
    })
}

/// A scalar of a type; `None` if it is a type of something else.
fn scalar(kind: &str, json: &Json) -> Read<Option<Literal>> {
    let failed = || wrong(kind, "its value is not one of this type");
    let integer = || match json {
        Json::Integer(number) => Ok(*number),
        _ => Err(failed()),
    };
    let float = || match json {
        Json::Integer(number) => Ok(*number as f64),
        Json::Float(number) => Ok(*number),
        Json::Text(name) => match &**name {
            "NaN" => Ok(f64::NAN),
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            _ => Err(failed()),
        },
        _ => Err(failed()),
    };
    let text = || match json {
        Json::Text(text) => Ok(&**text),
        _ => Err(failed()),
    };
    let number = match kind {
        "gx:Byte" => Number::Byte(i8::try_from(integer()?).map_err(|_| failed())?),
        "gx:Int16" => Number::Short(i16::try_from(integer()?).map_err(|_| failed())?),
        "g:Int32" => Number::Int(i32::try_from(integer()?).map_err(|_| failed())?),
        "g:Int64" => Number::Long(integer()?),
        "g:Float" => Number::Float(float()? as f32),
        "g:Double" => Number::Double(float()?),
        "gx:BigInteger" => Number::BigInteger(big_integer(digits(json).ok_or_else(failed)?, kind)?),
        "gx:BigDecimal" => big_decimal(digits(json).ok_or_else(failed)?, kind)?,
        _ => {
            return Ok(Some(match kind {
                "g:UUID" => Literal::Uuid(text()?.parse().map_err(|_| failed())?),
                "gx:Char" => {
                    let mut characters = text()?.chars();
                    match (characters.next(), characters.next()) {
                        (Some(character), None) => Literal::Char(character),
                        _ => return Err(failed()),
                    }
                }
                "gx:ByteBuffer" => Literal::Bytes(STANDARD.decode(text()?).map_err(|_| failed())?.into()),
                "gx:Duration" => Literal::Duration(duration(text()?).ok_or_else(failed)?),
                "g:Date" | "g:Timestamp" => {
                    let since = SignedDuration::from_millis(integer()?);
                    Literal::DateTime(Moment::since_epoch(since).ok_or_else(failed)?)
                }
                "gx:Instant" | "gx:OffsetDateTime" | "gx:ZonedDateTime" => {
                    Literal::DateTime(Moment::parse(text()?).ok_or_else(failed)?)
                }
                _ => return Ok(None),
            }));
        }
    };
    Ok(Some(Literal::Number(number)))
}

/// `P1DT2H3M4.5S`, as Java writes it: each number may have a sign of its own.
fn duration(text: &str) -> Option<SignedDuration> {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
    let (days, time) = match text.strip_prefix('P')?.split_once('T') {
        Some((days, time)) => (days, time),
        None => (text.strip_prefix('P')?, ""),
    };
    let mut total = SignedDuration::ZERO;
    for (part, units) in [(days, &[('D', 86_400)][..]), (time, &[('H', 3_600), ('M', 60), ('S', 1)][..])] {
        let mut rest = part;
        let mut units = units.iter();
        while !rest.is_empty() {
            let end = rest.find(|it: char| it.is_ascii_alphabetic())?;
            let number = &rest[..end];
            let unit = rest[end..].chars().next()?;
            let (_, seconds) = units.find(|(name, _)| *name == unit)?;
            total = total.checked_add(fraction(number)?.checked_mul(*seconds)?)?;
            rest = &rest[end + 1..];
        }
    }
    if negative { SignedDuration::ZERO.checked_sub(total) } else { Some(total) }
}

/// Seconds with up to nine digits after the point.
fn fraction(number: &str) -> Option<SignedDuration> {
    let (whole, after) = number.split_once('.').unwrap_or((number, ""));
    if after.len() > 9 || !after.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    let nanos: i64 = format!("{after:0<9}").parse().ok()?;
    let nanos = if number.starts_with('-') { -nanos } else { nanos };
    SignedDuration::from_secs(whole.parse().ok()?).checked_add(SignedDuration::from_nanos(nanos))
}

fn digits(json: &Json) -> Option<&str> {
    match json {
        Json::Digits(digits) | Json::Text(digits) => Some(digits),
        // After the digits are gone, a number is as good as its type only if it is short.
        _ => None,
    }
}

fn big_integer(digits: &str, place: &str) -> Read<BigInt> {
    check_length(digits, place)?;
    let number = digits.parse().map_err(|_| wrong(place, "its value is not an integer"))?;
    match within_limits(Number::BigInteger(number), place)? {
        Number::BigInteger(number) => Ok(number),
        _ => Err(wrong(place, "its value is not an integer")),
    }
}

fn big_decimal(digits: &str, place: &str) -> Read<Number> {
    check_length(digits, place)?;
    let decimal: bigdecimal::BigDecimal = digits.parse().map_err(|_| wrong(place, "its value is not a decimal"))?;
    within_limits(Number::BigDecimal(decimal), place)
}

/// Before a number is read, which takes the square of its length.
fn check_length(digits: &str, place: &str) -> Read<()> {
    match digits.len() > CHARACTERS_MAX {
        true => Err(wrong(place, format!("a number has {} characters, and {CHARACTERS_MAX} at most", digits.len()))),
        false => Ok(()),
    }
}

fn within_limits(number: Number, place: &str) -> Read<Number> {
    match number.beyond() {
        Some(limit) => Err(wrong(place, limit)),
        None => Ok(number),
    }
}

/// Keys and values in turn, or an object.
fn map(json: Json, kind: &str, in_bytecode: bool) -> Read<Argument> {
    let items = match json {
        Json::List(items) => arguments(items, in_bytecode)?,
        object => return argument(object, in_bytecode),
    };
    if !items.len().is_multiple_of(2) {
        return Err(wrong(kind, "a key has no value"));
    }
    let mut items = items.into_iter();
    let mut entries = Vec::with_capacity(items.len() / 2);
    while let (Some(key), Some(value)) = (items.next(), items.next()) {
        entries.push((key, value));
    }
    Ok(Argument::Map(entries))
}

fn instructions(json: Json) -> Read<Bytecode> {
    let mut fields = Fields::of(json, "g:Bytecode")?;
    let mut calls = |name: &str| match fields.find(name) {
        Some(json) => list(json, "g:Bytecode")?.into_iter().map(instruction).collect::<Read<Vec<_>>>(),
        None => Ok(Vec::new()),
    };
    Ok(Bytecode { steps: calls("step")?, sources: calls("source")? })
}

fn instruction(json: Json) -> Read<Call> {
    let mut items = list(json, "g:Bytecode")?.into_iter();
    match items.next() {
        Some(Json::Text(name)) => Ok(Call { name, arguments: arguments(items.collect(), true)? }),
        _ => Err(wrong("g:Bytecode", "an instruction begins with its name")),
    }
}

fn predicate(json: Json, kind: &str) -> Read<Argument> {
    let mut fields = Fields::of(json, kind)?;
    let name = fields.text("predicate")?;
    let values = match argument(fields.take("value")?, true)? {
        // `within`, `and`, `between`, `inside` and `outside` have a list of values.
        Argument::List(values) | Argument::Set(values) => values,
        one => vec![one],
    };
    bytecode::predicate(&name, values).map(Argument::Predicate).map_err(|why| wrong(kind, why))
}

/// The class is the type. Options are in `conf`, next to the name of the class, or are the value itself.
fn strategy(kind: &str, json: Json) -> Read<Argument> {
    let mut fields = Fields::of(json, kind)?;
    let class = fields.find("fqcn");
    let options = match (fields.find("conf"), &class) {
        (Some(conf), _) => object(conf, kind)?,
        (None, Some(_)) => Vec::new(),
        (None, None) => fields.all,
    };
    let options = options.into_iter().map(|(name, json)| Ok((name, argument(json, true)?)));
    Ok(bytecode::strategy(kind, options.collect::<Read<_>>()?))
}

fn result(kind: &str, json: Json) -> Read<Value> {
    Ok(match kind {
        "g:Vertex" => Value::Vertex(Box::new(vertex(json)?)),
        "g:Edge" => Value::Edge(Box::new(edge(json)?)),
        "g:VertexProperty" => Value::VertexProperty(Box::new(vertex_property(json)?)),
        "g:Property" => Value::Property(Box::new(property(json)?)),
        "g:Path" => Value::Path(Box::new(path(json)?)),
        "g:Tree" => Value::Tree(tree(json)?),
        "g:BulkSet" => {
            let mut items = list(json, kind)?.into_iter();
            let mut bulks = Vec::with_capacity(items.len() / 2);
            while let Some(item) = items.next() {
                let item = value(item)?;
                let bulk = items.next().ok_or_else(|| wrong(kind, "an item has no number"))?;
                bulks.push((item, bulk_of(bulk, kind)?));
            }
            bytecode::bulk_set(bulks).map_err(|error| wrong(kind, error.to_string()))?
        }
        "g:Traverser" => {
            let mut fields = Fields::of(json, kind)?;
            let bulk = bulk_of(fields.take("bulk")?, kind)?;
            Value::Traverser(Box::new(Traverser { bulk, value: value(fields.take("value")?)? }))
        }
        _ => return Err(wrong(kind, "this type or this value of it is not supported")),
    })
}

fn bulk_of(json: Json, kind: &str) -> Read<u64> {
    let bulk = match value(json)? {
        Value::Number(Number::Long(bulk)) => u64::try_from(bulk).ok(),
        Value::Number(Number::Int(bulk)) => u64::try_from(bulk).ok(),
        _ => None,
    };
    bulk.ok_or_else(|| wrong(kind, "a bulk is not a positive integer"))
}

fn vertex(json: Json) -> Read<Vertex> {
    let mut fields = Fields::of(json, "g:Vertex")?;
    let properties = match fields.find("properties") {
        None => None,
        Some(json) => {
            let mut all = Vec::new();
            for (_, values) in object(json, "g:Vertex")? {
                for json in list(values, "g:Vertex")? {
                    match value(json)? {
                        Value::VertexProperty(property) => all.push(*property),
                        _ => return Err(wrong("g:Vertex", "its properties are not g:VertexProperty")),
                    }
                }
            }
            Some(all)
        }
    };
    Ok(Vertex { id: value(fields.take("id")?)?, label: fields.text("label")?, properties })
}

fn edge(json: Json) -> Read<Edge> {
    let mut fields = Fields::of(json, "g:Edge")?;
    let properties = match fields.find("properties") {
        None => None,
        Some(json) => {
            let all = object(json, "g:Edge")?.into_iter().map(|(_, json)| match value(json)? {
                Value::Property(property) => Ok(*property),
                _ => Err(wrong("g:Edge", "its properties are not g:Property")),
            });
            Some(all.collect::<Read<_>>()?)
        }
    };
    Ok(Edge {
        id: value(fields.take("id")?)?,
        label: fields.text("label")?,
        out_vertex: (value(fields.take("outV")?)?, fields.text("outVLabel")?),
        in_vertex: (value(fields.take("inV")?)?, fields.text("inVLabel")?),
        properties,
    })
}

fn vertex_property(json: Json) -> Read<VertexProperty> {
    let mut fields = Fields::of(json, "g:VertexProperty")?;
    let properties = match fields.find("properties") {
        None => None,
        Some(json) => {
            let all = object(json, "g:VertexProperty")?.into_iter();
            Some(all.map(|(key, json)| Ok(Property { key: key.into(), value: value(json)? })).collect::<Read<_>>()?)
        }
    };
    let id = value(fields.take("id")?)?;
    let key = fields.text("label")?;
    Ok(VertexProperty { id, key: key.into(), value: value(fields.take("value")?)?, properties })
}

fn property(json: Json) -> Read<Property> {
    let mut fields = Fields::of(json, "g:Property")?;
    Ok(Property { key: fields.text("key")?.into(), value: value(fields.take("value")?)? })
}

fn path(json: Json) -> Read<Path> {
    let failed = || wrong("g:Path", "it has not as many sets of labels as values");
    let mut fields = Fields::of(json, "g:Path")?;
    let Value::List(labels) = value(fields.take("labels")?)? else { return Err(failed()) };
    let Value::List(objects) = value(fields.take("objects")?)? else { return Err(failed()) };
    if labels.len() != objects.len() {
        return Err(failed());
    }
    let labels = labels.into_iter().map(|labels| match labels {
        Value::Set(labels) | Value::List(labels) => {
            let text = |label| match label {
                Value::Text(label) => Some(label),
                _ => None,
            };
            labels.into_iter().map(text).collect::<Option<Vec<_>>>().ok_or_else(failed)
        }
        _ => Err(failed()),
    });
    let steps = objects.into_iter().zip(labels).map(|(object, labels)| Ok((object, labels?)));
    Ok(Path { steps: steps.collect::<Read<_>>()? })
}

fn tree(json: Json) -> Read<Tree> {
    let branches = list(json, "g:Tree")?.into_iter().map(|json| {
        let mut fields = Fields::of(json, "g:Tree")?;
        let item = value(fields.take("key")?)?;
        match fields.take("value")? {
            Json::Typed(kind, below) if &*kind == "g:Tree" => Ok((item, tree(*below)?)),
            _ => Err(wrong("g:Tree", "a branch is not a g:Tree")),
        }
    });
    Ok(Tree { branches: branches.collect::<Read<_>>()? })
}

/// A list, of version 2 or 3.
fn list(json: Json, place: &str) -> Read<Vec<Json>> {
    match json {
        Json::List(items) => Ok(items),
        Json::Typed(kind, json) if &*kind == "g:List" => list(*json, place),
        _ => Err(wrong(place, "a list is missing")),
    }
}

/// Names and values, of version 2 or 3.
fn object(json: Json, place: &str) -> Read<Vec<(Box<str>, Json)>> {
    match json {
        Json::Object(entries) => Ok(entries),
        Json::Typed(kind, json) if &*kind == "g:Map" => match *json {
            Json::List(items) => {
                let mut items = items.into_iter();
                let mut entries = Vec::with_capacity(items.len() / 2);
                while let Some(key) = items.next() {
                    match (key, items.next()) {
                        (Json::Text(key), Some(json)) => entries.push((key, json)),
                        _ => return Err(wrong(place, "names and their values are missing")),
                    }
                }
                Ok(entries)
            }
            other => object(other, place),
        },
        _ => Err(wrong(place, "names and their values are missing")),
    }
}

/// The fields of an object, each of which is taken once.
struct Fields {
    place: Box<str>,
    all: Vec<(Box<str>, Json)>,
}

impl Fields {
    fn of(json: Json, place: &str) -> Read<Self> {
        Ok(Self { place: place.into(), all: object(json, place)? })
    }

    fn find(&mut self, name: &str) -> Option<Json> {
        let place = self.all.iter().position(|(other, _)| **other == *name)?;
        Some(self.all.swap_remove(place).1)
    }

    fn take(&mut self, name: &str) -> Read<Json> {
        self.find(name).ok_or_else(|| wrong(&self.place, format!("`{name}` is missing")))
    }

    fn text(&mut self, name: &str) -> Read<Box<str>> {
        match self.take(name)? {
            Json::Text(text) => Ok(text),
            _ => Err(wrong(&self.place, format!("`{name}` is not text"))),
        }
    }
}

fn wrong(place: &str, message: impl Into<String>) -> DecodeError {
    DecodeError { place: place.into(), message: message.into() }
}
