//! What a simulated disk is (`Model`, plain data) and how it behaves in virtual time
//! (`DiskMachine`, a pure state machine). Must not know real time, FUSE, threads or the disk's content.

pub mod cliff;
pub mod credits;
pub mod direct;
pub mod done;
pub mod faults;
pub mod flash;
pub mod geometry;
pub mod link;
pub mod pacing;
pub mod ragged;
pub mod rotating;
pub mod slow;
pub mod stall;
pub mod striped;
pub mod write_cache;

use self::direct::DirectAccess;
use self::faults::MediaFault;
use self::flash::Flash;
use self::link::Linked;
use self::ragged::Ragged;
use self::rotating::Rotating;
use self::slow::SlowRange;
use self::stall::{Stall, StallingDisk};
use self::striped::Striped;
use self::write_cache::CacheModel;
use std::ops::Range;

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Data from the disk.
    Read,
    /// Data to the disk.
    Write,
    /// fsync, fdatasync, or a flush of the block device above.
    Flush,
}

/// One request, in virtual time (ns since the disk was switched on).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskRequest {
    /// Names the request in its `DiskCompletion`.
    pub ticket: u64,
    /// When the disk received it.
    pub arrival_ns: u64,
    /// Its kind.
    pub operation: Operation,
    /// First byte.
    pub offset_bytes: u64,
    /// Bytes; 0 for a flush.
    pub length_bytes: u64,
    /// Time the mechanism loses on top, in its own service time (bad sectors and the like).
    pub extra_ns: u64,
}

/// The end of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DiskCompletion {
    /// When the answer leaves the disk.
    pub at_ns: u64,
    /// Which request.
    pub ticket: u64,
}

/// A state machine that says when requests end. It never waits: the caller passes the time.
pub trait TimingModel: Send {
    /// A request arrives. Arrivals may be a little out of order, as those of a real queue.
    fn submit(&mut self, request: DiskRequest);
    /// The next request that ends at or before `now_ns`, in order of ending; `None` when there is
    /// none (yet).
    fn take_done(&mut self, now_ns: u64) -> Option<DiskCompletion>;
    /// When to call `take_done` next; `None` when nothing is in flight.
    fn next_ns(&self) -> Option<u64>;
}

/// How the disk moves data.
#[derive(Debug, Clone, PartialEq)]
pub enum Mechanism {
    /// Channels, rates and limits without moving parts.
    Flash(Flash),
    /// Platters and a head.
    Rotating(Rotating),
    /// RAID-0: `chunk_bytes` on each member in turn.
    Striped {
        /// Bytes on one member before the next one's turn.
        chunk_bytes: u64,
        /// The disks, equal in size.
        members: Vec<Mechanism>,
    },
}

/// A whole simulated disk as plain data. `Model::default()` answers everything at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Its name in the gallery, or the text it was read from.
    pub name: String,
    /// How it moves data.
    pub mechanism: Mechanism,
    /// Bytes/s of the link between mechanism and host; `None` is unlimited.
    pub link_bytes_per_s: Option<u64>,
    /// Unevenness of the surface.
    pub ragged: Option<Ragged>,
    /// Times at which the disk stands still.
    pub stalls: Vec<Stall>,
    /// Places that take longer.
    pub slow: Vec<SlowRange>,
    /// Errors and short transfers.
    pub faults: Vec<MediaFault>,
    /// What becomes of acknowledged writes when the power fails.
    pub write_cache: CacheModel,
    /// Whether O_DIRECT is possible.
    pub direct: DirectAccess,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            name: "unthrottled".to_owned(),
            mechanism: Mechanism::Flash(Flash::default()),
            link_bytes_per_s: None,
            ragged: None,
            stalls: Vec::new(),
            slow: Vec::new(),
            faults: Vec::new(),
            write_cache: CacheModel::default(),
            direct: DirectAccess::default(),
        }
    }
}

/// A running `Model` without its faults (see `faults::Faults`): the one that says when.
pub struct DiskMachine {
    timing: Box<dyn TimingModel>,
    slow: Vec<SlowRange>,
    ragged: Option<Ragged>,
}

impl Mechanism {
    /// The state machine of a disk of `size_bytes`.
    pub fn start(&self, size_bytes: u64) -> Box<dyn TimingModel> {
        match self {
            Self::Flash(flash) => Box::new(flash.start()),
            Self::Rotating(disk) => Box::new(disk.start(size_bytes)),
            Self::Striped {
                chunk_bytes,
                members,
            } => {
                let member_bytes = size_bytes.div_ceil(members.len().max(1) as u64);
                Box::new(Striped::new(
                    *chunk_bytes,
                    members.iter().map(|m| m.start(member_bytes)).collect(),
                ))
            }
        }
    }
}

impl DiskMachine {
    /// Switches the disk on at virtual time 0.
    pub fn start(model: &Model, size_bytes: u64) -> Self {
        let mut timing = model.mechanism.start(size_bytes);
        if let Some(rate) = model.link_bytes_per_s {
            timing = Box::new(Linked::new(timing, rate));
        }
        if !model.stalls.is_empty() {
            timing = Box::new(StallingDisk::new(timing, model.stalls.clone()));
        }
        Self {
            timing,
            slow: model.slow.clone(),
            ragged: model.ragged,
        }
    }
}

impl TimingModel for DiskMachine {
    fn submit(&mut self, mut request: DiskRequest) {
        if request.operation != Operation::Flush {
            let span = request.span();
            request.extra_ns +=
                slow::extra_ns(&self.slow, &span) + self.ragged.map_or(0, |r| r.extra_ns(&span));
        }
        self.timing.submit(request);
    }

    fn take_done(&mut self, now_ns: u64) -> Option<DiskCompletion> {
        self.timing.take_done(now_ns)
    }

    fn next_ns(&self) -> Option<u64> {
        self.timing.next_ns()
    }
}

impl DiskRequest {
    /// The bytes it touches.
    pub fn span(&self) -> Range<u64> {
        self.offset_bytes..self.offset_bytes + self.length_bytes
    }
}

/// The time that `bytes` take at `bytes_per_s`, rounded up; 0 for a rate of 0 (no limit is written
/// as `None` by callers).
pub fn transfer_ns(bytes: u64, bytes_per_s: u64) -> u64 {
    (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bytes_per_s.max(1))) as u64
}

/// Whether two byte ranges share a byte.
pub fn overlaps(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

#[cfg(test)]
pub(crate) mod drive {
    //! Plays a load against a machine in virtual time, exactly.
    use super::*;

    /// A request without its times.
    #[derive(Debug, Clone, Copy)]
    pub struct TestRequest {
        pub operation: Operation,
        pub offset_bytes: u64,
        pub length_bytes: u64,
    }

    pub fn read(offset_bytes: u64, length_bytes: u64) -> TestRequest {
        TestRequest {
            operation: Operation::Read,
            offset_bytes,
            length_bytes,
        }
    }

    pub fn write(offset_bytes: u64, length_bytes: u64) -> TestRequest {
        TestRequest {
            operation: Operation::Write,
            offset_bytes,
            length_bytes,
        }
    }

    pub const FLUSH: TestRequest = TestRequest {
        operation: Operation::Flush,
        offset_bytes: 0,
        length_bytes: 0,
    };

    /// Keeps `depth` requests in flight from time 0; each one's arrival and end, in order of
    /// arrival.
    pub fn closed_loop(
        timing: &mut dyn TimingModel,
        depth: usize,
        loads: &[TestRequest],
    ) -> Vec<(u64, u64)> {
        let mut times = vec![(0, 0); loads.len()];
        let mut next = 0;
        let mut now_ns = 0;
        let mut in_flight = 0;
        let mut done = 0;
        while done < loads.len() {
            while in_flight < depth && next < loads.len() {
                let TestRequest {
                    operation,
                    offset_bytes,
                    length_bytes,
                } = loads[next];
                times[next].0 = now_ns;
                timing.submit(DiskRequest {
                    ticket: next as u64,
                    arrival_ns: now_ns,
                    operation,
                    offset_bytes,
                    length_bytes,
                    extra_ns: 0,
                });
                next += 1;
                in_flight += 1;
            }
            if let Some(completion) = timing.take_done(now_ns) {
                assert!(completion.at_ns <= now_ns, "ended in the future");
                times[completion.ticket as usize].1 = completion.at_ns;
                in_flight -= 1;
                done += 1;
            } else {
                let next_ns = timing.next_ns().expect("requests are under way");
                assert!(next_ns > now_ns, "no progress at {now_ns}");
                now_ns = next_ns;
            }
        }
        assert_eq!(timing.next_ns(), None, "nothing is left");
        times
    }

    /// When the last of `loads` ended.
    pub fn total_ns(timing: &mut dyn TimingModel, depth: usize, loads: &[TestRequest]) -> u64 {
        closed_loop(timing, depth, loads)
            .iter()
            .map(|t| t.1)
            .max()
            .unwrap_or(0)
    }

    /// Repeatable random offsets, aligned to `block_bytes`, below `size_bytes` (splitmix64).
    pub fn random_offsets(count: usize, block_bytes: u64, size_bytes: u64) -> Vec<u64> {
        let mut state = 1u64;
        (0..count)
            .map(|_| {
                state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                let mut z = state;
                z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                (z ^ (z >> 31)) % (size_bytes / block_bytes) * block_bytes
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::drive::{closed_loop, read};
    use super::*;

    #[test]
    fn default_model_completes_immediately() {
        let mut machine = DiskMachine::start(&Model::default(), 1 << 30);
        assert_eq!(
            closed_loop(&mut machine, 4, &[read(0, 4096); 10]),
            vec![(0, 0); 10]
        );
    }

    #[test]
    fn transfer_time_rounds_up_without_overflow() {
        assert_eq!(transfer_ns(1_000_000, 100_000_000), 10_000_000);
        assert_eq!(transfer_ns(1, 3_000_000_000), 1);
        assert_eq!(
            transfer_ns(u64::MAX / 1000, 1_000_000_000),
            u64::MAX / 1000 + 1 - 1
        );
    }

    #[test]
    fn adjacent_ranges_do_not_overlap() {
        assert!(overlaps(&(0..10), &(9..20)));
        assert!(!overlaps(&(0..10), &(10..20)));
    }
}
