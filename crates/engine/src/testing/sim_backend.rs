//! Puts a simulated disk with known properties behind the interface of a backend, in virtual time.
//! For tests.

use crate::io::buffers::Buffers;
use crate::io::clock::Clock as _;
use crate::io::{Backend, BlockCall, Op, RequestSource, WAIT_MAX_NS, WaitMode};
use crate::testing::simulate::FakeClock;
use diskproof_simdisk::Model;
use diskproof_simdisk::models;
use diskproof_simdisk::models::faults::Faults;
use std::io;

/// The time of the host between a completion and the next request. Chosen: as on a slow machine.
pub(crate) const HOST_NS: u64 = 30_000;

/// A simulated disk behind the backend's interface, in virtual time. The host needs some time
/// between a completion and the next request, as real ones do.
pub(crate) struct SimBackend {
    pub(crate) clock: FakeClock,
    pub(crate) machine: Box<dyn models::TimingModel>,
    pub(crate) faults: Faults,
    pub(crate) buffers: Buffers,
    pub(crate) size_bytes: u64,
    /// Result by slot.
    pub(crate) results: Vec<i32>,
    pub(crate) done: Vec<(u32, i32)>,
    pub(crate) host_ns: u64,
    /// When the host pauses, and for how long: it sees completions late.
    pub(crate) pauses: Vec<(u64, u64)>,
}

impl SimBackend {
    /// A disk of this model, without pauses of the host, on a clock of its own.
    pub(crate) fn new(model: &Model, size_bytes: u64, depth: u32, request_bytes: u64) -> Self {
        Self {
            clock: FakeClock::default(),
            machine: Box::new(models::DiskMachine::start(model, size_bytes)),
            faults: Faults::new(model.faults.clone()),
            buffers: Buffers::new(depth as usize, request_bytes as usize).unwrap(),
            size_bytes,
            results: vec![0; depth as usize],
            done: Vec::new(),
            host_ns: HOST_NS,
            pauses: Vec::new(),
        }
    }

    /// True if another request has completed by now.
    fn take_done(&mut self) -> bool {
        let done = self.machine.take_done(self.clock.now());
        let result = |ticket: u64| (ticket as u32, self.results[ticket as usize]);
        self.done.extend(done.map(|done| result(done.ticket)));
        done.is_some()
    }
}

impl Backend for SimBackend {
    fn enqueue(&mut self, source: &mut impl RequestSource) -> io::Result<()> {
        while let Some(request) = source(&mut self.buffers) {
            let operation = match request.op {
                Op::Read => models::Operation::Read,
                Op::Write => models::Operation::Write,
                Op::Sync(_) | Op::SyncRange(_) => models::Operation::Flush,
                Op::Call(BlockCall::Discard | BlockCall::PunchHole) => models::Operation::Trim,
            };
            let length_bytes =
                u64::from(request.len).min(self.size_bytes.saturating_sub(request.offset));
            let result = self
                .faults
                .transfer(operation, &(request.offset..request.offset + length_bytes))
                .map_or_else(|errno| -errno, |n| n as i32);
            self.results[request.slot as usize] = if request.op.moves_data() {
                result
            } else {
                result.min(0)
            };
            self.machine.submit(models::DiskRequest {
                ticket: u64::from(request.slot),
                arrival_ns: self.clock.now(),
                operation,
                offset_bytes: request.offset,
                length_bytes,
                extra_ns: 0,
            });
        }
        Ok(())
    }

    fn wait(&mut self, _: WaitMode) -> io::Result<()> {
        let latest = self.clock.now() + WAIT_MAX_NS;
        while self.done.is_empty() && self.clock.now() < latest {
            if !self.take_done() {
                let soonest = self.clock.now() + 1;
                let next_ns = self.machine.next_ns();
                let next_ns = next_ns.map_or(latest, |next| next.clamp(soonest, latest));
                self.clock.move_to(next_ns);
            }
        }
        let now = self.clock.now();
        self.clock.move_to(now + self.host_ns);
        self.pauses.retain(|(at, length)| {
            let is_due = *at <= now;
            if is_due {
                self.clock.move_to(now + length);
            }
            !is_due
        });
        while self.take_done() {}
        Ok(())
    }

    fn reap(&mut self, sink: &mut impl FnMut(u32, i32)) {
        self.done
            .drain(..)
            .for_each(|(slot, result)| sink(slot, result));
    }

    fn buffers(&self) -> &Buffers {
        &self.buffers
    }
}
