//! Another process exchanges what the gate looks at, as fast as it can. Whatever the gate then
//! says, nothing may be written but what was released.

use crate::support::{MIB, checksum, consent, run};
use diskproof_device::{Consent, Intent, OpenTarget, Overwriting, admit, probe};
use diskproof_simdisk::testbed::{Loop, can_run, place};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long each pair is exchanged.
const LENGTH: Duration = Duration::from_secs(2);

/// Exchanges two paths until it is dropped, with pauses of every length up to a few milliseconds.
fn while_exchanging(one: &Path, other: &Path, mut attempt: impl FnMut()) {
    let (stop, exchanges) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
                let count = exchanges.fetch_add(1, Relaxed);
                std::thread::sleep(Duration::from_micros(u64::from(count % 7) * 400));
            }
        });
        // A failed attempt has to end the thread, too.
        let _end = StopAtEnd(&stop);
        let begin = Instant::now();
        while begin.elapsed() < LENGTH {
            attempt();
        }
    });
    let exchanges = exchanges.into_inner();
    assert!(exchanges > 20, "{exchanges} exchanges");
}

struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Opens what the gate lets in. `probe` itself may meet a name that is just gone.
fn open(path: &Path, intent: Intent<'_>) -> Option<OpenTarget> {
    let admission = admit(probe(path).ok()?, intent).ok()?;
    OpenTarget::open(admission).ok()
}

/// Writes to a file that the gate lets in, as a run would.
fn overwrite(path: &Path) {
    let consent = Consent {
        overwriting: Overwriting::Allowed,
        ..Consent::default()
    };
    if let Some(target) = open(path, Intent::Overwrite(&consent)) {
        rustix::io::pwrite(target.fd(), &vec![0xa5; MIB as usize], 0).unwrap();
    }
}

struct Pair {
    place: diskproof_simdisk::testbed::TempDir,
}

impl Pair {
    /// `mine/file` is released; `theirs/file` is what a case makes of it.
    fn new() -> Self {
        let place = place();
        for directory in ["mine", "theirs"] {
            let at = place.path().join(directory);
            std::fs::create_dir(&at).unwrap();
            std::fs::write(at.join("file"), vec![1; 2 * MIB as usize]).unwrap();
        }
        Self { place }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }
}

#[test]
fn gate_spares_a_hard_linked_file_while_directories_are_exchanged() {
    let pair = Pair::new();
    std::fs::hard_link(pair.file("theirs/file"), pair.file("second name")).unwrap();
    let before = checksum(&pair.file("second name"));
    while_exchanging(&pair.file("mine"), &pair.file("theirs"), || {
        overwrite(&pair.file("mine/file"));
    });
    assert_eq!(checksum(&pair.file("second name")), before);
}

#[test]
fn gate_spares_a_file_of_a_server_while_directories_are_exchanged() {
    let pair = Pair::new();
    std::fs::write(pair.file("theirs/PG_VERSION"), "17\n").unwrap();
    let held = std::fs::File::open(pair.file("theirs/file")).unwrap();
    let before = checksum(&proc_path(&held));
    // Held for reading: the test itself is no other process.
    while_exchanging(&pair.file("mine"), &pair.file("theirs"), || {
        overwrite(&pair.file("mine/file"));
    });
    assert_eq!(checksum(&proc_path(&held)), before);
}

#[test]
fn gate_spares_another_file_while_files_are_exchanged() {
    let pair = Pair::new();
    let held = std::fs::File::open(pair.file("theirs/file")).unwrap();
    std::fs::hard_link(pair.file("theirs/file"), pair.file("second name")).unwrap();
    let before = checksum(&proc_path(&held));
    while_exchanging(&pair.file("mine/file"), &pair.file("theirs/file"), || {
        overwrite(&pair.file("mine/file"));
    });
    assert_eq!(checksum(&proc_path(&held)), before);
}

#[test]
fn gate_spares_a_file_behind_a_symlink_that_takes_its_place() {
    let pair = Pair::new();
    std::fs::hard_link(pair.file("theirs/file"), pair.file("second name")).unwrap();
    std::os::unix::fs::symlink(pair.file("second name"), pair.file("link")).unwrap();
    let before = checksum(&pair.file("second name"));
    while_exchanging(&pair.file("mine/file"), &pair.file("link"), || {
        overwrite(&pair.file("mine/file"));
    });
    assert_eq!(checksum(&pair.file("second name")), before);
}

#[test]
fn gate_spares_another_device_while_nodes_are_exchanged() {
    let name = "gate_spares_another_device_while_nodes_are_exchanged";
    if !can_run(name, &["losetup", "mknod"]) {
        return;
    }
    let place = place();
    let [mine, theirs] = ["mine", "theirs"].map(|name| {
        let device = Loop::sparse(&place.path().join(format!("{name}.image")), 8 * MIB, &[]);
        let number = device.name().strip_prefix("loop").unwrap().to_owned();
        let node = place.path().join(name);
        run("mknod", &[node.to_str().unwrap(), "b", "7", &number]);
        (device, node)
    });
    let before = checksum(&theirs.0.node);
    while_exchanging(&mine.1, &theirs.1, || {
        let consent = consent(mine.0.name());
        if let Some(target) = open(&mine.1, Intent::Overwrite(&consent)) {
            let block = Aligned([0xa5; 4096]);
            rustix::io::pwrite(target.fd(), &block.0, 0).unwrap();
        }
    });
    assert_eq!(checksum(&theirs.0.node), before);
}

#[test]
fn scratch_file_stays_out_of_a_server_while_directories_are_exchanged() {
    let pair = Pair::new();
    std::fs::write(pair.file("theirs/PG_VERSION"), "17\n").unwrap();
    std::fs::create_dir(pair.file("theirs/global")).unwrap();
    std::fs::write(pair.file("theirs/global/pg_control"), "").unwrap();
    let theirs = std::fs::File::open(pair.file("theirs")).unwrap();
    let changed = || proc_path(&theirs).metadata().unwrap().modified().unwrap();
    let before = changed();
    while_exchanging(&pair.file("mine"), &pair.file("theirs"), || {
        let intent = Intent::Scratch { size_bytes: MIB };
        if let Some(target) = open(&pair.file("mine"), intent) {
            let is_theirs = target.identity().inode == inode(&proc_path(&theirs));
            assert!(!is_theirs, "a scratch file in the data directory");
        }
    });
    assert_eq!(changed(), before);
}

#[repr(align(4096))]
struct Aligned([u8; 4096]);

fn inode(path: &Path) -> u64 {
    std::os::unix::fs::MetadataExt::ino(&path.metadata().unwrap())
}

/// Leads to what is open, whatever its name is by now; of this process, so that a child can follow
/// it too.
fn proc_path(file: &std::fs::File) -> PathBuf {
    let number = std::os::fd::AsRawFd::as_raw_fd(file);
    format!("/proc/{}/fd/{number}", std::process::id()).into()
}
