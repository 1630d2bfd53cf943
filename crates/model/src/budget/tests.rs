//! What a plan may write, drop and change at most.

use super::*;
use crate::files::{FileCaches, FileOrder, FileSync, FilesPlan};
use crate::plan::Scratch;
use crate::stream::Streams;
use crate::target::WriteCache;
use crate::task::{LivePlan, Task, Workloads};
use crate::transaction::Transaction;
use crate::workload::{CachePolicy, HELD_BYTES_MAX, Stop};

/// 1 MiB of buffered writes.
fn writes(name: &str, block_bytes: u32) -> Workload {
    Workload {
        block_bytes,
        cache: CachePolicy::Buffered,
        streams: Streams::with_reads(0),
        layout: Layout::Needed,
        stop: Stop {
            bytes: Some(1 << 20),
            ..Stop::default()
        },
        ..Workload::named(name)
    }
}

fn most_bytes(scratch_bytes: u64, list: Vec<Workload>) -> Option<u64> {
    let workloads = Workloads {
        list,
        ..Workloads::default()
    };
    let plan = Plan {
        scratch: Some(Scratch::of_size(scratch_bytes)),
        tasks: vec![Task::Workloads(workloads)],
        ..Plan::default()
    };
    let ByteLimit::AtMost(bytes) = plan.written_to_scratch() else {
        return None;
    };
    Some(bytes)
}

#[test]
fn scratch_file_is_written_once_more_for_a_later_workload_that_writes_blocks_in_part() {
    let (part, whole) = (writes("part", 1024), writes("whole", 4096));
    let size = HELD_BYTES_MAX;
    for (size, list, filled) in [
        (size, vec![&part], size),
        (size, vec![&part, &whole], size),
        (size, vec![&whole, &part], 2 * size),
        // More is not written once more.
        (size + 4096, vec![&whole, &part], size + 4096),
    ] {
        let own = (list.len() as u64) << 20;
        let workloads = list.into_iter().cloned().collect();
        assert_eq!(most_bytes(size, workloads), Some(filled + own));
    }
}

/// A plan of one workload, decided so.
fn plan_of(workload: Workload, decide: Decide) -> Plan {
    Plan {
        tasks: vec![Task::Workloads(Workloads {
            decide,
            ..Workloads::as_planned(vec![workload])
        })],
        ..Plan::default()
    }
}

#[test]
fn changes_beyond_the_targets_are_named() {
    let beyond = |workload, decide| plan_of(workload, decide).budget(&[]).beyond;
    assert_eq!(beyond(Workload::named("a"), Decide::AsPlanned), []);
    let switched = Workload {
        write_cache: Some(WriteCache::WriteThrough),
        ..Workload::named("a")
    };
    assert_eq!(
        beyond(switched, Decide::AsPlanned),
        [BeyondTargets::WriteCache]
    );
    let compared = Decide::Compare(LivePlan {
        sides: Sides::Settings {
            prepare: vec!["true".to_owned(), "true".to_owned()],
            cleanup: None,
            reopen: false,
        },
        margin: 0.1,
        cells_ns: 1,
    });
    assert_eq!(
        beyond(Workload::named("a"), compared),
        [BeyondTargets::Commands]
    );
}

#[test]
fn dropped_blocks_have_the_limit_of_their_workloads() {
    let mut workload = writes("trim", 4096);
    workload.streams = Streams::doing(&[OpKind::Trim]);
    let drops = |workload: &Workload| {
        plan_of(workload.clone(), Decide::AsPlanned)
            .budget(&[])
            .drops
    };
    let kind = OpKind::Trim;
    let limit = ByteLimit::AtMost(1 << 20);
    assert_eq!(drops(&workload), [DroppedBlocks { kind, limit }]);
    workload.stop.bytes = None;
    let limit = ByteLimit::Unlimited;
    assert_eq!(drops(&workload), [DroppedBlocks { kind, limit }]);
    assert_eq!(drops(&Workload::named("read")), []);
}

/// A job that writes to one file does not need the release of another one, which it reads.
#[test]
fn target_that_is_only_read_is_not_overwritten() {
    let mut read = Workload::named("read");
    read.target = Some(0);
    let mut write = writes("write", 4096);
    write.target = Some(1);
    let mut plan = plan_of(read, Decide::AsPlanned);
    plan.tasks
        .push(plan_of(write.clone(), Decide::AsPlanned).tasks.remove(0));
    let is_overwritten = |plan: &Plan| [0, 1].map(|index| plan.writes_to(index));
    assert_eq!(is_overwritten(&plan), [false, true]);
    // Without a target of its own it runs on all.
    write.target = None;
    let all = plan_of(write, Decide::AsPlanned);
    assert_eq!(is_overwritten(&all), [true, true]);
}

#[test]
fn limits_that_no_number_holds_are_not_small() {
    let mut plan = Plan::new("run", Vec::new());
    let huge = Workload {
        streams: Streams::with_reads(0),
        stop: Stop {
            bytes: Some(1 << 63),
            time_ns: Some(1 << 63),
            ..Stop::default()
        },
        ..Workload::named("huge")
    };
    plan.tasks = vec![Task::Workloads(Workloads::as_planned(vec![
        huge.clone(),
        huge,
    ]))];
    assert_eq!(plan.write_limit(), ByteLimit::AtMost(u64::MAX));
    assert_eq!(plan.time_ns_max(), Some(u64::MAX));
}

/// What is between the steps of many small files takes additional time, as a fill does.
#[test]
fn files_are_written_back_checked_and_removed_beyond_the_expected_time() {
    let files = FilesPlan {
        count: 1000,
        file_bytes_min: 4096,
        file_bytes_max: 4096,
        directories: 1,
        threads: 1,
        sync: FileSync::None,
        caches: FileCaches::DropOwnPages,
        orders: vec![FileOrder::Sequential],
        rounds: 1,
        time_ns: 5_000_000_000,
    };
    let size_bytes = files.set_bytes();
    let plan = Plan {
        targets: vec!["/a".to_owned()],
        tasks: vec![Task::Files(files)],
        ..Plan::default()
    };
    let budget = plan.budget(&[]);
    assert_eq!(budget.deadline_ns, Some(5_000_000_000));
    let written_ns = size_bytes * 100;
    assert_eq!(budget.fill_ns, Some(20_000_000_000 + written_ns));
}

/// Filled for 3 s at 2 MB/s, the scratch file has a small part of this log.
#[test]
fn log_of_transactions_takes_announced_time_beyond_a_short_first_write() {
    let fill_ns = |log_span_bytes: u64, within_ns: u64| {
        let mut commits = Workload::named("oltp");
        commits.layout = Layout::Needed;
        commits.stop.time_ns = Some(30_000_000_000);
        if log_span_bytes > 0 {
            commits.transaction = Some(Transaction {
                reads: 4,
                log_bytes: 8192,
                log_span_bytes,
                writes: 1,
            });
        }
        let plan = Plan {
            scratch: Some(Scratch::of_size(4 << 30).filled_within(8 << 20, within_ns)),
            tasks: vec![Task::Workloads(Workloads::as_planned(vec![commits]))],
            ..Plan::default()
        };
        plan.budget(&[]).fill_ns
    };
    assert_eq!(fill_ns(80_000_000, 3_000_000_000), Some(47_000_000_000));
    assert_eq!(fill_ns(80_000_000, 42_000_000_000), Some(8_000_000_000));
    // The log fits into the announced time, or there is none.
    assert_eq!(fill_ns(80_000_000, 50_000_000_000), None);
    assert_eq!(fill_ns(0, 3_000_000_000), None);
}
