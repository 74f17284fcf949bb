//! Text files as they are given to a load: every layout that is recognised, also compressed. Any file is rows, bad rows or an
//! error; it says the same each time it is read, and leaves no row out in silence.

#![no_main]

use std::{
    fs,
    sync::{Arc, LazyLock},
};

use hoplake_fuzz::{begin, bounded, folder};
use hoplake_ingest::{
    BadRows,
    source::{ReadLimits, SourceOptions, open},
};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(folder::new);

/// The name decides what a file may be.
const NAMES: [&str; 12] = [
    "edges.csv",
    "edges.tsv",
    "edges.txt",
    "edges.el",
    "vertices.csv",
    "person_0_0.csv",
    "person_knows_person_0_0.csv",
    "person_speaks_language_0_0.csv",
    "edges.csv.gz",
    "edges.txt.zst",
    "graph.e",
    "graph.v",
];
const BYTES_MAX: usize = 64 << 20;
const ROWS_MAX: usize = 1 << 20;

fuzz_target!(init: begin(), |bytes: &[u8]| {
    // The first line says what the file is called: a digit, for the fuzzer's sake.
    let Some((name, bytes)) = bytes.split_first() else { return };
    let name = NAMES[usize::from(*name) % NAMES.len()];
    let path = folder::write(&FOLDER, name, bytes);
    bounded(BYTES_MAX, || {
        let limits = ReadLimits { field_bytes_max: 256, row_bytes_max: 1 << 10, ..ReadLimits::default() };
        let Ok(dataset) = open(&[path.clone()], &SourceOptions { limits, ..SourceOptions::default() }) else { return };
        let scan = || {
            let rejects = FOLDER.path().join("rejects");
            let bad_rows = Arc::new(BadRows::skip(&rejects).expect("a file can be written"));
            let rows = folder::scan(&dataset, &bad_rows, ROWS_MAX).map_err(|error| error.to_string());
            (rows, bad_rows.skipped())
        };
        assert_eq!(scan(), scan());
    });
    fs::remove_file(&path).expect("the file is there");
});
