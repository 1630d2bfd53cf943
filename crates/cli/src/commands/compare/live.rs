//! The live comparison: several targets, or several settings of one, measured in random
//! alternation. Makes the plan and the records of the sides; the campaign decides what is measured.

use crate::consent::DestructiveFlags;
use crate::failure::{Exit, Failure};
use crate::flags::{ColorWhen, EngineName, HealthFlags, MeasuringFlags, UndecidedMeans};
use crate::provenance::{command_line, random_seed, run_id};
use crate::saved::{self, HistoryOptions, SaveNote, names_run, print_notes};
use crate::selection::SelectionFlags;
use crate::session::{
    CampaignJob, CampaignOutcome, CampaignSide, Filling, LayoutLimits, MeasuringJob, Reopening,
    dry_run, has_errors, measure_campaign, process_may_stay,
};
use crate::standard_workloads::{WriteBudget, standard_workloads};
use crate::stderr::{Verbosity, eprint_line};
use crate::targets::resolve_target;
use diskproof_analysis::campaign::{LiveComparison, LiveSetup};
use diskproof_analysis::compare::{Limit, Question, Run, RunGroup, compare as compare_runs};
use diskproof_analysis::judge::{RunFacts, judge};
use diskproof_device::{probe, scratch_bytes_max};
use diskproof_engine::watchdog::{Deferred, Waited};
use diskproof_model::campaign::{CampaignDecision, CampaignKind, CampaignPart};
use diskproof_model::comparison::Comparison;
use diskproof_model::measurement::Measurement;
use diskproof_model::plan::{METHOD_VERSION, Origin, PLAN_SCHEMA, Plan, Skipped, Workload};
use diskproof_model::record::{Record, Tool};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::{format_bytes, format_duration, parse_duration, parse_size};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;
/// Time for everything, and with --quick.
const TIME_NS: u64 = 60 * SECOND;
const QUICK_NS: u64 = 20 * SECOND;
/// Share of the time for filling one scratch file, and for what comes after the last cell.
const LAYOUT_PARTS: u64 = 12;
const END_PARTS: u64 = 20;
/// The longest warm-up of a workload's first cell.
const WARMUP_NS: u64 = SECOND / 2;
/// What is compared unless --only names workloads.
const DEFAULT: [&str; 4] = [
    "sequential-read",
    "random-read-d1",
    "random-read-d32",
    "commit-fdatasync",
];
/// Drives have caches of up to 1 GiB.
const SCRATCH_BYTES: u64 = 1 << 30;
/// A scratch file that is filled before each cell.
const SCRATCH_BYTES_REOPENED: u64 = 128 << 20;
/// A smaller file says nothing about the disk.
const SCRATCH_BYTES_LEAST: u64 = 64 << 20;
const SCRATCH_BYTES_MIN: u64 = 8 << 20;
const SCRATCH_BYTES_UNIT: u64 = 1 << 20;
/// Saving takes milliseconds, and up to 20 s where another process holds the history.
const SAVE_LIMIT: Duration = Duration::from_secs(30);

/// Flags of a live comparison.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Live comparison of targets or settings")]
pub struct LiveFlags {
    /// Compare settings of one target: run CMD in a shell before each slice of a side (two or
    /// more, one for each side)
    #[arg(long, value_name = "CMD")]
    pub prepare: Vec<String>,
    /// Run CMD in a shell after the last slice
    #[arg(long, value_name = "CMD", requires = "prepare")]
    pub cleanup: Option<String>,
    /// Close the target before each --prepare command and open it again afterwards, as umount
    /// requires
    #[arg(long, requires = "prepare")]
    pub reopen: bool,
    /// Time for everything [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with = "quick")]
    pub time: Option<u64>,
    /// Take at most 20 seconds
    #[arg(long)]
    pub quick: bool,
    /// Skip the writing workloads; only a scratch file gets its content
    #[arg(long)]
    pub read_only: bool,
    /// What is compared.
    #[command(flatten)]
    pub selection: SelectionFlags,
    /// Size of each scratch file
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub size: Option<u64>,
    /// I/O engine [default: auto]
    #[arg(long, value_name = "NAME")]
    pub engine: Option<EngineName>,
    /// Seed of every random choice
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// A remark to store in the records
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
    /// What may be destroyed.
    #[command(flatten)]
    pub destructive: DestructiveFlags,
    /// Show the plan, its time and the bytes it would write; open nothing for writing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not save the runs; DISKPROOF_NO_HISTORY=1 does the same
    #[arg(long, conflicts_with = "history")]
    pub no_history: bool,
    /// Whether SMART health is read.
    #[command(flatten)]
    pub health: HealthFlags,
    /// Print no progress and no notes on stderr
    #[arg(short = 'q', long)]
    pub quiet: bool,
}

/// A live comparison as the user requested it.
pub(super) struct LiveRequest<'a> {
    /// The arguments that name saved runs or targets.
    pub names: &'a [String],
    /// The value of --baseline.
    pub baseline: Option<&'a str>,
    /// Its own flags.
    pub flags: &'a LiveFlags,
    /// Differences up to this share count as the same.
    pub margin: f64,
    /// Conditions on the outcome.
    pub limits: &'a [Limit],
    /// The flags of every verb that measures.
    pub measuring: MeasuringFlags,
}

/// How a live comparison ended.
pub(super) enum LiveEnd {
    /// With a comparison; the exit code where its conditions do not decide it.
    Compared(Box<Comparison>, Option<Exit>),
    /// Without one.
    Ended(Exit),
}

impl LiveFlags {
    /// The shared flags of verbs that measure, without those of the result.
    pub(super) fn measuring(&self, history: Option<PathBuf>) -> MeasuringFlags {
        MeasuringFlags {
            outputs: Vec::new(),
            html: Vec::new(),
            json: false,
            quiet: self.quiet,
            verbose: false,
            commands: false,
            color: ColorWhen::Auto,
            dry_run: self.dry_run,
            seed: self.seed,
            note: self.note.clone(),
            engine: self.engine,
            size: self.size,
            destructive: self.destructive.clone(),
            expected: Vec::new(),
            undecided: UndecidedMeans::Report,
            history: HistoryOptions {
                label: None,
                history,
                no_history: self.no_history,
            },
            health: HealthFlags {
                no_health: self.health.no_health,
            },
        }
    }

    /// The first flag that is given and has no meaning for saved runs.
    pub(super) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--time", self.time.is_some()),
            ("--quick", self.quick),
            ("--read-only", self.read_only),
            ("--only", !self.selection.only.is_empty()),
            ("--skip", !self.selection.skip.is_empty()),
            ("--size", self.size.is_some()),
            ("--engine", self.engine.is_some()),
            ("--seed", self.seed.is_some()),
            ("--note", self.note.is_some()),
            ("--destroy", !self.destructive.destroy.is_empty()),
            ("--overwrite", self.destructive.overwrite),
            ("--dry-run", self.dry_run),
        ];
        given
            .iter()
            .find(|(_, is_given)| *is_given)
            .map(|one| one.0)
    }
}

/// The sides of a live comparison.
pub(super) struct LiveSides {
    /// The targets, as the user named them.
    targets: Vec<PathBuf>,
    sides: Vec<CampaignSide>,
    labels: Vec<String>,
}

impl LiveSides {
    /// `None` where the arguments name saved runs.
    pub(super) fn of(request: &LiveRequest<'_>) -> Result<Option<Self>, Failure> {
        let usage = |text: String| Err(Failure::Usage(text));
        let commands = &request.flags.prepare;
        if !commands.is_empty() {
            return match (request.names, request.baseline) {
                (_, Some(_)) => usage("--baseline names saved runs; omit it".to_owned()),
                _ if commands.len() < 2 => usage(
                    "one --prepare has nothing to be compared with; give one for each side, such \
                     as --prepare 'CMD A' --prepare 'CMD B'"
                        .to_owned(),
                ),
                ([], _) => Ok(Some(Self::settings(".", commands))),
                ([target], _) => Ok(Some(Self::settings(target, commands))),
                _ => usage(
                    "--prepare compares settings of one target; name one target, or compare the \
                     targets without --prepare"
                        .to_owned(),
                ),
            };
        }
        let history = request.measuring.history.history.as_deref();
        let is_live = |name: &&String| request.baseline.is_none() && is_target(name, history);
        let (targets, others): (Vec<&String>, Vec<&String>) =
            request.names.iter().partition(is_live);
        match (&targets[..], &others[..]) {
            ([], _) => Ok(None),
            ([only], []) => usage(format!(
                "{only} has nothing to be compared with; name a second target, or two settings by \
                 --prepare 'CMD A' --prepare 'CMD B'"
            )),
            ([target, ..], [other, ..]) => usage(format!(
                "{target} is a target, and {other} is not. Name saved runs only, or directories, \
                 files and block devices only"
            )),
            (_, []) => Ok(Some(Self {
                targets: targets.iter().map(PathBuf::from).collect(),
                sides: (0..targets.len())
                    .map(|target| CampaignSide {
                        target,
                        prepare: None,
                    })
                    .collect(),
                labels: targets.iter().map(|name| (*name).clone()).collect(),
            })),
        }
    }

    fn settings(target: &str, commands: &[String]) -> Self {
        let side = |command: &String| CampaignSide {
            target: 0,
            prepare: Some(command.clone()),
        };
        Self {
            targets: vec![PathBuf::from(target)],
            sides: commands.iter().map(side).collect(),
            labels: commands.to_vec(),
        }
    }
}

/// Whether the argument names a target. What names a saved run keeps that meaning.
fn is_target(name: &str, history: Option<&Path>) -> bool {
    let path = resolve_target(Path::new(name), Verbosity::Quiet);
    let Ok(found) = std::fs::metadata(&path) else {
        return false;
    };
    let is_plain = !name.contains('/') && name != "." && name != "..";
    let may_be = found.is_dir()
        || std::os::unix::fs::FileTypeExt::is_block_device(&found.file_type())
        || (found.is_file() && !looks_like_document(&path));
    may_be && !(is_plain && names_run(name, history))
}

/// Records and comparisons are JSON or pages.
fn looks_like_document(path: &Path) -> bool {
    let ends = path
        .extension()
        .is_some_and(|end| end == "json" || end == "html");
    let mut start = String::new();
    // What is no text, or cannot be read, is no document.
    let read = File::open(path).and_then(|file| file.take(64).read_to_string(&mut start));
    let text = start.trim_start_matches('\u{feff}').trim_start();
    ends || (read.is_ok() && text.starts_with(['{', '<']))
}

/// Measures and compares.
pub(super) fn run(request: &LiveRequest<'_>, sides: &LiveSides) -> anyhow::Result<LiveEnd> {
    let measuring = &request.measuring;
    let mut identities = Vec::new();
    for target in &sides.targets {
        let target = resolve_target(target, measuring.verbosity());
        identities.push(probe(&target).map_err(Failure::Probe)?);
    }
    check_kinds(&identities, request.flags)?;
    let count = sides.sides.len();
    let live = LivePlan::new(request.flags, measuring, &identities, count)?;
    check_limits(request.limits, &live.plan)?;
    let job = MeasuringJob {
        plan: live.joint(&identities, count as u64),
        identities,
        filling: live.filling,
        note: measuring.note.clone(),
        flags: measuring,
    };
    if request.flags.dry_run {
        return Ok(LiveEnd::Ended(dry_run(&job)?));
    }
    let setup = LiveSetup {
        workloads: live.plan.workloads.clone(),
        sides: count,
        margin: request.margin,
        time_ns: live.time_ns,
        seed: live.plan.seed,
    };
    let job = CampaignJob {
        job,
        sides: sides.sides.clone(),
        reopening: match request.flags.reopen {
            true => Reopening::BeforeEachCell,
            false => Reopening::Never,
        },
        cleanup: request.flags.cleanup.clone(),
    };
    let outcome = measure_campaign(job, LiveComparison::new(setup))?;
    let conclusion = Conclusion {
        request,
        sides,
        plan: &live.plan,
    };
    conclusion.conclude(&outcome)
}

/// Targets of different kinds do not compare, and a released one cannot be opened twice.
fn check_kinds(identities: &[TargetIdentity], live: &LiveFlags) -> Result<(), Failure> {
    let Some((first, others)) = identities.split_first() else {
        return Ok(());
    };
    let kind = |identity: &TargetIdentity| match identity.kind {
        TargetKind::Directory => "a directory",
        TargetKind::File => "a file",
        TargetKind::BlockDevice => "a block device",
    };
    if let Some(other) = others.iter().find(|other| other.kind != first.kind) {
        return Err(Failure::Usage(format!(
            "{} is {}, and {} is {}: their figures do not compare. Name targets of one kind",
            first.path,
            kind(first),
            other.path,
            kind(other)
        )));
    }
    let is_released = live.destructive.overwrite || !live.destructive.destroy.is_empty();
    let mut pairs = identities.iter().enumerate().flat_map(|(index, one)| {
        let later = &identities[index + 1..];
        later.iter().map(move |other| (one, other))
    });
    match pairs.find(|(one, other)| one.is_same(other)) {
        Some((one, _)) if is_released && one.kind != TargetKind::Directory => {
            Err(Failure::Usage(format!(
                "{} is named twice, and what one side writes the other would read; compare it \
                 with itself without --destroy and --overwrite",
                one.path
            )))
        }
        _ => Ok(()),
    }
}

/// A condition on a workload that is not measured would be noticed only after the run.
fn check_limits(limits: &[Limit], plan: &Plan) -> Result<(), Failure> {
    let is_known = |metric: &str| {
        plan.workloads.iter().any(|workload| {
            let rest = metric.strip_prefix(workload.name.as_str());
            rest.is_some_and(|rest| rest.starts_with('.'))
        })
    };
    match limits.iter().find(|limit| !is_known(&limit.metric)) {
        None => Ok(()),
        Some(limit) => {
            let names: Vec<&str> = plan.workloads.iter().map(|w| w.name.as_str()).collect();
            Err(Failure::Usage(format!(
                "--fail-on '{}': this comparison measures {}",
                limit.expression,
                names.join(", ")
            )))
        }
    }
}

/// What is measured, and for how long.
struct LivePlan {
    /// The plan of one side.
    plan: Plan,
    filling: Filling,
    /// Time for all cells.
    time_ns: u64,
}

impl LivePlan {
    fn new(
        flags: &LiveFlags,
        measuring: &MeasuringFlags,
        identities: &[TargetIdentity],
        sides: usize,
    ) -> Result<Self, Failure> {
        let scratch_bytes = scratch_size(flags, identities)?;
        let default_ns = if flags.quick { QUICK_NS } else { TIME_NS };
        let time_ns = flags.time.unwrap_or(default_ns);
        let files = scratch_bytes.map_or(0, |_| identities.len() as u64);
        let write_bytes = identities.iter().map(|one| one.size_bytes).min();
        let budget = WriteBudget {
            write_bytes: scratch_bytes
                .unwrap_or_else(|| write_bytes.unwrap_or(0).min(SCRATCH_BYTES)),
            sequential_share: 1,
        };
        let all = standard_workloads(measuring, time_ns, budget);
        let (workloads, skipped) = select(flags, all, identities)?;
        let layout_ns = time_ns / LAYOUT_PARTS;
        let cells_ns = (time_ns - time_ns / END_PARTS).saturating_sub(layout_ns * files);
        let least_ns = LiveSetup::time_ns_min(workloads.len(), sides);
        if cells_ns < least_ns {
            let needed = least_ns as f64 * time_ns as f64 / cells_ns.max(1) as f64;
            let needed = (needed / SECOND as f64).ceil() as u64 * SECOND;
            return Err(Failure::Usage(format!(
                "--time {}: too short for {} workloads on {sides} sides; use at least {}, or fewer \
                 workloads (--only)",
                format_duration(time_ns),
                workloads.len(),
                format_duration(needed)
            )));
        }
        let each_ns = cells_ns / (workloads.len() * sides) as u64;
        let timed = |mut workload: Workload| {
            workload.warmup_ns = WARMUP_NS.min(each_ns / 4);
            workload.stop.time_ns = Some(each_ns - workload.warmup_ns);
            workload.stop.precision = None;
            workload
        };
        let plan = Plan {
            schema: PLAN_SCHEMA.to_owned(),
            method: METHOD_VERSION,
            seed: flags.seed.unwrap_or_else(random_seed),
            targets: Vec::new(),
            scratch_bytes,
            workloads: workloads.into_iter().map(timed).collect(),
            survey: None,
            ping: None,
            data_sheet: None,
            disk_access: None,
            like: None,
            first_write_ns: None,
            time_limit_ns: None,
            sweep: None,
            postgres: None,
            files: None,
            layers: None,
            postgres_version: None,
            skipped,
            origin: Origin::Native {
                verb: "compare".to_owned(),
                argv: command_line(),
            },
        };
        let filling = match flags.reopen {
            true => Filling::Span,
            false => Filling::Within(LayoutLimits {
                bytes_min: SCRATCH_BYTES_LEAST,
                time_ns: layout_ns,
            }),
        };
        Ok(Self {
            plan,
            filling,
            time_ns: cells_ns,
        })
    }

    /// The plan of all sides together.
    fn joint(&self, identities: &[TargetIdentity], sides: u64) -> Plan {
        let mut plan = self.plan.clone();
        plan.targets = identities.iter().map(|one| one.path.clone()).collect();
        for workload in &mut plan.workloads {
            let each_ns = workload.stop.time_ns.unwrap_or(0) + workload.warmup_ns;
            workload.stop.time_ns = Some(each_ns * sides - workload.warmup_ns);
        }
        plan
    }
}

/// The size of each scratch file; `None` where the targets are files or devices.
fn scratch_size(flags: &LiveFlags, identities: &[TargetIdentity]) -> Result<Option<u64>, Failure> {
    let is_directory = |one: &TargetIdentity| one.kind == TargetKind::Directory;
    if !identities.iter().any(is_directory) {
        return match flags.size {
            None => Ok(None),
            Some(_) => Err(Failure::Usage(
                "--size is the size of the scratch files in directories; omit it".to_owned(),
            )),
        };
    }
    let size = match flags.size {
        Some(size) if size < SCRATCH_BYTES_MIN => {
            let (size, least) = (format_bytes(size), format_bytes(SCRATCH_BYTES_MIN));
            return Err(Failure::Usage(format!(
                "--size {size}: too small to measure anything; use at least {least}"
            )));
        }
        Some(size) => size,
        None => {
            // Several directories may share one filesystem.
            let room = identities.iter().map(scratch_bytes_max).min().unwrap_or(0);
            let most = match flags.reopen {
                true => SCRATCH_BYTES_REOPENED,
                false => SCRATCH_BYTES,
            };
            most.min(room / identities.len() as u64)
                .max(SCRATCH_BYTES_LEAST)
        }
    };
    Ok(Some(size / SCRATCH_BYTES_UNIT * SCRATCH_BYTES_UNIT))
}

/// The workloads to compare, and why others are skipped.
fn select(
    flags: &LiveFlags,
    all: Vec<Workload>,
    identities: &[TargetIdentity],
) -> Result<(Vec<Workload>, Vec<Skipped>), Failure> {
    let known: Vec<&str> = all.iter().map(|workload| workload.name.as_str()).collect();
    flags.selection.check_names(&known)?;
    let is_chosen = |name: &str| {
        let is_asked = !flags.selection.only.is_empty() || DEFAULT.contains(&name);
        is_asked && flags.selection.excludes(name).is_none()
    };
    let (mut chosen, mut skipped) = (Vec::new(), Vec::new());
    for workload in all {
        if !is_chosen(&workload.name) {
            continue;
        }
        match why_not_written(flags, identities).filter(|_| workload.writes()) {
            None => chosen.push(workload),
            Some(why) => skipped.push(Skipped {
                workload: workload.name,
                why: why.to_owned(),
            }),
        }
    }
    if chosen.is_empty() {
        let why = skipped.first().map_or(String::new(), |one| {
            format!(" {}: {}", one.workload, one.why)
        });
        return Err(Failure::Usage(format!(
            "nothing is left to compare; select at least one workload.{why}"
        )));
    }
    Ok((chosen, skipped))
}

/// Why writing workloads are skipped.
fn why_not_written(flags: &LiveFlags, identities: &[TargetIdentity]) -> Option<&'static str> {
    if flags.read_only {
        return Some("--read-only");
    }
    flags.destructive.why_only_read(identities.first()?.kind)
}

/// What the campaign gave.
type LiveOutcome = CampaignOutcome<Vec<CampaignDecision>>;

/// A side with its target and its letter.
type SideIdentity<'a> = ((&'a CampaignSide, &'a TargetIdentity), char);

/// Makes records and a comparison of what was measured.
struct Conclusion<'a> {
    request: &'a LiveRequest<'a>,
    sides: &'a LiveSides,
    plan: &'a Plan,
}

impl Conclusion<'_> {
    fn conclude(&self, outcome: &LiveOutcome) -> anyhow::Result<LiveEnd> {
        let verbosity = self.request.measuring.verbosity();
        let records = self.records(outcome);
        outcome.interrupt.end_at_once();
        if !outcome.hung.is_empty() {
            verbosity.note(&process_may_stay(&outcome.hung, self.plan));
        }
        let early = ended_early(outcome);
        let is_measured = |record: &Arc<Record>| !record.measurements.is_empty();
        if !records.iter().all(is_measured) {
            eprint_line("nothing to compare: not every side was measured");
            return Ok(LiveEnd::Ended(early.unwrap_or(Exit::Failed)));
        }
        for (record, letter) in records.iter().zip('A'..) {
            print_notes(&self.save(record, letter), verbosity);
        }
        let comparison = self.comparison(&outcome.facts.tool, &records)?;
        let failed = records.iter().any(|record| has_errors(record));
        let exit = match early {
            None if failed || !outcome.hung.is_empty() => Some(Exit::Failed),
            early => early,
        };
        Ok(LiveEnd::Compared(Box::new(comparison), exit))
    }

    fn comparison(&self, tool: &Tool, records: &[Arc<Record>]) -> Result<Comparison, Failure> {
        let group = |index: usize| RunGroup {
            label: self.sides.labels[index].clone(),
            runs: vec![Run {
                name: saved::short(&records[index].run_id).to_owned(),
                record: &records[index],
            }],
        };
        let question = Question {
            tool: tool.clone(),
            margin: self.request.margin,
            baseline: group(0),
            candidates: (1..records.len()).map(group).collect(),
            history: Vec::new(),
            limits: self.request.limits.to_vec(),
        };
        compare_runs(&question).map_err(|error| Failure::Usage(error.to_string()))
    }

    /// One record for each side.
    fn records(&self, outcome: &LiveOutcome) -> Vec<Arc<Record>> {
        let id = run_id();
        let sides = self.sides.sides.iter().zip(&outcome.identities).zip('A'..);
        let record = |(index, ((side, identity), letter)): (usize, SideIdentity<'_>)| {
            let is_own = |disk: &str| identity.disks().any(|one| one.name == disk);
            let mut plan = self.plan.clone();
            plan.targets = vec![identity.path.clone()];
            let ended_early = match &outcome.ended {
                Ok(ended_early) => ended_early.clone(),
                Err(error) => Some(error.to_string()),
            };
            let health = outcome.facts.health.iter();
            let facts = RunFacts {
                run_id: run_id(),
                partial: ended_early.is_some(),
                ended_early,
                stalled: outcome.stalled.clone(),
                plan,
                targets: vec![identity.clone()],
                health: health.filter(|one| is_own(&one.disk)).cloned().collect(),
                postgres: None,
                ..outcome.facts.clone()
            };
            let of_side = outcome.measurements.iter().filter(|m| m.target == index);
            let measurements: Vec<Measurement> = of_side
                .map(|measurement| Measurement {
                    target: 0,
                    ..measurement.clone()
                })
                .collect();
            let mut record = judge(facts, &measurements, None, &[]);
            record.campaign = Some(CampaignPart {
                kind: CampaignKind::Compare,
                id: id.clone(),
                side: letter.to_string(),
                prepare: side.prepare.clone(),
                decisions: outcome.answer.clone().unwrap_or_default(),
            });
            Arc::new(record)
        };
        sides.enumerate().map(record).collect()
    }

    /// Saves a record in the history, in bounded time.
    fn save(&self, record: &Arc<Record>, letter: char) -> Vec<SaveNote> {
        let (record, options) = (Arc::clone(record), self.request.measuring.history.clone());
        let save = Deferred::start_or_run("diskproof-save", move || {
            let page = crate::stdout::record_page(&record);
            saved::keep(&record, &page, &options)
        });
        let notes = match save.wait(SAVE_LIMIT) {
            Waited::Done(notes) => notes,
            Waited::TimedOut(_) | Waited::Lost => vec![SaveNote::Warning(
                "the run was not saved: the history did not answer".to_owned(),
            )],
        };
        let named = |text: String| format!("{letter}: {text}");
        let name = |note| match note {
            SaveNote::Note(text) => SaveNote::Note(named(text)),
            SaveNote::Saved(text) => SaveNote::Saved(named(text)),
            SaveNote::Warning(text) => SaveNote::Warning(named(text)),
        };
        notes.into_iter().map(name).collect()
    }
}

/// How a comparison that did not come to its end exits; `None` of one that did.
fn ended_early(outcome: &LiveOutcome) -> Option<Exit> {
    let why = match &outcome.ended {
        Ok(None) => return None,
        Ok(Some(why)) if let Some(signal) = outcome.interrupt.signal() => {
            eprint_line(why);
            return Some(Exit::Signal(signal));
        }
        Ok(Some(why)) => why.clone(),
        Err(error) => error.to_string(),
    };
    eprint_line(&format!("error: {why}"));
    Some(Exit::Failed)
}
