//! A mounted FUSE connection: opens `/dev/fuse`, mounts, hands cloned channels to server threads,
//! ends them, unmounts.
#![allow(unsafe_code)]

use super::wire::{IN_HEADER_BYTES, OUT_HEADER_BYTES, TRANSFER_BYTES, TRANSFER_MAX_BYTES};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::CString;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The reason why a simulated disk or directory could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The FUSE device cannot be opened.
    #[error("cannot open /dev/fuse: {source}; load the module fuse and run as root")]
    Device {
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The mount point cannot be made or used.
    #[error(
        "cannot use {path} as mount point: {source}; name a file (for a directory server: a \
         directory) that can be created or exists"
    )]
    MountPoint {
        /// The mount point.
        path: PathBuf,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// mount(2) failed.
    #[error(
        "cannot mount on {path}: {source}; run as root, outside a container without CAP_SYS_ADMIN"
    )]
    Mount {
        /// The mount point.
        path: PathBuf,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The store behind the disk cannot be made.
    #[error(
        "cannot keep the disk's content in {path}: {source}; free memory, or name another backing \
         file"
    )]
    Backing {
        /// The backing file, or `memory`.
        path: PathBuf,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// A server thread could not be started.
    #[error("cannot start a server: {source}; too many threads or open files")]
    Server {
        /// The kernel's error.
        source: std::io::Error,
    },
}

/// The node at the mount point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    /// A regular file is the whole file system.
    RegularFile,
    /// A directory with files.
    Directory,
}

impl Root {
    /// Type and permissions of the root node.
    pub(crate) fn mode(self) -> u32 {
        match self {
            Self::RegularFile => libc::S_IFREG | 0o600,
            Self::Directory => libc::S_IFDIR | 0o700,
        }
    }
}

/// One channel to the kernel: requests are read from it, and answered on the same one (each clone
/// has its own queue).
#[derive(Debug)]
pub(crate) struct Channel {
    device: OwnedFd,
    stop: Arc<OwnedFd>,
}

/// The mount. Dropping it detaches the mount; the channels end at `stop`.
#[derive(Debug)]
pub(crate) struct Connection {
    path: PathBuf,
    first: Arc<Channel>,
}

impl Connection {
    /// Mounts on `path`, which it creates if missing. A thread must read the first channel before
    /// a program uses the mount.
    pub(crate) fn mount(path: &Path, root: Root) -> Result<Self, ServeError> {
        let path = prepare_mount_point(path, root)?;
        let device = open_device().map_err(|e| ServeError::Device { source: e.into() })?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC)
            .map_err(|e| ServeError::Server { source: e.into() })?;
        let options = format!(
            "fd={},rootmode={:o},user_id=0,group_id=0,allow_other,max_read={TRANSFER_MAX_BYTES}",
            device.as_raw_fd(),
            root.mode()
        );
        let options = CString::new(options).expect("the options hold no NUL");
        mount(
            "simdisk",
            &path,
            FILESYSTEM,
            MountFlags::NODEV | MountFlags::NOSUID,
            options.as_c_str(),
        )
        .map_err(|e| ServeError::Mount {
            path: path.clone(),
            source: e.into(),
        })?;
        Ok(Self {
            path,
            first: Arc::new(Channel {
                device,
                stop: Arc::new(stop),
            }),
        })
    }

    /// The absolute path of the mount point.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// `count` channels (at least one), so that as many threads read requests at once without
    /// sharing a queue.
    pub(crate) fn channels(&self, count: usize) -> Result<Vec<Arc<Channel>>, ServeError> {
        let mut channels = vec![self.first.clone()];
        for _ in 1..count {
            let clone = self
                .first
                .clone_device()
                .map_err(|e| ServeError::Server { source: e.into() })?;
            channels.push(Arc::new(Channel {
                device: clone,
                stop: self.first.stop.clone(),
            }));
        }
        Ok(channels)
    }

    /// Unmounts lazily, so that open files do not prevent it, and ends every thread in `receive`.
    /// If no file is open, the running threads write dirty pages back before this returns.
    pub(crate) fn stop(&self) {
        // An error means that it was already unmounted by hand: nothing is left to do.
        let _ = unmount(&self.path, UnmountFlags::DETACH);
        let _ = rustix::io::write(&*self.first.stop, &1u64.to_ne_bytes());
    }
}

impl Channel {
    /// A buffer that holds the largest request, with a page to spare: read(2) into one that is too
    /// small for the write size of INIT fails (EINVAL, fuse_dev_do_read).
    pub(crate) fn buffer() -> Vec<u8> {
        vec![0; TRANSFER_MAX_BYTES + IN_HEADER_BYTES + TRANSFER_BYTES + 4096]
    }

    /// Waits for the next request; its length in `buffer`, or `None` when the mount is gone or
    /// `Connection::stop` was called.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> Option<usize> {
        loop {
            match rustix::io::read(&self.device, &mut *buffer) {
                Ok(length) => return Some(length),
                // Not blocking in read(2): a mount kept alive by an open file would never wake us.
                Err(Errno::AGAIN) => {
                    let mut waits = [
                        PollFd::new(&self.device, PollFlags::IN),
                        PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN),
                    ];
                    match poll(&mut waits, None) {
                        Ok(_) if !waits[1].revents().is_empty() => return None,
                        Ok(_) | Err(Errno::INTR) => {}
                        Err(_) => return None,
                    }
                }
                // ENOENT: the caller was interrupted before we took the request (fuse_dev_do_read).
                Err(Errno::INTR | Errno::NOENT) => {}
                Err(_) => return None,
            }
        }
    }

    /// Answers a request. A failure means that the caller or the mount is gone, and is ignored.
    pub(crate) fn reply(&self, unique: u64, answer: Result<&[u8], i32>) {
        let (errno, data) = match answer {
            Ok(data) => (0, data),
            Err(errno) => (-errno, &[][..]),
        };
        // `struct fuse_out_header`: the length of the reply, the errno, the number of the request.
        let mut header = [0; OUT_HEADER_BYTES];
        let reply_bytes = (OUT_HEADER_BYTES + data.len()) as u32;
        header[..4].copy_from_slice(&reply_bytes.to_ne_bytes());
        header[4..8].copy_from_slice(&errno.to_ne_bytes());
        header[8..].copy_from_slice(&unique.to_ne_bytes());
        let _ = rustix::io::writev(&self.device, &[IoSlice::new(&header), IoSlice::new(data)]);
    }

    fn clone_device(&self) -> rustix::io::Result<OwnedFd> {
        /// `_IOR(229, 0, uint32_t)` of linux/fuse.h.
        const FUSE_DEV_IOC_CLONE: libc::c_ulong = 0x8004_e500;
        let device = open_device()?;
        let original = self.device.as_raw_fd() as u32;
        // SAFETY: the ioctl reads one u32 from the pointer, which lives over the call; both
        // descriptors are open.
        let result = unsafe {
            libc::ioctl(
                device.as_raw_fd(),
                FUSE_DEV_IOC_CLONE as _,
                &raw const original,
            )
        };
        if result < 0 {
            Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
        } else {
            Ok(device)
        }
    }
}

fn open_device() -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(
        "/dev/fuse",
        OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK,
        Mode::empty(),
    )
}

/// The type of our mounts.
const FILESYSTEM: &str = "fuse.simdisk";

/// True if the mount that a path leads to is one of ours. The path itself may not answer.
fn is_own_mount(path: &Path) -> bool {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return false;
    };
    let parent = if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    };
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    match parent.canonicalize() {
        Ok(parent) => filesystem_at(&mounts, &parent.join(name)) == Some(FILESYSTEM),
        Err(_) => false,
    }
}

/// The type of the uppermost filesystem that is mounted on a path, of the lines of
/// /proc/self/mountinfo (proc(5)); `None` where none is.
fn filesystem_at<'m>(mounts: &'m str, path: &Path) -> Option<&'m str> {
    // The kernel escapes these characters.
    let escaped = path
        .to_str()?
        .replace('\\', "\\134")
        .replace(' ', "\\040")
        .replace('\t', "\\011")
        .replace('\n', "\\012");
    let mut found = None;
    for line in mounts.lines() {
        if line.split(' ').nth(4) == Some(&escaped) {
            let (_, filesystem) = line.split_once(" - ")?;
            found = filesystem.split(' ').next();
        }
    }
    found
}

/// Creates the mount point; a dead mount that a killed server left there is unmounted first. One of
/// another program stays.
fn prepare_mount_point(path: &Path, root: Root) -> Result<PathBuf, ServeError> {
    let is_dead = std::fs::metadata(path).is_err_and(|e| e.raw_os_error() == Some(libc::ENOTCONN));
    if is_dead && is_own_mount(path) {
        unmount(path, UnmountFlags::DETACH)
            .map_err(|error| mount_point_error(path, error.into()))?;
    }
    match root {
        Root::RegularFile => drop(
            std::fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)
                .map_err(|error| mount_point_error(path, error))?,
        ),
        Root::Directory => {
            std::fs::create_dir_all(path).map_err(|error| mount_point_error(path, error))?;
        }
    }
    path.canonicalize()
        .map_err(|error| mount_point_error(path, error))
}

fn mount_point_error(path: &Path, source: std::io::Error) -> ServeError {
    ServeError::MountPoint {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_of_another_program_is_not_ours() {
        let mounts = "\
22 1 0:21 / / rw - ext4 /dev/vda rw
40 22 0:50 / /mnt/a\\040b rw,nosuid shared:7 - fuse.sshfs host: rw
41 22 0:51 / /mnt/disk rw,nosuid - fuse.sshfs host: rw
42 41 0:52 / /mnt/disk rw,nosuid - fuse.simdisk simdisk rw,user_id=0
";
        let found = |path: &str| filesystem_at(mounts, Path::new(path));
        assert_eq!(found("/mnt/a b"), Some("fuse.sshfs"));
        assert_eq!(found("/mnt/disk"), Some(FILESYSTEM), "the uppermost");
        assert_eq!(found("/mnt/other"), None);
        assert!(!is_own_mount(Path::new("/proc")));
    }
}
