//! `diskproof as` from the outside: output, exit codes and the gate.

use crate::program::{
    HISTORY, Ran, argv, content_hash, eventually, names, program, program_path, random_file, run,
};
use diskproof_simdisk::testbed::place;
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write as _;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

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
    linked.exits(0);
    let ran: Ran = Command::new(bin.join("ioping"))
        .args(["-c", "4", "-i", "1ms", text(&data)])
        .env("DISKPROOF_HISTORY", HISTORY)
        .stdin(Stdio::null())
        .output()
        .unwrap()
        .into();
    ran.exits(0).tells_nothing();
    let requests = ran
        .out
        .lines()
        .filter(|line| line.starts_with("4 KiB <<< "));
    assert_eq!(requests.count(), 4, "{}", ran.out);
    ran.shows("request=1 time=");
    ran.shows("\n3 requests completed in ");
    ran.shows("min/avg/max/mdev = ");
    assert!(names(&data).is_empty());
}

#[test]
fn exit_codes_are_those_of_the_tool() {
    let here = place();
    let file = here.path().join("file");
    random_file(&file, 1 << 20);
    let before = content_hash(&file);
    for (words, code, message) in [
        (&["ioping", "-x"][..], 1, "Usage: ioping"),
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
        (&["dd", "if=a", "of=b"], 1, "copying a to b"),
        (&["hdparm", "-I", "/dev/sda"], 22, "diskproof info"),
        (&["nonsense"], 2, "available tools are pg_test_fsync"),
    ] {
        let ran = as_tool(words);
        ran.exits(code).tells(message);
    }
    // Where the tools print these.
    for (words, part) in [
        (&["ioping"][..], "Usage: ioping"),
        (&["fio", "--rw=read"], "fio-3.33\nfio [options]"),
        (
            &["sysbench", "fileio", "run"],
            "FATAL: Missing required argument",
        ),
    ] {
        let ran = as_tool(words);
        ran.exits(1).shows(part);
    }
    assert_eq!(content_hash(&file), before);
}

#[test]
fn dd_creates_a_file_and_spares_one_that_exists() {
    let here = place();
    let file = here.path().join("big");
    let output = format!("of={}", text(&file));
    let words = format!("dd if=/dev/zero {output} bs=64k count=32 conv=fsync");
    let words = argv(&words);
    let ran = as_tool(&words);
    ran.exits(0).shows_nothing();
    ran.tells("\n32+0 records in\n32+0 records out\n");
    ran.tells("\n2097152 bytes (2.1 MB, 2.0 MiB) copied, ");
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 2 << 20);
    // As long as nothing else changes it, dd overwrites its own file.
    let first = content_hash(&file);
    let again = as_tool(&words);
    again.exits(0);
    assert_ne!(content_hash(&file), first);
    std::fs::OpenOptions::new()
        .write(true)
        .open(&file)
        .and_then(|mut file| file.write_all(b"the user's"))
        .unwrap();
    let before = content_hash(&file);
    let refused = as_tool(&words);
    refused.exits(1);
    refused.tells("diskproof as --overwrite dd if=/dev/zero");
    assert_eq!(content_hash(&file), before);
    let allowed = run(["as", "--overwrite"].iter().chain(&words));
    allowed.exits(0);
    assert_ne!(content_hash(&file), before);
    let input = format!("if={}", text(&file));
    let read = as_tool(&["dd", &input, "of=/dev/null", "bs=1M", "iflag=direct"]);
    read.exits(0);
    read.tells_first("2+0 records in\n2+0 records out\n");
}

/// A tool that runs until Ctrl-C, and what it printed at SIGUSR1.
struct Asked {
    child: Child,
}

impl Asked {
    fn start(words: &[&str]) -> Self {
        let mut command = program(["as"].iter().chain(words));
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self {
            child: piped.spawn().unwrap(),
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

/// Reads up to a line that contains `part`.
fn until(from: &mut impl BufRead, part: &str) -> String {
    let mut text = String::new();
    while !text.contains(part) {
        assert!(from.read_line(&mut text).unwrap() > 0, "{part}: {text}");
    }
    text
}

#[test]
fn new_file_of_dd_is_named_before_it_is_made() {
    let here = place();
    let file = here.path().join("big");
    let output = format!("of={}", file.display());
    let words = ["dd", "if=/dev/zero", &output, "bs=64k", "count=4"];
    let planned = run(["as", "--dry-run"].iter().chain(&words));
    planned.exits(0).shows_not("scratch").shows("which stays");
    let refused = run(["as", "--keep-free", "900T"].iter().chain(&words));
    refused
        .exits(1)
        .tells(&format!("write the file {}", file.display()));
    assert!(names(here.path()).is_empty());
}

#[test]
fn dd_and_fio_print_their_status_at_usr1_and_go_on() {
    let here = place();
    let mut fio = Asked::start(&[
        "fio",
        "--name=a",
        "--size=4m",
        &format!("--directory={}", text(here.path())),
        "--rw=randread",
        "--time_based",
        "--runtime=600",
    ]);
    let mut out = BufReader::new(fio.child.stdout.take().unwrap());
    until(&mut out, "Starting 1 process");
    for _ in 0..2 {
        fio.signal(Signal::USR1);
        until(&mut out, "Run status group 0");
    }
    fio.signal(Signal::INT);
    until(&mut out, "Run status group 0");
    assert_eq!(fio.child.wait().unwrap().code(), Some(128));

    let file = here.path().join("large");
    let output = format!("of={}", text(&file));
    let mut dd = Asked::start(&argv(&format!(
        "dd if=/dev/zero {output} bs=4k count=60k oflag=dsync"
    )));
    assert!(eventually(|| file.exists()));
    let mut err = BufReader::new(dd.child.stderr.take().unwrap());
    dd.signal(Signal::USR1);
    until(&mut err, " copied, ");
    assert!(dd.child.try_wait().unwrap().is_none());
    dd.signal(Signal::INT);
    until(&mut err, " copied, ");
    assert_eq!(dd.child.wait().unwrap().code(), Some(130));
}

#[test]
fn pg_test_fsync_prints_its_tables() {
    let here = place();
    let file = here.path().join("out");
    let ran = as_tool(&["--json", "--dry-run", "pg_test_fsync", "-f", text(&file)]);
    ran.exits(0).shows("\"as pg_test_fsync\"");
    assert!(names(here.path()).is_empty());
}

#[test]
fn fio_jobs_print_as_fio_does_and_leave_their_files() {
    let here = place();
    let (data, saved) = (here.path().join("data"), here.path().join("out.json"));
    std::fs::create_dir(&data).unwrap();
    let directory = format!("--directory={}", text(&data));
    let output = format!("--output={}", text(&saved));
    // The shorter job does not end the longer one.
    let jobs = argv("--rw=write --name=a --size=1m --name=b --size=4m");
    let ran = run(["run", "fio", &directory].iter().chain(&jobs));
    ran.exits(0);
    for line in [
        "\nStarting 2 processes\na: Laying out IO file (1 file / 1MiB)\n\
         b: Laying out IO file (1 file / 4MiB)\n\na: (groupid=0, jobs=1): err= 0: pid=",
        "issued rwts: total=0,256,0,0 short",
        "issued rwts: total=0,1024,0,0 short",
        "\nRun status group 0 (all jobs):\n  WRITE: bw=",
    ] {
        ran.shows(line);
    }
    let formats = format!("{directory} {output} --output-format=json --name=a --size=1m");
    let formats = argv(&formats);
    let ran = as_tool(&[&["fio"][..], &formats].concat());
    ran.exits(0).shows_nothing();
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&saved).unwrap()).unwrap();
    assert_eq!(json["jobs"][0]["read"]["total_ios"], 256);
    assert_eq!(names(&data), ["a.0.0", "b.0.0"]);
}

#[test]
fn fio_job_file_cannot_choose_what_is_overwritten() {
    let here = place();
    let (file, jobs) = (here.path().join("file"), here.path().join("jobs"));
    random_file(&file, 1 << 20);
    let before = content_hash(&file);
    std::fs::write(&jobs, format!("[a]\nrw=write\nfilename={}\n", text(&file))).unwrap();
    let filename = format!("--filename={}", text(&file));
    let jobs = text(&jobs);
    for (words, message) in [
        (
            &["as", "fio", "--rw=write", &filename, "--name=a"][..],
            "as --overwrite fio --rw=write",
        ),
        (&["as", "fio", jobs], "as --overwrite fio"),
        (&["as", "--overwrite", "fio", jobs], "--overwrite releases"),
        (&["as", "fio", "--readonly", jobs], "--readonly forbids"),
        (
            &argv("run --ioengine=libaio --direct=1 --name=a --thinktime=5"),
            "as fio --ioeng",
        ),
    ] {
        let ran = run(words);
        assert!(matches!(ran.code, Some(1 | 2)), "{words:?}: {}", ran.err);
        ran.tells(message);
    }
    assert_eq!(content_hash(&file), before);
}

#[test]
fn pgiosim_reads_blocks_and_rewrites_only_a_released_file() {
    let here = place();
    let file = here.path().join("relation");
    random_file(&file, 1 << 20);
    let before = content_hash(&file);
    let read = as_tool(&["pgiosim", "-b", "512k", "-t", "2", text(&file)]);
    read.exits(0);
    let head = format!("Arg: 1\nRead 64 blocks\nAdded {}\n", text(&file));
    read.shows_first(&head);
    read.shows("100.00%,     64 read,      0 written, ");
    let (path, parent) = (text(&file), text(here.path()));
    for (words, message) in [
        (&["pgiosim", "-b", "1"][..], "usage: pgiosim -b blocks"),
        (&["pgiosim", "-z", path], "invalid option -- 'z'"),
        (&["pgiosim", "-b", "1", parent], "files in it"),
        (
            &["pgiosim", "-b", "4", "-w", "50", path],
            "diskproof as --overwrite pgiosim -b 4 -w 50",
        ),
    ] {
        let ran = as_tool(words);
        ran.exits(1).tells(message);
    }
    let page = here.path().join("page.html");
    let twice = ["as", "-o", text(&page), "pgiosim", "-b", "4", path, path];
    run(twice).exits(1);
    assert!(!page.exists(), "a refused run creates no output");
    assert_eq!(content_hash(&file), before);
    let words = ["as", "--overwrite", "pgiosim", "-b", "64", "-w", "50", path];
    let written = run(words);
    written.exits(0).shows("Write Mode: 50%\n");
    assert_ne!(content_hash(&file), before);
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 1 << 20);
}

#[test]
fn iozone_prints_its_table_and_spares_the_file_of_its_name() {
    let here = place();
    let file = here.path().join("kept");
    random_file(&file, 1 << 20);
    let before = content_hash(&file);
    let words = argv("iozone -R -a -n 64 -g 128 -q 16 -i 0 -i 1 -f");
    let ran = as_tool(&[&words[..], &[text(&file)]].concat());
    ran.exits(0);
    let rows = ran.out.lines().filter(|line| {
        let mut words = line.split_whitespace();
        let is_size = matches!(words.next(), Some("64" | "128"));
        // Both sizes, and write, rewrite, read, reread.
        is_size && words.count() == 5
    });
    assert_eq!(rows.count(), 6, "{}", ran.out);
    for line in [
        "\niozone test complete.\nExcel output is below:\n",
        "\n\"Writer report\"\n        \"4\"  \"8\"  \"16\"\n\"64\"   ",
        "\n\"Re-Reader report\"\n",
    ] {
        ran.shows(line);
    }
    assert_eq!(names(here.path()), ["kept"]);
    assert_eq!(content_hash(&file), before);
    for (words, message) in [
        (&["iozone", "-t", "2"][..], "diskproof run --jobs"),
        (&["iozone", "-i", "9"], "use -i 0 to -i 5"),
        (&["iozone", "-f", "/nowhere/file"], "/nowhere"),
        // Its disk may be another than that of its parent.
        (&["iozone", "-i", "0", "-f", text(here.path())], "directory"),
        (
            &["pg_test_fsync", "-s", "1", "-f", text(here.path())],
            "directory",
        ),
        (&["iozone", "-i", "0", "-f", "/dev/zero"], "/dev"),
    ] {
        let ran = as_tool(words);
        ran.exits(1).tells(message);
    }
}

#[test]
fn sysbench_counts_primes_without_a_disk() {
    let cpu = ["sysbench", "cpu", "--cpu-max-prime=500"];
    let limits = ["--events=40", "--time=0", "--threads=2", "run"];
    let ran = as_tool(&[&cpu[..], &limits].concat());
    ran.exits(0);
    for line in [
        "sysbench 1.0.20 (emulated by diskproof ",
        "\nPrime numbers limit: 500\n\nInitializing worker threads...\n\nThreads started!\n\nCPU \
         speed:\n    events per second: ",
        "\n    total number of events:              40\n",
        "\n    events (avg/stddev):           20.0000/",
    ] {
        ran.shows(line);
    }
    let help = as_tool(&["sysbench", "cpu", "help"]);
    help.shows("--cpu-max-prime=N");
    for words in [
        &["as", "sysbench", "cpu"][..],
        &["as", "sysbench", "memory", "run"],
        &["as", "--dry-run", "sysbench", "cpu", "run"],
        &["as", "--html", "x.html", "sysbench", "cpu", "run"],
    ] {
        let ran = run(words);
        let is_named = ["", "sysbench 1.0.20\n\n"].contains(&ran.out.as_str())
            || ran.out.starts_with("sysbench 1.0.20\n\nFATAL: ");
        assert!(ran.code == Some(1) && is_named, "{}{}", ran.out, ran.err);
    }
}

#[test]
fn zcav_writes_only_a_released_file() {
    let here = place();
    let file = here.path().join("image");
    random_file(&file, 4 << 20);
    let before = content_hash(&file);
    let words = ["zcav", "-b", "1", "-w", "-f", text(&file)];
    let refused = as_tool(&words);
    refused.exits(1);
    let accepted = "diskproof as --overwrite zcav -b 1 -w -f";
    refused.tells(accepted);
    assert_eq!(content_hash(&file), before);
    let written = run(["as", "--overwrite"].iter().chain(&words));
    written.exits(0).shows("\n# Wrote ");
    assert_ne!(content_hash(&file), before);
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 4 << 20);
    let read = as_tool(&argv(&format!(
        "iops -m -n 1 -t 1 -b 4096 {}",
        file.display()
    )));
    read.exits(0);
    let head = format!("{}, 4194304.00  , sectorsize=", text(&file));
    read.shows_first(&head).shows("\n 4096  B blocks: ");
}

#[test]
fn bonnie_prints_a_csv_line_for_each_run() {
    let here = place();
    let small = format!("-f -n 0 -s 2:8k:20:1 -m db1 -d {}", here.path().display());
    let small = argv(&small);
    let words = [&["bonnie++", "-x", "2"][..], &small].concat();
    let ran = as_tool(&words);
    ran.exits(0);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines.len(), 3, "{}", ran.out);
    assert!(lines[0].starts_with("format_version,bonnie_version,name,"));
    for line in &lines[1..] {
        assert!(line.starts_with("1.98,2.00a,db1,1,"), "{line}");
        assert_eq!(line.split(',').count(), 50, "{line}");
    }
    let words = [&["bonnie++", "-q", "--csv", "1.03"][..], &small].concat();
    let ran = as_tool(&words);
    ran.shows_first("db1,2M,,,");
    assert_eq!(ran.out.trim_end().split(',').count(), 27, "{}", ran.out);
    assert!(names(here.path()).is_empty());
    let refused = as_tool(&[&["bonnie++", "--csv", "2"][..], &small].concat());
    refused.exits(1).tells("use 1.03, 1.96 or 1.98");
}

#[test]
fn bonnie_measures_a_large_file_and_many_small_ones() {
    let here = place();
    let data = text(here.path());
    let small = ["bonnie++", "-s", "2:8k:20:1", "-n", "1", "-d", data];
    let ran = as_tool(&small);
    ran.exits(0);
    assert_eq!(ran.out.matches("Version 2.00a").count(), 2, "{}", ran.out);
    let csv = ran.out.lines().last().unwrap_or_default();
    let fields: Vec<&str> = csv.split(',').collect();
    assert_eq!((fields.len(), fields[5], fields[21]), (50, "2M", "1"));
    assert!(!fields[11].is_empty() && !fields[26].is_empty(), "{csv}");
    assert!(names(here.path()).is_empty());
    let refused = as_tool(&[&["--json"][..], &small].concat());
    refused.exits(1).tells("several records");
}

#[test]
fn dd_writes_a_few_synchronous_blocks() {
    let here = place();
    let out = format!("of={}", text(&here.path().join("out")));
    let words = format!("dd if=/dev/zero {out} bs=512 count=1000 oflag=dsync");
    let words = argv(&words);
    let ran = as_tool(&words);
    ran.exits(0).tells("512000 bytes (512 kB, 500 KiB)");
    let size = std::fs::metadata(here.path().join("out")).unwrap().len();
    assert_eq!(size, 512_000);
    let input = format!("if={}", text(&here.path().join("out")));
    let ran = as_tool(&["dd", &input, "of=/dev/null", "bs=64k"]);
    ran.exits(0);
    ran.tells("7+1 records in\n7+1 records out\n512000 bytes");
}

#[test]
fn bonnie_measures_many_files_alone() {
    let here = place();
    let data = text(here.path());
    let words = format!("bonnie++ -s 0 -n 1:100:10:2 -m db1 -d {data}");
    let words = argv(&words);
    let ran = as_tool(&words);
    ran.exits(0);
    for line in [
        "Version 2.00a       ------Sequential Create------ --------Random Create--------\ndb1    ",
        "\nfiles:max:min        /sec %CP  /sec %CP",
        "\n         1:100:10/2 ",
        "\nLatency  ",
    ] {
        ran.shows(line);
    }
    let csv = ran.out.lines().last().unwrap_or_default();
    let fields: Vec<&str> = csv.split(',').collect();
    assert_eq!(fields.len(), 50, "{csv}");
    assert_eq!(fields[21..26], ["1", "100", "10", "", "2"], "{csv}");
    let rates = fields[26..38].iter().step_by(2);
    assert!(
        rates
            .clone()
            .all(|rate| rate.parse().is_ok_and(|rate: u64| rate > 0)),
        "{csv}"
    );
    assert!(names(here.path()).is_empty());
}

/// A limit on the size of files stands for a full disk.
fn as_tool_with_file_limit(here: &Path, kib: u64, words: &str) -> Ran {
    let binary = program_path();
    let line = format!("ulimit -f {kib}; exec {binary} as --no-history {words}");
    Command::new("bash")
        .args(["-c", &line])
        .current_dir(here)
        .stdin(Stdio::null())
        .output()
        .unwrap()
        .into()
}

#[test]
fn tools_end_with_the_reason_and_without_the_figure_of_a_failed_step() {
    let here = place();
    let ran = as_tool_with_file_limit(here.path(), 8192, "dd if=/dev/zero of=new bs=1M count=32");
    ran.exits(1).tells("dd: error writing 'new': ");
    ran.tells("EFBIG");

    let bonnie = "bonnie++ -d . -s 64 -r 32 -n 0 -f -u root -q -m host";
    let ran = as_tool_with_file_limit(here.path(), 8192, bonnie);
    ran.exits(1).tells("bonnie++: error writing");
    let fields: Vec<&str> = ran.out.trim_end().split(',').collect();
    // The block write, and what would follow it.
    assert_eq!(
        (fields[2], fields[11], fields[17]),
        ("host", "", ""),
        "{}",
        ran.out
    );

    for rw in ["write", "randread"] {
        let fio = format!("fio --name=t --rw={rw} --size=64m --bs=1m --output-format=json");
        let ran = as_tool_with_file_limit(here.path(), 8192, &fio);
        ran.exits(1).tells("EFBIG");
        let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(json["jobs"][0]["error"], 27, "{rw}: {}", ran.out);
    }
}
