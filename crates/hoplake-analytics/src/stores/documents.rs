//! States in a document database that speaks MongoDB's protocol.
//!
//! A chunk is a document: `{_id: 3, states: <bytes>}`. A document a vertex would be what such a database is made for, but costs a
//! request's work for each of them: a load of those took some 400 times as long.
//!
//! The driver is asynchronous, and stores are not. So a store has a thread of its own for it, and others wait for that one, be they
//! threads of a computation or of another runtime.

use std::{
    fmt::{self, Display},
    future::Future,
    ops::Range,
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use mongodb::{
    Client, Collection,
    bson::{Binary, Document, RawDocumentBuf, doc, spec::BinarySubtype},
    error::{Error, ErrorKind},
    options::ClientOptions,
};
use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};

use super::{
    CHUNK, SerialiseError, Serialiser, StateStore, StoreBytes, StoreError,
    chunks::{ChunkForm, chunks},
};
use crate::Value;

/// The document that claims a collection for a store.
const ABOUT: &str = "about";
/// The field of a chunk's bytes.
const STATES: &str = "states";
/// The code of an insert of an `_id` that is there.
const DUPLICATE_KEY: i32 = 11_000;
/// The longest wait for a connection, or for the collection's removal at the end.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Where a store has its documents.
#[derive(Clone, PartialEq, Eq)]
pub struct DocumentSettings {
    /// `mongodb://[USER:PASSWORD@]HOST[:PORT]/DATABASE[?OPTIONS]`.
    pub url: String,
    /// A collection of that database, which does not exist yet.
    pub collection: String,
    /// The longest that an answer may take.
    pub timeout: Duration,
}

impl DocumentSettings {
    /// The collection `hoplake_states` of a database, and answers within a minute.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), collection: "hoplake_states".into(), timeout: Duration::from_secs(60) }
    }
}

/// Without the address, which may have a password.
impl fmt::Debug for DocumentSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DocumentSettings").field("collection", &self.collection).finish_non_exhaustive()
    }
}

/// States in a document database, a chunk a document.
#[derive(Debug)]
pub struct DocumentStore<S> {
    database: Connection,
    /// Part of a chunk is read, changed and written: by one thread at a time.
    locks: Vec<Mutex<()>>,
    form: ChunkForm<S>,
}

impl<S: Value> DocumentStore<S> {
    /// A store for this number of vertices, in a new collection. The collection is removed when the store is dropped; one of a process
    /// that was killed stays.
    ///
    /// # Errors
    /// [`StoreError`] if the address is of another form, if the server does not answer, or if the collection has documents.
    pub fn create(settings: &DocumentSettings, vertices: u32) -> Result<Self, StoreError> {
        let mut database = Connection::open(settings)?;
        database.claim(vertices)?;
        let locks = (0..vertices.div_ceil(CHUNK)).map(|_| Mutex::default()).collect();
        Ok(Self { database, locks, form: ChunkForm::new(vertices) })
    }

    /// The same with another serialiser, before anything is written.
    #[must_use]
    pub fn with_serialiser(mut self, serialiser: impl Serialiser<S> + 'static) -> Self {
        self.form.serialiser = Arc::new(serialiser);
        self
    }

    fn damaged(&self, why: impl Display) -> StoreError {
        let hint = "something else has written to the collection; remove it, and run the computation again";
        self.database.failed(format!("{why}: {hint}"))
    }

    /// The document of a chunk, if it was written.
    fn chunk(&self, number: usize) -> Result<Option<RawDocumentBuf>, StoreError> {
        let documents = self.database.documents.clone();
        let id = number as i64;
        let found = self.database.wait(async move { documents.find_one(doc! { "_id": id }).await })?;
        if let Some(document) = &found
            && document.get_i64("_id").ok() != Some(id)
        {
            return Err(self.damaged(format!("chunk {number}: the server has sent another document")));
        }
        Ok(found)
    }

    /// The bytes of a chunk.
    fn states<'a>(&self, number: usize, document: Option<&'a RawDocumentBuf>) -> Result<Option<&'a [u8]>, StoreError> {
        let Some(document) = document else { return Ok(None) };
        let states = document.get_binary(STATES);
        Ok(Some(states.map_err(|error| self.damaged(format!("chunk {number}: {error}")))?.bytes))
    }
}

impl<S: Value> StateStore<S> for DocumentStore<S> {
    fn read(&self, vertices: Range<u32>) -> Result<Vec<S>, StoreError> {
        let mut states = Vec::with_capacity(vertices.len());
        for (number, within, _) in chunks(&vertices) {
            let document = self.chunk(number)?;
            let bytes = self.states(number, document.as_ref())?;
            self.form.read_within(number, bytes, within, &mut states).map_err(|error| self.damaged(error))?;
        }
        Ok(states)
    }

    fn put(&self, first: u32, states: Vec<S>) -> Result<(), StoreError> {
        let vertices = first..first + states.len() as u32;
        for (number, within, at) in chunks(&vertices) {
            let missing = || self.database.failed("there are no states of such vertices");
            let _lock = self.locks.get(number).ok_or_else(missing)?.lock();
            let before = || {
                let document = self.chunk(number).map_err(Failure::Store)?;
                let bytes = self.states(number, document.as_ref()).map_err(Failure::Store)?;
                Ok::<_, Failure>(bytes.map(<[u8]>::to_vec))
            };
            let bytes = self.form.write(number, within.clone(), &states[at..at + within.len()], before);
            let bytes = bytes.map_err(|failure| match failure {
                Failure::Store(error) => error,
                Failure::Bytes(error) => self.damaged(error),
            })?;
            let bytes = Binary { subtype: BinarySubtype::Generic, bytes };
            let document = doc! { "_id": number as i64, STATES: bytes };
            let documents = self.database.documents.clone_with_type::<Document>();
            let replaced = self.database.wait(async move {
                documents.replace_one(doc! { "_id": number as i64 }, document).upsert(true).await
            })?;
            if replaced.matched_count != 1 && replaced.upserted_id.is_none() {
                return Err(self.damaged(format!("chunk {number}: the server has not written it")));
            }
        }
        Ok(())
    }

    fn bytes(&self) -> StoreBytes {
        StoreBytes { memory: 0, disk: self.database.disk_bytes().unwrap_or(0) }
    }
}

/// Why a chunk could not be changed.
enum Failure {
    Store(StoreError),
    Bytes(SerialiseError),
}

impl From<SerialiseError> for Failure {
    fn from(error: SerialiseError) -> Self {
        Self::Bytes(error)
    }
}

/// A collection, and the thread that talks to its server.
#[derive(Debug)]
struct Connection {
    /// There until it is dropped.
    runtime: Option<Runtime>,
    documents: Collection<RawDocumentBuf>,
    client: Client,
    /// The server, database and collection, for errors.
    place: String,
    timeout: Duration,
    /// Whether the collection is this store's, to be removed.
    is_own: bool,
}

impl Connection {
    fn open(settings: &DocumentSettings) -> Result<Self, StoreError> {
        // The address may have a password: no error repeats it.
        let refused = |why: String| StoreError::new("document database", why);
        if settings.url.starts_with("mongodb+srv://") {
            return Err(refused(
                "an address with mongodb+srv is looked up in the DNS, which is not built in: name the hosts".into(),
            ));
        }
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("document-states").enable_all().build();
        let runtime = runtime.map_err(|error| refused(format!("its thread could not be started: {error}")))?;
        let url = settings.url.clone();
        let parsed = wait(&runtime, CONNECT_WITHIN, async move { ClientOptions::parse(url).await });
        let form = "write mongodb://HOST:PORT/DATABASE";
        let mut options = parsed.map_err(|why| refused(format!("{why}; {form}")))?;
        let Some(name) = options.default_database.clone().filter(|name| !name.is_empty()) else {
            return Err(refused(format!("its address has no database: {form}")));
        };
        let hosts: Vec<String> = options.hosts.iter().map(ToString::to_string).collect();
        let within = CONNECT_WITHIN.min(settings.timeout);
        options.connect_timeout.get_or_insert(within);
        options.server_selection_timeout.get_or_insert(within);
        // The driver starts tasks as soon as it has a client.
        let client = {
            let _within = runtime.enter();
            Client::with_options(options).map_err(|error| refused(format!("{}; {form}", error.kind)))?
        };
        let documents = client.database(&name).collection(&settings.collection);
        let place = format!("{}, database {name}, collection {}", hosts.join(","), settings.collection);
        Ok(Self { runtime: Some(runtime), documents, client, place, timeout: settings.timeout, is_own: false })
    }

    /// Makes the collection this store's. Of two that want it one gets it: an `_id` can be inserted once.
    fn claim(&mut self, vertices: u32) -> Result<(), StoreError> {
        let taken = || self.failed("it has documents: remove the collection, or name another database");
        let documents = self.documents.clone();
        if self.wait(async move { documents.find_one(doc! {}).await })?.is_some() {
            return Err(taken());
        }
        let documents = self.documents.clone_with_type::<Document>();
        let about = doc! { "_id": ABOUT, "what": "states of a computation", "vertices": i64::from(vertices) };
        let claimed = self.waited(async move { documents.insert_one(about).await });
        match claimed {
            Err(Waited::Failed(error)) if is_duplicate(&error) => Err(taken()),
            Err(why) => Err(self.explained(&why)),
            Ok(_) => {
                self.is_own = true;
                Ok(())
            }
        }
    }

    fn failed(&self, why: impl Display) -> StoreError {
        StoreError::new(&self.place, why)
    }

    fn explained(&self, why: &Waited) -> StoreError {
        let hint = match why {
            Waited::Failed(error) => match &*error.kind {
                ErrorKind::ServerSelection { .. } => "check that the server runs, and that it can be reached from here",
                ErrorKind::Authentication { .. } => "check the user and the password",
                ErrorKind::Io(_) | ErrorKind::ConnectionPoolCleared { .. } => {
                    "the connection was lost; check the server, and run the computation again"
                }
                _ => "check the server's log, and run the computation again",
            },
            Waited::TooLong(_) | Waited::Ended => "check the server and the network, and run the computation again",
        };
        self.failed(format!("{why}: {hint}"))
    }

    /// Does something on the connection's thread, within the time that an answer may take.
    fn wait<T: Send + 'static>(
        &self,
        what: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.waited(what).map_err(|why| self.explained(&why))
    }

    fn waited<T: Send + 'static>(
        &self,
        what: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Waited> {
        wait(self.runtime.as_ref().ok_or(Waited::Ended)?, self.timeout, what)
    }

    fn disk_bytes(&self) -> Option<u64> {
        let (documents, client) = (self.documents.namespace(), self.client.clone());
        let stats = self.waited(async move {
            client.database(&documents.db).run_command(doc! { "collStats": documents.coll }).await
        });
        let stats = stats.ok()?;
        let of = |name: &str| match stats.get(name)? {
            mongodb::bson::Bson::Int32(bytes) => u64::try_from(*bytes).ok(),
            mongodb::bson::Bson::Int64(bytes) => u64::try_from(*bytes).ok(),
            mongodb::bson::Bson::Double(bytes) => Some(*bytes as u64),
            _ => None,
        };
        let documents = of("storageSize").filter(|bytes| *bytes > 0).or_else(|| of("size"))?;
        Some(documents + of("totalIndexSize").unwrap_or(0))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let documents = self.documents.clone();
        self.timeout = self.timeout.min(CONNECT_WITHIN);
        if self.is_own {
            // A server that cannot be reached keeps it, and the next run on it says so.
            let _ = self.waited(async move { documents.drop().await });
        }
        if let Some(runtime) = self.runtime.take() {
            // Where it is dropped may be a thread of another runtime, which must not wait.
            runtime.shutdown_background();
        }
    }
}

/// Why there was no answer.
enum Waited {
    Failed(Error),
    TooLong(Duration),
    Ended,
}

impl Display for Waited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Its kind alone: what the driver adds is for those who know the driver.
            Self::Failed(error) => write!(f, "{}", error.kind),
            Self::TooLong(timeout) => write!(f, "there was no answer within {timeout:?}"),
            Self::Ended => write!(f, "the thread of the connection has ended"),
        }
    }
}

fn wait<T: Send + 'static>(
    runtime: &Runtime,
    within: Duration,
    what: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Waited> {
    let (send, answer) = mpsc::channel();
    runtime.spawn(async move {
        let _ = send.send(timeout(within, what).await);
    });
    match answer.recv() {
        Ok(Ok(answer)) => answer.map_err(Waited::Failed),
        Ok(Err(_)) => Err(Waited::TooLong(within)),
        Err(_) => Err(Waited::Ended),
    }
}

fn is_duplicate(error: &Error) -> bool {
    use mongodb::error::WriteFailure;
    matches!(&*error.kind, ErrorKind::Write(WriteFailure::WriteError(write)) if write.code == DUPLICATE_KEY)
}
