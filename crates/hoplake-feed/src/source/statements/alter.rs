//! What the clauses of an `ALTER TABLE` do to the rows of a table.

use std::collections::BTreeSet;

use hoplake::Name;

use super::tokens::Words;
use crate::TableName;

/// What a clause does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Clause {
    /// Nothing to the values that rows have.
    Harmless,
    /// These columns are new, and null in each row.
    Adds(Vec<Name>),
    /// Something that no row change shows.
    Stops(String),
}

/// Clauses and options that leave all values as they are, by their first word. A test runs each of them.
pub const HARMLESS: &[&str] = &[
    "ALGORITHM",
    "ALTER",
    "ANALYZE",
    "AUTO_INCREMENT",
    "AVG_ROW_LENGTH",
    "CHARACTER",
    "CHARSET",
    "CHECK",
    "CHECKSUM",
    "COALESCE",
    "COLLATE",
    "COMMENT",
    "CONNECTION",
    "DATA",
    "DEFAULT",
    "DELAY_KEY_WRITE",
    "DISABLE",
    "ENABLE",
    "ENCRYPTED",
    "ENCRYPTION_KEY_ID",
    "ENGINE",
    "FORCE",
    "INDEX",
    "INSERT_METHOD",
    "KEY_BLOCK_SIZE",
    "LOCK",
    "MAX_ROWS",
    "MIN_ROWS",
    "OPTIMIZE",
    "ORDER",
    "PACK_KEYS",
    "PAGE_CHECKSUM",
    "PAGE_COMPRESSED",
    "PAGE_COMPRESSION_LEVEL",
    "PARTITION",
    "REBUILD",
    "REMOVE",
    "REORGANIZE",
    "REPAIR",
    "ROW_FORMAT",
    "STATS_AUTO_RECALC",
    "STATS_PERSISTENT",
    "STATS_SAMPLE_PAGES",
    "TABLE_CHECKSUM",
    "TRANSACTIONAL",
];

const FOREIGN_KEYS: &str = "its foreign keys change, by whose rules the feed follows cascades";
const PRIMARY_KEY: &str = "its primary key changes";

/// What a clause does to a table of which these columns are carried into the graph.
pub(super) fn clause(mut words: Words<'_>, carried: &BTreeSet<Name>) -> Clause {
    let all = words;
    let is_carried = |name: &str| carried.iter().any(|it| it.to_lowercase() == name.to_lowercase());
    let unknown = || Clause::Stops(format!("what `{}` does to its rows is not known", all.shown()));
    if all.has("VERSIONING") {
        return unknown();
    }
    if words.take("ADD") {
        return added(words).unwrap_or_else(unknown);
    }
    if words.take("DROP") {
        return dropped(words, &is_carried).unwrap_or_else(unknown);
    }
    if words.take("MODIFY") {
        words.take("COLUMN");
        words.take_all(&["IF", "EXISTS"]);
        return match words.name() {
            Some(name) if is_carried(name) => Clause::Stops(format!("column {name} gets another type")),
            Some(_) => Clause::Harmless,
            None => unknown(),
        };
    }
    if words.take("CHANGE") {
        words.take("COLUMN");
        words.take_all(&["IF", "EXISTS"]);
        return match (words.name(), words.name()) {
            (Some(old), Some(new)) if old.to_lowercase() == new.to_lowercase() && !is_carried(old) => Clause::Harmless,
            (Some(old), Some(new)) => Clause::Stops(format!("column {old} becomes {new}, perhaps of another type")),
            _ => unknown(),
        };
    }
    if words.take("RENAME") {
        if words.is_one_of(&["INDEX", "KEY"]) {
            return Clause::Harmless;
        }
        if !words.take("COLUMN") {
            return Clause::Stops("it is renamed".into());
        }
        words.take_all(&["IF", "EXISTS"]);
        let old = words.name();
        words.take("TO");
        return match (old, words.name()) {
            // Also one that is not carried: under its new name it would be, and only in rows that change.
            (Some(old), Some(new)) => Clause::Stops(format!("column {old} is renamed to {new}")),
            _ => unknown(),
        };
    }
    if words.take("CONVERT") {
        if words.is_one_of(&["PARTITION", "TABLE"]) {
            return Clause::Stops(format!("`{}` changes its rows as a whole", all.shown()));
        }
        return Clause::Stops("its text is converted to another character set".into());
    }
    if words.is_one_of(&["TRUNCATE", "EXCHANGE", "DISCARD", "IMPORT"]) {
        return Clause::Stops(format!("`{}` changes its rows as a whole", all.shown()));
    }
    if words.is_at_end() || words.is_one_of(HARMLESS) { Clause::Harmless } else { unknown() }
}

/// The table whose rows a clause of another table takes.
pub(super) fn taken(mut words: Words<'_>, database: &str) -> Option<TableName> {
    if words.take("EXCHANGE") {
        return words.after("TABLE").and_then(|mut words| words.table(database));
    }
    (words.take("CONVERT") && words.take("TABLE")).then(|| words.table(database)).flatten()
}

/// `ADD …`; nothing if it is not understood.
fn added(mut words: Words<'_>) -> Option<Clause> {
    if words.is_one_of(&["INDEX", "KEY", "FULLTEXT", "SPATIAL", "UNIQUE", "CHECK", "PARTITION"]) {
        return Some(Clause::Harmless);
    }
    if words.take("CONSTRAINT") {
        words.take_all(&["IF", "NOT", "EXISTS"]);
        if !words.is_one_of(&["PRIMARY", "FOREIGN", "UNIQUE", "CHECK"]) {
            words.name()?;
        }
        return added(words);
    }
    if words.is("PRIMARY") {
        return Some(Clause::Stops(PRIMARY_KEY.into()));
    }
    if words.is("FOREIGN") {
        return Some(Clause::Stops(FOREIGN_KEYS.into()));
    }
    if words.take_all(&["PERIOD", "FOR"]) {
        return None;
    }
    words.take("COLUMN");
    words.take_all(&["IF", "NOT", "EXISTS"]);
    let definitions = words.inside().map_or_else(|| vec![words], Words::split);
    let mut names = Vec::new();
    for mut definition in definitions {
        let name = definition.name()?;
        if let Some(why) = filled(name, definition) {
            return Some(Clause::Stops(why));
        }
        names.push(Name::from(name));
    }
    Some(Clause::Adds(names))
}

/// Why rows may have a value in a new column.
fn filled(name: &str, definition: Words<'_>) -> Option<String> {
    let is_followed_by = |keyword: &str, then: &str| definition.after(keyword).is_some_and(|words| words.is(then));
    let is_key = definition.has("KEY") && !is_followed_by("UNIQUE", "KEY");
    if is_followed_by("NOT", "NULL") || definition.has("AUTO_INCREMENT") || definition.is("SERIAL") || is_key {
        return Some(format!("column {name} is added, which has a value in each row"));
    }
    if definition.has("GENERATED") || definition.has("AS") {
        return Some(format!("the generated column {name} is added"));
    }
    if definition.has("REFERENCES") {
        return Some(FOREIGN_KEYS.into());
    }
    match definition.after("DEFAULT") {
        Some(default) if !default.is("NULL") => {
            Some(format!("column {name} is added with the default {}, which each row gets", default.shown()))
        }
        // Older servers fill it unless it says that it may be null.
        None if definition.is("TIMESTAMP") && !definition.has("NULL") => {
            Some(format!("column {name} is added, which may have a value in each row; write NULL if it has none"))
        }
        _ => None,
    }
}

/// `DROP …`; nothing if it is not understood.
fn dropped(mut words: Words<'_>, is_carried: &dyn Fn(&str) -> bool) -> Option<Clause> {
    if words.is_one_of(&["INDEX", "KEY"]) {
        return Some(Clause::Harmless);
    }
    if words.is("PRIMARY") {
        return Some(Clause::Stops(PRIMARY_KEY.into()));
    }
    if words.is("FOREIGN") {
        return Some(Clause::Stops(FOREIGN_KEYS.into()));
    }
    if words.is("CONSTRAINT") {
        return Some(Clause::Stops(format!("{FOREIGN_KEYS}, if the constraint is one")));
    }
    if words.is("PARTITION") {
        return Some(Clause::Stops("the rows of a partition are dropped".into()));
    }
    words.take("COLUMN");
    words.take_all(&["IF", "EXISTS"]);
    let name = words.name()?;
    Some(if is_carried(name) { Clause::Stops(format!("column {name} is dropped")) } else { Clause::Harmless })
}
