//! `--together`: several runs at the same instants, as several hosts would make them, and their sum
//! by `merge`.

use crate::program::{Ran, diskproof, needs, program, program_path, random_file, run, write_disk};
use diskproof_model::record::Record;
use diskproof_simdisk::SimDisk;
use diskproof_simdisk::spec::parse;
use diskproof_simdisk::testbed::{TempDir, place};
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// 3,000 requests per second, however many are in flight.
const DISK: &str = "iops=3000,channels=64,latency=2ms";
const RATE: f64 = 3000.0;

/// So many seconds from now, as `--start-at` takes it.
fn in_seconds(seconds: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    format!("@{}", now.as_secs() as i64 + seconds)
}

/// `run TARGET` in slots as rank number `rank` of three.
fn together(target: &str, rank: u32, start: &str, flags: &[&str]) -> Command {
    let rank = format!("{rank}/3");
    let mut command = program(["run", target, "--together", "--start-at", start]);
    command
        .args(["--rank", &rank, "--rw", "randread", "--bs", "4k", "-q"])
        .args(["--depth", "16", "--no-history", "--no-health"])
        .args(flags)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What they print, all started at once.
fn all(commands: Vec<Command>) -> Vec<Ran> {
    let mut children = Vec::new();
    for mut command in commands {
        children.push(command.spawn().unwrap());
    }
    let mut ran = Vec::new();
    for child in children {
        ran.push(Ran::from(child.wait_with_output().unwrap()));
    }
    ran
}

/// Hands the output of all to `merge -`.
fn merged(place: &TempDir, texts: &[&str], arguments: &[&str]) -> Ran {
    let file = place.path().join("stream");
    std::fs::write(&file, texts.concat()).unwrap();
    let mut command = program([&["merge", "-"], arguments].concat());
    command.stdin(File::open(&file).unwrap());
    Ran::of(command)
}

/// Codes of those that are not in the sum.
fn left_out(fleet: &Value) -> Vec<&str> {
    let Some(out) = fleet["sum"]["left_out"].as_array() else {
        return Vec::new();
    };
    out.iter()
        .map(|one| one["reason"]["code"].as_str().unwrap())
        .collect()
}

#[test]
fn hosts_together_give_the_sum_of_their_disks() {
    needs!("fusermount3");
    let here = place();
    // The disks are written before.
    let start = in_seconds(8);
    let (mut served, mut commands) = (Vec::new(), Vec::new());
    for rank in 0..3 {
        let disk = here.path().join(format!("disk{rank}"));
        served.push(SimDisk::serve(parse(DISK).unwrap(), 64 << 20, &disk).unwrap());
        write_disk(&disk, 64 << 20);
        let target = disk.to_str().unwrap();
        commands.push(together(target, rank, &start, &["--time", "4s"]));
    }
    let ran = all(commands);
    for one in &ran {
        one.exits(0);
    }
    let texts: Vec<&str> = ran.iter().map(|one| one.out.as_str()).collect();
    let json = merged(&here, &texts, &["--json"]).json();
    assert_eq!(left_out(&json), [""; 0], "{json}");
    let sum = &json["sum"];
    assert_eq!(sum["slots"], 8);
    let [reads] = sum["workloads"].as_array().unwrap().as_slice() else {
        panic!("{sum}");
    };
    let value = reads["iops"]["value"].as_f64().unwrap();
    // A busy machine never makes a disk faster, and may make it slower for a slot.
    assert!(value <= 3.0 * RATE * 1.005, "{reads}");
    assert!(value >= 3.0 * RATE * 0.9, "{reads}");
    let page = merged(&here, &texts, &[]);
    let first = page.out.lines().next().unwrap();
    assert!(first.starts_with("3 hosts together: randread"), "{page}");
    page.fits_80_columns();
}

#[test]
fn late_rank_and_other_plan_are_named_and_in_no_sum() {
    let here = place();
    let file = here.path().join("data");
    random_file(&file, 16 << 20);
    let target = file.to_str().unwrap();
    let start = in_seconds(3);
    let flags = ["--time", "1s"];
    let mut ran = all(vec![
        together(target, 0, &start, &flags),
        together(target, 1, &start, &flags),
        together(target, 2, &start, &["--time", "2s"]),
    ]);
    // Begun after its last slot: a launcher that starts a few at once.
    let late = in_seconds(-60);
    ran.extend(all(vec![together(target, 2, &late, &flags)]));
    for one in &ran {
        one.exits(0);
    }
    let texts: Vec<&str> = ran.iter().map(|one| one.out.as_str()).collect();
    // The late one has the seed of another start, so it is another plan, too.
    let json = merged(&here, &texts[..3], &["--json"]).exits(1).json();
    assert_eq!(left_out(&json), ["other-plan"], "{json}");
    assert_eq!(json["sum"]["members"].as_array().unwrap().len(), 2);
    // A record that was cut is named, and in no sum.
    let cut = &texts[1][..texts[1].len() / 2];
    let json = merged(&here, &[texts[0], cut], &["--json"]).exits(1).json();
    assert!(json.get("sum").is_none(), "{json}");
    assert_eq!(json["missing"].as_array().unwrap().len(), 1);
}

#[test]
fn rank_that_begins_late_skips_slots_and_never_moves_the_timetable() {
    let here = place();
    let file = here.path().join("data");
    random_file(&file, 16 << 20);
    let target = file.to_str().unwrap();
    let begun = in_seconds(-2);
    let output = here.path().join("late.json");
    let ran = all(vec![together(
        target,
        0,
        &begun,
        &["--time", "2s", "-o", output.to_str().unwrap()],
    )]);
    ran[0].exits(0);
    let record: Record = serde_json::from_str(&std::fs::read_to_string(&output).unwrap()).unwrap();
    let recorded = record.together().unwrap();
    assert!(recorded.first_slot_ns < 0, "{recorded:?}");
    assert!(!recorded.skipped.is_empty());
    let slices = match record.measurements.first() {
        Some(row) => row.data.slices.as_slice(),
        None => &[],
    };
    assert_eq!(
        slices.len() + recorded.skipped.len(),
        recorded.slots as usize
    );
    let timetable = record.plan.timetable().unwrap();
    for slice in slices {
        let slot = slice.slot.unwrap();
        let planned = &timetable[slot.number as usize];
        let planned_ns = recorded.first_slot_ns + planned.start_ns as i64;
        assert!(slot.began_ns as i64 >= planned_ns, "{slot:?} {planned_ns}");
        assert_eq!(slice.start_ns as i64, planned_ns + planned.warmup_ns as i64);
    }
}

#[test]
fn together_refuses_what_would_differ_from_host_to_host() {
    let here = place();
    let file = here.path().join("data");
    random_file(&file, 16 << 20);
    let target = file.to_str().unwrap();
    let folder = here.path().to_str().unwrap();
    let start = in_seconds(60);
    // No instant.
    diskproof!("run {target} --together --time 1s").exits(2);
    diskproof!("run {target} --together --start-at +5s --time 1s").exits(2);
    diskproof!("run {target} --together --start-at yesterday").exits(2);
    diskproof!("run {target} --together --start-at @1000000000").exits(2);
    diskproof!("run {target} --together --start-at {start} --rank 3/3").exits(2);
    diskproof!("run {target} --start-at {start}").exits(2);
    // Writes are skipped here, and where the file is released they are not.
    diskproof!("check {target} --together --start-at {start}")
        .exits(2)
        .tells("--read-only");
    diskproof!("check {target} --together --start-at {start} --read-only --dry-run").exits(0);
    // Results decide.
    diskproof!("run {target} --together --start-at {start} --latency-target 5ms").exits(2);
    diskproof!("sweep {target} --together --start-at {start}").exits(2);
    diskproof!("ping {target} --together --start-at {start} -c 3").exits(2);
    diskproof!("files {folder} --together --start-at {start}").exits(2);
    // Without a time.
    diskproof!("run {target} --together --start-at {start} --bytes 1M")
        .exits(2)
        .tells("--time");
}

/// Hydra offers fences without a daemon: no start is given.
#[test]
fn fences_of_hydra_give_one_instant_and_the_clocks() {
    needs!("mpiexec.hydra");
    let here = place();
    let file = here.path().join("data");
    random_file(&file, 16 << 20);
    let mut command = Command::new("mpiexec.hydra");
    command
        .args(["-n", "3", "-launcher", "fork", &program_path(), "run"])
        .arg(&file)
        .args(["--together", "--rw", "randread", "--time", "1s"])
        .args(["--no-history", "--no-health", "-q", "--pieces", "-o"])
        .arg(format!("{}/", here.path().display()))
        .stdin(Stdio::null());
    let ran = Ran::of(command);
    ran.exits(0);
    let json = merged(&here, &[&ran.out], &["--json", "--expect", "3"]).json();
    let members = json["sum"]["members"].as_array().unwrap();
    assert_eq!(members.len(), 3, "{json}");
    // These ranks have one kernel.
    for member in members {
        assert_eq!(member["clock"], "same-clock", "{member}");
    }
    let as_of_three_kernels = records_of_three_kernels(here.path());
    let apart = merged(&here, &[&as_of_three_kernels], &["--json"]).json();
    let members = apart["sum"]["members"].as_array().unwrap();
    assert_eq!(members.len(), 3, "{apart}");
    for member in &members[1..] {
        assert_eq!(member["clock"], "fences", "{member}");
    }
    assert!(!json["sum"]["workloads"].as_array().unwrap().is_empty());
    let page = merged(&here, &[&ran.out], &[]);
    page.shows("3 hosts together");
    let none = run(["merge", "/nonexistent/x.json"]);
    none.exits(2);
}

/// The records in a folder, as if each rank had a kernel of its own, and knew nothing of its clock.
fn records_of_three_kernels(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let mut record: Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        record["clock"]["wall"]["boot_id"] = record["run_id"].clone();
        record["clock"]["wall"]["bound_ns"] = Value::Null;
        text.push_str(&format!("{record}\n"));
    }
    text
}

/// A rank that never comes to the fence costs the others ten seconds, and nothing else.
#[test]
fn rank_that_misses_the_fence_ends_no_other() {
    needs!("mpiexec.hydra");
    let here = place();
    let file = here.path().join("data");
    random_file(&file, 16 << 20);
    let script = format!(
        "[ $PMI_RANK = 1 ] && exec sleep 13; exec {} run {} --together --rw randread --time 1s \
         --no-history --no-health -q",
        program_path(),
        file.display()
    );
    let mut command = Command::new("mpiexec.hydra");
    command
        .args(["-n", "3", "-launcher", "fork", "sh", "-c", &script])
        .stdin(Stdio::null());
    let ran = Ran::of(command);
    ran.exits(0);
    let json = merged(&here, &[&ran.out], &["--json", "--expect", "3"])
        .exits(1)
        .json();
    assert_eq!(
        json["rows"][0]["runs"].as_array().unwrap().len(),
        1,
        "{json}"
    );
    assert_eq!(json["missing"][0]["name"], "rank 1");
}

/// What `run --together` needs behind its target, whoever launches it.
const IN_SLOTS: &str = "--together --rw randread --time 1s --no-history --no-health -q";

/// Asserts that the sum has three hosts, whose pieces a launcher has brought back.
fn assert_sum_of_three(launcher: &mut Command, here: &TempDir) {
    let output = launcher.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let json = merged(here, &[&text], &["--json"]).json();
    let Some(members) = json["sum"]["members"].as_array() else {
        panic!("{json} {text} {stderr}");
    };
    assert_eq!(members.len(), 3, "{json} {stderr}");
    assert_eq!(left_out(&json), [""; 0], "{json}");
}

/// The folder of the files `a`, `b` and `c`, which stand for the disks of three hosts.
fn files_of_hosts(here: &TempDir) -> String {
    for name in ["a", "b", "c"] {
        random_file(&here.path().join(name), 16 << 20);
    }
    here.path().to_str().unwrap().to_owned()
}

/// clush's worker `exec` starts the command here, once for each name.
#[test]
fn clush_brings_back_the_sum() {
    needs!("clush");
    let here = place();
    let folder = files_of_hosts(&here);
    let start = in_seconds(8);
    let program = program_path();
    let command = format!("{program} run {folder}/%h {IN_SLOTS} --start-at {start}");
    let mut clush = Command::new("clush");
    clush
        .args(["-b", "-R", "exec", "-w", "a,b,c", &command])
        .env("HOME", here.path());
    assert_sum_of_three(&mut clush, &here);
}

/// Ansible with local connections, with the rank as docs/cluster.md gives it.
#[test]
fn ansible_brings_back_the_sum() {
    needs!("ansible");
    let here = place();
    let folder = files_of_hosts(&here);
    let inventory = here.path().join("inventory");
    std::fs::write(&inventory, "a\nb\nc\n").unwrap();
    let start = in_seconds(15);
    let program = program_path();
    let command = format!(
        "{program} run {folder}/{{{{ inventory_hostname }}}} {IN_SLOTS} --start-at {start} \
         --rank {{{{ groups['all'].index(inventory_hostname) }}}}/3"
    );
    let mut ansible = Command::new("ansible");
    ansible
        .args(["all", "-c", "local", "-i", inventory.to_str().unwrap()])
        .args(["-e", "ansible_python_interpreter=auto_silent"])
        .args(["-f", "3", "-o", "-a", &command])
        .env("HOME", here.path())
        .env("ANSIBLE_NOCOLOR", "1");
    assert_sum_of_three(&mut ansible, &here);
}
