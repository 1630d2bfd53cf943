//! What a session of a database does between two commits, as a load: reads that depend on each
//! other, a record appended to the log and made durable, and writes that nobody waits for. Public
//! as part of `plan`.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// The most reads, and the most writes, of one transaction.
pub const TRANSACTION_PARTS_MAX: u32 = 1000;
/// The longest record of a log.
pub const LOG_BYTES_MAX: u32 = 64 << 20;

/// A transaction: its reads one after the other, then the append and its sync. Then it is answered,
/// and its session writes before it begins the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Transaction {
    /// Random reads of the workload's block size, each after the one before.
    pub reads: u32,
    /// Bytes of the record that is appended to the log, and made durable as the workload says.
    pub log_bytes: u32,
    /// Bytes at the end of the workload's span that hold the log, which begins anew when it is
    /// full; the reads and writes go to the rest.
    pub log_span_bytes: u64,
    /// Random writes of the workload's block size after the answer.
    pub writes: u32,
}

impl Transaction {
    /// Bytes that move before the answer, with reads of this size.
    pub fn answered_bytes(&self, block_bytes: u32) -> u64 {
        u64::from(self.reads) * u64::from(block_bytes) + u64::from(self.log_bytes)
    }

    /// The share of reads among its requests for blocks, in permille.
    pub fn read_permille(&self) -> u16 {
        let requests = u64::from(self.reads) + 1 + u64::from(self.writes);
        (u64::from(self.reads) * 1000 / requests) as u16
    }
}

impl<'de> Deserialize<'de> for Transaction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = TransactionForm::deserialize(deserializer)?;
        let parts = form.reads.max(form.writes);
        let fits_the_log = u64::from(form.log_bytes) <= form.log_span_bytes;
        if parts > TRANSACTION_PARTS_MAX
            || !(1..=LOG_BYTES_MAX).contains(&form.log_bytes)
            || !fits_the_log
        {
            return Err(D::Error::custom(format!(
                "a transaction has up to {TRANSACTION_PARTS_MAX} reads and writes, and a log that \
                 holds its record of 1 to {LOG_BYTES_MAX} bytes"
            )));
        }
        Ok(Self {
            reads: form.reads,
            log_bytes: form.log_bytes,
            log_span_bytes: form.log_span_bytes,
            writes: form.writes,
        })
    }
}

/// A transaction as it is saved, which may be one that nobody can carry out.
#[derive(Deserialize)]
struct TransactionForm {
    reads: u32,
    log_bytes: u32,
    log_span_bytes: u64,
    writes: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLTP: Transaction = Transaction {
        reads: 4,
        log_bytes: 8192,
        log_span_bytes: 64 << 20,
        writes: 1,
    };

    #[test]
    fn saved_transaction_comes_back_and_one_that_nobody_can_carry_out_is_refused() {
        let read = |transaction: Transaction| {
            let saved = serde_json::to_value(transaction).unwrap();
            serde_json::from_value::<Transaction>(saved)
        };
        assert_eq!(read(OLTP).unwrap(), OLTP);
        for broken in [
            Transaction {
                reads: TRANSACTION_PARTS_MAX + 1,
                ..OLTP
            },
            Transaction {
                log_bytes: 0,
                ..OLTP
            },
            Transaction {
                log_span_bytes: 8191,
                ..OLTP
            },
        ] {
            assert!(read(broken).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn shares_and_bytes_are_those_of_its_requests() {
        assert_eq!(OLTP.answered_bytes(8192), 5 * 8192);
        assert_eq!(OLTP.read_permille(), 666);
    }
}
