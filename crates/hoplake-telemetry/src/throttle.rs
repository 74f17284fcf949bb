//! Warnings that a client can cause as often as it likes, such as one for each connection that it resets: of each place in the code
//! only so many lines are written in a span of time, so that a log stays readable and a disk does not fill.
//!
//! The lines of requests are not throttled: each is the record of one.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use tracing::{Event, Level, Metadata, callsite::Identifier, level_filters::LevelFilter, subscriber::Interest};
use tracing_subscriber::layer::{Context, Filter};

/// The target of the lines of requests.
const REQUESTS: &str = "hoplake::requests";
/// Lines of one place in the code within [`SPAN`].
const LINES_MAX: u32 = 10;
const SPAN: Duration = Duration::from_secs(10);

/// Leaves warnings out that come too often.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    /// For each place in the code, when its span began, and how many lines came since. Places are as many as the program has.
    spans: Mutex<HashMap<Identifier, (Instant, u32)>>,
}

impl Throttle {
    fn admits(&self, metadata: &Metadata<'_>, now: Instant) -> bool {
        if *metadata.level() != Level::WARN || metadata.target() == REQUESTS {
            return true;
        }
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        let (begun, lines) = spans.entry(metadata.callsite()).or_insert((now, 0));
        if now.duration_since(*begun) >= SPAN {
            (*begun, *lines) = (now, 0);
        }
        *lines = lines.saturating_add(1);
        *lines <= LINES_MAX
    }
}

impl<S> Filter<S> for Throttle {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        // Of events that are always enabled the registry does not expect that one is left out.
        if *metadata.level() == Level::WARN { Interest::sometimes() } else { Interest::always() }
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        self.admits(event.metadata(), Instant::now())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        // It leaves nothing out by level.
        Some(LevelFilter::TRACE)
    }
}

#[cfg(test)]
mod tests {
    use std::{io, sync::Arc};

    use tracing_subscriber::{
        Layer,
        filter::{FilterExt, Targets},
        fmt::MakeWriter,
        layer::SubscriberExt,
        registry,
    };

    use super::*;

    #[derive(Debug, Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Lines {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    #[test]
    fn a_warning_that_repeats_is_a_few_lines() {
        let lines = Lines::default();
        let targets: Targets = "info".parse().unwrap();
        let layer = tracing_subscriber::fmt::layer().with_writer(lines.clone()).with_ansi(false);
        let subscriber = registry().with(layer.with_filter(targets.and(Throttle::default())));
        tracing::subscriber::with_default(subscriber, || {
            for number in 0..1_000 {
                tracing::warn!(target: "h2::proto", number, "a reset");
                tracing::warn!(number, "a refusal");
                tracing::warn!(target: "hoplake::requests", number, "a request");
                tracing::info!(number, "a note");
                tracing::error!(number, "a mistake");
            }
        });
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let count = |words: &str| text.lines().filter(|line| line.contains(words)).count();
        let counts = ["a reset", "a refusal", "a request", "a note", "a mistake"].map(count);
        assert_eq!(counts, [10, 10, 1_000, 1_000, 1_000]);
    }
}
