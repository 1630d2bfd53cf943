//! `diskproof watch`: what the disks of the machine do at this moment, and the real load as a
//! record.

mod devices;
mod journal;
mod kernel;
mod server;
mod view;

use crate::failure::{Exit, Failure};
use crate::flags::{SECOND_NS, is_stdout, parse_from_one, parse_page_name};
use crate::interrupt;
use crate::output_files::{Output, Trial, open_outputs, save_records};
use crate::saved::{HistoryOptions, in_history, keep, print_notes, refuse_foreign_history};
use crate::stdio::{
    ColorWhen, Verbosity, colored_style, eprint_line, ignore_closed_pipe, to_stdout,
    write_colored_page,
};
use crate::workload::parse_time;
use devices::resolve_devices;
use diskproof_model::units::{format_duration, parse_duration};
use diskproof_report::terminal::{Detail, record_page};
use journal::WatchJournal;
use kernel::{WatchRequest, WatchedKernel};
use std::path::PathBuf;
use std::sync::Arc;
use view::{RequestedView, StepView, ViewOutlet, ViewWait};

/// The shortest step: reading the counters of a thousand processes takes some milliseconds.
const INTERVAL_NS_MIN: u64 = SECOND_NS / 10;
/// The longest step, as the error names it.
const INTERVAL_NS_MAX: u64 = 3600 * SECOND_NS;

/// The note where nothing is left to watch.
const NO_DEVICE_LEFT: &str = "no watched device is left";

const HELP: &str = "\
Each line is one device in one step: reads and writes per second, MB/s, the mean
time of a request in ms, requests in flight (queue), the share of seeks, and the
load as a share of the disk's limit. There is no %util: it shows 100 % on a disk
that could do a hundred times more.

seeks  Random requests over all requests. As root, a private tracefs instance
       reports the position of each request; a request that continues one of
       the latest streams is sequential. Otherwise the share is estimated from
       request sizes and merges, and marked with ~.
load   Compared with the newest check or sweep of the same disk in the history.
by     The threads that sent the requests. Kernel threads (kworker, jbd2) send
       the buffered writes of processes. 'all disks' counts the bytes of
       processes; the kernel does not report which disk they used.

On a terminal the view fills the screen and q ends it. In a pipe, with --plain
or with TERM=dumb it prints lines. watch opens no device and causes no I/O.

--postgres adds the I/O statistics of a server (pg_stat_io; fewer figures before
version 16) and their share of the disk's reads and writes. CONNINFO is a libpq
connection string or URI, or a database name; PG* variables, service files and
~/.pgpass complete it. TLS follows sslmode and sslrootcert, as in psql. The
session is read-only. As root, watch connects to a Unix socket as the operating
system user with the role's name, so that 'peer' accepts it.

--record saves the load: sizes, shares of reads and seeks, requests in flight,
and the rate in each step. 'diskproof run --like ID TARGET' repeats it on any
target.

Exit codes: 0 done, 2 usage, 4 the devices vanished or a file was not saved,
130 Ctrl-C.

Examples:
  sudo diskproof watch                     # all disks, until q
  sudo diskproof watch sda /data           # a device, and the disks below /data
  diskproof watch -i 5s -c 12 | tee log    # a minute in steps of 5 s
  sudo diskproof watch sda --record --time 10m
  diskproof run --like latest /mnt/new-disk # the same load elsewhere
  sudo diskproof watch --postgres user=postgres # is the load PostgreSQL's?
  diskproof watch --postgres 'host=db1 user=monitor sslmode=verify-full'";

/// Show the live load of disks: rates, latency, share of seeks, busy threads
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct WatchFlags {
    /// Block devices, or directories for the disks below them [default: all disks]
    #[arg(value_name = "DEVICE")]
    pub devices: Vec<PathBuf>,
    /// Length of a step
    #[arg(short = 'i', long, value_name = "DURATION", default_value = "1s",
        value_parser = parse_interval)]
    pub interval: u64,
    /// End after this many steps
    #[arg(short = 'c', long, value_name = "N", value_parser = parse_from_one)]
    pub count: Option<u64>,
    /// End after this time
    #[arg(long, value_name = "DURATION", value_parser = parse_time)]
    pub time: Option<u64>,
    /// Also show the I/O statistics of this PostgreSQL server, and its share of the load
    #[arg(long, value_name = "CONNINFO")]
    pub postgres: Option<String>,
    /// Print lines even on a terminal
    #[arg(long)]
    pub plain: bool,
    /// Save the load to the history
    #[arg(long)]
    pub record: bool,
    /// Also save the load to a file; the format follows the extension (repeatable)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub outputs: Vec<PathBuf>,
    /// Save a page, like -o FILE.html (repeatable)
    #[arg(long, value_name = "FILE.html", value_parser = parse_page_name)]
    pub html: Vec<PathBuf>,
    /// Print the record of the load as JSON at the end, and no lines
    #[arg(long)]
    pub json: bool,
    /// No notes on stderr
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Colour the result
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: ColorWhen,
    /// A remark to store in the record
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
    /// Where the record is saved.
    #[command(flatten)]
    pub history: HistoryOptions,
}

impl WatchFlags {
    fn prints_json(&self) -> bool {
        self.json || self.outputs.iter().any(|path| is_stdout(path))
    }

    fn verbosity(&self) -> Verbosity {
        Verbosity::lines(self.quiet)
    }

    fn requested_view(&self) -> RequestedView {
        if self.prints_json() {
            RequestedView::Silent
        } else if self.plain {
            RequestedView::Lines
        } else {
            RequestedView::Screen
        }
    }

    /// True if the load is saved in the history.
    fn is_saved(&self) -> bool {
        self.record || self.history.label.is_some()
    }

    /// Why a watch ended before it was to end; `None` of a whole one. Without --count and --time
    /// the user ends it whenever that suits, but after a step.
    fn early_end(&self, end: &anyhow::Result<WatchEnd>, has_steps: bool) -> Option<String> {
        let has_end = self.count.is_some() || self.time.is_some();
        match end {
            Err(error) => Some(format!("the watch failed: {error:#}")),
            Ok(WatchEnd::DevicesLost) => Some(NO_DEVICE_LEFT.to_owned()),
            Ok(WatchEnd::Stopped) if has_end => Some("stopped before its last step".to_owned()),
            Ok(_) if !has_steps => Some("stopped before its first step ended".to_owned()),
            Ok(WatchEnd::Complete | WatchEnd::Stopped) => None,
        }
    }

    /// True if --count or --time allows no further step, after `steps_done` of them. The next one
    /// would end with the interval of the number `next_interval`, from 1.
    fn allows_no_further_step(&self, steps_done: u64, next_interval: u64) -> bool {
        if let Some(count) = self.count
            && steps_done >= count
        {
            return true;
        }
        match self.time {
            Some(ns) => next_interval > ns.div_ceil(self.interval).max(1),
            None => false,
        }
    }
}

fn parse_interval(text: &str) -> Result<u64, String> {
    match parse_duration(text).map_err(|error| error.to_string())? {
        ns @ INTERVAL_NS_MIN..=INTERVAL_NS_MAX => Ok(ns),
        ns => Err(format!(
            "{} is outside of 100 ms to 1 h",
            format_duration(ns)
        )),
    }
}

/// Watches until the end, then prints and saves the load where that is wanted. Everything that can
/// be refused comes first: no one should watch for an hour and then learn that a file cannot be
/// written.
pub fn run(watch: &WatchFlags) -> anyhow::Result<Exit> {
    if watch.record && watch.history.no_history {
        let text = "--record saves the load to the history, but --no-history prevents that. Use -o \
                    FILE.json";
        return Err(Failure::Usage(text.to_owned()).into());
    }
    if watch.is_saved() {
        refuse_foreign_history(&watch.history)?;
    }
    let named_devices = resolve_devices(&watch.devices, watch.verbosity())?;
    if let Some(connection_string) = &watch.postgres {
        server::register_files(connection_string)?;
    }
    let paths = crate::flags::output_files(&[&watch.outputs, &watch.html]);
    let outputs = open_outputs(&paths, watch.history.file(), Trial::Create)?;
    interrupt::listen()?;
    interrupt::end_cleanly();
    crate::inspection::end();
    let request = WatchRequest {
        named_devices,
        interval_ns: watch.interval,
        postgres: watch.postgres.as_deref(),
        history: watch.history.history.clone(),
    };
    let mut kernel = WatchedKernel::start(request, watch.verbosity())?;
    let history = Some(&watch.history).filter(|_| watch.is_saved());
    let mut journal = WatchJournal::start(&kernel, watch.note.as_deref(), history);
    // An error of a step or of the view is returned only after the load so far is saved.
    let followed = show_steps(watch, &mut kernel, &mut journal);
    let concluded = if watch.is_saved() || watch.prints_json() || !outputs.is_empty() {
        let ended_early = watch.early_end(&followed, kernel.has_steps());
        conclude(watch, kernel, journal, &outputs, ended_early.as_deref())
    } else {
        Ok(())
    };
    let end = followed?;
    concluded?;
    match interrupt::signal() {
        Some(signal) => Ok(Exit::Signal(signal)),
        None => Ok(end.exit()),
    }
}

/// How the steps of a watch ended without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchEnd {
    /// All steps were made that the flags allow.
    Complete,
    /// The user ended it, or the reader of its lines.
    Stopped,
    /// No named device is left.
    DevicesLost,
}

impl WatchEnd {
    /// The exit of the program. A watch whose devices have all vanished has failed.
    fn exit(self) -> Exit {
        match self {
            Self::Complete | Self::Stopped => Exit::Done,
            Self::DevicesLost => Exit::Failed,
        }
    }
}

/// Shows step after step, until the flags or the user end it, or all devices have vanished.
fn show_steps(
    watch: &WatchFlags,
    kernel: &mut WatchedKernel,
    journal: &mut WatchJournal,
) -> anyhow::Result<WatchEnd> {
    let mut view = StepView::start(watch.requested_view(), watch.color)?;
    let mut steps_done = 0;
    loop {
        let interval = kernel.next_interval();
        if watch.allows_no_further_step(steps_done, interval) {
            return Ok(WatchEnd::Complete);
        }
        let due = kernel.end_of_interval(interval);
        match view.wait_until(due, || kernel.empty_trace_buffers()) {
            ViewWait::Due => {}
            ViewWait::EndedByUser => return Ok(WatchEnd::Stopped),
        }
        let step = kernel.end_step()?;
        steps_done += 1;
        journal.keep_if_due(kernel);
        let is_last = watch.allows_no_further_step(steps_done, kernel.next_interval());
        match view.show_step(&step, kernel.facts(), kernel.named_devices())? {
            ViewOutlet::Open => {}
            ViewOutlet::Closed if !is_last => return Ok(WatchEnd::Stopped),
            ViewOutlet::Closed => return Ok(WatchEnd::Complete),
        }
        if kernel.has_lost_all_devices() {
            // The note belongs below the view, not into its screen.
            drop(view);
            watch.verbosity().note(NO_DEVICE_LEFT);
            return Ok(WatchEnd::DevicesLost);
        }
    }
}

/// Makes, saves and prints the record of the load. The order matters: a reader of stdout that goes
/// away or stops reading must not cost the record, so it is saved before it is printed, and only
/// then does Ctrl-C end the process at once.
fn conclude(
    watch: &WatchFlags,
    kernel: WatchedKernel,
    journal: WatchJournal,
    outputs: &[Output],
    ended_early: Option<&str>,
) -> anyhow::Result<()> {
    let record = Arc::new(journal.record(kernel.observed_load(), ended_early));
    // Ends the session with the server.
    drop(kernel);
    let saved = save_records(&record, outputs, watch.verbosity());
    let page = record_page(&record, Detail::Whole, &colored_style());
    let mut left = None;
    let notes = if watch.is_saved() {
        let notes = keep(&record, &page, &watch.history);
        left = journal.end(&record, in_history(&notes));
        notes
    } else {
        Vec::new()
    };
    // A reader of stdout that stopped reading holds the rest up.
    interrupt::end_at_once();
    let printed = to_stdout(|out| {
        if watch.prints_json() {
            diskproof_report::json::write_record(&record, out)
        } else {
            writeln!(out)?;
            write_colored_page(&page, watch.color, out)
        }
    });
    print_notes("", &notes, watch.verbosity());
    if let Some(text) = left {
        eprint_line(&format!("note: {text}"));
    }
    saved.and(ignore_closed_pipe(printed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        watch: WatchFlags,
    }

    /// The reason why a watch with these flags ended early.
    fn early_end(flags: &[&str], end: WatchEnd, has_steps: bool) -> Option<String> {
        let line = Line::try_parse_from([&["watch"], flags].concat()).unwrap();
        line.watch.early_end(&Ok(end), has_steps)
    }

    #[test]
    fn watch_is_whole_only_after_all_of_its_steps() {
        for flags in [&["-c", "3"][..], &["--time", "1m"]] {
            assert_eq!(early_end(flags, WatchEnd::Complete, true), None);
            assert!(early_end(flags, WatchEnd::Stopped, true).is_some());
        }
        assert_eq!(early_end(&[], WatchEnd::Stopped, true), None);
        assert!(early_end(&[], WatchEnd::Stopped, false).is_some());
        assert!(early_end(&[], WatchEnd::DevicesLost, true).is_some());
        assert_eq!(WatchEnd::DevicesLost.exit(), Exit::Failed);
        let line = Line::try_parse_from(["watch"]).unwrap();
        let failed = Err(anyhow::anyhow!("no counters"));
        assert!(line.watch.early_end(&failed, true).is_some());
    }
}
