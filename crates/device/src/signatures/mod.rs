//! What a disk or a file says that it holds: the marks that filesystems, partition tables, volume
//! managers, RAID, swap and databases leave at its ends. Reads only, and errs towards finding
//! something. Must not know what follows from a mark: that is the gate's business.

mod image;
mod magics;
mod partition_tables;
mod structures;

pub(crate) use image::{Image, Unreadable};
pub(crate) use partition_tables::{Slice, SliceName};

use image::View;
use std::collections::HashSet;

/// How a mark is taken away once nothing is needed any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clearing {
    /// `wipefs -a` knows it.
    Wipefs,
    /// `zpool labelclear` knows all copies.
    ZpoolLabelclear,
    /// No tool knows it: the block has to be overwritten with zeros.
    Zeros,
}

/// What a mark stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// That the disk is divided: each partition then speaks for itself.
    PartitionTable,
    /// That all of the disk or partition is something: a filesystem, a member of an array, a
    /// database.
    Content,
}

/// A mark within a disk or partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    what: &'static str,
    /// Bytes from the start of the disk or partition.
    offset: u64,
    clearing: Clearing,
    role: Role,
}

/// A mark that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signature {
    /// What it stands for, such as `ext2/3/4 filesystem`.
    pub(crate) what: &'static str,
    /// Where it stands, in bytes from the start of the disk.
    pub(crate) offset: u64,
    /// How it is taken away.
    pub(crate) clearing: Clearing,
    /// The partition that it stands in; `None` for the disk itself.
    pub(crate) slice: Option<Slice>,
}

/// Everything that was found, and everything that could not be looked at.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) signatures: Vec<Signature>,
    pub(crate) unreadable: Vec<Unreadable>,
}

/// Looks at both ends of a disk or file, at those of every partition that a table on it tells of,
/// and at those of `known` partitions.
pub(crate) fn scan(image: &Image<'_>, known: &[Slice]) -> Found {
    let whole = image.whole();
    let tables = partition_tables::read(&whole);
    let mut signatures = signatures_of(&whole, tables.marks, None);
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
            signatures.extend(signatures_of(
                &view,
                partition_tables::read(&view).marks,
                Some(&slice),
            ));
        }
    }
    // A partition that begins where the disk does has the disk's marks.
    let mut seen = HashSet::new();
    signatures.retain(|signature| seen.insert((signature.what, signature.offset)));
    Found {
        signatures,
        unreadable: image.unreadable(),
    }
}

/// For the disk around a partition: what all of it is, partitions included, such as a member of a
/// firmware RAID whose volume is divided.
pub(crate) fn scan_around(image: &Image<'_>) -> Found {
    let whole = image.whole();
    let marks = magics::find(&whole)
        .into_iter()
        .chain(structures::find(&whole))
        .filter(|mark| mark.role == Role::Content)
        .collect();
    Found {
        signatures: one_of_a_name(&whole, marks, None),
        unreadable: image.unreadable(),
    }
}

fn signatures_of(view: &View<'_, '_>, tables: Vec<Mark>, slice: Option<&Slice>) -> Vec<Signature> {
    one_of_a_name(
        view,
        tables
            .into_iter()
            .chain(magics::find(view))
            .chain(structures::find(view))
            .collect(),
        slice,
    )
}

/// The four labels of ZFS are one reason. A copy that outlives the first is found by the next look.
fn one_of_a_name(view: &View<'_, '_>, marks: Vec<Mark>, slice: Option<&Slice>) -> Vec<Signature> {
    let mut signatures: Vec<Signature> = Vec::new();
    for mark in marks {
        if !signatures.iter().any(|known| known.what == mark.what) {
            let offset = view.start() + mark.offset;
            signatures.push(Signature {
                what: mark.what,
                offset,
                clearing: mark.clearing,
                slice: slice.cloned(),
            });
        }
    }
    signatures
}

#[cfg(test)]
mod tests;
