//! A private instance of the kernel's tracing (Documentation/trace/ftrace.rst, "Instances") that
//! reports the requests of some disks. It has buffers and switches of its own, so that other users
//! of tracing notice nothing, and is removed at the end. Where tracefs is not mounted, this process
//! mounts one that no other process sees. Writes to the control files of tracing only.

use super::trace_lines::{TraceLine, parse};
use crate::sysroot::list;
use diskproof_model::watch::IssuedRequest;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

/// Where distributions mount tracefs: since Linux 4.1, and before.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const PREFIX: &str = "diskproof-";
/// Buffers of all CPUs together, in KiB: about 200,000 requests.
const BUFFER_KIB: usize = 16 << 10;
const BUFFER_KIB_MIN: usize = 256;
/// Requests that one reading returns at the most; the rest counts as lost.
const REQUESTS_MAX: usize = 200_000;

/// Requests since the last reading.
#[derive(Debug, Default)]
pub struct TraceBatch {
    /// In the order in which they were sent.
    pub requests: Vec<IssuedRequest>,
    /// Whether some are missing.
    pub is_incomplete: bool,
}

/// A running trace.
#[derive(Debug)]
pub struct RequestTrace {
    /// `None` once it is closed: the instance cannot be removed before.
    pipe: Option<File>,
    instance: PathBuf,
    /// The beginning of a line whose end was not there yet.
    unfinished: Vec<u8>,
    /// Our own mount of tracefs, which vanishes with its descriptor.
    _mount: Option<OwnedFd>,
}

impl RequestTrace {
    /// Starts to trace the requests of these disks (major, minor); of all where none is given. An
    /// error is a clause that says why it is not possible.
    pub fn start(disks: &[(u32, u32)]) -> Result<Self, String> {
        let (place, mount) = tracefs()?;
        let instances = place.join("instances");
        remove_leftovers(&instances);
        let instance = instances.join(format!("{PREFIX}{}", std::process::id()));
        std::fs::create_dir(&instance)
            .map_err(|error| format!("a tracing instance cannot be created ({error})"))?;
        let mut trace = Self {
            pipe: None,
            instance,
            unfinished: Vec::new(),
            _mount: mount,
        };
        trace
            .set_up(disks)
            .map_err(|error| format!("tracing cannot be set up ({error})"))?;
        Ok(trace)
    }

    fn set_up(&mut self, disks: &[(u32, u32)]) -> io::Result<()> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let kib = (BUFFER_KIB / cpus).max(BUFFER_KIB_MIN);
        self.set("buffer_size_kb", &kib.to_string())?;
        // A full buffer keeps what it has: the requests in it then follow each other without gaps.
        self.set("options/overwrite", "0")?;
        if !disks.is_empty() {
            // dev_t of the kernel: 12 bits for the major number, 20 for the minor.
            let one = |(major, minor): &(u32, u32)| format!("dev == {}", (major << 20) | minor);
            let filter: Vec<String> = disks.iter().map(one).collect();
            self.set("events/block/block_rq_issue/filter", &filter.join(" || "))?;
        }
        self.set("events/block/block_rq_issue/enable", "1")?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let pipe = open(self.instance.join("trace_pipe"), flags, Mode::empty())?;
        self.pipe = Some(File::from(pipe));
        self.set("tracing_on", "1")
    }

    fn set(&self, file: &str, value: &str) -> io::Result<()> {
        let mut options = File::options();
        options
            .write(true)
            .open(self.instance.join(file))?
            .write_all(value.as_bytes())
    }

    /// The requests since the last call.
    pub fn read(&mut self) -> TraceBatch {
        let mut batch = TraceBatch::default();
        let Some(pipe) = &mut self.pipe else {
            return batch;
        };
        let mut buffer = vec![0; 64 << 10];
        loop {
            let count = match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            self.unfinished.extend_from_slice(&buffer[..count]);
            let Some(end) = self.unfinished.iter().rposition(|byte| *byte == b'\n') else {
                continue;
            };
            let text = String::from_utf8_lossy(&self.unfinished[..end]).into_owned();
            self.unfinished.drain(..=end);
            for line in text.lines() {
                match parse(line) {
                    TraceLine::Request(request) => batch.requests.push(request),
                    TraceLine::Lost => batch.is_incomplete = true,
                    TraceLine::Other => {}
                }
            }
            if batch.requests.len() >= REQUESTS_MAX {
                batch.is_incomplete = true;
                break;
            }
        }
        batch
    }
}

impl Drop for RequestTrace {
    fn drop(&mut self) {
        let _ = self.set("tracing_on", "0");
        let _ = self.set("events/block/block_rq_issue/enable", "0");
        self.pipe = None;
        let _ = std::fs::remove_dir(&self.instance);
    }
}

/// A mounted tracefs; on a system without one, a private mount that is attached nowhere.
fn tracefs() -> Result<(PathBuf, Option<OwnedFd>), String> {
    if let Some(place) = PLACES
        .iter()
        .find(|at| Path::new(at).join("instances").is_dir())
    {
        return Ok((PathBuf::from(place), None));
    }
    let mounted = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC).and_then(|context| {
        fsconfig_create(&context)?;
        fsmount(
            &context,
            FsMountFlags::FSMOUNT_CLOEXEC,
            MountAttrFlags::empty(),
        )
    });
    match mounted {
        Ok(mount) => {
            let place = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
            Ok((place, Some(mount)))
        }
        Err(Errno::PERM | Errno::ACCESS) => Err("reading traced requests needs root".to_owned()),
        Err(errno) => Err(format!("this kernel offers no tracefs ({errno})")),
    }
}

/// Removes the instances of processes that were killed.
fn remove_leftovers(instances: &Path) {
    for name in list(instances) {
        let pid = name
            .strip_prefix(PREFIX)
            .and_then(|pid| pid.parse::<u32>().ok());
        let is_over = pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists());
        if is_over {
            let _ = std::fs::remove_dir(instances.join(name));
        }
    }
}
