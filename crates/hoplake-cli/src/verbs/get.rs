//! `hoplake get`: vertices by key, with their properties.

use hoplake::{Graph, Rows, StartKey};

use crate::{
    opening::GraphArgs,
    output::{
        OutputArgs, formats,
        profile::{Profile, ProfileArgs, Stopwatch},
        rows,
    },
};

/// Print vertices and their properties, looked up by key
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: two people as JSON
  hoplake get s3://bucket/social Person:933 Person:1129 --format json")]
pub struct Args {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// The vertices
    #[arg(value_name = "LABEL:KEY", required = true)]
    vertices: Vec<StartKey>,
    /// Only these properties; all by default
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    select: Vec<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    profile: ProfileArgs,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    args.output.check()?;
    let opened = args.graph.open().await?;
    let mut query = opened.graph.query();
    let labels = query.label_ids(args.vertices.iter().map(|vertex| vertex.label.as_str()));
    query.expect_rows(labels);
    let stopwatch = Stopwatch::start(&query);
    let found = query.named(&args.vertices).await?;
    let profile = Profile::default().look_up(stopwatch.stop(&query));
    let names = if args.select.is_empty() { all_properties(&opened.graph, args) } else { args.select.clone() };
    let stopwatch = Stopwatch::start(&query);
    let mut read = query.properties(&found.into_iter().collect(), &names).await?.into_inner();
    let profile = profile.properties(stopwatch.stop(&query));
    if args.select.is_empty() {
        read = read.into_iter().map(|rows| own_properties(&opened.graph, rows)).collect::<anyhow::Result<_>>()?;
    }
    let batches = read.iter().map(rows::with_label).collect::<anyhow::Result<Vec<_>>>()?;
    formats::write(&args.output, &batches, rows::empty(&opened.graph, &names))?;
    args.profile.end(&opened, &query, profile).await;
    Ok(())
}

/// The properties of the labels that were asked for, in the order of the schema.
fn all_properties(graph: &Graph, args: &Args) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let asked = |name: &str| args.vertices.iter().any(|vertex| vertex.label == name);
    for property in
        graph.schema().vertex_labels.iter().filter(|label| asked(&label.name)).flat_map(|label| &label.properties)
    {
        if !names.contains(&property.name) {
            names.push(property.name.clone());
        }
    }
    names
}

/// Drops the columns that only other labels have.
fn own_properties(graph: &Graph, rows: Rows) -> anyhow::Result<Rows> {
    let label = graph.schema().vertex_labels.iter().find(|label| label.name == rows.label);
    let own = |name: &str| label.is_some_and(|label| label.properties.iter().any(|property| property.name == name));
    let fields = rows.batch.schema();
    let columns = fields.fields().iter().enumerate();
    // The key comes first.
    let kept = columns.filter(|(column, field)| *column == 0 || own(field.name())).map(|(column, _)| column);
    Ok(Rows { batch: rows.batch.project(&kept.collect::<Vec<_>>())?, label: rows.label })
}
