//! Decides which slots of a worker send a sync, and which are served by that of another slot (group
//! commit): one sync at a time, which serves every write that ended before it was sent.
//! [`crate::io::sync::SharedSync`] does the same among threads.

use diskproof_model::plan::{SyncPolicy, Workload};

/// The sync that is under way, and who waits for which one.
#[derive(Debug, Clone, Default)]
pub(crate) struct GroupSync {
    /// The slot whose request the sync is, from the end of its write on.
    leader: Option<u32>,
    /// The slots that it serves besides; empty before it is sent.
    served: Vec<u32>,
    /// The slots that the next sync to be sent serves.
    waiting: Vec<u32>,
}

/// A sync that has returned.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EndedSync {
    /// The slots that it served besides its own.
    pub served: Vec<u32>,
    /// The slot that sends the next one.
    pub next: Option<u32>,
}

impl GroupSync {
    /// The group of a worker's slots; `None` where they do not share their syncs. Threads with one
    /// slot each share them through [`crate::io::sync::SharedSync`].
    pub(crate) fn for_worker(workload: &Workload, slots: u32) -> Option<Self> {
        let is_shared = matches!(workload.sync, SyncPolicy::Shared { .. });
        if is_shared && slots > 1 {
            Some(Self::default())
        } else {
            None
        }
    }

    /// Notes that the write in `slot` has ended. Returns true if the caller must send a sync for
    /// it; otherwise one that another slot sends will serve it.
    pub(crate) fn join(&mut self, slot: u32) -> bool {
        if self.leader.is_some() {
            self.waiting.push(slot);
            return false;
        }
        self.leader = Some(slot);
        true
    }

    /// Notes that the sync is sent now: it serves all whose writes have ended.
    pub(crate) fn send(&mut self) {
        self.served.append(&mut self.waiting);
    }

    /// Notes that the request in `slot` has returned; `None` where it was no sync that serves a
    /// group. The caller must send the next sync.
    pub(crate) fn end(&mut self, slot: u32) -> Option<EndedSync> {
        if self.leader != Some(slot) {
            return None;
        }
        self.leader = if self.waiting.is_empty() {
            None
        } else {
            Some(self.waiting.remove(0))
        };
        Some(EndedSync {
            served: std::mem::take(&mut self.served),
            next: self.leader,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sync_serves_writes_that_ended_before_it_was_sent() {
        let mut group = GroupSync::default();
        assert!(group.join(3));
        // Not sent yet.
        assert!(!group.join(1));
        group.send();
        assert!(!group.join(5) && !group.join(2));
        // Another request of a slot that waits.
        assert_eq!(group.end(5), None);
        let first = EndedSync {
            served: vec![1],
            next: Some(5),
        };
        assert_eq!(group.end(3), Some(first));
        group.send();
        let second = EndedSync {
            served: vec![2],
            next: None,
        };
        assert_eq!(group.end(5), Some(second));
        assert!(group.join(2));
    }
}
