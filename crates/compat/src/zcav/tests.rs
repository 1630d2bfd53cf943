use super::*;
use crate::drop_in::Treatment;
use crate::fixture::{device, load, plan, result, surface, text_of};
use crate::load::NextPrinter;
use crate::printer::ToolResult;
use std::collections::BTreeSet;

const GIB: u64 = 1 << 30;

#[test]
fn passes_are_averaged_without_the_fastest_and_the_slowest_third() {
    let first = load(&DROP_IN, "-c 3 -l out.log /dev/sda");
    let second = first.next().unwrap();
    let third = second.load.next().unwrap();
    assert_eq!(third.printer, NextPrinter::SamePrinter);
    assert!(third.load.next().is_none());
    let target = device(GIB);
    let plan = plan(first.as_ref(), &target);
    let survey = plan.survey().unwrap();
    let mut printer = first.printer(&plan, &target);
    let mib = f64::from(1 << 20);
    let mut texts = Vec::new();
    let mut files = Vec::new();
    for rate in [64.0, 512.0, 128.0] {
        let surface = surface(survey, &[rate * mib, 256.0 * mib]);
        let result = ToolResult {
            surface: Some(&surface),
            ..result(&[])
        };
        texts.push(printer.end(&result));
        files.extend(printer.files(&result));
    }
    assert!(texts.iter().all(|text| text.stdout.is_empty()));
    assert_eq!(
        texts[1].stderr,
        "# Finished loop 2, on device /dev/sda at 0:00:00\n"
    );
    assert_eq!(files.len(), 1);
    assert!(
        files[0].text.ends_with(
            "megabytes per second.\n#loops: 3\n#block offset (GiB), MiB/s, time\n\
             0.00 128.00 4.000\n0.50 256.00 2.000\n"
        ),
        "{}",
        files[0].text
    );
    assert_eq!(files[0].text.lines().count(), 7);
}

/// The first and the last requests of a survey are not timed, yet zcav counts them.
#[test]
fn the_total_has_every_byte_of_the_blocks() {
    let (load, target) = (load(&DROP_IN, "/dev/sda"), device(GIB));
    let plan = plan(load.as_ref(), &target);
    let rate = 128.0 * f64::from(1 << 20);
    let mut surface = surface(plan.survey().unwrap(), &[rate, rate]);
    for (point, offset) in surface.curve.iter_mut().zip([8 << 20, 0]) {
        point.offset_bytes += offset;
        point.bytes -= 8 << 20;
        point.busy_ns = (point.bytes as f64 / rate * 1e9) as u64;
    }
    let result = |interrupted| ToolResult {
        surface: Some(&surface),
        interrupted,
        ..result(&[])
    };
    let end = |interrupted| {
        load.printer(&plan, &target)
            .end(&result(interrupted))
            .stdout
    };
    assert!(end(false).contains("0.50 128.00 4.000\n# Read 1024 megs in 8 seconds"));
    assert!(end(true).contains("0.50 128.00 3.938\n# Read 1016 megs"));
}

/// The rate before the first error is that of no block.
#[test]
fn block_whose_requests_fail_has_no_rate_and_is_named() {
    let (load, target) = (load(&DROP_IN, "/dev/sda"), device(GIB));
    let plan = plan(load.as_ref(), &target);
    let rate = 128.0 * f64::from(1 << 20);
    let mut surface = surface(plan.survey().unwrap(), &[rate, rate]);
    surface.curve[1].errors = 3;
    let text = load.printer(&plan, &target).end(&ToolResult {
        surface: Some(&surface),
        ..result(&[])
    });
    assert!(!text.stdout.contains("\n0.50 "), "{}", text.stdout);
    assert!(text.stdout.contains("# Read 512 megs"), "{}", text.stdout);
    let failed = "# 1 block could not be read, the first at 0.50 GiB\n";
    assert!(text.stderr.contains(failed), "{}", text.stderr);
}

/// The options in the usage of the real one.
#[test]
fn options_are_those_of_the_usage() {
    let usage = text_of("zcav-2.00a.help");
    let marked = usage.split('[').skip(1);
    let real: BTreeSet<&str> = marked
        .filter_map(|rest| rest.get(..2))
        .filter(|option| option.starts_with('-'))
        .collect();
    let ours: BTreeSet<&str> = DROP_IN.options.iter().map(|option| option.short).collect();
    assert_eq!(ours, real);
    let refused = |treatment| matches!(treatment, Treatment::Refused(_));
    let count = DROP_IN
        .options
        .iter()
        .filter(|option| refused(option.treatment));
    assert_eq!(count.count(), 0);
}

/// Where zcav 2.00a reads, by strace.
#[test]
fn skipped_blocks_are_those_of_the_tool() {
    for (line, start, points, length) in [
        ("-b 4 -s 2", 0, 16, 124),
        ("-b 4 -s 3", 0, 11, 124),
        ("-b 5 -s 3", 0, 9, 125),
        ("-b 4 -s 2 -r 8:40", 12, 8, 60),
        ("-b 4 -s 2 -r 40", 0, 10, 76),
        ("-b 4 -r 9:40", 8, 8, 32),
        ("-b 40 -s 2", 0, 2, 120),
    ] {
        let load = load(&DROP_IN, &format!("{line} /dev/sda"));
        let plan = plan(load.as_ref(), &device(128 << 20));
        let survey = plan.survey().unwrap();
        let span = span_of(start << 20, length << 20);
        assert_eq!(
            (survey.span, survey.curve.unwrap().points),
            (span, points),
            "{line}"
        );
    }
    let plan = plan(load(&DROP_IN, "-s 2 /dev/sda").as_ref(), &device(GIB));
    let survey = plan.survey();
    let block_bytes = 512 << 20;
    assert_eq!(
        survey.unwrap().curve.unwrap().coverage,
        Coverage::Blocks { block_bytes }
    );
}

#[test]
fn heading_comes_before_the_error_of_a_single_pass() {
    for (line, heading) in [("", HEADING), ("-c 2", "")] {
        let load = load(&DROP_IN, &format!("{line} /dev/sda"));
        let target = device(1 << 20);
        let context = crate::load::PlanContext {
            target: &target,
            seed: 1,
            argv: &[],
        };
        let Err(DropInError::Code(2, text)) = load.plan(&context) else {
            panic!("{line}");
        };
        assert_eq!(text.stdout, heading);
        assert!(text.stderr.contains("too small"));
    }
}
