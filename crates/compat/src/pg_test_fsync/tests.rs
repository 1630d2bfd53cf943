use super::*;
use crate::fixture::{directory, load, measurement, plan, result, text_of};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::SyncPolicy;

#[test]
fn large_sectors_skip_the_small_direct_writes() {
    let mut target = directory();
    target.layers[0].logical_block_bytes = Some(4096);
    let plan = plan(load(&DROP_IN, "").as_ref(), &target);
    let workloads = plan.workloads().iter();
    let names: Vec<&str> = workloads.map(|workload| workload.name.as_str()).collect();
    assert!(names.contains(&"open_sync-4x4k") && !names.contains(&"open_sync-16x1k"));
}

#[test]
fn output_has_the_layout_of_the_tool() {
    let load = load(&DROP_IN, "-s 1");
    let target = directory();
    let plan = plan(load.as_ref(), &target);
    let mut printer = load.printer(&plan, &target);
    let mut text = printer.begin();
    let mut measured = Vec::new();
    for workload in plan.workloads() {
        let kind = match workload.sync {
            SyncPolicy::None => OpKind::Write,
            SyncPolicy::Every { writes: 2.., .. } => OpKind::Sync,
            _ => OpKind::Commit,
        };
        let one = measurement(workload, kind, 16_000, 1_000_000_000);
        text.push_str(&printer.measured(&one));
        measured.push(one);
    }
    text.push_str(&printer.end(&result(&measured)).stdout);
    let real = text_of("pg_test_fsync-15.out");
    assert_eq!(without_figures(&text), without_figures(&real));
    let widths = |text: &str| text.lines().map(str::len).collect::<Vec<_>>();
    assert_eq!(widths(&text), widths(&real));
}

/// The layout: figures and the spaces before them become one character.
fn without_figures(text: &str) -> String {
    let mut layout = String::new();
    for line in text.lines() {
        let is_figure = |c: char| c.is_ascii_digit() || c == '.' || c == ' ';
        let label = line.split_once("ops/sec");
        layout += label.map_or(line, |(label, _)| label.trim_end_matches(is_figure));
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

/// The alarm ended the test within an operation that took 9.9 s: the tool divides by all of the
/// time.
#[test]
fn last_operation_counts_with_its_time() {
    let mut tested = 0;
    for row in rows(512) {
        let Some(workload) = row.workload(1) else {
            continue;
        };
        if !matches!(workload.sync, SyncPolicy::Every { writes: 1, .. }) {
            continue;
        }
        let mut commits = measurement(&workload, OpKind::Commit, 99, 1_000_000_000);
        let planned = row.rate(&commits).unwrap();
        commits.overrun_ns = 8_900_000_000;
        let rate = row.rate(&commits).unwrap();
        assert!((planned / rate - 9.9).abs() < 1e-6, "{}: {rate}", row.name);
        tested += 1;
    }
    assert!(tested > 0);
}
