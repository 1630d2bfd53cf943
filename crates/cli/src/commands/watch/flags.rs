//! The flags of `watch`.

use crate::flags::{ColorWhen, is_stdout, parse_page_name};
use crate::saved::HistoryOptions;
use crate::stderr::Verbosity;
use diskproof_model::units::{format_duration, parse_duration};
use std::path::PathBuf;

const SECOND: u64 = 1_000_000_000;
/// Reading the counters of a thousand processes takes some milliseconds.
const INTERVAL_NS_MIN: u64 = SECOND / 10;
const INTERVAL_NS_MAX: u64 = 3600 * SECOND;

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

--record saves the load: sizes, shares of reads and seeks, requests in flight, and
the rate in each step. 'diskproof run --like ID TARGET' repeats it on any target.

Exit codes: 0 done, 2 usage, 4 the devices vanished or a file was not saved,
130 Ctrl-C.

Examples:
  sudo diskproof watch                       all disks, until q
  sudo diskproof watch sda /data             a device, and the disks below /data
  diskproof watch -i 5s -c 12 | tee log      a minute in steps of 5 s
  sudo diskproof watch sda --record --time 10m
  diskproof run --like latest /mnt/new-disk  the same load elsewhere
  sudo diskproof watch --postgres user=postgres   is the load PostgreSQL's?
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
    #[arg(short = 'c', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// End after this time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
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
    pub(super) fn prints_json(&self) -> bool {
        self.json || self.outputs.iter().any(|path| is_stdout(path))
    }

    pub(super) fn verbosity(&self) -> Verbosity {
        Verbosity::lines(self.quiet)
    }

    /// Whether the history keeps the load.
    pub(super) fn keeps(&self) -> bool {
        self.record || self.history.label.is_some()
    }

    /// Whether nothing follows after so many steps, the next of which would end at this interval.
    pub(super) fn is_over(&self, steps: u64, next_end: u64) -> bool {
        let intervals = self.time.map(|ns| ns.div_ceil(self.interval).max(1));
        self.count.is_some_and(|count| steps >= count)
            || intervals.is_some_and(|most| next_end > most)
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
