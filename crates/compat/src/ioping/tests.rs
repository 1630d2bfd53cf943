use super::*;
use crate::fixture::{directory, load, plan, result, text_of, words};
use crate::printer::ToolResult;
use diskproof_model::measurement::OpKind;
use diskproof_model::ping::{IgnoredBecause, SingleRequest};
use diskproof_model::plan::CachePolicy;
use std::collections::BTreeSet;

#[test]
fn default_reads_a_small_file_through_the_dropped_cache_each_second() {
    let plan = plan(load(&DROP_IN, ".").as_ref(), &directory());
    let (workload, ping) = (&plan.workloads()[0], &plan.ping().unwrap().requests);
    assert_eq!(plan.scratch_bytes(), Some(1 << 20));
    assert_eq!(
        (workload.block_bytes, workload.cache),
        (4096, CachePolicy::Buffered)
    );
    assert_eq!(workload.streams.permille(OpKind::Read), 1000);
    assert_eq!((ping.interval_ns, ping.warmup_requests), (1_000_000_000, 1));
    assert_eq!(workload.stop.ops, None);
}

/// The options in the help of the real one: `-A, -async`.
#[test]
fn options_are_those_of_the_help() {
    let help = text_of("ioping-1.3.help");
    let real: BTreeSet<(String, String)> = help
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix('-'))
        .filter_map(|line| line.split_once(", -"))
        .map(|(short, rest)| {
            let long = rest.split_whitespace().next().unwrap_or_default();
            (format!("-{short}"), long.to_owned())
        })
        .collect();
    let options = DROP_IN.options.iter();
    let ours = options.map(|option| (option.short.to_owned(), option.long.to_owned()));
    assert_eq!(ours.collect::<BTreeSet<_>>(), real);
}

fn request(number: u64, at_ms: u64, latency_ns: u64) -> SingleRequest {
    SingleRequest {
        number,
        at_ns: at_ms * 1_000_000,
        op: OpKind::Read,
        offset_bytes: 4096 * number,
        latency_ns,
        idle_ns: None,
        error: None,
        ignored: (number == 1).then_some(IgnoredBecause::Warmup),
    }
}

fn printed(line: &str, requests: &[SingleRequest]) -> String {
    let (load, target) = (load(&DROP_IN, line), directory());
    let plan = plan(load.as_ref(), &target);
    let mut printer = load.printer(&plan, &target);
    let mut text = printer.begin();
    for request in requests {
        text.push_str(&printer.request(request, 1_700_000_000_500_000_000));
    }
    let end = printer.end(&ToolResult {
        unix_ns: 1_700_000_001_000_000_000,
        ..result(&[])
    });
    text + &end.stdout + &end.stderr
}

fn five() -> Vec<SingleRequest> {
    let latencies = [96_300, 119_100, 145_900, 131_300, 131_300];
    let request = |(at, ns): (u64, u64)| request(at + 1, 50 * at, ns);
    (0..).zip(latencies).map(request).collect()
}

#[test]
fn lines_and_statistics_have_the_layout_of_the_tool() {
    insta::assert_snapshot!(printed("-c 5 -i 50ms .", &five()));
}

#[test]
fn raw_lines_have_ten_columns() {
    let batch = printed("-B -c 5 -i 50ms .", &five());
    assert_eq!(
        batch,
        "4 527600 7582 31053829 119100 131900 145900 9494 5 200131300\n"
    );
    let periods = printed("-p 2 -q -c 5 -i 50ms .", &five());
    let columns = periods.lines().map(|line| line.split(' ').count());
    assert_eq!(columns.collect::<Vec<_>>(), [10, 10]);
    assert!(periods.starts_with("2 265000 "), "{periods}");
}

/// As in ioping 1.3, which looks ahead to the next request.
#[test]
fn a_period_ends_with_the_last_request_in_it() {
    let totals = |line: &str| -> Vec<String> {
        let text = printed(line, &five());
        let lines = text.lines().map(|line| line.split(' ').nth(8));
        lines.map(|total| total.unwrap().to_owned()).collect()
    };
    assert_eq!(totals("-P 100ms -q -i 50ms ."), ["2", "2"]);
    assert_eq!(totals("-P 40ms -q -i 50ms ."), ["1"; 5]);
}

#[test]
fn an_interrupted_wait_counts_as_time() {
    let (load, target) = (load(&DROP_IN, "-B -i 50ms ."), directory());
    let plan = plan(load.as_ref(), &target);
    let mut printer = load.printer(&plan, &target);
    for request in five() {
        printer.request(&request, 1_000_000_000);
    }
    let end = printer.end(&ToolResult {
        interrupted: true,
        unix_ns: 1_040_000_000,
        ..result(&[])
    });
    assert!(end.stdout.ends_with(" 5 240131300\n"), "{}", end.stdout);
}

#[test]
fn json_is_one_array_with_requests_and_statistics() {
    let text = printed("-J -c 5 -i 50ms .", &five());
    insta::assert_snapshot!(text);
}

#[test]
fn times_outside_the_valid_range_do_not_count() {
    let text = printed("-t 120us -T 140us -c 5 .", &five());
    assert!(text.contains("time=119.1 us (too fast)"), "{text}");
    assert!(text.contains("time=145.9 us (too slow)"), "{text}");
    assert!(
        text.contains("\n1 too fast, 1 too slow, generated 5 requests in"),
        "{text}"
    );
}

#[test]
fn a_run_without_a_request_prints_no_statistics() {
    assert_eq!(printed("-c 5 .", &[]), "");
    assert_eq!(printed("-J -c 5 .", &[]), "[]\n");
}

#[test]
fn failed_request_is_an_error_of_the_run() {
    let mut requests = five();
    requests[2].error = Some("EIO".to_owned());
    let text = printed("-c 5 .", &requests);
    assert!(text.ends_with("ioping: request failed: EIO\n"), "{text}");
}

#[test]
fn deadline_is_the_number_of_requests_that_are_due_before_it() {
    for (line, ops) in [
        ("-w 1.2s -i 1s", Some(2)),
        ("-w 3s -i 1s", Some(3)),
        ("-w 3s -i 1s -c 2", Some(2)),
        ("-w 3s -i 0", None),
        ("-c 5", Some(5)),
    ] {
        let load = load(&DROP_IN, &format!("{line} ."));
        let plan = plan(load.as_ref(), &directory());
        assert_eq!(plan.workloads()[0].stop.ops, ops, "{line}");
    }
}

#[test]
fn numbers_are_those_of_strtod() {
    for (text, bytes) in [
        ("1e3", 1000),
        ("1.5e1k", 15 * 1024),
        ("0x10", 16),
        ("1eb", 1 << 60),
        ("4k", 4096),
    ] {
        let read = suffix::size(text);
        // An exabyte is more than is read here; its suffix is no exponent.
        let wanted = if bytes < 1 << 53 { Ok(bytes) } else { Err(()) };
        assert_eq!(read.map_err(drop), wanted, "{text}");
    }
    assert!(suffix::size("1e").is_err());
}

/// As glibc decides: the short option -w does not take the rest of an ambiguous long name.
#[test]
fn beginning_of_several_long_names_is_ambiguous() {
    for line in ["-work 1 .", "--work 1 ."] {
        match (DROP_IN.start)(&words(line)) {
            Err(error) => assert!(error.text().contains("is ambiguous"), "{line}"),
            Ok(_) => panic!("{line}"),
        }
    }
    let whole = load(&DROP_IN, "-w 3 -work-size 1m .");
    let plan = plan(whole.as_ref(), &directory());
    assert_eq!(plan.scratch_bytes(), Some(1 << 20));
}
