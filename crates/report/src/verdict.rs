//! The answer before the figures: what a disk is good for, in plain words, and how far the figures
//! can be trusted. Words only: every number comes from the record as it is, and no judgement here
//! is finer than the kinds of disk that it tells apart.

use diskproof_model::finding::{Finding, Severity};
use diskproof_model::measurement::OpKind;
use diskproof_model::record::{MeasurementRecord, OpRecord, Record};
use diskproof_model::units::{
    counted, format_bytes, format_duration, format_latency, format_rate, format_throughput,
};

/// How well a disk suits a use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// The disk is not what limits it.
    Good,
    /// It works, and the figure is the limit to plan with.
    Limited,
    /// It will be felt.
    Poor,
}

impl Grade {
    /// The words used for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "well suited",
            Self::Limited => "usable, with limits",
            Self::Poor => "poorly suited",
        }
    }
}

/// One use of a disk, and how the disk suits it.
#[derive(Debug, Clone, PartialEq)]
pub struct Use {
    /// What one does with it, such as `many small commits`.
    pub name: &'static str,
    /// How it suits.
    pub grade: Grade,
    /// The figures behind the grade.
    pub why: String,
    /// Index into `measurements`.
    pub measurement: usize,
    /// Codes of the warnings and failures that touch this measurement: the grade stands on shaky
    /// ground.
    pub doubts: Vec<String>,
}

/// How far the figures can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trust {
    /// Nothing was seen that puts them in doubt.
    Sound,
    /// Some may not mean what they seem to.
    Doubtful,
    /// Some are wrong, or the disk is.
    Broken,
}

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// One or two sentences.
    pub headline: String,
    /// How far to trust it.
    pub trust: Trust,
    /// Why, in a sentence.
    pub trust_why: String,
    /// By use, for the figures that `check` takes; empty for other runs.
    pub uses: Vec<Use>,
}

/// A disk that turns 7200 times a minute makes at most 120 durable writes a second, one per
/// revolution, and one that turns 15000 times 250: below this the disk waits for its platter at
/// every commit.
const COMMITS_PER_REVOLUTION: f64 = 250.0;
/// At a thousand commits a second one after the other each costs a session less than what its
/// network and planner do.
const COMMITS_EASY: f64 = 1000.0;
/// No head moves and settles faster than this (track to track plus half a revolution at 15000 rpm
/// is above 2 ms); flash answers ten times sooner.
const SEEK_NS_MIN: f64 = 2.0e6;
/// Flash behind a bus or a fast network answers within this; slower ones queue somewhere.
const FLASH_NS_MAX: f64 = 500e3;
/// A terabyte in half an hour.
const SCAN_EASY: f64 = 500e6;
/// A terabyte in two and a half hours: what one rotating disk gives on its inner tracks.
const SCAN_SLOW: f64 = 110e6;

/// The answer of a run.
pub fn verdict(record: &Record) -> Verdict {
    let uses: Vec<Use> = record
        .measurements
        .iter()
        .enumerate()
        .filter_map(|(index, m)| judge_use(record, index, m))
        .collect();
    let (trust, trust_why) = trust(record);
    let headline = if uses.is_empty() {
        plain_headline(record)
    } else {
        graded_headline(&uses)
    };
    Verdict {
        headline,
        trust,
        trust_why,
        uses,
    }
}

/// The warnings and failures whose evidence points into a measurement.
pub fn doubts(record: &Record, measurement: usize) -> Vec<&Finding> {
    let root = format!("/measurements/{measurement}");
    let points_here = |path: &str| {
        path.strip_prefix(&root)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let weighty = record
        .findings
        .iter()
        .filter(|finding| finding.severity >= Severity::Warning);
    weighty
        .filter(|finding| {
            finding
                .evidence
                .iter()
                .any(|evidence| points_here(&evidence.path))
        })
        .collect()
}

fn judge_use(record: &Record, index: usize, m: &MeasurementRecord) -> Option<Use> {
    let read = || m.ops.get(&OpKind::Read);
    let write = || m.ops.get(&OpKind::Write);
    let (name, (grade, why)) = match m.workload.name.as_str() {
        "commit-fdatasync" => ("many small commits", commits(m.ops.get(&OpKind::Commit)?)),
        "random-read-d1" => (
            "look-ups in data larger than memory",
            look_ups(record, m.target, read()?),
        ),
        "sequential-read" => ("reports, scans and backups", stream(read()?, "reading")),
        "sequential-write" => ("bulk loads and restores", stream(write()?, "writing")),
        _ => return None,
    };
    let doubts = doubts(record, index)
        .iter()
        .map(|finding| finding.code.clone())
        .collect();
    Some(Use {
        name,
        grade,
        why,
        measurement: index,
        doubts,
    })
}

fn commits(op: &OpRecord) -> (Grade, String) {
    let grade = by_rate(op.iops.value, COMMITS_PER_REVOLUTION, COMMITS_EASY);
    let tail = op.latency.p99.map_or(String::new(), |p99| {
        format!(
            "; one in a hundred takes longer than {}",
            format_latency(p99)
        )
    });
    (
        grade,
        format!(
            "{} commits a second one after the other{tail}.",
            format_rate(op.iops.value)
        ),
    )
}

fn look_ups(record: &Record, target: usize, op: &OpRecord) -> (Grade, String) {
    let grade = match op.latency.mean {
        ns if ns <= FLASH_NS_MAX => Grade::Good,
        ns if ns < SEEK_NS_MIN => Grade::Limited,
        _ => Grade::Poor,
    };
    let together = record
        .measurements
        .iter()
        .find(|m| m.target == target && m.workload.name == "random-read-d32");
    let together = together.and_then(|m| m.ops.get(&OpKind::Read));
    let together = together.map_or(String::new(), |op| {
        format!(
            "; {} pages a second with 32 reads in flight",
            format_rate(op.iops.value)
        )
    });
    (
        grade,
        format!(
            "A random page takes {} on average{together}.",
            format_latency(op.latency.mean.round() as u64)
        ),
    )
}

fn stream(op: &OpRecord, doing: &str) -> (Grade, String) {
    let rate = op.throughput.value;
    let grade = by_rate(rate, SCAN_SLOW, SCAN_EASY);
    let time = if rate > 0.0 {
        format_duration((100e18 / rate).min(u64::MAX as f64) as u64)
    } else {
        "no end of time".to_owned()
    };
    (
        grade,
        format!("{}: {doing} 100 GB takes {time}.", format_throughput(rate)),
    )
}

fn by_rate(rate: f64, poor_below: f64, good_from: f64) -> Grade {
    match rate {
        r if r >= good_from => Grade::Good,
        r if r >= poor_below => Grade::Limited,
        _ => Grade::Poor,
    }
}

/// `Well suited for … and …; usable, with limits, for …`.
fn graded_headline(uses: &[Use]) -> String {
    let clause = |grade: Grade, words: &str| {
        let names: Vec<&str> = uses
            .iter()
            .filter(|u| u.grade == grade)
            .map(|u| u.name)
            .collect();
        (!names.is_empty()).then(|| format!("{words} {}", enumerate(&names)))
    };
    let clauses = [
        clause(Grade::Good, "well suited for"),
        clause(Grade::Limited, "usable, with limits, for"),
        clause(Grade::Poor, "poorly suited for"),
    ];
    sentence(&clauses.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

/// The figures themselves, where no grade is due.
fn plain_headline(record: &Record) -> String {
    let mut clauses: Vec<String> = surface_clauses(record);
    if clauses.is_empty() {
        clauses.extend(
            record
                .measurements
                .iter()
                .flat_map(measurement_clauses)
                .take(CLAUSES_MAX),
        );
    }
    if clauses.is_empty() {
        "Nothing was measured.".to_owned()
    } else {
        sentence(&clauses.join("; "))
    }
}

/// More than a reader takes in before the table.
const CLAUSES_MAX: usize = 3;

fn surface_clauses(record: &Record) -> Vec<String> {
    let Some(surface) = &record.surface else {
        return Vec::new();
    };
    let rate = surface.rate.as_ref().map(|rate| {
        let doing = if surface.operation == OpKind::Write {
            "writes"
        } else {
            "reads"
        };
        let average = format_throughput(rate.average.value);
        format!(
            "{doing} {average} on average, between {} and {} by position",
            format_throughput(rate.min),
            format_throughput(rate.max)
        )
    });
    let seek = surface
        .seeks
        .get(&diskproof_model::surface::SeekPattern::Random);
    let seek = seek.map(|seek| {
        format!(
            "a random access takes {} on average",
            format_latency(seek.mean.value.round() as u64)
        )
    });
    let are = |n: u64| if n == 1 { "is" } else { "are" };
    let scan = surface
        .scan
        .as_ref()
        .map(|scan| match (scan.unreadable_bytes, scan.slow_blocks) {
            (0, 0) if scan.blocks == 1 => "the one block scanned read well".to_owned(),
            (0, 0) => format!("all of {} blocks scanned read well", scan.blocks),
            (0, slow) => format!(
                "{slow} of {} scanned {} slow",
                counted(scan.blocks, "block"),
                are(slow)
            ),
            (bytes, slow) => {
                let (lost, blocks) = (format_bytes(bytes), counted(scan.blocks, "block"));
                format!(
                    "{lost} could not be read, and {slow} of {blocks} scanned {} slow",
                    are(slow)
                )
            }
        });
    rate.into_iter().chain(seek).chain(scan).collect()
}

fn measurement_clauses(m: &MeasurementRecord) -> Vec<String> {
    let clause = |(kind, op): (OpKind, &OpRecord)| {
        let middle = op.latency.p50.map_or(String::new(), |p50| {
            format!(", half of them within {}", format_latency(p50))
        });
        let kind = match kind {
            OpKind::Read => "reads",
            OpKind::Write => "writes",
            OpKind::Sync => "syncs",
            OpKind::Commit => "commits",
        };
        format!(
            "{}: {} {kind} a second ({}){middle}",
            m.workload.name,
            format_rate(op.iops.value),
            format_throughput(op.throughput.value)
        )
    };
    m.headline_ops().into_iter().map(clause).collect()
}

fn trust(record: &Record) -> (Trust, String) {
    let count = |severity| {
        record
            .findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    };
    let (failures, warnings) = (count(Severity::Failure), count(Severity::Warning));
    let missed = record
        .expectations
        .iter()
        .filter(|expectation| !expectation.met)
        .count();
    let (trust, mut why) = match (failures, warnings) {
        (0, 0) if record.partial => (
            Trust::Doubtful,
            "The run ended early; nothing was seen that puts in doubt what was measured."
                .to_owned(),
        ),
        (0, 0) => (
            Trust::Sound,
            "Nothing was seen that puts these figures in doubt.".to_owned(),
        ),
        (0, n) => (
            Trust::Doubtful,
            format!(
                "Read these figures with care: {} below.",
                counted(n as u64, "warning")
            ),
        ),
        (n, _) => (
            Trust::Broken,
            format!(
                "The figures are wrong, or the disk is: {} below.",
                counted(n as u64, "failure")
            ),
        ),
    };
    if missed > 0 {
        why.push_str(&format!(
            " {missed} of {} missed.",
            counted(record.expectations.len() as u64, "expectation")
        ));
    }
    (trust, why)
}

fn enumerate(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|c| c.to_uppercase().to_string())
        .unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_headline_names_the_good_uses_first() {
        let graded = |name, grade| Use {
            name,
            grade,
            why: String::new(),
            measurement: 0,
            doubts: Vec::new(),
        };
        let uses = [
            graded("commits", Grade::Poor),
            graded("scans", Grade::Good),
            graded("loads", Grade::Good),
            graded("x", Grade::Limited),
        ];
        let text = "Well suited for scans and loads; usable, with limits, for x; poorly suited \
                    for commits.";
        assert_eq!(graded_headline(&uses), text);
    }

    #[test]
    fn rates_fall_into_their_grades() {
        let grade = |rate| by_rate(rate, COMMITS_PER_REVOLUTION, COMMITS_EASY);
        assert_eq!(
            [grade(120.0), grade(250.0), grade(999.0), grade(1000.0)],
            [Grade::Poor, Grade::Limited, Grade::Limited, Grade::Good]
        );
    }

    #[test]
    fn names_are_joined_as_in_speech() {
        assert_eq!(enumerate(&["a"]), "a");
        assert_eq!(enumerate(&["a", "b", "c"]), "a, b and c");
    }
}
