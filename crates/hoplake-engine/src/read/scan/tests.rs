//! Scans of lists that were written to a store in memory.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use hoplake_format::Direction;
use hoplake_storage::{Branch, QueryContext};
use proptest::prelude::*;

use super::{
    written::{EDGE_TYPE, KEYS, LABEL, LISTS, REMOVED, RunsFixture, TOMBSTONES},
    *,
};
use crate::read::merge::ListEntry;

type OfSources = BTreeMap<u64, Vec<u64>>;

fn slices(lists: &OfSources) -> impl Iterator<Item = (u64, &[u64])> {
    lists.iter().map(|(source, targets)| (*source, targets.as_slice()))
}

/// Lists of 400 sources, of which one is a hub of many blocks.
fn with_hub() -> OfSources {
    let list = |source: u64| -> Vec<u64> {
        let length = if source == 150 { 3000 } else { source % 4 };
        (0..length).map(|number| number * 37 + source % 11).collect()
    };
    (0..400).step_by(2).map(|source| (source, list(source))).collect()
}

fn entries(lists: &OfSources, sources: &Range<u64>) -> Vec<(u64, u64)> {
    let lists = lists.iter().filter(|(source, _)| sources.contains(source));
    lists.flat_map(|(source, targets)| targets.iter().map(|target| (*source, *target))).collect()
}

fn range(sources: Range<u64>) -> ListRange {
    ListRange { edge_type: EDGE_TYPE, direction: Direction::Out, sources }
}

/// What a range of lists has, of runs that are merged: the number of the run, and the pair.
async fn scanned(
    snapshot: &Arc<Snapshot>,
    range: &ListRange,
    branch: &mut Branch,
) -> Result<Vec<(usize, (u64, u64))>, EngineError> {
    let runs = range.kinds().into_iter().flat_map(|kind| snapshot.sections().runs(kind));
    let mut runs: Vec<_> = runs.collect();
    runs.sort_by_key(|run| std::cmp::Reverse(run.versions.until));
    let sources = runs.into_iter().map(|run| Source::lists(snapshot, run, range)).collect();
    let mut merged = MergedScan::new(sources, 1 << 20, ListEntry::by_pair);
    let mut all = Vec::new();
    loop {
        let batch = merged.next(branch).await?;
        if batch.is_empty() {
            assert!(merged.is_ended());
            return Ok(all);
        }
        all.extend(batch.into_iter().map(|(run, entry)| (run, (entry.source, entry.target))));
    }
}

#[tokio::test]
async fn a_scan_has_all_blocks_in_order_with_a_request_an_extent() {
    let lists = with_hub();
    let snapshot = RunsFixture::new().lists(1, LISTS, slices(&lists)).open().await;
    assert!(snapshot.manifest().segments.len() > 3, "a section goes on over segments");
    let [run] = snapshot.sections().runs(LISTS) else { panic!("one run") };
    let mut branch = QueryContext::new().branch();
    snapshot.sections().make_resident(snapshot.sections().all_locations(), &mut branch).await.unwrap();
    let before = branch.context().cost();
    let mut scan = Scan::new(&snapshot, run, None, Ahead::of(1 << 20, 1));
    let mut found = Vec::new();
    let mut blocks = 0;
    while let Some(block) = scan.next(&mut branch).await.unwrap() {
        let of_block = decode_lists(&block, &(0..u64::MAX)).unwrap();
        found.extend(of_block.iter().map(|entry| (entry.source, entry.target)));
        blocks += 1;
    }
    assert_eq!(found, entries(&lists, &(0..u64::MAX)));
    // An extent ends with its index block, of which each has two blocks at most.
    let index_blocks: usize =
        run.locations().map(|location| snapshot.sections().section(location).unwrap().index_len()).sum();
    let requests = branch.context().cost().requests - before.requests;
    assert_eq!(requests, index_blocks as u64);
    assert!(blocks > index_blocks, "{blocks} blocks of {index_blocks} index blocks");
}

#[tokio::test]
async fn a_narrow_range_reads_little() {
    let lists = with_hub();
    let snapshot = RunsFixture::new().lists(1, LISTS, slices(&lists)).open().await;
    let mut branch = QueryContext::new().branch();
    snapshot.sections().make_resident(snapshot.sections().all_locations(), &mut branch).await.unwrap();
    let before = branch.context().cost();
    let found = scanned(&snapshot, &range(301..304), &mut branch).await.unwrap();
    assert_eq!(found, [(0, (302, 5)), (0, (302, 42))]);
    let after = branch.context().cost();
    assert!(after.requests - before.requests <= 2, "{} requests", after.requests - before.requests);
    // The first block alone has sources below 3; its index block names another.
    let mut scan = Scan::new(&snapshot, &snapshot.sections().runs(LISTS)[0], Some(0..3), Ahead::of(1 << 20, 1));
    assert!(scan.next(&mut branch).await.unwrap().is_some());
    assert!(scan.next(&mut branch).await.unwrap().is_none());
    assert!(scanned(&snapshot, &range(500..600), &mut branch).await.unwrap().is_empty());
    assert!(scanned(&snapshot, &range(7..7), &mut branch).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_newest_run_decides_a_pair() {
    let snapshot = RunsFixture::new()
        .lists(1, LISTS, [(1, &[2, 3, 3][..]), (5, &[6])])
        .lists(2, LISTS, [(1, &[3][..]), (4, &[4])])
        .lists(2, REMOVED, [(5, &[6][..])])
        .lists(3, REMOVED, [(1, &[2][..])])
        .open()
        .await;
    let mut branch = QueryContext::new().branch();
    let found = scanned(&snapshot, &ListRange::all(EDGE_TYPE, Direction::Out), &mut branch).await.unwrap();
    // Runs: removed by version 3, lists of version 2, removed by it, and lists of version 1.
    assert_eq!(found, [(0, (1, 2)), (1, (1, 3)), (1, (4, 4)), (2, (5, 6))]);
}

/// The pairs of a scan of lists.
async fn pairs(snapshot: &Arc<Snapshot>, range: &ListRange) -> Vec<(u64, u64)> {
    let mut scan = snapshot.scan_lists(range, 1 << 20);
    let mut lists = Lists::default();
    let mut branch = QueryContext::new().branch();
    let mut found = Vec::new();
    while scan.next(&mut lists, &mut branch).await.unwrap() {
        found.extend(lists.iter().flat_map(|(source, _, targets)| targets.iter().map(move |target| (source, *target))));
    }
    found
}

#[tokio::test]
async fn lists_of_one_run_and_of_several_are_those_that_there_are() {
    let base = with_hub();
    let alone = RunsFixture::new().lists(1, LISTS, slices(&base)).open().await;
    let newer = OfSources::from([(2, vec![7, 9]), (150, vec![37 * 5 + 7]), (399, vec![1])]);
    let gone = OfSources::from([(150, vec![7, 37 + 7]), (302, vec![5])]);
    let written = RunsFixture::new().lists(1, LISTS, slices(&base)).lists(2, LISTS, slices(&newer));
    let changed = written.lists(3, REMOVED, slices(&gone)).open().await;
    for sources in [0..u64::MAX, 0..3, 2..3, 149..152, 151..400, 500..600, 7..7] {
        let range = range(sources.clone());
        assert_eq!(pairs(&alone, &range).await, entries(&base, &sources), "{range}");
        let mut expected: std::collections::BTreeSet<_> = entries(&base, &sources).into_iter().collect();
        expected.extend(entries(&newer, &sources));
        entries(&gone, &sources).iter().for_each(|pair| assert!(expected.remove(pair), "{pair:?} was there"));
        assert_eq!(pairs(&changed, &range).await, expected.into_iter().collect::<Vec<_>>(), "{range}");
    }
}

#[tokio::test]
async fn keys_are_those_of_vertices_that_exist() {
    let snapshot = RunsFixture::new()
        .keys(1, KEYS, (0..300).map(|key| (key * 2, key as u64)))
        .keys(2, KEYS, [(1, 300), (7, 301)])
        .keys(2, TOMBSTONES, [(4, 2)])
        // Of one version, a key that went and came back is there.
        .keys(3, KEYS, [(4, 302), (10, 5)])
        .keys(3, TOMBSTONES, [(7, 301), (10, 5), (598, 299)])
        .open()
        .await;
    let mut scan = snapshot.scan_keys(LABEL, 1 << 20);
    let mut branch = QueryContext::new().branch();
    let mut found = BTreeMap::new();
    let mut keys = Vec::new();
    while scan.next(&mut keys, &mut branch).await.unwrap() {
        found.extend(keys.iter().map(|(key, ordinal)| (key.to_string().parse::<i64>().unwrap(), *ordinal)));
    }
    let mut expected: BTreeMap<i64, u64> = (0..299).map(|key| (key * 2, key as u64)).collect();
    expected.extend([(1, 300), (4, 302)]);
    assert_eq!(found, expected);
}

#[tokio::test]
async fn damage_is_named_with_its_object() {
    let snapshot = RunsFixture::new().lists(1, LISTS, slices(&with_hub())).open().await;
    let name = snapshot.manifest().segments[1].name.clone();
    let store = snapshot.reader().store();
    let mut bytes = store.get(&name).await.unwrap().unwrap().to_vec();
    // The index is in memory before.
    let mut branch = QueryContext::new().branch();
    snapshot.sections().make_resident(snapshot.sections().all_locations(), &mut branch).await.unwrap();
    bytes[9] ^= 1;
    store.put(&name, bytes.into()).await.unwrap();
    let all = ListRange::all(EDGE_TYPE, Direction::Out);
    let error = scanned(&snapshot, &all, &mut branch).await.unwrap_err().to_string();
    assert!(error.contains(&name), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Ranges that follow each other have together what the whole has, each entry once.
    #[test]
    fn ranges_make_up_the_whole(mut bounds in prop::collection::vec(0u64..420, 0..6), gap in 0u64..3) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        bounds.extend([0, 420]);
        bounds.sort_unstable();
        let lists = with_hub();
        let newer: OfSources =
            (0..400).step_by(7 + gap as usize).map(|source| (source, vec![source % 11, 40])).collect();
        runtime.block_on(async {
            let snapshot = RunsFixture::new().lists(1, LISTS, slices(&lists)).lists(2, LISTS, slices(&newer)).open().await;
            let mut branch = QueryContext::new().branch();
            let mut found = Vec::new();
            for pair in bounds.windows(2) {
                let of_range = scanned(&snapshot, &range(pair[0]..pair[1]), &mut branch).await.unwrap();
                assert!(of_range.iter().all(|(_, (source, _))| (pair[0]..pair[1]).contains(source)));
                found.extend(of_range);
            }
            let mut expected: BTreeMap<(u64, u64), usize> = BTreeMap::new();
            expected.extend(entries(&lists, &(0..420)).into_iter().map(|pair| (pair, 1)));
            expected.extend(entries(&newer, &(0..420)).into_iter().map(|pair| (pair, 0)));
            let found: Vec<_> = found.into_iter().map(|(run, pair)| (pair, run)).collect();
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        });
    }
}
