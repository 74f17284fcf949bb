//! What a statement in a log does to tables that are followed.
//!
//! Rows that change are in the log as rows. A statement is there if it changes a table as a whole, and then no row says what happened
//! to the values: either nothing did, or the feed cannot know it. What is not known to leave the rows as they are stops the feed.

mod alter;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
#[cfg(feature = "mariadb")]
mod ignored;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};

use hoplake::Name;

pub use self::alter::HARMLESS;
#[cfg(feature = "mariadb")]
pub(crate) use self::ignored::{IgnoredChanges, ignored_changes};
use self::{
    alter::{Clause, clause, taken},
    tokens::{Words, tokens, without_values},
};
use crate::TableName;

/// Characters of a statement that an error has.
const SHOWN_MAX: usize = 400;

/// Statements about rows, which say what is in them.
const OF_ROWS: [&str; 5] = ["INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD"];

/// The tables that are followed, and their columns that are carried into the graph.
pub(super) type Followed = BTreeMap<TableName, BTreeSet<Name>>;

/// What a statement does to a table that is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    /// Its rows are gone.
    Truncates(TableName),
    /// It has these columns from now on, which are null in each row.
    Adds(TableName, Vec<Name>),
    /// Something that no row change shows: to which table, if that is known, and why.
    Unfollowable(Option<TableName>, String),
}

/// The effects of a statement, which was given in a database.
pub(super) fn effects(statement: &str, database: &str, followed: &Followed) -> Vec<Effect> {
    let Some(tokens) = tokens(statement) else {
        let is_mentioned = |table: &&TableName| is_ddl(statement) && mentions(statement, table);
        let unknown = |table: &TableName| {
            let why = format!("what the statement does to table {table} is not understood");
            vec![Effect::Unfollowable(Some(table.clone()), why)]
        };
        return followed.keys().find(is_mentioned).map_or_else(Vec::new, unknown);
    };
    let mut words = Words::new(&tokens);
    if words.take_all(&["SET", "STATEMENT"]) {
        words = words.after("FOR").unwrap_or(words);
    }
    // A long ALTER may be logged twice, when it begins and when it has ended.
    if words.take_all(&["COMMIT", "ALTER"]) {
        words.skip();
    }
    Statement { database, followed }.effects(words)
}

/// A statement as errors show it: what it does to tables without its texts, and of one about rows only what it is.
pub(super) fn shown(statement: &str, show_rows: bool) -> String {
    let text = match show_rows {
        true => statement.to_owned(),
        false => without_values(statement, &OF_ROWS),
    };
    text.chars().take(SHOWN_MAX).collect()
}

fn is_ddl(statement: &str) -> bool {
    let text = statement.trim_start();
    ["ALTER", "DROP", "RENAME", "TRUNCATE", "CREATE OR REPLACE TABLE"]
        .into_iter()
        .any(|verb| text.get(..verb.len()).is_some_and(|start| start.eq_ignore_ascii_case(verb)))
}

/// Whether a statement has the name of a table as a word.
fn mentions(statement: &str, table: &TableName) -> bool {
    statement
        .split(|it: char| !(it.is_alphanumeric() || it == '_' || it == '$'))
        .any(|word| word.eq_ignore_ascii_case(&table.name))
}

/// A statement, and what its names mean.
struct Statement<'a> {
    database: &'a str,
    followed: &'a Followed,
}

impl Statement<'_> {
    fn effects(&self, mut words: Words<'_>) -> Vec<Effect> {
        for verb in OF_ROWS {
            if words.take(verb) {
                return if words.is("INDEX") { Vec::new() } else { self.of_rows(verb, words) };
            }
        }
        if words.take("TRUNCATE") {
            words.take("TABLE");
            return self.named(words.table(self.database)).map(Effect::Truncates).into_iter().collect();
        }
        if words.take("ALTER") {
            return self.altered(words);
        }
        if words.take("DROP") {
            return self.dropped(words);
        }
        if words.take("RENAME") && (words.take("TABLE") || words.take("TABLES")) {
            return self.renamed(words);
        }
        if words.take_all(&["CREATE", "OR", "REPLACE"]) {
            if words.take("TABLE") {
                return self.all([words.table(self.database)], "is replaced");
            }
            if words.take("DATABASE") || words.take("SCHEMA") {
                return self.of_database(words.name());
            }
        }
        Vec::new()
    }

    /// The table that is followed under a name. A server may take names in any case.
    fn named(&self, table: Option<TableName>) -> Option<TableName> {
        let table = table?;
        let is_same = |it: &&TableName| {
            it.schema.to_lowercase() == table.schema.to_lowercase()
                && it.name.to_lowercase() == table.name.to_lowercase()
        };
        self.followed.keys().find(is_same).cloned()
    }

    fn all(&self, tables: impl IntoIterator<Item = Option<TableName>>, what: &str) -> Vec<Effect> {
        let followed = tables.into_iter().filter_map(|table| self.named(table));
        followed.map(|table| Effect::Unfollowable(Some(table.clone()), format!("table {table} {what}"))).collect()
    }

    fn of_database(&self, name: Option<&str>) -> Vec<Effect> {
        let is_in = |table: &&TableName| name.is_some_and(|name| name.to_lowercase() == table.schema.to_lowercase());
        self.all(self.followed.keys().filter(is_in).cloned().map(Some), "is dropped")
    }

    /// A statement in place of rows. Whichever tables it names: views, triggers and functions of its database hide them.
    fn of_rows(&self, verb: &str, words: Words<'_>) -> Vec<Effect> {
        let is_near =
            |table: &TableName| table.schema.eq_ignore_ascii_case(self.database) || words.mentions(&table.schema);
        if !self.followed.keys().any(is_near) {
            return Vec::new();
        }
        let why = format!("the log has a statement ({verb}) in place of rows; set binlog_format=ROW also in sessions");
        vec![Effect::Unfollowable(None, why)]
    }

    fn altered(&self, mut words: Words<'_>) -> Vec<Effect> {
        words.take("ONLINE");
        let ignores = words.take("IGNORE");
        if !words.take("TABLE") {
            return Vec::new();
        }
        words.take_all(&["IF", "EXISTS"]);
        let table = words.table(self.database);
        if words.take("WAIT") {
            words.skip();
        }
        words.take("NOWAIT");
        let Some(table) = self.named(table) else {
            // A table that is not followed may take the rows of one that is.
            let taken = words.split().into_iter().map(|clause| taken(clause, self.database));
            return self.all(taken, "gives its rows to a partition of another table");
        };
        let stop = |why: String| Effect::Unfollowable(Some(table.clone()), format!("table {table}: {why}"));
        if ignores {
            return vec![stop("ALTER IGNORE may delete rows".into())];
        }
        let mut effects = Vec::new();
        let mut carried = self.followed[&table].clone();
        for one in words.split() {
            match clause(one, &carried) {
                Clause::Harmless => {}
                Clause::Adds(names) => {
                    carried.extend(names.iter().cloned());
                    effects.push(Effect::Adds(table.clone(), names));
                }
                Clause::Stops(why) => effects.push(stop(why)),
            }
        }
        effects
    }

    fn dropped(&self, mut words: Words<'_>) -> Vec<Effect> {
        if words.take("DATABASE") || words.take("SCHEMA") {
            words.take_all(&["IF", "EXISTS"]);
            return self.of_database(words.name());
        }
        if !words.take("TABLE") && !words.take("TABLES") {
            return Vec::new();
        }
        words.take_all(&["IF", "EXISTS"]);
        self.all(words.split().into_iter().map(|mut one| one.table(self.database)), "is dropped")
    }

    fn renamed(&self, mut words: Words<'_>) -> Vec<Effect> {
        words.take_all(&["IF", "EXISTS"]);
        let mut tables = Vec::new();
        for mut pair in words.split() {
            tables.push(pair.table(self.database));
            tables.push(pair.after("TO").and_then(|mut rest| rest.table(self.database)));
        }
        self.all(tables, "is renamed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_followed_where_that_is_safe() {
        let columns = |names: &[&str]| names.iter().map(|name| Name::from(*name)).collect::<BTreeSet<_>>();
        let followed = Followed::from([(TableName::new("hr", "person"), columns(&["id", "name"]))]);
        let all = |statement: &str| {
            let text = |effect: Effect| match effect {
                Effect::Truncates(table) => format!("truncates {table}"),
                Effect::Adds(_, names) => format!("adds {}", names.join(", ")),
                Effect::Unfollowable(_, why) => why,
            };
            effects(statement, "hr", &followed).into_iter().map(text).collect::<Vec<_>>().join("; ")
        };
        for (statement, expected) in [
            ("ALTER TABLE person ADD COLUMN nick VARCHAR(20)", "adds nick"),
            ("ALTER TABLE `hr`.`person` ADD COLUMN `nick` int DEFAULT NULL, ADD INDEX (nick)", "adds nick"),
            ("ALTER TABLE person ADD IF NOT EXISTS (a int COMMENT 'not null', b enum('x','y') NULL)", "adds a, b"),
            ("ALTER TABLE person ADD a int UNIQUE KEY, ALGORITHM=INPLACE, LOCK=NONE", "adds a"),
            ("ALTER TABLE person ADD a timestamp NULL", "adds a"),
            ("ALTER TABLE person ADD a timestamp", "may have a value"),
            ("ALTER TABLE person ADD COLUMN n int NOT NULL", "has a value in each row"),
            ("ALTER TABLE person ADD n int AUTO_INCREMENT UNIQUE", "has a value in each row"),
            ("ALTER TABLE person ADD n int KEY", "has a value in each row"),
            ("ALTER TABLE person ADD n SERIAL", "has a value in each row"),
            ("ALTER TABLE person ADD COLUMN n int DEFAULT 7", "the default 7"),
            ("ALTER TABLE person ADD n varchar(40) DEFAULT (uuid())", "the default ("),
            ("ALTER TABLE person ADD n int AS (id + 1) VIRTUAL", "generated column n"),
            ("ALTER TABLE person ADD n int REFERENCES team (id)", "foreign keys change"),
            ("ALTER TABLE person ADD a int, DROP a", "adds a; table hr.person: column a is dropped"),
            ("ALTER TABLE person DROP COLUMN name", "column name is dropped"),
            ("ALTER TABLE person DROP NAME", "column NAME is dropped"),
            ("/*!40000 ALTER TABLE person DROP name */", "column name is dropped"),
            ("SET STATEMENT max_statement_time=5 FOR ALTER TABLE person DROP name", "column name is dropped"),
            ("/*!100801 COMMIT ALTER 12 */ ALTER TABLE person DROP name", "column name is dropped"),
            ("/*!100801 START ALTER 12 */ ALTER TABLE person DROP name", ""),
            ("ALTER ONLINE TABLE IF EXISTS person WAIT 10 DROP name", "column name is dropped"),
            ("ALTER TABLE person DROP COLUMN IF EXISTS other", ""),
            ("ALTER TABLE person MODIFY COLUMN name text", "another type"),
            ("ALTER TABLE person MODIFY other text", ""),
            ("ALTER TABLE person CHANGE COLUMN name n text", "column name becomes n"),
            ("ALTER TABLE person CHANGE other more text", "column other becomes more"),
            ("ALTER TABLE person RENAME COLUMN name TO n", "column name is renamed to n"),
            ("ALTER TABLE person RENAME COLUMN other TO n", "column other is renamed to n"),
            ("ALTER TABLE person RENAME INDEX a TO b", ""),
            ("ALTER TABLE person RENAME people", "is renamed"),
            ("ALTER TABLE person DROP PARTITION p0", "partition are dropped"),
            ("ALTER TABLE person TRUNCATE PARTITION p0", "as a whole"),
            ("ALTER TABLE person EXCHANGE PARTITION p0 WITH TABLE t", "as a whole"),
            ("ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE person", "to a partition of another table"),
            ("ALTER TABLE t WAIT 5 EXCHANGE PARTITION p0 WITH TABLE hr.person", "to a partition of another table"),
            ("ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE elsewhere.person", ""),
            ("ALTER TABLE t CONVERT TABLE person TO PARTITION p0", "to a partition of another table"),
            ("ALTER TABLE t CONVERT PARTITION p0 TO TABLE other", ""),
            ("ALTER TABLE person CONVERT PARTITION p0 TO TABLE other", "as a whole"),
            ("ALTER TABLE person CONVERT TABLE other TO PARTITION p0", "as a whole"),
            ("ALTER TABLE person ADD PARTITION (PARTITION p2 VALUES LESS THAN (9))", ""),
            ("ALTER TABLE person REORGANIZE PARTITION p0 INTO (PARTITION a VALUES LESS THAN (9))", ""),
            ("ALTER TABLE person PARTITION BY HASH (id) PARTITIONS 4", ""),
            ("ALTER TABLE person DISCARD TABLESPACE", "as a whole"),
            ("ALTER TABLE person ADD SYSTEM VERSIONING", "is not known"),
            ("ALTER TABLE person WITH SYSTEM VERSIONING", "is not known"),
            ("ALTER TABLE person CONVERT TO CHARACTER SET latin1", "another character set"),
            ("ALTER TABLE person DROP PRIMARY KEY, ADD PRIMARY KEY (name)", "primary key changes; "),
            ("ALTER TABLE person ADD CONSTRAINT f FOREIGN KEY (id) REFERENCES x (id)", "foreign keys change"),
            ("ALTER TABLE person ADD CONSTRAINT FOREIGN KEY (id) REFERENCES x (id)", "foreign keys change"),
            ("ALTER TABLE person DROP FOREIGN KEY f", "foreign keys change"),
            ("ALTER TABLE person DROP CONSTRAINT f", "foreign keys change"),
            ("ALTER TABLE person ADD CONSTRAINT c CHECK (id > 0), ADD CONSTRAINT u UNIQUE (name)", ""),
            ("ALTER TABLE person DROP INDEX IF EXISTS i, DROP KEY k", ""),
            ("ALTER TABLE person COMMENT='drop column name', ENGINE=InnoDB ROW_FORMAT=DYNAMIC", ""),
            ("ALTER TABLE person ALTER COLUMN name SET DEFAULT 'x', ORDER BY name, FORCE", ""),
            ("ALTER TABLE person DISABLE KEYS", ""),
            ("ALTER TABLE person DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", ""),
            ("ALTER IGNORE TABLE person ADD UNIQUE (name)", "may delete rows"),
            ("ALTER TABLE other.person DROP COLUMN name", ""),
            ("ALTER TABLE PERSON DROP COLUMN name", "column name is dropped"),
            ("ALTER TABLE person SOMETHING NEW", "is not known"),
            ("ALTER TABLE person COMMENT = 'no end", "not understood"),
            ("ALTER DATABASE hr CHARACTER SET utf8mb4", ""),
            ("ALTER VIEW person AS SELECT 1", ""),
            ("TRUNCATE TABLE person", "truncates hr.person"),
            ("truncate `person` WAIT 5", "truncates hr.person"),
            ("DROP TABLE IF EXISTS `person` /* generated by server */", "is dropped"),
            ("DROP TABLE other, hr.person", "is dropped"),
            ("DROP TABLE other", ""),
            ("DROP TEMPORARY TABLE IF EXISTS person", ""),
            ("DROP INDEX IF EXISTS i ON person", ""),
            ("RENAME TABLE a TO person", "is renamed"),
            ("RENAME TABLE person TO elsewhere.person", "is renamed"),
            ("RENAME USER a TO person", ""),
            ("DROP DATABASE IF EXISTS hr", "is dropped"),
            ("DROP DATABASE person", ""),
            ("CREATE OR REPLACE DATABASE hr", "is dropped"),
            ("CREATE OR REPLACE TABLE person (id int)", "is replaced"),
            ("CREATE OR REPLACE VIEW person AS SELECT 1", ""),
            ("CREATE TABLE IF NOT EXISTS person (id int)", ""),
            ("CREATE TABLE person2 (id int)", ""),
            ("CREATE INDEX i ON person (name)", ""),
            ("CREATE TRIGGER x AFTER INSERT ON person FOR EACH ROW DELETE FROM other", ""),
            ("ANALYZE TABLE person", ""),
            ("GRANT SELECT ON person TO someone", ""),
            ("INSERT INTO person VALUES (1)", "in place of rows"),
            ("update x set y = 1", "in place of rows"),
        ] {
            let found = all(statement);
            assert!(
                if expected.is_empty() { found.is_empty() } else { found.contains(expected) },
                "{statement}: {found:?}"
            );
        }
        let elsewhere = |statement: &str| effects(statement, "elsewhere", &followed).len();
        assert_eq!(elsewhere("INSERT INTO person VALUES (1)"), 0);
        assert_eq!(elsewhere("INSERT INTO hr.person VALUES (1)"), 1);
        assert_eq!(elsewhere("ALTER TABLE person DROP name"), 0);
        assert_eq!(elsewhere("ALTER TABLE hr.person DROP name"), 1);
    }
}
