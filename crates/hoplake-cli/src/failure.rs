//! How a command fails: a sentence, a hint, and a status by kind.
//!
//! Errors describe the problem in the terms of their floor; only this module adds what to do about it, by the kind
//! and the reason of the error. [`STATUSES`] is in `hoplake --help`, and `docs/errors.md` explains it.

use hoplake::{Error, ErrorKind, Reason};

use crate::output::tables::printable;

/// The statuses, as `hoplake --help` has them.
pub const STATUSES: &str = "\
Exit status:
    0  done
    1  a bug in Hoplake
    2  the request or the input is wrong
    3  what was named is not there
    4  the target exists already, or another writer was faster
    5  a store or a file cannot be reached, read or written
    6  a limit was reached
    7  stored bytes are damaged
    8  it is not known whether a change was published
  130  interrupted";

/// A failure that the command line found itself, or extends.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    kind: ErrorKind,
    reason: Option<Reason>,
    message: String,
    /// By kind and reason if there is none.
    hint: Option<String>,
}

impl Failure {
    /// A failure of this kind, and what to do about it.
    pub fn new(kind: ErrorKind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind, reason: None, message: message.into(), hint: Some(hint.into()) }
    }

    /// The request is wrong.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message, hint)
    }

    /// An error of the engine, with a hint of one's own.
    pub fn of(error: &Error, hint: impl Into<String>) -> Self {
        Self::new(error.kind(), error.to_string(), hint)
    }

    /// An error of the engine, in other words.
    pub fn said(error: &Error, message: impl Into<String>) -> Self {
        Self { kind: error.kind(), reason: error.reason(), message: message.into(), hint: None }
    }

    /// A local file that could not be used: `what` is the end of a sentence, such as `create out.csv`.
    pub fn file(what: impl std::fmt::Display, error: &std::io::Error) -> Self {
        let why = hoplake::system_text(error);
        let hint = "check that its folder exists, that you may write there, and that the disk has space";
        Self::new(ErrorKind::Unavailable, format!("could not {what}: {why}"), hint)
    }
}

/// Writes the error and its hint to standard error, and returns the status to exit with.
pub fn report(error: &anyhow::Error, verb: &str, url: &str) -> u8 {
    let by_kind = |kind, reason, message: &str| hint(kind, reason, message, verb, url);
    // From what says the most to what says the least: a failure has its own hint, an error of the engine its kind, and what is left is
    // either the output that could not be written or a mistake of ours.
    let (kind, message, hint) = if let Some(Failure { kind, reason, message, hint }) = error.downcast_ref::<Failure>() {
        (*kind, message.clone(), hint.clone().unwrap_or_else(|| by_kind(*kind, *reason, message)))
    } else if let Some(engine) = error.downcast_ref::<Error>() {
        // Its message is complete: it includes the errors below it.
        let message = engine.to_string();
        let hint = by_kind(engine.kind(), engine.reason(), &message);
        (engine.kind(), message, hint)
    } else if let Some(io) = error.chain().find_map(|error| error.downcast_ref::<std::io::Error>()) {
        let Failure { kind, message, hint, .. } = Failure::file("write the output", io);
        (kind, message, hint.unwrap_or_default())
    } else {
        (ErrorKind::Internal, format!("{error:#}"), by_kind(ErrorKind::Internal, None, ""))
    };
    // Two lines with fixed beginnings, so that scripts can take them apart.
    let [message, hint] = [message, hint].map(printable);
    eprintln!("error: {message}\nhint: {hint}{}", detail(kind, error));
    status(kind)
}

/// For an internal error, the details that a report needs; otherwise nothing.
fn detail(kind: ErrorKind, error: &anyhow::Error) -> String {
    let below = error.chain().skip(1).map(ToString::to_string).collect::<Vec<_>>();
    if kind != ErrorKind::Internal || below.is_empty() { String::new() } else { format!(" ({})", below.join(": ")) }
}

fn status(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Internal => 1,
        ErrorKind::Invalid => 2,
        ErrorKind::NotFound => 3,
        ErrorKind::Conflict => 4,
        ErrorKind::Unavailable => 5,
        ErrorKind::Limit => 6,
        ErrorKind::Corrupt => 7,
        ErrorKind::Unknown => 8,
    }
}

fn hint(kind: ErrorKind, reason: Option<Reason>, message: &str, verb: &str, url: &str) -> String {
    // The reason is narrower than the kind: one kind, such as Unavailable, is a missing key as well as a full disk.
    // The store that failed may be that of an input or an export, not of the graph: a sentence about a store names it.
    let store = message.split_whitespace().find(|word| word.contains("://")).unwrap_or(url);
    let by_reason = reason.and_then(|reason| of_store(reason, store).or_else(|| of_reason(reason, verb, url)));
    by_reason.unwrap_or_else(|| of_kind(kind, verb, url))
}

/// Hints about locations, graphs, versions, and input.
fn of_reason(reason: Reason, verb: &str, url: &str) -> Option<String> {
    Some(match reason {
        Reason::Url => "write a folder, or s3://bucket/prefix, gs://bucket/prefix, az://container/prefix".into(),
        Reason::NoGraph => format!("check the address, or make one with hoplake load {url} --from PATH"),
        Reason::NoVersion => {
            format!("hoplake log {url} lists the versions there are, and hoplake tag {url} their tags")
        }
        Reason::Exists if verb == "load" => "add --replace to load over it, or load to another location".into(),
        Reason::Exists => "choose a target that is empty".into(),
        Reason::Overtaken => {
            format!("hoplake log {url} shows what it did; add --replace to load over that, or load to another location")
        }
        Reason::File => "check that it exists and that you may read it".into(),
        Reason::Archive => "it is truncated, or not of the type in its name; gzip -t or zstd -t shows which".into(),
        Reason::Remote => "copy the files to this machine first, with your store's tools".into(),
        Reason::Broken => "correct the file or write it again: the rest after that line cannot be read".into(),
        Reason::Layout if verb == "load" => {
            "hoplake load --help lists the layouts it knows, and what a mapping is for".into()
        }
        Reason::BadRow if verb == "load" => {
            "correct the file, or add --bad-rows skip to load the rest and put such rows aside".into()
        }
        Reason::Layout | Reason::BadRow => return None,
        Reason::MissingEnd => "add --create-missing, or the vertex to the changes".into(),
        Reason::Undeclared => "correct the name, or leave out --strict to add it to the graph".into(),
        Reason::Inexact => "write integers, or put the other numbers into a property of another name".into(),
        Reason::Syntax => "docs/gremlin.md has examples of queries".into(),
        Reason::Call => format!("hoplake queries list {url} shows the queries there are, and what each takes"),
        Reason::Step => "docs/gremlin.md lists the steps that are supported".into(),
        Reason::ReadOnly => "add --commit to let it change the graph".into(),
        Reason::Query | Reason::Fail => return None,
        Reason::FormatVersion => {
            "use the version of hoplake that wrote it, or load the graph again with this one".into()
        }
        _ => return None,
    })
}

/// About the store at a URL.
fn of_store(reason: Reason, url: &str) -> Option<String> {
    let scheme = url.split_once("://").map_or("file", |(scheme, _)| scheme);
    let address = match scheme {
        "s3" | "s3a" => "AWS_REGION and AWS_ENDPOINT_URL",
        "gs" => "GOOGLE_BASE_URL",
        _ => "AZURE_STORAGE_ENDPOINT",
    };
    Some(match (reason, scheme) {
        (Reason::Credentials, "s3" | "s3a") => {
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_SESSION_TOKEN if they are temporary".into()
        }
        (Reason::Credentials, "gs") => "set GOOGLE_APPLICATION_CREDENTIALS to the file of a key".into(),
        (Reason::Credentials, _) => {
            "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or those of an Entra ID client".into()
        }
        (Reason::Denied, "file") => "check who may read and write there".into(),
        (Reason::Denied, _) => {
            "these credentials have to be allowed to list, read, write and delete objects there".into()
        }
        (Reason::NoBucket, _) => format!("make it first, or check its name, {address}"),
        (Reason::Region, _) => "set AWS_REGION to the region of the bucket".into(),
        (Reason::Unreachable, "file") => "try again later".into(),
        (Reason::Unreachable, _) => format!("check {address} and the network, or try again later"),
        (Reason::Full, _) => {
            format!("make room; hoplake vacuum {url} --keep-versions 1 removes what only older versions need")
        }
        _ => return None,
    })
}

fn of_kind(kind: ErrorKind, verb: &str, url: &str) -> String {
    match (kind, verb) {
        (ErrorKind::Invalid, "run") => {
            format!("hoplake info {url} has the types of properties, and hoplake run --help examples")
        }
        (ErrorKind::Invalid, "apply") => "correct the file; hoplake apply --help has the layout".into(),
        (ErrorKind::Invalid, _) => format!("hoplake {verb} --help shows how it is written, with an example"),
        (ErrorKind::NotFound, _) => {
            format!("hoplake info {url} lists the labels, edge labels and properties there are")
        }
        (ErrorKind::Conflict, "apply") => {
            "look at the current graph, decide anew, and apply with the newest version as --base".into()
        }
        (ErrorKind::Conflict, "run") => {
            "nothing was written, and the values are printed; run it again on the newest version, without --version"
                .into()
        }
        (ErrorKind::Conflict, _) => format!("look at hoplake log {url}, then try again"),
        (ErrorKind::Unavailable, _) => "try again later; if it persists, ask the operator of the store".into(),
        (ErrorKind::Limit, "load" | "compact") => "raise --memory, or do less at a time".into(),
        (ErrorKind::Limit, "run") => {
            "raise the limit (--timeout, --max-…); --lists streamed and --states FILE take less memory".into()
        }
        (ErrorKind::Limit, _) => "raise the limit (--timeout, --max-…), or ask for fewer hops or starts".into(),
        (ErrorKind::Corrupt, "verify") => {
            "restore what is damaged from a copy, or open a version that does not need it with --version".into()
        }
        (ErrorKind::Corrupt, _) => {
            format!("hoplake verify {url} lists the damage; restore it from a copy, or open an older --version")
        }
        (ErrorKind::Unknown, "load") => format!("hoplake log {url} shows whether it exists; load again only if not"),
        (ErrorKind::Unknown, _) => {
            format!("hoplake log {url} shows whether the version exists; try again only if not")
        }
        (ErrorKind::Internal, _) => "this is a bug in Hoplake; please report it with the command that led to it".into(),
    }
}
