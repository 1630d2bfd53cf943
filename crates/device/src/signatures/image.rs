//! Reads places of a disk or file for the search for signatures: each place once, in bounded time.
//! Remembers which of them could not be read.

use rustix::io::Errno;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Unit of reading: every mark but a few lies within the first 64 KiB, and direct I/O takes it on
/// every device.
const CHUNK_BYTES: u64 = 64 << 10;

/// A scan of a healthy disk takes seconds. After a minute every further read fails, so that the
/// content counts as unknown, and nothing waits for a disk that hardly answers. Chosen, not
/// measured.
const READING_MAX: Duration = Duration::from_secs(60);

/// Chunks kept: 32 MiB, more than the ends of a disk and of some partitions need.
const CHUNKS_MAX: usize = 512;

/// The chunks that were read, by their number from the start; `None` for one that could not be.
type Chunks = RefCell<HashMap<u64, Option<Rc<Vec<u8>>>>>;

/// Reads up to a whole buffer at an offset; fewer bytes only at the end.
pub(crate) type ReadAt<'a> = dyn Fn(u64, usize) -> Result<Vec<u8>, Errno> + 'a;

/// A place that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// Bytes from the start of the disk.
    pub(crate) offset: u64,
    /// The kernel's error; `None` when it gave fewer bytes than there should be.
    pub(crate) errno: Option<Errno>,
}

/// A disk or file under inspection.
pub(crate) struct Image<'a> {
    read_at: &'a ReadAt<'a>,
    size_bytes: u64,
    chunks: Chunks,
    unreadable: RefCell<Vec<Unreadable>>,
    began: Instant,
    /// [`READING_MAX`], except in tests.
    reading_max: Duration,
}

impl<'a> Image<'a> {
    pub(crate) fn new(read_at: &'a ReadAt<'a>, size_bytes: u64) -> Self {
        Self {
            read_at,
            size_bytes,
            chunks: RefCell::default(),
            unreadable: RefCell::default(),
            began: Instant::now(),
            reading_max: READING_MAX,
        }
    }

    /// The view of all of it.
    pub(crate) fn whole(&self) -> View<'_, 'a> {
        View {
            image: self,
            start: 0,
            length: self.size_bytes,
        }
    }

    /// Places that could not be read so far.
    pub(crate) fn unreadable(&self) -> Vec<Unreadable> {
        self.unreadable.borrow().clone()
    }

    fn chunk(&self, number: u64) -> Option<Rc<Vec<u8>>> {
        if let Some(known) = self.chunks.borrow().get(&number) {
            return known.clone();
        }
        let offset = number * CHUNK_BYTES;
        let wanted = CHUNK_BYTES.min(self.size_bytes.saturating_sub(offset)) as usize;
        let chunk = self.read(offset, wanted).map(Rc::new);
        let mut chunks = self.chunks.borrow_mut();
        if chunks.len() >= CHUNKS_MAX {
            chunks.clear();
        }
        chunks.insert(number, chunk.clone());
        chunk
    }

    fn read(&self, offset: u64, length: usize) -> Option<Vec<u8>> {
        let read = if self.began.elapsed() > self.reading_max {
            Err(Errno::TIMEDOUT)
        } else {
            (self.read_at)(offset, length)
        };
        match read {
            Ok(bytes) if bytes.len() >= length => Some(bytes),
            Ok(_) => self.failed(offset, None),
            Err(errno) => self.failed(offset, Some(errno)),
        }
    }

    /// Remembers a place that could not be read, once. Returns nothing, for the caller to return.
    fn failed(&self, offset: u64, errno: Option<Errno>) -> Option<Vec<u8>> {
        let unreadable = Unreadable { offset, errno };
        let mut places = self.unreadable.borrow_mut();
        if !places.contains(&unreadable) {
            places.push(unreadable);
        }
        None
    }
}

/// A partition, as the kernel or a table describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slice {
    /// Kernel name where the kernel knows it; else the number in its table.
    pub(crate) name: SliceName,
    /// First byte, from the start of the disk.
    pub(crate) start: u64,
    /// Length in bytes.
    pub(crate) length: u64,
}

/// The name of a partition in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SliceName {
    /// The kernel's name, such as `sda1`.
    Kernel(String),
    /// The number in a table that the kernel has not read.
    Number(u32),
}

/// A part of an image: the disk, or a partition.
#[derive(Clone, Copy)]
pub(crate) struct View<'i, 'a> {
    image: &'i Image<'a>,
    start: u64,
    length: u64,
}

impl<'i, 'a> View<'i, 'a> {
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// A part of it, cut at its end; `None` where nothing is left.
    pub(crate) fn part(&self, start: u64, length: u64) -> Option<View<'i, 'a>> {
        let bytes_to_end = self.length.checked_sub(start)?;
        if length == 0 || bytes_to_end == 0 {
            return None;
        }
        Some(View {
            image: self.image,
            start: self.start + start,
            length: length.min(bytes_to_end),
        })
    }

    /// Bytes at an offset within it; `None` where it is too short, or could not be read.
    pub(crate) fn bytes(&self, offset: u64, length: usize) -> Option<Vec<u8>> {
        let end = offset.checked_add(length as u64)?;
        if end > self.length {
            return None;
        }
        let (mut position, end) = (self.start + offset, self.start + end);
        let mut bytes = Vec::with_capacity(length);
        while position < end {
            let chunk = self.image.chunk(position / CHUNK_BYTES)?;
            let from = (position % CHUNK_BYTES) as usize;
            let bytes_of_chunk = chunk.get(from..)?.iter().take((end - position) as usize);
            let before = bytes.len();
            bytes.extend(bytes_of_chunk);
            position += (bytes.len() - before) as u64;
            if bytes.len() == before {
                return None;
            }
        }
        Some(bytes)
    }

    /// As [`Self::bytes`], but in one request and not remembered: for long pieces, whose offset
    /// must suit direct I/O.
    pub(crate) fn piece(&self, offset: u64, length: usize) -> Option<Vec<u8>> {
        let end = offset.checked_add(length as u64)?;
        if end > self.length {
            return None;
        }
        self.image.read(self.start + offset, length)
    }

    /// True if a text stands at an offset within it; false also where it could not be read.
    pub(crate) fn holds(&self, offset: u64, text: &[u8]) -> bool {
        self.bytes(offset, text.len())
            .is_some_and(|bytes| bytes == text)
    }

    /// A block at an offset, as an array.
    pub(crate) fn array<const N: usize>(&self, offset: u64) -> Option<[u8; N]> {
        self.bytes(offset, N)?.try_into().ok()
    }

    pub(crate) fn le16(&self, offset: u64) -> Option<u16> {
        self.array(offset).map(u16::from_le_bytes)
    }

    pub(crate) fn be16(&self, offset: u64) -> Option<u16> {
        self.array(offset).map(u16::from_be_bytes)
    }

    pub(crate) fn le32(&self, offset: u64) -> Option<u32> {
        self.array(offset).map(u32::from_le_bytes)
    }

    pub(crate) fn be32(&self, offset: u64) -> Option<u32> {
        self.array(offset).map(u32::from_be_bytes)
    }

    pub(crate) fn le64(&self, offset: u64) -> Option<u64> {
        self.array(offset).map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_for_too_long_makes_content_unknown() {
        let read_at = |_: u64, length: usize| Ok(vec![0; length]);
        let image = Image {
            reading_max: Duration::ZERO,
            ..Image::new(&read_at, 1 << 20)
        };
        assert!(image.chunk(0).is_none());
        assert_eq!(image.unreadable()[0].errno, Some(Errno::TIMEDOUT));
        assert!(Image::new(&read_at, 1 << 20).chunk(0).is_some());
    }
}
