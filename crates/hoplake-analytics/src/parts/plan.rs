//! Cuts dense ids into parts whose lists are equally long.

use hoplake_engine::{EngineError, ListRange};
use hoplake_storage::Branch;

use crate::{Lists, selection::Selected};

/// Bytes of a vertex next to those of its list: a state and a signal cost about as much as a short list.
const VERTEX_BYTES: f64 = 4.0;

/// The dense ids at which parts begin, and the end of the last: one number more than there are parts, ascending. A part may be empty.
///
/// Lists are weighed by the bytes that they are stored in, which the index has for each block. So only index blocks are read, and within a block vertices
/// count as equal.
///
/// # Errors
/// [`EngineError::Limit`] if the memory of the query has no room for a number for each block; the store's.
pub async fn plan(lists: &Lists, parts: usize, branch: &mut Branch) -> Result<Vec<u32>, EngineError> {
    let (snapshot, Selected { ids, against, .. }) = lists.stored()?;
    let vertices = ids.len();
    let mut memory = branch.context().hold(0)?;
    // Where the density of bytes changes, and by how much: of each block, from its first source to that of the next.
    let mut changes: Vec<(u64, f64)> = Vec::new();
    for of in against {
        let Some((_, own)) = ids.by_label().find(|(label, _)| *label == of.near) else { continue };
        let range = ListRange { edge_type: of.edge_type, direction: of.direction, sources: 0..own.end - own.start };
        let sizes = snapshot.list_sizes(&range, branch).await?;
        let known = changes.len() + 2 * sizes.len();
        branch.context().resize(&mut memory, known as u64 * 2 * size_of::<(u64, f64)>() as u64)?;
        let nexts = sizes.iter().skip(1).map(|(first, _)| *first).chain([range.sources.end]);
        for ((first, bytes), next) in sizes.iter().zip(nexts) {
            // Of a list that is longer than a block, all blocks begin with its source.
            let next = next.clamp(first + 1, range.sources.end.max(first + 1));
            let density = *bytes as f64 / (next - first) as f64;
            changes.extend([(own.start + first, density), (own.start + next, -density)]);
        }
    }
    changes.sort_unstable_by_key(|(at, _)| *at);
    Ok(cut(&changes, vertices, parts))
}

/// Cuts ids where equal shares end.
fn cut(changes: &[(u64, f64)], vertices: u64, parts: usize) -> Vec<u32> {
    let pieces = || {
        let mut density = VERTEX_BYTES;
        let mut begin = 0;
        let ends = changes.iter().copied().chain([(vertices, 0.0)]);
        ends.filter_map(move |(end, change)| {
            let end = end.min(vertices);
            let piece = (begin..end, density);
            density = (density + change).max(VERTEX_BYTES);
            begin = end;
            (!piece.0.is_empty()).then_some(piece)
        })
    };
    let weight = |(range, density): &(std::ops::Range<u64>, f64)| (range.end - range.start) as f64 * density;
    let total: f64 = pieces().map(|piece| weight(&piece)).sum();
    let mut bounds = vec![0];
    let mut before = 0.0;
    for piece in pieces() {
        let own = weight(&piece);
        while bounds.len() < parts {
            let due = total * bounds.len() as f64 / parts as f64 - before;
            if due > own {
                break;
            }
            let at = piece.0.start + (due / piece.1).round().max(0.0) as u64;
            bounds.push(at.min(piece.0.end) as u32);
        }
        before += own;
    }
    bounds.resize(parts, vertices as u32);
    bounds.push(vertices as u32);
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_equal() {
        assert_eq!(cut(&[], 100, 4), [0, 25, 50, 75, 100]);
        // Half of the bytes are at the first ten.
        let bounds = cut(&[(0, 996.0), (10, -996.0), (10, 96.0), (110, -96.0)], 110, 4);
        assert_eq!(bounds, [0, 5, 10, 60, 110]);
        assert_eq!(cut(&[], 0, 3), [0, 0, 0, 0]);
        assert_eq!(cut(&[], 2, 4), [0, 1, 1, 2, 2]);
        // One vertex has nearly all: parts are empty rather than wrong.
        let hub = cut(&[(3, 1e9), (4, -1e9)], 8, 4);
        assert!(hub.is_sorted() && hub.len() == 5 && hub[4] == 8, "{hub:?}");
    }
}
