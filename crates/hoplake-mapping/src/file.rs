//! A mapped file.

use std::{fs::File, io, ops::Range, path::Path, sync::Arc};

use bytes::Bytes;
use memmap2::{Advice, Mmap, UncheckedAdvice};

/// How a file will be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AccessPattern {
    /// The system decides: it reads ahead of what is touched.
    #[default]
    Any,
    /// Here and there: nothing is read but the pages that are touched.
    Random,
    /// From one end to the other.
    Sequential,
}

/// A file of bytes that never change. Cheap to clone.
#[derive(Debug, Clone)]
pub struct MappedFile {
    mapping: Arc<Mapping>,
    /// All of it. Slices keep the map for as long as one of them lives.
    bytes: Bytes,
}

#[derive(Debug)]
struct Mapping {
    map: Mmap,
    file: File,
}

struct Owner(Arc<Mapping>);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.0.map
    }
}

impl MappedFile {
    /// Maps a file that is written no more.
    ///
    /// # Errors
    /// The system's, if it cannot be opened or mapped.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        #[expect(unsafe_code, reason = "a map of a file that another program changes would break Rust's rules")]
        // SAFETY: objects are staged under another name, renamed when they are complete, and never written again; a vacuum
        // unlinks them, which leaves the map as it is. The bytes are plain and checked by checksums before they are believed.
        let map = unsafe { Mmap::map(&file)? };
        let mapping = Arc::new(Mapping { map, file });
        Ok(Self { bytes: Bytes::from_owner(Owner(mapping.clone())), mapping })
    }

    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Some of its bytes, which are read when they are touched; `None` if it is shorter than that.
    pub fn slice(&self, range: Range<u64>) -> Option<Bytes> {
        let fits = range.start <= range.end && range.end <= self.len();
        fits.then(|| self.bytes.slice(range.start as usize..range.end as usize))
    }

    /// Whether a folder still has it under a name.
    pub fn is_linked(&self) -> bool {
        rustix::fs::fstat(&self.mapping.file).is_ok_and(|stat| stat.st_nlink > 0)
    }

    /// Says how it will be read. Advice is a hint: what fails changes nothing but time.
    pub fn expect(&self, access: AccessPattern) {
        let advice = match access {
            AccessPattern::Any => Advice::Normal,
            AccessPattern::Random => Advice::Random,
            AccessPattern::Sequential => Advice::Sequential,
        };
        let _ = self.mapping.map.advise(advice);
    }

    /// Says that some bytes will be needed: the system begins to read them, and the call does not wait for that.
    pub fn will_need(&self, range: Range<u64>) {
        let length = range.end.min(self.len()).saturating_sub(range.start);
        if length > 0 {
            let _ = self.mapping.map.advise_range(Advice::WillNeed, range.start as usize, length as usize);
        }
    }

    /// Says that some bytes will not be needed for long: their pages leave this process, and the system's cache if no other process
    /// has mapped them.
    pub fn will_not_need(&self, range: Range<u64>) {
        let length = range.end.min(self.len()).saturating_sub(range.start);
        if length == 0 {
            return;
        }
        #[expect(unsafe_code, reason = "of a private map, or of one that was written, it would lose changes")]
        // SAFETY: the map is of a file, shared and never written, so that pages that are touched again come with the same bytes.
        unsafe {
            let _ = self.mapping.map.unchecked_advise_range(
                UncheckedAdvice::DontNeed,
                range.start as usize,
                length as usize,
            );
        }
        #[cfg(target_os = "linux")]
        let _ = rustix::fs::fadvise(
            &self.mapping.file,
            range.start,
            std::num::NonZeroU64::new(length),
            rustix::fs::Advice::DontNeed,
        );
    }
}

/// Says that some bytes will be needed, if they are of a mapped file. Of other memory it changes nothing.
pub fn will_need(bytes: &[u8]) {
    let page = rustix::param::page_size();
    // Advice begins with a page.
    let before = bytes.as_ptr().addr() % page;
    let start = bytes.as_ptr().wrapping_sub(before).cast_mut().cast();
    #[expect(unsafe_code, reason = "there is no safe call for memory that is known by a slice alone")]
    // SAFETY: the pages have bytes of a slice that is borrowed, so they are mapped, and this advice never changes their contents.
    unsafe {
        let _ = rustix::mm::madvise(start, bytes.len() + before, rustix::mm::Advice::WillNeed);
    }
}

/// Says how some bytes will be read, if they are of mapped files. Slices that follow each other within a page, as blocks of a file
/// do, are one call. Of other memory it changes nothing but how it would be read ahead.
pub fn expect<'a>(slices: impl IntoIterator<Item = &'a [u8]>, access: AccessPattern) {
    let advice = match access {
        AccessPattern::Any => rustix::mm::Advice::Normal,
        AccessPattern::Random => rustix::mm::Advice::Random,
        AccessPattern::Sequential => rustix::mm::Advice::Sequential,
    };
    let page = rustix::param::page_size();
    let mut span: Option<(*const u8, usize)> = None;
    let advise = |(start, length): (*const u8, usize)| {
        let before = start.addr() % page;
        let start = start.wrapping_sub(before).cast_mut().cast();
        #[expect(unsafe_code, reason = "there is no safe call for memory that is known by slices alone")]
        // SAFETY: every page of the span has bytes of a slice that is borrowed, so it is mapped, and this advice changes only what
        // is read ahead, never what is there.
        unsafe {
            let _ = rustix::mm::madvise(start, length + before, advice);
        }
    };
    for slice in slices.into_iter().filter(|slice| !slice.is_empty()) {
        span = match span {
            // No page is between the two.
            Some((start, length))
                if (length..length + page).contains(&slice.as_ptr().addr().wrapping_sub(start.addr())) =>
            {
                Some((start, slice.as_ptr().addr() - start.addr() + slice.len()))
            }
            before => {
                before.into_iter().for_each(advise);
                Some((slice.as_ptr(), slice.len()))
            }
        };
    }
    span.into_iter().for_each(advise);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> (tempfile::TempDir, MappedFile) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("object");
        std::fs::write(&path, bytes).expect("a file");
        (folder, MappedFile::open(&path).expect("it is there"))
    }

    #[test]
    fn slices_have_the_bytes_of_the_file_whatever_was_advised() {
        let bytes: Vec<u8> = (0..100_000u32).map(|byte| (byte % 251) as u8).collect();
        let (_folder, mapped) = file(&bytes);
        for access in [AccessPattern::Any, AccessPattern::Random, AccessPattern::Sequential] {
            mapped.expect(access);
            let blocks = [0..10, 13..5_000, 5_001..5_001, 20_000..30_000, 1..2].map(|range| mapped.slice(range));
            expect(blocks.iter().flatten().map(|block| &block[..]), access);
            for range in [0..0, 0..1, 4_095..4_097, 50_000..100_000, 99_999..100_000] {
                mapped.will_need(range.clone());
                let slice = mapped.slice(range.clone()).expect("it fits");
                will_need(&slice);
                mapped.will_not_need(range.clone());
                assert_eq!(slice, bytes[range.start as usize..range.end as usize]);
            }
        }
        assert_eq!(mapped.slice(99_999..100_001), None);
        mapped.will_need(99_999..200_000);
        mapped.will_not_need(200_000..300_000);
    }

    #[test]
    fn slices_outlive_the_map_and_the_name() {
        let (folder, mapped) = file(b"bytes");
        let slice = mapped.slice(1..3).expect("it fits");
        assert!(mapped.is_linked());
        std::fs::remove_file(folder.path().join("object")).expect("it is there");
        assert!(!mapped.is_linked());
        drop(mapped);
        assert_eq!(slice, &b"yt"[..]);
    }

    #[test]
    fn a_file_without_bytes_is_mapped() {
        let (_folder, mapped) = file(b"");
        assert!(mapped.is_empty());
        assert_eq!(mapped.slice(0..0).expect("it fits"), Bytes::new());
        assert!(MappedFile::open(Path::new("/nothing/here")).is_err());
    }
}
