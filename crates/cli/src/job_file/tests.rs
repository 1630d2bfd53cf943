//! Job files to plans, exactly; and nothing that could be another load.

use super::*;
use crate::flags::EngineName;
use crate::workload::{Direction, Position, WorkloadFlags};
use proptest::prelude::*;
use std::collections::BTreeMap;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A machine whose files are given.
#[derive(Default)]
struct Fake {
    variables: BTreeMap<&'static str, String>,
    files: BTreeMap<&'static str, String>,
    found: BTreeMap<&'static str, PathKind>,
}

impl Environment for Fake {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn machine(&self) -> MachineFacts {
        MachineFacts {
            page_bytes: 4096,
            memory_mib: 64,
            cpus: 8,
        }
    }

    fn text(&self, path: &Path) -> Result<String, String> {
        self.files
            .get(path.to_str().unwrap())
            .cloned()
            .ok_or_else(|| "it is not there".to_owned())
    }

    fn found(&self, path: &Path) -> PathKind {
        match path.to_str().unwrap() {
            "." | "/data" | "/other" | "/tmp" => PathKind::Directory,
            "/dev/sda" | "/dev/sdb" => PathKind::Device(8 * GIB),
            "/dev/big" => PathKind::Device(16 * GIB),
            "/data/table" => PathKind::File(GIB),
            "/dev/null" => PathKind::Other("/dev/null: it is no disk".to_owned()),
            path => self.found.get(path).cloned().unwrap_or(PathKind::Nothing),
        }
    }
}

fn translated(text: &str, beside: CliOverrides<'_>) -> Result<JobFile, String> {
    JobFile::translate(text, Path::new("jobs/x.fio"), beside, &Fake::default())
        .map_err(|error| error.to_string())
}

fn plan(text: &str) -> PlanFile {
    translated(text, CliOverrides::default())
        .unwrap_or_else(|error| panic!("{text}\n{error}"))
        .plan
}

fn remarks(text: &str) -> String {
    translated(text, CliOverrides::default())
        .unwrap_or_else(|error| panic!("{text}\n{error}"))
        .remarks
        .join("\n")
}

fn refused(text: &str) -> String {
    translated(text, CliOverrides::default())
        .map(|file| format!("{file:?}"))
        .expect_err(text)
}

/// The only workload of a job on /dev/sda with these options.
fn only(options: &str) -> WorkloadFlags {
    let plan = plan(&format!("[job]\nfilename=/dev/sda\n{options}\n"));
    let [workload] = &plan.workloads[..] else {
        panic!("{plan:?}")
    };
    workload.flags.clone()
}

fn span(flags: &WorkloadFlags) -> Option<(u64, u64)> {
    flags.span.map(|part| match (part.start, part.end) {
        (Position::Bytes(start), Position::Bytes(end)) => (start, end),
        other => panic!("{other:?}"),
    })
}

#[test]
fn what_is_not_said_is_as_in_fio() {
    let flags = only("");
    assert_eq!(flags.rw.unwrap().as_str(), "read");
    assert_eq!(
        (
            flags.bs.unwrap().0,
            flags.depth.unwrap().0,
            flags.jobs.unwrap().0,
            flags.engine
        ),
        (4096, 1, 1, Some(EngineName::Sync))
    );
    assert_eq!(
        (
            flags.buffered,
            flags.cached,
            flags.time,
            flags.warmup.unwrap().0
        ),
        (Some(true), None, None, 0)
    );
    assert_eq!(
        (flags.bytes.unwrap().0, flags.span, flags.together),
        (8 * GIB, None, None),
        "once through the device"
    );
    let told = remarks("[job]\nfilename=/dev/sda\n");
    assert!(
        told.starts_with("direct=0, which is fio's default") && told.lines().count() == 1,
        "{told}"
    );
}

#[test]
fn a_job_is_carried_over_word_by_word() {
    let flags = only(
        "rw=randrw\nbs=8k\niodepth=32\nioengine=libaio\ndirect=1\nnumjobs=4\nrwmixread=70\n\
         size=1g\noffset=2g\nruntime=60\nramp_time=5s\ntime_based\nnorandommap\nfsync=16",
    );
    assert_eq!(
        (
            flags.rw.unwrap().as_str(),
            flags.bs.unwrap().0,
            flags.depth.unwrap().0,
            flags.jobs.unwrap().0
        ),
        ("randrw", 8192, 32, 4)
    );
    assert_eq!(
        (
            flags.rwmixread.unwrap().0,
            flags.time.unwrap().0,
            flags.warmup.unwrap().0
        ),
        (700, 60_000_000_000, 5_000_000_000)
    );
    assert_eq!(
        (
            span(&flags),
            flags.bytes,
            flags.engine,
            flags.fsync.unwrap().0
        ),
        (Some((2 * GIB, 3 * GIB)), None, Some(EngineName::Aio), 16)
    );
    assert_eq!((flags.buffered, flags.cached), (None, None));
    assert_eq!(
        only("rw=rw\nrwmixread=70\nrwmixwrite=60")
            .rwmixread
            .unwrap()
            .0,
        400,
        "the later one counts"
    );
    assert_eq!(
        only("rw=rw\nrwmixwrite=60\nrwmixread=70")
            .rwmixread
            .unwrap()
            .0,
        700
    );
    assert_eq!(
        only("readwrite=write\nblocksize=64K\ndirect=1\nbuffered=1").buffered,
        Some(true)
    );
    assert_eq!(only("bs=8k,4k").bs.unwrap().0, 8192);
    assert_eq!(only("bs=8k,4k\nrw=write").bs.unwrap().0, 4096);
    assert_eq!(
        only("bssplit=4k/50:1k/:32k/")
            .bssplit
            .unwrap()
            .0
            .iter()
            .map(|share| share.weight)
            .collect::<Vec<_>>(),
        [50, 25, 25]
    );
    assert_eq!(
        (
            only("rw=read:8k").stride.unwrap().0,
            only("rw=read:-8k").backward
        ),
        (12288, Some(true))
    );
    assert!(
        only("rw=randread\nrandom_distribution=zoned:50/5:30/15:20/")
            .zones
            .is_some()
    );
    assert!(
        only("rw=randread\nrandom_distribution=zipf")
            .distribution
            .is_some()
    );
    assert_eq!(only("ioengine=io_uring\niodepth=8").depth.unwrap().0, 8);
    assert_eq!(only("ioengine=psync\niodepth=8").depth.unwrap().0, 1);
    assert_eq!(
        only("ioengine=psync\niodepth=8\nio_submit_mode=offload")
            .depth
            .unwrap()
            .0,
        8
    );
    assert_eq!(
        (
            only("rw=randwrite\nverify=crc32c").verify,
            only("rw=randwrite\nverify=0").verify
        ),
        (Some(true), None)
    );
}

#[test]
fn ends_are_those_of_all_copies_together() {
    let end = |options: &str| {
        let flags = only(options);
        (flags.bytes.map(|bytes| bytes.0), flags.ops.map(|ops| ops.0))
    };
    assert_eq!(
        end("rw=randread\nsize=1g\nnumjobs=4"),
        (Some(4 * GIB), None)
    );
    assert_eq!(
        end("rw=randread\nsize=1g\nnumjobs=2\nloops=3"),
        (Some(6 * GIB), None)
    );
    assert_eq!(
        end("rw=randread\nsize=1g\nio_size=10m\nnumjobs=2"),
        (Some(20 * MIB), None)
    );
    assert_eq!(
        end("rw=randread\nsize=1g\nnumber_ios=100\nnumjobs=2"),
        (None, Some(200)),
        "of two limits the first"
    );
    assert_eq!(
        end("rw=randread\nsize=8k\nnumber_ios=100"),
        (Some(8192), None)
    );
    assert_eq!(
        end("rw=randread\nsize=1g\nnumber_ios=100\nbssplit=4k/50:8k/50"),
        (Some(GIB), Some(100))
    );
    assert_eq!(end("rw=randread\nsize=50%"), (Some(4 * GIB), None));
    assert_eq!(
        end("bs=1000\nsize=4500"),
        (Some(4000), None),
        "whole blocks"
    );
    assert_eq!(
        (
            end("rw=randread\nbs=1000\nsize=4500"),
            end("rw=randread\nbs=1000\nsize=4500\nnorandommap")
        ),
        ((Some(4000), None), (Some(5000), None))
    );
    assert_eq!(
        end("bs=1000\nsize=9k\nio_size=4500"),
        (Some(5000), None),
        "enough"
    );
    assert_eq!(
        (
            end("rw=read:8k\nsize=256k"),
            end("rw=read:8k\nsize=256k\nnumber_ios=50").0
        ),
        ((Some(22 * 4096), None), Some(22 * 4096)),
        "one lap"
    );
    let bytes = |options: &str| {
        plan(&format!("[a]\ndirectory=/data\n{options}")).workloads[0]
            .flags
            .bytes
            .unwrap()
            .0
    };
    assert_eq!(
        (
            bytes("rw=read:8k\nsize=100000"),
            bytes("rw=read:8k\nsize=96k")
        ),
        (8 * 4096, 96 * 1024),
        "over the end, and behind it"
    );
    assert_eq!(bytes("rw=read:8k\nsize=256k"), 22 * 4096, "at the end");
    assert_eq!(bytes("rw=randread\nsize=100000\nnorandommap"), 25 * 4096);
    assert_eq!(
        end("rw=read:8k\nsize=256k\nloops=3"),
        (Some(3 * 22 * 4096), None)
    );
    assert_eq!(
        end("runtime=10"),
        (Some(8 * GIB), None),
        "without time_based whichever comes first"
    );
    assert_eq!(
        end("time_based"),
        (Some(8 * GIB), None),
        "which is nothing without a runtime"
    );
    let rate = |options: &str| only(options).rate.unwrap().0;
    assert_eq!(rate("rw=randread\nrate_iops=100\nnumjobs=4"), 400.0);
    assert_eq!(rate("rate=1m\nbs=8k"), 128.0);
    assert_eq!(rate("rw=randrw\nrate_iops=70,30\nrwmixread=70"), 100.0);
}

#[test]
fn jobs_run_together_unless_they_wait() {
    let text = "[global]\nfilename=/dev/sda\nrw=randread\n[a]\n[b]\n[c]\nstonewall\n[global]\n\
                bs=16k\n[d]\n[e]\nwait_for_previous\n";
    let plan = plan(text);
    let seen: Vec<_> = plan
        .workloads
        .iter()
        .map(|w| {
            (
                w.name.as_str(),
                w.line,
                w.flags.together,
                w.flags.bs.unwrap().0,
            )
        })
        .collect();
    let with = Some(true);
    assert_eq!(
        seen,
        [
            ("a", 4, None, 4096),
            ("b", 5, with, 4096),
            ("c", 6, None, 4096),
            ("d", 10, with, 16384),
            ("e", 11, None, 16384)
        ]
    );
    assert_eq!(plan.targets, [PathBuf::from("/dev/sda")]);
    let told = remarks(text);
    assert!(
        told.contains("a, b, c and 1 more: jobs that run together end together"),
        "{told}"
    );
    let calm = remarks("[global]\nfilename=/dev/sda\ndirect=1\ntime_based\nruntime=5\n[a]\n[b]\n");
    assert_eq!(calm, "");
    assert!(
        refused("[global]\nfilename=/dev/sda\nexitall\nexit_what=all\n[a]\n[b]\nstonewall\n")
            .contains("[a]: exit_what=all would leave out")
    );
}

#[test]
fn files_that_are_not_there_become_parts_of_one_scratch_file() {
    let own = plan(
        "[global]\nsize=10m\ndirectory=/data\n[a]\nnumjobs=4\n[b]\nrw=randwrite\nsize=1500k\n",
    );
    assert_eq!(
        (own.targets.as_slice(), own.size.unwrap().0),
        (&[PathBuf::from("/data")][..], 42 * MIB)
    );
    let [a, b] = &own.workloads[..] else {
        panic!("{own:?}")
    };
    assert_eq!(
        (
            span(&a.flags),
            a.flags.jobs.unwrap().0,
            a.flags.bytes.unwrap().0
        ),
        (Some((0, 40 * MIB)), 4, 40 * MIB)
    );
    assert_eq!(span(&b.flags), Some((40 * MIB, 40 * MIB + 1500 * 1024)));
    let one = plan(
        "[a]\nfilename=/data/new\nsize=10m\nrw=write\n[b]\nfilename=/data/new\nsize=5m\nstonewall\n\
         ",
    );
    assert_eq!(
        (
            one.size.unwrap().0,
            span(&one.workloads[0].flags),
            span(&one.workloads[1].flags)
        ),
        (10 * MIB, None, Some((0, 5 * MIB)))
    );
    let told = remarks("[a]\nfilename=/data/new\nsize=10m\n");
    assert!(
        told.contains("/data/new is not there: a scratch file of 10 MiB in /data takes its place"),
        "{told}"
    );
    assert!(!told.contains("blocks that were written before"), "{told}");
    let overwrites = |options: &str| {
        remarks(&format!(
            "[a]\nfilename=/data/new\nsize=10m\nrw=write\n{options}\n"
        ))
        .contains("blocks that were written before")
    };
    assert!(
        !overwrites("")
            && overwrites("fdatasync=1")
            && !overwrites("fdatasync=1\noverwrite=1")
            && overwrites("numjobs=2")
            && overwrites("size=1500k")
    );
    assert!(!remarks("[a]\nfilename=/dev/sda\nrw=write\nfsync=1\n").contains("written before"));
    // A file that is there is measured, be it named in two ways.
    assert_eq!(
        plan("[a]\ndirectory=/data\nfilename=table\n").targets,
        [PathBuf::from("/data/table")]
    );
    assert_eq!(plan("[/dev/sda]\n").targets, [PathBuf::from("/dev/sda")]);
    assert!(refused("[a]\nfilename=/data/new\n").contains("[a]: without a size"));
    assert!(
        refused("[a]\nfilename=/dev/sdz\nsize=1g\n").contains("line 2: [a]: there is no /dev/sdz")
    );
    assert!(
        refused("[a]\nfilename=/nowhere/x\nsize=1g\n").contains("there is no directory /nowhere")
    );
    assert!(refused("[a]\nfilename=/data\n").contains("this is a directory"));
    assert!(refused("[a]\nfilename=/dev/null\n").contains("it is no disk"));
    assert!(
        refused("[a]\nfilename=/data/new\nsize=10%\n").contains("a share in percent needs a file")
    );
}

#[test]
fn copies_that_do_not_share_their_work_are_workloads_of_their_own() {
    let same = plan("[a]\nfilename=/dev/sda\nsize=1g\nnumjobs=3\n");
    assert_eq!(
        same.workloads
            .iter()
            .map(|w| w.name.as_str())
            .collect::<Vec<_>>(),
        ["a-1", "a-2", "a-3"]
    );
    assert!(
        same.workloads
            .iter()
            .all(|w| span(&w.flags) == Some((0, GIB))
                && w.flags.jobs.unwrap().0 == 1
                && w.flags.bytes.unwrap().0 == GIB)
    );
    assert_eq!(
        same.workloads
            .iter()
            .map(|w| w.flags.together)
            .collect::<Vec<_>>(),
        [None, Some(true), Some(true)]
    );
    // Side by side they are one, as jobs of a workload have a part each.
    let beside =
        plan("[a]\nfilename=/dev/sda\nsize=1g\nnumjobs=3\noffset_increment=1g\noffset=2g\n");
    assert_eq!(
        (beside.workloads.len(), span(&beside.workloads[0].flags)),
        (1, Some((2 * GIB, 5 * GIB)))
    );
    let apart =
        plan("[a]\nfilename=/dev/sda\nrw=randread\nsize=1g\nnumjobs=2\noffset_increment=2g\n");
    assert_eq!(
        apart
            .workloads
            .iter()
            .map(|w| span(&w.flags).unwrap())
            .collect::<Vec<_>>(),
        [(0, GIB), (2 * GIB, 3 * GIB)]
    );
    // Nobody meets what lies before the offset in files of their own.
    let own = plan(
        "[a]\ndirectory=/data\nrw=randread\nsize=10m\noffset=1m\nnumjobs=2\nbssplit=4k/50:8k/50\n",
    );
    assert_eq!(
        (
            own.workloads.len(),
            own.size.unwrap().0,
            span(&own.workloads[0].flags)
        ),
        (1, 20 * MIB, None)
    );
    // Each file has its own popular blocks.
    assert_eq!(
        plan(
            "[a]\ndirectory=/data\nrw=randread\nsize=10m\nnumjobs=2\nrandom_distribution=zipf:1.2\n\
             "
        )
        .workloads
        .len(),
        2
    );
    assert_eq!(
        plan("[a]\nfilename=/dev/sda\nrw=randread\nnumjobs=2\nrandom_distribution=zipf:1.2\n")
            .workloads
            .len(),
        1
    );
    let shared = plan(
        "[global]\ndirectory=/data\nsize=10m\nrw=randread\nnumjobs=2\nfilename_format=f.$jobnum\n\
         [a]\n[b]\nstonewall\n",
    );
    assert_eq!(
        (shared.size.unwrap().0, span(&shared.workloads[1].flags)),
        (20 * MIB, None)
    );
}

#[test]
fn the_same_on_each_of_several_disks_is_one_plan() {
    let text = "[global]\nrw=randread\nruntime=5\ntime_based\n[one]\nfilename=/dev/sda\n[two]\n\
                filename=/dev/sdb\n";
    let both = plan(text);
    assert_eq!(
        both.targets,
        [PathBuf::from("/dev/sda"), PathBuf::from("/dev/sdb")]
    );
    assert_eq!(
        both.workloads
            .iter()
            .map(|w| w.name.as_str())
            .collect::<Vec<_>>(),
        ["randread"]
    );
    for other in [
        text.replace("[two]", "[two]\nbs=8k"),
        text.replace("[two]", "[two]\nstonewall"),
    ] {
        assert!(
            refused(&other).contains("the jobs do different things on different disks"),
            "{other}"
        );
    }
    assert!(
        refused("[a]\nfilename=/dev/sda:/dev/sdb\n")
            .contains("line 2: filename=/dev/sda:/dev/sdb: this job has several files")
    );
    // Named on the command line, what the file says of targets does not count.
    let targets = [PathBuf::from("/data")];
    let given = translated(
        text,
        CliOverrides {
            targets: &targets,
            size: Some(64 * MIB),
            ..CliOverrides::default()
        },
    )
    .expect_err("sizes of two files are not known");
    assert!(given.contains("without a size"), "{given}");
    let given = translated(
        &text.replace("[one]", "size=8m\n[one]"),
        CliOverrides {
            targets: &targets,
            ..CliOverrides::default()
        },
    )
    .unwrap();
    assert_eq!(
        (
            given.plan.targets.len(),
            given.plan.size.unwrap().0,
            given.plan.workloads.len()
        ),
        (0, 16 * MIB, 2)
    );
    assert!(
        given.remarks[0].contains("the 2 files of the jobs become parts of the target"),
        "{:?}",
        given.remarks
    );
    let device = [PathBuf::from("/dev/big")];
    let given = translated(
        "[a]\nfilename=/dev/sda\nrw=randread\n",
        CliOverrides {
            targets: &device,
            ..CliOverrides::default()
        },
    )
    .unwrap();
    assert_eq!(given.plan.workloads[0].flags.bytes.unwrap().0, 16 * GIB);
}

#[test]
fn single_sections_run_alone() {
    let text = "[global]\nrw=randread\n[one]\nfilename=/dev/sda\n[two]\nstonewall\nfilename=/dev/\
                sdb\n[odd]\nioengine=net\n";
    let names = |sections: &[&str]| {
        let sections: Vec<String> = sections.iter().map(|name| (*name).to_owned()).collect();
        let file = translated(
            text,
            CliOverrides {
                sections: &sections,
                ..CliOverrides::default()
            },
        )?;
        Ok::<_, String>((
            file.plan.targets,
            file.plan
                .workloads
                .iter()
                .map(|w| w.name.clone())
                .collect::<Vec<_>>(),
        ))
    };
    assert_eq!(
        names(&["two"]),
        Ok((vec![PathBuf::from("/dev/sdb")], vec!["two".to_owned()]))
    );
    assert!(
        names(&["two", "one"])
            .unwrap_err()
            .contains("run them one by one (--section NAME)")
    );
    assert!(names(&[]).unwrap_err().contains("ioengine=net"));
    assert_eq!(
        names(&["one", "three"]),
        Err("jobs/x.fio: line 3: there is no section 'three'; there are one, two, odd".to_owned())
    );
}

#[test]
fn the_page_cache_is_gone_about_as_fio_does() {
    let caches = |text: &str| {
        let plan = plan(&format!("[global]\nfilename=/dev/sda\n{text}"));
        plan.workloads
            .iter()
            .map(|w| (w.flags.buffered.is_some(), w.flags.cached.is_some()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        caches("[a]\ndirect=1\n[b]\nbuffered=0\n[c]\ninvalidate=0\n"),
        [(false, false), (false, false), (false, true)]
    );
    assert_eq!(
        caches("[a]\nrw=write\nfdatasync=1\n"),
        [(false, true)],
        "what is synced need not be written back"
    );
    assert_eq!(
        caches("[a]\nrw=write\nfdatasync=1\n[b]\nrw=randread\n"),
        [(true, false), (true, false)],
        "a target has one page cache"
    );
    assert_eq!(caches("[a]\nrw=rw\nfsync=1\n"), [(true, false)]);
    assert_eq!(
        only("rw=read\nfsync=1\nend_fsync=1").fsync,
        None,
        "nothing is written"
    );
    assert_eq!(
        (
            only("rw=write\nend_fsync=1").end_fsync,
            only("rw=write\nfsync=1\nend_fsync=1").end_fsync
        ),
        (Some(true), None)
    );
}

#[test]
fn what_would_be_another_load_is_refused_with_its_line() {
    let cases = [
        (
            "ioengine=net\nhostname=x",
            "line 3: ioengine=net: this engine measures something else",
        ),
        ("ioengine=posixaio", "one after the other"),
        ("rw=randtrim", "line 3: rw=randtrim: trims have no place"),
        (
            "thinktime=10",
            "line 3: thinktime=10: [job]: fio's 'thinktime' has no place here",
        ),
        ("sync=1", "opens with O_SYNC"),
        ("zonemode=zbd", "fio's 'zonemode'"),
        ("latency_target=500", "fio's 'latency_target'"),
        ("rw=randread:8", "several blocks in a row"),
        ("rw=read:-4k", "write -8192 for this bs"),
        (
            "rw=rw\nbs=4k,8k",
            "reads and writes of one job have the same value",
        ),
        ("bsrange=4k-8k", "is a mix of block sizes; use bssplit"),
        ("rw=randread\nblockalign=512", "offsets are multiples"),
        (
            "random_distribution=pareto:0.2\nrw=randread",
            "this distribution has no place",
        ),
        ("nrfiles=4", "several files for one job"),
        ("verify=crc32c", "only what the same job wrote"),
        ("verify=pattern\nrw=write", "by checksums here"),
        ("rate_process=poisson", "always linear"),
        (
            "rw=randrw\nrate_iops=100\nrwmixread=70",
            "rates of their own",
        ),
        ("startdelay=5", "use sleep in the shell"),
        (
            "exec_prerun=rm -rf /",
            "no file makes diskproof run other programs",
        ),
        (
            "bs=1.5k",
            "line 3: bs=1.5k: '1.5k' is not a number as fio reads it",
        ),
        ("runtime=30sec", "not a time as fio reads it"),
        ("direct", "line 3: direct"),
        (
            "nonsense=1",
            "line 3: nonsense=1: fio 3.42 has no such option",
        ),
        ("bs", "line 3: bs: a value is missing"),
        ("bs=65m", "line 1: [job]: a block of 68157440 is too large"),
        ("numjobs=5000", "line 3: numjobs=5000 is too much"),
        (
            "rw=read:8k\nsize=1m\nio_size=1m",
            "io_size is more than a walk backwards",
        ),
        (
            "rw=read:-8k\nsize=1m\noffset=1m",
            "fio ends a walk backwards that has an offset",
        ),
        ("io_size=1m\nloops=2", "io_size ends the job too"),
        ("size=100", "smaller than a block"),
        ("offset=9g", "begins behind the end"),
    ];
    for (options, part) in cases
        .into_iter()
        .filter(|(options, _)| *options != "direct")
    {
        let told = refused(&format!("[job]\nfilename=/dev/sda\n{options}\n"));
        assert!(
            told.starts_with("jobs/x.fio: line ") && told.contains(part),
            "{options}: {told}"
        );
    }
    // With the value that changes nothing they are no matter.
    only(
        "thinktime=0\nsync=none\nzonemode=none\nstartdelay=0\nrate_process=linear\n\
         serialize_overlap=0\ngroup_reporting\nwrite_bw_log\nthread=1",
    );
    let mixed = remarks("[job]\nfilename=/dev/sda\ndirect=1\nrw=randread\nbssplit=4k/50:8k/50\n");
    assert!(
        mixed.contains("the mix of sizes is what bssplit says"),
        "{mixed}"
    );
    let told =
        remarks("[job]\nfilename=/dev/sda\ndirect=1\ngroup_reporting\nthread\nwrite_bw_log=x\n");
    assert_eq!(
        told,
        "left out, as the load is the same without: group_reporting (how results are shown); \
         write_bw_log (series and histograms are always recorded: -o FILE.json, .csv, .hlog); \
         thread (threads are always used)"
    );
}

#[test]
fn the_dialect_is_fios() {
    let flags = only(
        "  bs = 8k   ; comment\n\n# comment\n;another\nrw=write # \
         more\niodepth=4;x\nioengine=libaio",
    );
    assert_eq!(
        (
            flags.bs.unwrap().0,
            flags.rw.unwrap().direction,
            flags.depth.unwrap().0
        ),
        (8192, Direction::Write, 4)
    );
    assert_eq!(
        (
            only("kb_base=1000\nbs=4kib").bs.unwrap().0,
            only("bs=4k\nkb_base=1000").bs.unwrap().0
        ),
        (4096, 4000)
    );
    assert_eq!(
        span(&only("size=5*1024*1024*$mb_memory/8 # 5/8 of the memory")),
        Some((0, 5 * 1024 * 1024 * 64 / 8))
    );
    assert_eq!(
        (
            only("numjobs=$ncpus\nrw=randread").jobs.unwrap().0,
            only("bs=$pagesize").bs.unwrap().0
        ),
        (8, 4096)
    );
    assert_eq!(span(&only("size=(2 * 512m)")), Some((0, GIB)));
    for (text, part) in [
        ("", "line 1: there is no job in it"),
        ("[global]\nbs=4k\n", "line 1: there is no job in it"),
        (
            "bs=4k\n[a]\n",
            "line 1: bs=4k: an option before the first section",
        ),
        ("[a\n", "line 1: [a: a section is a name in brackets"),
        ("[]\n", "line 1: []: a section is"),
        (
            "[a]\nbs=${NOPE}\n",
            "line 2: bs=${NOPE}: the environment has no NOPE",
        ),
        (
            "[a]\ninclude nowhere\n",
            "line 2: include nowhere: it is not there",
        ),
    ] {
        let told = refused(text);
        assert!(told.contains(part), "{text}: {told}");
    }
    let long = refused(&format!("[a]\n{}\n", "x".repeat(8000)));
    assert!(
        long.contains("…: fio 3.42 has no such option") && long.chars().count() < 300,
        "{long}"
    );
    assert!(refused(&format!("[a]\n{}\n", "x".repeat(9000))).contains("more than 8192 bytes"));
}

#[test]
fn names_are_words_and_told_apart() {
    let names = |text: &str| {
        plan(text)
            .workloads
            .iter()
            .map(|w| w.name.clone())
            .collect::<Vec<_>>()
    };
    let global = "[global]\nfilename=/dev/sda\nname=nobody\n";
    assert_eq!(
        names(&format!(
            "{global}[seq read!]\n[seq read?]\n[x]\nname=mine\n[\u{1b}[2J]\n[---]\n"
        )),
        ["seq-read", "seq-read-2", "mine", "2J", "read"]
    );
    let long = "y".repeat(100);
    assert!(
        names(&format!(
            "{global}[{long}]\nnumjobs=3\n[{long}]\nnumjobs=3\n"
        ))
        .iter()
        .all(|name| name.len() <= 40)
    );
}

#[test]
fn errors_quote_no_line_of_an_included_file() {
    let lines = [
        "root:$6$secret:19000:0:99999:7:::",
        "secret",
        "[secret]",
        "[secret",
        "include secret",
        "size=secret",
        "size=1g ${secret}",
        "rw=secret",
        "bs=(secret)",
        "filename=secret:secret2",
        "ioengine=secret",
        "exec_prerun=secret",
        "numjobs=9999secret",
        "loops=2secret",
        "verify=secret",
        "bssplit=secret/50",
        "random_distribution=zipf:secret",
        "$ncpus=secret+1",
        &format!("secret{}", "x".repeat(9000)),
    ];
    for line in lines {
        let fake = Fake {
            files: [("/etc/shadow", format!("iodepth=1\n{line}\n"))].into(),
            ..Fake::default()
        };
        let text = "[a]\nfilename=/dev/sda\nrw=randread\ninclude /etc/shadow\n";
        let told = JobFile::translate(text, Path::new("x.fio"), CliOverrides::default(), &fake)
            .expect_err(line)
            .to_string();
        assert!(
            told.contains("/etc/shadow: line 2") || told.contains("options that it includes"),
            "{line}: {told}"
        );
        let shown = told.replace("the file may be secret", "");
        assert!(!shown.contains("secret"), "{line}: {told}");
    }
}

#[test]
fn includes_and_variables_are_bounded() {
    let with = |files: &[(&'static str, &str)], variables: &[(&'static str, &str)]| {
        let files = files
            .iter()
            .map(|(name, text)| (*name, (*text).to_owned()))
            .collect();
        let variables = variables
            .iter()
            .map(|(name, text)| (*name, (*text).to_owned()))
            .collect();
        Fake {
            files,
            variables,
            ..Fake::default()
        }
    };
    let read = |fake: &Fake, text: &str| {
        JobFile::translate(text, Path::new("jobs/x.fio"), CliOverrides::default(), fake)
            .map_err(|error| error.to_string())
    };
    let fake = with(
        &[
            ("jobs/common", "bs=16k\nrw=randread\n"),
            ("/abs", "iodepth=4\nbogus=1"),
        ],
        &[("DISK", "/dev/sda"), ("SELF", "${SELF}${SELF}")],
    );
    let plan = read(&fake, "[global]\ninclude common\n[a]\nfilename=${DISK}\n")
        .unwrap()
        .plan;
    assert_eq!(
        (plan.workloads[0].flags.bs.unwrap().0, plan.targets.len()),
        (16384, 1)
    );
    let told = read(&fake, "[a]\ninclude /abs\n").unwrap_err();
    assert!(
        told.starts_with("/abs: line 2: ") && told.contains("include"),
        "{told}"
    );
    assert!(
        read(&fake, "[a]\ndescription=${SELF}\nfilename=/dev/sda\n")
            .unwrap()
            .plan
            .note
            .unwrap()
            == "${SELF}${SELF}",
        "once is enough"
    );
    let fake = with(
        &[
            ("jobs/x.fio", "include x.fio\n"),
            ("jobs/wide", "include wide2\ninclude wide2\n"),
            ("jobs/section", "[b]\n"),
        ],
        &[],
    );
    assert!(
        read(&fake, "[a]\ninclude x.fio\n")
            .unwrap_err()
            .contains("jobs/x.fio: line 1: files include each other")
    );
    assert!(
        read(&fake, "[a]\ninclude section\n")
            .unwrap_err()
            .contains("an included file cannot begin a section")
    );
    assert!(
        read(&fake, "include section\n")
            .unwrap_err()
            .contains("before the first section")
    );
    let many = "include none\n".repeat(300);
    let fake = with(&[("none", "")], &[]);
    assert!(
        read(&fake, &format!("[a]\n{many}"))
            .unwrap_err()
            .contains("line 258: files include each other")
    );
    let huge = "v".repeat(8000);
    let fake = with(&[], &[("V", &huge)]);
    let grown = format!("[a]\n{}", "description=${V}\n".repeat(900));
    assert!(
        read(&fake, &grown)
            .unwrap_err()
            .contains("more than 4 MiB of text")
    );
    assert!(
        read(&fake, "[a]\ndescription=${V}${V}\n")
            .unwrap_err()
            .contains("more than 8192 bytes")
    );
    assert!(
        refused(&format!("[a]\n{}", "thread\n".repeat(1100))).contains("more than 1000 options")
    );
    assert!(refused(&"[a]\nfilename=/dev/sda\n".repeat(1441)).contains("more than 1440 jobs"));
    assert!(
        refused(&"[a]\ndirectory=/data\nsize=1m\nnumjobs=1000\n".repeat(1000))
            .contains("line 17: with their copies (numjobs) there are more than 4096")
    );
    assert!(
        refused(&format!(
            "[global]\n{}{}",
            "thread\n".repeat(999),
            "[a]\n".repeat(1440)
        ))
        .contains("[a]: without a size")
    );
    assert!(
        refused("[a]\nfilename=/dev/sda\nnumjobs=1000\n[b]\nfilename=/dev/sda\nnumjobs=1000\n")
            .contains("more than 1440 workloads")
    );
}

#[test]
fn every_option_has_one_fate_and_each_refusal_an_answer() {
    let mut seen = std::collections::BTreeSet::new();
    for row in options::ROWS {
        assert!(
            matches!(row.fate, options::Handling::Refused(_)) || !row.text.is_empty(),
            "{:?}",
            row.names
        );
        for name in row.names.iter().flat_map(|names| names.split('/')) {
            assert!(seen.insert(name), "{name} stands twice");
        }
    }
    assert_eq!(
        (
            options::canonical("blocksize"),
            options::canonical("nonsense")
        ),
        (Some("bs"), None)
    );
}

const HEAD: &str = include_str!("../../../../docs/job-files.md");
const TABLE: &str = "\n| option of fio | becomes |\n|---|---|\n";

/// The table in docs/job-files.md is that of the code. Written anew under UPDATE_DOCS=1.
#[test]
fn the_table_in_the_docs_is_that_of_the_code() {
    let names = |row: &options::OptionRow| {
        row.names
            .iter()
            .map(|names| format!("`{}`", names.replace('/', "`, `")))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let becomes = |row: &options::OptionRow| match row.fate {
        options::Handling::Carried => row.text.to_owned(),
        options::Handling::LeftOut => format!("left out: {}", row.text),
        options::Handling::Refused([]) => format!(
            "refused: {}",
            options::refusal(options::canonical(row.names[0]).unwrap_or(row.names[0]))
        ),
        options::Handling::Refused(harmless) => {
            let values: Vec<String> = harmless.iter().map(|value| format!("`{value}`")).collect();
            let first = row.names[0].split('/').next().unwrap_or_default();
            format!(
                "refused, except {}: {}",
                values.join(", "),
                options::refusal(first)
            )
        }
    };
    let rows: String = options::ROWS
        .iter()
        .map(|row| format!("| {} | {} |\n", names(row), becomes(row)))
        .collect();
    let head = HEAD.split_once(TABLE).map_or(HEAD, |(head, _)| head);
    let (path, wanted) = (
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/job-files.md"),
        format!("{head}{TABLE}{rows}"),
    );
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/job-files.md is out of date: UPDATE_DOCS=1 cargo test -p diskproof --lib \
         the_table_in_the_docs"
    );
}

proptest! {
    #[test]
    fn any_text_gives_a_plan_or_an_error_with_its_line(
        text in "\\PC*",
        lines in prop::collection::vec("(\\[[a-z ]{0,6}\\]|include [a-z./]{0,4}|(rw|bs|bssplit|size|offset|io_size|numjobs|rate|rate_iops|loops|filename|random_distribution|runtime|zonesize|nrfiles|number_ios|offset_increment|filesize|rwmixread|bsrange|verify|kb_base|iodepth)=[-a-z0-9%,:/.()*+^$ {}]{0,24}|[ -~]{0,30})", 0..20),
    ) {
        let lines = lines.join("\n");
        for text in [text.clone(), format!("[a]\n{text}"), lines.clone(), format!("[a]\nfilename=/dev/sda\n{lines}")] {
            match translated(&text, CliOverrides::default()) {
                Ok(file) => prop_assert!(!file.plan.workloads.is_empty()),
                Err(error) => prop_assert!(error.contains(": line "), "{error}"),
            }
        }
    }
}
