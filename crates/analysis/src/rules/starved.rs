//! `starved`: the machine was so busy that diskproof waited for a processor when the disk answered.
//! The figures then include this waiting. It lengthens latencies, most of all the high percentiles.
//! On a survey it makes places slow, or fast where the disk read ahead meanwhile.

use super::cpu_limited::is_cpu_limited;
use super::rule::*;

pub(super) const RULE: Rule = Rule {
    code: "starved",
    title: "diskproof waited for a processor",
    summary: "The machine had no free processor for diskproof when the disk answered. Latencies \
              and surveys include that waiting time.",
    remedy: Remedy::Always(
        "Measure when the machine is quieter, or raise the program's priority: chrt -f 10 \
         diskproof … (as root).",
    ),
    check: Check::Run(check),
    says: Meaning::OtherLoad {
        used: SharedResource::Processors,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Share of the survey's time from which on waiting shows: the queue of eight requests hides less,
/// and single accesses become longer by it. Chosen, not measured.
const SURVEY_SHARE_MIN: f64 = 0.05;

/// A few turns of the scheduler take so long. A measurement of less than a second may have waited
/// as long by chance.
const WAITED_NS_MIN: f64 = 20_000_000.0;

/// From this share on the length of the measurement does not matter: rows of 0.4 s that waited for
/// 84 to 96 % of their time showed a third to a fifth of the rate of the quiet machine.
const SHARE_SUFFICIENT: f64 = 0.2;

/// The share of the measured time from which on waiting shows. It is `share_min` of a long
/// measurement and more of a short one.
fn share_that_shows(share_min: f64, wall_ns: u64) -> f64 {
    let few_turns = WAITED_NS_MIN / wall_ns.max(1) as f64;
    share_min.max(few_turns.min(SHARE_SUFFICIENT))
}

/// True if the survey waited for processors so long that it shows.
pub(super) fn is_survey_starved(surface: &SurfaceRecord) -> bool {
    let share_min = share_that_shows(SURVEY_SHARE_MIN, surface.data.wall_ns);
    surface.figures.starved_share >= share_min
}

/// Share of a workload's time from which on it may show. With pread threads the mean
/// latency grows by exactly this share, and with one queue in one thread by less. High percentiles
/// grow by much more (3.5 % made a p99.9 of 14.0 ms into 14.5 ms, more work on the machine 8.9 ms
/// into 24.4 ms).
const WORKLOAD_SHARE_MIN: f64 = 0.02;

/// Mean wait that is more than waking up. Waking up took 1 to 20 µs on an idle processor, and 30 to
/// 75 µs on one shared with compilers. A fast disk's many short waits add up to a large share too.
const WAIT_NS_MIN: f64 = 25_000.0;

/// Least mean wait, as a share of the mean latency, that can change a figure: behind a queue of
/// 5 ms the disk has the next requests already, so that waits of 20 µs change neither the rate nor,
/// by more than their own length, a latency.
const LATENCY_SHARE_MIN: f64 = 0.01;

/// True if the workers were kept waiting for processors, by others or by each other.
pub(super) fn waits_for_processor(row: &Row) -> bool {
    let starved = &row.data.starved;
    if starved.share < WORKLOAD_SHARE_MIN || starved.mean_wait_ns < WAIT_NS_MIN {
        return false;
    }
    let mut shortest_ns: Option<f64> = None;
    for (_, op) in row.headline_ops() {
        let mean_ns = op.figures.latency.mean;
        if mean_ns > 0.0 {
            shortest_ns = Some(shortest_ns.unwrap_or(f64::MAX).min(mean_ns));
        }
    }
    match shortest_ns {
        Some(mean_ns) => starved.mean_wait_ns >= LATENCY_SHARE_MIN * mean_ns,
        None => true,
    }
}

/// True if the workers waited for processors so long that it shows. Where the program itself used
/// all of them up, its threads wait for each other: `cpu-limited` says that.
pub(super) fn is_workload_starved(record: &Record, row: &Row) -> bool {
    let share_min = share_that_shows(WORKLOAD_SHARE_MIN, row.data.wall_ns);
    waits_for_processor(row) && row.data.starved.share >= share_min && !is_cpu_limited(record, row)
}

/// True if a workload of the run waited for processors.
pub(super) fn is_any_workload_starved(record: &Record) -> bool {
    real_rows(record).any(|measured| is_workload_starved(record, measured.row))
}

/// A sentence of the claim, with the figures that prove it.
struct Statement {
    sentence: String,
    evidence: Vec<Evidence>,
}

fn check(record: &Record) -> Option<Diagnosis> {
    let mut sentences = Vec::new();
    let mut observations = Vec::new();
    let statements = [starved_workloads(record), starved_survey(record)];
    for statement in statements.into_iter().flatten() {
        sentences.push(statement.sentence);
        observations.extend(statement.evidence);
    }
    if sentences.is_empty() {
        return None;
    }
    let claim = format!(
        "The machine was too busy for accurate timing{}. {}",
        load_text(record),
        sentences.join(" ")
    );
    Some(Diagnosis::new(Severity::Warning, claim, observations))
}

fn starved_workloads(record: &Record) -> Option<Statement> {
    let hits: Vec<Measured<'_>> = real_rows(record)
        .filter(|measured| is_workload_starved(record, measured.row))
        .collect();
    let worst = largest_by(&hits, |hit| hit.row.data.starved.share)?;
    let mut observations = Vec::new();
    for hit in &hits {
        let share = hit.row.data.starved.share;
        let share_min = share_that_shows(WORKLOAD_SHARE_MIN, hit.row.data.wall_ns);
        let place = "data/starved/share";
        observations.push(hit.evidence(place, share, share_min, "of the time"));
    }
    Some(Statement {
        sentence: format!(
            "In {} a thread of diskproof waited for a processor for up to {} of the time. This \
             makes latencies longer, high percentiles in particular.",
            workload_names(record, indices(&hits)),
            format_percent(worst.row.data.starved.share)
        ),
        evidence: observations,
    })
}

fn starved_survey(record: &Record) -> Option<Statement> {
    let surface = record.surface()?;
    if !is_survey_starved(surface) {
        return None;
    }
    let share = surface.figures.starved_share;
    let share_min = share_that_shows(SURVEY_SHARE_MIN, surface.data.wall_ns);
    let path = first_result_path("figures/starved_share");
    Some(Statement {
        sentence: format!(
            "For {} of the survey diskproof waited for a processor. Points measured at those \
             times are ignored, and access times are longer.",
            format_percent(share)
        ),
        evidence: vec![evidence_at(path, share, share_min, "of the time")],
    })
}

/// The load average of the machine before the run for each of its processors; `None` where it is
/// unknown.
pub(super) fn load_per_cpu(record: &Record) -> Option<f64> {
    let load = record.host.load_of_minute()?;
    Some(load / f64::from(record.host.cpus.max(1)))
}

/// ` (load 9.8 on 8 CPUs)`, where the load explains the waiting; a lower one explains nothing.
fn load_text(record: &Record) -> String {
    let cpus = record.host.cpus;
    let Some(text) = &record.host.load_average else {
        return String::new();
    };
    match record.host.load_of_minute() {
        Some(load) if load >= f64::from(cpus) => {
            format!(" (load {text} on {})", counted(u64::from(cpus), "CPU"))
        }
        Some(_) | None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::surveyed::{self, codes, rotating};
    use crate::fixture::{self, WALL_NS, states};
    use diskproof_model::measurement::{CpuTime, Starvation};
    use diskproof_model::surface::DataSheet;

    pub(super) const EXAMPLES: Examples = Examples::new(
        || surveyed::faulty(|survey| survey.starved_ns = survey.wall_ns / 8),
        surveyed::record,
    );

    #[test]
    fn waiting_for_a_processor_is_reported_with_its_share() {
        let record = (EXAMPLES.fires)();
        let share = check(&record).unwrap().evidence[0].observed;
        assert!((share - 0.125).abs() < 0.001, "{share}");
        assert_eq!(codes(&record), ["starved"]);
    }

    /// The diagnosis of reads that waited so long, while the program used so much of a CPU.
    fn waited(share: f64, mean_wait_ns: f64, system_share: u64) -> Option<Diagnosis> {
        check(&fixture::faulty("random-read-d32", |measurement| {
            measurement.starved = Starvation {
                share,
                mean_wait_ns,
            };
            measurement.cpu.system_ns = WALL_NS * system_share / 100;
        }))
    }

    #[test]
    fn a_workload_that_waited_for_processors_has_its_latencies_doubted() {
        let finding = waited(0.07, 60_000.0, 10).unwrap();
        states(&finding.claim, &["7 %"]);
        states(&finding.evidence[0].path, &["/starved/share"]);
        assert_eq!(waited(0.01, 60_000.0, 10), None);
        // The requests take 3.2 ms: the queue hides such waits, however many they are.
        assert_eq!(waited(0.2, 28_000.0, 10), None);
        // Waking up, often.
        assert_eq!(waited(0.2, 8_000.0, 10), None);
        // Its own doing.
        assert_eq!(waited(0.07, 60_000.0, 95), None);
    }

    #[test]
    fn short_measurement_is_starved_from_a_larger_share_on() {
        for (wall_ns, share, expected) in [
            (400_000_000, 0.84, true),
            (400_000_000, 0.06, true),
            (400_000_000, 0.04, false),
            (50_000_000, 0.21, true),
            (50_000_000, 0.19, false),
        ] {
            let mut record = fixture::record();
            let row = fixture::measured(&mut record, "random-read-d1");
            row.data.wall_ns = wall_ns;
            row.data.starved = Starvation {
                share,
                mean_wait_ns: 6_600_000.0,
            };
            row.data.cpu = CpuTime::default();
            assert_eq!(check(&record).is_some(), expected, "{wall_ns} {share}");
        }
        let survey = |share| {
            check(&surveyed::faulty(|survey| {
                survey.wall_ns = 100_000_000;
                survey.starved_ns = share;
            }))
        };
        assert!(survey(21_000_000).is_some());
        assert_eq!(survey(19_000_000), None);
    }

    #[test]
    fn effects_of_waiting_on_points_and_accesses_are_not_reported_as_the_disks() {
        let mut run = rotating(|disk| disk.accesses = 300).run(1);
        run.facts.plan.questions.data_sheet = Some(DataSheet {
            rpm: Some(7200),
            seek_ns: Some(10_600_000),
            ..DataSheet::default()
        });
        for point in run.surface.curve.iter_mut().step_by(7) {
            point.late_ns = point.busy_ns / 2;
            point.busy_ns += point.late_ns;
            point.bytes_per_second /= 1.5;
        }
        run.surface
            .access
            .iter_mut()
            .for_each(|access| access.latency_ns += 6_000_000);
        run.surface.starved_ns = run.surface.wall_ns / 5;
        assert_eq!(codes(&surveyed::judge(run.clone())), ["starved"]);
        run.surface.starved_ns = 0;
        run.surface
            .curve
            .iter_mut()
            .for_each(|point| point.late_ns = 0);
        assert!(codes(&surveyed::judge(run)).contains(&"access-time-off"));
    }
}
