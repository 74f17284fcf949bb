//! A TCP proxy before a real server, that breaks what passes through it.
//!
//! **How it works.** Bytes are forwarded as they arrive, each way by a task of its own; for each piece of them a draw
//! decides what becomes of it. The proxy knows nothing of HTTP: it cuts headers, bodies and answers wherever a piece
//! happens to end, as a network does.
//!
//! **Signatures cover the host.** A client signs for the proxy's address; the header goes on unchanged, and the server
//! behind it checks the signature against it.
//!
//! **Late effects.** A client's bytes are forwarded even if it has disconnected meanwhile: a request that stalled here
//! may take effect seconds after the process that sent it was killed.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    task::{JoinHandle, JoinSet},
    time::sleep,
};

use crate::generate::SplitMix64;

/// Bytes that are passed on, or not, together.
const PIECE_BYTES: usize = 16 << 10;

/// A fault of a piece of bytes, or of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpFault {
    /// The connection is reset as soon as it is opened.
    Refuse,
    /// Half of the piece is passed on, then both sides are reset.
    Reset,
    /// The piece is passed on by half, then its receiver sees an orderly end; of a request, so does its sender.
    CutShort,
    /// Of an answer nothing is passed on, and the client is reset: it cannot know what the server did.
    LoseAnswer,
    /// The piece is passed on after some seconds.
    Stall,
    /// The piece is passed on a little later.
    Delay,
    /// Nothing more is passed on, as if a cable were cut, until the connection is reset some seconds later.
    Drop,
    /// Both directions stall without an error for up to a minute, longer than a client should wait. A new
    /// connection is accepted and leads nowhere.
    Hang,
}

impl TcpFault {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::Refuse, Self::Reset, Self::CutShort, Self::LoseAnswer, Self::Stall, Self::Delay, Self::Drop, Self::Hang];
}

/// The longest [`TcpFault::Hang`].
const HANG_MAX: Duration = Duration::from_secs(60);

/// Shares of connections, for [`TcpFault::Refuse`], or of pieces, that meet a fault; for [`TcpFault::Hang`], of both.
pub type TcpFaults = Vec<(TcpFault, f64)>;

#[derive(Debug)]
struct FaultSchedule {
    faults: Mutex<(TcpFaults, SplitMix64)>,
    /// How often each fault happened, in the order of [`TcpFault::ALL`].
    counts: [AtomicU64; TcpFault::ALL.len()],
    connections: AtomicU64,
}

impl FaultSchedule {
    fn faults(&self) -> MutexGuard<'_, (TcpFaults, SplitMix64)> {
        self.faults.lock().expect("no thread panics with the faults")
    }

    /// Draws the fault, if any, of a piece or a connection.
    fn draw(&self, may_be: impl Fn(TcpFault) -> bool) -> Option<TcpFault> {
        let (faults, random) = &mut *self.faults();
        let mut left = random.unit();
        let found = faults.iter().filter(|(fault, _)| may_be(*fault)).find_map(|(fault, share)| {
            left -= share;
            (left <= 0.0).then_some(*fault)
        })?;
        let at = TcpFault::ALL.iter().position(|fault| *fault == found).expect("all faults are in ALL");
        self.counts[at].fetch_add(1, Relaxed);
        Some(found)
    }

    /// A time up to this long.
    fn up_to(&self, longest: Duration) -> Duration {
        longest.mul_f64(self.faults().1.unit())
    }
}

/// A proxy before a server. Calm at first; dropping it ends it, and all connections through it.
///
/// ```no_run
/// use hoplake_testkit::{S3Server, TcpFault, TcpProxy};
///
/// # async fn example() -> std::io::Result<()> {
/// let server = S3Server::start()?;
/// let proxy = TcpProxy::start(&server.endpoint(), 7).await?;
/// proxy.set_faults([(TcpFault::Reset, 0.1)]);
/// let store = server.store_at(&proxy.endpoint());
/// # drop(store);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TcpProxy {
    address: SocketAddr,
    schedule: Arc<FaultSchedule>,
    running: JoinHandle<()>,
}

impl TcpProxy {
    /// Starts a proxy before the server at `endpoint` (`http://host:port`), on the current runtime.
    ///
    /// # Errors
    /// If there is no free port, or the endpoint is of another form.
    pub async fn start(endpoint: &str, seed: u64) -> io::Result<Self> {
        let unknown = || io::Error::other(format!("{endpoint} is not http://host:port"));
        let server = endpoint.strip_prefix("http://").ok_or_else(unknown)?.to_owned();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let faults = Mutex::new((Vec::new(), SplitMix64::new(seed)));
        let schedule = Arc::new(FaultSchedule { faults, counts: Default::default(), connections: AtomicU64::new(0) });
        let running = tokio::spawn(accept(listener, server, schedule.clone()));
        Ok(Self { address, schedule, running })
    }

    /// `http://127.0.0.1:<port>`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on these faults happen, and no others, also to connections that are open.
    pub fn set_faults(&self, faults: impl IntoIterator<Item = (TcpFault, f64)>) {
        self.schedule.faults().0 = faults.into_iter().collect();
    }

    /// How often each fault happened.
    pub fn counts(&self) -> Vec<(TcpFault, u64)> {
        let counts = self.schedule.counts.iter().map(|count| count.load(Relaxed));
        TcpFault::ALL.into_iter().zip(counts).collect()
    }

    /// How many connections were opened.
    pub fn connections(&self) -> u64 {
        self.schedule.connections.load(Relaxed)
    }
}

impl Drop for TcpProxy {
    fn drop(&mut self) {
        self.running.abort();
    }
}

async fn accept(listener: TcpListener, server: String, schedule: Arc<FaultSchedule>) {
    // Dropped with this task, and its tasks with it.
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        schedule.connections.fetch_add(1, Relaxed);
        connections.spawn(connect(client, server.clone(), schedule.clone()));
        while connections.try_join_next().is_some() {}
    }
}

/// Forwards the bytes of one connection, until it ends or breaks.
async fn connect(mut client: TcpStream, server: String, schedule: Arc<FaultSchedule>) {
    // The client sees any failure here as a broken connection.
    if let Some(fault) = schedule.draw(|fault| matches!(fault, TcpFault::Refuse | TcpFault::Hang)) {
        if fault == TcpFault::Hang {
            sleep(schedule.up_to(HANG_MAX)).await;
        }
        let _ = client.set_zero_linger();
        return;
    }
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    // Borrowed halves: those that are owned end what they write in order when they are dropped.
    let ((client_reads, client_writes), (server_reads, server_writes)) = (client.split(), server.split());
    let up = pass_on(client_reads, server_writes, false, &schedule);
    let down = pass_on(server_reads, client_writes, true, &schedule);
    // The upper half goes on by itself if the client leaves: what it sent is sent. If one of them breaks, both do.
    let ended = futures::future::try_join(up, down).await;
    if ended.is_err_and(|error| error.kind() == BROKEN) {
        let _ = (client.set_zero_linger(), server.set_zero_linger());
    }
}

/// The error that ends a connection after a fault.
const BROKEN: io::ErrorKind = io::ErrorKind::ConnectionAborted;

/// Passes bytes on in one direction. What a fault breaks is [`BROKEN`].
async fn pass_on(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    is_answer: bool,
    schedule: &FaultSchedule,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let count = match from.read(&mut piece).await {
            // A client that was killed: what it sent before goes on.
            Ok(0) | Err(_) => return to.shutdown().await,
            Ok(count) => count,
        };
        let may_be = |fault| fault != TcpFault::Refuse && (is_answer || fault != TcpFault::LoseAnswer);
        let broken = || Err(io::Error::new(BROKEN, "a fault of the proxy"));
        match schedule.draw(may_be) {
            Some(TcpFault::Reset) => {
                to.write_all(&piece[..count / 2]).await?;
                return broken();
            }
            Some(TcpFault::CutShort) => {
                to.write_all(&piece[..count / 2]).await?;
                to.shutdown().await?;
                // The answer to half a request is dropped: the client sees an orderly end as well.
                return if is_answer { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
            Some(TcpFault::LoseAnswer) => return broken(),
            Some(TcpFault::Drop) => {
                sleep(schedule.up_to(Duration::from_secs(3))).await;
                return broken();
            }
            Some(TcpFault::Hang) => {
                sleep(schedule.up_to(HANG_MAX)).await;
                return broken();
            }
            Some(TcpFault::Stall) => sleep(schedule.up_to(Duration::from_secs(3))).await,
            Some(TcpFault::Delay) => sleep(schedule.up_to(Duration::from_millis(100))).await,
            Some(TcpFault::Refuse) | None => {}
        }
        to.write_all(&piece[..count]).await?;
    }
}

#[cfg(test)]
mod tests {
    use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, path::Path};

    use super::*;
    use crate::S3Server;

    #[tokio::test]
    async fn what_passes_in_calm_weather_is_what_was_sent() {
        let server = S3Server::start().unwrap();
        let proxy = TcpProxy::start(&server.endpoint(), 7).await.unwrap();
        let store = server.store_at(&proxy.endpoint());
        let path = Path::from("folder/object");
        let content: Vec<u8> = (0..300_000u32).map(|byte| (byte % 251) as u8).collect();
        store.put_opts(&path, content.clone().into(), PutMode::Create.into()).await.unwrap();
        assert_eq!(store.get(&path).await.unwrap().bytes().await.unwrap(), content);
        let again = store.put_opts(&path, "other".into(), PutMode::Create.into()).await;
        assert!(matches!(again, Err(Error::AlreadyExists { .. })), "{again:?}");
        assert!(proxy.counts().iter().all(|(_, count)| *count == 0) && proxy.connections() > 0);
    }

    /// The fate of a question and its answer, of eight bytes each.
    struct Talk {
        /// Of the question, by the server; `None` if it was never connected.
        heard: Option<Vec<u8>>,
        /// Of the answer, by the client.
        got: Vec<u8>,
        /// Whether the client saw an orderly end.
        orderly: bool,
        /// How long it took, in virtual time: what the proxy waited on purpose.
        took: Duration,
    }

    /// Asks through a proxy whose every piece meets the fault, from the question or only from the answer on.
    async fn talk(fault: TcpFault, from_answer: bool) -> Talk {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let proxy = Arc::new(TcpProxy::start(&endpoint, 7).await.unwrap());
        let set = move |proxy: &TcpProxy, at_answer| {
            if at_answer == from_answer {
                proxy.set_faults([(fault, 1.0)]);
            }
        };
        set(&proxy, false);
        let begun = tokio::time::Instant::now();
        let server = tokio::spawn({
            let proxy = proxy.clone();
            async move {
                let (connection, _) = listener.accept().await.unwrap();
                let mut heard = Vec::new();
                let mut question = connection.take(8);
                let _ = question.read_to_end(&mut heard).await;
                set(&proxy, true);
                if heard.len() == 8 {
                    let _ = question.into_inner().write_all(b"answered").await;
                }
                heard
            }
        });
        let mut client = TcpStream::connect(proxy.address).await.unwrap();
        let _ = client.write_all(b"question").await;
        let mut got = Vec::new();
        let orderly = client.read_to_end(&mut got).await.is_ok();
        let took = begun.elapsed();
        let connected = !matches!(fault, TcpFault::Refuse | TcpFault::Hang) || from_answer;
        let heard = if connected { Some(server.await.unwrap()) } else { None };
        Talk { heard, got, orderly, took }
    }

    #[tokio::test(start_paused = true)]
    async fn each_fault_does_what_it_says() {
        let all = Some(b"question".to_vec());
        let half = Some(b"ques".to_vec());
        for fault in TcpFault::ALL {
            let first = talk(fault, false).await;
            let later = talk(fault, true).await;
            // A connection that is open is refused no more, and an answer meets what comes up while it is under way.
            assert_eq!(later.heard, all, "{fault:?}");
            let late = |talk: &Talk, most| talk.took > Duration::ZERO && talk.took <= Duration::from_millis(most);
            match fault {
                TcpFault::Refuse => {
                    assert!(first.heard.is_none() && first.got.is_empty() && !first.orderly);
                    assert_eq!((&later.got[..], later.orderly), (&b"answered"[..], true));
                }
                // Bytes in flight at the reset may be lost.
                TcpFault::Reset => {
                    assert!(first.heard.unwrap().len() <= 4 && first.got.is_empty());
                    assert!(later.got.len() <= 4 && !later.orderly);
                }
                TcpFault::CutShort => {
                    assert_eq!((first.heard, &first.got[..], first.orderly), (half.clone(), &b""[..], true));
                    assert_eq!((&later.got[..], later.orderly), (&b"answ"[..], true));
                }
                TcpFault::LoseAnswer => {
                    assert_eq!(first.heard, all);
                    assert!([first, later].iter().all(|talk| talk.got.is_empty() && !talk.orderly));
                }
                TcpFault::Stall | TcpFault::Delay => {
                    assert_eq!(first.heard, all);
                    let most = if fault == TcpFault::Stall { 3_000 } else { 100 };
                    assert!(late(&first, 2 * most) && late(&later, most), "{fault:?}: {:?}", later.took);
                    assert!([first, later].iter().all(|talk| talk.got == b"answered" && talk.orderly));
                }
                TcpFault::Drop | TcpFault::Hang => {
                    assert_eq!(first.heard, (fault == TcpFault::Drop).then(Vec::new));
                    let most = if fault == TcpFault::Drop { 3_000 } else { 60_000 };
                    assert!(late(&first, most) && late(&later, most), "{:?}", later.took);
                    assert!([first, later].iter().all(|talk| talk.got.is_empty() && !talk.orderly));
                }
            }
        }
    }

    /// A client with its retries gets over each fault, and the fault has happened.
    #[tokio::test]
    async fn a_clients_own_retries_get_over_each_fault() {
        let server = S3Server::start().unwrap();
        let proxy = TcpProxy::start(&server.endpoint(), 7).await.unwrap();
        let content = vec![3; 200_000];
        server.store().put(&Path::from("object"), content.clone().into()).await.unwrap();
        // A hang is for a client's own time-out, half a minute, to get over.
        for fault in TcpFault::ALL.into_iter().filter(|fault| *fault != TcpFault::Hang) {
            proxy.set_faults([(fault, 1.0)]);
            // A client of its own, so that no connection is open that Refuse would not meet.
            let store = server.store_at(&proxy.endpoint());
            let read = tokio::spawn(async move { store.get(&Path::from("object")).await?.bytes().await });
            let happened = || proxy.counts().iter().any(|(kind, count)| *kind == fault && *count > 0);
            while !happened() {
                sleep(Duration::from_millis(2)).await;
            }
            proxy.set_faults([]);
            assert_eq!(read.await.unwrap().unwrap(), content, "{fault:?}");
        }
    }
}
