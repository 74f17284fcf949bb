//! Inputs of a load that are not files of this machine: objects in stores, files of web servers, standard input. And names with
//! wildcards, here and in stores.
//!
//! A load reads most files more than once, and Parquet from its end. What is elsewhere is therefore copied to the temporary folder
//! first, piece by piece, and removed when the load has ended. Messages and rejects have the names that the user gave, without what may
//! be secret in them ([`Copies`]); two inputs cannot have one name. A copy that did not get as many bytes as were announced is an error,
//! and so is a server that says nothing for a minute.

#[cfg(feature = "http")]
use std::time::Duration;
use std::{
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use futures::{StreamExt, TryStreamExt};
use glob::{MatchOptions, Pattern};
use hoplake_storage::Store;
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use crate::{
    IngestError,
    source::{Copies, ReadLimits, STANDARD_INPUT, mapping},
};

/// How names with wildcards match: a `*` stays within a folder, as in a shell.
const MATCHING: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// What is read of an object at a time.
const PIECE_BYTES: u64 = 8 << 20;

/// Pieces on their way at once.
const PIECES: usize = 4;

/// The address of standard input.
const STDIN: &str = "-";

/// Schemes of stores.
const STORES: &[&str] = &["s3", "s3a", "gs", "az", "abfs", "abfss", "azure", "memory"];

/// What is to be read, and how it may be copied.
#[derive(Debug, Clone, Copy)]
pub struct InputSettings<'a> {
    /// Files, folders and URLs as the user gave them.
    pub from: &'a [PathBuf],
    /// A mapping, whose files are copied, too.
    pub mapping: Option<&'a Path>,
    /// Bounds of reading the mapping.
    pub limits: ReadLimits,
    /// Where copies are kept; the system's folder by default.
    pub temp_dir: Option<&'a Path>,
    /// How long a web server may be silent, in milliseconds.
    pub web_timeout_ms: u64,
    /// How many bytes may be copied.
    pub copied_bytes_max: Option<u64>,
}

/// Inputs that can be read.
pub struct Inputs {
    /// Files and folders, and names of copies.
    pub from: Vec<PathBuf>,
    /// The copies, by the names that the user gave.
    pub copies: Copies,
    /// Is removed with them.
    _folder: Option<TempDir>,
}

/// Where an input is.
enum Place<'a> {
    Here,
    Stdin,
    Store(&'a str),
    Web(&'a str),
}

impl<'a> Place<'a> {
    fn of(path: &'a Path) -> Result<Self, IngestError> {
        let Some(text) = path.to_str() else { return Ok(Self::Here) };
        if text == STDIN {
            return Ok(Self::Stdin);
        }
        match text.split_once("://") {
            Some((scheme, _)) if STORES.contains(&scheme) => Ok(Self::Store(text)),
            Some(("http" | "https", _)) => Ok(Self::Web(text)),
            Some(("file", _)) => Err(invalid(format!("{text}: write the path of a file here without file://"))),
            Some((scheme, _)) if !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                let known = "s3://, gs://, az://, http:// and https://";
                Err(invalid(format!("{text}: {scheme}:// is not read; inputs are files and folders here, and {known}")))
            }
            _ => {
                let slash = text.split_once(":/").filter(|(scheme, _)| STORES.contains(scheme));
                match slash {
                    Some((scheme, _)) => Err(invalid(format!("{text}: write {scheme}://, with two slashes"))),
                    None => Ok(Self::Here),
                }
            }
        }
    }
}

/// Rejects a URL where a file of this machine is expected.
pub(crate) fn check_is_path(path: &Path) -> Result<(), IngestError> {
    let scheme = path.to_str().and_then(|text| text.split_once(":/")).map(|(scheme, _)| scheme);
    match scheme.is_some_and(|scheme| STORES.contains(&scheme) || matches!(scheme, "http" | "https" | "file")) {
        true => Err(IngestError::Remote(path.to_owned())),
        false => Ok(()),
    }
}

fn invalid(message: impl Into<String>) -> IngestError {
    IngestError::Invalid(message.into())
}

/// Copies what is not here.
///
/// # Errors
/// [`Missing`](IngestError::Missing) if nothing has a name; [`Unavailable`](IngestError::Unavailable) if a store or server does not answer, or
/// an input changed while it was copied.
pub async fn gather(settings: &InputSettings<'_>) -> Result<Inputs, IngestError> {
    let mut copying = Copying {
        temp_dir: settings.temp_dir.map(Path::to_owned),
        web_timeout_ms: settings.web_timeout_ms,
        left: settings.copied_bytes_max,
        folder: None,
        count: 0,
        copies: Copies::default(),
    };
    let mut from = Vec::new();
    for path in settings.from {
        copying.add(path, &mut from).await?;
    }
    if let Some(mapping) = settings.mapping {
        copying.copy(mapping).await?;
        let (name, place) = copying.copies.get(mapping).unwrap_or((mapping, mapping));
        for named in mapping::files(name, place, &settings.limits)? {
            copying.add_named(&named, mapping).await?;
        }
    }
    let stdin = Path::new(STANDARD_INPUT);
    if settings.from.iter().any(|path| path == stdin) && copying.copies.get(stdin).is_some() {
        return Err(called_alike(STANDARD_INPUT));
    }
    Ok(Inputs { from, copies: copying.copies, _folder: copying.folder })
}

struct Copying {
    temp_dir: Option<PathBuf>,
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "without its client nothing is downloaded"))]
    web_timeout_ms: u64,
    /// How many bytes may still be copied.
    left: Option<u64>,
    folder: Option<TempDir>,
    count: u64,
    copies: Copies,
}

impl Copying {
    /// Adds an input of the command line.
    async fn add(&mut self, path: &Path, from: &mut Vec<PathBuf>) -> Result<(), IngestError> {
        match Place::of(path)? {
            Place::Here => from.extend(matching(path)?),
            Place::Stdin => {
                self.copy(path).await?;
                from.push(STANDARD_INPUT.into());
            }
            Place::Web(url) => {
                self.copy(path).await?;
                from.push(shown(url).into());
            }
            Place::Store(url) => {
                if has_wildcards(url) || !self.copy_object(url).await? {
                    self.copy_objects(url).await?;
                }
                from.push(if has_wildcards(url) { folder_of(url).into() } else { url.into() });
            }
        }
        Ok(())
    }

    /// Copies a file that a mapping names, unless it is here, or was copied before. One that is not next to the mapping may be in a
    /// folder that was given, so that nobody misses it here.
    async fn add_named(&mut self, named: &Path, mapping: &Path) -> Result<(), IngestError> {
        let is_elsewhere = |place| !matches!(place, Place::Here);
        if is_elsewhere(Place::of(named)?) {
            return self.copy(named).await;
        }
        match (Place::of(mapping)?, mapping.parent()) {
            (Place::Store(_), Some(folder)) => {
                if let Some(url) = folder.join(named).to_str() {
                    self.copy_object(url).await?;
                }
                Ok(())
            }
            (Place::Web(url), Some(_)) => {
                let page = url.split(['?', '#']).next().unwrap_or(url);
                let folder = page.rsplit_once('/').map_or(page, |(folder, _)| folder);
                let url_of_file = format!("{folder}/{}", named.display());
                // It may have been given with a query of its own.
                if self.copies.get(Path::new(&shown(&url_of_file))).is_some() {
                    return Ok(());
                }
                match self.copy(Path::new(&url_of_file)).await {
                    Err(IngestError::Missing(_)) => Ok(()),
                    copied => copied,
                }
            }
            _ => Ok(()),
        }
    }

    /// Copies one input, if it is not here.
    async fn copy(&mut self, path: &Path) -> Result<(), IngestError> {
        if self.copies.has(path) {
            return Ok(());
        }
        match Place::of(path)? {
            Place::Here => Ok(()),
            Place::Stdin => self.copy_stdin().await,
            Place::Web(url) => self.download(url).await,
            Place::Store(url) => match self.copy_object(url).await? {
                true => Ok(()),
                false => Err(missing(format!("there is no object {url}"))),
            },
        }
    }

    /// Counts bytes that are about to be copied.
    fn take(&mut self, bytes: u64) -> Result<(), IngestError> {
        let Some(left) = &mut self.left else { return Ok(()) };
        let rest = left.checked_sub(bytes);
        *left = rest.ok_or_else(|| {
            invalid("the inputs to be copied have more bytes than copied_bytes_max; raise it, or load less")
        })?;
        Ok(())
    }

    /// A file for the next copy.
    fn create(&mut self) -> Result<(PathBuf, File), IngestError> {
        let folder = match &self.folder {
            Some(folder) => folder,
            None => {
                let made = match &self.temp_dir {
                    Some(folder) => TempDir::with_prefix_in("hoplake-inputs-", folder),
                    None => TempDir::with_prefix("hoplake-inputs-"),
                };
                self.folder.insert(made.map_err(|error| spill(&error))?)
            }
        };
        let path = folder.path().join(self.count.to_string());
        self.count += 1;
        let file = File::create(&path).map_err(|error| spill(&error))?;
        Ok((path, file))
    }

    async fn copy_stdin(&mut self) -> Result<(), IngestError> {
        let (copy, mut file) = self.create()?;
        // One more shows that there are too many.
        let most = self.left.map_or(u64::MAX, |left| left.saturating_add(1));
        let read = spawn_blocking(move || io::copy(&mut io::stdin().lock().take(most), &mut file));
        let copied = read.await.map_err(|error| IngestError::Internal(error.to_string()))?;
        let failed = |error| IngestError::Unavailable(format!("could not copy standard input: {error}"));
        self.take(copied.map_err(failed)?)?;
        self.note(STDIN, STANDARD_INPUT, copy)
    }

    /// Notes a copy of the input at an address.
    fn note(&mut self, address: &str, name: &str, copy: PathBuf) -> Result<(), IngestError> {
        // In place of the other it would be loaded, and the other would not.
        if self.copies.insert(address.into(), name.into(), copy) { Ok(()) } else { Err(called_alike(name)) }
    }

    /// Copies the object at a URL; `false` if there is none.
    async fn copy_object(&mut self, url: &str) -> Result<bool, IngestError> {
        let Some((folder, name)) =
            url.rsplit_once('/').filter(|(folder, name)| !folder.ends_with('/') && !name.is_empty())
        else {
            return Ok(false);
        };
        let store = Store::open(folder)?;
        let Some(bytes) = store.length(name).await? else { return Ok(false) };
        self.copy_from(&store, name, bytes, url).await?;
        Ok(true)
    }

    /// Copies all objects below a URL, or those that its wildcards match.
    async fn copy_objects(&mut self, url: &str) -> Result<(), IngestError> {
        let (folder, pattern) = match has_wildcards(url) {
            false => (url.trim_end_matches('/'), None),
            true => {
                let folder = folder_of(url);
                (folder, Some(pattern_of(&url[folder.len() + 1..])?))
            }
        };
        let store = Store::open(folder)?;
        let mut objects = store.list("").await?;
        objects.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        // As for folders: what begins so is not data.
        let is_hidden = |name: &str| name.split('/').any(|part| part.starts_with(['.', '_']));
        objects.retain(|object| match &pattern {
            Some(pattern) => pattern.matches_with(&object.name, MATCHING),
            None => !is_hidden(&object.name),
        });
        if objects.is_empty() {
            return Err(missing(format!("there is nothing at {url}")));
        }
        for object in objects {
            self.copy_from(&store, &object.name, object.bytes, &format!("{folder}/{}", object.name)).await?;
        }
        Ok(())
    }

    async fn copy_from(&mut self, store: &Store, name: &str, bytes: u64, shown: &str) -> Result<(), IngestError> {
        // By its own name and by that of its folder.
        if self.copies.has(Path::new(shown)) {
            return Ok(());
        }
        self.take(bytes)?;
        let (copy, mut file) = self.create()?;
        let starts = (0..bytes).step_by(PIECE_BYTES as usize);
        let read = |start: u64| store.get_range(name, start..bytes.min(start + PIECE_BYTES));
        let mut pieces = futures::stream::iter(starts).map(read).buffered(PIECES);
        while let Some(piece) = pieces.try_next().await? {
            file = write(file, piece.into()).await?;
        }
        drop(pieces);
        if store.length(name).await? != Some(bytes) {
            let message = format!("{shown} changed while it was copied; load it when it is complete");
            return Err(IngestError::Unavailable(message));
        }
        self.note(shown, shown, copy)
    }

    #[cfg(feature = "http")]
    async fn download(&mut self, url: &str) -> Result<(), IngestError> {
        let name = shown(url);
        if self.copies.get(Path::new(&name)).is_some() {
            return Err(called_alike(&name));
        }
        let (copy, mut file) = self.create()?;
        let silence = Duration::from_millis(self.web_timeout_ms);
        let mut response = web::get(url, silence).await?;
        let announced = response.content_length();
        let mut bytes = 0;
        while let Some(piece) = response.chunk().await.map_err(|error| web::failed(url, &error))? {
            bytes += piece.len() as u64;
            self.take(piece.len() as u64)?;
            file = write(file, piece.into()).await?;
        }
        if let Some(announced) = announced.filter(|announced| *announced != bytes) {
            let message = format!("{name} has {bytes} bytes where its server announced {announced}");
            return Err(IngestError::Unavailable(message));
        }
        self.note(url, &name, copy)
    }

    #[cfg(not(feature = "http"))]
    async fn download(&mut self, url: &str) -> Result<(), IngestError> {
        let url = shown(url);
        Err(invalid(format!("{url} needs the feature `http` of Hoplake, which this program was built without")))
    }
}

/// Writes on a thread that may wait for a disk.
async fn write(mut file: File, bytes: Vec<u8>) -> Result<File, IngestError> {
    let written = spawn_blocking(move || file.write_all(&bytes).map(|()| file)).await;
    written.map_err(|error| IngestError::Internal(error.to_string()))?.map_err(|error| spill(&error))
}

fn spill(error: &io::Error) -> IngestError {
    let message = format!("could not copy an input to the temporary folder: {error}");
    IngestError::Unavailable(message)
}

/// That two inputs differ in what is not shown of them only, or in nothing.
fn called_alike(name: &str) -> IngestError {
    let way = "download one of them, and load its file";
    invalid(format!("two inputs are called {name}, so that nobody could tell their rows apart; {way}"))
}

fn missing(message: String) -> IngestError {
    IngestError::Missing(message)
}

fn has_wildcards(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

fn pattern_of(text: &str) -> Result<Pattern, IngestError> {
    Pattern::new(text).map_err(|error| invalid(format!("{text} is not a valid pattern: {error}")))
}

/// The part of a URL before its last slash, or before the last one in front of a wildcard.
fn folder_of(url: &str) -> &str {
    let plain = url.find(['*', '?', '[']).map_or(url, |at| &url[..at]);
    plain.rsplit_once('/').map_or(plain, |(folder, _)| folder)
}

/// Files that match a name; one without wildcards, or that is there as it is, is itself.
fn matching(path: &Path) -> Result<Vec<PathBuf>, IngestError> {
    let text = path.to_str().filter(|text| has_wildcards(text) && !path.exists());
    let Some(text) = text else { return Ok(vec![path.to_owned()]) };
    let paths = glob::glob_with(text, MATCHING);
    let paths = paths.map_err(|error| invalid(format!("{text} is not a valid pattern: {error}")))?;
    let found: Vec<PathBuf> = paths.filter_map(Result::ok).collect();
    if found.is_empty() { Err(missing(format!("no file matches {text}"))) } else { Ok(found) }
}

/// The URL of a web server as it is shown: without a password, and without a query, which may be one.
fn shown(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or(url);
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.split('/').next().unwrap_or(rest);
            let at = host.rfind('@').map_or(0, |at| at + 1);
            format!("{scheme}://{}", &rest[at..])
        }
        None => url.to_owned(),
    }
}

#[cfg(feature = "http")]
mod web {
    //! Requests to web servers.

    use std::time::Duration;

    use super::{missing, shown};
    use crate::IngestError;

    const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

    /// The answer to a request. It fails if the server says nothing for so long.
    pub(super) async fn get(url: &str, silence: Duration) -> Result<reqwest::Response, IngestError> {
        // The TLS library wants its provider named once in a process; another may have named it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().connect_timeout(CONNECT_TIMEOUT.min(silence)).read_timeout(silence);
        // A page that it is redirected to would be told the query of this one, which may be a secret.
        let client = client.referer(false);
        let client = client.build().map_err(|error| failed(url, &error))?;
        let response = client.get(url).send().await.map_err(|error| failed(url, &error))?;
        match response.status() {
            status if status.is_success() => Ok(response),
            reqwest::StatusCode::NOT_FOUND => Err(missing(format!("there is no {}", shown(url)))),
            status => {
                let message = format!("{} is refused: its server answers {status}", shown(url));
                Err(IngestError::Unavailable(message))
            }
        }
    }

    /// The error that a request failed with, down to its cause.
    pub(super) fn failed(url: &str, error: &reqwest::Error) -> IngestError {
        let why = match error.is_timeout() {
            true => "its server does not answer in time".to_owned(),
            false => {
                let mut cause: &dyn std::error::Error = error;
                while let Some(below) = cause.source() {
                    cause = below;
                }
                cause.to_string()
            }
        };
        IngestError::Unavailable(format!("could not read {}: {why}", shown(url)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_urls_are_rejected() {
        for (path, why) in [
            ("file:///data/people.csv", "write the path of a file here without file://"),
            ("ftp://host/people.csv", "ftp:// is not read; inputs are"),
            ("s3:/bucket/people.csv", "write s3://, with two slashes"),
        ] {
            let rejected = Place::of(Path::new(path)).err().unwrap();
            assert!(matches!(&rejected, IngestError::Invalid(said) if said.contains(why)), "{rejected}");
        }
        for path in ["people.csv", "/data/a:b/people.csv", "C:/people.csv"] {
            assert!(matches!(Place::of(Path::new(path)), Ok(Place::Here)), "{path}");
        }
    }

    #[test]
    fn what_may_be_secret_is_not_shown() {
        assert_eq!(shown("https://a:b@host/x.csv?token=1#y"), "https://host/x.csv");
        assert_eq!(shown("http://host/a@b.csv"), "http://host/a@b.csv");
    }

    #[test]
    fn wildcards_stay_within_their_folder() {
        assert_eq!(folder_of("s3://bucket/data/a*.csv"), "s3://bucket/data");
        assert_eq!(folder_of("s3://bucket/*/x.csv"), "s3://bucket");
        let pattern = Pattern::new("*.csv").unwrap();
        assert!(pattern.matches_with("a.csv", MATCHING) && !pattern.matches_with("b/a.csv", MATCHING));
    }
}
