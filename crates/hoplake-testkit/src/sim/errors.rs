//! The errors that object_store's S3 client gives its caller.
//!
//! Code that retries looks at the type and message of an error. The client's own type of error has no public
//! constructor, so a real client makes them here, over a connection that answers everything in one way and
//! never leaves the process. Its own retries are off: a simulated store is the service, and a test
//! of how a client retries puts one before a [`SimProxy`](super::SimProxy).

use std::io;
use std::sync::LazyLock;

use async_trait::async_trait;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use object_store::path::Path;
use object_store::{ClientOptions, Error, ObjectStore, ObjectStoreExt, Result, RetryConfig};

use crate::RequestKind;

/// The body of a 503, as S3 writes it.
pub(super) const SLOW_DOWN: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>SlowDown</Code>\
<Message>Please reduce your request rate.</Message><RequestId>SIMULATED</RequestId></Error>";

/// The outcome of every request.
#[derive(Debug, Clone, Copy)]
enum Connection {
    /// It is answered with 503.
    Rejects,
    /// It breaks before the answer.
    Breaks,
}

#[async_trait]
impl HttpService for Connection {
    async fn call(&self, _: HttpRequest) -> Result<HttpResponse, HttpError> {
        match self {
            Self::Rejects => {
                let mut response = HttpResponse::new(SLOW_DOWN.to_owned().into());
                *response.status_mut() = 503.try_into().expect("503 is a status");
                Ok(response)
            }
            Self::Breaks => Err(broken()),
        }
    }
}

impl HttpConnector for Connection {
    fn connect(&self, _: &ClientOptions) -> Result<HttpClient> {
        Ok(HttpClient::new(*self))
    }
}

fn client(connection: Connection) -> AmazonS3 {
    let retry = RetryConfig { max_retries: 0, ..Default::default() };
    AmazonS3Builder::new()
        .with_bucket_name("simulated")
        .with_region("us-east-1")
        .with_access_key_id("simulated")
        .with_secret_access_key("simulated")
        .with_retry(retry)
        .with_http_connector(connection)
        .build()
        .expect("the settings are complete")
}

fn broken() -> HttpError {
    HttpError::new(HttpErrorKind::Interrupted, io::Error::from(io::ErrorKind::ConnectionReset))
}

/// The error of a request that was answered with 503.
pub(super) async fn rejected(kind: RequestKind, path: &str) -> Error {
    static CLIENT: LazyLock<AmazonS3> = LazyLock::new(|| client(Connection::Rejects));
    failed(&CLIENT, kind, path).await
}

/// The error of a request whose connection broke before the answer.
pub(super) async fn unanswered(kind: RequestKind, path: &str) -> Error {
    static CLIENT: LazyLock<AmazonS3> = LazyLock::new(|| client(Connection::Breaks));
    failed(&CLIENT, kind, path).await
}

/// The error of an answer that broke off.
pub(super) fn broken_off() -> Error {
    Error::Generic { store: "S3", source: Box::new(broken()) }
}

async fn failed(client: &AmazonS3, kind: RequestKind, path: &str) -> Error {
    let path = Path::from(path);
    let failure = match kind {
        RequestKind::Get => client.get(&path).await.err(),
        RequestKind::Head => client.head(&path).await.err(),
        RequestKind::Put => client.put(&path, "".into()).await.err(),
        RequestKind::List => client.list_with_delimiter(Some(&path)).await.err(),
        RequestKind::Delete => client.delete(&path).await.err(),
    };
    failure.expect("this connection never succeeds")
}
