//! Finds the signatures of filesystems, partition tables, volume managers, RAID, swap and databases
//! at the ends of a disk or file. Reads only; prefers a false alarm to a missed signature. The gate
//! decides what follows from one.

mod image;
mod magics;
mod partition_tables;
mod remains;
mod structures;
mod unknown;

pub(crate) use image::{Image, Slice, SliceName, Unreadable};
pub(crate) use magics::{Clearing, Role, Signature};
pub(crate) use unknown::Unknown;

use diskproof_model::units::SECTOR_BYTES;
use image::View;
use magics::MAGICS;
use std::collections::HashSet;

/// Everything that was found, and everything that could not be looked at.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ScanResult {
    /// In the order of the partitions, each named once where one command removes all its copies.
    pub(crate) signatures: Vec<Signature>,
    /// Data at the ends of a device that no signature explains; empty where a signature was found.
    pub(crate) unknown: Vec<Unknown>,
    /// True if a signature was found and the ends hold more than its sector: `wipefs` leaves that.
    pub(crate) has_remains: bool,
    /// Places of which nothing is known, in the order of reading.
    pub(crate) unreadable: Vec<Unreadable>,
}

/// Looks at both ends of a disk or file, at those of every partition in a table on it,
/// and at those of `known` partitions.
pub(crate) fn scan(image: &Image<'_>, known: &[Slice]) -> ScanResult {
    let whole = image.whole();
    let tables = partition_tables::read(&whole);
    let mut signatures = without_copies(&whole, tables.signatures, find_signatures(&whole), None);
    let mut slices = known.to_vec();
    for slice in tables.slices {
        // The kernel's own list has the nodes' names; a table's entry for the same place adds
        // nothing.
        if !slices
            .iter()
            .any(|other| (other.start, other.length) == (slice.start, slice.length))
        {
            slices.push(slice);
        }
    }
    for slice in slices {
        if let Some(view) = whole.part(slice.start, slice.length) {
            let tables = partition_tables::read(&view);
            let found = find_signatures(&view);
            signatures.extend(without_copies(
                &view,
                tables.signatures,
                found,
                Some(&slice),
            ));
        }
    }
    // A partition that begins where the disk does has the disk's signatures.
    let mut seen = HashSet::new();
    signatures.retain(|signature| seen.insert((signature.what, signature.offset)));
    ScanResult {
        signatures,
        unreadable: image.unreadable(),
        ..ScanResult::default()
    }
}

/// As [`scan`], for a device: also finds what is left of a filesystem or table whose beginning is
/// gone, and data that no signature explains at its ends and those of `known` partitions.
pub(crate) fn scan_device(image: &Image<'_>, known: &[Slice]) -> ScanResult {
    let mut scan_result = scan(image, known);
    let whole = image.whole();
    // A text that a format has in two places, such as that of a GPT header, is known by its place.
    let mut offsets: HashSet<u64> = HashSet::new();
    for signature in &scan_result.signatures {
        offsets.insert(signature.offset);
    }
    for signature in remains::find(&whole) {
        if offsets.insert(signature.offset) {
            scan_result.signatures.push(signature);
        }
    }
    let signed: HashSet<u64> = scan_result
        .signatures
        .iter()
        .map(|signature| signature.offset / SECTOR_BYTES)
        .collect();
    let mut unknown_ends = unknown::find(&whole, None, &signed);
    for slice in known {
        if let Some(view) = whole.part(slice.start, slice.length) {
            unknown_ends.extend(unknown::find(&view, Some(slice), &signed));
        }
    }
    if scan_result.signatures.is_empty() {
        // A partition that begins or ends where the disk does has the disk's ends.
        let mut seen_offsets = HashSet::new();
        unknown_ends.retain(|unknown| seen_offsets.insert(unknown.offset));
        scan_result.unknown = unknown_ends;
    } else {
        scan_result.has_remains = !unknown_ends.is_empty();
    }
    scan_result.unreadable = image.unreadable();
    scan_result
}

/// Looks at the disk around a partition for signatures of all of it, partitions included, such as a
/// member of a firmware RAID whose volume is divided.
pub(crate) fn scan_around(image: &Image<'_>) -> ScanResult {
    let whole = image.whole();
    let mut content = find_signatures(&whole);
    content.retain(|signature| signature.role == Role::Content);
    ScanResult {
        signatures: without_copies(&whole, Vec::new(), content, None),
        unreadable: image.unreadable(),
        ..ScanResult::default()
    }
}

/// Finds every signature, except those of partition tables that name partitions.
fn find_signatures(view: &View<'_, '_>) -> Vec<Signature> {
    // Read before the fixed bytes: of places that cannot be read, a refusal names the first.
    let structures: Vec<Signature> = structures::find(view).collect();
    let fixed = MAGICS.iter().filter_map(|magic| magic.find(view));
    fixed.chain(structures).collect()
}

/// Returns each kind of signature once, with its offset on the disk and its partition: the four
/// labels of ZFS are one reason, since one command removes all of them. Each copy that needs its
/// own command is a separate reason.
fn without_copies(
    view: &View<'_, '_>,
    tables: Vec<Signature>,
    others: Vec<Signature>,
    slice: Option<&Slice>,
) -> Vec<Signature> {
    let mut signatures: Vec<Signature> = Vec::new();
    for mut signature in tables.into_iter().chain(others) {
        signature.offset += view.start();
        let needs_own_command = signature.clearing == Clearing::Zeros;
        let is_known = signatures.iter().any(|known| {
            known.what == signature.what && (!needs_own_command || known.offset == signature.offset)
        });
        if !is_known {
            signature.slice = slice.cloned();
            signatures.push(signature);
        }
    }
    signatures
}

#[cfg(test)]
mod blkid_tests;
#[cfg(test)]
mod tests;
