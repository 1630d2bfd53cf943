//! Reads partition tables from the disk itself, as the kernel may not have read them: MBR with
//! logical partitions, GPT at both ends, Apple's map. Every partition of a table is inspected,
//! whether or not it is plausible.

use super::image::{Slice, SliceName, View};
use super::magics::{Clearing, Role, Signature};
use std::collections::BTreeSet;

/// The tables of a disk and the partitions that they name.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// One for each table, with offsets within the view.
    pub(super) signatures: Vec<Signature>,
    /// Used entries only, with the disk's offsets; two tables may name the same partition.
    pub(super) slices: Vec<Slice>,
}

/// Tables count in the disk's sectors, whose size an image does not show: both sizes are tried.
const SECTOR_BYTES: [u64; 2] = [512, 4096];
/// More entries than any tool makes; a damaged count must not cost a day.
const ENTRIES_MAX: u32 = 256;
/// More logical partitions than any tool makes: a damaged chain must not cost a day either.
const LOGICAL_MAX: u32 = 128;
/// The boot signature ends the first 512 bytes, also of a longer sector.
const BOOT_SIGNATURE_OFFSET: u64 = 510;
/// The four entries of a DOS partition table stand right before the boot signature.
const MBR_ENTRIES_OFFSET: u64 = 446;
const MBR_ENTRY_BYTES: u64 = 16;

/// Reads every table that is there.
pub(super) fn read(view: &View<'_, '_>) -> Tables {
    let mut tables = Tables::default();
    read_mbr(view, &mut tables);
    read_gpt(view, &mut tables);
    read_apple(view, &mut tables);
    tables
}

impl Tables {
    fn add_signature(&mut self, what: &'static str, offset: u64) {
        let (clearing, role) = (Clearing::Wipefs, Role::PartitionTable);
        self.signatures
            .push(Signature::new(what, offset, clearing, role));
    }

    /// Adds a partition; its offset is within the view, as all of a table's are. Ignores an empty
    /// one, one that begins behind the end, and one whose numbers overflowed (`None`).
    fn add_slice(
        &mut self,
        view: &View<'_, '_>,
        number: u32,
        start: Option<u64>,
        length: Option<u64>,
    ) {
        if let (Some(start), Some(length)) = (start, length)
            && length > 0
            && start < view.length()
        {
            self.slices.push(Slice {
                name: SliceName::Number(number),
                start: view.start() + start,
                length,
            });
        }
    }
}

fn has_boot_signature(view: &View<'_, '_>, table: u64) -> bool {
    view.array::<2>(table + BOOT_SIGNATURE_OFFSET) == Some([0x55, 0xaa])
}

/// One of the four entries of a DOS partition table.
struct MbrEntry {
    kind: u8,
    first_sector: u64,
    sectors: u64,
}

/// Reads an entry; `None` where it is unused.
fn mbr_entry(view: &View<'_, '_>, table: u64, index: u64) -> Option<MbrEntry> {
    let entry = table + MBR_ENTRIES_OFFSET + index * MBR_ENTRY_BYTES;
    let kind = view.array::<1>(entry + 4)?[0];
    if kind == 0 {
        return None;
    }
    Some(MbrEntry {
        kind,
        first_sector: u64::from(view.le32(entry + 8)?),
        sectors: u64::from(view.le32(entry + 12)?),
    })
}

fn read_mbr(view: &View<'_, '_>, tables: &mut Tables) {
    if !has_boot_signature(view, 0) {
        return;
    }
    tables.add_signature("MBR partition table or boot sector", BOOT_SIGNATURE_OFFSET);
    for sector in SECTOR_BYTES {
        for index in 0..4 {
            let Some(entry) = mbr_entry(view, 0, index) else {
                continue;
            };
            match entry.kind {
                // Extended partitions, as DOS, Windows and Linux mark them.
                0x05 | 0x0f | 0x85 => read_logical(view, entry.first_sector, sector, tables),
                _ => tables.add_slice(
                    view,
                    index as u32 + 1,
                    entry.first_sector.checked_mul(sector),
                    entry.sectors.checked_mul(sector),
                ),
            }
        }
    }
}

/// Each logical partition has its own table: the first entry is itself, the second points to the
/// next table, from the start of the extended partition.
fn read_logical(view: &View<'_, '_>, extended: u64, sector: u64, tables: &mut Tables) {
    let (mut table, mut seen) = (extended, BTreeSet::new());
    // Linux numbers logical partitions from 5, behind the four of the first table.
    for number in 5..5 + LOGICAL_MAX {
        if !seen.insert(table) || !has_boot_signature(view, table * sector) {
            return;
        }
        if let Some(entry) = mbr_entry(view, table * sector, 0) {
            tables.add_slice(
                view,
                number,
                (table + entry.first_sector).checked_mul(sector),
                entry.sectors.checked_mul(sector),
            );
        }
        match mbr_entry(view, table * sector, 1) {
            Some(next) => table = extended + next.first_sector,
            None => return,
        }
    }
}

const BACKUP_GPT: &str = "backup GPT partition table";
/// Fields of a GPT header (UEFI 2.10, table 5-5): the sector of the other header, the first sector
/// of the entries, their number and their size.
const GPT_ALTERNATE_OFFSET: u64 = 32;
/// See [`GPT_ALTERNATE_OFFSET`].
const GPT_ENTRIES_OFFSET: u64 = 72;
/// See [`GPT_ALTERNATE_OFFSET`].
const GPT_COUNT_OFFSET: u64 = 80;
/// See [`GPT_ALTERNATE_OFFSET`].
const GPT_ENTRY_BYTES_OFFSET: u64 = 84;

/// Reads GPTs. The header stands in the second sector, its copy in the last (UEFI 2.10, 5.3), or
/// where the header says: in the last sector of a disk that was smaller then.
fn read_gpt(view: &View<'_, '_>, tables: &mut Tables) {
    for sector in SECTOR_BYTES {
        let mut places = vec![("GPT partition table", sector)];
        if let Some(last) = last_sector(view, sector) {
            places.push((BACKUP_GPT, last));
        }
        if is_gpt_header(view, sector)
            && let Some(number) = view.le64(sector + GPT_ALTERNATE_OFFSET)
            && let Some(alternate) = number.checked_mul(sector)
            && places.iter().all(|(_, known)| *known != alternate)
        {
            places.push((BACKUP_GPT, alternate));
        }
        for (what, header) in places {
            if is_gpt_header(view, header) {
                tables.add_signature(what, header);
                read_gpt_entries(view, header, sector, tables);
            }
        }
    }
}

/// The copies of a GPT's header in the last sector.
pub(super) fn backup_gpt(view: &View<'_, '_>) -> Vec<Signature> {
    let mut tables = Tables::default();
    for sector in SECTOR_BYTES {
        if let Some(last) = last_sector(view, sector)
            && is_gpt_header(view, last)
        {
            tables.add_signature(BACKUP_GPT, last);
        }
    }
    tables.signatures
}

fn last_sector(view: &View<'_, '_>, sector: u64) -> Option<u64> {
    (view.length() / sector)
        .checked_sub(1)
        .map(|number| number * sector)
}

fn is_gpt_header(view: &View<'_, '_>, offset: u64) -> bool {
    view.array::<8>(offset).as_ref() == Some(b"EFI PART")
}

/// Adds every used entry (UEFI 2.10, table 5-6: type, its own identity, first and last sector).
/// Ends at a field that cannot be read (`None`); the entries before it are added.
fn read_gpt_entries(
    view: &View<'_, '_>,
    header: u64,
    sector: u64,
    tables: &mut Tables,
) -> Option<()> {
    let start = view
        .le64(header + GPT_ENTRIES_OFFSET)?
        .checked_mul(sector)?;
    let count = view.le32(header + GPT_COUNT_OFFSET)?;
    let entry_bytes = view.le32(header + GPT_ENTRY_BYTES_OFFSET)?;
    for index in 0..count.min(ENTRIES_MAX) {
        let entry = start.checked_add(u64::from(index) * u64::from(entry_bytes))?;
        // An unused entry has the type of zeros.
        let is_used = view.array::<16>(entry)? != [0; 16];
        if is_used
            && let Some(first) = view.le64(entry + 32)
            && let Some(last) = view.le64(entry + 40)
        {
            let sectors = last
                .checked_sub(first)
                .and_then(|sectors| sectors.checked_add(1));
            let length = sectors.and_then(|sectors| sectors.checked_mul(sector));
            tables.add_slice(view, index + 1, first.checked_mul(sector), length);
        }
    }
    Some(())
}

/// Reads Apple's map: a driver descriptor in the first block, with the size of a block, and the map
/// from the second block on (Inside Macintosh: Devices, chapter 3).
fn read_apple(view: &View<'_, '_>, tables: &mut Tables) {
    let mut block = 512;
    if view.holds(0, b"ER")
        && let Some(block_bytes) = view.be16(2)
        && block_bytes >= 512
    {
        block = u64::from(block_bytes);
    }
    if !is_apple_entry(view, block) || !matches!(view.be32(block + 4), Some(1..=ENTRIES_MAX)) {
        return;
    }
    tables.add_signature("Apple partition map", block);
    for number in 1..=ENTRIES_MAX {
        let entry = u64::from(number) * block;
        if !is_apple_entry(view, entry) {
            return;
        }
        let start = view.be32(entry + 8).map(|blocks| u64::from(blocks) * block);
        let length = view
            .be32(entry + 12)
            .map(|blocks| u64::from(blocks) * block);
        tables.add_slice(view, number, start, length);
    }
}

fn is_apple_entry(view: &View<'_, '_>, offset: u64) -> bool {
    matches!(view.array::<2>(offset), Some([b'P', b'M'] | [b'T', b'S']))
}
