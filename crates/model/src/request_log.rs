//! The requests of a workload one by one, for the log of a tool. They are in no record.

/// The requests that all workers which start together keep: 100 MB.
pub const LOGGED_MAX: usize = 1 << 22;

/// A request as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedRequest {
    /// Nanoseconds after the start of the run.
    pub sent_ns: u64,
    /// The first byte in the target; 0 of a sync.
    pub offset: u64,
    /// The bytes to move; 0 of a sync.
    pub len: u32,
    /// The call to the kernel.
    pub call: LoggedCall,
}

/// The call of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoggedCall {
    /// A read.
    Read,
    /// A write.
    Write,
    /// The content of a block is dropped.
    Trim,
    /// fsync(2).
    Fsync,
    /// fdatasync(2).
    Fdatasync,
    /// sync_file_range(2).
    SyncRange,
}

/// The requests of a workload in the order in which they were sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestLog {
    /// The first requests of each worker.
    pub requests: Vec<LoggedRequest>,
    /// The requests after those.
    pub left_out: u64,
}

impl RequestLog {
    /// Adds a request of a worker, which keeps so many.
    pub fn add(&mut self, request: LoggedRequest, requests_max: usize) {
        if self.requests.len() < requests_max {
            self.requests.push(request);
        } else {
            self.left_out += 1;
        }
    }

    /// Adds the requests of another worker, or of a later time.
    pub fn merge(&mut self, other: &Self) {
        self.requests.extend(&other.requests);
        self.requests.sort_by_key(|request| request.sent_ns);
        self.left_out += other.left_out;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_keeps_the_first_requests_and_counts_the_others() {
        let mut log = RequestLog::default();
        for sent_ns in 0..5 {
            let request = LoggedRequest {
                sent_ns,
                offset: 0,
                len: 4096,
                call: LoggedCall::Read,
            };
            log.add(request, 2);
        }
        let kept: Vec<u64> = log.requests.iter().map(|request| request.sent_ns).collect();
        assert_eq!((kept, log.left_out), (vec![0, 1], 3));
    }
}
