//! Makes the verdict on a run: grades for what a database does with a disk, the most severe
//! finding, and whether the figures can be relied on. docs/verdict.md explains the thresholds.

use crate::accept::words;
use crate::checked::name_in_check;
use crate::estimate::HALF_WIDTH_MAX;
use crate::headline::{fitness_headline, graded_headline, plain_headline};
use crate::rules::ended_units;
use crate::untested::{exceeds_even_rate, untested};
use crate::verification::verification_headline;
use crate::waiting;
use crate::whole_disk::{WholeDisk, scaled_rate, whole_disk};
use crate::words::{enumerated, uncapitalised};
use diskproof_model::finding::{Finding, Meaning};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::Decide;
use diskproof_model::proof::FigureSource;
use diskproof_model::record::{Estimate, Record};
use diskproof_model::row::OpRow;
use diskproof_model::target::{HostFacts, TargetIdentity, TargetKind};
use diskproof_model::units::{format_bytes, format_percent};
use diskproof_model::verdict::{
    Grade, GradeThresholds, LeadingFinding, RunVerdict, Trust, TrustLevel, UseGrade,
};

/// What a database does with a disk, and the figures that decide how well it goes.
struct DatabaseUse {
    name: &'static str,
    /// The workload that answers for it, by its name in `check`.
    workload: &'static str,
    operation: OpKind,
    /// The rate of the operation that decides.
    figure: fn(OpRow<'_>) -> &Estimate,
    /// The use is limited from this rate on, and poor below it.
    limited_from: f64,
    /// It is good from this rate on.
    good_from: f64,
    /// The reasons for both rates.
    source: &'static str,
}

/// In the order in which a database meets them: filled, scanned, searched, written to.
const USES: [DatabaseUse; 4] = [
    DatabaseUse {
        name: "bulk load",
        workload: "sequential-write",
        operation: OpKind::Write,
        figure: |op| &op.figures.throughput,
        limited_from: 110e6,
        good_from: 500e6,
        source: STREAM_SOURCE,
    },
    DatabaseUse {
        name: "scans",
        workload: "sequential-read",
        operation: OpKind::Read,
        figure: |op| &op.figures.throughput,
        limited_from: 110e6,
        good_from: 500e6,
        source: STREAM_SOURCE,
    },
    DatabaseUse {
        name: "look-ups",
        workload: "random-read-d1",
        operation: OpKind::Read,
        figure: |op| &op.figures.iops,
        limited_from: 500.0,
        good_from: 2000.0,
        source: "2 ms per page: no disk head moves and settles faster; 0.5 ms: flash on a local \
                 bus or a fast network answers in this time",
    },
    DatabaseUse {
        name: "commits",
        workload: "commit-fdatasync",
        operation: OpKind::Commit,
        figure: |op| &op.figures.iops,
        limited_from: 250.0,
        good_from: 1000.0,
        source: "250/s: one revolution of a 15,000 rpm disk per commit; 1000/s: 1 ms, no more than \
                 a session's network and planner take",
    },
];

const STREAM_SOURCE: &str =
    "110 MB/s: the inner tracks of one rotating disk; 500 MB/s: a terabyte in about half an hour";

/// The verdict on a record and its findings.
pub fn verdict(record: &Record) -> RunVerdict {
    let grades: Vec<UseGrade> = USES
        .iter()
        .flat_map(|usage| grades_of_use(record, usage))
        .collect();
    // Of several targets each has its own grades, which no sentence holds.
    let figures = if grades.is_empty() || record.targets.len() > 1 {
        plain_headline(record)
    } else {
        graded_headline(&grades)
    };
    let headline = match verification_headline(record) {
        Some(outcome) => format!("{outcome} {figures}"),
        None => figures,
    };
    let mut caveats = Vec::new();
    caveats.extend(span_caveat(record));
    caveats.extend(burst_caveat(record));
    caveats.extend(scan_caveat(record));
    caveats.extend(words::accept_caveats(record));
    RunVerdict {
        headline,
        grades,
        worst: most_severe(record.findings.iter()).map(leading_finding),
        weakness: weakness_of_disk(record).map(leading_finding),
        trust: trust(record),
        caveats,
    }
}

/// The headline of a run that judged the limits of a database is their answer.
pub(crate) fn answer_fitness(record: &mut Record) {
    let headline = fitness_headline(record);
    if let Some(verdict) = &mut record.verdict
        && let Some(headline) = headline
    {
        verdict.headline = headline;
    }
}

/// The caveat that random figures cover a part of a rotating disk, with those of the whole disk
/// where they are known; `None` where they cover all of it, or no disk rotates.
fn span_caveat(record: &Record) -> Option<String> {
    let index = random_row_index(record)?;
    let whole = whole_disk(record, index)?;
    let span = format_bytes(whole.span_bytes);
    let disk = format_bytes(whole.disk_bytes);
    let ops = record.measurements[index].headline_ops();
    let (_, op) = ops.into_iter().next()?;
    Some(match whole.known {
        Some(known) => format!(
            "Look-ups are graded for the whole rotating disk: {} at an access time of {} (run {}). \
             In the scratch file of {span} they reach {}.",
            scaled_rate(&op.figures.iops, known).value_text(),
            known.disk.mean.value_text(),
            known.disk.run_id.get(..8).unwrap_or(&known.disk.run_id),
            op.figures.iops.value_text(),
        ),
        None => format!(
            "Look-ups and random figures apply to {span} of the rotating disk of {disk}; across \
             the whole disk they are lower. 'diskproof curve' on the device measures by how much."
        ),
    })
}

/// The index of the single random reads, else of the first workload with random accesses.
fn random_row_index(record: &Record) -> Option<usize> {
    let mut first_random = None;
    for (index, row) in record.measurements.iter().enumerate() {
        let name = row.data.workload.name.as_str();
        if name == "random-read-d1" {
            return Some(index);
        }
        if first_random.is_none() && name.starts_with("random-") {
            first_random = Some(index);
        }
    }
    first_random
}

/// Returns `true` if the run grades more than one use of a single target. Then a reader takes it
/// for an answer about the whole disk.
fn grades_a_disk(record: &Record) -> bool {
    let graded = USES
        .iter()
        .filter(|usage| !grades_of_use(record, usage).is_empty())
        .count();
    record.targets.len() == 1 && graded > 1
}

/// Returns `true` if readers take the rates for what the disk does for longer than the run: those
/// of several workloads, of a search, or of a test for a database.
fn is_promise(record: &Record) -> bool {
    record.plan.layers().is_none()
        && (record.measurements.len() > 1
            || record.latency_search().is_some()
            || record.plan.questions.fit_for.is_some())
}

/// The caveat that a burst credit which lasts longer than the rates were kept without a pause would
/// not have shown, and what tests for one. `None` where nothing suggests more than was measured.
fn burst_caveat(record: &Record) -> Option<String> {
    if !is_promise(record) {
        return None;
    }
    let mut sentences = Vec::new();
    for untested in untested(record) {
        sentences.push(format!(
            "Without a pause this run kept {}; a burst that lasts longer would not have shown. {}",
            untested.kept, untested.tests
        ));
    }
    if sentences.is_empty() {
        None
    } else {
        Some(sentences.join(" "))
    }
}

/// From this share of a disk on, a run has read as many bytes as the disk has, which says nothing
/// of the blocks that it read.
const WHOLE_SHARE: f64 = 0.995;

/// The caveat that the run is no search for bad blocks, with the largest share of the disk that it
/// can have read. `None` of a run that says nothing about a whole disk.
fn scan_caveat(record: &Record) -> Option<String> {
    if !grades_a_disk(record) {
        return None;
    }
    let SearchedDisks { paths, bytes } = SearchedDisks::below(record.targets.first()?);
    if bytes == 0 {
        return None;
    }
    let share = read_bytes_max(record) as f64 / bytes as f64;
    let disks = enumerated(&paths);
    let extent = if share < WHOLE_SHARE {
        format!("read at most {} of {disks}", format_percent(share))
    } else {
        format!("read some blocks of {disks} again and again, and others perhaps never")
    };
    let commands: Vec<String> = paths
        .iter()
        .map(|path| format!("'diskproof curve {path} --scan'"))
        .collect();
    let read = if paths.len() == 1 { "reads" } else { "read" };
    Some(format!(
        "This run {extent}, so it is no search for bad blocks. {} {read} every block{}.",
        enumerated(&commands),
        condition_of_scan(&record.host, &disks)
    ))
}

/// The condition under which a scan can be carried out. Other users than root, containers and
/// hypervisors may forbid that a disk is opened, which only an attempt would show: it may wake the
/// disk.
fn condition_of_scan(host: &HostFacts, disks: &str) -> String {
    let is_forbidden = host.uid != 0 || host.container.is_some() || host.hypervisor.is_some();
    if is_forbidden {
        format!(", where you may open {disks}")
    } else {
        String::new()
    }
}

/// The disks that a search for bad blocks has to read.
struct SearchedDisks {
    paths: Vec<String>,
    /// The sum of their sizes.
    bytes: u64,
}

impl SearchedDisks {
    /// A device itself, else the disks below it: of an array, each member.
    fn below(target: &TargetIdentity) -> Self {
        if target.kind == TargetKind::BlockDevice {
            return Self {
                paths: vec![target.path.clone()],
                bytes: target.size_bytes,
            };
        }
        Self {
            paths: target
                .disks()
                .map(|disk| format!("/dev/{}", disk.name))
                .collect(),
            bytes: target.disks().map(|disk| disk.size_bytes).sum(),
        }
    }
}

/// The most bytes of the only target that the run can have read, each once: no more than it
/// requested, and no more than the device or its file has.
fn read_bytes_max(record: &Record) -> u64 {
    let mut span_bytes = 0;
    let mut read_bytes = 0;
    for row in &record.measurements {
        span_bytes = row.data.span_bytes.max(span_bytes);
        read_bytes += row.data.asked.read_bytes;
    }
    if let Some(surface) = record.surface() {
        read_bytes += surface.data.asked.read_bytes;
    }
    match record.targets.first() {
        Some(target) if target.kind == TargetKind::BlockDevice => read_bytes.min(target.size_bytes),
        _ => read_bytes.min(span_bytes),
    }
}

/// The grades of one use: one for each target on which its workload ran.
fn grades_of_use(record: &Record, usage: &DatabaseUse) -> Vec<UseGrade> {
    let mut grades = Vec::new();
    // The sequential workloads of a search are there for exports; its answer is the boundary.
    if let Some(task) = record.plan.workload_task()
        && matches!(task.decide, Decide::Rate(_))
    {
        return grades;
    }
    for (index, row) in record.measurements.iter().enumerate() {
        if name_in_check(record, row) == Some(usage.workload)
            && let Some(op) = row.op(usage.operation)
        {
            grades.push(grade(record, usage, index, op));
        }
    }
    grades
}

/// Grades one use of a database by the operation of the workload at `index`.
fn grade(record: &Record, usage: &DatabaseUse, index: usize, op: OpRow<'_>) -> UseGrade {
    let within = (usage.figure)(op);
    let figure = match whole_disk(record, index) {
        Some(WholeDisk {
            known: Some(known), ..
        }) => scaled_rate(within, known),
        _ => within.clone(),
    };
    let not_graded = match record.objection(FigureSource::Measurement(index)) {
        Some(objection) if op.data.count > 0 => Some(objection.words().to_owned()),
        _ if may_be_burst(record, index) => Some("perhaps a burst".to_owned()),
        _ if is_hidden_by_waits(record, usage, index, &figure) => {
            Some("waited for a processor".to_owned())
        }
        _ => not_graded(op, &figure),
    };
    let (grade, or) = match not_graded {
        Some(_) => (None, None),
        None => {
            let grade = usage.grade(figure.value);
            (Some(grade), usage.other_grade(&figure, grade))
        }
    };
    let doubts = record
        .findings
        .iter()
        .filter(|finding| finding.is_serious() && finding.concerns(index))
        .map(|finding| finding.code.clone())
        .collect();
    UseGrade {
        name: usage.name.to_owned(),
        measurement: index,
        grade,
        or,
        not_graded,
        figure,
        thresholds: GradeThresholds {
            limited_from: usage.limited_from,
            good_from: usage.good_from,
            source: usage.source.to_owned(),
        },
        doubts,
    }
}

/// Returns `true` if the rate of a row may be that of a burst on a volume that has burst credits:
/// one in another unit ended during the run.
fn may_be_burst(record: &Record, index: usize) -> bool {
    let target = record.measurements[index].data.target;
    let is_untested = record
        .findings
        .iter()
        .any(|finding| finding.code == "burst-untested" && finding.concerns(index));
    is_untested && !ended_units(record, target).is_empty()
}

/// True if a rate had a better grade if the program had not waited for processors.
fn is_hidden_by_waits(
    record: &Record,
    usage: &DatabaseUse,
    index: usize,
    figure: &Estimate,
) -> bool {
    match waiting::rate_without_waits(record, index, figure.value) {
        Some(best) => usage.grade(best) != usage.grade(figure.value),
        None => false,
    }
}

impl DatabaseUse {
    /// The grade of a rate, without its interval.
    fn grade(&self, rate: f64) -> Grade {
        if rate >= self.good_from {
            Grade::Good
        } else if rate >= self.limited_from {
            Grade::Limited
        } else {
            Grade::Poor
        }
    }

    /// The other grade that the interval allows, if any. An interval of a graded figure is at most
    /// ±25 % and reaches one threshold at most, because they lie a factor of four apart.
    fn other_grade(&self, figure: &Estimate, grade: Grade) -> Option<Grade> {
        let half_width = figure.half_width_95.unwrap_or(0.0);
        let ends = [figure.value - half_width, figure.value + half_width];
        ends.map(|end| self.grade(end))
            .into_iter()
            .find(|other| *other != grade)
    }
}

/// The reason why a figure of the disk supports no grade; `None` where it supports one.
fn not_graded(op: OpRow<'_>, figure: &Estimate) -> Option<String> {
    if op.data.count == 0 {
        return Some("nothing was measured".to_owned());
    }
    match figure.relative_half_width() {
        None => Some("measured too briefly".to_owned()),
        Some(width) if width > HALF_WIDTH_MAX => Some(format!("unstable, {}", figure.range_text())),
        Some(_) => None,
    }
}

/// The most severe of these findings, of several the first; `None` if there are only notes.
fn most_severe<'a>(findings: impl Iterator<Item = &'a Finding>) -> Option<&'a Finding> {
    let mut worst: Option<&Finding> = None;
    for finding in findings {
        let is_worse = match worst {
            Some(worst) => finding.severity > worst.severity,
            None => true,
        };
        if is_worse && finding.is_serious() {
            worst = Some(finding);
        }
    }
    worst
}

fn leading_finding(finding: &Finding) -> LeadingFinding {
    LeadingFinding {
        severity: finding.severity,
        code: finding.code.clone(),
        title: finding.heading().to_owned(),
    }
}

/// The most severe finding on the disk itself, whose figures are right.
fn weakness_of_disk(record: &Record) -> Option<&Finding> {
    most_severe(
        record
            .findings
            .iter()
            .filter(|finding| matches!(finding.says, Meaning::Disk | Meaning::Health)),
    )
}

/// The trust in the figures: wrong ones count before doubtful ones. A good measurement of a bad
/// disk is reliable.
fn trust(record: &Record) -> Trust {
    let mut wrong = Vec::new();
    let mut doubtful = Vec::new();
    for finding in &record.findings {
        if !finding.is_serious() {
            continue;
        }
        if finding.says.makes_doubtful() {
            doubtful.push(finding);
        } else if finding.says.objection().is_some() {
            wrong.push(finding);
        }
    }
    let count = wrong.len() + doubtful.len();
    if let Some(finding) = most_severe(wrong.iter().copied()) {
        return trust_lowered_by(TrustLevel::Unreliable, "Unreliable", finding, count);
    }
    if let Some(finding) = most_severe(doubtful.iter().copied()) {
        return trust_lowered_by(TrustLevel::Doubtful, "Doubtful", finding, count);
    }
    let may_not_last = promises_untested_depth(record)
        || has_untested_rate(record)
        || (is_promise(record) && exceeds_even_rate(record));
    let (level, why) = if record.is_of_page_cache() {
        (
            TrustLevel::Doubtful,
            "The figures are those of the page cache, and say nothing of the disk.",
        )
    } else if !record.partial && may_not_last {
        (
            TrustLevel::Reliable,
            "The figures are reliable for the time of the run; whether they last is not known.",
        )
    } else if !record.partial {
        (TrustLevel::Reliable, "The figures are reliable.")
    } else if has_figures(record) {
        (
            TrustLevel::Doubtful,
            "The run ended early; the figures up to that point are reliable.",
        )
    } else {
        (
            TrustLevel::Doubtful,
            "The run ended before anything was measured.",
        )
    };
    Trust {
        level,
        why: why.to_owned(),
        finding: None,
    }
}

/// Returns `true` if the answer is a depth to use from now on, and a burst credit that outlasts the
/// search would not have shown.
fn promises_untested_depth(record: &Record) -> bool {
    let promises_depth = match record.latency_search() {
        Some(search) => search.found().is_some(),
        None => false,
    };
    promises_depth && burst_caveat(record).is_some()
}

/// Returns `true` if a rate is as even as that of a limiter, and the run does not show that it
/// lasts. Where it is no doubt, it may as well be the rate of a link.
fn has_untested_rate(record: &Record) -> bool {
    record
        .findings
        .iter()
        .any(|finding| finding.code == "burst-untested")
}

/// `Doubtful: other programs used the disk (+2 more).` One line of a terminal.
fn trust_lowered_by(level: TrustLevel, word: &str, finding: &Finding, count: usize) -> Trust {
    let more = match count {
        0 | 1 => String::new(),
        count => format!(" (+{} more)", count - 1),
    };
    let title = uncapitalised(finding.heading());
    Trust {
        level,
        why: format!("{word}: {title}{more}."),
        finding: Some(finding.code.clone()),
    }
}

/// An interrupted survey, and a run on files, are in the record even if nothing was measured. The
/// trials of a search are measured, and are in no row.
fn has_figures(record: &Record) -> bool {
    for row in &record.measurements {
        if row.data.ops.values().any(|op| op.count > 0) {
            return true;
        }
    }
    record.has_figures_of_results()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::files::{file_step, files_plan, files_record};
    use crate::fixture::searched::answer;
    use crate::fixture::{self, finding, states, surveyed};
    use diskproof_model::expectation::Expectation;
    use diskproof_model::files::FileOperation;
    use diskproof_model::finding::Severity;
    use diskproof_model::limiter::BurstCredit;
    use diskproof_model::measurement::{Hang, Starvation};
    use diskproof_model::plan::CachePolicy;
    use diskproof_model::rate::{LoadData, LoadOutcome, LoadRecord};
    use diskproof_model::record::TaskResult;

    fn of<'a>(verdict: &'a RunVerdict, name: &str) -> &'a UseGrade {
        verdict
            .grades
            .iter()
            .find(|grade| grade.name == name)
            .unwrap()
    }

    /// The verdict on commits at a rate, known to this half-width.
    fn at_rate(value: f64, half_width: f64) -> RunVerdict {
        let mut record = fixture::record();
        let op = record.measurements[7]
            .figures
            .ops
            .get_mut(&OpKind::Commit)
            .unwrap();
        (op.iops.value, op.iops.half_width_95) = (value, Some(half_width));
        verdict(&record)
    }

    #[test]
    fn verdict_of_a_quiet_disk_has_grades_and_no_warning() {
        let verdict = verdict(&fixture::record());
        let headline = "Limited or good for look-ups; limited for bulk load, scans and commits.";
        assert_eq!(verdict.headline, headline);
        assert_eq!(
            (&verdict.worst, verdict.trust.level),
            (&None, TrustLevel::Reliable)
        );
        assert_eq!(verdict.grades.len(), 4);
        assert!(verdict.grades.iter().all(|grade| grade.doubts.is_empty()));
        assert_eq!(of(&verdict, "commits").figure.value_text(), "500/s");
    }

    /// The rate is that of the answered commits, and one waited for 45 s.
    #[test]
    fn verdict_does_not_grade_a_row_without_all_answers() {
        for late in [false, true] {
            let record = fixture::faulty("commit-fdatasync", |measurement| {
                measurement.hang = Some(Hang {
                    since_ns: measurement.start_ns + 1,
                    lasted_ns: 45_000_000_000,
                    requests: 1,
                    late,
                });
            });
            let verdict = verdict(&record);
            let commits = of(&verdict, "commits");
            assert_eq!(commits.grade, None);
            states(&commits.words(), &["no answer"]);
            // The disk answered all others.
            assert!(of(&verdict, "look-ups").grade.is_some());
        }
    }

    #[test]
    fn verdict_does_not_grade_an_unstable_figure() {
        let verdict = at_rate(300.0, 180.0);
        let commits = of(&verdict, "commits");
        assert_eq!(commits.grade, None);
        states(&commits.words(), &["unstable", "140 to 480/s"]);
        states(&verdict.headline, &["not graded: commits"]);
    }

    #[test]
    fn verdict_names_both_grades_that_an_interval_reaches() {
        for (value, half_width, words) in [
            (249.0, 0.5, "poor"),
            (249.0, 20.0, "poor or limited"),
            (250.0, 0.0, "limited"),
            (999.0, 0.5, "limited"),
            (1000.0, 100.0, "limited or good"),
            (1200.0, 100.0, "good"),
        ] {
            let verdict = at_rate(value, half_width);
            assert_eq!(
                of(&verdict, "commits").words(),
                words,
                "{value} ± {half_width}"
            );
        }
    }

    #[test]
    fn verdict_does_not_grade_what_a_cache_answered() {
        let record = fixture::faulty("sequential-read", |m| m.device.read_bytes = 0);
        let verdict = verdict(&record);
        let scans = of(&verdict, "scans");
        assert_eq!(
            (scans.grade, &scans.doubts[..]),
            (None, &["served-from-cache".to_owned()][..])
        );
        assert_eq!(verdict.worst.unwrap().code, "served-from-cache");
        assert_eq!(verdict.trust.level, TrustLevel::Unreliable);
    }

    #[test]
    fn rate_that_waits_for_processors_explain_has_no_grade_below_the_best() {
        let scans_of = |share: f64, slower: f64| {
            let mut record = fixture::faulty("sequential-read", |measurement| {
                measurement.starved = Starvation {
                    share,
                    mean_wait_ns: 5e6,
                };
            });
            let row = fixture::measured(&mut record, "sequential-read");
            for op in row.figures.ops.values_mut() {
                op.throughput.value /= slower;
                op.throughput.half_width_95 = Some(op.throughput.value / 100.0);
            }
            let verdict = verdict(&record);
            of(&verdict, "scans").clone()
        };
        assert!(scans_of(0.72, 100.0).not_graded.is_some());
        assert_eq!(scans_of(0.05, 100.0).grade, Some(Grade::Poor));
        assert!(scans_of(0.72, 1e-3).grade.is_some());
    }

    #[test]
    fn figures_of_the_page_cache_are_not_called_reliable() {
        let search = TaskResult::Load(Box::new(LoadRecord {
            figures: answer(LoadOutcome::Sustained, 1000.0, 0.01),
            data: LoadData { trials: Vec::new() },
        }));
        let trusted = |policy: CachePolicy, results: &[TaskResult]| {
            let mut record = fixture::all_faulty(|measurement| {
                measurement.cache.used = policy;
                measurement.device.read_bytes = 0;
            });
            record
                .measurements
                .retain(|row| row.data.workload.name == "sequential-read");
            record.findings.clear();
            record.results = results.to_vec();
            verdict(&record).trust.level
        };
        // A search or a sweep rests on its rows.
        for results in [&[][..], &[search]] {
            assert_eq!(trusted(CachePolicy::Cached, results), TrustLevel::Doubtful);
            assert_eq!(trusted(CachePolicy::Direct, results), TrustLevel::Reliable);
        }
    }

    /// Writes without a sync that fill the memory wait for the disk.
    #[test]
    fn cached_writes_that_the_disk_took_are_not_of_the_page_cache() {
        for (share, is_cached) in [(0.0, true), (0.3, true), (0.9, false)] {
            let mut record = fixture::all_faulty(|measurement| {
                measurement.cache.used = CachePolicy::Cached;
                let asked = measurement.asked.write_bytes as f64;
                measurement.device.write_bytes = (share * asked) as u64;
            });
            record
                .measurements
                .retain(|row| row.data.workload.name == "sequential-write");
            for row in &mut record.measurements {
                row.data.ops.remove(&OpKind::Sync);
            }
            record.findings.clear();
            record.results.clear();
            assert_eq!(record.is_of_page_cache(), is_cached, "{share}");
        }
    }

    #[test]
    fn bad_disk_that_was_measured_well_has_reliable_figures() {
        let path = "/measurements/0/data/wall_ns";
        for (code, path) in [
            ("health-failing", "/health/0/passed"),
            ("slow-flush", path),
            ("stalled", path),
            ("rate-limited", path),
        ] {
            let mut record = fixture::record();
            record.findings = vec![finding(code, Severity::Failure, path)];
            let judged = verdict(&record);
            let is_limit = code == "rate-limited";
            let weakness = judged.weakness.map(|finding| finding.code);
            assert_eq!(judged.worst.unwrap().code, code);
            assert_eq!(weakness, (!is_limit).then(|| code.to_owned()));
            assert_eq!(judged.trust.level, TrustLevel::Reliable, "{code}");
            record.partial = true;
            assert_eq!(verdict(&record).trust.level, TrustLevel::Doubtful);
        }
    }

    #[test]
    fn a_run_that_ended_before_it_measured_anything_calls_no_figures_reliable() {
        let why = |mut record: Record| {
            (record.partial, record.findings) = (true, Vec::new());
            verdict(&record).trust.why
        };
        let mut none = fixture::record();
        none.measurements.clear();
        let none = why(none);
        let unsurveyed = surveyed::faulty(|survey| {
            (survey.curve, survey.access) = (Vec::new(), Vec::new());
            survey.burst = None;
        });
        let files = |steps| files_record("f", files_plan(), steps);
        let step = file_step(FileOperation::Create, &[5, 9]);
        for part in [fixture::record(), surveyed::record(), files(vec![step])] {
            assert_ne!(why(part), none);
        }
        assert_eq!([why(unsurveyed), why(files(Vec::new()))], [&*none; 2]);
    }

    #[test]
    fn trust_names_the_finding_that_decides_and_counts_the_others() {
        let path = "/measurements/0/data/wall_ns";
        let busy = || finding("disturbed", Severity::Warning, path);
        let note = || finding("virtual-disk", Severity::Note, path);
        let cached = || finding("served-from-cache", Severity::Warning, path);
        let ill = || finding("health-failing", Severity::Failure, "/health/0/passed");
        for (findings, level, code, parts) in [
            (vec![note()], TrustLevel::Reliable, None, &[][..]),
            (
                vec![note(), busy()],
                TrustLevel::Doubtful,
                Some("disturbed"),
                &["title of disturbed."],
            ),
            (
                vec![ill(), busy(), cached(), note()],
                TrustLevel::Unreliable,
                Some("served-from-cache"),
                &["(+1 more)"],
            ),
            (
                vec![busy(), ill()],
                TrustLevel::Doubtful,
                Some("disturbed"),
                &[],
            ),
        ] {
            let mut record = fixture::record();
            record.findings = findings;
            let trust = verdict(&record).trust;
            assert_eq!((trust.level, trust.finding.as_deref()), (level, code));
            states(&trust.why, parts);
        }
    }

    #[test]
    fn look_ups_of_a_scratch_file_are_graded_for_the_whole_disk() {
        let known = fixture::on_rotating_disk(true).verdict.unwrap();
        let look_ups = of(&known, "look-ups");
        assert!((look_ups.figure.value - 500.0).abs() < 1.0, "{look_ups:?}");
        states(&known.caveats[0], &["500/s", "run c0ffee00"]);
        let unknown = fixture::on_rotating_disk(false).verdict.unwrap();
        assert_eq!(of(&unknown, "look-ups").figure.value, 2000.0);
        states(&unknown.caveats[0], &["rotating disk"]);
        assert_eq!(fixture::record().verdict.unwrap().caveats.len(), 2);
    }

    /// A hypervisor may forbid even root to open a disk.
    #[test]
    fn scan_is_advised_with_its_condition_where_the_disk_may_be_forbidden() {
        let caveat = |change: fn(&mut HostFacts)| {
            let record = fixture::changed(|run| {
                run.facts.host.uid = 0;
                change(&mut run.facts.host);
            });
            record.verdict.unwrap().caveats[1].clone()
        };
        let unconditional = caveat(|_| {});
        assert!(
            unconditional.ends_with("--scan' reads every block."),
            "{unconditional}"
        );
        for change in [
            (|host| host.hypervisor = Some("kvm".to_owned())) as fn(&mut HostFacts),
            |host| host.container = Some("docker".to_owned()),
            |host| host.uid = 1000,
        ] {
            states(&caveat(change), &["--scan'", "where you may open /dev/sda"]);
        }
    }

    #[test]
    fn check_states_the_burst_that_it_cannot_exclude() {
        let record = fixture::record();
        let caveats = &record.verdict.as_ref().unwrap().caveats;
        assert_eq!(caveats.len(), 2);
        states(&caveats[1], &["'diskproof curve /dev/sda --scan'"]);
        // The rows of the fixture all begin at once: none follows another without a pause.
        states(
            &caveats[0],
            &[
                "10,000/s for 5.0 s",
                "MB/s for 5.0 s",
                "'diskproof run /data --rw randread --bs 8k --depth 32 --time 30m'",
                "'diskproof run /data --rw read --bs 1M --depth 8 --time ",
            ],
        );
        // The 8 KiB reads and writes fell to the rate of a limiter: the streams did not.
        let mut ended = record.clone();
        ended.burst_credits = vec![BurstCredit {
            target: 0,
            unit: "1/s".to_owned(),
            base: 5000.0,
            burst: 10_000.0,
            credit: 20_000.0,
            credit_is_lower_bound: true,
            burst_ns: 4_000_000_000,
            refill_ns: 4_000_000_000,
            at_base: vec![2],
            in_burst: vec![3],
            has_reads: true,
            has_refilled: false,
        }];
        let streams = &verdict(&ended).caveats[0];
        states(
            streams,
            &["MB/s for 5.0 s", "'diskproof run /data --rw read --bs 1M"],
        );
        assert!(
            !streams.contains("10,000/s") && !streams.contains("--bs 8k"),
            "{streams}"
        );
        let mut run = record;
        run.measurements.truncate(1);
        assert!(verdict(&run).caveats.is_empty());
    }

    #[test]
    fn headline_of_a_fitness_test_is_its_answer() {
        let mut record = fixture::record();
        assert_eq!(fitness_headline(&record), None);
        record.plan.questions.fit_for = Some("etcd".to_owned());
        let judged = |expression: &str, met, undecided| Expectation {
            expression: expression.to_owned(),
            observed: Some(1.0),
            interval: None,
            observed_at_least: None,
            met,
            undecided,
            decided_by_ns: None,
            objection: None,
            threshold: None,
            promise: None,
        };
        record.plan.questions.fit_limits = ["a>=1", "b<=2ms", "c<=3ms"].map(str::to_owned).to_vec();
        let met = || judged("a>=1", true, false);
        let open = || judged("b<=2ms", false, true);
        for (expectations, parts) in [
            (vec![met(), met()], ["Fit for etcd", "both"]),
            (vec![met()], ["Fit for etcd", "its limit"]),
            // The user's own threshold says nothing about the profile.
            (
                vec![judged("d>=9", false, false), met()],
                ["Fit for etcd", "its limit"],
            ),
            (vec![met(), open()], ["Undecided for etcd", "b<=2ms"]),
            (
                vec![open(), judged("c<=3ms", false, false)],
                ["Not fit for etcd", " c<=3ms"],
            ),
            (vec![], ["Undecided", "etcd"]),
        ] {
            record.expectations = expectations;
            states(&fitness_headline(&record).unwrap(), &parts);
        }
        record.expectations = vec![met(), met()];
        record.partial = true;
        let partial = fitness_headline(&record).unwrap();
        states(&partial, &["Undecided for etcd", "both", "ended early"]);
        // The limits may be those of another workload than the one that hung.
        let mut hung = finding("hung", Severity::Failure, "");
        hung.says = Meaning::EndedEarly;
        record.findings.push(hung);
        for (last, parts) in [
            (met(), ["Undecided for etcd", "stopped answering"]),
            (open(), ["Undecided for etcd", "stopped answering"]),
            (
                judged("c<=3ms", false, false),
                ["Not fit for etcd", " c<=3ms"],
            ),
        ] {
            record.expectations = vec![met(), last];
            states(&fitness_headline(&record).unwrap(), &parts);
        }
    }

    #[test]
    fn headline_of_an_ungraded_run_shows_its_figures() {
        let mut record = fixture::record();
        record.measurements.truncate(5);
        record.measurements.drain(..3);
        for m in &mut record.measurements {
            m.data.workload.name = format!("my-{}", m.data.workload.name);
        }
        let ungraded = verdict(&record);
        assert_eq!(ungraded.grades, []);
        states(
            &ungraded.headline,
            &["My-random-read-d32", "10,000/s (81.9"],
        );
        record.measurements.clear();
        assert_eq!(verdict(&record).headline, "Nothing was measured.");
    }
}
