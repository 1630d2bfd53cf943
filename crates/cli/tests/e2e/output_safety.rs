//! What no output may cost: a file that the same command reads, and a file behind a symlink of
//! another user. And when an output that cannot be written is found out: before the run. Every verb
//! and every drop-in with an output has its rows here.

use crate::program::{Ran, content_hash, names, needs, program, random_file};
use clap::CommandFactory as _;
use diskproof::commands::Args;
use diskproof_compat::drop_ins;
use diskproof_simdisk::testbed::{Loop, Mount, TempDir, place, run};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown, symlink};
use std::path::Path;
use std::process::Stdio;

/// Every file below a directory with a hash of its content.
fn contents(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for name in names(folder) {
        let path = folder.join(&name);
        if path.is_file() {
            found.insert(name, content_hash(&path));
        }
    }
    found
}

fn ran_in(place: &Path, line: &str) -> Ran {
    let mut command = program(line.split_whitespace());
    command.current_dir(place);
    Ran::of(command)
}

/// The verbs that write files, by the flag or operand that names one. The other verbs print.
fn verbs_with_output() -> BTreeSet<String> {
    let command = Args::command();
    let mut verbs = BTreeSet::new();
    for verb in command.get_subcommands() {
        if verb
            .get_arguments()
            .any(|one| one.get_long() == Some("output"))
        {
            verbs.insert(verb.get_name().to_owned());
        }
    }
    verbs
}

/// Options of drop-ins that name a file. Only the first two are outputs: dd's name targets, and the
/// others the directory of an unnamed scratch file.
const FILE_OPTIONS: [(&str, &str); 6] = [
    ("fio", "output"),
    ("zcav", "-l"),
    ("dd", "if="),
    ("dd", "of="),
    ("pg_test_fsync", "filename"),
    ("iozone", "-f"),
];

/// Command lines whose output is one of their inputs.
const INPUTS_AS_OUTPUTS: &[&str] = &[
    // The target.
    "run data.json --rw randread --time 1s -o data.json --no-history",
    "run data.json --rw randread --time 1s -o hard.json --no-history",
    "run data.json --rw randread --time 1s --html page.html --no-history",
    "check data.json --time 1s -o data.json --no-history",
    "curve data.json -o data.json --no-history",
    "ping data.json -c 1 -o data.json --no-history",
    "sweep data.json --time 1s -o data.json --no-history",
    "load data.json --rw randread --time 20s -o data.json --no-history",
    "sustain data.json --time 1m -o data.json --no-history",
    "commit . --time 1s --history h.json -o h.json",
    "info data.json -o data.json",
    "compare data.bin t_bw.1.log --time 1s -o bin.json",
    "as -o data.json --no-history dd if=data.json of=/dev/null",
    "as -o data.json --no-history ioping -c 1 data.json",
    "as --no-history zcav -b 1 -l data.bin data.bin",
    "as --no-history zcav -b 1 -l zcav.log data.bin",
    "as --no-history fio --name=a --size=1m --filename=data.bin --output=data.bin",
    "as --no-history fio --name=a --size=1m --filename=t_bw.1.log --write_bw_log=t",
    "as --no-history fio --name=a --size=1m --filename=t_lat.1.log --write_lat_log=t",
    "as --no-history fio --name=a --size=1m --filename=data.bin --write_iolog=data.bin",
    "as --no-history fio --name=a --size=1m --rw=write --filename=new.bin --output=new.bin",
    "as --no-history fio --name=c --size=1m --filename=c.prerun.txt --exec_prerun=true",
    "as --no-history fio --name=c --size=1m --filename=c.prerun.txt --rw=write --exec_prerun=id",
    // The job, the plan, the profile, the record.
    "as --no-history fio --output=j.fio j.fio",
    "as --no-history fio --write_iops_log=j j_iops.1.log",
    "run j.fio -o job.json --no-history",
    "run plan.toml -o plan.json --no-history",
    "check . --for profile.toml --time 1s -o profile.json --no-history",
    "run r.json -o r.json --no-history",
    "show r.json -o r.json",
    "export r.json r.json",
    "export r.json -o hard-r.json",
    "compare r.json x.json -o r.json",
    "merge r.json x.json -o r.json",
    "merge . -o x.json",
    "compare r.json x.json -o x.json",
    // The history, its lock, and what SQLite puts beside it.
    "run . --rw randread --time 1s --size 16M --history h.json -o h.json",
    "run . --rw randread --time 1s --size 16M --history h.json -o lock.json",
    "run . --rw randread --time 1s --size 16M --history h.json -o wal.json",
    "run . --rw randread --time 1s --size 16M --history n.json -o n.json",
    "files . --time 1s --history h.json -o h.json",
    "export r.json --history h.json h.json",
    "show r.json --history h.json -o h.json",
    "compare r.json x.json --history h.json -o h.json",
    "watch -c 1 --record --history h.json -o h.json",
    // What a connection to a server reads, before it is made.
    "watch -c 1 --postgres passfile=data.json -o data.json",
    "watch -c 1 --postgres sslkey=data.json -o data.json",
    "watch -c 1 --postgres sslrootcert=data.json -o data.json",
    "as --history h.json fio --name=a --size=1m --filename=data.bin --output=h.json",
    "as --history h.json zcav -b 1 -l h.json data.bin",
];

/// A directory with every kind of input.
fn place_with_inputs() -> TempDir {
    let place = place();
    let at = |name: &str| place.path().join(name);
    for name in [
        "data.json",
        "data.bin",
        "t_bw.1.log",
        "t_lat.1.log",
        "c.prerun.txt",
    ] {
        random_file(&at(name), 2 << 20);
    }
    let job = "[a]\nfilename=data.bin\nrw=read\nsize=1m\n";
    for name in ["j.fio", "j_iops.1.log"] {
        std::fs::write(at(name), job).unwrap();
    }
    let plan = "[[workload]]\nname = \"r\"\nrw = \"randread\"\ntime = \"1s\"\n";
    std::fs::write(at("plan.toml"), format!("targets = [\"data.bin\"]\n{plan}")).unwrap();
    let limit = "[[limit]]\nname = \"x\"\nsource = \"a test\"\nexpect = \"r.iops>=1\"\n";
    std::fs::write(
        at("profile.toml"),
        format!("size = \"64MiB\"\n{plan}{limit}"),
    )
    .unwrap();
    let measured = ran_in(
        place.path(),
        "run data.bin --rw randread --time 1s --history h.json -o r.json -o x.json",
    );
    measured.exits(0);
    for (link, target) in [
        ("bin.json", "data.bin"),
        ("page.html", "data.json"),
        ("zcav.log", "data.bin"),
        ("job.json", "j.fio"),
        ("plan.json", "plan.toml"),
        ("profile.json", "profile.toml"),
        ("lock.json", "h.json.lock"),
        ("wal.json", "h.json-wal"),
    ] {
        symlink(target, at(link)).unwrap();
    }
    std::fs::hard_link(at("data.json"), at("hard.json")).unwrap();
    std::fs::hard_link(at("r.json"), at("hard-r.json")).unwrap();
    place
}

#[test]
fn output_that_is_an_input_is_refused_by_every_front_end() {
    let place = place_with_inputs();
    let before = contents(place.path());
    for line in INPUTS_AS_OUTPUTS {
        let ran = ran_in(place.path(), line);
        let usage = if line.starts_with("as ") { 1 } else { 2 };
        assert_eq!(ran.code, Some(usage), "{ran}");
        ran.tells("would be overwritten");
        assert_eq!(contents(place.path()), before, "{ran}");
    }
}

/// Command lines whose output is the image behind their target; `LOOP` stands for the device, and
/// `mounted` is a filesystem on it.
const IMAGES_AS_OUTPUTS: &[&str] = &[
    "run LOOP --rw read --time 200ms -o image.json --no-history",
    "run mounted --rw read --size 1M --time 200ms -o image.json --no-history",
    "run mounted/file --rw read --time 200ms -o image.json --no-history",
    "run LOOP --rw read --time 200ms -o link.json --no-history",
    "check LOOP --time 1s -o image.json --no-history",
    "curve LOOP -o image.json --no-history",
    "ping LOOP -c 1 -o image.json --no-history",
    "sweep LOOP --time 1s -o image.json --no-history",
    "files mounted -o image.json --no-history",
    "commit mounted --time 1s -o image.json --no-history",
    "accept LOOP --destroy NAME -o image.json --no-history",
    "info LOOP -o image.json",
    "compare LOOP data.bin --time 1s -o image.json",
    "watch LOOP -c 1 -o image.json",
    "watch NAME -c 1 -o image.json",
    "as -o image.json --no-history ioping -c 1 LOOP",
    "as --no-history zcav -b 1 -l image.json LOOP",
    "as --no-history fio --name=a --rw=read --filename=LOOP --size=1M --output=image.json",
    "as --no-history fio --name=a --rw=read --filename=LOOP --size=1M --write_bw_log=image",
    "as --no-history fio --name=a --rw=read --filename=LOOP --size=1M --write_iolog=image.json",
];

#[test]
fn output_is_never_the_image_that_the_target_lies_in() {
    needs!("losetup", "mkfs.ext4", "mount");
    let place = place_with_inputs();
    let at = |name: &str| place.path().join(name);
    let device = Loop::sparse(&at("image.json"), 32 << 20, &[]);
    let node = device.node.to_str().unwrap();
    run("mkfs.ext4", &["-q", node]);
    let mounted = Mount::new("ext4", node, &at("mounted"), "noatime");
    random_file(&at("mounted/file"), 2 << 20);
    // By another name too.
    for name in ["link.json", "image_bw.1.log"] {
        std::fs::hard_link(at("image.json"), at(name)).unwrap();
    }
    let names_before = names(place.path());
    for line in IMAGES_AS_OUTPUTS {
        let before = inode(&at("image.json"));
        let line = line.replace("LOOP", node).replace("NAME", device.name());
        let ran = ran_in(place.path(), &line);
        let usage = if line.starts_with("as ") { 1 } else { 2 };
        assert_eq!(ran.code, Some(usage), "{ran}");
        ran.tells("the target lies in this file");
        assert_eq!(inode(&at("image.json")), before, "{ran}");
        assert_eq!(names(place.path()), names_before, "{ran}");
    }
    drop(mounted);
}

fn inode(path: &Path) -> (u64, u64) {
    let found = std::fs::metadata(path).unwrap();
    (found.ino(), found.len())
}

/// Command lines that name a file for two outputs.
const OUTPUTS_AS_OUTPUTS: &[&str] = &[
    "run data.bin --rw randread --time 1s --no-history -o new.json -o ./new.json",
    "run data.bin --rw randread --time 1s --no-history -o new.html --html new.html",
    "as --no-history fio --name=a --size=1m --filename=data.bin --output=l_bw.1.log \
     --write_bw_log=l",
    "as --no-history fio --name=a --size=1m --filename=data.bin --output=./l_bw.1.log \
     --write_bw_log=l",
    "as --no-history fio --name=a --size=1m --filename=data.bin --output=./l --write_iolog=l",
    "as --no-history -o new.json fio --name=a --size=1m --filename=data.bin --output=new.json",
    "as --no-history fio --name=n --size=1m --filename=data.bin --output=n.postrun.txt \
     --exec_postrun=id",
    "as --no-history -o new.json zcav -b 1 -l new.json data.bin",
    "as --no-history zcav -b 1 -l new.log data.bin -l new.log t_bw.1.log",
];

#[test]
fn output_is_never_another_output() {
    let place = place_with_inputs();
    let before = contents(place.path());
    for line in OUTPUTS_AS_OUTPUTS {
        let ran = ran_in(place.path(), line);
        let usage = if line.starts_with("as ") { 1 } else { 2 };
        assert_eq!(ran.code, Some(usage), "{ran}");
        assert_eq!(contents(place.path()), before, "{ran}");
    }
}

#[test]
fn every_front_end_with_an_output_has_its_row() {
    // A file is no target of every verb.
    let rows: Vec<Vec<&str>> = INPUTS_AS_OUTPUTS
        .iter()
        .chain(IMAGES_AS_OUTPUTS)
        .map(|line| line.split_whitespace().collect())
        .collect();
    for verb in verbs_with_output() {
        let has_row = rows.iter().any(|row| row[0] == verb);
        assert!(has_row, "INPUTS_AS_OUTPUTS has no line of {verb}");
    }
    for tool in drop_ins() {
        for option in tool.options {
            let names_file = ["file", "log", "path"]
                .iter()
                .any(|word| option.value.to_lowercase().contains(word));
            let writes = option.help.contains("rite") && names_file;
            let name = if option.long.is_empty() {
                option.short
            } else {
                option.long
            };
            let is_known = FILE_OPTIONS
                .iter()
                .any(|(known, named)| *known == tool.name && *named == name);
            let is_carried = option.treatment == diskproof_compat::Treatment::Carried;
            assert!(!(writes && is_carried) || is_known, "{} {name}", tool.name);
        }
    }
}

#[test]
fn output_of_the_shell_is_no_input_either() {
    let place = place_with_inputs();
    let before = contents(place.path());
    for line in [
        "run data.bin --rw randread --time 1s --no-history",
        "as --no-history fio --name=a --size=1m --filename=data.bin",
        "as --no-history zcav -b 1 data.bin",
    ] {
        let stdout = std::fs::File::options()
            .append(true)
            .open(place.path().join("data.bin"))
            .unwrap();
        let mut command = program(line.split_whitespace());
        command.current_dir(place.path()).stdout(stdout);
        let status = command.stderr(Stdio::null()).status().unwrap();
        assert!(!status.success(), "{line}");
        assert_eq!(contents(place.path()), before, "{line}");
    }
}

/// Command lines that write below `evil`, a symlink of another user to a directory of root's; each
/// with its exit code.
const BEHIND_FOREIGN_LINK: &[(&str, i32)] = &[
    (
        "run data.bin --rw randread --time 1s --no-history -o evil/victim.json",
        2,
    ),
    (
        "run data.bin --rw randread --time 1s --no-history --html evil/victim.html",
        2,
    ),
    (
        "run data.bin --rw randread --time 1s --history evil/victim.json",
        3,
    ),
    (
        "run data.bin --rw randread --time 1s --history evil/new.db",
        3,
    ),
    (
        "run evil/victim.json --rw randwrite --time 1s --no-history --overwrite",
        3,
    ),
    (
        "check data.bin --time 1s --no-history -o evil/victim.json",
        2,
    ),
    ("curve data.bin --no-history -o evil/victim.json", 2),
    ("ping data.bin -c 1 --no-history -o evil/victim.json", 2),
    (
        "sweep data.bin --time 1s --no-history -o evil/victim.json",
        2,
    ),
    ("commit . --time 1s --no-history -o evil/victim.json", 2),
    (
        "load data.bin --rw randread --time 20s --no-history -o evil/victim.json",
        2,
    ),
    (
        "sustain data.bin --time 1m --no-history -o evil/victim.json",
        2,
    ),
    (
        "accept data.bin --destroy none --no-history -o evil/victim.json",
        2,
    ),
    ("files . --no-history -o evil/victim.json", 2),
    ("info data.bin -o evil/victim.json", 2),
    (
        "compare data.bin t_bw.1.log --time 1s -o evil/victim.json",
        2,
    ),
    ("compare r.json x.json -o evil/victim.json", 2),
    ("merge r.json x.json -o evil/victim.json", 2),
    ("show r.json -o evil/victim.json", 2),
    ("export r.json evil/victim.json", 2),
    ("watch -c 1 -o evil/victim.json", 2),
    ("watch -c 1 --record --history evil/victim.json", 3),
    ("history import r.json --history evil/new.db", 3),
    ("man evil", 3),
    ("as --link evil", 3),
    ("powercut serve --listen 127.0.0.1:0 --log evil", 3),
    (
        "as --no-history -o evil/victim.json dd if=data.bin of=/dev/null",
        1,
    ),
    ("as --no-history zcav -b 1 -l evil/victim.json data.bin", 1),
    (
        "as --no-history fio --name=a --size=1m --filename=data.bin --output=evil/victim.json",
        1,
    ),
    (
        "as --no-history fio --name=evil/v --size=1m --filename=data.bin --exec_prerun=id",
        1,
    ),
    (
        "as --no-history fio --name=a --size=1m --filename=data.bin --write_bw_log=evil/v",
        1,
    ),
    (
        "as --no-history fio --name=a --size=1m --filename=data.bin --write_iolog=evil/v",
        1,
    ),
    (
        "as --no-history dd if=/dev/zero of=evil/victim.json bs=1M count=1",
        1,
    ),
    (
        "as --no-history dd if=/dev/zero of=evil/new bs=1M count=1",
        1,
    ),
    (
        "as --no-history fio --name=a --size=1m --rw=write --filename=evil/new",
        1,
    ),
];

#[test]
fn no_output_goes_through_the_directory_link_of_another_user() {
    needs!();
    let place = place_with_inputs();
    let secret = self::place();
    std::fs::set_permissions(secret.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::write(secret.path().join("victim.json"), "{}").unwrap();
    std::fs::write(secret.path().join("victim.html"), "<p>").unwrap();
    run("chmod", &["1777", place.path().to_str().unwrap()]);
    let evil = place.path().join("evil");
    symlink(secret.path(), &evil).unwrap();
    lchown(&evil, Some(65534), Some(65534)).unwrap();
    let before = (contents(place.path()), contents(secret.path()));
    for (line, code) in BEHIND_FOREIGN_LINK {
        let ran = ran_in(place.path(), line);
        assert_eq!(ran.code, Some(*code), "{ran}");
        let after = (contents(place.path()), contents(secret.path()));
        assert_eq!(after, before, "{ran}");
        assert_eq!(
            names(secret.path()),
            ["victim.html", "victim.json"],
            "{ran}"
        );
    }
    for verb in verbs_with_output() {
        let has_row = BEHIND_FOREIGN_LINK
            .iter()
            .any(|(line, _)| line.split(' ').next() == Some(&verb));
        assert!(has_row, "BEHIND_FOREIGN_LINK has no line of {verb}");
    }
}

#[test]
fn tools_find_out_before_the_run_that_an_output_cannot_be_written() {
    let place = place_with_inputs();
    let before = contents(place.path());
    let fio = "fio --name=a --size=1m --time_based --runtime=600 --filename=data.bin";
    for (line, first) in [
        (
            format!("{fio} --output=missing/o"),
            "fio: output file open error: No such file or directory\n",
        ),
        (
            format!("{fio} --output=."),
            "fio: output file open error: Is a directory\n",
        ),
        (
            format!("{fio} --write_bw_log=missing/l"),
            "fopen log: No such file or directory\n",
        ),
        (
            "zcav -b 1 -l missing/z data.bin".to_owned(),
            "Can't open missing/z\n",
        ),
    ] {
        let ran = ran_in(place.path(), &format!("as --no-history {line}"));
        ran.exits(1).shows_nothing().tells(first);
        assert_eq!(contents(place.path()), before, "{ran}");
    }
}

#[test]
fn saved_files_are_noted_with_their_size() {
    let place = place_with_inputs();
    let written = |line: &str| {
        let ran = ran_in(place.path(), line);
        ran.exits(0);
        let name = "out.html";
        let bytes = std::fs::metadata(place.path().join(name)).unwrap().len();
        let size = diskproof_model::units::format_file_size(bytes);
        let note = format!("wrote {name} ({size})");
        let has_note = ran.err.contains(&note);
        assert_eq!(has_note, !line.contains("--quiet"), "{ran}");
    };
    written("export r.json out.html");
    written("export r.json out.html --quiet");
    written("show r.json -o out.html");
    written("run data.bin --rw randread --time 1s --no-history -o out.html");
    written("run data.bin --rw randread --time 1s --no-history -o out.html --quiet");
    written("compare r.json x.json -o out.html");
}
