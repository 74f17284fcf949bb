//! Changes become transactions again.
//!
//! A log has the changes of a transaction one by one, perhaps in several partitions, and some of them twice: a producer that was killed
//! goes on from where it knows that it was. What is put together here is handed on once, whole, and in the order of the commits.
//!
//! ```text
//! change ──▶ was it handed on? ──▶ open transactions ──▶ queue, in the order of commits ──▶ transaction and position
//! begin, end ───────────────────────────┘ how many changes
//! ```
//! A position has, of each part of the log, the offset at or before the first record of all that was not handed on.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use super::{
    event::{ChangeEvent, ChangeKind, Event, Named, Order, Tables},
    place::{LogPosition, Mark, Offsets, Place},
    transport::Record,
    unfinished::{End, Kept, LoggedTransaction, ResumePoints, begin_again},
};
use crate::{
    Change, FeedError, Images, RowChange, TableName, Transaction,
    error::{COPY_ANEW, StopNote},
    source::{
        Following,
        shape::TableShape,
        statements::{Effect, effects, shown},
    },
};

/// About the memory of a change next to its row, of a number, and of a transaction next to its changes: keys, and where they are kept.
const KEPT_BYTES: usize = size_of::<Kept>() + 64;
const NUMBER_BYTES: usize = 40;
const OPEN_BYTES: usize = size_of::<LoggedTransaction>() + 256;

/// What was read of a log and not handed on.
pub(super) struct Assembler {
    following: Following,
    tables: Tables,
    /// Whether the log has several parts.
    is_split: bool,
    parts: BTreeMap<String, PartitionProgress>,
    place: Place,
    open: HashMap<String, LoggedTransaction>,
    queue: VecDeque<Queued>,
    queued: HashSet<String>,
    /// Tables that have changed since the last transaction was handed on.
    changed: Vec<(TableName, TableShape)>,
    bytes: usize,
    /// The transaction whose changes come now, where nothing says where it ends.
    current: Option<String>,
    /// The last transaction that ended because nothing came, and where.
    quiet: Option<(String, (u64, u64))>,
}

/// How far one part (partition, shard, file) of the log was read.
struct PartitionProgress {
    records: u64,
    after: String,
}

/// What is handed on next.
enum Queued {
    Transaction(String),
    /// By itself: a row of a snapshot, or the effect of a statement.
    Change {
        change: Change,
        committed_unix_ms: i64,
        mark: Option<Mark>,
        held: ResumePoints,
    },
    Stop(FeedError),
}

impl Assembler {
    /// After a position. `changed` are tables that are other ones than they were there.
    pub(super) fn new(
        position: LogPosition,
        tables: Tables,
        following: Following,
        changed: Vec<(TableName, TableShape)>,
        is_split: bool,
    ) -> Self {
        let part = |(name, after)| (name, PartitionProgress { records: 0, after });
        Self {
            following,
            tables,
            is_split,
            parts: position.offsets.into_iter().map(part).collect(),
            place: position.place,
            open: HashMap::new(),
            queue: VecDeque::new(),
            queued: HashSet::new(),
            changed,
            bytes: 0,
            current: None,
            quiet: None,
        }
    }

    pub(super) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Whether a transaction is open of which nothing says where it ends.
    pub(super) fn is_undecided(&self) -> bool {
        self.current.is_some()
    }

    /// Takes what a record says.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) if it cannot be followed.
    pub(super) fn take(&mut self, record: &Record, event: Event) -> Result<(), FeedError> {
        let held = self.read(record);
        // Records of one part come in their order, whatever the clock says.
        let written_ms = if self.is_split { record.written_unix_ms } else { 0 };
        match event {
            Event::Nothing => Ok(()),
            Event::Change(change) => self.change(record, written_ms, *change, held),
            Event::Begin { name, mark } => self.begin(record, written_ms, name, &mark, held),
            Event::End { name, mark, changes, committed_unix_ms } => {
                if self.was_handed_on(&mark)? {
                    // Its beginning may have come again, too.
                    self.remove(&name);
                    return Ok(());
                }
                let open = self.opened(&name, held);
                if open.is_before_beginning(&record.part, written_ms) {
                    return Ok(());
                }
                open.end = Some(End::Numbers { all: changes, written_ms });
                open.end_part.clone_from(&record.part);
                open.count_again();
                open.mark = Some(mark);
                open.committed_unix_ms = committed_unix_ms;
                let come = open.numbers.len() as u64;
                if !self.is_split && come != changes {
                    let why = format!("the log has {come} changes of transaction {name}, and {changes} by its end");
                    return Err(FeedError::invalid(why).hint(begin_again()));
                }
                self.enqueue(name);
                self.check_bytes()
            }
            Event::Statement { sql, database, mark } => self.statement(record, &sql, &database, mark, held),
        }
    }

    /// Takes the transaction for complete of which nothing says where it ends: nothing more comes for now.
    pub(super) fn settle(&mut self) {
        if let Some(name) = self.current.take() {
            let last = self.open.get(&name).and_then(|open| open.changes.last_key_value());
            self.quiet = last.map(|(_, kept)| (name.clone(), kept.at));
            self.end_uncounted(name);
        }
    }

    /// Notes that a record was read, and returns where its part of the log was before it.
    fn read(&mut self, record: &Record) -> ResumePoints {
        let new = || PartitionProgress { records: 0, after: record.before.clone() };
        let part = self.parts.entry(record.part.clone()).or_insert_with(new);
        let before = (part.records, std::mem::replace(&mut part.after, record.after.clone()));
        part.records += 1;
        ResumePoints::from([(record.part.clone(), before)])
    }

    fn was_handed_on(&self, mark: &Mark) -> Result<bool, FeedError> {
        self.place.has(mark).map_err(|why| FeedError::invalid(why).hint(begin_again()))
    }

    /// The transaction of a name, which a record is about.
    fn opened(&mut self, name: &str, held: ResumePoints) -> &mut LoggedTransaction {
        if !self.open.contains_key(name) {
            self.bytes += OPEN_BYTES;
        }
        let open = self.open.entry(name.to_owned()).or_default();
        for (part, before) in held {
            open.held.entry(part).or_insert(before);
        }
        open
    }

    /// The transaction of a name, which is no longer open.
    fn remove(&mut self, name: &str) -> Option<LoggedTransaction> {
        let open = self.open.remove(name)?;
        let of_changes: usize = open.changes.values().map(|kept| kept.bytes).sum();
        self.bytes -= OPEN_BYTES + open.numbers.len() * NUMBER_BYTES + of_changes;
        Some(open)
    }

    fn enqueue(&mut self, name: String) {
        if self.queued.insert(name.clone()) {
            self.queue.push_back(Queued::Transaction(name));
        }
    }

    fn change(
        &mut self,
        record: &Record,
        written_ms: i64,
        event: ChangeEvent,
        held: ResumePoints,
    ) -> Result<(), FeedError> {
        let ChangeEvent { change, kind, transaction, mark, committed_unix_ms, .. } = event;
        if matches!(kind, ChangeKind::Snapshot(_)) {
            if let Some(change) = change {
                self.bytes += kept_bytes(&change);
                self.queue.push_back(Queued::Change { change, committed_unix_ms, mark: None, held });
            }
            return self.check_bytes();
        }
        let metadata = "let Debezium write them: provide.transaction.metadata=true";
        let (Some(named), Some(mark)) = (transaction, mark) else {
            return Err(FeedError::invalid("a change does not say to which transaction it belongs").hint(metadata));
        };
        let is_counted = matches!(named.order, Order::Counted(_));
        if self.is_split && !is_counted {
            let why = "the log has several partitions, and its records do not say where transactions end";
            return Err(FeedError::invalid(why).hint(format!("{metadata}; or write one topic with one partition")));
        }
        let is_alone = kind == ChangeKind::Truncate { is_alone: true };
        if self.was_handed_on(&mark)? {
            return self.repeated(record, &named, is_alone);
        }
        if named.order == Order::Uncounted {
            self.begin_uncounted(&named.name);
        }
        if is_counted && change.is_none() {
            return Ok(());
        }
        let open = self.opened(&named.name, held);
        open.committed_unix_ms = open.committed_unix_ms.max(committed_unix_ms);
        let is_end = is_alone || named.order == Order::UntilLast(None);
        if !is_counted || is_end {
            open.mark = Some(match (open.mark.take(), mark) {
                (Some(Mark::Lsn { end: before, .. }), Mark::Lsn { begin, end }) => {
                    Mark::Lsn { begin, end: end.max(before) }
                }
                (_, mark) => mark,
            });
        }
        let numbers_before = open.numbers.len();
        open.count(&named, written_ms)?;
        if is_end {
            open.end = Some(End::Now);
        }
        let mut added = 0;
        if let Some(change) = change {
            let number = if let Order::Counted(number) = named.order { Some(number) } else { None };
            let bytes = kept_bytes(&change);
            if open.insert(Kept { change, at: named.at, number, bytes }) {
                added = bytes;
            }
        }
        let numbers = open.numbers.len();
        self.bytes = self.bytes + added + numbers * NUMBER_BYTES - numbers_before * NUMBER_BYTES;
        if is_end {
            self.current = self.current.take().filter(|current| *current != named.name);
            self.enqueue(named.name);
        }
        self.check_bytes()
    }

    /// A change comes of a transaction that was handed on.
    fn repeated(&self, record: &Record, named: &Named, is_alone: bool) -> Result<(), FeedError> {
        if self.quiet.as_ref().is_some_and(|(name, last)| *name == named.name && named.at > *last) {
            let why = format!("transaction {} went on after it was taken for complete, since nothing came", named.name);
            let hint = format!("set provide.transaction.metadata=true, or raise source.quiet_ms, and {COPY_ANEW}");
            return Err(FeedError::invalid(why).hint(hint));
        }
        // Nothing says when it has to come, and another partition may have been read further.
        if is_alone && self.is_split && self.following.accepted.as_deref() != Some(&record.at) {
            let why = "a TRUNCATE comes after later transactions of other partitions";
            let hint = format!(
                "{COPY_ANEW}; or, if you know that it is repeated, run the feed with --accept-ddl {}; one topic with one partition has \
                 no such trouble",
                record.at
            );
            return Err(FeedError::invalid(why).hint(hint));
        }
        Ok(())
    }

    fn begin(
        &mut self,
        record: &Record,
        written_ms: i64,
        name: String,
        mark: &Mark,
        held: ResumePoints,
    ) -> Result<(), FeedError> {
        // Of PostgreSQL only the ends of transactions say whether they were handed on, and in which order.
        let is_ordered = !matches!(mark, Mark::Lsn { .. });
        if is_ordered {
            if self.was_handed_on(mark)? {
                return Ok(());
            }
            self.end_statements(Some(&name))?;
        }
        let is_split = self.is_split;
        let open = self.opened(&name, held);
        let forgotten = open.begin(&record.part, written_ms, is_split);
        if is_ordered {
            open.mark = Some(mark.clone());
            self.enqueue(name);
        }
        self.bytes -= forgotten * NUMBER_BYTES;
        self.check_bytes()
    }

    /// Completes statements such as TRUNCATE and ALTER, which have a BEGIN record and no END, when a later transaction begins. If the transaction
    /// `before` is queued already, the producer has begun it again, and will begin all queued after it again.
    fn end_statements(&mut self, before: Option<&str>) -> Result<(), FeedError> {
        for queued in &self.queue {
            let Queued::Transaction(name) = queued else { continue };
            if before == Some(name) {
                break;
            }
            let Some(open) = self.open.get_mut(name).filter(|open| open.end.is_none()) else { continue };
            if !open.changes.is_empty() {
                let why = format!("transaction {name} has no end, and others come after it");
                return Err(FeedError::invalid(why).hint(begin_again()));
            }
            open.end = Some(End::Now);
        }
        Ok(())
    }

    /// A change comes of a transaction of which nothing says where it ends: the one before it has.
    fn begin_uncounted(&mut self, name: &str) {
        if self.current.as_deref() != Some(name)
            && let Some(before) = self.current.replace(name.to_owned())
        {
            self.end_uncounted(before);
        }
    }

    fn end_uncounted(&mut self, name: String) {
        if let Some(open) = self.open.get_mut(&name) {
            open.end = Some(End::Now);
            self.enqueue(name);
        }
    }

    fn statement(
        &mut self,
        record: &Record,
        sql: &str,
        database: &str,
        mark: Option<Mark>,
        held: ResumePoints,
    ) -> Result<(), FeedError> {
        if let Some(mark) = &mark
            && self.was_handed_on(mark)?
        {
            return Ok(());
        }
        // It commits what was before it.
        self.settle();
        if !self.is_split {
            self.end_statements(None)?;
        }
        for effect in effects(sql, database, &self.following.tables) {
            match effect {
                Effect::Truncates(table) => {
                    let change = Change::Truncate(table);
                    let mark = mark.clone();
                    let held = held.clone();
                    self.bytes += kept_bytes(&change);
                    self.queue.push_back(Queued::Change { change, committed_unix_ms: 0, mark, held });
                }
                Effect::Adds(table, names) => {
                    // Rows that have them wait for a catalog that does.
                    self.following.tables.entry(table).or_default().extend(names);
                }
                Effect::Unfollowable(_, why) if self.following.accepted.as_deref() != Some(&record.at) => {
                    let shown = shown(sql, self.following.show_rows);
                    let note = StopNote::new(&record.at, format!("at {}, {why}: {shown}", record.at));
                    self.queue.push_back(Queued::Stop(note.error()));
                }
                Effect::Unfollowable(table, _) => {
                    let shape = table.map(|table| (table.clone(), self.following.forget(&table)));
                    self.changed.extend(shape);
                }
            }
        }
        Ok(())
    }

    fn check_bytes(&self) -> Result<(), FeedError> {
        let most = self.following.transaction_bytes_max;
        if self.bytes as u64 <= most {
            return Ok(());
        }
        let first = self.incomplete().map_or_else(String::new, |(first, _)| format!("; the first: {first}"));
        let why = format!("transactions that are not complete have more than {most} bytes{first}");
        Err(FeedError::invalid(why)
            .hint("raise stream.transaction_bytes_max; is each topic with tables in source.url?"))
    }

    /// The transaction that comes next, if its end has come and its changes have not, and when its end was written.
    pub(super) fn incomplete(&self) -> Option<(String, i64)> {
        let Some(Queued::Transaction(name)) = self.queue.front() else { return None };
        match self.open.get(name)? {
            LoggedTransaction { end: Some(End::Numbers { all, written_ms }), counted, .. } if counted < all => {
                Some((format!("transaction {name} has {counted} of {all} changes"), *written_ms))
            }
            _ => None,
        }
    }

    /// The next transaction that is complete.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) if what comes next cannot be followed.
    pub(super) fn next(&mut self) -> Result<Option<Transaction>, FeedError> {
        let is_ready = match self.queue.front() {
            None => false,
            Some(Queued::Transaction(name)) => self.open.get(name).is_some_and(|open| match open.end {
                None => false,
                Some(End::Now) => true,
                Some(End::Numbers { all, .. }) => open.counted >= all,
            }),
            Some(_) => true,
        };
        let Some(next) = self.queue.pop_front_if(|_| is_ready) else { return Ok(None) };
        let (changes, bytes, committed_unix_ms) = match next {
            Queued::Stop(error) => return Err(error),
            Queued::Change { change, committed_unix_ms, mark, .. } => {
                if let Some(mark) = mark {
                    self.place.advance(&mark);
                }
                let bytes = kept_bytes(&change);
                self.bytes -= bytes;
                (vec![change], bytes, committed_unix_ms)
            }
            Queued::Transaction(name) => {
                self.queued.remove(&name);
                let open = self.remove(&name).unwrap_or_default();
                if let Some(mark) = &open.mark {
                    self.place.advance(mark);
                }
                let kept: Vec<_> = open.changes.into_values().collect();
                let bytes = kept.iter().map(|kept| kept.bytes).sum();
                (self.joined(kept), bytes, open.committed_unix_ms)
            }
        };
        let changes = changes.into();
        let tables = std::mem::take(&mut self.changed);
        Ok(Some(Transaction { position: self.position().to_string(), committed_unix_ms, changes, bytes, tables }))
    }

    /// Makes one change of the two that a changed key is.
    fn joined(&self, kept: Vec<Kept>) -> Vec<Change> {
        let mut changes: Vec<Change> = Vec::with_capacity(kept.len());
        let mut last_at = None;
        for Kept { change, at, .. } in kept {
            let is_same = last_at.replace(at) == Some(at);
            match (changes.pop_if(|last| is_same && is_key_change(last, &change)), change) {
                (
                    Some(Change::Row(deleted)),
                    Change::Row(RowChange { columns, images: Images::Insert(mut after), .. }),
                ) => {
                    let Images::Delete(before) = deleted.images else { continue };
                    if let Some(table) = self.tables.get(&columns.table) {
                        table.fill(&mut after, &before);
                    }
                    let images = Images::Update { before: Some(before), after };
                    changes.push(Change::Row(RowChange::new(columns, images)));
                }
                (_, change) => changes.push(change),
            }
        }
        changes
    }

    /// Where to read on.
    pub(super) fn position(&self) -> LogPosition {
        let mut offsets: BTreeMap<&String, (u64, &String)> =
            self.parts.iter().map(|(name, part)| (name, (part.records, &part.after))).collect();
        let of_queue = self.queue.iter().filter_map(|queued| match queued {
            Queued::Change { held, .. } => Some(held),
            _ => None,
        });
        for (name, (record, after)) in self.open.values().map(|open| &open.held).chain(of_queue).flatten() {
            if let Some(first) = offsets.get_mut(name).filter(|first| first.0 > *record) {
                *first = (*record, after);
            }
        }
        // A log that cannot be read again has no offsets.
        let offsets = offsets.into_iter().filter(|(_, (_, after))| !after.is_empty());
        let offsets: Offsets = offsets.map(|(name, (_, after))| (name.clone(), after.clone())).collect();
        LogPosition { offsets, place: self.place.clone() }
    }
}

fn is_key_change(first: &Change, second: &Change) -> bool {
    match (first, second) {
        (Change::Row(first), Change::Row(second)) => {
            first.columns == second.columns
                && matches!((&first.images, &second.images), (Images::Delete(_), Images::Insert(_)))
        }
        _ => false,
    }
}

/// About the memory of a change that is kept.
fn kept_bytes(change: &Change) -> usize {
    change.bytes() + KEPT_BYTES
}
