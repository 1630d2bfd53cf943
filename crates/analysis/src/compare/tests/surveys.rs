//! Curves and access times.

use super::*;
use diskproof_model::data::RunData;

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
    let template = fixture::run().1.remove(1);
    let survey = Survey {
        operation: OpKind::Read,
        span: Default::default(),
        curve: None,
        burst: None::<BurstPlan>,
        access: None,
        scan: None,
        engine: EngineChoice::Auto,
    };
    let surface = SurfaceMeasurement {
        target: 0,
        survey,
        span_start_bytes: 0,
        span_bytes: 1 << 40,
        start_ns: 0,
        wall_ns: 1,
        curve_ns: 1_000_000_000,
        curve_cpu: template.cpu,
        engine: EngineKind::Uring,
        cache: template.cache.clone(),
        curve,
        burst: None,
        access,
        access_errors: BTreeMap::new(),
        scan: None,
        starved_ns: 0,
        asked: template.asked,
        device: template.device.clone(),
        interrupted: false,
        hang: None,
        stalls: Vec::new(),
        interruptions: Vec::new(),
    };
    let mut run = fixture::run();
    run.0.run_id = format!("{speed} {seed}");
    run.1.clear();
    crate::judge::judge(
        run.0,
        &RunData {
            measurements: run.1,
            surface: Some(surface),
            ..RunData::default()
        },
        &[],
    )
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
    assert!(
        (1.026..1.034).contains(&ratio.value)
            && ratio.low_95 > 1.022
            && ratio.high_95.unwrap() < 1.038,
        "the shape is no error: {ratio:?}"
    );
    let slowest = metric(&candidate, "curve.min").ratio.unwrap();
    assert!(
        slowest.high_95.unwrap() - slowest.low_95 > 0.04,
        "one position alone is known to 1 %: {slowest:?}"
    );
    assert_eq!(
        metric(&held(&[&a], &[&surveyed_record(1.0, 3)]), "curve.average").verdict,
        Verdict::Same
    );
    let access = metric(&candidate, "access.random");
    assert!(
        access.headline && access.ratio.is_some_and(|ratio| ratio.value < 1.0),
        "{access:?}"
    );
    assert!(names(&candidate).contains(&"access.full-stroke"));
    let mut shorter = surveyed_record(1.0, 4);
    shorter.surface.as_mut().unwrap().span_bytes /= 2;
    assert!(
        held(&[&a], &[&shorter])
            .metrics
            .iter()
            .all(|m| m.verdict == Verdict::NotComparable)
    );
    assert_eq!(
        held(&[&a], &[&fixture::record()])
            .unmatched
            .iter()
            .filter(|u| u.only == Holder::A)
            .count(),
        2
    );
}

#[test]
fn survey_is_tainted_by_findings_on_it() {
    let (a, mut b) = (surveyed_record(1.0, 1), surveyed_record(1.0, 2));
    b.findings.push(Finding {
        code: "disturbed".to_owned(),
        title: None,
        severity: Severity::Warning,
        claim: "x".to_owned(),
        evidence: vec![Evidence {
            path: "/surface/device/read_bytes".to_owned(),
            observed: 1.0,
            threshold: 0.0,
            unit: "B".to_owned(),
        }],
        remedy: "y".to_owned(),
        reproduce: None,
    });
    assert!(
        held(&[&a], &[&b])
            .metrics
            .iter()
            .all(|m| m.verdict == Verdict::NotComparable)
    );
    b.findings[0].evidence[0].path = "/surface/seeks/random/min_ns".to_owned();
    let candidate = held(&[&a], &[&b]);
    assert!(
        candidate
            .metrics
            .iter()
            .all(|m| (m.verdict == Verdict::NotComparable) == (m.subject == "access")),
        "{candidate:#?}"
    );
}
