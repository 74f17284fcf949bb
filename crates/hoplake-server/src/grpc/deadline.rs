//! The deadline of a gRPC client.

use std::time::Duration;

use axum::http::HeaderMap;

/// The deadline of a gRPC client, less a twentieth (at most 20 ms) for the transfer of the answer: the cost until
/// then must still reach it.
pub(super) fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    // At most 8 digits and a unit (gRPC over HTTP/2, `TimeoutValue`): so no unit overflows. Anything else counts as no
    // deadline, since a client that sends none is served, too.
    let number: u64 = digits.parse().ok().filter(|_| digits.len() <= 8)?;
    let timeout = match unit {
        "H" => Duration::from_secs(number * 3_600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    };
    Some(timeout - (timeout / 20).min(Duration::from_millis(20)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_leave_time_for_the_answer() {
        let timeout =
            |text: &str| timeout(&HeaderMap::from_iter([("grpc-timeout".parse().unwrap(), text.parse().unwrap())]));
        assert_eq!(timeout("2S"), Some(Duration::from_millis(1_980)));
        assert_eq!(timeout("100m"), Some(Duration::from_millis(95)));
        for wrong in ["", "m", "100", "1x", "123456789m", "-1S", "1é"] {
            assert_eq!(timeout(wrong), None, "{wrong}");
        }
    }
}
