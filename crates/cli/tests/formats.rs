//! What `-o` writes, as a user finds it.
#![allow(clippy::unwrap_used)]

mod program;

use diskproof_simdisk::testbed::place;
use program::{Ran, SHORT, names, program};
use std::path::Path;

/// A short `check` that only reads, saved as these files.
fn check(folder: &Path, outputs: &[&str]) -> Ran {
    let outputs = outputs.iter().flat_map(|output| ["-o", output]);
    let mut command = program(["check", "--read-only"].into_iter().chain(SHORT).chain(outputs));
    command.current_dir(folder).output().unwrap().into()
}

#[test]
fn pictures_are_one_sheet_or_a_file_each() {
    let here = place();
    let ran = check(here.path(), &["x.svg", "each-%.svg"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let names = names(here.path());
    let each = names.iter().filter(|name| name.starts_with("each-") && !name.contains('%')).count();
    assert!(names.contains(&"x.svg".to_owned()) && each > 0 && each + 1 == names.len(), "{names:?}");
    let told = ran.err.lines().find(|line| line.contains("wrote each-")).unwrap_or_else(|| panic!("{}", ran.err));
    for name in names {
        assert!(name == "x.svg" || told.contains(&name), "{name}: {told}");
        let picture = std::fs::read_to_string(here.path().join(name)).unwrap();
        assert!(picture.starts_with("<?xml") && picture.ends_with("</svg>\n"));
    }
}

#[test]
fn every_format_is_written_whole_and_alone() {
    let here = place();
    let outputs = ["a.json", "a.csv", "a.gnuplot", "a.hlog", "a.prom", "a.svg", "a.html"];
    let ran = check(here.path(), &outputs);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let mut expected = outputs.to_vec();
    expected.sort_unstable();
    assert_eq!(names(here.path()), expected);
    assert!(!ran.err.contains("wrote"), "one name, one file: {}", ran.err);
    for (name, begin) in [("a.csv", "run_id,"), ("a.gnuplot", "# "), ("a.hlog", "#[Logged by"), ("a.prom", "# HELP diskproof_")] {
        assert!(std::fs::read_to_string(here.path().join(name)).unwrap().starts_with(begin), "{name}");
    }
}

#[test]
fn a_locale_without_utf8_gets_ascii_pages_and_whole_json() {
    let here = place();
    let words = ["check", "--read-only", "--note", "grüße"].into_iter().chain(SHORT);
    let ran: Ran = program(words.clone()).current_dir(here.path()).env("LANG", "C").output().unwrap().into();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.is_ascii() && ran.out.contains("gr??e"), "{}", ran.out);
    let ran: Ran = program(words.chain(["--json"])).current_dir(here.path()).env("LANG", "C").output().unwrap().into();
    assert_eq!(ran.record().note.as_deref(), Some("grüße"));
}
