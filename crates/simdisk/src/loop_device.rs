//! `LoopDevice`: a block device over a file, through the loop driver's ioctls.
#![allow(unsafe_code)]

use diskproof_model::errno;
use rustix::fd::{AsFd, AsRawFd};
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

/// The I/O of the loop driver to the file below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direct {
    /// Direct I/O: each request reaches the file's disk.
    On,
    /// Buffered I/O: the host's page cache answers, even to O_DIRECT on the loop device.
    Off,
}

/// The reason why no loop device could be had.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// The file below cannot be opened.
    #[error(
        "cannot open {path} for a loop device: {}. It must exist and be writable (with O_DIRECT \
         for direct I/O)",
        errno_text(.source)
    )]
    File {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The loop driver is missing or forbidden.
    #[error(
        "cannot {action} {path}: {}. Load the module loop and run as root",
        errno_text(.source)
    )]
    Driver {
        /// The step that failed, as a verb.
        action: &'static str,
        /// The device node.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The driver refused the combination.
    #[error(
        "cannot make {path} the loop device {device} with sectors of {sector_bytes} bytes: {}. Use \
         512 or 4096",
        errno_text(.source)
    )]
    Configure {
        /// The file.
        path: PathBuf,
        /// The device node.
        device: PathBuf,
        /// The requested sector size.
        sector_bytes: u32,
        /// The kernel's error.
        source: io::Error,
    },
    /// Other processes took every free device before this one could.
    #[error(
        "cannot attach {path}: other processes took {TRIES} free loop devices first (EBUSY). Try \
         again"
    )]
    Busy {
        /// The file.
        path: PathBuf,
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

/// The kernel's text for an error, with the name of its errno: `Permission denied (EACCES)`.
fn errno_text(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => {
            let name = errno::name(number);
            format!("{} ({name})", errno::text(&name))
        }
        None => error.to_string(),
    }
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
/// Attaches a file to a device, with all its settings at once (kernel 5.8).
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
/// Returns the number of a free device.
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;
/// Sets if a block device refuses writes.
const BLKROSET: libc::c_ulong = 0x125D;
/// The device is detached once no process uses it.
const LO_FLAGS_AUTOCLEAR: u32 = 4;
/// The driver uses direct I/O.
const LO_FLAGS_DIRECT_IO: u32 = 16;
/// The tries to attach a free device before another process takes it. Tests of several programs
/// attach devices at the same time, but not so many at once.
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

// The kernel reads as many bytes, whatever Rust takes the structures for.
const _: () = assert!(size_of::<LoopInfo>() == 232 && size_of::<LoopConfig>() == 304);

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
        let device = attach_free_device(&file, direct, sector_bytes, path)?;
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

    /// The content of a file of `/sys/block/loopN/loop`; `None` where it cannot be read.
    fn attribute(&self, name: &str) -> Option<String> {
        let node = self.path.file_name()?;
        let text =
            std::fs::read_to_string(Path::new("/sys/block").join(node).join("loop").join(name))
                .ok()?;
        Some(text.trim().to_owned())
    }
}

fn driver_error(action: &'static str, path: &Path, source: io::Error) -> LoopError {
    LoopError::Driver {
        action,
        path: path.to_owned(),
        source,
    }
}

/// Attaches the file to a free device. Another process may take the device first (EBUSY): then the
/// next free one is tried.
fn attach_free_device(
    file: &File,
    direct: Direct,
    sector_bytes: u32,
    path: &Path,
) -> Result<LoopDevice, LoopError> {
    for _ in 0..TRIES {
        match try_free_device(file, direct, sector_bytes, path) {
            Err(LoopError::Configure { source, .. })
                if source.raw_os_error() == Some(libc::EBUSY) => {}
            attached => return attached,
        }
    }
    Err(LoopError::Busy {
        path: path.to_owned(),
    })
}

/// Asks the driver for a free device and attaches the file to it. The device is in use as soon as
/// it is configured; if a later step fails, it is detached when `device` is closed.
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
        .map_err(|error| driver_error("open", &control, error))?;
    // SAFETY: the ioctl takes no argument; the descriptor is open.
    let number = unsafe { libc::ioctl(control_file.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
    if number < 0 {
        let error = io::Error::last_os_error();
        return Err(driver_error("get a free device from", &control, error));
    }
    let device_path = PathBuf::from(format!("/dev/loop{number}"));
    let device = File::options()
        .read(true)
        .write(true)
        .open(&device_path)
        .map_err(|error| driver_error("open", &device_path, error))?;
    let config = LoopConfig::new(file, direct, sector_bytes);
    // SAFETY: the ioctl reads a `loop_config` from the pointer, which lives over the call; both
    // descriptors are open.
    if unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &raw const config) } < 0 {
        return Err(LoopError::Configure {
            source: io::Error::last_os_error(),
            path: path.to_owned(),
            device: device_path,
            sector_bytes,
        });
    }
    let writable: libc::c_int = 0;
    // The kernel keeps `blockdev --setro` for the next user of the device, even after a killed
    // test.
    // SAFETY: the ioctl reads an int from the pointer; the descriptor is open.
    if unsafe { libc::ioctl(device.as_raw_fd(), BLKROSET as _, &raw const writable) } < 0 {
        let error = io::Error::last_os_error();
        return Err(driver_error("make writable", &device_path, error));
    }
    let hold = Hold::map(&device).map_err(|error| driver_error("map", &device_path, error))?;
    Ok(LoopDevice {
        path: device_path,
        _hold: hold,
    })
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
