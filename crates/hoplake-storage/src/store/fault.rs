//! Classifies failures of stores: a kind to act on, and a sentence in plain words.
//!
//! Clients of stores report failures with all they know: the request, their own retries, and the store's answer,
//! kilobytes of XML. Of that only what a person can use is kept. The client library keeps its own error of a failed
//! request to itself, so the status and the code of the answer are found in its text.

use std::{error::Error, io, iter::successors};

use object_store::Error as ClientError;

use crate::store::{
    clients::{Unanswered, unanswered},
    folder::WriteError,
};

/// The class of a store's failure, as far as the remedy differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFault {
    /// Credentials are missing, or the store rejects them.
    Credentials,
    /// The credentials are known, and do not suffice; or access to a local file is denied.
    Denied,
    /// The bucket or container does not exist.
    NoBucket,
    /// The bucket is in another region.
    Region,
    /// The address does not answer.
    Unreachable,
    /// It is full.
    Full,
    /// Anything else.
    Other,
}

/// The longest message of a store that is passed on.
const MESSAGE_CHARS_MAX: usize = 200;

/// Addresses where clients of clouds look for credentials by default.
const METADATA_HOSTS: [&str; 3] = ["169.254.169.254", "169.254.170.2", "metadata.google.internal"];

/// Error codes of S3 and of compatible stores.
const CODES: [(&str, StoreFault, &str); 15] = [
    ("NoSuchBucket", StoreFault::NoBucket, "there is no such bucket"),
    ("ContainerNotFound", StoreFault::NoBucket, "there is no such container"),
    ("InvalidAccessKeyId", StoreFault::Credentials, "it does not know the access key"),
    ("XAdminUserNotFound", StoreFault::Credentials, "it does not know the access key"),
    ("SignatureDoesNotMatch", StoreFault::Credentials, "it does not accept the secret key"),
    ("ExpiredToken", StoreFault::Credentials, "the session token has expired"),
    ("InvalidToken", StoreFault::Credentials, "it does not accept the session token"),
    ("TokenRefreshRequired", StoreFault::Credentials, "the session token has to be refreshed"),
    ("AuthenticationFailed", StoreFault::Credentials, "it does not accept the credentials"),
    ("AccessDenied", StoreFault::Denied, "it denies access"),
    ("AllAccessDisabled", StoreFault::Denied, "all access to the bucket is disabled"),
    ("AuthorizationHeaderMalformed", StoreFault::Region, "the bucket is in another region"),
    ("PermanentRedirect", StoreFault::Region, "the bucket is in another region"),
    ("RequestTimeTooSkewed", StoreFault::Other, "the clock of this machine differs too much from the store's"),
    ("SlowDown", StoreFault::Other, "it asks for fewer requests a second"),
];

/// Client messages about a missing half of the credentials.
const MISSING: [(&str, &str); 3] = [
    ("Missing AccessKeyId", "there is a secret key without an access key"),
    ("Missing SecretAccessKey", "there is an access key without its secret key"),
    ("Account must be specified", "there is no storage account"),
];

/// The class of a failure, and a sentence about the store.
pub(crate) fn explain(client: &ClientError) -> (StoreFault, String) {
    let text = client.to_string();
    // Without credentials in the environment, clients ask the metadata service of a cloud, and fail on a machine elsewhere.
    if METADATA_HOSTS.iter().any(|host| text.contains(host)) || text.contains("metadata endpoint") {
        return (StoreFault::Credentials, "there are no credentials for it".into());
    }
    if let Some((_, sentence)) = MISSING.iter().find(|(said, _)| text.contains(said)) {
        return (StoreFault::Credentials, (*sentence).into());
    }
    // A broken connection is an `io::Error` below, too, so only those of folders are taken for files.
    if let Some(error) = cause::<io::Error>(client).filter(|_| is_local(client)) {
        let (fault, sentence) = of_file(error);
        return match cause::<WriteError>(client) {
            Some(WriteError::Unflushed(_)) => {
                (fault, format!("it is there, but could not be flushed to the disk: {sentence}"))
            }
            _ => (fault, sentence),
        };
    }
    // An answer of the store says more than the client's own kind of error, so it is looked for first.
    if let Some((fault, sentence)) = of_answer(&text) {
        return (fault, sentence);
    }
    if text.contains("incorrectly configured region") {
        return (StoreFault::Region, "the bucket is in another region".into());
    }
    if let Some((how, error)) = of_request(client) {
        return of_connection(how, error);
    }
    match client {
        ClientError::PermissionDenied { .. } => (StoreFault::Denied, "it denies access".into()),
        ClientError::Unauthenticated { .. } => (StoreFault::Credentials, "it does not accept the credentials".into()),
        ClientError::NotSupported { .. } | ClientError::NotImplemented { .. } => {
            (StoreFault::Other, "it cannot do that".into())
        }
        ClientError::InvalidPath { .. } => (StoreFault::Other, "the name is not one that it can hold".into()),
        other => (StoreFault::Other, innermost(other)),
    }
}

fn is_local(error: &ClientError) -> bool {
    match error {
        ClientError::Generic { store, .. } => ["LocalFileSystem", "folder"].contains(store),
        // These come from folders and from stores; those have an HTTP error or a status in them.
        _ => of_request(error).is_none(),
    }
}

fn of_file(error: &io::Error) -> (StoreFault, String) {
    use io::ErrorKind as Kind;
    let (fault, sentence) = match error.kind() {
        Kind::PermissionDenied => (StoreFault::Denied, "permission denied"),
        Kind::ReadOnlyFilesystem => (StoreFault::Denied, "the file system is read-only"),
        Kind::StorageFull | Kind::QuotaExceeded => (StoreFault::Full, "there is no space left"),
        Kind::NotADirectory => (StoreFault::Other, "a file stands where a folder has to be"),
        Kind::IsADirectory => (StoreFault::Other, "a folder stands where a file has to be"),
        _ => return (StoreFault::Other, system_text(error)),
    };
    (fault, sentence.into())
}

/// An operating system's error about a file, in plain words and without its number.
pub fn system_text(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split_once(" (os error").map_or(text.as_str(), |(text, _)| text);
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

/// The meaning of an answer: by its code if that is known, else by status and message.
fn of_answer(text: &str) -> Option<(StoreFault, String)> {
    // The client keeps its error type to itself: the status and the body of the answer are only in its text.
    let (_, answer) = text.split_once("status code: ").or_else(|| text.split_once("error response: "))?;
    let code = between(answer, "<Code>", "</Code>");
    if let Some((_, fault, sentence)) = CODES.iter().find(|(known, ..)| code == Some(known)) {
        let region = between(answer, "<Region>", "</Region>").filter(|_| *fault == StoreFault::Region);
        return Some((*fault, region.map_or((*sentence).into(), |region| format!("{sentence}, {region}"))));
    }
    let status = answer.split([':', '<']).next().unwrap_or_default().trim();
    let number = status.split(' ').next().unwrap_or_default();
    // An unknown code: compatible stores have codes of their own, but the statuses of HTTP.
    let fault = match number {
        "401" => StoreFault::Credentials,
        "403" => StoreFault::Denied,
        "301" | "307" => StoreFault::Region,
        "507" => StoreFault::Full,
        _ => StoreFault::Other,
    };
    let said = between(answer, "<Message>", "</Message>").or(code);
    // Cut by characters: a message in another script must not be cut within one.
    let said = said.map(|said| format!(": {}", said.chars().take(MESSAGE_CHARS_MAX).collect::<String>()));
    Some((fault, format!("it answered {status}{}", said.unwrap_or_default())))
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    Some(text.split_once(before)?.1.split_once(after)?.0)
}

/// The error of a request without an answer, if it is below this one.
fn of_request(error: &ClientError) -> Option<(Unanswered, &(dyn Error + 'static))> {
    causes(error).find_map(|error| Some((unanswered(error)?, error)))
}

fn of_connection(how: Unanswered, error: &(dyn Error + 'static)) -> (StoreFault, String) {
    match how {
        Unanswered::Unsent => (StoreFault::Unreachable, format!("it cannot be reached: {}", innermost(error))),
        Unanswered::Late => (StoreFault::Unreachable, "it does not answer in time".into()),
        Unanswered::Broken => (StoreFault::Unreachable, format!("the connection broke: {}", innermost(error))),
        Unanswered::Unreadable => (StoreFault::Other, format!("its answer cannot be understood: {}", innermost(error))),
    }
}

/// The error below all others, in its own words.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    match last.downcast_ref::<io::Error>() {
        Some(error) => system_text(error),
        None => last.to_string().chars().take(MESSAGE_CHARS_MAX).collect(),
    }
}

fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    causes(error).find_map(|error| error.downcast_ref())
}

/// The error and all below it.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |error| (**error).source())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s3(text: &str) -> ClientError {
        ClientError::Generic { store: "S3", source: text.into() }
    }

    #[test]
    fn answers_of_stores_become_sentences() {
        let xml = |code: &str, more: &str| {
            format!(
                "Error performing PUT http://127.0.0.1/b/x in 3ms - Server returned non-2xx status code: 403 Forbidden: \
                 <?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>About {code}</Message>{more}</Error>"
            )
        };
        for (text, fault, sentence) in [
            (xml("NoSuchBucket", ""), StoreFault::NoBucket, "there is no such bucket"),
            (xml("SignatureDoesNotMatch", ""), StoreFault::Credentials, "it does not accept the secret key"),
            (xml("AccessDenied", ""), StoreFault::Denied, "it denies access"),
            (
                xml("AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>"),
                StoreFault::Region,
                "the bucket is in another region, eu-west-1",
            ),
            (xml("Odd", ""), StoreFault::Denied, "it answered 403 Forbidden: About Odd"),
            (
                "status code: 500 Internal Server Error: ".into(),
                StoreFault::Other,
                "it answered 500 Internal Server Error",
            ),
            (
                "Error performing PUT http://169.254.169.254/latest/api/token in 1s - …".into(),
                StoreFault::Credentials,
                "there are no credentials for it",
            ),
        ] {
            assert_eq!(explain(&s3(&text)), (fault, sentence.to_owned()), "{text}");
        }
        let long = explain(&s3(&format!("status code: 418: <Message>{}</Message>", "a".repeat(9_000)))).1;
        assert!(long.len() < 300, "{long}");
    }

    #[test]
    fn failures_of_the_system_become_sentences() {
        let local = |kind| ClientError::Generic { store: "LocalFileSystem", source: Box::new(io::Error::from(kind)) };
        assert_eq!(explain(&local(io::ErrorKind::StorageFull)).0, StoreFault::Full);
        let unflushed = ClientError::from(WriteError::Unflushed(io::ErrorKind::StorageFull.into()));
        let why = "it is there, but could not be flushed to the disk: there is no space left";
        assert_eq!(explain(&unflushed), (StoreFault::Full, why.to_owned()));
        assert_eq!(explain(&local(io::ErrorKind::PermissionDenied)).1, "permission denied");
        let numbered = io::Error::from_raw_os_error(2);
        assert_eq!(system_text(&numbered), "no such file or directory");
    }
}
