//! `diskproof check`: the eight workloads that matter to a database, each in the state that the one
//! before it leaves.

pub(crate) mod layers;

use crate::data_sheet::parse_data_sheet;
use crate::failure::{Exit, Failure};
use crate::fitness::measure_fitness;
use crate::flags::{MeasuringFlags, SECOND, SelectionFlags};
use crate::postgres::postgres_version;
use crate::saved::disk_access;
use crate::session::{MeasuringJob, measure};
use crate::standard_workloads::standard_workloads;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{
    EngineChoice, Order, Plan, Questions, Scratch, Skipped, Span, Task, Workloads,
};
use diskproof_model::surface::{AccessPlan, BurstPlan, Coverage, CurvePlan, DataSheet, Survey};
use diskproof_model::target::{TargetIdentity, TargetKind};
use std::path::PathBuf;

/// Drives have up to 1 GiB of cache; a smaller file would measure the cache.
const SCRATCH_BYTES_MIN: u64 = 1 << 30;

/// How long the run takes at most, and how large its scratch file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TimeBudget {
    time_ns: u64,
    scratch_bytes: u64,
}

impl TimeBudget {
    /// The time that is shared out. The rest is for a disk that is slow to fill the scratch file,
    /// and for the begin and the end of each slice.
    fn shared_ns(self) -> u64 {
        let turns_ns = if self.time_ns >= QUICK.time_ns {
            TURNS_NS
        } else {
            0
        };
        (self.time_ns - turns_ns) / (58 + EXTRA_SHARE) * 58
    }

    /// The longest that the first write of the scratch file may take.
    fn first_write_ns(self) -> u64 {
        self.shared_ns() / 58 * (FIRST_WRITE_SHARE + EXTRA_SHARE)
    }
}

/// Shares of the time for a device's surface, in 58ths. The five writing workloads leave 37, and
/// calibration before the curve takes one or two.
const CURVE_SHARE: u64 = 20;
const ACCESS_SHARE: u64 = 13;
/// Shares of the time for sequential writes, in 58ths: for the first write of the scratch file, and
/// for overwriting it. A slow disk gets more for the first write.
const FIRST_WRITE_SHARE: u64 = 4;
const REWRITE_SHARE: u64 = 5;
const EXTRA_SHARE: u64 = 6;
/// Time for filling and emptying the queue in up to 56 slices, about 27 ms each. Shorter runs have
/// hardly any slices.
const TURNS_NS: u64 = 3 * SECOND / 2;
/// Enough for as many accesses as `curve` makes.
const ACCESS_NS_MAX: u64 = 30 * SECOND;
/// One point of the curve for this much of the whole time (64 in a minute), within limits.
const POINT_NS: u64 = 900_000_000;
const POINTS: (u32, u32) = (24, 200);
/// The steps of a device's survey, as `--only` and `--expect` name them.
const CURVE: &str = "curve";
/// Two seconds are enough for slices.
const ORDER: Order = Order::InTurns {
    slices_from_ns: 1_500_000_000,
};
const ACCESS: &str = "access";
const STEPS: [&str; 3] = [CURVE, ACCESS, "burst"];
/// Fits into the cache of any disk.
const BURST_BYTES: u64 = 512 << 10;
/// The help promises 20 s, about a minute and 5 min; identifying the disk, the last requests in
/// flight and saving the record take up to a second more.
const QUICK: TimeBudget = TimeBudget {
    time_ns: 19 * SECOND,
    scratch_bytes: 1 << 30,
};
const NORMAL: TimeBudget = TimeBudget {
    time_ns: 60 * SECOND,
    scratch_bytes: 4 << 30,
};
const THOROUGH: TimeBudget = TimeBudget {
    time_ns: 290 * SECOND,
    scratch_bytes: 16 << 30,
};

const HELP: &str = "\
In a directory, check measures a scratch file. The file has no name and vanishes
even after kill -9. A regular file or a block device is only read unless you
release it: a file with --overwrite, a device with --destroy and its serial,
model or kernel name. Releasing destroys the content. A target that is in use or
holds data of a known format is refused even then.
--only and --skip take workload names and, for a device, curve, access and burst.
Sizes: 8k = 8 KiB, 8kB = 8000 bytes, 4GiB. Durations: 500ms, 30s, 2m.

Exit codes: 0 done, 1 a threshold was missed, 2 usage, 3 refused for safety,
4 the run failed or the disk returned errors, 5 a threshold is undecided,
130 Ctrl-C.

Examples:
  diskproof check                               # the disk of this directory
  diskproof check /var/lib/postgresql --quick   # the same in 20 s
  sudo diskproof check /dev/sdb                 # reads only
  sudo diskproof check /dev/sdb --destroy S3Z9NB0K # writes; destroys all data
  diskproof check --only random-read-d32,commit-fdatasync
  sudo diskproof check /srv/db --layers         # cost of filesystem, LUKS, RAID
  diskproof check . --spec iops=3000,rate=125MB/s # does it meet the data sheet?
  diskproof check . --expect 'commit-fdatasync.p99<=5ms' --json -o today.json";

/// Measure everything that matters about a disk, in about a minute
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct CheckFlags {
    /// Directory, regular file or block device
    #[arg(default_value = ".")]
    pub target: PathBuf,
    /// Take at most 20 seconds
    #[arg(long, conflicts_with_all = ["thorough", "time"])]
    pub quick: bool,
    /// Take up to 5 minutes
    #[arg(long, conflicts_with = "time")]
    pub thorough: bool,
    /// Time limit of the whole run, at least 1s
    #[arg(long, value_name = "DURATION", value_parser = diskproof_model::units::parse_duration)]
    pub time: Option<u64>,
    /// Decide whether the target is fit for a database: postgresql, etcd, mysql, sqlite, or the
    /// path of a profile with limits; measures only its workloads (diskproof help fitness)
    #[arg(long = "for", value_name = "PROFILE")]
    #[arg(conflicts_with_all = ["only", "skip", "read_only", "spec"])]
    pub fit_for: Option<String>,
    /// Skip the writing workloads; a scratch file is still filled
    #[arg(long)]
    pub read_only: bool,
    /// Measure the cost of each layer from the file down to the disk, with the same random reads on
    /// each readable layer (diskproof help layers)
    #[arg(long, conflicts_with_all = ["fit_for", "read_only", "spec", "pg_version"])]
    pub layers: bool,
    /// What is measured.
    #[command(flatten)]
    pub selection: SelectionFlags,
    /// Data sheet figures to check, such as rpm=7200,seek=11ms,rate=92MB/s or
    /// rate=3GB/s,write-rate=2GB/s,iops=90k,write-iops=80k
    #[arg(long, value_name = "FIGURES", value_parser = parse_data_sheet)]
    pub spec: Option<DataSheet>,
    /// Major version of PostgreSQL for the recommended settings [default: that of the data
    /// directory on the target, or of the only installed server]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..=99))]
    pub pg_version: Option<u32>,
    /// Flags of every measuring verb.
    #[command(flatten)]
    pub measuring: MeasuringFlags,
}

/// Measures.
pub fn run(check: &CheckFlags) -> anyhow::Result<Exit> {
    let identity = check.measuring.probe(&check.target)?;
    if let Some(profile) = &check.fit_for {
        let time_ns = time_budget(check).time_ns;
        return measure_fitness(profile, "check", ORDER, identity, time_ns, &check.measuring);
    }
    if check.layers {
        let time_ns = match check.time {
            Some(time_ns) => time_ns,
            None if check.quick => layers::QUICK_NS,
            None if check.thorough => layers::THOROUGH_NS,
            None => layers::TIME_NS,
        };
        return layers::run(&check.selection, time_ns, &check.measuring, identity);
    }
    let mut plan = plan(check, &identity)?;
    plan.questions.disk_access = disk_access(&identity, check.measuring.history.history.as_deref());
    let job = MeasuringJob::new(plan, vec![identity], &check.measuring);
    measure(job)?.exit()
}

fn time_budget(check: &CheckFlags) -> TimeBudget {
    match check.time {
        Some(time_ns) => TimeBudget {
            time_ns,
            scratch_bytes: if time_ns > 30 * SECOND { NORMAL } else { QUICK }.scratch_bytes,
        },
        None if check.quick => QUICK,
        None if check.thorough => THOROUGH,
        None => NORMAL,
    }
}

/// The plan of `check` for this target.
pub fn plan(check: &CheckFlags, identity: &TargetIdentity) -> Result<Plan, Failure> {
    let (budget, measuring) = (time_budget(check), &check.measuring);
    Failure::check_time(budget.time_ns)?;
    let scratch_bytes = measuring.scratch_bytes(identity, budget.scratch_bytes)?;
    let (mut workloads, mut skipped) = (Vec::new(), Vec::new());
    let (write_bytes, sequential_share) = match scratch_bytes {
        Some(bytes) => (bytes, REWRITE_SHARE),
        // The span is the whole target, and the writes wear it no more than a scratch file would.
        None => (
            budget.scratch_bytes.min(identity.size_bytes),
            REWRITE_SHARE + FIRST_WRITE_SHARE,
        ),
    };
    let surveyed = identity.kind == TargetKind::BlockDevice;
    // When everything is measured, the surface takes its share from the workloads.
    let is_all = surveyed && !measuring.destructive.destroy.is_empty() && !check.read_only;
    let shared_ns = if is_all {
        budget.shared_ns() * 58 / (58 + CURVE_SHARE + ACCESS_SHARE + 3)
    } else {
        budget.shared_ns()
    };
    let all = standard_workloads(measuring, shared_ns, write_bytes, sequential_share);
    let survey = surveyed.then(|| survey(measuring, shared_ns, identity));
    let mut known: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    known.extend(STEPS.iter().filter(|_| surveyed));
    check.selection.check_names(&known)?;
    for workload in all {
        let unreleased = why_not_written(check, identity.kind).filter(|_| workload.writes());
        let excluded = check.selection.excludes(&workload.name).map(str::to_owned);
        match excluded.or(unreleased) {
            Some(why) => skipped.push(Skipped::new(workload.name, why)),
            None => workloads.push(workload),
        }
    }
    let survey = survey.and_then(|survey| select_steps(&check.selection, survey, &mut skipped));
    if workloads.is_empty() && survey.is_none() {
        return Err(nothing_left(&skipped));
    }
    let mut tasks = Vec::new();
    if let Some(survey) = survey {
        tasks.push(Task::Survey(survey));
    }
    if !workloads.is_empty() {
        tasks.push(Task::Workloads(Workloads {
            order: ORDER,
            ..Workloads::as_planned(workloads)
        }));
    }
    let scratch = scratch_bytes.map(|bytes| {
        Scratch::of_size(bytes).filled_within(SCRATCH_BYTES_MIN, budget.first_write_ns())
    });
    Ok(Plan {
        scratch,
        time_limit_ns: Some(budget.time_ns),
        tasks,
        questions: Questions {
            data_sheet: check.spec,
            postgres_version: postgres_version(check.pg_version, &check.target),
            ..Questions::default()
        },
        skipped,
        ..measuring.plan("check", std::slice::from_ref(identity))
    })
}

/// The selected steps of the survey; `None` where none is.
fn select_steps(
    selection: &SelectionFlags,
    mut survey: Survey,
    skipped: &mut Vec<Skipped>,
) -> Option<Survey> {
    for step in STEPS {
        let Some(why) = selection.excludes(step) else {
            continue;
        };
        match step {
            CURVE => survey.curve = None,
            ACCESS => survey.access = None,
            _ => survey.burst = None,
        }
        skipped.push(Skipped::new(step, why));
    }
    let is_left = survey.curve.is_some() || survey.access.is_some() || survey.burst.is_some();
    is_left.then_some(survey)
}

fn nothing_left(skipped: &[Skipped]) -> Failure {
    let unreleased = skipped.iter().find(|one| !one.why.starts_with("--"));
    Failure::Usage(match unreleased {
        Some(Skipped { workload, why }) => format!("nothing is left to measure. {workload}: {why}"),
        None => {
            "nothing is left to measure; select at least one workload, or with --read-only one \
                 that reads"
                .to_owned()
        }
    })
}

/// Why workloads that write are skipped on a target of this kind, and what to check instead.
fn why_not_written(check: &CheckFlags, kind: TargetKind) -> Option<String> {
    let destructive = &check.measuring.destructive;
    let why = destructive.why_not_written(check.read_only, kind)?;
    let on_it = match kind {
        _ if check.read_only => return Some(why.to_owned()),
        TargetKind::BlockDevice => " on it",
        TargetKind::File | TargetKind::Directory => "",
    };
    Some(format!(
        "{why}; check a directory{on_it} to measure writes safely"
    ))
}

/// On a device that is only read, the surface takes the time of the writing workloads.
fn survey(measuring: &MeasuringFlags, time_ns: u64, identity: &TargetIdentity) -> Survey {
    let points = (time_ns / POINT_NS).clamp(u64::from(POINTS.0), u64::from(POINTS.1)) as u32;
    let curve = CurvePlan {
        points,
        coverage: Coverage::Sampled { sample_bytes: None },
        time_ns: Some(time_ns / 58 * CURVE_SHARE),
    };
    let access_ns = (time_ns / 58 * ACCESS_SHARE).min(ACCESS_NS_MAX);
    let reads = (access_ns / 30_000_000).clamp(100, 1000) as u32;
    Survey {
        operation: OpKind::Read,
        span: Span::default(),
        engine: measuring.engine.unwrap_or(EngineChoice::Auto),
        curve: Some(curve),
        burst: Some(BurstPlan {
            bytes: BURST_BYTES,
            time_ns: (time_ns / 58).min(SECOND / 2),
        }),
        access: Some(AccessPlan {
            random_reads: reads,
            pattern_reads: reads / 6,
            block_bytes: crate::plan_file::sector_bytes(std::slice::from_ref(identity)),
            time_ns: access_ns,
        }),
        scan: None,
    }
}
