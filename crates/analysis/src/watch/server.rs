//! Turns the counters of a PostgreSQL server into its rates, and into the share of the devices'
//! load that it explains. Each reading has the counters of the disks at the same moment.

use super::counters::step_between;
use super::profile::CELLS_MAX;
use diskproof_model::postgres::{
    ExplainedLoad, ObservedServer, ServerCounters, ServerIo, ServerStep, ServerWal,
};
use diskproof_model::series::{Cell, TimeSeries};
use diskproof_model::watch::DiskReading;
use std::collections::VecDeque;

/// The server writes first and the disk later, at the latest after the 30 s that the kernel keeps
/// changed pages (dirty_expire_centisecs). Their shares are compared over this time.
const WINDOW_NS: u64 = 30_000_000_000;
/// Sessions report to the server about once a second: over a shorter time a part of the load is
/// missing (PGSTAT_MIN_INTERVAL in PostgreSQL's pgstat.c).
const COMPARED_NS_MIN: u64 = 5_000_000_000;

/// A server and the disks at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerReading {
    /// The moment of the reading, in nanoseconds after the start of watching.
    pub at_ns: u64,
    /// The server's counters since it began to count.
    pub counters: ServerCounters,
    /// The kernel's counters of the machine's disks.
    pub disks: Vec<DiskReading>,
}

impl ServerReading {
    fn disk(&self, name: &str) -> Option<&DiskReading> {
        self.disks.iter().find(|disk| disk.name == name)
    }
}

/// A watched server. It takes readings in the order of time, and returns steps and their sum.
#[derive(Debug, Clone)]
pub struct ServerObserver {
    /// Names of the devices below its data; empty where they are not known.
    devices: Vec<String>,
    /// The latest reading of this session.
    previous: Option<ServerReading>,
    /// The steps within the last [`WINDOW_NS`].
    recent: VecDeque<RecentStep>,
    /// The time of all steps.
    wall_ns: u64,
    /// The increases of the server's counters in all steps.
    total: ServerCounters,
    /// The loads of the server and of its devices, over all steps in which both are known.
    compared: ExplainedLoad,
    reads: TimeSeries,
    writes: TimeSeries,
    wal_writes: TimeSeries,
}

/// One of the latest steps.
#[derive(Debug, Clone)]
struct RecentStep {
    end_ns: u64,
    compared: ExplainedLoad,
}

impl ServerObserver {
    /// An observer without a session. Its series have cells of this length.
    pub fn new(interval_ns: u64) -> Self {
        Self {
            devices: Vec::new(),
            previous: None,
            recent: VecDeque::new(),
            wall_ns: 0,
            total: ServerCounters::default(),
            compared: ExplainedLoad::default(),
            reads: TimeSeries::new(interval_ns),
            writes: TimeSeries::new(interval_ns),
            wal_writes: TimeSeries::new(interval_ns),
        }
    }

    /// Begins a session, perhaps with another server: no step leads over the gap.
    pub fn begin_session(&mut self, devices: Vec<String>) {
        self.previous = None;
        if self.devices != devices {
            self.recent.clear();
            self.compared = ExplainedLoad::default();
        }
        self.devices = devices;
    }

    /// Adds the next reading and returns the step that it ends: `None` for the first reading of a
    /// session, for one at the time of the previous one, and where counters went backwards because
    /// someone reset them. The increases since the previous reading are lost in the latter two
    /// cases, because every reading becomes the previous one of the next.
    pub fn add(&mut self, reading: ServerReading) -> Option<ServerStep> {
        let previous = self.previous.replace(reading.clone())?;
        let length_ns = reading.at_ns.checked_sub(previous.at_ns)?;
        if length_ns == 0 {
            return None;
        }
        let mut counters = counters_between(&previous.counters, &reading.counters).ok()?;
        counters.io.sort_by_key(|io| std::cmp::Reverse(io.bytes()));
        self.wall_ns += length_ns;
        add_counters(&mut self.total, &counters);
        self.add_cells(reading.at_ns, &counters);
        let explained = match compared_load(&self.devices, &previous, &reading, &counters) {
            Some(compared) => {
                add_compared(&mut self.compared, &compared);
                self.recent.push_back(RecentStep {
                    end_ns: reading.at_ns,
                    compared,
                });
                long_enough(self.recent_sum())
            }
            None => None,
        };
        Some(ServerStep {
            length_ns,
            counters,
            explained,
        })
    }

    /// The latest steps within the window, together.
    fn recent_sum(&mut self) -> ExplainedLoad {
        let newest = match self.recent.back() {
            Some(step) => step.end_ns,
            None => 0,
        };
        let oldest = newest.saturating_sub(WINDOW_NS);
        self.recent.retain(|step| step.end_ns > oldest);
        let mut sum = ExplainedLoad::default();
        for step in &self.recent {
            add_compared(&mut sum, &step.compared);
        }
        sum
    }

    /// Adds the increases of one step to the series.
    fn add_cells(&mut self, at_ns: u64, counters: &ServerCounters) {
        // A reading describes the time before it.
        let before_ns = at_ns.saturating_sub(1);
        let mut reads = Cell::default();
        let mut writes = Cell::default();
        for io in &counters.io {
            reads.ops += io.read_ops;
            writes.ops += io.write_ops + io.extend_ops;
        }
        if !counters.io.iter().any(ServerIo::is_wal) {
            writes.ops += counters.wal.write_ops.unwrap_or(0);
        }
        reads.bytes = counters.read_bytes();
        writes.bytes = counters.write_bytes();
        // The operations of the log are its syncs, for which commits wait.
        let wal_writes = Cell {
            ops: counters.wal.syncs.unwrap_or(0),
            bytes: counters.wal.write_bytes,
            ..Cell::default()
        };
        self.reads.add(before_ns, &reads, CELLS_MAX);
        self.writes.add(before_ns, &writes, CELLS_MAX);
        self.wal_writes.add(before_ns, &wal_writes, CELLS_MAX);
    }

    /// The sum of all steps; `None` without one.
    pub fn summary(
        &self,
        address: &str,
        version: &str,
        missing: Vec<String>,
    ) -> Option<ObservedServer> {
        if self.wall_ns == 0 {
            return None;
        }
        let mut io = self.total.io.clone();
        io.sort_by_key(|io| std::cmp::Reverse(io.bytes()));
        Some(ObservedServer {
            address: address.to_owned(),
            version: version.to_owned(),
            wall_ns: self.wall_ns,
            io,
            wal: self.total.wal,
            temp_bytes: self.total.temp_bytes,
            page_bytes: self.total.page_bytes,
            explained: long_enough(self.compared.clone()),
            reads: self.reads.clone(),
            writes: self.writes.clone(),
            wal_writes: self.wal_writes.clone(),
            missing,
        })
    }
}

/// The load, if it lasted long enough to be compared with that of the devices.
fn long_enough(load: ExplainedLoad) -> Option<ExplainedLoad> {
    if load.wall_ns >= COMPARED_NS_MIN {
        Some(load)
    } else {
        None
    }
}

/// The increase of every counter between two readings.
fn counters_between(
    before: &ServerCounters,
    after: &ServerCounters,
) -> Result<ServerCounters, CounterReset> {
    for old in &before.io {
        // PostgreSQL removes no row of pg_stat_io, except by a reset.
        if !after.io.iter().any(|new| is_same_row(old, new)) {
            return Err(CounterReset);
        }
    }
    let mut io = Vec::new();
    for new in &after.io {
        io.push(match before.io.iter().find(|old| is_same_row(old, new)) {
            Some(old) => io_between(old, new)?,
            None => io_between(&idle_row(before.timed.of_row(new)), new)?,
        });
    }
    io.retain(|row| !row.is_idle());
    let old_wal = &before.wal;
    let new_wal = &after.wal;
    let generated_bytes = increase(old_wal.generated_bytes, new_wal.generated_bytes)?;
    let write_bytes = increase(old_wal.write_bytes, new_wal.write_bytes)?;
    let has_wal_rows = after.io.iter().any(ServerIo::is_wal);
    Ok(ServerCounters {
        io,
        wal: ServerWal {
            generated_bytes,
            // Before version 18 the bytes are those of a page for each write. The log has at least
            // its records; since its start, a server may have written many of them at once.
            write_bytes: if has_wal_rows {
                write_bytes
            } else {
                write_bytes.max(generated_bytes)
            },
            write_ops: known_increase(old_wal.write_ops, new_wal.write_ops)?,
            syncs: known_increase(old_wal.syncs, new_wal.syncs)?,
            sync_ns: measured_between(old_wal.sync_ns, new_wal.sync_ns)?,
        },
        temp_bytes: increase(before.temp_bytes, after.temp_bytes)?,
        page_bytes: after.page_bytes,
        timed: after.timed,
    })
}

/// A row before anything was counted in it. Its times are 0 where the server measured them then.
fn idle_row(is_timed: bool) -> ServerIo {
    let time_ns = if is_timed { Some(0) } else { None };
    ServerIo {
        read_ns: time_ns,
        write_ns: time_ns,
        ..ServerIo::default()
    }
}

/// The increase of all counters of one kind of I/O.
fn io_between(old: &ServerIo, new: &ServerIo) -> Result<ServerIo, CounterReset> {
    Ok(ServerIo {
        backend: new.backend.clone(),
        object: new.object.clone(),
        context: new.context.clone(),
        read_ops: increase(old.read_ops, new.read_ops)?,
        read_bytes: increase(old.read_bytes, new.read_bytes)?,
        read_ns: measured_between(old.read_ns, new.read_ns)?,
        write_ops: increase(old.write_ops, new.write_ops)?,
        write_bytes: increase(old.write_bytes, new.write_bytes)?,
        write_ns: measured_between(old.write_ns, new.write_ns)?,
        extend_ops: increase(old.extend_ops, new.extend_ops)?,
        extend_bytes: increase(old.extend_bytes, new.extend_bytes)?,
        fsyncs: known_increase(old.fsyncs, new.fsyncs)?,
        hits: known_increase(old.hits, new.hits)?,
        evictions: known_increase(old.evictions, new.evictions)?,
    })
}

/// A counter went backwards: someone reset the statistics, or the server began anew.
struct CounterReset;

/// The increase of a counter between two readings.
fn increase(old: u64, new: u64) -> Result<u64, CounterReset> {
    new.checked_sub(old).ok_or(CounterReset)
}

/// The increase of a counter that a server of this version may not have. One that appears has
/// counted from zero.
fn known_increase(old: Option<u64>, new: Option<u64>) -> Result<Option<u64>, CounterReset> {
    match new {
        None => Ok(None),
        Some(new) => Ok(Some(increase(old.unwrap_or(0), new)?)),
    }
}

/// The increase of a time between two readings; `None` unless the server measured it at both. The
/// first time after a server began to measure is no increase: it contains all that the server
/// measured before it had stopped.
fn measured_between(old: Option<u64>, new: Option<u64>) -> Result<Option<u64>, CounterReset> {
    match (old, new) {
        (Some(old), Some(new)) => Ok(Some(increase(old, new)?)),
        _ => Ok(None),
    }
}

// The sums take their addends apart field by field: a new counter does not compile until it is
// summed.

fn add_counters(sum: &mut ServerCounters, more: &ServerCounters) {
    let ServerCounters {
        io,
        wal,
        temp_bytes,
        page_bytes,
        timed,
    } = more;
    for row in io {
        let known = sum.io.iter_mut().find(|known| is_same_row(known, row));
        match known {
            Some(known) => add_io(known, row),
            None => sum.io.push(row.clone()),
        }
    }
    add_wal(&mut sum.wal, *wal);
    sum.temp_bytes += temp_bytes;
    sum.page_bytes = *page_bytes;
    sum.timed = *timed;
}

fn add_wal(sum: &mut ServerWal, more: ServerWal) {
    let ServerWal {
        generated_bytes,
        write_bytes,
        write_ops,
        syncs,
        sync_ns,
    } = more;
    sum.generated_bytes += generated_bytes;
    sum.write_bytes += write_bytes;
    add_known(&mut sum.write_ops, write_ops);
    sum.sync_ns = sum_of_times(&[
        MeasuredOps::new(sum.syncs.unwrap_or(0), sum.sync_ns),
        MeasuredOps::new(syncs.unwrap_or(0), sync_ns),
    ]);
    add_known(&mut sum.syncs, syncs);
}

/// True if both are the same row of `pg_stat_io`.
fn is_same_row(one: &ServerIo, other: &ServerIo) -> bool {
    one.backend == other.backend && one.object == other.object && one.context == other.context
}

/// Adds to the row of the same backend, object and context.
fn add_io(sum: &mut ServerIo, more: &ServerIo) {
    debug_assert!(is_same_row(sum, more));
    let ServerIo {
        backend: _,
        object: _,
        context: _,
        read_ops,
        read_bytes,
        read_ns,
        write_ops,
        write_bytes,
        write_ns,
        extend_ops,
        extend_bytes,
        fsyncs,
        hits,
        evictions,
    } = more;
    sum.read_ns = sum_of_times(&[
        MeasuredOps::new(sum.read_ops, sum.read_ns),
        MeasuredOps::new(*read_ops, *read_ns),
    ]);
    sum.read_ops += read_ops;
    sum.read_bytes += read_bytes;
    sum.write_ns = sum_of_times(&[
        MeasuredOps::new(sum.write_ops, sum.write_ns),
        MeasuredOps::new(*write_ops, *write_ns),
    ]);
    sum.write_ops += write_ops;
    sum.write_bytes += write_bytes;
    sum.extend_ops += extend_ops;
    sum.extend_bytes += extend_bytes;
    add_known(&mut sum.fsyncs, *fsyncs);
    add_known(&mut sum.hits, *hits);
    add_known(&mut sum.evictions, *evictions);
}

/// Operations, and the time spent in them where the server measured it.
struct MeasuredOps {
    ops: u64,
    ns: Option<u64>,
}

impl MeasuredOps {
    fn new(ops: u64, ns: Option<u64>) -> Self {
        Self { ops, ns }
    }
}

/// Adds the times of operations; `None` where those of some are not known, since a mean of the rest
/// by all operations would be too short.
fn sum_of_times(parts: &[MeasuredOps]) -> Option<u64> {
    let mut sum = None;
    for part in parts {
        match part.ns {
            Some(ns) => *sum.get_or_insert(0) += ns,
            None if part.ops > 0 => return None,
            None => {}
        }
    }
    sum
}

/// Adds a count; a sum is unknown as long as all of its counts are.
fn add_known(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *sum.get_or_insert(0) += more;
    }
}

/// The load of the server, by the increases of its counters, and that of its devices in the same
/// step; `None` where a device is not known or has changed.
fn compared_load(
    devices: &[String],
    before: &ServerReading,
    after: &ServerReading,
    counters: &ServerCounters,
) -> Option<ExplainedLoad> {
    if devices.is_empty() {
        return None;
    }
    let length_ns = after.at_ns - before.at_ns;
    let mut load = ExplainedLoad {
        devices: devices.to_vec(),
        wall_ns: length_ns,
        read_bytes: counters.read_bytes(),
        write_bytes: counters.write_bytes(),
        ..ExplainedLoad::default()
    };
    for name in devices {
        let step = step_between(before.disk(name)?, after.disk(name)?, length_ns)?;
        load.device_read_bytes += step.read.bytes;
        load.device_write_bytes += step.write.bytes;
    }
    Some(load)
}

fn add_compared(sum: &mut ExplainedLoad, step: &ExplainedLoad) {
    let ExplainedLoad {
        devices,
        wall_ns,
        read_bytes,
        device_read_bytes,
        write_bytes,
        device_write_bytes,
    } = step;
    sum.devices.clone_from(devices);
    sum.wall_ns += wall_ns;
    sum.read_bytes += read_bytes;
    sum.device_read_bytes += device_read_bytes;
    sum.write_bytes += write_bytes;
    sum.device_write_bytes += device_write_bytes;
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::postgres::MeasuredTimes;
    use diskproof_model::watch::DirectionCounters;

    const SECOND_NS: u64 = 1_000_000_000;
    const PAGE: u64 = 8192;

    fn row(backend: &str, reads: u64, writes: u64) -> ServerIo {
        ServerIo {
            backend: backend.to_owned(),
            object: "relation".to_owned(),
            context: "normal".to_owned(),
            read_ops: reads,
            read_bytes: reads * PAGE,
            write_ops: writes,
            write_bytes: writes * PAGE,
            ..ServerIo::default()
        }
    }

    /// A reading after this many seconds, with bytes of WAL and sectors that the disk wrote.
    fn reading(seconds: u64, io: Vec<ServerIo>, wal_bytes: u64, sectors: u64) -> ServerReading {
        let write = DirectionCounters {
            ops: sectors,
            sectors,
            ..DirectionCounters::default()
        };
        ServerReading {
            at_ns: seconds * SECOND_NS,
            counters: ServerCounters {
                io,
                wal: ServerWal {
                    generated_bytes: wal_bytes,
                    write_bytes: wal_bytes,
                    syncs: Some(wal_bytes / PAGE),
                    ..ServerWal::default()
                },
                temp_bytes: 0,
                page_bytes: Some(PAGE),
                timed: MeasuredTimes::default(),
            },
            disks: vec![DiskReading {
                name: "sda".to_owned(),
                write,
                ..DiskReading::default()
            }],
        }
    }

    fn observer() -> ServerObserver {
        let mut observer = ServerObserver::new(SECOND_NS);
        observer.begin_session(vec!["sda".to_owned()]);
        observer
    }

    #[test]
    fn share_of_the_disk_is_the_server_over_the_device() {
        let mut observer = observer();
        let first = observer.add(reading(1, vec![row("client", 5, 0)], 0, 0));
        assert_eq!(first, None);
        // 10 pages of tables and 2 of WAL; the disk wrote 24 pages of 16 sectors.
        let io = vec![row("client", 5, 4), row("checkpointer", 0, 6)];
        let step = observer.add(reading(6, io, 2 * PAGE, 24 * 16)).unwrap();
        let names = step.counters.io.iter().map(|io| io.backend.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["checkpointer", "client"]);
        let explained = step.explained.unwrap();
        assert_eq!(explained.write_bytes, 12 * PAGE);
        assert_eq!(explained.device_write_bytes, 24 * PAGE);
        let observed = observer.summary("here", "18.4", Vec::new()).unwrap();
        assert_eq!(
            (observed.wall_ns, observed.wal.syncs),
            (5 * SECOND_NS, Some(2))
        );
        assert_eq!(observed.writes.total().bytes, 12 * PAGE);
        assert_eq!(observed.explained, Some(explained));
    }

    fn reading_of_log(seconds: u64, generated_bytes: u64, written_pages: u64) -> ServerReading {
        let mut reading = reading(seconds, Vec::new(), 0, 0);
        reading.counters.wal.generated_bytes = generated_bytes;
        reading.counters.wal.write_bytes = written_pages * PAGE;
        reading
    }

    #[test]
    fn log_before_version_18_is_the_larger_of_records_and_pages_of_each_step() {
        let mut observer = observer();
        // Since its start the server has written many records at once.
        observer.add(reading_of_log(1, 1000 * PAGE, 50));
        let small = observer.add(reading_of_log(2, 1001 * PAGE, 150)).unwrap();
        assert_eq!(small.counters.wal.write_bytes, 100 * PAGE);
        let bulk = observer.add(reading_of_log(3, 1801 * PAGE, 160)).unwrap();
        assert_eq!(bulk.counters.wal.write_bytes, 800 * PAGE);
    }

    /// The readings of a server whose reads are timed, where a time is known.
    fn observed_reads(readings: &[(u64, Option<u64>)]) -> Vec<Option<u64>> {
        let mut observer = observer();
        let mut times = Vec::new();
        for (second, (reads, read_ns)) in readings.iter().enumerate() {
            let mut io = row("client", *reads, 0);
            io.read_ns = *read_ns;
            io.evictions = Some(1);
            let mut reading = reading(second as u64, vec![io], 0, 0);
            reading.counters.wal.syncs = Some(*reads);
            reading.counters.wal.sync_ns = *read_ns;
            if let Some(step) = observer.add(reading) {
                let read_ns = step.counters.io.first().and_then(|io| io.read_ns);
                assert_eq!(step.counters.wal.sync_ns, read_ns);
                times.push(read_ns);
            }
        }
        let observed = observer.summary("here", "15.4", Vec::new()).unwrap();
        assert_eq!(observed.wal.sync_ns, observed.io[0].read_ns);
        times.push(observed.io[0].read_ns);
        times
    }

    /// The last of these is the sum.
    #[test]
    fn time_is_known_where_the_server_measured_it_from_one_reading_to_the_next() {
        let on = observed_reads(&[(5, Some(50)), (7, Some(90)), (8, Some(95))]);
        assert_eq!(on, [Some(40), Some(5), Some(45)]);
        // track_io_timing is switched on; the server had measured weeks before.
        let on_later = observed_reads(&[(5, None), (7, Some(90_000)), (9, Some(90_080))]);
        assert_eq!(on_later, [None, Some(80), None]);
        let off_later = observed_reads(&[(5, Some(50)), (7, Some(90)), (9, None)]);
        assert_eq!(off_later, [Some(40), None, None]);
    }

    #[test]
    fn row_that_appears_has_all_its_times_if_the_server_measured_them_before() {
        let on = MeasuredTimes {
            io: true,
            wal: false,
        };
        // Switched on within the step, the server has measured a part of the reads only.
        for (before, read_ns) in [(on, Some(400)), (MeasuredTimes::default(), None)] {
            let mut observer = observer();
            let mut first = reading(1, Vec::new(), 0, 0);
            first.counters.timed = before;
            observer.add(first);
            let mut io = row("client", 4, 0);
            io.read_ns = Some(400);
            let mut second = reading(2, vec![io], 0, 0);
            second.counters.timed = on;
            let step = observer.add(second).unwrap();
            assert_eq!(step.counters.io[0].read_ns, read_ns);
            let observed = observer.summary("here", "18.4", Vec::new()).unwrap();
            assert_eq!(observed.io[0].read_ns, read_ns);
        }
    }

    #[test]
    fn reset_and_reconnection_make_no_step() {
        let mut observer = observer();
        observer.add(reading(1, vec![row("client", 9, 9)], 9, 0));
        // pg_stat_reset_shared('io'), then a row that is not there any more.
        let reset = observer.add(reading(2, vec![row("client", 1, 0)], 9, 0));
        assert_eq!(reset, None);
        assert_eq!(observer.add(reading(3, Vec::new(), 9, 0)), None);
        assert!(observer.add(reading(4, Vec::new(), 10, 0)).is_some());
        observer.begin_session(vec!["sda".to_owned()]);
        assert_eq!(observer.add(reading(9, Vec::new(), 99, 0)), None);
        let observed = observer.summary("here", "18.4", Vec::new()).unwrap();
        assert_eq!(
            (observed.wall_ns, observed.wal.generated_bytes),
            (SECOND_NS, 1)
        );
    }

    #[test]
    fn shares_are_over_the_latest_half_minute() {
        let mut observer = observer();
        let mut last = None;
        for second in 0..100 {
            // All load is in the first ten seconds.
            let done = second.min(10);
            last = observer.add(reading(second, vec![row("client", 0, done)], 0, done * 16));
        }
        let explained = last.unwrap().explained.unwrap();
        assert_eq!(
            (explained.wall_ns, explained.write_bytes),
            (30 * SECOND_NS, 0)
        );
        let observed = observer.summary("here", "18.4", Vec::new()).unwrap();
        assert_eq!(observed.explained.unwrap().write_bytes, 10 * PAGE);
    }

    #[test]
    fn unknown_devices_explain_nothing() {
        let mut observer = ServerObserver::new(SECOND_NS);
        observer.begin_session(Vec::new());
        observer.add(reading(1, Vec::new(), 0, 0));
        let step = observer.add(reading(2, Vec::new(), 8, 8)).unwrap();
        assert_eq!(step.explained, None);
        observer.begin_session(vec!["sdb".to_owned()]);
        observer.add(reading(3, Vec::new(), 8, 8));
        let step = observer.add(reading(4, Vec::new(), 8, 8)).unwrap();
        let observed = observer.summary("", "", Vec::new()).unwrap();
        assert_eq!((step.explained, observed.explained), (None, None));
    }
}
