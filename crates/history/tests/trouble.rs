//! No failure loses a run that was reported as saved, and an intact file is never treated as
//! damaged.
#![allow(clippy::unwrap_used)] // a failed step fails the test

mod runs;

use diskproof_history::{Filter, History, HistoryError, HistoryPlace, SaveOutcome};
use diskproof_simdisk::testbed::{Disk, Loop, Mount, can_run, run};
use runs::{ids, integrity, moved_histories, open, place, place_of_file, save_at_once, save_run};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Runs that a killed saver may have saved at most; enough never to be reached before its end.
const SAVES_MAX: usize = 100_000;

/// Saves without end where the test below tells it to; says each id once it is saved. Does nothing
/// as a separate test.
#[test]
fn saver() {
    let variable = |name| std::env::var(name).ok();
    let path = variable("DISKPROOF_TEST_SAVER");
    let Some((path, name)) = path.zip(variable("DISKPROOF_TEST_NAME")) else {
        return;
    };
    let place = place_of_file(path);
    for n in 0..SAVES_MAX {
        let id = format!("{name}-{n}");
        assert_eq!(save_run(&place, &id).unwrap().outcome, SaveOutcome::Added);
        println!("saved {id}.");
    }
}

fn saver_process(place: &HistoryPlace, name: &str) -> std::process::Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "saver", "--nocapture"])
        .env("DISKPROOF_TEST_SAVER", &place.path)
        .env("DISKPROOF_TEST_NAME", name);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Ids that a killed saver had reported; half a line is no report.
fn reported(output: &str) -> Vec<String> {
    let lines = output.split("saved ").skip(1);
    lines
        .filter_map(|rest| Some(rest.split_once('.')?.0.to_owned()))
        .collect()
}

#[test]
fn what_was_reported_as_saved_survives_kill_9() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let place = place(folder.path());
    let (mut all, mut pause) = (Vec::new(), 1_u64);
    for round in 0..8 {
        let mut savers: Vec<_> = (0..3)
            .map(|n| saver_process(&place, &format!("{round}-{n}")))
            .collect();
        for saver in &mut savers {
            // Anything from none to many saves; its own small generator, so that a failure can be
            // repeated.
            pause = pause
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            std::thread::sleep(Duration::from_millis((pause >> 33) % 120));
            saver.kill().unwrap();
            saver.wait().unwrap();
            let output = std::io::read_to_string(saver.stdout.take().unwrap());
            all.extend(reported(&output.unwrap()));
        }
    }
    // A machine so busy that none came to save proves nothing.
    let mut last = saver_process(&place, "last");
    let mut output = [0; 4096];
    while reported(&String::from_utf8_lossy(&output)).is_empty() {
        let read = last.stdout.as_mut().unwrap().read(&mut output).unwrap();
        assert!(read > 0, "it ended by itself");
    }
    last.kill().unwrap();
    last.wait().unwrap();
    all.extend(reported(&String::from_utf8_lossy(&output)));
    let there = ids(&place);
    let lost: Vec<&String> = all.iter().filter(|id| !there.contains(id)).collect();
    assert!(
        lost.is_empty(),
        "{} of {} lost: {lost:?}",
        lost.len(),
        all.len()
    );
    assert_eq!(integrity(&place), "ok");
    let listed = open(&place).list(&Filter::default()).unwrap().runs.len();
    assert_eq!(listed, there.len());
    assert_eq!(moved_histories(folder.path()).len(), 0);
}

#[test]
fn many_save_into_a_new_history_at_once() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let place = place(folder.path());
    save_at_once(&place, 8, 4);
    assert_eq!((ids(&place).len(), integrity(&place).as_str()), (32, "ok"));
}

/// A way to destroy a history, with its name.
type Damage = (&'static str, fn(&mut Vec<u8>));

fn damages() -> [Damage; 6] {
    [
        // Longer than the header of a database.
        ("no database at all", |bytes| {
            *bytes = b"my notes. ".repeat(150)
        }),
        ("few bytes of rubbish", |bytes| *bytes = vec![7; 10]),
        ("all zeros", |bytes| bytes.fill(0)),
        ("cut off", |bytes| {
            bytes.truncate(bytes.len() / 2 / 4096 * 4096)
        }),
        ("rubbish behind the header", |bytes| bytes[100..].fill(0xa5)),
        ("rubbish where runs begin", |bytes| {
            bytes[4096..12288].fill(0xa5)
        }),
    ]
}

#[test]
fn damaged_history_is_moved_whole_and_replaced() {
    for (what, damage) in damages() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        (0..4).for_each(|n| drop(save_run(&place, &format!("old{n}")).unwrap()));
        let mut damaged = std::fs::read(&place.path).unwrap();
        damage(&mut damaged);
        std::fs::write(&place.path, &damaged).unwrap();
        // Looking neither changes nor moves it.
        let looked =
            History::open(&place).and_then(|history| history.unwrap().list(&Filter::default()));
        let is_known = matches!(looked, Ok(_) | Err(HistoryError::Damaged { .. }));
        assert!(is_known, "{what}: {looked:?}");
        let looked_at = std::fs::read(&place.path).unwrap();
        let first = looked_at.iter().zip(&damaged).position(|(a, b)| a != b);
        assert!(
            looked_at == damaged,
            "{what}: changed from {first:?} on, or in length"
        );
        let saved = save_run(&place, "new").unwrap_or_else(|error| panic!("{what}: {error}"));
        let moved = saved.moved.unwrap_or_else(|| panic!("{what}: not moved"));
        assert_eq!(
            (saved.outcome, ids(&place).len()),
            (SaveOutcome::Added, 1),
            "{what}"
        );
        assert!(open(&place).get("new").unwrap().is_some(), "{what}");
        assert!(
            std::fs::read(&moved.path).unwrap() == damaged,
            "{what}: kept as it was"
        );
        assert_eq!(moved_histories(folder.path()), [moved.path], "{what}");
        assert_eq!(integrity(&place), "ok", "{what}");
        assert_eq!(save_run(&place, "next").unwrap().moved, None, "{what}");
    }
}

fn scratched(whole: &[u8], random: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let (kind, page) = (random(4), 4096 * random(whole.len() / 4096));
    let at = random(whole.len() - 64);
    let range = if kind == 2 {
        at..at + 64
    } else {
        page..page + 4096
    };
    match kind {
        0 => bytes[range].fill(0),
        3 => bytes.truncate(at),
        _ => bytes[range].fill_with(|| random(256) as u8),
    }
    bytes
}

#[test]
fn run_saved_into_a_damaged_history_is_found_again() {
    const RUNS: usize = 12;
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    (0..RUNS).for_each(|n| drop(save_run(&place, &format!("old{n:02}")).unwrap()));
    let whole = std::fs::read(&place.path).unwrap();
    let mut state = 7_u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut moved = 0;
    for round in 0..24 {
        for file in std::fs::read_dir(folder.path()).unwrap() {
            std::fs::remove_file(file.unwrap().path()).unwrap();
        }
        std::fs::write(&place.path, scratched(&whole, &mut random)).unwrap();
        let saved = match save_run(&place, "new") {
            Ok(saved) => saved,
            // The version in the header was hit: the file may be of any format.
            Err(HistoryError::Newer { .. } | HistoryError::Foreign { .. }) => continue,
            Err(error) => panic!("round {round}: {error}"),
        };
        // Whatever was hit: the run that was reported as saved is listed, found and whole.
        let history = open(&place);
        let listing = history
            .list(&Filter::default())
            .unwrap_or_else(|error| panic!("round {round}: {error}"));
        let is_listed = listing.runs.iter().any(|run| run.run_id == "new");
        assert!(is_listed, "round {round}");
        assert!(history.get("new").unwrap().is_some(), "round {round}");
        let (runs, unreadable) = (listing.runs.len(), listing.unreadable.len());
        if saved.moved.is_some() {
            assert_eq!((runs, unreadable), (1, 0), "round {round}");
            moved += 1;
        } else {
            // What was hit lies inside one run, or where nothing is.
            assert!(
                runs + unreadable == 1 + RUNS && unreadable <= 1,
                "round {round}"
            );
        }
        assert_eq!(
            save_run(&place, "next").unwrap().moved,
            None,
            "round {round}"
        );
    }
    assert!(moved > 8, "{moved}");
}

/// The file of the same name with something behind it.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

/// First bytes of a log and of its index.
const LOG: &[u8] = b"\x37\x7f\x06\x82 a log";
const MEMORY: &[u8] = &3_007_000_u32.to_ne_bytes();

#[test]
fn the_log_of_a_damaged_history_goes_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    save_run(&place, "old").unwrap();
    std::fs::write(&place.path, "rubbish ".repeat(100)).unwrap();
    std::fs::write(beside(&place.path, "-wal"), LOG).unwrap();
    std::fs::write(beside(&place.path, "-shm"), MEMORY).unwrap();
    let moved = save_run(&place, "new").unwrap().moved.unwrap().path;
    assert_eq!(std::fs::read(beside(&moved, "-wal")).unwrap(), LOG);
    assert!(beside(&moved, "-shm").exists());
    assert_eq!(ids(&place), ["new"]);
    assert_eq!(integrity(&place), "ok");
}

#[test]
fn only_one_of_many_moves_a_damaged_history() {
    for _ in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        save_run(&place, "old").unwrap();
        std::fs::write(&place.path, "rubbish ".repeat(1000)).unwrap();
        let moved: usize = std::thread::scope(|scope| {
            let place = &place;
            let saver = |n: u32| scope.spawn(move || save_run(place, &n.to_string()).unwrap());
            let savers: Vec<_> = (0..8).map(saver).collect();
            let saved = savers.into_iter().map(|saver| saver.join().unwrap());
            saved.filter(|saved| saved.moved.is_some()).count()
        });
        assert_eq!((moved, moved_histories(folder.path()).len()), (1, 1));
        assert_eq!(ids(&place).len(), 8);
    }
}

#[test]
fn file_moved_while_a_save_waits_is_made_anew() {
    for content in ["rubbish ".repeat(1000), String::new()] {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        std::fs::write(&place.path, content).unwrap();
        let lock = beside(&place.path, ".lock");
        std::fs::write(&lock, "diskproof history\n").unwrap();
        let lock = File::open(lock).unwrap();
        lock.lock().unwrap();
        std::thread::scope(|scope| {
            let saver = scope.spawn(|| save_run(&place, "late"));
            // Long enough for the saver to have found the file and to wait for the lock; where it
            // is slower, less is tested and nothing fails.
            std::thread::sleep(Duration::from_millis(300));
            std::fs::rename(&place.path, folder.path().join("elsewhere")).unwrap();
            lock.unlock().unwrap();
            assert_eq!(saver.join().unwrap().unwrap().moved, None);
        });
        assert_eq!(ids(&place), ["late"]);
    }
}

#[test]
fn history_refuses_foreign_files_and_leaves_no_lock() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("places.db");
    rusqlite::Connection::open(&database)
        .unwrap()
        .execute_batch("CREATE TABLE bookmarks (url TEXT); INSERT INTO bookmarks VALUES ('x');")
        .unwrap();
    let mut broken = std::fs::read(&database).unwrap();
    broken[100..].fill(0xa5);
    std::fs::write(folder.path().join("broken.db"), broken).unwrap();
    let text = "remember the milk ".repeat(100);
    for name in ["notes.txt", "thumbs.db", "mail.sqlite", "data.sqlite3"] {
        std::fs::write(folder.path().join(name), &text).unwrap();
    }
    let content = || contents(folder.path());
    let before = content();
    assert_eq!(before.len(), 6);
    for path in before.keys() {
        let place = place_of_file(path);
        let error = save_run(&place, "a").unwrap_err();
        assert!(matches!(error, HistoryError::Foreign { .. }), "{error}");
        assert!(History::open(&place).is_err());
        assert!(content() == before, "{}", path.display());
    }
    for path in ["/dev/null", "/"] {
        let refused = save_run(&place_of_file(path), "a");
        assert!(
            matches!(refused, Err(HistoryError::NotAFile { .. })),
            "{path}"
        );
    }
    assert_eq!(moved_histories(folder.path()).len(), 0);
}

#[test]
fn history_refuses_dangling_symlink_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    std::os::unix::fs::symlink(folder.path().join("nowhere.db"), &place.path).unwrap();
    for error in errors(&place) {
        assert!(
            matches!(error, HistoryError::DanglingLink { .. }),
            "{error}"
        );
        assert!(error.to_string().contains("nowhere.db"), "{error}");
    }
    let names = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 1, "neither a lock nor the link's target is made");
    save_run(&place_of_file(folder.path().join("nowhere.db")), "b").unwrap();
    save_run(&place, "a").unwrap();
    assert_eq!(ids(&place), ["a", "b"]);
}

/// Of saving and of reading.
fn errors(place: &HistoryPlace) -> [HistoryError; 2] {
    [
        save_run(place, "a").unwrap_err(),
        History::open(place).unwrap_err(),
    ]
}

/// Every file in a folder with its content.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect()
}

/// Neither saving nor reading nor the check before a run touches a file here.
fn assert_refused(place: &HistoryPlace, named: &Path) {
    let folder = place.path.parent().unwrap();
    let before = contents(folder);
    for (what, refused) in [
        ("save", save_run(place, "a").map(drop)),
        ("check", diskproof_history::refuse_foreign(place)),
        ("read", History::open(place).map(drop)),
    ] {
        match refused {
            Err(HistoryError::NotOurs { path, .. } | HistoryError::Foreign(path)) => {
                assert_eq!(path, named, "{what}");
            }
            Ok(()) if what == "read" && !place.path.exists() => {}
            other => panic!("{what} {}: {other:?}", named.display()),
        }
        assert!(contents(folder) == before, "{what} {}", named.display());
    }
}

#[test]
fn history_never_touches_files_that_it_did_not_make() {
    for suffix in [".lock", "-wal", "-shm", "-journal"] {
        for is_there in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let place = place(folder.path());
            if is_there {
                save_run(&place, "old").unwrap();
            }
            let side = beside(&place.path, suffix);
            std::fs::write(&side, "version = 4\n".repeat(100)).unwrap();
            assert_refused(&place, &side);
            // A file of this name that holds nothing else may be another program's log.
            if !is_there && suffix == "-wal" {
                std::fs::write(&side, LOG).unwrap();
                assert_refused(&place, &side);
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let empty = place(folder.path());
    std::fs::write(&empty.path, "").unwrap();
    assert_refused(&empty, &empty.path);
    // An empty lock file may be that of a history whose maker was killed: it stays as it is.
    std::fs::remove_file(&empty.path).unwrap();
    let lock = folder.path().join("history.db.lock");
    std::fs::write(&lock, "").unwrap();
    save_run(&empty, "a").unwrap();
    assert_eq!(std::fs::read(&lock).unwrap(), b"");
}

#[test]
fn history_refuses_links_and_files_of_others() {
    for suffix in ["", ".lock", "-wal", "-journal"] {
        let outside = tempfile::tempdir().unwrap();
        let precious = outside.path().join("precious");
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        let side = beside(&place.path, suffix);
        // What SQLite would take for its own, and what is in a lock file of ours.
        for content in [&b"diskproof history\n"[..], LOG, b""] {
            std::fs::write(&precious, content).unwrap();
            std::fs::hard_link(&precious, &side).unwrap();
            assert_refused(&place, &side);
            std::fs::remove_file(&side).unwrap();
            if suffix.is_empty() {
                continue;
            }
            std::os::unix::fs::symlink(&precious, &side).unwrap();
            assert_refused(&place, &side);
            std::fs::remove_file(&side).unwrap();
            assert_eq!(std::fs::read(&precious).unwrap(), content);
        }
    }
    if !can_run("history_refuses_links_and_files_of_others", &[]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let own = place(folder.path());
    save_run(&own, "a").unwrap();
    let link = place_of_file(folder.path().join("link.db"));
    std::os::unix::fs::symlink(&own.path, &link.path).unwrap();
    assert_eq!(ids(&link), ["a"]);
    std::os::unix::fs::lchown(&link.path, Some(65534), None).unwrap();
    assert_refused(&link, &link.path);
    std::os::unix::fs::chown(&own.path, Some(65534), None).unwrap();
    assert_refused(&own, &own.path);
}

#[test]
fn history_without_its_lock_file_is_still_recognized() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    save_run(&place, "old").unwrap();
    let lock = beside(&place.path, ".lock");
    std::fs::remove_file(&lock).unwrap();
    // A reader puts the mark back, and the destroyed file counts as ours again.
    assert_eq!(ids(&place), ["old"]);
    std::fs::write(&place.path, "rubbish ".repeat(1000)).unwrap();
    assert!(save_run(&place, "new").unwrap().moved.is_some());
    // Without both the mark and the header nothing proves that the file is ours.
    std::fs::write(&place.path, "rubbish ".repeat(1000)).unwrap();
    std::fs::remove_file(&lock).unwrap();
    let refused = save_run(&place, "newer");
    assert!(matches!(refused, Err(HistoryError::Foreign { .. })));
}

#[test]
fn a_newer_history_is_refused_and_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    save_run(&place, "old").unwrap();
    rusqlite::Connection::open(&place.path)
        .unwrap()
        .pragma_update(None, "user_version", 999)
        .unwrap();
    let before = std::fs::read(&place.path).unwrap();
    // Also before a run.
    let early = diskproof_history::refuse_foreign(&place).unwrap_err();
    for error in errors(&place).into_iter().chain([early]) {
        assert!(
            matches!(error, HistoryError::Newer { found: 999, .. }) && error.is_refusal(),
            "{error}"
        );
    }
    assert!(std::fs::read(&place.path).unwrap() == before);
    assert_eq!(moved_histories(folder.path()).len(), 0);
}

#[test]
fn a_lock_is_waited_for_and_never_taken_for_damage() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    save_run(&place, "a").unwrap();
    let mut other = rusqlite::Connection::open(&place.path).unwrap();
    let held = other
        .transaction_with_behavior(rusqlite::TransactionBehavior::Exclusive)
        .unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| save_run(&place, "b").unwrap());
        std::thread::sleep(Duration::from_millis(300));
        held.rollback().unwrap();
        assert_eq!(waiting.join().unwrap().outcome, SaveOutcome::Added);
    });
    assert_eq!(
        (ids(&place).len(), moved_histories(folder.path()).len()),
        (2, 0)
    );
}

/// Saves until there is no more room; the ids that were reported.
fn fill(place: &HistoryPlace) -> Vec<String> {
    let mut saved = Vec::new();
    loop {
        let id = format!("run{}", saved.len());
        match save_run(place, &id) {
            Ok(_) => saved.push(id),
            Err(error) => {
                assert!(matches!(error, HistoryError::Full { .. }), "{error:?}");
                return saved;
            }
        }
    }
}

fn survives_a_full_disk(root: &Path, reserve_bytes: usize) {
    let folder = root.join("place");
    std::fs::create_dir(&folder).unwrap();
    let place = place(&folder);
    let fillers = [root.join("filler"), root.join("more")];
    let reserve = root.join("reserve");
    std::fs::write(&reserve, vec![1; reserve_bytes]).unwrap();
    save_run(&place, "first").unwrap();
    let mut saved = fill(&place);
    saved.push("first".to_owned());
    saved.sort();
    assert_eq!(
        (ids(&place), moved_histories(&folder).len()),
        (saved.clone(), 0)
    );
    // Another program fills the disk to the last byte.
    for filler in &fillers {
        drop(std::fs::write(filler, vec![1; 64 << 20]));
        // ext4 gives freed blocks away after the next commit of its journal.
        File::open(root).unwrap().sync_all().unwrap();
    }
    let refused = save_run(&place, "more");
    assert!(matches!(refused, Err(HistoryError::Full { .. })));
    assert_eq!(ids(&place), saved);
    let files = fillers.iter().chain([&reserve]);
    files.for_each(|file| std::fs::remove_file(file).unwrap());
    // Room can be made.
    let half = &saved[..saved.len() / 2];
    assert_eq!(open(&place).delete(half).unwrap(), half.len());
    save_run(&place, "more").unwrap();
    assert_eq!(
        (integrity(&place).as_str(), moved_histories(&folder).len()),
        ("ok", 0)
    );
}

#[test]
fn a_full_disk_costs_no_saved_run() {
    if !can_run("a_full_disk_costs_no_saved_run", &["losetup", "mkfs.ext4"]) {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let memory = Mount::new("tmpfs", "tmpfs", &folder.path().join("tmpfs"), "size=2M");
    survives_a_full_disk(&memory.point, 512 << 10);
    let disk = Disk::new("ext4", 8 << 20, "defaults");
    survives_a_full_disk(disk.path(), 4 << 20);
}

#[test]
fn a_read_only_filesystem_can_be_read() {
    if !can_run("a_read_only_filesystem_can_be_read", &["mount"]) {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let memory = Mount::new("tmpfs", "tmpfs", &folder.path().join("a place"), "size=4M");
    let place = place(&memory.point);
    save_run(&place, "a").unwrap();
    run(
        "mount",
        &["-o", "remount,ro", memory.point.to_str().unwrap()],
    );
    assert_eq!(ids(&place), ["a"]);
    let error = save_run(&place, "b").unwrap_err();
    use HistoryError::{ReadOnly, Unreachable};
    assert!(
        matches!(error, Unreachable { .. } | ReadOnly { .. }),
        "{error}"
    );
    assert!(open(&place).delete(&["a".to_owned()]).is_err());
    assert_eq!(ids(&place), ["a"]);
}

#[test]
fn a_failing_disk_is_not_taken_for_a_damaged_history() {
    let name = "a_failing_disk_is_not_taken_for_a_damaged_history";
    if !can_run(name, &["losetup", "mkfs.ext4", "fusermount3"]) {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let spec = diskproof_simdisk::spec::parse("eio-after=24MB").unwrap();
    let disk =
        diskproof_simdisk::SimDisk::serve(spec, 16 << 20, &folder.path().join("disk")).unwrap();
    let device = Loop::over(disk.path(), &[]);
    let node = device.node.to_str().unwrap();
    run(
        "mkfs.ext4",
        &["-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", node],
    );
    let mount = Mount::new("ext4", node, &folder.path().join("mnt"), "errors=continue");
    let place = place(&mount.point);
    let failed = (0..10_000)
        .find_map(|n| save_run(&place, &format!("run{n}")).err())
        .expect("the disk fails at last");
    assert!(!matches!(failed, HistoryError::Damaged { .. }), "{failed}");
    assert_eq!(moved_histories(&mount.point).len(), 0);
}
