//! The report, from whatever numbers there are.

mod costs;
mod goals;
mod latency;
mod nodes;
mod workload;

use std::{fmt::Write, fs, path::Path};

use anyhow::{Context, Result};
use hoplake_charts::{Axis, Chart, Series, write_svg};

use super::{
    caches, hindsight, latency as cold, nodes as through, saved,
    subject::{Facts, Size},
    tradeoff, warm, waves, workload as runs,
};

/// The numbers of one graph.
struct Numbers {
    facts: Facts,
    baseline: Option<runs::Figures>,
    latency: Option<cold::Figures>,
    waves: Option<waves::Figures>,
    hindsight: Option<hindsight::Figures>,
    tiers: Option<runs::Figures>,
    parallel: Option<runs::Figures>,
    stores: Option<runs::Figures>,
    blocks: Option<runs::Figures>,
    partitions: Option<runs::Figures>,
    caches: Option<caches::Figures>,
    tradeoff: Option<tradeoff::Figures>,
    warm: Option<warm::Figures>,
    nodes: Option<through::Figures>,
}

/// What is written, and where its plots go.
struct Page<'a> {
    text: String,
    plots: &'a Path,
    /// The folder of the plots as the page names it.
    link: String,
}

impl Page<'_> {
    fn say(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push_str("\n\n");
    }

    /// A table; the first row is its head.
    fn table(&mut self, rows: &[Vec<String>]) {
        for (number, row) in rows.iter().enumerate() {
            let _ = writeln!(self.text, "| {} |", row.join(" | "));
            if number == 0 {
                let _ = writeln!(self.text, "|{}", " --- |".repeat(row.len()));
            }
        }
        self.text.push('\n');
    }

    /// Lines over axes with these descriptions.
    fn plot(&mut self, name: &str, title: &str, axes: [&str; 2], lines: Vec<Series>) -> Result<()> {
        let lines = lines.into_iter().map(|line| Series { markers: line.points.clone(), ..line }).collect();
        let file = self.plots.join(format!("{name}.svg"));
        write_svg(&file, &[Chart::lines(title, axes.map(Axis::logarithmic), lines)])
            .with_context(|| format!("could not write {}", file.display()))?;
        let link = &self.link;
        let _ = writeln!(self.text, "![{title}]({link}/{name}.svg)\n");
        Ok(())
    }

    fn command(&mut self, arguments: &str) {
        self.say(&format!("`cargo run --release --manifest-path compare/Cargo.toml -- evaluate {arguments}`"));
    }
}

/// A row of a table.
fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// Bytes in the unit that suits them.
fn bytes(number: f64) -> String {
    match number {
        n if n >= 1e9 => format!("{:.2} GB", n / 1e9),
        n if n >= 1e6 => format!("{:.1} MB", n / 1e6),
        n => format!("{:.0} kB", n / 1e3),
    }
}

/// A count with thousands apart.
fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share in per cent.
fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn load(numbers: &Path, size: Size) -> Result<Option<Numbers>> {
    let mut facts = None;
    macro_rules! part {
        ($name:literal) => {
            saved(numbers, $name, size)?.map(|(of, figures)| {
                facts = Some(of);
                figures
            })
        };
    }
    let baseline = part!("baseline");
    let latency = part!("latency");
    let waves = part!("waves");
    let hindsight = part!("hindsight");
    let tiers = part!("tiers");
    let parallel = part!("parallel");
    let stores = part!("stores");
    let blocks = part!("blocks");
    let partitions = part!("partitions");
    let caches = part!("caches");
    let tradeoff = part!("tradeoff");
    let warm = part!("warm");
    let nodes = part!("nodes");
    Ok(facts.map(|facts| Numbers {
        facts,
        baseline,
        latency,
        waves,
        hindsight,
        tiers,
        parallel,
        stores,
        blocks,
        partitions,
        caches,
        tradeoff,
        warm,
        nodes,
    }))
}

/// Writes the report and its plots.
pub fn write(numbers: &Path, report: &Path) -> Result<()> {
    let plots = report.with_extension("");
    fs::create_dir_all(&plots).with_context(|| format!("could not make {}", plots.display()))?;
    let link = plots.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut page = Page { text: String::new(), plots: &plots, link };
    let graphs: Vec<Numbers> = [Size::Small, Size::Large, Size::LargeByKey]
        .into_iter()
        .filter_map(|size| load(numbers, size).transpose())
        .collect::<Result<_>>()?;
    page.say(include_str!("head.md").trim_end());
    facts(&mut page, &graphs);
    goals::write(&mut page, &graphs);
    workload::write(&mut page, &graphs)?;
    latency::write(&mut page, &graphs)?;
    workload::conditions(&mut page, &graphs)?;
    nodes::write(&mut page, &graphs);
    costs::write(&mut page, &graphs)?;
    let text = format!("{}\n", page.text.trim_end());
    fs::write(report, text).with_context(|| format!("could not write {}", report.display()))
}

fn facts(page: &mut Page<'_>, graphs: &[Numbers]) {
    let mut rows = vec![row(["graph", "vertices", "edges", "keys and adjacency", "the baseline's files"])];
    for Numbers { facts, baseline, .. } in graphs {
        let files = baseline.as_ref().and_then(|figures| figures.partitions);
        let files = files.map_or("–".into(), |(files, sum)| format!("{files}, {}", bytes(sum as f64)));
        let name = format!("{} ({})", facts.name, facts.size.name());
        rows.push(vec![name, count(facts.vertices), count(facts.edges), bytes(facts.bytes as f64), files]);
    }
    page.table(&rows);
}
