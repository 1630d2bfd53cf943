//! What the marks on a disk or in a file mean for whoever wants to overwrite it, and the command
//! that takes each away. Pure.

use super::doubts::Doubts;
use super::family::node;
use crate::errno;
use crate::signatures::{Clearing, Found, Signature, SliceName};
use diskproof_model::shell::quoted;
use diskproof_model::units::format_bytes;

/// What `dd` is told to write at a time: no device has larger logical blocks.
const ZERO_BYTES: u64 = 4096;

/// No mark that is told of by its place is longer, and between the start of any of them and a
/// partition table there is more room.
const MARK_BYTES: u64 = 32;

/// For a device: every mark is a reason, and the user takes it away himself.
pub(super) fn judge_device(path: &str, found: &Found, doubts: &mut Doubts) {
    for signature in &found.signatures {
        doubts.add(
            format!("it holds a mark of: {}", described(signature)),
            clearing(path, signature),
        );
    }
    judge_unreadable(found, doubts);
}

/// For the disk around a partition: what it is as a whole, the partition is a part of. `wipefs
/// --all` would take the partition table too, and so would a whole block of zeros near the start.
pub(super) fn judge_around(disk: &str, found: &Found, doubts: &mut Doubts) {
    let disk = quoted(disk);
    for Signature { what, offset, .. } in &found.signatures {
        doubts.add(
            format!(
                "its disk {disk} as a whole holds a mark of: {what} (byte {offset}), and the \
                 partition is a part of that"
            ),
            format!(
                "after saving what it holds: wipefs --offset {offset} {disk}; where that finds \
                 nothing: dd if=/dev/zero of={disk} bs=1 seek={offset} count={MARK_BYTES} \
                 conv=notrunc,fsync"
            ),
        );
    }
    judge_unreadable(found, doubts);
}

/// For a file: another one is easily made, so nothing is taken away.
pub(super) fn judge_file(found: &Found, doubts: &mut Doubts) {
    for signature in &found.signatures {
        doubts.add(
            format!("it holds a mark of: {}", described(signature)),
            "it is an image or a database: name another file, or a directory, in which a scratch \
             file is made",
        );
    }
    judge_unreadable(found, doubts);
}

fn judge_unreadable(found: &Found, doubts: &mut Doubts) {
    if let Some(first) = found.unreadable.first() {
        let why = first
            .errno
            .map_or_else(|| "it ends too early".to_owned(), errno::name);
        let places = found.unreadable.len();
        doubts.add(
            format!(
                "{places} of the places where marks stand cannot be read, the first at byte {} \
                 ({why}), so nobody can say what it holds",
                first.offset
            ),
            "see dmesg and smartctl --all: the disk may be failing",
        );
    }
}

/// `ext2/3/4 filesystem or its journal in partition sda1 (byte 1049656)`.
fn described(signature: &Signature) -> String {
    let Signature {
        what,
        offset,
        slice,
        ..
    } = signature;
    let place = slice.as_ref().map(|slice| match &slice.name {
        SliceName::Kernel(name) => format!(" in partition {name}"),
        SliceName::Number(number) => format!(
            " in partition {number} of its table, at {}",
            format_bytes(slice.start)
        ),
    });
    format!("{what}{} (byte {offset})", place.unwrap_or_default())
}

fn clearing(path: &str, signature: &Signature) -> String {
    const SAVED: &str = "after saving what it holds";
    let in_partition = signature.slice.as_ref().map(|slice| &slice.name);
    let place = match in_partition {
        Some(SliceName::Kernel(name)) => node(name),
        Some(SliceName::Number(_)) | None => path.to_owned(),
    };
    let (place, path) = (quoted(&place), quoted(path));
    match (signature.clearing, in_partition) {
        // Without its node no tool reaches into a partition; with the table its partitions are
        // given up.
        (_, Some(SliceName::Number(_))) => {
            format!("{SAVED} (partx --add {place} makes it a device): wipefs --all {place}")
        }
        (Clearing::Wipefs, _) => format!(
            "{SAVED}: wipefs --all {place}; where that finds nothing: {}",
            zeros(&path, signature.offset)
        ),
        (Clearing::ZpoolLabelclear, _) => {
            format!("{SAVED}: zpool labelclear -f {place}, or wipefs --all {place}")
        }
        (Clearing::Zeros, _) => format!("{SAVED}: {}", zeros(&path, signature.offset)),
    }
}

fn zeros(quoted: &str, offset: u64) -> String {
    format!(
        "dd if=/dev/zero of={quoted} bs={ZERO_BYTES} seek={} count=1 conv=notrunc,fsync",
        offset / ZERO_BYTES
    )
}
