//! How a graph is opened.

use hoplake_storage::ReadSettings;

/// How a graph is opened.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenSettings {
    /// The version to open; `None` opens the newest.
    pub version: Option<u64>,
    /// The ends of segments, with their index blocks, come with the open, the shortest first, while they are together at most
    /// this many bytes. The root of another segment is read when it is first used, which takes a wave, once; its index
    /// blocks come through the caches. Default 8 MiB.
    pub index_bytes_max: u64,
    /// Index blocks of at most this many bytes come with the root of their segment when it is first used. Default
    /// 64 KiB: a request for them later would cost as much.
    pub index_with_root_bytes_max: u64,
    /// Filters come with the open likewise, of the segments whose ends come. Another filter is read when it pays, which takes no
    /// wave unless one look-up wants more bytes of blocks than it has. Default 1 MiB.
    pub filter_bytes_max: u64,
    /// How blocks are read, by a graph that has caches of its own.
    pub read: ReadSettings,
}

impl Default for OpenSettings {
    fn default() -> Self {
        Self {
            version: None,
            index_bytes_max: 8 << 20,
            index_with_root_bytes_max: 64 << 10,
            filter_bytes_max: 1 << 20,
            read: ReadSettings::default(),
        }
    }
}
