//! Outputs stay where they belong, whenever another process exchanges the path.

use super::name::{NAME_BYTES_MAX, temporary_path};
use super::race::{act_before, was_reached};
use super::*;
use rustix::process::geteuid;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt, chown, lchown, symlink};

/// A directory whose files have numbers that no input of another test had: tmpfs gives none a
/// second time.
fn unused_directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

/// More points of an exchange than a save has.
const POINTS_MAX: usize = 20;

fn save(path: &Path) -> io::Result<u64> {
    save_file(&OutputFile {
        path: path.to_owned(),
        write: Box::new(|out| out.write_all(b"new")),
    })
}

#[test]
fn temporary_name_fits_beside_the_longest_name() {
    for length in [1, 240, 241, 255] {
        let path = Path::new("/folder").join("n".repeat(length));
        let temporary = temporary_path(&path);
        assert_eq!(temporary.parent(), path.parent());
        assert!(
            temporary.file_name().unwrap().len() <= NAME_BYTES_MAX,
            "{length}"
        );
    }
}

#[test]
fn file_of_a_killed_process_with_this_id_does_not_matter() {
    let place = tempfile::tempdir().unwrap();
    let left = format!(".out.json.{}.unfinished", std::process::id());
    std::fs::write(place.path().join(&left), "left").unwrap();
    save(&place.path().join("out.json")).unwrap();
    let content = std::fs::read_to_string(place.path().join("out.json")).unwrap();
    assert_eq!(content, "new");
    let content = std::fs::read_to_string(place.path().join(&left)).unwrap();
    assert_eq!(content, "left");
}

#[test]
fn block_devices_are_refused_as_output() {
    let Some(device) = ["/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/loop0"]
        .map(Path::new)
        .into_iter()
        .find(|path| path.exists())
    else {
        return;
    };
    let error = OutputSink::find(device).unwrap_err();
    assert!(error.errno.is_none() && error.why.contains("block device"));
}

/// What the path may be before and after the exchange.
#[derive(Debug, Clone, Copy)]
enum Thing {
    Nothing,
    File,
    /// Of this user, to a file of this user.
    Link,
    /// Of another user, to the file that must not change.
    Trap,
    /// Of another user, to a name that does not exist.
    DanglingTrap,
}

fn put(thing: Thing, folder: &Path, outside: &Path) {
    let path = folder.join("out.json");
    let _ = std::fs::remove_file(&path);
    match thing {
        Thing::Nothing => {}
        Thing::File => std::fs::write(&path, "old").unwrap(),
        Thing::Link => symlink(folder.join("own"), &path).unwrap(),
        Thing::Trap => symlink_of_nobody(&outside.join("precious"), &path),
        Thing::DanglingTrap => symlink_of_nobody(&outside.join("missing"), &path),
    }
}

fn symlink_of_nobody(target: &Path, path: &Path) {
    symlink(target, path).unwrap();
    lchown(path, Some(65534), None).unwrap();
}

#[test]
fn output_never_follows_a_foreign_link_whenever_it_appears() {
    if !geteuid().is_root() {
        eprintln!("SKIPPED: output_never_follows_a_foreign_link_whenever_it_appears: root");
        return;
    }
    // A directory like /tmp, and the home of another user.
    for (mode, owner) in [(0o1777, 0), (0o755, 65534)] {
        never_follows_a_foreign_link(mode, owner);
    }
}

fn never_follows_a_foreign_link(mode: u32, owner: u32) {
    let (outside, shared) = (unused_directory(), unused_directory());
    let precious = outside.path().join("precious");
    std::fs::write(&precious, "precious").unwrap();
    let before = std::fs::metadata(&precious).unwrap().ino();
    std::fs::set_permissions(shared.path(), PermissionsExt::from_mode(mode)).unwrap();
    chown(shared.path(), Some(owner), None).unwrap();
    std::fs::write(shared.path().join("own"), "own").unwrap();
    let things = [Thing::Nothing, Thing::File, Thing::Link];
    let traps = [Thing::Trap, Thing::DanglingTrap];
    let pairs = things
        .iter()
        .flat_map(|one| traps.map(|other| (*one, other)));
    for (one, other) in pairs.flat_map(|(one, other)| [(one, other), (other, one)]) {
        let mut steps = 0;
        for step in 1..POINTS_MAX {
            put(one, shared.path(), outside.path());
            let folders = (shared.path().to_owned(), outside.path().to_owned());
            act_before(step, move || put(other, &folders.0, &folders.1));
            let _ = save(&shared.path().join("out.json"));
            if !was_reached() {
                break;
            }
            steps = step;
            let now = std::fs::metadata(&precious).unwrap().ino();
            let content = std::fs::read_to_string(&precious).unwrap();
            assert_eq!(
                (now, content.as_str()),
                (before, "precious"),
                "{one:?} {step}"
            );
            let names = std::fs::read_dir(outside.path()).unwrap().count();
            assert_eq!(names, 1, "{one:?} {other:?} {step}");
        }
        assert!(steps >= 1, "{one:?} {other:?}");
    }
}

#[test]
fn output_stays_in_its_directory_when_that_is_exchanged() {
    for step in 1..POINTS_MAX {
        let place = unused_directory();
        let (folder, trap) = (place.path().join("folder"), place.path().join("trap"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::create_dir(&trap).unwrap();
        std::fs::write(folder.join("out.json"), "old").unwrap();
        std::fs::write(trap.join("out.json"), "precious").unwrap();
        let moved = (folder.clone(), place.path().join("moved"), trap.clone());
        // The first steps look at the path for the first time.
        act_before(step + 2, move || {
            std::fs::rename(&moved.0, &moved.1).unwrap();
            symlink(&moved.2, &moved.0).unwrap();
        });
        let _ = save(&folder.join("out.json"));
        if !was_reached() {
            assert!(step > 2);
            break;
        }
        let content = std::fs::read_to_string(trap.join("out.json")).unwrap();
        assert_eq!(content, "precious", "{step}");
    }
}

#[test]
fn file_in_the_place_of_the_unfinished_one_stays() {
    let place = unused_directory();
    let path = place.path().join("out.json");
    let unfinished = temporary_path(&path);
    for step in 1..POINTS_MAX {
        let _ = std::fs::remove_file(&path);
        let theirs = (unfinished.clone(), place.path().join("theirs"));
        std::fs::write(&theirs.1, "precious").unwrap();
        act_before(step, move || {
            let _ = std::fs::rename(&theirs.1, &theirs.0);
        });
        let _ = save(&path);
        if !was_reached() {
            assert!(step > 2);
            break;
        }
        let content = std::fs::read_to_string(&unfinished).unwrap();
        assert_eq!(content, "precious", "{step}");
        std::fs::remove_file(&unfinished).unwrap();
    }
}

#[test]
fn replaced_output_keeps_owner_and_mode() {
    let place = unused_directory();
    let path = place.path().join("out.json");
    for (mode, owner) in [(0o600, None), (0o444, None), (0o640, Some(65534))] {
        if owner.is_some() && !geteuid().is_root() {
            continue;
        }
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        chown(&path, owner, owner).unwrap();
        let before = std::fs::metadata(&path).unwrap();
        save(&path).unwrap();
        let after = std::fs::metadata(&path).unwrap();
        assert_eq!(after.uid(), before.uid());
        assert_eq!(after.gid(), before.gid());
        assert_eq!(after.mode(), before.mode());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn settings_replace_only_those_of_an_export() {
    let place = unused_directory();
    let file = place.path().join("postgresql.conf");
    save(&file).unwrap();
    let exported = format!(
        "{} /data: run 1.\n",
        diskproof_report::postgresql_conf::SETTINGS_START
    );
    for (content, is_replaced) in [
        (exported.as_str(), true),
        ("", true),
        ("# PostgreSQL configuration file\nport = 5432\n", false),
        ("new", false),
    ] {
        std::fs::write(&file, content).unwrap();
        let sink = OutputSink::find(&file).unwrap();
        assert_eq!(sink.check(Trial::Create).is_ok(), is_replaced, "{content}");
        assert_eq!(save(&file).is_ok(), is_replaced, "{content}");
        if !is_replaced {
            assert_eq!(std::fs::read_to_string(&file).unwrap(), content);
        }
    }
}

/// The directory of a server takes settings that it is going to include, and nothing else.
#[test]
fn output_spares_the_files_of_a_database() {
    let place = unused_directory();
    let tables = place.path().join("data/base/1");
    std::fs::create_dir_all(&tables).unwrap();
    for name in ["data/PG_VERSION", "data/base/1/1259", "old.json"] {
        std::fs::write(place.path().join(name), "old").unwrap();
    }
    for (name, is_written) in [
        ("data/PG_VERSION", false),
        ("data/base/1/1259", false),
        ("data/base/1/new.json", false),
        ("data/conf.d.conf", true),
        ("old.json", true),
        ("new.json", true),
    ] {
        let path = place.path().join(name);
        let before = std::fs::read(&path).ok();
        let checked = OutputSink::find(&path).and_then(|sink| sink.check(Trial::Permission));
        assert_eq!(checked.is_ok(), is_written, "{name}");
        assert_eq!(save(&path).is_ok(), is_written, "{name}");
        if !is_written {
            assert_eq!(std::fs::read(&path).ok(), before, "{name}");
        }
    }
}

/// Also where a program opened the file after the run began.
#[test]
fn writer_is_refused_before_a_run_and_costs_no_result_after_it() {
    let place = unused_directory();
    let file = place.path().join("old.json");
    for (redirection, is_admitted) in [("<", true), ("<>", false)] {
        std::fs::write(&file, "old").unwrap();
        let sink = OutputSink::find(&file).unwrap();
        let mut child = std::process::Command::new("sh")
            .args(["-c", &format!("exec 5{redirection}\"$0\"; echo; read line")])
            .arg(&file)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let output = OutputFile {
            path: file.clone(),
            write: Box::new(|out| out.write_all(b"new")),
        };
        let checked = sink.check(Trial::Create);
        let saved = sink.save(&output.write);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(checked.is_ok(), is_admitted, "{redirection}");
        assert!(saved.is_ok(), "{redirection}");
        let content = std::fs::read_to_string(&file).unwrap();
        assert_eq!(content, "new");
    }
}
