//! Job files of fio from the outside: what they ask for is what happens, the gate is the same, and
//! every example of fio's makes a plan or one clear error.

use diskproof_model::measurement::{OpKind, StopReason};
use diskproof_model::plan::{Layout, Start};
use diskproof_model::row::Row;

use crate::program::{
    Ran, content_hash, counts, diskproof, names, needs, program, random_file, run,
};
use diskproof_simdisk::testbed::{Loop, place};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

const MIB: u64 = 1 << 20;

/// Writes the job file next to the place that it is about.
fn job(here: &Path, text: &str) -> PathBuf {
    let file = here.join("job.fio");
    std::fs::write(&file, text.replace("HERE", here.to_str().unwrap())).unwrap();
    file
}

fn run_job(here: &Path, text: &str, flags: &[&str]) -> Ran {
    let file = job(here, text);
    run([OsStr::new("run"), file.as_os_str()]
        .into_iter()
        .chain(flags.iter().map(OsStr::new)))
}

fn count(m: &Row, kind: OpKind) -> u64 {
    counts(m, kind).0
}

#[test]
fn job_file_runs_and_reports_differences_from_fio() {
    let here = place();
    let text = "[global]\ndirectory=HERE\nsize=4m\ngroup_reporting\n\n[fill]\nrw=write\nbs=1m\n\
                direct=1\n\n[reads]\nstonewall\nrw=randread\nbs=8k\nnumjobs=2\nio_size=1m\n\
                direct=1\n\n[commits]\nstonewall\nrw=write\nbs=4k\nfdatasync=1\nnumber_ios=20\n";
    let ran = run_job(here.path(), text, &["--json"]);
    ran.exits(0);
    let record = ran.record();
    let [fill, reads, commits] = &record.measurements[..] else {
        panic!("{record:?}")
    };
    assert_eq!(
        (
            count(fill, OpKind::Write),
            count(reads, OpKind::Read),
            count(commits, OpKind::Write)
        ),
        (4, 256, 20)
    );
    assert_eq!(
        (count(commits, OpKind::Sync), commits.data.stopped),
        (20, StopReason::Ops)
    );
    assert_eq!(
        (reads.data.workload.workers, reads.data.span_bytes),
        (2, 8 * MIB)
    );
    assert!(
        record
            .plan
            .workloads()
            .iter()
            .all(|workload| workload.start == Start::AfterPrevious && workload.warmup_ns == 0)
    );
    ran.tells("of 16 MiB").tells("group_reporting (");
    assert_eq!(names(here.path()), ["job.fio"]);
    let quiet = run_job(here.path(), text, &["--quiet", "--json"]);
    quiet.exits(0).tells_nothing();
    // With a single new file, the job writes new blocks, as in fio.
    let single = run_job(
        here.path(),
        "[fill]\nfilename=HERE/new\nsize=4m\nrw=write\nbs=1m\n",
        &["--json"],
    );
    assert_eq!(single.record().plan.workloads()[0].layout, Layout::Provides);
}

#[test]
fn jobs_without_a_stonewall_run_at_the_same_time() {
    let here = place();
    let text = "[global]\nfilename=HERE/data\nsize=8m\ndirect=1\nruntime=1\ntime_based\n[scan]\n\
                rw=read\nbs=64k\n[points]\nrw=randread\nbs=8k\nioengine=libaio\niodepth=4\n";
    let dry = run_job(here.path(), text, &["--dry-run"]);
    dry.exits(0).shows("+ points").fits_80_columns();
    let ran = run_job(here.path(), text, &["--json"]);
    ran.exits(0);
    let record = ran.record();
    let together: Vec<_> = record
        .measurements
        .iter()
        .map(|m| m.figures.together_with.join(","))
        .collect();
    assert_eq!(together, ["points", "scan"]);
    assert!(
        record
            .measurements
            .iter()
            .all(|m| m.data.stopped == StopReason::Time)
    );
}

#[test]
fn a_job_file_gives_nothing_up() {
    let here = place();
    let file = here.path().join("table");
    random_file(&file, 4 * MIB);
    let before = content_hash(&file);
    let writes = "[w]\nfilename=HERE/table\nrw=randwrite\nbs=8k\nio_size=1m\noverwrite=1\n\
                  allow_mounted_write=1\n";
    let refused = run_job(here.path(), writes, &[]);
    refused.exits(3).shows_nothing().tells("--overwrite");
    assert_eq!(content_hash(&file), before);
    assert_eq!(
        run_job(
            here.path(),
            &writes.replace("randwrite", "randread"),
            &["--quiet"]
        )
        .code,
        Some(0)
    );
    assert_eq!(content_hash(&file), before);
    let unnamed = run_job(here.path(), writes, &["--overwrite"]);
    unnamed.exits(2).tells("--overwrite releases");
    assert_eq!(content_hash(&file), before);
    let given_up = run_job(
        here.path(),
        writes,
        &[file.to_str().unwrap(), "--overwrite", "--json"],
    );
    given_up.exits(0);
    assert_ne!(content_hash(&file), before);
    // Larger than the file: fio would make it so.
    let larger = run_job(here.path(), "[r]\nfilename=HERE/table\nsize=8m\n", &[]);
    larger.exits(2).tells("line 1: [r]: the job ends at 8 MiB");
}

#[test]
fn bare_overwrite_releases_no_target_of_a_plan_file() {
    let here = place();
    let file = here.path().join("table");
    random_file(&file, 4 * MIB);
    let before = content_hash(&file);
    let plan = here.path().join("plan.toml");
    let text = format!(
        "targets = [{:?}]\n[[workload]]\nname = \"w\"\nrw = \"randwrite\"\nops = 8\n",
        file.display().to_string()
    );
    std::fs::write(&plan, text).unwrap();
    let bare = run([
        OsStr::new("run"),
        plan.as_os_str(),
        OsStr::new("--overwrite"),
    ]);
    bare.exits(2).tells("--overwrite releases").tells("table");
    assert_eq!(content_hash(&file), before);
    let named = diskproof!("run {} {} --overwrite", plan.display(), file.display());
    named.exits(0);
    assert_ne!(content_hash(&file), before);
}

#[test]
fn a_device_is_refused_as_ever() {
    needs!("losetup");
    let here = place();
    let image = here.path().join("image");
    random_file(&image, 16 * MIB);
    let device = Loop::over(&image, &["--direct-io=on"]);
    let text = format!(
        "[w]\nfilename={}\nrw=randwrite\nbs=4k\ndirect=1\nio_size=1m\n",
        device.node.display()
    );
    let refused = run_job(here.path(), &text, &[]);
    refused.exits(3).tells("--destroy");
    let ran = run_job(here.path(), &text, &["--json", "--destroy", device.name()]);
    assert_eq!(
        (
            ran.code,
            count(&ran.record().measurements[0], OpKind::Write)
        ),
        (Some(0), 256),
        "{}",
        ran.err
    );
}

#[test]
fn job_file_error_names_the_line_before_anything_is_touched() {
    let here = place();
    let refused = |text: &str, part: &str| {
        let ran = run_job(here.path(), text, &[]);
        ran.exits(2).shows_nothing();
        assert!(
            ran.err.contains(part) && ran.err.lines().count() == 1,
            "{part}: {}",
            ran.err
        );
    };
    refused(
        "[a]\ndirectory=HERE\nsize=4m\nlatency_target=5ms\nlatency_run=1\n",
        "job.fio: line 5: latency_run=1: fio's search goes on ",
    );
    refused(
        "[a]\ndirectory=HERE\nsize=4m\nrw=trim\u{1b}[2J\n",
        "rw=trim\\u{1b}[2J: ",
    );
    refused("[a]\ndirectory=HERE/nowhere\nsize=4m\n", "/nowhere ");
    refused("[a]\ninclude /dev/zero\n", "include /dev/zero");
    refused(
        "[a]\ndirectory=HERE\nsize=4m\nexec_prerun=touch HERE/ran\n",
        "line 4: exec_prerun=",
    );
    assert_eq!(names(here.path()), ["job.fio"]);
    let section = run_job(
        here.path(),
        "[a]\ndirectory=HERE\nsize=4m\n[b]\nioengine=net\n",
        &["--section", "a", "--quiet"],
    );
    section.exits(0);
    let nowhere = diskproof!("run {} --section a", here.path().display());
    nowhere.exits(2).tells("--section");
    let both = run_job(here.path(), "[a]\nsize=1m\n", &["--bs", "4k"]);
    both.exits(2).tells("job.fio defines");
}

#[test]
fn the_environment_and_included_files_are_read() {
    let here = place();
    std::fs::write(
        here.path().join("common"),
        "bs=16k\nsize=${SIZE_FOR_THE_JOB}\n",
    )
    .unwrap();
    let file = job(
        here.path(),
        "[global]\ninclude common\n[a]\ndirectory=HERE\nrw=randread\n",
    );
    let output = program([OsStr::new("run"), file.as_os_str(), OsStr::new("--json")])
        .env("SIZE_FOR_THE_JOB", "4m")
        .output()
        .unwrap();
    let ran = Ran::from(output);
    ran.exits(0);
    assert_eq!(count(&ran.record().measurements[0], OpKind::Read), 256);
    let ran = run([OsStr::new("run"), file.as_os_str()]);
    ran.exits(2)
        .tells("common: line 2: ")
        .tells_not("SIZE_FOR_THE_JOB");
}

/// fio and diskproof do the same number of reads and writes for one job file.
#[test]
fn job_file_runs_the_same_operations_as_fio() {
    if Command::new("fio").arg("--version").output().is_err() {
        eprintln!("SKIPPED: job_file_runs_the_same_operations_as_fio: fio is not installed");
        return;
    }
    let jobs = [
        "rw=randread\nbs=8k\ndirect=1\nnumjobs=2",
        "rw=write\nbs=64k\nend_fsync=1",
        "rw=write\nbs=2300\nfdatasync=1\nsize=100k",
        "rw=randrw\nrwmixread=70\nbs=4k\nioengine=libaio\niodepth=8\ndirect=1",
        "rw=randwrite\nbssplit=4k/50:16k/50\nnumber_ios=100\nfsync=10",
        "rw=read:8k\nbs=4k\nio_size=1m\ndirect=1",
        "rw=read\nbs=4k\nnumjobs=3\nsize=1000k\nloops=2",
    ];
    for options in jobs {
        let here = place();
        let text = format!("[j]\ndirectory=HERE\nsize=4m\n{options}\n");
        let ran = run_job(here.path(), &text, &["--json", "--quiet"]);
        ran.exits(0).tells_nothing();
        let fio = Command::new("fio")
            .args(["--output-format=json", "--randrepeat=1"])
            .arg(here.path().join("job.fio"))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&fio.stdout);
        let theirs: serde_json::Value =
            serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
        let sum = |path: &[&str]| -> u64 {
            let jobs = theirs["jobs"].as_array().unwrap().iter();
            jobs.map(|job| {
                path.iter()
                    .fold(job, |value, key| &value[*key])
                    .as_u64()
                    .unwrap()
            })
            .sum()
        };
        let record = ran.record();
        let ours = |kind: OpKind| {
            record
                .measurements
                .iter()
                .map(|m| count(m, kind))
                .sum::<u64>()
        };
        let (reads, writes) = (sum(&["read", "total_ios"]), sum(&["write", "total_ios"]));
        if options.starts_with("rw=randrw") {
            assert_eq!(
                ours(OpKind::Read) + ours(OpKind::Write),
                reads + writes,
                "{options}"
            );
        } else {
            assert_eq!(
                (ours(OpKind::Read), ours(OpKind::Write)),
                (reads, writes),
                "{options}"
            );
        }
    }
}

/// fio's example surface-scan.fio, on a new file and on one that the job writes and another reads.
#[test]
fn job_verifies_what_an_earlier_job_or_run_wrote() {
    let here = place();
    let scan = "[global]\nbs=64k\ndirect=1\nverify=meta\nverify_interval=512\nfilename=HERE/data\n\
                [write-phase]\nsize=2m\nrw=randwrite\ndo_verify=0\n\
                [verify-phase]\nstonewall\nrw=read\ndo_verify=1\n";
    let found = |ran: &Ran, index: usize| {
        let verify = ran.record().measurements[index].data.verify.clone();
        verify.map(|found| (found.blocks, found.bad_blocks, found.runs))
    };
    let new = run_job(here.path(), scan, &["--json"]);
    new.exits(0);
    assert_eq!(
        (found(&new, 0), found(&new, 1)),
        (None, Some((32, 0, Some(1))))
    );
    let file = here.path().join("data");
    assert!(!file.exists(), "a new file is a scratch file");
    std::fs::write(&file, vec![7; 2 << 20]).unwrap();
    let path = file.to_str().unwrap();
    let wrote = run_job(here.path(), scan, &["--json", "--overwrite", path]);
    assert_eq!(
        (wrote.code, found(&wrote, 1)),
        (Some(0), Some((32, 0, Some(1)))),
        "{}",
        wrote.err
    );
    let only = "[a]\nfilename=HERE/data\nbs=64k\nrw=randwrite\nverify=crc32c\nverify_only\n";
    let checked = run_job(here.path(), only, &["--json"]);
    assert_eq!(
        (
            checked.code,
            found(&checked, 0),
            count(&checked.record().measurements[0], OpKind::Write)
        ),
        (Some(0), Some((32, 0, Some(1))), 0),
        "{}",
        checked.err
    );
}
