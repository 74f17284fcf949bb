//! PostgreSQL: at every version the graph is what the tables were at that position.
//!
//! Rows before a change are logged as far as the default says: their keys, if these change. Only of those with a condition, or whose key
//! is not their primary key, all is logged. Cascades are in the log.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use hoplake::Graph;
use hoplake_feed::{Feed, FeedErrorKind, ReconcileOptions, RunOptions, Settings};
use hoplake_testkit::PostgresServer;
use serde_json::Value as Json;

use crate::{
    following::{
        caught_up, check_versions, followed_with_kills, from_environment, has_versions, run_through_damage, settings_of,
    },
    model::Model,
    reconciling::{caught_up_with_damage, damage, repaired, reported},
};

pub(crate) const TABLES: &str = "
CREATE TYPE mood AS ENUM ('sad', 'it''s ok');
CREATE TABLE team (code char(4) PRIMARY KEY, title text, lead int);
CREATE TABLE person (
  id int PRIMARY KEY, name text NOT NULL, deleted_at timestamp, manager int REFERENCES person ON DELETE SET NULL ON UPDATE CASCADE,
  team char(4) REFERENCES team ON DELETE SET NULL ON UPDATE CASCADE, is_on bool, small int2, big int8, amount numeric(12,3), part real,
  ratio double precision, born date, seen timestamp, changed timestamptz, took time, feels mood, tags text[], numbers int[], ident uuid,
  address inet, photo bytea, story text, extra jsonb, ignored text
);
CREATE TABLE contract (person int REFERENCES person ON DELETE CASCADE ON UPDATE CASCADE, day date, salary numeric, PRIMARY KEY (person, day));
CREATE TABLE member (
  person int REFERENCES person ON DELETE CASCADE ON UPDATE CASCADE, team char(4) REFERENCES team ON DELETE CASCADE ON UPDATE CASCADE,
  day date, part int, PRIMARY KEY (person, team, day)
);
CREATE TABLE note (id int PRIMARY KEY, about int, body text);
ALTER TABLE note REPLICA IDENTITY FULL;
ALTER TABLE person REPLICA IDENTITY FULL;
CREATE TABLE payroll (id serial PRIMARY KEY, total int);
CREATE PUBLICATION hoplake_company FOR TABLE team, person, contract, member, note;
";

pub(crate) const MAPPING: &str = r#"
[[table]]
name = "team"
vertex = { label = "Team" }
edges = [{ label = "ledBy", columns = "lead", to = "Person" }]

[[table]]
name = "person"
where = "deleted_at is null"
ignore = ["ignored", "deleted_at"]
vertex = { label = "Person" }
edges = [{ label = "manages", columns = "manager", from = "Person" }, { label = "worksIn", columns = "team", to = "Team" }]

[[table]]
name = "contract"
vertex = { label = "Contract" }
edges = [{ label = "of", columns = "person", to = "Person" }]

[[table]]
name = "member"
edge = { label = "memberOf", source = { label = "Person", columns = "person" }, target = { label = "Team", columns = "team" } }

[[table]]
name = "note"
vertex = { label = "Note" }
edges = [{ label = "about", columns = "about", to = "Person" }]
"#;

/// What the tables say, a line of JSON each: a vertex with its label, key and properties, or an edge with its ends.
const EXPECTED: &str = "
SELECT json_build_array('Team', rtrim(code), json_build_object('title', title)) FROM team;
SELECT json_build_array('Person', id::text, json_build_object('name', name, 'is_on', is_on::int::text, 'small', small::text, 'big', big::text,
  'amount', amount::text, 'part', round(part * 8)::text, 'ratio', round(ratio * 8)::text, 'born', (born - date '1970-01-01')::text,
  'seen', (extract(epoch from seen) * 1000000)::bigint::text, 'changed', (extract(epoch from changed) * 1000000)::bigint::text,
  'took', took::text, 'feels', feels::text, 'tags', array_to_string(tags, ',', ''), 'numbers', array_to_string(numbers, ','),
  'ident', ident::text, 'address', nullif(format('%s', address), ''), 'photo', encode(photo, 'hex'), 'story', story, 'extra', extra::text))
  FROM person WHERE deleted_at IS NULL;
SELECT json_build_array('Contract', person || ':' || day, json_build_object('day', (day - date '1970-01-01')::text, 'salary', salary::text)) FROM contract;
SELECT json_build_array('Note', id::text, json_build_object('body', body)) FROM note;
CREATE TEMP VIEW alive AS SELECT * FROM person WHERE deleted_at IS NULL;
SELECT json_build_array('Team', rtrim(code), 'ledBy', 'Person', lead::text, '{}'::json) FROM team WHERE lead IN (SELECT id FROM alive);
SELECT json_build_array('Person', manager::text, 'manages', 'Person', id::text, '{}'::json) FROM alive WHERE manager IN (SELECT id FROM alive);
SELECT json_build_array('Person', id::text, 'worksIn', 'Team', rtrim(team), '{}'::json) FROM alive WHERE team IS NOT NULL;
SELECT json_build_array('Contract', person || ':' || day, 'of', 'Person', person::text, '{}'::json) FROM contract WHERE person IN (SELECT id FROM alive);
SELECT json_build_array('Note', id::text, 'about', 'Person', about::text, '{}'::json) FROM note WHERE about IN (SELECT id FROM alive);
SELECT json_build_array('Person', person::text, 'memberOf', 'Team', rtrim(team), json_build_object('day', (day - date '1970-01-01')::text, 'part', part::text))
  FROM member WHERE person IN (SELECT id FROM alive);
";

pub(crate) fn expected(server: &PostgresServer) -> Model {
    after(server, "").1
}

/// The end of the log, or somewhat before it, and the tables after some statements.
pub(crate) fn after(server: &PostgresServer, statements: &str) -> (u64, Model) {
    let mut model = Model::default();
    let asking = format!("{statements}; SELECT pg_current_wal_insert_lsn(); SET TimeZone = UTC; {EXPECTED}");
    let said = server.sql("test", &asking).unwrap();
    let (position, rows) = said.split_once('\n').unwrap();
    for line in rows.lines() {
        let row: Vec<Json> = serde_json::from_str(line).unwrap();
        let text = |at: usize| row[at].as_str().unwrap();
        let properties = row.last().unwrap().as_object().unwrap();
        let properties =
            properties.iter().filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
        match row.len() {
            3 => drop(model.vertices.insert(format!("{}:{}", text(0), text(1)), properties)),
            _ => model.add_edge((text(0), text(1)), text(2), (text(3), text(4)), properties),
        }
    }
    (number(position), model)
}

pub(crate) struct Dice(pub(crate) fastrand::Rng);

impl Dice {
    fn below(&mut self, end: i64) -> i64 {
        self.0.i64(0..end)
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.0.usize(0..of.len())]
    }

    fn person(&mut self) -> i64 {
        self.below(25)
    }

    fn team(&mut self) -> String {
        format!("'{}'", self.one(&["a", "b:c", "d\\e", "é", "f g", "h"]))
    }

    fn day(&mut self) -> String {
        format!("'{}-{:02}-{:02}'", 1900 + self.below(200), 1 + self.below(12), 1 + self.below(28))
    }

    /// Text that does not compress, so that it is kept outside of its row.
    fn story(&mut self) -> String {
        (0..self.0.usize(0..9_000)).map(|_| self.0.alphanumeric()).collect()
    }

    fn columns(&mut self) -> Vec<(&'static str, String)> {
        let story = self.story();
        let all = [
            ("name", format!("'{}'", self.one(&["Ann", "李", "O''Hara", "🦊", ""]))),
            ("is_on", self.one(&["true", "false"]).to_owned()),
            ("small", (self.below(65_536) - 32_768).to_string()),
            ("big", self.one(&["-9223372036854775808", "9223372036854775807", "0"]).to_owned()),
            ("amount", format!("{}.{:03}", self.below(2_000_000) - 1_000_000, self.below(1_000))),
            ("part", format!("{}", self.below(1_000) as f64 / 8.0 - 50.0)),
            ("ratio", format!("{}", self.below(1_000) as f64 / 8.0 - 50.0)),
            ("born", self.day()),
            ("seen", format!("'20{:02}-02-03 04:05:06.{:06}'", self.below(100), self.below(1_000_000))),
            ("changed", format!("'20{:02}-02-03 04:05:06.{:06}+05:30'", self.below(100), self.below(1_000_000))),
            ("took", format!("'{:02}:59:07.{:03}'", self.below(24), self.below(1_000))),
            ("feels", self.one(&["'sad'", "'it''s ok'"]).to_owned()),
            ("tags", self.one(&["'{}'", "'{a}'", r#"'{"a b",NULL,"q\"\\"}'"#]).to_owned()),
            ("numbers", self.one(&["'{}'", "'{1,-2,3}'"]).to_owned()),
            ("ident", "'123e4567-e89b-12d3-a456-426614174000'".to_owned()),
            ("address", self.one(&["'::1'", "'10.0.0.0/8'"]).to_owned()),
            ("photo", format!("'\\x{}'", "00ff7f".repeat(self.0.usize(0..40)))),
            ("story", format!("'{story}'")),
            ("extra", r#"'{"a": [1, 2.50], "b": null}'"#.to_owned()),
            ("ignored", format!("'{}'", self.below(9))),
        ];
        let mut chosen = Vec::new();
        for (name, literal) in all {
            if name == "name" || self.below(2) == 0 {
                let is_null = name != "name" && self.below(6) == 0;
                chosen.push((name, if is_null { "NULL".into() } else { literal }));
            }
        }
        chosen
    }

    fn statement(&mut self) -> String {
        match self.below(24) {
            0..=3 => {
                let (names, values): (Vec<_>, Vec<_>) = self.columns().into_iter().unzip();
                format!(
                    "INSERT INTO person (id, {}) VALUES ({}, {})",
                    names.join(", "),
                    self.person(),
                    values.join(", ")
                )
            }
            4..=6 => {
                let set: Vec<_> = self.columns().into_iter().map(|(name, value)| format!("{name} = {value}")).collect();
                format!("UPDATE person SET {} WHERE id = {}", set.join(", "), self.person())
            }
            7 => format!(
                "UPDATE person SET deleted_at = {} WHERE id = {}",
                self.one(&["NULL", "'2026-01-01'"]),
                self.person()
            ),
            8 => format!("UPDATE person SET manager = {} WHERE id = {}", self.person(), self.person()),
            9 => format!("UPDATE person SET team = {} WHERE id = {}", self.team(), self.person()),
            10 => format!("UPDATE person SET id = {} WHERE id = {}", self.person(), self.person()),
            11 => format!("DELETE FROM person WHERE id = {}", self.person()),
            12 => format!(
                "UPDATE team SET lead = {}, title = '{}' WHERE code = {}",
                self.person(),
                self.below(9),
                self.team()
            ),
            13 | 14 => format!("INSERT INTO team VALUES ({}, 'new', {})", self.team(), self.person()),
            15 => format!("UPDATE team SET code = {} WHERE code = {}", self.team(), self.team()),
            16 => format!("DELETE FROM team WHERE code = {}", self.team()),
            17 => format!("INSERT INTO contract VALUES ({}, {}, {})", self.person(), self.day(), self.below(9)),
            18 => format!("UPDATE contract SET salary = {}.50 WHERE person = {}", self.below(9), self.person()),
            19 | 20 => {
                let person = self.person();
                let team = self.team();
                let day = 1 + self.below(3);
                format!(
                    "INSERT INTO member VALUES ({person}, {team}, '2026-01-0{day}', {0}) ON CONFLICT (person, team, day) DO UPDATE SET part = {0}",
                    self.below(9)
                )
            }
            21 => format!("DELETE FROM member WHERE person = {}", self.person()),
            22 => format!(
                "INSERT INTO note VALUES ({}, {}, 'x') ON CONFLICT (id) DO UPDATE SET about = {}",
                self.below(20),
                self.person(),
                self.person()
            ),
            _ => format!("UPDATE note SET id = id + 100, about = {} WHERE id = {}", self.person(), self.below(20)),
        }
    }

    /// A transaction in which statements may fail by themselves.
    pub(crate) fn transaction(&mut self) -> String {
        if self.below(120) == 0 {
            return self
                .one(&[
                    "TRUNCATE note",
                    "TRUNCATE member, note",
                    "CREATE INDEX ON note (about)",
                    "INSERT INTO payroll (total) VALUES (1)",
                ])
                .to_owned();
        }
        let mut text = "BEGIN;".to_owned();
        for _ in 0..=self.below(6) {
            text.push_str(&format!(
                "DO $do$ BEGIN {}; EXCEPTION WHEN unique_violation OR foreign_key_violation THEN NULL; END $do$;",
                self.statement()
            ));
        }
        text + if self.below(8) == 0 { "ROLLBACK" } else { "COMMIT" }
    }
}

fn settings(server: &PostgresServer, graph: &Path, mapping: &str) -> Settings {
    settings_of(&server.url("test"), graph, mapping)
}

/// A position as a number.
pub(crate) fn number(position: &str) -> u64 {
    let (high, low) = position.trim().split_once('/').unwrap();
    (u64::from_str_radix(high, 16).unwrap() << 32) + u64::from_str_radix(low, 16).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_version_is_what_the_tables_were() {
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(&["fsync=off"]).unwrap();
    server.sql("test", TABLES).unwrap();
    let settings = settings(&server, &folder.path().join("graph"), MAPPING);
    let (seed, transactions) = from_environment(150);
    let mut dice = Dice(fastrand::Rng::with_seed(seed));
    for _ in 0..60 {
        server.sql("test", &dice.transaction()).unwrap();
    }
    let running = tokio::spawn(followed_with_kills(settings.clone(), seed, 200..1_500));
    // By the end of each transaction, or somewhat behind it.
    let mut history = BTreeMap::from([after(&server, "")]);
    let mut done = 0;
    while done < transactions || !has_versions(&settings).await && done < 10 * transactions {
        done += 1;
        // Until the first copy is made, nothing may change: its position is not that of a transaction.
        if history.len() == 1 {
            while Graph::open(&settings.graph).await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            history.extend([after(&server, "")]);
        }
        history.extend([after(&server, &dice.transaction())]);
    }
    running.abort();
    let _ = running.await;
    let feed = caught_up(&settings).await;
    let found = Model::of_graph(feed.graph()).await;
    let tables = expected(&server);
    assert!(found == tables, "at the end: graph | tables\n{}", found.difference(&tables));
    // The server also says where its log is while a transaction is under way, of which nothing is there yet.
    let at = |position: &str| {
        let number = number(position);
        let before = history.range(..number).next_back();
        let after = history.range(number..).next();
        [before, after].into_iter().flatten().map(|(_, model)| model).collect()
    };
    let checked = check_versions(feed.graph().store(), at).await;
    assert!(checked > 20, "only {checked} versions to compare");
    println!("{} transactions, {checked} versions compared", history.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_may_die() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = PostgresServer::start(&[]).unwrap();
    server.sql("test", "CREATE TABLE note (id int PRIMARY KEY); CREATE PUBLICATION hoplake_company FOR TABLE note; INSERT INTO note VALUES (1)").unwrap();
    let mapping = "[[table]]\nname = 'note'\nvertex = { label = 'Note' }\n";
    let settings = settings(&server, &folder.path().join("graph"), mapping);
    caught_up(&settings).await;
    let running = tokio::spawn(followed_with_kills(settings.clone(), 7, 200..1_500));
    for id in 2..6 {
        server.kill();
        server.restart().unwrap();
        server.sql("test", &format!("INSERT INTO note VALUES ({id})")).unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    running.abort();
    let _ = running.await;
    let feed = caught_up(&settings).await;
    let keys: Vec<_> = Model::of_graph(feed.graph()).await.vertices.into_keys().collect();
    assert_eq!(keys, ["Note:1", "Note:2", "Note:3", "Note:4", "Note:5"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_followed_stops_the_feed() {
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(&["fsync=off"]).unwrap();
    server.sql("test", "CREATE TABLE note (id int PRIMARY KEY, body text); INSERT INTO note VALUES (1, 'x')").unwrap();
    let mapping = "[[table]]\nname = 'note'\nvertex = { label = 'Note' }\n";
    let settings = settings(&server, &folder.path().join("graph"), mapping);
    let once = RunOptions { once: true, ..RunOptions::default() };
    let rejected = Feed::open(settings.clone(), once.clone(), Arc::new(())).await.err().unwrap();
    assert!(rejected.to_string().contains("no publication hoplake_company"), "{rejected}");
    // The hint is the statement to run.
    server.sql("test", rejected.what_to_do().strip_prefix("run: ").unwrap()).unwrap();
    caught_up(&settings).await;
    // A column that may be null is followed, also if it comes while nobody does.
    server.sql("test", "ALTER TABLE note ADD COLUMN more int; INSERT INTO note VALUES (2, 'y', 7)").unwrap();
    let feed = caught_up(&settings).await;
    assert_eq!(Model::of_graph(feed.graph()).await.vertices["Note:2"]["more"], "7");
    // One that each row has a value in is not.
    server.sql("test", "ALTER TABLE note ADD COLUMN n int DEFAULT 5").unwrap();
    let mut feed = Feed::open(settings.clone(), once.clone(), Arc::new(())).await.unwrap();
    let stopped = feed.run(std::future::pending()).await.unwrap_err();
    assert!(stopped.to_string().contains("column n is new, and rows have had values in it since"), "{stopped}");
    drop(feed);
    let accepted = stopped.what_to_do().rsplit(' ').next().unwrap().to_owned();
    let options = RunOptions { accepted: Some(accepted), ..once.clone() };
    server.sql("test", "INSERT INTO note VALUES (3, 'z', 8, 9)").unwrap();
    let mut feed = Feed::open(settings.clone(), options, Arc::new(())).await.unwrap();
    feed.run(std::future::pending()).await.unwrap();
    assert_eq!(Model::of_graph(feed.graph()).await.vertices["Note:3"]["n"], "9");
    drop(feed);
    // Without its slot, what came meanwhile is lost.
    for _ in 0..50 {
        if server.sql("test", "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots").is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let mut feed = Feed::open(settings, once, Arc::new(())).await.unwrap();
    let lost = feed.run(std::future::pending()).await.unwrap_err();
    assert_eq!(lost.kind(), FeedErrorKind::Purged, "{lost}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_go_on_while_they_are_compared_and_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(&[]).unwrap();
    server.sql("test", TABLES).unwrap();
    let path = folder.path().join("graph");
    let settings = settings(&server, &path, MAPPING);
    let mut dice = Dice(fastrand::Rng::with_seed(from_environment(0).0));
    let write = |dice: &mut Dice, transactions| {
        for _ in 0..transactions {
            // One that breaks a rule is rolled back.
            let _ = server.sql("test", &dice.transaction());
        }
    };
    write(&mut dice, 60);
    caught_up(&settings).await;
    write(&mut dice, 10);
    // The log between the version and the snapshot is read beside a feed that is not there.
    let (reconciled, found) = reported(&settings, ReconcileOptions::default()).await;
    assert!(reconciled.is_equal(), "{found:?}");
    let stop = Arc::new(tokio::sync::Notify::new());
    let stopped = stop.clone();
    let of_feed = settings.clone();
    let feed = Feed::open(settings.clone(), RunOptions::default(), Arc::new(())).await.unwrap();
    let running = tokio::spawn(async move { run_through_damage(feed, &of_feed, &stopped).await });
    for _ in 0..4 {
        write(&mut dice, 5);
        let (reconciled, found) = reported(&settings, ReconcileOptions::default()).await;
        assert!(reconciled.is_equal(), "{found:?}");
        damage(&path, 8, &mut dice.0).await;
        write(&mut dice, 5);
        repaired(&settings).await;
    }
    stop.notify_one();
    running.await.unwrap();
    caught_up_with_damage(&settings).await;
    repaired(&settings).await;
    let found = Model::of_graph(&Graph::open(path.to_str().unwrap()).await.unwrap()).await;
    let expected = expected(&server);
    assert!(found == expected, "{}", found.difference(&expected));
    let slots = server.sql("test", "SELECT count(*) FROM pg_replication_slots").unwrap();
    assert_eq!(slots.trim(), "1", "nothing is left of a comparison");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_graphs_follow_one_database_each_with_its_slot() {
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(&[]).unwrap();
    server
        .sql(
            "test",
            "CREATE TABLE note (id int PRIMARY KEY, n int, v varchar(9), d numeric(9,2));
             CREATE PUBLICATION hoplake_company FOR TABLE note; INSERT INTO note VALUES (1, 2, 'x', 1.5)",
        )
        .unwrap();
    let mapping = "[[table]]\nname = 'note'\nvertex = { label = 'Note' }\n";
    let of = |name: &str| settings(&server, &folder.path().join(name), mapping);
    let once = RunOptions { once: true, ..RunOptions::default() };
    let mut one = Feed::open(of("one"), once.clone(), Arc::new(())).await.unwrap();
    caught_up(&of("two")).await;
    // Types in which all values are the same are followed.
    server
        .sql(
            "test",
            "INSERT INTO note VALUES (2, 2, 'x', 1.5); ALTER TABLE note ALTER v TYPE text, ALTER d TYPE numeric(12,2);
             INSERT INTO note VALUES (3, 5, 'longer than nine', 1234567890.25)",
        )
        .unwrap();
    one.run(std::future::pending()).await.unwrap();
    let found = Model::of_graph(one.graph()).await;
    assert_eq!(found.vertices["Note:3"]["v"], "longer than nine");
    assert_eq!(Model::of_graph(caught_up(&of("two")).await.graph()).await, found);
    server
        .sql("test", "INSERT INTO note (id) VALUES (4); ALTER TABLE note ALTER d TYPE numeric(12,1); INSERT INTO note (id) VALUES (5)")
        .unwrap();
    let mut one = Feed::open(of("one"), once.clone(), Arc::new(())).await.unwrap();
    let error = one.run(std::future::pending()).await.unwrap_err();
    assert!(error.to_string().contains("column d has another type"), "{error}");
    drop(one);
    // Its values were rounded, and no log says so: all rows are compared.
    let one = Feed::open(of("one"), RunOptions { resnapshot: true, ..once.clone() }, Arc::new(())).await.unwrap();
    assert_eq!(Model::of_graph(one.graph()).await.vertices["Note:3"]["d"], "1234567890.3");
    drop(one);
    server.sql("test", "ALTER PUBLICATION hoplake_company SET TABLE note WHERE (id > 1)").unwrap();
    let rejected = Feed::open(of("two"), once, Arc::new(())).await.err().unwrap();
    assert!(rejected.to_string().contains("has only the rows of public.note with (id > 1)"), "{rejected}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_position_moves_while_others_write() {
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(&[]).unwrap();
    server
        .sql("test", "CREATE TABLE note (id int PRIMARY KEY); CREATE TABLE other (t text); CREATE PUBLICATION hoplake_company FOR TABLE note")
        .unwrap();
    let mut settings =
        settings(&server, &folder.path().join("graph"), "[[table]]\nname = 'note'\nvertex = { label = 'Note' }\n");
    settings.stream.position_every_ms = 10;
    let mut feed = Feed::open(settings, RunOptions::default(), Arc::new(())).await.unwrap();
    let before = number(&feed.position().of_source);
    // 20 MB of log, of which nothing is about the note.
    server.sql("test", "INSERT INTO other SELECT repeat(md5(i::text), 60) FROM generate_series(1, 10000) i").unwrap();
    server.sql("test", "INSERT INTO other SELECT repeat(md5(i::text), 60) FROM generate_series(1, 1000) i").unwrap();
    let moved = async {
        while feed.position().of_source.is_empty() || number(&feed.position().of_source) < before + (16 << 20) {
            feed.run(tokio::time::sleep(Duration::from_millis(500))).await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(60), moved).await.expect("the position moves");
}
