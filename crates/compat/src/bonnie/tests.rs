use super::*;
use crate::fixture::{directory, load, measurement, plan, result, text_of};
use crate::load::NextPrinter;
use crate::printer::{ToolResult, ToolText};
use diskproof_model::files::FilesMeasurement;
use diskproof_model::measurement::OpKind;
use std::collections::BTreeSet;

fn printed(line: &str) -> ToolText {
    let (load, target) = (load(&DROP_IN, line), directory());
    let plan = plan(load.as_ref(), &target);
    let kinds = [OpKind::Write, OpKind::Write, OpKind::Read, OpKind::Read];
    // The rates of the real run in the fixture.
    let counts = [31_479_500, 43_075_125, 93_363_125, 6_278_000];
    let expected = kinds.into_iter().zip(counts).cycle();
    let mut measured = Vec::new();
    for (workload, (kind, count)) in plan.workloads().iter().zip(expected) {
        let mut one = measurement(workload, kind, count, 1_000_000_000_000);
        one.cpu.user_ns = 170_000_000_000;
        for op in one.ops.values_mut() {
            op.latency.record(40_000_000);
        }
        measured.push(one);
    }
    load.printer(&plan, &target).end(&result(&measured))
}

/// Both parts run, and one printer shows them.
#[test]
fn default_command_line_has_a_table_for_each_part() {
    let first = load(&DROP_IN, "-s 1800 -q -z 5 -m host");
    let target = directory();
    let next = first.next().unwrap();
    assert_eq!(next.printer, NextPrinter::SamePrinter);
    assert!(next.load.next().is_none() && next.load.head().notes.is_empty());
    let next = plan(next.load.as_ref(), &target);
    let files = next.files().unwrap();
    assert_eq!(files.count, 16 * 1024);
    let plan = plan(first.as_ref(), &target);
    let writes = |workload| measurement(workload, OpKind::Write, 1000, 1_000_000_000);
    let measured: Vec<_> = plan.workloads().iter().map(writes).collect();
    let result = |measurements, interrupted| ToolResult {
        interrupted,
        ..result(measurements)
    };
    let mut printer = first.printer(&plan, &target);
    assert_eq!(printer.end(&result(&measured, false)), ToolText::default());
    printer.files_measured(&FilesMeasurement::default());
    let text = printer.end(&result(&[], false));
    assert_eq!(text.stderr.matches("Version 2.00a").count(), 2);
    let fields: Vec<&str> = text.stdout.trim_end().split(',').collect();
    assert_eq!((fields.len(), fields[5], fields[21]), (50, "1800M", "16"));
    // A run that a signal ends prints what it has, once.
    let mut printer = first.printer(&plan, &target);
    let text = printer.end(&result(&measured[..2], true));
    assert!(text.stdout.contains("host"));
    assert_eq!(printer.end(&result(&[], true)), ToolText::default());
}

#[test]
fn machine_has_its_own_name_and_the_chunk_size_is_shown() {
    let text = printed("-f -n 0 -s 1800:64k").stdout;
    assert!(text.contains("\nvm        1800M:64k "), "{text}");
    assert!(text.contains("1.98,2.00a,vm,1,"), "{text}");
    let text = printed("-f -n 0 -s 1800 -c 4").stdout;
    assert!(text.contains("\nvm         1800M::4 "), "{text}");
    let text = printed("-f -n 0 -s 1800:64k -c 2").stdout;
    assert!(text.contains("\nvm      1800M:64k:2 "), "{text}");
}

/// Columns at which words end.
fn ends(line: &str) -> Vec<usize> {
    let is_end = |(at, c): &(usize, char)| {
        *c != ' ' && line.as_bytes().get(at + 1).is_none_or(|next| *next == b' ')
    };
    line.char_indices()
        .filter(is_end)
        .map(|(at, _)| at)
        .collect()
}

#[test]
fn table_has_the_columns_of_the_tool() {
    let text = printed("-f -n 0 -s 1800 -m host").stdout;
    let real = text_of("bonnie-2.00a.out");
    for (ours, real) in text.lines().take(3).zip(real.lines()) {
        assert_eq!(ours.trim_end(), real.trim_end());
    }
    for (ours, real) in text.lines().zip(real.lines()).skip(3).take(2) {
        assert_eq!(ends(ours), ends(real), "{ours}\n{real}");
    }
    assert!(text.contains("246m  17"), "{text}");
}

#[test]
fn csv_line_has_fifty_fields() {
    let quiet = printed("-f -n 0 -s 1800 -m host -q -z 5");
    let fields: Vec<&str> = quiet.stdout.trim_end().split(',').collect();
    assert_eq!(fields.len(), 50);
    let first = "1.98,2.00a,host,1,5,1800M,,8192,5,,,251836,17,344601,17,,,746905,17,6278,17";
    assert_eq!(fields[..21].join(","), first);
    let latency_us = fields[39].trim_end_matches("us").parse::<u64>();
    assert_eq!(latency_us.unwrap() / 1000, 40);
    assert!(quiet.stderr.starts_with("Version 2.00a"));
}

#[test]
fn csv_line_has_the_fields_of_its_format() {
    let old = printed("-f -n 0 -s 1800 -m host -q --csv 1.03").stdout;
    let fields = "host,1800M,,,251836,17,344601,17,,,746905,17,6278,17,,,,,,,,,,,,,";
    assert_eq!(old.trim_end(), fields);
    let newer = printed("-f -n 0 -s 1800 -m host -q -z 5 --csv 1.96").stdout;
    assert_eq!(newer.trim_end().split(',').count(), 48);
    let head = "1.96,1.96,host,1,5,1800M,,,,251836,17,344601,17,,,746905,17,6278,17,,";
    assert!(newer.starts_with(head), "{newer}");
}

#[test]
fn each_run_has_a_line_and_a_part_of_the_file() {
    let plan = plan(load(&DROP_IN, "-f -n 0 -s 300 -x 3").as_ref(), &directory());
    assert_eq!(plan.scratch_bytes(), Some(900 << 20));
    assert_eq!(plan.workloads().len(), 12);
    assert_eq!(plan.workloads()[11].name, "seeks-3");
    assert_eq!(plan.workloads()[11].span.start_bytes, 600 << 20);
    let text = printed("-f -n 0 -s 300 -x 3 -m host").stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[0].starts_with("format_version,bonnie_version,name,"));
    for line in &lines {
        assert_eq!(line.split(',').count(), 50, "{line}");
    }
    assert!(lines[3].starts_with("1.98,2.00a,host,1,"), "{text}");
    assert_eq!(lines[1], lines[3]);
}

/// The options in the usage of the real one, and those of its manual.
#[test]
fn options_are_those_of_the_usage() {
    let usage = text_of("bonnie-2.00a.help");
    let mut real: BTreeSet<&str> = usage
        .split(['[', '|', ' '])
        .filter_map(|word| word.get(..2))
        .filter(|word| word.starts_with('-'))
        .collect();
    // In the manual only.
    real.insert("-D");
    let ours = DROP_IN.options.iter().map(|option| option.short);
    // --csv is our own.
    let ours: BTreeSet<&str> = ours.filter(|short| !short.is_empty()).collect();
    assert_eq!(ours, real);
}

/// As strace shows it of 2.00a: a sync when a test closes the file; with -b one after each seek
/// that writes. O_DIRECT only where the file is created.
#[test]
fn flags_apply_to_the_tests_of_the_tool() {
    let tests = |line: &str| {
        plan(load(&DROP_IN, line).as_ref(), &directory())
            .workloads()
            .to_vec()
    };
    let each = sync_every(1, SyncCall::Fsync);
    for (flags, seeks, direct) in [
        ("", SyncPolicy::AtEnd, false),
        ("-b", each, false),
        ("-D", SyncPolicy::AtEnd, true),
        ("-D -b", each, true),
    ] {
        let tests = tests(&format!("-f -n 0 -s 8 {flags}"));
        let syncs: Vec<SyncPolicy> = tests.iter().map(|test| test.sync).collect();
        let wanted = [
            SyncPolicy::AtEnd,
            SyncPolicy::AtEnd,
            SyncPolicy::None,
            seeks,
        ];
        assert_eq!(syncs, wanted, "{flags}");
        for test in &tests {
            let is_direct = test.cache == CachePolicy::Direct;
            assert_eq!(
                is_direct,
                direct && test.name == WRITE,
                "{flags} {}",
                test.name
            );
        }
    }
}

/// As atoi(3) and the suffixes of bonnie++ read them.
#[test]
fn numbers_are_read_as_the_tool_does() {
    for (line, mib) in [
        ("-r 32M", 300),
        ("-r 400", 1024),
        ("-r 250", 500),
        ("-r 300", 1024),
        ("-r 1000", 2048),
        ("-r 700", 1400),
        ("-r 0", 300),
        ("", 1024),
        ("-s 2g", 2048),
        ("-s 64m", 64),
        ("-s 64:16k", 64),
        ("-s 64 -r 32M", 64),
        ("-s 32 -r 32 -c 2", 32),
    ] {
        let plan = plan(
            load(&DROP_IN, &format!("-f -n 0 {line}")).as_ref(),
            &directory(),
        );
        assert_eq!(plan.scratch_bytes(), Some(mib << 20), "{line}");
    }
    for line in [
        "-s 63 -r 32",
        "-s x",
        "-s 8:3000",
        "-s 8:128",
        "-s 8:2048k",
        "-c 201",
    ] {
        let words = crate::fixture::words(line);
        assert!((DROP_IN.start)(&words).is_err(), "{line}");
    }
}

/// As bonnie++ 2.00a prints this name: cut in both tables, whole in the CSV line.
#[test]
fn long_name_of_the_machine_is_cut() {
    let name = "averyverylongmachinename";
    let text = printed(&format!("-f -n 0 -s 1800:64k -m {name}")).stdout;
    assert!(text.contains("\naveryvery 1800M:64k "), "{text}");
    assert!(text.contains(&format!("1.98,2.00a,{name},1,")), "{text}");
}
