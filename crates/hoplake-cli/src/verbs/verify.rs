//! `hoplake verify`: reads everything and reports damage.

use hoplake::{ErrorKind, Graph, Store, Verification, Verified};
use serde_json::{Value, json};

use crate::{
    failure::Failure,
    opening::{GraphArgs, open_store},
    output::{numbers, print_line, progress::bytes_bar},
};

/// Read a graph with all its versions, and check every byte
#[derive(Debug, clap::Args)]
#[command(after_help = "\
It reads the hint, the manifest of every version that can be opened, and every object from end to end; then what feeds keep beside the
newest version: their states and dead letters. All that is damaged is listed, with its block and the newest version that has it; then it
names the newest version that is intact and can be restored, and the status is 7. With --version or --as-of it reads that version
alone.

Example:
  hoplake verify s3://bucket/social")]
pub struct Args {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    if args.graph.version.is_some() || args.graph.as_of.is_some() {
        return one_version(args).await;
    }
    let store = open_store(&args.graph.url)?;
    let found = verified(&store).await?;
    if args.json {
        print_line(as_json(&found))?;
    } else {
        for damage in &found.damages {
            match damage.version {
                Some(version) => eprintln!("damaged: version {version}: {}", damage.what),
                None => eprintln!("damaged: {}", damage.what),
            }
        }
    }
    if !found.damages.is_empty() {
        return Err(failure(&store, &args.graph.url, &found).into());
    }
    if args.json {
        return Ok(());
    }
    let newest = found.newest().unwrap_or_default();
    let versions = match found.versions.len() {
        1 => format!("version {newest} is intact"),
        count => format!("all {count} versions are intact, up to version {newest}"),
    };
    print_line(format_args!("{versions}: {}", amounts(&found.verified)))
}

async fn one_version(args: &Args) -> anyhow::Result<()> {
    let opened = args.graph.open().await?;
    let total = opened.graph.info().await?.total_bytes;
    let bar = bytes_bar("verifying", total);
    let verified = opened.graph.verify(|bytes| bar.set_position(bytes)).await;
    bar.finish_and_clear();
    let verified = verified?;
    let version = opened.graph.version();
    if args.json {
        let Verified { objects, bytes, blocks } = verified;
        return print_line(json!({"version": version, "objects": objects, "bytes": bytes, "blocks": blocks}));
    }
    print_line(format_args!("version {version} is intact: {}", amounts(&verified)))
}

fn amounts(verified: &Verified) -> String {
    format!(
        "{}, {}, {}",
        numbers::counted(verified.objects, "object", "objects"),
        numbers::bytes(verified.bytes),
        numbers::counted(verified.blocks, "block", "blocks"),
    )
}

fn as_json(found: &Verification) -> Value {
    let damage = |it: &hoplake::Damage| json!({"version": it.version, "what": it.what});
    let versions = |intact| found.versions.iter().filter(move |it| it.1 == intact).map(|it| it.0).collect::<Vec<_>>();
    let Verified { objects, bytes, blocks } = found.verified;
    json!({
        "version": found.newest(), "objects": objects, "bytes": bytes, "blocks": blocks,
        "intact_versions": versions(true), "damaged_versions": versions(false),
        "damages": found.damages.iter().map(damage).collect::<Vec<_>>(),
    })
}

async fn verified(store: &Store) -> anyhow::Result<Verification> {
    // For the bar alone: what is verified are the objects that manifests name.
    let total = store.list("data").await?.iter().map(|object| object.bytes).sum();
    let bar = bytes_bar("verifying", total);
    let found = Graph::verify_all(store, |bytes| bar.set_position(bytes)).await;
    bar.finish_and_clear();
    let mut found = found?;
    verify_feeds(store, &mut found).await?;
    Ok(found)
}

/// Adds what feeds keep beside the newest version.
#[cfg(feature = "feed")]
async fn verify_feeds(store: &Store, found: &mut Verification) -> anyhow::Result<()> {
    let of_feeds = hoplake_feed::verify_objects(store, &found.source_positions).await;
    let of_feeds = of_feeds.map_err(super::feed::failed)?;
    let version = found.newest();
    found.verified.objects += of_feeds.objects;
    found.damages.extend(of_feeds.damages.into_iter().map(|what| hoplake::Damage { version, what }));
    Ok(())
}

#[cfg(not(feature = "feed"))]
async fn verify_feeds(_: &Store, _: &mut Verification) -> anyhow::Result<()> {
    Ok(())
}

/// Fails if the newest version is damaged, whatever else is.
pub(super) async fn newest_is_intact(store: &Store, url: &str) -> anyhow::Result<()> {
    let found = verified(store).await?;
    match found.newest().is_some() && found.newest() == found.newest_intact() {
        true => Ok(()),
        false => Err(failure(store, url, &found).into()),
    }
}

/// How much is damaged, and what can be done about it.
fn failure(store: &Store, url: &str, found: &Verification) -> Failure {
    let count = numbers::counted(found.damages.len() as u64, "damaged item", "damaged items");
    let newest = found.newest();
    let intact = found.newest_intact();
    let damaged = found.versions.iter().filter(|(_, intact)| !intact).count() as u64;
    let (state, hint) = match intact {
        None => ("no version is intact".into(), format!("restore {} from a copy", store.url())),
        // Beside the versions: the hint, what was appended to an object, what feeds keep.
        Some(_) if damaged == 0 => (
            "all versions can be read".into(),
            "readers do not need what is damaged. The next commit writes a hint again, hoplake compact --all objects; copy a feed \
             anew that lost its state or dead letters (hoplake feed run --resnapshot)"
                .into(),
        ),
        Some(intact) if Some(intact) == newest => (
            format!("the newest version, {intact}, is intact"),
            format!("hoplake vacuum {url} --keep-versions 1 lets the past go that is damaged"),
        ),
        Some(intact) => (
            format!("version {intact} is intact"),
            format!("hoplake restore {url} --version {intact} makes it the newest"),
        ),
    };
    Failure::new(ErrorKind::Corrupt, format!("{count} in {}; {state}", store.url()), hint)
}
