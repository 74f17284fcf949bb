//! How a command fails: a sentence, a hint, and a status by kind.
//!
//! | status | kind |
//! | --- | --- |
//! | 1 | anything else: a mistake in Hoplake, a file that cannot be written |
//! | 2 | the request or the input is wrong |
//! | 3 | what was named is not there |
//! | 4 | something is there already, or another writer was faster |
//! | 5 | the store cannot be reached or refuses |
//! | 6 | a limit was reached |
//! | 7 | stored bytes are damaged |
//! | 130 | interrupted |

use hoplake::{Error, ErrorKind};

/// A failure that the command line found itself, or knows a better hint for.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    kind: ErrorKind,
    message: String,
    hint: String,
}

impl Failure {
    /// A failure of this kind, and what to do about it.
    pub fn new(kind: ErrorKind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: hint.into() }
    }

    /// The request is wrong.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message, hint)
    }

    /// An error of the engine, with a hint of one's own.
    pub fn of(error: &Error, hint: impl Into<String>) -> Self {
        Self::new(error.kind(), error.to_string(), hint)
    }
}

/// Writes the error and its hint to standard error, and returns the status to exit with.
pub fn report(error: &anyhow::Error, verb: &str, url: &str) -> u8 {
    let (kind, message, hint) = if let Some(failure) = error.downcast_ref::<Failure>() {
        (failure.kind, failure.message.clone(), failure.hint.clone())
    } else if let Some(engine) = error.downcast_ref::<Error>() {
        // Its message is whole: the errors below it are in it.
        (engine.kind(), engine.to_string(), hint(engine.kind(), verb, url))
    } else {
        eprintln!("error: {error:#}");
        return 1;
    };
    eprintln!("error: {message}\nhint: {hint}");
    status(kind)
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

fn hint(kind: ErrorKind, verb: &str, url: &str) -> String {
    match kind {
        ErrorKind::Invalid => format!("hoplake {verb} --help shows how it is written, with an example"),
        // These name nothing but the graph.
        ErrorKind::NotFound if ["vacuum", "compact", "clone"].contains(&verb) => {
            format!("check the address, or make one with hoplake load {url} --from PATH")
        }
        ErrorKind::NotFound => format!("hoplake info {url} lists the labels, edge labels and properties there are"),
        ErrorKind::Conflict => format!("look at what is there with hoplake info {url}, then try again"),
        ErrorKind::Unavailable => {
            "check the address, the credentials in the environment and the network, or try again later".into()
        }
        ErrorKind::Limit if verb == "load" => "raise --memory, or load less at a time".into(),
        ErrorKind::Limit => "raise the limit (--timeout, --max-…), or ask for fewer hops or starts".into(),
        ErrorKind::Corrupt => {
            format!("hoplake verify {url} says what is damaged; restore it from a copy, or open an older --version")
        }
        ErrorKind::Unknown => {
            format!("hoplake info {url} shows the newest version; try again only if it lacks the change")
        }
        ErrorKind::Internal => "this is a mistake in Hoplake; please report it with the command that led to it".into(),
    }
}
