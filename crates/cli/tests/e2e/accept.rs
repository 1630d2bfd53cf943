//! Acceptance tests of simulated disks: every kind of counterfeit is found and sized, an honest
//! disk is accepted, and a test that was killed goes on.

use crate::program::{PipedRun, Ran, diskproof, eventually, names, needs, program, saved_record};
use diskproof_model::accept::{AcceptRecord, AcceptVerdict, Fraud, SectorContent, Undecided};
use diskproof_model::fleet::FleetRecord;
use diskproof_model::record::Record;
use diskproof_simdisk::testbed::{Loop, Mount, place};
use diskproof_simdisk::{SimDisk, spec};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// A simulated disk as a block device, in whose folder a history lies.
struct Drive {
    device: Loop,
    disk: SimDisk,
    place: TempDir,
}

impl Drive {
    fn new(model: &str, size_bytes: u64) -> Self {
        let place = place();
        let model = spec::parse(model).unwrap();
        let disk = SimDisk::serve(model, size_bytes, &place.path().join("drive")).unwrap();
        let device = Loop::over(disk.path(), &["--direct-io=on"]);
        Self {
            device,
            disk,
            place,
        }
    }

    fn command(&self, flags: &[&str]) -> Command {
        let node = self.device.node.to_str().unwrap();
        let history = self.history();
        let mut words = vec!["accept", node, "--destroy", self.device.name()];
        words.extend(["--no-health", "--history", history.to_str().unwrap()]);
        words.extend(flags);
        program(words)
    }

    fn accept(&self, flags: &[&str]) -> Ran {
        Ran::of(self.command(flags))
    }

    fn history(&self) -> PathBuf {
        self.place.path().join("history.db")
    }

    /// Journals of tests that were stopped.
    fn journals(&self) -> usize {
        let names = std::fs::read_dir(self.place.path()).unwrap();
        names
            .filter(|name| {
                let name = name.as_ref().unwrap().file_name();
                name.to_string_lossy().contains(".accept-")
            })
            .count()
    }
}

fn accepted(record: &Record) -> &AcceptRecord {
    record.accept().unwrap()
}

#[test]
fn each_counterfeit_is_rejected_and_sized() {
    needs!("losetup", "fusermount3");
    let claimed = 96 * MIB;
    let real = 38 * MIB + 12 * 4096;
    for (model, fraud) in [
        (format!("wrap={real}"), Fraud::Wraps),
        (format!("drop={real}"), Fraud::Drops),
        (format!("fail={real}"), Fraud::Fails),
        (format!("cached={real}/2MiB"), Fraud::Cached),
        (format!("flip={real}"), Fraud::Flips),
        (format!("thin={real}"), Fraud::Thin),
        (format!("slow={real}-{claimed}+40ms"), Fraud::Slow),
    ] {
        let drive = Drive::new(&model, claimed);
        let ran = drive.accept(&["--json"]);
        let record = ran.exits(1).record();
        let figures = &accepted(&record).figures;
        assert_eq!(figures.verdict, AcceptVerdict::Reject, "{model}");
        assert_eq!(figures.fraud, Some(fraud), "{model}: {figures:?}");
        let error = figures.real_bytes.unwrap().abs_diff(real);
        assert!(error <= MIB, "{model}: {error}");
        // A slow disk holds what it claims.
        let code = match fraud {
            Fraud::Slow => "slow-capacity",
            _ => "counterfeit-capacity",
        };
        assert_eq!(record.findings[0].code, code, "{model}");
        assert_eq!(drive.journals(), 0);
    }
}

#[test]
fn probe_rejects_and_sizes_counterfeits_and_accepts_nothing() {
    needs!("losetup", "fusermount3");
    let claimed = 128 * MIB;
    let real = 50 * MIB + 8192;
    for kind in ["wrap", "drop", "fail", "flip"] {
        let drive = Drive::new(&format!("{kind}={real}"), claimed);
        let record = drive.accept(&["--probe", "--json"]).exits(1).record();
        let figures = &accepted(&record).figures;
        assert_eq!(figures.verdict, AcceptVerdict::Reject, "{kind}");
        let error = figures.real_bytes.unwrap().abs_diff(real);
        assert!(error <= MIB, "{kind}: {error} {figures:?}");
    }
    let drive = Drive::new("thin=100MiB", claimed);
    let record = drive.accept(&["--probe", "--json"]).record();
    let figures = &accepted(&record).figures;
    assert_ne!(figures.verdict, AcceptVerdict::Accept);
    let caveats = record.verdict.unwrap().caveats;
    assert!(
        caveats[0].contains("until its flash is full"),
        "{caveats:?}"
    );
}

#[test]
fn honest_disk_is_accepted_and_its_reads_are_proved_by_counters() {
    needs!("losetup", "fusermount3");
    let drive = Drive::new("", 64 * MIB);
    let record = drive.accept(&["--json"]).exits(0).record();
    let accept = accepted(&record);
    assert_eq!(accept.figures.verdict, AcceptVerdict::Accept);
    assert_eq!(accept.data.reads.bytes, 64 * MIB);
    assert!(accept.data.device.read_bytes >= 64 * MIB);
    let ran = drive.accept(&["--probe"]);
    assert!([Some(0), Some(5)].contains(&ran.code), "{ran:?}");
}

/// The disk goes on, and every block comes back: nothing else shows it.
#[test]
fn disk_that_hangs_for_seconds_in_a_test_is_told_of() {
    needs!("losetup", "fusermount3");
    let drive = Drive::new("write-bandwidth=8MB", 64 * MIB);
    let mut child = drive.command(&["--quiet", "--json"]);
    let child = child.stdout(std::process::Stdio::piped()).spawn().unwrap();
    assert!(eventually(|| drive.disk.stats().written_bytes > 4 * MIB));
    drive.disk.hang();
    std::thread::sleep(std::time::Duration::from_secs(4));
    drive.disk.answer_again();
    let record = Ran::from(child.wait_with_output().unwrap()).record();
    let accept = accepted(&record);
    let longest = accept.data.stalls.first().expect("a stall");
    assert!(longest.lasted_ns >= 2_000_000_000, "{longest:?}");
    assert!(
        record
            .findings
            .iter()
            .any(|finding| finding.code == "stalled"),
        "{:?}",
        record.findings
    );
}

/// Without direct I/O the memory of the machine may answer every read.
#[test]
fn device_behind_the_page_cache_is_undecided() {
    needs!("losetup");
    let place = place();
    let image = place.path().join("image");
    std::fs::File::create(&image)
        .unwrap()
        .set_len(32 * MIB)
        .unwrap();
    let device = Loop::over(&image, &["--direct-io=off"]);
    let node = device.node.to_str().unwrap();
    for procedure in [&["--probe"][..], &[]] {
        let words = ["accept", node, "--destroy", device.name(), "--no-history"];
        let mut command = program(words);
        command.args(["--no-health", "--json"]).args(procedure);
        let ran = Ran::of(command);
        ran.exits(5);
        let record = ran.record();
        let figures = &accepted(&record).figures;
        assert_eq!(figures.verdict, AcceptVerdict::Undecided);
        assert_eq!(figures.undecided, Some(Undecided::NotDirect));
        let headline = record.verdict.as_ref().unwrap().headline.clone();
        assert!(headline.contains("memory of this machine"), "{headline}");
    }
}

#[test]
fn disk_with_a_block_that_cannot_be_written_is_rejected_without_a_size() {
    needs!("losetup", "fusermount3");
    let drive = Drive::new("eio-write=22581248-22585344", 64 * MIB);
    let record = drive.accept(&["--json"]).exits(1).record();
    let accept = accepted(&record);
    assert_eq!(accept.figures.fraud, None);
    assert_eq!(accept.data.failed_writes_bytes, 4096);
    assert_eq!(record.findings[0].code, "unwritable-blocks");
}

#[test]
fn pass_that_was_killed_goes_on_where_it_was() {
    needs!("losetup", "fusermount3");
    // Some seconds of writes, and as many of reads.
    let drive = Drive::new("bandwidth=16MB,wrap=60MiB", 160 * MIB);
    let mut child = drive.command(&["--quiet"]).spawn().unwrap();
    let is_kept = eventually(|| drive.journals() > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_kept);
    let written = drive.disk.stats().written_bytes;
    assert!(written < 170 * MIB, "{written}");
    let ran = drive.accept(&[]);
    ran.exits(1);
    let first = ran.err.lines().next().unwrap_or_default();
    assert!(first.contains("going on with a test"), "{ran}");
    // The budget is that of a whole test.
    assert!(!ran.err.contains("writes at most"), "{ran}");
    let all = drive.disk.stats().written_bytes;
    assert!(all - written < 150 * MIB, "{written} {all}");
    let shown = Ran::of(program([
        "show",
        "latest",
        "--json",
        "--history",
        drive.history().to_str().unwrap(),
    ]));
    let record = shown.record();
    let accept = accepted(&record);
    assert_eq!(accept.data.earlier_runs, 1);
    assert_eq!(accept.figures.real_bytes, Some(60 * MIB));
    assert_eq!(drive.journals(), 0);
}

#[test]
fn test_goes_on_only_on_the_disk_that_it_wrote() {
    needs!("losetup", "fusermount3");
    let drive = Drive::new("bandwidth=16MB", 160 * MIB);
    drive.accept(&["--resume"]).exits(2);
    let mut child = drive.command(&["--quiet"]).spawn().unwrap();
    assert!(eventually(|| drive.journals() > 0));
    child.kill().unwrap();
    child.wait().unwrap();
    overwrite(&drive.device.node);
    drive.accept(&["--resume"]).exits(3).tells("--restart");
    assert_eq!(drive.journals(), 1);
}

#[test]
fn honest_disk_that_others_overwrote_while_the_test_was_stopped_is_undecided() {
    needs!("losetup", "fusermount3");
    let drive = Drive::new("bandwidth=16MB", 160 * MIB);
    let mut child = drive.command(&["--quiet"]).spawn().unwrap();
    // The order is random: of the first 100 MiB some are among so many.
    assert!(eventually(|| {
        drive.journals() > 0 && drive.disk.stats().written_bytes > 80 * MIB
    }));
    child.kill().unwrap();
    child.wait().unwrap();
    overwrite_first(100, &drive.device.node);
    let ran = drive.accept(&["--json"]);
    ran.exits(5)
        .tells("no longer hold what an earlier run wrote");
    let record = ran.record();
    let accept = accepted(&record);
    let undecided = accept.figures.undecided;
    assert_eq!(
        undecided,
        Some(Undecided::ChangedWhileStopped),
        "{accept:?}"
    );
    assert!(accept.data.places_before.unwrap().changed > 0);
    assert!(accept.data.bad_bytes.lost > 0);
    assert!(
        record
            .findings
            .iter()
            .all(|found| found.code != "wrong-content")
    );
    assert_eq!(drive.journals(), 0);
}

/// Puts data of diskproof on the device that is of another run.
fn overwrite(node: &Path) {
    overwrite_first(160, node);
}

/// The same in its first MiB, so many.
fn overwrite_first(count: u64, node: &Path) {
    let mut block = vec![0; MIB as usize];
    let content = SectorContent::new(12345);
    let file = std::fs::File::options().write(true).open(node).unwrap();
    for number in 0..count {
        content.fill(number * MIB, 0, &mut block);
        file.write_all_at(&block, number * MIB).unwrap();
    }
    file.sync_all().unwrap();
}

#[test]
fn interrupted_test_ends_at_once_and_names_the_way_on() {
    needs!("losetup", "fusermount3");
    let drive = Drive::new("bandwidth=8MB", 160 * MIB);
    let mut command = drive.command(&["-v"]);
    let child = PipedRun::of(&mut command);
    child.wait_for_run();
    assert!(eventually(|| drive.journals() > 0));
    // The writes since the last flush are written again.
    child.interrupt().exits(130).shows("it was saved last");
}

#[test]
fn test_that_saved_nothing_promises_nothing() {
    needs!("losetup", "fusermount3");
    let drive = Drive::new("bandwidth=8MB", 160 * MIB);
    let mut command = drive.command(&["-v"]);
    let child = PipedRun::of(&mut command);
    child.wait_for_run();
    let before = drive.disk.stats().written_bytes;
    assert!(eventually(|| {
        drive.disk.stats().written_bytes > before + MIB
    }));
    let is_saved = drive.journals() > 0;
    let ran = child.interrupt();
    ran.exits(130);
    if !is_saved && drive.journals() == 0 {
        ran.shows_not("goes on from");
    }
}

/// A place in the order of what makes the results of a test safe: the program is killed as it is
/// about to make this system call on this file, for the time of this number.
struct KillAt {
    calls: &'static str,
    file: fn(&Path, &Path) -> PathBuf,
    time: u32,
    /// Whether the journal knows something of the test by then.
    is_kept: bool,
}

/// The file that takes the place of the journal.
fn next_journal(journal: &Path, _: &Path) -> PathBuf {
    format!("{}.next", journal.display()).into()
}

fn the_journal(journal: &Path, _: &Path) -> PathBuf {
    journal.to_owned()
}

/// What SQLite writes to first.
fn log_of_history(_: &Path, history: &Path) -> PathBuf {
    format!("{}-wal", history.display()).into()
}

/// A small disk is written in one step and read in another; each ends with the journal.
const KILLS: [KillAt; 7] = [
    KillAt {
        calls: "openat",
        file: next_journal,
        time: 1,
        is_kept: false,
    },
    KillAt {
        calls: "fsync",
        file: next_journal,
        time: 1,
        is_kept: false,
    },
    KillAt {
        calls: "rename",
        file: next_journal,
        time: 1,
        is_kept: false,
    },
    KillAt {
        calls: "openat",
        file: next_journal,
        time: 2,
        is_kept: true,
    },
    KillAt {
        calls: "rename",
        file: next_journal,
        time: 2,
        is_kept: true,
    },
    KillAt {
        calls: "pwrite64",
        file: log_of_history,
        time: 1,
        is_kept: true,
    },
    // The record is in the history.
    KillAt {
        calls: "unlink",
        file: the_journal,
        time: 1,
        is_kept: true,
    },
];

/// Runs a test under strace with these further options, and returns the lines of its trace.
fn traced(drive: &Drive, options: &[&str]) -> String {
    let trace = drive.place.path().join("trace");
    let own = drive.command(&["--quiet"]);
    Command::new("strace")
        .args(["-f", "-qq", "-o", trace.to_str().unwrap()])
        .args(options)
        .arg(own.get_program())
        .args(own.get_args())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    std::fs::read_to_string(trace).unwrap()
}

/// The journal of the disk, whose name a test that comes to its end shows.
fn journal_of(drive: &Drive) -> PathBuf {
    let lines = traced(drive, &["-e", "trace=rename"]);
    let names = lines.split('"').find(|name| name.contains(".accept-"));
    PathBuf::from(names.unwrap().trim_end_matches(".next"))
}

/// Complete tests in the history.
fn saved_tests(drive: &Drive) -> usize {
    let history = drive.history();
    let listed = Ran::of(program([
        "history",
        "--json",
        "--history",
        history.to_str().unwrap(),
    ]));
    let runs: Vec<serde_json::Value> = serde_json::from_str(&listed.out).unwrap();
    runs.iter().filter(|run| run["partial"] != true).count()
}

#[test]
fn kill_at_each_place_of_the_order_costs_no_result() {
    needs!("losetup", "fusermount3", "strace");
    let drive = Drive::new("", 32 * MIB);
    let journal = journal_of(&drive);
    for kill in KILLS {
        let file = (kill.file)(&journal, &drive.history());
        let case = format!("{} of {}, {}", kill.calls, file.display(), kill.time);
        let saved = saved_tests(&drive);
        let inject = format!("inject={}:signal=KILL:when={}", kill.calls, kill.time);
        let trace = format!("trace={}", kill.calls);
        traced(
            &drive,
            &["-P", file.to_str().unwrap(), "-e", &trace, "-e", &inject],
        );
        let written = drive.disk.stats().written_bytes;
        let is_saved = saved_tests(&drive) > saved;
        let record = drive.accept(&["--json"]).exits(0).record();
        let accept = accepted(&record);
        assert_eq!(accept.figures.verdict, AcceptVerdict::Accept, "{case}");
        // What the journal knows is not written again; a complete record ends the test.
        let goes_on = kill.is_kept && !is_saved;
        assert_eq!(accept.data.earlier_runs, u32::from(goes_on), "{case}");
        assert_eq!(
            drive.disk.stats().written_bytes == written,
            goes_on,
            "{case}"
        );
        assert_eq!(is_saved, kill.calls == "unlink", "{case}");
        assert_eq!(drive.journals(), 0, "{case}");
    }
}

/// The journal holds a part of the reads.
fn is_reading(drive: &Drive) -> bool {
    let names = std::fs::read_dir(drive.place.path()).unwrap();
    for name in names {
        let path = name.unwrap().path();
        if !path.to_string_lossy().contains(".accept-") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if let Ok(saved) = serde_json::from_str::<serde_json::Value>(&text) {
            return saved["measured"]["read"].as_u64() > Some(0);
        }
    }
    false
}

#[test]
fn disk_that_vanishes_in_either_phase_ends_the_test_and_it_goes_on_when_it_is_back() {
    needs!("losetup", "fusermount3");
    for phase in ["write", "read"] {
        let model = match phase {
            "write" => "write-bandwidth=16MB",
            _ => "read-bandwidth=24MB",
        };
        let drive = Drive::new(model, 224 * MIB);
        let mut child = drive.command(&["--quiet", "--json"]);
        let child = child.stdout(std::process::Stdio::piped()).spawn().unwrap();
        assert!(eventually(|| match phase {
            "write" => drive.journals() > 0,
            _ => is_reading(&drive),
        }));
        drive.disk.vanish();
        let ran = Ran::from(child.wait_with_output().unwrap());
        let record = ran.exits(4).record();
        let accept = accepted(&record);
        let mut findings = record.findings.iter();
        assert!(
            findings.any(|finding| finding.code == "io-errors"),
            "{phase}"
        );
        // A disk that is gone has no bad blocks and no false size.
        assert_eq!(accept.figures.verdict, AcceptVerdict::Undecided, "{phase}");
        assert_eq!(accept.figures.real_bytes, None, "{phase}");
        assert_eq!(accept.data.bad_bytes.sum(), 0, "{phase}");
        if phase == "read" {
            assert!(accept.data.device.read_bytes > 0);
        }
        assert_eq!(drive.journals(), 1, "{phase}");
        drive.disk.come_back();
        let record = drive.accept(&["--resume", "--json"]).exits(0).record();
        assert_eq!(accepted(&record).data.earlier_runs, 1, "{phase}");
        assert_eq!(drive.journals(), 0, "{phase}");
    }
}

#[test]
fn pass_that_was_killed_while_it_read_goes_on_there() {
    needs!("losetup", "fusermount3");
    let drive = Drive::new("read-bandwidth=24MB,flip=100MiB", 224 * MIB);
    let mut child = drive.command(&["--quiet"]).spawn().unwrap();
    let is_reached = eventually(|| is_reading(&drive));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_reached);
    let written = drive.disk.stats().written_bytes;
    let record = drive.accept(&["--json"]).exits(1).record();
    // What was written stays, and what was found wrong is not forgotten.
    assert_eq!(drive.disk.stats().written_bytes, written);
    let error = accepted(&record).figures.real_bytes.unwrap();
    assert!(error.abs_diff(100 * MIB) <= MIB, "{error}");
}

#[test]
fn full_filesystem_under_the_journal_ends_no_test_and_the_journal_stays_without_a_record() {
    needs!("losetup", "fusermount3");
    let drive = Drive::new("write-bandwidth=24MB", 224 * MIB);
    let small = drive.place.path().join("small");
    let _mounted = Mount::new("tmpfs", "none", &small, "size=1m");
    let history = small.join("history.db");
    let node = drive.device.node.to_str().unwrap();
    let child = program(["accept", node, "--destroy", drive.device.name()])
        .args(["--no-health", "--quiet", "--json", "--history"])
        .arg(&history)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let has_journal = || {
        let names = names(&small);
        names.iter().any(|name| name.contains(".accept-"))
    };
    assert!(eventually(has_journal));
    let filled = std::fs::write(small.join("filling"), vec![1; 2 << 20]);
    assert!(filled.is_err());
    let ran = Ran::from(child.wait_with_output().unwrap());
    ran.exits(0);
    // There is no room for the record either.
    assert!(has_journal(), "{:?}", names(&small));
}

#[test]
fn repeated_test_writes_new_content_over_the_whole_device() {
    needs!("losetup", "fusermount3");
    let drive = Drive::new("", 32 * MIB);
    let first = drive.place.path().join("first.json");
    let first = first.to_str().unwrap();
    drive.accept(&["-o", first]).exits(0);
    let before = saved_record(first);
    let larger = Drive::new("", 48 * MIB);
    let node = larger.device.node.to_str().unwrap();
    let name = larger.device.name();
    let again = diskproof!("run {first} {node} --destroy {name} --no-history --no-health --json");
    let again = again.exits(0).record();
    let (old, new) = (&accepted(&before).data.plan, &accepted(&again).data.plan);
    // A disk that ignores writes would pass with the content of the first test.
    assert_ne!(old.salt, new.salt);
    assert_eq!(again.plan.seed, new.salt);
    assert_eq!(new.size_bytes, 48 * MIB);
    drive.accept(&["--seed", "7"]).exits(2);
    diskproof!("run {first} {node} --destroy {name} --no-history --seed 7").exits(2);
}

#[test]
fn disk_that_cannot_be_read_before_the_test_is_left_as_it_is() {
    needs!("losetup", "fusermount3");
    let drive = Drive::new("eio-read=0-4096", 32 * MIB);
    drive
        .accept(&[])
        .exits(3)
        .tells("diskproof curve")
        .tells("--scan");
    assert_eq!(drive.disk.stats().written_bytes, 0);
    assert_eq!(drive.journals(), 0);
}

#[test]
fn figures_of_a_test_stand_in_tables() {
    needs!("losetup", "fusermount3");
    let drive = Drive::new("drop=24MiB", 32 * MIB);
    let path = |name: &str| drive.place.path().join(name);
    let (csv, prom) = (path("test.csv"), path("test.prom"));
    drive
        .accept(&["-o", csv.to_str().unwrap(), "-o", prom.to_str().unwrap()])
        .exits(1);
    let table = std::fs::read_to_string(csv).unwrap();
    let value = |op: &str, metric: &str| {
        let wanted = format!(",accept,{op},{metric},");
        let row = table.lines().find(|row| row.contains(&wanted));
        let row = row.unwrap_or_else(|| panic!("{wanted}: {table}"));
        let (_, behind) = row.split_once(&wanted).unwrap();
        behind.split(',').next().unwrap().parse::<f64>().unwrap()
    };
    assert_eq!(value("", "verdict"), 0.0);
    assert_eq!(value("", "claimed_size"), (32 * MIB) as f64);
    assert_eq!(value("", "real_size"), (24 * MIB) as f64);
    assert_eq!(value("", "wrong"), (8 * MIB) as f64);
    assert_eq!(value("", "unreadable"), 0.0);
    assert!(value("write", "throughput") > 0.0);
    let metrics = std::fs::read_to_string(prom).unwrap();
    for line in [
        "diskproof_accept_verdict{",
        "diskproof_accept_real_bytes{",
        "diskproof_accept_wrong_bytes{",
        "diskproof_accept_bytes_per_second{",
    ] {
        assert!(metrics.lines().any(|one| one.starts_with(line)), "{line}");
    }
}

#[test]
fn merge_of_tests_has_a_row_for_each_disk_and_the_code_of_the_worst() {
    needs!("losetup", "fusermount3");
    let results = place();
    let mut paths = Vec::new();
    for (number, model) in ["", "wrap=24MiB"].into_iter().enumerate() {
        let path = results.path().join(format!("{number}.json"));
        let drive = Drive::new(model, 32 * MIB);
        drive.accept(&["--quiet", "-o", path.to_str().unwrap()]);
        paths.push(path.to_str().unwrap().to_owned());
    }
    let honest = &paths[0];
    let verdict = accepted(&saved_record(honest)).figures.verdict;
    // A busy machine may leave it undecided.
    let code = if verdict == AcceptVerdict::Accept {
        0
    } else {
        5
    };
    diskproof!("merge {honest}").exits(code);
    let folder = results.path().to_str().unwrap();
    let ran = diskproof!("merge {folder}");
    ran.exits(1).shows("2 disks tested").shows("rejected");
    let fleet: FleetRecord =
        serde_json::from_str(&diskproof!("merge {folder} --json").out).unwrap();
    assert_eq!(fleet.tested.len(), 2);
    assert_eq!(fleet.tested[0].verdict, AcceptVerdict::Reject);
    assert_eq!(fleet.tested[0].real_bytes, Some(24 * MIB));
    let table = results.path().join("fleet.csv");
    diskproof!("merge {folder} -q -o {}", table.display()).exits(1);
    let text = std::fs::read_to_string(table).unwrap();
    assert!(
        text.contains(",reject,accept,accept.real_size,B,25165824,"),
        "{text}"
    );
}

#[test]
fn accept_needs_a_released_block_device() {
    needs!("losetup", "fusermount3");
    let drive = Drive::new("", 32 * MIB);
    let node = drive.device.node.to_str().unwrap();
    diskproof!("accept {node} --no-history").exits(3);
    assert_eq!(drive.disk.stats().written_bytes, 0);
    let directory = drive.place.path().to_str().unwrap();
    diskproof!("accept {directory}")
        .exits(2)
        .tells("whole device");
    let file = drive.place.path().join("file");
    std::fs::write(&file, vec![1; 1 << 20]).unwrap();
    let file = file.to_str().unwrap();
    diskproof!("accept {file} --overwrite")
        .exits(2)
        .tells("whole device");
    // Nothing is known of its rate.
    drive.accept(&["--dry-run"]).exits(0).shows("usual speed");
    assert_eq!(drive.disk.stats().written_bytes, 0);
}

#[test]
fn words_of_other_testers_lead_to_accept() {
    for word in ["capacity", "burnin", "f3", "h2testw", "badblocks"] {
        diskproof!("{word}").exits(2).tells("diskproof accept");
    }
}
