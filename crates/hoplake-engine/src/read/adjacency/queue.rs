//! The queue between a hop and those who read ahead for the next: vertices that were reached, and the hop that will leave them.

use std::{collections::VecDeque, sync::Mutex};

use hoplake_format::VertexId;
use tokio::sync::Notify;

/// Vertices that a worker takes from the queue at once, so that neighbouring blocks are one request.
const BATCH: usize = 32;

/// A vertex, and the hop that will leave it.
type Ahead = (usize, VertexId);

/// The queue between a traversal and its workers.
#[derive(Debug)]
pub(crate) struct Queue {
    vertices: Mutex<VecDeque<Ahead>>,
    filled: Notify,
    vertices_max: usize,
    newest_first: bool,
}

impl Queue {
    pub(crate) fn new(vertices_max: usize, newest_first: bool) -> Self {
        Self { vertices: Mutex::default(), filled: Notify::new(), vertices_max, newest_first }
    }

    /// Adds vertices that hop number `hop` will leave.
    pub(crate) fn offer(&self, hop: usize, vertices: impl IntoIterator<Item = VertexId>) {
        {
            let mut queue = self.vertices.lock().expect("no thread panics with the queue");
            for vertex in vertices {
                // Reading ahead is a guess: a vertex that is dropped here is read when its hop expands it.
                if queue.len() >= self.vertices_max {
                    if !self.newest_first {
                        break;
                    }
                    queue.pop_front();
                }
                queue.push_back((hop, vertex));
            }
        }
        // After the lock, which the worker takes at once. It wakes the next worker itself.
        self.filled.notify_one();
    }

    /// The next vertices, all for the same hop.
    pub(crate) fn take(&self) -> Option<(usize, Vec<VertexId>)> {
        let mut queue = self.vertices.lock().expect("no thread panics with the queue");
        let next = |queue: &mut VecDeque<Ahead>| if self.newest_first { queue.pop_back() } else { queue.pop_front() };
        let (hop, vertex) = next(&mut queue)?;
        let mut batch = vec![vertex];
        while batch.len() < BATCH {
            let peeked = if self.newest_first { queue.back() } else { queue.front() };
            // A batch becomes one plan, and a plan is of one hop.
            if peeked.is_none_or(|(other, _)| *other != hop) {
                break;
            }
            batch.extend(next(&mut queue).map(|(_, vertex)| vertex));
        }
        Some((hop, batch))
    }

    /// Has one more worker look.
    pub(crate) fn wake_another(&self) {
        self.filled.notify_one();
    }

    /// Waits until vertices were added.
    pub(crate) async fn filled(&self) {
        self.filled.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use hoplake_format::LabelId;

    use super::*;

    fn vertices(ordinals: std::ops::Range<u64>) -> impl Iterator<Item = VertexId> {
        ordinals.filter_map(|ordinal| VertexId::new(LabelId(0), ordinal))
    }

    fn ordinals(taken: Option<(usize, Vec<VertexId>)>) -> (usize, Vec<u64>) {
        let (hop, vertices) = taken.unwrap();
        (hop, vertices.into_iter().map(|vertex| vertex.ordinal()).collect())
    }

    #[test]
    fn a_full_queue_drops_what_is_needed_last() {
        let first_come = Queue::new(3, false);
        first_come.offer(1, vertices(0..2));
        first_come.offer(2, vertices(2..9));
        assert_eq!(ordinals(first_come.take()), (1, vec![0, 1]));
        assert_eq!(ordinals(first_come.take()), (2, vec![2]));
        let stack = Queue::new(3, true);
        stack.offer(1, vertices(0..2));
        stack.offer(2, vertices(2..4));
        assert_eq!(ordinals(stack.take()), (2, vec![3, 2]));
        assert_eq!(ordinals(stack.take()), (1, vec![1]));
        assert_eq!(stack.take(), None);
    }
}
