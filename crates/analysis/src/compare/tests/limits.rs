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
    let change = metric(&held(&sides[0], &sides[1]), "random-read-d1.iops")
        .ratio
        .unwrap();
    let (sign, way) = if change.value < 1.0 {
        ("-", '<')
    } else {
        ("", '>')
    };
    let text = format!("random-read-d1.iops{way}{sign}0.001%");
    assert_eq!(
        outcome(&short, &short_slower, &text),
        Ok(ConditionOutcome::Undecided),
        "{change:?}"
    );
    let error = outcome(&a, &slower, "random-raed-d1.iops<-5%")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("no metric is named 'random-raed-d1.iops'")
            && error.contains("random-read-d1.iops"),
        "{error}"
    );
    let other = changed(|run| run.1.iter_mut().for_each(|m| m.workload.depth += 1));
    assert_eq!(
        outcome(&[fixture::record()], &[other], "random-read-d1.iops<-5%"),
        Ok(ConditionOutcome::Unanswered)
    );
    assert_eq!(
        outcome(
            &[fixture::record()],
            &[fixture::record()],
            "commit-fdatasync.p99.9>5%"
        ),
        Ok(ConditionOutcome::Unanswered)
    );
    for op in OpKind::ALL {
        let text = format!("random-read-d1.{}.p99<5%", op.as_str());
        let known = outcome(&[fixture::record()], &[fixture::record()], &text);
        assert!(known.is_ok(), "{text}: {known:?}");
    }
}

#[test]
fn a_condition_on_one_run_a_side_is_undecided() {
    let runs = [(1.0, "a"), (0.9, "b")].map(|(speed, id)| run_of(wandering(speed, 5, 1), 5, id));
    let condition = |text: &str| {
        let mut all = compare(&ask(&[&runs[0]], &[&runs[1]], &[text])).unwrap();
        all.conditions.remove(0)
    };
    let once = condition("random-read-d1.iops<-5%");
    assert_eq!(once.outcome, ConditionOutcome::Undecided);
    assert!(once.why.contains("in one run per side"), "{}", once.why);
    let outcome = |text: &str| condition(text).outcome;
    assert_eq!(
        outcome("random-read-d1.iops<-15%"),
        ConditionOutcome::DoesNotHold
    );
    // No change at all fails it, so it needs no certainty.
    assert_eq!(outcome("random-read-d1.iops<5%"), ConditionOutcome::Holds);
}

#[test]
fn conditions_that_cannot_be_read_say_what_is_possible() {
    let error = |text: &str| text.parse::<Limit>().unwrap_err().to_string();
    assert!(error("random-read-d32.iops=-5%").contains("<, >, <= or >="));
    assert!(error("iops<-5%").contains("WORKLOAD.METRIC"));
    assert!(error("a.iops<-5").contains("percent"));
    assert!(error("a.iops<-105%").contains("percent"));
    assert!(error("a.iops<NaN%").contains("percent"));
}
