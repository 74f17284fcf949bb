//! The effect of a failed create.
//!
//! Repeating a create blindly loses information: after an error of many requests, it is unknown which of them arrived.
//! So creates go through the client that sends each request once, are repeated here, and each error is judged by
//! itself. For 20 seconds at most: with the three minutes that `object_store`'s client goes on by default, for each of
//! several tries, a commit hung when its store was away.

use std::time::Duration;

use object_store::{Error, Result};
use tokio::time::{Instant, sleep};

use crate::{
    error::is_full,
    store::{
        clients::{Unanswered, unanswered},
        folder::WriteError,
    },
};

/// The maximum number of repetitions.
const REPETITIONS_MAX: u32 = 10;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// After this time nothing is repeated.
const REPEATED_WITHIN: Duration = Duration::from_secs(20);

/// A create that was not answered with yes or no.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The last error.
    pub(crate) error: Error,
    /// Whether one of the requests may have created the object, or may yet.
    pub(crate) perhaps: bool,
}

/// Whether an object was created, as the first answer says. A create that the store rejects for now, or that does not
/// reach it, is sent again.
///
/// Not by `backon`, whose limit of time adds up pauses alone: but here the attempts take long. And what an error
/// leaves unknown adds up over all of them.
pub(crate) async fn repeated<T, F: Future<Output = Result<T>>>(
    mut attempt: impl FnMut() -> F,
) -> Result<bool, Failure> {
    let begun = Instant::now();
    let mut pause = FIRST_PAUSE;
    let mut perhaps = false;
    for repetition in 0.. {
        let error = match attempt().await {
            Ok(_) => return Ok(true),
            // Perhaps it is the object of an earlier attempt, whose answer was lost: the caller finds out whose it is.
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => return Ok(false),
            Err(error) => error,
        };
        let judged = judge(&error);
        // It never goes back: a later rejection says nothing about a request before it, which may still arrive.
        perhaps |= judged.perhaps;
        if !judged.is_retryable || repetition == REPETITIONS_MAX || begun.elapsed() > REPEATED_WITHIN {
            return Err(Failure { error, perhaps });
        }
        sleep(pause).await;
        pause = (2 * pause).min(PAUSE_MAX);
    }
    unreachable!("the last repetition returns")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Judged {
    /// Whether the request may have taken effect, or may yet.
    perhaps: bool,
    /// Whether it can be sent again without looking first.
    is_retryable: bool,
}

/// The possible effect of one failed request: unknown, unless the error excludes it.
fn judge(error: &Error) -> Judged {
    let source = match error {
        Error::Generic { source, .. } => source.as_ref(),
        Error::JoinError { .. } => return Judged { perhaps: true, is_retryable: false },
        // Rejected, by the store or before sending: 401, 403, 404, an invalid name.
        _ => return Judged { perhaps: false, is_retryable: false },
    };
    // A folder knows what it did: only a name that was given and not flushed is uncertain.
    if let Some(error) = source.downcast_ref::<WriteError>() {
        return Judged { perhaps: matches!(error, WriteError::Unflushed(_)), is_retryable: false };
    }
    let mut cause = Some(source as &(dyn std::error::Error + 'static));
    while let Some(error) = cause {
        if let Some(how) = unanswered(error) {
            let unsent = how == Unanswered::Unsent;
            return Judged { perhaps: !unsent, is_retryable: unsent };
        }
        if error.downcast_ref().is_some_and(is_full) {
            return Judged { perhaps: false, is_retryable: false };
        }
        cause = error.source();
    }
    match status(&source.to_string()) {
        // Too many requests: the store has read the request and turned it down.
        Some(429) => Judged { perhaps: false, is_retryable: true },
        Some(400..=499) => Judged { perhaps: false, is_retryable: false },
        // A proxy in front of the store may answer so after it has forwarded the request.
        Some(500..=599) => Judged { perhaps: true, is_retryable: true },
        _ => Judged { perhaps: true, is_retryable: false },
    }
}

/// The status of an answer, which the client has in its text alone.
fn status(text: &str) -> Option<u16> {
    let (_, after) = text.split_once("status code: ")?;
    after.get(..3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, io};

    use object_store::client::{HttpError, HttpErrorKind};

    use super::*;

    fn generic(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Generic { store: "S3", source: source.into() }
    }

    fn of_status(status: &str) -> Error {
        generic(format!("Error performing PUT in 1ms - Server returned non-2xx status code: {status}: no"))
    }

    fn of_connection(kind: HttpErrorKind) -> Error {
        generic(HttpError::new(kind, io::Error::other("broken")))
    }

    /// What comes of requests that fail so, one after the other, until one is answered with yes; and how many were
    /// sent.
    async fn tried(failures: Vec<Error>) -> (Result<bool, bool>, usize) {
        let failures = RefCell::new(failures.into_iter());
        let sent = RefCell::new(0);
        let attempt = || {
            *sent.borrow_mut() += 1;
            let answer = failures.borrow_mut().next().map_or(Ok(()), Err);
            async { answer }
        };
        let created = repeated(attempt).await.map_err(|failure| failure.perhaps);
        (created, sent.into_inner())
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_may_have_arrived_is_unknown() {
        assert_eq!(tried(vec![]).await, (Ok(true), 1));
        let taken = Error::AlreadyExists { path: "a".into(), source: "412".into() };
        assert_eq!(tried(vec![taken]).await, (Ok(false), 1));
        let denied = Error::PermissionDenied { path: "a".into(), source: "403".into() };
        assert_eq!(tried(vec![denied]).await, (Err(false), 1));
        assert_eq!(tried(vec![of_status("400 Bad Request")]).await, (Err(false), 1));
        assert_eq!(tried(vec![of_connection(HttpErrorKind::Timeout)]).await, (Err(true), 1));
        assert_eq!(tried(vec![of_connection(HttpErrorKind::Interrupted)]).await, (Err(true), 1));
        assert_eq!(tried(vec![generic("whatever")]).await, (Err(true), 1));
        let full = WriteError::Failed(io::ErrorKind::StorageFull.into());
        assert_eq!(tried(vec![full.into()]).await, (Err(false), 1));
        assert_eq!(tried(vec![generic(io::Error::from(io::ErrorKind::StorageFull))]).await, (Err(false), 1));
        let unflushed = WriteError::Unflushed(io::Error::other("the disk does not answer"));
        assert_eq!(tried(vec![unflushed.into()]).await, (Err(true), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn retryable_failures_are_retried_and_remembered() {
        let busy = || of_status("503 Service Unavailable");
        assert_eq!(tried(vec![busy(), of_status("429 Too Many Requests"), busy()]).await, (Ok(true), 4));
        let away = || of_connection(HttpErrorKind::Connect);
        assert_eq!(tried((0..20).map(|_| away()).collect()).await, (Err(false), 11));
        // The first may have arrived, whatever became of those after it.
        let denied = Error::PermissionDenied { path: "a".into(), source: "403".into() };
        assert_eq!(tried(vec![busy(), denied]).await, (Err(true), 2));
    }
}
