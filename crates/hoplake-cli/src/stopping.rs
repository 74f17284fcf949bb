//! How a verb that writes ends before it is done: at Ctrl-C, at SIGTERM, and when its time is over.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

/// Is ready at Ctrl-C or SIGTERM, never otherwise.
pub async fn stopped() {
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
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

/// Says that a verb was interrupted and what is left of it, and ends the process.
pub fn interrupted(message: &str, hint: &str) -> ! {
    eprintln!("error: interrupted; {message}\nhint: {hint}");
    std::process::exit(130);
}
