//! The counters as a text, which anyone may ask for, as often as they like.
//!
//! A text is made for all who wait for one: who asks gets counters that were read after that, and never older ones. Making them has at
//! most a part of one processor, and texts that clients have not read yet are bounded in number.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use axum::body::Bytes;
use tokio::{sync::Mutex, time::sleep_until};

/// The pause after a text was made, as a multiple of what that took: so a fifth of a processor makes texts, at most.
const PAUSE_FACTOR: u32 = 4;
/// The longest pause, for a text that took long because the machine was busy.
const PAUSE_MAX: Duration = Duration::from_millis(50);
/// Texts in memory, some 30 KB each. With so many that were not read, who asks gets the newest of them.
const UNREAD_MAX: usize = 64;

/// The newest text.
#[derive(Debug, Default)]
pub(crate) struct CountersText {
    newest: Mutex<Option<Made>>,
    unread: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Made {
    begun: Instant,
    ended: Instant,
    text: Bytes,
}

/// A text that is counted as unread until its last byte is released.
struct RetainedText {
    text: String,
    unread: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for RetainedText {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

impl Drop for RetainedText {
    fn drop(&mut self) {
        self.unread.fetch_sub(1, Relaxed);
    }
}

impl CountersText {
    /// A text with what `write` reads from now on.
    pub(crate) async fn newest(&self, write: impl FnOnce() -> String) -> Bytes {
        let asked = Instant::now();
        let mut newest = self.newest.lock().await;
        if let Some(made) = &*newest {
            // Made for another, while this one waited.
            if made.begun >= asked || self.unread.load(Relaxed) >= UNREAD_MAX {
                return made.text.clone();
            }
            let pause = (made.ended - made.begun).saturating_mul(PAUSE_FACTOR).min(PAUSE_MAX);
            sleep_until((made.ended + pause).into()).await;
        }
        let begun = Instant::now();
        let text = write();
        self.unread.fetch_add(1, Relaxed);
        let text = Bytes::from_owner(RetainedText { text, unread: self.unread.clone() });
        *newest = Some(Made { begun, ended: Instant::now(), text: text.clone() });
        text
    }
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt, future::join_all, stream::FuturesUnordered};

    use super::*;

    #[tokio::test]
    async fn who_asks_together_shares_a_text_that_is_never_older_than_the_question() {
        let counters = CountersText::default();
        let made = AtomicUsize::new(0);
        let ask = || counters.newest(|| made.fetch_add(1, Relaxed).to_string());
        assert_eq!([ask().await, ask().await], ["0", "1"]);
        let together = join_all((0..1_000).map(|_| ask())).await;
        let distinct = made.load(Relaxed) - 2;
        assert!((1..=2).contains(&distinct), "{distinct}");
        assert!(together.iter().all(|text| *text == "2" || *text == "3"));
        let later = ask().await;
        assert_eq!(later, made.load(Relaxed).wrapping_sub(1).to_string());
    }

    #[tokio::test]
    async fn texts_that_nobody_reads_are_bounded() {
        let counters = CountersText::default();
        let mut unread = Vec::new();
        for _ in 0..3 * UNREAD_MAX {
            unread.push(counters.newest(|| "text".into()).await);
        }
        assert_eq!(counters.unread.load(Relaxed), UNREAD_MAX);
        unread.clear();
        // The newest is kept for those that wait for it.
        assert_eq!(counters.unread.load(Relaxed), 1);
        let mut waiting: FuturesUnordered<_> = (0..10).map(|_| counters.newest(|| "newer".into())).collect();
        while let Some(text) = waiting.next().await {
            assert_eq!(text, "newer");
        }
    }
}
