//! `diskproof sweep` from the outside.

use crate::program::{PipedRun, argv, content_hash, names, random_file, run};
use diskproof_model::record::Record;
use diskproof_model::sweep::{CellState, SweepOperation, SweepRecord};
use diskproof_simdisk::testbed::place;
use std::ffi::OsStr;
use std::path::Path;

const MIB: u64 = 1 << 20;

fn sweep(target: &Path, flags: &[&str]) -> crate::program::Ran {
    let verb = [OsStr::new("sweep"), target.as_os_str()];
    run(verb.into_iter().chain(flags.iter().map(OsStr::new)))
}

fn result(record: &Record) -> &SweepRecord {
    record.sweep().unwrap()
}

fn states(record: &Record) -> Vec<CellState> {
    let matrices = result(record).matrices.iter();
    matrices
        .flat_map(|matrix| matrix.cells.iter().map(|cell| cell.state))
        .collect()
}

#[test]
fn quick_sweep_of_a_directory_holds_every_cell_and_leaves_nothing() {
    let here = place();
    let flags = ["--quick", "--time", "6s", "--size", "64M", "--json", "-q"];
    let ran = sweep(here.path(), &flags);
    ran.exits(0);
    let record = ran.record();
    // A slow machine measures fewer cells in the time, and predicts the others, or answers the
    // first requests too late for the deepest queues.
    let states = states(&record);
    assert_eq!(states.len(), 24);
    assert!(states.contains(&CellState::Measured));
    let operations: Vec<SweepOperation> = result(&record)
        .matrices
        .iter()
        .map(|matrix| matrix.operation)
        .collect();
    assert_eq!(
        operations,
        [SweepOperation::RandRead, SweepOperation::RandWrite]
    );
    let cells = result(&record).matrices.iter().flat_map(|one| &one.cells);
    for cell in cells.filter(|cell| cell.state == CellState::Measured) {
        assert!(cell.iops.as_ref().unwrap().value > 0.0);
        assert!(cell.latency_mean_ns.unwrap() > 0.0);
    }
    assert_eq!(names(here.path()), [] as [&str; 0]);
}

#[test]
fn views_print_the_table_of_the_old_tool_and_only_once() {
    let here = place();
    let file = here.path().join("data");
    random_file(&file, 16 * MIB);
    for (view, head, row) in [
        ("random-access", "average speed", "random read 4 KiB "),
        ("iops", "kbit/s", "4 KiB "),
        ("iozone", "reclen", "4k "),
    ] {
        let ran = sweep(&file, &["--view", view, "--time", "4s", "-q"]);
        // A machine that is too slow for all cells names the missing ones.
        ran.exits(0);
        let lines: Vec<&str> = ran.out.lines().collect();
        let found = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
        assert_eq!(found(head), 1, "{view}: {}", ran.out);
        let rows = lines.iter().filter(|line| line.starts_with(row)).count();
        assert_eq!(rows, 1, "{view}: {}", ran.out);
        // One depth has no knee and needs no heat map.
        assert_eq!(found("knee"), 0, "{view}: {}", ran.out);
        assert_eq!(found("block size and depth"), 0, "{view}: {}", ran.out);
    }
}

#[test]
fn target_that_is_not_released_is_only_read() {
    let here = place();
    let file = here.path().join("data");
    random_file(&file, 64 * MIB);
    let before = content_hash(&file);
    let flags = ["--quick", "--time", "4s", "--json", "-q"];
    let ran = sweep(&file, &flags);
    ran.exits(0);
    let record = ran.record();
    let second = result(&record).matrices[1].operation;
    assert_eq!(second, SweepOperation::Read);
    assert_eq!(content_hash(&file), before);

    // What was asked for is shown with its reason.
    let flags = argv("--rw randread,randwrite --bs 512,8k --depth 1 --time 2s -q");
    let ran = sweep(&file, &flags);
    ran.exits(0);
    let words: Vec<&str> = ran.out.split_whitespace().collect();
    let why = "--overwrite";
    assert!(words.join(" ").contains(why), "{}", ran.out);
    let ran = sweep(&file, &["--rw", "write"]);
    ran.exits(2).shows_nothing().tells("--overwrite");
    assert_eq!(content_hash(&file), before);
}

#[test]
fn interrupted_sweep_keeps_its_cells_and_predicts_the_rest() {
    let here = place();
    let file = here.path().join("result.json");
    let target = here.path().to_str().unwrap();
    let output = file.to_str().unwrap();
    let words = format!("sweep {target} --size 64M --read-only -o {output}");
    let words = argv(&words);
    let mut running = PipedRun::start(words);
    running.wait_for_line("writes at most");
    // The coarse matrix takes some seconds: until it has models, at least.
    std::thread::sleep(std::time::Duration::from_secs(12));
    let ran = running.interrupt();
    ran.exits(130);
    let text = std::fs::read_to_string(&file).unwrap();
    let record: Record = serde_json::from_str(&text).unwrap();
    assert!(record.partial);
    let states = states(&record);
    assert_eq!(states.len(), 98);
    let is = |wanted| move |state: &&CellState| **state == wanted;
    let measured = states.iter().filter(is(CellState::Measured)).count();
    assert_eq!(measured, record.measurements.len());
    assert!(measured > 0 && measured < 98);
    let words: Vec<&str> = ran.out.split_whitespace().collect();
    let page = words.join(" ");
    assert!(
        page.contains("PARTIAL") && page.contains("random read"),
        "{page}"
    );
}

/// The lines are what the kernel accepts: `MAJ:MIN KEY=VALUE…` with the keys of io.cost.model and
/// io.cost.qos in Documentation/admin-guide/cgroup-v2.rst.
fn assert_iocost(script: &str) {
    const MODEL: [&str; 6] = [
        "rbps",
        "rseqiops",
        "rrandiops",
        "wbps",
        "wseqiops",
        "wrandiops",
    ];
    let mut models = 0;
    for line in script.lines().filter(|line| line.starts_with("echo ")) {
        let (setting, file) = line[6..].split_once("' > /sys/fs/cgroup/").unwrap();
        let mut words = setting.split(' ');
        let device = words.next().unwrap();
        let (major, minor) = device.split_once(':').unwrap();
        assert!(device == "MAJ:MIN" || [major, minor].iter().all(|n| n.parse::<u32>().is_ok()));
        let pairs: Vec<(&str, &str)> = words.map(|word| word.split_once('=').unwrap()).collect();
        assert!(pairs.contains(&("ctrl", "user")), "{line}");
        if file == "io.cost.model" {
            models += 1;
            assert!(pairs.contains(&("model", "linear")), "{line}");
            let figures = pairs.iter().filter(|(key, _)| MODEL.contains(key));
            let figures: Vec<u64> = figures.map(|(_, value)| value.parse().unwrap()).collect();
            assert!(figures.iter().all(|figure| *figure > 0), "{line}");
            assert_eq!((figures.len(), pairs.len()), (6, 8), "{line}");
            continue;
        }
        assert_eq!(file, "io.cost.qos");
        for (key, value) in pairs {
            match key {
                "enable" => assert_eq!(value, "1"),
                "ctrl" => {}
                "rlat" | "wlat" => _ = value.parse::<u64>().unwrap(),
                "rpct" | "wpct" => assert!((0.0..=100.0).contains(&value.parse::<f64>().unwrap())),
                // As in ioc_qos_write(): from 1 to 10000 %.
                "min" | "max" => assert!((1.0..=1e4).contains(&value.parse::<f64>().unwrap())),
                other => panic!("{other} is no key of io.cost.qos"),
            }
        }
    }
    assert_eq!(models, 1, "{script}");
}

/// The keys of Seastar's doc/io-properties-file.md: four are needed, two may follow.
fn assert_io_properties(yaml: &str) {
    let mut lines = yaml.lines();
    assert!(lines.next().unwrap().contains("--io-properties-file"));
    assert_eq!(lines.next(), Some("disks:"));
    let mountpoint = lines.next().unwrap().strip_prefix("  - mountpoint: ");
    let mountpoint: String = serde_json::from_str(mountpoint.unwrap()).unwrap();
    assert!(mountpoint.starts_with('/'), "{mountpoint}");
    let mut keys = Vec::new();
    for line in lines {
        let (key, value) = line.strip_prefix("    ").unwrap().split_once(": ").unwrap();
        let number = value.trim_end_matches(['k', 'M', 'G', 'T']);
        assert!(number.parse::<u64>().unwrap() > 0, "{line}");
        keys.push(key);
    }
    for needed in argv("read_iops read_bandwidth write_iops write_bandwidth") {
        assert!(keys.contains(&needed), "{yaml}");
    }
    keys.retain(|key| !key.ends_with("_iops") && !key.ends_with("_bandwidth"));
    assert!(
        keys.iter().all(|key| key.ends_with("_saturation_length")),
        "{yaml}"
    );
}

#[test]
fn every_format_holds_the_sweep_and_show_prints_it_again() {
    let here = place();
    let name = |name: &str| here.path().join(name).to_str().unwrap().to_owned();
    let files = argv("s.json s.html s.csv s.svg s.iocost io-properties.yaml");
    let files: Vec<String> = files.into_iter().map(name).collect();
    let mut words = vec!["--quick", "--time", "6s", "--size", "64M", "-q"];
    for file in &files {
        words.extend(["-o", file]);
    }
    let ran = sweep(here.path(), &words);
    ran.exits(0).fits_80_columns();
    let text = |file: &String| std::fs::read_to_string(file).unwrap();
    assert!(text(&files[1]).contains("block size and depth"));
    assert!(text(&files[2]).contains("randread-8k-d16"));
    assert!(text(&files[3]).contains("IOPS over depth"));
    assert_iocost(&text(&files[4]));
    assert_io_properties(&text(&files[5]));
    let shown = run(["show", &files[1]]);
    shown.exits(0).shows("by block size");
    // Another verb does not measure what these formats need.
    let ran = run([
        "run",
        here.path().to_str().unwrap(),
        "-o",
        &name("x.iocost"),
    ]);
    ran.exits(2).shows_nothing().tells("diskproof sweep");
}

/// The kernel answers blocks that were never written from memory, and a scheduler that was set by
/// that would throttle by nonsense.
#[test]
fn sweep_of_unwritten_blocks_sets_no_scheduler() {
    let here = place();
    let file = here.path().join("sparse");
    std::fs::File::create(&file)
        .unwrap()
        .set_len(64 * MIB)
        .unwrap();
    let script = here.path().join("x.iocost");
    let saved = here.path().join("s.json");
    let (script_name, saved_name) = (script.to_str().unwrap(), saved.to_str().unwrap());
    let mut words = argv("--quick --time 4s --rw randread -q");
    words.extend(["-o", saved_name, "-o", script_name]);
    sweep(&file, &words).exits(5).tells("unwritten-blocks");
    assert!(!script.exists());
    let again = ["show", saved_name, "--format", "iocost"];
    run(again)
        .exits(5)
        .shows_nothing()
        .tells("unwritten-blocks");
}

#[test]
fn spans_are_measured_up_to_the_whole_target() {
    let here = place();
    let flags = argv("--bs 8k --depth 1 --rw randread --spans --size 64M --time 4s --json -q");
    let ran = sweep(here.path(), &flags);
    ran.exits(0);
    let record = ran.record();
    let spans: Vec<u64> = result(&record)
        .spans
        .iter()
        .map(|span| span.span_bytes / MIB)
        .collect();
    assert_eq!(spans, [1, 4, 16, 64]);
    let mut gains = result(&record).spans.iter().map(|span| span.gain.unwrap());
    assert!((gains.next_back().unwrap() - 1.0).abs() < 1e-9);
}

#[test]
fn dry_run_states_time_and_bytes() {
    let here = place();
    let ran = sweep(here.path(), &["--dry-run", "--size", "64M"]);
    ran.exits(0);
    let words: Vec<&str> = ran.out.split_whitespace().collect();
    let page = words.join(" ");
    assert!(
        page.contains("takes about 3 min 0 s") && page.contains("writes at most"),
        "{page}"
    );
    for flags in [
        &["--bs", "8k,8k"][..],
        &["--depth", "300"],
        &["--bs", "100"],
    ] {
        let ran = sweep(here.path(), flags);
        ran.exits(2).shows_nothing();
    }
}
