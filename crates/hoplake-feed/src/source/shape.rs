//! What a source says of a table at a position, and whether a later shape of it is harmless.
//!
//! A change of a table does not show in its rows: a renamed column is one that is gone and one that is new, and values that `ALTER … USING`
//! computed are in no row change. So the shape of each table is kept with the position, and every shape that is seen later is compared with it
//! by one function, [`TableShape::drift`].
//!
//! A shape has what its source can say: PostgreSQL numbers tables and columns and says when values were rewritten; a binlog names columns.
//! What one of two shapes does not say is not compared.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Display, Formatter},
};

use hoplake::Name;
use serde::{Deserialize, Serialize};

use super::catalog::{Catalog, Column, Table, TableName};

/// A table as a source describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableShape {
    /// The number that the table keeps under any name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// Where its rows are, or those of its partitions: another place after a rewrite of all of them. See `rewritten`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// By what it is published: another value after it was taken out and put back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    /// The same of its schema, or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_published: Option<String>,
    /// If it is published because of its schema, two values, both of which are others after it was in another schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<String>,
    /// The numbers of its partitions, and whether each was a table of its own before, or is not logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitions: Option<BTreeMap<u32, bool>>,
    /// The numbers of the columns of its primary key; empty without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its columns; without any, nothing is known of them.
    pub columns: Vec<ColumnShape>,
}

/// A column as a source describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnShape {
    /// Its name.
    pub name: Name,
    /// The number that the column keeps under any name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<i16>,
    /// Its type, as the source writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Another value after each change of its definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Where the rows of a table or a partition are.
struct Stored<'a> {
    number: u32,
    file: &'a str,
    notes: &'a str,
}

impl Display for Stored<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { number, file, notes } = self;
        write!(f, "{number}:{file}:{notes}")
    }
}

/// How a table has changed since a feed saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drift {
    /// Not at all.
    Same,
    /// In nothing that the graph depends on, but for these new columns: what existing rows have in them is for the source to say.
    Harmless(Vec<Name>),
    /// Rows may be other than the graph has them; why, as the end of a sentence.
    Stop(String),
}

impl ColumnShape {
    /// A column of which only the name is known.
    pub fn named(name: impl Into<Name>) -> Self {
        Self { name: name.into(), number: None, kind: None, version: None }
    }
}

impl TableShape {
    /// What a catalog says of a table.
    pub fn of_table(table: &Table) -> Self {
        let column =
            |it: &Column| ColumnShape { kind: Some(it.declared.clone()), ..ColumnShape::named(it.name.clone()) };
        Self { columns: table.columns.iter().map(column).collect(), ..Self::default() }
    }

    /// What has become of a table of which `carried` columns matter. `keeps_values` says whether a column of a type has the same values in
    /// another one.
    pub fn drift(&self, now: &Self, carried: &BTreeSet<Name>, keeps_values: fn(&str, &str) -> bool) -> Drift {
        if self == now {
            return Drift::Same;
        }
        let differ = |was: &Option<String>, is: &Option<String>| was.is_some() && is.is_some() && was != is;
        if self.id.is_some() && now.id.is_some() && self.id != now.id {
            return Drift::Stop("another table has its name now".into());
        }
        if differ(&self.published, &now.published) || differ(&self.schema_published, &now.schema_published) {
            return Drift::Stop(
                "its publication was changed, and what its rows became meanwhile is not in the log".into(),
            );
        }
        if let (Some(was), Some(is)) = (&self.moved, &now.moved)
            && was.split(' ').count() == is.split(' ').count()
            && was.split(' ').zip(is.split(' ')).all(|(was, is)| was != is)
        {
            return Drift::Stop(
                "it was in another schema for some time, and what its rows became there is not in the log".into(),
            );
        }
        if differ(&self.key, &now.key) && self.key.as_deref() != Some("") {
            return Drift::Stop("its primary key was changed".into());
        }
        if let (Some(was), Some(is)) = (&self.partitions, &now.partitions) {
            if was.keys().any(|partition| !is.contains_key(partition)) {
                return Drift::Stop("a partition was detached or dropped, with its rows".into());
            }
            if is.iter().any(|(partition, was_own)| *was_own && !was.contains_key(partition)) {
                return Drift::Stop(
                    "a table was attached as a partition, or a new partition is unlogged, and its rows are not in the log".into(),
                );
            }
        }
        if self.columns.is_empty() || now.columns.is_empty() {
            return Drift::Harmless(Vec::new());
        }
        let is_rewritten = !self.rewritten(now).is_empty();
        let mut added: Vec<&ColumnShape> = now.columns.iter().collect();
        for was in &self.columns {
            let name = &was.name;
            let is_carried = carried.contains(name);
            let is_same = |it: &&ColumnShape| match (was.number, it.number) {
                (Some(was), Some(is)) => was == is,
                _ => it.name == *name,
            };
            let Some(is) = now.columns.iter().find(is_same) else {
                if is_carried && now.columns.iter().any(|it| it.name == *name) {
                    return Drift::Stop(format!("column {name} is another column now"));
                }
                if is_carried {
                    return Drift::Stop(format!("column {name} was dropped or renamed"));
                }
                continue;
            };
            added.retain(|it| it.name != is.name);
            // Also one that is not carried: under its new name it would be, and only in rows that change.
            if is.name != *name {
                return Drift::Stop(format!("column {name} is renamed to {}", is.name));
            }
            if !is_carried {
                continue;
            }
            if let (Some(was), Some(is)) = (&was.kind, &is.kind)
                && was != is
                && !keeps_values(was, is)
            {
                return Drift::Stop(format!("column {name} has another type"));
            }
            if is_rewritten && differ(&was.version, &is.version) {
                return Drift::Stop(format!("column {name} was changed, and all rows were written again"));
            }
        }
        Drift::Harmless(added.into_iter().map(|it| it.name.clone()).collect())
    }

    /// What has another storage in a later shape: the table or partitions of it, by their numbers. A partition that is new has the one with
    /// which it was made, or another.
    ///
    /// A storage is a list of `number:file:notes`, where the notes have `0` if there are no rows, and `r` if it is another file than the first
    /// of a partition. A file alone is that of the table.
    pub(crate) fn rewritten(&self, now: &Self) -> Vec<u32> {
        let was: BTreeMap<u32, Stored<'_>> = self.stored().map(|it| (it.number, it)).collect();
        let is_new = |number| self.partitions.as_ref().is_some_and(|partitions| !partitions.contains_key(&number));
        let rewritten = now.stored().filter(|is| match was.get(&is.number) {
            Some(was) => is.file != was.file,
            None => is.notes.contains('r') && is_new(is.number),
        });
        rewritten.map(|is| is.number).collect()
    }

    /// Whether the table or a partition of it, by its number, had rows.
    pub(crate) fn had_rows(&self, number: u32) -> bool {
        self.stored().any(|it| it.number == number && !it.notes.contains('0'))
    }

    /// The same shape, but for some numbers with the storage of one before, or without them if they were not there.
    pub(crate) fn with_storage_of(mut self, before: &Self, numbers: &[u32]) -> Self {
        if !numbers.is_empty() {
            let others = self.stored().filter(|it| !numbers.contains(&it.number));
            let kept = before.stored().filter(|it| numbers.contains(&it.number));
            let all: BTreeMap<_, _> = others.chain(kept).map(|it| (it.number, it.to_string())).collect();
            self.storage = Some(all.into_values().collect::<Vec<_>>().join(" "));
            let is_new = |number: &u32| before.partitions.as_ref().is_some_and(|before| !before.contains_key(number));
            self.partitions = self.partitions.map(|mut partitions| {
                partitions.retain(|number, _| !numbers.contains(number) || !is_new(number));
                partitions
            });
        }
        self
    }

    fn stored(&self) -> impl Iterator<Item = Stored<'_>> {
        self.storage.iter().flat_map(|all| all.split_whitespace()).filter_map(|text| {
            let mut parts = text.split(':');
            let first = parts.next()?;
            let Some(file) = parts.next() else {
                return Some(Stored { number: self.id?, file: first, notes: "" });
            };
            Some(Stored { number: first.parse().ok()?, file, notes: parts.next().unwrap_or_default() })
        })
    }

    /// Whether a later shape does not have a column any more, also if another one has its name there.
    pub(crate) fn is_dropped_in(&self, now: &Self, column: &str) -> bool {
        let number = |shape: &Self| shape.columns.iter().find(|it| it.name == column).map(|it| it.number);
        match (number(self), number(now)) {
            (_, None) => true,
            (Some(Some(was)), Some(Some(is))) => was != is,
            _ => false,
        }
    }

    /// The columns that a later shape has more; none if nothing is known of this one.
    pub(crate) fn new_in(&self, now: &Self) -> Vec<Name> {
        if self.columns.is_empty() {
            return Vec::new();
        }
        let is_new = |name: &&Name| !self.has(name) || self.is_dropped_in(now, name);
        now.columns.iter().map(|it| &it.name).filter(is_new).cloned().collect()
    }

    /// The type of a column, if it is known.
    pub(crate) fn kind_of(&self, column: &str) -> Option<&str> {
        self.columns.iter().find(|it| it.name == column)?.kind.as_deref()
    }

    /// Whether a column is known.
    pub(crate) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|it| it.name == column)
    }
}

/// Shapes that a catalog says.
pub fn shapes_of(catalog: &Catalog, tables: &[TableName]) -> BTreeMap<TableName, TableShape> {
    let shape = |name: &TableName| Some((name.clone(), TableShape::of_table(catalog.table(name)?)));
    tables.iter().filter_map(shape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(number: i16, name: &str, kind: &str, version: &str) -> ColumnShape {
        ColumnShape {
            name: name.into(),
            number: Some(number),
            kind: Some(kind.to_owned()),
            version: Some(version.to_owned()),
        }
    }

    fn shape(columns: &[ColumnShape]) -> TableShape {
        TableShape {
            id: Some(1),
            storage: Some("1:7".into()),
            published: Some("p".into()),
            key: Some("1".into()),
            columns: columns.to_vec(),
            ..TableShape::default()
        }
    }

    #[test]
    fn what_becomes_of_a_table_is_harmless_or_stops_the_feed() {
        let carried = BTreeSet::from(["id".into(), "a".into()]);
        let id = column(1, "id", "int", "1");
        let a = column(2, "a", "int", "1");
        let b = column(3, "b", "int", "1");
        let was = shape(&[id.clone(), a.clone(), b.clone()]);
        let numberless = |shape: &TableShape| TableShape {
            columns: shape.columns.iter().map(|it| ColumnShape::named(it.name.clone())).collect(),
            ..TableShape::default()
        };
        let harmless = |names: &[&str]| Drift::Harmless(names.iter().map(|name| Name::from(*name)).collect());
        let stop = |why: &str| Drift::Stop(why.into());
        let moved = |version: &str| TableShape {
            storage: Some("1:8".into()),
            ..shape(&[id.clone(), column(2, "a", "int", version), b.clone()])
        };
        for (now, expected) in [
            (was.clone(), Drift::Same),
            (shape(&[id.clone(), a.clone()]), harmless(&[])),
            (shape(&[id.clone(), a.clone(), b.clone(), column(4, "c", "int", "2")]), harmless(&["c"])),
            (shape(&[id.clone(), b.clone()]), stop("column a was dropped or renamed")),
            (shape(&[id.clone(), column(4, "a", "int", "2")]), stop("column a is another column now")),
            (shape(&[id.clone(), column(2, "aa", "int", "2"), b.clone()]), stop("column a is renamed to aa")),
            (shape(&[id.clone(), a.clone(), column(3, "bb", "int", "2")]), stop("column b is renamed to bb")),
            (
                shape(&[id.clone(), column(2, "b", "int", "2"), column(3, "a", "int", "2")]),
                stop("column a is renamed to b"),
            ),
            (shape(&[id.clone(), column(2, "a", "long", "2"), b.clone()]), harmless(&[])),
            (shape(&[id.clone(), column(2, "a", "text", "2"), b.clone()]), stop("column a has another type")),
            (shape(&[id.clone(), a.clone(), column(3, "b", "text", "2")]), harmless(&[])),
            (shape(&[id.clone(), column(2, "a", "int", "2"), b.clone()]), harmless(&[])),
            (moved("1"), harmless(&[])),
            (moved("2"), stop("column a was changed, and all rows were written again")),
            (TableShape { id: Some(2), ..was.clone() }, stop("another table has its name now")),
            (TableShape { key: Some("1 2".into()), ..was.clone() }, stop("its primary key was changed")),
            (
                TableShape { published: Some("q".into()), ..was.clone() },
                stop("its publication was changed, and what its rows became meanwhile is not in the log"),
            ),
            (numberless(&was), harmless(&[])),
            (numberless(&shape(&[id.clone(), b.clone()])), stop("column a was dropped or renamed")),
            (TableShape::default(), harmless(&[])),
        ] {
            assert_eq!(was.drift(&now, &carried, |was, is| (was, is) == ("int", "long")), expected, "{now:?}");
        }
        assert_eq!(TableShape::default().drift(&was, &carried, |_, _| false), harmless(&[]));
        let partitions = Some([(2, false), (3, false), (4, false)].into());
        let stored =
            |storage: &str| TableShape { storage: Some(storage.into()), partitions: partitions.clone(), ..was.clone() };
        for (before, after, expected) in [
            ("7", "7", &[][..]),
            ("7", "1:7", &[]),
            ("7", "1:8", &[1]),
            ("1:7:0", "1:7:", &[]),
            ("2:7 3:8", "2:7 3:8:r 4:9", &[]),
            ("2:7 3:8:0", "2:9 3:10 4:9", &[2, 3]),
            ("2:7", "2:7 5:9:r", &[5]),
            ("2:7", "2:7 5:9:0", &[]),
            // Of several files without numbers it is not known whose they are.
            ("7 8", "2:9 3:10", &[]),
        ] {
            assert_eq!(stored(before).rewritten(&stored(after)), expected, "{before} and {after}");
        }
        let kept = stored("2:9: 3:10:0 4:9:").with_storage_of(&stored("2:7 3:8"), &[2, 4]);
        assert_eq!(kept.storage.as_deref(), Some("2:7: 3:10:0"));
        let new = TableShape { partitions: Some([(2, false), (5, false)].into()), ..stored("2:7: 5:9:r") };
        let kept = new.with_storage_of(&stored("2:7:"), &[5]);
        assert_eq!((kept.storage.as_deref(), kept.partitions), (Some("2:7:"), Some([(2, false)].into())));
        assert!(!stored("2:7 3:8:0").had_rows(3) && stored("2:7 3:8:0").had_rows(2));
        let moved = |values: &str| TableShape { moved: Some(values.into()), ..was.clone() };
        for (after, stops) in [("5 6", false), ("7 6", false), ("5 7", false), ("7 8", true), ("7", false)] {
            let drift = moved("5 6").drift(&moved(after), &carried, |_, _| false);
            assert_eq!(matches!(drift, Drift::Stop(_)), stops, "{after}");
        }
        // Of a table of which nothing was known, no column is new.
        assert_eq!(TableShape::default().new_in(&was), Vec::<Name>::new());
        assert_eq!(shape(std::slice::from_ref(&id)).new_in(&was), ["a", "b"]);
        // A column that replaces one of its name is new.
        let replaced = shape(&[id, column(4, "a", "int", "1"), b]);
        assert!(was.is_dropped_in(&replaced, "a") && !was.is_dropped_in(&replaced, "b"));
        assert_eq!(was.new_in(&replaced), ["a"]);
        assert!(was.is_dropped_in(&numberless(&shape(&[])), "a") && !was.is_dropped_in(&numberless(&was), "a"));
    }
}
