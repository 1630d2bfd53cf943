//! Which SQLite journal mode is safe on the filesystem of a history.

use std::path::Path;

/// How SQLite makes a transaction atomic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JournalMode {
    /// A write-ahead log: readers and a writer do not wait for each other. Its index is shared
    /// memory, so all processes must be on one machine (<https://www.sqlite.org/wal.html>,
    /// "disadvantages").
    Wal,
    /// A rollback journal that each transaction deletes: needs only locks.
    Delete,
}

/// `f_type` of statfs(2) where shared memory and locks are those of one machine; values from
/// linux/magic.h, ZFS from OpenZFS, bcachefs and exFAT from their sources. Everything else (NFS,
/// SMB, 9p, FUSE, Ceph, future ones) counts as shared between machines.
const LOCAL: [u64; 14] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683e, // btrfs
    0xf2f5_2010, // F2FS
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0x794c_7630, // overlayfs
    0x2fc1_2fc1, // ZFS
    0xca45_1a4e, // bcachefs
    0x3153_464a, // JFS
    0x5265_4973, // ReiserFS
    0x3434,      // NILFS
    0x4d44,      // FAT
    0x2011_bab0, // exFAT
];

/// The journal mode that is safe in this folder.
pub(crate) fn journal_for(folder: &Path) -> JournalMode {
    // The type is a signed or an unsigned word, by architecture; magic numbers have 32 bits.
    let kind = rustix::fs::statfs(folder).map(|facts| facts.f_type as u64 & 0xffff_ffff);
    if kind.is_ok_and(|kind| LOCAL.contains(&kind)) {
        JournalMode::Wal
    } else {
        JournalMode::Delete
    }
}

/// The folder of a file, as the kernel takes it.
pub(crate) fn folder_of(path: &Path) -> &Path {
    let parent = path.parent();
    let named = parent.filter(|parent| !parent.as_os_str().is_empty());
    named.unwrap_or(Path::new("."))
}
