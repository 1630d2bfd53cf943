//! `diskproof as` from the outside: output, exit codes and the gate.

use crate::program::{HISTORY, Ran, content_hash, names, random_file, run};
use diskproof_simdisk::testbed::place;
use std::path::Path;
use std::process::{Command, Stdio};

fn as_tool(words: &[&str]) -> Ran {
    run(["as"].iter().chain(words))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn link_named_as_ioping_prints_its_lines_and_leaves_nothing() {
    let here = place();
    let (bin, data) = (here.path().join("bin"), here.path().join("data"));
    std::fs::create_dir(&bin).unwrap();
    std::fs::create_dir(&data).unwrap();
    let linked = run(["as", "--link", text(&bin)]);
    assert_eq!(linked.code, Some(0), "{}", linked.err);
    let ran: Ran = Command::new(bin.join("ioping"))
        .args(["-c", "4", "-i", "1ms", text(&data)])
        .env("DISKPROOF_HISTORY", HISTORY)
        .stdin(Stdio::null())
        .output()
        .unwrap()
        .into();
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let requests = ran
        .out
        .lines()
        .filter(|line| line.starts_with("4 KiB <<< "));
    assert_eq!(requests.count(), 4, "{}", ran.out);
    assert!(ran.out.contains("request=1 time="), "{}", ran.out);
    assert!(
        ran.out.contains("\n3 requests completed in "),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("min/avg/max/mdev = "), "{}", ran.out);
    assert!(names(&data).is_empty());
}

#[test]
fn exit_codes_are_those_of_the_tool() {
    let here = place();
    let file = here.path().join("file");
    random_file(&file, 1 << 20);
    let before = content_hash(&file);
    for (words, code, message) in [
        (&["ioping"][..], 1, "Usage: ioping"),
        (&["ioping", "/nowhere"], 2, "/nowhere"),
        (&["ioping", "-W", text(&file)], 2, "think twice"),
        (
            &["ioping", "-WWW", "-c", "1", text(&file)],
            2,
            "diskproof as --overwrite ioping -WWW -c 1",
        ),
        (
            &["pg_test_fsync", "-s", "0"],
            1,
            "--secs-per-test must be in range",
        ),
        (&["dd", "if=a", "of=b"], 1, "not a disk test"),
        (&["hdparm", "-I", "/dev/sda"], 22, "diskproof info"),
        (&["nonsense"], 2, "there are pg_test_fsync"),
    ] {
        let ran = as_tool(words);
        assert_eq!(ran.code, Some(code), "{words:?}: {}", ran.err);
        assert!(ran.err.contains(message), "{words:?}: {}", ran.err);
    }
    assert_eq!(content_hash(&file), before);
}

#[test]
fn dd_creates_a_file_and_spares_one_that_exists() {
    let here = place();
    let file = here.path().join("big");
    let output = format!("of={}", text(&file));
    let words = [
        "dd",
        "if=/dev/zero",
        &output,
        "bs=64k",
        "count=32",
        "conv=fsync",
    ];
    let ran = as_tool(&words);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{}", ran.err);
    assert!(
        ran.err.contains("\n32+0 records in\n32+0 records out\n"),
        "{}",
        ran.err
    );
    assert!(
        ran.err
            .contains("\n2097152 bytes (2.1 MB, 2.0 MiB) copied, "),
        "{}",
        ran.err
    );
    let before = content_hash(&file);
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 2 << 20);
    let refused = as_tool(&words);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    assert!(
        refused
            .err
            .contains("diskproof as --overwrite dd if=/dev/zero"),
        "{}",
        refused.err
    );
    assert_eq!(content_hash(&file), before);
    let allowed = run(["as", "--overwrite"].iter().chain(&words));
    assert_eq!(allowed.code, Some(0), "{}", allowed.err);
    assert_ne!(content_hash(&file), before);
    let input = format!("if={}", text(&file));
    let read = as_tool(&["dd", &input, "of=/dev/null", "bs=1M", "iflag=direct"]);
    assert_eq!(read.code, Some(0), "{}", read.err);
    assert!(
        read.err.starts_with("2+0 records in\n2+0 records out\n"),
        "{}",
        read.err
    );
}

#[test]
fn pg_test_fsync_prints_its_tables() {
    let here = place();
    let file = here.path().join("out");
    let ran = as_tool(&["--json", "--dry-run", "pg_test_fsync", "-f", text(&file)]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("\"as pg_test_fsync\""), "{}", ran.out);
    assert!(names(here.path()).is_empty());
}
