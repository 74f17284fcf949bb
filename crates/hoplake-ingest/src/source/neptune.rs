//! Gremlin CSV as Amazon Neptune loads it: `~id,~label,name:String,age:Int,tags:String[]` for vertices,
//! `~id,~from,~to,~label,dist:Int` for edges.
//!
//! All labels share one id space, named by the empty string. A vertex without a label gets `vertex`. The
//! `~id` of an edge is kept as its property `id`, unless it has one of that name. `Date` and `DateTime`
//! are timestamps; arrays have `;` between their values, and `\;` in them; a column without a type is text.

use hoplake_format::{PropertyType, ScalarType};

use super::{
    column::{ListForm, Parse},
    files::SourceFile,
    labelled::{self, LabelledFile, Role},
    records::TextFormat,
    values::scalar_named,
};
use crate::{Dataset, IngestError};

/// A semicolon of an item has a backslash before it.
const LISTS: ListForm = ListForm { separator: b';', escape: Some(b'\\'), empty_items: false, json: false };

/// Whether a header is one of this layout.
pub(crate) fn recognises(header: &[String]) -> bool {
    let has = |name: &str| header.iter().any(|column| column.eq_ignore_ascii_case(name));
    has("~id") || (has("~from") && has("~to"))
}

/// Understands the headers, looks at all rows and plans the scans.
pub(crate) fn open(files: Vec<(SourceFile, TextFormat, Vec<String>)>) -> Result<Dataset, IngestError> {
    let mut labelled = Vec::new();
    for (file, format, header) in files {
        let edges = header.iter().any(|column| column.eq_ignore_ascii_case("~from"));
        let roles = header.iter().map(|column| role(&file, column, edges)).collect::<Result<_, _>>()?;
        let default_label = (!edges).then(|| "vertex".to_owned());
        labelled.push(LabelledFile { file, format, header, roles, default_label });
    }
    labelled::open(labelled)
}

fn role(file: &SourceFile, column: &str, edges: bool) -> Result<Role, IngestError> {
    let space = String::new();
    Ok(match column.to_ascii_lowercase().as_str() {
        "~id" => Role::Id { space, property: edges.then(|| "id".to_owned()) },
        "~label" => Role::Label,
        "~from" => Role::From { space },
        "~to" => Role::To { space },
        _ => property(file, column)?,
    })
}

fn property(file: &SourceFile, column: &str) -> Result<Role, IngestError> {
    // A colon in a name is written \: .
    let (name, kind) = match column.rsplit_once(':') {
        Some((name, kind)) if !name.ends_with('\\') => (name, kind),
        _ => (column, "String"),
    };
    // `Int`, `Int[]`, `Int(single)`, `Int(set)[]`, `Int[](set)`.
    let (base, options) =
        kind.trim().split_once('(').map_or((kind.trim(), ""), |(base, options)| (base, options.trim()));
    let (cardinality, array_after) = options.strip_suffix("[]").map_or((options, false), |before| (before, true));
    let cardinality = cardinality.strip_suffix(')').unwrap_or(cardinality).trim();
    let (base, array_before) = base.strip_suffix("[]").map_or((base, false), |item| (item, true));
    let array = array_before || array_after;
    if !["", "single", "set"].iter().any(|known| known.eq_ignore_ascii_case(cardinality)) {
        return Err(file.layout(format!(
            "column {column:?} has the unknown cardinality {cardinality:?}; there are single and set"
        )));
    }
    let scalar = match base.trim() {
        "" => Some(ScalarType::String),
        date if date.eq_ignore_ascii_case("date") => Some(ScalarType::Timestamp),
        other => scalar_named(other),
    };
    let scalar = scalar.ok_or_else(|| {
        file.layout(format!(
            "column {column:?} has the unknown type {kind:?}; Bool, Byte, Short, Int, Long, Float, Double, String, Date \
             and DateTime are known, each also with [] after it"
        ))
    })?;
    let kind = if array { PropertyType::List(scalar) } else { PropertyType::Scalar(scalar) };
    Ok(Role::Property { name: name.trim().replace("\\:", ":"), parse: Parse { list: LISTS, ..Parse::new(kind) } })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn headers_tell_names_and_types() {
        let file = SourceFile { path: "nodes.csv".into(), copy: None, bytes: 0, limits: Default::default() };
        let kind = |column: &str| match property(&file, column).unwrap() {
            Role::Property { name, parse } => format!("{name} {}", parse.kind),
            other => panic!("{other:?}"),
        };
        assert_eq!(kind("age:Int"), "age int64");
        assert_eq!(kind("age:Int(single)"), "age int64");
        assert_eq!(kind("tags:String[]"), "tags list<string>");
        assert_eq!(kind("tags:String(set)[]"), "tags list<string>");
        assert_eq!(kind("born:Date"), "born timestamp");
        assert_eq!(kind("a\\:b"), "a:b string");
        assert_eq!(kind("plain"), "plain string");
        for unknown in ["x:Int(many)", "x:Int(single)x", "x:String(set)[]y"] {
            assert!(property(&file, unknown).is_err(), "{unknown}");
        }
        assert!(property(&file, "x:Blob").unwrap_err().to_string().contains("\"Blob\""));
    }
}
