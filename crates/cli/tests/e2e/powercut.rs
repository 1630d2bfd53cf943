//! `diskproof powercut` from the outside: the log, the writer and the verifier, on directories and
//! on disks that nbdkit's cache filter makes honest or lying. A power cut is a `kill -9` of nbdkit.

use crate::program::hanging_disk::HangingDisk;
use crate::program::{Ran, argv, content_hash, has_ended, names, needs, program, random_file, run};
use diskproof_simdisk::testbed::{Disk, Loop, place};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// A started program whose stderr is read line by line. Killed when dropped.
struct Started {
    child: Child,
    err: BufReader<ChildStderr>,
}

impl Started {
    fn new(words: &[&str]) -> Self {
        let mut child = program(["powercut"].iter().chain(words))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let err = BufReader::new(child.stderr.take().unwrap());
        Self { child, err }
    }

    /// Reads stderr up to the line that contains this.
    fn wait_for(&mut self, text: &str) -> String {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            let read = self.err.read_line(&mut line).unwrap();
            assert!(read > 0, "it ended before it printed '{text}'");
        }
        line
    }

    /// Waits for its end; the exit code and the rest of stderr.
    fn end(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.err.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A log on loopback, and its address.
fn serve(folder: &Path) -> (Started, String) {
    let log = folder.join("log");
    let words = format!("serve --listen 127.0.0.1:0 --log {}", log.display());
    let words = argv(&words);
    let mut server = Started::new(&words);
    let line = server.wait_for("listens on");
    let address = line
        .split_whitespace()
        .find(|word| word.starts_with("127.0.0.1:"));
    let address = address.unwrap().trim_end_matches(',').to_owned();
    (server, address)
}

fn verify(target: &Path, server: &str, flags: &[&str]) -> Ran {
    let words = format!("powercut verify {} --server {server}", target.display());
    let words = argv(&words);
    run(words.iter().chain(flags))
}

fn report(ran: &Ran) -> Value {
    let document: Value = serde_json::from_str(&ran.out)
        .unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err));
    document["report"].clone()
}

/// How many writes the log of the newest run knows, without the control pages. None yet where the
/// writer, which goes on, changed what was being read.
fn acknowledged(target: &Path, server: &str) -> u64 {
    let ran = verify(target, server, &["--json"]);
    let Ok(document) = serde_json::from_str::<Value>(&ran.out) else {
        return 0;
    };
    let Some(streams) = document["report"]["streams"].as_array() else {
        return 0;
    };
    streams
        .iter()
        .filter_map(|stream| stream["acknowledged"].as_u64())
        .sum()
}

#[test]
fn rehearsal_judges_ten_of_ten_cuts_rightly() {
    let ran = run(["powercut", "rehearse"]);
    ran.exits(0).tells_nothing().shows("10 of 10 ");
    ran.fits_80_columns();
    let json = run(argv("powercut rehearse --seed 7 --cuts 1 --json"));
    let document: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(document["schema"], "diskproof.powercut-rehearsal/1");
    let cuts = document["cuts"].as_array().unwrap();
    assert_eq!(cuts.len(), 5);
    // Each cut of a disk has the next seed.
    let two = run(argv("powercut rehearse --seed 6 --cuts 2 --json"));
    let of_two: Value = serde_json::from_str(&two.out).unwrap();
    assert_eq!(of_two["cuts"][1], cuts[0]);
    assert_ne!(of_two["cuts"][0], of_two["cuts"][1]);
}

#[test]
fn writer_that_is_stopped_leaves_nothing_and_proves_nothing() {
    let (here, logs) = (place(), place());
    let (_server, address) = serve(logs.path());
    let target = here.path().to_str().unwrap();
    let mut writer = Started::new(&["write", target, "--server", &address]);
    writer.wait_for("CUT THE POWER");
    let pid = Pid::from_child(&writer.child);
    assert!(crate::program::eventually(|| !names(here.path()).is_empty()));
    assert!(crate::program::eventually(|| acknowledged(
        here.path(),
        &address
    ) > 20));
    kill_process(pid, Signal::INT).unwrap();
    let (code, err) = writer.end();
    assert_eq!(code, Some(130), "{err}");
    assert!(err.contains("stopped without"), "{err}");
    assert!(names(here.path()).is_empty());
    let ran = verify(here.path(), &address, &[]);
    ran.exits(5).shows_first("NOT PROVEN");
    ran.shows("stopped before");
}

#[test]
fn files_of_another_program_in_the_directory_of_a_writer_stay() {
    let (here, logs) = (place(), place());
    let (_server, address) = serve(logs.path());
    let target = here.path().to_str().unwrap();
    let mut writer = Started::new(&["write", target, "--server", &address]);
    writer.wait_for("CUT THE POWER");
    let own = here.path().join(&names(here.path())[0]);
    // Two of them have names that the writer gives, too.
    let theirs = ["entry-777777", "file-777777", "notes"];
    for name in theirs {
        std::fs::write(own.join(name), "data").unwrap();
    }
    kill_process(Pid::from_child(&writer.child), Signal::INT).unwrap();
    let (code, err) = writer.end();
    assert_eq!(code, Some(130), "{err}");
    assert!(err.contains(own.to_str().unwrap()), "{err}");
    assert_eq!(names(&own), theirs);
    for name in theirs {
        assert_eq!(std::fs::read(own.join(name)).unwrap(), b"data");
    }
}

/// True if a thread of the process waits for a disk.
fn has_held_thread(process: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    tasks.flatten().any(|task| {
        std::fs::read_to_string(task.path().join("status"))
            .is_ok_and(|status| status.lines().any(|line| line.starts_with("State:\tD")))
    })
}

/// Its power may have been cut, so that its log must not say that it was stopped.
#[test]
fn writer_that_is_interrupted_while_its_disk_hangs_has_not_stopped() {
    needs!("fusermount3", "losetup");
    let patient = HangingDisk::spare_device();
    let logs = place();
    let (_server, address) = serve(logs.path());
    let node = patient.path();
    let words = ["write", node.to_str().unwrap(), "--server", &address];
    let released = ["--destroy", patient.name()];
    let mut writer = Started::new(&[&words[..], &released].concat());
    writer.wait_for("CUT THE POWER");
    patient.disk.hang();
    // A request that was answered just before does not wait at the second look.
    let is_held = || has_held_thread(writer.child.id());
    assert!(crate::program::eventually(is_held));
    std::thread::sleep(Duration::from_millis(100));
    assert!(crate::program::eventually(is_held));
    kill_process(Pid::from_child(&writer.child), Signal::INT).unwrap();
    // The process stays as long as the disk holds its threads.
    assert!(crate::program::eventually(|| has_ended(writer.child.id())));
    patient.disk.answer_again();
    let (code, err) = writer.end();
    assert_eq!(code, Some(4), "{err}");
    assert!(err.contains("reconnect it and verify"), "{err}");
    let ran = verify(node, &address, &["--json"]);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(document["end"], "silence", "{document}");
}

/// The disk hangs before the target is opened, and while its pages are read.
#[test]
fn verify_of_a_disk_that_hangs_ends() {
    needs!("fusermount3", "losetup");
    let patient = HangingDisk::spare_device();
    let logs = place();
    let (_server, address) = serve(logs.path());
    let node = patient.path().to_str().unwrap();
    let words = ["write", node, "--server", &address];
    let released = ["--destroy", patient.name()];
    let mut writer = Started::new(&[&words[..], &released].concat());
    writer.wait_for("CUT THE POWER");
    writer.child.kill().unwrap();
    drop(writer);
    let verify = || {
        let mut command = program(["powercut", "verify", node, "--server", &address]);
        let limited = command.env("DISKPROOF_GIVE_UP_AFTER", "2s");
        limited
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    for hangs_before in [true, false] {
        if hangs_before {
            patient.disk.hang();
        }
        let mut verifying = verify();
        if !hangs_before {
            patient.hang_amid();
        }
        // The process stays as long as the disk holds its thread.
        assert!(crate::program::eventually(|| has_ended(verifying.id())));
        patient.disk.answer_again();
        assert_eq!(verifying.wait().unwrap().code(), Some(4));
    }
}

/// Nothing is known about the writes of a disk whose power or cable is not back yet.
#[test]
fn disk_that_is_gone_at_the_verification_is_no_verdict() {
    needs!("fusermount3", "losetup", "mkfs.ext4");
    for patient in [HangingDisk::spare_device(), HangingDisk::filesystem()] {
        let logs = place();
        let (_server, address) = serve(logs.path());
        let (target, released) = match &patient.mount {
            Some(mount) => (mount.point.clone(), vec![]),
            None => (patient.path().to_owned(), vec!["--destroy", patient.name()]),
        };
        let words = ["write", target.to_str().unwrap(), "--server", &address];
        let mut writer = Started::new(&[&words[..], &released].concat());
        writer.wait_for("CUT THE POWER");
        assert!(crate::program::eventually(|| acknowledged(
            &target, &address
        ) > 50));
        drop(writer);
        let flags = ["--same-target", "--json"];
        assert_eq!(
            report(&verify(&target, &address, &flags))["verdict"],
            "not-proven"
        );
        patient.disk.vanish();
        verify(&target, &address, &flags).exits(4).shows_nothing();
    }
}

#[test]
fn writer_that_is_killed_on_a_kept_disk_shows_that_nothing_vanished() {
    let (here, logs) = (place(), place());
    let (server, address) = serve(logs.path());
    let target = here.path().to_str().unwrap();
    let flags = ["--workers", "2", "--method", "open_datasync"];
    let mut writer = Started::new(&[&["write", target, "--server", &address][..], &flags].concat());
    writer.wait_for("CUT THE POWER");
    assert!(crate::program::eventually(|| acknowledged(
        here.path(),
        &address
    ) > 50));
    drop(writer);
    // The log is another process by now.
    drop(server);
    let (_server, address) = serve(logs.path());
    let before = hashes(here.path());
    let ran = verify(here.path(), &address, &["--json"]);
    let found = report(&ran);
    assert_eq!(
        (ran.code, &found["verdict"]),
        (Some(5), &"not-proven".into()),
        "{found}"
    );
    assert_eq!(found["lost_seconds"], 0.0);
    assert_eq!(found["has_restarted"], false);
    for stream in found["streams"].as_array().unwrap() {
        assert_eq!(
            (&stream["lost"], &stream["torn"]),
            (&0.into(), &0.into()),
            "{found}"
        );
    }
    ran.tells("rm -r");
    assert_eq!(hashes(here.path()), before, "verify only reads");
}

/// Of every file below a directory.
fn hashes(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(hashes(&path));
        } else {
            let hash = content_hash(&path);
            all.push((path, hash));
        }
    }
    all.sort();
    all
}

#[test]
fn acknowledged_page_that_is_gone_is_found_and_dated() {
    let (here, logs) = (place(), place());
    let (_server, address) = serve(logs.path());
    let target = here.path().to_str().unwrap();
    let mut writer = Started::new(&["write", target, "--server", &address]);
    writer.wait_for("CUT THE POWER");
    assert!(crate::program::eventually(|| acknowledged(
        here.path(),
        &address
    ) > 50));
    drop(writer);
    let run_folder = here.path().join(&names(here.path())[0]);
    let pages = File::options()
        .write(true)
        .open(run_folder.join("pages"))
        .unwrap();
    // The third page becomes the fourth's neighbour of an older time: zeros.
    std::os::unix::fs::FileExt::write_all_at(&pages, &[0; 8192], 2 * 8192).unwrap();
    std::fs::remove_file(run_folder.join("file-0")).unwrap();
    let ran = verify(here.path(), &address, &["--json"]);
    let found = report(&ran);
    assert_eq!(
        (ran.code, &found["verdict"]),
        (Some(1), &"lying".into()),
        "{found}"
    );
    assert!(found["lost_seconds"].as_f64().unwrap() > 0.0, "{found}");
    let page = verify(here.path(), &address, &[]);
    page.shows_first("LYING: ").fits_80_columns();
}

#[test]
fn writer_stops_when_its_log_is_gone_and_never_starts_without_one() {
    let (here, logs) = (place(), place());
    let target = here.path().to_str().unwrap();
    let ran = run(["powercut", "write", target, "--server", "127.0.0.1:1"]);
    ran.exits(4).tells("127.0.0.1:1");
    assert!(names(here.path()).is_empty());
    let (server, address) = serve(logs.path());
    let mut writer = Started::new(&["write", target, "--server", &address]);
    writer.wait_for("CUT THE POWER");
    drop(server);
    let (code, err) = writer.end();
    assert_eq!(code, Some(4), "{err}");
    assert!(err.contains("was lost"), "{err}");
    // The log knows of no stop, so that without the files the disk would have lost its writes.
    let own = names(here.path());
    assert_eq!(own.len(), 1);
    assert!(err.contains(&own[0]), "{err}");
    let (_server, address) = serve(logs.path());
    let ran = verify(here.path(), &address, &["--json", "--same-target"]);
    assert_eq!(
        (ran.code, &report(&ran)["verdict"]),
        (Some(5), &"not-proven".into()),
        "{}",
        ran.out
    );
    ran.tells("rm -r");
}

/// The writes that come after the log was read remove names that it acknowledges.
#[test]
fn verify_of_a_run_that_goes_on_proves_nothing() {
    let (here, logs) = (place(), place());
    let (_server, address) = serve(logs.path());
    let target = here.path().to_str().unwrap();
    let mut writer = Started::new(&["write", target, "--server", &address]);
    writer.wait_for("CUT THE POWER");
    for _ in 0..5 {
        let ran = verify(here.path(), &address, &["--json"]);
        // Or the writer changed what was being read.
        assert!(matches!(ran.code, Some(4 | 5)), "{}{}", ran.out, ran.err);
    }
}

#[test]
fn what_was_not_released_is_refused_and_stays() {
    let (here, logs) = (place(), place());
    let (_server, address) = serve(logs.path());
    let file = here.path().join("file");
    random_file(&file, 32 * MIB);
    let before = content_hash(&file);
    let words = format!("powercut write {} --server {address}", file.display());
    let words = argv(&words);
    let ran = run(words);
    ran.exits(3);
    assert_eq!(content_hash(&file), before);
    let small = here.path().join("small");
    random_file(&small, 2 * MIB);
    let words = format!(
        "powercut write {} --server {address} --overwrite",
        small.display()
    );
    let words = argv(&words);
    let ran = run(words);
    ran.exits(4).tells("too few");
    let other = verify(&file, &address, &[]);
    other.exits(2).tells("such run");
}

#[test]
fn target_that_is_as_before_the_run_has_lost_everything() {
    let place = place();
    let (logs, file) = (place.path().join("logs"), place.path().join("pages"));
    random_file(&file, 16 << 20);
    let before = std::fs::read(&file).unwrap();
    let (_server, address) = serve(&logs);
    let path = file.to_str().unwrap();
    let mut writer = Started::new(&["write", path, "--server", &address, "--overwrite"]);
    writer.wait_for("CUT THE POWER");
    assert!(crate::program::eventually(
        || acknowledged(&file, &address) > 10
    ));
    writer.child.kill().unwrap();
    writer.end();
    // In place, so that the file stays the same one.
    let put = |content: &[u8]| {
        let mut open = std::fs::File::options().write(true).open(&file).unwrap();
        open.write_all(content).unwrap();
    };
    put(&before);
    let ran = verify(&file, &address, &["--json"]);
    let found = report(&ran);
    assert_eq!((ran.code, &found["verdict"]), (Some(1), &"lying".into()));
    assert_eq!(
        found["streams"][0]["lost"],
        found["streams"][0]["acknowledged"]
    );
    // Another content proves nothing; the result has the command that decides.
    put(&vec![0; before.len()]);
    let ran = verify(&file, &address, &["--json"]);
    assert_eq!(
        (ran.code, &report(&ran)["reason"]),
        (Some(5), &"no-trace".into())
    );
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    let words = document["command"].as_str().unwrap().split(' ').skip(1);
    let decided = run(words.chain(["--json"]));
    assert_eq!(report(&decided)["verdict"], "lying", "{}", decided.err);
}

/// Leaves this share of a filesystem free.
fn leave_free(disk: &Disk, share: f64) {
    let fill = disk.path().join("fill");
    let _ = std::fs::remove_file(&fill);
    let found = rustix::fs::statvfs(disk.path()).unwrap();
    let kept = (found.f_blocks as f64 * share) as u64;
    let bytes = found.f_bavail.saturating_sub(kept) * found.f_frsize;
    let file = File::create(fill).unwrap();
    rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, bytes).unwrap();
}

#[test]
fn log_leaves_a_reserve_on_a_filesystem_that_fills_up() {
    needs!("losetup", "mkfs.ext4");
    let (here, there, disk) = (place(), place(), Disk::new("ext4", 256 * MIB, "defaults"));
    let (_server, address) = serve(disk.path());
    let write =
        |target: &Path| Started::new(&["write", target.to_str().unwrap(), "--server", &address]);
    let mut writer = write(here.path());
    writer.wait_for("CUT THE POWER");
    let passes = |count: u64| {
        let has_passed = || acknowledged(here.path(), &address) > count;
        crate::program::eventually(has_passed)
    };
    assert!(passes(20));
    // No room for a new run, but for the present one.
    leave_free(&disk, 0.075);
    let (code, err) = write(there.path()).end();
    assert_eq!(code, Some(4), "{err}");
    assert!(err.contains("nearly full"), "{err}");
    assert!(names(there.path()).is_empty());
    assert!(passes(acknowledged(here.path(), &address)));
    // Not for that either: what it has reported stays readable, and the reserve free.
    leave_free(&disk, 0.04);
    let (code, err) = writer.end();
    assert_eq!(code, Some(4), "{err}");
    assert!(acknowledged(here.path(), &address) > 20);
    let found = rustix::fs::statvfs(disk.path()).unwrap();
    assert!(found.f_bavail * 100 > found.f_blocks * 3);
    std::fs::remove_file(disk.path().join("fill")).unwrap();
    write(there.path()).wait_for("CUT THE POWER");
}

#[test]
fn token_that_others_can_read_is_warned_about() {
    let place = place();
    let file = place.path().join("token");
    std::fs::write(&file, "0123456789abcdef").unwrap();
    for (mode, warned) in [(0o604, true), (0o640, true), (0o622, false), (0o600, false)] {
        std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        let words = argv("powercut verify . --server 127.0.0.1:1 --token-file");
        let ran = run(words.into_iter().chain([file.to_str().unwrap()]));
        assert_eq!(ran.err.contains("chmod 600"), warned, "{}", ran.err);
    }
}

#[test]
fn other_addresses_than_loopback_need_a_token() {
    let ran = run(["powercut", "serve", "--listen", "0.0.0.0:0"]);
    ran.exits(2).tells("openssl rand -hex 16");
}

/// A disk behind nbdkit's cache filter: block device, loop, FUSE, nbdkit, image.
struct NbdDisk {
    folder: PathBuf,
    mode: &'static str,
    layers: Option<(Loop, Child, Child)>,
}

impl NbdDisk {
    fn new(folder: &Path, mode: &'static str) -> Self {
        File::create(folder.join("image"))
            .unwrap()
            .set_len(256 * MIB)
            .unwrap();
        std::fs::create_dir(folder.join("fuse")).unwrap();
        let mut disk = Self {
            folder: folder.to_owned(),
            mode,
            layers: None,
        };
        disk.power_on();
        disk
    }

    fn power_on(&mut self) {
        let (socket, fuse) = (self.folder.join("socket"), self.folder.join("fuse"));
        let _ = std::fs::remove_file(&socket);
        let mode = format!("cache={}", self.mode);
        let kit = Command::new("nbdkit")
            .args(["--foreground", "--unix", socket.to_str().unwrap()])
            .args([
                "--filter=cache",
                "file",
                self.folder.join("image").to_str().unwrap(),
                &mode,
            ])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        assert!(crate::program::eventually(|| socket.exists()));
        let file = fuse.join("disk");
        let mount = Command::new("nbdfuse")
            .arg(&file)
            .arg(format!("nbd+unix:///?socket={}", socket.display()))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        assert!(crate::program::eventually(|| file.exists()));
        let device = Loop::over(&file, &["--direct-io=on"]);
        self.layers = Some((device, mount, kit));
    }

    fn device(&self) -> &Loop {
        &self.layers.as_ref().unwrap().0
    }

    /// The cache of nbdkit is in a file without a name, which dies with it.
    fn cut(&mut self) {
        if let Some((device, mut mount, mut kit)) = self.layers.take() {
            let _ = kit.kill();
            let _ = kit.wait();
            drop(device);
            let point = self.folder.join("fuse");
            let unmounted = || {
                let umount = Command::new("umount")
                    .arg(&point)
                    .stderr(Stdio::null())
                    .status();
                umount.is_ok_and(|status| status.success()) || !point.join("disk").exists()
            };
            let _ = crate::program::eventually(unmounted);
            let _ = mount.kill();
            let _ = mount.wait();
        }
    }
}

impl Drop for NbdDisk {
    fn drop(&mut self) {
        self.cut();
    }
}

/// Cuts the power of a disk behind nbdkit while it is written, and verifies it.
fn cut_nbdkit(mode: &'static str, flags: &[&str]) -> (Option<i32>, Value) {
    let (here, logs) = (place(), place());
    let (_server, address) = serve(logs.path());
    let mut disk = NbdDisk::new(here.path(), mode);
    let (node, name) = (disk.device().node.clone(), disk.device().name().to_owned());
    let words = format!(
        "write {} --server {address} --destroy {name}",
        node.display()
    );
    let words = argv(&words);
    let mut writer = Started::new(&words);
    writer.wait_for("CUT THE POWER");
    assert!(crate::program::eventually(
        || acknowledged(&node, &address) > 100
    ));
    if let Some((_, _, kit)) = &mut disk.layers {
        kit.kill().unwrap();
    }
    let (code, err) = writer.end();
    assert_eq!(code, Some(4), "{err}");
    disk.cut();
    disk.power_on();
    let node = disk.device().node.clone();
    let log_of = ["--json", "--same-target", "--run"];
    let id = newest_run(&logs.path().join("log"));
    let ran = verify(&node, &address, &[&log_of[..], &[&id], flags].concat());
    (ran.code, report(&ran))
}

fn newest_run(folder: &Path) -> String {
    names(folder)[0].trim_end_matches(".powercut").to_owned()
}

#[test]
fn nbdkit_that_ignores_flushes_is_found_lying() {
    needs!("losetup", "nbdkit", "nbdfuse");
    let (code, found) = cut_nbdkit("unsafe", &[]);
    assert_eq!(
        (code, &found["verdict"]),
        (Some(1), &"lying".into()),
        "{found}"
    );
    // Its cache held everything.
    let pages = &found["streams"][0];
    assert_eq!(pages["lost"], pages["acknowledged"], "{found}");
}

#[test]
fn nbdkit_that_heeds_flushes_loses_nothing_acknowledged() {
    needs!("losetup", "nbdkit", "nbdfuse");
    let (code, found) = cut_nbdkit("writeback", &[]);
    let pages = &found["streams"][0];
    assert!(pages["acknowledged"].as_u64().unwrap() > 100, "{found}");
    assert_eq!(
        (&pages["lost"], &pages["stale"]),
        (&0.into(), &0.into()),
        "{found}"
    );
    // A reset of the machine empties the page cache below a loop device, too.
    assert_eq!(
        (code, &found["reason"]),
        (Some(5), &"no-evidence".into()),
        "{found}"
    );
}

#[test]
fn full_filesystem_is_an_error_and_leaves_nothing() {
    needs!("mkfs.ext4");
    let logs = place();
    let (_server, address) = serve(logs.path());
    let disk = Disk::new("ext4", 8 * MIB, "");
    let words = format!(
        "powercut write {} --server {address}",
        disk.path().display()
    );
    let words = argv(&words);
    let ran = run(words);
    ran.exits(3).tells("free");
}
