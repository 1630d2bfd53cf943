//! What only writes makes no read request on the disk: the first field of the device's `stat`,
//! beside fio's own count for the same line.

use crate::program::{argv, names, program};
use diskproof_simdisk::testbed::{Disk, can_run, run};
use std::process::Command;

/// Metadata of the filesystem.
const READS_MAX: u64 = 20;
const SIZE_BYTES: u64 = 1 << 30;
const ATTEMPTS: u32 = 4;

/// Writes that cover blocks of the page cache in part.
const PARTIAL_WRITES: [&str; 14] = [
    "run . --no-history --rw write --bs 2300 --cached --fdatasync 1 --size 16M --bytes 1M",
    "run . --no-history --rw randwrite --bs 1k --buffered --size 16M --bytes 4M",
    "run . --no-history --rw write --bs 6144 --cached --size 16M --bytes 20M",
    "run . --no-history --rw write --bs 4k --engine mmap --size 16M --bytes 4M",
    "check . --no-history --no-health --for sqlite --time 2s",
    "check . --no-history --no-health --for etcd --time 2s",
    "check . --no-history --no-health --for mysql --time 2s",
    "commit . --no-history --no-health --time 4s --only open_sync-1k,open_sync-2k,dsync-direct",
    "ping . --no-history --write --buffered -s 512 -c 5 -i 10ms",
    "as fio --rw=write --ioengine=sync --fdatasync=1 --directory=. --size=400k --bs=2300 --name=a",
    "as fio --rw=randwrite --bs=1k --size=8m --directory=. --name=b",
    "as ioping -W -c 5 -i 0.01 -s 512 .",
    "as sysbench fileio --file-total-size=16M --file-num=2 --file-block-size=1024 \
     --file-test-mode=rndwr --time=1 run",
    "as dd if=/dev/zero of=new bs=1000 count=1000 oflag=nocache",
];

/// Writes of which a verb makes many cells.
const CAMPAIGNS: [&str; 3] = [
    "sweep . --no-history --no-health --quick --rw randwrite",
    "sweep . --no-history --no-health --quick --rw write",
    "load . --no-history --no-health --rw randwrite --slo p99<=50ms --time 20s",
];

/// Read requests of the device of `disk` while `command` runs in it.
fn reads_of(disk: &Disk, mut command: Command) -> u64 {
    sync(disk);
    let before = read_requests(disk);
    let output = command.current_dir(disk.path()).output().unwrap();
    // An undecided or missed limit is no matter of this test.
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 1 | 5)), "{command:?}: {output:?}");
    read_requests(disk) - before
}

/// Its own filesystem alone: others hang under the tests beside this one.
fn sync(disk: &Disk) {
    run("sync", &["-f", disk.path().to_str().unwrap()]);
}

/// A command line of the program, or of fio itself.
fn command(line: &str) -> Command {
    let words = argv(line);
    if words[0] != "fio" {
        return program(words);
    }
    let mut fio = Command::new("fio");
    fio.args(&words[1..]);
    fio
}

/// The fewest read requests of some attempts, each of which starts with what `prepare` leaves.
/// Programs of other tests look into every block device, and a machine that is short of memory
/// reads blocks once more: that adds reads now and then, and what the command reads itself it reads
/// each time.
fn fewest_reads(disk: &Disk, line: &str, prepare: fn(&Disk)) -> u64 {
    let mut fewest = u64::MAX;
    for _ in 0..ATTEMPTS {
        prepare(disk);
        fewest = fewest.min(reads_of(disk, command(line)));
        if fewest < READS_MAX {
            break;
        }
    }
    fewest
}

fn remove_files(disk: &Disk) {
    for name in names(disk.path()) {
        let path = disk.path().join(name);
        if path.is_file() {
            std::fs::remove_file(path).unwrap();
        }
    }
}

fn remove_ours(disk: &Disk) {
    let _ = std::fs::remove_file(disk.path().join("ours"));
}

fn write_old_file(disk: &Disk) {
    std::fs::write(disk.path().join("old"), vec![7; 16 << 20]).unwrap();
}

fn read_requests(disk: &Disk) -> u64 {
    counters(disk)[0]
}

/// Sectors of 512 bytes.
fn written_bytes(disk: &Disk) -> u64 {
    counters(disk)[6] * 512
}

/// The fields of the device's `stat` (Linux, Documentation/block/stat.rst).
fn counters(disk: &Disk) -> Vec<u64> {
    let source = run(
        "findmnt",
        &["-n", "-o", "SOURCE", disk.path().to_str().unwrap()],
    );
    let name = source.trim().trim_start_matches("/dev/");
    let stat = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    let fields = stat.split_whitespace();
    fields.map(|field| field.parse().unwrap()).collect()
}

#[test]
fn scratch_file_is_written_once_for_writes_of_a_part() {
    if !can_run(
        "scratch_file_is_written_once_for_writes_of_a_part",
        &["mkfs.ext4", "findmnt", "losetup"],
    ) {
        return;
    }
    let disk = Disk::new("ext4", SIZE_BYTES, "");
    for size_mib in [32, 160] {
        let line = format!(
            "run . --no-history --rw randwrite --bs 1k --buffered --size {size_mib}M --bytes 1M"
        );
        sync(&disk);
        let before = written_bytes(&disk);
        let ran = program(argv(&line)).current_dir(disk.path()).output();
        assert!(ran.unwrap().status.success());
        let written = (written_bytes(&disk) - before) >> 20;
        // Each write of 1 KiB dirties a page of 4 KiB, and some blocks are metadata.
        assert!(
            (size_mib..size_mib + 20).contains(&written),
            "{size_mib}: {written} MiB"
        );
        let reads = fewest_reads(&disk, &line, remove_files);
        assert!(reads < READS_MAX, "{size_mib}: {reads} reads");
    }
}

#[test]
fn row_says_that_the_kernel_read_blocks_which_were_not_in_memory() {
    if !can_run(
        "row_says_that_the_kernel_read_blocks_which_were_not_in_memory",
        &["mkfs.ext4", "findmnt", "losetup"],
    ) {
        return;
    }
    let disk = Disk::new("ext4", SIZE_BYTES, "");
    for (size_mib, is_told) in [(16, false), (128, true)] {
        let file = disk.path().join("old");
        std::fs::write(file, vec![7; size_mib << 20]).unwrap();
        let line = "run old --overwrite --no-history --rw randwrite --bs 1k --buffered --bytes 1M";
        let output = program(argv(line)).current_dir(disk.path()).output();
        let page = String::from_utf8(output.unwrap().stdout).unwrap();
        assert_eq!(
            page.contains("with reads"),
            is_told,
            "{size_mib} MiB: {page}"
        );
    }
}

/// In memory: it flushes thousands of times.
fn assert_writes_read_nothing(test: &str, kind: &str) {
    let programs = ["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "findmnt", "losetup"];
    if !can_run(test, &programs) {
        return;
    }
    let disk = Disk::in_memory(kind, SIZE_BYTES);
    for line in PARTIAL_WRITES {
        let reads = fewest_reads(&disk, line, remove_files);
        assert!(reads < READS_MAX, "{kind}: {reads} reads: {line}");
    }
}

#[test]
fn workload_that_only_writes_makes_no_read_request_on_ext4() {
    let name = "workload_that_only_writes_makes_no_read_request_on_ext4";
    assert_writes_read_nothing(name, "ext4");
}

#[test]
fn workload_that_only_writes_makes_no_read_request_on_xfs() {
    let name = "workload_that_only_writes_makes_no_read_request_on_xfs";
    assert_writes_read_nothing(name, "xfs");
}

#[test]
fn workload_that_only_writes_makes_no_read_request_on_btrfs() {
    let name = "workload_that_only_writes_makes_no_read_request_on_btrfs";
    assert_writes_read_nothing(name, "btrfs");
}

#[test]
fn cells_that_only_write_make_no_read_request() {
    if !can_run(
        "cells_that_only_write_make_no_read_request",
        &["mkfs.ext4", "findmnt", "losetup"],
    ) {
        return;
    }
    let disk = Disk::in_memory("ext4", SIZE_BYTES);
    for line in CAMPAIGNS {
        let reads = fewest_reads(&disk, line, remove_files);
        assert!(reads < READS_MAX, "{reads} reads: {line}");
    }
}

#[test]
fn existing_file_is_read_as_often_as_by_fio() {
    if !can_run(
        "existing_file_is_read_as_often_as_by_fio",
        &["fio", "findmnt"],
    ) {
        return;
    }
    let disk = Disk::new("ext4", SIZE_BYTES, "");
    let line = |file: &str| {
        format!("fio --rw=write --bs=2300 --size=1m --name=k --fdatasync=1 --filename={file}")
    };
    let (ours, theirs) = (format!("as {}", line("ours")), line("theirs"));
    // New files: none reads.
    assert!(fewest_reads(&disk, &theirs, remove_files) < READS_MAX);
    assert!(fewest_reads(&disk, &ours, remove_ours) < READS_MAX);
    // fio drops the pages of an existing file first (invalidate), and so does the drop-in.
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let again = reads_of(&disk, command(&ours));
        let of_fio = reads_of(&disk, command(&theirs));
        if again.abs_diff(of_fio) < READS_MAX {
            return;
        }
        seen.push((again, of_fio));
    }
    panic!("ours and fio: {seen:?}");
}

#[test]
fn released_file_is_written_in_memory() {
    if !can_run(
        "released_file_is_written_in_memory",
        &["findmnt", "losetup"],
    ) {
        return;
    }
    let disk = Disk::new("ext4", SIZE_BYTES, "");
    for line in [
        "run old --overwrite --no-history --rw randwrite --bs 1k --buffered --bytes 4M",
        "run old --overwrite --no-history --rw write --bs 2300 --cached --fdatasync 1 --bytes 1M",
        "check old --overwrite --no-history --no-health --for sqlite --time 2s",
    ] {
        let reads = fewest_reads(&disk, line, write_old_file);
        assert!(reads < READS_MAX, "{reads} reads: {line}");
    }
}
