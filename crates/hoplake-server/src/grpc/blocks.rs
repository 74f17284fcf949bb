//! The service Blocks.

use tonic::{Request, Response, Status};

use super::service::{Grpc, Messages, at_hand, within};
use crate::{
    access::{listed, parts, wanted},
    calls::{Call, blocks},
    cost::PricedCost,
    failure::Failure,
    v1::{self, blocks_server::Blocks},
};

impl From<PricedCost> for v1::StoreCost {
    fn from(cost: PricedCost) -> Self {
        Self { requests: cost.counters.requests, bytes: cost.counters.store_bytes }
    }
}

#[tonic::async_trait]
impl Blocks for Grpc {
    async fn describe(&self, request: Request<v1::DescribeRequest>) -> Result<Response<v1::DescribeResponse>, Status> {
        let (mut call, request) = self.begin_for_node("Blocks.Describe", request);
        within!(call, describe(&mut call, &request.graph).await)
    }

    async fn get(&self, request: Request<v1::GetRequest>) -> Result<Response<v1::GetResponse>, Status> {
        let (mut call, request) = self.begin_for_node("Blocks.Get", request);
        within!(call, get(&mut call, &request).await)
    }

    type FetchStream = Messages<v1::FetchResponse>;

    async fn fetch(&self, request: Request<v1::FetchRequest>) -> Result<Response<Self::FetchStream>, Status> {
        let (mut call, request) = self.begin_for_node("Blocks.Fetch", request);
        within!(call, fetch(&mut call, request).await.map(at_hand))
    }

    async fn list(&self, request: Request<v1::ListRequest>) -> Result<Response<v1::ListResponse>, Status> {
        let (mut call, request) = self.begin_for_node("Blocks.List", request);
        within!(call, list(&mut call, &request).await)
    }
}

async fn describe(call: &mut Call, graph: &str) -> Result<v1::DescribeResponse, Failure> {
    Ok(v1::DescribeResponse { profile: blocks::describe(call, graph).await? })
}

async fn get(call: &mut Call, request: &v1::GetRequest) -> Result<v1::GetResponse, Failure> {
    let object = blocks::get(call, &request.graph, &request.name).await?;
    Ok(v1::GetResponse { object, cost: Some(call.cost.into()) })
}

/// Reads all blocks before the first part leaves: a failure still has a status, and the cost of all is known.
async fn fetch(call: &mut Call, request: v1::FetchRequest) -> Result<Vec<v1::FetchResponse>, Failure> {
    let v1::FetchRequest { graph, object, blocks } = request;
    let blocks = blocks::fetch(call, &graph, &object, &wanted(blocks)?).await?;
    Ok(parts(blocks, call.cost.into()))
}

async fn list(call: &mut Call, request: &v1::ListRequest) -> Result<v1::ListResponse, Failure> {
    Ok(listed(blocks::list(call, &request.graph, &request.folder).await?))
}
