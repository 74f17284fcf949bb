//! Bounds on what a reader takes of a file at a time, which keep a load within its memory whatever a file claims.

/// Bounds on what is read at a time. Reaching one is a bad row or an error that names the file and the setting.
///
/// With a budget of memory, a field and a row have a sixteenth of it at most, and a Parquet page a quarter: each thread
/// holds a row, the columns it goes into and their copy in the sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadLimits {
    /// The longest field of a text file, in bytes. Default 16 MiB.
    pub field_bytes_max: u64,
    /// The longest row of a text file, in bytes: its lines and the breaks in its quotes. Where fields are not quoted,
    /// and in JSON Lines, a row is a line. Default 64 MiB.
    pub row_bytes_max: u64,
    /// How many bytes a compressed text file may become for each byte of its own, counted from the first 16 MiB on;
    /// and, of Parquet, a page. Default 500; text seldom exceeds 50.
    pub decompression_ratio_max: u64,
    /// The largest page of a Parquet file, decompressed, in bytes. Default 128 MiB.
    pub page_bytes_max: u64,
    /// The budget of memory that the bounds above are to keep to, in bytes; none by default.
    pub memory_bytes: Option<u64>,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self {
            field_bytes_max: 16 << 20,
            row_bytes_max: 64 << 20,
            decompression_ratio_max: 500,
            page_bytes_max: 128 << 20,
            memory_bytes: None,
        }
    }
}

/// The most fields of a row: below it, what a reader keeps of each field is small next to the row.
pub(crate) const FIELDS_MAX: usize = 65_536;

/// Bytes that a compressed file or page may always expand to: small files of zeros are not an attack.
pub(crate) const DECOMPRESSED_FREE_BYTES: u64 = 16 << 20;

/// Larger chunks are not faster.
const CHUNK_BYTES_MAX: u64 = 2 << 20;

/// A bound, and the setting that raises it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound {
    pub(crate) bytes: usize,
    raise: &'static str,
}

impl Bound {
    /// The end of a sentence about something that is larger.
    pub(crate) fn exceeded(self, what: &str) -> String {
        format!("has a {what} of more than {} bytes; raise {}", self.bytes, self.raise)
    }
}

impl ReadLimits {
    /// The bound on a field.
    pub(crate) fn field(&self) -> Bound {
        self.bound(self.field_bytes_max, "field_bytes_max", 16)
    }

    /// The bound on a row.
    pub(crate) fn row(&self) -> Bound {
        self.bound(self.row_bytes_max, "row_bytes_max", 16)
    }

    /// The bound on a page of Parquet.
    pub(crate) fn page(&self) -> Bound {
        self.bound(self.page_bytes_max, "page_bytes_max", 4)
    }

    /// The bound on a key: indexes and filters hold keys in memory, several of each block.
    pub(crate) fn key(&self) -> Bound {
        self.bound(self.field_bytes_max, "field_bytes_max", 256)
    }

    /// The bytes of a chunk of rows, about. Every thread has one in its hands and one or two on their way.
    pub(crate) fn chunk_bytes(&self) -> usize {
        let of_memory =
            self.memory_bytes.map_or(CHUNK_BYTES_MAX, |bytes| (bytes / 128).clamp(256 << 10, CHUNK_BYTES_MAX));
        usize::try_from(of_memory).unwrap_or(2 << 20)
    }

    fn bound(&self, setting: u64, raise: &'static str, share: u64) -> Bound {
        let of_memory = self.memory_bytes.map_or(u64::MAX, |bytes| bytes / share);
        let (bytes, raise) = if of_memory < setting { (of_memory, "the memory budget") } else { (setting, raise) };
        Bound { bytes: usize::try_from(bytes).unwrap_or(usize::MAX), raise }
    }

    /// Whether the decompressed size is within the limits for these bytes on disk.
    pub(crate) fn allows(&self, compressed: u64, decompressed: u64) -> bool {
        decompressed <= DECOMPRESSED_FREE_BYTES.saturating_add(compressed.saturating_mul(self.decompression_ratio_max))
    }
}
