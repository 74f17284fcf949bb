//! How many walks a traversal has, without listing one.

use std::{mem::take, time::Instant};

use hoplake::Traversal;

use super::{
    Call, GraphRef, PathsRequest, Statistics,
    traverse::depths_of,
    vertices::{find_all, resolve},
};
use crate::{
    cost::{PricedCost, PricedStep},
    failure::{Failure, Reason},
};

/// Counts the walks of a traversal, with the waves of a traversal of its sets.
pub(crate) async fn count_walks(
    call: &mut Call,
    graph: &GraphRef,
    request: &PathsRequest,
) -> Result<Statistics, Failure> {
    let begun = Instant::now();
    call.limit_time(request.spec.limits.time_ms);
    let open = call.graph(graph).await?;
    let engine_request = request.spec.request(call, &open.graph)?;
    let named = resolve(&open.graph, &request.spec.starts)?;
    let mut query = call.query(&open.graph, &engine_request.traversal.limits);
    let prices = open.graph.prices();
    let work = async {
        let mut starts = find_all(&mut query, &named).await?;
        let look_up =
            PricedStep { cost: PricedCost::of(&query.cost(), prices), time_us: begun.elapsed().as_micros() as u64 };
        let counted = query.count_walks(Traversal { starts: take(&mut starts), ..engine_request.traversal }).await?;
        // The number is exact within the engine; an answer has 64 bits for it.
        let count = counted.walks.and_then(|walks| u64::try_from(walks).ok());
        let count =
            count.ok_or_else(|| Failure::new(Reason::Limit, "there are 2^64 walks or more; ask for fewer hops"))?;
        let depths = depths_of(&counted.profile, prices);
        let version = open.graph.version();
        Ok(Statistics { look_up, depths, results: count, count: Some(count), version, ..Statistics::default() })
    };
    let outcome = call.bounded(work).await;
    let mut statistics = call.settle(&query, &open.graph, outcome).await?;
    statistics.cost = call.cost;
    statistics.time_us = begun.elapsed().as_micros() as u64;
    Ok(statistics)
}
