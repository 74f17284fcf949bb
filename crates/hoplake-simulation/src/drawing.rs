//! Processes that draw from a generator of their own.
//!
//! A feed draws its name and its pauses from the generator of its thread, on which all processes of a seed run. Which of two that are ready
//! at the same time goes first may depend on threads that the seed does not decide on, such as those of a load. So each process puts its own
//! generator in the place of the thread's while it runs: what it draws depends on nothing that others do.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

/// A process with its own generator.
pub(crate) struct Drawing<F> {
    /// The state of the generator while it waits.
    state: u64,
    process: Pin<Box<F>>,
}

/// A process whose generator begins with a number that the current one draws.
pub(crate) fn drawing<F: Future>(process: F) -> Drawing<F> {
    Drawing { state: fastrand::u64(..), process: Box::pin(process) }
}

impl<F: Future> Future for Drawing<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let of_thread = fastrand::get_seed();
        fastrand::seed(self.state);
        let polled = self.process.as_mut().poll(context);
        self.state = fastrand::get_seed();
        fastrand::seed(of_thread);
        polled
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::yield_now;

    use super::*;

    async fn drawn(others: u32) -> Vec<u64> {
        fastrand::seed(7);
        let process = drawing(async {
            let mut all = Vec::new();
            for _ in 0..3 {
                all.push(fastrand::u64(..));
                yield_now().await;
            }
            all
        });
        let beside = async {
            for _ in 0..others {
                fastrand::u64(..);
                yield_now().await;
            }
        };
        tokio::join!(process, beside).0
    }

    #[tokio::test]
    async fn what_others_draw_changes_nothing() {
        assert_eq!(drawn(0).await, drawn(5).await);
    }
}
