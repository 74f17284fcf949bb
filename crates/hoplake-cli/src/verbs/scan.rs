//! `hoplake scan`: the vertices that match a condition.

use hoplake::{Condition, Graph, Query, ScanRequest, SortBy, tables};

use super::{limits::VertexLimitArgs, query_args::QueryArgs, traverse::print_count};
use crate::{
    arguments,
    opening::GraphArgs,
    output::{
        Pipe,
        formats::RowWriter,
        numbers,
        profile::{Profile, Stopwatch},
    },
};

/// Rows of a table for people, without --limit.
const TABLE_ROWS: usize = 1_000;

/// In the place of properties, all.
const ALL: &str = "*";

/// Find vertices by their properties
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A condition compares properties, and `~key` is the key:
  'code = \"AUS\"'    'age between 30 and 40 and name starts with A'    'born is null or not (country in (DE, FR))'

Example: the airport with a code, with all of its properties
  hoplake scan s3://bucket/routes --label airport --where 'code = \"AUS\"' --select '*'

Example: the ten highest airports of a country
  hoplake scan s3://bucket/routes --label airport --where 'country = US' --select desc,elev \\
      --order-by 'elev desc' --limit 10")]
pub struct Args {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Vertices with this label; may be repeated; by default all
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// Only vertices that match this condition
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<Condition>,
    /// Properties to print in addition to label and key; '*' means all
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "count")]
    select: Vec<String>,
    /// Sort by this property, absent values last; may be repeated; with ' desc' at its end the greatest is first
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "count")]
    order_by: Vec<SortBy>,
    /// Print at most this many vertices; tables 1000 by default, other formats all
    #[arg(long, value_name = "N", value_parser = arguments::count::<usize>, allow_negative_numbers = true)]
    limit: Option<usize>,
    /// Print only how many vertices there are
    #[arg(long, conflicts_with = "limit")]
    count: bool,
    #[command(flatten)]
    shared: QueryArgs,
    #[command(flatten)]
    vertex_limit: VertexLimitArgs,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    args.shared.output.check()?;
    if args.count {
        args.shared.output.check_text("a count")?;
    }
    let (opened, mut query) = args.shared.begin(&args.graph).await?;
    query.limit(&args.vertex_limit.limits());
    let stopwatch = Stopwatch::start(&query);
    let request = request(args, &opened.graph);
    if args.count {
        let count = query.count_found(&request).await?;
        print_count(Some(count.into()), &args.shared.output)?;
    } else {
        print_rows(args, &opened.graph, &mut query, request).await?;
    }
    let profile = Profile::default().step("scan", stopwatch.stop(&query));
    args.shared.end(&opened, &query, profile).await;
    Ok(())
}

/// The labels that are scanned.
fn labels<'a>(args: &'a Args, graph: &'a Graph) -> impl Iterator<Item = &'a hoplake::VertexLabel> {
    let all = graph.schema().vertex_labels.iter();
    all.filter(|label| args.labels.is_empty() || args.labels.contains(&label.name))
}

fn request(args: &Args, graph: &Graph) -> ScanRequest {
    let mut select: Vec<String> = Vec::new();
    for name in &args.select {
        let all = labels(args, graph).flat_map(|label| &label.properties).map(|property| &property.name);
        let named: Vec<_> = if name == ALL { all.cloned().collect() } else { vec![name.clone()] };
        for name in named {
            if !select.contains(&name) {
                select.push(name);
            }
        }
    }
    let labels = args.labels.clone();
    let condition = args.condition.clone();
    let order_by = args.order_by.clone();
    ScanRequest { labels, condition, select, order_by, limit: args.limit }
}

async fn print_rows(args: &Args, graph: &Graph, query: &mut Query, mut request: ScanRequest) -> anyhow::Result<()> {
    // One more shows whether there are more.
    let shown = (args.limit.is_none() && args.shared.output.is_for_reading()).then_some(TABLE_ROWS);
    request.limit = request.limit.or(shown.map(|rows| rows + 1));
    // Before the destination is emptied: the scan may be rejected.
    let mut scan = query.scan(&request)?;
    let schemas: Vec<_> = labels(args, graph).map(|label| tables::schema_of_label(label, &request.select)).collect();
    let mut writer = RowWriter::new(&args.shared.output, tables::schema_of_each(&schemas))?;
    let mut printed = 0;
    while let Some(found) = query.next_rows(&mut scan).await? {
        let batch = tables::with_label(&found)?;
        let left = shown.unwrap_or(usize::MAX) - printed;
        writer.write(&batch.slice(0, batch.num_rows().min(left)))?;
        printed += batch.num_rows().min(left);
        if batch.num_rows() > left {
            eprintln!(
                "the first {}; --limit shows more, --count counts them",
                numbers::counted(printed as u64, "vertex", "vertices")
            );
            break;
        }
        if Pipe::is_closed() {
            break;
        }
    }
    writer.finish()
}
