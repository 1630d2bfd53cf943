//! Targets, measurements and texts for the tests of all tools.

use crate::drop_in::{DropIn, Started};
use crate::load::{DropInLoad, PlanContext};
use crate::printer::ToolResult;
use diskproof_model::measurement::{
    ByteCount, CacheUse, CpuTime, DeviceUse, EngineUse, MeasuredSpan, Measurement, OpKind,
    OpMeasurement, StopReason, ZeroSample,
};
use diskproof_model::plan::{CachePolicy, EngineKind, Plan, Workload};
use diskproof_model::surface::{CurvePoint, SurfaceMeasurement, Survey};
use diskproof_model::target::{Filesystem, TargetIdentity, TargetKind};
use std::collections::BTreeMap;
use std::path::Path;

/// A command line as its words.
pub(crate) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// The load of a command line.
pub(crate) fn load(tool: &DropIn, line: &str) -> Box<dyn DropInLoad> {
    match (tool.start)(&words(line)) {
        Ok(Started::Load(load)) => load,
        Ok(Started::Text(text)) => panic!("{line}: {}", text.stdout),
        Ok(Started::Jobs(_) | Started::Primes(_)) => panic!("{line}: no load"),
        Err(error) => panic!("{line}: {}", error.text()),
    }
}

/// The plan of a load.
pub(crate) fn plan(load: &dyn DropInLoad, target: &TargetIdentity) -> Plan {
    let context = PlanContext {
        target,
        seed: 7,
        argv: &[],
    };
    load.plan(&context)
        .unwrap_or_else(|error| panic!("{}", error.text()))
}

/// A file of the folder `fixtures`.
pub(crate) fn text_of(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn identity(path: &str, kind: TargetKind, size_bytes: u64) -> TargetIdentity {
    let is_device = kind == TargetKind::BlockDevice;
    let filesystem = Filesystem {
        kind: "ext4".to_owned(),
        mount_point: "/".to_owned(),
        source: "/dev/vda".to_owned(),
        options: Vec::new(),
        size_bytes: 252 << 30,
        free_bytes: 100 << 30,
        kept_free_bytes: None,
    };
    TargetIdentity {
        path: path.to_owned(),
        kind,
        size_bytes,
        free_bytes: (!is_device).then_some(100 << 30),
        device: "254:0".to_owned(),
        inode: 2,
        filesystem: (!is_device).then_some(filesystem),
        layers: vec![disk()],
        unresolved: None,
    }
}

fn disk() -> diskproof_model::target::Layer {
    use diskproof_model::target::{Layer, LayerKind};
    Layer {
        name: "vda".to_owned(),
        kind: LayerKind::Disk,
        device: "254:0".to_owned(),
        below: Vec::new(),
        size_bytes: 256 << 30,
        logical_block_bytes: Some(512),
        physical_block_bytes: Some(512),
        ..Layer::default()
    }
}

/// A directory on ext4.
pub(crate) fn directory() -> TargetIdentity {
    identity("/data", TargetKind::Directory, 252 << 30)
}

/// A regular file of this size.
pub(crate) fn file(size_bytes: u64) -> TargetIdentity {
    identity("/data/file", TargetKind::File, size_bytes)
}

/// A block device of this size.
pub(crate) fn device(size_bytes: u64) -> TargetIdentity {
    identity("/dev/vdb", TargetKind::BlockDevice, size_bytes)
}

/// A measurement of so many operations of one kind in this time.
pub(crate) fn measurement(
    workload: &Workload,
    kind: OpKind,
    count: u64,
    wall_ns: u64,
) -> Measurement {
    let op = OpMeasurement {
        count,
        bytes: count * u64::from(workload.block_bytes),
        ..OpMeasurement::default()
    };
    let engine = EngineUse {
        asked: workload.engine,
        used: EngineKind::Sync,
        fallbacks: Vec::new(),
        features: Vec::new(),
        depth: None,
        done_before_wait: None,
    };
    let cache = CacheUse {
        asked: workload.cache,
        used: workload.cache,
        why: None,
    };
    let span = MeasuredSpan::new(
        workload.span.start_bytes,
        workload.span.length_bytes.unwrap_or(0),
    );
    Measurement {
        wall_ns,
        ops: BTreeMap::from([(kind, op)]),
        achieved_depth: 1.0,
        stopped: StopReason::Time,
        ..Measurement::unmeasured(workload.clone(), span, engine, cache)
    }
}

/// A finished run with these measurements.
pub(crate) fn result(measurements: &[Measurement]) -> ToolResult<'_> {
    ToolResult {
        measurements,
        surface: None,
        interrupted: false,
        error: None,
        unix_ns: 0,
        host_name: "vm",
        disks: &[],
    }
}

/// A survey of blocks of 512 MiB with these rates in bytes per second.
pub(crate) fn surface(survey: &Survey, rates: &[f64]) -> SurfaceMeasurement {
    let bytes = 512u64 << 20;
    let mut curve = Vec::new();
    for (index, rate) in rates.iter().enumerate() {
        let ns = (bytes as f64 / rate * 1e9) as u64;
        curve.push(CurvePoint {
            bytes_per_second: *rate,
            latency_max_ns: 0,
            readings: Vec::new(),
            ..CurvePoint::read_once(index as u64 * bytes, bytes, ns)
        });
    }
    SurfaceMeasurement {
        target: 0,
        survey: survey.clone(),
        span_start_bytes: 0,
        span_bytes: 1 << 30,
        start_ns: 0,
        wall_ns: 1,
        curve_ns: 1,
        curve_cpu: CpuTime::default(),
        engine: EngineKind::Uring,
        cache: CacheUse {
            asked: CachePolicy::Direct,
            used: CachePolicy::Direct,
            why: None,
        },
        curve,
        burst: None,
        access: Vec::new(),
        access_errors: BTreeMap::new(),
        scan: None,
        zero_blocks: ZeroSample::default(),
        unwritten_bytes: None,
        starved_ns: 0,
        asked: ByteCount::default(),
        device: DeviceUse::default(),
        interrupted: false,
        hang: None,
        silence_before_ns: 0,
        stalls: Vec::new(),
        interruptions: Vec::new(),
    }
}
