//! Graphs as a service within this process, for notebooks.

use std::sync::Mutex;

use hoplake_server::{ServerBuilder, ServerError, Settings};
use pyo3::{exceptions::PyRuntimeError, prelude::*};
use tokio::{sync::oneshot, task::JoinHandle};

use crate::{
    errors,
    process::{self, OfProcess},
    task::Task,
};

/// What ends a server, and its end.
type Running = (oneshot::Sender<()>, JoinHandle<Result<(), ServerError>>);

/// A server that runs until it is stopped, or the process ends.
#[pyclass(frozen, module = "hoplake._hoplake")]
pub struct Server {
    http: String,
    grpc: String,
    running: OfProcess<Mutex<Option<Running>>>,
}

/// Serves graphs by settings in TOML.
#[pyfunction]
pub fn serve(py: Python<'_>, settings: &str) -> PyResult<Server> {
    let settings = Settings::from_toml(settings).map_err(|error| errors::invalid(py, error.to_string()))?;
    settings.validate().map_err(|error| errors::invalid(py, error.to_string()))?;
    let runtime = process::runtime().map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let server = py.detach(|| runtime.block_on(ServerBuilder::new(settings).bind()));
    let server = server.map_err(|error| errors::invalid(py, error.to_string()))?;
    let (http, grpc) = (format!("http://{}", server.http()), format!("http://{}", server.grpc()));
    let (stop, stopped) = oneshot::channel();
    let running = runtime.spawn(server.run(async move {
        // Dropping the Python object does not stop the server: only `stop` does.
        if stopped.await.is_err() {
            std::future::pending::<()>().await;
        }
    }));
    Ok(Server { http, grpc, running: OfProcess::new(Mutex::new(Some((stop, running)))) })
}

#[pymethods]
impl Server {
    /// Where HTTP and Gremlin's WebSocket are.
    #[getter]
    fn http(&self) -> &str {
        &self.http
    }

    /// Where gRPC is.
    #[getter]
    fn grpc(&self) -> &str {
        &self.grpc
    }

    /// Ends the server once the requests under way are answered. In a child of the process that has it, nothing.
    fn stop(&self) -> PyResult<Task> {
        let running = match self.running.get() {
            Some(running) => running.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take(),
            None => None,
        };
        let ended = async move {
            if let Some((stop, running)) = running {
                let _ = stop.send(());
                match running.await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => return Ok(Some(error.to_string())),
                    Err(_) => return Ok(Some("a bug in Hoplake: the server stopped".to_owned())),
                }
            }
            Ok(None)
        };
        Task::spawn(ended, |py, failed| match failed {
            None => Ok(py.None().into_bound(py)),
            Some(message) => Err(PyRuntimeError::new_err(message)),
        })
    }
}
