//! A simulated disk with known properties, behind the interface of a backend, in virtual time. For
//! tests.

use crate::io::buffers::Buffers;
use crate::io::clock::Clock as _;
use crate::io::{Backend, Op, RequestSource, WAIT_MAX_NS, WaitMode};
use crate::tests::simulate::FakeClock;
use diskproof_simdisk::models;
use diskproof_simdisk::models::faults::Faults;
use std::io;

/// The time of the host between a completion and the next request.
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

impl Backend for SimBackend {
    fn enqueue(&mut self, source: &mut impl RequestSource) -> io::Result<()> {
        while let Some(request) = source(&mut self.buffers) {
            let operation = match request.op {
                Op::Read => models::Operation::Read,
                Op::Write => models::Operation::Write,
                Op::Sync(_) | Op::WriteBack => models::Operation::Flush,
                Op::Call(_) => models::Operation::Trim,
            };
            let length_bytes =
                u64::from(request.len).min(self.size_bytes.saturating_sub(request.offset));
            let result = self
                .faults
                .judge(operation, &(request.offset..request.offset + length_bytes))
                .map_or_else(|errno| -errno, |n| n as i32);
            // A call moves no data.
            self.results[request.slot as usize] = match request.op {
                Op::Call(_) => result.min(0),
                _ => result,
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
            match self.machine.take_done(self.clock.now()) {
                Some(completion) => self.done.push((
                    completion.ticket as u32,
                    self.results[completion.ticket as usize],
                )),
                None => self.clock.move_to(
                    self.machine
                        .next_ns()
                        .map_or(latest, |next| next.clamp(self.clock.now() + 1, latest)),
                ),
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
        while let Some(completion) = self.machine.take_done(self.clock.now()) {
            self.done.push((
                completion.ticket as u32,
                self.results[completion.ticket as usize],
            ));
        }
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
