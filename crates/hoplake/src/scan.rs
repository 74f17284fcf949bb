//! Scans: vertices that match a condition, as a stream.

use std::{
    collections::{BTreeSet, VecDeque},
    ops::Range,
    str::FromStr,
};

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use hoplake_engine::{
    Condition, EdgeQuery, EngineError, FoundVertices, Frontier, Held, SortedBy, VertexQuery, VertexScan, first_rows,
};
use hoplake_format::{LabelId, constants::KEY_COLUMN};

use crate::{Error, ErrorKind, Query, Rows};

/// Which vertices to find, and what to return of them.
#[derive(Debug, Clone, Default)]
pub struct ScanRequest {
    /// The labels, as a set; none means all of the graph.
    pub labels: Vec<String>,
    /// Which of their vertices; without, all.
    pub condition: Option<Condition>,
    /// Properties to return, in addition to label and key. A label that does not have one leaves it out.
    pub select: Vec<String>,
    /// By what the result is sorted; without, by label and then in the order in which vertices are stored.
    pub order_by: Vec<SortBy>,
    /// The most vertices to return.
    pub limit: Option<usize>,
}

/// A property by which a result is sorted; absent values are last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortBy {
    /// The property; `~key` is the key.
    pub property: String,
    /// Whether the greatest value is first.
    pub descending: bool,
}

impl FromStr for SortBy {
    type Err = Error;

    /// Reads `age`, `age asc` or `age desc`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let (property, descending) = match text.rsplit_once(char::is_whitespace) {
            Some((property, order)) if order.eq_ignore_ascii_case("desc") => (property.trim_end(), true),
            Some((property, order)) if order.eq_ignore_ascii_case("asc") => (property.trim_end(), false),
            _ => (text, false),
        };
        match property.is_empty() {
            true => Err(Error::new(ErrorKind::Invalid, "write a property to sort by, as in age or \"age desc\"")),
            false => Ok(Self { property: property.to_owned(), descending }),
        }
    }
}

/// A scan under way, from [`Query::scan`].
pub struct Scan {
    request: ScanRequest,
    /// Labels that were not begun.
    labels: VecDeque<LabelId>,
    current: Option<(LabelId, VertexScan)>,
    /// How many more vertices may be returned.
    left: usize,
    /// Vertices that were found.
    found: u64,
    /// Which of how many pieces of each label are scanned.
    piece: (u64, u64),
}

impl Scan {
    /// Some of the vertices: one of `count` pieces of each label, from 0 on. All pieces have all of them.
    pub fn piece(self, number: u64, count: u64) -> Self {
        Self { piece: (number, count.max(1)), ..self }
    }
}

/// The ordinals of a piece, of those of a label.
fn ordinals((number, count): (u64, u64), ordinals: u64) -> Range<u64> {
    let bound = |number: u64| (u128::from(ordinals) * u128::from(number.min(count)) / u128::from(count)) as u64;
    bound(number)..bound(number + 1)
}

/// A scan of edges under way, from [`Query::scan_edges`].
pub struct EdgeScan {
    scan: hoplake_engine::EdgeScan,
    /// How many ordinals the label of sources has.
    sources: u64,
}

impl EdgeScan {
    /// Some of the edges: those of one of `count` pieces of their sources, from 0 on. All pieces have all of them.
    pub fn piece(self, number: u64, count: u64) -> Self {
        let Self { scan, sources } = self;
        Self { scan: scan.within(ordinals((number, count.max(1)), sources)), sources }
    }
}

impl Query {
    /// Begins a scan of all edges of a label between vertices of two labels; [`Self::next_edges`] returns them, with the properties of
    /// these names.
    ///
    /// ```
    /// # async fn example() -> Result<(), hoplake::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let file = folder.path().join("knows.csv");
    /// # std::fs::write(&file, "1,2\n2,3\n").unwrap();
    /// # hoplake::load("memory://edge-scan", hoplake::LoadOptions::from_paths([&file])).await?;
    /// let graph = hoplake::Graph::open("memory://edge-scan").await?;
    /// let mut query = graph.query();
    /// let mut scan = query.scan_edges("edge", ("vertex", "vertex"), &[]).await?;
    /// let mut edges = 0;
    /// while let Some(batch) = query.next_edges(&mut scan).await? {
    ///     assert_eq!(batch.schema().field(0).name(), "~source");
    ///     edges += batch.num_rows();
    /// }
    /// assert_eq!(edges, 2);
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if the graph has no such edges, or they lack a property; the store's.
    pub async fn scan_edges(
        &mut self,
        label: &str,
        (source, target): (&str, &str),
        columns: &[String],
    ) -> Result<EdgeScan, Error> {
        let ends = (self.label_id(source)?, self.label_id(target)?);
        let schema = self.snapshot.schema();
        let found = schema.edge_types().find(|(_, it)| it.label == label && ends == (it.source, it.target));
        let (edge_type, _) = found.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("the graph has no edges {source} -{label}-> {target}"))
        })?;
        let query = EdgeQuery { edge_type, columns: columns.to_vec() };
        let sources = self.snapshot.dense_ids([ends.0]).len();
        Ok(EdgeScan { scan: self.snapshot.scan_edges(query, &mut self.branch).await?, sources })
    }

    /// The next edges of a scan: the keys of their ends (columns `~source` and `~target`), then the properties asked for, ascending by
    /// source and target as they are stored; `None` behind the last.
    ///
    /// # Errors
    /// [`Limit`](ErrorKind::Limit) if the query reached one; the store's.
    pub async fn next_edges(&mut self, scan: &mut EdgeScan) -> Result<Option<Held<RecordBatch>>, Error> {
        Ok(scan.scan.next(&mut self.branch).await?)
    }

    /// Begins a scan; [`Self::next_rows`] returns its vertices. No request before the first are asked for.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if a label or property does not exist; [`Invalid`](ErrorKind::Invalid) if the condition
    /// cannot be, or a result of several labels is to be sorted.
    pub fn scan(&self, request: &ScanRequest) -> Result<Scan, Error> {
        let schema = self.snapshot.schema();
        let all = 0..schema.vertex_labels.len();
        let mut labels: Vec<LabelId> = match request.labels.is_empty() {
            true => all.filter_map(|label| u16::try_from(label).ok()).map(LabelId).collect(),
            false => request.labels.iter().map(|name| self.label_id(name)).collect::<Result<_, _>>()?,
        };
        let mut seen = BTreeSet::new();
        labels.retain(|label| seen.insert(*label));
        if let Some(condition) = &request.condition {
            self.snapshot.check_vertex_condition(&labels, condition)?;
        }
        for name in request.select.iter().chain(request.order_by.iter().map(|by| &by.property)) {
            if !labels.iter().any(|label| self.has_column(*label, name)) {
                let message = format!("no vertex label of the scan has a property {name:?}");
                return Err(Error::new(ErrorKind::NotFound, message));
            }
        }
        if !request.order_by.is_empty() && labels.len() > 1 {
            let message = "vertices of several labels cannot be sorted together; scan one label";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        for by in &request.order_by {
            let of_scan = labels.iter().filter_map(|label| schema.label(*label));
            let mut properties = of_scan.flat_map(|label| &label.properties);
            if properties.any(|it| it.name == by.property && matches!(it.kind.arrow(), DataType::List(_))) {
                let message = format!("{} is a list, and lists have no order", by.property);
                return Err(Error::new(ErrorKind::Invalid, message));
            }
        }
        let left = request.limit.unwrap_or(usize::MAX);
        Ok(Scan { request: request.clone(), labels: labels.into(), current: None, left, found: 0, piece: (0, 1) })
    }

    fn has_column(&self, label: LabelId, name: &str) -> bool {
        let properties = self.snapshot.schema().label(label).map(|label| &label.properties);
        name == KEY_COLUMN || properties.is_some_and(|all| all.iter().any(|property| property.name == name))
    }

    /// The next vertices of a scan, with their keys (column `~key`) and the selected properties that their label has; `None` behind
    /// the last. A sorted result comes at once.
    ///
    /// # Errors
    /// [`Limit`](ErrorKind::Limit) if the query reached one; the store's.
    pub async fn next_rows(&mut self, scan: &mut Scan) -> Result<Option<Held<Rows>>, Error> {
        if !scan.request.order_by.is_empty() {
            return self.sorted(scan).await;
        }
        let Some((label, found)) = self.next_found(scan, &[], true).await? else { return Ok(None) };
        let label = self.label_name(label);
        Ok(Some(found.map(|found| Rows { label, batch: found.batch })))
    }

    /// All vertices that a scan finds, without their keys or properties.
    ///
    /// # Errors
    /// As [`Self::next_rows`].
    pub async fn find(&mut self, request: &ScanRequest) -> Result<Held<Frontier>, Error> {
        let request = ScanRequest { select: Vec::new(), order_by: Vec::new(), ..request.clone() };
        let Scan { labels, .. } = self.scan(&request)?;
        let labels = Vec::from(labels);
        let condition = request.condition.as_ref();
        Ok(self.snapshot.find_vertices(&labels, condition, request.limit, &mut self.branch).await?)
    }

    /// How many vertices a scan finds, without their keys or properties. Without a condition nothing is read.
    ///
    /// # Errors
    /// As [`Self::next_rows`].
    pub async fn count_found(&mut self, request: &ScanRequest) -> Result<u64, Error> {
        let request = ScanRequest { select: Vec::new(), order_by: Vec::new(), ..request.clone() };
        let mut scan = self.scan(&request)?;
        let limit = scan.left as u64;
        if request.condition.is_none() {
            let counts = &self.snapshot.manifest().vertex_counts;
            let live = scan.labels.iter().filter_map(|label| Some(counts.get(usize::from(label.0))?.live()));
            return Ok(live.sum::<u64>().min(limit));
        }
        let mut count = 0;
        while let Some((_, found)) = self.next_found(&mut scan, &[], false).await? {
            count += found.len() as u64;
        }
        Ok(count)
    }

    /// The next vertices, with the keys if they are wanted, the selected properties and some more.
    async fn next_found(
        &mut self,
        scan: &mut Scan,
        more: &[String],
        keys: bool,
    ) -> Result<Option<(LabelId, Held<FoundVertices>)>, Error> {
        loop {
            if scan.left == 0 {
                scan.current = None;
                return Ok(None);
            }
            let Some((label, current)) = &mut scan.current else {
                let Some(label) = scan.labels.pop_front() else { return Ok(None) };
                let mut columns: Vec<String> = if keys { vec![KEY_COLUMN.to_owned()] } else { Vec::new() };
                for name in scan.request.select.iter().chain(more) {
                    if !columns.contains(name) && self.has_column(label, name) {
                        columns.push(name.clone());
                    }
                }
                let condition = scan.request.condition.clone();
                let wanted = (scan.left < usize::MAX).then_some(scan.left);
                let query = VertexQuery { label, condition, columns, wanted };
                let found = self.snapshot.scan_vertices(query, &mut self.branch).await?;
                let own = ordinals(scan.piece, self.snapshot.dense_ids([label]).len());
                scan.current = Some((label, found.within(&own)));
                continue;
            };
            let label = *label;
            let Some(mut found) = current.next(&mut self.branch).await? else {
                scan.current = None;
                continue;
            };
            if found.len() > scan.left {
                let left = scan.left;
                found = found.map(|found| found.first(left));
            }
            scan.left -= found.len();
            scan.found += found.len() as u64;
            if let Some(limit) = self.vertices_max.filter(|limit| scan.found > *limit) {
                let cost = Box::new(self.cost());
                return Err(EngineError::Limit { limit: format!("{limit} vertices"), is_shared: false, cost }.into());
            }
            return Ok(Some((label, found)));
        }
    }

    /// All vertices of a scan, sorted; of those that it returns the first so far are kept.
    async fn sorted(&mut self, scan: &mut Scan) -> Result<Option<Held<Rows>>, Error> {
        let limit = std::mem::replace(&mut scan.left, usize::MAX);
        if limit == 0 || scan.labels.is_empty() {
            scan.left = 0;
            return Ok(None);
        }
        let by: Vec<String> = scan.request.order_by.iter().map(|by| by.property.clone()).collect();
        let order = scan.request.order_by.clone();
        let order = order.iter().map(|by| SortedBy { column: &by.property, descending: by.descending });
        let order: Vec<_> = order.collect();
        let mut kept: Vec<Held<RecordBatch>> = Vec::new();
        let mut name = String::new();
        while let Some((label, found)) = self.next_found(scan, &by, true).await? {
            name = self.label_name(label);
            kept.push(found.map(|found| found.batch));
            // Sorted whenever what came is as much as what is kept: each row is moved a few times.
            let first = kept[0].num_rows();
            let rest = kept[1..].iter().map(|batch| batch.num_rows()).sum::<usize>();
            if limit < usize::MAX && rest >= first.max(limit) {
                kept = vec![first_rows(&kept, &order, limit, self.branch.context()).await?];
            }
        }
        scan.left = 0;
        if kept.is_empty() {
            return Ok(None);
        }
        let sorted = first_rows(&kept, &order, limit, self.branch.context()).await?;
        drop(kept);
        let selected = (0..sorted.num_columns()).filter(|column| {
            let schema = sorted.schema_ref();
            let name = schema.field(*column).name();
            name == KEY_COLUMN || scan.request.select.contains(name)
        });
        let batch = sorted.project(&selected.collect::<Vec<_>>()).map_err(EngineError::from)?;
        Ok(Some(sorted.map(|_| Rows { label: name, batch })))
    }
}
