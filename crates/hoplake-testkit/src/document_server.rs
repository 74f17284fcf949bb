//! A real document database for tests: mongo-java-server over a file of H2.
//!
//! **Why this one.** It speaks MongoDB's protocol, keeps its documents on disk, and is had from Maven. It is not mongod: it shows that
//! the driver is used rightly, and says little of speed.
//!
//! **Where it comes from.** The folder of jars named by `HOPLAKE_DOCUMENT_SERVER`; else the one in the shared build folder
//! (`HOPLAKE_BUILD_DIR`, else `hoplake` in the user's cache folder), which the first test that needs it fills with Maven, in some
//! seconds, while others wait. Java 17 or later runs it.
//!
//! **How it ends.** By its process id when the [`DocumentServer`] is dropped, so also when a test panics.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::programs::{Process, explain, fetch_jars, folder_made_once};

/// The version that is known to work; `./test` reads it from this line.
const VERSION: &str = "1.47.0";

const READY_WITHIN: Duration = Duration::from_secs(60);

/// Its own program always listens on the same port. Java compiles this one when it starts it.
const PROGRAM: &str = r#"
import de.bwaldvogel.mongo.H2MongoServer;

public class Server {
    public static void main(String[] arguments) {
        H2MongoServer server = new H2MongoServer(arguments[0]);
        server.bind("127.0.0.1", 0);
        System.out.println(server.getLocalAddress().getPort());
    }
}
"#;

/// A running server without documents, on a loopback port of its own.
#[derive(Debug)]
pub struct DocumentServer {
    process: Process,
    address: SocketAddr,
    // Dropped after the process, which writes into it.
    folder: TempDir,
}

impl DocumentServer {
    /// Starts a server over a fresh file, and returns when it answers. Blocks for some seconds.
    ///
    /// # Errors
    /// If there is no Java, if the program cannot be fetched, or if it does not answer within a minute.
    pub fn start() -> io::Result<Self> {
        let jars = jars()?;
        let folder = tempfile::Builder::new().prefix("hoplake-documents-").tempdir()?;
        let source = folder.path().join("Server.java");
        fs::write(&source, PROGRAM)?;
        let log = folder.path().join("log");
        let mut command = Command::new("java");
        command.arg("-cp").arg(jars.join("*")).arg(&source).arg(folder.path().join("documents"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&log)?);
        let started = command.spawn().map_err(|error| explain(format!("could not start java: {error}; install it")))?;
        let mut process = Process(started);
        let output = process.0.stdout.take().ok_or_else(|| explain("java has no output".to_owned()))?;
        let (send, said) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let mut output = BufReader::new(output);
            let _ = output.read_line(&mut line);
            let _ = send.send(line);
            // A program whose output nobody reads may never go on.
            let _ = io::copy(&mut output, &mut io::sink());
        });
        let line = said.recv_timeout(READY_WITHIN).unwrap_or_default();
        let failed = |why: &str| {
            let said = fs::read_to_string(&log).unwrap_or_default();
            explain(format!("the document server {why}: {}", said.trim()))
        };
        let port = line.trim().parse().map_err(|_| failed("named no port"))?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        ping(address).map_err(|error| failed(&format!("does not answer ({error})")))?;
        Ok(Self { process, address, folder })
    }

    /// `127.0.0.1:<port>`.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The `mongodb://` address of a database.
    pub fn url(&self, database: &str) -> String {
        format!("mongodb://{}/{database}", self.address)
    }

    /// Bytes of its file.
    pub fn disk_bytes(&self) -> u64 {
        fs::metadata(self.folder.path().join("documents")).map_or(0, |metadata| metadata.len())
    }

    /// The id of the server's process.
    pub fn process_id(&self) -> u32 {
        self.process.0.id()
    }
}

/// Asks `{ping: 1}` in the protocol's own form.
fn ping(address: SocketAddr) -> io::Result<()> {
    const OP_MSG: u32 = 2013;
    let mut document = Vec::from(*b"\x10ping\0\x01\0\0\0\x02$db\0\x06\0\0\0admin\0\0");
    document.splice(0..0, (document.len() as u32 + 4).to_le_bytes());
    let mut message = Vec::new();
    // Length, number of the request, of the answer, kind, flags, and a section that is one document.
    for number in [21 + document.len() as u32, 1, 0, OP_MSG, 0] {
        message.extend(number.to_le_bytes());
    }
    message.push(0);
    message.extend(document);
    let mut connection = TcpStream::connect_timeout(&address, READY_WITHIN)?;
    connection.set_read_timeout(Some(READY_WITHIN))?;
    connection.write_all(&message)?;
    connection.read_exact(&mut [0; 16])
}

/// The folder of the program, fetched if need be.
fn jars() -> io::Result<PathBuf> {
    if let Some(named) = std::env::var_os("HOPLAKE_DOCUMENT_SERVER") {
        return Ok(named.into());
    }
    folder_made_once(&format!("mongo-java-server-{VERSION}"), fetch)
}

fn fetch(folder: &Path) -> io::Result<()> {
    let hint = "install Maven, or name a folder of its jars in HOPLAKE_DOCUMENT_SERVER";
    fetch_jars(folder, &[&format!("de.bwaldvogel:mongo-java-server-h2-backend:{VERSION}")], hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_answers_and_ends_with_its_value() {
        let server = DocumentServer::start().unwrap();
        ping(server.address()).unwrap();
        let (address, process) = (server.address(), server.process_id());
        assert!(server.disk_bytes() > 0);
        drop(server);
        assert!(ping(address).is_err() && !Path::new(&format!("/proc/{process}")).exists());
    }
}
