//! Columns by parts: what vertices receive is what they receive in one piece.

use std::{fmt::Debug, sync::Arc};

use hoplake_analytics::{
    Lists, Selection, Topology, Workers,
    columns::{self, Along, Column, Combination, Combine, Number, SignalColumn},
    parts::{ColumnSlice, Fold, Part, SignalSlice, gather, plan, signalled},
};
use hoplake_engine::EngineError;
use hoplake_storage::{Branch, QueryContext};

use crate::{loading::changed, open, programs::write};

fn selection(hop: &str, weight: Option<&str>) -> Selection {
    Selection { hop: hop.parse().unwrap(), weight: weight.map(str::to_owned), ..Selection::default() }
}

fn slice(column: &Column) -> ColumnSlice<'_> {
    match column {
        Column::Integers(values) => ColumnSlice::Integers(values),
        Column::Floats(values) => ColumnSlice::Floats(values),
    }
}

/// Some rows of a column.
fn rows(column: &Column, rows: std::ops::Range<usize>) -> Column {
    match column {
        Column::Integers(values) => Column::Integers(values[rows].to_vec()),
        Column::Floats(values) => Column::Floats(values[rows].to_vec()),
    }
}

fn append(column: &mut Option<Column>, next: &Column) {
    match (column.get_or_insert_with(|| rows(next, 0..0)), next) {
        (Column::Integers(all), Column::Integers(next)) => all.extend(next),
        (Column::Floats(all), Column::Floats(next)) => all.extend(next),
        mixed => panic!("{mixed:?}"),
    }
}

/// A column by dense id, without the numbers of deleted ids.
fn existing(column: &Column, deleted: &[u32]) -> Column {
    fn kept<T: Copy>(values: &[T], deleted: &[u32]) -> Vec<T> {
        (0..).zip(values).filter(|(id, _)| !deleted.contains(id)).map(|(_, value)| *value).collect()
    }
    match column {
        Column::Integers(values) => Column::Integers(kept(values, deleted)),
        Column::Floats(values) => Column::Floats(kept(values, deleted)),
    }
}

/// The parts of a plan.
async fn parts(lists: &Lists, bounds: &[u32], branch: &mut Branch) -> Vec<Part> {
    let mut parts = Vec::new();
    for number in 0..bounds.len() - 1 {
        parts.push(Part::load(lists, bounds, number, &Workers::default(), branch).await.unwrap());
    }
    parts
}

/// What all parts receive, one after the other.
fn by_parts(
    parts: &[Part],
    signals: &SignalColumn,
    how: &Combination,
    context: &QueryContext,
) -> Result<Column, EngineError> {
    let mut begins = vec![0];
    parts.iter().for_each(|part| begins.push(begins.last().unwrap() + part.len()));
    let of = |part: usize| begins[part]..begins[part + 1];
    let mut all = None;
    for (number, part) in parts.iter().enumerate() {
        let mut fold = Fold::new(part, how, context)?;
        for source in 0..parts.len() {
            let values = rows(&signals.values, of(source));
            let is_sent: Option<Vec<u8>> =
                signals.is_sent.as_ref().map(|sent| sent[of(source)].iter().map(|sent| (*sent).into()).collect());
            let sent = SignalSlice { values: slice(&values), is_sent: is_sent.as_deref() };
            let (values, is_sent) = gather(&sent, part.needed(source), how.along.is_some())?;
            fold.add(part, &SignalSlice { values: slice(&values), is_sent: is_sent.as_deref() }, context)?;
        }
        let own = rows(&signals.values, of(number));
        append(&mut all, &*fold.finish(part, slice(&own), context)?);
    }
    Ok(all.unwrap())
}

fn assert_near(found: &Column, expected: &Column, what: &impl Debug) {
    match (found, expected) {
        (Column::Floats(found), Column::Floats(expected)) => {
            assert_eq!(found.len(), expected.len(), "{what:?}");
            for (found, expected) in found.iter().zip(expected) {
                let near = (found - expected).abs() <= 1e-12 * expected.abs();
                assert!(
                    found.to_bits() == expected.to_bits() || found == expected || near,
                    "{found}, not {expected}: {what:?}"
                );
            }
        }
        _ => assert_eq!(found, expected, "{what:?}"),
    }
}

/// All combinators over one selection, on plans of several sizes.
async fn check(url: &str, hop: &str, weight: Option<&str>) {
    let context = QueryContext::new();
    let mut branch = context.branch();
    let snapshot = open(url).await;
    let selection = selection(hop, weight);
    let lists = Lists::streamed(&snapshot, &selection, &mut branch).await.unwrap();
    let deleted = lists.deleted().to_vec();
    let end = lists.vertices();
    let values = |id: u32| i64::from(id.wrapping_mul(2_654_435_761) % 17) - 5;
    let integers: Vec<i64> = (0..end).map(values).collect();
    let floats: Vec<f64> = (0..end).map(|id| if id % 5 == 0 { f64::NAN } else { values(id) as f64 / 3.0 }).collect();
    let some: Vec<bool> = (0..end).map(|id| id % 3 != 0).collect();
    // One, many of which some are empty, and those of a user.
    let mut plans = vec![vec![0, end], (0..end).step_by(11).chain([end, end]).collect()];
    for count in [2, 4, 8] {
        plans.push(plan(&lists, count, &mut branch).await.unwrap());
    }
    let mut planned = Vec::new();
    for bounds in plans {
        let parts = parts(&lists, &bounds, &mut branch).await;
        assert_eq!(parts.iter().map(Part::len).sum::<usize>(), end as usize - deleted.len());
        planned.push(parts);
    }
    let along = [Some(Along::Times), Some(Along::Plus)];
    for along in if weight.is_some() { &along[..] } else { &[None] } {
        for (name, combine) in Combine::ALL.into_iter().filter(|(_, it)| weight.is_none() || it.has_weights()) {
            for (values, is_float) in
                [(Column::Integers(integers.clone()), false), (Column::Floats(floats.clone()), true)]
            {
                for is_sent in [None, Some(some.clone()), Some(vec![false; end as usize])] {
                    let is_float = combine.is_float(is_float || along.is_some());
                    let default = if is_float { Number::Float(0.25) } else { Number::Integer(-99) };
                    for default in [None, Some(default)] {
                        let how = Combination { combine, along: *along, default };
                        let signals = SignalColumn { values: values.clone(), is_sent: is_sent.clone() };
                        let workers = Workers::default();
                        let expected = columns::combine(&lists, signals, &how, &workers, &mut branch).await;
                        let expected = existing(&expected.unwrap(), &deleted);
                        let there = |sent: &Vec<bool>| {
                            (0..).zip(sent).filter(|(id, _)| !deleted.contains(id)).map(|(_, sent)| *sent).collect()
                        };
                        let own =
                            SignalColumn { values: existing(&values, &deleted), is_sent: is_sent.as_ref().map(there) };
                        for parts in &planned {
                            let found = by_parts(parts, &own, &how, &context).unwrap();
                            assert_near(&found, &expected, &(hop, name, along, default, parts.len()));
                        }
                    }
                }
            }
        }
    }
    drop(planned);
    drop(lists);
    assert_eq!(context.memory().used(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_receive_what_vertices_receive() {
    let url = changed("all parts").await;
    for hop in ["out", "both", "in:livesIn,near"] {
        check(&url, hop, None).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_receive_along_weights() {
    let folder = tempfile::tempdir().unwrap();
    let roads: String = (0..600).map(|at| format!("{},{},road,{}\n", at % 40, at * 7 % 41, at % 9 + 1)).collect();
    write(folder.path(), 41, "km:Double", &roads);
    let url = crate::load("weighted parts", folder.path()).await;
    for hop in ["out", "both"] {
        check(&url, hop, Some("km")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn edges_of_parts_are_counted() {
    let url = changed("parts that signal").await;
    let mut branch = QueryContext::new().branch();
    let snapshot = open(&url).await;
    for hop in ["out", "both", "in:livesIn,near"] {
        let workers = Workers::default();
        let lists = Lists::streamed(&snapshot, &selection(hop, None), &mut branch).await.unwrap();
        let expected = columns::edge_counts(&lists, &workers, &mut branch).await.unwrap();
        let expected = existing(&expected, lists.deleted());
        let mut all = None;
        for ends in plan(&lists, 5, &mut branch).await.unwrap().windows(2) {
            let own = signalled(&lists, &(ends[0]..ends[1]), false, &workers, &mut branch).await.unwrap();
            append(&mut all, &own);
        }
        assert_eq!(all.unwrap(), expected, "{hop}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_count_against_the_budget() {
    let folder = tempfile::tempdir().unwrap();
    let roads: String = (0..30_000u64).map(|at| format!("{},{},road\n", at * 7 % 5000, at * at % 4999)).collect();
    std::fs::write(folder.path().join("roads.csv"), format!("~from,~to,~label\n{roads}")).unwrap();
    let url = crate::load("parts in a budget", folder.path()).await;
    let mut branch = QueryContext::new().branch();
    let lists = Lists::streamed(&open(&url).await, &selection("out", None), &mut branch).await.unwrap();
    let bounds = plan(&lists, 2, &mut branch).await.unwrap();
    let mut parts = parts(&lists, &bounds, &mut branch).await;
    let whole = Part::load(&lists, &[0, lists.vertices()], 0, &Workers::default(), &mut branch).await.unwrap();
    // Parts of equal lists have half of the edges each, or nearly.
    let [first, second] = &parts[..] else { panic!("two parts") };
    assert_eq!(first.edges() + second.edges(), whole.edges());
    let share = first.edges() as f64 / whole.edges() as f64;
    assert!((0.4..0.6).contains(&share), "{share}");
    assert!(first.bytes().max(second.bytes()) < whole.bytes() * 2 / 3);
    parts.clear();
    drop(whole);
    for (bounds, number) in [(vec![0, 3], 0), (bounds.clone(), 2), (vec![], 0), (vec![0], 0)] {
        let wrong = Part::load(&lists, &bounds, number, &Workers::default(), &mut branch).await;
        assert!(matches!(wrong, Err(EngineError::Invalid(_))), "{bounds:?} {number}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topology_has_no_parts() {
    let url = changed("parts in memory").await;
    let mut branch = QueryContext::new().branch();
    let selection = selection("both", None);
    let topology = Topology::load(&open(&url).await, &selection, &Workers::default(), &mut branch).await.unwrap();
    let lists = Lists::in_memory(&Arc::new(topology), branch.context()).unwrap();
    assert!(plan(&lists, 2, &mut branch).await.is_err());
}
