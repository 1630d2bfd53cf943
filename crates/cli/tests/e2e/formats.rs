//! What `-o` writes, as a user finds it.

use crate::program::{Ran, SHORT, argv, names, program, run, sim_disk};
use diskproof_model::measurement::OpKind;
use diskproof_report::format::Requires;
use diskproof_report::formats::FORMATS;
use diskproof_simdisk::testbed::{can_run, place};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A short `check` that only reads, saved as these files.
fn check(folder: &Path, outputs: &[&str]) -> Ran {
    let outputs = outputs.iter().flat_map(|output| ["-o", output]);
    let mut command = program(
        ["check", "--read-only"]
            .into_iter()
            .chain(SHORT)
            .chain(outputs),
    );
    command.current_dir(folder).output().unwrap().into()
}

#[test]
fn pictures_are_one_sheet_or_a_file_each() {
    let here = place();
    let ran = check(here.path(), &["x.svg", "each-%.svg"]);
    ran.exits(0);
    let names = names(here.path());
    let each = names
        .iter()
        .filter(|name| name.starts_with("each-") && !name.contains('%'))
        .count();
    assert!(
        names.contains(&"x.svg".to_owned()) && each > 0 && each + 1 == names.len(),
        "{names:?}"
    );
    let told = ran
        .err
        .lines()
        .find(|line| line.contains("wrote each-"))
        .unwrap_or_else(|| panic!("{}", ran.err));
    for name in names {
        assert!(name == "x.svg" || told.contains(&name), "{name}: {told}");
        let picture = std::fs::read_to_string(here.path().join(name)).unwrap();
        assert!(picture.starts_with("<?xml") && picture.ends_with("</svg>\n"));
    }
}

#[test]
fn every_format_is_written_whole_and_alone() {
    let here = place();
    let mut outputs = Vec::new();
    for format in FORMATS {
        match format.requires {
            Requires::Nothing | Requires::Workloads | Requires::Figures | Requires::Charts => {
                outputs.push(format!("a{}", format.extension));
            }
            // A sweep has them, or rays.
            Requires::Reads
            | Requires::ReadsAndWrites
            | Requires::SaturatedRays
            | Requires::Rays => {}
        }
    }
    outputs.sort_unstable();
    let ran = check(
        here.path(),
        &outputs.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    ran.exits(0);
    assert_eq!(names(here.path()), outputs);
    for name in outputs {
        ran.tells(&format!("wrote {name} ("));
    }
    let fio = ("a.fio.json", "{\n  \"fio version\" : \"diskproof-");
    for (name, begin) in [
        fio,
        ("a.csv", "run_id,"),
        ("a.gnuplot", "# "),
        ("a.hlog", "#[Logged by"),
        ("a.prom", "# HELP diskproof_"),
    ] {
        assert!(
            std::fs::read_to_string(here.path().join(name))
                .unwrap()
                .starts_with(begin),
            "{name}"
        );
    }
}

#[test]
fn a_locale_without_utf8_gets_ascii_pages_and_whole_json() {
    let here = place();
    let words = ["check", "--read-only", "--note", "grüße"]
        .into_iter()
        .chain(SHORT);
    let ran: Ran = program(words.clone())
        .current_dir(here.path())
        .env("LANG", "C")
        .output()
        .unwrap()
        .into();
    ran.exits(0);
    assert!(
        ran.out.is_ascii() && ran.out.contains("gr??e"),
        "{}",
        ran.out
    );
    let ran: Ran = program(words.chain(["--json"]))
        .current_dir(here.path())
        .env("LANG", "C")
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.record().note.as_deref(), Some("grüße"));
}

/// The same measurements give other settings for other major versions.
#[test]
fn a_saved_run_advises_another_version_of_postgresql() {
    let fixture =
        |name: &str| format!("{}/../../tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    let record = fixture("check-directory.json");
    let setting = |version: &str, name: &str| {
        let ran = run(["show", &record, "--json", "--pg-version", version]);
        ran.exits(0);
        let json: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(
            json["plan"]["questions"]["postgres_version"].to_string(),
            version
        );
        let all = json["advice"].as_array().unwrap();
        let found = all.iter().find(|one| one["setting"] == name);
        found.unwrap()["value"].as_str().unwrap().to_owned()
    };
    for (version, concurrency) in [("12", "4"), ("16", "8"), ("18", "16")] {
        assert_eq!(setting(version, "effective_io_concurrency"), concurrency);
        assert_eq!(setting(version, "random_page_cost"), "2.7", "{version}");
    }
    let conf = |version: &str| {
        let form = ["--format", "postgresql.conf", "--pg-version", version];
        let ran = run([&["show", &record], &form[..]].concat());
        let lines = ran.out.lines();
        lines
            .filter(|line| line.starts_with("effective_io_concurrency"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(conf("12"), ["effective_io_concurrency = 4"]);
    // That is its default.
    assert!(conf("18").is_empty());
    for wrong in [
        ["show", &record, "--pg-version", "9"],
        ["show", &fixture("comparison.json"), "--pg-version", "16"],
    ] {
        run(wrong).exits(2);
    }
}

#[test]
fn shown_comparison_has_all_metrics_with_verbose() {
    let fixture =
        |name: &str| format!("{}/../../tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    let comparison = fixture("comparison.json");
    let (short, whole) = (
        run(["show", &comparison]),
        run(["show", &comparison, "--verbose"]),
    );
    short.exits(0);
    whole.exits(0);
    let (short, whole) = (short.out.lines().count(), whole.out.lines().count());
    assert!(short < whole, "{short} {whole}");
    let record = fixture("check-directory.json");
    // What would print twice is refused, and nothing is ignored.
    for words in [
        ["show", &comparison, "--format", "csv", "-o", "-"],
        ["show", &record, "--format", "csv", "-o", "-"],
    ] {
        run(words).exits(2).shows_nothing().tells("--format");
    }
}

fn fio_json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn scripts_for_fio_find_our_figures() {
    const NAME: &str = "scripts_for_fio_find_our_figures";
    if !can_run(NAME, &["fusermount3"]) {
        return;
    }
    let here = place();
    let disk = sim_disk(&here, "latency=100us", 16 << 20);
    let saved = here.path().join("x.fio.json");
    let (file, saved) = (disk.path().to_str().unwrap(), saved.to_str().unwrap());
    let mix = [
        "--rw",
        "randrw",
        "--fsync",
        "8",
        // Enough for a 99th percentile also where a busy processor disturbs most of the time.
        "--ops",
        "20000",
        "--depth",
        "4",
        "--overwrite",
    ];
    let ran = run(["run", file, "--json", "--quiet", "-o", saved]
        .into_iter()
        .chain(mix));
    ran.exits(0);
    let record = ran.record();
    let (m, document) = (&record.measurements[0], fio_json(Path::new(saved)));
    let at = |pointer: &str| {
        document
            .pointer(pointer)
            .unwrap_or_else(|| panic!("{pointer} is missing"))
            .clone()
    };
    for (direction, kind) in [("read", OpKind::Read), ("write", OpKind::Write)] {
        let op = m.op(kind).unwrap();
        // As jq has it: .jobs[0].read.iops, .jobs[0].read.clat_ns.percentile["99.000000"]
        let of = |place: &str| at(&format!("/jobs/0/{direction}/{place}"));
        assert!((of("iops").as_f64().unwrap() - op.figures.iops.value).abs() < 1e-6);
        assert_eq!(
            of("clat_ns/percentile/99.000000").as_u64(),
            op.figures.latency.p99
        );
        assert_eq!(
            of("bw_bytes").as_u64(),
            Some(op.figures.throughput.value.round() as u64)
        );
        assert_eq!(of("io_bytes").as_u64(), Some(op.data.count * 8192));
        let bins: u64 = of("clat_ns/bins")
            .as_object()
            .unwrap()
            .values()
            .map(|n| n.as_u64().unwrap())
            .sum();
        assert_eq!(
            (of("clat_ns/N").as_u64(), bins),
            (Some(bins), op.data.count)
        );
    }
    assert_eq!(
        at("/jobs/0/sync/total_ios").as_u64(),
        Some(m.data.ops[&OpKind::Sync].count)
    );
    assert_eq!(
        (
            at("/jobs/0/job options/rw"),
            at("/jobs/0/job options/iodepth")
        ),
        ("randrw".into(), "4".into())
    );
    // The history knows the run, and another verb writes the same.
    let again = here.path().join("again.fio.json");
    let ran = run(["export", &record.run_id, again.to_str().unwrap()]);
    ran.exits(0).tells("wrote ");
    assert_eq!(fio_json(&again), document);
}

#[test]
fn options_are_those_that_fio_prints() {
    const NAME: &str = "options_are_those_that_fio_prints";
    if !can_run(NAME, &["fio"]) {
        return;
    }
    let here = place();
    let saved = here.path().join("x.fio.json");
    let plan = here.path().join("plan.toml");
    let target = here.path().join("it's a: place");
    std::fs::create_dir(&target).unwrap();
    let together = "size = \"4MiB\"\n[[workload]]\nname = \"writes\"\nrw = \"randwrite\"\nops = \
                    40\n[[workload]]\nname = \"scan\"\nrw = \"read\"\nops = 40\ntogether = \
                    true\n[[workload]]\nname = \"many\"\njobs = 2\ndepth = 2\ntime = \"200ms\"\n";
    std::fs::write(&plan, together).unwrap();
    let [plan, target, file] = [&plan, &target, &saved].map(|path| path.to_str().unwrap());
    let words = ["run", plan, target, "--json", "--quiet", "-o", file];
    let ran = run(words);
    ran.exits(0);
    let ours = fio_json(&saved);
    for (index, m) in ran.record().measurements.iter().enumerate() {
        // Its notes go to stdout, too, unless the result goes to a file.
        let line =
            m.figures
                .reproduce
                .replacen("fio ", "fio --output=fio.json --output-format=json ", 1);
        let printed = Command::new("sh")
            .arg("-c")
            .arg(&line)
            .current_dir(here.path())
            .output()
            .unwrap();
        assert!(
            printed.status.success(),
            "{line}\n{}",
            String::from_utf8_lossy(&printed.stderr)
        );
        let fio = fio_json(&here.path().join("fio.json"));
        let job = fio["jobs"]
            .as_array()
            .unwrap()
            .iter()
            .find(|job| job["jobname"] == m.data.workload.name.as_str())
            .unwrap();
        let (ours, fio) = (
            ours["jobs"][index]["job options"].as_object().unwrap(),
            job["job options"].as_object().unwrap(),
        );
        // Flags are in there with 3.42, and are not with 3.33.
        let known: Vec<_> = ours
            .iter()
            .filter(|(option, value)| *value != "" || fio.contains_key(*option))
            .collect();
        assert_eq!(known, fio.iter().collect::<Vec<_>>(), "{line}");
    }
}

#[test]
fn a_curve_has_no_place_in_fio() {
    let here = place();
    let output = here.path().join("x.fio.json");
    let words = format!(
        "curve {} --size 8M -o {}",
        here.path().display(),
        output.display()
    );
    let words = argv(&words);
    let ran = run(words);
    ran.exits(2);
    assert!(
        ran.err.contains("x.fio.json: ") && names(here.path()).is_empty(),
        "{}",
        ran.err
    );
    let ran = run(["show", output.to_str().unwrap()]);
    ran.exits(2);
}
