//! Rows by their key.

use std::{collections::HashMap, fmt::Debug, sync::Arc};

use futures::future::BoxFuture;

use super::{
    Run,
    batch::Batch,
    reduce::{ENTRY_BYTES, OwnedKey},
};
use crate::{
    error::Done,
    growth::Growth,
    value::{Value, value_bytes},
};

/// What each group becomes. Steps compute it, and they are above what a query collects: so this is known as a trait here.
pub(crate) trait GroupValue: Debug + Send + Sync {
    /// The value of each group, if it has one. The frame of a row is its group.
    fn of_groups<'a>(&'a self, run: &'a mut Run, rows: Batch, groups: usize)
    -> BoxFuture<'a, Done<Vec<Option<Value>>>>;
}

/// Rows by their key: what `group` collects before it computes a value of each group.
#[derive(Debug)]
pub(crate) struct Groups {
    value: Arc<dyn GroupValue>,
    keys: Vec<Value>,
    places: HashMap<OwnedKey, u32>,
    /// Entries that were there from the beginning.
    pub(crate) initial: Vec<(Value, Value)>,
    /// All rows; the frame of each is its group.
    rows: Batch,
    bytes: u64,
}

impl Groups {
    pub(crate) fn new(value: Arc<dyn GroupValue>) -> Self {
        Self { value, keys: Vec::new(), places: HashMap::new(), initial: Vec::new(), rows: Batch::default(), bytes: 0 }
    }

    /// Adds the rows that have a key.
    pub(crate) fn add(&mut self, keys: Vec<Option<Value>>, batch: &Batch, growth: &Growth) -> Done<()> {
        let places: Vec<u32> = (0..batch.len() as u32).filter(|at| keys[*at as usize].is_some()).collect();
        let mut rows = batch.take(&places, growth)?;
        for (row, key) in rows.rows.iter_mut().zip(keys.into_iter().flatten()) {
            growth.take(ENTRY_BYTES)?;
            let key = OwnedKey(key);
            row.frame = match self.places.get(&key) {
                Some(place) => *place,
                None => {
                    let place = self.keys.len() as u32;
                    self.bytes += (value_bytes(&key.0) * 2 + ENTRY_BYTES) as u64;
                    self.keys.push(growth.copy(&key.0)?);
                    self.places.insert(key, place);
                    place
                }
            };
        }
        self.bytes += rows.bytes();
        self.rows.append(rows, growth)
    }

    /// What they take.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn copy(&self, growth: &Growth) -> Done<Self> {
        let places: Vec<u32> = (0..self.rows.len() as u32).collect();
        growth.take(self.initial.iter().map(|(key, value)| value_bytes(key) + value_bytes(value)).sum())?;
        Ok(Self {
            value: self.value.clone(),
            keys: growth.copy_all(&self.keys)?,
            places: HashMap::new(),
            initial: self.initial.clone(),
            rows: self.rows.take(&places, growth)?,
            bytes: self.bytes,
        })
    }

    /// A map from keys to the values of their groups, without groups that have none.
    pub(crate) async fn into_map(self, run: &mut Run) -> Done<Value> {
        let Self { value, keys, rows, initial, .. } = self;
        let values = value.of_groups(run, rows, keys.len()).await?;
        let mut entries = initial;
        entries.extend(keys.into_iter().zip(values).filter_map(|(key, value)| Some((key, value?))));
        Ok(Value::Map(entries))
    }
}
