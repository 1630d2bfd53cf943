//! A disk that hangs on demand, and a run on it whose output can be read while it hangs.

use super::{eventually, program};
use diskproof_model::record::Record;
use diskproof_simdisk::testbed::{Loop, Mount, TempDir, place, run};
use diskproof_simdisk::{Direct, Hanging, LoopDevice, SimDisk, spec};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const MIB: u64 = 1 << 20;
/// Requests before the disk hangs: they fill some cells, and end far before the run on any machine.
const REQUESTS: u64 = 200;
/// About a thousand reads per second for each request in flight.
const MODEL: &str = "latency=1ms";

/// A disk that can hang: a file, a loop device over it, or a filesystem on that. The fields are
/// dropped in this order.
pub(crate) struct HangingDisk {
    pub mount: Option<Mount>,
    pub node: Option<Loop>,
    pub device: Option<LoopDevice>,
    pub disk: SimDisk,
    pub place: TempDir,
}

impl Drop for HangingDisk {
    /// Not even the kernel can end processes that wait for the disk.
    fn drop(&mut self) {
        self.disk.answer_again();
    }
}

impl HangingDisk {
    pub(crate) fn file() -> Self {
        Self::of(64 * MIB)
    }

    fn of(size_bytes: u64) -> Self {
        let place = place();
        let disk = SimDisk::serve(
            spec::parse(MODEL).unwrap(),
            size_bytes,
            &place.path().join("disk"),
        )
        .unwrap();
        Self {
            mount: None,
            node: None,
            device: None,
            disk,
            place,
        }
    }

    pub(crate) fn device() -> Self {
        let mut patient = Self::file();
        patient.device = Some(LoopDevice::attach(patient.disk.path(), Direct::On, 4096).unwrap());
        patient
    }

    /// A device that --destroy can release, because no process uses it.
    pub(crate) fn spare_device() -> Self {
        Self::file().attached()
    }

    /// A device that takes long to read.
    pub(crate) fn large_device() -> Self {
        Self::of(4096 * MIB).attached()
    }

    fn attached(mut self) -> Self {
        self.node = Some(Loop::over(
            self.disk.path(),
            &["--direct-io=on", "--sector-size=4096"],
        ));
        self
    }

    /// With an ext4, large enough for the reserve of free space.
    pub(crate) fn filesystem() -> Self {
        let mut patient = Self::large_device();
        let node = patient.path().to_str().unwrap().to_owned();
        run("mkfs.ext4", &["-q", "-E", "nodiscard", &node]);
        patient.mount = Some(Mount::new(
            "ext4",
            &node,
            &patient.place.path().join("mnt"),
            "rw",
        ));
        patient
    }

    /// The mount point of its filesystem.
    pub(crate) fn directory(&self) -> &Path {
        &self.mount.as_ref().unwrap().point
    }

    /// The device name that --destroy takes.
    pub(crate) fn name(&self) -> &str {
        self.path().file_name().unwrap().to_str().unwrap()
    }

    pub(crate) fn path(&self) -> &Path {
        let node = self.node.as_ref().map(|node| node.node.as_path());
        node.or(self.device.as_ref().map(LoopDevice::path))
            .unwrap_or(self.disk.path())
    }

    /// Hangs after some requests of the run.
    pub(crate) fn hang_amid(&self) {
        self.hang_amid_at(Hanging::Everything);
    }

    /// The same for some kinds of requests only.
    pub(crate) fn hang_amid_at(&self, which: Hanging) {
        self.after(REQUESTS);
        self.disk.hang_at(which);
    }

    /// Hangs after some writes of the run: the inspection of a device only reads.
    pub(crate) fn hang_amid_writes_at(&self, which: Hanging) {
        let before = self.disk.stats().writes;
        assert!(
            eventually(|| self.disk.stats().writes > before + REQUESTS),
            "{:?}",
            self.disk.stats()
        );
        self.disk.hang_at(which);
    }

    /// Waits for this many more requests.
    pub(crate) fn after(&self, requests: u64) {
        self.after_or(requests, || false);
    }

    /// The same, or until `is_over`.
    pub(crate) fn after_or(&self, requests: u64, is_over: impl Fn() -> bool) {
        let served = || self.disk.stats().reads + self.disk.stats().writes;
        let before = served();
        assert!(
            eventually(|| served() > before + requests || is_over()),
            "{:?}",
            self.disk.stats()
        );
    }
}

/// A run that writes stderr to a file: a process that hangs in the kernel would hold a pipe open.
pub(crate) struct Running {
    pub child: Child,
    pub folder: PathBuf,
}

impl Running {
    pub(crate) fn start(place: &Path, arguments: &[&str], stall_timeout: &str) -> Self {
        Self::start_with(place, arguments, stall_timeout, |command| command)
    }

    pub(crate) fn start_with(
        place: &Path,
        arguments: &[&str],
        stall_timeout: &str,
        change: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Self {
        let folder = place.to_owned();
        let err = File::create(folder.join("err")).unwrap();
        let saved = folder.join("saved.json");
        let arguments = arguments
            .iter()
            .map(AsRef::as_ref)
            .chain(["-o".as_ref(), saved.as_os_str()]);
        let mut command = program(arguments);
        command
            .env("DISKPROOF_GIVE_UP_AFTER", stall_timeout)
            .stdout(Stdio::piped())
            .stderr(err);
        let child = change(&mut command).spawn().unwrap();
        Self { child, folder }
    }

    /// Lets the disk answer again, and checks the exit code.
    pub(crate) fn exit_after_answer(&mut self, disk: &HangingDisk, code: i32) {
        disk.disk.answer_again();
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(code), "{}", self.stderr());
    }

    pub(crate) fn stderr(&self) -> String {
        std::fs::read_to_string(self.folder.join("err")).unwrap()
    }

    /// The complete page, which appears while the disk hangs, and the saved record.
    pub(crate) fn results(&mut self) -> (String, Record) {
        let page = std::io::read_to_string(self.child.stdout.take().unwrap()).unwrap();
        let saved = std::fs::read(self.folder.join("saved.json"))
            .unwrap_or_else(|error| panic!("{error}: {page}\n{}", self.stderr()));
        (page, serde_json::from_slice(&saved).unwrap())
    }
}
