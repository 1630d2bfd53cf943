//! The bytes of a simulated disk: a sparse file in memory or on disk, and before it the volatile
//! write cache.

use crate::models::write_cache::{CacheModel, SECTOR_BYTES};
use rustix::fs::{FallocateFlags, FlockOperation};
use rustix::io::Errno;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::RwLock;

const SECTOR: usize = SECTOR_BYTES as usize;
/// The most sectors in the write cache: 512 MiB, more than the cache of a disk has. A full cache is
/// written to the medium, whether a flush requested it or not.
const CACHED_MAX: usize = (512 << 20) / SECTOR;

/// The place where a disk keeps its content.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Medium {
    /// A sparse file in memory, gone with the disk. Unwritten bytes are zero and take no room.
    #[default]
    Memory,
    /// This file, made if missing. One with content must have the disk's size. It is never synced:
    /// it outlives a killed server, not a crash of the machine.
    File(PathBuf),
}

/// The content of one disk.
#[derive(Debug)]
pub(crate) struct Backing {
    file: File,
    size_bytes: u64,
    write_cache: CacheModel,
    volatile: RwLock<Volatile>,
}

/// The write cache: sectors that a power cut would lose.
#[derive(Debug, Default)]
struct Volatile {
    /// The content of each, by its number.
    sectors: HashMap<u64, Box<[u8; SECTOR]>>,
    /// The number of writes so far, which decides together with the sector whether one is stored at
    /// once ([`CacheModel::destages`]).
    writes: u64,
}

impl Medium {
    fn open(&self, size_bytes: u64) -> io::Result<File> {
        match self {
            Self::Memory => {
                let flags = rustix::fs::MemfdFlags::CLOEXEC;
                let file = File::from(rustix::fs::memfd_create("simdisk", flags)?);
                file.set_len(size_bytes)?;
                Ok(file)
            }
            Self::File(path) => open_file(path, size_bytes),
        }
    }
}

/// Opens the file of a disk for this server alone. A file of another size holds something else,
/// and none of it may be cut off.
fn open_file(path: &Path, size_bytes: u64) -> io::Result<File> {
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    let lock = FlockOperation::NonBlockingLockExclusive;
    rustix::fs::flock(&file, lock).map_err(|error| match error {
        Errno::WOULDBLOCK => io::Error::other("another server keeps a disk in it"),
        other => other.into(),
    })?;
    match file.metadata()?.len() {
        0 => file.set_len(size_bytes)?,
        own if own == size_bytes => {}
        other => {
            let why = format!("it has {other} bytes, and the disk {size_bytes}");
            return Err(io::Error::other(why));
        }
    }
    Ok(file)
}

impl Backing {
    /// Opens the medium and sets its size.
    pub(crate) fn open(
        medium: &Medium,
        size_bytes: u64,
        write_cache: CacheModel,
    ) -> io::Result<Self> {
        Ok(Self {
            file: medium.open(size_bytes)?,
            size_bytes,
            write_cache,
            volatile: RwLock::default(),
        })
    }

    /// Bytes that the disk claims to have.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Reads into `buffer`, all of it inside the disk.
    pub(crate) fn read_at(&self, buffer: &mut [u8], offset_bytes: u64) -> io::Result<()> {
        if self.write_cache.is_durable() {
            return self.file.read_exact_at(buffer, offset_bytes);
        }
        // Locked over both reads: a flush in between would move sectors from one to the other.
        let volatile = self.volatile.read().expect("no holder of the lock panics");
        self.file.read_exact_at(buffer, offset_bytes)?;
        for part in sectors(offset_bytes, buffer.len()) {
            if let Some(content) = volatile.sectors.get(&part.sector) {
                let end = part.within + part.buffer.len();
                buffer[part.buffer].copy_from_slice(&content[part.within..end]);
            }
        }
        Ok(())
    }

    /// Writes `data`, all of it inside the disk.
    pub(crate) fn write_at(&self, data: &[u8], offset_bytes: u64) -> io::Result<()> {
        if self.write_cache.is_durable() {
            return self.file.write_all_at(data, offset_bytes);
        }
        let mut volatile = self.volatile.write().expect("no holder of the lock panics");
        volatile.writes += 1;
        let sequence = volatile.writes;
        for SectorPart {
            sector,
            within,
            buffer,
        } in sectors(offset_bytes, data.len())
        {
            if !volatile.sectors.contains_key(&sector) && volatile.sectors.len() >= CACHED_MAX {
                self.destage_all(&mut volatile)?;
            }
            let content = match volatile.sectors.entry(sector) {
                Entry::Occupied(cached) => cached.into_mut(),
                Entry::Vacant(place) => place.insert(self.load_sector(sector)?),
            };
            content[within..within + buffer.len()].copy_from_slice(&data[buffer]);
            if self.write_cache.destages(sector, sequence) {
                self.store_sector(sector, content)?;
                volatile.sectors.remove(&sector);
            }
        }
        Ok(())
    }

    /// Makes everything written durable, unless the disk lies.
    pub(crate) fn flush(&self) -> io::Result<()> {
        if self.write_cache.is_durable() || !self.write_cache.obeys_flush() {
            return Ok(());
        }
        let mut volatile = self.volatile.write().expect("no holder of the lock panics");
        self.destage_all(&mut volatile)
    }

    /// Stores every sector of the cache and empties it. After an error all of them are still in it.
    fn destage_all(&self, volatile: &mut Volatile) -> io::Result<()> {
        for (sector, content) in &volatile.sectors {
            self.store_sector(*sector, content)?;
        }
        volatile.sectors.clear();
        Ok(())
    }

    /// Drops the content of a range, in whole sectors of it.
    pub(crate) fn trim(&self, offset_bytes: u64, length_bytes: u64) -> io::Result<()> {
        let first = offset_bytes.div_ceil(SECTOR_BYTES);
        let end = (offset_bytes + length_bytes) / SECTOR_BYTES;
        if first >= end {
            return Ok(());
        }
        let mut volatile = self.volatile.write().expect("no holder of the lock panics");
        volatile
            .sectors
            .retain(|sector, _| !(first..end).contains(sector));
        rustix::fs::fallocate(
            &self.file,
            FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            first * SECTOR_BYTES,
            (end - first) * SECTOR_BYTES,
        )?;
        Ok(())
    }

    /// Reads a sector from the medium; the bytes beyond the end of the disk are zero.
    fn load_sector(&self, sector: u64) -> io::Result<Box<[u8; SECTOR]>> {
        let mut content = Box::new([0; SECTOR]);
        let length = self.sector_length(sector);
        self.file
            .read_exact_at(&mut content[..length], sector * SECTOR_BYTES)?;
        Ok(content)
    }

    /// Writes a sector to the medium.
    fn store_sector(&self, sector: u64, content: &[u8; SECTOR]) -> io::Result<()> {
        self.file.write_all_at(
            &content[..self.sector_length(sector)],
            sector * SECTOR_BYTES,
        )
    }

    /// Bytes of a sector inside the disk; the last one may be cut.
    fn sector_length(&self, sector: u64) -> usize {
        (self.size_bytes - sector * SECTOR_BYTES).min(SECTOR_BYTES) as usize
    }
}

/// The part of a transfer in one sector.
struct SectorPart {
    /// The number of the sector.
    sector: u64,
    /// First byte of the part within the sector.
    within: usize,
    /// Its bytes in the caller's buffer.
    buffer: std::ops::Range<usize>,
}

/// The sectors under a span, in order.
fn sectors(offset_bytes: u64, length: usize) -> impl Iterator<Item = SectorPart> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == length {
            return None;
        }
        let position = offset_bytes + done as u64;
        let within = (position % SECTOR_BYTES) as usize;
        let part_bytes = (SECTOR - within).min(length - done);
        let part = SectorPart {
            sector: position / SECTOR_BYTES,
            within,
            buffer: done..done + part_bytes,
        };
        done += part_bytes;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the disk says, and what would be left after a power cut.
    fn both(backing: &Backing, offset: u64, length: usize) -> (Vec<u8>, Vec<u8>) {
        let (mut seen, mut durable) = (vec![0; length], vec![0; length]);
        backing.read_at(&mut seen, offset).unwrap();
        backing.file.read_exact_at(&mut durable, offset).unwrap();
        (seen, durable)
    }

    fn backing(write_cache: CacheModel) -> Backing {
        Backing::open(&Medium::Memory, 10_000, write_cache).unwrap()
    }

    #[test]
    fn durable_cache_keeps_every_write() {
        let backing = backing(CacheModel::Durable);
        backing.write_at(b"abc", 511).unwrap();
        assert_eq!(both(&backing, 511, 3), (b"abc".to_vec(), b"abc".to_vec()));
    }

    #[test]
    fn honest_cache_keeps_flushed_writes() {
        let backing = backing(CacheModel::Honest {
            destaged_per_mille: 0,
        });
        backing.write_at(b"abc", 511).unwrap();
        assert_eq!(both(&backing, 511, 3), (b"abc".to_vec(), vec![0; 3]));
        backing.flush().unwrap();
        backing.write_at(b"X", 512).unwrap();
        assert_eq!(both(&backing, 511, 3), (b"aXc".to_vec(), b"abc".to_vec()));
    }

    #[test]
    fn lying_cache_returns_writes_it_never_stores() {
        let backing = backing(CacheModel::Lying {
            destaged_per_mille: 0,
        });
        backing.write_at(&[7; 5000], 3000).unwrap();
        backing.flush().unwrap();
        assert_eq!(both(&backing, 3000, 5000), (vec![7; 5000], vec![0; 5000]));
    }

    #[test]
    fn partial_destage_keeps_whole_sectors() {
        let backing = backing(CacheModel::Honest {
            destaged_per_mille: 500,
        });
        backing.write_at(&[1; 10_000], 0).unwrap();
        let (_, durable) = both(&backing, 0, 10_000);
        let kept: Vec<bool> = durable
            .chunks(SECTOR)
            .map(|s| s.iter().all(|b| *b == 1))
            .collect();
        assert!(kept.contains(&true) && kept.contains(&false));
        assert!(
            durable.chunks(SECTOR).all(|s| s.iter().all(|b| *b == s[0])),
            "sectors are whole"
        );
        backing.write_at(&[2; 10_000], 0).unwrap();
        backing.flush().unwrap();
        assert_eq!(
            both(&backing, 0, 10_000),
            (vec![2; 10_000], vec![2; 10_000])
        );
    }

    #[test]
    fn file_of_another_size_is_refused_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("precious");
        std::fs::write(&path, [7; 4096]).unwrap();
        let medium = Medium::File(path.clone());
        let open = |size_bytes| Backing::open(&medium, size_bytes, CacheModel::Durable);
        for size_bytes in [1024, 8192] {
            let why = open(size_bytes).unwrap_err().to_string();
            assert!(why.contains("4096 bytes"), "{why}");
            assert_eq!(std::fs::read(&path).unwrap(), [7; 4096]);
        }
        let own = open(4096).unwrap();
        let why = open(4096).unwrap_err().to_string();
        assert!(why.contains("another server"), "{why}");
        drop(own);
        open(4096).unwrap();
    }

    /// A medium that takes no write, as on a full filesystem.
    #[test]
    fn failed_flush_keeps_the_cache() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image");
        std::fs::write(&path, [0; 4096]).unwrap();
        let honest = CacheModel::Honest {
            destaged_per_mille: 0,
        };
        let mut backing = Backing::open(&Medium::File(path.clone()), 4096, honest).unwrap();
        backing.write_at(b"abc", 100).unwrap();
        backing.file = File::open(&path).unwrap();
        assert!(backing.flush().is_err());
        assert_eq!(both(&backing, 100, 3), (b"abc".to_vec(), vec![0; 3]));
    }

    #[test]
    fn partial_last_sector_is_written() {
        let backing = backing(CacheModel::Honest {
            destaged_per_mille: 0,
        });
        backing.write_at(&[9; 4], 9_996).unwrap();
        backing.flush().unwrap();
        assert_eq!(
            both(&backing, 9_995, 5),
            (vec![0, 9, 9, 9, 9], vec![0, 9, 9, 9, 9])
        );
    }
}
