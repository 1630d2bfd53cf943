//! docs/findings.md tells every finding, and nothing that is none. Written anew under
//! UPDATE_DOCS=1.
#![allow(clippy::unwrap_used)] // a failed step fails the test

use diskproof_analysis::rules::RULES;
use std::path::Path;

const HEAD: &str = "\
# Findings

What `check`, `run` and `curve` may find, by code. A finding is a **failure** (the figures are \
                    wrong, or the disk is), a **warning** (the figures may not mean what
they seem to) or a **note** (good to know; the figures stand). Each carries its evidence, as \
                    pointers into the record, and what to do about it. The codes are
stable; scripts may look for them in `findings[].code` of the JSON record.

| code | meaning |
|---|---|
";

#[test]
fn every_finding_is_in_the_reference() {
    let rows: String = RULES
        .iter()
        .map(|rule| format!("| `{}` | {} |\n", rule.code, rule.meaning))
        .collect();
    let (path, wanted) = (
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings.md"),
        format!("{HEAD}{rows}"),
    );
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/findings.md is out of date: UPDATE_DOCS=1 cargo test -p diskproof-analysis --test \
         findings_reference"
    );
}
