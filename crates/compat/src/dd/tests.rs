use super::*;
use crate::fixture::{directory, file, load, measurement, plan, result, text_of, words};
use crate::plan::SECOND;
use crate::printer::ResultsSoFar;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::CachePolicy;
use diskproof_model::target::TargetKind;
use std::collections::BTreeSet;

const MIB: u64 = 1 << 20;

#[test]
fn reading_goes_to_the_end_in_whole_blocks() {
    let load = load(
        &DROP_IN,
        "if=bigfile of=/dev/null bs=1M iflag=direct skip=2",
    );
    let plan = plan(load.as_ref(), &file(10 * MIB + 5));
    let workload = &plan.workloads()[0];
    assert_eq!(workload.span.start_bytes, 2 * MIB);
    assert_eq!(workload.stop.bytes, Some(8 * MIB));
    assert_eq!(workload.cache, CachePolicy::Direct);
    assert!(!load.head().writes_target);
}

/// Nothing that the kernel writes for dd lies between the measured times of its parts.
#[test]
fn every_part_of_a_copy_ends_with_its_sync() {
    let load = load(
        &DROP_IN,
        "if=/dev/zero of=new bs=1M count=41943041B conv=fsync",
    );
    let plan = plan(load.as_ref(), &directory());
    let mut parts = Vec::new();
    for workload in plan.workloads() {
        parts.push((workload.stop.bytes, workload.sync));
    }
    let expected = [
        (Some(40 * MIB), SyncPolicy::AtEnd),
        (Some(1), SyncPolicy::AtEnd),
    ];
    assert_eq!(parts, expected);
}

#[test]
fn numbers_have_the_suffixes_of_the_tool() {
    let cases = [
        ("8k", 8192),
        ("1K", 1024),
        ("1kB", 1000),
        ("2M", 2 * MIB),
        ("2MB", 2_000_000),
        ("1MiB", MIB),
        ("2x1024", 2048),
        ("3b", 1536),
        ("7w", 14),
        ("1G", 1 << 30),
        ("k", 1024),
    ];
    for (text, bytes) in cases {
        assert_eq!(parse_bytes(text), Some(bytes), "{text}");
    }
    for text in ["", "1q", "1xx2", "-1", "99999999999G"] {
        assert_eq!(parse_bytes(text), None, "{text}");
    }
}

/// Printed by dd of coreutils 9.1.
#[test]
fn transfer_line_is_that_of_the_tool() {
    let cases = [
        (
            8_388_608,
            0.004,
            "8388608 bytes (8.4 MB, 8.0 MiB) copied, 0.004 s, 2.1 GB/s\n",
        ),
        (512, 0.5, "512 bytes copied, 0.5 s, 1.0 kB/s\n"),
        (1000, 2.0, "1000 bytes (1.0 kB) copied, 2 s, 500 B/s\n"),
        (1, 1.0, "1 byte copied, 1 s, 1 B/s\n"),
        (
            104_857_600,
            0.123_456_789,
            "104857600 bytes (105 MB, 100 MiB) copied, 0.123457 s, 849 MB/s\n",
        ),
    ];
    for (bytes, seconds, text) in cases {
        assert_eq!(print::transfer_line(bytes, seconds), text);
    }
}

#[test]
fn status_goes_to_stderr() {
    let load = load(&DROP_IN, "if=/dev/zero of=bigfile bs=1M count=8");
    let target = directory();
    let plan = plan(load.as_ref(), &target);
    let measured = [measurement(
        &plan.workloads()[0],
        OpKind::Write,
        8,
        4_000_000,
    )];
    let mut printer = load.printer(&plan, &target);
    let so_far = printer.status(&ResultsSoFar {
        disks: &[],
        measurements: &measured,
        elapsed_ns: 4_000_000,
        unix_ns: 0,
    });
    let end = printer.end(&result(&measured));
    assert!(printer.survives_usr1());
    assert_eq!((end.stdout.as_str(), &so_far), ("", &end));
    assert_eq!(
        end.stderr,
        "8+0 records in\n8+0 records out\n\
         8388608 bytes (8.4 MB, 8.0 MiB) copied, 0.004 s, 2.1 GB/s\n"
    );
}

#[test]
fn no_block_is_nothing_to_measure() {
    for (line, target, length) in [
        ("if=/dev/zero of=new count=0", directory(), 0),
        (
            "if=/dev/zero of=new bs=1M count=0 seek=3",
            directory(),
            3 * MIB,
        ),
        ("if=there of=/dev/null count=0", file(MIB), 0),
    ] {
        let load = load(&DROP_IN, line);
        let plan = plan(load.as_ref(), &target);
        assert!(plan.workloads().is_empty(), "{line}");
        assert_eq!(load.empty_file_bytes(), length);
        let text = load.printer(&plan, &target).end(&result(&[])).stderr;
        assert_eq!(
            text,
            "0+0 records in\n0+0 records out\n0 bytes copied, 0 s, 0.0 kB/s\n"
        );
    }
}

/// One size of ibs= and obs= alone leaves the other one at 512 bytes.
#[test]
fn requests_have_one_size() {
    for line in [
        "if=/dev/zero of=new ibs=1M count=3",
        "if=there of=/dev/null obs=4k",
        "if=there of=/dev/null bs=4k iflag=direct,nocache",
        "if=/dev/zero of=new oflag=nocache oflag=direct count=3",
    ] {
        match (DROP_IN.start)(&words(line)) {
            Err(error) => assert!(error.text().starts_with("dd: "), "{line}"),
            Ok(_) => panic!("{line}"),
        }
    }
    for (line, bytes) in [
        ("ibs=1M obs=1M", MIB),
        ("ibs=512", 512),
        ("bs=4k ibs=1M", 4096),
    ] {
        let line = format!("if=there of=/dev/null {line}");
        let plan = plan(load(&DROP_IN, &line).as_ref(), &file(8 * MIB));
        assert_eq!(u64::from(plan.workloads()[0].block_bytes), bytes, "{line}");
    }
}

#[test]
fn directory_is_not_read_and_not_overwritten() {
    for line in [
        "if=there of=/dev/null count=10",
        "if=/dev/zero of=there conv=nocreat count=10",
    ] {
        let target = directory();
        let context = PlanContext {
            target: &target,
            seed: 7,
            argv: &[],
        };
        assert!(load(&DROP_IN, line).plan(&context).is_err(), "{line}");
    }
}

/// Of a device of 4 MiB, read with dd 9.1: a read more than there are whole writes, exit code 1.
#[test]
fn device_written_to_its_end_ends_as_dd_does() {
    let mut device = file(4 * MIB);
    device.kind = TargetKind::BlockDevice;
    let copy = load(&DROP_IN, "if=/dev/zero of=there bs=3M");
    let plan = plan(copy.as_ref(), &device);
    let mut measured = Vec::new();
    for workload in plan.workloads() {
        measured.push(measurement(workload, OpKind::Write, 1, SECOND));
    }
    let text = copy.printer(&plan, &device).end(&result(&measured)).stderr;
    let start = "dd: error writing 'there': No space left on device\n2+0 records in\n\
                 1+0 records out\n4194304 bytes";
    assert!(text.starts_with(start), "{text}");
    assert_eq!(copy.end_code(&device), 1);
    // With a count there is no such write, and a file would grow.
    let counted = load(&DROP_IN, "if=/dev/zero of=there bs=1M count=4");
    assert_eq!(counted.end_code(&device), 0);
    assert_eq!(copy.end_code(&file(4 * MIB)), 0);
}

/// Read with dd 9.1: it says so and exits with 0.
#[test]
fn read_from_behind_the_end_moves_nothing() {
    for (skip, warning) in [
        (1, ""),
        (2, "dd: 'there': cannot skip to specified offset\n"),
    ] {
        let load = load(
            &DROP_IN,
            &format!("if=there of=/dev/null bs=1M skip={skip}"),
        );
        let target = file(MIB);
        let plan = plan(load.as_ref(), &target);
        assert!(plan.workloads().is_empty());
        let text = load.printer(&plan, &target).end(&result(&[])).stderr;
        let report = "0+0 records in\n0+0 records out\n0 bytes copied, 0 s, 0.0 kB/s\n";
        assert_eq!(text, format!("{warning}{report}"));
    }
}

/// Operands, conversions and flags in the help of the real one.
#[test]
fn operands_are_those_of_the_help() {
    let help = text_of("dd-9.1.help");
    let mut real = BTreeSet::from(["iseek=", "oseek=", "--help", "--version"].map(str::to_owned));
    let mut kinds: &[&str] = &[];
    for line in help.lines() {
        match line {
            "Each CONV symbol may be:" => kinds = &["conv"],
            "Each FLAG symbol may be:" => kinds = &["iflag", "oflag"],
            "Sending a USR1 signal to a running 'dd' process makes it" => kinds = &[],
            _ => {}
        }
        let Some(first) = line
            .strip_prefix("  ")
            .and_then(|line| line.split(' ').next())
        else {
            continue;
        };
        match first.split_once('=') {
            Some((name, _)) if !["conv", "iflag", "oflag"].contains(&name) => {
                real.insert(format!("{name}="));
            }
            None if !first.is_empty() => {
                real.extend(kinds.iter().map(|kind| format!("{kind}={first}")));
            }
            _ => {}
        }
    }
    let ours: BTreeSet<String> = DROP_IN
        .options
        .iter()
        .map(|operand| operand.written())
        .filter(|name| !OUR_SPELLINGS.contains(&name.as_str()))
        .collect();
    assert_eq!(ours, real);
}

/// Flags that dd has and its help does not list (see its manual), and -- options.
const OUR_SPELLINGS: [&str; 6] = [
    "iflag=count_bytes",
    "iflag=skip_bytes",
    "iflag=seek_bytes",
    "oflag=count_bytes",
    "oflag=skip_bytes",
    "oflag=seek_bytes",
];
