//! How a verb that writes ends before it is done: at Ctrl-C, at SIGTERM, and when its time is over.

use std::time::Duration;

use hoplake::{Error, ErrorKind, QueryContext, Store};
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;

/// Is ready at Ctrl-C or SIGTERM, never otherwise.
pub async fn stopped() {
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        // Without handlers a signal ends the process at once.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// A time as a limit in milliseconds.
pub fn timeout_ms(timeout: Duration) -> u64 {
    u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)
}

/// A store whose requests end within a time from now, all together.
pub fn within(store: &Store, timeout: Duration) -> Store {
    let context = QueryContext::new();
    context.give_time(Some(timeout_ms(timeout)));
    store.metered_by(&context)
}

/// The failure of a short verb that changes nothing before its end: after its deadline, the message says so, and
/// that nothing was changed.
pub fn in_time(error: Error, what: &str, timeout: Duration) -> anyhow::Error {
    if error.kind() != ErrorKind::Limit {
        return error.into();
    }
    let message = format!("{what} within {}; nothing is changed", humantime::format_duration(timeout));
    Failure::new(ErrorKind::Limit, message, "try again later, or raise --timeout").into()
}

/// Reports that a verb was interrupted and what remains of it, and ends the process.
pub fn interrupted(message: &str, hint: &str) -> ! {
    eprintln!("error: interrupted; {message}\nhint: {hint}");
    // 128 and the number of SIGINT, as shells have it. The verb is not waited for: it may be in the middle of a request.
    std::process::exit(130);
}
