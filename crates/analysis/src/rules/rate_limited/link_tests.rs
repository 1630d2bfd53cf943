//! Links that the system does not report, beside volumes that are limited in bytes.

use super::tests::{is_small_and_deep, medium_noise, set};
use crate::expect::Expected;
use crate::fixture::{self, states};
use crate::limiter::Unit;
use crate::rules::rate_limited::plateaus_without_known_credit;
use diskproof_model::expectation::ExpectationOutcome;
use diskproof_model::finding::{Finding, RateLimit, Severity};
use diskproof_model::measurement::Measurement;
use diskproof_model::record::Record;
use diskproof_model::series::Cell;
use diskproof_model::verdict::TrustLevel;

const MIB: f64 = (1u64 << 20) as f64;
const BLOCK_BYTES: u32 = 256 << 10;

/// Lets a workload move so many bytes per second, as evenly as counting allows.
fn pace(measurement: &mut Measurement, bytes_per_second: f64) {
    measurement.workload.block_bytes = BLOCK_BYTES;
    let per_cell = bytes_per_second / f64::from(BLOCK_BYTES) / 100.0;
    for op in measurement.ops.values_mut() {
        let mut counted = 0;
        for (number, cell) in (1u32..).zip(&mut op.series.cells) {
            let due = (per_cell * f64::from(number)) as u64;
            *cell = Cell {
                ops: due - counted,
                bytes: (due - counted) * u64::from(BLOCK_BYTES),
                ..Cell::default()
            };
            counted = due;
        }
        let total = op.series.total();
        (op.count, op.bytes) = (total.ops, total.bytes);
    }
}

/// A disk of a virtual machine that streams at this rate, and answers small blocks as a medium
/// does.
fn streams_at(bytes_per_second: f64) -> Record {
    fixture::changed(|run| {
        run.facts.host.hypervisor = Some("kvm".to_owned());
        run.measurements
            .retain(|measurement| measurement.workload.name != "mixed-sequential");
        for measurement in &mut run.measurements {
            match measurement.workload.name.as_str() {
                "sequential-write" | "sequential-read" => pace(measurement, bytes_per_second),
                _ if is_small_and_deep(measurement) => set(measurement, 1000, medium_noise),
                _ => {}
            }
        }
    })
}

fn finding<'a>(record: &'a Record, code: &str) -> Option<&'a Finding> {
    record.findings.iter().find(|finding| finding.code == code)
}

fn trust(record: &Record) -> (TrustLevel, &str) {
    let trust = &record.verdict.as_ref().unwrap().trust;
    (trust.level, &trust.why)
}

/// The sentence of the verdict on what was not tested.
fn names_test_in_bytes(record: &Record) -> bool {
    let caveats = &record.verdict.as_ref().unwrap().caveats;
    caveats
        .iter()
        .any(|caveat| caveat.contains("would not have shown") && caveat.contains("--bs 1M"))
}

/// Rates of full links. Most are no round figures, so nothing is said of them; those that are have
/// a note, and none makes the figures doubtful.
#[test]
fn full_link_is_no_volume() {
    let mut noted = 0;
    for rate in [
        33e6,
        41.7e6,
        112.4e6,
        117.6e6,
        270e6,
        283.3e6,
        260.0 * MIB,
        410e6,
        430e6,
        520e6,
        532e6,
        545e6,
        560e6,
        1087e6,
        1173e6,
        3400e6,
        6800e6,
    ] {
        let record = streams_at(rate);
        assert_eq!(trust(&record).0, TrustLevel::Reliable, "{rate}");
        assert!(names_test_in_bytes(&record), "{rate}");
        let untested = finding(&record, "burst-untested");
        let limited = finding(&record, "rate-limited");
        assert_eq!(untested.is_some(), limited.is_some(), "{rate}");
        if let (Some(untested), Some(limited)) = (untested, limited) {
            noted += 1;
            assert_eq!(untested.severity, Severity::Note, "{rate}");
            states(&limited.claim, &["a link or a limiter", "full link"]);
            states(trust(&record).1, &["not known"]);
            // Neither is said to have set the rate.
            for row in &record.measurements {
                let limited_by = row.figures.limited_by.as_ref().unwrap();
                assert_ne!(limited_by.limit, RateLimit::Cap, "{rate}");
            }
        }
    }
    assert!(noted >= 6, "{noted}");
}

/// A rate that people choose, and that a full link may have by chance.
#[test]
fn chosen_rate_of_a_link_names_both() {
    for (rate, has_link) in [(550e6, true), (500e6, false)] {
        let record = streams_at(rate);
        for code in ["rate-limited", "burst-untested"] {
            let claim = &finding(&record, code).unwrap().claim;
            assert_eq!(claim.contains("exactly that rate"), has_link, "{claim}");
        }
        let threshold: Expected = "sequential-read.throughput>=300MB/s".parse().unwrap();
        let outcome = threshold.evaluate(&record).outcome();
        let is_undecided = outcome == ExpectationOutcome::Undecided;
        assert_eq!(is_undecided, !has_link, "{rate}");
    }
}

/// Volumes that are limited in bytes, some of them at rates between those of a link.
#[test]
fn volume_that_is_limited_in_bytes_is_no_link() {
    for rate in [
        30e6,
        40e6,
        60e6,
        90e6,
        110e6,
        125e6,
        200e6,
        250e6,
        400e6,
        500e6,
        550e6,
        1e9,
        32.0 * MIB,
        125.0 * MIB,
        128.0 * MIB,
        250.0 * MIB,
        512.0 * MIB,
    ] {
        let record = streams_at(rate);
        let untested = finding(&record, "burst-untested");
        assert_eq!(untested.unwrap().severity, Severity::Warning, "{rate}");
        assert!(finding(&record, "rate-limited").is_some(), "{rate}");
        assert_eq!(trust(&record).0, TrustLevel::Doubtful, "{rate}");
        assert!(names_test_in_bytes(&record), "{rate}");
    }
}

/// At the rate of a link, a limit of requests, the name of a provider and faster reads refute it.
#[test]
fn plateau_with_signs_of_a_volume_is_no_link() {
    let links = |record: &Record| {
        let mut links = Vec::new();
        for plateau in plateaus_without_known_credit(record) {
            if plateau.unit == Unit::Bytes {
                links.push(plateau.link.map(|link| link.name));
            }
        }
        links
    };
    let link = streams_at(545e6);
    assert_eq!(links(&link), [Some("SATA at 6 Gbit/s")]);
    let mut named = link.clone();
    for layer in &mut named.targets[0].layers {
        layer.vendor = Some("Google".to_owned());
    }
    assert_eq!(links(&named), [None]);
    let mut exceeded = link.clone();
    let reads = fixture::measured(&mut exceeded, "random-read-d1");
    for op in reads.figures.ops.values_mut() {
        op.throughput.value = 600e6;
    }
    assert_eq!(links(&exceeded), [None]);
    let limited = fixture::changed(|run| {
        run.facts.host.hypervisor = Some("kvm".to_owned());
        for measurement in &mut run.measurements {
            match measurement.workload.name.as_str() {
                "sequential-write" | "sequential-read" => pace(measurement, 545e6),
                _ if is_small_and_deep(measurement) => set(measurement, 3000, |_| 0),
                _ => {}
            }
        }
    });
    assert_eq!(links(&limited), [None]);
    // Both limits are untested, and the warning names both tests.
    let untested = finding(&limited, "burst-untested").unwrap();
    assert_eq!(untested.severity, Severity::Warning);
    states(&untested.claim, &["3000/s", "545 MB/s"]);
    states(&untested.remedy, &["--bs 8k", "--bs 1M"]);
}
