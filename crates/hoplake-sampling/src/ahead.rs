//! Batches that are made before they are asked for, as far as there is memory for them.
//!
//! A batch takes its memory before it begins: as much as the largest before it took at its peak, and a quarter more. What it builds counts
//! within that. If there is no room for it, it waits until there is, or until the caller waits for it and no other is being made: then it
//! may have all that is left, as a call of its own would, and fails only if that is not enough. The first batch, of which nothing is known,
//! is made that way, too.

use std::{collections::VecDeque, sync::Arc};

use futures::future::BoxFuture;
use hoplake_engine::Held;
use hoplake_storage::{MemoryBudget, MemoryHold};
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
    task::{JoinError, JoinSet},
};

/// Whose memory it is, for messages.
const OWNER: &str = "the batch";

/// Makes a batch of what is asked for, within a budget.
type Make<J, T, E> = Arc<dyn Fn(J, MemoryBudget) -> BoxFuture<'static, Result<T, E>> + Send + Sync>;

/// Batches that are under way, in their order. Dropping it ends them.
#[derive(Debug)]
pub struct Ahead<J, T, E> {
    messages: mpsc::UnboundedSender<Message<J, T, E>>,
}

#[derive(Debug)]
enum Message<J, T, E> {
    Push(J),
    Next(oneshot::Sender<Batch<T, E>>),
}

/// A batch, or none if nothing else is asked for.
type Batch<T, E> = Option<Result<Held<T>, E>>;

impl<J, T, E> Ahead<J, T, E>
where
    J: Clone + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    /// Batches whose memory counts against a budget, on the threads of a runtime. `make` makes a batch within the budget that it is given,
    /// and may be called again for the same batch; `is_in_use` tells an error of a shared budget without room, which is what that budget
    /// may be.
    pub fn new<M: Future<Output = Result<T, E>> + Send + 'static>(
        runtime: &Handle,
        budget: MemoryBudget,
        make: impl Fn(J, MemoryBudget) -> M + Send + Sync + 'static,
        is_in_use: fn(&E) -> bool,
    ) -> Self {
        let (messages, received) = mpsc::unbounded_channel();
        let driver = Driver {
            budget,
            make: Arc::new(move |asked, budget| Box::pin(make(asked, budget))),
            is_in_use,
            batches: VecDeque::new(),
            taken: 0,
            running: JoinSet::new(),
            is_alone: false,
            expected: None,
            waiting: VecDeque::new(),
        };
        runtime.spawn(driver.run(received));
        Self { messages }
    }

    /// Asks for a batch, after those that were asked for before. It begins as soon as there is memory for it.
    pub fn push(&self, asked: J) {
        // The driver ends before this only if a batch panicked, which `next` passes on.
        let _ = self.messages.send(Message::Push(asked));
    }

    /// The next batch, once it is made; `None` if no other was asked for. Its memory counts until it is dropped.
    ///
    /// # Errors
    /// That of the batch; those after it are made nevertheless.
    ///
    /// # Panics
    /// If making a batch panicked.
    pub fn next(&self) -> impl Future<Output = Batch<T, E>> + Send + use<J, T, E> {
        let (sender, receiver) = oneshot::channel();
        let sent = self.messages.send(Message::Next(sender));
        async move {
            drop(sent);
            receiver.await.expect("the making of batches panicked")
        }
    }
}

/// A batch that was asked for.
struct Asked<J, T, E> {
    asked: J,
    state: State<T, E>,
}

enum State<T, E> {
    /// It has not begun, or has to begin again.
    Waiting,
    Running,
    Made(Result<Held<T>, E>),
}

/// A batch that has ended.
struct Ended<T, E> {
    number: u64,
    result: Result<T, E>,
    budget: MemoryBudget,
    /// What it took in advance; none if it could have all.
    taken: Option<MemoryHold>,
}

struct Driver<J, T, E> {
    budget: MemoryBudget,
    make: Make<J, T, E>,
    is_in_use: fn(&E) -> bool,
    batches: VecDeque<Asked<J, T, E>>,
    /// How many batches were handed out, which is the number of the first of `batches`.
    taken: u64,
    running: JoinSet<Ended<T, E>>,
    /// Whether the one that is running may have all that is left, so that no other begins.
    is_alone: bool,
    /// What a batch is expected to take; nothing is known before the first.
    expected: Option<u64>,
    waiting: VecDeque<oneshot::Sender<Batch<T, E>>>,
}

impl<J, T, E> Driver<J, T, E>
where
    J: Clone + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    async fn run(mut self, mut messages: mpsc::UnboundedReceiver<Message<J, T, E>>) {
        loop {
            // Before others begin: what is handed out may be dropped soon.
            self.hand_out();
            self.begin();
            tokio::select! {
                message = messages.recv() => match message {
                    Some(Message::Push(asked)) => self.batches.push_back(Asked { asked, state: State::Waiting }),
                    Some(Message::Next(sender)) => self.waiting.push_back(sender),
                    None => return,
                },
                Some(ended) = self.running.join_next() => match ended.map_err(JoinError::try_into_panic) {
                    Ok(ended) => self.end(ended),
                    Err(Ok(panic)) => std::panic::resume_unwind(panic),
                    // The runtime shuts down.
                    Err(Err(_)) => return,
                },
            }
        }
    }

    /// Begins those that there is memory for, in their order.
    fn begin(&mut self) {
        while !self.is_alone {
            let Some(at) = self.batches.iter().position(|it| matches!(it.state, State::Waiting)) else { return };
            match self.expected.and_then(|bytes| self.budget.hold(bytes).ok()) {
                Some(taken) => self.start(at, MemoryBudget::shared(OWNER, taken.bytes()), Some(taken)),
                None if at == 0 && self.running.is_empty() && !self.waiting.is_empty() => {
                    self.is_alone = true;
                    // Later ones that are there are in its way.
                    self.batches.iter_mut().for_each(|it| it.state = State::Waiting);
                    self.start(at, self.budget.within(OWNER, u64::MAX), None);
                }
                None => return,
            }
        }
    }

    fn start(&mut self, at: usize, budget: MemoryBudget, taken: Option<MemoryHold>) {
        let number = self.taken + at as u64;
        let batch = &mut self.batches[at];
        batch.state = State::Running;
        let made = (self.make)(batch.asked.clone(), budget.clone());
        self.running.spawn(async move { Ended { number, result: made.await, budget, taken } });
    }

    fn end(&mut self, ended: Ended<T, E>) {
        let Ended { number, result, budget, taken } = ended;
        let batch = &mut self.batches[(number - self.taken) as usize];
        let peak = budget.peak();
        let mut expected = peak.saturating_add(peak / 4);
        batch.state = match (result, taken) {
            (Ok(made), Some(mut taken)) => {
                // Less can always be had.
                let _ = taken.resize(budget.used().min(taken.bytes()));
                State::Made(Ok(Held::new(made, taken)))
            }
            (Ok(made), None) => {
                self.is_alone = false;
                State::Made(Ok(Held::<()>::default().map(|()| made)))
            }
            (Err(error), Some(taken)) if (self.is_in_use)(&error) => {
                // It needs more than those before it.
                expected = taken.bytes().saturating_mul(2);
                State::Waiting
            }
            (Err(error), Some(_)) => State::Made(Err(error)),
            (Err(error), None) => {
                self.is_alone = false;
                State::Made(Err(error))
            }
        };
        self.expected = self.expected.max(Some(expected));
    }

    /// Hands out what is made to those who wait, in order.
    fn hand_out(&mut self) {
        while !self.waiting.is_empty() {
            match self.batches.pop_front() {
                Some(Asked { state: State::Made(made), asked }) => {
                    let sender = self.waiting.pop_front().expect("someone waits");
                    match sender.send(Some(made)) {
                        Ok(()) => self.taken += 1,
                        // It waits no longer: the next one gets it.
                        Err(made) => {
                            let made = made.expect("a batch was sent");
                            self.batches.push_front(Asked { asked, state: State::Made(made) });
                        }
                    }
                }
                Some(other) => {
                    self.batches.push_front(other);
                    return;
                }
                None => self.waiting.drain(..).for_each(|sender| drop(sender.send(None))),
            }
        }
    }
}
