//! Object store access for Hoplake: one door to every store, reads in waves, checks, a cache, accounts.
//!
//! Floor 1 of the house: it knows objects and blocks, not graphs.
//!
//! * [`Store`]: a prefix in an object store, by URL.
//! * [`Reader`]: many blocks in one wave, through the memory cache, each checked.
//! * [`Meter`]: what a query cost, in waves, requests, bytes and dollars.

mod error;
mod meter;
mod prices;
mod reader;
mod store;

pub use error::StorageError;
pub use meter::{Cost, Meter, Wave};
pub use prices::PriceList;
pub use reader::{BlockRequest, Check, Object, ReadSettings, Reader};
pub use store::{ObjectInfo, Store, Upload};
