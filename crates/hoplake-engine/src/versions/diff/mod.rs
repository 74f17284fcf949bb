//! What is different between two versions: vertices and edges that one of them lacks, or that have other properties.
//!
//! An item (a key, a row, the edges between two vertices) can only differ if a run has an entry of it that one of the
//! versions has and the other has not: runs do not change, and an item is what its newest run says. So the sections of such
//! *own* runs are scanned, and what they have entries of is looked up in both versions and compared. After a few commits these
//! are small; after a compaction, the compacted runs; after a load, everything.
//!
//! ```text
//! own sections of both ── scanned, merged ──▶ a page of candidates ── looked up in both, by key ──▶ differences
//! ```
//! Vertices are compared by key and edges by the keys of their ends, since a key that went and came back has another
//! ordinal, and after a load all have. Where the two versions share runs they share ordinals, too: then candidates for
//! edges are pairs of ordinals, and vertices that came back are remembered, old ordinal and new, from the comparison of
//! vertices. Where they share none, the edges of all sources are compared in the order of keys.
//!
//! Memory: a page of candidates with their rows and lists, some blocks of each own section, and 16 bytes for each vertex
//! that went and came back.

mod edges;
mod entries;
mod vertices;

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use futures::future::BoxFuture;
use hoplake_format::{Manifest, Schema, segment::SectionKind};
use hoplake_storage::{Branch, Cost, QueryContext};

use crate::{
    EngineError, Snapshot, float,
    snapshot::sections::Run,
    value::Value,
    write::change::{Name, Properties, VertexRef},
};
use edges::EdgeWork;
use vertices::VertexWork;

/// Candidates that are compared at a time, about.
const PAGE: usize = 2048;

/// What is different, with its properties in both versions: `before` is `None` of what was added, `after` of what was
/// removed.
#[derive(Debug, Clone, PartialEq)]
pub enum Difference {
    /// A vertex.
    Vertex {
        /// Which.
        vertex: VertexRef,
        /// In the first version.
        before: Option<Properties>,
        /// In the second version.
        after: Option<Properties>,
    },
    /// An edge. Of several between the same two vertices those that are the same in both versions are left out.
    Edge {
        /// Its label.
        label: Name,
        /// The vertex that it leaves.
        source: VertexRef,
        /// The vertex that it reaches.
        target: VertexRef,
        /// In the first version.
        before: Option<Properties>,
        /// In the second version.
        after: Option<Properties>,
    },
}

/// The differences between two versions, page by page: first vertices, label by label, then edges, type by type.
#[derive(Debug)]
pub struct Diff {
    both: Both,
    work: VecDeque<Work>,
    replaced: Replaced,
}

#[derive(Debug)]
enum Work {
    /// Vertices of a label; whether it is shown, or only looked at for edges.
    Vertices(VertexWork, bool),
    Edges(EdgeWork),
}

/// By the name of a label, vertices that went and came back: their ordinals in both versions.
type Replaced = HashMap<String, Vec<[u64; 2]>>;

/// The two versions.
#[derive(Debug)]
struct Both {
    snapshots: [Arc<Snapshot>; 2],
    /// Sections by object and number.
    sections: [HashSet<(String, usize)>; 2],
    /// Whether ordinals mean the same in both.
    same_ids: bool,
    branch: Branch,
}

impl Diff {
    /// From one version to another of the same graph, in either order; of vertices and edges of these labels only, if there
    /// are any.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if neither version has a label of that name.
    pub fn new(before: Arc<Snapshot>, after: Arc<Snapshot>, labels: &[String]) -> Result<Self, EngineError> {
        let both = Both::new([before, after]);
        let schemas = both.schemas();
        let names = |schema: &Schema| schema.vertex_labels.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        let vertex_labels: BTreeSet<String> = schemas.into_iter().flat_map(names).collect();
        let edge_types: BTreeSet<[String; 3]> = schemas.into_iter().flat_map(triples).collect();
        let known = |label: &String| vertex_labels.contains(label) || edge_types.iter().any(|it| it[0] == *label);
        if let Some(missing) = labels.iter().find(|label| !known(label)) {
            return Err(EngineError::NotFound(format!("neither version has a label {missing:?}")));
        }
        let wanted = |label: &String| labels.is_empty() || labels.contains(label);
        let edge_types: Vec<_> = edge_types.into_iter().filter(|it| wanted(&it[0])).collect();
        let mut work = VecDeque::new();
        for label in vertex_labels {
            let shown = wanted(&label);
            // Edges need to know whose sources went and came back.
            if shown || both.same_ids && edge_types.iter().any(|it| it[1] == label) {
                work.push_back(Work::Vertices(VertexWork::new(label, &both), shown));
            }
        }
        work.extend(edge_types.into_iter().map(|edge_type| Work::Edges(EdgeWork::new(edge_type, &both))));
        Ok(Self { both, work, replaced: Replaced::new() })
    }

    /// Some more differences; `None` when there are no more. A page may be empty.
    ///
    /// # Errors
    /// The store's; [`EngineError::Format`] if a block is damaged.
    pub fn next_page<'a>(&'a mut self) -> BoxFuture<'a, Result<Option<Vec<Difference>>, EngineError>> {
        Box::pin(async move {
            let Some(work) = self.work.front_mut() else { return Ok(None) };
            let page = match work {
                Work::Vertices(work, shown) => {
                    let page = work.page(&mut self.both, &mut self.replaced).await?;
                    page.map(|page| if *shown { page } else { Vec::new() })
                }
                Work::Edges(work) => work.page(&mut self.both, &self.replaced).await?,
            };
            // An empty page instead of the end: the next work begins with the next call.
            if page.is_none() {
                self.work.pop_front();
            }
            Ok(Some(page.unwrap_or_default()))
        })
    }

    /// What it took so far.
    pub fn cost(&self) -> Cost {
        self.both.branch.context().cost()
    }
}

/// The names of edge types: the edge's label, and those of its ends.
fn triples(schema: &Schema) -> Vec<[String; 3]> {
    let name = |id| schema.label(id).map(|label| label.name.clone());
    let triple = |it: &hoplake_format::EdgeType| Some([it.label.clone(), name(it.source)?, name(it.target)?]);
    schema.edge_types.iter().filter_map(triple).collect()
}

impl Both {
    fn new(snapshots: [Arc<Snapshot>; 2]) -> Self {
        let sections = snapshots.each_ref().map(|snapshot| sections(snapshot.manifest()));
        let tables = snapshots.each_ref().map(|snapshot| {
            let tables = snapshot.manifest().tables.iter();
            tables.map(|table| (table.name.clone(), table.position)).collect::<HashSet<_>>()
        });
        // Ordinals stay between two loads, and a load shares nothing with what was before it.
        let same_ids = !sections[0].is_disjoint(&sections[1]) || !tables[0].is_disjoint(&tables[1]);
        Self { snapshots, sections, same_ids, branch: QueryContext::new().branch() }
    }

    fn schemas(&self) -> [&Schema; 2] {
        self.snapshots.each_ref().map(|snapshot| snapshot.schema())
    }

    /// The runs of a kind that one version has and the other has not.
    fn own(&self, side: usize, kind: SectionKind) -> Vec<&Run> {
        let snapshot = &self.snapshots[side];
        // A run that goes on over segments is shared only if all its pieces are.
        let is_own = |run: &&Run| {
            let mut locations = run.locations();
            locations.any(|it| {
                !self.sections[1 - side].contains(&(snapshot.sections().segment_of(it).name().to_owned(), it.section))
            })
        };
        snapshot.sections().runs(kind).iter().filter(is_own).collect()
    }
}

/// The sections that are runs of a version.
fn sections(manifest: &Manifest) -> HashSet<(String, usize)> {
    let of = |segment: &hoplake_format::SegmentRef| {
        let runs = segment.sections.iter().enumerate().filter(|(_, section)| section.versions.is_some());
        runs.map(|(number, _)| (segment.name.clone(), number)).collect::<Vec<_>>()
    };
    manifest.segments.iter().flat_map(of).collect()
}

/// Whether properties are the same, an integer being the same as the floating-point number that it became.
fn same(before: &Properties, after: &Properties) -> bool {
    before.len() == after.len()
        && before.iter().zip(after).all(|(before, after)| before.0 == after.0 && same_value(before.1, after.1))
}

/// Whether a property has the same value in both versions: bit for bit, an integer being the same as the floating-point number
/// that it became.
pub fn same_value(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Int64(a), Value::Float64(b)) | (Value::Float64(b), Value::Int64(a)) => {
            float::exactly(*a).is_some_and(|a| a.to_bits() == b.to_bits())
        }
        (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b)),
        _ => before.is_same(after),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_is_the_number_that_it_became() {
        let one = Value::Int64(1);
        let list = |values: &[Value]| Value::List(values.to_vec());
        assert!(same_value(&one, &Value::Float64(1.0)) && same_value(&Value::Float64(1.0), &one));
        assert!(!same_value(&one, &Value::Float64(1.5)));
        // Not exact: 2^53 + 1 is not a floating-point number.
        assert!(!same_value(&Value::Int64((1 << 53) + 1), &Value::Float64(9_007_199_254_740_992.0)));
        // Bit for bit: zeros differ, and a NaN is itself.
        assert!(!same_value(&Value::Int64(0), &Value::Float64(-0.0)));
        assert!(same_value(&Value::Float64(f64::NAN), &Value::Float64(f64::NAN)));
        let [one_item, two_items] = [1, 2].map(|length| list(&vec![one.clone(); length]));
        assert!(same_value(&one_item, &list(&[Value::Float64(1.0)])));
        assert!(!same_value(&one_item, &two_items));
    }

    #[test]
    fn properties_are_the_same_if_all_are() {
        let some = Properties::from([("age", 7), ("height", 2)]);
        assert!(same(&some, &some.clone()));
        assert!(!same(&some, &Properties::from([("age", 7)])));
        assert!(!same(&some, &Properties::from([("age", 7), ("weight", 2)])));
        assert!(!same(&some, &Properties::from([("age", 7), ("height", 3)])));
    }
}
