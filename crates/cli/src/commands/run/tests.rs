//! Exact plans from command lines and plan files.

use super::*;
use crate::commands::{Args, Verb};
use crate::plan_file::KeptFile;
use crate::session::admit_all;
use clap::Parser as _;
use diskproof_device::{Consent, probe};
use diskproof_model::op::OpKind;
use diskproof_model::plan::{EngineChoice, EngineKind, Layout};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const MEMORY: Memory = Memory {
    installed_bytes: Some(16 * GIB),
    free_bytes: None,
};

fn run_flags(line: &[&str]) -> RunFlags {
    let args = Args::try_parse_from(["diskproof", "run"].iter().chain(line))
        .unwrap_or_else(|error| panic!("{line:?}: {error}"));
    match args.verb {
        Verb::Run(run) => *run,
        other => panic!("{other:?}"),
    }
}

fn directory(path: &str, inode: u64) -> TargetIdentity {
    let mut identity = probe(Path::new("/")).unwrap();
    identity.path = path.to_owned();
    identity.kind = TargetKind::Directory;
    identity.inode = inode;
    identity.layers.clear();
    let filesystem = identity.filesystem.as_mut().unwrap();
    filesystem.size_bytes = 100 * GIB;
    filesystem.free_bytes = 50 * GIB;
    identity
}

fn file(path: &str, size_bytes: u64) -> TargetIdentity {
    TargetIdentity {
        kind: TargetKind::File,
        size_bytes,
        ..directory(path, 99)
    }
}

fn plan_for(line: &[&str], identities: &[TargetIdentity]) -> Result<Plan, Failure> {
    RunRequest::from_flags(&run_flags(line))?.plan(identities, MEMORY)
}

/// The command line is refused with this exit, in a message with these parts.
fn assert_refused(exit: Exit, line: &[&str], identities: &[TargetIdentity], parts: &[&str]) {
    let failure = plan_for(line, identities).expect_err("refused");
    assert_eq!(failure.exit(), exit, "{failure}");
    let text = failure.to_string();
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Writes a plan file, which vanishes with the path.
fn plan_file(text: &str) -> tempfile::TempPath {
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file.into_temp_path()
}

#[test]
fn scratch_file_has_1_gib_or_the_free_space() {
    let plan = plan_for(&["--seed", "7", "--engine", "aio"], &[directory("/a", 1)]).unwrap();
    assert_eq!(plan.scratch_bytes(), Some(GIB));
    assert_eq!(plan.seed, 7);
    assert_eq!(plan.targets, ["/a"]);
    assert_eq!(plan.workloads().len(), 1);
    assert_eq!(
        plan.workloads()[0].engine,
        EngineChoice::Fixed(EngineKind::Aio)
    );
    let mut narrow = directory("/a", 1);
    narrow.filesystem.as_mut().unwrap().free_bytes = 2 * GIB + 300 * MIB;
    // Two on one filesystem share it.
    let second = TargetIdentity {
        path: "/b".to_owned(),
        inode: 2,
        ..narrow.clone()
    };
    let only = [narrow.clone()];
    let both = [narrow, second];
    let plan = plan_for(&[], &only).unwrap();
    assert_eq!(plan.scratch_bytes(), Some(300 * MIB));
    let plan = plan_for(&[], &both).unwrap();
    assert_eq!(plan.scratch_bytes(), Some(150 * MIB));
    let plan = plan_for(&["--size", "200M"], &only).unwrap();
    assert_eq!(plan.scratch_bytes(), Some(200 * MIB));
    assert_refused(
        Exit::Refused,
        &["--size", "200M"],
        &both,
        &["at most 150 MiB"],
    );
    assert_refused(
        Exit::Usage,
        &["--size", "1000"],
        &[directory("/a", 1)],
        &["at least 1M"],
    );
}

/// Jobs of fio keep their files, each of which alone has room.
#[test]
fn kept_files_of_several_jobs_fit_into_the_filesystem_together() {
    let identities = [directory("/", 1), directory("/", 1)];
    for (size_gib, is_admitted) in [(24, true), (30, false)] {
        let file = |name: &str| ScratchFile {
            bytes: size_gib * GIB,
            kept: Some(KeptFile::named(name.to_owned())),
        };
        let request = RunRequest {
            file: PlanFile {
                scratch_files: vec![file("one"), file("two")],
                ..PlanFile::default()
            },
            work: WorkSource::Flags(vec![WorkloadFlags::default()]),
            ..RunRequest::from_flags(&run_flags(&["/"])).unwrap()
        };
        let plan = request.plan(&identities, MEMORY).unwrap();
        let admitted = admit_all(&plan, &identities, &Consent::default());
        assert_eq!(admitted.is_ok(), is_admitted, "{size_gib} GiB each of 48");
    }
}

#[test]
fn existing_files_are_only_read() {
    let identities = [file("/f", GIB)];
    let plan = plan_for(&["--span", "50%"], &identities).unwrap();
    assert_eq!(plan.scratch_bytes(), None);
    assert_eq!(plan.workloads()[0].span.length_bytes, Some(GIB / 2));
    for rw in ["write", "randrw"] {
        let plan = plan_for(&["--rw", rw], &identities).unwrap();
        let refusal = admit_all(&plan, &identities, &Consent::default()).expect_err("refused");
        assert_eq!(refusal.exit(), Exit::Refused);
        assert!(refusal.to_string().contains("/f"), "{refusal}");
    }
    assert_refused(
        Exit::Usage,
        &["--size", "1G"],
        &identities,
        &["--size", "/f"],
    );
    assert_refused(
        Exit::Usage,
        &[],
        &[file("/f", GIB), file("/f", GIB)],
        &["/f is named twice"],
    );
}

#[test]
fn flags_override_the_plan_file() {
    let path = plan_file(
        "note = \"planned\"\nseed = 5\nsize = \"2GiB\"\ntargets = \
         [\"/planned\"]\n[defaults]\nrw = \"write\"\nengine = \"libaio\"\n[[workload]]\nname = \
         \"fill\"\n[[workload]]\nname = \"again\"\n[[workload]]\nname = \"reads\"\nrw = \
         \"randread\"\n",
    );
    let path = path.to_str().unwrap();
    let request = RunRequest::from_flags(&run_flags(&[path])).unwrap();
    assert_eq!(request.file.note.as_deref(), Some("planned"));
    assert_eq!(request.file.targets, [PathBuf::from("/planned")]);
    let plan = request.plan(&[directory("/planned", 1)], MEMORY).unwrap();
    assert_eq!(plan.seed, 5);
    assert_eq!(plan.scratch_bytes(), Some(2 * GIB));
    let [fill, again, reads] = plan.workloads() else {
        panic!("{plan:?}");
    };
    for workload in [fill, again, reads] {
        assert_eq!(workload.engine, EngineChoice::Fixed(EngineKind::Aio));
    }
    assert_eq!(fill.name, "fill");
    assert_eq!(fill.layout, Layout::Provides);
    assert_eq!(fill.streams.permille(OpKind::Read), 0);
    assert_eq!(again.name, "again");
    assert_eq!(again.layout, Layout::Needed);
    assert_eq!(again.streams.permille(OpKind::Read), 0);
    assert_eq!(reads.name, "reads");
    assert_eq!(reads.layout, Layout::Needed);
    assert_eq!(reads.streams.permille(OpKind::Read), 1000);

    let line = [
        path, "/mine", "/other", "--seed", "6", "--size", "1GiB", "--note", "mine", "--engine",
        "sync",
    ];
    let request = RunRequest::from_flags(&run_flags(&line)).unwrap();
    assert_eq!(request.file.note.as_deref(), Some("mine"));
    assert_eq!(request.file.targets.len(), 2);
    let targets = [directory("/mine", 1), directory("/other", 2)];
    let plan = request.plan(&targets, MEMORY).unwrap();
    assert_eq!(plan.seed, 6);
    assert_eq!(plan.scratch_bytes(), Some(GIB));
    assert_eq!(
        plan.workloads()[2].engine,
        EngineChoice::Fixed(EngineKind::Sync)
    );
}

#[test]
fn plan_file_error_names_file_and_line() {
    let size = plan_file("[[workload]]\nname = \"a\"\nbs = \"0\"\n");
    assert_refused(
        Exit::Usage,
        &[size.to_str().unwrap()],
        &[directory("/a", 1)],
        &[".toml: line 3: bs = \"0\": "],
    );
    let backward = plan_file("[[workload]]\nname = \"a\"\nbackward = true\n");
    assert_refused(
        Exit::Usage,
        &[backward.to_str().unwrap()],
        &[directory("/a", 1)],
        &[".toml: line 1: workload 'a': backward "],
    );
    let valid = plan_file("[[workload]]\nname = \"a\"\n");
    assert_refused(
        Exit::Usage,
        &[valid.to_str().unwrap(), "--bs", "4k"],
        &[directory("/a", 1)],
        &["[defaults]"],
    );
    assert_refused(
        Exit::Usage,
        &["/no/such.toml"],
        &[directory("/a", 1)],
        &["/no/such.toml"],
    );
}

#[test]
fn workload_with_blocks_below_the_sector_size_is_skipped() {
    let mut layers = probe(Path::new("/")).unwrap().layers;
    layers.truncate(1);
    layers[0].logical_block_bytes = Some(4096);
    let targets = [TargetIdentity {
        layers,
        ..directory("/a", 1)
    }];
    let parts = [
        "sectors of 4096 bytes",
        "multiple of 4096 for --bs and --span",
    ];
    assert_refused(Exit::Usage, &["--bs", "512"], &targets, &parts);
    let path = plan_file(
        "[[workload]]\nname = \"small\"\nbs = \"512\"\nrw = \"write\"\n[[workload]]\nname = \
         \"large\"\nrw = \"write\"\n",
    );
    let plan = plan_for(&[path.to_str().unwrap()], &targets).unwrap();
    assert_eq!(plan.skipped[0].workload, "small");
    // The next workload becomes the first one.
    let first = &plan.workloads()[0];
    assert_eq!(first.name, "large");
    assert_eq!(first.layout, Layout::Provides);
}

#[test]
fn every_example_plan_resolves() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plans"));
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let path = path.to_str().unwrap();
        if !path.ends_with(".toml") {
            continue;
        }
        seen += 1;
        let text = std::fs::read_to_string(path).unwrap();
        assert!(
            text.starts_with("# "),
            "{path}: begins with what it answers"
        );
        let plan = plan_for(&[path], &[directory("/a", 1)]).unwrap();
        assert!(!plan.workloads().is_empty(), "{path}");
        assert!(plan.time_ns_max().is_some(), "{path}");
        for workload in plan.workloads() {
            let is_endless = workload.writes() && workload.stop.bytes.is_none();
            assert!(!is_endless, "{path}: {} has no limit", workload.name);
        }
    }
    assert!(seen >= 12, "{seen} examples");
}

#[test]
fn schedule_without_a_start_is_refused_before_the_run() {
    let target = [file("/f", GIB)];
    let slow = ["--rate", "0.1", "--time", "500ms"];
    assert_refused(Exit::Usage, &slow, &target, &["--rate 0.1", "500 ms"]);
    let without_warmup = ["--rate", "0.1", "--time", "500ms", "--warmup", "0s"];
    plan_for(&without_warmup, &target).unwrap();
    // A limit beyond the schedule is only noted.
    let limited = plan_for(&["--rate", "10", "--time", "5s", "--ops", "1000"], &target).unwrap();
    let notes = limits_cut_by_time(&limited);
    assert!(notes[0].contains("1000 operations"), "{notes:?}");
    assert!(notes[0].contains("50 operations"), "{notes:?}");
    let plan = plan_file(
        "[[workload]]\nname = \"a\"\ntime = \"5s\"\n[[workload]]\nname = \"b\"\nrate = \
         0.1\ntogether = true\n",
    );
    let line = [plan.to_str().unwrap()];
    assert_refused(
        Exit::Usage,
        &line,
        &target,
        &["line 4: workload 'b': rate 0.1 "],
    );
}
