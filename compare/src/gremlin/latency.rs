//! Twenty typical queries on the flights that come with the sources, asked of both servers in turn over one connection each.
//!
//! Both have the graph in memory and are warm; Hoplake serves from this process and TinkerPop from its own, and the same client asks and
//! decodes both. Every round asks every query of both, in alternating order, so that what else the machine does hits both alike.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use hoplake::{
    Graph, IndexSettings, LoadOptions,
    gremlin::{Names, parse, plan, script::Statement, value::Value},
    load_with,
};
use hoplake_testkit::{GremlinServer, clock::Quantiles};

use super::{
    canonical::{Names as ElementNames, Orders, forms},
    client::{Client, Codec},
    subject::Subject,
};

/// A name, and what is asked. 3 is Austin.
pub const QUERIES: [(&str, &str); 20] = [
    ("look-up by id", "g.V(3l)"),
    ("by an indexed property", "g.V().has('airport', 'code', 'AUS').values('city')"),
    ("properties", "g.V(3l).valueMap('code', 'city', 'elev')"),
    ("one hop, count", "g.V(3l).out('route').count()"),
    ("one hop, values", "g.V(3l).out('route').values('code')"),
    ("one hop, vertices", "g.V(3l).out('route')"),
    ("one hop, valueMap", "g.V(3l).out('route').valueMap('code', 'city')"),
    ("one hop, condition", "g.V(3l).out('route').has('country', 'MX').values('code')"),
    ("edges, condition", "g.V(3l).outE('route').has('dist', P.gt(1500)).inV().values('code')"),
    ("one hop, order, limit", "g.V(3l).out('route').order().by('elev', desc).by('code').limit(5).values('code')"),
    ("one hop, group", "g.V(3l).out('route').group().by('country').by(__.count())"),
    ("project", "g.V(3l).out('route').project('code', 'routes').by('code').by(__.out('route').count())"),
    ("where", "g.V(3l).out('route').where(__.out('route').has('code', 'NRT')).values('code')"),
    ("union", "g.V(3l).union(__.out('route'), __.in('contains')).count()"),
    ("two hops, count", "g.V(3l).out('route').out('route').count()"),
    ("two hops, distinct values", "g.V(3l).out('route').out('route').dedup().values('code')"),
    ("two hops, group", "g.V(3l).out('route').out('route').groupCount().by('country')"),
    ("three hops, distinct count", "g.V(3l).out('route').out('route').out('route').dedup().count()"),
    ("repeat, path, limit", "g.V(3l).repeat(__.out('route').simplePath()).times(2).path().by('code').limit(10)"),
    (
        "a way to Wellington",
        "g.V(3l).repeat(__.out('route').simplePath()).until(__.has('code', 'WLG')).limit(1).path().by('code').count(Scope.local)",
    ),
];

/// The graph's name in Hoplake.
const GRAPH: &str = "air-routes";
/// Elements that a text adds to the reference.
const ADDED: usize = 100;

/// How often.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Rounds that count.
    #[arg(long, default_value_t = 300)]
    rounds: usize,
    /// Rounds before.
    #[arg(long, default_value_t = 200)]
    warm_up: usize,
    /// Only the queries with this in their names
    #[arg(long, default_value = "")]
    only: String,
}

/// Prints a row for each query.
pub async fn run(arguments: &Arguments) -> Result<()> {
    let server = GremlinServer::start(&["code"])?;
    let subject = Subject::start().await?;
    let mut reference = Client::connect(server.address(), "g", Codec::GraphBinary).await?;
    let mut hoplake = load(&subject).await?;
    copy(&mut hoplake, &mut reference).await?;
    let queries: Vec<_> = QUERIES.into_iter().filter(|(name, _)| name.contains(&arguments.only)).collect();
    for (name, text) in &queries {
        compare(name, text, &mut reference, &mut hoplake).await?;
    }
    let mut times = vec![[Vec::new(), Vec::new()]; queries.len()];
    for round in 0..arguments.warm_up + arguments.rounds {
        for (times, (_, text)) in times.iter_mut().zip(&queries) {
            let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
            for side in order {
                let client = if side == 0 { &mut reference } else { &mut hoplake };
                let begun = Instant::now();
                let answer = client.ask(text).await?;
                let took = begun.elapsed().as_secs_f64() * 1e6;
                answer.map_err(|error| anyhow::anyhow!("{text}: {error}"))?;
                if round >= arguments.warm_up {
                    times[side].push(took);
                }
            }
        }
    }
    print(&queries, &times)
}

fn print(queries: &[(&str, &str)], times: &[[Vec<f64>; 2]]) -> Result<()> {
    println!(
        "| query | TinkerPop p50, µs | p99 | Hoplake p50, µs | p99 | p50 of TinkerPop / Hoplake | parse and plan, µs |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for ((name, text), [reference, hoplake]) in queries.iter().zip(times) {
        let [reference, hoplake] = [reference, hoplake].map(|times| Quantiles::of(times.iter().copied()));
        println!(
            "| {name} | {:.0} | {:.0} | {:.0} | {:.0} | {:.2} | {:.1} |",
            reference.p50,
            reference.p99,
            hoplake.p50,
            hoplake.p99,
            reference.p50 / hoplake.p50,
            planning_us(text)?
        );
    }
    Ok(())
}

/// Microseconds of reading and planning a text: the median of many.
fn planning_us(text: &str) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..1_000 {
        let begun = Instant::now();
        let script = parse(text)?;
        let Some(Statement::Traversal(traversal, _)) = script.statements.first() else {
            bail!("{text} is no traversal")
        };
        std::hint::black_box(plan(traversal, Names::default())?);
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    Ok(Quantiles::of(times).p50)
}

/// The sample with an index, as its users have it.
async fn load(subject: &Subject) -> Result<Client> {
    let store = subject.store(GRAPH)?;
    load_with(store.clone(), LoadOptions::from_paths(sample()), std::sync::Arc::new(())).await?;
    Graph::create_index(&store, "airport.code", &IndexSettings::default()).await?;
    Client::connect(subject.address(), GRAPH, Codec::GraphBinary).await
}

/// The files of the flights that come with the sources.
pub fn sample() -> [String; 2] {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../samples/air-routes");
    ["nodes", "edges"].map(|name| format!("{folder}/air-routes-latest-{name}.csv.zst"))
}

/// Adds all of Hoplake's graph to the reference.
async fn copy(hoplake: &mut Client, reference: &mut Client) -> Result<()> {
    let vertices = said(hoplake, "g.V()").await?;
    let edges = said(hoplake, "g.E()").await?;
    for some in vertices.chunks(ADDED) {
        let mut text = String::from("g");
        for vertex in some {
            let Value::Vertex(vertex) = vertex else { bail!("{vertex} is not a vertex") };
            text += &format!(".addV('{}').property(T.id, {})", vertex.label, literal(&vertex.id)?);
            for property in vertex.properties.iter().flatten() {
                text += &format!(".property('{}', {})", property.key, literal(&property.value)?);
            }
        }
        said(reference, &(text + ".count()")).await?;
    }
    for some in edges.chunks(ADDED) {
        let mut text = String::from("g");
        for edge in some {
            let Value::Edge(edge) = edge else { bail!("{edge} is not an edge") };
            let from = literal(&edge.out_vertex.0)?;
            let to = literal(&edge.in_vertex.0)?;
            text += &format!(".V({from}).addE('{}').to(__.V({to}))", edge.label);
            text += &format!(".property(T.id, '{}')", edge.id);
            for property in edge.properties.iter().flatten() {
                text += &format!(".property('{}', {})", property.key, literal(&property.value)?);
            }
        }
        said(reference, &(text + ".count()")).await?;
    }
    eprintln!("{} vertices, {} edges", vertices.len(), edges.len());
    Ok(())
}

fn literal(value: &Value) -> Result<String> {
    Ok(match value {
        Value::Text(text) => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
        Value::Number(number) if number.to_string().contains('.') => format!("{number}d"),
        Value::Number(number) => format!("{number}l"),
        Value::Boolean(boolean) => boolean.to_string(),
        Value::DateTime(..) => format!("datetime('{value}')"),
        other => bail!("{other} has no literal here"),
    })
}

async fn said(client: &mut Client, text: &str) -> Result<Vec<Value>> {
    let shortened: String = text.chars().take(200).collect();
    client.ask(text).await?.map_err(|error| anyhow::anyhow!(error)).with_context(|| shortened)
}

/// Fails unless both answer the same, where the query says what that is.
async fn compare(name: &str, text: &str, reference: &mut Client, hoplake: &mut Client) -> Result<()> {
    let reference = said(reference, text).await?;
    let hoplake = said(hoplake, text).await?;
    // Whichever ten paths come first.
    if text.contains("limit(10)") {
        return Ok(());
    }
    let of = |results: &[Value]| forms(results, &ElementNames::default(), Orders::default());
    if of(&reference) != of(&hoplake) {
        bail!("{name}: TinkerPop has {:?}\nand Hoplake {:?}", of(&reference), of(&hoplake));
    }
    Ok(())
}
