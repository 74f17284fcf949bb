//! What verbs share that query a graph.

use hoplake::Query;

use super::limits::LimitArgs;
use crate::{
    opening::{GraphArgs, Opened},
    output::{
        OutputArgs,
        profile::{Profile, ProfileArgs},
    },
};

/// How results are printed, and what finding them may cost.
#[derive(Debug, clap::Args)]
pub struct QueryArgs {
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    profile: ProfileArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

impl QueryArgs {
    /// Opens a graph for a query within the limits. A traversal or a search for a path keeps them, unless it has other limits than that
    /// of vertices.
    pub async fn begin(&self, graph: &GraphArgs) -> anyhow::Result<(Opened, Query)> {
        let opened = graph.open().await?;
        let mut query = opened.graph.query();
        query.limit(&self.limits.limits());
        Ok((opened, query))
    }

    /// Ends the query, and prints its profile if requested.
    pub async fn end(&self, opened: &Opened, query: &Query, profile: Profile) {
        self.profile.end(opened, query, profile).await;
    }
}
