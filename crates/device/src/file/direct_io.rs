//! The needs of direct I/O: memory at an address that suits every device, and the flags of an open
//! file description that can change (F_SETFL of fcntl(2)).

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use std::os::fd::AsFd;

/// Every device takes memory that is aligned to a page; the engine's buffers have the same.
pub(crate) const MEMORY_ALIGNMENT: usize = 4096;

/// A block at an address that suits direct I/O.
pub(crate) struct AlignedBlock {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl AlignedBlock {
    pub(crate) fn zeroed(length: usize) -> Self {
        let memory = vec![0; length + MEMORY_ALIGNMENT];
        let start = memory.as_ptr().align_offset(MEMORY_ALIGNMENT);
        Self {
            memory,
            start,
            length,
        }
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

/// Takes flags away, and leaves the others.
pub(crate) fn clear_flags(fd: impl AsFd, flags: OFlags) -> Result<(), Errno> {
    fcntl_setfl(&fd, fcntl_getfl(&fd)?.difference(flags))
}

/// True if the file description bypasses the page cache.
pub(crate) fn is_direct(fd: impl AsFd) -> bool {
    fcntl_getfl(fd).is_ok_and(|flags| flags.contains(OFlags::DIRECT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_is_aligned_and_has_its_length() {
        for length in [512, 4096, 65536] {
            let mut block = AlignedBlock::zeroed(length);
            let bytes = block.bytes();
            assert_eq!(bytes.as_ptr() as usize % MEMORY_ALIGNMENT, 0);
            assert_eq!(bytes.len(), length);
        }
    }
}
