//! Plans the search for the greatest depth at which requests meet a latency limit: reads its flags,
//! and makes the workloads of the depths that it may measure.

use super::flags::WorkloadFlags;
use super::limits::Resolved;
use super::parsers::{Latency, LatencyPercentile, Time};
use crate::flags::SECOND_NS;
use diskproof_analysis::campaign::search_depths;
use diskproof_model::plan::{Stop, Workload};
use diskproof_model::shape::LatencyTarget;
use diskproof_model::units::format_duration;

/// The percentage of requests that must meet the limit, without `--latency-percentile`: a common
/// promise of services.
const PERCENT_DEFAULT: f64 = 99.0;
/// The time of a measurement of one depth, without `--latency-window`.
const WINDOW_NS_DEFAULT: u64 = 5 * SECOND_NS;
/// A shorter window is mostly its warm-up.
const WINDOW_NS_MIN: u64 = SECOND_NS / 10;

/// The latency limit of a workload, where its flags set one.
pub(super) fn latency_target(flags: &WorkloadFlags) -> Resolved<Option<LatencyTarget>> {
    let Some(Latency(latency_ns)) = flags.latency_target else {
        refuse_without_target(flags)?;
        return Ok(None);
    };
    refuse_excluded(flags)?;
    let window_ns = match flags.latency_window {
        Some(Time(ns)) => ns,
        None => WINDOW_NS_DEFAULT,
    };
    if latency_ns == 0 {
        let why = "<latency-target> 0: every request takes longer; use a latency such as 5ms";
        return Err(why.to_owned());
    }
    if window_ns < WINDOW_NS_MIN {
        return Err(format!(
            "<latency-window> {} is too short; use at least {}",
            format_duration(window_ns),
            format_duration(WINDOW_NS_MIN)
        ));
    }
    if let Some(Time(time_ns)) = flags.time
        && time_ns < window_ns
    {
        return Err(format!(
            "<time> {} is over before the first window of {}; use a longer time, or a shorter \
             <latency-window>",
            format_duration(time_ns),
            format_duration(window_ns),
        ));
    }
    Ok(Some(LatencyTarget {
        latency_ns,
        percent: match flags.latency_percentile {
            Some(LatencyPercentile(percent)) => percent,
            None => PERCENT_DEFAULT,
        },
        window_ns,
    }))
}

/// Refuses the details of a search that was not requested.
fn refuse_without_target(flags: &WorkloadFlags) -> Resolved<()> {
    if flags.latency_percentile.is_some() {
        return Err("<latency-percentile> needs <latency-target>".to_owned());
    }
    if flags.latency_window.is_some() {
        return Err("<latency-window> needs <latency-target>".to_owned());
    }
    Ok(())
}

/// Refuses options that contradict the search's choice of depths and times.
fn refuse_excluded(flags: &WorkloadFlags) -> Resolved<()> {
    let why_decided = "the search decides the depth and the time of each measurement";
    let why_rewritten = "the search writes each block repeatedly";
    let (key, why) = if flags.precision.is_some() {
        ("precision", why_decided)
    } else if flags.bytes.is_some() {
        ("bytes", why_decided)
    } else if flags.ops.is_some() {
        ("ops", why_decided)
    } else if flags.rate.is_some() {
        ("rate", why_decided)
    } else if flags.verify == Some(true) {
        ("verify", why_rewritten)
    } else {
        return Ok(());
    };
    Err(format!(
        "<latency-target> excludes <{key}>: {why}; remove one of them"
    ))
}

/// A search for the greatest depth.
pub(crate) struct PlannedSearch {
    /// A workload for each depth, ascending.
    pub workloads: Vec<Workload>,
    /// The time that the search may take, in nanoseconds; `None` where it decides itself.
    pub time_limit_ns: Option<u64>,
}

/// The search that these workloads ask for, if they do. `targets` is the number of targets.
pub(crate) fn planned_search(
    workloads: &[Workload],
    targets: usize,
) -> Result<Option<PlannedSearch>, String> {
    let Some(searched) = workloads
        .iter()
        .find(|workload| workload.shape.latency_target.is_some())
    else {
        return Ok(None);
    };
    let others = if workloads.len() > 1 {
        Some("the other workloads")
    } else if targets > 1 {
        Some("the other targets")
    } else {
        None
    };
    if let Some(others) = others {
        return Err(format!(
            "'{}' has a latency target, whose search cannot run with other workloads; skip \
             {others}",
            searched.name
        ));
    }
    let mut steps = Vec::new();
    for depth in search_depths(searched.depth) {
        steps.push(Workload {
            name: format!("{}-d{depth}", searched.name),
            depth,
            stop: Stop {
                time_ns: searched.shape.latency_target.map(|target| target.window_ns),
                ..Stop::default()
            },
            ..searched.clone()
        });
    }
    Ok(Some(PlannedSearch {
        workloads: steps,
        time_limit_ns: searched.stop.time_ns,
    }))
}
