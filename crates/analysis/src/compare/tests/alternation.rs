//! Live comparisons: two runs whose slices followed each other.

use super::*;
use diskproof_model::campaign::CampaignPart;
use diskproof_model::comparison::{Basis, ConditionOutcome};
use diskproof_model::window::{SliceLatency, SliceOp, TimeSlice};

const SECOND_NS: u64 = 1_000_000_000;

/// A side of a live comparison with these rates in its slices.
fn side(letter: &str, campaign: &str, rates: &[u64]) -> Record {
    let slice = |(index, rate): (usize, &u64)| {
        let op = SliceOp {
            latency: Some(SliceLatency {
                mean_ns: 1e9 / *rate as f64,
                p50_ns: Some(SECOND_NS / rate.max(&1)),
                p99_ns: None,
                p99_9_ns: None,
            }),
            ..SliceOp::from_counts(*rate, rate * 8192, SECOND_NS)
        };
        TimeSlice {
            start_ns: 3 * SECOND_NS * index as u64,
            wall_ns: SECOND_NS,
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

/// Two slices that lay seconds apart tell nothing of how the disk varies.
#[test]
fn alternation_of_fewer_than_three_blocks_is_not_compared() {
    for (blocks, compared) in [(1, false), (2, false), (3, true)] {
        let mut a = side("A", "one", &OF_A[..blocks]);
        let mut b = side("B", "one", &[500, 600, 450][..blocks]);
        if blocks == 1 {
            a.measurements[0].data.slices.clear();
            b.measurements[0].data.slices.clear();
        }
        let found = held(&[&a], &[&b]);
        let codes = reasons(rate(&found));
        assert_eq!(codes.is_empty(), compared, "{blocks}");
        assert_eq!(codes.contains(&"few-blocks"), !compared, "{blocks}");
    }
}

/// A side whose slices have these percentiles, in microseconds, and whose latencies together have
/// this one.
fn side_with_tail(letter: &str, slices_us: &[u64], merged_us: u64) -> Record {
    let mut record = side(letter, "one", &vec![1000; slices_us.len()]);
    let data = &mut record.measurements[0].data;
    for (slice, tail_us) in std::iter::zip(&mut data.slices, slices_us) {
        let read = slice.ops.get_mut(&OpKind::Read).unwrap();
        read.latency.as_mut().unwrap().p99_ns = Some(tail_us * 1000);
    }
    let read = data.ops.get_mut(&OpKind::Read).unwrap();
    read.latency = LatencyHistogram::new();
    read.latency.record_many(100_000, 3900);
    read.latency.record_many(merged_us * 1000, 100);
    record
}

/// scipy.stats.t 1.17: of differences of which one alone is not 0, the mean is its standard error,
/// so that t is 1, with six degrees of freedom.
#[test]
fn one_slow_slice_of_one_side_decides_no_percentile() {
    let a = side_with_tail("A", &[118; 7], 118);
    let b = side_with_tail("B", &[118, 118, 118, 1390, 118, 118, 118], 1390);
    let limits = ["random-read-d1.p99>10%"];
    for (first, second, sign) in [(&a, &b, 1.0), (&b, &a, -1.0)] {
        let comparison = compare(&ask(&[first], &[second], &limits)).unwrap();
        let tail = metric(&comparison.candidates[0], "random-read-d1.p99");
        assert_eq!(
            (tail.basis, tail.verdict),
            (Basis::Blocks, Verdict::Undecided)
        );
        close(tail.p_value.unwrap(), 0.355_917_684);
        let ratio = tail.ratio.unwrap();
        let truth = 1390.0_f64 / 118.0;
        assert!(
            (ratio.value.ln() - sign * truth.ln()).abs() < 0.002,
            "{ratio:?}"
        );
        assert!(
            ratio.low_95 < 1.0 && ratio.high_95.unwrap() > 1.0,
            "{ratio:?}"
        );
        assert_ne!(comparison.conditions[0].outcome, ConditionOutcome::Holds);
    }
}

/// The slices of a side all have the same percentile, and that of the other is in the next bucket.
#[test]
fn one_bucket_is_no_difference_of_percentiles() {
    let a = side_with_tail("A", &[1000; 7], 1000);
    let b = side_with_tail("B", &[1001; 7], 1001);
    let compared = held(&[&a], &[&b]);
    let tail = metric(&compared, "random-read-d1.p99");
    assert_eq!(tail.basis, Basis::Blocks);
    assert!(tail.p_value.unwrap() > 0.3, "{:?}", tail.p_value);
    // 10 % of the latencies together are enough that the ranks of a single run are as sure.
    let [a, b] = [a, b].map(|record| Record {
        results: Vec::new(),
        ..record
    });
    let compared = held(&[&a], &[&b]);
    let tail = metric(&compared, "random-read-d1.p99");
    assert_eq!(tail.basis, Basis::WithinRuns);
    assert!(tail.p_value.unwrap() > 0.3, "{:?}", tail.p_value);
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
