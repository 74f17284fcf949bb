//! A graph as files.

use hoplake_export::{ExportError, ExportOptions, Exported};
use hoplake_storage::Store;

use crate::{Error, ErrorKind, Query, Reason};

impl Query {
    /// Writes the query's version of the graph as files below `target`, which must be empty. All formats but GraphML come with a
    /// `mapping.toml`, which is written last: where it is, the export is complete, and `hoplake load --mapping` makes an equal graph
    /// of it. `progress` is called with the number of vertices and edges that were just written.
    ///
    /// Memory counts against the query's limit; 64 MiB usually suffice, whatever the size of the graph, and more make it faster.
    ///
    /// ```
    /// # async fn example() -> Result<(), hoplake::Error> {
    /// # use hoplake::{ExportFormat, ExportOptions, Graph, LoadOptions, Store};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let file = folder.path().join("knows.csv");
    /// # std::fs::write(&file, "1,2\n2,3\n").unwrap();
    /// # hoplake::load("memory://export", LoadOptions::from_paths([&file])).await?;
    /// # let to = folder.path().join("files");
    /// let graph = Graph::open("memory://export").await?;
    /// let target = Store::open(to.to_str().unwrap())?;
    /// let options = ExportOptions::new(ExportFormat::Csv);
    /// let exported = graph.query().export(&target, &options, &|_| ()).await?;
    /// assert_eq!((exported.vertices, exported.edges, exported.files), (3, 2, 2));
    ///
    /// let mapping = Some(to.join("mapping.toml"));
    /// let again = LoadOptions { mapping, ..LoadOptions::from_paths::<&str>([]) };
    /// assert_eq!(hoplake::load("memory://export/again", again).await?.edges, 2);
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) if the destination is not empty, or has a graph; [`NotFound`](ErrorKind::NotFound) for an unknown
    /// label; [`Limit`](ErrorKind::Limit) if the query reached one; the stores'. What was written stays, without a `mapping.toml`.
    pub async fn export(
        &mut self,
        target: &Store,
        options: &ExportOptions,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Exported, Error> {
        let target = target.metered_by(self.context());
        Ok(hoplake_export::export(&self.snapshot, &target, options, self.context(), progress).await?)
    }
}

impl From<ExportError> for Error {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Engine(error) => error.into(),
            ExportError::Storage(error) => error.into(),
            ExportError::Exists(message) => Self::new(ErrorKind::Conflict, message).with_reason(Reason::Exists),
            ExportError::NotFound(message) => Self::new(ErrorKind::NotFound, message),
            error @ ExportError::Encode { .. } => Self::new(ErrorKind::Internal, error.to_string()),
        }
    }
}
