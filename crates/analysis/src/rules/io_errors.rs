//! `io-errors`: operations of a workload or of a result, or calls of the run itself, failed. The
//! crate `model` explains each errno; `unreadable-blocks` reports the errors of a scan.

use super::rule::*;
use crate::words::sentence;
use diskproof_model::accept::AcceptVerdict;
use diskproof_model::errno::{meaning, remedy};
use diskproof_model::files_record::FilesRecord;
use diskproof_model::record::TaskResult;
use diskproof_model::target::TargetKind;
use std::collections::BTreeMap;

pub(super) const RULE: Rule = Rule {
    code: "io-errors",
    title: "Operations failed",
    summary: "The disk, something on the path to it, or a quota failed operations during the \
              measurement, its warm-up, the first requests before it, or while the run prepared \
              and wrote back its files.",
    remedy: Remedy::ByCase,
    check: Check::Run(check),
    says: Meaning::NotTheDisk {
        cause: Cause::Failed,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Points of the curve named as evidence.
const POINTS_NAMED_MAX: usize = 10;

/// Errors of operations on files that are none of the disk: another program has removed the file or
/// made one in its place, or the filesystem is full.
const NOT_OF_THE_DISK: [&str; 4] = ["ENOENT", "EEXIST", "ENOSPC", "EDQUOT"];

/// Errors of a filesystem without room, or of a user without any left: the disk has failed nothing.
const OF_A_FULL_FILESYSTEM: [&str; 2] = ["ENOSPC", "EDQUOT"];

/// The errors of a run. The scan of a survey has its own findings.
#[derive(Default)]
struct Failures<'a> {
    /// Failed operations by their errno.
    totals: BTreeMap<&'a str, u64>,
    /// Where they failed, in words.
    places: Vec<String>,
    evidence: Vec<Evidence>,
}

impl<'a> Failures<'a> {
    fn add_workloads(&mut self, record: &'a Record) {
        let mut hits = Vec::new();
        for measured in measured_rows(record) {
            let is_hung = measured.row.data.hang.is_some();
            for (kind, op) in measured.row.ops() {
                for (errno, count) in &op.data.errors {
                    // What a hang left without an answer has its own finding.
                    if *count == 0 || (is_hung && errno == "ETIMEDOUT") {
                        continue;
                    }
                    *self.totals.entry(errno).or_default() += count;
                    let place = format!("data/ops/{}/errors/{errno}", kind.as_str());
                    self.evidence
                        .push(measured.evidence(&place, *count as f64, 0.0, "1"));
                    hits.push(measured.index);
                }
            }
        }
        if !hits.is_empty() {
            self.places.push(workload_names(record, hits));
        }
    }

    fn add_curve(&mut self, record: &'a Record) {
        let curve = record.curve();
        let mut failed = 0;
        let mut first_offset = None;
        for (index, point) in curve.iter().enumerate() {
            if point.errors == 0 {
                continue;
            }
            failed += 1;
            first_offset.get_or_insert(point.offset_bytes);
            if failed <= POINTS_NAMED_MAX {
                let path = first_result_path(&format!("data/curve/{index}/errors"));
                self.evidence
                    .push(evidence_at(path, point.errors as f64, 0.0, "1"));
            }
        }
        let Some(offset_bytes) = first_offset else {
            return;
        };
        for (errno, count) in curve.iter().flat_map(|point| &point.errnos) {
            *self.totals.entry(errno).or_default() += count;
        }
        self.places.push(format!(
            "{failed} of {} of the curve (the first at {})",
            counted(curve.len() as u64, "point"),
            gigabytes(offset_bytes)
        ));
    }

    /// The accesses of the survey, and its requests before the curve.
    fn add_other_requests(&mut self, record: &'a Record) {
        let Some(surface) = record.surface() else {
            return;
        };
        let mut has_failed = false;
        for (errno, count) in &surface.data.access_errors {
            if *count == 0 {
                continue;
            }
            has_failed = true;
            *self.totals.entry(errno).or_default() += count;
            let path = first_result_path(&format!("data/access_errors/{errno}"));
            self.evidence
                .push(evidence_at(path, *count as f64, 0.0, "1"));
        }
        if has_failed {
            self.places.push("other requests of the survey".to_owned());
        }
    }
}

impl<'a> Failures<'a> {
    /// The requests that were made for a result itself.
    fn add_result(&mut self, record: &'a Record, index: usize) {
        match &record.results[index] {
            TaskResult::Survey(_) => {
                self.add_curve(record);
                self.add_other_requests(record);
            }
            // A server ends because of them.
            TaskResult::Inserts(inserts) => self.add_errors(
                &inserts.errors,
                "the PostgreSQL server",
                &format!("/results/{index}/errors"),
            ),
            TaskResult::Files(files) => self.add_files(files, index),
            // What failed in a rejected disk is the reason of that, and has findings of its own.
            TaskResult::Accept(accept) if accept.figures.verdict != AcceptVerdict::Reject => self
                .add_errors(
                    &accept.data.errors,
                    ACCEPTANCE_TEST,
                    &format!("/results/{index}/data/errors"),
                ),
            // These follow from the measurements, or from the load of others.
            TaskResult::Accept(_)
            | TaskResult::Sweep(_)
            | TaskResult::Depth(_)
            | TaskResult::Sustain(_)
            | TaskResult::Load(_)
            | TaskResult::Rays(_)
            | TaskResult::Layers(_)
            | TaskResult::Compared(_)
            | TaskResult::Together(_)
            | TaskResult::Observed(_) => {}
        }
    }

    /// The operations on small files. Where another program takes the files away, the disk has not
    /// failed.
    fn add_files(&mut self, files: &'a FilesRecord, index: usize) {
        for (number, step) in files.steps.iter().enumerate() {
            let place = step.data.step.name();
            for (errno, count) in &step.data.op.errors {
                if *count == 0 || NOT_OF_THE_DISK.contains(&errno.as_str()) {
                    continue;
                }
                *self.totals.entry(errno).or_default() += count;
                let path = format!("/results/{index}/steps/{number}/data/op/errors/{errno}");
                self.evidence
                    .push(evidence_at(path, *count as f64, 0.0, "1"));
                if !self.places.contains(&place) {
                    self.places.push(place.clone());
                }
            }
        }
    }

    fn add_errors(&mut self, errors: &'a BTreeMap<String, u64>, place: &str, path: &str) {
        for (errno, count) in errors {
            *self.totals.entry(errno).or_default() += count;
            let path = format!("{path}/{errno}");
            self.evidence
                .push(evidence_at(path, *count as f64, 0.0, "1"));
        }
        if !errors.is_empty() {
            self.places.push(place.to_owned());
        }
    }

    /// The call of the run itself that ended it.
    fn add_failed_call(&mut self, record: &'a Record) {
        let Some(failed) = &record.failed else {
            return;
        };
        *self.totals.entry(&failed.errno).or_default() += failed.count;
        let path = "/failed/count".to_owned();
        self.evidence
            .push(evidence_at(path, failed.count as f64, 0.0, "1"));
        let target = match failed.target.and_then(|index| record.targets.get(index)) {
            Some(target) if record.targets.len() > 1 => format!(" on {}", target.path),
            Some(_) | None => String::new(),
        };
        self.places
            .push(format!("an attempt to {}{target}", failed.doing));
    }
}

fn check(record: &Record) -> Option<Diagnosis> {
    let mut failures = Failures::default();
    failures.add_workloads(record);
    for index in 0..record.results.len() {
        failures.add_result(record, index);
    }
    failures.add_failed_call(record);
    if failures.places.is_empty() {
        return None;
    }
    let counts: Vec<String> = failures
        .totals
        .iter()
        .map(|(errno, count)| format!("{count} × {errno} ({})", meaning(errno)))
        .collect();
    let failed = match failures.totals.values().sum::<u64>() {
        1 => "An operation",
        _ => "Operations",
    };
    let claim = format!(
        "{failed} failed in {}: {}.",
        failures.places.join(" and "),
        counts.join(", ")
    );
    // A device has no room to be full: it is smaller than it says, or a thin pool has none left.
    let has_device = record
        .targets
        .iter()
        .any(|target| target.kind == TargetKind::BlockDevice);
    let is_full = !has_device
        && !failures.totals.is_empty()
        && failures
            .totals
            .keys()
            .all(|errno| OF_A_FULL_FILESYSTEM.contains(errno));
    let severity = if is_full {
        Severity::Warning
    } else {
        Severity::Failure
    };
    let remedy = sentence(&remedy(failures.totals.keys().copied()));
    Some(Diagnosis::new(severity, claim, failures.evidence).with_remedy(remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::accepted::{self, Fault};
    use crate::fixture::files::{file_step, files_plan, files_record};
    use crate::fixture::inserted::inserted_with_errors;
    use crate::fixture::{self, states, surveyed};
    use diskproof_model::files::FileOperation;
    use diskproof_model::proof::FigureSource;
    use diskproof_model::record::FailedCall;

    pub(super) const EXAMPLES: Examples = Examples::new(
        || failed(&[("EIO", 3), ("ENOSPC", 1)]),
        || failed(&[("EIO", 0)]),
    );

    /// Figures of a full filesystem are not the disk's, and the disk has not failed.
    #[test]
    fn full_filesystem_is_no_failing_disk() {
        for (errors, severity) in [
            (&[("ENOSPC", 8)][..], Severity::Warning),
            (&[("ENOSPC", 8), ("EDQUOT", 1)], Severity::Warning),
            (&[("ENOSPC", 8), ("EIO", 1)], Severity::Failure),
        ] {
            assert_eq!(check(&failed(errors)).unwrap().severity, severity);
        }
    }

    /// The server ended with PANIC, because its disk failed a sync of the log.
    #[test]
    fn request_of_a_server_that_failed_is_one_of_the_disk() {
        let record = inserted_with_errors("a", &[100.0, 101.0], &["EIO"]);
        let finding = check(&record).unwrap();
        assert_eq!(finding.severity, Severity::Failure);
        states(&finding.claim, &["PostgreSQL", "1 × EIO"]);
        assert_eq!(finding.evidence[0].path, "/results/0/errors/EIO");
        assert_eq!(check(&inserted_with_errors("a", &[100.0], &[])), None);
    }

    /// The disk failed reads and a write-back of small files; another program removed some.
    #[test]
    fn failed_operations_on_files_object_to_their_figures() {
        let errors = |errnos: &[(&str, u64)]| {
            let mut step = file_step(FileOperation::Read, &[1000; 5]);
            for (errno, count) in errnos {
                step.op.errors.insert((*errno).to_owned(), *count);
            }
            files_record("a", files_plan(), vec![step])
        };
        let record = errors(&[("EIO", 101), ("ENOENT", 7)]);
        let finding = record.findings.iter().find(|one| one.code == "io-errors");
        let finding = finding.unwrap();
        assert_eq!(finding.severity, Severity::Failure);
        states(&finding.claim, &["read-sequential", "101 × EIO"]);
        let path = "/results/0/steps/0/data/op/errors/EIO";
        assert_eq!(finding.evidence[0].path, path);
        let objection = record.objection(FigureSource::Result(0)).unwrap();
        assert_eq!(objection.cause, Cause::Failed);
        assert_eq!(check(&errors(&[("ENOENT", 7)])), None);
    }

    /// A write-back that the disk failed ended the run before anything was measured.
    #[test]
    fn failed_call_of_the_run_itself_is_reported() {
        let record = fixture::changed(|run| {
            run.facts.failed = Some(FailedCall {
                doing: "write it back (fdatasync)".to_owned(),
                errno: "EIO".to_owned(),
                count: 1,
                target: Some(0),
            });
        });
        let finding = check(&record).unwrap();
        assert_eq!(finding.severity, Severity::Failure);
        states(&finding.claim, &["write it back", "1 × EIO"]);
        assert_eq!(finding.evidence[0].path, "/failed/count");
    }

    /// Requests failed before an acceptance test, and did not fail again.
    #[test]
    fn errors_of_a_test_that_does_not_reject_are_reported() {
        let with_errors = |fault| {
            accepted::changed(fault, |_, test| {
                *test.errors.entry("EIO".to_owned()).or_default() += 2;
            })
        };
        let finding = check(&with_errors(Fault::None)).unwrap();
        states(&finding.claim, &["acceptance test", "2 × EIO"]);
        assert_eq!(check(&with_errors(Fault::Unreadable)), None);
    }

    fn failed(errnos: &[(&str, u64)]) -> Record {
        fixture::faulty("random-read-d32", |measurement| {
            for op in measurement.ops.values_mut() {
                let errnos = errnos
                    .iter()
                    .map(|(name, count)| ((*name).to_owned(), *count));
                op.errors.extend(errnos);
            }
        })
    }

    #[test]
    fn failed_operations_are_reported_by_errno() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Failure, 2)
        );
        states(&finding.claim, &["3 × EIO", "1 × ENOSPC"]);
        states(&finding.remedy, &["dmesg", "--size"]);
    }

    #[test]
    fn failures_of_a_survey_are_reported_with_their_place_and_errno() {
        let record = surveyed::faulty(|survey| {
            let errnos = [("EIO".to_owned(), 2), ("ETIMEDOUT".to_owned(), 1)];
            (survey.curve[20].errors, survey.curve[20].errnos) = (3, errnos.into());
            survey.access_errors.insert("EIO".to_owned(), 4);
        });
        let finding = check(&record).unwrap();
        states(
            &finding.claim,
            &["1 of 200 points", "32.0 GB", "6 × EIO", "1 × ETIMEDOUT"],
        );
        assert_eq!(finding.evidence.len(), 2);
    }
}
