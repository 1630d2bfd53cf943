//! A disk that stops answering when it is told to, and a run whose words are read although it is
//! stuck on it.

use super::{eventually, program};
use diskproof_model::record::Record;
use diskproof_simdisk::testbed::{Loop, Mount, TempDir, place, run};
use diskproof_simdisk::{Direct, Hanging, LoopDevice, SimDisk, spec};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const MIB: u64 = 1 << 20;
/// Requests after which the disk hangs: some cells full, and far from the end of the run on any
/// machine.
const REQUESTS: u64 = 200;
/// A disk of about a thousand reads a second and request in flight.
const MODEL: &str = "latency=1ms";

/// A disk that may hang, as a file, as a loop device over it, or with a filesystem on that; dropped
/// in this order.
pub struct Patient {
    pub mount: Option<Mount>,
    pub node: Option<Loop>,
    pub device: Option<LoopDevice>,
    pub disk: SimDisk,
    pub place: TempDir,
}

impl Drop for Patient {
    /// Nobody, not even the kernel, gets rid of what waits for it.
    fn drop(&mut self) {
        self.disk.answer_again();
    }
}

impl Patient {
    pub fn file() -> Self {
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

    pub fn device() -> Self {
        let mut patient = Self::file();
        patient.device = Some(LoopDevice::attach(patient.disk.path(), Direct::On, 4096).unwrap());
        patient
    }

    /// As a device that may be given up: this one is not held by anybody.
    pub fn spare_device() -> Self {
        Self::file().attached()
    }

    /// One that takes its time to be read.
    pub fn large_device() -> Self {
        Self::of(4096 * MIB).attached()
    }

    fn attached(mut self) -> Self {
        self.node = Some(Loop::over(
            self.disk.path(),
            &["--direct-io=on", "--sector-size=4096"],
        ));
        self
    }

    /// With an ext4 on it, large enough for what has to stay free.
    pub fn filesystem() -> Self {
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

    /// Root of its filesystem.
    pub fn directory(&self) -> &Path {
        &self.mount.as_ref().unwrap().point
    }

    /// Name of its device, which gives it up.
    pub fn name(&self) -> &str {
        self.path().file_name().unwrap().to_str().unwrap()
    }

    pub fn path(&self) -> &Path {
        let node = self.node.as_ref().map(|node| node.node.as_path());
        node.or(self.device.as_ref().map(LoopDevice::path))
            .unwrap_or(self.disk.path())
    }

    /// Hangs once it has served some requests of the run.
    pub fn hang_amid(&self) {
        self.hang_amid_at(Hanging::Everything);
    }

    /// The same, but for what it still answers.
    pub fn hang_amid_at(&self, which: Hanging) {
        self.after(REQUESTS);
        self.disk.hang_at(which);
    }

    /// Waits until it has served so many more requests.
    pub fn after(&self, requests: u64) {
        let served = || self.disk.stats().reads + self.disk.stats().writes;
        let before = served();
        assert!(
            eventually(|| served() > before + requests),
            "{:?}",
            self.disk.stats()
        );
    }
}

/// A run whose words go to files: what is stuck in the kernel holds a pipe open.
pub struct Running {
    pub child: Child,
    pub folder: PathBuf,
}

impl Running {
    pub fn start(place: &Path, words: &[&str], give_up_after: &str) -> Self {
        Self::start_with(place, words, give_up_after, |command| command)
    }

    pub fn start_with(
        place: &Path,
        words: &[&str],
        give_up_after: &str,
        change: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Self {
        let folder = place.to_owned();
        let err = File::create(folder.join("err")).unwrap();
        let saved = folder.join("saved.json");
        let words = words
            .iter()
            .map(AsRef::as_ref)
            .chain(["-o".as_ref(), saved.as_os_str()]);
        let mut command = program(words);
        command
            .env("DISKPROOF_GIVE_UP_AFTER", give_up_after)
            .stdout(Stdio::piped())
            .stderr(err);
        let child = change(&mut command).spawn().unwrap();
        Self { child, folder }
    }

    pub fn told(&self) -> String {
        std::fs::read_to_string(self.folder.join("err")).unwrap()
    }

    /// The page up to its end, which comes although the disk still hangs, and the record that was
    /// saved.
    pub fn results(&mut self) -> (String, Record) {
        let page = std::io::read_to_string(self.child.stdout.take().unwrap()).unwrap();
        let saved = std::fs::read(self.folder.join("saved.json"))
            .unwrap_or_else(|error| panic!("{error}: {page}\n{}", self.told()));
        (page, serde_json::from_slice(&saved).unwrap())
    }
}
