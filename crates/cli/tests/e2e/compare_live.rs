//! `diskproof compare` on targets and settings: measured in alternation, by the program itself.

use crate::program::{
    PipedRun, Ran, argv, content_hash, names, needs, random_file, run, within_files,
};
use diskproof_model::campaign::CampaignPart;
use diskproof_model::comparison::{Basis, Comparison};
use diskproof_model::record::Record;
use diskproof_simdisk::testbed::{Loop, Mount, place};
use rustix::process::{Pid, test_kill_process_group};
use std::fs::File;
use std::path::Path;

/// One workload for a few seconds.
const SHORT: [&str; 5] = ["--only", "random-read-d1", "--time", "4s", "--no-health"];

/// `compare` with its own history.
fn compared(place: &Path, arguments: &[&str]) -> Ran {
    let history = place.join("history.db");
    run(["compare", "--history", history.to_str().unwrap()]
        .iter()
        .chain(arguments))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The saved record of a run of the comparison.
fn saved(place: &Path, run_id: &str) -> Record {
    let history = place.join("history.db");
    run(["show", run_id, "--json", "--history", text(&history)]).record()
}

/// The parts of both sides in their campaign.
fn parts(place: &Path, comparison: &Comparison) -> [CampaignPart; 2] {
    let sides = [&comparison.baseline, &comparison.candidates[0].side];
    sides.map(|side| {
        saved(place, &side.runs[0].run_id)
            .campaign()
            .unwrap()
            .clone()
    })
}

#[test]
fn compare_live_measures_two_directories_and_saves_both_sides() {
    let place = place();
    let sides = ["one", "two"].map(|name| place.path().join(name));
    for side in &sides {
        std::fs::create_dir(side).unwrap();
    }
    let targets = sides.each_ref().map(|side| text(side));
    let words = [&targets[..], &SHORT, &["--size", "16M", "--json"]].concat();
    let ran = compared(place.path(), &words);
    ran.exits(0);
    let comparison: Comparison = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(comparison.baseline.label, targets[0]);
    let candidate = &comparison.candidates[0];
    assert_eq!(candidate.side.label, targets[1]);
    let rate = &candidate.metrics[0];
    assert_eq!(
        (rate.metric.as_str(), rate.basis, rate.reasons.len()),
        ("random-read-d1.iops", Basis::Blocks, 0),
        "{rate:?}"
    );
    assert!(rate.a.n >= 3 && rate.ratio.is_some(), "{rate:?}");
    assert!(
        candidate
            .notes
            .iter()
            .any(|note| note.contains("in alternation")),
        "{:?}",
        candidate.notes
    );

    let [a, b] = parts(place.path(), &comparison);
    assert_eq!((a.side.as_str(), b.side.as_str()), ("A", "B"));
    assert_eq!(a.id, b.id);
    assert_eq!(a.decisions[0].blocks, rate.a.n);
    for side in &sides {
        assert_eq!(names(side), [""; 0], "nothing is left behind");
    }

    // The saved runs give the same comparison again.
    let ids = [&comparison.baseline, &candidate.side].map(|side| side.runs[0].run_id.clone());
    let again = compared(place.path(), &[&ids[0], &ids[1], "--json"]);
    let again: Comparison = serde_json::from_str(&again.out).unwrap();
    assert_eq!(again.candidates[0].metrics, candidate.metrics);
}

#[test]
fn compare_live_prepares_each_slice_of_a_side_and_cleans_up() {
    let place = place();
    let (target, log) = (place.path().join("data"), place.path().join("log"));
    random_file(&target, 16 << 20);
    let say = |word: &str| format!("echo {word} >> {}", log.display());
    // The last command takes longer than a run may after its end.
    let (a, b, end) = (say("a"), say("b"), format!("sleep 6; {}", say("end")));
    let mut words = vec!["--prepare", &a, "--prepare", &b];
    words.extend(["--cleanup", &end, "--json"]);
    let ran = compared(
        place.path(),
        &[&[text(&target)], &words[..], &SHORT].concat(),
    );
    ran.exits(0);
    let comparison: Comparison = serde_json::from_str(&ran.out).unwrap();
    let [of_a, of_b] = parts(place.path(), &comparison);
    assert_eq!(
        (of_a.prepare.as_ref(), of_b.prepare.as_ref()),
        (Some(&a), Some(&b))
    );
    let setting = &comparison.candidates[0].differences[0];
    assert_eq!(
        (setting.what.as_str(), &setting.a, &setting.b),
        ("setting", &a, &b)
    );
    let written = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = written.lines().collect();
    let (last, slices) = lines.split_last().unwrap();
    assert_eq!(*last, "end");
    for block in slices.chunks(2) {
        assert!(block == ["a", "b"] || block == ["b", "a"], "{lines:?}");
    }
    assert_eq!(slices.len() as u64, 2 * of_a.decisions[0].blocks);
}

/// The program raises its own limit on open files, which is no business of what it starts.
#[test]
fn prepare_command_has_the_limit_on_open_files_of_its_user() {
    needs!("prlimit");
    let place = place();
    let (target, file) = (place.path().join("data"), place.path().join("limit"));
    random_file(&target, 16 << 20);
    let command = format!("ulimit -Sn > {}", file.display());
    let mut words = vec!["compare", text(&target), "--no-history"];
    words.extend(["--prepare", &command, "--prepare", &command]);
    words.extend(SHORT);
    Ran::of(within_files(200, words)).exits(0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "200\n");
}

#[test]
fn compare_live_quotes_a_command_that_fails() {
    let place = place();
    let target = place.path().join("data");
    random_file(&target, 16 << 20);
    let fails = "echo odd >&2; exit 3";
    let words = ["--prepare", "true", "--prepare", fails];
    let ran = compared(
        place.path(),
        &[&[text(&target)], &words[..], &SHORT].concat(),
    );
    ran.exits(4).shows_nothing();
    ran.tells(fails).tells("exit status: 3): odd");
}

#[test]
fn compare_live_ends_with_what_it_has_after_ctrl_c() {
    let place = place();
    let target = place.path().join("data");
    random_file(&target, 16 << 20);
    let log = place.path().join("log");
    // The eleventh slice waits for Ctrl-C.
    let command = format!(
        "echo x >> {0}; [ $(wc -l < {0}) -lt 11 ] || {{ echo now >&2; sleep 60; }}",
        log.display()
    );
    let history = place.path().join("history.db");
    let mut words = vec!["compare", text(&target), "--history", text(&history)];
    words.extend(["--prepare", &command, "--prepare", &command]);
    words.extend(["--only", "random-read-d1", "--margin", "0.001%", "--json"]);
    let running = PipedRun::start(words);
    assert!(crate::program::eventually(|| {
        std::fs::read_to_string(&log).is_ok_and(|text| text.lines().count() >= 11)
    }));
    let ran = running.interrupt();
    ran.exits(130);
    let comparison: Comparison = serde_json::from_str(&ran.out).unwrap();
    let rate = &comparison.candidates[0].metrics[0];
    assert_eq!((rate.basis, rate.a.n), (Basis::Blocks, 5), "{rate:?}");
    assert!(comparison.baseline.runs[0].partial);
}

#[test]
fn prepare_command_ends_with_its_children() {
    let place = place();
    let (target, file) = (place.path().join("data"), place.path().join("process"));
    random_file(&target, 16 << 20);
    let command = format!("echo $$ > {}; sleep 600; true", file.display());
    let mut words = vec!["compare", text(&target), "--no-history"];
    words.extend(["--prepare", &command, "--prepare", &command]);
    let running = PipedRun::start(words);
    let group = || std::fs::read_to_string(&file).ok()?.trim().parse().ok();
    assert!(crate::program::eventually(|| group().is_some()));
    let group = Pid::from_raw(group().unwrap()).unwrap();
    let ran = running.interrupt();
    ran.exits(130);
    // The child of the shell is reaped by init, when it gets to it.
    assert!(crate::program::eventually(|| {
        test_kill_process_group(group).is_err()
    }));
}

#[test]
fn compare_live_refuses_what_makes_no_sense() {
    let place = place();
    let (file, folder) = (place.path().join("data"), place.path().join("folder"));
    random_file(&file, 16 << 20);
    std::fs::create_dir(&folder).unwrap();
    let (file, folder) = (text(&file), text(&folder));
    let two = format!("{folder} {folder}");
    for (line, part) in [
        (folder, "a second target"),
        (&format!("{file} {folder}"), "not comparable"),
        (&format!("{folder} latest"), "latest"),
        (&format!("{folder} --prepare true"), "a single --prepare"),
        (&format!("{two} --prepare true --prepare true"), "--prepare"),
        ("latest latest~1 --quick", "--quick "),
        (&format!("{two} --time 2s"), "4 workloads"),
        (&format!("{two} --only nothing"), "nothing"),
        (
            &format!("{file} {file} --only random-write-d32"),
            "--overwrite",
        ),
        (
            &format!("{two} --fail-on random-read-d4.iops<-5%"),
            "sequential-read",
        ),
    ] {
        compared(place.path(), &argv(line)).exits(2).tells(part);
    }
    let planned = format!("{two} --dry-run --size 16M");
    let planned = compared(place.path(), &argv(&planned));
    planned.exits(0);
    planned.shows("random-read-d32").shows("commit-fdatasync");
}

#[test]
fn compare_live_opens_again_after_a_remount() {
    needs!("umount");
    let place = place();
    let point = place.path().join("mounted");
    let mount = Mount::new("tmpfs", "tmpfs", &point, "size=64m");
    let target = point.join("data");
    random_file(&target, 16 << 20);
    drop(mount);
    // The file lies on tmpfs, which an unmount empties: each command makes it anew.
    let remount = |options: &str| {
        format!(
            "umount {0} && mount -t tmpfs -o {options} tmpfs {0} && head -c 16M /dev/urandom > \
             {0}/data",
            point.display()
        )
    };
    let _mount = Mount::new("tmpfs", "tmpfs", &point, "size=64m");
    random_file(&target, 16 << 20);
    let (a, b) = (remount("size=64m"), remount("size=64m,noatime"));
    let words = ["--prepare", &a, "--prepare", &b, "--json", "--reopen"];
    let ran = compared(
        place.path(),
        &[&[text(&target)], &words[..], &SHORT].concat(),
    );
    ran.exits(0);
    let comparison: Comparison = serde_json::from_str(&ran.out).unwrap();
    let differences = &comparison.candidates[0].differences;
    assert!(
        differences
            .iter()
            .any(|one| one.what == "mount options" && one.b.contains("noatime")),
        "{differences:?}"
    );

    let words = ["--prepare", &a, "--prepare", &b];
    let ran = compared(
        place.path(),
        &[&[text(&target)], &words[..], &SHORT].concat(),
    );
    ran.exits(4).tells("--reopen");
}

/// The number of a loop device stays, whatever file is behind it.
#[test]
fn compare_live_overwrites_no_other_image_than_the_released_one() {
    needs!("losetup");
    let place = place();
    let [image, other] = ["image", "other"].map(|name| place.path().join(name));
    let device = Loop::sparse(&image, 64 << 20, &[]);
    std::fs::File::create(&other)
        .unwrap()
        .set_len(64 << 20)
        .unwrap();
    let node = text(&device.node);
    let attach = |file: &Path| format!("losetup -d {node}; losetup {node} {}", text(file));
    let (one, two) = (attach(&image), attach(&other));
    let words = ["--prepare", &one, "--prepare", &two, "--reopen"];
    let release = ["--destroy", device.name(), "--only", "random-write-d32"];
    let only = ["--time", "4s", "--no-health"];
    let ran = compared(
        place.path(),
        &[&[node], &words[..], &release, &only].concat(),
    );
    ran.exits(4).tells("was not released");
    let content = std::fs::read(&other).unwrap();
    assert!(content.iter().all(|byte| *byte == 0), "written to");
}

#[test]
fn compare_live_overwrites_no_other_file_than_the_released_one() {
    let place = place();
    let [target, other] = ["data", "other"].map(|name| place.path().join(name));
    random_file(&target, 64 << 20);
    random_file(&other, 64 << 20);
    let hash = |path: &Path| {
        content_hash(path)
            .split_whitespace()
            .next()
            .map(str::to_owned)
    };
    let before = hash(&other);
    let exchange = format!("mv -f {} {}", text(&other), text(&target));
    let mut words = vec!["--prepare", "true", "--prepare", &exchange];
    words.extend(["--reopen", "--overwrite"]);
    let only = ["--only", "commit-fdatasync", "--time", "4s", "--no-health"];
    let ran = compared(
        place.path(),
        &[&[text(&target)], &words[..], &only].concat(),
    );
    ran.exits(4).tells("was not released");
    assert_eq!(hash(&target), before, "nothing was written to it");
}

/// The path of the user leads to another directory after each command.
#[test]
fn compare_live_opens_what_the_path_of_the_user_leads_to() {
    let place = place();
    let [one, two, link] = ["one", "two", "link"].map(|name| place.path().join(name));
    for side in [&one, &two] {
        std::fs::create_dir(side).unwrap();
    }
    std::os::unix::fs::symlink(&one, &link).unwrap();
    let [a, b] = [&one, &two].map(|side| format!("ln -sfn {} {}", text(side), text(&link)));
    let words = ["--prepare", &a, "--prepare", &b, "--size", "8M", "--json"];
    let target = [text(&link)];
    let reopened = [&target[..], &words, &SHORT, &["--reopen"]].concat();
    let ran = compared(place.path(), &reopened);
    ran.exits(0);
    let comparison: Comparison = serde_json::from_str(&ran.out).unwrap();
    let sides = [&comparison.baseline, &comparison.candidates[0].side];
    let measured = sides.map(|side| saved(place.path(), &side.runs[0].run_id).targets[0].clone());
    let paths = measured.map(|target| target.path);
    assert_eq!(paths, [text(&one), text(&two)]);
    // The target that stays open is not the one that the path leads to.
    let ran = compared(place.path(), &[&target[..], &words, &SHORT].concat());
    ran.exits(4).tells("--reopen");
}

#[test]
fn compare_live_fails_where_the_setting_may_not_be_restored() {
    let place = place();
    let target = place.path().join("data");
    random_file(&target, 16 << 20);
    let words = [
        "--prepare",
        "true",
        "--prepare",
        "true",
        "--cleanup",
        "false",
    ];
    let ran = compared(
        place.path(),
        &[&[text(&target)], &words[..], &SHORT].concat(),
    );
    ran.exits(4).tells("--cleanup 'false'");
}

/// The reserve of the user holds for what each command brings.
#[test]
fn compare_live_keeps_free_what_the_user_asks_for_after_each_command() {
    needs!("losetup", "mkfs.ext4");
    let place = place();
    let disk = diskproof_simdisk::testbed::Disk::new("ext4", 400 << 20, "rw");
    let point = text(disk.path()).to_owned();
    let fill = format!("fallocate -l 200M {point}/full");
    let words = ["--prepare", "true", "--prepare", &fill, "--reopen"];
    let size = ["--size", "16M", "--keep-free", "250M"];
    let ran = compared(
        place.path(),
        &[&[point.as_str()], &words[..], &size, &SHORT].concat(),
    );
    ran.exits(4).tells("--prepare 'fallocate");
}

/// A loop device that gets another image keeps its number.
#[test]
fn compare_live_overwrites_no_other_image_in_the_released_loop_device() {
    needs!("losetup");
    let place = place();
    let [image, other] = ["image", "other"].map(|name| place.path().join(name));
    File::create(&other).unwrap().set_len(64 << 20).unwrap();
    let device = Loop::sparse(&image, 64 << 20, &[]);
    let node = device.node.to_str().unwrap();
    let before = content_hash(&other);
    let exchange = format!("losetup -d {node}; losetup {node} {}", text(&other));
    let words = [
        "--destroy",
        device.name(),
        "--prepare",
        "true",
        "--prepare",
        &exchange,
        "--reopen",
    ];
    let only = ["--only", "random-write-d32", "--time", "4s", "--no-health"];
    let ran = compared(place.path(), &[&[node][..], &words, &only].concat());
    ran.exits(4).tells("was not released");
    assert_eq!(content_hash(&other), before, "nothing was written to it");
}
