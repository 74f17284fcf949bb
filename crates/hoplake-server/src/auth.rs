//! The token of a server.

use subtle::ConstantTimeEq;

/// Whether a request with this token is authenticated; a server without a token authenticates every request. The comparison takes the
/// same time wherever two tokens differ, so that it shows no more of the token than its length.
pub(crate) fn is_authenticated(token: Option<&str>, presented: Option<&str>) -> bool {
    let Some(token) = token else { return true };
    presented.is_some_and(|presented| token.as_bytes().ct_eq(presented.as_bytes()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_authenticates() {
        assert!(is_authenticated(Some("secret"), Some("secret")));
        for wrong in [None, Some(""), Some("secre"), Some("secret2"), Some("SECRET")] {
            assert!(!is_authenticated(Some("secret"), wrong), "{wrong:?}");
        }
        assert!(is_authenticated(None, None) && is_authenticated(None, Some("anything")));
    }
}
