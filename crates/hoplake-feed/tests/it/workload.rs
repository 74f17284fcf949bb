//! A company whose tables have every type of column, every kind of key and rule, and random transactions that change them.
//!
//! | table | becomes |
//! | --- | --- |
//! | `team` (text key, which changes) | vertices; its lead is a foreign key that becomes null |
//! | `person` (soft deletes, a manager among themselves, all types) | vertices and edges |
//! | `contract` (composite key with the person's, follows and goes with them) | vertices and edges |
//! | `member` (person, team, since when) | edges, several between the same two |
//! | `note` (about a person whom nothing guarantees) | vertices and edges that wait |
//! | `payroll` | not mapped |

use std::collections::BTreeMap;

use mysql_async::{Conn, Error, Row, Value, prelude::Queryable};

use crate::model::{Model, Properties};

pub const TABLES: &str = "
CREATE TABLE team (code VARCHAR(20) CHARACTER SET latin1 NOT NULL PRIMARY KEY, title VARCHAR(60) CHARACTER SET utf8mb4, lead_id INT) ENGINE=InnoDB;
CREATE TABLE person (
  id INT NOT NULL PRIMARY KEY, name VARCHAR(40) CHARACTER SET utf8mb4 NOT NULL, deleted_at DATETIME NULL,
  manager_id INT NULL, team_code VARCHAR(20) CHARACTER SET latin1 NULL,
  tiny TINYINT, small SMALLINT UNSIGNED, medium MEDIUMINT, big BIGINT, huge BIGINT UNSIGNED, is_on TINYINT(1), bits BIT(5),
  amount DECIMAL(12,3), ratio DOUBLE, part FLOAT, born DATE, seen DATETIME(6), changed TIMESTAMP(3) NULL, took TIME(3), since YEAR,
  kind ENUM('a','b','it''s') CHARACTER SET utf8mb4, tags SET('x','y','z') CHARACTER SET utf8mb4, latin VARCHAR(20) CHARACTER SET latin1,
  fixed CHAR(8) CHARACTER SET utf8mb4, code BINARY(6), photo BLOB, story LONGTEXT CHARACTER SET utf8mb4, ident UUID, address INET6, ignored TEXT,
  FOREIGN KEY (manager_id) REFERENCES person (id) ON DELETE SET NULL,
  FOREIGN KEY (team_code) REFERENCES team (code) ON DELETE SET NULL ON UPDATE CASCADE
) ENGINE=InnoDB;
CREATE TABLE contract (
  person_id INT NOT NULL, day DATE NOT NULL, salary DECIMAL(10,2), PRIMARY KEY (person_id, day),
  FOREIGN KEY (person_id) REFERENCES person (id) ON DELETE CASCADE ON UPDATE CASCADE
) ENGINE=InnoDB;
CREATE TABLE member (
  person_id INT NOT NULL, team_code VARCHAR(20) CHARACTER SET latin1 NOT NULL, day DATE NOT NULL, part INT, PRIMARY KEY (person_id, team_code, day),
  FOREIGN KEY (person_id) REFERENCES person (id) ON DELETE CASCADE ON UPDATE CASCADE,
  FOREIGN KEY (team_code) REFERENCES team (code) ON DELETE CASCADE ON UPDATE CASCADE
) ENGINE=InnoDB;
CREATE TABLE note (id INT NOT NULL PRIMARY KEY, about INT, body TEXT) ENGINE=InnoDB;
CREATE TABLE payroll (id INT NOT NULL PRIMARY KEY AUTO_INCREMENT, total INT) ENGINE=InnoDB;
";

pub const MAPPING: &str = r#"
[[table]]
name = "team"
vertex = { label = "Team" }
[[table.edges]]
label = "ledBy"
columns = "lead_id"
to = "Person"

[[table]]
name = "person"
where = "deleted_at is null"
ignore = ["ignored", "deleted_at"]
types = { is_on = "bool", huge = "string" }
keep = ["team_code"]
vertex = { label = "Person" }
[[table.edges]]
label = "manages"
columns = "manager_id"
from = "Person"
[[table.edges]]
label = "worksIn"
columns = "team_code"
to = "Team"

[[table]]
name = "contract"
vertex = { label = "Contract" }
[[table.edges]]
label = "of"
columns = "person_id"
to = "Person"

[[table]]
name = "member"
[table.edge]
label = "memberOf"
source = { label = "Person", columns = "person_id" }
target = { label = "Team", columns = "team_code" }

[[table]]
name = "note"
rename = { body = "text" }
vertex = { label = "Note" }
[[table.edges]]
label = "about"
columns = "about"
to = "Person"
"#;

/// Numbers that are random and repeat from a seed.
pub struct Dice(pub fastrand::Rng);

/// Statements that are a transaction each. The first two delete all rows of a table.
const STATEMENTS: [&str; 5] = [
    "TRUNCATE TABLE note",
    "TRUNCATE TABLE member",
    "CREATE INDEX IF NOT EXISTS i ON note (about)",
    "DROP INDEX IF EXISTS i ON note",
    "ANALYZE TABLE note",
];

impl Dice {
    fn below(&mut self, end: i64) -> i64 {
        self.0.i64(0..end)
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.0.usize(0..of.len())]
    }

    /// A literal, or null.
    fn or_null(&mut self, literal: String) -> String {
        if self.below(6) == 0 { "NULL".into() } else { literal }
    }

    fn person(&mut self) -> i64 {
        self.below(25)
    }

    fn team(&mut self) -> String {
        format!("'{}'", self.one(&["a", "b:c", "d\\\\e", "é", "f g", "h"]))
    }

    fn day(&mut self) -> String {
        format!("'{}-{:02}-{:02}'", 1900 + self.below(200), 1 + self.below(12), 1 + self.below(28))
    }

    /// Assignments of the columns of a person.
    fn columns(&mut self) -> String {
        let names = ["Ann", "Bob", "Žofie", "李", "O''Hara", "🦊", ""];
        let big = [i64::MIN, -1, 0, 7, i64::MAX];
        let all = [
            ("name", format!("'{}'", self.one(&names))),
            ("manager_id", "NULL".to_owned()),
            ("tiny", (self.below(256) - 128).to_string()),
            ("small", self.below(65_536).to_string()),
            ("medium", (self.below(1 << 24) - (1 << 23)).to_string()),
            ("big", big[self.0.usize(0..5)].to_string()),
            ("huge", self.one(&["0", "18446744073709551615", "7"]).to_owned()),
            ("is_on", self.below(2).to_string()),
            ("bits", self.below(32).to_string()),
            ("amount", format!("{}.{:03}", self.below(2_000_000) - 1_000_000, self.below(1_000))),
            ("ratio", format!("{}", self.below(1_000) as f64 / 8.0 - 50.0)),
            ("part", format!("{}", self.below(1_000) as f64 / 8.0 - 50.0)),
            ("born", self.day()),
            ("seen", format!("'20{:02}-02-03 04:05:06.{:06}'", self.below(100), self.below(1_000_000))),
            ("changed", format!("'20{:02}-02-03 04:05:06.{:03}'", self.below(30), self.below(1_000))),
            ("took", format!("'{}{:02}:59:07.{:03}'", self.one(&["", "-"]), self.below(800), self.below(1_000))),
            ("since", self.one(&["1901", "2155", "0000", "2026"]).to_owned()),
            ("kind", self.one(&["'a'", "'b'", "'it''s'"]).to_owned()),
            ("tags", self.one(&["''", "'x'", "'x,z'", "'x,y,z'"]).to_owned()),
            ("latin", self.one(&["'café'", "'x €'", "''"]).to_owned()),
            ("fixed", self.one(&["'a'", "'ab  '", "'12345678'"]).to_owned()),
            ("code", self.one(&["x'010000000000'", "x'000000000000'", "'abcdef'"]).to_owned()),
            ("photo", format!("x'{}'", "00ff7f".repeat(self.0.usize(0..40)))),
            ("story", format!("REPEAT('długo ', {})", self.below(3) * 900)),
            (
                "ident",
                self.one(&["'123e4567-e89b-12d3-a456-426614174000'", "'f47ac10b-58cc-4372-a567-0e02b2c3d400'"])
                    .to_owned(),
            ),
            ("address", self.one(&["'::1'", "'2001:db8::ff00:42:8300'", "'::ffff:192.0.2.128'"]).to_owned()),
            ("ignored", format!("'{}'", self.below(9))),
        ];
        let mut chosen = Vec::new();
        for (name, literal) in all {
            if name == "name" || self.below(2) == 0 {
                let literal = if name == "name" { literal } else { self.or_null(literal) };
                chosen.push(format!("{name} = {literal}"));
            }
        }
        chosen.join(", ")
    }

    /// A statement that may fail for its keys.
    fn statement(&mut self) -> String {
        match self.below(23) {
            0..=3 => format!("INSERT INTO person SET id = {}, {}", self.person(), self.columns()),
            4..=6 => format!("UPDATE person SET {} WHERE id = {}", self.columns(), self.person()),
            7 => format!(
                "UPDATE person SET deleted_at = {} WHERE id = {}",
                self.one(&["NULL", "'2026-01-01'"]),
                self.person()
            ),
            8 => format!("UPDATE person SET manager_id = {} WHERE id = {}", self.person(), self.person()),
            9 => format!("UPDATE person SET team_code = {} WHERE id = {}", self.team(), self.person()),
            10 => format!("UPDATE person SET id = {} WHERE id = {}", self.person(), self.person()),
            11 => format!("DELETE FROM person WHERE id = {}", self.person()),
            12 => format!(
                "REPLACE INTO team SET code = {}, title = '{}', lead_id = {}",
                self.team(),
                self.below(9),
                self.person()
            ),
            13 => format!("INSERT INTO team SET code = {}, title = 'new'", self.team()),
            14 => format!("UPDATE team SET code = {}, title = 'moved' WHERE code = {}", self.team(), self.team()),
            15 => format!("DELETE FROM team WHERE code = {}", self.team()),
            16 => format!("INSERT INTO contract VALUES ({}, {}, {})", self.person(), self.day(), self.below(9)),
            17 => format!("UPDATE contract SET salary = {} WHERE person_id = {}", self.below(9), self.person()),
            18 => format!(
                "REPLACE INTO member VALUES ({}, {}, '2026-01-0{}', {})",
                self.person(),
                self.team(),
                1 + self.below(3),
                self.below(9)
            ),
            19 => format!("DELETE FROM member WHERE person_id = {}", self.person()),
            20 => format!("REPLACE INTO note VALUES ({}, {}, 'x')", self.below(20), self.person()),
            21 => format!("UPDATE note SET id = id + 100, about = {} WHERE id = {}", self.person(), self.below(20)),
            _ => "INSERT INTO payroll SET total = 7".to_owned(),
        }
    }
}

/// Runs a random transaction, which may roll back; returns its position if it committed something.
pub async fn transaction(conn: &mut Conn, dice: &mut Dice) -> Result<Option<String>, Error> {
    transaction_of(conn, dice, &STATEMENTS).await
}

/// The same without TRUNCATE.
pub async fn transaction_of_rows(conn: &mut Conn, dice: &mut Dice) -> Result<Option<String>, Error> {
    transaction_of(conn, dice, &STATEMENTS[2..]).await
}

async fn transaction_of(conn: &mut Conn, dice: &mut Dice, statements: &[&str]) -> Result<Option<String>, Error> {
    let before: Option<String> = conn.query_first("SELECT @@last_gtid").await?;
    if dice.below(150) == 0 {
        conn.query_drop(dice.one(statements)).await?;
    } else {
        conn.query_drop("BEGIN").await?;
        for _ in 0..=dice.below(6) {
            match conn.query_drop(dice.statement()).await {
                Ok(()) => {}
                // A key that is taken, or a row that is named.
                Err(Error::Server(error)) if [1062, 1451, 1452, 1761].contains(&error.code) => {}
                Err(error) => return Err(error),
            }
            if dice.below(8) == 0 {
                conn.query_drop("SAVEPOINT s").await?;
                let _ = conn.query_drop(dice.statement()).await;
                conn.query_drop("ROLLBACK TO SAVEPOINT s").await?;
            }
        }
        conn.query_drop(if dice.below(8) == 0 { "ROLLBACK" } else { "COMMIT" }).await?;
    }
    let after: Option<String> = conn.query_first("SELECT @@last_gtid").await?;
    Ok(after.filter(|after| Some(after) != before.as_ref()))
}

/// What the tables say that the graph should have, by SQL alone.
pub async fn expected(conn: &mut Conn) -> Result<Model, Error> {
    let mut model = Model::default();
    let days = |column: &str| format!("DATEDIFF({column}, '1970-01-01')");
    let micros = |column: &str| format!("TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {column})");
    let utf8 = |column: &str| format!("CONVERT({column} USING utf8mb4)");
    let of_person = [
        ("name", "name".to_owned()),
        ("team_code", utf8("team_code")),
        ("tiny", "tiny".into()),
        ("small", "small".into()),
        ("medium", "medium".into()),
        ("big", "big".into()),
        ("huge", "huge".into()),
        ("is_on", "is_on".into()),
        ("bits", "bits + 0".into()),
        ("amount", "amount".into()),
        ("ratio", "ROUND(ratio * 8)".into()),
        ("part", "ROUND(part * 8)".into()),
        ("born", days("born")),
        ("seen", micros("seen")),
        ("changed", micros("changed")),
        ("took", "TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM CAST(took AS CHAR)))".into()),
        ("since", "since + 0".into()),
        ("kind", "kind".into()),
        ("tags", "tags".into()),
        ("latin", utf8("latin")),
        ("fixed", "fixed".into()),
        ("code", "LOWER(HEX(code))".into()),
        ("photo", "LOWER(HEX(photo))".into()),
        ("story", "story".into()),
        ("ident", "CAST(ident AS CHAR)".into()),
        ("address", "CAST(address AS CHAR)".into()),
    ];
    let columns: Vec<_> = of_person.iter().map(|(name, sql)| (*name, sql.as_str())).collect();
    let alive = "FROM person WHERE deleted_at IS NULL";
    vertices(conn, &mut model, "Person", "id", &columns, alive).await?;
    vertices(conn, &mut model, "Team", &utf8("code"), &[("title", "title")], "FROM team").await?;
    let contract = "CONCAT(person_id, ':', day)";
    let day = days("day");
    vertices(conn, &mut model, "Contract", contract, &[("day", &day), ("salary", "salary")], "FROM contract").await?;
    vertices(conn, &mut model, "Note", "id", &[("text", "body")], "FROM note").await?;
    let living = |column: &str| format!("{column} IN (SELECT id {alive})");
    let team = utf8("team_code");
    for (label, ends, source, target, from, properties) in [
        ("manages", ("Person", "Person"), "manager_id", "id", format!("{alive} AND {}", living("manager_id")), vec![]),
        ("worksIn", ("Person", "Team"), "id", team.as_str(), format!("{alive} AND team_code IS NOT NULL"), vec![]),
        (
            "of",
            ("Contract", "Person"),
            contract,
            "person_id",
            format!("FROM contract WHERE {}", living("person_id")),
            vec![],
        ),
        (
            "ledBy",
            ("Team", "Person"),
            &utf8("code"),
            "lead_id",
            format!("FROM team WHERE {}", living("lead_id")),
            vec![],
        ),
        ("about", ("Note", "Person"), "id", "about", format!("FROM note WHERE {}", living("about")), vec![]),
        (
            "memberOf",
            ("Person", "Team"),
            "person_id",
            team.as_str(),
            format!("FROM member WHERE {}", living("person_id")),
            vec![("day", day.as_str()), ("part", "part")],
        ),
    ] {
        let named = properties.iter().map(|(_, sql)| format!(", {sql}")).collect::<String>();
        let rows: Vec<Row> = conn.query(format!("SELECT {source}, {target}{named} {from}")).await?;
        for row in rows {
            let cells: Vec<_> = row.unwrap().into_iter().map(cell).collect();
            let values = properties
                .iter()
                .zip(&cells[2..])
                .filter_map(|((name, _), cell)| Some(((*name).to_owned(), cell.clone()?)));
            let source = cells[0].clone().unwrap();
            let target = cells[1].clone().unwrap();
            model.add_edge((ends.0, &source), label, (ends.1, &target), values.collect());
        }
    }
    Ok(model)
}

async fn vertices(
    conn: &mut Conn,
    model: &mut Model,
    label: &str,
    key: &str,
    properties: &[(&str, &str)],
    from: &str,
) -> Result<(), Error> {
    let named = properties.iter().map(|(_, sql)| format!(", {sql}")).collect::<String>();
    let rows: Vec<Row> = conn.query(format!("SELECT {key}{named} {from}")).await?;
    for row in rows {
        let mut cells = row.unwrap().into_iter().map(cell);
        let key = cells.next().unwrap().unwrap();
        let values: BTreeMap<_, _> =
            properties.iter().zip(cells).filter_map(|((name, _), cell)| Some(((*name).to_owned(), cell?))).collect();
        let values: Properties = values;
        model.vertices.insert(format!("{label}:{key}"), values);
    }
    Ok(())
}

/// A value of the text protocol.
fn cell(value: Value) -> Option<String> {
    match value {
        Value::NULL => None,
        Value::Bytes(bytes) => Some(String::from_utf8(bytes).unwrap()),
        other => Some(other.as_sql(true)),
    }
}
