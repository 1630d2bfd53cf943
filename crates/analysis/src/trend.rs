//! Whether a target gets slower: the figures of its saved runs in the order of time, each against
//! the median of the runs before it.

use crate::compare::Limit;
use crate::estimate::{mean, student, variance};
use crate::shape::median;
use diskproof_model::comparison::ConditionOutcome;
use diskproof_model::saved::{Headline, SavedDisk, SavedRun};
use diskproof_model::trend::{Trend, TrendChange, TrendPoint};

/// Runs before a run that it is held against, the latest ones.
const BEFORE_MAX: usize = 10;
/// Fewer runs do not show how much runs differ.
const BEFORE_MIN: usize = 3;

/// The figures of the newest run over all runs of its verb on its targets, whatever their order.
/// Partial runs are left out, and so is what does not compare: runs of another measuring method, on
/// another host, or on another disk at the same path.
pub fn trends(runs: &[SavedRun]) -> Vec<Trend> {
    let mut runs: Vec<&SavedRun> = runs.iter().filter(|run| !run.partial).collect();
    runs.sort_by(|a, b| a.started.cmp(&b.started));
    let Some(newest) = runs.last().copied() else {
        return Vec::new();
    };
    runs.retain(|run| {
        (run.method, &run.verb, &run.host) == (newest.method, &newest.verb, &newest.host)
            && run.targets == newest.targets
            && disks(run).eq(disks(newest))
    });
    let trend = |of: &Headline| Trend {
        subject: of.workload.clone(),
        operation: of.operation.clone(),
        unit: of.unit.clone(),
        points: points(&runs, of),
    };
    newest.figures.iter().map(trend).collect()
}

/// By serial number where there is one: a kernel name may change from boot to boot.
fn disks(run: &SavedRun) -> impl Iterator<Item = &str> {
    run.disks.iter().map(SavedDisk::best_name)
}

fn points(runs: &[&SavedRun], of: &Headline) -> Vec<TrendPoint> {
    let is_same = |other: &&Headline| {
        (&other.workload, &other.operation, &other.unit) == (&of.workload, &of.operation, &of.unit)
    };
    let mut points: Vec<TrendPoint> = Vec::new();
    let mut before: Vec<f64> = Vec::new();
    for run in runs {
        let Some(figure) = run.figures.iter().find(is_same) else {
            continue;
        };
        let latest = &before[before.len().saturating_sub(BEFORE_MAX)..];
        // A figure that is not the disk's is shown, and neither judged nor judged by.
        let change = match figure.objection {
            Some(_) => None,
            None => change(latest, figure.value),
        };
        points.push(TrendPoint {
            run_id: run.run_id.clone(),
            started: run.started.clone(),
            value: figure.value,
            half_width_95: figure.half_width_95,
            change,
        });
        if figure.value > 0.0 && figure.objection.is_none() {
            before.push(figure.value);
        }
    }
    points
}

/// Ratios of figures are what runs differ by, so the spread is that of the logarithms.
fn change(before: &[f64], value: f64) -> Option<TrendChange> {
    if before.is_empty() {
        return None;
    }
    let n = before.len() as f64;
    let logs: Vec<f64> = before.iter().map(|value| value.ln()).collect();
    let is_beyond_chance = (before.len() >= BEFORE_MIN).then(|| {
        let half = student::multiple_95(n - 1.0) * (variance(&logs) * (1.0 + 1.0 / n)).sqrt();
        (value.ln() - mean(&logs)).abs() > half
    });
    Some(TrendChange {
        share: value / median(before) - 1.0,
        is_beyond_chance,
    })
}

fn is_of(trend: &Trend, limit: &Limit) -> bool {
    let (subject, metric) = (&trend.subject, trend.metric());
    limit.metric == format!("{subject}.{metric}")
        || limit.metric == format!("{subject}.{}.{metric}", trend.operation)
}

/// Holds a condition such as `commit-fdatasync.iops<-10%` against the newest run. A change that
/// chance explains, or that has too few runs before it, is undecided.
pub fn outcome(limit: &Limit, trends: &[Trend]) -> ConditionOutcome {
    let trend = trends.iter().find(|trend| is_of(trend, limit));
    let Some(newest) = trend.and_then(|trend| trend.points.last()) else {
        return ConditionOutcome::Unanswered;
    };
    match newest.change {
        None => ConditionOutcome::Undecided,
        Some(change) if !limit.relation.holds(change.share, limit.change) => {
            ConditionOutcome::DoesNotHold
        }
        Some(change) if change.is_beyond_chance == Some(true) => ConditionOutcome::Holds,
        Some(_) => ConditionOutcome::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(day: u32, values: &[(&str, f64)]) -> SavedRun {
        let headline = |(name, value): &(&str, f64)| Headline {
            workload: (*name).to_owned(),
            operation: "commit".to_owned(),
            value: *value,
            half_width_95: None,
            unit: "1/s".to_owned(),
            objection: None,
        };
        SavedRun {
            run_id: format!("{day:032}"),
            started: format!("2026-11-{day:02}T03:00:00Z"),
            verb: "check".to_owned(),
            targets: vec!["/data".to_owned()],
            disks: vec![SavedDisk {
                name: format!("sd{day}"),
                model: None,
                serial: Some("S1".to_owned()),
            }],
            host: "db1".to_owned(),
            label: None,
            note: None,
            partial: false,
            method: 9,
            worst: None,
            figures: values.iter().map(headline).collect(),
        }
    }

    fn of(values: &[f64]) -> Vec<Trend> {
        let days = values.iter().zip(1..);
        let mut runs: Vec<SavedRun> = days.map(|(v, day)| run(day, &[("c", *v)])).collect();
        // Newest first, as a history lists them.
        runs.reverse();
        trends(&runs)
    }

    fn outcome_of(condition: &str, values: &[f64]) -> ConditionOutcome {
        outcome(&condition.parse().unwrap(), &of(values))
    }

    #[test]
    fn change_is_that_from_the_median_of_ten_runs_before() {
        let mut values = vec![1.0; 5];
        values.extend([100.0; 10]);
        values.push(80.0);
        let trend = &of(&values)[0];
        assert_eq!(trend.points.len(), 16);
        assert_eq!(trend.points[0].change, None);
        let share = trend.points[15].change.unwrap().share;
        assert!((share + 0.2).abs() < 1e-12);
        let even = of(&[10.0, 20.0, 30.0])[0].points[2].change.unwrap().share;
        assert!((even - 1.0).abs() < 1e-12);
    }

    #[test]
    fn condition_fails_only_beyond_chance() {
        use ConditionOutcome::{DoesNotHold, Holds, Unanswered, Undecided};
        let steady = [100.0, 101.0, 99.0, 100.5, 80.0];
        let noisy = [100.0, 140.0, 70.0, 110.0, 80.0];
        assert_eq!(outcome_of("c.iops<-10%", &steady), Holds);
        assert_eq!(outcome_of("c.commit.iops<-10%", &steady), Holds);
        assert_eq!(outcome_of("c.iops<-30%", &steady), DoesNotHold);
        assert_eq!(outcome_of("c.iops<-10%", &noisy), Undecided);
        assert_eq!(outcome_of("c.iops<-10%", &steady[3..]), Undecided);
        assert_eq!(outcome_of("c.iops<-10%", &[100.0]), Undecided);
        assert_eq!(outcome_of("c.throughput<-10%", &steady), Unanswered);
    }

    #[test]
    fn other_targets_verbs_and_partial_runs_are_left_out() {
        let mut runs = vec![
            run(4, &[("c", 1.0)]),
            run(3, &[("c", 2.0)]),
            run(2, &[("c", 3.0)]),
        ];
        runs[1].targets = vec!["/other".to_owned()];
        runs[2].partial = true;
        let others: [fn(&mut SavedRun); 4] = [
            |run| run.method = 8,
            |run| run.host = "db2".to_owned(),
            |run| run.verb = "commit".to_owned(),
            |run| run.disks[0].serial = Some("S2".to_owned()),
        ];
        for change in others {
            let mut other = run(1, &[("c", 5.0)]);
            change(&mut other);
            runs.push(other);
        }
        runs.push(run(1, &[("c", 4.0)]));
        let trends = trends(&runs);
        let values: Vec<f64> = trends[0].points.iter().map(|point| point.value).collect();
        assert_eq!(values, [4.0, 1.0]);
    }
}
