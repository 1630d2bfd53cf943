//! Where a scan goes on that was ended: what `--resume` says, and the command that says it. Knows
//! nothing of how a scan is made or watched.

use crate::failure::Failure;
use crate::saved::read_document;
use diskproof_model::errno::remedy;
use diskproof_model::plan::Span;
use diskproof_model::record::Record;
use diskproof_model::shell::quoted;
use diskproof_model::surface::SurfaceMeasurement;
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::{format_bytes, format_duration, parse_size};
use std::path::Path;

/// Bytes that a scan reads at once: as the kernel sends to most disks at most, and little enough
/// that one bad sector stands out.
pub const SCAN_BLOCK_BYTES: u32 = 1 << 20;

/// Where a scan goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resumed {
    /// First byte that is not judged yet.
    pub at: u64,
    /// Bytes of a block of the scan that is continued.
    pub block_bytes: u32,
    /// The span of that scan; `None` where only a position was given.
    pub span: Option<Span>,
}

impl Resumed {
    /// A position, or the record of a scan that was ended.
    pub fn read(text: &str, identity: &TargetIdentity) -> Result<Self, Failure> {
        if identity.kind == TargetKind::Directory {
            let why = "a scan in a directory reads a scratch file, which is another one each \
                       time: leave --resume out, or name the block device";
            return Err(Failure::Usage(format!("--resume {text}: {why}")));
        }
        if let Ok(at) = parse_size(text) {
            if at >= identity.size_bytes {
                let (at, size) = (format_bytes(at), format_bytes(identity.size_bytes));
                return Err(Failure::Usage(format!(
                    "--resume {at} lies behind the end of the target, which has {size}"
                )));
            }
            return Ok(Self {
                at,
                block_bytes: SCAN_BLOCK_BYTES,
                span: None,
            });
        }
        let path = Path::new(text);
        let wrong = |why: String| Failure::Usage(format!("--resume {text}: {why}"));
        let json = read_document(path).map_err(|error| {
            wrong(format!(
                "neither a position, such as 120GiB, nor a record that can be read ({error})"
            ))
        })?;
        let record = Record::from_json(&json).map_err(|error| wrong(error.to_string()))?;
        Self::of(&record, identity).map_err(wrong)
    }

    fn of(record: &Record, identity: &TargetIdentity) -> Result<Self, String> {
        let surface = record.surface.as_ref();
        let scan = surface
            .and_then(|surface| surface.scan.as_ref())
            .ok_or("it holds no scan")?;
        let scanned = surface
            .and_then(|surface| record.targets.get(surface.target))
            .ok_or("it holds no target")?;
        let serials = |identity: &TargetIdentity| {
            identity
                .disks()
                .map(|disk| disk.serial.clone())
                .collect::<Vec<_>>()
        };
        if (scanned.size_bytes, scanned.kind) != (identity.size_bytes, identity.kind)
            || serials(scanned) != serials(identity)
        {
            return Err(format!(
                "it is the scan of another disk ({}, {})",
                scanned.path,
                format_bytes(scanned.size_bytes)
            ));
        }
        if scan.finished {
            return Err("this scan came to its end; leave --resume out for another one".to_owned());
        }
        let span = record.plan.survey.as_ref().map(|survey| survey.span);
        Ok(Self {
            at: scan.to_bytes,
            block_bytes: scan.block_bytes.clamp(4096, 64 << 20),
            span,
        })
    }
}

/// The command that goes on with a scan at a byte.
pub fn scan_command(path: &str, span: Span, at: u64) -> String {
    let Span {
        start_bytes,
        length_bytes,
    } = span;
    let span = length_bytes.map_or(String::new(), |length| {
        format!(" --span {start_bytes}-{}", start_bytes + length)
    });
    format!(
        "diskproof curve {} --scan{span} --resume {at}",
        quoted(path)
    )
}

/// Why a survey ended before its plan did, with the command that goes on; `None` when it did not.
pub fn ended_early(
    surface: &SurfaceMeasurement,
    identity: &TargetIdentity,
    interrupted: &str,
) -> Option<String> {
    let scan = surface.scan.as_ref().filter(|scan| !scan.finished);
    let go_on = |at: u64| scan_command(&identity.path, surface.survey.span, at);
    if let Some(hang) = surface.hang {
        let (path, lasted) = (&identity.path, format_duration(hang.lasted_ns));
        let rest = scan
            .filter(|_| identity.kind != TargetKind::Directory)
            .map_or(String::new(), |scan| {
                format!("; the scan goes on with: {}", go_on(scan.to_bytes))
            });
        let interrupted = if surface.interrupted {
            format!("{interrupted}; ")
        } else {
            String::new()
        };
        return Some(format!(
            "{interrupted}{path} did not answer any more and was given up after {lasted}; see the \
             kernel log (dmesg){rest}"
        ));
    }
    match scan {
        Some(scan) if surface.interrupted && identity.kind != TargetKind::Directory => {
            Some(format!(
                "{interrupted}; the scan goes on with: {}",
                go_on(scan.to_bytes)
            ))
        }
        _ if surface.interrupted => Some(interrupted.to_owned()),
        Some(scan) => {
            let (last, errno) = scan
                .unreadable
                .last()
                .map_or((0, ""), |range| (range.length_bytes, range.errno.as_str()));
            Some(format!(
                "{} in a row could not be read, and the scan was given up at byte {}: {}; a scan \
                 of what lies a hundred times as far on: {}",
                format_bytes(last),
                scan.to_bytes,
                remedy([errno]),
                go_on(scan.to_bytes.saturating_add(last.saturating_mul(100)).min(
                    surface.span_start_bytes + surface.span_bytes - u64::from(scan.block_bytes)
                ))
            ))
        }
        None => None,
    }
}
