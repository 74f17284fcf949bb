//! CSV as `neo4j-admin database import` loads it: `personId:ID(Person),name:string,:LABEL` for vertices,
//! `:START_ID(Person),:END_ID(Person),:TYPE,since:date` for edges.
//!
//! A file without `:LABEL` (or `:TYPE`), and a vertex whose label is empty, takes the name of the file.
//! An id column that has a name is also a property. `time`, `duration` and `point` are read as text.
//! Headers stand in the first line of each file; headers in files of their own need a mapping.

use hoplake_format::{PropertyType, ScalarType};

use super::{
    column::Parse,
    files::SourceFile,
    labelled::{self, LabelledFile, Role},
    records::TextFormat,
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
        if roles.iter().filter(|role| matches!(role, Role::Id { .. })).count() > 1 {
            return Err(file.layout("has two :ID columns; a key is one column"));
        }
        labelled.push(LabelledFile { file, format, header, roles, default_label });
    }
    labelled::open(labelled)
}

fn role(file: &SourceFile, column: &str, separator: u8) -> Result<Role, IngestError> {
    // Text in braces is options, such as a time zone.
    let plain = column.split('{').next().unwrap_or("").trim();
    let (name, kind) = plain.rsplit_once(':').unwrap_or((plain, "string"));
    let (base, space) = kind.split_once('(').map_or((kind, ""), |(base, space)| (base, space.trim_end_matches(')')));
    let name = name.trim().to_owned();
    let space = space.to_owned();
    Ok(match base.to_ascii_uppercase().as_str() {
        "ID" => Role::Id { space, property: (!name.is_empty()).then_some(name) },
        "LABEL" | "TYPE" => Role::Label,
        "START_ID" => Role::From { space },
        "END_ID" => Role::To { space },
        "IGNORE" => Role::Ignored,
        _ => {
            let (item, array) = base.strip_suffix("[]").map_or((base, false), |item| (item, true));
            let scalar = scalar(item).ok_or_else(|| {
                file.layout(format!("column {column:?} has the unknown type {base:?}; use string, or :IGNORE"))
            })?;
            let kind = if array { PropertyType::List(scalar) } else { PropertyType::Scalar(scalar) };
            Role::Property { name, parse: Parse { separator, ..Parse::new(kind) } }
        }
    })
}

fn scalar(name: &str) -> Option<ScalarType> {
    match name.to_ascii_lowercase().as_str() {
        "" | "time" | "localtime" | "duration" | "point" => Some(ScalarType::String),
        "date" => Some(ScalarType::Date),
        other => labelled::scalar_named(other),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn headers_tell_roles() {
        let file = SourceFile { path: "people.csv".into(), copy: None, bytes: 0, limits: Default::default() };
        let role = |column: &str| role(&file, column, b';').unwrap();
        assert_eq!(role("id:ID(Person)"), Role::Id { space: "Person".into(), property: Some("id".into()) });
        assert_eq!(role(":ID"), Role::Id { space: String::new(), property: None });
        assert_eq!(role(":START_ID(A B)"), Role::From { space: "A B".into() });
        assert_eq!(role("x:IGNORE"), Role::Ignored);
        let Role::Property { name, parse } = role("at:datetime{timezone:Europe/Berlin}") else { panic!() };
        assert_eq!((name.as_str(), parse.kind), ("at", PropertyType::Scalar(ScalarType::Timestamp)));
        assert!(recognises(&["name".into(), "personId:ID(Person)".into()]));
        assert!(!recognises(&["id".into(), "name:string".into()]));
    }
}
