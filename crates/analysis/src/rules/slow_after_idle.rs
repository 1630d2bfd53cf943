//! `slow-after-idle`: the first request after an idle time takes far longer than others, because
//! the disk, its link or its controller has to wake up.

use super::rule::*;
use diskproof_model::ping::{IdlePoint, PingFigures};

pub(super) const SLOW_AFTER_IDLE: Rule = Rule {
    code: "slow-after-idle",
    check: Check::Workloads(check_slow_after_idle),
    says: Meaning::Disk,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Fewer requests after an idle time prove nothing. That three of three are slower than nine tenths
/// of the others has a chance of one in a thousand.
const REQUESTS_MIN: u64 = 3;
/// Smallest share of the requests after an idle time that are slow, in thirds: another program may
/// have woken the disk up before the rest.
const SLOW_THIRDS: u64 = 2;
/// Largest share of slow requests without an idle time, in parts of the whole: with more, the disk
/// is slow anyway.
const AWAKE_PARTS: u64 = 10;
/// From this cost of waking up on, sessions notice.
const COST_NS_WARNING: u64 = 10_000_000;

/// A target that is slow to wake up.
struct SlowWaker<'a> {
    index: usize,
    ping: &'a PingFigures,
    awake: &'a IdlePoint,
    /// Places of the points from the shortest idle time that makes it slow.
    from: usize,
}

impl SlowWaker<'_> {
    fn first(&self) -> &IdlePoint {
        &self.ping.after_idle[self.from]
    }

    /// The slowest median after an idle time.
    fn worst_ns(&self) -> u64 {
        let slow = &self.ping.after_idle[self.from..];
        slow.iter().map(|point| point.p50_ns).max().unwrap_or(0)
    }

    fn cost_ns(&self) -> u64 {
        self.worst_ns().saturating_sub(self.awake.p50_ns)
    }

    fn evidence(&self) -> Vec<Evidence> {
        let threshold = self.ping.slow_from_ns.unwrap_or(0) as f64;
        let points = self.ping.after_idle.iter().enumerate().skip(self.from);
        points
            .map(|(place, point)| {
                let place = format!("figures/ping/after_idle/{place}/p50_ns");
                evidence(self.index, &place, point.p50_ns as f64, threshold, "ns")
            })
            .collect()
    }
}

fn check_slow_after_idle(record: &Record) -> Option<Diagnosis> {
    let found: Vec<SlowWaker<'_>> = real(record)
        .filter_map(|(index, m)| slow_waker(index, m))
        .collect();
    let worst = found.iter().max_by_key(|slow_waker| slow_waker.cost_ns())?;
    let first = worst.first();
    let path = target_path(record, record.measurements[worst.index].data.target);
    Some(Diagnosis::with_remedy(
        warning_if(worst.cost_ns() >= COST_NS_WARNING),
        format!(
            "After an idle time of {} or more, the first request to {path} takes {}, compared with \
             {} right after another ({} of {} after {}). The first query or commit after an idle \
             time waits as long.",
            format_duration(first.idle_ns),
            format_latency(worst.worst_ns()),
            format_latency(worst.awake.p50_ns),
            first.slow,
            first.mean.n,
            format_duration(first.idle_ns),
        ),
        found.iter().flat_map(SlowWaker::evidence),
        remedy(record, worst.index),
    ))
}

/// A target whose requests are slow from some idle time on, and after every longer one.
fn slow_waker(index: usize, m: &Row) -> Option<SlowWaker<'_>> {
    let ping = m.figures.ping.as_ref()?;
    let (awake, idle) = ping.after_idle.split_first()?;
    if awake.idle_ns > 0 || awake.slow * AWAKE_PARTS > awake.mean.n {
        return None;
    }
    let is_slow = |point: &IdlePoint| {
        point.mean.n >= REQUESTS_MIN && point.slow * 3 >= point.mean.n * SLOW_THIRDS
    };
    let quick = idle.iter().rposition(|point| !is_slow(point));
    let from = quick.map_or(1, |place| place + 2);
    (from < ping.after_idle.len()).then_some(SlowWaker {
        index,
        ping,
        awake,
        from,
    })
}

/// What lets the disk sleep, by its kind.
fn remedy(record: &Record, index: usize) -> String {
    let target = record.targets.get(record.measurements[index].data.target);
    let disk = target.and_then(|target| target.disks().next());
    let bus = |disk: &Layer| {
        let link = disk.link.as_ref();
        link.map_or(String::new(), |link| link.bus.to_ascii_lowercase())
    };
    match disk {
        Some(disk) if disk.name.starts_with("nvme") => format!(
            "Keep the drive out of its deep power states: start Linux with \
             nvme_core.default_ps_max_latency_us=0, and write 'on' to \
             /sys/block/{}/device/device/power/control. Then repeat diskproof ping --gaps.",
            disk.name
        ),
        Some(disk) if disk.rotational == Some(true) && bus(disk) != "virtio" => format!(
            "Stop the disk from spinning down: run hdparm -B 254 -S 0 /dev/{}, and keep the \
             setting across reboots (/etc/hdparm.conf). Then repeat diskproof ping --gaps.",
            disk.name
        ),
        Some(disk) if ["sata", "sas"].contains(&bus(disk).as_str()) => {
            "Set the link power management of its port to max_performance \
             (/sys/class/scsi_host/host*/link_power_management_policy). Then repeat diskproof \
             ping --gaps."
                .to_owned()
        }
        _ => {
            "Find and disable the cause: power states of the disk or its link, a spin-down timer, \
             or the provider's storage. Then repeat diskproof ping --gaps."
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};

    const MS: u64 = 1_000_000;
    const IDLE_MS: [u64; 5] = [1, 100, 1000, 2000, 5000];

    /// Four rounds; `latency_ns` says how long a request takes in a round after so many
    /// milliseconds of idle time.
    fn record(latency_ns: impl Fn(u64, u64) -> u64) -> Record {
        let mut samples = Vec::new();
        for round in 0..4 {
            for idle_ms in IDLE_MS {
                samples.push((idle_ms * MS, latency_ns(round, idle_ms)));
                samples.push((0, 100_000 + round));
            }
        }
        fixture::judge(fixture::ping::ping_run(&samples))
    }

    fn asleep(idle_ms: u64) -> u64 {
        match idle_ms {
            2000.. => 300 * MS,
            _ => 110_000,
        }
    }

    pub(super) const EXAMPLES: Examples = Examples::of(
        || record(|_, idle_ms| asleep(idle_ms)),
        || record(|_, idle_ms| 100_000 + idle_ms),
    );

    #[test]
    fn shortest_idle_time_and_cost_are_named() {
        let finding = check_slow_after_idle(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(
            &finding.claim,
            &["2.0 s or more", "300 ms", "100 µs", "4 of 4"],
        );
        let paths: Vec<&str> = finding
            .evidence
            .iter()
            .map(|one| one.path.as_str())
            .collect();
        let after = |step| format!("/measurements/0/figures/ping/after_idle/{step}/p50_ns");
        assert_eq!(paths, [after(4), after(5)]);
    }

    #[test]
    fn one_request_that_found_the_disk_awake_hides_nothing() {
        let woken = record(|round, idle_ms| match (round, idle_ms) {
            (1, 2000) => 100_000,
            _ => asleep(idle_ms),
        });
        states(
            &check_slow_after_idle(&woken).unwrap().claim,
            &["3 of 4 after 2.0 s"],
        );
    }

    #[test]
    fn single_slow_requests_and_a_disk_that_is_always_slow_are_silent() {
        let outliers = record(|round, idle_ms| match (round, idle_ms) {
            (2, 1000) | (3, 5000) => 50 * MS,
            _ => 110_000,
        });
        assert_eq!(check_slow_after_idle(&outliers), None);
        // After an idle time of one second only: longer ones are not slow.
        let odd = record(|_, idle_ms| if idle_ms == 1000 { 50 * MS } else { 110_000 });
        assert_eq!(check_slow_after_idle(&odd), None);
        assert_eq!(check_slow_after_idle(&fixture::record()), None);
    }

    #[test]
    fn small_cost_is_a_note() {
        let small = record(|_, idle_ms| if idle_ms >= 100 { 3 * MS } else { 110_000 });
        let finding = check_slow_after_idle(&small).unwrap();
        assert_eq!(finding.severity, Severity::Note);
        states(&finding.claim, &["100 ms or more"]);
    }
}
