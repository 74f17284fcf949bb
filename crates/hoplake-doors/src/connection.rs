//! One connection: what it is doing, and when it has taken too long.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, Weak,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::Exchange;

/// Requests that a connection may send with a wrong token, or without one where one is needed: a program that guesses has to
/// connect again after these.
const REJECTED_TOKENS_MAX: usize = 8;
/// Responses in flight of a connection to requests that need no token. A client that reads has a few; one with more does not read.
const OPEN_RESPONSES_MAX: usize = 16;

/// The stage of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No request of it was complete yet.
    Half,
    /// A request is in flight.
    Busy,
    /// It waits for its next request.
    Idle,
}

#[derive(Debug)]
struct State {
    stage: Stage,
    since: Instant,
    /// Its position among those that may be closed for a new one.
    turn: u64,
    exchanges: Vec<Weak<Exchange>>,
    under_way: usize,
}

/// The connections of a program, over all its doors.
#[derive(Debug, Default)]
pub struct Connections {
    /// Those that may be closed for a new one, the oldest first, in both stages.
    waiting: Mutex<ClosableConnections>,
}

/// The connections that may be closed for a new one. A busy one is in neither map, so nothing here can end a query.
#[derive(Debug, Default)]
struct ClosableConnections {
    turns: u64,
    open: usize,
    half: BTreeMap<u64, CancellationToken>,
    idle: BTreeMap<u64, CancellationToken>,
}

/// What a connection does after an upgrade to another protocol.
pub type UpgradeTask = BoxFuture<'static, ()>;

/// A connection.
pub struct Connection {
    all: Arc<Connections>,
    state: Mutex<State>,
    /// What it does after hyper has released it, if a request upgraded it.
    upgrade: Mutex<Option<UpgradeTask>>,
    /// Signals its task to close it.
    pub(crate) close: CancellationToken,
    /// Signals its task to close it when the responses in flight are sent.
    pub(crate) leave: CancellationToken,
    /// Requests that were rejected for their token.
    rejected_tokens: AtomicUsize,
    /// Responses in flight that need no token.
    open_responses: AtomicUsize,
}

/// How long a connection may take.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For the headers of its first request.
    pub header: Duration,
    /// Between requests.
    pub idle: Duration,
    /// For its client to read something of a response.
    pub send: Duration,
}

impl Connections {
    fn waiting(&self) -> MutexGuard<'_, ClosableConnections> {
        self.waiting.lock().expect("no thread panics with the connections")
    }

    /// Closes connections until there is room for one more, the oldest idle one first, or half-open if too many are.
    /// Returns whether there is room.
    pub(crate) fn make_room(&self, open_max: usize, half_max: usize) -> bool {
        let mut waiting = self.waiting();
        if waiting.half.len() >= half_max {
            waiting.half.pop_first().into_iter().for_each(|(_, close)| close.cancel());
        }
        if waiting.open < open_max {
            return true;
        }
        // Idle ones first: a client opens another for its next request, but loses a request that it is sending.
        // The entry leaves the map at once, and `open` falls only when its task ends: the next call closes another one.
        let oldest = waiting.idle.pop_first().or_else(|| waiting.half.pop_first());
        oldest.map(|(_, close)| close.cancel()).is_some()
    }

    /// How many are open, and how many of these half-open.
    pub fn count(&self) -> (usize, usize) {
        let waiting = self.waiting();
        (waiting.open, waiting.half.len())
    }
}

impl ClosableConnections {
    /// Turns only ascend, over both maps, so the first entry of a map has waited longest.
    fn enter(&mut self, stage: Stage, close: &CancellationToken) -> u64 {
        self.turns += 1;
        match stage {
            Stage::Half => drop(self.half.insert(self.turns, close.clone())),
            Stage::Idle => drop(self.idle.insert(self.turns, close.clone())),
            Stage::Busy => {}
        }
        self.turns
    }

    /// `make_room` may have removed the entry, which is not an error.
    fn leave(&mut self, stage: Stage, turn: u64) {
        match stage {
            Stage::Half => drop(self.half.remove(&turn)),
            Stage::Idle => drop(self.idle.remove(&turn)),
            Stage::Busy => {}
        }
    }
}

impl Connection {
    pub(crate) fn open(all: &Arc<Connections>) -> Arc<Self> {
        let close = CancellationToken::new();
        let mut waiting = all.waiting();
        waiting.open += 1;
        let turn = waiting.enter(Stage::Half, &close);
        drop(waiting);
        let state = State { stage: Stage::Half, since: Instant::now(), turn, exchanges: Vec::new(), under_way: 0 };
        Arc::new(Self {
            all: all.clone(),
            state: Mutex::new(state),
            upgrade: Mutex::default(),
            close,
            leave: CancellationToken::new(),
            rejected_tokens: AtomicUsize::new(0),
            open_responses: AtomicUsize::new(0),
        })
    }

    /// Counts a request that is refused for its token. After a few of them the connection is closed, when its responses are sent.
    /// Returns whether this was the last.
    pub fn count_rejected_token(&self) -> bool {
        let is_last = self.rejected_tokens.fetch_add(1, Relaxed) + 1 >= REJECTED_TOKENS_MAX;
        if is_last {
            self.leave.cancel();
        }
        is_last
    }

    /// Counts an answer that needs no token, until [`Self::end_open_response`]. Whether there is room for it; if there is not, the
    /// connection is closed when its answers have left.
    pub(crate) fn count_open_response(&self) -> bool {
        let has_room = self.open_responses.fetch_add(1, Relaxed) < OPEN_RESPONSES_MAX;
        if !has_room {
            self.open_responses.fetch_sub(1, Relaxed);
            self.leave.cancel();
        }
        has_room
    }

    pub(crate) fn end_open_response(&self) {
        self.open_responses.fetch_sub(1, Relaxed);
    }

    /// Runs this after hyper has released the connection, within the bounds of its door.
    pub fn upgrade_to(&self, task: UpgradeTask) {
        *self.upgrade.lock().expect("no thread panics with the work of a connection") = Some(task);
    }

    /// What it runs after an upgrade.
    pub(crate) fn take_upgrade(&self) -> Option<UpgradeTask> {
        self.upgrade.lock().expect("no thread panics with the work of a connection").take()
    }

    /// Begins the exchange of a request that has arrived whole, in a protocol that hyper does not know.
    pub fn begin_exchange(self: &Arc<Self>) -> Arc<Exchange> {
        let exchange = Exchange::begin(self);
        exchange.complete();
        exchange
    }

    /// Notes that its client is alive: the time of an idle connection starts again.
    pub fn mark_alive(&self) {
        let mut state = self.state();
        if state.stage == Stage::Idle {
            state.since = Instant::now();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics with the state of a connection")
    }

    fn enter(&self, state: &mut State, stage: Stage) {
        // Its age starts again only with its stage. Locks are taken in this order everywhere: state, then waiting.
        if state.stage != stage {
            let mut waiting = self.all.waiting();
            waiting.leave(state.stage, state.turn);
            state.stage = stage;
            state.since = Instant::now();
            state.turn = waiting.enter(stage, &self.close);
        }
    }

    /// A request begins: its headers have arrived.
    pub(crate) fn begin(&self, exchange: &Arc<Exchange>) {
        let mut state = self.state();
        state.under_way += 1;
        // Counts instead of upgrades: to drop the last `Arc` of a exchange calls `end`, which needs this lock.
        state.exchanges.retain(|exchange| exchange.strong_count() > 0);
        state.exchanges.push(Arc::downgrade(exchange));
        // One that is half-open stays so: headers alone cost a client nothing.
        if state.stage == Stage::Idle {
            self.enter(&mut state, Stage::Busy);
        }
    }

    /// A request is complete.
    pub(crate) fn complete(&self) {
        let mut state = self.state();
        if state.under_way > 0 {
            self.enter(&mut state, Stage::Busy);
        }
    }

    /// A response is sent.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.under_way -= 1;
        if state.under_way == 0 {
            self.enter(&mut state, Stage::Idle);
        }
    }

    /// Whether no request of it is in flight.
    pub(crate) fn is_unused(&self) -> bool {
        self.state().under_way == 0
    }

    /// Why it is to be closed, if it is.
    pub(crate) fn overdue(&self, patience: &Patience) -> Option<&'static str> {
        // The lock is released before exchanges are upgraded: to drop the last `Arc` of one calls `end`.
        let (stage, age, under_way, exchanges) = {
            let state = self.state();
            (state.stage, state.since.elapsed(), state.under_way, state.exchanges.clone())
        };
        match stage {
            // With headers, its body has its own time. A later request that has begun is not seen before its headers
            // are complete; it has the time of an idle connection.
            Stage::Half if under_way == 0 && age > patience.header => Some("its request did not arrive"),
            Stage::Idle if age > patience.idle => Some("it was idle"),
            _ => {
                // The whole connection is closed, with its other streams: hyper cannot reset a stream of HTTP/2
                // that waits for its client's window.
                let stalled =
                    |exchange: &Weak<Exchange>| exchange.upgrade().is_some_and(|it| it.is_stalled(patience.send));
                exchanges.iter().any(stalled).then_some("its client does not read the answer")
            }
        }
    }
}

/// Removes a connection from the list when its task ends, in any way.
pub(crate) struct ConnectionGuard(pub(crate) Arc<Connection>);

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        // It holds the connection, and would never be dropped.
        drop(self.0.take_upgrade());
        let state = self.0.state();
        let mut waiting = self.0.all.waiting();
        waiting.open -= 1;
        waiting.leave(state.stage, state.turn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_that_is_idle_gives_way_before_one_that_is_half_open() {
        let all = Arc::new(Connections::default());
        let attend = || ConnectionGuard(Connection::open(&all));
        let half = attend();
        let idle = attend();
        let busy = attend();
        let exchanges = [Exchange::begin(&idle.0), Exchange::begin(&busy.0)];
        exchanges.iter().for_each(|exchange| exchange.complete());
        let [first, _still_running] = exchanges;
        drop(first);
        assert_eq!((all.count(), all.make_room(4, 4)), ((3, 1), true));
        let closed = |them: [&ConnectionGuard; 3]| them.map(|it| it.0.close.is_cancelled());
        assert!(all.make_room(3, 4));
        assert_eq!(closed([&half, &idle, &busy]), [false, true, false]);
        assert!(all.make_room(3, 4));
        assert_eq!(closed([&half, &idle, &busy]), [true, true, false]);
        // A busy connection stays.
        assert!(!all.make_room(3, 4));
        drop((half, idle, busy));
        assert_eq!(all.count(), (0, 0));
    }

    #[test]
    fn who_guesses_and_who_does_not_read_is_asked_to_leave() {
        let all = Arc::new(Connections::default());
        let guessing = ConnectionGuard(Connection::open(&all));
        let guesses: Vec<_> = (0..REJECTED_TOKENS_MAX).map(|_| guessing.0.count_rejected_token()).collect();
        assert!(guesses[REJECTED_TOKENS_MAX - 1] && !guesses[..REJECTED_TOKENS_MAX - 1].contains(&true));
        assert!(guessing.0.leave.is_cancelled() && !guessing.0.close.is_cancelled());
        let unread = ConnectionGuard(Connection::open(&all));
        let exchanges: Vec<_> = (0..OPEN_RESPONSES_MAX).map(|_| Exchange::begin(&unread.0)).collect();
        assert!(exchanges.iter().all(|exchange| exchange.count_open_response()) && !unread.0.leave.is_cancelled());
        let one_more = Exchange::begin(&unread.0);
        assert!(!one_more.count_open_response() && unread.0.leave.is_cancelled());
        drop((exchanges, one_more));
        assert!(Exchange::begin(&unread.0).count_open_response());
    }

    #[test]
    fn half_open_ones_have_a_bound_of_their_own() {
        let all = Arc::new(Connections::default());
        let them = [ConnectionGuard(Connection::open(&all)), ConnectionGuard(Connection::open(&all))];
        assert!(all.make_room(100, 2));
        assert_eq!(them.each_ref().map(|it| it.0.close.is_cancelled()), [true, false]);
        let patience = Patience { header: Duration::ZERO, idle: Duration::MAX, send: Duration::MAX };
        std::thread::sleep(Duration::from_millis(1));
        assert!(them[1].0.overdue(&patience).is_some());
        // The headers have arrived: the body watches its own time.
        let _visit = Exchange::begin(&them[1].0);
        assert!(them[1].0.overdue(&patience).is_none());
    }
}
