//! Findings on the terminal page, each with its remedy.

use crate::labels;
use crate::page::{Page, TextStyle};
use diskproof_model::finding::{Finding, Severity};
use std::io;

/// Column at which the text of a finding begins.
const INDENT: usize = 9;

/// Writes the findings under a heading; nothing without any.
pub(super) fn write_findings(page: &mut Page<'_>, findings: &[Finding]) -> io::Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    page.blank()?;
    page.text(TextStyle::Bold.of("findings"))?;
    for finding in findings {
        let style = match finding.severity {
            Severity::Failure => TextStyle::Error,
            Severity::Warning => TextStyle::Warning,
            Severity::Note => TextStyle::Note,
        };
        let label = style.of(labels::severity(finding.severity));
        let heading = match &finding.title {
            Some(title) => format!("{title} ({})", finding.code),
            None => finding.code.clone(),
        };
        page.entry(label, INDENT, TextStyle::Bold.of(heading))?;
        for text in [&finding.claim, &format!("→ {}", finding.remedy)] {
            page.entry(TextStyle::Plain.of(""), INDENT, TextStyle::Plain.of(text))?;
        }
    }
    Ok(())
}
