use super::*;
use crate::fixture::{device, directory, file, load, measurement, plan, text_of, words};
use crate::load::LoadTarget;
use crate::printer::{DropInError, ResultsSoFar, ToolResult};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{CachePolicy, Layout, SyncPolicy};
use std::collections::BTreeSet;
use std::path::PathBuf;

const MIB: u64 = 1 << 20;

fn error(line: &str) -> String {
    match (DROP_IN.start)(&words(line)) {
        Err(DropInError::Usage(text)) => text,
        _ => panic!("{line}: no usage error"),
    }
}

#[test]
fn writing_a_new_file_creates_it_with_its_size() {
    let load = load(
        &DROP_IN,
        "if=/dev/zero of=bigfile bs=8k count=1000 conv=fsync",
    );
    assert_eq!(
        load.head().target,
        LoadTarget::Output(PathBuf::from("bigfile"))
    );
    assert!(load.head().writes);
    let plan = plan(load.as_ref(), &directory());
    let workload = &plan.workloads[0];
    assert_eq!(plan.scratch_bytes, Some(8_192_000));
    assert_eq!(workload.stop.bytes, Some(8_192_000));
    assert_eq!(
        (
            workload.block_bytes,
            workload.streams.permille(OpKind::Read)
        ),
        (8192, 0)
    );
    assert_eq!(
        (workload.sync, workload.cache),
        (SyncPolicy::AtEnd, CachePolicy::Cached)
    );
    assert_eq!(workload.layout, Layout::Provides);
}

#[test]
fn reading_goes_to_the_end_in_whole_blocks() {
    let load = load(
        &DROP_IN,
        "if=bigfile of=/dev/null bs=1M iflag=direct skip=2",
    );
    let plan = plan(load.as_ref(), &file(10 * MIB + 5));
    let workload = &plan.workloads[0];
    assert_eq!(workload.span.start_bytes, 2 * MIB);
    assert_eq!(workload.stop.bytes, Some(8 * MIB));
    assert_eq!(workload.cache, CachePolicy::Direct);
    assert!(!load.head().writes);
}

#[test]
fn an_existing_target_keeps_its_size() {
    let load = load(&DROP_IN, "if=/dev/zero of=/dev/sdb bs=1M count=20");
    let disk = device(10 * MIB);
    let context = crate::load::PlanContext {
        target: &disk,
        seed: 1,
        argv: &[],
    };
    let Err(DropInError::Target(text)) = load.plan(&context) else {
        panic!("no error");
    };
    assert!(text.contains("an existing target keeps its size"), "{text}");
    let whole = plan(
        crate::fixture::load(&DROP_IN, "if=/dev/zero of=/dev/sdb").as_ref(),
        &disk,
    );
    assert_eq!(whole.workloads[0].stop.bytes, Some(10 * MIB));
}

#[test]
fn copies_and_conversions_are_refused() {
    assert!(error("if=a of=b").contains("copying a to b is not supported"));
    assert!(error("if=/dev/zero").contains("to standard output"));
    assert!(error("if=/dev/zero of=a conv=swab").contains("conv=swab is not supported"));
    assert_eq!(error("nonsense"), "dd: unrecognized operand 'nonsense'\n");
    assert_eq!(
        error("if=a of=/dev/null bs=0x"),
        "dd: invalid number: '0x'\n"
    );
    assert_eq!(
        error("if=a of=/dev/null iflag=fast"),
        "dd: invalid iflag: 'fast'\n"
    );
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
    ];
    for (text, bytes) in cases {
        assert_eq!(parse_bytes(text), Some(bytes), "{text}");
    }
    for text in ["", "k", "1q", "1xx2", "-1", "99999999999G"] {
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
        assert_eq!(print::transfer(bytes, seconds), text);
    }
}

#[test]
fn status_goes_to_stderr() {
    let load = load(&DROP_IN, "if=/dev/zero of=bigfile bs=1M count=8");
    let (target, unix_ns) = (directory(), 0);
    let plan = plan(load.as_ref(), &target);
    let measured = [measurement(&plan.workloads[0], OpKind::Write, 8, 4_000_000)];
    let mut printer = load.printer(&plan, &target);
    let so_far = printer.status(&ResultsSoFar {
        measurements: &measured,
        elapsed_ns: 4_000_000,
        unix_ns,
    });
    let end = printer.end(&ToolResult {
        measurements: &measured,
        surface: None,
        interrupted: false,
        error: None,
        unix_ns,
        host_name: "vm",
    });
    assert!(printer.survives_usr1());
    assert_eq!((end.stdout.as_str(), &so_far), ("", &end));
    assert_eq!(
        end.stderr,
        "8+0 records in\n8+0 records out\n\
         8388608 bytes (8.4 MB, 8.0 MiB) copied, 0.004 s, 2.1 GB/s\n"
    );
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

#[test]
fn only_zeros_are_replaced_by_random_data() {
    let notes = |input: &str| {
        let line = format!("if={input} of=out bs=1M count=2 conv=fsync");
        load(&DROP_IN, &line).head().notes.clone()
    };
    assert!(notes("/dev/zero")[0].contains("random data instead of zeros"));
    assert!(notes("/dev/urandom").is_empty());
}
