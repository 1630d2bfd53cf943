//! Picks the system calls that carry out operations without data, such as trims, on a target, and
//! checks that it accepts them. Changes no content itself.

use crate::io::{BlockCall, SystemCall, call_block, errno_name};
use crate::load::block_calls::BlockCalls;
use crate::run::error::{RunError, unsuitable};
use diskproof_device::OpenTarget;
use diskproof_model::op::OpKind;
use diskproof_model::plan::Workload;
use diskproof_model::target::TargetKind;
use std::os::fd::AsRawFd;

/// The length of a hole that a filesystem punches to show that it can: a page, the largest block of
/// all common filesystems.
const HOLE_BYTES: u64 = 4096;

/// The calls of a workload on a target; `None` where it moves data only.
pub(crate) fn calls_of(workload: &Workload, target: &OpenTarget) -> Option<BlockCalls> {
    let is_device = target.identity().kind == TargetKind::BlockDevice;
    BlockCalls::for_workload(workload, |kind| match (kind, is_device) {
        (OpKind::Trim, true) => Some(BlockCall::Discard),
        (OpKind::Trim, false) => Some(BlockCall::PunchHole),
        (OpKind::Read | OpKind::Write | OpKind::Sync | OpKind::Commit | OpKind::Transaction, _) => {
            None
        }
    })
}

/// The call by which a workload lets the device itself change blocks; `None` without one.
pub(crate) fn device_call(workload: &Workload, target: &OpenTarget) -> Option<BlockCall> {
    let calls = calls_of(workload, target)?;
    for (_, call) in calls.iter() {
        match call.system_call() {
            SystemCall::Ioctl { .. } => return Some(call),
            SystemCall::Fallocate(_) => {}
        }
    }
    None
}

/// As [`calls_of`]; refuses a workload whose target has no such call. Changes no content.
pub(crate) fn checked_calls(
    workload: &Workload,
    target: &OpenTarget,
) -> Result<Option<BlockCalls>, RunError> {
    let calls = calls_of(workload, target);
    for (kind, call) in calls.iter().flat_map(BlockCalls::iter) {
        let why = match call {
            BlockCall::Discard => target.identity().obstacle_to(kind).map(str::to_owned),
            BlockCall::PunchHole => why_no_holes(target),
        };
        if let Some(why) = why {
            return Err(unsuitable(workload, target, why));
        }
    }
    Ok(calls)
}

/// Says why a file cannot be trimmed; `None` where it can be. Behind the end of the file a hole
/// changes nothing; where the filesystem does not have it, the call fails there, too.
fn why_no_holes(target: &OpenTarget) -> Option<String> {
    let end = target.capacity_bytes().max(target.usable_bytes());
    let behind = end.next_multiple_of(HOLE_BYTES);
    let fd = target.fd().as_raw_fd();
    let errno = call_block(fd, BlockCall::PunchHole, behind, HOLE_BYTES);
    if errno == 0 {
        return None;
    }
    Some(format!(
        "trims, and the filesystem punches no holes into files ({}). Measure a directory on \
         another filesystem, or remove this workload",
        errno_name(-errno)
    ))
}
