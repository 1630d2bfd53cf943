//! Fills pages that name themselves, and recognises them: each sector carries the run, the place,
//! the number of the write and a checksum, so that a page of two writes shows both. Pure.

use crate::random::{GOLDEN_GAMMA, Splitmix};
use diskproof_model::own_data::mark_sectors;

/// Bytes of a page: PostgreSQL's block, the unit of its log and its tables.
pub const PAGE_BYTES: usize = 8192;
/// The least that a disk writes as a whole, in bytes.
const SECTOR_BYTES: usize = 512;
/// Bytes of the content of a small file: several sectors, so that a torn one shows. Chosen.
pub(crate) const FILE_BYTES: usize = 4 * SECTOR_BYTES;

/// Begins each sector. A verifier of another build must find the pages of a run, so that another
/// layout of the sector needs another text here and another `protocol::VERSION`.
const MAGIC: &[u8; 8] = b"DPOWCUT1";
// Offsets of the fields behind it, in bytes of the sector.
const RUN_AT: usize = 8;
const STREAM_AT: usize = 24;
const SECTOR_AT: usize = 26;
const SLOT_AT: usize = 28;
const NUMBER_AT: usize = 32;
const CHECKSUM_AT: usize = 40;
const CHECKSUM_END: usize = 44;
const STARTED_AT: usize = 44;
/// Bytes of the header. The mark of own data follows it (`own_data`).
const HEADER_BYTES: usize = 48;

/// A page at an address that suits direct I/O.
#[derive(Clone)]
#[repr(align(4096))]
pub(crate) struct AlignedPage(pub [u8; PAGE_BYTES]);

/// The write that a page or file comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageLabel {
    /// Id of the run.
    pub run: u128,
    /// Start of the run by the writer's clock, in seconds since 1970.
    pub started_s: u32,
    /// Index of the stream in the run.
    pub stream: u16,
    /// Place within the stream.
    pub slot: u32,
    /// Number of the write within the stream, from 1; 0 is the layout before the test.
    pub number: u64,
}

/// The content of a slot, as far as it comes from this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotState {
    /// Nothing of this run, and at least one sector with what was there before: a blank one, or one
    /// of another run. Also a slot that is not there at all.
    Foreign,
    /// At least one sector of a run that started later: it shows nothing of what the disk kept.
    Overwritten,
    /// Bytes that belong to no run, in every sector: an interrupted write can leave such a slot.
    Garbled,
    /// The whole content of this write.
    Whole(u64),
    /// Sectors of different writes, or sectors that are no part of any.
    Mixed {
        /// The oldest write of which a sector is left.
        oldest: u64,
        /// True if some sectors belong to no write at this place, or cannot be read.
        has_invalid: bool,
    },
    /// The disk returned an error for the whole slot.
    Unreadable,
}

impl SlotState {
    /// True if anything in the slot comes from the run.
    pub(crate) fn has_trace(&self) -> bool {
        matches!(self, Self::Whole(_) | Self::Mixed { .. })
    }

    /// Returns the number of the newest write that is certainly in the slot; 0 if there is none.
    pub(crate) fn newest(&self) -> u64 {
        match self {
            Self::Whole(number) => *number,
            Self::Mixed { oldest, .. } => *oldest,
            Self::Foreign | Self::Overwritten | Self::Garbled | Self::Unreadable => 0,
        }
    }
}

/// Fills a buffer of whole sectors with the content of a write: a header in each sector, and behind
/// it bytes that no layer can compress. The same label gives the same bytes.
pub(crate) fn fill(buffer: &mut [u8], label: PageLabel) {
    // Each field moves other bits of the seed: slots are below 2^20, streams below 2^5.
    let seed = (label.run as u64)
        ^ (label.run >> 64) as u64
        ^ label.number.wrapping_mul(GOLDEN_GAMMA)
        ^ u64::from(label.slot) << 17
        ^ u64::from(label.stream) << 50;
    let mut random = Splitmix(seed);
    for eight in buffer.chunks_exact_mut(8) {
        eight.copy_from_slice(&random.next_number().to_le_bytes());
    }
    mark_sectors(buffer);
    for (index, sector) in buffer.chunks_exact_mut(SECTOR_BYTES).enumerate() {
        sector[..HEADER_BYTES].fill(0);
        sector[..RUN_AT].copy_from_slice(MAGIC);
        sector[RUN_AT..STREAM_AT].copy_from_slice(&label.run.to_le_bytes());
        sector[STREAM_AT..SECTOR_AT].copy_from_slice(&label.stream.to_le_bytes());
        sector[SECTOR_AT..SLOT_AT].copy_from_slice(&(index as u16).to_le_bytes());
        sector[SLOT_AT..NUMBER_AT].copy_from_slice(&label.slot.to_le_bytes());
        sector[NUMBER_AT..CHECKSUM_AT].copy_from_slice(&label.number.to_le_bytes());
        sector[STARTED_AT..HEADER_BYTES].copy_from_slice(&label.started_s.to_le_bytes());
        let sum = checksum(sector);
        sector[CHECKSUM_AT..CHECKSUM_END].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Checksum of the sector without the checksum itself.
fn checksum(sector: &[u8]) -> u32 {
    crc32(&[&sector[..CHECKSUM_AT], &sector[CHECKSUM_END..]])
}

/// Returns which writes the content of a slot comes from. `place` names the slot; its `number` is
/// ignored.
pub(crate) fn inspect(content: &[u8], place: PageLabel) -> SlotState {
    // The oldest and the newest write of the sectors so far.
    let mut numbers: Option<(u64, u64)> = None;
    let mut has_invalid = content.is_empty() || !content.len().is_multiple_of(SECTOR_BYTES);
    let mut has_trace = false;
    let mut is_garbled = !content.is_empty();
    for (index, sector) in content.chunks(SECTOR_BYTES).enumerate() {
        if is_of_later_run(sector, place) {
            return SlotState::Overwritten;
        }
        has_trace |= names_run(sector, place.run);
        is_garbled &= is_garbled_sector(sector);
        match sector_number(sector, index, place) {
            Some(number) => {
                let (low, high) = numbers.unwrap_or((number, number));
                numbers = Some((low.min(number), high.max(number)));
            }
            None => has_invalid = true,
        }
    }
    match numbers {
        Some((low, high)) if low == high && !has_invalid => SlotState::Whole(low),
        Some((oldest, _)) => SlotState::Mixed {
            oldest,
            has_invalid,
        },
        None if has_trace => SlotState::Mixed {
            oldest: 0,
            has_invalid: true,
        },
        None if is_garbled => SlotState::Garbled,
        None => SlotState::Foreign,
    }
}

/// True of bytes that neither a run wrote nor a blank sector has, which is one of equal bytes: a
/// disk returns such for what was never written or was discarded.
fn is_garbled_sector(sector: &[u8]) -> bool {
    let is_blank = sector.windows(2).all(|pair| pair[0] == pair[1]);
    let is_of_run = sector.get(..RUN_AT) == Some(MAGIC);
    !is_blank && !is_of_run
}

/// True if a sector's header names the run, valid or not.
fn names_run(sector: &[u8], run: u128) -> bool {
    sector.get(..RUN_AT) == Some(MAGIC)
        && sector.get(RUN_AT..STREAM_AT) == Some(&run.to_le_bytes()[..])
}

/// True of an intact sector of a run that started after that of `place`, by the writers' clocks. A
/// later run whose clock had been set back counts as an earlier one, and the reverse.
fn is_of_later_run(sector: &[u8], place: PageLabel) -> bool {
    if sector.len() != SECTOR_BYTES || sector[..RUN_AT] != *MAGIC || names_run(sector, place.run) {
        return false;
    }
    let is_intact = sector[CHECKSUM_AT..CHECKSUM_END] == checksum(sector).to_le_bytes();
    match sector[STARTED_AT..HEADER_BYTES].try_into() {
        Ok(started) => is_intact && u32::from_le_bytes(started) > place.started_s,
        Err(_) => false,
    }
}

/// Returns the number of the write that a sector belongs to; `None` if the sector is damaged or is
/// not the one of this index at this place.
fn sector_number(sector: &[u8], index: usize, place: PageLabel) -> Option<u64> {
    if sector.len() != SECTOR_BYTES || !names_run(sector, place.run) {
        return None;
    }
    let is_here = sector[STREAM_AT..SECTOR_AT] == place.stream.to_le_bytes()
        && sector[SECTOR_AT..SLOT_AT] == (index as u16).to_le_bytes()
        && sector[SLOT_AT..NUMBER_AT] == place.slot.to_le_bytes();
    let is_intact = sector[CHECKSUM_AT..CHECKSUM_END] == checksum(sector).to_le_bytes();
    let number = sector[NUMBER_AT..CHECKSUM_AT].try_into().ok()?;
    if is_here && is_intact {
        Some(u64::from_le_bytes(number))
    } else {
        None
    }
}

/// CRC-32 (IEEE 802.3) of several parts in order: the checksum of sectors, files and frames.
pub(crate) fn crc32(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::own_data::is_marked;
    use proptest::prelude::*;

    const PLACE: PageLabel = PageLabel {
        run: 7 << 100 | 5,
        started_s: 1000,
        stream: 2,
        slot: 9,
        number: 0,
    };

    fn page(number: u64) -> Vec<u8> {
        let mut page = vec![0; PAGE_BYTES];
        fill(&mut page, PageLabel { number, ..PLACE });
        page
    }

    #[test]
    fn page_names_its_write_and_is_own_data() {
        let page = page(41);
        assert_eq!(inspect(&page, PLACE), SlotState::Whole(41));
        assert!(page.chunks(SECTOR_BYTES).all(is_marked));
    }

    #[test]
    fn page_of_another_place_or_run_is_not_taken_for_this_one() {
        let other = |place| inspect(&page(1), place);
        let elsewhere = SlotState::Mixed {
            oldest: 0,
            has_invalid: true,
        };
        assert_eq!(other(PageLabel { slot: 8, ..PLACE }), elsewhere);
        assert_eq!(other(PageLabel { stream: 1, ..PLACE }), elsewhere);
        assert_eq!(other(PageLabel { run: 5, ..PLACE }), SlotState::Foreign);
        assert_eq!(inspect(&[0; PAGE_BYTES], PLACE), SlotState::Foreign);
        assert_eq!(inspect(&[], PLACE), SlotState::Foreign);
    }

    /// A page of an earlier run is what a disk shows that lost this one.
    #[test]
    fn page_of_a_later_run_is_told_from_one_of_an_earlier_run() {
        let state_at = |started_s| {
            let other_run = PageLabel {
                run: 5,
                started_s,
                ..PLACE
            };
            let mut left = page(1);
            fill(&mut left[SECTOR_BYTES..2 * SECTOR_BYTES], other_run);
            inspect(&left, PLACE)
        };
        assert_eq!(state_at(1001), SlotState::Overwritten);
        let torn = SlotState::Mixed {
            oldest: 1,
            has_invalid: true,
        };
        assert_eq!([state_at(999), state_at(1000)], [torn, torn]);
        // Bytes that only look like such a sector are garbage.
        let mut damaged = page(1);
        fill(
            &mut damaged,
            PageLabel {
                run: 5,
                started_s: 1001,
                ..PLACE
            },
        );
        for sector in damaged.chunks_mut(SECTOR_BYTES) {
            sector[SECTOR_BYTES - 1] ^= 1;
        }
        assert_ne!(inspect(&damaged, PLACE), SlotState::Overwritten);
    }

    #[test]
    fn page_is_garbled_only_where_no_sector_is_older_than_the_run() {
        let mut garbled = page(1);
        for sector in garbled.chunks_mut(SECTOR_BYTES) {
            sector[0] ^= 1;
        }
        assert_eq!(inspect(&garbled, PLACE), SlotState::Garbled);
        for blank in [0, 0xff] {
            let mut partly_blank = garbled.clone();
            partly_blank[SECTOR_BYTES..2 * SECTOR_BYTES].fill(blank);
            assert_eq!(inspect(&partly_blank, PLACE), SlotState::Foreign);
            assert_eq!(inspect(&[blank; PAGE_BYTES], PLACE), SlotState::Foreign);
        }
        let mut partly_of_other_run = garbled;
        let other_run = PageLabel { run: 5, ..PLACE };
        fill(&mut partly_of_other_run[..SECTOR_BYTES], other_run);
        assert_eq!(inspect(&partly_of_other_run, PLACE), SlotState::Foreign);
    }

    #[test]
    fn swapped_sectors_are_invalid() {
        let mut swapped = page(3);
        let (one, two) = swapped.split_at_mut(SECTOR_BYTES);
        one.swap_with_slice(&mut two[..SECTOR_BYTES]);
        let mixed = SlotState::Mixed {
            oldest: 3,
            has_invalid: true,
        };
        assert_eq!(inspect(&swapped, PLACE), mixed);
    }

    proptest! {
        #[test]
        fn torn_page_shows_its_oldest_write(cut in 1..16usize, old in 0..9u64, new in 9..99u64) {
            let mut torn = page(new);
            torn[cut * SECTOR_BYTES..].copy_from_slice(&page(old)[cut * SECTOR_BYTES..]);
            let mixed = SlotState::Mixed { oldest: old, has_invalid: false };
            prop_assert_eq!(inspect(&torn, PLACE), mixed);
        }

        #[test]
        fn changed_byte_never_passes(at in 0..PAGE_BYTES, bit in 0..8u8) {
            let mut changed = page(6);
            changed[at] ^= 1 << bit;
            let is_mixed = matches!(
                inspect(&changed, PLACE),
                SlotState::Mixed { has_invalid: true, .. }
            );
            prop_assert!(is_mixed);
        }

        #[test]
        fn garbage_is_never_a_page(content in prop::collection::vec(any::<u8>(), 0..2048)) {
            let state = inspect(&content, PLACE);
            prop_assert!(matches!(state, SlotState::Foreign | SlotState::Garbled));
        }
    }

    #[test]
    fn checksum_is_that_of_the_parts_in_order() {
        assert_eq!(crc32(&[b"123456789"]), 0xcbf4_3926);
        assert_eq!(crc32(&[b"1234", b"", b"56789"]), 0xcbf4_3926);
    }
}
