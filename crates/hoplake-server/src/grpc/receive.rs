//! Converts messages to requests. Only this module validates them by themselves.

use hoplake::{Hop, HopDirection, Key, Strategy, VisitPolicy};

use crate::{
    calls::{
        ChangesFormat, ChangesOptions, ChangesRequest, GraphRef, NeighborsRequest, NextNeighborsRequest, Output,
        PathOutput, PathsRequest, PropertiesRequest, RequestedLimits, ScanRequest, ShortestPathRequest, TraversalSpec,
        TraverseRequest, VertexName,
    },
    failure::Failure,
    v1,
};

/// The graph, which must be named.
pub(super) fn graph(graph: Option<v1::GraphRef>) -> Result<GraphRef, Failure> {
    let v1::GraphRef { name, version } = graph.ok_or_else(|| Failure::invalid("field graph is missing"))?;
    Ok(GraphRef { name, version })
}

pub(super) fn vertices(vertices: Vec<v1::VertexRef>) -> Result<Vec<VertexName>, Failure> {
    vertices.into_iter().map(VertexName::try_from).collect()
}

/// A hop that must be there.
pub(super) fn hop(hop: Option<v1::Hop>) -> Result<Hop, Failure> {
    hop.ok_or_else(|| Failure::invalid("field hop is missing; write for instance {text: \"out:knows\"}"))?.try_into()
}

/// How rows are to be written.
pub(super) fn format(format: i32) -> Result<v1::RowFormat, Failure> {
    v1::RowFormat::try_from(format).map_err(|_| Failure::invalid(format!("{format} is not a format of rows")))
}

impl TryFrom<v1::VertexRef> for VertexName {
    type Error = Failure;

    fn try_from(vertex: v1::VertexRef) -> Result<Self, Failure> {
        use v1::{key::Kind as KeyKind, vertex_ref::Kind};
        match vertex.kind {
            Some(Kind::Id(id)) => Ok(Self::Id(id)),
            Some(Kind::Text(text)) => Ok(Self::Text(text)),
            Some(Kind::Key(v1::vertex_ref::LabelledKey { label, key })) => match key.and_then(|key| key.kind) {
                Some(KeyKind::Int64(key)) => Ok(Self::Key(label, Key::Int64(key))),
                Some(KeyKind::String(key)) => Ok(Self::Key(label, Key::String(key))),
                None => Err(Failure::invalid(format!("a vertex of label {label:?} has no key"))),
            },
            Some(Kind::Found(v1::vertex_ref::LabelledCondition { label, condition })) => {
                Ok(Self::Matching(label, condition.parse().map_err(hoplake::Error::from)?))
            }
            // A `oneof` may be unset, or set to a kind that only newer clients know.
            None => Err(Failure::invalid("a vertex has neither id nor key nor text")),
        }
    }
}

impl TryFrom<v1::Hop> for Hop {
    type Error = Failure;

    fn try_from(hop: v1::Hop) -> Result<Self, Failure> {
        if !hop.text.is_empty() {
            let parts = !hop.labels.is_empty() || !hop.condition.is_empty() || hop.direction != 0;
            // Which of the two was meant cannot be known.
            if parts {
                return Err(Failure::invalid(format!(
                    "hop {:?} has both parts and text; give one of the two",
                    hop.text
                )));
            }
            return Ok(hop.text.parse::<Self>().map_err(hoplake::Error::from)?);
        }
        // Enums of proto3 are open: any number can arrive, and 0 if the field is absent.
        let direction = match v1::Direction::try_from(hop.direction) {
            Ok(v1::Direction::Out) => HopDirection::Out,
            Ok(v1::Direction::In) => HopDirection::In,
            Ok(v1::Direction::Both) => HopDirection::Both,
            _ => return Err(Failure::invalid("a hop has neither text nor direction")),
        };
        let condition = match hop.condition.is_empty() {
            true => None,
            false => Some(hop.condition.parse().map_err(hoplake::Error::from)?),
        };
        Ok(Self { labels: hop.labels, direction, condition })
    }
}

impl From<Option<v1::Limits>> for RequestedLimits {
    fn from(limits: Option<v1::Limits>) -> Self {
        let v1::Limits { time_ms, vertices_max, requests_max, bytes_max, usd_max, memory_bytes_max } =
            // 0 in a field means the limit of the server, so an absent message does too.
            limits.unwrap_or_default();
        Self { time_ms, vertices_max, requests_max, bytes_max, usd_max, memory_bytes_max }
    }
}

impl TryFrom<v1::NeighborsRequest> for NeighborsRequest {
    type Error = Failure;

    fn try_from(request: v1::NeighborsRequest) -> Result<Self, Failure> {
        let limits = request.limits.into();
        let query = Self {
            vertices: vertices(request.vertices)?,
            hop: hop(request.hop)?,
            keys: request.keys,
            count: request.count,
            select_edges: request.select_edges,
            limits,
        };
        query.checked()
    }
}

impl TryFrom<v1::NextNeighborsRequest> for NextNeighborsRequest {
    type Error = Failure;

    fn try_from(request: v1::NextNeighborsRequest) -> Result<Self, Failure> {
        let v1::NextNeighborsRequest { traversal: id, vertices: names, hop: along, keys } = request;
        Ok(Self { id, vertices: vertices(names)?, hop: hop(along)?, keys })
    }
}

impl TryFrom<v1::PropertiesRequest> for PropertiesRequest {
    type Error = Failure;

    fn try_from(request: v1::PropertiesRequest) -> Result<Self, Failure> {
        let limits = request.limits.into();
        Self { vertices: vertices(request.vertices)?, select: request.select, limits }.checked()
    }
}

impl TryFrom<v1::ScanRequest> for ScanRequest {
    type Error = Failure;

    fn try_from(request: v1::ScanRequest) -> Result<Self, Failure> {
        let condition = match request.condition.is_empty() {
            true => None,
            false => Some(request.condition.parse().map_err(hoplake::Error::from)?),
        };
        let scan = hoplake::ScanRequest {
            labels: request.labels,
            condition,
            select: request.select,
            order_by: request.order_by.iter().map(|text| text.parse()).collect::<Result<_, _>>()?,
            limit: (request.limit > 0).then(|| limit(request.limit)),
        };
        Self { scan, count: request.count, limits: request.limits.into() }.checked()
    }
}

impl TryFrom<Option<v1::Traversal>> for TraversalSpec {
    type Error = Failure;

    fn try_from(traversal: Option<v1::Traversal>) -> Result<Self, Failure> {
        let traversal = traversal.ok_or_else(|| Failure::invalid("field traversal is missing"))?;
        let strategy = match v1::Strategy::try_from(traversal.strategy) {
            Ok(v1::Strategy::Bfs) => Strategy::Bfs,
            Ok(v1::Strategy::BfsPipelined) => Strategy::BfsPipelined,
            Ok(v1::Strategy::Dfs) => Strategy::Dfs,
            Err(_) => return Err(Failure::invalid(format!("{} is not a strategy", traversal.strategy))),
        };
        let visit = match v1::VisitPolicy::try_from(traversal.visit) {
            Ok(v1::VisitPolicy::PerDepth) => VisitPolicy::PerDepth,
            Ok(v1::VisitPolicy::Global) => VisitPolicy::Global,
            Err(_) => return Err(Failure::invalid(format!("{} is not a visit policy", traversal.visit))),
        };
        Ok(Self {
            starts: vertices(traversal.starts)?,
            hops: traversal.hops.into_iter().map(Hop::try_from).collect::<Result<_, _>>()?,
            strategy,
            visit,
            parallelism: traversal.parallelism as usize,
            limits: traversal.limits.into(),
        })
    }
}

/// What does not fit is as good as no limit: the limits of the server are lower.
fn limit(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

impl TryFrom<v1::TraverseRequest> for TraverseRequest {
    type Error = Failure;

    fn try_from(request: v1::TraverseRequest) -> Result<Self, Failure> {
        use v1::traverse_request::Output as Wire;
        let output = match Wire::try_from(request.output) {
            Ok(Wire::Rows) => Output::rows(request.select)?,
            Ok(Wire::Ids) => Output::Ids.without(&request.select, "ROWS")?,
            Ok(Wire::Nothing) => Output::Nothing.without(&request.select, "ROWS")?,
            Ok(Wire::Count) => Output::Count.without(&request.select, "ROWS")?,
            Err(_) => return Err(Failure::invalid(format!("{} is not an output", request.output))),
        };
        let spec = request.traversal.try_into()?;
        Ok(Self { spec, output, limit: limit(request.limit), all_depths: request.all_depths })
    }
}

impl TryFrom<v1::PathsRequest> for PathsRequest {
    type Error = Failure;

    fn try_from(request: v1::PathsRequest) -> Result<Self, Failure> {
        let output = PathOutput::new(request.keys, request.edges, request.select)?;
        let limit = limit(request.limit);
        let count = request.count;
        Self { spec: request.traversal.try_into()?, limit, count, output }.checked()
    }
}

impl TryFrom<v1::ApplyRequest> for ChangesRequest {
    type Error = Failure;

    fn try_from(request: v1::ApplyRequest) -> Result<Self, Failure> {
        let format = match v1::ChangesFormat::try_from(request.format) {
            Ok(v1::ChangesFormat::JsonLines) => ChangesFormat::Lines,
            Ok(v1::ChangesFormat::Csv) => ChangesFormat::Csv,
            Ok(v1::ChangesFormat::ArrowStream) => ChangesFormat::Arrow,
            _ => return Err(Failure::invalid("field format is missing; changes are JSON_LINES, CSV or ARROW_STREAM")),
        };
        // Absent text and numbers of proto3 are empty and 0, which no position, key or version is.
        let some = |text: String| (!text.is_empty()).then_some(text);
        let options = ChangesOptions {
            base: (request.base > 0).then_some(request.base),
            message: request.message,
            source_positions: request.source_positions.into_iter().collect(),
            if_positions: request.if_positions.into_iter().map(|(name, position)| (name, some(position))).collect(),
            create_missing: request.create_missing,
            strict: request.strict,
            idempotency_key: some(request.idempotency_key),
        };
        Ok(Self { graph: request.graph, format, changes: request.changes, options, time_ms: request.time_ms })
    }
}

impl TryFrom<v1::ShortestPathRequest> for ShortestPathRequest {
    type Error = Failure;

    fn try_from(request: v1::ShortestPathRequest) -> Result<Self, Failure> {
        let end = |end: Option<v1::VertexRef>, name: &str| {
            end.ok_or_else(|| Failure::invalid(format!("field {name} is missing")))?.try_into()
        };
        Ok(Self {
            from: end(request.from, "from")?,
            to: end(request.to, "to")?,
            hop: hop(request.hop)?,
            depth_max: request.depth_max as usize,
            weight: request.weight,
            output: PathOutput::new(request.keys, request.edges, request.select)?,
            limits: request.limits.into(),
        })
    }
}
