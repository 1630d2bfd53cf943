//! A block of memory at an address that suits direct I/O on every device. Does not know what is in
//! it.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_is_aligned_and_has_its_length() {
        for length in [512, 4096, 65536] {
            let mut block = AlignedBlock::zeroed(length);
            let bytes = block.bytes();
            assert_eq!(
                (bytes.as_ptr() as usize % MEMORY_ALIGNMENT, bytes.len()),
                (0, length)
            );
        }
    }
}
