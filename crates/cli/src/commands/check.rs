//! `diskproof check`: the eight workloads that matter to a database, each in the state that the one
//! before it leaves.

pub(crate) mod layers;

use crate::data_sheet::parse_data_sheet;
use crate::failure::{Exit, Failure};
use crate::fitness::measure_fitness;
use crate::flags::{MeasuringFlags, SECOND_NS, SelectionFlags};
use crate::postgres::postgres_version;
use crate::saved::disk_access;
use crate::session::{MeasuringJob, measure};
use crate::standard_workloads::{TIME_PARTS, standard_workloads};
use crate::workload::parse_time;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{
    EngineChoice, Order, Plan, Questions, Scratch, SkipCause, Skipped, Span, Task, Workload,
    Workloads,
};
use diskproof_model::surface::{AccessPlan, BurstPlan, Coverage, CurvePlan, DataSheet, Survey};
use diskproof_model::target::{TargetIdentity, TargetKind};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// The largest cache of drives: a smaller scratch file would measure the cache.
const CACHE_BYTES_MAX: u64 = 1 << 30;

/// The time that the run takes at most, and the size of its scratch file.
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
        (self.time_ns - turns_ns) / (TIME_PARTS + EXTRA_PARTS) * TIME_PARTS
    }

    /// The longest that the first write of the scratch file may take.
    fn first_write_ns(self) -> u64 {
        self.shared_ns() / TIME_PARTS * (FIRST_WRITE_PARTS + EXTRA_PARTS)
    }
}

/// Parts of the time, of which there are [`TIME_PARTS`], for the curve of a device. The parts here
/// and below are chosen, not measured. Together with access times and the burst it takes about what
/// the five writing workloads leave on a device that is only read.
const CURVE_PARTS: u64 = 20;
/// Parts of the time for a device's access times.
const ACCESS_PARTS: u64 = 13;
/// Parts of the time for the burst of a device.
const BURST_PARTS: u64 = 1;
/// Parts of the time that calibration takes before the curve, at most.
const CALIBRATION_PARTS: u64 = 2;
/// Parts of the time of the whole survey of a device.
const SURVEY_PARTS: u64 = CURVE_PARTS + ACCESS_PARTS + BURST_PARTS + CALIBRATION_PARTS;
/// Parts of the time in which a scratch file is written for the first time.
const FIRST_WRITE_PARTS: u64 = 4;
/// Parts of the time in which a scratch file is overwritten by sequential writes.
const REWRITE_PARTS: u64 = 5;
/// Parts beyond the others, for a disk that is slow to write the scratch file for the first time.
const EXTRA_PARTS: u64 = 6;
/// Time for filling and emptying the queue in up to 56 slices, about 27 ms each. Shorter runs have
/// hardly any slices.
const TURNS_NS: u64 = 3 * SECOND_NS / 2;
/// Enough for as many accesses as `curve` makes.
const ACCESS_NS_MAX: u64 = 30 * SECOND_NS;
/// Time of a random read and of its share of the other patterns. `curve` counts on as much: 30 s
/// for 1000 reads.
const ACCESS_READ_NS: u64 = 30_000_000;
/// Random reads of the access times: never more than `curve` makes.
const ACCESS_READS: RangeInclusive<u64> = 100..=1000;
/// For this many random reads there is one of each other pattern, about as in `curve`.
const READS_PER_PATTERN_READ: u32 = 6;
/// One point of the curve for this much of the whole time: 64 in a minute.
const POINT_NS: u64 = 900_000_000;
/// Points of the curve: never more than `curve` has.
const POINTS: RangeInclusive<u64> = 24..=200;
/// Workloads of at least 1.5 s are measured in slices: those of a quick run have almost two.
const ORDER: Order = Order::InTurns {
    slices_from_ns: 1_500_000_000,
};
/// Fits into the cache of any disk.
const BURST_BYTES: u64 = 512 << 10;
/// The longest that the burst takes.
const BURST_NS_MAX: u64 = SECOND_NS / 2;
/// The help promises 20 s; identifying the disk, the last requests in flight and saving the record
/// take up to a second more.
const QUICK: TimeBudget = TimeBudget {
    time_ns: 19 * SECOND_NS,
    scratch_bytes: 1 << 30,
};
/// The help promises about a minute.
const NORMAL: TimeBudget = TimeBudget {
    time_ns: 60 * SECOND_NS,
    scratch_bytes: 4 << 30,
};
/// The help promises up to 5 min.
const THOROUGH: TimeBudget = TimeBudget {
    time_ns: 290 * SECOND_NS,
    scratch_bytes: 16 << 30,
};
/// With a longer `--time` the scratch file is that of a normal run, else that of a quick one.
const QUICK_SCRATCH_NS_MAX: u64 = 30 * SECOND_NS;

/// A step of a device's survey.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SurveyStep {
    Curve,
    Access,
    Burst,
}

impl SurveyStep {
    const ALL: [Self; 3] = [Self::Curve, Self::Access, Self::Burst];

    /// Its name in `--only` and `--skip`.
    fn name(self) -> &'static str {
        match self {
            Self::Curve => "curve",
            Self::Access => "access",
            Self::Burst => "burst",
        }
    }

    /// Its parts of the time.
    fn parts(self) -> u64 {
        match self {
            Self::Curve => CALIBRATION_PARTS + CURVE_PARTS,
            Self::Access => ACCESS_PARTS,
            Self::Burst => BURST_PARTS,
        }
    }
}

const HELP: &str = "\
In a directory, check measures a scratch file. The file has no name and vanishes
even after kill -9. A regular file or a block device is only read unless you
release it: a file with --overwrite, a device with --destroy and its serial,
model or kernel name. Releasing destroys the content. A target that is in use or
holds data of a known format is refused even then.
--only and --skip take workload names and, for a device, curve, access and
burst; the workloads that are measured share the whole time.
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
    #[arg(long, value_name = "DURATION", value_parser = parse_time)]
    pub time: Option<u64>,
    /// Decide whether the target is fit for a database: postgresql, etcd, mysql, mysql-8.0 (also
    /// mariadb), sqlite, or the path of a profile with limits; measures only its workloads
    /// (diskproof help fitness)
    #[arg(long = "for", value_name = "PROFILE")]
    #[arg(conflicts_with_all = ["only", "skip", "read_only", "spec"])]
    pub fit_for: Option<String>,
    /// Measure and print nothing and exit with 0 if this path exists: a gate for a first start
    #[arg(long, value_name = "PATH")]
    pub unless_exists: Option<PathBuf>,
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
    /// size=4TB,rate=3GB/s,write-rate=2GB/s,iops=90k
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

/// True if the path exists. Fails where that cannot be seen: a gate that measures each time keeps a
/// database down.
fn is_there(path: &Path) -> Result<bool, Failure> {
    path.try_exists()
        .map_err(|why| Failure::Usage(format!("--unless-exists {}: {why}", path.display())))
}

/// Measures the workloads, the layers, or with `--for` whether the target is fit for a database.
pub fn run(check: &CheckFlags) -> anyhow::Result<Exit> {
    if let Some(path) = &check.unless_exists
        && is_there(path)?
    {
        let note = format!("{} exists, so nothing is measured", path.display());
        check.measuring.verbosity().note(&note);
        return Ok(Exit::Done);
    }
    if let Some(time_ns) = check.time {
        Failure::check_time(time_ns)?;
    }
    let identity = check.measuring.probe(&check.target)?;
    if let Some(profile) = &check.fit_for {
        let time_ns = budget_of_flags(check).time_ns;
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
    let mut plan = check_plan(check, &identity)?;
    plan.questions.disk_access = disk_access(&identity, check.measuring.history.history.as_deref());
    let job = MeasuringJob::new(plan, vec![identity], &check.measuring);
    measure(job)?.exit()
}

fn budget_of_flags(check: &CheckFlags) -> TimeBudget {
    match check.time {
        Some(time_ns) if time_ns > QUICK_SCRATCH_NS_MAX => TimeBudget { time_ns, ..NORMAL },
        Some(time_ns) => TimeBudget { time_ns, ..QUICK },
        None if check.quick => QUICK,
        None if check.thorough => THOROUGH,
        None => NORMAL,
    }
}

/// The plan of `check` for this target, with the survey of a device. Fails where the flags leave
/// nothing to measure, or name what does not exist.
pub fn check_plan(check: &CheckFlags, identity: &TargetIdentity) -> Result<Plan, Failure> {
    let budget = budget_of_flags(check);
    let measuring = &check.measuring;
    Failure::check_time(budget.time_ns)?;
    let scratch_bytes = measuring.scratch_bytes(identity, budget.scratch_bytes)?;
    let timing = Timing {
        measuring,
        budget,
        scratch_bytes,
        identity,
        writes: measuring
            .destructive
            .write_ban(check.read_only, identity.kind)
            .is_none(),
    };
    let standard = timing.workloads(timing.shared_ns());
    let mut known_names: Vec<&str> = standard
        .iter()
        .map(|workload| workload.name.as_str())
        .collect();
    if timing.has_survey() {
        known_names.extend(SurveyStep::ALL.map(SurveyStep::name));
    }
    check.selection.check_names(&known_names)?;
    let SelectedWorkloads {
        workloads,
        mut skipped,
    } = select_workloads(check, standard, identity.kind);
    let shared_ns = timing.time_for(&workloads, &check.selection);
    let mut tasks = Vec::new();
    if timing.has_survey() {
        let mut survey = device_survey(measuring, shared_ns, identity);
        skipped.extend(remove_unselected_steps(&check.selection, &mut survey));
        if survey.curve.is_some() || survey.access.is_some() || survey.burst.is_some() {
            tasks.push(Task::Survey(survey));
        }
    }
    if !workloads.is_empty() {
        let mut timed = timing.workloads(shared_ns);
        timed.retain(|one| workloads.iter().any(|selected| selected.name == one.name));
        tasks.push(Task::Workloads(Workloads {
            order: ORDER,
            ..Workloads::as_planned(timed)
        }));
    }
    if tasks.is_empty() {
        return Err(nothing_to_measure(&skipped));
    }
    let scratch = scratch_bytes.map(|bytes| {
        Scratch::of_size(bytes).filled_within(CACHE_BYTES_MAX, budget.first_write_ns())
    });
    Ok(Plan {
        scratch,
        time_limit_ns: Some(budget.time_ns),
        tasks,
        questions: Questions {
            data_sheet: check.spec,
            postgres_version: postgres_version(check.pg_version, &check.target, None),
            ..Questions::default()
        },
        skipped,
        ..measuring.plan("check", std::slice::from_ref(identity))
    })
}

/// The time of a run, and how its workloads and the survey share it.
#[derive(Clone, Copy)]
struct Timing<'a> {
    measuring: &'a MeasuringFlags,
    budget: TimeBudget,
    scratch_bytes: Option<u64>,
    identity: &'a TargetIdentity,
    /// True if the user lets workloads write.
    writes: bool,
}

impl Timing<'_> {
    fn has_survey(self) -> bool {
        self.identity.kind == TargetKind::BlockDevice
    }

    /// The time of which everything takes its parts, if nothing is left out.
    fn shared_ns(self) -> u64 {
        let shared_ns = self.budget.shared_ns();
        // Where the workloads write, too, the survey takes its share of the time from them.
        if self.has_survey() && self.writes {
            shared_ns * TIME_PARTS / (TIME_PARTS + SURVEY_PARTS)
        } else {
            shared_ns
        }
    }

    fn workloads(self, shared_ns: u64) -> Vec<Workload> {
        let (write_bytes, sequential_parts) = match self.scratch_bytes {
            Some(bytes) => (bytes, REWRITE_PARTS),
            // The span is the whole target, and the writes wear it no more than a scratch file
            // would.
            None => (
                self.budget.scratch_bytes.min(self.identity.size_bytes),
                REWRITE_PARTS + FIRST_WRITE_PARTS,
            ),
        };
        standard_workloads(self.measuring, shared_ns, write_bytes, sequential_parts)
    }

    /// The time of which these workloads and the selected steps of the survey take their parts:
    /// they share that of what is left out.
    fn time_for(self, selected: &[Workload], selection: &SelectionFlags) -> u64 {
        let shared_ns = self.shared_ns();
        let part_ns = shared_ns / TIME_PARTS;
        let mut whole_ns = 0;
        for workload in self.workloads(shared_ns) {
            // Those that may not write leave their time to the survey.
            if !self.has_survey() || self.writes || !workload.writes() {
                whole_ns += time_of(&workload);
            }
        }
        let mut used_ns: u64 = selected.iter().map(time_of).sum();
        if self.has_survey() {
            for step in SurveyStep::ALL {
                let step_ns = step.parts() * part_ns;
                whole_ns += step_ns;
                if selection.excludes(step.name()).is_none() {
                    used_ns += step_ns;
                }
            }
        }
        let times = whole_ns as f64 / used_ns.max(1) as f64;
        (shared_ns as f64 * times) as u64
    }
}

/// The time of a workload with its warm-up.
fn time_of(workload: &Workload) -> u64 {
    workload.stop.time_ns.unwrap_or(0) + workload.warmup_ns
}

/// The workloads to measure, and those that are skipped.
struct SelectedWorkloads {
    workloads: Vec<Workload>,
    skipped: Vec<Skipped>,
}

/// Keeps the workloads that the user selected and that may run on the target.
fn select_workloads(
    check: &CheckFlags,
    standard: Vec<Workload>,
    kind: TargetKind,
) -> SelectedWorkloads {
    let write_ban = check.measuring.destructive.write_ban(check.read_only, kind);
    let mut workloads = Vec::new();
    let mut skipped = Vec::new();
    for workload in standard {
        if let Some(flag) = check.selection.excludes(&workload.name) {
            skipped.push(Skipped::by_flag(workload.name, flag));
            continue;
        }
        match write_ban {
            Some(ban) if workload.writes() => {
                skipped.push(ban.skipped(workload.name, directory_advice(kind)));
            }
            _ => workloads.push(workload),
        }
    }
    SelectedWorkloads { workloads, skipped }
}

/// Removes the steps from the survey that the user did not select, and returns them.
fn remove_unselected_steps(selection: &SelectionFlags, survey: &mut Survey) -> Vec<Skipped> {
    let mut skipped = Vec::new();
    for step in SurveyStep::ALL {
        let Some(flag) = selection.excludes(step.name()) else {
            continue;
        };
        match step {
            SurveyStep::Curve => survey.curve = None,
            SurveyStep::Access => survey.access = None,
            SurveyStep::Burst => survey.burst = None,
        }
        skipped.push(Skipped::by_flag(step.name(), flag));
    }
    skipped
}

/// The error of flags that leave nothing to measure.
fn nothing_to_measure(skipped: &[Skipped]) -> Failure {
    let unreleased = skipped
        .iter()
        .find(|skipped| skipped.cause == SkipCause::Target);
    Failure::Usage(match unreleased {
        Some(Skipped { workload, why, .. }) => {
            format!("nothing is left to measure. {workload}: {why}")
        }
        None => {
            "nothing is left to measure; select at least one workload, or with --read-only one \
                 that reads"
                .to_owned()
        }
    })
}

/// The end of a sentence that says what to check instead of a target of this kind, to measure
/// writes.
fn directory_advice(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::BlockDevice => "; check a directory on it to measure writes safely",
        TargetKind::File | TargetKind::Directory => "; check a directory to measure writes safely",
    }
}

/// The curve, the burst and the access times of a device, which is only read. `time_ns` is the time
/// of which they take their parts.
fn device_survey(measuring: &MeasuringFlags, time_ns: u64, identity: &TargetIdentity) -> Survey {
    let points = time_ns / POINT_NS;
    let curve = CurvePlan {
        points: points.clamp(*POINTS.start(), *POINTS.end()) as u32,
        coverage: Coverage::Sampled { sample_bytes: None },
        time_ns: Some(time_ns / TIME_PARTS * CURVE_PARTS),
    };
    let access_ns = (time_ns / TIME_PARTS * ACCESS_PARTS).min(ACCESS_NS_MAX);
    let fitting_reads = access_ns / ACCESS_READ_NS;
    let reads = fitting_reads.clamp(*ACCESS_READS.start(), *ACCESS_READS.end()) as u32;
    Survey {
        operation: OpKind::Read,
        span: Span::default(),
        engine: measuring.engine.unwrap_or(EngineChoice::Auto),
        curve: Some(curve),
        burst: Some(BurstPlan {
            bytes: BURST_BYTES,
            time_ns: (time_ns / TIME_PARTS * BURST_PARTS).min(BURST_NS_MAX),
        }),
        access: Some(AccessPlan {
            random_reads: reads,
            pattern_reads: reads / READS_PER_PATTERN_READ,
            block_bytes: crate::plan_file::sector_bytes(std::slice::from_ref(identity)),
            time_ns: access_ns,
        }),
        scan: None,
    }
}
