//! One WebSocket: what it reads, what it answers, and when it ends.
//!
//! Its task reads messages and writes responses. Each request is a task on the threads of queries, and its responses wait in a channel of
//! one: a driver that does not read stops its queries. With too many requests in flight nothing more is read. When the task ends, in any
//! way, all its requests are dropped and its sessions are rolled back.

use std::{
    ops::ControlFlow::{self, Break, Continue},
    sync::Arc,
    time::{Duration, Instant},
};

use axum::body::Bytes;
use futures::{FutureExt, SinkExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use hoplake::{
    MemoryHold,
    gremlin::{DECODED_FACTOR, decode, message::Request},
};
use hoplake_doors::{Connection, Exchange};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::{
    sync::mpsc,
    task::JoinError,
    time::{Interval, MissedTickBehavior, interval, sleep, timeout},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message, Utf8Bytes,
        protocol::{
            CloseFrame, Role, WebSocketConfig,
            frame::{
                Frame,
                coding::{CloseCode, Data, OpCode},
            },
        },
    },
};
use tracing::Instrument;
use uuid::Uuid;

use super::{
    answers::{Outgoing, Queue, ResponseSink, bare, malformed, outgoing, rejected, rejection},
    auth,
    requests::{Encoding, Op, head, query_of, read_binary, read_text, session_of},
    sessions::{SessionLimit, Sessions, Turn},
    wire::{Watch, Watched},
};
use crate::{
    calls::{Call, GremlinOptions, GremlinSink, RequestContext, Service, read_script, run_gremlin},
    failure::{Failure, Reason},
};

/// The name of the protocol in the log and in counters.
const PROTOCOL: &str = "gremlin";
/// The header of an upgrade with the trace that its requests continue.
pub(super) const TRACE: &str = "traceparent";
/// What one read of the socket takes at most, beyond a message whose length is known.
const READ_BUFFER_BYTES: usize = 4 << 10;
/// Longer messages leave in fragments of this size: the library copies each into a buffer that it keeps.
const FRAGMENT_BYTES: usize = 16 << 10;
/// What may wait in that buffer: a fragment, and the pong or the close frame before it, each with its header. More never does,
/// since nothing is read from a client before all that was written for it has left.
const WRITE_BUFFER_BYTES: usize = FRAGMENT_BYTES + 1_024;
/// Messages of this size are decoded on the threads of queries: it takes longer than handing them over.
const LARGE_BYTES: usize = 16 << 10;
/// How often a connection looks at the clock, at the most seldom.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(1);
/// How long the answer to a wrong password waits.
const WRONG_PASSWORD: Duration = Duration::from_millis(100);
/// How long the goodbye may take.
const GOODBYE: Duration = Duration::from_millis(500);

type Socket = WebSocketStream<Watched<TokioIo<Upgraded>>>;

/// A request that was read, and the memory that it takes.
struct Received {
    request: Request,
    encoding: Encoding,
    hold: Option<MemoryHold>,
}

/// What the upgrade of a connection says of its client.
pub(super) struct Client {
    /// The trace that each request continues.
    pub(super) trace: Option<String>,
    /// Whether it had the token. Else an authentication is to follow.
    pub(super) is_authenticated: bool,
}

/// How a request ended, for those that break off.
type Ended = (Uuid, Encoding, Result<(), JoinError>);

/// A message that was read, with its buffer.
type Buffer = (Bytes, Option<MemoryHold>);

/// The end of a connection, and the close frame that its client gets.
type Goodbye = Option<(CloseCode, &'static str)>;

/// A connection.
pub(super) struct Conversation {
    /// Before the channel, so that they are dropped first: they end with the connection, and do not find it closed.
    running: FuturesUnordered<BoxFuture<'static, Ended>>,
    service: Arc<Service>,
    connection: Arc<Connection>,
    client: Client,
    session_limit: SessionLimit,
    /// Until when the client has to authenticate.
    authenticate_until: Instant,
    socket: Socket,
    watch: Arc<Watch>,
    outlet: mpsc::Sender<Outgoing>,
    inlet: mpsc::Receiver<Outgoing>,
    /// Requests that wait for the token.
    waiting: Vec<Received>,
    waiting_bytes: usize,
    sessions: Sessions,
    /// The buffer of a large message is let go when the library has begun another one, and not before: else it would keep it.
    last: Option<Buffer>,
    pinged: Instant,
    looks: Interval,
}

impl Conversation {
    pub(super) async fn begin(
        service: &Arc<Service>,
        session_limit: &SessionLimit,
        connection: Arc<Connection>,
        client: Client,
        upgraded: Upgraded,
    ) -> Self {
        let settings = &service.settings;
        let watch = Watch::new(&service.memory);
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(0)
            .max_write_buffer_size(WRITE_BUFFER_BYTES)
            .max_message_size(Some(settings.message_bytes_max))
            .max_frame_size(Some(settings.message_bytes_max));
        let stream = Watched::new(TokioIo::new(upgraded), watch.clone());
        let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
        let (outlet, inlet) = mpsc::channel(1);
        let now = Instant::now();
        let look_every =
            settings.header_timeout_ms.min(settings.gremlin.session_idle_ms).min(settings.body_timeout_ms) / 4;
        let look_every = Duration::from_millis(look_every).clamp(Duration::from_millis(5), LOOK_EVERY_MAX);
        let mut looks = interval(look_every);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            client,
            session_limit: session_limit.clone(),
            authenticate_until: now + Duration::from_millis(settings.header_timeout_ms),
            service: service.clone(),
            connection,
            socket,
            watch,
            outlet,
            inlet,
            running: FuturesUnordered::new(),
            waiting: Vec::new(),
            waiting_bytes: 0,
            sessions: Sessions::default(),
            last: None,
            pinged: now,
            looks,
        }
    }

    /// Reads and answers until the client leaves, or is to leave.
    pub(super) async fn run(mut self) {
        let goodbye = loop {
            if let Break(goodbye) = self.step().await {
                break goodbye;
            }
        };
        let Some((code, reason)) = goodbye else { return };
        tracing::debug!(reason, "connection of Gremlin closed");
        let close = Message::Close(Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) }));
        // The client may have left, and does not have to read it.
        let _ = timeout(GOODBYE, async {
            self.socket.send(close).await?;
            // Its answer: with unread bytes the system would reset the connection, and the client might not see the reason.
            while self.socket.next().await.is_some_and(|message| message.is_ok()) {}
            Ok::<_, Error>(())
        })
        .await;
    }

    /// Waits for the next event and handles it. Breaks with the close frame at the end.
    async fn step(&mut self) -> ControlFlow<Goodbye> {
        let settings = &self.service.settings;
        let is_draining = self.service.lifecycle.is_draining();
        if is_draining && self.running.is_empty() && self.inlet.is_empty() {
            return Break(Some((CloseCode::Away, "the server is shutting down")));
        }
        let reads = !is_draining && self.running.len() < settings.gremlin.requests_max;
        let lifecycle = self.service.lifecycle.clone();
        tokio::select! {
            message = self.socket.next(), if reads => self.handle(message).await,
            Some(outgoing) = self.inlet.recv() => self.send(outgoing).await,
            Some(ended) = self.running.next(), if !self.running.is_empty() => self.ended(ended).await,
            () = lifecycle.drained(), if !is_draining => Continue(()),
            _ = self.looks.tick() => self.check_clock().await,
        }
    }

    async fn handle(&mut self, message: Option<Result<Message, Error>>) -> ControlFlow<Goodbye> {
        match message {
            Some(Ok(Message::Binary(bytes))) => self.read(bytes, false).await,
            Some(Ok(Message::Text(text))) => self.read(text.into(), true).await,
            Some(Ok(Message::Ping(payload))) => {
                self.handle_control(payload.len());
                // The library has the pong ready, and would keep those of all pings while the client does not read.
                self.flush().await
            }
            Some(Ok(Message::Pong(payload))) => {
                self.handle_control(payload.len());
                Continue(())
            }
            Some(Ok(Message::Close(_))) => {
                // The library has the answer ready.
                let _ = timeout(GOODBYE, self.socket.flush()).await;
                Break(None)
            }
            Some(Ok(Message::Frame(_))) => Continue(()),
            Some(Err(Error::Capacity(_))) => Break(Some((CloseCode::Size, "the message is too large"))),
            Some(Err(Error::Utf8(_))) => Break(Some((CloseCode::Invalid, "the text is not UTF-8"))),
            Some(Err(Error::Protocol(_))) => Break(Some((CloseCode::Protocol, "this is not WebSocket"))),
            Some(Err(_)) if self.watch.is_rejected() => {
                Break(Some((CloseCode::Again, "the server has no memory for the message now")))
            }
            Some(Err(_)) | None => Break(None),
        }
    }

    /// A ping or a pong has arrived.
    fn handle_control(&self, payload: usize) {
        self.watch.control(payload);
        if self.client.is_authenticated {
            self.connection.mark_alive();
        }
    }

    /// Reads a message and begins what it asks for.
    async fn read(&mut self, bytes: Bytes, is_text: bool) -> ControlFlow<Goodbye> {
        let arrived = self.watch.complete();
        // From now on the connection is busy, and does not give way to another.
        let exchange = self.connection.begin_exchange();
        let decoded = (bytes.len() as u64).saturating_mul(DECODED_FACTOR);
        let hold = match self.service.memory.hold(decoded) {
            Ok(hold) => hold,
            Err(full) => {
                // Nothing is decoded but who asks.
                let own = bytes.clone();
                let asking = self.service.workers.begin(async move { decode(own.len(), || head(&own, is_text)) });
                let answer = match asking.await {
                    Ok(Ok((id, encoding))) => outgoing(&rejection(id, &Failure::no_memory(full, decoded)), encoding),
                    Ok(Err(wrong)) => malformed(&wrong),
                    Err(error) => return decoding_broke_off(&error),
                };
                self.last = Some((bytes, arrived));
                return self.reply(answer).await;
            }
        };
        let len = bytes.len();
        let read = move |message: &Bytes| if is_text { read_text(message) } else { read_binary(message) };
        let outcome = if len < LARGE_BYTES {
            Ok(read(&bytes))
        } else {
            let own = bytes.clone();
            let outcome = self.service.workers.begin(async move { decode(own.len(), || read(&own)) }).await;
            self.last = Some((bytes, arrived));
            outcome
        };
        let (request, encoding) = match outcome {
            Ok(Ok(read)) => read,
            Ok(Err(wrong)) => return self.reply(malformed(&wrong)).await,
            Err(error) => return decoding_broke_off(&error),
        };
        self.dispatch(Received { request, encoding, hold: Some(hold) }, len, exchange).await
    }

    /// Begins what a request asks for, or asks for the token first.
    async fn dispatch(&mut self, received: Received, bytes: usize, exchange: Arc<Exchange>) -> ControlFlow<Goodbye> {
        let Received { request, encoding, .. } = &received;
        let id = request.id;
        let encoding = *encoding;
        let (op, in_session) = match Op::of(request) {
            Ok(op) => op,
            Err((status, why)) => return self.reply(rejected(Some(id), encoding, status, &why)).await,
        };
        if op == Op::Authentication {
            return self.authenticate(received).await;
        }
        if self.client.is_authenticated {
            self.start(received, op, in_session, exchange);
            return Continue(());
        }
        let settings = &self.service.settings;
        self.waiting_bytes += bytes;
        if self.waiting.len() >= settings.gremlin.requests_max || self.waiting_bytes > settings.message_bytes_max {
            return Break(Some((CloseCode::Policy, "authenticate before you send more")));
        }
        let is_first = self.waiting.is_empty();
        self.waiting.push(received);
        // One challenge: the requests after the first wait for its answer, too.
        if is_first { self.reply(bare(id, encoding, 407)).await } else { Continue(()) }
    }

    /// Takes the token, and then answers what waited for it.
    async fn authenticate(&mut self, received: Received) -> ControlFlow<Goodbye> {
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        let token = self.service.settings.token.as_deref();
        self.client.is_authenticated |= auth::admits(&received.request, token);
        if !self.client.is_authenticated {
            let is_last = self.connection.count_rejected_token();
            let failure = "the password is not the token of this server";
            self.log_rejected_token(failure);
            // A client that guesses on many connections at once waits on each.
            sleep(WRONG_PASSWORD).await;
            let own = (received.request.id, received.encoding);
            let mut rejected_ones: Vec<_> = waiting.iter().map(|one| (one.request.id, one.encoding)).collect();
            if !rejected_ones.contains(&own) {
                rejected_ones.push(own);
            }
            for (id, encoding) in rejected_ones {
                self.reply(rejected(Some(id), encoding, 401, failure)).await?;
            }
            return match is_last {
                true => Break(Some((CloseCode::Policy, "too many wrong passwords"))),
                false => Continue(()),
            };
        }
        if waiting.is_empty() {
            return self.reply(bare(received.request.id, received.encoding, 204)).await;
        }
        for one in waiting {
            // Checked when it arrived.
            if let Ok((op, in_session)) = Op::of(&one.request) {
                self.start(one, op, in_session, self.connection.begin_exchange());
            }
        }
        Continue(())
    }

    /// Counts and logs a wrong password.
    fn log_rejected_token(&self, message: &str) {
        let name = Op::Authentication.call_name();
        let context = RequestContext::new(PROTOCOL, name, None, Arc::default(), |_| None);
        let mut call = Call::begin(&self.service, context);
        call.finish::<()>(&Err(Failure::new(Reason::Unauthenticated, message)));
    }

    /// Begins the task of a request.
    fn start(&mut self, received: Received, op: Op, in_session: bool, exchange: Arc<Exchange>) {
        let id = received.request.id;
        let encoding = received.encoding;
        let turn = in_session.then(|| self.turn(&received.request, op)).transpose();
        let trace = |name: &str| self.client.trace.as_deref().filter(|_| name == TRACE);
        let context = RequestContext {
            is_authenticated: self.client.is_authenticated,
            ..RequestContext::new(PROTOCOL, op.call_name(), Some(&id.to_string()), exchange.clone(), trace)
        };
        let call = Call::begin(&self.service, context);
        let batch = self.service.settings.gremlin.batch_size;
        let answer = ResponseSink {
            id,
            encoding,
            options: GremlinOptions { batch, is_bulked: op == Op::Bytecode, ..GremlinOptions::default() },
            memory: call.memory.clone(),
            exchange,
            outlet: self.outlet.clone(),
            queue: Queue::default(),
            rest: None,
        };
        let task = self.service.workers.begin(respond(call, answer, received, op, turn.map(Option::flatten)));
        self.running.push(async move { (id, encoding, task.await) }.boxed());
    }

    /// The turn of a request in its session; `None` if it ends one that is not there.
    fn turn(&mut self, request: &Request, op: Op) -> Result<Option<Turn>, Failure> {
        let name = session_of(request)?;
        match op {
            Op::Close => Ok(self.sessions.close(&name)),
            _ => self.sessions.enter(&name, &self.session_limit).map(Some),
        }
    }

    async fn ended(&mut self, (id, encoding, outcome): Ended) -> ControlFlow<Goodbye> {
        match outcome {
            Ok(()) => Continue(()),
            // It panicked. Its driver still gets a response, and the connection stays open.
            Err(error) => {
                let failure = Failure::broken_off("the request", &error);
                self.reply(outgoing(&rejection(Some(id), &failure), encoding)).await
            }
        }
    }

    async fn reply(&mut self, outgoing: Option<Outgoing>) -> ControlFlow<Goodbye> {
        match outgoing {
            Some(outgoing) => self.send(outgoing).await,
            None => Continue(()),
        }
    }

    /// Sends a message, whose memory is given back when the socket has taken it.
    async fn send(&mut self, outgoing: Outgoing) -> ControlFlow<Goodbye> {
        let mut bytes = outgoing.bytes.clone();
        let mut opcode = OpCode::Data(if outgoing.is_text { Data::Text } else { Data::Binary });
        loop {
            let fragment = bytes.split_to(bytes.len().min(FRAGMENT_BYTES));
            let frame = Frame::message(fragment, opcode, bytes.is_empty());
            self.send_frame(Message::Frame(frame)).await?;
            if bytes.is_empty() {
                return Continue(());
            }
            opcode = OpCode::Data(Data::Continue);
        }
    }

    /// Sends a frame, unless the client takes nothing of it for too long.
    async fn send_frame(&mut self, frame: Message) -> ControlFlow<Goodbye> {
        let patience = self.patience();
        while_it_reads(patience, &self.watch, self.socket.send(frame)).await
    }

    /// Waits until all that was written has left, unless the client takes nothing of it for too long.
    async fn flush(&mut self) -> ControlFlow<Goodbye> {
        let patience = self.patience();
        while_it_reads(patience, &self.watch, self.socket.flush()).await
    }

    fn patience(&self) -> Duration {
        Duration::from_millis(self.service.settings.send_timeout_ms)
    }

    /// Looks at the clock.
    async fn check_clock(&mut self) -> ControlFlow<Goodbye> {
        let settings = &self.service.settings;
        let now = Instant::now();
        self.last = None;
        self.sessions.close_idle(Duration::from_millis(settings.gremlin.session_idle_ms));
        if !self.client.is_authenticated && now >= self.authenticate_until {
            return Break(Some((CloseCode::Policy, "the token was not brought in time")));
        }
        let is_reading = self.running.len() < settings.gremlin.requests_max;
        if is_reading && self.watch.is_late(Duration::from_millis(settings.body_timeout_ms)) {
            return Break(Some((CloseCode::Policy, "the message did not arrive in time")));
        }
        let ping = Duration::from_millis(settings.gremlin.ping_ms);
        if self.client.is_authenticated && !ping.is_zero() && now.duration_since(self.pinged) >= ping {
            self.pinged = now;
            return self.send_frame(Message::Ping(Bytes::new())).await;
        }
        Continue(())
    }
}

/// Decoding panicked: the id of the request is not known.
fn decoding_broke_off(error: &JoinError) -> ControlFlow<Goodbye> {
    Failure::broken_off("the decoding of a request", error);
    Break(Some((CloseCode::Error, "a bug in Hoplake")))
}

/// Waits for something to leave, as long as the client takes some of it within `patience`. Until then nothing more is read from the
/// client, so what waits for it does not grow.
async fn while_it_reads(
    patience: Duration,
    watch: &Watch,
    leaving: impl Future<Output = Result<(), Error>>,
) -> ControlFlow<Goodbye> {
    let mut leaving = std::pin::pin!(leaving);
    loop {
        let before = watch.written();
        match timeout(patience, leaving.as_mut()).await {
            Ok(Ok(())) => return Continue(()),
            Ok(Err(_)) => return Break(None),
            Err(_) if watch.written() == before => {
                tracing::debug!("connection of Gremlin closed: its client does not read");
                return Break(None);
            }
            Err(_) => {}
        }
    }
}

/// Answers a request.
async fn respond(
    mut call: Call,
    mut answer: ResponseSink,
    received: Received,
    op: Op,
    turn: Result<Option<Turn>, Failure>,
) {
    let span = call.span.clone();
    let outcome = run(&mut call, &mut answer, received, op, turn).instrument(span).await;
    let outcome = outcome.and_then(|()| answer.prepare());
    // Before the last message: a client that has it may leave, and was answered. Not within the deadline: what was changed is
    // committed. A client that does not read loses its connection.
    call.finish(&outcome);
    match &outcome {
        Ok(()) => answer.finish().await,
        Err(failure) => answer.fail(failure).await,
    }
}

/// Runs a request. The last messages are left to send.
async fn run(
    call: &mut Call,
    answer: &mut ResponseSink,
    received: Received,
    op: Op,
    turn: Result<Option<Turn>, Failure>,
) -> Result<(), Failure> {
    let Received { request, hold, .. } = received;
    call.check_token()?;
    let mut turn = turn?;
    if op == Op::Close {
        if let Some(turn) = &mut turn {
            // What it has not committed is gone.
            *call.bounded(async { Ok(turn.wait().await) }).await? = None;
        }
        return Ok(());
    }
    let query = query_of(request, op, answer.options, |text, limits| read_script(call, text, limits))?;
    answer.options = query.options;
    call.limit_time(query.limits.time_ms);
    match &mut turn {
        Some(turn) => {
            call.limit_time(call.service.settings.limits.time_ms);
            let mut work = call.bounded(async { Ok(turn.wait().await) }).await?;
            run_gremlin(call, &query, Some(&mut work), answer).await?;
        }
        None => drop(run_gremlin(call, &query, None, answer).await?),
    }
    drop(hold);
    Ok(())
}
