//! Traces the requests of some disks, with a private instance of the kernel's tracing
//! (Documentation/trace/ftrace.rst, "Instances"). It has its own buffers and switches, so it does
//! not affect other users of tracing, and is removed at the end. If tracefs is not mounted, this
//! process mounts one that no other process sees. Writes only to the control files of tracing.

use crate::kernel::sysroot::{SysRoot, list};
use crate::open::scratch::random_u64;
use diskproof_model::watch::{IssuedRequest, RequestDirection};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

/// Directories in which distributions mount tracefs: since Linux 4.1, and before.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The name of an instance: this, the pid, and a random number in hexadecimal. The pid alone would
/// not do: in each container that of the first process is 1.
const PREFIX: &str = "diskproof-";
/// Tries to create an instance: another process may take a new one for the remains of a killed
/// process, and remove it before its pipe is open.
const TRIES: usize = 8;
/// Buffers of all CPUs together, in KiB: about 200,000 requests.
const BUFFER_KIB: usize = 16 << 10;
/// The least buffer of one CPU, in KiB, however many CPUs there are.
const BUFFER_KIB_MIN: usize = 256;
/// The most requests of one [`RequestTrace::read`]; the rest counts as lost.
const REQUESTS_MAX: usize = 200_000;
/// The most text of one reading, because requests may arrive faster than they can be read.
const READ_BYTES_MAX: usize = 32 << 20;

/// Requests since the last reading.
#[derive(Debug, Default)]
pub struct TraceBatch {
    /// In the order in which they were sent.
    pub requests: Vec<IssuedRequest>,
    /// True if some requests are missing.
    pub is_incomplete: bool,
}

/// A running trace.
#[derive(Debug)]
pub struct RequestTrace {
    /// `None` once it is closed: the instance cannot be removed before.
    pipe: Option<File>,
    instance: PathBuf,
    /// Requests since the last [`Self::read`].
    batch: TraceBatch,
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
        let (instance, pipe) = create_instance(&instances)
            .map_err(|error| format!("a tracing instance cannot be created ({error})"))?;
        let mut trace = Self {
            pipe: Some(pipe),
            instance,
            batch: TraceBatch::default(),
            unfinished: Vec::new(),
            _mount: mount,
        };
        trace
            .set_up(disks)
            .map_err(|error| format!("tracing cannot be set up ({error})"))?;
        Ok(trace)
    }

    /// Sets the size of the buffers and the filter by disk, and switches the trace on.
    fn set_up(&mut self, disks: &[(u32, u32)]) -> io::Result<()> {
        // Each of the machine's CPUs has a buffer of this size, also those where we may not run.
        let cpus = count_cpus(&SysRoot::default()).max(1);
        let kib = (BUFFER_KIB / cpus).max(BUFFER_KIB_MIN);
        self.set("buffer_size_kb", &kib.to_string())?;
        // A full buffer keeps what it has: the requests in it then follow each other without gaps.
        self.set("options/overwrite", "0")?;
        if !disks.is_empty() {
            // dev_t of the kernel: 12 bits for the major number, 20 for the minor.
            let mut conditions = Vec::new();
            for (major, minor) in disks {
                conditions.push(format!("dev == {}", (major << 20) | minor));
            }
            self.set(
                "events/block/block_rq_issue/filter",
                &conditions.join(" || "),
            )?;
        }
        self.set("events/block/block_rq_issue/enable", "1")?;
        self.set("tracing_on", "1")
    }

    fn set(&self, file: &str, value: &str) -> io::Result<()> {
        let mut options = File::options();
        options
            .write(true)
            .open(self.instance.join(file))?
            .write_all(value.as_bytes())
    }

    /// Takes the requests since the last call.
    pub fn read(&mut self) -> TraceBatch {
        self.collect();
        std::mem::take(&mut self.batch)
    }

    /// Empties the kernel's buffers, which hold few requests on a machine with many CPUs: a quarter
    /// of a MiB each, about 3000.
    pub fn collect(&mut self) {
        let Some(pipe) = &mut self.pipe else {
            return;
        };
        let mut buffer = vec![0; 64 << 10];
        let mut left_bytes = READ_BYTES_MAX;
        while left_bytes > 0 {
            let count = match pipe.read(&mut buffer) {
                Ok(count) if count > 0 => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                _ => break,
            };
            left_bytes = left_bytes.saturating_sub(count);
            self.unfinished.extend_from_slice(&buffer[..count]);
            let Some(end) = self.unfinished.iter().rposition(|byte| *byte == b'\n') else {
                continue;
            };
            let text = String::from_utf8_lossy(&self.unfinished[..end]).into_owned();
            self.unfinished.drain(..=end);
            self.batch.add(&text);
        }
    }
}

impl TraceBatch {
    fn add(&mut self, text: &str) {
        for line in text.lines() {
            match parse(line) {
                TraceLine::Request(_) if self.requests.len() >= REQUESTS_MAX => {
                    self.is_incomplete = true;
                }
                TraceLine::Request(request) => self.requests.push(request),
                TraceLine::Lost => self.is_incomplete = true,
                TraceLine::Other => {}
            }
        }
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

/// The CPUs of the machine, whether or not this process may use them.
fn count_cpus(root: &SysRoot) -> usize {
    let names = list(&root.sys.join("devices/system/cpu"));
    names.iter().filter(|name| is_cpu(name)).count()
}

/// True of the name of a CPU's directory, such as `cpu7`.
fn is_cpu(name: &str) -> bool {
    match name.strip_prefix("cpu") {
        Some(number) => !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()),
        None => false,
    }
}

/// A mounted tracefs; on a system without one, a private mount that is attached nowhere.
fn tracefs() -> Result<(PathBuf, Option<OwnedFd>), String> {
    if let Some(place) = PLACES
        .iter()
        .find(|place| Path::new(place).join("instances").is_dir())
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
        Err(errno) => Err(format!("this kernel has no tracefs ({errno})")),
    }
}

/// Creates an instance and opens its pipe, which keeps it from being removed.
fn create_instance(instances: &Path) -> io::Result<(PathBuf, File)> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    for _ in 0..TRIES {
        let instance = instances.join(format!(
            "{PREFIX}{}-{:016x}",
            std::process::id(),
            random_u64()
        ));
        std::fs::create_dir(&instance)?;
        match open(instance.join("trace_pipe"), flags, Mode::empty()) {
            Ok(pipe) => return Ok((instance, File::from(pipe))),
            Err(Errno::NOENT) => {}
            Err(errno) => {
                let _ = std::fs::remove_dir(&instance);
                return Err(errno.into());
            }
        }
    }
    Err(Errno::NOENT.into())
}

/// Removes the instances of processes that were killed. The kernel answers EBUSY for one whose pipe
/// is open (`instance_rmdir` in linux/kernel/trace/trace.c), so those in use stay.
fn remove_leftovers(instances: &Path) {
    for name in list(instances) {
        if is_instance_name(&name) {
            let _ = std::fs::remove_dir(instances.join(name));
        }
    }
}

fn is_instance_name(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(PREFIX) else {
        return false;
    };
    // Earlier versions used the pid alone.
    let (pid, random) = rest.split_once('-').unwrap_or((rest, "0"));
    pid.parse::<u32>().is_ok() && u64::from_str_radix(random, 16).is_ok()
}

/// Stands between the thread of a line and the event.
const EVENT_NAME: &str = ": block_rq_issue: ";
/// Ends the line that the kernel writes where a buffer was full: `CPU:1 [LOST 12 EVENTS]`.
const LOST_EVENTS_END: &str = " EVENTS]";

/// A line of the trace.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TraceLine {
    /// A request.
    Request(IssuedRequest),
    /// Requests are missing here.
    Lost,
    /// Anything else: flushes, discards, comments.
    Other,
}

pub(super) fn parse(line: &str) -> TraceLine {
    match request(line) {
        Some(request) => TraceLine::Request(request),
        None if line.ends_with(LOST_EVENTS_END) && line.contains("[LOST ") => TraceLine::Lost,
        None => TraceLine::Other,
    }
}

/// A line of the event, `fio-1234 [001] d..1. 12.345678: block_rq_issue: 7,0 R 4096 () 88 + 8
/// none,0,0 [fio]`.
fn request(line: &str) -> Option<IssuedRequest> {
    // Names of threads may hold anything, so the last name of an event counts.
    let (thread, event) = line.rsplit_once(EVENT_NAME)?;
    let (thread, _) = thread.rsplit_once(" [")?;
    let (_, pid) = thread.trim_end().rsplit_once('-')?;
    let (device, rest) = event.split_once(' ')?;
    let (major, minor) = device.split_once(',')?;
    let (flags, rest) = rest.split_once(' ')?;
    // The command of a passthrough request stands in parentheses.
    let (_, place) = rest.rsplit_once(") ")?;
    let mut words = place.split_ascii_whitespace();
    let sector = words.next()?.parse().ok()?;
    let sectors: u32 = words.nth(1)?.parse().ok()?;
    let name = place.split_once('[')?.1.trim_end().strip_suffix(']')?;
    Some(IssuedRequest {
        device: (major.parse().ok()?, minor.parse().ok()?),
        direction: direction(flags).filter(|_| sectors > 0)?,
        sector,
        sectors,
        pid: pid.parse().ok()?,
        name: name.to_owned(),
    })
}

/// blk_fill_rwbs of the kernel: `R`, `RA`, `W`, `WS`, `FWFS`; discards (`D`) and secure erases
/// (`DE`) move no data.
fn direction(flags: &str) -> Option<RequestDirection> {
    if flags.contains('D') {
        None
    } else if flags.contains('R') {
        Some(RequestDirection::Read)
    } else if flags.contains('W') {
        Some(RequestDirection::Write)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::fake_sysfs::FakeSysfs;

    #[test]
    fn all_cpus_of_the_machine_have_a_buffer() {
        let sysfs = FakeSysfs::new();
        for name in ["cpu0", "cpu1", "cpu127", "cpufreq", "cpuidle"] {
            sysfs.write_attribute(&format!("devices/system/cpu/{name}/x"), "1");
        }
        sysfs.write_attribute("devices/system/cpu/online", "0-1");
        assert_eq!(count_cpus(&sysfs.root()), 3);
        assert!(count_cpus(&SysRoot::default()) > 0);
    }

    /// A container's diskproof that was killed had pid 1, and so has the next one.
    #[test]
    fn leftovers_are_removed_whatever_their_number_is() {
        let place = tempfile::tempdir().unwrap();
        let own_pid = format!("{PREFIX}{}", std::process::id());
        let new = format!("{own_pid}-00fe");
        for name in [
            "diskproof-1",
            &own_pid,
            &new,
            "diskproof-1-00ff",
            "diskproof-mine",
            "other",
        ] {
            std::fs::create_dir(place.path().join(name)).unwrap();
        }
        // For one in use, the kernel refuses, as it does for a directory with files.
        std::fs::write(place.path().join("diskproof-1-00ff/pipe"), "").unwrap();
        remove_leftovers(place.path());
        assert_eq!(
            list(place.path()),
            ["diskproof-1-00ff", "diskproof-mine", "other"]
        );
    }

    #[test]
    fn trace_stays_while_another_one_starts() {
        let Ok(mut first) = RequestTrace::start(&[]) else {
            println!("SKIPPED: trace_stays_while_another_one_starts: no tracing");
            return;
        };
        let second = RequestTrace::start(&[]).unwrap();
        assert!(first.instance.is_dir());
        assert_ne!(first.instance, second.instance);
        first.read();
        let instances = [first.instance.clone(), second.instance.clone()];
        drop((first, second));
        for instance in instances {
            assert!(!instance.exists());
        }
    }

    #[test]
    fn batch_drops_what_is_too_much_and_says_so() {
        let line = "fio-1 [000] d..1. 1.5: block_rq_issue: 7,0 R 4096 () 88 + 8 none,0,0 [fio]\n";
        let mut batch = TraceBatch::default();
        batch.add(&line.repeat(REQUESTS_MAX));
        assert_eq!(batch.requests.len(), REQUESTS_MAX);
        assert!(!batch.is_incomplete);
        batch.add(line);
        assert_eq!(batch.requests.len(), REQUESTS_MAX);
        assert!(batch.is_incomplete);
    }

    #[test]
    fn requests_are_read_with_odd_names() {
        let line = "   a b-[x] c-77    [001] d..1.  12.3: block_rq_issue: 7,3 RA 4096 () 88 + 8 \
                    none,0,0 [a b-[x] c]";
        let expected = IssuedRequest {
            device: (7, 3),
            direction: RequestDirection::Read,
            sector: 88,
            sectors: 8,
            pid: 77,
            name: "a b-[x] c".to_owned(),
        };
        assert_eq!(parse(line), TraceLine::Request(expected));
        // Before Linux 6.0 without the priority.
        let old = "fio-9 [000] .... 1.0: block_rq_issue: 8,0 WS 512 () 1 + 1 [fio]";
        assert!(matches!(parse(old), TraceLine::Request(request)
            if request.direction == RequestDirection::Write && request.pid == 9));
    }

    #[test]
    fn flushes_discards_and_losses_are_no_requests() {
        let issue = |flags: &str, sectors: u32| {
            let request = format!("8,0 {flags} 0 () 0 + {sectors} none,0,0 [x]");
            parse(&format!("x-1 [0] . 1.0: block_rq_issue: {request}"))
        };
        assert_eq!(issue("FF", 0), TraceLine::Other);
        assert_eq!(issue("D", 8), TraceLine::Other);
        assert!(matches!(issue("FWFS", 8), TraceLine::Request(_)));
        assert_eq!(parse("CPU:1 [LOST 12 EVENTS]"), TraceLine::Lost);
    }
}
