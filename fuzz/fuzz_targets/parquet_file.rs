//! Parquet that lies, as the readers of tables and of input meet it: a footer and pages are rows or an error, and take no more
//! memory than what they are and the limits allow.

#![no_main]

use std::sync::Arc;

use bytes::Bytes;
use hoplake_format::pages::{PageGroups, PageLimits, guarded, longest_of_dictionary, read_footer};
use hoplake_fuzz::{begin, bounded, made, seeds};
use libfuzzer_sys::fuzz_target;
use parquet::{
    arrow::{ProjectionMask, arrow_reader::ParquetRecordBatchReader, parquet_to_arrow_field_levels},
    errors::ParquetError,
    file::metadata::ParquetMetaData,
};

/// Far below what the readers allow, so that a claim is soon beyond it.
const LIMITS: PageLimits = PageLimits { page_bytes_max: 1 << 20, ratio_max: 100 };
/// A footer and a batch of the widest columns.
const BYTES_MAX: usize = 64 << 20;
const BATCH_ROWS: usize = 64;
const BATCHES_MAX: usize = 64;
const COLUMNS_MAX: usize = 64;

fuzz_target!(
    init: {
        begin();
        // The length of the footer and the magic behind it are put there anew.
        seeds(made::parquet().iter().map(|file| &file[..file.len() - 4]));
    },
    |bytes: &[u8]| bounded(BYTES_MAX + 256 * bytes.len(), || {
        let file = Arc::new(Bytes::from([bytes, b"PAR1"].concat()));
        if let Ok(metadata) = read_footer(&*file) {
            read(&file, &Arc::new(metadata));
        }
    })
);

fn read(file: &Arc<Bytes>, metadata: &Arc<ParquetMetaData>) {
    let groups: Vec<usize> = (0..metadata.num_row_groups()).collect();
    let schema = metadata.file_metadata().schema_descr();
    for leaf in 0..schema.num_columns().min(COLUMNS_MAX) {
        for group in groups.iter().take(4) {
            let _ = guarded(|| longest_of_dictionary(file, metadata, *group, leaf, LIMITS));
        }
    }
    let Ok(pages) = PageGroups::of_file(file, metadata.clone(), groups, LIMITS) else { return };
    let opened = guarded(|| {
        let levels = parquet_to_arrow_field_levels(schema, ProjectionMask::all(), None)?;
        ParquetRecordBatchReader::try_new_with_row_groups(&levels, &pages, BATCH_ROWS, None)
    });
    let Ok(mut reader) = opened else { return };
    for _ in 0..BATCHES_MAX {
        match guarded(|| reader.next().transpose().map_err(ParquetError::from)) {
            Ok(Some(batch)) => assert!(batch.num_rows() <= BATCH_ROWS),
            _ => return,
        }
    }
}
