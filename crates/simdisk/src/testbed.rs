//! Loop devices, mounts, zram and small filesystems for tests: made by the system's own tools, and
//! taken down when dropped, after a failure too. A failed step fails the test that took it: this
//! file panics where others return errors, and names the path and the error.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
pub use tempfile::TempDir;

/// Runs a program and returns its output. Panics with the program's own message if it fails.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|e| panic!("{program}: {e}"));
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// True if a test can run here: as root, with these programs, and with loop devices or FUSE where
/// `losetup` or `fusermount3` is among them. Prints the line that counts as a skip when it cannot.
pub fn can_run(test: &str, programs: &[&str]) -> bool {
    let missing = if !rustix::process::geteuid().is_root() {
        Some("root")
    } else if programs.contains(&"losetup") && !Path::new("/dev/loop-control").exists() {
        Some("loop devices")
    } else if programs.contains(&"fusermount3") && !Path::new("/dev/fuse").exists() {
        Some("/dev/fuse")
    } else {
        programs
            .iter()
            .find(|program| !is_installed(program))
            .copied()
    };
    if let Some(missing) = &missing {
        eprintln!("SKIPPED: {test}: {missing}");
    }
    missing.is_none()
}

fn is_installed(program: &str) -> bool {
    ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        .iter()
        .any(|directory| Path::new(directory).join(program).exists())
}

/// A directory on the machine's own disk, open to every user.
pub fn place() -> TempDir {
    place_in("/var/tmp")
}

/// A directory in memory, for the images of disks whose flushes are no part of the test.
pub fn place_in_memory() -> TempDir {
    place_in("/dev/shm")
}

fn place_in(folder: &str) -> TempDir {
    let place = tempfile::Builder::new()
        .prefix("diskproof-test-")
        .tempdir_in(folder)
        .unwrap_or_else(|error| panic!("cannot make a directory in {folder}: {error}"));
    run("chmod", &["755", place.path().to_str().unwrap()]);
    place
}

/// A loop device over a file or a device, attached by `losetup`.
#[derive(Debug)]
pub struct Loop {
    /// The node: `/dev/loopN`.
    pub node: PathBuf,
}

impl Loop {
    /// Attaches a new sparse file of this size.
    pub fn sparse(file: &Path, size_bytes: u64, options: &[&str]) -> Self {
        std::fs::File::create(file)
            .and_then(|file| file.set_len(size_bytes))
            .unwrap_or_else(|error| panic!("cannot make {}: {error}", file.display()));
        Self::over(file, options)
    }

    /// Attaches a file or a device that exists; `options` are losetup's.
    pub fn over(file: &Path, options: &[&str]) -> Self {
        let mut arguments = vec!["--find", "--show"];
        arguments.extend(options);
        arguments.push(file.to_str().unwrap());
        Self {
            node: run("losetup", &arguments).into(),
        }
    }

    /// The kernel name: `loopN`.
    pub fn name(&self) -> &str {
        self.node.file_name().unwrap().to_str().unwrap()
    }

    /// The node of a partition.
    pub fn partition(&self, number: u32) -> PathBuf {
        format!("{}p{number}", self.node.display()).into()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup")
            .arg("--detach")
            .arg(&self.node)
            .status();
    }
}

/// A filesystem that is mounted until this is dropped.
#[derive(Debug)]
pub struct Mount {
    /// The mount point.
    pub point: PathBuf,
}

impl Mount {
    /// `mount -t kind -o options source point`; the directory is made when missing.
    pub fn new(kind: &str, source: &str, point: &Path, options: &str) -> Self {
        std::fs::create_dir_all(point)
            .unwrap_or_else(|error| panic!("cannot make {}: {error}", point.display()));
        run(
            "mount",
            &["-t", kind, "-o", options, source, point.to_str().unwrap()],
        );
        Self {
            point: point.to_owned(),
        }
    }

    /// Unmounts with a single try. The error is the message of umount(8), such as `target is busy`.
    pub fn unmount_at_once(self) -> Result<(), String> {
        let output = Command::new("umount").arg(&self.point).output().unwrap();
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        // There is nothing left to unmount.
        std::mem::forget(self);
        Ok(())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let is_unmounted = is_released(|| {
            Command::new("umount")
                .arg(&self.point)
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        });
        if !is_unmounted {
            eprintln!("{} could not be unmounted", self.point.display());
        }
    }
}

/// The tries of [`is_released`], with [`RELEASE_PAUSE`] after each: five seconds.
const RELEASE_TRIES: u32 = 100;
/// The pause after a try that failed.
const RELEASE_PAUSE: Duration = Duration::from_millis(50);

/// Tries for some seconds to release something, and returns true once an attempt succeeds. The
/// kernel ends a process's io_uring some time after the process, and holds its files until then
/// (io_ring_exit_work).
fn is_released(mut attempt: impl FnMut() -> bool) -> bool {
    for _ in 0..RELEASE_TRIES {
        if attempt() {
            return true;
        }
        std::thread::sleep(RELEASE_PAUSE);
    }
    false
}

/// A filesystem of the given kind on a loop device over a sparse file; fields are dropped in this
/// order.
#[derive(Debug)]
pub struct Disk {
    /// The mount of its filesystem.
    pub mount: Mount,
    /// The device that is mounted.
    pub device: Loop,
    _place: TempDir,
}

impl Disk {
    /// `kind` is `ext4`, `xfs` or `btrfs`; `options` are mount's.
    pub fn new(kind: &str, size_bytes: u64, options: &str) -> Self {
        let place = place();
        let device = Loop::sparse(&place.path().join("image"), size_bytes, &["--direct-io=on"]);
        Self::on(kind, device, options, place)
    }

    /// A disk in memory, for a run that must end in its announced time: the machine's own disk can
    /// stop for seconds under the other tests.
    pub fn in_memory(kind: &str, size_bytes: u64) -> Self {
        let place = place_in_memory();
        let device = Loop::sparse(&place.path().join("image"), size_bytes, &[]);
        Self::on(kind, device, "defaults", place)
    }

    fn on(kind: &str, device: Loop, options: &str, place: TempDir) -> Self {
        let node = device.node.to_str().unwrap();
        // A new ext4 is complete, so that the kernel writes no inode tables beside a measurement.
        let options_of_mkfs: &[&str] = match kind {
            "ext4" => &["-q", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
            _ => &["-f"],
        };
        run(
            &format!("mkfs.{kind}"),
            &[options_of_mkfs, &[node]].concat(),
        );
        let mount = Mount::new(
            kind,
            device.node.to_str().unwrap(),
            &place.path().join("mnt"),
            options,
        );
        Self {
            mount,
            device,
            _place: place,
        }
    }

    /// Root of the filesystem.
    pub fn path(&self) -> &Path {
        &self.mount.point
    }
}

/// A zram device that is reset when this is dropped.
#[derive(Debug)]
pub struct Zram {
    /// The node: `/dev/zramN`.
    pub node: PathBuf,
    number: String,
}

impl Zram {
    /// `None` where the kernel has no zram.
    pub fn new(size_bytes: u64) -> Option<Self> {
        let number = std::fs::read_to_string("/sys/class/zram-control/hot_add")
            .ok()?
            .trim()
            .to_owned();
        let zram = Self {
            node: format!("/dev/zram{number}").into(),
            number,
        };
        let size_file = format!("/sys/block/zram{}/disksize", zram.number);
        std::fs::write(&size_file, size_bytes.to_string())
            .unwrap_or_else(|error| panic!("cannot write {size_bytes} to {size_file}: {error}"));
        Some(zram)
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        let reset = format!("/sys/block/zram{}/reset", self.number);
        let is_removed = is_released(|| {
            std::fs::write(&reset, "1").is_ok()
                && std::fs::write("/sys/class/zram-control/hot_remove", &self.number).is_ok()
        });
        if !is_removed {
            eprintln!("{} could not be removed", self.node.display());
        }
    }
}
