//! Manifests, behind their checksum: any message is a version or an error, and a version is written and read as itself.

#![no_main]

use hoplake_format::{Manifest, Slot, constants::MANIFEST_MAGIC};
use hoplake_fuzz::{begin, bounded, golden, seeds};
use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: {
        begin();
        seeds(golden::manifests());
    },
    |message: &[u8]| bounded((1 << 20) + 256 * message.len(), || {
        let _ = Slot::decode(message);
        if let Ok(manifest) = Manifest::decode(&sealed(message)) {
            look(&manifest);
        }
    })
);

fn sealed(message: &[u8]) -> Vec<u8> {
    let length = (message.len() as u32).to_le_bytes();
    let checksum = crc32c::crc32c(message).to_le_bytes();
    [&MANIFEST_MAGIC[..], &length, &checksum, message, &MANIFEST_MAGIC].concat()
}

fn look(manifest: &Manifest) {
    let again = Manifest::decode(&manifest.encode()).expect("what is written is read");
    assert_eq!(again, *manifest);
    manifest.schema.validate().expect("a manifest has a schema that can be");
    let next = manifest.next(manifest.change.clone(), 7);
    assert_eq!(next.version, manifest.version + 1);
    assert!(next.has_version(manifest.version) && Manifest::decode(&next.encode()).is_ok_and(|it| it == next));
    for version in manifest.versions_before(manifest.version).take(100) {
        assert!(manifest.has_version(version) && version < manifest.version);
    }
    assert!(manifest.content_runs().all(|run| run.since <= run.until && run.until <= manifest.version));
    for (count, label) in manifest.vertex_counts.iter().zip(&manifest.schema.vertex_labels) {
        assert!(count.live() <= count.ordinals && !label.name.is_empty());
    }
    let _ = manifest.objects();
    let _: u64 = manifest.degrees.iter().flatten().map(|degrees| degrees.vertices() >> 32).sum();
}
