//! What each tool makes of known command lines and of one fixed measurement, frozen: loads, notes,
//! help, errors and output, byte by byte, in a dump per tool in `tests/frozen`.
//! `UPDATE_FROZEN=1 cargo test -p diskproof-compat frozen` writes them anew; the commit that does
//! so explains each difference.

use crate::drop_in::Started;
use crate::fixture::{device, directory, file, measurement, surface, words};
use crate::load::{DropInLoad, NextPrinter, PlanContext, PrimeRequest};
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
                Some("/dev/sda" | "/dev/sdb") => device(10 << 30),
                Some(".") | Some("/data") => directory(),
                _ if is_new => directory(),
                _ => file(1 << 30),
            };
            let further = &load.head().further_targets;
            self.line(format_args!(
                "{:?} {further:?} writes={} fills={}",
                load.head().target,
                load.head().writes,
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
            plan.seed, plan.scratch_bytes, plan.origin
        ));
        let json = |part: serde_json::Value| part.to_string();
        for part in [
            serde_json::to_value(&plan.survey),
            serde_json::to_value(&plan.files),
            serde_json::to_value(&plan.ping),
        ] {
            let part = part.unwrap();
            if !part.is_null() {
                self.line(format_args!("part {}", json(part)));
            }
        }
        for workload in &plan.workloads {
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
        if plan.ping.is_some() {
            for request in requests(&plan.workloads[0]) {
                self.block(
                    "request",
                    &printer.request(&request, UNIX_NS + request.at_ns),
                );
            }
        }
        for (at, workload) in plan.workloads.iter().enumerate() {
            if printer.interval_ns().is_some() || printer.survives_usr1() {
                let half = measured(workload, at as u64, 2);
                let so_far = ResultsSoFar {
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
        if plan.files.is_some() {
            printer.files_measured(&files_measured());
        }
        let rates = [64.0, 512.0, 128.0].map(|rate| rate * 1_048_576.0);
        let surface = plan.survey.as_ref().map(|survey| surface(survey, &rates));
        for interrupted in [false, true] {
            let result = ToolResult {
                measurements: &measurements,
                surface: surface.as_ref(),
                interrupted,
                error: None,
                unix_ns: UNIX_NS,
                host_name: "vm",
            };
            let label = if interrupted { "interrupted" } else { "end" };
            self.both(label, &printer.end(&result));
            for file in printer.files(&result) {
                self.block(&format!("file {}", file.path.display()), &file.text);
            }
        }
    }
}

fn check(tool: &str, lines: &[&str]) {
    let mut dump = Dump::default();
    for line in lines {
        dump.command(tool, line);
    }
    let now = dump.text.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/frozen/{tool}.txt"));
    if std::env::var_os("UPDATE_FROZEN").is_some() {
        std::fs::write(&path, now).unwrap();
        return;
    }
    let frozen = std::fs::read_to_string(&path).unwrap_or_default();
    for (number, (old, new)) in frozen.lines().zip(now.lines()).enumerate() {
        assert_eq!(old, new, "{tool}.txt, line {}", number + 1);
    }
    assert_eq!(frozen.len(), now.len(), "{tool}.txt");
}

#[test]
fn bonnie_is_as_frozen() {
    check(
        "bonnie++",
        &[
            "--version",
            "-Q",
            "-f -n 0 -c 4",
            "-d /data -s 2g:16k:1000:3 -r 512 -n 0 -f -b -D -z 9 -u root -m db1 -q",
            "-r 300 -n 2",
            "-s 1800 -m host -q -n 16:100k:10:4 -Z random",
            "-f -n 0 -s 300 -x 3 -c 2 --csv 1.96",
            "-s 0 -n 1 -b --csv 1.03",
            "-s 0 -n 1:100",
            "-s 2:8k:20:1 -x 2",
            "-x 101",
            "--csv 1.5",
            "-p 3",
            "-s 0 -n 0",
            "-s x",
            "-s 1:2m",
            "-s 0 -n 0:5",
            "-s 0 -n 1:0:0:1:512",
            "-s 0 -x 2",
            "-c 0",
            "-r 0 -c 65",
            "-d /data/file",
            "extra",
        ],
    );
}

#[test]
fn dd_is_as_frozen() {
    check(
        "dd",
        &[
            "--help",
            "--version",
            "if=/dev/zero of=new bs=8k count=1000 conv=fsync",
            "if=/dev/zero of=new",
            "if=/dev/zero of=/dev/sdb bs=1M oflag=direct,nonblock status=none",
            "if=/dev/urandom of=/dev/sdb bs=1M seek=2 count=3 oflag=dsync conv=notrunc,noerror",
            "if=/dev/random of=/dev/sdb ibs=64k oflag=sync,nocache conv=nocreat seek=1",
            "if=/dev/zero of=/dev/sdb bs=1M count=20000",
            "if=/dev/zero of=/dev/sdb bs=1M conv=excl",
            "if=a of=/dev/null bs=1M iflag=direct skip=2",
            "if=a of=/dev/null bs=1M skip=2097152B count=5 iflag=nocache status=noxfer",
            "if=a of=/dev/null iseek=4096 iflag=skip_bytes,count_bytes count=65536 status=progress",
            "if=a of=/dev/null bs=1G skip=1",
            "if=a of=/dev/null count=0",
            "if=a of=/dev/null bs=0",
            "if=a of=/dev/null ibs=1 obs=2",
            "if=a of=/dev/null bs=1M skip=99999999999999",
            "if=a of=/dev/null status=loud",
            "if=a of=b",
            "if=/dev/zero",
            "if=/dev/zero of=a conv=swab",
            "if=/dev/zero of=a conv=fast",
            "if=a of=/dev/null oflag=append",
            "if=a of=/dev/null iflag=fast",
            "if=a of=/dev/null bs=0x",
            "if=a of=/dev/null cbs=3",
            "nonsense",
            "a=b",
        ],
    );
}

#[test]
fn hdparm_is_as_frozen() {
    check(
        "hdparm",
        &[
            "",
            "-h",
            "-V",
            "-tT /dev/sda",
            "-t --direct --offset 2 -f /dev/sda /dev/sdb",
            "-q -T --direct /dev/sda --prefer-ata12 --verbose",
            "-t --offset 0 /dev/sda",
            "-t --offset 50 /dev/sda",
            "-t --offset x /dev/sda",
            "-t .",
            "-t",
            "-W0 /dev/sda",
            "-I /dev/sda",
            "--fibmap /dev/sda",
            "/dev/sda",
            "--unknown",
        ],
    );
}

#[test]
fn ioping_is_as_frozen() {
    check(
        "ioping",
        &[
            "",
            "-h",
            "-v",
            "-c 5 -i 50ms .",
            "-R /dev/sda -s 8k -w 30",
            "-G . -D -s 8k",
            "-RL /dev/sda -P 200ms",
            "-C -W -c 10 -i 1ms . -I -k",
            "-count 3 -interval 200ms -size 8k -work-size 64m --quiet .",
            "-A -y -W -r 50 -e 9 -o 1m -S 2m -c5 .",
            "-l 1m -s 4k -B .",
            "-p 2 -q -c 5 .",
            "-J -p 3 -c 5 file",
            "-J -q -Y -WWW file",
            "-t 120us -T 140us -a 0 -I%H:%M file",
            "-WW /dev/sda",
            "-WWW -c 3 -w 1m /dev/sda",
            "-s 2g .",
            "-s 8m -S 1m .",
            "-o 20g /dev/sda",
            "-c 5",
            "a b",
            "-s 4x .",
            "-i 1/0s .",
            "-c 99999999999999999999 .",
            "-c",
            "-Z .",
            "-N .",
            "-H .",
            "-b 5 .",
        ],
    );
}

#[test]
fn iops_is_as_frozen() {
    check(
        "iops",
        &[
            "",
            "-h",
            "--version",
            "--num_threads 4 /dev/sda",
            "-n 2 -t 1 /dev/sda --override-sector-size 4096",
            "-m -b 8192 -p sequential file",
            "-n 1024 file",
            "--override-sector-size 1073741824 file",
            "-n 0 /dev/sda",
            "-t x /dev/sda",
            "-p zigzag /dev/sda",
            "--override-media-size 5 /dev/sda",
            "-x",
            "a b",
            ".",
        ],
    );
}

#[test]
fn iozone_is_as_frozen() {
    check(
        "iozone",
        &[
            "-h",
            "-v",
            "--version",
            "-Ra -n 64 -g 128k -q 16k -i 0 -i 1",
            "-s 4m -r 64k -I -e -j 3 -f /data/x -m -c -+u",
            "-R -s 128 -s 64 -r 64 -r 128 -i 0 -i 2 -+n -o -O",
            "-s 1m -r 1m -N -+D -i 2 -i 4 -i 5",
            "-a -n 32m -g 32m -q 128k -i 3 -+r",
            "-az -n 32m -g 32m -q 8k -i 1",
            "-f file -s 3 -r 2",
            "-f /dev/sda/x",
            "-t 4",
            "-i 6",
            "-i x",
            "-g 1g",
            "-s 4 -r 8",
            "-+w 50",
            "-+? 50",
            "-V 5",
            "-r none",
            "-j 0",
            "-s",
            "more",
        ],
    );
}

#[test]
fn pg_test_fsync_is_as_frozen() {
    check(
        "pg_test_fsync",
        &[
            "--help",
            "-?",
            "-V",
            "--version",
            "",
            "-s 1 -f /data/out",
            "--secs-per-test=2 --filename x",
            "-s 0",
            "-s x",
            "--secs-per-test",
            "-x",
            "x",
        ],
    );
}

#[test]
fn pgiosim_is_as_frozen() {
    check(
        "pgiosim",
        &[
            "-h",
            "--version",
            "-b 10G -t 4 -c a b",
            "-s -y -w 25 -o 16k -b 1000 -a 0.5 a",
            "-b 15000 -v -w 0 -t 0 a",
            "-b 1 .",
            "-b 10",
            "a",
            "-b 1x a",
            "-b 7k a",
            "-w 101 -b 1 a",
            "-t x -b 1 a",
            "-a never -b 1 a",
            "-o x -b 1 a",
            "-z a",
        ],
    );
}

#[test]
fn sysbench_is_as_frozen() {
    check(
        "sysbench",
        &[
            "",
            "--help",
            "--version",
            "fileio help",
            "fileio prepare",
            "cpu cleanup",
            "--test=fileio --num-threads=1 --file-num=4 --file-total-size=4G --file-block-size=8K \
             --file-test-mode=rndrd --file-fsync-freq=0 --file-fsync-end=no run",
            "fileio --threads=4 --file-total-size=64M --file-test-mode=rndrw --time=20 \
             --file-extra-flags=direct --report-interval=5 --rand-type=pareto --histogram run",
            "fileio --file-num=1 --file-total-size=16384 --file-test-mode=rndwr \
             --file-fsync-all=on --file-fsync-mode=fdatasync --events=100 --time=0 run",
            "fileio --file-total-size=64M --file-test-mode=seqwr --file-extra-flags=sync,direct \
             --rand-seed=9 --percentile=0 run",
            "fileio --file-test-mode=seqrewr --file-io-mode=async --file-async-backlog=16 \
             --rate=100 --file-fsync-freq=0 run",
            "fileio --file-test-mode=rndrw --file-io-mode=mmap --file-rw-ratio=3 --percentile=99 \
             --max-requests=7 --max-time=3 --file-extra-flags=dsync run",
            "cpu --threads=2 --time=2 --report-interval=1 --histogram --rand-seed=4 run",
            "--test=cpu --num-threads=2 --max-time=3 --max-requests=7 --cpu-max-prime=20k run",
            "memory run",
            "fileio",
            "fileio run",
            "fileio --file-test-mode=x run",
            "fileio --file-test-mode=rndrd --time=0 run",
            "fileio --validate=on --file-test-mode=rndrd run",
            "fileio --file-fsync-end=perhaps --file-test-mode=rndwr run",
            "fileio --file-test-mode=rndrd --threads=0 run",
            "fileio --file-test-mode=rndrd --file-io-mode=x run",
            "fileio --file-test-mode=rndrd --file-fsync-mode=x run",
            "fileio --file-test-mode=rndrd --file-extra-flags=x run",
            "fileio --file-test-mode=rndrd --file-rw-ratio=x run",
            "fileio --file-test-mode=rndrd --file-total-size=1M --file-block-size=1M run",
            "cpu",
            "cpu prepare",
            "cpu start",
            "cpu --rate=5 run",
            "cpu --time=0 run",
            "cpu --file-num=5 run",
            "--threads",
            "-x",
        ],
    );
}

#[test]
fn zcav_is_as_frozen() {
    check(
        "zcav",
        &[
            "--version",
            "-f/dev/sda",
            "-b 256:1 -r 1024:4096 -s 2 -f /dev/sda -u root",
            "-w -r 2048 /dev/sda",
            "-c 3 -l out.log /dev/sda",
            "-b 1 -r 0:200000 /dev/sda",
            "-b 999999 /dev/sda",
            "-c 101 /dev/sda",
            "-s 50 /dev/sda",
            "-b 0 /dev/sda",
            "-b x /dev/sda",
            "-r x /dev/sda",
            "-",
            "",
            "-c 2 -l a.log /dev/sda -f /dev/sdb",
            "/dev/sda -l a.log",
            ".",
            "-x",
        ],
    );
}
