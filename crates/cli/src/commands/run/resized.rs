//! Fits a recorded plan to a target of another size. Short strokes and the longest span of a sweep
//! are parts of the whole target, which the record has in bytes. Other spans keep their bytes.

use crate::commands::curve::stroke_span;
use diskproof_analysis::surface::short_stroke_percent;
use diskproof_analysis::sweep::span_block_bytes;
use diskproof_model::plan::{Decide, Plan, Span};
use diskproof_model::sweep::span_name;
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::format_bytes;

/// Makes the parts of the whole target those of the present target. Returns what the user should
/// know: that other spans have the bytes that they had. Only one target has such parts. A scratch
/// file has its recorded size on any target.
pub(super) fn fit_to_target(
    plan: &mut Plan,
    recorded: &[TargetIdentity],
    targets: &[TargetIdentity],
) -> Option<String> {
    let ([recorded], [target]) = (recorded, targets) else {
        return None;
    };
    if plan.scratch.is_some() || recorded.size_bytes == target.size_bytes {
        return None;
    }
    fit_sweep(plan, recorded.size_bytes, target.size_bytes);
    fit_strokes(plan, target.size_bytes);
    if !has_other_spans(plan) {
        return None;
    }
    Some(format!(
        "the record measured parts of a target of {}; they have the same bytes on this one of {}, \
         also those that were set in percent",
        format_bytes(recorded.size_bytes),
        format_bytes(target.size_bytes)
    ))
}

/// Makes the longest span of a sweep, which was the whole target, the whole of this one.
fn fit_sweep(plan: &mut Plan, recorded_bytes: u64, target_bytes: u64) {
    let Some(task) = plan.workload_task_mut() else {
        return;
    };
    let Decide::Sweep(axes) = &mut task.decide else {
        return;
    };
    let (Some(block_bytes), Some(longest)) = (span_block_bytes(axes), axes.span_bytes.last_mut())
    else {
        return;
    };
    if *longest != recorded_bytes {
        return;
    }
    *longest = target_bytes;
    let recorded_name = span_name(block_bytes, recorded_bytes);
    for workload in &mut task.list {
        if workload.name == recorded_name {
            workload.name = span_name(block_bytes, target_bytes);
            workload.span = Span::new(0, Some(target_bytes));
        }
    }
}

/// Makes the short strokes of a survey of the whole target the same shares of this one.
fn fit_strokes(plan: &mut Plan, target_bytes: u64) {
    let Some(survey) = plan.survey() else {
        return;
    };
    let span = survey.span;
    let Some(task) = plan.workload_task_mut() else {
        return;
    };
    if span.length_bytes.is_some() {
        return;
    }
    for workload in &mut task.list {
        if let Some(percent) = short_stroke_percent(&workload.name) {
            workload.span = stroke_span(percent, span, target_bytes);
        }
    }
}

/// Returns `true` if the plan has a span in bytes that does not follow from the target: that of the
/// user. The spans of a sweep, and the log segments of `commit`, are sizes, whatever the target
/// has.
fn has_other_spans(plan: &Plan) -> bool {
    if plan.sweep().is_some() || plan.origin.verb == "commit" {
        return false;
    }
    match plan.survey() {
        Some(survey) => survey.span != Span::default(),
        None => plan
            .workloads()
            .iter()
            .any(|workload| workload.span != Span::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::op::OpKind;
    use diskproof_model::plan::{EngineChoice, Task, Workload, Workloads};
    use diskproof_model::surface::Survey;
    use diskproof_model::sweep::{SweepOperation, SweepPlan};
    use diskproof_model::target::TargetKind;

    const MIB: u64 = 1 << 20;

    fn disk(size_bytes: u64) -> [TargetIdentity; 1] {
        [TargetIdentity {
            path: "/dev/sda".to_owned(),
            kind: TargetKind::BlockDevice,
            size_bytes,
            free_bytes: None,
            device: "8:0".to_owned(),
            inode: 1,
            filesystem: None,
            layers: Vec::new(),
            unresolved: None,
        }]
    }

    /// A plan of workloads with these names over the first bytes of the target.
    fn plan(workloads: &[(&str, u64)], survey: Option<Survey>, decide: Decide) -> Plan {
        let mut list = Vec::new();
        for (name, bytes) in workloads {
            list.push(Workload {
                span: Span::new(0, Some(*bytes)),
                ..Workload::named(name)
            });
        }
        let mut tasks: Vec<Task> = survey.into_iter().map(Task::Survey).collect();
        tasks.push(Task::Workloads(Workloads {
            decide,
            ..Workloads::as_planned(list)
        }));
        Plan {
            tasks,
            ..Plan::default()
        }
    }

    fn survey(span: Span) -> Survey {
        Survey {
            operation: OpKind::Read,
            span,
            engine: EngineChoice::Auto,
            curve: None,
            burst: None,
            access: None,
            scan: None,
        }
    }

    /// Fits a plan of a target of 256 MiB to one of 512 MiB. Returns the lengths of its spans in
    /// MiB, and whether the user is told something.
    fn fitted(mut plan: Plan) -> (Vec<u64>, bool) {
        let note = fit_to_target(&mut plan, &disk(256 * MIB), &disk(512 * MIB));
        let mut lengths = Vec::new();
        for workload in plan.workloads() {
            lengths.push(workload.span.length_bytes.unwrap() / MIB);
        }
        (lengths, note.is_some())
    }

    #[test]
    fn short_strokes_are_shares_of_the_present_target() {
        let strokes = [
            ("short-stroke-100", 256 * MIB),
            ("short-stroke-50", 128 * MIB),
        ];
        let whole = plan(&strokes, Some(survey(Span::default())), Decide::AsPlanned);
        assert_eq!(fitted(whole), (vec![512, 256], false));
        // Those of a part of the target keep its bytes.
        let part = survey(Span::new(0, Some(256 * MIB)));
        let of_part = plan(&strokes, Some(part), Decide::AsPlanned);
        assert_eq!(fitted(of_part), (vec![256, 128], true));
    }

    #[test]
    fn longest_span_of_a_sweep_is_the_present_target() {
        let axes = SweepPlan {
            operations: vec![SweepOperation::RandRead],
            block_bytes: vec![4096],
            depths: vec![1],
            span_bytes: vec![64 * MIB, 256 * MIB],
            view: None,
        };
        let names = [span_name(4096, 64 * MIB), span_name(4096, 256 * MIB)];
        let cells = [
            (names[0].as_str(), 64 * MIB),
            (names[1].as_str(), 256 * MIB),
        ];
        let mut sweep = plan(&cells, None, Decide::Sweep(axes));
        assert_eq!(fitted(sweep.clone()), (vec![64, 512], false));
        assert_eq!(
            fit_to_target(&mut sweep, &disk(256 * MIB), &disk(512 * MIB)),
            None
        );
        assert_eq!(sweep.sweep().unwrap().span_bytes, [64 * MIB, 512 * MIB]);
        assert_eq!(sweep.workloads()[1].name, span_name(4096, 512 * MIB));
    }

    #[test]
    fn spans_of_the_user_keep_their_bytes_and_the_user_is_told() {
        let reads = || plan(&[("reads", 128 * MIB)], None, Decide::AsPlanned);
        assert_eq!(fitted(reads()), (vec![128], true));
        let mut same = reads();
        assert_eq!(fit_to_target(&mut same, &disk(MIB), &disk(MIB)), None);
    }
}
