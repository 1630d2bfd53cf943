//! Each command that a page "for users of another tool" recommends is accepted by the program.

use crate::program::{Ran, names, program};
use diskproof_simdisk::testbed::place;
use std::fs::File;
use std::path::Path;

const JOB: &str = "[t]\nrw=randread\nsize=1m\n";

/// The recommended commands of a page: code in the second column of its tables.
fn commands(page: &str) -> Vec<String> {
    let rows = page.lines().filter(|line| line.starts_with("| "));
    rows.filter_map(|row| row.split(" | ").nth(1))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .filter(|code| code.starts_with("diskproof "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn recommended_commands_are_accepted() {
    let place = place();
    let (directory, disk) = (place.path().join("data"), place.path().join("disk"));
    std::fs::create_dir(&directory).unwrap();
    // Closed at once: the gate refuses a file that a process holds open.
    File::create(&disk).unwrap().set_len(2 << 30).unwrap();
    std::fs::write(place.path().join("job.fio"), JOB).unwrap();
    std::fs::write(directory.join("old.dat"), vec![0; 1 << 20]).unwrap();
    let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
    let mut count = 0;
    for entry in std::fs::read_dir(docs).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if !(name.starts_with("for-") && name.ends_with("-users.md")) {
            continue;
        }
        for command in commands(&std::fs::read_to_string(&path).unwrap()) {
            let own = command
                .replace("--destroy SERIAL", "--overwrite")
                .replace("/srv/data", directory.to_str().unwrap())
                .replace("/dev/sdb", disk.to_str().unwrap());
            let mut words: Vec<&str> = own.split_whitespace().skip(1).collect();
            // A pasted command of fio is one of `as fio`.
            if words[..2] == ["run", "fio"] {
                words[0] = "as";
            }
            match words[0] {
                "as" => words.insert(1, "--dry-run"),
                // They measure nothing.
                "info" | "show" | "compare" => {}
                _ => words.push("--dry-run"),
            }
            let ran = Ran::of(program(&words).current_dir(place.path()));
            ran.exits(0);
            count += 1;
        }
    }
    assert!(count >= 30, "{count}");
    assert_eq!(names(&directory), ["old.dat"]);
}
