//! Differences between two versions.

use hoplake_engine::diff::{self, Difference};
use hoplake_storage::Cost;

use crate::{Error, Graph};

/// The differences between two versions of a graph, page by page, so that memory holds a page of them.
///
/// Vertices are first, by label; then edges, by type. The order within is fixed, and mostly that of keys.
///
/// ```
/// # async fn example() -> Result<(), hoplake::Error> {
/// # use hoplake::{Difference, Graph, LoadOptions, VertexRef};
/// # let folder = tempfile::tempdir().unwrap();
/// # let file = folder.path().join("knows.csv");
/// # std::fs::write(&file, "1,2\n2,3\n").unwrap();
/// # hoplake::load("memory://diff", LoadOptions::from_paths([&file])).await?;
/// let old = Graph::open("memory://diff").await?;
/// let mut commit = old.begin();
/// commit.delete_edge("edge", ("vertex", 1), ("vertex", 2)).commit().await?;
/// let new = Graph::open("memory://diff").await?;
///
/// let mut diff = old.diff(&new, &[])?;
/// let mut differences = Vec::new();
/// while let Some(page) = diff.next_page().await? {
///     differences.extend(page);
/// }
/// let Difference::Edge { source, before, after, .. } = &differences[0] else { panic!() };
/// assert_eq!((source, before.is_some(), after.is_some()), (&VertexRef::new("vertex", 1), true, false));
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Debug)]
pub struct Diff(diff::Diff);

impl Graph {
    /// The differences in `other`, which is another version of the same graph, older or newer: of vertices and edges
    /// of these labels, or of all. After a few commits it reads what they wrote; after a load it reads both versions
    /// completely.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if neither version has a label of that name.
    pub fn diff(&self, other: &Self, labels: &[String]) -> Result<Diff, Error> {
        Ok(Diff(diff::Diff::new(self.snapshot().clone(), other.snapshot().clone(), labels)?))
    }
}

impl Diff {
    /// Some more differences; `None` at the end. A page may be empty.
    ///
    /// # Errors
    /// The store's; [`Corrupt`](crate::ErrorKind::Corrupt) if a block is damaged.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Difference>>, Error> {
        Ok(self.0.next_page().await?)
    }

    /// The cost so far.
    pub fn cost(&self) -> Cost {
        self.0.cost()
    }
}
