//! docs/findings.md holds every finding and no other. `UPDATE_DOCS=1` writes it anew.
#![allow(clippy::unwrap_used)] // a failed step fails the test

use diskproof_analysis::rules::rules;
use std::path::Path;

const HEAD: &str = include_str!("findings_head.md");

#[test]
fn findings_reference_holds_every_finding() {
    let mut wanted = HEAD.to_owned();
    for rule in rules() {
        let uses = match (rule.says.objection(), rule.says.allows_comparison()) {
            (Some(_), false) => "none",
            (Some(_), true) => "comparison",
            (None, false) => "all but comparison",
            (None, true) => "all",
        };
        wanted.push_str(&format!(
            "| `{}` | {} | {} | {} | {} | {uses} |\n",
            rule.code,
            rule.title,
            rule.summary,
            rule.check.scope(),
            rule.says.text(),
        ));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings.md");
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
