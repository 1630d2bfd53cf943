//! Composes what the command line of another tool prints at the end of its run: the tool's own
//! text, the error that ended it, and findings without which its figures would mislead.

use crate::interrupt;
use crate::session::damaged_blocks::damaged_block_lines;
use crate::session::ended_run::EndedRun;
use crate::session::sink::EarlyEnd;
use crate::stdio::Verbosity;
use crate::tool_lines::{SharedPrinter, ToolEnd};
use diskproof_analysis::rules::{Check, rule};
use diskproof_model::data::RunData;
use diskproof_model::errno;
use diskproof_model::finding::{Finding, Severity};
use diskproof_model::plan::Plan;
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::units::format_duration;

/// The text that a tool prints at the end of its run.
pub(super) fn end_tool(tool: &SharedPrinter, record: &Record, end: &EndedRun) -> ToolEnd {
    let data = &end.results.data;
    let failed = failed_request(record);
    let errno = match (&end.ended, &failed) {
        (Err(EarlyEnd::Error(error)), _) => error.errno(),
        (_, Some(failed)) => Some(failed.errno.to_owned()),
        (_, None) => None,
    };
    if let Some(files) = &data.files {
        tool.files_measured(files);
    }
    let mut tool_end = tool.end(
        &data.measurements,
        data.surface.as_ref(),
        interrupt::signal().is_some(),
        errno.as_deref(),
    );
    let stderr = &mut tool_end.text.stderr;
    stderr.insert_str(0, &error_line(tool, failed, end));
    for row in &record.measurements {
        if let Some(line) = unverifiable_line(tool.name, row, &record.plan) {
            stderr.push_str(&line);
        }
    }
    let damaged = damaged_block_lines(tool, record);
    stderr.push_str(&damaged);
    for finding in &record.findings {
        let is_shown = finding.code == "bad-blocks" && !damaged.is_empty();
        if spoils_figures(finding) && !is_shown {
            let line = format!("{}: {}: {}\n", tool.name, finding.code, finding.claim);
            stderr.push_str(&line);
        }
    }
    tool_end
}

/// The line of a tool about the error or the reason that ended its run; empty without one.
fn error_line(tool: &SharedPrinter, failed: Option<FailedRequest<'_>>, end: &EndedRun) -> String {
    let tool_name = tool.name;
    match (&end.ended, failed) {
        // An error that ended the run is printed with its remedy.
        (Err(EarlyEnd::Error(_)), _) => String::new(),
        // `dd: error writing 'x': Disk quota exceeded (EDQUOT)`.
        (
            _,
            Some(FailedRequest {
                target,
                verb,
                errno,
            }),
        ) => {
            let path = match &tool.output {
                Some(output) => output.display().to_string(),
                None => target.to_owned(),
            };
            let text = errno::text(errno);
            format!("{tool_name}: error {verb} '{path}': {text} ({errno})\n")
        }
        (Err(EarlyEnd::Reason(why) | EarlyEnd::Unanswered { why, .. }), None)
            if interrupt::signal().is_none() =>
        {
            if has_completed(&end.results.data) {
                return format!("{tool_name}: {why}\n");
            }
            // The output of a tool may have nothing but zeros then.
            format!("{tool_name}: no request completed, so every figure is undecided. {why}\n")
        }
        _ => String::new(),
    }
}

/// True if a request completed.
fn has_completed(data: &RunData) -> bool {
    data.has_more_than_workloads()
        || data
            .measurements
            .iter()
            .flat_map(|measurement| measurement.ops.values())
            .any(|op| op.count > 0)
}

/// True if figures are false, those of a smaller load than was requested, those of a cache that
/// the tool would have bypassed or failed, or an average over a time in which the disk answered
/// nothing. Errors of requests are printed as such.
fn spoils_figures(finding: &Finding) -> bool {
    let Some(rule) = rule(&finding.code) else {
        return false;
    };
    let is_about_health = matches!(rule.check, Check::Health { .. });
    let is_false = finding.severity == Severity::Failure && finding.code != "io-errors";
    let is_hidden_by_figures =
        ["missed-schedule", "not-direct", "stalled", "late"].contains(&finding.code.as_str());
    (is_false && !is_about_health) || is_hidden_by_figures
}

/// Notes workloads of which no request completed: the output of another tool has no word for a rate
/// that is not known.
pub(super) fn note_unanswered(data: &RunData, verbosity: Verbosity) {
    for measurement in &data.measurements {
        let is_unanswered = measurement
            .ops
            .values()
            .all(|op| op.count == 0 && op.errors.is_empty());
        if measurement.wall_ns > 0 && is_unanswered {
            verbosity.note(&format!(
                "{}: undecided, no request completed within {}",
                measurement.workload.name,
                format_duration(measurement.wall_ns)
            ));
        }
    }
}

/// The line about blocks that cannot be verified; `None` without any. Damaged ones are a finding.
fn unverifiable_line(tool: &str, measured: &Row, plan: &Plan) -> Option<String> {
    let verify = measured.data.verify.as_ref()?;
    let target = plan.targets.get(measured.data.target)?;
    let unknown = verify.bad_blocks - verify.wrong_blocks();
    if unknown == 0 {
        return None;
    }
    Some(format!(
        "{tool}: verify failed at file {target}: {unknown} of {} blocks have no checksum of \
         diskproof, and those of other programs cannot be verified\n",
        verify.blocks
    ))
}

/// A request that the target answered with an error.
struct FailedRequest<'a> {
    target: &'a str,
    /// Its activity, such as `writing`.
    verb: &'static str,
    errno: &'a str,
}

/// The first request that a target answered with an error.
fn failed_request(record: &Record) -> Option<FailedRequest<'_>> {
    let targets = &record.plan.targets;
    for row in &record.measurements {
        for (kind, op) in &row.data.ops {
            if let Some(errno) = op.errors.keys().next() {
                return Some(FailedRequest {
                    target: targets.get(row.data.target)?,
                    verb: kind.doing(),
                    errno,
                });
            }
        }
    }
    for result in &record.results {
        if let Some(own) = result.inner().own_requests()
            && let Some(error) = own.error
            && let Some(errno) = error.errno
        {
            return Some(FailedRequest {
                target: targets.get(own.target)?,
                verb: error.doing,
                errno,
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::finding::Meaning;

    fn finding(code: &str, severity: Severity) -> Finding {
        Finding {
            code: code.to_owned(),
            title: None,
            severity,
            says: Meaning::default(),
            claim: String::new(),
            evidence: Vec::new(),
            remedy: String::new(),
            reproduce: None,
        }
    }

    /// The real tools fail where direct I/O is refused.
    #[test]
    fn tools_report_figures_of_a_cache_that_they_would_have_bypassed() {
        assert!(spoils_figures(&finding("not-direct", Severity::Warning)));
        assert!(spoils_figures(&finding("missed-schedule", Severity::Note)));
        assert!(spoils_figures(&finding("stalled", Severity::Warning)));
        assert!(!spoils_figures(&finding("disturbed", Severity::Warning)));
        assert!(spoils_figures(&finding("hung", Severity::Failure)));
        assert!(!spoils_figures(&finding("io-errors", Severity::Failure)));
    }
}
