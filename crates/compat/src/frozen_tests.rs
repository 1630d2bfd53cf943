//! What each tool makes of known command lines and of one fixed measurement, frozen: loads, notes,
//! help, errors and output, byte by byte, in a dump per tool in `tests/frozen`.
//! `UPDATE_FROZEN=1 cargo test -p diskproof-compat frozen` writes them anew; the commit that does
//! so explains each difference.

use crate::drop_in::Started;
use crate::fixture::{device, directory, file, measurement, result, surface, words};
use crate::load::{DropInLoad, LoadTarget, NextPrinter, PlanContext, PrimeRequest};
use crate::printer::{ResultsSoFar, ToolPrinter, ToolResult, ToolText};
use diskproof_model::files::{
    FileOperation, FileOrder, FileStep, FileStepMeasurement, FilesMeasurement,
};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::{CpuTime, Measurement, OpKind, OpMeasurement, StopReason};
use diskproof_model::ping::{IgnoredBecause, SingleRequest};
use diskproof_model::plan::{Plan, Workload};
use diskproof_model::primes::{PrimeInterval, PrimeResult, PrimeThread};
use diskproof_model::series::Cell;
use std::fmt::Write as _;
use std::path::Path;

const SECOND: u64 = 1_000_000_000;
const UNIX_NS: u64 = 1_700_000_000_500_000_000;

/// The settings that differ from those of every workload, as JSON.
fn settings(workload: &Workload) -> String {
    let value = |workload: &Workload| serde_json::to_value(workload).unwrap();
    let usual = value(&Workload::named(""));
    let serde_json::Value::Object(mut fields) = value(workload) else {
        panic!("no object");
    };
    fields.retain(|key, field| usual[key.as_str()] != *field);
    serde_json::to_string(&fields).unwrap()
}

fn latencies(count: u64) -> LatencyHistogram {
    let mut latency = LatencyHistogram::new();
    latency.record_many(100_000, count);
    latency.record_many(2_500_000, count / 10);
    latency.record(700_000_000);
    latency
}

/// An operation with a slow request in its fourth second.
fn operation(count: u64, block_bytes: u64) -> OpMeasurement {
    let mut op = OpMeasurement {
        count,
        bytes: count * block_bytes,
        latency: latencies(count),
        ..OpMeasurement::default()
    };
    for second in 0..6 {
        let cell = Cell {
            ops: count / 6,
            latency_max_ns: if second == 3 { 700_000_000 } else { 90_000 },
            ..Cell::default()
        };
        op.series.add(second * SECOND, &cell, 64);
    }
    op
}

/// Counts that depend on the place of the workload only.
fn measured(workload: &Workload, at: u64, share: u64) -> Measurement {
    let wall_ns = (1500 + 250 * at) * SECOND / 100 / share;
    let mut one = measurement(workload, OpKind::Read, 0, wall_ns);
    let (count, bytes) = ((12_345 + 678 * at) / share, u64::from(workload.block_bytes));
    one.ops.clear();
    if workload.streams.permille(OpKind::Read) > 0 {
        one.ops.insert(OpKind::Read, operation(count, bytes));
    }
    if workload.streams.permille(OpKind::Read) < 1000 {
        one.ops.insert(OpKind::Write, operation(count / 2, bytes));
        one.ops.insert(OpKind::Sync, operation(count / 4, 0));
        one.ops.insert(OpKind::Commit, operation(count / 2, bytes));
    }
    one.cpu = CpuTime {
        user_ns: wall_ns / 10,
        system_ns: wall_ns / 20,
    };
    one
}

fn files_measured() -> FilesMeasurement {
    let mut files = FilesMeasurement::default();
    let operations = [
        FileOperation::Create,
        FileOperation::Stat,
        FileOperation::Read,
        FileOperation::Delete,
    ];
    for (at, order) in [FileOrder::Sequential, FileOrder::Random]
        .into_iter()
        .enumerate()
    {
        for (index, operation) in operations.into_iter().enumerate() {
            let number = (1 + 4 * at + index) as u64;
            files.steps.push(FileStepMeasurement {
                step: FileStep { operation, order },
                wall_ns: number * SECOND / 7,
                cpu: CpuTime {
                    user_ns: number * SECOND / 50,
                    ..CpuTime::default()
                },
                op: self::operation(16_384 * number, 0),
                sync: Default::default(),
                rounds: Vec::new(),
                disk: None,
                stopped: StopReason::Time,
            });
        }
    }
    files
}

fn requests(workload: &Workload) -> Vec<SingleRequest> {
    let request = |(at, latency_ns): (usize, &u64)| SingleRequest {
        number: at as u64 + 1,
        at_ns: at as u64 * 50_000_000,
        op: match (workload.streams.permille(OpKind::Read), at % 2) {
            (0, _) | (500, 1) => OpKind::Commit,
            _ => OpKind::Read,
        },
        offset_bytes: 4096 * at as u64,
        latency_ns: *latency_ns,
        idle_ns: None,
        error: (at == 9).then(|| "EIO".to_owned()),
        ignored: (at == 0).then_some(IgnoredBecause::Warmup),
    };
    let latencies = [
        96_300, 119_100, 145_900, 131_300, 127_000, 140_000, 133_333, 40_000, 999_000, 100_000,
    ];
    latencies.iter().enumerate().map(request).collect()
}

/// The text of a dump.
#[derive(Default)]
struct Dump {
    text: String,
}

impl Dump {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.text, "{line}");
    }

    fn block(&mut self, label: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        self.line(format_args!("[{label}]"));
        self.text.push_str(text);
        if !text.ends_with('\n') {
            self.line(format_args!("<no newline>"));
        }
    }

    fn both(&mut self, label: &str, text: &ToolText) {
        self.block(&format!("{label} stdout"), &text.stdout);
        self.block(&format!("{label} stderr"), &text.stderr);
    }

    fn command(&mut self, tool: &str, line: &str) {
        self.line(format_args!("\n$ {tool} {line}"));
        let drop_in = crate::drop_in_named(tool).unwrap();
        match (drop_in.start)(&words(line)) {
            Err(error) => {
                let kind = format!("{error:?}");
                let kind = kind.split('(').next().unwrap_or_default().to_owned();
                self.block(&kind, &error.text());
            }
            Ok(Started::Text(text)) => self.both("text", &text),
            Ok(Started::Load(load)) => self.loads(load, line),
            Ok(Started::Primes(request)) => self.primes(&request),
            Ok(Started::Jobs(_)) => panic!("{line}: jobs"),
        }
    }

    fn primes(&mut self, request: &PrimeRequest) {
        self.line(format_args!("{:?} {:?}", request.load, request.notes));
        let printer = &request.printer;
        self.block("begin", &printer.begin());
        let interval = PrimeInterval {
            start_ns: 0,
            end_ns: 2 * SECOND,
            latency: latencies(2850),
        };
        self.block("interval", &printer.interval(&interval));
        let thread = |events, busy_ns| PrimeThread { events, busy_ns };
        let result = PrimeResult {
            wall_ns: 3 * SECOND,
            threads: vec![thread(2000, 900_000_000), thread(4000, 1_100_000_000)],
            latency: latencies(6000),
        };
        self.block("end", &printer.end(&result));
    }

    /// A load and those that follow it.
    fn loads(&mut self, mut load: Box<dyn DropInLoad>, line: &str) {
        let mut kept: Option<Box<dyn ToolPrinter>> = None;
        loop {
            let (path, is_new) = (load.head().target.path().clone(), line.contains("of=new"));
            let target = match path.to_str() {
                _ if matches!(load.head().target, LoadTarget::Nameless(_)) => {
                    if path.starts_with("/dev/sda") {
                        device(10 << 30)
                    } else {
                        directory()
                    }
                }
                Some("/dev/sda" | "/dev/sdb") => device(10 << 30),
                Some(".") | Some("/data") => directory(),
                _ if is_new => directory(),
                _ => file(1 << 30),
            };
            let further = &load.head().further_targets;
            self.line(format_args!(
                "{:?} {further:?} writes={} fills={}",
                load.head().target,
                load.head().writes_target,
                load.head().fills_scratch_file
            ));
            for note in &load.head().notes {
                self.line(format_args!("note: {note}"));
            }
            let context = PlanContext {
                target: &target,
                seed: 7,
                argv: &[],
            };
            let plan = match load.plan(&context) {
                Ok(plan) => plan,
                Err(error) => return self.block("no plan", &error.text()),
            };
            self.plan(&plan);
            let mut printer = kept.take().unwrap_or_else(|| load.printer(&plan, &target));
            self.run(printer.as_mut(), &plan);
            let Some(next) = load.next() else { break };
            self.line(format_args!("next: {:?}", next.printer));
            if next.printer == NextPrinter::SamePrinter {
                kept = Some(printer);
            }
            load = next.load;
        }
    }

    fn plan(&mut self, plan: &Plan) {
        self.line(format_args!(
            "seed={} scratch={:?} origin={:?}",
            plan.seed,
            plan.scratch_bytes(),
            plan.origin
        ));
        let json = |part: serde_json::Value| part.to_string();
        for part in [
            serde_json::to_value(plan.survey()),
            serde_json::to_value(plan.files()),
            serde_json::to_value(plan.ping().map(|ping| &ping.requests)),
        ] {
            let part = part.unwrap();
            if !part.is_null() {
                self.line(format_args!("part {}", json(part)));
            }
        }
        for workload in plan.workloads() {
            self.line(format_args!("{}", settings(workload)));
        }
    }

    fn run(&mut self, printer: &mut dyn ToolPrinter, plan: &Plan) {
        self.line(format_args!(
            "interval={:?} survives_usr1={} prints_failed={}",
            printer.interval_ns(),
            printer.survives_usr1(),
            printer.prints_failed()
        ));
        self.block("begin", &printer.begin());
        let mut measurements = Vec::new();
        if plan.ping().is_some() {
            for request in requests(&plan.workloads()[0]) {
                self.block(
                    "request",
                    &printer.request(&request, UNIX_NS + request.at_ns),
                );
            }
        }
        for (at, workload) in plan.workloads().iter().enumerate() {
            if printer.interval_ns().is_some() || printer.survives_usr1() {
                let half = measured(workload, at as u64, 2);
                let so_far = ResultsSoFar {
                    disks: &[],
                    elapsed_ns: half.wall_ns,
                    measurements: &[half],
                    unix_ns: UNIX_NS,
                };
                self.block("so far", &printer.so_far(&so_far));
                self.both("status", &printer.status(&so_far));
            }
            let one = measured(workload, at as u64, 1);
            self.block("measured", &printer.measured(&one));
            if printer.is_complete() {
                self.line(format_args!("complete"));
            }
            measurements.push(one);
        }
        if plan.files().is_some() {
            printer.files_measured(&files_measured());
        }
        let rates = [64.0, 512.0, 128.0].map(|rate| rate * 1_048_576.0);
        let surface = plan.survey().map(|survey| surface(survey, &rates));
        for interrupted in [false, true] {
            let result = ToolResult {
                surface: surface.as_ref(),
                interrupted,
                unix_ns: UNIX_NS,
                ..result(&measurements)
            };
            let label = if interrupted { "interrupted" } else { "end" };
            self.both(label, &printer.end(&result));
            for file in printer.files(&result) {
                self.block(&format!("file {}", file.path.display()), &file.text);
            }
        }
    }
}

/// Where the output differs from the dump. The command lines are those of the dump: a new one is a
/// line `$ TOOL ARGUMENTS` after an empty one.
fn difference(tool: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/frozen/{tool}.txt"));
    let frozen = std::fs::read_to_string(&path).unwrap();
    let mut dump = Dump::default();
    let start = format!("\n$ {tool} ");
    for after in frozen.split(&start).skip(1) {
        dump.command(tool, after.lines().next().unwrap_or_default());
    }
    let now = dump.text.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    assert!(!now.is_empty(), "{tool}.txt has no command");
    if std::env::var_os("UPDATE_FROZEN").is_some() {
        std::fs::write(&path, now).unwrap();
        return None;
    }
    let mut lines = frozen.lines().zip(now.lines()).zip(1..);
    let differs = lines.find(|((old, new), _)| old != new);
    let line = differs.map(|((old, new), number)| format!("line {number}: {old:?}, now {new:?}"));
    let length = || format!("{} bytes, now {}", frozen.len(), now.len());
    let what = line.or_else(|| (frozen != now).then(length))?;
    Some(format!("{tool}.txt, {what}"))
}

/// fio has jobs instead of loads, which its own tests print.
#[test]
fn every_tool_is_as_frozen() {
    let tools = crate::drop_ins().iter().map(|tool| tool.name);
    let differences: Vec<String> = tools
        .filter(|name| *name != "fio")
        .filter_map(difference)
        .collect();
    assert!(differences.is_empty(), "{differences:#?}");
}
