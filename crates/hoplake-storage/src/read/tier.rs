//! Where a block was found.

use std::str::FromStr;

/// Where a block was found, from near to far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tier {
    /// The memory cache, or a mapped file.
    Memory,
    /// Blocks that were read ahead for the query.
    Prefetch,
    /// The cache on the local disk.
    Disk,
    /// A request that was in flight for another reader already.
    Shared,
    /// The store.
    Store,
}

impl Tier {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Memory, Self::Prefetch, Self::Disk, Self::Shared, Self::Store];

    /// Its name in a trace.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Prefetch => "prefetch",
            Self::Disk => "disk",
            Self::Shared => "shared",
            Self::Store => "store",
        }
    }
}

impl FromStr for Tier {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|tier| tier.name() == name).ok_or(())
    }
}
