//! Which access nodes there are, and which of them answer.
//!
//! A name may have several addresses, and each is a node: so nodes join and leave with the name service, without a
//! restart. Names are looked up when they are used: at first, again when that was a while ago, and sooner after a
//! failure; never while no request arrives. The known nodes stay until a look-up succeeds.
//!
//! A node that does not answer is passed over for a second, doubling to ten. After that one request tries it; the
//! others go on without it until that one is answered. That is a circuit breaker without waiting, which a crate for
//! retries such as `backon` does not offer.

use std::{
    collections::BTreeSet,
    fmt, io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use axum::http::Uri;
use futures::future::{BoxFuture, join_all};
use tokio::time::timeout;
use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    transport::{Channel, Endpoint},
};

use super::{MESSAGE_BYTES_MAX, routing};
use crate::{
    failure::{Failure, Reason},
    v1::blocks_client::BlocksClient,
};

/// Looks up the addresses of a host and port; tests bring one of their own.
pub type Resolver = Arc<dyn Fn(&str, u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// The port of gRPC, where an address has none.
const PORT: u16 = 7480;
/// Addresses that are older are looked up again when they are used.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// The same after a failure.
const LOOK_AGAIN_SOON: Duration = Duration::from_millis(500);
/// How long a look-up may take.
const LOOK_UP_MAX: Duration = Duration::from_secs(2);

/// For so long a node that failed is passed over, at first and at last.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// A dead machine does not refuse a connection. Within a zone one takes a millisecond.
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// How often a connection with requests on it is tried, and how long it may take to show that it lives.
const PING_EVERY: Duration = Duration::from_secs(2);
const PING_MAX: Duration = Duration::from_secs(2);

/// Bytes that may be under way: of one answer, as long as the longest joined request, and of all of a node.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;

/// One access node.
pub(super) struct Node {
    /// Its address, by which all algorithm nodes know it.
    name: String,
    client: BlocksClient<Channel>,
    failing: Mutex<Option<Failing>>,
}

/// The state of a node that does not answer, until it answers again.
struct Failing {
    why: String,
    since: Instant,
    pause: Duration,
    /// When it is tried again.
    again: Instant,
}

impl Node {
    fn new(address: SocketAddr) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address makes a URL");
        let channel = endpoint
            .connect_timeout(CONNECT_MAX)
            // PING frames (RFC 9113, 6.7) detect a node that hangs after 4 s; its connection stays open, so nothing else would.
            // Idle connections send none: a server that is not asked anything sends the nodes nothing.
            .http2_keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_MAX)
            // With the window of RFC 9113 (6.9.2), 65,535 bytes, an answer of 4 MiB would take 64 round trips.
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            // Lazy, so that an algorithm node starts while its access nodes are still down.
            .connect_lazy();
        // A manifest arrives in one message, and may be larger than the 4 MiB that tonic accepts by default.
        let client = BlocksClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
        Self { name: address.to_string(), client, failing: Mutex::default() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn client(&self) -> BlocksClient<Channel> {
        self.client.clone()
    }

    fn failing(&self) -> MutexGuard<'_, Option<Failing>> {
        self.failing.lock().expect("no thread panics with the state of a node")
    }

    /// Whether to ask it now. If a failed node is due for a trial, this request makes it.
    fn may_ask(&self) -> bool {
        let now = Instant::now();
        match &mut *self.failing() {
            None => true,
            Some(failing) if now >= failing.again => {
                // Taken before the lock is released: of many requests at this moment, one makes the trial.
                failing.again = now + failing.pause;
                true
            }
            Some(_) => false,
        }
    }

    /// It answered, with whatever status.
    pub(super) fn answered(&self) {
        let recovered = self.failing().take();
        if recovered.is_some() {
            tracing::info!(node = self.name, "access node answers again");
        }
    }

    /// It did not answer.
    fn failed(&self, why: String) {
        let now = Instant::now();
        let mut failing = self.failing();
        let pause = match &*failing {
            // Requests that were under way when it failed fail now; they say nothing new, and must not double the pause.
            Some(failing) if now < failing.since + failing.pause => return,
            Some(failing) => (failing.pause * 2).min(PAUSE_MAX),
            // Once for each outage: a log line for each request would hide everything else.
            None => {
                tracing::warn!(node = self.name, why, "access node does not answer");
                PAUSE
            }
        };
        *failing = Some(Failing { why, since: now, pause, again: now + pause });
    }
}

/// A host and port that was named; some are addresses already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    host: String,
    port: u16,
}

impl Target {
    fn address(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.host.parse::<IpAddr>().ok()?, self.port))
    }
}

/// Reads `http://host:port`.
///
/// # Errors
/// [`Reason::Invalid`] with what to write.
pub(crate) fn parse_target(url: &str) -> Result<Target, Failure> {
    let wrong =
        || Failure::invalid(format!("{url:?} is not an access node; write http://HOST:PORT, the port of its gRPC"));
    let uri: Uri = url.parse().map_err(|_| wrong())?;
    // `https` is rejected: nodes speak plain HTTP, and a client must not assume that its connection is encrypted.
    let plain = uri.scheme_str() == Some("http") && uri.path() == "/" && uri.query().is_none();
    let host = uri.host().filter(|host| plain && !host.is_empty()).ok_or_else(wrong)?;
    // A URL has an IPv6 address in brackets (RFC 3986, 3.2.2); `IpAddr` parses it without them.
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Ok(Target { host, port: uri.port_u16().unwrap_or(PORT) })
}

/// Those that are known, in the order of their addresses.
pub(super) type Members = Arc<[Arc<Node>]>;

/// The access nodes of an algorithm node.
pub(crate) struct AccessNodes {
    targets: Vec<Target>,
    token: Option<MetadataValue<Ascii>>,
    resolver: Resolver,
    known: Mutex<NodeDirectory>,
    /// A node failed since the last look-up.
    hurry: AtomicBool,
}

/// The access nodes, as the last look-ups found them.
#[derive(Default)]
struct NodeDirectory {
    /// The addresses of each target, as they were last found.
    addresses: Vec<Vec<SocketAddr>>,
    members: Members,
    looked: Option<Instant>,
    looking: bool,
}

impl fmt::Debug for AccessNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AccessNodes").field(&self.targets).finish()
    }
}

impl AccessNodes {
    /// Nodes at these URLs; nothing is asked yet.
    ///
    /// # Errors
    /// [`Reason::Invalid`] if one cannot be read, or the token cannot be sent.
    pub(crate) fn new(urls: &[String], token: Option<&str>, resolver: Resolver) -> Result<Arc<Self>, Failure> {
        let targets = urls.iter().map(|url| parse_target(url)).collect::<Result<Vec<_>, _>>()?;
        let bearer = |token: &str| {
            let value = format!("Bearer {token}").parse();
            value.map_err(|_| Failure::invalid("the token has characters that a header cannot have"))
        };
        let known = NodeDirectory { addresses: vec![Vec::new(); targets.len()], ..NodeDirectory::default() };
        let token = token.map(bearer).transpose()?;
        Ok(Arc::new(Self { targets, token, resolver, known: Mutex::new(known), hurry: AtomicBool::new(false) }))
    }

    fn known(&self) -> MutexGuard<'_, NodeDirectory> {
        self.known.lock().expect("no thread panics with the nodes")
    }

    /// How many are known.
    pub(super) fn count(&self) -> usize {
        // The reader pauses between attempts only after as many requests as there are nodes, which is at least one.
        self.known().members.len().max(1)
    }

    /// A message with the token.
    pub(super) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert("authorization", token.clone());
        }
        request
    }

    /// The nodes: looked up now if none is known, and in parallel with the request if a look-up is due.
    ///
    /// # Errors
    /// [`Reason::Unavailable`] if no name has an address.
    pub(super) async fn members(self: &Arc<Self>) -> Result<Members, Failure> {
        match self.at_hand() {
            Some(members) => Ok(members),
            None => self.look().await,
        }
    }

    /// The known nodes, if any; starts a look-up in parallel with the request if one is due.
    fn at_hand(self: &Arc<Self>) -> Option<Members> {
        let mut known = self.known();
        if known.members.is_empty() {
            return None;
        }
        if !known.looking && self.is_due(&known) {
            // Set under the lock, so that of many requests only one starts a look-up.
            known.looking = true;
            let nodes = self.clone();
            tokio::spawn(async move { drop(nodes.look().await) });
        }
        Some(known.members.clone())
    }

    fn is_due(&self, known: &NodeDirectory) -> bool {
        let after = if self.hurry.load(Relaxed) { LOOK_AGAIN_SOON } else { LOOK_AGAIN };
        // Addresses do not change, names of a cluster do.
        let fixed = self.targets.iter().all(|target| target.address().is_some());
        !fixed && known.looked.is_none_or(|looked| looked.elapsed() >= after)
    }

    /// Looks all names up.
    async fn look(&self) -> Result<Members, Failure> {
        // Before the look-up: a node that fails meanwhile asks for another one.
        self.hurry.store(false, Relaxed);
        let found = join_all(self.targets.iter().map(|target| self.addresses(target))).await;
        // Locked only now: during the look-up, requests continue with the nodes that are known.
        let mut known = self.known();
        known.looked = Some(Instant::now());
        known.looking = false;
        let mut unknown = Vec::new();
        for (index, (target, found)) in self.targets.iter().zip(found).enumerate() {
            match found {
                // A name that cannot be looked up keeps its last addresses: the nodes may well be there.
                Ok(addresses) => known.addresses[index] = addresses,
                Err(error) => unknown.push(format!("{} ({error})", target.host)),
            }
        }
        if !unknown.is_empty() {
            tracing::warn!(hosts = unknown.join(", "), "could not look up access nodes");
        }
        known.gather();
        if known.members.is_empty() {
            let message = format!("could not find an access node: no address for {}", unknown.join(", "));
            return Err(Failure::new(Reason::Unavailable, message));
        }
        Ok(known.members.clone())
    }

    async fn addresses(&self, target: &Target) -> io::Result<Vec<SocketAddr>> {
        if let Some(address) = target.address() {
            return Ok(vec![address]);
        }
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no answer in time");
        let found = timeout(LOOK_UP_MAX, (self.resolver)(&target.host, target.port)).await.map_err(late)??;
        // No address counts as a failed look-up, so that the target keeps its last addresses.
        if found.is_empty() { Err(io::Error::new(io::ErrorKind::NotFound, "it has none")) } else { Ok(found) }
    }

    /// The node for a routing key at an attempt: that many after the first, or the next that is not skipped.
    pub(super) fn choose(members: &Members, key: routing::RoutingKey, attempt: u32) -> Arc<Node> {
        let order = routing::order(key, members.iter().map(|node| node.name()));
        // All algorithm nodes have the same order for a key, so the second choice of all is the same node, too, and its
        // cache serves them.
        let from = attempt as usize % order.len();
        let mut candidates = (0..order.len()).map(|step| &members[order[(from + step) % order.len()]]);
        // If all are passed over, each is asked in its turn all the same.
        candidates.find(|node| node.may_ask()).unwrap_or(&members[order[from]]).clone()
    }

    /// Notes that a node did not answer, and returns the failure: of all nodes, if none answers.
    pub(super) fn failed(&self, node: &Node, members: &Members, status: &Status) -> String {
        // The node may have moved: its name may already lead to another address.
        self.hurry.store(true, Relaxed);
        let why = deepest(status);
        node.failed(why.clone());
        let failing =
            |node: &Arc<Node>| node.failing().as_ref().map(|failing| format!("{} ({})", node.name, failing.why));
        match members.iter().map(failing).collect::<Option<Vec<_>>>() {
            Some(all) if all.len() > 1 => format!("no access node answers: {}", all.join(", ")),
            _ => format!("access node {} does not answer: {why}", node.name),
        }
    }
}

impl NodeDirectory {
    /// Makes nodes of the addresses; those that stay keep their connections and their state.
    fn gather(&mut self) {
        // Sorted and each once, so that every algorithm node routes alike whatever the order of its answers.
        let addresses: BTreeSet<_> = self.addresses.iter().flatten().copied().collect();
        let node = |address: SocketAddr| {
            let name = address.to_string();
            // A new node would forget that the old one failed, and would open another connection.
            let old = self.members.iter().find(|node| node.name == name).cloned();
            old.unwrap_or_else(|| Arc::new(Node::new(address)))
        };
        let members: Members = addresses.into_iter().map(node).collect();
        if members.iter().map(|node| node.name()).ne(self.members.iter().map(|node| node.name())) {
            let names: Vec<_> = members.iter().map(|node| node.name()).collect();
            tracing::info!(nodes = names.join(", "), "access nodes");
        }
        self.members = members;
    }
}

/// The root cause of a transport error: its own message is "transport error".
fn deepest(status: &Status) -> String {
    let mut why = status.message().to_owned();
    let mut source = std::error::Error::source(status);
    while let Some(error) = source {
        why = error.to_string();
        source = error.source();
    }
    why
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_nodes_are_named_by_url() {
        let read = |url: &str| parse_target(url).map(|target| (target.host, target.port)).ok();
        let target = |host: &str, port| Some((host.to_owned(), port));
        assert_eq!(read("http://access.local:7000"), target("access.local", 7000));
        assert_eq!(read("http://10.0.0.1/"), target("10.0.0.1", PORT));
        assert_eq!(read("http://[::1]:9"), target("::1", 9));
        assert_eq!(parse_target("http://[::1]:9").unwrap().address(), "[::1]:9".parse().ok());
        for wrong in ["", "access:7480", "https://access:7480", "http://", "http://access/path", "http://a b"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_failed_node_is_passed_over_and_the_next_in_order_has_its_share() {
        let members: Members = (1..4).map(|port| Arc::new(Node::new(([127, 0, 0, 1], port).into()))).collect();
        for position in 0..50 {
            let key = routing::RoutingKey::of("g", "data/a", position << 22);
            let order: Vec<_> =
                (0..3).map(|attempt| AccessNodes::choose(&members, key, attempt).name.clone()).collect();
            let first = members.iter().find(|node| node.name == order[0]).unwrap();
            first.failed("refused".into());
            // A call that failed to reach it continues with the second, and so do later calls.
            assert_eq!([0, 1].map(|attempt| AccessNodes::choose(&members, key, attempt).name.clone()), [&*order[1]; 2]);
            assert_eq!(AccessNodes::choose(&members, key, 2).name, order[2]);
            members.iter().for_each(|node| node.failed("refused".into()));
            // If none answers, all are tried.
            let tried = [0, 1, 2].map(|attempt| AccessNodes::choose(&members, key, attempt).name.clone());
            assert_eq!(tried.as_slice(), order);
            members.iter().for_each(|node| node.answered());
        }
    }

    #[tokio::test]
    async fn pauses_double_and_one_request_tries() {
        let node = Node::new(([127, 0, 0, 1], 1).into());
        let pause = || node.failing().as_ref().unwrap().pause;
        let pass = || {
            let mut failing = node.failing();
            let failing = failing.as_mut().unwrap();
            let long_ago = Instant::now().checked_sub(failing.pause).unwrap();
            failing.since = long_ago;
            failing.again = long_ago;
        };
        node.failed("refused".into());
        node.failed("refused too".into());
        assert_eq!((pause(), node.may_ask()), (PAUSE, false));
        pass();
        assert!(node.may_ask() && !node.may_ask());
        for expected in [2, 4, 8, 10, 10] {
            node.failed("refused".into());
            assert_eq!(pause(), Duration::from_secs(expected));
            pass();
        }
        node.answered();
        assert!(node.may_ask() && node.may_ask());
    }
}
