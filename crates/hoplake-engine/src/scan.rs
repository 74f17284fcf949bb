//! The scan of a section: its blocks, all or those of some sources, as a stream in their order.
//!
//! ```text
//! section ── pieces of consecutive blocks, one request each, fetched ahead ──▶ blocks, checked ──▶ whoever decodes them
//! ```
//! Queries read blocks here and there, and plan each wave anew; what goes through a section from one end to the other reads
//! pieces of up to [`PIECE_BYTES`], so that a request costs what its bytes cost. While the blocks of one piece are decoded the
//! next are on their way, as many as the scan's share of a budget of bytes allows. Blocks that are in memory are taken from
//! there. Blocks of pieces are not put there: a scan would push out what queries come back to.
//!
//! A piece is checked block by block. A block that fails is read again by itself, as queries read it, with repetitions: an
//! answer may have been damaged on its way, and only what fails then is damage.
//!
//! **Waves.** Several scans that are merged are one line of work, and are passed one [`Branch`]. A piece that is asked for comes
//! in the wave after the last that the line waited for, whichever of the scans it belongs to.

use std::{collections::VecDeque, ops::Range, sync::Arc};

use bytes::Bytes;
use hoplake_format::FormatError;
use hoplake_storage::{BlockRequest, Branch, Check, Object, StorageError};
use tokio::task::JoinHandle;

use crate::{EngineError, Snapshot, snapshot::SectionPlace};

/// The most that one request reads: at 55 MiB/s a stream, 73 ms against a first byte of 25.
pub(crate) const PIECE_BYTES: u64 = 4 << 20;

/// The least, where many scans share a budget: three times the price of its bytes' time.
const PIECE_BYTES_MIN: u64 = 64 << 10;

/// Pieces of one scan that are on their way at once, at most.
const PIECES_MAX: u64 = 8;

/// How far a scan reads ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ahead {
    piece_bytes: u64,
    /// Pieces that are on their way while one is decoded.
    pieces: u64,
}

impl Ahead {
    /// The share of a budget that each of some scans has which go side by side.
    pub(crate) fn of(budget_bytes: u64, scans: usize) -> Self {
        let share = budget_bytes / scans.max(1) as u64;
        let piece_bytes = (share / 2).clamp(PIECE_BYTES_MIN, PIECE_BYTES);
        Self { piece_bytes, pieces: (share / piece_bytes).saturating_sub(1).clamp(1, PIECES_MAX) }
    }
}

/// The blocks of a section, in their order.
pub(crate) struct Scan {
    snapshot: Arc<Snapshot>,
    place: SectionPlace,
    ahead: Ahead,
    /// Blocks that were not asked for yet; `None` until the index is resident.
    left: Option<Range<usize>>,
    coming: VecDeque<Piece>,
    here: VecDeque<Bytes>,
}

/// Consecutive blocks.
enum Piece {
    InMemory(VecDeque<Bytes>),
    OnItsWay(Fetch),
}

/// A piece that is being read. Dropping it ends the request.
struct Fetch(JoinHandle<Result<(VecDeque<Bytes>, Branch), EngineError>>);

impl Drop for Fetch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Scan {
    /// All blocks of a section.
    pub(crate) fn new(snapshot: &Arc<Snapshot>, place: SectionPlace, ahead: Ahead) -> Self {
        let (coming, here) = (VecDeque::new(), VecDeque::new());
        Self { snapshot: snapshot.clone(), place, ahead, left: None, coming, here }
    }

    /// Which section it reads.
    pub(crate) fn place(&self) -> SectionPlace {
        self.place
    }

    /// That a block it gave is damaged.
    pub(crate) fn damaged(&self, error: FormatError) -> EngineError {
        let (store, segment) = (self.snapshot.reader().store(), self.snapshot.segment_of(self.place).0);
        EngineError::format(store.place(segment.name()))(error)
    }

    /// The payload of the next block; `None` behind the last.
    pub(crate) async fn next(&mut self, branch: &mut Branch) -> Result<Option<Bytes>, EngineError> {
        loop {
            if let Some(block) = self.here.pop_front() {
                return Ok(Some(block));
            }
            self.ask(branch).await?;
            self.here = match self.coming.pop_front() {
                None => return Ok(None),
                Some(Piece::InMemory(blocks)) => blocks,
                Some(Piece::OnItsWay(mut fetch)) => {
                    let (blocks, came) = (&mut fetch.0).await.map_err(stopped)??;
                    branch.join([&came]);
                    blocks
                }
            };
        }
    }

    /// Asks for as many pieces as may be on their way. Scans that are merged all ask before the first is waited for.
    pub(crate) async fn ask(&mut self, branch: &mut Branch) -> Result<(), EngineError> {
        let left = match &mut self.left {
            Some(left) => left,
            None => {
                self.snapshot.make_resident([self.place], branch).await?;
                let count = self.snapshot.section(self.place)?.index.block_count();
                self.left.insert(0..count)
            }
        };
        // One more than come while a piece is decoded: the caller takes the first.
        while left.start < left.end && (self.coming.len() as u64) <= self.ahead.pieces {
            let (blocks, piece) = next_piece(&self.snapshot, self.place, left.clone(), self.ahead, branch)?;
            left.start = blocks.end;
            self.coming.push_back(piece);
        }
        Ok(())
    }
}

fn stopped(error: tokio::task::JoinError) -> EngineError {
    EngineError::Internal(format!("a scan stopped: {error}"))
}

/// The piece that the first of some blocks begins: those that are in memory, or those that are not, up to the longest piece.
fn next_piece(
    snapshot: &Arc<Snapshot>,
    place: SectionPlace,
    left: Range<usize>,
    ahead: Ahead,
    branch: &Branch,
) -> Result<(Range<usize>, Piece), EngineError> {
    let (section, reader) = (snapshot.section(place)?, snapshot.reader());
    let end = section.index.positions[left.start] + ahead.piece_bytes;
    let fits = |block: usize| block == left.start || section.index.positions[block + 1] <= end;
    let near = |block: usize| reader.is_in_memory(&section.request(block));
    let begins_near = near(left.start);
    let count = left.clone().take_while(|block| fits(*block) && near(*block) == begins_near).count();
    let blocks = left.start..left.start + count;
    if begins_near {
        let here = blocks.clone().map(|block| reader.in_memory(&section.request(block), branch.context()));
        // Unless another has pushed one of them out since.
        if let Some(here) = here.collect() {
            return Ok((blocks, Piece::InMemory(here)));
        }
    }
    // Numbered apart from the section's object: what it asks for are pieces, and nobody who wants a block may join in.
    let object = reader.object(&section.object.name);
    let fetch = fetch(snapshot.clone(), place, object, blocks.clone(), branch.clone());
    Ok((blocks, Piece::OnItsWay(Fetch(tokio::spawn(fetch)))))
}

/// Reads consecutive blocks with one request, and again by themselves those that came damaged.
async fn fetch(
    snapshot: Arc<Snapshot>,
    place: SectionPlace,
    object: Object,
    blocks: Range<usize>,
    mut branch: Branch,
) -> Result<(VecDeque<Bytes>, Branch), EngineError> {
    let (section, reader) = (snapshot.section(place)?, snapshot.reader());
    let positions = &section.index.positions;
    let range = positions[blocks.start]..positions[blocks.end];
    let piece = BlockRequest { object: &object, range: range.clone(), check: Check::Later };
    let pieces = reader.read(&[piece], &mut branch).await?;
    let mut payloads = VecDeque::with_capacity(blocks.len());
    for block in blocks {
        let request = section.request(block);
        let within = (request.range.start - range.start) as usize..(request.range.end - range.start) as usize;
        let payload = match reader.open(&request, &pieces[0].slice(within)) {
            Ok(payload) => payload,
            Err(StorageError::Corrupt { .. }) => reader.read(&[request], &mut branch).await?.swap_remove(0),
            Err(error) => return Err(error.into()),
        };
        payloads.push_back(payload);
    }
    Ok((payloads, branch))
}
