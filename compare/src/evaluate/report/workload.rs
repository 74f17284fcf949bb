//! The workload in tables: against the baseline, and under other conditions.

use anyhow::Result;
use hoplake_charts::Series;

use super::{Numbers, Page, bytes, count, percent, row};
use crate::evaluate::{
    run::Run,
    workload::{Figures, Labelled},
};

/// The run of a system in a manner under a condition.
pub fn find<'a>(figures: &'a Figures, condition: &str, system: &str, manner: &str, at_once: usize) -> Option<&'a Run> {
    let fits = |labelled: &&Labelled| {
        let run = &labelled.run;
        labelled.condition == condition && run.system == system && run.manner == manner && run.at_once == at_once
    };
    figures.runs.iter().find(fits).map(|labelled| &labelled.run)
}

fn seconds(ms: f64) -> String {
    format!("{:.2}", ms / 1e3)
}

/// Hoplake against the baseline.
pub fn write(page: &mut Page<'_>, graphs: &[Numbers]) -> Result<()> {
    page.say("## The workload against the baseline");
    page.command("--part baseline");
    page.say(
        "140 queries from empty caches, breadth-first and depth-first, one at a time and 10 at once. The *ratio* is \
         the baseline's total divided by ours, with the same strategy, the same budget and the same concurrency; above \
         1 Hoplake is faster.",
    );
    for numbers in graphs {
        let Some(figures) = &numbers.baseline else { continue };
        page.say(&format!("### {}", numbers.facts.name));
        totals(page, figures);
        by_query(page, figures);
    }
    Ok(())
}

fn totals(page: &mut Page<'_>, figures: &Figures) {
    let mut rows = vec![row([
        "memory",
        "at once",
        "",
        "strategy",
        "store, s",
        "processor, s",
        "total, s",
        "ratio",
        "requests",
        "bytes",
        "dollars",
        "p50, ms",
        "p99, ms",
    ])];
    for Labelled { condition, run, .. } in &figures.runs {
        let strategy = if run.manner.starts_with("DFS") { "DFS" } else { "BFS" };
        let baseline = find(figures, condition, "baseline", strategy, run.at_once).filter(|_| run.system == "hoplake");
        rows.push(vec![
            condition.clone(),
            run.at_once.to_string(),
            run.system.clone(),
            run.manner.clone(),
            seconds(run.took.store_ms),
            seconds(run.took.processor_ms),
            format!("{:.2}", run.total_s()),
            baseline.map_or("–".into(), |baseline| format!("{:.1}", baseline.total_s() / run.total_s())),
            count(run.requests),
            bytes(run.bytes as f64),
            format!("{:.6}", run.usd),
            format!("{:.1}", run.all.p50),
            format!("{:.1}", run.all.p99),
        ]);
    }
    page.table(&rows);
}

fn by_query(page: &mut Page<'_>, figures: &Figures) {
    page.say("By query, one at a time, 256 MiB, p50 and p99 of 20 sources in milliseconds of store and processor:");
    let columns = [("baseline", "BFS"), ("hoplake", "BFS"), ("baseline", "DFS"), ("hoplake", "DFS")];
    let mut head = row(["query"]);
    head.extend(columns.iter().map(|(system, strategy)| format!("{system}, {strategy}")));
    let runs: Vec<_> =
        columns.iter().filter_map(|(system, manner)| find(figures, "256 MiB", system, manner, 1)).collect();
    let mut rows = vec![head];
    for query in runs.first().map(|run| run.queries.keys()).into_iter().flatten() {
        let mut cells = vec![query.clone()];
        let cell =
            |run: &&Run| run.queries.get(query).map_or("–".into(), |of| format!("{:.1}, {:.1}", of.p50, of.p99));
        cells.extend(runs.iter().map(cell));
        rows.push(cells);
    }
    page.table(&rows);
}

/// Tiers, parallelism, stores, blocks, partitions, policies.
pub fn conditions(page: &mut Page<'_>, graphs: &[Numbers]) -> Result<()> {
    tiers(page, graphs);
    parallel(page, graphs)?;
    stores(page, graphs);
    blocks(page, graphs)?;
    partitions(page, graphs)?;
    caches(page, graphs)
}

fn tiers(page: &mut Page<'_>, graphs: &[Numbers]) {
    page.say("## Where blocks are found");
    page.command("--part tiers");
    page.say(
        "The share of the blocks that 140 queries read, by tier. *Shared* blocks arrived with a request of another \
         traversal. Reading ahead is off by default: breadth-first requests a whole frontier at once anyway. Small \
         segments are read whole only in the row that says so, so that in the others a query requested each block.",
    );
    for numbers in graphs {
        let Some(figures) = &numbers.tiers else { continue };
        page.say(&format!("### {}", numbers.facts.name));
        let mut rows = vec![row([
            "caches",
            "at once",
            "strategy",
            "blocks",
            "memory",
            "read ahead",
            "disk",
            "shared",
            "store",
            "requests",
            "total, s",
        ])];
        for Labelled { condition, run, .. } in &figures.runs {
            let tiers = &run.tiers;
            let all = run.tiers.all().max(1) as f64;
            let mut cells = vec![condition.clone(), run.at_once.to_string(), run.manner.clone(), count(tiers.all())];
            let shares = [tiers.memory, tiers.prefetched, tiers.disk, tiers.shared, tiers.store];
            cells.extend(shares.map(|blocks| percent(blocks as f64 / all)));
            cells.extend([count(run.requests), format!("{:.2}", run.total_s())]);
            rows.push(cells);
        }
        page.table(&rows);
    }
}

fn points(figures: &Figures, fits: impl Fn(&Labelled) -> bool, y: impl Fn(&Run) -> f64) -> Vec<(f64, f64)> {
    figures.runs.iter().filter(|run| fits(run)).map(|run| (run.value, y(&run.run))).collect()
}

fn parallel(page: &mut Page<'_>, graphs: &[Numbers]) -> Result<()> {
    page.say("## Parallelism");
    page.command("--part parallel");
    page.say("Store time of the workload in seconds. Processor time, on one thread, does not depend on parallelism.");
    for numbers in graphs {
        let Some(figures) = &numbers.parallel else { continue };
        let kinds = [
            ("BFS, traversals at once", "traversals at once", "BFS"),
            ("DFS, traversals at once", "traversals at once", "DFS"),
            ("DFS, vertices at a time", "vertices at a time", "DFS"),
        ];
        let line = |(name, condition, strategy): (&str, &str, &str)| {
            let is_meant = |run: &Labelled| run.condition == condition && run.run.manner.starts_with(strategy);
            Series::line(name, points(figures, is_meant, |run| run.took.store_ms / 1e3))
        };
        let lines: Vec<Series> = kinds.into_iter().map(line).collect();
        let mut rows = vec![row(["parallelism", kinds[0].0, kinds[1].0, kinds[2].0])];
        for (at, (number, _)) in lines[0].points.iter().enumerate() {
            let mut cells = vec![number.to_string()];
            cells.extend(
                lines.iter().map(|line| line.points.get(at).map_or("–".into(), |point| format!("{:.2}", point.1))),
            );
            rows.push(cells);
        }
        page.say(&format!("### {}", numbers.facts.name));
        page.table(&rows);
        let title = format!("140 queries, {}", numbers.facts.name);
        let name = format!("parallelism-{}", numbers.facts.size.name());
        page.plot(&name, &title, ["parallelism", "seconds of store time"], lines)?;
    }
    Ok(())
}

fn stores(page: &mut Page<'_>, graphs: &[Numbers]) {
    page.say("## S3 Standard and S3 Express One Zone");
    page.command("--part stores");
    let mut rows =
        vec![row(["graph", "store", "", "strategy", "store, s", "total, s", "requests", "bytes", "dollars"])];
    for numbers in graphs {
        for Labelled { condition, run, .. } in numbers.stores.iter().flat_map(|figures| &figures.runs) {
            rows.push(vec![
                numbers.facts.name.clone(),
                condition.clone(),
                run.system.clone(),
                run.manner.clone(),
                seconds(run.took.store_ms),
                format!("{:.2}", run.total_s()),
                count(run.requests),
                bytes(run.bytes as f64),
                format!("{:.6}", run.usd),
            ]);
        }
    }
    page.table(&rows);
}

fn blocks(page: &mut Page<'_>, graphs: &[Numbers]) -> Result<()> {
    page.say("## Size of blocks");
    page.command("--part blocks --size small");
    for numbers in graphs {
        let Some(figures) = &numbers.blocks else { continue };
        let mut rows = vec![row(["blocks", "store", "store, s", "processor, s", "requests", "bytes", "dollars"])];
        for Labelled { condition, run, .. } in &figures.runs {
            rows.push(vec![
                condition.clone(),
                run.store.clone(),
                seconds(run.took.store_ms),
                seconds(run.took.processor_ms),
                count(run.requests),
                bytes(run.bytes as f64),
                format!("{:.6}", run.usd),
            ]);
        }
        page.table(&rows);
        let line = |store: &str| {
            Series::line(store, points(figures, |run| run.run.store == store, |run| run.took.store_ms / 1e3))
        };
        let lines = ["s3-standard", "s3-express"].map(line).into_iter().collect();
        let title = format!("140 queries breadth-first, {}", numbers.facts.name);
        page.plot("blocks", &title, ["KiB of a block", "seconds of store time"], lines)?;
    }
    Ok(())
}

fn partitions(page: &mut Page<'_>, graphs: &[Numbers]) -> Result<()> {
    page.say("## Size of the baseline's partitions");
    page.command("--part partitions");
    for numbers in graphs {
        let Some(figures) = &numbers.partitions else { continue };
        let line = |at_once: usize| {
            let points = points(figures, |run| run.run.at_once == at_once, Run::total_s);
            Series::line(format!("{at_once} at once"), points)
        };
        let lines = vec![line(1), line(10)];
        page.say(&format!("{}, 256 MiB, breadth-first, total seconds:", numbers.facts.name));
        let mut rows = vec![row(["partition, MB", "1 at once", "10 at once"])];
        for (one, ten) in lines[0].points.iter().zip(&lines[1].points) {
            rows.push(vec![one.0.to_string(), format!("{:.2}", one.1), format!("{:.2}", ten.1)]);
        }
        page.table(&rows);
        let title = format!("The baseline's 140 queries, {}", numbers.facts.name);
        let name = format!("partitions-{}", numbers.facts.size.name());
        page.plot(&name, &title, ["MB of a partition", "seconds in total"], lines)?;
    }
    Ok(())
}

fn caches(page: &mut Page<'_>, graphs: &[Numbers]) -> Result<()> {
    page.say("## Eviction policies and λ");
    page.command("--part caches");
    page.say(
        "Ten rounds of the workload, each from other sources, recorded without a cache and replayed through the \
         policies with budgets of a half to a thirty-second of the distinct blocks. `+retention-cost` weighs a block by its \
         retention cost. *Belady* knows the future; no policy can exceed the *bound*. LRFU's λ ranges from frequency \
         alone (0) to recency alone (1).",
    );
    for numbers in graphs {
        let Some(figures) = &numbers.caches else { continue };
        page.say(&format!(
            "### {}\n\n{} accesses to {} of distinct blocks. Accesses served, by budget:",
            numbers.facts.name,
            count(figures.accesses),
            bytes(figures.distinct_bytes as f64)
        ));
        let mut lines: Vec<Series> = Vec::new();
        for outcome in &figures.outcomes {
            let point = (outcome.cache_bytes_max as f64 / 1e6, outcome.hit_ratio);
            match lines.iter_mut().find(|line| line.name == outcome.policy) {
                Some(line) => line.points.push(point),
                None => lines.push(Series::line(&outcome.policy, vec![point])),
            }
        }
        let mut head = row(["policy"]);
        head.extend(lines.first().into_iter().flat_map(|line| &line.points).map(|point| format!("{:.2} MB", point.0)));
        let mut rows = vec![head];
        for line in &lines {
            let mut cells = vec![line.name.clone()];
            cells.extend(line.points.iter().map(|point| percent(point.1)));
            rows.push(cells);
        }
        page.table(&rows);
        let lambda = figures.lambda.iter().map(|outcome| format!("{} {}", outcome.policy, percent(outcome.hit_ratio)));
        let budget = figures.lambda.first().map_or(0.0, |outcome| outcome.cache_bytes_max as f64);
        page.say(&format!("λ with {}: {}.", bytes(budget), lambda.collect::<Vec<_>>().join(", ")));
        lines.retain(|line| !line.name.contains("retention-cost"));
        let title = format!("Accesses served, {}", numbers.facts.name);
        let name = format!("policies-{}", numbers.facts.size.name());
        page.plot(&name, &title, ["MB of cache", "share of accesses"], lines)?;
    }
    Ok(())
}
