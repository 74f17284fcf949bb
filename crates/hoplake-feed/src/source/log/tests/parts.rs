//! Logs of several parts, as Kafka and Kinesis have them.

use std::collections::BTreeMap;

use super::*;

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

/// A producer is killed while it writes, and begins again, also within a transaction. Whatever it had on its way, and however the parts are
/// read, each transaction is handed on once, and whole.
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
            let mut reader = Reader::new(style, ";start", true);
            let mut read: BTreeMap<&String, usize> = parts.keys().map(|part| (part, 0)).collect();
            let mut found = Vec::new();
            loop {
                let next = |part: &String| parts[part].get(read[part]).map(|(written_ms, _)| *written_ms);
                let Some(first_ms) = parts.keys().filter_map(next).min() else { break };
                // Those of some milliseconds come in any order.
                let those: Vec<_> =
                    parts.keys().filter(|part| next(part).is_some_and(|ms| ms < first_ms + 3)).collect();
                let part = those[dice.usize(0..those.len())];
                let (written_ms, line) = &parts[part][read[part]];
                found.extend(reader.take_of(part, read[part], *written_ms, line).unwrap());
                *read.get_mut(part).unwrap() += 1;
            }
            found.retain(|transaction| !transaction.changes.is_empty());
            assert_eq!(changes(&found), changes(&expected), "{name}, seed {seed}");
        }
    }
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
