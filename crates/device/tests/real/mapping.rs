//! A device or a file that a process has in its memory and nowhere else: the descriptor is closed,
//! the mapping lives on, and what is written beneath it is lost to its owner.
#![allow(unsafe_code)]

use diskproof_device::{Consent, Intent, Overwriting, admit, probe};
use diskproof_simdisk::testbed::{Loop, can_run, place, run};
use std::io::{BufRead as _, Read as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Names what the child process has to map.
const MAPPED: &str = "DISKPROOF_TARGET_TEST_MAPPED";
const TEST: &str = "what_is_only_mapped_is_in_use";

/// The child: maps a page, closes the descriptor, says so, and lives until its parent stops
/// listening.
fn hold_mapping(path: &str) {
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    // SAFETY: a new mapping at a place that the kernel chooses; nothing ever reads or writes it,
    // and the process ends with it.
    let page = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    assert_ne!(page, libc::MAP_FAILED);
    drop(file);
    std::fs::write("/proc/self/fd/1", "mapped\n").unwrap();
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

#[test]
fn what_is_only_mapped_is_in_use() {
    if let Ok(path) = std::env::var(MAPPED) {
        return hold_mapping(&path);
    }
    if !can_run(TEST, &["losetup", "mknod"]) {
        return;
    }
    let place = place();
    let at = |name: &str| place.path().join(name);
    let device = Loop::sparse(&at("image"), 4 << 20, &[]);
    let consent = Consent {
        destroy: vec![device.name().to_owned()],
        overwriting: Overwriting::Allowed,
        ..Consent::default()
    };
    let node = at("a node");
    run(
        "mknod",
        &[
            node.to_str().unwrap(),
            "b",
            "7",
            device.name().strip_prefix("loop").unwrap(),
        ],
    );
    std::fs::write(at("file"), vec![1; 4 << 20]).unwrap();
    let file = at("file");
    // The device itself, another node of it, the file behind it, and a file that is no disk.
    let cases: [(&Path, &Path); 4] = [
        (&device.node, &device.node),
        (&node, &device.node),
        (&at("image"), &device.node),
        (&file, &file),
    ];
    for (mapped, target) in cases {
        let refusal = || {
            admit(probe(target).unwrap(), Intent::Overwrite(&consent))
                .err()
                .map(|refusal| refusal.reasons.join("\n"))
        };
        assert_eq!(refusal(), None, "no process has it yet");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "mapping::what_is_only_mapped_is_in_use",
                "--nocapture",
            ])
            .env(MAPPED, mapped)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("mapped")));
        let refused = refusal().unwrap_or_default();
        drop(child.stdin.take());
        child.wait().unwrap();
        let expected = format!("is mapped into memory by process {} ", child.id());
        assert!(
            refused.contains(&expected),
            "{}: {refused}",
            mapped.display()
        );
    }
}
