//! The errors of the store, and how they look in a trace.

use object_store::Error;

pub(super) fn failed(why: &str) -> Error {
    Error::Generic { store: "S3", source: why.into() }
}

pub(super) fn exists(name: &str) -> Error {
    Error::AlreadyExists { path: name.to_owned(), source: "412 Precondition Failed".into() }
}

pub(super) fn variant(error: &Error) -> String {
    match error {
        Error::Generic { source, .. } => source.to_string(),
        Error::NotFound { .. } => "404".into(),
        Error::AlreadyExists { .. } => "exists".into(),
        Error::Precondition { .. } => "precondition failed".into(),
        _ => "another error".into(),
    }
}

pub(super) fn unknown_upload() -> Error {
    Error::NotFound { path: "an upload".into(), source: "404 No Such Upload".into() }
}
