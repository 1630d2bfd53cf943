//! Writes the options of fio for the places of requests and for the end of a job. fio ends a job
//! after one pass over its places, so both depend on the part that each job goes through.

use super::fio_job::{depth, is_blocking, job_count, largest_block_bytes, whole_percents};
use super::words::words_if;
use diskproof_model::group::Group;
use diskproof_model::measurement::Measurement;
use diskproof_model::plan::{Access, Distribution, Stop, Workload, Zone};

/// The runtime of a job that others end: a day, which is longer than they take. Without a time fio
/// ends a job after one pass.
const ENDLESS_NS: u64 = 86_400_000_000_000;
/// A share of a zone that is rounded by more than this part of it is another load. Chosen, not
/// measured.
const SHARE_ERROR_MAX: f64 = 0.1;

/// The part of the target that each of fio's jobs goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct JobPart {
    bytes: u64,
    /// Each job has its own, one behind the other; otherwise all have the same.
    is_own: bool,
}

impl JobPart {
    /// The part of a job; `None` where several threads went through one part together, which fio
    /// cannot do.
    fn of_job(ran: &Measurement) -> Option<Self> {
        let jobs = u64::from(job_count(ran).max(1));
        let whole = Self {
            bytes: ran.span_bytes,
            is_own: false,
        };
        match ran.workload.access {
            Access::Random { .. } | Access::Zoned { .. } => return Some(whole),
            Access::Sequential if is_blocking(ran.engine.used) && depth(ran) > 1 => return None,
            Access::Sequential | Access::Backward | Access::Stride { .. } => {}
        }
        if jobs == 1 {
            return Some(whole);
        }
        let block_bytes = u64::from(ran.workload.block_bytes.max(1));
        Some(Self {
            bytes: ran.span_bytes / jobs / block_bytes * block_bytes,
            is_own: true,
        })
    }

    /// Bytes that a job moves before it begins anew.
    fn bytes_of_pass(self, workload: &Workload) -> u64 {
        match workload.access {
            Access::Stride { stride_bytes } => {
                let steps = self.bytes / stride_bytes.max(1);
                steps * u64::from(workload.block_bytes)
            }
            Access::Sequential
            | Access::Backward
            | Access::Random { .. }
            | Access::Zoned { .. } => self.bytes,
        }
    }
}

/// The options for the span and for the distribution of offsets in it; `None` where fio cannot do
/// it.
pub(super) fn offset_options(ran: &Measurement) -> Option<Vec<String>> {
    let workload = &ran.workload;
    let part = JobPart::of_job(ran)?;
    let mut words = Vec::new();
    if ran.span_start_bytes > 0 {
        words.push(format!("--offset={}", ran.span_start_bytes));
    }
    words.push(format!("--size={}", part.bytes));
    if part.is_own {
        words.push(format!("--offset_increment={}", part.bytes));
    }
    let distribution = match &workload.access {
        Access::Sequential | Access::Backward | Access::Stride { .. } => return Some(words),
        Access::Zoned { zones } => Some(zoned_value(zones)?),
        Access::Random { distribution } => distribution_value(distribution)?,
    };
    if let Some(distribution) = distribution {
        words.push(format!("--random_distribution={distribution}"));
    }
    if !workload.shape.order.each_block_once {
        words.push("--norandommap".to_owned());
    }
    words.push("--randrepeat=0".to_owned());
    Some(words)
}

/// The value of `random_distribution`, which a uniform one does not need; `None` where fio cannot
/// express it.
fn distribution_value(distribution: &Distribution) -> Option<Option<String>> {
    Some(match distribution {
        Distribution::Uniform => None,
        Distribution::Zipf { theta } => Some(format!("zipf:{theta}")),
        Distribution::Pareto { share } => Some(format!("pareto:{share}")),
        Distribution::Normal { spread_percent } => Some(format!("normal:{spread_percent}")),
        Distribution::HotCold {
            access_percent,
            size_percent,
        } => {
            let hot = Zone {
                access_percent: *access_percent,
                size_percent: *size_percent,
            };
            let cold = Zone {
                access_percent: 100.0 - access_percent,
                size_percent: 100.0 - size_percent,
            };
            Some(zoned_value(&[hot, cold])?)
        }
    })
}

/// The zones in whole percents; `None` where that makes one much larger or smaller.
fn zoned_value(zones: &[Zone]) -> Option<String> {
    let accesses: Vec<f64> = zones.iter().map(|zone| zone.access_percent).collect();
    let sizes: Vec<f64> = zones.iter().map(|zone| zone.size_percent).collect();
    let access_percents = close_percents(&accesses)?;
    let size_percents = close_percents(&sizes)?;
    let mut words = Vec::new();
    for (access, size) in std::iter::zip(access_percents, size_percents) {
        words.push(format!("{access}/{size}"));
    }
    Some(format!("zoned:{}", words.join(":")))
}

/// The weights as whole percents; `None` where one becomes another by more than
/// [`SHARE_ERROR_MAX`].
fn close_percents(weights: &[f64]) -> Option<Vec<u32>> {
    let total: f64 = weights.iter().sum();
    let percents = whole_percents(weights);
    for (weight, percent) in std::iter::zip(weights, &percents) {
        let exact = weight / total * 100.0;
        if (f64::from(*percent) - exact).abs() > SHARE_ERROR_MAX * exact {
            return None;
        }
    }
    Some(percents)
}

/// The options for the end and the warm-up; `None` where fio cannot end it there. fio's limits are
/// per job. A workload that runs as long as the others has no limit of its own.
pub(super) fn end_options(
    ran: &Measurement,
    asked: &Workload,
    group: Group<'_>,
) -> Option<Vec<String>> {
    let jobs = u64::from(job_count(ran).max(1));
    let Stop { bytes, ops, .. } = asked.stop;
    let mut words = Vec::new();
    if let Some(bytes) = bytes {
        words.push(format!("--io_size={}", bytes.div_ceil(jobs)));
    }
    if let Some(ops) = ops {
        words.push(operations_option(ran, ops.div_ceil(jobs))?);
    }
    let is_timed = bytes.is_none() && ops.is_none();
    let time_ns = match group.time_of(asked) {
        None if !group.is_alone() && is_timed => Some(ENDLESS_NS),
        time_ns => time_ns,
    };
    if let Some(time_ns) = time_ns {
        words.push(format!("--runtime={}", time_value(time_ns)));
        words.extend(words_if([(is_timed, "--time_based")]));
    }
    if group.warmup_ns() > 0 {
        words.push(format!("--ramp_time={}", time_value(group.warmup_ns())));
    }
    Some(words)
}

/// The limit of operations of a job. fio counts them in each pass anew and ends after one, unless
/// bytes are the limit; `None` of several sizes over more than one pass.
fn operations_option(ran: &Measurement, ops: u64) -> Option<String> {
    let workload = &ran.workload;
    let bytes_max = ops.saturating_mul(largest_block_bytes(workload));
    let pass_bytes = JobPart::of_job(ran)?.bytes_of_pass(workload);
    if bytes_max <= pass_bytes {
        return Some(format!("--number_ios={ops}"));
    }
    let has_one_size = workload.block_mix.is_empty() && workload.streams.other_sizes().is_empty();
    if has_one_size {
        Some(format!("--io_size={bytes_max}"))
    } else {
        None
    }
}

/// A time in the syntax of fio, rounded up to milliseconds.
fn time_value(ns: u64) -> String {
    match ns.div_ceil(1_000_000) {
        ms if ms % 1000 == 0 => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    }
}
