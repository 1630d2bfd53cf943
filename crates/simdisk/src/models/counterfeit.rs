//! A device that claims more than it holds: where the bytes beyond its real size go.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Blocks in which caches and thin devices keep their content.
const BLOCK_BYTES: u64 = 4096;

/// The behaviour of a counterfeit beyond its real size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// Bytes land lower, by multiples of the real size.
    Wraps,
    /// Writes are lost, and reads return zeros.
    Drops,
    /// Writes fail, and reads return zeros.
    Fails,
    /// Everything is stored, and reads return one wrong bit in the last byte of each block of 4096
    /// bytes that was written.
    Flips,
    /// Writes are lost, except for the last so many bytes.
    Caches {
        /// Bytes of the cache.
        bytes: u64,
    },
    /// Any address is stored until the real size was written, whatever the addresses. Later writes
    /// to others are lost.
    Thin,
}

/// A device that claims more than it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counterfeit {
    /// Bytes that it really holds.
    pub real_bytes: u64,
    /// The behaviour beyond them.
    pub beyond: Beyond,
}

/// A part of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Place of its bytes in the buffer of the request.
    pub buffer: Range<usize>,
    /// Place of its bytes on the medium; `None` where they are lost.
    pub offset_bytes: Option<u64>,
}

impl Counterfeit {
    /// The parts of a request, in order, each with its place on the medium.
    pub fn placed_parts(self, offset_bytes: u64, length: usize) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut done = 0;
        while done < length {
            let address = offset_bytes + done as u64;
            let left = (length - done) as u64;
            let (offset_bytes, part_bytes) = match self.beyond {
                Beyond::Drops | Beyond::Fails | Beyond::Caches { .. } => {
                    if address >= self.real_bytes {
                        (None, left)
                    } else {
                        (Some(address), left.min(self.real_bytes - address))
                    }
                }
                Beyond::Wraps => {
                    let place = address % self.real_bytes;
                    (Some(place), left.min(self.real_bytes - place))
                }
                Beyond::Flips | Beyond::Thin => (Some(address), left),
            };
            parts.push(Part {
                buffer: done..done + part_bytes as usize,
                offset_bytes,
            });
            done += part_bytes as usize;
        }
        parts
    }
}

/// A medium that stores what it is given.
pub trait Store {
    /// Reads from a place.
    fn read_at(&self, bytes: &mut [u8], offset_bytes: u64) -> Result<(), i32>;
    /// Writes to a place.
    fn write_at(&self, bytes: &[u8], offset_bytes: u64) -> Result<(), i32>;
    /// Drops the content of a range.
    fn trim(&self, offset_bytes: u64, length_bytes: u64) -> Result<(), i32>;
}

/// A counterfeit with what it remembers of its writes.
#[derive(Debug)]
pub struct FakeDisk {
    model: Counterfeit,
    memory: Mutex<Memory>,
}

/// What a fake disk remembers of its writes, to lose or change them. Blocks are named by the offset
/// of their first byte.
#[derive(Debug, Default)]
struct Memory {
    /// Blocks that a thin device has stored, or that were written beyond the real size of one that
    /// flips bits.
    stored: BTreeSet<u64>,
    /// Blocks of a cache, by their offset.
    cached: BTreeMap<u64, Vec<u8>>,
    /// The blocks of the cache in the order in which they came into it, the oldest first.
    by_age: VecDeque<u64>,
}

impl FakeDisk {
    /// One that was never written to.
    pub fn new(model: Counterfeit) -> Self {
        Self {
            model,
            memory: Mutex::default(),
        }
    }

    /// Reads as the counterfeit does: other bytes than were written, beyond its real size.
    pub fn read(&self, store: &dyn Store, offset: u64, buffer: &mut [u8]) -> Result<(), i32> {
        for part in self.model.placed_parts(offset, buffer.len()) {
            let bytes = &mut buffer[part.buffer];
            match part.offset_bytes {
                Some(place) => store.read_at(bytes, place)?,
                None => bytes.fill(0),
            }
        }
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        for part in blocks(offset, buffer.len()) {
            let bytes = &mut buffer[part.buffer];
            match self.model.beyond {
                Beyond::Thin if !memory.stored.contains(&part.block) => bytes.fill(0),
                Beyond::Flips if memory.stored.contains(&part.block) => {
                    if part.within.end == BLOCK_BYTES as usize
                        && let Some(last) = bytes.last_mut()
                    {
                        *last ^= 1;
                    }
                }
                Beyond::Caches { .. } => {
                    if let Some(kept) = memory.cached.get(&part.block) {
                        bytes.copy_from_slice(&kept[part.within]);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Stores what a write leaves.
    pub fn write(&self, store: &dyn Store, offset: u64, data: &[u8]) -> Result<(), i32> {
        let end = offset + data.len() as u64;
        if end > self.model.real_bytes && self.model.beyond == Beyond::Fails {
            return Err(libc::EIO);
        }
        if self.model.beyond == Beyond::Thin {
            return self.write_thin(store, offset, data);
        }
        for part in self.model.placed_parts(offset, data.len()) {
            if let Some(place) = part.offset_bytes {
                store.write_at(&data[part.buffer], place)?;
            }
        }
        match self.model.beyond {
            Beyond::Caches { bytes } => self.cache(bytes, offset, data),
            Beyond::Flips => {
                let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
                for part in blocks(offset, data.len()) {
                    if part.block >= self.model.real_bytes {
                        memory.stored.insert(part.block);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Drops the content of a range where its bytes lie. A thin device does not get the room back.
    pub fn trim(&self, store: &dyn Store, offset: u64, length: usize) -> Result<(), i32> {
        for part in self.model.placed_parts(offset, length) {
            if let Some(place) = part.offset_bytes {
                store.trim(place, part.buffer.len() as u64)?;
            }
        }
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        for part in blocks(offset, length) {
            if let Some(kept) = memory.cached.get_mut(&part.block) {
                kept[part.within.clone()].fill(0);
            }
            if self.model.beyond == Beyond::Flips && part.within.len() == BLOCK_BYTES as usize {
                memory.stored.remove(&part.block);
            }
        }
        Ok(())
    }

    fn write_thin(&self, store: &dyn Store, offset: u64, data: &[u8]) -> Result<(), i32> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        for part in blocks(offset, data.len()) {
            let is_full = (memory.stored.len() as u64 + 1) * BLOCK_BYTES > self.model.real_bytes;
            if memory.stored.contains(&part.block) || !is_full {
                memory.stored.insert(part.block);
                store.write_at(&data[part.buffer], part.block + part.within.start as u64)?;
            }
        }
        Ok(())
    }

    fn cache(&self, cache_bytes: u64, offset: u64, data: &[u8]) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        for part in blocks(offset, data.len()) {
            if part.block < self.model.real_bytes {
                continue;
            }
            if !memory.cached.contains_key(&part.block) {
                memory.by_age.push_back(part.block);
            }
            let kept = memory.cached.entry(part.block);
            let kept = kept.or_insert_with(|| vec![0; BLOCK_BYTES as usize]);
            kept[part.within].copy_from_slice(&data[part.buffer]);
            while memory.by_age.len() as u64 * BLOCK_BYTES > cache_bytes {
                if let Some(oldest) = memory.by_age.pop_front() {
                    memory.cached.remove(&oldest);
                }
            }
        }
    }
}

/// The part of a request in one block.
struct BlockPart {
    /// The offset of the block.
    block: u64,
    /// Place of the bytes within the block.
    within: Range<usize>,
    /// Place of the bytes in the buffer of the request.
    buffer: Range<usize>,
}

/// The parts of a request in the blocks that it touches, in order.
fn blocks(offset: u64, length: usize) -> impl Iterator<Item = BlockPart> {
    let request_end = offset + length as u64;
    let first = offset / BLOCK_BYTES;
    (first..request_end.div_ceil(BLOCK_BYTES)).map(move |number| {
        let block = number * BLOCK_BYTES;
        let (from, to) = (block.max(offset), (block + BLOCK_BYTES).min(request_end));
        BlockPart {
            block,
            within: (from - block) as usize..(to - block) as usize,
            buffer: (from - offset) as usize..(to - offset) as usize,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(beyond: Beyond, offset_bytes: u64, length: usize) -> Vec<(usize, Option<u64>)> {
        let counterfeit = Counterfeit {
            real_bytes: 100,
            beyond,
        };
        counterfeit
            .placed_parts(offset_bytes, length)
            .into_iter()
            .map(|part| (part.buffer.len(), part.offset_bytes))
            .collect()
    }

    #[test]
    fn counterfeit_splits_request_at_its_real_size() {
        assert_eq!(parts(Beyond::Drops, 10, 20), [(20, Some(10))]);
        assert_eq!(parts(Beyond::Drops, 90, 20), [(10, Some(90)), (10, None)]);
        assert_eq!(parts(Beyond::Drops, 150, 20), [(20, None)]);
        assert_eq!(
            parts(Beyond::Wraps, 90, 20),
            [(10, Some(90)), (10, Some(0))]
        );
        assert_eq!(parts(Beyond::Wraps, 350, 20), [(20, Some(50))]);
    }

    #[derive(Default)]
    struct Bytes(Mutex<Vec<u8>>);

    impl Store for Bytes {
        fn read_at(&self, bytes: &mut [u8], offset_bytes: u64) -> Result<(), i32> {
            let from = offset_bytes as usize;
            bytes.copy_from_slice(&self.0.lock().unwrap()[from..from + bytes.len()]);
            Ok(())
        }

        fn write_at(&self, bytes: &[u8], offset_bytes: u64) -> Result<(), i32> {
            let from = offset_bytes as usize;
            self.0.lock().unwrap()[from..from + bytes.len()].copy_from_slice(bytes);
            Ok(())
        }

        fn trim(&self, offset_bytes: u64, length_bytes: u64) -> Result<(), i32> {
            let (from, to) = (offset_bytes, offset_bytes + length_bytes);
            self.0.lock().unwrap()[from as usize..to as usize].fill(0);
            Ok(())
        }
    }

    /// Writes sixteen blocks, each full of its number, the last one first; then the last byte of
    /// each as it is read.
    fn read_back(beyond: Beyond) -> Vec<Result<u8, i32>> {
        let fake = FakeDisk::new(Counterfeit {
            real_bytes: 4 * BLOCK_BYTES,
            beyond,
        });
        let store = Bytes(Mutex::new(vec![0; 16 * BLOCK_BYTES as usize]));
        for number in (0..16).rev() {
            let data = vec![2 * number as u8 + 2; BLOCK_BYTES as usize];
            let _ = fake.write(&store, number * BLOCK_BYTES, &data);
        }
        (0..16)
            .map(|number| {
                let mut buffer = vec![0; BLOCK_BYTES as usize];
                fake.read(&store, number * BLOCK_BYTES, &mut buffer)
                    .map(|()| *buffer.last().unwrap())
            })
            .collect()
    }

    /// A fake of four real blocks among sixteen, and its medium.
    fn fake(beyond: Beyond) -> (FakeDisk, Bytes) {
        let fake = FakeDisk::new(Counterfeit {
            real_bytes: 4 * BLOCK_BYTES,
            beyond,
        });
        (fake, Bytes(Mutex::new(vec![0; 16 * BLOCK_BYTES as usize])))
    }

    fn read(disk: &(FakeDisk, Bytes), offset: u64, length: usize) -> Vec<u8> {
        let mut buffer = vec![0; length];
        disk.0.read(&disk.1, offset, &mut buffer).unwrap();
        buffer
    }

    #[test]
    fn parts_of_blocks_are_read_where_they_were_written() {
        let caches = Beyond::Caches {
            bytes: 8 * BLOCK_BYTES,
        };
        for beyond in [Beyond::Thin, caches] {
            let disk = fake(beyond);
            // Two parts of one block, and a write across the bound of another.
            let block = 8 * BLOCK_BYTES;
            disk.0.write(&disk.1, block + 512, &[66; 512]).unwrap();
            disk.0.write(&disk.1, block + 1536, &[67; 512]).unwrap();
            let bound = block + 2 * BLOCK_BYTES;
            disk.0.write(&disk.1, bound - 512, &[68; 1024]).unwrap();
            let parts = [vec![0; 512], vec![66; 512], vec![0; 512], vec![67; 512]].concat();
            assert_eq!(read(&disk, block, 2048), parts, "{beyond:?}");
            let across = [vec![0; 512], vec![68; 1024], vec![0; 512]].concat();
            assert_eq!(read(&disk, bound - 1024, 2048), across, "{beyond:?}");
        }
    }

    #[test]
    fn flipped_bit_does_not_depend_on_the_request() {
        let disk = fake(Beyond::Flips);
        let block = 8 * BLOCK_BYTES;
        disk.0.write(&disk.1, block, &[0; 4096]).unwrap();
        assert_eq!(read(&disk, block, 512), [0; 512]);
        assert_eq!(read(&disk, block + 3584, 512)[511], 1, "a block of zeros");
        assert_eq!(read(&disk, block + 4096, 4096), [0; 4096], "never written");
    }

    #[test]
    fn trims_reach_what_the_fake_keeps() {
        let disk = fake(Beyond::Wraps);
        disk.0.write(&disk.1, 0, &[9; 4096]).unwrap();
        disk.0.trim(&disk.1, 4 * BLOCK_BYTES, 4096).unwrap();
        assert_eq!(read(&disk, 0, 4096), [0; 4096]);
        for beyond in [Beyond::Flips, Beyond::Caches { bytes: BLOCK_BYTES }] {
            let disk = fake(beyond);
            disk.0.write(&disk.1, 8 * BLOCK_BYTES, &[9; 4096]).unwrap();
            disk.0.trim(&disk.1, 8 * BLOCK_BYTES, 4096).unwrap();
            assert_eq!(read(&disk, 8 * BLOCK_BYTES, 4096), [0; 4096], "{beyond:?}");
        }
    }

    #[test]
    fn each_fake_loses_what_lies_beyond_its_real_size_in_its_own_way() {
        let failing = read_back(Beyond::Fails);
        assert_eq!((failing[3], failing[4]), (Ok(8), Ok(0)));
        let flipping = read_back(Beyond::Flips);
        assert_eq!((flipping[3], flipping[4]), (Ok(8), Ok(11)));
        let caching = read_back(Beyond::Caches {
            bytes: 2 * BLOCK_BYTES,
        });
        assert_eq!(caching[3..7], [Ok(8), Ok(10), Ok(12), Ok(0)]);
        let thin = read_back(Beyond::Thin);
        assert_eq!((thin[0], thin[11], thin[12]), (Ok(0), Ok(0), Ok(26)));
    }
}
