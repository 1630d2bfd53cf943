//! The search for the greatest depth at which requests meet a latency limit: its flags, and the
//! workloads of the depths that it may measure.

use super::flags::WorkloadFlags;
use super::limits::Resolved;
use diskproof_analysis::campaign::search_depths;
use diskproof_model::plan::{Stop, Workload};
use diskproof_model::shape::LatencyTarget;
use diskproof_model::units::format_duration;

const PERCENT_DEFAULT: f64 = 99.0;
const WINDOW_NS_DEFAULT: u64 = 5_000_000_000;
/// A shorter window is mostly its warm-up.
const WINDOW_NS_MIN: u64 = 100_000_000;

/// What the flags of a workload ask for.
pub(super) fn latency_target(flags: &WorkloadFlags) -> Resolved<Option<LatencyTarget>> {
    let Some(target) = flags.latency_target else {
        let lonely = [
            ("latency-percentile", flags.latency_percentile.is_some()),
            ("latency-window", flags.latency_window.is_some()),
        ];
        return match lonely.iter().find(|(_, is_set)| *is_set) {
            Some((key, _)) => Err(format!("<{key}> needs <latency-target>")),
            None => Ok(None),
        };
    };
    refuse_excluded(flags)?;
    let window = flags.latency_window;
    let window_ns = window.map_or(WINDOW_NS_DEFAULT, |time| time.0);
    if target.0 == 0 {
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
    if let Some(time) = flags.time.filter(|time| time.0 < window_ns) {
        return Err(format!(
            "<time> {} is over before the first window of {}; use a longer time, or a shorter \
             <latency-window>",
            format_duration(time.0),
            format_duration(window_ns),
        ));
    }
    let percent = flags.latency_percentile;
    Ok(Some(LatencyTarget {
        latency_ns: target.0,
        percent: percent.map_or(PERCENT_DEFAULT, |share| share.0),
        window_ns,
    }))
}

/// Options that say otherwise how long a depth is measured, or what the depth is.
fn refuse_excluded(flags: &WorkloadFlags) -> Resolved<()> {
    let excluded = [
        ("precision", flags.precision.is_some()),
        ("bytes", flags.bytes.is_some()),
        ("ops", flags.ops.is_some()),
        ("rate", flags.rate.is_some()),
        ("verify", flags.verify == Some(true)),
    ];
    let Some((key, _)) = excluded.iter().find(|(_, is_set)| *is_set) else {
        return Ok(());
    };
    let why = match *key {
        "verify" => "the search writes each block repeatedly",
        _ => "the search decides the depth and the time of each measurement",
    };
    Err(format!(
        "<latency-target> excludes <{key}>: {why}; remove one of them"
    ))
}

/// A search: a workload for each depth, ascending, and the time that it may take, in nanoseconds;
/// `None` where the plan of the search decides.
type PlannedSearch = (Vec<Workload>, Option<u64>);

/// The search that these workloads ask for on so many targets, if they do.
pub(crate) fn planned_search(
    workloads: &[Workload],
    targets: usize,
) -> Result<Option<PlannedSearch>, String> {
    let mut all = workloads.iter();
    let asking = all.find_map(|one| Some((one, one.shape.latency_target?)));
    let Some((asked, target)) = asking else {
        return Ok(None);
    };
    let others = match (workloads.len(), targets) {
        (1, 1) => None,
        (1, _) => Some("the other targets"),
        _ => Some("the other workloads"),
    };
    if let Some(others) = others {
        return Err(format!(
            "'{}' has a latency target, whose search cannot run with other workloads; skip \
             {others}",
            asked.name
        ));
    }
    let stop = Stop {
        time_ns: Some(target.window_ns),
        ..Stop::default()
    };
    let at_depth = |depth| Workload {
        name: format!("{}-d{depth}", asked.name),
        depth,
        stop,
        ..asked.clone()
    };
    let depths = search_depths(asked.depth).into_iter();
    Ok(Some((depths.map(at_depth).collect(), asked.stop.time_ns)))
}
