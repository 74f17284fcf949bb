//! The token, as the password of SASL PLAIN.
//!
//! A driver learns from an answer 407 that it has to authenticate, and does so with a request of its own, after which the request
//! that was waiting is answered. A client that sends `authorization: Bearer TOKEN` with the upgrade is known from the beginning.

use axum::http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use base64::{Engine, engine::general_purpose::STANDARD};
use hoplake::gremlin::{message::Request, value::Value};

use crate::calls::is_trusted;

/// Whether an authentication brings the token. Then the headers of the connection bring it from now on.
pub(super) fn admits(request: &Request, token: Option<&str>, headers: &mut HeaderMap) -> bool {
    let Some(bearer) = password(request).and_then(|password| bearer(&password)) else { return false };
    let brought = HeaderMap::from_iter([(AUTHORIZATION, bearer)]);
    let is_right = is_trusted(token, &brought);
    if is_right {
        headers.extend(brought);
    }
    is_right
}

fn bearer(password: &[u8]) -> Option<HeaderValue> {
    let mut bearer = HeaderValue::from_bytes(&[b"Bearer ", password].concat()).ok()?;
    bearer.set_sensitive(true);
    Some(bearer)
}

/// The password of `[authzid] NUL authcid NUL password` (RFC 4616), which is in base64 if it is text.
fn password(request: &Request) -> Option<Vec<u8>> {
    let message = match request.argument("sasl")? {
        Value::Text(text) => STANDARD.decode(text.as_bytes()).ok()?,
        Value::Bytes(bytes) => bytes.to_vec(),
        _ => return None,
    };
    let mut parts = message.splitn(3, |byte| *byte == 0).skip(2);
    parts.next().map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn authentication(sasl: Value) -> Request {
        let arguments = vec![("sasl".into(), sasl)];
        Request { id: Uuid::nil(), op: "authentication".into(), processor: "".into(), query: None, arguments }
    }

    #[test]
    fn the_password_is_the_token() {
        let admits = |sasl| {
            let mut headers = HeaderMap::new();
            let admits = admits(&authentication(sasl), Some("secret"), &mut headers);
            assert_eq!(is_trusted(Some("secret"), &headers), admits);
            admits
        };
        let text = |plain: &str| Value::Text(STANDARD.encode(plain).into());
        assert!(admits(text("\0ann\0secret")) && admits(text("x\0ann\0secret")));
        assert!(admits(Value::Bytes(b"\0\0secret".to_vec().into())));
        for wrong in ["", "\0", "\0ann\0", "\0ann\0secre", "\0ann\0secret\0", "secret", "\0secret", "\0ann\0a\nb"] {
            assert!(!admits(text(wrong)), "{wrong:?}");
        }
        assert!(!admits("not base64!".into()) && !admits(1.into()));
    }
}
