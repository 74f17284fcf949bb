//! What each version of a graph that follows tables has to be.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use hoplake::{Error, Graph, Key, Name, Properties, ScanRequest, Store, Value, VertexRef, arrow::array::RecordBatch};
use hoplake_feed::{
    Element, FeedError, Position,
    followed::StopNote,
    letters::{self, Letter},
    state,
};
use object_store::{ObjectStoreExt, memory::InMemory, path::Path};

use super::{
    database::Database,
    source::SOURCE,
    tables::{Content, Expected, SINCE, Texts, edge, text},
};
use crate::bucket::Bucket;

/// A commit that is no feed's.
pub const DAMAGE: &str = "damage";

/// A version as it was found.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The version.
    pub version: u64,
    /// The message of its commit.
    message: String,
    /// The position of its source.
    pub position: Position,
    /// Everything in the graph.
    pub content: Content,
    /// What of it is not what the tables say.
    pub differences: BTreeSet<Element>,
    /// The names of which changes were set aside.
    pub held: BTreeSet<String>,
    /// These changes.
    pub letters: Vec<Letter>,
    /// Why the feed does not go on from there.
    pub stop: Option<StopNote>,
}

impl Observed {
    /// The source's own position.
    pub fn number(&self) -> u64 {
        self.position.of_source.parse().unwrap_or_default()
    }
}

/// What was found so far, and what it means for what comes next.
pub struct Oracle {
    database: Arc<Database>,
    /// By version.
    pub seen: BTreeMap<u64, Observed>,
    /// Who moved the position last.
    mover: String,
    /// Feeds that others have overtaken.
    overtaken: BTreeSet<String>,
    /// Whether somebody has changed the graph by hand, or given dead letters up: then it may differ until it is repaired.
    pub is_spoiled: bool,
}

impl Oracle {
    /// Knows nothing yet.
    pub fn new(database: Arc<Database>) -> Self {
        let mover = String::new();
        let overtaken = BTreeSet::new();
        Self { database, seen: BTreeMap::new(), mover, overtaken, is_spoiled: false }
    }

    /// The newest version that was looked at.
    pub fn last(&self) -> Option<&Observed> {
        self.seen.last_key_value().map(|(_, observed)| observed)
    }

    /// What the tables said at a position.
    pub fn expected(&self, position: u64) -> Result<Expected, String> {
        let tables =
            self.database.at(position).ok_or_else(|| format!("no transaction ended at position {position}"))?;
        Ok(Expected::of(&tables))
    }

    /// Takes a version; the error is what does not hold.
    pub fn take(&mut self, mut observed: Observed) -> Result<(), String> {
        let Observed { version, .. } = observed;
        let expected = self.expected(observed.number())?;
        if observed.position.is_copying {
            return Ok(());
        }
        observed.differences = expected.differences(&observed.content, &observed.held);
        if !self.is_spoiled {
            self.check_letters(&observed)?;
            if let Some(element) = observed.differences.first() {
                let here = expected.content.get(element);
                let there = observed.content.get(element);
                let at = observed.number();
                return Err(format!("version {version} at {at}: {element} is {there:?}, where tables say {here:?}"));
            }
        }
        if let Some(before) = self.seen.get(&(version - 1)) {
            self.check_after(before, &observed, &expected)?;
        }
        self.check_mover(&observed)?;
        self.seen.insert(version, observed);
        Ok(())
    }

    fn check_after(&self, before: &Observed, observed: &Observed, expected: &Expected) -> Result<(), String> {
        let version = observed.version;
        let here = &observed.position;
        let there = &before.position;
        if observed.number() < before.number() {
            return Err(format!("version {version} is at {here}, behind {there}"));
        }
        let new = observed.differences.difference(&before.differences).next();
        let Some(new) = new.filter(|_| observed.message != DAMAGE) else { return Ok(()) };
        let was_held = self.expected(before.number())?.is_held(new, &before.held);
        let is_allowed = match observed.number() > before.number() {
            // What comes upon a graph that is not right may not be right, either; which edges wait does not show.
            true => !before.differences.is_empty() || (self.is_spoiled && matches!(new, Element::Edge(_))),
            // Of a letter that is given up nothing is known any more.
            false => was_held && here != there,
        };
        if is_allowed {
            return Ok(());
        }
        let found = observed.content.get(new);
        let due = expected.content.get(new);
        Err(format!("version {version} at {here}, after {there}: {new} is {found:?}, where tables say {due:?}"))
    }

    /// A change was set aside because its row cannot be read, or behind one of its name.
    fn check_letters(&self, observed: &Observed) -> Result<(), String> {
        let mut held = BTreeSet::new();
        for Letter { position, names, why, .. } in &observed.letters {
            let is_due = match why {
                Some(why) => why.contains("it is not int64"),
                None => names.iter().any(|name| held.contains(name)),
            };
            if !is_due {
                let version = observed.version;
                return Err(format!("version {version} has a letter of {names:?} at {position} for {why:?}"));
            }
            held.extend(names.iter().cloned());
        }
        match held == observed.held {
            true => Ok(()),
            false => {
                Err(format!("version {} holds {:?}, and has letters of {held:?}", observed.version, observed.held))
            }
        }
    }

    /// Of two feeds one goes on, and the other never again.
    fn check_mover(&mut self, observed: &Observed) -> Result<(), String> {
        let moved = self.last().is_none_or(|last| last.number() < observed.number());
        let writer = &observed.position.writer;
        if !moved || *writer == self.mover {
            return Ok(());
        }
        if self.overtaken.contains(writer) {
            return Err(format!("feed {writer} goes on in version {}, although it was overtaken", observed.version));
        }
        self.overtaken.insert(std::mem::replace(&mut self.mover, writer.clone()));
        Ok(())
    }
}

/// Reads all of a version, with what the feed remembered there.
pub async fn observe(graph: &Graph, remembered: Bucket, message: String) -> Result<Option<Observed>, FeedError> {
    let Some(position) = graph.source_position(SOURCE) else { return Ok(None) };
    let position = Position::parse(position)?;
    let objects = InMemory::new();
    for (name, stored) in remembered {
        let put = objects.put(&Path::from(name), stored.bytes.into()).await;
        put.expect("memory takes all");
    }
    let store = Store::new(Arc::new(objects), Path::default(), "memory://remembered");
    let mut held = BTreeSet::new();
    let mut letters = Vec::new();
    let mut stop = None;
    if let Some(id) = &position.state {
        let state = state::read(&store, SOURCE, id).await?;
        let state = state.ok_or_else(|| state::lost(SOURCE, id))?;
        for (id, _) in &state.letters {
            letters.extend(letters::read(&store, SOURCE, id).await?);
        }
        (held, stop) = (state.held, state.stop);
    }
    let version = graph.version();
    let content = content(graph).await?;
    Ok(Some(Observed { version, message, position, content, differences: BTreeSet::new(), held, letters, stop }))
}

/// All vertices and edges.
async fn content(graph: &Graph) -> Result<Content, Error> {
    let mut content = Content::new();
    let mut query = graph.query();
    let schema = graph.schema();
    for label in &schema.vertex_labels {
        let select = label.properties.iter().map(|property| property.name.clone()).collect();
        let request = ScanRequest { labels: vec![label.name.clone()], select, ..ScanRequest::default() };
        let mut scan = query.scan(&request)?;
        while let Some(rows) = query.next_rows(&mut scan).await? {
            let keys = rows.batch.column_by_name(hoplake::KEY_COLUMN).expect("rows have their keys");
            for row in 0..rows.batch.num_rows() {
                let vertex = vertex(&label.name, &Value::at(keys, row));
                content.entry(Element::Vertex(vertex)).or_default().push(texts(&row_of(&rows.batch, row)));
            }
        }
    }
    for edge_type in &schema.edge_types {
        let label = |id| schema.label(id).map(|label| label.name.clone()).unwrap_or_default();
        let source = label(edge_type.source);
        let target = label(edge_type.target);
        let columns: Vec<_> = edge_type.properties.iter().map(|property| property.name.clone()).collect();
        let mut scan = query.scan_edges(&edge_type.label, (source.as_str(), target.as_str()), &columns).await?;
        while let Some(batch) = query.next_edges(&mut scan).await? {
            for row in 0..batch.num_rows() {
                let end = |column: usize, label: &str| vertex(label, &Value::at(batch.column(column), row));
                let properties = row_of(&batch, row);
                let since = properties.get(SINCE).cloned();
                let id = edge(&edge_type.label, end(0, &source), end(1, &target), since);
                content.entry(id).or_default().push(texts(&properties));
            }
        }
    }
    content.values_mut().for_each(|all| all.sort());
    Ok(content)
}

fn vertex(label: &str, key: &Value) -> VertexRef {
    let key = match key {
        Value::Int64(key) => Key::Int64(*key),
        Value::String(key) => Key::String(key.clone()),
        other => unreachable!("{other} is no key"),
    };
    VertexRef { label: label.into(), key }
}

fn row_of(batch: &RecordBatch, row: usize) -> Properties {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns()).filter(|(field, _)| !field.name().starts_with('~'));
    let values = columns.map(|(field, column)| (Name::from(field.name().as_str()), Value::at(column, row)));
    values.filter(|(_, value)| *value != Value::Null).collect()
}

fn texts(properties: &Properties) -> Texts {
    properties.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}
