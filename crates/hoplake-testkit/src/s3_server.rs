//! A real S3 server for tests: Versity S3 Gateway over a temporary folder.
//!
//! **Why this one.** Its conditional writes are right: of many writers that create one key, one wins.
//! Mocks and several small servers get that wrong, and a commit protocol tested on them is not tested.
//!
//! **Where it comes from.** The program named by `HOPLAKE_VERSITYGW`; else the one in the shared build
//! folder (`HOPLAKE_BUILD_DIR`, else `hoplake` in the user's cache folder), which the first test that
//! needs it builds there with Go, in some minutes, while others wait. `./test` does so beforehand.
//!
//! **The negative control.** [`S3Server::start_negative_control`] runs s3s-fs, whose conditional create is broken: it
//! checks whether a name exists, and writes later. A test of races that passes on it tests nothing, and Hoplake
//! rejects it. It is named by `HOPLAKE_S3S_FS`, or is built by cargo in the same folder.
//!
//! **The second opinion.** [`S3Server::start_each`] also starts MinIO, for tests of races. It is named by
//! `HOPLAKE_MINIO`, or is built by Go in the same folder.
//!
//! **How it ends.** By its process id when the [`S3Server`] is dropped, so also when a test panics. Keep
//! it in a variable of the test and not in a `static`, which is never dropped.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use object_store::aws::{AmazonS3, AmazonS3Builder};
use tempfile::TempDir;

use crate::port::ReservedPort;
use crate::programs::{Process, build_folder, explain};

/// The version that is known to work; `./test` reads it from this line.
const VERSITYGW_VERSION: &str = "v1.8.0";

/// Another that is known to work; `./test` reads it from this line.
const MINIO_VERSION: &str = "v0.0.0-20260212201848-7aac2a2c5b7c";

/// The version whose conditional create is known to be broken; `./test` reads it from this line.
const S3S_FS_VERSION: &str = "0.14.1";

const ACCESS_KEY: &str = "hoplake";
const SECRET_KEY: &str = "hoplake-secret";
const REGION: &str = "us-east-1";
const BUCKET: &str = "graphs";
const READY_WITHIN: Duration = Duration::from_secs(30);

/// A running server with one empty bucket, on a loopback port of its own.
///
/// ```no_run
/// let server = hoplake_testkit::S3Server::start().expect("the server starts");
/// println!("{} at {} with {:?}", server.url("my/graph"), server.endpoint(), server.env());
/// ```
#[derive(Debug)]
pub struct S3Server {
    process: Process,
    port: ReservedPort,
    // Dropped after the process, which writes into it.
    folder: TempDir,
}

impl S3Server {
    /// Starts a server over a fresh folder, and returns when it answers. Blocks: some milliseconds, or
    /// some minutes if the program must be built first.
    ///
    /// # Errors
    /// If the program cannot be found or built, or does not answer within 30 seconds.
    pub fn start() -> io::Result<Self> {
        Self::start_program(&VERSITYGW)
    }

    /// Starts a server on which of many writers that create one key several win.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_negative_control() -> io::Result<Self> {
        Self::start_program(&S3S_FS)
    }

    /// Starts both kinds of servers that have exactly one winner of a create: Versity and MinIO.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_each() -> io::Result<[Self; 2]> {
        Ok([Self::start_program(&VERSITYGW)?, Self::start_program(&MINIO)?])
    }

    fn start_program(server: &Server) -> io::Result<Self> {
        let program = server.find()?;
        let folder = tempfile::Builder::new().prefix("hoplake-s3-").tempdir()?;
        // To this backend a folder is a bucket.
        fs::create_dir_all(folder.path().join("data").join(BUCKET))?;
        let port = ReservedPort::new()?;
        let process = server.start_on(&program, port.number(), folder.path())?;
        Ok(Self { process, port, folder })
    }

    /// `http://127.0.0.1:<port>`.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Makes another bucket, which is empty. Of Versity alone.
    ///
    /// # Errors
    /// If its folder cannot be made.
    pub fn create_bucket(&self, name: &str) -> io::Result<()> {
        fs::create_dir(self.folder.path().join("data").join(name))
    }

    /// The name of the bucket.
    pub fn bucket(&self) -> &str {
        BUCKET
    }

    /// The folder in which the server keeps the bucket; below `.sgwtmp` are parts of unfinished uploads. Of Versity alone.
    pub fn folder_of_bucket(&self) -> PathBuf {
        self.folder.path().join("data").join(BUCKET)
    }

    /// The `s3://` address of a prefix in the bucket.
    pub fn url(&self, prefix: &str) -> String {
        format!("s3://{BUCKET}/{prefix}")
    }

    /// The environment by which a process finds the server and may use it.
    pub fn env(&self) -> Vec<(String, String)> {
        self.env_at(&self.endpoint())
    }

    /// The same for a process that goes to `endpoint`, where something stands before the server.
    pub fn env_at(&self, endpoint: &str) -> Vec<(String, String)> {
        let variables = [
            ("AWS_ENDPOINT_URL", endpoint),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
            ("AWS_REGION", REGION),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_CONDITIONAL_PUT", "etag"),
        ];
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
    }

    /// A client of the bucket.
    pub fn store(&self) -> AmazonS3 {
        self.store_at(&self.endpoint())
    }

    /// A client of the bucket that goes to `endpoint`, where something stands before the server.
    pub fn store_at(&self, endpoint: &str) -> AmazonS3 {
        // The client is built with rustls even if it only speaks http, and rustls wants to know by which
        // cryptography. An error means that another test has chosen one, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let settings = self.env_at(endpoint).into_iter().map(|(name, value)| {
            let key = name.to_lowercase().parse().expect("object_store knows these settings");
            (key, value)
        });
        let builder = settings.fold(AmazonS3Builder::new(), |builder, (key, value)| builder.with_config(key, value));
        builder.with_bucket_name(BUCKET).build().expect("the settings are complete")
    }

    /// The id of the server's process.
    pub fn process_id(&self) -> u32 {
        self.process.0.id()
    }
}

/// A program that can be such a server.
struct Server {
    /// Its name in messages and in the shared build folder.
    name: &'static str,
    version: &'static str,
    /// An environment variable with a program to use instead of the built one.
    variable: &'static str,
    /// Its arguments: the port, a unique path of its health check, the folder of its buckets.
    arguments: fn(&mut Command, u16, &str, &Path),
    /// How its answer on that path begins when it is ready.
    ready: &'static str,
    /// Builds it into a folder, in some minutes.
    build: fn(&Path) -> Command,
}

const VERSITYGW: Server = Server {
    name: "versitygw",
    version: VERSITYGW_VERSION,
    variable: "HOPLAKE_VERSITYGW",
    arguments: |command, port, health, folder| {
        command.args(["--port", &format!("127.0.0.1:{port}"), "--health", health, "--region", REGION]);
        command.args(["--quiet", "--keep-alive", "posix", "--io-buffer-size", "32768"]).arg(folder);
        command.env("ROOT_ACCESS_KEY", ACCESS_KEY).env("ROOT_SECRET_KEY", SECRET_KEY).env("GOGC", "400");
    },
    ready: "HTTP/1.1 200",
    build: |folder| go_install(&format!("github.com/versity/versitygw/cmd/versitygw@{VERSITYGW_VERSION}"), folder),
};

const MINIO: Server = Server {
    name: "minio",
    version: MINIO_VERSION,
    variable: "HOPLAKE_MINIO",
    arguments: |command, port, _, folder| {
        command.args(["server", "--quiet", "--address", &format!("127.0.0.1:{port}")]).arg(folder);
        command.env("MINIO_ROOT_USER", ACCESS_KEY).env("MINIO_ROOT_PASSWORD", SECRET_KEY).env("MINIO_BROWSER", "off");
    },
    // It rejects unsigned requests when it is ready, and answers 503 before.
    ready: "HTTP/1.1 4",
    build: |folder| go_install(&format!("github.com/minio/minio@{MINIO_VERSION}"), folder),
};

const S3S_FS: Server = Server {
    name: "s3s-fs",
    version: S3S_FS_VERSION,
    variable: "HOPLAKE_S3S_FS",
    arguments: |command, port, _, folder| {
        command.args(["--host", "127.0.0.1", "--port", &port.to_string()]);
        command.args(["--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY]).arg(folder);
    },
    // It has no health check, and rejects unsigned requests.
    ready: "HTTP/1.1 4",
    build: |folder| {
        let mut command = Command::new("cargo");
        command.args(["install", "s3s-fs", "--version", S3S_FS_VERSION, "--locked", "--features", "binary", "--debug"]);
        command.arg("--root").arg(folder).env("CARGO_TARGET_DIR", folder.join("target"));
        command
    },
};

fn go_install(package: &str, folder: &Path) -> Command {
    let mut command = Command::new("go");
    command.args(["install", package]).env("GOBIN", folder);
    command
}

impl Server {
    fn start_on(&self, program: &Path, port: u16, folder: &Path) -> io::Result<Process> {
        // A path that no other server answers, by the random name of the folder: the port may be another's by now.
        let unique = folder.file_name().unwrap_or_default().to_string_lossy();
        let health = format!("/health-{unique}");
        let log = folder.join("log");
        let output = File::create(&log)?;
        let mut command = Command::new(program);
        (self.arguments)(&mut command, port, &health, &folder.join("data"));
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let started =
            command.spawn().map_err(|error| explain(format!("could not start {}: {error}", program.display())))?;
        let mut process = Process(started);
        let deadline = Instant::now() + READY_WITHIN;
        while !is_healthy(port, &health, self.ready) {
            let status = process.0.try_wait()?;
            if status.is_some() || Instant::now() > deadline {
                let state = status.map_or("gives no answer".to_owned(), |status| format!("ended with {status}"));
                let said = fs::read_to_string(&log).unwrap_or_default();
                return Err(explain(format!("{} on port {port} {state}: {}", program.display(), said.trim())));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(process)
    }

    /// The path of the program, built if need be.
    fn find(&self) -> io::Result<PathBuf> {
        let Self { name, version, .. } = self;
        if let Some(named) = std::env::var_os(self.variable) {
            return Ok(named.into());
        }
        let folder = build_folder()?.join("bin");
        let program = folder.join(format!("{name}-{version}"));
        if program.is_file() {
            return Ok(program);
        }
        fs::create_dir_all(&folder)?;
        let lock = File::create(folder.join(format!("{name}.lock")))?;
        lock.lock()?;
        if !program.is_file() {
            // Built in another folder and renamed, so that no test runs half a program.
            let aside = tempfile::tempdir_in(&folder)?;
            self.install(aside.path())?;
            let built = [aside.path().join(name), aside.path().join("bin").join(name)];
            let built = built.iter().find(|built| built.is_file());
            fs::rename(built.ok_or_else(|| explain(format!("{name} was built, and is not there")))?, &program)?;
        }
        Ok(program)
    }

    fn install(&self, folder: &Path) -> io::Result<()> {
        let mut build = (self.build)(folder);
        let told = format!("{build:?}");
        eprintln!("building {} {}, once, in some minutes", self.name, self.version);
        let built = build.stdin(Stdio::null()).output().map_err(|error| {
            let name = self.name;
            let variable = self.variable;
            explain(format!("could not run {told}: {error}; name a program {name} in {variable}"))
        })?;
        match built.status.success() {
            true => Ok(()),
            false => {
                let said = String::from_utf8_lossy(&built.stderr);
                Err(explain(format!("{told} ended with {}: {}", built.status, said.trim())))
            }
        }
    }
}

fn is_healthy(port: u16, path: &str, ready: &str) -> bool {
    let ask = || -> io::Result<bool> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut connection = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        connection.set_read_timeout(Some(Duration::from_secs(1)))?;
        write!(connection, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n")?;
        let mut status = [0; 12];
        connection.read_exact(&mut status)?;
        Ok(status.starts_with(ready.as_bytes()))
    };
    ask().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::sync::Arc;

    use futures::StreamExt;
    use object_store::path::Path;
    use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode};

    use super::*;
    use crate::AzuriteServer;

    const WRITERS: usize = 16;
    const KEYS: usize = 12;

    fn is_listening(port: u16) -> bool {
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
    }

    /// The winners of many concurrent creates of some keys.
    async fn race(store: Arc<dyn ObjectStore>) -> Vec<Vec<usize>> {
        let mut races = Vec::new();
        for key in 0..KEYS {
            let path = Path::from(format!("manifest/{key:020}"));
            let barrier = std::sync::Arc::new(tokio::sync::Barrier::new(WRITERS));
            let race = (0..WRITERS).map(|writer| {
                let store = store.clone();
                let path = path.clone();
                let barrier = barrier.clone();
                tokio::spawn(async move {
                    let payload = format!("writer {writer} ").repeat(100 * (writer + 1));
                    barrier.wait().await;
                    (writer, payload.clone(), store.put_opts(&path, payload.into(), PutMode::Create.into()).await)
                })
            });
            let outcomes: Vec<_> = futures::future::join_all(race).await.into_iter().map(Result::unwrap).collect();
            let stored = store.get(&path).await.unwrap().bytes().await.unwrap();
            let mut winners = Vec::new();
            for (writer, payload, outcome) in outcomes {
                match outcome {
                    Ok(_) => winners.push((writer, stored == payload)),
                    Err(Error::AlreadyExists { .. }) => {}
                    Err(other) => panic!("writer {writer} of key {key}: {other}"),
                }
            }
            assert_eq!(winners.iter().filter(|(_, is_stored)| *is_stored).count(), 1, "the object is a winner's");
            races.push(winners.into_iter().map(|(writer, _)| writer).collect());
        }
        races
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn of_many_writers_that_create_a_key_one_wins() {
        let s3 = S3Server::start_each().unwrap();
        let azure = AzuriteServer::start().unwrap();
        let stores = s3.iter().map(|server| Arc::new(server.store()) as Arc<dyn ObjectStore>);
        for store in stores.chain([Arc::new(azure.store()) as Arc<dyn ObjectStore>]) {
            for (key, winners) in race(store.clone()).await.into_iter().enumerate() {
                assert_eq!(winners.len(), 1, "key {key} of {store} was created by {winners:?}");
            }
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn the_race_tells_a_broken_server() {
        let server = S3Server::start_negative_control().unwrap();
        let races = race(Arc::new(server.store())).await;
        assert!(races.iter().any(|winners| winners.len() > 1), "{races:?}");
    }

    #[tokio::test]
    async fn it_reads_ranges_and_lists_and_deletes() {
        let server = S3Server::start().unwrap();
        let store = server.store();
        let path = Path::from("a/b");
        let content: Vec<u8> = (0..100_000u32).map(|byte| (byte % 251) as u8).collect();
        store.put(&path, content.clone().into()).await.unwrap();
        assert_eq!(store.get_range(&path, 70_000..70_300).await.unwrap(), content[70_000..70_300]);
        let ranges = store.get_ranges(&path, &[0..3, 99_990..100_000]).await.unwrap();
        assert_eq!((&ranges[0][..], &ranges[1][..]), (&content[..3], &content[99_990..]));
        assert_eq!(store.head(&path).await.unwrap().size, 100_000);
        assert!(matches!(store.get(&Path::from("a/c")).await, Err(Error::NotFound { .. })));
        assert_eq!(store.list(None).count().await, 1);
        store.delete(&path).await.unwrap();
        assert_eq!(store.list(None).count().await, 0);
    }

    #[test]
    fn servers_are_apart_and_end_with_their_value() {
        let first = S3Server::start().unwrap();
        let second = S3Server::start().unwrap();
        assert_ne!(first.endpoint(), second.endpoint());
        assert_eq!(first.url("g/1"), format!("s3://{}/g/1", first.bucket()));
        let port = first.port.number();
        let other = second.port.number();
        let folder = first.folder.path().to_owned();
        assert!(is_listening(port) && folder.is_dir());
        let elsewhere = tempfile::tempdir().unwrap();
        fs::create_dir(elsewhere.path().join("data")).unwrap();
        let taken = VERSITYGW.start_on(&VERSITYGW.find().unwrap(), port, elsewhere.path());
        assert!(taken.is_err(), "the health of the server that holds the port is not taken for one's own");
        let panicked = thread::spawn(move || {
            let _first = first;
            panic!("a test fails, as this one does on purpose");
        });
        assert!(panicked.join().is_err());
        assert!(!is_listening(port) && !folder.exists());
        assert!(is_listening(other));
    }

    #[test]
    fn a_program_that_fails_is_quoted() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("data")).unwrap();
        let error = VERSITYGW.start_on(std::path::Path::new("ls"), 1, folder.path()).unwrap_err().to_string();
        assert!(error.contains("ended with") && error.contains("port"), "{error}");
        assert!(VERSITYGW.start_on(std::path::Path::new("no-such-program"), 1, folder.path()).is_err());
    }
}
