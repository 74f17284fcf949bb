//! Columns of edges against vectors of them.

use std::collections::BTreeMap;

use futures::executor::block_on;
use hoplake_format::LabelId;
use hoplake_storage::QueryContext;
use proptest::prelude::*;

use super::*;

fn vertex(ordinal: u64) -> VertexId {
    VertexId::new(LabelId(0), ordinal).unwrap()
}

/// Edges as two runs of a type have them: in the order of edges, with their numbers. Pairs lie in one run each.
fn ordered(pairs: &[(u64, bool, u64)]) -> Vec<Neighbour> {
    let mut pairs = pairs.to_vec();
    pairs.sort_unstable();
    let mut positions: BTreeMap<(bool, u64), u64> = BTreeMap::new();
    let mut edges: Vec<Neighbour> = Vec::new();
    for (from, against, to) in pairs {
        let run = (from + to) % 2;
        // Positions of a run have gaps where edges were left out.
        let next = positions.entry((against, run)).or_default();
        let position = *next + u64::from(to == 3);
        *next = position + 1;
        let direction = if against { Direction::In } else { Direction::Out };
        let from = vertex(from);
        let to = vertex(to);
        let edge_type = EdgeTypeId(0);
        let mut edge = Neighbour { from, to, edge_type, direction, run, position, parallel: 0 };
        let same = |last: &&Neighbour| (last.from, last.direction, last.to) == (from, direction, to);
        edge.parallel = edges.last().filter(same).map_or(0, |last| last.parallel + 1);
        edges.push(edge);
    }
    edges
}

fn pairs() -> impl Strategy<Value = Vec<(u64, bool, u64)>> {
    prop::collection::vec((0u64..4, any::<bool>(), 0u64..6), 0..60)
}

proptest! {
    #[test]
    fn lists_in_any_order_become_the_edges_in_theirs(pairs in pairs(), seed in any::<u64>()) {
        let expected = ordered(&pairs);
        let columns: Edges = expected.iter().copied().collect();
        let mut pieces: Vec<EdgeStretch<'_>> = columns.pieces().collect();
        pieces.sort_by_key(|piece| (piece.range.start as u64 + 1).wrapping_mul(seed | 1).rotate_left(17));
        let context = QueryContext::new();
        let mut builder = EdgesBuilder::new(&context).unwrap();
        builder.reserve(expected.len()).unwrap();
        for EdgeStretch { from, stored, position, targets, .. } in pieces {
            let stored = builder.number(stored);
            builder.push(from, stored, position, targets.iter().copied(), false).unwrap();
        }
        block_on(async {
            builder.sort().await.unwrap();
            builder.number_parallel(&mut None, &mut context.pace()).await.unwrap();
        });
        let built = builder.finish();
        prop_assert_eq!(built.iter().collect::<Vec<_>>(), expected);
        drop(built);
        prop_assert_eq!(context.memory().used(), 0);
    }

    #[test]
    fn slices_are_those_of_a_vector(pairs in pairs(), start in 0usize..60, length in 0usize..60, most in 1usize..9) {
        let rows = ordered(&pairs);
        let edges: Edges = rows.iter().copied().collect();
        let start = start.min(rows.len());
        let end = (start + length).min(rows.len());
        let slice = edges.slice(start..end);
        prop_assert_eq!(slice.into_iter().collect::<Vec<_>>(), &rows[start..end]);
        prop_assert_eq!(edges.get(start), rows.get(start).copied());
        let chunks: Vec<Vec<_>> = slice.chunks(most).map(|chunk| chunk.into_iter().collect()).collect();
        prop_assert_eq!(chunks, rows[start..end].chunks(most).map(<[_]>::to_vec).collect::<Vec<_>>());
        let of = |edge: &Neighbour| (edge.from, edge.edge_type, edge.direction);
        let lists: Vec<_> = rows[start..end].chunk_by(|a, b| of(a) == of(b)).collect();
        prop_assert_eq!(slice.into_lists().count(), lists.len());
        for (list, rows) in slice.into_lists().zip(lists) {
            prop_assert_eq!((list.from, list.edge_type, list.direction), of(&rows[0]));
            prop_assert_eq!(list.targets, rows.iter().map(|edge| edge.to).collect::<Vec<_>>());
            let numbers: Vec<_> = rows.iter().map(|edge| edge.parallel).collect();
            let expected = if numbers.iter().all(|number| *number == 0) { &[] } else { &numbers[..] };
            prop_assert_eq!(list.parallel, expected);
        }
        let mut first = edges.clone();
        first.truncate(start);
        prop_assert_eq!(first.iter().collect::<Vec<_>>(), &rows[..start]);
    }

    #[test]
    fn parts_that_are_appended_are_the_edges(pairs in pairs(), cuts in prop::collection::vec(0usize..60, 0..4)) {
        let rows = ordered(&pairs);
        let edges: Edges = rows.iter().copied().collect();
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(rows.len())).chain([0, rows.len()]).collect();
        cuts.sort_unstable();
        let context = QueryContext::new();
        let mut numbered = EdgesBuilder::new(&context).unwrap();
        let mut kept = EdgesBuilder::new(&context).unwrap();
        let mut last = None;
        for cut in cuts.windows(2) {
            let part = edges.slice(cut[0]..cut[1]);
            let mut again = EdgesBuilder::new(&context).unwrap();
            again.reserve(part.len()).unwrap();
            for EdgeStretch { from, stored, position, targets, .. } in part.into_pieces() {
                let stored = again.number(stored);
                again.push(from, stored, position, targets.iter().copied(), false).unwrap();
            }
            block_on(async {
                // Numbers go on from part to part.
                again.number_parallel(&mut last, &mut context.pace()).await.unwrap();
                numbered.append(again.finish().all(), &mut context.pace()).await.unwrap();
                kept.append(part, &mut context.pace()).await.unwrap();
            });
        }
        for built in [numbered.finish(), kept.finish()] {
            prop_assert_eq!(&*built, &edges);
        }
    }
}

#[test]
fn edges_of_a_hub_take_the_vertex_reached() {
    let stored = Stored { edge_type: EdgeTypeId(0), direction: Direction::Out, run: 1 };
    let context = QueryContext::new();
    let mut builder = EdgesBuilder::new(&context).unwrap();
    builder.reserve(1 << 16).unwrap();
    // As it comes from many blocks.
    for block in 0..64 {
        let targets = block * 1024..(block + 1) * 1024;
        let stored = builder.number(stored);
        builder.push(vertex(7), stored, targets.start, targets.map(vertex), false).unwrap();
    }
    block_on(builder.sort()).unwrap();
    assert_eq!((builder.len(), builder.finish().lists().count()), (1 << 16, 1));
    assert!(context.memory().peak() <= (8 << 16) + 8192, "{}", context.memory().peak());
}
