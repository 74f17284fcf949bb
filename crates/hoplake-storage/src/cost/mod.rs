//! What a query costs, and what ends it: requests and bytes with their prices, waves, memory, time.

mod branch;
mod budget;
mod context;
pub(crate) mod meter;
mod pace;
mod prices;
mod profile;

pub use branch::Branch;
pub use budget::{MemoryBudget, MemoryFull, MemoryHold};
pub use context::{CancelOnDrop, QueryContext, ReadLimits};
pub use meter::{Background, Cost, Served, Wave};
pub use pace::{PIECE_UNITS, Pace};
pub use prices::PriceList;
pub use profile::{Latency, ProfileError, Profiles, StoreProfile};
