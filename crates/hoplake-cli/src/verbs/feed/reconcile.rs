//! `hoplake feed reconcile`: are the tables and the graph the same?

use std::path::PathBuf;

use hoplake::ErrorKind;
use hoplake_feed::{ReconcileOptions, Reconciled};
use serde_json::json;

use super::{arguments::FileArgs, failure::failed};
use crate::{
    failure::Failure,
    output::{numbers::counted, print_line},
    stopping::stopped,
};

/// Compare all rows with the graph, while both may go on, and repair what differs
#[derive(Debug, clap::Args)]
#[command(after_help = "\
With differences that are not repaired the status is 4.

Example:
  hoplake feed reconcile feed.toml --report differences
  hoplake feed reconcile feed.toml --repair")]
pub struct Args {
    #[command(flatten)]
    settings: FileArgs,
    /// Compare only what the rows of this table become (more than once for several)
    #[arg(long = "table", value_name = "TABLE")]
    tables: Vec<String>,
    /// Write what the tables say in the place of what differs
    #[arg(long)]
    repair: bool,
    /// With --repair: write nothing, and say how much it would be
    #[arg(long, requires = "repair")]
    dry_run: bool,
    /// Write each difference to differences.jsonl and differences.parquet in this folder
    #[arg(long, value_name = "FOLDER")]
    report: Option<PathBuf>,
    /// Print the summary as one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let repairs = args.repair && !args.dry_run;
    let settings = if repairs { args.settings.settings_to_change()? } else { args.settings.settings()? };
    let options = ReconcileOptions {
        tables: args.tables.clone(),
        repair: args.repair,
        dry_run: args.dry_run,
        report: args.report.clone(),
    };
    let reconciled = tokio::select! {
        reconciled = hoplake_feed::reconcile(&settings, &options) => reconciled.map_err(failed)?,
        () = stopped() => {
            let hint = "each repair is a commit of its own; run it again for the rest";
            return Err(Failure::new(ErrorKind::Unavailable, "the comparison was cut off".to_owned(), hint).into());
        }
    };
    print_line(if args.json { json!(reconciled).to_string() } else { summary(&reconciled, args.dry_run) })?;
    let differ = reconciled.differences();
    let repaired = reconciled.repaired;
    if differ == 0 || (repairs && repaired == differ) {
        return Ok(());
    }
    let differ = counted(differ - if args.dry_run { 0 } else { repaired }, "place", "places");
    let hint = if args.repair {
        "run it again: what has changed meanwhile is compared anew"
    } else {
        "--report shows where; --repair writes what the tables say"
    };
    Err(Failure::new(ErrorKind::Conflict, format!("the graph differs from its tables in {differ}"), hint).into())
}

/// One sentence a line.
pub fn summary(it: &Reconciled, dry_run: bool) -> String {
    let mut lines = vec![
        format!(
            "compared at {}: {}, {}, with version {} in {} ms",
            it.position,
            counted(it.rows, "row", "rows"),
            counted(it.elements, "vertex or edge", "vertices and edges"),
            it.version,
            it.ms
        ),
        format!("{} missing, {} left over, {} different", it.missing, it.left_over, it.different),
    ];
    if it.held > 0 || it.unreadable > 0 {
        let rows = counted(it.unreadable, "row", "rows");
        lines.push(format!("{} not compared: changes of them were set aside; {rows} cannot be read", it.held));
    }
    if it.repaired > 0 {
        lines.push(match it.repaired_in.filter(|_| !dry_run) {
            Some(version) => format!("{} repaired, the last in version {version}", it.repaired),
            None => format!("{} would be repaired", it.repaired),
        });
    }
    if it.changed_meanwhile > 0 {
        lines.push(format!("{} left alone: they have changed meanwhile", it.changed_meanwhile));
    }
    if it.not_repairable > 0 {
        lines.push(format!("{} cannot be repaired: an end of the edge is not there", it.not_repairable));
    }
    lines.join("\n")
}
