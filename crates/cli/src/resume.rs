//! Resuming a scan that ended early: reads `--resume`, and words the command that resumes.

use crate::failure::Failure;
use crate::saved::DiskKey;
use diskproof_model::plan::Span;
use diskproof_model::record::Record;
use diskproof_model::surface::{Scan, SurfaceMeasurement};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::{format_bytes, format_duration, parse_size};
use std::path::Path;

/// Bytes per request of a scan: the most that the kernel sends to most disks, and few enough for
/// one bad sector to stand out.
pub(crate) const SCAN_BLOCK_BYTES: u32 = 1 << 20;

/// A record may be damaged: the requests of a resumed scan are no smaller.
const BLOCK_BYTES_MIN: u32 = 4096;
/// The requests of a resumed scan are no larger.
const BLOCK_BYTES_MAX: u32 = 64 << 20;
/// After a long unreadable range, the command skips this many times as much. Chosen, not measured.
const SKIPPED_RANGES: u64 = 100;

/// The place at which a scan resumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resumed {
    /// The first byte that is not scanned yet.
    pub offset_bytes: u64,
    /// Bytes per request of the earlier scan.
    pub block_bytes: u32,
    /// The span of the earlier scan; `None` where only an offset was given.
    pub span: Option<Span>,
}

impl Resumed {
    /// Reads an offset, or the record of a scan that ended early. Fails where the target is not the
    /// one that was scanned.
    pub(crate) fn read(text: &str, identity: &TargetIdentity) -> Result<Self, Failure> {
        if identity.kind == TargetKind::Directory {
            return Err(unusable(
                text,
                "a scan in a directory reads a new scratch file each time; omit --resume, or name \
                 the block device",
            ));
        }
        if let Ok(offset_bytes) = parse_size(text) {
            return Self::from_offset(offset_bytes, identity);
        }
        let json = match crate::saved::read_document(Path::new(text)) {
            Ok(json) => json,
            Err(error) => {
                let why =
                    format!("neither an offset such as 120GiB nor a readable record ({error})");
                return Err(unusable(text, &why));
            }
        };
        match Record::from_json(&json) {
            Ok(record) => Self::from_record(&record, identity).map_err(|why| unusable(text, &why)),
            Err(error) => Err(unusable(text, &error.to_string())),
        }
    }

    /// Refuses an offset at which nothing of the span is left to scan.
    pub(crate) fn check_inside(&self, span: Span, target_bytes: u64) -> Result<(), Failure> {
        let end_bytes = match span.length_bytes {
            Some(length) => span.start_bytes.saturating_add(length).min(target_bytes),
            None => target_bytes,
        };
        if (span.start_bytes..end_bytes).contains(&self.offset_bytes) {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "--resume {}: outside of the span, bytes {} to {end_bytes}; use an offset in it",
            self.offset_bytes, span.start_bytes
        )))
    }

    fn from_offset(offset_bytes: u64, identity: &TargetIdentity) -> Result<Self, Failure> {
        if offset_bytes >= identity.size_bytes {
            return Err(Failure::Usage(format!(
                "--resume {}: the target has only {}; use a smaller offset",
                format_bytes(offset_bytes),
                format_bytes(identity.size_bytes)
            )));
        }
        Ok(Self {
            offset_bytes,
            block_bytes: SCAN_BLOCK_BYTES,
            span: None,
        })
    }

    fn from_record(record: &Record, identity: &TargetIdentity) -> Result<Self, String> {
        let surface = record.surface().ok_or("the record has no scan")?;
        let scan = surface.data.scan.as_ref().ok_or("the record has no scan")?;
        let scanned = record
            .targets
            .get(surface.data.target)
            .ok_or("the record has no target")?;
        if scanned.size_bytes != identity.size_bytes
            || scanned.kind != identity.kind
            || serials(scanned) != serials(identity)
            || DiskKey::new(scanned) != DiskKey::new(identity)
        {
            return Err(format!(
                "the record is of another disk ({}, {}); if it is the same one, name the offset: \
                 --resume {}",
                scanned.path,
                format_bytes(scanned.size_bytes),
                scan.to_bytes
            ));
        }
        if scan.finished {
            return Err("this scan is complete; omit --resume to scan again".to_owned());
        }
        let span = record.plan.survey().map(|survey| survey.span);
        Ok(Self {
            offset_bytes: scan.to_bytes,
            block_bytes: scan.block_bytes.clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX),
            span,
        })
    }
}

fn unusable(text: &str, why: &str) -> Failure {
    Failure::Usage(format!("--resume {text}: {why}"))
}

/// The serial numbers of the disks below a target.
fn serials(target: &TargetIdentity) -> Vec<&Option<String>> {
    target.disks().map(|disk| &disk.serial).collect()
}

/// The command that resumes a scan at an offset in bytes.
pub(crate) fn scan_command(path: &str, span: Span, offset_bytes: u64) -> String {
    let target = diskproof_model::shell::quoted(path);
    let start = span.start_bytes;
    match span.length_bytes {
        None => format!("diskproof curve {target} --scan --resume {offset_bytes}"),
        Some(length) => {
            let end = start + length;
            format!("diskproof curve {target} --scan --span {start}-{end} --resume {offset_bytes}")
        }
    }
}

/// Why a survey ended before its plan did, with the command that resumes; `None` when it did not.
pub(crate) fn ended_early(
    surface: &SurfaceMeasurement,
    identity: &TargetIdentity,
    interrupted: &str,
) -> Option<String> {
    let path = &identity.path;
    let unfinished = surface.scan.as_ref().filter(|scan| !scan.finished);
    let remedy = match unfinished {
        Some(scan) if identity.kind != TargetKind::Directory => {
            let command = scan_command(path, surface.survey.span, scan.to_bytes);
            format!("; to resume the scan: {command}")
        }
        _ => String::new(),
    };
    if let Some(hang) = surface.hang
        && !hang.late
    {
        let lasted = format_duration(hang.lasted_ns);
        let hung = format!(
            "{path} stopped answering; diskproof stopped waiting after {lasted}. See the kernel \
             log (dmesg){remedy}"
        );
        return Some(if surface.interrupted {
            format!("{interrupted}; {hung}")
        } else {
            hung
        });
    }
    if surface.interrupted {
        return Some(format!("{interrupted}{remedy}"));
    }
    Some(ended_by_unreadable_blocks(surface, unfinished?, path))
}

/// Says that a scan ended because too much in a row was unreadable.
fn ended_by_unreadable_blocks(surface: &SurfaceMeasurement, scan: &Scan, path: &str) -> String {
    let mut unreadable_bytes = 0;
    let mut errno = "";
    // The list of ranges may be full.
    if let Some(range) = &scan.ended_at {
        unreadable_bytes = range.length_bytes;
        errno = &range.errno;
    }
    let span_end = surface.span_start_bytes.saturating_add(surface.span_bytes);
    // A target may be smaller than a block.
    let last_block = span_end.saturating_sub(u64::from(scan.block_bytes));
    let resume_at = offset_behind_range(scan.to_bytes, unreadable_bytes).min(last_block);
    format!(
        "the scan ended at byte {}: {} in a row were unreadable; {}; to resume after skipping a \
         hundred times as much: {}",
        scan.to_bytes,
        format_bytes(unreadable_bytes),
        diskproof_model::errno::remedy([errno]),
        scan_command(path, surface.survey.span, resume_at)
    )
}

/// Where a scan resumes that ended at `end_bytes`, behind an unreadable range of this length.
fn offset_behind_range(end_bytes: u64, unreadable_bytes: u64) -> u64 {
    end_bytes.saturating_add(unreadable_bytes.saturating_mul(SKIPPED_RANGES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scan_skips_a_hundred_times_an_unreadable_range() {
        assert_eq!(offset_behind_range(1_000_000, 4096), 1_409_600);
        assert_eq!(offset_behind_range(u64::MAX, 4096), u64::MAX);
    }

    #[test]
    fn command_to_resume_keeps_the_span() {
        let whole = scan_command("/dev/sdb", Span::default(), 512);
        assert_eq!(whole, "diskproof curve /dev/sdb --scan --resume 512");
        let part = scan_command("/dev/sdb", Span::new(4096, Some(8192)), 8192);
        let expected = "diskproof curve /dev/sdb --scan --span 4096-12288 --resume 8192";
        assert_eq!(part, expected);
    }

    #[test]
    fn offset_outside_of_the_span_is_refused() {
        let resumed = |offset_bytes| Resumed {
            offset_bytes,
            block_bytes: SCAN_BLOCK_BYTES,
            span: None,
        };
        let span = Span::new(4096, Some(8192));
        for inside in [4096, 12_287] {
            assert!(resumed(inside).check_inside(span, 1 << 20).is_ok());
        }
        for outside in [0, 4095, 12_288] {
            assert!(resumed(outside).check_inside(span, 1 << 20).is_err());
        }
        // The target ends before the span does.
        assert!(resumed(10_000).check_inside(span, 9000).is_err());
    }
}
