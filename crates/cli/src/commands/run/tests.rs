//! Exact plans from command lines and plan files.

use super::*;
use crate::commands::{Args, Verb};
use crate::session::admit_all;
use clap::Parser as _;
use diskproof_device::{Consent, probe};
use diskproof_model::op::OpKind;
use diskproof_model::plan::{EngineChoice, EngineKind, Layout, Workload};

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
    RunRequest::from_flags(&asked(line))?.plan(identities, MEMORY)
}

/// Refused with this exit, in a message with these parts.
fn refused(exit: Exit, line: &[&str], identities: &[TargetIdentity], parts: &[&str]) {
    let failure = planned(line, identities).expect_err("refused");
    assert_eq!(failure.exit(), exit, "{failure}");
    for part in parts {
        assert!(failure.to_string().contains(part), "{part}: {failure}");
    }
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
    assert_eq!((plan.scratch_bytes(), plan.seed), (Some(GIB), 7));
    assert_eq!(
        (&plan.targets[..], plan.workloads().len()),
        (&["/a".to_owned()][..], 1)
    );
    assert_eq!(
        plan.workloads()[0].engine,
        EngineChoice::Fixed(EngineKind::Aio)
    );
    let mut narrow = directory("/a", 1);
    narrow.filesystem.as_mut().unwrap().free_bytes = 2 * GIB + (300 << 20);
    // Two on one filesystem share it.
    let beside = TargetIdentity {
        path: "/b".to_owned(),
        inode: 2,
        ..narrow.clone()
    };
    let one = [narrow.clone()];
    let both = [narrow, beside];
    for (line, targets, mib) in [
        (&[][..], &one[..], 300),
        (&[], &both, 150),
        (&["--size", "200M"], &one, 200),
    ] {
        let plan = planned(line, targets).unwrap();
        assert_eq!(plan.scratch_bytes(), Some(mib << 20), "{line:?}");
    }
    refused(
        Exit::Refused,
        &["--size", "200M"],
        &both,
        &["at most 150 MiB"],
    );
    refused(
        Exit::Usage,
        &["--size", "1000"],
        &[directory("/a", 1)],
        &["at least 1M"],
    );
}

#[test]
fn existing_files_are_only_read() {
    let identities = [file("/f", GIB)];
    let plan = planned(&["--span", "50%"], &identities).unwrap();
    assert_eq!(plan.scratch_bytes(), None);
    assert_eq!(plan.workloads()[0].span.length_bytes, Some(GIB / 2));
    for rw in ["write", "randrw"] {
        let plan = planned(&["--rw", rw], &identities).unwrap();
        let refusal = admit_all(&plan, &identities, &Consent::default()).expect_err("refused");
        assert_eq!(refusal.exit(), Exit::Refused);
        assert!(refusal.to_string().contains("/f"), "{refusal}");
    }
    refused(
        Exit::Usage,
        &["--size", "1G"],
        &identities,
        &["--size", "/f"],
    );
    refused(
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
    let request = RunRequest::from_flags(&asked(&[path])).unwrap();
    assert_eq!(request.file.note.as_deref(), Some("planned"));
    assert_eq!(request.file.targets, [PathBuf::from("/planned")]);
    let plan = request.plan(&[directory("/planned", 1)], MEMORY).unwrap();
    assert_eq!((plan.seed, plan.scratch_bytes()), (5, Some(2 * GIB)));
    let aio = EngineChoice::Fixed(EngineKind::Aio);
    assert!(plan.workloads().iter().all(|one| one.engine == aio));
    let shape = |w: &Workload| (w.name.clone(), w.layout, w.streams.permille(OpKind::Read));
    let expected = [
        ("fill".to_owned(), Layout::Provides, 0),
        ("again".to_owned(), Layout::Needed, 0),
        ("reads".to_owned(), Layout::Needed, 1000),
    ];
    assert!(plan.workloads().iter().map(shape).eq(expected));

    let line = [
        path, "/mine", "/other", "--seed", "6", "--size", "1GiB", "--note", "mine", "--engine",
        "sync",
    ];
    let request = RunRequest::from_flags(&asked(&line)).unwrap();
    assert_eq!(request.file.note.as_deref(), Some("mine"));
    assert_eq!(request.file.targets.len(), 2);
    let targets = [directory("/mine", 1), directory("/other", 2)];
    let plan = request.plan(&targets, MEMORY).unwrap();
    assert_eq!((plan.seed, plan.scratch_bytes()), (6, Some(GIB)));
    assert_eq!(
        plan.workloads()[2].engine,
        EngineChoice::Fixed(EngineKind::Sync)
    );
}

#[test]
fn plan_file_error_names_file_and_line() {
    for (text, flags, part) in [
        ("bs = \"0\"", &[][..], ".toml: line 3: bs = \"0\": "),
        (
            "backward = true",
            &[],
            ".toml: line 1: workload 'a': backward ",
        ),
        ("", &["--bs", "4k"], "[defaults]"),
    ] {
        let path = plan_file(&format!("[[workload]]\nname = \"a\"\n{text}\n"));
        let line = [&[path.to_str().unwrap()], flags].concat();
        refused(Exit::Usage, &line, &[directory("/a", 1)], &[part]);
    }
    refused(
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
    refused(Exit::Usage, &["--bs", "512"], &targets, &parts);
    let path = plan_file(
        "[[workload]]\nname = \"small\"\nbs = \"512\"\nrw = \"write\"\n[[workload]]\nname = \
         \"large\"\nrw = \"write\"\n",
    );
    let plan = planned(&[path.to_str().unwrap()], &targets).unwrap();
    let names = (&plan.skipped[0].workload[..], &plan.workloads()[0].name[..]);
    assert_eq!(names, ("small", "large"));
    // The next workload becomes the first one.
    assert_eq!(plan.workloads()[0].layout, Layout::Provides);
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
        let path = path.to_str().unwrap();
        assert!(
            text.starts_with("# "),
            "{path}: begins with what it answers"
        );
        let plan = planned(&[path], &[directory("/a", 1)]).unwrap();
        assert!(
            !plan.workloads().is_empty() && plan.time_ns_max().is_some(),
            "{path}"
        );
        let writing = plan.workloads().iter().filter(|w| w.writes());
        let endless: Vec<&str> = writing
            .filter(|w| w.stop.bytes.is_none())
            .map(|w| w.name.as_str())
            .collect();
        assert!(endless.is_empty(), "{path}: {endless:?} have no limit");
    }
    assert!(seen >= 12, "{seen} examples");
}

#[test]
fn schedule_without_a_start_is_refused_before_the_run() {
    let target = [file("/f", GIB)];
    let slow = ["--rate", "0.1", "--time", "500ms"];
    refused(Exit::Usage, &slow, &target, &["--rate 0.1", "500 ms"]);
    planned(&[&slow[..], &["--warmup", "0s"]].concat(), &target).unwrap();
    // A limit beyond the schedule is only noted.
    let limited = planned(&["--rate", "10", "--time", "5s", "--ops", "1000"], &target).unwrap();
    let notes = limits_cut_by_time(&limited);
    assert!(notes[0].contains("1000 operations") && notes[0].contains("50 operations"));
    let plan = plan_file(
        "[[workload]]\nname = \"a\"\ntime = \"5s\"\n[[workload]]\nname = \"b\"\nrate = \
         0.1\ntogether = true\n",
    );
    let line = [plan.to_str().unwrap()];
    refused(
        Exit::Usage,
        &line,
        &target,
        &["line 4: workload 'b': rate 0.1 "],
    );
}
