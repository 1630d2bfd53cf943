//! Transactions at random times, in virtual time: what is counted, and what ends an open loop that
//! offers more than the disk serves.

use crate::testing::simulate::{FakeDisk, simulate};
use diskproof_model::measurement::{Measurement, OpKind, StopReason};
use diskproof_model::plan::{SyncCall, SyncPolicy, Workload};
use diskproof_model::progress::{Control, Progress, Watch};
use diskproof_model::shape::Arrivals;
use diskproof_model::stream::Streams;
use diskproof_model::transaction::Transaction;

const MILLISECOND_NS: u64 = 1_000_000;
const SECOND_NS: u64 = 1000 * MILLISECOND_NS;

struct Patient;

impl Watch for Patient {
    fn tick(&mut self, _progress: &Progress<'_>) -> Control {
        Control::Continue
    }
}

/// A disk of which each request takes a millisecond, `channels` at a time.
fn measured(workload: &Workload, channels: usize) -> Measurement {
    let disk = FakeDisk {
        service_ns: MILLISECOND_NS,
        jitter_ns: 0,
        channels,
        size_bytes: 64 << 20,
    };
    simulate(workload, disk, 7, &mut Patient).unwrap()
}

/// Two reads, a record and its sync, and a write after that.
fn transactions(rate: f64) -> Workload {
    let transaction = Transaction {
        reads: 2,
        log_bytes: 16384,
        log_span_bytes: 1 << 20,
        writes: 1,
    };
    let mut workload = Workload {
        streams: Streams::with_reads(transaction.read_permille()),
        depth: 64,
        rate: Some(rate),
        sync: SyncPolicy::Every {
            writes: 1,
            call: SyncCall::Fdatasync,
        },
        transaction: Some(transaction),
        ..Workload::named("transactions")
    };
    workload.shape.starts.arrivals = Arrivals::Poisson;
    workload.stop.time_ns = Some(20 * SECOND_NS);
    workload
}

fn count(measurement: &Measurement, kind: OpKind) -> u64 {
    measurement.ops[&kind].latency.count()
}

#[test]
fn transaction_is_its_reads_and_its_commit_and_the_write_after_it_delays_nobody() {
    let found = measured(&transactions(50.0), 64);
    let all = count(&found, OpKind::Transaction);
    // Poisson: four standard deviations of 1000.
    assert!((870..=1130).contains(&all), "{all}");
    assert_eq!(count(&found, OpKind::Read), 2 * all);
    assert_eq!(count(&found, OpKind::Commit), all);
    assert_eq!(count(&found, OpKind::Sync), all);
    assert_eq!(count(&found, OpKind::Write), 2 * all);
    let latency = &found.ops[&OpKind::Transaction].latency;
    assert_eq!(
        (latency.min_ns(), latency.max_ns()),
        (4 * MILLISECOND_NS, 4 * MILLISECOND_NS)
    );
    assert_eq!(
        found.ops[&OpKind::Commit].latency.max_ns(),
        2 * MILLISECOND_NS
    );
    let moved = found.asked.read_bytes + found.asked.write_bytes;
    assert_eq!(moved, all * (2 * 8192 + 16384 + 8192));
    // Five milliseconds of each are in flight: the transaction itself counts once.
    let in_flight = found.achieved_depth;
    assert!(
        (in_flight - 0.005 * all as f64 / 20.0).abs() < 0.01,
        "{in_flight}"
    );
}

#[test]
fn sessions_of_a_worker_share_one_sync_at_a_time() {
    let mut workload = transactions(200.0);
    workload.stop.time_ns = Some(SECOND_NS);
    workload.sync = SyncPolicy::Shared {
        call: SyncCall::Fdatasync,
    };
    let disk = FakeDisk {
        service_ns: 10 * MILLISECOND_NS,
        jitter_ns: 0,
        channels: 64,
        size_bytes: 64 << 20,
    };
    let found = simulate(&workload, disk, 7, &mut Patient).unwrap();
    let all = count(&found, OpKind::Transaction);
    assert_eq!(count(&found, OpKind::Commit), all);
    // Its own ten milliseconds, and at most the rest of the sync before it.
    let sync = &found.ops[&OpKind::Sync].latency;
    assert_eq!((sync.min_ns(), sync.count()), (10 * MILLISECOND_NS, all));
    assert!(sync.mean_ns() > 13.0 * MILLISECOND_NS as f64 && sync.max_ns() <= 20 * MILLISECOND_NS);
    let latency = &found.ops[&OpKind::Transaction].latency;
    assert!(latency.min_ns() == 40 * MILLISECOND_NS && latency.max_ns() <= 50 * MILLISECOND_NS);
}

#[test]
fn open_loop_that_offers_too_much_ends_with_what_waited() {
    let mut workload = transactions(2000.0);
    workload.shape.ends.overload_ns = Some(SECOND_NS);
    // Five requests of a millisecond each: 200 transactions a second.
    let found = measured(&workload, 1);
    assert_eq!(found.stopped, StopReason::Overloaded);
    assert!(found.wall_ns < 3 * SECOND_NS, "{}", found.wall_ns);
    let intended = found.ops[&OpKind::Transaction].latency_intended.clone();
    let intended = intended.unwrap();
    let offered = 2000.0 * found.wall_ns as f64 / 1e9;
    // Those in flight at the end are counted, too.
    let counted = intended.count() as f64;
    assert!(
        (counted - offered).abs() < 0.1 * offered + 64.0,
        "{counted} of {offered}"
    );
    assert!(intended.max_ns() >= SECOND_NS);
}

#[test]
fn delay_of_the_program_is_that_of_starts_that_found_a_slot_free() {
    // Every slot is in use nearly always, so that most starts wait for the disk.
    let mut busy = transactions(190.0);
    busy.depth = 1;
    let found = measured(&busy, 1);
    assert!(
        found.missed_starts.unwrap() > 1000,
        "{:?}",
        found.missed_starts
    );
    assert_eq!(found.dispatch_p99_ns.unwrap_or_default(), 0);
}
