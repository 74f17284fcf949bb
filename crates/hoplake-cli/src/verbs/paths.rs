//! Walks and paths as lines: `Person:933 -> Person:1`, or an array of `{label, key}` in JSON.

use std::io::Write;

use hoplake::{Key, Paths, Query, VertexId, vertex_text};
use serde_json::{Value, json};

use crate::output::{Format, OutputArgs, Pipe, Sink};

/// The default limit of walks: there can be far more walks than edges.
pub const PATHS_MAX: usize = 1000;

/// Walks that are named at a time: enough to share a look-up of keys, few enough to print early.
const CHUNK: usize = 1024;

/// Writes walks as they are found.
pub struct PathWriter {
    sink: Sink,
    format: Format,
}

impl PathWriter {
    /// Opens the output; CSV gets its header.
    pub fn new(output: &OutputArgs) -> anyhow::Result<Self> {
        let mut sink = output.open()?;
        if output.format() == Format::Csv {
            writeln!(sink, "path")?;
        }
        Ok(Self { sink, format: output.format() })
    }

    /// Looks up names of walks and writes them, `limit` at most, until the walks or the reader end.
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

    /// Names walks and writes them.
    pub async fn write(&mut self, query: &mut Query, walks: &[Vec<VertexId>]) -> anyhow::Result<()> {
        for path in query.name_paths(walks).await? {
            self.line(&path)?;
        }
        Ok(())
    }

    fn line(&mut self, path: &[(String, Key)]) -> anyhow::Result<()> {
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

fn text(path: &[(String, Key)]) -> String {
    path.iter().map(|(label, key)| vertex_text(label, key)).collect::<Vec<_>>().join(" -> ")
}

fn json(path: &[(String, Key)]) -> Value {
    path.iter().map(|(label, key)| json!({"label": label, "key": key_json(key)})).collect()
}

fn key_json(key: &Key) -> Value {
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
        let path = [("Person".to_owned(), Key::Int64(933)), ("Tag".to_owned(), "a \"b\"".into())];
        assert_eq!(text(&path), "Person:933 -> Tag:a \"b\"");
        assert_eq!(json(&path).to_string(), r#"[{"label":"Person","key":933},{"label":"Tag","key":"a \"b\""}]"#);
    }
}
