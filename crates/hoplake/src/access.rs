//! Graphs that are read through a source other than a store: nodes with caches in front of one, a proxy, a test.
//!
//! An [`ObjectSource`] has three calls: a complete object, blocks of an object, a listing. What is above it is as for a
//! store: waves are planned, slow requests hedged, failed ones repeated, and every block is checked, so that a source
//! need not be trusted. A [`Reader`](crate::Reader) made of it opens graphs:
//!
//! ```
//! use std::sync::Arc;
//!
//! use futures::future::BoxFuture;
//! use hoplake::{
//!     Graph, LoadOptions, OpenSettings, ReadPool, Reader, Store,
//!     access::{Fetched, FetchedObject, ObjectInfo, ObjectSource, StorageError, Wanted},
//! };
//!
//! /// Passes everything on, as a node in front of a store does.
//! #[derive(Debug)]
//! struct Through(Store);
//!
//! impl ObjectSource for Through {
//!     fn get<'a>(&'a self, name: &'a str, attempt: u32) -> BoxFuture<'a, Result<FetchedObject, StorageError>> {
//!         ObjectSource::get(&self.0, name, attempt)
//!     }
//!     fn fetch<'a>(&'a self, name: &'a str, blocks: &'a [Wanted], attempt: u32) -> BoxFuture<'a, Result<Fetched, StorageError>> {
//!         self.0.fetch(name, blocks, attempt)
//!     }
//!     fn list<'a>(&'a self, folder: &'a str) -> BoxFuture<'a, Result<Vec<ObjectInfo>, StorageError>> {
//!         ObjectSource::list(&self.0, folder)
//!     }
//! }
//!
//! # async fn example() -> Result<(), hoplake::Error> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let csv = folder.path().join("knows.csv");
//! # std::fs::write(&csv, "1,2\n2,3\n").unwrap();
//! hoplake::load("memory://docs/through", LoadOptions::from_paths([csv])).await?;
//! let store = Store::open("memory://docs/through")?;
//! // A name for messages, and prices and latencies to plan by.
//! let target = Store::elsewhere("through://people", Arc::new(store.profile().clone()));
//! let pool = ReadPool::new(Default::default())?;
//! let reader = Reader::from_source(target, Arc::new(Through(store)), pool);
//! let graph = Graph::open_through(reader, &OpenSettings::default()).await?;
//! assert!(graph.query().vertex("vertex", 3).await?.is_some());
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
//! ```
//!
//! The other side, which answers from its caches or the store, is [`Reader::read_stored`](crate::Reader::read_stored).

pub use hoplake_format::constants::{is_elsewhere, own_name};
pub use hoplake_storage::{
    Branch, Check, Fetched, FetchedObject, NodeFault, Object, ObjectInfo, ObjectSource, QueryContext, StorageError,
    Wanted,
};
