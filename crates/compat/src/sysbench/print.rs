//! The reports of sysbench's tests: their settings and names, and their figures.

use crate::c_format::format_general;
use crate::figures::{as_seconds, bytes_of_kind};
use crate::plan::RequestOrder;
use crate::printer::{PrimePrinter, ResultsSoFar, ToolPrinter, ToolResult, ToolText};
use crate::tool_totals::OpsSoFar;
use ModeKind::{Create, Mix, Read, Write};
use RequestOrder::{Random, Sequential};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::primes::{PrimeInterval, PrimeResult};

const MIB: f64 = 1_048_576.0;

/// A test of fileio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TestMode {
    /// The word of --file-test-mode.
    pub(super) name: &'static str,
    /// The name in the report.
    pub(super) text: &'static str,
    pub(super) order: RequestOrder,
    pub(super) kind: ModeKind,
}

/// The direction of a test's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModeKind {
    Create,
    Write,
    Read,
    Mix,
}

const fn mode(
    name: &'static str,
    text: &'static str,
    order: RequestOrder,
    kind: ModeKind,
) -> TestMode {
    TestMode {
        name,
        text,
        order,
        kind,
    }
}

/// The tests of --file-test-mode.
pub(super) const MODES: [TestMode; 6] = [
    mode("seqwr", "sequential write (creation)", Sequential, Create),
    mode("seqrewr", "sequential rewrite", Sequential, Write),
    mode("seqrd", "sequential read", Sequential, Read),
    mode("rndrd", "random read", Random, Read),
    mode("rndwr", "random write", Random, Write),
    mode("rndrw", "random r/w", Random, Mix),
];

/// The settings of both tests.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RunSettings {
    /// Lines about old names of options, which come first.
    pub(super) warnings: String,
    pub(super) threads: u64,
    pub(super) seed: Option<u64>,
    /// No event starts after this time.
    pub(super) time_ns: Option<u64>,
    /// Events of all threads together.
    pub(super) events: Option<u64>,
    /// Events per second that were requested.
    pub(super) rate: Option<u64>,
    /// Time between two intermediate figures.
    pub(super) interval_ns: Option<u64>,
    /// The percentile of latencies that is printed; 0: none.
    pub(super) percentile: u64,
    pub(super) prints_histogram: bool,
}

/// The settings as the report shows them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ShownSettings {
    pub(super) settings: RunSettings,
    pub(super) mode: TestMode,
    pub(super) flags: String,
    pub(super) files: u64,
    pub(super) file_bytes: u64,
    /// The block size of the command line.
    pub(super) block_bytes: u64,
    /// The block size of requests, which is not larger than a file.
    pub(super) request_bytes: u64,
    pub(super) ratio: f64,
    pub(super) syncs: String,
    pub(super) io_mode: &'static str,
    /// Requests in flight of each thread.
    pub(super) depth: u64,
}

/// Prints the settings first, and the report at the end.
#[derive(Debug)]
pub(super) struct FileioPrinter {
    pub(super) shown: ShownSettings,
    /// Operations that the lines of --report-interval have shown.
    pub(super) reported: OpsSoFar,
}

impl FileioPrinter {
    fn report(&self, measurement: &Measurement) -> String {
        let settings = &self.shown.settings;
        // Its timer stops when the last thread has ended, after its last event.
        let seconds = as_seconds(measurement.time_to_last_done_ns());
        let ops = OpsSoFar::up_to(std::slice::from_ref(measurement), 0);
        let read_mib = bytes_of_kind(measurement, OpKind::Read) as f64 / MIB;
        let written_mib = bytes_of_kind(measurement, OpKind::Write) as f64 / MIB;
        let threads = settings.threads as f64;
        let in_flight = threads * self.shown.depth as f64;
        // Figures of single threads are not known.
        let deviation = if settings.threads == 1 { 0.0 } else { f64::NAN };
        let events = ThreadSpread {
            mean: ops.requests() as f64 / threads,
            deviation,
        };
        let busy_seconds = ThreadSpread {
            mean: sum_ns(&ops.latency, ops.requests()) / 1e9 / in_flight,
            deviation,
        };
        [
            distribution(settings, &ops.latency),
            "\nFile operations:\n".to_owned(),
            rate_line("reads/s:", ops.reads as f64 / seconds),
            rate_line("writes/s:", ops.writes as f64 / seconds),
            rate_line("fsyncs/s:", ops.syncs as f64 / seconds),
            "\nThroughput:\n".to_owned(),
            rate_line("read, MiB/s:", read_mib / seconds),
            rate_line("written, MiB/s:", written_mib / seconds),
            general_statistics(seconds, ops.requests(), &ops.latency, settings.percentile),
            fairness(&events, &busy_seconds),
        ]
        .concat()
    }

    /// A line of --report-interval, up to this time.
    fn interval(&mut self, measurement: &Measurement, end_ns: u64) -> String {
        let now = OpsSoFar::up_to(std::slice::from_ref(measurement), end_ns);
        let before = &mut self.reported;
        let passed = as_seconds(end_ns.saturating_sub(before.at_ns).max(1));
        let reads = now.reads.saturating_sub(before.reads) as f64 / passed;
        let writes = now.writes.saturating_sub(before.writes) as f64 / passed;
        let syncs = now.syncs.saturating_sub(before.syncs) as f64 / passed;
        let mut latency = LatencyHistogram::new();
        latency.add_part(&before.latency.take_since(&now.latency));
        let request_bytes = self.shown.request_bytes as f64;
        let percentile = self.shown.settings.percentile;
        let line = format!(
            "[ {:.0}s ] reads: {:.2} MiB/s writes: {:.2} MiB/s fsyncs: {syncs:.2}/s latency \
             (ms,{percentile}%): {:.3}\n",
            as_seconds(end_ns),
            reads * request_bytes / MIB,
            writes * request_bytes / MIB,
            percentile_ms(&latency, percentile)
        );
        self.reported = now;
        line
    }
}

fn rate_line(label: &str, rate: f64) -> String {
    format!("    {label:<30}{rate:.2}\n")
}

/// The latency in milliseconds that so many percent of the events did not exceed.
fn percentile_ms(latency: &LatencyHistogram, percentile: u64) -> f64 {
    latency.value_at(percentile as f64 / 100.0) as f64 / 1e6
}

/// The sections "General statistics" and "Latency".
fn general_statistics(
    seconds: f64,
    events: u64,
    latency: &LatencyHistogram,
    percentile: u64,
) -> String {
    let percentile_line = match percentile {
        0 => format!("{:>26}{:>23}\n", "percentile stats:", "disabled"),
        _ => {
            let ms = percentile_ms(latency, percentile);
            format!("{percentile:>11}th percentile: {ms:27.2}\n")
        }
    };
    [
        "\nGeneral statistics:\n".to_owned(),
        total_line("total time:", &format!("{seconds:.4}s")),
        total_line("total number of events:", &events.to_string()),
        "\nLatency (ms):\n".to_owned(),
        latency_line("min:", latency.min_ns() as f64),
        latency_line("avg:", latency.mean_ns()),
        latency_line("max:", latency.max_ns() as f64),
        percentile_line,
        latency_line("sum:", sum_ns(latency, events)),
    ]
    .concat()
}

/// The sum of the latencies of so many events. With --rate there are also those of requests that
/// never started, which are no events.
fn sum_ns(latency: &LatencyHistogram, events: u64) -> f64 {
    latency.mean_ns() * events as f64
}

fn total_line(label: &str, total: &str) -> String {
    format!("    {label:<37}{total}\n")
}

fn latency_line(label: &str, ns: f64) -> String {
    format!("{label:>13} {:39.2}\n", ns / 1e6)
}

/// The variation of a figure between the threads.
struct ThreadSpread {
    mean: f64,
    /// The standard deviation; NaN where it is not known.
    deviation: f64,
}

impl ThreadSpread {
    /// The spread of a figure that each thread has.
    fn from_figures(figures: &[f64]) -> Self {
        let threads = figures.len().max(1) as f64;
        let mean = figures.iter().sum::<f64>() / threads;
        let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
        Self {
            mean,
            deviation: (squares / threads).sqrt(),
        }
    }

    fn text(&self) -> String {
        let Self { mean, deviation } = self;
        if deviation.is_nan() {
            format!("{mean:.4}/nan")
        } else {
            format!("{mean:.4}/{deviation:.2}")
        }
    }
}

/// The lines on how evenly threads shared the work.
fn fairness(events: &ThreadSpread, seconds: &ThreadSpread) -> String {
    format!(
        "\nThreads fairness:\n    events (avg/stddev):           {}\n    execution time \
         (avg/stddev):   {}\n\n",
        events.text(),
        seconds.text()
    )
}

/// The latency histogram, where it was requested, in the buckets of sysbench, each of which is
/// larger than the one before by the same factor.
fn distribution(settings: &RunSettings, latency: &LatencyHistogram) -> String {
    const BUCKETS: usize = 1024;
    /// Milliseconds of the first bucket.
    const FIRST_MS: f64 = 1e-3;
    /// Milliseconds of the last bucket.
    const LAST_MS: f64 = 1e5;
    /// Characters of the longest bar.
    const BAR: f64 = 40.0;
    if !settings.prints_histogram {
        return String::new();
    }
    let (least, most) = (FIRST_MS.ln(), LAST_MS.ln());
    let step = (most - least) / (BUCKETS - 1) as f64;
    let mut counts = vec![0u64; BUCKETS];
    for bucket in latency.buckets() {
        let ms = (bucket.low_ns as f64 + bucket.width_ns as f64 / 2.0) / 1e6;
        let index = ((ms.ln() - least) / step).round().max(0.0) as usize;
        counts[index.min(BUCKETS - 1)] += bucket.count;
    }
    let largest = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let mut text = "Latency histogram (values are in milliseconds)\n       value  ------------- \
                    distribution ------------- count\n"
        .to_owned();
    for (index, count) in counts.iter().enumerate() {
        if *count == 0 {
            continue;
        }
        let value = (least + index as f64 * step).exp();
        let bar = "*".repeat((*count as f64 / largest * BAR).round() as usize);
        text.push_str(&format!("{value:12.3} |{bar:<40} {count}\n"));
    }
    text.push_str(" \n");
    text
}

/// The first lines of a report, up to the settings of the test.
fn head(settings: &RunSettings) -> String {
    let seed = match settings.seed {
        None => "Initializing random number generator from current time".to_owned(),
        Some(seed) => format!("Initializing random number generator from seed ({seed})."),
    };
    let mut options = String::new();
    if let Some(rate) = settings.rate {
        options += &format!("Target transaction rate: {rate}/sec\n");
    }
    if let Some(interval_ns) = settings.interval_ns {
        let seconds = as_seconds(interval_ns);
        options += &format!("Report intermediate results every {seconds} second(s)\n");
    }
    format!(
        "{}sysbench 1.0.20 (emulated by diskproof {})\n\nRunning the test with following \
         options:\nNumber of threads: {}\n{options}{seed}\n\n\n",
        settings.warnings,
        env!("CARGO_PKG_VERSION"),
        settings.threads
    )
}

impl RunSettings {
    /// The number of intervals that end within so much of the run. As in sysbench, one that ends
    /// with the run has no line: its figures are in the report.
    fn intervals_within(&self, elapsed_ns: u64) -> u64 {
        let Some(interval_ns) = self.interval_ns else {
            return 0;
        };
        let last_ns = self.time_ns.unwrap_or(u64::MAX).saturating_sub(1);
        elapsed_ns.min(last_ns) / interval_ns
    }
}

impl ToolPrinter for FileioPrinter {
    fn begin(&mut self) -> String {
        let shown = &self.shown;
        let random = if shown.mode.order == RequestOrder::Random {
            format!(
                "Number of IO requests: {}\nRead/Write ratio for combined random IO test: {:.2}\n",
                shown.settings.events.unwrap_or(0),
                shown.ratio
            )
        } else {
            String::new()
        };
        format!(
            "{}Extra file open flags: {}\n{} files, {} each\n{} total file size\nBlock size \
             {}\n{random}{}Using {} I/O mode\nDoing {} test\nInitializing worker threads...\n\n\
             Threads started!\n\n",
            head(&shown.settings),
            shown.flags,
            shown.files,
            size(shown.file_bytes),
            size(shown.file_bytes * shown.files),
            size(shown.block_bytes),
            shown.syncs,
            shown.io_mode,
            shown.mode.text
        )
    }

    fn interval_ns(&self) -> Option<u64> {
        self.shown.settings.interval_ns
    }

    fn so_far(&mut self, results: &ResultsSoFar<'_>) -> String {
        let Some(first) = results.measurements.first() else {
            return String::new();
        };
        let settings = &self.shown.settings;
        let reported = settings.intervals_within(self.reported.at_ns);
        if settings.intervals_within(results.elapsed_ns) > reported {
            self.interval(first, results.elapsed_ns)
        } else {
            String::new()
        }
    }

    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        match result.measurements.first() {
            Some(measurement) if measurement.wall_ns > 0 => ToolText::out(self.report(measurement)),
            _ => ToolText::default(),
        }
    }
}

/// A number of bytes: `32MiB`, `1.5GiB`, `2.6667MiB`.
fn size(bytes: u64) -> String {
    /// Significant digits, as sysbench prints a size.
    const SIZE_DIGITS: usize = 5;
    let units = [
        (1u64 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!(
            "{}{name}",
            format_general(bytes as f64 / *unit as f64, SIZE_DIGITS)
        ),
        None => format!("{bytes}B"),
    }
}

/// Turns figures of processors into the report of the test cpu. Each step returns text for stdout.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CpuPrinter {
    pub(super) settings: RunSettings,
    pub(super) max_prime: u64,
}

impl PrimePrinter for CpuPrinter {
    fn begin(&self) -> String {
        format!(
            "{}Prime numbers limit: {}\n\nInitializing worker threads...\n\nThreads started!\n\n",
            head(&self.settings),
            self.max_prime
        )
    }

    fn interval(&self, interval: &PrimeInterval) -> String {
        // The figures of the last one are in the report.
        if let Some(time_ns) = self.settings.time_ns
            && interval.end_ns >= time_ns
        {
            return String::new();
        }
        let percentile = self.settings.percentile;
        format!(
            "[ {:.0}s ] thds: {} eps: {:.2} lat (ms,{percentile}%): {:.2}\n",
            as_seconds(interval.end_ns),
            self.settings.threads,
            interval.latency.count() as f64 / as_seconds(interval.end_ns - interval.start_ns),
            percentile_ms(&interval.latency, percentile)
        )
    }

    fn end(&self, result: &PrimeResult) -> String {
        let mut events = Vec::new();
        let mut busy_seconds = Vec::new();
        for thread in &result.threads {
            events.push(thread.events as f64);
            busy_seconds.push(as_seconds(thread.busy_ns));
        }
        let wall = as_seconds(result.wall_ns);
        format!(
            "{}CPU speed:\n    events per second: {:8.2}\n{}{}",
            distribution(&self.settings, &result.latency),
            result.latency.count() as f64 / wall,
            general_statistics(
                wall,
                result.latency.count(),
                &result.latency,
                self.settings.percentile
            ),
            fairness(
                &ThreadSpread::from_figures(&events),
                &ThreadSpread::from_figures(&busy_seconds)
            )
        )
    }
}
