//! Decides the steps of a transaction in a slot, from its first read to its last write. The pattern
//! says where its reads and writes go, the log where its record goes.

use crate::io::Extent;
use crate::load::pattern::Step;
use diskproof_model::op::OpKind;
use diskproof_model::transaction::Transaction;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The log of a workload, to which all its workers append.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    extent: Extent,
    record_bytes: u32,
    /// Records that were appended.
    appended: Arc<AtomicU64>,
}

impl Log {
    /// Splits the span of a workload; `None` where data and log do not fit, or where the log would
    /// hold no record.
    pub(crate) fn split_span(span: Extent, transaction: Transaction) -> Option<SplitSpan> {
        let data_bytes = span.length.checked_sub(transaction.log_span_bytes)?;
        let record_bytes = u64::from(transaction.log_bytes);
        // A record begins at a multiple of its length, so that none is written in part.
        let start = (span.start + data_bytes).next_multiple_of(record_bytes);
        let length = span.end().checked_sub(start)? / record_bytes * record_bytes;
        if data_bytes == 0 || length == 0 {
            return None;
        }
        let log = Self {
            extent: Extent { start, length },
            record_bytes: transaction.log_bytes,
            appended: Arc::default(),
        };
        Some(SplitSpan {
            data: Extent::new(span.start, data_bytes),
            log,
        })
    }

    /// The next record: behind the one before, or at the start again.
    fn append(&self) -> Step {
        let number = self.appended.fetch_add(1, Ordering::Relaxed);
        let record_bytes = u64::from(self.record_bytes);
        let records = self.extent.length / record_bytes;
        Step {
            kind: OpKind::Write,
            offset: self.extent.start + number % records * record_bytes,
            len: self.record_bytes,
        }
    }
}

/// The span of a workload with transactions.
#[derive(Debug, Clone)]
pub(crate) struct SplitSpan {
    /// The blocks of its reads and writes.
    pub data: Extent,
    /// The log, which lies behind the data.
    pub log: Log,
}

/// The place of a slot in its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Reading; so many reads follow this one.
    Reads { left: u32 },
    /// Appending, or waiting for the sync of the record.
    Append,
    /// Writing after the answer; so many writes follow this one.
    Writes { left: u32 },
}

/// A transaction that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answered {
    /// From before its first request to the return of its sync.
    pub latency_ns: u64,
    /// The time from its intended start to its real one.
    pub waited_ns: u64,
    /// Bytes that moved until then.
    pub bytes: u32,
}

/// The transaction of one slot.
#[derive(Debug, Clone, Copy)]
struct SlotTransaction {
    phase: Phase,
    start_ns: u64,
    waited_ns: u64,
}

/// The transactions of a worker.
#[derive(Debug, Clone)]
pub(crate) struct Transactions {
    shape: Transaction,
    answered_bytes: u32,
    log: Log,
    slots: Vec<SlotTransaction>,
}

impl Transactions {
    /// None has begun in any of so many slots.
    pub(crate) fn new(shape: Transaction, block_bytes: u32, log: Log, slots: u32) -> Self {
        let idle = SlotTransaction {
            phase: Phase::Append,
            start_ns: 0,
            waited_ns: 0,
        };
        let answered_bytes = shape.answered_bytes(block_bytes);
        Self {
            shape,
            answered_bytes: u32::try_from(answered_bytes).unwrap_or(u32::MAX),
            log,
            slots: vec![idle; slots as usize],
        }
    }

    /// Begins a transaction, `waited_ns` after its intended start. Returns its first step, whose
    /// place in the data is that of `step`.
    pub(crate) fn begin(&mut self, index: u32, now: u64, waited_ns: u64, step: Step) -> Step {
        let slot = &mut self.slots[index as usize];
        (slot.start_ns, slot.waited_ns) = (now, waited_ns);
        if self.shape.reads == 0 {
            slot.phase = Phase::Append;
            return self.log.append();
        }
        slot.phase = Phase::Reads {
            left: self.shape.reads - 1,
        };
        Step {
            kind: OpKind::Read,
            ..step
        }
    }

    /// The step after the one that is done, whose place in the data is that of `step`; `None` where
    /// the slot has done everything.
    pub(crate) fn next(&mut self, index: u32, step: Step) -> Option<Step> {
        let slot = &mut self.slots[index as usize];
        match slot.phase {
            Phase::Reads { left: 0 } => {
                slot.phase = Phase::Append;
                Some(self.log.append())
            }
            Phase::Reads { left } => {
                slot.phase = Phase::Reads { left: left - 1 };
                Some(Step {
                    kind: OpKind::Read,
                    ..step
                })
            }
            Phase::Append => self.write_after(index, self.shape.writes, step),
            Phase::Writes { left } => self.write_after(index, left, step),
        }
    }

    /// The first of so many writes after the answer; `None` where there are none.
    fn write_after(&mut self, index: u32, writes: u32, step: Step) -> Option<Step> {
        let left = writes.checked_sub(1)?;
        self.slots[index as usize].phase = Phase::Writes { left };
        Some(Step {
            kind: OpKind::Write,
            ..step
        })
    }

    /// True where the transaction of a slot is answered: no sync follows what the slot writes.
    pub(crate) fn is_answered(&self, index: u32) -> bool {
        matches!(self.slots[index as usize].phase, Phase::Writes { .. })
    }

    /// The transaction of a slot whose sync has returned at `now`.
    pub(crate) fn answered(&self, index: u32, now: u64) -> Answered {
        let slot = self.slots[index as usize];
        Answered {
            latency_ns: now - slot.start_ns,
            waited_ns: slot.waited_ns,
            bytes: self.answered_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u32 = 8192;
    const SHAPE: Transaction = Transaction {
        reads: 2,
        log_bytes: 4096,
        log_span_bytes: 3 * 4096,
        writes: 1,
    };

    fn place(offset: u64) -> Step {
        Step {
            kind: OpKind::Write,
            offset,
            len: BLOCK,
        }
    }

    #[test]
    fn transaction_reads_then_appends_and_writes_after_the_answer() {
        let span = Extent::new(8192, 10 * 8192 + 3 * 4096);
        let SplitSpan { data, log } = Log::split_span(span, SHAPE).unwrap();
        assert_eq!((data.start, data.length), (8192, 10 * 8192));
        let mut transactions = Transactions::new(SHAPE, BLOCK, log, 2);
        let first = transactions.begin(1, 1000, 50, place(8192));
        assert_eq!(
            (first.kind, first.offset, first.len),
            (OpKind::Read, 8192, BLOCK)
        );
        let second = transactions.next(1, place(16384)).unwrap();
        assert_eq!((second.kind, second.offset), (OpKind::Read, 16384));
        let append = transactions.next(1, place(0)).unwrap();
        assert_eq!((append.kind, append.len), (OpKind::Write, 4096));
        assert_eq!(append.offset, data.end());
        assert!(!transactions.is_answered(1));
        let answered = transactions.answered(1, 3000);
        assert_eq!((answered.latency_ns, answered.waited_ns), (2000, 50));
        assert_eq!(answered.bytes, 2 * BLOCK + 4096);
        let write = transactions.next(1, place(24576)).unwrap();
        assert_eq!(
            (write.kind, write.offset, write.len),
            (OpKind::Write, 24576, BLOCK)
        );
        assert!(transactions.is_answered(1));
        assert_eq!(transactions.next(1, place(0)), None);
    }

    #[test]
    fn log_of_all_workers_goes_round_and_stays_in_its_span() {
        let span = Extent::new(0, 100 * 8192);
        let SplitSpan { data, log } = Log::split_span(span, SHAPE).unwrap();
        let other = log.clone();
        let mut offsets = Vec::new();
        for _ in 0..2 {
            offsets.extend([log.append().offset, other.append().offset]);
        }
        let start = data.end();
        assert_eq!(offsets, [start, start + 4096, start + 8192, start]);
    }

    #[test]
    fn span_without_room_for_a_log_has_none() {
        assert!(Log::split_span(Extent::new(0, 3 * 4096), SHAPE).is_none());
        assert!(Log::split_span(Extent::new(0, 4096), SHAPE).is_none());
        let unaligned = Transaction {
            log_span_bytes: 4096,
            ..SHAPE
        };
        assert!(Log::split_span(Extent::new(0, 8192 + 512), unaligned).is_none());
    }
}
