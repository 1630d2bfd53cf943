//! `diskproof curve`: transfer rate and access time by position, short strokes, and a scan of every
//! block.

use crate::data_sheet::parse_data_sheet;
use crate::failure::{Exit, Failure};
use crate::flags::{MeasuringFlags, SCRATCH_BYTES_USEFUL_MIN, SECOND_NS};
use crate::resume::{Resumed, SCAN_BLOCK_BYTES};
use crate::session::{MeasuringJob, measure};
use crate::workload::{SpanBounds, parse_time, part_of};
use diskproof_analysis::surface::short_stroke_name;
use diskproof_device::scratch_bytes_max;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{
    EngineChoice, Plan, Questions, Scratch, Span, Stop, Task, Workload, Workloads,
};
use diskproof_model::surface::{
    AccessPlan, BurstPlan, Coverage, CurvePlan, DataSheet, POINT_NS_MAX, ScanPlan, Survey,
};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::{format_bytes, parse_size};
use std::path::PathBuf;

/// Enough to show each zone of a disk, and as many as a wide terminal has columns.
const POINTS: u32 = 200;
/// More than any chart can show.
const POINTS_MAX: u32 = 100_000;
/// Accesses of each other pattern, per thousand random ones. The mean of 150 half turns is known to
/// 5 %.
const PATTERN_READS_PERMILLE: u32 = 150;
/// Accesses of each other pattern, however many random ones the user asks for.
const PATTERN_READS: std::ops::RangeInclusive<u32> = 20..=150;
/// The mean of 1000 accesses of a rotating disk is known to 2 %.
const READS: u32 = 1000;
/// Accesses that a rotating disk makes in some hours.
const READS_MAX: u32 = 1_000_000;
/// A disk of 15 ms needs 25 s for all patterns.
const ACCESS_TIME_NS: u64 = 30 * SECOND_NS;
/// Fits into the cache of every current disk.
const BURST_BYTES: u64 = 512 << 10;
/// The longest that the burst takes.
const BURST_TIME_NS: u64 = 700_000_000;
/// Enough for some points on a slow disk.
const CURVE_NS_MIN: u64 = 10 * SECOND_NS;
/// Parts of the span that are measured for short strokes, in percent from its start.
const STROKES: [u32; 5] = [100, 75, 50, 25, 10];
/// About 350 random reads of a rotating disk: ± 3 %.
const STROKE_TIME_NS: u64 = 5 * SECOND_NS;
/// A short stroke ends early once its rate is known to ± 1 %.
const STROKE_PRECISION: f64 = 0.01;
/// The part of a short stroke's time that is not measured. Chosen, not measured.
const STROKE_WARMUP_NS: u64 = 200_000_000;
/// Size of the scratch file in a directory: larger than the cache of most drives, and written in
/// half a minute.
const SCRATCH_BYTES: u64 = 1 << 30;
/// Spans and scratch files begin and end at whole MiB.
const MIB: u64 = 1 << 20;
/// Block size of all random workloads.
const PAGE_BYTES: u64 = 8192;

const HELP: &str = "\
A block device is read raw, without its filesystem. Only --write together with
--destroy NAME writes to it. A regular file is read. In a directory, curve
creates a scratch file of --size (default 1GiB); positions are then offsets in
that file. Each point is a sample of about 0.2 s inside a sequential stream, so
the rate includes no seek. curve reads at most 2 % of a large disk; the result
states the exact share.
Sizes: 8k = 8 KiB, 8kB = 8000 bytes, 4GiB.

Exit codes: 0 done, 1 a threshold was missed, 2 usage, 3 refused for safety,
4 the run failed or the disk returned errors, 5 a threshold is undecided,
130 Ctrl-C.

Examples:
  sudo diskproof curve /dev/sdb                # 200 points, access times, burst
  sudo diskproof curve /dev/sdb --full -o full.json # read everything
  sudo diskproof curve /dev/sdb --span 0-50% --short-stroke
  sudo diskproof curve /dev/sdb --scan -o scan.json # every block; Ctrl-C, then:
  sudo diskproof curve /dev/sdb --scan --resume scan.json
  sudo diskproof curve /dev/sdb --spec rpm=7200,seek=11ms,rate=92MB/s
  sudo diskproof curve /dev/sdb --expect 'curve.min>=80MB/s'";

/// Measure transfer rate and access time by position; find slow and unreadable blocks
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct CurveFlags {
    /// Block device, regular file or directory
    #[arg(default_value = ".")]
    pub target: PathBuf,
    /// Points of the curve, evenly spaced over the span; 0 skips the curve
    #[arg(long, value_name = "N", default_value_t = POINTS,
        value_parser = clap::value_parser!(u32).range(0..=i64::from(POINTS_MAX)))]
    pub points: u32,
    /// Bytes to read at each point, at least 4 queues [default: about 0.2 s worth]
    #[arg(long, value_name = "BYTES", value_parser = parse_size, conflicts_with = "full")]
    pub sample_size: Option<u64>,
    /// Read the whole span, in one stream
    #[arg(long)]
    pub full: bool,
    /// Part of the target to survey, such as 0-50% or 100GB-200GB
    #[arg(long, value_name = "FROM-TO")]
    pub span: Option<SpanBounds>,
    /// Write instead of reading, which destroys the content; needs --destroy NAME for a device,
    /// --overwrite for a file
    #[arg(long, conflicts_with = "scan")]
    pub write: bool,
    /// Measure random reads in the first 100, 75, 50, 25 and 10 % of the span, to show the gain of
    /// a short stroke
    #[arg(long)]
    pub short_stroke: bool,
    /// Read every block, to find slow and unreadable ones
    #[arg(long)]
    pub scan: bool,
    /// Resume a scan at this byte, or where the scan of this record ended; measure nothing else
    #[arg(
        long,
        value_name = "OFFSET|FILE.json",
        requires = "scan",
        conflicts_with = "write"
    )]
    pub resume: Option<String>,
    /// Time limit of a run with --scan, at least 1s; then it prints how to resume the scan
    #[arg(long, value_name = "DURATION", value_parser = parse_time)]
    #[arg(requires = "scan", conflicts_with = "write")]
    pub time: Option<u64>,
    /// Data sheet figures to check, such as size=4TB,rpm=7200,seek=11ms,rate=92MB/s
    #[arg(long, value_name = "FIGURES", value_parser = parse_data_sheet)]
    pub spec: Option<DataSheet>,
    /// Skip the access times
    #[arg(long, conflicts_with = "reads")]
    pub no_access: bool,
    /// Number of random accesses
    #[arg(long, value_name = "N", default_value_t = READS,
        value_parser = clap::value_parser!(u32).range(10..=i64::from(READS_MAX)))]
    pub reads: u32,
    /// Flags of every measuring verb.
    #[command(flatten)]
    pub measuring: MeasuringFlags,
}

/// Surveys the target: its curve, access times and burst, short strokes or a scan.
pub fn run(curve: &CurveFlags) -> anyhow::Result<Exit> {
    let flags = &curve.measuring;
    let identity = flags.probe(&curve.target)?;
    let plan = curve_plan(curve, &identity)?;
    if identity.kind != TargetKind::BlockDevice && !flags.quiet {
        let surveyed = if identity.kind == TargetKind::Directory {
            "a scratch file in it"
        } else {
            "this file"
        };
        crate::stdio::eprint_line(&format!(
            "{}: positions are offsets in {surveyed}, which may lie anywhere on the disk; name the \
             block device to survey the disk itself",
            identity.path
        ));
    }
    measure(MeasuringJob::new(plan, vec![identity], flags))?.exit()
}

/// The plan of `curve` for this target. Fails where the flags leave nothing to measure.
pub fn curve_plan(curve: &CurveFlags, identity: &TargetIdentity) -> Result<Plan, Failure> {
    let measuring = &curve.measuring;
    let scratch_bytes = scratch_size(measuring, identity)?;
    let resumed = match &curve.resume {
        Some(text) => Some(Resumed::read(text, identity)?),
        None => None,
    };
    let target_bytes = scratch_bytes.unwrap_or(identity.size_bytes);
    let span = match (curve.span, resumed) {
        (Some(bounds), _) => {
            part_of(target_bytes, bounds, PAGE_BYTES, MIB, "1 MiB").map_err(Failure::Usage)?
        }
        (None, Some(resumed)) => resumed.span.unwrap_or_default(),
        (None, None) => Span::default(),
    };
    if let Some(resumed) = resumed {
        resumed.check_inside(span, target_bytes)?;
    }
    let survey = planned_survey(curve, identity, span, resumed);
    refuse_empty_survey(curve, &survey)?;
    let mut tasks = vec![Task::Survey(survey)];
    if curve.short_stroke && resumed.is_none() {
        let strokes: Vec<Workload> = STROKES
            .iter()
            .map(|percent| stroke(*percent, span, target_bytes, measuring))
            .collect();
        tasks.push(Task::Workloads(Workloads::as_planned(strokes)));
    }
    Ok(Plan {
        scratch: scratch_bytes.map(Scratch::of_size),
        time_limit_ns: curve.time,
        tasks,
        questions: Questions {
            data_sheet: curve.spec,
            ..Questions::default()
        },
        ..measuring.plan("curve", std::slice::from_ref(identity))
    })
}

/// Refuses flags that leave nothing to measure, or that a skipped curve makes ineffective.
fn refuse_empty_survey(curve: &CurveFlags, survey: &Survey) -> Result<(), Failure> {
    if curve.points == 0 && (curve.full || curve.sample_size.is_some()) {
        return Err(Failure::Usage(
            "--points 0 skips the curve, so --full and --sample-size have no effect; omit them"
                .to_owned(),
        ));
    }
    if survey.curve.is_none()
        && survey.access.is_none()
        && survey.scan.is_none()
        && !curve.short_stroke
    {
        return Err(Failure::Usage(
            "--points 0 --no-access leaves nothing to measure; add --scan or --short-stroke"
                .to_owned(),
        ));
    }
    Ok(())
}

fn planned_survey(
    curve: &CurveFlags,
    identity: &TargetIdentity,
    span: Span,
    resumed: Option<Resumed>,
) -> Survey {
    let mut survey = Survey {
        operation: if curve.write {
            OpKind::Write
        } else {
            OpKind::Read
        },
        span,
        engine: curve.measuring.engine.unwrap_or(EngineChoice::Auto),
        curve: None,
        burst: None,
        access: None,
        scan: None,
    };
    if curve.scan {
        survey.scan = Some(scan_plan(resumed));
    }
    // The earlier run did everything else.
    if resumed.is_some() {
        return survey;
    }
    if curve.points > 0 {
        survey.curve = Some(points_plan(curve));
        survey.burst = Some(BurstPlan {
            bytes: BURST_BYTES,
            time_ns: BURST_TIME_NS,
        });
    }
    if !curve.no_access {
        survey.access = Some(access_plan(curve.reads, identity));
    }
    survey
}

fn scan_plan(resumed: Option<Resumed>) -> ScanPlan {
    match resumed {
        Some(resumed) => ScanPlan {
            block_bytes: resumed.block_bytes,
            resume_bytes: resumed.offset_bytes,
        },
        None => ScanPlan {
            block_bytes: SCAN_BLOCK_BYTES,
            resume_bytes: 0,
        },
    }
}

fn points_plan(curve: &CurveFlags) -> CurvePlan {
    let coverage = if curve.full {
        Coverage::Full
    } else {
        Coverage::Sampled {
            sample_bytes: curve.sample_size,
        }
    };
    CurvePlan {
        points: curve.points,
        coverage,
        time_ns: curve_time_ns(curve),
    }
}

/// The longest that the samples take: on a slow disk they become smaller, then fewer. `None` where
/// the user asks for an amount.
fn curve_time_ns(curve: &CurveFlags) -> Option<u64> {
    if curve.full || curve.sample_size.is_some() {
        return None;
    }
    let (read_ns, write_ns) = POINT_NS_MAX;
    let point_ns = if curve.write { write_ns } else { read_ns };
    let samples_ns = u64::from(curve.points) * point_ns;
    Some(samples_ns.max(CURVE_NS_MIN))
}

fn access_plan(reads: u32, identity: &TargetIdentity) -> AccessPlan {
    let pattern_reads = reads * PATTERN_READS_PERMILLE / 1000;
    let reads_ns = ACCESS_TIME_NS / u64::from(READS) * u64::from(reads);
    AccessPlan {
        random_reads: reads,
        pattern_reads: pattern_reads.clamp(*PATTERN_READS.start(), *PATTERN_READS.end()),
        block_bytes: crate::plan_file::sector_bytes(std::slice::from_ref(identity)),
        time_ns: reads_ns.max(ACCESS_TIME_NS),
    }
}

/// Random reads in the first `percent` % of the span.
fn stroke(percent: u32, span: Span, target_bytes: u64, measuring: &MeasuringFlags) -> Workload {
    let name = short_stroke_name(f64::from(percent));
    Workload {
        span: stroke_span(f64::from(percent), span, target_bytes),
        stop: Stop {
            precision: Some(STROKE_PRECISION),
            time_ns: Some(STROKE_TIME_NS - STROKE_WARMUP_NS),
            ..Stop::default()
        },
        warmup_ns: STROKE_WARMUP_NS,
        engine: measuring.engine.unwrap_or(EngineChoice::Auto),
        ..Workload::named(&name)
    }
}

/// The first `percent` % of a span of the target, in whole pages.
pub(crate) fn stroke_span(percent: f64, span: Span, target_bytes: u64) -> Span {
    let span_bytes = match span.length_bytes {
        Some(bytes) => bytes,
        None => target_bytes.saturating_sub(span.start_bytes),
    };
    // In whole numbers: a product of doubles would lose the last page of a large disk.
    let thousandths = u128::from((percent * 1000.0).round() as u64);
    let part_bytes = u128::from(span_bytes) * thousandths / 100_000;
    let whole_pages = part_bytes as u64 / PAGE_BYTES;
    Span::new(span.start_bytes, Some(whole_pages * PAGE_BYTES))
}

/// Size of the scratch file in a directory; `None` for other targets.
fn scratch_size(
    measuring: &MeasuringFlags,
    identity: &TargetIdentity,
) -> Result<Option<u64>, Failure> {
    if !measuring.needs_scratch(identity, "use --span to survey a part of it")? {
        return Ok(None);
    }
    match measuring.size {
        Some(size) if size < 2 * MIB => Err(Failure::Usage(format!(
            "--size {}: too small to measure anything; use at least 2M",
            format_bytes(size)
        ))),
        Some(size) => Ok(Some(size / MIB * MIB)),
        None => {
            let room = scratch_bytes_max(identity);
            Ok(Some(SCRATCH_BYTES.min(room).max(SCRATCH_BYTES_USEFUL_MIN)))
        }
    }
}
