//! What the actors of a seed share, and what happens in it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hoplake_feed::{Ends, Settings};

use super::{
    database::Database,
    oracle::Oracle,
    source::Connection,
    tables::{MAPPING, PERSON, RowImages, TABLES, TEAM},
};
use crate::{
    machine::Machine,
    process::store_of,
    world::{Concern, World},
};

/// Whether something happens in a seed.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Transactions before the first copy; without, the feed begins with an empty graph and an empty log.
    pub copied: Option<u64>,
    /// Whether the feeds make the copy, among faults.
    pub feeds_copy: bool,
    pub transactions: u64,
    pub pause_ms: u64,
    pub feeds: u64,
    pub purges: bool,
    pub damages: bool,
    pub discards: bool,
    pub reconciles: bool,
    pub retries: bool,
    pub vacuums: bool,
    /// Whether tables are altered.
    pub alters: bool,
}

impl Plan {
    fn draw(world: &World) -> Self {
        let mut random = world.random(Concern::Feed);
        let mut one_in = |bound: u64| random.below(bound) == 0;
        let copies = one_in(4);
        let purges = one_in(3);
        let damages = one_in(3);
        let discards = one_in(4);
        let reconciles = !one_in(3);
        let retries = !one_in(3);
        let vacuums = one_in(3);
        let two = one_in(2);
        let feeds_copy = one_in(2);
        let alters = world.random(Concern::Alter).below(3) == 0;
        Self {
            copied: copies.then(|| random.below(20)),
            feeds_copy,
            transactions: 5 + random.below(60),
            pause_ms: [0, 100, 2_000, 20_000][random.below(4) as usize],
            feeds: 1 + u64::from(two),
            purges,
            damages,
            discards,
            reconciles,
            retries,
            vacuums,
            alters,
        }
    }
}

/// What the actors of a seed share.
pub struct Feeding {
    pub world: Arc<World>,
    pub database: Arc<Database>,
    pub settings: Settings,
    pub plan: Plan,
    oracle: Mutex<Oracle>,
}

impl Feeding {
    /// Draws what happens.
    pub fn draw(world: &Arc<World>) -> Self {
        let plan = Plan::draw(world);
        let mut random = world.random(Concern::Feed);
        let kind = [RowImages::Complete, RowImages::Keys][random.below(2) as usize];
        let team = ["stop", "dead-letter"][random.below(2) as usize];
        let header = "graph = 's3://simulation'\n[source]\nname = 'hr'\nurl = 'model://simulation/hr'\n";
        let text = format!("{header}{}", MAPPING.replace("{team}", team));
        let mut settings = Settings::parse(&text).expect("the settings are valid");
        settings.stream.ahead_bytes_max = 64 << 10;
        settings.stream.bytes_max = 64 << 10;
        settings.stream.rows_max = [1, 5, 20_000][random.below(3) as usize];
        settings.stream.linger_ms = [0, 200, 2_000][random.below(3) as usize];
        settings.stream.grace_ms = [0, 10_000][random.below(2) as usize];
        settings.stream.position_every_ms = [1_000, 600_000][random.below(2) as usize];
        drop(random);
        world.log(|| format!("{plan:?}, {kind:?}, {:?}", settings.stream));
        let database = Arc::new(Database::new(kind));
        let oracle = Mutex::new(Oracle::new(database.clone()));
        Self { world: world.clone(), database, settings, plan, oracle }
    }

    pub fn oracle(&self) -> MutexGuard<'_, Oracle> {
        self.oracle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The database and the graph, as a process reaches them.
    pub fn ends(&self, machine: &Arc<Machine>) -> Ends {
        let ahead = self.settings.stream.ahead_bytes_max;
        let source = Arc::new(Connection::new(&self.world, machine, &self.database, ahead));
        Ends { source, store: store_of(&self.world, machine) }
    }

    pub fn alter(&self) {
        let table = [PERSON, TEAM][self.world.random(Concern::Alter).below(2) as usize];
        let position = self.database.alter(table, self.world.now().as_millis() as u64);
        self.world.log(|| format!("table {} is altered by transaction {position}", TABLES[table].name));
    }

    pub fn transact(&self) {
        let now_ms = self.world.now().as_millis() as u64;
        let position = self.database.transact(&mut self.world.random(Concern::Feed), now_ms);
        self.world.log(|| format!("transaction {position}"));
    }
}
