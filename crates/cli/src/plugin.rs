//! `check_diskproof`: a plugin of Nagios and Icinga, when the program is started through a link of
//! that name. One line with performance data on stdout; 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.

use crate::commands::run::{PlannedJobs, plan_jobs};
use crate::failure::{Exit, Failure};
use crate::flags::{MeasuringFlags, SECOND_NS, parse_from_one};
use crate::plan_file::PlanFile;
use crate::progress_display::unanswered;
use crate::provenance::machine_of;
use crate::saved::{
    HistoryFileFlag, HistoryOptions, RecoveredHistory, history_place, is_after, open_recovered,
    short_id,
};
use crate::session::{Measured, MeasuringJob, StdoutForm, measure};
use clap::Parser;
use diskproof_analysis::expect::Expected;
use diskproof_analysis::mechanics;
use diskproof_analysis::rules::rule;
use diskproof_device::host_facts;
use diskproof_engine::watchdog::{Deferred, Waited};
use diskproof_history::{Filter, Listing, TargetFilter, UnreadableRun};
use diskproof_model::expectation::{Expectation, ExpectationOutcome};
use diskproof_model::finding::{Cause, Meaning, Severity};
use diskproof_model::measurement::{OpKind, WAKE_UP_NS};
use diskproof_model::record::Record;
use diskproof_model::row::LatencySummary;
use diskproof_model::saved::{SavedFinding, SavedRun};
use diskproof_model::units::{format_duration, format_latency, parse_duration, parse_latency};
use diskproof_report::terminal::message;
use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The name of the link.
const NAME: &str = "check_diskproof";
/// The plan file of the reads that the plugin measures.
const LOAD: &str = include_str!("../profiles/monitoring.toml");

/// A plugin for Nagios and Icinga: 25 reads of 4 KiB a second for 4 s, or the newest saved run
///
/// In a directory it reads a scratch file of 16 MiB, which it writes first. A device or a regular
/// file is only read. --newest measures nothing.
///
/// A state is certain: OK if the whole 95 % interval of the 90th percentile is within the warning
/// limit, WARNING or CRITICAL if all of it is beyond. In between, and if the figure is not the
/// disk's, it is UNKNOWN.
#[derive(Debug, Clone, Parser)]
#[command(name = NAME, version, max_term_width = 80)]
struct PluginFlags {
    /// Directory, regular file or block device on this machine
    #[arg(short, long)]
    path: PathBuf,
    /// Warn if the 90th percentile of the read times exceeds this
    #[arg(short, long, value_name = "TIME", value_parser = parse_latency, default_value = "20ms")]
    warning: u64,
    /// Critical if it exceeds this
    #[arg(short, long, value_name = "TIME", value_parser = parse_latency, default_value = "100ms")]
    critical: u64,
    /// Answer after so many seconds at the latest, whatever the disk does
    #[arg(short, long, value_name = "SECONDS", default_value = "60",
        value_parser = parse_from_one)]
    timeout: u64,
    /// Print the findings too, a line each
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Name of the host to print; the disk is always one of this machine
    #[arg(short = 'H', long, value_name = "NAME")]
    hostname: Option<String>,
    /// Instead of reading: the age and the worst finding of the newest run on the path
    #[arg(long)]
    newest: bool,
    /// With --newest: unknown if it is older than this
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "48h")]
    max_age: u64,
    /// The history.
    #[command(flatten)]
    history_file: HistoryFileFlag,
}

/// A state, with the line and the lines that explain it.
#[derive(Debug, Clone, PartialEq)]
struct Answer {
    state: State,
    text: String,
    /// Performance data; empty for none.
    data: String,
    /// Lines of --verbose.
    details: Vec<String>,
}

/// Time to find the serial numbers of disks, which takes milliseconds. A disk that hangs may hold
/// whoever asks for them, and its run, which says so, must be judged before Nagios gives up.
const SERIALS_TIMEOUT: Duration = Duration::from_secs(5);

impl Answer {
    /// The answer with the name of the host that is to be printed.
    fn of_host(mut self, flags: &PluginFlags) -> Self {
        if let Some(host) = &flags.hostname {
            self.text = format!("{host} {}", self.text);
        }
        self
    }
}

/// The states of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ok,
    Warning,
    Critical,
    Unknown,
}

impl State {
    /// The word with which the line begins.
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// The gravest state has the highest weight.
    fn weight(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Unknown => 1,
            Self::Warning => 2,
            Self::Critical => 3,
        }
    }

    /// The exit code that Nagios gives the state.
    fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Critical => 2,
            Self::Unknown => 3,
        }
    }
}

/// The answer that nothing is known, for this reason.
fn unknown(text: impl Into<String>) -> Answer {
    Answer {
        state: State::Unknown,
        text: text.into(),
        data: String::new(),
        details: Vec::new(),
    }
}

/// Runs as the plugin; `None` where the program was not started through its link.
pub(crate) fn run_as_link() -> Option<Exit> {
    let first = std::env::args_os().next()?;
    if Path::new(&first).file_name()? != NAME {
        return None;
    }
    let flags = match PluginFlags::try_parse() {
        Ok(flags) => flags,
        Err(error) if !error.use_stderr() => {
            let _ = error.print();
            return Some(Exit::Done);
        }
        Err(error) => return Some(print(&usage_error(&error))),
    };
    if !flags.newest && flags.warning > flags.critical {
        return Some(print(&unknown(format!(
            "the limit of --warning, {}, is above that of --critical, {}, so a warning cannot \
             occur. See {NAME} --help",
            format_latency(flags.warning),
            format_latency(flags.critical)
        ))));
    }
    if std::env::var_os(WORKER).is_some() {
        return Some(print_to_waiter(&answer(&flags)));
    }
    Some(match worker_answer(&flags) {
        Some(printed) => printed.print(),
        // Without a process of its own the answer may be late.
        None => print(&answer(&flags)),
    })
}

/// Set in the process that measures. A thread that waits for a disk in the kernel keeps its process
/// from ending, so the process that a monitoring system waits for is another one.
const WORKER: &str = "DISKPROOF_PLUGIN_WORKER";
/// The line behind an answer begins with this character, and holds the exit code.
const END: char = '\u{4}';
/// The process that measures answers by itself within its timeout; after this time more, it does
/// not.
const WORKER_GRACE: Duration = Duration::from_secs(1);

/// An answer as it is printed.
#[derive(Debug, PartialEq)]
struct PrintedAnswer {
    text: String,
    code: u8,
}

impl PrintedAnswer {
    fn new(answer: &Answer) -> Self {
        let word = answer.state.word();
        let text = in_one_line(&answer.text);
        let mut lines = format!("DISKPROOF {word} - {text}{}\n", answer.data);
        for detail in &answer.details {
            lines.push_str(&in_one_line(detail));
            lines.push('\n');
        }
        Self {
            text: lines,
            code: answer.state.code(),
        }
    }

    /// Reads it up to its end; `None` where the end is missing.
    fn read(lines: impl BufRead) -> Option<Self> {
        let mut text = String::new();
        for line in lines.lines() {
            let line = line.ok()?;
            if let Some(code) = line.strip_prefix(END) {
                let code = code.parse().ok()?;
                return Some(Self { text, code });
            }
            text.push_str(&line);
            text.push('\n');
        }
        None
    }

    fn print(&self) -> Exit {
        let _ = crate::stdio::print_text(&self.text);
        Exit::Tool(self.code)
    }
}

/// Prints an answer for the process that waits for it.
fn print_to_waiter(answer: &Answer) -> Exit {
    let PrintedAnswer { text, code } = PrintedAnswer::new(answer);
    let _ = crate::stdio::print_text(&format!("{text}{END}{code}\n"));
    Exit::Tool(code)
}

/// The answer of another process that measures with the same arguments, which this one leaves
/// behind where it is late: it ends when the kernel lets it. `None` where it cannot be started.
fn worker_answer(flags: &PluginFlags) -> Option<PrintedAnswer> {
    let mut worker = Command::new(std::env::current_exe().ok()?)
        .arg0(NAME)
        .args(std::env::args_os().skip(1))
        .env(WORKER, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        // A reader that waits for the end of this stream would wait for the disk.
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let answers = worker.stdout.take()?;
    let (sender, answered) = channel();
    std::thread::spawn(move || {
        let _ = sender.send(PrintedAnswer::read(BufReader::new(answers)));
    });
    let longest = Duration::from_secs(flags.timeout).saturating_add(WORKER_GRACE);
    let path = flags.path.display();
    let answer = match answered.recv_timeout(longest) {
        Ok(Some(printed)) => return Some(printed),
        Ok(None) | Err(RecvTimeoutError::Disconnected) => unknown(format!(
            "{path}: the measurement failed; this is a bug in diskproof"
        )),
        Err(RecvTimeoutError::Timeout) => {
            unknown(format!("{path}: no answer within {} s", flags.timeout))
        }
    };
    // Ends its measurement in order, and removes what it made.
    let _ = kill_process(Pid::from_child(&worker), Signal::TERM);
    Some(PrintedAnswer::new(&answer.of_host(flags)))
}

/// The message of clap in one line.
fn usage_error(error: &clap::Error) -> Answer {
    let text = error.to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let problem = lines
        .next()
        .unwrap_or_default()
        .trim_start_matches("error: ");
    // The names of missing flags stand on the next line.
    let text = if problem.ends_with(':') {
        format!("{problem} {}", lines.next().unwrap_or_default())
    } else {
        problem.to_owned()
    };
    unknown(format!("{text}. See {NAME} --help"))
}

fn print(answer: &Answer) -> Exit {
    PrintedAnswer::new(answer).print()
}

/// The text without line breaks and bars, which would end it, and with other hidden characters
/// spelled out.
fn in_one_line(text: &str) -> String {
    message(&text.replace('\n', " "), None).replace('|', "/")
}

/// The answer in time, or that there is none. A disk that does not answer holds a thread; the end
/// of the process ends it.
fn answer(flags: &PluginFlags) -> Answer {
    let (sender, answered) = channel();
    let thread_flags = flags.clone();
    let may_sleep = Arc::new(AtomicBool::new(true));
    let thread_may_sleep = Arc::clone(&may_sleep);
    std::thread::spawn(move || {
        let judged = if thread_flags.newest {
            judge_newest_run(&thread_flags)
        } else {
            measure_reads(&thread_flags, &thread_may_sleep)
        };
        let _ = sender.send(judged.unwrap_or_else(|error| unknown(format!("{error:#}"))));
    });
    let path = flags.path.display();
    let mut answer = match answered.recv_timeout(Duration::from_secs(flags.timeout)) {
        Ok(answer) => answer,
        Err(RecvTimeoutError::Timeout) => Answer {
            state: state_of_silence(unanswered(), may_sleep.load(Ordering::Relaxed)),
            ..unknown(format!("{path}: no answer within {} s", flags.timeout))
        },
        Err(RecvTimeoutError::Disconnected) => unknown(format!(
            "{path}: the measurement failed; this is a bug in diskproof"
        )),
    };
    if flags.verbose == 0 {
        answer.details.clear();
    }
    answer.of_host(flags)
}

/// The reads take so long: a disk that answers none of them is critical.
const READS_TIME: Duration = Duration::from_secs(4);
/// A rotating disk that sleeps starts its motor within this time.
const SPIN_UP: Duration = Duration::from_nanos(WAKE_UP_NS);

/// The state where the time is over while the reads have had no answer for so long.
fn state_of_silence(unanswered: Duration, may_sleep: bool) -> State {
    let longest = if may_sleep { SPIN_UP } else { READS_TIME };
    if unanswered >= longest {
        State::Critical
    } else {
        State::Unknown
    }
}

/// Measures reads, and judges their 90th percentile. Sets whether the disk may sleep once that is
/// known.
fn measure_reads(flags: &PluginFlags, may_sleep: &AtomicBool) -> anyhow::Result<Answer> {
    let file = PlanFile {
        targets: vec![flags.path.clone()],
        ..PlanFile::parse(LOAD).map_err(Failure::Usage)?
    };
    let measuring = MeasuringFlags {
        quiet: true,
        counts_wake_up: true,
        history: HistoryOptions {
            no_history: true,
            ..HistoryOptions::default()
        },
        ..MeasuringFlags::default()
    };
    let PlannedJobs {
        mut plan,
        identities,
    } = plan_jobs(file, Path::new(NAME), NAME, &measuring)?;
    plan.origin.verb = "run".to_owned();
    // No disk was asked of its health.
    let host = host_facts();
    let can_sleep = identities
        .iter()
        .any(|identity| mechanics::may_sleep(identity, &host, &[]));
    may_sleep.store(can_sleep, Ordering::Relaxed);
    let measured = measure(MeasuringJob {
        shown: StdoutForm::Nothing,
        ..MeasuringJob::new(plan, identities, &measuring)
    })?;
    match measured {
        Measured::Run(run) => judge_reads(&run.record, flags.warning, flags.critical),
        Measured::PlanShown => Ok(unknown("nothing was measured")),
    }
}

/// Judges whether the 90th percentile keeps a limit in nanoseconds.
fn evaluate_limit(record: &Record, ns: u64) -> anyhow::Result<Expectation> {
    let expected: Expected = format!("reads.read.p90<={ns}ns").parse()?;
    Ok(expected.evaluate(record))
}

/// So many reads of which none is late keep the limit of the 90th percentile for certain (95 %): if
/// a tenth of all reads were late, 29 on time would have a chance of 0.9²⁹ = 4.7 %. That holds also
/// where late reads would come together, which leaves the interval of the percentile open.
const NONE_LATE_READS_MIN: u64 = 29;

/// The state by the two limits; `is_none_late` says whether enough reads were made and all of them
/// kept the one of the warning.
fn state_of_limits(
    within_warning: &Expectation,
    within_critical: &Expectation,
    is_none_late: bool,
) -> State {
    if within_critical.outcome() == ExpectationOutcome::Missed {
        return State::Critical;
    }
    match within_warning.outcome() {
        ExpectationOutcome::Missed => State::Warning,
        ExpectationOutcome::Met => State::Ok,
        ExpectationOutcome::Undecided if is_none_late && within_warning.objection.is_none() => {
            State::Ok
        }
        ExpectationOutcome::Undecided => State::Unknown,
    }
}

/// Judges the reads by the two limits, in nanoseconds.
fn judge_reads(record: &Record, warning: u64, critical: u64) -> anyhow::Result<Answer> {
    let path = record.plan.targets.join(", ");
    let Some((row, op)) = record
        .measurements
        .iter()
        .find_map(|row| Some((row, row.op(OpKind::Read)?)))
    else {
        return Ok(unmeasured(record, &path));
    };
    let errors: u64 = op.data.errors.values().sum();
    let latency = op.figures.seen_latency();
    let within_warning = evaluate_limit(record, warning)?;
    let within_critical = evaluate_limit(record, critical)?;
    let (state, text) = if errors > 0 {
        let reads = op.data.count + errors;
        (State::Critical, format!("{errors} of {reads} reads failed"))
    } else if op.data.count == 0 {
        let text = "no read was answered within 4 s".to_owned();
        (State::Critical, text)
    } else {
        // A read that was never answered is in no latency.
        let is_none_late = op.data.count >= NONE_LATE_READS_MIN
            && latency.max <= warning
            && row.data.hang.is_none();
        let state = state_of_limits(&within_warning, &within_critical, is_none_late);
        let text = reads_text(op.data.count, latency, &within_warning, state);
        (state, text)
    };
    Ok(Answer {
        state,
        text: format!("{path}: {text}"),
        data: performance_data(latency, warning, critical, errors),
        details: record
            .findings
            .iter()
            .map(|finding| format!("{}: {}", finding.code, finding.claim))
            .collect(),
    })
}

/// The answer where not even the first request was answered, or where nothing was measured for
/// another reason.
fn unmeasured(record: &Record, path: &str) -> Answer {
    if let Some(failed) = &record.failed {
        return Answer {
            state: State::Critical,
            ..unknown(format!(
                "{path}: cannot {} ({})",
                failed.doing, failed.errno
            ))
        };
    }
    let Some(stalled) = &record.stalled else {
        return unknown(format!("{path}: nothing was measured"));
    };
    let silence = format_duration(stalled.lasted_ns);
    let text = format!("{path}: no read was answered within {silence}");
    // A disk that sleeps is not accused.
    let is_certain = record
        .findings
        .iter()
        .any(|finding| finding.rests_on("/stalled") && finding.is_serious());
    if is_certain {
        Answer {
            state: State::Critical,
            ..unknown(text)
        }
    } else {
        unknown(text)
    }
}

/// `90 % of 100 reads within 1.75 ms (1.62 to 1.98 ms), the longest took 9.1 ms`, and why the
/// figure may not decide.
fn reads_text(count: u64, latency: &LatencySummary, judged: &Expectation, state: State) -> String {
    let p90 = match latency.p90 {
        Some(ns) => format!("90 % of {count} reads within {}", format_latency(ns)),
        None => format!("only {count} reads were answered within 4 s"),
    };
    let interval = match judged.interval {
        Some([low, high]) => format!(
            " ({} to {})",
            format_latency(low as u64),
            format_latency(high as u64)
        ),
        None => String::new(),
    };
    let objection = match &judged.objection {
        Some(objection) => format!(", but: {objection}"),
        None if judged.undecided && judged.interval.is_none() && state == State::Unknown => {
            ", but late reads came together, so that the interval is unknown".to_owned()
        }
        None => String::new(),
    };
    let longest = format_latency(latency.max);
    format!("{p90}{interval}, the longest took {longest}{objection}")
}

/// The performance data, with the limits of the 90th percentile. Graphs store each value by its
/// name and unit, so neither may change.
fn performance_data(latency: &LatencySummary, warning: u64, critical: u64, errors: u64) -> String {
    let mut values = " |".to_owned();
    if let Some(ns) = latency.p90 {
        let limits = format!("{};{}", milliseconds(warning), milliseconds(critical));
        values.push_str(&format!(" p90={}ms;{limits};0;", milliseconds(ns)));
    }
    if let Some(ns) = latency.p50 {
        values.push_str(&format!(" median={}ms;;;0;", milliseconds(ns)));
    }
    let longest = milliseconds(latency.max);
    values.push_str(&format!(" max={longest}ms;;;0; errors={errors};;0;0;"));
    values
}

fn milliseconds(ns: u64) -> f64 {
    const NS_PER_MILLISECOND: f64 = 1e6;
    ns as f64 / NS_PER_MILLISECOND
}

/// Judges the newest run of this machine on this very path in the history.
fn judge_newest_run(flags: &PluginFlags) -> anyhow::Result<Answer> {
    let path = match flags.path.canonicalize() {
        Ok(path) => path,
        Err(_) => flags.path.clone(),
    };
    let place = history_place(flags.history_file.file())?;
    let path_text = path.to_string_lossy().into_owned();
    let host = host_facts();
    let machine = machine_of(&host);
    let filter = Filter {
        target: Some(TargetFilter::Path(path_text.clone())),
        host: Some(host.name.clone()),
        ..Filter::default()
    };
    let RecoveredHistory { history, unsaved } = open_recovered(&place)?;
    let Listing {
        mut runs,
        unreadable,
    } = match &history {
        Some(history) => history.list(&filter).map_err(Failure::History)?,
        None => Listing::default(),
    };
    for unsaved in unsaved {
        match unsaved.run {
            Some(run) => runs.push(*run),
            None => {
                let text = format!(
                    "{}: the newest run may be one that is not saved, {}",
                    path.display(),
                    unsaved.name
                );
                return Ok(unknown(text));
            }
        }
    }
    runs.retain(|run| run.is_of_machine(&host.name, machine.as_deref()));
    Ok(match newest_run(&runs, &path_text, &unreadable) {
        NewestRun::None => unknown(format!("{}: no saved run", path.display())),
        NewestRun::Unreadable(run_id) => unknown(format!(
            "{}: run {} may be the newest, but cannot be read: it is damaged, or another version \
             of diskproof saved it; 'diskproof history delete {}' removes it",
            path.display(),
            short_id(run_id),
            short_id(run_id)
        )),
        NewestRun::Readable(run) if is_of_another_disk(run, &serials_of(&path)) => {
            unknown(format!(
                "{}: the newest run measured another disk at this path",
                path.display()
            ))
        }
        NewestRun::Readable(run) => {
            let parts = runs_of_command(run, &runs, &path_text);
            gravest_answer(&parts, Timestamp::now(), flags.max_age)
        }
    })
}

/// A run with those of the same command line on a path, such as the blocks and the files of
/// bonnie++: the run is the first.
fn runs_of_command<'a>(run: &'a SavedRun, runs: &'a [SavedRun], path: &str) -> Vec<&'a SavedRun> {
    let mut parts = vec![run];
    for other in runs {
        let is_part = run.command.is_some() && other.command == run.command;
        let is_on_path = other.targets.iter().any(|target| target == path);
        if is_part && is_on_path && other.has_measured() && other.run_id != run.run_id {
            parts.push(other);
        }
    }
    parts
}

/// The answer of the run with the gravest state, of several the first.
fn gravest_answer(runs: &[&SavedRun], now: Timestamp, max_age_ns: u64) -> Answer {
    let mut gravest: Option<Answer> = None;
    for run in runs {
        let answer = judge_saved_run(run, now, max_age_ns);
        let is_graver = match &gravest {
            Some(known) => answer.state.weight() > known.state.weight(),
            None => true,
        };
        if is_graver {
            gravest = Some(answer);
        }
    }
    gravest.unwrap_or_else(|| unknown("no saved run"))
}

/// The serial numbers of the disks below a path; empty where they are unknown, or not found in
/// time.
fn serials_of(path: &Path) -> Vec<String> {
    let path = path.to_owned();
    let search = Deferred::start_or_run("diskproof-probe", move || find_serials(&path));
    match search.wait(SERIALS_TIMEOUT) {
        Waited::Done(serials) => serials,
        Waited::TimedOut(_) | Waited::Lost => Vec::new(),
    }
}

/// Does what [`serials_of`] does, without a limit of time.
fn find_serials(path: &Path) -> Vec<String> {
    match diskproof_device::probe(path) {
        Ok(identity) => identity
            .disks()
            .filter_map(|disk| disk.serial.clone())
            .collect(),
        Err(_) => Vec::new(),
    }
}

/// Returns `true` if none of the disks of a run is at the path now: the kernel's names may change
/// from boot to boot. Without serial numbers nobody knows.
fn is_of_another_disk(run: &SavedRun, serials_now: &[String]) -> bool {
    let serials: Vec<&String> = run
        .disks
        .iter()
        .filter_map(|disk| disk.serial.as_ref())
        .collect();
    let is_known = !serials.is_empty() && !serials_now.is_empty();
    is_known && !serials.iter().any(|serial| serials_now.contains(serial))
}

/// The newest run that measured a path.
#[derive(Debug, PartialEq)]
enum NewestRun<'a> {
    /// The path was not measured.
    None,
    /// The id of a run that cannot be read, and may be the newest.
    Unreadable(&'a str),
    /// The newest run.
    Readable(&'a SavedRun),
}

/// Finds the newest run that measured a path. A watched load does not count: it says nothing of the
/// disk.
fn newest_run<'a>(
    runs: &'a [SavedRun],
    path: &str,
    unreadable: &'a [UnreadableRun],
) -> NewestRun<'a> {
    let mut newest: Option<&SavedRun> = None;
    for run in runs {
        // The filter of the history may take a path for a pattern, too.
        let is_later = match newest {
            Some(newest) => start_s(run) > start_s(newest),
            None => true,
        };
        if run.has_measured() && run.targets.iter().any(|target| target == path) && is_later {
            newest = Some(run);
        }
    }
    let newest_s = match newest {
        Some(run) => start_s(run),
        None => i64::MIN,
    };
    let unread = unreadable.iter().find(|run| run.started_s >= newest_s);
    match (unread, newest) {
        (Some(run), _) => NewestRun::Unreadable(&run.run_id),
        (None, Some(run)) => NewestRun::Readable(run),
        (None, None) => NewestRun::None,
    }
}

/// The start of a run in seconds since 1970. One that is no time counts as the newest, which cannot
/// be judged.
fn start_s(run: &SavedRun) -> i64 {
    match run.started.parse::<Timestamp>() {
        Ok(started) => started.as_second(),
        Err(_) => i64::MAX,
    }
}

/// Judges a saved run by its age and its worst finding.
fn judge_saved_run(run: &SavedRun, now: Timestamp, max_age_ns: u64) -> Answer {
    let path = run.targets.join(", ");
    let Ok(started) = run.started.parse::<Timestamp>() else {
        return unknown(format!("{path}: the time of the newest run cannot be read"));
    };
    if is_after(&run.started, now) {
        let (run_id, start) = (short_id(&run.run_id), &run.started);
        return unknown(format!(
            "{path}: the newest run begins in the future, at {start}; if a clock was wrong, \
             'diskproof history delete {run_id}' removes it"
        ));
    }
    let age_s = now.duration_since(started).as_secs().max(0) as u64;
    let data = format!(" | age={age_s}s;;{};0;", max_age_ns / SECOND_NS);
    let age = format_duration(age_s * SECOND_NS);
    let (state, text) = if age_s * SECOND_NS > max_age_ns {
        (State::Unknown, format!("last measured {age} ago"))
    } else if let Some(reason) = most_urgent(run) {
        (reason.state, format!("{}, {age} ago", reason.code))
    } else if run.partial {
        let text = format!("the newest run ended early, {age} ago");
        (State::Unknown, text)
    } else if run.undecided {
        let text = format!("the newest run is undecided, {age} ago");
        (State::Unknown, text)
    } else {
        (State::Ok, format!("{}, measured {age} ago", doubts(run)))
    };
    Answer {
        state,
        text: format!("{path}: {text}"),
        data,
        details: Vec::new(),
    }
}

/// `no warning`, or the findings that are no reason to act: they doubt a figure, not the disk.
fn doubts(run: &SavedRun) -> String {
    let codes: Vec<&str> = saved_findings(run)
        .into_iter()
        .filter(|finding| finding.severity != Severity::Note)
        .map(|finding| finding.code.as_str())
        .collect();
    if codes.is_empty() {
        return "no warning".to_owned();
    }
    format!(
        "no warning about the disk, but about figures: {}",
        codes.join(", ")
    )
}

/// The findings of a saved run. Older versions saved only the heaviest.
fn saved_findings(run: &SavedRun) -> Vec<&SavedFinding> {
    if run.findings.is_empty() {
        Vec::from_iter(&run.worst)
    } else {
        run.findings.iter().collect()
    }
}

/// A finding that is a reason to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reason<'a> {
    state: State,
    /// The code of the finding.
    code: &'a str,
}

/// The first of the most urgent findings of a saved run; `None` where none is a reason to act.
fn most_urgent(run: &SavedRun) -> Option<Reason<'_>> {
    let mut most_urgent_reason: Option<Reason<'_>> = None;
    for finding in saved_findings(run) {
        let Some(state) = finding_state(finding) else {
            continue;
        };
        match most_urgent_reason {
            Some(earlier) if urgency(earlier.state) >= urgency(state) => {}
            _ => {
                most_urgent_reason = Some(Reason {
                    state,
                    code: &finding.code,
                });
            }
        }
    }
    most_urgent_reason
}

/// The order of states as reasons to act: known trouble of the disk is more urgent than an unknown
/// state.
fn urgency(state: State) -> u8 {
    match state {
        State::Ok => 0,
        State::Unknown => 1,
        State::Warning => 2,
        State::Critical => 3,
    }
}

/// The state that a finding of a saved run gives; `None` where it is no reason to act.
fn finding_state(finding: &SavedFinding) -> Option<State> {
    let says = match rule(&finding.code) {
        Some(rule) => rule.says,
        None => Meaning::default(),
    };
    let serious = match finding.severity {
        Severity::Note => return None,
        Severity::Warning => State::Warning,
        Severity::Failure => State::Critical,
    };
    match says {
        // A full filesystem is a warning: the disk has failed nothing.
        Meaning::NotTheDisk {
            cause: Cause::Failed,
        } if finding.severity == Severity::Failure => Some(State::Critical),
        Meaning::NotTheDisk { .. } | Meaning::OtherLoad { .. } => Some(State::Unknown),
        Meaning::Doubtful | Meaning::Note => None,
        Meaning::Limit { limit } if limit.is_of_the_program() => Some(State::Unknown),
        Meaning::Limit { .. } | Meaning::EndedEarly | Meaning::Disk | Meaning::Health => {
            Some(serious)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_analysis::fixture;
    use diskproof_model::record::Stalled;
    use diskproof_model::saved::SavedDisk;

    #[test]
    fn usage_error_is_one_sentence() {
        for (line, expected) in [
            (
                &[NAME, "--nosuch"][..],
                "unexpected argument '--nosuch' found. See check_diskproof --help",
            ),
            (
                &[NAME],
                "the following required arguments were not provided: --path <PATH>. See \
                 check_diskproof --help",
            ),
        ] {
            let error = PluginFlags::try_parse_from(line).unwrap_err();
            assert_eq!(usage_error(&error).text, expected);
        }
    }

    /// The process that measures may stay in the kernel, so the end of its answer is marked.
    #[test]
    fn answer_ends_with_its_code_and_not_with_the_process() {
        let answer = Answer {
            details: vec!["stalled: for 8 s".to_owned()],
            ..unknown("/mnt: no answer within 10 s")
        };
        let printed = PrintedAnswer::new(&answer);
        let sent = format!("{}{END}{}\nmore", printed.text, printed.code);
        assert_eq!(PrintedAnswer::read(sent.as_bytes()), Some(printed));
        assert_eq!(PrintedAnswer::read(&b"DISKPROOF OK"[..]), None);
    }

    /// The reads of four seconds had no answer: critical, unless the motor may be starting.
    #[test]
    fn silence_at_the_timeout_is_critical_unless_the_disk_may_sleep() {
        let state = |seconds, may_sleep| state_of_silence(Duration::from_secs(seconds), may_sleep);
        assert_eq!(state(8, false), State::Critical);
        assert_eq!(state(3, false), State::Unknown);
        assert_eq!(state(8, true), State::Unknown);
        assert_eq!(state(16, true), State::Critical);
        assert_eq!(state(0, false), State::Unknown);
    }

    #[test]
    fn finding_of_a_saved_run_gives_the_state_of_its_meaning() {
        use Severity::{Failure, Note, Warning};
        for (code, severity, state) in [
            ("io-errors", Failure, Some(State::Critical)),
            ("io-errors", Warning, Some(State::Unknown)),
            ("served-from-cache", Failure, Some(State::Unknown)),
            ("disturbed", Warning, Some(State::Unknown)),
            ("health-failing", Failure, Some(State::Critical)),
            ("slow-flush", Warning, Some(State::Warning)),
            ("imprecise", Warning, None),
            ("engine-limited", Warning, Some(State::Unknown)),
            ("cpu-limited", Warning, Some(State::Unknown)),
            ("virtual-disk", Note, None),
            ("too-hot", Warning, Some(State::Warning)),
        ] {
            let code = code.to_owned();
            assert_eq!(finding_state(&SavedFinding { severity, code }), state);
        }
    }

    /// A warning that is no reason to act doubts a figure, or says how it came about. A new finding
    /// joins them only by a decision.
    #[test]
    fn warnings_that_are_no_reason_to_act_are_listed() {
        const NO_REASON: &[&str] = &[
            "access-time-off",
            "burst-untested",
            "depth-not-held",
            "engine-fallback",
            "imprecise",
            "io-punted",
            "missed-schedule",
            "not-zoned",
            "short-span",
            "unverified-blocks",
            "varies-between-runs",
            "virtual-disk",
            "volatile-write-cache",
        ];
        let mut without_state: Vec<&str> = Vec::new();
        for rule in diskproof_analysis::rules::rules() {
            let finding = SavedFinding {
                severity: Severity::Warning,
                code: rule.code.to_owned(),
            };
            if finding_state(&finding).is_none() {
                without_state.push(rule.code);
            }
        }
        without_state.sort_unstable();
        assert_eq!(without_state, NO_REASON);
    }

    #[test]
    fn warning_about_figures_is_named() {
        let now: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        let mut run = saved_run(None);
        run.findings.push(SavedFinding {
            severity: Severity::Warning,
            code: "imprecise".to_owned(),
        });
        let answer = judge_saved_run(&run, now, u64::MAX);
        assert_eq!(answer.state, State::Ok);
        assert!(answer.text.contains("imprecise"), "{}", answer.text);
        run.findings.clear();
        let answer = judge_saved_run(&run, now, u64::MAX);
        assert!(answer.text.contains(": no warning, "), "{}", answer.text);
    }

    /// Whoever looks at a sick disk with `watch` must not turn its state into OK.
    #[test]
    fn newest_run_is_one_that_measured_the_path() {
        let at = |run_id: &str, hour: u32| SavedRun {
            run_id: run_id.to_owned(),
            started: format!("2026-11-20T{hour:02}:00:00Z"),
            ..saved_run(None)
        };
        let mut runs = vec![at("watched", 12), at("earlier", 9), at("newest", 10)];
        runs[0].only_observed = true;
        assert_eq!(
            newest_run(&runs, "/data", &[]),
            NewestRun::Readable(&runs[2])
        );
        assert_eq!(newest_run(&runs, "/other", &[]), NewestRun::None);
        // Older versions saved only the verb.
        runs[0].only_observed = false;
        runs[0].verb = "watch".to_owned();
        assert_eq!(
            newest_run(&runs, "/data", &[]),
            NewestRun::Readable(&runs[2])
        );
        let unreadable = |started: &str| UnreadableRun {
            run_id: "damaged".to_owned(),
            started_s: started.parse::<Timestamp>().unwrap().as_second(),
        };
        let earlier = [unreadable("2026-11-20T09:59:59Z")];
        assert_eq!(
            newest_run(&runs, "/data", &earlier),
            NewestRun::Readable(&runs[2])
        );
        let later = [unreadable("2026-11-20T10:00:00Z")];
        assert_eq!(
            newest_run(&runs, "/data", &later),
            NewestRun::Unreadable("damaged")
        );
        assert_eq!(
            newest_run(&[], "/data", &earlier),
            NewestRun::Unreadable("damaged")
        );
    }

    /// Clones, pods and containers share names.
    #[test]
    fn imported_run_of_a_namesake_is_another_machines() {
        let mut run = saved_run(None);
        run.host = "db1".to_owned();
        assert!(run.is_of_machine("db1", Some("own")));
        assert!(!run.is_of_machine("db2", Some("own")));
        run.imported = true;
        assert!(!run.is_of_machine("db1", Some("own")));
        assert!(!run.is_of_machine("db1", None));
        run.machine = Some("own".to_owned());
        assert!(run.is_of_machine("db1", Some("own")));
        run.machine = Some("other".to_owned());
        run.imported = false;
        assert!(!run.is_of_machine("db1", Some("own")));
    }

    /// The files of bonnie++ are healthy, its blocks were not.
    #[test]
    fn gravest_run_of_a_command_line_decides() {
        let now: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        let part = |run_id: &str, command: &str, worst: Option<Severity>| SavedRun {
            run_id: run_id.to_owned(),
            command: Some(command.to_owned()),
            findings: worst
                .map(|severity| SavedFinding {
                    severity,
                    code: "slow-flush".to_owned(),
                })
                .into_iter()
                .collect(),
            ..saved_run(worst)
        };
        let runs = [
            part("files", "one", None),
            part("blocks", "one", Some(Severity::Warning)),
            part("of-yesterday", "other", Some(Severity::Failure)),
        ];
        let parts = runs_of_command(&runs[0], &runs, "/data");
        let answer = gravest_answer(&parts, now, u64::MAX);
        assert_eq!((parts.len(), answer.state), (2, State::Warning));
        let alone = saved_run(None);
        assert_eq!(runs_of_command(&alone, &runs, "/data").len(), 1);
    }

    #[test]
    fn run_on_another_disk_of_the_same_name_is_recognised() {
        let mut run = saved_run(None);
        let now = ["S1".to_owned()];
        assert!(!is_of_another_disk(&run, &now));
        run.disks = vec![SavedDisk {
            name: "sdb".to_owned(),
            model: None,
            serial: Some("S2".to_owned()),
        }];
        assert!(is_of_another_disk(&run, &now));
        assert!(!is_of_another_disk(&run, &[]));
        run.disks[0].serial = Some("S1".to_owned());
        assert!(!is_of_another_disk(&run, &now));
    }

    /// The judgement of a limit; `Some(true)` where it is kept, `None` where that is undecided.
    fn judged(met: Option<bool>, objection: Option<&str>) -> Expectation {
        let mut expectation = evaluate_limit(&diskproof_analysis::fixture::record(), 1).unwrap();
        expectation.met = met == Some(true);
        expectation.undecided = met.is_none();
        expectation.objection = objection.map(str::to_owned);
        expectation
    }

    #[test]
    fn reads_of_which_none_is_late_keep_an_undecided_limit() {
        for (warning, critical, is_none_late, state) in [
            (judged(None, None), judged(None, None), true, State::Ok),
            (
                judged(None, None),
                judged(None, None),
                false,
                State::Unknown,
            ),
            (
                judged(None, Some("a cache answered")),
                judged(None, Some("a cache answered")),
                true,
                State::Unknown,
            ),
            (
                judged(Some(false), None),
                judged(None, None),
                false,
                State::Warning,
            ),
            (
                judged(Some(false), None),
                judged(Some(false), None),
                false,
                State::Critical,
            ),
        ] {
            assert_eq!(state_of_limits(&warning, &critical, is_none_late), state);
        }
    }

    /// The state, the text and the performance data are of one distribution: that from the intended
    /// start, by which the limits judge.
    #[test]
    fn answer_prints_the_latencies_that_it_judges() {
        let mut record = diskproof_analysis::fixture::record();
        record
            .measurements
            .retain(|row| row.data.workload.name == "random-read-d1");
        let row = &mut record.measurements[0];
        row.data.workload.name = "reads".to_owned();
        let figures = row.figures.ops.get_mut(&OpKind::Read).unwrap();
        let service_ns = figures.latency.p90.unwrap();
        let mut intended = figures.latency.clone();
        intended.p90 = Some(3 * service_ns);
        intended.max = 7_000_000_000;
        figures.latency_intended = Some(intended);
        let answer = judge_reads(&record, 1, 2).unwrap();
        let p90 = format!(" p90={}ms;", milliseconds(3 * service_ns));
        assert!(answer.data.contains(&p90), "{}", answer.data);
        assert!(answer.data.contains(" max=7000ms;"), "{}", answer.data);
        assert!(
            answer.text.contains("the longest took 7.00 s"),
            "{}",
            answer.text
        );
    }

    /// The first read had no answer when the run ended; a disk that sleeps is not accused.
    #[test]
    fn disk_that_answers_nothing_from_the_start_is_critical() {
        let silent = |rotational: bool| {
            let mut run = fixture::run();
            run.measurements.clear();
            for layer in &mut run.facts.targets[0].layers {
                layer.rotational = Some(rotational);
            }
            run.facts.partial = true;
            run.facts.stalled = Some(Stalled {
                around: "reads".to_owned(),
                lasted_ns: 8 * SECOND_NS,
                late: true,
                has_answered: false,
                target: Some(0),
            });
            judge_reads(&fixture::judge(run), 1, 2).unwrap()
        };
        let answer = silent(false);
        assert_eq!(answer.state, State::Critical);
        assert!(answer.text.contains("within 8.0 s"), "{}", answer.text);
        assert_eq!(silent(true).state, State::Unknown);
    }

    fn saved_run(worst: Option<Severity>) -> SavedRun {
        SavedRun {
            run_id: String::new(),
            started: "2026-11-20T10:00:00Z".to_owned(),
            verb: "check".to_owned(),
            targets: vec!["/data".to_owned()],
            disks: Vec::new(),
            host: String::new(),
            label: None,
            note: None,
            partial: false,
            undecided: false,
            only_observed: false,
            machine: None,
            imported: false,
            command: None,
            method: 9,
            worst: worst.map(|severity| SavedFinding {
                severity,
                code: "slow-flush".to_owned(),
            }),
            findings: Vec::new(),
            figures: Vec::new(),
        }
    }

    #[test]
    fn line_has_no_characters_that_act() {
        assert_eq!(in_one_line("a\nb|c\u{1b}[31m"), "a b/c\\u{1b}[31m");
    }

    #[test]
    fn newest_run_that_ended_early_is_not_ok() {
        let now: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        for (finding, state) in [
            (None, State::Unknown),
            (Some((Severity::Note, "interrupted")), State::Unknown),
            (Some((Severity::Warning, "late")), State::Warning),
            (Some((Severity::Failure, "hung")), State::Critical),
        ] {
            let mut run = saved_run(None);
            run.partial = true;
            if let Some((severity, code)) = finding {
                let code = code.to_owned();
                run.findings.push(SavedFinding { severity, code });
            }
            let answer = judge_saved_run(&run, now, u64::MAX);
            assert_eq!(answer.state, state, "{finding:?}");
        }
        let mut undecided = saved_run(None);
        undecided.undecided = true;
        assert_eq!(
            judge_saved_run(&undecided, now, u64::MAX).state,
            State::Unknown
        );
    }

    #[test]
    fn newest_run_counts_while_it_is_young() {
        let now: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        let hour = 3_600_000_000_000;
        let day = 24 * hour;
        for (worst, max_age_ns, state) in [
            (None, day, State::Ok),
            (Some(Severity::Note), day, State::Ok),
            (Some(Severity::Warning), day, State::Warning),
            (Some(Severity::Failure), day, State::Critical),
            (Some(Severity::Failure), hour, State::Unknown),
        ] {
            let answer = judge_saved_run(&saved_run(worst), now, max_age_ns);
            assert_eq!(answer.state, state, "{worst:?} {max_age_ns}");
        }
        // The clock of the machine, or of the one that measured, was wrong.
        let early: Timestamp = "2026-11-20T09:58:00Z".parse().unwrap();
        let answer = judge_saved_run(&saved_run(None), early, day);
        assert_eq!(answer.state, State::Unknown);
        let stepped: Timestamp = "2026-11-20T09:59:58Z".parse().unwrap();
        let answer = judge_saved_run(&saved_run(None), stepped, day);
        assert_eq!(answer.state, State::Ok);
        // The finding that comes first, with the same severity, is no reason to act.
        let mut several = saved_run(Some(Severity::Warning));
        for code in ["imprecise", "disturbed", "slow-flush"] {
            several.findings.push(SavedFinding {
                severity: Severity::Warning,
                code: code.to_owned(),
            });
        }
        several.worst = several.findings.first().cloned();
        let expected = Reason {
            state: State::Warning,
            code: "slow-flush",
        };
        assert_eq!(most_urgent(&several), Some(expected));
        assert_eq!(judge_saved_run(&several, now, day).state, State::Warning);
    }
}
