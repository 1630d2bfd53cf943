//! Resuming a scan that ended early: what `--resume` names, and the command that resumes. Does not
//! know how a scan runs.

use crate::failure::Failure;
use diskproof_model::plan::Span;
use diskproof_model::record::Record;
use diskproof_model::surface::SurfaceMeasurement;
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::{format_bytes, format_duration, parse_size};
use std::path::Path;

/// Bytes per request of a scan: the most that the kernel sends to most disks, and few enough for
/// one bad sector to stand out.
pub(crate) const SCAN_BLOCK_BYTES: u32 = 1 << 20;

/// Where a scan resumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resumed {
    /// The first byte that is not scanned yet.
    pub at: u64,
    /// Bytes per request of the earlier scan.
    pub block_bytes: u32,
    /// The span of the earlier scan; `None` where only an offset was given.
    pub span: Option<Span>,
}

impl Resumed {
    /// An offset, or the record of a scan that ended early.
    pub(crate) fn read(text: &str, identity: &TargetIdentity) -> Result<Self, Failure> {
        let wrong = |why: String| Failure::Usage(format!("--resume {text}: {why}"));
        if identity.kind == TargetKind::Directory {
            let why = "a scan in a directory reads a new scratch file each time; omit --resume, or \
                       name the block device";
            return Err(wrong(why.to_owned()));
        }
        if let Ok(at) = parse_size(text) {
            if at >= identity.size_bytes {
                let (at, size) = (format_bytes(at), format_bytes(identity.size_bytes));
                return Err(Failure::Usage(format!(
                    "--resume {at}: the target has only {size}; use a smaller offset"
                )));
            }
            return Ok(Self {
                at,
                block_bytes: SCAN_BLOCK_BYTES,
                span: None,
            });
        }
        let unreadable = "neither an offset such as 120GiB nor a readable record";
        let json = crate::saved::read_document(Path::new(text))
            .map_err(|error| wrong(format!("{unreadable} ({error})")))?;
        let record = Record::from_json(&json).map_err(|error| wrong(error.to_string()))?;
        Self::of(&record, identity).map_err(wrong)
    }

    fn of(record: &Record, identity: &TargetIdentity) -> Result<Self, String> {
        let surface = record.surface().ok_or("the record has no scan")?;
        let scan = surface.data.scan.as_ref().ok_or("the record has no scan")?;
        let scanned = record.targets.get(surface.data.target);
        let scanned = scanned.ok_or("the record has no target")?;
        let serials = scanned.disks().map(|disk| &disk.serial);
        let has_same_disks = serials.eq(identity.disks().map(|disk| &disk.serial));
        if (scanned.size_bytes, scanned.kind) != (identity.size_bytes, identity.kind)
            || !has_same_disks
        {
            return Err(format!(
                "the record is of another disk ({}, {})",
                scanned.path,
                format_bytes(scanned.size_bytes)
            ));
        }
        if scan.finished {
            return Err("this scan is complete; omit --resume to scan again".to_owned());
        }
        let span = record.plan.survey().map(|survey| survey.span);
        Ok(Self {
            at: scan.to_bytes,
            block_bytes: scan.block_bytes.clamp(4096, 64 << 20),
            span,
        })
    }
}

/// The command that resumes a scan at an offset.
pub(crate) fn scan_command(path: &str, span: Span, at: u64) -> String {
    let (start, path) = (span.start_bytes, diskproof_model::shell::quoted(path));
    let span = span.length_bytes.map_or(String::new(), |length| {
        format!(" --span {start}-{}", start + length)
    });
    format!("diskproof curve {path} --scan{span} --resume {at}")
}

/// Why a survey ended before its plan did, with the command that resumes; `None` when it did not.
pub(crate) fn ended_early(
    surface: &SurfaceMeasurement,
    identity: &TargetIdentity,
    interrupted: &str,
) -> Option<String> {
    let scan = surface.scan.as_ref().filter(|scan| !scan.finished);
    let go_on = |at: u64| scan_command(&identity.path, surface.survey.span, at);
    let resumable = scan.filter(|_| identity.kind != TargetKind::Directory);
    let rest = resumable.map_or(String::new(), |scan| {
        format!("; to resume the scan: {}", go_on(scan.to_bytes))
    });
    if let Some(hang) = surface.hang.filter(|hang| !hang.late) {
        let (path, lasted) = (&identity.path, format_duration(hang.lasted_ns));
        let interrupted = if surface.interrupted {
            format!("{interrupted}; ")
        } else {
            String::new()
        };
        return Some(format!(
            "{interrupted}{path} stopped answering; diskproof stopped waiting after {lasted}. See \
             the kernel log (dmesg){rest}"
        ));
    }
    match scan {
        _ if surface.interrupted => Some(format!("{interrupted}{rest}")),
        Some(scan) => {
            let last = scan.unreadable.last();
            let (last, errno) = last.map_or((0, ""), |one| (one.length_bytes, one.errno.as_str()));
            let last_block =
                surface.span_start_bytes + surface.span_bytes - u64::from(scan.block_bytes);
            let beyond = scan.to_bytes.saturating_add(last.saturating_mul(100));
            Some(format!(
                "the scan ended at byte {}: {} in a row were unreadable; {}; to resume after \
                 skipping a hundred times as much: {}",
                scan.to_bytes,
                format_bytes(last),
                diskproof_model::errno::remedy([errno]),
                go_on(beyond.min(last_block))
            ))
        }
        None => None,
    }
}
