//! Logs of several parts, as Kafka and Kinesis have them.

use std::{collections::BTreeMap, time::Duration};

use super::{
    super::{
        place::Offsets,
        stream::{LogStream, Opened},
    },
    *,
};
use crate::source::TransactionStream;

/// The part of a line in a log that has one for transactions, and for each table one for each key, as far as that is known.
fn part_of(line: &str) -> String {
    let json: serde_json::Value = serde_json::from_str(line).unwrap();
    let row = [&json["after"], &json["before"]].into_iter().find(|row| row.is_object());
    match row.and_then(|row| row.as_object()?.values().next()) {
        Some(key) => format!("{}/{}", json["source"]["table"], key.as_u64().unwrap_or(9) % 2),
        None if json.get("ddl").is_some() => "schema".into(),
        None if json.get("op").is_some() => format!("{}/0", json["source"]["table"]),
        None => "transaction".into(),
    }
}

/// Debezium's samples in several parts, with what has to come of them. TRUNCATE of MariaDB says nowhere when it has to come.
fn samples_in_parts() -> impl Iterator<Item = (&'static str, Style, Vec<String>, Vec<Transaction>)> {
    let named = samples().into_iter().filter(|(name, ..)| ["mariadb", "postgres"].contains(name));
    named.map(|(name, style, mut lines)| {
        lines.retain(|it| name == "postgres" || !it.contains("\"op\":\"t\""));
        let all: Vec<_> = lines.iter().map(String::as_str).collect();
        let expected = Reader::new(style, ";start", false).all(&all);
        (name, style, lines, expected)
    })
}

/// The lines that a producer writes which begins with line `from`, and with the beginning of its transaction: it counts from there.
fn run_from(lines: &[String], from: usize) -> Vec<(usize, String)> {
    let is_bound = |at: &usize| lines[*at].contains("\"status\":\"");
    let before = (0..from).rev().find(is_bound).filter(|at| lines[*at].contains("BEGIN"));
    let end = (from..lines.len()).find(is_bound).filter(|at| lines[*at].contains("END"));
    let (Some(begin), Some(end)) = (before, end) else {
        return lines.iter().cloned().enumerate().skip(before.unwrap_or(from)).collect();
    };
    let json = |at: usize| serde_json::from_str::<serde_json::Value>(&lines[at]).unwrap();
    let skipped: Vec<_> = (begin + 1..from).map(json).collect();
    let renumbered = |at: usize| {
        let mut json = json(at);
        if at < end {
            let number = &mut json["transaction"]["total_order"];
            *number = (number.as_u64().unwrap() - skipped.len() as u64).into();
            return json.to_string();
        }
        json["event_count"] = (json["event_count"].as_u64().unwrap() - skipped.len() as u64).into();
        for counted in json["data_collections"].as_array_mut().unwrap() {
            let is_of = |it: &&serde_json::Value| {
                let name = counted["data_collection"].as_str().unwrap();
                name.ends_with(&format!(".{}", it["source"]["table"].as_str().unwrap()))
            };
            let of_table = skipped.iter().filter(is_of).count() as u64;
            counted["event_count"] = (counted["event_count"].as_u64().unwrap() - of_table).into();
        }
        json.to_string()
    };
    let rest = lines.iter().cloned().enumerate().skip(end + 1);
    std::iter::once((begin, lines[begin].clone()))
        .chain((from..=end).map(|at| (at, renumbered(at))))
        .chain(rest)
        .collect()
}

/// A producer is killed while it writes, and starts again, also within a transaction. Each transaction is handed on once and complete, whatever
/// records were lost on their way, and in whatever order records of about the same time are read.
#[test]
fn runs_of_a_producer_are_told_apart_in_several_parts() {
    for (name, style, lines, expected) in samples_in_parts() {
        for seed in 0..400 {
            let mut dice = fastrand::Rng::with_seed(seed);
            let mut parts: BTreeMap<String, Vec<(i64, String)>> = BTreeMap::new();
            let mut from = 0;
            let mut now_ms = 0;
            loop {
                let is_last = from >= lines.len() || dice.u32(0..4) == 0;
                let killed = if is_last { lines.len() } else { dice.usize(from..=lines.len()) };
                let mut run: BTreeMap<String, Vec<(i64, usize, String)>> = BTreeMap::new();
                for (at, line) in run_from(&lines, from).into_iter().take_while(|(at, _)| *at < killed) {
                    // Several within a millisecond.
                    now_ms += i64::from(dice.u32(0..3) == 0);
                    run.entry(part_of(&line)).or_default().push((now_ms, at, line));
                }
                let mut first_lost = killed;
                for (part, mut written) in run {
                    if !is_last && dice.bool() {
                        let lost = written.split_off(dice.usize(0..=written.len()));
                        first_lost = lost.first().map_or(first_lost, |(_, at, _)| first_lost.min(*at));
                    }
                    parts.entry(part).or_default().extend(written.into_iter().map(|(ms, _, line)| (ms, line)));
                }
                if is_last {
                    break;
                }
                now_ms += 3_000;
                // At the first line that was lost, or before.
                from = first_lost - if dice.bool() { 0 } else { dice.usize(0..=first_lost.min(6)) };
            }
            let found = followed(style, &parts, 3, &mut dice);
            assert_eq!(changes(&found), changes(&expected), "{name}, seed {seed}");
        }
    }
}

/// All changes of a single run count, however late some were written: a throttled stream accepts records seconds later.
#[test]
fn what_one_run_wrote_counts_whenever_it_was_written() {
    for (name, style, lines, expected) in samples_in_parts() {
        for seed in 0..100 {
            let mut dice = fastrand::Rng::with_seed(seed);
            let mut parts: BTreeMap<String, Vec<(i64, String)>> = BTreeMap::new();
            let mut late: BTreeMap<String, i64> = BTreeMap::new();
            for (at, line) in lines.iter().enumerate() {
                let part = part_of(line);
                let late_ms = late.entry(part.clone()).or_default();
                *late_ms += if dice.u32(0..8) == 0 { dice.i64(0..5_000) } else { 0 };
                parts.entry(part).or_default().push((at as i64 + *late_ms, line.clone()));
            }
            let found = followed(style, &parts, 1, &mut dice);
            assert_eq!(changes(&found), changes(&expected), "{name}, seed {seed}");
        }
    }
}

/// PostgreSQL's BEGIN and END records have different keys, so a stream of several shards has them in different ones.
#[test]
fn an_end_may_be_read_before_its_beginning_from_another_part() {
    for (name, style, lines, expected) in samples_in_parts().filter(|(name, ..)| *name == "postgres") {
        for seed in 0..100 {
            let mut dice = fastrand::Rng::with_seed(seed);
            let mut parts: BTreeMap<String, Vec<(i64, String)>> = BTreeMap::new();
            for (at, line) in lines.iter().enumerate() {
                let part = if line.contains("\"status\":\"END\"") { "ends".into() } else { part_of(line) };
                parts.entry(part).or_default().push((at as i64 / 5, line.clone()));
            }
            let found = followed(style, &parts, 3, &mut dice);
            assert_eq!(changes(&found), changes(&expected), "{name}, seed {seed}");
        }
    }
}

/// The second change of a transaction is lost and written again by the next run. Before that is read, the third one is, with the number that the
/// second had: with all numbers there, the transaction must wait.
#[test]
fn a_change_with_two_numbers_shows_that_there_are_several_runs() {
    for (name, style, lines, expected) in samples_in_parts() {
        let is = |at: &usize, status: &str| lines[*at].contains(&format!("\"status\":\"{status}\""));
        let begins = (0..lines.len()).filter(|at| is(at, "BEGIN"));
        let bounds = begins.map(|begin| (begin, (begin..lines.len()).find(|at| is(at, "END"))));
        let (begin, end) = bounds.filter_map(|(begin, end)| Some((begin, end?))).find(|it| it.1 - it.0 > 4).unwrap();
        let second = begin + 2;
        let mut runs: Vec<(i64, String)> =
            (0..=end).filter(|at| *at != second).map(|at| (0, lines[at].clone())).collect();
        let mut again = run_from(&lines, second);
        assert_eq!([again[0].0, again[1].0, again[2].0], [begin, second, second + 1], "{name}");
        let third = again.remove(2);
        let rest = std::iter::once(third).chain(again);
        runs.extend(rest.map(|(_, line)| (3_000, line)));
        let mut reader = Reader::new(style, ";start", true);
        let mut found = Vec::new();
        for (at, (written_ms, line)) in runs.iter().enumerate() {
            let part = if line.contains("\"status\":\"") { "transaction".into() } else { format!("part/{at}") };
            found.extend(reader.take_of(&part, at, *written_ms, line).unwrap());
        }
        found.retain(|transaction| !transaction.changes.is_empty());
        assert_eq!(changes(&found), changes(&expected), "{name}");
    }
}

/// What a feed hands on that reads parts in the order of time, but records of less than `apart_ms` in any order.
fn followed(
    style: Style,
    parts: &BTreeMap<String, Vec<(i64, String)>>,
    apart_ms: i64,
    dice: &mut fastrand::Rng,
) -> Vec<Transaction> {
    let mut reader = Reader::new(style, ";start", true);
    let mut read: BTreeMap<&String, usize> = parts.keys().map(|part| (part, 0)).collect();
    let mut found = Vec::new();
    loop {
        let next_ms = |part: &String| parts[part].get(read[part]).map(|(written_ms, _)| *written_ms);
        let Some(first_ms) = parts.keys().filter_map(next_ms).min() else { break };
        let is_near = |part: &&String| next_ms(part).is_some_and(|ms| ms < first_ms + apart_ms);
        let near: Vec<_> = parts.keys().filter(is_near).collect();
        let part = near[dice.usize(0..near.len())];
        let (written_ms, line) = &parts[part][read[part]];
        found.extend(reader.take_of(part, read[part], *written_ms, line).unwrap());
        *read.get_mut(part).unwrap() += 1;
    }
    found.retain(|transaction| !transaction.changes.is_empty());
    found
}

#[test]
fn changes_of_partitions_come_together() {
    for (name, style, lines, expected) in samples_in_parts() {
        for seed in 0..100 {
            let mut dice = fastrand::Rng::with_seed(seed);
            let mut parts: BTreeMap<String, Vec<&str>> = Default::default();
            lines.iter().for_each(|line| parts.entry(part_of(line)).or_default().push(line));
            let mut read: BTreeMap<&String, usize> = parts.keys().map(|part| (part, 0)).collect();
            let mut reader = Reader::new(style, ";start", true);
            let mut found: Vec<Transaction> = Vec::new();
            loop {
                let left: Vec<_> = parts.iter().filter(|(part, lines)| read[part] < lines.len()).collect();
                if left.is_empty() {
                    break;
                }
                let (part, lines) = left[dice.usize(0..left.len())];
                let offset = read[part];
                found.extend(reader.take(part, offset, lines[offset]).unwrap());
                found.retain(|transaction| !transaction.changes.is_empty());
                *read.get_mut(part).unwrap() += 1;
                // The feed is killed, and goes on from where the graph is.
                if dice.u32(0..15) == 0 {
                    let position = found.last().map_or(";start", |it| it.position.as_str());
                    let offsets = LogPosition::parse(position).unwrap().offsets;
                    reader = Reader::new(style, position, true);
                    read.iter_mut().for_each(|(part, at)| *at = offsets.get(*part).map_or(0, |it| it.parse().unwrap()));
                }
            }
            assert_eq!(changes(&found), changes(&expected), "{name}, seed {seed}");
        }
    }
}

/// A log that lacks one of its parts, and then ends, or goes on with records of another part.
struct Lacking {
    records: std::vec::IntoIter<Record>,
    is_busy: bool,
    now_ms: i64,
}

#[async_trait::async_trait]
impl LogConsumer for Lacking {
    async fn next(&mut self) -> Result<Next, FeedError> {
        if let Some(record) = self.records.next() {
            return Ok(Next::Record(record));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        self.now_ms += 50;
        let other = || record_of("other/0", 0, self.now_ms, "");
        Ok(if self.is_busy { Next::Record(Record { is_mark: true, ..other() }) } else { Next::End })
    }

    fn is_split(&self) -> bool {
        true
    }

    fn offsets(&self) -> Offsets {
        Offsets::new()
    }
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_lacks_changes_is_reported_whether_or_not_others_go_on() {
    let quiet = Duration::from_secs(3);
    for (name, style, lines, _) in samples_in_parts() {
        let records = lines.iter().filter(|line| !part_of(line).starts_with("\"person\""));
        let records: Vec<_> =
            records.enumerate().map(|(at, line)| record_of(&part_of(line), at, at as i64, line)).collect();
        for (is_busy, once) in [(false, false), (true, false), (false, true), (true, true)] {
            let log = Lacking { records: records.clone().into_iter(), is_busy, now_ms: 0 };
            let catalog = catalog(style.database);
            let following = Following { once, ..following(&catalog) };
            let tables = Tables::new(&catalog, &following, style);
            let position = LogPosition::parse(";start").unwrap();
            let opened = Opened::new(Box::new(log));
            let mut stream = LogStream::new(opened, position, tables, following, Vec::new(), style, quiet);
            let begun = tokio::time::Instant::now();
            let error = loop {
                let next = tokio::time::timeout(quiet * 10, stream.next()).await;
                match next.unwrap_or_else(|_| panic!("{name}: not reported, busy {is_busy}, once {once}")) {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("{name}: taken for complete, busy {is_busy}, once {once}"),
                    Err(error) => break error,
                }
            };
            assert_eq!(error.kind(), FeedErrorKind::Unavailable, "{name}: {error}");
            assert!(error.to_string().contains(" changes"), "{name}: {error}");
            let waited = begun.elapsed();
            assert!(waited >= quiet && waited < quiet * 2, "{name}: {waited:?}, busy {is_busy}, once {once}");
        }
    }
}
