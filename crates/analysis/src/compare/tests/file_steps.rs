//! Steps on many small files: ratios, verdicts, and what keeps them from being compared.

use super::*;
use crate::fixture::files::{file_step, files_plan, files_record};
use diskproof_model::files::{CacheState, FileOperation, FileOrder, FileSync, FilesPlan};
use diskproof_model::files_record::FilesRecord;

/// Why a changed plan is not comparable, and the change.
type FilesPlanChange = (&'static str, fn(&mut FilesPlan));

const EVEN: [u64; 5] = [1000, 1004, 996, 1002, 998];

/// A run whose rates are these times those of the first.
fn at_speed(id: &str, times: u64, plan: FilesPlan) -> Record {
    let rounds = EVEN.map(|count| count * times);
    let steps = [
        FileOperation::Create,
        FileOperation::Read,
        FileOperation::Delete,
    ]
    .map(|operation| file_step(operation, &rounds));
    files_record(id, plan, steps.to_vec())
}

#[test]
fn every_step_has_a_row_with_ratio_and_interval() {
    let a = at_speed("a", 1, files_plan());
    let b = at_speed("b", 2, files_plan());
    let candidate = held(&[&a], &[&b]);
    let metrics = [
        "create-sequential.iops",
        "read-sequential.iops",
        "delete-sequential.iops",
    ];
    assert_eq!(names(&candidate), metrics);
    for name in metrics {
        let row = metric(&candidate, name);
        let ratio = row.ratio.unwrap();
        assert!((ratio.value - 2.0).abs() < 1e-6, "{ratio:?}");
        assert!(ratio.low_95 > 1.9 && ratio.high_95.unwrap() < 2.1);
        assert_eq!((row.verdict, row.headline), (Verdict::FasterOnce, true));
    }
    let same = held(&[&a], &[&at_speed("c", 1, files_plan())]);
    assert_eq!(same.headline.same, 3, "{}", same.summary);
}

#[test]
fn several_runs_a_side_make_better_and_earlier_runs_need_the_same_plan() {
    let run = |id: &str, times| at_speed(id, times, files_plan());
    let (a, b) = (
        ["a1", "a2", "a3"].map(|id| run(id, 1)),
        ["b1", "b2", "b3"].map(|id| run(id, 2)),
    );
    let candidate = held(&a.each_ref(), &b.each_ref());
    assert_eq!(candidate.headline.better, 3, "{}", candidate.summary);
    let judged = |count: u64| {
        let plan = FilesPlan {
            count,
            ..files_plan()
        };
        let earlier = ["e1", "e2", "e3"].map(|id| at_speed(id, 3, plan.clone()));
        let mut question = ask(&[&a[0]], &[&b[0]], &[]);
        question.history = vec![group("", &earlier.each_ref())];
        let candidate = compare(&question).unwrap().candidates.remove(0);
        metric(&candidate, "create-sequential.iops").verdict
    };
    assert_eq!(
        (judged(1000), judged(999)),
        (Verdict::Better, Verdict::FasterOnce)
    );
}

#[test]
fn other_plans_are_not_comparable_and_say_why() {
    let changes: [FilesPlanChange; 6] = [
        ("count-differs", |plan| plan.count = 2000),
        ("file-size-differs", |plan| plan.file_bytes_max = 8192),
        ("directories-differ", |plan| plan.directories = 9),
        ("threads-differ", |plan| plan.threads = 4),
        ("fsync-differs", |plan| plan.sync = FileSync::Directory),
        ("order-differs", |plan| plan.orders.push(FileOrder::Random)),
    ];
    let a = at_speed("a", 1, files_plan());
    for (code, change) in changes {
        let mut plan = files_plan();
        change(&mut plan);
        let candidate = held(&[&a], &[&at_speed("b", 1, plan)]);
        assert_eq!(candidate.headline.not_comparable, 3, "{code}");
        assert_eq!(
            reasons(metric(&candidate, "create-sequential.iops")),
            [code]
        );
    }
    let mut repeated = files_plan();
    (repeated.rounds, repeated.time_ns) = (9, 1);
    assert_eq!(held(&[&a], &[&at_speed("b", 1, repeated)]).headline.same, 3);
}

fn files_of(record: &mut Record) -> &mut FilesRecord {
    match &mut record.results[..] {
        [TaskResult::Files(files)] => files,
        results => panic!("{results:?}"),
    }
}

#[test]
fn caches_concern_reads_only_and_faults_their_step_only() {
    let a = at_speed("a", 1, files_plan());
    let mut b = at_speed("b", 1, files_plan());
    let files = files_of(&mut b);
    files.caches.pages = CacheState::Kept;
    files.steps[2].data.stopped = StopReason::Interrupted;
    let candidate = held(&[&a], &[&b]);
    for (step, codes) in [
        ("create", &[][..]),
        ("read", &["cache-differs"]),
        ("delete", &["interrupted"]),
    ] {
        let metric = metric(&candidate, &format!("{step}-sequential.iops"));
        assert_eq!(reasons(metric), codes, "{step}");
    }
}

#[test]
fn step_of_one_side_is_named() {
    let a = at_speed("a", 1, files_plan());
    let mut b = at_speed("b", 1, files_plan());
    files_of(&mut b).steps.pop();
    let candidate = held(&[&a], &[&b]);
    let unmatched = &candidate.unmatched[0];
    assert_eq!(
        (&unmatched.subject[..], unmatched.only),
        ("delete-sequential", Holder::A)
    );
}
