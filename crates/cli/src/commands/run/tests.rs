//! Exact plans from command lines and plan files.

use super::*;
use crate::commands::{Args, Verb};
use crate::session::admit_all;
use clap::Parser as _;
use diskproof_device::{Consent, probe};
use diskproof_model::op::OpKind;
use diskproof_model::plan::{EngineChoice, EngineKind, Layout};

const GIB: u64 = 1 << 30;
const MEMORY: Memory = Memory {
    installed_bytes: Some(16 * GIB),
    free_bytes: None,
};

fn asked(line: &[&str]) -> RunFlags {
    let args = Args::try_parse_from(["diskproof", "run"].iter().chain(line))
        .unwrap_or_else(|error| panic!("{line:?}: {error}"));
    match args.verb {
        Verb::Run(run) => *run,
        other => panic!("{other:?}"),
    }
}

fn directory(path: &str, inode: u64) -> TargetIdentity {
    let mut identity = probe(Path::new("/")).unwrap();
    (identity.path, identity.kind, identity.inode) =
        (path.to_owned(), TargetKind::Directory, inode);
    let filesystem = identity.filesystem.as_mut().unwrap();
    (filesystem.size_bytes, filesystem.free_bytes) = (100 * GIB, 50 * GIB);
    identity.layers.clear();
    identity
}

fn file(path: &str, size_bytes: u64) -> TargetIdentity {
    TargetIdentity {
        kind: TargetKind::File,
        size_bytes,
        ..directory(path, 99)
    }
}

fn planned(line: &[&str], identities: &[TargetIdentity]) -> Result<Plan, Failure> {
    RunRequest::of(&asked(line))?.plan(identities, MEMORY)
}

fn refused(line: &[&str], identities: &[TargetIdentity]) -> (Exit, String) {
    let failure = planned(line, identities).expect_err("refused");
    (failure.exit(), failure.to_string())
}

/// Its own plan file.
fn plan_file(text: &str) -> tempfile::TempPath {
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file.into_temp_path()
}

#[test]
fn scratch_file_has_1_gib_or_the_free_space() {
    let plan = planned(&["--seed", "7", "--engine", "aio"], &[directory("/a", 1)]).unwrap();
    assert_eq!(
        (plan.scratch_bytes, plan.seed, plan.targets),
        (Some(GIB), 7, vec!["/a".to_owned()])
    );
    assert_eq!(
        (plan.workloads.len(), plan.workloads[0].engine),
        (1, EngineChoice::Fixed(EngineKind::Aio))
    );
    let mut narrow = directory("/a", 1);
    narrow.filesystem.as_mut().unwrap().free_bytes = 2 * GIB + (300 << 20);
    assert_eq!(
        planned(&[], std::slice::from_ref(&narrow))
            .unwrap()
            .scratch_bytes,
        Some(300 << 20)
    );
    // Two on one filesystem share it.
    let beside = TargetIdentity {
        path: "/b".to_owned(),
        inode: 2,
        ..narrow.clone()
    };
    assert_eq!(
        planned(&[], &[narrow.clone(), beside.clone()])
            .unwrap()
            .scratch_bytes,
        Some(150 << 20)
    );
    let (exit, error) = refused(&["--size", "200M"], &[narrow.clone(), beside]);
    assert!(
        exit == Exit::Refused && error.contains("at most 150 MiB each"),
        "{error}"
    );
    assert_eq!(
        planned(&["--size", "200M"], &[narrow])
            .unwrap()
            .scratch_bytes,
        Some(200 << 20)
    );
    assert!(
        refused(&["--size", "1000"], &[directory("/a", 1)])
            .1
            .contains("at least 1M")
    );
}

#[test]
fn existing_files_are_only_read() {
    let plan = planned(&["--span", "50%"], &[file("/f", GIB)]).unwrap();
    assert_eq!(
        (plan.scratch_bytes, plan.workloads[0].span.length_bytes),
        (None, Some(GIB / 2))
    );
    let identities = [file("/f", GIB)];
    for line in [["--rw", "write"], ["--rw", "randrw"]] {
        let plan = planned(&line, &identities).unwrap();
        let refusal = admit_all(&plan, &identities, &[], &Consent::default()).expect_err("refused");
        let error = refusal.to_string();
        assert!(
            refusal.exit() == Exit::Refused
                && error.contains("/f")
                && error.contains("name a directory"),
            "{error}"
        );
    }
    let (exit, error) = refused(&["--size", "1G"], &[file("/f", GIB)]);
    assert!(
        exit == Exit::Usage && error.contains("/f needs none"),
        "{error}"
    );
    let twice = refused(&[], &[file("/f", GIB), file("/f", GIB)]);
    assert!(
        twice.0 == Exit::Usage && twice.1.contains("named twice"),
        "{}",
        twice.1
    );
}

#[test]
fn flags_override_the_plan_file() {
    let path = plan_file(
        "note = \"from the plan\"\nseed = 5\nsize = \"2GiB\"\ntargets = \
         [\"/planned\"]\n[defaults]\nrw = \"write\"\nengine = \"libaio\"\n[[workload]]\nname = \
         \"fill\"\n[[workload]]\nname = \"again\"\n[[workload]]\nname = \"reads\"\nrw = \
         \"randread\"\n",
    );
    let path = path.to_str().unwrap();
    let request = RunRequest::of(&asked(&[path])).unwrap();
    assert_eq!(
        (
            request.file.note.as_deref(),
            request.file.targets.as_slice()
        ),
        (Some("from the plan"), &[PathBuf::from("/planned")][..])
    );
    let plan = request.plan(&[directory("/planned", 1)], MEMORY).unwrap();
    assert_eq!((plan.seed, plan.scratch_bytes), (5, Some(2 * GIB)));
    let shapes: Vec<_> = plan
        .workloads
        .iter()
        .map(|w| {
            (
                w.name.as_str(),
                w.layout,
                w.streams.permille(OpKind::Read),
                w.engine,
            )
        })
        .collect();
    let aio = EngineChoice::Fixed(EngineKind::Aio);
    let expected = [
        ("fill", Layout::Provides, 0, aio),
        ("again", Layout::Needed, 0, aio),
        ("reads", Layout::Needed, 1000, aio),
    ];
    assert_eq!(shapes, expected);

    let line = [
        path, "/mine", "/other", "--seed", "6", "--size", "1GiB", "--note", "mine", "--engine",
        "sync",
    ];
    let request = RunRequest::of(&asked(&line)).unwrap();
    assert_eq!(
        (request.file.note.as_deref(), request.file.targets.len()),
        (Some("mine"), 2)
    );
    let plan = request
        .plan(&[directory("/mine", 1), directory("/other", 2)], MEMORY)
        .unwrap();
    assert_eq!(
        (plan.seed, plan.scratch_bytes, plan.workloads[2].engine),
        (6, Some(GIB), EngineChoice::Fixed(EngineKind::Sync))
    );
}

#[test]
fn plan_file_error_names_file_and_line() {
    let wrong = |text: &str, line: &[&str], part: &str| {
        let path = plan_file(text);
        let line: Vec<&str> = [path.to_str().unwrap()]
            .into_iter()
            .chain(line.iter().copied())
            .collect();
        let (exit, error) = refused(&line, &[directory("/a", 1)]);
        assert!(exit == Exit::Usage && error.contains(part), "{error}");
    };
    wrong(
        "[[workload]]\nname = \"a\"\nbs = \"0\"\n",
        &[],
        ".toml: line 3: bs = \"0\": a block of 0 bytes",
    );
    wrong(
        "\n[[workload]]\nname = \"a\"\nbackward = true\n",
        &[],
        ".toml: line 2: workload 'a': backward needs sequential operations",
    );
    wrong(
        "[[workload]]\nname = \"a\"\n",
        &["--bs", "4k"],
        "write them as keys under [defaults]",
    );
    let missing = refused(&["/no/such.toml"], &[directory("/a", 1)]);
    assert!(
        missing.0 == Exit::Usage
            && missing
                .1
                .contains("cannot read the plan file /no/such.toml"),
        "{}",
        missing.1
    );
}

#[test]
fn workload_with_blocks_below_the_sector_size_is_skipped() {
    let mut layer = probe(Path::new("/"))
        .unwrap()
        .layers
        .first()
        .cloned()
        .expect("a disk below /");
    layer.logical_block_bytes = Some(4096);
    let target = TargetIdentity {
        layers: vec![layer],
        ..directory("/a", 1)
    };
    let error = refused(&["--bs", "512"], std::slice::from_ref(&target)).1;
    assert!(
        error.contains("sectors of 4096 bytes")
            && error.contains("use a multiple of 4096 for --bs and --span"),
        "{error}"
    );
    let path = plan_file(
        "[[workload]]\nname = \"small\"\nbs = \"512\"\nrw = \"write\"\n[[workload]]\nname = \
         \"large\"\nrw = \"write\"\n",
    );
    let plan = planned(&[path.to_str().unwrap()], &[target]).unwrap();
    assert_eq!(
        (
            plan.skipped[0].workload.as_str(),
            plan.workloads[0].name.as_str()
        ),
        ("small", "large")
    );
    // The next workload becomes the first one.
    assert_eq!(plan.workloads[0].layout, Layout::Provides);
}

#[test]
fn every_example_plan_resolves() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plans"));
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        seen += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("# "),
            "{}: begins with what it answers",
            path.display()
        );
        let plan = planned(&[path.to_str().unwrap()], &[directory("/a", 1)])
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(
            !plan.workloads.is_empty() && plan.time_ns_max().is_some(),
            "{}",
            path.display()
        );
        for workload in plan.workloads.iter().filter(|w| w.writes()) {
            assert!(
                workload.stop.bytes.is_some(),
                "{}: {} writes without a limit",
                path.display(),
                workload.name
            );
        }
    }
    assert!(seen >= 12, "{seen} examples");
}

#[test]
fn schedule_without_a_start_is_refused_before_the_run() {
    let target = [file("/f", GIB)];
    let (exit, error) = refused(&["--rate", "0.1", "--time", "500ms"], &target);
    assert!(
        exit == Exit::Usage && error.contains("none starts within the measured time of 500 ms"),
        "{error}"
    );
    assert!(
        planned(
            &["--rate", "0.1", "--time", "500ms", "--warmup", "0s"],
            &target
        )
        .is_ok()
    );
    // A limit beyond the schedule is only noted.
    let limited = planned(&["--rate", "10", "--time", "5s", "--ops", "1000"], &target).unwrap();
    assert!(
        limits_cut_by_time(&limited)[0]
            .contains("1000 operations need more than the 50 operations"),
        "{limited:?}"
    );
    let plan = plan_file(
        "[[workload]]\nname = \"a\"\ntime = \"5s\"\n[[workload]]\nname = \"b\"\nrate = \
         0.1\ntogether = true\n",
    );
    let (exit, error) = refused(&[plan.to_str().unwrap()], &target);
    assert!(
        exit == Exit::Usage
            && error.contains("line 4: workload 'b': rate 0.1 starts an operation every 10 s"),
        "{error}"
    );
}
