//! MariaDB: a value is the same property, whether it was copied or came by the log, and that is the one of which the server says so.
//!
//! The lists of types and charsets are the server's own. One that a later server has is covered, or fails here.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use hoplake_feed::{Feed, FeedError, RunOptions, Settings, check};
use hoplake_testkit::MariaDbServer;
use mysql_async::{Conn, prelude::Queryable};

use crate::{
    following::{caught_up, settings_of},
    mariadb::connect,
    model::{Model, Properties},
};

fn settings(server: &MariaDbServer, graph: &Path, mapping: &str) -> Settings {
    settings_of(&server.url("test"), graph, mapping)
}

/// What makes the text of a property of a column.
#[derive(Clone, Copy)]
enum Oracle {
    Text,
    Hex,
    Number,
    /// Eighths, as the model has floating point numbers.
    Float,
    Date,
    Moment,
    Time,
}

impl Oracle {
    fn sql(self, column: &str) -> String {
        match self {
            Self::Text => format!("CAST({column} AS CHAR CHARACTER SET utf8mb4)"),
            Self::Hex => format!("LOWER(HEX({column}))"),
            Self::Number => format!("CAST({column} + 0 AS CHAR)"),
            Self::Float => format!("CAST(ROUND({column} * 8) AS CHAR)"),
            Self::Date => format!("CAST(DATEDIFF({column}, '1970-01-01') AS CHAR)"),
            Self::Moment => format!("CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {column}) AS CHAR)"),
            Self::Time => format!(
                "IF({column} LIKE '%.%', TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM CAST({column} AS CHAR))), CAST({column} AS CHAR))"
            ),
        }
    }
}

/// Declarations of every type, values of each, and what says what they are.
const TYPES: &[(&str, Oracle, &[&str])] = &[
    // A year counts among the numbers that have a sign.
    ("year", Oracle::Number, &["0", "1901", "2000", "2155"]),
    ("tinyint", Oracle::Number, &["-128", "-1", "127"]),
    ("tinyint unsigned", Oracle::Number, &["0", "255"]),
    ("smallint", Oracle::Number, &["-32768", "32767"]),
    ("smallint unsigned zerofill", Oracle::Number, &["65535", "7"]),
    ("mediumint", Oracle::Number, &["-8388608", "-1", "8388607"]),
    ("mediumint unsigned", Oracle::Number, &["16777215"]),
    ("int", Oracle::Number, &["-2147483648", "-6", "2147483647"]),
    ("int unsigned", Oracle::Number, &["4294967295"]),
    ("bigint", Oracle::Number, &["-9223372036854775808", "9223372036854775807"]),
    ("bigint unsigned", Oracle::Number, &["9223372036854775807", "0"]),
    ("float", Oracle::Float, &["-1.5", "0.125", "3e6"]),
    ("double unsigned", Oracle::Float, &["2.5", "1e9"]),
    ("decimal(10,3)", Oracle::Text, &["-1234567.125", "0", "-0.001"]),
    ("decimal(65,30)", Oracle::Text, &["-12345678901234567890123456789012345.123456789012345678901234567891", "1"]),
    ("decimal(9,0) unsigned", Oracle::Text, &["999999999"]),
    ("bit(1)", Oracle::Number, &["1", "0"]),
    ("bit(33)", Oracle::Number, &["8589934591", "1"]),
    ("date", Oracle::Date, &["'2026-02-28'", "'0001-01-01'", "'9999-12-31'", "'0000-00-00'", "'2026-00-00'"]),
    ("datetime", Oracle::Moment, &["'1969-12-31 23:59:59'", "'9999-12-31 23:59:59'", "'0000-00-00'"]),
    ("datetime(1)", Oracle::Moment, &["'2026-03-01 09:30:00.7'"]),
    ("datetime(3)", Oracle::Moment, &["'2026-03-01 09:30:00.678'", "'1000-01-01 00:00:00.001'"]),
    ("datetime(6)", Oracle::Moment, &["'2026-03-01 09:30:00.678901'"]),
    ("timestamp null", Oracle::Moment, &["'2026-03-01 09:30:00'", "'2038-01-19 03:14:07'", "'0000-00-00'"]),
    ("timestamp(2) null", Oracle::Moment, &["'2026-03-01 09:30:00.99'"]),
    ("timestamp(4) null", Oracle::Moment, &["'2026-03-01 09:30:00.9999'"]),
    ("timestamp(6) null", Oracle::Moment, &["'2026-03-01 09:30:00.999999'", "'1970-01-01 00:00:00.5'"]),
    ("time", Oracle::Time, &["'-12:13:14'", "'838:59:59'", "'-838:59:59'", "'00:00:00'", "'300:00:00'"]),
    ("time(1)", Oracle::Time, &["'-12:13:14.5'", "'-00:00:00.1'", "'01:02:03.4'", "'-01:00:00'"]),
    ("time(2)", Oracle::Time, &["'-12:13:14.56'", "'-00:00:00.01'", "'-838:59:58.99'"]),
    ("time(3)", Oracle::Time, &["'-12:13:14.567'", "'-00:00:00.001'"]),
    ("time(4)", Oracle::Time, &["'-12:13:14.5678'", "'00:00:00.0001'"]),
    ("time(5)", Oracle::Time, &["'-12:13:14.56789'"]),
    ("time(6)", Oracle::Time, &["'-12:13:14.567891'", "'-00:00:00.000001'", "'838:59:59.999999'"]),
    ("char(10)", Oracle::Text, &["'ab '", "''", "'ï中'"]),
    ("char(255)", Oracle::Text, &["REPEAT('中', 255)", "'x'"]),
    ("varchar(20)", Oracle::Text, &["'ab '", "''"]),
    ("varchar(300)", Oracle::Text, &["REPEAT('é', 300)"]),
    ("varchar(300) compressed", Oracle::Text, &["REPEAT('ab', 150)", "'short'", "''"]),
    ("tinytext", Oracle::Text, &["'t'"]),
    ("text", Oracle::Text, &["REPEAT('text', 1000)"]),
    ("text compressed", Oracle::Text, &["REPEAT('é中', 5000)", "'é'", "''"]),
    ("mediumtext", Oracle::Text, &["REPEAT('m', 70000)"]),
    ("longtext", Oracle::Text, &["'l'"]),
    ("longtext compressed", Oracle::Text, &["REPEAT('m', 70000)"]),
    ("json", Oracle::Text, &["'{\"b\": [1, 2.50, \"é\"], \"a\": null}'"]),
    ("binary(16)", Oracle::Hex, &["x'000102'", "x''"]),
    ("binary(4)", Oracle::Hex, &["x'01020304'"]),
    ("varbinary(300)", Oracle::Hex, &["x'0001'", "x''"]),
    ("varbinary(300) compressed", Oracle::Hex, &["REPEAT(x'00ff', 150)", "x'00'"]),
    ("tinyblob", Oracle::Hex, &["x'00'"]),
    ("blob", Oracle::Hex, &["x'ff00'"]),
    ("blob compressed", Oracle::Hex, &["REPEAT('ab', 500)"]),
    ("mediumblob", Oracle::Hex, &["x'01'"]),
    ("longblob", Oracle::Hex, &["x'02'"]),
    ("enum('a','it''s','ï')", Oracle::Text, &["'a'", "'it''s'", "'ï'", "''"]),
    ("enum('ï','z') charset latin1", Oracle::Text, &["'ï'", "'z'"]),
    ("set('x','ż','z')", Oracle::Text, &["'x,ż'", "'z'", "'x,ż,z'"]),
    ("set('ş','y') charset latin5", Oracle::Text, &["'ş'", "'ş,y'"]),
    ("uuid", Oracle::Text, &["'123e4567-e89b-12d3-a456-426655440000'", "'00000000-0000-0000-0000-000000000000'"]),
    ("inet4", Oracle::Text, &["'1.2.3.4'", "'0.0.0.0'", "'255.255.255.0'"]),
    (
        "inet6",
        Oracle::Text,
        &[
            "'::'",
            "'::1'",
            "'::1.2.3.4'",
            "'::ffff:1.2.3.4'",
            "'::ffff'",
            "'::1:0'",
            "'2001:db8:0:1:1:1:1:1'",
            "'2001:db8::1:0:0:1'",
            "'1:2:3:4:5:6:7:0'",
            "'0:1:1:1:1:1:1:1'",
            "'::ffff:0:1.2.3.4'",
            "'1:2:3:4:5:6:7:8'",
        ],
    ),
];

/// Types of the server that no property holds: `check` says so.
const REJECTED: [&str; 9] = [
    "geometry",
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geometrycollection",
    "vector",
];

fn mapping(table: &str, more: &str) -> String {
    format!("[[table]]\nname = '{table}'\nvertex = {{ label = '{table}' }}\n{more}")
}

/// The properties of columns `c0`, `c1`, … as the server says.
async fn said(conn: &mut Conn, table: &str, oracles: &[Oracle]) -> Vec<(i64, Properties)> {
    let columns: Vec<_> = oracles.iter().enumerate().map(|(at, oracle)| oracle.sql(&format!("c{at}"))).collect();
    let mut found = Vec::new();
    for row in
        conn.query::<mysql_async::Row, _>(format!("SELECT id, {} FROM {table}", columns.join(", "))).await.unwrap()
    {
        let values =
            (0..oracles.len()).filter_map(|at| Some((format!("c{at}"), row.get::<Option<String>, _>(at + 1)??)));
        found.push((row.get(0).unwrap(), values.collect()));
    }
    found
}

/// Each row is there with what the server says, whether it was copied or followed; those of one value are 1,000 apart.
async fn is_as_said(found: &Model, conn: &mut Conn, table: &str, oracles: &[Oracle], names: &[String]) {
    let said = said(conn, table, oracles).await;
    assert!(said.len() >= 2);
    for (id, expected) in &said {
        let vertex = &found.vertices[&format!("{table}:{id}")];
        for (at, name) in names.iter().enumerate() {
            let column = format!("c{at}");
            let how = if *id < 1_000 { "copied" } else { "followed" };
            assert_eq!(vertex.get(&column), expected.get(&column), "{name}, row {id}, {how}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_type_is_the_same_copied_and_followed() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    let mut conn = connect(&server).await;
    let columns: Vec<_> = TYPES.iter().enumerate().map(|(at, (declared, ..))| format!("c{at} {declared}")).collect();
    conn.query_drop("SET NAMES utf8mb4").await.unwrap();
    let options = "CHARACTER SET utf8mb4 ROW_FORMAT = DYNAMIC";
    conn.query_drop(format!("CREATE TABLE t (id int PRIMARY KEY, {}) {options}", columns.join(", "))).await.unwrap();
    // As they were before MariaDB 10.1.
    conn.query_drop("SET GLOBAL mysql56_temporal_format = OFF").await.unwrap();
    let old = [("time", Oracle::Time), ("datetime", Oracle::Moment), ("timestamp null", Oracle::Moment)];
    conn.query_drop("CREATE TABLE old (id int PRIMARY KEY, c0 time, c1 datetime, c2 timestamp null)").await.unwrap();
    conn.query_drop("CREATE TABLE older (id int PRIMARY KEY, c0 datetime(3))").await.unwrap();
    conn.query_drop("SET GLOBAL mysql56_temporal_format = ON").await.unwrap();
    let settings = settings(&server, &folder.path().join("graph"), &(mapping("t", "") + &mapping("old", "")));
    for first in [1, 1_001] {
        for row in 0..TYPES.iter().map(|(.., values)| values.len()).max().unwrap() {
            let values: Vec<_> = TYPES.iter().map(|(.., values)| *values.get(row).unwrap_or(&"NULL")).collect();
            let wrap = if row % 2 == 0 { "ON" } else { "OFF" };
            conn.query_drop(format!("SET column_compression_zlib_wrap = {wrap}")).await.unwrap();
            conn.query_drop(format!("INSERT INTO t VALUES ({}, {})", first + row, values.join(", "))).await.unwrap();
        }
        for (row, time) in ["-12:13:14", "838:59:59", "-838:59:59", "300:00:00", "-00:00:01"].iter().enumerate() {
            let moment = "'2026-03-01 09:30:59'";
            let statement = format!("INSERT INTO old VALUES ({}, '{time}', {moment}, {moment})", first + row);
            conn.query_drop(statement).await.unwrap();
        }
        let found = Model::of_graph(caught_up(&settings).await.graph()).await;
        let oracles: Vec<_> = TYPES.iter().map(|(_, oracle, _)| *oracle).collect();
        if first > 1 {
            let names: Vec<_> = TYPES.iter().map(|(declared, ..)| (*declared).to_owned()).collect();
            is_as_said(&found, &mut conn, "t", &oracles, &names).await;
            let names: Vec<_> = old.iter().map(|(declared, _)| format!("old {declared}")).collect();
            is_as_said(&found, &mut conn, "old", &old.map(|(_, oracle)| oracle), &names).await;
        }
    }
    // The log does not say how many digits these have.
    let rejected = rejection(&server, folder.path(), &mapping("older", "")).await;
    assert!(rejected.to_string().contains("column c0 (datetime(3)"), "{rejected}");
    assert!(rejected.what_to_do().contains("FORCE"), "{}", rejected.what_to_do());
    every_type_is_listed(&mut conn).await;
}

async fn rejection(server: &MariaDbServer, folder: &Path, mapping: &str) -> FeedError {
    check(&settings(server, &folder.join("refused"), mapping)).await.err().expect("check refuses it")
}

/// Asks the server's own help for its types.
async fn every_type_is_listed(conn: &mut Conn) {
    let names = "SELECT UPPER(REPLACE(t.name, ' Data Type', '')) FROM mysql.help_topic t JOIN mysql.help_category c USING (help_category_id) \
                 WHERE c.name LIKE '%Types' UNION SELECT plugin_name FROM information_schema.plugins WHERE plugin_type = 'DATA TYPE'";
    let names: Vec<String> = conn.query(names).await.unwrap();
    assert!(names.len() > 40, "{names:?}");
    let mut listed = BTreeSet::new();
    for name in names.iter().filter(|name| name.chars().all(|it| it.is_ascii_alphanumeric() || it == ' ')) {
        for arguments in ["", "(1)", "('a')"] {
            if conn.query_drop(format!("CREATE OR REPLACE TABLE probe (c {name}{arguments})")).await.is_ok() {
                let kind = "SELECT data_type FROM information_schema.columns WHERE table_name = 'probe'";
                listed.extend(conn.query_first::<String, _>(kind).await.unwrap());
            }
        }
    }
    let tested = "SELECT DISTINCT data_type FROM information_schema.columns WHERE table_name = 't'";
    let tested: Vec<String> = conn.query(tested).await.unwrap();
    assert!(listed.len() > 25, "{listed:?}");
    for kind in listed {
        assert!(tested.contains(&kind) || REJECTED.contains(&kind.as_str()), "type {kind} is in no test");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_charset_is_the_same_copied_and_followed() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    let mut conn = connect(&server).await;
    conn.query_drop("SET NAMES utf8mb4, group_concat_max_len = 1000000").await.unwrap();
    conn.query_drop("CREATE TABLE n (n int PRIMARY KEY) SELECT seq AS n FROM seq_0_to_255").await.unwrap();
    let charsets = "SELECT character_set_name, maxlen FROM information_schema.character_sets ORDER BY 1";
    let charsets: Vec<(String, u64)> = conn.query(charsets).await.unwrap();
    assert!(charsets.len() >= 38, "{charsets:?}");
    let mut tables = String::new();
    for (charset, _) in &charsets {
        // A label with letters that the charset has, if any.
        let mut label = "z".to_owned();
        for letter in ["é", "я", "中", "ա", "ა", "ع", "ก", "א", "Ä"] {
            let has = format!("SELECT CONVERT(CONVERT('{letter}' USING {charset}) USING utf8mb4) = '{letter}'");
            if *charset != "binary" && conn.query_first(has).await.unwrap() == Some(true) {
                label.push_str(letter);
            }
        }
        let table = format!(
            "CREATE TABLE of_{charset} (id int PRIMARY KEY, c0 mediumtext, c1 enum('a', '{label}'), c2 set('{label}', 'b')) \
             CHARACTER SET {charset}"
        );
        conn.query_drop(table).await.unwrap();
        tables += &mapping(&format!("of_{charset}"), "");
    }
    let settings = settings(&server, &folder.path().join("graph"), &tables);
    for first in [1, 1_001] {
        for (charset, longest) in &charsets {
            for codes in characters(charset, *longest) {
                let statement = format!(
                    "INSERT INTO of_{charset} SELECT {first} + (SELECT COUNT(*) FROM of_{charset} WHERE id >= {first}) + a, \
                     CONVERT(GROUP_CONCAT(code ORDER BY code SEPARATOR '') USING {charset}), IF(a % 2, 1, 2), 1 + a % 3 \
                     FROM ({codes}) codes GROUP BY a"
                );
                conn.query_drop(&statement).await.unwrap_or_else(|error| panic!("{charset}: {error}"));
            }
        }
        let feed = caught_up(&settings).await;
        if first == 1 {
            continue;
        }
        let found = Model::of_graph(feed.graph()).await;
        for (charset, _) in &charsets {
            let text = if charset == "binary" { Oracle::Hex } else { Oracle::Text };
            let names = ["text", "enum", "set"].map(|name| format!("{name} in {charset}"));
            is_as_said(&found, &mut conn, &format!("of_{charset}"), &[text, Oracle::Text, Oracle::Text], &names).await;
        }
    }
}

/// Runs a feed until it stops; what it committed, and why it stopped.
async fn stopped(settings: &Settings) -> (Model, FeedError) {
    let options = RunOptions { once: true, ..RunOptions::default() };
    let mut feed = Feed::open(settings.clone(), options, Arc::new(())).await.unwrap();
    let error = feed.run(std::future::pending()).await.expect_err("it stops");
    (Model::of_graph(feed.graph()).await, error)
}

/// A row has what its table was when it was logged, whatever it has become until it is read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_means_what_it_meant_when_it_was_logged() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    // A column of each kind that an ALTER gives another meaning, a value, what the column becomes, and the property.
    let columns = [
        ("enum('a','b')", "'b'", "enum('new','a','b')", "b"),
        ("set('a','b')", "'b'", "set('new','a','b')", "b"),
        ("int", "-6", "int unsigned", "-6"),
        ("tinyint unsigned", "200", "smallint", "200"),
        ("varchar(20) charset latin1", "'ï'", "varchar(20) charset latin2", "ï"),
        ("varchar(20) charset utf8mb4", "'中'", "varchar(20) charset utf16", "中"),
        ("enum('ï') charset latin1", "'ï'", "enum('ï') charset utf16", "ï"),
        ("varchar(300)", "'x'", "varchar(10)", "x"),
        ("decimal(10,3)", "1.5", "decimal(12,5)", "1.500"),
        ("time(3)", "'-00:00:01.25'", "time", "-00:00:01.25"),
        ("binary(6)", "x'01'", "varbinary(9)", "010000000000"),
        ("bit(9)", "257", "bigint", "257"),
        ("text compressed", "'zip'", "text", "zip"),
        // The property has another type by then.
        ("int", "7", "varchar(20)", "7"),
        ("varchar(20)", "'5'", "int", "5"),
        // A model has eight times a double.
        ("double", "1.5", "varchar(20)", "12"),
        ("date", "'1970-01-02'", "datetime", "1"),
        ("datetime", "'1970-01-01 00:00:01'", "varchar(40)", "1000000"),
        ("set('a','b')", "'b'", "varchar(20)", "b"),
        // What the log does not say.
        ("uuid", "'123e4567-e89b-12d3-a456-426614174000'", "binary(16)", "123e4567-e89b-12d3-a456-426614174000"),
        ("inet6", "'::1'", "binary(16)", "::1"),
        ("inet4", "'1.2.3.4'", "binary(4)", "1.2.3.4"),
        ("binary(4)", "x'01020304'", "inet4", "01020304"),
    ];
    let declared = |at: fn(&(&'static str, &'static str, &'static str, &'static str)) -> &'static str, verb: &str| {
        let columns = columns.iter().enumerate().map(|(number, column)| format!("{verb} c{number} {}", at(column)));
        columns.collect::<Vec<_>>().join(", ")
    };
    let create = format!(
        "SET NAMES utf8mb4; CREATE TABLE t (id int PRIMARY KEY, {}) CHARACTER SET utf8mb4; INSERT INTO t (id) VALUES (1)",
        declared(|it| it.0, "")
    );
    server.sql("test", &create).unwrap();
    let settings = settings(&server, &folder.path().join("graph"), &mapping("t", ""));
    caught_up(&settings).await;
    let values: Vec<_> = columns.iter().map(|(_, value, ..)| *value).collect();
    let alter = format!(
        "SET NAMES utf8mb4; SET sql_mode = ''; INSERT INTO t VALUES (2, {}); ALTER TABLE t {}",
        values.join(", "),
        declared(|it| it.2, "MODIFY")
    );
    server.sql("test", &alter).unwrap();
    let (found, error) = stopped(&settings).await;
    assert!(error.to_string().contains("c0"), "{error}");
    for (number, (declared, .., expected)) in columns.iter().enumerate() {
        let found = found.vertices["t:2"].get(&format!("c{number}")).map(String::as_str);
        assert_eq!(found, Some(*expected), "{declared}");
    }
}

/// An enum that came while the feed ran, and then had its labels in another order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn labels_that_came_later_are_those_of_the_row() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    server.sql("test", "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)").unwrap();
    let settings = settings(&server, &folder.path().join("graph"), &mapping("t", ""));
    caught_up(&settings).await;
    let statements = "ALTER TABLE t ADD COLUMN e enum('a','b'); INSERT INTO t VALUES (2, 'b'); ALTER TABLE t MODIFY e enum('b','c','a')";
    server.sql("test", statements).unwrap();
    let options = RunOptions { once: true, ..RunOptions::default() };
    let mut feed = Feed::open(settings.clone(), options, Arc::new(())).await.unwrap();
    // Whether the order of labels stops a feed is not what is tested here.
    let _ = feed.run(std::future::pending()).await;
    assert_eq!(Model::of_graph(feed.graph()).await.vertices["t:2"]["e"], "b");
}

/// A table with system versioning is its current rows, whether its period is declared or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_the_past_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    let period = "rs timestamp(6) GENERATED ALWAYS AS ROW START, re timestamp(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (rs, re)";
    let of_transactions = "rs bigint unsigned GENERATED ALWAYS AS ROW START, re bigint unsigned GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (rs, re)";
    let tables = format!(
        "CREATE TABLE implicit (id int PRIMARY KEY, a int) WITH SYSTEM VERSIONING;
         CREATE TABLE explicit (id int PRIMARY KEY, a int, {period}) WITH SYSTEM VERSIONING;
         CREATE TABLE parted (id int PRIMARY KEY, a int) WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME;
         CREATE TABLE by_transaction (id int PRIMARY KEY, a int, {of_transactions}) WITH SYSTEM VERSIONING"
    );
    server.sql("test", &tables).unwrap();
    let names = ["implicit", "explicit", "parted"];
    let mapped: String = names.iter().map(|name| mapping(name, "")).collect();
    let settings = settings(&server, &folder.path().join("graph"), &mapped);
    for name in names {
        server
            .sql(
                "test",
                &format!("INSERT INTO {name} (id, a) VALUES (1, 10), (5, 1); UPDATE {name} SET a = 2 WHERE id = 5"),
            )
            .unwrap();
    }
    let mut conn = connect(&server).await;
    for statements in [
        "",
        "UPDATE {t} SET a = 11 WHERE id = 1; INSERT INTO {t} (id, a) VALUES (2, 3); DELETE FROM {t} WHERE id = 2",
        "INSERT INTO {t} (id, a) VALUES (2, 4), (3, 5); UPDATE {t} SET id = 30 WHERE id = 3; REPLACE INTO {t} (id, a) VALUES (1, 12)",
        "BEGIN; DELETE FROM {t} WHERE id = 5; INSERT INTO {t} (id, a) VALUES (5, 6); UPDATE {t} SET a = 7 WHERE id = 5; COMMIT; DELETE HISTORY FROM {t}",
    ] {
        for name in names.iter().filter(|_| !statements.is_empty()) {
            server.sql("test", &statements.replace("{t}", name)).unwrap();
        }
        let found = Model::of_graph(caught_up(&settings).await.graph()).await;
        let mut rows = 0;
        for name in names {
            for (id, a) in conn.query::<(i64, i64), _>(format!("SELECT id, a FROM {name}")).await.unwrap() {
                let vertex = found.vertices.get(&format!("{name}:{id}"));
                assert_eq!(vertex.map(|it| it["a"].clone()), Some(a.to_string()), "{name} {id} after {statements}");
                rows += 1;
            }
        }
        assert_eq!(found.vertices.len(), rows, "after {statements}: {:?}", found.vertices.keys());
    }
    let rejected = rejection(&server, folder.path(), &mapping("by_transaction", "")).await;
    assert!(rejected.to_string().contains("column re"), "{rejected}");
}

/// Which rows are of the past is what the log said then: a period that was dropped since, or one that came since, changes nothing of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_the_past_are_those_of_the_period_at_the_time() {
    let folder = tempfile::tempdir().unwrap();
    let server = MariaDbServer::start(&[]).unwrap();
    let [row_start, row_end] =
        ["rs timestamp(6) GENERATED ALWAYS AS ROW START", "re timestamp(6) GENERATED ALWAYS AS ROW END"];
    let period = format!("{row_start}, {row_end}, PERIOD FOR SYSTEM_TIME (rs, re)");
    let moments = "timestamp(6) NULL DEFAULT '2026-03-01'";
    let end = "SET system_versioning_alter_history = KEEP; ALTER TABLE t DROP SYSTEM VERSIONING";
    // A table, what is ignored of it, what becomes of it, and why the feed stops there, if it does.
    let cases = [
        (
            format!("{period}) WITH SYSTEM VERSIONING"),
            "",
            format!("{end}, DROP COLUMN rs, DROP COLUMN re"),
            "SYSTEM VERSIONING",
        ),
        (
            format!("{period}) WITH SYSTEM VERSIONING"),
            "'rs', 're'",
            format!(
                "{end}, DROP COLUMN rs, DROP COLUMN re; ALTER TABLE t ADD COLUMN rs {moments}, ADD COLUMN re {moments}"
            ),
            "SYSTEM VERSIONING",
        ),
        (
            "x int) WITH SYSTEM VERSIONING".to_owned(),
            "",
            format!("{end}; ALTER TABLE t ADD COLUMN row_start {moments}, ADD COLUMN row_end {moments}"),
            "SYSTEM VERSIONING",
        ),
        (
            format!("rs {moments}, re {moments})"),
            "'rs', 're'",
            format!(
                "ALTER TABLE t DROP COLUMN rs, DROP COLUMN re; \
                 ALTER TABLE t ADD COLUMN {row_start}, ADD COLUMN {row_end}, ADD PERIOD FOR SYSTEM_TIME (rs, re), ADD SYSTEM VERSIONING"
            ),
            "SYSTEM VERSIONING",
        ),
        (
            format!("row_start {moments}, row_end {moments})"),
            "'row_start', 'row_end'",
            "ALTER TABLE t DROP COLUMN row_start, DROP COLUMN row_end".to_owned(),
            "",
        ),
    ];
    for (number, (table, ignored, becomes, why)) in cases.iter().enumerate() {
        let create = format!(
            "CREATE OR REPLACE TABLE t (id int PRIMARY KEY, a int, {table}; INSERT INTO t (id, a) VALUES (1, 10)"
        );
        server.sql("test", &create).unwrap();
        let more = format!("ignore = [{ignored}]\n");
        let settings = settings(&server, &folder.path().join(number.to_string()), &mapping("t", &more));
        caught_up(&settings).await;
        let rows = "INSERT INTO t (id, a) VALUES (2, 20), (3, 30); UPDATE t SET a = 11 WHERE id = 1; DELETE FROM t WHERE id = 3";
        server.sql("test", &format!("{rows}; {becomes}")).unwrap();
        let found = match why.is_empty() {
            true => Model::of_graph(caught_up(&settings).await.graph()).await,
            false => {
                let (found, error) = stopped(&settings).await;
                assert!(error.to_string().contains(why), "{number}: {error}");
                found
            }
        };
        let rows: Vec<_> = found.vertices.iter().map(|(name, it)| (name.as_str(), it["a"].as_str())).collect();
        assert_eq!(rows, [("t:1", "11"), ("t:2", "20")], "{table}, then {becomes}");
    }
}

/// Queries of all characters of a charset as bytes (`code`), by groups of them (`a`).
fn characters(charset: &str, longest: u64) -> Vec<String> {
    let points = |of: &str| {
        let code = format!("CAST(CONVERT(CONVERT({of} USING utf32) USING {charset}) AS BINARY)");
        format!("SELECT a.n AS a, {code} AS code FROM n a, n b WHERE a.n NOT BETWEEN 216 AND 223 AND a.n + b.n > 0")
    };
    let basic = points("CONCAT(CHAR(0, 0), CHAR(a.n), CHAR(b.n))");
    if charset == "binary" {
        return vec!["SELECT 0 AS a, CHAR(n) AS code FROM n".to_owned()];
    }
    if charset.starts_with("utf") || charset == "ucs2" {
        let beyond = points("CONCAT(CHAR(0, 1), CHAR(a.n), CHAR(b.n))").replace("a.n NOT", "a.n > 240 AND a.n NOT");
        return if longest == 4 { vec![basic, beyond] } else { vec![basic] };
    }
    // Bytes that are one character, also those that no other charset has.
    let whole = |code: &str| {
        format!(
            "CAST(CONVERT({code} USING {charset}) AS BINARY) = {code} AND CHAR_LENGTH(CONVERT({code} USING {charset})) = 1"
        )
    };
    let one = "CHAR(b.n)";
    let two = "CONCAT(CHAR(a.n), CHAR(b.n))";
    let three = "CONCAT(CHAR(143), CHAR(a.n), CHAR(b.n))";
    let mut all = vec![format!("SELECT 0 AS a, {one} AS code FROM n b WHERE {}", whole(one))];
    for (code, of) in [(two, 2), (three, 3)] {
        if longest >= of {
            all.push(format!("SELECT a.n AS a, {code} AS code FROM n a, n b WHERE a.n > 127 AND {}", whole(code)));
        }
    }
    all
}
