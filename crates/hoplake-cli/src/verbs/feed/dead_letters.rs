//! `hoplake feed dead-letters`: changes that could not be applied.

use hoplake::{Graph, Store, changes::plain_json};
use hoplake_feed::{
    Position, Retried, Selection,
    letters::{self, Letter, change_to_json},
    state,
};
use serde_json::json;

use super::{arguments::FileArgs, failure::failed};
use crate::{
    failure::Failure,
    output::{numbers::counted, print_line, tables::printable},
};

/// List, show, apply or discard changes that could not be applied
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List them, oldest first
    List(ListArgs),
    /// Show the changes of a name as they were logged, as JSON
    Show(ShowArgs),
    /// Apply them: the changes of a name as one, from before the first to after the last
    Retry(SelectArgs),
    /// Remove them; what they would have changed stays as it is
    Discard(SelectArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    settings: FileArgs,
    /// Print one JSON object for each
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    #[command(flatten)]
    settings: FileArgs,
    /// The name of the vertex or edge, as `list` prints it
    name: String,
}

#[derive(Debug, clap::Args)]
struct SelectArgs {
    #[command(flatten)]
    settings: FileArgs,
    /// The names of vertices and edges, as `list` prints them
    #[arg(required_unless_present = "all")]
    names: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with = "names")]
    all: bool,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    match &args.action {
        Action::List(args) => {
            for letter in read(&args.settings).await? {
                print_line(line(&letter, args.json))?;
            }
            Ok(())
        }
        Action::Show(args) => {
            let letters = read(&args.settings).await?;
            let of_name: Vec<_> = letters.iter().filter(|letter| letter.names.contains(&args.name)).collect();
            if of_name.is_empty() {
                let hint = "hoplake feed dead-letters list shows what there is";
                return Err(Failure::usage(format!("no dead letter for {}", args.name), hint).into());
            }
            for letter in of_name {
                print_line(change_to_json(&letter.change).to_string())?;
            }
            Ok(())
        }
        Action::Retry(args) => {
            let settings = args.settings.settings_to_change()?;
            report(hoplake_feed::retry(&settings, &args.selection()).await.map_err(failed)?, "applied")
        }
        Action::Discard(args) => {
            let settings = args.settings.settings_to_change()?;
            report(hoplake_feed::discard(&settings, &args.selection()).await.map_err(failed)?, "discarded")
        }
    }
}

impl SelectArgs {
    fn selection(&self) -> Selection {
        if self.all { Selection::All } else { Selection::Names(self.names.clone()) }
    }
}

fn report(retried: Retried, done: &str) -> anyhow::Result<()> {
    let Retried { done: count, failed, left, version } = retried;
    print_line(format!("version {version}: {} {done}, {left} left", counted(count, "dead letter", "dead letters")))?;
    if failed == 0 {
        return Ok(());
    }
    let why = format!("{} could not be applied", counted(failed, "dead letter", "dead letters"));
    Err(Failure::usage(why, "hoplake feed dead-letters list shows why; correct the rows or the mapping").into())
}

/// All letters of a graph, from its bucket alone.
async fn read(settings: &FileArgs) -> anyhow::Result<Vec<Letter>> {
    let settings = settings.settings()?;
    let store = Store::open(&settings.graph).map_err(hoplake::Error::from)?;
    let name = &settings.source.name;
    let newest = Graph::newest(&store).await?;
    let Some(text) = newest.source_positions.get(name) else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    if let Some(id) = Position::parse(text).map_err(failed)?.state {
        let state = state::read(&store, name, &id).await.transpose().unwrap_or_else(|| Err(state::lost(name, &id)));
        for (id, _) in state.map_err(failed)?.letters {
            all.extend(letters::read(&store, name, &id).await.map_err(failed)?);
        }
    }
    Ok(all)
}

fn line(letter: &Letter, as_json: bool) -> String {
    let Letter { position, committed_unix_ms, table, names, why, attempts, .. } = letter;
    if as_json {
        let at = plain_json(&hoplake::Value::Timestamp(committed_unix_ms.saturating_mul(1_000)));
        let table = table.to_string();
        return json!({"position": position, "committed": at, "table": table, "names": names, "reason": why, "attempts": attempts}).to_string();
    }
    let reason = why.as_deref().unwrap_or("an earlier change of it was set aside");
    let name = if names.is_empty() { table.to_string() } else { names.join(", ") };
    printable(format!("{position}  {name}  {reason}"))
}
