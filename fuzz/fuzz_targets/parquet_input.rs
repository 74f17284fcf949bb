//! Parquet as it is given to a load and to `apply`: an edge list, vertices of a mapping, and changes. Any file is rows, bad rows
//! or an error within the bounds of the limits.

#![no_main]

use std::sync::{Arc, LazyLock};

use hoplake::changes::ChangeReader;
use hoplake_format::Schema;
use hoplake_fuzz::{begin, bounded, folder, made, seeds};
use hoplake_ingest::{
    BadRows,
    source::{ReadLimits, SourceOptions, open},
};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(folder::new);

const MAPPING: &str = r#"
[[vertices]]
file = "file.parquet"
label = "P"
key = "id"
[[edges]]
file = "file.parquet"
label = "knows"
source = "id"
source_label = "P"
target = "other"
target_label = "P"
ignore_others = false
"#;
const BYTES_MAX: usize = 256 << 20;
const ROWS_MAX: usize = 100_000;

fuzz_target!(
    init: {
        begin();
        folder::write(&FOLDER, "mapping.toml", MAPPING.as_bytes());
        seeds(made::parquet().into_iter().flat_map(|file| (0..3).map(move |way| [vec![way], file.clone()].concat())));
    },
    |bytes: &[u8]| {
        let Some((way, bytes)) = bytes.split_first() else { return };
        let path = folder::write(&FOLDER, "file.parquet", bytes);
        bounded(BYTES_MAX, || match way % 3 {
            0 => load(SourceOptions { mapping: Some(FOLDER.path().join("mapping.toml")), ..options() }),
            1 => load(options()),
            _ => {
                let mut reader = ChangeReader::new(&Schema::default());
                if let Ok(changes) = reader.read(&path) {
                    changes.take(ROWS_MAX).for_each(drop);
                }
            }
        });
    }
);

fn options() -> SourceOptions {
    let limits = ReadLimits { page_bytes_max: 1 << 20, decompression_ratio_max: 100, ..ReadLimits::default() };
    SourceOptions { limits, ..SourceOptions::default() }
}

fn load(options: SourceOptions) {
    let file = FOLDER.path().join("file.parquet");
    let Ok(dataset) = open(&[file], &options) else { return };
    let bad_rows = Arc::new(BadRows::skip(&FOLDER.path().join("rejects.csv")).expect("a file can be written"));
    let _ = folder::scan(&dataset, &bad_rows, ROWS_MAX);
}
