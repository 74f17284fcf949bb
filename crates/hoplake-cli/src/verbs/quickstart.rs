//! `hoplake quickstart`: loads and queries a real graph that is part of the binary.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use hoplake::{
    ErrorKind, Graph, Hop, LoadOptions, StartKey, StoreProfile, Traversal, TraversalAnswer, TraversalRequest,
    VisitPolicy, tables,
};

use super::{info, limits::processors, load};
use crate::{
    failure::Failure,
    opening::GraphArgs,
    output::{Format, OutputArgs, Pipe, formats, numbers, profile::Profile, tables::table},
};

/// The sample: airports, countries and routes of the world.
const SAMPLE: [(&str, &[u8]); 4] = [
    (
        "air-routes-latest-nodes.csv.zst",
        include_bytes!("../../../../samples/air-routes/air-routes-latest-nodes.csv.zst"),
    ),
    (
        "air-routes-latest-edges.csv.zst",
        include_bytes!("../../../../samples/air-routes/air-routes-latest-edges.csv.zst"),
    ),
    ("LICENSE", include_bytes!("../../../../samples/air-routes/LICENSE")),
    ("NOTICE", include_bytes!("../../../../samples/air-routes/NOTICE")),
];

/// Austin, Texas: the first flight leads to 98 airports, the third to most of the world.
const START: &str = "airport:3";
/// St Helena, in the South Atlantic.
const DESTINATION: &str = "airport:3335";

/// Load a sample graph that is part of hoplake, and query it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
It needs no network, and writes only to its folder.

Example:
  hoplake quickstart --folder /tmp/hoplake-quickstart")]
pub struct Args {
    /// Where to put the files and the graph
    #[arg(long, value_name = "DIR", default_value = "hoplake-quickstart")]
    folder: PathBuf,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let mut out = Pipe::stdout();
    check_folder(&args.folder)?;
    let files = args.folder.join("files");
    unpack(&files)?;
    let folder = fs::canonicalize(&args.folder).unwrap_or_else(|_| args.folder.clone());
    writeln!(out, "1. The files: airports and routes of the world, in {}\n", folder.join("files").display())?;
    let url = args.folder.join("graph").to_string_lossy().into_owned();
    let options = LoadOptions { replace: true, message: "quickstart".into(), ..LoadOptions::from_paths([&files]) };
    let report = load::load(&url, options).await??;
    writeln!(out, "2. The graph: {}\n", load::report_text(&url, &report))?;
    // Opened anew, as another process would: what it then costs is from empty caches.
    let opened = GraphArgs::at(url.clone()).open().await?;
    info::write_shape(&opened.graph, &mut out).await?;
    let request = request()?;
    let answer = opened.graph.query().run(&request).await?;
    print_answer(&opened.graph, &answer, &mut out)?;
    let profile = Profile::default().open(opened.cost).look_up(answer.start_cost);
    let profile = profile.hops(&request.traversal.hops, &answer.reached.profile).properties(answer.rows_cost);
    writeln!(out, "The cost from an empty process. A wave is a round trip that waits for the one before it:\n")?;
    writeln!(out, "{}\n", profile.text(opened.graph.prices()))?;
    let cost = profile.total().cost;
    let requests = numbers::count(cost.requests);
    // The folder is free; what the same requests cost in a bucket is what a reader wants to know.
    let list = &StoreProfile::s3_standard().prices;
    let usd = numbers::dollars(cost.usd(list));
    writeln!(
        out,
        "In a bucket of {} those {requests} requests would cost {usd} (prices of {}).\n",
        list.name, list.as_of
    )?;
    print_next(&url, &files.to_string_lossy(), &mut out)
}

/// Rejects a folder with other content.
fn check_folder(folder: &Path) -> anyhow::Result<()> {
    // A second quickstart in the same folder is fine; a folder of somebody's files is not, since the load replaces a graph.
    let ours = folder.join("files").join(SAMPLE[0].0).exists();
    let empty = fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none());
    if ours || empty {
        return Ok(());
    }
    let message = format!("{} exists already, and is not a quickstart", folder.display());
    Err(Failure::new(ErrorKind::Conflict, message, "choose another folder with --folder").into())
}

fn unpack(files: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(files).map_err(|error| Failure::file(format!("make the folder {}", files.display()), &error))?;
    for (name, bytes) in SAMPLE {
        let path = files.join(name);
        fs::write(&path, bytes).map_err(|error| Failure::file(format!("write {}", path.display()), &error))?;
    }
    Ok(())
}

fn request() -> anyhow::Result<TraversalRequest> {
    let route: Hop = "out:route".parse()?;
    let start: StartKey = START.parse()?;
    Ok(TraversalRequest {
        starts: vec![start],
        traversal: Traversal {
            hops: vec![route; 3],
            visit: VisitPolicy::Global,
            parallelism: processors(),
            ..Traversal::default()
        },
        select: Some(["code", "city", "country", "desc"].map(str::to_owned).to_vec()),
        limit: Some(10),
    })
}

fn print_answer(graph: &Graph, answer: &TraversalAnswer, out: &mut Pipe) -> anyhow::Result<()> {
    writeln!(out, "3. A question: how many flights is each airport away from Austin ({START})?\n")?;
    let mut text = table(&["flights", "airports"], &[0, 1]);
    for (flights, airports) in answer.reached.depths.iter().enumerate().skip(1) {
        text.add_row([flights.to_string(), numbers::count(airports.len() as u64)]);
    }
    let last = numbers::count(answer.reached.last().len() as u64);
    writeln!(out, "{text}\n\nTen of the {last} that take three flights:\n")?;
    let batches = answer.rows.iter().map(tables::with_label).collect::<Result<Vec<_>, _>>()?;
    formats::write(&OutputArgs::stdout(Format::Table), &batches, tables::empty(graph.schema(), &[]))?;
    Ok(writeln!(out)?)
}

fn print_next(url: &str, files: &str, out: &mut Pipe) -> anyhow::Result<()> {
    let url = quoted(url);
    let files = quoted(files);
    let next = [
        (
            "the same question, as a command",
            format!(
                "hoplake traverse {url} --start {START} --hop out:route --hop out:route --hop out:route --visit global --select code,city --limit 10 --profile"
            ),
        ),
        (
            "long flights only, as JSON",
            format!(
                "hoplake traverse {url} --start {START} --hop 'out:route[dist>=4000]' --select code,city --format json"
            ),
        ),
        ("one airport", format!("hoplake get {url} {START}")),
        (
            "its routes and their miles",
            format!("hoplake neighbors {url} {START} --hop out:route --select dist,code,city --limit 10"),
        ),
        (
            "how to fly from Austin to St Helena",
            format!("hoplake path {url} --from {START} --to {DESTINATION} --hop out:route"),
        ),
        ("degrees and sizes", format!("hoplake info {url}")),
        ("the same graph in a bucket", format!("hoplake load s3://BUCKET/PREFIX --from {files}")),
    ];
    writeln!(out, "4. Try next:\n")?;
    for (what, command) in next {
        writeln!(out, "  # {what}\n  {command}\n")?;
    }
    Ok(())
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
