//! Drops written blocks from the page cache before they are read back, and counts those that it
//! keeps: a read of them would not come from the disk.

use crate::io::files::TargetFiles;
use crate::io::residency::{ResidentPages, WINDOW_BYTES};
use crate::load::write_journal::WriteJournal;
use rustix::fs::{Advice, fadvise};
use rustix::param::page_size;
use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The kernel may hold a page for a moment, and does not drop it then. Chosen, not measured.
const DROP_TRIES: u32 = 3;
/// The pause before the next try. Chosen, not measured: a reader or a write-back that held a page
/// has let it go by then.
const DROP_PAUSE: Duration = Duration::from_millis(50);

/// The blocks that a workload has written, in the page cache.
pub(super) struct BlocksInCache<'a> {
    pub files: &'a TargetFiles,
    pub journal: &'a WriteJournal,
    pub block_bytes: u64,
    /// Counts the windows that were looked at, as a sign of progress: with terabytes of blocks, all
    /// of them take longer than the silence that means a hang.
    pub windows: &'a AtomicU64,
    /// Ends the look early.
    pub stop: &'a AtomicBool,
}

/// A part of a file, as long as one look at the page cache covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Window {
    /// The number of the file in the target.
    file: usize,
    /// The offset of the part in the file.
    start_bytes: u64,
}

/// Windows with blocks that the page cache still holds, and the number of these blocks.
type CachedBlocks = BTreeMap<Window, u64>;

impl BlocksInCache<'_> {
    /// Drops the blocks from the page cache, and counts those that it holds all the same: its pages
    /// may be locked or mapped, or the filesystem has no other place for them. Ends early, with the
    /// blocks so far, once it is stopped.
    pub(super) fn drop_from_cache(&self) -> io::Result<u64> {
        let mut cached = self.drop_windows(|_| true)?;
        for _ in 1..DROP_TRIES {
            if cached.is_empty() || self.stop.load(Ordering::Relaxed) {
                break;
            }
            std::thread::sleep(DROP_PAUSE);
            cached = self.drop_windows(|window| cached.contains_key(&window))?;
        }
        Ok(cached.values().sum())
    }

    /// Drops each window that has blocks and is wanted, then counts the blocks that stay.
    fn drop_windows(&self, is_wanted: impl Fn(Window) -> bool) -> io::Result<CachedBlocks> {
        let mut cached = CachedBlocks::new();
        let mut current: Option<Window> = None;
        // `None` of a window that is not wanted.
        let mut resident: Option<ResidentPages> = None;
        for block in self.journal.written() {
            let place = self.files.place(block.offset);
            let window = Window {
                file: self.files.index(block.offset),
                start_bytes: place.offset / WINDOW_BYTES * WINDOW_BYTES,
            };
            if current != Some(window) {
                if self.stop.load(Ordering::Relaxed) {
                    break;
                }
                current = Some(window);
                resident = if is_wanted(window) {
                    Some(self.drop_window(place.fd, window)?)
                } else {
                    None
                };
            }
            if let Some(resident) = &resident
                && resident.holds_any(place.offset, self.block_bytes)
            {
                *cached.entry(window).or_default() += 1;
            }
        }
        Ok(cached)
    }

    /// Drops a window from the page cache, with the rest of a block that begins in it, and returns
    /// the pages that stay.
    fn drop_window(&self, file: BorrowedFd<'_>, window: Window) -> io::Result<ResidentPages> {
        let bytes = (WINDOW_BYTES + self.block_bytes).next_multiple_of(page_size() as u64);
        let _ = fadvise(
            file,
            window.start_bytes,
            NonZeroU64::new(bytes),
            Advice::DontNeed,
        );
        let resident = ResidentPages::around(file, window.start_bytes);
        self.windows.fetch_add(1, Ordering::Relaxed);
        resident
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::buffers::Buffers;
    use crate::io::mmap::MmapBackend;
    use crate::io::{Backend, Op, Request, WaitMode};
    use diskproof_device::PartOfFile;
    use rustix::mm::ProtFlags;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::FileExt as _;

    const BLOCK: u64 = 4096;
    const SPAN: u64 = 4 * WINDOW_BYTES;

    /// A sparse file and the journal of blocks that were written there, with the content still in
    /// the page cache.
    fn written(offsets: &[u64]) -> (std::fs::File, WriteJournal) {
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.set_len(SPAN).unwrap();
        let journal = WriteJournal::new(1, 0, SPAN, BLOCK as u32);
        for offset in offsets {
            file.write_all_at(&[7; BLOCK as usize], *offset).unwrap();
            let generation = journal.claim(*offset, BLOCK as u32).unwrap();
            journal.confirm(*offset, BLOCK as u32, generation);
        }
        (file, journal)
    }

    fn target(file: &std::fs::File) -> TargetFiles {
        let first: OwnedFd = file.try_clone().unwrap().into();
        TargetFiles::several(first, Vec::new(), PartOfFile::default())
    }

    fn blocks_in_cache<'a>(
        files: &'a TargetFiles,
        journal: &'a WriteJournal,
        windows: &'a AtomicU64,
        stop: &'a AtomicBool,
    ) -> BlocksInCache<'a> {
        BlocksInCache {
            files,
            journal,
            block_bytes: BLOCK,
            windows,
            stop,
        }
    }

    /// A mapping that has brought the block at this offset into memory.
    fn mapped_block(file: &std::fs::File, offset: u64) -> MmapBackend {
        let fd: OwnedFd = file.try_clone().unwrap().into();
        let buffers = Buffers::new(1, BLOCK as usize).unwrap();
        let mut mapped = MmapBackend::new(
            fd,
            buffers,
            offset + BLOCK,
            ProtFlags::READ | ProtFlags::WRITE,
            rustix::mm::Advice::Random,
        )
        .unwrap();
        let mut request = Some(Request::new(0, Op::Read, offset, BLOCK as u32));
        mapped.enqueue(&mut |_| request.take()).unwrap();
        mapped.wait(WaitMode::Completion).unwrap();
        mapped.reap(&mut |_, result| assert_eq!(result, BLOCK as i32));
        mapped
    }

    #[test]
    fn each_window_with_blocks_is_progress_and_its_blocks_are_dropped() {
        let (file, journal) = written(&[0, 8192, 3 * WINDOW_BYTES]);
        file.sync_all().unwrap();
        let (windows, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let files = target(&file);
        let blocks = blocks_in_cache(&files, &journal, &windows, &stop);
        if blocks.drop_from_cache().unwrap() > 0 {
            println!("SKIPPED: the filesystem of /var/tmp keeps its pages in memory");
            return;
        }
        assert_eq!(windows.load(Ordering::Relaxed), 2);
    }

    /// The kernel does not drop a mapped page.
    #[test]
    fn only_windows_with_cached_blocks_are_tried_again() {
        let (file, journal) = written(&[0, WINDOW_BYTES, 2 * WINDOW_BYTES]);
        file.sync_all().unwrap();
        let mapping = mapped_block(&file, WINDOW_BYTES);
        let (windows, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let files = target(&file);
        let blocks = blocks_in_cache(&files, &journal, &windows, &stop);
        let cached = blocks.drop_from_cache().unwrap();
        drop(mapping);
        if cached == 3 {
            println!("SKIPPED: the filesystem of /var/tmp keeps its pages in memory");
            return;
        }
        assert_eq!(cached, 1);
        let tries_again = u64::from(DROP_TRIES - 1);
        assert_eq!(windows.load(Ordering::Relaxed), 3 + tries_again);
    }

    #[test]
    fn interruption_ends_the_look() {
        let (file, journal) = written(&[0, WINDOW_BYTES]);
        let (windows, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        stop.store(true, Ordering::Relaxed);
        let files = target(&file);
        let blocks = blocks_in_cache(&files, &journal, &windows, &stop);
        assert_eq!(blocks.drop_from_cache().unwrap(), 0);
        assert_eq!(windows.load(Ordering::Relaxed), 0);
    }
}
