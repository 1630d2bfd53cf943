//! Signatures and unknown data on a disk or in a file become reasons, each with the command that
//! removes it. Pure.

use super::permit::UnknownContent;
use super::refusal::RefusalReasons;
use crate::naming::{errno_name, node};
use crate::signatures::{Clearing, ScanResult, Signature, Slice, SliceName, Unknown};
use diskproof_model::shell::quoted;
use diskproof_model::units::{counted, format_bytes};

/// The block size of the suggested `dd` commands: no device has larger logical blocks.
const ZERO_BLOCK_BYTES: u64 = 4096;
/// Length of a label of ZFS, which has to be zeroed as a whole.
const ZFS_LABEL_BYTES: u64 = 256 << 10;
/// Bytes that the suggested command zeroes at a signature: no signature is longer, and a partition
/// table is farther from the start of any of them.
const SIGNATURE_BYTES: u64 = 32;

/// For a device: every signature is a reason. diskproof removes none; the user does.
pub(super) fn judge_device(
    path: &str,
    found: &ScanResult,
    unknown_content: UnknownContent,
    reasons: &mut RefusalReasons,
) {
    for signature in &found.signatures {
        reasons.add(
            format!("it holds a signature: {}", described(signature)),
            clearing(path, signature),
        );
    }
    if unknown_content == UnknownContent::Refuse {
        for unknown in &found.unknown {
            add_unknown(path, unknown, reasons);
        }
        if found.has_remains {
            reasons.add(
                "its first or last MiB holds other data, which these commands do not remove",
                "after saving what it holds: add --wipe-unknown, which zeroes the first and last \
                 MiB",
            );
        }
    }
    judge_unreadable_device(&quoted(path), found, reasons);
}

fn add_unknown(path: &str, unknown: &Unknown, reasons: &mut RefusalReasons) {
    let place = unknown
        .slice
        .as_ref()
        .map(partition_phrase)
        .unwrap_or_default();
    let sectors = counted(unknown.sectors, "sector");
    reasons.add(
        format!(
            "it holds data of an unknown format: {sectors} of the {} at byte {}{place}, first {}",
            format_bytes(unknown.length),
            unknown.start,
            dump(unknown)
        ),
        format!(
            "after saving what it holds: add --wipe-unknown, which zeroes the first and last MiB; \
             to see it: hexdump -C -s {} -n {} {}",
            unknown.start,
            unknown.length,
            quoted(path)
        ),
    );
}

/// A line as `hexdump -C` prints it.
fn dump(unknown: &Unknown) -> String {
    let mut hex = Vec::new();
    let mut text = String::new();
    for byte in &unknown.shown {
        hex.push(format!("{byte:02x}"));
        text.push(match byte {
            b' '..=b'~' => char::from(*byte),
            _ => '.',
        });
    }
    format!("{:08x}  {}  |{text}|", unknown.offset, hex.join(" "))
}

/// For the disk around a partition: the partition is a part of whatever the whole disk is. `wipefs
/// --all` would remove the partition table too, and so would a block of zeros near the start.
pub(super) fn judge_around(disk: &str, found: &ScanResult, reasons: &mut RefusalReasons) {
    let disk = quoted(disk);
    for signature in &found.signatures {
        let Signature { what, offset, .. } = signature;
        reasons.add(
            format!(
                "its whole disk {disk} holds a signature: {what} (byte {offset}), and the \
                 partition is a part of it"
            ),
            format!("after saving what it holds: {}", wipe_at(&disk, signature)),
        );
    }
    judge_unreadable(found, reasons);
}

/// A part of the backing store that is judged elsewhere.
pub(super) struct Shown<'a> {
    /// The scan of that part.
    pub(super) found: &'a ScanResult,
    /// The start of that part in the backing store, in bytes.
    pub(super) start: u64,
}

impl Shown<'_> {
    fn has(&self, signature: &Signature) -> bool {
        self.found.signatures.iter().any(|other| {
            other.what == signature.what && other.offset + self.start == signature.offset
        })
    }
}

/// For the file or device behind a loop device. Signatures in the `shown` parts are judged there.
pub(super) fn judge_behind(
    path: &str,
    behind: &ScanResult,
    shown: &[Shown<'_>],
    reasons: &mut RefusalReasons,
) {
    for signature in &behind.signatures {
        if shown.iter().any(|part| part.has(signature)) {
            continue;
        }
        reasons.add(
            format!(
                "{path}, which lies behind it, holds a signature: {}",
                described(signature)
            ),
            format!(
                "create the loop device on another file, or after saving what it holds: {}",
                wipe_at(&quoted(path), signature)
            ),
        );
    }
    judge_unreadable(behind, reasons);
}

/// For a file: another one is easily made, so no command removes anything.
pub(super) fn judge_file(found: &ScanResult, reasons: &mut RefusalReasons) {
    for signature in &found.signatures {
        reasons.add(
            format!("it holds a signature: {}", described(signature)),
            "it is an image or a database: name another file, or a directory for a scratch file",
        );
    }
    judge_unreadable(found, reasons);
}

/// The commands that remove one signature and nothing else. The labels of a pool are hundreds of
/// copies, which only ZFS's own tool removes all.
fn wipe_at(quoted: &str, signature: &Signature) -> String {
    if signature.clearing == Clearing::ZpoolLabelclear {
        return format!("zpool labelclear -f {quoted}");
    }
    let offset = signature.offset;
    format!(
        "wipefs --offset {offset} {quoted}; where that finds nothing: dd if=/dev/zero of={quoted} \
         bs=1 seek={offset} count={SIGNATURE_BYTES} conv=notrunc,fsync"
    )
}

/// The remedy for a part that cannot be read.
const FAILING: &str =
    "see dmesg and smartctl --all: the disk may be failing, or be too slow to be examined";

fn judge_unreadable(found: &ScanResult, reasons: &mut RefusalReasons) {
    if let Some(reason) = unreadable_reason(found) {
        reasons.add(reason, FAILING);
    }
}

/// For the device itself: the remedy also lists the unreadable places, and the way on where nothing
/// on the device is needed.
fn judge_unreadable_device(quoted: &str, found: &ScanResult, reasons: &mut RefusalReasons) {
    if let Some(reason) = unreadable_reason(found) {
        reasons.add(
            reason,
            format!(
                "{FAILING}. Return a new disk that cannot be read; 'diskproof curve {quoted} \
                 --scan' lists the places, and writes nothing. Where nothing on it is needed, \
                 overwrite it (dd if=/dev/zero of={quoted} bs=1M oflag=direct) and try again"
            ),
        );
    }
}

fn unreadable_reason(found: &ScanResult) -> Option<String> {
    let first = found.unreadable.first()?;
    let why = match first.errno {
        Some(errno) => errno_name(errno),
        None => "it ends too early".to_owned(),
    };
    Some(format!(
        "{} of the offsets of signatures cannot be read, the first at byte {} ({why}), so its \
         content is unknown",
        found.unreadable.len(),
        first.offset
    ))
}

/// `ext2/3/4 filesystem or its journal in partition sda1 (byte 1049656)`.
fn described(signature: &Signature) -> String {
    let place = signature
        .slice
        .as_ref()
        .map(partition_phrase)
        .unwrap_or_default();
    format!("{}{place} (byte {})", signature.what, signature.offset)
}

fn partition_phrase(slice: &Slice) -> String {
    let start = format_bytes(slice.start);
    match &slice.name {
        SliceName::Kernel(name) => format!(" in partition {name}"),
        SliceName::Number(number) => format!(" in partition {number} of its table, at {start}"),
    }
}

fn clearing(path: &str, signature: &Signature) -> String {
    const SAVED: &str = "after saving what it holds";
    let partition = signature.slice.as_ref().map(|slice| &slice.name);
    let place = match partition {
        Some(SliceName::Kernel(name)) => node(name),
        Some(SliceName::Number(_)) | None => path.to_owned(),
    };
    let (place, path) = (quoted(&place), quoted(path));
    match (signature.clearing, partition) {
        // Without its node no tool reaches into a partition; with the table its partitions are
        // released.
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
        (Clearing::ZeroedLabel, _) => {
            let dd = dd_command(&path, signature.offset, ZFS_LABEL_BYTES);
            format!("{SAVED}: {dd}")
        }
    }
}

fn zeros(quoted: &str, offset: u64) -> String {
    dd_command(quoted, offset, ZERO_BLOCK_BYTES)
}

fn dd_command(quoted: &str, offset: u64, length: u64) -> String {
    let (seek, count) = (offset / ZERO_BLOCK_BYTES, length / ZERO_BLOCK_BYTES);
    format!(
        "dd if=/dev/zero of={quoted} bs={ZERO_BLOCK_BYTES} seek={seek} count={count} \
         conv=notrunc,fsync"
    )
}
