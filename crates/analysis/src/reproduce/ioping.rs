//! The line of ioping 1.2 or later that makes the same single requests again.

use super::words::{OVERWRITE_WARNING, words_if};
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::ping::PingPlan;
use diskproof_model::plan::{
    Access, CachePolicy, EngineKind, Stop, SyncCall, SyncPolicy, Workload, WriteFlag,
};
use diskproof_model::shell::quoted;
use diskproof_model::target::{TargetIdentity, TargetKind};

/// The line of ioping that repeats the ping `ran` of `target`; empty where ioping cannot do the
/// same.
pub fn ioping_command(
    ran: &Measurement,
    asked: &Workload,
    plan: &PingPlan,
    target: &TargetIdentity,
) -> String {
    let durability = ioping_durability(&ran.workload);
    // ioping counts requests and time, not bytes.
    let is_impossible = durability == IopingDurability::Impossible
        || !plan.idle_ns.is_empty()
        || asked.stop.bytes.is_some();
    if is_impossible {
        return String::new();
    }
    let mut words = vec!["ioping".to_owned()];
    let Stop { ops, time_ns, .. } = asked.stop;
    if let Some(ops) = ops {
        words.push(format!("-c {ops}"));
    }
    if let Some(time_ns) = time_ns {
        words.push(format!("-w {}ms", time_ns / 1_000_000));
    }
    words.push(format!("-i {}us", plan.interval_ns / 1000));
    words.push(format!("-a {}", plan.warmup_requests));
    words.push(format!("-s {}", ran.workload.block_bytes));
    if target.kind != TargetKind::BlockDevice || asked.span.length_bytes.is_some() {
        words.push(format!("-S {}", ran.span_bytes));
    }
    if ran.span_start_bytes > 0 {
        words.push(format!("-o {}", ran.span_start_bytes));
    }
    words.extend(words_if([
        (ran.cache.used == CachePolicy::Direct, "-D"),
        (ran.cache.used == CachePolicy::Cached, "-C"),
        (ran.workload.access == Access::Sequential, "-L"),
        (ran.engine.used == EngineKind::Aio, "-A"),
    ]));
    if let IopingDurability::Option(option) = durability {
        words.push(option.to_owned());
    }
    let is_writing = !ran.workload.streams.is_only(OpKind::Read);
    let destroys = is_writing && target.kind != TargetKind::Directory;
    words.extend(words_if([
        (is_writing && !ran.workload.streams.is_mix(), "-W"),
        (is_writing && ran.workload.streams.is_mix(), "-G"),
        // ioping writes to an existing file or device only if -W is given three times.
        (destroys, "-WWW"),
    ]));
    words.push(quoted(&target.path));
    words.extend(words_if([(destroys, OVERWRITE_WARNING)]));
    words.join(" ")
}

/// The way to make ioping's writes as durable as those of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IopingDurability {
    /// Without an option: ioping follows each write with fdatasync, unless the page cache may keep
    /// it.
    Default,
    /// With this option.
    Option(&'static str),
    /// ioping cannot do it.
    Impossible,
}

/// The option of ioping for the syncs of a workload.
fn ioping_durability(ran: &Workload) -> IopingDurability {
    if ran.streams.is_only(OpKind::Read) {
        return IopingDurability::Default;
    }
    match ran.sync {
        SyncPolicy::WithWrite {
            flag: WriteFlag::OpenDsync,
        } => IopingDurability::Option("-y"),
        SyncPolicy::WithWrite {
            flag: WriteFlag::OpenSync,
        } => IopingDurability::Option("-Y"),
        SyncPolicy::Every {
            writes: 1,
            call: SyncCall::Fdatasync,
        } if ran.cache != CachePolicy::Cached => IopingDurability::Default,
        SyncPolicy::None if ran.cache == CachePolicy::Cached => IopingDurability::Default,
        _ => IopingDurability::Impossible,
    }
}
