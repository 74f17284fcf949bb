//! Bodies of requests, and their conversion. Only this module validates them by themselves.

mod conversions;

use hoplake::compute::Placement;
use serde::Deserialize;
use utoipa::ToSchema;

pub(super) use self::conversions::vertices;

/// A key: a number or text, as its label has it.
#[derive(Debug, Clone, PartialEq, ToSchema)]
// For the schema alone, as with all types here that do not derive `Deserialize`: `shapes` reads them.
#[serde(untagged)]
pub(crate) enum KeyBody {
    Number(i64),
    Text(String),
}

/// A vertex, by id or by label and key.
#[derive(Debug, Clone, PartialEq, ToSchema)]
#[serde(untagged)]
pub(crate) enum VertexBody {
    /// As on the command line: `Person:933`. The key is read as its label's type.
    Text(String),
    Id(IdBody),
    Key(LabelKeyBody),
    Found(FoundBody),
}

/// A vertex by the id that another answer had; valid within one version.
#[derive(Debug, Clone, PartialEq, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct IdBody {
    pub(super) id: String,
}

/// A vertex by label and key apart.
#[derive(Debug, Clone, PartialEq, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LabelKeyBody {
    pub(super) label: String,
    pub(super) key: KeyBody,
}

/// All vertices of a label that match a condition, such as `code = AUS`; where one vertex is wanted, this is an error.
#[derive(Debug, Clone, PartialEq, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FoundBody {
    pub(super) label: String,
    pub(super) r#where: String,
}

/// Along edges, against them, or both ways; a self-loop counts twice then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DirectionBody {
    Out,
    In,
    Both,
}

/// One hop: text as on the command line, `out:knows,likes[since >= 2011-01-01]`, or its parts.
#[derive(Debug, Clone, PartialEq, ToSchema)]
#[serde(untagged)]
pub(crate) enum HopBody {
    Text(String),
    Parts(HopPartsBody),
}

/// The parts of a hop.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HopPartsBody {
    direction: DirectionBody,
    /// None means any.
    #[serde(default)]
    labels: Vec<String>,
    /// Which edges it follows, by properties of the edge and of the vertex that it reaches: `since >= 2011-01-01 and name = "Ann"`.
    condition: Option<String>,
}

/// Limits of a query. The server's own limits always apply; these can only be lower.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LimitsBody {
    /// Time, in milliseconds.
    time_ms: u64,
    /// Vertices over all depths, or that a scan finds.
    vertices_max: u64,
    /// Requests to the store.
    requests_max: u64,
    /// Bytes from the store.
    bytes_max: u64,
    /// US dollars for requests and bytes.
    usd_max: f64,
    /// Memory for what the query builds and its answer holds, in bytes.
    memory_bytes_max: u64,
}

/// Keys to look up.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LookUpBody {
    /// The version of the graph; without, the newest that is open.
    #[serde(default)]
    pub(crate) version: u64,
    pub(crate) vertices: Vec<VertexBody>,
}

/// A hop to follow.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NeighborsBody {
    /// The version of the graph; without, the newest that is open.
    #[serde(default)]
    pub(crate) version: u64,
    /// A set: one that is named twice is left once.
    vertices: Vec<VertexBody>,
    hop: HopBody,
    /// Whether the answer has the keys of the vertices reached.
    #[serde(default)]
    keys: bool,
    /// Which properties of the edges the answer has.
    #[serde(default)]
    select_edges: Vec<String>,
    #[serde(default)]
    output: EdgesOutputBody,
    #[serde(default)]
    limits: LimitsBody,
}

/// The output for each edge of a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum EdgesOutputBody {
    /// The edge.
    #[default]
    Edges,
    /// Nothing: only how many edges there are.
    Count,
}

/// The output for each walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WalksOutputBody {
    /// Its vertices.
    #[default]
    Paths,
    /// Nothing: only how many walks there are, whatever the limit.
    Count,
}

/// Vertices whose properties to read.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PropertiesBody {
    /// The version of the graph; without, the newest that is open.
    #[serde(default)]
    pub(crate) version: u64,
    vertices: Vec<VertexBody>,
    /// Which properties; none means only the keys.
    #[serde(default)]
    select: Vec<String>,
    #[serde(default)]
    limits: LimitsBody,
}

/// What a scan returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ScanOutputBody {
    /// Label, key and the selected properties of each vertex.
    #[default]
    Rows,
    /// How many vertices there are.
    Count,
}

/// Vertices to find.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScanBody {
    /// The version of the graph; without, the newest that is open.
    #[serde(default)]
    pub(crate) version: u64,
    /// Their labels; none means all.
    #[serde(default)]
    labels: Vec<String>,
    /// Which vertices, by their properties and keys: `country = US and runways >= 4`.
    condition: Option<String>,
    /// Which properties; none means only the keys.
    #[serde(default)]
    select: Vec<String>,
    /// Properties to sort by, such as `elev desc`; only of one label.
    #[serde(default)]
    order_by: Vec<String>,
    /// At most this many vertices; 0 is all that the server allows. A count stops there, too.
    #[serde(default)]
    limit: usize,
    #[serde(default)]
    output: ScanOutputBody,
    #[serde(default)]
    limits: LimitsBody,
}

/// In which order vertices are expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StrategyBody {
    /// Breadth-first, level by level.
    #[default]
    Bfs,
    /// Breadth-first, each block expanded when it arrives.
    BfsPipelined,
    /// Depth-first.
    Dfs,
}

/// How often a vertex may appear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum VisitBody {
    /// Once at each depth.
    #[default]
    PerDepth,
    /// Only at the first depth that reaches it. Not depth-first.
    Global,
}

/// The output for each vertex of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OutputBody {
    /// Its id, its key and the selected properties.
    #[default]
    Rows,
    /// Its id.
    Ids,
    /// Nothing: only the statistics.
    Nothing,
    /// Nothing: only how many vertices there are.
    Count,
}

/// A traversal to run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TraverseBody {
    /// The version of the graph; without, the newest that is open.
    #[serde(default)]
    pub(crate) version: u64,
    starts: Vec<VertexBody>,
    hops: Vec<HopBody>,
    #[serde(default)]
    strategy: StrategyBody,
    #[serde(default)]
    visit: VisitBody,
    /// Threads or, depth-first, vertices at a time; 0 is the server's choice.
    #[serde(default)]
    parallelism: usize,
    #[serde(default)]
    limits: LimitsBody,
    #[serde(default)]
    pub(super) output: OutputBody,
    /// Which properties; none means only the keys.
    #[serde(default)]
    select: Vec<String>,
    /// At most this many vertices; 0 is all that the server allows.
    #[serde(default)]
    limit: usize,
    /// Whether all depths are returned, from the starts on, or only the last.
    #[serde(default)]
    all_depths: bool,
}

/// A traversal whose walks to list.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PathsBody {
    /// The version of the graph; without, the newest that is open.
    #[serde(default)]
    pub(crate) version: u64,
    starts: Vec<VertexBody>,
    hops: Vec<HopBody>,
    #[serde(default)]
    visit: VisitBody,
    #[serde(default)]
    limits: LimitsBody,
    #[serde(default)]
    output: WalksOutputBody,
    /// At most this many walks, since their number can be huge; 1,000 by default.
    #[serde(default = "walks")]
    limit: usize,
    /// Whether vertices have label and key, or only their ids.
    #[serde(default)]
    keys: bool,
    /// Whether paths have their edges.
    #[serde(default)]
    edges: bool,
    /// Properties of the vertices and of the edges; with any, paths have keys and edges, too.
    #[serde(default)]
    select: Vec<String>,
}

fn walks() -> usize {
    1_000
}

/// Two vertices to connect.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShortestPathBody {
    /// The version of the graph; without, the newest that is open.
    #[serde(default)]
    pub(crate) version: u64,
    from: VertexBody,
    to: VertexBody,
    /// Which edges it may take.
    hop: HopBody,
    /// Maximum path length, in edges; 0 means 16. Not with `weight`.
    #[serde(default)]
    depth_max: usize,
    /// The edge property to use as weight, 0 or more; without it every edge counts 1.
    #[serde(default)]
    weight: Option<String>,
    /// Whether vertices have label and key, or only their ids.
    #[serde(default)]
    keys: bool,
    /// Whether the path has its edges.
    #[serde(default)]
    edges: bool,
    /// Properties of the vertices and of the edges; with any, the path has keys and edges, too.
    #[serde(default)]
    select: Vec<String>,
    #[serde(default)]
    limits: LimitsBody,
}

/// A traversal to steer.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenBody {
    /// The version of the graph; without, the newest that is open.
    #[serde(default)]
    pub(crate) version: u64,
    /// Over all its steps, except time, which is a step's.
    #[serde(default)]
    pub(crate) limits: LimitsBody,
}

/// A step of a traversal that was opened.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NextBody {
    vertices: Vec<VertexBody>,
    hop: HopBody,
    /// Whether the answer has the keys of the vertices reached.
    #[serde(default)]
    keys: bool,
}

/// Where lists of edges are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ListsBody {
    /// In memory if they fit.
    #[default]
    Automatic,
    /// In memory, decoded.
    Memory,
    /// As they are stored: less memory, more time.
    Packed,
    /// Read again in each superstep.
    Streamed,
}

impl From<ListsBody> for Placement {
    fn from(lists: ListsBody) -> Self {
        match lists {
            ListsBody::Automatic => Self::Automatic,
            ListsBody::Memory => Self::Memory,
            ListsBody::Packed => Self::Packed,
            ListsBody::Streamed => Self::Streamed,
        }
    }
}
