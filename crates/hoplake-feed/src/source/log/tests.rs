//! Logs that are written again in parts, split, damaged or hostile.

mod parts;

use std::collections::BTreeSet;

use hoplake::{Name, PropertyType, ScalarType, Value};
use serde_json::value::RawValue;

use super::{
    assembler::Assembler,
    event::Tables,
    files::Files,
    place::LogPosition,
    transport::{LogConsumer, Next, Record},
    values::{Decoder, Style},
    *,
};
use crate::{BeforeImages, Cell, Change, ChangeList, Column, FeedErrorKind, Images, Table, Transaction};

const MARIADB: &str = include_str!("../../../tests/samples/debezium-mariadb.jsonl");
const POSTGRES: &str = include_str!("../../../tests/samples/debezium-postgres.jsonl");
const MAXWELL: &str = include_str!("../../../tests/samples/maxwell.jsonl");

fn style(format: LogFormat, database: Database) -> Style {
    let times = match database {
        Database::MariaDb => TimePrecision::AdaptiveTimeMicroseconds,
        Database::Postgres => TimePrecision::Adaptive,
    };
    Style { format, database, times, decimals: crate::DecimalHandling::String }
}

fn column(name: &str, declared: &str) -> Column {
    let kind = Some(PropertyType::Scalar(ScalarType::String));
    Column { name: name.into(), declared: declared.into(), kind, suggested: None, is_nullable: true, compared_by: None }
}

/// Tables of the samples, of which `kinds` has text only.
fn catalog(database: Database) -> Catalog {
    let (schema, bigint) = match database {
        Database::MariaDb => ("test", "bigint(20) unsigned"),
        Database::Postgres => ("public", "bigint"),
    };
    let table = |name: &str, columns: Vec<Column>, key: &[&str]| Table {
        name: TableName::new(schema, name),
        columns,
        primary_key: key.iter().map(|it| Name::from(*it)).collect(),
        foreign_keys: Vec::new(),
        before_images: if database == Database::MariaDb || name == "visit" {
            BeforeImages::Complete
        } else {
            BeforeImages::Keys
        },
    };
    let person = vec![column("id", bigint), column("name", "varchar(40)"), column("boss", bigint)];
    let member = vec![column("person", bigint), column("team", "varchar(4)"), column("since", "date")];
    let visit = vec![
        column("id", if database == Database::MariaDb { "int" } else { "integer" }),
        column("place", "varchar(20)"),
        column("stars", "text"),
    ];
    let letter = vec![column("id", "integer"), column("read", "boolean"), column("body", "text")];
    let t = vec![column("id", "int"), column("v", "varchar(20)")];
    let u = vec![column("id", "int")];
    let tables = vec![
        table("t", t, &["id"]),
        table("u", u, &["id"]),
        table("letter", letter, &["id"]),
        table("member", member, &["team", "person"]),
        table("person", person, &["id"]),
        table("visit", visit, &["id"]),
    ];
    Catalog { tables, logs_cascades: database == Database::Postgres }
}

fn following(catalog: &Catalog) -> Following {
    let all = |table: &Table| table.columns.iter().map(|column| column.name.clone()).collect::<BTreeSet<_>>();
    Following {
        tables: catalog.tables.iter().map(|table| (table.name.clone(), all(table))).collect(),
        transaction_bytes_max: 1 << 24,
        ..Following::default()
    }
}

fn record_of(part: &str, offset: usize, written_unix_ms: i64, line: &str) -> Record {
    Record {
        part: part.into(),
        at: format!("{part}:{offset}"),
        before: offset.to_string(),
        after: (offset + 1).to_string(),
        written_unix_ms,
        value: line.as_bytes().to_vec().into(),
        is_line: true,
        is_mark: false,
    }
}

/// A log that is read from a position on.
struct Reader {
    style: Style,
    assembler: Assembler,
}

impl Reader {
    fn new(style: Style, position: &str, is_split: bool) -> Self {
        let catalog = catalog(style.database);
        let following = following(&catalog);
        let tables = Tables::new(&catalog, &following, style);
        let position = LogPosition::parse(position).unwrap();
        Self { style, assembler: Assembler::new(position, tables, following, Vec::new(), is_split) }
    }

    /// What is handed on when a record comes.
    fn take(&mut self, part: &str, offset: usize, line: &str) -> Result<Vec<Transaction>, FeedError> {
        self.take_of(part, offset, 0, line)
    }

    /// The same when one comes that was written then.
    fn take_of(
        &mut self,
        part: &str,
        offset: usize,
        written_unix_ms: i64,
        line: &str,
    ) -> Result<Vec<Transaction>, FeedError> {
        let record = record_of(part, offset, written_unix_ms, line);
        let event = self.style.decode(&record, self.assembler.tables())?;
        self.assembler.take(&record, event)?;
        self.ready()
    }

    fn ready(&mut self) -> Result<Vec<Transaction>, FeedError> {
        let mut all = Vec::new();
        while let Some(transaction) = self.assembler.next()? {
            all.push(transaction);
        }
        Ok(all)
    }

    /// All transactions of lines that change something, the last one after a while without a record.
    fn all(&mut self, lines: &[&str]) -> Vec<Transaction> {
        let mut all: Vec<_> =
            lines.iter().enumerate().flat_map(|(offset, line)| self.take("log", offset, line).unwrap()).collect();
        self.assembler.settle();
        all.extend(self.ready().unwrap());
        all.retain(|transaction| !transaction.changes.is_empty());
        all
    }
}

fn changes(all: &[Transaction]) -> Vec<&ChangeList> {
    all.iter().map(|transaction| &transaction.changes).collect()
}

/// The lines of a sample after its snapshot.
fn stream_of(sample: &str) -> Vec<&str> {
    let is_first =
        |line: &&str| line.contains("BEGIN") || line.contains("\"type\":\"insert\"") && line.contains("\"test\"");
    let first = sample.lines().position(|line| is_first(&line) && !line.contains("\"maxwell\"")).unwrap();
    sample.lines().skip(first).collect()
}

fn samples() -> Vec<(&'static str, Style, Vec<String>)> {
    let owned = |lines: Vec<&str>| lines.into_iter().map(str::to_owned).collect::<Vec<_>>();
    // As they are without provide.transaction.metadata.
    let plain = |sample: &str| {
        let without = |line: &str| {
            let mut json: serde_json::Value = serde_json::from_str(line).unwrap();
            json.get("status").is_none().then(|| {
                json["transaction"] = serde_json::Value::Null;
                json.to_string()
            })
        };
        stream_of(sample).into_iter().filter_map(without).collect::<Vec<_>>()
    };
    let with_schema = |line: &str| format!("{{\"schema\":{{\"type\":\"struct\"}},\"payload\":{line}}}");
    let (mariadb, postgres) =
        (style(LogFormat::Debezium, Database::MariaDb), style(LogFormat::Debezium, Database::Postgres));
    vec![
        ("mariadb", mariadb, owned(stream_of(MARIADB))),
        ("mariadb without metadata", mariadb, plain(MARIADB)),
        ("postgres", postgres, owned(stream_of(POSTGRES))),
        ("postgres without metadata", postgres, plain(POSTGRES)),
        ("mariadb with schemas", mariadb, stream_of(MARIADB).into_iter().map(with_schema).collect()),
        ("maxwell", style(LogFormat::Maxwell, Database::MariaDb), owned(stream_of(MAXWELL))),
    ]
}

#[test]
fn a_feed_goes_on_from_each_position() {
    for (name, style, lines) in samples() {
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let all = Reader::new(style, ";start", false).all(&lines);
        assert!(all.len() >= 7, "{name}: {}", all.len());
        for (number, transaction) in all.iter().enumerate() {
            let position = &transaction.position;
            let offset: usize = LogPosition::parse(position).unwrap().offsets["log"].parse().unwrap();
            let mut reader = Reader::new(style, position, false);
            let mut rest: Vec<_> = lines[offset..].to_vec();
            assert_eq!(changes(&reader.all(&rest)), changes(&all[number + 1..]), "{name} from {position}");
            // Without offsets, as of standard input, the place in the database is enough.
            let place = format!(";{}", position.split_once(';').unwrap().1);
            rest = lines.clone();
            assert_eq!(
                changes(&Reader::new(style, &place, false).all(&rest)),
                changes(&all[number + 1..]),
                "{name} {place}"
            );
        }
    }
}

/// All forms of a record which says that what is before it may be forgotten.
const TOMBSTONES: [&str; 7] = [
    "",
    "  ",
    "null",
    " null\r",
    "{\"schema\":null,\"payload\":null}",
    "{\"payload\":null}",
    "{\"payload\": null, \"schema\": {\"type\":\"struct\",\"fields\":[{\"type\":\"int32\"}]}}",
];

#[test]
fn tombstones_are_passed_over() {
    for (name, style, lines) in samples() {
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let expected = Reader::new(style, ";start", false).all(&lines);
        let with: Vec<_> = lines.iter().flat_map(|line| [&[*line][..], &TOMBSTONES].concat()).collect();
        let found = Reader::new(style, ";start", false).all(&with);
        assert_eq!(changes(&found), changes(&expected), "{name}");
        // They come after the position like any other record.
        let position = &found.last().unwrap().position;
        let offset: usize = LogPosition::parse(position).unwrap().offsets["log"].parse().unwrap();
        assert!(offset > lines.len(), "{name}: {position}");
        // What is only like one is not.
        for other in
            ["nul", "NULL", "{}", "[]", "{\"schema\":null}", "{\"payload\":null,\"op\":\"d\"}", "null null", "\"null\""]
        {
            let mut reader = Reader::new(style, ";start", false);
            assert!(reader.take("log", 0, other).is_err() || is_cut(other.as_bytes()), "{name}: {other}");
        }
    }
}

#[test]
fn what_producers_write_again_is_passed_over() {
    for (name, style, lines) in samples() {
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let expected = Reader::new(style, ";start", false).all(&lines);
        for seed in 0..200 {
            let mut dice = fastrand::Rng::with_seed(seed);
            let mut written = Vec::new();
            let mut at = 0;
            while at < lines.len() {
                written.push(lines[at]);
                at += 1;
                // Killed within a line.
                if at < lines.len() && dice.u32(0..20) == 0 {
                    let end = (1..lines[at].len()).rev().nth(dice.usize(0..lines[at].len() / 2)).unwrap();
                    written.push(&lines[at][..lines[at].floor_char_boundary(end)]);
                }
                // Killed, and started again somewhere before.
                if written.len() < 400 && dice.u32(0..12) == 0 {
                    at -= dice.usize(0..=at.min(15));
                }
            }
            let found = Reader::new(style, ";start", false).all(&written);
            assert_eq!(changes(&found), changes(&expected), "{name}, seed {seed}");
        }
    }
}

#[test]
fn a_transaction_may_be_begun_again_in_its_middle() {
    let style = style(LogFormat::Debezium, Database::MariaDb);
    let lines: Vec<_> = include_str!("../../../tests/samples/debezium-mariadb-killed.jsonl").lines().collect();
    let first = lines.iter().position(|line| line.contains("BEGIN")).unwrap();
    for is_split in [false, true] {
        let mut reader = Reader::new(style, ";start", is_split);
        let mut all = Vec::new();
        for (offset, line) in lines[first..].iter().enumerate() {
            let json: serde_json::Value = serde_json::from_str(line).unwrap();
            let part = if is_split { json["source"]["table"].as_str().unwrap_or("transaction") } else { "log" };
            all.extend(reader.take_of(part, offset, 2_000 * offset as i64, line).unwrap());
        }
        let counts: Vec<_> = changes(&all).into_iter().map(ChangeList::len).filter(|count| *count > 0).collect();
        assert_eq!(counts, [46, 1]);
        let kinds = all[0].changes.as_slice().unwrap().iter().map(|change| match change {
            Change::Row(row) => (row.columns.table.name.to_string(), matches!(row.images, Images::Insert(_))),
            Change::Truncate(_) => unreachable!("there is none"),
        });
        let of = |table: &str, is_insert, count| std::iter::repeat_n((table.to_owned(), is_insert), count);
        assert!(kinds.eq(of("u", true, 1).chain(of("t", true, 40)).chain(of("t", false, 5))));
    }
}

#[test]
fn a_transaction_that_is_begun_again_is_counted_anew() {
    let style = style(LogFormat::Debezium, Database::MariaDb);
    let lines: Vec<_> = include_str!("../../../tests/samples/debezium-mariadb-killed.jsonl").lines().collect();
    let of = |from: usize, what: &str| from + lines[from..].iter().position(|line| line.contains(what)).unwrap();
    let first = of(0, "BEGIN");
    let second = of(first + 1, "BEGIN");
    let end = of(second, "END");
    // The first time all changes were written, and not their end.
    let number = |line: &str| line.split("\"total_order\":").nth(1)?.split(',').next()?.parse::<u64>().ok();
    let renumbered = lines[second + 1..end].iter().map(|line| {
        let number = number(line).unwrap();
        line.replace(&format!("\"total_order\":{number},"), &format!("\"total_order\":{},", number + 3))
    });
    let written: Vec<_> = lines[first..first + 4].iter().map(ToString::to_string).chain(renumbered).collect();
    let written: Vec<_> = written.iter().map(String::as_str).chain(lines[second..=end].iter().copied()).collect();
    let all = Reader::new(style, ";start", false).all(&written);
    assert_eq!(changes(&all).into_iter().map(ChangeList::len).collect::<Vec<_>>(), [46]);
}

#[test]
fn what_cannot_be_followed_is_rejected() {
    let mariadb = style(LogFormat::Debezium, Database::MariaDb);
    let maxwell = style(LogFormat::Maxwell, Database::MariaDb);
    let plain = samples().remove(1).2;
    let rejected = |style: Style, is_split: bool, lines: &[&str]| {
        let mut reader = Reader::new(style, ";start", is_split);
        let mut taken = lines.iter().enumerate().map(|(offset, line)| reader.take("log", offset, line));
        let error = taken.find_map(Result::err).expect("it is refused");
        format!("{error}; {}", error.what_to_do())
    };
    let row = |xid: u64, more: &str, data: &str| {
        format!(
            r#"{{"type":"insert","database":"test","table":"visit","ts":1,"xid":{xid},"position":"b.000001:{xid}",{more},"data":{{{data}}}}}"#
        )
    };
    let commit = |xid, data| row(xid, "\"commit\":true", data);
    let ddl = |sql: &str| {
        format!(
            r#"{{"type":"table-alter","database":"test","table":"visit","ts":1000,"position":"b.000001:9","sql":"{sql}"}}"#
        )
    };
    let person = plain.iter().find(|line| line.contains("\"person\"")).unwrap();
    let of_visit = "\"id\":1,\"place\":\"x\"";
    for (style, is_split, lines, expected) in [
        (mariadb, true, vec![person.clone()], "provide.transaction.metadata=true"),
        (mariadb, false, vec!["{\"name\":\"x\"}".into()], "without ExtractNewRecordState"),
        (mariadb, false, vec!["{\"op\":\"x\"}".into()], "a change has no source"),
        (maxwell, false, vec![commit(7, of_visit).replace("b.000001:7", "7")], "output_binlog_position=true"),
        (maxwell, false, vec![row(7, "\"xoffset\":1", of_visit)], "does not have change 0 of transaction 7"),
        (maxwell, false, vec![commit(7, "\"id\":1,\"other\":2")], "at log:0: table test.visit has column other"),
        (maxwell, false, vec![ddl("ALTER TABLE visit DROP COLUMN place")], "--accept-ddl log:0"),
        (maxwell, false, vec![ddl("DROP TABLE visit")], "is dropped"),
        (maxwell, false, vec![commit(7, of_visit).replace("\"insert\"", "\"other\"")], "unknown type other"),
    ] {
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let why = rejected(style, is_split, &lines);
        assert!(why.contains(expected), "{why} | {expected}");
    }
    // A column that may be null and has no default is none of these.
    let mut reader = Reader::new(maxwell, ";start", false);
    assert!(reader.take("log", 0, &ddl("ALTER TABLE visit ADD COLUMN more INT")).is_ok());
    // A log of a server that was set up again is not taken for repetitions.
    reader = Reader::new(maxwell, ";binlog:0:b.000009:4", false);
    assert!(reader.take("log", 0, &commit(7, of_visit)).unwrap_err().to_string().contains("has begun again"));
    // A statement is passed over if the user says so.
    let following = Following { accepted: Some("log:0".into()), ..following(&catalog(Database::MariaDb)) };
    let tables = Tables::new(&catalog(Database::MariaDb), &following, maxwell);
    let assembler = Assembler::new(LogPosition::default(), tables, following, Vec::new(), false);
    let mut reader = Reader { style: maxwell, assembler };
    assert!(reader.take("log", 0, &ddl("ALTER TABLE visit DROP COLUMN place")).is_ok());
}

#[test]
fn transactions_without_end_are_bounded() {
    let (_, style, lines) = samples().remove(0);
    let row = lines.iter().find(|line| line.contains("\"table\":\"person\"")).unwrap();
    for is_repeated in [true, false] {
        let following = Following { transaction_bytes_max: 1 << 16, ..following(&catalog(style.database)) };
        let tables = Tables::new(&catalog(style.database), &following, style);
        let mut reader =
            Reader { style, assembler: Assembler::new(LogPosition::default(), tables, following, Vec::new(), true) };
        let error = (1..10_000).find_map(|number| {
            let line = row.replace("\"total_order\":1,", &format!("\"total_order\":{number},"));
            let line = if is_repeated { line } else { line.replace("\"row\":0", &format!("\"row\":{number}")) };
            reader.take("log", number, &line).err()
        });
        let error = error.unwrap();
        assert!(error.to_string().contains("not complete have more than 65536 bytes"), "{error}");
    }
}

#[test]
fn a_changed_key_is_one_change() {
    for (name, style, lines) in samples() {
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let all = Reader::new(style, ";start", false).all(&lines);
        let of_visit = |change: &Change| match change {
            Change::Row(row) if &*row.columns.table.name == "visit" => Some(row.images.clone()),
            _ => None,
        };
        let first = all.iter().flat_map(|it| it.changes.as_slice().unwrap()).find_map(of_visit).unwrap();
        let Images::Update { before: Some(before), after } = first else { panic!("{name}: {first:?}") };
        let place = Cell::Value(Value::from("Bern"));
        assert_eq!((&before[0], &after[0], &after[1]), (&int(1), &int(100), &place), "{name}");
    }
}

fn int(number: i64) -> Cell {
    Cell::Value(Value::Int64(number))
}

#[test]
fn damaged_records_are_rejected_and_never_panic() {
    for (name, style, sample) in [
        ("mariadb", style(LogFormat::Debezium, Database::MariaDb), MARIADB),
        ("postgres", style(LogFormat::Debezium, Database::Postgres), POSTGRES),
        ("maxwell", style(LogFormat::Maxwell, Database::MariaDb), MAXWELL),
    ] {
        let catalog = catalog(style.database);
        let tables = Tables::new(&catalog, &following(&catalog), style);
        let decode = |bytes: &[u8]| {
            let (part, before, after) = Default::default();
            let record = Record {
                part,
                at: "log:7".into(),
                before,
                after,
                written_unix_ms: 0,
                value: bytes.to_vec().into(),
                is_line: false,
                is_mark: false,
            };
            style.decode(&record, &tables)
        };
        let mut dice = fastrand::Rng::with_seed(1);
        for line in sample.lines() {
            for end in (1..line.len()).step_by(13) {
                let error = decode(&line.as_bytes()[..end]).expect_err(name);
                assert!(error.to_string().contains("at log:7"), "{error}");
            }
            for _ in 0..60 {
                let mut bytes = line.as_bytes().to_vec();
                for _ in 0..dice.usize(1..4) {
                    let at = dice.usize(0..bytes.len());
                    bytes[at] = dice.u8(..);
                }
                // It may mean something else now.
                let _ = decode(&bytes);
            }
            // Values of all types in place of each other.
            let parts: Vec<_> = line.split_inclusive([':', ',']).collect();
            for _ in 0..60 {
                let mut parts = parts.clone();
                let at = dice.usize(0..parts.len());
                parts[at] =
                    ["{}", "[]", "-1,", "1e999,", "true,", "null,", "\"\",", "99999999999999999999,"][dice.usize(0..8)];
                let _ = decode(parts.concat().as_bytes());
            }
            // Wherever a value is of another type than it has to be, the error does not repeat it.
            for at in 0..parts.len() {
                let mut parts = parts.clone();
                let end = if parts[at].ends_with(',') { "\"s3cr3t\"," } else { "\"s3cr3t\"" };
                // These say what a record is: they are not values of a row.
                if at > 0
                    && ["type\":", "op\":", "status\":", "position\":"].iter().any(|it| parts[at - 1].ends_with(it))
                {
                    continue;
                }
                parts[at] = end;
                if let Err(error) = decode(parts.concat().as_bytes()) {
                    let text = error.to_string();
                    assert!(!text.contains("s3cr3t") || text.contains("the transaction name"), "{error}");
                }
            }
        }
        let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        for hostile in [
            deep.clone(),
            sample.lines().last().unwrap().replacen("\"id\":5", &format!("\"id\":{deep}"), 1),
            sample.lines().last().unwrap().replacen("\"Kyiv\"", &format!("\"{}\"", "x".repeat(1 << 20)), 1),
        ] {
            let _ = decode(hostile.as_bytes());
        }
        let noise: Vec<u8> = (0..1_000).map(|_| dice.u8(..)).collect();
        assert!(decode(&noise).is_err());
    }
}

/// The lines that there are for now, and where each begins.
async fn lines(files: &mut Files) -> Vec<(String, String)> {
    let mut all = Vec::new();
    while let Next::Record(record) = files.next().await.unwrap() {
        all.push((record.before, String::from_utf8(record.value.to_vec()).unwrap()));
    }
    all
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(at, line)| ((*at).to_owned(), (*line).to_owned())).collect()
}

#[tokio::test]
async fn files_are_read_as_they_grow() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["1.jsonl", "2.jsonl"].map(|name| folder.path().join(name));
    let append = |path: &Path, text: &str| {
        use std::io::Write;
        std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
    };
    append(&first, "a\n\nb\nc");
    let mut file = Files::open(&first, None, 100).await.unwrap();
    assert_eq!(lines(&mut file).await, owned(&[("1.jsonl:0", "a"), ("1.jsonl:3", "b")]));
    append(&first, "c\nd");
    assert_eq!(lines(&mut file).await, owned(&[("1.jsonl:5", "cc")]));
    // In a folder, the last line of a file ends where the file does, when another one follows.
    let mut all = Files::open(folder.path(), Some("1.jsonl:3"), 100).await.unwrap();
    assert_eq!(lines(&mut all).await, owned(&[("1.jsonl:3", "b"), ("1.jsonl:5", "cc")]));
    append(&folder.path().join(".3.jsonl"), "hidden\n");
    append(&second, "e\n");
    assert_eq!(lines(&mut all).await, owned(&[("1.jsonl:8", "d"), ("2.jsonl:0", "e")]));
    // What is gone or shorter was lost.
    let kind = async |path: &Path, from: &str| {
        let mut files = Files::open(path, Some(from), 100).await?;
        files.next().await
    };
    assert_eq!(kind(folder.path(), "0.jsonl:3").await.unwrap_err().kind(), FeedErrorKind::Purged);
    assert_eq!(kind(&first, "1.jsonl:300").await.unwrap_err().kind(), FeedErrorKind::Purged);
    assert_eq!(kind(&first, "2.jsonl:0").await.unwrap_err().kind(), FeedErrorKind::Invalid);
    std::fs::write(&first, "f\n").unwrap();
    assert_eq!(file.next().await.unwrap_err().kind(), FeedErrorKind::Purged);
    // A line has a bound.
    append(&second, &"x".repeat(300_000));
    let mut file = Files::open(&second, Some("2.jsonl:2"), 100_000).await.unwrap();
    assert!(file.next().await.unwrap_err().to_string().contains("the line at 2.jsonl:2 has more than 100000 bytes"));
}

#[test]
fn values_are_read_by_their_declarations() {
    use Database::{MariaDb, Postgres};
    let value = |value: Value| Some(Cell::Value(value));
    let text = |text: &str| Some(Cell::Value(Value::from(text)));
    let list = |items: Vec<Value>| Some(Cell::Value(Value::List(items)));
    let debezium = LogFormat::Debezium;
    let maxwell = LogFormat::Maxwell;
    let precise = |style| Style { decimals: crate::DecimalHandling::Precise, ..style };
    let timed = |style, times| Style { times, ..style };
    let moment = Value::Timestamp(1_772_357_400_500_000);
    let cases: Vec<(Style, &str, &str, Option<Cell>)> = vec![
        (style(debezium, MariaDb), "bigint(20) unsigned", "-1", Some(Cell::Digits("18446744073709551615".into()))),
        (
            style(maxwell, MariaDb),
            "bigint(20) unsigned",
            "18446744073709551615",
            Some(Cell::Digits("18446744073709551615".into())),
        ),
        (
            style(debezium, MariaDb),
            "bigint(20) unsigned",
            "\"AP//////////\"",
            Some(Cell::Digits("18446744073709551615".into())),
        ),
        (style(debezium, MariaDb), "bigint(20)", "-1", Some(int(-1))),
        (style(debezium, MariaDb), "int(11)", "99999999999999999999999", None),
        (style(debezium, MariaDb), "int(11)", "1.5", None),
        (style(debezium, MariaDb), "int(11)", "{}", None),
        (style(debezium, MariaDb), "tinyint(1)", "true", Some(int(1))),
        (style(debezium, MariaDb), "float", "0.1", value(Value::Float64(f64::from(0.1_f32)))),
        (style(debezium, MariaDb), "decimal(12,3)", "\"-0.5\"", text("-0.500")),
        (style(debezium, MariaDb), "decimal(12,3)", "\"x\"", None),
        (style(debezium, MariaDb), "decimal(12,3)", "0.25", text("0.250")),
        (style(debezium, MariaDb), "decimal(20,3)", "0.25", None),
        (
            style(maxwell, MariaDb),
            "decimal(40,3)",
            "1234567890123456789012345678901234567.891",
            text("1234567890123456789012345678901234567.891"),
        ),
        (style(maxwell, MariaDb), "decimal(12,3)", "1E+3", text("1000.000")),
        (style(maxwell, MariaDb), "decimal(12,3)", "1E+999999999", None),
        (precise(style(debezium, MariaDb)), "decimal(12,3)", "\"AfQ=\"", text("0.500")),
        (precise(style(debezium, MariaDb)), "decimal(12,3)", "\"/gw=\"", text("-0.500")),
        (precise(style(debezium, MariaDb)), "decimal(12,0)", "\"AQAAAAA=\"", text("4294967296")),
        (precise(style(debezium, MariaDb)), "decimal(12,3)", "\"0.500\"", None),
        (style(debezium, MariaDb), "decimal(4000000000,4000000000)", "1", None),
        (precise(style(debezium, Postgres)), "numeric", r#"{"scale":3,"value":"AfQ="}"#, text("0.500")),
        (precise(style(debezium, Postgres)), "numeric", r#"{"scale":999999999,"value":"AfQ="}"#, None),
        (style(debezium, Postgres), "numeric", "\"NAN\"", text("NaN")),
        (style(debezium, MariaDb), "date", "20513", value(Value::Date(20_513))),
        (style(debezium, MariaDb), "date", "\"2026-03-01Z\"", value(Value::Date(20_513))),
        (style(maxwell, MariaDb), "date", "\"0000-00-00\"", value(Value::Null)),
        (style(debezium, Postgres), "date", "99999999999", None),
        (style(debezium, MariaDb), "datetime(3)", "1772357400500", value(moment.clone())),
        (style(debezium, MariaDb), "datetime(6)", "1772357400500000", value(moment.clone())),
        (
            timed(style(debezium, MariaDb), TimePrecision::Connect),
            "datetime(6)",
            "1772357400500",
            value(moment.clone()),
        ),
        (
            timed(style(debezium, MariaDb), TimePrecision::Microseconds),
            "datetime",
            "1772357400500000",
            value(moment.clone()),
        ),
        (
            timed(style(debezium, MariaDb), TimePrecision::Nanoseconds),
            "datetime",
            "1772357400500000000",
            value(moment.clone()),
        ),
        (
            timed(style(debezium, MariaDb), TimePrecision::Isostring),
            "datetime",
            "\"2026-03-01T09:30:00.5Z\"",
            value(moment.clone()),
        ),
        (style(debezium, Postgres), "timestamp(3) without time zone", "1772357400500", value(moment.clone())),
        (style(debezium, Postgres), "timestamp with time zone", "\"2026-03-01T09:30:00.5Z\"", value(moment)),
        (style(debezium, Postgres), "timestamp without time zone", "9223372036825200000", None),
        (style(debezium, MariaDb), "timestamp", "\"1970-01-01T00:00:00Z\"", value(Value::Null)),
        (style(debezium, Postgres), "timestamp with time zone", "\"1970-01-01T00:00:00Z\"", value(Value::Timestamp(0))),
        (style(maxwell, MariaDb), "datetime(6)", "\"2026-03-01 09:30:00\"", None),
        (style(debezium, MariaDb), "time", "-3020399000000", text("-838:59:59")),
        (timed(style(debezium, MariaDb), TimePrecision::Connect), "time(3)", "34200500", text("09:30:00.5")),
        (style(debezium, Postgres), "time(3) without time zone", "34200500", text("09:30:00.5")),
        (
            timed(style(debezium, Postgres), TimePrecision::AdaptiveTimeMicroseconds),
            "time(3) without time zone",
            "34200500000",
            text("09:30:00.5"),
        ),
        (style(debezium, MariaDb), "year(4)", "1900", Some(int(0))),
        (style(debezium, MariaDb), "set('a','b')", "\"a,b\"", list(vec![Value::from("a"), Value::from("b")])),
        (style(maxwell, MariaDb), "set('a','b')", "[\"a\"]", list(vec![Value::from("a")])),
        (style(debezium, MariaDb), "bit(10)", "\"AQI=\"", Some(int(513))),
        (style(debezium, Postgres), "bit(8)", "\"BQ==\"", text("00000101")),
        (style(debezium, Postgres), "bit(8)", "\"\"", text("00000000")),
        (style(debezium, MariaDb), "binary(4)", "\"AP8=\"", text("00ff0000")),
        (style(debezium, MariaDb), "blob", "\"?\"", None),
        (style(debezium, MariaDb), "blob", "\"-_8\"", text("fbff")),
        (style(debezium, Postgres), "interval", "\"P1Y2M0DT0H5M6.50S\"", text("P1Y2MT5M6.5S")),
        (style(debezium, Postgres), "interval", "1", None),
        (style(debezium, Postgres), "numeric(4,2)[]", "[\"1.10\",null]", list(vec![Value::from("1.10"), Value::Null])),
        (style(debezium, Postgres), "integer[]", "[[1]]", None),
        (style(debezium, Postgres), "text", "\"__debezium_unavailable_value\"", Some(Cell::Absent)),
        (style(debezium, Postgres), "bytea", "\"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==\"", Some(Cell::Absent)),
        (style(debezium, Postgres), "text[]", "[\"__debezium_unavailable_value\"]", Some(Cell::Absent)),
        (style(maxwell, MariaDb), "json", "{\"a\": [1, 2.50]}", text("{\"a\":[1,2.5]}")),
    ];
    for (style, declared, json, expected) in cases {
        let decoder = Decoder::new(&column("x", declared), style);
        let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
        let found = decoder.decode(&raw, false);
        match expected {
            Some(expected) => assert_eq!(found, expected, "{declared} {json}"),
            None => assert!(matches!(found, Cell::Bad(_)), "{declared} {json}: {found:?}"),
        }
    }
}
