//! The limits of a request.

use hoplake::Limits;

use crate::LimitSettings;

/// The limits that a client asks for; 0 asks for none.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct RequestedLimits {
    pub(crate) time_ms: u64,
    pub(crate) vertices_max: u64,
    pub(crate) requests_max: u64,
    pub(crate) bytes_max: u64,
    pub(crate) usd_max: f64,
    pub(crate) memory_bytes_max: u64,
}

impl RequestedLimits {
    /// Without the time, which runs from the beginning of a call.
    pub(crate) fn within(&self, own: &LimitSettings) -> Limits {
        Limits {
            timeout: None,
            vertices_max: least(self.vertices_max, own.vertices_max),
            requests_max: least(self.requests_max, own.requests_max),
            bytes_max: least(self.bytes_max, own.bytes_max),
            usd_max: [self.usd_max, own.usd_max].into_iter().filter(|usd| *usd > 0.0).reduce(f64::min),
            memory_bytes_max: least(self.memory_bytes_max, own.memory_bytes_max),
        }
    }
}

/// The smaller of two limits, of which 0 means none: a client can lower a limit of the server, and never raise it.
fn least(requested: u64, own: u64) -> Option<u64> {
    [requested, own].into_iter().filter(|limit| *limit > 0).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_can_ask_only_for_less() {
        assert_eq!(
            (least(0, 0), least(5, 0), least(0, 7), least(5, 7), least(9, 7)),
            (None, Some(5), Some(7), Some(5), Some(7))
        );
    }
}
