//! Points in time, each with the offset from UTC in which it was written.
//!
//! A graph stores moments from −9999-01-01 to the end of 9999-12-31, in UTC. jiff's `Timestamp` ends a day before at either end, so
//! that every offset has a date there: here it is the other way round. A moment is a civil time in UTC, which has all of that, and its
//! offset is one in which it has a date, too. Whatever would have none is not made.

use std::fmt::{self, Display, Formatter};

use jiff::{SignedDuration, Timestamp, civil, tz::Offset};

/// A point in time.
///
/// Two are equal if the offsets are, too. Relations of values compare [`utc`](Self::utc) alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Moment {
    utc: civil::DateTime,
    offset: Offset,
}

const EPOCH: civil::DateTime = civil::date(1970, 1, 1).at(0, 0, 0, 0);

impl Moment {
    /// Reads ISO 8601: without a time midnight, without an offset UTC. `None` if it is something else, or UTC has no date for it.
    pub fn parse(text: &str) -> Option<Self> {
        // Java writes years before 1 with four digits.
        let with_six_digits = match text.strip_prefix('-').and_then(|rest| rest.split_once('-')) {
            Some((year, _)) if year.len() == 4 => Some(format!("-00{}", &text[1..])),
            _ => None,
        };
        let pieces = jiff::fmt::temporal::Pieces::parse(with_six_digits.as_deref().unwrap_or(text)).ok()?;
        let offset = pieces.to_numeric_offset().unwrap_or(Offset::UTC);
        let time = pieces.time().unwrap_or(civil::Time::midnight());
        Self::of_local(pieces.date().to_datetime(time), offset)
    }

    /// What the calendar of an offset shows; `None` if UTC has no date for it.
    pub fn of_local(local: civil::DateTime, offset: Offset) -> Option<Self> {
        let utc = local.checked_sub(shift(offset)).ok()?;
        Some(Self { utc, offset })
    }

    /// A moment in UTC.
    pub const fn of_utc(utc: civil::DateTime) -> Self {
        Self { utc, offset: Offset::UTC }
    }

    /// Some time after 1970, or before it, in UTC; `None` beyond the years −9999 to 9999.
    pub fn since_epoch(duration: SignedDuration) -> Option<Self> {
        EPOCH.checked_add(duration).ok().map(Self::of_utc)
    }

    /// The present, in UTC.
    pub fn now() -> Self {
        Self::of_utc(Offset::UTC.to_datetime(Timestamp::now()))
    }

    /// The date and time in UTC.
    pub fn utc(self) -> civil::DateTime {
        self.utc
    }

    /// The offset from UTC in which it was written.
    pub fn offset(self) -> Offset {
        self.offset
    }

    /// The date and time in its offset.
    pub fn local(self) -> civil::DateTime {
        self.utc.checked_add(shift(self.offset)).expect("a moment has a date in its offset")
    }

    /// The time since 1970.
    pub fn duration_since_epoch(self) -> SignedDuration {
        self.utc.duration_since(EPOCH)
    }

    /// Microseconds since 1970, rounded down.
    pub fn micros(self) -> i64 {
        self.rounded_down(1_000_000)
    }

    /// Milliseconds since 1970, rounded down.
    pub fn millis(self) -> i64 {
        self.rounded_down(1_000)
    }

    fn rounded_down(self, per_second: i64) -> i64 {
        let since = self.duration_since_epoch();
        let nanos = i64::from(since.subsec_nanos()).div_euclid(1_000_000_000 / per_second);
        since.as_secs() * per_second + nanos
    }

    /// Later, or earlier, in the same offset; `None` beyond the years −9999 to 9999.
    pub fn checked_add(self, duration: SignedDuration) -> Option<Self> {
        let utc = self.utc.checked_add(duration).ok()?;
        utc.checked_add(shift(self.offset)).ok()?;
        Some(Self { utc, offset: self.offset })
    }
}

fn shift(offset: Offset) -> SignedDuration {
    SignedDuration::from_secs(i64::from(offset.seconds()))
}

/// The offset as in `+02:00`, with seconds if it has some, or `Z`.
pub fn offset_text(offset: Offset) -> String {
    let seconds = offset.seconds();
    if seconds == 0 {
        return "Z".to_owned();
    }
    let sign = if seconds < 0 { '-' } else { '+' };
    let size = seconds.abs();
    let rest = if size % 60 == 0 { String::new() } else { format!(":{:02}", size % 60) };
    format!("{sign}{:02}:{:02}{rest}", size / 3_600, size / 60 % 60)
}

/// As `OffsetDateTime.toString` of Java: seconds only if there are some, and fractions of them by threes.
impl Display for Moment {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let local = self.local();
        let sign = if local.year() < 0 { "-" } else { "" };
        let year = local.year().unsigned_abs();
        let month = local.month();
        let day = local.day();
        write!(f, "{sign}{year:04}-{month:02}-{day:02}T{:02}:{:02}", local.hour(), local.minute())?;
        let nanos = local.subsec_nanosecond();
        if local.second() != 0 || nanos != 0 {
            write!(f, ":{:02}", local.second())?;
        }
        match nanos {
            0 => {}
            nanos if nanos % 1_000_000 == 0 => write!(f, ".{:03}", nanos / 1_000_000)?,
            nanos if nanos % 1_000 == 0 => write!(f, ".{:06}", nanos / 1_000)?,
            nanos => write!(f, ".{nanos:09}")?,
        }
        f.write_str(&offset_text(self.offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_a_graph_stores_is_a_moment() {
        let days = hoplake_format::text::DATE_DAYS;
        for micros in
            [*hoplake_format::text::TIMESTAMP_MICROS.start(), -1, 0, *hoplake_format::text::TIMESTAMP_MICROS.end()]
        {
            let moment = Moment::since_epoch(SignedDuration::from_micros(micros)).unwrap();
            assert_eq!(moment.micros(), micros);
            assert_eq!(moment.millis(), micros.div_euclid(1_000));
        }
        for day in [*days.start(), *days.end()] {
            let moment = Moment::since_epoch(SignedDuration::from_hours(24 * i64::from(day))).unwrap();
            assert_eq!(moment.local().date(), moment.utc().date());
        }
        assert_eq!(
            Moment::since_epoch(SignedDuration::from_micros(hoplake_format::text::TIMESTAMP_MICROS.end() + 1)),
            None
        );
    }

    #[test]
    fn a_moment_has_a_date_in_its_offset() {
        let last = civil::DateTime::MAX;
        let offset = Offset::constant(5);
        assert_eq!(Moment::of_local(last, offset).unwrap().local(), last);
        assert_eq!(Moment::of_local(last, Offset::constant(-5)), None);
        let moment = Moment::of_local(last, offset).unwrap();
        assert_eq!(moment.checked_add(SignedDuration::from_secs(1)), None);
        assert_eq!(Moment::of_utc(last).to_string(), "9999-12-31T23:59:59.999999999Z");
        assert_eq!(moment.to_string(), "9999-12-31T23:59:59.999999999+05:00");
    }
}
