//! Positions: GTIDs of MariaDB, sets of them of MySQL.

use std::{collections::BTreeMap, fmt, str::FromStr};

use mysql_async::Sid;

use super::Flavour;
use crate::FeedError;

/// The text of a position before the first transaction.
const START: &str = "start";

/// A position in the log of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Gtids {
    /// By domain: the server that wrote the last transaction, and its number.
    MariaDb(BTreeMap<u32, (u32, u64)>),
    /// By server: the intervals of the numbers of all transactions, their ends included.
    MySql(BTreeMap<String, Vec<(u64, u64)>>),
}

impl Gtids {
    pub(super) fn none(flavour: Flavour) -> Self {
        match flavour {
            Flavour::MariaDb => Self::MariaDb(BTreeMap::new()),
            Flavour::MySql => Self::MySql(BTreeMap::new()),
        }
    }

    /// Reads `0-1-18,1-2-5`, or `3E11FA47-71CA-11E1-9E33-C80AA9429562:1-5:7`.
    pub(super) fn parse(text: &str) -> Result<Self, FeedError> {
        let invalid = || FeedError::invalid(format!("{text:?} is not a position of MariaDB or MySQL"));
        if text == START || text.is_empty() {
            return Ok(Self::MariaDb(BTreeMap::new()));
        }
        let parts = text.split(',').map(str::trim);
        if text.contains(':') {
            let mut servers: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
            for part in parts {
                let (server, intervals) = part.split_once(':').ok_or_else(invalid)?;
                for interval in intervals.split(':') {
                    let (first, last) = interval.split_once('-').unwrap_or((interval, interval));
                    let both = first.parse().ok().zip(last.parse().ok()).ok_or_else(invalid)?;
                    servers.entry(server.to_ascii_lowercase()).or_default().push(both);
                }
            }
            return Ok(Self::MySql(servers));
        }
        let mut domains = BTreeMap::new();
        for part in parts {
            let mut numbers = part.split('-');
            let mut next = || numbers.next().ok_or_else(invalid);
            let domain = next()?;
            let server = next()?;
            let number = next()?;
            let domain = domain.parse().map_err(|_| invalid())?;
            domains.insert(domain, (server.parse().map_err(|_| invalid())?, number.parse().map_err(|_| invalid())?));
        }
        Ok(Self::MariaDb(domains))
    }

    /// Adds a transaction of MariaDB.
    pub(super) fn add(&mut self, domain: u32, server: u32, number: u64) {
        if let Self::MariaDb(domains) = self {
            domains.insert(domain, (server, number));
        }
    }

    /// Adds a transaction of MySQL.
    pub(super) fn add_of(&mut self, server: &str, number: u64) {
        let Self::MySql(servers) = self else { return };
        let intervals = servers.entry(server.to_owned()).or_default();
        if intervals.iter().any(|(first, last)| (*first..=*last).contains(&number)) {
            return;
        }
        match intervals.iter_mut().find(|(_, last)| last.checked_add(1) == Some(number)) {
            Some((_, last)) => *last = number,
            None => intervals.push((number, number)),
        }
        intervals.sort_unstable();
    }

    /// Whether all transactions of this position are in another.
    pub(super) fn is_within(&self, other: &Self) -> Result<bool, FeedError> {
        Ok(match (self, other) {
            (Self::MariaDb(here), Self::MariaDb(there)) => {
                here.iter().all(|(domain, (_, number))| there.get(domain).is_some_and(|(_, last)| number <= last))
            }
            (Self::MySql(here), Self::MySql(there)) => here.iter().all(|(server, intervals)| {
                let known = there.get(server).map(Vec::as_slice).unwrap_or_default();
                let is_known = |(first, last): &(u64, u64)| known.iter().any(|(from, to)| from <= first && last <= to);
                intervals.iter().all(is_known)
            }),
            // The beginning of any log.
            (Self::MariaDb(here), Self::MySql(_)) if here.is_empty() => true,
            _ => {
                let why = format!("{self} and {other} are positions of different kinds of servers");
                return Err(FeedError::invalid(why));
            }
        })
    }
}

impl Gtids {
    /// As MySQL's protocol has them.
    pub(super) fn sids(&self) -> Result<Vec<Sid<'static>>, FeedError> {
        let Self::MySql(servers) = self else { return Ok(Vec::new()) };
        let sid = |(server, intervals): (&String, &Vec<(u64, u64)>)| {
            let intervals: Vec<_> = intervals.iter().map(|(first, last)| format!("{first}-{last}")).collect();
            let text = format!("{server}:{}", intervals.join(":"));
            Sid::from_str(&text)
                .map_err(|error| FeedError::invalid(format!("{text} is not a position of MySQL: {error}")))
        };
        servers.iter().map(sid).collect()
    }
}

impl fmt::Display for Gtids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = match self {
            Self::MariaDb(domains) => {
                domains.iter().map(|(domain, (server, number))| format!("{domain}-{server}-{number}")).collect()
            }
            Self::MySql(servers) => {
                let interval = |(first, last): &(u64, u64)| {
                    if first == last { first.to_string() } else { format!("{first}-{last}") }
                };
                let of = |intervals: &Vec<_>| intervals.iter().map(interval).collect::<Vec<_>>().join(":");
                servers.iter().map(|(server, intervals)| format!("{server}:{}", of(intervals))).collect()
            }
        };
        f.write_str(if parts.is_empty() { START.to_owned() } else { parts.join(",") }.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_are_written() {
        for text in ["start", "0-1-18", "0-1-18,1-2-5", "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7"] {
            assert_eq!(Gtids::parse(text).unwrap().to_string(), text);
        }
        for text in ["0-1", "a-b-c", "x:", "x:1-", "0-1-2;"] {
            assert!(Gtids::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn transactions_extend_a_position() {
        let mut position = Gtids::parse("0-1-18").unwrap();
        position.add(0, 2, 19);
        position.add(3, 2, 1);
        assert_eq!(position.to_string(), "0-2-19,3-2-1");
        let mut set = Gtids::none(Flavour::MySql);
        for number in [1, 2, 5, 2] {
            set.add_of("a", number);
        }
        assert_eq!(set.to_string(), "a:1-2:5");
    }

    #[test]
    fn positions_are_within_others() {
        let is_within = |a: &str, b: &str| Gtids::parse(a).unwrap().is_within(&Gtids::parse(b).unwrap()).ok();
        for (a, b, expected) in [
            ("0-1-18", "0-1-18", Some(true)),
            ("0-1-18", "0-2-19", Some(true)),
            ("0-1-19", "0-1-18", Some(false)),
            ("0-1-1,1-1-5", "0-1-9", Some(false)),
            ("start", "0-1-1", Some(true)),
            ("0-1-1", "start", Some(false)),
            ("start", "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5", Some(true)),
            ("3e11fa47-71ca-11e1-9e33-c80aa9429562:2-3", "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5", Some(true)),
            ("3e11fa47-71ca-11e1-9e33-c80aa9429562:4-6", "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7", Some(false)),
            ("0-1-1", "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5", None),
        ] {
            assert_eq!(is_within(a, b), expected, "{a} within {b}");
        }
    }
}
