//! Elements in ranges that differ, of both sides, in files: a part of them fits into memory, however many there are.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs::File,
    io::{BufRead, BufReader, BufWriter, Write},
    path::{Path, PathBuf},
};

use hoplake::Properties;
use serde_json::Value as Json;

use super::digests::Ranges;
use crate::{
    Element, FeedError,
    apply::element::{ElementLine, properties_of, properties_to_json},
};

/// Files of each side for vertices, and as many for edges.
const FILES: usize = 64;
const BUFFER_BYTES: usize = 8 << 10;

/// Which side an element is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Tables,
    Graph,
}

/// What the two sides have of one name: each time that it is there.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Both {
    pub(super) tables: Vec<Properties>,
    pub(super) graph: Vec<Properties>,
}

/// The elements of some ranges.
pub(super) struct Partitions {
    ranges: Ranges,
    folder: PathBuf,
    /// By number; those of vertices before those of edges, and of the tables before those of the graph.
    files: BTreeMap<usize, BufWriter<File>>,
}

impl Partitions {
    pub(super) fn new(ranges: Ranges, folder: &Path) -> Self {
        Self { ranges, folder: folder.to_owned(), files: BTreeMap::new() }
    }

    /// Takes an element, if it is in one of the ranges or is to be taken anyway.
    pub(super) fn add(
        &mut self,
        side: Side,
        element: &Element,
        properties: &Properties,
        anyway: bool,
    ) -> Result<(), FeedError> {
        let range = self.ranges.range(element);
        if range.is_none() && !anyway {
            return Ok(());
        }
        let part = range.unwrap_or_default() % FILES + if matches!(element, Element::Edge(_)) { FILES } else { 0 };
        let number = 2 * part + usize::from(side == Side::Graph);
        let path = self.path(number);
        let failed = |error: std::io::Error| not_kept(&path, &error);
        let file = match self.files.entry(number) {
            Entry::Occupied(file) => file.into_mut(),
            Entry::Vacant(none) => {
                none.insert(BufWriter::with_capacity(BUFFER_BYTES, File::create(&path).map_err(failed)?))
            }
        };
        let line = (ElementLine::of(element), properties_to_json(properties));
        serde_json::to_writer(&mut *file, &line).map_err(|error| failed(error.into()))?;
        file.write_all(b"\n").map_err(failed)
    }

    fn path(&self, number: usize) -> PathBuf {
        self.folder.join(format!("{number:03}.jsonl"))
    }

    /// Ends writing.
    pub(super) fn finish(mut self) -> Result<Parts, FeedError> {
        for (number, file) in &mut self.files {
            let path = self.folder.join(format!("{number:03}.jsonl"));
            file.flush().map_err(|error| not_kept(&path, &error))?;
        }
        Ok(Parts { folder: self.folder })
    }
}

/// The files of [`Partitions`], to be read as often as is needed.
pub(super) struct Parts {
    folder: PathBuf,
}

impl Parts {
    pub(super) const VERTICES: std::ops::Range<usize> = 0..FILES;
    pub(super) const EDGES: std::ops::Range<usize> = FILES..2 * FILES;

    /// What both sides have of the names of a part, where it is not the same.
    pub(super) fn differing(&self, part: usize) -> Result<BTreeMap<Element, Both>, FeedError> {
        let mut all: BTreeMap<Element, Both> = BTreeMap::new();
        for side in [Side::Tables, Side::Graph] {
            let path = self.folder.join(format!("{:03}.jsonl", 2 * part + usize::from(side == Side::Graph)));
            let failed = |error: std::io::Error| not_kept(&path, &error);
            let file = match File::open(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                file => file.map_err(failed)?,
            };
            for line in BufReader::new(file).lines() {
                let line = line.map_err(failed)?;
                let read: Option<(ElementLine, Json)> = serde_json::from_str(&line).ok();
                let read = read.and_then(|(element, properties)| element.read().zip(properties_of(&properties)));
                let (element, properties) =
                    read.ok_or_else(|| FeedError::unavailable(format!("{} is damaged", path.display())))?;
                let both = all.entry(element).or_default();
                if side == Side::Tables { &mut both.tables } else { &mut both.graph }.push(properties);
            }
        }
        all.retain(|_, both| both.differ());
        Ok(all)
    }
}

impl Both {
    /// Of several rows that are one element the graph has the last that was written, which may be any of them, or all.
    fn differ(&self) -> bool {
        let Self { tables, graph } = self;
        let are_same = tables.len() == graph.len()
            && tables.iter().all(|row| {
                let count = |side: &[Properties]| side.iter().filter(|it| *it == row).count();
                count(tables) == count(graph)
            });
        let is_one_of = graph.len() == 1 && tables.contains(&graph[0]);
        !are_same && !is_one_of
    }
}

fn not_kept(path: &Path, error: &std::io::Error) -> FeedError {
    FeedError::unavailable(format!("could not keep rows in {}: {}", path.display(), hoplake::system_text(error)))
        .hint("set copy.temp_dir to a folder with as much space as the rows that differ take")
}
