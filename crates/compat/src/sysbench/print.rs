//! The report of sysbench.

use super::modes::{EMULATES, TestMode};
use crate::number::general;
use crate::printer::{ToolPrinter, ToolResult, ToolText};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::{Measurement, OpKind};

const MIB: f64 = 1_048_576.0;

/// The settings as the report shows them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ShownSettings {
    pub(super) mode: TestMode,
    pub(super) threads: u64,
    pub(super) seed: Option<u64>,
    pub(super) flags: String,
    pub(super) files: u64,
    pub(super) file_bytes: u64,
    pub(super) total_bytes: u64,
    pub(super) block_bytes: u64,
    pub(super) events: u64,
    pub(super) ratio: f64,
    pub(super) syncs: String,
    pub(super) io_mode: &'static str,
    pub(super) percentile: u64,
}

/// Prints the settings first, and the report at the end.
#[derive(Debug)]
pub(super) struct FileioPrinter {
    shown: ShownSettings,
}

impl FileioPrinter {
    pub(super) fn new(shown: ShownSettings) -> Self {
        Self { shown }
    }

    fn report(&self, measurement: &Measurement) -> String {
        let seconds = measurement.wall_ns as f64 / 1e9;
        let op = |kind| measurement.ops.get(&kind);
        let rate = |kind| op(kind).map_or(0.0, |op| op.count as f64 / seconds);
        let mib = |kind| op(kind).map_or(0.0, |op| op.bytes as f64 / MIB / seconds);
        // Where every write is synced, the sync has an operation of its own beside the write.
        let mut latency = LatencyHistogram::new();
        let mut events = 0;
        for one in [OpKind::Read, OpKind::Write].into_iter().filter_map(op) {
            latency.merge(&one.latency);
            events += one.count;
        }
        let sum_ns = latency.sum_ns() as f64;
        let left =
            |label: &str, width: usize, value: String| format!("    {label:<width$}{value}\n");
        let rates = |label: &str, value: f64| left(label, 30, format!("{value:.2}"));
        let totals = |label: &str, value: String| left(label, 37, value);
        let times = |label: &str, ns: f64| format!("{label:>13} {:39.2}\n", ns / 1e6);
        let mut text = [
            "\nFile operations:\n".to_owned(),
            rates("reads/s:", rate(OpKind::Read)),
            rates("writes/s:", rate(OpKind::Write)),
            rates("fsyncs/s:", rate(OpKind::Sync)),
            "\nThroughput:\n".to_owned(),
            rates("read, MiB/s:", mib(OpKind::Read)),
            rates("written, MiB/s:", mib(OpKind::Write)),
            "\nGeneral statistics:\n".to_owned(),
            totals("total time:", format!("{seconds:.4}s")),
            totals("total number of events:", events.to_string()),
            "\nLatency (ms):\n".to_owned(),
            times("min:", latency.min_ns() as f64),
            times("avg:", latency.mean_ns()),
            times("max:", latency.max_ns() as f64),
        ]
        .concat();
        let percentile = self.shown.percentile;
        if percentile > 0 {
            let value = latency.value_at(percentile as f64 / 100.0) as f64;
            text.push_str(&format!(
                "{:>11}th percentile: {:27.2}\n",
                percentile,
                value / 1e6
            ));
        }
        let threads = self.shown.threads as f64;
        let deviation = if self.shown.threads == 1 {
            "0.00"
        } else {
            "nan"
        };
        text.push_str(&format!(
            "         sum: {:39.2}\n\nThreads fairness:\n    events (avg/stddev):           \
             {:.4}/{deviation}\n    execution time (avg/stddev):   {:.4}/{deviation}\n\n",
            sum_ns / 1e6,
            events as f64 / threads,
            sum_ns / 1e9 / threads
        ));
        text
    }
}

impl ToolPrinter for FileioPrinter {
    fn begin(&mut self) -> String {
        let shown = &self.shown;
        let seed = match shown.seed {
            None => "Initializing random number generator from current time".to_owned(),
            Some(seed) => format!("Initializing random number generator from seed ({seed})."),
        };
        let random = match shown.mode.is_random {
            true => format!(
                "Number of IO requests: {}\nRead/Write ratio for combined random IO test: {:.2}\n",
                shown.events, shown.ratio
            ),
            false => String::new(),
        };
        format!(
            "{EMULATES} (emulated by diskproof {})\n\nRunning the test with following \
             options:\nNumber of threads: {}\n{seed}\n\n\nExtra file open flags: {}\n{} files, {} \
             each\n{} total file size\nBlock size {}\n{random}{}Using {} I/O mode\nDoing {} \
             test\nInitializing worker threads...\n\nThreads started!\n\n",
            env!("CARGO_PKG_VERSION"),
            shown.threads,
            shown.flags,
            shown.files,
            size(shown.file_bytes),
            size(shown.total_bytes),
            size(shown.block_bytes),
            shown.syncs,
            shown.io_mode,
            shown.mode.text
        )
    }

    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        let measured = result.measurements.first();
        let measured = measured.filter(|measurement| measurement.wall_ns > 0);
        ToolText {
            stdout: measured.map_or(String::new(), |measurement| self.report(measurement)),
            stderr: String::new(),
        }
    }
}

/// `32MiB`, `1.5GiB`.
fn size(bytes: u64) -> String {
    let units = [
        (1u64 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ];
    let fitting = units.iter().find(|(unit, _)| bytes >= *unit);
    fitting.map_or(format!("{bytes}B"), |(unit, name)| {
        format!("{}{name}", general(bytes as f64 / *unit as f64))
    })
}
