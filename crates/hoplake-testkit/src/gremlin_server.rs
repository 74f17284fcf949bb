//! The reference implementation of Gremlin for tests: TinkerPop's server with TinkerGraph, which keeps its graph in memory.
//!
//! It parses texts by TinkerPop's own grammar (`gremlin-lang`, and not Groovy), and its `g` is a graph without vertices.
//!
//! **Where it comes from.** The folder of jars named by `HOPLAKE_GREMLIN_SERVER`; else the one in the shared build folder, which
//! Maven fills the first time. Java 17 or later runs it.
//!
//! **How it ends.** By its process id when the [`GremlinServer`] is dropped, so also when a test panics.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::port::ReservedPort;
use crate::programs::{Process, explain, fetch_jars, folder_made_once};

/// The version whose semantics Hoplake has; `./test` reads it from this line.
const GREMLIN_SERVER_VERSION: &str = "3.8.1";

const READY_WITHIN: Duration = Duration::from_secs(60);

/// The line that its program prints.
const READY: &str = "ready";

/// Its own program says nothing when it is ready, and a script in Groovy makes `g`. Java compiles this one when it starts it.
/// Its arguments are the settings and the properties of vertices that have an index.
const PROGRAM: &str = r#"
import org.apache.tinkerpop.gremlin.process.traversal.AnonymousTraversalSource;
import org.apache.tinkerpop.gremlin.server.GremlinServer;
import org.apache.tinkerpop.gremlin.server.Settings;
import org.apache.tinkerpop.gremlin.structure.Vertex;
import org.apache.tinkerpop.gremlin.tinkergraph.structure.TinkerGraph;

public class Reference {
    public static void main(String[] arguments) throws Exception {
        Settings settings = Settings.read(arguments[0]);
        GremlinServer server = new GremlinServer(settings);
        var graphs = server.getServerGremlinExecutor().getGraphManager();
        TinkerGraph graph = (TinkerGraph) graphs.getGraph("graph");
        for (int i = 1; i < arguments.length; i++) graph.createIndex(arguments[i], Vertex.class);
        graphs.putTraversalSource("g", AnonymousTraversalSource.traversal().withEmbedded(graph));
        server.start().join();
        System.out.println("ready");
    }
}
"#;

const SETTINGS: &str = "\
host: 127.0.0.1
port: PORT
graphs: {graph: GRAPH}
scriptEngines: {gremlin-lang: {}}
serializers:
  - {className: org.apache.tinkerpop.gremlin.util.ser.GraphBinaryMessageSerializerV1}
  - {className: org.apache.tinkerpop.gremlin.util.ser.GraphSONMessageSerializerV3}
evaluationTimeout: 30000
maxContentLength: 16777216
";

/// Ids are what `property(T.id, …)` says they are.
const GRAPH: &str = "\
gremlin.graph=org.apache.tinkerpop.gremlin.tinkergraph.structure.TinkerGraph
gremlin.tinkergraph.vertexIdManager=ANY
gremlin.tinkergraph.edgeIdManager=ANY
";

/// A running server, on a loopback port of its own.
#[derive(Debug)]
pub struct GremlinServer {
    process: Process,
    port: ReservedPort,
    // Dropped after the process, which reads from it.
    _folder: TempDir,
}

impl GremlinServer {
    /// Starts a server with an empty graph, whose vertices have indexes of the properties `indexed`, and returns when it listens.
    /// Blocks for some seconds.
    ///
    /// # Errors
    /// If there is no Java, if the program cannot be fetched, or if it does not listen within a minute.
    pub fn start(indexed: &[&str]) -> io::Result<Self> {
        let jars = jars()?;
        let folder = tempfile::Builder::new().prefix("hoplake-gremlin-").tempdir()?;
        let [source, settings, graph, log] =
            ["Reference.java", "settings.yaml", "graph.properties", "log"].map(|name| folder.path().join(name));
        fs::write(&source, PROGRAM)?;
        let port = ReservedPort::new()?;
        let with_port = SETTINGS.replace("PORT", &port.to_string());
        fs::write(&settings, with_port.replace("GRAPH", &graph.display().to_string()))?;
        fs::write(&graph, GRAPH)?;
        let mut command = Command::new("java");
        command.arg("-cp").arg(jars.join("*")).arg(&source).arg(&settings).args(indexed);
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
        if line.trim() != READY {
            let said = fs::read_to_string(&log).unwrap_or_default();
            return Err(explain(format!("Gremlin Server does not listen: {}", said.trim())));
        }
        Ok(Self { process, port, _folder: folder })
    }

    /// `127.0.0.1:<port>`; its WebSocket is at `/gremlin`.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port.number()))
    }

    /// The id of the server's process.
    pub fn process_id(&self) -> u32 {
        self.process.0.id()
    }
}

/// The folder of the program, fetched if need be.
fn jars() -> io::Result<PathBuf> {
    if let Some(named) = std::env::var_os("HOPLAKE_GREMLIN_SERVER") {
        return Ok(named.into());
    }
    folder_made_once(&format!("gremlin-server-{GREMLIN_SERVER_VERSION}"), fetch)
}

fn fetch(folder: &Path) -> io::Result<()> {
    let hint = "install Maven, or name a folder of its jars in HOPLAKE_GREMLIN_SERVER";
    fetch_jars(folder, &[&format!("org.apache.tinkerpop:gremlin-server:{GREMLIN_SERVER_VERSION}")], hint)
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn it_listens_and_ends_with_its_value() {
        let server = GremlinServer::start(&["name"]).unwrap();
        TcpStream::connect(server.address()).unwrap();
        let address = server.address();
        let process = server.process_id();
        drop(server);
        assert!(TcpStream::connect(address).is_err() && !Path::new(&format!("/proc/{process}")).exists());
    }
}
