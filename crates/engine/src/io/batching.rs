//! Chooses the number of requests that go to the kernel in one call.

use diskproof_model::plan::{Access, CachePolicy};

/// The largest batch: larger ones save no more CPU time per request. Seen in the runs that are
/// described at [`batch_size`].
const BATCH_MAX: u32 = 32;

/// The batch at this queue depth: a quarter of the queue. Submitting everything that was reaped in
/// one call saves more CPU, but then the requests form a convoy, and the device idles while they
/// are reaped: on a virtio disk at depth 32, 92 k IOPS instead of 107 k, with more CPU time per
/// request. Single requests are as fast as batches and cost 10 % more CPU time.
fn batch_size(depth: u32) -> u32 {
    (depth / 4).clamp(1, BATCH_MAX)
}

/// The rule by which requests go to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubmitPolicy {
    /// Several in a call.
    Batched,
    /// Each in its own call. The kernel merges neighbouring requests of one call (blk_plug in
    /// Linux's block/blk-core.c), and the IOPS would be a multiple of what the disk does: 2000 on a
    /// disk that does 500.
    OneByOne,
    /// At most two in a call.
    Pairs,
}

impl SubmitPolicy {
    /// One by one for ordered, direct I/O; batched otherwise.
    pub(crate) fn for_access(access: &Access, cache: CachePolicy) -> Self {
        match access {
            Access::Random { .. } | Access::Zoned { .. } => Self::Batched,
            _ if cache == CachePolicy::Direct => Self::OneByOne,
            // The page cache forms its own requests.
            _ => Self::Batched,
        }
    }

    /// The rule with Linux AIO. A buffered read blocks within io_submit(2), and where a call has
    /// more than two requests (AIO_PLUG_THRESHOLD in Linux's fs/aio.c), the disk gets such a read
    /// from a kernel thread, which first waits for a processor: on a busy machine 300 reads/s where
    /// single calls do 9,000.
    pub(crate) fn in_aio(self, cache: CachePolicy) -> Self {
        match cache {
            CachePolicy::Direct => self,
            _ => Self::Pairs,
        }
    }
}

/// The number of requests that go to the kernel in one call. Where the kernel completes them within
/// that call (page cache, RAM disks with AIO), one call for all costs the least CPU time. Elsewhere
/// the queue must not move as one convoy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchSize {
    depth: u32,
    /// Requests that the next call should carry.
    pub size: u32,
}

impl BatchSize {
    /// For a queue of `depth` requests.
    pub(crate) fn for_depth(depth: u32, submission: SubmitPolicy) -> Self {
        let depth = match submission {
            SubmitPolicy::Batched => depth,
            SubmitPolicy::OneByOne => 1,
            SubmitPolicy::Pairs => depth.min(2),
        };
        Self {
            depth,
            size: batch_size(depth),
        }
    }

    /// Adapts to a call that carried `sent` requests, after which `done` completions were there.
    #[inline(always)]
    pub(crate) fn learn(&mut self, sent: u32, done: u32) {
        if sent >= self.size.min(self.depth) {
            self.size = if done >= sent {
                self.depth
            } else {
                batch_size(self.depth)
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::loads::UNIFORM;

    #[test]
    fn batch_is_a_quarter_of_the_queue_within_limits() {
        let depths = [0, 1, 7, 8, 32, 128, 1024];
        assert_eq!(depths.map(batch_size), [1, 1, 1, 2, 8, 32, 32]);
    }

    #[test]
    fn batch_grows_on_immediate_completions_unless_one_by_one() {
        let sizes = |submission| {
            let mut batch = BatchSize::for_depth(32, submission);
            [(8, 8), (32, 32), (32, 5)].map(|(sent, done)| {
                batch.learn(sent, done);
                batch.size
            })
        };
        assert_eq!(sizes(SubmitPolicy::Batched), [32, 32, 8]);
        assert_eq!(sizes(SubmitPolicy::OneByOne), [1, 1, 1]);
        let buffered = SubmitPolicy::Batched.in_aio(CachePolicy::Buffered);
        assert!(sizes(buffered).iter().all(|size| *size <= 2));
    }

    #[test]
    fn only_ordered_direct_io_is_submitted_one_by_one() {
        let of = |access: &Access| {
            [CachePolicy::Direct, CachePolicy::Buffered]
                .map(|cache| SubmitPolicy::for_access(access, cache))
        };
        assert_eq!(of(&UNIFORM), [SubmitPolicy::Batched; 2]);
        for walk in [
            Access::Sequential,
            Access::Backward,
            Access::Stride { stride_bytes: 8192 },
        ] {
            assert_eq!(of(&walk), [SubmitPolicy::OneByOne, SubmitPolicy::Batched]);
        }
    }
}
