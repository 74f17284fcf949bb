//! A locality order: edges are read once to find it, and vertices wait in files until it is known.

use std::{
    cell::Cell,
    fs::File,
    io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write},
    path::Path,
    sync::Arc,
};

use arrow_array::{ArrayRef, RecordBatch, UInt64Array, cast::AsArray, types::UInt64Type};
use arrow_ipc::{reader::StreamReader, writer::StreamWriter};
use arrow_schema::{DataType, Field, Schema};
use hoplake_format::LabelId;

use super::{
    Build, BuiltGraph, LoadPhase, Spaces,
    groups::groups,
    route::{EdgeSink, route_edges},
};
use crate::{Feed, IngestError, Phase, order, resolve::parts};

/// The rows of a label in key order, on their way to a file.
pub(crate) struct StagedVertices {
    label: LabelId,
    file: File,
    writer: Option<StreamWriter<BufWriter<File>>>,
}

impl StagedVertices {
    pub(crate) fn create(spill_dir: &Path, label: LabelId) -> Result<Self, IngestError> {
        let file = tempfile::tempfile_in(spill_dir).map_err(IngestError::Spill)?;
        Ok(Self { label, file, writer: None })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), IngestError> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let file = self.file.try_clone().map_err(IngestError::Spill)?;
                self.writer.insert(StreamWriter::try_new(BufWriter::new(file), &batch.schema())?)
            }
        };
        Ok(writer.write(batch)?)
    }

    pub(crate) fn finish(mut self) -> Result<StagedReader, IngestError> {
        let some = self.writer.is_some();
        if let Some(mut writer) = self.writer.take() {
            writer.finish()?;
            writer.get_mut().flush().map_err(IngestError::Spill)?;
        }
        self.file.seek(SeekFrom::Start(0)).map_err(IngestError::Spill)?;
        let reader = some.then(|| StreamReader::try_new(BufReader::new(self.file), None)).transpose()?;
        Ok(StagedReader { label: self.label, reader })
    }
}

/// The rows of a label, from a file.
pub(crate) struct StagedReader {
    label: LabelId,
    reader: Option<StreamReader<BufReader<File>>>,
}

impl StagedReader {
    pub(crate) fn label(&self) -> LabelId {
        self.label
    }
}

impl Iterator for StagedReader {
    type Item = Result<RecordBatch, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.reader.as_mut()?.next()?.map_err(IngestError::from))
    }
}

/// Puts ordinals before the other columns.
pub(crate) fn with_ordinals(batch: &RecordBatch, ordinals: Vec<u64>) -> Result<RecordBatch, IngestError> {
    let mut fields = vec![Field::new("~ordinal", DataType::UInt64, false)];
    fields.extend(batch.schema().fields().iter().map(|field| field.as_ref().clone()));
    let mut columns: Vec<ArrayRef> = vec![Arc::new(UInt64Array::from(ordinals))];
    columns.extend(batch.columns().iter().cloned());
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// Writes the ends of edges, numbered over all labels, to a file.
struct PairSink<'a> {
    starts: &'a [u64],
    file: BufWriter<File>,
}

impl EdgeSink for PairSink<'_> {
    fn edges(&mut self, _: usize, batch: &RecordBatch) -> Result<(), IngestError> {
        let ends = [0, 1].map(|column| batch.column(column).as_primitive::<UInt64Type>().values());
        let number = |vertex: u64| {
            let (label, ordinal) = parts(vertex);
            (self.starts[usize::from(label.0)] + ordinal) as u32
        };
        for (source, target) in ends[0].iter().zip(ends[1]) {
            // 8 bytes per edge, and one write, instead of two numbers of 8 bytes.
            let pair = u64::from(number(*source)) << 32 | u64::from(number(*target));
            self.file.write_all(&pair.to_le_bytes()).map_err(IngestError::Spill)?;
        }
        Ok(())
    }
}

/// Pairs from a file. A file that cannot be read ends early and sets `failed`.
struct Pairs<'a> {
    reader: BufReader<&'a File>,
    left: u64,
    failed: &'a Cell<Option<std::io::Error>>,
}

impl Iterator for Pairs<'_> {
    type Item = (u32, u32);

    fn next(&mut self) -> Option<(u32, u32)> {
        self.left = self.left.checked_sub(1)?;
        let mut bytes = [0; 8];
        if let Err(error) = self.reader.read_exact(&mut bytes) {
            self.failed.set(Some(error));
            return None;
        }
        let pair = u64::from_le_bytes(bytes);
        Some(((pair >> 32) as u32, pair as u32))
    }
}

impl Build<'_> {
    /// For each label, the new ordinal of each old one.
    pub(super) fn locality(&self, built: &BuiltGraph, spaces: &Spaces) -> Result<Vec<Vec<u32>>, IngestError> {
        let vertices: u64 = built.vertex_counts.iter().sum();
        // `order::locality` holds 12 bytes per vertex, and none per edge.
        let needed_bytes = vertices.saturating_mul(12);
        let left_bytes = self.share(44) as u64;
        let fits = u32::try_from(vertices).ok().filter(|_| needed_bytes <= left_bytes);
        if vertices > u64::from(u32::MAX) {
            let message = "a locality order numbers at most 4,294,967,295 vertices; use the order of keys";
            return Err(IngestError::Invalid(message.into()));
        }
        let count = fits.ok_or(IngestError::Memory { what: "a locality order", needed_bytes, left_bytes })?;
        let bytes = self.input_bytes(|feed| matches!(feed, Feed::Edges { .. }));
        self.context.progress.begin(LoadPhase::Order, bytes);
        let starts: Vec<u64> =
            built.vertex_counts.iter().scan(0, |sum, count| Some(std::mem::replace(sum, *sum + count))).collect();
        let mut files = Vec::new();
        for group in groups(self.dataset, Phase::Edges) {
            let sink = || {
                let file = tempfile::tempfile_in(self.spill_dir).map_err(IngestError::Spill)?;
                Ok::<_, IngestError>(PairSink { starts: &starts, file: BufWriter::with_capacity(1 << 20, file) })
            };
            // A file per thread: edges may come in any order, so the threads need no lock.
            let sinks = (0..self.settings.threads.max(1)).map(|_| sink()).collect::<Result<_, _>>()?;
            for sink in route_edges(self, spaces, built, &group, self.share(16), sinks)? {
                let file = sink.file.into_inner().map_err(|error| IngestError::Spill(error.into_error()))?;
                files.push(file);
            }
        }
        let failed = Cell::new(None);
        // The order needs two passes, each of which reads all files from the beginning.
        let pairs = || {
            files.iter().flat_map(|mut file| {
                let end = file.seek(SeekFrom::End(0)).and_then(|end| file.rewind().map(|()| end));
                let left = end.map_err(|error| failed.set(Some(error))).unwrap_or(0) / 8;
                Pairs { reader: BufReader::with_capacity(1 << 20, file), left, failed: &failed }
            })
        };
        let positions = order::locality(count, pairs);
        if let Some(error) = failed.take() {
            return Err(IngestError::Spill(error));
        }
        Ok(ranks_by_label(&positions, &built.vertex_counts))
    }
}

/// Turns positions over all labels into ranks within each label.
fn ranks_by_label(positions: &[u32], counts: &[u64]) -> Vec<Vec<u32>> {
    let mut start = 0;
    let mut ranks = Vec::with_capacity(counts.len());
    for count in counts {
        let of_label = &positions[start..start + *count as usize];
        let mut order: Vec<u32> = (0..*count as u32).collect();
        order.sort_unstable_by_key(|vertex| of_label[*vertex as usize]);
        let mut of_vertex = vec![0; order.len()];
        (0u32..).zip(order).for_each(|(rank, vertex)| of_vertex[vertex as usize] = rank);
        ranks.push(of_vertex);
        start += *count as usize;
    }
    ranks
}
