//! Completes every request at once, in full, without I/O. Shows the limit of the program itself.

use super::buffers::Buffers;
use super::{Backend, Op, RequestSource};
use std::io;

/// Completes everything at once.
#[derive(Debug)]
pub struct NullBackend {
    buffers: Buffers,
    /// Slots and results that the next reap takes.
    done: Vec<(u32, i32)>,
}

impl NullBackend {
    /// For up to `depth` requests in flight.
    pub fn new(buffers: Buffers, depth: usize) -> Self {
        Self {
            buffers,
            done: Vec::with_capacity(depth),
        }
    }
}

impl Backend for NullBackend {
    #[inline(always)]
    fn enqueue(&mut self, source: &mut impl RequestSource) -> io::Result<()> {
        while let Some(request) = source(&mut self.buffers) {
            let result = match request.op {
                Op::Read | Op::Write => request.len as i32,
                Op::Sync(_) | Op::SyncRange(_) | Op::Call(_) => 0,
            };
            self.done.push((request.slot, result));
        }
        Ok(())
    }

    #[inline(always)]
    fn reap(&mut self, sink: &mut impl FnMut(u32, i32)) {
        self.done
            .drain(..)
            .for_each(|(slot, result)| sink(slot, result));
    }

    fn buffers(&self) -> &Buffers {
        &self.buffers
    }
}
