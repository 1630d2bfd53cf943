//! Finds data at the ends of a device that no signature explains: an encrypted volume without a
//! header, a database without a magic number, a format of tomorrow. Sectors of zeros and sectors
//! that diskproof wrote itself do not count.

use super::image::{Slice, View};
use diskproof_model::own_data::is_marked;
use diskproof_model::units::SECTOR_BYTES;
use std::collections::HashSet;

/// Bytes of each end that are read: partition tables and the headers of filesystems and volumes
/// stand within the first MiB, where tools let the first partition begin.
pub(crate) const END_BYTES: u64 = 1 << 20;
/// Bytes of the dump: what a line of `hexdump -C` shows.
const SHOWN_BYTES: usize = 16;
/// Bytes of one read: what an image keeps as one chunk.
const PIECE_BYTES: u64 = 64 << 10;

/// Unexplained data at one end of a disk or partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unknown {
    /// Bytes from the start of the disk to the end that was read.
    pub(crate) start: u64,
    /// Bytes that were read there.
    pub(crate) length: u64,
    /// Sectors with data that nothing explains.
    pub(crate) sectors: u64,
    /// The place of `shown`, in bytes from the start of the disk.
    pub(crate) offset: u64,
    /// The first bytes of that data.
    pub(crate) shown: Vec<u8>,
    /// The partition whose end it is; `None` for the disk itself.
    pub(crate) slice: Option<Slice>,
}

/// Finds data at both ends of a disk or partition, outside of the sectors `signed` of the disk.
pub(super) fn find(
    view: &View<'_, '_>,
    slice: Option<&Slice>,
    signed: &HashSet<u64>,
) -> Vec<Unknown> {
    let length = view.length();
    let first = 0..length.min(END_BYTES);
    let last = length.saturating_sub(END_BYTES).max(first.end) / SECTOR_BYTES * SECTOR_BYTES;
    let mut ends = Vec::new();
    for end in [first, last..length] {
        let mut unknown: Option<Unknown> = None;
        for piece_start in end.clone().step_by(PIECE_BYTES as usize) {
            let piece = PIECE_BYTES.min(end.end - piece_start);
            // What cannot be read is a separate reason.
            let bytes = view.bytes(piece_start, piece as usize).unwrap_or_default();
            for (index, sector) in bytes.chunks(SECTOR_BYTES as usize).enumerate() {
                let Some(filled) = sector.iter().position(|byte| *byte != 0) else {
                    continue;
                };
                let place = view.start() + piece_start + index as u64 * SECTOR_BYTES;
                if is_marked(sector) || signed.contains(&(place / SECTOR_BYTES)) {
                    continue;
                }
                let from = filled / SHOWN_BYTES * SHOWN_BYTES;
                let unknown = unknown.get_or_insert_with(|| Unknown {
                    start: view.start() + end.start,
                    length: end.end - end.start,
                    sectors: 0,
                    offset: place + from as u64,
                    shown: sector[from..].iter().copied().take(SHOWN_BYTES).collect(),
                    slice: slice.cloned(),
                });
                unknown.sectors += 1;
            }
        }
        ends.extend(unknown);
    }
    ends
}
