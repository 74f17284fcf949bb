//! The database that a feed follows: tables, a log of transactions that is purged now and then, and random transactions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hoplake_feed::{Change, Transaction, followed::TableShape};
use hoplake_testkit::generate::SplitMix64;
use tokio::sync::Notify;

use super::tables::{Datum, MEMBER, NO_NUMBER, NOTE, PERSON, Row, RowImages, TABLES, TEAM, Tables, Work};
use crate::bucket::EPOCH_UNIX_MS;

/// The most that a transaction says it takes, so that few of them fill the queues of a feed.
const TRANSACTION_BYTES_MAX: u64 = 40 << 10;

/// A database in memory. A position is how many transactions there were.
pub struct Database {
    /// How it logs.
    pub kind: RowImages,
    state: Mutex<State>,
    /// There is one more transaction. Not a `watch`: that wakes its receivers in any order.
    pub grown: Notify,
}

struct State {
    /// The tables at each position.
    tables: Vec<Arc<Tables>>,
    log: Vec<Transaction>,
    /// How often each table was altered, at each position.
    alterations: Vec<[u32; TABLES.len()]>,
    /// What comes before this position is no longer in the log.
    purged: u64,
}

impl Database {
    /// A database without rows.
    pub fn new(kind: RowImages) -> Self {
        let state =
            State { tables: vec![Arc::default()], log: Vec::new(), alterations: vec![[0; TABLES.len()]], purged: 0 };
        Self { kind, state: Mutex::new(state), grown: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest position.
    pub fn position(&self) -> u64 {
        self.state().log.len() as u64
    }

    /// The tables at a position, if there was one.
    pub fn at(&self, position: u64) -> Option<Arc<Tables>> {
        self.state().tables.get(usize::try_from(position).ok()?).cloned()
    }

    /// The transaction behind a position, if there is one; an error if it is purged.
    pub fn behind(&self, position: u64) -> Result<Option<Transaction>, ()> {
        let state = self.state();
        if position < state.purged {
            return Err(());
        }
        Ok(state.log.get(usize::try_from(position).unwrap_or(usize::MAX)).cloned())
    }

    /// The bytes of the transactions between two positions.
    pub fn bytes_between(&self, from: u64, until: u64) -> usize {
        let state = self.state();
        // Of transactions that change nothing, a feed keeps one at most.
        let some = state.log[from as usize..until as usize].iter().filter(|it| !it.changes.is_empty());
        some.map(|it| it.bytes).sum()
    }

    /// What a table is at a position.
    pub fn shape(&self, table: usize, position: u64) -> TableShape {
        TABLES[table].shape(self.state().alterations[position as usize][table])
    }

    /// Computes a column anew in all rows of a table, and returns the position behind that. No row of it is in the log.
    pub fn alter(&self, table: usize, now_ms: u64) -> u64 {
        let mut state = self.state();
        let mut tables = Tables::clone(state.tables.last().expect("there is one from the beginning"));
        tables.alter(table);
        let mut alterations = *state.alterations.last().expect("there is one from the beginning");
        alterations[table] += 1;
        let position = state.push(tables, alterations, Vec::new(), 100, now_ms);
        self.grown.notify_waiters();
        position
    }

    /// Forgets what comes before a position.
    pub fn purge(&self, position: u64) {
        let mut state = self.state();
        state.purged = state.purged.max(position);
    }

    /// Runs a random transaction, and returns the position behind it.
    pub fn transact(&self, random: &mut SplitMix64, now_ms: u64) -> u64 {
        let mut state = self.state();
        let before = state.tables.last().expect("there is one from the beginning");
        let mut work = Work::new(Tables::clone(before), self.kind);
        let statements = [1, 1, 2, 4, 8][random.below(5) as usize];
        for _ in 0..statements {
            statement(&mut work, random);
        }
        let bytes = 100 + work.changes.iter().map(Change::bytes).sum::<usize>();
        let large = if random.below(8) == 0 { random.below(TRANSACTION_BYTES_MAX) as usize } else { 0 };
        let alterations = *state.alterations.last().expect("there is one from the beginning");
        let position = state.push(work.tables, alterations, work.changes, bytes + large, now_ms);
        self.grown.notify_waiters();
        position
    }
}

impl State {
    fn push(
        &mut self,
        tables: Tables,
        alterations: [u32; TABLES.len()],
        changes: Vec<Change>,
        bytes: usize,
        now_ms: u64,
    ) -> u64 {
        let position = self.log.len() as u64 + 1;
        let committed_unix_ms = (EPOCH_UNIX_MS + now_ms) as i64;
        let behind = position.to_string();
        self.log.push(Transaction {
            position: behind,
            committed_unix_ms,
            changes: changes.into(),
            bytes,
            tables: Vec::new(),
        });
        self.tables.push(Arc::new(tables));
        self.alterations.push(alterations);
        position
    }
}

/// Values from few, so that rows meet.
struct Dice<'a>(&'a mut SplitMix64, RowImages);

impl Dice<'_> {
    fn person(&mut self) -> Datum {
        Datum::Int(self.0.below(8) as i64)
    }

    fn person_or_null(&mut self) -> Datum {
        if self.0.below(3) == 0 { Datum::Null } else { self.person() }
    }

    fn team(&mut self) -> Datum {
        Datum::Text(["a", "b:c", "d", "e"][self.0.below(4) as usize].into())
    }

    fn note(&mut self) -> Datum {
        Datum::Int(self.0.below(6) as i64)
    }

    fn day(&mut self) -> Datum {
        Datum::Day(20_000 + self.0.below(3) as i32)
    }

    fn name(&mut self) -> Datum {
        Datum::Text(format!("name {}", self.0.below(100)))
    }

    /// Mostly a number. Of a row that was set aside, nobody knows what a cascade changes that the log does not have: only tables without
    /// foreign keys have bad rows then.
    fn number(&mut self, table: usize) -> Datum {
        let may_be_bad = self.1 == RowImages::Keys || table == NOTE;
        match self.0.below(12) {
            0 if may_be_bad => Datum::Text(NO_NUMBER.into()),
            0 | 1 => Datum::Null,
            _ => Datum::Text(self.0.below(100).to_string()),
        }
    }

    fn flag(&mut self) -> Datum {
        Datum::Int(i64::from(self.0.below(4) == 0))
    }
}

/// A random statement, which the database may reject.
fn statement(work: &mut Work, random: &mut SplitMix64) {
    let what = random.below(40);
    let mut dice = Dice(random, work.kind);
    match what {
        0..=5 => {
            let row = vec![dice.person(), dice.name(), dice.flag(), dice.person_or_null(), dice.number(PERSON)];
            work.run(|work| work.insert(PERSON, row));
        }
        6..=8 => set(work, PERSON, &[dice.person()], &[(1, dice.name()), (4, dice.number(PERSON))]),
        9..=10 => set(work, PERSON, &[dice.person()], &[(2, dice.flag())]),
        11..=12 => set(work, PERSON, &[dice.person()], &[(3, dice.person_or_null())]),
        13..=14 => set(work, PERSON, &[dice.person()], &[(0, dice.person())]),
        15..=16 => delete(work, PERSON, &[dice.person()]),
        17..=19 => {
            let row = vec![dice.team(), dice.name()];
            work.run(|work| work.insert(TEAM, row));
        }
        20 => set(work, TEAM, &[dice.team()], &[(0, dice.team()), (1, dice.name())]),
        21 => delete(work, TEAM, &[dice.team()]),
        22..=26 => {
            let row = vec![dice.person(), dice.team(), dice.day(), dice.number(MEMBER)];
            work.run(|work| work.insert(MEMBER, row));
        }
        27..=28 => set(work, MEMBER, &[dice.person(), dice.team(), dice.day()], &[(3, dice.number(MEMBER))]),
        29 => set(work, MEMBER, &[dice.person(), dice.team(), dice.day()], &[(0, dice.person()), (2, dice.day())]),
        30 => delete(work, MEMBER, &[dice.person(), dice.team(), dice.day()]),
        31..=34 => {
            let row = vec![dice.note(), dice.person_or_null(), dice.number(NOTE)];
            work.run(|work| work.insert(NOTE, row));
        }
        35 => set(work, NOTE, &[dice.note()], &[(1, dice.person_or_null()), (2, dice.number(NOTE))]),
        36 => set(work, NOTE, &[dice.note()], &[(0, dice.note())]),
        37 => delete(work, NOTE, &[dice.note()]),
        // Tables that no mapping has are changed, too.
        38 => {}
        _ if dice.0.below(4) > 0 => {}
        _ => work.truncate(if dice.0.below(2) == 0 { NOTE } else { MEMBER }),
    }
}

fn set(work: &mut Work, table: usize, key: &[Datum], columns: &[(usize, Datum)]) {
    work.run(|work| {
        let mut row: Row = work.row(table, key)?;
        for (column, datum) in columns {
            row[*column] = datum.clone();
        }
        work.update(table, key, row)
    });
}

fn delete(work: &mut Work, table: usize, key: &[Datum]) {
    work.run(|work| work.delete(table, key));
}
