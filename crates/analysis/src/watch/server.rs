//! From the counters of a PostgreSQL server to its rates, and to the share of the devices' load
//! that it explains. Each reading holds the counters of the disks at the same moment.

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
/// missing.
const COMPARED_NS_MIN: u64 = 5_000_000_000;

/// A server and the disks at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerReading {
    /// When, in nanoseconds after the start of watching.
    pub at_ns: u64,
    /// What the server counted.
    pub counters: ServerCounters,
    /// What the kernel counted.
    pub disks: Vec<DiskReading>,
}

impl ServerReading {
    fn disk(&self, name: &str) -> Option<&DiskReading> {
        self.disks.iter().find(|disk| disk.name == name)
    }
}

/// A watched server: readings in, in the order of time; steps and the sum of them out.
#[derive(Debug, Clone)]
pub struct ServerObserver {
    /// Names of the devices below its data; empty where they are not known.
    devices: Vec<String>,
    /// The latest reading of this session.
    before: Option<ServerReading>,
    /// The steps within the last [`WINDOW_NS`].
    recent: VecDeque<RecentStep>,
    /// The time of all steps.
    wall_ns: u64,
    /// What the server counted in all steps.
    total: ServerCounters,
    /// The load of server and devices in all steps in which both are known.
    explained: ExplainedLoad,
    reads: TimeSeries,
    writes: TimeSeries,
    wal_writes: TimeSeries,
}

/// One of the latest steps.
#[derive(Debug, Clone)]
struct RecentStep {
    end_ns: u64,
    load: ExplainedLoad,
}

impl ServerObserver {
    /// Nothing was read yet.
    pub fn new(interval_ns: u64) -> Self {
        Self {
            devices: Vec::new(),
            before: None,
            recent: VecDeque::new(),
            wall_ns: 0,
            total: ServerCounters::default(),
            explained: ExplainedLoad::default(),
            reads: TimeSeries::new(interval_ns),
            writes: TimeSeries::new(interval_ns),
            wal_writes: TimeSeries::new(interval_ns),
        }
    }

    /// A session has begun, perhaps of another server: no step leads over the gap.
    pub fn connected(&mut self, devices: Vec<String>) {
        self.before = None;
        if self.devices != devices {
            self.recent.clear();
            self.explained = ExplainedLoad::default();
        }
        self.devices = devices;
    }

    /// The next reading; `None` for the first one, and where counters went backwards because
    /// someone reset them.
    pub fn add(&mut self, reading: ServerReading) -> Option<ServerStep> {
        let before = self.before.replace(reading.clone())?;
        let length_ns = reading.at_ns.checked_sub(before.at_ns)?;
        if length_ns == 0 {
            return None;
        }
        let mut counters = counters_between(&before.counters, &reading.counters).ok()?;
        counters.io.sort_by_key(|io| std::cmp::Reverse(io.bytes()));
        self.wall_ns += length_ns;
        add_counters(&mut self.total, &counters);
        self.add_cells(reading.at_ns, &counters);
        let latest = explained_load(&self.devices, &before, &reading, &counters, length_ns);
        let explained = match latest {
            Some(load) => {
                add_explained(&mut self.explained, &load);
                let end_ns = reading.at_ns;
                self.recent.push_back(RecentStep { end_ns, load });
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
            add_explained(&mut sum, &step.load);
        }
        sum
    }

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
        let wal_writes = Cell {
            ops: counters.wal.syncs.unwrap_or(0),
            bytes: counters.wal.write_bytes,
            ..Cell::default()
        };
        self.reads.add(before_ns, &reads, CELLS_MAX);
        self.writes.add(before_ns, &writes, CELLS_MAX);
        self.wal_writes.add(before_ns, &wal_writes, CELLS_MAX);
    }

    /// All steps together; `None` without one.
    pub fn observed(
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
            explained: long_enough(self.explained.clone()),
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

/// What all counters counted between two readings.
fn counters_between(
    before: &ServerCounters,
    after: &ServerCounters,
) -> Result<ServerCounters, CounterReset> {
    for old in &before.io {
        // Rows never vanish, except by a reset.
        if !after.io.iter().any(|new| is_same_row(old, new)) {
            return Err(CounterReset);
        }
    }
    // A row that appears has counted everything from zero, its times too.
    let idle = ServerIo {
        read_ns: Some(0),
        write_ns: Some(0),
        ..ServerIo::default()
    };
    let mut io = Vec::new();
    for new in &after.io {
        let old = before.io.iter().find(|old| is_same_row(old, new));
        io.push(io_between(old.unwrap_or(&idle), new)?);
    }
    io.retain(|row| !row.is_idle());
    let old = &before.wal;
    let new = &after.wal;
    let generated_bytes = counted(old.generated_bytes, new.generated_bytes)?;
    let write_bytes = counted(old.write_bytes, new.write_bytes)?;
    let is_counted = after.io.iter().any(ServerIo::is_wal);
    Ok(ServerCounters {
        io,
        wal: ServerWal {
            generated_bytes,
            // Before version 18 the bytes are those of a page for each write. The log has at least
            // its records; since its start, a server may have written many of them at once.
            write_bytes: if is_counted {
                write_bytes
            } else {
                write_bytes.max(generated_bytes)
            },
            write_ops: counted_if_known(old.write_ops, new.write_ops)?,
            syncs: counted_if_known(old.syncs, new.syncs)?,
            sync_ns: measured_between(old.sync_ns, new.sync_ns)?,
        },
        temp_bytes: counted(before.temp_bytes, after.temp_bytes)?,
        page_bytes: after.page_bytes,
    })
}

fn io_between(old: &ServerIo, new: &ServerIo) -> Result<ServerIo, CounterReset> {
    Ok(ServerIo {
        backend: new.backend.clone(),
        object: new.object.clone(),
        context: new.context.clone(),
        read_ops: counted(old.read_ops, new.read_ops)?,
        read_bytes: counted(old.read_bytes, new.read_bytes)?,
        read_ns: measured_between(old.read_ns, new.read_ns)?,
        write_ops: counted(old.write_ops, new.write_ops)?,
        write_bytes: counted(old.write_bytes, new.write_bytes)?,
        write_ns: measured_between(old.write_ns, new.write_ns)?,
        extend_ops: counted(old.extend_ops, new.extend_ops)?,
        extend_bytes: counted(old.extend_bytes, new.extend_bytes)?,
        fsyncs: counted_if_known(old.fsyncs, new.fsyncs)?,
        hits: counted_if_known(old.hits, new.hits)?,
        evictions: counted_if_known(old.evictions, new.evictions)?,
    })
}

/// A counter went backwards: someone reset the statistics, or the server began anew.
struct CounterReset;

/// What a counter counted between two readings.
fn counted(old: u64, new: u64) -> Result<u64, CounterReset> {
    new.checked_sub(old).ok_or(CounterReset)
}

/// The same of a counter that a server of this version may not have. One that appears has counted
/// from zero.
fn counted_if_known(old: Option<u64>, new: Option<u64>) -> Result<Option<u64>, CounterReset> {
    match new {
        None => Ok(None),
        Some(new) => Ok(Some(counted(old.unwrap_or(0), new)?)),
    }
}

/// What a server measured of a time between two readings; `None` unless it measured at both. One
/// that has just begun to measure shows all that it measured before it ceased to.
fn measured_between(old: Option<u64>, new: Option<u64>) -> Result<Option<u64>, CounterReset> {
    match (old, new) {
        (Some(old), Some(new)) => Ok(Some(counted(old, new)?)),
        _ => Ok(None),
    }
}

fn add_counters(sum: &mut ServerCounters, more: &ServerCounters) {
    for row in &more.io {
        let known = sum.io.iter_mut().find(|known| is_same_row(known, row));
        match known {
            Some(known) => add_io(known, row),
            None => sum.io.push(row.clone()),
        }
    }
    let (wal, more_wal) = (&mut sum.wal, &more.wal);
    wal.generated_bytes += more_wal.generated_bytes;
    wal.write_bytes += more_wal.write_bytes;
    add_known(&mut wal.write_ops, more_wal.write_ops);
    wal.sync_ns = sum_of_times(&[
        MeasuredOps::new(wal.syncs.unwrap_or(0), wal.sync_ns),
        MeasuredOps::new(more_wal.syncs.unwrap_or(0), more_wal.sync_ns),
    ]);
    add_known(&mut wal.syncs, more_wal.syncs);
    sum.temp_bytes += more.temp_bytes;
    sum.page_bytes = more.page_bytes;
}

/// Whether both are the same row of `pg_stat_io`.
fn is_same_row(one: &ServerIo, other: &ServerIo) -> bool {
    one.backend == other.backend && one.object == other.object && one.context == other.context
}

fn add_io(sum: &mut ServerIo, more: &ServerIo) {
    sum.read_ns = sum_of_times(&[
        MeasuredOps::new(sum.read_ops, sum.read_ns),
        MeasuredOps::new(more.read_ops, more.read_ns),
    ]);
    sum.read_ops += more.read_ops;
    sum.read_bytes += more.read_bytes;
    sum.write_ns = sum_of_times(&[
        MeasuredOps::new(sum.write_ops, sum.write_ns),
        MeasuredOps::new(more.write_ops, more.write_ns),
    ]);
    sum.write_ops += more.write_ops;
    sum.write_bytes += more.write_bytes;
    sum.extend_ops += more.extend_ops;
    sum.extend_bytes += more.extend_bytes;
    add_known(&mut sum.fsyncs, more.fsyncs);
    add_known(&mut sum.hits, more.hits);
    add_known(&mut sum.evictions, more.evictions);
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

fn add_known(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *sum.get_or_insert(0) += more;
    }
}

/// The load of the server and that of its devices in one step; `None` where a device is not known
/// or has changed.
fn explained_load(
    devices: &[String],
    before: &ServerReading,
    after: &ServerReading,
    counters: &ServerCounters,
    length_ns: u64,
) -> Option<ExplainedLoad> {
    if devices.is_empty() {
        return None;
    }
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

fn add_explained(sum: &mut ExplainedLoad, step: &ExplainedLoad) {
    sum.devices.clone_from(&step.devices);
    sum.wall_ns += step.wall_ns;
    sum.read_bytes += step.read_bytes;
    sum.device_read_bytes += step.device_read_bytes;
    sum.write_bytes += step.write_bytes;
    sum.device_write_bytes += step.device_write_bytes;
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::watch::DirectionCounters;

    const SECOND: u64 = 1_000_000_000;
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
            at_ns: seconds * SECOND,
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
            },
            disks: vec![DiskReading {
                name: "sda".to_owned(),
                write,
                ..DiskReading::default()
            }],
        }
    }

    fn observer() -> ServerObserver {
        let mut observer = ServerObserver::new(SECOND);
        observer.connected(vec!["sda".to_owned()]);
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
        let observed = observer.observed("here", "18.4", Vec::new()).unwrap();
        assert_eq!(
            (observed.wall_ns, observed.wal.syncs),
            (5 * SECOND, Some(2))
        );
        assert_eq!(observed.writes.total().bytes, 12 * PAGE);
        assert_eq!(observed.explained, Some(explained));
    }

    #[test]
    fn log_before_version_18_is_the_larger_of_records_and_pages_of_each_step() {
        let mut observer = observer();
        let at = |seconds, generated_bytes, pages| {
            let mut reading = reading(seconds, Vec::new(), 0, 0);
            reading.counters.wal.generated_bytes = generated_bytes;
            reading.counters.wal.write_bytes = pages * PAGE;
            reading
        };
        // Since its start the server has written many records at once.
        observer.add(at(1, 1000 * PAGE, 50));
        let small = observer.add(at(2, 1001 * PAGE, 150)).unwrap();
        assert_eq!(small.counters.wal.write_bytes, 100 * PAGE);
        let bulk = observer.add(at(3, 1801 * PAGE, 160)).unwrap();
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
        let observed = observer.observed("here", "15.4", Vec::new()).unwrap();
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
    fn row_that_appears_has_all_its_times() {
        let mut observer = observer();
        observer.add(reading(1, Vec::new(), 0, 0));
        let mut io = row("client", 4, 0);
        io.read_ns = Some(400);
        let step = observer.add(reading(2, vec![io], 0, 0)).unwrap();
        assert_eq!(step.counters.io[0].read_ns, Some(400));
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
        observer.connected(vec!["sda".to_owned()]);
        assert_eq!(observer.add(reading(9, Vec::new(), 99, 0)), None);
        let observed = observer.observed("here", "18.4", Vec::new()).unwrap();
        assert_eq!(
            (observed.wall_ns, observed.wal.generated_bytes),
            (SECOND, 1)
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
        assert_eq!((explained.wall_ns, explained.write_bytes), (30 * SECOND, 0));
        let observed = observer.observed("here", "18.4", Vec::new()).unwrap();
        assert_eq!(observed.explained.unwrap().write_bytes, 10 * PAGE);
    }

    #[test]
    fn unknown_devices_explain_nothing() {
        let mut observer = ServerObserver::new(SECOND);
        observer.connected(Vec::new());
        observer.add(reading(1, Vec::new(), 0, 0));
        let step = observer.add(reading(2, Vec::new(), 8, 8)).unwrap();
        assert_eq!(step.explained, None);
        observer.connected(vec!["sdb".to_owned()]);
        observer.add(reading(3, Vec::new(), 8, 8));
        let step = observer.add(reading(4, Vec::new(), 8, 8)).unwrap();
        let observed = observer.observed("", "", Vec::new()).unwrap();
        assert_eq!((step.explained, observed.explained), (None, None));
    }
}
