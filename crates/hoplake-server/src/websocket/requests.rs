//! From messages to requests.

use axum::body::Bytes;
use hoplake::gremlin::{
    graphbinary, graphson,
    message::{Query, Request, Response},
    script::Script,
    value::Value,
};
use serde::Deserialize;
use uuid::Uuid;

use crate::{
    calls::{DriverOptions, GraphRef, GremlinOptions, GremlinRequest, RequestedLimits, names_of},
    failure::Failure,
};

/// The argument with the values of names.
const BINDINGS: &str = "bindings";

/// Another name of GraphSON 3.
const JSON: &str = "application/json";

/// How a message is encoded, and so its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    GraphBinary,
    GraphSon(graphson::Version),
}

/// How a message arrived, and so how its answers leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Encoding {
    pub(super) codec: Codec,
    /// In a text message, and not in a binary one.
    pub(super) is_text: bool,
}

/// How a text message is encoded.
const TEXT: Encoding = Encoding { codec: Codec::GraphSon(graphson::Version::Third), is_text: true };

/// A message that is no request.
#[derive(Debug, PartialEq)]
pub(super) struct Malformed {
    /// The id of the request, if that much of it could be read.
    pub(super) id: Option<Uuid>,
    pub(super) encoding: Encoding,
    pub(super) why: String,
}

/// Reads a binary message: the length of its media type, the media type, and the request.
pub(super) fn read_binary(message: &Bytes) -> Result<(Request, Encoding), Malformed> {
    let (body, encoding) = body_of(message)?;
    Ok((read(body, encoding)?, encoding))
}

/// The id of a request, if it can be read, and how the message is encoded; nothing else of it is decoded.
pub(super) fn head(message: &Bytes, is_text: bool) -> Result<(Option<Uuid>, Encoding), Malformed> {
    let (body, encoding) = if is_text { (&message[..], TEXT) } else { body_of(message)? };
    Ok((id_of(body, encoding.codec), encoding))
}

/// The request in a binary message.
fn body_of(message: &Bytes) -> Result<(&[u8], Encoding), Malformed> {
    let usual = Encoding { codec: Codec::GraphBinary, is_text: false };
    let media_type = message.split_first().and_then(|(length, rest)| rest.split_at_checked((*length).into()));
    let Some((media_type, body)) = media_type.filter(|(media_type, _)| !media_type.is_empty()) else {
        let why = "a binary message begins with the length of its media type and the media type".into();
        return Err(Malformed { id: None, encoding: usual, why });
    };
    let name = String::from_utf8_lossy(media_type);
    let (plain, parameters) = name.split_once(';').unwrap_or((&name, ""));
    let codec = [graphson::Version::Second, graphson::Version::Third].into_iter().find_map(|version| {
        (plain.strip_suffix("-untyped").unwrap_or(plain) == version.media_type()).then_some(Codec::GraphSon(version))
    });
    let codec = match (codec, plain) {
        (Some(codec), _) => codec,
        (None, JSON) => Codec::GraphSon(graphson::Version::Third),
        (None, graphbinary::MEDIA_TYPE) => Codec::GraphBinary,
        (None, _) => {
            let known = [
                graphbinary::MEDIA_TYPE,
                graphson::Version::Third.media_type(),
                graphson::Version::Second.media_type(),
            ];
            let why = format!("the media type {name:?} is none of {}", known.join(", "));
            return Err(Malformed { id: None, encoding: usual, why });
        }
    };
    let encoding = Encoding { codec, is_text: false };
    if plain.ends_with("-untyped") || parameters.contains("types=false") {
        let why = format!("{name}: GraphSON without types is not spoken here");
        return Err(Malformed { id: id_of(body, codec), encoding, why });
    }
    Ok((body, encoding))
}

/// Reads a text message, which is GraphSON.
pub(super) fn read_text(message: &[u8]) -> Result<(Request, Encoding), Malformed> {
    Ok((read(message, TEXT)?, TEXT))
}

fn read(body: &[u8], encoding: Encoding) -> Result<Request, Malformed> {
    let read = match encoding.codec {
        Codec::GraphBinary => graphbinary::read_request(body).map_err(|error| error.to_string()),
        Codec::GraphSon(_) => graphson::read_request(body).map_err(|error| error.to_string()),
    };
    read.map_err(|why| Malformed { id: id_of(body, encoding.codec), encoding, why })
}

/// The id of a request that could not be read, so that its driver learns which it was.
fn id_of(body: &[u8], codec: Codec) -> Option<Uuid> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Id {
        Plain(String),
        Typed {
            #[serde(rename = "@value")]
            value: String,
        },
    }
    #[derive(Deserialize)]
    struct Head {
        #[serde(rename = "requestId")]
        id: Id,
    }
    match codec {
        // After the version.
        Codec::GraphBinary => Uuid::from_slice(body.get(1..17)?).ok(),
        Codec::GraphSon(_) => match serde_json::from_slice::<Head>(body).ok()?.id {
            Id::Plain(id) | Id::Typed { value: id } => id.parse().ok(),
        },
    }
}

/// Writes a response.
pub(super) fn write(response: &Response, codec: Codec) -> Result<Vec<u8>, String> {
    match codec {
        Codec::GraphBinary => {
            let mut bytes = Vec::new();
            graphbinary::write_response(response, &mut bytes).map_err(|error| error.to_string())?;
            Ok(bytes)
        }
        Codec::GraphSon(version) => {
            let mut json = String::new();
            graphson::write_response(response, version, &mut json).map_err(|error| error.to_string())?;
            Ok(json.into_bytes())
        }
    }
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    /// A text.
    Eval,
    /// Bytecode.
    Bytecode,
    /// The end of a session.
    Close,
    /// A token.
    Authentication,
}

impl Op {
    /// What a request is for, and whether it is in a session.
    ///
    /// # Errors
    /// The status, and why it is for nothing.
    pub(super) fn of(request: &Request) -> Result<(Self, bool), (i32, String)> {
        if &*request.op == "authentication" {
            return Ok((Self::Authentication, false));
        }
        let in_session = match &*request.processor {
            "" | "standard" | "traversal" => false,
            "session" => true,
            other => return Err((499, format!("there is no processor {other:?}; there are traversal and session"))),
        };
        match &*request.op {
            "eval" => Ok((Self::Eval, in_session)),
            "bytecode" => Ok((Self::Bytecode, in_session)),
            "close" if in_session => Ok((Self::Close, true)),
            other => Err((
                498,
                format!(
                    "there is no op {other:?} here; there are eval, bytecode, authentication, and close of a session"
                ),
            )),
        }
    }

    /// Its name in the log.
    pub(super) fn call_name(self) -> &'static str {
        match self {
            Self::Eval => "Eval",
            Self::Bytecode => "Bytecode",
            Self::Close => "CloseSession",
            Self::Authentication => "Authentication",
        }
    }
}

/// The name of the session of a request.
pub(super) fn session_of(request: &Request) -> Result<Box<str>, Failure> {
    match request.argument("session") {
        Some(Value::Text(name)) if !name.is_empty() => Ok(name.clone()),
        Some(Value::Uuid(id)) => Ok(id.to_string().into()),
        _ => Err(Failure::invalid("a request of a session has the argument `session`: a text or a UUID")),
    }
}

/// What a request says, with `defaults` for what it leaves out. `read` makes a script of a text.
///
/// # Errors
/// [`Reason::Invalid`](crate::Reason::Invalid), with the argument; those of `read`.
pub(super) fn query_of(
    request: Request,
    op: Op,
    defaults: GremlinOptions,
    read: impl FnOnce(&str, &RequestedLimits) -> Result<Script, Failure>,
) -> Result<GremlinRequest, Failure> {
    let graph = GraphRef { name: graph_of(&request)?, version: 0 };
    let DriverOptions { options, limits } = DriverOptions::read(|name| request.argument(name), defaults)?;
    let Request { query, arguments, .. } = request;
    let bindings = arguments.into_iter().find(|(name, _)| &**name == BINDINGS).map(|(_, value)| value);
    let names = names_of(BINDINGS, bindings.unwrap_or_default())?;
    let script = match (op, query) {
        (Op::Eval, Some(Query::Text(text))) => read(&text, &limits)?,
        (Op::Bytecode, Some(Query::Script(script))) => script,
        (Op::Eval, _) => return Err(Failure::invalid("a request `eval` has the argument `gremlin`, which is a text")),
        _ => return Err(Failure::invalid("a request `bytecode` has the argument `gremlin`, which is bytecode")),
    };
    Ok(GremlinRequest { graph, is_alias: true, script, prepared: None, names, options, limits })
}

/// The graph that `g` is.
fn graph_of(request: &Request) -> Result<String, Failure> {
    let wrong = || Failure::invalid("`aliases` must be a map of names to graphs, such as {\"g\": \"air-routes\"}");
    let aliases = match request.argument("aliases") {
        None | Some(Value::Null) => return Ok("g".into()),
        Some(Value::Map(aliases)) => aliases,
        Some(_) => return Err(wrong()),
    };
    let own = aliases.iter().find(|(name, _)| matches!(name, Value::Text(name) if &**name == "g"));
    match own {
        None => Ok("g".into()),
        Some((_, Value::Text(graph))) => Ok(graph.to_string()),
        Some(_) => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(arguments: Vec<(&str, Value)>) -> Request {
        let arguments = arguments.into_iter().map(|(name, value)| (name.into(), value)).collect();
        let query = Some(Query::Text("g.V()".into()));
        Request { id: Uuid::from_u128(7), op: "eval".into(), processor: "".into(), query, arguments }
    }

    fn read(arguments: Vec<(&str, Value)>) -> Result<GremlinRequest, Failure> {
        let read = |text: &str, _: &RequestedLimits| Ok(hoplake::gremlin::parse(text)?);
        query_of(request(arguments), Op::Eval, GremlinOptions::default(), read)
    }

    #[test]
    fn arguments_are_checked() {
        let map = |name: &str, value: Value| Value::Map(vec![(name.into(), value)]);
        let usual = read(vec![]).unwrap();
        assert_eq!((usual.graph.name.as_str(), usual.options), ("g", GremlinOptions::default()));
        let own = read(vec![
            ("aliases", map("g", "modern".into())),
            ("batchSize", 5.into()),
            ("evaluationTimeout", 500_i64.into()),
            ("bindings", map("x", 1.into())),
        ]);
        let own = own.unwrap();
        assert_eq!((own.graph.name.as_str(), own.options.batch, own.limits.time_ms), ("modern", 5, 500));
        assert_eq!(own.names, [("x".into(), Value::from(1))]);
        for (name, value) in [
            ("aliases", Value::from(1)),
            ("aliases", map("g", 1.into())),
            ("batchSize", 0.into()),
            ("bindings", Value::Map(vec![(1.into(), 1.into())])),
        ] {
            let failure = read(vec![(name, value.clone())]).unwrap_err();
            assert!(failure.message.contains(name), "{name} {value:?}: {failure}");
        }
    }

    #[test]
    fn a_message_that_is_no_request_has_its_id() {
        let message = |media_type: &str, body: &[u8]| {
            Bytes::from([&[media_type.len() as u8], media_type.as_bytes(), body].concat())
        };
        let id = Uuid::from_u128(7);
        let binary = [&[0x81], &id.as_bytes()[..], &[1, 2]].concat();
        let json = format!("{{\"requestId\": {{\"@type\": \"g:UUID\", \"@value\": \"{id}\"}}, \"op\": 1}}");
        for (media_type, body, known) in [
            (graphbinary::MEDIA_TYPE, &binary[..], true),
            (graphbinary::MEDIA_TYPE, &[], false),
            ("application/vnd.gremlin-v3.0+json", json.as_bytes(), true),
            ("application/vnd.gremlin-v2.0+json-untyped", json.as_bytes(), true),
            ("application/vnd.gremlin-v3.0+json;types=false", json.as_bytes(), true),
            ("application/json", b"[", false),
            ("text/plain", json.as_bytes(), false),
            ("", b"", false),
        ] {
            let malformed = read_binary(&message(media_type, body)).unwrap_err();
            assert_eq!(malformed.id, known.then_some(id), "{media_type}: {malformed:?}");
        }
        assert!(read_binary(&Bytes::new()).is_err() && read_binary(&Bytes::from_static(&[200, 1])).is_err());
        assert!(read_text(b"").is_err());
    }
}
