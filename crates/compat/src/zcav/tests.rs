use super::*;
use crate::drop_in::Treatment;
use crate::fixture::{device, load, plan, surface, text_of, words};
use crate::load::NextPrinter;
use crate::printer::{DropInError, ToolResult};
use diskproof_model::measurement::OpKind;
use diskproof_model::surface::Coverage;
use std::collections::BTreeSet;

const GIB: u64 = 1 << 30;

#[test]
fn blocks_of_the_range_become_points() {
    let whole = plan(load(&DROP_IN, "-f/dev/sda").as_ref(), &device(10 * GIB));
    let survey = whole.survey.unwrap();
    assert_eq!(survey.curve.unwrap().points, 20);
    assert_eq!(survey.curve.unwrap().coverage, Coverage::Full);
    let part = plan(
        load(&DROP_IN, "-b 256:1 -r 1024:4096 -s 2 -f /dev/sda").as_ref(),
        &device(10 * GIB),
    );
    let survey = part.survey.unwrap();
    assert_eq!(
        (survey.span.start_bytes, survey.span.length_bytes),
        (GIB, Some(11 * GIB / 4))
    );
    assert_eq!(survey.curve.unwrap().points, 6);
    let sample_bytes = Some(256 << 20);
    assert_eq!(
        survey.curve.unwrap().coverage,
        Coverage::Sampled { sample_bytes }
    );
}

#[test]
fn writing_is_a_survey_that_writes() {
    for (line, operation) in [("-w /dev/sda", OpKind::Write), ("/dev/sda", OpKind::Read)] {
        let load = load(&DROP_IN, line);
        assert_eq!(load.head().writes, operation == OpKind::Write);
        let survey = plan(load.as_ref(), &device(10 * GIB)).survey.unwrap();
        assert_eq!(survey.operation, operation);
    }
}

#[test]
fn bad_values_are_refused() {
    for (line, text) in [
        ("-c 101 /dev/sda", "use a number from 1 to 100"),
        ("-s 50 /dev/sda", "use a number from 2 to 20"),
        ("-", "standard input"),
        ("-b 0 /dev/sda", "use from 1"),
        ("-b 256: /dev/sda", "not a number of MiB"),
        ("/dev/sda -l out.log", "name its device after it"),
    ] {
        match (DROP_IN.start)(&words(line)) {
            Err(DropInError::Usage(error)) => assert!(error.contains(text), "{error}"),
            _ => panic!("{line}: no usage error"),
        }
    }
}

#[test]
fn passes_are_averaged_without_the_fastest_and_the_slowest_third() {
    let first = load(&DROP_IN, "-c 3 -l out.log /dev/sda");
    let second = first.next().unwrap();
    let third = second.load.next().unwrap();
    assert_eq!(third.printer, NextPrinter::SamePrinter);
    assert!(third.load.next().is_none());
    let target = device(GIB);
    let plan = plan(first.as_ref(), &target);
    let survey = plan.survey.clone().unwrap();
    let mut printer = first.printer(&plan, &target);
    let mib = f64::from(1 << 20);
    let mut texts = Vec::new();
    let mut files = Vec::new();
    for rate in [64.0, 512.0, 128.0] {
        let surface = surface(&survey, &[rate * mib, 256.0 * mib]);
        let result = ToolResult {
            measurements: &[],
            surface: Some(&surface),
            interrupted: false,
            error: None,
            unix_ns: 0,
            host_name: "vm",
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

/// Each device has its own passes, its own printer, and the log before its name.
#[test]
fn devices_follow_each_other() {
    let mut load = load(&DROP_IN, "-c 2 -l a.log /dev/sda -f /dev/sdb");
    let mut order = Vec::new();
    loop {
        order.push(load.head().target.path().display().to_string());
        let Some(next) = load.next() else { break };
        order.push(format!("{:?}", next.printer));
        load = next.load;
    }
    let both = "/dev/sda SamePrinter /dev/sda OwnPrinter /dev/sdb SamePrinter /dev/sdb";
    assert_eq!(order.join(" "), both);
}

/// The first and the last requests of a survey are not timed, yet zcav counts them.
#[test]
fn the_total_has_every_byte_of_the_blocks() {
    let (load, target) = (load(&DROP_IN, "/dev/sda"), device(GIB));
    let plan = plan(load.as_ref(), &target);
    let rate = 128.0 * f64::from(1 << 20);
    let mut surface = surface(plan.survey.as_ref().unwrap(), &[rate, rate]);
    for (point, offset) in surface.curve.iter_mut().zip([8 << 20, 0]) {
        point.offset_bytes += offset;
        point.bytes -= 8 << 20;
        point.busy_ns = (point.bytes as f64 / rate * 1e9) as u64;
    }
    let result = |interrupted| ToolResult {
        measurements: &[],
        surface: Some(&surface),
        interrupted,
        error: None,
        unix_ns: 0,
        host_name: "vm",
    };
    let end = |interrupted| {
        load.printer(&plan, &target)
            .end(&result(interrupted))
            .stdout
    };
    assert!(end(false).contains("0.50 128.00 4.000\n# Read 1024 megs in 8 seconds"));
    assert!(end(true).contains("0.50 128.00 3.938\n# Read 1016 megs"));
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
