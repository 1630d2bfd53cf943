//! What these tests share: their own disk, the gate's answer for it, and other programs.

use diskproof_device::{
    Admission, Consent, Intent, OpenTarget, Overwriting, UnknownContent, admit, probe,
};
use diskproof_simdisk::testbed::{Loop, TempDir, place};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;

/// A loop device over a sparse file. Partitions that the kernel was told of, and write protection,
/// outlive it, so they are taken back first.
pub(crate) struct Disk {
    pub(crate) device: Loop,
    pub(crate) image: PathBuf,
    pub(crate) place: TempDir,
}

impl Disk {
    pub(crate) fn new(size_bytes: u64) -> Self {
        let place = place();
        let image = place.path().join("image");
        Self {
            device: Loop::sparse(&image, size_bytes, &[]),
            image,
            place,
        }
    }

    pub(crate) fn node(&self) -> &str {
        self.device.node.to_str().unwrap()
    }

    pub(crate) fn consent(&self) -> Consent {
        consent(self.device.name())
    }

    pub(crate) fn admit(&self) -> Result<Admission, Vec<String>> {
        admitted(&self.device.node, &self.consent())
    }

    pub(crate) fn checksum(&self) -> String {
        run("blockdev", &["--flushbufs", self.node()]);
        checksum(&self.device.node)
    }

    /// The reasons; the device has not changed.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let before = self.checksum();
        let reasons = self.admit().err().unwrap_or_default();
        assert_eq!(self.checksum(), before, "the gate must not write");
        reasons
    }

    pub(crate) fn assert_refused(&self, what: &str, parts: &[&str]) {
        let reasons = self.reasons();
        assert!(
            parts
                .iter()
                .all(|part| reasons.iter().any(|reason| reason.contains(part))),
            "{what}: {parts:?} in {reasons:#?}"
        );
    }

    /// It is let in, unexplained data zeroed, and what is written to it arrives.
    pub(crate) fn assert_writable(&self) {
        let consent = Consent {
            unknown: UnknownContent::Wipe,
            ..self.consent()
        };
        // Who passes by between the gate and the opening is a reason again.
        let opened = (0..600).find_map(|_| {
            let admission = admitted(&self.device.node, &consent);
            match OpenTarget::open(admission.unwrap_or_else(|reasons| panic!("{reasons:#?}"))) {
                Err(error) if error.to_string().contains(" is held open by process ") => None,
                opened => Some(opened.unwrap()),
            }
        });
        let target = opened.expect("no process holds it open all the time");
        assert!(target.is_writable() && !target.is_scratch());
        assert_eq!(
            (target.usable_bytes(), target.capacity_bytes()),
            (target.identity().size_bytes, target.identity().size_bytes)
        );
        target.wipe_unknown().unwrap();
        let mut block = vec![0; 8192];
        let start = block.as_ptr().align_offset(4096);
        block[start..start + 4096].fill(0xa5);
        assert_eq!(
            rustix::io::pwrite(target.fd(), &block[start..start + 4096], 2 * MIB),
            Ok(4096)
        );
        target.write_back().unwrap();
        drop(target);
        let mut read = [0; 4096];
        std::fs::File::open(&self.device.node)
            .unwrap()
            .read_exact_at(&mut read, 2 * MIB)
            .unwrap();
        assert!(read.iter().all(|byte| *byte == 0xa5));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("blockdev")
            .args(["--setrw", self.node()])
            .status();
        let _ = Command::new("partx")
            .args(["--delete", self.node()])
            .stderr(Stdio::null())
            .status();
    }
}

pub(crate) fn consent(name: &str) -> Consent {
    Consent {
        destroy: vec![name.to_owned()],
        ..Consent::default()
    }
}

pub(crate) fn overwriting(path: &Path) -> Result<Admission, Vec<String>> {
    admitted(
        path,
        &Consent {
            overwriting: Overwriting::Allowed,
            ..Consent::default()
        },
    )
}

/// The answer of the gate. Programs that look into every block device (`pvcreate`, `blkid` and
/// `lsblk` of other tests, of other users of the machine) have this one open for a moment, too,
/// which is a reason against it; so it is asked again until they are gone. Who holds one here on
/// purpose is a shell.
pub(crate) fn admitted(path: &Path, consent: &Consent) -> Result<Admission, Vec<String>> {
    let passes_by =
        |reason: &String| reason.contains(" is held open by process ") && !reason.contains("(sh)");
    for _ in 0..600 {
        let answer = admit(probe(path).unwrap(), Intent::Overwrite(consent)).map_err(|refusal| {
            assert_eq!(refusal.remedy, "Nothing was written.");
            refusal.reasons
        });
        match answer {
            Err(reasons) if reasons.iter().any(passes_by) => {
                std::thread::sleep(std::time::Duration::from_millis(50))
            }
            answer => return answer,
        }
    }
    panic!(
        "{}: another process holds it open all the time",
        path.display()
    )
}

/// Runs a program; its output, or a panic with what it said. Another test may be starting a
/// process, which until its exec shares this one's claims on devices: what is busy is tried again.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    for attempt in 0.. {
        let output = Command::new(program)
            .args(arguments)
            .output()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        if output.status.success() {
            return String::from_utf8(output.stdout).unwrap().trim().to_owned();
        }
        let is_busy = ["busy", "in use", "exclusively", "error deleting partition"]
            .iter()
            .any(|word| said.contains(word));
        assert!(
            is_busy && attempt < 600,
            "{program} {arguments:?}: {}: {said}",
            output.status
        );
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    unreachable!("it tries until it succeeds or fails")
}

/// The CRC of a file or device, as cksum(1) computes it: on devices of hundreds of megabytes
/// sha256sum(1) takes ten times as long.
pub(crate) fn checksum(path: &Path) -> String {
    let printed = run("cksum", &[path.to_str().unwrap()]);
    printed.split(' ').next().unwrap().to_owned()
}

pub(crate) fn shell(command: &str) {
    run("sh", &["-c", command]);
}

/// Does what the refusal of a mark says, in full, until nothing speaks against the device any more.
pub(crate) fn follow(disk: &Disk, what: &str) {
    let mut last = Vec::new();
    let mut consent = disk.consent();
    for _ in 0..12 {
        let reasons = match admitted(&disk.device.node, &consent) {
            Ok(_) => return,
            Err(reasons) => reasons,
        };
        for reason in &reasons {
            let step = reason.split_once(" → ").unwrap().1;
            if step.contains("add --wipe-unknown") {
                consent.unknown = UnknownContent::Wipe;
                continue;
            }
            assert!(
                step.starts_with("after saving what it holds"),
                "{what}: no command: {reason}"
            );
            let step = step.split_once(": ").unwrap().1;
            let (first, second) = step
                .split_once("; where that finds nothing: ")
                .unwrap_or((step, step));
            shell(&format!(
                "{} 2>&1",
                if last.contains(reason) {
                    second
                } else {
                    first.split(", or ").next().unwrap()
                }
            ));
        }
        last = reasons;
    }
    panic!("{what}: the commands lead nowhere: {last:#?}");
}

/// Ended when dropped, on failure too.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    /// A shell command that has said a line once it is where it should be.
    pub(crate) fn start(command: &str) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::BufRead::read_line(
            &mut std::io::BufReader::new(child.stdout.as_mut().unwrap()),
            &mut String::new(),
        )
        .unwrap();
        Self(child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Its end of input ends `read`, and with it what runs inside a namespace.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

pub(crate) fn scratch(directory: &Path, size_bytes: u64) -> OpenTarget {
    OpenTarget::open(admit(probe(directory).unwrap(), Intent::Scratch { size_bytes }).unwrap())
        .unwrap()
}

pub(crate) fn reader(path: &Path) -> OpenTarget {
    OpenTarget::open(admit(probe(path).unwrap(), Intent::Read).unwrap()).unwrap()
}

pub(crate) fn refusal(path: &Path, intent: Intent) -> String {
    admit(probe(path).unwrap(), intent).unwrap_err().to_string()
}

/// A vector whose first byte is aligned to a page.
pub(crate) fn aligned(memory: &mut Vec<u8>, length: usize) -> &mut [u8] {
    memory.resize(length + 4096, 7);
    let start = memory.as_ptr().align_offset(4096);
    &mut memory[start..start + length]
}

pub(crate) fn write(target: &mut OpenTarget, offset: u64, length: u64) {
    let mut memory = Vec::new();
    let written =
        rustix::io::pwrite(target.fd(), aligned(&mut memory, length as usize), offset).unwrap();
    assert_eq!(written as u64, length);
    target.mark_written(offset + length);
}
