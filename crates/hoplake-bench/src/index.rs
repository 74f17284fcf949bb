//! Property indexes: their size, how long a load and a later build take, and look-ups next to scans, from an empty process.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::PathBuf,
    time::Instant,
};

use anyhow::{Context, Result};
use clap::Args;
use hoplake::{Graph, IndexSettings, LoadOptions, OpenSettings, ReadSettings, ScanRequest, Store};

/// What to measure.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Vertices.
    #[arg(long, default_value_t = 10_000_000)]
    vertices: u64,
    /// Where the files and the graph go.
    #[arg(long, default_value = "bench-data")]
    folder: PathBuf,
}

/// Prints sizes and times, and a row for each condition.
pub fn run(arguments: &Arguments) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(measure(arguments))
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let folder = arguments.folder.join(format!("index-{}", arguments.vertices));
    fs::create_dir_all(&folder)?;
    let file = folder.join("people.csv");
    write_people(arguments.vertices, &file)?;
    let graph = folder.join("graph.hoplake");
    if graph.exists() {
        fs::remove_dir_all(&graph)?;
    }
    let url = graph.to_str().context("the folder is not UTF-8")?;
    let plain = hoplake::load(url, LoadOptions::from_paths([&file])).await?;
    let replace = true;
    let indexes = vec!["people.name".to_owned(), "people.age".to_owned()];
    let indexed = hoplake::load(url, LoadOptions { indexes, replace, ..LoadOptions::from_paths([&file]) }).await?;
    println!("load: {:.1} s, with two indexes {:.1} s", plain.time.as_secs_f64(), indexed.time.as_secs_f64());
    let store = Store::open(url)?;
    let begun = Instant::now();
    let built = Graph::create_index(&store, "people.city", &IndexSettings::default()).await?;
    println!("index create of {} entries: {:.1} s\n", built.entries, begun.elapsed().as_secs_f64());
    println!("| index | entries | bytes per entry |\n| --- | --- | --- |");
    for size in Graph::open(url).await?.indexes().await? {
        println!("| {} | {} | {:.2} |", size.index.property, size.entries, size.bytes as f64 / size.entries as f64);
    }
    println!(
        "\n| condition | index | found | waves | requests | bytes | ms |\n| --- | --- | --- | --- | --- | --- | --- |"
    );
    let versions = [("no", plain.version), ("yes", built.version)];
    for condition in [
        "name = n1234567",
        "name in (n1234567, n7654321, n42, nobody)",
        "name starts with n12345",
        "name between n5000000 and n5000999",
        "age = 30",
        "city = c77",
        "city = c77 and age < 30",
    ] {
        for (has_index, version) in versions {
            let read = ReadSettings { full_read_bytes_max: 0, ..ReadSettings::default() };
            let settings = OpenSettings { version: Some(version), read, ..OpenSettings::default() };
            let opened = Graph::open_with(store.clone(), &settings).await?;
            let mut query = opened.query();
            let request = ScanRequest { condition: Some(condition.parse()?), ..ScanRequest::default() };
            let begun = Instant::now();
            let found = query.count_found(&request).await?;
            let ms = begun.elapsed().as_secs_f64() * 1e3;
            let cost = query.cost();
            println!(
                "| `{condition}` | {has_index} | {found} | {} | {} | {} | {ms:.2} |",
                cost.waves, cost.requests, cost.store_bytes
            );
        }
    }
    Ok(())
}

/// People with names of their own, in no order, and with few ages and cities.
fn write_people(vertices: u64, file: &PathBuf) -> Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    writeln!(out, ":ID(Person),name,age:long,city")?;
    for key in 0..vertices {
        // A prime that divides no power of ten: each name once.
        let name = key * 7_919 % vertices;
        writeln!(out, "{key},n{name},{},c{}", key % 97, key % 50_021)?;
    }
    Ok(out.flush()?)
}
