//! Curves and access times.

use super::*;
use crate::fixture::surveyed::{self, SurveyRun, SurveyedDisk};
use diskproof_model::measurement::Hang;
use diskproof_model::target::TargetKind;

/// A survey whose curve falls from 200 to 100 MB/s, with noise of 1 % at each position.
fn surveyed_record(speed: f64, seed: u64) -> Record {
    let mut rng = TestRng(seed);
    let curve = (0..100u32).map(|i| {
        let rate = speed * (200e6 - 1e6 * f64::from(i)) * (1.0 + 0.01 * rng.normal());
        let (bytes, offset_bytes) = (8 << 20, (1u64 << 40) / 100 * u64::from(i));
        CurvePoint {
            bytes_per_second: rate,
            latency_max_ns: 0,
            ..CurvePoint::read_once(offset_bytes, bytes, (bytes as f64 / rate * 1e9) as u64)
        }
    });
    let curve: Vec<CurvePoint> = curve.collect();
    let access = (0..1000).map(|i| AccessPoint {
        seek: if i % 2 == 0 {
            SeekPattern::Random
        } else {
            SeekPattern::FullStroke
        },
        offset_bytes: 0,
        distance_bytes: 0,
        latency_ns: (8e6 / speed * (0.7 + 0.3 * rng.exponential())) as u64,
    });
    let access = access.collect();
    let mut facts = fixture::run().facts;
    facts.run_id = format!("{speed} {seed}");
    let surface = SurfaceMeasurement {
        span_bytes: 1 << 40,
        curve,
        access,
        burst: None,
        ..SurveyedDisk::rotating().survey(1)
    };
    surveyed::judge(SurveyRun { facts, surface })
}

/// A curve that was cut short is one of the outer zones. A plan with short strokes also has
/// workloads, and the survey of a run that ended during these is whole.
#[test]
fn curve_that_was_cut_short_is_not_comparable() {
    let whole = surveyed_record(1.0, 1);
    let is_refused = |change: fn(&mut Record)| {
        let mut record = surveyed_record(1.2, 2);
        record.partial = true;
        let stroke = fixture::record().plan.workloads()[0].clone();
        record.plan.workloads_mut().push(stroke);
        change(&mut record);
        let candidate = held(&[&whole], &[&record]);
        let found = reasons(metric(&candidate, "curve.average"));
        found.contains(&"interrupted")
    };
    assert!(!is_refused(|_| {}));
    assert!(is_refused(|record| record.plan.workloads_mut().clear()));
    assert!(is_refused(|record| {
        record.surface_mut().unwrap().data.interrupted = true;
    }));
    assert!(is_refused(|record| {
        record.surface_mut().unwrap().data.hang = Some(Hang {
            since_ns: 1_000_000_000,
            lasted_ns: 45_000_000_000,
            requests: 1,
            late: false,
        });
    }));
}

#[test]
fn the_shape_of_a_curve_is_no_error_of_it() {
    let (a, b) = (surveyed_record(1.0, 1), surveyed_record(1.03, 2));
    let candidate = held(&[&a], &[&b]);
    let average = metric(&candidate, "curve.average");
    assert_eq!(
        (average.verdict, average.basis, average.headline),
        (Verdict::FasterOnce, Basis::Positions, true),
        "{average:?}"
    );
    let ratio = average.ratio.unwrap();
    assert!((1.026..1.034).contains(&ratio.value), "{ratio:?}");
    // The shape is no error.
    assert!(
        ratio.low_95 > 1.022 && ratio.high_95.unwrap() < 1.038,
        "{ratio:?}"
    );
    // One position alone is known to 1 %.
    let slowest = metric(&candidate, "curve.min").ratio.unwrap();
    let width = slowest.high_95.unwrap() - slowest.low_95;
    assert!((0.04..0.068).contains(&width), "{slowest:?}");
    let same = held(&[&a], &[&surveyed_record(1.0, 3)]);
    assert_eq!(metric(&same, "curve.average").verdict, Verdict::Same);
    let access = metric(&candidate, "access.random");
    assert!(
        access.headline && access.ratio.unwrap().value < 1.0,
        "{access:?}"
    );
    assert!(names(&candidate).contains(&"access.full-stroke"));
    let mut shorter = surveyed_record(1.0, 4);
    shorter.surface_mut().unwrap().data.span_bytes /= 2;
    assert_all(&held(&[&a], &[&shorter]), Verdict::NotComparable);
    let unmatched = held(&[&a], &[&fixture::record()]).unmatched;
    assert_eq!(unmatched.iter().filter(|u| u.only == Holder::A).count(), 2);
}

/// Random accesses take as long as they take: more of them are needed, not more time.
#[test]
fn undecided_access_time_needs_more_accesses() {
    let (a, b) = (surveyed_record(1.0, 1), surveyed_record(1.015, 2));
    let candidate = held(&[&a], &[&b]);
    let access = metric(&candidate, "access.random");
    assert_eq!(access.verdict, Verdict::Undecided, "{access:?}");
    let needed = access.needed.unwrap();
    assert!(needed.times > 1.0, "{needed:?}");
    assert_eq!((needed.measure_ns, needed.runs), (None, None));
}

/// Less than a mebibyte at the end of the target may be missing.
#[test]
fn surveys_of_whole_disks_compare_whatever_their_size() {
    let whole = surveyed_record(1.0, 1);
    for (missing_bytes, is_comparable) in [(0, true), ((1 << 20) - 1, true), (1 << 20, false)] {
        let mut larger = surveyed_record(1.0, 2);
        larger.targets[0].size_bytes = 2 << 40;
        larger.surface_mut().unwrap().data.span_bytes = (2 << 40) - missing_bytes;
        let mut smaller = whole.clone();
        smaller.targets[0].size_bytes = 1 << 40;
        let candidate = held(&[&smaller], &[&larger]);
        let found = reasons(metric(&candidate, "curve.average"));
        assert_eq!(!found.contains(&"span-differs"), is_comparable, "{found:?}");
    }
}

/// The half-width of the mean time of accesses that come in runs of so many equal ones.
fn half_width_of_runs(length: usize) -> f64 {
    let mut record = surveyed_record(1.0, 1);
    let access = &mut record.surface_mut().unwrap().data.access;
    // Random accesses take turns with others.
    for (index, point) in access.iter_mut().enumerate() {
        let number = (index / 2 / length) as u64;
        point.latency_ns = 6_000_000 + (4e6 * TestRng(number).share()) as u64;
    }
    let candidate = held(&[&record], &[&surveyed_record(1.0, 2)]);
    metric(&candidate, "access.random").a.half_width_95.unwrap()
}

/// Accesses that are alike carry less information.
#[test]
fn interval_of_accesses_that_are_alike_is_wider() {
    let (alone, in_runs) = (half_width_of_runs(1), half_width_of_runs(10));
    assert!(in_runs > 2.0 * alone, "{alone} {in_runs}");
}

/// Nine positions do not show how much a curve varies, ten do.
#[test]
fn slowest_point_of_few_positions_has_no_ratio() {
    for (positions, has_ratio) in [(9, false), (10, true)] {
        let mut sides = [surveyed_record(1.0, 1), surveyed_record(1.03, 2)];
        for record in &mut sides {
            record.surface_mut().unwrap().data.curve.truncate(positions);
        }
        let candidate = held(&[&sides[0]], &[&sides[1]]);
        let slowest = metric(&candidate, "curve.min");
        assert_eq!(slowest.ratio.is_some(), has_ratio, "{positions}");
    }
}

#[test]
fn survey_is_tainted_by_findings_on_it() {
    let (a, mut b) = (surveyed_record(1.0, 1), surveyed_record(1.0, 2));
    let mut found = |path: &str| {
        b.findings = vec![fixture::finding("disturbed", Severity::Warning, path)];
        held(&[&a], &[&b])
    };
    for place in ["device/read_bytes", "zero_blocks/zero"] {
        assert_all(
            &found(&format!("/results/0/data/{place}")),
            Verdict::NotComparable,
        );
    }
    for metric in found("/results/0/figures/seeks/random/min_ns").metrics {
        assert_eq!(
            metric.verdict == Verdict::NotComparable,
            metric.subject == "access",
            "{metric:?}"
        );
    }
}

type SurveyChange = fn(&mut Record);

/// Each change of the conditions alone makes these parts of a survey incomparable, for the reason
/// with this code. The other parts stay comparable.
fn incomparable_surveys() -> [(&'static str, &'static [&'static str], SurveyChange); 7] {
    const ALL: &[&str] = &["access", "burst", "curve"];
    [
        ("target-kind-differs", ALL, |record| {
            let kind = &mut record.targets[0].kind;
            *kind = if *kind == TargetKind::File {
                TargetKind::BlockDevice
            } else {
                TargetKind::File
            };
        }),
        ("operation-differs", ALL, |record| {
            record.surface_mut().unwrap().data.survey.operation = OpKind::Write;
        }),
        ("cache-differs", ALL, |record| {
            record.surface_mut().unwrap().data.cache.used = CachePolicy::Buffered;
        }),
        ("engine-differs", ALL, |record| {
            record.surface_mut().unwrap().data.engine = EngineKind::Mmap;
        }),
        ("span-differs", &["access", "curve"], |record| {
            record.surface_mut().unwrap().data.span_bytes /= 2;
        }),
        ("io-errors", &["access", "burst"], |record| {
            let errors = &mut record.surface_mut().unwrap().data.access_errors;
            errors.insert("EIO".to_owned(), 1);
        }),
        ("io-errors", &["curve"], |record| {
            record.surface_mut().unwrap().data.curve[3].errors = 1;
        }),
    ]
}

#[test]
fn condition_of_a_survey_matters_to_its_own_parts() {
    let healthy = surveyed::record();
    for (code, parts, change) in incomparable_surveys() {
        let mut changed = surveyed::record();
        changed.run_id = "changed".to_owned();
        change(&mut changed);
        let candidate = held(&[&healthy], &[&changed]);
        let mut refused = BTreeMap::new();
        for metric in &candidate.metrics {
            let is_refused = reasons(metric).contains(&code);
            refused.insert(metric.subject.as_str(), is_refused);
        }
        for (subject, is_refused) in refused {
            assert_eq!(is_refused, parts.contains(&subject), "{code} of {subject}");
        }
    }
}
