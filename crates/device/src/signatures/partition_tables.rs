//! Partition tables that the kernel may or may not have read: MBR with logical partitions, GPT at
//! both ends, Apple's map. Every partition of a table is inspected, whether or not it is plausible.

use super::image::{Slice, SliceName, View};
use super::magics::{Clearing, Role, Signature};
use std::collections::BTreeSet;

/// What the tables of a disk say.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) marks: Vec<Signature>,
    pub(super) slices: Vec<Slice>,
}

/// Tables count in the disk's sectors, which an image does not tell: both sizes are tried.
const SECTOR_BYTES: [u64; 2] = [512, 4096];
/// More entries than any tool makes; a damaged count must not cost a day.
const ENTRIES_MAX: u32 = 256;
/// The same for chains of logical partitions.
const LOGICAL_MAX: u32 = 128;

/// Reads every table that is there.
pub(super) fn read(view: &View<'_, '_>) -> Tables {
    let mut tables = Tables::default();
    read_mbr(view, &mut tables);
    read_gpt(view, &mut tables);
    read_apple(view, &mut tables);
    tables
}

impl Tables {
    fn mark(&mut self, what: &'static str, offset: u64) {
        let (clearing, role) = (Clearing::Wipefs, Role::PartitionTable);
        self.marks
            .push(Signature::new(what, offset, clearing, role));
    }

    /// Offsets are within the view, as all of a table's are; empty entries are none.
    fn slice(&mut self, view: &View<'_, '_>, number: u32, start: Option<u64>, length: Option<u64>) {
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

fn has_boot_signature(view: &View<'_, '_>, at: u64) -> bool {
    view.array::<2>(at + 510) == Some([0x55, 0xaa])
}

/// One of the four entries of a DOS partition table.
struct MbrEntry {
    kind: u8,
    first_sector: u64,
    sectors: u64,
}

/// Reads an entry; `None` where it is unused.
fn mbr_entry(view: &View<'_, '_>, table: u64, index: u64) -> Option<MbrEntry> {
    let at = table + 446 + index * 16;
    let kind = view.array::<1>(at + 4)?[0];
    if kind == 0 {
        return None;
    }
    Some(MbrEntry {
        kind,
        first_sector: u64::from(view.le32(at + 8)?),
        sectors: u64::from(view.le32(at + 12)?),
    })
}

fn read_mbr(view: &View<'_, '_>, tables: &mut Tables) {
    if !has_boot_signature(view, 0) {
        return;
    }
    tables.mark("MBR partition table or boot sector", 510);
    for sector in SECTOR_BYTES {
        for index in 0..4 {
            let Some(entry) = mbr_entry(view, 0, index) else {
                continue;
            };
            match entry.kind {
                0x05 | 0x0f | 0x85 => read_logical(view, entry.first_sector, sector, tables),
                _ => tables.slice(
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
    let (mut at, mut seen) = (extended, BTreeSet::new());
    for number in 5..5 + LOGICAL_MAX {
        if !seen.insert(at) || !has_boot_signature(view, at * sector) {
            return;
        }
        if let Some(entry) = mbr_entry(view, at * sector, 0) {
            tables.slice(
                view,
                number,
                (at + entry.first_sector).checked_mul(sector),
                entry.sectors.checked_mul(sector),
            );
        }
        match mbr_entry(view, at * sector, 1) {
            Some(next) => at = extended + next.first_sector,
            None => return,
        }
    }
}

const BACKUP_GPT: &str = "backup GPT partition table";

/// The header stands in the second sector, its copy in the last (UEFI 2.10, 5.3), and where the
/// header says: the last sector of a disk that was smaller then.
fn read_gpt(view: &View<'_, '_>, tables: &mut Tables) {
    for sector in SECTOR_BYTES {
        let mut places = vec![("GPT partition table", sector)];
        if let Some(last) = last_sector(view, sector) {
            places.push((BACKUP_GPT, last));
        }
        if is_gpt_header(view, sector)
            && let Some(number) = view.le64(sector + 32)
            && let Some(alternate) = number.checked_mul(sector)
            && places.iter().all(|(_, known)| *known != alternate)
        {
            places.push((BACKUP_GPT, alternate));
        }
        for (what, at) in places {
            if is_gpt_header(view, at) {
                tables.mark(what, at);
                read_gpt_entries(view, at, sector, tables);
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
            tables.mark(BACKUP_GPT, last);
        }
    }
    tables.marks
}

fn last_sector(view: &View<'_, '_>, sector: u64) -> Option<u64> {
    (view.length() / sector)
        .checked_sub(1)
        .map(|number| number * sector)
}

fn is_gpt_header(view: &View<'_, '_>, at: u64) -> bool {
    view.array::<8>(at).as_ref() == Some(b"EFI PART")
}

fn read_gpt_entries(
    view: &View<'_, '_>,
    header: u64,
    sector: u64,
    tables: &mut Tables,
) -> Option<()> {
    let start = view.le64(header + 72)?.checked_mul(sector);
    let (count, bytes) = (view.le32(header + 80)?, view.le32(header + 84)?);
    for index in 0..count.min(ENTRIES_MAX) {
        let at = start?.checked_add(u64::from(index) * u64::from(bytes))?;
        let is_used = view.array::<16>(at)? != [0; 16];
        if let (true, Some(first), Some(last)) = (is_used, view.le64(at + 32), view.le64(at + 40)) {
            let sectors = last
                .checked_sub(first)
                .and_then(|sectors| sectors.checked_add(1));
            let length = sectors.and_then(|sectors| sectors.checked_mul(sector));
            tables.slice(view, index + 1, first.checked_mul(sector), length);
        }
    }
    Some(())
}

/// A driver descriptor in the first block, whose size it tells, and the map from the second on
/// (Inside Macintosh: Devices, chapter 3).
fn read_apple(view: &View<'_, '_>, tables: &mut Tables) {
    let block = match (view.array::<2>(0), view.be16(2)) {
        (Some([b'E', b'R']), Some(block)) if block >= 512 => u64::from(block),
        _ => 512,
    };
    if !is_apple_entry(view, block) || !matches!(view.be32(block + 4), Some(1..=ENTRIES_MAX)) {
        return;
    }
    tables.mark("Apple partition map", block);
    for number in 1..=ENTRIES_MAX {
        let at = u64::from(number) * block;
        if !is_apple_entry(view, at) {
            return;
        }
        let start = view.be32(at + 8).map(|blocks| u64::from(blocks) * block);
        let length = view.be32(at + 12).map(|blocks| u64::from(blocks) * block);
        tables.slice(view, number, start, length);
    }
}

fn is_apple_entry(view: &View<'_, '_>, at: u64) -> bool {
    matches!(view.array::<2>(at), Some([b'P', b'M'] | [b'T', b'S']))
}
