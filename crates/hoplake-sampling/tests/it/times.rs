//! Nothing later than its seed: samples next to a naive sampler that sees all edges.

use std::{collections::BTreeMap, fs};

use hoplake::{
    Batch, ErrorKind, Graph, LoadOptions, MemoryBudget, Operation, Properties, SegmentSettings, VertexId, VertexRef,
    sampling::{SamplerSettings, TimeSettings},
};

use crate::{fan_outs, in_memory, vertices, workers};

const PEOPLE: usize = 120;

fn joined(person: usize) -> i64 {
    (person * 37 % 100) as i64
}

fn since(from: usize, step: usize) -> i64 {
    ((from * 13 + step * 29) % 100) as i64 - 20
}

/// People, each with the time when they joined, and edges with theirs, some of them before 0.
async fn temporal(name: &str) -> Graph {
    let url = format!("memory://sampling/{name}");
    let folder = tempfile::tempdir().unwrap();
    let mut people = String::from("~id,~label,joined:Int,name\n");
    let mut edges = String::from("~id,~from,~to,~label,since:Int,weight:Double\n");
    for at in 0..PEOPLE {
        people += &format!("p{at:03},person,{},n{at}\n", joined(at));
        for step in 0..20 {
            let to = (at * 7 + step * 11 + 1) % PEOPLE;
            edges += &format!("e{at}-{step},p{at:03},p{to:03},knows,{},{}\n", since(at, step), 1 + step % 3);
        }
    }
    fs::write(folder.path().join("vertices.csv"), people).unwrap();
    fs::write(folder.path().join("edges.csv"), edges).unwrap();
    let files = [folder.path().join("vertices.csv"), folder.path().join("edges.csv")];
    let options = LoadOptions { segments: SegmentSettings::with_list_blocks(512), ..LoadOptions::from_paths(files) };
    hoplake::load(&url, options).await.unwrap();
    Graph::open(&url).await.unwrap()
}

fn time(property: &str, of_vertices: bool, last: bool) -> Option<TimeSettings> {
    Some(TimeSettings { property: property.into(), of_vertices, last })
}

async fn everyone(graph: &Graph) -> Vec<VertexId> {
    vertices(graph, (0..PEOPLE).map(|at| ("person", format!("p{at:03}")))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_later_than_its_seed() {
    let graph = temporal("times").await;
    let people = everyone(&graph).await;
    let number: BTreeMap<VertexId, usize> = people.iter().enumerate().map(|(at, vertex)| (*vertex, at)).collect();
    let seeds: Vec<VertexId> = (0..60).map(|at| people[at * 17 % PEOPLE]).chain([people[5], people[5]]).collect();
    let times: Vec<i64> = (0..seeds.len() as i64).map(|at| at * 3 - 30).collect();
    for (of_vertices, last, weighted, induced) in [
        (false, false, false, false),
        (true, false, false, false),
        (false, true, false, false),
        (true, true, false, false),
        (false, false, true, false),
        (false, false, false, true),
        (true, false, false, true),
    ] {
        let settings = SamplerSettings {
            fan_outs: fan_outs(&graph, "out:knows", &[Some(4), Some(3)]),
            weight: weighted.then(|| "weight".into()),
            disjoint: true,
            induced,
            seed: 5,
            time: time(if of_vertices { "joined" } else { "since" }, of_vertices, last),
            ..SamplerSettings::default()
        };
        let shown = format!("{settings:?}");
        let on_bucket = graph.query().sampler(settings.clone()).unwrap();
        let sample = graph.query().sample_at(&on_bucket, &seeds, &times, 3).await.unwrap().into_inner();
        for threads in [1, 2, 7] {
            let sampler = in_memory(&graph, &settings, threads).await;
            let again = graph.query().sample_at(&sampler, &seeds, &times, 3).await.unwrap().into_inner();
            assert_eq!(again, sample, "{shown}");
        }
        let (reached, edges) = (&sample.vertices[0], &sample.edges[0]);
        let person = |at: i64| number[&VertexId::new(reached.label, reached.ordinals[at as usize] as u64).unwrap()];
        // The times of the edges from one person to another, as a naive sampler has them.
        let between = |from: usize, to: usize| {
            let steps = (0..20).filter(move |step| (from * 7 + step * 11 + 1) % PEOPLE == to);
            steps.map(move |step| if of_vertices { joined(to) } else { since(from, step) })
        };
        let mut chosen: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for (near, far) in edges.near.iter().zip(&edges.far) {
            let tree = reached.trees[*near as usize];
            assert_eq!(reached.trees[*far as usize], tree, "{shown}");
            let now = times[tree as usize];
            // Pairs have one edge each: 11 and the number of people have no common divisor.
            let at: Vec<i64> = between(person(*near), person(*far)).collect();
            assert!(matches!(at[..], [at] if at <= now), "{at:?} at {now}: {shown}");
            chosen.entry(*near).or_default().push(at[0]);
        }
        let mut seen_less = 0;
        for at in 0..(reached.per_hop[0] + reached.per_hop[1]) as i64 {
            if induced {
                break;
            }
            let count = if at < reached.per_hop[0] as i64 { 4 } else { 3 };
            let now = times[reached.trees[at as usize] as usize];
            let mut all: Vec<i64> =
                (0..PEOPLE).flat_map(|to| between(person(at), to)).filter(|it| *it <= now).collect();
            let mut found = chosen.remove(&at).unwrap_or_default();
            assert_eq!(found.len(), all.len().min(count), "{shown}");
            seen_less += usize::from(all.len() < 20);
            if last {
                found.sort_unstable();
                all.sort_unstable();
                assert_eq!(found, all[all.len() - found.len()..], "{shown}");
            }
        }
        assert!(induced || seen_less > 10, "{shown}");
        assert!(edges.near.len() > 100, "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn edges_that_a_seed_sees_have_the_same_chance() {
    let graph = temporal("times-evenly").await;
    let person = [everyone(&graph).await[0]];
    let settings = SamplerSettings {
        fan_outs: fan_outs(&graph, "out:knows", &[Some(2)]),
        disjoint: true,
        time: time("since", false, false),
        ..SamplerSettings::default()
    };
    let sampler = in_memory(&graph, &settings, 1).await;
    let seen = (0..20).filter(|step| since(0, *step) <= 30).count();
    let mut counts: BTreeMap<i64, f64> = BTreeMap::new();
    for batch in 0..6_000 {
        let sample = graph.query().sample_at(&sampler, &person, &[30], batch).await.unwrap();
        for far in &sample.edges[0].far {
            *counts.entry(sample.vertices[0].ordinals[*far as usize]).or_default() += 1.0;
        }
    }
    assert_eq!((counts.len(), seen), (11, 11));
    let expected = 12_000.0 / seen as f64;
    let statistic: f64 = counts.values().map(|count| (count - expected).powi(2) / expected).sum();
    // 10 degrees of freedom, at one in a thousand.
    assert!(statistic < 29.59, "{statistic}: {counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn times_that_cannot_be_are_rejected() {
    let graph = temporal("no-times").await;
    let query = graph.query();
    let settings = |disjoint: bool, time: Option<TimeSettings>| SamplerSettings {
        fan_outs: fan_outs(&graph, "out:knows", &[Some(2)]),
        disjoint,
        time,
        ..SamplerSettings::default()
    };
    let rejected = |settings: SamplerSettings| query.sampler(settings).unwrap_err();
    assert!(rejected(settings(false, time("since", false, false))).to_string().contains("keep seeds apart"));
    assert_eq!(rejected(settings(true, time("joined", false, false))).kind(), ErrorKind::NotFound);
    assert!(rejected(settings(true, time("name", true, false))).to_string().contains("a time is"));
    let replacing = SamplerSettings { replace: true, ..settings(true, time("since", false, true)) };
    assert!(rejected(replacing).to_string().contains("without replacement"));
    let people = everyone(&graph).await;
    let sampler = query.sampler(settings(true, time("since", false, false))).unwrap();
    for times in [&[][..], &[1]] {
        let error = graph.query().sample_at(&sampler, &people[..2], times, 0).await.unwrap_err();
        assert!(error.to_string().contains("times for 2 seeds"), "{error}");
    }
    let sampler = query.sampler(settings(true, None)).unwrap();
    assert!(graph.query().sample_at(&sampler, &people[..1], &[1], 0).await.is_err());
}

/// Pages with the day when they were made, and links to the same page with theirs: enough that the times of both are read in several
/// pieces.
async fn pages(name: &str) -> Graph {
    let url = format!("memory://sampling/{name}");
    let folder = tempfile::tempdir().unwrap();
    let mut pages = String::from("~id,~label,made:Date\n");
    let mut links = String::from("~id,~from,~to,~label,since:Date\n");
    let day = |at: usize| format!("20{:02}-{:02}-{:02}", at % 50 + 10, at % 12 + 1, at % 28 + 1);
    for at in 0..PAGES {
        // The last one has none, and no link leads to it.
        let made = if at == PAGES - 1 { String::new() } else { day(at * 7) };
        pages += &format!("p{at:06},page,{made}\n");
    }
    for at in 0..LINKS {
        let (from, to) = (at * 31 % 3_000, (at * at + at * 17) % (PAGES - 1));
        links += &format!("l{at},p{from:06},p{to:06},links,{}\n", day(at * 11));
    }
    fs::write(folder.path().join("pages.csv"), pages).unwrap();
    fs::write(folder.path().join("links.csv"), links).unwrap();
    let files = [folder.path().join("pages.csv"), folder.path().join("links.csv")];
    hoplake::load(&url, LoadOptions::from_paths(files)).await.unwrap();
    Graph::open(&url).await.unwrap()
}

const PAGES: usize = 70_000;
const LINKS: usize = 60_000;

#[tokio::test(flavor = "multi_thread")]
async fn times_in_memory_take_two_bytes_if_they_are_days() {
    let graph = pages("compact").await;
    let people = fan_outs(&graph, "out:links", &[])[0].edges.near;
    let seeds: Vec<i64> = (0..3_000).chain([PAGES as i64 - 1]).collect();
    let seeds = graph.query().vertices_at(people, &seeds).unwrap();
    // From 2010 to 2060.
    let times: Vec<i64> = (0..seeds.len() as i64).map(|at| (14_600 + at * 6) * 86_400_000_000).collect();
    for (of_vertices, property, count) in [(false, "since", LINKS), (true, "made", PAGES)] {
        let settings = |time| SamplerSettings {
            fan_outs: fan_outs(&graph, "both:links", &[Some(5), Some(3)]),
            disjoint: true,
            time,
            ..SamplerSettings::default()
        };
        let timed = settings(time(property, of_vertices, false));
        let bytes = async |settings: &SamplerSettings| {
            let budget = MemoryBudget::new("the lists", 12 << 20);
            let mut query = graph.query_within(&budget);
            let sampler = query.sampler_in_memory(settings.clone(), workers(2)).await.unwrap();
            drop(query);
            (budget.used(), sampler)
        };
        let (without, _) = bytes(&settings(None)).await;
        let (with, sampler) = bytes(&timed).await;
        // Links are there in both directions.
        let timed_twice = if of_vertices { count } else { 2 * count } as u64;
        assert!((timed_twice * 2..timed_twice * 2 + 4_096).contains(&(with - without)), "{without} {with}");
        let sample = graph.query().sample_at(&sampler, &seeds, &times, 2).await.unwrap();
        let on_bucket = graph.query().sampler(timed).unwrap();
        let expected = graph.query().sample_at(&on_bucket, &seeds, &times, 2).await.unwrap();
        assert!(*sample == *expected, "{property}");
        assert!(sample.edges.iter().all(|edges| edges.near.len() > 5_000));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vertex_without_a_time_is_an_error_where_an_edge_leads_to_it() {
    let mut graph = pages("timeless").await;
    let settings = |graph: &Graph| SamplerSettings {
        fan_outs: fan_outs(graph, "out:links", &[None]),
        disjoint: true,
        time: time("made", true, false),
        ..SamplerSettings::default()
    };
    let page = |at: usize| VertexRef::new("page", format!("p{at:06}"));
    let link = Operation::UpsertEdge {
        label: "links".into(),
        source: page(0),
        target: page(PAGES - 1),
        key: None,
        properties: Properties::default(),
        replace: true,
    };
    graph.apply(Batch { operations: vec![link], ..Batch::default() }).await.unwrap();
    graph.refresh().await.unwrap();
    let seeds = vertices(&graph, [("page", "p000000".to_owned())]).await;
    let settings = settings(&graph);
    let error = graph.query().sampler_in_memory(settings.clone(), workers(1)).await.unwrap_err().to_string();
    let on_bucket = graph.query().sampler(settings).unwrap();
    let expected = graph.query().sample_at(&on_bucket, &seeds, &[0], 0).await.unwrap_err().to_string();
    assert!(expected.contains("page:p069999 has no made, which is its time"), "{expected}");
    assert_eq!(error, expected);
}
