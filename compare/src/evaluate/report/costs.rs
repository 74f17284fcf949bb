//! The cost model with the study's assumptions, with today's prices, and with what was measured here.

use anyhow::Result;
use hoplake::StoreProfile;
use hoplake_charts::Series;
use hoplake_costs::{CostModel, InstanceTable, Offer, Workload};

use super::{Numbers, Page, count, percent, row};
use crate::evaluate::run::Run;

/// What the study calls 5 TB.
const STUDY_BYTES: u64 = 5 << 40;

/// 5 TB as disks are sold.
const LIST_BYTES: u64 = 5_000_000_000_000;

/// The share of accesses that caches serve, and how many of the others share a request, in a run.
fn measured(run: &Run) -> (f64, f64) {
    let hit_ratio = 1.0 - (run.tiers.store + run.tiers.shared) as f64 / run.tiers.all().max(1) as f64;
    (hit_ratio, run.accesses as f64 * (1.0 - hit_ratio) / run.requests.max(1) as f64)
}

/// Tables and a plot.
pub fn write(page: &mut Page<'_>, graphs: &[Numbers]) -> Result<()> {
    page.say("## What it costs");
    page.say("`hoplake cost --size 5TB --accesses-per-second 1000` evaluates the same model.");
    page.say(
        "The study's model: storage, instances and requests against instances whose disks hold the graph, without \
         caching and coalesced requests. *Measured* adds both, from the workload at 20 traversals at once with 256 MiB \
         of memory: the share of blocks that memory served, and how many of the other accesses (look-ups of one \
         vertex's neighbours) shared a request. These figures are of these graphs and this workload; other graphs \
         differ.",
    );
    let run = graphs.iter().rev().find_map(|of| {
        let runs = &of.tiers.as_ref()?.runs;
        runs.iter().map(|labelled| &labelled.run).find(|run| run.at_once == 20 && run.manner == "BFS")
    });
    let plain = Workload::new(STUDY_BYTES, 0.0);
    let mut workloads = vec![("as the study".to_owned(), plain)];
    if let Some(run) = run {
        let (hit_ratio, accesses_per_request) = measured(run);
        let words = format!("measured: {} served, {accesses_per_request:.1} accesses a request", percent(hit_ratio));
        let accesses_per_request = accesses_per_request.max(1e-3);
        workloads.push((words, Workload { hit_ratio, accesses_per_request, ..plain }));
    }
    let hypothetical = Workload { hit_ratio: 0.9, accesses_per_request: 4.0, ..plain };
    workloads.push(("assumed: 90.0 % served, 4 accesses a request".to_owned(), hypothetical));
    for (words, slug, table, size_bytes) in [
        ("The study's two instances, at its prices", "study", InstanceTable::study(), STUDY_BYTES),
        ("List prices of 2025-01, with storage-optimised instances", "list", InstanceTable::shipped(), LIST_BYTES),
    ] {
        workloads.iter_mut().for_each(|(_, workload)| workload.size_bytes = size_bytes);
        let model = CostModel::new(StoreProfile::s3_standard().prices.clone(), table);
        page.say(&format!("**{words}**, $/h for 5 TB:"));
        let mut rows = vec![row([
            "assumptions",
            "1,000 accesses/s: bucket",
            "disks",
            "100,000 accesses/s: bucket",
            "disks",
            "disks cheaper from",
        ])];
        for (words, workload) in &workloads {
            rows.push(cells(&model, words, workload));
        }
        page.table(&rows);
        let axes = ["accesses a second", "US dollars an hour"];
        page.plot(&format!("costs-{slug}"), words, axes, lines(&model, &workloads))?;
    }
    page.say(
        "In short: with the study's instances the bucket is cheaper up to thousands of accesses per second even \
         without a cache. At list prices a storage-optimised instance holds the same 5 TB for 0.9 to 1.4 $/h, so \
         without caching disks are cheaper from a few hundred accesses per second on; the bucket stays cheaper because \
         most accesses never become a request. Disks here are one copy: the graph is lost with the instance. A graph \
         without queries costs only its storage in the bucket, and an instance around the clock on disks.",
    );
    Ok(())
}

fn usd(offer: Option<Offer<'_>>) -> String {
    offer.map_or("–".into(), |offer| {
        format!("{:.2} ({} × {})", offer.usd_per_hour(), offer.count, offer.instance.name)
    })
}

fn cells(model: &CostModel, words: &str, workload: &Workload) -> Vec<String> {
    let mut cells = vec![words.to_owned()];
    for rate in [1_000.0, 100_000.0] {
        let workload = workload.at(rate);
        cells.extend([usd(model.object_storage(&workload)), usd(model.local_disks(&workload))]);
    }
    let rate = model.break_even(workload);
    cells.push(rate.map_or("never up to 10 M/s".into(), |rate| format!("{} accesses/s", count(rate.ceil() as u64))));
    cells
}

fn lines(model: &CostModel, workloads: &[(String, Workload)]) -> Vec<Series> {
    let rates: Vec<f64> = (0..=100).map(|step| 10f64.powf(f64::from(step) / 20.0)).collect();
    let stored = |(words, workload): &(String, Workload)| {
        let usd = |rate: &f64| Some((*rate, model.object_storage(&workload.at(*rate))?.usd_per_hour()));
        Series::line(format!("bucket, {words}"), rates.iter().filter_map(usd).collect())
    };
    let mut lines: Vec<Series> = workloads.iter().map(stored).collect();
    let disks = |rate: &f64| Some((*rate, model.local_disks(&workloads[0].1.at(*rate))?.usd_per_hour()));
    lines.push(Series::line("instances with local disks", rates.iter().filter_map(disks).collect()));
    lines
}
