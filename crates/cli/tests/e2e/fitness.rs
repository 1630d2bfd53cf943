//! `--for` of `check` and `commit`: profiles, their limits and their answers.

use crate::program::{argv, names, run};
use diskproof_simdisk::testbed::place;
use std::path::Path;

const QUICK: [&str; 5] = ["--time", "2s", "--no-history", "--no-health", "--json"];

fn profile(folder: &Path, limit: &str) -> String {
    let text = format!(
        "size = \"64MiB\"\n[[workload]]\nname = \"log\"\nrw = \"write\"\nbs = 2300\nfdatasync = 1\n\
         cached = true\n[[limit]]\nname = \"sync\"\nsource = \"a test\"\nexpect = \"{limit}\"\n"
    );
    let path = folder.join("profile.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn limit_of_a_profile_decides_the_exit_code() {
    let (here, files) = (place(), place());
    let target = here.path().to_str().unwrap();
    for (verb, limit, code) in [
        // A slow disk has too few syncs for the interval of a p99.
        ("check", "log.sync.p50<=100s", 0),
        ("commit", "log.sync.p50<=1ns", 1),
        // Two seconds have no hundred thousand syncs.
        ("check", "log.sync.p99.99<=100s", 5),
    ] {
        let file = profile(files.path(), limit);
        let words = [&[verb, target, "--for", &file][..], &QUICK].concat();
        let ran = run(words);
        ran.exits(code);
        let record = ran.record();
        assert_eq!(record.measurements.len(), 1);
        assert_eq!(record.measurements[0].data.workload.block_bytes, 2300);
        assert_eq!(record.expectations[0].expression, limit);
        // A log appends to new blocks, so the workload has the whole time.
        let expected_ns = record.plan.budget(&record.targets).expected_ns;
        assert_eq!(expected_ns, Some(2_000_000_000));
        assert_eq!(record.plan.first_write_ns(), None);
        // The source goes into the record.
        assert!(record.note.unwrap().contains("(a test)"));
    }
    assert!(names(here.path()).is_empty());
}

#[test]
fn built_in_profiles_have_plans() {
    let here = place();
    for (given, name) in [
        ("postgresql", "postgresql"),
        ("pg", "postgresql"),
        ("etcd", "etcd"),
        ("MariaDB", "mysql"),
        ("mysql-8.4", "mysql"),
        ("sqlite", "sqlite"),
    ] {
        for verb in ["check", "commit"] {
            let words = format!("{verb} {} --for {given} --dry-run", here.path().display());
            let words = argv(&words);
            let ran = run(words);
            ran.exits(0).shows(name);
        }
    }
}

#[test]
fn size_of_a_scratch_file_is_refused_for_a_file() {
    let here = place();
    let file = here.path().join("data");
    std::fs::File::create(&file)
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
    let file = file.to_str().unwrap();
    let ran = run(["check", file, "--for", "etcd", "--size", "1G", "--dry-run"]);
    ran.exits(2).tells("needs none");
}

#[test]
fn wrong_profile_is_an_error_with_its_line() {
    let (here, files) = (place(), place());
    let target = here.path().to_str().unwrap();
    let file = profile(files.path(), "log.sync.p99<=10");
    let ran = run(["check", target, "--for", &file]);
    ran.exits(2);
    ran.tells("profile.toml: line 11: expect: '10' is not");
    let ran = run(["check", target, "--for", "oracle"]);
    ran.exits(2)
        .tells("one of postgresql, etcd, mysql, mysql-8.0, sqlite");
    let ran = run(["run", &profile(files.path(), "log.iops>=1"), target]);
    ran.exits(2).tells("check --for");
    // A profile judges the target of the command line, and never another one.
    let file = profile(files.path(), "log.iops>=1");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("targets = [\"/elsewhere\"]\n{text}")).unwrap();
    let ran = run(["check", target, "--for", &file, "--dry-run"]);
    ran.exits(2).tells("'targets'");
}
