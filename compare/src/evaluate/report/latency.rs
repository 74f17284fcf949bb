//! Cold queries, waves, and dollars against hindsight, in tables.

use anyhow::Result;
use hoplake_charts::Series;

use super::{Numbers, Page, bytes, count, percent, row};
use crate::evaluate::latency::{Cold, Figures};

/// All of it.
pub fn write(page: &mut Page<'_>, graphs: &[Numbers]) -> Result<()> {
    cold(page, graphs)?;
    waves(page, graphs);
    hindsight(page, graphs);
    tradeoff(page, graphs);
    warm(page, graphs);
    Ok(())
}

fn cold(page: &mut Page<'_>, graphs: &[Numbers]) -> Result<()> {
    page.say("## Cold queries by key");
    page.command("--part latency");
    page.say(
        "Sources are drawn uniformly over all vertices. *Mixed* queries follow at each hop one edge label and \
         direction, drawn by seed among those that leave the current label, whatever the number of edges (the third \
         hop of such a walk may follow a country's millions of messages). *Knows* queries start from persons and \
         follow `knows` both ways. Each query runs on S3 Standard, on an open graph, with every cache emptied before, \
         and includes the key look-up.",
    );
    for numbers in graphs {
        let Some(figures) = &numbers.latency else { continue };
        page.say(&format!(
            "### {}\n\nOpening took {} waves, {} requests and {}.",
            numbers.facts.name,
            figures.open_waves,
            figures.open_requests,
            bytes(figures.open_bytes as f64)
        ));
        let mut rows = vec![row([
            "queries",
            "sources",
            "hops",
            "strategy",
            "store p50, ms",
            "p99",
            "with processor p50",
            "p99",
            "requests p50",
            "p99",
            "bytes p50",
            "p99",
            "edges p99",
            "hedges",
            "waves",
        ])];
        rows.extend(figures.cold.iter().map(cells));
        page.table(&rows);
        deciles(page, numbers, figures)?;
    }
    Ok(())
}

fn cells(cold: &Cold) -> Vec<String> {
    let waves = cold
        .waves
        .iter()
        .map(|(waves, queries)| format!("{waves}: {}", percent(*queries as f64 / cold.queries as f64)));
    vec![
        cold.kind.clone(),
        count(cold.queries as u64),
        cold.hops.to_string(),
        cold.strategy.clone(),
        format!("{:.0}", cold.store_ms.p50),
        format!("{:.0}", cold.store_ms.p99),
        format!("{:.1}", cold.total_ms.p50),
        format!("{:.1}", cold.total_ms.p99),
        format!("{:.0}", cold.requests.p50),
        format!("{:.0}", cold.requests.p99),
        bytes(cold.bytes.p50),
        bytes(cold.bytes.p99),
        count(cold.edges.p99 as u64),
        percent(cold.hedges_share),
        waves.collect::<Vec<_>>().join("; "),
    ]
}

fn deciles(page: &mut Page<'_>, numbers: &Numbers, figures: &Figures) -> Result<()> {
    page.say("By decile of the source's degree (edges of all labels, both directions), store time p50 and p99 in ms:");
    let level: Vec<_> = figures.cold.iter().filter(|cold| cold.strategy == "level by level").collect();
    for kind in ["mixed", "knows"] {
        let of: Vec<_> = level.iter().filter(|cold| cold.kind == kind).collect();
        let mut rows = vec![row(["degree", "1 hop", "2 hops", "3 hops"])];
        for (at, decile) in of.first().into_iter().flat_map(|cold| &cold.deciles).enumerate() {
            let mut cells = vec![format!("{} to {}", decile.degree_min, decile.degree_max)];
            let cell = |cold: &&&Cold| {
                cold.deciles
                    .get(at)
                    .map_or("–".into(), |of| format!("{:.0}, {:.0}", of.store_ms.p50, of.store_ms.p99))
            };
            cells.extend(of.iter().map(cell));
            rows.push(cells);
        }
        page.say(&format!("*{kind}*"));
        page.table(&rows);
        let line = |cold: &&&Cold| {
            let points = (1..).zip(&cold.deciles).map(|(at, of)| (f64::from(at), of.store_ms.p99)).collect();
            Series::line(format!("{} hops, p99", cold.hops), points)
        };
        let title = format!("Cold queries, {kind}, {}", numbers.facts.name);
        let name = format!("cold-{kind}-{}", numbers.facts.size.name());
        page.plot(&name, &title, ["decile of degree", "ms of store time"], of.iter().map(line).collect())?;
    }
    Ok(())
}

fn waves(page: &mut Page<'_>, graphs: &[Numbers]) {
    page.say("## Waves, hedges and idle time");
    page.command("--part waves");
    let Some(figures) = graphs.iter().find_map(|of| of.waves.as_ref()) else { return };
    page.say("A wave of 64 ranges of 16 KiB that are not coalesced. *Extra* requests are hedges and retries.");
    let mut rows =
        vec![row(["condition", "waves", "p50, ms", "p99, ms", "worst, ms", "extra requests", "of these retries"])];
    for repeated in &figures.repeated {
        rows.push(vec![
            repeated.name.clone(),
            count(repeated.waves as u64),
            format!("{:.0}", repeated.store_ms.p50),
            format!("{:.0}", repeated.store_ms.p99),
            format!("{:.0}", repeated.store_ms.max),
            format!("{:.2} %", 100.0 * repeated.extra_share),
            format!("{:.2} %", 100.0 * repeated.retries_share),
        ]);
    }
    page.table(&rows);
    page.say("The maximum of waves over the 20 sources of each query, with the key look-up and every cache empty:");
    let mut rows = vec![row([
        "graph",
        "query",
        "hops k",
        "open graph (goal k + 1)",
        "empty process (goal k + 3)",
        "requests p50",
        "most",
    ])];
    for numbers in graphs {
        for of in numbers.waves.iter().flat_map(|figures| &figures.queries) {
            rows.push(vec![
                numbers.facts.name.clone(),
                of.query.clone(),
                of.hops.to_string(),
                of.open.to_string(),
                of.empty.to_string(),
                format!("{:.0}", of.requests.p50),
                format!("{:.0}", of.requests.max),
            ]);
        }
    }
    page.table(&rows);
    let idle: u64 = graphs.iter().filter_map(|of| of.waves.as_ref()).map(|of| of.idle_requests).sum();
    page.say(&format!(
        "After each of these queries an hour of virtual time passed without one: {idle} requests in all of them."
    ));
}

fn hindsight(page: &mut Page<'_>, graphs: &[Numbers]) {
    page.say("## Dollars against the best plan in hindsight");
    page.command("--part hindsight");
    page.say(
        "The workload breadth-first, one at a time, 256 MiB. The best plan knows each wave's blocks and has the same \
         caches. It only chooses how to cut them into ranges, for the fewest dollars (dynamic programming), once with \
         requests of 4 MiB at most, as Hoplake's, and once with any length. A byte costs the store's price plus the \
         network of c7gn.xlarge, 0.2496 $/h at 10 Gbit/s: 0.055 $ per TB. Hoplake's cost includes hedges.",
    );
    page.say(
        "Hoplake differs from that plan in two ways. Its planner minimises dollars and waiting time together, with an \
         hour of waiting at 0.5 $ by default; with 0 it minimises dollars alone, and the excess above 1 is hedges and \
         the coarseness of its choices. It also reads small segments whole in the background of the first query that \
         reads from them, which the best plan for each wave's blocks would not do and which saves later waves: below 1 \
         it is cheaper than that plan.",
    );
    let mut rows = vec![row([
        "graph",
        "store",
        "waiting, $/h",
        "small segments",
        "requests",
        "bytes",
        "requests, $",
        "bytes, $",
        "by the best with 4 MiB",
        "by the best of any length",
        "store, s",
    ])];
    for numbers in graphs {
        for account in numbers.hindsight.iter().flat_map(|figures| &figures.accounts) {
            rows.push(vec![
                numbers.facts.name.clone(),
                account.store.clone(),
                account.waiting_usd_per_hour.to_string(),
                if account.small_whole { "whole" } else { "as asked" }.to_owned(),
                count(account.requests),
                bytes(account.bytes as f64),
                format!("{:.7}", account.requests_usd),
                format!("{:.7}", account.bytes_usd),
                format!("{:.3}", account.usd() / account.bounded.usd),
                format!("{:.3}", account.usd() / account.unbounded.usd),
                format!("{:.2}", account.store_ms / 1e3),
            ]);
        }
    }
    page.table(&rows);
}

fn tradeoff(page: &mut Page<'_>, graphs: &[Numbers]) {
    page.say("## What waiting is worth");
    page.command("--part tradeoff");
    page.say(
        "`waiting_usd_per_hour` is the weight of time against dollars in the planner: coalescing ranges saves \
         requests, and longer answers take longer. Cold two-hop queries along `knows`, and the workload's dollars, on \
         S3 Standard.",
    );
    let mut rows = vec![row([
        "graph",
        "waiting, $/h",
        "store p50, ms",
        "p99",
        "requests p50",
        "workload, requests",
        "dollars by the best plan",
    ])];
    for numbers in graphs {
        for point in numbers.tradeoff.iter().flat_map(|figures| &figures.points) {
            rows.push(vec![
                numbers.facts.name.clone(),
                point.account.waiting_usd_per_hour.to_string(),
                format!("{:.0}", point.store_ms.p50),
                format!("{:.0}", point.store_ms.p99),
                format!("{:.0}", point.requests.p50),
                count(point.account.requests),
                format!("{:.3}", point.account.usd() / point.account.bounded.usd),
            ]);
        }
    }
    page.table(&rows);
}

fn warm(page: &mut Page<'_>, graphs: &[Numbers]) {
    page.say("## Warm memory");
    page.command("--part warm");
    page.say(
        "One hop along `knows` from a person's key, all blocks in memory, embedded, in real time. *On two free cores* \
         is the rate of two idle cores, computed from processor time.",
    );
    let mut rows = vec![row([
        "graph",
        "p50, us",
        "p99, us",
        "queries/s, 1 thread",
        "2 threads p50, us",
        "p99, us",
        "queries/s, 2 threads",
        "on two free cores",
    ])];
    for numbers in graphs {
        let Some(warm) = &numbers.warm else { continue };
        rows.push(vec![
            numbers.facts.name.clone(),
            format!("{:.1}", warm.one.p50),
            format!("{:.1}", warm.one.p99),
            count(warm.one_per_second as u64),
            format!("{:.1}", warm.two.p50),
            format!("{:.1}", warm.two.p99),
            count(warm.two_per_second as u64),
            count(warm.two_per_processor_second as u64),
        ]);
    }
    page.table(&rows);
}
