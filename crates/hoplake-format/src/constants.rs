//! Numbers and names that can never change, pinned by one test.

/// First and last bytes of a segment.
pub const SEGMENT_MAGIC: [u8; 8] = *b"HOPSEG02";
/// First and last bytes of a manifest.
pub const MANIFEST_MAGIC: [u8; 8] = *b"HOPMAN01";
/// First and last bytes of a version tombstone.
pub const REMOVED_MAGIC: [u8; 8] = *b"HOPGONE2";
/// A version tombstone is at most this long, and a manifest is longer.
pub const REMOVED_BYTES_MAX: u64 = 48;
/// The version of the format that this build writes and reads. Those before it were never released.
pub const FORMAT_VERSION: u32 = 4;
/// Bytes of the CRC-32C after every block.
pub const CHECKSUM_BYTES: usize = 4;
/// Bytes after a segment's index: its length, its checksum, the magic.
pub const SEGMENT_TRAILER_BYTES: usize = 16;
/// The column of keys in a vertex table.
pub const KEY_COLUMN: &str = "~key";
/// The metadata entry of a table that holds the CRC-32C of its pages.
pub const PAGE_CHECKSUMS_ENTRY: &str = "hoplake.page_crc32c";
/// Folder of manifests.
pub const MANIFEST_FOLDER: &str = "manifest";
/// Folder of segments and tables.
pub const DATA_FOLDER: &str = "data";
/// Best-effort copy of the newest manifest.
pub const HINT_NAME: &str = "hint";
/// In a mirror, the URL of its source.
pub const MIRROR_NAME: &str = "mirror";

/// The name of the manifest of a version: twenty digits, so that names sort by version.
pub fn manifest_name(version: u64) -> String {
    format!("{MANIFEST_FOLDER}/{version:020}.hlm")
}

/// The version in the name of a manifest.
pub fn manifest_version(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(MANIFEST_FOLDER)?.strip_prefix('/')?.strip_suffix(".hlm")?;
    (digits.len() == 20).then(|| digits.parse().ok())?
}

/// The name of a data object: the version its writer started from, the writer's ULID, a number and
/// an ending. The version says when it is garbage: unpublished, it could only have become part of
/// version `base + 1`.
pub fn data_name(base: u64, writer: &str, number: u64, ending: &str) -> String {
    format!("{DATA_FOLDER}/{base:020}-{writer}-{number:06}.{ending}")
}

/// The suffix of a trial object, with which a writer tests the store's conditional create.
pub const PROBE_ENDING: &str = "probe";

/// Whether an object is one that a store is tried with.
pub fn is_probe(name: &str) -> bool {
    name.rsplit('.').next().is_some_and(|ending| ending.starts_with(PROBE_ENDING))
}

/// The ULID of the writer of a data object.
pub fn data_writer(name: &str) -> Option<&str> {
    // A slash, twenty digits and a hyphen are 22 bytes; a ULID has 26.
    name.strip_prefix(DATA_FOLDER)?.get(22..48)
}

/// Whether an object is named from the root of the store, as those of another graph in it are.
pub fn is_elsewhere(name: &str) -> bool {
    name.starts_with('/')
}

/// The name of a data object below the prefix of the graph that it was written for.
pub fn own_name(name: &str) -> &str {
    let folder = name.rfind("/data/").filter(|_| is_elsewhere(name));
    folder.map_or(name, |at| &name[at + 1..])
}

/// The version from which the writer of a data object started.
pub fn data_base_version(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(DATA_FOLDER)?.strip_prefix('/')?.get(..20)?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_never_change() {
        assert_eq!(SEGMENT_MAGIC, [72, 79, 80, 83, 69, 71, 48, 50]);
        assert_eq!(MANIFEST_MAGIC, [72, 79, 80, 77, 65, 78, 48, 49]);
        assert_eq!(REMOVED_MAGIC, [72, 79, 80, 71, 79, 78, 69, 50]);
        assert_eq!((FORMAT_VERSION, CHECKSUM_BYTES, SEGMENT_TRAILER_BYTES), (4, 4, 16));
        assert_eq!((KEY_COLUMN, PAGE_CHECKSUMS_ENTRY, HINT_NAME), ("~key", "hoplake.page_crc32c", "hint"));
        assert_eq!(manifest_name(7), "manifest/00000000000000000007.hlm");
        assert_eq!(manifest_version("manifest/00000000000000000007.hlm"), Some(7));
        assert_eq!(manifest_version("manifest/7.hlm"), None);
        let name = data_name(3, "01JDXAAAAAAAAAAAAAAAAAAAAA", 12, "hls");
        assert_eq!(name, "data/00000000000000000003-01JDXAAAAAAAAAAAAAAAAAAAAA-000012.hls");
        assert_eq!((data_base_version(&name), data_writer(&name)), (Some(3), Some("01JDXAAAAAAAAAAAAAAAAAAAAA")));
        let elsewhere = format!("/graphs/data/data/{}", &name[5..]);
        assert_eq!((own_name(&elsewhere), own_name(&name)), (&*name, &*name));
        assert_eq!((is_elsewhere(&elsewhere), is_elsewhere(&name)), (true, false));
        assert_eq!((data_base_version("data/x"), data_writer("data/x")), (None, None));
    }
}
