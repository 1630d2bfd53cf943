//! Says why a threshold stays open although its figure is of the disk: the machine kept the program
//! waiting, which explains why the threshold was missed, a sustained load is not steady yet, or
//! only a rate that may be that of a burst meets it.

use super::observed::Observed;
use super::{Expected, Quantity, Relation};
use crate::rules::perhaps_burst;
use crate::waiting;
use diskproof_model::expectation::ExpectationOutcome;
use diskproof_model::proof::FigureSource;
use diskproof_model::record::Record;
use diskproof_model::units::format_duration;

impl Expected {
    /// The reason why an outcome stays open; `None` where the figure decides.
    pub(super) fn reason_to_stay_open(
        &self,
        record: &Record,
        source: FigureSource,
        figure: Observed,
        outcome: ExpectationOutcome,
    ) -> Option<String> {
        match outcome {
            ExpectationOutcome::Missed => self.waiting_that_explains(record, source, figure),
            ExpectationOutcome::Met => self
                .unsteady_load(record)
                .or_else(|| self.burst_that_meets(record, source, figure)),
            ExpectationOutcome::Undecided => None,
        }
    }

    /// The finding that the program waited for a processor, where that alone may have missed the
    /// threshold. Waiting makes rates lower and latencies longer, never the reverse.
    fn waiting_that_explains(
        &self,
        record: &Record,
        source: FigureSource,
        figure: Observed,
    ) -> Option<String> {
        let FigureSource::Measurement(index) = source else {
            return None;
        };
        let finding = waiting::finding(record, index)?;
        if self.is_met_without_waits(record, index, figure) {
            Some(format!("{} ({})", finding.heading(), finding.code))
        } else {
            None
        }
    }

    /// True if the figure may meet the threshold once its waits are taken away.
    fn is_met_without_waits(&self, record: &Record, index: usize, figure: Observed) -> bool {
        let Quantity::Figure(metric) = self.quantity else {
            return false;
        };
        match waiting::figure_without_waits(record, index, metric, figure.ends_of_waits()) {
            Some(best) => self.relation.holds(best, self.threshold),
            None => false,
        }
    }

    /// Says that only a rate which may be that of a burst meets the threshold, and how long a test
    /// of it takes. Of a latency, the same holds for the rate that it comes from: with as many
    /// requests in flight it grows as the rate falls. `None` where the part of the rate that lasts
    /// meets it.
    fn burst_that_meets(
        &self,
        record: &Record,
        source: FigureSource,
        figure: Observed,
    ) -> Option<String> {
        let (FigureSource::Measurement(index), Quantity::Figure(metric)) = (source, self.quantity)
        else {
            return None;
        };
        let needed_share = match (metric.unit, self.relation) {
            ("1/s" | "B/s", Relation::AtLeast | Relation::Above) => self.threshold / figure.value,
            ("ns", Relation::AtMost | Relation::Below) => figure.value / self.threshold,
            _ => return None,
        };
        let burst = perhaps_burst(record, index)?;
        if needed_share <= burst.lasting_share {
            return None;
        }
        Some(match burst.test_ns {
            Some(test_ns) => format!(
                "The rate may be that of a burst (burst-untested); a run of {} without a pause \
                 shows it",
                format_duration(test_ns)
            ),
            None => "The rate may be that of a burst (burst-untested)".to_owned(),
        })
    }

    /// What a load needs that is not steady yet; `None` of another figure, and of one that is
    /// steady. A burst, or an empty cache, meets what the load does not sustain.
    fn unsteady_load(&self, record: &Record) -> Option<String> {
        let sustained = record.sustain()?;
        let state = &sustained.steady_state;
        let is_of_time = match self.quantity {
            Quantity::Figure(metric) => matches!(metric.unit, "1/s" | "B/s" | "ns"),
            _ => false,
        };
        let is_paced = record.measurements.iter().any(|row| {
            row.data.workload.name == sustained.workload && row.data.workload.is_paced()
        });
        if sustained.workload != self.workload || state.is_steady || !is_of_time || is_paced {
            return None;
        }
        Some(match state.more_ns {
            Some(more_ns) => format!(
                "The load is not steady yet; at least {} more",
                format_duration(more_ns)
            ),
            None => "The load is not steady yet".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture;
    use crate::rules::test_capped;
    use diskproof_model::expectation::{Expectation, ExpectationOutcome};
    use diskproof_model::measurement::Starvation;
    use diskproof_model::record::Record;

    fn evaluate(record: &Record, text: &str) -> Expectation {
        let expected: super::Expected = text.parse().unwrap();
        expected.evaluate(record)
    }

    /// Reads at depth 32 that waited for processors for this share of their time.
    fn waited(share: f64) -> Record {
        fixture::faulty("random-read-d32", |measurement| {
            measurement.starved = Starvation {
                share,
                mean_wait_ns: 60_000.0,
            };
        })
    }

    fn outcome(record: &Record, text: &str) -> ExpectationOutcome {
        evaluate(record, text).outcome()
    }

    /// 3000/s of a limiter, as evenly as it sets them.
    #[test]
    fn rate_that_may_be_a_burst_meets_only_what_lasts() {
        use ExpectationOutcome::{Met, Missed, Undecided};
        let mut capped = test_capped(|_| 0);
        let reads = fixture::measured(&mut capped, "random-read-d32");
        let p99_ns = reads.headline_ops()[0].1.figures.latency.p99.unwrap();
        let soon = format!("random-read-d32.p99<={}ns", 2 * p99_ns);
        let late = format!("random-read-d32.p99<={}ns", 40 * p99_ns);
        for (text, expected) in [
            ("random-read-d32.iops>=2000", Undecided),
            ("random-read-d32.iops>=90", Met),
            (soon.as_str(), Undecided),
            (late.as_str(), Met),
            ("random-read-d32.iops>=9000", Missed),
            ("random-read-d32.iops<=9000", Met),
            // Its rate is below that of the limiter, whose base may be lower still.
            ("random-read-d1.iops>=1000", Undecided),
            ("random-read-d1.iops>=90", Met),
        ] {
            assert_eq!(outcome(&capped, text), expected, "{text}");
        }
        let reason = evaluate(&capped, "random-read-d32.iops>=2000")
            .objection
            .unwrap();
        assert!(reason.contains("burst-untested"), "{reason}");
        // The test of the finding decides it.
        capped
            .findings
            .retain(|finding| finding.code != "burst-untested");
        assert_eq!(outcome(&capped, "random-read-d32.iops>=2000"), Met);
        // A healthy disk has no such rate.
        let healthy = fixture::record();
        assert_eq!(outcome(&healthy, "random-read-d32.iops>=9000"), Met);
    }

    /// A gp2 volume of 500 GiB has 1500/s for ever.
    #[test]
    fn documented_base_of_a_burst_meets_thresholds() {
        use ExpectationOutcome::{Met, Undecided};
        let mut record = test_capped(|_| 0);
        for layer in &mut record.targets[0].layers {
            layer.model = Some("Amazon Elastic Block Store".to_owned());
            layer.size_bytes = 500 << 30;
        }
        assert_eq!(outcome(&record, "random-read-d32.iops>=1400"), Met);
        assert_eq!(outcome(&record, "random-read-d32.iops>=1600"), Undecided);
    }

    #[test]
    fn miss_that_waiting_explains_is_undecided() {
        use ExpectationOutcome::{Met, Missed, Undecided};
        let quiet = fixture::record();
        let row = quiet
            .measurements
            .iter()
            .find(|row| row.data.workload.name == "random-read-d32")
            .unwrap();
        let rate = row.headline_ops()[0].1.figures.iops.value;
        let far = format!("random-read-d32.iops>={}", 10.0 * rate);
        let low = format!("random-read-d32.iops>={}", rate / 10.0);
        let high = format!("random-read-d32.iops<={}", rate / 10.0);
        let absurd = format!("random-read-d32.iops>={}", 2000.0 * rate);
        let late = "random-read-d32.p50<=10us";
        for (share, text, outcome) in [
            (0.72, far.as_str(), Undecided),
            (0.72, late, Undecided),
            // What is fast enough with waits is so without them; what is too fast, too.
            (0.72, &low, Met),
            (0.72, &high, Missed),
            // No machine makes a two-thousandth of a rate.
            (0.72, &absurd, Missed),
            // A little waiting does not make a tenth of a rate.
            (0.05, &far, Missed),
            (0.05, late, Missed),
            (0.0, &far, Missed),
        ] {
            let judged = evaluate(&waited(share), text);
            assert_eq!(judged.outcome(), outcome, "{share} {text}: {judged:?}");
            let is_told = judged
                .objection
                .is_some_and(|reason| reason.contains("starved"));
            assert_eq!(is_told, outcome == Undecided, "{share} {text}");
        }
    }
}
