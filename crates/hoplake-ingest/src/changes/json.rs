//! Changes as lines of JSON.
//!
//! A line is read piece by piece, each from its own text, and nothing in it may nest deeper than a list in the
//! properties. So its depth needs no bound of its own: that of its length suffices.

use std::{
    borrow::Cow,
    collections::HashSet,
    io::{BufRead, Read},
    sync::Arc,
};

use hoplake_engine::change::{Name, Value};
use serde_json::value::RawValue;

use super::{
    batch_rows::{ChangeInput, Source},
    columns::{Column, Role, row},
    json_value::{Members, raw, read, shown, text, value},
    location::SourceLocation,
    raw::{ChangeOp, Raw, RawChange, RawVertexRef},
};
use crate::IngestError;

/// The changes of a text, a line each; blank lines mean nothing.
pub(super) fn lines(file: Arc<str>, mut text: impl BufRead + Send + 'static, bytes_max: usize) -> Source {
    let mut number = 0;
    let mut line = Vec::new();
    Box::new(std::iter::from_fn(move || {
        loop {
            number += 1;
            let location = || SourceLocation::line(&file, number);
            line.clear();
            // The longest line, its end and one byte more: enough to see that a line is too long, without reading all of it.
            match (&mut text).take(bytes_max as u64 + 2).read_until(b'\n', &mut line) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => return Some(Err(IngestError::change(location(), format!("it cannot be read: {error}")))),
            }
            match written_line(&line, bytes_max) {
                Ok(None) => {}
                Ok(Some(written)) => return Some(Ok(ChangeInput::One(location(), written))),
                Err(why) => return Some(Err(IngestError::change(location(), why))),
            }
        }
    }))
}

fn written_line(line: &[u8], bytes_max: usize) -> Result<Option<RawChange>, String> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    if line.len() > bytes_max {
        return Err(format!("it is longer than {bytes_max} bytes, the bound of a line"));
    }
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    let line =
        std::str::from_utf8(line).map_err(|error| format!("byte {} is not UTF-8 text", error.valid_up_to() + 1))?;
    written(line).map(Some)
}

fn written(line: &str) -> Result<RawChange, String> {
    if !line.starts_with('{') {
        return Err("it is not a JSON object".into());
    }
    let mut line: Members<'_> = read(line)?;
    let Some(op) = line.take("op") else {
        if line.0.iter().any(|(name, _)| name == "properties") {
            return Err("it has no op".into());
        }
        // As `get` prints it: each member has the meaning of the CSV column of that name.
        return json_row(line.0);
    };
    let op = if op.get().starts_with('"') { text(op)? } else { Cow::Borrowed("") };
    let kind = ChangeOp::named(&op)?;
    let written = RawChange {
        kind,
        label: match line.take("label").filter(|label| label.get().starts_with('"')) {
            Some(label) => text(label)?.into(),
            None => return Err(format!("the {kind} has no label that is text")),
        },
        key: line.take("key").map(raw).transpose()?,
        source: line.take("source").map(|end| raw_end("source", end)).transpose()?,
        target: line.take("target").map(|end| raw_end("target", end)).transpose()?,
        edge_key: line.take("edge_key").map(edge_key).transpose()?,
        properties: line.take("properties").map(properties).transpose()?.unwrap_or_default(),
        replace: match line.take("replace").map(value).transpose()? {
            None => false,
            Some(Value::Bool(replace)) => replace,
            Some(other) => return Err(format!("replace is {other}; it is true or false")),
        },
    };
    match line.0.first() {
        None => Ok(written),
        Some((name, _)) => Err(format!("the {kind} has {name:?}, which means nothing; is it one of its properties?")),
    }
}

fn properties(json: &RawValue) -> Result<Vec<(Name, Raw)>, String> {
    if !json.get().starts_with('{') {
        return Err(format!("properties is {}; it is an object of names and values", shown(json)));
    }
    let members: Members<'_> = read(json.get())?;
    let property = |(name, json): (Cow<'_, str>, &RawValue)| {
        let value = raw(json).map_err(|why| format!("property {name}: {why}"))?;
        Ok((name.into(), value))
    };
    members.0.into_iter().map(property).collect()
}

/// A line of JSON whose members are columns.
fn json_row(members: Vec<(Cow<'_, str>, &RawValue)>) -> Result<RawChange, String> {
    let (names, values): (Vec<_>, Vec<_>) = members.into_iter().unzip();
    let columns = names.iter().map(|name| Column::named(name)).collect::<Result<Vec<_>, _>>();
    let columns = columns.map_err(|why| format!("it {why}"))?;
    // By hash: a line of 16 MiB may have a million members.
    let mut roles = HashSet::with_capacity(columns.len());
    if let Some(column) = columns.iter().find(|column| !roles.insert(&column.role)) {
        return Err(format!("it has {:?} twice", column.role.name()));
    }
    if !columns.iter().any(|column| column.role == Role::Label) {
        return Err("it has neither an op nor a label".into());
    }
    let cell = |at: usize| match raw(values[at])? {
        Raw::Typed(Value::Null) => Ok(None),
        raw => Ok(Some(raw)),
    };
    row(&columns, |at| cell(at).map_err(Cow::Owned), |_| String::new())
}

fn raw_end(name: &str, json: &RawValue) -> Result<RawVertexRef, String> {
    let wrong = || format!("{name} is {}; it is [label, key]", shown(json));
    // What it is made of was checked with the line: only another shape fails.
    let [label, key]: [&RawValue; 2] = serde_json::from_str(json.get()).map_err(|_| wrong())?;
    match label.get().starts_with('"') {
        true => Ok((text(label)?.into(), raw(key)?)),
        false => Err(wrong()),
    }
}

fn edge_key(json: &RawValue) -> Result<(Name, Raw), String> {
    if !json.get().starts_with('{') {
        return Err(format!("edge_key is {}; it is {{property: value}}", shown(json)));
    }
    let members: Members<'_> = read(json.get())?;
    match <[_; 1]>::try_from(members.0) {
        Ok([(property, value)]) => Ok((property.into(), raw(value)?)),
        Err(_) => Err("edge_key is one property and its value".into()),
    }
}
