//! The file or device behind a loop device. The loop device is a part of it, so all of it must be
//! free, as if it were the target. Opens for reading only.

use super::ancestry::Ancestry;
use super::contents::{self, Shown};
use super::family::{BackingFile, DeviceFamily};
use super::file::judge_names;
use super::refusal::RefusalReasons;
use super::servers;
use crate::failure::{OpenError, open_failed};
use crate::held::{Held, changed};
use crate::inspect::Inspector;
use crate::signatures::ScanResult;
use rustix::fs::{OFlags, fstat};
use std::os::fd::AsFd;

/// What scans of the target, and of the whole disk around a partition, found.
pub(super) struct FoundAbove<'a> {
    pub(super) target: &'a ScanResult,
    pub(super) whole: Option<&'a ScanResult>,
}

impl<'a> FoundAbove<'a> {
    /// The same, placed in a backing store in which the target begins at byte `start`. The whole
    /// disk begins where its partition does, less the partition's own start.
    fn placed(&self, start: u64, target_start: u64) -> Vec<Shown<'a>> {
        let target = Shown {
            found: self.target,
            start,
        };
        let whole = self.whole.map(|found| Shown {
            found,
            start: start.saturating_sub(target_start),
        });
        std::iter::once(target).chain(whole).collect()
    }
}

/// Judges every file and device behind the target. Marks that the target shows, or the whole disk
/// around it, are judged there: a partition may be overwritten while its neighbours hold data.
pub(super) fn judge(family: &DeviceFamily, above: &FoundAbove<'_>, reasons: &mut RefusalReasons) {
    let target_start = family.target_start();
    for file in &family.backing_files {
        let shown = above.placed(file.start, target_start);
        if let Err(error) = judge_file(file, &shown, reasons) {
            add_uninspected(file, &error.to_string(), reasons);
        }
    }
    for device in &family.backing_devices {
        let node = device.member.node();
        match Inspector::of_relative(&node, &device.member.device) {
            Ok(inspector) => {
                let behind = inspector.scan(device.size_bytes, &[]);
                let shown = above.placed(device.start, target_start);
                contents::judge_behind(&node, &behind, &shown, reasons);
            }
            Err(error) => reasons.add(
                format!("{node}, which lies behind it, cannot be inspected: {error}"),
                "solve this first; diskproof writes only to targets that it can inspect",
            ),
        }
    }
}

fn judge_file(
    file: &BackingFile,
    shown: &[Shown<'_>],
    reasons: &mut RefusalReasons,
) -> Result<(), OpenError> {
    let path = file.path.display().to_string();
    let Some(id) = file.id else {
        add_uninspected(file, "it has no name here", reasons);
        return Ok(());
    };
    let failed = |errno| open_failed(&path, errno);
    let held = Held::at(&file.path).map_err(failed)?;
    if held.id() != id {
        return Err(changed(&path, "something else replaced it"));
    }
    let above = Ancestry::of_file(&path, id)?;
    servers::judge_file(&above, reasons);
    let fd = held
        .reopen(OFlags::RDONLY | OFlags::NONBLOCK)
        .map_err(failed)?;
    let stat = fstat(&fd).map_err(failed)?;
    judge_names(stat.st_nlink, reasons);
    let behind = Inspector::through(fd.as_fd()).scan(stat.st_size.unsigned_abs(), &[]);
    contents::judge_behind(&path, &behind, shown, reasons);
    Ok(())
}

fn add_uninspected(file: &BackingFile, why: &str, reasons: &mut RefusalReasons) {
    reasons.add(
        format!(
            "the file behind {} ({}) cannot be inspected: {why}",
            file.above,
            file.path.display()
        ),
        "run where that file can be read, or recreate the loop device on a file that has a name",
    );
}
