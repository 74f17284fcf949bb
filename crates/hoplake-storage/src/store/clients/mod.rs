//! Clients of object stores, each behind a feature: `s3`, `gcs` and `azure`.
//!
//! They depend on HTTP, TLS and other network code, half of all code that a build for folders would compile.
//! Without any of them, this module still names the feature that a URL needs.

use std::sync::Arc;

use object_store::{ObjectStore, path::Path};

/// The two clients of a store, and the prefix in it.
pub(crate) struct Clients {
    /// Repeats what failed.
    pub(crate) writes: Arc<dyn ObjectStore>,
    /// Sends each request once: the access layer repeats reads as the query's limits allow.
    pub(crate) reads: Arc<dyn ObjectStore>,
    pub(crate) prefix: Path,
}

/// How a request failed that got no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "cloud"), expect(dead_code, reason = "without clients nothing is sent"))]
pub(crate) enum Unanswered {
    /// There was no connection, so it was not sent.
    Unsent,
    /// Not in time.
    Late,
    /// The connection broke.
    Broken,
    /// The response was not valid HTTP.
    Unreadable,
}

/// Stores by the schemes of their URLs, with the feature that has their client.
const FEATURES: &[(&[&str], &str, bool)] = &[
    (&["s3", "s3a"], "s3", cfg!(feature = "s3")),
    (&["gs"], "gcs", cfg!(feature = "gcs")),
    (&["az", "abfs", "abfss", "azure"], "azure", cfg!(feature = "azure")),
];

/// Whether a scheme is that of a store with buckets or containers.
pub(crate) fn has_buckets(scheme: &str) -> bool {
    FEATURES.iter().any(|(schemes, ..)| schemes.contains(&scheme))
}

/// Why URLs of a scheme cannot be opened by this build, if they cannot.
pub(crate) fn missing_feature(scheme: &str) -> Option<String> {
    let (_, feature, _) = FEATURES.iter().find(|(schemes, _, built)| schemes.contains(&scheme) && !built)?;
    Some(why_missing(scheme, feature))
}

fn why_missing(scheme: &str, feature: &str) -> String {
    format!("{scheme}:// needs the feature `{feature}` of Hoplake, which this program was built without")
}

#[cfg(feature = "cloud")]
mod cloud;
#[cfg(feature = "cloud")]
pub(crate) use cloud::{connect, unanswered};
#[cfg(not(feature = "cloud"))]
pub(crate) use none::{connect, unanswered};

#[cfg(not(feature = "cloud"))]
mod none {
    use std::error::Error;

    use url::Url;

    use super::{Clients, Unanswered};

    /// No client: the caller has checked [`missing_feature`].
    pub(crate) fn connect(_: &Url) -> object_store::Result<Clients> {
        Err(object_store::Error::NotSupported { source: "unknown URL scheme".into() })
    }

    /// Nothing is sent.
    pub(crate) fn unanswered(_: &(dyn Error + 'static)) -> Option<Unanswered> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_without_its_client_names_the_feature() {
        for (schemes, feature, built) in FEATURES {
            for scheme in *schemes {
                assert_eq!(missing_feature(scheme), (!built).then(|| why_missing(scheme, feature)));
                assert!(why_missing(scheme, feature).contains(&format!("the feature `{feature}`")));
            }
        }
        assert_eq!(missing_feature("memory"), None);
    }
}
