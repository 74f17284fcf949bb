//! Walks and paths.

use hoplake::{
    DescribedWalks, Direction, Error, FoundPath, Held, Hop, PathQuery, Query, StartKey, Walk, WalkEdge, WalkVertex,
    WeightedPathQuery, changes::property_column,
};
use pyo3::{
    prelude::*,
    types::{PyDict, PyList},
};

use crate::{
    graph::{Graph, LABELS_FAR, object, parsed, starts},
    task::Task,
    values,
};

/// Walks that are described at a time.
const WALKS: usize = 1_000;
/// Walks, each with what was read of it. They count against the memory of the query until they are objects of Python.
type Walks = Vec<(Held<Vec<Walk>>, Held<DescribedWalks>)>;

fn properties<'py>(py: Python<'py>, row: &hoplake::PropertyRow<'_>) -> PyResult<Bound<'py, PyDict>> {
    let properties = PyDict::new(py);
    for (name, value) in row.values() {
        properties.set_item(property_column(name), values::property(py, &value)?)?;
    }
    Ok(properties)
}

/// A walk as `hoplake.Walk`.
fn walk<'py>(py: Python<'py>, walk: &Walk, described: &DescribedWalks) -> PyResult<Bound<'py, PyAny>> {
    let classes = py.import("hoplake._walks")?;
    let (vertex_class, edge_class) = (classes.getattr("Vertex")?, classes.getattr("Edge")?);
    let vertices = PyList::empty(py);
    for vertex in &walk.vertices {
        let Some(WalkVertex { label, key, properties: row }) = described.vertex(*vertex) else { continue };
        vertices.append(vertex_class.call1((label, values::key_object(py, &key)?, properties(py, &row)?))?)?;
    }
    let edges = PyList::empty(py);
    for (at, edge) in walk.edges.iter().enumerate() {
        let Some(WalkEdge { label, properties: row }) = described.edge(edge) else { continue };
        let is_out = walk.direction(at) == Some(Direction::Out);
        edges.append(edge_class.call1((label, if is_out { "out" } else { "in" }, properties(py, &row)?))?)?;
    }
    classes.getattr("Walk")?.call1((vertices.to_tuple(), edges.to_tuple()))
}

fn list<'py>(py: Python<'py>, walks: &Walks) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (part, described) in walks {
        for one in part.iter() {
            list.append(walk(py, one, described)?)?;
        }
    }
    Ok(list)
}

#[pymethods]
impl Graph {
    /// The first walks of a traversal, with their edges and properties of these names.
    fn walks(
        &self,
        py: Python<'_>,
        vertices: Vec<Bound<'_, PyAny>>,
        hops: Vec<String>,
        select: Vec<String>,
        most: usize,
        once: bool,
    ) -> PyResult<Task> {
        let keys = starts(&vertices)?;
        let mut traversal = self.traversal(py, &hops, once)?;
        let ask = move |_, mut query: Query| async move {
            query.check_select(&select)?;
            let labels = query.label_ids(keys.iter().map(StartKey::label));
            query.expect_walks(&labels, &traversal.hops, &select);
            traversal.starts = query.start_vertices(&keys).await?.to_vec();
            let mut paths = query.paths(traversal, Some(most)).await?.with_edges();
            let mut walks: Walks = Vec::new();
            let mut left = most;
            while left > 0 {
                let next = query.next_walks(&mut paths, left.min(WALKS)).await?;
                if next.is_empty() {
                    break;
                }
                left -= next.len();
                let described = query.describe_walks(&next, &select).await?;
                walks.push((next, described));
            }
            Ok((walks, query))
        };
        self.ask(ask, |py, walks: Walks, priced| object(py, (list(py, &walks)?, priced.object(py)?)))
    }

    /// How many walks a traversal has; None if more than 2^128.
    fn count_walks(
        &self,
        py: Python<'_>,
        vertices: Vec<Bound<'_, PyAny>>,
        hops: Vec<String>,
        once: bool,
    ) -> PyResult<Task> {
        let keys = starts(&vertices)?;
        let mut traversal = self.traversal(py, &hops, once)?;
        let ask = move |_, mut query: Query| async move {
            traversal.starts = query.start_vertices(&keys).await?.to_vec();
            Ok((query.count_walks(traversal).await?.walks, query))
        };
        self.ask(ask, |py, count, _| object(py, count))
    }

    /// A shortest path, by the number of its edges or by their weight: the walk or None, its length by weight, and whether there is none of any
    /// length.
    #[pyo3(signature = (from, to, hop, weight, depth_max, select))]
    fn path(
        &self,
        py: Python<'_>,
        from: &Bound<'_, PyAny>,
        to: &Bound<'_, PyAny>,
        hop: &str,
        weight: Option<String>,
        depth_max: usize,
        select: Vec<String>,
    ) -> PyResult<Task> {
        let ends = [values::start(from)?, values::start(to)?];
        let hop: Hop = parsed(py, hop)?;
        let limits = self.vertex_limit();
        let ask = move |_, mut query: Query| async move {
            query.check_select(&select)?;
            // The search follows edges from both ends.
            let far = vec![hop.clone(); depth_max.min(LABELS_FAR)];
            let back = vec![hop.reversed(); depth_max.min(LABELS_FAR)];
            let [first, last] = [0, 1].map(|end| query.label_ids([ends[end].label()]));
            query.expect_walks(&first, &far, &select);
            query.expect_walks(&last, &back, &select);
            let found = query.named(&ends).await?;
            let [from, to] = [found[0], found[1]];
            let (found, length) = match weight {
                None => {
                    let path = PathQuery { from, to, hop, depth_max, edges: true, limits };
                    (query.shortest_path(path).await?, None)
                }
                Some(weight) => {
                    let path = WeightedPathQuery { from, to, hop, weight, edges: true, length_max: None, limits };
                    let found = query.weighted_path(path).await?;
                    found.map_or((FoundPath::None, None), |path| (FoundPath::Path(path.walk), Some(path.length)))
                }
            };
            let is_exhausted = found == FoundPath::None;
            let mut walks: Walks = Vec::new();
            if let Some(path) = found.into_path() {
                let described = query.describe_walks(std::slice::from_ref(&path), &select).await?;
                let path = Held::counted(vec![path.clone()], path.bytes(), query.context())?;
                walks.push((path, described));
            }
            Ok::<_, Error>(((walks, length, is_exhausted), query))
        };
        self.ask(ask, |py, (walks, length, is_exhausted): (Walks, Option<f64>, bool), priced| {
            let list = list(py, &walks)?;
            let path = if list.is_empty() { py.None().into_bound(py) } else { list.get_item(0)? };
            object(py, (path, length, is_exhausted, priced.object(py)?))
        })
    }
}
