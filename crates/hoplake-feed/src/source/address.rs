//! Addresses of sources.

/// The address of a source without what may be secret in it.
pub fn shown(url: &str) -> String {
    match url::Url::parse(url) {
        Ok(url) => format!(
            "{}://{}{}{}",
            url.scheme(),
            url.host_str().unwrap_or_default(),
            url.port().map(|port| format!(":{port}")).unwrap_or_default(),
            url.path()
        ),
        Err(_) => "the source".to_owned(),
    }
}
