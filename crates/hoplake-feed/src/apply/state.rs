//! What a feed has to remember besides its position: its tables, edges that wait, changes that were set aside, and a stop.
//!
//! It is an object next to the graph, and a position names it, so that both are published by one commit. The object is never changed:
//! each commit that changes the state writes another one, and the one before is removed when the commit is acknowledged. It is JSON
//! Lines, compressed with zstd. Dead letters themselves are in objects of their own, which it lists.

use std::collections::{BTreeMap, BTreeSet};

use hoplake::Store;
use serde::{Deserialize, Serialize};

use crate::{
    FeedError, TableName,
    apply::{
        element::{Element, ElementLine, properties_of, properties_to_json},
        fold::{EdgeId, Owner, WaitingChanges, WaitingEdge, WaitingEdges},
        objects::Folder,
    },
    error::StopNote,
    mapping::followed::FollowedTable,
};

/// What a feed has to remember.
#[derive(Debug, Clone, Default)]
pub struct FeedState {
    /// Edges that wait.
    pub waiting: WaitingEdges,
    /// The names of which changes were set aside.
    pub held: BTreeSet<String>,
    /// The objects with these changes, oldest first, and how many each has.
    pub letters: Vec<(String, u64)>,
    /// The tables, as they were at the position. A feed of before this was kept has none.
    pub tables: BTreeMap<TableName, FollowedTable>,
    /// Why the feed does not go on from there, until an operator decides.
    pub stop: Option<StopNote>,
    /// The size of its object, before it is compressed.
    pub bytes: u64,
}

/// States that have the same to remember are equal, however they are written.
impl PartialEq for FeedState {
    fn eq(&self, other: &Self) -> bool {
        self.waiting == other.waiting
            && self.held == other.held
            && self.letters == other.letters
            && self.tables == other.tables
            && self.stop == other.stop
    }
}

impl FeedState {
    /// Whether there is nothing to remember.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.letters.is_empty() && self.tables.is_empty() && self.stop.is_none()
    }

    /// How many changes were set aside.
    pub fn dead_letters(&self) -> u64 {
        self.letters.iter().map(|(_, count)| count).sum()
    }
}

/// The folder of all sources' states.
pub(crate) const FOLDER: &str = "feeds";

/// Where those of a source are.
fn folder(source: &str) -> Folder<'_> {
    Folder { kind: FOLDER, source, ending: ".state.jsonl.zst" }
}

/// The name of the object of a state.
pub(crate) fn object_name(source: &str, id: &str) -> String {
    folder(source).name(id)
}

/// A state takes this many bytes at most before it is compressed.
const BYTES_MAX: usize = 256 << 20;

/// A line of the object.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Waiting(Box<WaitingLine>),
    Held(String),
    Letters(String, u64),
    Table(TableName, Box<FollowedTable>),
    Stop(StopNote),
}

/// An edge that waits, as it is written.
#[derive(Serialize, Deserialize)]
struct WaitingLine {
    edge: ElementLine,
    properties: serde_json::Value,
    owner: char,
}

/// Writes a state, notes its size there, and returns the name by which a position refers to it; nothing if there is nothing to
/// remember.
///
/// # Errors
/// The store's.
pub async fn write(store: &Store, source: &str, state: &mut FeedState) -> Result<Option<String>, FeedError> {
    state.bytes = 0;
    if state.is_empty() {
        return Ok(None);
    }
    let mut text = Vec::new();
    let waiting = state.waiting.iter().map(|(id, edge)| Line::Waiting(Box::new(WaitingLine::of(id, edge))));
    let held = state.held.iter().map(|name| Line::Held(name.clone()));
    let letters = state.letters.iter().map(|(id, count)| Line::Letters(id.clone(), *count));
    let tables = state.tables.iter().map(|(name, table)| Line::Table(name.clone(), Box::new(table.clone())));
    let stop = state.stop.iter().cloned().map(Line::Stop);
    for line in waiting.chain(held).chain(letters).chain(tables).chain(stop) {
        serde_json::to_writer(&mut text, &line).map_err(|error| FeedError::invalid(error.to_string()))?;
        text.push(b'\n');
    }
    // What could not be read again is not written.
    if text.len() > BYTES_MAX {
        let waiting = state.waiting.len();
        let held = state.held.len();
        let why = format!(
            "{waiting} edges wait and {held} names are held, more than a feed can remember ({BYTES_MAX} bytes)"
        );
        return Err(
            FeedError::invalid(why).hint("apply or discard dead letters, or give foreign keys missing = \"stub\"")
        );
    }
    state.bytes = text.len() as u64;
    let compressed = zstd::bulk::compress(&text, 1).map_err(|error| FeedError::unavailable(error.to_string()))?;
    folder(source).write(store, compressed.into()).await.map(Some)
}

/// Reads a state; `None` if the object is gone.
///
/// # Errors
/// [`Invalid`](crate::FeedErrorKind::Invalid) if the object is damaged; the store's.
pub async fn read(store: &Store, source: &str, id: &str) -> Result<Option<FeedState>, FeedError> {
    let folder = folder(source);
    let damaged = || folder.damaged(id, &"is damaged");
    let Some(bytes) = folder.read(store, id).await? else { return Ok(None) };
    let text = zstd::bulk::decompress(&bytes, BYTES_MAX).map_err(|_| damaged())?;
    let mut state = FeedState { bytes: text.len() as u64, ..FeedState::default() };
    let mut changes = WaitingChanges::new();
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice(line).map_err(|_| damaged())? {
            Line::Waiting(line) => {
                let (id, edge) = line.read().ok_or_else(damaged)?;
                changes.insert(id, Some(edge));
            }
            Line::Held(name) => drop(state.held.insert(name)),
            Line::Letters(id, count) => state.letters.push((id, count)),
            Line::Table(name, table) => drop(state.tables.insert(name, *table)),
            Line::Stop(stop) => state.stop = Some(stop),
        }
    }
    state.waiting.apply(&changes);
    Ok(Some(state))
}

/// The error where a position names an object that is gone.
pub fn lost(source: &str, id: &str) -> FeedError {
    folder(source).damaged(id, &"is not there")
}

/// Removes an object that no position names any more. That it fails leaves an object of no use.
pub async fn remove(store: &Store, source: &str, id: &str) {
    folder(source).remove(store, &[id.to_owned()]).await;
}

impl WaitingLine {
    fn of(id: &EdgeId, edge: &WaitingEdge) -> Self {
        Self {
            edge: ElementLine::of(&Element::Edge(id.clone())),
            properties: properties_to_json(&edge.properties),
            owner: match edge.owner {
                Owner::Source => 's',
                Owner::Target => 't',
                Owner::Row => 'r',
            },
        }
    }

    fn read(self) -> Option<(EdgeId, WaitingEdge)> {
        let Element::Edge(id) = self.edge.read()? else { return None };
        let owner = match self.owner {
            's' => Owner::Source,
            't' => Owner::Target,
            'r' => Owner::Row,
            _ => return None,
        };
        Some((id, WaitingEdge { properties: properties_of(&self.properties)?, owner }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        mapping::followed::MappedEntry,
        source::shape::{ColumnShape, TableShape},
    };

    #[tokio::test]
    async fn a_state_is_read_as_it_was_written() {
        let store = Store::open("memory://states").unwrap();
        let shape = TableShape {
            id: Some(16_384),
            storage: Some("16384".into()),
            published: Some("p 1 2".into()),
            schema_published: Some("s 1 2".into()),
            moved: Some("5 6".into()),
            key: Some("1".into()),
            partitions: Some([(16_390, false), (16_400, true)].into()),
            columns: vec![
                ColumnShape::named("id"),
                ColumnShape {
                    number: Some(2),
                    kind: Some("23:-1".into()),
                    version: Some("7".into()),
                    ..ColumnShape::named("a")
                },
            ],
        };
        let entry = MappedEntry {
            label: "Person".into(),
            ends: None,
            edges: vec![["in".into(), "Person".into(), "Team".into()]],
            says: BTreeMap::from([("where".into(), "a > 5".into())]),
            columns: BTreeMap::from([("a".into(), "ignored".into())]),
        };
        let table = FollowedTable { shape, carried: BTreeSet::from(["id".into()]), entries: vec![entry] };
        let mut state = FeedState {
            held: BTreeSet::from(["Person:1".into()]),
            letters: vec![("01J".into(), 3)],
            tables: BTreeMap::from([(TableName::new("hr", "person"), table)]),
            stop: Some(StopNote::new("0-1-18", "at 0-1-18, table hr.person: column a is dropped")),
            ..FeedState::default()
        };
        let id = write(&store, "hr", &mut state).await.unwrap().unwrap();
        assert_eq!(read(&store, "hr", &id).await.unwrap(), Some(state));
    }

    #[tokio::test]
    async fn a_state_of_before_tables_were_kept_is_read() {
        let store = Store::open("memory://states").unwrap();
        let text = "{\"held\":\"Person:1\"}\n{\"letters\":[\"01J\",3]}\n";
        let compressed = zstd::bulk::compress(text.as_bytes(), 1).unwrap();
        let id = folder("hr").write(&store, compressed.into()).await.unwrap();
        let state = read(&store, "hr", &id).await.unwrap().unwrap();
        assert_eq!((state.dead_letters(), state.tables.len(), state.stop), (3, 0, None));
    }
}
