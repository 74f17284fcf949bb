//! Texts that a database sends: statements in a log, and values of PostgreSQL.
//!
//! The first byte says which. A statement has effects on the tables that are followed or none, and an error shows at most 400 characters
//! of it. A value is one of its column or says what is wrong with it.

#![no_main]

use hoplake_feed::{
    Cell,
    source::fuzzing::{read_statement, read_value},
};
use hoplake_fuzz::{begin, bounded, seeds};
use libfuzzer_sys::fuzz_target;

const TYPES: [&str; 10] =
    ["bool", "int4", "float4", "float8", "date", "timestamp", "timestamptz", "bpchar", "bytea", "text"];

const STATEMENTS: [&str; 12] = [
    "ALTER TABLE t ADD COLUMN w int NULL, ALGORITHM=INPLACE",
    "ALTER TABLE `test`.`t` CHANGE v w varchar(20) COMMENT 'it''s', DROP INDEX IF EXISTS i",
    "CREATE TABLE other (id int /* t */) -- t",
    "DROP TABLE IF EXISTS t, u",
    "RENAME TABLE t TO x, u TO t, x TO u",
    "TRUNCATE TABLE t",
    "SET STATEMENT max_statement_time=60 FOR ALTER TABLE t MODIFY v text",
    "START ALTER TABLE t ADD w int",
    "/*!50001 ALTER TABLE t ENGINE=InnoDB */",
    "INSERT INTO t VALUES (1, 'secret', \"secret\", x'41', 0x41)",
    "CREATE TRIGGER a BEFORE INSERT ON t FOR EACH ROW BEGIN SET @x = 1; END",
    "DROP DATABASE test",
];

const VALUES: [&str; 8] = [
    "{1,NULL,\"a \\\"b\\\"\"}",
    "[2:3]={1,2}",
    "{{1},{2}}",
    "infinity",
    "2024-02-29 23:59:60.5+00",
    "NaN",
    "\\x41",
    "t",
];

fuzz_target!(
    init: {
        begin();
        seeds(STATEMENTS.iter().map(|text| [&[0], text.as_bytes()].concat()));
        seeds(VALUES.iter().zip(1..).map(|(text, kind)| [&[kind * 3], text.as_bytes()].concat()));
    },
    |input: &[u8]| {
        let [choice, rest @ ..] = input else { return };
        bounded((1 << 20) + 512 * rest.len(), || match usize::from(*choice) {
            0 => {
                let Ok(statement) = std::str::from_utf8(rest) else { return };
                let (_, shown) = read_statement(statement);
                assert!(shown.chars().count() <= 400);
            }
            kind => {
                let cell = read_value(TYPES[kind / 2 % TYPES.len()], kind % 2 == 1, rest);
                assert_ne!(cell, Cell::Absent, "what is there is a value or wrong");
            }
        });
    }
);
