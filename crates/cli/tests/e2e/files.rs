//! `diskproof files` from the outside.

use crate::program::{
    PipedRun, Ran, argv, diskproof, eventually, names, needs, program, program_path, run,
    saved_record,
};
use diskproof_model::files::FileOperation;
use diskproof_model::files_record::FilesRecord;
use diskproof_model::record::Record;
use diskproof_simdisk::testbed::{Loop, Mount, place};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const FOLDER: &str = ".diskproof-files";
/// Far more than a test lets the program create.
const ENDLESS: [&str; 6] = ["-n", "200000", "--fsync", "both", "--time", "10m"];

fn files(place: &Path, flags: &[&str]) -> Ran {
    let verb = [OsStr::new("files"), place.as_os_str()];
    run(verb.into_iter().chain(flags.iter().map(OsStr::new)))
}

fn steps(record: &Record) -> &FilesRecord {
    record.files().unwrap()
}

#[test]
fn files_are_measured_in_both_orders_and_nothing_stays() {
    let (here, out) = (place(), place());
    let saved = |name: &str| out.path().join(name).to_str().unwrap().to_owned();
    let (json, csv, html) = (saved("a.json"), saved("a.csv"), saved("a.html"));
    let small = argv("-n 300 --file-size 0-8k --directories 3 --time 10m");
    let flags = [&small[..], &["--threads", "2", "-q", "--no-history"]].concat();
    let saving = ["-o", &json, "-o", &csv, "-o", &html];
    let limits = argv("--expect create-random.iops>=1 --expect findings<=99");
    let ran = files(here.path(), &[&flags[..], &saving, &limits].concat());
    ran.exits(0);
    assert!(names(here.path()).is_empty());
    let record = saved_record(&json);
    let measured = steps(&record);
    assert_eq!(measured.steps.len(), 10);
    for of in &measured.steps {
        assert!(of.data.op.errors.is_empty(), "{of:?}");
        assert_eq!((of.data.op.count, of.data.rounds.len()), (1500, 5));
        let is_moved = matches!(
            of.data.step.operation,
            FileOperation::Create | FileOperation::Read
        );
        assert_eq!(of.data.op.bytes > 0, is_moved);
        assert!(of.figures.iops.half_width_95.is_some());
        ran.shows(&of.data.step.name());
    }
    let table = std::fs::read_to_string(&csv).unwrap();
    assert!(table.contains(",delete-random,delete,iops,"), "{table}");
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.contains("rename-sequential"));
    let (twin, rows) = (saved("b.json"), saved("rows.csv"));
    let text = std::fs::read_to_string(&json).unwrap();
    std::fs::write(&twin, text.replace(&record.run_id, "0123456789abcdef")).unwrap();
    let compared = diskproof!("compare {json} {twin} --all --no-history -o {rows}");
    compared.exits(0);
    let rows = std::fs::read_to_string(&rows).unwrap();
    for text in [&compared.out, &rows] {
        assert!(text.contains("create-random"), "{text}");
    }
    let shown = run(["show", &json]);
    shown.shows("stat-random");
}

#[test]
fn killed_run_leaves_one_directory_that_the_next_run_removes() {
    let here = place();
    let start = || {
        let words = [OsStr::new("files"), here.path().as_os_str()];
        let mut command = program(words.into_iter().chain(ENDLESS.iter().map(OsStr::new)));
        let quiet = command.arg("--no-history").stdout(Stdio::null());
        let child = quiet.stderr(Stdio::null()).spawn().unwrap();
        let folder = here.path().join(FOLDER).join("d0000000");
        let has_files = || std::fs::read_dir(&folder).is_ok_and(|all| all.count() > 2);
        assert!(eventually(has_files));
        child
    };
    let short = ["-n", "10", "--rounds", "1", "--json", "--no-history"];
    let mut first = start();
    let second = files(here.path(), &short);
    second.exits(3).tells("another diskproof");
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(names(here.path()), [FOLDER]);
    let next = files(here.path(), &short);
    next.exits(0).tells("killed");
    assert!(steps(&next.record()).leftover_files.unwrap() > 2);
    assert!(names(here.path()).is_empty());

    let signals = [
        (Signal::INT, 130),
        (Signal::QUIT, 131),
        (Signal::HUP, 129),
        (Signal::USR2, 140),
        (Signal::ALARM, 142),
        (Signal::XCPU, 152),
    ];
    for (signal, code) in signals {
        let mut interrupted = start();
        let pid = Pid::from_child(&interrupted);
        // It asks for progress, and ends nothing.
        kill_process(pid, Signal::USR1).unwrap();
        kill_process(pid, signal).unwrap();
        assert_eq!(interrupted.wait().unwrap().code(), Some(code));
        assert!(names(here.path()).is_empty());
    }
}

/// Files that another program puts into the directory, or in the place of a file there.
#[test]
fn files_of_another_program_stay_with_the_directory_and_are_named() {
    let here = place();
    let words = [OsStr::new("files"), here.path().as_os_str()];
    let mut command = program(words.into_iter().chain(ENDLESS.iter().map(OsStr::new)));
    let quiet = command.args(["-q", "--no-history"]).stdout(Stdio::null());
    let child = quiet.stderr(Stdio::piped()).spawn().unwrap();
    let folder = here.path().join(FOLDER);
    let ours = folder.join("d0000000").join("a0000000000000001");
    let saved = here.path().join("saved");
    std::fs::write(&saved, "data").unwrap();
    assert!(eventually(|| ours.exists()));
    std::fs::rename(&saved, &ours).unwrap();
    let theirs = [
        ours,
        folder.join("notes"),
        folder.join("d0000000").join("notes"),
    ];
    for path in &theirs {
        std::fs::write(path, "data").unwrap();
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ran: Ran = child.wait_with_output().unwrap().into();
    ran.exits(130).tells(folder.to_str().unwrap());
    assert_eq!(names(&folder), ["claim", "d0000000", "notes"]);
    assert_eq!(
        names(&folder.join("d0000000")),
        ["a0000000000000001", "notes"]
    );
    for path in &theirs {
        assert_eq!(std::fs::read(path).unwrap(), b"data");
    }
    let next = files(here.path(), &["-n", "10", "--no-history"]);
    next.exits(3);
    for path in &theirs {
        assert_eq!(std::fs::read(path).unwrap(), b"data");
        std::fs::remove_file(path).unwrap();
    }
    let last = files(here.path(), &["-n", "10", "--no-history"]);
    last.exits(0);
    assert!(names(here.path()).is_empty());
}

#[test]
fn files_without_threads_leave_nothing() {
    needs!("setpriv", "prlimit");
    let (here, bin) = (place(), place());
    let copy = bin.path().join("diskproof");
    crate::program::copy_program(&copy);
    for folder in [here.path(), bin.path()] {
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o777)).unwrap();
    }
    let mut failed = 0;
    for threads in 0..9 {
        let user = ["--reuid=61235", "--regid=61235", "--clear-groups"];
        let mut command = Command::new("setpriv");
        let limit = format!("--nproc={threads}");
        command.args(user).args(["prlimit", &limit]).arg(&copy);
        let small = ["-n", "2000", "--rounds", "1", "--threads", "3"];
        command.arg("files").arg(here.path()).args(small);
        let ran = Ran::of(command.arg("--no-history"));
        failed += u32::from(ran.code == Some(4));
        assert!(names(here.path()).is_empty(), "{threads}: {}", ran.err);
    }
    assert!(failed >= 5, "{failed}");
}

/// The directory of a new ext4 filesystem, from which the gate lets files be made: 10 % of it
/// stay free.
struct SmallDisk {
    _mount: Mount,
    _device: Loop,
    point: PathBuf,
    outside: tempfile::TempDir,
}

impl SmallDisk {
    fn new(flags: &[&str]) -> Self {
        let place = place();
        let device = Loop::sparse(&place.path().join("disk.img"), 3 << 30, &[]);
        let mut made = Command::new("mkfs.ext4");
        let made = made.arg("-qF").args(flags).arg(&device.node).status();
        assert!(made.unwrap().success());
        let point = place.path().join("mounted");
        std::fs::create_dir(&point).unwrap();
        let mount = Mount::new("ext4", device.node.to_str().unwrap(), &point, "rw");
        Self {
            _mount: mount,
            _device: device,
            point,
            outside: place,
        }
    }

    /// Measures files here while `take` takes what the filesystem has, as often as it is called.
    fn files_while(&self, mut take: impl FnMut(u64)) -> Ran {
        let verb = [OsStr::new("files"), self.point.as_os_str()];
        let flags = ["-n", "20000", "--rounds", "100", "--time", "10m"];
        let json = self.record_path();
        let saving = ["-q", "--no-history", "-o", json.to_str().unwrap()];
        let flags = [&flags[..], &saving].concat();
        let mut command = program(verb.into_iter().chain(flags.into_iter().map(OsStr::new)));
        // A pipe is read at the end only, and must not fill up.
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = quiet.spawn().unwrap();
        assert!(eventually(|| self
            .point
            .join(FOLDER)
            .join("d0000000")
            .exists()));
        let mut calls = 0;
        while child.try_wait().unwrap().is_none() {
            take(calls);
            calls += 1;
        }
        child.wait_with_output().unwrap().into()
    }

    fn record_path(&self) -> PathBuf {
        self.outside.path().join("a.json")
    }

    fn assert_failed(&self, ran: &Ran) {
        ran.exits(4);
        let json = std::fs::read(self.record_path()).unwrap();
        let record: Record = serde_json::from_slice(&json).unwrap();
        assert!(record.partial);
        let mut errors = steps(&record).steps.iter().map(|of| &of.data.op.errors);
        let failed = errors.find(|errors| !errors.is_empty()).unwrap();
        // The first one ends the step.
        assert_eq!(failed.get("ENOSPC"), Some(&1), "{failed:?}");
        let shown = run([OsStr::new("show"), self.record_path().as_os_str()]).out;
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in ["PARTIAL", "ENOSPC", "no inodes"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!self.point.join(FOLDER).exists());
    }
}

#[test]
fn files_on_a_disk_that_fills_up_end_with_the_errno_and_are_removed() {
    needs!("losetup", "mkfs.ext4");
    let disk = SmallDisk::new(&[]);
    let fill = std::fs::File::create(disk.point.join("fill")).unwrap();
    let mut taken = 0;
    let ran = disk.files_while(|_| {
        let length = 16 << 20;
        let flags = rustix::fs::FallocateFlags::empty();
        match rustix::fs::fallocate(&fill, flags, taken, length) {
            Ok(()) => taken += length,
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    });
    disk.assert_failed(&ran);
}

#[test]
fn files_on_a_filesystem_without_inodes_end_with_the_errno_and_are_removed() {
    needs!("losetup", "mkfs.ext4");
    let disk = SmallDisk::new(&["-N", "24000"]);
    let others = disk.point.join("others");
    std::fs::create_dir(&others).unwrap();
    let ran = disk.files_while(|call| {
        if std::fs::File::create(others.join(call.to_string())).is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    disk.assert_failed(&ran);
}

#[test]
fn time_in_fsync_is_recorded_and_said_where_it_decides() {
    let here = place();
    let flags = argv("-n 60 --rounds 3 --time 10m --fsync both");
    let json = here.path().join("a.json");
    let saving = ["-q", "--no-history", "-o", json.to_str().unwrap()];
    let ran = files(here.path(), &[&flags[..], &saving].concat());
    ran.exits(0);
    let record = saved_record(&json);
    for of in &steps(&record).steps {
        let Some(sync) = of.sync_time() else {
            let looks = [FileOperation::Stat, FileOperation::Read];
            assert!(looks.contains(&of.data.step.operation), "{of:?}");
            continue;
        };
        let creates = of.data.step.operation == FileOperation::Create;
        assert_eq!(sync.file_sync_ns > 0, creates, "{sync:?}");
        assert!(sync.directory_sync_ns > 0, "{sync:?}");
        let busy_ns = of.figures.latency.mean * of.data.op.count as f64;
        assert!(sync.total_ns() as f64 <= busy_ns * 1.001, "{of:?}");
    }
    let text = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for operation in [FileOperation::Create, FileOperation::Stat] {
        let share = steps(&record).sync_share(operation);
        let decides = share.is_some_and(|share| share.file + share.directory >= 0.5);
        let said = format!("of the time of {} is fsync", operation.as_str());
        assert_eq!(text.contains(&said), decides, "{share:?} {text}");
    }
}

#[test]
fn directory_of_somebody_else_is_refused_and_kept() {
    let here = place();
    let theirs = here.path().join(FOLDER);
    std::fs::create_dir(&theirs).unwrap();
    std::fs::write(theirs.join("notes"), "data").unwrap();
    let ran = files(here.path(), &["-n", "10", "--no-history"]);
    ran.exits(3).tells("nothing in it was removed");
    assert_eq!(std::fs::read(theirs.join("notes")).unwrap(), b"data");
}

#[test]
fn dry_run_of_files_names_count_bytes_and_time() {
    let here = place();
    let plan = files(here.path(), &["-n", "1000", "--time", "9s", "--dry-run"]);
    plan.exits(0);
    let text = plan.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["1000 files", "at most 9.0 s", "about 39.1 MiB", FOLDER] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(names(here.path()).is_empty());
    for wrong in [
        &["--size", "1M"][..],
        &["--expect", "nonsense.iops>=1"],
        &["--time", "1ms"],
    ] {
        files(here.path(), wrong).exits(2);
    }
}

/// A reader that never comes stands for a kernel that takes minutes to drop the caches.
#[test]
fn interrupt_does_not_wait_for_the_caches_of_the_machine() {
    needs!("unshare");
    let here = place();
    let fifo = here.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).unwrap();
    let data = here.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let script = "mount --make-rprivate / && mount --bind \"$1\" /proc/sys/vm/drop_caches && \
                  shift && exec \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", script, "sh"])
        .args([&fifo, &PathBuf::from(program_path())])
        .args(["files".as_ref(), data.as_os_str()])
        .args(argv("-n 30 --file-size 1k --drop-caches --no-history"));
    let run = PipedRun::of(&mut command);
    run.wait_for_thread("diskproof-cache");
    let ran = run.interrupt();
    ran.exits(130);
    assert!(names(&data).is_empty());
}
