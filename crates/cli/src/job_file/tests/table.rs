//! The table of options, and its copy in docs/job-files.md.

use super::*;
use diskproof_compat::{
    FIO_OPTIONS, FioCondition, FioHandling, FioOption, JobOption, OptionsJob, fio_option,
};

const HEAD: &str = include_str!("../../../../../docs/job-files.md");
const TABLE: &str = "\n| option of fio | becomes |\n|---|---|\n";

#[test]
fn option_table_has_each_name_once() {
    let mut seen = std::collections::BTreeSet::new();
    for option in of_jobs() {
        assert!(!option.text.is_empty(), "{:?}", option.names);
        for name in &option.names {
            assert!(seen.insert(*name), "{name} stands twice");
        }
    }
    let name = |key| fio_option(key).map(|option| option.name());
    assert_eq!((name("blocksize"), name("nonsense")), (Some("bs"), None));
}

fn of_jobs() -> impl Iterator<Item = &'static FioOption> {
    FIO_OPTIONS
        .iter()
        .filter(|option| option.handling != FioHandling::Hint)
}

/// docs/job-files.md ends with this table, in which neighbours that are handled alike share a row.
/// UPDATE_DOCS=1 writes it.
#[test]
fn docs_table_matches_the_option_table() {
    let becomes = |option: &FioOption| match &option.handling {
        FioHandling::Ignored | FioHandling::Carried => format!("ignored: {}", option.text),
        FioHandling::Refused { except, only } => {
            let values = except.iter().map(|value| format!("`{value}`"));
            let others = only.map(FioCondition::others);
            let harmless: Vec<String> = values.chain(others).collect();
            let except = match harmless.is_empty() {
                true => String::new(),
                false => format!(", except {}", harmless.join(", ")),
            };
            format!("refused{except}: {}", option.text)
        }
        FioHandling::Translated | FioHandling::Hint => option.text.to_owned(),
    };
    let mut rows: Vec<(Vec<&str>, String)> = Vec::new();
    for option in of_jobs() {
        let becomes = becomes(option);
        match rows.last_mut().filter(|(_, last)| *last == becomes) {
            Some((names, _)) => names.extend(&option.names),
            None => rows.push((option.names.clone(), becomes)),
        }
    }
    let row = |(names, becomes): &(Vec<&str>, String)| {
        format!("| `{}` | {becomes} |\n", names.join("`, `"))
    };
    let rows: String = rows.iter().map(row).collect();
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
         docs_table_matches"
    );
}

/// The output of the installed fio.
fn fio(argument: &str) -> Option<String> {
    let output = std::process::Command::new("fio").arg(argument).output();
    let text = output
        .ok()
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    if text.is_none() {
        println!("SKIPPED: fio {argument}: fio is not installed");
    }
    text
}

#[test]
fn option_table_has_every_option_of_the_installed_fio() {
    let Some(help) = fio("--cmdhelp=all") else {
        return;
    };
    let names = help
        .lines()
        .filter_map(|line| line.split([':', ' ']).find(|word| !word.is_empty()));
    let missing: Vec<&str> = names.filter(|name| fio_option(name).is_none()).collect();
    assert_eq!(missing, [""; 0]);
    let general: Vec<&str> = diskproof_compat::drop_in_named("fio")
        .map(|tool| tool.options.iter().map(|option| option.long).collect())
        .unwrap_or_default();
    let help = fio("--help").unwrap_or_default();
    let shown = help
        .lines()
        .filter_map(|line| line.trim().strip_prefix("--"));
    let shown = shown.filter_map(|line| line.split(['=', '\t', ' ']).next());
    let missing: Vec<&str> = shown.filter(|name| !general.contains(name)).collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn jobs_of_the_command_line_precede_those_of_files() {
    let option = |key: &str, value: &str| JobOption {
        key: key.to_owned(),
        value: Some(value.to_owned()),
    };
    let jobs = [OptionsJob {
        name: "first".to_owned(),
        options: vec![option("bs", "8k"), option("numjobs", "2")],
    }];
    let global = [option("filename", "/dev/sda"), option("rw", "randread")];
    let texts = [
        JobText::Options {
            global: &global,
            jobs: &jobs,
        },
        JobText::File {
            text: "[second]\nstonewall\ngroup_reporting\nnumjobs=3\n".into(),
            path: Path::new("x.fio"),
        },
    ];
    let read = JobFile::translate_all(&texts, AS_FIO, &Fake::default()).unwrap();
    let described = read.jobs.jobs.iter();
    let described: Vec<_> = described
        .map(|job| (&job.name[..], job.group, job.workloads.len(), job.copies))
        .collect();
    // Copies have their own figures, unless the job wants one for all.
    assert_eq!(described, [("first", 0, 2, 2), ("second", 1, 1, 3)]);
    let flags = &read.plan.workloads[2].flags;
    let of_cache = (flags.cached, flags.drops_cache_first);
    assert_eq!(of_cache, (Some(true), Some(true)));
    assert_eq!(read.plan.workloads[0].flags.bs.map(|bs| bs.0), Some(8192));
    let wrong = [JobText::Options {
        global: &[option("rw", "foo")],
        jobs: &jobs,
    }];
    let error = JobFile::translate_all(&wrong, AS_FIO, &Fake::default()).unwrap_err();
    assert!(error.to_string().starts_with("fio: rw=foo: "), "{error}");
}

/// As fio 3.33, which adds the files of a command line where their names stand.
#[test]
fn directory_behind_the_names_of_a_command_line_is_not_theirs() {
    let given = [
        ("filename", "f"),
        ("directory", "/data"),
        ("rw", "randread"),
        ("size", "1m"),
        ("directory", "/later"),
    ];
    let options = given.map(|(key, value)| JobOption {
        key: key.to_owned(),
        value: Some(value.to_owned()),
    });
    for (order, target) in [
        ([0, 1, 2, 3].as_slice(), "."),
        (&[1, 0, 2, 3], "/data"),
        (&[1, 0, 4, 2, 3], "/data"),
    ] {
        let jobs = [OptionsJob {
            name: "a".to_owned(),
            options: order.iter().map(|index| options[*index].clone()).collect(),
        }];
        let global = [];
        let texts = [JobText::Options {
            global: &global,
            jobs: &jobs,
        }];
        let read = JobFile::translate_all(&texts, AS_FIO, &Fake::default()).unwrap();
        assert_eq!(read.plan.targets, paths(&[target]));
    }
}

/// As fio 3.33: the names of the first section keep its directory in the second job, too.
#[test]
fn names_keep_the_directory_that_was_read_before_them() {
    let text = "[global]\nrw=randread\nsize=1m\ndirectory=/data\nfilename=f\n[a]\n\
                [global]\ndirectory=/later\n[b]\n";
    let read = translated(text, AS_FIO).unwrap();
    assert_eq!(read.plan.targets, paths(&["/data"]));
    let text = "[global]\nrw=randread\nsize=1m\ndirectory=/data\nfilename=f\n\
                [global]\ndirectory=/later\nfilename=g\n[b]\n";
    assert!(translated(text, AS_FIO).is_err());
}

/// fio's buffers lie in ordinary pages unless the job asks for huge ones; `run` measures the disk.
#[test]
fn buffers_are_those_of_fio_where_fio_is_emulated() {
    for (mem, closeness, is_ordinary) in [
        ("", Closeness::Fio, true),
        ("mem=mmap\n", Closeness::Fio, true),
        ("iomem=mmaphuge\n", Closeness::Fio, false),
        ("mem=shmhuge\n", Closeness::Fio, false),
        ("", Closeness::Disk, false),
        ("mem=malloc\n", Closeness::Disk, false),
    ] {
        let text = format!("[a]\nfilename=/dev/sda\nrw=read\nbs=1m\n{mem}");
        let overrides = CliOverrides {
            closeness,
            ..CliOverrides::default()
        };
        let path = Path::new("a.fio");
        let read = JobFile::translate(&text, path, overrides, &Fake::default()).unwrap();
        let shape = &read.plan.workloads[0].flags.shape;
        assert_eq!(
            shape.threads.ordinary_pages, is_ordinary,
            "{mem}{closeness:?}"
        );
    }
}
