//! Walks and paths as lines: `Person:933 -> Person:1`, or an array of `{label, key}` in JSON; with edges and properties if asked for.

use std::io::Write;

use hoplake::{
    DescribedWalks, Direction, Hop, Key, LabelId, Paths, Query, Value, VertexId, Walk, WalkEdge, WalkVertex,
    changes::{plain_json, plain_text, property_column},
    vertex_text,
};
use serde_json::{Map, Value as Json, json};

use crate::output::{Format, OutputArgs, Pipe, Sink};

/// The default limit of walks: there can be far more walks than edges.
pub const PATHS_MAX: usize = 1000;

/// Walks that are described at a time: enough to share a look-up of keys, few enough to print early.
const CHUNK: usize = 1024;

/// What is printed of a path in addition to the labels and keys of its vertices.
#[derive(Debug, Clone, clap::Args)]
pub struct PathArgs {
    /// Properties to print in addition to label and key; in paths of their vertices and of the edges between them
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "count")]
    pub select: Vec<String>,
    /// Print the edges of paths, too, with label and direction; --select does, too
    #[arg(long)]
    pub edges: bool,
}

impl PathArgs {
    /// Whether paths are printed with their edges.
    pub fn with_edges(&self) -> bool {
        self.edges || !self.select.is_empty()
    }

    /// Has the look-up of the starts read alongside what walks along these hops will need.
    pub fn expect(&self, query: &mut Query, starts: &[LabelId], hops: &[Hop]) {
        query.expect_walks(starts, hops, &self.select);
    }
}

/// Writes walks as they are found.
pub struct PathWriter<'a> {
    sink: Sink,
    format: Format,
    select: &'a [String],
}

impl<'a> PathWriter<'a> {
    /// Opens the output; CSV gets its header.
    pub fn new(output: &OutputArgs, args: &'a PathArgs) -> anyhow::Result<Self> {
        let mut sink = output.open()?;
        if output.format() == Format::Csv {
            writeln!(sink, "path")?;
        }
        Ok(Self { sink, format: output.format(), select: &args.select })
    }

    /// Describes walks and writes them, `limit` at most, until the walks or the reader end.
    pub async fn write_all(&mut self, query: &mut Query, paths: &mut Paths, limit: usize) -> anyhow::Result<()> {
        let mut left = limit;
        while left > 0 && !Pipe::is_closed() {
            let walks = query.next_walks(paths, left.min(CHUNK)).await?;
            if walks.is_empty() {
                return Ok(());
            }
            left -= walks.len();
            self.write(query, &walks).await?;
        }
        Ok(())
    }

    /// Describes walks and writes them.
    pub async fn write(&mut self, query: &mut Query, walks: &[Walk]) -> anyhow::Result<()> {
        let described = query.describe_walks(walks, self.select).await?;
        walks.iter().try_for_each(|walk| self.line(&steps(walk, &described)))
    }

    fn line(&mut self, path: &[PathStep<'_>]) -> anyhow::Result<()> {
        match self.format {
            Format::Json => writeln!(self.sink, "{}", json(path))?,
            // Quotes are doubled within quotes.
            Format::Csv => writeln!(self.sink, "\"{}\"", text(path).replace('"', "\"\""))?,
            Format::Table | Format::Parquet => writeln!(self.sink, "{}", text(path))?,
        }
        Ok(())
    }

    /// Writes what is buffered.
    pub fn finish(mut self) -> anyhow::Result<()> {
        Ok(self.sink.flush()?)
    }
}

/// A vertex of a path, and the edge that follows it, if edges are printed.
struct PathStep<'a> {
    label: &'a str,
    key: Key,
    properties: Vec<(&'a str, Value)>,
    edge: Option<StepEdge<'a>>,
}

struct StepEdge<'a> {
    label: &'a str,
    direction: Direction,
    properties: Vec<(&'a str, Value)>,
}

fn steps<'a>(walk: &Walk, described: &'a DescribedWalks) -> Vec<PathStep<'a>> {
    let edge = |at| {
        let WalkEdge { label, properties } = described.edge(walk.edges.get(at)?)?;
        Some(StepEdge { label, direction: walk.direction(at)?, properties: properties.values().collect() })
    };
    let step = |(at, vertex): (usize, &VertexId)| {
        let WalkVertex { label, key, properties } = described.vertex(*vertex)?;
        Some(PathStep { label, key, properties: properties.values().collect(), edge: edge(at) })
    };
    walk.vertices.iter().enumerate().filter_map(step).collect()
}

/// `Person:1 (name=Ann) -knows (since=2001)-> Person:2 (name=Bob)`: without properties that are absent.
fn text(path: &[PathStep<'_>]) -> String {
    let mut line = String::new();
    for (at, PathStep { label, key, properties, edge }) in path.iter().enumerate() {
        line += &vertex_text(label, key);
        line += &in_parentheses(properties);
        if at + 1 == path.len() {
            break;
        }
        let edge =
            edge.as_ref().map(|edge| (edge.direction, format!("{}{}", edge.label, in_parentheses(&edge.properties))));
        line += &match edge {
            None => " -> ".to_owned(),
            Some((Direction::Out, edge)) => format!(" -{edge}-> "),
            Some((Direction::In, edge)) => format!(" <-{edge}- "),
        };
    }
    line
}

fn in_parentheses(properties: &[(&str, Value)]) -> String {
    let known = properties.iter().filter_map(|(name, value)| Some(format!("{name}={}", plain_text(value)?)));
    let known: Vec<_> = known.collect();
    if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) }
}

fn json(path: &[PathStep<'_>]) -> Json {
    let mut items = Vec::new();
    for PathStep { label, key, properties, edge } in path {
        items.push(with_properties(json!({"label": label, "key": key_json(key)}), properties));
        if let Some(StepEdge { label, direction, properties }) = edge {
            items.push(with_properties(json!({"edge": label, "direction": direction.to_string()}), properties));
        }
    }
    items.into()
}

/// An object with properties, by the names of their columns in rows.
fn with_properties(mut object: Json, properties: &[(&str, Value)]) -> Json {
    let properties: Map<String, Json> =
        properties.iter().map(|(name, value)| (property_column(name), plain_json(value))).collect();
    if let Json::Object(object) = &mut object {
        object.extend(properties);
    }
    object
}

fn key_json(key: &Key) -> Json {
    match key {
        Key::Int64(key) => json!(key),
        Key::String(key) => json!(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_for_people_and_programs() {
        let likes = StepEdge { label: "likes", direction: Direction::In, properties: vec![("key", Value::Int64(7))] };
        let path = [
            PathStep { label: "Person", key: Key::Int64(933), properties: Vec::new(), edge: None },
            PathStep { label: "Tag", key: "a \"b\"".into(), properties: Vec::new(), edge: Some(likes) },
            PathStep {
                label: "Tag",
                key: "c".into(),
                properties: vec![("n", Value::Null), ("t", "x".into())],
                edge: None,
            },
        ];
        assert_eq!(text(&path), "Person:933 -> Tag:a \"b\" <-likes (key=7)- Tag:c (t=x)");
        let expected = json!([
            {"label": "Person", "key": 933},
            {"label": "Tag", "key": "a \"b\""},
            {"edge": "likes", "direction": "in", ".key": 7},
            {"label": "Tag", "key": "c", "n": null, "t": "x"},
        ]);
        assert_eq!(json(&path).to_string(), expected.to_string());
    }
}
