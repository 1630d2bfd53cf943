//! How operations without data of their own are carried out on a target, and whether they can be.
//! Changes no content itself.

use crate::io::{BlockCall, call_block, errno_name};
use crate::load::block_calls::BlockCalls;
use crate::run::error::{RunError, unsuitable};
use diskproof_device::OpenTarget;
use diskproof_model::op::OpKind;
use diskproof_model::plan::Workload;
use diskproof_model::target::TargetKind;
use std::os::fd::AsRawFd;

/// What a call changes may lie behind the end of a file: a page on all common filesystems.
const UNIT_BYTES: u64 = 4096;

/// The calls of a workload on a target; `None` where it moves data only.
pub(crate) fn calls_of(workload: &Workload, target: &OpenTarget) -> Option<BlockCalls> {
    let is_device = target.identity().kind == TargetKind::BlockDevice;
    BlockCalls::for_workload(workload, |kind| match (kind, is_device) {
        (OpKind::Trim, true) => Some(BlockCall::DISCARD),
        (OpKind::Trim, false) => Some(BlockCall::PUNCH_HOLE),
        (OpKind::Read | OpKind::Write | OpKind::Sync | OpKind::Commit | OpKind::Transaction, _) => {
            None
        }
    })
}

/// The call by which a workload asks the device itself to change blocks; `None` without one.
pub(crate) fn device_call(workload: &Workload, target: &OpenTarget) -> Option<BlockCall> {
    let calls = calls_of(workload, target)?;
    calls
        .iter()
        .find(|call| matches!(call, BlockCall::Ioctl(_)))
}

/// The calls of a workload; refuses one on a target that has no such call. Changes no content.
pub(crate) fn checked_calls(
    workload: &Workload,
    target: &OpenTarget,
) -> Result<Option<BlockCalls>, RunError> {
    let found = calls_of(workload, target);
    let refused = |why: &str| unsuitable(workload, target, format!("trims, and {why}"));
    for call in found.iter().flat_map(BlockCalls::iter) {
        match call {
            BlockCall::DISCARD if target.identity().accepts_discards() == Some(false) => {
                return Err(refused(
                    "the device accepts no discards (queue/discard_max_bytes is 0). Measure \
                     another device, or remove this workload",
                ));
            }
            // Behind the end of the file nothing is lost; where the filesystem does not have it,
            // the call fails there, too.
            BlockCall::Fallocate(_) => {
                let end = target.capacity_bytes().max(target.usable_bytes());
                let behind = end.next_multiple_of(UNIT_BYTES);
                let errno = call_block(target.fd().as_raw_fd(), call, behind, UNIT_BYTES);
                if errno != 0 {
                    return Err(refused(&format!(
                        "the filesystem punches no holes into files ({}). Measure a directory on \
                         another filesystem, or remove this workload",
                        errno_name(-errno)
                    )));
                }
            }
            BlockCall::Ioctl(_) => {}
        }
    }
    Ok(found)
}
