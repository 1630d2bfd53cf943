//! Counts the I/O of the disks below a target between two moments, by the kernel's counters, and
//! names the other processes that used storage meanwhile. To have buffered writes counted, the
//! caller must sync before [`Snapshot::finish`].

use crate::counters::exits::ExitListener;
use crate::counters::processes::ProcessCounters;
use crate::kernel::sysroot::{SysRoot, list, read_number, read_text};
use diskproof_model::measurement::{ByteCount, DeviceUse, DiskTimes, DiskTotals};
use diskproof_model::target::{Layer, TargetIdentity, TargetKind};
use diskproof_model::units::SECTOR_BYTES;
use diskproof_model::watch::{DirectionCounters, DiskReading};
use diskproof_model::window::DiskCounts;
use std::time::{Duration, Instant};

/// Counters of the disks below a target and of all other processes, at one moment.
#[derive(Debug)]
pub struct Snapshot {
    root: SysRoot,
    /// The disks of the target, or the reason why they cannot be counted.
    disks: Result<Vec<CountedDisk>, String>,
    /// Kernel names of all block devices of the target.
    layers: Vec<String>,
    /// The target itself, where it is a block device. Discards are counted there: below a loop
    /// device they become holes in a file.
    discarding: Option<CountedDisk>,
    processes: ProcessCounters,
    exits: Option<ExitListener>,
    /// Bytes that all other disks had moved since boot.
    elsewhere_bytes: Option<u64>,
    taken: Instant,
}

#[derive(Debug)]
struct CountedDisk {
    name: String,
    device: String,
    before: DiskCounters,
}

/// Counters since boot (or since the disk came): the numbers of /sys/dev/block/M:m/stat
/// (Documentation/block/stat.rst). 11, 15 since Linux 4.18 (discards), 17 since 5.5 (flushes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiskCounters(Vec<u64>);

// The places of the counters. Sectors are of 512 bytes, whatever the device has.
const READ_OPS: usize = 0;
const READ_MERGES: usize = 1;
const READ_SECTORS: usize = 2;
const READ_MS: usize = 3;
const WRITE_OPS: usize = 4;
const WRITE_MERGES: usize = 5;
const WRITE_SECTORS: usize = 6;
const WRITE_MS: usize = 7;
const IN_FLIGHT: usize = 8;
const BUSY_MS: usize = 9;
const QUEUED_MS: usize = 10;
const TRIM_OPS: usize = 11;
const TRIM_SECTORS: usize = 13;
const FLUSH_OPS: usize = 15;
/// Places whose increase means nothing or is not used: requests in flight are no counter, and
/// merges (12) and times (14) of discards are not used.
const UNUSED: [usize; 3] = [IN_FLIGHT, 12, 14];
/// Fields that every kernel has.
const FIELDS_MIN: usize = 11;

impl Snapshot {
    /// Reads the counters of the disks at the bottom of the target's layers, and those of all other
    /// processes.
    pub fn take(identity: &TargetIdentity) -> Self {
        Self {
            exits: ExitListener::open(),
            ..Self::take_in(SysRoot::default(), identity)
        }
    }

    fn take_in(root: SysRoot, identity: &TargetIdentity) -> Self {
        let processes = ProcessCounters::read(&root);
        let disks = counted_disks(&root, identity);
        let discarding = match identity.layers.first() {
            Some(layer) if identity.kind == TargetKind::BlockDevice => {
                CountedDisk::read(&root, layer).ok()
            }
            _ => None,
        };
        let layers: Vec<String> = identity
            .layers
            .iter()
            .map(|layer| layer.name.clone())
            .collect();
        Self {
            elsewhere_bytes: elsewhere_bytes(&root, &layers),
            layers,
            root,
            disks,
            discarding,
            processes,
            exits: None,
            taken: Instant::now(),
        }
    }

    /// The I/O since [`Self::take`], summed over the disks, compared with the bytes that we
    /// requested from the target in the same time (`requested`). Processes that started meanwhile
    /// count from zero; those that ended meanwhile count for the process that waited for them, or
    /// are lost.
    pub fn finish(self, requested: ByteCount) -> DeviceUse {
        // The disks first: reading /proc takes milliseconds in which others go on.
        let (changes, elapsed) = (self.changes(), self.taken.elapsed());
        let (trim_bytes, is_timed) = (self.trim_bytes(), self.is_timed());
        let elsewhere_bytes = match (
            elsewhere_bytes(&self.root, &self.layers),
            self.elsewhere_bytes,
        ) {
            (Some(now), Some(before)) => now.checked_sub(before),
            _ => None,
        };
        let processes = ProcessCounters::read(&self.root);
        let ended = self.exits.and_then(ExitListener::into_ended_threads);
        let others = processes.since(&self.processes, ended.as_deref().unwrap_or_default());
        let disks = self
            .disks
            .iter()
            .flatten()
            .map(|disk| disk.name.clone())
            .collect();
        let (sum, unresolved) = match changes {
            Ok(sum) => (sum, None),
            Err(reason) => (DiskCounters(vec![0; FIELDS_MIN]), Some(reason)),
        };
        let is_known = unresolved.is_none();
        let times = if is_timed && is_known {
            Some(sum.times(elapsed))
        } else {
            None
        };
        let queue_depth =
            times.map(|times| times.queued_ms as f64 / (elapsed.as_secs_f64() * 1e3).max(1.0));
        let device = DeviceUse {
            disks,
            queue_depth,
            times,
            read_bytes: sum.bytes(READ_SECTORS),
            write_bytes: sum.bytes(WRITE_SECTORS),
            read_ops: sum.number(READ_OPS),
            write_ops: sum.number(WRITE_OPS),
            flush_ops: sum.flush_ops(),
            trim_bytes: if is_known { trim_bytes } else { None },
            accounted: None,
            unresolved,
            elsewhere_bytes,
            exits_reported: ended.is_some(),
            others: others.processes,
            others_hidden: others.hidden,
        };
        if !is_known {
            return device;
        }
        DeviceUse {
            accounted: device.share_of(requested),
            ..device
        }
    }

    /// The I/O of the disks since [`Self::take`]; `None` where they cannot be found or counted.
    pub fn counts(&self) -> Option<DiskCounts> {
        let sum = self.changes().ok()?;
        Some(DiskCounts {
            read_bytes: sum.bytes(READ_SECTORS),
            write_bytes: sum.bytes(WRITE_SECTORS),
            read_ops: sum.number(READ_OPS),
            write_ops: sum.number(WRITE_OPS),
            flush_ops: sum.flush_ops(),
            trim_bytes: self.trim_bytes(),
            queued_ms: if self.is_timed() {
                Some(sum.number(QUEUED_MS))
            } else {
                None
            },
        })
    }

    /// True if the kernel times the requests of all disks.
    fn is_timed(&self) -> bool {
        self.disks
            .iter()
            .flatten()
            .all(|disk| times_requests(&self.root, &disk.device))
    }

    /// Returns the bytes that the target's own device discarded.
    fn trim_bytes(&self) -> Option<u64> {
        let change = self.discarding.as_ref()?.change(&self.root).ok()?;
        change.0.get(TRIM_SECTORS)?;
        Some(change.bytes(TRIM_SECTORS))
    }

    /// The increase of the counters, summed over all disks.
    fn changes(&self) -> Result<DiskCounters, String> {
        let mut sum = DiskCounters(vec![0; FLUSH_OPS + 1]);
        for disk in self.disks.as_ref().map_err(String::clone)? {
            sum.add(&disk.change(&self.root)?);
        }
        Ok(sum)
    }
}

/// The disks at the bottom of the target's layers with their counters, or why they cannot be
/// counted.
fn counted_disks(root: &SysRoot, identity: &TargetIdentity) -> Result<Vec<CountedDisk>, String> {
    let mut disks = Vec::new();
    for layer in identity.disks() {
        disks.push(CountedDisk::read(root, layer)?);
    }
    if !disks.is_empty() {
        return Ok(disks);
    }
    match &identity.unresolved {
        Some(reason) => Err(reason.clone()),
        None => Err("no disk was found below the target".to_owned()),
    }
}

impl CountedDisk {
    fn read(root: &SysRoot, layer: &Layer) -> Result<Self, String> {
        Ok(Self {
            before: read_counters(root, &layer.name, &layer.device)?,
            name: layer.name.clone(),
            device: layer.device.clone(),
        })
    }

    /// Returns how the counters changed since the disk was first read.
    fn change(&self, root: &SysRoot) -> Result<DiskCounters, String> {
        let after = read_counters(root, &self.name, &self.device)?;
        after.since(&self.before).ok_or_else(|| {
            format!(
                "the counters of {} went backwards (the disk was replaced, or a counter \
                 overflowed); run again",
                self.name
            )
        })
    }
}

impl DiskCounters {
    /// Reads the words of a line that follow the disk's name; newer kernels count more.
    pub(crate) fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut fields = Vec::new();
        for word in words.take(FLUSH_OPS + 1) {
            fields.push(word.parse().ok()?);
        }
        if fields.len() < FIELDS_MIN {
            return None;
        }
        Some(Self(fields))
    }

    /// The reading with all counters, of a disk of this name and these numbers.
    pub(crate) fn reading(&self, name: &str, device: (u32, u32)) -> DiskReading {
        DiskReading {
            name: name.to_owned(),
            device,
            read: self.direction(READ_OPS),
            write: self.direction(WRITE_OPS),
            in_flight: self.in_flight(),
            busy_ms: self.number(BUSY_MS),
            queued_ms: self.number(QUEUED_MS),
            flush_ops: self.flush_ops(),
        }
    }

    /// The four counters of reads or of writes, from the first one.
    fn direction(&self, first: usize) -> DirectionCounters {
        DirectionCounters {
            ops: self.number(first),
            merges: self.number(first + 1),
            sectors: self.number(first + 2),
            ms: self.number(first + 3),
        }
    }

    fn flush_ops(&self) -> Option<u64> {
        self.0.get(FLUSH_OPS).copied()
    }

    /// The requests that were completed.
    pub(crate) fn completed(&self) -> u64 {
        [READ_OPS, WRITE_OPS, TRIM_OPS, FLUSH_OPS]
            .into_iter()
            .map(|place| self.number(place))
            .sum()
    }

    /// The requests that wait for the disk now.
    pub(crate) fn in_flight(&self) -> u64 {
        self.number(IN_FLIGHT)
    }

    /// The bytes that reads and writes have moved.
    pub(crate) fn moved_bytes(&self) -> u64 {
        self.bytes(READ_SECTORS)
            .saturating_add(self.bytes(WRITE_SECTORS))
    }

    /// The time in which requests were in flight, in milliseconds.
    pub(crate) fn busy_ms(&self) -> u64 {
        self.number(BUSY_MS)
    }

    /// The counter at a place; 0 where the kernel does not have it.
    fn number(&self, place: usize) -> u64 {
        self.0.get(place).copied().unwrap_or(0)
    }

    fn bytes(&self, place: usize) -> u64 {
        self.number(place).saturating_mul(SECTOR_BYTES)
    }

    fn times(&self, elapsed: Duration) -> DiskTimes {
        DiskTimes {
            read_merges: self.number(READ_MERGES),
            read_ms: self.number(READ_MS),
            write_merges: self.number(WRITE_MERGES),
            write_ms: self.number(WRITE_MS),
            busy_ms: self.number(BUSY_MS),
            queued_ms: self.number(QUEUED_MS),
            elapsed_ms: elapsed.as_millis() as u64,
        }
    }

    /// Adds all but the time that passed.
    pub(crate) fn add_to(&self, total: &mut DiskTotals) {
        total.read_ops += self.number(READ_OPS);
        total.write_ops += self.number(WRITE_OPS);
        total.times = total.times.followed_by(self.times(Duration::ZERO));
    }

    /// The increase of each counter since `before`; `None` when any of them is smaller than before.
    pub(crate) fn since(&self, before: &Self) -> Option<Self> {
        let mut changes = Vec::new();
        for (place, (now, earlier)) in self.0.iter().zip(&before.0).enumerate() {
            changes.push(match place {
                READ_MS | WRITE_MS | BUSY_MS | QUEUED_MS => wrapped_since(*now, *earlier),
                _ if UNUSED.contains(&place) => 0,
                _ => now.checked_sub(*earlier)?,
            });
        }
        Some(Self(changes))
    }

    /// Adds the counters that both have, and drops those that only one has.
    fn add(&mut self, other: &Self) {
        self.0.truncate(other.0.len());
        for (sum, counter) in self.0.iter_mut().zip(&other.0) {
            *sum = sum.saturating_add(*counter);
        }
    }
}

/// The difference of two times in milliseconds, which the kernel prints as 32-bit numbers
/// (part_stat_show in linux/block/genhd.c): with 32 requests in flight the sum of their times
/// begins anew every 37 hours.
fn wrapped_since(now: u64, earlier: u64) -> u64 {
    u64::from((now as u32).wrapping_sub(earlier as u32))
}

/// Reads the counters of the disk `name` with the numbers `device` (`major:minor`). The error says
/// why there are none, and for a switch of the kernel how to turn it on.
pub(crate) fn read_counters(
    root: &SysRoot,
    name: &str,
    device: &str,
) -> Result<DiskCounters, String> {
    let directory = root.sys.join("dev/block").join(device);
    if read_number::<u32>(&directory.join("queue/iostats")) == Some(0) {
        return Err(format!(
            "the kernel does not count for {name}; echo 1 > /sys/block/{name}/queue/iostats"
        ));
    }
    let text = read_text(&directory.join("stat")).ok_or_else(|| {
        format!("sysfs shows no counters for {name} ({device}); the device may have been removed")
    })?;
    DiskCounters::parse(text.split_whitespace())
        .ok_or_else(|| format!("the counters of {name} cannot be read: '{text}'"))
}

/// Bytes that all disks but those of these names have moved since boot; `None` where one of them is
/// not counted. What lies on top of other disks counts there.
fn elsewhere_bytes(root: &SysRoot, ours: &[String]) -> Option<u64> {
    let block = root.sys.join("block");
    let mut sum: u64 = 0;
    for name in list(&block) {
        let directory = block.join(&name);
        if ours.contains(&name) || !list(&directory.join("slaves")).is_empty() {
            continue;
        }
        let text = read_text(&directory.join("stat"))?;
        let counters = DiskCounters::parse(text.split_whitespace())?;
        sum = sum
            .saturating_add(counters.bytes(READ_SECTORS))
            .saturating_add(counters.bytes(WRITE_SECTORS));
    }
    Some(sum)
}

/// True where the kernel times each request of the device by itself: on devices with a request
/// queue (blk-mq). Others count in ticks, which miss whatever is shorter than one.
fn times_requests(root: &SysRoot, device: &str) -> bool {
    root.sys.join("dev/block").join(device).join("mq").is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::disk::bare_layer;
    use diskproof_model::target::TargetKind;

    use std::path::PathBuf;

    const ASKED: ByteCount = ByteCount {
        read_bytes: 1 << 20,
        write_bytes: 1 << 20,
        trim_bytes: 0,
    };

    fn identity(disks: &[(&str, &str)]) -> TargetIdentity {
        TargetIdentity {
            path: "/data".into(),
            kind: TargetKind::Directory,
            size_bytes: 0,
            free_bytes: None,
            device: "9:0".into(),
            inode: 2,
            filesystem: None,
            layers: disks
                .iter()
                .map(|(name, device)| bare_layer(name, device))
                .collect(),
            unresolved: disks.is_empty().then(|| "on a server".into()),
        }
    }

    /// A machine with one disk, or more.
    struct Machine(tempfile::TempDir);

    impl Machine {
        /// With this line of counters of its disk.
        fn new(line: &str) -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            machine.count("8:0", line);
            machine
        }

        fn root(&self) -> SysRoot {
            SysRoot {
                sys: self.0.path().join("sys"),
                proc: self.0.path().join("proc"),
            }
        }

        fn file(&self, name: &str) -> PathBuf {
            self.root().sys.join("dev/block").join(name)
        }

        fn count(&self, device: &str, line: &str) {
            std::fs::create_dir_all(self.file(device).join("queue")).unwrap();
            std::fs::write(self.file(device).join("stat"), line).unwrap();
        }

        fn snapshot(&self) -> Snapshot {
            Snapshot::take_in(self.root(), &identity(&[("sda", "8:0")]))
        }
    }

    const BEFORE: &str = "10 0 100 5 20 0 200 5 0 9 9 0 0 0 0 3 1\n";
    /// Before Linux 4.18.
    const OLD: &str = "10 0 100 5 20 0 200 5 0 9 9";

    #[test]
    fn disks_of_a_raid_are_summed() {
        let machine = Machine::new(BEFORE);
        machine.count("8:16", "1 0 10 5 2 0 20 5 0 9 9 0 0 0 0 7 1\n");
        let raid = identity(&[("sda", "8:0"), ("sdb", "8:16")]);
        let snapshot = Snapshot::take_in(machine.root(), &raid);
        machine.count("8:0", "11 0 2148 5 21 0 1224 5 0 9 9 0 0 0 0 4 1\n");
        machine.count("8:16", "3 0 2058 5 5 0 1044 5 0 9 9 0 0 0 0 9 1\n");
        let found = snapshot.finish(ASKED);
        assert_eq!(found.disks, ["sda", "sdb"]);
        assert_eq!((found.read_bytes, found.write_bytes), (2 << 20, 1 << 20));
        assert_eq!((found.read_ops, found.write_ops), (3, 4));
        assert_eq!(found.flush_ops, Some(3));
        assert_eq!((found.accounted, found.unresolved), (Some(1.5), None));
    }

    #[test]
    fn discards_count_at_the_device_itself_and_not_below_a_file() {
        let asked = ByteCount {
            trim_bytes: 2 << 20,
            ..ByteCount::default()
        };
        let found = |kind| {
            let machine = Machine::new("10 0 100 5 20 0 200 5 0 9 9 5 0 100 0 3 1\n");
            let mut target = identity(&[("sda", "8:0")]);
            target.kind = kind;
            let snapshot = Snapshot::take_in(machine.root(), &target);
            machine.count("8:0", "10 0 100 5 20 0 200 5 0 9 9 7 0 2148 0 3 1\n");
            let found = snapshot.finish(asked);
            (found.trim_bytes, found.accounted)
        };
        assert_eq!(found(TargetKind::BlockDevice), (Some(1 << 20), Some(0.5)));
        assert_eq!(found(TargetKind::Directory), (None, None));
    }

    #[test]
    fn queue_is_reported_only_where_requests_are_timed() {
        let machine = Machine::new(BEFORE);
        assert_eq!(machine.snapshot().finish(ASKED).queue_depth, None);
        std::fs::create_dir(machine.file("8:0/mq")).unwrap();
        let with = machine.snapshot();
        machine.count("8:0", "10 2 100 7 20 3 200 9 0 10 90009 0 0 0 0 3 1\n");
        let found = with.finish(ASKED);
        // 90 s of waiting in far less time.
        assert!(found.queue_depth.unwrap() > 0.0);
        let times = DiskTimes {
            elapsed_ms: 0,
            ..found.times.unwrap()
        };
        let expected = DiskTimes {
            read_merges: 2,
            write_merges: 3,
            read_ms: 2,
            write_ms: 4,
            queued_ms: 90_000,
            busy_ms: 1,
            elapsed_ms: 0,
        };
        assert_eq!(times, expected);
        assert_eq!(wrapped_since(3, u64::from(u32::MAX)), 4);
    }

    #[test]
    fn times_that_begin_anew_at_32_bits_count_on() {
        let near = u32::MAX - 10;
        let before = format!("10 0 100 {near} 20 0 200 {near} 0 {near} {near} 0 0 0 0 3 1\n");
        let machine = Machine::new(&before);
        std::fs::create_dir(machine.file("8:0/mq")).unwrap();
        let snapshot = machine.snapshot();
        machine.count("8:0", "11 0 2148 9 20 0 200 9 0 9 9 0 0 0 0 3 1\n");
        assert_eq!(snapshot.counts().unwrap().queued_ms, Some(20));
        let found = snapshot.finish(ASKED);
        let times = found.times.unwrap();
        assert_eq!([times.queued_ms, times.busy_ms, times.read_ms], [20; 3]);
        assert_eq!((found.read_bytes, found.unresolved), (1 << 20, None));
    }

    #[test]
    fn old_kernels_have_no_flushes_and_nothing_asked_is_not_accounted() {
        let found = Machine::new(OLD).snapshot().finish(ByteCount::default());
        assert_eq!((found.flush_ops, found.accounted), (None, None));
        assert_eq!(found.unresolved, None);
    }

    #[test]
    fn what_cannot_be_counted_is_said_and_never_guessed() {
        let machine = Machine::new(OLD);
        let why = |snapshot: Snapshot| {
            let found = snapshot.finish(ASKED);
            assert_eq!(found.accounted, None);
            found.unresolved.unwrap()
        };
        let snapshot = machine.snapshot();
        machine.count("8:0", "9 0 100 5 20 0 200 5 0 9 9");
        let backwards = why(snapshot);
        let snapshot = machine.snapshot();
        std::fs::remove_file(machine.file("8:0/stat")).unwrap();
        assert_ne!(why(snapshot), backwards);
        machine.count("8:0", OLD);
        std::fs::write(machine.file("8:0/queue/iostats"), "0\n").unwrap();
        let off = why(machine.snapshot());
        assert!(
            off.ends_with("echo 1 > /sys/block/sda/queue/iostats"),
            "{off}"
        );
        let nowhere = Snapshot::take_in(machine.root(), &identity(&[]));
        assert_eq!(why(nowhere), "on a server");
    }
}
