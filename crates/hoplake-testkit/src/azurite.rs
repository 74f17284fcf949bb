//! A real server of Azure Blob Storage's protocol for tests: Azurite, Microsoft's own emulator, with its blobs in memory.
//!
//! **Where it comes from.** The program `azurite-blob` named by `HOPLAKE_AZURITE`; else the one in the shared build folder
//! (`HOPLAKE_BUILD_DIR`, else `hoplake` in the user's cache folder), which the first test that needs it installs there with npm, in
//! half a minute, while others wait. `./test` does so beforehand. Node runs it.
//!
//! **How it ends.** By its process id when the [`AzuriteServer`] is dropped, so also when a test panics.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use object_store::azure::{MicrosoftAzure, MicrosoftAzureBuilder};
use tempfile::TempDir;

use crate::port::ReservedPort;
use crate::programs::{Process, explain, folder_made_once, install_npm, run};

/// The newest version that the Node of Debian runs; `./test` reads it from this line.
const AZURITE_VERSION: &str = "3.35.0";

/// The account that every Azurite has, with its public key.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const CONTAINER: &str = "graphs";
const READY_WITHIN: Duration = Duration::from_secs(60);

/// A running server with one empty container, on a loopback port of its own.
///
/// ```no_run
/// let server = hoplake_testkit::AzuriteServer::start().expect("the server starts");
/// println!("{} with {:?}", server.url("my/graph"), server.env());
/// ```
#[derive(Debug)]
pub struct AzuriteServer {
    process: Process,
    port: ReservedPort,
    // Dropped after the process, which writes into it.
    _folder: TempDir,
}

impl AzuriteServer {
    /// Starts a server, and returns when it has its container. Blocks: a second, or a minute if it must be installed first.
    ///
    /// # Errors
    /// If Node is missing, if the program cannot be installed, or if it does not answer within a minute.
    pub fn start() -> io::Result<Self> {
        let program = program()?;
        let folder = tempfile::Builder::new().prefix("hoplake-azurite-").tempdir()?;
        let port = ReservedPort::new()?;
        let process = start_on(&program, port.number(), folder.path())?;
        Ok(Self { process, port, _folder: folder })
    }

    /// The address of the account: its name is the first part of every path.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}/{ACCOUNT}", self.port)
    }

    /// The `az://` address of a prefix in the container.
    pub fn url(&self, prefix: &str) -> String {
        format!("az://{CONTAINER}/{prefix}")
    }

    /// The environment by which a process finds the server and may use it.
    pub fn env(&self) -> Vec<(String, String)> {
        let variables = [
            ("AZURE_STORAGE_ENDPOINT", self.endpoint()),
            ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT.to_owned()),
            ("AZURE_STORAGE_ACCOUNT_KEY", KEY.to_owned()),
        ];
        variables.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    /// A client of the container.
    pub fn store(&self) -> MicrosoftAzure {
        // As for S3: the client wants to know by which cryptography, and an error means that another has said so.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = MicrosoftAzureBuilder::new().with_endpoint(self.endpoint()).with_allow_http(true);
        let builder = builder.with_account(ACCOUNT).with_access_key(KEY).with_container_name(CONTAINER);
        builder.build().expect("the settings are complete")
    }

    /// The id of the server's process.
    pub fn process_id(&self) -> u32 {
        self.process.0.id()
    }
}

fn start_on(program: &Path, port: u16, folder: &Path) -> io::Result<Process> {
    let log = folder.join("log");
    let output = File::create(&log)?;
    let mut command = Command::new(program);
    command.args(["--blobHost", "127.0.0.1", "--blobPort", &port.to_string()]);
    // Clients are newer than the versions of the protocol that it knows.
    command.args(["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]);
    command.current_dir(folder).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let started =
        command.spawn().map_err(|error| explain(format!("could not start {}: {error}", program.display())))?;
    let mut process = Process(started);
    let deadline = Instant::now() + READY_WITHIN;
    // It answers as soon as it makes the container, which no other server on the port would with this account.
    while let Err(rejected) = make_container(port) {
        let status = process.0.try_wait()?;
        if status.is_some() || Instant::now() > deadline {
            let state = status.map_or("gives no answer".to_owned(), |status| format!("ended with {status}"));
            let said = fs::read_to_string(&log).unwrap_or_default();
            return Err(explain(format!("Azurite on port {port} {state}: {}; {rejected}", said.trim())));
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(process)
}

fn make_container(port: u16) -> io::Result<()> {
    let mut command = Command::new("node");
    command.args(["-e", include_str!("azurite.js"), "--", &port.to_string(), ACCOUNT, KEY, CONTAINER]);
    run(&mut command, "install Node")
}

/// The program, installed if need be.
fn program() -> io::Result<PathBuf> {
    if let Some(named) = std::env::var_os("HOPLAKE_AZURITE") {
        return Ok(named.into());
    }
    Ok(folder_made_once(&format!("azurite-{AZURITE_VERSION}"), install)?.join("node_modules/.bin/azurite-blob"))
}

fn install(folder: &Path) -> io::Result<()> {
    let hint = "install Node with npm, or name a program azurite-blob in HOPLAKE_AZURITE";
    install_npm(folder, &format!("azurite@{AZURITE_VERSION}"), hint)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpStream};

    use object_store::{ObjectStore, PutMode, PutPayload, path::Path as ObjectPath};

    use super::*;

    #[tokio::test]
    async fn it_answers_and_ends_with_its_value() {
        let server = AzuriteServer::start().unwrap();
        let path = ObjectPath::from("a/b");
        let create = || async { server.store().put_opts(&path, PutPayload::from("x"), PutMode::Create.into()).await };
        create().await.unwrap();
        assert!(matches!(create().await, Err(object_store::Error::AlreadyExists { .. })));
        let port = server.port.number();
        let process = server.process_id();
        drop(server);
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
        assert!(!Path::new(&format!("/proc/{process}")).exists());
    }
}
