//! Answers whether a figure may decide anything, or a finding shows that it is not the disk's.
//! Grades, thresholds, promises of a data sheet, settings, limits, trends, "Verified" and the
//! monitoring plugin all ask this one question first.

use crate::figure::Figure;
use crate::finding::{Cause, Finding, Meaning};
use crate::op::OpKind;
use crate::record::Record;
use crate::results::ResultAnswer;
use crate::row::Row;
use crate::workload::CachePolicy;

/// The place of a record from which a figure comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureSource {
    /// The measurement with this index.
    Measurement(usize),
    /// The result with this index.
    Result(usize),
}

impl FigureSource {
    /// The source of a figure of a record; `None` of what was judged or reported, and not measured.
    pub fn of_figure(figure: &Figure<'_>) -> Option<Self> {
        match (figure.key.measurement, figure.key.result) {
            (Some(index), _) => Some(Self::Measurement(index)),
            (None, Some(index)) => Some(Self::Result(index)),
            (None, None) => None,
        }
    }
}

/// The reason why a figure may not decide anything.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objection<'a> {
    /// The finding that shows it.
    pub finding: &'a Finding,
    /// The thing that the figure shows instead of the disk.
    pub cause: Cause,
}

impl Objection<'_> {
    /// `A cache answered instead of the disk (served-from-cache)`.
    pub fn text(&self) -> String {
        format!("{} ({})", self.finding.heading(), self.finding.code)
    }

    /// The reason in a few words, for the cell of a table.
    pub fn words(&self) -> &'static str {
        if self.is_of_hang() {
            "requests had no answer"
        } else {
            self.cause.words()
        }
    }

    /// True if requests had no answer: the figures are those of the answered ones, which are the
    /// disk's as far as they go.
    pub fn is_of_hang(&self) -> bool {
        self.finding.says.objection().is_none()
    }
}

impl Record {
    /// The reason against a decision on a figure of this source; `None` where there is none.
    pub fn objection(&self, source: FigureSource) -> Option<Objection<'_>> {
        for finding in self.findings.iter().filter(|finding| finding.is_serious()) {
            if let Some(cause) = finding.says.objection()
                && self.is_about(finding, source)
            {
                return Some(Objection { finding, cause });
            }
        }
        match source {
            FigureSource::Measurement(index) => self.objection_of_hang(index),
            FigureSource::Result(_) => None,
        }
    }

    /// The objection to a row with requests that had no answer: neither its rate nor its latencies
    /// contain them. A healthy disk answered the other rows of the same run.
    fn objection_of_hang(&self, index: usize) -> Option<Objection<'_>> {
        self.measurements.get(index)?.data.hang?;
        let place = format!("/measurements/{index}/data/hang");
        let mut serious = self.findings.iter().filter(|finding| finding.is_serious());
        let finding = serious.find(|finding| finding.rests_on(&place))?;
        Some(Objection {
            finding,
            cause: Cause::Failed,
        })
    }

    /// The finding by which the figures of a measurement are of something else than its disk;
    /// `None` where none says so. Storage without counters confirms no figure, and still has one.
    pub fn foreign_figures(&self, measurement: usize) -> Option<&Finding> {
        self.findings.iter().find(|finding| {
            finding.is_serious() && finding.concerns(measurement) && is_of_no_disk(finding)
        })
    }

    /// The objection to a decision on a figure, as far as it was measured; `None` where it may
    /// decide.
    pub fn objection_to(&self, figure: &Figure<'_>) -> Option<Objection<'_>> {
        self.objection(FigureSource::of_figure(figure)?)
    }

    /// Returns `true` if all requests of a run went to the page cache and nothing shows the disk:
    /// no sync, no failed or unanswered request, not half of the bytes moved by the disk, no
    /// requests of another kind, and no trouble that the disk itself reports. What a sweep or a
    /// sustained load found follows from such requests.
    pub fn is_of_page_cache(&self) -> bool {
        let has_own_requests = self
            .results
            .iter()
            .any(|result| result.inner().own_requests().is_some());
        !self.measurements.is_empty()
            && !has_own_requests
            && self.stalled.is_none()
            && self.failed.is_none()
            && self.silences.is_empty()
            && self.first_answers.is_empty()
            && !self.findings.iter().any(is_of_failing_disk)
            && self.measurements.iter().all(is_row_of_page_cache)
    }

    /// Returns `true` if a result of the run has this answer.
    pub fn has_answer(&self, answer: ResultAnswer) -> bool {
        self.results
            .iter()
            .any(|result| result.inner().answer() == answer)
    }

    /// Returns `true` if the run does not answer its question, thresholds aside: the run ends with
    /// another code then, and the monitoring plugin does not take it for a good one. The exit code
    /// of another tool knows no open question.
    pub fn is_undecided(&self) -> bool {
        let is_open = self.verifies_too_little() || self.has_answer(ResultAnswer::Undecided);
        is_open && !self.plan.is_of_other_tool()
    }

    /// True where a check of blocks says nothing about the disk: it found no block that it could
    /// judge, the page cache may have held more than a few of them, or something else than the disk
    /// answered.
    fn verifies_too_little(&self) -> bool {
        for (index, row) in self.measurements.iter().enumerate() {
            let Some(verify) = &row.data.verify else {
                continue;
            };
            let is_foreign = verify.runs == Some(0) && verify.blocks > 0;
            let is_of_others = match self.objection(FigureSource::Measurement(index)) {
                // Blocks that were read back are the disk's, whatever another request had.
                Some(objection) => !objection.is_of_hang(),
                None => false,
            };
            if is_foreign || !verify.proves_disk() || is_of_others {
                return true;
            }
        }
        false
    }

    /// True if a finding concerns the source of a figure, or the target that was measured.
    fn is_about(&self, finding: &Finding, source: FigureSource) -> bool {
        match source {
            FigureSource::Measurement(index) => self.is_about_measurement(finding, index),
            FigureSource::Result(index) => self.is_about_result(finding, index),
        }
    }

    /// True if a finding rests on a measurement, or on its target.
    fn is_about_measurement(&self, finding: &Finding, index: usize) -> bool {
        let is_about_target = match self.measurements.get(index) {
            Some(row) => finding.rests_on(&format!("/targets/{}", row.data.target)),
            None => false,
        };
        is_about_target || finding.rests_on(&format!("/measurements/{index}"))
    }

    /// A result without requests of its own follows from the measurements, and is no better than
    /// the worst of them.
    fn is_about_result(&self, finding: &Finding, index: usize) -> bool {
        let Some(result) = self.results.get(index) else {
            return false;
        };
        let is_about_source = match result.inner().own_requests() {
            Some(own) => finding.rests_on(&format!("/targets/{}", own.target)),
            None => (0..self.measurements.len())
                .any(|measurement| self.is_about_measurement(finding, measurement)),
        };
        is_about_source || finding.rests_on(&format!("/results/{index}"))
    }
}

/// Returns `true` if a finding says that the disk fails, or that its own report warns.
fn is_of_failing_disk(finding: &Finding) -> bool {
    let warns = finding.is_serious() && finding.says == Meaning::Health;
    warns || finding.is_failure_of_disk()
}

fn is_row_of_page_cache(row: &Row) -> bool {
    let data = &row.data;
    let is_synced = data.ops.contains_key(&OpKind::Sync) || data.ops.contains_key(&OpKind::Commit);
    let is_read_from_disk = moved_half(data.device.read_bytes, data.asked.read_bytes);
    // A load that writes for longer than memory lasts waits for the disk.
    let is_written_to_disk = moved_half(data.device.write_bytes, data.asked.write_bytes);
    data.cache.used == CachePolicy::Cached
        && !is_synced
        && !is_read_from_disk
        && !is_written_to_disk
        && data.hang.is_none()
        && row.errors_total() == 0
}

/// True if the disk moved at least half of what was requested.
fn moved_half(moved_bytes: u64, asked_bytes: u64) -> bool {
    asked_bytes > 0 && moved_bytes.saturating_mul(2) >= asked_bytes
}

fn is_of_no_disk(finding: &Finding) -> bool {
    match finding.says.objection() {
        Some(
            Cause::Cache | Cause::PageCache | Cause::EmptyBlocks | Cause::Burst | Cause::Failed,
        ) => true,
        Some(Cause::Unconfirmed | Cause::NotDurable) | None => false,
    }
}
