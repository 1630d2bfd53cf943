//! `slow-after-idle`: the first request after an idle time takes far longer than others, because
//! the disk, its link or its controller has to wake up.

use super::disturbed::is_disturbed;
use super::rule::*;
use super::starved::is_workload_starved;
use crate::mechanics::may_have_slept;
use crate::words::enumerated;
use diskproof_model::measurement::SILENCE_NS_MIN;
use diskproof_model::ping::{IdlePoint, PingFigures};
use diskproof_model::record::TargetSilence;

pub(super) const RULE: Rule = Rule {
    code: "slow-after-idle",
    title: "The disk is slow to wake up",
    summary: "The first request after an idle time takes far longer than others, because the disk, \
              its link or its controller saves power and has to wake up.",
    remedy: Remedy::ByCase,
    check: Check::Run(check),
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

/// Without an idle time, at most one request in so many may be slow: with more, the disk is slow
/// anyway.
const AWAKE_SLOW_PARTS: u64 = 10;

/// A very first answer is late from so many times the usual latency on. Chosen, not measured.
const FIRST_TIMES_MIN: f64 = 10.0;

/// A very first answer of a disk without a motor is a warning from this time on: sessions notice.
/// Chosen, not measured.
const FIRST_NS_WARNING: u64 = 1_000_000_000;

/// From this cost of waking up on, sessions notice. Chosen, not measured.
const COST_NS_WARNING: u64 = 10_000_000;

/// A target that is slow to wake up.
struct SlowWaker<'a> {
    measured: Measured<'a>,
    ping: &'a PingFigures,
    /// The requests right after another one, without an idle time.
    awake: &'a IdlePoint,
    /// The place in `after_idle` of the shortest idle time that makes the disk slow. All longer
    /// ones do, too. Always below the length of the list.
    first_slow: usize,
}

impl SlowWaker<'_> {
    fn first(&self) -> &IdlePoint {
        &self.ping.after_idle[self.first_slow]
    }

    /// The slowest median after an idle time.
    fn worst_ns(&self) -> u64 {
        let mut worst_ns = 0;
        for point in &self.ping.after_idle[self.first_slow..] {
            worst_ns = worst_ns.max(point.p50_ns);
        }
        worst_ns
    }

    fn cost_ns(&self) -> u64 {
        self.worst_ns().saturating_sub(self.awake.p50_ns)
    }

    fn evidence(&self) -> Vec<Evidence> {
        let threshold = self.ping.slow_from_ns.unwrap_or(0) as f64;
        let mut observations = Vec::new();
        for (index, point) in self
            .ping
            .after_idle
            .iter()
            .enumerate()
            .skip(self.first_slow)
        {
            let place = format!("figures/ping/after_idle/{index}/p50_ns");
            let p50_ns = point.p50_ns as f64;
            observations.push(self.measured.evidence(&place, p50_ns, threshold, "ns"));
        }
        observations
    }
}

fn check(record: &Record) -> Option<Diagnosis> {
    let mut wakers: Vec<SlowWaker<'_>> = Vec::new();
    for measured in real_rows(record) {
        wakers.extend(slow_waker(measured));
    }
    let Some(worst) = wakers.iter().max_by_key(|waker| waker.cost_ns()) else {
        return late_first_answer(record);
    };
    let first = worst.first();
    let target = worst.measured.row.data.target;
    let claim = format!(
        "After an idle time of {} or more, the first request to {} takes {}, compared with {} \
         right after another ({} of {} after {}). The first query or commit after an idle time \
         waits as long.",
        format_duration(first.idle_ns),
        target_path(record, target),
        format_latency(worst.worst_ns()),
        format_latency(worst.awake.p50_ns),
        first.slow,
        first.mean.n,
        format_duration(first.idle_ns),
    );
    let severity = warning_if(worst.cost_ns() >= COST_NS_WARNING);
    let observations = wakers.iter().flat_map(SlowWaker::evidence);
    Some(Diagnosis::new(severity, claim, observations).with_remedy(remedy(record, target)))
}

/// A very first answer that took far longer than the later ones.
struct LateAnswer {
    target: usize,
    length_ns: u64,
    evidence: Evidence,
    /// True if others used the disk or the processors, which may have taken the time.
    is_disturbed: bool,
}

/// A target that took long for its very first answer, and not for the later ones: its disk may have
/// slept, which is no fault of one that rotates. Nothing else was measured of that.
fn late_first_answer(record: &Record) -> Option<Diagnosis> {
    let mut late = late_answers(record);
    late.sort_by_key(|answer| std::cmp::Reverse(answer.length_ns));
    let first = late.first()?;
    let (target, length_ns) = (first.target, first.length_ns);
    let claim = format!(
        "The first request of the run to {} took {}; the disk, or a link or controller before it, \
         may have slept. The first query or commit after such an idle time waits as long.",
        target_path(record, target),
        format_latency(length_ns),
    );
    let severity = severity_of_first_answer(record, first);
    let observations = late.into_iter().map(|answer| answer.evidence);
    let diagnosis = Diagnosis::new(severity, claim, observations);
    Some(diagnosis.with_remedy(remedy(record, target)))
}

/// Those of workloads, and those that no workload has, which were compared with the later answers
/// when they were kept.
fn late_answers(record: &Record) -> Vec<LateAnswer> {
    let threshold_ns = SILENCE_NS_MIN as f64;
    let mut late = Vec::new();
    for measured in real_rows(record) {
        let data = &measured.row.data;
        if is_late_first_answer(measured.row) {
            let length_ns = data.first_answer_ns as f64;
            late.push(LateAnswer {
                target: data.target,
                length_ns: data.first_answer_ns,
                evidence: measured.evidence("data/first_answer_ns", length_ns, threshold_ns, "ns"),
                is_disturbed: is_disturbed(record, measured)
                    || is_workload_starved(record, measured.row),
            });
        }
    }
    for (index, answer) in record.first_answers.iter().enumerate() {
        if is_usual_access(record, answer) {
            continue;
        }
        let path = format!("/first_answers/{index}/length_ns");
        late.push(LateAnswer {
            target: answer.target,
            length_ns: answer.length_ns,
            evidence: evidence_at(path, answer.length_ns as f64, threshold_ns, "ns"),
            is_disturbed: false,
        });
    }
    late
}

/// No motor starts in a disk without one, whose link and power states take milliseconds: nothing
/// healthy explains a second. What lies below the file of a loop device is not known.
fn severity_of_first_answer(record: &Record, answer: &LateAnswer) -> Severity {
    let is_solid_state = match record.targets.get(answer.target) {
        Some(target) => {
            let mut disks = target.disks();
            target.rotational() == Some(false)
                && target.unresolved.is_none()
                && disks.all(|disk| disk.kind != LayerKind::Loop)
                && !may_have_slept(record, target)
        }
        None => false,
    };
    let is_long = answer.length_ns >= FIRST_NS_WARNING;
    warning_if(is_solid_state && is_long && !answer.is_disturbed)
}

/// True if the accesses of a survey of this target usually take about as long: the disk is slow.
fn is_usual_access(record: &Record, answer: &TargetSilence) -> bool {
    let Some(surface) = record.surface() else {
        return false;
    };
    let mut usual_ns = 0;
    for seek in surface.figures.seeks.values() {
        usual_ns = usual_ns.max(seek.p50_ns);
    }
    surface.data.target == answer.target
        && (answer.length_ns as f64) < FIRST_TIMES_MIN * usual_ns as f64
}

/// True if the very first answer took far longer than the usual ones of a row.
fn is_late_first_answer(row: &Row) -> bool {
    let mut usual_ns: f64 = 0.0;
    for (_, op) in row.headline_ops() {
        usual_ns = usual_ns.max(op.figures.seen_latency().mean);
    }
    let first_ns = row.data.first_answer_ns;
    first_ns > 0 && first_ns as f64 >= FIRST_TIMES_MIN * usual_ns
}

/// A target whose requests are slow from some idle time on, and after every longer one. The points
/// ascend by their idle time, from none on.
fn slow_waker(measured: Measured<'_>) -> Option<SlowWaker<'_>> {
    let ping = measured.row.figures.ping.as_ref()?;
    let awake = ping.after_idle.first()?;
    if awake.idle_ns > 0 || awake.slow * AWAKE_SLOW_PARTS > awake.mean.n {
        return None;
    }
    let mut first_slow = 1;
    for (index, point) in ping.after_idle.iter().enumerate().skip(1) {
        if !is_slow(point) {
            first_slow = index + 1;
        }
    }
    if first_slow >= ping.after_idle.len() {
        return None;
    }
    Some(SlowWaker {
        measured,
        ping,
        awake,
        first_slow,
    })
}

fn is_slow(point: &IdlePoint) -> bool {
    point.mean.n >= REQUESTS_MIN && point.slow * 3 >= point.mean.n * SLOW_THIRDS
}

/// A reason why a disk sleeps, by the kind of disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sleep {
    PowerStates,
    SpinDown,
    LinkPower,
    Unknown,
}

impl Sleep {
    const ALL: [Self; 4] = [
        Self::PowerStates,
        Self::SpinDown,
        Self::LinkPower,
        Self::Unknown,
    ];

    fn of_disk(disk: &Layer) -> Self {
        if disk.name.starts_with("nvme") {
            Self::PowerStates
        } else if disk.rotates() == Some(true) {
            Self::SpinDown
        } else if is_on_bus(disk, &["sata", "sas"]) {
            Self::LinkPower
        } else {
            Self::Unknown
        }
    }

    /// What keeps the disks with these names awake.
    fn remedy(self, names: &[&str]) -> String {
        match self {
            Self::PowerStates => format!(
                "Keep the drive out of its deep power states: start Linux with \
                 nvme_core.default_ps_max_latency_us=0, and write 'on' to {}.",
                enumerated(&paths(names, "/sys/block/", "/device/device/power/control"))
            ),
            Self::SpinDown => format!(
                "Stop the disk from spinning down: run hdparm -B 254 -S 0 {}, and keep the setting \
                 across reboots (/etc/hdparm.conf).",
                paths(names, "/dev/", "").join(" ")
            ),
            Self::LinkPower => "Set the link power management of its port to max_performance \
                                (/sys/class/scsi_host/host*/link_power_management_policy)."
                .to_owned(),
            Self::Unknown => "Find and disable the cause: power states of the disk or its link, a \
                              spin-down timer, or the provider's storage."
                .to_owned(),
        }
    }
}

/// The names of disks as parts of paths: `before`, the name, `after`.
fn paths(names: &[&str], before: &str, after: &str) -> Vec<String> {
    names
        .iter()
        .map(|name| format!("{before}{name}{after}"))
        .collect()
}

/// What lets the disks of the target sleep, by their kinds. Of several disks any may be the one
/// that has to wake up.
fn remedy(record: &Record, target: usize) -> String {
    let disks: Vec<&Layer> = match record.targets.get(target) {
        Some(target) => target.disks().collect(),
        None => Vec::new(),
    };
    let mut sentences = Vec::new();
    for sleep in Sleep::ALL {
        let names: Vec<&str> = disks
            .iter()
            .filter(|disk| Sleep::of_disk(disk) == sleep)
            .map(|disk| disk.name.as_str())
            .collect();
        let is_only = disks.is_empty() && sleep == Sleep::Unknown;
        if is_only || !names.is_empty() {
            sentences.push(sleep.remedy(&names));
        }
    }
    sentences.push("Then repeat diskproof ping --gaps.".to_owned());
    sentences.join(" ")
}

fn is_on_bus(disk: &Layer, names: &[&str]) -> bool {
    match &disk.link {
        Some(link) => names.contains(&link.bus.to_ascii_lowercase().as_str()),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};

    const MILLISECOND_NS: u64 = 1_000_000;

    const IDLE_MS: [u64; 5] = [1, 100, 1000, 2000, 5000];

    /// Four rounds; `latency_ns` says how long a request takes in a round after so many
    /// milliseconds of idle time.
    fn record(latency_ns: impl Fn(u64, u64) -> u64) -> Record {
        let mut samples = Vec::new();
        for round in 0..4 {
            for idle_ms in IDLE_MS {
                samples.push((idle_ms * MILLISECOND_NS, latency_ns(round, idle_ms)));
                samples.push((0, 100_000 + round));
            }
        }
        fixture::judge(fixture::ping::ping_run(&samples))
    }

    fn asleep(idle_ms: u64) -> u64 {
        match idle_ms {
            2000.. => 300 * MILLISECOND_NS,
            _ => 110_000,
        }
    }

    pub(super) const EXAMPLES: Examples = Examples::new(
        || record(|_, idle_ms| asleep(idle_ms)),
        || record(|_, idle_ms| 100_000 + idle_ms),
    );

    fn median_path(step: u32) -> String {
        format!("/measurements/0/figures/ping/after_idle/{step}/p50_ns")
    }

    #[test]
    fn shortest_idle_time_and_cost_are_named() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(
            &finding.claim,
            &["2.0 s or more", "300 ms", "100 µs", "4 of 4"],
        );
        let paths: Vec<&str> = finding
            .evidence
            .iter()
            .map(|evidence| evidence.path.as_str())
            .collect();
        assert_eq!(paths, [median_path(4), median_path(5)]);
    }

    #[test]
    fn remedy_names_all_disks_below_the_target() {
        let mut asleep = (EXAMPLES.fires)();
        let disk = asleep.targets[0].disks().next().unwrap().clone();
        let members = [("sda", Some(true)), ("sdb", Some(true)), ("nvme0n1", None)];
        asleep.targets[0].layers = members
            .map(|(name, rotational)| Layer {
                name: name.to_owned(),
                rotational,
                link: None,
                ..disk.clone()
            })
            .into();
        let remedy = check(&asleep).unwrap().remedy;
        let nodes = ["-S 0 /dev/sda /dev/sdb", "/sys/block/nvme0n1/device"];
        states(&remedy, &nodes);
    }

    #[test]
    fn one_request_that_found_the_disk_awake_hides_nothing() {
        let woken = record(|round, idle_ms| match (round, idle_ms) {
            (1, 2000) => 100_000,
            _ => asleep(idle_ms),
        });
        states(&check(&woken).unwrap().claim, &["3 of 4 after 2.0 s"]);
    }

    #[test]
    fn single_slow_requests_and_a_disk_that_is_always_slow_are_silent() {
        let outliers = record(|round, idle_ms| match (round, idle_ms) {
            (2, 1000) | (3, 5000) => 50 * MILLISECOND_NS,
            _ => 110_000,
        });
        assert_eq!(check(&outliers), None);
        // After an idle time of one second only: longer ones are not slow.
        let odd = record(|_, idle_ms| {
            if idle_ms == 1000 {
                50 * MILLISECOND_NS
            } else {
                110_000
            }
        });
        assert_eq!(check(&odd), None);
        assert_eq!(check(&fixture::record()), None);
    }

    /// A disk in standby starts its motor for the first request of a run.
    #[test]
    fn late_first_answer_is_a_note_and_nothing_else() {
        let mut woken = fixture::faulty("random-read-d32", |measurement| {
            measurement.first_answer_ns = 8000 * MILLISECOND_NS;
        });
        for layer in &mut woken.targets[0].layers {
            layer.rotational = Some(true);
        }
        let finding = check(&woken).unwrap();
        assert_eq!(finding.severity, Severity::Note);
        states(&finding.claim, &["8.00 s"]);
        assert!(finding.evidence[0].path.ends_with("/data/first_answer_ns"));
        let codes: Vec<&str> = woken
            .findings
            .iter()
            .map(|found| found.code.as_str())
            .collect();
        assert!(
            codes.contains(&RULE.code) && !codes.contains(&"stalled"),
            "{codes:?}"
        );
    }

    /// Neither a survey nor an acceptance test has a row that could have it.
    #[test]
    fn late_first_answer_without_a_workload_is_the_runs() {
        let woken = fixture::changed(|run| {
            for layer in &mut run.facts.targets[0].layers {
                layer.rotational = Some(true);
            }
            run.facts.first_answers = vec![TargetSilence {
                target: 0,
                length_ns: 8000 * MILLISECOND_NS,
            }];
        });
        let finding = check(&woken).unwrap();
        assert_eq!(finding.severity, Severity::Note);
        assert_eq!(finding.evidence[0].path, "/first_answers/0/length_ns");
    }

    #[test]
    fn late_first_answer_of_a_disk_without_a_motor_is_a_warning() {
        for (first_ms, rotational, severity) in [
            (8000, Some(false), Severity::Warning),
            // A link that wakes up, a motor that starts, and a filesystem of unknown disks.
            (700, Some(false), Severity::Note),
            (8000, Some(true), Severity::Note),
            (8000, None, Severity::Note),
        ] {
            let mut record = fixture::faulty("random-read-d32", |measurement| {
                measurement.first_answer_ns = first_ms * MILLISECOND_NS;
            });
            for layer in &mut record.targets[0].layers {
                layer.rotational = rotational;
            }
            let finding = check(&record).unwrap();
            assert_eq!(finding.severity, severity, "{first_ms} {rotational:?}");
        }
    }

    #[test]
    fn small_cost_is_a_note() {
        let small = record(|_, idle_ms| {
            if idle_ms >= 100 {
                3 * MILLISECOND_NS
            } else {
                110_000
            }
        });
        let finding = check(&small).unwrap();
        assert_eq!(finding.severity, Severity::Note);
        states(&finding.claim, &["100 ms or more"]);
    }
}
