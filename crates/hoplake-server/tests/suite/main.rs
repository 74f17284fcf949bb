//! TinkerPop's own suite of scenarios: on an embedded graph, and on a served one that the unmodified driver for Python asks, in text and in
//! bytecode.
//!
//! ```text
//! HOPLAKE_GREMLIN_SUITE=folder cargo test -p hoplake-server --test suite -- --ignored --nocapture
//! ```
//! The suite is not in this repository. The folder is `gremlin-test-3.8.1.jar`, unpacked: it has `org/`.
//!
//! | variable | |
//! | --- | --- |
//! | `HOPLAKE_GREMLIN_SUITE` | the folder |
//! | `HOPLAKE_GREMLIN_ONLY` | run those scenarios alone whose file and name have this in them |
//! | `HOPLAKE_GREMLIN_LITERALS` | if it is set, parameters are literals in the text and not bindings |
//! | `HOPLAKE_GREMLIN_REPORT` | a folder for the failures of each way: scenario, tags, query, reason |
//! | `HOPLAKE_GREMLIN_MISSES` | if it is set, the lists of misses are written instead of compared |
//!
//! `misses/` names the scenarios that fail in each way. The test fails if another one fails, or if one of these passes.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`world`] | what the scenarios run against: Hoplake comes in here |
//! | [`served`], [`forms`] | a server and the driver that asks it |
//! | [`graphs`] | the data graphs |
//! | [`steps`] | what a step says |
//! | [`scenario`] | runs the steps |
//! | [`expected`], [`elements`] | what a scenario writes for a value |
//! | [`literals`] | values as Gremlin |
//! | [`compare`], [`show`] | whether a result is it, and how it is shown if not |
//! | [`report`] | counts, failures, and the list of misses |

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod compare;
mod elements;
mod expected;
mod forms;
mod graphs;
mod literals;
mod report;
mod scenario;
mod served;
mod show;
mod steps;
mod world;

use std::{
    any::Any,
    cell::Cell,
    collections::HashMap,
    env, fs,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::runtime::Runtime;

use self::{
    graphs::{Graph, GraphName},
    report::{Report, Verdict},
    scenario::{Parameters, Shared},
    served::{Sent, Server},
    steps::Step,
    world::Place,
};

/// The version of the suite, which `./test gremlin` fetches.
#[allow(dead_code, reason = "for the script")]
const GREMLIN_VERSION: &str = "3.8.1";

/// Where the features are, below the folder of the suite.
const FEATURES: &str = "org/apache/tinkerpop/gremlin/test/features";

/// Tags of scenarios that are for other runs. Java's run of TinkerGraph leaves out the same: a graph that stores `null` as a value of
/// a property has a run of its own.
const SKIPPED: [&str; 3] = ["GraphComputerOnly", "RemoteOnly", "AllowNullPropertyValues"];

/// Steps that TinkerPop runs on its graph computer alone, and Hoplake anywhere.
const COMPUTED: [&str; 4] = ["StepPageRank", "StepPeerPressure", "StepConnectedComponent", "StepShortestPath"];

/// No scenario takes a second; one that hangs should not stop the others.
const SCENARIO_TIME_MAX: Duration = Duration::from_secs(30);

/// A scenario as it is in a file.
struct Scenario {
    /// Its file and name, which no other has.
    name: String,
    /// Its own tags and those of its file.
    tags: Vec<String>,
    steps: Result<Vec<Step>, String>,
}

#[test]
#[ignore = "needs the folder that HOPLAKE_GREMLIN_SUITE names"]
fn scenarios() {
    run("embedded", None);
}

#[test]
#[ignore = "needs the folder that HOPLAKE_GREMLIN_SUITE names"]
fn scenarios_of_a_driver_in_text() {
    run("text", Some(Sent::Text));
}

#[test]
#[ignore = "needs the folder that HOPLAKE_GREMLIN_SUITE names"]
fn scenarios_of_a_driver_in_bytecode() {
    run("bytecode", Some(Sent::Bytecode));
}

/// Runs all scenarios in a way.
fn run(way: &'static str, sent: Option<Sent>) {
    let suite = PathBuf::from(env::var("HOPLAKE_GREMLIN_SUITE").unwrap());
    let only = env::var("HOPLAKE_GREMLIN_ONLY").ok();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let in_text = env::var_os("HOPLAKE_GREMLIN_LITERALS").is_some();
    let parameters = if in_text { Parameters::InText } else { Parameters::Bound };
    let place = match sent {
        None => Place::Embedded,
        Some(sent) => Place::Served(runtime.block_on(Server::start(sent))),
    };
    let mut worlds = Worlds { suite: &suite, runtime: &runtime, place: &place, parameters, shared: HashMap::new() };
    let mut report = Report::of(way);
    silence_panics_of_scenarios();
    for scenario in read(&suite) {
        if only.as_ref().is_none_or(|only| scenario.name.contains(only.as_str())) {
            let verdict = worlds.verdict(&scenario);
            report.add(&scenario, verdict);
        }
    }
    report.finish(only.is_some());
}

/// All scenarios, in the order of their files.
fn read(suite: &Path) -> Vec<Scenario> {
    let root = suite.join(FEATURES);
    let mut files = Vec::new();
    list(&root, &mut files);
    files.sort();
    let mut scenarios = Vec::new();
    for file in files {
        let feature = gherkin::Feature::parse_path(&file, gherkin::GherkinEnv::default()).unwrap();
        let file = file.strip_prefix(&root).unwrap().with_extension("").display().to_string();
        for scenario in feature.scenarios {
            scenarios.push(Scenario {
                name: format!("{file} {}", scenario.name),
                tags: feature.tags.iter().chain(&scenario.tags).cloned().collect(),
                steps: scenario.steps.iter().map(steps::step).collect(),
            });
        }
    }
    scenarios
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            list(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "feature") {
            files.push(path);
        }
    }
}

/// The worlds of the data graphs, each opened when a scenario first asks for it.
struct Worlds<'a> {
    suite: &'a Path,
    runtime: &'a Runtime,
    place: &'a Place,
    parameters: Parameters,
    /// Those of the graphs that no scenario changes, or why one could not be opened.
    shared: HashMap<GraphName, Result<Shared, String>>,
}

impl Worlds<'_> {
    fn verdict(&mut self, scenario: &Scenario) -> Verdict {
        let is_computed = scenario.tags.iter().any(|tag| COMPUTED.contains(&tag.as_str()));
        let is_skipped =
            |tag: &&String| SKIPPED.contains(&tag.as_str()) && !(is_computed && *tag == "GraphComputerOnly");
        if let Some(tag) = scenario.tags.iter().find(is_skipped) {
            return Verdict::Skipped(format!("@{tag}"));
        }
        let steps = match &scenario.steps {
            Ok(steps) if steps.contains(&Step::Unsupported) => return Verdict::Skipped("unsupported".to_owned()),
            Ok(steps) => steps,
            Err(error) => return Verdict::Failed(error.clone()),
        };
        let graph = steps.iter().find_map(|step| match step {
            Step::Graph(name) => Some(*name),
            _ => None,
        });
        let graph = graph.unwrap_or(GraphName::Empty);
        IN_SCENARIO.set(true);
        let caught = panic::catch_unwind(AssertUnwindSafe(|| self.run(steps, graph)));
        IN_SCENARIO.set(false);
        match caught {
            Ok(Ok(())) => Verdict::Passed,
            Ok(Err(reason)) => Verdict::Failed(reason),
            Err(payload) => {
                // A world that panicked may be in any state.
                self.shared.remove(&graph);
                Verdict::Failed(format!("panic: {}", message(&*payload)))
            }
        }
    }

    fn run(&mut self, steps: &[Step], graph: GraphName) -> Result<(), String> {
        let suite = self.suite;
        let runtime = self.runtime;
        let place = self.place;
        let parameters = self.parameters;
        let run = async |shared: &mut Shared| {
            let run = tokio::time::timeout(SCENARIO_TIME_MAX, scenario::run(steps, shared, parameters));
            run.await.unwrap_or_else(|_| Err(format!("it takes longer than {} s", SCENARIO_TIME_MAX.as_secs())))
        };
        if graph == GraphName::Empty {
            return runtime.block_on(run(&mut open(graph, suite, place, runtime)?));
        }
        let shared = self.shared.entry(graph).or_insert_with(|| open(graph, suite, place, runtime));
        runtime.block_on(run(shared.as_mut().map_err(|error| error.clone())?))
    }
}

fn open(name: GraphName, suite: &Path, place: &Place, runtime: &Runtime) -> Result<Shared, String> {
    let graph = Graph::load(name, suite)?;
    let world = runtime.block_on(place.open(&graph));
    world.map(|world| Shared::new(name, world)).map_err(|error| format!("the {name:?} graph: {error}"))
}

thread_local! {
    static IN_SCENARIO: Cell<bool> = const { Cell::new(false) };
}

/// A panic within a scenario is the reason of its failure, and nothing to be printed.
fn silence_panics_of_scenarios() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !IN_SCENARIO.get() {
            print(info);
        }
    }));
}

fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("of no text")
}
