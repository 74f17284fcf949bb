//! Scans and conditions answer as DuckDB does: of generated vertices of all types, before and after commits and compactions.
//!
//! ```text
//! seed ──▶ model ──▶ Parquet ──▶ a load, then commits and compactions ──▶ Query::scan ──┐
//!            └─────▶ Parquet ──▶ a table of DuckDB ──────────────────────▶ SELECT ──────┴──▶ the same keys, in the same order
//! ```
//! DuckDB never sees what Hoplake wrote, so an error of both the write and the read shows as well. Cells of what is found are
//! held against the model, since DuckDB's own types would have to be converted for that.

mod model;
mod questions;
mod values;

use std::{collections::BTreeMap, fs};

use hoplake::{
    Batch, CompactionSettings, Graph, Key, KeyType, LoadOptions, Operation, Properties, PropertyType, Query,
    ScanRequest, Store, Value, VertexRef,
};
use hoplake_testkit::{DuckDb, generate::SplitMix64};
use serde_json::Value as Json;

use model::Model;
use questions::Question;

const SEEDS: u64 = 4;
/// Questions at each of the states of a seed's graph.
const QUESTIONS: usize = 140;
const STATES: usize = 6;

/// Graphs of this seed and later ones have an index of each property that can have one; no answer may be another for it.
const INDEXED_FROM_SEED: u64 = 2;

#[tokio::test(flavor = "multi_thread")]
async fn scans_answer_as_duckdb_does() {
    let mut tally = Tally::default();
    for seed in 0..SEEDS {
        let mut test = Test::load(seed).await;
        tally.add(test.ask().await);
        test.commit(3).await;
        tally.add(test.ask().await);
        // From here on the integers of `widened` have fractions among them, and there is a property that no table of the load has.
        test.model.widen();
        test.commit(3).await;
        tally.add(test.ask().await);
        test.compact(false).await;
        tally.add(test.ask().await);
        test.commit(2).await;
        tally.add(test.ask().await);
        test.compact(true).await;
        tally.add(test.ask().await);
    }
    let Tally { wrong, .. } = &tally;
    assert!(wrong.is_empty(), "{} differ, such as\n{}", wrong.len(), wrong[..wrong.len().min(10)].join("\n\n"));
    assert_eq!(tally.asked, SEEDS as usize * STATES * QUESTIONS);
    // Questions that all or no vertices answer would find little.
    assert!(tally.some > tally.asked / 2, "{tally:?}");
    assert!(tally.found > 100 * tally.asked as u64, "{tally:?}");
}

#[derive(Debug, Default)]
struct Tally {
    asked: usize,
    /// Questions that some vertices answered, and some did not.
    some: usize,
    found: u64,
    /// What differs, by question.
    wrong: Vec<String>,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.asked += other.asked;
        self.some += other.some;
        self.found += other.found;
        self.wrong.extend(other.wrong);
    }
}

struct Test {
    seed: u64,
    random: SplitMix64,
    model: Model,
    graph: Graph,
    url: String,
    database: DuckDb,
    folder: tempfile::TempDir,
}

impl Test {
    async fn load(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut random = SplitMix64::new(seed);
        let model = Model::generate(&mut random, if seed.is_multiple_of(2) { KeyType::Int64 } else { KeyType::String });
        let mut mapping = String::new();
        for label in &model.labels {
            let file = folder.path().join(format!("{}.parquet", label.name));
            model::write(&file, &label.batch("key", Some("+00:00")));
            mapping += &format!("[[vertices]]\nfile = \"{0}.parquet\"\nlabel = \"{0}\"\nkey = \"key\"\n", label.name);
        }
        let map = folder.path().join("mapping.toml");
        fs::write(&map, mapping).unwrap();
        let url = format!("memory://duckdb/{seed}");
        // So little memory that there are several row groups.
        let indexes = if seed >= INDEXED_FROM_SEED { indexable(&model) } else { Vec::new() };
        let from = LoadOptions::from_paths([folder.path()]);
        let options = LoadOptions { mapping: Some(map), memory_bytes: 32 << 20, indexes, ..from };
        hoplake::load(&url, options).await.unwrap();
        let graph = Graph::open(&url).await.unwrap();
        let database = DuckDb::start().unwrap();
        Self { seed, random, model, graph, url, database, folder }
    }

    async fn commit(&mut self, commits: usize) {
        for _ in 0..commits {
            let changes = self.model.change(&mut self.random);
            let operation = |change: &model::Change| {
                let vertex = VertexRef::new(&change.label, change.key.clone());
                match &change.properties {
                    None => Operation::DeleteVertex { vertex },
                    Some((values, replace)) => {
                        let properties: Properties =
                            values.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
                        Operation::UpsertVertex { vertex, properties, replace: *replace }
                    }
                }
            };
            let operations = changes.iter().map(operation).collect();
            self.graph.apply(Batch { operations, ..Batch::default() }).await.unwrap();
            self.graph.refresh().await.unwrap();
            self.model.apply(changes);
        }
    }

    async fn compact(&mut self, everything: bool) {
        let settings = CompactionSettings { everything, memory_bytes: 64 << 20, ..CompactionSettings::default() };
        Graph::compact(&Store::open(&self.url).unwrap(), &settings).await.unwrap();
        self.graph.refresh().await.unwrap();
    }

    /// Asks both all questions of a state.
    async fn ask(&mut self) -> Tally {
        let mut tables = Vec::new();
        for label in &self.model.labels {
            let file = self.folder.path().join("expected.parquet");
            model::write(&file, &label.batch("~key", None));
            let table = format!("SELECT '{}' AS \"~label\", * FROM read_parquet('{}')", label.name, file.display());
            self.database.rows(&format!("CREATE OR REPLACE TABLE {} AS {table}", label.name)).unwrap();
            tables.push(format!("SELECT * FROM {}", label.name));
        }
        // A property that a label does not have is null there.
        let all = format!("CREATE OR REPLACE VIEW everything AS {}", tables.join(" UNION ALL BY NAME "));
        self.database.rows(&all).unwrap();
        let everything: usize = self.model.labels.iter().map(|label| label.rows.len()).sum();
        let mut tally = Tally::default();
        for number in 0..QUESTIONS {
            let question = questions::ask(&mut self.random, &self.model);
            tally.asked += 1;
            match self.compare(&question).await {
                Ok(found) => {
                    tally.some += usize::from(found > 0 && found < everything);
                    tally.found += found as u64;
                }
                Err(why) => {
                    let place = format!("seed {}, version {}, question {number}", self.seed, self.graph.version());
                    tally.wrong.push(format!("{place}: {why}\n{question:?}"));
                    println!("{place}: {why}");
                }
            }
        }
        println!("seed {}, version {}: {} of {QUESTIONS} differ", self.seed, self.graph.version(), tally.wrong.len());
        tally
    }

    /// Compares the answers to a question in all its forms. Returns how many vertices answer it, or what differs.
    async fn compare(&mut self, question: &Question) -> Result<usize, String> {
        let expected = self.vertices(&question.sql("\"~label\", \"~key\""));
        let plain = ScanRequest { order_by: Vec::new(), limit: None, ..question.request.clone() };
        let mut query = self.graph.query();
        let mut found = self.scan(&mut query, &plain).await?;
        found.sort();
        let mut in_order = expected.clone();
        in_order.sort();
        same(&found, &in_order)?;
        let count = query.count_found(&plain).await.map_err(|error| error.to_string())?;
        if count != expected.len() as u64 {
            return Err(format!("{count} were counted, not {}", expected.len()));
        }
        if question.request.limit.is_none() && question.request.order_by.is_empty() {
            return Ok(expected.len());
        }
        let limited = self.scan(&mut query, &question.request).await?;
        let limit = question.request.limit.unwrap_or(usize::MAX).min(expected.len());
        if !question.request.order_by.is_empty() {
            return same(&limited, &expected[..limit]).map(|()| expected.len());
        }
        // Any of them, but as many as are wanted.
        match limited.len() == limit && limited.iter().all(|vertex| in_order.binary_search(vertex).is_ok()) {
            true => Ok(expected.len()),
            false => Err(format!("of {limit} wanted, these were found: {limited:?}")),
        }
    }

    fn vertices(&mut self, sql: &str) -> Vec<(String, Key)> {
        let rows = self.database.rows(sql).unwrap();
        let vertex = |row: Vec<Json>| {
            let key = match &row[1] {
                Json::String(key) => Key::String(key.clone()),
                key => Key::Int64(key.as_i64().unwrap()),
            };
            (row[0].as_str().unwrap().to_owned(), key)
        };
        rows.into_iter().map(vertex).collect()
    }

    /// The vertices that Hoplake finds, in its order, if their properties are those of the model.
    async fn scan(&self, query: &mut Query, request: &ScanRequest) -> Result<Vec<(String, Key)>, String> {
        let mut scan = query.scan(request).map_err(|error| error.to_string())?;
        let mut found = Vec::new();
        while let Some(rows) = query.next_rows(&mut scan).await.map_err(|error| error.to_string())? {
            let label = self.model.labels.iter().find(|label| label.name == rows.label).unwrap();
            let keys = rows.batch.column_by_name("~key").unwrap();
            let selected = request.select.iter().filter_map(|name| Some((name, rows.batch.column_by_name(name)?)));
            let selected: BTreeMap<_, _> = selected.collect();
            for row in 0..rows.batch.num_rows() {
                let key = match Value::at(keys, row) {
                    Value::Int64(key) => Key::Int64(key),
                    Value::String(key) => Key::String(key),
                    other => return Err(format!("{other} is a key")),
                };
                let known = label.rows.get(&key).ok_or_else(|| format!("{key:?} is not there"))?;
                for (name, column) in &selected {
                    let is = Value::at(column, row);
                    let should_be = known.get(*name).unwrap_or(&Value::Null);
                    if !is.is_same(should_be) {
                        return Err(format!("{key:?} has {name} {is}, not {should_be}"));
                    }
                }
                found.push((label.name.clone(), key));
            }
        }
        Ok(found)
    }
}

/// Properties as an index is named, of all labels.
fn indexable(model: &Model) -> Vec<String> {
    let of = |label: &model::Label| {
        let scalar = label.columns.iter().filter(|column| matches!(column.kind, PropertyType::Scalar(_)));
        scalar.map(|column| format!("{}.{}", label.name, column.name)).collect::<Vec<_>>()
    };
    model.labels.iter().flat_map(of).collect()
}

/// Whether both are the same; if not, the first few that are too much or missing.
fn same(found: &[(String, Key)], expected: &[(String, Key)]) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let without = |these: &[(String, Key)], others: &[(String, Key)]| {
        let missing = these.iter().filter(|vertex| !others.contains(vertex));
        missing.take(5).cloned().collect::<Vec<_>>()
    };
    let wrong = without(found, expected);
    let missing = without(expected, found);
    Err(format!("{} found, {} expected; wrong {wrong:?}, missing {missing:?}", found.len(), expected.len()))
}
