//! How operations without data of their own are carried out on a target, and whether they can be.
//! Changes no content itself.

use crate::io::errno::errno_name;
use crate::io::{Op, TrimCall, trim};
use crate::load::generator::BlockCalls;
use crate::run::error::RunError;
use diskproof_device::OpenTarget;
use diskproof_model::op::OpKind;
use diskproof_model::plan::Workload;
use diskproof_model::target::TargetKind;
use std::os::fd::AsRawFd;

/// A hole of this size may lie behind the end of a file: a page on all common filesystems.
const HOLE_UNIT_BYTES: u64 = 4096;

/// The call that drops the content of a block of this target.
pub(crate) fn trim_call(target: &OpenTarget) -> TrimCall {
    match target.identity().kind {
        TargetKind::BlockDevice => TrimCall::Discard,
        TargetKind::Directory | TargetKind::File => TrimCall::PunchHole,
    }
}

/// The calls of a workload; refuses one that trims on a target that cannot.
pub(crate) fn block_calls(
    workload: &Workload,
    target: &OpenTarget,
) -> Result<Option<BlockCalls>, RunError> {
    if !workload.makes(OpKind::Trim) {
        return Ok(None);
    }
    let call = trim_call(target);
    let found = BlockCalls {
        op: Op::Trim(call),
        streams: workload.streams.clone(),
    };
    let refused = |why: String| RunError::Untrimmable {
        path: target.identity().path.clone(),
        workload: workload.name.clone(),
        why,
    };
    match call {
        TrimCall::Discard if target.identity().accepts_discards() == Some(false) => Err(refused(
            "the device accepts no discards (queue/discard_max_bytes is 0). Measure another \
             device, or remove this workload"
                .to_owned(),
        )),
        // Behind the end of the file nothing is lost; where the filesystem has no holes, the call
        // fails there, too.
        TrimCall::PunchHole => {
            let end = target.capacity_bytes().max(target.usable_bytes());
            let behind = end.next_multiple_of(HOLE_UNIT_BYTES);
            match trim(target.fd().as_raw_fd(), call, behind, HOLE_UNIT_BYTES) {
                0 => Ok(Some(found)),
                errno => Err(refused(format!(
                    "the filesystem punches no holes into files ({}). Measure a directory on \
                     another filesystem, or remove this workload",
                    errno_name(-errno)
                ))),
            }
        }
        TrimCall::Discard => Ok(Some(found)),
    }
}
