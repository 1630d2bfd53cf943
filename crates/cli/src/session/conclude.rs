//! The end of a run: the record, its files, the history, the page on stdout, and the exit code.

use super::job::Shown;
use super::sink::EarlyEnd;
use super::watchdog::EndedRun;
use crate::failure::{Exit, Failure};
use crate::flags::{MeasuringFlags, UndecidedMeans};
use crate::interrupt;
use crate::output_files::{Output, save_record, temporary_path};
use crate::saved::{self, HistoryOptions, RunKey, SaveNote};
use crate::stdio::{
    Verbosity, close_stdout, commands_page, eprint_line, eprint_text, ignore_closed_pipe,
    is_closed_stdout, record_page, to_stdout, write_record_page,
};
use crate::tool_lines::{SharedPrinter, ToolEnd};
use anyhow::Result;
use diskproof_analysis::judge::{RunFacts, RunVariation, judge};
use diskproof_analysis::rules::{Check, Rule, rule};
use diskproof_compat::ToolText;
use diskproof_engine::RunError;
use diskproof_engine::watchdog::{Deferred, Waited};
use diskproof_model::data::RunData;
use diskproof_model::errno;
use diskproof_model::finding::{Finding, Severity};
use diskproof_model::measurement::VerifyResult;
use diskproof_model::plan::{METHOD_VERSION, Plan};
use diskproof_model::proof::FigureSource;
use diskproof_model::record::{Expectation, ExpectationOutcome, Record};
use diskproof_model::row::Row;
use diskproof_model::units::format_duration;
use diskproof_report::formats::format_of;
use diskproof_report::terminal::Detail;
use diskproof_report::{json, unmet_text};
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SAVE_THREAD: &str = "diskproof-save";
/// How often a save is looked at.
const SAVE_POLL: Duration = Duration::from_millis(50);
/// After Ctrl-C the program ends within two seconds: saving usually takes milliseconds.
const SAVE_AFTER_INTERRUPT: Duration = Duration::from_millis(1500);

/// What a verb has of its job.
pub(crate) enum Measured<'a> {
    /// The plan was only shown.
    PlanShown,
    /// It was carried out.
    Run(Box<MeasuredRun<'a>>),
}

impl Measured<'_> {
    /// How the program ends.
    pub(crate) fn exit(self) -> Result<Exit> {
        match self {
            Self::PlanShown => Ok(Exit::Done),
            Self::Run(run) => run.exit(),
        }
    }
}

/// A run that is judged, saved and printed.
pub(crate) struct MeasuredRun<'a> {
    /// Its record.
    pub record: Arc<Record>,
    /// Whether it was saved and printed.
    pub printed: Result<()>,
    end: EndedRun,
    flags: &'a MeasuringFlags,
    /// Files on filesystems that hang.
    hung_saves: Vec<String>,
    /// The signal in whose time a save was not done.
    unsaved_at: Option<u8>,
}

impl MeasuredRun<'_> {
    /// How the program ends. Says what may keep it from ending.
    pub(crate) fn exit(mut self) -> Result<Exit> {
        let hung = [&self.end.results.hung[..], &self.hung_saves].concat();
        if !hung.is_empty() {
            let text = process_may_stay(&hung, &self.record.plan);
            self.flags.verbosity().note(&text);
            close_stdout();
        }
        let not_restored = self.end.results.not_restored.take();
        let ended = match exit_of(&self.record, self.end, self.flags.undecided) {
            Ok(Exit::Done) => match self.unsaved_at {
                Some(signal) => Ok(Exit::Signal(signal)),
                None => Ok(Exit::Done),
            },
            ended => ended,
        };
        let exit = match (self.printed, ended) {
            (Ok(()), ended) => ended?,
            (Err(error), Ok(exit)) if !matches!(exit, Exit::Signal(_)) => return Err(error),
            // How the run ended decides.
            (Err(error), ended) => {
                eprint_line(&format!("error: {error:#}"));
                ended?
            }
        };
        // However else the run ended.
        match not_restored {
            Some(error) => Err(Failure::WriteCache(error).into()),
            None => Ok(exit),
        }
    }
}

/// Judges, saves and prints what was measured.
pub(super) fn conclude<'a>(
    end: EndedRun,
    outputs: &[Arc<Output>],
    flags: &'a MeasuringFlags,
    shown: &Shown,
) -> MeasuredRun<'a> {
    let mut facts = end.facts.clone();
    let wait = SaveWait {
        limit: end.stall_timeout,
        interrupted: Cell::new(None),
    };
    if !facts.partial && !flags.history.no_history {
        facts.variation = RunVariation::Earlier(runs_before(&facts, &flags.history, &wait));
    }
    let record = Arc::new(judge(facts, &end.results.data, &flags.expected));
    let (mut stdout, mut tool_saved) = (FinalText::Page, Ok(()));
    match shown {
        _ if flags.prints_json() => stdout = FinalText::Json,
        Shown::Page => {}
        Shown::Nothing => stdout = FinalText::Nothing,
        Shown::Tool(tool) => {
            let ToolEnd { text, saved } = text_of_tool(tool, &record, &end);
            (stdout, tool_saved) = (FinalText::Tool(text), saved);
            note_unanswered(&end.results.data, flags.verbosity());
        }
    }
    let detail = if flags.verbose {
        Detail::Whole
    } else {
        Detail::Short
    };
    let mut page = record_page(&record, detail);
    if flags.commands || flags.verbose {
        page = format!("{page}\n{}", commands_page(&record));
    }
    let printed = save_and_print(&record, &page, outputs, flags, &stdout, &wait);
    end.end_journal();
    MeasuredRun {
        record,
        printed: tool_saved.and(printed.outcome),
        end,
        flags,
        hung_saves: printed.hung,
        unsaved_at: if printed.is_incomplete {
            wait.interrupted_by()
        } else {
            None
        },
    }
}

/// What stdout gets.
enum FinalText {
    /// The record.
    Json,
    /// Our page.
    Page,
    /// The text of a tool.
    Tool(ToolText),
    /// Nothing.
    Nothing,
}

/// How a record was saved and printed.
struct PrintedRecord {
    outcome: Result<()>,
    /// Files on filesystems that hang.
    hung: Vec<String>,
    /// Whether a save was not done in time.
    is_incomplete: bool,
}

/// What a tool prints at the end of its run.
fn text_of_tool(tool: &SharedPrinter, record: &Record, end: &EndedRun) -> ToolEnd {
    let data = &end.results.data;
    let is_interrupted = interrupt::signal().is_some();
    let failed = failed_request(record);
    let error = match &end.ended {
        Err(EarlyEnd::Error(error)) => error.errno(),
        _ => failed.map(|(_, _, errno)| errno.to_owned()),
    };
    if let Some(files) = &data.files {
        tool.files_measured(files);
    }
    let ToolEnd { mut text, saved } = tool.end(
        &data.measurements,
        data.surface.as_ref(),
        is_interrupted,
        error.as_deref(),
    );
    let first = match (&end.ended, failed) {
        // An error that ended the run is printed with its remedy.
        (Err(EarlyEnd::Error(_)), _) => String::new(),
        // `dd: error writing 'x': Disk quota exceeded (EDQUOT)`.
        (_, Some((target, verb, errno))) => {
            let output = tool.output.as_ref().map(|path| path.display().to_string());
            let (target, text) = (output.as_deref().unwrap_or(target), errno::text(errno));
            format!("{}: error {verb} '{target}': {text} ({errno})\n", tool.name)
        }
        (Err(EarlyEnd::Reason(why)), None) if !is_interrupted => {
            let mut ops = data.measurements.iter().flat_map(|m| m.ops.values());
            let has_completed =
                ops.any(|op| op.count > 0) || data.surface.is_some() || data.files.is_some();
            // The output of a tool may have nothing but zeros then.
            let none = if has_completed {
                ""
            } else {
                "no request completed, so every figure is undecided. "
            };
            format!("{}: {none}{why}\n", tool.name)
        }
        _ => String::new(),
    };
    text.stderr.insert_str(0, &first);
    for measured in &record.measurements {
        if let Some(line) = unverifiable_line(tool.name, measured, &record.plan) {
            text.stderr.push_str(&line);
        }
    }
    for finding in record.findings.iter().filter(|one| spoils_figures(one)) {
        let line = format!("{}: {}: {}\n", tool.name, finding.code, finding.claim);
        text.stderr.push_str(&line);
    }
    ToolEnd { text, saved }
}

/// Whether a figure is false. Errors of requests are printed as such.
fn spoils_figures(finding: &Finding) -> bool {
    let is_health = |rule: &Rule| matches!(rule.check, Check::Health { .. });
    let is_of_run = rule(&finding.code).is_some_and(|rule| !is_health(rule));
    is_of_run && finding.severity == Severity::Failure && finding.code != "io-errors"
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
fn runs_before(facts: &RunFacts, options: &HistoryOptions, wait: &SaveWait) -> Vec<Record> {
    let host = &facts.host.name;
    let key = RunKey::new(&facts.plan, METHOD_VERSION, host, &facts.targets);
    let history = options.history.clone();
    let find = move || saved::runs_before(&key, history.as_deref());
    let found = Deferred::start_or_run(SAVE_THREAD, find);
    wait.wait(&found).unwrap_or_default()
}

/// How long saving may take: up to the limit, and only a moment after Ctrl-C.
struct SaveWait {
    limit: Duration,
    /// When Ctrl-C was noticed.
    interrupted: Cell<Option<Instant>>,
}

impl SaveWait {
    /// The result; `None` where it does not come in time.
    fn wait<T: Send + 'static>(&self, save: &Deferred<T>) -> Option<T> {
        loop {
            let age = match save.poll(SAVE_POLL) {
                Waited::Done(done) => return Some(done),
                Waited::Lost => return None,
                Waited::TimedOut(age) => age,
            };
            if interrupt::signal().is_some() && self.interrupted.get().is_none() {
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
        self.interrupted.get().and(interrupt::signal())
    }

    /// Why a save was not done, as a clause.
    fn reason(&self, who: &str) -> String {
        match self.interrupted.get() {
            Some(_) => format!("{who} did not answer before Ctrl-C ended the wait"),
            None => {
                let limit = format_duration(self.limit.as_nanos() as u64);
                format!("{who} did not answer for {limit}")
            }
        }
    }
}

/// Saves the record to its files and to the history, then prints it. Each save has its own thread,
/// so that one that fails or hangs does not keep the others from being done.
fn save_and_print(
    record: &Arc<Record>,
    page: &str,
    outputs: &[Arc<Output>],
    flags: &MeasuringFlags,
    stdout: &FinalText,
    wait: &SaveWait,
) -> PrintedRecord {
    let verbosity = flags.verbosity();
    // Saved before it is printed: a reader that goes away, such as `head`, must not cost the
    // record.
    let mut saves = Vec::new();
    for output in outputs {
        let (record, output) = (Arc::clone(record), Arc::clone(output));
        let save = move || save_record(&record, &output, verbosity);
        saves.push(Deferred::start_or_run(SAVE_THREAD, save));
    }
    let history = {
        let (record, page, options) = (Arc::clone(record), page.to_owned(), flags.history.clone());
        Deferred::start_or_run(SAVE_THREAD, move || saved::keep(&record, &page, &options))
    };
    let (mut outcome, mut hung) = (Ok(()), Vec::new());
    let (mut is_saved, mut is_incomplete) = (false, false);
    for (output, save) in outputs.iter().zip(saves) {
        let saved = wait.wait(&save).unwrap_or_else(|| {
            is_incomplete = true;
            if !output.is_pipe() {
                hung.push(output.path().display().to_string());
            }
            Err(save_timed_out(output, wait))
        });
        let is_record = format_of(output.path()).is_some_and(|format| format.extension == ".json");
        is_saved |= saved.is_ok() && is_record;
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
    interrupt::end_at_once();
    let printed = to_stdout(|out| match stdout {
        FinalText::Json => json::write_record(record, out),
        FinalText::Tool(text) => out.write_all(text.stdout.as_bytes()),
        FinalText::Nothing => Ok(()),
        FinalText::Page => write_record_page(record, page, flags.color, out),
    });
    if let FinalText::Tool(text) = stdout {
        eprint_text(&text.stderr);
    }
    saved::print_notes("", &notes, verbosity);
    let printed = match printed {
        Err(error) if flags.prints_json() && is_closed_stdout(&error) => {
            closed_before_json(is_saved)
        }
        other => ignore_closed_pipe(other),
    };
    PrintedRecord {
        outcome: outcome.and(printed),
        hung,
        is_incomplete,
    }
}

/// The reader of `--json` closed the pipe before it had the record.
fn closed_before_json(is_saved: bool) -> Result<()> {
    anyhow::ensure!(
        is_saved,
        "stdout was closed before the record was written, and the record was not saved, so the \
         results are lost. Use a reader that reads to the end, or -o FILE.json"
    );
    eprint_line("warning: stdout was closed before the record was written; the record is saved");
    Ok(())
}

fn save_timed_out(output: &Output, wait: &SaveWait) -> anyhow::Error {
    let name = output.path().display();
    if output.is_pipe() {
        let reason = wait.reason("its reader");
        return anyhow::anyhow!("-o {name}: the record was not written to this pipe: {reason}");
    }
    let reason = wait.reason("its filesystem");
    anyhow::anyhow!(
        "-o {name}: the record was not saved: {reason}; {} may be left behind",
        temporary_path(output.path()).display()
    )
}

/// The work is done, and the process may last all the same.
pub(crate) fn process_may_stay(hung: &[String], plan: &Plan) -> String {
    let scratch = if plan.scratch_bytes().is_some() {
        " Its scratch file has no name and vanishes with the process."
    } else if plan.files().is_some() {
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
fn exit_of(record: &Record, end: EndedRun, undecided: UndecidedMeans) -> Result<Exit> {
    let signal = interrupt::signal();
    match (end.ended, signal) {
        (Ok(()) | Err(EarlyEnd::Reason(_)), _) => {}
        // The user ended the wait.
        (Err(EarlyEnd::Error(error @ RunError::Stalled { .. })), Some(signal)) => {
            eprint_line(&format!("error: {error}"));
            return Ok(Exit::Signal(signal));
        }
        (Err(EarlyEnd::Error(error)), _) => return Err(Failure::Run(error).into()),
        (Err(EarlyEnd::NotStarted(failure)), _) => return Err(failure.into()),
    }
    Ok(match signal {
        Some(signal) if record.partial => Exit::Signal(signal),
        _ if !end.results.hung.is_empty() || has_errors(record) => Exit::Failed,
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

/// Says that blocks cannot be verified. Damaged ones are a finding.
fn unverifiable_line(tool: &str, measured: &Row, plan: &Plan) -> Option<String> {
    let verify = measured.data.verify.as_ref()?;
    let unknown = verify.bad_blocks - verify.wrong_blocks();
    let target = plan
        .targets
        .get(measured.data.target)
        .filter(|_| unknown > 0)?;
    Some(format!(
        "{tool}: verify failed at file {target}: {unknown} of {} blocks have no checksum of \
         diskproof, and those of other programs cannot be verified\n",
        verify.blocks
    ))
}

/// The first request that the target answered with an error: its target, what it did, such as
/// `writing`, and the errno.
fn failed_request(record: &Record) -> Option<(&str, &'static str, &str)> {
    let of_workloads = record.measurements.iter().flat_map(|measured| {
        measured.data.ops.iter().flat_map(move |(kind, op)| {
            let errors = op.errors.keys();
            errors.map(move |errno| (measured.data.target, kind.doing(), errno))
        })
    });
    let of_files = record.files().into_iter().flat_map(|files| &files.steps);
    let of_files = of_files.flat_map(|step| step.data.op.errors.keys());
    let surfaces = record.surface().into_iter();
    let of_surface = surfaces.flat_map(|surface| surface.data.access_errors.keys());
    let mut all = of_workloads
        .chain(of_files.map(|errno| (0, "using files in", errno)))
        .chain(of_surface.map(|errno| (0, "reading", errno)));
    let (target, verb, errno) = all.next()?;
    Some((record.plan.targets.get(target)?, verb, errno))
}

/// Whether the run ended early, or its target returned errors.
pub(crate) fn has_errors(record: &Record) -> bool {
    // To other tools a block that cannot be checked is a damaged one.
    let damaged = if record.plan.is_of_other_tool() {
        |verify: &VerifyResult| verify.bad_blocks
    } else {
        VerifyResult::wrong_blocks
    };
    let has_measured = |measured: &Row| {
        let verify = measured.data.verify.as_ref();
        measured.errors_total() > 0 || verify.is_some_and(|verify| damaged(verify) > 0)
    };
    let mut steps = record.files().into_iter().flat_map(|files| &files.steps);
    let surface = record.surface();
    let scan = surface.and_then(|surface| surface.data.scan.as_ref());
    record.partial
        || record.measurements.iter().any(has_measured)
        || steps.any(|step| !step.data.op.errors.is_empty())
        || record.curve().iter().any(|point| point.errors > 0)
        || surface.is_some_and(|surface| !surface.data.access_errors.is_empty())
        || scan.is_some_and(|scan| scan.unreadable_bytes > 0)
}

/// Whether a check of blocks found none that it could judge, or the disk did not answer it.
fn has_verified_nothing(record: &Record) -> bool {
    record.measurements.iter().enumerate().any(|(index, m)| {
        let Some(verify) = &m.data.verify else {
            return false;
        };
        let is_foreign = verify.runs == Some(0) && verify.blocks > 0;
        let source = FigureSource::Measurement(index);
        is_foreign || record.objection(source).is_some()
    })
}
