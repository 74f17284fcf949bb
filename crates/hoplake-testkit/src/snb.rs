//! Real data sets, and the answers that queries on the social networks (LDBC SNB) among them must give.
//!
//! The data is not in the repository. It is looked for in `HOPLAKE_TEST_DATA`, and else in
//! `../shared/data` next to the clone. A test that needs it asks [`available`] first and returns if it is
//! not there; once the variable is set, absence is a failure, so that a gate cannot skip by accident.
//!
//! ```no_run
//! use hoplake_testkit::snb;
//!
//! let folder = "snb-sf0.1-datagen";
//! if !snb::available(folder) {
//!     return;
//! }
//! let csv_files = snb::extract(folder).join("social_network");
//! for case in &snb::truth(folder).queries["Q3"].cases {
//!     // Run Q3 from `case.source` on the graph loaded from `csv_files`, then
//!     // assert_eq!(snb::sha256_of_ids(answer), case.sha256);
//! }
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::oracle::{Direction, Hop};

/// Expected answers on one data set.
#[derive(Debug, Clone)]
pub struct Truth {
    /// The name of the data set.
    pub dataset: String,
    /// The state it is in, where that is not the one loaded first.
    pub state: Option<String>,
    /// The queries `Q1` to `Q7`, without those that the data set cannot answer.
    pub queries: BTreeMap<String, Query>,
    /// Why a query has no answers, by its name.
    pub skipped: BTreeMap<String, String>,
}

/// A query: where it starts, the hops it makes, and its answer for each of some sources.
#[derive(Debug, Clone)]
pub struct Query {
    /// The label of the sources.
    pub source_label: String,
    /// How many vertices have that label.
    pub source_label_count: u64,
    /// The hops.
    pub hops: Vec<TruthHop>,
    /// The sources and their answers.
    pub cases: Vec<Case>,
}

/// A hop as the data's documentation writes it: `person_knows_person:both->Person`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TruthHop {
    /// The relation, which is also the name of its file: `person_knows_person`.
    pub relation: String,
    /// The edge label within it: `knows`.
    pub edge_label: String,
    /// Which way edges are followed.
    pub direction: Direction,
    /// The label of the vertices reached: `Person`.
    pub target_label: String,
}

impl TruthHop {
    /// Reads the notation of the data's documentation.
    pub fn parse(text: &str) -> Option<Self> {
        let (relation, rest) = text.split_once(':')?;
        let (direction, target_label) = rest.split_once("->")?;
        let [_, edge_label, _] = relation.split('_').collect::<Vec<_>>().try_into().ok()?;
        let direction = match direction {
            "out" => Direction::Out,
            "in" => Direction::In,
            "both" => Direction::Both,
            _ => return None,
        };
        Some(Self {
            relation: relation.into(),
            edge_label: edge_label.into(),
            direction,
            target_label: target_label.into(),
        })
    }

    /// The same for the oracle, by edge label.
    pub fn to_hop(&self) -> Hop {
        Hop::new(self.direction, [&self.edge_label])
    }
}

/// A source, and what the query answers from it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The key of the start.
    pub source: i64,
    /// How it was chosen: `random`, `hub` or `inserted`.
    pub kind: String,
    /// Under the `global` visit policy: vertices at each depth from 1.
    pub level_sizes: Vec<u64>,
    /// Under `global`: how many vertices the last hop reaches.
    pub count: u64,
    /// Under `global`: [`sha256_of_ids`] of the last hop's keys.
    pub sha256: String,
    /// Under `global`: the last hop's keys, ascending.
    pub result: Vec<i64>,
    /// Under `per-depth`: how many vertices the last hop reaches.
    pub set_count: u64,
    /// Under `per-depth`: [`sha256_of_ids`] of the last hop's keys.
    pub set_sha256: String,
    #[serde(rename = "set_result")]
    set_result_unless_equal: Option<Vec<i64>>,
    /// How many walks there are along all hops.
    pub walks: u64,
}

impl Case {
    /// Under `per-depth`: the last hop's keys, ascending.
    pub fn set_result(&self) -> &[i64] {
        self.set_result_unless_equal.as_ref().unwrap_or(&self.result)
    }
}

/// The folder of all data sets, if it exists.
///
/// # Panics
/// If `HOPLAKE_TEST_DATA` names what is not a folder.
pub fn data_dir() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("HOPLAKE_TEST_DATA") {
        let named = PathBuf::from(named);
        assert!(named.is_dir(), "HOPLAKE_TEST_DATA names {}, which is not a folder", named.display());
        return Some(named);
    }
    Some(workspace_root().join("../shared/data")).filter(|beside| beside.is_dir())
}

/// Whether a data set exists; reports on stderr if not.
///
/// # Panics
/// If it is not there although `HOPLAKE_TEST_DATA` is set.
pub fn available(folder: &str) -> bool {
    let found = data_dir().is_some_and(|data| data.join(folder).is_dir());
    if !found {
        assert!(std::env::var_os("HOPLAKE_TEST_DATA").is_none(), "HOPLAKE_TEST_DATA has no folder {folder}");
        eprintln!("skipped: no {folder} in ../shared/data next to the clone; set HOPLAKE_TEST_DATA");
    }
    found
}

/// Extracts a data set's archive on first use, and returns the folder that holds its content.
///
/// It lies in the build folder (`CARGO_TARGET_DIR`, else `target`) as `hoplake-data/<folder>`. The folder
/// appears when it is complete, and processes that ask at once wait for the first.
///
/// # Panics
/// If the data set is not there or cannot be extracted.
pub fn extract(folder: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace_root().join("target"), PathBuf::from);
    extract_into(&dataset(folder), &target.join("hoplake-data"), folder)
}

/// The expected answers on a data set as it is loaded.
///
/// # Panics
/// If they are not there or cannot be read.
pub fn truth(folder: &str) -> Truth {
    read_truth(&dataset(folder).join("truth.json.zst"))
}

/// The expected answers after all events of the data set's update stream.
///
/// # Panics
/// If they are not there or cannot be read.
pub fn truth_after_update_stream(folder: &str) -> Truth {
    read_truth(&dataset(folder).join("truth-after-update-stream.json.zst"))
}

/// The SHA-256, in hexadecimal, of the ids in decimal, ascending, joined by a newline.
pub fn sha256_of_ids(ids: impl IntoIterator<Item = i64>) -> String {
    let mut ids: Vec<i64> = ids.into_iter().collect();
    ids.sort_unstable();
    let text = ids.iter().map(i64::to_string).collect::<Vec<_>>().join("\n");
    hex::encode(Sha256::digest(text))
}

fn workspace_root() -> &'static Path {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates.and_then(Path::parent).expect("this crate lies two folders below the workspace's")
}

fn dataset(folder: &str) -> PathBuf {
    let data = data_dir().unwrap_or_else(|| panic!("no data for {folder}: ask `snb::available` first"));
    data.join(folder)
}

fn extract_into(source: &Path, cache: &Path, folder: &str) -> PathBuf {
    let extracted = cache.join(folder);
    let explain = |what: &str, error: std::io::Error| -> ! { panic!("could not {what} {}: {error}", source.display()) };
    fs::create_dir_all(cache).unwrap_or_else(|error| explain("make a place for", error));
    let lock = File::create(cache.join(format!("{folder}.lock"))).unwrap_or_else(|error| explain("lock", error));
    lock.lock().unwrap_or_else(|error| explain("lock", error));
    if extracted.is_dir() {
        return extracted;
    }
    // Extracted aside and renamed, so that a crash leaves nothing that looks complete.
    let aside = tempfile::Builder::new().prefix("partial-").tempdir_in(cache);
    let aside = aside.unwrap_or_else(|error| explain("make a place for", error));
    let archive = File::open(archive_in(source)).and_then(zstd::Decoder::new);
    let archive = archive.unwrap_or_else(|error| explain("open the archive in", error));
    tar::Archive::new(archive).unpack(aside.path()).unwrap_or_else(|error| explain("extract", error));
    fs::rename(aside.keep(), &extracted).unwrap_or_else(|error| explain("publish", error));
    extracted
}

fn archive_in(source: &Path) -> PathBuf {
    let entries = fs::read_dir(source).unwrap_or_else(|error| panic!("no data set at {}: {error}", source.display()));
    let is_archive = |path: &PathBuf| path.to_string_lossy().ends_with(".tar.zst");
    let archive = entries.flatten().map(|entry| entry.path()).find(is_archive);
    archive.unwrap_or_else(|| panic!("no .tar.zst in {}", source.display()))
}

#[derive(Deserialize)]
struct TruthFile {
    dataset: String,
    state: Option<String>,
    queries: BTreeMap<String, QueryEntry>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum QueryEntry {
    Skipped { skipped: String },
    Answered { source_label: String, source_label_count: u64, path: Vec<String>, sources: Vec<Case> },
}

fn read_truth(path: &Path) -> Truth {
    let file = File::open(path).and_then(zstd::Decoder::new);
    let file = file.unwrap_or_else(|error| panic!("could not open {}: {error}", path.display()));
    let parsed = serde_json::from_reader(BufReader::new(file));
    let TruthFile { dataset, state, queries } =
        parsed.unwrap_or_else(|error| panic!("could not read {}: {error}", path.display()));
    let mut truth = Truth { dataset, state, queries: BTreeMap::new(), skipped: BTreeMap::new() };
    for (name, entry) in queries {
        match entry {
            QueryEntry::Skipped { skipped } => {
                truth.skipped.insert(name, skipped);
            }
            QueryEntry::Answered { source_label, source_label_count, path: hops, sources: cases } => {
                let parse = |hop: &String| TruthHop::parse(hop).unwrap_or_else(|| panic!("{name} has the hop {hop}"));
                let hops = hops.iter().map(parse).collect();
                truth.queries.insert(name, Query { source_label, source_label_count, hops, cases });
            }
        }
    }
    truth
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashMap};

    use super::*;
    use crate::oracle::{Key, Oracle, Vertex, VisitPolicy};

    const SAMPLE: &str = "snb-sample-903p-genuine";
    const FOLDERS: [&str; 3] = [SAMPLE, "snb-sf0.1-datagen", "snb-sf0.1-official-partial"];

    fn all_truths() -> Vec<Truth> {
        let folders = FOLDERS.into_iter().filter(|folder| available(folder));
        let mut truths: Vec<Truth> = folders.map(truth).collect();
        if available(FOLDERS[1]) {
            truths.push(truth_after_update_stream(FOLDERS[1]));
        }
        truths
    }

    #[test]
    fn every_answer_hashes_to_its_sha256() {
        for truth in all_truths() {
            let mut cases = 0;
            for case in truth.queries.values().flat_map(|query| &query.cases) {
                assert_eq!(sha256_of_ids(case.result.iter().rev().copied()), case.sha256);
                assert_eq!(sha256_of_ids(case.set_result().iter().copied()), case.set_sha256);
                let counts = [case.result.len() as u64, *case.level_sizes.last().unwrap()];
                assert_eq!((counts, case.set_result().len() as u64), ([case.count; 2], case.set_count));
                cases += 1;
            }
            let expected = if truth.state.is_some() { 230 } else { 160 - 25 * truth.skipped.len() };
            assert_eq!((cases, truth.queries.len() + truth.skipped.len()), (expected, 7), "{}", truth.dataset);
        }
    }

    #[test]
    fn hops_are_parsed() {
        let knows = TruthHop::parse("person_knows_person:both->Person").unwrap();
        assert_eq!((&knows.relation[..], &knows.edge_label[..]), ("person_knows_person", "knows"));
        assert_eq!((knows.direction, &knows.target_label[..]), (Direction::Both, "Person"));
        assert_eq!(TruthHop::parse("forum_containerOf_post:in->Forum").unwrap().direction, Direction::In);
        for wrong in ["", "a_b_c:out", "a_b:out->C", "a_b_c:up->C", "a_b_c_d:in->C"] {
            assert_eq!(TruthHop::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_archive_is_extracted_once_by_whoever_asks_first() {
        if !available(SAMPLE) {
            return;
        }
        let cache = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let extracted = extract_into(&dataset(SAMPLE), cache.path(), SAMPLE);
                    assert_eq!(fs::read_dir(extracted.join("ldbc_sample")).unwrap().count(), 29);
                });
            }
        });
        let left: BTreeSet<_> = fs::read_dir(cache.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, BTreeSet::from([SAMPLE.into(), format!("{SAMPLE}.lock").into()]));
    }

    /// The part of the sample that a query needs, and its vertices by label and id.
    fn sample_for(query: &Query) -> (Oracle, HashMap<(String, i64), Vertex>) {
        let mut graph = Oracle::new();
        let mut vertices = HashMap::new();
        let relations: BTreeSet<_> = query.hops.iter().map(|hop| (&hop.relation, &hop.edge_label)).collect();
        for (relation, edge_label) in relations {
            let file = extract(SAMPLE).join(format!("ldbc_sample/{relation}_0_0.csv"));
            let text = fs::read_to_string(file).unwrap();
            let labels: Vec<&str> = relation.split('_').collect();
            for line in text.lines().skip(1) {
                let mut ids = line.split('|').map(|field| field.parse::<i64>());
                let [source, target] = [labels[0], labels[2]].map(|label| {
                    let id = ids.next().unwrap().unwrap();
                    let vertex = vertices.entry((label.to_owned(), id));
                    *vertex.or_insert_with(|| graph.add_vertex(label, Key::Int(id)))
                });
                graph.add_edge(source, edge_label, target);
            }
        }
        (graph, vertices)
    }

    #[test]
    fn the_oracle_finds_the_answers_on_the_real_sample() {
        if !available(SAMPLE) {
            return;
        }
        for (name, query) in &truth(SAMPLE).queries {
            let (graph, vertices) = sample_for(query);
            let hops: Vec<Hop> = query.hops.iter().map(TruthHop::to_hop).collect();
            // Q5 reaches thousands of tags, for each of which the oracle scans all edges: a few will do.
            for case in query.cases.iter().take(if name == "Q5" { 2 } else { 25 }) {
                let Some(&start) = vertices.get(&(query.source_label.to_lowercase(), case.source)) else {
                    assert_eq!((case.count, case.walks), (0, 0), "{name} from {}: no edge leaves it", case.source);
                    continue;
                };
                let ids_at_end = |policy| {
                    let depths = graph.traverse(&[start], &hops, policy);
                    let id = |vertex: &Vertex| match graph.vertices[*vertex].key {
                        Key::Int(id) => id,
                        Key::Text(_) => unreachable!("ids are integers"),
                    };
                    let mut ids: Vec<i64> = depths[hops.len()].iter().map(id).collect();
                    ids.sort_unstable();
                    ids
                };
                assert_eq!(ids_at_end(VisitPolicy::Global), case.result, "{name} from {}", case.source);
                assert_eq!(ids_at_end(VisitPolicy::PerDepth), case.set_result(), "{name} from {}", case.source);
                assert_eq!(graph.walk_count(&[start], &hops), case.walks.into(), "{name} from {}", case.source);
            }
        }
    }
}
