//! Shows that the disks below a target complete requests, and how long they are silent in between.
//! A disk that hangs is told from one that is slow by its own rate.

use crate::counters::snapshot::{DiskCounters, read_counters};
use crate::kernel::sysroot::SysRoot;
use diskproof_model::target::TargetIdentity;

/// A request of the kernel takes up to so many times as long as the mean one, by its size: below
/// that, the time follows from the size, and of small requests it is that of the access. Chosen,
/// not measured.
const SIZES_MAX: u64 = 8;
/// A healthy disk is silent for at most so many times what its largest request needs: its rate
/// varies. Chosen, not measured.
const USUAL_TIMES: u64 = 2;

/// Shows that the disks below a target complete requests, whoever sent them: a disk that hangs does
/// not.
#[derive(Debug)]
pub struct Pulse {
    root: SysRoot,
    disks: Vec<PulseDisk>,
}

#[derive(Debug)]
struct PulseDisk {
    name: String,
    /// `major:minor`.
    device: String,
    /// The size of its largest request.
    request_bytes_max: Option<u64>,
    /// Its counters at the start; `None` where it has none.
    started: Option<DiskCounters>,
    /// Its counters when it was last seen to have completed something; those of the start before.
    answered: Option<DiskCounters>,
    /// The longest time between two looks that saw something completed.
    longest: Gap,
    /// The requests in flight at the last look.
    in_flight: u64,
}

/// What a disk did between two looks that saw something completed.
#[derive(Debug, Clone, Copy, Default)]
struct Gap {
    /// Milliseconds with something in flight.
    busy_ms: u64,
    /// Requests that it completed.
    completed: u64,
}

impl Pulse {
    /// Counts from now on.
    pub fn start(identity: &TargetIdentity) -> Self {
        Self::start_in(SysRoot::default(), identity)
    }

    fn start_in(root: SysRoot, identity: &TargetIdentity) -> Self {
        let mut disks = Vec::new();
        for layer in identity.disks() {
            let counters = read_counters(&root, &layer.name, &layer.device).ok();
            disks.push(PulseDisk {
                name: layer.name.clone(),
                device: layer.device.clone(),
                request_bytes_max: layer.request_bytes_max,
                started: counters.clone(),
                answered: counters,
                longest: Gap::default(),
                in_flight: 0,
            });
        }
        Self { root, disks }
    }

    /// True if the disks have completed a request since the last call. Always false where the disks
    /// are unknown.
    pub fn beats(&mut self) -> bool {
        let mut has_beat = false;
        for disk in &mut self.disks {
            let Ok(counters) = read_counters(&self.root, &disk.name, &disk.device) else {
                continue;
            };
            disk.in_flight = counters.in_flight();
            let known = disk.answered.as_ref().map(DiskCounters::completed);
            if known != Some(counters.completed()) {
                disk.answers(counters);
                has_beat = true;
            }
        }
        has_beat
    }

    /// True if requests waited for one of the disks when [`Self::beats`] looked last. Some kernels
    /// do not count a flush as one.
    pub fn has_waiting_requests(&self) -> bool {
        self.disks.iter().any(|disk| disk.in_flight > 0)
    }

    /// True if all disks had read or written something since the start, when [`Self::beats`] looked
    /// last: none of them slept then. A disk in standby may answer the flush of an empty cache.
    pub fn has_answered(&self) -> bool {
        !self.disks.is_empty() && self.disks.iter().all(|disk| disk.moved_bytes() > 0)
    }

    /// The longest silence that is usual for these disks, in nanoseconds, by the requests that they
    /// have completed since the start: a disk of 300 kB/s needs four seconds for one of 1280 KiB.
    /// 0 where they have completed none.
    pub fn usual_silence_ns(&self) -> u64 {
        let silences = self.disks.iter().map(PulseDisk::usual_silence_ns);
        silences.max().unwrap_or(0)
    }
}

impl PulseDisk {
    /// Takes the counters of a disk that has completed something.
    fn answers(&mut self, counters: DiskCounters) {
        if let Some(before) = &self.answered
            && let Some(change) = counters.since(before)
            && change.busy_ms() >= self.longest.busy_ms
        {
            self.longest = Gap {
                busy_ms: change.busy_ms(),
                completed: change.completed(),
            };
        }
        self.answered = Some(counters);
    }

    fn change(&self) -> Option<DiskCounters> {
        self.answered.as_ref()?.since(self.started.as_ref()?)
    }

    fn moved_bytes(&self) -> u64 {
        match self.change() {
            Some(change) => change.moved_bytes(),
            None => 0,
        }
    }

    fn usual_silence_ns(&self) -> u64 {
        let Some(change) = self.change() else {
            return 0;
        };
        let completed = change.completed();
        if completed == 0 {
            return 0;
        }
        let mean_bytes = (change.moved_bytes() / completed).max(1);
        let largest_bytes = self.request_bytes_max.unwrap_or(0);
        let are_large = mean_bytes.saturating_mul(SIZES_MAX) >= largest_bytes;
        let others = completed.saturating_sub(self.longest.completed);
        // The mean time between two completions while anything is in flight. A pause does not make
        // itself usual: the longest gap counts only where large requests explain it.
        let (busy_ms, counted) = if others > 0 {
            (
                change.busy_ms().saturating_sub(self.longest.busy_ms),
                others,
            )
        } else if are_large {
            (change.busy_ms(), completed)
        } else {
            return 0;
        };
        let mean_ns = busy_ms.saturating_mul(1_000_000) / counted;
        let sizes = (largest_bytes / mean_bytes).clamp(1, SIZES_MAX);
        mean_ns.saturating_mul(sizes * USUAL_TIMES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::disk::bare_layer;
    use diskproof_model::target::TargetKind;

    const BEFORE: &str = "10 0 100 5 20 0 200 5 0 9 9 0 0 0 0 3 1\n";

    fn identity(disks: &[(&str, &str)]) -> TargetIdentity {
        let mut layers = Vec::new();
        for (name, device) in disks {
            let mut layer = bare_layer(name, device);
            layer.request_bytes_max = Some(1280 << 10);
            layers.push(layer);
        }
        TargetIdentity {
            path: "/data".into(),
            kind: TargetKind::Directory,
            size_bytes: 0,
            free_bytes: None,
            device: "9:0".into(),
            inode: 2,
            filesystem: None,
            layers,
            unresolved: disks.is_empty().then(|| "on a server".into()),
        }
    }

    /// A machine with one disk.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new(line: &str) -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            machine.count(line);
            machine
        }

        fn root(&self) -> SysRoot {
            SysRoot {
                sys: self.0.path().join("sys"),
                proc: self.0.path().join("proc"),
            }
        }

        fn count(&self, line: &str) {
            let directory = self.root().sys.join("dev/block/8:0");
            std::fs::create_dir_all(directory.join("queue")).unwrap();
            std::fs::write(directory.join("stat"), line).unwrap();
        }

        fn pulse(&self) -> Pulse {
            Pulse::start_in(self.root(), &identity(&[("sda", "8:0")]))
        }
    }

    #[test]
    fn a_disk_that_completes_nothing_has_no_pulse() {
        let machine = Machine::new(BEFORE);
        let mut pulse = machine.pulse();
        assert!(!pulse.beats());
        // Something is in flight, and only that.
        machine.count("10 0 100 5 20 0 200 5 7 99 99 0 0 0 0 3 1\n");
        assert!(!pulse.beats() && !pulse.has_answered());
        assert!(pulse.has_waiting_requests());
        machine.count("10 0 100 5 20 0 200 5 7 99 99 0 0 0 0 4 1\n");
        assert!(pulse.beats() && !pulse.beats());
        // That was a flush.
        assert!(!pulse.has_answered());
        machine.count("11 0 108 5 20 0 200 5 7 99 99 0 0 0 0 4 1\n");
        assert!(pulse.beats() && pulse.has_answered());
        let mut unknown = Pulse::start_in(machine.root(), &identity(&[]));
        assert!(!unknown.beats() && !unknown.has_answered());
        assert!(!unknown.has_waiting_requests());
    }

    /// The usual silence, in milliseconds, of a disk that has written so many requests of so many
    /// sectors in so many milliseconds.
    fn usual_silence_ms(ops: u64, sectors: u64, busy_ms: u64) -> u64 {
        let machine = Machine::new(BEFORE);
        let mut pulse = machine.pulse();
        // Two looks: after half of them, and after all.
        for part in [ops / 2, ops] {
            let (writes, moved) = (20 + part, 200 + sectors * part);
            let busy = 9 + busy_ms * part / ops.max(1);
            machine.count(&format!(
                "10 0 100 5 {writes} 0 {moved} 5 0 {busy} 9 0 0 0 0 3 1\n"
            ));
            pulse.beats();
        }
        pulse.usual_silence_ns() / 1_000_000
    }

    #[test]
    fn silence_is_usual_by_the_rate_of_the_disk_itself() {
        // 300 kB/s: requests of 1280 KiB take 4.4 s each, those of 200 KiB 0.7 s.
        assert_eq!(usual_silence_ms(1, 2560, 4369), 8738);
        assert_eq!(usual_silence_ms(10, 400, 6830), 8196);
        // 3 s for each request of 4 KiB.
        assert_eq!(usual_silence_ms(2, 8, 6000), 48_000);
        // A rotating disk that writes 4 KiB a hundred times a second, and a solid-state one.
        assert_eq!(usual_silence_ms(1000, 8, 10_000), 160);
        assert_eq!(usual_silence_ms(10_000, 2048, 20_000), 4);
        assert_eq!(usual_silence_ms(0, 0, 9000), 0);
    }

    #[test]
    fn pause_does_not_make_itself_usual() {
        let machine = Machine::new(BEFORE);
        let mut pulse = machine.pulse();
        // Five writes of 4 KiB in 50 ms, then one that took 8 s.
        for (writes, sectors, busy_ms) in [(22, 216, 29), (25, 240, 59), (26, 248, 8059)] {
            machine.count(&format!(
                "10 0 100 5 {writes} 0 {sectors} 5 0 {busy_ms} 9 0 0 0 0 3 1\n"
            ));
            pulse.beats();
        }
        let usual_ms = pulse.usual_silence_ns() / 1_000_000;
        assert_eq!(usual_ms, 160);
        // The only small request that was seen says nothing of others.
        assert_eq!(usual_silence_ms(1, 8, 20_000), 0);
    }
}
