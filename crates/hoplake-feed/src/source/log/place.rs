//! Where a log was read up to, and where that is in the database.
//!
//! ```text
//! file:hr.jsonl:81920;gtid:0-1-18                 a file and its byte; a GTID
//! hr/0:17,hr/1:20;lsn:30898520                    partitions and offsets; a position of PostgreSQL's log
//! hr/0:17;binlog:1795654590:binlog.000001:373616  a partition and its offset; a time, and a place in the binlog
//! ```
//! The first half says where to read on: at or before the first record of each transaction that was not handed on. The second half is
//! where the last transaction that was handed on is in the database. What is at or before it was handed on, too, however often the log
//! has it: a producer that was killed writes its last records again.

use std::{collections::BTreeMap, fmt};

use url::form_urlencoded;

use crate::FeedError;

/// Offsets after what was read, by the parts of a log.
pub(super) type Offsets = BTreeMap<String, String>;

/// The position of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LogPosition {
    pub(super) offsets: Offsets,
    pub(super) place: Place,
}

/// Where the last transaction that was handed on is in the database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Place {
    /// None was.
    #[default]
    Start,
    /// The last GTID of each domain of MariaDB, or server of MySQL.
    Gtids(BTreeMap<String, (String, u64)>),
    /// In MariaDB's or MySQL's binlog. The time is that of the newest change so far, in seconds.
    Binlog { unix_s: i64, file: String, offset: u64 },
    /// In PostgreSQL's log.
    Lsn(u64),
}

/// Where a record's change is in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mark {
    /// Of a domain of MariaDB or a server of MySQL, the number, and all of it as text.
    Gtid { scope: String, text: String, number: u64 },
    /// See [`Place::Binlog`].
    Binlog { unix_s: i64, file: String, offset: u64 },
    /// The end of the transaction before this one, and where this one ends or has its last change so far.
    Lsn { begin: u64, end: u64 },
}

impl Mark {
    /// Of a transaction by the name that Debezium gives it: `0-1-18`, `3e11fa47-…:5`, `file=binlog.000001,pos=5030`, or `766:30901088`
    /// of a transaction of PostgreSQL that ends there.
    pub(super) fn of_name(name: &str, unix_s: i64) -> Option<Self> {
        if let Some(rest) = name.strip_prefix("file=") {
            let (file, offset) = rest.split_once(",pos=")?;
            return Some(Self::Binlog { unix_s, file: file.to_owned(), offset: offset.parse().ok()? });
        }
        let Some((first, last)) = name.split_once(':') else { return Self::of_gtid(name) };
        match first.parse::<u64>() {
            Ok(_) => {
                let end = last.parse::<u64>().ok()?;
                Some(Self::Lsn { begin: end.saturating_sub(1), end })
            }
            Err(_) => Self::of_gtid(name),
        }
    }

    /// Of a GTID of MariaDB or MySQL.
    pub(super) fn of_gtid(gtid: &str) -> Option<Self> {
        let of = |scope: &str, number: &str| {
            let number = number.parse().ok()?;
            Some(Self::Gtid { scope: scope.to_ascii_lowercase(), text: gtid.to_owned(), number })
        };
        match gtid.rsplit_once(':') {
            Some((server, number)) => of(server, number),
            None => {
                let (domain, rest) = gtid.split_once('-')?;
                let (server, number) = rest.split_once('-')?;
                domain.parse::<u32>().ok()?;
                server.parse::<u32>().ok()?;
                of(domain, number)
            }
        }
    }

    /// Of `binlog.000003:67049`.
    pub(super) fn of_binlog(position: &str, unix_s: i64) -> Option<Self> {
        let (file, offset) = position.rsplit_once(':')?;
        Some(Self::Binlog { unix_s, file: file.to_owned(), offset: offset.parse().ok()? })
    }
}

impl Place {
    /// Whether what is there was handed on.
    ///
    /// # Errors
    /// Why that cannot be said, as a sentence.
    pub(super) fn has(&self, mark: &Mark) -> Result<bool, String> {
        match (self, mark) {
            (Self::Start, _) => Ok(false),
            (Self::Gtids(last), Mark::Gtid { scope, number, .. }) => {
                Ok(last.get(scope).is_some_and(|(_, last)| number <= last))
            }
            (Self::Binlog { unix_s, file, offset }, Mark::Binlog { unix_s: at, file: other, offset: place }) => {
                let is_before = numbered(other)
                    .zip(numbered(file))
                    .filter(|(a, b)| a.0 == b.0)
                    .map(|(a, b)| (a.1, place) <= (b.1, offset));
                match is_before {
                    Some(is_before) if !is_before || at <= unix_s => Ok(is_before),
                    // A server that was set up again counts from the beginning: these are other changes.
                    _ => Err(format!("the binlog has begun again: {other}:{place} comes after {file}:{offset}")),
                }
            }
            (Self::Lsn(last), Mark::Lsn { begin, .. }) => Ok(begin < last),
            _ => Err("its transactions are named in another way than those before it".into()),
        }
    }

    /// Notes that what is there was handed on.
    pub(super) fn advance(&mut self, mark: &Mark) {
        match (&mut *self, mark) {
            (Self::Gtids(last), Mark::Gtid { scope, text, number }) => {
                last.insert(scope.clone(), (text.clone(), *number));
            }
            (last, Mark::Gtid { scope, text, number }) => {
                *last = Self::Gtids(BTreeMap::from([(scope.clone(), (text.clone(), *number))]));
            }
            (last, Mark::Binlog { unix_s, file, offset }) => {
                let newest = if let Self::Binlog { unix_s, .. } = last { *unix_s } else { i64::MIN };
                *last = Self::Binlog { unix_s: newest.max(*unix_s), file: file.clone(), offset: *offset };
            }
            (last, Mark::Lsn { end, .. }) => {
                let before = if let Self::Lsn(before) = last { *before } else { 0 };
                *last = Self::Lsn(before.max(*end));
            }
        }
    }
}

/// The name of a binlog before its number, and that.
fn numbered(file: &str) -> Option<(&str, u64)> {
    let (name, number) = file.rsplit_once('.')?;
    Some((name, number.parse().ok()?))
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written =
            |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace("%2F", "/");
        let pair =
            |(part, offset): (&String, &String)| format!("{}:{}", written(part), written(offset).replace("%3A", ":"));
        let offsets: Vec<_> = self.offsets.iter().map(pair).collect();
        f.write_str(&offsets.join(","))?;
        match &self.place {
            Place::Start => f.write_str(";start"),
            Place::Gtids(all) => {
                let all: Vec<_> = all.values().map(|(text, _)| text.as_str()).collect();
                write!(f, ";gtid:{}", all.join(","))
            }
            Place::Binlog { unix_s, file, offset } => write!(f, ";binlog:{unix_s}:{}:{offset}", written(file)),
            Place::Lsn(lsn) => write!(f, ";lsn:{lsn}"),
        }
    }
}

impl LogPosition {
    /// Reads what [`Display`](fmt::Display) writes.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) if it is something else.
    pub(super) fn parse(text: &str) -> Result<Self, FeedError> {
        Self::parsed(text).ok_or_else(|| {
            FeedError::invalid(format!("the graph's position {text:?} is not one of a log"))
                .hint("a graph that was fed from the database goes on there; feed the log into another place")
        })
    }

    fn parsed(text: &str) -> Option<Self> {
        let read = |text: &str| {
            let pair = form_urlencoded::parse(text.as_bytes()).next();
            pair.map_or_else(String::new, |(name, _)| name.into_owned())
        };
        let (offsets, place) = text.split_once(';')?;
        let offset = |pair: &str| pair.split_once(':').map(|(part, offset)| (read(part), read(offset)));
        let offsets = offsets.split(',').filter(|pair| !pair.is_empty()).map(offset).collect::<Option<_>>()?;
        let place = match place.split_once(':') {
            None if place == "start" => Place::Start,
            Some(("gtid", all)) => {
                let mut place = Place::Gtids(BTreeMap::new());
                for gtid in all.split(',') {
                    place.advance(&Mark::of_gtid(gtid)?);
                }
                place
            }
            Some(("binlog", rest)) => {
                let (unix_s, rest) = rest.split_once(':')?;
                let (file, offset) = rest.rsplit_once(':')?;
                Place::Binlog { unix_s: unix_s.parse().ok()?, file: read(file), offset: offset.parse().ok()? }
            }
            Some(("lsn", lsn)) => Place::Lsn(lsn.parse().ok()?),
            _ => return None,
        };
        Some(Self { offsets, place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_are_written() {
        for text in [
            ";start",
            "file:hr.jsonl:81920;gtid:0-1-18,1-2-5",
            "hr/0:17,hr/1:20;lsn:30898520",
            "a%3Ab%2C+c:7;binlog:1795654590:bin+log.000001:373616",
            "shard-0:495903382714902566085596925;gtid:3e11fa47-71ca-11e1-9e33-c80aa9429562:5",
        ] {
            let position = LogPosition::parse(text).unwrap();
            assert_eq!(position.to_string(), text);
            assert!(!text.contains(' '));
        }
        let named = LogPosition { offsets: Offsets::from([("a:b, c=&;%".into(), "d:7".into())]), ..Default::default() };
        assert_eq!(LogPosition::parse(&named.to_string()).unwrap(), named);
        for text in
            ["", "0-1-18", "0/16B3748", "a:1", "a;start", "a:1;gtid:x", "a:1;binlog:1:b", "a:1;lsn:x", "a:1;else:1"]
        {
            assert!(LogPosition::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_was_handed_on_is_known_again() {
        let mut place = Place::Start;
        let gtid = |text: &str| Mark::of_gtid(text).unwrap();
        assert_eq!(place.has(&gtid("0-1-5")), Ok(false));
        place.advance(&gtid("0-1-5"));
        place.advance(&gtid("1-1-2"));
        for (text, expected) in [("0-1-5", true), ("0-2-4", true), ("0-2-6", false), ("1-1-3", false), ("2-1-1", false)]
        {
            assert_eq!(place.has(&gtid(text)), Ok(expected), "{text}");
        }
        let binlog = |unix_s, text: &str| Mark::of_binlog(text, unix_s).unwrap();
        assert!(place.has(&binlog(0, "b.000001:4")).is_err());
        let mut place = Place::Start;
        place.advance(&binlog(100, "b.000009:700"));
        place.advance(&binlog(90, "b.000010:50"));
        for (at, text, expected) in
            [(100, "b.000010:50", true), (100, "b.000010:51", false), (80, "b.000009:900", true)]
        {
            assert_eq!(place.has(&binlog(at, text)), Ok(expected), "{text}");
        }
        // Of a server that was set up again, or another one.
        assert!(place.has(&binlog(101, "b.000001:900")).is_err());
        assert!(place.has(&binlog(101, "c.000011:900")).is_err());
        // Transactions of PostgreSQL end in order, but their changes are between those of others.
        let mut place = Place::Start;
        place.advance(&Mark::of_name("766:500", 0).unwrap());
        assert_eq!(place.has(&Mark::Lsn { begin: 400, end: 450 }), Ok(true));
        assert_eq!(place.has(&Mark::Lsn { begin: 500, end: 510 }), Ok(false));
        assert_eq!(place.has(&Mark::of_name("766:500", 0).unwrap()), Ok(true));
        assert_eq!(place.has(&Mark::of_name("767:600", 0).unwrap()), Ok(false));
    }
}
