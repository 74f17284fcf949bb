//! Mappings: any TOML is a mapping of the files next to it or an error, and what it maps can be read.

#![no_main]

use std::sync::{Arc, LazyLock};

use hoplake_fuzz::{begin, bounded, folder, made};
use hoplake_ingest::{
    BadRows,
    source::{SourceOptions, open},
};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(folder::new);

const PEOPLE: &[u8] = b"id,name,age,city,tags\n1,Ann,31,here,a;b\n2,\"B, Bob\",,there,\n3,,7.5,,c\n";
const KNOWS: &[u8] = b"from|to|since|weight\n1|2|2020-01-02|0.5\n2|3|2020-01-02T03:04:05Z|1\n3|9||x\n# end\n";
const BYTES_MAX: usize = 64 << 20;

fuzz_target!(
    init: {
        begin();
        folder::write(&FOLDER, "people.csv", PEOPLE);
        folder::write(&FOLDER, "knows.csv", KNOWS);
        folder::write(&FOLDER, "rows.parquet", &made::parquet()[0]);
    },
    |text: &[u8]| {
        let mapping = Some(folder::write(&FOLDER, "mapping.toml", text));
        bounded(BYTES_MAX + 1024 * text.len(), || {
            let Ok(dataset) = open(&[], &SourceOptions { mapping, ..SourceOptions::default() }) else { return };
            let rejects = FOLDER.path().join("rejects");
            let bad_rows = Arc::new(BadRows::skip(&rejects).expect("a file can be written"));
            let _ = folder::scan(&dataset, &bad_rows, usize::MAX);
        });
    }
);
