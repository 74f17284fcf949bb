//! Clients over HTTP.

use std::{error::Error, sync::Arc, time::Duration};

use object_store::{
    BackoffConfig, ObjectStore, ObjectStoreScheme, RetryConfig,
    client::{HttpError, HttpErrorKind},
    path::Path,
};
use url::Url;

use super::{Clients, Unanswered};
use crate::store::location::environment;

/// How writes are repeated by the client. Its own default continues for three minutes, and a publisher tries four
/// times: a commit to an unreachable store hung for as long. The writer knows better when to give up.
fn write_retries() -> RetryConfig {
    let backoff = BackoffConfig { max_backoff: Duration::from_secs(2), ..BackoffConfig::default() };
    RetryConfig { backoff, retry_timeout: Duration::from_secs(20), ..RetryConfig::default() }
}

/// Clients for a URL, with the provider's settings from the environment.
pub(crate) fn connect(url: &Url) -> object_store::Result<Clients> {
    // The TLS library wants its provider named once in a process; another may have named it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (scheme, path) = ObjectStoreScheme::parse(url)?;
    let writes = client(&scheme, url, write_retries())?;
    let reads = client(&scheme, url, RetryConfig { max_retries: 0, ..RetryConfig::default() })?;
    Ok(Clients { writes, reads, prefix: Path::parse(path)? })
}

fn client(scheme: &ObjectStoreScheme, url: &Url, retry: RetryConfig) -> object_store::Result<Arc<dyn ObjectStore>> {
    /// Builders of all providers are alike, but have no trait in common.
    macro_rules! build {
        ($builder:ty) => {{
            let builder = <$builder>::new().with_url(url.as_str()).with_retry(retry);
            let with_option = |builder: $builder, (key, value): (String, String)| match key.parse() {
                Ok(key) => builder.with_config(key, value),
                // The environment has settings of other providers and tools.
                Err(_) => builder,
            };
            Ok(Arc::new(environment().into_iter().fold(builder, with_option).build()?))
        }};
    }
    match scheme {
        #[cfg(feature = "s3")]
        ObjectStoreScheme::AmazonS3 => build!(object_store::aws::AmazonS3Builder),
        #[cfg(feature = "gcs")]
        ObjectStoreScheme::GoogleCloudStorage => build!(object_store::gcp::GoogleCloudStorageBuilder),
        #[cfg(feature = "azure")]
        ObjectStoreScheme::MicrosoftAzure => build!(object_store::azure::MicrosoftAzureBuilder),
        _ => Err(object_store::Error::NotSupported { source: "unknown URL scheme".into() }),
    }
}

/// How a request failed, if this is the error of one that has no answer.
pub(crate) fn unanswered(error: &(dyn Error + 'static)) -> Option<Unanswered> {
    Some(match error.downcast_ref::<HttpError>()?.kind() {
        HttpErrorKind::Connect => Unanswered::Unsent,
        HttpErrorKind::Timeout => Unanswered::Late,
        HttpErrorKind::Interrupted | HttpErrorKind::Request => Unanswered::Broken,
        _ => Unanswered::Unreadable,
    })
}
