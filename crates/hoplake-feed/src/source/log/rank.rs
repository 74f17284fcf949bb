//! The order of records of several parts of a log.

/// Which of several records is taken first, the lowest.
pub(super) type Rank = (i64, bool);

/// What Debezium writes where a transaction begins, in a record of this size at most.
const BEGIN: &[u8] = b"\"status\":\"BEGIN\"";
const BEGIN_BYTES_MAX: usize = 4 << 10;

/// The earliest record of several parts comes first, so that none is read much further than the others; and of two of one millisecond
/// that which begins a transaction. A producer that was killed begins its transaction again and counts from there, so a change before
/// that would be counted wrongly.
pub(super) fn rank(time_ms: i64, value: &[u8]) -> Rank {
    // Longer ones are changes.
    let begins = value.len() <= BEGIN_BYTES_MAX && value.windows(BEGIN.len()).any(|some| some == BEGIN);
    (time_ms, !begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_records_of_one_time_that_which_begins_a_transaction_comes_first() {
        let change = br#"{"before":null,"after":{"id":1},"op":"c"}"#;
        let begin = br#"{"status":"BEGIN","id":"766:30901088","event_count":null}"#;
        let end = br#"{"status":"END","id":"766:30901088","event_count":1}"#;
        assert!(rank(7, begin) < rank(7, change));
        assert!(rank(6, change) < rank(7, begin));
        assert_eq!(rank(7, end), rank(7, change));
    }
}
