//! The id, label, key or value.

use crate::{operators::prelude::*, tokens::T};

/// The id, label, key or value.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    /// Which of them.
    pub token: T,
}

impl Operator for Token {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.token.name())
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        if self.token == T::Id {
            reach.ids(&input);
        }
        Elements::default()
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Token {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let values = run.by_token(self.token, &batch).await?;
        run.mapped_if(&batch, values)
    }
}
