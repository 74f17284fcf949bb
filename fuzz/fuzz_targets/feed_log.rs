//! Lines of Debezium and Maxwell: they are transactions of tables that are followed, or an error, which is none of the graph.
//!
//! The first byte says which program wrote them, of which database.

#![no_main]

use std::sync::LazyLock;

use hoplake::{PropertyType, ScalarType};
use hoplake_feed::{
    BeforeImages, Catalog, Column, FeedErrorKind, LogFormat, Table, TableName, TimePrecision,
    source::{CatalogFile, fuzzing::read_log},
};
use hoplake_fuzz::{begin, bounded, seeds};
use libfuzzer_sys::fuzz_target;

const MARIADB: &[u8] = include_bytes!("../../crates/hoplake-feed/tests/samples/debezium-mariadb.jsonl");
const POSTGRES: &[u8] = include_bytes!("../../crates/hoplake-feed/tests/samples/debezium-postgres.jsonl");
const MAXWELL: &[u8] = include_bytes!("../../crates/hoplake-feed/tests/samples/maxwell.jsonl");

/// As a type is declared in MariaDB or PostgreSQL: columns of each are named `c0`, `c1` and so on.
const TYPES: [&str; 22] = [
    "bigint(20) unsigned",
    "int",
    "boolean",
    "float",
    "double",
    "decimal(10,2)",
    "varchar(20)",
    "char(4)",
    "binary(4)",
    "bit(9)",
    "date",
    "time(3)",
    "datetime(6)",
    "timestamp",
    "year",
    "enum('a','b')",
    "set('a','b')",
    "json",
    "integer[]",
    "numeric",
    "uuid",
    "timestamp with time zone",
];

static CATALOGS: LazyLock<[CatalogFile; 2]> = LazyLock::new(|| {
    [("mysql://127.0.0.1/test", "test"), ("postgres://127.0.0.1/test", "public")].map(|(url, schema)| {
        let column = |name: &str, declared: &str| Column {
            name: name.into(),
            declared: declared.into(),
            kind: Some(PropertyType::Scalar(ScalarType::String)),
            suggested: None,
            is_nullable: true,
            compared_by: None,
        };
        let table = |name: &str, columns: Vec<Column>| Table {
            name: TableName::new(schema, name),
            primary_key: vec![columns[0].name.clone()],
            columns,
            foreign_keys: Vec::new(),
            before_images: BeforeImages::Complete,
        };
        let named = [
            ("person", &["id", "name", "boss"][..]),
            ("member", &["team", "person", "since"]),
            ("visit", &["id", "place", "stars"]),
            ("letter", &["id", "read", "body"]),
        ];
        let mut tables: Vec<_> = named
            .into_iter()
            .map(|(name, columns)| table(name, columns.iter().map(|name| column(name, "varchar(40)")).collect()))
            .collect();
        let all = TYPES.iter().enumerate().map(|(at, declared)| column(&format!("c{at}"), declared));
        tables.push(table("t", all.collect()));
        let catalog = Catalog { tables, logs_cascades: schema == "public" };
        CatalogFile::new(url, schema, catalog).expect("these are URLs of databases")
    })
});

fuzz_target!(
    init: {
        begin();
        LazyLock::force(&CATALOGS);
        seeds(samples());
    },
    |input: &[u8]| {
        let [choice, log @ ..] = input else { return };
        let (format, database) = match choice % 3 {
            0 => (LogFormat::Debezium, 0),
            1 => (LogFormat::Debezium, 1),
            _ => (LogFormat::Maxwell, 0),
        };
        let times = [TimePrecision::Adaptive, TimePrecision::AdaptiveTimeMicroseconds, TimePrecision::Connect];
        let times = times[usize::from(choice / 3 % 3)];
        bounded((4 << 20) + 512 * log.len(), || {
            if let Err(error) = read_log(log, format, times, CATALOGS[database].clone()) {
                assert_ne!(error.kind(), FeedErrorKind::Graph, "{error}");
            }
        });
    }
);

/// Each line of the samples by itself, and some together.
fn samples() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (choice, log) in [(3, MARIADB), (1, POSTGRES), (2, MAXWELL)] {
        let lines: Vec<_> = log.split(|byte| *byte == b'\n').collect();
        all.extend(lines.iter().step_by(3).map(|line| [&[choice], *line].concat()));
        all.extend(lines.chunks(8).take(6).map(|some| [&[choice], &*some.join(&b'\n')].concat()));
    }
    all.push(
        b"\x02{\"database\":\"test\",\"table\":\"t\",\"type\":\"insert\",\"ts\":1,\"xid\":1,\"commit\":true,\
        \"position\":\"b.1:4\",\"data\":{\"c0\":1,\"c5\":1.5,\"c9\":5,\"c10\":\"2024-01-01\",\"c15\":\"a\"}}"
            .to_vec(),
    );
    all
}
