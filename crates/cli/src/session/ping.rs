//! Carries out the single requests of a plan, and shows each when it has ended: a line on stdout,
//! percentiles so far on the terminal. Ends the ping when a request took too long, or when the
//! reader of the lines has gone.

use super::bench::Bench;
use super::running::{Running, Stepped};
use super::sink::{EarlyEnd, ResultsKeeper, Sink};
use crate::failure::Failure;
use crate::flags::MeasuringFlags;
use crate::progress_display::ProgressDisplay;
use crate::stdio::{Verbosity, eprint_line, style};
use crate::tool_lines::{RequestPrinter, SharedPrinter};
use diskproof_engine::RunError;
use diskproof_model::group::Group;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::{Measurement, OpKind, StopReason};
use diskproof_model::ping::SingleRequest;
use diskproof_model::plan::{Ping, Plan};
use diskproof_model::progress::{Control, Found, Phase, PingWatch, Progress, Watch};
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::{counted, format_duration, format_latency};
use diskproof_report::terminal::RequestLines;
use std::collections::BTreeMap;
use std::io;

/// Why a ping ended before its last request whose reader had gone.
const UNREAD: &str = "the reader of stdout ended before the last request";

/// The writer of a line for each request; `None` where there are no lines. A ping without pauses
/// has too many.
pub(super) fn request_lines(
    ping: &Ping,
    identities: &[TargetIdentity],
    flags: &MeasuringFlags,
) -> Option<RequestLines> {
    let is_rapid = ping.requests.interval_ns == 0 && ping.requests.idle_ns.is_empty();
    if flags.quiet || flags.prints_record() || is_rapid {
        return None;
    }
    let block_bytes = ping.workload.block_bytes;
    Some(RequestLines::new(
        block_bytes,
        identities,
        style(flags.color),
    ))
}

/// The requests of a ping while they are sent, in one step.
pub(super) struct PingRun<'p> {
    plan: &'p Plan,
    ping: &'p Ping,
    /// The writer of a line for each request, where there are lines.
    lines: Option<RequestLines>,
    /// The tool whose text is printed.
    tool: Option<SharedPrinter>,
    /// Prints in a thread of its own; `None` once everything is printed.
    printer: Option<RequestPrinter>,
}

impl<'p> PingRun<'p> {
    /// Starts the thread that prints the lines, of a tool or our own.
    pub(super) fn start(plan: &'p Plan, ping: &'p Ping, sink: &mut Sink) -> Result<Self, EarlyEnd> {
        let lines = sink.request_lines.take();
        let mut run = Self {
            plan,
            ping,
            lines,
            tool: None,
            printer: None,
        };
        if let Some(tool) = sink.progress.tool.take() {
            run.tool = Some(tool.printer);
            run.printer = Some(tool.lines);
        } else {
            let printer =
                RequestPrinter::start().map_err(|error| Failure::Run(RunError::Thread(error)))?;
            run.printer = Some(printer);
        }
        Ok(run)
    }
}

impl Running for PingRun<'_> {
    fn step(&mut self, bench: &mut Bench, sink: &mut Sink) -> Result<Stepped, EarlyEnd> {
        let Some(printer) = self.printer.take() else {
            return Ok(Stepped::Over);
        };
        let workload = &self.ping.workload;
        sink.progress.begin(Group::alone(workload), None);
        sink.begin_step(&workload.name);
        let heartbeat = sink.progress.heartbeat();
        let verbosity = sink.verbosity;
        let (display, keeper) = sink.display_and_keeper();
        let mut watch = PingProgress {
            plan: self.plan,
            display,
            keeper,
            lines: self.lines.take(),
            tool: self.tool.take(),
            printer,
            verbosity,
            so_far: BTreeMap::new(),
            latencies: LatencyHistogram::new(),
            failed: 0,
            has_begun: false,
            too_slow: None,
        };
        let requests = &self.ping.requests;
        let written = std::slice::from_ref(workload);
        let pinged = bench
            .session
            .ping(workload, requests, &mut bench.targets, &mut watch);
        bench.mark_written_by(written);
        watch.printer.finish(&heartbeat, verbosity);
        if let Some(text) = watch.too_slow {
            eprint_line(&text);
        }
        let measured = pinged?;
        let ended = bench.check_can_continue(&measured);
        let is_unread = measured.iter().any(Measurement::is_unread);
        sink.add(measured);
        ended?;
        // Without an end of its own, a ping is whole whenever it ends. The text of another tool
        // says nothing of its reader.
        let has_end = workload.stop.ops.is_some() || self.plan.time_ns_max().is_some();
        if is_unread && has_end && !self.plan.is_of_other_tool() {
            return Err(EarlyEnd::Reason(UNREAD.to_owned()));
        }
        Ok(Stepped::Over)
    }
}

/// The requests so far that count, of a kind on a target.
#[derive(Default)]
struct RequestsSoFar {
    count: u64,
    latency_sum_ns: f64,
}

/// Watches a ping.
struct PingProgress<'a> {
    plan: &'a Plan,
    display: &'a mut ProgressDisplay,
    keeper: ResultsKeeper<'a>,
    /// The writer of a line for each request, where there are lines.
    lines: Option<RequestLines>,
    /// The tool whose text is printed.
    tool: Option<SharedPrinter>,
    printer: RequestPrinter,
    verbosity: Verbosity,
    /// By target and kind of operation.
    so_far: BTreeMap<(usize, OpKind), RequestsSoFar>,
    /// The latencies on all targets.
    latencies: LatencyHistogram,
    failed: u64,
    /// True if a request has ended.
    has_begun: bool,
    /// The sentence about a request that took longer than the user allows.
    too_slow: Option<String>,
}

impl PingProgress<'_> {
    fn print(&self, write: impl FnOnce(&RequestLines, &mut dyn io::Write) -> io::Result<()>) {
        let Some(lines) = &self.lines else {
            return;
        };
        self.printer
            .line(crate::stdio::page_in_locale(|out| write(lines, out)));
    }

    /// At the end of the first request, erases what the layout shows and prints the scale of the
    /// bars.
    fn begin(&mut self) {
        if !self.has_begun {
            self.has_begun = true;
            self.display.finish();
            self.print(RequestLines::write_scale);
        }
    }

    /// Notes a request that took longer than the user allows.
    fn note_if_slow(&mut self, target: usize, request: &SingleRequest) {
        if let Some(ping) = self.plan.ping()
            && let Some(limit_ns) = ping.requests.abort_above_ns
            && request.counts()
            && request.latency_ns > limit_ns
            && self.too_slow.is_none()
        {
            let path = match self.plan.targets.get(target) {
                Some(path) => path.as_str(),
                None => "",
            };
            self.too_slow = Some(format!(
                "{path}: request {} took {}, which exceeds --abort-above {}; ping ends",
                request.number,
                format_latency(request.latency_ns),
                format_latency(limit_ns)
            ));
        }
    }

    /// `ping 12 requests, mean 131 µs, p50 –, p99 –, max 146 µs, 48 s left`.
    fn line_text(&self, progress: &Progress<'_>) -> String {
        let mut figures = vec![counted(self.latencies.count(), "request")];
        if self.latencies.count() > 0 {
            let mean_ns = self.latencies.mean_ns().round() as u64;
            figures.extend([
                format!("mean {}", format_latency(mean_ns)),
                format!("p50 {}", self.percentile_text(0.5)),
                format!("p99 {}", self.percentile_text(0.99)),
                format!("max {}", format_latency(self.latencies.max_ns())),
            ]);
        }
        if self.failed > 0 {
            figures.push(format!("{} failed", self.failed));
        }
        if let Some(time_ns) = self.plan.time_ns_max() {
            let left_ns = time_ns.saturating_sub(progress.elapsed_ns);
            figures.push(format!("{} left", format_duration(left_ns)));
        }
        figures.extend(self.display.silence_text(progress));
        format!("ping {}", figures.join(", "))
    }

    fn percentile_text(&self, quantile: f64) -> String {
        match self.latencies.percentile(quantile) {
            Some(latency_ns) => format_latency(latency_ns),
            None => "–".to_owned(),
        }
    }
}

impl Watch for PingProgress<'_> {
    fn tick(&mut self, progress: &Progress<'_>) -> Control {
        if progress.phase != Phase::Measure {
            return self.display.tick(progress);
        }
        if self.verbosity == Verbosity::Terminal {
            self.printer.reading(self.line_text(progress));
        }
        self.display.tick_silently(progress)
    }

    fn wants_results(&self, elapsed_ns: u64) -> bool {
        self.keeper.is_due(elapsed_ns)
    }

    fn results_so_far(&mut self, _: u64, measurements: &[Measurement]) {
        self.keeper.keep(measurements);
    }

    fn found(&mut self, place: &Found) {
        self.display.found(place);
    }
}

impl PingWatch for PingProgress<'_> {
    fn request(&mut self, target: usize, request: &SingleRequest) {
        self.begin();
        let key = (target, request.op);
        let mean_ns = self
            .so_far
            .get(&key)
            .map(|so_far| so_far.latency_sum_ns / so_far.count as f64);
        self.print(|lines, out| lines.write(target, request, mean_ns, out));
        if let Some(tool) = &self.tool {
            let text = tool.request(request);
            if !text.is_empty() {
                self.printer.line(text);
            }
        }
        if request.error.is_some() {
            self.failed += 1;
        }
        if request.counts() {
            let so_far = self.so_far.entry(key).or_default();
            so_far.count += 1;
            so_far.latency_sum_ns += request.latency_ns as f64;
            self.latencies.record(request.latency_ns);
        }
        self.note_if_slow(target, request);
    }

    fn ending(&self) -> Option<StopReason> {
        if self.too_slow.is_some() {
            Some(StopReason::TooSlow)
        } else if self.printer.is_closed() {
            Some(StopReason::Unread)
        } else {
            None
        }
    }
}
