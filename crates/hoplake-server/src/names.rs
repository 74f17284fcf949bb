//! Names of graphs, and where a name leads.

use std::{fs, io, str::FromStr, sync::Arc};

use hoplake::{Error, Store};

use crate::failure::{Failure, Reason};

/// The longest name of a graph, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// Opens the store at a URL; tests bring stores of their own.
pub type StoreOpener = Arc<dyn Fn(&str) -> Result<Store, hoplake::Error> + Send + Sync>;

/// A source of graphs, as written on the command line.
///
/// * `NAME=URL` is one graph under a name of its own.
/// * `URL` is a graph under the last part of its URL, or a folder of graphs: `URL/NAME` is opened when a request asks
///   for NAME.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    name: Option<String>,
    url: String,
}

impl FromStr for Source {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        // An `=` after the scheme belongs to the URL.
        let (name, url) = match text.split_once('=').filter(|(name, _)| !name.contains(['/', ':'])) {
            Some((name, url)) => (Some(check_name(name)?.to_owned()), url),
            None => (None, text),
        };
        if url.is_empty() {
            return Err(Failure::invalid(format!("{text:?} is not a source of graphs; write URL or NAME=URL")));
        }
        Ok(Self { name, url: url.to_owned() })
    }
}

impl Source {
    /// The URLs where a graph of this name may be, the most likely first.
    pub(crate) fn urls(&self, name: &str) -> Vec<String> {
        let below = || self.below(name);
        match &self.name {
            Some(own) if own == name => vec![self.url.clone()],
            // A name of its own hides the last part of the URL: the operator chose what clients see.
            Some(_) => Vec::new(),
            // Whether the URL is a graph or a folder shows only in the store, so both are tried.
            None if self.last_part() == Some(name) => vec![self.url.clone(), below()],
            None => vec![below()],
        }
    }

    /// Its URL.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The URL of a graph of this name, if it is a folder of graphs.
    pub(crate) fn below(&self, name: &str) -> String {
        format!("{}/{name}", self.url.trim_end_matches('/'))
    }

    /// Its configured name, if it has one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Rejects a URL that can never have a graph: of an unknown store, or below a folder that does not exist. Whether a
    /// bucket has graphs is not checked, since they may appear later.
    ///
    /// # Errors
    /// [`Reason::Invalid`], or [`Reason::NotFound`], with what to write.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        // Opening a store sends no request, so a server starts while its bucket cannot be reached.
        let store = Store::open(&self.url).map_err(Error::from)?;
        let encoded = store.url().strip_prefix("file://");
        // A path with other characters in a URL fails when a graph there is requested.
        let folder = match self.url.contains("://") {
            true => encoded.filter(|path| !path.contains('%')),
            false => encoded.map(|_| self.url.as_str()),
        };
        match folder.map(|folder| (folder, fs::metadata(folder))) {
            Some((folder, Err(error))) if error.kind() == io::ErrorKind::NotFound => {
                let message = format!("there is no folder {folder}; check its name, or load a graph there first");
                Err(Failure::new(Reason::NotFound, message))
            }
            Some((folder, Ok(found))) if !found.is_dir() => {
                Err(Failure::invalid(format!("{folder} is a file; name the folder of a graph, or one of graphs")))
            }
            // Other errors, such as a missing permission, may pass until the first request.
            _ => Ok(()),
        }
    }

    /// The last part of its URL.
    pub(crate) fn last_part(&self) -> Option<&str> {
        self.url.trim_end_matches('/').rsplit('/').next()
    }
}

/// Rejects two sources of one name: only the first would ever be used.
///
/// # Errors
/// [`Reason::Invalid`] with the name and both sources.
pub(crate) fn check_names(sources: &[Source]) -> Result<(), Failure> {
    // Only `NAME=URL`: a URL alone may be a folder, and several folders may be searched for one name.
    for (position, later) in sources.iter().enumerate().filter(|(_, source)| source.name.is_some()) {
        if let Some(first) = sources[..position].iter().find(|first| first.name == later.name) {
            let name = later.name().unwrap_or_default();
            let message =
                format!("{name} is the name of {} and of {}; give each a name of its own", first.url, later.url);
            return Err(Failure::invalid(message));
        }
    }
    Ok(())
}

/// Rejects a name that is not one part of a path, or could leave it.
///
/// # Errors
/// [`Reason::Invalid`](crate::Reason::Invalid), with what a name may be.
pub(crate) fn check_name(name: &str) -> Result<&str, Failure> {
    // The name becomes a part of a URL with the server's credentials: no slash, no escape, nothing hidden or relative.
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let begins = name.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
    if begins && name.len() <= NAME_BYTES_MAX && name.bytes().all(good) && !name.contains("..") {
        return Ok(name);
    }
    Err(Failure::invalid(format!(
        "{name:?} is not a valid name of a graph: at most {NAME_BYTES_MAX} letters, digits, '.', '_' and '-', with a letter or \
         digit first, and no '..'"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_below_its_prefix() {
        for name in ["a", "air-routes", "snb.sf0_1", "9"] {
            assert_eq!(check_name(name).unwrap(), name);
        }
        for name in ["", ".", "..", "a..b", "../a", "a/b", "a\\b", "-a", "a b", "ä", "%2e", &"a".repeat(129)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_source_is_a_graph_or_a_folder_of_graphs() {
        let urls = |source: &str, name: &str| source.parse::<Source>().unwrap().urls(name);
        assert_eq!(urls("s3://b/graphs/", "social"), ["s3://b/graphs/social"]);
        assert_eq!(urls("s3://b/social", "social"), ["s3://b/social", "s3://b/social/social"]);
        assert_eq!(urls("people=s3://b/social", "people"), ["s3://b/social"]);
        assert!(urls("people=s3://b/social", "social").is_empty());
        assert_eq!(urls("s3://b/x=y", "a"), ["s3://b/x=y/a"]);
        assert!("../x=s3://b".parse::<Source>().is_ok_and(|source| source.name().is_none()));
        assert!("a b=s3://b".parse::<Source>().is_err() && "a=".parse::<Source>().is_err());
    }

    #[test]
    fn a_folder_must_be_there_and_a_store_must_be_known() {
        let folder = tempfile::tempdir().unwrap();
        let at = |below: &str| folder.path().join(below).to_str().unwrap().to_owned();
        fs::create_dir(at("a b")).unwrap();
        fs::write(at("file"), "x").unwrap();
        let check = |url: &str| url.parse::<Source>().unwrap().check();
        let missing = at("missing");
        let file = at("file");
        for url in [&at(""), &at("a b"), &format!("x={}", at("a b")), &format!("file://{}", at("")), "memory://x/y"] {
            check(url).unwrap();
        }
        for (url, reason, words) in [
            ("s4://x/y", Reason::Invalid, "unknown URL scheme `s4`"),
            ("s3://", Reason::Invalid, "it has no bucket"),
            (&missing, Reason::NotFound, "there is no folder"),
            (&format!("x=file://{missing}"), Reason::NotFound, "there is no folder"),
            (&file, Reason::Invalid, "is a file"),
        ] {
            let failure = check(url).unwrap_err();
            assert!(failure.reason == reason && failure.message.contains(words), "{url}: {failure}");
        }
    }

    #[test]
    fn a_name_has_one_source() {
        let names = |urls: &[&str]| check_names(&urls.iter().map(|url| url.parse().unwrap()).collect::<Vec<_>>());
        names(&["x=a", "y=a", "a", "b/a"]).unwrap();
        let failure = names(&["x=a", "b", "x=c"]).unwrap_err();
        assert_eq!(failure.message, "x is the name of a and of c; give each a name of its own");
    }
}
