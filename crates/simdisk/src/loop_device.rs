//! `LoopDevice`: a block device over a file, through the loop driver's ioctls.
#![allow(unsafe_code)]

use rustix::fd::{AsFd, AsRawFd};
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

/// The way of the loop driver to the file below: around its page cache, or through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direct {
    /// Around it: each request reaches the file's disk.
    On,
    /// The host's page cache answers, even to O_DIRECT on the loop device.
    Off,
}

/// The reason why no loop device could be had.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// The file below cannot be opened.
    #[error(
        "cannot open {path} for a loop device: {source}; it must exist and be writable (with \
         O_DIRECT for direct I/O)"
    )]
    File {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The loop driver is missing or forbidden.
    #[error("cannot use {path}: {source}; load the module loop and run as root")]
    Driver {
        /// The device node.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The driver refused the combination.
    #[error(
        "cannot make {path} a loop device with sectors of {sector_bytes} bytes: {source}; use 512 \
         or 4096"
    )]
    Configure {
        /// The file.
        path: PathBuf,
        /// The requested sector size.
        sector_bytes: u32,
        /// What the kernel said.
        source: io::Error,
    },
    /// Direct I/O was requested, but the driver silently uses the page cache.
    #[error(
        "{path} does not take direct I/O from the loop driver; use another file system or \
         Direct::Off"
    )]
    NotDirect {
        /// The file.
        path: PathBuf,
    },
}

/// A loop device. It is detached when dropped, and by the kernel when this process dies.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    // Only held: its end detaches the device.
    _hold: Hold,
}

/// Keeps the device in use without a file descriptor, so that a program that looks for other users
/// of the disk in /proc/*/fd finds none: a mapping counts as a use of the device (and lets
/// autoclear fire at its end, even that of the process).
#[derive(Debug)]
struct Hold(NonNull<libc::c_void>);

// SAFETY: the pointer is never dereferenced; it only names a mapping of the whole process, which
// any thread may unmap.
unsafe impl Send for Hold {}
// SAFETY: as above; there is no shared access through it.
unsafe impl Sync for Hold {}

/// Bytes of the mapping: one page.
const HOLD_BYTES: usize = 4096;
// Numbers of linux/loop.h and linux/fs.h under the kernel's names.
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;
const BLKROSET: libc::c_ulong = 0x125D;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;
/// Tries to get a free device before others take it.
const TRIES: u32 = 64;

/// `struct loop_info64` of linux/loop.h.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config` of linux/loop.h (kernel 5.8).
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

impl LoopDevice {
    /// Makes a block device with sectors of `sector_bytes` (512 to 4096) of the regular file
    /// `path`.
    pub fn attach(path: &Path, direct: Direct, sector_bytes: u32) -> Result<Self, LoopError> {
        let flags = if direct == Direct::On {
            libc::O_DIRECT
        } else {
            0
        };
        let file = File::options()
            .read(true)
            .write(true)
            .custom_flags(flags)
            .open(path)
            .map_err(|source| LoopError::File {
                path: path.to_owned(),
                source,
            })?;
        let device = (0..TRIES)
            .find_map(
                |_| match try_free_device(&file, direct, sector_bytes, path) {
                    // EBUSY: another process was faster; the next free one then.
                    Err(LoopError::Configure { source, .. })
                        if source.raw_os_error() == Some(libc::EBUSY) =>
                    {
                        None
                    }
                    other => Some(other),
                },
            )
            .unwrap_or_else(|| {
                Err(configure_error(
                    path,
                    sector_bytes,
                    io::Error::from_raw_os_error(libc::EBUSY),
                ))
            })?;
        if direct == Direct::On && device.attribute("dio").as_deref() != Some("1") {
            return Err(LoopError::NotDirect {
                path: path.to_owned(),
            });
        }
        Ok(device)
    }

    /// The block device, such as `/dev/loop3`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file of `/sys/block/loopN/loop`.
    fn attribute(&self, name: &str) -> Option<String> {
        let node = self.path.file_name()?;
        let text =
            std::fs::read_to_string(Path::new("/sys/block").join(node).join("loop").join(name))
                .ok()?;
        Some(text.trim().to_owned())
    }
}

fn driver_error(path: &Path, source: io::Error) -> LoopError {
    LoopError::Driver {
        path: path.to_owned(),
        source,
    }
}

fn try_free_device(
    file: &File,
    direct: Direct,
    sector_bytes: u32,
    path: &Path,
) -> Result<LoopDevice, LoopError> {
    let control = PathBuf::from("/dev/loop-control");
    let control_file = File::options()
        .read(true)
        .write(true)
        .open(&control)
        .map_err(|e| driver_error(&control, e))?;
    // SAFETY: the ioctl takes no argument; the descriptor is open.
    let number = unsafe { libc::ioctl(control_file.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
    if number < 0 {
        return Err(driver_error(&control, io::Error::last_os_error()));
    }
    let device_path = PathBuf::from(format!("/dev/loop{number}"));
    let device = File::options()
        .read(true)
        .write(true)
        .open(&device_path)
        .map_err(|e| driver_error(&device_path, e))?;
    let config = LoopConfig::new(file, direct, sector_bytes);
    // SAFETY: the ioctl reads a `loop_config` from the pointer, which lives over the call; both
    // descriptors are open.
    if unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &raw const config) } < 0 {
        return Err(configure_error(
            path,
            sector_bytes,
            io::Error::last_os_error(),
        ));
    }
    let writable: libc::c_int = 0;
    // The kernel keeps `blockdev --setro` for the next user of the device, even after a killed
    // test.
    // SAFETY: the ioctl reads an int from the pointer; the descriptor is open.
    if unsafe { libc::ioctl(device.as_raw_fd(), BLKROSET as _, &raw const writable) } < 0 {
        return Err(driver_error(&device_path, io::Error::last_os_error()));
    }
    let hold = Hold::map(&device).map_err(|e| driver_error(&device_path, e))?;
    Ok(LoopDevice {
        path: device_path,
        _hold: hold,
    })
}

fn configure_error(path: &Path, sector_bytes: u32, source: io::Error) -> LoopError {
    LoopError::Configure {
        path: path.to_owned(),
        sector_bytes,
        source,
    }
}

impl LoopConfig {
    fn new(file: &File, direct: Direct, sector_bytes: u32) -> Self {
        let flags = LO_FLAGS_AUTOCLEAR
            | if direct == Direct::On {
                LO_FLAGS_DIRECT_IO
            } else {
                0
            };
        let info = LoopInfo {
            device: 0,
            inode: 0,
            rdevice: 0,
            offset: 0,
            size_limit: 0,
            number: 0,
            encrypt_type: 0,
            encrypt_key_size: 0,
            flags,
            file_name: [0; 64],
            crypt_name: [0; 64],
            encrypt_key: [0; 32],
            init: [0; 2],
        };
        Self {
            fd: file.as_raw_fd() as u32,
            block_size: sector_bytes,
            info,
            reserved: [0; 8],
        }
    }
}

impl Hold {
    /// Holds the device open by a mapping of it.
    fn map(device: &File) -> io::Result<Self> {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        // SAFETY: a fresh mapping at an address of the kernel's choice, never accessed.
        let pointer = unsafe {
            mmap(
                std::ptr::null_mut(),
                HOLD_BYTES,
                ProtFlags::empty(),
                MapFlags::SHARED,
                device.as_fd(),
                0,
            )
        }?;
        NonNull::new(pointer)
            .map(Self)
            .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `map` with this length, is unmapped only here, and
        // nothing points into it. A failure would mean that it is already gone.
        let _ = unsafe { rustix::mm::munmap(self.0.as_ptr(), HOLD_BYTES) };
    }
}
