//! The lines of hdparm's timings: each label before its timing, the figures after it.

use crate::figures::{bytes, per_second, seconds};
use crate::printer::{ToolPrinter, ToolResult, ToolText};
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::plan::Plan;
use std::collections::VecDeque;

const MIB: f64 = 1_048_576.0;

/// Prints line by line.
#[derive(Debug)]
pub(super) struct TimingPrinter {
    /// The device, where the output names it.
    path: Option<String>,
    labels: VecDeque<String>,
}

impl TimingPrinter {
    /// Nothing is printed yet.
    pub(super) fn new(
        plan: &Plan,
        path: Option<&str>,
        is_direct: bool,
        offset_gib: Option<u64>,
    ) -> Self {
        let labels = plan.workloads.iter().map(|workload| {
            let is_cache = workload.name == "cached-reads";
            match (is_cache, is_direct) {
                (true, true) => " Timing O_DIRECT cached reads:   ".to_owned(),
                (true, false) => " Timing cached reads:   ".to_owned(),
                (false, _) => {
                    let how = if is_direct { "O_DIRECT" } else { "buffered" };
                    let from = offset_gib.map(|gib| format!(" (offset {gib} GB)"));
                    format!(" Timing {how} disk reads{}: ", from.unwrap_or_default())
                }
            }
        });
        Self {
            path: path.map(str::to_owned),
            labels: labels.collect(),
        }
    }

    fn label(&mut self) -> String {
        self.labels.pop_front().unwrap_or_default()
    }
}

impl ToolPrinter for TimingPrinter {
    fn begin(&mut self) -> String {
        let label = self.label();
        match &self.path {
            Some(path) => format!("\n{path}:\n{label}"),
            None => label,
        }
    }

    fn measured(&mut self, measurement: &Measurement) -> String {
        format!("{}{}", figures(measurement), self.label())
    }

    fn end(&mut self, _result: &ToolResult<'_>) -> ToolText {
        ToolText::default()
    }
}

/// `420 MB in  3.01 seconds = 139.43 MB/sec`; a MB is 2²⁰ bytes.
fn figures(measurement: &Measurement) -> String {
    let mib = bytes(measurement, OpKind::Read) as f64 / MIB;
    let seconds = seconds(measurement.wall_ns);
    if mib == 0.0 {
        return format!("  0 MB in {seconds:5.2} seconds = undecided\n");
    }
    let (rate, unit) = match per_second(mib, measurement.wall_ns) {
        rate if rate > 1.0 => (rate, "MB"),
        rate => (rate * 1024.0, "kB"),
    };
    format!("{mib:3.0} MB in {seconds:5.2} seconds = {rate:6.2} {unit}/sec\n")
}
