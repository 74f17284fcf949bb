//! From bodies of requests to the requests of calls.

use hoplake::{Hop, HopDirection, Key, Strategy, VisitPolicy};

use super::{
    DirectionBody, EdgesOutputBody, FoundBody, HopBody, HopPartsBody, IdBody, KeyBody, LabelKeyBody, LimitsBody,
    NeighborsBody, NextBody, OutputBody, PathsBody, PropertiesBody, ScanBody, ScanOutputBody, ShortestPathBody,
    StrategyBody, TraverseBody, VertexBody, VisitBody, WalksOutputBody,
};
use crate::{
    calls::{
        NeighborsRequest, NextNeighborsRequest, Output, PathOutput, PathsRequest, PropertiesRequest, RequestedLimits,
        ScanRequest, ShortestPathRequest, TraversalSpec, TraverseRequest, VertexName, parse_id,
    },
    failure::Failure,
};

pub(crate) fn vertices(vertices: Vec<VertexBody>) -> Result<Vec<VertexName>, Failure> {
    vertices.into_iter().map(VertexName::try_from).collect()
}

impl TryFrom<VertexBody> for VertexName {
    type Error = Failure;

    fn try_from(vertex: VertexBody) -> Result<Self, Failure> {
        match vertex {
            VertexBody::Text(text) => Ok(Self::Text(text)),
            VertexBody::Key(LabelKeyBody { label, key: KeyBody::Number(key) }) => Ok(Self::Key(label, Key::Int64(key))),
            VertexBody::Key(LabelKeyBody { label, key: KeyBody::Text(key) }) => Ok(Self::Key(label, Key::String(key))),
            VertexBody::Found(FoundBody { label, r#where }) => {
                Ok(Self::Matching(label, r#where.parse().map_err(hoplake::Error::from)?))
            }
            VertexBody::Id(IdBody { id }) => {
                let wrong = || Failure::invalid(format!("{id:?} is not a vertex id; ids look like 3:17"));
                parse_id(&id).map(Self::Id).ok_or_else(wrong)
            }
        }
    }
}

impl TryFrom<HopBody> for Hop {
    type Error = Failure;

    fn try_from(hop: HopBody) -> Result<Self, Failure> {
        let (direction, labels, condition) = match hop {
            HopBody::Text(text) => return Ok(text.parse::<Self>().map_err(hoplake::Error::from)?),
            HopBody::Parts(HopPartsBody { direction, labels, condition }) => (direction, labels, condition),
        };
        let direction = match direction {
            DirectionBody::Out => HopDirection::Out,
            DirectionBody::In => HopDirection::In,
            DirectionBody::Both => HopDirection::Both,
        };
        let condition = condition.map(|text| text.parse()).transpose().map_err(hoplake::Error::from)?;
        Ok(Self { labels, direction, condition })
    }
}

impl From<LimitsBody> for RequestedLimits {
    fn from(
        LimitsBody { time_ms, vertices_max, requests_max, bytes_max, usd_max, memory_bytes_max }: LimitsBody,
    ) -> Self {
        Self { time_ms, vertices_max, requests_max, bytes_max, usd_max, memory_bytes_max }
    }
}

impl TryFrom<NeighborsBody> for NeighborsRequest {
    type Error = Failure;

    fn try_from(body: NeighborsBody) -> Result<Self, Failure> {
        let vertices = vertices(body.vertices)?;
        let hop = body.hop.try_into()?;
        let count = body.output == EdgesOutputBody::Count;
        let NeighborsBody { keys, select_edges, limits, .. } = body;
        Self { vertices, hop, keys, count, select_edges, limits: limits.into() }.checked()
    }
}

impl NextBody {
    /// A step of this traversal.
    pub(crate) fn step_of(self, id: String) -> Result<NextNeighborsRequest, Failure> {
        Ok(NextNeighborsRequest { id, vertices: vertices(self.vertices)?, hop: self.hop.try_into()?, keys: self.keys })
    }
}

impl TryFrom<PropertiesBody> for PropertiesRequest {
    type Error = Failure;

    fn try_from(body: PropertiesBody) -> Result<Self, Failure> {
        Self { vertices: vertices(body.vertices)?, select: body.select, limits: body.limits.into() }.checked()
    }
}

/// What a traversal and its walks have in common. Walks have no choice of strategy and parallelism.
fn spec(
    starts: Vec<VertexBody>,
    hops: Vec<HopBody>,
    visit: VisitBody,
    limits: LimitsBody,
) -> Result<TraversalSpec, Failure> {
    let visit = match visit {
        VisitBody::PerDepth => VisitPolicy::PerDepth,
        VisitBody::Global => VisitPolicy::Global,
    };
    Ok(TraversalSpec {
        starts: vertices(starts)?,
        hops: hops.into_iter().map(Hop::try_from).collect::<Result<_, _>>()?,
        strategy: Strategy::Bfs,
        visit,
        parallelism: 0,
        limits: limits.into(),
    })
}

impl TryFrom<TraverseBody> for TraverseRequest {
    type Error = Failure;

    fn try_from(body: TraverseBody) -> Result<Self, Failure> {
        let strategy = match body.strategy {
            StrategyBody::Bfs => Strategy::Bfs,
            StrategyBody::BfsPipelined => Strategy::BfsPipelined,
            StrategyBody::Dfs => Strategy::Dfs,
        };
        let output = match body.output {
            OutputBody::Rows => Output::rows(body.select)?,
            OutputBody::Ids => Output::Ids.without(&body.select, "rows")?,
            OutputBody::Nothing => Output::Nothing.without(&body.select, "rows")?,
            OutputBody::Count => Output::Count.without(&body.select, "rows")?,
        };
        let spec = spec(body.starts, body.hops, body.visit, body.limits)?;
        let spec = TraversalSpec { strategy, parallelism: body.parallelism, ..spec };
        Ok(Self { spec, output, limit: body.limit, all_depths: body.all_depths })
    }
}

impl TryFrom<ScanBody> for ScanRequest {
    type Error = Failure;

    fn try_from(body: ScanBody) -> Result<Self, Failure> {
        let count = body.output == ScanOutputBody::Count;
        let scan = hoplake::ScanRequest {
            labels: body.labels,
            condition: body.condition.map(|text| text.parse()).transpose().map_err(hoplake::Error::from)?,
            select: body.select,
            order_by: body.order_by.iter().map(|text| text.parse()).collect::<Result<_, _>>()?,
            limit: (body.limit > 0).then_some(body.limit),
        };
        Self { scan, count, limits: body.limits.into() }.checked()
    }
}

impl TryFrom<PathsBody> for PathsRequest {
    type Error = Failure;

    fn try_from(body: PathsBody) -> Result<Self, Failure> {
        let spec = spec(body.starts, body.hops, body.visit, body.limits)?;
        let output = PathOutput::new(body.keys, body.edges, body.select)?;
        Self { spec, limit: body.limit, count: body.output == WalksOutputBody::Count, output }.checked()
    }
}

impl TryFrom<ShortestPathBody> for ShortestPathRequest {
    type Error = Failure;

    fn try_from(body: ShortestPathBody) -> Result<Self, Failure> {
        Ok(Self {
            from: body.from.try_into()?,
            to: body.to.try_into()?,
            hop: body.hop.try_into()?,
            depth_max: body.depth_max,
            weight: body.weight,
            output: PathOutput::new(body.keys, body.edges, body.select)?,
            limits: body.limits.into(),
        })
    }
}
