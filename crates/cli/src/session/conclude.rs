//! The end of a run: the record, its files, the history, the page on stdout, and the exit code.

use super::watchdog::WatchdogResult;
use crate::failure::{Exit, Failure, is_closed_stdout};
use crate::flags::{MeasuringFlags, UndecidedMeans};
use crate::interrupt::Interrupt;
use crate::output_files::{OutputFiles, is_pipe, save_record, temporary_path};
use crate::saved::{self, HistoryOptions, RunKey, SaveNote};
use crate::stderr::{Verbosity, eprint_line, eprint_text};
use crate::stdout::{
    close_stdout, commands_page, ignore_closed_pipe, record_page, to_stdout, write_record_page,
};
use crate::tool_lines::SharedPrinter;
use diskproof_analysis::judge::{RunFacts, RunVariation, judge};
use diskproof_analysis::rules::{Check, Rule, rule};
use diskproof_compat::ToolText;
use diskproof_engine::RunError;
use diskproof_engine::watchdog::{Deferred, Waited};
use diskproof_model::data::RunData;
use diskproof_model::errno;
use diskproof_model::finding::{Finding, Severity};
use diskproof_model::plan::Plan;
use diskproof_model::record::{Expectation, ExpectationOutcome, MeasurementRecord, Record};
use diskproof_model::units::format_duration;
use diskproof_report::formats::format_of;
use diskproof_report::{json, unmet_text};
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SAVE_THREAD: &str = "diskproof-save";
/// How often a save is looked at.
const SAVE_POLL: Duration = Duration::from_millis(50);
/// After Ctrl-C the program ends within two seconds: saving usually takes milliseconds.
const SAVE_AFTER_INTERRUPT: Duration = Duration::from_millis(1500);

/// What came of saving and printing.
struct SaveResult {
    outcome: anyhow::Result<()>,
    /// Files on filesystems that hang.
    hung: Vec<String>,
    /// Whether a save was not done in time.
    is_incomplete: bool,
}

/// Whether a record's page is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Page {
    /// It is.
    #[default]
    Printed,
    /// Somebody else prints the result.
    Omitted,
}

/// Prints what follows the page of a record.
pub(crate) type Then = Box<dyn Fn(&Record) -> anyhow::Result<()>>;

/// Where a result goes, and what ends the wait for that.
pub(super) struct ResultOutputs<'a> {
    /// Files to save.
    pub files: &'a OutputFiles<'a>,
    /// The shared flags.
    pub flags: &'a MeasuringFlags,
    /// The tool whose text is printed instead of our page.
    pub tool: Option<SharedPrinter>,
    /// Whether our page is printed.
    pub page: Page,
    /// What follows our page.
    pub then: Option<Then>,
    /// The longest silence of a target.
    pub stall_timeout: Duration,
    /// Ctrl-C.
    pub interrupt: &'a Interrupt,
}

/// Judges, saves and prints what was measured, and returns how the run ended.
pub(super) fn conclude(
    mut facts: RunFacts,
    end: WatchdogResult,
    conclusion: &ResultOutputs<'_>,
) -> anyhow::Result<Exit> {
    let &ResultOutputs {
        files,
        flags,
        stall_timeout,
        interrupt,
        ..
    } = conclusion;
    facts.ended_early = match &end.ended {
        Ok(ended_early) => ended_early.clone(),
        Err(error) => Some(error.to_string()),
    };
    facts.partial = facts.ended_early.is_some();
    facts.stalled = end.stalled.clone();
    let wait = SaveWait {
        limit: stall_timeout,
        interrupt,
        interrupted: Cell::new(None),
    };
    if !facts.partial && !flags.history.no_history {
        let earlier = runs_before(&facts, &flags.history, &wait);
        facts.variation = RunVariation::Earlier(earlier);
    }
    let data = &end.results.data;
    let record = Arc::new(judge(facts, data, &flags.expected));
    let tool = conclusion.tool.as_ref();
    let tool = tool.map(|tool| text_of_tool(tool, &record, &end, interrupt));
    if tool.is_some() {
        note_unanswered(data, flags.verbosity());
    }
    let mut saved = save_and_print(&record, files, (flags, tool, conclusion.page), &wait);
    if let Some(then) = &conclusion.then {
        saved.outcome = saved.outcome.and_then(|()| then(&record));
    }
    let hung = [&end.hung[..], &saved.hung].concat();
    if !hung.is_empty() {
        flags
            .verbosity()
            .note(&process_may_stay(&hung, &record.plan));
        close_stdout();
    }
    let failure = end.ended.err().map(Failure::Run);
    let ended = exit_of(&record, failure, &end.hung, interrupt, flags.undecided);
    let ended = match (wait.interrupted_by(), ended) {
        (Some(signal), Ok(Exit::Done)) if saved.is_incomplete => Ok(Exit::Signal(signal)),
        (_, ended) => ended,
    };
    match (saved.outcome, ended) {
        (Ok(()), ended) => ended,
        (Err(error), Ok(exit)) if !matches!(exit, Exit::Signal(_)) => Err(error),
        // How the run ended decides.
        (Err(error), ended) => {
            eprint_line(&format!("error: {error:#}"));
            ended
        }
    }
}

/// What a tool prints at the end of its run.
fn text_of_tool(
    tool: &SharedPrinter,
    record: &Record,
    end: &WatchdogResult,
    interrupt: &Interrupt,
) -> ToolText {
    let data = &end.results.data;
    let is_interrupted = interrupt.signal().is_some();
    let failed = FailedRequest::first_of(record);
    let error = match &end.ended {
        Err(error) => error.errno(),
        Ok(_) => failed.as_ref().map(|failed| failed.errno.clone()),
    };
    if let Some(files) = &data.files {
        tool.files_measured(files);
    }
    let mut text = tool.end(
        &data.measurements,
        data.surface.as_ref(),
        is_interrupted,
        error.as_deref(),
    );
    // An error that ended the run is printed with its remedy.
    if let (Some(failed), Ok(_)) = (failed, &end.ended) {
        text.stderr.insert_str(0, &failed.line(tool));
    } else if let (Ok(Some(why)), false) = (&end.ended, is_interrupted) {
        // The output of a tool may have nothing but zeros then.
        let none = match has_completed(data) {
            true => "",
            false => "no request completed, so every figure is undecided. ",
        };
        text.stderr
            .insert_str(0, &format!("{}: {none}{why}\n", tool.name));
    }
    for finding in record.findings.iter().filter(|one| spoils_figures(one)) {
        let line = format!("{}: {}: {}\n", tool.name, finding.code, finding.claim);
        text.stderr.push_str(&line);
    }
    text
}

/// Whether a figure is false. Errors of requests are printed as such.
fn spoils_figures(finding: &Finding) -> bool {
    let is_health = |rule: &Rule| matches!(rule.check, Check::Health(_));
    let is_of_run = rule(&finding.code).is_some_and(|rule| !is_health(rule));
    is_of_run && finding.severity == Severity::Failure && finding.code != "io-errors"
}

/// Whether any request has.
fn has_completed(data: &RunData) -> bool {
    let mut ops = data.measurements.iter().flat_map(|m| m.ops.values());
    ops.any(|op| op.count > 0) || data.surface.is_some() || data.files.is_some()
}

/// The output of another tool has no word for a rate that is not known.
fn note_unanswered(data: &RunData, verbosity: Verbosity) {
    for measurement in &data.measurements {
        let mut ops = measurement.ops.values();
        if measurement.wall_ns > 0 && ops.all(|op| op.count == 0 && op.errors.is_empty()) {
            verbosity.note(&format!(
                "{}: undecided, no request completed within {}",
                measurement.workload.name,
                format_duration(measurement.wall_ns)
            ));
        }
    }
}

/// Earlier runs of the same plan; none from a history that does not answer, which saving reports.
fn runs_before(facts: &RunFacts, options: &HistoryOptions, wait: &SaveWait<'_>) -> Vec<Record> {
    let (key, options) = (RunKey::of_facts(facts), options.clone());
    let found = Deferred::start_or_run(SAVE_THREAD, move || saved::runs_before(&key, &options));
    wait.wait(&found).unwrap_or_default()
}

/// How long saving may take: up to the limit, and only a moment after Ctrl-C.
struct SaveWait<'a> {
    limit: Duration,
    interrupt: &'a Interrupt,
    /// When Ctrl-C was noticed.
    interrupted: Cell<Option<Instant>>,
}

impl SaveWait<'_> {
    /// The result; `None` where it does not come in time.
    fn wait<T: Send + 'static>(&self, save: &Deferred<T>) -> Option<T> {
        loop {
            let age = match save.poll(SAVE_POLL) {
                Waited::Done(done) => return Some(done),
                Waited::Lost => return None,
                Waited::TimedOut(age) => age,
            };
            if self.interrupt.signal().is_some() && self.interrupted.get().is_none() {
                self.interrupted.set(Some(Instant::now()));
            }
            let is_over = |since: Instant| since.elapsed() >= SAVE_AFTER_INTERRUPT;
            if age >= self.limit || self.interrupted.get().is_some_and(is_over) {
                return None;
            }
        }
    }

    /// The signal that ended the wait.
    fn interrupted_by(&self) -> Option<u8> {
        self.interrupted.get().and(self.interrupt.signal())
    }

    /// Why a save was not done, as a clause.
    fn reason(&self, who: &str) -> String {
        match self.interrupted.get() {
            Some(_) => format!("{who} did not answer before Ctrl-C ended the wait"),
            None => format!("{who} did not answer for {}", shown(self.limit)),
        }
    }
}

/// Saves the record to its files and to the history, then prints it. Each save has its own thread,
/// so that one that fails or hangs does not keep the others from being done.
fn save_and_print(
    record: &Arc<Record>,
    files: &OutputFiles<'_>,
    (flags, tool, shown): (&MeasuringFlags, Option<ToolText>, Page),
    wait: &SaveWait<'_>,
) -> SaveResult {
    let verbosity = flags.verbosity();
    let page = page(record, flags);
    // Saved before it is printed: a reader that goes away, such as `head`, must not cost the
    // record.
    let saves: Vec<_> = files
        .paths()
        .iter()
        .map(|path| (path, start_save(record, path, verbosity)))
        .collect();
    let history = {
        let (record, page, options) = (Arc::clone(record), page.clone(), flags.history.clone());
        Deferred::start_or_run(SAVE_THREAD, move || saved::keep(&record, &page, &options))
    };
    let (mut outcome, mut hung) = (Ok(()), Vec::new());
    let (mut is_saved, mut is_incomplete) = (false, false);
    for (path, save) in saves {
        let saved = wait.wait(&save).unwrap_or_else(|| {
            is_incomplete = true;
            if !is_pipe(path) {
                hung.push(path.display().to_string());
            }
            Err(save_timed_out(path, wait))
        });
        is_saved |= saved.is_ok() && holds_record(path);
        outcome = outcome.and(saved);
    }
    let notes = wait.wait(&history).unwrap_or_else(|| {
        is_incomplete = true;
        hung.push("the history".to_owned());
        vec![SaveNote::Warning(format!(
            "the run was not saved: {}",
            wait.reason("the history")
        ))]
    });
    is_saved |= notes.iter().any(|note| matches!(note, SaveNote::Saved(_)));
    // A reader of stdout that stopped reading holds this up, and the record is saved by now.
    wait.interrupt.end_at_once();
    let printed = to_stdout(|out| match (flags.prints_json(), &tool) {
        (true, _) => json::write_record(record, out),
        (false, Some(text)) => out.write_all(text.stdout.as_bytes()),
        (false, None) if shown == Page::Omitted => Ok(()),
        (false, None) => write_record_page(record, &page, flags.color, out),
    });
    if let Some(text) = &tool {
        eprint_text(&text.stderr);
    }
    saved::print_notes(&notes, verbosity);
    let printed = match printed {
        Err(error) if flags.prints_json() && is_closed_stdout(&error) => {
            closed_before_json(is_saved)
        }
        other => ignore_closed_pipe(other),
    };
    SaveResult {
        outcome: outcome.and(printed),
        hung,
        is_incomplete,
    }
}

/// The reader of `--json` closed the pipe before it had the record.
fn closed_before_json(is_saved: bool) -> anyhow::Result<()> {
    anyhow::ensure!(
        is_saved,
        "stdout was closed before the record was written, and the record was not saved, so the \
         results are lost. Use a reader that reads to the end, or -o FILE.json"
    );
    eprint_line("warning: stdout was closed before the record was written; the record is saved");
    Ok(())
}

fn start_save(
    record: &Arc<Record>,
    path: &Path,
    verbosity: Verbosity,
) -> Deferred<anyhow::Result<()>> {
    let (record, path) = (Arc::clone(record), path.to_owned());
    Deferred::start_or_run(SAVE_THREAD, move || save_record(&record, &path, verbosity))
}

fn save_timed_out(path: &Path, wait: &SaveWait<'_>) -> anyhow::Error {
    let name = path.display();
    if is_pipe(path) {
        let reason = wait.reason("its reader");
        return anyhow::anyhow!("-o {name}: the record was not written to this pipe: {reason}");
    }
    let reason = wait.reason("its filesystem");
    anyhow::anyhow!(
        "-o {name}: the record was not saved: {reason}; {} may be left behind",
        temporary_path(path).display()
    )
}

fn shown(duration: Duration) -> String {
    format_duration(duration.as_nanos() as u64)
}

/// What a run prints: its page, and the commands with `--commands`.
fn page(record: &Record, flags: &MeasuringFlags) -> String {
    let page = record_page(record, flags.detail());
    if flags.prints_commands() {
        format!("{page}\n{}", commands_page(record))
    } else {
        page
    }
}

/// The work is done, and the process may last all the same.
pub(crate) fn process_may_stay(hung: &[String], plan: &Plan) -> String {
    let scratch = if plan.scratch_bytes.is_some() {
        " Its scratch file has no name and vanishes with the process."
    } else if plan.files.is_some() {
        " Another process removes .diskproof-files after that, which may take as long as the \
         disk needs to write what it was given."
    } else {
        ""
    };
    let have = match hung.len() {
        1 => "has",
        _ => "have",
    };
    format!(
        "{} {have} not answered yet. The results are complete. In state D (see ps) the process \
         cannot exit until the kernel finishes the I/O, not even after kill -9.{scratch}",
        hung.join(" and ")
    )
}

/// The exit code of a run that has been printed.
fn exit_of(
    record: &Record,
    failure: Option<Failure>,
    hung: &[String],
    interrupt: &Interrupt,
    undecided: UndecidedMeans,
) -> anyhow::Result<Exit> {
    match (failure, interrupt.signal()) {
        (None, _) => {}
        // The user ended the wait.
        (Some(failure @ Failure::Run(RunError::Stalled { .. })), Some(signal)) => {
            eprint_line(&format!("error: {failure}"));
            return Ok(Exit::Signal(signal));
        }
        (Some(failure), _) => return Err(failure.into()),
    }
    Ok(match interrupt.signal() {
        Some(signal) if record.partial => Exit::Signal(signal),
        _ if !hung.is_empty() || has_errors(record) => Exit::Failed,
        _ if has_verified_nothing(record) => Exit::Undecided,
        _ => exit_of_expectations(record, undecided),
    })
}

fn exit_of_expectations(record: &Record, undecided: UndecidedMeans) -> Exit {
    // Also for those who see no page: --json, --quiet, stdout into a file.
    for line in record.expectations.iter().filter_map(unmet_text) {
        eprint_line(&line);
    }
    let has = |outcome| {
        let mut outcomes = record.expectations.iter().map(Expectation::outcome);
        outcomes.any(|one| one == outcome)
    };
    if has(ExpectationOutcome::Missed) {
        return Exit::ThresholdMissed;
    }
    match undecided {
        _ if !has(ExpectationOutcome::Undecided) => Exit::Done,
        UndecidedMeans::Report => Exit::Undecided,
        UndecidedMeans::Pass => Exit::Done,
        UndecidedMeans::Fail => Exit::ThresholdMissed,
    }
}

/// The first request that the target answered with an error.
struct FailedRequest {
    target: String,
    /// What it did, such as `writing`.
    verb: &'static str,
    errno: String,
}

impl FailedRequest {
    fn first_of(record: &Record) -> Option<Self> {
        let of_workloads = record.measurements.iter().flat_map(|measured| {
            measured.ops.iter().flat_map(move |(kind, op)| {
                let errors = op.errors.keys();
                errors.map(move |errno| (measured.target, kind.doing(), errno))
            })
        });
        let of_files = record.files.iter().flat_map(|files| &files.steps);
        let of_files = of_files.flat_map(|step| step.figures.errors.keys());
        let surfaces = record.surface.iter();
        let of_surface = surfaces.flat_map(|surface| surface.access_errors.keys());
        let mut all = of_workloads
            .chain(of_files.map(|errno| (0, "using files in", errno)))
            .chain(of_surface.map(|errno| (0, "reading", errno)));
        let (target, verb, errno) = all.next()?;
        Some(Self {
            target: record.plan.targets.get(target)?.clone(),
            verb,
            errno: errno.clone(),
        })
    }

    /// `dd: error writing 'x': Disk quota exceeded (EDQUOT)`.
    fn line(&self, tool: &SharedPrinter) -> String {
        let Self {
            target,
            verb,
            errno,
        } = self;
        let target = match &tool.output {
            Some(path) => path.display().to_string(),
            None => target.clone(),
        };
        let (tool, text) = (tool.name, errno::text(errno));
        format!("{tool}: error {verb} '{target}': {text} ({errno})\n")
    }
}

/// Whether the run ended early, or its target returned errors.
pub(crate) fn has_errors(record: &Record) -> bool {
    record.partial
        || has_surface_errors(record)
        || has_file_errors(record)
        || record.measurements.iter().any(has_measured_errors)
}

fn has_measured_errors(measured: &MeasurementRecord) -> bool {
    let verify = measured.verify.as_ref();
    measured.errors_total() > 0 || verify.is_some_and(|verify| verify.wrong_blocks() > 0)
}

/// Whether a check of earlier writes found none of them.
fn has_verified_nothing(record: &Record) -> bool {
    let mut verified = record.measurements.iter().filter_map(|m| m.verify.as_ref());
    verified.any(|verify| verify.runs == Some(0) && verify.blocks > 0)
}

fn has_file_errors(record: &Record) -> bool {
    let mut steps = record.files.iter().flat_map(|files| &files.steps);
    steps.any(|step| !step.figures.errors.is_empty())
}

fn has_surface_errors(record: &Record) -> bool {
    let surface = record.surface.as_ref();
    let scan = surface.and_then(|surface| surface.scan.as_ref());
    record.curve.iter().any(|point| point.errors > 0)
        || surface.is_some_and(|surface| !surface.access_errors.is_empty())
        || scan.is_some_and(|scan| scan.unreadable_bytes > 0)
}

/// Whether a saved file of this name holds the whole record.
fn holds_record(path: &Path) -> bool {
    format_of(path).is_some_and(|format| format.extension == ".json")
}
