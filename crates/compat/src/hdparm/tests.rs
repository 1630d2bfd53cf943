use super::*;
use crate::drop_in::Treatment;
use crate::fixture::{device, load, measurement, plan, text_of, words};
use crate::printer::{DropInError, ToolResult};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::CachePolicy;
use std::collections::BTreeSet;

fn error(line: &str) -> String {
    match (DROP_IN.start)(&words(line)) {
        Err(DropInError::Usage(text)) => text,
        _ => panic!("{line}: no usage error"),
    }
}

#[test]
fn both_timings_run_the_cache_first() {
    let load = load(&DROP_IN, "-tT /dev/sda");
    let target = device(10 << 30);
    let plan = plan(load.as_ref(), &target);
    let names: Vec<&str> = plan.workloads.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["cached-reads", "device-reads"]);
    assert_eq!(plan.workloads[0].cache, CachePolicy::Cached);
    assert_eq!(plan.workloads[1].cache, CachePolicy::Buffered);
    let mut printer = load.printer(&plan, &target);
    let mut text = printer.begin();
    let times_ns = [1_990_000_000, 3_010_000_000];
    for ((workload, count), wall_ns) in plan.workloads.iter().zip([6892, 210]).zip(times_ns) {
        let one = measurement(workload, OpKind::Read, count, wall_ns);
        text.push_str(&printer.measured(&one));
    }
    let end = printer.end(&ToolResult {
        measurements: &[],
        surface: None,
        interrupted: false,
        error: None,
        unix_ns: 0,
        host_name: "vm",
    });
    assert_eq!(end.stdout, "");
    assert_eq!(
        text,
        "\n/dev/sda:\n Timing cached reads:   13784 MB in  1.99 seconds = 6926.63 MB/sec\n \
         Timing buffered disk reads: 420 MB in  3.01 seconds = 139.53 MB/sec\n"
    );
}

#[test]
fn direct_reads_begin_at_the_offset() {
    let load = load(&DROP_IN, "-t --direct --offset 2 /dev/sda");
    let target = device(10 << 30);
    let plan = plan(load.as_ref(), &target);
    assert_eq!(plan.workloads[0].cache, CachePolicy::Direct);
    assert_eq!(plan.workloads[0].span.start_bytes, 2 << 30);
    assert_eq!(
        load.printer(&plan, &target).begin(),
        "\n/dev/sda:\n Timing O_DIRECT disk reads (offset 2 GB): "
    );
}

#[test]
fn settings_are_refused() {
    assert!(error("-W0 /dev/sda").contains("use the real hdparm"));
    assert!(error("-I /dev/sda").contains("diskproof info"));
    assert!(error("/dev/sda").contains("only -t and -T are supported"));
    assert!(error("").contains("Usage:"));
}

#[test]
fn further_devices_follow_with_their_names() {
    let first = load(&DROP_IN, "-t --offset 0 /dev/sda /dev/sdb");
    let next = first.next().unwrap();
    assert_eq!(next.printer, crate::load::NextPrinter::OwnPrinter);
    assert_eq!(next.load.head().target.path().to_str(), Some("/dev/sdb"));
    assert!(next.load.next().is_none());
    let target = device(10 << 30);
    let begin =
        |load: &dyn crate::load::DropInLoad| load.printer(&plan(load, &target), &target).begin();
    assert_eq!(
        begin(next.load.as_ref()),
        "\n/dev/sdb:\n Timing buffered disk reads (offset 0 GB): "
    );
    let quiet = load(&DROP_IN, "-q -t /dev/sda");
    assert_eq!(begin(quiet.as_ref()), " Timing buffered disk reads: ");
}

/// The options in the help of the real one.
#[test]
fn options_are_those_of_the_help() {
    let help = text_of("hdparm-9.65.help");
    let real: BTreeSet<String> = help
        .lines()
        .filter(|line| line.starts_with(" -"))
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect();
    let written = DROP_IN.options.iter().map(|option| match option.short {
        "" => format!("--{}", option.long),
        short => short.to_owned(),
    });
    assert_eq!(written.collect::<BTreeSet<_>>(), real);
    let carried = |option: &&crate::drop_in::DropInOption| option.treatment == Treatment::Carried;
    assert_eq!(DROP_IN.options.iter().filter(carried).count(), 7);
}
