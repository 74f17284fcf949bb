//! The vertices that a graph should have, and how they change.

use std::{collections::BTreeMap, fs::File, path::Path, sync::Arc};

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, ListArray, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::Field;
use hoplake::{Key, KeyType, PropertyType, Value};
use hoplake_format::ScalarType as Scalar;
use hoplake_testkit::generate::SplitMix64;
use parquet::arrow::ArrowWriter;

use super::values;

const VERTICES: u64 = 2_400;
const OTHERS: u64 = 300;
/// Of each batch.
const CHANGES: u64 = 250;

#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: PropertyType,
}

/// A label with its vertices by key. A property that is not in a row is absent.
#[derive(Debug, Clone)]
pub(super) struct Label {
    pub(super) name: String,
    pub(super) key_type: KeyType,
    pub(super) columns: Vec<Column>,
    pub(super) rows: BTreeMap<Key, BTreeMap<String, Value>>,
}

#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) labels: Vec<Label>,
}

/// A change of a vertex, or its deletion.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) label: String,
    pub(super) key: Key,
    /// New values, null to remove one, and whether the vertex loses its other properties; `None` deletes it.
    pub(super) properties: Option<(Vec<(String, Value)>, bool)>,
}

impl Model {
    pub(super) fn generate(random: &mut SplitMix64, key_type: KeyType) -> Self {
        use Scalar::{Bool, Date, Float64, Int64, String, Timestamp};
        let scalars = [Bool, Int64, Float64, String, Date, Timestamp];
        let column = |name: std::string::String, kind| Column { name, kind };
        let mut columns: Vec<Column> =
            scalars.iter().map(|of| column(format!("{of}"), PropertyType::Scalar(*of))).collect();
        columns.extend(scalars.iter().map(|of| column(format!("list of {of}"), PropertyType::List(*of))));
        columns.push(column("widened".into(), PropertyType::Scalar(Int64)));
        columns.push(column("long".into(), PropertyType::Scalar(String)));
        let mut things = Label { name: "thing".into(), key_type, columns, rows: BTreeMap::new() };
        let few = things.columns.iter().filter(|column| column.name.len() < 7).cloned().collect();
        let mut others = Label { name: "other".into(), key_type, columns: few, rows: BTreeMap::new() };
        for (label, vertices) in [(&mut things, VERTICES), (&mut others, OTHERS)] {
            for number in 0..vertices {
                // Gaps, so that later keys come between these.
                let key = label.key(number * 3);
                let row = label.row(number as f64 / vertices as f64, random);
                label.rows.insert(key, row);
            }
        }
        Self { labels: vec![things, others] }
    }

    /// Integers may have fractions from now on, and there is one property more.
    pub(super) fn widen(&mut self) {
        let things = &mut self.labels[0];
        let widened = things.columns.iter_mut().find(|column| column.name == "widened").unwrap();
        widened.kind = PropertyType::Scalar(Scalar::Float64);
        for value in things.rows.values_mut().filter_map(|row| row.get_mut("widened")) {
            *value = value.clone().conform(PropertyType::Scalar(Scalar::Float64)).unwrap();
        }
        things.columns.push(Column { name: "late".into(), kind: PropertyType::Scalar(Scalar::Date) });
    }

    /// Changes of some vertices, none of them twice.
    pub(super) fn change(&self, random: &mut SplitMix64) -> Vec<Change> {
        let mut changes = BTreeMap::new();
        for _ in 0..CHANGES {
            let label = &self.labels[usize::from(random.below(8) == 0)];
            let key = label.key(random.below(label.rows.len() as u64 * 3 + 100));
            // Two of three times one that is there.
            let key = match random.below(3) {
                0 => key,
                _ => label.rows.range(key..).next().map_or_else(|| label.key(0), |(key, _)| key.clone()),
            };
            let at = label.rows.range(..&key).count() as f64 / label.rows.len() as f64;
            let mut row = label.row(at, random);
            let properties = match random.below(10) {
                0 | 1 => None,
                2 | 3 => Some((row.into_iter().collect(), true)),
                _ => {
                    // An upsert of a few properties keeps the others, and a null removes one.
                    row.retain(|_, _| random.below(3) == 0);
                    let value = |(name, value)| (name, if random.below(4) == 0 { Value::Null } else { value });
                    Some((row.into_iter().map(value).collect(), false))
                }
            };
            changes.insert((label.name.clone(), key), properties);
        }
        let change = |((label, key), properties)| Change { label, key, properties };
        changes.into_iter().map(change).collect()
    }

    pub(super) fn apply(&mut self, changes: Vec<Change>) {
        for Change { label, key, properties } in changes {
            let label = self.labels.iter_mut().find(|it| it.name == label).unwrap();
            let Some((values, replace)) = properties else {
                label.rows.remove(&key);
                continue;
            };
            let row = label.rows.entry(key).or_default();
            if replace {
                row.clear();
            }
            for (name, value) in values {
                match value {
                    Value::Null => row.remove(&name),
                    value => row.insert(name, value),
                };
            }
        }
    }
}

impl Label {
    fn key(&self, number: u64) -> Key {
        match self.key_type {
            KeyType::Int64 => Key::Int64(number as i64 - 1_000),
            // Some with signs that need quotes, in conditions and in SQL.
            KeyType::String => Key::String(format!("k{number:06}{}", ["", "'", " \"é\"", ",)"][number as usize % 4])),
        }
    }

    /// One of the vertices.
    pub(super) fn any(&self, random: &mut SplitMix64) -> (&Key, &BTreeMap<String, Value>) {
        let from = self.key(random.below(self.rows.len() as u64 * 3));
        self.rows.range(from..).next().or_else(|| self.rows.first_key_value()).unwrap()
    }

    /// Random properties of a vertex that is at a share of the label.
    fn row(&self, at: f64, random: &mut SplitMix64) -> BTreeMap<String, Value> {
        let mut row = BTreeMap::new();
        for (number, column) in self.columns.iter().enumerate() {
            // There is a stretch in which no vertex has the property, and one in which all have it.
            let is_there = match ((at * 8.0) as usize + number) % 8 {
                0 => false,
                1 => true,
                _ => random.below(5) > 0,
            };
            let value = match column.name.as_str() {
                "long" => values::long(at, random),
                "widened" => values::widened(column.kind, at, random),
                _ => values::of(column.kind, at, random),
            };
            if is_there || column.name == "long" {
                row.insert(column.name.clone(), value);
            }
        }
        row
    }

    /// All vertices, with moments in a zone or without one.
    pub(super) fn batch(&self, key: &str, zone: Option<&str>) -> RecordBatch {
        let keys: Vec<Value> = self
            .rows
            .keys()
            .map(|key| match key {
                Key::Int64(key) => Value::Int64(*key),
                Key::String(key) => Value::String(key.clone()),
            })
            .collect();
        let key_kind = match self.key_type {
            KeyType::Int64 => Scalar::Int64,
            KeyType::String => Scalar::String,
        };
        let keys: Vec<&Value> = keys.iter().collect();
        let mut columns = vec![(key, scalars(&keys, key_kind, zone))];
        for column in &self.columns {
            let cells: Vec<&Value> =
                self.rows.values().map(|row| row.get(&column.name).unwrap_or(&Value::Null)).collect();
            columns.push((&column.name, array(&cells, column.kind, zone)));
        }
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
    }
}

fn array(cells: &[&Value], kind: PropertyType, zone: Option<&str>) -> ArrayRef {
    let of = match kind {
        PropertyType::Scalar(of) => return scalars(cells, of, zone),
        PropertyType::List(of) => of,
    };
    let mut items = Vec::new();
    let mut lengths = Vec::new();
    for cell in cells {
        let list = if let Value::List(list) = cell { list.as_slice() } else { &[] };
        items.extend(list);
        lengths.push(list.len());
    }
    let items = scalars(&items, of, zone);
    let field = Arc::new(Field::new("item", items.data_type().clone(), true));
    let nulls = NullBuffer::from_iter(cells.iter().map(|cell| **cell != Value::Null));
    Arc::new(ListArray::new(field, OffsetBuffer::from_lengths(lengths), items, Some(nulls)))
}

/// Values as a column; null where a value is of another type.
fn scalars(cells: &[&Value], of: Scalar, zone: Option<&str>) -> ArrayRef {
    /// The value within each cell that is of a variant.
    macro_rules! column {
        ($array:ty, $variant:path) => {
            cells
                .iter()
                .map(|cell| if let $variant(value) = cell { Some(value.clone()) } else { None })
                .collect::<$array>()
        };
    }
    match of {
        Scalar::Bool => Arc::new(column!(BooleanArray, Value::Bool)),
        Scalar::Int64 => Arc::new(column!(Int64Array, Value::Int64)),
        Scalar::Float64 => Arc::new(column!(Float64Array, Value::Float64)),
        Scalar::String => Arc::new(column!(StringArray, Value::String)),
        Scalar::Date => Arc::new(column!(Date32Array, Value::Date)),
        Scalar::Timestamp => Arc::new(column!(TimestampMicrosecondArray, Value::Timestamp).with_timezone_opt(zone)),
    }
}

pub(super) fn write(file: &Path, batch: &RecordBatch) {
    let mut writer = ArrowWriter::try_new(File::create(file).unwrap(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}
