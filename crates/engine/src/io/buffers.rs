//! Provides the memory for I/O: one aligned block per slot, filled with incompressible data.
#![allow(unsafe_code)]

use crate::random::{Random, splitmix64};
use diskproof_model::own_data::mark_sectors;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::io;
use std::ptr::NonNull;

/// Alignment of every slot: a page, which satisfies direct I/O on every device and filesystem.
pub(crate) const ALIGNMENT_BYTES: usize = 4096;

/// Distance between the stamps that make each written block unique: a sector, the smallest unit at
/// which arrays look for duplicates.
const STAMP_BYTES: usize = 512;
/// Filesystems compress neighbouring blocks in units of this size (ZFS' default record, btrfs'
/// largest extent). A queue with less than two units of buffers would fill a unit with the same
/// bytes repeatedly: 8 KiB blocks, written in order from one buffer, shrink to a fourteenth.
const COMPRESSED_BYTES: usize = 128 << 10;

/// A huge page of x86-64, and of arm64 with 4 KiB pages. A device takes only a limited number of
/// physically contiguous segments per request, so that the kernel may split 1 MiB in scattered
/// pages into two requests. A virtio disk that reads 3.4 GB/s with huge pages read 1.7 to 2.9 GB/s
/// with ordinary ones, with fio and with this program.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Blocks of at least this size gain by huge pages: smaller ones have at most 15 segments, fewer
/// than most devices take in a request. Chosen, not measured.
const GAINING_BYTES_MIN: usize = 64 << 10;

/// `slots` blocks of equal size, page-aligned, in one mapping.
#[derive(Debug)]
pub struct Buffers {
    base: NonNull<u8>,
    slot_bytes: usize,
    slots: usize,
    is_leaked: bool,
}

impl Buffers {
    /// Maps the memory. Every page is touched so that no page fault falls into a measurement.
    pub fn new(slots: usize, block_bytes: usize) -> io::Result<Self> {
        Self::map_with(slots, block_bytes, |length| {
            if length < HUGE_PAGE_BYTES {
                map(length, MapFlags::POPULATE)
            } else {
                map_in_huge_pages(length)
            }
        })
    }

    /// As [`Buffers::new`], for a disk that moves no data: no page is touched before its use, and
    /// only the first byte of each slot is not zero.
    #[cfg(any(test, feature = "simulate"))]
    pub(crate) fn for_fake_disk(slots: usize, block_bytes: usize) -> io::Result<Self> {
        let mut buffers =
            Self::map_with(slots, block_bytes, |length| map(length, MapFlags::empty()))?;
        for slot in 0..buffers.slots {
            buffers.bytes_mut(slot, 1)[0] = 1;
        }
        Ok(buffers)
    }

    /// As [`Buffers::new`], in ordinary pages whatever their size.
    pub(crate) fn in_ordinary_pages(slots: usize, block_bytes: usize) -> io::Result<Self> {
        Self::map_with(slots, block_bytes, |length| map(length, MapFlags::POPULATE))
    }

    fn map_with(
        slots: usize,
        block_bytes: usize,
        map_memory: impl Fn(usize) -> io::Result<NonNull<u8>>,
    ) -> io::Result<Self> {
        let slot_bytes = block_bytes.max(1).next_multiple_of(ALIGNMENT_BYTES);
        let length = slots
            .max(1)
            .checked_mul(slot_bytes)
            .ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            base: map_memory(length)?,
            slot_bytes,
            slots: slots.max(1),
            is_leaked: false,
        })
    }

    /// True where the blocks are large enough to gain by huge pages and the kernel backs them with
    /// some.
    pub(crate) fn gains_by_huge_pages(&self) -> bool {
        self.slot_bytes >= GAINING_BYTES_MIN
            && self.slots * self.slot_bytes >= HUGE_PAGE_BYTES
            && huge_bytes(self.base.as_ptr() as usize) >= HUGE_PAGE_BYTES as u64
    }

    /// Size of a slot in bytes: the block, rounded up to whole pages.
    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Fills every slot with random bytes, which neither filesystem nor drive can compress, and
    /// marks every sector as data of diskproof. The mark survives [`Buffers::stamp`].
    pub fn fill_random(&mut self, random: &mut Random) {
        let bytes = self.slots * self.slot_bytes;
        // SAFETY: the mapping is slots × slot_bytes long, page-aligned, and `self` is borrowed
        // mutably; no I/O is in flight yet.
        let words =
            unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().cast::<u64>(), bytes / 8) };
        words.iter_mut().for_each(|word| *word = random.bits());
        // SAFETY: the same memory, whose words are not used any more.
        mark_sectors(unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), bytes) });
    }

    /// Start of a slot.
    #[inline(always)]
    pub fn slot(&self, slot: usize) -> *mut u8 {
        debug_assert!(slot < self.slots);
        // SAFETY: `slot` is below `slots` by the free list's construction, so the address stays
        // inside the mapping.
        unsafe { self.base.as_ptr().add(slot * self.slot_bytes) }
    }

    /// Makes the first `len` bytes of a slot differ from everything written before, so that neither
    /// deduplication nor compression finds anything twice.
    #[inline(always)]
    pub fn stamp(&mut self, slot: usize, len: usize, unique: u64) {
        let base = self.slot(slot);
        if self.slots * self.slot_bytes < 2 * COMPRESSED_BYTES {
            // Changes every word: 0.1 µs for 4 KiB, which larger queues can save.
            let key = splitmix64(&mut { unique });
            // SAFETY: inside the slot, page-aligned; the slot is not in flight when it is prepared,
            // and `self` is borrowed mutably.
            let words = unsafe { std::slice::from_raw_parts_mut(base.cast::<u64>(), len / 8) };
            words.iter_mut().for_each(|word| *word ^= key);
            return;
        }
        for offset in (0..len).step_by(STAMP_BYTES) {
            let stamp = unique ^ (offset as u64) << 32;
            // SAFETY: `offset` is below `len` ≤ slot_bytes, which is a multiple of 4096, and
            // aligned to 512; the slot is not in flight when it is prepared.
            unsafe { base.add(offset).cast::<u64>().write(stamp) };
        }
    }

    /// True if the first `len` bytes of a slot, in whole words and at least one, are zero. Stops at
    /// the first word that is not.
    pub fn is_zero(&self, slot: usize, len: usize) -> bool {
        // SAFETY: inside the mapping; the slot is free, so that no I/O writes to it meanwhile.
        let words = unsafe {
            std::slice::from_raw_parts(self.slot(slot).cast::<u64>(), len.min(self.slot_bytes) / 8)
        };
        // Equal to itself, one word on: the C library compares fast in every build.
        match words {
            [0, rest @ ..] => rest == &words[..rest.len()],
            _ => false,
        }
    }

    /// The first `len` bytes of a slot that is not in flight.
    pub fn bytes(&self, slot: usize, len: usize) -> &[u8] {
        // SAFETY: inside the mapping; the caller only looks at slots that are free.
        unsafe { std::slice::from_raw_parts(self.slot(slot), len.min(self.slot_bytes)) }
    }

    /// The first `len` bytes of a slot that is not in flight, to be written.
    pub fn bytes_mut(&mut self, slot: usize, len: usize) -> &mut [u8] {
        // SAFETY: inside the mapping; the slot is free, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.slot(slot), len.min(self.slot_bytes)) }
    }

    /// Leaves the memory mapped for good: the kernel may still write into it.
    pub fn leak(&mut self) {
        self.is_leaked = true;
    }

    /// The slots as the kernel takes them for registration.
    pub fn iovecs(&self) -> Vec<libc::iovec> {
        (0..self.slots)
            .map(|slot| libc::iovec {
                iov_base: self.slot(slot).cast(),
                iov_len: self.slot_bytes,
            })
            .collect()
    }
}

/// Bytes in huge pages of the mapping that holds an address, as the kernel counts them
/// (proc_pid_smaps(5)); 0 where it does not report them.
fn huge_bytes(address: usize) -> u64 {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let mut is_inside = false;
    for line in maps.lines() {
        if let Some((from, to)) = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'))
        {
            is_inside = match (hex_number(from), hex_number(to)) {
                (Some(start), Some(end)) => (start..end).contains(&address),
                _ => false,
            };
        } else if let Some(value) = line.strip_prefix("AnonHugePages:").filter(|_| is_inside) {
            let kib = value.trim().trim_end_matches(" kB").parse::<u64>();
            return kib.unwrap_or(0) << 10;
        }
    }
    0
}

fn hex_number(digits: &str) -> Option<usize> {
    usize::from_str_radix(digits, 16).ok()
}

/// Maps memory of zeros for this process alone.
fn map(length: usize, further_flags: MapFlags) -> io::Result<NonNull<u8>> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | further_flags;
    // SAFETY: a new anonymous mapping; no existing memory is affected.
    let base = unsafe { mmap_anonymous(std::ptr::null_mut(), length, protection, flags)? };
    NonNull::new(base.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

/// Maps huge pages where the kernel has them (transparent_hugepage not `never`), ordinary ones for
/// the rest.
fn map_in_huge_pages(length: usize) -> io::Result<NonNull<u8>> {
    let mapped = map(
        length
            .checked_add(HUGE_PAGE_BYTES)
            .ok_or(io::ErrorKind::OutOfMemory)?,
        MapFlags::empty(),
    )?;
    // Linux aligns such mappings by itself since 6.7.
    let before = mapped.as_ptr().align_offset(HUGE_PAGE_BYTES);
    let length = length.next_multiple_of(ALIGNMENT_BYTES);
    // SAFETY: `before` is less than a huge page, so that `base` and what follows `length` lie in
    // the mapping, which no other code knows.
    let base = unsafe {
        let base = mapped.add(before);
        if before > 0 {
            libc::munmap(mapped.as_ptr().cast(), before);
        }
        libc::munmap(base.as_ptr().add(length).cast(), HUGE_PAGE_BYTES - before);
        libc::madvise(base.as_ptr().cast(), length, libc::MADV_HUGEPAGE);
        base
    };
    for offset in (0..length).step_by(ALIGNMENT_BYTES) {
        // SAFETY: the offset is below the mapping's length.
        unsafe { base.add(offset).write_volatile(0) };
    }
    Ok(base)
}

impl Drop for Buffers {
    fn drop(&mut self) {
        if self.is_leaked {
            return;
        }
        // SAFETY: the mapping was made in `new` with this length and is no longer used:
        // backends end their I/O before they drop, or leak it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.slots * self.slot_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::own_data::is_marked;

    #[test]
    fn buffers_are_aligned_and_separate() {
        let buffers = Buffers::new(3, 5000).unwrap();
        assert_eq!(buffers.slot_bytes, 8192);
        let [first, third] = [0, 2].map(|slot| buffers.slot(slot) as usize);
        assert_eq!(third - first, 2 * 8192);
        assert_eq!(buffers.slot(1) as usize % ALIGNMENT_BYTES, 0);
        assert!(buffers.is_zero(2, 5000));
    }

    #[test]
    fn large_buffers_use_huge_pages() {
        const MIB: usize = 1 << 20;
        let mut buffers = Buffers::new(5, MIB).unwrap();
        let base = buffers.slot(0) as usize;
        assert_eq!((base % HUGE_PAGE_BYTES, buffers.is_zero(4, MIB)), (0, true));
        buffers.bytes_mut(4, MIB)[MIB - 1] = 1;
        // The kernel may show it merged with a neighbour of the same kind.
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut lines = maps.lines();
        let holds = |line: &str| {
            let (from, to) = line.split_once(' ')?.0.split_once('-')?;
            let [from, to] = [from, to].map(|hex| usize::from_str_radix(hex, 16));
            Some((from.ok()?..to.ok()?).contains(&base))
        };
        assert!(lines.any(|line| holds(line) == Some(true)));
        let flags = lines.find(|line| line.starts_with("VmFlags:")).unwrap();
        assert!(!Buffers::new(512, 4096).unwrap().gains_by_huge_pages());
        let has_huge_pages = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
        assert_eq!(flags.contains(" hg"), has_huge_pages, "{flags}");
    }

    #[test]
    fn ordinary_pages_are_not_huge() {
        let buffers = Buffers::in_ordinary_pages(5, 1 << 20).unwrap();
        let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
        let is_always = setting.is_ok_and(|text| text.contains("[always]"));
        assert!(is_always || !buffers.gains_by_huge_pages());
        assert!(buffers.is_zero(4, 1 << 20));
    }

    #[test]
    fn stamps_leave_no_repeated_unit_in_a_buffer() {
        for (len, unit) in [
            (4104, 8),
            (8192, 8),
            (COMPRESSED_BYTES, 8),
            (2 * COMPRESSED_BYTES, STAMP_BYTES),
        ] {
            let mut buffers = Buffers::new(1, len).unwrap();
            buffers.fill_random(&mut Random::new(1, 1));
            let mut seen = std::collections::BTreeSet::new();
            for unique in 0..4 {
                buffers.stamp(0, len, unique);
                let mut parts = buffers.bytes(0, len).chunks(unit);
                assert!(
                    parts.all(|part| seen.insert(part.to_vec())),
                    "{len}: repeated data"
                );
            }
        }
    }

    #[test]
    fn stamped_sectors_keep_the_mark_of_own_data() {
        for (slots, len) in [(1, 512), (1, 8192), (2, 4096 + 512), (4, COMPRESSED_BYTES)] {
            let mut buffers = Buffers::new(slots, len).unwrap();
            buffers.fill_random(&mut Random::new(1, 1));
            for unique in 0..3 {
                buffers.stamp(slots - 1, len, unique);
                let mut sectors = buffers.bytes(slots - 1, len).chunks(STAMP_BYTES);
                assert!(
                    sectors.all(is_marked),
                    "{slots} of {len} bytes, stamp {unique}"
                );
            }
        }
    }

    #[test]
    fn buffers_are_incompressible_and_stamps_differ() {
        let mut buffers = Buffers::new(2, 8192).unwrap();
        buffers.fill_random(&mut Random::new(1, 1));
        let mut counts = [0u32; 256];
        for byte in buffers.bytes(0, 8192) {
            counts[*byte as usize] += 1;
        }
        assert!(counts.iter().all(|n| (5..80).contains(n)), "{counts:?}");
        let before = buffers.bytes(0, 8192).to_vec();
        buffers.stamp(0, 8192, 77);
        let after = buffers.bytes(0, 8192);
        assert_ne!(before[..8], after[..8]);
        assert_ne!(before[4096..4104], after[4096..4104]);
        assert!(!buffers.is_zero(0, 8192));
    }
}
