//! Layouts and numbers of the FUSE protocol, version 7.31 and later (`linux/fuse.h`), read and
//! written byte by byte.

/// Operation numbers (`enum fuse_opcode`), only those served here.
pub(crate) mod opcode {
    pub(crate) const LOOKUP: u32 = 1;
    pub(crate) const FORGET: u32 = 2;
    pub(crate) const GETATTR: u32 = 3;
    pub(crate) const SETATTR: u32 = 4;
    pub(crate) const UNLINK: u32 = 10;
    pub(crate) const OPEN: u32 = 14;
    pub(crate) const READ: u32 = 15;
    pub(crate) const WRITE: u32 = 16;
    pub(crate) const STATFS: u32 = 17;
    pub(crate) const RELEASE: u32 = 18;
    pub(crate) const FSYNC: u32 = 20;
    pub(crate) const INIT: u32 = 26;
    pub(crate) const OPENDIR: u32 = 27;
    pub(crate) const READDIR: u32 = 28;
    pub(crate) const RELEASEDIR: u32 = 29;
    pub(crate) const CREATE: u32 = 35;
    pub(crate) const INTERRUPT: u32 = 36;
    pub(crate) const DESTROY: u32 = 38;
    pub(crate) const BATCH_FORGET: u32 = 42;
    pub(crate) const FALLOCATE: u32 = 43;
}

/// Capabilities requested in INIT (low word).
pub(crate) mod init_flag {
    pub(crate) const ASYNC_READ: u32 = 1 << 0;
    pub(crate) const BIG_WRITES: u32 = 1 << 5;
    pub(crate) const ASYNC_DIO: u32 = 1 << 15;
    pub(crate) const WRITEBACK_CACHE: u32 = 1 << 16;
    pub(crate) const MAX_PAGES: u32 = 1 << 22;
}

/// Flags of an open file (`FOPEN_…`).
pub(crate) mod open_flag {
    pub(crate) const DIRECT_IO: u32 = 1 << 0;
    pub(crate) const KEEP_CACHE: u32 = 1 << 1;
    pub(crate) const PARALLEL_DIRECT_WRITES: u32 = 1 << 6;
}

/// Valid bit of `size` in a SETATTR request (`FATTR_SIZE`).
pub(crate) const SETATTR_SIZE: u32 = 1 << 3;
/// Valid bit of `mode` in a SETATTR request (`FATTR_MODE`).
pub(crate) const SETATTR_MODE: u32 = 1 << 0;
/// Bytes of the header before every request.
pub(crate) const IN_HEADER_BYTES: usize = 40;
/// Bytes of the header before every reply.
pub(crate) const OUT_HEADER_BYTES: usize = 16;
/// Bytes of a READ or WRITE request between header and data.
pub(crate) const TRANSFER_BYTES: usize = 40;
/// The most that one request carries: the kernel's limit is 256 pages (`fs.fuse.max_pages_limit`).
pub(crate) const TRANSFER_MAX_BYTES: usize = 1 << 20;
/// Seconds for which the kernel may keep names and attributes: the server alone changes them.
const VALID_S: u64 = 3600;

/// The fields of a request header that are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InHeader {
    pub opcode: u32,
    pub unique: u64,
    pub node: u64,
}

/// A READ, WRITE or FALLOCATE request without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub offset_bytes: u64,
    pub length_bytes: u64,
    /// `open(2)` flags of the file at this moment, so that F_SETFL is seen too.
    pub open_flags: u32,
}

/// A file's attributes as the kernel wants them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub node: u64,
    pub size_bytes: u64,
    /// Type and permissions, as in `st_mode`.
    pub mode: u32,
    pub links: u32,
}

/// Reads `u32` at a byte offset; zero beyond the end, as for fields that an older kernel does not
/// send.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 4)
        .and_then(|b| b.try_into().ok())
        .map_or(0, u32::from_ne_bytes)
}

/// Reads `u64` at a byte offset; zero beyond the end.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..at + 8)
        .and_then(|b| b.try_into().ok())
        .map_or(0, u64::from_ne_bytes)
}

/// True of a FALLOCATE request that punches a hole.
pub(crate) fn is_hole(body: &[u8]) -> bool {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    u32_at(body, 24) == mode as u32
}

/// A name at the start of `bytes`, up to its NUL.
pub(crate) fn name_in(bytes: &[u8]) -> &[u8] {
    bytes.split(|b| *b == 0).next().unwrap_or_default()
}

impl InHeader {
    /// Reads the header of a whole request.
    pub(crate) fn read(request: &[u8]) -> Self {
        Self {
            opcode: u32_at(request, 4),
            unique: u64_at(request, 8),
            node: u64_at(request, 16),
        }
    }
}

impl Transfer {
    /// Reads the body of a READ or WRITE (both have the same layout).
    pub(crate) fn read(body: &[u8]) -> Self {
        Self {
            offset_bytes: u64_at(body, 8),
            length_bytes: u64::from(u32_at(body, 16)),
            open_flags: u32_at(body, 32),
        }
    }

    /// Reads the body of a FALLOCATE.
    pub(crate) fn hole(body: &[u8]) -> Self {
        Self {
            offset_bytes: u64_at(body, 8),
            length_bytes: u64_at(body, 16),
            open_flags: 0,
        }
    }

    /// True if the file is open with O_DIRECT now.
    pub(crate) fn is_direct(&self) -> bool {
        is_direct(self.open_flags)
    }
}

/// True of an FSYNC that may skip what describes the file (FUSE_FSYNC_FDATASYNC of
/// include/uapi/linux/fuse.h), as fdatasync(2) and O_DSYNC do.
pub(crate) fn is_data_sync(body: &[u8]) -> bool {
    u32_at(body, 8) & 1 != 0
}

/// True of `open(2)` flags with O_DIRECT.
pub(crate) fn is_direct(open_flags: u32) -> bool {
    open_flags & libc::O_DIRECT as u32 != 0
}

/// Builds a reply body.
#[derive(Debug, Default)]
pub(crate) struct Body(pub Vec<u8>);

impl Body {
    pub(crate) fn u16(mut self, value: u16) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(crate) fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(crate) fn zeros(mut self, bytes: usize) -> Self {
        self.0.resize(self.0.len() + bytes, 0);
        self
    }

    /// `struct fuse_init_out` for protocol 7.31; `flags` are those the kernel offered and we want.
    pub(crate) fn init(self, flags: u32) -> Self {
        // 1024 in the background, so that depth is never limited by FUSE itself (the default is
        // 12).
        self.u32(7)
            .u32(31)
            .u32(TRANSFER_MAX_BYTES as u32)
            .u32(flags)
            .u16(1024)
            .u16(1023)
            .u32(TRANSFER_MAX_BYTES as u32)
            .u32(1)
            .u16((TRANSFER_MAX_BYTES / 4096) as u16)
            .zeros(64 - 30)
    }

    /// Appends a `struct fuse_attr`.
    fn attributes(self, a: &Attributes) -> Self {
        // Blocks say "fully allocated": the file stands for a disk, not for a sparse file.
        self.u64(a.node)
            .u64(a.size_bytes)
            .u64(a.size_bytes.div_ceil(512))
            .zeros(3 * 8 + 3 * 4)
            .u32(a.mode)
            .u32(a.links)
            .zeros(3 * 4)
            .u32(4096)
            .zeros(4)
    }

    /// Appends a `struct fuse_attr_out`.
    pub(crate) fn attr_out(self, a: &Attributes) -> Self {
        self.u64(VALID_S).zeros(8).attributes(a)
    }

    /// Appends a `struct fuse_entry_out`.
    pub(crate) fn entry_out(self, a: &Attributes) -> Self {
        self.u64(a.node)
            .u64(0)
            .u64(VALID_S)
            .u64(VALID_S)
            .zeros(8)
            .attributes(a)
    }

    /// Appends a `struct fuse_open_out`.
    pub(crate) fn open_out(self, handle: u64, open_flags: u32) -> Self {
        self.u64(handle).u32(open_flags).zeros(4)
    }

    /// Appends a `struct fuse_kstatfs`.
    pub(crate) fn statfs_out(self, total_blocks: u64, free_blocks: u64) -> Self {
        self.u64(total_blocks)
            .u64(free_blocks)
            .u64(free_blocks)
            .u64(1 << 20)
            .u64(1 << 20)
            .u32(4096)
            .u32(255)
            .u32(4096)
            .zeros(4 + 24)
    }

    /// One `struct fuse_dirent`; `next` is the offset at which the following one begins.
    pub(crate) fn directory_entry(self, node: u64, next: u64, kind: u32, name: &[u8]) -> Self {
        let mut body = self.u64(node).u64(next).u32(name.len() as u32).u32(kind);
        body.0.extend(name);
        let padded = body.0.len().next_multiple_of(8);
        body.0.resize(padded, 0);
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: Attributes = Attributes {
        node: 1,
        size_bytes: 1000,
        mode: 0o100600,
        links: 1,
    };

    #[test]
    fn reply_bodies_have_kernel_struct_sizes() {
        assert_eq!(Body::default().init(0).0.len(), 64);
        assert_eq!(Body::default().attr_out(&FILE).0.len(), 104);
        assert_eq!(Body::default().entry_out(&FILE).0.len(), 128);
        assert_eq!(Body::default().open_out(0, 0).0.len(), 16);
        assert_eq!(Body::default().statfs_out(1, 1).0.len(), 80);
        assert_eq!(Body::default().directory_entry(1, 1, 8, b"abc").0.len(), 32);
    }

    #[test]
    fn attr_reply_places_size_and_mode() {
        let body = Body::default().attr_out(&FILE).0;
        assert_eq!(u64_at(&body, 24), 1000);
        assert_eq!(u64_at(&body, 32), 2);
        assert_eq!(u32_at(&body, 76), 0o100600);
    }

    #[test]
    fn short_request_reads_missing_fields_as_zero() {
        assert_eq!(u32_at(&[1, 2], 0), 0);
        assert_eq!(u64_at(&[], 8), 0);
        assert_eq!(name_in(b"a\0b"), b"a");
    }
}
