//! Parses the location of a graph, a folder or a URL, and checks store settings of the environment.

use std::path::{Component, Path as FilePath, PathBuf, absolute};

use url::Url;

use crate::store::clients::has_buckets;

/// Settings that name the address of a store.
const ENDPOINTS: [&str; 5] =
    ["aws_endpoint", "aws_endpoint_url", "aws_endpoint_url_s3", "azure_endpoint", "azure_storage_endpoint"];

/// Rejects an endpoint that is not a URL, at which the client would panic. The error says what to write.
pub(crate) fn check_endpoints(settings: &[(String, String)]) -> Result<(), String> {
    let is_url =
        |value: &str| Url::parse(value).is_ok_and(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
    let wrong = settings.iter().find(|(key, value)| ENDPOINTS.contains(&key.as_str()) && !is_url(value));
    wrong.map_or(Ok(()), |(key, value)| {
        Err(format!("{} is {value:?}; write a URL, as in http://127.0.0.1:9000", key.to_uppercase()))
    })
}

/// The URL of a folder or a URL; or the mistake in it, and what to write.
pub(crate) fn parse_location(location: &str) -> Result<Url, String> {
    if location.is_empty() {
        return Err("it is empty; give a folder, or a URL such as s3://bucket/prefix".into());
    }
    match location.split_once("://") {
        Some(("file" | "memory", _)) => Url::parse(location).map_err(|error| error.to_string()),
        Some((scheme, _)) if has_buckets(scheme) => {
            let url = Url::parse(location).map_err(|error| error.to_string())?;
            match url.host_str().is_some_and(|bucket| !bucket.is_empty()) {
                true => Ok(url),
                false => Err(format!("it has no bucket; write {scheme}://bucket/prefix")),
            }
        }
        Some((scheme, _)) => Err(format!("unknown URL scheme `{scheme}`; known are file, s3, gs, az and memory")),
        None => {
            if let Some((scheme, _)) = location.split_once(":/").filter(|(scheme, _)| has_buckets(scheme)) {
                return Err(format!("write {scheme}://, with two slashes"));
            }
            let path = without_parents(FilePath::new(location)).map_err(|error| error.to_string())?;
            Url::from_file_path(&path).map_err(|()| format!("{} is not an absolute path", path.display()))
        }
    }
}

/// An absolute path without `..`, which names of objects cannot have. `..` after a symbolic link is the parent of its
/// target, as for the operating system.
fn without_parents(path: &FilePath) -> std::io::Result<PathBuf> {
    let mut walked = PathBuf::new();
    for component in absolute(path)?.components() {
        if component != Component::ParentDir {
            walked.push(component);
            continue;
        }
        walked = walked.canonicalize().unwrap_or(walked);
        walked.pop();
    }
    Ok(walked)
}

/// The provider's settings in the environment, in the lower case that the store library expects.
pub(crate) fn environment() -> Vec<(String, String)> {
    let mut options: Vec<_> = std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?.to_lowercase(), value.into_string().ok()?)))
        // One that is set to nothing is not set.
        .filter(|(_, value)| !value.is_empty())
        .filter(|(key, _)| ["aws_", "google_", "azure_"].iter().any(|prefix| key.starts_with(prefix)))
        .collect();
    // An endpoint that is spelt http:// was meant so.
    let plain = |(key, value): &(String, String)| key.contains("endpoint") && value.starts_with("http://");
    if options.iter().any(plain) {
        options.push(("allow_http".into(), "true".into()));
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    #[test]
    fn an_endpoint_is_a_url() {
        let setting = |key: &str, value: &str| [(key.to_owned(), value.to_owned())];
        for value in ["127.0.0.1:9", "localhost:9000", "nonsense", "ftp://x", "http://"] {
            let why = check_endpoints(&setting("aws_endpoint_url", value)).unwrap_err();
            assert!(why.starts_with(&format!("AWS_ENDPOINT_URL is {value:?}; write a URL")), "{why}");
        }
        check_endpoints(&setting("aws_endpoint_url", "http://localhost:9000")).unwrap();
        check_endpoints(&setting("aws_sts_regional_endpoints", "regional")).unwrap();
    }

    #[test]
    fn a_path_may_go_up() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        for (path, target) in
            [("a/b/../graph", "a/graph"), ("missing/../graph", "graph"), ("a/./b/../../graph", "graph")]
        {
            let url = Store::open(root.join(path).to_str().unwrap()).unwrap().url().to_owned();
            assert_eq!(url, format!("file://{}", root.join(target).display()));
        }
    }

    #[test]
    fn a_wrong_url_says_what_to_write() {
        for (url, hint) in [
            ("", "s3://bucket/prefix"),
            ("ftp://x/y", "unknown URL scheme `ftp`"),
            ("s3://", "it has no bucket"),
            ("s3:///prefix", "it has no bucket"),
            ("s3:/bucket/prefix", "s3://, with two slashes"),
        ] {
            let error = Store::open(url).unwrap_err().to_string();
            assert!(error.contains(hint), "{error}");
        }
    }
}
