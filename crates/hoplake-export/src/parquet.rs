//! Parquet files.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};

use crate::encoder::Encoder;

/// Writes row groups of a bounded size.
pub(crate) struct ParquetEncoder {
    writer: ArrowWriter<Vec<u8>>,
    schema: SchemaRef,
    group_bytes: u64,
}

impl ParquetEncoder {
    /// Begins a file; a row group ends when it takes `group_bytes` of memory.
    pub(crate) fn new(schema: SchemaRef, group_bytes: u64) -> Result<Self, String> {
        let properties = WriterProperties::builder()
            .set_created_by(concat!("hoplake ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        let writer = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties));
        Ok(Self { writer: writer.map_err(|error| error.to_string())?, schema, group_bytes })
    }
}

impl Encoder for ParquetEncoder {
    fn write(&mut self, _table: usize, batch: &RecordBatch) -> Result<(), String> {
        // The same columns under the names of the file.
        let batch = RecordBatch::try_new(self.schema.clone(), batch.columns().to_vec());
        let batch = batch.map_err(|error| error.to_string())?;
        self.writer.write(&batch).map_err(|error| error.to_string())?;
        match self.kept_bytes() >= self.group_bytes {
            true => self.writer.flush().map_err(|error| error.to_string()),
            false => Ok(()),
        }
    }

    fn take(&mut self) -> Result<Vec<u8>, String> {
        // Out of the writer's own buffer first.
        self.writer.sync().map_err(|error| error.to_string())?;
        Ok(std::mem::take(self.writer.inner_mut()))
    }

    fn end(&mut self) -> Result<(), String> {
        self.writer.finish().map(drop).map_err(|error| error.to_string())
    }

    fn kept_bytes(&self) -> u64 {
        self.writer.memory_size() as u64
    }
}
