//! Tries whether direct I/O works on an open target, and with which alignment. These are the first
//! requests to the target, and a disk that hangs may never answer them. So the trial is a value
//! that another thread than the waiting one can run.

use crate::failure::OpenError;
use crate::file::direct_io::AlignedBlock;
use crate::open::scratch;
use diskproof_model::op::OpKind;
use rustix::fs::ftruncate;
use rustix::io::{Errno, pread, pwrite};
use std::os::fd::OwnedFd;

/// The smallest sector that Linux knows. It is tried where nothing states the alignment.
pub(crate) const ALIGNMENT_MIN: u32 = 512;

/// The requests to be tried on a target whose files have O_DIRECT.
#[derive(Debug, Clone)]
pub struct DirectTrial {
    pub(crate) path: String,
    pub(crate) alignment_bytes: u32,
    /// Nothing states the alignment.
    pub(crate) is_assumed: bool,
    /// An empty scratch file, which has nothing to read.
    pub(crate) is_empty: bool,
}

/// The outcome of the trial.
#[derive(Debug, Clone, Copy)]
pub struct TriedDirect {
    /// The alignment that direct I/O needs.
    pub(crate) alignment_bytes: u32,
    answer: DirectAnswer,
    op: OpKind,
}

/// A request outside of any measurement that the disk failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedRequest {
    /// A read or a write.
    pub op: OpKind,
    /// The number of the error.
    pub errno: i32,
}

impl TriedDirect {
    /// The request that the disk failed, if one did.
    pub fn failed(&self) -> Option<FailedRequest> {
        match self.answer {
            DirectAnswer::DiskError(errno) => Some(FailedRequest {
                op: self.op,
                errno: errno.raw_os_error(),
            }),
            DirectAnswer::Works | DirectAnswer::Refused(_) => None,
        }
    }

    /// The error by which direct I/O was refused, if it was.
    pub(crate) fn refused(&self) -> Option<Errno> {
        match self.answer {
            DirectAnswer::Refused(errno) => Some(errno),
            DirectAnswer::Works | DirectAnswer::DiskError(_) => None,
        }
    }
}

/// The answer to a direct request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DirectAnswer {
    Works,
    /// Direct I/O of this size is refused.
    Refused(Errno),
    /// The disk failed the request (EIO …), so nothing is known of direct I/O.
    DiskError(Errno),
}

impl DirectTrial {
    /// Tries one request, or two where nothing states the alignment: then that of the smallest
    /// sector is tried first. A slow disk takes seconds for each. After an error of the disk there
    /// is no second request: it would only fail once more.
    pub fn run(&self, fd: &OwnedFd) -> Result<TriedDirect, OpenError> {
        if self.is_assumed {
            let answer = self.try_request(fd, ALIGNMENT_MIN)?;
            match answer {
                DirectAnswer::Works => return Ok(self.outcome(ALIGNMENT_MIN, answer)),
                DirectAnswer::DiskError(_) => {
                    return Ok(self.outcome(self.alignment_bytes, answer));
                }
                DirectAnswer::Refused(_) => {}
            }
        }
        let answer = self.try_request(fd, self.alignment_bytes)?;
        Ok(self.outcome(self.alignment_bytes, answer))
    }

    fn outcome(&self, alignment_bytes: u32, answer: DirectAnswer) -> TriedDirect {
        TriedDirect {
            alignment_bytes,
            answer,
            op: if self.is_empty {
                OpKind::Write
            } else {
                OpKind::Read
            },
        }
    }

    /// Tries one direct request at offset 0: a read, or in an empty scratch file a write, after
    /// which the file is empty again.
    fn try_request(&self, fd: &OwnedFd, bytes: u32) -> Result<DirectAnswer, OpenError> {
        let mut block = random_block(bytes as usize);
        let result = if self.is_empty {
            // Random bytes, so that no layer below can shorten them.
            let result = pwrite(fd, block.bytes(), 0);
            ftruncate(fd, 0).map_err(self.failed("empty the scratch file"))?;
            result
        } else {
            pread(fd, block.bytes(), 0)
        };
        match result {
            Ok(_) => Ok(DirectAnswer::Works),
            Err(errno @ (Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS)) => {
                Ok(DirectAnswer::Refused(errno))
            }
            Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::ROFS)) => {
                let failed = self.failed("write the first block of the scratch file");
                Err(failed(errno))
            }
            Err(errno) => Ok(DirectAnswer::DiskError(errno)),
        }
    }

    fn failed(&self, doing: &'static str) -> impl Fn(Errno) -> OpenError {
        move |errno| OpenError::from_errno(&self.path, doing, errno)
    }
}

/// Random bytes, at an address that suits direct I/O.
fn random_block(length: usize) -> AlignedBlock {
    let mut block = AlignedBlock::zeroed(length);
    for word in block.bytes().chunks_mut(8) {
        let random = scratch::random_u64().to_ne_bytes();
        word.copy_from_slice(&random[..word.len()]);
    }
    block
}
