//! A disk that falls asleep when nothing is requested for a while, and takes its time to wake up: a
//! platter that stops, a power state that is slow to leave.

/// The sleep of a disk without requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sleep {
    /// Time without a request after which it is asleep.
    pub after_ns: u64,
    /// Nanoseconds that it takes to wake up.
    pub wake_ns: u64,
}

/// The state of a disk that falls asleep.
#[derive(Debug, Clone)]
pub struct Sleeper {
    sleep: Sleep,
    /// Requests that have arrived and not ended.
    under_way: u64,
    /// The time at which the last request arrived or ended.
    active_ns: u64,
    /// The time from which on it is awake.
    awake_ns: u64,
}

impl Sleeper {
    /// A disk that is awake at first.
    pub fn new(sleep: Sleep) -> Self {
        Self {
            sleep,
            under_way: 0,
            active_ns: 0,
            awake_ns: 0,
        }
    }

    /// Returns the time that a request which arrives now waits for the disk to wake up, and wakes
    /// it.
    pub fn wake_delay_ns(&mut self, now_ns: u64) -> u64 {
        let idle_ns = now_ns.saturating_sub(self.active_ns.max(self.awake_ns));
        if self.under_way == 0 && idle_ns >= self.sleep.after_ns {
            self.awake_ns = now_ns + self.sleep.wake_ns;
        }
        self.under_way += 1;
        self.active_ns = now_ns;
        self.awake_ns.saturating_sub(now_ns)
    }

    /// Notes that a request has ended, which keeps the disk awake.
    pub fn ended(&mut self, at_ns: u64) {
        self.under_way = self.under_way.saturating_sub(1);
        self.active_ns = self.active_ns.max(at_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_after_the_idle_time_waits_for_the_disk_to_wake_up() {
        let mut disk = Sleeper::new(Sleep {
            after_ns: 1000,
            wake_ns: 300,
        });
        assert_eq!(disk.wake_delay_ns(10), 0);
        disk.ended(500);
        assert_eq!(disk.wake_delay_ns(1499), 0);
        disk.ended(1500);
        assert_eq!(disk.wake_delay_ns(2500), 300);
        // The next one arrives while it wakes up.
        assert_eq!(disk.wake_delay_ns(2600), 200);
        disk.ended(2800);
        disk.ended(2850);
        assert_eq!(disk.wake_delay_ns(2900), 0);
    }

    #[test]
    fn disk_is_awake_while_a_request_is_under_way() {
        let mut disk = Sleeper::new(Sleep {
            after_ns: 1000,
            wake_ns: 300,
        });
        assert_eq!(disk.wake_delay_ns(10), 0);
        assert_eq!(disk.wake_delay_ns(5000), 0);
        disk.ended(5500);
        disk.ended(6000);
        assert_eq!(disk.wake_delay_ns(7000), 300);
    }
}
