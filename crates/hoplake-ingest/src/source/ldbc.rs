//! The common part of both layouts of the LDBC Social Network Benchmark: labels, and the types of properties.
//!
//! Keys are int64 and unique within a label only, so every label is an id space of its own. A property
//! has the type its name has in the benchmark's specification; dates are ISO 8601 or milliseconds
//! since 1970, depending on how the generator was set, and both are read.

use hoplake_format::{PropertyType, ScalarType};

use super::{column::Parse, files::SourceFile, plan::occurs_twice};
use crate::IngestError;

/// The vertex labels.
pub(crate) const LABELS: [&str; 8] = ["Person", "Forum", "Post", "Comment", "Tag", "TagClass", "Place", "Organisation"];

/// The edge labels.
const EDGES: [&str; 15] = [
    "knows",
    "hasInterest",
    "hasType",
    "isSubclassOf",
    "likes",
    "hasMember",
    "containerOf",
    "hasCreator",
    "replyOf",
    "isLocatedIn",
    "isPartOf",
    "studyAt",
    "workAt",
    "hasModerator",
    "hasTag",
];

/// The list properties of a person, with the file (or, in BI, the column) that holds their values.
pub(crate) const PERSON_LISTS: [(&str, &str); 2] = [("email", "email"), ("language", "speaks")];

/// The vertex label that is written so in a file's name, in upper or lower case.
pub(crate) fn label(word: &str) -> Option<&'static str> {
    match word {
        // BI names the kind of organisation and place.
        "University" | "Company" => Some("Organisation"),
        "City" | "Country" | "Continent" => Some("Place"),
        _ => LABELS.into_iter().find(|label| label.eq_ignore_ascii_case(word)),
    }
}

/// The two labels and the edge label of `<source>_<edge>_<target>`.
pub(crate) fn edge(name: &str) -> Option<(&'static str, &'static str, &'static str)> {
    let mut words = name.split('_');
    let source = words.next()?;
    let edge = words.next()?;
    let target = words.next()?;
    let edge = EDGES.into_iter().find(|known| known.eq_ignore_ascii_case(edge))?;
    if words.next().is_some() { None } else { Some((label(source)?, edge, label(target)?)) }
}

/// How a property of this name is read.
pub(crate) fn parse(property: &str) -> Parse {
    let scalar = match property {
        "creationDate" | "joinDate" | "deletionDate" => ScalarType::Timestamp,
        "birthday" => ScalarType::Date,
        "length" | "classYear" | "workFrom" => ScalarType::Int64,
        "explicitlyDeleted" => ScalarType::Bool,
        _ => ScalarType::String,
    };
    Parse::new(PropertyType::Scalar(scalar)).or_millis()
}

/// The position of a column that the layout cannot do without.
pub(crate) fn position_of(file: &SourceFile, header: &[String], column: &str) -> Result<usize, IngestError> {
    let mut named = (0..header.len()).filter(|at| header[*at].eq_ignore_ascii_case(column));
    let position = named.next();
    if named.next().is_some() {
        return Err(file.layout(occurs_twice(column)));
    }
    position.ok_or_else(|| {
        file.layout(format!(
            "has no column {column:?} in its first line ({}); the LDBC layouts need a header, separated by |",
            header.join("|")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_tell_labels() {
        assert_eq!(label("tagclass"), Some("TagClass"));
        assert_eq!(label("emailaddress"), None);
        assert_eq!(edge("person_knows_person"), Some(("Person", "knows", "Person")));
        assert_eq!(edge("Person_workAt_Company"), Some(("Person", "workAt", "Organisation")));
        assert_eq!(edge("person_speaks_language"), None);
        assert_eq!(edge("a_b_c_d"), None);
    }
}
