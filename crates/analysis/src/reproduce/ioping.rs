//! The line of ioping 1.2 or later that sends the same single requests. Option names and meanings
//! are those of ioping(1).

use diskproof_model::op::OpKind;
use diskproof_model::ping::PingPlan;
use diskproof_model::plan::{
    Access, CachePolicy, EngineKind, Stop, SyncCall, SyncPolicy, Workload, WriteFlag,
};
use diskproof_model::record::WorkloadRecord;
use diskproof_model::shell::quoted;
use diskproof_model::target::{TargetIdentity, TargetKind};

/// The line that repeats the ping `ran` of `target`; empty where ioping cannot do the same.
pub fn ping(
    (ran, asked, plan): (&WorkloadRecord, &Workload, &PingPlan),
    target: &TargetIdentity,
) -> String {
    let Some(durability) = durability(ran).filter(|_| plan.idle_ns.is_empty()) else {
        return String::new();
    };
    let mut words = vec!["ioping".to_owned()];
    let Stop { ops, time_ns, .. } = asked.stop;
    words.extend(ops.map(|ops| format!("-c {ops}")));
    words.extend(time_ns.map(|ns| format!("-w {}ms", ns / 1_000_000)));
    words.push(format!("-i {}us", plan.interval_ns / 1000));
    words.push(format!("-a {}", plan.warmup_requests));
    words.push(format!("-s {}", ran.block_bytes));
    if target.kind != TargetKind::BlockDevice || asked.span.length_bytes.is_some() {
        words.push(format!("-S {}", ran.span_bytes));
    }
    if ran.span_start_bytes > 0 {
        words.push(format!("-o {}", ran.span_start_bytes));
    }
    match ran.cache {
        CachePolicy::Direct => words.push("-D".to_owned()),
        CachePolicy::Cached => words.push("-C".to_owned()),
        CachePolicy::Buffered => {}
    }
    if ran.access == Access::Sequential {
        words.push("-L".to_owned());
    }
    if ran.engine == EngineKind::Aio {
        words.push("-A".to_owned());
    }
    words.extend(durability.map(str::to_owned));
    let writing = match (ran.streams.is_only(OpKind::Read), ran.streams.is_mix()) {
        (true, _) => None,
        (false, false) => Some("-W"),
        (false, true) => Some("-G"),
    };
    words.extend(writing.map(str::to_owned));
    // Without three of them ioping writes to no existing file or device.
    if writing.is_some() && target.kind != TargetKind::Directory {
        words.push("-WWW".to_owned());
    }
    words.push(quoted(&target.path));
    if writing.is_some() && target.kind != TargetKind::Directory {
        words.push(super::DESTROYS.to_owned());
    }
    words.join(" ")
}

/// The option for how writes are made durable; `None` where ioping has none for it. It follows each
/// write with fdatasync, unless the page cache may keep it.
fn durability(ran: &WorkloadRecord) -> Option<Option<&'static str>> {
    if ran.streams.is_only(OpKind::Read) {
        return Some(None);
    }
    match ran.sync {
        SyncPolicy::WithWrite {
            flag: WriteFlag::OpenDsync,
        } => Some(Some("-y")),
        SyncPolicy::WithWrite {
            flag: WriteFlag::OpenSync,
        } => Some(Some("-Y")),
        SyncPolicy::Every {
            writes: 1,
            call: SyncCall::Fdatasync,
        } if ran.cache != CachePolicy::Cached => Some(None),
        SyncPolicy::None if ran.cache == CachePolicy::Cached => Some(None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture;
    use diskproof_model::plan::{SyncCall, SyncPolicy};
    use diskproof_model::record::Record;
    use diskproof_model::stream::Streams;
    use diskproof_model::target::TargetKind;

    fn command(change: impl Fn(&mut fixture::RunParts)) -> String {
        let mut run = fixture::ping::ping_run(&[(0, 100_000); 10]);
        run.0.plan.ping.as_mut().unwrap().idle_ns.clear();
        change(&mut run);
        let record: Record = fixture::judge(run);
        record.measurements[0].reproduce.clone()
    }

    #[test]
    fn ping_of_a_directory_is_repeated_by_ioping() {
        let reads = command(|run| run.0.plan.workloads[0].stop.ops = Some(10));
        assert_eq!(
            reads,
            "ioping -c 10 -i 1000000us -a 1 -s 4096 -S 4294967296 -D /data"
        );
    }

    #[test]
    fn writes_to_a_device_are_marked_and_what_ioping_cannot_do_has_no_line() {
        let synced = |call| SyncPolicy::Every { writes: 1, call };
        let writes = command(|run| {
            let workload = &mut run.1[0].workload;
            (workload.streams, workload.sync) =
                (Streams::with_reads(500), synced(SyncCall::Fdatasync));
            (run.0.targets[0].kind, run.0.targets[0].path) =
                (TargetKind::BlockDevice, "/dev/sdz".to_owned());
        });
        assert!(
            writes.contains(" -D -G -WWW /dev/sdz # overwrites"),
            "{writes}"
        );
        let fsync = command(|run| {
            let workload = &mut run.1[0].workload;
            (workload.streams, workload.sync) = (Streams::with_reads(0), synced(SyncCall::Fsync));
        });
        assert_eq!(fsync, "");
        let gaps = command(|run| run.0.plan.ping.as_mut().unwrap().idle_ns = vec![0, 5]);
        assert_eq!(gaps, "");
    }
}
