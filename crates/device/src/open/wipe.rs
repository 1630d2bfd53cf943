//! Zeroes data of an unknown format at the ends of a device, which the user released with
//! --wipe-unknown. Inspects the ends again first, and writes nothing where it recognises a format.

use crate::admit::device::scan_again;
use crate::admit::inspect::Inspector;
use crate::failure::{OpenError, changed};
use crate::file::direct_io::{AlignedBlock, clear_flags, is_direct};
use crate::signatures::Unknown;
use diskproof_model::target::TargetIdentity;
use rustix::fs::{OFlags, fdatasync};
use rustix::io::{Errno, pwrite};
use std::os::fd::BorrowedFd;

/// Bytes of zeros written by one call: a multiple of the sectors of every device.
const PIECE_BYTES: u64 = 64 << 10;

/// Zeroes each end that holds data of an unknown format, durably.
pub(crate) fn wipe_unknown(fd: BorrowedFd<'_>, identity: &TargetIdentity) -> Result<(), OpenError> {
    let Some(content) = scan_again(identity, &Inspector::through(fd)) else {
        return Err(changed(&identity.path, "its device is gone"));
    };
    if !content.signatures.is_empty() || !content.unreadable.is_empty() {
        return Err(changed(&identity.path, "its content changed"));
    }
    zero_ends(fd, &content.unknown).map_err(|errno| {
        OpenError::from_errno(&identity.path, "zero its first and last MiB", errno)
    })
}

fn zero_ends(fd: BorrowedFd<'_>, ends: &[Unknown]) -> Result<(), Errno> {
    for end in ends {
        let (mut position, stop) = (end.start, end.start + end.length);
        while position < stop {
            let length = PIECE_BYTES.min(stop - position);
            position += write_zeros(fd, position, length)?;
        }
    }
    if ends.is_empty() {
        return Ok(());
    }
    fdatasync(fd)
}

/// Writes zeros once and returns the bytes written. Where these are fewer than `length`, even 0,
/// the caller must go on with the rest.
fn write_zeros(fd: BorrowedFd<'_>, offset: u64, length: u64) -> Result<u64, Errno> {
    let mut zeros = AlignedBlock::zeroed(length as usize);
    match pwrite(fd, zeros.bytes(), offset) {
        Ok(0) => Err(Errno::IO),
        Ok(written) => Ok(written as u64),
        Err(Errno::INTR) => Ok(0),
        // The last block of a device whose size is no multiple of its sectors.
        Err(Errno::INVAL) if is_direct(fd) => clear_flags(fd, OFlags::DIRECT).map(|()| 0),
        Err(errno) => Err(errno),
    }
}
