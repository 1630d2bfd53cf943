//! How many requests go to the kernel in one call. Knows no kernel interface.

use diskproof_model::plan::{Access, CachePolicy};

/// The most requests in a group: a call's own cost is by then spread so thin that more gain
/// nothing.
const BATCH_MAX: u32 = 32;

/// Requests that go to the kernel in one call at this queue depth: a quarter of the queue. One call
/// for all that was reaped saves more CPU, but then the requests keep together as a convoy, and the
/// device idles while they are reaped: on a virtio disk at depth 32, 92 k IOPS instead of 107 k,
/// and more CPU time per request. A call for each request is as fast as groups, at 10 % more CPU
/// time.
fn batch_of(depth: u32) -> u32 {
    (depth / 4).clamp(1, BATCH_MAX)
}

/// How requests are handed to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmitPolicy {
    /// Several in a call.
    Batched,
    /// Each in a call of its own: of neighbours that come in one call the kernel makes one request
    /// (blk_plug in Linux's block/blk-core.c), and the disk's IOPS would be told as many times
    /// what they are: 2000 on a disk that does 500.
    OneByOne,
}

impl SubmitPolicy {
    /// For operations that go to the disk in order, and each as a request of its own, or not.
    pub fn of(access: &Access, cache: CachePolicy) -> Self {
        match access {
            Access::Random { .. } | Access::Zoned { .. } => Self::Batched,
            Access::Sequential | Access::Backward | Access::Stride { .. }
                if cache == CachePolicy::Direct =>
            {
                Self::OneByOne
            }
            // What the page cache makes of them is its own matter.
            Access::Sequential | Access::Backward | Access::Stride { .. } => Self::Batched,
        }
    }
}

/// How many requests go to the kernel in one call. Where the kernel completes them within that call
/// (page cache, RAM disks by AIO) nothing is gained by several calls, and each costs CPU time;
/// elsewhere the queue must not move in one convoy.
#[derive(Debug, Clone, Copy)]
pub struct BatchSize {
    depth: u32,
    now: u32,
}

impl BatchSize {
    /// For a queue of `depth` requests.
    pub fn of(depth: u32, submission: SubmitPolicy) -> Self {
        let depth = if submission == SubmitPolicy::OneByOne {
            1
        } else {
            depth
        };
        Self {
            depth,
            now: batch_of(depth),
        }
    }

    /// Requests that the next call should carry.
    #[inline(always)]
    pub fn size(&self) -> u32 {
        self.now
    }

    /// Learns from a call that carried `sent` requests, after which `done` completions were there.
    #[inline(always)]
    pub fn learn(&mut self, sent: u32, done: u32) {
        if sent >= self.now.min(self.depth) {
            self.now = if done >= sent {
                self.depth
            } else {
                batch_of(self.depth)
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::plan::Distribution;

    #[test]
    fn groups_are_a_quarter_of_the_queue_within_limits() {
        assert_eq!(
            [0, 1, 7, 8, 32, 128, 1024].map(batch_of),
            [1, 1, 1, 2, 8, 32, 32]
        );
    }

    #[test]
    fn groups_grow_where_the_kernel_is_done_at_once_and_neighbours_never_go_together() {
        let sizes = |submission| {
            let mut batch = BatchSize::of(32, submission);
            [(8, 8), (32, 32), (32, 5)].map(|(sent, done)| {
                batch.learn(sent, done);
                batch.size()
            })
        };
        assert_eq!(
            (sizes(SubmitPolicy::Batched), sizes(SubmitPolicy::OneByOne)),
            ([32, 32, 8], [1, 1, 1])
        );
    }

    #[test]
    fn only_walks_past_the_page_cache_go_one_by_one() {
        let random = Access::Random {
            distribution: Distribution::Uniform,
        };
        let of = |access: &Access| {
            [CachePolicy::Direct, CachePolicy::Buffered]
                .map(|cache| SubmitPolicy::of(access, cache))
        };
        assert_eq!(of(&random), [SubmitPolicy::Batched; 2]);
        for walk in [
            Access::Sequential,
            Access::Backward,
            Access::Stride { stride_bytes: 8192 },
        ] {
            assert_eq!(of(&walk), [SubmitPolicy::OneByOne, SubmitPolicy::Batched]);
        }
    }
}
