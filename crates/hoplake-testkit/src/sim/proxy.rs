//! A simulated service before the endpoint of a real S3 server.
//!
//! **How it works.** An HTTP server on a loopback port that passes each request on as it is and holds the
//! answer back for as long as the [`Sim`] decides, in real time. Client and server stay real: connections,
//! signatures, retries and bytes are theirs.
//!
//! **Signatures cover the host.** A client signs for the proxy's address; the header goes on unchanged, and
//! the server behind checks the signature against it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use hoplake_storage::StoreProfile;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, RANGE, TRANSFER_ENCODING};
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode, http};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use super::errors::SLOW_DOWN;
use super::service::Sim;
use crate::RequestKind;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;
type Body = UnsyncBoxBody<Bytes, Failure>;

/// A proxy that delays and rejects requests by a [`StoreProfile`]. Ends when it is dropped.
///
/// ```no_run
/// use hoplake_storage::StoreProfile;
/// use hoplake_testkit::{S3Server, SimProxy};
///
/// # async fn example() -> std::io::Result<()> {
/// let server = S3Server::start()?;
/// let proxy = SimProxy::start(&server.endpoint(), StoreProfile::s3_express(), 7).await?;
/// let store = server.store_at(&proxy.endpoint());
/// # drop(store);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SimProxy {
    address: SocketAddr,
    sim: Sim,
    running: JoinHandle<()>,
}

impl SimProxy {
    /// Starts a proxy before the server at `endpoint` (`http://host:port`), on the current runtime.
    ///
    /// # Errors
    /// If there is no free port, or the endpoint is of another form.
    pub async fn start(endpoint: &str, profile: impl Into<Arc<StoreProfile>>, seed: u64) -> io::Result<Self> {
        let Some(server) = endpoint.strip_prefix("http://") else {
            return Err(io::Error::other(format!("{endpoint} does not begin with http://")));
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let sim = Sim::new(profile, seed);
        let running = tokio::spawn(accept(listener, server.trim_end_matches('/').into(), sim.clone()));
        Ok(Self { address, sim, running })
    }

    /// `http://127.0.0.1:<port>`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The service: its settings and its counts.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }
}

impl Drop for SimProxy {
    fn drop(&mut self) {
        self.running.abort();
    }
}

async fn accept(listener: TcpListener, server: Arc<str>, sim: Sim) {
    // Ends its connections when it is dropped.
    let mut connections = JoinSet::new();
    while let Ok((connection, _)) = listener.accept().await {
        let server = server.clone();
        let sim = sim.clone();
        let serve = service_fn(move |request| answer(request, server.clone(), sim.clone()));
        let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(connection), serve);
        connections.spawn(async move {
            // A connection that breaks is the client's to notice.
            let _ = connection.await;
        });
        while connections.try_join_next().is_some() {}
    }
}

/// The kind and target of a request, as far as the protocol shows them without bodies.
pub(crate) fn kind_of(method: &Method, query: &str) -> RequestKind {
    match *method {
        Method::GET if query.split('&').any(|part| part.starts_with("list-type=")) => RequestKind::List,
        Method::GET => RequestKind::Get,
        Method::HEAD => RequestKind::Head,
        Method::DELETE => RequestKind::Delete,
        _ if query.split('&').any(|part| part == "delete" || part == "delete=") => RequestKind::Delete,
        _ => RequestKind::Put,
    }
}

async fn answer(request: http::Request<Incoming>, server: Arc<str>, sim: Sim) -> Result<Response<Body>, Failure> {
    let query = request.uri().query().unwrap_or_default().to_owned();
    let kind = kind_of(request.method(), &query);
    let range = request.headers().get(RANGE).and_then(|range| range.to_str().ok()).unwrap_or_default();
    let mut simulated = sim.send(kind, request.uri().path(), &format!("{query} {range}"));
    let (head, body) = request.into_parts();
    let content = body.collect().await?.to_bytes();
    simulated.upload(content.len() as u64).await;
    if simulated.first_byte().await.is_err() {
        return Ok(rejection());
    }
    let (head, content) = pass_on(head, content, &server).await?.into_parts();
    let mut body = if head.status.is_success() && kind == RequestKind::Get {
        let pieces = simulated.download(content).map(|piece| Ok(Frame::data(piece?)));
        Response::new(BodyExt::boxed_unsync(StreamBody::new(pieces)))
    } else {
        simulated.end(Ok(())).await?;
        Response::new(Full::new(content).map_err(Failure::from).boxed_unsync())
    };
    *body.status_mut() = head.status;
    *body.headers_mut() = head.headers;
    Ok(body)
}

/// Sends a request to the server, over a connection of its own, and returns the whole answer.
pub(crate) async fn pass_on(
    mut head: http::request::Parts,
    content: Bytes,
    server: &str,
) -> Result<Response<Bytes>, Failure> {
    let connection = TcpStream::connect(server).await?;
    connection.set_nodelay(true)?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(connection)).await?;
    // Ends when the sender is dropped and the answer is read.
    tokio::spawn(connection);
    head.headers.remove(CONNECTION);
    let request = http::Request::from_parts(head, Full::new(content));
    let (mut head, body) = sender.send_request(request).await?.into_parts();
    let content = body.collect().await?.to_bytes();
    head.headers.remove(CONNECTION);
    if head.headers.remove(TRANSFER_ENCODING).is_some() {
        head.headers.insert(CONTENT_LENGTH, content.len().into());
    }
    Ok(Response::from_parts(head, content))
}

fn rejection() -> Response<Body> {
    let body = Full::new(Bytes::from_static(SLOW_DOWN.as_bytes())).map_err(Failure::from).boxed_unsync();
    let response = Response::builder().status(StatusCode::SERVICE_UNAVAILABLE).header(CONTENT_TYPE, "application/xml");
    response.body(body).expect("status and header are valid")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use futures::TryStreamExt;
    use hoplake_storage::StoreProfile;
    use object_store::path::Path;
    use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode};

    use crate::{Fault, FaultKind, RequestKind, S3Server, SimProxy};

    /// Real time, so few requests: what is asserted of it is only that the store's own minimum passed.
    #[tokio::test]
    async fn a_real_client_and_a_real_server_meet_through_it() {
        let server = S3Server::start().unwrap();
        let profile = StoreProfile::s3_express();
        let floor = Duration::from_secs_f64(profile.get.floor_ms / 1e3) - Duration::from_millis(1);
        let proxy = SimProxy::start(&server.endpoint(), profile, 7).await.unwrap();
        let store = server.store_at(&proxy.endpoint());
        let path = Path::from("folder/some object");
        let content: Vec<u8> = (0..300_000u32).map(|byte| (byte % 251) as u8).collect();

        store.put_opts(&path, content.clone().into(), PutMode::Create.into()).await.unwrap();
        let again = store.put_opts(&path, "other".into(), PutMode::Create.into()).await;
        assert!(matches!(again, Err(Error::AlreadyExists { .. })), "{again:?}");
        let begun = Instant::now();
        assert_eq!(store.get_range(&path, 70_000..200_000).await.unwrap(), content[70_000..200_000]);
        assert!(begun.elapsed() >= floor, "{:?}", begun.elapsed());
        assert_eq!(store.get(&path).await.unwrap().bytes().await.unwrap(), content);
        assert_eq!(store.head(&path).await.unwrap().size, 300_000);
        assert!(matches!(store.get(&Path::from("none")).await, Err(Error::NotFound { .. })));
        let listed: Vec<_> = store.list(None).try_collect().await.unwrap();
        assert_eq!((listed.len(), &listed[0].location), (1, &path));
        store.delete(&path).await.unwrap();
        assert!(matches!(server.store().head(&path).await, Err(Error::NotFound { .. })), "it is gone behind the proxy");

        let counts = proxy.sim().counts();
        let requests = counts.requests;
        assert_eq!((requests.put, requests.get, requests.head, requests.list, requests.delete), (2, 3, 1, 1, 1));
        assert_eq!((counts.bytes_read, counts.bytes_written), (430_000, 300_005));
        assert!(proxy.sim().usd() > 0.0);
    }

    #[tokio::test]
    async fn a_clients_own_retries_get_over_what_the_proxy_rejects_and_breaks() {
        let server = S3Server::start().unwrap();
        let proxy = SimProxy::start(&server.endpoint(), StoreProfile::s3_express(), 7).await.unwrap();
        let store = server.store_at(&proxy.endpoint());
        let path = Path::from("object");
        store.put(&path, vec![3; 100_000].into()).await.unwrap();
        for kind in [FaultKind::Reject, FaultKind::Reset { after_bytes: 1_000 }] {
            proxy.sim().reset_counts();
            proxy.sim().set_faults([Fault::new(kind).on(RequestKind::Get).first_attempts(1)]);
            // Another range each time: the first attempt at it fails, the second does not.
            let end = if kind == FaultKind::Reject { 90_000 } else { 99_000 };
            assert_eq!(store.get_range(&path, 0..end).await.unwrap(), vec![3; end as usize]);
            let counts = proxy.sim().counts();
            assert!(counts.requests.get >= 2, "{kind:?}: {counts:?}");
            assert_eq!(counts.rejected.get, u64::from(kind == FaultKind::Reject));
        }
    }
}
