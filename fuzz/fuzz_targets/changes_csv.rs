//! Changes in CSV: any file is changes or an error that names its line, and it says the same each time it is read.

#![no_main]

use std::sync::LazyLock;

use hoplake::changes::ChangeReader;
use hoplake_format::Schema;
use hoplake_fuzz::{begin, bounded, folder, golden};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(folder::new);
static SCHEMA: LazyLock<Schema> = LazyLock::new(|| golden::newest().1.schema);

const BYTES_MAX: usize = 4 << 20;

fuzz_target!(
    init: {
        begin();
        LazyLock::force(&SCHEMA);
        LazyLock::force(&FOLDER);
    },
    |text: &[u8]| {
        let path = folder::write(&FOLDER, "changes.csv", text);
        bounded(BYTES_MAX + 256 * text.len(), || {
            let lines = text.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
            let mut reader = ChangeReader::new(&SCHEMA);
            let mut read = || {
                let changes = reader.read(&path).map_err(|error| error.to_string())?;
                changes.map(|change| change.map_err(|error| error.to_string())).collect::<Result<Vec<_>, _>>()
            };
            if let Ok(changes) = read() {
                assert!(changes.iter().all(|change| (2..=lines).contains(&change.location.number())));
                assert!(changes.is_sorted_by(|a, b| a.location.number() < b.location.number()));
            }
        });
    }
);
