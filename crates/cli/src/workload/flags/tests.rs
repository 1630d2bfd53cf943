use super::*;
use crate::flags::MeasuringFlags;
use clap::{Args as _, Parser as _};
use diskproof_compat::{FIO_OPTIONS, fio_hint};
use diskproof_model::rw::rw_words;
use std::collections::BTreeSet;

fn sizes(bytes: &[u32]) -> Vec<BlockSize> {
    bytes.iter().map(|bytes| BlockSize(*bytes)).collect()
}

fn counts(counts: &[u64]) -> Vec<Count> {
    counts.iter().map(|count| Count(*count)).collect()
}

fn names(axes: &WorkloadAxes, flags: &WorkloadFlags) -> Vec<Option<String>> {
    axes.expand(flags)
        .unwrap()
        .into_iter()
        .map(|flags| flags.name)
        .map(|name| name.map(|WorkloadName(text)| text))
        .collect()
}

#[test]
fn each_combination_is_a_workload_named_by_what_varies() {
    let axes = WorkloadAxes {
        bs: sizes(&[512, 4096, 1 << 20]),
        depth: counts(&[1, 16]),
        jobs: counts(&[2]),
    };
    let workloads = axes.expand(&WorkloadFlags::default()).unwrap();
    let expected = "randread-bs512-d1 randread-bs512-d16 randread-bs4k-d1 randread-bs4k-d16 \
                    randread-bs1m-d1 randread-bs1m-d16";
    let shown: Vec<String> = names(&axes, &WorkloadFlags::default())
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(shown.join(" "), expected);
    assert!(workloads.iter().all(|flags| flags.jobs == Some(Count(2))));
    assert_eq!(workloads[3].bs, Some(BlockSize(4096)));
    assert_eq!(workloads[3].depth, Some(Count(16)));
}

#[test]
fn single_values_leave_the_name_alone() {
    let axes = WorkloadAxes {
        depth: counts(&[32]),
        ..WorkloadAxes::default()
    };
    assert_eq!(names(&axes, &WorkloadFlags::default()), [None]);
    let named = WorkloadFlags {
        name: Some(WorkloadName("look".to_owned())),
        ..WorkloadFlags::default()
    };
    assert_eq!(names(&axes, &named), [Some("look".to_owned())]);
    let two = WorkloadAxes {
        jobs: counts(&[1, 2]),
        ..WorkloadAxes::default()
    };
    let expected = ["look-j1", "look-j2"].map(|name| Some(name.to_owned()));
    assert_eq!(names(&two, &named), expected);
}

#[test]
fn repeated_and_too_many_values_are_errors() {
    let twice = WorkloadAxes {
        depth: counts(&[1, 4, 1]),
        ..WorkloadAxes::default()
    };
    let forty: Vec<u64> = (1..=40).collect();
    let many = WorkloadAxes {
        depth: counts(&forty),
        jobs: counts(&forty),
        bs: Vec::new(),
    };
    for (axes, part) in [(twice, "--depth has the value 1"), (many, "1600 workloads")] {
        let error = axes.expand(&WorkloadFlags::default()).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn fio_hints_cover_no_own_flag() {
    let with_workload = WorkloadFlags::augment_args(clap::Command::new("run"));
    let with_axes = WorkloadAxes::augment_args(with_workload);
    let run = MeasuringFlags::augment_args(with_axes);
    let ours: BTreeSet<&str> = run
        .get_arguments()
        .flat_map(|argument| argument.get_long_and_visible_aliases().unwrap_or_default())
        .collect();
    for option in FIO_OPTIONS.iter() {
        if option.hint.is_some() {
            for name in &option.names {
                assert!(!ours.contains(name), "{name} is a flag");
            }
        }
    }
    assert!(fio_hint("ba").is_some());
    assert_eq!(fio_hint("nonsense"), None);
}

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    fio: FioFlags,
    #[command(flatten)]
    _axes: WorkloadAxes,
    #[command(flatten)]
    _workload: WorkloadFlags,
    operands: Vec<String>,
}

fn line(words: &[&str]) -> Line {
    Line::try_parse_from(["run"].iter().chain(words)).unwrap()
}

#[test]
fn options_without_effect_are_named_in_one_note() {
    let words = [
        "--time_based",
        "--group_reporting=1",
        "--direct=1",
        "--filename=/dev/sdb",
    ];
    let fio = line(&words).fio;
    let note = fio.note().unwrap().unwrap();
    assert!(
        note.starts_with("--time_based, --group_reporting, --direct "),
        "{note}"
    );
    assert_eq!(fio.filename, Some(PathBuf::from("/dev/sdb")));
    assert_eq!(FioFlags::default().note(), Ok(None));
}

/// What contradicts a flag of ours is not without effect.
#[test]
fn options_that_contradict_a_flag_are_refused() {
    for words in [
        ["--time_based", "--bytes=1m"],
        ["--time_based", "--ops=9"],
        ["--direct=1", "--buffered"],
        ["--direct=1", "--cached"],
    ] {
        let parsed = Line::try_parse_from(["run"].iter().chain(&words));
        assert!(parsed.is_err(), "{words:?}");
    }
}

#[test]
fn switches_leave_the_next_word_alone() {
    let line = line(&["--time_based", "disk", "--direct", "1"]);
    assert_eq!(line.operands, ["disk"]);
    assert_eq!(line.fio.direct, Some(true));
}

#[test]
fn value_0_is_an_error_with_the_flag_to_use() {
    let error = line(&["--direct=0"]).fio.note().unwrap_err();
    assert!(error.starts_with("--direct=0: use --buffered"), "{error}");
}

#[test]
fn help_of_rw_names_every_word() {
    let command = WorkloadFlags::augment_args(clap::Command::new("run"));
    let flag = command
        .get_arguments()
        .find(|flag| flag.get_id() == "rw")
        .unwrap();
    let help = flag.get_help().unwrap().to_string();
    let named: BTreeSet<&str> = help
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .collect();
    for word in rw_words() {
        assert!(named.contains(word), "{word}: {help}");
    }
}
