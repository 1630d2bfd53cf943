//! Turns what a scan found on a disk or in a file into reasons to refuse it: signatures, data of an
//! unknown format, and places that cannot be read. A reason names the command that removes the
//! data, for the user to run; diskproof removes none. Pure.

use super::permit::UnknownContent;
use super::reasons::{RefusalReasons, Step};
use crate::kernel::naming::{errno_name, node};
use crate::signatures::{Clearing, ScanResult, Signature, Slice, SliceName, Unknown};
use diskproof_model::shell::quoted;
use diskproof_model::units::{counted, format_bytes};

/// The block size of the suggested `dd` commands: no device has larger logical blocks.
const ZERO_BLOCK_BYTES: u64 = 4096;
/// Length of a label of ZFS, which has to be zeroed as a whole.
const ZFS_LABEL_BYTES: u64 = 256 << 10;
/// Bytes that the suggested command zeroes at a signature, where the partition table must survive:
/// no signature is longer, and the table is farther from the start of any of them.
const SIGNATURE_BYTES_MAX: u64 = 32;

/// Judges the device that is to be overwritten: every signature is a reason.
pub(super) fn judge_device(
    path: &str,
    found: &ScanResult,
    unknown_content: UnknownContent,
    reasons: &mut RefusalReasons,
) {
    for signature in &found.signatures {
        reasons.add(
            format!("it holds a signature: {}", signature_and_place(signature)),
            Step::clause(removal_from_device(path, signature)),
        );
    }
    if unknown_content == UnknownContent::Refuse {
        for unknown in &found.unknown {
            refuse_unknown(path, unknown, reasons);
        }
        if found.has_remains {
            reasons.add(
                "its first or last MiB holds other data, which these commands do not remove",
                Step::clause(
                    "after saving what it holds: add --wipe-unknown, which zeroes the first and \
                     last MiB",
                ),
            );
        }
    }
    refuse_unreadable_device(&quoted(path), found, reasons);
}

fn refuse_unknown(path: &str, unknown: &Unknown, reasons: &mut RefusalReasons) {
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
            hexdump_line(unknown)
        ),
        Step::clause(format!(
            "after saving what it holds: add --wipe-unknown, which zeroes the first and last MiB; \
             to see it: hexdump -C -s {} -n {} {}",
            unknown.start,
            unknown.length,
            quoted(path)
        )),
    );
}

/// The first unknown bytes as a line of `hexdump -C`.
fn hexdump_line(unknown: &Unknown) -> String {
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

/// Judges the disk around a partition: the partition is a part of whatever the whole disk is. The
/// remedies keep the partition table, which `wipefs --all` and a block of zeros near the start of
/// the disk would remove.
pub(super) fn judge_whole_disk(path: &str, found: &ScanResult, reasons: &mut RefusalReasons) {
    let disk = quoted(path);
    for signature in &found.signatures {
        let Signature { what, offset, .. } = signature;
        reasons.add(
            format!(
                "its whole disk {disk} holds a signature: {what} (byte {offset}), and the \
                 partition is a part of it"
            ),
            Step::clause(format!(
                "after saving what it holds: {}",
                removal_of_one(&disk, signature)
            )),
        );
    }
    refuse_unreadable(found, reasons);
}

/// A part of a backing store whose signatures were judged already, at the target or at a disk
/// around it.
pub(super) struct JudgedPart<'a> {
    /// The scan of that part; its offsets count from the start of the part.
    pub(super) found: &'a ScanResult,
    /// The start of that part in the backing store, in bytes.
    pub(super) start: u64,
}

impl JudgedPart<'_> {
    /// True if `signature`, whose offset counts from the start of the backing store, was found in
    /// this part too.
    fn contains(&self, signature: &Signature) -> bool {
        self.found.signatures.iter().any(|judged| {
            judged.what == signature.what && judged.offset + self.start == signature.offset
        })
    }
}

/// Judges the file or device behind a loop device. Signatures in the `judged` parts are reasons
/// already and are skipped.
pub(super) fn judge_backing_store(
    path: &str,
    found: &ScanResult,
    judged: &[JudgedPart<'_>],
    reasons: &mut RefusalReasons,
) {
    for signature in &found.signatures {
        if judged.iter().any(|part| part.contains(signature)) {
            continue;
        }
        reasons.add(
            format!(
                "{path}, which lies behind it, holds a signature: {}",
                signature_and_place(signature)
            ),
            Step::clause(format!(
                "create the loop device on another file, or after saving what it holds: {}",
                removal_of_one(&quoted(path), signature)
            )),
        );
    }
    refuse_unreadable(found, reasons);
}

/// Judges a file that is to be overwritten. Another one is easily made, so no remedy removes
/// anything.
pub(super) fn judge_file(found: &ScanResult, reasons: &mut RefusalReasons) {
    for signature in &found.signatures {
        reasons.add(
            format!("it holds a signature: {}", signature_and_place(signature)),
            Step::clause("it is an image or a database: name another file, or a directory"),
        );
    }
    refuse_unreadable(found, reasons);
}

/// The commands that remove one signature and nothing else from the disk or file `quoted_path`. The
/// labels of a ZFS pool are hundreds of copies, and only the tool of ZFS removes all of them.
fn removal_of_one(quoted_path: &str, signature: &Signature) -> String {
    if signature.clearing == Clearing::ZpoolLabelclear {
        return format!("zpool labelclear -f {quoted_path}");
    }
    let offset = signature.offset;
    format!(
        "wipefs --offset {offset} {quoted_path}; where that finds nothing: dd if=/dev/zero \
         of={quoted_path} bs=1 seek={offset} count={SIGNATURE_BYTES_MAX} conv=notrunc,fsync"
    )
}

/// The remedy for places that cannot be read.
const CHECK_THE_DISK: &str =
    "see dmesg and smartctl --all: the disk may be failing, or be too slow to be examined";

fn refuse_unreadable(found: &ScanResult, reasons: &mut RefusalReasons) {
    if let Some(reason) = unreadable_reason(found) {
        reasons.add(reason, Step::clause(CHECK_THE_DISK));
    }
}

/// As [`refuse_unreadable`], for the device that is to be overwritten: the remedy also says how to
/// list the unreadable places, and how to go on where nothing on the device is needed.
fn refuse_unreadable_device(quoted_path: &str, found: &ScanResult, reasons: &mut RefusalReasons) {
    if let Some(reason) = unreadable_reason(found) {
        reasons.add(
            reason,
            Step::clause(format!(
                "{CHECK_THE_DISK}. Return a new disk that cannot be read; 'diskproof curve \
                 {quoted_path} --scan' lists the places, and writes nothing. Where nothing on it \
                 is needed, overwrite it (dd if=/dev/zero of={quoted_path} bs=1M oflag=direct) and \
                 try again"
            )),
        );
    }
}

/// `None` if every place of a signature could be read.
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
fn signature_and_place(signature: &Signature) -> String {
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

/// Says how to remove a signature from the device that is to be overwritten, on which nothing else
/// has to survive.
fn removal_from_device(path: &str, signature: &Signature) -> String {
    let holder = match signature.slice.as_ref().map(|slice| &slice.name) {
        Some(SliceName::Kernel(name)) => node(name),
        None => path.to_owned(),
        // Without its node no tool reaches into a partition. With the table its partitions are
        // released.
        Some(SliceName::Number(_)) => {
            let disk = quoted(path);
            return format!(
                "after saving what it holds (partx --add {disk} makes it a device): wipefs --all \
                 {disk}"
            );
        }
    };
    let command = removal_command(&quoted(&holder), &quoted(path), signature);
    format!("after saving what it holds: {command}")
}

/// The command for a signature in `quoted_holder`, a disk or a partition with a node. The offset of
/// the signature counts from the start of `quoted_disk`.
fn removal_command(quoted_holder: &str, quoted_disk: &str, signature: &Signature) -> String {
    match signature.clearing {
        Clearing::Wipefs => format!(
            "wipefs --all {quoted_holder}; where that finds nothing: {}",
            zero_command(quoted_disk, signature.offset, ZERO_BLOCK_BYTES)
        ),
        Clearing::ZpoolLabelclear => {
            format!("zpool labelclear -f {quoted_holder}, or wipefs --all {quoted_holder}")
        }
        Clearing::Zeros => zero_command(quoted_disk, signature.offset, ZERO_BLOCK_BYTES),
        Clearing::ZeroedLabel => zero_command(quoted_disk, signature.offset, ZFS_LABEL_BYTES),
    }
}

/// The command that zeroes `length` bytes, a multiple of [`ZERO_BLOCK_BYTES`], from the block on
/// that contains `offset`.
fn zero_command(quoted_path: &str, offset: u64, length: u64) -> String {
    let seek = offset / ZERO_BLOCK_BYTES;
    let count = length / ZERO_BLOCK_BYTES;
    format!(
        "dd if=/dev/zero of={quoted_path} bs={ZERO_BLOCK_BYTES} seek={seek} count={count} \
         conv=notrunc,fsync"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signatures::Role;

    fn signature(offset: u64, clearing: Clearing) -> Signature {
        Signature::new("ext4 filesystem", offset, clearing, Role::Content)
    }

    #[test]
    fn command_zeroes_whole_blocks_around_the_signature() {
        let command = zero_command("/dev/sdb", 1080, ZERO_BLOCK_BYTES);
        assert!(command.contains("bs=4096 seek=0 count=1 "), "{command}");
        let label = removal_command(
            "/dev/sdb",
            "/dev/sdb",
            &signature(8192, Clearing::ZeroedLabel),
        );
        assert!(label.contains("bs=4096 seek=2 count=64 "), "{label}");
    }

    #[test]
    fn whole_disk_keeps_its_partition_table() {
        let mut reasons = RefusalReasons::default();
        let found = ScanResult {
            signatures: vec![signature(1080, Clearing::Wipefs)],
            ..ScanResult::default()
        };
        judge_whole_disk("/dev/sdb", &found, &mut reasons);
        let refusal = reasons.into_refusal(String::new());
        assert!(
            refusal.remedy.contains("wipefs --offset 1080 /dev/sdb"),
            "{refusal}"
        );
        assert!(
            refusal.remedy.contains("bs=1 seek=1080 count=32"),
            "{refusal}"
        );
        assert!(!refusal.remedy.contains("--all"), "{refusal}");
    }

    #[test]
    fn signature_of_a_judged_part_is_no_second_reason() {
        let of_part = ScanResult {
            signatures: vec![signature(1080, Clearing::Wipefs)],
            ..ScanResult::default()
        };
        let part = JudgedPart {
            found: &of_part,
            start: 1 << 20,
        };
        let of_file = ScanResult {
            signatures: vec![
                signature((1 << 20) + 1080, Clearing::Wipefs),
                signature(1080, Clearing::Wipefs),
            ],
            ..ScanResult::default()
        };
        let mut reasons = RefusalReasons::default();
        judge_backing_store("/srv/image", &of_file, &[part], &mut reasons);
        let refusal = reasons.into_refusal(String::new());
        assert_eq!(refusal.reasons.len(), 1, "{refusal}");
        assert!(refusal.reasons[0].ends_with("(byte 1080)"), "{refusal}");
    }
}
