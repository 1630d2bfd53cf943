use super::*;
use crate::drop_in::Started;
use crate::fixture::{directory, load, measurement, plan, text_of, words};
use crate::load::LoadTarget;
use crate::printer::{DropInError, ToolResult};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{CachePolicy, SyncPolicy};
use std::path::PathBuf;

fn error(line: &str) -> String {
    match (DROP_IN.start)(&words(line)) {
        Err(DropInError::Usage(text)) => text,
        _ => panic!("{line}: no usage error"),
    }
}

#[test]
fn arguments_become_sixteen_workloads_without_a_name_for_the_file() {
    let load = load(&DROP_IN, "-s 2 -f /data/wal/test.out");
    assert_eq!(
        load.head().target,
        LoadTarget::Existing(PathBuf::from("/data/wal"))
    );
    let plan = plan(load.as_ref(), &directory());
    assert_eq!(plan.workloads.len(), 16);
    assert_eq!(plan.scratch_bytes, Some(16 << 20));
    let time_ns = plan.workloads.iter().map(|one| one.stop.time_ns);
    assert!(time_ns.into_iter().all(|ns| ns == Some(2_000_000_000)));
    let direct = plan
        .workloads
        .iter()
        .filter(|one| one.cache == CachePolicy::Direct);
    assert!(
        direct
            .clone()
            .all(|one| matches!(one.sync, SyncPolicy::WithWrite { .. }))
    );
    assert_eq!(direct.count(), 9);
}

#[test]
fn large_sectors_skip_the_small_direct_writes() {
    let mut target = directory();
    target.layers[0].logical_block_bytes = Some(4096);
    let plan = plan(load(&DROP_IN, "").as_ref(), &target);
    assert!(
        !plan
            .workloads
            .iter()
            .any(|one| one.name == "open_sync-16x1k")
    );
    assert!(
        plan.workloads
            .iter()
            .any(|one| one.name == "open_sync-4x4k")
    );
}

#[test]
fn usage_errors_are_those_of_the_tool() {
    assert!(error("-s 0").contains("error: --secs-per-test must be in range 1..4294967295"));
    assert!(error("x").contains("error: too many command-line arguments (first is \"x\")"));
    assert!(error("-x").contains("pg_test_fsync: invalid option -- 'x'"));
    assert!(error("--secs-per-test").contains("option '--secs-per-test' requires an argument"));
    assert!(error("-s x").contains("hint: Try \"pg_test_fsync --help\""));
}

#[test]
fn version_names_both_programs() {
    let Ok(Started::Text(text)) = (DROP_IN.start)(&words("-V")) else {
        panic!("no text");
    };
    assert!(text.stdout.starts_with("pg_test_fsync (PostgreSQL) 15"));
    assert!(text.stdout.contains("diskproof "));
}

#[test]
fn output_has_the_layout_of_the_tool() {
    let load = load(&DROP_IN, "-s 1");
    let target = directory();
    let plan = plan(load.as_ref(), &target);
    let mut printer = load.printer(&plan, &target);
    let mut text = printer.begin();
    let mut measured = Vec::new();
    for workload in &plan.workloads {
        let kind = match workload.sync {
            SyncPolicy::None => OpKind::Write,
            SyncPolicy::Every { writes: 2.., .. } => OpKind::Sync,
            _ => OpKind::Commit,
        };
        let one = measurement(workload, kind, 16_000, 1_000_000_000);
        text.push_str(&printer.measured(&one));
        measured.push(one);
    }
    let end = printer.end(&ToolResult {
        measurements: &measured,
        surface: None,
        interrupted: false,
        error: None,
        unix_ns: 0,
        host_name: "vm",
    });
    text.push_str(&end.stdout);
    assert_eq!(
        without_figures(&text),
        without_figures(&text_of("pg_test_fsync-15.out"))
    );
    let widths = |text: &str| text.lines().map(str::len).collect::<Vec<_>>();
    assert_eq!(widths(&text), widths(&text_of("pg_test_fsync-15.out")));
}

/// The layout: figures and the spaces before them become one character.
fn without_figures(text: &str) -> String {
    let mut layout = String::new();
    for line in text.lines() {
        match line.split_once("ops/sec") {
            Some((label, _)) => layout.push_str(
                label.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ' '),
            ),
            None => layout.push_str(line),
        }
        layout.push('\n');
    }
    layout
}

#[test]
fn options_are_those_of_the_help() {
    let help = text_of("pg_test_fsync-15.help");
    for option in ["-f", "-s"] {
        assert!(help.contains(option));
        assert!(DROP_IN.options.iter().any(|known| known.short == option));
    }
}
