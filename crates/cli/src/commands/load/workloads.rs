//! The workloads of a search: transactions, plain requests, or the mixes of `--rays`.

use super::flags::LoadFlags;
use super::mix::Mix;
use crate::failure::Failure;
use crate::standard_workloads::{HALF_READS_PERMILLE, READS_ONLY_PERMILLE, WRITES_ONLY_PERMILLE};
use diskproof_model::capacity_workloads::{
    SEQUENTIAL_MIXED, SEQUENTIAL_READ, SEQUENTIAL_READ_PAGES, SEQUENTIAL_WRITE,
    SEQUENTIAL_WRITE_PAGES,
};
use diskproof_model::plan::{Access, Distribution, EngineChoice, SyncCall, SyncPolicy, Workload};
use diskproof_model::rw::{Order, Rw};
use diskproof_model::stream::Streams;
use diskproof_model::transaction::Transaction;

/// PostgreSQL keeps as much of its log at least (min_wal_size).
const LOG_SPAN_BYTES: u64 = 80 << 20;
/// Of a small target, at most an eighth is log.
const LOG_SPAN_DIVISOR: u64 = 8;
/// Transactions at the same time: the sessions that a server has open (max_connections is 100).
const SESSIONS: u32 = 100;
/// Requests in flight at most, for a load of plain requests.
const DEPTH: u32 = 256;
/// Schedulers are set by rates of operations of this size.
const RAY_BYTES: u32 = 4096;
/// Requests in flight of a sequential workload: as many as SATA has.
const SEQUENTIAL_DEPTH: u32 = 32;
/// A tenth of a sequential workload's time does not count: queues fill.
const SEQUENTIAL_WARMUP_DIVISOR: u64 = 10;
/// Requests large enough to reach all of a disk's bandwidth.
const SEQUENTIAL_BYTES: u32 = 1 << 20;
/// Warm-ups are whole cells of the series, which are 10 ms long.
const CELL_NS: u64 = 10_000_000;
/// Share of reads of a `--rw` that mixes, unless `--rwmixread` says otherwise.
const READ_PERCENT: u16 = 50;

/// A sequential workload before the rays, for exports that need its rate.
pub(super) struct SequentialRequests {
    name: &'static str,
    read_permille: u16,
    block_bytes: u32,
}

/// Bandwidth by large requests (the kernel's iocost_coef_gen.py sends 128 MB), and sequential
/// operations by those of 4 KiB. The mix says what reads and writes move together.
pub(super) const SEQUENTIAL: [SequentialRequests; 5] = [
    SequentialRequests {
        name: SEQUENTIAL_READ,
        read_permille: READS_ONLY_PERMILLE,
        block_bytes: SEQUENTIAL_BYTES,
    },
    SequentialRequests {
        name: SEQUENTIAL_WRITE,
        read_permille: WRITES_ONLY_PERMILLE,
        block_bytes: SEQUENTIAL_BYTES,
    },
    SequentialRequests {
        name: SEQUENTIAL_MIXED,
        read_permille: HALF_READS_PERMILLE,
        block_bytes: SEQUENTIAL_BYTES,
    },
    SequentialRequests {
        name: SEQUENTIAL_READ_PAGES,
        read_permille: READS_ONLY_PERMILLE,
        block_bytes: RAY_BYTES,
    },
    SequentialRequests {
        name: SEQUENTIAL_WRITE_PAGES,
        read_permille: WRITES_ONLY_PERMILLE,
        block_bytes: RAY_BYTES,
    },
];

/// The sequential workloads, each for this time.
pub(super) fn sequential_requests(load: &LoadFlags, time_ns: u64) -> Vec<Workload> {
    let mut workloads = Vec::new();
    for requests in &SEQUENTIAL {
        let mut workload = Workload {
            streams: Streams::with_reads(requests.read_permille),
            access: Access::Sequential,
            block_bytes: requests.block_bytes,
            depth: SEQUENTIAL_DEPTH,
            warmup_ns: time_ns / SEQUENTIAL_WARMUP_DIVISOR / CELL_NS * CELL_NS,
            engine: load.measuring.engine.unwrap_or(EngineChoice::Auto),
            ..Workload::named(requests.name)
        };
        workload.stop.time_ns = Some(time_ns - workload.warmup_ns);
        workloads.push(workload);
    }
    workloads
}

/// Requests or sessions at the same time, on the threads that share them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct InFlight {
    /// The number of threads.
    workers: u32,
    /// Of each thread.
    depth: u32,
}

/// Shares `--depth`, or `usual_depth` without it, among the threads of `--jobs`. They take their
/// starts from one queue. Fails where a thread would have none.
fn in_flight(load: &LoadFlags, usual_depth: u32) -> Result<InFlight, Failure> {
    let depth = load.depth.unwrap_or(usual_depth);
    if load.jobs > depth {
        return Err(Failure::Usage(format!(
            "--jobs {}: more threads than requests at the same time (--depth {depth})",
            load.jobs
        )));
    }
    Ok(InFlight {
        workers: load.jobs,
        // Not one more than was asked for: the promise is that of so many.
        depth: depth / load.jobs,
    })
}

/// Random requests, one workload for each ray: its share of reads is that of the ray, from writes
/// alone to reads alone.
pub(super) fn ray_requests(load: &LoadFlags, rays: u16) -> Result<Vec<Workload>, Failure> {
    let InFlight { workers, depth } = in_flight(load, DEPTH)?;
    let mut workloads = Vec::new();
    for ray in 0..rays {
        let read_share = f64::from(ray) / f64::from(rays - 1);
        let percent = (read_share * 100.0).round();
        let named = Workload::named(&format!("reads-{percent}"));
        workloads.push(Workload {
            streams: Streams::with_reads((read_share * 1000.0).round() as u16),
            block_bytes: load.bs.map_or(RAY_BYTES, |size| size.0),
            workers,
            depth,
            engine: load.measuring.engine.unwrap_or(EngineChoice::Auto),
            ..named
        });
    }
    Ok(workloads)
}

/// The workload whose rate is searched: transactions, or plain requests.
pub(super) fn offered_workload(load: &LoadFlags, target_bytes: u64) -> Result<Workload, Failure> {
    let workload = match load.rw {
        Some(rw) => plain_requests(load, rw)?,
        None => transactions(load, target_bytes)?,
    };
    Ok(Workload {
        engine: load.measuring.engine.unwrap_or(workload.engine),
        ..workload
    })
}

/// The plain requests of `--rw`.
fn plain_requests(load: &LoadFlags, rw: Rw) -> Result<Workload, Failure> {
    let InFlight { workers, depth } = in_flight(load, DEPTH)?;
    let named = Workload::named(rw.as_str());
    let access = match rw.order {
        Order::Sequential => Access::Sequential,
        Order::Random => named.access.clone(),
    };
    Ok(Workload {
        streams: rw.streams(load.rwmixread.unwrap_or(READ_PERCENT) * 10, &[]),
        access,
        block_bytes: load.bs.map_or(named.block_bytes, |size| size.0),
        workers,
        depth,
        ..named
    })
}

/// The transactions of the mix that the flags name.
fn transactions(load: &LoadFlags, target_bytes: u64) -> Result<Workload, Failure> {
    let mix = match &load.like {
        Some(reference) => Mix::observed(load, reference)?,
        None => Mix::named(&load.mix)?,
    };
    let log_bytes = u64::from(mix.log_bytes);
    let span_bytes = LOG_SPAN_BYTES
        .min(target_bytes / LOG_SPAN_DIVISOR)
        .max(log_bytes);
    let transaction = Transaction {
        reads: mix.reads,
        log_bytes: mix.log_bytes,
        // A record more than what holds whole ones: it begins at a multiple of its length.
        log_span_bytes: span_bytes.next_multiple_of(log_bytes) + log_bytes,
        writes: mix.writes,
    };
    let name = match load.mix.as_str() {
        known @ ("oltp" | "etcd") if load.like.is_none() => known,
        _ => "transactions",
    };
    let InFlight { workers, depth } = in_flight(load, SESSIONS)?;
    Ok(Workload {
        streams: Streams::with_reads(transaction.read_permille()),
        access: Access::Random {
            distribution: Distribution::Uniform,
        },
        block_bytes: mix.block_bytes,
        workers,
        depth,
        sync: SyncPolicy::Shared {
            call: SyncCall::Fdatasync,
        },
        transaction: Some(transaction),
        ..Workload::named(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use diskproof_model::op::OpKind;

    #[derive(Parser)]
    struct Load {
        #[command(flatten)]
        flags: LoadFlags,
    }

    fn flags(line: &[&str]) -> LoadFlags {
        Load::try_parse_from([&["load"], line].concat())
            .unwrap()
            .flags
    }

    #[test]
    fn requests_in_flight_are_never_more_than_those_of_the_promise() {
        for (line, workers, depth) in [
            (&[][..], 1, SESSIONS),
            (&["--jobs", "3"], 3, 33),
            (&["--jobs", "4", "--depth", "4"], 4, 1),
        ] {
            let shared = in_flight(&flags(line), SESSIONS).unwrap();
            assert_eq!(shared, InFlight { workers, depth });
        }
        let refused = in_flight(&flags(&["--jobs", "5", "--depth", "4"]), SESSIONS);
        assert!(matches!(refused, Err(Failure::Usage(_))));
    }

    #[test]
    fn rays_go_from_writes_alone_to_reads_alone() {
        let workloads = ray_requests(&flags(&[]), 5).unwrap();
        let shares: Vec<u16> = workloads
            .iter()
            .map(|workload| workload.streams.permille(OpKind::Read))
            .collect();
        assert_eq!(shares, [0, 250, 500, 750, 1000]);
        assert!(
            workloads
                .iter()
                .all(|workload| workload.block_bytes == RAY_BYTES)
        );
    }

    #[test]
    fn sequential_workload_takes_its_time_with_a_warmup_of_whole_cells() {
        let time_ns = 2_345_000_000;
        for workload in sequential_requests(&flags(&[]), time_ns) {
            assert_eq!(workload.warmup_ns, 230_000_000);
            let measured_ns = workload.stop.time_ns.unwrap();
            assert_eq!(measured_ns + workload.warmup_ns, time_ns);
        }
    }

    #[test]
    fn log_of_transactions_is_that_of_a_server_or_an_eighth_of_a_small_target() {
        for (target_bytes, span_bytes) in [
            (1 << 40, LOG_SPAN_BYTES),
            (LOG_SPAN_BYTES * 8, LOG_SPAN_BYTES),
            (64 << 20, 8 << 20),
            (8, 0),
        ] {
            let offered = offered_workload(&flags(&[]), target_bytes).unwrap();
            let transaction = offered.transaction.unwrap();
            let log_bytes = u64::from(transaction.log_bytes);
            // Whole records, and one more than the span holds.
            let records = span_bytes.div_ceil(log_bytes).max(1) + 1;
            assert_eq!(transaction.log_span_bytes, records * log_bytes);
        }
    }
}
