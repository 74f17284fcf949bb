//! What compactions cost along the update stream of a social network: waves, requests and bytes.
//!
//! The graph is loaded in memory, and each commit has the next events of the stream. Requests are counted by the
//! compaction itself, which tests hold against a store that counts.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use clap::Args;
use hoplake::{Commit, CompactionSettings, Graph, LoadOptions, OpenSettings, Store, Value, load_with};
use hoplake_testkit::snb;
use object_store::memory::InMemory;

/// How much to commit before a compaction.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// The data set, with an update stream; found as the tests find it.
    #[arg(long, default_value = "snb-sf0.1-datagen")]
    data: String,
    /// Commits before the compaction; a row for each.
    #[arg(long, value_delimiter = ',', default_values_t = [12, 214])]
    commits: Vec<usize>,
    /// Events of a commit.
    #[arg(long, default_value_t = 1_000)]
    events: usize,
}

/// Prints a row for each number of commits.
pub fn run(arguments: &Arguments) -> Result<()> {
    ensure!(snb::available(&arguments.data), "there is no data set {}; set HOPLAKE_TEST_DATA", arguments.data);
    println!(
        "| commits | compaction | sorted runs | merged into | waves | GETs | PUTs | MB read | MB written | seconds |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    tokio::runtime::Runtime::new()?.block_on(async {
        for commits in &arguments.commits {
            for everything in [false, true] {
                measure(arguments, *commits, everything).await?;
            }
        }
        Ok(())
    })
}

async fn measure(arguments: &Arguments, commits: usize, everything: bool) -> Result<()> {
    let store = Store::new(Arc::new(InMemory::new()), "graph".into(), "s3://memory/graph");
    let data = snb::extract(&arguments.data);
    load_with(store.clone(), LoadOptions::from_paths([&data]), Arc::new(())).await?;
    let mut graph = Graph::open_with(store.clone(), &OpenSettings::default()).await?;
    let events = events(&data)?;
    for part in events.chunks(arguments.events).take(commits) {
        let mut commit = graph.begin();
        part.iter().try_for_each(|event| add(&mut commit, event).with_context(|| format!("event {event:?}")))?;
        commit.commit().await?;
        graph.refresh().await?;
    }
    let begun = std::time::Instant::now();
    let done = Graph::compact(&store, &CompactionSettings { everything, ..CompactionSettings::default() }).await?;
    println!(
        "| {commits} | {} | {} | {} | {} | {} | {} | {:.1} | {:.1} | {:.2} |",
        if everything { "everything" } else { "what is due" },
        done.runs,
        done.merges,
        done.cost.waves,
        done.cost.requests,
        done.cost.puts,
        done.bytes_read as f64 / 1e6,
        done.bytes_written as f64 / 1e6,
        begun.elapsed().as_secs_f64(),
    );
    Ok(())
}

/// The stream's events, by time.
fn events(data: &Path) -> Result<Vec<Vec<String>>> {
    let folder = data.join("social_network");
    let mut events = Vec::new();
    for name in ["updateStream_0_0_person.csv", "updateStream_0_0_forum.csv"] {
        let file = File::open(folder.join(name)).with_context(|| format!("{}/{name}", folder.display()))?;
        for line in BufReader::new(file).lines() {
            let fields: Vec<String> = line?.split('|').map(str::to_owned).collect();
            events.push((fields[0].parse::<i64>()?, fields));
        }
    }
    // Stable: of events of one time, persons come before what they do.
    events.sort_by_key(|(time, _)| *time);
    Ok(events.into_iter().map(|(_, fields)| fields).collect())
}

/// An event's fields, from the third on: time and dependency are not part of the graph.
struct Fields<'a>(&'a [String]);

impl Fields<'_> {
    fn number(&self, at: usize) -> Result<i64> {
        Ok(self.0[at + 3].parse()?)
    }

    fn text(&self, at: usize) -> &str {
        &self.0[at + 3]
    }

    fn numbers(&self, at: usize) -> Result<Vec<i64>> {
        self.text(at).split(';').filter(|text| !text.is_empty()).map(|text| Ok(text.parse()?)).collect()
    }

    /// Properties of these names from a column on, in the types that the load gives them.
    fn properties<'n>(&self, first: usize, names: &[&'n str]) -> Result<Vec<(&'n str, Value)>> {
        let property = |(at, name): (usize, &&'n str)| {
            let value = match *name {
                "creationDate" | "joinDate" => Value::Timestamp(self.number(at)? * 1_000),
                "birthday" => Value::Date(i32::try_from(self.number(at)? / 86_400_000)?),
                "length" => Value::Int64(self.number(at)?),
                _ => Value::from(self.text(at)),
            };
            Ok((*name, value))
        };
        (first..).zip(names).map(property).collect()
    }
}

fn add(commit: &mut Commit, event: &[String]) -> Result<()> {
    let fields = Fields(event);
    match event[2].as_str() {
        "1" => person(commit, &fields),
        "2" => like(commit, &fields, "Post"),
        "3" => like(commit, &fields, "Comment"),
        "4" => forum(commit, &fields),
        "5" => {
            let joined = fields.properties(2, &["joinDate"])?;
            commit.upsert_edge("hasMember", ("Forum", fields.number(0)?), ("Person", fields.number(1)?), joined);
            Ok(())
        }
        "6" => post(commit, &fields),
        "7" => comment(commit, &fields),
        _ => {
            let since = fields.properties(2, &["creationDate"])?;
            commit.upsert_edge("knows", ("Person", fields.number(0)?), ("Person", fields.number(1)?), since);
            Ok(())
        }
    }
}

fn person(commit: &mut Commit, fields: &Fields<'_>) -> Result<()> {
    let key = fields.number(0)?;
    let names = ["firstName", "lastName", "gender", "birthday", "creationDate", "locationIP", "browserUsed"];
    commit.upsert_vertex("Person", key, fields.properties(1, &names)?);
    let end = ("Person", key);
    commit.upsert_edge("isLocatedIn", end, ("Place", fields.number(8)?), NONE);
    edges(commit, "hasInterest", end, "Tag", fields.numbers(11)?);
    for (label, at, property) in [("studyAt", 12, "classYear"), ("workAt", 13, "workFrom")] {
        for pair in fields.text(at).split(';').filter(|pair| !pair.is_empty()) {
            let (organisation, year) = pair.split_once(',').context("an organisation and a year")?;
            let year = [(property, Value::Int64(year.parse()?))];
            commit.upsert_edge(label, end, ("Organisation", organisation.parse::<i64>()?), year);
        }
    }
    Ok(())
}

fn like(commit: &mut Commit, fields: &Fields<'_>, of: &str) -> Result<()> {
    let since = fields.properties(2, &["creationDate"])?;
    commit.upsert_edge("likes", ("Person", fields.number(0)?), (of, fields.number(1)?), since);
    Ok(())
}

fn forum(commit: &mut Commit, fields: &Fields<'_>) -> Result<()> {
    let key = fields.number(0)?;
    commit.upsert_vertex("Forum", key, fields.properties(1, &["title", "creationDate"])?);
    commit.upsert_edge("hasModerator", ("Forum", key), ("Person", fields.number(3)?), NONE);
    edges(commit, "hasTag", ("Forum", key), "Tag", fields.numbers(4)?);
    Ok(())
}

fn post(commit: &mut Commit, fields: &Fields<'_>) -> Result<()> {
    let key = fields.number(0)?;
    let names = ["imageFile", "creationDate", "locationIP", "browserUsed", "language", "content", "length"];
    commit.upsert_vertex("Post", key, fields.properties(1, &names)?);
    commit.upsert_edge("hasCreator", ("Post", key), ("Person", fields.number(8)?), NONE);
    commit.upsert_edge("containerOf", ("Forum", fields.number(9)?), ("Post", key), NONE);
    commit.upsert_edge("isLocatedIn", ("Post", key), ("Place", fields.number(10)?), NONE);
    edges(commit, "hasTag", ("Post", key), "Tag", fields.numbers(11)?);
    Ok(())
}

fn comment(commit: &mut Commit, fields: &Fields<'_>) -> Result<()> {
    let key = fields.number(0)?;
    let names = ["creationDate", "locationIP", "browserUsed", "content", "length"];
    commit.upsert_vertex("Comment", key, fields.properties(1, &names)?);
    commit.upsert_edge("hasCreator", ("Comment", key), ("Person", fields.number(6)?), NONE);
    commit.upsert_edge("isLocatedIn", ("Comment", key), ("Place", fields.number(7)?), NONE);
    for (label, at) in [("Post", 8), ("Comment", 9)] {
        let replied = fields.number(at)?;
        if replied >= 0 {
            commit.upsert_edge("replyOf", ("Comment", key), (label, replied), NONE);
        }
    }
    edges(commit, "hasTag", ("Comment", key), "Tag", fields.numbers(10)?);
    Ok(())
}

const NONE: [(&str, Value); 0] = [];

fn edges(commit: &mut Commit, label: &str, from: (&str, i64), to: &str, keys: Vec<i64>) {
    for key in keys {
        commit.upsert_edge(label, from, (to, key), NONE);
    }
}
