//! Conditions that fail a build.

use super::*;

#[test]
fn conditions_fail_a_build_only_where_noise_would_not() {
    let runs = |speed: f64, seconds: u64, seeds: [u64; 3]| {
        seeds.map(|seed| {
            let id = format!("{speed} {seconds} {seed}");
            run_of(wandering(speed, seconds, seed), seconds, &id)
        })
    };
    let (a, slower) = (runs(1.0, 10, [1, 2, 3]), runs(0.9, 10, [4, 5, 6]));
    let (short, short_slower) = (runs(1.0, 1, [1, 2, 3]), runs(1.0, 1, [17, 18, 19]));
    let outcome = |a: &[Record], b: &[Record], text: &str| {
        let (a, b): (Vec<&Record>, Vec<&Record>) = (a.iter().collect(), b.iter().collect());
        compare(&ask(&a, &b, &[text])).map(|c| c.conditions[0].outcome)
    };
    let cases = [
        ("random-read-d1.iops<-5%", ConditionOutcome::Holds),
        ("random-read-d1.read.iops < -5 %", ConditionOutcome::Holds),
        ("random-read-d1.iops<-15%", ConditionOutcome::DoesNotHold),
        ("random-read-d1.iops>5%", ConditionOutcome::DoesNotHold),
        ("random-read-d1.p50>5%", ConditionOutcome::Holds),
        ("random-read-d1.mean>=+5%", ConditionOutcome::Holds),
        // At least this much better, or else: no change at all fails it, so it needs no certainty.
        ("random-read-d1.iops<5%", ConditionOutcome::Holds),
    ];
    for (text, expected) in cases {
        assert_eq!(outcome(&a, &slower, text), Ok(expected), "{text}");
    }
    let sides: [Vec<&Record>; 2] = [&short, &short_slower].map(|side| side.iter().collect());
    let change = rate(&held(&sides[0], &sides[1])).ratio.unwrap().value;
    let (sign, way) = if change < 1.0 { ("-", '<') } else { ("", '>') };
    let text = format!("random-read-d1.iops{way}{sign}0.001%");
    let undecided = outcome(&short, &short_slower, &text);
    assert_eq!(undecided, Ok(ConditionOutcome::Undecided), "{change}");
    // A threshold on either side of the change, within its interval: as `--expect` decides.
    let ratio = rate(&held(&sides[0], &sides[1])).ratio.unwrap();
    let high = ratio.high_95.unwrap();
    for end in [ratio.low_95, high] {
        let within = (ratio.value * 0.1 + end * 0.9 - 1.0) * 100.0;
        for way in ['<', '>'] {
            let text = format!("random-read-d1.iops{way}{within:.6}%");
            let within = outcome(&short, &short_slower, &text);
            assert_eq!(within, Ok(ConditionOutcome::Undecided), "{text}: {ratio:?}");
        }
    }
    let beyond = format!("random-read-d1.iops>{:.6}%", (high - 1.0) * 100.0 + 0.1);
    let beyond = outcome(&short, &short_slower, &beyond);
    assert_eq!(beyond, Ok(ConditionOutcome::DoesNotHold), "{ratio:?}");
    let error = outcome(&a, &slower, "random-raed-d1.iops<-5%").unwrap_err();
    states(
        &error.to_string(),
        &["'random-raed-d1.iops'", "random-read-d1.iops"],
    );
    let other = changed(|run| {
        run.measurements
            .iter_mut()
            .for_each(|measurement| measurement.workload.depth += 1)
    });
    let unanswered = outcome(&[fixture::record()], &[other], "random-read-d1.iops<-5%");
    assert_eq!(unanswered, Ok(ConditionOutcome::Unanswered));
    let same = |text: &str| outcome(&[fixture::record()], &[fixture::record()], text);
    assert_eq!(
        same("commit-fdatasync.p99.9>5%"),
        Ok(ConditionOutcome::Unanswered)
    );
    for op in OpKind::ALL {
        let text = format!("random-read-d1.{}.p99<5%", op.as_str());
        assert!(same(&text).is_ok(), "{text}");
    }
}

#[test]
fn a_condition_on_one_run_a_side_is_undecided() {
    let runs = [(1.0, "a"), (0.9, "b")].map(|(speed, id)| run_of(wandering(speed, 5, 1), 5, id));
    for (text, expected) in [
        ("random-read-d1.iops<-5%", ConditionOutcome::Undecided),
        ("random-read-d1.iops<-15%", ConditionOutcome::DoesNotHold),
        // No change at all fails it, so it needs no certainty.
        ("random-read-d1.iops<5%", ConditionOutcome::Holds),
    ] {
        let all = compare(&ask(&[&runs[0]], &[&runs[1]], &[text])).unwrap();
        assert_eq!(all.conditions[0].outcome, expected, "{text}");
    }
}

#[test]
fn conditions_that_cannot_be_read_say_what_is_possible() {
    for (text, part) in [
        ("random-read-d32.iops=-5%", "<, >, <= or >="),
        ("iops<-5%", "WORKLOAD.METRIC"),
        ("a.iops<-5", "percent"),
        ("a.iops<-105%", "percent"),
        ("a.iops<NaN%", "percent"),
    ] {
        states(&text.parse::<Limit>().unwrap_err().to_string(), &[part]);
    }
}

/// Two targets, of which each has the same workload.
fn of_two_targets(id: &str) -> Record {
    changed(|run| {
        run.facts.run_id = id.to_owned();
        run.facts.targets.push(fixture::target());
        run.facts.plan.targets.push("/other".to_owned());
        let mut other = run.measurements.clone();
        for measurement in &mut other {
            measurement.target = 1;
        }
        run.measurements.extend(other);
    })
}

#[test]
fn condition_names_one_of_several_targets() {
    let [a, b] = ["a", "b"].map(of_two_targets);
    let outcome = |text: &str| compare(&ask(&[&a], &[&b], &[text]));
    for metric in ["random-read-d1.iops", "random-read-d1.read.iops"] {
        let error = outcome(&format!("{metric}<-50%")).unwrap_err().to_string();
        states(&error, &[&format!("write 1:{metric} or 2:{metric}")]);
        let named = outcome(&format!("2:{metric}<-50%")).unwrap();
        assert_eq!(named.conditions[0].outcome, ConditionOutcome::DoesNotHold);
    }
    let error = outcome("3:random-read-d1.iops<-50%").unwrap_err();
    states(&error.to_string(), &["no metric", "2:random-read-d1.iops"]);
    // One of the targets has too few requests for it.
    let rare = outcome("2:commit-fdatasync.p99.9>5%").unwrap();
    assert_eq!(rare.conditions[0].outcome, ConditionOutcome::Unanswered);
}
