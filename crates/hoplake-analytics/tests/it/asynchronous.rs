//! Asynchronous runs come to what supersteps come to, read less where work is local, and keep their bounds.

use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use hoplake_analytics::{
    Adjacency, AsyncSettings, Lists, Progress, RunError, RunSettings, Step, Value, Vertex, VertexProgram, Workers,
    kernels::{PageRankSettings, breadth_first_levels, page_rank, personalised_page_rank},
    programs::{Components, Labels, Levels, PageRank, ShortestPaths},
    run, run_asynchronously,
    stores::{MemoryStore, StateStore},
};
use hoplake_storage::{Branch, QueryContext, ReadLimits};
use hoplake_testkit::generate::SplitMix64;

use crate::{
    loading::changed,
    programs::{Both, stores, weighted, write},
};

fn settings(threads: usize) -> AsyncSettings {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    AsyncSettings { workers: Workers::new(Arc::new(pool)), ..AsyncSettings::default() }
}

fn memory<S: Value>(lists: &Lists) -> Arc<dyn StateStore<S>> {
    Arc::new(MemoryStore::new(lists.vertices()))
}

async fn lists(graph: &Both, streamed: bool, branch: &mut Branch) -> Lists {
    match streamed {
        true => Lists::streamed(&graph.snapshot, &graph.selection, branch).await.unwrap(),
        false => Lists::in_memory(&graph.topology, branch.context()).unwrap(),
    }
}

/// The states that a program ends with asynchronously, however it is run.
async fn states<P: VertexProgram>(graph: &Both, program: P) -> Vec<Vec<P::State>> {
    let program = Arc::new(program);
    let mut all = Vec::new();
    let vertices = graph.topology.out.len() as u32;
    // Large graphs are for threads and ranges; the other stores take long over a hundred small steps.
    let (threads, count) = if vertices < 1000 { (&[1, 3][..], 4) } else { (&[3][..], 1) };
    for streamed in [false, true] {
        for threads in threads {
            let folder = tempfile::tempdir().unwrap();
            for store in stores::<P::State>(folder.path(), vertices).into_iter().take(count) {
                let mut branch = QueryContext::new().branch();
                let lists = lists(graph, streamed, &mut branch).await;
                let mut last = None;
                let observe = |progress: &Progress<_>| last = Some((progress.superstep, progress.collections));
                let ran = run_asynchronously(&program, &lists, &store, &settings(*threads), observe, &mut branch).await;
                let ran = ran.unwrap();
                // There is no step if the start has no edges.
                assert_eq!(last.unwrap_or_default(), (ran.superstep, ran.collections));
                assert_eq!(branch.context().memory().used(), lists.deleted().len() as u64 * 4);
                all.push(graph.kept(&store.take(0..lists.vertices()).unwrap()));
            }
        }
    }
    all
}

/// The states that supersteps end with.
async fn synchronous<P: VertexProgram>(graph: &Both, program: P) -> Vec<P::State> {
    let mut branch = QueryContext::new().branch();
    let lists = lists(graph, false, &mut branch).await;
    let store = memory(&lists);
    run(&Arc::new(program), &lists, &store, &RunSettings::default(), |_| (), &mut branch).await.unwrap();
    graph.kept(&store.take(0..lists.vertices()).unwrap())
}

/// Roads between towns at random, with loops and parallel ones, mostly between towns with keys that are near. Some towns have none.
async fn random(name: &str, towns: i64, roads: usize, seed: u64) -> String {
    let mut random = SplitMix64::new(seed);
    let mut below = |end: i64| (random.next_u64() % end as u64) as i64;
    let mut rows = String::new();
    for number in 0..roads {
        let source = below(towns);
        let target = match number % 8 {
            0 => source,
            1..4 => below(towns),
            _ => (source + below(9) - 4).rem_euclid(towns),
        };
        // Some are there twice, with another weight.
        for _ in 0..1 + number % 3 / 2 {
            writeln!(rows, "{source},{target},road,{}", below(64) as f64 / 8.0).unwrap();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), towns, "weight:Double", &rows);
    crate::load(name, folder.path()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn fixpoints_are_those_of_supersteps_bit_for_bit() {
    let (two_labels, _) = weighted("asynchronous").await;
    let urls = [
        (changed("asynchronous changed").await, None),
        (two_labels, Some("weight")),
        (random("asynchronous sparse", 300, 250, 5).await, Some("weight")),
        (random("asynchronous dense", 90, 900, 6).await, Some("weight")),
        // Three ranges.
        (random("asynchronous large", 40_000, 90_000, 7).await, Some("weight")),
    ];
    for (url, weight) in urls {
        let hops: &[&str] = if url.ends_with("large") { &["out"] } else { &["out", "both"] };
        for hop in hops {
            let graph = Both::weighted(&url, hop, weight).await;
            let paths = synchronous(&graph, ShortestPaths { start: 3 }).await;
            assert!(
                states(&graph, ShortestPaths { start: 3 }).await.iter().all(|found| *found == paths),
                "{url} {hop}"
            );
            let levels = synchronous(&graph, Levels { start: 3 }).await;
            assert!(states(&graph, Levels { start: 3 }).await.iter().all(|found| *found == levels), "{url} {hop}");
            let least = synchronous(&graph, Components).await;
            assert!(states(&graph, Components).await.iter().all(|found| *found == least), "{url} {hop}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ranks_are_within_the_tolerance() {
    let context = QueryContext::new();
    let exact = PageRankSettings { iterations_max: 500, tolerance: 1e-14, ..PageRankSettings::default() };
    let tolerance = 1e-7;
    let rough = PageRankSettings { tolerance, ..exact };
    let large = random("asynchronous ranks", 40_000, 50_000, 8).await;
    let few = changed("asynchronous few ranks").await;
    for (url, hop) in [(few.clone(), "out"), (few, "both"), (large, "out")] {
        let graph = Both::of(&url, hop).await;
        let out = &graph.topology.out;
        let deleted = &graph.topology.deleted;
        let all = page_rank(out, graph.against(), deleted, &exact, &context).unwrap();
        let some = personalised_page_rank(out, graph.against(), deleted, &[3, 5], &exact, &context).unwrap();
        for (sources, expected) in [(None, all), (Some(vec![5, 3]), some)] {
            let expected = graph.kept(&expected.ranks);
            for (number, found) in states(&graph, PageRank::new(rough, sources)).await.iter().enumerate() {
                let off: f64 = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).sum();
                // One iteration changes no more than the tolerance, and each after it 0.85 of the one before.
                assert!(off <= tolerance / 0.15, "{url} {hop}, run {number}: ranks are off by {off} in sum");
                assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            }
        }
    }
}

/// The vertices of [`Busy`], each in a range of its own, so that none is settled while its list is there.
const BUSY: [u32; 2] = [0, 20_000];
const HELPER: u32 = 40_000;
const RARE: u32 = 59_999;

/// Two vertices give each other work a thousand times. A helper that hears of it gives a last one little reason to collect.
#[derive(Default)]
struct Busy {
    /// The steps in which the helper and the last one collected.
    helped: AtomicUsize,
    collected: AtomicUsize,
}

impl VertexProgram for Busy {
    type State = u32;
    type Signal = u32;
    type Aggregate = ();

    const WAITS_FOR_SIGNALS: bool = true;

    fn initial(&self, vertex: &Vertex) -> u32 {
        u32::from(vertex.id == BUSY[0])
    }

    fn signal(&self, _: &Vertex, state: &u32) -> Option<u32> {
        (*state > 0).then_some(*state)
    }

    fn score(&self, _: Option<u32>, after: Option<u32>) -> f64 {
        if after == Some(1) { 1e-3 } else { 1e6 }
    }

    fn collect(&self, vertex: &Vertex, state: &mut u32, signals: impl Iterator<Item = u32>, step: &Step<()>) -> bool {
        let before = *state;
        let greatest = signals.max().unwrap_or(0);
        if BUSY.contains(&vertex.id) && greatest > 0 && greatest < 1000 {
            *state = greatest + 1;
        } else if vertex.id == HELPER && greatest >= 10 && *state == 0 {
            self.helped.store(step.number, Relaxed);
            *state = 1;
        } else if vertex.id == RARE && greatest > 0 && self.collected.load(Relaxed) == 0 {
            self.collected.store(step.number, Relaxed);
        }
        *state != before
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_too_long_goes_first() {
    let [a, b] = BUSY;
    let roads = [(a, b), (b, a), (b, HELPER), (HELPER, RARE)];
    let roads: String = roads.iter().map(|(source, target)| format!("{source},{target},road,1\n")).collect();
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), i64::from(RARE) + 1, "weight:Long", &roads);
    let graph = Both::of(&crate::load("staleness", folder.path()).await, "out").await;
    for streamed in [false, true] {
        // How many steps the last one waits.
        let waits = async |staleness_max| {
            let program = Arc::new(Busy::default());
            let mut branch = QueryContext::new().branch();
            let lists = lists(&graph, streamed, &mut branch).await;
            let settings = AsyncSettings { staleness_max, ..settings(1) };
            let store = memory(&lists);
            run_asynchronously(&program, &lists, &store, &settings, |_| (), &mut branch).await.unwrap();
            program.collected.load(Relaxed) - program.helped.load(Relaxed)
        };
        assert!(waits(usize::MAX).await > 500, "until there is nothing else to do");
        assert_eq!((waits(5).await, waits(0).await), (6, 1), "streamed: {streamed}");
    }
}

/// What a streamed run reads: requests and bytes; and its states.
async fn read<P: VertexProgram>(graph: &Both, program: P, supersteps: Option<usize>) -> (u64, u64, Vec<P::State>) {
    let context = QueryContext::new();
    let mut branch = context.branch();
    let lists = lists(graph, true, &mut branch).await;
    let store = memory(&lists);
    let before = context.cost();
    let program = Arc::new(program);
    match supersteps {
        None => run_asynchronously(&program, &lists, &store, &settings(1), |_| (), &mut branch).await.unwrap(),
        supersteps_max => {
            let settings = RunSettings { supersteps_max, ..RunSettings::default() };
            run(&program, &lists, &store, &settings, |_| (), &mut branch).await.unwrap()
        }
    };
    let cost = context.cost();
    let states = store.take(0..lists.vertices()).unwrap();
    (cost.requests - before.requests, cost.store_bytes - before.store_bytes, states)
}

#[tokio::test(flavor = "multi_thread")]
async fn where_work_is_local_little_is_read() {
    // Six ranges of a path, whose end comes first: no pass in the order of ids gets far.
    const TOWNS: i64 = 98_304;
    let roads: String = (1..TOWNS).map(|town| format!("{town},{},road,1\n", town - 1)).collect();
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), TOWNS, "weight:Long", &roads);
    let url = crate::load("local", folder.path()).await;
    let graph = Both::weighted(&url, "both", Some("weight")).await;
    let start = TOWNS as u32 - 1;
    let expected = breadth_first_levels(&graph.topology.out, None, start, &QueryContext::new()).unwrap();
    let (_, once, _) = read(&graph, Levels { start }, Some(1)).await;
    let (requests, bytes, found) = read(&graph, Levels { start }, None).await;
    assert_eq!(found, *expected);
    // Each range once to learn who signals to it, once when it is reached, once when it has signalled back, and once more where ranges
    // of one read were computed at the same time.
    assert!(bytes <= once * 4, "{bytes} bytes, and {once} in one superstep of {TOWNS}");
    assert!(requests < 40, "{requests} requests");
    // A search that ends in the first of the ranges: supersteps read all of them each time.
    let roads: String =
        (1..TOWNS).filter(|town| town % 60 != 0).map(|town| format!("{town},{},road,1\n", town - 1)).collect();
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), TOWNS, "weight:Long", &roads);
    let graph = Both::of(&crate::load("more local", folder.path()).await, "both").await;
    let (requests, bytes, expected) = read(&graph, Levels { start: 59 }, Some(1000)).await;
    let (own_requests, own_bytes, found) = read(&graph, Levels { start: 59 }, None).await;
    assert_eq!(found, expected);
    assert!(own_bytes * 20 < bytes, "{own_bytes} bytes, and {bytes} in supersteps");
    assert!(own_requests * 10 < requests, "{own_requests} requests, and {requests} in supersteps");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_ends_at_its_limits() {
    let graph = Both::of(&random("asynchronous limits", 40_000, 90_000, 9).await, "both").await;
    for streamed in [false, true] {
        let context = QueryContext::new();
        let mut branch = context.branch();
        let lists = lists(&graph, streamed, &mut branch).await;
        let settings = settings(2);
        let rejected = async |settings: &AsyncSettings, branch: &mut Branch| {
            let store = memory(&lists);
            let ran = run_asynchronously(&Arc::new(Components), &lists, &store, settings, |_| (), branch).await;
            let Err(RunError::Graph(error)) = ran else { panic!("{ran:?}") };
            error.to_string()
        };
        // Signals alone take 160,000 bytes.
        let before = context.cost();
        context.limit(ReadLimits { memory_bytes_max: Some(170_000), ..ReadLimits::default() });
        let error = rejected(&settings, &mut branch).await;
        assert!(error.contains("170000 bytes of memory"), "{error}");
        assert_eq!(context.cost(), before, "nothing is read for it");
        context.limit(ReadLimits::default());
        context.give_time(Some(0));
        let error = rejected(&settings, &mut branch).await;
        assert!(error.contains("0 ms"), "{error}");
        context.give_time(None);
        for threshold in [-1.0, f64::NAN] {
            let error = rejected(&AsyncSettings { threshold, ..settings.clone() }, &mut branch).await;
            assert!(error.contains("is not a valid threshold of scores"), "{error}");
        }
        let labels =
            run_asynchronously(&Arc::new(Labels::default()), &lists, &memory(&lists), &settings, |_| (), &mut branch)
                .await;
        let error = labels.unwrap_err().to_string();
        assert!(error.contains("label propagation needs supersteps"), "{error}");
        // The first step has all collect.
        let bounded = AsyncSettings { collections_max: Some(100), ..settings.clone() };
        let program = Arc::new(Components);
        let store = memory(&lists);
        let ran = run_asynchronously(&program, &lists, &store, &bounded, |_| (), &mut branch).await.unwrap();
        assert_eq!(ran.superstep, 1);
        assert!(ran.waiting.is_some_and(|waiting| waiting.count > 0 && waiting.greatest_score > 0.0), "{ran:?}");
        // What no change is worth is not collected.
        let idle = AsyncSettings { threshold: 1e29, ..settings.clone() };
        let start = Arc::new(Levels { start: 3 });
        let ran = run_asynchronously(&start, &lists, &memory(&lists), &idle, |_| (), &mut branch).await.unwrap();
        // A streamed run has to read which ranges signal to which.
        assert_eq!(ran.superstep, usize::from(streamed), "{ran:?}");
        // Nobody waits for it any more: what it holds is given back when its workers have noticed.
        let held = context.memory().used();
        let mut steps = 0;
        let store = memory(&lists);
        let observe = |_: &Progress<_>| steps += 1;
        let mut endless = Box::pin(run_asynchronously(&program, &lists, &store, &settings, observe, &mut branch));
        let _ = futures::poll!(&mut endless);
        drop(endless);
        for _ in 0..1000 {
            if context.memory().used() == held {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!((context.memory().used(), steps), (held, 0));
    }
}
