//! `diskproof sustain`: whether a disk keeps its rate under a load without a pause, what ends it,
//! and whether it comes back.

mod every;

use crate::failure::{Exit, Failure};
use crate::flags::{MeasuringFlags, SCRATCH_BYTES_MIN, SECOND_NS};
use crate::plan_file::sector_bytes;
use crate::session::{MeasuringJob, ProgressView, measure};
use crate::standard_workloads::WRITES_ONLY_PERMILLE;
use crate::workload::{
    Content, Count, Memory, ResolveContext, Time, Wording, WorkloadAxes, WorkloadFlags,
    WorkloadName, resolve, sector_mismatch,
};
use diskproof_model::op::OpKind;
use diskproof_model::plan::{
    Access, Decide, Distribution, Plan, Scratch, Stop, Task, Workload, Workloads,
};
use diskproof_model::rw::Rw;
use diskproof_model::shape::{LoadShape, RequestOrder};
use diskproof_model::stream::Streams;
use diskproof_model::sustain::SustainPlan;
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::{format_duration, parse_size};
use every::SeriesRequest;
use std::path::PathBuf;

/// The help promises 2 h.
const TIME_NS: u64 = 2 * 3600 * SECOND_NS;
/// A shorter load does not outlast any credit.
const TIME_NS_MIN: u64 = 10 * SECOND_NS;
/// Rounds of a load of the usual time, so that each takes a minute.
const ROUNDS: u64 = 120;
/// The specification of SNIA has rounds of a minute.
const ROUND_NS_MAX: u64 = 60 * SECOND_NS;
/// Rounds of a shorter load take at least this long, unless it would have fewer than
/// [`ROUNDS_MIN`].
const ROUND_NS_MIN: u64 = 5 * SECOND_NS;
/// The fewest rounds of a load.
const ROUNDS_MIN: u64 = 10;
/// A pause of the load, and the load after it.
struct Pause {
    pause_ns: u64,
    /// The name of the workload after it.
    load_after: &'static str,
}

/// Caches empty in seconds to minutes once nothing is written.
const PAUSES: [Pause; 2] = [
    Pause {
        pause_ns: 30 * SECOND_NS,
        load_after: "after-short-pause",
    },
    Pause {
        pause_ns: 300 * SECOND_NS,
        load_after: "after-long-pause",
    },
];
/// The time of the load after each pause. Chosen, not measured.
const AFTER_PAUSE_NS: u64 = 30 * SECOND_NS;
/// Pauses and the load after them take at most a quarter of the time. Chosen, not measured.
const RECOVERY_DIVISOR: u64 = 4;
/// The scratch file: as large as the caches of drives. Cells of flash that are written again count
/// like new ones.
const SCRATCH_BYTES: u64 = 1 << 30;
/// The first write of the scratch file may take a twentieth of the time.
const LAYOUT_DIVISOR: u64 = 20;
/// A queue that keeps any disk busy. Chosen, not measured.
const DEPTH: u64 = 32;
/// Spare flash beyond the size of a disk, in percent: 7 in consumer drives, 28 in those for
/// writes. A pass over all of it brings flash to its steady state (Desnoyers 2012).
const SPARE_PERCENT: u64 = 28;

const HELP: &str = "\
The load is that of a database's checkpoints: random writes of 8 KiB with 32 in
flight. A file or a block device is only read unless --overwrite or --destroy
releases it; limits of cloud volumes show in reads, too. --rw, --bs, --depth and
the other flags of 'run' set another load.

After a fall of the rate, the load pauses for 30 s and for 5 min within its
time, and is measured after each pause. With less than 28 min, the pauses are
shorter. The result names a cause only where something proves it; otherwise it
is unknown. The load writes as much as the disk accepts: --dry-run shows the
limits, and --budget-bytes sets one.

On a terminal the progress fills the screen: phase, time left, rate, longest
latency, temperature, and the rate over time. In a pipe, or with --plain, it is
a line.

With --every, a load at a stated --rate is measured for 30 s each time and saved
in the history under one label. Started again with the same label on the same
target, the series continues; another load needs another label. It ends with the
trend of the mean latency and its slow hour, and with the worst exit code of its
measurements.

With --precondition, a device that --destroy releases is written once before the
load, at random and over its spare flash, too (its size and 28 %).

Exit codes: 0 done, 1 the rate fell by more than --stop-at-drop, or a threshold
was missed, 2 usage, 3 refused for safety, 4 the run failed or the disk returned
errors, 5 undecided, 130 Ctrl-C.

Examples:
  diskproof sustain /data                    # writes for 2 h
  diskproof sustain /data --time 10m --budget-bytes 200GB
  sudo diskproof sustain /dev/nvme1n1        # reads only
  diskproof sustain /data --rw write --bs 1M --depth 8
  sudo diskproof sustain /dev/nvme1n1 --destroy SERIAL --precondition
  diskproof sustain /data --time 15m --stop-at-drop 20%  # a gate for CI
  diskproof sustain /data --every 1h --for 7d --rate 200 # does it get worse?";

/// Flags of workloads that [`refuse_unsuitable`] always refuses: the help omits them.
const UNSUITABLE: [&str; 7] = [
    "precision",
    "bytes",
    "ops",
    "verify",
    "latency_target",
    "latency_percentile",
    "latency_window",
];

/// The flags that `sustain` shares with `run` and gives another default or fewer values.
const OWN_HELP: [(&str, &str); 6] = [
    (
        "rw",
        "Order and direction: read, write, randread, randwrite, rw (or readwrite), randrw \
         [default: randwrite; randread of what is only read]",
    ),
    ("bs", "Block size [default: 8k]"),
    ("depth", "Requests in flight per job [default: 32]"),
    (
        "jobs",
        "Number of workers, each with a thread and a queue [default: 1]",
    ),
    ("time", "Time of the load with its pauses [default: 2h]"),
    (
        "warmup",
        "Warm-up before the measured time [default: none, because a credit or a cache begins to \
         be used up at once]",
    ),
];

/// Hides the flags that `sustain` refuses, and describes those that it takes in its own way.
fn as_sustain_takes_it(flag: clap::Arg) -> clap::Arg {
    let name = flag.get_id().as_str();
    if UNSUITABLE.contains(&name) {
        return flag.hide(true);
    }
    match OWN_HELP.iter().find(|(own, _)| *own == name) {
        Some((_, help)) => flag.help(*help).long_help(*help),
        None => flag,
    }
}

/// Measure whether a disk keeps its rate, what ends it, and whether it comes back
#[derive(Debug, clap::Args)]
#[command(after_help = HELP, mut_args = as_sustain_takes_it)]
pub struct SustainFlags {
    /// Directory, regular file or block device
    #[arg(default_value = ".")]
    pub target: PathBuf,
    /// Write the whole device at random before the load, with its spare flash; needs --destroy
    #[arg(long)]
    pub precondition: bool,
    /// End when reads and writes together have moved so many bytes
    #[arg(long, value_name = "BYTES", value_parser = parse_budget)]
    pub budget_bytes: Option<u64>,
    /// End the load, and exit with 1, once its rate fell by more than this, such as 20%
    #[arg(long, value_name = "PERCENT", value_parser = parse_drop)]
    pub stop_at_drop: Option<f64>,
    /// Measure for 30 s (or --time) again and again with this pause, such as 1h, and report whether
    /// the latency gets worse; needs --rate
    #[arg(long, value_name = "DURATION")]
    #[arg(conflicts_with_all = ["precondition", "stop_at_drop"])]
    pub every: Option<Time>,
    /// How long the series of --every lasts; started again, it continues [default: 7d]
    #[arg(long = "for", value_name = "DURATION", requires = "every")]
    #[arg(conflicts_with_all = ["precondition", "stop_at_drop"])]
    pub series_time: Option<Time>,
    /// Show the progress on one line even on a terminal
    #[arg(long)]
    pub plain: bool,
    /// Block size, depth and workers.
    #[command(flatten)]
    pub axes: WorkloadAxes,
    /// The load.
    #[command(flatten)]
    pub workload: WorkloadFlags,
    /// Flags of every measuring verb.
    #[command(flatten)]
    pub measuring: MeasuringFlags,
}

/// Reads the bytes that a load may move. Fails for 0, which would be no load.
fn parse_budget(text: &str) -> Result<u64, String> {
    match parse_size(text) {
        Ok(0) => {
            Err("a load that moves nothing measures nothing; name a size such as 200GB".to_owned())
        }
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads a drop of the rate in percent, such as `20%`, as a share.
fn parse_drop(text: &str) -> Result<f64, String> {
    let number: Result<f64, _> = text.trim_end_matches('%').trim_end().parse();
    match number {
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(percent / 100.0),
        _ => Err("use a share of the rate in percent, such as 20%".to_owned()),
    }
}

/// Measures the load, or with `--every` a series of short ones. With `--stop-at-drop`, the exit
/// code says whether the rate fell.
pub fn run(sustain: &SustainFlags) -> anyhow::Result<Exit> {
    if let Some(Time(every_ns)) = sustain.every {
        return every::run(&SeriesRequest {
            target: &sustain.target,
            measuring: &sustain.measuring,
            rate: sustain.workload.rate.map(|rate| rate.0),
            every_ns,
            for_ns: sustain.series_time.map(|time| time.0),
            each_ns: total_ns(sustain)?,
            plan_for: &|identity| sustain_plan(sustain, identity),
        });
    }
    let identity = sustain.measuring.probe(&sustain.target)?;
    let plan = sustain_plan(sustain, &identity)?;
    let mut job = MeasuringJob::new(plan, vec![identity], &sustain.measuring);
    if !sustain.plain {
        job.view = ProgressView::Screen;
    }
    measure(job)?.exit()
}

/// The plan of `sustain` for this target.
fn sustain_plan(sustain: &SustainFlags, identity: &TargetIdentity) -> Result<Plan, Failure> {
    let measuring = &sustain.measuring;
    let time_ns = total_ns(sustain)?;
    let scratch_bytes = measuring.scratch_bytes(identity, SCRATCH_BYTES)?;
    let mut load = sustained_workload(sustain, identity, scratch_bytes)?;
    let mut load_ns = time_ns;
    let mut scratch = None;
    if let Some(bytes) = scratch_bytes {
        let layout_ns = time_ns / LAYOUT_DIVISOR;
        load_ns -= layout_ns;
        scratch = Some(Scratch::of_size(bytes).filled_within(SCRATCH_BYTES_MIN, layout_ns));
    }
    load.stop = Stop {
        time_ns: Some(load_ns),
        ..Stop::default()
    };
    let sustain_plan = SustainPlan {
        round_ns: round_ns(load_ns),
        pauses_ns: if sustain.every.is_some() {
            Vec::new()
        } else {
            PAUSES
                .map(|pause| recovery_ns(pause.pause_ns, load_ns))
                .to_vec()
        },
        precondition_bytes: precondition_bytes(sustain, identity, &load)?,
        stop_at_drop: sustain.stop_at_drop,
        budget_bytes: budget_bytes(sustain, &load),
    };
    let has_precondition = sustain_plan.precondition_bytes.is_some();
    let after_pause_ns = recovery_ns(AFTER_PAUSE_NS, load_ns);
    let workloads = all_workloads(&sustain_plan, &load, after_pause_ns);
    Ok(Plan {
        scratch,
        time_limit_ns: if has_precondition {
            None
        } else {
            Some(time_ns)
        },
        tasks: vec![Task::Workloads(Workloads {
            decide: Decide::Until(sustain_plan),
            ..Workloads::as_planned(workloads)
        })],
        ..measuring.plan("sustain", std::slice::from_ref(identity))
    })
}

/// The most bytes that a run may move; `None` without a limit. A measurement of a series moves what
/// its rate offers, so that the limits of its plan are those of the series.
fn budget_bytes(sustain: &SustainFlags, load: &Workload) -> Option<u64> {
    let (Some(_), Some(rate), Some(time_ns)) = (sustain.every, load.rate, load.stop.time_ns) else {
        return sustain.budget_bytes;
    };
    // Each worker may begin one more at the end.
    let operations = (rate * time_ns as f64 / 1e9).ceil() as u64 + u64::from(load.workers);
    let offered_bytes = operations.saturating_mul(u64::from(load.block_bytes));
    Some(match sustain.budget_bytes {
        Some(bytes) => bytes.min(offered_bytes),
        None => offered_bytes,
    })
}

/// The time of the load, its pauses and the first write of a scratch file; of one measurement of a
/// series, which has no pauses. Fails where it is too short for a load.
fn total_ns(sustain: &SustainFlags) -> Result<u64, Failure> {
    let time_ns = match sustain.workload.time {
        Some(Time(ns)) => ns,
        None if sustain.every.is_some() => every::TIME_NS,
        None => TIME_NS,
    };
    if time_ns < TIME_NS_MIN {
        return Err(Failure::Usage(format!(
            "--time {}: no load that lasts is so short; use at least {}",
            format_duration(time_ns),
            format_duration(TIME_NS_MIN)
        )));
    }
    Ok(time_ns)
}

/// The time of a round, in whole tenths of a second.
fn round_ns(load_ns: u64) -> u64 {
    let usual_ns = (load_ns / ROUNDS).clamp(ROUND_NS_MIN, ROUND_NS_MAX);
    whole_tenths(usual_ns.min(load_ns / ROUNDS_MIN))
}

/// The time of a pause, or of the load after it: `part_ns`, or less of it in a load too short for
/// the whole recovery.
fn recovery_ns(part_ns: u64, load_ns: u64) -> u64 {
    let mut usual_ns = 0;
    for pause in &PAUSES {
        usual_ns += pause.pause_ns + AFTER_PAUSE_NS;
    }
    let allowed_ns = load_ns / RECOVERY_DIVISOR;
    if usual_ns <= allowed_ns {
        return part_ns;
    }
    let share = allowed_ns as f64 / usual_ns as f64;
    whole_tenths((part_ns as f64 * share) as u64)
}

/// The time in whole tenths of a second, but at least one.
fn whole_tenths(ns: u64) -> u64 {
    let tenth_ns = SECOND_NS / 10;
    (ns / tenth_ns).max(1) * tenth_ns
}

/// The precondition where there is one, the load, and the load after each pause.
fn all_workloads(
    sustain_plan: &SustainPlan,
    load: &Workload,
    after_pause_ns: u64,
) -> Vec<Workload> {
    let mut workloads = Vec::new();
    if let Some(bytes) = sustain_plan.precondition_bytes {
        // Blocks that may repeat would leave e^-1.28 of them unwritten: 28 %.
        let order = RequestOrder {
            each_block_once: true,
            workers_share_map: true,
            ..RequestOrder::default()
        };
        workloads.push(Workload {
            shape: LoadShape {
                order,
                ..LoadShape::default()
            },
            block_bytes: load.block_bytes,
            depth: load.depth,
            workers: load.workers,
            engine: load.engine,
            streams: Streams::with_reads(WRITES_ONLY_PERMILLE),
            access: Access::Random {
                distribution: Distribution::Uniform,
            },
            stop: Stop {
                bytes: Some(bytes),
                ..Stop::default()
            },
            ..Workload::named("precondition")
        });
    }
    workloads.push(load.clone());
    // A measurement of a series has no pauses.
    for (_, pause) in sustain_plan.pauses_ns.iter().zip(&PAUSES) {
        let mut after = load.clone();
        after.name = pause.load_after.to_owned();
        after.stop.time_ns = Some(after_pause_ns);
        workloads.push(after);
    }
    workloads
}

/// The load of the flags; by default that of a database's checkpoints. Its limits are placeholders,
/// which the plan replaces.
fn sustained_workload(
    sustain: &SustainFlags,
    identity: &TargetIdentity,
    scratch_bytes: Option<u64>,
) -> Result<Workload, Failure> {
    refuse_unsuitable(&sustain.workload)?;
    let mut expanded = sustain
        .axes
        .expand(&sustain.workload)
        .map_err(Failure::Usage)?;
    if expanded.len() > 1 {
        let why = "sustain has one load; use one value of --bs, --depth and --jobs";
        return Err(Failure::Usage(why.to_owned()));
    }
    let mut flags = expanded.remove(0);
    let is_only_read = sustain
        .measuring
        .destructive
        .why_only_read(identity.kind)
        .is_some();
    if flags.rw.is_none() {
        flags.rw = Some(if is_only_read {
            Rw::RANDREAD
        } else {
            Rw::RANDWRITE
        });
    }
    flags.depth = flags.depth.or(Some(Count(DEPTH)));
    flags.warmup = flags.warmup.or(Some(Time(0)));
    // No workload is resolved without an end. The plan sets the time that is left for the load.
    flags.time = Some(Time(TIME_NS));
    if flags.name.is_none() {
        flags.name = Some(WorkloadName("sustained".to_owned()));
    }
    let context = ResolveContext {
        target_bytes: vec![scratch_bytes.unwrap_or(identity.size_bytes)],
        memory: Memory::of_host(),
        content: Content::Data,
        engine: sustain.measuring.engine,
    };
    let load =
        resolve(&flags, &context).map_err(|error| Failure::Usage(error.text(Wording::Flags)))?;
    if let Some(why) = sector_mismatch(&load, sector_bytes(std::slice::from_ref(identity))) {
        return Err(Failure::Usage(why));
    }
    Ok(load)
}

/// Refuses flags that would end the load earlier, or measure something else.
fn refuse_unsuitable(flags: &WorkloadFlags) -> Result<(), Failure> {
    if flags.verify.is_some() {
        return Err(Failure::Usage(
            "--verify does not apply to a sustained load; verify blocks with 'diskproof run \
             --verify'"
                .to_owned(),
        ));
    }
    if let Some(rw) = flags.rw
        && !rw.kinds().all(OpKind::moves_data)
    {
        return Err(Failure::Usage(format!(
            "'--rw {}' moves no data, so no cache or credit would show; use reads or writes",
            rw.as_str()
        )));
    }
    let other_ends = [
        ("--precision", flags.precision.is_some()),
        ("--bytes", flags.bytes.is_some()),
        ("--ops", flags.ops.is_some()),
        ("--latency-target", flags.latency_target.is_some()),
    ];
    for (flag, is_given) in other_ends {
        if is_given {
            return Err(Failure::Usage(format!(
                "{flag} does not apply to a sustained load; limit it with --time or --budget-bytes"
            )));
        }
    }
    Ok(())
}

/// Bytes of the precondition, in whole blocks; `None` without `--precondition`. Fails for a target
/// that is no released device.
fn precondition_bytes(
    sustain: &SustainFlags,
    identity: &TargetIdentity,
    load: &Workload,
) -> Result<Option<u64>, Failure> {
    if !sustain.precondition {
        return Ok(None);
    }
    let is_released = identity.kind == TargetKind::BlockDevice
        && sustain
            .measuring
            .destructive
            .why_only_read(identity.kind)
            .is_none();
    if !is_released {
        return Err(Failure::Usage(
            "--precondition writes all of a device, so it needs a block device that --destroy NAME \
             releases; a scratch file covers only a part of the disk"
                .to_owned(),
        ));
    }
    let block_bytes = u64::from(load.block_bytes);
    let bytes = identity.size_bytes / 100 * (100 + SPARE_PERCENT);
    Ok(Some(bytes / block_bytes * block_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Args as _;

    #[test]
    fn help_omits_flags_that_are_always_refused() {
        let command = SustainFlags::augment_args(clap::Command::new("sustain"));
        for name in UNSUITABLE {
            let flag = command.get_arguments().find(|flag| flag.get_id() == name);
            assert!(flag.unwrap().is_hide_set(), "{name}");
        }
    }
}
