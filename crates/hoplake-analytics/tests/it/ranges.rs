//! Programs on ranges of vertices: in one process, and in two that hand each other columns.

use std::{
    env,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    ops::Range,
    process::Command,
    sync::Arc,
};

use hoplake_analytics::{
    Lists, RangeResult, RangeRun, RunError, RunSettings, Selection, Topology, VertexProgram, Workers,
    programs::{Components, PageRank},
    run,
    stores::{MemoryStore, StateStore},
};
use hoplake_storage::{Branch, QueryContext};

use crate::{
    loading::{changed, changed_at},
    open,
};

const SUPERSTEPS: usize = 12;

fn settings() -> RunSettings {
    RunSettings { supersteps_max: Some(SUPERSTEPS), ..RunSettings::default() }
}

fn selection(hop: &str) -> Selection {
    Selection { hop: hop.parse().unwrap(), reversed: true, ..Selection::default() }
}

async fn streamed(url: &str, hop: &str, branch: &mut Branch) -> Lists {
    Lists::streamed(&open(url).await, &selection(hop), branch).await.unwrap()
}

fn store<P: VertexProgram>(vertices: usize) -> Arc<dyn StateStore<P::State>> {
    Arc::new(MemoryStore::new(vertices as u32))
}

/// The states of one run.
async fn whole<P: VertexProgram>(program: &Arc<P>, lists: &Lists, branch: &mut Branch) -> Vec<P::State> {
    let store = store::<P>(lists.vertices() as usize);
    run(program, lists, &store, &settings(), |_| (), branch).await.unwrap();
    store.take(0..lists.vertices()).unwrap()
}

/// What goes over the wire.
fn sent(part: &RangeResult<PageRank>) -> RangeResult<PageRank> {
    RangeResult::from_bytes(&part.to_bytes().unwrap()).unwrap()
}

fn assert_near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    // Sums are added up range by range, so that last bits differ.
    assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-14), "{found:?}, not {expected:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_come_to_what_one_run_comes_to() {
    let url = changed("ranges").await;
    let program = Arc::new(PageRank::default());
    for hop in ["out", "both", "in:livesIn,near"] {
        let mut branch = QueryContext::new().branch();
        let topology = Topology::load(&open(&url).await, &selection(hop), &Workers::default(), &mut branch).await;
        let topology = Arc::new(topology.unwrap());
        for lists in [streamed(&url, hop, &mut branch).await, Lists::in_memory(&topology, branch.context()).unwrap()] {
            let expected = whole(&program, &lists, &mut branch).await;
            let end = lists.vertices();
            // One, several that do not begin with a label, and many of which some are empty.
            for bounds in [vec![0, end], vec![0, 1, 37, 91, end], (0..=end).chain([end]).collect()] {
                let mut runs = Vec::new();
                for ends in bounds.windows(2) {
                    let range = ends[0]..ends[1];
                    let store = store::<PageRank>((ends[1] - ends[0]) as usize);
                    let begun = RangeRun::begin(&program, &lists, range, &store, &settings(), &mut branch).await;
                    let (run, part) = begun.unwrap();
                    runs.push((run, part, store));
                }
                let mut supersteps = 0;
                loop {
                    let parts: Vec<_> = runs.iter().map(|(_, part, _)| part.to_bytes().unwrap()).collect();
                    // In any order.
                    let parts = || parts.iter().rev().map(|bytes| RangeResult::from_bytes(bytes).unwrap()).collect();
                    let joined: Vec<_> = runs.iter_mut().map(|(run, ..)| run.join(parts()).unwrap()).collect();
                    assert!(joined.iter().all(|goes_on| *goes_on == joined[0]), "all know when it is over");
                    if !joined[0] {
                        break;
                    }
                    for (run, part, _) in &mut runs {
                        *part = run.superstep(&mut branch).await.unwrap();
                    }
                    supersteps += 1;
                }
                assert_eq!(supersteps, SUPERSTEPS);
                let found: Vec<f64> = runs
                    .iter()
                    .zip(bounds.windows(2))
                    .flat_map(|((.., store), ends)| store.take(0..ends[1] - ends[0]).unwrap())
                    .collect();
                assert_near(&found, &expected);
            }
        }
        drop(topology);
        assert_eq!(branch.context().memory().used(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_that_do_not_belong_together_are_rejected() {
    let url = changed("range parts").await;
    let program = Arc::new(PageRank::default());
    let mut branch = QueryContext::new().branch();
    let lists = streamed(&url, "out", &mut branch).await;
    let end = lists.vertices();
    let half = |range: Range<u32>| store::<PageRank>(range.len());
    let stores = [half(0..40), half(40..end)];
    let begin = async |range, store, branch: &mut Branch| {
        RangeRun::begin(&program, &lists, range, store, &settings(), branch).await.unwrap()
    };
    let (mut first, low) = begin(0..40, &stores[0], &mut branch).await;
    let (_, high) = begin(40..end, &stores[1], &mut branch).await;
    let rejected = |run: &mut RangeRun<PageRank>, parts: &[&RangeResult<PageRank>]| {
        let Err(RunError::Part(why)) = run.join(parts.iter().map(|part| sent(part)).collect()) else {
            panic!("it was not refused")
        };
        why
    };
    assert!(rejected(&mut first, &[&low]).contains("vertices from 40 on are missing"));
    assert!(rejected(&mut first, &[&high]).contains("vertices from 0 on after superstep 0 are next, and not 40 to"));
    assert!(rejected(&mut first, &[&low, &low, &high]).contains("vertices from 40 on"));
    assert!(rejected(&mut first, &[]).contains("vertices from 0 on are missing"));
    assert!(first.join(vec![sent(&low), sent(&high)]).unwrap());
    let next = first.superstep(&mut branch).await.unwrap();
    assert!(first.join(vec![sent(&next), sent(&next)]).is_err());
    let stale = rejected(&mut first, &[&next, &high]);
    assert!(
        stale.contains("after superstep 1 are next, and not 40 to") && stale.ends_with("after superstep 0"),
        "{stale}"
    );
    let bytes = next.to_bytes().unwrap();
    for length in 0..bytes.len() {
        assert!(RangeResult::<PageRank>::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
    }
    // Ranges that no bytes have signals for.
    for wrong in [[0u8; 12], [0xff; 12]] {
        let mut bytes = bytes.clone();
        bytes[..12].copy_from_slice(&wrong);
        assert!(RangeResult::<PageRank>::from_bytes(&bytes).is_err());
    }
}

fn send(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(&(bytes.len() as u32).to_le_bytes()).unwrap();
    stream.write_all(bytes).unwrap();
}

fn receive(stream: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// One half of the vertices, next to a process that has the other.
async fn half<P: VertexProgram<Aggregate: serde::Serialize + serde::de::DeserializeOwned>>(
    program: P,
    url: &str,
    is_first: bool,
    stream: &mut TcpStream,
) -> Vec<P::State> {
    let mut branch = QueryContext::new().branch();
    let lists = streamed(url, "both", &mut branch).await;
    let middle = lists.vertices() / 2;
    let end = lists.vertices();
    let range = if is_first { 0..middle } else { middle..end };
    let states = store::<P>(range.len());
    let begun = RangeRun::begin(&Arc::new(program), &lists, range.clone(), &states, &settings(), &mut branch).await;
    let (mut run, mut part) = begun.unwrap();
    loop {
        send(stream, &part.to_bytes().unwrap());
        let other = RangeResult::from_bytes(&receive(stream)).unwrap();
        if !run.join(vec![part, other]).unwrap() {
            return states.take(0..range.len() as u32).unwrap();
        }
        part = run.superstep(&mut branch).await.unwrap();
    }
}

const URL: &str = "HOPLAKE_RANGES_URL";
const DOOR: &str = "HOPLAKE_RANGES_DOOR";

/// The other process of the test below, which starts it.
#[tokio::test]
#[ignore = "is run by two_processes_share_a_graph"]
async fn the_other_process() {
    let url = env::var(URL).unwrap();
    let mut stream = TcpStream::connect(env::var(DOOR).unwrap()).unwrap();
    let ranks = half(PageRank::default(), &url, false, &mut stream).await;
    let components = half(Components, &url, false, &mut stream).await;
    send(&mut stream, &ranks.iter().flat_map(|rank| rank.to_le_bytes()).collect::<Vec<_>>());
    send(&mut stream, &components.iter().flat_map(|component| component.to_le_bytes()).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_share_a_graph() {
    let folder = tempfile::tempdir().unwrap();
    let url = folder.path().join("graph").display().to_string();
    changed_at(&url).await;
    let door = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut other = Command::new(env::current_exe().unwrap())
        .args(["ranges::the_other_process", "--exact", "--ignored"])
        .envs([(URL, &url), (DOOR, &door.local_addr().unwrap().to_string())])
        .spawn()
        .unwrap();
    let (mut stream, _) = door.accept().unwrap();
    let mut ranks = half(PageRank::default(), &url, true, &mut stream).await;
    let mut components = half(Components, &url, true, &mut stream).await;
    ranks.extend(receive(&mut stream).as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)));
    components.extend(receive(&mut stream).as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)));
    assert!(other.wait().unwrap().success());
    let mut branch = QueryContext::new().branch();
    let lists = streamed(&url, "both", &mut branch).await;
    assert_near(&ranks, &whole(&Arc::new(PageRank::default()), &lists, &mut branch).await);
    assert_eq!(components, whole(&Arc::new(Components), &lists, &mut branch).await);
}
