//! The clock of a process, which may be wrong.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use hoplake_storage::Clock;

use crate::{
    bucket::EPOCH_UNIX_MS,
    machine::Machine,
    world::{Concern, World},
};

/// The clock of a process.
#[derive(Debug)]
pub struct MachineClock {
    /// Whose.
    pub machine: Arc<Machine>,
    /// Where the true time is.
    pub world: Arc<World>,
}

impl Clock for MachineClock {
    fn unix_ms(&self) -> u64 {
        let now = EPOCH_UNIX_MS + self.world.now().as_millis() as u64;
        now.saturating_add_signed(self.machine.clock_off_ms.load(Relaxed))
    }

    fn running(&self) -> Duration {
        // Monotonic, as the system's: a clock that is set to another time does not move deadlines.
        self.world.now()
    }

    fn ulid(&self) -> String {
        let mut random = self.world.random(Concern::Names);
        // 80 bits from the seed: the names of objects must be the same when it is run again.
        let low = u128::from(random.next_u64()) << 16 | u128::from(random.next_u64() >> 48);
        ulid::Ulid::from_parts(self.unix_ms(), low).to_string()
    }
}
