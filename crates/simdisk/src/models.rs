//! A simulated disk as plain data (`Model`) and as a pure state machine in virtual time
//! (`DiskMachine`).

pub mod cliff;
pub mod completions;
pub mod counterfeit;
pub mod credits;
pub mod direct;
#[cfg(test)]
pub(crate) mod drive;
pub mod faults;
pub mod flash;
pub mod geometry;
pub mod link;
pub mod pacing;
pub mod ragged;
pub mod rotating;
pub mod sleep;
pub mod slow;
pub mod stall;
pub mod striped;
pub mod timing;
pub mod write_cache;

use self::counterfeit::Counterfeit;
use self::direct::DirectAccess;
use self::faults::MediaFault;
use self::flash::Flash;
use self::link::Linked;
use self::ragged::Ragged;
use self::rotating::Rotating;
use self::sleep::{Sleep, Sleeper};
use self::slow::SlowRange;
use self::stall::{Stall, StallingDisk};
use self::striped::Striped;
use self::write_cache::CacheModel;

pub use self::timing::{DiskCompletion, DiskRequest, Operation, TimingModel};

/// The mechanism that moves a disk's data.
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
    /// The name in the gallery, or the text it was read from.
    pub name: String,
    /// The mechanism that moves its data.
    pub mechanism: Mechanism,
    /// Bytes/s of the link between mechanism and host; `None` is unlimited.
    pub link_bytes_per_s: Option<u64>,
    /// Unevenness of the surface.
    pub ragged: Option<Ragged>,
    /// Times at which the disk stands still.
    pub stalls: Vec<Stall>,
    /// The sleep of a disk without requests; `None` of one that never sleeps.
    pub sleep: Option<Sleep>,
    /// Places that take longer.
    pub slow: Vec<SlowRange>,
    /// Errors and short transfers.
    pub faults: Vec<MediaFault>,
    /// The fate of acknowledged writes when the power fails.
    pub write_cache: CacheModel,
    /// The answer to O_DIRECT.
    pub direct: DirectAccess,
    /// The real size and the behaviour beyond it, of a disk that claims more.
    pub counterfeit: Option<Counterfeit>,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            name: "unthrottled".to_owned(),
            mechanism: Mechanism::Flash(Flash::default()),
            link_bytes_per_s: None,
            ragged: None,
            stalls: Vec::new(),
            sleep: None,
            slow: Vec::new(),
            faults: Vec::new(),
            write_cache: CacheModel::default(),
            direct: DirectAccess::default(),
            counterfeit: None,
        }
    }
}

/// A running `Model` without its faults (see `faults::Faults`): it decides when requests end.
pub struct DiskMachine {
    timing: Box<dyn TimingModel>,
    sleeper: Option<Sleeper>,
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
                    members
                        .iter()
                        .map(|member| member.start(member_bytes))
                        .collect(),
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
            sleeper: model.sleep.map(Sleeper::new),
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
        if let Some(sleeper) = &mut self.sleeper {
            request.extra_ns += sleeper.wake_delay_ns(request.arrival_ns);
        }
        self.timing.submit(request);
    }

    fn take_done(&mut self, now_ns: u64) -> Option<DiskCompletion> {
        let done = self.timing.take_done(now_ns)?;
        if let Some(sleeper) = &mut self.sleeper {
            sleeper.ended(done.at_ns);
        }
        Some(done)
    }

    fn next_ns(&self) -> Option<u64> {
        self.timing.next_ns()
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
}
