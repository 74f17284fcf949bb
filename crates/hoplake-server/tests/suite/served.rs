//! A server, and gremlinpython that asks it.
//!
//! `driver.py` has the driver. In text it sends the texts of the suite with their bindings; in bytecode it makes each traversal again with
//! the driver's own methods. The driver has one type for integers and one for floats: which it was is not seen in these runs, as little as in
//! TinkerPop's own for Python.

use std::{process::Stdio, sync::Arc};

use hoplake::gremlin::{self, script::Statement, value::Value};
use hoplake_server::{ServerBuilder, Settings};
use serde_json::{Value as Json, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::{Mutex, oneshot},
};

use crate::{
    compare::Types,
    forms,
    world::{Answer, World},
};

/// What the driver sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    Text,
    Bytecode,
}

/// A server of the graphs in a folder, and a driver.
pub struct Server {
    pub folder: String,
    sent: Sent,
    driver: Mutex<Driver>,
    _stop: oneshot::Sender<()>,
}

struct Driver {
    _process: Child,
    requests: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Server {
    /// Starts both.
    pub async fn start(sent: Sent) -> Arc<Self> {
        let (mode, folder) = match sent {
            Sent::Text => ("text", "memory://suite-text"),
            Sent::Bytecode => ("bytecode", "memory://suite-bytecode"),
        };
        let local = ([127, 0, 0, 1], 0).into();
        let settings = Settings {
            grpc: local,
            http: local,
            graphs: vec![folder.into()],
            writable: true,
            notice_ms: 0,
            ..Settings::default()
        };
        let server = ServerBuilder::new(settings).bind().await.unwrap();
        let url = format!("ws://{}/gremlin", server.http());
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(server.run(async move { drop(stopped.await) }));
        let python = tokio::task::spawn_blocking(hoplake_testkit::gremlin_python).await.unwrap().unwrap();
        let mut process = Command::new(python)
            .args(["-c", include_str!("driver.py"), &url, mode])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let requests = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap()).lines();
        let driver = Mutex::new(Driver { _process: process, requests, answers });
        Arc::new(Self { folder: folder.into(), sent, driver, _stop: stop })
    }

    async fn ask(&self, request: &Json) -> Result<Vec<Value>, String> {
        let mut driver = self.driver.lock().await;
        driver.requests.write_all(format!("{request}\n").as_bytes()).await.unwrap();
        let line = driver.answers.next_line().await.unwrap().expect("the driver says more on standard error");
        let answer: Json = serde_json::from_str(&line).unwrap();
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => answer["results"].as_array().unwrap().iter().map(forms::value).collect(),
        }
    }
}

/// A graph of a server.
pub struct Served {
    server: Arc<Server>,
    graph: String,
    is_shared: bool,
}

impl Served {
    pub fn new(server: &Arc<Server>, graph: String, is_shared: bool) -> Self {
        Self { server: server.clone(), graph, is_shared }
    }

    fn request(&self, text: &str, bindings: &[(String, Value)]) -> Result<Json, String> {
        let mut request = json!({"graph": self.graph, "shared": self.is_shared});
        match self.server.sent {
            Sent::Text => {
                let bindings = bindings.iter().map(|(name, value)| Ok(json!([name, forms::of_value(value)?])));
                request["text"] = text.into();
                request["bindings"] = bindings.collect::<Result<_, String>>()?;
            }
            Sent::Bytecode => {
                let script = gremlin::parse(text).map_err(|error| error.to_string())?;
                let traversals = script.statements.iter().filter_map(|statement| match statement {
                    Statement::Traversal(traversal, _) => Some(traversal),
                    _ => None,
                });
                let traversals = traversals.map(|traversal| {
                    let source = forms::of_calls(&traversal.source, bindings)?;
                    Ok(json!([source, forms::of_calls(&traversal.steps, bindings)?]))
                });
                request["traversals"] = traversals.collect::<Result<_, String>>()?;
            }
        }
        Ok(request)
    }
}

impl World for Served {
    fn submit<'a>(&'a mut self, text: &'a str, bindings: &'a [(String, Value)]) -> Answer<'a> {
        Box::pin(async move { self.server.ask(&self.request(text, bindings)?).await })
    }

    fn types(&self) -> Types {
        Types::DoNotCount
    }
}
