//! A graph whose objects are read through access nodes.

use std::sync::Arc;

use futures::future::{BoxFuture, try_join_all};
use hoplake::{
    Profiles, StoreProfile,
    access::{Fetched, FetchedObject, NodeFault, ObjectInfo, ObjectSource, StorageError, Wanted},
};
use tonic::{Response, Status, transport::Channel};
use tonic_types::StatusExt;

use super::{
    nodes::{AccessNodes, Members, Node},
    routing::{RoutingKey, stretch},
    wire::Assembly,
};
use crate::{
    failure::{Failure, Reason},
    v1::{self, blocks_client::BlocksClient},
};

type Client = BlocksClient<Channel>;

/// Asks access nodes for the objects of one graph.
#[derive(Debug)]
pub(crate) struct NodesSource {
    nodes: Arc<AccessNodes>,
    graph: String,
}

/// The blocks of a fetch that are requested from one node.
struct NodeRequest<'a> {
    node: Arc<Node>,
    stretch: u64,
    blocks: Vec<&'a Wanted>,
}

impl NodesSource {
    pub(crate) fn new(nodes: Arc<AccessNodes>, graph: &str) -> Self {
        Self { nodes, graph: graph.to_owned() }
    }

    /// The URL that stands for the graph in messages.
    pub(crate) fn url(&self) -> String {
        format!("access://{}", self.graph)
    }

    /// The profile of the store behind the nodes.
    ///
    /// # Errors
    /// [`Reason::NotFound`] if they know no such graph, [`Reason::Unavailable`] if none answers.
    pub(crate) async fn profile(&self) -> Result<Arc<StoreProfile>, Failure> {
        let describe = |mut client: Client| {
            let request = self.nodes.request(v1::DescribeRequest { graph: self.graph.clone() });
            async move { client.describe(request).await.map(Response::into_inner) }
        };
        let name = match self.ask_all("", describe).await? {
            Ok(described) => described.profile,
            Err(status) => {
                let message = format!("there is no graph {:?}", self.graph);
                tracing::debug!(graph = self.graph, %status, "access nodes know no such graph");
                return Err(Failure::new(Reason::NotFound, message));
            }
        };
        let unknown = || Failure::new(Reason::Internal, format!("access nodes report an unknown profile {name:?}"));
        Profiles::shipped().get(&name).ok_or_else(unknown)
    }

    /// Asks one node after the other until one answers; `Ok(Err(…))` is the answer "not found".
    async fn ask_all<T, Asking: Future<Output = Result<T, Status>>>(
        &self,
        object: &str,
        ask: impl Fn(Client) -> Asking,
    ) -> Result<Result<T, Status>, Failure> {
        let members = self.nodes.members().await?;
        // Without pauses: while a node is left that was not asked, waiting gains nothing.
        for attempt in 0.. {
            let node = AccessNodes::choose(&members, RoutingKey::of(&self.graph, object, 0), attempt);
            let status = match ask(node.client()).await {
                Ok(answer) => {
                    node.answered();
                    return Ok(Ok(answer));
                }
                Err(status) => status,
            };
            let (reason, message) = match self.judge(&node, &members, &status, object, attempt) {
                StorageError::Node { may_pass: true, .. } if (attempt as usize) + 1 < members.len() => continue,
                // Nodes have the same graphs, so one NOT_FOUND is the answer of all; `judge` lets no other node be asked.
                _ if reason_of(&status).as_deref() == Some(Reason::NotFound.name()) => return Ok(Err(status)),
                StorageError::Node { fault: NodeFault::Unavailable, message, .. } => (Reason::Unavailable, message),
                error => (Reason::Internal, error.to_string()),
            };
            return Err(Failure::new(reason, message));
        }
        unreachable!("attempts end when all nodes were asked")
    }

    /// Classifies a failed request. A node's error of its store may hold for that node alone, so the others are asked,
    /// each once: every node has retried already. A node that does not answer is not such an error.
    fn judge(&self, node: &Node, members: &Members, status: &Status, object: &str, attempt: u32) -> StorageError {
        let object = format!("{}/{object}", self.url());
        let another = (attempt as usize) + 1 < members.len();
        let reason = reason_of(status);
        // An answer without a reason of ours comes from the connection or a proxy. A node that shuts down asks for what a
        // dead one gets.
        let silent = reason.is_none() || reason.as_deref() == Some(Reason::ShuttingDown.name());
        if silent {
            let message = format!("could not read {object}: {}", self.nodes.failed(node, members, status));
            return StorageError::Node { fault: NodeFault::Unavailable, message, may_pass: true };
        }
        node.answered();
        let (fault, may_pass) = match reason.as_deref().unwrap_or_default() {
            // The node has not tried yet, so a later attempt may succeed even at the same node.
            "BUSY" => (NodeFault::Unavailable, true),
            "UNAVAILABLE" | "TIME" => (NodeFault::Unavailable, another),
            // All nodes require the same token: the next one rejects it, too.
            "UNAUTHENTICATED" => (NodeFault::Unavailable, false),
            "CORRUPT" => (NodeFault::Corrupt, another),
            // The manifest names the object, so that it is not there is damage, at whichever node.
            "NOT_FOUND" => (NodeFault::Corrupt, false),
            "INVALID" | "TOO_LARGE" => (NodeFault::Invalid, false),
            _ => (NodeFault::Internal, another),
        };
        let message = format!("could not read {object}: access node {} says: {}", node.name(), status.message());
        StorageError::Node { fault, message, may_pass }
    }

    /// Assigns blocks to nodes. Those of one request may begin in two stretches.
    fn parts<'a>(&self, members: &Members, name: &str, blocks: &'a [Wanted], attempt: u32) -> Vec<NodeRequest<'a>> {
        let mut parts: Vec<NodeRequest<'a>> = Vec::new();
        for block in blocks {
            let start = block.range.start;
            match parts.last_mut() {
                // Blocks ascend, so those of one stretch follow each other.
                Some(last) if last.stretch == stretch(start) => last.blocks.push(block),
                _ => {
                    // By the stretch of the block and not of the request: a block at a border must be at the same node whatever
                    // blocks it was coalesced with, or two nodes would cache it.
                    let node = AccessNodes::choose(members, RoutingKey::of(&self.graph, name, start), attempt);
                    parts.push(NodeRequest { node, stretch: stretch(start), blocks: vec![block] });
                }
            }
        }
        parts
    }

    /// Asks one node; its blocks are not checked yet, but have their lengths.
    async fn fetch_part(&self, name: &str, part: &NodeRequest<'_>) -> Result<Fetched, Status> {
        let blocks = part.blocks.iter().map(|block| (*block).into()).collect();
        let request = v1::FetchRequest { graph: self.graph.clone(), object: name.to_owned(), blocks };
        // Without `grpc-timeout`: queries with different deadlines may share this fetch, and the first deadline must not
        // end it. Dropping the future resets the stream, which ends the read at the node.
        let mut messages = part.node.client().fetch(self.nodes.request(request)).await?.into_inner();
        // A node may be of another version, or no node at all: lengths are checked here, checksums by the reader.
        // This status has no reason of ours, so `judge` treats the node as one that does not answer and skips it.
        let wrong = || Status::unknown("it sent other blocks than requested");
        let mut assembly = Assembly::of(&part.blocks);
        let mut cost = None;
        while let Some(message) = messages.message().await? {
            message.parts.iter().try_for_each(|part| assembly.take(part)).ok_or_else(wrong)?;
            cost = message.cost.or(cost);
        }
        let blocks = assembly.finish().ok_or_else(wrong)?;
        // The last message has the cost; without it the stream was cut off.
        let cost = cost.ok_or_else(wrong)?;
        Ok(Fetched { blocks, requests: cost.requests, bytes: cost.bytes })
    }
}

/// Why a node rejected a request; `None` if the error is not from the node.
// A proxy between the nodes may send an `ErrorInfo` of its own; only the domain shows whose it is.
fn reason_of(status: &Status) -> Option<String> {
    status.get_details_error_info().filter(|info| info.domain == "hoplake").map(|info| info.reason)
}

/// Readers of the source see only its own errors.
// A retry may help: it looks the names up again.
fn unknown(failure: Failure) -> StorageError {
    StorageError::Node { fault: NodeFault::Unavailable, message: failure.message, may_pass: true }
}

impl ObjectSource for NodesSource {
    fn nodes(&self) -> u32 {
        self.nodes.count() as u32
    }

    fn get<'a>(&'a self, name: &'a str, attempt: u32) -> BoxFuture<'a, Result<FetchedObject, StorageError>> {
        Box::pin(async move {
            let members = self.nodes.members().await.map_err(unknown)?;
            let node = AccessNodes::choose(&members, RoutingKey::of(&self.graph, name, 0), attempt);
            let request = v1::GetRequest { graph: self.graph.clone(), name: name.to_owned() };
            let answer = node.client().get(self.nodes.request(request)).await;
            let answer = answer.map_err(|status| self.judge(&node, &members, &status, name, attempt))?;
            node.answered();
            let v1::GetResponse { object, cost } = answer.into_inner();
            let v1::StoreCost { requests, bytes } = cost.unwrap_or_default();
            Ok(FetchedObject { object, requests, bytes })
        })
    }

    fn fetch<'a>(
        &'a self,
        name: &'a str,
        blocks: &'a [Wanted],
        attempt: u32,
    ) -> BoxFuture<'a, Result<Fetched, StorageError>> {
        Box::pin(async move {
            let members = self.nodes.members().await.map_err(unknown)?;
            let parts = self.parts(&members, name, blocks, attempt);
            // In parallel, so that a request of two parts is still one wave. The first failure drops the other part.
            let fetched = try_join_all(parts.iter().map(async |part| {
                let fetched = self.fetch_part(name, part).await;
                let fetched = fetched.map_err(|status| self.judge(&part.node, &members, &status, name, attempt))?;
                part.node.answered();
                Ok::<_, StorageError>(fetched)
            }));
            // Parts follow each other as the blocks do, so the answer has the order of the request, which the reader relies on.
            let mut all = Fetched { blocks: Vec::with_capacity(blocks.len()), requests: 0, bytes: 0 };
            for fetched in fetched.await? {
                all.blocks.extend(fetched.blocks);
                all.requests += fetched.requests;
                all.bytes += fetched.bytes;
            }
            Ok(all)
        })
    }

    fn list<'a>(&'a self, folder: &'a str) -> BoxFuture<'a, Result<Vec<ObjectInfo>, StorageError>> {
        Box::pin(async move {
            let list = |mut client: Client| {
                let request = v1::ListRequest { graph: self.graph.clone(), folder: folder.to_owned() };
                let request = self.nodes.request(request);
                async move { client.list(request).await.map(Response::into_inner) }
            };
            match self.ask_all(folder, list).await.map_err(unknown)? {
                Ok(listed) => Ok(listed.objects.into_iter().map(ObjectInfo::from).collect()),
                // Only NOT_FOUND: a graph that does not exist lists as empty, as a prefix without objects does in a store.
                Err(_) => Ok(Vec::new()),
            }
        })
    }
}
