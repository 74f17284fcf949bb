//! The pages of a column chunk, one after another, each checked and decompressed before a decoder sees it.

use std::{collections::VecDeque, io::Read};

use bytes::Bytes;
use parquet::{
    basic::{Compression, Encoding, Type},
    column::page::{Page, PageMetadata, PageReader},
    errors::ParquetError,
    file::{metadata::ColumnChunkMetaData, reader::ChunkReader},
};

use super::{
    PageLimits, corrupt,
    groups::Window,
    header::{DataV2, PageHeader, PageKind},
    int96,
    values::{check_dictionary, check_values},
};

/// So much of a page is read to find its header; more where statistics make it longer.
const HEADER_BYTES: usize = 1 << 10;
const HEADER_BYTES_MAX: usize = 4 << 20;
/// Levels take memory in addition to values: a page of a few bytes can claim a million equal levels. This
/// many are fine in a chunk, where a row has one value and where it has a list,
const LEVELS_FREE: u64 = 64 << 20;
const LEVELS_FREE_OF_LISTS: u64 = 4 << 20;
/// and beyond that this many for each byte on disk, and for each byte decompressed: lists of one length each take two
/// bits a level.
const LEVELS_OF_BYTE: u64 = 512;
const LEVELS_OF_DECOMPRESSED_BYTE: u64 = 8;

/// The pages of a column chunk.
pub(super) struct ChunkPages<R> {
    windows: VecDeque<Window<R>>,
    codec: Compression,
    of: Type,
    type_length: i32,
    max_definition: i16,
    max_repetition: i16,
    values_left: u64,
    levels: u64,
    bytes: u64,
    decompressed_bytes: u64,
    has_dictionary: bool,
    limits: PageLimits,
    next: Option<(PageHeader, usize)>,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl<R: ChunkReader> ChunkPages<R> {
    pub(super) fn new(column: &ColumnChunkMetaData, windows: Vec<Window<R>>, limits: PageLimits) -> Self {
        let description = column.column_descr();
        Self {
            windows: windows.into(),
            codec: column.compression(),
            of: column.column_type(),
            type_length: description.type_length(),
            max_definition: description.max_def_level(),
            max_repetition: description.max_rep_level(),
            values_left: u64::try_from(column.num_values()).unwrap_or(0),
            levels: 0,
            bytes: 0,
            decompressed_bytes: 0,
            has_dictionary: false,
            limits,
            next: None,
            zstd: None,
        }
    }

    /// Reads the header of the next page, unless that is done; false at the end.
    fn fill(&mut self) -> Result<bool, ParquetError> {
        if self.next.is_some() {
            return Ok(true);
        }
        while self.windows.front().is_some_and(|window| window.range.is_empty()) {
            self.windows.pop_front();
        }
        let Some(window) = self.windows.front() else { return Ok(false) };
        let in_window = usize::try_from(window.range.end - window.range.start).unwrap_or(usize::MAX);
        let mut at_hand = HEADER_BYTES;
        let (header, length) = loop {
            let bytes = window.reader.get_bytes(window.range.start, at_hand.min(in_window))?;
            // `EOF` means that the header is longer than these bytes: long statistics make it so.
            match PageHeader::read(&bytes) {
                Err(ParquetError::EOF(_)) if at_hand < in_window.min(HEADER_BYTES_MAX) => at_hand *= 8,
                read => break read?,
            }
        };
        if header.compressed > in_window - length {
            let left = in_window - length;
            return Err(corrupt(format!(
                "a page of {} bytes would end after its chunk, {left} bytes away",
                header.compressed
            )));
        }
        self.next = Some((header, length));
        Ok(true)
    }

    /// Takes the bytes of the page whose header was read.
    fn take(&mut self, header: &PageHeader, length: usize) -> Result<Bytes, ParquetError> {
        let missing = || corrupt("a page has no bytes");
        let window = self.windows.front_mut().ok_or_else(missing)?;
        let at = window.range.start + length as u64;
        window.range.start = at + header.compressed as u64;
        self.bytes += (length + header.compressed) as u64;
        self.decompressed_bytes += header.decompressed as u64;
        window.reader.get_bytes(at, header.compressed)
    }

    fn page(&mut self) -> Result<Option<Page>, ParquetError> {
        loop {
            if !self.fill()? {
                return Ok(None);
            }
            let Some((header, length)) = self.next.take() else { return Ok(None) };
            let body = self.take(&header, length)?;
            match header.kind.clone() {
                // Index pages and unknown kinds have no values, so the format lets readers skip them.
                PageKind::Other => {}
                PageKind::Dictionary { values, encoding } => {
                    return self.dictionary(&header, &body, values, encoding).map(Some);
                }
                PageKind::Data { values, encoding, definitions, repetitions } => {
                    self.count(values)?;
                    let buf = self.decompress(&body, header.decompressed)?;
                    let mut rest = skip_levels(&buf, repetitions, self.max_repetition, values)?;
                    rest = skip_levels(rest, definitions, self.max_definition, values)?;
                    check_values(encoding, rest, values, &self.limits)?;
                    let levels = buf.len() - rest.len();
                    let buf = self.in_range(encoding, buf, levels);
                    return Ok(Some(Page::DataPage {
                        num_values: values,
                        encoding,
                        def_level_encoding: definitions,
                        rep_level_encoding: repetitions,
                        statistics: None,
                        buf,
                    }));
                }
                PageKind::DataV2(page) => return self.data_v2(&header, &body, &page).map(Some),
            }
        }
    }

    fn dictionary(
        &mut self,
        header: &PageHeader,
        body: &Bytes,
        values: u32,
        encoding: Encoding,
    ) -> Result<Page, ParquetError> {
        if std::mem::replace(&mut self.has_dictionary, true) {
            return Err(corrupt("a column has two dictionaries"));
        }
        if !matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY) {
            return Err(corrupt("a dictionary has an impossible encoding"));
        }
        let buf = self.decompress(body, header.decompressed)?;
        check_dictionary(self.of, self.type_length, values, &buf)?;
        let buf = self.in_range(Encoding::PLAIN, buf, 0);
        Ok(Page::DictionaryPage { buf, num_values: values, encoding, is_sorted: false })
    }

    fn data_v2(&mut self, header: &PageHeader, body: &Bytes, page: &DataV2) -> Result<Page, ParquetError> {
        self.count(page.values)?;
        // Levels are never compressed in this version, so they count within both sizes.
        let levels = page.definition_bytes as usize + page.repetition_bytes as usize;
        if levels > body.len() || levels > header.decompressed || page.nulls > page.values || page.rows > page.values {
            return Err(corrupt("the levels of a page, its nulls or rows are more than it has"));
        }
        let buf = if page.is_compressed && self.codec != Compression::UNCOMPRESSED {
            let values = match header.decompressed - levels {
                // Nothing but nulls.
                0 => Bytes::new(),
                expected => self.decompress(&body.slice(levels..), expected)?,
            };
            Bytes::from([&body[..levels], &values[..]].concat())
        } else {
            body.clone()
        };
        check_values(page.encoding, &buf[levels..], page.values - page.nulls, &self.limits)?;
        let buf = self.in_range(page.encoding, buf, levels);
        Ok(Page::DataPageV2 {
            num_values: page.values,
            encoding: page.encoding,
            num_nulls: page.nulls,
            num_rows: page.rows,
            def_levels_byte_len: page.definition_bytes,
            rep_levels_byte_len: page.repetition_bytes,
            is_compressed: page.is_compressed,
            statistics: None,
            buf,
        })
    }

    /// A page whose moments no decoder can wrap around; its values begin after its levels.
    fn in_range(&self, encoding: Encoding, page: Bytes, levels: usize) -> Bytes {
        if self.of == Type::INT96 && encoding == Encoding::PLAIN { int96::bounded(page, levels) } else { page }
    }

    /// Counts the values of a page against those of its chunk.
    fn count(&mut self, values: u32) -> Result<(), ParquetError> {
        let left = self.values_left.checked_sub(values.into());
        self.values_left = left.ok_or_else(|| corrupt("the pages of a column have more values than the column"))?;
        // A row of nulls or of an empty list takes levels, but no bytes for values.
        self.levels += u64::from(values);
        let free = if self.max_repetition > 0 { LEVELS_FREE_OF_LISTS } else { LEVELS_FREE };
        let of_bytes = self.bytes * LEVELS_OF_BYTE + self.decompressed_bytes * LEVELS_OF_DECOMPRESSED_BYTE;
        if self.levels > free + of_bytes {
            return Err(corrupt(format!("{} values would be in {} bytes", self.levels, self.bytes)));
        }
        Ok(())
    }

    fn decompress(&mut self, body: &Bytes, expected: usize) -> Result<Bytes, ParquetError> {
        if self.codec == Compression::UNCOMPRESSED {
            return if body.len() == expected { Ok(body.clone()) } else { Err(size(body.len(), expected)) };
        }
        if !self.limits.allows(body.len(), expected) {
            let bytes = body.len();
            return Err(corrupt(format!(
                "a page of {bytes} bytes would become {expected} bytes; raise page_bytes_max or decompression_ratio_max"
            )));
        }
        if expected == 0 {
            return Ok(Bytes::new());
        }
        let failed = |_| corrupt("a page cannot be decompressed");
        let page = match self.codec {
            Compression::ZSTD(_) => {
                let zstd = match &mut self.zstd {
                    Some(zstd) => zstd,
                    None => self.zstd.insert(zstd::bulk::Decompressor::new().map_err(failed)?),
                };
                zstd.decompress(body, expected).map_err(failed)?
            }
            Compression::SNAPPY => {
                // The decoder allocates the length that the stream claims, so it must be the expected one.
                let found = snap::raw::decompress_len(body).map_err(|_| corrupt("a page cannot be decompressed"))?;
                if found != expected {
                    return Err(size(found, expected));
                }
                snap::raw::Decoder::new().decompress_vec(body).map_err(|_| corrupt("a page cannot be decompressed"))?
            }
            Compression::GZIP(_) => {
                let mut page = Vec::new();
                let decoder = flate2::read::MultiGzDecoder::new(&body[..]);
                // One byte more than expected proves that the stream is too long; the rest is not decompressed.
                decoder.take(expected as u64 + 1).read_to_end(&mut page).map_err(failed)?;
                page
            }
            other => return Err(corrupt(format!("it is compressed by {other}; zstd, snappy and gzip can be read"))),
        };
        if page.len() == expected { Ok(page.into()) } else { Err(size(page.len(), expected)) }
    }
}

fn size(found: usize, expected: usize) -> ParquetError {
    corrupt(format!("a page has {found} bytes but its header says {expected}"))
}

/// The bytes after the levels of a data page of the first version.
fn skip_levels(page: &[u8], encoding: Encoding, max_level: i16, values: u32) -> Result<&[u8], ParquetError> {
    if max_level == 0 {
        return Ok(page);
    }
    let cut_off = || corrupt("a page ends within its levels");
    #[expect(deprecated, reason = "old files have levels in it")]
    if encoding == Encoding::BIT_PACKED {
        let bits = u64::from(16 - max_level.leading_zeros());
        let bytes = (u64::from(values) * bits).div_ceil(8) as usize;
        return page.get(bytes..).ok_or_else(cut_off);
    }
    if encoding != Encoding::RLE {
        return Err(corrupt("levels have an impossible encoding"));
    }
    let (length, rest) = page.split_first_chunk::<4>().ok_or_else(cut_off)?;
    rest.get(u32::from_le_bytes(*length) as usize..).ok_or_else(cut_off)
}

impl<R: ChunkReader> Iterator for ChunkPages<R> {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.page().transpose()
    }
}

impl<R: ChunkReader> PageReader for ChunkPages<R> {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        self.page()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        while self.fill()? {
            let Some((header, length)) = self.next.clone() else { break };
            let (num_rows, num_levels, is_dict) = match &header.kind {
                PageKind::Other => {
                    self.next = None;
                    self.take(&header, length)?;
                    continue;
                }
                PageKind::Dictionary { .. } => (None, None, true),
                PageKind::Data { values, .. } => (None, Some(*values as usize), false),
                PageKind::DataV2(page) => (Some(page.rows as usize), Some(page.values as usize), false),
            };
            return Ok(Some(PageMetadata { num_rows, num_levels, is_dict }));
        }
        Ok(None)
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        if self.fill()?
            && let Some((header, length)) = self.next.take()
        {
            self.take(&header, length)?;
            if let PageKind::Data { values, .. } | PageKind::DataV2(DataV2 { values, .. }) = &header.kind {
                self.count(*values)?;
            }
        }
        Ok(())
    }
}
