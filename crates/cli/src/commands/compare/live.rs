//! The live comparison: several targets, or several settings of one, measured in random
//! alternation, and the records of the sides. The campaign decides what is measured.

use super::flags::{CompareFlags, LiveFlags};
use super::question::{compared, group};
use crate::failure::{Exit, Failure};
use crate::flags::{MeasuringFlags, SCRATCH_BYTES_LEAST, SECOND, scratch_file_bytes};
use crate::interrupt;
use crate::provenance::run_id;
use crate::saved::{self, HistoryOptions, SaveNote, names_run, print_notes};
use crate::session::{self, Agreed, EarlyEnd, EndedRun, MeasuringJob, SettingCommands};
use crate::standard_workloads::{of_all_sides, share_among_sides, standard_workloads};
use crate::stdio::{Verbosity, eprint_line};
use diskproof_analysis::campaign::{SideDisks, moved_by_side};
use diskproof_analysis::compare::Limit;
use diskproof_analysis::judge::{RunFacts, judge};
use diskproof_device::scratch_bytes_max;
use diskproof_engine::watchdog::{Deferred, Waited};
use diskproof_model::campaign::{CampaignPart, DroppedSlice, MovedBeside};
use diskproof_model::comparison::Comparison;
use diskproof_model::data::RunData;
use diskproof_model::measurement::Measurement;
use diskproof_model::plan::{
    Decide, LivePlan, Plan, Scratch, Sides, Skipped, Task, Workload, Workloads,
};
use diskproof_model::record::{Record, TaskResult};
use diskproof_model::secrets::without_secret;
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_report::terminal::Detail;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Measures these targets, or settings of the only one, and compares. The exit code is that of a
/// run which did not come to its end.
pub(super) fn run(
    compare: &CompareFlags,
    targets: &[String],
) -> anyhow::Result<(Option<Comparison>, Option<Exit>)> {
    let (live_flags, measuring) = (&compare.live, &compare.measuring());
    let mut identities = Vec::new();
    for target in targets {
        identities.push(measuring.probe(Path::new(target))?);
    }
    check_kinds(&identities, live_flags)?;
    let commands = shown_commands(&live_flags.prepare);
    let labels = if commands.is_empty() {
        targets
    } else {
        &commands
    };
    let sides = if commands.is_empty() {
        Sides::Targets {
            paths: targets.to_vec(),
        }
    } else {
        Sides::Settings {
            prepare: commands.clone(),
            cleanup: live_flags.cleanup.as_deref().map(without_secret),
            reopen: live_flags.reopen,
        }
    };
    let of_side = live_plan(compare, measuring, &identities, (sides, labels.len()))?;
    check_limits(&compare.limits, &of_side)?;
    measure_sides(compare, measuring, labels, identities, &of_side)
}

/// Measures the sides of a comparison, which have these names and the plan `of_side`. The commands
/// are those of the flags.
pub(super) fn measure_sides(
    compare: &CompareFlags,
    measuring: &MeasuringFlags,
    labels: &[String],
    identities: Vec<TargetIdentity>,
    of_side: &Plan,
) -> anyhow::Result<(Option<Comparison>, Option<Exit>)> {
    let live_flags = &compare.live;
    let mut plan = Plan {
        targets: identities.iter().map(|one| one.path.clone()).collect(),
        ..of_side.clone()
    };
    *plan.workloads_mut() = of_all_sides(of_side.workloads(), labels.len());
    let mut job = MeasuringJob::new(plan, identities, measuring);
    job.agreed = Agreed::Commands(SettingCommands {
        prepare: live_flags.prepare.clone(),
        cleanup: live_flags.cleanup.clone(),
        reopens: live_flags.reopen,
    });
    match session::run(job)? {
        Some(ended) => conclude(compare, measuring, labels, of_side, &ended),
        None => Ok((None, Some(Exit::Done))),
    }
}

/// The commands as pages and records show them: without passwords.
fn shown_commands(commands: &[String]) -> Vec<String> {
    commands
        .iter()
        .map(|command| without_secret(command))
        .collect()
}

/// A condition on a workload that is not measured would be noticed only after the run.
fn check_limits(limits: &[Limit], plan: &Plan) -> Result<(), Failure> {
    let is_known = |metric: &str| {
        plan.workloads().iter().any(|workload| {
            let rest = metric.strip_prefix(workload.name.as_str());
            rest.is_some_and(|rest| rest.starts_with('.'))
        })
    };
    match limits.iter().find(|limit| !is_known(&limit.metric)) {
        None => Ok(()),
        Some(limit) => {
            let names: Vec<&str> = plan.workloads().iter().map(|w| w.name.as_str()).collect();
            Err(Failure::Usage(format!(
                "--fail-on '{}': this comparison measures {}",
                limit.expression,
                names.join(", ")
            )))
        }
    }
}

/// The targets to measure, as the user named them; `None` where the arguments name saved runs.
pub(crate) fn live_targets(compare: &CompareFlags) -> Result<Option<Vec<String>>, Failure> {
    let usage = |text: String| Err(Failure::Usage(text));
    let commands = &compare.live.prepare;
    if !commands.is_empty() {
        return match (&compare.runs[..], &compare.baseline) {
            (_, Some(_)) => usage("--baseline names saved runs; omit it".to_owned()),
            _ if commands.len() < 2 => usage(
                "a single --prepare gives nothing to compare; use one for each side, such as \
                 --prepare 'CMD A' --prepare 'CMD B'"
                    .to_owned(),
            ),
            ([], _) => Ok(Some(vec![".".to_owned()])),
            ([target], _) => Ok(Some(vec![target.clone()])),
            _ => usage(
                "--prepare compares settings of one target; name one target, or compare the \
                 targets without --prepare"
                    .to_owned(),
            ),
        };
    }
    let history = compare.history_file.history.as_deref();
    let is_live = |name: &String| compare.baseline.is_none() && is_target(name, history);
    let (targets, others): (Vec<String>, Vec<String>) =
        compare.runs.iter().cloned().partition(is_live);
    match (&targets[..], &others[..]) {
        ([], _) => Ok(None),
        ([only], []) => usage(format!(
            "{only} cannot be compared alone; name a second target, or two settings with \
             --prepare 'CMD A' --prepare 'CMD B'"
        )),
        ([target, ..], [other, ..]) => usage(format!(
            "{target} is a target, but {other} is not. Name either saved runs, or directories, \
             files and block devices"
        )),
        (_, []) => Ok(Some(targets)),
    }
}

/// Whether the argument names a target. What names a saved run keeps that meaning.
fn is_target(name: &str, history: Option<&Path>) -> bool {
    let path = crate::targets::resolve_target(Path::new(name), Verbosity::Quiet);
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

/// Targets of different kinds do not compare, and a released one cannot be opened twice.
pub(super) fn check_kinds(identities: &[TargetIdentity], live: &LiveFlags) -> Result<(), Failure> {
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
            "{} is {} but {} is {}, so their figures are not comparable. Name targets of the same \
             kind",
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
                "{} is named twice, so one side would read the writes of the other; omit --destroy \
                 and --overwrite to compare it with itself",
                one.path
            )))
        }
        _ => Ok(()),
    }
}

/// Time for everything, and with --quick.
const TIME_NS: u64 = 60 * SECOND;
const QUICK_NS: u64 = 20 * SECOND;
/// Share of the time for filling one scratch file, and for what comes after the last cell.
const LAYOUT_PARTS: u64 = 12;
const END_PARTS: u64 = 20;
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

/// The plan of one side.
fn live_plan(
    compare: &CompareFlags,
    measuring: &MeasuringFlags,
    identities: &[TargetIdentity],
    (sides, count): (Sides, usize),
) -> Result<Plan, Failure> {
    let flags = &compare.live;
    let scratch_bytes = scratch_size(flags, identities)?;
    let default_ns = if flags.quick { QUICK_NS } else { TIME_NS };
    let time_ns = flags.time.unwrap_or(default_ns);
    let files = scratch_bytes.map_or(0, |_| identities.len() as u64);
    let smallest = identities.iter().map(|one| one.size_bytes).min();
    let write_bytes = scratch_bytes.unwrap_or(smallest.unwrap_or(0).min(SCRATCH_BYTES));
    let all = standard_workloads(measuring, time_ns, write_bytes, 1);
    let (workloads, skipped) = select(flags, all, identities)?;
    let layout_ns = time_ns / LAYOUT_PARTS;
    let cells_ns = (time_ns - time_ns / END_PARTS).saturating_sub(layout_ns * files);
    let workloads = share_among_sides(workloads, count, "sides", time_ns, cells_ns)
        .map_err(|why| Failure::Usage(format!("{why}, or fewer workloads (--only)")))?;
    let live = LivePlan {
        sides,
        margin: compare.margin,
        cells_ns,
    };
    let scratch = scratch_bytes.map(|bytes| {
        let whole = Scratch::of_size(bytes);
        if flags.reopen {
            whole
        } else {
            whole.filled_within(SCRATCH_BYTES_LEAST, layout_ns)
        }
    });
    Ok(Plan {
        scratch,
        tasks: vec![Task::Workloads(Workloads {
            decide: Decide::Compare(live),
            ..Workloads::as_planned(workloads)
        })],
        skipped,
        ..measuring.plan("compare", &[])
    })
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
    // Several directories may share one filesystem.
    let room = identities.iter().map(scratch_bytes_max).min().unwrap_or(0);
    let wanted = if flags.reopen {
        SCRATCH_BYTES_REOPENED
    } else {
        SCRATCH_BYTES
    };
    scratch_file_bytes(flags.size, wanted, room / identities.len() as u64).map(Some)
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
    let kind = identities[0].kind;
    let unreleased = flags.destructive.why_not_written(flags.read_only, kind);
    for workload in all {
        if !is_chosen(&workload.name) {
            continue;
        }
        match unreleased.filter(|_| workload.writes()) {
            None => chosen.push(workload),
            Some(why) => skipped.push(Skipped::new(workload.name, why)),
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

/// Saving takes milliseconds, and up to 20 s where another process holds the history.
const SAVE_LIMIT: Duration = Duration::from_secs(30);

/// Makes records and a comparison of what was measured; `plan` is that of one side.
fn conclude(
    compare: &CompareFlags,
    measuring: &MeasuringFlags,
    labels: &[String],
    plan: &Plan,
    run: &EndedRun,
) -> anyhow::Result<(Option<Comparison>, Option<Exit>)> {
    let verbosity = measuring.verbosity();
    let records = records(
        &shown_commands(&compare.live.prepare),
        labels.len(),
        plan,
        run,
    );
    interrupt::end_at_once();
    if !run.results.hung.is_empty() {
        verbosity.note(&session::process_may_stay(&run.results.hung, plan));
    }
    let early = ended_early(run);
    let is_measured = |record: &Arc<Record>| !record.measurements.is_empty();
    if !records.iter().all(is_measured) {
        eprint_line("nothing to compare: at least one side was not measured");
        return Ok((None, early.or(Some(Exit::Failed))));
    }
    for (record, letter) in records.iter().zip('A'..) {
        let notes = save(record, measuring.history.clone());
        print_notes(&format!("{letter}: "), &notes, verbosity);
    }
    run.end_journal();
    let side = |index: usize| {
        let record: &Record = &records[index];
        group(&labels[index], [(saved::short(&record.run_id), record)])
    };
    let others = (1..records.len()).map(side).collect();
    let comparison = compared(compare.margin, side(0), others, Vec::new(), &compare.limits)?;
    let failed = records.iter().any(|record| session::has_errors(record));
    let exit = match early {
        None if failed || !run.results.hung.is_empty() => Some(Exit::Failed),
        early => early,
    };
    Ok((Some(comparison), exit))
}

/// One record for each side.
fn records(
    prepare_commands: &[String],
    sides: usize,
    plan: &Plan,
    run: &EndedRun,
) -> Vec<Arc<Record>> {
    let id = run_id();
    let mut records = Vec::new();
    for index in 0..sides {
        let target = if prepare_commands.is_empty() {
            index
        } else {
            0
        };
        let switched = run.results.sides.get(&index);
        let identity = switched.unwrap_or(&run.facts.targets[target]);
        let is_own = |disk: &str| identity.disks().any(|one| one.name == disk);
        let mut facts = RunFacts {
            run_id: run_id(),
            plan: plan.clone(),
            targets: vec![identity.clone()],
            ..run.facts.clone()
        };
        facts.plan.targets = vec![identity.path.clone()];
        facts.health.retain(|one| is_own(&one.disk));
        let measured = run.results.data.measurements.iter();
        let of_side = measured.filter(|m| m.target == index).cloned();
        let mut measurements: Vec<Measurement> = of_side.collect();
        measurements.iter_mut().for_each(|m| m.target = 0);
        let dropped = run.results.data.dropped.iter();
        let mut dropped: Vec<DroppedSlice> =
            dropped.filter(|one| one.target == index).cloned().collect();
        dropped.iter_mut().for_each(|one| one.target = 0);
        let data = RunData {
            dropped,
            beside: moved_beside(index, sides, run),
            ..RunData::of(measurements)
        };
        let mut record = judge(facts, &data, &[]);
        record.results.push(TaskResult::Compared(CampaignPart {
            id: id.clone(),
            side: char::from(b'A' + index as u8).to_string(),
            prepare: prepare_commands.get(index).cloned(),
            decisions: run.results.decisions.clone(),
        }));
        records.push(Arc::new(record));
    }
    records
}

/// What the other sides on the disk of one moved.
fn moved_beside(side: usize, sides: usize, run: &EndedRun) -> Vec<MovedBeside> {
    let disks = SideDisks::planned(&run.facts.plan, &run.facts.targets);
    let mut beside = Vec::new();
    for other in (0..sides).filter(|other| *other != side) {
        if disks.share(side, other) {
            beside.extend(moved_by_side(&run.results.data, other, &run.facts.plan));
        }
    }
    beside.sort_by_key(|moved| moved.start_ns);
    beside
}

/// Saves a record in the history, in bounded time.
fn save(record: &Arc<Record>, options: HistoryOptions) -> Vec<SaveNote> {
    let record = Arc::clone(record);
    let save = Deferred::start_or_run("diskproof-save", move || {
        let page = crate::stdio::record_page(&record, Detail::Whole);
        saved::keep(&record, &page, &options)
    });
    match save.wait(SAVE_LIMIT) {
        Waited::Done(notes) => notes,
        Waited::TimedOut(_) | Waited::Lost => vec![SaveNote::Warning(
            "the run was not saved: the history did not answer".to_owned(),
        )],
    }
}

/// How a comparison that did not come to its end exits; `None` of one that did.
fn ended_early(run: &EndedRun) -> Option<Exit> {
    let why = run.ended.as_ref().err()?;
    if let (EarlyEnd::Reason(why), Some(signal)) = (why, interrupt::signal()) {
        eprint_line(why);
        return Some(Exit::Signal(signal));
    }
    eprint_line(&format!("error: {why}"));
    Some(Exit::Failed)
}
