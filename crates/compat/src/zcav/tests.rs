use super::*;
use crate::drop_in::Treatment;
use crate::error::DropInError;
use crate::fixture::{device, load, plan, text_of, words};
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
        assert_eq!(load.writes(), operation == OpKind::Write);
        let survey = plan(load.as_ref(), &device(10 * GIB)).survey.unwrap();
        assert_eq!(survey.operation, operation);
    }
}

#[test]
fn loops_and_bad_values_are_refused() {
    for (line, text) in [
        ("-c 3 /dev/sda", "run it again"),
        ("-s 50 /dev/sda", "use from 2 to 20"),
        ("-", "standard input"),
        ("-b 0 /dev/sda", "use from 1"),
    ] {
        match (DROP_IN.start)(&words(line)) {
            Err(DropInError::Usage(error)) => assert!(error.contains(text), "{error}"),
            _ => panic!("{line}: no usage error"),
        }
    }
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
    assert_eq!(count.count(), 1);
}
