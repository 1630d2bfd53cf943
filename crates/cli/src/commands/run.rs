//! `diskproof run`: any workload, from flags named as in fio, from a plan file or from a job file
//! of fio, on one or several targets.

mod recorded;
mod resized;

use crate::agreement::Agreement;
use crate::document_files::DocumentFile;
use crate::failure::{Exit, Failure};
use crate::flags::{MeasuringFlags, SCRATCH_BYTES_UNIT, SCRATCH_BYTES_USEFUL_MIN};
use crate::job_file::{CliOverrides, JobFile, System, read_text};
use crate::plan_file::{PlanFile, ResolvedWorkloads, ScratchFile, resolve_planned, sector_bytes};
use crate::provenance::{command_line, random_seed};
use crate::scratch_sizes::{directories, refuse_overfull_filesystem, room_for_each};
use crate::session::{MeasuringJob, measure};
use crate::stdio::eprint_text;
use crate::workload::{
    Bytes, Content, FioFlags, Memory, ResolveContext, Wording, WorkloadAxes, WorkloadFlags,
    find_empty_schedule, limits_cut_by_time, planned_search, resolve, sector_error,
};
use diskproof_model::plan::{
    Decide, EngineChoice, Order, Plan, Scratch, Task, Workload, Workloads,
};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::format_bytes;
use recorded::LikeSource;
use std::path::{Path, PathBuf};

/// The size in the PostgreSQL cookbook, and the largest cache of drives.
const SCRATCH_BYTES: u64 = 1 << 30;

const HELP: &str = "\
In a directory, run measures a scratch file of --size (default 1GiB). The file
has no name, and is filled before the first workload that needs content. A
regular file or a block device is only read unless you release it with
--overwrite or --destroy NAME. Several targets run concurrently.

Without --precision, --time, --bytes and --ops, a workload ends when its rate is
known to 2 %, or after 30 s. With --precision alone it also ends after 30 s. No
rate counts as known before 7.5 s, or a quarter of a --time below 30 s, because
occasional disturbances take that long to appear.

With --latency-target, run finds the greatest depth at which requests meet the
latency, which is the number of sessions that the disk can serve in time. See
'diskproof help latency-target'.

A plan file (*.toml) contains workloads that run in order, or concurrently with
together = true. Its keys are the names of the flags ('diskproof help plans').
--seed, --size, --note, --engine and targets on the command line override those
of the file. A fio job file (*.fio, *.job) is translated into a plan: run
reports differences from fio and refuses options without an equivalent
('diskproof help job-files'). A saved run (*.json, or the *.html page) is
repeated with its plan and seed, and compared with what was measured then,
whichever verb made it. The limits of its --for profile are checked again.
Before run switches the disk's write cache, runs the shell commands of a
comparison, or starts a PostgreSQL server, it shows them and asks, or takes
--yes; --dry-run shows them.
Sizes: 8k = 8 KiB, 8kB = 8000 bytes, 4GiB. Durations: 500ms, 30s, 2m.

Exit codes: 0 done, 1 a threshold was missed, 2 usage, 3 refused for safety,
4 the run failed or the disk returned errors, 5 a threshold is undecided,
130 Ctrl-C.

Examples:
  diskproof run .                                # random 8 KiB reads
  diskproof run /data --rw randrw --depth 32     # half reads, half writes
  diskproof run /data --rw write --bs 1M --depth 8 # sequential writes
  diskproof run /data --rw write --fdatasync 1   # commits
  diskproof run /data --depth 64 --rate 2000     # latency at a fixed load
  diskproof run /data --bs 4k,64k --depth 1,16   # four workloads
  diskproof run /data --depth 64 --latency-target 5ms
  sudo diskproof run /dev/sdb --span 0-10%       # short stroke
  sudo diskproof run /dev/sdb /dev/sdc --rw read --bs 1M --depth 8
  diskproof help postgresql-cookbook.toml > cookbook.toml
  diskproof run cookbook.toml /data
  diskproof run job.fio --dry-run                # show the translated plan
  diskproof run before.html /data                # the same plan again, compared
  diskproof run --like latest /mnt/new           # a load that watch recorded";

/// Run any workload from flags named as in fio, from a plan file or from a fio job file
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct RunFlags {
    /// A plan file (*.toml), fio job file (*.fio, *.job) or saved run (*.json, *.html), then
    /// directories, regular files or block devices [default: those of the file, or .]
    #[arg(value_name = "PLAN.toml|JOB.fio|RECORD|TARGET")]
    pub operands: Vec<PathBuf>,
    /// Repeat a load saved by 'watch --record': its sizes, reads, seeks, depth and rate
    #[arg(long, value_name = "RUN|FILE")]
    pub like: Option<String>,
    /// Device whose load --like repeats [default: the busiest]
    #[arg(long, value_name = "NAME", requires = "like")]
    pub like_device: Option<String>,
    /// What varies.
    #[command(flatten)]
    pub axes: WorkloadAxes,
    /// What to run.
    #[command(flatten)]
    pub workload: WorkloadFlags,
    /// Options of fio without effect.
    #[command(flatten)]
    pub fio: FioFlags,
    /// Only this section of the job file (repeatable) [default: all]
    #[arg(
        long = "section",
        value_name = "NAME",
        help_heading = "Job file of fio"
    )]
    pub sections: Vec<String>,
    /// Agree to what a saved run does besides measuring: shell commands, a PostgreSQL server, a
    /// switched write cache
    #[arg(long)]
    pub yes: bool,
    /// Flags of every measuring verb.
    #[command(flatten)]
    pub measuring: MeasuringFlags,
}

/// Measures what the flags or the plan file describe, or repeats a saved run.
pub fn run(flags: &RunFlags) -> anyhow::Result<Exit> {
    if let [record, targets @ ..] = flags.operands.as_slice()
        && DocumentFile::find(record) == Some(DocumentFile::Record)
    {
        return repeat_record(flags, record, targets);
    }
    if flags.yes {
        let why = "--yes agrees to what a saved run (RECORD) changes; no saved run is named";
        return Err(Failure::Usage(why.to_owned()).into());
    }
    if flags.is_bare() {
        eprint_text(BARE);
        return Ok(Exit::Usage);
    }
    let request = RunRequest::from_flags(flags)?;
    let identities = flags.measuring.probe_all(&request.file.targets)?;
    let plan = request.plan(&identities, Memory::of_host())?;
    let mut notes = request.notes;
    notes.extend(limits_cut_by_time(&plan));
    for note in &notes {
        flags.measuring.verbosity().note(note);
    }
    let mut job = MeasuringJob::new(plan, identities, &flags.measuring);
    job.note = request.file.note;
    measure(job)?.exit()
}

/// Repeats a saved run on these targets, or on its own.
fn repeat_record(flags: &RunFlags, record: &Path, operands: &[PathBuf]) -> anyhow::Result<Exit> {
    if flags.sets_work() || flags.measuring.size.is_some() || flags.measuring.engine.is_some() {
        let why = "a saved run sets the workloads and their engine; give only targets with it";
        return Err(Failure::Usage(format!("{}: {why}", record.display())).into());
    }
    let targets = named_targets(flags, operands)?;
    refuse_misplaced_job_file(flags, None, &targets)?;
    if let Some(note) = flags.fio.note().map_err(Failure::Usage)? {
        flags.measuring.verbosity().note(&note);
    }
    let agreement = Agreement::from_yes_flag(flags.yes);
    recorded::repeat(record, &targets, &flags.measuring, agreement)
}

/// The answer where nothing says what to run and on what.
const BARE: &str = "\
error: run measures any workload; name a target or a workload

  diskproof run . --time 10s                # random 8 KiB reads here
  diskproof run /data --rw randrw --depth 32
  diskproof run job.fio --dry-run           # the plan of a fio job file

'diskproof check .' measures everything that matters. 'diskproof run --help'
lists the flags.
";

impl RunFlags {
    /// True if neither a target nor a workload is named. The default would fill a file of 1 GiB
    /// and read for half a minute.
    fn is_bare(&self) -> bool {
        self.operands.is_empty()
            && self.fio.filename.is_none()
            && self.sections.is_empty()
            && !self.sets_work()
            && self.measuring.size.is_none()
            && !self.measuring.dry_run
    }

    /// True if a flag says what is run.
    fn sets_work(&self) -> bool {
        self.like.is_some() || !self.axes.is_empty() || !self.workload.is_empty()
    }
}

/// A run as it was requested: by flags, or by a plan or job file and the flags that go with it.
#[derive(Debug)]
struct RunRequest {
    /// The plan or job file. Values of flags have replaced its own. Without a file it has no
    /// workloads.
    file: PlanFile,
    /// Names the file in errors.
    path: PathBuf,
    /// Differences between a job file and its translation.
    notes: Vec<String>,
    size_source: SizeSource,
    work: WorkSource,
    order: Order,
    engine: Option<EngineChoice>,
}

/// The origin of a scratch file's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SizeSource {
    /// `--size`, which is a mistake without a directory.
    Flag,
    /// The plan file, if it has a size. It may also run on targets without a scratch file.
    File,
}

/// The place of a run's workloads.
#[derive(Debug)]
enum WorkSource {
    /// The flags, one combination of the axes' values for each workload.
    Flags(Vec<WorkloadFlags>),
    /// The plan or job file.
    File,
    /// A load that `watch` recorded.
    Like(Box<LikeSource>),
}

/// The targets of the command line: the operands, or what fio calls the file name.
fn named_targets(run: &RunFlags, operands: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    match (&run.fio.filename, operands) {
        (None, operands) => Ok(operands.to_vec()),
        (Some(target), []) => Ok(vec![target.clone()]),
        (Some(target), [operand, ..]) => Err(Failure::Usage(format!(
            "--filename={} and {} both name the target; write it once, without the flag",
            target.display(),
            operand.display()
        ))),
    }
}

/// Refuses a job file behind the targets, which would be a target of a few bytes, and sections
/// without a job file.
fn refuse_misplaced_job_file(
    run: &RunFlags,
    planned: Option<&PathBuf>,
    named: &[PathBuf],
) -> Result<(), Failure> {
    if let Some(job) = named.iter().find(|path| is_job_file(path)) {
        return Err(Failure::Usage(format!(
            "{} looks like a fio job file. Write a single job file, before the targets. If it is a \
             target, use a symlink with another name",
            job.display()
        )));
    }
    let Some(section) = run.sections.first() else {
        return Ok(());
    };
    match planned {
        Some(path) if is_job_file(path) => Ok(()),
        _ => Err(Failure::Usage(format!(
            "--section {section}: only fio job files have sections. Name one first, as in: run \
             job.fio --section NAME"
        ))),
    }
}

/// Loads the load that `--like` names; `None` without the flag.
fn like_source(run: &RunFlags, planned: Option<&PathBuf>) -> Result<Option<LikeSource>, Failure> {
    let Some(reference) = run.like.as_deref() else {
        return Ok(None);
    };
    if let Some(path) = planned {
        return Err(Failure::Usage(format!(
            "--like and {} both define the workloads; use one of them",
            path.display()
        )));
    }
    let source = LikeSource::load(
        reference,
        run.like_device.as_deref(),
        &run.workload,
        &run.axes,
        run.measuring.history.history.as_deref(),
    )?;
    Ok(Some(source))
}

impl RunRequest {
    /// Reads the file that the command line names, and adds what its flags set.
    fn from_flags(run: &RunFlags) -> Result<Self, Failure> {
        let measuring = &run.measuring;
        let (planned, operands) = match run.operands.split_first() {
            Some((first, others)) if is_plan_file(first) => (Some(first), others),
            _ => (None, &run.operands[..]),
        };
        let named = named_targets(run, operands)?;
        refuse_misplaced_job_file(run, planned, &named)?;
        let overrides = CliOverrides {
            sections: &run.sections,
            targets: &named,
            size: measuring.size,
            ..CliOverrides::default()
        };
        let JobFile {
            plan: file,
            mut notes,
            ..
        } = match planned {
            Some(path) => read_plan(path, run, overrides)?,
            None => JobFile::default(),
        };
        notes.extend(run.fio.note().map_err(Failure::Usage)?);
        let like = like_source(run, planned)?;
        if let Some(like) = &like {
            notes.extend(like.note());
        }
        if named.is_empty()
            && measuring.destructive.overwrite
            && let Some(planned) = planned
        {
            crate::targets::refuse_planned_overwrite(planned, &file.targets)?;
        }
        let path_in_errors = match planned {
            Some(path) => path.as_path(),
            None => Path::new(""),
        };
        let work = match like {
            Some(like) => WorkSource::Like(Box::new(like)),
            None if planned.is_some() => WorkSource::File,
            None => WorkSource::Flags(run.axes.expand(&run.workload).map_err(Failure::Usage)?),
        };
        Ok(Self {
            notes,
            work,
            ..Self::from_plan_file(file, path_in_errors, &named, measuring)
        })
    }

    /// A run of the file's workloads. Flags, and the targets that the command line names, replace
    /// what the file sets.
    fn from_plan_file(
        file: PlanFile,
        path: &Path,
        named_targets: &[PathBuf],
        measuring: &MeasuringFlags,
    ) -> Self {
        let (size, size_source) = match measuring.size {
            Some(bytes) => (Some(Bytes(bytes)), SizeSource::Flag),
            None => (file.size, SizeSource::File),
        };
        let targets = if !named_targets.is_empty() {
            named_targets.to_vec()
        } else if file.targets.is_empty() {
            vec![PathBuf::from(".")]
        } else {
            file.targets
        };
        Self {
            file: PlanFile {
                note: measuring.note.clone().or(file.note),
                seed: measuring.seed.or(file.seed),
                size,
                targets,
                ..file
            },
            path: path.to_owned(),
            notes: Vec::new(),
            size_source,
            work: WorkSource::File,
            order: Order::AsGiven,
            engine: measuring.engine,
        }
    }

    /// The plan for these targets. Fails where a workload does not fit them.
    fn plan(&self, identities: &[TargetIdentity], memory: Memory) -> Result<Plan, Failure> {
        let files = &self.file.scratch_files;
        let sizes_bytes: Vec<u64> = files.iter().map(|file| file.bytes).collect();
        let scratch_bytes = if files.is_empty() {
            crate::targets::refuse_duplicates(identities)?;
            self.scratch_bytes(identities)?
        } else {
            // Files of different names in a directory are different targets.
            largest_file(&sizes_bytes)
        };
        let has_content = identities
            .iter()
            .any(|identity| identity.kind != TargetKind::Directory)
            || has_complete_files(files);
        let context = ResolveContext {
            target_bytes: target_bytes(identities, &sizes_bytes, scratch_bytes),
            memory,
            content: if has_content {
                Content::Data
            } else {
                Content::Nothing
            },
            engine: self.engine,
        };
        let resolved = self.workloads(context, sector_bytes(identities))?;
        let search =
            planned_search(&resolved.workloads, identities.len()).map_err(Failure::Usage)?;
        let (decide, list, time_limit_ns) = match search {
            Some(search) => (Decide::Depth, search.workloads, search.time_limit_ns),
            None => (Decide::AsPlanned, resolved.workloads, None),
        };
        let like = match &self.work {
            WorkSource::Like(like) => Some(like.plan()),
            WorkSource::Flags(_) | WorkSource::File => None,
        };
        let scratch = scratch_bytes.map(|size_bytes| Scratch {
            sizes_bytes,
            ..Scratch::of_size(size_bytes)
        });
        Ok(Plan {
            seed: self.file.seed.unwrap_or_else(random_seed),
            targets: self.target_names(identities),
            scratch,
            time_limit_ns,
            tasks: vec![Task::Workloads(Workloads {
                list,
                order: self.order,
                decide,
                like,
            })],
            skipped: resolved.skipped,
            ..Plan::new("run", command_line())
        })
    }

    /// The workloads on the targets of the context, whose sector is `unit_bytes`.
    fn workloads(
        &self,
        mut context: ResolveContext,
        unit_bytes: u32,
    ) -> Result<ResolvedWorkloads, Failure> {
        match &self.work {
            WorkSource::Flags(combinations) => {
                let mut workloads = Vec::new();
                for flags in combinations {
                    let workload = resolve(flags, &context)
                        .map_err(|error| Failure::Usage(error.text(Wording::Flags)))?;
                    refuse_impossible(&workload, unit_bytes)?;
                    workloads.push(workload);
                    context.content = Content::Data;
                }
                Ok(ResolvedWorkloads {
                    workloads,
                    skipped: Vec::new(),
                })
            }
            WorkSource::File => {
                let shown = self.path.display().to_string();
                resolve_planned(&shown, &self.file.workloads, context, unit_bytes)
            }
            WorkSource::Like(like) => Ok(ResolvedWorkloads {
                workloads: like.workloads(unit_bytes)?,
                skipped: Vec::new(),
            }),
        }
    }

    /// The paths of the targets; of files that stay under their names, that of the first.
    fn target_names(&self, identities: &[TargetIdentity]) -> Vec<String> {
        let mut names = Vec::new();
        for (index, identity) in identities.iter().enumerate() {
            let kept_name = match self.file.scratch_files.get(index) {
                Some(file) => file.name(),
                None => None,
            };
            names.push(match kept_name {
                Some(name) => format!("{}/{name}", identity.path.trim_end_matches('/')),
                None => identity.path.clone(),
            });
        }
        names
    }

    /// Size of the scratch file in each directory; `None` without a directory.
    fn scratch_bytes(&self, identities: &[TargetIdentity]) -> Result<Option<u64>, Failure> {
        let directories = directories(identities);
        if directories.is_empty() {
            self.refuse_unused_size(identities)?;
            return Ok(None);
        }
        let bytes = match self.file.size {
            // A smaller file would measure the disk's cache. Without room for this much, the gate
            // explains its refusal.
            None => SCRATCH_BYTES
                .min(room_for_each(&directories))
                .max(SCRATCH_BYTES_USEFUL_MIN),
            Some(Bytes(size)) => {
                check_size(size, &directories)?;
                size
            }
        };
        Ok(Some(bytes / SCRATCH_BYTES_UNIT * SCRATCH_BYTES_UNIT))
    }

    /// Without a directory, `--size` is a mistake, but a plan file may give a size to use where
    /// there is one.
    fn refuse_unused_size(&self, identities: &[TargetIdentity]) -> Result<(), Failure> {
        if self.size_source == SizeSource::File {
            return Ok(());
        }
        let path = match identities.first() {
            Some(identity) => identity.path.as_str(),
            None => "the target",
        };
        Err(Failure::no_scratch_file(
            path,
            "use --span to measure a part of it",
        ))
    }
}

/// The size of the largest of several scratch files; `None` where all are empty.
fn largest_file(sizes_bytes: &[u64]) -> Option<u64> {
    match sizes_bytes.iter().max() {
        None | Some(0) => None,
        Some(bytes) => Some(*bytes),
    }
}

/// The bytes of each target, or of the scratch file in it.
fn target_bytes(
    identities: &[TargetIdentity],
    sizes_bytes: &[u64],
    scratch_bytes: Option<u64>,
) -> Vec<u64> {
    let mut bytes_of_targets = Vec::new();
    for (index, identity) in identities.iter().enumerate() {
        let file_bytes = sizes_bytes.get(index).copied().or(scratch_bytes);
        bytes_of_targets.push(match file_bytes {
            Some(bytes) if identity.kind == TargetKind::Directory => bytes,
            _ => identity.size_bytes,
        });
    }
    bytes_of_targets
}

/// Refuses a `--size` that is too small, or that does not fit into a filesystem several times.
fn check_size(size: u64, directories: &[&TargetIdentity]) -> Result<(), Failure> {
    if size < SCRATCH_BYTES_UNIT {
        return Err(Failure::Usage(format!(
            "a scratch file of {} is too small to measure anything; use a size of at least 1M",
            format_bytes(size)
        )));
    }
    refuse_overfull_filesystem(size, directories)
}

/// Refuses a workload of flags that would make no request, or none that the device takes.
fn refuse_impossible(workload: &Workload, unit_bytes: u32) -> Result<(), Failure> {
    if let Some(empty) = find_empty_schedule(std::slice::from_ref(workload), Wording::Flags) {
        return Err(Failure::Usage(empty.why));
    }
    match sector_error(workload, unit_bytes) {
        Some(why) => Err(Failure::Usage(why)),
        None => Ok(()),
    }
}

/// The plan of jobs, and the targets that it names.
pub(crate) struct PlannedJobs {
    pub plan: Plan,
    pub identities: Vec<TargetIdentity>,
}

/// Plans translated jobs that run with the output of `tool`. `shown` names the jobs in errors.
pub(crate) fn plan_jobs(
    file: PlanFile,
    shown: &Path,
    tool: &str,
    measuring: &MeasuringFlags,
) -> anyhow::Result<PlannedJobs> {
    let identities = measuring.probe_all(&file.targets)?;
    let request = RunRequest {
        order: Order::Whole,
        ..RunRequest::from_plan_file(file, shown, &[], measuring)
    };
    let mut plan = request.plan(&identities, Memory::of_host())?;
    plan.origin.verb = format!("as {tool}");
    Ok(PlannedJobs { plan, identities })
}

/// True if every scratch file stands for several files that are there already.
fn has_complete_files(files: &[ScratchFile]) -> bool {
    let is_complete = |file: &ScratchFile| match &file.kept {
        Some(kept) => kept.is_complete,
        None => false,
    };
    !files.is_empty() && files.iter().all(is_complete)
}

/// True if the first operand defines the workloads.
fn is_plan_file(path: &Path) -> bool {
    is_job_file(path) || extension(path) == Some("toml")
}

/// True if the file has one of the usual extensions of fio.
fn is_job_file(path: &Path) -> bool {
    matches!(extension(path), Some("fio" | "job" | "ini"))
}

fn extension(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}

/// Reads a plan file, or translates a job file. Fails for workload flags, which such a file sets.
fn read_plan(path: &Path, run: &RunFlags, overrides: CliOverrides<'_>) -> Result<JobFile, Failure> {
    let shown = path.display();
    let is_job = is_job_file(path);
    if !run.workload.is_empty() || !run.axes.is_empty() {
        let place = if is_job {
            "options into its sections"
        } else {
            "keys under [defaults] in it"
        };
        return Err(Failure::Usage(format!(
            "{shown} defines the workloads, so workload flags cannot be used with it; write them \
             as {place}"
        )));
    }
    let kind = if is_job { "job" } else { "plan" };
    let text = read_text(path)
        .map_err(|why| Failure::Usage(format!("cannot read the {kind} file {shown}: {why}")))?;
    if is_job {
        crate::inspection::begin(path, run.measuring.verbosity());
        return JobFile::translate(&text, path, overrides, &System)
            .map_err(|error| Failure::Usage(error.to_string()));
    }
    let plan =
        PlanFile::parse(&text).map_err(|error| Failure::Usage(format!("{shown}: {error}")))?;
    if !plan.limits.is_empty() {
        return Err(Failure::Usage(format!(
            "{shown}: limits are used only with --for. Run: diskproof check --for {shown}"
        )));
    }
    Ok(JobFile {
        plan,
        ..JobFile::default()
    })
}

#[cfg(test)]
mod tests;
