//! Temporary folders of feeds, and what is left of those whose process was killed.
//!
//! A folder has a file that its process holds a lock on for as long as it lives; the system releases it, however the process ends. So each
//! start removes the folders whose lock no process holds. One without the file is of a process that is about to make it, unless it is old.

use std::{
    fs::{self, File},
    io,
    path::Path,
    time::Duration,
};

use tempfile::TempDir;

use crate::{FeedError, Settings};

/// How the names of all folders begin.
const PREFIX: &str = "hoplake-feed-";

/// The file with the lock.
const LOCK: &str = "in-use";

/// After how long a folder without a lock is one that a process has left.
const OLD: Duration = Duration::from_secs(3_600);

/// A temporary folder, which is removed with its value, or by the next feed if the process is killed.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: TempDir,
    /// Held until the folder is removed.
    _lock: File,
}

impl Scratch {
    /// Makes a folder where the settings say.
    ///
    /// # Errors
    /// [`Unavailable`](crate::FeedErrorKind::Unavailable) if the system does not let it.
    pub(crate) fn new(settings: &Settings) -> Result<Self, FeedError> {
        Self::within(&settings.copy.place()).map_err(|error| {
            FeedError::unavailable(format!("could not make a temporary folder: {}", hoplake::system_text(&error)))
                .hint("set copy.temp_dir to a folder with as much space as the tables take")
        })
    }

    pub(crate) fn within(place: &Path) -> io::Result<Self> {
        loop {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?;
            let lock = File::create_new(folder.path().join(LOCK))?;
            lock.lock()?;
            // Before that, another process may have taken it for one that was left.
            if folder.path().join(LOCK).exists() {
                return Ok(Self { folder, _lock: lock });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes what processes have left that were killed. What cannot be removed stays, such as folders of other users.
pub(crate) fn remove_left(settings: &Settings) {
    for entry in fs::read_dir(settings.copy.place()).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let folder = entry.path();
        let Some(_lock) = is_ours.then(|| left(&folder)).flatten() else { continue };
        match fs::remove_dir_all(&folder) {
            Ok(()) => tracing::info!(folder = %folder.display(), "removed what a feed has left"),
            Err(error) => tracing::debug!(folder = %folder.display(), error = %error, "could not be removed"),
        }
    }
}

/// The lock of a folder that no process uses, as far as it has one.
fn left(folder: &Path) -> Option<Option<File>> {
    match File::options().read(true).write(true).open(folder.join(LOCK)) {
        Ok(lock) => lock.try_lock().is_ok().then_some(Some(lock)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let age = fs::metadata(folder).and_then(|it| it.modified()).ok().and_then(|it| it.elapsed().ok());
            age.is_some_and(|age| age >= OLD).then_some(None)
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OneOrMore, SourceSettings};

    #[test]
    fn what_is_in_use_stays_and_what_was_left_goes() {
        let place = tempfile::tempdir().unwrap();
        let source = SourceSettings::new("s", OneOrMore::One("mysql://a/b".into()));
        let mut settings = Settings::new("memory://", source);
        settings.copy.temp_dir = Some(place.path().to_owned());
        let used = Scratch::new(&settings).unwrap();
        fs::write(used.path().join("rows"), "x").unwrap();
        // As a process leaves it that is killed: its lock goes with it.
        let Scratch { folder, _lock } = Scratch::new(&settings).unwrap();
        let left = folder.keep();
        fs::write(left.join("rows"), "x").unwrap();
        drop(_lock);
        let [beginning, old, other] = ["hoplake-feed-a", "hoplake-feed-b", "other"].map(|name| place.path().join(name));
        for folder in [&beginning, &old, &other] {
            fs::create_dir(folder).unwrap();
        }
        let hours_ago = std::time::SystemTime::now() - 2 * OLD;
        File::open(&old).unwrap().set_modified(hours_ago).unwrap();
        remove_left(&settings);
        let there = [used.path(), &left, &beginning, &old, &other].map(Path::exists);
        assert_eq!(there, [true, false, true, false, true]);
        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
    }
}
