//! Drop-ins beside the real tools, line by line: the same command line prints lines of the same
//! shape, which is all but what was measured, and ends with the same exit code. The
//! dumps in `crates/compat/tests/frozen` hold the tools that Debian lacks (iops, iozone, pgiosim).

use crate::program::{argv, needs, program_path, random_file};
use crate::real_tools::{both, ran};
use diskproof_simdisk::testbed::{Loop, place};
use std::collections::BTreeSet;
use std::path::Path;

const TIME_UNITS: [&str; 4] = ["ns", "us", "ms", "s"];
/// Units of amounts, and the letters of multiples before other units.
const AMOUNT_UNITS: [&str; 13] = [
    "B", "kB", "MB", "GB", "KiB", "MiB", "GiB", "Kb", "Mb", "k", "M", "G", "m",
];
/// Lines with such a text have no figure that depends on time.
const SAME_FIGURES: [&str; 7] = [
    "records",
    "Number of",
    "files,",
    "total file size",
    "Block size",
    "Prime numbers",
    "Read/Write ratio",
];

/// The line without what was measured: `#` for a number, and for the pluses that stand for one.
fn shape(line: &str) -> String {
    if SAME_FIGURES.iter().any(|text| line.contains(text)) {
        return line.to_owned();
    }
    // What ioping notes at a request depends on its time. That several threads of sysbench differ
    // by an unknown figure (nan) is documented.
    let line = line
        .replace(" (fast)", "")
        .replace(" (slow)", "")
        .replace("/nan", "/0");
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        let word = word_shape(word);
        let follows_number = words.last().is_some_and(|last| last.ends_with('#'));
        match follows_number.then(|| unit_of(&word)).flatten() {
            // A multiple: 7.58 k iops.
            Some("") => {}
            Some(unit) => {
                let behind = word.trim_start_matches(char::is_alphabetic);
                words.push(format!("{unit}{behind}"));
            }
            None => words.push(word),
        }
    }
    // zcav has such a mark before a block that took less than a second.
    let line = words.join(" ");
    line.strip_prefix("##")
        .map_or(line.clone(), |rest| format!("#{rest}"))
}

/// The unit that a word begins with: `t` of times, `B` of amounts, nothing of a multiple.
fn unit_of(word: &str) -> Option<&'static str> {
    let letters = word.find(|one: char| !one.is_alphabetic());
    let unit = &word[..letters.unwrap_or(word.len())];
    match unit {
        "k" | "M" | "G" => Some(""),
        unit if TIME_UNITS.contains(&unit) => Some("t"),
        unit if AMOUNT_UNITS.contains(&unit) => Some("B"),
        _ => None,
    }
}

/// A word with `#` in place of each number and the unit that is joined to it, and one star in place
/// of several.
fn word_shape(word: &str) -> String {
    let mut shape = String::new();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let length = number_length(rest);
        if length > 0 {
            shape.push('#');
            rest = &rest[length..];
            let letters = rest.find(|one: char| !one.is_alphabetic());
            let unit = &rest[..letters.unwrap_or(rest.len())];
            if TIME_UNITS.contains(&unit) || AMOUNT_UNITS.contains(&unit) {
                rest = &rest[unit.len()..];
            }
        } else {
            if first != '*' || !shape.ends_with('*') {
                shape.push(first);
            }
            rest = &rest[first.len_utf8()..];
        }
    }
    shape
}

/// The length of the number, or of the pluses, that a text begins with.
fn number_length(text: &str) -> usize {
    let pluses = text.find(|one| one != '+').unwrap_or(text.len());
    if pluses >= 3 {
        return pluses;
    }
    if !text.starts_with(|one: char| one.is_ascii_digit()) {
        return 0;
    }
    let is_part = |one: char| one.is_ascii_digit() || one == '.';
    let length = text.find(|one| !is_part(one)).unwrap_or(text.len());
    // Of 5.3e-05, too.
    match text[length..].strip_prefix("e-") {
        Some(exponent) if exponent.starts_with(|one: char| one.is_ascii_digit()) => {
            let digits = exponent.find(|one: char| !one.is_ascii_digit());
            length + 2 + digits.unwrap_or(exponent.len())
        }
        _ => length,
    }
}

/// The shapes of the lines that a tool prints. Our own notes, and the line with the name of the
/// program, are none.
fn shapes(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter(|line| !line.starts_with("diskproof: ") && !line.starts_with("sysbench "))
        .map(shape)
        .collect()
}

/// Asserts that a command line prints the same shapes as that of the real tool.
fn assert_same_shapes(line: &str, here: &Path) {
    let (ours, real) = both(line, here);
    assert_eq!(ours.code, real.code, "{line}: {}", ours.err);
    let is_dd = line.starts_with("dd ");
    let [mine, theirs] = [&ours, &real].map(|ran| {
        let text = if is_dd { &ran.err } else { &ran.out };
        shapes(text)
    });
    assert_eq!(mine, theirs, "{line}");
}

/// `data` is a file of 8 MiB.
const IOPING: [&str; 25] = [
    "-c 3 -i 0.01 data",
    "-c 3 -i 0 .",
    "-c 2 -i 0 -q .",
    "-c 3 -i 0 -B .",
    "-c 4 -i 0 -p 2 .",
    "-c 4 -i 0 -q -p 2 .",
    "-c 2 -i 0 -J .",
    "-c 3 -i 0 -D -s 8k data",
    "-c 3 -i 0 -L data",
    "-c 3 -i 0 -C data",
    "-c 3 -i 0 -A data",
    "-c 3 -i 0 -W .",
    "-c 3 -i 0 -W -Y .",
    "-c 3 -i 0 -W -y -s 16k .",
    "-c 4 -i 0 -a 2 data",
    "-c 4 -i 0 -a 0 data",
    "-c 3 -i 0 -S 64k -o 1m data",
    "-c 3 -i 0 -I data",
    "-c 2 -i 0 -T 1us data",
    "-c 2 -i 0 -t 1h data",
    "-R -w 0.2 .",
    "-RL -w 0.2 .",
    "-RB -w 0.2 data",
    "-c 3 -r 200 data",
    "-c 3 -l 1m data",
];

#[test]
fn ioping_prints_lines_of_the_shapes_of_the_real_one() {
    needs!("ioping");
    let here = place();
    random_file(&here.path().join("data"), 8 << 20);
    for options in IOPING {
        assert_same_shapes(&format!("ioping {options}"), here.path());
    }
}

#[test]
fn dd_prints_lines_of_the_shapes_of_the_real_one() {
    let here = place();
    random_file(&here.path().join("data"), 8 << 20);
    for operands in [
        "if=data of=/dev/null bs=64k count=3",
        "if=data of=/dev/null bs=64k count=3 iflag=direct",
        "if=data of=/dev/null bs=1M skip=2",
        "if=data of=/dev/null bs=3000 count=5 status=noxfer",
        "if=data of=/dev/null bs=4k count=5 status=none",
        "if=data of=/dev/null bs=3M",
    ] {
        assert_same_shapes(&format!("dd {operands}"), here.path());
    }
    for (index, operands) in [
        "if=/dev/zero bs=4k count=10",
        "if=/dev/zero bs=4k count=10 oflag=direct",
        "if=/dev/zero bs=8k count=4 oflag=dsync",
        "if=/dev/zero bs=8k count=4 conv=fsync",
        "if=/dev/zero bs=8k count=4 conv=fdatasync",
        "if=/dev/zero bs=1M count=2 seek=1",
        "if=/dev/urandom bs=1k count=7",
    ]
    .into_iter()
    .enumerate()
    {
        // A file that exists is refused, so each has a directory of its own.
        let [mine, theirs] = ["ours", "real"].map(|name| {
            let directory = here.path().join(format!("{name}{index}"));
            std::fs::create_dir(&directory).unwrap();
            directory
        });
        let line = format!("{operands} of=new");
        let words = argv(&line);
        let ours = ran(&program_path(), ["as", "dd"].iter().chain(&words), &mine);
        let real = ran("dd", &words, &theirs);
        assert_eq!(ours.code, real.code, "{operands}: {}", ours.err);
        assert_eq!(shapes(&ours.err), shapes(&real.err), "{operands}");
        let made = [&mine, &theirs].map(|one| one.join("new").metadata().unwrap().len());
        assert_eq!(made[0], made[1], "{operands}");
    }
}

#[test]
fn sysbench_prints_lines_of_the_shapes_of_the_real_one() {
    needs!("sysbench");
    let here = place();
    for options in [
        "seqwr",
        "seqrewr",
        "seqrd",
        "rndrd --percentile=99",
        "rndwr --file-io-mode=async",
        "rndrw --file-io-mode=mmap --file-fsync-end=off",
        "rndrw --file-extra-flags=direct --threads=2",
        "rndrw --file-fsync-freq=0 --file-rw-ratio=3",
        "rndwr --file-fsync-all=on --file-fsync-mode=fdatasync",
        "rndrd --histogram",
        "rndwr --file-block-size=4096 --validate=off",
    ] {
        // A run of seqwr leaves shorter files.
        let files = "fileio --file-num=2 --file-total-size=1M";
        let prepared = format!("{files} prepare");
        ran("sysbench", prepared.split(' '), here.path()).exits(0);
        let line = format!("sysbench {files} --events=50 --file-test-mode={options} run");
        assert_same_shapes(&line, here.path());
    }
    for line in [
        "sysbench cpu --cpu-max-prime=1000 --events=10 run",
        "sysbench cpu --cpu-max-prime=500 --events=10 --threads=2 run",
    ] {
        assert_same_shapes(line, here.path());
    }
}

#[test]
fn bonnie_and_zcav_print_lines_of_the_shapes_of_the_real_ones() {
    needs!("bonnie++", "zcav");
    let here = place();
    random_file(&here.path().join("data"), 8 << 20);
    for line in [
        "bonnie++ -q -d . -s 4M -r 2M -n 0 -f -u root -m host",
        "bonnie++ -q -d . -s 0 -n 1 -u root -m host",
        "bonnie++ -q -d . -s 0 -n 1:2000:1000:2 -u root -m host",
        "zcav -b 1 data",
        "zcav -b 1 -r 4 data",
        "zcav -b 1 -f data",
        "zcav -b 2 -c 2 data",
        "zcav -b 1 -c 3 -s 2 data",
    ] {
        assert_same_shapes(line, here.path());
    }
}

#[test]
fn hdparm_prints_lines_of_the_shapes_of_the_real_one() {
    needs!("hdparm", "losetup");
    let here = place();
    let file = here.path().join("image");
    random_file(&file, 64 << 20);
    let device = Loop::over(&file, &[]);
    for options in ["-t", "-t --direct", "-T"] {
        let line = format!("hdparm {options} {}", device.node.display());
        assert_same_shapes(&line, here.path());
    }
}

#[test]
fn shape_has_no_figure_and_no_unit_that_depends_on_it() {
    for (one, other) in [
        (
            "2 requests completed in 211.3 us, 8 KiB read, 9.46 k iops, 37.0 MiB/s",
            "2 requests completed in 5.93 ms, 8 KiB read, 337 iops, 1.32 GiB/s",
        ),
        (
            "40960 bytes (41 kB) copied, 5.3e-05 s, 1 GB/s",
            "4 bytes (4 B) copied, 2 s, 2 B/s",
        ),
        ("#0.00 ++++ 0.001", "0.00 1111.27 0.001"),
        ("host,+++++,+++,13us,,", "host,274728,12,1577us,,"),
        ("   0.001 |**********   7", "0.02 |*  1"),
    ] {
        assert_eq!(shape(one), shape(other));
    }
    for (one, other) in [
        ("3+0 records in", "4+0 records in"),
        ("a,,1", "a,1,1"),
        ("request=1 time=3 us", "request=1 time=3 us (warmup)"),
        ("# Finished loop 1", "Finished loop 1"),
    ] {
        assert_ne!(shape(one), shape(other));
    }
}
