//! CSV as `neo4j-admin database import` loads it: `personId:ID(Person),name:string,:LABEL` for vertices,
//! `:START_ID(Person),:END_ID(Person),:TYPE,since:date` for edges.
//!
//! A file without `:LABEL` (or `:TYPE`), and a vertex whose label is empty, takes the name of the file.
//! An id column that has a name is also a property. `time`, `duration` and `point` are read as text.
//! Headers stand in the first line of each file; headers in files of their own need a mapping. Options in braces are applied
//! (`datetime{timezone:+02:00}`: of values that have no zone) or rejected.

use hoplake_format::{PropertyType, ScalarType};

use super::{
    column::{ListForm, Parse, Zone},
    files::SourceFile,
    labelled::{self, LabelledFile, Role},
    records::TextFormat,
    values::scalar_named,
};
use crate::{Dataset, IngestError};

/// Whether a header is one of this layout.
pub(crate) fn recognises(header: &[String]) -> bool {
    header.iter().any(|column| {
        let plain = column.split('{').next().unwrap_or("");
        let kind = plain.rsplit_once(':').map_or("", |(_, kind)| kind).to_ascii_uppercase();
        let kind = kind.split_once('(').map_or(kind.as_str(), |(kind, _)| kind);
        matches!(kind, "ID" | "START_ID" | "END_ID")
    })
}

/// Understands the headers, looks at all rows and plans the scans.
pub(crate) fn open(files: Vec<(SourceFile, TextFormat, Vec<String>)>) -> Result<Dataset, IngestError> {
    let mut labelled = Vec::new();
    for (file, format, header) in files {
        let separator = if format.delimiter == b';' { b'|' } else { b';' };
        let roles: Vec<Role> = header.iter().map(|column| role(&file, column, separator)).collect::<Result<_, _>>()?;
        let edges = roles.iter().any(|role| matches!(role, Role::From { .. } | Role::To { .. }));
        // A relationship without a type, where there is a column for it, is a mistake.
        let named_by_file = !edges || !roles.contains(&Role::Label);
        let default_label = named_by_file.then(|| file.stem().to_owned());
        labelled.push(LabelledFile { file, format, header, roles, default_label });
    }
    labelled::open(labelled)
}

/// A header taken apart: `name:type(space){key:value, …}`.
struct Header<'a> {
    name: &'a str,
    kind: &'a str,
    space: Option<&'a str>,
    options: Vec<(&'a str, &'a str)>,
}

impl<'a> Header<'a> {
    /// The error is the end of a sentence about the column.
    fn of(column: &'a str) -> Result<Self, &'static str> {
        // Text in braces is options, such as a time zone: a colon in it is not that before the type.
        let (plain, options) = match column.split_once('{') {
            None => (column, ""),
            Some((plain, rest)) => (plain, rest.trim_end().strip_suffix('}').ok_or("has a { that is not closed")?),
        };
        let option = |option: &'a str| option.split_once(':').map(|(key, value)| (key.trim(), value.trim()));
        let filled = options.split(',').filter(|option| !option.trim().is_empty());
        let options: Option<Vec<_>> = filled.map(option).collect();
        let options = options.ok_or("has an option that is not key:value")?;
        let (name, kind) = plain.rsplit_once(':').unwrap_or((plain, "string"));
        let (kind, space) = match kind.split_once('(') {
            None => (kind, None),
            Some((kind, rest)) => (kind, Some(rest.trim_end().strip_suffix(')').ok_or("has a ( that is not closed")?)),
        };
        Ok(Self { name: name.trim(), kind: kind.trim(), space, options })
    }
}

fn role(file: &SourceFile, column: &str, separator: u8) -> Result<Role, IngestError> {
    let wrong = |why: String| file.layout(format!("column {column:?} {why}"));
    let Header { name, kind, space, options } = Header::of(column).map_err(|why| wrong(why.into()))?;
    let is = |wanted: &str| kind.eq_ignore_ascii_case(wanted);
    if is("IGNORE") {
        return Ok(Role::Ignored);
    }
    if let (Some(space), false) = (space, ["ID", "START_ID", "END_ID"].into_iter().any(is)) {
        return Err(wrong(format!("has ({space}), and only ids have an id space")));
    }
    // An option that is left out could change every value of the column.
    let zone = match &options[..] {
        [] => None,
        [("timezone", name)] if is("datetime") || is("datetime[]") => {
            Some(Zone::named(name).ok_or_else(|| wrong(format!("has the unknown time zone {name:?}")))?)
        }
        [(key, value), ..] => {
            let hint = "remove it, or write a mapping for the file; datetime has {timezone:…}";
            return Err(wrong(format!("has the option {{{key}:{value}}}, which is not supported; {hint}")));
        }
    };
    let space = space.unwrap_or_default().to_owned();
    let name = name.to_owned();
    Ok(match kind.to_ascii_uppercase().as_str() {
        "ID" => Role::Id { space, property: (!name.is_empty()).then_some(name) },
        "LABEL" | "TYPE" => Role::Label,
        "START_ID" => Role::From { space },
        "END_ID" => Role::To { space },
        _ => {
            let (item, array) = kind.strip_suffix("[]").map_or((kind, false), |item| (item, true));
            let scalar =
                scalar(item).ok_or_else(|| wrong(format!("has the unknown type {kind:?}; use string, or :IGNORE")))?;
            let kind = if array { PropertyType::List(scalar) } else { PropertyType::Scalar(scalar) };
            Role::Property { name, parse: Parse { list: ListForm::separated(separator), zone, ..Parse::new(kind) } }
        }
    })
}

fn scalar(name: &str) -> Option<ScalarType> {
    match name.to_ascii_lowercase().as_str() {
        "" | "time" | "localtime" | "duration" | "point" => Some(ScalarType::String),
        "date" => Some(ScalarType::Date),
        other => scalar_named(other),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn headers_tell_roles() {
        let file = SourceFile { path: "people.csv".into(), copy: None, bytes: 0, limits: Default::default() };
        let read = |column: &str| role(&file, column, b';');
        let role = |column: &str| read(column).unwrap();
        assert_eq!(role("id:ID(Person)"), Role::Id { space: "Person".into(), property: Some("id".into()) });
        assert_eq!(role(":ID"), Role::Id { space: String::new(), property: None });
        assert_eq!(role(":START_ID(A B)"), Role::From { space: "A B".into() });
        assert_eq!(role("x:IGNORE"), Role::Ignored);
        let Role::Property { name, parse } = role("at:datetime{timezone:Europe/Berlin}") else { panic!() };
        assert_eq!((name.as_str(), parse.kind), ("at", PropertyType::Scalar(ScalarType::Timestamp)));
        assert_eq!(parse.zone, Zone::named("Europe/Berlin"));
        // Every kind of column with options that it does not have: none is left out in silence.
        for kind in [
            ":ID{label:Person}",
            "id:ID(Person){id-type:long}",
            ":START_ID{a:b}",
            ":END_ID(Person){a:b}",
            ":LABEL{a:b}",
            ":TYPE{a:b}",
            "at:datetime{foo:bar}",
            "at:datetime{timezone:Z,foo:bar}",
            "at:datetime{timezone:Nowhere/Town}",
            "at:datetime{timezone:+25:00}",
            "at:localdatetime{timezone:Z}",
            "at:time{timezone:Z}",
            "at:date{timezone:Z}",
            "p:point{crs:WGS-84}",
            "v:vector{dimensions:3}",
            "x:int{a:b}",
            "x:string[]{a:b}",
            "x:string{",
            "x:string{a}",
            "x{a:b}",
            "x:string(Person)",
            ":LABEL(Person)",
            ":ID(Person",
            "x:string{a:b}c",
        ] {
            assert!(read(kind).is_err(), "{kind}");
        }
        assert_eq!(role("x:IGNORE{a:b}"), Role::Ignored);
        assert_eq!(
            role("x:string{}"),
            Role::Property { name: "x".into(), parse: Parse::new(PropertyType::Scalar(ScalarType::String)) }
        );
        assert!(recognises(&["name".into(), "personId:ID(Person)".into()]));
        assert!(!recognises(&["id".into(), "name:string".into()]));
    }
}
