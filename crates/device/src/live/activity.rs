//! Which processes read from and write to storage, step by step, from /proc/PID/io. It does not say
//! which disk a process used.

use crate::processes::ProcessCounters;
use crate::sysroot::SysRoot;
use diskproof_model::watch::BusyProcess;

/// Reads the counters of all processes repeatedly.
#[derive(Debug)]
pub struct ProcessActivity {
    before: ProcessCounters,
}

/// The processes that moved something in a step.
#[derive(Debug, Default)]
pub struct ActiveProcesses {
    /// The busiest first, at most ten.
    pub busiest: Vec<BusyProcess>,
    /// Processes of other users that this one may not look at.
    pub hidden: u32,
}

impl ProcessActivity {
    /// From now on.
    pub fn start() -> Self {
        Self {
            before: ProcessCounters::read(&SysRoot::default()),
        }
    }

    /// What moved since the last call.
    pub fn step(&mut self) -> ActiveProcesses {
        let now = ProcessCounters::read(&SysRoot::default());
        let before = std::mem::replace(&mut self.before, now.clone());
        let (others, hidden) = now.since(&before, &[]);
        let busiest = others.into_iter().map(|other| BusyProcess {
            pid: other.pid,
            name: other.name,
            requests: None,
            read_bytes: other.read_bytes,
            write_bytes: other.write_bytes,
        });
        ActiveProcesses {
            busiest: busiest.collect(),
            hidden,
        }
    }
}
