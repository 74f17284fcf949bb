//! The token, as the password of SASL PLAIN.
//!
//! A driver learns from an answer 407 that it has to authenticate, and does so with a request of its own, after which the request
//! that was waiting is answered. A client that sends `authorization: Bearer TOKEN` with the upgrade is known from the beginning.

use base64::{Engine, engine::general_purpose::STANDARD};
use hoplake::gremlin::{message::Request, value::Value};

use crate::auth::is_authenticated;

/// Whether an authentication has the token.
pub(super) fn admits(request: &Request, token: Option<&str>) -> bool {
    let password = password(request).and_then(|password| String::from_utf8(password).ok());
    password.is_some_and(|password| is_authenticated(token, Some(&password)))
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
        let admits = |sasl| admits(&authentication(sasl), Some("secret"));
        let text = |plain: &str| Value::Text(STANDARD.encode(plain).into());
        assert!(admits(text("\0ann\0secret")) && admits(text("x\0ann\0secret")));
        assert!(admits(Value::Bytes(b"\0\0secret".to_vec().into())));
        for wrong in ["", "\0", "\0ann\0", "\0ann\0secre", "\0ann\0secret\0", "secret", "\0secret", "\0ann\0a\nb"] {
            assert!(!admits(text(wrong)), "{wrong:?}");
        }
        assert!(!admits("not base64!".into()) && !admits(1.into()));
    }
}
