//! Why a query was rejected, or failed.

use hoplake_engine::EngineError;
use hoplake_storage::StorageError;

use crate::value::arithmetic::ArithmeticError;

pub(crate) type Done<T> = Result<T, QueryError>;

/// Why a query has no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// A step, an option or a combination that is not supported. Known before anything is read.
    #[error("{0}")]
    Unsupported(String),
    /// The query cannot mean anything: arguments that a step does not take, a name without a value. Known before anything is read.
    #[error("{0}")]
    Invalid(String),
    /// A text is not of its language.
    #[error("{0}")]
    Syntax(String),
    /// A prepared query is not there, or is called with parameters that it does not take. Known before anything is read.
    #[error("{0}")]
    Call(String),
    /// A value was not of the type that a step needs.
    #[error("{0}")]
    Type(String),
    /// Arithmetic without a result.
    #[error(transparent)]
    Arithmetic(#[from] ArithmeticError),
    /// The query says itself that it fails, with `fail()`.
    #[error("{0}")]
    Failed(String),
    /// The query writes, and may not.
    #[error("{0}")]
    ReadOnly(String),
    /// The graph could not be read or changed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<StorageError> for QueryError {
    fn from(error: StorageError) -> Self {
        Self::Engine(error.into())
    }
}

impl QueryError {
    /// [`Self::Unsupported`].
    pub fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported(what.into())
    }

    /// [`Self::Invalid`].
    pub fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid(what.into())
    }

    /// [`Self::Type`].
    pub fn wrong_type(what: impl Into<String>) -> Self {
        Self::Type(what.into())
    }
}
