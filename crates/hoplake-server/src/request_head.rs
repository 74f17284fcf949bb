//! The headers that every protocol over HTTP has: credentials, the name of a request, and its trace.
//!
//! A port authenticates each request once, and adds the result to the request as an [`Arrival`]. Adapters make the
//! [`RequestContext`] of a call from it.

use std::sync::Arc;

use axum::http::{Extensions, HeaderMap};
use headers::{
    Authorization, HeaderMapExt,
    authorization::{Basic, Bearer},
};
use hoplake_doors::Exchange;

use crate::calls::RequestContext;

/// The header that names a request; the server makes a name up if the client sends none.
pub(crate) const REQUEST_ID: &str = "x-request-id";

/// What the port knows of a request; one of its extensions.
#[derive(Clone, Default)]
pub(crate) struct Arrival {
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) is_authenticated: bool,
}

impl Arrival {
    /// Of a request. One that did not pass a port is not authenticated.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// The context of a call.
    pub(crate) fn context(&self, protocol: &'static str, call: &'static str, headers: &HeaderMap) -> RequestContext {
        let text = |name: &str| headers.get(name)?.to_str().ok();
        RequestContext {
            is_authenticated: self.is_authenticated,
            ..RequestContext::new(protocol, call, text(REQUEST_ID), self.exchange.clone(), text)
        }
    }
}

/// The token in `authorization: Bearer TOKEN`.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Option<String> {
    Some(headers.typed_get::<Authorization<Bearer>>()?.token().to_owned())
}

/// The token as the password of HTTP's Basic scheme (RFC 7617), whatever the user name: some drivers have no other way to send it.
pub(crate) fn basic_password(headers: &HeaderMap) -> Option<String> {
    Some(headers.typed_get::<Authorization<Basic>>()?.password().to_owned())
}

#[cfg(test)]
mod tests {
    use axum::http::header::AUTHORIZATION;
    use base64::{Engine, engine::general_purpose::STANDARD};

    use super::*;

    fn headers(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())])
    }

    #[test]
    fn the_scheme_of_a_token_has_no_case() {
        let token = |value| bearer_token(&headers(value));
        assert_eq!(
            (token("Bearer secret").as_deref(), token("bearer secret").as_deref()),
            (Some("secret"), Some("secret"))
        );
        for wrong in ["secret", "Basic secret", "Bearer", "Bearersecret"] {
            assert_eq!(token(wrong), None, "{wrong}");
        }
        assert_eq!(bearer_token(&HeaderMap::new()), None);
    }

    #[test]
    fn the_password_of_basic_is_the_token() {
        let password = |value: &str| basic_password(&headers(value));
        assert_eq!(password(&format!("Basic {}", STANDARD.encode("ann:se:cret"))).as_deref(), Some("se:cret"));
        for other in ["Bearer secret", "Basic ???", &format!("Basic {}", STANDARD.encode("secret"))] {
            assert_eq!(password(other), None, "{other}");
        }
    }
}
