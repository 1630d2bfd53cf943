//! Live comparisons: two runs whose slices followed each other.

use super::*;
use diskproof_model::campaign::CampaignPart;
use diskproof_model::comparison::{Basis, ConditionOutcome};
use diskproof_model::window::{SliceLatency, SliceOp, TimeSlice};

const SECOND: u64 = 1_000_000_000;

/// A side of a live comparison with these rates in its slices.
fn side(letter: &str, campaign: &str, rates: &[u64]) -> Record {
    let slice = |(index, rate): (usize, &u64)| {
        let op = SliceOp {
            latency: Some(SliceLatency {
                mean_ns: 1e9 / *rate as f64,
                p50_ns: Some(SECOND / rate.max(&1)),
                p99_ns: None,
                p99_9_ns: None,
            }),
            ..SliceOp::from_counts(*rate, rate * 8192, SECOND)
        };
        TimeSlice {
            start_ns: 3 * SECOND * index as u64,
            wall_ns: SECOND,
            ops: BTreeMap::from([(OpKind::Read, op)]),
            slot: None,
        }
    };
    let mut record = run_of(wandering(1.0, 4, 1), 4, letter);
    record.measurements[0].data.slices = rates.iter().enumerate().map(slice).collect();
    record.results.push(TaskResult::Compared(CampaignPart {
        id: campaign.to_owned(),
        side: letter.to_owned(),
        prepare: None,
        decisions: Vec::new(),
        beside: Vec::new(),
    }));
    record
}

const OF_A: [u64; 4] = [1000, 1200, 900, 1100];
const OF_B: [u64; 4] = [1080, 1330, 980, 1210];

fn close(value: f64, truth: f64) {
    assert!(
        (value - truth).abs() <= 1e-7 * truth,
        "{value:?} is not {truth:?}"
    );
}

/// numpy and scipy.stats.t 1.17 on `log(b) - log(a)`; the means are geometric.
#[test]
fn alternation_rests_on_the_ratios_within_blocks() {
    let (a, b) = (side("A", "one", &OF_A), side("B", "one", &OF_B));
    let compared = held(&[&a], &[&b]);
    for name in ["random-read-d1.iops", "random-read-d1.throughput"] {
        let rate = metric(&compared, name);
        let ratio = rate.ratio.unwrap();
        close(ratio.value, 1.094_252_633_4);
        close(ratio.low_95, 1.074_655_262_3);
        close(ratio.high_95.unwrap(), 1.114_207_381_4);
        close(rate.p_value.unwrap(), 5.448_034_195e-4);
        assert_eq!((rate.basis, rate.verdict), (Basis::Blocks, Verdict::Better));
        assert_eq!((rate.a.n, rate.variation), (4, None));
    }
    close(rate(&compared).a.value, 1_044.008_681_7);
    close(rate(&compared).b.value, 1_142.409_249_3);
    let mean = metric(&compared, "random-read-d1.mean").ratio.unwrap();
    close(mean.value, 1.0 / 1.094_252_633_4);
    // Percentiles are those of all latencies, which are the same here.
    let median = metric(&compared, "random-read-d1.p50");
    assert_eq!(
        (median.basis, median.ratio.unwrap().value),
        (Basis::Blocks, 1.0)
    );
    // No slice has ten requests beyond it.
    assert_eq!(
        metric(&compared, "random-read-d1.p99").basis,
        Basis::WithinRuns
    );
    states(&compared.notes.join("\n"), &["4 blocks"]);
    let reversed = held(&[&b], &[&a]);
    let back = rate(&reversed);
    assert_eq!(back.verdict, Verdict::Worse);
    close(back.ratio.unwrap().low_95, 1.0 / 1.114_207_381_4);
}

#[test]
fn alternation_needs_one_campaign_and_three_blocks() {
    let basis = |a: &Record, b: &Record| rate(&held(&[a], &[b])).basis;
    let a = side("A", "one", &OF_A);
    assert_eq!(basis(&a, &side("B", "one", &OF_B)), Basis::Blocks);
    assert_eq!(basis(&a, &side("B", "two", &OF_B)), Basis::WithinRuns);
    assert_eq!(basis(&a, &side("A", "one", &OF_B)), Basis::WithinRuns);
    assert_eq!(basis(&a, &side("B", "one", &OF_B[..3])), Basis::Blocks);
    assert_eq!(basis(&a, &side("B", "one", &OF_B[..2])), Basis::WithinRuns);
    let stopped = [1000, 0, 900, 1100];
    assert_eq!(basis(&a, &side("B", "one", &stopped)), Basis::WithinRuns);
    let plain = Record {
        results: Vec::new(),
        ..a.clone()
    };
    assert_eq!(basis(&plain, &side("B", "one", &OF_B)), Basis::WithinRuns);
}

#[test]
fn alternation_bears_other_load_and_decides_conditions() {
    let [mut a, mut b] = [side("A", "one", &OF_A), side("B", "one", &OF_B)];
    for record in [&mut a, &mut b] {
        record.host.load_average = Some("40.00".to_owned());
        let path = "/measurements/0/data/device/others";
        record
            .findings
            .push(fixture::finding("disturbed", Severity::Warning, path));
    }
    let limits = ["random-read-d1.iops>5%"];
    let comparison = compare(&ask(&[&a], &[&b], &limits)).unwrap();
    assert_eq!(comparison.conditions[0].outcome, ConditionOutcome::Holds);
    let compared = &comparison.candidates[0];
    assert_eq!(
        (rate(compared).verdict, &rate(compared).reasons[..]),
        (Verdict::Better, &[][..])
    );
    states(&compared.notes.join("\n"), &["Other programs"]);
    // A pair of independent runs does not compare then.
    b.results.clear();
    let refused = held(&[&a], &[&b]);
    let codes = reasons(rate(&refused));
    assert!(codes.contains(&"disturbed"), "{codes:?}");
}
